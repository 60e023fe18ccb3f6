//! Shapes and strides, kept inline up to rank six.

use std::fmt;
use std::ops::Deref;

/// How many dims are stored without an allocation.
const INLINE: usize = 6;

/// A short vector of dims, inline up to [`INLINE`].
#[derive(Clone)]
enum Dims<T> {
    Inline(u8, [T; INLINE]),
    Heap(Box<[T]>),
}

impl<T: Copy + Default> Dims<T> {
    fn new(dims: &[T]) -> Self {
        if dims.len() <= INLINE {
            let mut inline = [T::default(); INLINE];
            inline[..dims.len()].copy_from_slice(dims);
            Dims::Inline(dims.len() as u8, inline)
        } else {
            Dims::Heap(dims.into())
        }
    }

    fn as_slice(&self) -> &[T] {
        match self {
            Dims::Inline(len, dims) => &dims[..usize::from(*len)],
            Dims::Heap(dims) => dims,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Dims::Inline(len, dims) => &mut dims[..usize::from(*len)],
            Dims::Heap(dims) => dims,
        }
    }
}

/// The dims of a tensor, outermost first; `[]` is a scalar.
#[derive(Clone)]
pub struct Shape(Dims<usize>);

impl Shape {
    /// Number of elements: the product of the dims, 1 for a scalar. Saturates at `usize::MAX`.
    pub fn size(&self) -> usize {
        self.iter().fold(1usize, |n, &d| n.saturating_mul(d))
    }

    /// Number of dims.
    pub fn rank(&self) -> usize {
        self.len()
    }

    /// The dims as a slice.
    pub fn dims(&self) -> &[usize] {
        self
    }

    pub(crate) fn dims_mut(&mut self) -> &mut [usize] {
        self.0.as_mut_slice()
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        self.0.as_slice()
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Self {
        Shape(Dims::new(dims))
    }
}

impl From<&Shape> for Shape {
    /// So that `x.shape()` says the shape of a tensor like `x`.
    fn from(shape: &Shape) -> Self {
        shape.clone()
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Self {
        Shape(Dims::new(&dims))
    }
}

impl<const N: usize> From<&[usize; N]> for Shape {
    fn from(dims: &[usize; N]) -> Self {
        Shape(Dims::new(dims))
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Self {
        Shape(Dims::new(&dims))
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(dims: I) -> Self {
        Shape::from(dims.into_iter().collect::<Vec<_>>())
    }
}

impl PartialEq for Shape {
    /// A short loop: dims are few, and a call of `memcmp` costs more than they do.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other.iter()).all(|(a, b)| a == b)
    }
}

impl Eq for Shape {}

impl PartialEq<[usize]> for Shape {
    fn eq(&self, other: &[usize]) -> bool {
        self.dims() == other
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape {
    fn eq(&self, other: &[usize; N]) -> bool {
        self.dims() == other
    }
}

impl std::hash::Hash for Shape {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.dims().hash(state);
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.dims(), f)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.dims(), f)
    }
}

impl serde::Serialize for Shape {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.dims().serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Shape {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<usize>::deserialize(deserializer).map(Shape::from)
    }
}

/// Steps between neighbours along each axis, in elements.
#[derive(Clone)]
pub(crate) struct Strides(Dims<isize>);

impl Strides {
    pub(crate) fn new(strides: &[isize]) -> Self {
        Strides(Dims::new(strides))
    }

    /// Row-major strides of a shape.
    pub(crate) fn contiguous(shape: &Shape) -> Self {
        let mut dims = match &shape.0 {
            Dims::Inline(len, _) => Dims::Inline(*len, [0; INLINE]),
            Dims::Heap(dims) => Dims::Heap(vec![0; dims.len()].into()),
        };
        let mut step = 1isize;
        for (stride, &dim) in dims.as_mut_slice().iter_mut().zip(shape.iter()).rev() {
            *stride = step;
            // `checked_size` has seen to it that this fits, also where another dim is 0.
            step *= dim.max(1) as isize;
        }
        Strides(dims)
    }

    pub(crate) fn steps_mut(&mut self) -> &mut [isize] {
        self.0.as_mut_slice()
    }
}

impl Deref for Strides {
    type Target = [isize];
    fn deref(&self) -> &[isize] {
        self.0.as_slice()
    }
}
