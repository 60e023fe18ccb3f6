//! Functions of one, two or three numbers, element by element, over views of any layout.

use super::blocks::{self, CHUNK, SERIAL, Source};
use super::layout::View;
use super::parallel::{self, SendPtr};
use super::simd::vectorized;

/// `y = f(x)`; `y` is row-major in the shape of `x`.
///
/// Closures given to this module should be `#[inline(always)]` functions or short, so that their loops vectorise.
pub(crate) fn map<T, U>(x: View<T>, y: &mut [U], f: impl Fn(T) -> U + Sync + Copy)
where
    T: Copy + Send + Sync,
    U: Copy + Send + Sync,
{
    assert_eq!(x.len(), y.len(), "{}", ONE_SHAPE);
    match x.dense() {
        Some(x) if y.len() <= SERIAL => map_run(x, y, f),
        _ => {
            let y = SendPtr(y.as_mut_ptr());
            // SAFETY: the view outlives the call.
            unsafe {
                blocks::run(x.shape(), [Source::new(x)], &|[x], start, len| {
                    // SAFETY: `run` passes `len` elements of the view, and disjoint ranges of its size, that of `y`.
                    let (x, y) = (slice(x, len), slice_mut(&y, start, len));
                    map_run(x, y, f);
                });
            }
        }
    }
}

/// `y = f(x)` where `holds(x)`, else `y = otherwise(x)`; `y` is row-major in the shape of `x`.
///
/// For a fast `f` that does not cover every `x`: it is computed, in vectors, for all, and replaced where need be.
pub(crate) fn map_where<T, U>(
    x: View<T>,
    y: &mut [U],
    holds: impl Fn(T) -> bool + Sync + Copy,
    f: impl Fn(T) -> U + Sync + Copy,
    otherwise: impl Fn(T) -> U + Sync + Copy,
) where
    T: Copy + Send + Sync,
    U: Copy + Send + Sync,
{
    assert_eq!(x.len(), y.len(), "{}", ONE_SHAPE);
    let y = SendPtr(y.as_mut_ptr());
    // SAFETY: the view outlives the call.
    unsafe {
        blocks::run(x.shape(), [Source::new(x)], &|[x], start, len| {
            // SAFETY: as in `map`.
            let (x, y) = (slice(x, len), slice_mut(&y, start, len));
            map_run(x, y, f);
            if !vectorized(
                #[inline(always)]
                || x.iter().fold(true, |all, &x| all & holds(x)),
            ) {
                for (y, &x) in y.iter_mut().zip(x).filter(|(_, x)| !holds(**x)) {
                    *y = otherwise(x);
                }
            }
        });
    }
}

/// `y = f(y)`.
pub(crate) fn map_inplace<T: Copy + Send + Sync>(y: &mut [T], f: impl Fn(T) -> T + Sync + Copy) {
    if y.len() <= SERIAL {
        return map_inplace_run(y, f);
    }
    parallel::for_each_chunk_mut(y, CHUNK, |_, y| map_inplace_run(y, f));
}

/// `y = f(a, b)`; `a` and `b` have one shape, and `y` is row-major in it.
pub(crate) fn zip<T, U, V>(a: View<T>, b: View<U>, y: &mut [V], f: impl Fn(T, U) -> V + Sync + Copy)
where
    T: Copy + Send + Sync,
    U: Copy + Send + Sync,
    V: Copy + Send + Sync,
{
    assert!(a.shape() == b.shape() && a.len() == y.len(), "{}", ONE_SHAPE);
    match (a.dense(), b.dense()) {
        (Some(a), Some(b)) if y.len() <= SERIAL => zip_run(a, b, y, f),
        _ => {
            let y = SendPtr(y.as_mut_ptr());
            // SAFETY: the views have one shape and outlive the call.
            unsafe {
                blocks::run(a.shape(), [Source::new(a), Source::new(b)], &|[a, b], start, len| {
                    // SAFETY: as in `map`.
                    let (a, b, y) = (slice(a, len), slice(b, len), slice_mut(&y, start, len));
                    zip_run(a, b, y, f);
                });
            }
        }
    }
}

/// `y = f(y, b)`; `y` is row-major in the shape of `b`.
pub(crate) fn zip_inplace<T, U>(y: &mut [T], b: View<U>, f: impl Fn(T, U) -> T + Sync + Copy)
where
    T: Copy + Send + Sync,
    U: Copy + Send + Sync,
{
    assert_eq!(b.len(), y.len(), "{}", ONE_SHAPE);
    match b.dense() {
        Some(b) if y.len() <= SERIAL => zip_inplace_run(y, b, f),
        _ => {
            let y = SendPtr(y.as_mut_ptr());
            // SAFETY: the view outlives the call.
            unsafe {
                blocks::run(b.shape(), [Source::new(b)], &|[b], start, len| {
                    // SAFETY: as in `map`.
                    let (b, y) = (slice(b, len), slice_mut(&y, start, len));
                    zip_inplace_run(y, b, f);
                });
            }
        }
    }
}

