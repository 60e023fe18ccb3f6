//! Writing to a memory: every function gives a new one.

use crate::error::Result;
use crate::tensor::Tensor;

use super::memory;

/// Adds values to the rows that each head attends to: `memory + address^T values`.
///
/// | tensor | shape |
/// |---|---|
/// | `memory`, `y` | `[batch, rows, width]` |
/// | `address` | `[batch, heads, rows]` |
/// | `values` | `[batch, heads, width]` |
///
/// # Errors
/// The shapes or dtypes do not go together.
pub fn additive_write(memory: &Tensor, address: &Tensor, values: &Tensor) -> Result<Tensor> {
    const OP: &str = "additive_write";
    let (batch, rows, width) = memory::dims(OP, memory)?;
    let heads = memory::heads(OP, "the address", address, batch, rows)?;
    memory::check(
        OP,
        "the values",
        values,
        [("batch", Some(batch)), ("heads", Some(heads)), ("width", Some(width))],
    )?;
    memory + address.transpose(&[0, 2, 1])?.matmul(values)?
}

/// Scales the columns of the rows that each head attends to: row `m` becomes
/// `memory[m, :] * product over heads of (1 - address[h, m] reset_weights[h, :])`.
///
/// | tensor | shape |
/// |---|---|
/// | `memory`, `y` | `[batch, rows, width]` |
/// | `address` | `[batch, heads, rows]` |
/// | `reset_weights` | `[batch, heads, width]` |
///
/// # Errors
/// The shapes or dtypes do not go together.
pub fn erase(memory: &Tensor, address: &Tensor, reset_weights: &Tensor) -> Result<Tensor> {
    const OP: &str = "erase";
    let (batch, rows, width) = memory::dims(OP, memory)?;
    let heads = memory::heads(OP, "the address", address, batch, rows)?;
    let want = [("batch", Some(batch)), ("heads", Some(heads)), ("width", Some(width))];
    memory::check(OP, "the reset weights", reset_weights, want)?;
    keep(memory, address, reset_weights)
}

/// Scales the rows that each head attends to: row `m` becomes
/// `memory[m, :] * product over heads of (1 - address[h, m] reset_row_weights[h])`.
///
/// | tensor | shape |
/// |---|---|
/// | `memory`, `y` | `[batch, rows, width]` |
/// | `address` | `[batch, heads, rows]` |
/// | `reset_row_weights` | `[batch, heads]` |
///
/// # Errors
/// The shapes or dtypes do not go together.
pub fn erase_rows(memory: &Tensor, address: &Tensor, reset_row_weights: &Tensor) -> Result<Tensor> {
    const OP: &str = "erase_rows";
    let (batch, rows, _) = memory::dims(OP, memory)?;
    let heads = memory::heads(OP, "the address", address, batch, rows)?;
    memory::check(
        OP,
        "the reset row weights",
        reset_row_weights,
        [("batch", Some(batch)), ("heads", Some(heads))],
    )?;
    keep(memory, address, &reset_row_weights.expand_dims(-1)?)
}

/// [`erase`], then [`additive_write`].
///
/// # Errors
/// The shapes or dtypes do not go together.
pub fn erase_and_write(
    memory: &Tensor,
    address: &Tensor,
    reset_weights: &Tensor,
    values: &Tensor,
) -> Result<Tensor> {
    additive_write(&erase(memory, address, reset_weights)?, address, values)
}

/// The memory times `1 - address^T reset` of each head in turn. Heads are few, and a product over all of them at once would
/// hold the memory once for each.
fn keep(memory: &Tensor, address: &Tensor, reset: &Tensor) -> Result<Tensor> {
    let (addresses, resets) = (address.unstack(1)?, reset.unstack(1)?);
    addresses.iter().zip(&resets).try_fold(memory.clone(), |memory, (address, reset)| {
        let erased = (address.expand_dims(2)? * reset.expand_dims(1)?)?;
        memory * (1.0 - erased)?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    fn numbers(y: Result<Tensor>) -> Vec<f64> {
        y.unwrap().to_vec::<f64>().unwrap()
    }

    /// A memory of 3 rows, 2 heads that share the middle row, and what they write.
    fn parts() -> [Tensor; 4] {
        [
            Tensor::from([[[4.0f64, 8.0], [16.0, 2.0], [1.0, 3.0]]]),
            Tensor::from([[[1.0f64, 0.5, 0.0], [0.0, 0.5, 1.0]]]),
            Tensor::from([[[1.0f64, 2.0], [3.0, 4.0]]]),
            Tensor::from([[[1.0f64, 0.5], [0.0, 1.0]]]),
        ]
    }

    #[test]
    fn values_are_added_and_columns_and_rows_erased_by_the_formulas() {
        let [memory, address, values, reset] = parts();
        assert_eq!(numbers(additive_write(&memory, &address, &values)), [5.0, 10.0, 18.0, 5.0, 4.0, 7.0]);
        // The middle row keeps (1 - 0.5) (1 - 0) of its first column, (1 - 0.25) (1 - 0.5) of its second.
        let erased = [0.0, 4.0, 8.0, 0.75, 1.0, 0.0];
        assert_eq!(numbers(erase(&memory, &address, &reset)), erased);
        let rows = Tensor::from([[1.0f64, 0.5]]);
        assert_eq!(numbers(erase_rows(&memory, &address, &rows)), [0.0, 0.0, 6.0, 0.75, 0.5, 1.5]);
        let written = [1.0, 6.0, 10.0, 3.75, 4.0, 4.0];
        assert_eq!(numbers(erase_and_write(&memory, &address, &reset, &values)), written);
    }

    #[test]
    fn zero_weights_and_no_heads_leave_the_memory_bit_for_bit() {
        let [memory, address, ..] = parts();
        let nothing = Tensor::zeros([1, 2, 2], DType::F64).unwrap();
        assert_eq!(numbers(erase(&memory, &address, &nothing)), numbers(Ok(memory.clone())));
        let none = |dim| Tensor::zeros([1, 0, dim], DType::F64).unwrap();
        assert_eq!(
            numbers(erase_and_write(&memory, &none(3), &none(2), &none(2))),
            numbers(Ok(memory.clone()))
        );
    }

    #[test]
    fn what_does_not_fit_the_memory_is_refused_by_name() {
        let [memory, address, values, _] = parts();
        let ones = |shape: &[usize]| Tensor::ones(shape.to_vec(), DType::F64).unwrap();
        let message = |y: Result<Tensor>| y.unwrap_err().to_string();
        assert!(message(additive_write(&memory, &ones(&[1, 2, 4]), &values)).contains("rows=3"));
        assert!(message(erase(&memory, &address, &ones(&[1, 3, 2]))).contains("heads=2"));
        assert!(message(erase_rows(&memory, &address, &ones(&[1, 2, 1]))).starts_with("erase_rows"));
        assert!(message(erase(&values.index(0).unwrap(), &address, &values)).contains("the memory"));
    }
}
