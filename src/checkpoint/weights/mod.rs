//! Weights of a module in files of named tensors, matched by path.

mod layout;
mod options;
mod report;
#[cfg(all(test, feature = "npz", feature = "safetensors"))]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub use layout::Layout;
use options::{Compiled, Rules, regex};
pub use options::{LoadOptions, SaveOptions};
use report::unmatched;
pub use report::{LoadReport, LoadedWeight, UnmatchedWeight};

use super::file::TensorFile;
use super::format;
use super::stored::{Entry, Stored, StoredDType};
use super::tensors;
use crate::autodiff::no_grad;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::module::{Module, Node, Plan, Waiting, named_variables, on_copy, tree, values, walk};
use crate::tensor::{Shape, Tensor};

/// Writes the variables of a module to a `.safetensors` or `.npz` file under their paths, together with what waits for
/// parts that are not made yet. The file is complete or absent, whatever happens.
///
/// Plain state and what optimisers hold of other modules are not in it; that is what checkpoints are for.
///
/// ```
/// use couplet::checkpoint::{LoadOptions, SaveOptions, load_weights, save_weights};
/// use couplet::prelude::*;
/// # let folder = std::env::temp_dir().join(format!("couplet-doc-weights-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// let path = folder.join("mlp.safetensors");
/// let x = Tensor::ones([1, 3], DType::F32)?;
/// let mlp = MLP::new([4, 2]);
/// let y = mlp.forward(&x)?;
/// save_weights(&path, &mlp, &SaveOptions::new())?;
///
/// let fresh = MLP::new([4, 2]); // has no variables yet: they take their values when they are made
/// load_weights(&path, &fresh, &LoadOptions::new())?;
/// assert_eq!(fresh.forward(&x)?.to_vec::<f32>()?, y.to_vec::<f32>()?);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// Variables that need no input cannot be made, two have the same key after the renames, the layout of one is not known or does
/// not fit, the format does not have a dtype, or the file cannot be written.
pub fn save_weights(path: impl AsRef<Path>, module: &dyn Module, options: &SaveOptions) -> Result<()> {
    const OP: &str = "save_weights";
    let rules = options.rules.compile(OP)?;
    check_dtype(OP, options.rules.dtype)?;
    let mut list = Vec::new();
    let owners = Owners::of(module);
    let (mut keys, mut problems) = (BTreeMap::new(), Vec::new());
    for (own, x) in values(module)?.into_iter().filter(|(path, _)| !rules.skips(path)) {
        let key = rules.renamed(&own);
        if let Some(other) = keys.insert(key.clone(), own.clone()) {
            problems.push(format!("{own} and {other} both have the key {key:?}"));
            continue;
        }
        let layout =
            owners.layout(&options.rules, &rules, &own, |kind, name| layout::to_torch(kind, name, x.shape()));
        let converted = layout.and_then(|layout| {
            let convert = || cast(&layout.saved(&x)?, options.rules.dtype);
            no_grad(convert).map_err(|e| e.to_string())
        });
        match converted {
            Ok(x) => list.push((key, Stored::Tensor(x))),
            Err(problem) => problems.push(format!("{own}: {problem}")),
        }
    }
    if !problems.is_empty() {
        let cure = "give each variable a key of its own, and a layout to those whose is not known: \
                    layout(pattern, Layout::AsIs) writes them as they are";
        return Err(Error::usage(OP, problems.join("; "), cure));
    }
    tensors::write(path.as_ref(), &list, options.compress)
}

