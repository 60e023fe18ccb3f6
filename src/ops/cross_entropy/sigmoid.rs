//! Sigmoid cross-entropy, element by element.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernels::elementwise;
use crate::kernels::math::Math;
use crate::ops::op::{Binary, Mask, Saved, Saves};
use crate::ops::real::{check_dtype, check_shape, for_real, real_dtype};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::tensor::{Tensor, take};

const NAME: &str = "sigmoid_cross_entropy";

/// `y = -z ln(sigmoid(x)) - (1 - z) ln(1 - sigmoid(x))` for logits `x` and labels `z`.
///
/// Evaluated as `max(x, 0) - x z + ln(1 + exp(-|x|))`: with `ln(sigmoid(x)) = -ln(1 + exp(-x))` the definition is
/// `x - x z + ln(1 + exp(-x))`, and for negative `x` the last term is `-x + ln(1 + exp(x))`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SigmoidCrossEntropy;

impl Binary for SigmoidCrossEntropy {
    const NAME: &'static str = NAME;

    fn saves(&self, tracked: Mask) -> Saves {
        if tracked.has(0) { Saves::INPUTS } else { Saves::inputs(Mask::only(0)) }
    }

    fn forward(&self, logits: Tensor, labels: Tensor) -> Result<Tensor> {
        let real = real_dtype(NAME, "logits", &logits)?;
        check_dtype(NAME, "labels", &labels, ("logits", &logits))?;
        check_shape(NAME, "labels", &labels, ("logits", &logits))?;
        let (x, z) = (logits.converted(real)?, labels.converted(real)?);
        let y = for_real!(real, T => {
            let mut y = take::<T>(x.size());
            elementwise::zip(x.view::<T>()?, z.view::<T>()?, &mut y, |x: T, z: T| {
                x.max(0.0) - x * z + (-x.abs()).exp_().log1p_()
            });
            Tensor::from_taken(y, x.shape().clone())
        });
        y.converted(logits.dtype())
    }

    /// `dx = dy (sigmoid(x) - z)`, `dz = -dy x`.
    fn gradient(&self, saved: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        let x = saved.input(0)?;
        let dx = if needs.has(0) { Some((dy * (x.sigmoid()? - saved.input(1)?))?) } else { None };
        let dz = if needs.has(1) { Some((-(dy * x)?)?) } else { None };
        Ok([dx, dz])
    }
}

impl Listed for SigmoidCrossEntropy {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(SigmoidCrossEntropy, [SampleInput::float(&[2, 3]), SampleInput::float(&[2, 3])])]
    }
}
