//! The peer workloads: `cargo bench --bench workloads -- W1 W2`; without names, all of them.
//!
//! Each workload runs in a process of its own and prints one JSON object a line for each metric.

mod checkpoint;
mod convolution;
mod elementwise;
mod embedding;
mod lstm;
mod measure;
mod mlp;
mod mnist;
mod overhead;
mod products;
mod resnet;
mod training;
mod transformer;

use std::process::Command;

use couplet::Result;

/// Runs one workload.
type Run = fn() -> Result<()>;

/// The workloads that exist, by name.
const WORKLOADS: &[(&str, Run)] = &[
    ("W1", mlp::train),
    ("W2", mnist::train),
    ("W2i", mnist::infer),
    ("W3", lstm::train),
    ("W4", resnet::train),
    ("W5", mlp::latency),
    ("W5b", overhead::run),
    ("W6", checkpoint::run),
    ("W7", products::run),
    ("W9", elementwise::run),
    ("W10", convolution::run),
    ("W11", embedding::run),
    ("W12", transformer::train),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    // `W8` is the memory of the process that ran W2.
    if let [name, inside] = &arguments[..]
        && inside == "in-this-process"
    {
        let found = WORKLOADS.iter().find(|(known, _)| known == name);
        let outcome = found.map_or(Ok(()), |(_, run)| run());
        if let Err(e) = outcome {
            eprintln!("{name}: {e}");
            std::process::exit(1);
        }
        return;
    }
    let wanted = |name: &str| {
        arguments.is_empty()
            || arguments
                .iter()
                .any(|a| a == name || (a == "W8" && name == "W2") || (a == "W2" && name == "W2i"))
    };
    for (name, _) in WORKLOADS.iter().filter(|(name, _)| wanted(name)) {
        let program = std::env::current_exe().expect("a running program has a path");
        let status = Command::new(program).args([name, "in-this-process"]).status();
        if !status.is_ok_and(|s| s.success()) {
            eprintln!("{name} failed");
            std::process::exit(1);
        }
    }
}
