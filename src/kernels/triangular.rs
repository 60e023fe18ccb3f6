//! Systems of equations with triangular matrices.

use super::simd::vectorized;

/// Replaces `b`, rows of `columns` right-hand sides, by the solution `x` of `A x = b`, or of `A^T x = b` with `transpose`.
///
/// `A` is square and row-major, `a`; only its lower triangle is read, or with `upper` its upper one. Forward substitution
/// from the row with one unknown on (Golub & Van Loan, section 3.1), all right-hand sides of a row at once.
pub(crate) fn solve(a: &[f64], upper: bool, transpose: bool, b: &mut [f64], columns: usize) {
    if b.is_empty() {
        return;
    }
    let n = b.len() / columns;
    assert!(a.len() == n * n && b.len() == n * columns, "as many equations as right-hand sides have rows");
    let at = |row: usize, column: usize| if transpose { a[column * n + row] } else { a[row * n + column] };
    // A transposed lower triangle is an upper one: unknowns are found from the last on.
    let backwards = upper != transpose;
    for step in 0..n {
        let row = if backwards { n - 1 - step } else { step };
        let (before, rest) = b.split_at_mut(row * columns);
        let (target, after) = rest.split_at_mut(columns);
        let known = if backwards { &*after } else { &*before };
        let first = if backwards { row + 1 } else { 0 };
        for (i, x) in known.chunks_exact(columns).enumerate() {
            subtract(at(row, first + i), x, target);
        }
        let pivot = at(row, row);
        target.iter_mut().for_each(|x| *x /= pivot);
    }
}

/// `y = y - factor x`.
#[inline(never)]
fn subtract(factor: f64, x: &[f64], y: &mut [f64]) {
    vectorized(
        #[inline(always)]
        || y.iter_mut().zip(x).for_each(|(y, &x)| *y = (-factor).mul_add(x, *y)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_satisfy_their_equations_whichever_triangle_is_read() {
        let (n, columns) = (5, 3);
        let a: Vec<f64> = (0..n * n).map(|i| 1.0 + ((i * 7 + 3) % 11) as f64 / 4.0).collect();
        let b: Vec<f64> = (0..n * columns).map(|i| ((i * 5) % 13) as f64 - 6.0).collect();
        for (upper, transpose) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut x = b.clone();
            solve(&a, upper, transpose, &mut x, columns);
            let triangle = |row: usize, column: usize| {
                let part = if upper { column >= row } else { column <= row };
                if part { a[row * n + column] } else { 0.0 }
            };
            for i in 0..n {
                for c in 0..columns {
                    let at = |j: usize| if transpose { triangle(j, i) } else { triangle(i, j) };
                    let sum: f64 = (0..n).map(|j| at(j) * x[j * columns + c]).sum();
                    assert!((sum - b[i * columns + c]).abs() < 1e-12, "{upper} {transpose}: {sum}");
                }
            }
        }
    }

    #[test]
    fn no_equations_and_no_right_hand_sides_are_fine() {
        solve(&[], false, false, &mut [], 3);
        solve(&[1.0], true, false, &mut [], 0);
    }
}
