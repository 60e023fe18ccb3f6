//! Every method under arguments that make no sense: an error, or a result, never a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use couplet::ops::{ConvOptions, Indexing};
use couplet::{DType, GradientTape, PadMode, Padding, Pool, Result, Slice, Tensor};
use proptest::prelude::*;

use crate::array::config;

/// Arguments of every kind.
#[derive(Debug, Clone)]
struct Wild {
    counts: Vec<usize>,
    axes: Vec<isize>,
    flags: [bool; 3],
    float: f64,
    dtype: DType,
    word: String,
}

impl Wild {
    /// A number where one is needed, whatever the length of the list.
    fn count(&self, at: usize) -> usize {
        self.counts[at % self.counts.len()]
    }

    fn axis(&self, at: usize) -> isize {
        self.axes[at % self.axes.len()]
    }

    fn pairs(&self) -> Vec<(usize, usize)> {
        self.counts.iter().map(|&n| (n, self.count(n % 7))).collect()
    }

    fn slices(&self) -> Vec<Slice> {
        let slice = |(i, &axis): (usize, &isize)| match (self.flags[0], i % 2) {
            (true, 0) => Slice::Index(axis),
            _ => Slice::Range { start: Some(axis), stop: Some(self.axis(i + 1)), step: self.axis(i + 2) },
        };
        self.axes.iter().enumerate().map(slice).collect()
    }

    fn padding(&self) -> Padding {
        match self.flags {
            [true, ..] => Padding::Same,
            [_, true, _] => Padding::Valid,
            _ => Padding::Explicit(self.pairs()),
        }
    }

    fn options(&self) -> ConvOptions {
        ConvOptions { stride: vec![self.count(0)], rate: vec![self.count(1)], padding: self.padding() }
    }

    fn pool(&self) -> Pool {
        let pool = Pool::new(self.counts.clone()).stride([self.count(1)]).padding(self.padding());
        if self.flags[2] { pool.channels_first() } else { pool }
    }
}

