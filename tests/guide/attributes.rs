//! The paths that the guide gives for what Sonnet shows as attributes.

use couplet::prelude::*;

use crate::{ones, variable};

#[test]
fn attributes_are_found_by_their_paths() -> Result<()> {
    let x = ones([2, 3]);
    let step = |core: &dyn RNNCore| core.step(&x, &core.initial_state(2).unwrap()).map(drop);
    let has =
        |module: &dyn Module, paths: &[&str]| paths.iter().for_each(|path| drop(variable(module, path)));
    let norm = BatchNorm::new(true, true);
    norm.forward_t(&x, true)?;
    has(&norm, &["scale", "offset", "moving_mean/average", "moving_variance/average"]);
    let lstm = LSTM::new(4).projection_size(2);
    step(&lstm)?;
    has(&lstm, &["_w_i", "_w_h", "b", "projection"]);
    let gru = GRU::new(4);
    step(&gru)?;
    has(&gru, &["_w_i", "_w_h", "b"]);
    let rnn = VanillaRNN::new(4);
    step(&rnn)?;
    has(&rnn, &["_input_to_hidden/w", "_hidden_to_hidden/w", "_b"]);
    let adam = optim::Adam::new(0.1);
    has(&adam, &["step"]);
    let v = Variable::from_tensor("v", Tensor::from(1.0f32));
    adam.apply(&[Some(Tensor::from(1.0f32).into())], &[v])?;
    has(&adam, &["m/0", "v/0"]);
    Ok(())
}
