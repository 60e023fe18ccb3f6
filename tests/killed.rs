//! A process that saves in a loop is killed at any moment: what it had saved before is still there, whole.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use couplet::checkpoint::{Checkpoint, CheckpointManager, Format};
use couplet::prelude::*;

const FOLDER: &str = "COUPLET_KILLED_FOLDER";
const FORMAT: &str = "COUPLET_KILLED_FORMAT";

/// Values that a checkpoint holds if it is whole: all of them the number of the save.
fn values() -> Vec<Variable> {
    let tensor = |i: usize| Tensor::zeros([i % 7 + 1, 4096], DType::F32).unwrap();
    (0..20).map(|i| Variable::from_tensor(format!("v{i}"), tensor(i))).collect()
}

fn manager<'a>(values: &'a Vec<Variable>, folder: &Path, format: Format) -> CheckpointManager<'a> {
    let checkpoint = Checkpoint::new().track("values", values).format(format);
    CheckpointManager::new(checkpoint, folder).unwrap().max_to_keep(2)
}

/// Does nothing, unless it is called by the test below as a process of its own: then it saves until it is killed.
#[test]
fn saves_without_end() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let format = if std::env::var_os(FORMAT).is_some() { Format::TensorFlow } else { Format::Native };
    let values = values();
    let manager = manager(&values, &folder, format);
    manager.restore_or_initialize().unwrap();
    loop {
        let next = manager.checkpoint().save_counter().unwrap().value().item::<i64>().unwrap() + 1;
        for v in &values {
            v.assign(&Tensor::full(v.shape().clone(), next as f64, DType::F32).unwrap()).unwrap();
        }
        manager.save().unwrap();
        println!("\nsaved {next}");
    }
}

fn start(folder: &Path, format: Format) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "saves_without_end", "--nocapture"]).env(FOLDER, folder);
    if format == Format::TensorFlow {
        command.env(FORMAT, "1");
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills the process `after` its first save, and returns the number of the last save that it told of.
fn kill(mut child: Child, after: Duration) -> i64 {
    let (sender, receiver) = mpsc::channel();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let reader = thread::spawn(move || {
        for line in lines.map_while(std::io::Result::ok) {
            if let Some(number) = line.strip_prefix("saved ") {
                let _ = sender.send(number.parse::<i64>().unwrap()); // nobody listens any more
            }
        }
    });
    let mut last = receiver.recv_timeout(Duration::from_secs(60)).expect("the process saves");
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    for number in receiver.try_iter() {
        last = number;
    }
    last
}

fn killed(format: Format, times: u32) {
    let name = format!("couplet-killed-{format:?}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let instants = Generator::seed(7);
    let mut last = 0;
    for round in 0..times {
        let instant = instants.uniform([1], 0.0, 20_000.0, DType::F64).unwrap().to_vec::<f64>().unwrap()[0];
        let told = kill(start(&folder, format), Duration::from_micros(instant as u64));
        assert!(told > last, "round {round}: numbers go on");
        last = told;

        let values = values();
        let manager = manager(&values, &folder, format);
        let resumed = manager.restore_or_initialize().unwrap().expect("there is a checkpoint");
        assert!(resumed.skipped.is_empty(), "round {round}: {resumed}");
        resumed.status.assert_consumed().unwrap();
        let number = manager.checkpoint().save_counter().unwrap().value().item::<i64>().unwrap();
        assert!(number >= last, "round {round}: save {last} returned, but {number} was restored");
        for v in &values {
            let value = v.value().to_vec::<f32>().unwrap();
            assert!(
                value.iter().all(|&x| x == number as f32),
                "round {round}: {} is of another save",
                v.name()
            );
        }
        last = number;
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_was_saved_survives_two_hundred_kills() {
    killed(Format::Native, 200);
}

#[test]
fn so_do_tensorflow_files() {
    killed(Format::TensorFlow, 50);
}
