//! Comparison with the numbers of a case.

use std::cell::RefCell;
use std::collections::BTreeSet;

use couplet::{DType, Tensor};

use crate::case::Case;

/// Compares what was computed with what a case holds, and collects what differs.
pub struct Check<'a> {
    pub case: &'a Case,
    problems: RefCell<Vec<String>>,
    mended: RefCell<Vec<String>>,
    missing: RefCell<Vec<String>>,
    compared: RefCell<BTreeSet<String>>,
}

/// What a case came to.
#[derive(Default)]
pub struct Findings {
    pub problems: Vec<String>,
    /// What we do better than the reference.
    pub mended: Vec<String>,
    /// What is not built yet.
    pub missing: Vec<String>,
}

/// `max |got - want| <= atol + rtol * max |want|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    pub rtol: f64,
    pub atol: f64,
}

impl Tolerance {
    pub const EXACT: Tolerance = Tolerance { rtol: 0.0, atol: 0.0 };
}

/// Arrays that say what must come out. The others are inputs.
const RESULTS: [&str; 10] =
    ["out", "grad", "grad2", "grad_slices", "after", "grad0", "loss", "grad_norm", "final", "eval"];

/// The tolerance that the fixtures' README gives for an array.
pub fn tolerance(case: &Case, key: &str) -> Tolerance {
    let kind = key.split('/').next().unwrap_or_default();
    let group = case.group();
    if case.is_f64() {
        let rtol = match group {
            // The reference rounds some constants to f32 there; exact ones are right.
            "optim" if case.quirk => 1e-7,
            "train" if case.quirk => 1e-6,
            "nets" => 1e-10,
            "train" => 1e-9,
            _ => 1e-12,
        };
        return Tolerance { rtol, atol: 1e-13 };
    }
    let (rtol, atol) = match (group, kind) {
        ("modules" | "nets", "after") => (1e-4, 1e-6),
        ("nets", "grad") => (1e-3, 1e-5),
        ("nets", _) => (5e-5, 1e-5),
        ("modules" | "rnn", _) => (1e-5, 2e-6),
        ("train", "loss" | "grad_norm") => (2e-5, 1e-6),
        ("train", _) => (1e-4, 1e-5),
        _ => (5e-6, 1e-6),
    };
    Tolerance { rtol, atol }
}

impl<'a> Check<'a> {
    pub fn new(case: &'a Case) -> Self {
        Check {
            case,
            problems: RefCell::default(),
            mended: RefCell::default(),
            missing: RefCell::default(),
            compared: RefCell::default(),
        }
    }

    /// Records that something is wrong.
    pub fn fail(&self, problem: impl Into<String>) {
        self.problems.borrow_mut().push(problem.into());
    }

    /// Records that we do something better than the reference, which was checked.
    pub fn mended(&self, what: String) {
        self.mended.borrow_mut().push(what);
    }

    /// Records that a row of a table needs something that is not built yet.
    pub fn missing(&self, what: String) {
        self.missing.borrow_mut().push(what);
    }

    /// Records a problem unless the condition holds.
    pub fn that(&self, condition: bool, problem: impl FnOnce() -> String) {
        if !condition {
            self.fail(problem());
        }
    }

    /// Records a problem unless the two are equal.
    pub fn equal<T: PartialEq + std::fmt::Debug>(&self, what: &str, got: T, want: T) {
        self.that(got == want, || format!("{what} is {got:?}, expected {want:?}"));
    }

    /// Compares a tensor with an array of the case, within the tolerance for it.
    pub fn tensor(&self, key: &str, got: &Tensor) {
        self.tensor_within(key, got, tolerance(self.case, key), |_| false);
    }

    /// The same; elements that are `free` may differ.
    pub fn tensor_but(&self, key: &str, got: &Tensor, free: impl Fn(usize) -> bool) {
        self.tensor_within(key, got, tolerance(self.case, key), free);
    }

    /// Compares a tensor with an array of the case, within a tolerance.
    pub fn tensor_within(&self, key: &str, got: &Tensor, within: Tolerance, free: impl Fn(usize) -> bool) {
        self.saw(key);
        let Some(want) = self.case.arrays.get(key) else {
            return self.fail(format!("{key}: the case has no such array"));
        };
        let noise = self.case.f32_noise.get(key).map_or(0.0, |noise| 16.0 * noise[0]);
        if let Err(problem) = compare(got, want, within, noise, free) {
            self.fail(format!("{key}: {problem}"));
        }
    }

    /// Says that an array was looked at.
    pub fn saw(&self, key: &str) {
        self.compared.borrow_mut().insert(key.to_owned());
    }

    /// Whether an array of the case belongs to the results, below an optional prefix such as `0/`.
    fn is_result(key: &str) -> bool {
        RESULTS.contains(&key.split('/').next().unwrap_or_default())
    }

    /// What was found; arrays that were never looked at are a problem.
    pub fn finish(self) -> Findings {
        let mut problems = self.problems.into_inner();
        if problems.is_empty() {
            let compared = self.compared.into_inner();
            let forgotten =
                self.case.arrays.keys().filter(|key| Self::is_result(key) && !compared.contains(*key));
            problems.extend(forgotten.map(|key| format!("{key}: never compared")));
        }
        Findings { problems, mended: self.mended.into_inner(), missing: self.missing.into_inner() }
    }
}

/// The elements as `f64`, in row-major order.
pub fn floats(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).and_then(|x| x.to_vec()).expect("every dtype can be cast to f64")
}

/// The elements of an integer or bool tensor.
fn integers(x: &Tensor) -> Vec<i64> {
    x.cast(DType::I64).and_then(|x| x.to_vec()).expect("every integer dtype can be cast to i64")
}

/// Whether two tensors are equal within a tolerance, or within `noise` if that is more.
///
/// The error of an array is measured against its own largest finite value. What is not finite must be the same on both
/// sides, element by element.
pub fn compare(
    got: &Tensor,
    want: &Tensor,
    within: Tolerance,
    noise: f64,
    free: impl Fn(usize) -> bool,
) -> Result<(), String> {
    if got.shape() != want.shape() {
        return Err(format!("shape {}, expected {}", got.shape(), want.shape()));
    }
    if got.dtype() != want.dtype() {
        return Err(format!("dtype {}, expected {}", got.dtype(), want.dtype()));
    }
    if !want.dtype().is_float() {
        let (got, want) = (integers(got), integers(want));
        return match got.iter().zip(&want).position(|(got, want)| got != want) {
            None => Ok(()),
            Some(i) => Err(format!("element {i} is {}, expected {}", got[i], want[i])),
        };
    }
    let (got, want) = (floats(got), floats(want));
    let largest =
        want.iter().filter(|want| want.is_finite()).fold(0.0f64, |largest, want| largest.max(want.abs()));
    let allowed = (within.atol + within.rtol * largest).max(noise);
    let mut worst = (0.0, None);
    for (i, (&got, &want)) in got.iter().zip(&want).enumerate() {
        if free(i) {
            continue;
        }
        if !got.is_finite() || !want.is_finite() {
            if got != want && !(got.is_nan() && want.is_nan()) {
                return Err(format!("element {i} is {got}, expected {want}"));
            }
            continue;
        }
        let error = (got - want).abs();
        if error > allowed && error > worst.0 {
            worst = (error, Some((i, got, want)));
        }
    }
    match worst {
        (error, Some((i, got, want))) => Err(format!(
            "element {i} is {got:e}, expected {want:e}: off by {error:.2e}, allowed {allowed:.2e}"
        )),
        _ => Ok(()),
    }
}
