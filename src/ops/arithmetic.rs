//! Addition, subtraction, multiplication, division and negation, with broadcasting.

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::elementwise::{self, AnyLoop};
use crate::tensor::{Tensor, checked_size};

use super::broadcast::broadcast_shape;
use super::op::{Binary, Mask, Saved, Saves, Unary};
use super::registry::{Listed, Sample, SampleInput};

/// Arithmetic on one element: floats as IEEE 754 says; integers wrap around, and a division by zero gives 0.
pub(crate) trait Number: Element {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    fn negated(self) -> Self;
}

macro_rules! float_number {
    ($($t:ty)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn over(self, other: Self) -> Self { self / other }
            #[inline(always)]
            fn negated(self) -> Self { -self }
        }
    )*};
}

float_number!(f32 f64 f16 bf16);

macro_rules! integer_number {
    ($($t:ty)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn over(self, other: Self) -> Self { if other == 0 { 0 } else { self.wrapping_div(other) } }
            #[inline(always)]
            fn negated(self) -> Self { self.wrapping_neg() }
        }
    )*};
}

integer_number!(i8 i16 i32 i64 u8 u16 u32 u64);

/// Runs the body with `$T` bound to the Rust type of a numeric dtype; bool is an error.
///
/// With a list of tensors, only `f32`, `f64`, `i32`, `i64` and `u64` have code of their own: the tensors of other types are
/// widened first, and the resulting tensor is narrowed again (floats are rounded once, integers wrap around).
macro_rules! for_number {
    ($op:expr, $dtype:expr, [$($x:ident),*], $T:ident => $body:expr) => {
        match $dtype {
            $crate::dtype::DType::F32 => { type $T = f32; $body }
            $crate::dtype::DType::F64 => { type $T = f64; $body }
            $crate::dtype::DType::I32 => { type $T = i32; $body }
            $crate::dtype::DType::I64 => { type $T = i64; $body }
            $crate::dtype::DType::U64 => { type $T = u64; $body }
            $crate::dtype::DType::Bool => {
                Err($crate::error::Error::dtype($op, "the input", $crate::dtype::DType::Bool, "a number dtype"))
            }
            dtype if dtype.is_float() => {
                $(let $x = $x.converted($crate::dtype::DType::F32)?;)*
                let y: $crate::error::Result<Tensor> = { type $T = f32; $body };
                y?.converted(dtype)
            }
            dtype => {
                $(let $x = $x.converted($crate::dtype::DType::I64)?;)*
                let y: $crate::error::Result<Tensor> = { type $T = i64; $body };
                y?.wrapped(dtype)
            }
        }
    };
    ($op:expr, $dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::dtype::DType::F32 => { type $T = f32; $body }
            $crate::dtype::DType::F64 => { type $T = f64; $body }
            $crate::dtype::DType::F16 => { type $T = half::f16; $body }
            $crate::dtype::DType::BF16 => { type $T = half::bf16; $body }
            $crate::dtype::DType::I8 => { type $T = i8; $body }
            $crate::dtype::DType::I16 => { type $T = i16; $body }
            $crate::dtype::DType::I32 => { type $T = i32; $body }
            $crate::dtype::DType::I64 => { type $T = i64; $body }
            $crate::dtype::DType::U8 => { type $T = u8; $body }
            $crate::dtype::DType::U16 => { type $T = u16; $body }
            $crate::dtype::DType::U32 => { type $T = u32; $body }
            $crate::dtype::DType::U64 => { type $T = u64; $body }
            $crate::dtype::DType::Bool => {
                Err($crate::error::Error::dtype($op, "the input", $crate::dtype::DType::Bool, "a number dtype"))
            }
        }
    };
}
pub(crate) use for_number;

/// Runs the body with `$T` bound to the Rust type of a dtype that [`Tensor::ordered`] gives.
macro_rules! for_ordered {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::dtype::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::dtype::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::dtype::DType::U64 => {
                type $T = u64;
                $body
            }
            _ => {
                type $T = i64;
                $body
            }
        }
    };
}
pub(crate) use for_ordered;