type Method = (&'static str, fn(&Tensor, &Tensor, &Wild) -> Result<Tensor>);

/// The first of several results.
fn first(list: Result<Vec<Tensor>>) -> Result<Tensor> {
    Ok(list?.first().cloned().unwrap_or_else(|| Tensor::from(0.0f64)))
}

/// Ones.
fn ones(shape: &[usize]) -> Tensor {
    Tensor::ones(shape, DType::F64).unwrap()
}

/// An image and a kernel that fits it, for arguments that do not.
fn image() -> Tensor {
    ones(&[1, 4, 3, 2])
}

fn kernel() -> Tensor {
    ones(&[2, 2, 2, 3])
}

const METHODS: &[Method] = &[
    ("convolve a fitting kernel", |_, _, w| image().convolve(kernel(), None, &w.options())),
    ("convolve a wild kernel", |x, _, w| image().convolve(x, None, &w.options())),
    ("transpose a fitting kernel", |_, _, w| {
        ones(&[1, 4, 3, 3]).convolve_transpose(kernel(), &[w.count(0), w.count(1)], &w.options())
    }),
    ("convolve fitting channels", |_, _, w| image().depthwise_convolve(kernel(), &w.options())),
    ("pool the largest of an image", |_, _, w| image().max_pool(&w.pool())),
    ("pool the mean of an image", |_, _, w| image().average_pool(&w.pool())),
    ("normalise an image", |_, y, w| image().group_norm(w.count(0), w.axis(0), Some(y), None, w.float)),
    ("normalise layers of an image", |_, y, w| image().layer_norm(w.axes.clone(), Some(y), None, 1e-3)),
    ("gather from a table", |_, y, w| image().gather(y, w.axis(0))),
    ("pick along a table", |_, y, w| ones(&[4, 4]).take_along_axis(y, w.axis(0))),
    ("positions in a table", |_, y, _| image().gather_nd(y)),
    ("segments of a row", |_, y, w| ones(&[4]).segment_sum(y, w.count(0))),
    ("write into an image", |_, y, w| image().with_slice(&w.slices(), y)),
    ("two images", |_, _, w| Tensor::einsum(&w.word, &[&ones(&[2, 2]), &ones(&[2, 2])])),
    ("three images", |_, _, w| Tensor::einsum(&w.word, &[&ones(&[2]), &ones(&[2, 2]), &ones(&[2])])),
    ("add", |x, y, _| x + y),
    ("divide", |x, y, _| x / y),
    ("number", |x, _, w| x * w.float),
    ("pow", |x, y, _| x.pow(y)),
    ("floormod", |x, y, _| x.floormod(y)),
    ("maximum", |x, y, _| x.maximum(y)),
    ("less", |x, y, _| x.less(y)),
    ("where_else", |x, y, _| x.where_else(y, y)),
    ("logical_xor", |x, y, _| x.logical_xor(y)),
    ("exp", |x, _, _| x.exp()),
    ("abs", |x, _, _| x.abs()),
    ("round", |x, _, _| x.round()),
    ("clip_by_value", |x, _, w| x.clip_by_value(w.float, -w.float)),
    ("cast", |x, _, w| x.cast(w.dtype)),
    ("sum_axes", |x, _, w| x.sum_axes(w.axes.clone(), w.flags[0])),
    ("mean_axes", |x, _, w| x.mean_axes(w.axes.clone(), w.flags[0])),
    ("max_axes", |x, _, w| x.max_axes(w.axes.clone(), w.flags[0])),
    ("prod_axes", |x, _, w| x.prod_axes(w.axes.clone(), w.flags[0])),
    ("logsumexp_axes", |x, _, w| x.logsumexp_axes(w.axes.clone(), w.flags[0])),
    ("norm_axes", |x, _, w| x.norm_axes(w.axes.clone(), w.flags[0])),
    ("std_axes", |x, _, w| x.std_axes(w.axes.clone(), w.flags[0])),
    ("any_axes", |x, _, w| x.any_axes(w.axes.clone(), w.flags[0])),
    ("argmax", |x, _, w| x.argmax(w.axis(0))),
    ("cumsum", |x, _, w| x.cumsum(w.axis(0), w.flags[0], w.flags[1])),
    ("cumprod", |x, _, w| x.cumprod(w.axis(0), w.flags[0], w.flags[1])),
    ("sort", |x, _, w| x.sort(w.axis(0), w.flags[0])),
    ("top_k", |x, _, w| x.top_k(w.count(0)).map(|(values, _)| values)),
    ("take_along_axis", |x, y, w| x.take_along_axis(y, w.axis(0))),
    ("unique", |x, _, _| x.unique().map(|(values, ..)| values)),
    ("matmul", |x, y, _| x.matmul(y)),
    ("affine", |x, y, _| x.affine(y, y)),
    ("einsum", |x, y, w| Tensor::einsum(&w.word, &[x, y])),
    ("tensordot", |x, y, w| x.tensordot(y, &w.axes, &[w.axis(1)])),
    ("outer", |x, y, _| x.outer(y)),
    ("qr", |x, _, _| x.qr().map(|(q, _)| q)),
    ("triangular_solve", |x, y, w| x.triangular_solve(y, w.flags[0], w.flags[1])),
    ("tril", |x, _, w| x.tril(w.axis(0) as i64)),
    ("triu", |x, _, w| x.triu(w.axis(0) as i64)),
    ("diag_part", |x, _, _| x.diag_part()),
    ("reshape", |x, _, w| x.reshape(w.counts.clone())),
    ("transpose", |x, _, w| x.transpose(&w.axes)),
    ("expand_dims", |x, _, w| x.expand_dims(w.axis(0))),
    ("squeeze", |x, _, w| x.squeeze(w.axis(0))),
    ("broadcast_to", |x, _, w| x.broadcast_to(w.counts.clone())),
    ("sum_to", |x, _, w| x.sum_to(w.counts.clone())),
    ("concat", |x, y, w| Tensor::concat(&[x, y], w.axis(0))),
    ("stack", |x, y, w| Tensor::stack(&[x, y], w.axis(0))),
    ("split", |x, _, w| first(x.split(&w.counts, w.axis(0)))),
    ("chunk", |x, _, w| first(x.chunk(w.count(0), w.axis(0)))),
    ("unstack", |x, _, w| first(x.unstack(w.axis(0)))),
    ("slice", |x, _, w| x.slice(&w.slices())),
    ("with_slice", |x, y, w| x.with_slice(&w.slices(), y)),
    ("narrow", |x, _, w| x.narrow(w.axis(0), w.count(0), w.count(1))),
    ("index", |x, _, w| x.index(w.axis(0))),
    ("gather", |x, y, w| x.gather(y, w.axis(0))),
    ("gather_nd", |x, y, _| x.gather_nd(y)),
    ("scatter_nd", |x, y, w| x.scatter_nd(y, w.counts.clone())),
    ("tensor_scatter_add", |x, y, _| x.tensor_scatter_add(y, x)),
    ("tensor_scatter_update", |x, y, _| x.tensor_scatter_update(y, x)),
    ("boolean_mask", |x, y, _| x.boolean_mask(y)),
    ("segment_sum", |x, y, w| x.segment_sum(y, w.count(0))),
    ("one_hot", |x, _, w| x.one_hot(w.count(0), w.dtype)),
    ("tile", |x, _, w| x.tile(&w.counts)),
    ("repeat", |x, _, w| x.repeat(w.count(0), w.axis(0))),
    ("roll", |x, _, w| x.roll(w.axis(1), w.axis(0))),
    ("reverse", |x, _, w| x.reverse(w.axes.clone())),
    ("pad", |x, _, w| x.pad(&w.pairs(), PadMode::Constant(w.float))),
    ("pad reflect", |x, _, w| x.pad(&w.pairs(), PadMode::Reflect)),
    ("pad symmetric", |x, _, w| x.pad(&w.pairs(), PadMode::Symmetric)),
    ("space_to_depth", |x, _, w| x.space_to_depth(w.count(0))),
    ("depth_to_space", |x, _, w| x.depth_to_space(w.count(0))),
    ("meshgrid", |x, y, _| first(Tensor::meshgrid(&[x, y], Indexing::XY))),
    ("softmax", |x, _, w| x.softmax(w.axis(0))),
    ("log_softmax", |x, _, w| x.log_softmax(w.axis(0))),
    ("layer_norm", |x, y, w| x.layer_norm(w.axes.clone(), Some(y), None, w.float)),
    ("group_norm", |x, y, w| x.group_norm(w.count(0), w.axis(0), Some(y), None, 0.1)),
    ("instance_norm", |x, _, w| x.instance_norm(w.axis(0), None, None, w.float)),
    ("batch_norm", |x, y, w| x.batch_norm(w.axis(0), y, y, 0.1).map(|(y, ..)| y)),
    ("batch_normalization", |x, y, w| x.batch_normalization(y, y, Some(y), None, w.float)),
    ("l2_normalize", |x, _, w| x.l2_normalize(w.axes.clone(), w.float)),
    ("clip_by_norm", |x, _, w| x.clip_by_norm(w.float)),
    ("bias_add", |x, y, _| x.bias_add(y)),
    ("dropout", |x, _, w| x.dropout(w.float, Some(&[Some(w.count(0)), None]), true)),
    ("max_pool", |x, _, w| x.max_pool(&w.pool())),
    ("average_pool", |x, _, w| x.average_pool(&w.pool())),
    ("global_average_pool", |x, _, w| x.global_average_pool(w.flags[0])),
    ("global_max_pool", |x, _, w| x.global_max_pool(w.flags[0])),
    ("convolve", |x, y, w| x.convolve(y, None, &w.options())),
    ("convolve with bias", |x, y, w| x.convolve(y, Some(y), &w.options())),
    ("convolve_transpose", |x, y, w| x.convolve_transpose(y, &w.counts, &w.options())),
    ("depthwise_convolve", |x, y, w| x.depthwise_convolve(y, &w.options())),
    ("zeros", |_, _, w| Tensor::zeros(w.counts.clone(), w.dtype)),
    ("full", |_, _, w| Tensor::full([2], w.float, w.dtype)),
    ("eye", |_, _, w| Tensor::eye(w.count(0), w.count(1), w.dtype)),
    ("arange", |_, _, w| Tensor::arange(w.float, w.axis(0) as f64, 1e3 * w.float, w.dtype)),
    ("linspace", |_, _, w| Tensor::linspace(w.float, 1.0, w.count(0), w.dtype)),
];

/// Small numbers, and some that nothing has so many of.
fn count() -> impl Strategy<Value = usize> {
    let huge = prop::sample::select(&[usize::MAX, isize::MAX as usize, 1 << 62, 1 << 50][..]);
    prop_oneof![12 => 0usize..=5, 1 => huge]
}

fn axis() -> impl Strategy<Value = isize> {
    prop_oneof![12 => -5isize..=5, 1 => prop::sample::select(&[isize::MIN, isize::MAX, -(1 << 60)][..])]
}

fn dtype() -> impl Strategy<Value = DType> {
    prop_oneof![2 => Just(DType::F64), 1 => prop::sample::select(&DType::ALL[..])]
}

fn wild() -> impl Strategy<Value = Wild> {
    let counts = prop::collection::vec(count(), 1..=4);
    let axes = prop::collection::vec(axis(), 1..=4);
    let floats = &[0.0, 1.0, -1.0, 0.5, 300.0, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-3][..];
    let word = prop_oneof![
        prop::collection::vec(
            prop::sample::select(&["i", "j", "k", ",", "->", "...", "é", " ", "."][..]),
            0..9
        )
        .prop_map(|parts| parts.concat()),
        prop::sample::select(&["ij,jk->ik", "...i,...i->...", "i,j->", "ii,ij->j", "ij,ij"][..])
            .prop_map(String::from),
    ];
    (counts, axes, any::<[bool; 3]>(), prop::sample::select(floats), dtype(), word).prop_map(
        |(counts, axes, flags, float, dtype, word)| Wild { counts, axes, flags, float, dtype, word },
    )
}

/// Tensors of any dtype and small shapes, with small whole numbers.
fn tensor() -> impl Strategy<Value = Tensor> {
    (prop::collection::vec(0usize..=4, 0..=5), dtype(), -2.0..3.0).prop_map(|(shape, dtype, start)| {
        let size: usize = shape.iter().product();
        let numbers: Vec<f64> = (0..size).map(|i| f64::floor(start + (i % 4) as f64)).collect();
        Tensor::from_vec(numbers, shape).unwrap().cast(dtype).unwrap()
    })
}

/// The method, and the gradients of what it gives.
fn run(method: &Method, x: &Tensor, y: &Tensor, wild: &Wild) -> Result<()> {
    let tape = GradientTape::new();
    tape.watch(x);
    tape.watch(y);
    let z = method.1(x, y, wild)?;
    if z.dtype().is_float() {
        for (gradient, source) in tape.gradient(&z.sum()?, &[x, y])?.iter().zip([x, y]) {
            if let Some(gradient) = gradient {
                let dense = gradient.to_dense()?;
                assert_eq!((dense.shape(), dense.dtype()), (source.shape(), source.dtype()), "gradient");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_panics(x in tensor(), y in tensor(), wild in wild()) {
        for method in METHODS {
            let outcome = catch_unwind(AssertUnwindSafe(|| run(method, &x, &y, &wild)));
            prop_assert!(outcome.is_ok(), "{} panics", method.0);
            if let Ok(Err(error)) = outcome {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
