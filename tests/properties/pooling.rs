//! The largest and the mean value of windows.

use couplet::{GradientTape, Padding, Pool};
use proptest::prelude::*;

use crate::array::{Array, Layout, array, config, layout, near, positions, same};

/// Windows over the spatial axes of an input with its channels last.
#[derive(Debug, Clone)]
struct Case {
    x: Array,
    window: Vec<usize>,
    stride: Vec<usize>,
    padding: Padding,
    channels_first: bool,
    layout: Layout,
}

fn case() -> impl Strategy<Value = Case> {
    let axis = (0usize..=5, 1usize..=3, 1usize..=3, 0usize..=2, 0usize..=2);
    (prop::collection::vec(axis, 1..=3), 0usize..=2, 1usize..=3, 0u8..3, any::<bool>(), layout())
        .prop_flat_map(|(axes, batch, channels, padding, channels_first, layout)| {
            let shape: Vec<usize> =
                [batch].into_iter().chain(axes.iter().map(|a| a.0)).chain([channels]).collect();
            let padding = match padding {
                0 => Padding::Same,
                1 => Padding::Valid,
                _ => Padding::Explicit(axes.iter().map(|a| (a.3.min(a.1 - 1), a.4.min(a.1 - 1))).collect()),
            };
            let (window, stride) = (axes.iter().map(|a| a.1).collect(), axes.iter().map(|a| a.2).collect());
            let rest = (Just(window), Just(stride), Just(padding), Just(channels_first), Just(layout));
            (array(shape), rest)
        })
        .prop_map(|(x, (window, stride, padding, channels_first, layout))| Case {
            x,
            window,
            stride,
            padding,
            channels_first,
            layout,
        })
}

impl Case {
    fn pool(&self) -> Pool {
        let pool = Pool::new(self.window.clone()).stride(self.stride.clone()).padding(self.padding.clone());
        if self.channels_first { pool.channels_first() } else { pool }
    }

    /// Outputs and zeros before, along a spatial axis; `None` where no window fits.
    fn along(&self, axis: usize) -> Option<(usize, usize)> {
        let (size, window, stride) = (self.x.shape[axis + 1], self.window[axis], self.stride[axis]);
        let counted =
            |padded: usize| if padded < window { None } else { Some((padded - window) / stride + 1) };
        match &self.padding {
            Padding::Same => {
                let count = size.div_ceil(stride);
                let needed = if count == 0 { 0 } else { (count - 1) * stride + window };
                Some((count, needed.saturating_sub(size) / 2))
            }
            Padding::Valid => counted(size).map(|count| (count, 0)),
            Padding::Explicit(pads) => {
                counted(size + pads[axis].0 + pads[axis].1).map(|count| (count, pads[axis].0))
            }
        }
    }

    /// For each output its shape, and the positions of its window that lie inside the input.
    fn windows(&self) -> Option<(Vec<usize>, Vec<Vec<Vec<usize>>>)> {
        let axes: Vec<(usize, usize)> =
            (0..self.window.len()).map(|a| self.along(a)).collect::<Option<_>>()?;
        let (first, last) = (self.x.shape[0], self.x.shape[self.x.shape.len() - 1]);
        let shape: Vec<usize> = [first].into_iter().chain(axes.iter().map(|a| a.0)).chain([last]).collect();
        let window = |p: Vec<usize>| {
            let inside = |tap: Vec<usize>| -> Option<Vec<usize>> {
                let spatial = tap.iter().enumerate().map(|(a, k)| {
                    let at = (p[a + 1] * self.stride[a] + k).checked_sub(axes[a].1)?;
                    (at < self.x.shape[a + 1]).then_some(at)
                });
                let spatial: Vec<usize> = spatial.collect::<Option<_>>()?;
                Some([&[p[0]], &spatial[..], &[p[p.len() - 1]]].concat())
            };
            positions(&self.window).filter_map(inside).collect()
        };
        let windows = positions(&shape).map(window).collect();
        Some((shape, windows))
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn windows_hold_what_the_plain_loop_finds(case in case()) {
        let rank = case.x.shape.len() as isize;
        let t = case.x.laid(&case.layout);
        let first: Vec<isize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
        let last: Vec<isize> = [0].into_iter().chain(2..rank).chain([1]).collect();
        let t = if case.channels_first { t.transpose(&first)? } else { t };
        let to_last = |y: &couplet::Tensor| if case.channels_first { y.transpose(&last) } else { Ok(y.clone()) };
        let tape = GradientTape::persistent();
        tape.watch(&t);
        let (largest, mean) = (t.max_pool(&case.pool()), t.average_pool(&case.pool()));
        let found = case.windows();
        let empty = case.x.shape[1..rank as usize - 1].contains(&0);
        if found.is_none() && !empty {
            prop_assert!(largest.is_err() && mean.is_err());
            return Ok(());
        }
        // Whether nothing pooled by large windows is nothing or an error is left open.
        let (Some((shape, windows)), Ok(largest), Ok(mean)) = (found, largest, mean) else {
            prop_assert!(empty);
            return Ok(());
        };
        let values = |window: &Vec<Vec<usize>>| window.iter().map(|p| case.x.at(p)).collect::<Vec<f64>>();
        let of_each = |f: &dyn Fn(&[f64]) -> f64| Array { shape: shape.clone(), data: windows.iter().map(|w| f(&values(w))).collect() };
        same(&to_last(&largest)?, &of_each(&|w| w.iter().copied().fold(f64::NEG_INFINITY, f64::max)))?;
        // A window in the padding alone has the mean 0.
        near(&to_last(&mean)?, &of_each(&|w| w.iter().sum::<f64>() / w.len().max(1) as f64), 1e-14)?;

        let (mut to_largest, mut to_all) = (Array::zeros(&case.x.shape), Array::zeros(&case.x.shape));
        for window in &windows {
            let values = values(window);
            if values.is_empty() {
                continue;
            }
            let best = (1..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best });
            *to_largest.at_mut(&window[best]) += 1.0;
            window.iter().for_each(|p| *to_all.at_mut(p) += 1.0 / window.len() as f64);
        }
        for (y, want) in [(largest, to_largest), (mean, to_all)] {
            let dx = tape.gradient(&y.sum()?, &[&t])?.remove(0).unwrap().to_dense()?;
            near(&to_last(&dx)?, &want, 1e-14)?;
        }
    }
}
