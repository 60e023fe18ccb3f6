//! Counter-based random words, and the loops that turn them into numbers.
//!
//! The words are those of Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): a block of
//! four words is a function of a key and a counter alone, so element `i` of a draw does not depend on who computes it.

use super::parallel::{SendPtr, for_each};
use super::simd::vectorized;

/// Elements that one thread fills at a time.
const CHUNK: usize = 16 << 10;
/// Blocks computed side by side, for the sake of wide registers.
const LANES: usize = 64;

/// Numbered blocks of four random words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocks {
    /// Chooses the function.
    pub(crate) key: u64,
    /// Upper half of the counter.
    pub(crate) stream: u64,
    /// Lower half of the counter for block 0.
    pub(crate) first: u64,
}

impl Blocks {
    /// How many blocks `elements` of `words` words each take.
    pub(crate) fn needed(elements: usize, words: usize) -> u64 {
        (elements as u64).div_ceil(4 / words as u64)
    }

    /// Block `number`.
    pub(crate) fn block(self, number: u64) -> [u32; 4] {
        self.lanes::<1>(number)[0]
    }

    /// Blocks `number` to `number + N - 1`.
    #[inline(always)]
    fn lanes<const N: usize>(self, number: u64) -> [[u32; 4]; N] {
        let counter = |lane: usize| self.first.wrapping_add(number).wrapping_add(lane as u64);
        let mut c: [[u32; N]; 4] = [
            std::array::from_fn(|lane| counter(lane) as u32),
            std::array::from_fn(|lane| (counter(lane) >> 32) as u32),
            [self.stream as u32; N],
            [(self.stream >> 32) as u32; N],
        ];
        let (mut k0, mut k1) = (self.key as u32, (self.key >> 32) as u32);
        for _ in 0..10 {
            let [c0, c1, c2, c3] = &mut c;
            for (((c0, c1), c2), c3) in c0.iter_mut().zip(c1).zip(c2).zip(c3) {
                let p = u64::from(*c0) * 0xD251_1F53;
                let q = u64::from(*c2) * 0xCD9E_8D57;
                (*c0, *c1) = ((q >> 32) as u32 ^ *c1 ^ k0, q as u32);
                (*c2, *c3) = ((p >> 32) as u32 ^ *c3 ^ k1, p as u32);
            }
            k0 = k0.wrapping_add(0x9E37_79B9);
            k1 = k1.wrapping_add(0xBB67_AE85);
        }
        std::array::from_fn(|lane| [c[0][lane], c[1][lane], c[2][lane], c[3][lane]])
    }
}

/// Calls `write(first, words)` for runs of elements of `words` random words each: the words of element `first` and of the
/// next ones, more than there are at the end. The one copy of the generator's loop, whatever is made of the words.
fn for_each_run(blocks: Blocks, elements: usize, words: usize, write: &(dyn Fn(usize, &[u32]) + Sync)) {
    for_each(elements.div_ceil(CHUNK), |chunk| {
        let end = elements.min((chunk + 1) * CHUNK);
        for first in (chunk * CHUNK..end).step_by(4 * LANES / words) {
            let run = vectorized(
                #[inline(always)]
                || blocks.lanes::<LANES>((first * words / 4) as u64),
            );
            write(first, run.as_flattened());
        }
    });
}

/// Elements `first..` of `y`, up to `count` of them.
///
/// # Safety
/// `y` holds `len` elements, `first` is below `len`, and nobody else uses that part during `'a`.
unsafe fn part<'a, T>(y: &SendPtr<T>, len: usize, first: usize, count: usize) -> &'a mut [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(y.get().add(first), count.min(len - first)) }
}

/// `y[i] = f(word i)`, of 32 bits.
pub(crate) fn fill_u32<T: Send>(blocks: Blocks, y: &mut [T], f: impl Fn(u32) -> T + Sync) {
    let (start, len) = (SendPtr(y.as_mut_ptr()), y.len());
    for_each_run(blocks, len, 1, &|first, words| {
        // SAFETY: runs are disjoint, start inside, and each comes once.
        let y = unsafe { part(&start, len, first, words.len()) };
        y.iter_mut().zip(words).for_each(|(y, &word)| *y = f(word));
    });
}

/// `y[i] = f(word i)`, of 64 bits: two neighbouring words, the lower half first.
pub(crate) fn fill_u64<T: Send>(blocks: Blocks, y: &mut [T], f: impl Fn(u64) -> T + Sync) {
    let (start, len) = (SendPtr(y.as_mut_ptr()), y.len());
    for_each_run(blocks, len, 2, &|first, words| {
        // SAFETY: as above.
        let y = unsafe { part(&start, len, first, words.len() / 2) };
        y.iter_mut().zip(words.chunks_exact(2)).for_each(|(y, pair)| *y = f(join(pair[0], pair[1])));
    });
}

/// 64 bits of two words, the lower half first.
pub(crate) fn join(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// A whole number below `range` from 64 random bits, `range` 0 standing for 2^64.
///
/// No value is more likely than another by more than `range / 2^64`.
#[inline(always)]
pub(crate) fn below(range: u64, bits: u64) -> u64 {
    if range == 0 { bits } else { ((u128::from(bits) * u128::from(range)) >> 64) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::parallel::with_threads;

    /// The known answers that come with Random123, the authors' library.
    #[test]
    fn blocks_are_those_of_philox() {
        let block = |key, stream, first| Blocks { key, stream, first }.block(0);
        assert_eq!(block(0, 0, 0), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        let all = u64::MAX;
        assert_eq!(block(all, all, all), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        let digits = block(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88);
        assert_eq!(digits, [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
    }

    #[test]
    fn an_element_depends_on_its_position_alone() {
        let blocks = Blocks { key: 3, stream: 9, first: u64::MAX - 5 };
        let n = 3 * CHUNK + 37;
        let (mut narrow, mut wide) = (vec![0u32; n], vec![0u64; n]);
        fill_u32(blocks, &mut narrow, |word| word);
        with_threads(1, || fill_u64(blocks, &mut wide, |word| word));
        for i in (0..n).step_by(61).chain(n - 5..n) {
            assert_eq!(narrow[i], blocks.block(i as u64 / 4)[i % 4]);
            let [a, b, c, d] = blocks.block(i as u64 / 2);
            assert_eq!(wide[i], if i % 2 == 0 { join(a, b) } else { join(c, d) });
        }
        assert_eq!((Blocks::needed(5, 1), Blocks::needed(5, 2), Blocks::needed(0, 1)), (2, 3, 0));
    }
}