impl Tensor {
    /// The elements in one of four dtypes that hold them exactly and in order: `f32`, `f64`, `u64` or `i64`.
    pub(crate) fn ordered(&self) -> Result<Tensor> {
        match self.dtype() {
            DType::F32 | DType::F64 | DType::U64 => Ok(self.clone()),
            dtype if dtype.is_float() => self.converted(DType::F32),
            _ => self.converted(DType::I64),
        }
    }
}

/// Refuses two different dtypes.
pub(crate) fn same_dtype(op: &'static str, a: &Tensor, b: &Tensor) -> Result<DType> {
    if a.dtype() != b.dtype() {
        let expected = format!("{}, that of the other input; convert it with cast", a.dtype());
        return Err(Error::dtype(op, "the second input", b.dtype(), expected));
    }
    Ok(a.dtype())
}

/// `f` of each pair of elements, broadcast, written into an input's memory where nobody else holds it.
pub(crate) fn zip<T: Element>(
    op: &'static str,
    a: Tensor,
    b: Tensor,
    f: impl Fn(T, T) -> T + Sync + Copy,
) -> Result<Tensor> {
    zip_any(op, T::DTYPE, a, b, elementwise::pair(f).any())
}

/// The loop `body`, whose result has the dtype `dtype`, over two tensors broadcast against each other.
pub(crate) fn zip_any(
    op: &'static str,
    dtype: DType,
    mut a: Tensor,
    mut b: Tensor,
    body: AnyLoop<'_, 2>,
) -> Result<Tensor> {
    if a.shape() == b.shape() {
        if a.dtype() == dtype
            && let Some(y) = a.output()
        {
            elementwise::overwrite_pair(body, 0, b.elements(), y);
            return Ok(a);
        }
        if b.dtype() == dtype
            && let Some(y) = b.output()
        {
            elementwise::overwrite_pair(body, 1, a.elements(), y);
            return Ok(b);
        }
        let mut y = Tensor::blank(a.shape().clone(), dtype);
        if let Some(y) = y.output() {
            elementwise::write(body, [a.elements(), b.elements()], y);
        }
        return Ok(y);
    }
    let shape = broadcast_shape(op, a.shape(), b.shape())?;
    if a.dtype() == dtype && *a.shape() == shape && a.is_unique() {
        let other = b.expanded(&shape)?;
        if let Some(y) = a.output() {
            elementwise::overwrite_pair(body, 0, other.elements(), y);
            return Ok(a);
        }
    }
    if b.dtype() == dtype && *b.shape() == shape && b.is_unique() {
        let other = a.expanded(&shape)?;
        if let Some(y) = b.output() {
            elementwise::overwrite_pair(body, 1, other.elements(), y);
            return Ok(b);
        }
    }
    checked_size(op, &shape, dtype)?;
    let mut y = Tensor::blank(shape, dtype);
    let (a, b) = (a.expanded(y.shape())?, b.expanded(y.shape())?);
    if let Some(y) = y.output() {
        elementwise::write(body, [a.elements(), b.elements()], y);
    }
    Ok(y)
}

fn binary_samples<O: Binary>(op: impl Fn() -> O, low: f64) -> Vec<Sample> {
    let shapes: [(&[usize], &[usize]); 4] =
        [(&[2, 3], &[2, 3]), (&[3], &[2, 3]), (&[2, 1, 3], &[4, 1]), (&[], &[2])];
    let sample = |(a, b)| {
        let inputs = [SampleInput::float(a), SampleInput::within(b, low, 2.0)];
        Sample::new::<super::op::NarrowBinary, O>(op(), inputs)
    };
    shapes.into_iter().map(sample).collect()
}

/// `y = a + b`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Add;

impl Binary for Add {
    const NAME: &'static str = "add";

    fn saves(&self, _: Mask) -> Saves {
        Saves::NOTHING
    }

