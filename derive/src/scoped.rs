//! `#[scoped]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Error, FnArg, GenericArgument, ImplItem, ImplItemFn, ItemImpl, PathArguments, Result, ReturnType, Type,
    TypePath, parse_quote, visit,
};

pub fn expand(arguments: TokenStream, mut block: ItemImpl) -> Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(arguments, "#[scoped] takes no arguments"));
    }
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item {
            let before = method.attrs.len();
            method.attrs.retain(|attribute| {
                attribute.path().segments.last().is_none_or(|segment| segment.ident != "no_name_scope")
            });
            if method.attrs.len() == before && runs_in_scope(method) {
                enter(method);
            }
        }
    }
    Ok(block.into_token_stream())
}

/// Whether the method borrows the module, and does all its work before it returns.
fn runs_in_scope(method: &ImplItemFn) -> bool {
    let by_reference = match method.sig.inputs.first() {
        Some(FnArg::Receiver(receiver)) => match &*receiver.ty {
            Type::Reference(reference) => {
                matches!(&*reference.elem, Type::Path(path) if path.path.is_ident("Self"))
            }
            _ => false,
        },
        _ => false,
    };
    by_reference && method.sig.asyncness.is_none() && method.sig.constness.is_none()
}

fn enter(method: &mut ImplItemFn) {
    let body = &method.block.stmts;
    let private = quote!(::couplet::__private);
    let scope = quote!(#private::Module::scope(&*self));
    method.block = match &method.sig.output {
        ReturnType::Type(_, output) if is_result(output) => {
            // A closure cannot name an opaque type; what it returns is inferred then.
            let closure = if is_opaque(output) {
                quote!(move || { #(#body)* })
            } else {
                quote!(move || -> #output { #(#body)* })
            };
            let run = match tensor_within(output) {
                Some(tensor) => quote!(#private::run_to_tensor(__method, #closure, #tensor)),
                None => quote!(#private::run(__method, #closure)),
            };
            parse_quote!({
                let __method = #private::enter_checked(#scope)?;
                #run
            })
        }
        _ => parse_quote!({
            let __method = #private::enter(#scope);
            #(#body)*
        }),
    };
}

/// A closure that finds the output tensor in what the method returns: the value itself, or the first of a tuple.
fn tensor_within(output: &Type) -> Option<TokenStream> {
    let is_tensor = |ty: &Type| match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == "Tensor"),
        _ => false,
    };
    match result_argument(output)? {
        ty if is_tensor(ty) => Some(quote!(|__output| __output)),
        Type::Tuple(tuple) if tuple.elems.first().is_some_and(is_tensor) => {
            Some(quote!(|__output| &__output.0))
        }
        _ => None,
    }
}

/// Whether a return type is written as couplet's `Result`.
fn is_result(output: &Type) -> bool {
    result_argument(output).is_some()
}

/// The argument of couplet's `Result`: it has one, and no other crate's path stands before it.
fn result_argument(output: &Type) -> Option<&Type> {
    let Type::Path(TypePath { qself: None, path }) = output else { return None };
    let last = path.segments.last().filter(|segment| segment.ident == "Result")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    let first = &path.segments[0].ident;
    let ours =
        path.segments.len() == 1 || ["crate", "self", "super", "couplet"].iter().any(|known| first == known);
    match (arguments.args.len(), arguments.args.first()) {
        (1, Some(GenericArgument::Type(ty))) if ours => Some(ty),
        _ => None,
    }
}

fn is_opaque(output: &Type) -> bool {
    struct Opaque(bool);
    impl visit::Visit<'_> for Opaque {
        fn visit_type_impl_trait(&mut self, _: &syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut opaque = Opaque(false);
    visit::Visit::visit_type(&mut opaque, output);
    opaque.0
}
