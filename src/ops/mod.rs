//! Operations on tensors, one family a file: the op, its gradient and its `Tensor` methods side by side.

mod along;
mod any;
mod arithmetic;
mod attention;
mod broadcast;
mod cast;
mod compare;
mod concat;
mod conv;
pub(crate) mod cost;
mod cross_entropy;
mod cumulative;
mod depth;
mod diagonal;
mod dropout;
mod einsum;
mod elu;
mod erf;
mod exponential;
mod extreme;
mod extremum;
mod function;
mod gelu;
mod gradient;
mod grid;
mod hyperbolic;
mod indexing;
mod inverse_hyperbolic;
mod linear;
mod log_sum_exp;
mod logical;
mod matmul;
mod mean;
mod norm;
mod normalise;
mod one_hot;
mod op;
mod operand;
mod operators;
mod pad;
mod pairs;
mod pool;
mod power;
mod product;
mod qr;
mod real;
mod rearrange;
pub(crate) mod record;
pub(crate) mod recurrent;
mod reduction;
mod registry;
mod relu;
mod rounding;
mod select;
mod set_slice;
mod shape;
mod sigmoid;
mod sign;
mod slice;
mod softmax;
mod sort;
mod sparse;
mod sum;
mod sum_squares;
mod swish;
pub(crate) mod trace;
mod triangular;
mod trigonometric;
mod unique;
mod unstack;

pub use attention::AttentionOptions;
pub(crate) use conv::per_axis;
pub use conv::{ConvOptions, Padding};
pub(crate) use cross_entropy::{SigmoidCrossEntropy, SoftmaxCrossEntropy, SparseSoftmaxCrossEntropy};
pub(crate) use dropout::Dropout;
pub(crate) use function::for_float;
pub use gradient::{Gradient, IndexedSlices};
pub use grid::Indexing;
pub use op::{
    Attributes, Binary, Computed, Input, Inputs, IntoOp, Mask, Narrow, NarrowBinary, NarrowUnary, Op, Saved,
    Saves, Unary, Wide,
};
pub use operand::Operand;
pub use pool::Pool;
pub use registry::{Listed, OpEntry, Sample, SampleInput, op_list, register_op};
pub(crate) use sparse::row_numbers;

pub(crate) use arithmetic::{Number, for_number};
pub use pad::PadMode;
pub use slice::Slice;
pub use sum::Axes;

