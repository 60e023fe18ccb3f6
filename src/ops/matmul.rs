//! Matrix products, batched and broadcast.

use serde::{Deserialize, Serialize};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::gemm::{Matrix, Real, gemm, gemm_batched};
use crate::kernels::plain_gemm::plain_gemm;
use crate::tensor::{Shape, Tensor, take};

use super::apply;
use super::arithmetic::{Number, for_number, same_dtype};
use super::broadcast::broadcast_shape;
use super::op::{Binary, Input, Mask, Saved, Saves};
use super::operand::Operand;
use super::registry::{Listed, Sample, SampleInput};

/// `y = op(a) op(b)` over the last two axes, where `op` transposes them if asked to; leading axes broadcast.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Matmul {
    pub(crate) transpose_a: bool,
    pub(crate) transpose_b: bool,
}

/// A rank-2 view of a tensor's last two axes at a batch position.
fn matrix<'a, T: Element>(x: &'a Tensor, data: &'a [T], lead: isize, transpose: bool) -> Matrix<'a, T> {
    let rank = x.rank();
    let (rows, cols) = (x.shape()[rank - 2], x.shape()[rank - 1]);
    let strides = (x.strides()[rank - 2], x.strides()[rank - 1]);
    let offset = if rows * cols == 0 { 0 } else { (x.offset() as isize + lead) as usize };
    let m = Matrix::new(data, offset, (rows, cols), strides);
    if transpose { m.transposed() } else { m }
}

/// Position in memory of batch entry `i` of a tensor expanded to the leading dims `batch`.
pub(super) fn lead(x: &Tensor, batch: &[usize], mut i: usize) -> isize {
    let mut at = 0;
    for (axis, &dim) in batch.iter().enumerate().rev() {
        at += (i % dim) as isize * x.strides()[axis];
        i /= dim;
    }
    at
}

fn multiply<T: Real + Element>(op: Matmul, a: &Tensor, b: &Tensor, shape: Shape) -> Result<Tensor> {
    let mut y = take::<T>(shape.size());
    let batch = &shape[..shape.rank() - 2];
    let (left, right) = (a.storage::<T>()?, b.storage::<T>()?);
    match batch.iter().product::<usize>() {
        0 => {}
        1 => {
            gemm(matrix(a, left, 0, op.transpose_a), matrix(b, right, 0, op.transpose_b), &mut y, false, None)
        }
        count => gemm_batched(
            count,
            |i| matrix(a, left, lead(a, batch, i), op.transpose_a),
            |i| matrix(b, right, lead(b, batch, i), op.transpose_b),
            &mut y,
            false,
        ),
    }
    Ok(Tensor::from_taken(y, shape))
}

fn multiply_whole<T: Number>(op: Matmul, a: &Tensor, b: &Tensor, shape: Shape) -> Result<Tensor> {
    let a = if op.transpose_a { swapped(a) } else { a.clone() };
    let b = if op.transpose_b { swapped(b) } else { b.clone() };
    let (m, k, n) = (shape[shape.rank() - 2], a.shape()[a.rank() - 1], shape[shape.rank() - 1]);
    let mut y = take::<T>(shape.size());
    y.fill(T::default());
    if m * k * n > 0 {
        let (a, b) = (a.to_vec::<T>()?, b.to_vec::<T>()?);
        let parts = a.chunks_exact(m * k).zip(b.chunks_exact(k * n)).zip(y.chunks_exact_mut(m * n));
        for ((a, b), y) in parts {
            plain_gemm((m, k, n), a, b, y, |a, b, c| c.plus(a.times(b)));
        }
    }
    Ok(Tensor::from_taken(y, shape))
}

/// The last two axes exchanged; not recorded.
fn swapped(x: &Tensor) -> Tensor {
    let (mut shape, mut strides) = (x.shape().clone(), x.strides().clone());
    let rank = x.rank();
    shape.dims_mut().swap(rank - 1, rank - 2);
    strides.steps_mut().swap(rank - 1, rank - 2);
    x.view_as(x.offset(), shape, strides)
}

