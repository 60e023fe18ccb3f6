//! What the guide says stayed as it is in Sonnet: one test for each row of the table.

use couplet::custom_variable_getter;
use couplet::mixed_precision::{self, Modes};
use couplet::nn::{BaseBatchNorm, CrossReplicaBatchNorm, merge_leading_dims};
use couplet::prelude::*;

use crate::{floats, names, ones, variable};

#[test]
fn images_feed_the_unbiased_variance_to_the_moving_average_and_nothing_else_does() -> Result<()> {
    let x = Tensor::from([[1.0f64], [4.0], [7.0], [10.0]]); // variance 11.25, unbiased 15
    let moved = |norm: &BatchNorm, x: &Tensor| -> Result<f64> {
        norm.forward_t(x, true)?;
        variable(norm, "moving_variance/average").value().to_vec::<f64>().map(|v| v[0])
    };
    let images = x.reshape([1, 2, 2, 1])?;
    assert!((moved(&BatchNorm::new(true, true), &images)? - 15.0).abs() < 1e-9);
    assert!((moved(&BatchNorm::new(true, true), &x)? - 11.25).abs() < 1e-9);
    let first = BatchNorm::new(true, true).data_format("NCHW");
    assert!((moved(&first, &x.reshape([1, 1, 2, 2])?)? - 11.25).abs() < 1e-9);
    let average = || ExponentialMovingAverage::new(0.9);
    let across = CrossReplicaBatchNorm::new(true, true, average(), average());
    across.forward_t(&images, true)?;
    let got: Vec<f64> = variable(&across, "moving_variance/average").value().to_vec()?;
    assert!((got[0] - 11.25).abs() < 1e-9);
    let base = BaseBatchNorm::new(true, true, average(), average());
    base.forward_t(&images, true)?;
    let got: Vec<f64> = variable(&base, "moving_variance/average").value().to_vec()?;
    assert!((got[0] - 15.0).abs() < 1e-9);
    Ok(())
}

#[test]
fn averages_are_corrected_in_the_dtype_of_their_values() -> Result<()> {
    let average = ExponentialMovingAverage::new(0.9);
    average.update(&Tensor::from(1.0f32))?;
    assert_eq!(average.value()?.item::<f32>()?, 0.99999976);
    Ok(())
}

#[test]
fn a_decay_of_1_gives_nan() -> Result<()> {
    let average = ExponentialMovingAverage::new(1.0);
    average.update(&Tensor::from(1.0f32))?;
    assert!(average.value()?.item::<f32>()?.is_nan());
    Ok(())
}

#[test]
fn scale_and_offset_of_a_batch_norm_exist_whether_asked_for_or_not() -> Result<()> {
    let norm = BatchNorm::new(false, false);
    norm.forward_t(&ones([2, 3]), true)?;
    assert_eq!(names(&norm)[..2], ["batch_norm/offset", "batch_norm/scale"]);
    assert!(norm.trainable_variables().is_err());
    let layer = LayerNorm::new(-1, false, false).allow_empty_variables();
    layer.forward(&ones([2, 3]))?;
    assert!(layer.variables()?.is_empty());
    Ok(())
}

#[test]
fn evaluation_before_training_divides_by_the_root_of_eps() -> Result<()> {
    let y = BatchNorm::new(true, true).forward_t(&ones([1, 1]), false)?;
    assert!((y.item::<f32>()? - 316.23).abs() < 0.01);
    Ok(())
}

#[test]
fn names_follow_types_and_repeat() -> Result<()> {
    let (a, b) = (Linear::new(1), Linear::new(1));
    a.forward(&ones([1, 1]))?;
    b.forward(&ones([1, 1]))?;
    assert_eq!((names(&a), Conv2D::new(1, 1).scope().name()), (names(&b), "conv2_d".to_owned()));
    Ok(())
}

#[test]
fn truncated_normals_are_narrower_than_their_stddev() -> Result<()> {
    let linear = Linear::new(1000);
    linear.forward(&ones([1, 100]))?;
    let w = variable(&linear, "w").value();
    let std = w.std()?.item::<f32>()?;
    assert!((std - 0.08796).abs() < 0.001, "{std}");
    assert!(w.abs()?.max()?.item::<f32>()? <= 0.2);
    Ok(())
}

#[test]
fn weights_of_transposed_convolutions_are_out_in_and_valid_outputs_are_long() -> Result<()> {
    let conv = Conv1DTranspose::new(5, 3).stride(2).padding(Padding::Valid);
    // (in - 1) stride + kernel is 7; one stride less one more
    assert_eq!(conv.forward(&ones([1, 3, 4]))?.shape(), &[1, 8, 5]);
    assert_eq!(variable(&conv, "w").shape(), &[3, 5, 4]);
    Ok(())
}

#[test]
fn a_bias_leaves_out_leading_dims_of_size_1() -> Result<()> {
    let bias = Bias::new().bias_dims([1, 2]);
    bias.forward(&ones([5, 1, 3]))?;
    assert_eq!(variable(&bias, "b").shape(), &[3]);
    Ok(())
}

#[test]
fn a_plain_pair_is_no_state_of_an_lstm() -> Result<()> {
    let state = Nest::tuple([ones([1, 2]), ones([1, 2])]);
    assert!(LSTM::new(2).step(&ones([1, 3]), &state).is_err());
    Ok(())
}

