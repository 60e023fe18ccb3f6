//! A dataset in memory.

use std::sync::Arc;

use crate::error::Result;

use super::aligned::{Aligned, align, take_rows};
use super::batches::Batches;
use super::order::{DatasetState, Order};

/// Rows of one or more aligned tensors, in their own order or shuffled.
///
/// A clone is another handle to the same tensors.
#[derive(Debug)]
pub struct Dataset<T> {
    tensors: Arc<T>,
    len: usize,
    seed: Option<u64>,
}

impl<T> Clone for Dataset<T> {
    fn clone(&self) -> Self {
        Self { tensors: self.tensors.clone(), ..*self }
    }
}

impl<T: Aligned> Dataset<T> {
    /// A dataset of the rows of `tensors`: a tensor, a tuple or a `Vec` of them, or a struct that is [`Aligned`].
    ///
    /// Shares the memory of the tensors that are contiguous and copies the others.
    ///
    /// # Errors
    /// There is no tensor, one has rank 0, or their numbers of rows differ.
    pub fn new(tensors: T) -> Result<Self> {
        let (tensors, len) = align(&tensors)?;
        Ok(Self { tensors: Arc::new(tensors), len, seed: None })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The tensors with all rows, in their own order.
    pub fn tensors(&self) -> &T {
        &self.tensors
    }

    /// The same rows in random order, in another one each epoch: which, depends on `seed` and on the number of the
    /// epoch alone.
    #[must_use]
    pub fn shuffle(&self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self.clone() }
    }

    /// The rows in groups of `batch_size`; the last group of an epoch may be smaller.
    ///
    /// A `batch_size` of 0 is an error at the first batch.
    pub fn batches(&self, batch_size: usize) -> Batches<T> {
        let order = Order { len: self.len, batch_size, drop_remainder: false, repeat: 1 };
        let start = DatasetState { seed: self.seed, len: self.len as u64, epoch: 0, row: 0 };
        let tensors = self.tensors.clone();
        Batches::new(order, start, move |rows| tensors.map_tensors(&mut |x| take_rows(x, rows)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Tensor};

    fn numbers(x: &Tensor) -> Vec<i64> {
        x.to_vec::<i64>().unwrap()
    }

    /// Rows `[i, 10 i]` and their numbers `i`.
    fn pairs(count: i64) -> (Tensor, Tensor) {
        let x = (0..count).flat_map(|i| [i, 10 * i]).collect::<Vec<i64>>();
        (Tensor::from_vec(x, [count as usize, 2]).unwrap(), Tensor::from((0..count).collect::<Vec<i64>>()))
    }

    #[test]
    fn rows_stay_aligned_when_shuffled() {
        let dataset = Dataset::new(pairs(10)).unwrap().shuffle(3);
        let mut seen = Vec::new();
        for batch in dataset.batches(4) {
            let (x, i) = batch.unwrap();
            assert_eq!(x.shape(), &[i.size(), 2]);
            assert_eq!(numbers(&x), numbers(&i).iter().flat_map(|&i| [i, 10 * i]).collect::<Vec<_>>());
            seen.extend(numbers(&i));
        }
        assert_ne!(seen, (0..10).collect::<Vec<_>>());
        seen.sort_unstable();
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn without_shuffle_batches_are_views_in_order() {
        let (x, i) = pairs(5);
        let dataset = Dataset::new(vec![x.clone(), i]).unwrap();
        let batches: Vec<_> = dataset.batches(2).into_iter().map(|batch| batch.unwrap()).collect();
        assert_eq!(batches.iter().flat_map(|batch| numbers(&batch[0])).collect::<Vec<_>>(), numbers(&x));
        assert_eq!(numbers(&batches[2][1]), [4]);
        assert!(batches.iter().all(|batch| batch[0].shares_memory_with(&x)));
    }

    #[test]
    fn tensors_that_are_not_contiguous_are_batched_too() {
        let x = Tensor::from([[0i64, 1, 2], [10, 11, 12]]).transpose(&[1, 0]).unwrap(); // rows [0, 10], [1, 11], [2, 12]
        let dataset = Dataset::new(x).unwrap();
        let plain: Vec<_> = dataset.batches(2).into_iter().map(|batch| numbers(&batch.unwrap())).collect();
        assert_eq!(plain, [vec![0, 10, 1, 11], vec![2, 12]]);
        let shuffled = dataset.shuffle(1).batches(1).into_iter().map(|batch| numbers(&batch.unwrap()));
        let mut shuffled: Vec<_> = shuffled.collect();
        shuffled.sort();
        assert_eq!(shuffled, [[0, 10], [1, 11], [2, 12]]);
    }

    #[test]
    fn every_dtype_is_batched() {
        for dtype in DType::ALL {
            let x = Tensor::from([0i64, 1, 0, 1]).cast(dtype).unwrap();
            let batch = Dataset::new(x).unwrap().shuffle(1).batches(4).into_iter().next().unwrap().unwrap();
            assert_eq!(batch.dtype(), dtype);
            let mut values = numbers(&batch.cast(DType::I64).unwrap());
            values.sort_unstable();
            assert_eq!(values, [0, 0, 1, 1]);
        }
    }

    #[test]
    fn no_rows_and_empty_rows_give_sane_batches() {
        let none = Dataset::new(Tensor::zeros([0, 3], DType::F32).unwrap()).unwrap();
        assert!(none.is_empty());
        assert_eq!(none.shuffle(1).batches(2).repeat(5).into_iter().count(), 0);
        let empty = Dataset::new(Tensor::zeros([3, 0], DType::F32).unwrap()).unwrap();
        let shapes = empty.shuffle(1).batches(2).into_iter().map(|batch| batch.unwrap().shape().to_vec());
        assert_eq!(shapes.collect::<Vec<_>>(), [[2, 0], [1, 0]]);
    }

    #[test]
    fn tensors_that_do_not_belong_together_are_refused() {
        let error = |tensors: Vec<Tensor>| Dataset::new(tensors).unwrap_err().to_string();
        let (x, _) = pairs(3);
        let message = error(vec![x.clone(), Tensor::from([1i64, 2])]);
        assert_eq!(message, "dataset: tensor 1 has shape [2], expected 3 rows along axis 0, as tensor 0 has");
        assert_eq!(
            error(vec![x, Tensor::from(1i64)]),
            "dataset: tensor 1 has shape [], expected rank 1 or more"
        );
        assert_eq!(error(vec![]), "dataset: tensors is an empty list, expected at least one tensor");
    }

    #[test]
    fn an_empty_batch_or_pass_is_an_error_at_the_first_batch() {
        let dataset = Dataset::new(Tensor::from([1i64, 2])).unwrap();
        let message = |batches: Batches<Tensor>| {
            let items: Vec<_> = batches.into_iter().collect();
            assert_eq!(items.len(), 1);
            items[0].as_ref().unwrap_err().to_string()
        };
        assert_eq!(message(dataset.batches(0)), "batches: batch_size is 0, expected 1 or more");
        assert_eq!(message(dataset.batches(0).prefetch(2)), "batches: batch_size is 0, expected 1 or more");
        assert_eq!(message(dataset.batches(1).repeat(0)), "repeat: count is 0, expected 1 or more");
    }
}