impl Matmul {
    /// The output shape and the inputs expanded to its leading dims.
    fn prepare(self, a: &Tensor, b: &Tensor) -> Result<(Shape, Tensor, Tensor)> {
        for (name, x) in [("a", a), ("b", b)] {
            if x.rank() < 2 {
                return Err(Error::shape("matmul", name, x.shape(), "rank 2 or more"));
            }
        }
        let pair = |x: &Tensor, t: bool| {
            let (rows, cols) = (x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]);
            if t { (cols, rows) } else { (rows, cols) }
        };
        let ((m, k), (k_b, n)) = (pair(a, self.transpose_a), pair(b, self.transpose_b));
        if k != k_b {
            let axis = if self.transpose_b { "last" } else { "second to last" };
            let expected = format!("{k} as its {axis} dim, to fit a of shape {}", a.shape());
            return Err(Error::shape("matmul", "b", b.shape(), expected));
        }
        let (lead_a, lead_b) =
            (Shape::from(&a.shape()[..a.rank() - 2]), Shape::from(&b.shape()[..b.rank() - 2]));
        let batch = broadcast_shape("matmul", &lead_a, &lead_b)?;
        let with =
            |rows: usize, cols: usize| -> Shape { batch.iter().copied().chain([rows, cols]).collect() };
        let a = a.expanded(&with(a.shape()[a.rank() - 2], a.shape()[a.rank() - 1]))?;
        let b = b.expanded(&with(b.shape()[b.rank() - 2], b.shape()[b.rank() - 1]))?;
        let shape = with(m, n);
        crate::tensor::checked_size("matmul", &shape, a.dtype())?;
        Ok((shape, a, b))
    }
}

impl Binary for Matmul {
    const NAME: &'static str = "matmul";

    fn saves(&self, tracked: Mask) -> Saves {
        let a = if tracked.has(1) { Mask::only(0) } else { Mask::NONE };
        let b = if tracked.has(0) { Mask::only(1) } else { Mask::NONE };
        Saves::inputs(a.and(b))
    }

    fn multiply_adds(&self, a: &Shape, _: &Shape, y: &Shape) -> u64 {
        let inner = a.iter().rev().nth(usize::from(self.transpose_a)).map_or(0, |&dim| dim);
        (y.size() as u64).saturating_mul(inner as u64)
    }

    fn forward(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        let dtype = same_dtype("matmul", &a, &b)?;
        // A plain matrix on the right of a batch: one large product instead of many small ones.
        if b.rank() == 2 && a.rank() > 2 && !self.transpose_a {
            let width = a.shape()[a.rank() - 1];
            let rows = a.shape()[..a.rank() - 1].iter().product();
            let mut shape = a.shape().clone();
            let y = self.forward(a.reshaped([rows, width].into())?, b)?;
            let last = shape.rank() - 1;
            shape.dims_mut()[last] = y.shape()[1];
            return y.reshaped(shape);
        }
        let (shape, a, b) = self.prepare(&a, &b)?;
        match dtype {
            DType::F32 => multiply::<f32>(*self, &a, &b, shape),
            DType::F64 => multiply::<f64>(*self, &a, &b, shape),
            DType::F16 | DType::BF16 => {
                let (a, b) = (a.converted(DType::F32)?, b.converted(DType::F32)?);
                multiply::<f32>(*self, &a, &b, shape)?.converted(dtype)
            }
            _ => for_number!("matmul", dtype, T => multiply_whole::<T>(*self, &a, &b, shape)),
        }
    }

    /// `da = dy b^T`, `db = a^T dy`, each transposed if its input was.
    fn gradient(&self, saved: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        let product = |a: &Tensor, transpose_a, b: &Tensor, transpose_b| {
            apply(Matmul { transpose_a, transpose_b }, [a, b])
        };
        let da = match needs.has(0).then(|| saved.input(1)).transpose()? {
            None => None,
            Some(b) if self.transpose_a => Some(product(b, self.transpose_b, dy, true)?),
            Some(b) => Some(product(dy, false, b, !self.transpose_b)?),
        };
        let db = match needs.has(1).then(|| saved.input(0)).transpose()? {
            None => None,
            Some(a) if self.transpose_b => Some(product(dy, true, a, self.transpose_a)?),
            Some(a) => Some(product(a, !self.transpose_a, dy, false)?),
        };
        Ok([da, db])
    }
}