#[test]
fn rates_of_dropout_are_checked_in_training_only() -> Result<()> {
    let dropout = Dropout::new(1.5);
    assert!(dropout.forward_t(&ones([2]), false).is_ok());
    assert!(dropout.forward_t(&ones([2]), true).is_err());
    Ok(())
}

#[test]
fn a_finished_row_repeats_its_last_output_and_scalars_go_on() -> Result<()> {
    let step = |x: &Nest, state: &Nest| {
        let (sum, count) = (state.get(0)?.leaf()?, state.get(1)?.leaf()?);
        let y = (x.leaf()? + sum)?;
        Ok((Nest::from(y.clone()), Nest::tuple([y, (count + 1)?])))
    };
    let xs = ones([4, 2, 1]);
    let start = Nest::tuple([Tensor::zeros([2, 1], DType::F32)?, Tensor::from(0i64)]);
    let lengths = Tensor::from([2i64, 0]);
    let (ys, last) = unroll_with(step, &xs.into(), &start, Some(&lengths))?;
    assert_eq!(floats(ys.leaf()?), [1.0, 0.0, 2.0, 0.0, 2.0, 0.0, 2.0, 0.0]);
    assert_eq!(last.get(1)?.leaf()?.item::<i64>()?, 4);
    Ok(())
}

#[test]
fn an_mlp_drops_before_its_activation() -> Result<()> {
    // cos(0) is 1: what was dropped does not end as 0.
    let mlp = MLP::new([64]).activation(Tensor::cos).dropout_rate(0.5).activate_final(true);
    let y = floats(&mlp.forward_t(&ones([1, 8]), true)?);
    assert!(y.contains(&1.0) && !y.contains(&0.0));
    Ok(())
}

#[test]
fn cifar10_conv_net_evaluates_by_the_statistics_of_its_batch() -> Result<()> {
    let net = Cifar10ConvNet::new().output_channels([2]).strides([1]);
    let x = random::Generator::seed(1).normal([2, 4, 4, 3], 0.0, 1.0, DType::F32)?;
    net.forward_t(&x, true)?;
    let local = net.forward_with(&x, false, true)?.logits;
    assert_eq!(floats(&net.forward_t(&x, false)?), floats(&local));
    assert_ne!(floats(&net.forward_with(&x, false, false)?.logits), floats(&local));
    Ok(())
}

#[test]
fn a_code_that_was_never_used_becomes_zero() -> Result<()> {
    let quantizer = VectorQuantizerEMA::new(2, 2, 0.25, 0.9);
    quantizer.embeddings()?.assign(&Tensor::from([[1.0f32, -9.0], [0.0, -9.0]]))?;
    quantizer.forward_t(&Tensor::from([[1.0f32, 0.0]]), true)?;
    let table = floats(&quantizer.embeddings()?.value());
    assert_eq!((table[1], table[3]), (0.0, 0.0));
    Ok(())
}

#[test]
fn adam_counts_a_call_for_parameters_without_an_update_too() -> Result<()> {
    let (a, b) =
        (Variable::from_tensor("a", Tensor::from(1.0f64)), Variable::from_tensor("b", Tensor::from(1.0f64)));
    let adam = optim::Adam::new(0.1);
    let g = || Some(Gradient::from(Tensor::from(1.0f64)));
    adam.apply(&[g(), None], &[a.clone(), b.clone()])?;
    adam.apply(&[g(), g()], &[a.clone(), b.clone()])?;
    assert!((b.value().item::<f64>()? - 0.9255863).abs() < 1e-6);
    Ok(())
}

#[test]
fn mixed_precision_returns_f32() -> Result<()> {
    let linear = Modes::new([DType::F16]).of(Linear::new(1));
    let x = Tensor::ones([1, 2], DType::F64)?;
    mixed_precision::scope(DType::F16, || {
        assert_eq!(linear.forward(&x)?.dtype(), DType::F64);
        assert_eq!(linear.forward(&x)?.dtype(), DType::F32);
        Ok(())
    })
}

#[test]
fn a_gru_resets_the_state_before_its_weights_and_z_replaces_it() -> Result<()> {
    // With b_z large the state is replaced: h' = a.
    let core = GRU::new(1).w_i_init(init::Zeros).w_h_init(init::Zeros);
    let x = ones([1, 1]);
    core.step(&x, &core.initial_state(1)?)?;
    variable(&core, "b").assign(&Tensor::from([100.0f32, 0.0, 0.0]))?;
    let (y, _) = core.step(&x, &ones([1, 1]).into())?;
    assert_eq!(y.item::<f32>()?, 0.0);
    Ok(())
}

#[test]
fn the_outermost_getter_is_called() -> Result<()> {
    let v = Variable::from_tensor("v", Tensor::from(2.0f32));
    let read = || custom_variable_getter(|v| v + 1.0).run(|| Ok(v.value()));
    assert_eq!(custom_variable_getter(|v| v * 10.0).run(read)?.item::<f32>()?, 20.0);
    Ok(())
}

#[test]
fn merging_no_dims_is_refused() {
    assert!(merge_leading_dims(&ones([2, 3]), 0).is_err());
}

#[test]
fn integers_from_the_default_uniform_are_zero() -> Result<()> {
    use init::Initializer;
    let y = init::RandomUniform::default().init(&Shape::from([3]), DType::I32)?;
    assert_eq!(y.to_vec::<i32>()?, [0; 3]);
    Ok(())
}
