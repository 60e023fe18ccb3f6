//! Ops of two and three tensors whose shapes broadcast.

use couplet::{GradientTape, Result, Tensor};
use proptest::prelude::*;

use crate::array::{Array, Layout, array, config, fewer, layout, positions, same, shape};

/// A shape, and one that broadcasts to it: leading axes left out, others at size 1.
fn part_of(whole: &[usize]) -> impl Strategy<Value = Vec<usize>> + use<> {
    let whole = whole.to_vec();
    (0..=whole.len(), prop::collection::vec(any::<bool>(), whole.len())).prop_map(move |(skip, ones)| {
        whole.iter().zip(ones).skip(skip).map(|(&dim, one)| if one { 1 } else { dim }).collect()
    })
}

/// The shape that plain rules give: counted from the last axis, dims are equal or one of them is 1.
fn common(shapes: &[&[usize]]) -> Option<Vec<usize>> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut whole = vec![1; rank];
    for shape in shapes {
        for (dim, &other) in whole[rank - shape.len()..].iter_mut().zip(*shape) {
            match (*dim, other) {
                (a, b) if a == b => {}
                (1, b) => *dim = b,
                (_, 1) => {}
                _ => return None,
            }
        }
    }
    Some(whole)
}

fn pair() -> impl Strategy<Value = (Array, Array, Layout, Layout)> {
    shape(4, 4)
        .prop_flat_map(|whole| (part_of(&whole), part_of(&whole)))
        .prop_flat_map(|(a, b)| (array(a), array(b), layout(), layout()))
}

type Op = (fn(&Tensor, &Tensor) -> Result<Tensor>, fn(f64, f64) -> f64);

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

const OPS: [Op; 9] = [
    (|a, b| a + b, |a, b| a + b),
    (|a, b| a - b, |a, b| a - b),
    (|a, b| a * b, |a, b| a * b),
    (|a, b| a / b, |a, b| a / b),
    (|a, b| a.maximum(b), f64::max),
    (|a, b| a.minimum(b), f64::min),
    (|a, b| a.squared_difference(b), |a, b| (a - b) * (a - b)),
    (|a, b| a.less(b), |a, b| truth(a < b)),
    (|a, b| a.not_equal(b), |a, b| truth(a != b)),
];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn pairs_follow_the_plain_loop((a, b, of_a, of_b) in pair(), op in prop::sample::select(&OPS[..])) {
        let whole = common(&[&a.shape, &b.shape]).unwrap();
        let want = Array::from_fn(&whole, |p| op.1(a.at_broadcast(p), b.at_broadcast(p)));
        let (x, y) = (a.laid(&of_a), b.laid(&of_b));
        same(&op.0(&x, &y)?, &want)?;
        // Nobody else holds what is given away, so that it may be written into.
        let sum = Array::from_fn(&whole, |p| a.at_broadcast(p) + b.at_broadcast(p));
        same(&(a.laid(&of_a) + b.laid(&of_b))?, &sum)?;
        same(&(&x + b.laid(&of_b))?, &sum)?;
        same(&(a.laid(&of_a) + &y)?, &sum)?;
        same(&x, &a)?;
        same(&y, &b)?;
    }

    #[test]
    fn three_broadcast_together(
        (whole, a, b, c, of_a) in shape(3, 4)
            .prop_flat_map(|w| (part_of(&w), part_of(&w), part_of(&w)))
            .prop_flat_map(|(a, b, c)| (array(a), array(b), array(c), layout()))
            .prop_map(|(a, b, c, l)| (common(&[&a.shape, &b.shape, &c.shape]).unwrap(), a, b, c, l))
    ) {
        let y = c.tensor().greater(0.0)?.where_else(&a.laid(&of_a), b.tensor())?;
        let choose = |p: &[usize]| if c.at_broadcast(p) > 0.0 { a.at_broadcast(p) } else { b.at_broadcast(p) };
        same(&y, &Array::from_fn(&whole, choose))?;
    }

    #[test]
    fn gradients_are_summed_over_the_repeated_axes((a, b, of_a, of_b) in pair()) {
        let (x, y) = (a.laid(&of_a), b.laid(&of_b));
        let tape = GradientTape::new();
        tape.watch(&x);
        tape.watch(&y);
        let z = (&x * &y)?.sum()?;
        let gradients = tape.gradient(&z, &[&x, &y])?;
        let whole = common(&[&a.shape, &b.shape]).unwrap();
        for (gradient, (own, other)) in gradients.iter().zip([(&a, &b), (&b, &a)]) {
            let mut want = Array::zeros(&own.shape);
            for p in positions(&whole) {
                let at: Vec<usize> = p[p.len() - own.shape.len()..]
                    .iter()
                    .zip(&own.shape)
                    .map(|(&p, &dim)| if dim == 1 { 0 } else { p })
                    .collect();
                *want.at_mut(&at) += other.at_broadcast(&p);
            }
            same(&gradient.as_ref().unwrap().to_dense()?, &want)?;
        }
    }

    #[test]
    fn shapes_that_do_not_broadcast_are_errors(a in shape(4, 3), b in shape(4, 3)) {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, couplet::DType::F32).unwrap();
        let (x, y) = (zeros(&a), zeros(&b));
        match (common(&[&a, &b]), &x + &y) {
            (Some(shape), Ok(sum)) => prop_assert_eq!(sum.shape().dims(), &shape[..]),
            (None, Err(_)) => {}
            (expected, got) => prop_assert!(false, "{:?} and {:?} give {:?}, expected {:?}", a, b, got.map(|t| t.shape().clone()), expected),
        }
        let fits = a.len() <= b.len() && common(&[&a, &b]).as_ref() == Some(&b);
        prop_assert_eq!(x.broadcast_to(&b[..]).is_ok(), fits);
        let fits = b.len() <= a.len() && common(&[&a, &b]).as_ref() == Some(&a);
        prop_assert_eq!(x.sum_to(&b[..]).is_ok(), fits);
    }
}

/// Shapes of more than one block of the kernels.
fn large_pair() -> impl Strategy<Value = (Array, Array, Layout, Layout)> {
    (1usize..=4, 1usize..=200, 1usize..=70)
        .prop_map(|(a, b, c)| vec![a, b, c])
        .prop_flat_map(|whole| (Just(whole.clone()), part_of(&whole)))
        .prop_flat_map(|(a, b)| (array(a), array(b), layout(), layout()))
}

proptest! {
    #![proptest_config(fewer())]

    #[test]
    fn pairs_beyond_one_block((a, b, of_a, of_b) in large_pair(), op in prop::sample::select(&OPS[..])) {
        let (x, y) = (a.laid(&of_a), b.laid(&of_b));
        same(&x, &a)?;
        same(&op.0(&x, &y)?, &Array::from_fn(&a.shape, |p| op.1(a.at_broadcast(p), b.at_broadcast(p))))?;
        let sum = Array::from_fn(&a.shape, |p| a.at_broadcast(p) + b.at_broadcast(p));
        same(&(a.laid(&of_a) + &y)?, &sum)?;
        same(&(y + a.laid(&of_a))?, &sum)?;
    }
}
