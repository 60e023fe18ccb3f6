//! Plain state of a module that is saved along with its variables.

use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicIsize, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use std::sync::{Mutex, PoisonError, RwLock};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec;
use crate::error::Result;
use crate::random::Generator;

/// State that a checkpoint holds although it is no variable: a position, a table of words, a counter.
///
/// A field marked `#[module(state)]` must be one. Modules are used through shared references, so what a restore
/// changes lies behind a lock: a `Mutex` or `RwLock` of any value that serde can write and read, or an atomic number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be state that a checkpoint restores",
    label = "it cannot be changed through a shared reference",
    note = "wrap it in a Mutex; what lies inside must implement Serialize, DeserializeOwned and Clone"
)]
pub trait State: Send + Sync {
    /// The state as bytes.
    ///
    /// # Errors
    /// The value refuses to be written.
    fn save(&self) -> Result<Vec<u8>>;

    /// Takes the state from bytes that [`save`](State::save) wrote.
    ///
    /// # Errors
    /// The bytes are something else; the state is unchanged.
    fn load(&self, bytes: &[u8]) -> Result<()>;

    /// A state of its own with the same value.
    #[must_use]
    fn copy_state(&self) -> Self
    where
        Self: Sized;
}

impl<T: Serialize + DeserializeOwned + Clone + Send> State for Mutex<T> {
    fn save(&self) -> Result<Vec<u8>> {
        codec::encode(&*self.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn load(&self, bytes: &[u8]) -> Result<()> {
        let value = codec::decode(bytes)?;
        *self.lock().unwrap_or_else(PoisonError::into_inner) = value;
        Ok(())
    }

    fn copy_state(&self) -> Self {
        Mutex::new(self.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl<T: Serialize + DeserializeOwned + Clone + Send + Sync> State for RwLock<T> {
    fn save(&self) -> Result<Vec<u8>> {
        codec::encode(&*self.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn load(&self, bytes: &[u8]) -> Result<()> {
        let value = codec::decode(bytes)?;
        *self.write().unwrap_or_else(PoisonError::into_inner) = value;
        Ok(())
    }

    fn copy_state(&self) -> Self {
        RwLock::new(self.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl State for Generator {
    fn save(&self) -> Result<Vec<u8>> {
        codec::encode(&self.state())
    }

    fn load(&self, bytes: &[u8]) -> Result<()> {
        self.restore(codec::decode(bytes)?);
        Ok(())
    }

    fn copy_state(&self) -> Self {
        Generator::from_state(self.state())
    }
}

macro_rules! atomic_state {
    ($($atomic:ty),*) => {$(
        impl State for $atomic {
            fn save(&self) -> Result<Vec<u8>> {
                codec::encode(&self.load(Ordering::SeqCst))
            }

            fn load(&self, bytes: &[u8]) -> Result<()> {
                self.store(codec::decode(bytes)?, Ordering::SeqCst);
                Ok(())
            }

            fn copy_state(&self) -> Self {
                Self::new(self.load(Ordering::SeqCst))
            }
        }
    )*};
}

atomic_state!(AtomicBool, AtomicI32, AtomicI64, AtomicIsize, AtomicU32, AtomicU64, AtomicUsize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_value_travels_through_bytes() {
        let words = Mutex::new(vec!["the".to_owned(), "cat".to_owned()]);
        let other = Mutex::new(Vec::<String>::new());
        other.load(&words.save().unwrap()).unwrap();
        assert_eq!(*other.lock().unwrap(), ["the", "cat"]);
    }

    #[test]
    fn a_loaded_generator_repeats_what_followed() {
        let g = Generator::seed(3);
        let saved = g.save().unwrap();
        let next = g.split().state();
        let other = Generator::seed(4);
        other.load(&saved).unwrap();
        assert_eq!(other.split().state(), next);
        assert_eq!(g.copy_state().split().state(), g.split().state());
    }

    #[test]
    fn foreign_bytes_leave_the_state_alone() {
        let position = AtomicU64::new(7);
        assert!(State::load(&position, &[255, 255, 255]).is_err());
        assert_eq!(position.load(Ordering::SeqCst), 7);
    }
}
