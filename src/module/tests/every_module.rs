//! What every module promises, run over one list of all modules.

use std::collections::BTreeSet;
use std::path::Path;

use crate::module::Node;
use crate::module::fill::{Plan, tree};
use crate::prelude::*;
use crate::{Waiting, recurrent, summary, with_threads};

/// A module and a call that makes all its variables.
trait Subject {
    fn module(&self) -> &dyn Module;
    fn call(&self) -> Result<Tensor>;
    fn duplicate(&self) -> Box<dyn Subject>;

    /// The layer and the shape of its input, if it is one.
    fn layer(&self) -> Option<(&dyn Forward, &'static [usize])> {
        None
    }
}

struct Of<M, C> {
    module: M,
    call: C,
}

impl<M: Module + 'static, C: Fn(&M) -> Result<Tensor> + Copy + 'static> Subject for Of<M, C> {
    fn module(&self) -> &dyn Module {
        &self.module
    }

    fn call(&self) -> Result<Tensor> {
        (self.call)(&self.module)
    }

    fn duplicate(&self) -> Box<dyn Subject> {
        Box::new(Of { module: self.module.duplicate().unwrap(), call: self.call })
    }
}

/// A layer, called in training with an input of this shape.
struct Layer<M> {
    layer: M,
    shape: &'static [usize],
}

impl<M: Module + Forward + 'static> Subject for Layer<M> {
    fn module(&self) -> &dyn Module {
        &self.layer
    }

    fn call(&self) -> Result<Tensor> {
        self.layer.forward_t(&x(self.shape), true)
    }

    fn duplicate(&self) -> Box<dyn Subject> {
        Box::new(Layer { layer: self.layer.duplicate().unwrap(), shape: self.shape })
    }

    fn layer(&self) -> Option<(&dyn Forward, &'static [usize])> {
        Some((&self.layer, self.shape))
    }
}

type Make = Box<dyn Fn() -> Box<dyn Subject>>;

fn subject<M: Module + 'static>(
    make: impl Fn() -> M + 'static,
    call: impl Fn(&M) -> Result<Tensor> + Copy + 'static,
) -> Make {
    Box::new(move || Box::new(Of { module: make(), call }))
}

/// Distinct numbers around 0.
fn x(shape: &[usize]) -> Tensor {
    let size = shape.iter().product::<usize>();
    let numbers = (0..size).map(|i| (i as f32 * 0.7).sin()).collect();
    Tensor::from_vec::<f32>(numbers, shape).unwrap()
}

fn layer<M: Module + Forward + 'static>(make: impl Fn() -> M + 'static, shape: &'static [usize]) -> Make {
    Box::new(move || Box::new(Layer { layer: make(), shape }))
}

/// A core, called for two steps with an input of this shape.
fn core<M: RNNCore + 'static>(make: impl Fn() -> M + 'static, shape: &'static [usize]) -> Make {
    subject(make, move |core| {
        let xs = Tensor::stack(&[&x(shape), &x(shape)], 0)?;
        Ok(static_unroll(core, &xs, &core.initial_state(shape[0])?, None)?.0)
    })
}

