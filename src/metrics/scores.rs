//! Scores of classes beside the right ones, as the metrics of classifiers take them.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Checks scores `[.., classes]` and labels `[..]`, and gives the number of classes.
pub(super) fn check(op: &'static str, scores: &Tensor, labels: &Tensor) -> Result<usize> {
    if !scores.dtype().is_float() {
        return Err(Error::dtype(op, "the scores", scores.dtype(), "a float dtype"));
    }
    if !labels.dtype().is_integer() {
        return Err(Error::dtype(op, "the labels", labels.dtype(), "an integer dtype"));
    }
    let Some((&classes, batch)) = scores.shape().split_last().filter(|(classes, _)| **classes > 0) else {
        return Err(Error::shape(op, "the scores", scores.shape(), "[.., classes], with one class or more"));
    };
    if labels.shape()[..] != *batch {
        let expected = format!("{batch:?}, that of the scores without classes");
        return Err(Error::shape(op, "the labels", labels.shape(), expected));
    }
    if labels.size() > 0 {
        for extreme in [labels.min()?, labels.max()?] {
            let label = extreme.cast(DType::I64)?.item::<i64>()?;
            if !(0..classes as i64).contains(&label) {
                return Err(Error::Index { op, what: "label".into(), index: label, size: classes });
            }
        }
    }
    Ok(classes)
}

/// The error of a value that is asked for before anything was counted.
pub(super) fn nothing_yet(op: &'static str) -> Error {
    Error::usage(op, "there was no value yet", "call update first")
}
