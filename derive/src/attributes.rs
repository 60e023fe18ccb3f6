//! The `#[module(...)]` attributes.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, LitStr, Result};

/// Attributes of a field.
#[derive(Default)]
pub struct FieldAttributes {
    pub name: Option<String>,
    pub skip: bool,
    pub state: bool,
    pub hidden: bool,
    /// Whether it knows the owners of the slots; for the library's own optimisers.
    pub slot_owners: bool,
    pub default: Option<Expr>,
}

/// Attributes of a struct.
#[derive(Default)]
pub struct StructAttributes {
    pub allow_empty_variables: bool,
    pub materialise: Option<Expr>,
    pub kind: Option<Expr>,
    pub no_debug: bool,
}

fn each(attributes: &[Attribute], mut take: impl FnMut(&ParseNestedMeta) -> Result<bool>) -> Result<()> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("module")) {
        attribute.parse_nested_meta(|meta| match take(&meta)? {
            true => Ok(()),
            false => Err(meta.error("unknown here; see the documentation of #[derive(Module)]")),
        })?;
    }
    Ok(())
}

impl FieldAttributes {
    pub fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = FieldAttributes::default();
        each(attributes, |meta| {
            if meta.path.is_ident("name") {
                found.name = Some(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.path.is_ident("default") {
                found.default = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("skip") {
                found.skip = true;
            } else if meta.path.is_ident("state") {
                found.state = true;
            } else if meta.path.is_ident("hidden") {
                found.hidden = true;
            } else if meta.path.is_ident("slot_owners") {
                found.slot_owners = true;
            } else {
                return Ok(false);
            }
            if found.skip && (found.state || found.name.is_some() || found.default.is_some()) {
                return Err(meta.error("a field that is skipped takes no other attribute"));
            }
            Ok(true)
        })?;
        Ok(found)
    }
}

impl StructAttributes {
    pub fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = StructAttributes::default();
        each(attributes, |meta| {
            if meta.path.is_ident("allow_empty_variables") {
                found.allow_empty_variables = true;
            } else if meta.path.is_ident("materialise") {
                found.materialise = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("kind") {
                found.kind = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("no_debug") {
                found.no_debug = true;
            } else {
                return Ok(false);
            }
            Ok(true)
        })?;
        Ok(found)
    }
}
