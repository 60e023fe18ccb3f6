//! The public names of Sonnet 2.0.2, each of which the guide must mention.

use std::collections::BTreeSet;

const GUIDE: &[&str] = &[
    include_str!("../../src/guide/coming_from_sonnet/overview.md"),
    include_str!("../../src/guide/coming_from_sonnet/modules.md"),
    include_str!("../../src/guide/coming_from_sonnet/layers.md"),
    include_str!("../../src/guide/coming_from_sonnet/recurrent.md"),
    include_str!("../../src/guide/coming_from_sonnet/nets.md"),
    include_str!("../../src/guide/coming_from_sonnet/training.md"),
    include_str!("../../src/guide/coming_from_sonnet/functional.md"),
    include_str!("../../src/guide/coming_from_sonnet/tensorflow.md"),
];

const NAMES: &[(&str, &str)] = &[
    (
        "snt",
        "BaseBatchNorm BatchApply BatchNorm Bias Conv1D Conv1DLSTM Conv1DTranspose Conv2D Conv2DLSTM Conv2DTranspose \
         Conv3D Conv3DLSTM Conv3DTranspose DeepRNN Deferred DepthwiseConv2D Dropout Embed ExponentialMovingAverage \
         Flatten GRU GroupNorm InstanceNorm LSTM LSTMState LayerNorm Linear Mean Metric Module Optimizer RNNCore \
         Reshape Sequential Sum TrainableState UnrolledLSTM UnrolledRNN VanillaRNN __version__ allow_empty_variables \
         build custom_variable_getter deep_rnn_with_residual_connections deep_rnn_with_skip_connections \
         dynamic_unroll flatten format_variables leaky_clip_by_value log_variables lstm_with_recurrent_dropout \
         merge_leading_dims no_name_scope once reshape scale_gradient split_leading_dim static_unroll",
    ),
    ("snt.nets", "Cifar10ConvNet MLP ResNet ResNet50 VectorQuantizer VectorQuantizerEMA"),
    ("snt.optimizers", "Adam Momentum RMSProp SGD"),
    (
        "snt.initializers",
        "Constant Identity Initializer Ones Orthogonal RandomNormal RandomUniform TruncatedNormal VarianceScaling Zeros",
    ),
    ("snt.regularizers", "L1 L2 OffDiagonalOrthogonal Regularizer"),
    ("snt.pad", "causal create full reverse_causal same valid"),
    ("snt.distribute", "CrossReplicaBatchNorm Replicator TpuReplicator create_variables_eagerly"),
    (
        "snt.functional",
        "adam device_get device_put grad jit momentum optimizer rmsprop sgd transform transform_with_state \
         value_and_grad variables without_state",
    ),
    ("snt.mixed_precision", "disable enable modes scope"),
    (
        "Module",
        "name name_scope non_trainable_variables submodules trainable_variables variables with_name_scope",
    ),
    ("resnet", "BlockGroup BottleNeckBlockV1 BottleNeckBlockV2"),
    ("read", "read"),
    ("write", "additive_write erase erase_and_write erase_rows"),
    ("util", "apply_linear apply_split_linear batch_gather batch_invert_permutation one_hot segment_dim"),
    ("control", "FeedForward deep_core get_controller_ctor"),
];

fn all() -> BTreeSet<String> {
    let full = |&(module, names): &(&str, &str)| -> Vec<String> {
        names.split_whitespace().map(|name| format!("{module}.{name}")).collect()
    };
    NAMES.iter().flat_map(full).collect()
}

/// The dotted names in a text.
fn dotted(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
        .map(|word| word.trim_matches('.'))
        .filter(|word| word.contains('.'))
        .collect()
}

#[test]
fn every_public_name_of_sonnet_is_in_the_guide() {
    let text = GUIDE.concat();
    let mentioned = dotted(&text);
    let missing: Vec<_> = all().into_iter().filter(|name| !mentioned.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_guide_mentions_no_name_that_sonnet_lacks() {
    let text = GUIDE.concat();
    let (all, modules) = (all(), ["snt.src.nets.dnc"]);
    let unknown: Vec<_> = dotted(&text)
        .into_iter()
        .filter(|name| name.starts_with("snt.") && !all.contains(*name) && !modules.contains(name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
