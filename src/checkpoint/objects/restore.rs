//! Giving the values of a file to the objects of the program: all or none.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use super::binding::{Binding, Later, Match, value_key};
use super::file::{Prepared, TensorFile, find};
use super::graph::ObjectGraph;
use super::live::{Live, Object};
use super::snapshot::{STATE, VARIABLE_VALUE};
use super::stored::{Stored, StoredDType};
use crate::dtype::DType;
use crate::error::{Error, Fault, Result};
use crate::kernels::parallel;
use crate::module::{Node, Owner, Plan, Waiting, on_copy};
use crate::variable::Variable;

const OP: &str = "restore";

/// A variable and where its value comes from.
struct Assignment<'f, 'a> {
    variable: &'a Variable,
    key: &'f str,
    value: Option<Prepared>,
}

/// Gives values to everything that is paired. Nothing is changed before all are known to be there, to fit and to be whole.
///
/// # Errors
/// Shapes, dtypes or kinds differ: all of them are listed. A tensor is missing or damaged, or plain state refuses its bytes.
pub(crate) fn restore(
    file: &dyn TensorFile,
    graph: &ObjectGraph,
    live: &Live<'_>,
    binding: &Binding,
) -> Result<()> {
    let mut problems: Vec<String> = Vec::new();
    for &(_, number) in &binding.unlike {
        let kinds = match live.nodes[number].object {
            Object::Variable(_) => "the file holds plain state, the program has a variable",
            _ => "the file holds a variable, the program has plain state",
        };
        problems.push(format!("{}: {kinds}", live.path(number)));
    }
    let (mut assign, mut plan) = (Vec::new(), Plan::default());
    for &(saved, number) in &binding.values {
        let node = &graph.nodes[saved];
        match live.nodes[number].object {
            Object::Variable(variable) => {
                let Some(key) = value_key(node, VARIABLE_VALUE) else { continue };
                problems.extend(misfit(file, key, variable, &live.path(number))?);
                assign.push(Assignment { variable, key, value: None });
            }
            Object::State(state) => {
                let Some(key) = value_key(node, STATE) else { continue };
                plan.load(live.path(number), state, bytes(file, key)?);
            }
            _ => {}
        }
    }
    if !problems.is_empty() {
        problems.sort();
        return Err(nothing_restored(&problems));
    }
    prepare(file, &mut assign)?;
    let mut left = HashMap::new();
    let mut trials: BTreeMap<usize, Waiting> = BTreeMap::new();
    for (number, later) in &binding.later {
        let values = waiting(file, graph, later, &mut left)?;
        if let Some((module, path)) = live.module_above(*number) {
            let mut part = Waiting::tree();
            part.insert(&path, values.clone());
            let before = trials.remove(&module).unwrap_or_else(Waiting::tree);
            trials.insert(module, before.updated(part));
        }
        match live.nodes[*number].object {
            Object::Empty(place) | Object::Growing(place) => plan.leave(place, values),
            _ => {}
        }
    }
    for (saved, found) in binding.matches.iter().enumerate() {
        if let (&Match::Live(number), true) = (found, !graph.nodes[saved].children.is_empty())
            && let Object::Module(module) = live.nodes[number].object
        {
            plan.materialise(number, module);
        }
    }
    try_out(live, trials)?;
    plan.apply_naming(OP, &|number| live.path(number))?;
    expect_owners(graph, live, binding, &left);
    // What lies over variables belongs to this thread.
    each(&mut assign, Variable::is_plain(), |assignment| assignment.run(file))
}

/// Has copies of modules make what needs no input from the values that are left for it. What was made cannot be unmade, so all
/// that does not fit is found before.
fn try_out(live: &Live<'_>, trials: BTreeMap<usize, Waiting>) -> Result<()> {
    let mut problems = Vec::new();
    for (number, values) in trials {
        let Object::Module(module) = live.nodes[number].object else { continue };
        if !module.materialises() {
            continue;
        }
        let made = on_copy(OP, module, |copy| Plan::new(Node::Module(copy), values).apply(OP));
        problems.extend(made.err().map(|e| format!("{}: {}", live.path(number), e.root())));
    }
    if problems.is_empty() {
        return Ok(());
    }
    problems.sort();
    Err(nothing_restored(&problems))
}

/// The error of a restore that changed nothing.
fn nothing_restored(problems: &[String]) -> Error {
    let cure = "build the program as it was when the file was written, or track other objects";
    Error::usage(OP, format!("nothing was restored: {}", problems.join("; ")), cure)
}

/// How a variable differs from the tensor of a key, if it does.
fn misfit(file: &dyn TensorFile, key: &str, variable: &Variable, path: &str) -> Result<Option<String>> {
    let Some(entry) = find(file, key) else { return file.read(key).map(|_| None) };
    let (dtype, shape) = (variable.dtype(), variable.shape());
    if entry.dtype == StoredDType::Tensor(dtype) && &entry.shape == shape {
        return Ok(None);
    }
    let name = variable.name();
    Ok(Some(format!(
        "{path}: the file holds {}{}, the variable {name} is {dtype}{shape}",
        entry.dtype, entry.shape
    )))
}

/// Makes sure of all tensors.
fn prepare(file: &dyn TensorFile, assign: &mut [Assignment<'_, '_>]) -> Result<()> {
    each(assign, true, |assignment| {
        assignment.value = Some(file.prepare(assignment.key)?);
        Ok(())
    })
}

