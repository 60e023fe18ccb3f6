//! Strided views of flat buffers, and the shortest list of loops that walks them.

/// The most dims a [`Loops`] holds after joining; deeper views are walked dim by dim.
pub(crate) const MAX_DIMS: usize = 8;

/// A tensor to read: element `[i0, i1, ..]` of `shape` is `data[offset + i0 strides[0] + i1 strides[1] + ..]`.
///
/// Strides count elements; 0 repeats (broadcast), a negative one walks backwards.
#[derive(Debug)]
pub(crate) struct View<'a, T> {
    data: &'a [T],
    offset: usize,
    shape: &'a [usize],
    strides: &'a [isize],
    len: usize,
    dense: bool,
}

impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for View<'_, T> {}

impl<'a, T> View<'a, T> {
    /// A view of `data`.
    ///
    /// # Panics
    /// An index of `shape` leads outside `data`, or `shape` and `strides` differ in length. The kernels' memory safety
    /// rests on this check; whoever builds views from user input has refused such shapes before.
    pub(crate) fn new(data: &'a [T], offset: usize, shape: &'a [usize], strides: &'a [isize]) -> Self {
        assert_eq!(shape.len(), strides.len(), "a view needs one stride a dim");
        let (len, dense) = extent(data.len(), offset, shape, strides)
            .expect("every index of a view lies inside its data; the tensor that made it has checked");
        Self { data, offset, shape, strides, len, dense }
    }

    /// Number of elements, repeats counted.
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// Dims, outermost first.
    pub(crate) fn shape(self) -> &'a [usize] {
        self.shape
    }

    /// Elements from one index to the next, a dim.
    pub(crate) fn strides(self) -> &'a [isize] {
        self.strides
    }

    /// The same data with other dims.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub(crate) fn with_dims<'b>(self, shape: &'b [usize], strides: &'b [isize]) -> View<'b, T>
    where
        'a: 'b,
    {
        View::new(self.data, self.offset, shape, strides)
    }

    /// The elements in row-major order, if that is how they lie in memory.
    pub(crate) fn dense(self) -> Option<&'a [T]> {
        self.dense.then(|| &self.data[self.offset..self.offset + self.len])
    }

    /// Address of element `[0, 0, ..]`, good for the whole of the data; not to be read if there are no elements.
    pub(crate) fn origin(self) -> *const T {
        self.data.as_ptr().wrapping_add(self.offset)
    }
}

/// Number of elements and whether they are dense; `None` if one lies outside a buffer of `size` elements.
fn extent(size: usize, offset: usize, shape: &[usize], strides: &[isize]) -> Option<(usize, bool)> {
    if shape.contains(&0) {
        return (offset <= size).then_some((0, offset <= size));
    }
    let (mut len, mut dense, mut low, mut high) = (1_usize, true, 0_isize, 0_isize);
    for (&dim, &stride) in shape.iter().zip(strides).rev() {
        if dim > 1 {
            dense &= stride.cast_unsigned() == len;
            let reach = isize::try_from(dim - 1).ok()?.checked_mul(stride)?;
            let end = if reach < 0 { &mut low } else { &mut high };
            *end = end.checked_add(reach)?;
        }
        len = len.checked_mul(dim)?;
    }
    let inside = offset.checked_add_signed(low).is_some()
        && offset.checked_add_signed(high).is_some_and(|last| last < size);
    inside.then_some((len, dense))
}

/// Nested loops, outermost first, that visit `N` views of one shape together.
///
/// Dims of size 1 are gone and neighbours that form one run in every view are joined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loops<const N: usize> {
    /// Number of loops.
    pub(crate) rank: usize,
    /// Iterations of each loop.
    pub(crate) shape: [usize; MAX_DIMS],
    /// Stride of each view in each loop.
    pub(crate) strides: [[isize; MAX_DIMS]; N],
}

impl<const N: usize> Loops<N> {
    /// Loops over the dims `(dim, stride in each view)` given outermost first; `None` if more than [`MAX_DIMS`] remain.
    pub(crate) fn new(dims: impl IntoIterator<Item = (usize, [isize; N])>) -> Option<Self> {
        let mut loops = Self { rank: 0, shape: [1; MAX_DIMS], strides: [[0; MAX_DIMS]; N] };
        for (dim, strides) in dims {
            loops.push(dim, strides)?;
        }
        Some(loops)
    }

