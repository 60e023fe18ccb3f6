//! Reductions given by closures.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::super::blocks::SERIAL;
use super::super::elementwise;
use super::super::layout::View;
use super::super::simd::vectorized;
use super::walk::{self, Fold};

/// States that a run of elements is spread over, so that they can be folded in vectors.
const LANES: usize = 32;

/// A reduction of elements `T` to results `U` by way of states `S`, in any order and in parts.
pub(crate) struct Op<T, S, U, Add, Merge, Finish> {
    start: S,
    add: Add,
    merge: Merge,
    finish: Finish,
    types: PhantomData<fn(T) -> U>,
}

impl<T, S, U, Add, Merge, Finish> Op<T, S, U, Add, Merge, Finish>
where
    T: Copy + Send + Sync + 'static,
    S: Copy + Send + Sync + 'static,
    U: Copy + Send + Sync,
    Add: Fn(S, T) -> S + Sync + Copy,
    Merge: Fn(S, S) -> S + Sync,
    Finish: Fn(S) -> U + Sync,
{
    /// The op that folds elements into `start` by `add` and the states of two parts by `merge`.
    pub(crate) fn new(start: S, add: Add, merge: Merge, finish: Finish) -> Self {
        Self { start, add, merge, finish, types: PhantomData }
    }

    /// The result for all of `x`.
    pub(crate) fn of(&self, x: &[T]) -> U {
        (self.finish)(self.fold(self.start, x))
    }

    /// Reduces `x` over the dims marked in `reduced`; `y` is row-major over the other dims.
    pub(crate) fn reduce(&self, x: View<T>, reduced: &[bool], y: &mut [U]) {
        match (x.dense(), y) {
            (Some(x), [y]) if x.len() <= SERIAL => *y = self.of(x),
            (_, y) => reduce_with(x, reduced, y, self),
        }
    }

    /// Folds `x` into `state`, in vectors if it is long.
    fn fold(&self, mut state: S, x: &[T]) -> S {
        let (chunks, rest) = x.as_chunks::<LANES>();
        if !chunks.is_empty() {
            let mut lanes = [self.start; LANES];
            self.fold_lanes(&mut lanes, chunks);
            let mut width = LANES;
            while width > 1 {
                width /= 2;
                for lane in 0..width {
                    lanes[lane] = (self.merge)(lanes[lane], lanes[lane + width]);
                }
            }
            state = (self.merge)(state, lanes[0]);
        }
        rest.iter().fold(state, |state, &x| (self.add)(state, x))
    }

    /// Folds element `i` of each chunk into lane `i`. A function of its own with a copy of the lanes: only so does the
    /// compiler hold them in registers.
    #[inline(never)]
    fn fold_lanes(&self, lanes: &mut [S; LANES], chunks: &[[T; LANES]]) {
        vectorized(
            #[inline(always)]
            || {
                let (mut local, add) = (*lanes, self.add);
                for chunk in chunks {
                    for lane in 0..LANES {
                        local[lane] = add(local[lane], chunk[lane]);
                    }
                }
                *lanes = local;
            },
        );
    }

    /// Folds the rows `row(0)` to `row(rows - 1)` into one state a column, four rows at a time.
    #[inline(never)]
    fn fold_rows<'a>(&self, states: &mut [S], rows: usize, row: impl Fn(usize) -> &'a [T])
    where
        T: 'a,
    {
        vectorized(
            #[inline(always)]
            || {
                let (mut r, add) = (0, self.add);
                while r + 4 <= rows {
                    let [a, b, c, d] = [row(r), row(r + 1), row(r + 2), row(r + 3)];
                    for ((((state, &a), &b), &c), &d) in states.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                        *state = add(add(add(add(*state, a), b), c), d);
                    }
                    r += 4;
                }
                for r in r..rows {
                    states.iter_mut().zip(row(r)).for_each(|(state, &x)| *state = add(*state, x));
                }
            },
        );
    }
}