impl Listed for Matmul {
    fn samples() -> Vec<Sample> {
        let sample = |ta, tb, a: &[usize], b: &[usize]| {
            let op = Matmul { transpose_a: ta, transpose_b: tb };
            Sample::new(op, [SampleInput::float(a), SampleInput::float(b)])
        };
        vec![
            sample(false, false, &[2, 3], &[3, 4]),
            sample(true, false, &[3, 2], &[3, 4]),
            sample(false, true, &[2, 3], &[4, 3]),
            sample(true, true, &[3, 2], &[4, 3]),
            sample(false, false, &[2, 1, 2, 3], &[3, 3, 2]),
            sample(false, false, &[2, 2, 3], &[3, 2]),
        ]
    }
}

impl Tensor {
    /// Matrix product over the last two axes, `y[.., i, j] = sum_p x[.., i, p] w[.., p, j]`; leading axes broadcast.
    ///
    /// Transposed and sliced matrices are multiplied as they lie, without a copy. `f16` and `bf16` are summed in
    /// `f32`; integers wrap around.
    ///
    /// # Errors
    /// A rank below 2, inner dims or leading dims that do not fit, or two dtypes.
    pub fn matmul<'a>(&self, w: impl Operand<'a>) -> Result<Tensor> {
        apply(Matmul::default(), [Input::Ref(self), w.into_input(self)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    #[test]
    fn products_of_every_layout_agree_with_a_plain_loop() {
        let a = Tensor::arange(0.0, 24.0, 1.0, DType::F64).unwrap().reshape([2, 3, 4]).unwrap();
        let b = Tensor::arange(0.0, 20.0, 1.0, DType::F64).unwrap().reshape([5, 4]).unwrap().t().unwrap();
        let y = a.matmul(&b).unwrap();
        assert_eq!(y.shape(), &[2, 3, 5]);
        let list = y.to_vec::<f64>().unwrap();
        for (at, got) in list.iter().enumerate() {
            let (row, col) = (at / 5, at % 5);
            let want: f64 = (0..4).map(|p| (row * 4 + p) as f64 * (col * 4 + p) as f64).sum();
            assert_eq!(*got, want);
        }
        let whole = a.cast(DType::I32).unwrap().matmul(b.cast(DType::I32).unwrap()).unwrap();
        assert_eq!(whole.cast(DType::F64).unwrap().to_vec::<f64>().unwrap(), list);
        let half = a.cast(DType::F16).unwrap().matmul(b.cast(DType::F16).unwrap()).unwrap();
        assert_eq!(half.cast(DType::F64).unwrap().to_vec::<f64>().unwrap(), list);
    }

    #[test]
    fn an_empty_inner_axis_gives_zeros_and_an_empty_batch_nothing() {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32).unwrap();
        assert_eq!(zeros(&[2, 0]).matmul(zeros(&[0, 3])).unwrap().to_vec::<f32>().unwrap(), [0.0; 6]);
        assert_eq!(zeros(&[0, 2, 3]).matmul(zeros(&[3, 4])).unwrap().shape(), &[0, 2, 4]);
        assert_eq!(zeros(&[4, 0, 2, 3]).matmul(zeros(&[1, 1, 3, 4])).unwrap().shape(), &[4, 0, 2, 4]);
    }

    #[test]
    fn misfits_name_both_shapes() {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32).unwrap();
        let message = zeros(&[2, 3]).matmul(zeros(&[4, 5])).unwrap_err().to_string();
        assert!(message.contains("[2, 3]") && message.contains("[4, 5]"), "{message}");
        assert!(zeros(&[3]).matmul(zeros(&[3, 5])).is_err());
        assert!(zeros(&[2, 2, 3]).matmul(zeros(&[3, 3, 5])).is_err());
    }
}
