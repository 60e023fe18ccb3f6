//! `#[derive(Visit)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, Ident, Member, Result, Variant};

use crate::fields::Field;
use crate::generics::bounded;

pub fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let shapes = match &input.data {
        Data::Struct(data) => vec![Shape::of_struct(&input.ident, &data.fields)?],
        Data::Enum(data) if !data.variants.is_empty() => {
            data.variants.iter().map(Shape::of_variant).collect::<Result<_>>()?
        }
        _ => {
            return Err(Error::new_spanned(
                &input.ident,
                "`Visit` is derived for structs and enums with variants",
            ));
        }
    };
    let generics = bounded(&input.generics, shapes.iter().flat_map(|shape| &shape.fields));
    let (generics, _, bounds) = generics.split_for_impl();
    let (_, arguments, _) = input.generics.split_for_impl();
    let name = &input.ident;
    let nodes = shapes.iter().map(Shape::node);
    let copies = shapes.iter().map(Shape::copy);
    let descriptions = shapes.iter().map(Shape::describe);
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::couplet::__private::Visit for #name #arguments #bounds {
            fn node(&self) -> ::couplet::__private::Node<'_> {
                match self { #(#nodes)* }
            }

            fn copy(&self, copies: &mut ::couplet::__private::Copies) -> Self {
                match self { #(#copies)* }
            }

            fn describe(&self) -> ::core::option::Option<::couplet::__private::Description> {
                match self { #(#descriptions)* }
            }
        }
    })
}

/// A struct, or a variant of an enum.
struct Shape<'a> {
    /// `Self` or `Self::Variant`.
    path: TokenStream,
    name: &'a Ident,
    fields: Vec<Field<'a>>,
    is_tuple: bool,
    is_variant: bool,
}

impl<'a> Shape<'a> {
    fn of_struct(name: &'a Ident, fields: &'a Fields) -> Result<Self> {
        let is_tuple = matches!(fields, Fields::Unnamed(_));
        Ok(Shape { path: quote!(Self), name, fields: Field::list(fields)?, is_tuple, is_variant: false })
    }

    fn of_variant(variant: &'a Variant) -> Result<Self> {
        let name = &variant.ident;
        let shape = Shape::of_struct(name, &variant.fields)?;
        Ok(Shape { path: quote!(Self::#name), is_variant: true, ..shape })
    }

    /// The variable that a field is bound to.
    fn variable(field: &Field<'_>) -> Ident {
        match &field.member {
            Member::Named(name) => format_ident!("field_{}", name),
            Member::Unnamed(index) => format_ident!("field_{}", index.index),
        }
    }

    /// A pattern that binds the fields for which `wanted` holds.
    fn pattern(&self, wanted: impl Fn(&Field<'a>) -> bool) -> TokenStream {
        let path = &self.path;
        let bindings = self.fields.iter().filter(|field| wanted(field)).map(|field| {
            let (member, variable) = (&field.member, Self::variable(field));
            quote!(#member: #variable,)
        });
        quote!(#path { #(#bindings)* .. })
    }

    /// The field that stands for the whole.
    fn sole(&self) -> Option<&Field<'a>> {
        match &self.fields[..] {
            [field] if self.is_tuple && !field.attributes.skip && !field.attributes.state => Some(field),
            _ => None,
        }
    }

    fn node(&self) -> TokenStream {
        let pattern = self.pattern(|field| !field.attributes.skip);
        if let Some(field) = self.sole() {
            let variable = Self::variable(field);
            return quote!(#pattern => ::couplet::__private::Visit::node(#variable),);
        }
        let edges = self.fields.iter().map(|field| {
            let variable = Self::variable(field);
            field.add_edge(&quote!(#variable))
        });
        if self.fields.iter().all(|field| field.attributes.skip) {
            return quote!(#pattern => ::couplet::__private::Node::Nothing,);
        }
        quote! {
            #pattern => {
                let mut edges = ::couplet::__private::Edges::new();
                #(#edges)*
                edges.into_node()
            }
        }
    }

    fn copy(&self) -> TokenStream {
        let (path, pattern) = (&self.path, self.pattern(|_| true));
        let members = self.fields.iter().map(|field| &field.member);
        let copies = self.fields.iter().map(|field| {
            let variable = Self::variable(field);
            field.copy(&quote!(#variable))
        });
        quote!(#pattern => #path { #(#members: #copies,)* },)
    }

    /// `Name(a=1)`; a variant of one unnamed field as that field. If no field is printed, a variant is its name, and a struct is
    /// not printed at all.
    fn describe(&self) -> TokenStream {
        let pattern = self.pattern(Field::is_printed);
        let name = self.name.to_string();
        let bare = if self.is_variant || self.fields.is_empty() {
            quote!(::core::option::Option::Some(::couplet::__private::Description::text(#name)))
        } else {
            quote!(::core::option::Option::None)
        };
        if !self.fields.iter().any(Field::is_printed) {
            return quote!(#pattern => #bare,);
        }
        // As in a path, the only field of a variant stands for the whole.
        if let (true, Some(field)) = (self.is_variant, self.sole()) {
            let variable = Self::variable(field);
            return quote!(#pattern => ::couplet::__private::Visit::describe(#variable).or_else(|| #bare),);
        }
        let arguments = self.fields.iter().filter(|field| field.is_printed()).map(|field| {
            let variable = Self::variable(field);
            field.print(&quote!(#variable))
        });
        quote! {
            #pattern => {
                let mut print = ::couplet::__private::Printer::new(#name);
                #(#arguments)*
                if print.is_empty() { #bare } else { ::core::option::Option::Some(print.describe()) }
            }
        }
    }
}