/// Reduces `x` by an op for elements `T` and results `U`.
pub(super) fn reduce_with<T: Copy + Send + Sync + 'static, U>(
    x: View<T>,
    reduced: &[bool],
    y: &mut [U],
    op: &dyn Fold,
) {
    let kept = |(&dim, &reduced): (&usize, &bool)| if reduced { 1 } else { dim };
    let results: usize = x.shape().iter().zip(reduced).map(kept).product();
    assert!(
        x.shape().len() == reduced.len() && results == y.len(),
        "a reduction has one result an index kept"
    );
    assert!(op.sizes()[0] == size_of::<T>() && op.sizes()[2] == size_of::<U>(), "the op fits its operands");
    // SAFETY: as just checked.
    if unsafe { walk::reduce(x, reduced, y.as_mut_ptr().cast(), op) }.is_some() {
        return;
    }
    // A tensor of very many dims: bring the kept ones to the front.
    let order = |last: bool| (0..reduced.len()).filter(move |&d| reduced[d] == last);
    let dims: Vec<usize> = order(false).chain(order(true)).collect();
    let shape: Vec<usize> = dims.iter().map(|&d| x.shape()[d]).collect();
    let strides: Vec<isize> = dims.iter().map(|&d| x.strides()[d]).collect();
    let x = x.with_dims(&shape, &strides);
    let mut dense = vec![MaybeUninit::<T>::uninit(); x.len()];
    elementwise::map(x, &mut dense, MaybeUninit::new);
    // SAFETY: `map` has written every element.
    let dense = unsafe { std::slice::from_raw_parts(dense.as_ptr().cast::<T>(), dense.len()) };
    let columns = x.len() / y.len().max(1);
    let (shape, strides) = ([y.len(), columns], [columns.cast_signed(), 1]);
    reduce_with(View::new(dense, 0, &shape, &strides), &[false, true], y, op);
}

// SAFETY: each method touches what its arguments describe, with the types that `sizes` states.
unsafe impl<T, S, U, Add, Merge, Finish> Fold for Op<T, S, U, Add, Merge, Finish>
where
    T: Copy + Send + Sync + 'static,
    S: Copy + Send + Sync + 'static,
    U: Copy + Send + Sync,
    Add: Fn(S, T) -> S + Sync + Copy,
    Merge: Fn(S, S) -> S + Sync,
    Finish: Fn(S) -> U + Sync,
{
    fn sizes(&self) -> [usize; 3] {
        const { assert!(align_of::<S>() <= 16 && align_of::<T>() <= 16 && size_of::<S>() <= 16) };
        [size_of::<T>(), size_of::<S>(), size_of::<U>()]
    }

    fn positional(&self) -> bool {
        false
    }

    unsafe fn start(&self, states: *mut u8, n: usize) {
        for i in 0..n {
            // SAFETY: the caller has room for `n` states.
            unsafe { states.cast::<S>().add(i).write(self.start) };
        }
    }

    unsafe fn run(&self, state: *mut u8, x: *const u8, n: usize, _: usize) {
        // SAFETY: the caller's `n` elements and state.
        unsafe {
            let state = state.cast::<S>();
            state.write(self.fold(state.read(), std::slice::from_raw_parts(x.cast(), n)));
        }
    }

    unsafe fn rows(
        &self,
        states: *mut u8,
        x: *const u8,
        pitch: isize,
        rows: usize,
        columns: usize,
        _: usize,
    ) {
        // SAFETY: the caller's rows and states.
        unsafe {
            let row =
                |r: usize| std::slice::from_raw_parts(x.offset(r.cast_signed() * pitch).cast(), columns);
            self.fold_rows(std::slice::from_raw_parts_mut(states.cast(), columns), rows, row);
        }
    }

    unsafe fn merge(&self, states: *mut u8, others: *const u8, n: usize) {
        let (states, others) = (states.cast::<S>(), others.cast::<S>());
        for i in 0..n {
            // SAFETY: the caller has `n` states at both.
            unsafe { *states.add(i) = (self.merge)(*states.add(i), *others.add(i)) };
        }
    }

    unsafe fn finish(&self, states: *const u8, n: usize, y: *mut u8, step: usize) {
        for i in 0..n {
            // SAFETY: the caller has `n` states, and room for as many results.
            unsafe {
                let state = *states.cast::<S>().add(i);
                y.cast::<U>().add(i * step).write((self.finish)(state));
            }
        }
    }
}
