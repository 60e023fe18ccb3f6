//! The sums in front of the gates of a recurrent layer.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernels::gemm::gemm;
use crate::ops::apply;
use crate::ops::gradient::Gradient;
use crate::ops::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use crate::ops::real::{check_dtype, for_real, real_dtype};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::tensor::{Shape, Tensor, checked_size, take};

use super::{elements, expect_shape, matrix, ready, times_transposed, transposed_times};

const NAME: &str = "recurrent_sums";

/// `y = x w_i + h w_h + b`: inputs `x [batch, m]`, `h [batch, k]`, `w_i [m, n]`, `w_h [k, n]` and `b [n]`; the second product
/// is added to the first while it is computed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct RecurrentSums;

impl Op for RecurrentSums {
    fn name(&self) -> &'static str {
        NAME
    }

    fn saves(&self, tracked: Mask) -> Saves {
        let pairs = [(0, 2), (2, 0), (1, 3), (3, 1)];
        let kept = pairs.iter().filter(|(input, _)| tracked.has(*input));
        Saves::inputs(kept.fold(Mask::NONE, |kept, (_, other)| kept.and(Mask::only(*other))))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, h, b) = (inputs.get(0)?, inputs.get(1)?, inputs.get(4)?);
        let (w_i, w_h) = (inputs.get(2)?, inputs.get(3)?);
        let real = real_dtype(NAME, "x", x)?;
        for (what, other) in [("h", h), ("w_i", w_i), ("w_h", w_h), ("b", b)] {
            check_dtype(NAME, what, other, ("x", x))?;
        }
        let &[m, n] = w_i.shape().dims() else {
            return Err(Error::shape(NAME, "w_i", w_i.shape(), "rank 2"));
        };
        let &[k, _] = w_h.shape().dims() else {
            return Err(Error::shape(NAME, "w_h", w_h.shape(), "rank 2"));
        };
        let batch = x.shape().first().copied().unwrap_or(1);
        expect_shape(NAME, "x", x, &[batch, m])?;
        expect_shape(NAME, "h", h, &[batch, k])?;
        expect_shape(NAME, "w_h", w_h, &[k, n])?;
        expect_shape(NAME, "b", b, &[n])?;
        let shape = Shape::from([batch, n]);
        let size = checked_size(NAME, &shape, x.dtype())?;
        let wide = |x: &Tensor| x.converted(real);
        let (x_wide, h, w_i, w_h, b) = (wide(x)?, wide(h)?, wide(w_i)?, wide(w_h)?, ready(b, real)?);
        let y = for_real!(real, T => {
            let mut y = take::<T>(size);
            gemm(matrix(&x_wide)?, matrix(&w_i)?, &mut y, false, Some(elements(&b)?));
            gemm(matrix(&h)?, matrix(&w_h)?, &mut y, true, None);
            Tensor::from_taken(y, shape)
        });
        Ok(y.converted(x.dtype())?.into())
    }

    fn multiply_adds(&self, inputs: &[Shape], outputs: &[Shape]) -> u64 {
        match (inputs, outputs) {
            ([x, h, ..], [y]) => (y.size() as u64).saturating_mul((x[1] + h[1]) as u64),
            _ => 0,
        }
    }

    /// `dx = dy w_i^T`, `dw_i = x^T dy`, the same for `h` and `w_h`; `db` is the sum of `dy` over the batch.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let mut gradients = vec![None; 5];
        let Some(Some(dy)) = dy.first() else { return Ok(gradients) };
        for (input, other) in [(0, 2), (1, 3)] {
            if needs.has(input) {
                gradients[input] = Some(Gradient::Dense(times_transposed(dy, saved.input(other)?)?));
            }
            if needs.has(other) {
                gradients[other] = Some(Gradient::Dense(transposed_times(saved.input(input)?, dy)?));
            }
        }
        if needs.has(4) {
            gradients[4] = Some(Gradient::Dense(dy.sum_axes(0, false)?));
        }
        Ok(gradients)
    }
}

impl Listed for RecurrentSums {
    fn samples() -> Vec<Sample> {
        let shapes: [&[usize]; 5] = [&[2, 3], &[2, 2], &[3, 4], &[2, 4], &[4]];
        vec![Sample::new(RecurrentSums, shapes.map(SampleInput::float))]
    }
}

/// `x w_i + h w_h + b`.
///
/// # Errors
/// The shapes do not fit, or the dtypes differ or are not floats.
pub(crate) fn recurrent_sums(
    x: &Tensor,
    h: &Tensor,
    w_i: &Tensor,
    w_h: &Tensor,
    b: &Tensor,
) -> Result<Tensor> {
    apply(RecurrentSums, [x, h, w_i, w_h, b])
}
