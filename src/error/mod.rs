//! The one error type of the crate.

mod fault;

pub use fault::Fault;

use crate::dtype::DType;

/// What every fallible call returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call was refused: where, what came, what would be right.
///
/// A failed call changes nothing: no variable is created, assigned or left half-written.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument's shape or rank does not fit.
    #[error("{op}: {what} has shape {got:?}, expected {expected}")]
    Shape {
        /// The op, layer or function that refused.
        op: &'static str,
        /// The argument, e.g. `x`.
        what: String,
        /// The shape that came.
        got: Vec<usize>,
        /// What would be right.
        expected: String,
    },
    /// Two shapes do not broadcast against each other.
    #[error(
        "{op}: shapes {lhs:?} and {rhs:?} do not broadcast: counted from the last, two dims must be equal or one of them 1"
    )]
    Broadcast {
        /// The op that refused.
        op: &'static str,
        /// Shape of the first input.
        lhs: Vec<usize>,
        /// Shape of the second input.
        rhs: Vec<usize>,
    },
    /// An argument's dtype does not fit.
    #[error("{op}: {what} has dtype {got}, expected {expected}")]
    DType {
        /// The op, layer or function that refused.
        op: &'static str,
        /// The argument, e.g. `x`.
        what: String,
        /// The dtype that came.
        got: DType,
        /// What would be right.
        expected: String,
    },
    /// An axis lies outside the tensor's rank.
    #[error("{op}: axis {axis} is out of range for rank {rank}, {}", axes(*.rank))]
    Axis {
        /// The op that refused.
        op: &'static str,
        /// The axis that came.
        axis: isize,
        /// The rank it was meant for.
        rank: usize,
    },
    /// An index, label or id lies outside its range.
    #[error("{op}: {what} {index} is out of range, expected 0 to {}", *.size as i64 - 1)]
    Index {
        /// The op that refused.
        op: &'static str,
        /// What is indexed, e.g. `label`.
        what: String,
        /// The value that came.
        index: i64,
        /// The number of valid values.
        size: usize,
    },
    /// An argument's value is not acceptable.
    #[error("{op}: {argument} is {got}, expected {expected}")]
    Argument {
        /// The op, layer or function that refused.
        op: &'static str,
        /// The argument's name.
        argument: &'static str,
        /// The value that came.
        got: String,
        /// What would be right.
        expected: String,
    },
    /// A call came at the wrong time or in a wrong combination.
    #[error("{op}: {problem}; {cure}")]
    Usage {
        /// The op, layer or function that refused.
        op: &'static str,
        /// What is wrong.
        problem: String,
        /// What to do instead.
        cure: String,
    },
    /// A name is not an identifier.
    #[error(
        "{name:?} is not a valid module name, expected an identifier: a letter or underscore, then letters, digits or underscores"
    )]
    Name {
        /// The name that came.
        name: String,
    },
    /// A file could not be read, written or understood.
    #[error("{path}: {problem}")]
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The bytes of a file are not what its format asks for.
    #[error("{path}{}{}: {fault}: {problem}", place(.tensor, "tensor "), place(.offset, "byte "))]
    Format {
        /// The file.
        path: String,
        /// Where in the file, in bytes from its beginning, if the fault has a place.
        offset: Option<u64>,
        /// The key of the tensor, if the fault lies in one.
        tensor: Option<String>,
        /// What kind of fault it is.
        fault: Fault,
        /// What came and what would be right.
        problem: String,
    },
    /// An error inside a module: the path of the module and the error itself.
    #[error("in {path}: {source}")]
    In {
        /// Where: the module path with the containers' edges.
        path: String,
        /// What went wrong there.
        source: Box<Error>,
    },
}

/// The axes that there are.
fn axes(rank: usize) -> String {
    match rank {
        0 => "which has no axes".to_owned(),
        rank => format!("expected -{rank} to {}", rank - 1),
    }
}

/// A part of the place of a fault, where it is known.
fn place(part: &Option<impl std::fmt::Display>, name: &str) -> String {
    part.as_ref().map_or_else(String::new, |part| format!(", {name}{part}"))
}

