//! Random orthogonal matrices.

use crate::dtype::{DType, Element, for_dtype};
use crate::error::{Error, Result};
use crate::kernels::qr::orthonormalise;
use crate::tensor::{Shape, Tensor, checked_size, take};

use super::{Initializer, Seed, expect_float, expect_matrix};

/// A random orthogonal matrix times `gain`; all such matrices are equally likely. Float dtypes.
///
/// The shape is read as a matrix of `prod(shape[..-1])` rows and `shape[-1]` columns. Its columns are orthonormal (times
/// gain); if there are fewer rows than columns, its rows are. It is the factor `Q` of a normal matrix `A = Q R`, with the
/// signs that make the diagonal of `R` positive (Saxe et al. 2014, section 3; Mezzadri 2007).
#[derive(Debug, Clone)]
pub struct Orthogonal {
    gain: f64,
    seed: Seed,
}

impl Orthogonal {
    /// Gain 1.
    pub fn new() -> Self {
        Orthogonal { gain: 1.0, seed: Seed::default() }
    }

    /// The length of the orthogonal vectors. Default: 1.
    #[must_use]
    pub fn gain(mut self, gain: f64) -> Self {
        self.gain = gain;
        self
    }

    /// A seed of its own. Default: draw from the thread's current generator.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Seed::new(seed);
        self
    }

    /// The value that a normal matrix leads to: `normal` of the shape `[max(rows, columns), min(rows, columns)]` stands
    /// in for the draw.
    ///
    /// # Errors
    /// `shape` has rank below 2, `dtype` is not a float type, `gain` is not finite, or `normal` has another shape or is
    /// not of a float type.
    pub fn from_normal(&self, normal: &Tensor, shape: &Shape, dtype: DType) -> Result<Tensor> {
        let (tall, wide) = self.check(shape, dtype)?;
        if normal.shape() != &[tall.max(wide), tall.min(wide)] {
            let expected = format!("[{}, {}]", tall.max(wide), tall.min(wide));
            return Err(Error::shape("orthogonal", "the normal matrix", normal.shape(), expected));
        }
        expect_float("orthogonal", normal.dtype())?;
        let mut a = normal.cast(DType::F64)?.to_vec::<f64>()?;
        orthonormalise(&mut a, tall.min(wide));
        // A row of the wide matrix is a column of the tall one.
        let at = |i: usize| if tall >= wide { i } else { (i % wide) * tall + i / wide };
        Ok(for_dtype!(dtype, T => {
            let mut y = take::<T>(a.len());
            y.iter_mut().enumerate().for_each(|(i, y)| *y = T::from_f64(self.gain * a[at(i)]));
            Tensor::from_taken(y, shape.clone())
        }))
    }

    /// Rows and columns.
    fn check(&self, shape: &Shape, dtype: DType) -> Result<(usize, usize)> {
        expect_float("orthogonal", dtype)?;
        expect_matrix("orthogonal", shape)?;
        checked_size("orthogonal", shape, DType::F64)?;
        if !self.gain.is_finite() {
            return Err(Error::argument("orthogonal", "gain", self.gain, "a finite number"));
        }
        let (rows, columns) = shape.split_at(shape.rank() - 1);
        Ok((rows.iter().product(), columns[0]))
    }
}

impl Default for Orthogonal {
    fn default() -> Self {
        Self::new()
    }
}

impl Initializer for Orthogonal {
    fn init(&self, shape: &Shape, dtype: DType) -> Result<Tensor> {
        let (rows, columns) = self.check(shape, dtype)?;
        let normal = [rows.max(columns), rows.min(columns)];
        let normal = self.seed.generator().normal(normal, 0.0, 1.0, DType::F64)?;
        self.from_normal(&normal, shape, dtype)
    }

    fn describe(&self) -> String {
        format!("Orthogonal(gain={}{})", self.gain, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The products of all pairs of vectors of `y`: its columns if there are no more of them than rows, else its rows.
    fn assert_orthogonal(y: &Tensor, gain: f64) {
        let columns = y.shape()[y.rank() - 1];
        let rows = y.size() / columns;
        let v = y.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
        let (count, length) = (rows.min(columns), rows.max(columns));
        let at = |vector: usize, i: usize| {
            if rows >= columns { v[i * columns + vector] } else { v[vector * columns + i] }
        };
        for a in 0..count {
            for b in 0..count {
                let product: f64 = (0..length).map(|i| at(a, i) * at(b, i)).sum();
                let expected = if a == b { gain * gain } else { 0.0 };
                assert!((product - expected).abs() < 1e-5, "{a} {b}: {product}");
            }
        }
    }

    #[test]
    fn vectors_are_orthogonal_and_as_long_as_the_gain() {
        for shape in [&[4, 4][..], &[2, 4], &[4, 2], &[2, 4, 3], &[2, 1, 5], &[40, 30], &[1, 1]] {
            let y = Orthogonal::new().gain(2.0).seed(3).init(&Shape::from(shape), DType::F32).unwrap();
            assert_orthogonal(&y, 2.0);
        }
    }

    /// The first column of `Q` is that of `A` divided by its length, so positive multiples of `A` keep it.
    #[test]
    fn signs_follow_the_draw() {
        let normal = Tensor::from([[3.0f64, 1.0], [4.0, -2.0]]);
        let y = Orthogonal::new().from_normal(&normal, &Shape::from([2, 2]), DType::F64).unwrap();
        let y = y.to_vec::<f64>().unwrap();
        // Column 2 less its part along column 1: (1, -2) + 1 * (0.6, 0.8) = (1.6, -1.2), of length 2.
        for (y, expected) in y.iter().zip([0.6, 0.8, 0.8, -0.6]) {
            assert!((y - expected).abs() < 1e-15, "{y} and not {expected}");
        }
    }

    #[test]
    fn vectors_and_integers_are_refused() {
        assert!(Orthogonal::new().init(&Shape::from([3]), DType::F32).is_err());
        assert!(Orthogonal::new().init(&Shape::from([3, 3]), DType::I32).is_err());
        assert!(Orthogonal::new().gain(f64::NAN).init(&Shape::from([3, 3]), DType::F32).is_err());
        let shape = Shape::from([3, 2]);
        assert!(Orthogonal::new().from_normal(&Tensor::from([[1.0f32]]), &shape, DType::F32).is_err());
    }
}
