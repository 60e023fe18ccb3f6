//! Layers with one input and one output, from the arguments of their constructors.

use couplet::nets::MLP;
use couplet::nn::pad::LayerPadding;
use couplet::nn::{
    BatchApply, BatchNorm, Bias, Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose,
    ConvND, ConvNDTranspose, DepthwiseConv2D, Dropout, Embed, Flatten, GroupNorm, InstanceNorm, LayerNorm,
    Linear, NormAxes, ParallelLinears, Reshape, Sequential, Sizes,
};
use couplet::{Deferred, Forward, Module, Padding, Tensor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::args::{Args, OneOrMany};
use crate::case;
use crate::ops::PaddingSpec;
use crate::values::{Function, Init, PadFunction};
use crate::{Outcome, problem};

/// A layer with one input and one output.
pub trait Layer: Forward + Module {}

impl<M: Forward + Module> Layer for M {}

/// A layer from its constructor's arguments.
type Build = fn(&mut Args) -> Outcome<Box<dyn Layer>>;

/// All layers that are built.
const LAYERS: &[(&str, Build)] = &[
    ("BatchApply", |args| boxed(batch_apply(args)?)),
    ("BatchNorm", |args| boxed(batch_norm(args)?)),
    ("Bias", |args| boxed(bias(args)?)),
    ("Conv1D", |args| boxed(convolution(Conv1D::new, args)?)),
    ("Conv2D", |args| boxed(convolution(Conv2D::new, args)?)),
    ("Conv3D", |args| boxed(convolution(Conv3D::new, args)?)),
    ("Conv1DTranspose", |args| boxed(transposed(Conv1DTranspose::new, args)?)),
    ("Conv2DTranspose", |args| boxed(transposed(Conv2DTranspose::new, args)?)),
    ("Conv3DTranspose", |args| boxed(transposed(Conv3DTranspose::new, args)?)),
    ("Deferred", |args| boxed(deferred(args)?)),
    ("DepthwiseConv2D", |args| boxed(depthwise(args)?)),
    ("Dropout", |args| boxed(dropout(args)?)),
    ("Embed", |args| boxed(embed(args)?)),
    ("Flatten", |args| boxed(flatten(args)?)),
    ("Linear", |args| boxed(linear(args)?)),
    ("MLP", |args| boxed(mlp(args)?)),
    ("ParallelLinears", |args| boxed(parallel_linears(args)?)),
    ("Reshape", |args| boxed(reshape(args)?)),
    ("Sequential", |args| boxed(sequential(args)?)),
];

/// The layer of that name, or `None` if there is none.
pub fn build(module: &str, ctor: &Map<String, Value>) -> Outcome<Option<Box<dyn Layer>>> {
    let Some((_, build)) = LAYERS.iter().find(|(name, _)| *name == module) else { return Ok(None) };
    let mut args = Args::new(ctor);
    let layer = build(&mut args)?;
    args.finish()?;
    Ok(Some(layer))
}

fn boxed(layer: impl Layer + 'static) -> Outcome<Box<dyn Layer>> {
    Ok(Box::new(layer))
}

/// The module under the name that is given, if there is one.
pub fn named<M: Module>(module: M, args: &mut Args) -> Outcome<M> {
    Ok(match args.get::<String>("name")? {
        Some(name) => module.name(&name),
        None => module,
    })
}

/// Calls the setters whose arguments are given; `name` is one of them for every module.
macro_rules! set {
    ($module:expr, $args:ident, $($argument:ident: $kind:ty),+) => {{
        let mut module = named($module, $args)?;
        $(if let Some(value) = $args.get::<$kind>(stringify!($argument))? {
            module = module.$argument(value);
        })+
        module
    }};
}
pub(super) use set;

pub fn batch_norm(args: &mut Args) -> Outcome<BatchNorm> {
    let norm = BatchNorm::new(args.need("create_scale")?, args.need("create_offset")?);
    let norm = match args.get::<String>("data_format")? {
        Some(format) => norm.data_format(&format),
        None => norm,
    };
    Ok(set!(norm, args, decay_rate: f64, eps: f64, scale_init: Init, offset_init: Init))
}

pub fn bias(args: &mut Args) -> Outcome<Bias> {
    Ok(set!(Bias::new(), args, output_size: Vec<usize>, bias_dims: Vec<isize>, b_init: Init))
}

fn convolution<const N: usize>(new: fn(usize, Sizes) -> ConvND<N>, args: &mut Args) -> Outcome<ConvND<N>> {
    let layer = new(args.need("output_channels")?, args.need::<OneOrMany<usize>>("kernel_shape")?.into());
    let layer = match args.get::<String>("data_format")? {
        Some(format) => layer.data_format(&format),
        None => layer,
    };
    Ok(set!(layer, args, stride: OneOrMany<usize>, rate: OneOrMany<usize>, padding: PaddingArgument,
        with_bias: bool, w_init: Init, b_init: Init))
}

fn transposed<const N: usize>(
    new: fn(usize, Sizes) -> ConvNDTranspose<N>,
    args: &mut Args,
) -> Outcome<ConvNDTranspose<N>> {
    let mut layer = new(args.need("output_channels")?, args.need::<OneOrMany<usize>>("kernel_shape")?.into());
    if let Some(format) = args.get::<String>("data_format")? {
        layer = layer.data_format(&format);
    }
    if let Some(padding) = args.get::<PaddingSpec>("padding")? {
        layer = layer.padding(padding.padding()?);
    }
    Ok(set!(layer, args, output_shape: Vec<usize>, stride: OneOrMany<usize>, rate: OneOrMany<usize>,
        with_bias: bool, w_init: Init, b_init: Init))
}

fn depthwise(args: &mut Args) -> Outcome<DepthwiseConv2D> {
    let mut layer = DepthwiseConv2D::new(args.need::<OneOrMany<usize>>("kernel_shape")?);
    if let Some(format) = args.get::<String>("data_format")? {
        layer = layer.data_format(&format);
    }
    Ok(set!(layer, args, channel_multiplier: usize, stride: OneOrMany<usize>, rate: OneOrMany<usize>,
        padding: PaddingArgument, with_bias: bool, w_init: Init, b_init: Init))
}

/// A table given as rows.
#[derive(Deserialize)]
struct Table {
    values: Vec<Vec<f32>>,
}

fn embed(args: &mut Args) -> Outcome<Embed> {
    let mut layer = match (args.get::<usize>("vocab_size")?, args.get::<Table>("existing_vocab")?) {
        (Some(vocab_size), None) => Embed::new(vocab_size),
        (None, Some(Table { values })) => {
            let (rows, columns) = (values.len(), values.first().map_or(0, Vec::len));
            Embed::from_existing(Tensor::from_vec(values.concat(), [rows, columns])?)
        }
        _ => return Err(problem("a size or a table, not both")),
    };
    if let Some(dtype) = args.get::<String>("dtype")? {
        layer = layer.dtype(case::dtype(&dtype)?);
    }
    Ok(set!(layer, args, embed_dim: usize, densify_gradients: bool, initializer: Init, trainable: bool))
}

fn parallel_linears(args: &mut Args) -> Outcome<ParallelLinears> {
    let layer = ParallelLinears::new(args.need("output_size")?);
    Ok(set!(layer, args, with_bias: bool, w_init: Init, b_init: Init))
}

fn batch_apply(args: &mut Args) -> Outcome<BatchApply> {
    let layer = BatchApply::new(args.need::<LayerArgument>("module")?.0);
    Ok(set!(layer, args, num_dims: usize))
}

fn deferred(args: &mut Args) -> Outcome<Deferred<Box<dyn Forward>>> {
    let constructor = args.need::<Value>("constructor")?;
    serde_json::from_value::<LayerArgument>(constructor.clone())?;
    let build = move || -> Box<dyn Forward> {
        serde_json::from_value::<LayerArgument>(constructor.clone()).expect("it was built a moment ago").0
    };
    named(Deferred::new(build), args)
}

fn dropout(args: &mut Args) -> Outcome<Dropout> {
    let layer = Dropout::new(args.need::<f64>("rate")?);
    Ok(set!(layer, args, noise_shape: Vec<Option<usize>>, seed: u64))
}

fn flatten(args: &mut Args) -> Outcome<Flatten> {
    Ok(set!(Flatten::new(), args, preserve_dims: usize))
}

/// An axis, several, or a slice.
#[derive(Deserialize)]
#[serde(untagged)]
enum AxisArgument {
    One(isize),
    List(Vec<isize>),
    Slice { slice: (isize, Option<isize>) },
}

impl From<AxisArgument> for NormAxes {
    fn from(axis: AxisArgument) -> Self {
        match axis {
            AxisArgument::One(axis) => axis.into(),
            AxisArgument::List(axes) => axes.into(),
            AxisArgument::Slice { slice: (start, None) } => (start..).into(),
            AxisArgument::Slice { slice: (start, Some(end)) } => NormAxes::between(start, end),
        }
    }
}

/// The data format too, which is text.
macro_rules! set_norm {
    ($module:expr, $args:ident $(, $argument:ident: $kind:ty)*) => {{
        let module = match $args.get::<String>("data_format")? {
            Some(format) => $module.data_format(&format),
            None => $module,
        };
        Ok(set!(module, $args, eps: f64, scale_init: Init, offset_init: Init $(, $argument: $kind)*))
    }};
}

pub fn layer_norm(args: &mut Args) -> Outcome<LayerNorm> {
    let axis = args.need::<AxisArgument>("axis")?;
    set_norm!(LayerNorm::new(axis, args.need("create_scale")?, args.need("create_offset")?), args)
}

pub fn instance_norm(args: &mut Args) -> Outcome<InstanceNorm> {
    set_norm!(InstanceNorm::new(args.need("create_scale")?, args.need("create_offset")?), args)
}

pub fn group_norm(args: &mut Args) -> Outcome<GroupNorm> {
    let groups = args.need("groups")?;
    set_norm!(GroupNorm::new(groups), args, axis: AxisArgument, create_scale: bool, create_offset: bool)
}

fn linear(args: &mut Args) -> Outcome<Linear> {
    let layer = Linear::new(args.need("output_size")?);
    Ok(set!(layer, args, with_bias: bool, w_init: Init, b_init: Init))
}

pub fn mlp(args: &mut Args) -> Outcome<MLP> {
    let mlp = MLP::new(args.need::<Vec<usize>>("output_sizes")?);
    let mlp = match args.get::<Function>("activation")? {
        Some(activation) => mlp.activation(activation.0),
        None => mlp,
    };
    Ok(set!(mlp, args, w_init: Init, b_init: Init, with_bias: bool, dropout_rate: f64, activate_final: bool))
}

pub fn reshape(args: &mut Args) -> Outcome<Reshape> {
    let layer = Reshape::new(args.need::<Vec<isize>>("output_shape")?);
    Ok(set!(layer, args, preserve_dims: usize))
}

fn sequential(args: &mut Args) -> Outcome<Sequential> {
    let layers = args.or::<Vec<LayerArgument>>("layers", Vec::new())?;
    let sequential = layers.into_iter().fold(Sequential::new(), |sequential, layer| sequential.push(layer.0));
    named(sequential, args)
}

/// `{"module": ..., "ctor": ...}` or `{"fn": ...}`.
pub struct LayerArgument(pub Box<dyn Forward>);

impl<'de> Deserialize<'de> for LayerArgument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Map::deserialize(deserializer)?;
        let layer = || -> Outcome<Box<dyn Forward>> {
            if object.contains_key("fn") {
                return Ok(Box::new(serde_json::from_value::<Function>(Value::Object(object))?.0));
            }
            let mut args = Args::new(&object);
            let (module, ctor) = (args.need::<String>("module")?, args.or("ctor", Map::new())?);
            args.finish()?;
            let layer = build(&module, &ctor)?;
            Ok(layer.ok_or_else(|| problem(format!("there is no layer {module}")))?)
        };
        layer().map(LayerArgument).map_err(serde::de::Error::custom)
    }
}

