//! Which object of a file is which object of the program: both are walked side by side, by the names of their parts.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

use super::graph::{ObjectGraph, ObjectNode, escape};
use super::live::{Live, Object};
use super::snapshot::{STATE, VARIABLE_VALUE};
use crate::module::Owner;

/// Parts of something that is not made yet lie at most so deep: no module has as many levels.
const DEEPEST: usize = 200;

/// What became of an object of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    /// The program has nothing there.
    None,
    /// It is this object of the program, by its number.
    Live(usize),
    /// It belongs to this object of the program, which is made later.
    Later(usize),
}

/// What will be given to a part that is made later: nodes of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Later {
    /// The value of one node.
    Value(usize),
    /// By escaped name.
    Tree(Vec<(String, Later)>),
}

/// The pairs of objects.
pub(crate) struct Binding {
    /// By node of the file.
    pub(crate) matches: Vec<Match>,
    /// Node of the file and object of the program, for each variable and plain state that takes a value at once.
    pub(crate) values: Vec<(usize, usize)>,
    /// What is left for objects that are made later.
    pub(crate) later: Vec<(usize, Later)>,
    /// Objects of the program that have a value and found one in the file.
    pub(crate) found: Vec<bool>,
    /// Pairs of a variable and plain state, which cannot take each other's value.
    pub(crate) unlike: Vec<(usize, usize)>,
    /// For optimisers of the program: the nodes of parameters, and the numbers of their slots.
    pub(crate) owners: Vec<(usize, Vec<(usize, usize)>)>,
}

impl Binding {
    /// Walks both graphs from their roots.
    ///
    /// Parts are paired by name. An object of the file belongs to the first object of the program that it meets; an object of
    /// the program takes the first value that it meets.
    pub(crate) fn new(graph: &ObjectGraph, live: &Live<'_>) -> Self {
        let mut binding = Binding {
            matches: vec![Match::None; graph.nodes.len()],
            values: Vec::new(),
            later: Vec::new(),
            found: vec![false; live.nodes.len()],
            unlike: Vec::new(),
            owners: Vec::new(),
        };
        let mut walk = Walk { graph, live, next: VecDeque::new(), optimizers: Vec::new() };
        if let (Some(first), false) = (binding.matches.first_mut(), live.nodes.is_empty()) {
            *first = Match::Live(0);
            walk.next.push_back((0, 0, None));
        }
        binding.pair(&mut walk);
        // By now it is known which variables are parameters of which number.
        for (saved, number) in std::mem::take(&mut walk.optimizers) {
            binding.pair_slots(&mut walk, saved, number);
        }
        binding
    }

    /// Pairs everything below the pairs that are waiting, but the slots of optimisers.
    fn pair(&mut self, walk: &mut Walk<'_, '_>) {
        let (graph, live) = (walk.graph, walk.live);
        while let Some((saved, number, places)) = walk.next.pop_front() {
            self.take_value(graph, saved, live, number);
            match live.nodes[number].object {
                Object::Empty(_) => {
                    if let Some(later) = self.leave(graph, saved, number, 0) {
                        self.later.push((number, later));
                    }
                    continue;
                }
                Object::Variable(_) | Object::State(_) | Object::Waiting(_) => continue,
                Object::Inner | Object::Module(_) | Object::Growing(_) => {}
            }
            if live.slot_owners(number).is_some() && !graph.nodes[saved].slots.is_empty() && places.is_none()
            {
                walk.optimizers.push((saved, number));
                continue;
            }
            let mut future = Vec::new();
            for child in &graph.nodes[saved].children {
                if self.matches.get(child.node) != Some(&Match::None) {
                    continue; // it belongs to another object, or there is no such node
                }
                let (name, inner) = match &places {
                    None => (child.name.as_str(), None),
                    Some(Places::Optimizer(slots)) => {
                        let is_list = slots.lists.contains(&child.name);
                        (slots.alias(&child.name), is_list.then(|| Places::List(slots.clone())))
                    }
                    Some(Places::List(slots)) => (slots.place(&child.name), None),
                };
                let part = live.part(number, name);
                let part = part.filter(|&part| !matches!(live.nodes[part].object, Object::Waiting(_)));
                match (part, &live.nodes[number].object) {
                    (Some(part), _) => {
                        self.matches[child.node] = Match::Live(part);
                        walk.next.push_back((child.node, part, inner));
                    }
                    (None, Object::Growing(_)) if name.parse::<usize>().is_ok() => {
                        let later = self.leave(graph, child.node, number, 0);
                        future.extend(later.map(|later| (name.to_owned(), later)));
                    }
                    (None, _) => {}
                }
            }
            if !future.is_empty() {
                self.later.push((number, Later::Tree(future)));
            }
        }
    }

