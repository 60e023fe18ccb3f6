//! Positions as rotations of queries and keys.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::module::{Copies, Description, Node, Visit};
use crate::tensor::Tensor;

/// Rotary positions (Su et al. 2021, "RoFormer: enhanced transformer with rotary position embedding", 3.2.2).
///
/// At position `t`, channel `i` of the first half and channel `i + d/2` are turned together by the angle
/// `t base^(-2 i / d)`, so that the product of a query and a key depends on the distance of their positions alone:
///
/// ```text
/// y[i] = x[i] cos - x[i + d/2] sin,   y[i + d/2] = x[i] sin + x[i + d/2] cos
/// ```
///
/// ```
/// use couplet::{Tensor, nn::Rotary};
/// let x = Tensor::from([[1.0f64, 0.0], [1.0, 0.0]]); // two positions of two channels
/// let y = Rotary::default().turn(&x, 0)?.to_vec::<f64>()?;
/// assert_eq!(y[..2], [1.0, 0.0]);
/// assert_eq!(y[2..], [1f64.cos(), 1f64.sin()]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rotary {
    /// Longest wavelength in positions, over `2 pi`. Default: 10000, as in the paper.
    pub base: f64,
}

impl Default for Rotary {
    fn default() -> Self {
        Rotary { base: 10_000.0 }
    }
}

impl Rotary {
    /// `x`, of shape `[.., positions, d]`, turned by its positions, which begin at `first`.
    ///
    /// # Errors
    /// `x` has a rank below 2 or an odd number of channels, or is not of a float dtype; `base` is not above 0.
    pub fn turn(&self, x: &Tensor, first: usize) -> Result<Tensor> {
        const OP: &str = "rotary";
        if x.rank() < 2 || x.dim(-1)? % 2 != 0 {
            return Err(Error::shape(OP, "x", x.shape(), "[.., positions, an even number of channels]"));
        }
        if !(self.base > 0.0 && self.base.is_finite()) {
            return Err(Error::argument(OP, "base", self.base, "a finite number above 0"));
        }
        if !x.dtype().is_float() {
            return Err(Error::dtype(OP, "x", x.dtype(), "a float dtype"));
        }
        let (count, half) = (x.dim(-2)?, x.dim(-1)? / 2);
        let position = Tensor::arange(0.0, count as f64, 1.0, DType::F64)?.reshape([count, 1])?;
        let exponent = (Tensor::arange(0.0, half as f64, 1.0, DType::F64)? / -(half.max(1) as f64))?;
        let angle = ((position + first as f64)? * (exponent * self.base.ln())?.exp()?)?;
        let (cos, sin) = (angle.cos()?.cast(x.dtype())?, angle.sin()?.cast(x.dtype())?);
        let (a, b) = (x.narrow(-1, 0, half)?, x.narrow(-1, half, half)?);
        let turned = [((&a * &cos)? - (&b * &sin)?)?, ((&a * &sin)? + (&b * &cos)?)?];
        Tensor::concat(&[&turned[0], &turned[1]], -1)
    }
}

impl Visit for Rotary {
    fn node(&self) -> Node<'_> {
        Node::Nothing
    }

    fn copy(&self, _: &mut Copies) -> Self {
        *self
    }

    fn describe(&self) -> Option<Description> {
        Some(Description::text(format_args!("Rotary(base={:?})", self.base)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn pairs_of_channels_are_turned_by_angles_that_fall_off() -> Result<()> {
        let (rotary, x) =
            (Rotary { base: 100.0 }, Generator::seed(1).normal([2, 3, 4], 0.0, 1.0, DType::F64)?);
        let (list, y) = (x.to_vec::<f64>()?, rotary.turn(&x, 5)?.to_vec::<f64>()?);
        for row in 0..6 {
            let t = (5 + row % 3) as f64;
            for i in 0..2 {
                // 100^(-2 i / 4) is 1 and 1/10.
                let (sin, cos) = (t * [1.0, 0.1][i]).sin_cos();
                let (a, b) = (list[row * 4 + i], list[row * 4 + i + 2]);
                assert!((y[row * 4 + i] - (a * cos - b * sin)).abs() < 1e-14);
                assert!((y[row * 4 + i + 2] - (a * sin + b * cos)).abs() < 1e-14);
            }
        }
        Ok(())
    }

    #[test]
    fn products_depend_on_distances_alone() -> Result<()> {
        let g = Generator::seed(2);
        let (q, k) = (g.normal([1, 8], 0.0, 1.0, DType::F64)?, g.normal([1, 8], 0.0, 1.0, DType::F64)?);
        let product = |at: usize, to: usize| -> Result<f64> {
            let (q, k) = (Rotary::default().turn(&q, at)?, Rotary::default().turn(&k, to)?);
            (q * k)?.sum()?.item()
        };
        assert!((product(7, 3)? - product(104, 100)?).abs() < 1e-12);
        assert!((product(7, 3)? - product(7, 4)?).abs() > 1e-3);
        Ok(())
    }

    #[test]
    fn odd_channels_integers_and_a_base_of_zero_are_refused() {
        let zeros = |shape: &[usize], dtype| Tensor::zeros(shape, dtype).unwrap();
        let rotary = Rotary::default();
        assert!(rotary.turn(&zeros(&[2, 3], DType::F32), 0).unwrap_err().to_string().contains("even"));
        assert!(rotary.turn(&zeros(&[4], DType::F32), 0).is_err());
        assert!(rotary.turn(&zeros(&[2, 4], DType::I32), 0).unwrap_err().to_string().contains("float"));
        assert!(Rotary { base: 0.0 }.turn(&zeros(&[2, 4], DType::F32), 0).is_err());
        assert_eq!(rotary.turn(&zeros(&[0, 4], DType::F16), 0).unwrap().shape(), &[0, 4]);
        assert_eq!(rotary.turn(&zeros(&[3, 0], DType::F32), 0).unwrap().shape(), &[3, 0]);
    }
}
