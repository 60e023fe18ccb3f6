//! Sorting lanes, and moving elements along them by index.

use std::cmp::Ordering;

use crate::dtype::Element;

/// Order of two elements, NaN above every number.
fn compare<T: Element>(a: T, b: T) -> Ordering {
    // Incomparable means NaN; an element that is unequal to itself is one.
    #[allow(clippy::eq_op, reason = "the one test for NaN that all element types have")]
    a.partial_cmp(&b).unwrap_or_else(|| (a != a).cmp(&(b != b)))
}

/// Positions of the first `y.len()` elements of the sorted lane; equal elements in order of position.
pub(crate) fn argsort<T: Element>(x: &[T], y: &mut [i64], descending: bool) {
    let before = |a: &usize, b: &usize| {
        let order = compare(x[*a], x[*b]);
        (if descending { order.reverse() } else { order }).then(a.cmp(b))
    };
    let mut positions: Vec<usize> = (0..x.len()).collect();
    if y.len() < x.len() && !y.is_empty() {
        positions.select_nth_unstable_by(y.len() - 1, before);
        positions.truncate(y.len());
    }
    positions.sort_unstable_by(before);
    y.iter_mut().zip(positions).for_each(|(y, at)| *y = at as i64);
}

/// The different elements in sorted order: where each first is, and how often it is there; `which` gets for each element
/// the number of its group. All NaN are one element.
pub(crate) fn groups<T: Element>(x: &[T], which: &mut [i64]) -> (Vec<i64>, Vec<i64>) {
    let mut order = vec![0; x.len()];
    argsort(x, &mut order, false);
    let (mut firsts, mut counts) = (Vec::new(), Vec::new());
    for position in order {
        let new = firsts
            .last()
            .is_none_or(|&first: &i64| compare(x[first as usize], x[position as usize]) != Ordering::Equal);
        if new {
            firsts.push(position);
            counts.push(0);
        }
        if let Some(count) = counts.last_mut() {
            *count += 1;
        }
        which[position as usize] = firsts.len() as i64 - 1;
    }
    (firsts, counts)
}

/// `y[i] = x[indices[i]]`.
pub(crate) fn pick<T: Copy>(x: &[T], indices: &[usize], y: &mut [T]) {
    y.iter_mut().zip(indices).for_each(|(y, &i)| *y = x[i]);
}

/// `y` is 0 plus `x[i]` at each `indices[i]`.
pub(crate) fn spread<T: Copy + Default>(x: &[T], indices: &[usize], y: &mut [T], add: impl Fn(T, T) -> T) {
    y.fill(T::default());
    x.iter().zip(indices).for_each(|(&x, &i)| y[i] = add(y[i], x));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_elements_keep_their_order_and_nan_is_the_largest() {
        let x = [1.0, f32::NAN, -1.0, 1.0, f32::NAN, f32::INFINITY];
        let mut y = [0; 6];
        argsort(&x, &mut y, false);
        assert_eq!(y, [2, 0, 3, 5, 1, 4]);
        argsort(&x, &mut y, true);
        assert_eq!(y, [1, 4, 5, 0, 3, 2]);
    }

    #[test]
    fn a_part_is_the_beginning_of_the_whole() {
        let x: Vec<i32> = (0..1000).map(|i| i * 7919 % 101).collect();
        for descending in [false, true] {
            let mut whole = vec![0; 1000];
            argsort(&x, &mut whole, descending);
            for k in [0, 1, 10, 999] {
                let mut part = vec![0; k];
                argsort(&x, &mut part, descending);
                assert_eq!(part, whole[..k]);
            }
        }
    }
}
