//! What the macros of `couplet-derive` expand to. Not part of the interface.

pub use super::{Copies, Description, Edges, Module, Node, Printer, SlotOwners, State, Visit};
pub use crate::error::Result;
pub use crate::scope::Scope;
pub use crate::tensor::Tensor;

use super::probe;
use crate::error::Error;
use crate::scope::{Entered, current_path};

/// A method of a module under way, inside the module's name scope.
#[derive(Debug)]
pub struct Method {
    _entered: Entered,
    probed: bool,
}

impl Drop for Method {
    #[inline]
    fn drop(&mut self) {
        if self.probed {
            probe::end();
        }
    }
}

/// Enters the scope of a module for one of its methods.
#[inline]
pub fn enter(scope: &Scope) -> Method {
    let probed = probe::is_active();
    if probed {
        probe::begin(scope);
    }
    Method { _entered: scope.enter(), probed }
}

/// As [`enter`], for a method that can report that the module's name is not an identifier.
///
/// # Errors
/// It is not.
#[inline]
pub fn enter_checked(scope: &Scope) -> Result<Method> {
    scope.check()?;
    Ok(enter(scope))
}

/// Runs the body of a method, and puts the path of its module before the text of an error.
///
/// # Errors
/// Those of the body.
#[inline]
pub fn run<T>(method: Method, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let _method = method;
    body().map_err(located)
}

/// As [`run`], for a method whose result contains the tensor that summaries show.
///
/// # Errors
/// Those of the body.
#[inline]
pub fn run_to_tensor<T>(
    method: Method,
    body: impl FnOnce() -> Result<T>,
    tensor: impl FnOnce(&T) -> &Tensor,
) -> Result<T> {
    match body() {
        Ok(result) => {
            if method.probed {
                probe::output(tensor(&result));
            }
            Ok(result)
        }
        Err(error) => Err(located(error)),
    }
}

/// The error with the path of the scope this thread is in.
#[cold]
fn located(error: Error) -> Error {
    error.within(&current_path())
}
