//! Orthogonal and triangular factors of matrices.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::parallel::{self, SendPtr};
use crate::kernels::qr;
use crate::tensor::{Shape, Tensor, checked_size, take};

use super::apply_many;
use super::gradient::Gradient;
use super::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use super::registry::{Listed, Sample, SampleInput};

/// `x = q r` for each matrix of `x`, with orthonormal columns of `q` and a triangular `r`; outputs `q` and `r`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Qr;

impl Op for Qr {
    fn name(&self) -> &'static str {
        "qr"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves { inputs: Mask::NONE, outputs: Mask::only(0).and(Mask::only(1)) }
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let x = inputs.get(0)?;
        let dtype = x.dtype();
        if !dtype.is_float() {
            return Err(Error::dtype("qr", "x", dtype, "a float dtype; convert it with cast"));
        }
        let [batch @ .., rows, columns] = x.shape().dims() else {
            return Err(Error::shape("qr", "x", x.shape(), "rank 2 or more"));
        };
        let (rows, columns) = (*rows, *columns);
        if rows < columns {
            return Err(Error::shape("qr", "x", x.shape(), "at least as many rows as columns"));
        }
        let square: Shape = batch.iter().copied().chain([columns, columns]).collect();
        let mut r = take::<f64>(checked_size("qr", &square, DType::F64)?);
        let mut q = x.converted(DType::F64)?;
        let upper = SendPtr(r.as_mut_ptr());
        parallel::for_each_chunk_mut(q.make_mut::<f64>()?, rows * columns, |i, q| {
            // SAFETY: each matrix is passed once, and has its own part of `r`, which is as long as all of them.
            let r = unsafe { upper.part(i * columns * columns, columns * columns) };
            qr::factorise(q, columns, r);
        });
        let r = Tensor::from_taken(r, square);
        Ok(Computed::many(vec![q.converted(dtype)?, r.converted(dtype)?]))
    }

    /// With `M = r dr^T - dq^T q` and `L(M)` the symmetric matrix that has the lower triangle of `M`:
    /// `dx = (dq + q L(M)) r^-T` (Walter & Lehmann 2010, section 4).
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        let (q, r) = (saved.output_at(0)?, saved.output_at(1)?);
        let (dq, dr) = match dy {
            [dq, dr] if dq.is_some() || dr.is_some() => (dq, dr),
            _ => return Ok(vec![None]),
        };
        let given = |d: &Option<Tensor>, v: &Tensor| match d {
            Some(d) => Ok(d.clone()),
            None => Tensor::zeros(v.shape().clone(), v.dtype()),
        };
        let (dq, dr) = (given(dq, q)?, given(dr, r)?);
        let m = (r.matmul(dr.t()?)? - dq.t()?.matmul(q)?)?;
        let symmetric = (m.tril(0)? + m.tril(-1)?.t()?)?;
        let inner = (dq + q.matmul(&symmetric)?)?;
        let dx = r.triangular_solve(&inner.t()?, false, false)?.t()?;
        Ok(vec![Some(Gradient::Dense(dx))])
    }
}

impl Listed for Qr {
    fn samples() -> Vec<Sample> {
        let sample = |shape: &[usize]| Sample::new(Qr, [SampleInput::float(shape)]);
        vec![sample(&[2, 4, 3]), sample(&[2, 2, 2])]
    }
}

impl Tensor {
    /// The factors `(q, r)` of `x = q r` for each matrix of the last two axes: the columns of `q` are orthonormal, and
    /// `r` is 0 below its diagonal, which is 0 or more. That makes them unique where the columns of `x` are independent;
    /// LAPACK, and NumPy and TensorFlow with it, leave the signs open.
    ///
    /// | tensor | shape                                   |
    /// |--------|-----------------------------------------|
    /// | `self` | `[.., rows, columns]`, `rows >= columns` |
    /// | `q`    | `[.., rows, columns]`                   |
    /// | `r`    | `[.., columns, columns]`                |
    ///
    /// The gradient exists where the columns are independent, elsewhere it is not finite. Computed in `f64` and rounded
    /// once.
    ///
    /// ```
    /// use couplet::Tensor;
    /// let (q, r) = Tensor::from([[3.0f64, 1.0], [4.0, -2.0]]).qr()?;
    /// let x = q.matmul(&r)?.to_vec::<f64>()?;
    /// assert!(x.iter().zip([3.0, 1.0, 4.0, -2.0]).all(|(x, want)| (x - want).abs() < 1e-14));
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// The rank is below 2, there are fewer rows than columns, or the dtype is not a float.
    pub fn qr(&self) -> Result<(Tensor, Tensor)> {
        let list = <[Tensor; 2]>::try_from(apply_many(Qr, [self])?);
        let [q, r] = list.map_err(|_| Error::usage("qr", "an output is missing", "report this as a bug"))?;
        Ok((q, r))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_factors_of_a_small_matrix() -> Result<()> {
        // Column 1 has length 5; column 2 less its part along it is (1.6, -1.2), of length 2 (see the initialiser).
        let (q, r) = Tensor::from([[3.0f32, 1.0], [4.0, -2.0]]).qr()?;
        let close = |x: &Tensor, want: [f32; 4]| {
            x.to_vec::<f32>().unwrap().iter().zip(want).all(|(x, w)| (x - w).abs() < 1e-6)
        };
        assert!(close(&q, [0.6, 0.8, 0.8, -0.6]) && close(&r, [5.0, -1.0, 0.0, 2.0]));
        Ok(())
    }

    #[test]
    fn every_matrix_of_a_batch_is_taken_apart() -> Result<()> {
        let x: Vec<f64> = (0..60).map(|i| ((i * i * 7 + i) % 23) as f64 - 11.0).collect();
        let x = Tensor::from_vec(x, [3, 5, 4])?.transpose(&[0, 1, 2])?;
        let (q, r) = x.qr()?;
        let back = (q.matmul(&r)? - &x)?.abs()?.max()?.item::<f64>()?;
        let unit = (q.t()?.matmul(&q)? - Tensor::eye(4, 4, DType::F64)?)?.abs()?.max()?.item::<f64>()?;
        assert!(back < 1e-13 && unit < 1e-14, "{back} {unit}");
        Ok(())
    }

    #[test]
    fn nan_spreads_and_huge_numbers_do_not_overflow() -> Result<()> {
        let (q, r) = Tensor::from([[1.0f64, 2.0], [f64::NAN, 3.0]]).qr()?;
        assert!(q.is_nan()?.all()?.item::<bool>()? && r.is_nan()?.any()?.item::<bool>()?);
        let (q, r) = Tensor::from([[3e200f64], [4e200]]).qr()?;
        assert!(
            (r.item::<f64>()? / 5e200 - 1.0).abs() < 1e-15 && (q.to_vec::<f64>()?[1] - 0.8).abs() < 1e-15
        );
        Ok(())
    }

    #[test]
    fn wide_matrices_are_refused_and_empty_ones_fine() -> Result<()> {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32).unwrap();
        assert!(zeros(&[2, 3]).qr().unwrap_err().to_string().contains("rows"));
        assert!(zeros(&[3]).qr().is_err() && Tensor::from([[1]]).qr().is_err());
        let (q, r) = zeros(&[3, 0]).qr()?;
        assert!(q.shape() == &[3, 0] && r.shape() == &[0, 0]);
        assert_eq!(zeros(&[0, 3, 2]).qr()?.1.shape(), &[0, 2, 2]);
        Ok(())
    }
}
