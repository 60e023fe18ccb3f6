//! Scaled dot-product attention, tile by tile: the matrix of all scores never exists.
//!
//! Softmax over blocks of keys keeps a running maximum and sum for each query (Milakov and Gimelshein 2018, "Online
//! normalizer calculation for softmax"); the gradients compute the scores of a tile again from the logarithm of that sum
//! (Dao et al. 2022, "FlashAttention", algorithms 1 and 4).

use super::gemm::{Matrix, Real, gemm};
use super::parallel::{SendPtr, for_each};
use super::reduce::{Number, max_of, sum_of};
use super::scratch::with_scratch;
use super::simd::vectorized;

/// Queries and keys of a tile: its scores, 128 KiB in `f32`, stay in the second-level cache.
const QUERIES: usize = 128;
const KEYS: usize = 256;
/// Heads from which the gradients are shared out head by head; with fewer, tiles are, and scores computed twice.
const HEADS: usize = 4;

/// A matrix for each head, all of them in one slice.
#[derive(Debug)]
pub(crate) struct Heads<'a, T> {
    pub(crate) data: &'a [T],
    /// Where each matrix begins.
    pub(crate) offsets: Vec<usize>,
    pub(crate) dims: (usize, usize),
    pub(crate) strides: (isize, isize),
}

impl<'a, T> Heads<'a, T> {
    fn of(&self, head: usize) -> Matrix<'a, T> {
        Matrix::new(self.data, self.offsets[head], self.dims, self.strides)
    }
}

/// What attends to what.
#[derive(Debug)]
pub(crate) struct Attention<'a, T> {
    pub(crate) heads: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    /// Columns of queries and keys, and of values.
    pub(crate) depth: usize,
    pub(crate) width: usize,
    pub(crate) q: Heads<'a, T>,
    pub(crate) k: Heads<'a, T>,
    pub(crate) v: Heads<'a, T>,
    /// Which keys a query may see, `queries x keys`.
    pub(crate) mask: Option<Heads<'a, bool>>,
    /// Whether query `i` sees keys up to `i + keys - queries` alone.
    pub(crate) causal: bool,
    pub(crate) scale: T,
}

/// A block of queries and one of keys.
#[derive(Clone, Copy)]
struct Tile {
    head: usize,
    i: usize,
    rows: usize,
    j: usize,
    cols: usize,
}

