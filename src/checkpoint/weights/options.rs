//! Settings of a load or a save by path.

use regex_lite::Regex;

use super::layout::Layout;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// What loads and saves have in common.
#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    renames: Vec<(String, String)>,
    skips: Vec<String>,
    layouts: Vec<(String, Layout)>,
    pub(super) torch: bool,
    pub(super) dtype: Option<DType>,
}

/// The rules with their patterns understood.
pub(super) struct Compiled {
    renames: Vec<(Regex, String)>,
    skips: Vec<Regex>,
    layouts: Vec<(Regex, Layout)>,
}

impl Rules {
    pub(super) fn compile(&self, op: &'static str) -> Result<Compiled> {
        let both = |(pattern, replacement): &(String, String)| Ok((regex(op, pattern)?, replacement.clone()));
        let layout = |(pattern, layout): &(String, Layout)| Ok((regex(op, pattern)?, layout.clone()));
        Ok(Compiled {
            renames: self.renames.iter().map(both).collect::<Result<_>>()?,
            skips: self.skips.iter().map(|pattern| regex(op, pattern)).collect::<Result<_>>()?,
            layouts: self.layouts.iter().map(layout).collect::<Result<_>>()?,
        })
    }
}

impl Compiled {
    /// The name after all renames, one after the other.
    pub(super) fn renamed(&self, name: &str) -> String {
        self.renames.iter().fold(name.to_owned(), |name, (pattern, replacement)| {
            pattern.replace_all(&name, replacement.as_str()).into_owned()
        })
    }

    /// Whether a name is left out.
    pub(super) fn skips(&self, name: &str) -> bool {
        self.skips.iter().any(|pattern| pattern.is_match(name))
    }

    /// The layout of the first rule for a path.
    pub(super) fn layout(&self, path: &str) -> Option<&Layout> {
        self.layouts.iter().find(|(pattern, _)| pattern.is_match(path)).map(|(_, layout)| layout)
    }
}

pub(super) fn regex(op: &'static str, pattern: &str) -> Result<Regex> {
    Regex::new(pattern).map_err(|e| {
        Error::argument(op, "pattern", format!("{pattern:?}"), format!("a regular expression: {e}"))
    })
}

/// The settings that loads and saves share.
macro_rules! shared_setters {
    ($options:ident) => {
        impl $options {
            /// Adds a rule for the layout of the variables whose path matches a regular expression. The first rule that matches
            /// counts, before those of [`torch_layouts`](Self::torch_layouts).
            #[must_use]
            pub fn layout(mut self, pattern: &str, layout: Layout) -> Self {
                self.rules.layouts.push((pattern.to_owned(), layout));
                self
            }

            /// Whether weights have PyTorch's layouts in the file. Default: no.
            ///
            /// The layout follows from the kind of the layer and the name of the variable: `w` of `Linear`, of convolutions
            /// and of transposed ones, `w`, `w_dw` and `w_pw` of depthwise and separable ones; embeddings are the same, and so
            /// are vectors but for dims of 1 around them. Anything else is an error that asks for a rule, never a guess.
            #[must_use]
            pub fn torch_layouts(mut self, torch_layouts: bool) -> Self {
                self.rules.torch = torch_layouts;
                self
            }
        }
    };
}

/// Settings of [`load_weights`](super::load_weights).
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    pub(super) rules: Rules,
    pub(super) also: Vec<(String, String)>,
    pub(super) allow_missing: bool,
    pub(super) allow_unused: bool,
    pub(super) allow_mismatched: bool,
}

shared_setters!(LoadOptions);

impl LoadOptions {
    /// Strict settings: keys are paths, and everything fits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a step that makes paths of the file's keys: what matches a regular expression is replaced, `$1` or `${name}`
    /// standing for groups. The steps happen in the order in which they were added, each for every key.
    #[must_use]
    pub fn rename(mut self, pattern: &str, replacement: &str) -> Self {
        self.rules.renames.push((pattern.to_owned(), replacement.to_owned()));
        self
    }

    /// Gives a tensor to a second variable as well: that of its path with what matches replaced.
    #[must_use]
    pub fn also(mut self, pattern: &str, replacement: &str) -> Self {
        self.also.push((pattern.to_owned(), replacement.to_owned()));
        self
    }

    /// Leaves out the file's keys that match a regular expression.
    #[must_use]
    pub fn skip(mut self, pattern: &str) -> Self {
        self.rules.skips.push(pattern.to_owned());
        self
    }

    /// Casts floats of the file to this float dtype. Default: they keep theirs.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.rules.dtype = Some(dtype);
        self
    }

    /// Whether variables may keep their values because the file has none for them. Default: no.
    #[must_use]
    pub fn allow_missing(mut self, allow_missing: bool) -> Self {
        self.allow_missing = allow_missing;
        self
    }

    /// Whether the file may have tensors that nothing in the module takes. Default: no.
    #[must_use]
    pub fn allow_unused(mut self, allow_unused: bool) -> Self {
        self.allow_unused = allow_unused;
        self
    }

    /// Whether variables may keep their values because those of the file have another shape or dtype, as the last layer of
    /// a network for other classes. Default: no.
    #[must_use]
    pub fn allow_mismatched(mut self, allow_mismatched: bool) -> Self {
        self.allow_mismatched = allow_mismatched;
        self
    }
}

/// Settings of [`save_weights`](super::save_weights).
#[derive(Debug, Clone, Default)]
pub struct SaveOptions {
    pub(super) rules: Rules,
    pub(super) compress: bool,
}

shared_setters!(SaveOptions);

impl SaveOptions {
    /// All variables under their paths, as they are.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a step that makes the file's keys of paths: what matches a regular expression is replaced, `$1` or `${name}`
    /// standing for groups. The steps happen in the order in which they were added, each for every path.
    #[must_use]
    pub fn rename(mut self, pattern: &str, replacement: &str) -> Self {
        self.rules.renames.push((pattern.to_owned(), replacement.to_owned()));
        self
    }

    /// Leaves out the variables whose path matches a regular expression.
    #[must_use]
    pub fn skip(mut self, pattern: &str) -> Self {
        self.rules.skips.push(pattern.to_owned());
        self
    }

    /// Casts floats to this float dtype. Default: they keep theirs.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.rules.dtype = Some(dtype);
        self
    }

    /// Whether a `.npz` file is compressed. Default: no; weights hardly get smaller and take far longer.
    #[must_use]
    pub fn compress(mut self, compress: bool) -> Self {
        self.compress = compress;
        self
    }
}
