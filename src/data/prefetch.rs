//! Batches made ahead by a thread.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::error::Result;

use super::batches::Make;
use super::order::{DatasetState, Walk};

/// A batch, or the end of a pass, and the state behind it.
pub(super) struct Produced<T> {
    pub batch: Option<Result<T>>,
    pub state: DatasetState,
}

/// A thread that makes the batches of one pass. Dropping this ends it after the batch it is at, without waiting.
pub(super) struct Worker<T>(Receiver<Produced<T>>);

impl<T: Send + 'static> Worker<T> {
    /// Starts the thread, which keeps up to `ahead` batches ready, 1 or more; `None` if the system refuses a thread.
    pub fn start(mut walk: Walk, make: Make<T>, ahead: usize) -> Option<Self> {
        // One more waits in the hands of the thread. The channel allocates its places, so they are no more than needed.
        let places = ahead.saturating_sub(1).min(walk.order.batches_per_epoch());
        let (sender, receiver) = sync_channel(places);
        let run = move || {
            loop {
                let rows = walk.next();
                let state = walk.state();
                let batch = rows.map(|rows| make.call(state.seed, &rows));
                let is_last = batch.is_none();
                // Fails once the worker is dropped.
                if sender.send(Produced { batch, state }).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("couplet-data".into()).spawn(run).ok()?;
        Some(Self(receiver))
    }

    /// The next batch in order, waiting for it; `None` if the thread is gone.
    pub fn next(&self) -> Option<Produced<T>> {
        self.0.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, mpsc};
    use std::time::{Duration, Instant};

    use crate::Tensor;
    use crate::data::{Batches, Dataset};
    use crate::error::Error;

    fn rows(count: i64) -> Batches<Tensor> {
        Dataset::new(Tensor::from((0..count).collect::<Vec<i64>>())).unwrap().batches(1)
    }

    fn wait_until(what: &str, done: impl Fn() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(20), "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn no_more_than_count_batches_are_made_ahead() {
        let made = Arc::new(AtomicUsize::new(0));
        let counter = made.clone();
        let batches = rows(50).map(move |x| {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok(x)
        });
        let batches = batches.prefetch(3);
        let mut pass = (&batches).into_iter();
        for consumed in 1..=5 {
            pass.next().unwrap().unwrap();
            wait_until("three are made ahead", || made.load(Ordering::SeqCst) == consumed + 3);
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(made.load(Ordering::SeqCst), consumed + 3);
        }
    }

    #[test]
    fn dropping_the_batches_early_ends_the_thread() {
        for consumed in [0, 1, 5] {
            let alive = Arc::new(());
            let held = alive.clone();
            let batches = rows(1000).map(move |x| Ok((x, held.clone()))).prefetch(4);
            for batch in (&batches).into_iter().take(consumed) {
                batch.unwrap();
            }
            drop(batches);
            wait_until("the thread lets go of the function", || Arc::strong_count(&alive) == 1);
        }
    }

    #[test]
    fn dropping_the_batches_does_not_wait_for_a_function_that_hangs() {
        let (release, gate) = mpsc::channel::<()>();
        let gate = std::sync::Mutex::new(gate);
        let batches = rows(10).map(move |x| {
            if x.item::<i64>()? > 0 {
                let _ = gate.lock().unwrap().recv();
            }
            Ok(x)
        });
        let batches = batches.prefetch(2);
        (&batches).into_iter().next().unwrap().unwrap();
        drop(batches);
        drop(release);
    }

    #[test]
    fn errors_and_panics_of_the_function_reach_the_consumer_in_their_place() {
        let bad = |x: Tensor| match x.item::<i64>()? {
            1 => Err(Error::usage("augment", "this row is bad", "leave it out")),
            2 => panic!("row {}", 2),
            _ => Ok(x),
        };
        for prefetch in [0, 2] {
            let items: Vec<_> = rows(4).map(bad).prefetch(prefetch).into_iter().collect();
            assert_eq!(items.len(), 4);
            assert!(items[0].is_ok() && items[3].is_ok());
            assert_eq!(items[1].as_ref().unwrap_err().to_string(), "augment: this row is bad; leave it out");
            let expected = "map: the function panicked at the batch from row 2 of epoch 0: row 2; return an error instead";
            assert_eq!(items[2].as_ref().unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn an_absurd_count_allocates_nothing() {
        assert_eq!(rows(3).prefetch(usize::MAX).into_iter().count(), 3);
    }
}