fn every_module() -> Vec<Make> {
    vec![
        layer(|| Linear::new(3), &[2, 4]),
        layer(|| Linear::new(3).with_bias(false), &[2, 5, 4]),
        layer(|| Bias::new().b_init(init::RandomNormal::new(1.0)), &[2, 3]),
        layer(|| Conv1D::new(3, 2), &[2, 6, 2]),
        layer(|| Conv2D::new(3, 2).stride(2), &[2, 6, 5, 2]),
        layer(|| Conv3D::new(3, 2), &[2, 3, 4, 3, 2]),
        layer(|| BatchNorm::new(true, true), &[4, 3]),
        layer(|| BatchNorm::new(false, false), &[2, 3, 3, 2]),
        layer(|| Dropout::new(0.5), &[4, 8]),
        layer(Flatten::new, &[2, 3, 4]),
        layer(|| Reshape::new([-1, 2]), &[2, 3, 4]),
        layer(|| MLP::new([5, 3]).dropout_rate(0.3), &[2, 4]),
        layer(|| Conv1DTranspose::new(3, 2).stride(2), &[2, 4, 2]),
        layer(|| Conv2DTranspose::new(3, 2), &[2, 4, 3, 2]),
        layer(|| Conv3DTranspose::new(3, 2), &[2, 2, 3, 2, 2]),
        layer(|| DepthwiseConv2D::new(3).channel_multiplier(2), &[2, 4, 3, 2]),
        layer(|| SeparableConv2D::new(3, 2), &[2, 4, 3, 2]),
        subject(|| crate::nn::ParallelLinears::new(3), |maps| maps.forward(&x(&[2, 4, 3]))),
        subject(|| Embed::new(5).embed_dim(3), |embed| embed.forward(&Tensor::from([[4i64, 0], [2, 2]]))),
        subject(|| BatchApply::new(Linear::new(3)), |layer| layer.forward(&x(&[2, 4, 3]))),
        subject(crate::metrics::Sum::new, |sum| {
            sum.update(&x(&[2]))?;
            sum.value()
        }),
        subject(crate::metrics::Mean::new, |mean| {
            mean.update(&x(&[2]))?;
            mean.value()
        }),
        layer(|| LayerNorm::new(-1, true, true), &[2, 4, 5]),
        layer(|| InstanceNorm::new(true, true).data_format("NCHW"), &[2, 3, 4, 5]),
        layer(|| GroupNorm::new(2), &[2, 3, 4]),
        layer(RMSNorm::new, &[2, 3, 4]),
        layer(|| TransformerBlock::new(2, 4).causal(true).dropout_rate(0.2), &[2, 3, 8]),
        layer(|| LearnedPositions::new(6), &[2, 4, 5]),
        layer(
            || MultiHeadAttention::new(2, 4).causal(true).rotary(Default::default()).model_size(5),
            &[2, 4, 5],
        ),
        layer(
            || {
                Sequential::new()
                    .push(Conv2D::new(2, 3))
                    .push(Tensor::relu)
                    .push(Flatten::new())
                    .push(MLP::new([3]))
            },
            &[2, 4, 4, 1],
        ),
        subject(
            || ExponentialMovingAverage::new(0.9),
            |average| {
                average.update(&x(&[2]))?;
                average.value()
            },
        ),
        layer(|| crate::Deferred::new(|| Linear::new(3)), &[2, 4]),
        core(|| VanillaRNN::new(3), &[2, 4]),
        core(|| LSTM::new(3), &[2, 4]),
        core(|| LSTM::new(3).projection_size(2), &[2, 4]),
        core(|| GRU::new(3), &[2, 4]),
        core(|| Conv1DLSTM::new([4, 2], 3, 2), &[2, 4, 2]),
        core(|| Conv2DLSTM::new([4, 3, 2], 3, 2), &[2, 4, 3, 2]),
        core(|| Conv3DLSTM::new([4, 3, 2, 2], 3, 2), &[2, 4, 3, 2, 2]),
        core(|| DeepRNN::new().push(LSTM::new(3)).push(Tensor::tanh).push(GRU::new(2)), &[2, 4]),
        core(|| deep_rnn_with_skip_connections().push(LSTM::new(3)).push(GRU::new(2)), &[2, 4]),
        core(|| deep_rnn_with_residual_connections().push(LSTM::new(4)), &[2, 4]),
        core(|| recurrent::Residual::new(GRU::new(4)), &[2, 4]),
        core(|| lstm_with_recurrent_dropout(LSTM::new(3), 0.5).0, &[2, 4]),
        subject(
            || UnrolledLSTM::new(3),
            |network| Ok(network.unroll(&x(&[5, 2, 4]), &network.initial_state(2)?)?.0),
        ),
        subject(
            || TrainableState::for_core(&LSTM::new(3)),
            |start| Ok(start.initial_state(2)?.get("cell")?.leaf()?.clone()),
        ),
    ]
}

fn bits(tensor: &Tensor) -> Vec<u64> {
    tensor.cast(DType::F64).unwrap().to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
}

fn bits_of_all(module: &dyn Module) -> Vec<(String, Vec<u64>)> {
    module.named_variables().unwrap().into_iter().map(|(path, v)| (path, bits(&v.value()))).collect()
}

fn seeded<R>(seed: u64, f: impl FnOnce() -> R) -> R {
    random::with(&Generator::seed(seed), f)
}

