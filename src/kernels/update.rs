//! Fused steps of optimisers: a parameter and its slots change in one pass.

use half::{bf16, f16};
use num_traits::Float;

use super::parallel::{SendPtr, for_each};
use super::simd::vectorized;
use crate::dtype::Element;

/// Elements that one thread changes at a time.
const CHUNK: usize = 16 << 10;
/// Elements that are read before any is written, so that the compiler need not tell the slices apart. There may be fewer,
/// which keeps it from unrolling the loop before it sees the vectors in it.
const BLOCK: usize = 64;

/// A float type that updates are computed in.
pub(crate) trait Real: Float + Default + Send + Sync {
    /// The number nearest to `v`.
    fn of(v: f64) -> Self;
    /// The same number.
    fn wide(self) -> f64;
}

impl Real for f32 {
    #[inline(always)]
    fn of(v: f64) -> Self {
        v as f32
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    #[inline(always)]
    fn of(v: f64) -> Self {
        v
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
}

/// A float type that parameters are kept in.
pub(crate) trait Kept: Element {
    /// What its updates are computed in: half floats in f32, rounded once.
    type Real: Real;
    fn up(self) -> Self::Real;
    fn down(v: Self::Real) -> Self;
}

macro_rules! kept {
    ($($t:ty: $real:ty, $up:expr, $down:expr;)*) => {$(
        impl Kept for $t {
            type Real = $real;
            #[inline(always)]
            fn up(self) -> $real { ($up)(self) }
            #[inline(always)]
            fn down(v: $real) -> Self { ($down)(v) }
        }
    )*};
}

kept! {
    f32: f32, |v| v, |v| v;
    f64: f64, |v| v, |v| v;
    f16: f32, f16::to_f32, f16::from_f32;
    bf16: f32, bf16::to_f32, bf16::from_f32;
}

/// `state = f(g, state)`, element by element. All slices have the length of `g`.
///
/// `f` should be an `#[inline(always)]` closure, so that its loop uses wide registers.
pub(crate) fn update<T: Kept, const N: usize>(
    state: [&mut [T]; N],
    g: &[T],
    f: impl Fn(T::Real, [T::Real; N]) -> [T::Real; N] + Copy + Sync,
) {
    assert!(state.iter().all(|s| s.len() == g.len()), "a parameter, its slots and its update have one size");
    if g.len() <= CHUNK {
        return run(state, g, f);
    }
    let state = state.map(|s| SendPtr(s.as_mut_ptr()));
    for_each(g.len().div_ceil(CHUNK), |i| {
        let start = i * CHUNK;
        let g = &g[start..(start + CHUNK).min(g.len())];
        let part = state.each_ref().map(|s| {
            // SAFETY: the slice has the length of the whole `g`, so that this part lies inside it, and is borrowed
            // mutably until `for_each` returns. Parts of different `i` do not overlap, and each `i` comes once.
            unsafe { std::slice::from_raw_parts_mut(s.get().add(start), g.len()) }
        });
        run(part, g, f);
    });
}

/// The same for some rows of a table, `width` elements long each: row `k` of `g` belongs to row `rows[k]` of the state.
///
/// Rows are taken one after the other, and may come again.
pub(crate) fn update_rows<T: Kept, const N: usize>(
    mut state: [&mut [T]; N],
    width: usize,
    rows: &[usize],
    g: &[T],
    f: impl Fn(T::Real, [T::Real; N]) -> [T::Real; N] + Copy + Sync,
) {
    if width == 0 {
        return;
    }
    for (&row, g) in rows.iter().zip(g.chunks_exact(width)) {
        let part = state.each_mut().map(|s| &mut s[row * width..(row + 1) * width]);
        run(part, g, f);
    }
}

/// Adds row `k` of `x` to row `into[k]` of `y`, in order.
pub(crate) fn add_rows<T: Kept>(x: &[T], width: usize, into: &[usize], y: &mut [T::Real]) {
    if width == 0 {
        return;
    }
    for (&row, x) in into.iter().zip(x.chunks_exact(width)) {
        let y = &mut y[row * width..(row + 1) * width];
        y.iter_mut().zip(x).for_each(|(y, x)| *y = *y + x.up());
    }
}

/// Sums go back to the type of the values, rounded once.
pub(crate) fn round<T: Kept>(x: &[T::Real], y: &mut [T]) {
    y.iter_mut().zip(x).for_each(|(y, &x)| *y = T::down(x));
}

fn run<T: Kept, const N: usize>(
    mut state: [&mut [T]; N],
    g: &[T],
    f: impl Fn(T::Real, [T::Real; N]) -> [T::Real; N] + Copy,
) {
    let mut update = [T::Real::default(); BLOCK];
    let mut values = [[T::Real::default(); BLOCK]; N];
    for (block, g) in g.chunks(BLOCK).enumerate() {
        let range = block * BLOCK..block * BLOCK + g.len();
        update.iter_mut().zip(g).for_each(|(u, g)| *u = g.up());
        for (values, state) in values.iter_mut().zip(&state) {
            values.iter_mut().zip(&state[range.clone()]).for_each(|(v, s)| *v = s.up());
        }
        compute(&update[..g.len()], &mut values, f);
        for (values, state) in values.iter().zip(&mut state) {
            state[range.clone()].iter_mut().zip(values).for_each(|(s, &v)| *s = T::down(v));
        }
    }
}

/// `values = f(update, values)`: the one copy of a rule's loop for all types that are computed in `R`.
#[inline(never)]
fn compute<R: Real, const N: usize>(
    update: &[R],
    values: &mut [[R; BLOCK]; N],
    f: impl Fn(R, [R; N]) -> [R; N] + Copy,
) {
    vectorized(
        #[inline(always)]
        || {
            // Counting loops: what `array::map` and `zip` call is not always inlined here, and then nothing is vectorised.
            for (lane, &update) in update.iter().take(BLOCK).enumerate() {
                let mut own = [R::zero(); N];
                let mut n = 0;
                while n < N {
                    own[n] = values[n][lane];
                    n += 1;
                }
                let next = f(update, own);
                n = 0;
                while n < N {
                    values[n][lane] = next[n];
                    n += 1;
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::parallel::with_threads;

    #[test]
    fn every_element_is_updated_once_whatever_the_threads() {
        for n in [0, 1, 15, 16, 17, CHUNK, 2 * CHUNK + 5] {
            let g: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let run = || {
                let (mut p, mut m) = (vec![1f32; n], vec![2f32; n]);
                update([&mut p, &mut m], &g, |g, [p, m]| [p - g, m + g * p]);
                (p, m)
            };
            let (p, m) = run();
            assert!(p.iter().zip(&g).all(|(p, g)| *p == 1.0 - g), "{n}");
            assert!(m.iter().zip(&g).all(|(m, g)| *m == 2.0 + g), "{n}");
            assert!(with_threads(1, run) == (p, m));
        }
    }

    #[test]
    fn rows_are_updated_in_turn() {
        let mut p = vec![0f64; 8];
        update_rows([&mut p], 2, &[3, 0, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], |g, [p]| [2.0 * p + g]);
        assert_eq!(p, [3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 7.0, 10.0]);
        update_rows::<f64, 1>([&mut []], 0, &[0], &[], |_, p| p);
    }

    #[test]
    fn half_floats_are_computed_in_single_precision() {
        let mut p = [bf16::from_f32(1.0)];
        // Neighbours of 1 are 2^-7 apart: rounding after each addition would lead back to 1.
        let g = [bf16::from_f32(2f32.powi(-8))];
        update([&mut p], &g, |g, [p]| [p + g + g]);
        assert_eq!(p[0].to_f32(), 1.0 + 2f32.powi(-7));
    }
}
