//! Which rows come when: permutations, batches and the position in them. Knows no tensor.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How the rows of a dataset are put in order and cut into batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    /// Number of rows.
    pub len: usize,
    pub batch_size: usize,
    /// Whether a last batch of fewer than `batch_size` rows is left out.
    pub drop_remainder: bool,
    /// Number of epochs in one pass.
    pub repeat: usize,
}

/// What has been consumed, and the seed of the order in which: all that it takes to go on from there.
///
/// The position is counted in rows, so it holds for any batch size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetState {
    /// Seed of the shuffles; `None` for rows in the order of the tensors.
    pub(super) seed: Option<u64>,
    /// Number of rows of the dataset.
    pub(super) len: u64,
    /// Number of epochs before the present one.
    pub(super) epoch: u64,
    /// Number of rows of the present epoch that were consumed.
    pub(super) row: u64,
}

/// Which rows make up one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BatchRows {
    pub epoch: u64,
    /// Places in the order of the epoch.
    pub places: Range<usize>,
    /// The row at each place of the epoch; `None` where place and row are the same.
    pub permutation: Option<Arc<[usize]>>,
}

impl BatchRows {
    /// The row numbers when they are permuted.
    pub fn permuted(&self) -> Option<&[usize]> {
        self.permutation.as_deref().map(|permutation| &permutation[self.places.clone()])
    }
}

/// Walks through an [`Order`].
#[derive(Debug, Clone)]
pub(super) struct Walk {
    pub order: Order,
    state: DatasetState,
    /// The permutation of the epoch of `state`, once it was needed.
    permutation: Option<Arc<[usize]>>,
}

impl Walk {
    /// Starts at `state`.
    pub fn new(order: Order, state: DatasetState) -> Self {
        Self { order, state, permutation: None }
    }

    /// What was consumed, counting all that `next` returned.
    pub fn state(&self) -> DatasetState {
        self.state
    }

    /// # Errors
    /// `state`, perhaps from a file, cannot be one of this walk.
    pub fn check(&self, state: &DatasetState) -> Result<()> {
        let DatasetState { seed, len, row, .. } = *state;
        let mine = self.order.len as u64;
        let name =
            |seed: Option<u64>| if seed.is_some() { "shuffled rows" } else { "rows in their own order" };
        if len != mine {
            return Err(Error::argument(
                "restore",
                "state",
                format!("of {len} rows"),
                format!("{mine} rows"),
            ));
        }
        if seed.is_some() != self.state.seed.is_some() {
            let expected = format!("one of {}", name(self.state.seed));
            return Err(Error::argument("restore", "state", format!("one of {}", name(seed)), expected));
        }
        if row > mine {
            return Err(Error::argument("restore", "state", format!("at row {row}"), format!("0 to {mine}")));
        }
        Ok(())
    }

    /// Goes on from `state`, which [`check`](Walk::check) accepts.
    pub fn jump(&mut self, state: DatasetState) {
        if (state.seed, state.epoch) != (self.state.seed, self.state.epoch) {
            self.permutation = None;
        }
        self.state = state;
    }

    /// The next batch, or `None` at the end of a pass; the call after that starts the next pass.
    pub fn next(&mut self) -> Option<BatchRows> {
        let row = usize::try_from(self.state.row).expect("at most `len`");
        if let Some(places) = self.order.batch_at(row) {
            self.state.row = places.end as u64;
            return Some(BatchRows { epoch: self.state.epoch, places, permutation: self.permutation() });
        }
        self.state.epoch = self.state.epoch.wrapping_add(1);
        self.state.row = 0;
        self.permutation = None;
        let ends_pass = self.state.epoch.is_multiple_of(self.order.repeat as u64);
        if ends_pass || self.order.batch_at(0).is_none() { None } else { self.next() }
    }

