//! Jacobians and Hessians, row by row.

use crate::error::{Error, Result};
use crate::ops::Gradient;
use crate::tensor::{Shape, Tensor};

use super::backward::{self, check_targets};
use super::source::{Source, SourceKey};
use super::tape::GradientTape;

/// `to` dims after `from` dims.
fn beside(from: &Shape, to: &Shape) -> Shape {
    from.iter().chain(to.iter()).copied().collect()
}

impl GradientTape {
    /// Derivatives of each element of `target` with respect to each source: shape `[target dims.., source dims..]`.
    ///
    /// One walk back for every element of the target, so it is for small targets; a tape that is not persistent is
    /// consumed by all of them together. `None` where the target does not depend on a source.
    ///
    /// ```
    /// use couplet::{GradientTape, Tensor};
    /// let x = Tensor::from([1.0f64, 2.0]);
    /// let tape = GradientTape::new();
    /// tape.watch(&x);
    /// let y = (&x * &x)?;
    /// let j = tape.jacobian(&y, &[&x])?.remove(0).expect("y depends on x");
    /// assert_eq!((j.shape().to_vec(), j.to_vec::<f64>()?), (vec![2, 2], vec![2.0, 0.0, 0.0, 4.0]));
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// The target is not of a float dtype, or the tape was consumed.
    pub fn jacobian<S: Source>(&self, target: &Tensor, sources: &[S]) -> Result<Vec<Option<Tensor>>> {
        let keys: Vec<SourceKey<'_>> = sources.iter().map(Source::key).collect();
        let seeds = (0..target.size()).map(|element| one_hot(element, target, target.shape()));
        let rows = self.rows(target, &keys, seeds)?;
        let whole = |(key, rows): (&SourceKey<'_>, Option<Vec<Tensor>>)| {
            let shape = beside(target.shape(), &key.shape());
            rows.map(|rows| stacked(&rows, key, 0)?.reshape(shape)).transpose()
        };
        keys.iter().zip(rows).map(whole).collect()
    }

    /// Derivatives of each example's outputs with respect to its own inputs: `[b, m..]` by `[b, n..]` gives `[b, m.., n..]`.
    ///
    /// Right where example `i` of the target depends on example `i` of the source alone, as in a network without batch
    /// statistics; then one walk back for each output of one example gives all examples. `None` where the target does
    /// not depend on the source.
    ///
    /// ```
    /// use couplet::{GradientTape, Tensor};
    /// let x = Tensor::from([[1.0f64, 2.0], [3.0, 4.0]]);
    /// let tape = GradientTape::new();
    /// tape.watch(&x);
    /// let y = x.prod_axes(-1, true)?; // [2, 1]
    /// let j = tape.batch_jacobian(&y, &x)?.expect("y depends on x");
    /// assert_eq!((j.shape().to_vec(), j.to_vec::<f64>()?), (vec![2, 1, 2], vec![2.0, 1.0, 4.0, 3.0]));
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// The target is not of a float dtype, target and source have not the same first dim, or the tape was consumed.
    pub fn batch_jacobian(&self, target: &Tensor, source: &impl Source) -> Result<Option<Tensor>> {
        let key = source.key();
        let source = key.shape();
        let (Some(&batch), Some(&of_source)) = (target.shape().first(), source.first()) else {
            let scalar =
                if target.rank() == 0 { ("the target", target.shape()) } else { ("the source", &source) };
            return Err(Error::shape("batch_jacobian", scalar.0, scalar.1, "rank 1 or more"));
        };
        if batch != of_source {
            let expected = format!("{batch} examples, as the target of shape {} has", target.shape());
            return Err(Error::shape("batch_jacobian", "the source", &source, expected));
        }
        let example = Shape::from(&target.shape()[1..]);
        let seeds = (0..example.size())
            .map(|element| one_hot(element, target, &example)?.broadcast_to(target.shape().clone()));
        let rows = self.rows(target, std::slice::from_ref(&key), seeds)?.pop().flatten();
        let shape = beside(target.shape(), &Shape::from(&source[1..]));
        rows.map(|rows| stacked(&rows, &key, 1)?.reshape(shape)).transpose()
    }

