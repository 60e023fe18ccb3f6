//! Systems of equations with triangular matrices.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::{parallel, triangular};
use crate::tensor::{Shape, Tensor, checked_size};

use super::apply;
use super::arithmetic::same_dtype;
use super::broadcast::broadcast_shape;
use super::op::{Binary, Mask, NarrowBinary, Saved, Saves};
use super::registry::{Listed, Sample, SampleInput};

const NAME: &str = "triangular_solve";

/// `y` with `op(a) y = b`, where `a` is triangular and `op` transposes it if asked to; leading axes broadcast.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct TriangularSolve {
    upper: bool,
    transpose: bool,
}

/// The matrices of `x` one after the other in `f64`, with leading axes `batch`.
fn matrices(x: &Tensor, batch: &Shape) -> Result<Tensor> {
    let shape: Shape = batch.iter().chain(&x.shape()[x.rank() - 2..]).copied().collect();
    Ok(x.expanded(&shape)?.converted(DType::F64)?.to_contiguous())
}

impl Binary for TriangularSolve {
    const NAME: &'static str = NAME;

    fn saves(&self, tracked: Mask) -> Saves {
        let outputs = if tracked.has(0) { Mask::only(0) } else { Mask::NONE };
        Saves { inputs: Mask::only(0), outputs }
    }

    fn forward(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        let dtype = same_dtype(NAME, &a, &b)?;
        if !dtype.is_float() {
            return Err(Error::dtype(NAME, "a", dtype, "a float dtype; convert it with cast"));
        }
        let ([lead_a @ .., rows, n], [lead_b @ .., height, columns]) = (a.shape().dims(), b.shape().dims())
        else {
            let low = if a.rank() < 2 { ("a", &a) } else { ("b", &b) };
            return Err(Error::shape(NAME, low.0, low.1.shape(), "rank 2 or more"));
        };
        let (n, columns) = (*n, *columns);
        if *rows != n {
            return Err(Error::shape(NAME, "a", a.shape(), "square matrices"));
        }
        if *height != n {
            let expected = format!("{n} as its second to last dim, to fit a of shape {}", a.shape());
            return Err(Error::shape(NAME, "b", b.shape(), expected));
        }
        let batch = broadcast_shape(NAME, &lead_a.into(), &lead_b.into())?;
        let shape: Shape = batch.iter().copied().chain([n, columns]).collect();
        checked_size(NAME, &shape, DType::F64)?;
        checked_size(NAME, &batch.iter().copied().chain([n, n]).collect(), DType::F64)?;
        let (a, mut y) = (matrices(&a, &batch)?, matrices(&b, &batch)?);
        let a = a.as_slice::<f64>()?.unwrap_or(&[]);
        parallel::for_each_chunk_mut(y.make_mut::<f64>()?, n * columns, |i, y| {
            triangular::solve(&a[i * n * n..(i + 1) * n * n], self.upper, self.transpose, y, columns);
        });
        y.converted(dtype)
    }

    /// `db = op(a)^-T dy` and, in the triangle that was read, `da = -db y^T`, or its transpose if `op` transposes.
    fn gradient(&self, saved: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        let back = TriangularSolve { upper: self.upper, transpose: !self.transpose };
        let db = apply::<NarrowBinary, _, _, 2>(back, [saved.input(0)?, dy])?;
        let da = if needs.has(0) {
            let y = saved.output()?;
            let whole = if self.transpose { y.matmul(db.t()?)? } else { db.matmul(y.t()?)? };
            let part = if self.upper { whole.triu(0)? } else { whole.tril(0)? };
            Some((-part)?)
        } else {
            None
        };
        Ok([da, needs.has(1).then_some(db)])
    }
}

impl Listed for TriangularSolve {
    fn samples() -> Vec<Sample> {
        let sample = |upper, transpose, a: &[usize], b: &[usize]| {
            let inputs = [SampleInput::within(a, 0.5, 2.0), SampleInput::float(b)];
            Sample::new::<NarrowBinary, _>(TriangularSolve { upper, transpose }, inputs)
        };
        vec![
            sample(false, false, &[3, 3], &[3, 2]),
            sample(true, false, &[2, 3, 3], &[2, 3, 1]),
            sample(false, true, &[3, 3], &[2, 3, 2]),
            sample(true, true, &[2, 1, 2, 2], &[3, 2, 2]),
        ]
    }
}

impl Tensor {
    /// The solution `y` of `A y = b` for each matrix `A` of `self`, or of `A^T y = b` with `adjoint`; of `A` only the
    /// lower triangle is read, or the upper one if it is not `lower`. Leading axes broadcast.
    ///
    /// | tensor | shape               |
    /// |--------|---------------------|
    /// | `self` | `[.., n, n]`        |
    /// | `b`    | `[.., n, columns]`  |
    /// | `y`    | `[.., n, columns]`  |
    ///
    /// A 0 on the diagonal gives infinities or NaN. Computed in `f64` and rounded once.
    ///
    /// ```
    /// use couplet::Tensor;
    /// let a = Tensor::from([[2.0f32, 0.0], [1.0, 4.0]]);
    /// let y = a.triangular_solve(&Tensor::from([[2.0f32], [9.0]]), true, false)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// The matrices are not square or do not fit `b`, leading axes do not broadcast, or dtypes differ or are not floats.
    pub fn triangular_solve(&self, b: &Tensor, lower: bool, adjoint: bool) -> Result<Tensor> {
        apply(TriangularSolve { upper: !lower, transpose: adjoint }, [self, b])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_triangle_is_not_read() -> Result<()> {
        let a = Tensor::from([[2.0f64, f64::NAN], [1.0, 4.0]]);
        let b = Tensor::from([[2.0f64], [9.0]]);
        assert_eq!(a.triangular_solve(&b, true, false)?.to_vec::<f64>()?, [1.0, 2.0]);
        // The transpose is upper: 4 y1 = 9, 2 y0 + y1 = 2.
        assert_eq!(a.triangular_solve(&b, true, true)?.to_vec::<f64>()?, [-0.125, 2.25]);
        Ok(())
    }

    #[test]
    fn misfits_are_refused_and_empty_systems_solved() -> Result<()> {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32).unwrap();
        let solve = |a: &[usize], b: &[usize]| zeros(a).triangular_solve(&zeros(b), true, false);
        assert!(solve(&[2, 3], &[2, 1]).is_err() && solve(&[2, 2], &[3, 1]).is_err());
        assert!(solve(&[2], &[2, 1]).is_err() && solve(&[2, 2], &[2]).is_err());
        assert!(solve(&[2, 2, 2], &[3, 2, 1]).is_err());
        let whole = Tensor::from([[1]]);
        assert!(whole.triangular_solve(&whole, true, false).unwrap_err().to_string().contains("i32"));
        assert_eq!(solve(&[0, 2, 2], &[2, 1])?.shape(), &[0, 2, 1]);
        assert_eq!(solve(&[0, 0], &[0, 3])?.shape(), &[0, 3]);
        assert_eq!(solve(&[2, 2], &[2, 0])?.shape(), &[2, 0]);
        Ok(())
    }
}
