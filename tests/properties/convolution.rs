//! Convolutions, plain, transposed and depthwise, and their gradients.

use couplet::ops::ConvOptions;
use couplet::{GradientTape, Padding, Tensor};
use proptest::prelude::*;

use crate::array::{Array, Layout, array, config, layout, positions, same};

#[derive(Debug, Clone)]
struct Case {
    x: Array,
    w: Array,
    b: Array,
    options: ConvOptions,
    layouts: [Layout; 2],
}

/// Sizes of input and kernel, stride or rate, and padding of an axis.
type Axis = (usize, usize, usize, usize, usize);

/// Channels: a few, none, or more than fit in a vector.
fn wide() -> impl Strategy<Value = usize> {
    prop_oneof![12 => 1usize..=4, 1 => Just(0), 1 => 15usize..=35]
}

fn case() -> impl Strategy<Value = Case> {
    let axis = (0usize..=6, 1usize..=3, 1usize..=3, 0usize..=2, 0usize..=2);
    let channels = (0usize..=2, wide(), wide());
    (prop::collection::vec(axis, 1..=3), channels, 0u8..3, 0u8..3, layout(), layout())
        .prop_flat_map(|(axes, (batch, from, to), padding, kind, of_x, of_w)| {
            let axes: Vec<Axis> = axes;
            let x: Vec<usize> = [batch].into_iter().chain(axes.iter().map(|a| a.0)).chain([from]).collect();
            let w: Vec<usize> = axes.iter().map(|a| a.1).chain([from, to]).collect();
            let padding = match padding {
                0 => Padding::Same,
                1 => Padding::Valid,
                _ => Padding::Explicit(axes.iter().map(|a| (a.3, a.4)).collect()),
            };
            let each: Vec<usize> = axes.iter().map(|a| a.2).collect();
            let (stride, rate) = match kind {
                0 => (vec![1], vec![1]),
                1 => (each, vec![1]),
                _ => (vec![1], each),
            };
            let options = ConvOptions { stride, rate, padding };
            (array(x), array(w), array(vec![to]), Just(options), [Just(of_x), Just(of_w)])
        })
        .prop_map(|(x, w, b, options, layouts)| Case { x, w, b, options, layouts })
}

impl Case {
    fn axes(&self) -> usize {
        self.x.shape.len() - 2
    }

    fn step(list: &[usize], axis: usize) -> usize {
        list[if list.len() == 1 { 0 } else { axis }]
    }

    /// Outputs and zeros before, along a spatial axis.
    fn along(&self, axis: usize) -> (usize, usize) {
        let (stride, rate) = (Case::step(&self.options.stride, axis), Case::step(&self.options.rate, axis));
        let (size, reach) = (self.x.shape[axis + 1], (self.w.shape[axis] - 1) * rate + 1);
        let counted = |padded: usize| if padded < reach { 0 } else { (padded - reach) / stride + 1 };
        match &self.options.padding {
            Padding::Same => {
                let count = size.div_ceil(stride);
                let needed = if count == 0 { 0 } else { (count - 1) * stride + reach };
                (count, needed.saturating_sub(size) / 2)
            }
            Padding::Valid => (counted(size), 0),
            Padding::Explicit(pads) => (counted(size + pads[axis].0 + pads[axis].1), pads[axis].0),
        }
    }

    fn output(&self, channels: usize) -> Vec<usize> {
        let spatial = (0..self.axes()).map(|a| self.along(a).0);
        [self.x.shape[0]].into_iter().chain(spatial).chain([channels]).collect()
    }

    /// Calls `f` with the spatial positions of output, kernel and input of each product there is.
    fn taps(&self, mut f: impl FnMut(&[usize], &[usize], &[usize])) {
        let output = self.output(1);
        let axes = self.axes();
        for o in positions(&output[1..=axes]) {
            for k in positions(&self.w.shape[..axes]) {
                let inside = |a: usize| {
                    let (stride, rate) =
                        (Case::step(&self.options.stride, a), Case::step(&self.options.rate, a));
                    let at = (o[a] * stride + k[a] * rate).checked_sub(self.along(a).1)?;
                    (at < self.x.shape[a + 1]).then_some(at)
                };
                if let Some(i) = (0..axes).map(inside).collect::<Option<Vec<_>>>() {
                    f(&o, &k, &i);
                }
            }
        }
    }
}

