//! A table of the layers of a network: output shapes, parameters, multiply-adds and bytes.

use std::fmt;

use super::collect::{Seen, parts};
use super::copies::Copies;
use super::forward::Forward;
use super::probe::{self, Noted, Notes};
use super::spec::Spec;
use super::table::table;
use super::visit::{Edges, Node};
use super::waiting::join;
use crate::autodiff::no_grad;
use crate::dry;
use crate::error::{Error, Result};
use crate::variable::Variable;

/// What [`summary`] found, one row a module. It prints as a table.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Summary {
    /// The network itself, then the modules below it in the order of their declaration.
    pub rows: Vec<SummaryRow>,
    /// What the network returns.
    pub output: Spec,
}

/// One module of a [`Summary`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SummaryRow {
    /// The path that leads to the module, as `_layers/0`; the network's own name in the first row.
    pub path: String,
    /// The module's type.
    pub kind: &'static str,
    /// What its last call returned, if it was called and returned a tensor.
    pub output: Option<Spec>,
    /// Elements of the variables it owns, without those of the modules inside it.
    pub parameters: usize,
    /// Those of them that an optimiser may change.
    pub trainable: usize,
    /// Multiply-adds of its own, with every open dim taken as 1.
    pub multiply_adds: u64,
    /// Bytes of the variables it owns.
    pub bytes: usize,
}

/// A table of the modules below `module`, from an evaluation of an input like `input`; a dim given as `None` may take
/// any size.
///
/// The evaluation runs on copies: the module keeps its variables, or has none as before, and nothing is drawn.
///
/// ```
/// # use couplet::{Forward, Module, Result, Scope, Tensor, scoped, summary};
/// #[derive(Module)]
/// struct Double { scope: Scope }
///
/// #[scoped]
/// impl Forward for Double {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         x + x
///     }
/// }
///
/// let double = Double { scope: Scope::of::<Double>() };
/// println!("{}", summary(&double, [None, Some(3)])?);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// The module refuses the input, or its variables depend on an open dim.
pub fn summary(module: &(impl Forward + ?Sized), input: impl Into<Spec>) -> Result<Summary> {
    evaluate_copies("summary", module, &input.into())
}

/// The summary of a module for `op`, from evaluations of copies.
pub(crate) fn evaluate_copies(
    op: &'static str,
    module: &(impl Forward + ?Sized),
    input: &Spec,
) -> Result<Summary> {
    let copy = || module.copy_boxed_forward(&mut Copies::default());
    // Broadcasting hides an open dim of 1, so shapes come from 2 and 3.
    let once = Run::new(copy(), input, 1)?;
    if !input.is_open() {
        return once.summary(op, &once, &once);
    }
    let (two, three) = (Run::new(copy(), input, 2)?, Run::new(copy(), input, 3)?);
    once.summary(op, &two, &three)
}

/// One evaluation of a copy.
struct Run {
    rows: Vec<Row>,
    output: Noted,
}

/// One module of the copy that was run.
struct Row {
    path: String,
    kind: &'static str,
    variables: Vec<Variable>,
    noted: Noted,
}

impl Run {
    fn new(copy: Box<dyn Forward>, input: &Spec, open: usize) -> Result<Self> {
        let x = input.zeros(open)?;
        let evaluate = || no_grad(|| dry::blank(|| copy.forward_t_owned(x, false)));
        let (y, notes) = probe::probing(evaluate);
        let y = y?;
        let mut rows = Rows { list: Vec::new(), seen: Seen::default(), notes };
        rows.add(copy.node(), String::new(), None);
        Ok(Run {
            rows: rows.list,
            output: Noted { output: Some((y.shape().clone(), y.dtype())), multiply_adds: 0 },
        })
    }

