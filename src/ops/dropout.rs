//! Dropout with a mask that was drawn before.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::elementwise;
use crate::kernels::math::Math;
use crate::tensor::{Tensor, take};

use super::apply;
use super::function::{Float, for_float};
use super::gradient::Gradient;
use super::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use super::registry::{Listed, Sample, SampleInput};

const NAME: &str = "dropout";

/// `y = scale x` where the mask is true and exactly 0 elsewhere; inputs `x` and a bool mask that broadcasts to it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Dropout {
    pub(crate) scale: f64,
}

impl Op for Dropout {
    fn name(&self) -> &'static str {
        NAME
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::inputs(Mask::only(1))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, mask) = (inputs.get(0)?, inputs.get(1)?);
        if mask.dtype() != DType::Bool {
            return Err(Error::dtype(NAME, "the mask", mask.dtype(), "bool"));
        }
        let mask = mask.expanded(x.shape())?;
        let y = for_float!(NAME, x.dtype(), T => {
            let scale = <<T as Float>::Wide as Math>::from_f64(self.scale);
            let mut y = take::<T>(x.size());
            elementwise::zip(x.view::<T>()?, mask.view::<bool>()?, &mut y, move |x: T, keep: bool| {
                if keep { T::narrow(x.widen() * scale) } else { T::default() }
            });
            Ok(Tensor::from_taken(y, x.shape().clone()))
        })?;
        Ok(y.into())
    }

    /// `dx = scale dy` where the mask is true, 0 elsewhere.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None, None]) };
        Ok(vec![Some(Gradient::Dense(apply(*self, [dy, saved.input(1)?])?)), None])
    }
}

impl Listed for Dropout {
    fn samples() -> Vec<Sample> {
        let sample = |mask: &[usize]| {
            let mask = SampleInput::Bool { shape: mask.to_vec() };
            Sample::new(Dropout { scale: 1.25 }, [SampleInput::float(&[3, 4]), mask])
        };
        vec![sample(&[3, 4]), sample(&[3, 1]), sample(&[4])]
    }
}