    fn permutation(&mut self) -> Option<Arc<[usize]>> {
        let DatasetState { seed, epoch, .. } = self.state;
        let len = self.order.len;
        let seed = seed?;
        Some(self.permutation.get_or_insert_with(|| permutation(len, seed, epoch).into()).clone())
    }
}

impl Order {
    /// The batch that starts at place `start`, if any is left.
    fn batch_at(&self, start: usize) -> Option<Range<usize>> {
        let end = start.saturating_add(self.batch_size).min(self.len);
        let is_short = end - start < self.batch_size;
        if start >= self.len || (is_short && self.drop_remainder) { None } else { Some(start..end) }
    }

    /// Number of batches in an epoch.
    pub fn batches_per_epoch(&self) -> usize {
        match (self.batch_size, self.drop_remainder) {
            (0, _) => 0,
            (batch_size, true) => self.len / batch_size,
            (batch_size, false) => self.len.div_ceil(batch_size),
        }
    }

    /// # Errors
    /// A batch or a pass would be empty, which is found out only at the first batch: constructors cannot fail.
    pub fn check(&self) -> Result<()> {
        match self {
            Order { batch_size: 0, .. } => Err(Error::argument("batches", "batch_size", 0, "1 or more")),
            Order { repeat: 0, .. } => Err(Error::argument("repeat", "count", 0, "1 or more")),
            _ => Ok(()),
        }
    }
}

/// The order of `len` rows in an epoch: each permutation equally likely, the same for the same seed and epoch on
/// every machine (Fisher & Yates 1938, in the form of Durstenfeld 1964).
fn permutation(len: usize, seed: u64, epoch: u64) -> Vec<usize> {
    let mut random = SplitMix64(mix(seed) ^ epoch);
    let mut rows: Vec<usize> = (0..len).collect();
    for last in (1..len).rev() {
        rows.swap(last, random.below(last as u64 + 1) as usize);
    }
    rows
}

/// A seed for the draws made for the batch that starts at `row`: different for each seed, epoch and row.
pub(super) fn batch_seed(seed: u64, epoch: u64, row: u64) -> u64 {
    mix(mix(mix(seed) ^ epoch) ^ row)
}

/// The generator of Steele, Lea & Flood 2014. Kept here, so that an order does not change with a version of `rand`.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from `0..bound`, each equally likely (Lemire 2019, algorithm 5).
    fn below(&mut self, bound: u64) -> u64 {
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }
}

