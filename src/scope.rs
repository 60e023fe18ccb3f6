//! Names of modules, and the scope that a thread is in.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::error::{Error, Result};

/// The name of a module, and the name scope that its variables and its children are made in.
///
/// The scope is absolute and fixed where the module is built: `linear` at top level, `mlp/linear` when it is built
/// while `mlp` is entered. A variable made while a scope is entered is called `<scope>/<name>`. Names are for people:
/// two modules may share one.
///
/// A scope is also the identity of its module, and therefore has no `Clone`.
///
/// ```
/// use couplet::Scope;
/// let outer = Scope::new("mlp");
/// let _in = outer.enter();
/// assert_eq!(Scope::new("linear").path(), "mlp/linear");
/// ```
pub struct Scope {
    node: Arc<Node>,
    /// Where a thread that is in this scope finds the node.
    slot: &'static Slot,
}

/// A place that lives for ever and is used by one scope after another, so that entering a scope needs no counting of
/// references: on a call of a small layer that would cost more than all the rest.
struct Slot {
    /// Raised when a scope gives the slot back.
    generation: AtomicU64,
    node: RwLock<Option<Arc<Node>>>,
}

/// Slots that no scope uses. Touched only when a module is built or dropped.
static FREE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

/// A slot and its generation when the scope was entered.
#[derive(Clone, Copy)]
struct Place(&'static Slot, u64);

impl Place {
    /// The scope that was entered, if it still exists.
    fn node(self) -> Option<Arc<Node>> {
        let node = self.0.node.read().unwrap_or_else(PoisonError::into_inner);
        node.clone().filter(|_| self.0.generation.load(Ordering::Relaxed) == self.1)
    }
}

struct Node {
    id: u64,
    parent: Option<Arc<Node>>,
    name: RwLock<Name>,
    /// The name is not an identifier.
    faulty: AtomicBool,
    allows_empty_variables: AtomicBool,
}

#[derive(Clone)]
struct Name {
    text: String,
    /// Given by the user rather than derived from the type.
    chosen: bool,
}

impl Node {
    fn name(&self) -> Name {
        self.name.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn path(&self) -> String {
        let mut names = vec![self.name().text];
        let mut above = &self.parent;
        while let Some(node) = above {
            names.push(node.name().text);
            above = &node.parent;
        }
        names.reverse();
        names.join("/")
    }
}

thread_local! {
    /// The scope this thread is in. Each guard keeps the one before.
    static CURRENT: Cell<Option<Place>> = const { Cell::new(None) };
    /// How many scopes are entered.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Identities that this thread may still give out: next, end.
    static IDS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// An identity that is never used twice. Threads take them in blocks, so they do not contend.
fn next_id() -> u64 {
    const BLOCK: u64 = 1024;
    static NEXT_BLOCK: AtomicU64 = AtomicU64::new(1);
    let (mut next, mut end) = IDS.get();
    if next == end {
        next = NEXT_BLOCK.fetch_add(BLOCK, Ordering::Relaxed);
        end = next + BLOCK;
    }
    IDS.set((next + 1, end));
    next
}

impl Scope {
    /// A scope below the one this thread is in. Names of modules are lower case by custom, as [`Scope::of`] makes them.
    ///
    /// A name that is not an identifier (`[a-zA-Z_][a-zA-Z0-9_]*`) is reported by the module's first call.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let node = Node {
            id: next_id(),
            parent: current(),
            faulty: AtomicBool::new(!is_identifier(&name)),
            name: RwLock::new(Name { text: name, chosen: false }),
            allows_empty_variables: AtomicBool::new(false),
        };
        Scope::over(Arc::new(node))
    }

    fn over(node: Arc<Node>) -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let slot = free.unwrap_or_else(|| {
            Box::leak(Box::new(Slot { generation: AtomicU64::new(0), node: RwLock::new(None) }))
        });
        *slot.node.write().unwrap_or_else(PoisonError::into_inner) = Some(node.clone());
        Scope { node, slot }
    }

    /// A scope named after a type: `Scope::of::<DeepRNN>()` is `deep_rnn`.
    pub fn of<T: ?Sized>() -> Self {
        Scope::for_kind(type_name::<T>())
    }

    /// A scope named after the printed name of a type: `conv2_d` for `Conv2D`.
    pub(crate) fn for_kind(kind: &str) -> Self {
        Scope::new(snake_case(kind))
    }

    /// Gives the scope another name; what was built inside it follows, except variables that exist already.
    pub fn rename(&self, name: impl Into<String>) {
        let text = name.into();
        self.node.faulty.store(!is_identifier(&text), Ordering::Relaxed);
        *self.node.name.write().unwrap_or_else(PoisonError::into_inner) = Name { text, chosen: true };
    }

    /// The name, without the scopes around it: `linear_0`.
    pub fn name(&self) -> String {
        self.node.name().text
    }

    /// The name, if the user gave one.
    pub(crate) fn chosen_name(&self) -> Option<String> {
        let name = self.node.name();
        name.chosen.then_some(name.text)
    }

    /// The absolute path: `mlp/linear_0`.
    pub fn path(&self) -> String {
        self.node.path()
    }

    /// Enters the scope on this thread until the guard is dropped, whatever scope is entered now.
    #[inline]
    pub fn enter(&self) -> Entered {
        let depth = DEPTH.get() + 1;
        DEPTH.set(depth);
        let place = Place(self.slot, self.slot.generation.load(Ordering::Relaxed));
        let before = CURRENT.replace(Some(place));
        Entered { before, depth, _on_this_thread: PhantomData }
    }

    /// Lets [`variables`](crate::Module::variables) return an empty list for this module.
    pub fn allow_empty_variables(&self) {
        self.node.allows_empty_variables.store(true, Ordering::Relaxed);
    }

    pub(crate) fn allows_empty_variables(&self) -> bool {
        self.node.allows_empty_variables.load(Ordering::Relaxed)
    }

    /// Identity of the module.
    pub(crate) fn id(&self) -> u64 {
        self.node.id
    }

    /// The error about a name that is not an identifier.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.node.faulty.load(Ordering::Relaxed) { Err(Error::Name { name: self.name() }) } else { Ok(()) }
    }

    /// A scope of the same name and another identity. `copy_of` maps a scope around it to its copy.
    pub(crate) fn duplicate(&self, copies: &mut ScopeCopies) -> Self {
        Scope::over(copies.copy(&self.node))
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        let node = {
            let mut node = self.slot.node.write().unwrap_or_else(PoisonError::into_inner);
            self.slot.generation.fetch_add(1, Ordering::Relaxed);
            node.take()
        };
        drop(node);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.slot);
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scope").field(&self.path()).finish()
    }
}

