//! A module as bytes.
//!
//! | part          | bytes                                                                        |
//! |---------------|------------------------------------------------------------------------------|
//! | magic         | `COUPLET` and a zero                                                         |
//! | version       | `u32`                                                                        |
//! | header length | `u64`                                                                        |
//! | header        | [`Header`], as the codec writes it                                           |
//! | variables     | the elements of each, in row-major order, one after the other, in its order  |
//! | states        | the bytes of each, in its order                                              |
//!
//! All numbers are little-endian. A change of the header's fields or of this order is another version.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Module;
use super::fill::{Plan, on_copy, tree};
use super::paths::{named_variables, walk};
use super::visit::Node;
use super::waiting::{Waiting, join};
use crate::codec;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor};

const MAGIC: &[u8; 8] = b"COUPLET\0";
const VERSION: u32 = 1;
const OP: &str = "load_bytes";

/// What the bytes hold.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Header {
    /// Path and type of each module.
    modules: Vec<(String, String)>,
    variables: Vec<Entry>,
    /// Path of each state, and how many bytes it has.
    states: Vec<(String, u64)>,
}

/// A variable.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    path: String,
    /// Its name rather than its number, which depends on the order of declaration.
    dtype: String,
    dims: Vec<u64>,
}

/// Values and states by path, and the types of the modules that hold them.
#[derive(Default)]
struct Content {
    kinds: BTreeMap<String, String>,
    values: Vec<(String, Tensor)>,
    states: Vec<(String, Vec<u8>)>,
}

impl Content {
    /// What lies below a module, together with what waits for parts that are not made yet.
    fn of(module: &dyn Module) -> Result<Self> {
        named_variables(module)?; // makes those that need no input
        let (mut content, mut failed) = (Content::default(), Ok(()));
        walk(Node::Module(module), |path, node| match node {
            Node::Module(module) => {
                content.kinds.insert(path.to_owned(), module.kind().to_owned());
            }
            Node::Variable(variable) => content.values.push((path.to_owned(), variable.peek())),
            Node::State(state) => match state.save() {
                Ok(bytes) => content.states.push((path.to_owned(), bytes)),
                Err(e) => failed = Err(e.within(path)),
            },
            Node::Empty(later) | Node::Growing(_, later) => {
                later.waiting().into_iter().for_each(|waiting| content.add_waiting(path, waiting));
            }
            _ => {}
        });
        failed.map(|()| content)
    }

    fn add_waiting(&mut self, path: &str, waiting: Waiting) {
        match waiting {
            Waiting::Value(value) => self.values.push((path.to_owned(), value)),
            Waiting::State(bytes) => self.states.push((path.to_owned(), bytes)),
            Waiting::Tree(tree) => {
                tree.into_iter().for_each(|(name, part)| self.add_waiting(&join(path, name), part));
            }
        }
    }

    fn write(self) -> Result<Vec<u8>> {
        let entry = |(path, value): &(String, Tensor)| Entry {
            path: path.clone(),
            dtype: value.dtype().name().to_owned(),
            dims: value.shape().iter().map(|&dim| dim as u64).collect(),
        };
        let header = codec::encode(&Header {
            modules: self.kinds.into_iter().collect(),
            variables: self.values.iter().map(entry).collect(),
            states: self.states.iter().map(|(path, bytes)| (path.clone(), bytes.len() as u64)).collect(),
        })?;
        let elements: usize = self.values.iter().map(|(_, value)| value.size() * value.dtype().size()).sum();
        let states: usize = self.states.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut bytes = Vec::with_capacity(MAGIC.len() + 12 + header.len() + elements + states);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((header.len() as u64).to_le_bytes());
        bytes.extend(&header);
        self.values.iter().try_for_each(|(_, value)| value.write_bytes(&mut bytes))?;
        self.states.iter().for_each(|(_, state)| bytes.extend(state));
        Ok(bytes)
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader(bytes);
        if reader.0.get(..MAGIC.len()) != Some(MAGIC) {
            return Err(refuse("these bytes do not begin as those of a module"));
        }
        reader.take(MAGIC.len() as u64, "magic number")?;
        let version = u32::from_le_bytes(reader.number("version")?);
        if version != VERSION {
            let cure = "read them with the release that wrote them, or a later one";
            let problem = format!("the bytes have version {version}, this release reads version {VERSION}");
            return Err(Error::usage(OP, problem, cure));
        }
        let length = u64::from_le_bytes(reader.number("length of the header")?);
        let header: Header = codec::decode(reader.take(length, "header")?)
            .map_err(|e| refuse(format!("the header is damaged: {}", e.root())))?;
        let mut content = Content { kinds: header.modules.into_iter().collect(), ..Content::default() };
        for entry in header.variables {
            let value = reader.tensor(&entry)?;
            content.values.push((entry.path, value));
        }
        for (path, length) in header.states {
            let state = reader.take(length, &path)?.to_vec();
            content.states.push((path, state));
        }
        if !reader.0.is_empty() {
            return Err(refuse(format!("{} bytes too many follow", reader.0.len())));
        }
        Ok(content)
    }
}

