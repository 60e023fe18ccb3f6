//! Functions of one, two or three numbers, element by element, over views of any layout.
//!
//! Only the innermost loop knows the function and the element types; it is compiled once for each op and dtype. The walk
//! over layouts, the choice of threads and the writing in place are the same code for all of them.

use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::blocks::{self, CHUNK, SERIAL, Source};
use super::layout::View;
use super::parallel::{self, SendPtr};
use super::simd::vectorized;

/// Bytes that are set aside at a time when a function writes over its own input.
const STAGE: usize = 8 << 10;

/// What a loop needs to know of an element.
pub(crate) trait Item: Copy + Send + Sync + 'static {}

impl<T: Copy + Send + Sync + 'static> Item for T {}

/// Elements to read, of any type and layout.
#[derive(Clone, Copy)]
pub(crate) struct Elements<'a> {
    source: Source<'a>,
    shape: &'a [usize],
    len: usize,
    dense: bool,
    kind: TypeId,
}

impl<'a> Elements<'a> {
    pub(crate) fn of<T: Item>(x: View<'a, T>) -> Self {
        let dense = x.dense().is_some();
        Self { source: Source::new(x), shape: x.shape(), len: x.len(), dense, kind: TypeId::of::<T>() }
    }
}

/// Contiguous elements to write, of any type.
pub(crate) struct Output<'a> {
    start: *mut u8,
    size: usize,
    len: usize,
    kind: TypeId,
    borrow: PhantomData<&'a mut [u8]>,
}

impl<'a> Output<'a> {
    pub(crate) fn of<T: Item>(y: &'a mut [T]) -> Self {
        let (start, len) = (y.as_mut_ptr().cast(), y.len());
        Self { start, size: size_of::<T>(), len, kind: TypeId::of::<T>(), borrow: PhantomData }
    }
}

/// The innermost loop of an elementwise function: `run(inputs, y, len)` reads `len` elements at each of `inputs` and writes
/// `len` at `y`, which none of them overlaps.
pub(crate) struct Loop<F, const N: usize> {
    run: F,
    inputs: [TypeId; N],
    output: TypeId,
}

/// A loop whose function is not known any more.
#[derive(Clone, Copy)]
pub(crate) struct AnyLoop<'a, const N: usize> {
    run: &'a (dyn Fn([*const u8; N], *mut u8, usize) + Sync),
    inputs: [TypeId; N],
    output: TypeId,
}

impl<F: Fn([*const u8; N], *mut u8, usize) + Sync, const N: usize> Loop<F, N> {
    pub(crate) fn any(&self) -> AnyLoop<'_, N> {
        AnyLoop { run: &self.run, inputs: self.inputs, output: self.output }
    }
}

/// The loop of `y = f(x)`. Closures given to this module should be `#[inline(always)]` functions or short, so that
/// their loops vectorise.
pub(crate) fn single<T: Item, U: Item>(
    f: impl Fn(T) -> U + Sync + Copy,
) -> Loop<impl Fn([*const u8; 1], *mut u8, usize) + Sync, 1> {
    let run = move |[x]: [*const u8; 1], y: *mut u8, len: usize| {
        // SAFETY: `write` and `overwrite` alone call loops, and keep their promise.
        let (x, y) = unsafe { (slice::<T>(x, len), slice_mut::<U>(y, len)) };
        vectorized(
            #[inline(always)]
            move || {
                for (y, &x) in y.iter_mut().zip(x) {
                    *y = f(x);
                }
            },
        );
    };
    Loop { run, inputs: [TypeId::of::<T>()], output: TypeId::of::<U>() }
}

