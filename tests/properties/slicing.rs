//! Slices with steps as Python has them, read, written and differentiated.

use couplet::{GradientTape, Slice, Tensor};
use proptest::prelude::*;

use crate::array::{Array, Layout, array, config, layout, positions, same, shape};

fn slice() -> impl Strategy<Value = Slice> {
    let bound = || prop::option::of(-7isize..=7);
    let range =
        (bound(), bound(), -3isize..=3).prop_map(|(start, stop, step)| Slice::Range { start, stop, step });
    prop_oneof![4 => range, 1 => (-5isize..=5).prop_map(Slice::Index)]
}

fn case() -> impl Strategy<Value = (Array, Vec<Slice>, Layout)> {
    shape(3, 5).prop_flat_map(|s| {
        let rank = s.len();
        (array(s), prop::collection::vec(slice(), 0..=rank + 1), layout())
    })
}

/// The indices that a slice names, and whether the axis stays; nothing if there are none such.
fn indices(slice: Slice, size: usize) -> Option<(Vec<usize>, bool)> {
    let n = size as isize;
    match slice {
        Slice::Index(index) => {
            let at = if index < 0 { index + n } else { index };
            (0..n).contains(&at).then(|| (vec![at as usize], false))
        }
        Slice::Range { step: 0, .. } => None,
        Slice::Range { start, stop, step } => {
            // Python counts a negative bound from the end; what then still lies outside is cut to the nearest end.
            let from_end = |i: isize| if i < 0 { i + n } else { i };
            let mut list = Vec::new();
            if step > 0 {
                let mut at = start.map_or(0, |i| from_end(i).max(0));
                while at < stop.map_or(n, from_end).min(n) {
                    list.push(at as usize);
                    at += step;
                }
            } else {
                let mut at = start.map_or(n - 1, |i| from_end(i).min(n - 1));
                while at > stop.map_or(-1, |i| from_end(i).max(-1)) && at >= 0 {
                    list.push(at as usize);
                    at += step;
                }
            }
            Some((list, true))
        }
    }
}

/// Indices of every axis, and which axes stay.
fn all_indices(slices: &[Slice], shape: &[usize]) -> Option<(Vec<Vec<usize>>, Vec<bool>)> {
    if slices.len() > shape.len() {
        return None;
    }
    let at = |axis: usize| slices.get(axis).copied().unwrap_or(Slice::step(1));
    shape
        .iter()
        .enumerate()
        .map(|(axis, &size)| indices(at(axis), size))
        .collect::<Option<Vec<_>>>()
        .map(|l| l.into_iter().unzip())
}

/// The positions that the slices name, in row-major order, and the shape of the part.
fn places(lists: &[Vec<usize>], kept: &[bool]) -> (Vec<Vec<usize>>, Vec<usize>) {
    let dims: Vec<usize> = lists.iter().map(Vec::len).collect();
    let place = |p: Vec<usize>| p.iter().zip(lists).map(|(&i, list)| list[i]).collect();
    let shape = dims.iter().zip(kept).filter(|&(_, &kept)| kept).map(|(&dim, _)| dim).collect();
    (positions(&dims).map(place).collect(), shape)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn parts_hold_what_python_says((x, slices, of_x) in case()) {
        let t = x.laid(&of_x);
        let Some((lists, kept)) = all_indices(&slices, &x.shape) else {
            prop_assert!(t.slice(&slices).is_err() && t.with_slice(&slices, 0).is_err());
            return Ok(());
        };
        let (places, shape) = places(&lists, &kept);
        let want = Array { shape, data: places.iter().map(|p| x.at(p)).collect() };
        same(&t.slice(&slices)?, &want)?;

        let (mut written, mut gradient) = (x.clone(), Array::zeros(&x.shape));
        for (i, place) in places.iter().enumerate() {
            *written.at_mut(place) = i as f64 + 10.0;
            *gradient.at_mut(place) = i as f64 + 10.0;
        }
        let numbers = Tensor::arange(10.0, 10.0 + places.len() as f64, 1.0, t.dtype())?;
        let numbers = numbers.reshape(&want.shape[..])?;
        same(&t.with_slice(&slices, &numbers)?, &written)?;
        // Into memory that nobody else holds.
        same(&(t.with_slice(&slices, &numbers)? + 0.0)?, &written)?;
        same(&t, &x)?;

        let tape = GradientTape::new();
        tape.watch(&t);
        let y = (t.slice(&slices)? * &numbers)?.sum()?;
        let dx = tape.gradient(&y, &[&t])?.remove(0).unwrap().to_dense()?;
        same(&dx, &gradient)?;
    }

    #[test]
    fn bounds_of_any_size_are_cut(start in any::<Option<isize>>(), stop in any::<Option<isize>>(), step in any::<isize>()) {
        let x = Tensor::arange(0.0, 5.0, 1.0, couplet::DType::I64)?;
        let part = x.slice(&[Slice::Range { start, stop, step }]);
        prop_assert_eq!(part.is_err(), step == 0);
        if let Ok(part) = part {
            // Bounds far outside name what bounds just outside do, and steps beyond the axis what the axis' length does.
            let near = |b: Option<isize>| b.map(|b| b.clamp(-6, 6));
            let (list, _) = indices(Slice::Range { start: near(start), stop: near(stop), step: step.clamp(-6, 6) }, 5).unwrap();
            let list: Vec<i64> = list.into_iter().map(|i| i as i64).collect();
            prop_assert_eq!(part.to_vec::<i64>()?, list);
        }
    }

    #[test]
    fn parts_put_together_are_the_whole((x, at, cuts, of_x) in shape(3, 5)
        .prop_filter("an axis", |s| !s.is_empty())
        .prop_flat_map(|s| { let rank = s.len(); (array(s), 0..rank, prop::collection::vec(0usize..6, 0..3), layout()) }))
    {
        let (t, axis, dim) = (x.laid(&of_x), at as isize, x.shape[at]);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(dim)).chain([0, dim]).collect();
        cuts.sort_unstable();
        let sizes: Vec<usize> = cuts.windows(2).map(|w| w[1] - w[0]).collect();
        let parts = t.split(&sizes, axis)?;
        prop_assert!(parts.iter().zip(&sizes).all(|(p, &s)| p.shape()[at] == s));
        same(&Tensor::concat(&parts.iter().collect::<Vec<_>>(), axis)?, &x)?;
        let slices = t.unstack(axis)?;
        if !slices.is_empty() {
            same(&Tensor::stack(&slices.iter().collect::<Vec<_>>(), axis)?, &x)?;
        }
        same(&t.reverse(axis)?.reverse(axis)?, &x)?;
        let shift = cuts[cuts.len() / 2] as isize - 3;
        let rolled = Array::from_fn(&x.shape, |p| {
            let mut p = p.to_vec();
            p[at] = (p[at] as isize - shift).rem_euclid(dim as isize) as usize;
            x.at(&p)
        });
        same(&t.roll(shift, axis)?, &rolled)?;
    }
}
