//! Operations on tensors, one family a file: the op, its gradient and its `Tensor` methods side by side.

mod arithmetic;
mod broadcast;
mod cast;
mod concat;
mod conv;
pub(crate) mod cost;
mod gradient;
mod linear;
mod matmul;
mod op;
mod operand;
mod operators;
pub(crate) mod record;
mod registry;
mod shape;
mod slice;
mod sparse;
mod sum;

pub(crate) use conv::per_axis;
pub use conv::{ConvOptions, Padding};
pub use gradient::{Gradient, IndexedSlices};
pub use op::{
    Attributes, Binary, Computed, Input, Inputs, IntoOp, Mask, Narrow, NarrowBinary, NarrowUnary, Op, Saved,
    Saves, Unary, Wide,
};
pub use operand::Operand;
pub use registry::{Listed, OpEntry, Sample, SampleInput, op_list, register_op};

pub(crate) use arithmetic::{Number, for_number};
pub use slice::Slice;
pub use sum::Axes;

use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// The one list of built-in ops: names, decoders for exported models, and the samples that every test walks.
pub(crate) const OPS: &[OpEntry] = &[
    OpEntry::binary::<arithmetic::Add>(),
    OpEntry::binary::<arithmetic::Subtract>(),
    OpEntry::binary::<arithmetic::Multiply>(),
    OpEntry::binary::<arithmetic::Divide>(),
    OpEntry::unary::<arithmetic::Negative>(),
    OpEntry::binary::<matmul::Matmul>(),
    OpEntry::wide::<linear::Affine>("affine"),
    OpEntry::wide::<conv::Convolve>("convolve"),
    OpEntry::wide::<conv::ConvInputGradient>("conv_input_gradient"),
    OpEntry::wide::<conv::ConvFilterGradient>("conv_filter_gradient"),
    OpEntry::unary::<broadcast::BroadcastTo>(),
    OpEntry::unary::<broadcast::SumTo>(),
    OpEntry::unary::<shape::Reshape>(),
    OpEntry::unary::<shape::Transpose>(),
    OpEntry::unary::<sum::Sum>(),
    OpEntry::unary::<slice::StridedSlice>(),
    OpEntry::unary::<slice::Unslice>(),
    OpEntry::wide::<concat::Concat>("concat"),
    OpEntry::wide::<cast::Cast>("cast"),
    OpEntry::wide::<sparse::GatherRows>("gather_rows"),
    OpEntry::wide::<sparse::AddRows>("add_rows"),
];

/// Runs an op of one output on its inputs; a tape that tracks one of them records it.
///
/// # Errors
/// The op refuses its inputs, or has not exactly one output.
pub fn apply<'a, Kind, O, I, const N: usize>(op: O, inputs: [I; N]) -> Result<Tensor>
where
    O: IntoOp<Kind>,
    I: Into<Input<'a>>,
{
    let mut inputs = inputs.map(|x| Some(x.into()));
    match record::run(op.into_op(), &mut inputs)? {
        op::Outputs::One(y) => Ok(y),
        op::Outputs::Many(list) => {
            let count = list.len();
            let mut list = list.into_iter();
            match (list.next(), list.next()) {
                (Some(y), None) => Ok(y),
                _ => Err(Error::usage("apply", format!("the op has {count} outputs"), "call apply_many")),
            }
        }
    }
}

/// Runs an op of any number of outputs on its inputs; a tape that tracks one of them records it.
///
/// # Errors
/// The op refuses its inputs.
pub fn apply_many<'a, Kind, O, I>(op: O, inputs: impl IntoIterator<Item = I>) -> Result<Vec<Tensor>>
where
    O: IntoOp<Kind>,
    I: Into<Input<'a>>,
{
    let mut inputs: Vec<Option<Input<'a>>> = inputs.into_iter().map(|x| Some(x.into())).collect();
    match record::run(op.into_op(), &mut inputs)? {
        op::Outputs::One(y) => Ok(vec![y]),
        op::Outputs::Many(list) => Ok(list),
    }
}