    fn forward(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        for_number!("add", same_dtype("add", &a, &b)?, [a, b], T => zip::<T>("add", a, b, T::plus))
    }

    /// `da = dy`, `db = dy`.
    fn gradient(&self, _: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        Ok([needs.has(0).then(|| dy.clone()), needs.has(1).then(|| dy.clone())])
    }
}

impl Listed for Add {
    fn samples() -> Vec<Sample> {
        binary_samples(|| Add, -2.0)
    }
}

/// `y = a - b`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Subtract;

impl Binary for Subtract {
    const NAME: &'static str = "subtract";

    fn saves(&self, _: Mask) -> Saves {
        Saves::NOTHING
    }

    fn forward(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        for_number!("subtract", same_dtype("subtract", &a, &b)?, [a, b], T => zip::<T>("subtract", a, b, T::minus))
    }

    /// `da = dy`, `db = -dy`.
    fn gradient(&self, _: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        let db = if needs.has(1) { Some((-dy)?) } else { None };
        Ok([needs.has(0).then(|| dy.clone()), db])
    }
}

impl Listed for Subtract {
    fn samples() -> Vec<Sample> {
        binary_samples(|| Subtract, -2.0)
    }
}

/// `y = a b`, element by element.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Multiply;

/// The inputs that a product's gradient needs: each for the other's.
fn partners(tracked: Mask) -> Mask {
    let a = if tracked.has(1) { Mask::only(0) } else { Mask::NONE };
    let b = if tracked.has(0) { Mask::only(1) } else { Mask::NONE };
    a.and(b)
}

impl Binary for Multiply {
    const NAME: &'static str = "multiply";

    fn saves(&self, tracked: Mask) -> Saves {
        Saves::inputs(partners(tracked))
    }

    fn forward(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        for_number!("multiply", same_dtype("multiply", &a, &b)?, [a, b], T => zip::<T>("multiply", a, b, T::times))
    }

    /// `da = dy b`, `db = dy a`.
    fn gradient(&self, saved: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        let da = if needs.has(0) { Some((dy * saved.input(1)?)?) } else { None };
        let db = if needs.has(1) { Some((dy * saved.input(0)?)?) } else { None };
        Ok([da, db])
    }
}

impl Listed for Multiply {
    fn samples() -> Vec<Sample> {
        binary_samples(|| Multiply, -2.0)
    }
}

/// `y = a / b`, element by element.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Divide;

impl Binary for Divide {
    const NAME: &'static str = "divide";

    fn saves(&self, tracked: Mask) -> Saves {
        Saves::inputs(partners(tracked).and(Mask::only(1)))
    }

    fn forward(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        for_number!("divide", same_dtype("divide", &a, &b)?, [a, b], T => zip::<T>("divide", a, b, T::over))
    }

    /// `da = dy / b`, `db = -dy a / b^2`.
    fn gradient(&self, saved: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        let b = saved.input(1)?;
        let da = if needs.has(0) { Some((dy / b)?) } else { None };
        let db = if needs.has(1) { Some(((-dy)? * ((saved.input(0)? / b)? / b))?) } else { None };
        Ok([da, db])
    }
}

impl Listed for Divide {
    fn samples() -> Vec<Sample> {
        binary_samples(|| Divide, 0.5)
    }
}

/// `y = -x`; integers wrap around.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Negative;

impl Unary for Negative {
    const NAME: &'static str = "negative";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        for_number!("negative", x.dtype(), [x], T => map::<T>(x, T::negated))
    }

    /// `dx = -dy`.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        -dy
    }
}

impl Listed for Negative {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Negative, [SampleInput::float(&[2, 3])])]
    }
}

/// `f` of each element, written into the input's memory where nobody else holds it.
pub(crate) fn map<T: Element>(x: Tensor, f: impl Fn(T) -> T + Sync + Copy) -> Result<Tensor> {
    Ok(map_any(T::DTYPE, x, elementwise::single(f).any()))
}

