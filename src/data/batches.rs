//! Batches of a dataset, one after the other.

use std::any::Any;
use std::fmt;
use std::iter::FusedIterator;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::codec;
use crate::error::{Error, Result};
use crate::module::{Copies, Node, State, Visit};
use crate::random::{self, Generator};

use super::order::{BatchRows, DatasetState, Order, Walk, batch_seed};
use super::prefetch::{Produced, Worker};

/// The batches of a [`Dataset`](super::Dataset), each of type `T`.
///
/// A `for` loop over it, or over a reference to it, runs through one pass: one epoch, or as many as
/// [`repeat`](Batches::repeat) says. A loop over a reference goes on where the last one stopped: after a full pass
/// with the next epoch, after a `break` with the next batch.
pub struct Batches<T> {
    /// Where the consumer stands.
    walk: Mutex<Walk>,
    make: Make<T>,
    prefetch: usize,
    worker: Mutex<Option<Worker<T>>>,
}

type MakeRows<T> = dyn Fn(&BatchRows) -> Result<T> + Send + Sync;

/// Makes a batch from its rows.
pub(super) struct Make<T>(Arc<MakeRows<T>>);

impl<T> Clone for Make<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Make<T> {
    /// The batch, or what went wrong, a panic of a user's function included.
    pub fn call(&self, seed: Option<u64>, rows: &BatchRows) -> Result<T> {
        let start = rows.places.start;
        let generator = Generator::seed(batch_seed(seed.unwrap_or(0), rows.epoch, start as u64));
        let made = catch_unwind(AssertUnwindSafe(|| random::with(&generator, || (self.0)(rows))));
        made.unwrap_or_else(|panic| {
            let problem = format!(
                "the function panicked at the batch from row {start} of epoch {}: {}",
                rows.epoch,
                message_of(&*panic)
            );
            Err(Error::usage("map", problem, "return an error instead"))
        })
    }
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

impl<T: Send + 'static> Batches<T> {
    pub(super) fn new(
        order: Order,
        start: DatasetState,
        make: impl Fn(&BatchRows) -> Result<T> + Send + Sync + 'static,
    ) -> Self {
        Self::over(Walk::new(order, start), Make(Arc::new(make)), 0)
    }

    fn over(walk: Walk, make: Make<T>, prefetch: usize) -> Self {
        Self { walk: Mutex::new(walk), make, prefetch, worker: Mutex::new(None) }
    }

    /// Whether to leave out a last batch that is smaller than the others. Default: no.
    #[must_use]
    pub fn drop_remainder(self, drop_remainder: bool) -> Self {
        self.with_order(|order| order.drop_remainder = drop_remainder)
    }

    /// How many epochs make up one pass. Default: 1. No batch holds rows of two epochs.
    ///
    /// A `count` of 0 is an error at the first batch.
    #[must_use]
    pub fn repeat(self, count: usize) -> Self {
        self.with_order(|order| order.repeat = count)
    }

