//! What `src/guide/sonnet/differences.md` claims, one test for each row of its tables.

use couplet::functional;
use couplet::mixed_precision::{self, Modes};
use couplet::nets::dnc;
use couplet::nn::{BaseBatchNorm, CrossReplicaBatchNorm, merge_leading_dims};
use couplet::prelude::*;
use couplet::regularizers::{L1, OffDiagonalOrthogonal, Regularizer};
use couplet::{Deferred, custom_variable_getter};

fn ones(shape: impl Into<Shape>) -> Tensor {
    Tensor::ones(shape, DType::F32).unwrap()
}

fn names(module: &dyn Module) -> Vec<String> {
    module.variables().unwrap().iter().map(|v| v.name().to_owned()).collect()
}

fn variable(module: &dyn Module, path: &str) -> Variable {
    module.variable(path).unwrap()
}

fn floats(x: &Tensor) -> Vec<f32> {
    x.to_vec().unwrap()
}

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

mod mirrored {
    use super::*;

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
        let net = Sequential::new().push(Linear::new(1)).push(Conv2D::new(1, 1)).push(Linear::new(1));
        assert!(net.forward(&ones([1, 2])).is_err()); // the convolution wants rank 4
        let (a, b) = (Linear::new(1), Linear::new(1));
        (a.forward(&ones([1, 1]))?, b.forward(&ones([1, 1]))?);
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
        let (a, b) = (
            Variable::from_tensor("a", Tensor::from(1.0f64)),
            Variable::from_tensor("b", Tensor::from(1.0f64)),
        );
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
}

mod mended {
    use super::*;

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
}
