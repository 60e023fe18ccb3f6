#![doc = include_str!("../README.md")]

// The derives write `::couplet::`, in this crate as in any other.
extern crate self as couplet;

pub mod autodiff;
pub mod checkpoint;
mod codec;
pub mod data;
mod dry;
mod dtype;
mod error;
pub mod functional;
pub mod guide;
pub mod init;
pub(crate) mod kernels;
pub mod losses;
pub mod metrics;
pub mod mixed_precision;
mod module;
pub mod nets;
pub mod nn;
pub mod ops;
pub mod optim;
pub mod prelude;
pub mod random;
pub mod recurrent;
pub mod regularizers;
mod scope;
mod tensor;
mod variable;

pub use autodiff::{GradientTape, Source, no_grad, value_and_grad};
pub use couplet_derive::{Module, Visit, scoped};
pub use dtype::{DType, Element};
pub use error::{Error, Fault, Result};
pub use kernels::parallel::{threads, with_threads};
#[doc(hidden)]
pub use module::private as __private;
pub use module::{
    Constructed, Copies, CustomVariableGetter, Deferred, Description, DynForward, DynModule, Edge, Edges,
    Forward, Key, List, Module, Name, Node, Once, Printer, Spec, State, Summary, SummaryRow, Visit, Waiting,
    Waits, build, build_with, custom_variable_getter, format_variables, log_variables, summary,
};
pub use ops::{Gradient, IndexedSlices, PadMode, Padding, Pool, Slice};
pub use scope::{Entered, Scope};
pub use tensor::{Shape, Tensor, release_cached_memory};
pub use variable::Variable;
