//! Bounds that the generated implementations put on type parameters.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{Generics, Ident, PathSegment, Type, parse_quote};

use crate::fields::Field;

/// Adds `Visit` to the parameters that fields are made of, and what every module needs to all of them.
pub fn bounded<'a>(generics: &Generics, fields: impl IntoIterator<Item = &'a Field<'a>>) -> Generics {
    let mut generics = generics.clone();
    let mut used = Used {
        parameters: generics.type_params().map(|p| p.ident.clone()).collect(),
        found: BTreeSet::new(),
    };
    for field in fields.into_iter().filter(|field| !field.attributes.skip && !field.attributes.state) {
        used.visit_type(field.ty);
    }
    for parameter in generics.type_params_mut() {
        if used.found.contains(&parameter.ident) {
            parameter.bounds.push(parse_quote!(::couplet::__private::Visit));
        }
        parameter.bounds.push(parse_quote!(::core::marker::Send));
        parameter.bounds.push(parse_quote!(::core::marker::Sync));
        parameter.bounds.push(parse_quote!('static));
    }
    generics
}

/// Type parameters that occur in types, other than inside `PhantomData`.
struct Used {
    parameters: BTreeSet<Ident>,
    found: BTreeSet<Ident>,
}

impl Visit<'_> for Used {
    fn visit_path_segment(&mut self, segment: &PathSegment) {
        if segment.ident != "PhantomData" {
            visit::visit_path_segment(self, segment);
        }
    }

    fn visit_type(&mut self, ty: &Type) {
        if let Type::Path(path) = ty
            && path.qself.is_none()
            && let Some(first) = path.path.segments.first()
            && self.parameters.contains(&first.ident)
        {
            self.found.insert(first.ident.clone());
        }
        visit::visit_type(self, ty);
    }
}
