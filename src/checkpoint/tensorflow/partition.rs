//! Tensors that are stored in slices.

use super::record::{Extent, Problem};
use crate::error::Fault;

/// A box in a tensor: where it begins and how long it is along each axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    start: Vec<usize>,
    dims: Vec<usize>,
}

impl Region {
    /// The region that a slice covers of a tensor with this shape.
    pub(super) fn new(slice: &[Extent], shape: &[usize]) -> Result<Self, Problem> {
        let malformed =
            || (Fault::MalformedEntry, format!("slice {slice:?} of a tensor with shape {shape:?}"));
        if slice.len() != shape.len() {
            return Err(malformed());
        }
        let (mut start, mut dims) = (Vec::with_capacity(shape.len()), Vec::with_capacity(shape.len()));
        for (extent, &dim) in slice.iter().zip(shape) {
            let first = usize::try_from(extent.start).map_err(|_| malformed())?;
            let length = match extent.length {
                Some(length) => usize::try_from(length).map_err(|_| malformed())?,
                None => dim,
            };
            if first.checked_add(length).is_none_or(|end| end > dim) {
                return Err(malformed());
            }
            start.push(first);
            dims.push(length);
        }
        Ok(Region { start, dims })
    }

    pub(super) fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Calls `f` for every run of elements that are neighbours both in the region and in the tensor of this shape: with where
    /// it begins in the tensor, where in the region, and how long it is.
    fn for_each_run(&self, shape: &[usize], mut f: impl FnMut(usize, usize, usize)) {
        if self.dims.contains(&0) {
            return;
        }
        // Whole axes at the end belong to the run, and the one before them.
        let whole = self.dims.iter().zip(shape).rev().take_while(|(a, b)| a == b).count();
        let inner = (shape.len() - whole).saturating_sub(1);
        let length: usize = self.dims[inner..].iter().product();
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        let mut to: usize = self.start.iter().zip(&strides).map(|(start, stride)| start * stride).sum();
        let mut index = vec![0; inner];
        let mut from = 0;
        loop {
            f(to, from, length);
            from += length;
            let Some(axis) = (0..inner).rev().find(|&axis| index[axis] + 1 < self.dims[axis]) else {
                return;
            };
            index[axis] += 1;
            to += strides[axis];
            for axis in axis + 1..inner {
                to -= index[axis] * strides[axis];
                index[axis] = 0;
            }
        }
    }
}

/// A tensor that is put together of regions, each of its elements `width` values of `T`.
#[derive(Debug)]
pub(super) struct Assembly<T> {
    shape: Vec<usize>,
    width: usize,
    y: Vec<T>,
    covered: Vec<bool>,
}

impl<T: Clone + Default> Assembly<T> {
    /// With room for `size` elements, the product of the shape. The caller has seen that there are so many in the files.
    pub(super) fn new(shape: &[usize], size: usize, width: usize) -> Self {
        Assembly {
            shape: shape.to_vec(),
            width,
            y: vec![T::default(); size * width],
            covered: vec![false; size],
        }
    }

    /// Puts the elements of a region in their places. Fails if some are taken.
    pub(super) fn put(&mut self, region: &Region, x: &[T]) -> Result<(), Problem> {
        let (width, mut twice) = (self.width, false);
        region.for_each_run(&self.shape, |to, from, length| {
            let covered = &mut self.covered[to..to + length];
            twice |= covered.contains(&true);
            covered.fill(true);
            self.y[to * width..][..length * width].clone_from_slice(&x[from * width..][..length * width]);
        });
        if twice {
            return Err((Fault::MalformedEntry, "two slices hold the same elements".to_owned()));
        }
        Ok(())
    }

    /// The elements, if all are there.
    pub(super) fn finish(self) -> Result<Vec<T>, Problem> {
        match self.covered.iter().position(|covered| !covered) {
            Some(at) => {
                Err((Fault::MissingSlice, format!("no slice holds element {at} of shape {:?}", self.shape)))
            }
            None => Ok(self.y),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(extents: &[(i64, Option<i64>)], shape: &[usize]) -> Result<Region, Problem> {
        let slice: Vec<Extent> = extents.iter().map(|&(start, length)| Extent { start, length }).collect();
        Region::new(&slice, shape)
    }

    #[test]
    fn runs_are_as_long_as_may_be() {
        let runs = |extents: &[(i64, Option<i64>)], shape: &[usize]| {
            let mut runs = Vec::new();
            region(extents, shape)
                .unwrap()
                .for_each_run(shape, |to, from, length| runs.push((to, from, length)));
            runs
        };
        // Of 2 x 3 x 4: rows 1 and 2 of each matrix; then columns 1 and 2 of row 2.
        assert_eq!(runs(&[(0, None), (1, Some(2)), (0, None)], &[2, 3, 4]), [(4, 0, 8), (16, 8, 8)]);
        assert_eq!(runs(&[(0, None), (2, Some(1)), (1, Some(2))], &[2, 3, 4]), [(9, 0, 2), (21, 2, 2)]);
        assert_eq!(runs(&[(0, None), (0, None)], &[2, 3]), [(0, 0, 6)]);
        assert_eq!(runs(&[], &[]), [(0, 0, 1)]);
        assert_eq!(runs(&[(1, Some(0)), (0, None)], &[2, 3]), []);
    }

    #[test]
    fn slices_outside_the_tensor_are_refused() {
        for extents in
            [&[(0, Some(3))][..], &[(3, None)], &[(2, Some(1))], &[], &[(i64::MAX, Some(i64::MAX))]]
        {
            assert_eq!(region(extents, &[2]).unwrap_err().0, Fault::MalformedEntry);
        }
    }

    #[test]
    fn every_element_comes_once() {
        let shape = [2, 2];
        let (left, right) = (
            region(&[(0, None), (0, Some(1))], &shape).unwrap(),
            region(&[(0, None), (1, Some(1))], &shape).unwrap(),
        );
        let mut whole = Assembly::new(&shape, 4, 2);
        whole.put(&left, b"aAcC").unwrap();
        assert_eq!(whole.put(&left, b"aAcC").unwrap_err().0, Fault::MalformedEntry);
        whole.put(&right, b"bBdD").unwrap();
        assert_eq!(whole.finish().unwrap(), b"aAbBcCdD");
        let mut half = Assembly::new(&shape, 4, 2);
        half.put(&right, b"bBdD").unwrap();
        assert_eq!(half.finish().unwrap_err().0, Fault::MissingSlice);
    }
}