    /// Takes the counts from `self` and the shapes that `a` and `b` agree on.
    fn summary(&self, op: &'static str, a: &Run, b: &Run) -> Result<Summary> {
        let mut rows = Vec::new();
        for ((row, a), b) in self.rows.iter().zip(&a.rows).zip(&b.rows) {
            for (variable, other) in a.variables.iter().zip(&b.variables) {
                if variable.shape() != other.shape() {
                    let problem = format!("the shape of {} depends on a dim that is open", variable.name());
                    return Err(Error::usage(op, problem, "give that dim of the input a size"));
                }
            }
            let size =
                |variables: &mut dyn Iterator<Item = &Variable>| variables.map(|v| v.shape().size()).sum();
            let trained = |v: &&Variable| v.trainable() && !v.is_frozen();
            rows.push(SummaryRow {
                path: row.path.clone(),
                kind: row.kind,
                output: common(&a.noted, &b.noted),
                parameters: size(&mut a.variables.iter()),
                trainable: size(&mut a.variables.iter().filter(trained)),
                multiply_adds: row.noted.multiply_adds,
                bytes: a.variables.iter().map(|v| v.shape().size() * v.dtype().size()).sum(),
            });
        }
        let output = common(&a.output, &b.output).ok_or_else(|| {
            Error::usage(op, "the rank of the output depends on an open dim", "give that dim a size")
        })?;
        Ok(Summary { rows, output })
    }
}

fn common(a: &Noted, b: &Noted) -> Option<Spec> {
    match (&a.output, &b.output) {
        (Some((a, dtype)), Some((b, _))) => Spec::common(a, b, *dtype),
        _ => None,
    }
}

/// Walks the modules, each once, in the order of their declaration.
struct Rows {
    list: Vec<Row>,
    seen: Seen,
    notes: Notes,
}

impl Rows {
    /// Adds what lies below `node`; variables count for the row `owner`.
    fn add(&mut self, node: Node<'_>, path: String, owner: Option<usize>) {
        match node {
            Node::Module(module) if self.seen.is_new_module(module) => {
                let shown = if path.is_empty() { module.scope().path() } else { path.clone() };
                let noted = self.notes.remove(&module.scope().id()).unwrap_or_default();
                self.list.push(Row { path: shown, kind: module.kind(), variables: Vec::new(), noted });
                self.add_parts(parts(module), &path, Some(self.list.len() - 1));
            }
            Node::Variable(variable) if self.seen.is_new_variable(variable) => {
                if let Some(row) = owner.and_then(|owner| self.list.get_mut(owner)) {
                    row.variables.push(variable.clone());
                }
            }
            Node::Group(edges) | Node::Growing(edges, _) => self.add_parts(edges, &path, owner),
            _ => {}
        }
    }

    fn add_parts(&mut self, edges: Edges<'_>, path: &str, owner: Option<usize>) {
        for edge in edges {
            self.add(edge.node, join(path, edge.name), owner);
        }
    }
}

impl Summary {
    /// Elements of all variables.
    pub fn parameters(&self) -> usize {
        self.rows.iter().map(|row| row.parameters).sum()
    }

    /// Elements of the variables that an optimiser may change.
    pub fn trainable(&self) -> usize {
        self.rows.iter().map(|row| row.trainable).sum()
    }

    /// Multiply-adds of one evaluation, with every open dim taken as 1.
    pub fn multiply_adds(&self) -> u64 {
        self.rows.iter().map(|row| row.multiply_adds).sum()
    }

    /// Bytes of all variables.
    pub fn bytes(&self) -> usize {
        self.rows.iter().map(|row| row.bytes).sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["Module", "Type", "Output", "Parameters", "Multiply-adds", "Bytes"];
        let dash = || "-".to_owned();
        let mut rows: Vec<[String; 6]> = Vec::new();
        for row in &self.rows {
            rows.push([
                row.path.clone(),
                row.kind.to_owned(),
                row.output.as_ref().map_or_else(dash, Spec::to_string),
                grouped(row.parameters as u64),
                grouped(row.multiply_adds),
                grouped(row.bytes as u64),
            ]);
        }
        rows.push([
            "total".to_owned(),
            String::new(),
            self.output.to_string(),
            grouped(self.parameters() as u64),
            grouped(self.multiply_adds()),
            grouped(self.bytes() as u64),
        ]);
        writeln!(f, "{}", table(&header, &rows))?;
        write!(
            f,
            "{} of {} parameters are trained",
            grouped(self.trainable() as u64),
            grouped(self.parameters() as u64)
        )
    }
}

/// `1234567` as `1,234,567`.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
