//! Loops over lanes: runs of elements that lie one after the other and are worked on together.

use super::parallel;

/// Elements that one chunk of parallel work reads.
const CHUNK: usize = 1 << 14;

/// Lanes of `lane` elements in one chunk.
fn lanes_per_chunk(lane: usize) -> usize {
    (CHUNK / lane.max(1)).max(1)
}

/// `y[i] = f(lane i of x)`, where `x` holds `y.len()` lanes of `lane` elements.
pub(crate) fn fold<T: Sync, U: Send>(x: &[T], lane: usize, y: &mut [U], f: impl Fn(&[T]) -> U + Sync) {
    assert_eq!(x.len(), lane * y.len(), "each output has one lane");
    let per_chunk = lanes_per_chunk(lane);
    parallel::for_each_chunk_mut(y, per_chunk, |chunk, y| {
        let first = chunk * per_chunk;
        for (i, y) in y.iter_mut().enumerate() {
            *y = f(&x[(first + i) * lane..(first + i + 1) * lane]);
        }
    });
}

/// `f(lane i of x, lane i of y)`: lanes of `from` elements become lanes of `to` elements.
pub(crate) fn map<T: Sync, U: Send>(
    x: &[T],
    from: usize,
    y: &mut [U],
    to: usize,
    f: impl Fn(&[T], &mut [U]) + Sync,
) {
    if y.is_empty() {
        return;
    }
    let count = y.len() / to;
    assert!(x.len() == from * count && y.len() == to * count, "as many lanes in as out");
    let per_chunk = lanes_per_chunk(from.max(to));
    parallel::for_each_chunk_mut(y, per_chunk * to, |chunk, y| {
        let first = chunk * per_chunk;
        for (i, y) in y.chunks_exact_mut(to).enumerate() {
            f(&x[(first + i) * from..(first + i + 1) * from], y);
        }
    });
}

/// Positions of what holds.
pub(crate) fn positions(x: &[bool]) -> Vec<usize> {
    x.iter().enumerate().filter(|&(_, &x)| x).map(|(i, _)| i).collect()
}

#[cfg(test)]
mod tests {
    use super::super::parallel::with_threads;
    use super::*;

    #[test]
    fn lanes_are_folded_in_order_on_any_number_of_threads() {
        let x: Vec<u64> = (0..60_000).collect();
        for lane in [1, 3, 1000, 30_000] {
            let expected: Vec<u64> = x.chunks(lane).map(|l| l.iter().sum()).collect();
            for threads in [1, 2] {
                let mut y = vec![0; x.len() / lane];
                with_threads(threads, || fold(&x, lane, &mut y, |l| l.iter().sum()));
                assert_eq!(y, expected);
            }
        }
    }

    #[test]
    fn an_empty_lane_folds_to_what_the_function_says() {
        let mut y = [7; 3];
        fold::<u8, _>(&[], 0, &mut y, |l| l.len());
        assert_eq!(y, [0; 3]);
    }

    #[test]
    fn lanes_may_change_their_length() {
        let x: Vec<usize> = (0..40_000).collect();
        for (from, to) in [(4, 2), (2, 4), (20_000, 1)] {
            let mut y = vec![0; x.len() / from * to];
            map(&x, from, &mut y, to, |x, y| y.iter_mut().enumerate().for_each(|(j, y)| *y = x[j % from]));
            let expected: Vec<usize> =
                x.chunks(from).flat_map(|l| (0..to).map(|j| l[j % from]).collect::<Vec<_>>()).collect();
            assert_eq!(y, expected);
        }
        map::<usize, usize>(&[], 3, &mut [], 0, |_, _| {});
    }
}
