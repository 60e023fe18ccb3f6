//! The model: an encoder, a table of vectors, and a decoder.

use couplet::prelude::*;

/// Length of the vectors in the table.
const EMBEDDING_DIM: usize = 16;
/// Number of vectors in the table.
pub const NUM_EMBEDDINGS: usize = 64;

/// A VQ-VAE (van den Oord et al. 2017, "Neural discrete representation learning").
///
/// The encoder makes 7 x 7 vectors of a picture of 28 x 28 pixels, each is replaced by the nearest one of a table, and the
/// decoder makes a picture of those. So 49 numbers of vectors are all that the decoder knows of the picture.
#[derive(Module)]
pub struct DigitVQVAE {
    scope: Scope,
    encoder: Sequential,
    quantizer: VectorQuantizerEMA,
    decoder: Sequential,
}

/// What the model makes of pictures `x`.
pub struct Output {
    /// The pictures from the decoder, in the shape of `x`.
    pub reconstruction: Tensor,
    /// The mean square of what they differ by.
    pub error: Tensor,
    /// What the quantiser adds to it for training: how far the encoder's vectors are from those of the table.
    pub commitment: Tensor,
    /// How many vectors of the table are in use; see [`Quantized`](couplet::nets::Quantized).
    pub perplexity: Tensor,
}

impl DigitVQVAE {
    pub fn new() -> Self {
        let scope = Scope::of::<Self>();
        let _in = scope.enter();
        let encoder = Sequential::new()
            .push(Conv2D::new(32, 4).stride(2))
            .push(Tensor::relu)
            .push(Conv2D::new(64, 4).stride(2))
            .push(Tensor::relu)
            .push(Conv2D::new(EMBEDDING_DIM, 3))
            .name("encoder");
        // A quarter of the weight for the commitment as in the paper; the table forgets a vector in about 100 steps.
        let quantizer = VectorQuantizerEMA::new(EMBEDDING_DIM, NUM_EMBEDDINGS, 0.25, 0.99).name("quantizer");
        let decoder = Sequential::new()
            .push(Conv2D::new(64, 3))
            .push(Tensor::relu)
            .push(Conv2DTranspose::new(32, 4).stride(2))
            .push(Tensor::relu)
            .push(Conv2DTranspose::new(1, 4).stride(2))
            .name("decoder");
        drop(_in);
        DigitVQVAE { scope, encoder, quantizer, decoder }
    }
}

#[scoped]
impl DigitVQVAE {
    pub fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Output> {
        let quantized = self.quantizer.forward_t(&self.encoder.forward(x)?, is_training)?;
        let reconstruction = self.decoder.forward(&quantized.quantize)?;
        let error = (&reconstruction - x)?.square()?.mean()?;
        Ok(Output { reconstruction, error, commitment: quantized.loss, perplexity: quantized.perplexity })
    }
}
