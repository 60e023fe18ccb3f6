//! Recurrent layers: cores that make one step, and ways to run them over a sequence.

mod conv_lstm;
mod deep_rnn;
mod gru;
mod lengths;
mod lstm;
mod lstm_state;
mod nest;
mod recurrent_dropout;
mod residual;
mod rnn_core;
mod trainable_state;
mod unroll;
mod unrolled_lstm;
mod vanilla_rnn;
mod weights;

pub use conv_lstm::{Conv1DLSTM, Conv2DLSTM, Conv3DLSTM, ConvNDLSTM};
pub use deep_rnn::{
    DeepRNN, IntoLayer, Layer, deep_rnn_with_residual_connections, deep_rnn_with_skip_connections,
};
pub use gru::GRU;
pub use lstm::LSTM;
pub use lstm_state::LSTMState;
pub use nest::Nest;
pub use recurrent_dropout::{RecurrentDropout, lstm_with_recurrent_dropout};
pub use residual::Residual;
pub use rnn_core::{DynCore, RNNCore, UnrolledRNN};
pub use trainable_state::TrainableState;
pub use unroll::{dynamic_unroll, static_unroll, unroll_with};
pub use unrolled_lstm::UnrolledLSTM;
pub use vanilla_rnn::VanillaRNN;