/// The loop `body`, whose result has the dtype `dtype`, over one tensor.
pub(crate) fn map_any(dtype: DType, mut x: Tensor, body: AnyLoop<'_, 1>) -> Tensor {
    if x.dtype() == dtype
        && let Some(y) = x.output()
    {
        elementwise::overwrite_single(body, y);
        return x;
    }
    let mut y = Tensor::blank(x.shape().clone(), dtype);
    if let Some(y) = y.output() {
        elementwise::write(body, [x.elements()], y);
    }
    y
}

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    #[test]
    fn operators_take_tensors_results_and_numbers_on_both_sides() -> crate::Result<()> {
        let x = Tensor::from([1.0f32, 2.0]);
        let y = (2.0 * &x)? + (&x - 1);
        assert_eq!(y?.to_vec::<f32>()?, [2.0, 5.0]);
        let z = (1.0 - &x) / &x;
        assert_eq!(z?.to_vec::<f32>()?, [0.0, -0.5]);
        assert_eq!((-&x)?.to_vec::<f32>()?, [-1.0, -2.0]);
        Ok(())
    }

    #[test]
    fn integers_wrap_and_division_by_zero_gives_zero() -> crate::Result<()> {
        let x = Tensor::from([i32::MAX, 7, i32::MIN]);
        assert_eq!((&x + 1)?.to_vec::<i32>()?, [i32::MIN, 8, i32::MIN + 1]);
        assert_eq!((&x / 0)?.to_vec::<i32>()?, [0, 0, 0]);
        assert_eq!((&x / -1)?.to_vec::<i32>()?, [-i32::MAX, -7, i32::MIN]);
        assert!((&x + 0.5).is_err());
        // Short ones wrap at their own bits.
        let x = Tensor::from([i8::MIN, 100]);
        assert_eq!((&x - 1)?.to_vec::<i8>()?, [i8::MAX, 99]);
        assert_eq!((&x * 2)?.to_vec::<i8>()?, [0, -56]);
        assert_eq!((&x / -1)?.to_vec::<i8>()?, [i8::MIN, -100]);
        assert_eq!((-&x)?.to_vec::<i8>()?, [i8::MIN, -100]);
        assert_eq!((Tensor::from([3u8, 200]) - Tensor::from([5u8, 0]))?.to_vec::<u8>()?, [254, 200]);
        let x = Tensor::from([u64::MAX, 9]);
        assert_eq!((&x * 2)?.to_vec::<u64>()?, [u64::MAX - 1, 18]);
        assert_eq!((&x / 0)?.to_vec::<u64>()?, [0, 0]);
        Ok(())
    }

    #[test]
    fn numbers_that_a_dtype_cannot_hold_are_refused() -> crate::Result<()> {
        let x = Tensor::from([1u8]);
        let message = (&x + 300).unwrap_err().to_string();
        assert!(message.contains("300") && message.contains("u8") && message.contains("255"), "{message}");
        assert!((&x + -1).is_err() && (&x * f64::NAN).is_err() && (&x * f64::INFINITY).is_err());
        assert_eq!((&x + 255)?.to_vec::<u8>()?, [0]);
        Ok(())
    }

    #[test]
    fn unlike_dtypes_and_bools_are_refused() {
        let x = Tensor::from([1.0f32]);
        let message = (&x + Tensor::from([1.0f64])).unwrap_err().to_string();
        assert!(message.contains("f64") && message.contains("f32") && message.contains("cast"), "{message}");
        let b = Tensor::zeros([2], DType::Bool).unwrap();
        assert!((&b + &b).is_err());
    }

    #[test]
    fn a_tensor_given_away_lends_its_memory_but_a_shared_one_does_not() -> crate::Result<()> {
        let x = Tensor::from(vec![1.0f64; 8]);
        let kept = x.clone();
        let y = (x + 1.0)?;
        assert!(!y.shares_memory_with(&kept));
        assert_eq!(kept.to_vec::<f64>()?, [1.0; 8]);
        let z = (y + &kept)?;
        assert_eq!(z.to_vec::<f64>()?, [3.0; 8]);
        Ok(())
    }
}
