//! The model: two LSTMs on top of each other and a linear layer.

use couplet::prelude::*;

/// Predicts the next character from all before.
#[derive(Module)]
pub struct CharLSTM {
    scope: Scope,
    alphabet_size: usize,
    dropout: f64,
    lower: LSTM,
    upper: LSTM,
    head: Linear,
}

impl CharLSTM {
    pub fn new(alphabet_size: usize, hidden_size: usize, dropout: f64) -> Self {
        let scope = Scope::of::<Self>();
        let _in = scope.enter();
        let (lower, upper) = (LSTM::new(hidden_size).name("lower"), LSTM::new(hidden_size).name("upper"));
        let head = Linear::new(alphabet_size).name("head");
        drop(_in);
        CharLSTM { scope, alphabet_size, dropout, lower, upper, head }
    }
}

#[scoped]
impl CharLSTM {
    /// The state before the first character.
    pub fn initial_state(&self, batch_size: usize) -> Result<Nest> {
        Ok(Nest::tuple([self.lower.initial_state(batch_size)?, self.upper.initial_state(batch_size)?]))
    }

    /// Logits of the character after each of `numbers`, `[steps, batch, alphabet]`, and the state after the last.
    pub fn predict(&self, numbers: &Tensor, state: &Nest, is_training: bool) -> Result<(Tensor, Nest)> {
        let x = numbers.one_hot(self.alphabet_size, DType::F32)?;
        let (x, lower) = dynamic_unroll(&self.lower, &x, state.get(0)?, None)?;
        let x = x.dropout(self.dropout, None, is_training)?;
        let (x, upper) = dynamic_unroll(&self.upper, &x, state.get(1)?, None)?;
        let x = x.dropout(self.dropout, None, is_training)?;
        Ok((self.head.forward(&x)?, Nest::tuple([lower, upper])))
    }

    /// The mean loss of a prediction in nats, and the state after it.
    pub fn loss(
        &self,
        (numbers, next): (&Tensor, &Tensor),
        state: &Nest,
        is_training: bool,
    ) -> Result<(Tensor, Nest)> {
        let (logits, state) = self.predict(numbers, state, is_training)?;
        Ok((losses::sparse_softmax_cross_entropy(&logits, next)?.mean()?, state))
    }

    /// `length` characters that follow the given ones. Each is drawn with the probability that the model gives it, raised to
    /// the power `1 / temperature`.
    pub fn write(&self, prompt: &[i64], length: usize, temperature: f64) -> Result<Vec<i64>> {
        let (mut written, mut state) = (Vec::new(), self.initial_state(1)?);
        let mut last = Tensor::from(prompt).reshape([prompt.len(), 1])?;
        while written.len() < length {
            let (logits, next) = self.predict(&last, &state, false)?;
            // The largest of logits with Gumbel noise is a draw from their softmax (Gumbel 1954).
            let uniform = random::current().uniform([self.alphabet_size], 1e-9, 1.0, DType::F32)?;
            let noise = (-(-uniform.log()?)?.log()?)?;
            let drawn = ((logits.index(-1)?.index(0)? / temperature)? + noise)?.argmax(0)?;
            written.push(drawn.item::<i64>()?);
            (last, state) = (drawn.reshape([1, 1])?, next);
        }
        Ok(written)
    }
}
