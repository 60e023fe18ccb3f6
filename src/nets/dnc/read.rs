//! Reading from a memory.

use crate::error::Result;
use crate::tensor::Tensor;

use super::memory;

/// The rows of a memory, weighted for each head: `y[b, h, :] = sum over m of weights[b, h, m] memory[b, m, :]`.
///
/// | tensor | shape |
/// |---|---|
/// | `memory` | `[batch, rows, width]` |
/// | `weights` | `[batch, heads, rows]` |
/// | `y` | `[batch, heads, width]` |
///
/// To squash what is read, or the memory before, apply the function: `read(&memory, &weights)?.tanh()`. (The reference's
/// `squash_before_access` computes the squashed memory, then reads from the other one.)
///
/// # Errors
/// The shapes or dtypes do not go together.
pub fn read(memory: &Tensor, weights: &Tensor) -> Result<Tensor> {
    const OP: &str = "read";
    let (batch, rows, _) = memory::dims(OP, memory)?;
    memory::heads(OP, "the weights", weights, batch, rows)?;
    weights.matmul(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_mix_rows_by_their_weights() -> Result<()> {
        let memory = Tensor::from([[[-0.25f32, -0.5], [-0.75, 0.0], [0.125, 0.25]]]);
        let weights = Tensor::from([[[0.5f32, 0.5, 0.0], [0.0, 0.0, 2.0]]]);
        assert_eq!(read(&memory, &weights)?.to_vec::<f32>()?, [-0.5, -0.25, 0.25, 0.5]);
        Ok(())
    }

    #[test]
    fn weights_for_another_memory_are_refused() {
        let memory = Tensor::ones([2, 3, 4], crate::DType::F32).unwrap();
        for shape in [vec![2, 1, 4], vec![1, 1, 3], vec![2, 3]] {
            let weights = Tensor::ones(shape, crate::DType::F32).unwrap();
            let message = read(&memory, &weights).unwrap_err().to_string();
            assert!(message.contains("[batch=2, heads, rows=3]"), "{message}");
        }
    }
}