    /// Passes each batch through `f`. May be called several times; each `f` gets what the one before returned.
    ///
    /// Draws in `f` come from a generator that depends on the seed of the shuffle (0 without one), the epoch and the
    /// batch alone, so they are the same with [`prefetch`](Batches::prefetch) and after a resume. An error or a
    /// panic of `f` becomes the item in place of the batch.
    #[must_use]
    pub fn map<U: Send + 'static>(self, f: impl Fn(T) -> Result<U> + Send + Sync + 'static) -> Batches<U> {
        let make = self.make.0;
        let mapped = move |rows: &BatchRows| f(make(rows)?);
        let walk = self.walk.into_inner().unwrap_or_else(PoisonError::into_inner);
        Batches::over(walk, Make(Arc::new(mapped)), self.prefetch)
    }

    /// How many batches a background thread makes ahead. Default: 0, no thread.
    ///
    /// The thread does all the work, functions that are added later included. It ends with the pass, or as soon as
    /// the batches are dropped, after the batch it is at.
    #[must_use]
    pub fn prefetch(self, count: usize) -> Self {
        let walk = self.walk.into_inner().unwrap_or_else(PoisonError::into_inner);
        Self::over(walk, self.make, count)
    }

    fn with_order(self, change: impl FnOnce(&mut Order)) -> Self {
        let mut walk = self.walk.into_inner().unwrap_or_else(PoisonError::into_inner);
        change(&mut walk.order);
        Self::over(walk, self.make, self.prefetch)
    }

    /// Number of batches in one epoch.
    pub fn batches_per_epoch(&self) -> usize {
        lock(&self.walk).order.batches_per_epoch()
    }

    /// What was consumed so far: seed, epoch and row. Batches that were made ahead do not count.
    pub fn state(&self) -> DatasetState {
        lock(&self.walk).state()
    }

    /// Goes on behind the batch after which `state` was captured, in the same order and with the same draws.
    ///
    /// # Errors
    /// `state` is of a dataset with another number of rows, or of shuffled rows where these are not, or the reverse.
    /// Nothing changes then.
    pub fn restore(&self, state: DatasetState) -> Result<()> {
        // Taken first, as in `next_batch`.
        let mut worker = lock(&self.worker);
        let mut walk = lock(&self.walk);
        walk.check(&state)?;
        walk.jump(state);
        *worker = None;
        Ok(())
    }

    /// The next batch; `None` at the end of a pass.
    fn next_batch(&self) -> Option<Result<T>> {
        if self.prefetch > 0 {
            let mut worker = lock(&self.worker);
            if worker.is_none() {
                *worker = Worker::start(lock(&self.walk).clone(), self.make.clone(), self.prefetch);
            }
            if let Some(running) = &*worker {
                let Some(Produced { batch, state }) = running.next() else {
                    *worker = None;
                    return Some(Err(Error::usage(
                        "prefetch",
                        "the thread ended early",
                        "ask for the batch again",
                    )));
                };
                lock(&self.walk).jump(state);
                if batch.is_none() {
                    *worker = None;
                }
                return batch;
            }
            // No thread could be started: what follows gives the same batches, only later.
        }
        let mut walk = lock(&self.walk);
        let rows = walk.next()?;
        let seed = walk.state().seed;
        drop(walk);
        Some(self.make.call(seed, &rows))
    }

    /// One step of a pass, which is over once `done` is set.
    fn step(&self, done: &mut bool) -> Option<Result<T>> {
        if *done {
            return None;
        }
        if let Err(error) = lock(&self.walk).order.check() {
            *done = true;
            return Some(Err(error));
        }
        let item = self.next_batch();
        *done = item.is_none();
        item
    }
}

impl<T: Send + 'static> State for Batches<T> {
    fn save(&self) -> Result<Vec<u8>> {
        codec::encode(&self.state())
    }

    fn load(&self, bytes: &[u8]) -> Result<()> {
        self.restore(codec::decode(bytes)?)
    }

    fn copy_state(&self) -> Self {
        Self::over(lock(&self.walk).clone(), self.make.clone(), self.prefetch)
    }
}

/// What a checkpoint holds of it is the [position](Batches::state): the batches after it are the same in a resumed run.
impl<T: Send + 'static> Visit for Batches<T> {
    fn node(&self) -> Node<'_> {
        Node::State(self)
    }

    fn copy(&self, _: &mut Copies) -> Self {
        self.copy_state()
    }
}

impl<T> fmt::Debug for Batches<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let walk = lock(&self.walk);
        f.debug_struct("Batches")
            .field("order", &walk.order)
            .field("prefetch", &self.prefetch)
            .field("state", &walk.state())
            .finish_non_exhaustive()
    }
}

/// One pass over batches that stay where they are; see [`Batches`].
#[derive(Debug)]
pub struct Iter<'a, T> {
    batches: &'a Batches<T>,
    done: bool,
}

impl<T: Send + 'static> Iterator for Iter<'_, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.step(&mut self.done)
    }
}

impl<T: Send + 'static> FusedIterator for Iter<'_, T> {}

impl<'a, T: Send + 'static> IntoIterator for &'a Batches<T> {
    type Item = Result<T>;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        Iter { batches: self, done: false }
    }
}

/// One pass over batches; see [`Batches`].
#[derive(Debug)]
pub struct IntoIter<T> {
    batches: Batches<T>,
    done: bool,
}

