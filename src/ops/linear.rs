//! The affine map as one op.

use serde::{Deserialize, Serialize};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::gemm::{Matrix, Real, gemm};
use crate::tensor::{Shape, Tensor, take};

use super::gradient::Gradient;
use super::matmul::Matmul;
use super::op::{Computed, Input, Inputs, Mask, Op, Saved, Saves};
use super::registry::{Listed, Sample, SampleInput};
use super::{Operand, apply};

/// `y = x w + b`: inputs `x [.., m]`, `w [m, n]` and `b [n]`, added while the product is written.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Affine;

fn affine<T: Real + Element>(x: &Tensor, w: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (rows, m, n) = (x.shape()[0], x.shape()[1], w.shape()[1]);
    let mut y = take::<T>(rows * n);
    if !y.is_empty() {
        let b = b.to_contiguous();
        let view = |x: &Tensor| (x.offset(), (x.shape()[0], x.shape()[1]), (x.strides()[0], x.strides()[1]));
        let at = |x: &Tensor| if m == 0 { (0, (x.shape()[0], x.shape()[1]), (0, 0)) } else { view(x) };
        let (offset, shape, strides) = at(x);
        let left = Matrix::new(x.storage::<T>()?, offset, shape, strides);
        let (offset, shape, strides) = at(w);
        let right = Matrix::new(w.storage::<T>()?, offset, shape, strides);
        gemm(left, right, &mut y, false, b.as_slice::<T>()?);
    }
    Ok(Tensor::from_taken(y, Shape::from([rows, n])))
}

impl Op for Affine {
    fn name(&self) -> &'static str {
        "affine"
    }

    fn saves(&self, tracked: Mask) -> Saves {
        let x = if tracked.has(1) { Mask::only(0) } else { Mask::NONE };
        let w = if tracked.has(0) { Mask::only(1) } else { Mask::NONE };
        Saves::inputs(x.and(w))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, w, b) = (inputs.get(0)?, inputs.get(1)?, inputs.get(2)?);
        let (m, n) = match w.shape().dims() {
            &[m, n] => (m, n),
            _ => return Err(Error::shape("affine", "w", w.shape(), "rank 2")),
        };
        if x.rank() < 2 || x.shape()[x.rank() - 1] != m {
            let expected = format!("rank 2 or more and {m} as its last dim, to fit w of shape {}", w.shape());
            return Err(Error::shape("affine", "x", x.shape(), expected));
        }
        if b.shape() != &[n] {
            return Err(Error::shape(
                "affine",
                "b",
                b.shape(),
                format!("[{n}], to fit w of shape {}", w.shape()),
            ));
        }
        for (name, t) in [("x", x), ("b", b)] {
            if t.dtype() != w.dtype() {
                return Err(Error::dtype("affine", name, t.dtype(), format!("{}, that of w", w.dtype())));
            }
        }
        let mut shape = x.shape().clone();
        let rows: usize = shape[..shape.rank() - 1].iter().product();
        let last = shape.rank() - 1;
        shape.dims_mut()[last] = n;
        crate::tensor::checked_size("affine", &shape, w.dtype())?;
        let flat = x.reshaped([rows, m].into())?;
        let y = match w.dtype() {
            DType::F32 => affine::<f32>(&flat, w, b)?,
            DType::F64 => affine::<f64>(&flat, w, b)?,
            DType::F16 | DType::BF16 => {
                let wide = |t: &Tensor| t.converted(DType::F32);
                affine::<f32>(&wide(&flat)?, &wide(w)?, &wide(b)?)?.converted(w.dtype())?
            }
            // Integers: no kernel of their own is worth it.
            _ => (apply(Matmul::default(), [&flat, w])? + b)?,
        };
        Ok(y.reshaped(shape)?.into())
    }

    fn multiply_adds(&self, inputs: &[Shape], outputs: &[Shape]) -> u64 {
        match (inputs, outputs) {
            ([_, w, _], [y]) if w.rank() == 2 => (y.size() as u64).saturating_mul(w[0] as u64),
            _ => 0,
        }
    }

    /// `dx = dy w^T`, `dw = x^T dy`, `db` is the sum of `dy` over all but the last axis.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None, None, None]) };
        let last = dy.shape()[dy.rank() - 1];
        let rows = dy.shape()[..dy.rank() - 1].iter().product();
        let flat = dy.reshape([rows, last])?;
        let mut gradients = vec![None, None, None];
        if needs.has(0) {
            let w = saved.input(1)?;
            let dx = apply(Matmul { transpose_a: false, transpose_b: true }, [dy, w])?;
            gradients[0] = Some(Gradient::Dense(dx));
        }
        if needs.has(1) {
            let x = saved.input(0)?;
            let x = x.reshape([rows, x.shape()[x.rank() - 1]])?;
            let dw = apply(Matmul { transpose_a: true, transpose_b: false }, [&x, &flat])?;
            gradients[1] = Some(Gradient::Dense(dw));
        }
        if needs.has(2) {
            gradients[2] = Some(Gradient::Dense(flat.sum_axes(0, false)?));
        }
        Ok(gradients)
    }
}

impl Listed for Affine {
    fn samples() -> Vec<Sample> {
        let inputs =
            |x: &[usize]| [SampleInput::float(x), SampleInput::float(&[3, 2]), SampleInput::float(&[2])];
        vec![Sample::new(Affine, inputs(&[4, 3])), Sample::new(Affine, inputs(&[2, 2, 3]))]
    }
}

impl Tensor {
    /// Affine map over the last axis, `y = x w + b` with `w [m, n]` and `b [n]`, in one pass.
    ///
    /// # Errors
    /// The shapes do not fit, or the dtypes differ.
    pub fn affine<'a>(&self, w: impl Operand<'a>, b: impl Operand<'a>) -> Result<Tensor> {
        apply(Affine, [Input::Ref(self), w.into_input(self)?, b.into_input(self)?])
    }
}
