//! What the guide says is mended: the rows of the table, some of one kind in one test.

use couplet::mixed_precision::{self, Modes};
use couplet::nets::dnc;
use couplet::prelude::*;
use couplet::regularizers::{L1, OffDiagonalOrthogonal, Regularizer};
use couplet::{Deferred, custom_variable_getter};

use crate::{floats, ones, variable};

#[test]
fn every_call_is_checked() -> Result<()> {
    let linear = Linear::new(2);
    linear.forward(&ones([1, 3]))?;
    assert!(linear.forward(&ones([1, 4])).unwrap_err().to_string().contains("[1, 4]"));
    assert!(linear.forward(&ones([3])).is_err());
    let bias = Bias::new();
    bias.forward(&ones([2, 3]))?;
    assert!(bias.forward(&ones([2, 4])).is_err());
    let conv = Conv1D::new(1, 1);
    conv.forward(&ones([1, 2, 2]))?;
    assert!(conv.forward(&ones([1, 2, 4])).is_err()); // no grouped convolution
    let reshape = Reshape::new([-1]).preserve_dims(2);
    reshape.forward(&ones([1, 2, 3]))?;
    assert!(reshape.forward(&ones([1])).is_err());
    Ok(())
}

#[test]
fn a_refused_call_makes_no_variables() {
    let norm = LayerNorm::new(-1, true, true);
    assert!(norm.forward_with(&ones([2, 3]), Some(&ones([3])), None).is_err());
    assert!(norm.variables().is_err());
    let norm = GroupNorm::new(2);
    assert!(norm.forward(&ones([1, 3])).is_err());
    assert!(norm.variables().is_err());
}

#[test]
fn bad_dims_and_sizes_are_refused() {
    assert!(Bias::new().bias_dims([-5]).forward(&ones([1, 2, 3, 4])).is_err());
    assert!(Reshape::new([-1, -1]).forward(&ones([1, 1])).is_err());
    assert!(GroupNorm::new(0).forward(&ones([1, 4])).is_err());
    assert!(Embed::new(0).embed_dim(3).forward(&Tensor::from([0i64])).is_err());
    assert!(Embed::new(3).forward(&Tensor::from([-1i64])).is_err());
    assert!(LSTM::new(2).projection_size(0).initial_state(1).is_err());
    let strided = DepthwiseConv2D::new(3).stride(2).rate(2);
    assert!(strided.forward(&ones([1, 7, 7, 1])).is_err());
    let strided = Conv2D::new(1, 3).stride(2).rate(2);
    assert!(strided.forward(&ones([1, 7, 7, 1])).is_err());
    let x = ones([2, 3]);
    assert!(VectorQuantizer::new(4, 6, 0.25).forward_t(&x.reshape([3, 2]).unwrap(), true).is_err());
    assert!(VectorQuantizerEMA::new(3, 6, 0.25, 1.0).forward_t(&x, true).is_err());
}

#[test]
fn group_norm_takes_other_sizes_and_negative_axes() -> Result<()> {
    let norm = GroupNorm::new(2).axis([-2, -1]);
    norm.forward(&ones([1, 2, 4]))?;
    assert_eq!(norm.forward(&ones([2, 4, 4]))?.shape(), &[2, 4, 4]);
    Ok(())
}

#[test]
fn a_linear_layer_of_no_inputs_is_its_bias() -> Result<()> {
    let linear = Linear::new(2).b_init(init::Constant::new(3));
    assert_eq!(floats(&linear.forward(&ones([1, 0]))?), [3.0, 3.0]);
    Ok(())
}

#[test]
fn layer_norm_takes_other_ranks() -> Result<()> {
    let norm = LayerNorm::new(-1, true, true);
    norm.forward(&ones([1, 4]))?;
    assert_eq!(norm.forward(&ones([2, 3, 4]))?.shape(), &[2, 3, 4]);
    Ok(())
}

#[test]
fn batch_norm_takes_any_float_for_images() -> Result<()> {
    for dtype in [DType::F64, DType::F16, DType::BF16] {
        let y = BatchNorm::new(true, true).forward_t(&Tensor::ones([1, 2, 2, 3], dtype)?, true)?;
        assert_eq!(y.dtype(), dtype);
    }
    Ok(())
}