impl<T: Send + 'static> Iterator for IntoIter<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.step(&mut self.done)
    }
}

impl<T: Send + 'static> FusedIterator for IntoIter<T> {}

impl<T: Send + 'static> IntoIterator for Batches<T> {
    type Item = Result<T>;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter { batches: self, done: false }
    }
}

/// No user code runs under these locks, so a poisoned one holds good values.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;
    use crate::data::Dataset;

    fn shuffled(count: i64) -> Dataset<Tensor> {
        Dataset::new(Tensor::from((0..count).collect::<Vec<i64>>())).unwrap().shuffle(11)
    }

    /// One pass as numbers.
    fn pass(batches: &Batches<Tensor>) -> Vec<Vec<i64>> {
        batches.into_iter().map(|batch| batch.unwrap().to_vec().unwrap()).collect()
    }

    #[test]
    fn dataset_types_go_between_threads() {
        fn check<T: Send + Sync>() {}
        check::<Dataset<(Tensor, Tensor)>>();
        check::<Batches<(Tensor, Tensor)>>();
        check::<DatasetState>();
    }

    #[test]
    fn loops_over_a_reference_run_through_epoch_after_epoch_and_a_new_start_repeats_the_first() {
        let dataset = shuffled(9);
        let batches = dataset.batches(4);
        let (first, second) = (pass(&batches), pass(&batches));
        assert_ne!(first, second);
        assert_eq!(pass(&dataset.batches(4)), first);
        assert_eq!(pass(&dataset.batches(4).repeat(2)), [first, second].concat());
    }

    #[test]
    fn a_loop_over_a_reference_goes_on_after_a_break() {
        let batches = shuffled(9).batches(4);
        let whole = pass(&shuffled(9).batches(4));
        let first: Vec<i64> = (&batches).into_iter().next().unwrap().unwrap().to_vec().unwrap();
        assert_eq!(first, whole[0]);
        assert_eq!(pass(&batches), whole[1..]);
    }

    #[test]
    fn prefetch_changes_no_batch() {
        for count in [1, 2, 100] {
            let (plain, ahead) = (shuffled(23).batches(4), shuffled(23).batches(4).prefetch(count));
            for _ in 0..3 {
                assert_eq!(pass(&plain), pass(&ahead));
                assert_eq!(plain.state(), ahead.state());
            }
        }
    }

    #[test]
    fn maps_follow_each_other_before_and_behind_prefetch() {
        let batches = shuffled(6).batches(2).map(|x| x * 2i64).prefetch(1).map(|x| x + 1i64);
        let mut values = pass(&batches).concat();
        values.sort_unstable();
        assert_eq!(values, [1, 3, 5, 7, 9, 11]);
    }

    #[test]
    fn draws_are_the_same_with_prefetch_and_after_a_resume_and_leave_the_callers_generator_alone() {
        let noisy = |count| {
            let batches = shuffled(10).batches(3).map(|x| {
                let noise = random::current().integers([x.size()], 0, 1 << 40, crate::DType::I64)?;
                (noise * 16i64)? + x
            });
            batches.prefetch(count)
        };
        let generator = Generator::seed(1);
        random::with(&generator, || {
            let plain = noisy(0);
            let epochs = [pass(&plain), pass(&plain)];
            assert_ne!(epochs[0][0][0] / 16, epochs[0][1][0] / 16, "each batch draws anew");
            let ahead = noisy(2);
            assert_eq!([pass(&ahead), pass(&ahead)], epochs);
            let (first, resumed) = (noisy(2), noisy(2));
            (&first).into_iter().take(2).for_each(|batch| drop(batch.unwrap()));
            resumed.restore(first.state()).unwrap();
            assert_eq!(pass(&resumed), epochs[0][2..]);
        });
        assert_eq!(generator.state(), Generator::seed(1).state());
    }

    #[test]
    fn a_run_resumed_from_any_state_repeats_the_uninterrupted_one() {
        for prefetch in [0, 1, 3] {
            let start = || shuffled(7).batches(3).repeat(2).prefetch(prefetch);
            let batches = start();
            let (mut items, mut states) = (Vec::new(), vec![batches.state()]);
            for _ in 0..2 {
                let mut iter = (&batches).into_iter();
                loop {
                    let item = iter.next().map(|batch| batch.unwrap().to_vec::<i64>().unwrap());
                    states.push(batches.state());
                    items.push(item.clone());
                    if item.is_none() {
                        break;
                    }
                }
            }
            assert_eq!(items.len(), 2 * (6 + 1), "twice two epochs of three batches, and an end");
            for (i, state) in states.into_iter().enumerate() {
                let resumed = start();
                resumed.restore(state).unwrap();
                for item in &items[i..] {
                    // A new loop each time: the position is in the batches, not in the loop.
                    let next =
                        (&resumed).into_iter().next().map(|batch| batch.unwrap().to_vec::<i64>().unwrap());
                    assert_eq!(next, *item, "from state {i} with prefetch({prefetch})");
                }
            }
        }
    }

    #[test]
    fn a_state_counts_what_was_consumed_not_what_was_made_ahead() {
        let batches = shuffled(20).batches(2).prefetch(5);
        for consumed in 0..5 {
            assert_eq!(batches.state().row, 2 * consumed);
            (&batches).into_iter().next().unwrap().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    #[test]
    fn restoring_while_batches_are_made_ahead_goes_back() {
        let batches = shuffled(20).batches(2).prefetch(5);
        let mut iter = (&batches).into_iter();
        iter.next().unwrap().unwrap();
        let state = batches.state();
        let second: Vec<i64> = iter.next().unwrap().unwrap().to_vec().unwrap();
        iter.next().unwrap().unwrap();
        batches.restore(state).unwrap();
        assert_eq!(iter.next().unwrap().unwrap().to_vec::<i64>().unwrap(), second);
    }

    #[test]
    fn a_state_brings_its_seed_along_and_survives_a_file() {
        let batches = shuffled(9).batches(2);
        pass(&batches);
        (&batches).into_iter().next().unwrap().unwrap();
        let config = bincode::config::standard();
        let bytes = bincode::serde::encode_to_vec(batches.state(), config).unwrap();
        let (state, _): (DatasetState, usize) = bincode::serde::decode_from_slice(&bytes, config).unwrap();
        assert_eq!(state, batches.state());
        let other = shuffled(9).shuffle(99).batches(2);
        other.restore(state).unwrap();
        assert_eq!(pass(&other), pass(&batches));
        assert_eq!(pass(&other), pass(&batches), "the seed holds for the epochs behind, too");
    }

    #[test]
    fn a_state_of_another_dataset_is_refused_and_changes_nothing() {
        let batches = shuffled(9).batches(2);
        let before = batches.state();
        let refusal = |state| batches.restore(state).unwrap_err().to_string();
        assert_eq!(refusal(shuffled(8).batches(2).state()), "restore: state is of 8 rows, expected 9 rows");
        let unshuffled = DatasetState { seed: None, ..before };
        let message = "restore: state is one of rows in their own order, expected one of shuffled rows";
        assert_eq!(refusal(unshuffled), message);
        assert_eq!(
            refusal(DatasetState { row: 10, ..before }),
            "restore: state is at row 10, expected 0 to 9"
        );
        assert_eq!(batches.state(), before);
    }

    #[test]
    fn the_last_epoch_number_there_is_does_no_harm() {
        let batches = shuffled(3).batches(2).repeat(2);
        batches.restore(DatasetState { epoch: u64::MAX, ..batches.state() }).unwrap();
        assert_eq!(pass(&batches).len(), 2);
        assert_eq!(pass(&batches).len(), 4);
    }

    #[test]
    fn threads_that_share_batches_get_each_row_once() {
        for prefetch in [0, 2] {
            let batches = shuffled(400).batches(1).prefetch(prefetch);
            let rows: Mutex<Vec<i64>> = Mutex::default();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..100 {
                            let batch = (&batches).into_iter().next().unwrap().unwrap();
                            rows.lock().unwrap().push(batch.item().unwrap());
                        }
                    });
                }
            });
            let mut rows = rows.into_inner().unwrap();
            rows.sort_unstable();
            assert_eq!(rows, (0..400).collect::<Vec<_>>());
        }
    }
}