/// `y = f(a, b, c)`; the inputs have one shape, and `y` is row-major in it.
pub(crate) fn zip3<T, U, V, W>(
    a: View<T>,
    b: View<U>,
    c: View<V>,
    y: &mut [W],
    f: impl Fn(T, U, V) -> W + Sync + Copy,
) where
    T: Copy + Send + Sync,
    U: Copy + Send + Sync,
    V: Copy + Send + Sync,
    W: Copy + Send + Sync,
{
    assert!(a.shape() == b.shape() && a.shape() == c.shape() && a.len() == y.len(), "{}", ONE_SHAPE);
    match (a.dense(), b.dense(), c.dense()) {
        (Some(a), Some(b), Some(c)) if y.len() <= SERIAL => zip3_run(a, b, c, y, f),
        _ => {
            let y = SendPtr(y.as_mut_ptr());
            let sources = [Source::new(a), Source::new(b), Source::new(c)];
            // SAFETY: the views have one shape and outlive the call.
            unsafe {
                blocks::run(a.shape(), sources, &|[a, b, c], start, len| {
                    // SAFETY: as in `map`.
                    let (a, b, c) = (slice(a, len), slice(b, len), slice(c, len));
                    zip3_run(a, b, c, slice_mut(&y, start, len), f);
                });
            }
        }
    }
}

/// `y = x`, whatever the layout of `x`.
pub(crate) fn copy<T: Copy + Send + Sync>(x: View<T>, y: &mut [T]) {
    assert_eq!(x.len(), y.len(), "{}", ONE_SHAPE);
    match x.dense() {
        Some(x) if y.len() <= SERIAL => y.copy_from_slice(x),
        _ => {
            let y = SendPtr(y.as_mut_ptr());
            // SAFETY: the view outlives the call.
            unsafe {
                blocks::run(x.shape(), [Source::new(x)], &|[x], start, len| {
                    // SAFETY: as in `map`.
                    slice_mut(&y, start, len).copy_from_slice(slice(x, len));
                });
            }
        }
    }
}

const ONE_SHAPE: &str = "the inputs and the output of an elementwise kernel have one shape";

/// # Safety
/// `len` elements of `T` lie at `x` and are not written during `'a`.
unsafe fn slice<'a, T>(x: *const u8, len: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(x.cast(), len) }
}

/// # Safety
/// `start..start + len` lies inside `y`, and nobody else uses that part during `'a`.
pub(super) unsafe fn slice_mut<'a, T>(y: &SendPtr<T>, start: usize, len: usize) -> &'a mut [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(y.get().add(start), len) }
}

// The loops below own `f`: the compiler then knows that writing to `y` does not change what `f` holds.

#[inline(never)]
fn map_run<T: Copy, U>(x: &[T], y: &mut [U], f: impl Fn(T) -> U + Copy) {
    vectorized(
        #[inline(always)]
        move || y.iter_mut().zip(x).for_each(|(y, &x)| *y = f(x)),
    );
}

#[inline(never)]
fn map_inplace_run<T: Copy>(y: &mut [T], f: impl Fn(T) -> T + Copy) {
    vectorized(
        #[inline(always)]
        move || y.iter_mut().for_each(|y| *y = f(*y)),
    );
}

#[inline(never)]
fn zip_run<T: Copy, U: Copy, V>(a: &[T], b: &[U], y: &mut [V], f: impl Fn(T, U) -> V + Copy) {
    vectorized(
        #[inline(always)]
        move || y.iter_mut().zip(a).zip(b).for_each(|((y, &a), &b)| *y = f(a, b)),
    );
}

#[inline(never)]
fn zip_inplace_run<T: Copy, U: Copy>(y: &mut [T], b: &[U], f: impl Fn(T, U) -> T + Copy) {
    vectorized(
        #[inline(always)]
        move || y.iter_mut().zip(b).for_each(|(y, &b)| *y = f(*y, b)),
    );
}

#[inline(never)]
fn zip3_run<T: Copy, U: Copy, V: Copy, W>(
    a: &[T],
    b: &[U],
    c: &[V],
    y: &mut [W],
    f: impl Fn(T, U, V) -> W + Copy,
) {
    vectorized(
        #[inline(always)]
        move || y.iter_mut().zip(a).zip(b).zip(c).for_each(|(((y, &a), &b), &c)| *y = f(a, b, c)),
    );
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::{elements, layouts};
    use super::super::parallel::with_threads;
    use super::*;

    /// Views of one shape: each test layout beside the dense one and, of rank 2 and 3, a row and a column broadcast.
    #[expect(clippy::type_complexity, reason = "a list of test cases")]
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
        fn check<T: Copy + Send + Sync + PartialEq + std::fmt::Debug>(data: &[T]) {
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