/// The output function of SplitMix64: one-to-one, and each bit of the input moves half of the output's.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(len: usize, batch_size: usize) -> Order {
        Order { len, batch_size, drop_remainder: false, repeat: 1 }
    }

    fn start(order: &Order, seed: Option<u64>) -> DatasetState {
        DatasetState { seed, len: order.len as u64, epoch: 0, row: 0 }
    }

    fn walk(order: &Order, seed: Option<u64>) -> Walk {
        Walk::new(order.clone(), start(order, seed))
    }

    /// The row numbers of each batch until the pass ends.
    fn pass(walk: &mut Walk) -> Vec<Vec<usize>> {
        std::iter::from_fn(|| walk.next())
            .map(|rows| rows.permuted().map_or_else(|| rows.places.clone().collect(), <[usize]>::to_vec))
            .collect()
    }

    #[test]
    fn splitmix64_gives_the_published_sequence() {
        // First outputs for seed 1234567 of the reference implementation by S. Vigna, prng.di.unimi.it/splitmix64.c.
        let mut random = SplitMix64(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([random.next(), random.next(), random.next()], expected);
    }

    #[test]
    fn draws_below_a_bound_are_even() {
        let mut random = SplitMix64(1);
        let mut counts = [0_i32; 6];
        (0..60_000).for_each(|_| counts[random.below(6) as usize] += 1);
        // Standard deviation sqrt(60000 * 1/6 * 5/6) = 91; five of them.
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 456), "{counts:?}");
    }

    #[test]
    fn each_permutation_of_four_rows_is_equally_likely_over_epochs() {
        let mut counts = std::collections::BTreeMap::new();
        (0..24_000).for_each(|epoch| *counts.entry(permutation(4, 42, epoch)).or_insert(0_i32) += 1);
        // Standard deviation sqrt(24000 * 1/24 * 23/24) = 31; five of them.
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|count| (count - 1000).abs() < 155), "{counts:?}");
    }

    #[test]
    fn a_permutation_holds_each_row_once_and_differs_by_seed_and_epoch() {
        let rows = permutation(1000, 7, 3);
        assert_eq!(rows, permutation(1000, 7, 3));
        assert_ne!(rows, permutation(1000, 7, 4));
        assert_ne!(rows, permutation(1000, 8, 3));
        let mut sorted = rows;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..1000));
    }

    #[test]
    fn the_last_batch_is_short_or_dropped() {
        let mut kept = order(7, 3);
        assert_eq!(pass(&mut walk(&kept, None)), [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
        assert_eq!(kept.batches_per_epoch(), 3);
        kept.drop_remainder = true;
        assert_eq!(pass(&mut walk(&kept, None)), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(kept.batches_per_epoch(), 2);
    }

    #[test]
    fn a_batch_larger_than_the_dataset_is_short_or_dropped() {
        let mut large = order(2, 5);
        assert_eq!(pass(&mut walk(&large, None)), [[0, 1]]);
        large.drop_remainder = true;
        assert!(pass(&mut walk(&large, None)).is_empty());
        large.batch_size = usize::MAX;
        assert_eq!(large.batches_per_epoch(), 0);
    }

    #[test]
    fn an_epoch_without_batches_ends_even_if_repeated_for_ever() {
        for (len, drop_remainder) in [(0, false), (2, true)] {
            let order = Order { len, batch_size: 5, drop_remainder, repeat: usize::MAX };
            assert!(pass(&mut walk(&order, Some(1))).is_empty());
        }
    }

    #[test]
    fn each_pass_is_shuffled_anew() {
        let order = order(50, 20);
        let mut walk = walk(&order, Some(9));
        let (first, second) = (pass(&mut walk).concat(), pass(&mut walk).concat());
        assert_eq!(first, permutation(50, 9, 0));
        assert_eq!(second, permutation(50, 9, 1));
    }

    #[test]
    fn repeated_epochs_make_one_pass_and_no_batch_spans_two() {
        let order = Order { repeat: 3, ..order(5, 2) };
        let mut walk = walk(&order, Some(4));
        for first in [0, 3] {
            let batches = pass(&mut walk);
            assert!(batches.iter().map(Vec::len).eq([2, 2, 1].repeat(3)));
            let expected =
                [permutation(5, 4, first), permutation(5, 4, first + 1), permutation(5, 4, first + 2)];
            assert_eq!(batches.concat(), expected.concat());
        }
    }

    #[test]
    fn a_walk_goes_on_from_each_state_as_if_never_stopped() {
        let order = Order { repeat: 2, ..order(7, 3) };
        let mut walk = walk(&order, Some(5));
        let mut states = vec![walk.state()];
        let mut steps = Vec::new();
        for _ in 0..15 {
            steps.push(walk.next());
            states.push(walk.state());
        }
        assert_eq!(
            steps.iter().filter(|step| step.is_none()).count(),
            2,
            "two passes of 6 batches, an end after each"
        );
        for (i, state) in states.into_iter().enumerate() {
            let mut resumed = Walk::new(order.clone(), state);
            assert!(steps[i..].iter().all(|step| *step == resumed.next()), "from step {i}");
        }
    }

    #[test]
    fn batch_seeds_differ() {
        let seeds: std::collections::BTreeSet<u64> =
            (0..1000).map(|i| batch_seed(i / 100, i / 10 % 10, i % 10)).collect();
        assert_eq!(seeds.len(), 1000);
    }
}