    /// For each source, what it receives from each of `seeds`; `None` if it never receives anything.
    fn rows(
        &self,
        target: &Tensor,
        keys: &[SourceKey<'_>],
        seeds: impl Iterator<Item = Result<Tensor>>,
    ) -> Result<Vec<Option<Vec<Tensor>>>> {
        check_targets(&[(target, None)])?;
        self.walk_back(|range, _| {
            let mut rows: Vec<Vec<Option<Gradient>>> = keys.iter().map(|_| Vec::new()).collect();
            let observer = self.observer.borrow();
            for seed in seeds {
                let gradients =
                    backward::run(range, &[(target, Some(&seed?))], keys, false, observer.as_ref())?;
                rows.iter_mut().zip(gradients).for_each(|(rows, gradient)| rows.push(gradient));
            }
            let dense = |(key, rows): (&SourceKey<'_>, Vec<Option<Gradient>>)| {
                if rows.iter().all(Option::is_none) {
                    return Ok(None);
                }
                let dense = |g: Option<Gradient>| g.map_or_else(|| key.zeros(), |g| g.to_dense());
                rows.into_iter().map(dense).collect::<Result<Vec<_>>>().map(Some)
            };
            keys.iter().zip(rows).map(dense).collect()
        })
    }
}

/// Zeros of `shape`, in the dtype of `target`, with a 1 at `element`.
fn one_hot(element: usize, target: &Tensor, shape: &Shape) -> Result<Tensor> {
    Tensor::from(element as i64).one_hot(shape.size(), target.dtype())?.reshape(shape.clone())
}

/// The rows of one source side by side; there may be none.
fn stacked(rows: &[Tensor], key: &SourceKey<'_>, axis: isize) -> Result<Tensor> {
    match rows {
        [] => Tensor::zeros([0], key.dtype()),
        _ => Tensor::stack(&rows.iter().collect::<Vec<_>>(), axis),
    }
}

/// The Jacobian of what `f` computes with respect to each source, `[y dims.., source dims..]`; zeros where it does not
/// depend on one. Not recorded by itself: an outer tape that watches the sources gets derivatives of it.
///
/// ```
/// use couplet::{Tensor, autodiff::jacobian};
/// let (w, x) = (Tensor::from([[1.0f64, 2.0], [3.0, 4.0]]), Tensor::from([[1.0f64], [1.0]]));
/// let j = jacobian(|| w.matmul(&x), &[&x])?.remove(0);
/// assert_eq!(j.shape(), &[2, 1, 2, 1]);
/// assert_eq!(j.to_vec::<f64>()?, w.to_vec::<f64>()?);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `f` fails, or its result is not of a float dtype.
pub fn jacobian<S: Source>(f: impl FnOnce() -> Result<Tensor>, sources: &[S]) -> Result<Vec<Tensor>> {
    let tape = GradientTape::new().watch_accessed_variables(false);
    sources.iter().for_each(|source| tape.watch(source));
    let y = f()?;
    let zeros = |source: &S| {
        let key = source.key();
        Tensor::zeros(beside(y.shape(), &key.shape()), key.dtype())
    };
    let whole = |(j, source): (Option<Tensor>, &S)| j.map_or_else(|| zeros(source), Ok);
    tape.jacobian(&y, sources)?.into_iter().zip(sources).map(whole).collect()
}

/// The second derivatives of the scalar that `f` computes: block `[i][j]` holds `d2f / (dx_i dx_j)`, of shape
/// `[x_i dims.., x_j dims..]`.
///
/// ```
/// use couplet::{Tensor, autodiff::hessian};
/// let x = Tensor::from([2.0f64, 3.0]);
/// let h = hessian(|| x.prod(), &[&x])?.remove(0).remove(0);
/// assert_eq!(h.to_vec::<f64>()?, [0.0, 1.0, 1.0, 0.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `f` fails, or its result is not a scalar of a float dtype.
pub fn hessian<S: Source>(f: impl FnOnce() -> Result<Tensor>, sources: &[S]) -> Result<Vec<Vec<Tensor>>> {
    let outer = GradientTape::persistent().watch_accessed_variables(false);
    let inner = GradientTape::new().watch_accessed_variables(false);
    for source in sources {
        outer.watch(source);
        inner.watch(source);
    }
    let y = f()?;
    let gradients = inner.gradient(&y, sources)?;
    let block = |(gradient, row): (Option<Gradient>, &S)| {
        let jacobians = match gradient {
            Some(gradient) => outer.jacobian(&gradient.to_dense()?, sources)?,
            None => sources.iter().map(|_| None).collect(),
        };
        let whole = |(j, source): (Option<Tensor>, &S)| {
            let (row, key) = (row.key(), source.key());
            j.map_or_else(|| Tensor::zeros(beside(&row.shape(), &key.shape()), row.dtype()), Ok)
        };
        jacobians.into_iter().zip(sources).map(whole).collect()
    };
    gradients.into_iter().zip(sources).map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Slice, Variable};

