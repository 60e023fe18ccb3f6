//! Networks: those that are plain layers, and those with several outputs.

use couplet::nets::{
    BatchNormConfig, BlockGroup, BottleNeckBlockV1, BottleNeckBlockV2, Cifar10ConvNet, Quantized, ResNet,
    ResNet50, VectorQuantizer, VectorQuantizerEMA,
};
use couplet::nn::{BatchNorm, BatchNormCall, Conv2D, Linear};
use couplet::{DType, Forward, Module, Result, Scope, Tensor, scoped};
use serde::Deserialize;

use super::layers::{named, set};
use super::{Inputs, Subject, one};
use crate::args::Args;
use crate::case::{self, Case};
use crate::check::{Check, Tolerance, compare};
use crate::values::Init;
use crate::{Outcome, Outputs, problem};

/// The settings of batch normalisations; what is left out has the default of a batch normalisation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Norms {
    decay_rate: Option<f64>,
    eps: Option<f64>,
    create_scale: Option<bool>,
    create_offset: Option<bool>,
}

impl From<Norms> for BatchNormConfig {
    fn from(norms: Norms) -> Self {
        BatchNormConfig {
            decay_rate: norms.decay_rate.unwrap_or(0.999),
            eps: norms.eps.unwrap_or(1e-5),
            create_scale: norms.create_scale.unwrap_or(true),
            create_offset: norms.create_offset.unwrap_or(true),
        }
    }
}

/// The module with the normalisations that are given, if some are.
fn normed<M>(module: M, set: fn(M, BatchNormConfig) -> M, args: &mut Args) -> Outcome<M> {
    Ok(match args.get::<Norms>("bn_config")? {
        Some(norms) => set(module, norms.into()),
        None => module,
    })
}

/// Channels, stride, and whether the shortcut is a projection.
fn sizes(args: &mut Args) -> Outcome<(usize, usize, bool)> {
    Ok((args.need("channels")?, args.need("stride")?, args.need("use_projection")?))
}

pub fn bottle_neck_v1(args: &mut Args) -> Outcome<BottleNeckBlockV1> {
    let (channels, stride, use_projection) = sizes(args)?;
    let block = BottleNeckBlockV1::new(channels, stride, use_projection);
    named(normed(block, BottleNeckBlockV1::bn_config, args)?, args)
}

pub fn bottle_neck_v2(args: &mut Args) -> Outcome<BottleNeckBlockV2> {
    let (channels, stride, use_projection) = sizes(args)?;
    let block = BottleNeckBlockV2::new(channels, stride, use_projection);
    named(normed(block, BottleNeckBlockV2::bn_config, args)?, args)
}

pub fn block_group(args: &mut Args) -> Outcome<BlockGroup> {
    let group = BlockGroup::new(args.need("channels")?, args.need("num_blocks")?, args.need("stride")?);
    let group = normed(group, BlockGroup::bn_config, args)?;
    Ok(set!(group, args, resnet_v2: bool))
}

pub fn resnet(args: &mut Args) -> Outcome<ResNet> {
    let net = ResNet::new(args.need::<Vec<usize>>("blocks_per_group_list")?, args.need("num_classes")?);
    let net = normed(net, ResNet::bn_config, args)?;
    Ok(set!(net, args, resnet_v2: bool, channels_per_group_list: Vec<usize>))
}

pub fn resnet50(args: &mut Args) -> Outcome<ResNet50> {
    let net = normed(ResNet50::new(args.need("num_classes")?), ResNet50::bn_config, args)?;
    Ok(set!(net, args, resnet_v2: bool))
}

/// What the case calls, and what else it needs.
pub fn cifar10(args: &mut Args) -> Outcome<Box<dyn Subject>> {
    Ok(Box::new(cifar10_net(args)?))
}

fn cifar10_net(args: &mut Args) -> Outcome<Cifar10ConvNet> {
    let mut net = Cifar10ConvNet::new();
    if let Some(format) = args.get::<String>("data_format")? {
        net = net.data_format(&format);
    }
    Ok(set!(net, args, num_classes: usize, w_init: Init, b_init: Init, output_channels: Vec<usize>,
        strides: Vec<usize>))
}

fn with_activations(activations: Vec<Tensor>, logits: Tensor) -> Outputs {
    let activations = activations.into_iter().enumerate();
    let named = activations.map(|(i, y)| (format!("activations/{i}"), y));
    named.chain([("logits".to_owned(), logits)]).collect()
}

impl Subject for Cifar10ConvNet {
    fn module(&self) -> &dyn Module {
        self
    }

    fn call(&self, x: &mut Inputs, args: &mut Args) -> Outcome<Outputs> {
        let x = x.next()?;
        let Some(is_training) = args.get("is_training")? else { return one(self.forward(&x)) };
        let y = self.forward_with(&x, is_training, args.or("test_local_stats", true)?)?;
        Ok(with_activations(y.activations, y.logits))
    }
}

/// The network as the reference computes it with channels first: the mean runs over the channels and the rows instead of over
/// rows and columns.
#[derive(Module)]
struct PooledOverChannels {
    scope: Scope,
    _conv_modules: Vec<Conv2D>,
    _bn_modules: Vec<BatchNorm>,
    _logits_module: Linear,
}

