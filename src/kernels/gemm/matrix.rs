//! Matrices in any layout.

/// A matrix somewhere in a slice, in any layout: element `(i, j)` is `data[offset + i * row_stride + j * col_stride]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    data: &'a [T],
    offset: usize,
    pub(in crate::kernels) rows: usize,
    pub(in crate::kernels) cols: usize,
    pub(in crate::kernels) row_stride: isize,
    pub(in crate::kernels) col_stride: isize,
}

impl<'a, T> Matrix<'a, T> {
    /// Strides count elements; they may be zero or negative.
    ///
    /// # Panics
    /// An element lies outside of `data`.
    pub(crate) fn new(
        data: &'a [T],
        offset: usize,
        (rows, cols): (usize, usize),
        (row_stride, col_stride): (isize, isize),
    ) -> Self {
        if rows > 0 && cols > 0 {
            let (down, right) =
                ((rows as i128 - 1) * row_stride as i128, (cols as i128 - 1) * col_stride as i128);
            let first = offset as i128 + down.min(0) + right.min(0);
            let last = offset as i128 + down.max(0) + right.max(0);
            assert!(
                first >= 0 && last < data.len() as i128,
                "matrix of {rows} x {cols}, strides {row_stride} and {col_stride}, leaves its slice"
            );
        }
        Self { data, offset, rows, cols, row_stride, col_stride }
    }

    /// A matrix that fills `data` row by row.
    ///
    /// # Panics
    /// `data` has not `rows * cols` elements.
    pub(crate) fn row_major(data: &'a [T], rows: usize, cols: usize) -> Self {
        assert_eq!(data.len(), rows * cols, "elements of a {rows} x {cols} matrix");
        Self { data, offset: 0, rows, cols, row_stride: cols as isize, col_stride: 1 }
    }

    /// The transpose, in place.
    #[must_use]
    pub(crate) fn transposed(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// `rows` rows from row `i` on, all of them in the matrix.
    pub(in crate::kernels) fn rows_from(self, i: usize, rows: usize) -> Self {
        Self { rows, offset: self.offset.wrapping_add_signed(i as isize * self.row_stride), ..self }
    }

    /// `cols` columns from column `j` on, all of them in the matrix.
    pub(in crate::kernels) fn cols_from(self, j: usize, cols: usize) -> Self {
        Self { cols, offset: self.offset.wrapping_add_signed(j as isize * self.col_stride), ..self }
    }

    /// `cols` elements of row `i` from column `j` on.
    ///
    /// # Panics
    /// One of them lies outside of `data`.
    pub(in crate::kernels) fn part_of_row(
        &self,
        i: usize,
        j: usize,
        cols: usize,
    ) -> impl ExactSizeIterator<Item = &'a T> {
        let (data, step) = (self.data, self.col_stride);
        let first = self.offset as isize + i as isize * self.row_stride + j as isize * step;
        (0..cols).map(move |c| &data[(first + c as isize * step) as usize])
    }

    /// The address of element `(i, j)`. It may only be read if the element exists.
    pub(in crate::kernels) fn at(&self, i: usize, j: usize) -> *const T {
        let offset = i as isize * self.row_stride + j as isize * self.col_stride;
        self.data.as_ptr().wrapping_add(self.offset).wrapping_offset(offset)
    }
}
