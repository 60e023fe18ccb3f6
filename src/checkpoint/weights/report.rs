//! What became of each weight.

use std::fmt;

use super::layout::Layout;
use crate::module::nearest;

/// What [`load_weights`](super::load_weights) did with the tensors of the file and the variables of the module.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct LoadReport {
    /// What variables took, or will take when they are made. In ascending order of the keys.
    pub loaded: Vec<LoadedWeight>,
    /// Variables that kept their values because the file has none for them: their paths.
    pub missing: Vec<UnmatchedWeight>,
    /// Tensors of the file that nothing took: their keys.
    pub unused: Vec<UnmatchedWeight>,
    /// Variables that kept their values because the shape or dtype of those in the file differs: path and reason.
    pub mismatched: Vec<String>,
    /// Paths of variables or parts that are not made yet and will start as they do without a file, if they are ever made.
    pub unmade: Vec<String>,
}

/// A tensor that a variable took.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadedWeight {
    /// The path of the variable.
    pub path: String,
    /// The key in the file.
    pub key: String,
    /// How it was laid out in the file.
    pub layout: Layout,
    /// Whether it waits for the variable to be made.
    pub waiting: bool,
}

/// A variable or a tensor that found no partner.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnmatchedWeight {
    /// Its path, or its key in the file.
    pub name: String,
    /// The name on the other side that comes nearest, if one is near and has no partner either.
    pub nearest: Option<String>,
}

impl fmt::Display for UnmatchedWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.nearest {
            None => f.write_str(&self.name),
            Some(nearest) => write!(f, "{} (nearest: {nearest})", self.name),
        }
    }
}

impl LoadReport {
    /// What was transposed or reshaped on the way.
    pub fn changed(&self) -> impl Iterator<Item = &LoadedWeight> {
        self.loaded.iter().filter(|weight| weight.layout != Layout::AsIs)
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.loaded.iter().filter(|weight| weight.waiting).count();
        write!(f, "{} loaded", self.loaded.len())?;
        if waiting > 0 {
            write!(f, ", {waiting} of them when their variables are made")?;
        }
        for weight in self.changed() {
            write!(f, "\n  {} <- {}: {:?}", weight.path, weight.key, weight.layout)?;
        }
        let missing = self.missing.iter().map(ToString::to_string).collect();
        let unused = self.unused.iter().map(ToString::to_string).collect();
        let lists: [(&str, &Vec<String>); 4] = [
            ("missing", &missing),
            ("unused", &unused),
            ("mismatched", &self.mismatched),
            ("not made yet", &self.unmade),
        ];
        for (title, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            write!(f, "\n{} {title}", list.len())?;
            list.iter().try_for_each(|line| write!(f, "\n  {line}"))?;
        }
        Ok(())
    }
}

/// The most names that get a hint, and the most that are compared for it: each pair costs the product of its lengths.
const HINTED: usize = 32;
const COMPARED: usize = 512;

/// Names without a partner, the first ones with the nearest of `others`: pairs of the name that is compared and the one that is
/// shown.
pub(super) fn unmatched(
    names: impl IntoIterator<Item = (String, String)>,
    others: &[(String, String)],
) -> Vec<UnmatchedWeight> {
    let compared: Vec<String> = others.iter().take(COMPARED).map(|(compared, _)| compared.clone()).collect();
    let hint = |name: &str| {
        let near = nearest(name, &compared)?;
        others.iter().find(|(compared, _)| compared == near).map(|(_, shown)| shown.clone())
    };
    let hinted = |(i, (compared, name)): (usize, (String, String))| UnmatchedWeight {
        nearest: if i < HINTED { hint(&compared) } else { None },
        name,
    };
    names.into_iter().enumerate().map(hinted).collect()
}