/// Does something with each element, on several threads if that is allowed and there are many of them; a few large ones are
/// better divided each. The error is that of the first element that has one.
fn each<T: Send>(list: &mut [T], on_threads: bool, f: impl Fn(&mut T) -> Result<()> + Sync) -> Result<()> {
    if !on_threads || list.len() < 4 * parallel::threads() {
        return list.iter_mut().try_for_each(f);
    }
    let failed: Mutex<Vec<(usize, Error)>> = Mutex::new(Vec::new());
    parallel::for_each_chunk_mut(list, 1, |i, element| {
        if let Err(e) = f(&mut element[0]) {
            failed.lock().unwrap_or_else(PoisonError::into_inner).push((i, e));
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.into_iter().min_by_key(|(i, _)| *i).map_or(Ok(()), |(_, e)| Err(e))
}

impl Assignment<'_, '_> {
    fn run(&self, file: &dyn TensorFile) -> Result<()> {
        match &self.value {
            Some(Prepared::Value(Stored::Tensor(value))) => self.variable.assign(value),
            Some(Prepared::Here) => self.variable.modify(|value| file.read_into(self.key, value)),
            _ => Ok(()),
        }
    }
}

/// The bytes of plain state.
fn bytes(file: &dyn TensorFile, key: &str) -> Result<Vec<u8>> {
    match file.read(key)? {
        Stored::Strings(mut strings) if strings.values.len() == 1 => Ok(strings.values.remove(0)),
        Stored::Tensor(bytes) if bytes.dtype() == DType::U8 && bytes.rank() == 1 => bytes.to_vec(),
        other => Err(Error::argument(
            OP,
            "plain state",
            format!("{}{:?} at {key}", other.dtype(), other.shape()),
            "one string of bytes",
        )),
    }
}

/// Tells optimisers whom the slots belong to. `left` are the values that were left for variables, by node.
fn expect_owners(graph: &ObjectGraph, live: &Live<'_>, binding: &Binding, left: &HashMap<usize, Owner>) {
    for (optimizer, numbers) in &binding.owners {
        let Some(owners) = live.slot_owners(*optimizer) else { continue };
        let owner = |saved: usize| match binding.matches[saved] {
            Match::Live(number) => match live.nodes[number].object {
                Object::Variable(variable) => Some(Owner::variable(variable.id())),
                _ => left.get(&saved).copied(),
            },
            _ => left.get(&saved).copied(),
        };
        let name = |saved: usize| {
            let attribute = graph.nodes[saved].attributes.first();
            attribute.map_or_else(String::new, |attribute| attribute.full_name.clone())
        };
        let known = numbers.iter().filter_map(|&(saved, number)| Some((owner(saved)?, number, name(saved))));
        owners.expect(known.collect());
    }
}

/// The values of some nodes, for a part that is made later. Those of variables are noted in `left`.
fn waiting(
    file: &dyn TensorFile,
    graph: &ObjectGraph,
    later: &Later,
    left: &mut HashMap<usize, Owner>,
) -> Result<Waiting> {
    match later {
        Later::Tree(parts) => {
            let mut tree = BTreeMap::new();
            for (name, later) in parts {
                tree.insert(name.clone(), waiting(file, graph, later, left)?);
            }
            Ok(Waiting::Tree(tree))
        }
        Later::Value(saved) => {
            let node = &graph.nodes[*saved];
            if let Some(key) = value_key(node, VARIABLE_VALUE) {
                return match file.read(key)? {
                    Stored::Tensor(value) => {
                        left.insert(*saved, Owner::waiting(&value));
                        Ok(Waiting::Value(value))
                    }
                    other => {
                        let problem = format!("no variable can hold {}", other.dtype());
                        Err(Error::usage(OP, format!("{key}: {problem}"), "track other objects"))
                    }
                };
            }
            let key = value_key(node, STATE).unwrap_or_default();
            bytes(file, key).map(Waiting::State)
        }
    }
}

/// Most bytes that the paths of a graph may take together: a million of 250 bytes.
const MOST_PATHS: u64 = 256 << 20;

/// Refuses graphs whose edges lead nowhere, or whose paths would fill the memory.
pub(crate) fn check(path: &std::path::Path, graph: &ObjectGraph) -> Result<()> {
    let nodes = graph.nodes.len();
    if nodes == 0 {
        return Err(Error::format(path, Fault::MalformedGraph, "the object graph has no root"));
    }
    for (i, node) in graph.nodes.iter().enumerate() {
        let children = node.children.iter().map(|child| child.node);
        let slots = node.slots.iter().flat_map(|slot| [slot.variable, slot.slot_variable]);
        if let Some(beyond) = children.chain(slots).find(|&other| other >= nodes) {
            let problem = format!("node {i} leads to node {beyond} of {nodes}");
            return Err(Error::format(path, Fault::MalformedGraph, problem));
        }
    }
    let size = graph.size_of_paths();
    if size > MOST_PATHS {
        let problem = format!("its paths have {size} bytes together, expected {MOST_PATHS} at most");
        return Err(Error::format(path, Fault::MalformedGraph, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::graph::{Attribute, Child, ObjectNode};
    use super::*;

    #[test]
    fn graphs_whose_paths_are_far_larger_than_they_are_refused() {
        // Object i of a chain has a path of 2 i bytes: n (n - 1) in all.
        let chain = |length: usize| {
            let attribute = Attribute { name: "V".into(), full_name: String::new(), key: "k".into() };
            let node = |i| ObjectNode {
                children: (i + 1 < length)
                    .then(|| Child { name: "n".into(), node: i + 1 })
                    .into_iter()
                    .collect(),
                attributes: vec![attribute.clone()],
                ..ObjectNode::default()
            };
            ObjectGraph { nodes: (0..length).map(node).collect() }
        };
        check(Path::new("x"), &chain(16_384)).unwrap();
        let e = check(Path::new("x"), &chain(20_000)).unwrap_err().to_string();
        assert!(e.contains("malformed_graph") || e.contains("399980000"), "{e}");
    }
}
