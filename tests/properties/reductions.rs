//! Reductions over any axes, and running along one.

use couplet::{Result, Tensor};
use proptest::prelude::*;

use crate::array::{Array, Layout, array, config, fewer, full_shape, layout, near, positions, same, shape};

/// An array, marks of the axes to reduce, whether they stay, and a layout.
fn case() -> impl Strategy<Value = (Array, Vec<bool>, bool, Layout)> {
    shape(4, 5).prop_flat_map(|s| {
        let marks = prop::collection::vec(any::<bool>(), s.len());
        (array(s), marks, any::<bool>(), layout())
    })
}

/// The marked axes, some counted from the end.
fn axes(marks: &[bool]) -> Vec<isize> {
    let rank = marks.len() as isize;
    let marked = (0..rank).filter(|&axis| marks[axis as usize]);
    marked.map(|axis| if axis % 2 == 0 { axis } else { axis - rank }).collect()
}

/// `f` of the elements of each output, in row-major order.
fn reduced(x: &Array, marks: &[bool], keep: bool, f: impl Fn(&[f64]) -> f64) -> Array {
    let kept: Vec<usize> =
        x.shape.iter().zip(marks).map(|(&dim, &mark)| if mark { 1 } else { dim }).collect();
    let mut lanes = vec![Vec::new(); kept.iter().product()];
    let index = Array::from_fn(&kept, {
        let mut next = 0.0;
        move |_| {
            next += 1.0;
            next - 1.0
        }
    });
    for p in positions(&x.shape) {
        let at: Vec<usize> = p.iter().zip(marks).map(|(&p, &mark)| if mark { 0 } else { p }).collect();
        lanes[index.at(&at) as usize].push(x.at(&p));
    }
    let data = lanes.iter().map(|lane| f(lane)).collect();
    let dropped = || x.shape.iter().zip(marks).filter(|&(_, &mark)| !mark).map(|(&dim, _)| dim).collect();
    Array { shape: if keep { kept } else { dropped() }, data }
}

type Reduce = (fn(&Tensor, Vec<isize>, bool) -> Result<Tensor>, fn(&[f64]) -> f64);

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn variance(x: &[f64]) -> f64 {
    x.iter().map(|v| (v - mean(x)) * (v - mean(x))).sum::<f64>() / x.len() as f64
}

