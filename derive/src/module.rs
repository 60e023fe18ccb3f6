//! `#[derive(Module)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DataEnum, DataStruct, DeriveInput, Error, Fields, Result};

use crate::attributes::StructAttributes;
use crate::fields::Field;
use crate::generics::bounded;

pub fn derive(input: &DeriveInput) -> Result<TokenStream> {
    match &input.data {
        Data::Struct(data) => derive_struct(input, data),
        Data::Enum(data) => derive_enum(input, data),
        Data::Union(_) => Err(Error::new_spanned(&input.ident, "a module is a struct or an enum")),
    }
}

fn derive_struct(input: &DeriveInput, data: &DataStruct) -> Result<TokenStream> {
    let attributes = StructAttributes::parse(&input.attrs)?;
    let mut fields = Field::list(&data.fields)?;
    let Some(at) = fields.iter().position(Field::is_scope) else {
        let message = "a module needs a field `scope: couplet::Scope`, made in its constructor by \
                       `Scope::of::<Self>()`; plain data derives `Visit` instead";
        return Err(Error::new_spanned(&input.ident, message));
    };
    let scope = fields.remove(at);
    let scope_member = &scope.member;
    let generics = bounded(&input.generics, &fields);
    let (generics, _, bounds) = generics.split_for_impl();
    let (_, arguments, _) = input.generics.split_for_impl();
    let name = &input.ident;
    let own_kind = attributes.kind.as_ref().map(|kind| {
        quote! {
            fn kind(&self) -> &'static str {
                #kind
            }
        }
    });
    let kind = attributes.kind.map_or_else(
        || {
            let text = name.to_string();
            quote!(#text)
        },
        |kind| quote!(#kind),
    );

    let values: Vec<TokenStream> = fields.iter().map(|field| member_of_self(field)).collect();
    let members = fields.iter().map(|field| &field.member);
    let copies = fields.iter().zip(&values).map(|(field, value)| field.copy(value));
    let edges = fields.iter().zip(&values).map(|(field, value)| field.add_edge(value));
    let arguments_printed = fields.iter().zip(&values).map(|(field, value)| field.print(value));

    let allow_empty = attributes.allow_empty_variables.then(|| {
        quote! {
            fn allows_empty_variables(&self) -> bool {
                true
            }
        }
    });
    let materialise = attributes.materialise.map(|method| {
        quote! {
            fn materialise(&self) -> ::couplet::__private::Result<()> {
                (#method)(self)?;
                ::core::result::Result::Ok(())
            }
        }
    });
    let slot_owners = fields.iter().find(|field| field.attributes.slot_owners).map(|field| {
        let member = &field.member;
        quote! {
            fn slot_owners(&self) -> ::core::option::Option<&dyn ::couplet::__private::SlotOwners> {
                ::core::option::Option::Some(&self.#member)
            }
        }
    });
    let debug = (!attributes.no_debug).then(|| {
        quote! {
            #[automatically_derived]
            impl #generics ::core::fmt::Debug for #name #arguments #bounds {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    let mut print = ::couplet::__private::Printer::new(#kind);
                    #(#arguments_printed)*
                    print.name(&self.#scope_member);
                    ::core::fmt::Display::fmt(&print, f)
                }
            }
        }
    });
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::couplet::__private::Visit for #name #arguments #bounds {
            fn node(&self) -> ::couplet::__private::Node<'_> {
                ::couplet::__private::Node::Module(self)
            }

            fn copy(&self, copies: &mut ::couplet::__private::Copies) -> Self {
                Self {
                    #scope_member: ::couplet::__private::Visit::copy(&self.#scope_member, copies),
                    #(#members: #copies,)*
                }
            }

            fn describe(&self) -> ::core::option::Option<::couplet::__private::Description> {
                ::core::option::Option::Some(::couplet::__private::Description::text(format_args!("{self:?}")))
            }
        }

        #[automatically_derived]
        impl #generics ::couplet::__private::Module for #name #arguments #bounds {
            fn scope(&self) -> &::couplet::__private::Scope {
                &self.#scope_member
            }

            fn visit<'__a>(&'__a self, edges: &mut ::couplet::__private::Edges<'__a>) {
                #(#edges)*
            }

            #own_kind
            #allow_empty
            #materialise
            #slot_owners
        }

        #debug
    })
}

fn member_of_self(field: &Field<'_>) -> TokenStream {
    let member = &field.member;
    quote::quote_spanned!(syn::spanned::Spanned::span(field.ty)=> &self.#member)
}

/// An enum stands for the module that its variant holds.
fn derive_enum(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let mut fields = Vec::new();
    for variant in &data.variants {
        match &variant.fields {
            Fields::Unnamed(list) if list.unnamed.len() == 1 => fields.extend(Field::list(&variant.fields)?),
            _ => {
                let message =
                    "a variant of a module holds one module: `Dense(Linear)`; other data derives `Visit`";
                return Err(Error::new_spanned(variant, message));
            }
        }
    }
    if fields.is_empty() {
        return Err(Error::new_spanned(&input.ident, "a module cannot be an enum without variants"));
    }
    let generics = bounded(&input.generics, &fields);
    let (generics, _, bounds) = generics.split_for_impl();
    let (_, arguments, _) = input.generics.split_for_impl();
    let name = &input.ident;
    let variants: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::couplet::__private::Visit for #name #arguments #bounds {
            fn node(&self) -> ::couplet::__private::Node<'_> {
                match self {
                    #(Self::#variants(module) => ::couplet::__private::Visit::node(module),)*
                }
            }

            fn copy(&self, copies: &mut ::couplet::__private::Copies) -> Self {
                match self {
                    #(Self::#variants(module) => Self::#variants(::couplet::__private::Visit::copy(module, copies)),)*
                }
            }

            fn describe(&self) -> ::core::option::Option<::couplet::__private::Description> {
                match self {
                    #(Self::#variants(module) => ::couplet::__private::Visit::describe(module),)*
                }
            }
        }

        #[automatically_derived]
        impl #generics ::couplet::__private::Module for #name #arguments #bounds {
            fn scope(&self) -> &::couplet::__private::Scope {
                match self {
                    #(Self::#variants(module) => ::couplet::__private::Module::scope(module),)*
                }
            }

            fn visit<'__a>(&'__a self, edges: &mut ::couplet::__private::Edges<'__a>) {
                match self {
                    #(Self::#variants(module) => ::couplet::__private::Module::visit(module, edges),)*
                }
            }

            fn materialise(&self) -> ::couplet::__private::Result<()> {
                match self {
                    #(Self::#variants(module) => ::couplet::__private::Module::materialise(module),)*
                }
            }

            fn allows_empty_variables(&self) -> bool {
                match self {
                    #(Self::#variants(module) => ::couplet::__private::Module::allows_empty_variables(module),)*
                }
            }

            fn kind(&self) -> &'static str {
                match self {
                    #(Self::#variants(module) => ::couplet::__private::Module::kind(module),)*
                }
            }
        }

        #[automatically_derived]
        impl #generics ::core::fmt::Debug for #name #arguments #bounds {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self {
                    #(Self::#variants(module) => ::core::fmt::Debug::fmt(module, f),)*
                }
            }
        }
    })
}
