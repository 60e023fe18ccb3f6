//! Blocks of pixels as channels, and back.

use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Batch, height, width and channels.
fn image(op: &'static str, x: &Tensor) -> Result<[usize; 4]> {
    <[usize; 4]>::try_from(x.shape().dims())
        .map_err(|_| Error::shape(op, "x", x.shape(), "rank 4: batch, height, width, channels"))
}

impl Tensor {
    /// Blocks of `block_size` by `block_size` pixels moved into the channels:
    /// `y[n, i, j, (a b + c) channels + k] = x[n, i b + a, j b + c, k]` for `b = block_size`.
    ///
    /// | tensor | shape                                                    |
    /// |--------|----------------------------------------------------------|
    /// | `self` | `[batch, height, width, channels]`                       |
    /// | `y`    | `[batch, height / b, width / b, channels b^2]`           |
    ///
    /// # Errors
    /// The rank is not 4, `block_size` is 0, or height or width is not a multiple of it.
    pub fn space_to_depth(&self, block_size: usize) -> Result<Tensor> {
        let [n, height, width, channels] = image("space_to_depth", self)?;
        let b = block_size;
        if b == 0 || !height.is_multiple_of(b) || !width.is_multiple_of(b) {
            let expected = format!("a divisor of height {height} and width {width}");
            return Err(Error::argument("space_to_depth", "block_size", b, expected));
        }
        let (rows, columns) = (height / b, width / b);
        // No overflow: b^2 channels stand for pixels that there are, unless there are none at all.
        let depth = channels.saturating_mul(b).saturating_mul(b);
        self.reshape([n, rows, b, columns, b, channels])?
            .transpose(&[0, 1, 3, 2, 4, 5])?
            .reshape([n, rows, columns, depth])
    }

    /// The channels spread over blocks of `block_size` by `block_size` pixels; undoes
    /// [`space_to_depth`](Tensor::space_to_depth).
    ///
    /// | tensor | shape                                                    |
    /// |--------|----------------------------------------------------------|
    /// | `self` | `[batch, height, width, channels]`                       |
    /// | `y`    | `[batch, height b, width b, channels / b^2]`             |
    ///
    /// # Errors
    /// The rank is not 4, `block_size` is 0, or the channels are not a multiple of its square.
    pub fn depth_to_space(&self, block_size: usize) -> Result<Tensor> {
        let [n, height, width, channels] = image("depth_to_space", self)?;
        let b = block_size;
        let fits = b.checked_mul(b).filter(|&square| square > 0 && channels.is_multiple_of(square));
        let to = |dim: usize| dim.checked_mul(b);
        let (Some(square), Some(rows), Some(columns)) = (fits, to(height), to(width)) else {
            let expected = format!("a number whose square divides the {channels} channels");
            return Err(Error::argument("depth_to_space", "block_size", b, expected));
        };
        let depth = channels / square;
        self.reshape([n, height, width, b, b, depth])?
            .transpose(&[0, 1, 3, 2, 4, 5])?
            .reshape([n, rows, columns, depth])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn blocks_become_channels_as_documented() -> Result<()> {
        let (height, width, channels, b) = (4, 6, 3, 2);
        let x = Tensor::arange(0.0, 144.0, 1.0, DType::I32)?.reshape([2, height, width, channels])?;
        let y = x.space_to_depth(b)?;
        assert_eq!(y.shape(), &[2, 2, 3, 12]);
        let (source, deep) = (x.to_vec::<i32>()?, y.to_vec::<i32>()?);
        for (at, &got) in deep.iter().enumerate() {
            let (depth, j, i, n) = (at % 12, at / 12 % 3, at / 36 % 2, at / 72);
            let (k, c, a) = (depth % channels, depth / channels % b, depth / channels / b);
            let (row, column) = (i * b + a, j * b + c);
            assert_eq!(got, source[((n * height + row) * width + column) * channels + k]);
        }
        assert_eq!(y.depth_to_space(b)?.to_vec::<i32>()?, source);
        Ok(())
    }

    #[test]
    fn blocks_that_do_not_fit_are_refused() -> Result<()> {
        let x = Tensor::zeros([1, 4, 6, 3], DType::F32)?;
        assert!(x.space_to_depth(0).is_err() && x.space_to_depth(4).is_err());
        assert!(x.depth_to_space(0).is_err() && x.depth_to_space(2).is_err());
        assert!(x.depth_to_space(usize::MAX).is_err());
        assert!(x.reshape([4, 6, 3])?.space_to_depth(2).is_err());
        assert_eq!(Tensor::zeros([0, 4, 4, 1], DType::F32)?.space_to_depth(2)?.shape(), &[0, 2, 2, 4]);
        Ok(())
    }
}
