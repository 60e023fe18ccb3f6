//! Padding of convolutions by formula: from the reach of a kernel to the zeros before and after.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::module::{Copies, Description, Node, Visit};
use crate::ops::Padding;

/// No padding: `(0, 0)`.
pub fn valid(_reach: usize) -> (usize, usize) {
    (0, 0)
}

/// With stride 1 the output has the size of the input: `((e - 1) / 2, e / 2)`.
pub fn same(reach: usize) -> (usize, usize) {
    (reach.saturating_sub(1) / 2, reach / 2)
}

/// Every overlap with at least one real element: `(e - 1, e - 1)`.
pub fn full(reach: usize) -> (usize, usize) {
    (reach.saturating_sub(1), reach.saturating_sub(1))
}

/// Output `i` depends on inputs up to `i`: `(e - 1, 0)`.
pub fn causal(reach: usize) -> (usize, usize) {
    (reach.saturating_sub(1), 0)
}

/// Output `i` depends on inputs from `i` on: `(0, e - 1)`.
pub fn reverse_causal(reach: usize) -> (usize, usize) {
    (0, reach.saturating_sub(1))
}

/// A function from the reach of a kernel, `e = (kernel - 1) rate + 1`, to the zeros before and after.
pub type PadFn = fn(usize) -> (usize, usize);

type SharedPad = Arc<dyn Fn(usize) -> (usize, usize) + Send + Sync>;

/// The padding of a convolution layer: `Padding::Same`, `Padding::Valid`, or functions such as [`causal`], one for all
/// spatial axes or one for each.
#[derive(Clone)]
pub struct LayerPadding(Kind);

#[derive(Clone)]
enum Kind {
    Fixed(Padding),
    Functions(Vec<SharedPad>),
}

impl From<Padding> for LayerPadding {
    fn from(padding: Padding) -> Self {
        LayerPadding(Kind::Fixed(padding))
    }
}

impl<F: Fn(usize) -> (usize, usize) + Send + Sync + 'static> From<F> for LayerPadding {
    fn from(f: F) -> Self {
        LayerPadding(Kind::Functions(vec![Arc::new(f)]))
    }
}

impl From<&[PadFn]> for LayerPadding {
    fn from(list: &[PadFn]) -> Self {
        LayerPadding(Kind::Functions(list.iter().map(|&f| -> SharedPad { Arc::new(f) }).collect()))
    }
}

impl<const N: usize> From<[PadFn; N]> for LayerPadding {
    fn from(list: [PadFn; N]) -> Self {
        list[..].into()
    }
}

impl LayerPadding {
    /// The zeros around an input for a kernel, axis by axis.
    pub(crate) fn resolve(&self, op: &'static str, kernel: &[usize], rate: &[usize]) -> Result<Padding> {
        let functions = match &self.0 {
            Kind::Fixed(padding) => return Ok(padding.clone()),
            Kind::Functions(list) => list,
        };
        if functions.len() != 1 && functions.len() != kernel.len() {
            let got = format!("{} functions", functions.len());
            return Err(Error::argument(
                op,
                "padding",
                got,
                format!("one, or one for each of {} axes", kernel.len()),
            ));
        }
        let reach = |axis: usize| kernel[axis].saturating_sub(1).saturating_mul(rate[axis]).saturating_add(1);
        let pads = (0..kernel.len()).map(|axis| functions[axis.min(functions.len() - 1)](reach(axis)));
        Ok(Padding::Explicit(pads.collect()))
    }
}

impl Visit for LayerPadding {
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

impl fmt::Debug for LayerPadding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Fixed(Padding::Same) => f.write_str("'SAME'"),
            Kind::Fixed(Padding::Valid) => f.write_str("'VALID'"),
            Kind::Fixed(Padding::Explicit(pads)) => write!(f, "{pads:?}"),
            // A function is known by what it gives for a kernel of three taps.
            Kind::Functions(list) => write!(f, "{:?}", list.iter().map(|pad| pad(3)).collect::<Vec<_>>()),
        }
    }
}

impl PartialEq for LayerPadding {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Fixed(a), Kind::Fixed(b)) => a == b,
            _ => false,
        }
    }
}

/// Zeros before and after along each axis of a batch: `n` spatial axes, with none for the batch and the channels, which
/// stand right after the batch if `channel_index` is 1 and last otherwise.
///
/// `padding`, `kernel` and `rate` have one entry, or one for each spatial axis.
///
/// # Errors
/// One of them has another length.
pub fn create(
    padding: impl Into<LayerPadding>,
    kernel: &[usize],
    rate: &[usize],
    n: usize,
    channel_index: isize,
) -> Result<Vec<(usize, usize)>> {
    let kernel = crate::ops::per_axis("pad", "kernel", kernel, n)?;
    let rate = crate::ops::per_axis("pad", "rate", rate, n)?;
    let Padding::Explicit(spatial) = padding.into().resolve("pad", &kernel, &rate)? else {
        return Err(Error::argument("pad", "padding", "a name", "functions such as pad::causal"));
    };
    let mut pads = vec![(0, 0)];
    pads.extend(spatial);
    pads.insert(if channel_index == 1 { 1 } else { n + 1 }, (0, 0));
    Ok(pads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_give_the_zeros_of_their_definition() {
        let table: [(PadFn, [(usize, usize); 3]); 5] = [
            (valid, [(0, 0), (0, 0), (0, 0)]),
            (same, [(0, 0), (0, 1), (1, 1)]),
            (full, [(0, 0), (1, 1), (2, 2)]),
            (causal, [(0, 0), (1, 0), (2, 0)]),
            (reverse_causal, [(0, 0), (0, 1), (0, 2)]),
        ];
        for (pad, want) in table {
            assert_eq!([pad(1), pad(2), pad(3)], want);
        }
    }

    #[test]
    fn pads_stand_around_the_channels() {
        let got = create([causal as PadFn, full], &[3], &[1, 1], 2, -1).unwrap();
        assert_eq!(got, [(0, 0), (2, 0), (2, 2), (0, 0)]);
        assert_eq!(create(full, &[3], &[1], 1, 1).unwrap(), [(0, 0), (0, 0), (2, 2)]);
        assert_eq!(create(same, &[4], &[3], 2, -1).unwrap(), [(0, 0), (4, 5), (4, 5), (0, 0)]);
        assert!(create(full, &[2, 2], &[3], 3, -1).is_err());
    }
}
