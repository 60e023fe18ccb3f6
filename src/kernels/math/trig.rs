//! Sine and cosine of any angle.

use super::super::elementwise::map_where;
use super::super::layout::View;
use super::Math;

/// `y = sin(x)`; `y` is row-major in the shape of `x`.
pub(crate) fn sin<T: Math>(x: View<T>, y: &mut [T]) {
    map_where(x, y, T::is_angle, T::sin_, T::sin);
}

/// `y = cos(x)`; `y` is row-major in the shape of `x`.
pub(crate) fn cos<T: Math>(x: View<T>, y: &mut [T]) {
    map_where(x, y, T::is_angle, T::cos_, T::cos);
}
