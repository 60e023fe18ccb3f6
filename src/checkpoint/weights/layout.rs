//! How other libraries lay out the weights of a layer.

use crate::autodiff::no_grad;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor};

const OP: &str = "layout";

/// How a tensor in a file lies, compared with the variable of the module.
///
/// | layout          | in the file                                  | in the module                        |
/// |-----------------|----------------------------------------------|--------------------------------------|
/// | `AsIs`          | any                                          | the same                             |
/// | `Linear`        | `[output, input]`                            | `[input, output]`                    |
/// | `Conv`          | `[output, input, height, width]`             | `[height, width, input, output]`     |
/// | `ConvTranspose` | `[input, output, height, width]`             | `[height, width, output, input]`     |
/// | `Depthwise`     | `[channels * multiplier, 1, height, width]`  | `[height, width, channels, multiplier]` |
/// | `ChannelsLast`  | `[channels]`                                 | `[1, .., 1, channels]`               |
///
/// Convolutions have any number of spatial dims. Those of the file are PyTorch's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Without a change.
    AsIs,
    /// A matrix with the outputs first.
    Linear,
    /// A kernel with output and input channels first.
    Conv,
    /// The kernel of a transposed convolution, with input and output channels first.
    ConvTranspose,
    /// The kernel of a convolution of each channel by itself.
    Depthwise {
        /// Outputs of each channel.
        multiplier: usize,
    },
    /// A number for each channel, as a tensor of so many dims.
    ChannelsLast {
        /// Dims in the module.
        rank: usize,
    },
    /// The elements in the same order as a tensor of this shape, in which a load or a save leaves them.
    Reshape(Shape),
    /// The axes of the file's tensor in the order in which the module has them: `Linear` is `Transpose(vec![1, 0])`.
    Transpose(Vec<usize>),
}

/// A layout for tensors of one shape: reshape to `split`, put its axes in this order, reshape to `merged`.
struct Steps {
    split: Shape,
    order: Vec<usize>,
    merged: Shape,
}

impl Steps {
    fn transpose(shape: Shape, order: Vec<usize>) -> Self {
        Steps { merged: order.iter().map(|&axis| shape[axis]).collect(), split: shape, order }
    }

    fn reshape(shape: Shape, merged: Shape) -> Self {
        Steps { order: (0..shape.len()).collect(), split: shape, merged }
    }

    fn apply(self, x: &Tensor) -> Result<Tensor> {
        // What is only transposed stays a view, which a writer copies when its turn comes.
        let x = transpose(&reshape(x, self.split)?, &self.order)?;
        reshape(&x, self.merged)
    }
}

impl Layout {
    /// The value of the variable.
    pub(super) fn loaded(&self, x: &Tensor) -> Result<Tensor> {
        no_grad(|| self.reading(x.shape())?.apply(x))
    }

    /// The shape of the variable for that of the file.
    pub(super) fn loaded_shape(&self, shape: &Shape) -> Result<Shape> {
        self.reading(shape).map(|steps| steps.merged)
    }

    /// The tensor of the file.
    pub(super) fn saved(&self, x: &Tensor) -> Result<Tensor> {
        no_grad(|| self.writing(x.shape())?.apply(x))
    }

    fn reading(&self, shape: &Shape) -> Result<Steps> {
        match (self, &shape[..]) {
            (Layout::Depthwise { multiplier }, [outputs, 1, spatial @ ..])
                if *multiplier > 0 && outputs % multiplier == 0 =>
            {
                let split = [outputs / multiplier, *multiplier].into_iter().chain(spatial.iter().copied());
                Ok(Steps::transpose(split.collect(), conv_order(spatial.len(), 0, 1)))
            }
            (Layout::ChannelsLast { rank: 1.. }, [_]) | (Layout::Reshape(_), _) => self.reshaping(shape),
            _ => match self.order(shape.len()) {
                Some(order) => Ok(Steps::transpose(shape.clone(), order)),
                None => Err(self.refuse(shape)),
            },
        }
    }

    fn writing(&self, shape: &Shape) -> Result<Steps> {
        match (self, &shape[..]) {
            (Layout::Depthwise { multiplier }, [spatial @ .., channels, last]) if last == multiplier => {
                let order = inverse(&conv_order(spatial.len(), 0, 1));
                let merged = [channels * last, 1].into_iter().chain(spatial.iter().copied()).collect();
                Ok(Steps { split: shape.clone(), order, merged })
            }
            (Layout::ChannelsLast { rank }, [ones @ .., channels])
                if shape.len() == *rank && ones.iter().all(|&dim| dim == 1) =>
            {
                Ok(Steps::reshape(shape.clone(), [*channels].into()))
            }
            (Layout::Reshape(_), _) => self.reshaping(shape),
            _ => match self.order(shape.len()) {
                Some(order) => Ok(Steps::transpose(shape.clone(), inverse(&order))),
                None => Err(self.refuse(shape)),
            },
        }
    }

