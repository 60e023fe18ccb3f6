//! What is generated for one field.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Fields, Index, Member, Result, Type};

use crate::attributes::FieldAttributes;

/// A field and its attributes.
pub struct Field<'a> {
    pub member: Member,
    pub ty: &'a Type,
    pub attributes: FieldAttributes,
}

impl<'a> Field<'a> {
    /// The fields of a struct or of a variant, in order.
    pub fn list(fields: &'a Fields) -> Result<Vec<Self>> {
        let fields = fields.iter().enumerate().map(|(i, field)| {
            let member = match &field.ident {
                Some(ident) => Member::Named(ident.clone()),
                None => Member::Unnamed(Index::from(i)),
            };
            Ok(Field { member, ty: &field.ty, attributes: FieldAttributes::parse(&field.attrs)? })
        });
        fields.collect()
    }

    /// Whether this is the module's scope: by its name, or by its type.
    pub fn is_scope(&self) -> bool {
        let is_type = match self.ty {
            Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == "Scope"),
            _ => false,
        };
        is_type || matches!(&self.member, Member::Named(name) if name == "scope")
    }

    /// Name of the part: the attribute, else the field's name or position.
    fn edge(&self) -> TokenStream {
        match (&self.attributes.name, &self.member) {
            (Some(name), _) => name.to_token_stream(),
            (None, Member::Named(_)) => self.printed().to_token_stream(),
            (None, Member::Unnamed(index)) => {
                let index = index.index as usize;
                quote!(#index)
            }
        }
    }

    /// The field's name without `r#`, or nothing.
    fn printed(&self) -> String {
        match &self.member {
            Member::Named(name) => name.to_string().trim_start_matches("r#").to_owned(),
            Member::Unnamed(_) => String::new(),
        }
    }

    /// Adds the field to `edges`; `value` is a reference to it.
    pub fn add_edge(&self, value: &TokenStream) -> TokenStream {
        let name = self.edge();
        if self.attributes.skip {
            quote!()
        } else if self.attributes.state {
            quote_spanned!(self.ty.span()=> edges.add_state(#name, #value);)
        } else {
            quote_spanned!(self.ty.span()=> edges.add(#name, #value);)
        }
    }

    /// A copy of the field.
    pub fn copy(&self, value: &TokenStream) -> TokenStream {
        if self.attributes.skip {
            quote_spanned!(self.ty.span()=> ::core::clone::Clone::clone(#value))
        } else if self.attributes.state {
            quote_spanned!(self.ty.span()=> ::couplet::__private::State::copy_state(#value))
        } else {
            quote_spanned!(self.ty.span()=> ::couplet::__private::Visit::copy(#value, copies))
        }
    }

    /// Whether the printed form may show the field.
    pub fn is_printed(&self) -> bool {
        let FieldAttributes { skip, state, hidden, .. } = self.attributes;
        !(skip || state || hidden)
    }

    /// Adds the field to `print`.
    pub fn print(&self, value: &TokenStream) -> TokenStream {
        if !self.is_printed() {
            return quote!();
        }
        let (name, ty) = (self.printed(), self.ty);
        let print = quote_spanned!(ty.span()=> print.argument(#name, #value););
        match &self.attributes.default {
            None => print,
            Some(default) => quote! {{
                let default: #ty = #default;
                if *#value != default {
                    #print
                }
            }},
        }
    }
}