impl<T: Real + Number<Wide = f64>> Attention<'_, T> {
    /// Keys before this one are all that queries below `end` see.
    fn seen(&self, end: usize) -> usize {
        if self.causal { (end + self.keys).saturating_sub(self.queries).min(self.keys) } else { self.keys }
    }

    /// Tiles of the queries from `i` on with all keys that they see.
    fn along_keys(&self, head: usize, i: usize) -> impl Iterator<Item = Tile> {
        let rows = QUERIES.min(self.queries - i);
        let keys = self.seen(i + rows);
        (0..keys).step_by(KEYS).map(move |j| Tile { head, i, rows, j, cols: KEYS.min(keys - j) })
    }

    /// Scaled scores of a tile, `-inf` where a query does not see a key.
    fn scores(&self, tile: Tile, s: &mut [T]) {
        let Tile { head, i, rows, j, cols } = tile;
        let q = self.q.of(head).rows_from(i, rows);
        gemm(q, self.k.of(head).rows_from(j, cols).transposed(), s, false, None);
        scale(s, self.scale);
        let mask = self.mask.as_ref().map(|mask| mask.of(head));
        if mask.is_none() && self.seen(i + 1) >= j + cols {
            return;
        }
        for (row, s) in s.chunks_exact_mut(cols).enumerate() {
            let visible = self.seen(i + row + 1).saturating_sub(j).min(cols);
            s[visible..].fill(T::neg_infinity());
            if let Some(mask) = &mask {
                for (s, &sees) in s.iter_mut().zip(mask.part_of_row(i + row, j, visible)) {
                    if !sees {
                        *s = T::neg_infinity();
                    }
                }
            }
        }
    }

    /// `y = softmax(scale q k^T) v`, and the logarithm of the sum of the powers of each query, which is infinite where a
    /// query sees nothing; `y` is 0 there.
    pub(crate) fn forward(&self, y: &mut [T], log_sums: &mut [T]) {
        let (heads, queries, width) = (self.heads, self.queries, self.width);
        assert!(y.len() == heads * queries * width && log_sums.len() == heads * queries, "a row a query");
        let blocks = queries.div_ceil(QUERIES);
        let (y, log_sums) = (SendPtr(y.as_mut_ptr()), SendPtr(log_sums.as_mut_ptr()));
        for_each(heads * blocks, |block| {
            let (head, i) = (block / blocks, block % blocks * QUERIES);
            let (rows, first) = (QUERIES.min(queries - i), head * queries + i);
            // SAFETY: the blocks partition the queries of all heads.
            let (y, max) = unsafe { (y.part(first * width, rows * width), log_sums.part(first, rows)) };
            self.rows(head, i, y, max);
        });
    }

    /// The queries from `i` on; `max` becomes the logarithms.
    fn rows(&self, head: usize, i: usize, y: &mut [T], max: &mut [T]) {
        let width = self.width;
        y.fill(T::zero());
        max.fill(T::neg_infinity());
        let mut sums = [0.0; QUERIES];
        with_scratch(QUERIES * KEYS, |s: &mut [T]| {
            for tile in self.along_keys(head, i) {
                let s = &mut s[..tile.rows * tile.cols];
                self.scores(tile, s);
                let rows = s.chunks_exact_mut(tile.cols).zip(max.iter_mut()).zip(&mut sums);
                for (row, ((s, max), sum)) in rows.enumerate() {
                    let before = *max;
                    *max = larger(before, max_of(s));
                    // A query that has seen nothing yet: any finite number will do.
                    let from = if *max == T::neg_infinity() { T::zero() } else { *max };
                    powers(s, from);
                    let shrink = (before - from).exp_();
                    *sum = *sum * shrink.widen() + sum_of(s);
                    if tile.j > 0 {
                        scale(&mut y[row * width..(row + 1) * width], shrink);
                    }
                }
                let s = Matrix::row_major(s, tile.rows, tile.cols);
                gemm(s, self.v.of(head).rows_from(tile.j, tile.cols), y, true, None);
            }
        });
        for (row, (max, sum)) in max.iter_mut().zip(sums).enumerate() {
            if sum == 0.0 {
                *max = T::infinity();
            } else {
                scale(&mut y[row * width..(row + 1) * width], T::narrow(1.0 / sum));
                *max = *max + T::narrow(sum.ln());
            }
        }
    }

    /// `dq`, `dk` and `dv` from `dy`, with `y` and the logarithms of [`forward`](Attention::forward).
    ///
    /// With `p = softmax(scale q k^T)` and `ds = scale p (dy v^T - sum(dy y))`: `dq = ds k`, `dk = ds^T q`, `dv = p^T dy`.
    pub(crate) fn gradients(
        &self,
        (y, log_sums): (&[T], &[T]),
        dy: &Heads<'_, T>,
        [dq, dk, dv]: [&mut [T]; 3],
    ) {
        let (heads, queries, keys) = (self.heads, self.queries, self.keys);
        assert!(
            y.len() == heads * queries * self.width && log_sums.len() == heads * queries,
            "a row a query"
        );
        assert!(dq.len() == heads * queries * self.depth, "a row a query");
        assert!(
            dk.len() == heads * keys * self.depth && dv.len() == heads * keys * self.width,
            "a row a key"
        );
        let known = Known { y, log_sums, dy };
        let parts = (SendPtr(dq.as_mut_ptr()), SendPtr(dk.as_mut_ptr()), SendPtr(dv.as_mut_ptr()));
        let of_queries = |head: usize, i: usize, rows: usize| {
            // SAFETY: each chunk of the loops below asks for rows of its own.
            unsafe { parts.0.part((head * queries + i) * self.depth, rows * self.depth) }
        };
        let of_keys = |head: usize, j: usize, rows: usize| {
            let first = head * keys + j;
            // SAFETY: as above.
            let dk = unsafe { parts.1.part(first * self.depth, rows * self.depth) };
            // SAFETY: as above.
            (dk, unsafe { parts.2.part(first * self.width, rows * self.width) })
        };
        let query_blocks = queries.div_ceil(QUERIES);
        if heads >= HEADS {
            for_each(heads, |head| {
                let (dk, dv) = of_keys(head, 0, keys);
                dk.fill(T::zero());
                dv.fill(T::zero());
                for i in (0..queries).step_by(QUERIES) {
                    let dq = of_queries(head, i, QUERIES.min(queries - i));
                    dq.fill(T::zero());
                    for tile in self.along_keys(head, i) {
                        self.tile_gradients(known, tile, Some(dq), Some((dk, dv, 0)));
                    }
                }
            });
            return;
        }
        for_each(heads * query_blocks, |block| {
            let (head, i) = (block / query_blocks, block % query_blocks * QUERIES);
            let dq = of_queries(head, i, QUERIES.min(queries - i));
            dq.fill(T::zero());
            for tile in self.along_keys(head, i) {
                self.tile_gradients(known, tile, Some(dq), None);
            }
        });
        let key_blocks = keys.div_ceil(KEYS);
        for_each(heads * key_blocks, |block| {
            let (head, j) = (block / key_blocks, block % key_blocks * KEYS);
            let (dk, dv) = of_keys(head, j, KEYS.min(keys - j));
            dk.fill(T::zero());
            dv.fill(T::zero());
            for i in (0..queries).step_by(QUERIES) {
                if let Some(tile) = self.along_keys(head, i).find(|tile| tile.j == j) {
                    self.tile_gradients(known, tile, None, Some((dk, dv, j)));
                }
            }
        });
    }

    /// Adds what a tile contributes; `dk` and `dv` begin at the key whose number comes with them.
    fn tile_gradients(
        &self,
        known: Known<'_, T>,
        tile: Tile,
        dq: Option<&mut [T]>,
        dkv: Option<(&mut [T], &mut [T], usize)>,
    ) {
        let Tile { head, i, rows, j, cols } = tile;
        let first = head * self.queries + i;
        let y = &known.y[first * self.width..(first + rows) * self.width];
        let dy = known.dy.of(head).rows_from(i, rows);
        let q = self.q.of(head).rows_from(i, rows);
        let (k, v) = (self.k.of(head).rows_from(j, cols), self.v.of(head).rows_from(j, cols));
        with_scratch(2 * QUERIES * KEYS, |s: &mut [T]| {
            let (p, ds) = s.split_at_mut(QUERIES * KEYS);
            let (p, ds) = (&mut p[..rows * cols], &mut ds[..rows * cols]);
            self.scores(tile, p);
            gemm(dy, v.transposed(), ds, false, None);
            for row in 0..rows {
                let p = &mut p[row * cols..(row + 1) * cols];
                powers(p, known.log_sums[first + row]);
                let y = &y[row * self.width..(row + 1) * self.width];
                let dot: f64 =
                    dy.part_of_row(row, 0, self.width).zip(y).map(|(a, &b)| (*a * b).widen()).sum();
                score_gradients(p, T::narrow(dot), self.scale, &mut ds[row * cols..(row + 1) * cols]);
            }
            let (p, ds) = (Matrix::row_major(p, rows, cols), Matrix::row_major(ds, rows, cols));
            if let Some(dq) = dq {
                gemm(ds, k, dq, true, None);
            }
            if let Some((dk, dv, from)) = dkv {
                let at = |dim: usize| (j - from) * dim..(j - from + cols) * dim;
                gemm(ds.transposed(), q, &mut dk[at(self.depth)], true, None);
                gemm(p.transposed(), dy, &mut dv[at(self.width)], true, None);
            }
        });
    }
}