/// The loop of `y = f(x)` where `holds(x)`, else `y = otherwise(x)`.
///
/// For a fast `f` that does not cover every `x`: it is computed, in vectors, for all, and replaced where need be.
pub(crate) fn single_where<T: Item, U: Item>(
    holds: impl Fn(T) -> bool + Sync + Copy,
    f: impl Fn(T) -> U + Sync + Copy,
    otherwise: impl Fn(T) -> U + Sync + Copy,
) -> Loop<impl Fn([*const u8; 1], *mut u8, usize) + Sync, 1> {
    let fast = single(f);
    let run = move |[x]: [*const u8; 1], y: *mut u8, len: usize| {
        (fast.run)([x], y, len);
        // SAFETY: as in `single`.
        let (x, y) = unsafe { (slice::<T>(x, len), slice_mut::<U>(y, len)) };
        let all_hold = vectorized(
            #[inline(always)]
            move || x.iter().fold(true, |all, &x| all & holds(x)),
        );
        if !all_hold {
            for (y, &x) in y.iter_mut().zip(x).filter(|(_, x)| !holds(**x)) {
                *y = otherwise(x);
            }
        }
    };
    Loop { run, inputs: [TypeId::of::<T>()], output: TypeId::of::<U>() }
}

/// The loop of `y = f(a, b)`.
pub(crate) fn pair<T: Item, U: Item, V: Item>(
    f: impl Fn(T, U) -> V + Sync + Copy,
) -> Loop<impl Fn([*const u8; 2], *mut u8, usize) + Sync, 2> {
    let run = move |[a, b]: [*const u8; 2], y: *mut u8, len: usize| {
        // SAFETY: as in `single`.
        let (a, b, y) = unsafe { (slice::<T>(a, len), slice::<U>(b, len), slice_mut::<V>(y, len)) };
        vectorized(
            #[inline(always)]
            move || {
                for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
                    *y = f(a, b);
                }
            },
        );
    };
    Loop { run, inputs: [TypeId::of::<T>(), TypeId::of::<U>()], output: TypeId::of::<V>() }
}

/// The loop of `y = f(a, b, c)`.
pub(crate) fn triple<T: Item, U: Item, V: Item, W: Item>(
    f: impl Fn(T, U, V) -> W + Sync + Copy,
) -> Loop<impl Fn([*const u8; 3], *mut u8, usize) + Sync, 3> {
    let run = move |[a, b, c]: [*const u8; 3], y: *mut u8, len: usize| {
        // SAFETY: as in `single`.
        let (a, b, c) = unsafe { (slice::<T>(a, len), slice::<U>(b, len), slice::<V>(c, len)) };
        // SAFETY: as in `single`.
        let y = unsafe { slice_mut::<W>(y, len) };
        vectorized(
            #[inline(always)]
            move || {
                for (((y, &a), &b), &c) in y.iter_mut().zip(a).zip(b).zip(c) {
                    *y = f(a, b, c);
                }
            },
        );
    };
    let inputs = [TypeId::of::<T>(), TypeId::of::<U>(), TypeId::of::<V>()];
    Loop { run, inputs, output: TypeId::of::<W>() }
}

/// Runs a loop over inputs of one shape; `y` is row-major in it.
pub(crate) fn write<const N: usize>(body: AnyLoop<'_, N>, inputs: [Elements<'_>; N], y: Output<'_>) {
    assert!(inputs.map(|x| x.kind) == body.inputs && y.kind == body.output, "{}", THE_TYPES);
    assert!(inputs.iter().all(|x| x.shape == inputs[0].shape) && inputs[0].len == y.len, "{}", ONE_SHAPE);
    if inputs.iter().all(|x| x.dense) && y.len <= SERIAL {
        if y.len > 0 {
            (body.run)(inputs.map(|x| x.source.origin()), y.start, y.len);
        }
        return;
    }
    let (start, size) = (SendPtr(y.start), y.size);
    // SAFETY: the inputs are views of one shape, borrowed until the call returns; `run` passes disjoint ranges of it.
    unsafe {
        blocks::run(inputs[0].shape, inputs.map(|x| x.source), &|at, first, len| {
            (body.run)(at, start.get().add(first * size), len);
        });
    }
}