/// Gives the variables of a module the tensors of a file with the same paths: `.safetensors`, `.safetensors.index.json` (a model in
/// several files), `.npz` or `.npy`, or a checkpoint by its prefix.
///
/// Variables that do not exist yet, and parts that do not, take their values when they are made: no initialiser runs and
/// nothing is drawn. Their shapes are compared then. What a call certainly leaves out can only be told of variables that
/// exist, so strictness is complete for a module that was called before; the others are listed as `unmade`.
///
/// It is all or nothing: if anything does not fit, the error lists everything that does not and nothing was changed.
///
/// A network trained in PyTorch, whose keys and layouts are others:
///
/// ```
/// use couplet::checkpoint::{LoadOptions, load_weights, save_tensors};
/// use couplet::prelude::*;
/// # let folder = std::env::temp_dir().join(format!("couplet-doc-torch-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("torch.safetensors");
/// // What safetensors.torch.save_model writes of
/// // Sequential(Conv2d(1, 2, 3, bias=False), BatchNorm2d(2), Flatten(), Linear(2, 5)).
/// let counted = |shape: &[usize]| {
///     let size: usize = shape.iter().product();
///     Tensor::arange(0.0, size as f64, 1.0, DType::F32)?.reshape(shape)
/// };
/// save_tensors(&path, [
///     ("0.weight", counted(&[2, 1, 3, 3])?), // output, input, height, width
///     ("1.weight", counted(&[2])?),
///     ("1.bias", counted(&[2])?),
///     ("1.running_mean", counted(&[2])?),
///     ("1.running_var", (counted(&[2])? + 1.0)?),
///     ("1.num_batches_tracked", Tensor::from(7i64)),
///     ("3.weight", counted(&[5, 2])?), // output, input
///     ("3.bias", counted(&[5])?),
/// ])?;
///
/// #[derive(Module)]
/// struct Net { scope: Scope, conv: Conv2D, norm: BatchNorm, linear: Linear }
///
/// #[scoped]
/// impl Net {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         let x = self.norm.forward_t(&self.conv.forward(x)?, false)?;
///         self.linear.forward(&x.reshape([x.dim(0)?, x.size() / x.dim(0)?])?)
///     }
/// }
///
/// let conv = Conv2D::new(2, 3).with_bias(false).padding(Padding::Valid);
/// let norm = BatchNorm::new(true, true).decay_rate(0.9); // PyTorch's momentum is 1 - decay_rate
/// let net = Net { scope: Scope::of::<Net>(), conv, norm, linear: Linear::new(5) };
/// let x = Tensor::ones([1, 3, 3, 1], DType::F32)?;
/// net.forward(&x)?; // the shapes of the averages follow from the input
///
/// let options = LoadOptions::new()
///     .rename(r"^0\.weight$", "conv/w")
///     .rename(r"^1\.weight$", "norm/scale")
///     .rename(r"^1\.bias$", "norm/offset")
///     .rename(r"^1\.running_mean$", "norm/moving_mean/average")
///     .rename(r"^1\.running_var$", "norm/moving_variance/average")
///     .rename(r"^1\.num_batches_tracked$", "norm/moving_mean/_counter")
///     .rename(r"^3\.weight$", "linear/w")
///     .rename(r"^3\.bias$", "linear/b")
///     // Averages here also keep the sum before its bias is taken out. After many steps the two are the same.
///     .also("/average$", "/_hidden")
///     .also("moving_mean/_counter$", "moving_variance/_counter")
///     .torch_layouts(true);
/// let report = load_weights(&path, &net, &options)?;
/// assert_eq!(report.loaded.len(), 11);
/// let changed: Vec<&str> = report.changed().map(|weight| weight.path.as_str()).collect();
/// assert!(changed.contains(&"conv/w") && changed.contains(&"linear/w"));
///
/// let y = net.forward(&x)?;
/// // The convolution gives 0 + .. + 8 = 36 and 9 + .. + 17 = 117, the normalisation 0 and (117 - 1) / sqrt(2) + 1 = 83.02,
/// // of which output i of the last layer takes 2 i + 1 times the second, and adds i.
/// let expected: Vec<f32> = (0..5).map(|i| (2 * i + 1) as f32 * 83.0241 + i as f32).collect();
/// for (y, expected) in y.to_vec::<f32>()?.iter().zip(expected) {
///     assert!((y - expected).abs() < 1e-2, "{y} {expected}");
/// }
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// The file cannot be read or is damaged, a pattern is no regular expression, two tensors have the same path, variables have no
/// value or another shape or dtype, tensors have no variable, or a layout is not known; unless that is allowed.
pub fn load_weights(
    path: impl AsRef<Path>,
    module: &dyn Module,
    options: &LoadOptions,
) -> Result<LoadReport> {
    let path = path.as_ref();
    let file = format::open(path)?;
    load(&*file, module, options).map_err(|e| match e {
        Error::Usage { op, problem, cure } if op == OP => {
            Error::Usage { op, problem: format!("{}: {problem}", path.display()), cure }
        }
        e => e,
    })
}

const OP: &str = "load_weights";

/// A tensor on its way from a key to a path.
struct Match<'a> {
    entry: &'a Entry,
    path: String,
}

