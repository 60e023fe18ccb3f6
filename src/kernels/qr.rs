//! Orthogonal factors of matrices.

/// Replaces a matrix of `columns` columns and at least as many rows, in row-major order, by the factor `Q` of `A = Q R`
/// with the diagonal of `R` positive. The columns of `Q` are orthonormal, of a matrix without full rank as well.
///
/// Householder's method (Golub & Van Loan, section 5.2): reflection `k` maps column `k` below row `k` onto the axis `k`,
/// and `Q` is the product of all reflections applied to the first columns of the identity.
pub(crate) fn orthonormalise(a: &mut [f64], columns: usize) {
    if columns == 0 {
        return;
    }
    let mut signs = vec![1.0; columns];
    let mut reflections = Vec::with_capacity(columns);
    let mut w = vec![0.0; columns];
    for k in 0..columns {
        let mut v: Vec<f64> = a.chunks_exact(columns).skip(k).map(|row| row[k]).collect();
        let norm = length(&v);
        // The axis is approached from the far side, so that nothing cancels; R gets -sign * norm on its diagonal.
        let sign = if v[0] < 0.0 { -1.0 } else { 1.0 };
        v[0] += sign * norm;
        let reflected = length(&v);
        if reflected > 0.0 {
            v.iter_mut().for_each(|v| *v /= reflected);
            signs[k] = -sign;
        }
        reflect(&mut a[k * columns..], columns, k, &v, &mut w);
        reflections.push(v);
    }
    a.fill(0.0);
    a.iter_mut().step_by(columns + 1).take(columns).zip(&signs).for_each(|(a, &sign)| *a = sign);
    for (k, v) in reflections.iter().enumerate().rev() {
        reflect(&mut a[k * columns..], columns, k, v, &mut w);
    }
}

/// `a = a - 2 v (v^T a)` from column `first` on. Columns before are zero below the first row, or no longer needed.
fn reflect(a: &mut [f64], columns: usize, first: usize, v: &[f64], w: &mut [f64]) {
    let w = &mut w[first..];
    w.fill(0.0);
    for (row, v) in a.chunks_exact(columns).zip(v) {
        w.iter_mut().zip(&row[first..]).for_each(|(w, a)| *w += v * a);
    }
    for (row, v) in a.chunks_exact_mut(columns).zip(v) {
        row[first..].iter_mut().zip(&*w).for_each(|(a, w)| *a -= 2.0 * v * w);
    }
}

fn length(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Q^T Q = I`, and `Q^T A` is upper triangular with a positive diagonal.
    #[test]
    fn factor_is_orthonormal_and_the_rest_triangular() {
        let (rows, columns) = (9, 5);
        let a: Vec<f64> = (0..rows * columns).map(|i| ((i * i * 7 + i) % 23) as f64 - 11.0).collect();
        let mut q = a.clone();
        orthonormalise(&mut q, columns);
        let product = |x: &[f64], i: usize, y: &[f64], j: usize| -> f64 {
            (0..rows).map(|r| x[r * columns + i] * y[r * columns + j]).sum()
        };
        for i in 0..columns {
            for j in 0..columns {
                let expected = f64::from(u8::from(i == j));
                assert!((product(&q, i, &q, j) - expected).abs() < 1e-14);
                let r = product(&q, i, &a, j);
                assert!(if i == j { r > 0.0 } else { i < j || r.abs() < 1e-12 }, "{i} {j}: {r}");
            }
        }
    }

    #[test]
    fn a_matrix_of_zeros_gives_an_orthonormal_factor() {
        let mut a = vec![0.0; 6];
        orthonormalise(&mut a, 2);
        assert_eq!(a, [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        orthonormalise(&mut [], 0);
    }
}
