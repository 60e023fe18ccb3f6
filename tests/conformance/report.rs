//! What the run says in the end.

use std::collections::BTreeMap;
use std::fmt;

use crate::case::Case;

/// What became of a case.
pub enum Verdict {
    Passed,
    /// We do something better than the reference, which was checked; why.
    Mended(&'static str),
    Missing,
    Failed(Vec<String>),
}

/// Counts by family, and all failures.
#[derive(Default)]
pub struct Report {
    families: BTreeMap<String, Family>,
    mended: Vec<String>,
    failures: Vec<String>,
}

#[derive(Default)]
struct Family {
    passed: usize,
    missing: usize,
    all: usize,
}

impl Report {
    pub fn add(&mut self, case: &Case, verdict: Verdict) {
        let family = self.families.entry(case.family()).or_default();
        family.all += 1;
        match verdict {
            Verdict::Passed => family.passed += 1,
            Verdict::Missing => family.missing += 1,
            Verdict::Mended(why) => {
                family.passed += 1;
                self.mended.push(format!("{}: {why}", case.id));
            }
            Verdict::Failed(problems) => {
                self.failures.extend(problems.into_iter().map(|problem| format!("{}: {problem}", case.id)));
            }
        }
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

    pub fn is_good(&self) -> bool {
        self.failures.is_empty() && self.partial().is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let partial = self.partial();
        let mut missing = Vec::new();
        let (mut passed, mut all) = (0, 0);
        for (name, family) in &self.families {
            passed += family.passed;
            all += family.all;
            if family.missing == family.all {
                missing.push(name.as_str());
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
            writeln!(f, "missing: {}", missing.join(", "))?;
        }
        Ok(())
    }
}
