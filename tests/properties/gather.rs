//! Elements and rows taken by index, and put back.

use couplet::{GradientTape, Tensor};
use proptest::prelude::*;

use crate::array::{Array, Layout, array, config, full_shape, layout, positions, same};

/// Numbers of rows, kept as floats in an array; with no rows there are none to name.
fn indices(shape: Vec<usize>, below: usize) -> impl Strategy<Value = Array> {
    let size: usize = shape.iter().product();
    prop::collection::vec(0..below.max(1), size).prop_map(move |list| Array {
        shape: shape.clone(),
        data: list.into_iter().map(|i| i as f64).collect(),
    })
}

fn whole(x: &Array) -> Tensor {
    x.tensor().cast(couplet::DType::I64).unwrap()
}

fn along() -> impl Strategy<Value = (Array, usize, Array, Layout)> {
    (full_shape(3, 4), full_shape(2, 3))
        .prop_filter("an axis", |(s, _)| !s.is_empty())
        .prop_flat_map(|(s, of)| {
            let rank = s.len();
            (Just(s), Just(of), 0..rank)
        })
        .prop_flat_map(|(s, of, axis)| {
            let below = s[axis];
            (array(s), Just(axis), indices(of, below), layout())
        })
}

/// A table, and positions in its first `depth` axes.
fn nd() -> impl Strategy<Value = (Array, usize, Array, Array, Layout)> {
    full_shape(3, 3)
        .prop_flat_map(|s| {
            let rank = s.len();
            (Just(s), 0..=rank, 0usize..=5)
        })
        .prop_flat_map(|(s, depth, count)| {
            let outer = s[..depth].iter().product();
            let values: Vec<usize> = [count].into_iter().chain(s[depth..].iter().copied()).collect();
            (array(s), Just(depth), indices(vec![count], outer), array(values), layout())
        })
}

