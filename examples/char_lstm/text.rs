//! A text as numbers.

use couplet::prelude::*;

/// Share of the text at its end that is not trained on.
const HELD_OUT: f64 = 0.1;

/// The characters of a text, in the order of their codes.
pub struct Alphabet(Vec<char>);

impl Alphabet {
    pub fn of(text: &str) -> Self {
        let mut list: Vec<char> = text.chars().collect();
        list.sort_unstable();
        list.dedup();
        Alphabet(list)
    }

    /// Number of characters.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// The numbers of the characters of a text.
    ///
    /// # Errors
    /// One of them is not in the alphabet.
    pub fn encode(&self, text: &str) -> std::result::Result<Vec<i64>, String> {
        let number = |c: char| {
            let found = self.0.binary_search(&c).map(|number| number as i64);
            found.map_err(|_| format!("the text to learn has no {c:?}"))
        };
        text.chars().map(number).collect()
    }

    /// The character with a number of [`encode`](Self::encode).
    pub fn decode(&self, number: i64) -> char {
        self.0[number as usize]
    }
}

/// The parts of a text to train on and to test on.
pub fn split(numbers: &[i64]) -> (&[i64], &[i64]) {
    numbers.split_at(numbers.len() - (numbers.len() as f64 * HELD_OUT) as usize)
}

/// A text cut into as many pieces as a batch has rows, which are read side by side, window by window: what a row sees in one
/// window goes on where it left off in the one before.
pub struct Windows {
    /// `[length of a piece, batch]`
    pieces: Tensor,
    window: usize,
}

impl Windows {
    /// # Errors
    /// The text is too short for one window.
    pub fn new(numbers: &[i64], batch: usize, window: usize) -> std::result::Result<Self, String> {
        let length = numbers.len() / batch;
        if length <= window {
            let (got, least) = (numbers.len(), (window + 1) * batch);
            return Err(format!("the text has {got} characters to train on, at least {least} are needed"));
        }
        let pieces = Tensor::from(&numbers[..length * batch]).reshape([batch, length]);
        let pieces = pieces.and_then(|pieces| pieces.t()).map_err(|error| error.to_string())?;
        Ok(Windows { pieces, window })
    }

    /// Number of windows.
    pub fn count(&self) -> usize {
        (self.pieces.shape()[0] - 1) / self.window
    }

    /// Characters of a window and, for each, the one after it, both `[window, batch]`.
    ///
    /// # Errors
    /// There is no such window.
    pub fn get(&self, index: usize) -> Result<(Tensor, Tensor)> {
        let at = |start| self.pieces.narrow(0, start, self.window);
        Ok((at(index * self.window)?, at(index * self.window + 1)?))
    }
}
