//! Padding by a constant and by mirror images.

use couplet::{GradientTape, PadMode};
use proptest::prelude::*;

use crate::array::{Array, Layout, array, config, layout, positions, same, shape};

fn case() -> impl Strategy<Value = (Array, Vec<(usize, usize)>, Layout)> {
    shape(3, 4).prop_flat_map(|s| {
        let pads = prop::collection::vec((0usize..=4, 0usize..=4), s.len());
        (array(s), pads, layout())
    })
}

/// Where position `at` of the padded axis comes from.
fn source(mode: PadMode, at: usize, before: usize, size: usize) -> Option<usize> {
    let (i, n) = (at as isize - before as isize, size as isize);
    let mirrored = match mode {
        _ if (0..n).contains(&i) => i,
        PadMode::Reflect if i < 0 => -i,
        PadMode::Reflect => 2 * n - 2 - i,
        PadMode::Symmetric if i < 0 => -i - 1,
        PadMode::Symmetric => 2 * n - 1 - i,
        _ => return None,
    };
    Some(mirrored as usize)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_element_comes_from_its_place_and_gets_its_gradient(
        (x, pads, of_x) in case(),
        mode in prop::sample::select(&[PadMode::Constant(7.0), PadMode::Reflect, PadMode::Symmetric][..]),
    ) {
        let t = x.laid(&of_x);
        let tape = GradientTape::new();
        tape.watch(&t);
        let most = |size: usize| match mode {
            PadMode::Constant(_) => usize::MAX,
            PadMode::Reflect => size.saturating_sub(1),
            _ => size,
        };
        let fits = pads.iter().zip(&x.shape).all(|(p, &size)| p.0.max(p.1) <= most(size));
        let y = t.pad(&pads, mode);
        prop_assert_eq!(y.is_ok(), fits, "{:?}", y.map(|y| y.shape().clone()));
        let Ok(y) = y else { return Ok(()) };
        let dims: Vec<usize> = x.shape.iter().zip(&pads).map(|(size, p)| size + p.0 + p.1).collect();
        let place = |p: &[usize]| -> Option<Vec<usize>> {
            p.iter().zip(&pads).zip(&x.shape).map(|((&at, pad), &size)| source(mode, at, pad.0, size)).collect()
        };
        same(&y, &Array::from_fn(&dims, |p| place(p).map_or(7.0, |from| x.at(&from))))?;
        let dx = tape.gradient(&y.sum()?, &[&t])?.remove(0).unwrap().to_dense()?;
        let mut counts = Array::zeros(&x.shape);
        positions(&dims).filter_map(|p| place(&p)).for_each(|from| *counts.at_mut(&from) += 1.0);
        same(&dx, &counts)?;
    }

    #[test]
    fn copies_stand_where_they_belong((x, of_x) in shape(3, 3).prop_flat_map(|s| (array(s), layout())), times in prop::collection::vec(0usize..=3, 3), at in 0usize..3) {
        let t = x.laid(&of_x);
        let times = &times[..x.shape.len()];
        let dims: Vec<usize> = x.shape.iter().zip(times).map(|(d, m)| d * m).collect();
        let wrap = |p: &[usize]| p.iter().zip(&x.shape).map(|(p, d)| p % d).collect::<Vec<_>>();
        same(&t.tile(times)?, &Array::from_fn(&dims, |p| x.at(&wrap(p))))?;
        if at < x.shape.len() {
            let mut dims = x.shape.clone();
            dims[at] *= times[at];
            let each = |p: &[usize]| { let mut p = p.to_vec(); p[at] /= times[at]; p };
            same(&t.repeat(times[at], at as isize)?, &Array::from_fn(&dims, |p| x.at(&each(p))))?;
        }
    }
}