fn load(file: &dyn TensorFile, module: &dyn Module, options: &LoadOptions) -> Result<LoadReport> {
    let rules = options.rules.compile(OP)?;
    check_dtype(OP, options.rules.dtype)?;
    let matches = matches(file.entries(), &rules, options)?;
    let owners = Owners::of(module);

    // Which of the paths lead somewhere is asked with values that cost nothing, before anything is read.
    let blank = Tensor::zeros([], DType::F32)?;
    let blanks = matches.iter().map(|one| (one.path.clone(), Waiting::Value(blank.clone())));
    let unused: BTreeSet<String> =
        Plan::new(Node::Module(module), tree(OP, blanks)?).unused.into_iter().collect();

    let mut report = LoadReport::default();
    let (mut given, mut problems) = (Vec::new(), Vec::new());
    // Paths of variables that have a tensor in the file, although they do not take it.
    let mut kept = BTreeSet::new();
    for Match { entry, path } in matches.iter().filter(|one| !unused.contains(&one.path)) {
        let variable = owners.variables.get(path);
        let layout = owners.layout(&options.rules, &rules, path, |kind, name| {
            layout::torch(kind, name, &entry.shape, variable.map(|(shape, _)| shape))
        });
        let layout = match layout {
            Ok(layout) => layout,
            Err(problem) => {
                problems.push(format!("the layout of {path} (key {}) is not known: {problem}", entry.key));
                kept.insert(path.as_str());
                continue;
            }
        };
        if let Some(problem) = misfit(entry, &layout, variable, options.rules.dtype) {
            report.mismatched.push(format!("{path}: {problem}"));
            kept.insert(path.as_str());
            continue;
        }
        given.push((entry, path, layout));
    }
    let mut values = Vec::with_capacity(given.len());
    if problems.is_empty() && (report.mismatched.is_empty() || options.allow_mismatched) {
        for (entry, path, layout) in &given {
            let Stored::Tensor(x) = file.read(&entry.key)? else { continue };
            let x = no_grad(|| cast(&layout.loaded(&x)?, options.rules.dtype))?;
            values.push(((*path).clone(), Waiting::Value(x.to_contiguous())));
        }
    } else {
        // Something is wrong already; the rest of the list needs no values.
        values.extend(given.iter().map(|(_, path, _)| ((*path).clone(), Waiting::Value(blank.clone()))));
    }
    let values = tree(OP, values)?;
    let trial = on_copy(OP, module, |copy| try_out(copy, &values, problems.is_empty()))?;
    report.mismatched.extend(trial.mismatched);
    let missing: Vec<String> =
        trial.missing.into_iter().filter(|path| !kept.contains(path.as_str())).collect();
    report.unmade = trial.unmade.into_iter().filter(|path| !kept.contains(path.as_str())).collect();

    let keys = matches.iter().filter(|one| unused.contains(&one.path));
    let keys: Vec<(String, String)> = keys.map(|one| (one.path.clone(), one.entry.key.clone())).collect();
    let paths: Vec<(String, String)> = missing.iter().map(|path| (path.clone(), path.clone())).collect();
    // A part that was not made yet may be what a key means.
    let places = report.unmade.iter().map(|path| (path.clone(), path.clone()));
    let candidates: Vec<(String, String)> = paths.iter().cloned().chain(places).collect();
    report.missing = unmatched(paths.clone(), &keys);
    report.unused = unmatched(keys, &candidates);
    for (entry, path, layout) in given {
        let waiting = trial.waiting.contains(path);
        let (path, key) = (path.clone(), entry.key.clone());
        report.loaded.push(LoadedWeight { path, key, layout, waiting });
    }
    refuse(&report, problems, options)?;
    Plan::new(Node::Module(module), values).apply(OP)?;
    Ok(report)
}

/// The paths to which the tensors of a file go.
fn matches<'a>(entries: &'a [Entry], rules: &Compiled, options: &LoadOptions) -> Result<Vec<Match<'a>>> {
    let also = options.also.iter().map(|(pattern, replacement)| Ok((regex(OP, pattern)?, replacement)));
    let also: Vec<_> = also.collect::<Result<_>>()?;
    let mut matches = Vec::with_capacity(entries.len());
    for entry in entries.iter().filter(|entry| !rules.skips(&entry.key)) {
        let path = rules.renamed(&entry.key);
        let others = also.iter().filter(|(pattern, _)| pattern.is_match(&path));
        let others = others
            .map(|(pattern, replacement)| pattern.replace_all(&path, replacement.as_str()).into_owned());
        matches.extend(others.map(|path| Match { entry, path }));
        matches.push(Match { entry, path });
    }
    let mut keys = BTreeMap::new();
    for Match { entry, path } in &matches {
        if let Some(other) = keys.insert(path, &entry.key) {
            let problem = format!("the keys {other:?} and {:?} both have the path {path:?}", entry.key);
            return Err(Error::usage(OP, problem, "give each a path of its own, or skip one"));
        }
    }
    Ok(matches)
}

/// What a copy of the module makes of the values.
struct Trial {
    waiting: BTreeSet<String>,
    missing: Vec<String>,
    mismatched: Vec<String>,
    unmade: Vec<String>,
}