    /// Pairs the parts of an optimiser. A slot goes to the place that its parameter has in the program, whatever place it has in
    /// the file; parameters that the program's optimiser has not met get the next places.
    fn pair_slots(&mut self, walk: &mut Walk<'_, '_>, saved: usize, number: usize) {
        let (graph, live) = (walk.graph, walk.live);
        let Some(owners) = live.slot_owners(number) else { return };
        let node = &graph.nodes[saved];
        let known: HashMap<Owner, usize> = owners.numbers().into_iter().collect();
        let mut next = known.values().max().map_or(0, |last| last + 1);

        let mut slots = Slots::default();
        let mut parameters: Vec<usize> = Vec::new();
        for slot in &node.slots {
            let list = node.children.iter().find(|child| child.name == slot.name);
            let place = list.and_then(|list| graph.nodes.get(list.node)).and_then(|list| {
                list.children.iter().find(|child| child.node == slot.slot_variable).map(|child| &child.name)
            });
            if !parameters.contains(&slot.variable) {
                parameters.push(slot.variable);
                let live_variable = match self.matches.get(slot.variable) {
                    Some(&Match::Live(at)) => match live.nodes[at].object {
                        Object::Variable(variable) => Some(variable),
                        _ => None,
                    },
                    _ => None,
                };
                let met = live_variable
                    .and_then(|variable| Owner::all(variable).find_map(|owner| known.get(&owner)));
                // An optimiser that has met nobody takes the places as they are in the file.
                let as_saved = place.and_then(|place| place.parse().ok()).filter(|_| known.is_empty());
                let at = met.copied().or(as_saved).unwrap_or(next);
                next = next.max(at + 1);
                slots.numbers.insert(slot.variable, at);
            }
            match place {
                Some(place) => {
                    slots.lists.insert(slot.name.clone());
                    slots.places.insert(place.clone(), slots.numbers[&slot.variable].to_string());
                }
                None => slots.loose.push((slot.name.clone(), slot.variable, slot.slot_variable)),
            }
        }
        let numbers = parameters.iter().map(|variable| (*variable, slots.numbers[variable])).collect();
        self.owners.push((number, numbers));
        let slots = Rc::new(slots);
        walk.next.push_back((saved, number, Some(Places::Optimizer(slots.clone()))));
        self.pair(walk);
        self.pair_loose(walk, number, &slots);
    }

    /// Pairs slots that the file keeps with their variables, as those of Keras.
    fn pair_loose(&mut self, walk: &mut Walk<'_, '_>, number: usize, slots: &Slots) {
        let (graph, live) = (walk.graph, walk.live);
        let mut future: BTreeMap<usize, Vec<(String, Later)>> = BTreeMap::new();
        for (name, variable, slot) in &slots.loose {
            let list = LISTS.iter().find(|(keras, _)| keras == name).map_or(&[][..], |(_, ours)| ours);
            let mut names = std::iter::once(name.as_str()).chain(list.iter().copied());
            let Some(list) = names.find_map(|name| live.part(number, name)) else { continue };
            if self.matches.get(*slot) != Some(&Match::None) {
                continue;
            }
            let place = slots.numbers[variable].to_string();
            match live
                .part(list, &place)
                .filter(|&part| !matches!(live.nodes[part].object, Object::Waiting(_)))
            {
                Some(part) => {
                    self.matches[*slot] = Match::Live(part);
                    walk.next.push_back((*slot, part, None));
                }
                None => {
                    let later = self.leave(graph, *slot, list, 0);
                    future.entry(list).or_default().extend(later.map(|later| (place, later)));
                }
            }
        }
        self.later.extend(future.into_iter().map(|(list, parts)| (list, Later::Tree(parts))));
        self.pair(walk);
    }

