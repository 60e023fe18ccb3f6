//! Positions of the largest and smallest elements along an axis.

use std::marker::PhantomData;

use super::super::layout::View;
use super::super::simd::vectorized;
use super::number::Number;
use super::op::reduce_with;
use super::walk::Fold;

/// Elements looked at together in the search for one.
const CHUNK: usize = 32;

/// Positions along `axis` of the largest elements, of the first of several; 0 where there is nothing but NaN. `y` is
/// row-major over the other dims.
pub(crate) fn argmax<T: Number>(x: View<T>, axis: usize, y: &mut [i64]) {
    along(x, axis, y, &Best::<T, true>(PhantomData));
}

/// Positions along `axis` of the smallest elements, of the first of several; 0 where there is nothing but NaN. `y` is
/// row-major over the other dims.
pub(crate) fn argmin<T: Number>(x: View<T>, axis: usize, y: &mut [i64]) {
    along(x, axis, y, &Best::<T, false>(PhantomData));
}

fn along<T: Number>(x: View<T>, axis: usize, y: &mut [i64], op: &dyn Fold) {
    let rank = x.shape().len();
    if rank <= 8 {
        reduce_with(x, &std::array::from_fn::<_, 8, _>(|d| d == axis)[..rank], y, op);
    } else {
        reduce_with(x, &(0..rank).map(|d| d == axis).collect::<Vec<_>>(), y, op);
    }
}

/// The best element so far and where it is.
#[derive(Clone, Copy)]
struct State<T> {
    best: T,
    at: i64,
}

/// Looks for the largest or the smallest element.
struct Best<T, const LARGEST: bool>(PhantomData<T>);

impl<T: Number, const LARGEST: bool> Best<T, LARGEST> {
    const START: State<T> = State { best: if LARGEST { T::LOWEST } else { T::HIGHEST }, at: -1 };

    /// Whether `x` replaces the best one so far; NaN never does.
    #[inline(always)]
    fn beats(x: T, state: State<T>) -> bool {
        let better = if LARGEST { x > state.best } else { x < state.best };
        better || (state.at < 0 && x == state.best)
    }

    #[inline(always)]
    fn pick(state: State<T>, other: State<T>) -> State<T> {
        if other.at >= 0 && Self::beats(other.best, state) { other } else { state }
    }

    /// The best of `x`, that of no elements if all are NaN.
    #[inline(never)]
    fn best(x: &[T]) -> T {
        vectorized(
            #[inline(always)]
            || {
                let (chunks, rest) = x.as_chunks::<CHUNK>();
                let better = |a, b| if (LARGEST && b > a) || (!LARGEST && b < a) { b } else { a };
                let mut lanes = [Self::START.best; CHUNK];
                for chunk in chunks {
                    for lane in 0..CHUNK {
                        lanes[lane] = better(lanes[lane], chunk[lane]);
                    }
                }
                lanes.iter().chain(rest).fold(Self::START.best, |a, &b| better(a, b))
            },
        )
    }

    /// Where `best` first is in `x`.
    #[inline(never)]
    fn find(x: &[T], best: T) -> Option<usize> {
        let found = |&x: &T| x == best;
        vectorized(
            #[inline(always)]
            || {
                let any = |chunk: &[T]| chunk.iter().fold(false, |any, x| any | found(x));
                let chunk = x.chunks(CHUNK).position(any)?;
                Some(chunk * CHUNK + x[chunk * CHUNK..].iter().position(found)?)
            },
        )
    }
}

// SAFETY: each method touches what its arguments describe, with the types that `sizes` states.
unsafe impl<T: Number, const LARGEST: bool> Fold for Best<T, LARGEST> {
    fn sizes(&self) -> [usize; 3] {
        const { assert!(align_of::<State<T>>() <= 16 && size_of::<State<T>>() <= 16) };
        [size_of::<T>(), size_of::<State<T>>(), size_of::<i64>()]
    }

    fn positional(&self) -> bool {
        true
    }

    unsafe fn start(&self, states: *mut u8, n: usize) {
        for i in 0..n {
            // SAFETY: the caller has room for `n` states.
            unsafe { states.cast::<State<T>>().add(i).write(Self::START) };
        }
    }

    unsafe fn run(&self, state: *mut u8, x: *const u8, n: usize, first: usize) {
        // SAFETY: the caller's `n` elements and state.
        let (state, x) =
            unsafe { (&mut *state.cast::<State<T>>(), std::slice::from_raw_parts(x.cast::<T>(), n)) };
        let best = Self::best(x);
        if Self::beats(best, *state) {
            let at = Self::find(x, best).map_or(-1, |at| (first + at) as i64);
            *state = State { best, at };
        }
    }

    unsafe fn rows(
        &self,
        states: *mut u8,
        x: *const u8,
        pitch: isize,
        rows: usize,
        columns: usize,
        first: usize,
    ) {
        for r in 0..rows {
            // SAFETY: the caller's rows and states.
            let (states, row) = unsafe {
                let row = x.offset(r.cast_signed() * pitch).cast::<T>();
                let states = std::slice::from_raw_parts_mut(states.cast::<State<T>>(), columns);
                (states, std::slice::from_raw_parts(row, columns))
            };
            for (state, &best) in states.iter_mut().zip(row) {
                if Self::beats(best, *state) {
                    *state = State { best, at: (first + r) as i64 };
                }
            }
        }
    }

    unsafe fn merge(&self, states: *mut u8, others: *const u8, n: usize) {
        let (states, others) = (states.cast::<State<T>>(), others.cast::<State<T>>());
        for i in 0..n {
            // SAFETY: the caller has `n` states at both.
            unsafe { *states.add(i) = Self::pick(*states.add(i), *others.add(i)) };
        }
    }

    unsafe fn finish(&self, states: *const u8, n: usize, y: *mut u8, step: usize) {
        for i in 0..n {
            // SAFETY: the caller has `n` states, and room for as many results.
            unsafe {
                let state = *states.cast::<State<T>>().add(i);
                y.cast::<i64>().add(i * step).write(state.at.max(0));
            }
        }
    }
}
