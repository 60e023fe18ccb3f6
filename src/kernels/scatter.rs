//! Writing contiguous elements to strided positions.

/// Writes contiguous `x` of the given shape to `y[offset + i0 strides[0] + ..]`; positions must not repeat.
pub(crate) fn scatter<T: Copy>(x: &[T], y: &mut [T], offset: usize, shape: &[usize], strides: &[isize]) {
    if x.is_empty() {
        return;
    }
    // The innermost axes that lie as densely in `y` as in `x` are copied as one run.
    let (mut run, mut outer) = (1usize, shape.len());
    while outer > 0 && (strides[outer - 1] == run as isize || shape[outer - 1] == 1) {
        run *= shape[outer - 1];
        outer -= 1;
    }
    let (shape, strides) = (&shape[..outer], &strides[..outer]);
    let mut index = vec![0usize; outer];
    let mut at = offset as isize;
    for part in x.chunks_exact(run) {
        y[at as usize..at as usize + run].copy_from_slice(part);
        for axis in (0..outer).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis] as isize;
            index[axis] = 0;
        }
    }
}