    /// Gives the value of a node to an object.
    fn take_value(&mut self, graph: &ObjectGraph, saved: usize, live: &Live<'_>, number: usize) {
        let node = &graph.nodes[saved];
        let (wanted, other) = match live.nodes[number].object {
            Object::Variable(_) => (VARIABLE_VALUE, STATE),
            Object::State(_) => (STATE, VARIABLE_VALUE),
            _ => return,
        };
        if value_key(node, wanted).is_some() {
            if !self.found[number] {
                self.found[number] = true;
                self.values.push((saved, number));
            }
        } else if value_key(node, other).is_some() {
            self.unlike.push((saved, number));
        }
    }

    /// What a node and all below it, as far as it belongs to nobody, leave for an object that is made later.
    fn leave(&mut self, graph: &ObjectGraph, saved: usize, number: usize, depth: usize) -> Option<Later> {
        let node = &graph.nodes[saved];
        if depth > DEEPEST || !has_values(node) {
            return None;
        }
        self.matches[saved] = Match::Later(number);
        if [VARIABLE_VALUE, STATE].iter().any(|name| value_key(node, name).is_some()) {
            return Some(Later::Value(saved));
        }
        let mut parts = Vec::new();
        for child in &node.children {
            if self.matches.get(child.node) == Some(&Match::None) {
                let later = self.leave(graph, child.node, number, depth + 1);
                parts.extend(later.map(|later| (escape(&child.name), later)));
            }
        }
        (!parts.is_empty()).then_some(Later::Tree(parts))
    }
}

/// What is still to be paired.
struct Walk<'g, 'a> {
    graph: &'g ObjectGraph,
    live: &'g Live<'a>,
    /// Node of the file, object of the program, and how places change below it.
    next: VecDeque<(usize, usize, Option<Places>)>,
    /// Pairs of optimisers whose slots belong to parameters.
    optimizers: Vec<(usize, usize)>,
}

/// How the places of slots in the file become those in the program.
#[derive(Clone)]
enum Places {
    Optimizer(Rc<Slots>),
    List(Rc<Slots>),
}

/// The slots of an optimiser of the file.
#[derive(Default)]
struct Slots {
    /// Names of the lists that hold them.
    lists: BTreeSet<String>,
    /// By place in the file the place in the program.
    places: HashMap<String, String>,
    /// By node of a parameter the place in the program.
    numbers: HashMap<usize, usize>,
    /// Name, node of the parameter, and node of the slot, of those that are in no list.
    loose: Vec<(String, usize, usize)>,
}

/// What Keras calls slots, and the lists that hold them here.
const LISTS: &[(&str, &[&str])] = &[("momentum", &["accumulated_momentum", "mom"]), ("rms", &["ms"])];

impl Slots {
    fn place<'s>(&'s self, name: &'s str) -> &'s str {
        self.places.get(name).map_or(name, String::as_str)
    }

    /// Keras counts the steps under another name.
    fn alias<'s>(&self, name: &'s str) -> &'s str {
        if !self.loose.is_empty() && name == "iter" { "step" } else { name }
    }
}

/// Whether there is anything to restore at a node or below it; files that do not say are taken to have something.
fn has_values(node: &ObjectNode) -> bool {
    let has_any = !node.children.is_empty() || !node.attributes.is_empty();
    node.has_values.unwrap_or(has_any)
}

/// The key of an attribute of a node. Its name is that in the key: TensorFlow calls some by another one beside it.
pub(crate) fn value_key<'g>(node: &'g ObjectNode, name: &str) -> Option<&'g str> {
    let is_wanted = |key: &str| key.rsplit_once(".ATTRIBUTES/").is_some_and(|(_, found)| found == name);
    let mut found =
        node.attributes.iter().filter(|attribute| attribute.name == name || is_wanted(&attribute.key));
    found.next().map(|attribute| attribute.key.as_str())
}