#[test]
fn channels_may_come_first_everywhere() -> Result<()> {
    let x = ones([1, 2, 4, 4]);
    assert_eq!(Conv2D::new(3, 3).data_format("NCHW").forward(&x)?.shape(), &[1, 3, 4, 4]);
    assert_eq!(Conv2D::new(3, 3).data_format("channels_first").forward(&x)?.shape(), &[1, 3, 4, 4]);
    assert_eq!(Conv2DTranspose::new(3, 3).data_format("NCHW").forward(&x)?.shape(), &[1, 3, 4, 4]);
    assert_eq!(DepthwiseConv2D::new(3).data_format("NCHW").forward(&x)?.shape(), &[1, 2, 4, 4]);
    let core = Conv2DLSTM::new([2, 4, 4], 3, 3).data_format("NCHW");
    assert_eq!(core.step(&x, &core.initial_state(1)?)?.0.shape(), &[1, 3, 4, 4]);
    let net = Cifar10ConvNet::new().output_channels([2]).strides([1]).data_format("NCHW");
    let images = random::Generator::seed(1).normal([1, 3, 4, 6], 0.0, 1.0, DType::F32)?;
    net.forward_t(&images, true)?;
    let y = net.forward_with(&images, false, true)?;
    assert_eq!(y.activations[1].shape(), &[1, 2]); // one mean for each channel
    Ok(())
}

#[test]
fn an_mlp_without_dropout_may_be_told_that_it_is_trained() -> Result<()> {
    let mlp = MLP::new([3]);
    assert_eq!(floats(&mlp.forward_t(&ones([1, 2]), true)?), floats(&mlp.forward(&ones([1, 2]))?));
    Ok(())
}

#[test]
fn printing_a_deferred_module_does_not_build_it() -> Result<()> {
    let deferred = Deferred::new(|| Linear::new(3));
    assert_eq!(format!("{deferred:?}"), "Deferred()");
    assert!(deferred.variables().is_err());
    deferred.target()?;
    assert_eq!(format!("{deferred:?}"), "Deferred(Linear(output_size=3))");
    Ok(())
}

#[test]
fn variables_are_listed_inside_a_getter() -> Result<()> {
    let linear = Linear::new(1);
    linear.forward(&ones([1, 1]))?;
    custom_variable_getter(|v| Ok(v.value().stop_gradient())).run(|| {
        assert_eq!(linear.variables()?.len(), 2);
        Ok(())
    })
}

#[test]
fn reversing_before_a_call_says_what_to_do() {
    for message in [
        Reshape::new([-1]).reversed().unwrap_err().to_string(),
        MLP::new([1]).reverse().unwrap_err().to_string(),
    ] {
        assert!(message.contains("call it on an input first"), "{message}");
    }
}

#[test]
fn lengths_may_be_any_integers_and_recurrent_dropout_takes_them() -> Result<()> {
    let (train, _) = lstm_with_recurrent_dropout(LSTM::new(2), 0.5);
    let xs = ones([3, 2, 1]);
    for lengths in [Tensor::from([1i64, 3]), Tensor::from([1i32, 3]), Tensor::from([1u8, 3])] {
        dynamic_unroll(&train, &xs, &train.initial_state(2)?, Some(&lengths))?;
        static_unroll(&train, &xs, &train.initial_state(2)?, Some(&lengths))?;
    }
    let message = TrainableState::for_core(&train).initial_state(2).unwrap_err().to_string();
    assert!(message.contains("parts without a value"), "{message}");
    Ok(())
}

#[test]
fn memories_are_squashed_by_the_caller() -> Result<()> {
    let memory = Tensor::from([[[2.0f32]]]);
    let y = dnc::read(&memory.tanh()?, &Tensor::from([[[1.0f32]]]))?;
    assert_eq!(y.item::<f32>()?, 2.0f32.tanh());
    Ok(())
}

#[test]
fn slots_follow_their_parameters() -> Result<()> {
    let v = |x: f32| Variable::from_tensor("v", Tensor::from(x));
    let (a, b) = (v(0.0), v(0.0));
    let g = |x: f32| Some(Gradient::from(Tensor::from(x)));
    let momentum = optim::Momentum::new(1.0, 0.5);
    momentum.apply(&[g(1.0), g(10.0)], &[a.clone(), b.clone()])?;
    momentum.apply(&[g(0.0), g(0.0)], &[b.clone(), a.clone()])?;
    assert_eq!((a.value().item::<f32>()?, b.value().item::<f32>()?), (-1.5, -15.0));
    let c = v(0.0); // a parameter that comes later gets slots then
    momentum.apply(&[g(1.0)], std::slice::from_ref(&c))?;
    assert_eq!(c.value().item::<f32>()?, -1.0);
    Ok(())
}

