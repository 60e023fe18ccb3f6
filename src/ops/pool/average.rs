//! Average pooling.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernels::pool;
use crate::ops::apply;
use crate::ops::conv::Padding;
use crate::ops::op::{Saved, Saves, Unary};
use crate::ops::real::{for_real, real_dtype};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::tensor::{Shape, Tensor, take};

use super::{Pool, expect_shape};

/// `y[o]` is the mean of `x[i]` over the positions of window `o` that lie inside `x`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AveragePool {
    pub(super) pool: Pool,
    pub(super) from: Shape,
}

impl Unary for AveragePool {
    const NAME: &'static str = "average_pool";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        let real = real_dtype("average_pool", "x", &x)?;
        expect_shape("average_pool", "x", &x, &self.from)?;
        let (g, shape) = self.pool.geometry("average_pool", x.shape())?;
        let size = crate::tensor::checked_size("average_pool", &shape, x.dtype())?;
        let from = self.pool.channels_last(&x).converted(real)?.to_contiguous();
        let y = for_real!(real, T => {
            let mut y = take::<T>(size);
            pool::average_pool(&g, from.as_slice::<T>()?.unwrap_or(&[]), &mut y);
            Tensor::from_taken(y, shape)
        });
        Ok(self.pool.in_layout(&y.converted(x.dtype())?))
    }

    /// `dx[i]` is the sum of `dy[o] / n[o]` over the windows `o` that hold `i`, of which `n[o]` positions lie inside.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        apply(AveragePoolGradient { pool: self.pool.clone(), to: self.from.clone() }, [dy])
    }
}

/// Poolings of both layouts, in one to three dimensions, with the shapes of input and output.
fn samples() -> [(Pool, &'static [usize], &'static [usize]); 6] {
    [
        (Pool::new([2]), &[2, 5, 3], &[2, 2, 3]),
        (Pool::new([3, 2]).stride([2, 1]).padding(Padding::Same), &[2, 5, 4, 3], &[2, 3, 4, 3]),
        (Pool::new([2, 2]).stride([1, 1]).channels_first(), &[2, 2, 3, 4], &[2, 2, 2, 3]),
        (Pool::new([2, 1, 2]).padding(Padding::Same).channels_first(), &[1, 2, 3, 2, 3], &[1, 2, 2, 2, 2]),
        (Pool::new([1]), &[1, 1, 1], &[1, 1, 1]),
        (Pool::new([2]).padding(Padding::Same), &[2, 0, 3], &[2, 0, 3]),
    ]
}

impl Listed for AveragePool {
    fn samples() -> Vec<Sample> {
        let sample = |(pool, x, _): (Pool, &[usize], _)| {
            Sample::new(AveragePool { pool, from: x.into() }, [SampleInput::float(x)])
        };
        samples().into_iter().map(sample).collect()
    }
}

/// `dx[i]` is the sum of `dy[o] / n[o]` over the windows `o` that hold `i`, of which `n[o]` positions lie inside.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AveragePoolGradient {
    pool: Pool,
    to: Shape,
}

impl Unary for AveragePoolGradient {
    const NAME: &'static str = "average_pool_gradient";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, dy: Tensor) -> Result<Tensor> {
        let real = real_dtype("average_pool_gradient", "dy", &dy)?;
        let (g, shape) = self.pool.geometry("average_pool_gradient", &self.to)?;
        let size = crate::tensor::checked_size("average_pool_gradient", &self.to, dy.dtype())?;
        let from = self.pool.channels_last(&dy).converted(real)?.to_contiguous();
        expect_shape("average_pool_gradient", "dy", &from, &shape)?;
        let dx = for_real!(real, T => {
            let mut dx = take::<T>(size);
            pool::average_pool_gradient(&g, from.as_slice::<T>()?.unwrap_or(&[]), &mut dx);
            Tensor::from_taken(dx, self.pool.channels_last_shape(&self.to))
        });
        Ok(self.pool.in_layout(&dx.converted(dy.dtype())?))
    }

    /// With `z` the gradient of `dx`: that of `dy` is the average pooling of `z`.
    fn gradient(&self, _: &Saved, z: &Tensor) -> Result<Tensor> {
        apply(AveragePool { pool: self.pool.clone(), from: self.to.clone() }, [z])
    }
}

impl Listed for AveragePoolGradient {
    fn samples() -> Vec<Sample> {
        let sample = |(pool, x, y): (Pool, &[usize], &[usize])| {
            Sample::new(AveragePoolGradient { pool, to: x.into() }, [SampleInput::float(y)])
        };
        samples().into_iter().map(sample).collect()
    }
}
