//! The model: a network that draws, and one that judges.

use couplet::prelude::*;


/// Number of random numbers that a picture is made of.
pub const NOISE: usize = 64;

/// A generative adversarial network (Goodfellow et al. 2014).
#[derive(Module)]
pub struct LittleGAN {
    scope: Scope,
    generator: Sequential,
    discriminator: Sequential,
}

impl LittleGAN {
    pub fn new() -> Self {
        let scope = Scope::of::<Self>();
        let _in = scope.enter();
        let generator = Sequential::new()
            .push(Linear::new(7 * 7 * 64))
            .push(Reshape::new([7, 7, 64]))
            .push(BatchNorm::new(true, true))
            .push(Tensor::relu)
            .push(Conv2DTranspose::new(32, 4).stride(2))
            .push(BatchNorm::new(true, true))
            .push(Tensor::relu)
            .push(Conv2DTranspose::new(1, 4).stride(2))
            .push(Tensor::sigmoid)
            .name("generator");
        let discriminator = Sequential::new()
            .push(Conv2D::new(32, 4).stride(2))
            .map(|x| x.leaky_relu(0.2))
            .push(Conv2D::new(64, 4).stride(2))
            .map(|x| x.leaky_relu(0.2))
            .push(Flatten::new())
            .push(Linear::new(1))
            .name("discriminator");
        drop(_in);
        LittleGAN { scope, generator, discriminator }
    }

    pub fn generator(&self) -> &Sequential {
        &self.generator
    }

    pub fn discriminator(&self) -> &Sequential {
        &self.discriminator
    }
}

#[scoped]
impl LittleGAN {
    /// Pictures made of random numbers, `[n, 28, 28, 1]` from 0 to 1.
    pub fn generate(&self, noise: &Tensor, is_training: bool) -> Result<Tensor> {
        self.generator.forward_t(noise, is_training)
    }

    /// `mean(-log p(real)) + mean(-log(1 - p(fake)))`, where `p = sigmoid(score)` is how likely the discriminator takes a
    /// picture for a real one.
    pub fn discriminator_loss(&self, real: &Tensor, noise: &Tensor) -> Result<Tensor> {
        let (real, fake) = (self.score(real)?, self.score(&self.generate(noise, true)?.stop_gradient())?);
        // -log sigmoid(x) = softplus(-x), and -log(1 - sigmoid(x)) = softplus(x).
        (-real)?.softplus()?.mean()? + fake.softplus()?.mean()?
    }

    /// `mean(-log p(fake))`, which unlike the discriminator's loss, negated, has a gradient while it is fooled by nothing.
    pub fn generator_loss(&self, noise: &Tensor) -> Result<Tensor> {
        let fake = self.score(&self.generate(noise, true)?)?;
        (-fake)?.softplus()?.mean()
    }

    fn score(&self, images: &Tensor) -> Result<Tensor> {
        self.discriminator.forward(images)
    }
}