/// Runs a loop that reads what it writes over: `y` is input number `place`, and `others` are the inputs before and after it.
fn overwrite<const N: usize>(body: AnyLoop<'_, N>, place: usize, others: &[Elements<'_>], y: Output<'_>) {
    let mut rest = others.iter();
    for (n, &kind) in body.inputs.iter().enumerate() {
        let given = if n == place { Some(y.kind) } else { rest.next().map(|x| x.kind) };
        assert!(given == Some(kind) && y.kind == body.output, "{}", THE_TYPES);
    }
    assert!(others.iter().all(|x| x.shape == others[0].shape && x.len == y.len), "{}", ONE_SHAPE);
    let (start, size) = (SendPtr(y.start), y.size);
    // Elements of `y` are set aside piece by piece, so that the loop's input and output never overlap.
    let piece = |at: [*const u8; N], sizes: [usize; N], first: usize, len: usize| {
        let mut stage = Stage([MaybeUninit::uninit(); STAGE]);
        let step = STAGE / size.max(1);
        let mut done = 0;
        while done < len {
            let count = step.min(len - done);
            // SAFETY: `first + done..` lies in `y`, in a range that this call alone works on, and `count` fits the stage.
            unsafe {
                let y = start.get().add((first + done) * size);
                std::ptr::copy_nonoverlapping(y.cast_const(), stage.0.as_mut_ptr().cast(), count * size);
                let mut inputs = at;
                for n in 0..N {
                    inputs[n] = if n == place {
                        stage.0.as_ptr().cast()
                    } else {
                        at[n].wrapping_add(done * sizes[n])
                    };
                }
                (body.run)(inputs, y, count);
            }
            done += count;
        }
    };
    let Some(first_other) = others.first() else {
        let chunks = if y.len <= SERIAL { 1 } else { y.len.div_ceil(CHUNK) };
        let per_chunk = y.len.div_ceil(chunks);
        parallel::for_each(chunks, |i| {
            let first = i * per_chunk;
            piece([std::ptr::null(); N], [0; N], first, per_chunk.min(y.len - first));
        });
        return;
    };
    let other_size = first_other.source.size();
    // SAFETY: as in `write`.
    unsafe {
        blocks::run(first_other.shape, [first_other.source], &|[at], first, len| {
            piece([at; N], [other_size; N], first, len);
        });
    }
}

/// `y = f(y)`.
pub(crate) fn overwrite_single(body: AnyLoop<'_, 1>, y: Output<'_>) {
    if y.len > 0 {
        overwrite(body, 0, &[], y);
    }
}

/// `y = f(y, other)` with `place` 0, `y = f(other, y)` with `place` 1.
pub(crate) fn overwrite_pair(body: AnyLoop<'_, 2>, place: usize, other: Elements<'_>, y: Output<'_>) {
    overwrite(body, place, &[other], y);
}

/// Aligned like the widest vectors.
#[repr(align(64))]
struct Stage([MaybeUninit<u8>; STAGE]);

/// `y = f(x)`; `y` is row-major in the shape of `x`.
pub(crate) fn map<T: Item, U: Item>(x: View<T>, y: &mut [U], f: impl Fn(T) -> U + Sync + Copy) {
    write(single(f).any(), [Elements::of(x)], Output::of(y));
}

/// `y = f(x)` where `holds(x)`, else `y = otherwise(x)`; `y` is row-major in the shape of `x`.
pub(crate) fn map_where<T: Item, U: Item>(
    x: View<T>,
    y: &mut [U],
    holds: impl Fn(T) -> bool + Sync + Copy,
    f: impl Fn(T) -> U + Sync + Copy,
    otherwise: impl Fn(T) -> U + Sync + Copy,
) {
    write(single_where(holds, f, otherwise).any(), [Elements::of(x)], Output::of(y));
}

/// `y = f(y)`.
#[cfg(test)]
pub(crate) fn map_inplace<T: Item>(y: &mut [T], f: impl Fn(T) -> T + Sync + Copy) {
    overwrite_single(single(f).any(), Output::of(y));
}

/// `y = f(a, b)`; `a` and `b` have one shape, and `y` is row-major in it.
pub(crate) fn zip<T: Item, U: Item, V: Item>(
    a: View<T>,
    b: View<U>,
    y: &mut [V],
    f: impl Fn(T, U) -> V + Sync + Copy,
) {
    write(pair(f).any(), [Elements::of(a), Elements::of(b)], Output::of(y));
}