/// A module of the library that is missing above fails here: the list is compared with the source.
#[test]
fn the_list_is_complete() {
    let mut declared = BTreeSet::new();
    for folder in ["nn", "nets", "metrics", "recurrent"] {
        let Ok(files) = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder))
        else {
            continue;
        };
        for file in files {
            let path = file.unwrap().path();
            if path.is_dir() {
                continue; // tests of the file beside it
            }
            let source = std::fs::read_to_string(path).unwrap();
            for (_, after) in source.match_indices("#[derive(Module)]").map(|(at, _)| source.split_at(at)) {
                // Attributes, then the declaration; a private one is a helper of its file.
                let declaration = after.lines().find(|line| line.contains("struct ")).unwrap();
                let Some(name) = declaration.strip_prefix("pub struct ") else { continue };
                declared.insert(name.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned());
            }
        }
    }
    // One struct stands for the convolutions of all ranks.
    let name = |kind: &str| match kind {
        "Conv1D" | "Conv2D" | "Conv3D" => "ConvND".to_owned(),
        "Conv1DTranspose" | "Conv2DTranspose" | "Conv3DTranspose" => "ConvNDTranspose".to_owned(),
        "Conv1DLSTM" | "Conv2DLSTM" | "Conv3DLSTM" => "ConvNDLSTM".to_owned(),
        kind => kind.to_owned(),
    };
    let listed: BTreeSet<String> = every_module().iter().map(|make| name(make().module().kind())).collect();
    let missing: Vec<_> = declared.difference(&listed).collect();
    assert!(declared.contains("Linear") && missing.is_empty(), "missing in the list: {missing:?}");
}