use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// The one list of built-in ops: names, decoders for exported models, and the samples that every test walks.
pub(crate) const OPS: &[OpEntry] = &[
    OpEntry::binary::<arithmetic::Add>(),
    OpEntry::binary::<arithmetic::Subtract>(),
    OpEntry::binary::<arithmetic::Multiply>(),
    OpEntry::binary::<arithmetic::Divide>(),
    OpEntry::unary::<arithmetic::Negative>(),
    OpEntry::binary::<matmul::Matmul>(),
    OpEntry::binary::<triangular::TriangularSolve>(),
    OpEntry::wide::<qr::Qr>("qr"),
    OpEntry::wide::<linear::Affine>("affine"),
    OpEntry::wide::<conv::Convolve>("convolve"),
    OpEntry::wide::<conv::ConvInputGradient>("conv_input_gradient"),
    OpEntry::wide::<conv::ConvFilterGradient>("conv_filter_gradient"),
    OpEntry::wide::<conv::DepthwiseConvolve>("depthwise_convolve"),
    OpEntry::wide::<conv::DepthwiseInputGradient>("depthwise_input_gradient"),
    OpEntry::wide::<conv::DepthwiseFilterGradient>("depthwise_filter_gradient"),
    OpEntry::unary::<broadcast::BroadcastTo>(),
    OpEntry::unary::<broadcast::SumTo>(),
    OpEntry::unary::<shape::Reshape>(),
    OpEntry::unary::<shape::Transpose>(),
    OpEntry::unary::<sum::Sum>(),
    OpEntry::unary::<sum_squares::SumSquares>(),
    OpEntry::unary::<slice::StridedSlice>(),
    OpEntry::unary::<slice::Unslice>(),
    OpEntry::wide::<set_slice::SetSlice>("set_slice"),
    OpEntry::wide::<concat::Concat>("concat"),
    OpEntry::wide::<unstack::Unstack>("unstack"),
    OpEntry::wide::<cast::Cast>("cast"),
    OpEntry::wide::<sparse::GatherRows>("gather_rows"),
    OpEntry::wide::<sparse::AddRows>("add_rows"),
    OpEntry::unary::<softmax::Softmax>(),
    OpEntry::binary::<softmax::SoftmaxGradient>(),
    OpEntry::unary::<softmax::LogSoftmax>(),
    OpEntry::binary::<softmax::LogSoftmaxGradient>(),
    OpEntry::wide::<cross_entropy::SparseSoftmaxCrossEntropy>("sparse_softmax_cross_entropy"),
    OpEntry::wide::<cross_entropy::SparseSoftmaxCrossEntropyGradient>(
        "sparse_softmax_cross_entropy_gradient",
    ),
    OpEntry::binary::<cross_entropy::SoftmaxCrossEntropy>(),
    OpEntry::wide::<cross_entropy::SoftmaxCrossEntropyGradient>("softmax_cross_entropy_gradient"),
    OpEntry::binary::<cross_entropy::SigmoidCrossEntropy>(),
    OpEntry::wide::<dropout::Dropout>("dropout"),
    OpEntry::wide::<normalise::BatchNorm>("batch_norm"),
    OpEntry::wide::<normalise::BatchNormGradient>("batch_norm_gradient"),
    OpEntry::wide::<normalise::GroupNorm>("group_norm"),
    OpEntry::wide::<normalise::GroupNormGradient>("group_norm_gradient"),
    OpEntry::wide::<normalise::LayerNorm>("layer_norm"),
    OpEntry::wide::<normalise::LayerNormGradient>("layer_norm_gradient"),
    OpEntry::wide::<attention::Attention>("scaled_dot_product_attention"),
    OpEntry::wide::<attention::AttentionGradient>("scaled_dot_product_attention_gradient"),
    OpEntry::wide::<recurrent::RecurrentSums>("recurrent_sums"),
    OpEntry::wide::<recurrent::LSTMCell>("lstm_cell"),
    OpEntry::wide::<recurrent::LSTMSequence>("lstm_sequence"),
    OpEntry::wide::<recurrent::GRUStep>("gru_step"),
    OpEntry::wide::<pool::MaxPool>("max_pool"),
    OpEntry::wide::<pool::MaxPoolGradient>("max_pool_gradient"),
    OpEntry::wide::<pool::MaxPoolSelect>("max_pool_select"),
    OpEntry::unary::<pool::AveragePool>(),
    OpEntry::unary::<pool::AveragePoolGradient>(),
    OpEntry::unary::<exponential::Exp>(),
    OpEntry::binary::<function::Slope<exponential::Exp>>(),
    OpEntry::unary::<exponential::Expm1>(),
    OpEntry::binary::<function::Slope<exponential::Expm1>>(),
    OpEntry::unary::<exponential::Log>(),
    OpEntry::binary::<function::Slope<exponential::Log>>(),
    OpEntry::unary::<exponential::Log1p>(),
    OpEntry::binary::<function::Slope<exponential::Log1p>>(),
    OpEntry::unary::<power::Sqrt>(),
    OpEntry::binary::<function::Slope<power::Sqrt>>(),
    OpEntry::unary::<power::Rsqrt>(),
    OpEntry::binary::<function::Slope<power::Rsqrt>>(),
    OpEntry::unary::<power::Reciprocal>(),
    OpEntry::binary::<function::Slope<power::Reciprocal>>(),
    OpEntry::unary::<sigmoid::Sigmoid>(),
    OpEntry::binary::<function::Slope<sigmoid::Sigmoid>>(),
    OpEntry::unary::<sigmoid::Softplus>(),
    OpEntry::binary::<function::Slope<sigmoid::Softplus>>(),
    OpEntry::unary::<sigmoid::LogSigmoid>(),
    OpEntry::binary::<function::Slope<sigmoid::LogSigmoid>>(),
    OpEntry::unary::<hyperbolic::Tanh>(),
    OpEntry::binary::<function::Slope<hyperbolic::Tanh>>(),
    OpEntry::unary::<relu::Relu>(),
    OpEntry::binary::<function::Slope<relu::Relu>>(),
    OpEntry::binary::<extremum::Maximum>(),
    OpEntry::binary::<extremum::Minimum>(),
    OpEntry::unary::<extremum::ClipByValue>(),
    OpEntry::binary::<function::Slope<extremum::ClipByValue>>(),
    OpEntry::wide::<compare::Equal>("equal"),
    OpEntry::wide::<compare::NotEqual>("not_equal"),
    OpEntry::wide::<compare::Less>("less"),
    OpEntry::wide::<compare::LessEqual>("less_equal"),
    OpEntry::wide::<compare::Greater>("greater"),
    OpEntry::wide::<compare::GreaterEqual>("greater_equal"),
    OpEntry::wide::<select::Where>("where"),
    OpEntry::binary::<pairs::Pow>(),
    OpEntry::binary::<pairs::SquaredDifference>(),
    OpEntry::binary::<pairs::Atan2>(),
    OpEntry::binary::<pairs::FloorMod>(),
    OpEntry::wide::<logical::LogicalAnd>("logical_and"),
    OpEntry::wide::<logical::LogicalOr>("logical_or"),
    OpEntry::wide::<logical::LogicalXor>("logical_xor"),
    OpEntry::wide::<logical::LogicalNot>("logical_not"),
    OpEntry::wide::<logical::WhereIndices>("where_indices"),
    OpEntry::unary::<mean::Mean>(),
    OpEntry::unary::<mean::Variance>(),
    OpEntry::unary::<extreme::Max>(),
    OpEntry::unary::<extreme::Min>(),
    OpEntry::unary::<product::Prod>(),
    OpEntry::unary::<log_sum_exp::LogSumExp>(),
    OpEntry::unary::<norm::Norm>(),
    OpEntry::unary::<cumulative::CumSum>(),
    OpEntry::unary::<cumulative::CumProd>(),
    OpEntry::binary::<cumulative::LinearScan>(),
    OpEntry::wide::<any::Any>("any"),
    OpEntry::wide::<any::All>("all"),
    OpEntry::wide::<sort::ArgSort>("argsort"),
    OpEntry::wide::<sort::TakeAlong>("take_along_axis"),
    OpEntry::wide::<sort::AddAlong>("add_along_axis"),
    OpEntry::wide::<unique::UniqueIndices>("unique_indices"),
    OpEntry::wide::<indexing::FlatIndices>("flat_indices"),
    OpEntry::wide::<indexing::SetRows>("set_rows"),
    OpEntry::wide::<extreme::ArgMax>("argmax"),
    OpEntry::wide::<extreme::ArgMin>("argmin"),
    OpEntry::unary::<pad::Pad>(),
    OpEntry::wide::<one_hot::OneHot>("one_hot"),
    OpEntry::unary::<trigonometric::Sin>(),
    OpEntry::unary::<trigonometric::Cos>(),
    OpEntry::unary::<trigonometric::Tan>(),
    OpEntry::binary::<function::Slope<trigonometric::Tan>>(),
    OpEntry::unary::<trigonometric::Asin>(),
    OpEntry::binary::<function::Slope<trigonometric::Asin>>(),
    OpEntry::unary::<trigonometric::Acos>(),
    OpEntry::binary::<function::Slope<trigonometric::Acos>>(),
    OpEntry::unary::<trigonometric::Atan>(),
    OpEntry::binary::<function::Slope<trigonometric::Atan>>(),
    OpEntry::unary::<hyperbolic::Sinh>(),
    OpEntry::binary::<function::Slope<hyperbolic::Sinh>>(),
    OpEntry::unary::<hyperbolic::Cosh>(),
    OpEntry::binary::<function::Slope<hyperbolic::Cosh>>(),
    OpEntry::unary::<inverse_hyperbolic::Asinh>(),
    OpEntry::binary::<function::Slope<inverse_hyperbolic::Asinh>>(),
    OpEntry::unary::<inverse_hyperbolic::Acosh>(),
    OpEntry::binary::<function::Slope<inverse_hyperbolic::Acosh>>(),
    OpEntry::unary::<inverse_hyperbolic::Atanh>(),
    OpEntry::binary::<function::Slope<inverse_hyperbolic::Atanh>>(),
    OpEntry::unary::<relu::Relu6>(),
    OpEntry::binary::<function::Slope<relu::Relu6>>(),
    OpEntry::unary::<relu::LeakyRelu>(),
    OpEntry::binary::<function::Slope<relu::LeakyRelu>>(),
    OpEntry::unary::<elu::Elu>(),
    OpEntry::binary::<function::Slope<elu::Elu>>(),
    OpEntry::unary::<elu::Selu>(),
    OpEntry::binary::<function::Slope<elu::Selu>>(),
    OpEntry::unary::<swish::Swish>(),
    OpEntry::binary::<function::Slope<swish::Swish>>(),
    OpEntry::unary::<swish::Mish>(),
    OpEntry::binary::<function::Slope<swish::Mish>>(),
    OpEntry::unary::<swish::Softsign>(),
    OpEntry::binary::<function::Slope<swish::Softsign>>(),
    OpEntry::unary::<swish::HardSigmoid>(),
    OpEntry::binary::<function::Slope<swish::HardSigmoid>>(),
    OpEntry::unary::<erf::Erf>(),
    OpEntry::binary::<function::Slope<erf::Erf>>(),
    OpEntry::unary::<erf::Erfc>(),
    OpEntry::binary::<function::Slope<erf::Erfc>>(),
    OpEntry::unary::<gelu::Gelu>(),
    OpEntry::binary::<function::Slope<gelu::Gelu>>(),
    OpEntry::unary::<gelu::GeluTanh>(),
    OpEntry::binary::<function::Slope<gelu::GeluTanh>>(),
    OpEntry::unary::<rounding::Floor>(),
    OpEntry::unary::<rounding::Ceil>(),
    OpEntry::unary::<rounding::Round>(),
    OpEntry::unary::<power::Square>(),
    OpEntry::unary::<sign::Abs>(),
    OpEntry::unary::<sign::Sign>(),
];

