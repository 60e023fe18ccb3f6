//! Bad input is an error that says where and what would be right, and leaves every variable as it was.

use couplet::optim::{Adam, Optimizer, SGD};
use couplet::prelude::*;

/// The message of a failure, which must name each of `parts`.
#[track_caller]
fn refused<T>(outcome: Result<T>, parts: &[&str]) -> String {
    let message = outcome.err().expect("bad input must be refused").to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} is missing in {message:?}");
    }
    message
}

fn zeros(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape, DType::F32).unwrap()
}

fn values(module: &impl Module) -> Vec<Vec<f32>> {
    module
        .variables()
        .unwrap()
        .iter()
        .map(|v| v.value().cast(DType::F32).unwrap().to_vec().unwrap())
        .collect()
}

#[test]
fn a_wrong_rank_creates_nothing_and_the_layer_can_be_called_again() {
    let (linear, conv, bias) = (Linear::new(2), Conv2D::new(2, 3), Bias::new());
    refused(linear.forward(&zeros(&[3])), &["in linear:", "[3]", "rank 2 or more"]);
    refused(conv.forward(&zeros(&[1, 4, 4])), &["in conv2_d:", "[1, 4, 4]", "rank 4"]);
    refused(bias.forward(&zeros(&[4])), &["in bias:", "rank 2 or more"]);
    assert!(linear.variables().is_err() && conv.variables().is_err() && bias.variables().is_err());
    linear.forward(&zeros(&[1, 3])).unwrap();
    conv.forward(&zeros(&[1, 4, 4, 1])).unwrap();
}

#[test]
fn another_channel_count_on_the_second_call_is_refused_with_both_numbers() {
    let conv = Conv2D::new(2, 3);
    conv.forward(&zeros(&[1, 4, 4, 3])).unwrap();
    let before = values(&conv);
    // A multiple of the first count would run as a grouped convolution in the reference.
    refused(conv.forward(&zeros(&[1, 4, 4, 6])), &["in conv2_d:", "3 input channels", "6"]);
    let linear = Linear::new(2);
    linear.forward(&zeros(&[1, 4])).unwrap();
    refused(linear.forward(&zeros(&[1, 5])), &["in linear:", "[1, 5]", "4"]);
    let norm = BatchNorm::new(true, true);
    norm.forward_t(&zeros(&[2, 3]), true).unwrap();
    let averages = values(&norm);
    refused(norm.forward_t(&zeros(&[2, 4]), true), &["in batch_norm:", "[2, 4]", "[3]"]);
    assert_eq!(values(&norm), averages);
    assert_eq!(values(&conv), before);
}

#[test]
fn a_path_names_the_containers_edge() {
    let net = Sequential::new().push(Linear::new(2)).push(Tensor::relu).push(Linear::new(1)).name("net");
    net.forward(&zeros(&[1, 3])).unwrap();
    refused(net.forward(&zeros(&[1, 4])), &["in net: _layers/0 (linear): "]);
    let mlp = MLP::new([2, 1]);
    mlp.forward(&zeros(&[1, 3])).unwrap();
    refused(mlp.forward(&zeros(&[1, 4])), &["in mlp/linear_0: "]);
}

#[test]
fn an_empty_batch_gives_an_empty_output() {
    let net = Sequential::new()
        .push(Conv2D::new(2, 3))
        .push(BatchNorm::new(true, true))
        .push(Tensor::relu)
        .push(Flatten::new())
        .push(Linear::new(5))
        .push(Dropout::new(0.5));
    let tape = GradientTape::new();
    let y = net.forward_t(&zeros(&[0, 4, 4, 1]), true).unwrap();
    assert_eq!(y.shape(), &[0, 5]);
    let params = net.trainable_variables().unwrap();
    let loss = y.sum().unwrap();
    for gradient in tape.gradient(&loss, &params).unwrap().iter().flatten() {
        let sum = gradient.dense().unwrap().abs().unwrap().sum().unwrap();
        assert_eq!(sum.item::<f32>().unwrap(), 0.0);
    }
}

#[test]
fn empty_reductions_are_defined_or_refused() {
    let x = zeros(&[0, 3]);
    assert_eq!(x.sum().unwrap().item::<f32>().unwrap(), 0.0);
    assert!(x.mean().unwrap().item::<f32>().unwrap().is_nan());
    assert_eq!(x.max().unwrap().item::<f32>().unwrap(), f32::NEG_INFINITY);
    refused(x.argmax(0), &["argmax"]);
    assert_eq!(x.argmax(1).unwrap().shape(), &[0]);
}

