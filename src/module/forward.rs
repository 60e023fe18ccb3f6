//! Modules and functions that map one tensor to one tensor.

use std::sync::Arc;

use super::copies::{Copies, DynForward};
use super::print::Description;
use super::visit::{Node, Visit};
use crate::error::Result;
use crate::tensor::Tensor;

/// A layer: one tensor in, one tensor out.
///
/// Modules with such a call implement it; functions such as `Tensor::relu` and closures `|x: &Tensor| ...` have it, and
/// so do `Arc<M>`, `Box<dyn Forward>` and `Arc<dyn Forward>`.
pub trait Forward: Visit + DynForward + Send + Sync {
    /// The output for `x`. A layer that behaves differently in training refuses, and names [`forward_t`](Self::forward_t).
    ///
    /// # Errors
    /// `x` does not fit. Nothing is created or changed in that case.
    fn forward(&self, x: &Tensor) -> Result<Tensor>;

    /// The output for `x` in training or in evaluation. Layers that behave the same in both ignore `is_training`.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        let _ = is_training;
        self.forward(x)
    }

    /// [`forward`](Self::forward) of a tensor that the caller gives away, so that its memory may be reused.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    fn forward_owned(&self, x: Tensor) -> Result<Tensor> {
        self.forward(&x)
    }

    /// [`forward_t`](Self::forward_t) of a tensor that the caller gives away.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    fn forward_t_owned(&self, x: Tensor, is_training: bool) -> Result<Tensor> {
        self.forward_t(&x, is_training)
    }
}

impl<F: Fn(&Tensor) -> Result<Tensor> + Clone + Send + Sync + 'static> Forward for F {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self(x)
    }
}

#[diagnostic::do_not_recommend]
impl<F: Fn(&Tensor) -> Result<Tensor> + Clone + Send + Sync + 'static> Visit for F {
    fn node(&self) -> Node<'_> {
        Node::Nothing
    }

    /// Shares what the closure captured.
    fn copy(&self, _: &mut Copies) -> Self {
        self.clone()
    }

    /// The name of a function; a closure has none.
    fn describe(&self) -> Option<Description> {
        let name = std::any::type_name::<F>();
        let name = name.rsplit("::").next().unwrap_or(name);
        let is_function = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        Some(Description::text(if is_function { name } else { "|x| .." }))
    }
}

/// The calls of a layer that is held by a pointer.
macro_rules! forward_through_pointer {
    ($($generics:ident)? ; $pointer:ty) => {
        impl$(<$generics: Forward + 'static>)? Forward for $pointer {
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                (**self).forward(x)
            }

            fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
                (**self).forward_t(x, is_training)
            }

            fn forward_owned(&self, x: Tensor) -> Result<Tensor> {
                (**self).forward_owned(x)
            }

            fn forward_t_owned(&self, x: Tensor, is_training: bool) -> Result<Tensor> {
                (**self).forward_t_owned(x, is_training)
            }
        }
    };
}

forward_through_pointer!(M; Arc<M>);
forward_through_pointer!(; Arc<dyn Forward>);
forward_through_pointer!(; Box<dyn Forward>);

#[cfg(test)]
mod tests {
    use super::*;

    fn run(layer: impl Forward) -> f32 {
        layer.forward(&Tensor::from([2.0f32])).unwrap().item::<f32>().unwrap()
    }

    fn double(x: &Tensor) -> Result<Tensor> {
        x * 2.0
    }

    #[test]
    fn functions_closures_and_boxes_of_them_are_layers() {
        let offset = Arc::new(3.0);
        let shift = move |x: &Tensor| x + *offset;
        let boxed: Box<dyn Forward> = Box::new(shift.clone());
        let shared: Arc<dyn Forward> = Arc::new(double);
        assert_eq!((run(double), run(shift), run(boxed), run(shared)), (4.0, 5.0, 5.0, 4.0));
    }

    #[test]
    fn functions_print_their_name() {
        let closure = |x: &Tensor| double(x);
        let pointer: fn(&Tensor) -> Result<Tensor> = double;
        let printed = |layer: &dyn Visit| layer.describe().unwrap().to_string();
        assert_eq!([printed(&double), printed(&closure), printed(&pointer)], ["double", "|x| ..", "|x| .."]);
    }
}