/// Runs an op of one output on its inputs; a tape that tracks one of them records it.
///
/// # Errors
/// The op refuses its inputs, or has not exactly one output.
pub fn apply<'a, Kind, O, I, const N: usize>(op: O, inputs: [I; N]) -> Result<Tensor>
where
    O: IntoOp<Kind>,
    I: Into<Input<'a>>,
{
    let mut list = [const { None }; N];
    for (place, x) in list.iter_mut().zip(inputs) {
        *place = Some(x.into());
    }
    the_output(record::run(Box::new(op.into_op()), &mut list))
}

/// The output of an op that has exactly one.
fn the_output(outputs: Result<op::Outputs>) -> Result<Tensor> {
    match outputs? {
        op::Outputs::One(y) => Ok(y),
        op::Outputs::Many(list) => {
            let count = list.len();
            let mut list = list.into_iter();
            match (list.next(), list.next()) {
                (Some(y), None) => Ok(y),
                _ => Err(Error::usage("apply", format!("the op has {count} outputs"), "call apply_many")),
            }
        }
    }
}

/// Runs an op of any number of outputs on its inputs; a tape that tracks one of them records it.
///
/// # Errors
/// The op refuses its inputs.
pub fn apply_many<'a, Kind, O, I>(op: O, inputs: impl IntoIterator<Item = I>) -> Result<Vec<Tensor>>
where
    O: IntoOp<Kind>,
    I: Into<Input<'a>>,
{
    let mut inputs: Vec<Option<Input<'a>>> = inputs.into_iter().map(|x| Some(x.into())).collect();
    match record::run(Box::new(op.into_op()), &mut inputs)? {
        op::Outputs::One(y) => Ok(vec![y]),
        op::Outputs::Many(list) => Ok(list),
    }
}
