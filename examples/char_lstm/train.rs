//! The training loop.

use std::error::Error;
use std::io;

use couplet::optim::schedule::CosineDecay;
use couplet::prelude::*;

use super::cli::Args;
use super::model::CharLSTM;
use super::progress::Progress;
use super::text::{self, Alphabet, Windows};

/// Longest gradient that is followed; longer ones are cut to it (Pascanu et al. 2013).
const CLIP_NORM: f64 = 1.0;
/// Number of lines that tell the losses.
const REPORTS: usize = 8;

/// Trains the model as the flags say, and prints losses and a sample.
///
/// # Errors
/// The text cannot be read or is too short, or the training diverges.
pub fn run(args: &Args) -> std::result::Result<(), Box<dyn Error>> {
    let file = args.text.display();
    let text = std::fs::read_to_string(&args.text).map_err(|error| format!("{file}: {error}"))?;
    let alphabet = Alphabet::of(&text);
    let numbers = alphabet.encode(&text)?;
    let (train, held_out) = text::split(&numbers);
    let windows = Windows::new(train, args.batch_size, args.window)?;
    let held_out = Windows::new(held_out, 1, held_out.len().saturating_sub(1))?.get(0)?;
    let prompt = alphabet.encode(&args.prompt)?;
    if prompt.is_empty() {
        return Err("the prompt is empty: give at least one character".into());
    }

    random::set_seed(args.seed);
    let model = CharLSTM::new(alphabet.size(), args.hidden_size, args.dropout);
    // Small steps at the end let the weights settle.
    let opt = optim::Adam::new(CosineDecay::new(args.learning_rate, args.steps as u64));
    let test = || -> Result<f64> {
        let (loss, _) = model.loss((&held_out.0, &held_out.1), &model.initial_state(1)?, false)?;
        Ok(loss.item::<f32>()?.into())
    };

    let mut progress = Progress::new(args.steps, args.quiet, io::stdout());
    let mut state = model.initial_state(args.batch_size)?;
    let (mut sum, mut count, mut last) = (0.0, 0, f64::NAN);
    for step in 1..=args.steps {
        let window = (step - 1) % windows.count();
        if window == 0 {
            state = model.initial_state(args.batch_size)?;
        }
        let (numbers, next) = windows.get(window)?;

        let tape = GradientTape::new();
        // The state comes from the window before, but the gradient ends here: the tape did not see it.
        let (loss, after) = model.loss((&numbers, &next), &state, true)?;
        let params = model.trainable_variables()?;
        let (grads, _) = optim::clip_by_global_norm(&tape.gradient(&loss, &params)?, CLIP_NORM)?;
        opt.apply(&grads, &params)?;
        state = after;

        let loss = loss.item::<f32>()?;
        progress.step(loss);
        (sum, count) = (sum + f64::from(loss), count + 1);
        if step * REPORTS / args.steps > (step - 1) * REPORTS / args.steps {
            last = test()?;
            progress.losses(step, sum / f64::from(count), last)?;
            (sum, count) = (0.0, 0);
        }
    }
    let written = model.write(&prompt, args.length, args.temperature)?;
    let written: String = written.into_iter().map(|number| alphabet.decode(number)).collect();
    Ok(progress.finish(last, &args.prompt, &written)?)
}