    #[test]
    fn each_element_of_the_target_has_its_row() -> Result<()> {
        // y = w x with w [2, 3], x [3, 2]: dy[i, j] / dw[k, l] = (i = k) x[l, j].
        let w = Variable::from_tensor("w", Tensor::from([[1.0f64, 2.0, 3.0], [4.0, 5.0, 6.0]]));
        let x = Tensor::from([[1.0f64, 0.5], [2.0, -1.0], [3.0, 0.0]]);
        let tape = GradientTape::new();
        let y = w.value().matmul(&x)?;
        let j = tape.jacobian(&y, &[&w])?.remove(0).expect("depends on w");
        assert_eq!(j.shape(), &[2, 2, 2, 3]);
        let (list, x) = (j.to_vec::<f64>()?, x.to_vec::<f64>()?);
        for (at, got) in list.into_iter().enumerate() {
            let (i, j, k, l) = (at / 12, at / 6 % 2, at / 3 % 2, at % 3);
            assert_eq!(got, if i == k { x[l * 2 + j] } else { 0.0 });
        }
        assert!(tape.jacobian(&y, &[&w]).unwrap_err().to_string().contains("persistent"));
        Ok(())
    }

    #[test]
    fn sparse_and_missing_rows_become_zeros() -> Result<()> {
        let (table, z) = (Tensor::from([[1.0f64], [2.0], [3.0]]), Tensor::from([5.0f64]));
        let j = jacobian(|| table.gather(&Tensor::from([2i64, 0]), 0), &[&table, &z])?;
        assert_eq!(j[0].shape(), &[2, 1, 3, 1]);
        assert_eq!(j[0].to_vec::<f64>()?, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
        assert_eq!((j[1].shape().to_vec(), j[1].to_vec::<f64>()?), (vec![2, 1, 1], vec![0.0, 0.0]));
        Ok(())
    }

    #[test]
    fn a_batch_jacobian_is_the_diagonal_of_the_whole_one() -> Result<()> {
        let x = Tensor::linspace(-1.0, 1.0, 6, DType::F64)?.reshape([3, 2])?;
        let w = Tensor::from([[1.0f64, 2.0], [-0.5, 3.0]]);
        let tape = GradientTape::persistent();
        tape.watch(&x);
        let y = x.matmul(&w)?.tanh()?;
        let whole = tape.jacobian(&y, &[&x])?.remove(0).expect("depends on x");
        let batch = tape.batch_jacobian(&y, &x)?.expect("depends on x");
        assert_eq!(batch.shape(), &[3, 2, 2]);
        for example in 0..3 {
            let row = whole.slice(&[Slice::Index(example), Slice::step(1), Slice::Index(example)])?;
            assert_eq!(row.to_vec::<f64>()?, batch.index(example)?.to_vec::<f64>()?);
        }
        let message = tape.batch_jacobian(&y, &w).unwrap_err().to_string();
        assert!(message.contains("[2, 2]") && message.contains("3 examples"), "{message}");
        assert!(tape.batch_jacobian(&y.sum()?, &x).is_err());
        Ok(())
    }

    #[test]
    fn a_hessian_has_a_block_for_each_pair_of_sources() -> Result<()> {
        // f = a^2 b with a = 3, b = 5: [[2 b, 2 a], [2 a, 0]].
        let (a, b) = (Tensor::from(3.0f64), Tensor::from(5.0f64));
        let h = hessian(|| (&a * &a)? * &b, &[&a, &b])?;
        let list: Vec<f64> = h.iter().flatten().map(|h| h.item().unwrap()).collect();
        assert_eq!(list, [10.0, 6.0, 6.0, 0.0]);
        Ok(())
    }

    #[test]
    fn no_element_gives_an_empty_jacobian_and_an_integer_target_is_refused() -> Result<()> {
        let x = Tensor::zeros([0, 2], DType::F32)?;
        assert_eq!(jacobian(|| x.exp(), &[&x])?[0].shape(), &[0, 2, 0, 2]);
        let i = Tensor::from([1i64]);
        assert!(jacobian(|| Ok(i.clone()), &[&i]).unwrap_err().to_string().contains("float"));
        Ok(())
    }
}
