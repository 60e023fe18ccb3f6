//! Functions of one float, element by element, with their slopes as ops of their own.

use half::{bf16, f16};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::math::Math;
use crate::tensor::Tensor;

use super::apply;
use super::arithmetic::{map, same_dtype, zip};
use super::op::{Binary, Mask, NarrowBinary, Saved, Saves, Unary};
use super::registry::{Listed, Sample, SampleInput};

/// A float type and the one it is computed in: `f16` and `bf16` go through `f32` and are rounded once.
pub(crate) trait Float: Element {
    /// The type to compute in.
    type Wide: Math + Element;
    fn widen(self) -> Self::Wide;
    fn narrow(v: Self::Wide) -> Self;
}

macro_rules! float {
    ($($t:ty, $wide:ty, $widen:expr, $narrow:expr;)*) => {$(
        impl Float for $t {
            type Wide = $wide;
            #[inline(always)]
            fn widen(self) -> $wide { ($widen)(self) }
            #[inline(always)]
            fn narrow(v: $wide) -> Self { ($narrow)(v) }
        }
    )*};
}

float! {
    f32, f32, |v| v, |v| v;
    f64, f64, |v| v, |v| v;
    f16, f32, f16::to_f32, f16::from_f32;
    bf16, f32, bf16::to_f32, bf16::from_f32;
}

/// Runs the body with `$T` bound to the Rust type of a float dtype; any other is an error.
macro_rules! for_float {
    ($op:expr, $dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::dtype::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::dtype::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::dtype::DType::F16 => {
                type $T = half::f16;
                $body
            }
            $crate::dtype::DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            other => Err($crate::error::Error::dtype(
                $op,
                "the input",
                other,
                "a float dtype; convert it with cast",
            )),
        }
    };
}
pub(crate) use for_float;

/// Computes in `f32` or `f64`; the half floats go through `f32` and are rounded once.
pub(super) fn in_wide_float(
    op: &'static str,
    x: Tensor,
    single: impl FnOnce(Tensor) -> Result<Tensor>,
    double: impl FnOnce(Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    match x.dtype() {
        DType::F32 => single(x),
        DType::F64 => double(x),
        dtype @ (DType::F16 | DType::BF16) => single(x.converted(DType::F32)?)?.converted(dtype),
        other => Err(Error::dtype(op, "the input", other, "a float dtype; convert it with cast")),
    }
}

/// What the slope of a function is computed from, and so what the tape keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// The input `x`.
    Input,
    /// The output `y`.
    Output,
}

/// A function `y = f(x)` of one float, applied to each element.
///
/// Its gradient is [`Slope`], one pass over `dy` and what was kept.
pub(crate) trait Function:
    Copy + Default + std::fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The op's name.
    const NAME: &'static str;
    /// The name of the gradient's op.
    const SLOPE_NAME: &'static str;
    /// What [`slope`](Function::slope) takes.
    const SLOPE_OF: Of;
    /// Where samples of `x` lie: away from poles.
    const RANGE: (f64, f64) = (-2.0, 2.0);

    /// Attributes that reach every branch.
    fn samples() -> Vec<Self> {
        vec![Self::default()]
    }

    /// `f(x)`; `#[inline(always)]`, so that the loop around it vectorises.
    fn value<R: Math>(&self, x: R) -> R;

    /// `f'(x)` from `x` or `y`, as [`SLOPE_OF`](Function::SLOPE_OF) says; `#[inline(always)]`.
    fn slope<R: Math>(&self, v: R) -> R;

    /// The derivative of [`slope`](Function::slope) with respect to its argument; `None` where it is 0 everywhere.
    ///
    /// # Errors
    /// A computation in it failed.
    fn curvature(&self, v: &Tensor) -> Result<Option<Tensor>>;
}

impl<F: Function> Unary for F {
    const NAME: &'static str = F::NAME;
    const SAVES: Saves = match F::SLOPE_OF {
        Of::Input => Saves::INPUTS,
        Of::Output => Saves::OUTPUT,
    };

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        let f = *self;
        in_wide_float(
            F::NAME,
            x,
            |x| {
                map::<f32>(
                    x,
                    #[inline(always)]
                    move |x| f.value(x),
                )
            },
            |x| {
                map::<f64>(
                    x,
                    #[inline(always)]
                    move |x| f.value(x),
                )
            },
        )
    }

    /// `dx = dy f'(x)`.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        let v = match F::SLOPE_OF {
            Of::Input => saved.input(0)?,
            Of::Output => saved.output()?,
        };
        apply::<NarrowBinary, _, _, 2>(Slope(*self), [v, dy])
    }
}

impl<F: Function> Listed for F {
    fn samples() -> Vec<Sample> {
        let input = || SampleInput::within(&[2, 3], F::RANGE.0, F::RANGE.1);
        F::samples().into_iter().map(|f| Sample::new::<super::op::NarrowUnary, F>(f, [input()])).collect()
    }
}

/// `y = dy f'`, where `f'` is the slope of a function at `v`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(transparent, bound(serialize = "F: Serialize", deserialize = "F: DeserializeOwned"))]
pub(crate) struct Slope<F>(F);

impl<F: Function> Binary for Slope<F> {
    const NAME: &'static str = F::SLOPE_NAME;

    fn saves(&self, tracked: Mask) -> Saves {
        if tracked.has(0) { Saves::INPUTS } else { Saves::inputs(Mask::only(0)) }
    }

    fn forward(&self, v: Tensor, dy: Tensor) -> Result<Tensor> {
        let f = self.0;
        match same_dtype(F::SLOPE_NAME, &v, &dy)? {
            // Without the attribute a long slope is left out of line, with the narrow vectors of the build.
            DType::F32 => zip::<f32>(
                F::SLOPE_NAME,
                v,
                dy,
                #[inline(always)]
                move |v, dy| dy * f.slope(v),
            ),
            DType::F64 => zip::<f64>(
                F::SLOPE_NAME,
                v,
                dy,
                #[inline(always)]
                move |v, dy| dy * f.slope(v),
            ),
            dtype @ (DType::F16 | DType::BF16) => {
                let (v, dy) = (v.converted(DType::F32)?, dy.converted(DType::F32)?);
                self.forward(v, dy)?.converted(dtype)
            }
            other => {
                Err(Error::dtype(F::SLOPE_NAME, "the input", other, "a float dtype; convert it with cast"))
            }
        }
    }

    /// With `z` the gradient of `y`: `dv = z dy f''`, and `z f'` for `dy`.
    fn gradient(&self, saved: &Saved, z: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        let v = saved.input(0)?;
        let curvature = if needs.has(0) { self.0.curvature(v)? } else { None };
        let dv = curvature.map(|c| (z * saved.input(1)?)? * c).transpose()?;
        let along = if needs.has(1) { Some(apply::<NarrowBinary, _, _, 2>(*self, [v, z])?) } else { None };
        Ok([dv, along])
    }
}

impl<F: Function> Listed for Slope<F> {
    fn samples() -> Vec<Sample> {
        let (low, high) = F::RANGE;
        let sample = |f: F, shape: &[usize]| {
            // A function whose slope comes from its output is monotonic here.
            let (a, b) = if F::SLOPE_OF == Of::Input { (low, high) } else { (f.value(low), f.value(high)) };
            let inputs = [SampleInput::within(shape, a.min(b), a.max(b)), SampleInput::float(&[2, 3])];
            Sample::new::<NarrowBinary, _>(Slope(f), inputs)
        };
        F::samples().into_iter().flat_map(|f| [sample(f, &[2, 3]), sample(f, &[3])]).collect()
    }
}
