//! Timing by the rules of the workloads: warm-up, repeats, medians, and one JSON line a metric.

use std::time::Instant;

use couplet::Result;

/// Threads that every workload uses.
pub const THREADS: usize = 2;

/// What a timing gave.
pub struct Timing {
    /// Median seconds of one call.
    pub seconds: f64,
    repeats: usize,
    iterations: usize,
    spread: f64,
    foreign: f64,
}

/// Busy seconds of the machine and of this process, from the system's counters.
fn busy() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let all: Vec<f64> = text
        .lines()
        .next()
        .unwrap_or("")
        .split_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|v| v.parse().ok())
        .collect();
    let machine = if all.len() == 8 { all.iter().sum::<f64>() - all[3] - all[4] } else { 0.0 };
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let own = [11, 12].iter().filter_map(|&i: &usize| fields.get(i)?.parse::<f64>().ok()).sum::<f64>();
    (machine / 100.0, own / 100.0)
}

/// Times `f`: at least three calls and 0.6 s of warm-up, then seven repeats of at least 0.3 s.
pub fn time(f: impl FnMut() -> Result<()>) -> Result<Timing> {
    time_with(f, 7, 0.3, 0.6)
}

/// The same for workloads of many metrics: 0.25 s, five repeats, 0.1 s.
pub fn time_fast(f: impl FnMut() -> Result<()>) -> Result<Timing> {
    time_with(f, 5, 0.1, 0.25)
}

fn time_with(mut f: impl FnMut() -> Result<()>, repeats: usize, least: f64, warm_up: f64) -> Result<Timing> {
    let start = Instant::now();
    let mut calls = 0;
    while calls < 3 || start.elapsed().as_secs_f64() < warm_up {
        f()?;
        calls += 1;
    }
    let mut one = f64::MAX;
    for _ in 0..2 {
        let start = Instant::now();
        f()?;
        one = one.min(start.elapsed().as_secs_f64());
    }
    let iterations = ((least / one.max(1e-9)) as usize).max(1);
    let mut seconds = Vec::with_capacity(repeats);
    let (machine, own) = busy();
    let start = Instant::now();
    for repeat in 0..repeats {
        let begin = Instant::now();
        for _ in 0..iterations {
            f()?;
        }
        seconds.push(begin.elapsed().as_secs_f64() / iterations as f64);
        if repeat >= 4 && start.elapsed().as_secs_f64() > 25.0 {
            break;
        }
    }
    let wall = start.elapsed().as_secs_f64();
    let (machine_after, own_after) = busy();
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    Ok(Timing {
        seconds: median,
        repeats: seconds.len(),
        iterations,
        spread: (seconds[seconds.len() - 1] - seconds[0]) / median,
        foreign: (((machine_after - machine) - (own_after - own)) / wall).max(0.0),
    })
}

/// Prints one metric.
pub fn emit(workload: &str, metric: &str, value: f64, unit: &str, notes: &str, timing: Option<&Timing>) {
    let extra = timing.map_or(String::new(), |t| {
        format!(
            ", \"repeats\": {}, \"iters\": {}, \"spread\": {:.3}, \"foreign_cpu\": {:.2}",
            t.repeats, t.iterations, t.spread, t.foreign
        )
    });
    println!(
        "{{\"peer\": \"couplet\", \"workload\": \"{workload}\", \"metric\": \"{metric}\", \"value\": {value:.6}, \
         \"unit\": \"{unit}\", \"threads\": {THREADS}, \"notes\": \"{notes}\"{extra}}}"
    );
}

fn status(key: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key));
    line.and_then(|l| l.split_whitespace().nth(1)?.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// Resident memory at this moment, in MB.
pub fn resident() -> f64 {
    status("VmRSS:")
}

/// Memory that lies in no file, in MB.
pub fn anonymous() -> f64 {
    status("RssAnon:")
}

/// Prints the peak memory of the process beside what it held at the start.
pub fn emit_memory(workload: &str, at_start: f64) {
    emit("W8", &format!("{workload}_peak_rss"), status("VmHWM:"), "MB", "whole process", None);
    emit("W8", &format!("{workload}_import_rss"), at_start, "MB", "at the start of main", None);
}
