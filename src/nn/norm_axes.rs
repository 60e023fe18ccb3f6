//! Which axes a normalisation takes its statistics over.

use std::ops::RangeFrom;

use crate::error::{Error, Result};
use crate::module::{Copies, Description, Node, Visit};
use crate::tensor::resolve_axis;

/// Axes of a tensor: one, several, or a range that is cut to the rank of each input.
///
/// Negative numbers count from the last axis: `-1`, `[1, 2]`, `1..`, `NormAxes::between(1, -1)`.
///
/// ```
/// use couplet::nn::NormAxes;
/// assert_eq!(NormAxes::from(1..).resolve(4)?, [1, 2, 3]);
/// assert_eq!(NormAxes::between(1, -1).resolve(4)?, [1, 2]);
/// assert_eq!(NormAxes::from([-1, 1]).resolve(4)?, [1, 3]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NormAxes(Choice);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    List(Vec<isize>),
    /// The end may be open.
    Range(isize, Option<isize>),
}

impl From<isize> for NormAxes {
    fn from(axis: isize) -> Self {
        NormAxes(Choice::List(vec![axis]))
    }
}

impl<const N: usize> From<[isize; N]> for NormAxes {
    fn from(axes: [isize; N]) -> Self {
        NormAxes(Choice::List(axes.to_vec()))
    }
}

impl From<Vec<isize>> for NormAxes {
    fn from(axes: Vec<isize>) -> Self {
        NormAxes(Choice::List(axes))
    }
}

impl From<RangeFrom<isize>> for NormAxes {
    fn from(range: RangeFrom<isize>) -> Self {
        NormAxes(Choice::Range(range.start, None))
    }
}

impl NormAxes {
    /// Axes from `start` up to, and without, `end`; a negative `end` counts from the rank.
    pub fn between(start: isize, end: isize) -> Self {
        NormAxes(Choice::Range(start, Some(end)))
    }

    /// The positions in a tensor of rank `rank`, in rising order.
    ///
    /// # Errors
    /// A listed axis is out of range or comes twice. Ranges are cut to what is there.
    pub fn resolve(&self, rank: usize) -> Result<Vec<usize>> {
        const OP: &str = "normalisation";
        match &self.0 {
            Choice::List(list) => {
                let mut axes =
                    list.iter().map(|&axis| resolve_axis(OP, axis, rank)).collect::<Result<Vec<_>>>()?;
                axes.sort_unstable();
                if axes.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Err(Error::argument(OP, "axis", format!("{list:?}"), "each axis once"));
                }
                Ok(axes)
            }
            Choice::Range(start, end) => {
                let place = |n: isize| {
                    let n = if n < 0 { n.saturating_add_unsigned(rank) } else { n };
                    usize::try_from(n).unwrap_or(0).min(rank)
                };
                Ok((place(*start)..end.map_or(rank, place)).collect())
            }
        }
    }
}

impl Visit for NormAxes {
    fn node(&self) -> Node<'_> {
        Node::Nothing
    }

    fn copy(&self, _: &mut Copies) -> Self {
        self.clone()
    }

    fn describe(&self) -> Option<Description> {
        Some(match &self.0 {
            Choice::List(list) => match &list[..] {
                [one] => Description::text(one),
                list => Description::text(format_args!("{list:?}")),
            },
            Choice::Range(start, None) => Description::text(format_args!("{start}..")),
            Choice::Range(start, Some(end)) => Description::text(format_args!("{start}..{end}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_checked_and_ranges_cut() {
        assert!(NormAxes::from([0, -2]).resolve(2).unwrap_err().to_string().contains("each axis once"));
        assert!(NormAxes::from(2).resolve(2).is_err());
        assert_eq!(NormAxes::between(1, -1).resolve(2).unwrap(), [0; 0]);
        assert_eq!(NormAxes::from(5..).resolve(2).unwrap(), [0; 0]);
        assert_eq!(NormAxes::between(-9, isize::MAX).resolve(2).unwrap(), [0, 1]);
    }
}
