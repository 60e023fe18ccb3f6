//! A linear layer that cannot stretch.

use couplet::prelude::*;

/// `y = x w / sigma + b` with `sigma` the largest singular value of `w`, so that two inputs never end up farther apart than
/// they were (Miyato et al. 2018, "Spectral normalization for generative adversarial networks").
///
/// `sigma` is estimated as `v w u^T` by the power method: a call in training makes one more step from the row `u`, which the
/// layer keeps.
#[derive(Module)]
pub struct SpectralLinear {
    scope: Scope,
    output_size: usize,
    w: Once<Variable>,
    b: Once<Variable>,
    u: Once<Variable>,
}

impl SpectralLinear {
    pub fn new(output_size: usize) -> Self {
        let scope = Scope::of::<Self>();
        SpectralLinear { scope, output_size, w: Once::new(), b: Once::new(), u: Once::new() }
    }
}

#[scoped]
impl Forward for SpectralLinear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_t(x, false)
    }

    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        let (m, n) = (x.dim(-1)?, self.output_size);
        let w_init = init::TruncatedNormal::new(1.0 / (m as f64).sqrt());
        let w = self.w.get_or_init(|| Variable::new("w", &[m, n], x.dtype(), w_init))?;
        let b = self.b.get_or_init(|| Variable::new("b", &[n], x.dtype(), init::Zeros))?;
        let u = self.u.get_or_init(|| {
            Variable::non_trainable("u", &[1, n], x.dtype(), init::TruncatedNormal::new(1.0))
        })?;

        // Where the power method stands is no function of w to differentiate.
        let (v, next) = no_grad(|| -> Result<_> {
            let v = u.value().matmul(&w.value().t()?)?.l2_normalize(-1, 1e-12)?;
            Ok((v.clone(), v.matmul(w)?.l2_normalize(-1, 1e-12)?))
        })?;
        let sigma = v.matmul(w)?.matmul(&next.t()?)?;
        if is_training {
            u.assign(&next)?;
        }
        (x.matmul(w)? / sigma)? + b
    }
}