/// What the gradients know of the forward, and where they start from.
#[derive(Clone, Copy)]
struct Known<'a, T> {
    y: &'a [T],
    log_sums: &'a [T],
    dy: &'a Heads<'a, T>,
}

/// The larger of two, or the one that is NaN.
fn larger<T: Real>(a: T, b: T) -> T {
    if a > b || a.is_nan() { a } else { b }
}

/// `x = a x`.
#[inline(never)]
fn scale<T: Real>(x: &mut [T], a: T) {
    vectorized(
        #[inline(always)]
        move || {
            for x in x.iter_mut() {
                *x = *x * a;
            }
        },
    );
}

/// `x = e^(x - from)`.
#[inline(never)]
fn powers<T: Real>(x: &mut [T], from: T) {
    vectorized(
        #[inline(always)]
        move || {
            for x in x.iter_mut() {
                *x = (*x - from).exp_();
            }
        },
    );
}

/// `ds = scale p (ds - dot)`.
#[inline(never)]
fn score_gradients<T: Real>(p: &[T], dot: T, scale: T, ds: &mut [T]) {
    vectorized(
        #[inline(always)]
        move || {
            for (ds, &p) in ds.iter_mut().zip(p) {
                *ds = p * (*ds - dot) * scale;
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::parallel::with_threads;

    /// Numbers in -1..1.
    fn numbers(count: usize, seed: usize) -> Vec<f64> {
        (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f64 / 1001.0 - 1.0).collect()
    }

    struct Case {
        heads: usize,
        queries: usize,
        keys: usize,
        depth: usize,
        width: usize,
        causal: bool,
        masked: bool,
    }

    impl Case {
        fn sees(&self, mask: &[bool], h: usize, i: usize, j: usize) -> bool {
            let causal = !self.causal || j + self.queries <= i + self.keys;
            causal && (!self.masked || mask[(h * self.queries + i) * self.keys + j])
        }

        /// `y`, `dq`, `dk` and `dv` by loops over all pairs.
        fn obvious(&self, q: &[f64], k: &[f64], v: &[f64], dy: &[f64], mask: &[bool]) -> [Vec<f64>; 4] {
            let (d, w) = (self.depth, self.width);
            let mut y = vec![0.0; self.heads * self.queries * w];
            let [mut dq, mut dk, mut dv] = [vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]];
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            for h in 0..self.heads {
                for i in 0..self.queries {
                    let (row, key) = (h * self.queries + i, h * self.keys);
                    let q_row = &q[row * d..(row + 1) * d];
                    let seen: Vec<usize> = (0..self.keys).filter(|&j| self.sees(mask, h, i, j)).collect();
                    let power = |j: usize| (0.3 * dot(q_row, &k[(key + j) * d..(key + j + 1) * d])).exp();
                    let sum: f64 = seen.iter().map(|&j| power(j)).sum();
                    let p: Vec<f64> = seen.iter().map(|&j| power(j) / sum).collect();
                    for (&j, p) in seen.iter().zip(&p) {
                        (0..w).for_each(|c| y[row * w + c] += p * v[(key + j) * w + c]);
                    }
                    let dy = &dy[row * w..(row + 1) * w];
                    let mean = dot(dy, &y[row * w..(row + 1) * w]);
                    for (&j, p) in seen.iter().zip(&p) {
                        let at = key + j;
                        let ds = 0.3 * p * (dot(dy, &v[at * w..(at + 1) * w]) - mean);
                        (0..w).for_each(|c| dv[at * w + c] += p * dy[c]);
                        for c in 0..d {
                            dq[row * d + c] += ds * k[at * d + c];
                            dk[at * d + c] += ds * q_row[c];
                        }
                    }
                }
            }
            [y, dq, dk, dv]
        }

        fn run(&self, q: &[f64], k: &[f64], v: &[f64], dy: &[f64], mask: &[bool]) -> [Vec<f64>; 4] {
            fn matrices<T>(x: &[T], rows: usize, cols: usize) -> Heads<'_, T> {
                let offsets = (0..x.len()).step_by(rows * cols).collect();
                Heads { data: x, offsets, dims: (rows, cols), strides: (cols as isize, 1) }
            }
            let attention = Attention {
                heads: self.heads,
                queries: self.queries,
                keys: self.keys,
                depth: self.depth,
                width: self.width,
                q: matrices(q, self.queries, self.depth),
                k: matrices(k, self.keys, self.depth),
                v: matrices(v, self.keys, self.width),
                mask: self.masked.then(|| matrices(mask, self.queries, self.keys)),
                causal: self.causal,
                scale: 0.3,
            };
            let mut y = vec![f64::NAN; self.heads * self.queries * self.width];
            let mut log_sums = vec![f64::NAN; self.heads * self.queries];
            attention.forward(&mut y, &mut log_sums);
            let nan = |x: &[f64]| vec![f64::NAN; x.len()];
            let [mut dq, mut dk, mut dv] = [nan(q), nan(k), nan(v)];
            let dy = matrices(dy, self.queries, self.width);
            attention.gradients((&y, &log_sums), &dy, [&mut dq, &mut dk, &mut dv]);
            [y, dq, dk, dv]
        }
    }

    #[test]
    fn tiles_give_what_loops_over_all_pairs_give_on_any_number_of_threads() {
        let sizes =
            [(1, 1, 1, 1, 1), (2, 5, 7, 3, 4), (5, 130, 70, 4, 2), (1, 150, 530, 2, 3), (4, 300, 300, 5, 1)];
        for (heads, queries, keys, depth, width) in sizes {
            for (causal, masked) in [(false, false), (true, false), (false, true), (true, true)] {
                let case = Case { heads, queries, keys, depth, width, causal, masked };
                let (q, k) = (numbers(heads * queries * depth, 1), numbers(heads * keys * depth, 2));
                let (v, dy) = (numbers(heads * keys * width, 3), numbers(heads * queries * width, 4));
                // Some rows see nothing at all.
                let mask: Vec<bool> =
                    (0..heads * queries * keys).map(|i| i * 31 % 7 > 2 && i / keys % 11 != 3).collect();
                let want = case.obvious(&q, &k, &v, &dy, &mask);
                let got = with_threads(1, || case.run(&q, &k, &v, &dy, &mask));
                for (got, want) in got.iter().zip(&want) {
                    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-11 * (1.0 + b.abs());
                    let sizes = (heads, queries, keys, causal, masked);
                    assert!(got.iter().zip(want).all(close), "{sizes:?}: {got:?}, expected {want:?}");
                }
                assert_eq!(got, with_threads(3, || case.run(&q, &k, &v, &dy, &mask)));
            }
        }
    }
}
