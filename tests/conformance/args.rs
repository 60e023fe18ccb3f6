//! Arguments of a constructor or a call: each is taken by name, and what is left over is an error.

use std::fmt::Display;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Outcome, problem};

/// Named arguments that have not been used yet.
pub struct Args {
    rest: Map<String, Value>,
}

/// A value or a list of them.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T: Clone> OneOrMany<T> {
    /// The list, or the value as a list of one.
    pub fn list(self) -> Vec<T> {
        match self {
            OneOrMany::One(value) => vec![value],
            OneOrMany::Many(list) => list,
        }
    }

    /// One value for each of `count` axes.
    pub fn spread(self, count: usize) -> Outcome<Vec<T>> {
        match self.list() {
            list if list.len() == count => Ok(list),
            list if list.len() == 1 => Ok(vec![list[0].clone(); count]),
            list => Err(problem(format!("{} values for {count} axes", list.len()))),
        }
    }
}

impl Args {
    pub fn new(arguments: &Map<String, Value>) -> Self {
        Args { rest: arguments.clone() }
    }

    /// The argument, or `None` if it is absent or null: then the library's default holds.
    pub fn get<T: DeserializeOwned>(&mut self, name: &str) -> Outcome<Option<T>> {
        match self.rest.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let told = value.to_string();
                let value = serde_json::from_value(value);
                Ok(Some(
                    value.map_err(|e| problem(format!("argument {name}={told} is not understood: {e}")))?,
                ))
            }
        }
    }

    /// The argument, which must be there.
    pub fn need<T: DeserializeOwned>(&mut self, name: &str) -> Outcome<T> {
        self.get(name)?.ok_or_else(|| problem(format!("argument {name} is missing")))
    }

    /// The argument or a default.
    pub fn or<T: DeserializeOwned>(&mut self, name: &str, default: T) -> Outcome<T> {
        Ok(self.get(name)?.unwrap_or(default))
    }

    /// The argument, which may only be one of these.
    pub fn expect<T: DeserializeOwned + PartialEq + Display>(&mut self, name: &str, only: T) -> Outcome {
        match self.get::<T>(name)? {
            Some(value) if value != only => {
                Err(problem(format!("argument {name}={value} is not understood")))
            }
            _ => Ok(()),
        }
    }

    /// Whether the argument is given.
    pub fn has(&self, name: &str) -> bool {
        self.rest.get(name).is_some_and(|value| !value.is_null())
    }

    /// Refuses arguments that nobody asked for.
    pub fn finish(self) -> Outcome {
        match self.rest.iter().find(|(_, value)| !value.is_null()) {
            None => Ok(()),
            Some((name, value)) => Err(problem(format!("argument {name}={value} is not understood"))),
        }
    }
}
