//! Looks into checkpoints of any format: `cargo run --release --example inspect_checkpoint -- PATH`
//!
//! PATH is what `save` returned, a `.couplet`, `.safetensors` or `.npz` file, the prefix of a TensorFlow checkpoint, or a folder,
//! whose latest checkpoint is taken. Lists every value with dtype, shape, size and statistics; prints one; compares two
//! checkpoints; or writes the values in another format.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use couplet::checkpoint::{CheckpointDifference, CheckpointReader, Format, Stored};
use couplet::prelude::*;

/// Looks into checkpoints.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// The checkpoint: a prefix, a file, or a folder
    path: PathBuf,

    /// Print the value of this path or key
    #[arg(long, value_name = "PATH")]
    tensor: Option<String>,

    /// List what differs from another checkpoint
    #[arg(long, value_name = "PATH")]
    compare: Option<PathBuf>,

    /// Write all values to another checkpoint
    #[arg(long, value_name = "PREFIX")]
    convert: Option<PathBuf>,

    /// The format to write
    #[arg(long, value_name = "FORMAT", default_value = "native")]
    format: Target,
}

/// The formats that can be written.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Target {
    Native,
    Tensorflow,
    Safetensors,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let reader = CheckpointReader::open(&args.path)?;
    if let Some(path) = &args.tensor {
        print(&reader.get(path)?);
    } else if let Some(other) = &args.compare {
        report(&reader.compare(&CheckpointReader::open(other)?)?);
    } else if let Some(prefix) = &args.convert {
        let format = match args.format {
            Target::Native => Format::Native,
            Target::Tensorflow => Format::TensorFlow,
            Target::Safetensors => Format::Safetensors,
        };
        let left_out = reader.convert(prefix, format)?;
        println!("{} values written to {}", reader.entries().len() - left_out.len(), prefix.display());
        left_out.iter().for_each(|key| println!("left out: {key}"));
    } else {
        list(&reader)?;
    }
    Ok(())
}

/// A line for each value.
fn list(reader: &CheckpointReader) -> Result<()> {
    let by_key = reader.paths().iter().map(|(path, key)| (key.as_str(), path.as_str()));
    let paths = by_key.collect::<std::collections::BTreeMap<_, _>>();
    let name = |key: &'_ str| paths.get(key).map_or_else(|| key.to_owned(), |path| (*path).to_owned());
    let width = reader.entries().iter().map(|entry| name(&entry.key).len()).max().unwrap_or(0);
    let mut bytes = 0;
    println!("{}", reader.path().display());
    for entry in reader.entries() {
        let kind = format!("{}{}", entry.dtype, entry.shape);
        let statistics = match reader.get(&entry.key)? {
            Stored::Tensor(x) => statistics(&x)?,
            _ => String::new(),
        };
        println!("{:width$}  {kind:18} {:>12}  {statistics}", name(&entry.key), size(entry.bytes));
        bytes += entry.bytes;
    }
    println!("{} values, {}; all checksums hold", reader.entries().len(), size(bytes));
    Ok(())
}

/// Mean, deviation and range of the finite numbers, and how many are not.
fn statistics(x: &Tensor) -> Result<String> {
    if x.size() == 0 {
        return Ok("empty".to_owned());
    }
    let numbers = x.cast(DType::F64)?.to_vec::<f64>()?;
    let finite: Vec<f64> = numbers.iter().copied().filter(|number| number.is_finite()).collect();
    let count = finite.len() as f64;
    let mean = finite.iter().sum::<f64>() / count;
    let deviation = (finite.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / count).sqrt();
    let (low, high) = finite
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &number| (low.min(number), high.max(number)));
    let rest = numbers.len() - finite.len();
    let rest = if rest > 0 { format!("; {rest} NaN or infinite") } else { String::new() };
    Ok(match (finite.len(), x.size()) {
        (0, _) => format!("no finite number{rest}"),
        (1, 1) => format!("{mean}"),
        _ => format!("mean {mean:.4} dev {deviation:.4} range {low:.4} to {high:.4}{rest}"),
    })
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

fn print(stored: &Stored) {
    match stored {
        Stored::Tensor(x) => println!("{x}"),
        Stored::Strings(strings) => {
            strings.values.iter().for_each(|value| println!("{}", value.escape_ascii()));
        }
        other => println!("{other:?}"),
    }
}

fn report(difference: &CheckpointDifference) {
    let CheckpointDifference { equal, changed, unlike, only_left, only_right, .. } = difference;
    println!("{} values are equal", equal.len());
    let lists = [("differ", changed), ("only in the first", only_left), ("only in the second", only_right)];
    for (what, paths) in lists {
        paths.iter().for_each(|path| println!("{what}: {path}"));
    }
    for (path, (a, dims), (b, other)) in unlike {
        println!("unlike: {path}: {a}{dims} and {b}{other}");
    }
}
