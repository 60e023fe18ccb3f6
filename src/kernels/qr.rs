//! Orthogonal factors of matrices.

use super::lanes::norm;

/// Replaces a matrix of `columns` columns and at least as many rows, in row-major order, by the factor `Q` of `A = Q R`
/// with the diagonal of `R` 0 or more. The columns of `Q` are orthonormal, of a matrix without full rank as well.
pub(crate) fn orthonormalise(a: &mut [f64], columns: usize) {
    if columns > 0 {
        let (reflections, signs) = triangularise(a, columns);
        expand(a, columns, &reflections, &signs);
    }
}

/// The same, with the factor `R`, of `columns` rows, written to `r`.
pub(crate) fn factorise(a: &mut [f64], columns: usize, r: &mut [f64]) {
    assert_eq!(r.len(), columns * columns, "R is square");
    if columns == 0 {
        return;
    }
    let (reflections, signs) = triangularise(a, columns);
    let rows = r.chunks_exact_mut(columns).zip(a.chunks_exact(columns));
    for (k, ((r, a), sign)) in rows.zip(&signs).enumerate() {
        r[..k].fill(0.0);
        r[k..].iter_mut().zip(&a[k..]).for_each(|(r, a)| *r = sign * a);
    }
    expand(a, columns, &reflections, &signs);
}

/// Householder's method (Golub & Van Loan, section 5.2): reflection `k` maps column `k` below row `k` onto the axis `k`,
/// which leaves `R` above the diagonal. Returns the reflections, and the signs that make the diagonal positive.
fn triangularise(a: &mut [f64], columns: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
    let mut signs = vec![1.0; columns];
    let mut reflections = Vec::with_capacity(columns);
    let mut w = vec![0.0; columns];
    for k in 0..columns {
        let mut v: Vec<f64> = a.chunks_exact(columns).skip(k).map(|row| row[k]).collect();
        let length = norm(&v);
        // The axis is approached from the far side, so that nothing cancels; R gets -sign * length on its diagonal.
        let sign = if v[0] < 0.0 { -1.0 } else { 1.0 };
        v[0] += sign * length;
        let reflected = norm(&v);
        // NaN goes on into the factors.
        if reflected != 0.0 {
            v.iter_mut().for_each(|v| *v /= reflected);
            signs[k] = -sign;
        }
        reflect(&mut a[k * columns..], columns, k, &v, &mut w);
        reflections.push(v);
    }
    (reflections, signs)
}

/// Writes `Q`: the product of all reflections applied to the first columns of the identity.
fn expand(a: &mut [f64], columns: usize, reflections: &[Vec<f64>], signs: &[f64]) {
    a.fill(0.0);
    a.iter_mut().step_by(columns + 1).take(columns).zip(signs).for_each(|(a, &sign)| *a = sign);
    let mut w = vec![0.0; columns];
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `Q^T Q = I`, and `Q^T A` is upper triangular with a positive diagonal.
    #[test]
    fn factor_is_orthonormal_and_the_rest_triangular() {
        let (rows, columns) = (9, 5);
        let a: Vec<f64> = (0..rows * columns).map(|i| ((i * i * 7 + i) % 23) as f64 - 11.0).collect();
        let (mut q, mut whole, mut upper) = (a.clone(), a.clone(), vec![0.0; columns * columns]);
        orthonormalise(&mut q, columns);
        factorise(&mut whole, columns, &mut upper);
        assert_eq!(q, whole);
        let product = |x: &[f64], i: usize, y: &[f64], j: usize| -> f64 {
            (0..rows).map(|r| x[r * columns + i] * y[r * columns + j]).sum()
        };
        for i in 0..columns {
            for j in 0..columns {
                let expected = f64::from(u8::from(i == j));
                assert!((product(&q, i, &q, j) - expected).abs() < 1e-14);
                let r = product(&q, i, &a, j);
                assert!((upper[i * columns + j] - r).abs() < 1e-12);
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
