//! Metrics behind a pointer.

use crate::error::Result;
use crate::module::{Copies, Description, Node, Visit, module_through_pointer};
use crate::tensor::Tensor;

use super::Metric;

/// Copies of a metric behind `dyn Metric`. Every metric has it.
pub trait DynMetric {
    /// A copy in a box.
    #[doc(hidden)]
    fn copy_boxed_metric(&self, copies: &mut Copies) -> Box<dyn Metric>;
}

impl<T: Metric + 'static> DynMetric for T {
    fn copy_boxed_metric(&self, copies: &mut Copies) -> Box<dyn Metric> {
        Box::new(self.copy(copies))
    }
}

impl Visit for Box<dyn Metric> {
    fn node(&self) -> Node<'_> {
        (**self).node()
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        (**self).copy_boxed_metric(copies)
    }

    fn describe(&self) -> Option<Description> {
        (**self).describe()
    }
}

module_through_pointer!(; Box<dyn Metric>);

impl Metric for Box<dyn Metric> {
    fn initialize(&self, value: &Tensor) -> Result<()> {
        (**self).initialize(value)
    }

    fn update(&self, value: &Tensor) -> Result<()> {
        (**self).update(value)
    }

    fn value(&self) -> Result<Tensor> {
        (**self).value()
    }

    fn reset(&self) -> Result<()> {
        (**self).reset()
    }
}
