//! Arrays for plain loops, and tensors of the same numbers in any layout.

use std::env;

use couplet::{DType, Slice, Tensor};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Numbers in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    pub shape: Vec<usize>,
    pub data: Vec<f64>,
}

/// All positions in a shape, in row-major order.
pub fn positions(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape = shape.to_vec();
    (0..shape.iter().product()).map(move |mut at: usize| {
        let mut position = vec![0; shape.len()];
        for (p, dim) in position.iter_mut().zip(&shape).rev() {
            *p = at % dim;
            at /= dim;
        }
        position
    })
}

impl Array {
    /// The array with `f(position)` everywhere, in row-major order.
    pub fn from_fn(shape: &[usize], mut f: impl FnMut(&[usize]) -> f64) -> Self {
        let mut position = vec![0; shape.len()];
        let size = shape.iter().product();
        let mut data = Vec::with_capacity(size);
        for _ in 0..size {
            data.push(f(&position));
            for (p, &dim) in position.iter_mut().zip(shape).rev() {
                *p += 1;
                if *p < dim {
                    break;
                }
                *p = 0;
            }
        }
        Array { shape: shape.to_vec(), data }
    }

    pub fn zeros(shape: &[usize]) -> Self {
        Array::from_fn(shape, |_| 0.0)
    }

    fn index(&self, position: &[usize]) -> usize {
        assert!(position.len() == self.shape.len() && position.iter().zip(&self.shape).all(|(p, d)| p < d));
        position.iter().zip(&self.shape).fold(0, |at, (p, dim)| at * dim + p)
    }

    pub fn at(&self, position: &[usize]) -> f64 {
        self.data[self.index(position)]
    }

    pub fn at_mut(&mut self, position: &[usize]) -> &mut f64 {
        let at = self.index(position);
        &mut self.data[at]
    }

    /// The element that stands at `position` once the array is broadcast to a shape of that rank.
    pub fn at_broadcast(&self, position: &[usize]) -> f64 {
        let own = &position[position.len() - self.shape.len()..];
        let place = |at, (&p, &dim): (&usize, &usize)| at * dim + if dim == 1 { 0 } else { p };
        self.data[own.iter().zip(&self.shape).fold(0, place)]
    }

    /// A tensor of these numbers.
    pub fn tensor(&self) -> Tensor {
        Tensor::from_vec(self.data.clone(), &self.shape[..]).unwrap()
    }

    /// A tensor of these numbers that lies in memory as `layout` says.
    pub fn laid(&self, layout: &Layout) -> Tensor {
        let rank = self.shape.len();
        // Axes in the order of their keys, outermost first.
        let mut order: Vec<usize> = (0..rank).collect();
        order.sort_by_key(|&axis| layout.keys[axis]);
        let turned = |axis: usize, p: usize| if layout.turned[axis] { self.shape[axis] - 1 - p } else { p };
        let outer: Vec<usize> = order.iter().map(|&axis| self.shape[axis] * layout.gaps[axis]).collect();
        let mut position = vec![0; rank];
        let stored = Array::from_fn(&outer, |p| {
            for (&axis, p) in order.iter().zip(p) {
                if p % layout.gaps[axis] != 0 {
                    return f64::NAN;
                }
                position[axis] = turned(axis, p / layout.gaps[axis]);
            }
            self.at(&position)
        });
        let mut back = vec![0; rank];
        order.iter().enumerate().for_each(|(i, &axis)| back[axis] = i as isize);
        let x = stored.tensor().transpose(&back).unwrap();
        let every: Vec<Slice> = layout.gaps[..rank].iter().map(|&gap| Slice::step(gap as isize)).collect();
        let reverse = |&turned: &bool| Slice::step(if turned { -1 } else { 1 });
        let reversed: Vec<Slice> = layout.turned[..rank].iter().map(reverse).collect();
        x.slice(&every).unwrap().slice(&reversed).unwrap()
    }
}

/// An order of the axes, which of them run backwards, and the distance between neighbours along each.
#[derive(Debug, Clone)]
pub struct Layout {
    keys: [u8; 6],
    turned: [bool; 6],
    gaps: [usize; 6],
}

pub fn layout() -> impl Strategy<Value = Layout> {
    let plain = Layout { keys: [0, 1, 2, 3, 4, 5], turned: [false; 6], gaps: [1; 6] };
    let any = (any::<[u8; 6]>(), any::<[bool; 6]>(), prop::array::uniform6(1usize..=2))
        .prop_map(|(keys, turned, gaps)| Layout { keys, turned, gaps });
    prop_oneof![Just(plain), any]
}

/// Shapes of up to `rank` axes of up to `dim` elements.
pub fn shape(rank: usize, dim: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..=dim, 0..=rank)
}

/// Shapes with no axis empty.
pub fn full_shape(rank: usize, dim: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1..=dim, 0..=rank)
}

/// Whole numbers from -3 to 3.
pub fn array(shape: Vec<usize>) -> impl Strategy<Value = Array> {
    let size: usize = shape.iter().product();
    prop::collection::vec(-3i8..=3, size)
        .prop_map(move |data| Array { shape: shape.clone(), data: data.into_iter().map(f64::from).collect() })
}

/// Whether a tensor has this shape and these numbers.
pub fn same(got: &Tensor, want: &Array) -> Result<(), TestCaseError> {
    near(got, want, 0.0)
}

/// The same, with numbers that differ by at most `tolerance` of 1 or of themselves; NaN is NaN.
pub fn near(got: &Tensor, want: &Array, tolerance: f64) -> Result<(), TestCaseError> {
    prop_assert_eq!(got.shape().dims(), &want.shape[..]);
    let list = got.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    let close = |got: f64, want: f64| {
        got == want
            || (got.is_nan() && want.is_nan())
            || (got - want).abs() <= tolerance * want.abs().max(1.0)
    };
    for (i, (&got, &want)) in list.iter().zip(&want.data).enumerate() {
        prop_assert!(close(got, want), "element {} is {:e}, expected {:e}", i, got, want);
    }
    Ok(())
}

/// The number of cases and their seed.
pub fn config() -> ProptestConfig {
    let mut config = ProptestConfig {
        failure_persistence: None,
        // As many as the cases need that were asked for.
        max_local_rejects: u32::MAX,
        ..ProptestConfig::default()
    };
    if env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 4096;
    }
    if env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(20_260_517);
    }
    config
}

/// A sixteenth of the cases, for those that are large.
pub fn fewer() -> ProptestConfig {
    let config = config();
    ProptestConfig { cases: config.cases.div_ceil(16), ..config }
}
