//! A sum of layers.

use crate::error::{Error, Result};
use crate::module::Forward;
use crate::tensor::Tensor;

/// `activation(sum of layer(x))` over pairs of a layer and its input: the affine map of several inputs that are not
/// concatenated.
///
/// ```
/// use couplet::nets::dnc::apply_linear;
/// use couplet::prelude::*;
/// let (of_x, of_state) = (Linear::new(1).w_init(init::Ones), Linear::new(1).w_init(init::Ones));
/// let (x, state) = (Tensor::from([[1.0f32, 2.0]]), Tensor::from([[-4.0f32]]));
/// let y = apply_linear(&[(&of_x, &x), (&of_state, &state)], Tensor::relu)?;
/// assert_eq!(y.item::<f32>()?, 0.0);
/// let y = apply_linear(&[(&of_x, &x)], Tensor::relu)?;
/// assert_eq!(y.item::<f32>()?, 3.0);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// There is no pair, or a layer refuses its input.
pub fn apply_linear(pairs: &[(&dyn Forward, &Tensor)], activation: impl Forward) -> Result<Tensor> {
    let Some(((layer, x), others)) = pairs.split_first() else {
        let problem = "there is nothing to add up";
        return Err(Error::usage("apply_linear", problem, "give at least one layer and its input"));
    };
    let sum = others.iter().try_fold(layer.forward(x)?, |sum, (layer, x)| sum + layer.forward(x)?)?;
    activation.forward(&sum)
}