#[test]
fn a_failed_step_changes_nothing() -> Result<()> {
    let v = Variable::from_tensor("v", Tensor::from(1.0f32));
    let adam = optim::Adam::new(0.1);
    adam.apply(&[Some(Tensor::from(1.0f32).into())], std::slice::from_ref(&v))?;
    assert!(adam.apply(&[Some(Tensor::from(1.0f64).into())], std::slice::from_ref(&v)).is_err());
    assert_eq!(variable(&adam, "step").value().item::<i64>()?, 1);
    Ok(())
}

#[test]
fn half_floats_and_doubles_are_updated_in_a_type_that_can() -> Result<()> {
    let v = Variable::from_tensor("v", Tensor::from(1.0f32).cast(DType::BF16)?);
    let g = Tensor::from(1.0f32).cast(DType::BF16)?;
    optim::Adam::new(0.1).apply(&[Some(g.into())], std::slice::from_ref(&v))?;
    assert!(v.value().is_finite()?.item::<bool>()?);
    let v = Variable::from_tensor("v", Tensor::from(1.0f64));
    optim::SGD::new(0.1).apply(&[Some(Tensor::from(1.0f64).into())], std::slice::from_ref(&v))?;
    assert_eq!(v.value().item::<f64>()?, 0.9);
    Ok(())
}

#[test]
fn each_wrapped_layer_has_its_own_first_call_and_batch_norm_works_in_half() -> Result<()> {
    let norm = Modes::new([DType::F16]).of(BatchNorm::new(true, true));
    let x = Tensor::from([[1.0f32], [3.0]]);
    mixed_precision::scope(DType::F16, || {
        norm.forward_t(&x, true)?;
        norm.forward_t(&x, true)?;
        norm.forward_t(&x, false)
    })?;
    assert_eq!(variable(norm.layer(), "moving_mean/_counter").value().item::<i64>()?, 2);
    let there = std::thread::spawn(mixed_precision::mode);
    mixed_precision::scope(DType::F16, || {
        assert_eq!(there.join().unwrap(), None);
        Ok(())
    })
}

#[test]
fn a_second_init_gives_the_values_again_and_missing_parameters_are_an_error() -> Result<()> {
    let f = functional::transform(&Linear::new(1), |l, x: &Tensor| l.forward(x));
    let x = ones([1, 2]);
    let init = || f.init(&Generator::seed(1), &x);
    let (mut a, b) = (init()?, init()?);
    assert_eq!(floats(&a["w"]), floats(&b["w"]));
    a.remove("b");
    assert!(f.apply(&a, &x).unwrap_err().to_string().contains('b'));
    Ok(())
}

#[test]
fn functional_optimisers_take_sparse_updates() -> Result<()> {
    let embed = Embed::new(3).embed_dim(1).initializer(init::Zeros);
    let f = functional::transform(&embed, |embed, ids: &Tensor| embed.forward(ids)?.sum());
    let ids = Tensor::from([1i64]);
    let params = f.init(&Generator::seed(1), &ids)?;
    let (_, grads) = functional::value_and_grad(|params| f.apply(params, &ids), &params)?;
    let sgd = functional::sgd(1.0);
    let (params, _) = sgd.apply(sgd.init(&params)?, &grads, params)?;
    assert_eq!(floats(&params["embeddings"]), [0.0, -1.0, 0.0]);
    Ok(())
}

#[test]
fn identity_makes_integers_and_regularisers_say_their_names() -> Result<()> {
    use init::Initializer;
    let eye = init::Identity::new().init(&Shape::from([2, 2]), DType::I32)?;
    assert_eq!(eye.to_vec::<i32>()?, [1, 0, 0, 1]);
    assert!(format!("{:?}", OffDiagonalOrthogonal::new(0.1)).starts_with("OffDiagonalOrthogonal"));
    assert!(L1::new(-1.0).penalty(&[ones([1])]).is_err());
    Ok(())
}
