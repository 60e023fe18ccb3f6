//! One list of all modules, and a call of each.

use couplet::nets::{BlockGroup, BottleNeckBlockV1, BottleNeckBlockV2};
use couplet::prelude::*;
use couplet::recurrent;

/// A module, and a call with one tensor that makes all its variables.
pub trait Subject: Send {
    fn module(&self) -> &dyn Module;

    fn call_with(&self, x: &Tensor) -> Result<Tensor>;

    /// The shape of an input.
    fn shape(&self) -> &'static [usize];

    /// Whether the first axis of an input is that of a batch, and a scalar is none.
    fn takes_batches(&self) -> bool {
        true
    }

    fn duplicate(&self) -> Box<dyn Subject>;

    fn layer(&self) -> Option<&dyn Forward> {
        None
    }

    fn call(&self) -> Result<Tensor> {
        self.call_with(&x(self.shape()))
    }
}

struct Of<M, C> {
    module: M,
    shape: &'static [usize],
    takes_batches: bool,
    call: C,
}

impl<M: Module + 'static, C: Fn(&M, &Tensor) -> Result<Tensor> + Copy + Send + 'static> Subject for Of<M, C> {
    fn module(&self) -> &dyn Module {
        &self.module
    }

    fn call_with(&self, x: &Tensor) -> Result<Tensor> {
        (self.call)(&self.module, x)
    }

    fn shape(&self) -> &'static [usize] {
        self.shape
    }

    fn takes_batches(&self) -> bool {
        self.takes_batches
    }

    fn duplicate(&self) -> Box<dyn Subject> {
        Box::new(Of { module: self.module.duplicate().unwrap(), ..*self })
    }
}

/// A layer, called in training.
struct Layer<M> {
    layer: M,
    shape: &'static [usize],
}

impl<M: Module + Forward + 'static> Subject for Layer<M> {
    fn module(&self) -> &dyn Module {
        &self.layer
    }

    fn call_with(&self, x: &Tensor) -> Result<Tensor> {
        self.layer.forward_t(x, true)
    }

    fn shape(&self) -> &'static [usize] {
        self.shape
    }

    fn duplicate(&self) -> Box<dyn Subject> {
        Box::new(Layer { layer: self.layer.duplicate().unwrap(), shape: self.shape })
    }

    fn layer(&self) -> Option<&dyn Forward> {
        Some(&self.layer)
    }
}

/// Makes a module that computes with numbers of this dtype.
pub type Make = Box<dyn Fn(DType) -> Box<dyn Subject>>;

fn subject<M: Module + 'static>(
    make: impl Fn(DType) -> M + 'static,
    shape: &'static [usize],
    call: impl Fn(&M, &Tensor) -> Result<Tensor> + Copy + Send + 'static,
) -> Make {
    Box::new(move |dtype| Box::new(Of { module: make(dtype), shape, takes_batches: true, call }))
}

/// Something that takes tensors of any shape.
fn statistic<M: Module + 'static>(
    make: impl Fn() -> M + 'static,
    call: impl Fn(&M, &Tensor) -> Result<Tensor> + Copy + Send + 'static,
) -> Make {
    Box::new(move |_| Box::new(Of { module: make(), shape: &[2], takes_batches: false, call }))
}

/// A layer that takes the dtype of its first input.
fn layer<M: Module + Forward + 'static>(make: impl Fn() -> M + 'static, shape: &'static [usize]) -> Make {
    Box::new(move |_| Box::new(Layer { layer: make(), shape }))
}

/// A core, called for two steps.
fn core<M: RNNCore + 'static>(make: impl Fn(DType) -> M + 'static, shape: &'static [usize]) -> Make {
    subject(make, shape, |core, x| {
        if x.rank() == 0 {
            return Ok(core.step(x, &core.initial_state(1)?)?.0);
        }
        let xs = Tensor::stack(&[x, x], 0)?;
        Ok(static_unroll(core, &xs, &core.initial_state(x.dim(0)?)?, None)?.0)
    })
}

/// A label for each example.
fn labels(x: &Tensor) -> Result<Tensor> {
    let examples = x.shape().first().map_or(1, |&dim| dim as isize);
    Tensor::from([0i64, 3, 1]).slice(&[(0..examples).into()])
}

