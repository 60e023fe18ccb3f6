//! W3: training an LSTM.

use couplet::optim::Adam;
use couplet::prelude::*;

use crate::training::{Line, train as time_steps};

/// W3: input 128, hidden 256, 64 steps, batch 32; mean squared error of all outputs, Adam.
pub fn train() -> Result<()> {
    random::set_seed(1);
    let normal = |shape: [usize; 3]| random::current().normal(shape, 0.0, 1.0, DType::F32);
    let (xs, targets) = (normal([64, 32, 128])?, normal([64, 32, 256])?);
    let net = UnrolledLSTM::new(256);
    let state = net.initial_state(32)?;
    let loss = || losses::mean_squared_error(&net.unroll(&xs, &state)?.0, &targets)?.mean();
    let line = Line { workload: "W3", metric: "train", per_step: 32.0, unit: "sequences/s" };
    time_steps(&line, &net, &Adam::new(1e-3), loss)
}
