//! Random numbers: seeded generators that can be saved, split and replaced for a scope.
//!
//! Everything random in the crate draws from the thread's [`current`] generator. It is seeded from the system's entropy
//! when first used, unless [`set_seed`] came before; [`with`] puts another one in its place for the length of a call.
//!
//! ```
//! use couplet::{DType, random};
//! let draw = || random::current().normal([2, 3], 0.0, 1.0, DType::F32);
//! random::set_seed(7);
//! let first = draw()?;
//! let again = random::with(&random::Generator::seed(7), draw)?;
//! assert_eq!(first.to_vec::<f32>()?, again.to_vec::<f32>()?);
//! # Ok::<(), couplet::Error>(())
//! ```

mod current;
mod draw;
mod dropout;

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::TryRng;

use crate::dry;
use crate::kernels::random::{Blocks, join};

pub use current::{current, set_seed, with};

/// A stream of random numbers. A clone is another handle to the same stream.
///
/// The words are those of Philox4x32-10 (Salmon et al. 2011): each is a function of the seed and its position, so a
/// draw is the same on any number of threads, in any process and on any machine. Every draw takes the next blocks of
/// four words. Threads that share a generator share no values, but their order is theirs to settle; give each thread a
/// generator of its own by [`split`](Generator::split) where results must repeat.
///
/// It is a [`rand::Rng`] too, for the distributions of other crates.
#[derive(Clone)]
pub struct Generator {
    state: Arc<Mutex<[u64; 3]>>,
}

impl Generator {
    /// A generator of its own; equal seeds give equal numbers, different seeds unrelated ones.
    pub fn seed(seed: u64) -> Self {
        Self::from_state([seed, 0, 0])
    }

    /// A generator that continues from a saved [`state`](Generator::state).
    pub fn from_state(state: [u64; 3]) -> Self {
        Generator { state: Arc::new(Mutex::new(state)) }
    }

    /// Where the generator stands: key, stream, and the number of the next block. Any three numbers are a state.
    pub fn state(&self) -> [u64; 3] {
        *self.lock()
    }

    /// Puts the generator, and with it all its handles, to a saved state.
    pub fn restore(&self, state: [u64; 3]) {
        *self.lock() = state;
    }

    /// A new generator, unrelated to this one and to those split off before.
    ///
    /// Takes one block: key and stream of the new generator.
    #[must_use]
    pub fn split(&self) -> Self {
        let [a, b, c, d] = self.take(1).block(0);
        Self::from_state([join(a, b), join(c, d), 0])
    }

    /// Identity of the stream, as long as a handle to it is kept.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.state).addr()
    }

    /// Takes the next `count` blocks.
    fn take(&self, count: u64) -> Blocks {
        let mut state = self.lock();
        let [key, stream, first] = *state;
        if !dry::is_on() {
            state[2] = first.wrapping_add(count);
        }
        Blocks { key, stream, first }
    }

    fn lock(&self) -> MutexGuard<'_, [u64; 3]> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [key, stream, position] = self.state();
        write!(f, "Generator(key={key:#x}, stream={stream:#x}, position={position})")
    }
}

/// Each call takes one block, whatever it uses of it.
impl TryRng for Generator {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.take(1).block(0)[0])
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let [low, high, ..] = self.take(1).block(0);
        Ok(join(low, high))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        let blocks = self.take((bytes.len() as u64).div_ceil(16));
        for (i, bytes) in bytes.chunks_mut(16).enumerate() {
            let words = blocks.block(i as u64).map(u32::to_le_bytes);
            bytes.copy_from_slice(&words.as_flattened()[..bytes.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    fn words(mut generator: Generator) -> Vec<u64> {
        (0..4).map(|_| generator.next_u64()).collect()
    }

    #[test]
    fn a_restored_generator_repeats_what_followed() {
        let g = Generator::seed(3);
        let mut unused = [0; 21];
        g.clone().fill_bytes(&mut unused);
        let state = g.state();
        assert_eq!(state, [3, 0, 2]);
        let first = words(g.clone());
        assert_ne!(words(g.clone()), first);
        g.restore(state);
        assert_eq!(words(g), first);
        assert_eq!(words(Generator::from_state(state)), first);
    }

    #[test]
    fn split_generators_differ_from_each_other_and_from_their_source() {
        let g = Generator::seed(3);
        let lists = [words(g.split()), words(g.split()), words(g.clone()), words(Generator::seed(4))];
        for (i, a) in lists.iter().enumerate() {
            assert!(lists[..i].iter().all(|b| a.iter().all(|word| !b.contains(word))));
        }
        let again = Generator::seed(3);
        assert_eq!(words(again.split()), lists[0]);
    }

    #[test]
    fn bytes_are_the_words_in_little_endian_order() {
        let mut bytes = [0; 6];
        Generator::seed(0).fill_bytes(&mut bytes);
        // The first words of seed 0 are 6627e8d5 e169c58d.
        assert_eq!(bytes, [0xd5, 0xe8, 0x27, 0x66, 0x8d, 0xc5]);
    }
}