impl Error {
    /// A file's content is not what its format asks for.
    pub(crate) fn format(path: &std::path::Path, fault: Fault, problem: impl Into<String>) -> Self {
        let path = path.display().to_string();
        Error::Format { path, offset: None, tensor: None, fault, problem: problem.into() }
    }

    /// The error with the place in the file, if it is one of a file's content and has none yet.
    #[must_use]
    pub(crate) fn at_offset(mut self, at: u64) -> Self {
        if let Error::Format { offset: offset @ None, .. } = &mut self {
            *offset = Some(at);
        }
        self
    }

    /// The error with the key of the tensor, if it is one of a file's content and has none yet.
    #[must_use]
    pub(crate) fn of_tensor(mut self, key: &str) -> Self {
        if let Error::Format { tensor: tensor @ None, .. } = &mut self {
            *tensor = Some(key.to_owned());
        }
        self
    }

    pub(crate) fn argument(
        op: &'static str,
        argument: &'static str,
        got: impl ToString,
        expected: impl Into<String>,
    ) -> Self {
        Error::Argument { op, argument, got: got.to_string(), expected: expected.into() }
    }

    pub(crate) fn usage(op: &'static str, problem: impl Into<String>, cure: impl Into<String>) -> Self {
        Error::Usage { op, problem: problem.into(), cure: cure.into() }
    }

    pub(crate) fn shape(
        op: &'static str,
        what: impl Into<String>,
        got: &[usize],
        expected: impl Into<String>,
    ) -> Self {
        Error::Shape { op, what: what.into(), got: got.to_vec(), expected: expected.into() }
    }

    pub(crate) fn dtype(
        op: &'static str,
        what: impl Into<String>,
        got: DType,
        expected: impl Into<String>,
    ) -> Self {
        Error::DType { op, what: what.into(), got, expected: expected.into() }
    }

    /// The error with the module it happened in: `in mlp/linear_0: matmul: ...`.
    ///
    /// A path that already lies inside `path` is kept as it is; otherwise the outer path goes in front.
    #[must_use]
    pub fn within(self, path: &str) -> Self {
        let path = path.trim_end_matches('/');
        match self {
            Error::In { path: inner, source } => {
                let inside = inner
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest.starts_with(':'));
                if inside {
                    Error::In { path: inner, source }
                } else {
                    Error::In { path: format!("{path}: {inner}"), source }
                }
            }
            other => Error::In { path: path.to_owned(), source: Box::new(other) },
        }
    }

    /// The error with the container's edge that led to the module: `_layers/2 (linear): ...`.
    #[must_use]
    pub fn at_edge(self, edge: &str) -> Self {
        match self {
            Error::In { path, source } => {
                let (head, tail) = path.split_once(": ").map_or((path.as_str(), None), |(h, t)| (h, Some(t)));
                let path = match tail {
                    None => format!("{edge} ({head})"),
                    Some(tail) => format!("{edge} ({head}): {tail}"),
                };
                Error::In { path, source }
            }
            other => Error::In { path: edge.to_owned(), source: Box::new(other) },
        }
    }

    /// The error itself, without the module path around it.
    pub fn root(&self) -> &Error {
        match self {
            Error::In { source, .. } => source.root(),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Error;

    fn fault() -> Error {
        Error::argument("conv2d", "stride", 0, "1 or more")
    }

    #[test]
    fn message_names_path_op_value_and_what_would_be_right() {
        let e = fault().within("linear/").at_edge("_layers/2").within("net");
        assert_eq!(e.to_string(), "in net: _layers/2 (linear): conv2d: stride is 0, expected 1 or more");
        assert!(matches!(e.root(), Error::Argument { .. }));
    }

    #[test]
    fn outer_scope_is_not_repeated() {
        let e = fault().within("mlp/linear_0").within("mlp");
        assert_eq!(e.to_string(), "in mlp/linear_0: conv2d: stride is 0, expected 1 or more");
    }
}
