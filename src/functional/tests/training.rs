//! A functional training run takes the steps of the imperative one, bit for bit.

use super::*;
use crate::functional;
use crate::module::existing_variables;

/// Ten steps by a tape and an optimiser that changes the module's variables; ten by functions. Everything random comes
/// from generators of the same seed.
fn compare<M: Module + 'static, O: Optimizer>(
    net: impl Fn() -> M,
    loss: impl Fn(&M, &(Tensor, Tensor)) -> Result<Tensor> + Copy,
    optimizer: impl Fn() -> O,
    batches: &[(Tensor, Tensor)],
) {
    let direct = net();
    let run = || -> Result<_> {
        let opt = optimizer();
        let mut found = Vec::new();
        for step in 0..10 {
            let tape = GradientTape::new();
            let loss = loss(&direct, &batches[step % batches.len()])?;
            let mut params: Vec<_> = direct.named_variables()?;
            params.sort_by(|(a, _), (b, _)| a.cmp(b));
            let params: Vec<Variable> =
                params.into_iter().map(|(_, v)| v).filter(Variable::trainable).collect();
            opt.apply(&tape.gradient(&loss, &params)?, &params)?;
            found.push(bits(&loss));
        }
        Ok(found)
    };
    let want: Vec<_> = random::with(&Generator::seed(5), run).unwrap();

    let net = net();
    let f = functional::transform_with_state(&net, loss);
    let updater = functional::optimizer(optimizer());
    let run = || -> Result<_> {
        let (mut params, mut state) = f.init(&random::current(), &batches[0])?;
        let mut opt = updater.init(&params)?;
        let mut found = Vec::new();
        for step in 0..10 {
            let batch = &batches[step % batches.len()];
            let ((y, next), grads) =
                functional::value_and_grad_with_aux(|params| f.apply(params, &state, batch), &params)?;
            state = next;
            (params, opt) = updater.apply(opt, &grads, params)?;
            found.push(bits(&y));
        }
        Ok((found, params, state))
    };
    let (found, params, state) = random::with(&Generator::seed(5), run).unwrap();
    assert_eq!(found, want);
    assert_eq!(all_bits(&params, &state), bits_of_module(&direct));
    assert!(existing_variables(net.node()).is_empty(), "the module itself makes nothing");
    assert_ne!(found[0], found[9]);
}

fn regression(dtype: DType) -> Vec<(Tensor, Tensor)> {
    (0..3).map(|i| (normal(i, &[8, 5], dtype), normal(10 + i, &[8, 1], dtype))).collect()
}

fn mlp_loss(net: &MLP, (x, y): &(Tensor, Tensor)) -> Result<Tensor> {
    losses::mean_squared_error(&net.forward(x)?, y)?.mean()
}

#[test]
fn a_perceptron_with_sgd() {
    compare(|| MLP::new([7, 1]), mlp_loss, || optim::SGD::new(0.1), &regression(DType::F32));
}

#[test]
fn a_perceptron_with_momentum() {
    let optimizer = || optim::Momentum::new(0.1, 0.9).use_nesterov(true);
    compare(|| MLP::new([7, 1]), mlp_loss, optimizer, &regression(DType::F32));
}

#[test]
fn a_perceptron_with_rmsprop() {
    let optimizer = || optim::RMSProp::new(0.01).momentum(0.9).centered(true);
    compare(|| MLP::new([7, 1]), mlp_loss, optimizer, &regression(DType::F32));
}

#[test]
fn a_perceptron_of_f64_with_adam() {
    compare(|| MLP::new([7, 1]), mlp_loss, || optim::Adam::new(0.01), &regression(DType::F64));
}

#[test]
fn a_conv_net_with_batch_normalisation_and_adam() {
    let net = || {
        let norm = || BatchNorm::new(true, true);
        Sequential::new()
            .push(Conv2D::new(4, 3))
            .push(norm())
            .push(Tensor::relu)
            .push(Conv2D::new(4, 3).stride(2))
            .push(norm())
            .push(Flatten::new())
            .push(Linear::new(3))
    };
    let loss = |net: &Sequential, (x, labels): &(Tensor, Tensor)| {
        losses::sparse_softmax_cross_entropy(&net.forward_t(x, true)?, labels)?.mean()
    };
    let batch = |i| (normal(i, &[6, 8, 8, 2], DType::F32), Tensor::from([0i64, 1, 2, 2, 1, 0]));
    compare(net, loss, || optim::Adam::new(0.01), &[batch(1), batch(2)]);
}

#[test]
fn an_embedding_whose_gradients_are_sparse() {
    let net = || Embed::new(6).embed_dim(3);
    let loss =
        |net: &Embed, (ids, y): &(Tensor, Tensor)| losses::mean_squared_error(&net.forward(ids)?, y)?.mean();
    let batch = |ids: [i64; 3], i| (Tensor::from(ids), normal(i, &[3, 3], DType::F32));
    compare(net, loss, || optim::Adam::new(0.1), &[batch([0, 4, 4], 1), batch([2, 0, 1], 2)]);
}

#[test]
fn hyper_parameters_that_follow_a_schedule_or_are_variables() {
    let decay = || optim::SGD::new(optim::schedule::ExponentialDecay::new(0.1, 2, 0.5));
    compare(|| MLP::new([7, 1]), mlp_loss, decay, &regression(DType::F32));
    let rate = Variable::from_tensor("rate", Tensor::from(0.5f32));
    let updater = functional::sgd(rate.clone());
    let params = Params::from([("w".to_owned(), Tensor::from([1.0f32]))]);
    let state = updater.init(&params).unwrap();
    let grads = functional::Gradients::from([("w".to_owned(), Tensor::from([1.0f32]).into())]);
    let (stepped, _) = updater.apply(state.clone(), &grads, params.clone()).unwrap();
    assert_eq!(item(&stepped["w"]), 0.5);
    // The rate is part of the state; the variable that it came from no longer counts.
    rate.assign(&Tensor::from(0.0f32)).unwrap();
    let path = state.keys().find(|path| path.contains("learning_rate")).unwrap();
    let slower = with(&state, path, Some(Tensor::from(0.25f32)));
    let (stepped, _) = updater.apply(slower, &grads, params).unwrap();
    assert_eq!(item(&stepped["w"]), 0.75);
}

#[test]
fn an_optimiser_changes_parameters_in_place_where_nobody_else_holds_them() {
    let updater = functional::adam(0.1);
    let params = Params::from([("w".to_owned(), Tensor::ones([4096], DType::F32).unwrap())]);
    let state = updater.init(&params).unwrap();
    let grads = functional::Gradients::from([("w".to_owned(), ones(&[4096]).into())]);
    let at = |x: &Tensor| x.array::<f32>().unwrap().as_ptr();
    let (mut params, mut state) = updater.apply(state, &grads, params).unwrap();
    let places = [at(&params["w"]), at(&state["m/0"]), at(&state["v/0"])];
    for _ in 0..3 {
        (params, state) = updater.apply(state, &grads, params).unwrap();
    }
    assert_eq!([at(&params["w"]), at(&state["m/0"]), at(&state["v/0"])], places);
    let kept = params.clone();
    let before = bits_of(&kept);
    updater.apply(state, &grads, params).unwrap();
    assert_eq!(bits_of(&kept), before);
}