    fn reshaping(&self, shape: &Shape) -> Result<Steps> {
        let merged: Shape = match self {
            Layout::ChannelsLast { rank } => {
                let ones = std::iter::repeat_n(1, rank.saturating_sub(1));
                ones.chain([shape.size()]).collect()
            }
            Layout::Reshape(merged) if merged.size() == shape.size() => merged.clone(),
            _ => return Err(self.refuse(shape)),
        };
        Ok(Steps::reshape(shape.clone(), merged))
    }

    /// The axes of the file's tensor in the order of the module; `None` if there are none for this rank.
    fn order(&self, rank: usize) -> Option<Vec<usize>> {
        match self {
            Layout::AsIs => Some((0..rank).collect()),
            Layout::Linear if rank == 2 => Some(vec![1, 0]),
            Layout::Conv | Layout::ConvTranspose if rank > 2 => Some(conv_order(rank - 2, 1, 0)),
            Layout::Transpose(order) => {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                sorted.into_iter().eq(0..rank).then(|| order.clone())
            }
            _ => None,
        }
    }

    fn refuse(&self, shape: &Shape) -> Error {
        Error::shape(OP, "the tensor", shape, format!("one that {self:?} describes"))
    }
}

/// The spatial axes and then these two.
fn conv_order(spatial: usize, first: usize, second: usize) -> Vec<usize> {
    (2..spatial + 2).chain([first, second]).collect()
}

fn inverse(order: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; order.len()];
    order.iter().enumerate().for_each(|(to, &from)| inverse[from] = to);
    inverse
}

fn transpose(x: &Tensor, order: &[usize]) -> Result<Tensor> {
    if order.is_sorted() {
        return Ok(x.clone());
    }
    let order: Vec<isize> = order.iter().map(|&axis| axis as isize).collect();
    x.transpose(&order)
}

fn reshape(x: &Tensor, shape: Shape) -> Result<Tensor> {
    if shape == *x.shape() { Ok(x.clone()) } else { x.reshape(shape) }
}

/// PyTorch's layout of a part of a layer.
///
/// # Errors
/// It cannot be told; the text says why.
pub(super) fn torch(
    kind: &str,
    name: &str,
    stored: &[usize],
    variable: Option<&Shape>,
) -> Result<Layout, String> {
    match (kind, name) {
        ("Linear", "w") => Ok(Layout::Linear),
        ("Conv1D" | "Conv2D" | "Conv3D", "w") | ("SeparableConv2D", "w_pw") => Ok(Layout::Conv),
        ("Conv1DTranspose" | "Conv2DTranspose" | "Conv3DTranspose", "w") => Ok(Layout::ConvTranspose),
        ("DepthwiseConv2D", "w") | ("SeparableConv2D", "w_dw") => {
            match variable.and_then(|shape| shape.last()) {
                Some(&multiplier) => Ok(Layout::Depthwise { multiplier }),
                None => Err("the multiplier of the channels is not known before the first call".into()),
            }
        }
        ("Embed", _) | ("LearnedPositions", _) => Ok(Layout::AsIs),
        _ if stored.is_empty() => Ok(Layout::AsIs),
        _ => match variable {
            Some(shape) if **shape == *stored && stored.len() == 1 => Ok(Layout::AsIs),
            // One number a channel, which broadcasts.
            Some(shape) if stored.len() == 1 && is_vector(shape) => Ok(Layout::Reshape(shape.clone())),
            None if stored.len() == 1 && name == "b" => Ok(Layout::AsIs),
            None if stored.len() == 1 => Err("its dims are not known before the first call".into()),
            _ => Err(format!("no rule is known for {name:?} of {kind}")),
        },
    }
}

/// As [`torch`], for a variable that is to be written.
///
/// # Errors
/// It cannot be told; the text says why.
pub(super) fn to_torch(kind: &str, name: &str, variable: &Shape) -> Result<Layout, String> {
    let is_normalisation = kind.ends_with("Norm") || kind == "ExponentialMovingAverage";
    match torch(kind, name, variable, Some(variable)) {
        Err(_) if is_vector(variable) && (is_normalisation || name == "b") => {
            Ok(Layout::Reshape([variable.size()].into()))
        }
        layout => layout,
    }
}

