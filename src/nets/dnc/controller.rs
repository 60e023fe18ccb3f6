//! Controllers: the recurrent networks that direct the heads.

use crate::error::{Error, Result};
use crate::recurrent::{DeepRNN, GRU, LSTM, RNNCore, deep_rnn_with_skip_connections};

use super::FeedForward;

/// The constructor of a controller, from its size, by the name that a configuration gives it: `LSTM`, `GRU` or
/// `FeedForward`.
///
/// ```
/// use couplet::nets::dnc::get_controller_ctor;
/// let core = get_controller_ctor("GRU")?(16);
/// assert_eq!(format!("{core:?}"), "GRU(hidden_size=16)");
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// There is no such controller.
pub fn get_controller_ctor(name: &str) -> Result<fn(usize) -> Box<dyn RNNCore>> {
    Ok(match name {
        "LSTM" => |hidden_size| Box::new(LSTM::new(hidden_size)),
        "GRU" => |hidden_size| Box::new(GRU::new(hidden_size)),
        "FeedForward" => |hidden_size| Box::new(FeedForward::new(hidden_size)),
        _ => {
            let expected = "LSTM, GRU or FeedForward";
            return Err(Error::argument("get_controller_ctor", "name", format!("{name:?}"), expected));
        }
    })
}

/// A controller of `num_layers` cores on top of each other, called after their type and position: `LSTM_0`, `LSTM_1`, ..
///
/// With skip connections each core sees the input as well, and the output is that of all of them, as in
/// [`deep_rnn_with_skip_connections`]; without, it is a plain [`DeepRNN`].
///
/// ```
/// use couplet::nets::dnc::deep_core;
/// use couplet::prelude::*;
/// let core = deep_core(2, true, || LSTM::new(8));
/// let (y, _) = core.step(&Tensor::ones([1, 3], DType::F32)?, &core.initial_state(1)?)?;
/// assert_eq!(y.shape(), &[1, 16]);
/// # Ok::<(), couplet::Error>(())
/// ```
pub fn deep_core<C: RNNCore + 'static>(
    num_layers: usize,
    skip_connections: bool,
    core: impl Fn() -> C,
) -> DeepRNN {
    let empty = if skip_connections { deep_rnn_with_skip_connections() } else { DeepRNN::new() };
    (0..num_layers).fold(empty, |deep, i| {
        let core = core();
        let name = format!("{}_{i}", core.kind());
        deep.push(core.name(&name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Module, Tensor};

    #[test]
    fn cores_are_called_after_their_type_and_position() -> Result<()> {
        for skip_connections in [true, false] {
            let core = deep_core(2, skip_connections, || get_controller_ctor("FeedForward").unwrap()(3));
            let (y, _) = core.step(&Tensor::ones([2, 4], DType::F32)?, &core.initial_state(2)?)?;
            assert_eq!(y.shape(), &[2, if skip_connections { 6 } else { 3 }]);
            let names: Vec<_> = core.variables()?.iter().map(|v| v.name().to_owned()).collect();
            let layer = |i| [format!("FeedForward_{i}/linear/b"), format!("FeedForward_{i}/linear/w")];
            assert_eq!(names, [layer(0), layer(1)].concat());
        }
        Ok(())
    }

    #[test]
    fn an_unknown_controller_is_refused_with_the_known_ones() {
        let message = get_controller_ctor("lstm").unwrap_err().to_string();
        assert!(message.contains("\"lstm\"") && message.contains("LSTM, GRU or FeedForward"), "{message}");
    }
}
