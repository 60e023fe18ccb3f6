//! The generator that a thread draws from.

use std::cell::RefCell;

use rand::TryRng;
use rand::rngs::SysRng;

use super::Generator;

thread_local! {
    /// The thread's own generator, and those that replace it, innermost last. Empty until first used.
    static CURRENT: RefCell<Vec<Generator>> = const { RefCell::new(Vec::new()) };
}

/// The generator that this thread draws from.
///
/// It is the innermost one of [`with`], else the thread's own.
pub fn current() -> Generator {
    CURRENT.with_borrow_mut(|list| last(list).clone())
}

/// Seeds this thread's current generator, for all who hold it.
///
/// Other threads keep theirs: hand them a [`split`](Generator::split) one, and use it there through [`with`].
pub fn set_seed(seed: u64) {
    CURRENT.with_borrow_mut(|list| last(list).restore([seed, 0, 0]));
}

/// Runs `f` with `generator` as this thread's current one; afterwards, also after a panic, the former is back.
pub fn with<R>(generator: &Generator, f: impl FnOnce() -> R) -> R {
    let depth = CURRENT.with_borrow_mut(|list| {
        last(list);
        list.push(generator.clone());
        list.len() - 1
    });
    let _leave = Leave(depth);
    f()
}

/// Takes away what was put on the list since.
struct Leave(usize);

impl Drop for Leave {
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|list| list.borrow_mut().truncate(self.0));
    }
}

fn last(list: &mut Vec<Generator>) -> &Generator {
    if list.is_empty() {
        list.push(Generator::seed(entropy()));
    }
    list.last().expect("a generator was put there if there was none")
}

/// A number that differs from run to run.
fn entropy() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // Where the system has no source of entropy, the standard library's hasher has keys of some kind all the same.
    SysRng.try_next_u64().unwrap_or_else(|_| RandomState::new().hash_one(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_is_replaced_for_a_scope_only() {
        set_seed(1);
        let (outer, inner) = (current(), Generator::seed(2));
        with(&inner, || {
            let _ = current().split();
            let _ = with(&Generator::seed(9), || current().split());
        });
        assert_eq!((outer.state(), inner.state()), ([1, 0, 0], [2, 0, 1]));
        let _ = current().split();
        assert_eq!(outer.state(), [1, 0, 1]);
    }

    #[test]
    fn the_former_generator_is_back_after_a_panic() {
        set_seed(1);
        let panicked =
            std::panic::catch_unwind(|| with(&Generator::seed(2), || panic!("a panic of this test")));
        assert!(panicked.is_err());
        assert_eq!(current().state(), [1, 0, 0]);
    }

    #[test]
    fn threads_that_nobody_seeds_differ() {
        let seed = || std::thread::spawn(|| current().state()[0]).join().unwrap();
        assert_ne!(seed(), seed());
    }
}
