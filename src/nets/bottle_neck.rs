//! What the two bottleneck blocks share.

use crate::error::{Error, Result};
use crate::module::Module;
use crate::nn::{Conv2D, pad};
use crate::tensor::Tensor;

/// A convolution without bias, as a batch normalisation follows. Zeros lie evenly on both sides whatever the stride, so the
/// output of a stride is every second one of the output without.
pub(super) fn convolution(name: &str, channels: usize, kernel: usize, stride: usize) -> Conv2D {
    Conv2D::new(channels, kernel).stride(stride).padding(pad::same).with_bias(false).name(name)
}

/// The three convolutions of a block: to a quarter of the channels, over the neighbourhood, to all channels.
pub(super) fn convolutions(channels: usize, stride: usize) -> [Conv2D; 3] {
    let narrow = channels / 4;
    [
        convolution("conv_0", narrow, 1, 1),
        convolution("conv_1", narrow, 3, stride),
        convolution("conv_2", channels, 1, 1),
    ]
}

/// The convolution on the way around a block.
pub(super) fn shortcut(channels: usize, stride: usize) -> Conv2D {
    convolution("shortcut_conv", channels, 1, stride)
}

/// Refuses an input that the sum at the end of a block would refuse after its variables are made.
pub(super) fn check(
    op: &'static str,
    x: &Tensor,
    channels: usize,
    stride: usize,
    use_projection: bool,
) -> Result<()> {
    if x.rank() != 4 {
        return Err(Error::shape(op, "x", x.shape(), "[batch, height, width, channels]"));
    }
    if use_projection {
        return Ok(());
    }
    if stride != 1 {
        let problem = format!("the stride is {stride}, and the shortcut is the identity");
        return Err(Error::usage(op, problem, "a stride above 1 needs use_projection"));
    }
    if x.dim(-1)? != channels {
        let expected =
            format!("{channels} channels, since the shortcut is the identity without use_projection");
        return Err(Error::shape(op, "x", x.shape(), expected));
    }
    Ok(())
}

/// The error of a call that does not say whether it trains.
pub(super) fn needs_flag(op: &'static str) -> Error {
    let problem = "batch normalisation behaves differently in training and in evaluation";
    Error::usage(op, problem, "call forward_t(x, is_training)")
}

#[cfg(test)]
mod tests {
    use crate::nets::{BottleNeckBlockV1, BottleNeckBlockV2};
    use crate::{DType, Forward, Module, Result, Tensor};

    fn refused(block: &(impl Forward + Module), shape: [usize; 4], word: &str) -> Result<()> {
        let told = block.forward_t(&Tensor::ones(shape, DType::F32)?, true).unwrap_err().to_string();
        assert!(told.contains(word) && told.contains("use_projection"), "{told}");
        assert_eq!(block.named_variables()?.iter().filter(|(path, _)| path.ends_with("/w")).count(), 0);
        Ok(())
    }

    #[test]
    fn an_identity_shortcut_that_cannot_be_added_is_refused_before_anything_is_made() -> Result<()> {
        refused(&BottleNeckBlockV1::new(8, 1, false), [1, 4, 4, 4], "8 channels")?;
        refused(&BottleNeckBlockV2::new(8, 1, false), [1, 4, 4, 4], "8 channels")?;
        refused(&BottleNeckBlockV1::new(8, 2, false), [1, 4, 4, 8], "stride is 2")?;
        refused(&BottleNeckBlockV2::new(8, 2, false), [1, 4, 4, 8], "stride is 2")
    }

    #[test]
    fn a_new_block_of_the_first_version_is_its_shortcut() -> Result<()> {
        let x = Tensor::from_vec((0..16).map(|i| (i as f32 * 1.3).sin()).collect(), [1, 2, 2, 4])?;
        let y = BottleNeckBlockV1::new(4, 1, false).forward_t(&x, true)?;
        assert_eq!(y.to_vec::<f32>()?, x.relu()?.to_vec::<f32>()?);
        Ok(())
    }
}
