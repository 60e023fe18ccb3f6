//! What most programs need: `use couplet::prelude::*;`.

pub use crate::autodiff::{GradientTape, no_grad, value_and_grad};
pub use crate::checkpoint::{Checkpoint, CheckpointManager};
pub use crate::metrics::{ExponentialMovingAverage, Metric};
pub use crate::module::{Forward, List, Once};
pub use crate::nets::{
    Cifar10ConvNet, MLP, ResNet, ResNet50, TransformerBlock, VectorQuantizer, VectorQuantizerEMA,
};
pub use crate::nn::{
    BatchApply, BatchNorm, Bias, Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose,
    DepthwiseConv2D, Dropout, Embed, Flatten, GroupNorm, InstanceNorm, LayerNorm, LearnedPositions, Linear,
    MultiHeadAttention, RMSNorm, Reshape, SeparableConv2D, Sequential, pad,
};
pub use crate::ops::{Gradient, Padding, Pool, Slice};
pub use crate::optim::Optimizer;
pub use crate::random::Generator;
pub use crate::recurrent::{
    Conv1DLSTM, Conv2DLSTM, Conv3DLSTM, DeepRNN, GRU, LSTM, LSTMState, Nest, RNNCore, TrainableState,
    UnrolledLSTM, UnrolledRNN, VanillaRNN, deep_rnn_with_residual_connections,
    deep_rnn_with_skip_connections, dynamic_unroll, lstm_with_recurrent_dropout, static_unroll, unroll_with,
};
pub use crate::scope::Scope;
pub use crate::tensor::{Shape, Tensor};
pub use crate::variable::Variable;
pub use crate::{
    DType, Element, Error, Module, Result, data, functional, init, losses, optim, random, scoped,
};