/// Distinct numbers around 0.
pub fn x(shape: &[usize]) -> Tensor {
    let size = shape.iter().product::<usize>();
    let numbers = (0..size).map(|i| (i as f32 * 0.7).sin()).collect();
    Tensor::from_vec::<f32>(numbers, shape).unwrap()
}

pub fn every_module() -> Vec<Make> {
    vec![
        layer(|| Linear::new(3), &[2, 4]),
        layer(|| Linear::new(3).with_bias(false), &[2, 5, 4]),
        layer(|| Bias::new().b_init(init::RandomNormal::new(1.0)), &[2, 3]),
        layer(|| Conv1D::new(3, 2), &[2, 6, 2]),
        layer(|| Conv2D::new(3, 2).stride(2), &[2, 6, 5, 2]),
        layer(|| Conv3D::new(3, 2), &[2, 3, 4, 3, 2]),
        layer(|| BatchNorm::new(true, true), &[4, 3]),
        layer(|| BatchNorm::new(false, false), &[2, 3, 3, 2]),
        layer(
            || {
                let mean = couplet::metrics::Mean::new;
                couplet::nn::BaseBatchNorm::new(true, false, mean(), mean())
            },
            &[4, 3],
        ),
        layer(
            || {
                let average = || ExponentialMovingAverage::new(0.9);
                couplet::nn::CrossReplicaBatchNorm::new(true, true, average(), average()).data_format("NCW")
            },
            &[4, 3, 2],
        ),
        layer(|| Dropout::new(0.5), &[4, 8]),
        layer(Flatten::new, &[2, 3, 4]),
        layer(|| Reshape::new([-1, 2]), &[2, 3, 4]),
        layer(|| MLP::new([5, 3]).dropout_rate(0.3), &[2, 4]),
        layer(|| Conv1DTranspose::new(3, 2).stride(2), &[2, 4, 2]),
        layer(|| Conv2DTranspose::new(3, 2), &[2, 4, 3, 2]),
        layer(|| Conv3DTranspose::new(3, 2), &[2, 2, 3, 2, 2]),
        layer(|| DepthwiseConv2D::new(3).channel_multiplier(2), &[2, 4, 3, 2]),
        layer(|| SeparableConv2D::new(3, 2), &[2, 4, 3, 2]),
        subject(
            |_| couplet::nn::ParallelLinears::new(3),
            &[4, 2, 3],
            |maps, x| {
                let x = if x.rank() == 3 { x.transpose(&[1, 0, 2])? } else { x.clone() };
                maps.forward(&x)
            },
        ),
        subject(
            |dtype| Embed::new(5).embed_dim(3).dtype(dtype),
            &[2, 2],
            |embed, x| embed.forward(&x.abs()?.cast(DType::I64)?),
        ),
        subject(|_| BatchApply::new(Linear::new(3)), &[2, 4, 3], BatchApply::forward),
        statistic(couplet::metrics::Sum::new, |sum, x| {
            sum.update(x)?;
            sum.value()
        }),
        statistic(couplet::metrics::Mean::new, |mean, x| {
            mean.update(x)?;
            mean.value()
        }),
        subject(
            |_| couplet::metrics::Accuracy::new(),
            &[3, 4],
            |accuracy, x| {
                accuracy.update(x, &labels(x)?)?;
                Ok(Tensor::from(accuracy.value()?))
            },
        ),
        subject(
            |_| couplet::metrics::TopK::new(2),
            &[3, 4],
            |top, x| {
                top.update(x, &labels(x)?)?;
                Ok(Tensor::from(top.value()?))
            },
        ),
        subject(
            |_| couplet::metrics::ConfusionMatrix::new(4),
            &[3, 4],
            |matrix, x| {
                matrix.update(x, &labels(x)?)?;
                matrix.value()
            },
        ),
        layer(|| LayerNorm::new(-1, true, true), &[2, 4, 5]),
        layer(|| InstanceNorm::new(true, true).data_format("NCHW"), &[2, 3, 4, 5]),
        layer(|| GroupNorm::new(2), &[2, 3, 4]),
        layer(RMSNorm::new, &[2, 3, 4]),
        layer(|| TransformerBlock::new(2, 4).causal(true).dropout_rate(0.2), &[2, 3, 8]),
        layer(|| LearnedPositions::new(6), &[2, 4, 5]),
        layer(|| BottleNeckBlockV1::new(8, 2, true), &[2, 4, 3, 4]),
        layer(|| BottleNeckBlockV2::new(8, 1, false), &[2, 4, 3, 8]),
        layer(|| BlockGroup::new(8, 2, 2).resnet_v2(true), &[2, 4, 3, 4]),
        // `ResNet50` is one of these, and too large to be run here.
        layer(|| ResNet::new([1, 2, 1, 1], 3).channels_per_group_list([4, 4, 8, 8]), &[2, 6, 5, 2]),
        layer(|| Cifar10ConvNet::new().output_channels([4, 3]).strides([2, 1]), &[2, 6, 5, 2]),
        subject(
            |dtype| VectorQuantizer::new(4, 3, 0.25).dtype(dtype),
            &[2, 4],
            |quantizer, x| Ok(quantizer.forward_t(x, true)?.loss),
        ),
        subject(
            |dtype| VectorQuantizerEMA::new(4, 3, 0.25, 0.9).dtype(dtype),
            &[2, 5, 4],
            |quantizer, x| Ok(quantizer.forward_t(x, true)?.quantize),
        ),
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
        statistic(
            || ExponentialMovingAverage::new(0.9),
            |average, x| {
                average.update(x)?;
                average.value()
            },
        ),
        layer(|| couplet::Deferred::new(|| Linear::new(3)), &[2, 4]),
        core(|dtype| VanillaRNN::new(3).dtype(dtype), &[2, 4]),
        core(|dtype| LSTM::new(3).dtype(dtype), &[2, 4]),
        core(|dtype| LSTM::new(3).projection_size(2).dtype(dtype), &[2, 4]),
        core(|dtype| GRU::new(3).dtype(dtype), &[2, 4]),
        core(|dtype| couplet::nets::dnc::FeedForward::new(3).dtype(dtype), &[2, 4]),
        core(|dtype| Conv1DLSTM::new([4, 2], 3, 2).dtype(dtype), &[2, 4, 2]),
        core(|dtype| Conv2DLSTM::new([4, 3, 2], 3, 2).dtype(dtype), &[2, 4, 3, 2]),
        core(|dtype| Conv3DLSTM::new([4, 3, 2, 2], 3, 2).dtype(dtype), &[2, 4, 3, 2, 2]),
        core(
            |dtype| {
                DeepRNN::new()
                    .push(LSTM::new(3).dtype(dtype))
                    .push(Tensor::tanh)
                    .push(GRU::new(2).dtype(dtype))
            },
            &[2, 4],
        ),
        core(
            |dtype| {
                deep_rnn_with_skip_connections()
                    .push(LSTM::new(3).dtype(dtype))
                    .push(GRU::new(2).dtype(dtype))
            },
            &[2, 4],
        ),
        core(|dtype| deep_rnn_with_residual_connections().push(LSTM::new(4).dtype(dtype)), &[2, 4]),
        core(|dtype| recurrent::Residual::new(GRU::new(4).dtype(dtype)), &[2, 4]),
        core(|dtype| lstm_with_recurrent_dropout(LSTM::new(3).dtype(dtype), 0.5).0, &[2, 4]),
        subject(
            |dtype| UnrolledLSTM::new(3).dtype(dtype),
            &[2, 5, 4],
            |network, x| {
                if x.rank() == 0 {
                    return Ok(network.unroll(x, &network.initial_state(1)?)?.0);
                }
                Ok(network.unroll(&x.transpose(&[1, 0, 2])?, &network.initial_state(x.dim(0)?)?)?.0)
            },
        ),
        statistic(
            || TrainableState::for_core(&LSTM::new(3)),
            |start, x| Ok(start.initial_state(x.dim(0)?)?.get("cell")?.leaf()?.clone()),
        ),
    ]
}

pub fn bits(tensor: &Tensor) -> Vec<u64> {
    tensor.cast(DType::F64).unwrap().to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
}

pub fn bits_of_all(module: &dyn Module) -> Vec<(String, Vec<u64>)> {
    module.named_variables().unwrap().into_iter().map(|(path, v)| (path, bits(&v.value()))).collect()
}

pub fn seeded<R>(seed: u64, f: impl FnOnce() -> R) -> R {
    random::with(&Generator::seed(seed), f)
}
