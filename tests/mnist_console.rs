//! The command line and the printed lines of the MNIST examples.

#[path = "../examples/mnist/cli.rs"]
mod cli;
#[path = "../examples/mnist/flags.rs"]
mod flags;
#[path = "../examples/mnist/progress.rs"]
mod progress;
#[path = "../examples/mnist/wrong.rs"]
mod wrong;

use std::path::Path;

use cli::Args;
use flags::Defaults;
use progress::Progress;
use wrong::Wrong;

const DEFAULTS: Defaults = Defaults { about: "Test", epochs: "5", batch_size: "128", learning_rate: "0.1" };

fn parse(flags: &[&str]) -> Result<Args, String> {
    flags::parse(&DEFAULTS, [&["mnist"], flags].concat()).map_err(|error| error.to_string())
}

#[test]
fn without_flags_the_defaults_of_the_example_hold() {
    let Args { flags, plot, checkpoint_dir } = parse(&[]).unwrap();
    assert_eq!(checkpoint_dir, None);
    assert_eq!((flags.epochs, flags.batch_size, flags.learning_rate, flags.seed), (5, 128, 0.1, 1));
    assert_eq!((flags.threads, plot, flags.quiet), (None, None, false));
    assert!(flags.data_dir.ends_with("examples/data/mnist-5k"));
}

#[test]
fn each_flag_is_read() {
    let line = "--epochs 2 --batch-size 32 --learning-rate 1e-3 --seed 7 --threads 2 --plot a.png --quiet --data-dir d --checkpoint-dir c";
    let Args { flags, plot, checkpoint_dir } = parse(&line.split(' ').collect::<Vec<_>>()).unwrap();
    assert_eq!((flags.epochs, flags.batch_size, flags.learning_rate, flags.seed), (2, 32, 1e-3, 7));
    assert_eq!((flags.threads, plot.as_deref()), (Some(2), Some(Path::new("a.png"))));
    assert_eq!((flags.quiet, &*flags.data_dir), (true, Path::new("d")));
    assert_eq!(checkpoint_dir.as_deref(), Some(Path::new("c")));
}

#[test]
fn a_value_out_of_range_is_refused_with_the_range() {
    for (flag, values, message) in [
        ("--epochs", &["0", "-1", "1.5", "many"][..], "expected a whole number, at least 1"),
        ("--batch-size", &["0", "-3"], "expected a whole number, at least 1"),
        ("--threads", &["0"], "expected a whole number, at least 1"),
        ("--learning-rate", &["0", "-0.1", "nan", "inf", "fast"], "expected a finite number above 0"),
        ("--plot", &["curves.jpg", "curves"], "expected a file name that ends in .png"),
        ("--plot", &["no/such/folder/curves.png"], "there is no folder no/such/folder"),
    ] {
        for value in values {
            let error = parse(&[flag, value]).unwrap_err();
            assert!(error.contains(flag) && error.contains(value) && error.contains(message), "{error}");
        }
    }
}

#[test]
fn help_shows_the_defaults() {
    let help = parse(&["--help"]).unwrap_err();
    for default in ["[default: 5]", "[default: 128]", "[default: 0.1]", "[default: 1]"] {
        assert!(help.contains(default), "{help}");
    }
}

#[test]
fn epochs_and_the_result_are_printed() {
    let mut out = Vec::new();
    let mut progress = Progress::new(5, 4000, false, &mut out);
    progress.step(4000, 0.09);
    progress.epoch(3, "train loss 0.0871").unwrap();
    progress.finish(Wrong { wrong: 48, total: 1000 }).unwrap();
    let expected = "epoch 3/5  train loss 0.0871\n95.20 % (48 wrong of 1000)\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn quiet_leaves_the_result_alone() {
    let mut out = Vec::new();
    let mut progress = Progress::new(1, 10, true, &mut out);
    progress.step(10, 0.5);
    progress.epoch(1, "train loss 0.5").unwrap();
    progress.finish(Wrong { wrong: 0, total: 3 }).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "100.00 % (0 wrong of 3)\n");
}