fn pooled_over_channels(args: &mut Args) -> Outcome<PooledOverChannels> {
    args.expect("data_format", "NCHW".to_owned())?;
    let channels = args.need::<Vec<usize>>("output_channels")?;
    let (strides, classes) = (args.need::<Vec<usize>>("strides")?, args.or("num_classes", 10)?);
    let scope = Scope::new("cifar10_conv_net");
    let inside = scope.enter();
    let conv = |(i, (&channels, &stride)): (usize, (&usize, &usize))| {
        Conv2D::new(channels, 3).stride(stride).data_format("NCHW").name(&format!("conv_2d_{i}"))
    };
    let _conv_modules: Vec<_> = channels.iter().zip(&strides).enumerate().map(conv).collect();
    let norm = |i| BatchNorm::new(false, true).data_format("NCHW").name(&format!("batch_norm_{i}"));
    let _bn_modules = (0..channels.len()).map(norm).collect();
    let _logits_module = Linear::new(classes).name("logits");
    drop(inside);
    Ok(PooledOverChannels { scope, _conv_modules, _bn_modules, _logits_module })
}

#[scoped]
impl PooledOverChannels {
    fn run(&self, x: &Tensor, is_training: bool, test_local_stats: bool) -> Result<(Vec<Tensor>, Tensor)> {
        let (mut activations, mut y) = (Vec::new(), x.clone());
        for (conv, norm) in self._conv_modules.iter().zip(&self._bn_modules) {
            let call = BatchNormCall { is_training, test_local_stats, ..BatchNormCall::default() };
            y = norm.forward_with(&conv.forward(&y)?, call)?.relu()?;
            activations.push(y.clone());
        }
        let pooled = y.mean_axes([1, 2], false)?;
        activations.push(pooled.clone());
        Ok((activations, self._logits_module.forward(&pooled)?))
    }
}

impl Subject for PooledOverChannels {
    fn module(&self) -> &dyn Module {
        self
    }

    fn call(&self, x: &mut Inputs, args: &mut Args) -> Outcome<Outputs> {
        let (is_training, local) = (args.need("is_training")?, args.or("test_local_stats", true)?);
        let (activations, logits) = self.run(&x.next()?, is_training, local)?;
        Ok(with_activations(activations, logits))
    }
}

/// The computation with which the reference arrived at a case that is a quirk of a network, or `None`.
pub fn quirk(case: &Case) -> Outcome<Option<Box<dyn Subject>>> {
    if !case.quirk || case.module != "Cifar10ConvNet" {
        return Ok(None);
    }
    let mut args = Args::new(&case.ctor);
    let subject = pooled_over_channels(&mut args)?;
    args.finish()?;
    Ok(Some(Box::new(subject)))
}

/// Checks what we compute instead: channels first gives what channels last gives.
pub fn mended(check: &Check<'_>) -> Outcome {
    let case = check.case;
    let build = |data_format: &str| -> Outcome<Cifar10ConvNet> {
        let mut ctor = case.ctor.clone();
        ctor.insert("data_format".into(), data_format.into());
        cifar10_net(&mut Args::new(&ctor))
    };
    let (first, last) = (build("NCHW")?, build("NHWC")?);
    for (_, x) in case.inputs()? {
        let swapped = x.transpose(&[0, 2, 3, 1])?;
        first.forward_t(&x, true)?;
        last.forward_t(&swapped, true)?;
        for ((path, from), (_, to)) in first.named_variables()?.iter().zip(last.named_variables()?) {
            to.assign(&from.value().reshape(to.shape().clone())?)
                .map_err(|e| problem(format!("{path}: {e}")))?;
        }
        let (got, want) = (first.forward_t(&x, true)?, last.forward_t(&swapped, true)?);
        let within = Tolerance { rtol: 1e-5, atol: 1e-6 };
        check.that(compare(&got, &want, within, 0.0, |_| false).is_ok(), || {
            "channels first does not give what channels last gives".to_owned()
        });
    }
    check.mended("with channels first the mean runs over rows and columns".to_owned());
    Ok(())
}

/// The dtype of a table.
fn table_dtype(args: &mut Args) -> Outcome<DType> {
    args.get::<String>("dtype")?.map_or(Ok(DType::F32), |name| case::dtype(&name))
}

fn quantized(y: Quantized) -> Outcome<Outputs> {
    let outputs = [
        ("distances", y.distances),
        ("encoding_indices", y.encoding_indices),
        ("encodings", y.encodings),
        ("loss", y.loss),
        ("perplexity", y.perplexity),
        ("quantize", y.quantize),
    ];
    Ok(outputs.into_iter().map(|(name, y)| (name.to_owned(), y)).collect())
}

pub fn vector_quantizer(args: &mut Args) -> Outcome<Box<dyn Subject>> {
    let (dim, count) = (args.need("embedding_dim")?, args.need("num_embeddings")?);
    let quantizer = VectorQuantizer::new(dim, count, args.need("commitment_cost")?).dtype(table_dtype(args)?);
    Ok(Box::new(named(quantizer, args)?))
}

impl Subject for VectorQuantizer {
    fn module(&self) -> &dyn Module {
        self
    }

    fn call(&self, x: &mut Inputs, args: &mut Args) -> Outcome<Outputs> {
        quantized(self.forward_t(&x.next()?, args.or("is_training", false)?)?)
    }
}

pub fn vector_quantizer_ema(args: &mut Args) -> Outcome<Box<dyn Subject>> {
    let (dim, count) = (args.need("embedding_dim")?, args.need("num_embeddings")?);
    let (cost, decay) = (args.need("commitment_cost")?, args.need("decay")?);
    let quantizer = VectorQuantizerEMA::new(dim, count, cost, decay).dtype(table_dtype(args)?);
    Ok(Box::new(set!(quantizer, args, epsilon: f64)))
}

impl Subject for VectorQuantizerEMA {
    fn module(&self) -> &dyn Module {
        self
    }

    fn call(&self, x: &mut Inputs, args: &mut Args) -> Outcome<Outputs> {
        quantized(self.forward_t(&x.next()?, args.or("is_training", false)?)?)
    }
}