#[test]
fn a_learning_rate_that_is_not_finite_changes_nothing() {
    let v = Variable::from_tensor("v", Tensor::from([1.0f32, 2.0]));
    let g = || vec![Some(Gradient::Dense(Tensor::from([1.0f32, 1.0])))];
    for rate in [f64::NAN, f64::INFINITY] {
        refused(SGD::new(rate).apply(&g(), std::slice::from_ref(&v)), &["learning_rate"]);
        let adam = Adam::new(rate);
        refused(adam.apply(&g(), std::slice::from_ref(&v)), &["learning_rate"]);
    }
    assert_eq!(v.value().to_vec::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn gradients_must_fit_their_parameters() {
    let v = Variable::from_tensor("net/v", Tensor::from([1.0f32, 2.0]));
    let w = Variable::from_tensor("net/w", Tensor::from([3.0f32]));
    let dense = |values: &[f32]| Some(Gradient::Dense(Tensor::from(values)));
    let adam = Adam::new(0.1);
    refused(adam.apply(&[dense(&[1.0, 1.0])], &[v.clone(), w.clone()]), &["1", "2"]);
    refused(
        adam.apply(&[dense(&[1.0, 1.0]), dense(&[1.0, 1.0])], &[v.clone(), w.clone()]),
        &["net/w", "[2]", "[1]"],
    );
    refused(adam.apply(&[], &[]), &["parameter"]);
    refused(adam.apply(&[None, None], &[v.clone(), w.clone()]), &["parameter"]);
    let wide = Some(Gradient::Dense(Tensor::from([1.0f64])));
    refused(adam.apply(&[dense(&[1.0, 1.0]), wide], &[v.clone(), w.clone()]), &["f64", "f32", "net/w"]);
    assert_eq!(v.value().to_vec::<f32>().unwrap(), [1.0, 2.0]);
    // A refused step does not count: the next one is Adam's first, which moves each element by the learning rate.
    adam.apply(&[dense(&[1.0, -1.0]), None], &[v.clone(), w.clone()]).unwrap();
    let moved = v.value().to_vec::<f32>().unwrap();
    assert!((moved[0] - 0.9).abs() < 1e-6 && (moved[1] - 2.1).abs() < 1e-6, "{moved:?}");
}

#[test]
fn labels_must_be_classes() {
    let logits = zeros(&[2, 3]);
    let loss = |labels: Tensor| losses::sparse_softmax_cross_entropy(&logits, &labels);
    refused(loss(Tensor::from([0i64, 3])), &["label", "3", "0 to 2"]);
    refused(loss(Tensor::from([0i64, -1])), &["label", "-1"]);
    refused(loss(Tensor::from([0.0f32, 1.0])), &["f32", "integer"]);
    refused(loss(Tensor::from([0i64])), &["[1]", "[2]"]);
}

#[test]
fn integers_are_refused_by_float_ops() {
    let x = Tensor::from([[1i32, 2]]);
    for outcome in [x.exp(), x.sigmoid(), x.softmax(-1), x.dropout(0.5, None, true)] {
        refused(outcome, &["i32", "float"]);
    }
    refused(Linear::new(2).forward(&x), &["in linear:", "i32", "float"]);
    refused(BatchNorm::new(true, true).forward_t(&x, true), &["in batch_norm:", "i32", "float"]);
}

#[test]
fn strides_rates_and_kernels_follow_the_reference() {
    let x = zeros(&[1, 4, 4, 1]);
    refused(Conv2D::new(2, 3).stride(0).forward(&x), &["in conv2_d:", "stride", "1 or more"]);
    refused(Conv2D::new(2, 3).stride(2).rate(2).forward(&x), &["in conv2_d:", "rate", "stride"]);
    refused(Conv2D::new(2, [3, 3, 3]).forward(&x), &["in conv2_d:", "kernel_shape"]);
    refused(Conv2D::new(2, 3).data_format("NHCW").forward(&x), &["in conv2_d:", "NHCW"]);
    refused(Conv2D::new(2, 3).with_bias(false).b_init(init::Ones).forward(&x), &["in conv2_d:", "b_init"]);
    // A kernel larger than a VALID input fits nowhere: the output is empty, as in the reference.
    let y = Conv2D::new(2, 5).padding(Padding::Valid).forward(&x).unwrap();
    assert_eq!(y.shape(), &[1, 0, 0, 2]);
}

#[test]
fn what_must_know_about_training_says_how_to_tell_it() {
    let x = zeros(&[2, 3]);
    refused(BatchNorm::new(true, true).forward(&x), &["in batch_norm:", "forward_t"]);
    refused(Dropout::new(0.5).forward(&x), &["in dropout:", "forward_t"]);
    refused(MLP::new([2, 2]).dropout_rate(0.5).forward(&x), &["in mlp:", "forward_t"]);
    refused(Dropout::new(1.0).forward_t(&x, true), &["in dropout:", "rate", "1"]);
}

#[test]
fn a_name_that_is_no_identifier_and_variables_too_early_are_refused() {
    refused(Linear::new(2).name("1abc").forward(&zeros(&[1, 2])), &["1abc", "identifier"]);
    let message = refused(Linear::new(2).variables(), &["Linear(output_size=2)", "allow_empty_variables"]);
    assert!(message.contains("call"), "{message}");
}

#[test]
fn huge_shapes_and_axes_out_of_range_are_errors() {
    refused(Tensor::zeros([usize::MAX, 3], DType::F32), &["18446744073709551615", "bytes"]);
    let x = zeros(&[2, 3]);
    for outcome in [x.sum_axes(2, false), x.softmax(-3), x.transpose(&[0, 0]), x.expand_dims(4), x.squeeze(0)]
    {
        refused(outcome, &[]);
    }
    refused(x.reshape([4, 2]), &["[2, 3]", "[4, 2]"]);
    refused(x.broadcast_to([2, 2]), &["[2, 3]", "[2, 2]"]);
}
