//! One number for all spatial axes, or one for each.

use std::fmt;

use crate::module::{Copies, Description, Node, Visit};

/// A size, stride or rate: one number for all spatial axes, or one for each.
#[derive(Clone, PartialEq, Eq)]
pub struct Sizes(Vec<usize>);

impl Sizes {
    pub(crate) fn list(&self) -> &[usize] {
        &self.0
    }
}

impl From<usize> for Sizes {
    fn from(size: usize) -> Self {
        Sizes(vec![size])
    }
}

impl<const N: usize> From<[usize; N]> for Sizes {
    fn from(sizes: [usize; N]) -> Self {
        Sizes(sizes.to_vec())
    }
}

impl From<&[usize]> for Sizes {
    fn from(sizes: &[usize]) -> Self {
        Sizes(sizes.to_vec())
    }
}

impl From<Vec<usize>> for Sizes {
    fn from(sizes: Vec<usize>) -> Self {
        Sizes(sizes)
    }
}

impl Visit for Sizes {
    fn node(&self) -> Node<'_> {
        Node::Nothing
    }

    fn copy(&self, _: &mut Copies) -> Self {
        self.clone()
    }

    fn describe(&self) -> Option<Description> {
        Some(Description::text(format_args!("{self:?}")))
    }
}

impl fmt::Debug for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [one] => write!(f, "{one}"),
            list => write!(f, "{list:?}"),
        }
    }
}