/// Copies of scopes by the identity of the original, so that children of a copied module lie in the copied scope.
#[derive(Default)]
pub(crate) struct ScopeCopies(std::collections::HashMap<u64, Arc<Node>>);

impl ScopeCopies {
    fn copy(&mut self, node: &Arc<Node>) -> Arc<Node> {
        if let Some(copy) = self.0.get(&node.id) {
            return copy.clone();
        }
        let copy = Arc::new(Node {
            id: next_id(),
            parent: node.parent.as_ref().map(|parent| self.copy(parent)),
            name: RwLock::new(node.name()),
            faulty: AtomicBool::new(node.faulty.load(Ordering::Relaxed)),
            allows_empty_variables: AtomicBool::new(node.allows_empty_variables.load(Ordering::Relaxed)),
        });
        self.0.insert(node.id, copy.clone());
        copy
    }
}

/// Keeps a scope entered; leaving it, also by a panic, restores the scope before.
#[must_use = "the scope is left as soon as this is dropped: write `let _in = scope.enter();`"]
pub struct Entered {
    before: Option<Place>,
    depth: u32,
    /// The scope belongs to the thread that entered it.
    _on_this_thread: PhantomData<*const ()>,
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").field("depth", &self.depth).finish()
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        // A guard dropped after one that was made earlier has nothing left to do: that one left both scopes.
        if DEPTH.get() >= self.depth {
            DEPTH.set(self.depth - 1);
            CURRENT.set(self.before);
        }
    }
}

fn current() -> Option<Arc<Node>> {
    CURRENT.get().and_then(Place::node)
}

/// The path of the scope this thread is in, empty at top level.
pub(crate) fn current_path() -> String {
    current().map_or_else(String::new, |node| node.path())
}

/// The identity of the scope this thread is in.
pub(crate) fn current_id() -> Option<u64> {
    current().map(|node| node.id)
}

/// The full name of a variable or module made now: the entered scope, a slash and `name`.
pub(crate) fn full_name(name: &str) -> String {
    match current() {
        Some(node) => format!("{}/{name}", node.path()),
        None => name.to_owned(),
    }
}

