//! Procedural macros of the `couplet` crate: `#[derive(Module)]`, `#[derive(Visit)]` and `#[scoped]`.
//!
//! They are re-exported by `couplet`; use them from there.

mod attributes;
mod fields;
mod generics;
mod module;
mod scoped;
mod visit;

use proc_macro::TokenStream;
use syn::{DeriveInput, ItemImpl, parse_macro_input};

/// Makes a struct with a field `scope: Scope` a module: names its parts, copies it and prints it.
///
/// Each field must be something that `couplet::Visit` knows: numbers, strings, options, tuples, lists, maps, `Arc`,
/// variables, tensors, modules, `Once` and `List` of them, `Box<dyn Module>`, `Box<dyn Forward>`, or a type with
/// `#[derive(Visit)]`. The field's name is the name of the part in paths and files.
///
/// Attributes of a field:
///
/// | attribute | |
/// |---|---|
/// | `#[module(name = "_layers")]` | another name of the part; the printed name stays that of the field |
/// | `#[module(skip)]` | holds nothing that is listed, saved or printed; copied by `Clone` |
/// | `#[module(state)]` | plain state behind a lock, saved along with the variables |
/// | `#[module(default = true)]` | printed only if it differs from this value |
/// | `#[module(hidden)]` | never printed |
///
/// Attributes of the struct:
///
/// | attribute | |
/// |---|---|
/// | `#[module(allow_empty_variables)]` | asking for variables when there are none is no error |
/// | `#[module(materialise = Self::method)]` | the method that makes the variables which need no input |
/// | `#[module(kind = Self::KIND)]` | the printed name of the type, where it differs from the identifier |
/// | `#[module(no_debug)]` | `Debug` is written by hand |
///
/// An enum each of whose variants holds one module becomes a module that stands for the one it holds.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    module::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct or an enum something that a module may have as a field: its fields are the parts of the module.
///
/// The only field of a tuple struct or tuple variant stands for the whole: it adds no name to paths. The attributes of
/// fields are those of `#[derive(Module)]`.
#[proc_macro_derive(Visit, attributes(module))]
pub fn derive_visit(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    visit::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// On an `impl` block of a module: every method with `&self` or `&mut self` runs inside the module's name scope, and an
/// error that it returns names the module's path.
///
/// A method marked `#[no_name_scope]` runs in the scope of its caller, as does one that is `async` or `const`. Errors get
/// the path if the return type is written `Result<_>` with one argument, which is taken for the `Result` of `couplet`.
#[proc_macro_attribute]
pub fn scoped(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let block = parse_macro_input!(item as ItemImpl);
    scoped::expand(arguments.into(), block).unwrap_or_else(syn::Error::into_compile_error).into()
}
