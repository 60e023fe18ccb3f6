//! What a restore did, and what it left undone.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use super::binding::{Binding, Match};
use super::graph::ObjectGraph;
use super::live::{Live, Object, Root};
use super::snapshot::SAVE_COUNTER;
use crate::error::{Error, Result};
use crate::module::nearest;

/// What became of a restore: which values of the file found their objects, and which objects found a value.
///
/// Values of parts that are made later wait for them; so the answer may be another one after the first call of a module.
/// When it is dropped, values that nothing took and for which nothing is left to be made are reported through `log`, unless they
/// were [expected](RestoreStatus::expect_partial).
#[must_use = "check what was restored: assert_consumed, assert_existing_objects_matched or expect_partial"]
pub struct RestoreStatus<'c> {
    root: Root<'c>,
    path: String,
    graph: ObjectGraph,
    /// By node of the file: whether it was paired, with an object or with one that is made later.
    paired: Vec<bool>,
    is_quiet: AtomicBool,
}

/// The paths on both sides: of the file, and of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// Values of the file that are in the program.
    pub restored: Vec<String>,
    /// Values of the file that wait for a part which is not made yet.
    pub waiting: Vec<String>,
    /// Values of the file that nothing in the program takes.
    pub unused: Vec<String>,
    /// Variables and plain state of the program that the file has no value for.
    pub missing: Vec<String>,
}

impl RestoreReport {
    /// Whether every value of the file is in the program, and everything in the program has a value of the file.
    pub fn is_complete(&self) -> bool {
        self.waiting.is_empty() && self.unused.is_empty() && self.missing.is_empty()
    }

    /// `path (is it other?)` for each.
    fn hinted(paths: &[String], others: &[String]) -> String {
        let hint = |path: &String| match nearest(path, others) {
            Some(other) => format!("{path} (near {other})"),
            None => path.clone(),
        };
        paths.iter().map(hint).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for RestoreReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values restored", self.restored.len())?;
        if !self.waiting.is_empty() {
            write!(f, "; waiting for what is not made yet: {}", self.waiting.join(", "))?;
        }
        if !self.unused.is_empty() {
            write!(f, "; only in the file: {}", Self::hinted(&self.unused, &self.missing))?;
        }
        if !self.missing.is_empty() {
            write!(f, "; only in the program: {}", Self::hinted(&self.missing, &self.unused))?;
        }
        Ok(())
    }
}

impl<'c> RestoreStatus<'c> {
    pub(crate) fn new(root: Root<'c>, path: String, graph: ObjectGraph, binding: &Binding) -> Self {
        let paired = binding.matches.iter().map(|&found| found != Match::None).collect();
        let is_quiet = AtomicBool::new(false);
        RestoreStatus { root, path, graph, paired, is_quiet }
    }

    /// The paths on both sides at this moment.
    pub fn report(&self) -> RestoreReport {
        let live = Live::explore(&self.root);
        let binding = Binding::new(&self.graph, &live);
        let routes = self.graph.routes();
        let mut report = RestoreReport::default();
        for (saved, node) in self.graph.nodes.iter().enumerate() {
            if node.attributes.is_empty() {
                continue;
            }
            let path = routes.path(saved).unwrap_or_else(|| format!("node {saved}, to which nothing leads"));
            let has_value =
                |number: usize| matches!(live.nodes[number].object, Object::Variable(_) | Object::State(_));
            match binding.matches[saved] {
                Match::Live(number) if self.paired[saved] && has_value(number) => report.restored.push(path),
                Match::Later(_) if self.paired[saved] => report.waiting.push(path),
                _ => report.unused.push(path),
            }
        }
        for (number, node) in live.nodes.iter().enumerate() {
            let has_value = matches!(node.object, Object::Variable(_) | Object::State(_));
            if has_value && !binding.found[number] {
                report.missing.push(live.path(number));
            }
        }
        for list in [&mut report.restored, &mut report.waiting, &mut report.unused, &mut report.missing] {
            list.sort();
        }
        report
    }

    /// Every value of the file is in the program, and every variable in the program has a value of the file.
    ///
    /// # Errors
    /// It is not so; all paths are listed, with near ones of the other side.
    pub fn assert_consumed(&self) -> Result<&Self> {
        let report = self.report();
        if report.is_complete() {
            return Ok(self);
        }
        let cure = "call the modules once if values wait for them, track what is missing, or ask \
                    assert_existing_objects_matched or expect_partial instead";
        Err(self.refuse("assert_consumed", report.to_string(), cure))
    }

    /// Every variable and plain state that the program has by now got a value of the file. The file may hold more.
    ///
    /// # Errors
    /// It is not so; all paths are listed.
    pub fn assert_existing_objects_matched(&self) -> Result<&Self> {
        let report = self.report();
        if report.missing.is_empty() {
            return Ok(self);
        }
        let missing = RestoreReport::hinted(&report.missing, &report.unused);
        let cure = "restore a file that holds them, or ask expect_partial instead";
        Err(self.refuse("assert_existing_objects_matched", format!("only in the program: {missing}"), cure))
    }

    /// Something beside the counter of saves was found in the file.
    ///
    /// # Errors
    /// Nothing was.
    pub fn assert_nontrivial_match(&self) -> Result<&Self> {
        let report = self.report();
        let found = [&report.restored, &report.waiting].into_iter().flatten();
        if found.into_iter().any(|path| path != SAVE_COUNTER) {
            return Ok(self);
        }
        let cure = "track objects under the names that they were saved with";
        Err(self.refuse("assert_nontrivial_match", format!("nothing was matched: {report}"), cure))
    }

    /// The file may hold what the program has not, and the reverse: nothing is reported when this is dropped.
    pub fn expect_partial(&self) -> &Self {
        self.is_quiet.store(true, Ordering::Relaxed);
        self
    }

    fn refuse(&self, op: &'static str, problem: String, cure: &str) -> Error {
        self.expect_partial(); // it is reported here
        Error::usage(op, format!("{}: {problem}", self.path), cure)
    }
}

impl Drop for RestoreStatus<'_> {
    fn drop(&mut self) {
        if *self.is_quiet.get_mut() || std::thread::panicking() {
            return;
        }
        let report = self.report();
        let left: Vec<&String> = report.waiting.iter().chain(&report.unused).collect();
        if !left.is_empty() {
            let path = &self.path;
            log::warn!(
                "{path}: values were not taken; call expect_partial on the status if that is intended"
            );
            left.iter().for_each(|left| log::warn!("{path}: no object took {left}"));
        }
    }
}

impl fmt::Debug for RestoreStatus<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RestoreStatus({}: {})", self.path, self.report())
    }
}