fn try_out(copy: &dyn Module, values: &Waiting, whole: bool) -> Result<Trial> {
    let plan = Plan::new(Node::Module(copy), values.clone());
    let mut given = Vec::new();
    values.paths("", &mut given);
    let given: BTreeSet<String> = given.into_iter().collect();
    let (taken, waiting) = (plan.given(), plan.waiting.iter().cloned().collect());
    let mismatched = if whole { plan.mismatched.clone() } else { Vec::new() };
    if plan.mismatched.is_empty() {
        plan.apply(OP)?;
    }
    let named = named_variables(copy)?.into_iter();
    let missing = named.filter(|(path, variable)| !taken.contains(&variable.id()) && !given.contains(path));
    let missing = missing.map(|(path, _)| path).collect();
    let mut unmade = Vec::new();
    walk(Node::Module(copy), |path, node| {
        if let Node::Empty(later) = node
            && later.waiting().is_none()
            && !given.contains(path)
        {
            unmade.push(path.to_owned());
        }
    });
    Ok(Trial { waiting, missing, mismatched, unmade })
}

/// The error that lists all that is wrong and not allowed, if anything is.
fn refuse(report: &LoadReport, mut problems: Vec<String>, options: &LoadOptions) -> Result<()> {
    let mut cures = Vec::new();
    if !problems.is_empty() {
        cures.push("call the module once before, or give a rule: layout(pattern, Layout::..)");
    }
    if !report.mismatched.is_empty() && !options.allow_mismatched {
        problems.extend(report.mismatched.iter().cloned());
        cures.push("give a layout or a dtype, or allow_mismatched(true)");
    }
    if !report.missing.is_empty() && !options.allow_missing {
        problems.extend(report.missing.iter().map(|one| format!("the file has no value for {one}")));
        cures.push("rename keys, or allow_missing(true)");
    }
    if !report.unused.is_empty() && !options.allow_unused {
        problems
            .extend(report.unused.iter().map(|one| format!("the module has no variable for the key {one}")));
        cures.push("rename or skip keys, or allow_unused(true)");
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::usage(OP, problems.join("; "), cures.join("; ")))
}

/// Why a tensor does not fit a variable, if it does not.
fn misfit(
    entry: &Entry,
    layout: &Layout,
    variable: Option<&(Shape, DType)>,
    cast: Option<DType>,
) -> Option<String> {
    let StoredDType::Tensor(dtype) = &entry.dtype else {
        return Some(format!("the key {} holds {}, which no variable does", entry.key, entry.dtype));
    };
    let dtype = cast.filter(|_| dtype.is_float()).unwrap_or(*dtype);
    let shape = match layout.loaded_shape(&entry.shape) {
        Ok(shape) => shape,
        Err(e) => return Some(format!("the key {} has shape {}: {e}", entry.key, entry.shape)),
    };
    let (own_shape, own_dtype) = variable?;
    if shape == *own_shape && dtype == *own_dtype {
        return None;
    }
    let there = match shape == entry.shape {
        true => format!("{dtype}{shape}"),
        false => format!("{dtype}{shape} ({} as {layout:?})", entry.shape),
    };
    Some(format!("the key {} gives {there}, the variable is {own_dtype}{own_shape}", entry.key))
}

fn check_dtype(op: &'static str, dtype: Option<DType>) -> Result<()> {
    match dtype.filter(|dtype| !dtype.is_float()) {
        Some(dtype) => Err(Error::dtype(op, "dtype", dtype, "a float dtype")),
        None => Ok(()),
    }
}

fn cast(x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
    match dtype.filter(|dtype| x.dtype().is_float() && x.dtype() != *dtype) {
        Some(dtype) => x.cast(dtype),
        None => Ok(x.clone()),
    }
}

/// Which modules and variables there are.
struct Owners {
    kinds: BTreeMap<String, &'static str>,
    variables: BTreeMap<String, (Shape, DType)>,
}

impl Owners {
    fn of(module: &dyn Module) -> Self {
        let mut owners = Owners { kinds: BTreeMap::new(), variables: BTreeMap::new() };
        walk(Node::Module(module), |path, node| match node {
            Node::Module(module) => {
                owners.kinds.insert(path.to_owned(), module.kind());
            }
            Node::Variable(variable) => {
                owners.variables.insert(path.to_owned(), (variable.shape().clone(), variable.dtype()));
            }
            _ => {}
        });
        owners
    }

    /// The layout of the variable with this path: that of a rule, or else what `torch` says of the kind of its module and its
    /// name in that.
    fn layout(
        &self,
        rules: &Rules,
        compiled: &Compiled,
        path: &str,
        torch: impl Fn(&str, &str) -> Result<Layout, String>,
    ) -> Result<Layout, String> {
        if let Some(layout) = compiled.layout(path) {
            return Ok(layout.clone());
        }
        if !rules.torch {
            return Ok(Layout::AsIs);
        }
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        match self.kinds.get(parent) {
            Some(kind) => torch(kind, name),
            None => Err("the module that it belongs to is not made yet, or holds it in a list".into()),
        }
    }
}
