//! The model: a network that draws digits, and one that judges them.

use couplet::prelude::*;

use super::idx::CLASSES;

/// Number of random numbers that a picture is made of.
pub const NOISE: usize = 64;

/// A generative adversarial network (Goodfellow et al. 2014, "Generative adversarial nets") that is told which digit to draw
/// (Mirza and Osindero 2014, "Conditional generative adversarial nets").
///
/// The generator never sees a picture. It learns from the discriminator, which learns to tell the generator's pictures from
/// real ones. The layers are those of InfoGAN (Chen et al. 2016), half as wide and less.
#[derive(Module)]
pub struct LittleGAN {
    scope: Scope,
    /// From noise and the one-hot label, joined.
    generator: Sequential,
    /// To one score for each digit: above 0 if it takes the picture for a real one of that digit.
    discriminator: Sequential,
}

impl LittleGAN {
    pub fn new() -> Self {
        let scope = Scope::of::<Self>();
        let _in = scope.enter();
        let generator = Sequential::new()
            .push(Linear::new(512))
            .push(BatchNorm::new(true, true))
            .push(Tensor::relu)
            .push(Linear::new(7 * 7 * 64))
            .push(BatchNorm::new(true, true))
            .push(Tensor::relu)
            .push(Reshape::new([7, 7, 64]))
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
            .push(BatchNorm::new(true, true))
            .map(|x| x.leaky_relu(0.2))
            .push(Flatten::new())
            .push(Linear::new(256))
            .push(BatchNorm::new(true, true))
            .map(|x| x.leaky_relu(0.2))
            .push(Linear::new(CLASSES))
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
    /// Pictures of the digits `labels`, made of `noise`: `[n, 28, 28, 1]` from 0 to 1.
    pub fn generate(&self, noise: &Tensor, labels: &Tensor, is_training: bool) -> Result<Tensor> {
        let x = Tensor::concat(&[noise, &labels.one_hot(CLASSES, DType::F32)?], -1)?;
        self.generator.forward_t(&x, is_training)
    }

    /// `mean(-log p(real)) + mean(-log(1 - p(fake)))`, where `p = sigmoid(score)` is how likely the discriminator takes a
    /// picture for a real one of that digit.
    pub fn discriminator_loss(&self, images: &Tensor, labels: &Tensor, noise: &Tensor) -> Result<Tensor> {
        let fake = no_grad(|| self.generate(noise, labels, true))?;
        // -log sigmoid(x) = softplus(-x), and -log(1 - sigmoid(x)) = softplus(x).
        let on_real = (-self.score(images, labels)?)?.softplus()?.mean()?;
        on_real + self.score(&fake, labels)?.softplus()?.mean()?
    }

    /// `mean(-log p(fake))`. Unlike `mean(log(1 - p(fake)))` it has a gradient while the discriminator is never fooled.
    pub fn generator_loss(&self, labels: &Tensor, noise: &Tensor) -> Result<Tensor> {
        let fake = self.generate(noise, labels, true)?;
        (-self.score(&fake, labels)?)?.softplus()?.mean()
    }

    /// What the discriminator says of the pictures as ones of the digits `labels`, `[n]`.
    fn score(&self, images: &Tensor, labels: &Tensor) -> Result<Tensor> {
        let scores = self.discriminator.forward_t(images, true)?;
        (scores * labels.one_hot(CLASSES, DType::F32)?)?.sum_axes(-1, false)
    }
}