fn refuse(problem: impl Into<String>) -> Error {
    Error::usage(OP, problem, "give all the bytes that to_bytes returned, and nothing else")
}

/// The bytes still to be read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: u64, what: &str) -> Result<&'a [u8]> {
        let split = usize::try_from(length).ok().and_then(|length| self.0.split_at_checked(length));
        let Some((taken, rest)) = split else {
            let there = self.0.len();
            return Err(refuse(format!(
                "the bytes end within {what:?}: {there} of its {length} bytes are there"
            )));
        };
        self.0 = rest;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut number = [0; N];
        number.copy_from_slice(self.take(N as u64, what)?);
        Ok(number)
    }

    fn tensor(&mut self, entry: &Entry) -> Result<Tensor> {
        let Entry { path, dtype, dims } = entry;
        let Some(dtype) = DType::ALL.into_iter().find(|known| known.name() == dtype) else {
            return Err(refuse(format!("{path:?} has dtype {dtype:?}, which this release does not know")));
        };
        let size = dims.iter().try_fold(dtype.size() as u64, |size, &dim| size.checked_mul(dim));
        let size = size.ok_or_else(|| refuse(format!("{path:?} has shape {dims:?}, too large to exist")))?;
        let elements = self.take(size, path)?;
        let shape: Shape = dims.iter().map(|&dim| dim as usize).collect();
        Tensor::from_bytes(elements, shape, dtype).map_err(|e| e.within(path))
    }
}

/// The values and the state of a module.
pub(crate) fn write(module: &dyn Module) -> Result<Vec<u8>> {
    Content::of(module)?.write()
}

/// The values of all variables by path, together with those that wait for parts that are not made yet.
pub(crate) fn values(module: &dyn Module) -> Result<Vec<(String, Tensor)>> {
    Content::of(module).map(|content| content.values)
}

/// Gives a module the values and the state that [`write`] wrote.
pub(crate) fn load(module: &dyn Module, bytes: &[u8]) -> Result<()> {
    let content = Content::read(bytes)?;
    let values = content.values.into_iter().map(|(path, value)| (path, Waiting::Value(value)));
    let states = content.states.into_iter().map(|(path, bytes)| (path, Waiting::State(bytes)));
    let values = tree(OP, values.chain(states))?;
    on_copy(OP, module, |copy| try_out(copy, &content.kinds, &values))?;
    Plan::new(Node::Module(module), values).apply(OP)
}

/// Gives a copy of a module what it is to take, and lists everything that does not fit.
fn try_out(copy: &dyn Module, kinds: &BTreeMap<String, String>, values: &Waiting) -> Result<()> {
    let plan = Plan::new(Node::Module(copy), values.clone());
    let mut problems = Vec::new();
    let mut given = Vec::new();
    values.paths("", &mut given);
    let given: BTreeSet<String> = given.into_iter().collect();
    walk(Node::Module(copy), |path, node| match node {
        Node::Module(module) => {
            if let Some(kind) = kinds.get(path).filter(|&kind| kind != module.kind()) {
                let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
                problems.push(format!("{place}the bytes hold a {kind}, the module has a {}", module.kind()));
            }
        }
        Node::State(_) if !given.contains(path) => problems.push(format!("{path}: only the module has it")),
        _ => {}
    });
    problems.extend(plan.unused.iter().map(|path| format!("{path}: only the bytes have it")));
    problems.extend(plan.mismatched.iter().cloned());
    if problems.is_empty() {
        plan.apply(OP)?;
    }
    let missing = named_variables(copy)?.into_iter().filter(|(path, _)| !given.contains(path));
    problems.extend(missing.map(|(path, _)| format!("{path}: only the module has it")));
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::usage(OP, problems.join("; "), "load into a module that is constructed like the one captured"))
}

#[cfg(test)]
mod tests;
