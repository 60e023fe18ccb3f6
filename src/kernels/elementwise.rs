//! Elementwise loops over strided views.

use super::layout::View;

/// Calls `f` with the position in the data of each element, in row-major order.
fn walk<T>(x: View<'_, T>, mut f: impl FnMut(&T)) {
    let (shape, strides) = (x.shape(), x.strides());
    if x.len() == 0 {
        return;
    }
    let data = x.data();
    let mut index = vec![0usize; shape.len()];
    let mut at = x.offset() as isize;
    for _ in 0..x.len() {
        f(&data[at as usize]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis] as isize;
            index[axis] = 0;
        }
    }
}

pub(crate) fn map<T: Copy + Send + Sync, U: Copy + Send + Sync>(
    x: View<'_, T>,
    y: &mut [U],
    f: impl Fn(T) -> U + Sync + Copy,
) {
    let mut y = y.iter_mut();
    walk(x, |&v| {
        if let Some(y) = y.next() {
            *y = f(v);
        }
    });
}

pub(crate) fn copy<T: Copy + Send + Sync>(x: View<'_, T>, y: &mut [T]) {
    map(x, y, |v| v);
}

pub(crate) fn map_inplace<T: Copy + Send + Sync>(y: &mut [T], f: impl Fn(T) -> T + Sync + Copy) {
    y.iter_mut().for_each(|v| *v = f(*v));
}

pub(crate) fn zip_inplace<T: Copy + Send + Sync, U: Copy + Send + Sync>(
    y: &mut [T],
    b: View<'_, U>,
    f: impl Fn(T, U) -> T + Sync + Copy,
) {
    let mut y = y.iter_mut();
    walk(b, |&v| {
        if let Some(y) = y.next() {
            *y = f(*y, v);
        }
    });
}

pub(crate) fn zip<T: Copy + Send + Sync + Default, U: Copy + Send + Sync, V: Copy + Send + Sync>(
    a: View<'_, T>,
    b: View<'_, U>,
    y: &mut [V],
    f: impl Fn(T, U) -> V + Sync + Copy,
) {
    let mut left = vec![T::default(); a.len()];
    copy(a, &mut left);
    let mut pairs = y.iter_mut().zip(left);
    walk(b, |&v| {
        if let Some((y, a)) = pairs.next() {
            *y = f(a, v);
        }
    });
}

/// Writes contiguous `x` of the given shape to `y[offset + i0 strides[0] + ..]`; positions must not repeat.
pub(crate) fn scatter<T: Copy>(x: &[T], y: &mut [T], offset: usize, shape: &[usize], strides: &[isize]) {
    if x.is_empty() {
        return;
    }
    let mut index = vec![0usize; shape.len()];
    let mut at = offset as isize;
    for &v in x {
        y[at as usize] = v;
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis] as isize;
            index[axis] = 0;
        }
    }
}