/// `[first, middle.., last]`.
fn around(first: usize, middle: &[usize], last: usize) -> Vec<usize> {
    [&[first], middle, &[last]].concat()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn convolutions_and_their_gradients_follow_the_plain_loop(case in case()) {
        let Case { x, w, b, options, layouts: [of_x, of_w] } = &case;
        let (batch, from, to) = (x.shape[0], x.shape[case.axes() + 1], b.shape[0]);
        let shape = case.output(to);
        let seed = Array::from_fn(&shape, |p| p.iter().enumerate().map(|(i, p)| (i + p) % 3).sum::<usize>() as f64 - 1.0);
        let mut y = Array::from_fn(&shape, |p| b.at(&p[p.len() - 1..]));
        let (mut dx, mut dw) = (Array::zeros(&x.shape), Array::zeros(&w.shape));
        case.taps(|o, k, i| {
            for p in positions(&[batch, from, to]) {
                let (at, tap, out) = (around(p[0], i, p[1]), [k, &p[1..]].concat(), around(p[0], o, p[2]));
                *y.at_mut(&out) += x.at(&at) * w.at(&tap);
                *dx.at_mut(&at) += seed.at(&out) * w.at(&tap);
                *dw.at_mut(&tap) += seed.at(&out) * x.at(&at);
            }
        });
        let (tx, tw, tb) = (x.laid(of_x), w.laid(of_w), b.tensor());
        let tape = GradientTape::new();
        [&tx, &tw, &tb].into_iter().for_each(|t| tape.watch(t));
        let got = tx.convolve(&tw, Some(&tb), options)?;
        same(&got, &y)?;
        let db = seed.tensor().sum_axes((0..=case.axes() as isize).collect::<Vec<_>>(), false)?;
        let gradients = tape.gradient_with_seed(&got, &seed.tensor(), &[&tx, &tw, &tb])?;
        let db = Array { shape: vec![to], data: db.to_vec::<f64>()? };
        for (gradient, want) in gradients.iter().zip([&dx, &dw, &db]) {
            same(&gradient.as_ref().unwrap().to_dense()?, want)?;
        }
        // In f32 these whole numbers are exact too.
        let single = tx.cast(couplet::DType::F32)?.convolve(tw.cast(couplet::DType::F32)?, None, options)?;
        let without = Array::from_fn(&shape, |p| y.at(p) - b.at(&p[p.len() - 1..]));
        same(&single, &without)?;

        // The transposed convolution is what takes the seed back to the input.
        let back = seed.tensor().convolve_transpose(&tw, &x.shape[1..=case.axes()], options)?;
        same(&back, &dx)?;
    }

    #[test]
    fn each_channel_by_itself(case in case()) {
        let Case { x, w, options, layouts: [of_x, of_w], .. } = &case;
        let (channels, multiplier) = (x.shape[case.axes() + 1], w.shape[case.axes() + 1]);
        let shape = case.output(channels * multiplier);
        let mut y = Array::zeros(&shape);
        let (mut dx, mut dw) = (Array::zeros(&x.shape), Array::zeros(&w.shape));
        case.taps(|o, k, i| {
            for p in positions(&[x.shape[0], channels, multiplier]) {
                let (at, tap) = (around(p[0], i, p[1]), [k, &p[1..]].concat());
                *y.at_mut(&around(p[0], o, p[1] * multiplier + p[2])) += x.at(&at) * w.at(&tap);
                *dx.at_mut(&at) += w.at(&tap);
                *dw.at_mut(&tap) += x.at(&at);
            }
        });
        let (tx, tw) = (x.laid(of_x), w.laid(of_w));
        let tape = GradientTape::new();
        [&tx, &tw].into_iter().for_each(|t| tape.watch(t));
        let got = tx.depthwise_convolve(&tw, options)?;
        same(&got, &y)?;
        for (gradient, want) in tape.gradient(&got.sum()?, &[&tx, &tw])?.iter().zip([&dx, &dw]) {
            let dense = gradient.as_ref().map_or_else(|| Tensor::zeros(&want.shape[..], tx.dtype()), |g| g.to_dense())?;
            same(&dense, want)?;
        }
    }
}
