//! What every op promises, over the one list of ops: right gradients of first and second order on any layout, a name
//! and attributes that survive encoding, the same bits on any number of threads, results for empty tensors and axes of
//! size 1, NaN and infinities as NumPy has them, half floats that are rounded once, and no panic on input that does not fit.

mod derivatives;
mod half;
mod harness;
mod refusals;
mod sizes;
mod special;
mod threads;

use couplet::ops::op_list;

#[test]
fn every_op_has_a_name_of_its_own_a_sample_and_attributes_that_survive_encoding() {
    let mut names = Vec::new();
    for entry in op_list() {
        let samples = (entry.samples)();
        assert!(!samples.is_empty(), "{} lists no sample", entry.name);
        for sample in &samples {
            assert_eq!(sample.op.name(), entry.name);
            let bytes = sample.op.attributes().unwrap();
            let decoded = (entry.decode)(&bytes).unwrap();
            assert_eq!((decoded.name(), decoded.attributes().unwrap()), (entry.name, bytes));
            assert_eq!(format!("{decoded:?}"), format!("{:?}", sample.op));
        }
        names.push(entry.name);
    }
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count, "two ops share a name");
}