    fn push(&mut self, dim: usize, strides: [isize; N]) -> Option<()> {
        if dim == 1 {
            return Some(());
        }
        let joins = |last: usize| {
            let run = |n: usize| self.strides[n][last] == strides[n].wrapping_mul(dim.cast_signed());
            (0..N).all(run)
        };
        let last = match self.rank.checked_sub(1) {
            Some(last) if joins(last) => last,
            _ if self.rank == MAX_DIMS => return None,
            _ => {
                self.rank += 1;
                self.rank - 1
            }
        };
        self.shape[last] *= dim;
        for (all, stride) in self.strides.iter_mut().zip(strides) {
            all[last] = stride;
        }
        Some(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// All elements of a view in row-major order, by the definition.
    pub(crate) fn elements<T: Copy>(x: View<T>) -> Vec<T> {
        let mut out = Vec::new();
        for flat in 0..x.len() {
            let (mut rest, mut at) = (flat, x.offset.cast_signed());
            for (&dim, &stride) in x.shape.iter().zip(x.strides).rev() {
                at += (rest % dim).cast_signed() * stride;
                rest /= dim;
            }
            out.push(x.data[at.cast_unsigned()]);
        }
        out
    }

    /// Layouts of rank 0 to 9 over a buffer of 10 000 elements: dense, transposed, sliced, reversed, broadcast, empty,
    /// long and short rows. `(offset, shape, strides)`.
    pub(crate) fn layouts() -> Vec<(usize, Vec<usize>, Vec<isize>)> {
        vec![
            (0, vec![], vec![]),
            (3, vec![1], vec![7]),
            (0, vec![10], vec![1]),
            (5, vec![0], vec![1]),
            (0, vec![3, 0, 2], vec![0, 2, 1]),
            (9, vec![10], vec![-1]),
            (1, vec![10], vec![2]),
            (4, vec![3000], vec![0]),
            (0, vec![4, 5], vec![5, 1]),
            (0, vec![4, 5], vec![1, 4]),
            (0, vec![4, 5], vec![0, 1]),
            (0, vec![4, 5], vec![1, 0]),
            (2, vec![4, 5], vec![9, 1]),
            (0, vec![3, 3000], vec![3000, 1]),
            (0, vec![3, 3000], vec![0, 1]),
            (0, vec![3, 3000], vec![1, 0]),
            (0, vec![3, 3000], vec![1, 3]),
            (0, vec![70, 130], vec![1, 70]),
            (0, vec![130, 70], vec![1, 130]),
            (0, vec![2, 3, 4], vec![12, 4, 1]),
            (0, vec![4, 3, 2], vec![1, 4, 12]),
            (0, vec![40, 2, 3], vec![6, 1, 2]),
            (0, vec![2, 40, 3], vec![0, 1, 0]),
            (9999, vec![7, 11, 13], vec![-143, -13, -1]),
            (0, vec![5, 1, 6, 1, 7], vec![42, 9, 7, 100, 1]),
            (0, vec![7, 5, 6], vec![1, 42, 7]),
            (0, vec![17, 33, 15], vec![15, 255, 1]),
            (0, vec![17, 33, 15], vec![1, 17, 561]),
            (0, vec![2; 9], vec![256, 1, 128, 2, 64, 4, 32, 8, 16]),
            (511, vec![2; 9], vec![-256, 0, 128, -2, -64, 4, 0, 8, 16]),
        ]
    }

    #[test]
    fn a_view_knows_whether_it_is_dense() {
        let data: Vec<usize> = (0..10_000).collect();
        for (offset, shape, strides) in layouts() {
            let x = View::new(&data, offset, &shape, &strides);
            let expected = elements(x);
            assert_eq!(x.len(), expected.len());
            let run = expected.windows(2).all(|w| w[1] == w[0].wrapping_add(1));
            match x.dense() {
                Some(slice) => assert_eq!(slice, expected),
                None => assert!(!run, "{shape:?} {strides:?} is dense"),
            }
        }
    }

    #[test]
    fn indices_outside_the_data_are_refused() {
        let outside: &[(usize, &[usize], &[isize])] = &[
            (0, &[11], &[1]),
            (1, &[10], &[1]),
            (0, &[2], &[-1]),
            (0, &[2, 6], &[5, 1]),
            (11, &[0], &[1]),
            (10, &[], &[]),
            (0, &[usize::MAX], &[1]),
            (0, &[usize::MAX, 2], &[0, 0]),
            (0, &[3], &[isize::MAX]),
            (9, &[3, 3], &[isize::MIN, isize::MAX]),
            (usize::MAX, &[2], &[1]),
        ];
        for (offset, shape, strides) in outside {
            assert_eq!(extent(10, *offset, shape, strides), None, "{offset} {shape:?} {strides:?}");
        }
        assert_eq!(extent(10, 9, &[2, 5], &[-5, -1]), Some((10, false)));
        assert_eq!(
            extent(1, 0, &[isize::MAX.cast_unsigned()], &[0]),
            Some((isize::MAX.cast_unsigned(), false))
        );
    }

    #[test]
    fn neighbouring_dims_are_joined_when_every_view_allows() {
        let dims = [(2, [30, 0]), (1, [9, 9]), (3, [10, 0]), (10, [1, 1])];
        let loops = Loops::new(dims).unwrap();
        assert_eq!((loops.rank, &loops.shape[..2]), (2, &[6, 10][..]));
        assert_eq!((&loops.strides[0][..2], &loops.strides[1][..2]), (&[10, 1][..], &[0, 1][..]));
        assert_eq!(Loops::new([(2, [30]), (3, [10]), (10, [1])]).unwrap().rank, 1);
        assert!(Loops::new([(2, [0]), (2, [1])].repeat(5)).is_none());
    }
}
