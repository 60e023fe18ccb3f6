//! A module that is built when it is first needed.

use std::fmt;
use std::sync::Arc;

use super::Module;
use super::copies::Copies;
use super::forward::Forward;
use super::once::Once;
use super::print::{Description, Printer};
use super::visit::{Edges, Node, Visit};
use crate::error::{Error, Result};
use crate::scope::Scope;
use crate::tensor::Tensor;

/// A module that is built when it is first needed, for instance from sizes that another module learns first.
///
/// The first call, or [`target`](Deferred::target), builds it in the scope of the caller. If the constructor fails, the
/// next call tries again. The constructor returns a module or the `Result` of one.
pub struct Deferred<M> {
    scope: Scope,
    constructor: Arc<dyn Fn() -> Result<M> + Send + Sync>,
    target: Once<M>,
}

/// What a constructor of a [`Deferred`] module returns: the module, or the `Result` of it.
pub trait Constructed {
    /// The module.
    type Module;

    /// The module or the error.
    ///
    /// # Errors
    /// The constructor failed.
    fn into_result(self) -> Result<Self::Module>;
}

impl<M: Visit> Constructed for M {
    type Module = M;

    fn into_result(self) -> Result<M> {
        Ok(self)
    }
}

impl<M: Visit> Constructed for Result<M, Error> {
    type Module = M;

    fn into_result(self) -> Result<M> {
        self
    }
}

impl<M: Visit> Deferred<M> {
    /// A module that `constructor` will build.
    pub fn new<R>(constructor: impl Fn() -> R + Send + Sync + 'static) -> Self
    where
        R: Constructed<Module = M>,
    {
        Deferred {
            scope: Scope::new("deferred"),
            constructor: Arc::new(move || constructor().into_result()),
            target: Once::new(),
        }
    }

    /// The module, built by the first call.
    ///
    /// # Errors
    /// The constructor failed.
    pub fn target(&self) -> Result<&M> {
        self.target.get_or_init(|| (self.constructor)())
    }
}

impl<M: Visit + Send + Sync + 'static> Visit for Deferred<M> {
    fn node(&self) -> Node<'_> {
        Node::Module(self)
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        Deferred {
            scope: self.scope.copy(copies),
            constructor: self.constructor.clone(),
            target: self.target.copy(copies),
        }
    }

    fn describe(&self) -> Option<Description> {
        let mut print = Printer::new("Deferred");
        if let Some(target) = self.target.get() {
            print.argument("", target);
        }
        Some(print.describe())
    }
}

impl<M: Visit + Send + Sync + 'static> Module for Deferred<M> {
    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn visit<'a>(&'a self, edges: &mut Edges<'a>) {
        edges.add("_target", &self.target);
    }
}

impl<M: Visit + Send + Sync + 'static> fmt::Debug for Deferred<M> {
    /// `Deferred(Linear(output_size=3))`; without the module as long as it is not built.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe().map_or(Ok(()), |description| write!(f, "{description}"))
    }
}

impl<M: Forward + 'static> Forward for Deferred<M> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.target()?.forward(x)
    }

    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        self.target()?.forward_t(x, is_training)
    }

    fn forward_owned(&self, x: Tensor) -> Result<Tensor> {
        self.target()?.forward_owned(x)
    }

    fn forward_t_owned(&self, x: Tensor, is_training: bool) -> Result<Tensor> {
        self.target()?.forward_t_owned(x, is_training)
    }
}