/// `y = f(y, b)`; `y` is row-major in the shape of `b`.
pub(crate) fn zip_inplace<T: Item, U: Item>(y: &mut [T], b: View<U>, f: impl Fn(T, U) -> T + Sync + Copy) {
    overwrite_pair(pair(f).any(), 0, Elements::of(b), Output::of(y));
}

/// `y = f(a, b, c)`; the inputs have one shape, and `y` is row-major in it.
pub(crate) fn zip3<T: Item, U: Item, V: Item, W: Item>(
    a: View<T>,
    b: View<U>,
    c: View<V>,
    y: &mut [W],
    f: impl Fn(T, U, V) -> W + Sync + Copy,
) {
    write(triple(f).any(), [Elements::of(a), Elements::of(b), Elements::of(c)], Output::of(y));
}

/// `y = x`, whatever the layout of `x`.
#[cfg(test)]
pub(crate) fn copy<T: Item>(x: View<T>, y: &mut [T]) {
    copy_any(Elements::of(x), Output::of(y));
}

/// `y = x`, whatever the layout and the type of `x`.
pub(crate) fn copy_any(x: Elements<'_>, y: Output<'_>) {
    let size = y.size;
    let run = move |[x]: [*const u8; 1], y: *mut u8, len: usize| {
        // SAFETY: `write` passes `len` elements at both ends, which do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(x, y, len * size) };
    };
    let body = Loop { run, inputs: [x.kind], output: x.kind };
    write(body.any(), [x], y);
}

const ONE_SHAPE: &str = "the inputs and the output of an elementwise kernel have one shape";
const THE_TYPES: &str = "an elementwise loop meets the element types it was made for";

/// # Safety
/// `len` elements of `T` lie at `x` and are not written during `'a`.
unsafe fn slice<'a, T>(x: *const u8, len: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(x.cast(), len) }
}

