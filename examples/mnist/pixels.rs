//! Digits as a tensor.

use couplet::prelude::*;

use super::idx::{Digits, SIDE};

/// The images, `u8[n, 28, 28, 1]`.
///
/// # Errors
/// Never, for digits that were read from a file.
pub fn pixels(digits: &Digits) -> Result<Tensor> {
    Tensor::from_vec(digits.images.clone(), [digits.labels.len(), SIDE, SIDE, 1])
}