/// The name of a type without its path and its type arguments.
pub(crate) fn type_name<T: ?Sized>() -> &'static str {
    let full = std::any::type_name::<T>();
    let full = full.split_once('<').map_or(full, |(head, _)| head);
    full.rsplit_once("::").map_or(full, |(_, last)| last)
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `ParallelLinears` is `parallel_linears`: an underscore goes before an upper-case letter that follows a lower-case
/// letter or a digit, or that is followed by a lower-case letter and does not come first.
fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (i, &c) in chars.iter().enumerate() {
        let before = i.checked_sub(1).map(|i| chars[i]);
        let after_word = before.is_some_and(|c| c.is_lowercase() || c.is_numeric());
        let starts_word = i > 0 && chars.get(i + 1).is_some_and(|c| c.is_lowercase());
        if c.is_uppercase() && (after_word || starts_word) {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_become_the_names_of_the_reference() {
        let expected = [
            ("Linear", "linear"),
            ("Conv2D", "conv2_d"),
            ("Conv1DTranspose", "conv1_d_transpose"),
            ("DepthwiseConv2D", "depthwise_conv2_d"),
            ("Conv2DLSTM", "conv2_dlstm"),
            ("ParallelLinears", "parallel_linears"),
            ("LSTM", "lstm"),
            ("MLP", "mlp"),
            ("DeepRNN", "deep_rnn"),
            ("ResNet50", "res_net50"),
            ("MyHTTPServer", "my_http_server"),
            ("HTTPServer2Go", "http_server2_go"),
            ("ABCDef", "abc_def"),
            ("X1Y2", "x1_y2"),
            ("TFModule3D", "tf_module3_d"),
            ("aB", "a_b"),
            ("Foo_Bar", "foo__bar"),
            ("_Foo", "__foo"),
        ];
        for (class, name) in expected {
            assert_eq!(snake_case(class), name, "{class}");
        }
    }

    #[test]
    fn a_scope_of_a_generic_type_leaves_its_arguments_out() {
        struct DeepRNN<T>(PhantomData<T>);
        assert_eq!(Scope::of::<DeepRNN<Vec<u8>>>().name(), "deep_rnn");
    }

    #[test]
    fn only_identifiers_are_accepted_as_names() {
        for name in ["$Foo", "1abc", "a b", "a-b", "a/b", "a.b", "", "é"] {
            let message = Scope::new(name).check().unwrap_err().to_string();
            assert!(message.contains(&format!("{name:?}")) && message.contains("identifier"), "{message}");
        }
        for name in ["ok_1", "_x", "A"] {
            assert!(Scope::new(name).check().is_ok(), "{name}");
        }
    }

    #[test]
    fn scopes_are_absolute() {
        let net = Scope::new("net");
        let inner = {
            let _in = net.enter();
            Scope::new("linear")
        };
        let other = Scope::new("other");
        let _other = other.enter();
        assert_eq!(full_name("w"), "other/w");
        let _inner = inner.enter();
        assert_eq!(full_name("w"), "net/linear/w");
    }

    #[test]
    fn a_scope_is_left_after_a_panic_and_in_any_order() {
        let (a, b) = (Scope::new("a"), Scope::new("b"));
        let panicked = std::panic::catch_unwind(|| {
            let _in = a.enter();
            panic!("a panic of this test");
        });
        assert!(panicked.is_err());
        assert_eq!(full_name("w"), "w");
        let (first, second) = (a.enter(), b.enter());
        drop(first);
        drop(second);
        assert_eq!(full_name("w"), "w");
    }

    #[test]
    fn children_follow_when_their_parent_is_renamed() {
        let net = Scope::of::<u8>();
        let child = {
            let _in = net.enter();
            Scope::new("linear")
        };
        net.rename("stem");
        assert_eq!(child.path(), "stem/linear");
        assert_eq!((net.chosen_name().as_deref(), child.chosen_name()), (Some("stem"), None));
    }

    #[test]
    fn a_copied_child_lies_in_the_copied_parent() {
        let net = Scope::new("net");
        let child = {
            let _in = net.enter();
            Scope::new("linear")
        };
        let mut copies = ScopeCopies::default();
        let (child_copy, net_copy) = (child.duplicate(&mut copies), net.duplicate(&mut copies));
        net_copy.rename("target");
        assert_eq!((child.path(), child_copy.path()), ("net/linear".into(), "target/linear".into()));
        assert!(child.id() != child_copy.id() && net.id() != net_copy.id());
    }

    #[test]
    fn a_scope_that_is_dropped_while_it_is_entered_counts_no_more() {
        let entered = Scope::new("gone").enter();
        let _other = Scope::new("other");
        assert_eq!(full_name("w"), "w");
        drop(entered);
        assert_eq!(full_name("w"), "w");
    }

    #[test]
    fn a_child_keeps_its_path_when_its_parent_is_gone() {
        let child = {
            let net = Scope::new("net");
            let _in = net.enter();
            Scope::new("linear")
        };
        assert_eq!(child.path(), "net/linear");
    }

    #[test]
    fn identities_differ_across_threads() {
        let mut ids: Vec<u64> = (0..4)
            .map(|_| std::thread::spawn(|| (0..3000).map(|_| next_id()).collect::<Vec<_>>()))
            .collect::<Vec<_>>()
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 12_000);
    }
}
