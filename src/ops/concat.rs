//! Concatenation along an axis.

use serde::{Deserialize, Serialize};

use crate::dtype::{Element, for_dtype};
use crate::error::{Error, Result};
use crate::kernels::scatter::scatter;
use crate::tensor::{Shape, Strides, Tensor, resolve_axis, take};

use super::apply_many;
use super::gradient::Gradient;
use super::op::{Computed, Inputs, Mask, Op, Saved};
use super::registry::{Listed, Sample, SampleInput};

/// `y` holds the inputs one after the other along `axis`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Concat {
    axis: usize,
    /// Size of each input along the axis.
    sizes: Vec<usize>,
}

impl Concat {
    fn join<T: Element>(&self, inputs: &Inputs<'_, '_>, shape: Shape) -> Result<Tensor> {
        let mut data = take::<T>(shape.size());
        let strides = Strides::contiguous(&shape);
        let mut at = 0;
        for i in 0..inputs.len() {
            let x = inputs.get(i)?.to_contiguous();
            let source = x.as_slice::<T>()?.unwrap_or(&[]);
            scatter(source, &mut data, at * strides[self.axis] as usize, x.shape(), &strides);
            at += x.shape()[self.axis];
        }
        Ok(Tensor::from_taken(data, shape))
    }
}

impl Op for Concat {
    fn name(&self) -> &'static str {
        "concat"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let first = inputs.get(0)?;
        let mut shape = first.shape().clone();
        let dtype = first.dtype();
        if self.axis >= shape.rank() {
            return Err(Error::Axis { op: "concat", axis: self.axis as isize, rank: shape.rank() });
        }
        if inputs.len() != self.sizes.len() {
            let problem = format!("{} inputs for {} sizes", inputs.len(), self.sizes.len());
            return Err(Error::usage("concat", problem, "give one input for each size"));
        }
        let mut total: usize = 0;
        for i in 0..inputs.len() {
            let x = inputs.get(i)?;
            let fits = x.rank() == shape.rank()
                && x.shape().iter().zip(shape.iter()).enumerate().all(|(a, (d, e))| a == self.axis || d == e);
            if !fits {
                let expected = format!("that of input 0, {shape}, but for axis {}", self.axis);
                return Err(Error::shape("concat", format!("input {i}"), x.shape(), expected));
            }
            if x.shape()[self.axis] != self.sizes[i] {
                let expected = format!("{} along axis {}", self.sizes[i], self.axis);
                return Err(Error::shape("concat", format!("input {i}"), x.shape(), expected));
            }
            if x.dtype() != dtype {
                return Err(Error::dtype(
                    "concat",
                    format!("input {i}"),
                    x.dtype(),
                    format!("{dtype}, that of input 0"),
                ));
            }
            total = total.saturating_add(x.shape()[self.axis]);
        }
        shape.dims_mut()[self.axis] = total;
        crate::tensor::checked_size("concat", &shape, dtype)?;
        for_dtype!(dtype, T => self.join::<T>(inputs, shape).map(Computed::from))
    }

    /// Each input receives its part of `dy`.
    fn gradient(&self, _: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(self.sizes.iter().map(|_| None).collect()) };
        let mut at = 0;
        let part = |(i, &size): (usize, &usize)| {
            let start = at;
            at += size;
            needs.has(i).then(|| dy.narrow(self.axis as isize, start, size).map(Gradient::Dense)).transpose()
        };
        self.sizes.iter().enumerate().map(part).collect()
    }
}

impl Listed for Concat {
    fn samples() -> Vec<Sample> {
        let sample = |rows: usize, sizes: &[usize]| {
            let inputs: Vec<_> = sizes.iter().map(|&size| SampleInput::float(&[rows, size])).collect();
            Sample::new(Concat { axis: 1, sizes: sizes.to_vec() }, inputs)
        };
        vec![sample(2, &[3, 1, 2]), sample(1, &[1, 1]), sample(2, &[0, 2]), sample(0, &[1, 2])]
    }
}

impl Tensor {
    /// The tensors one after the other along `axis`.
    ///
    /// # Errors
    /// There are none, or they differ in dtype or in another axis.
    pub fn concat(tensors: &[&Tensor], axis: isize) -> Result<Tensor> {
        let Some(first) = tensors.first() else {
            return Err(Error::argument("concat", "tensors", "empty", "at least one tensor"));
        };
        let axis = resolve_axis("concat", axis, first.rank())?;
        let sizes = tensors.iter().map(|t| t.shape().get(axis).copied().unwrap_or(0)).collect();
        let mut y = apply_many(Concat { axis, sizes }, tensors.iter().copied())?;
        Ok(y.remove(0))
    }

    /// The tensors along a new axis at `axis`; negative axes count from the end of the result.
    ///
    /// # Errors
    /// There are none, or they differ in shape or dtype.
    pub fn stack(tensors: &[&Tensor], axis: isize) -> Result<Tensor> {
        let expanded: Vec<Tensor> = tensors.iter().map(|t| t.expand_dims(axis)).collect::<Result<_>>()?;
        let list: Vec<&Tensor> = expanded.iter().collect();
        let Some(first) = list.first() else {
            return Err(Error::argument("stack", "tensors", "empty", "at least one tensor"));
        };
        let axis = resolve_axis("stack", axis, first.rank())?;
        Tensor::concat(&list, axis as isize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_in_order_along_any_axis() {
        let (a, b) = (Tensor::from([[1, 2], [3, 4]]), Tensor::from([[5], [6]]));
        let y = Tensor::concat(&[&a, &b], -1).unwrap();
        assert_eq!(y.to_vec::<i32>().unwrap(), [1, 2, 5, 3, 4, 6]);
        let y = Tensor::stack(&[&a, &a.t().unwrap()], 0).unwrap();
        assert_eq!(y.to_vec::<i32>().unwrap(), [1, 2, 3, 4, 1, 3, 2, 4]);
    }

    #[test]
    fn unlike_parts_are_refused() {
        let a = Tensor::from([[1, 2]]);
        assert!(Tensor::concat(&[], 0).is_err());
        assert!(Tensor::concat(&[&a, &Tensor::from([1])], 0).is_err());
        assert!(Tensor::concat(&[&a, &Tensor::from([[1i64, 2]])], 0).is_err());
        assert!(Tensor::concat(&[&a], 2).is_err());
    }
}