/// # Safety
/// `len` elements of `T` lie at `y`, and nobody else uses them during `'a`.
unsafe fn slice_mut<'a, T>(y: *mut u8, len: usize) -> &'a mut [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(y.cast(), len) }
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::{elements, layouts};
    use super::super::parallel::with_threads;
    use super::*;

    /// Views of one shape: each test layout beside the dense one and, of rank 2 and 3, a row and a column broadcast.
    fn pairs() -> Vec<(usize, Vec<usize>, Vec<isize>, Vec<isize>)> {
        let mut pairs = Vec::new();
        for (offset, shape, strides) in layouts() {
            let mut dense = vec![1; shape.len()];
            for d in (1..shape.len()).rev() {
                dense[d - 1] = dense[d] * shape[d].max(1).cast_signed();
            }
            let (mut row, mut column) = (vec![0; shape.len()], dense.clone());
            if let Some(last) = row.last_mut() {
                *last = 1;
                column[shape.len() - 1] = 0;
            }
            for other in [dense, row, column] {
                pairs.push((offset, shape.clone(), strides.clone(), other));
            }
        }
        pairs
    }

    fn numbers() -> Vec<f32> {
        (0..10_000).map(|i| i as f32 * 0.5 - 1000.0).collect()
    }

    #[test]
    fn map_equals_the_obvious_loop_on_every_layout() {
        let data = numbers();
        for (offset, shape, strides) in layouts() {
            let x = View::new(&data, offset, &shape, &strides);
            let mut y = vec![f64::NAN; x.len()];
            map(x, &mut y, |x| f64::from(x) * 3.0);
            let expected: Vec<_> = elements(x).into_iter().map(|x| f64::from(x) * 3.0).collect();
            assert_eq!(y, expected, "{shape:?} {strides:?}");
        }
    }

    #[test]
    fn zip_equals_the_obvious_loop_on_every_pair_of_layouts() {
        let (data, others) = (numbers(), (0..10_000_i64).collect::<Vec<_>>());
        for (offset, shape, strides, other) in pairs() {
            let (a, b) = (View::new(&data, offset, &shape, &strides), View::new(&others, 0, &shape, &other));
            let f = |a: f32, b: i64| f64::from(a) - b as f64;
            let expected: Vec<_> = elements(a).into_iter().zip(elements(b)).map(|(a, b)| f(a, b)).collect();
            let mut y = vec![f64::NAN; a.len()];
            zip(a, b, &mut y, f);
            assert_eq!(y, expected, "{shape:?} {strides:?} {other:?}");
            zip(b, a, &mut y, |b, a| f(a, b));
            assert_eq!(y, expected, "{shape:?} {other:?} {strides:?}");
            let mut y: Vec<f64> = elements(b).into_iter().map(|b| b as f64).collect();
            zip_inplace(&mut y, a, |b, a| f64::from(a) - b);
            assert_eq!(y, expected, "in place, {shape:?} {strides:?}");
        }
    }

    #[test]
    fn zip3_equals_the_obvious_loop_on_every_triple_of_layouts() {
        let (data, flags) = (numbers(), (0..10_000).map(|i| i % 3 == 0).collect::<Vec<_>>());
        for (offset, shape, strides, other) in pairs() {
            let a = View::new(&flags, offset, &shape, &strides);
            let (b, c) = (View::new(&data, offset, &shape, &strides), View::new(&data, 0, &shape, &other));
            let f = |a: bool, b: f32, c: f32| if a { b } else { c };
            let mut y = vec![f32::NAN; a.len()];
            zip3(a, b, c, &mut y, f);
            let (b, c) = (elements(b), elements(c));
            let expected: Vec<_> =
                elements(a).into_iter().enumerate().map(|(i, a)| f(a, b[i], c[i])).collect();
            assert_eq!(y, expected, "{shape:?} {strides:?} {other:?}");
        }
    }

    #[test]
    fn copy_keeps_elements_of_every_size() {
        fn check<T: Item + PartialEq + std::fmt::Debug>(data: &[T]) {
            for (offset, shape, strides) in layouts() {
                let x = View::new(data, offset, &shape, &strides);
                let mut y = vec![data[77]; x.len()];
                copy(x, &mut y);
                assert_eq!(y, elements(x), "{shape:?} {strides:?}");
            }
        }
        check(&(0..10_000).map(|i| i as u8).collect::<Vec<_>>());
        check(&(0..10_000).map(|i| i as i16).collect::<Vec<_>>());
        check(&(0..10_000).map(|i| [i as u8, (i >> 8) as u8, 7]).collect::<Vec<_>>());
        check(&numbers());
        check(&(0..10_000).map(|i| i as f64).collect::<Vec<_>>());
        check(&(0..10_000).map(|i| (i as f64, !i as u64)).collect::<Vec<_>>());
    }

    #[test]
    fn large_tensors_are_the_same_on_one_thread_and_on_many() {
        let (m, n) = (301_usize, 517_usize);
        let data: Vec<f32> = (0..m * n).map(|i| i as f32).collect();
        let shape = [m, n];
        let dense = [n.cast_signed(), 1];
        for strides in [dense, [1, m.cast_signed()], [0, 1], [1, 0], [0, 0]] {
            let (a, b) = (View::new(&data, 0, &shape, &dense), View::new(&data, 0, &shape, &strides));
            let expected: Vec<_> = elements(b).into_iter().zip(&data).map(|(b, a)| a * 2.0 - b).collect();
            for threads in [1, 8] {
                let mut y = vec![f32::NAN; m * n];
                with_threads(threads, || zip(a, b, &mut y, |a, b| a * 2.0 - b));
                assert_eq!(y, expected);
                with_threads(threads, || copy(b, &mut y));
                assert_eq!(y, elements(b));
                let mut y = data.clone();
                with_threads(threads, || map_inplace(&mut y, |y| y * 2.0));
                with_threads(threads, || zip_inplace(&mut y, b, |y, b| y - b));
                assert_eq!(y, expected);
            }
        }
    }
}