const REDUCE: [Reduce; 11] = [
    (|x, axes, keep| x.sum_axes(axes, keep), |x| x.iter().sum()),
    (|x, axes, keep| x.prod_axes(axes, keep), |x| x.iter().product()),
    (|x, axes, keep| x.max_axes(axes, keep), |x| x.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
    (|x, axes, keep| x.min_axes(axes, keep), |x| x.iter().copied().fold(f64::INFINITY, f64::min)),
    (|x, axes, keep| x.mean_axes(axes, keep), mean),
    (|x, axes, keep| x.var_axes(axes, keep), variance),
    (|x, axes, keep| x.std_axes(axes, keep), |x| variance(x).sqrt()),
    (|x, axes, keep| x.norm_axes(axes, keep), |x| x.iter().map(|v| v * v).sum::<f64>().sqrt()),
    (|x, axes, keep| x.logsumexp_axes(axes, keep), |x| x.iter().map(|v| v.exp()).sum::<f64>().ln()),
    (
        |x, axes, keep| x.greater(0.0)?.any_axes(axes, keep),
        |x| f64::from(u8::from(x.iter().any(|&v| v > 0.0))),
    ),
    (|x, axes, keep| x.count_nonzero_axes(axes, keep), |x| x.iter().filter(|&&v| v != 0.0).count() as f64),
];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_axes_in_any_layout((x, marks, keep, of_x) in case(), op in prop::sample::select(&REDUCE[..])) {
        let want = reduced(&x, &marks, keep, op.1);
        near(&op.0(&x.laid(&of_x), axes(&marks), keep)?, &want, 1e-14)?;
    }

    #[test]
    fn integers_too((x, marks, keep, of_x) in case()) {
        for dtype in [couplet::DType::I32, couplet::DType::I64, couplet::DType::I8] {
            let y = x.laid(&of_x).cast(dtype)?.sum_axes(axes(&marks), keep)?;
            same(&y, &reduced(&x, &marks, keep, |x| x.iter().sum()))?;
        }
    }

    #[test]
    fn the_place_of_the_largest_is_the_first((x, at, of_x) in full_shape(3, 5)
        .prop_filter("an axis", |s| !s.is_empty())
        .prop_flat_map(|s| { let rank = s.len(); (array(s), 0..rank, layout()) }))
    {
        let marks: Vec<bool> = (0..x.shape.len()).map(|axis| axis == at).collect();
        let first = |x: &[f64], better: fn(f64, f64) -> bool| {
            (1..x.len()).fold(0, |best, i| if better(x[i], x[best]) { i } else { best }) as f64
        };
        let t = x.laid(&of_x);
        same(&t.argmax(at as isize)?, &reduced(&x, &marks, false, |x| first(x, |a, b| a > b)))?;
        same(&t.argmin(at as isize)?, &reduced(&x, &marks, false, |x| first(x, |a, b| a < b)))?;
    }

    #[test]
    fn running_sums_sorts_and_softmax_follow_each_lane((x, at, reverse, exclusive, of_x) in shape(3, 5)
        .prop_filter("an axis", |s| !s.is_empty())
        .prop_flat_map(|s| { let rank = s.len(); (array(s), 0..rank, any::<bool>(), any::<bool>(), layout()) }))
    {
        // Each lane along the axis by itself.
        let lanes = |f: &dyn Fn(&[f64]) -> Vec<f64>| {
            let mut y = x.clone();
            for p in positions(&x.shape).filter(|p| p[at] == 0) {
                let place = |i: usize| { let mut p = p.clone(); p[at] = i; p };
                let lane: Vec<f64> = (0..x.shape[at]).map(|i| x.at(&place(i))).collect();
                for (i, v) in f(&lane).into_iter().enumerate() {
                    *y.at_mut(&place(i)) = v;
                }
            }
            y
        };
        let (t, axis) = (x.laid(&of_x), at as isize);
        let run = |lane: &[f64], start: f64, add: fn(f64, f64) -> f64| {
            let mut order: Vec<usize> = (0..lane.len()).collect();
            if reverse {
                order.reverse();
            }
            let (mut sum, mut y) = (start, vec![0.0; lane.len()]);
            for i in order {
                let next = add(sum, lane[i]);
                y[i] = if exclusive { sum } else { next };
                sum = next;
            }
            y
        };
        same(&t.cumsum(axis, exclusive, reverse)?, &lanes(&|l| run(l, 0.0, |a, b| a + b)))?;
        same(&t.cumprod(axis, exclusive, reverse)?, &lanes(&|l| run(l, 1.0, |a, b| a * b)))?;
        let sorted = |l: &[f64]| {
            let mut l = l.to_vec();
            l.sort_by(|a, b| a.partial_cmp(b).unwrap());
            if reverse {
                l.reverse();
            }
            l
        };
        same(&t.sort(axis, reverse)?, &lanes(&sorted))?;
        let softmax = |l: &[f64]| {
            let sum: f64 = l.iter().map(|v| v.exp()).sum();
            l.iter().map(|v| v.exp() / sum).collect()
        };
        near(&t.softmax(axis)?, &lanes(&softmax), 1e-14)?;
        near(&t.log_softmax(axis)?.exp()?, &lanes(&softmax), 1e-14)?;
    }
}

proptest! {
    #![proptest_config(fewer())]

    #[test]
    fn axes_longer_than_a_vector((x, marks, of_x) in (1usize..=3, 1usize..=300, 1usize..=40)
        .prop_flat_map(|(a, b, c)| (array(vec![a, b, c]), prop::collection::vec(any::<bool>(), 3), layout())),
        op in prop::sample::select(&REDUCE[..]))
    {
        let want = reduced(&x, &marks, false, op.1);
        near(&op.0(&x.laid(&of_x), axes(&marks), false)?, &want, 1e-12)?;
    }
}
