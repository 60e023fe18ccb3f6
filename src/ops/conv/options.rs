//! How a kernel slides over its input.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Zeros put around the input of a convolution or pooling, along each spatial axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Padding {
    /// `out = ceil(in / stride)`; what is lacking is split evenly, one more after than before if it is odd.
    Same,
    /// None: the kernel stays inside the input.
    Valid,
    /// Before and after, for each spatial axis.
    Explicit(Vec<(usize, usize)>),
}

/// How a kernel slides: one number for all spatial axes, or one for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvOptions {
    /// Steps between outputs, each 1 or more.
    pub stride: Vec<usize>,
    /// Distance between the taps of the kernel (dilation), each 1 or more.
    pub rate: Vec<usize>,
    /// Zeros around the input.
    pub padding: Padding,
}

impl Default for ConvOptions {
    /// Stride 1, rate 1, [`Padding::Same`].
    fn default() -> Self {
        ConvOptions { stride: vec![1], rate: vec![1], padding: Padding::Same }
    }
}

/// The largest stride, rate or padding; products of a few such numbers and dims of tensors fit in 64 bits.
const LARGEST: usize = u32::MAX as usize;

impl ConvOptions {
    /// Refuses zeros, numbers that positions would overflow with, and a stride together with a rate.
    pub(crate) fn check(&self, op: &'static str) -> Result<()> {
        for (argument, list) in [("stride", &self.stride), ("rate", &self.rate)] {
            if list.contains(&0) {
                return Err(Error::argument(op, argument, format!("{list:?}"), "1 or more"));
            }
            if list.iter().any(|&n| n > LARGEST) {
                return Err(Error::argument(op, argument, format!("{list:?}"), "numbers below 2^32"));
            }
        }
        if let Padding::Explicit(pads) = &self.padding
            && pads.iter().any(|&(before, after)| before.max(after) > LARGEST)
        {
            return Err(Error::argument(op, "padding", format!("{pads:?}"), "numbers below 2^32"));
        }
        if self.stride.iter().any(|&s| s > 1) && self.rate.iter().any(|&r| r > 1) {
            let got = format!("{:?} with stride {:?}", self.rate, self.stride);
            return Err(Error::argument(op, "rate", got, "1 where a stride is above 1, or stride 1"));
        }
        Ok(())
    }
}

/// Size of the output and zeros before the input along one axis.
pub(crate) fn window(
    input: usize,
    kernel: usize,
    stride: usize,
    rate: usize,
    padding: &Padding,
    axis: usize,
) -> (usize, usize) {
    let reach = kernel.saturating_sub(1).saturating_mul(rate).saturating_add(1);
    match padding {
        Padding::Same => {
            let output = input.div_ceil(stride);
            let needed = (output.saturating_sub(1) * stride).saturating_add(reach);
            (output, needed.saturating_sub(input) / 2)
        }
        Padding::Valid => (input.saturating_add(1).saturating_sub(reach).div_ceil(stride), 0),
        Padding::Explicit(pads) => {
            let (before, after) = pads.get(axis).copied().unwrap_or((0, 0));
            let padded = input.saturating_add(before).saturating_add(after);
            (if padded < reach { 0 } else { (padded - reach) / stride + 1 }, before)
        }
    }
}

/// Repeats a single number for each of `n` axes and checks that none is 0.
pub(crate) fn per_axis(
    op: &'static str,
    argument: &'static str,
    given: &[usize],
    n: usize,
) -> Result<Vec<usize>> {
    let list = match given {
        [one] => vec![*one; n],
        list if list.len() == n => list.to_vec(),
        list => {
            let expected = format!("one number, or one for each of the {n} spatial axes");
            return Err(Error::argument(op, argument, format!("{list:?}"), expected));
        }
    };
    if list.contains(&0) {
        return Err(Error::argument(op, argument, format!("{given:?}"), "1 or more"));
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_sizes_follow_the_formulas() {
        // in 5, kernel 3, stride 2: SAME gives 3 with 1 before; VALID gives 2; a kernel too large gives 0.
        assert_eq!(window(5, 3, 2, 1, &Padding::Same, 0), (3, 1));
        assert_eq!(window(5, 3, 2, 1, &Padding::Valid, 0), (2, 0));
        assert_eq!(window(2, 3, 1, 1, &Padding::Valid, 0), (0, 0));
        assert_eq!(window(4, 2, 1, 1, &Padding::Explicit(vec![(1, 0)]), 0), (4, 1));
        assert_eq!(window(0, 3, 1, 1, &Padding::Same, 0).0, 0);
    }
}
