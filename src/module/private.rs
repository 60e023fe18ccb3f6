//! What the macros of `couplet-derive` expand to. Not part of the interface.

pub use super::{Copies, Description, Edges, Module, Node, Printer, State, Visit};
pub use crate::error::Result;
pub use crate::scope::Scope;

use crate::scope::Entered;

/// Enters the scope of a module for one of its methods.
#[inline]
pub fn enter(scope: &Scope) -> Entered {
    scope.enter()
}

/// As [`enter`], for a method that can report that the module's name is not an identifier.
///
/// # Errors
/// It is not.
#[inline]
pub fn enter_checked(scope: &Scope) -> Result<Entered> {
    scope.check()?;
    Ok(scope.enter())
}

/// Runs the body of a method, and puts the path of its module before the text of an error.
///
/// # Errors
/// Those of the body.
#[inline]
pub fn run<T>(entered: Entered, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let result = body();
    result.map_err(|error| error.within(&entered.path()))
}