#[test]
fn values_given_before_the_first_call_are_taken_and_nothing_is_drawn_for_them() {
    for make in every_module() {
        let source = make();
        seeded(1, || source.call()).unwrap();
        // Values that no initialiser gives, of the right shapes.
        let values: Vec<(String, Tensor)> = source
            .module()
            .named_variables()
            .unwrap()
            .into_iter()
            .map(|(path, v)| {
                let value = Tensor::full(v.shape().clone(), 2.0 + path.len() as f64, v.dtype()).unwrap();
                (path, value)
            })
            .collect();
        let restored = make();
        let kind = restored.module().kind();
        let waiting = values.iter().map(|(path, value)| (path.clone(), Waiting::Value(value.clone())));
        let plan = Plan::new(Node::Module(restored.module()), tree("restore", waiting).unwrap());
        assert!(plan.unused.is_empty(), "{kind}: {:?}", plan.unused);
        plan.apply("restore").unwrap();

        // What the call draws itself, it draws alike from a module that has all its variables.
        let settled = source.duplicate();
        for ((_, value), (_, variable)) in values.iter().zip(settled.module().named_variables().unwrap()) {
            variable.assign(value).unwrap();
        }
        let (a, b) = (Generator::seed(7), Generator::seed(7));
        let from_restored = random::with(&a, || restored.call()).unwrap();
        let from_settled = random::with(&b, || settled.call()).unwrap();
        assert_eq!(a.state(), b.state(), "{kind} drew for a variable that was restored");
        assert_eq!(bits(&from_restored), bits(&from_settled), "{kind}");
        assert_eq!(bits_of_all(restored.module()), bits_of_all(settled.module()), "{kind}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_on_any_number_of_threads() {
    for make in every_module() {
        let run = |threads| {
            let subject = make();
            let y = with_threads(threads, || seeded(3, || subject.call())).unwrap();
            (bits(&y), bits_of_all(subject.module()))
        };
        assert_eq!(run(1), run(2), "{}", make().module().kind());
    }
}

#[test]
fn a_copy_computes_the_same_and_shares_nothing() {
    for make in every_module() {
        let original = make();
        seeded(3, || original.call()).unwrap();
        let before = bits_of_all(original.module());
        let copy = original.duplicate();
        let kind = original.module().kind();
        assert_eq!(format!("{:?}", copy.module()), format!("{:?}", original.module()));
        assert_eq!(bits_of_all(copy.module()), before, "{kind}");
        let y = seeded(4, || copy.call()).unwrap();
        assert_eq!(bits_of_all(original.module()), before, "{kind}");
        assert_eq!(bits(&seeded(4, || original.call()).unwrap()), bits(&y), "{kind}");
    }
}

#[test]
fn names_begin_with_the_scope_and_variables_are_made_once() {
    for make in every_module() {
        let subject = make();
        subject.call().unwrap();
        let ids =
            || subject.module().named_variables().unwrap().iter().map(|(_, v)| v.id()).collect::<Vec<_>>();
        let first = ids();
        subject.call().unwrap();
        assert_eq!(ids(), first, "{}", subject.module().kind());
        let inside = subject.module().scope().path() + "/";
        // These hold modules that were made before them.
        let passed_in = ["sequential/", "deferred/", "batch_apply/"].contains(&inside.as_str())
            || ["deep_rnn", "_residual/", "_dropout/"].iter().any(|part| inside.contains(part));
        for (_, variable) in subject.module().named_variables().unwrap() {
            assert!(passed_in || variable.name().starts_with(&inside), "{} in {inside}", variable.name());
        }
    }
}

#[test]
fn a_wrong_rank_is_refused_in_the_name_of_the_module_and_makes_nothing() {
    for make in every_module() {
        let subject = make();
        let Some((layer, _)) = subject.layer() else { continue };
        let before = bits_of_all(subject.module());
        let kind = subject.module().kind();
        match layer.forward_t(&Tensor::from(1.0f32), true) {
            Ok(_) => assert_eq!(kind, "Dropout", "only dropout is defined for a scalar"),
            // What only passes its input on is not at fault: it is silent, or says where below it the fault is.
            Err(e) if kind == "Deferred" => assert!(e.to_string().contains("linear"), "{kind}: {e}"),
            Err(e) => assert!(e.to_string().contains(&subject.module().scope().path()), "{kind}: {e}"),
        }
        assert_eq!(bits_of_all(subject.module()), before, "{kind}");
        subject.call().unwrap();
    }
}

#[test]
fn an_empty_batch_gives_an_empty_output_and_makes_the_same_variables() {
    for make in every_module() {
        let (subject, other) = (make(), make());
        let Some((layer, shape)) = subject.layer() else { continue };
        let kind = subject.module().kind();
        let empty = Tensor::zeros([&[0], &shape[1..]].concat(), DType::F32).unwrap();
        for is_training in [true, false] {
            let y = layer.forward_t(&empty, is_training).unwrap_or_else(|e| panic!("{kind}: {e}"));
            assert_eq!((y.size(), y.dim(0).unwrap()), (0, 0), "{kind}");
        }
        let averages = bits_of_all(subject.module());
        subject.call().unwrap();
        let full = other.call().unwrap();
        let shapes = |subject: &dyn Subject| -> Vec<(String, Shape)> {
            let named = subject.module().named_variables().unwrap().into_iter();
            named.map(|(path, variable)| (path, variable.shape().clone())).collect()
        };
        assert_eq!(shapes(&*subject), shapes(&*other), "{kind}");
        assert_eq!(averages.len(), shapes(&*subject).len(), "{kind}");
        assert!(full.to_vec::<f32>().unwrap().iter().all(|y| y.is_finite()), "{kind}");
    }
}

#[test]
fn another_batch_size_uses_the_same_variables() {
    for make in every_module() {
        let subject = make();
        let Some((layer, shape)) = subject.layer() else { continue };
        subject.call().unwrap();
        let ids =
            || subject.module().named_variables().unwrap().iter().map(|(_, v)| v.id()).collect::<Vec<_>>();
        let first = ids();
        for batch in [1, 7] {
            let y = layer.forward_t(&x(&[&[batch], &shape[1..]].concat()), true).unwrap();
            assert_eq!(y.dim(0).unwrap(), batch, "{}", subject.module().kind());
        }
        assert_eq!(ids(), first, "{}", subject.module().kind());
    }
}

#[test]
fn doubles_stay_doubles() {
    for make in every_module() {
        let subject = make();
        let Some((layer, shape)) = subject.layer() else { continue };
        let kind = subject.module().kind();
        let y = layer.forward_t(&x(shape).cast(DType::F64).unwrap(), true).unwrap();
        assert_eq!(y.dtype(), DType::F64, "{kind}");
        for (path, variable) in subject.module().named_variables().unwrap() {
            assert!(
                [DType::F64, DType::I64].contains(&variable.dtype()),
                "{kind}: {path} is {}",
                variable.dtype()
            );
        }
        if subject.module().named_variables().unwrap().iter().any(|(_, variable)| variable.trainable()) {
            assert!(layer.forward_t(&x(shape), true).is_err(), "{kind} mixes dtypes");
        }
    }
}

/// The gradients of a call, by path of the variables that get one.
fn reached(subject: &dyn Subject) -> BTreeSet<String> {
    let tape = GradientTape::new();
    let y = subject.call().unwrap();
    let named = subject.module().named_variables().unwrap();
    let variables: Vec<&Variable> = named.iter().map(|(_, variable)| variable).collect();
    // The sum of a normalised batch does not depend on the scale; its product with unequal numbers does.
    let weights = x(y.shape());
    let gradients = tape.gradient_with_seed(&y, &weights, &variables).unwrap();
    let with = named.iter().zip(gradients).filter(|(_, gradient)| gradient.is_some());
    with.map(|((path, _), _)| path.clone()).collect()
}

#[test]
fn gradients_reach_every_trainable_variable_and_no_other() {
    for make in every_module() {
        let subject = make();
        if subject.layer().is_none() {
            continue;
        }
        let got = reached(&*subject);
        let named = subject.module().named_variables().unwrap().into_iter();
        let want = named.filter(|(_, variable)| variable.trainable()).map(|(path, _)| path).collect();
        assert_eq!(got, want, "{}", subject.module().kind());
    }
}

#[test]
fn what_is_frozen_before_or_after_the_first_call_gets_no_gradient_until_it_is_thawed() {
    for make in every_module() {
        let (before, after) = (make(), make());
        let kind = before.module().kind();
        if before.layer().is_none() {
            continue;
        }
        before.module().freeze("").unwrap();
        after.call().unwrap();
        after.module().freeze("").unwrap();
        for subject in [before, after] {
            assert!(reached(&*subject).is_empty(), "{kind}");
            let named = subject.module().named_variables().unwrap();
            assert!(named.iter().all(|(_, variable)| variable.is_frozen()), "{kind}");
            subject.module().thaw("").unwrap();
            let trainable = named.iter().filter(|(_, variable)| variable.trainable()).count();
            assert_eq!(reached(&*subject).len(), trainable, "{kind}");
        }
    }
}

#[test]
fn the_printed_form_begins_with_the_type_and_tables_can_be_made() {
    for make in every_module() {
        let subject = make();
        let kind = subject.module().kind();
        assert!(format!("{:?}", subject.module()).starts_with(&format!("{kind}(")), "{:?}", subject.module());
    }
    // 28 * 28 outputs of 9 products for each of 32 channels; then of 9 * 32; then 25,088 products for each of 10.
    let cnn = Sequential::new()
        .push(Conv2D::new(32, 3))
        .push(Tensor::relu)
        .push(Conv2D::new(32, 3))
        .push(Tensor::relu)
        .push(Flatten::new())
        .push(Linear::new(10));
    let expected = "\
| Module     | Type       | Output               | Parameters   | Multiply-adds   | Bytes     |
|------------+------------+----------------------+--------------+-----------------+-----------|
| sequential | Sequential | f32[None,10]         | 0            | 0               | 0         |
| _layers/0  | Conv2D     | f32[None,28,28,32]   | 320          | 225,792         | 1,280     |
| _layers/2  | Conv2D     | f32[None,28,28,32]   | 9,248        | 7,225,344       | 36,992    |
| _layers/4  | Flatten    | f32[None,25088]      | 0            | 0               | 0         |
| _layers/5  | Linear     | f32[None,10]         | 250,890      | 250,880         | 1,003,560 |
| total      |            | f32[None,10]         | 260,458      | 7,702,016       | 1,041,832 |
260,458 of 260,458 parameters are trained";
    let printed = summary(&cnn, [None, Some(28), Some(28), Some(1)]).unwrap().to_string();
    let squeeze = |text: &str| text.replace('-', "").split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeeze(&printed), squeeze(expected), "{printed}");
}
