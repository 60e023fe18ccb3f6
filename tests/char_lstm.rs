//! The parts of the example that writes sonnets.

#[path = "../examples/char_lstm/cli.rs"]
mod cli;
#[path = "../examples/char_lstm/model.rs"]
mod model;
#[path = "../examples/char_lstm/progress.rs"]
mod progress;
#[path = "../examples/char_lstm/text.rs"]
mod text;
#[path = "../examples/char_lstm/train.rs"]
mod train;

use cli::Args;
use couplet::optim::Adam;
use couplet::prelude::*;
use model::CharLSTM;
use progress::Progress;
use text::{Alphabet, Windows};

fn parse(flags: &[&str]) -> std::result::Result<Args, String> {
    Args::parse([&["char_lstm"], flags].concat()).map_err(|error| error.to_string())
}

#[test]
fn flags_are_read_and_refused_with_the_range() {
    let args = parse(&["--steps", "7", "--window", "9", "--dropout", "0", "--threads", "2"]).unwrap();
    assert_eq!((args.steps, args.window, args.dropout, args.threads), (7, 9, 0.0, Some(2)));
    assert!(args.text.ends_with("examples/data/sonnets/sonnets.txt") && args.text.is_file());
    for (flag, value, message) in [
        ("--steps", "0", "at least 1"),
        ("--dropout", "1", "[0, 1)"),
        ("--learning-rate", "-1", "above 0"),
        ("--temperature", "0", "above 0"),
    ] {
        let error = parse(&[flag, value]).unwrap_err();
        assert!(error.contains(flag) && error.contains(message), "{error}");
    }
}

#[test]
fn rows_go_on_in_each_window_where_they_left_off() -> Result<()> {
    let alphabet = Alphabet::of("abcdefghijklmn");
    assert_eq!(alphabet.size(), 14);
    let numbers = alphabet.encode("abcdefghijklmn").unwrap();
    // Two rows of seven: two windows of three, and one to predict.
    let windows = Windows::new(&numbers, 2, 3).unwrap();
    let row = |x: &Tensor, row: isize| -> Result<String> {
        let numbers = x.t()?.index(row)?.to_vec::<i64>()?;
        Ok(numbers.into_iter().map(|number| alphabet.decode(number)).collect())
    };
    assert_eq!(windows.count(), 2);
    let (x, y) = windows.get(0)?;
    assert_eq!([row(&x, 0)?, row(&x, 1)?, row(&y, 0)?, row(&y, 1)?], ["abc", "hij", "bcd", "ijk"]);
    let (x, y) = windows.get(1)?;
    assert_eq!([row(&x, 0)?, row(&y, 1)?], ["def", "lmn"]);
    assert!(Windows::new(&numbers, 2, 7).is_err() && alphabet.encode("xyz").is_err());
    Ok(())
}

#[test]
fn a_text_that_repeats_itself_is_learnt_and_written_on() -> Result<()> {
    random::set_seed(1);
    let text = "abcd ".repeat(30);
    let alphabet = Alphabet::of(&text);
    let windows = Windows::new(&alphabet.encode(&text).unwrap(), 5, 10).unwrap();
    let (model, opt) = (CharLSTM::new(alphabet.size(), 16, 0.0), Adam::new(0.02));
    let mut last = f32::NAN;
    for step in 0..80 {
        let (numbers, next) = windows.get(step % windows.count())?;
        let tape = GradientTape::new();
        let (loss, _) = model.loss((&numbers, &next), &model.initial_state(5)?, true)?;
        let params = model.trainable_variables()?;
        opt.apply(&tape.gradient(&loss, &params)?, &params)?;
        last = loss.item::<f32>()?;
    }
    assert!(last < 0.2, "{last}");
    let written = model.write(&alphabet.encode("abcd").unwrap(), 9, 0.1)?;
    let written: String = written.into_iter().map(|number| alphabet.decode(number)).collect();
    assert_eq!(written, " abcd abc");
    Ok(())
}

#[test]
fn losses_are_told_now_and_then_and_only_the_sample_when_quiet() {
    let told = |quiet: bool| {
        let mut out = Vec::new();
        let mut progress = Progress::new(4, quiet, &mut out);
        progress.step(1.0);
        progress.losses(2, 1.5, 1.25).unwrap();
        progress.finish(std::f64::consts::LN_2, "Shall I", " go").unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(told(true), "Shall I go\n");
    let want = "step 2/4  train loss 1.500  held-out loss 1.250\n\
                held-out loss: 0.693 nats or 1.00 bits a character\n\nShall I go\n";
    assert_eq!(told(false), want);
}

#[test]
fn a_run_needs_a_text_it_can_read_and_a_prompt_of_its_letters() {
    let message = |flags: &[&str]| train::run(&parse(flags).unwrap()).unwrap_err().to_string();
    assert!(message(&["--text", "no/such/file.txt"]).starts_with("no/such/file.txt: "));
    assert!(message(&["--prompt", "Ä"]).contains('Ä'));
    assert!(message(&["--prompt", ""]).contains("the prompt is empty"));
    assert!(message(&["--batch-size", "9999"]).contains("are needed"));
}