/// The position in the first axes of each flat number.
fn unflattened(flat: &Array, dims: &[usize]) -> Array {
    let all: Vec<Vec<usize>> = positions(dims).collect();
    Array::from_fn(&[flat.data.len(), dims.len()], |p| all[flat.data[p[0]] as usize][p[1]] as f64)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn gather_replaces_an_axis_by_those_of_the_indices((x, axis, index, of_x) in along()) {
        let shape: Vec<usize> = [&x.shape[..axis], &index.shape, &x.shape[axis + 1..]].concat();
        let inner = index.shape.len();
        let source = |p: &[usize]| {
            let row = index.at(&p[axis..axis + inner]) as usize;
            [&p[..axis], &[row], &p[axis + inner..]].concat()
        };
        let t = x.laid(&of_x);
        let tape = GradientTape::new();
        tape.watch(&t);
        let y = t.gather(&whole(&index), axis as isize)?;
        same(&y, &Array::from_fn(&shape, |p| x.at(&source(p))))?;
        let weights = Array::from_fn(&shape, |p| p.iter().enumerate().map(|(i, p)| (i + 1) * (p + 1)).sum::<usize>() as f64);
        let dx = tape.gradient_with_seed(&y, &weights.tensor(), &[&t])?.remove(0).unwrap().to_dense()?;
        let mut want = Array::zeros(&x.shape);
        positions(&shape).for_each(|p| *want.at_mut(&source(&p)) += weights.at(&p));
        same(&dx, &want)?;
    }

    #[test]
    fn positions_are_read_written_and_added_to((x, depth, flat, values, of_x) in nd()) {
        let (t, updates) = (x.laid(&of_x), values.tensor());
        let index = unflattened(&flat, &x.shape[..depth]);
        let indices = whole(&index);
        let place = |row: usize, rest: &[usize]| {
            let mut p: Vec<usize> = (0..depth).map(|a| index.at(&[row, a]) as usize).collect();
            p.extend(rest);
            p
        };
        let read = Array::from_fn(&values.shape, |p| x.at(&place(p[0], &p[1..])));
        same(&t.gather_nd(&indices)?, &read)?;
        let (mut added, mut set, mut zeros) = (x.clone(), x.clone(), Array::zeros(&x.shape));
        for p in positions(&values.shape) {
            let to = place(p[0], &p[1..]);
            *added.at_mut(&to) += values.at(&p);
            *zeros.at_mut(&to) += values.at(&p);
            *set.at_mut(&to) = values.at(&p);
        }
        same(&t.tensor_scatter_add(&indices, &updates)?, &added)?;
        same(&t.tensor_scatter_update(&indices, &updates)?, &set)?;
        same(&updates.scatter_nd(&indices, &x.shape[..])?, &zeros)?;
        same(&t, &x)?;
    }

    #[test]
    fn elements_are_picked_along_an_axis((x, axis, index, of_x) in full_shape(3, 4)
        .prop_filter("an axis", |s| !s.is_empty())
        .prop_flat_map(|s| { let rank = s.len(); (Just(s), 0..rank, 0usize..=5) })
        .prop_flat_map(|(s, axis, count)| {
            let mut of = s.clone();
            of[axis] = count;
            let below = s[axis];
            (array(s), Just(axis), indices(of, below), layout())
        }))
    {
        let source = |p: &[usize]| { let mut p = p.to_vec(); p[axis] = index.at(&p) as usize; p };
        let t = x.laid(&of_x);
        let tape = GradientTape::new();
        tape.watch(&t);
        let y = t.take_along_axis(&whole(&index), axis as isize)?;
        same(&y, &Array::from_fn(&index.shape, |p| x.at(&source(p))))?;
        let dx = tape.gradient(&y.sum()?, &[&t])?.remove(0).unwrap().to_dense()?;
        let mut want = Array::zeros(&x.shape);
        positions(&index.shape).for_each(|p| *want.at_mut(&source(&p)) += 1.0);
        same(&dx, &want)?;
    }

    #[test]
    fn masks_choose_and_segments_add((x, depth, mask, segments, of_x) in full_shape(3, 4)
        .prop_filter("an axis", |s| !s.is_empty())
        .prop_flat_map(|s| { let rank = s.len(); (Just(s), 1..=rank) })
        .prop_flat_map(|(s, depth)| {
            let of = s[..depth].to_vec();
            (array(s), Just(depth), array(of.clone()), indices(of, 4), layout())
        }))
    {
        let t = x.laid(&of_x);
        let rest = &x.shape[depth..];
        let chosen: Vec<Vec<usize>> = positions(&mask.shape).filter(|p| mask.at(p) > 0.0).collect();
        let rows: Vec<usize> = [chosen.len()].into_iter().chain(rest.iter().copied()).collect();
        let want = Array::from_fn(&rows, |p| x.at(&[&chosen[p[0]], &p[1..]].concat()));
        same(&t.boolean_mask(&mask.tensor().greater(0.0)?)?, &want)?;
        let found = mask.tensor().greater(0.0)?.where_indices()?;
        let flat: Vec<f64> = chosen.iter().flatten().map(|&i| i as f64).collect();
        same(&found, &Array { shape: vec![chosen.len(), depth], data: flat })?;

        let mut sums = Array::zeros(&[4].into_iter().chain(rest.iter().copied()).collect::<Vec<_>>());
        for p in positions(&x.shape) {
            *sums.at_mut(&[&[segments.at(&p[..depth]) as usize], &p[depth..]].concat()) += x.at(&p);
        }
        same(&t.segment_sum(&whole(&segments), 4)?, &sums)?;
    }

    #[test]
    fn different_elements_and_where_they_are((x, of_x) in crate::array::shape(3, 4).prop_flat_map(|s| (array(s), layout()))) {
        let (values, inverse, counts) = x.laid(&of_x).unique()?;
        let mut want = x.data.clone();
        want.sort_by(|a, b| a.partial_cmp(b).unwrap());
        want.dedup();
        prop_assert_eq!(values.to_vec::<f64>()?, &want[..]);
        let back: Vec<f64> = inverse.to_vec::<i64>()?.into_iter().map(|i| want[i as usize]).collect();
        prop_assert_eq!(back, &x.data[..]);
        let count = |v: &f64| x.data.iter().filter(|x| *x == v).count() as i64;
        prop_assert_eq!(counts.to_vec::<i64>()?, want.iter().map(count).collect::<Vec<_>>());
    }

    #[test]
    fn an_index_outside_is_an_error(rows in 0usize..4, index in -3i64..6) {
        let x = Tensor::zeros([rows, 2], couplet::DType::F32)?;
        let inside = (0..rows as i64).contains(&index);
        let list = Tensor::from([index]);
        prop_assert_eq!(x.gather(&list, 0).is_ok(), inside);
    }
}
