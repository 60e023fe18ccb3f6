//! What the run says in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::case::Case;
use crate::check::Findings;

/// Problems of one case that are told in full.
const SHOWN: usize = 5;

/// Counts by family, and all failures.
#[derive(Default)]
pub struct Report {
    families: BTreeMap<String, Family>,
    mended: Vec<String>,
    missing: Vec<String>,
    failures: Vec<String>,
}

#[derive(Default)]
struct Family {
    passed: usize,
    missing: usize,
    all: usize,
}

impl Report {
    /// Adds a case; without findings its family is not built.
    pub fn add(&mut self, case: &Case, findings: Option<Findings>) {
        let family = self.families.entry(case.family()).or_default();
        family.all += 1;
        let Some(findings) = findings else {
            family.missing += 1;
            return;
        };
        family.passed += usize::from(findings.problems.is_empty());
        let of = |list: Vec<String>| {
            list.into_iter().map(|what| format!("{}: {what}", case.id)).collect::<Vec<_>>()
        };
        let mut problems = findings.problems;
        if problems.len() > SHOWN {
            let more = problems.len() - SHOWN;
            problems.truncate(SHOWN);
            problems.push(format!("and {more} more"));
        }
        self.failures.extend(of(problems));
        self.mended.extend(of(findings.mended));
        self.missing.extend(findings.missing);
    }

    /// Records a case that could not be read.
    pub fn broken(&mut self, problem: String) {
        self.failures.push(problem);
    }

    /// Families of which some cases can be built and others not.
    fn partial(&self) -> Vec<String> {
        let partial = self.families.iter().filter(|(_, family)| (1..family.all).contains(&family.missing));
        partial.map(|(name, family)| format!("{name}: {} cases cannot be built", family.missing)).collect()
    }

    /// Whether everything was built and found right.
    pub fn is_good(&self) -> bool {
        let is_whole = self.missing.is_empty() && self.families.values().all(|family| family.missing == 0);
        is_whole && self.failures.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let partial = self.partial();
        let mut missing: BTreeSet<&str> = self.missing.iter().map(String::as_str).collect();
        let (mut passed, mut all) = (0, 0);
        for (name, family) in &self.families {
            passed += family.passed;
            all += family.all;
            if family.missing == family.all {
                missing.insert(name);
            } else {
                writeln!(f, "{name}: {} of {}", family.passed, family.all)?;
            }
        }
        for line in &self.mended {
            writeln!(f, "mended {line}")?;
        }
        writeln!(f, "mended: {}", self.mended.len())?;
        let failures: Vec<&String> = self.failures.iter().chain(&partial).collect();
        for line in &failures {
            writeln!(f, "FAILED {line}")?;
        }
        writeln!(f, "all: {passed} of {all} cases, {} problems", failures.len())?;
        if !missing.is_empty() {
            writeln!(f, "missing: {}", missing.into_iter().collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}
