//! The variables of every module: their paths in files, names, shapes, order, and when they are made.
//!
//! Files depend on the paths, so a change of `variables.txt` makes older files unreadable. For the modules of the reference the
//! golden cases hold the same paths as the reference wrote them (`tests/conformance`).

use std::collections::BTreeSet;
use std::fmt::Write;

use couplet::prelude::*;

use super::list::{Subject, every_module};

/// What `variables.txt` says: the printed form, and a line for each variable in the order of `variables()`.
fn described(subject: &dyn Subject) -> String {
    let module = subject.module();
    let printed = format!("{module:?}");
    let paths = |named: Vec<(String, Variable)>| named.into_iter().map(|(path, _)| path).collect();
    let at_once: BTreeSet<String> = paths(module.named_variables().unwrap());
    subject.call().unwrap_or_else(|e| panic!("{printed}: {e}"));

    let named = module.named_variables().unwrap();
    let mut text = format!("{printed}\n");
    let in_order = match module.variables() {
        Ok(variables) => variables,
        Err(_) if named.is_empty() => return text, // the error says that there are none
        Err(e) => panic!("{printed}: {e}"),
    };
    assert_eq!(in_order.len(), named.len(), "{printed}: both lists hold each variable once");
    for variable in in_order {
        let (path, _) = named.iter().find(|(_, v)| v.id() == variable.id()).expect("both list it");
        let (name, dtype, shape) = (variable.name(), variable.dtype(), variable.shape());
        write!(text, "  {path}  {name}  {dtype}{shape}").unwrap();
        text.push_str(if variable.trainable() { "" } else { "  not trained" });
        text.push_str(if at_once.contains(path) { "  needs no input" } else { "" });
        text.push('\n');
    }
    text
}

#[test]
fn variables_are_made_in_the_listed_order_under_the_listed_paths_and_names() {
    let listed: Vec<&str> = include_str!("variables.txt").trim().split("\n\n").collect();
    let found: Vec<String> = every_module().iter().map(|make| described(&*make(DType::F32))).collect();
    let differ: Vec<&str> =
        found.iter().filter(|got| !listed.contains(&got.trim_end())).map(String::as_str).collect();
    assert!(differ.is_empty(), "not in variables.txt:\n\n{}", differ.join("\n"));
    let order = |(got, want): (&String, &&str)| got.trim_end() == want.trim_end();
    assert!(
        found.len() == listed.len() && found.iter().zip(&listed).all(order),
        "another order, or too many"
    );
}