/// `"SAME"`, `"VALID"`, a padding function, or a list of them.
#[derive(Deserialize)]
#[serde(try_from = "PaddingText")]
struct PaddingArgument(LayerPadding);

#[derive(Deserialize)]
#[serde(untagged)]
enum PaddingText {
    Name(String),
    Functions(OneOrMany<PadFunction>),
}

impl TryFrom<PaddingText> for PaddingArgument {
    type Error = String;

    fn try_from(text: PaddingText) -> Result<Self, String> {
        Ok(PaddingArgument(match text {
            PaddingText::Name(name) if name.eq_ignore_ascii_case("same") => Padding::Same.into(),
            PaddingText::Name(name) if name.eq_ignore_ascii_case("valid") => Padding::Valid.into(),
            PaddingText::Name(name) => return Err(format!("no padding is called {name}")),
            PaddingText::Functions(list) => {
                list.list().iter().map(|pad| pad.0).collect::<Vec<_>>()[..].into()
            }
        }))
    }
}

impl From<PaddingArgument> for LayerPadding {
    fn from(argument: PaddingArgument) -> Self {
        argument.0
    }
}

impl From<OneOrMany<usize>> for Sizes {
    fn from(sizes: OneOrMany<usize>) -> Self {
        sizes.list().into()
    }
}