/// Whether at most one dim is not 1.
fn is_vector(shape: &[usize]) -> bool {
    shape.iter().filter(|&&dim| dim != 1).count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    /// Elements `0, 1, 2, ..`.
    fn counted(shape: &[usize]) -> Tensor {
        let size = shape.iter().product::<usize>();
        Tensor::arange(0.0, size as f64, 1.0, DType::F64).unwrap().reshape(shape).unwrap()
    }

    fn at(x: &Tensor, index: &[usize]) -> f64 {
        let flat = index.iter().zip(x.shape().iter()).fold(0, |flat, (&i, &dim)| flat * dim + i);
        x.to_vec::<f64>().unwrap()[flat]
    }

    #[test]
    fn elements_go_where_the_table_says_and_come_back() {
        type Index = fn([usize; 4]) -> Vec<usize>;
        let cases: [(Layout, [usize; 4], Vec<usize>, Index, Index); 6] = [
            (Layout::Linear, [2, 3, 1, 1], vec![2, 3], |[o, i, _, _]| vec![o, i], |[o, i, _, _]| vec![i, o]),
            (Layout::Conv, [2, 3, 4, 5], vec![2, 3, 4, 5], |i| i.to_vec(), |[o, i, h, w]| vec![h, w, i, o]),
            (Layout::Conv, [2, 3, 4, 1], vec![2, 3, 4], |i| i[..3].to_vec(), |[o, i, w, _]| vec![w, i, o]),
            (
                Layout::ConvTranspose,
                [2, 3, 4, 5],
                vec![2, 3, 4, 5],
                |i| i.to_vec(),
                |[i, o, h, w]| vec![h, w, o, i],
            ),
            (
                Layout::Depthwise { multiplier: 3 },
                [2, 3, 4, 5],
                vec![6, 1, 4, 5],
                |[c, m, h, w]| vec![3 * c + m, 0, h, w],
                |[c, m, h, w]| vec![h, w, c, m],
            ),
            (
                Layout::Transpose(vec![1, 3, 0, 2]),
                [2, 3, 4, 5],
                vec![2, 3, 4, 5],
                |i| i.to_vec(),
                |[a, b, c, d]| vec![b, d, a, c],
            ),
        ];
        for (layout, dims, shape, file_index, own_index) in cases {
            let x = counted(&shape);
            let y = layout.loaded(&x).unwrap();
            for flat in 0..x.size() {
                let mut rest = flat;
                let mut index = [0; 4];
                for (i, &dim) in index.iter_mut().zip(&dims).rev() {
                    (*i, rest) = (rest % dim, rest / dim);
                }
                assert_eq!(at(&y, &own_index(index)), at(&x, &file_index(index)), "{layout:?} {index:?}");
            }
            let back = layout.saved(&y).unwrap();
            assert_eq!(
                (back.shape(), back.to_vec::<f64>().unwrap()),
                (x.shape(), x.to_vec().unwrap()),
                "{layout:?}"
            );
        }
    }

    #[test]
    fn channels_get_dims_of_one_and_lose_them() {
        let y = Layout::ChannelsLast { rank: 4 }.loaded(&counted(&[3])).unwrap();
        assert_eq!(*y.shape(), [1, 1, 1, 3]);
        assert_eq!(*Layout::ChannelsLast { rank: 4 }.saved(&y).unwrap().shape(), [3]);
    }

    #[test]
    fn a_tensor_that_the_layout_does_not_describe_is_refused() {
        for (layout, shape) in [
            (Layout::Linear, &[2, 3, 4][..]),
            (Layout::Conv, &[2, 3]),
            (Layout::Depthwise { multiplier: 2 }, &[3, 1, 2, 2]),
            (Layout::Depthwise { multiplier: 0 }, &[3, 1, 2, 2]),
            (Layout::Depthwise { multiplier: 1 }, &[3]),
            (Layout::ChannelsLast { rank: 0 }, &[3]),
            (Layout::Transpose(vec![0, 0]), &[3, 3]),
            (Layout::Reshape([4].into()), &[3]),
        ] {
            assert!(layout.loaded(&counted(shape)).is_err(), "{layout:?}");
        }
    }

    #[test]
    fn what_cannot_be_told_is_not_guessed() {
        assert!(torch("Mine", "w", &[2, 2], Some(&[2, 2].into())).is_err());
        assert!(torch("Mine", "w", &[1, 2], Some(&[2, 1].into())).is_err());
        assert!(to_torch("Mine", "w", &[1, 2].into()).is_err());
        assert!(torch("BatchNorm", "scale", &[2], None).is_err());
        assert!(torch("DepthwiseConv2D", "w", &[2, 1, 3, 3], None).is_err());
        assert_eq!(torch("BatchNorm", "scale", &[2], Some(&[2].into())), Ok(Layout::AsIs));
        assert_eq!(torch("Mine", "counter", &[], None), Ok(Layout::AsIs));
        let statistics = Shape::from([1, 1, 1, 2]);
        assert_eq!(
            torch("ExponentialMovingAverage", "average", &[2], Some(&statistics)),
            Ok(Layout::Reshape(statistics.clone()))
        );
        assert_eq!(
            to_torch("ExponentialMovingAverage", "average", &statistics),
            Ok(Layout::Reshape([2].into()))
        );
    }
}
