//! The peer workloads: `cargo bench --bench workloads -- W1 W2`; without names, all of them.
//!
//! Each workload runs in a process of its own and prints one JSON object a line for each metric.

mod measure;
mod mlp;
mod mnist;
mod overhead;
mod products;

use std::process::Command;

use couplet::Result;

/// A workload: its name and what runs it.
const WORKLOADS: [(&str, fn() -> Result<()>); 5] = [
    ("W1", mlp::train),
    ("W2", mnist::train),
    ("W2i", mnist::infer),
    ("W5", mlp::latency),
    ("W5b", overhead::run),
];

/// Workloads of single ops.
const PRODUCTS: (&str, fn() -> Result<()>) = ("W7", products::run);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let all = || WORKLOADS.iter().copied().chain([PRODUCTS]);
    // `W8` is the memory of the process that ran W2.
    if let [name, inside] = &arguments[..]
        && inside == "in-this-process"
    {
        let found = all().find(|(known, _)| known == name);
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
    for (name, _) in all().filter(|(name, _)| wanted(name)) {
        let program = std::env::current_exe().expect("a running program has a path");
        let status = Command::new(program).args([name, "in-this-process"]).status();
        if !status.is_ok_and(|s| s.success()) {
            eprintln!("{name} failed");
            std::process::exit(1);
        }
    }
}
