//! `#[scoped]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Error, FnArg, GenericArgument, ImplItem, ImplItemFn, ItemImpl, PathArguments, Result, ReturnType, Type, TypePath,
    parse_quote, visit,
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
            Type::Reference(reference) => matches!(&*reference.elem, Type::Path(path) if path.path.is_ident("Self")),
            _ => false,
        },
        _ => false,
    };
    by_reference && method.sig.asyncness.is_none() && method.sig.constness.is_none()
}

fn enter(method: &mut ImplItemFn) {
    let body = &method.block.stmts;
    let scope = quote!(::couplet::__private::Module::scope(&*self));
    method.block = match &method.sig.output {
        ReturnType::Type(_, output) if is_result(output) => {
            // A closure cannot name an opaque type; what it returns is inferred then.
            let output = if is_opaque(output) { quote!() } else { quote!(-> #output) };
            let block = if output.is_empty() { quote!({ #(#body)* }) } else { quote!(#output { #(#body)* }) };
            parse_quote!({
                let __entered = ::couplet::__private::enter_checked(#scope)?;
                ::couplet::__private::run(__entered, move || #block)
            })
        }
        _ => parse_quote!({
            let __entered = ::couplet::__private::enter(#scope);
            #(#body)*
        }),
    };
}

/// Whether a return type is written as couplet's `Result`: one argument, and no other crate's path before it.
fn is_result(output: &Type) -> bool {
    let Type::Path(TypePath { qself: None, path }) = output else { return false };
    let Some(last) = path.segments.last().filter(|segment| segment.ident == "Result") else { return false };
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return false };
    let types = arguments.args.iter().filter(|argument| matches!(argument, GenericArgument::Type(_)));
    let first = &path.segments[0].ident;
    let ours = path.segments.len() == 1 || ["crate", "self", "super", "couplet"].iter().any(|known| first == known);
    ours && types.count() == 1
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
