//! Matrix products of integers: a plain loop, for labels, counts and masks rather than for speed.

/// `c[i, j] += a[i, p] b[p, j]` over contiguous row-major matrices, with the given product and sum.
pub(crate) fn plain_gemm<T: Copy>(
    (m, k, n): (usize, usize, usize),
    a: &[T],
    b: &[T],
    c: &mut [T],
    multiply_add: impl Fn(T, T, T) -> T,
) {
    for i in 0..m {
        for p in 0..k {
            let left = a[i * k + p];
            for j in 0..n {
                c[i * n + j] = multiply_add(left, b[p * n + j], c[i * n + j]);
            }
        }
    }
}
