//! W6: saving and restoring 25 million parameters and the two slots that Adam keeps for each.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use couplet::checkpoint::Checkpoint;
use couplet::optim::{Adam, Optimizer};
use couplet::prelude::*;

use crate::measure::{anonymous, emit};

/// Repeats after one to warm up.
const REPEATS: usize = 5;

/// W6: times of saving, which always makes the file durable, and of restoring into the existing variables; the size of the file;
/// and the memory that both take beyond what was there before.
pub fn run() -> Result<()> {
    random::set_seed(1);
    let normal = |_| random::current().normal([250, 500], 0.0, 1.0, DType::F32);
    let params = (0..200).map(|i| Ok(Variable::from_tensor(format!("v{i}"), normal(i)?)));
    let params = params.collect::<Result<Vec<_>>>()?;
    let grads = (0..200).map(|i| normal(i).map(|g| Some(g.into()))).collect::<Result<Vec<_>>>()?;
    let opt = Adam::new(1e-3);
    opt.apply(&grads, &params)?;
    drop(grads);
    couplet::release_cached_memory();

    let folder = std::env::temp_dir().join(format!("couplet-w6-{}", std::process::id()));
    let checkpoint = Checkpoint::new().track("params", &params).track("opt", &opt);
    let path = folder.join("ckpt");
    let outcome = measure(&checkpoint, &path, &params);
    std::fs::remove_dir_all(&folder).map_err(|e| io(&folder, &e))?;
    outcome
}

fn measure(checkpoint: &Checkpoint<'_>, path: &Path, params: &[Variable]) -> Result<()> {
    let save = || checkpoint.write(path).map(drop);
    let load = || checkpoint.read(path).and_then(|status| status.assert_consumed().map(drop));
    let (seconds, spread) = time(save)?;
    for (metric, notes) in [("save", "made durable, as always"), ("save+fsync", "file and folder")] {
        emit("W6", metric, seconds, "s", &format!("{notes}; spread {spread:.2}"), None);
    }
    let sum = |params: &[Variable]| params[17].value().sum()?.item::<f32>();
    let want = sum(params)?;
    let (seconds, spread) = time(load)?;
    assert_eq!(sum(params)?, want, "the values come back");
    emit("W6", "load", seconds, "s", &format!("into the existing variables; spread {spread:.2}"), None);
    let file = path.with_extension("couplet");
    let size = std::fs::metadata(&file).map_err(|e| io(&file, &e))?.len() as f64;
    emit("W6", "bytes", size / 1e6, "MB", "75 M f32 = 300.0 MB of payload", None);
    emit("W6", "save_extra_memory", extra_memory(save)?, "MB", "beyond the parameters and slots", None);
    emit("W6", "load_extra_memory", extra_memory(load)?, "MB", "beyond the parameters and slots", None);
    Ok(())
}

fn io(path: &Path, e: &std::io::Error) -> Error {
    Error::File { path: path.display().to_string(), problem: e.to_string() }
}

/// The median of some calls, in seconds, and how far they lie apart.
fn time(mut f: impl FnMut() -> Result<()>) -> Result<(f64, f64)> {
    let mut times = Vec::with_capacity(REPEATS);
    for i in 0..=REPEATS {
        let start = Instant::now();
        f()?;
        if i > 0 {
            times.push(start.elapsed().as_secs_f64());
        }
    }
    times.sort_by(f64::total_cmp);
    let median = times[REPEATS / 2];
    Ok((median, (times[REPEATS - 1] - times[0]) / median))
}

/// The most memory that a call takes beyond what was there, in MB, as far as a look each half millisecond tells.
fn extra_memory(f: impl FnOnce() -> Result<()>) -> Result<f64> {
    let (done, before) = (AtomicBool::new(false), anonymous());
    std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut most = before;
            while !done.load(Ordering::Relaxed) {
                most = most.max(anonymous());
                std::thread::sleep(Duration::from_micros(500));
            }
            most - before
        });
        let outcome = f();
        done.store(true, Ordering::Relaxed);
        let most = sampler.join().expect("the sampler does not panic");
        outcome.map(|()| most)
    })
}
