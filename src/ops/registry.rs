//! The one list of ops: names, decoders and sample inputs.

use std::sync::RwLock;

use serde::de::DeserializeOwned;

use crate::codec;
use crate::error::{Error, Result};

use super::op::{Binary, IntoOp, NarrowBinary, NarrowUnary, Op, Unary};

/// How the elements of a sample input are drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum SampleInput {
    /// Floats of this shape, uniform in `low..high`; differentiated.
    Float {
        /// Shape of the input.
        shape: Vec<usize>,
        /// Lower end of the values.
        low: f64,
        /// Upper end of the values.
        high: f64,
    },
    /// Whole numbers of this shape in `0..below`, as `i64`; not differentiated.
    Index {
        /// Shape of the input.
        shape: Vec<usize>,
        /// First value too large.
        below: i64,
    },
    /// Bools of this shape; not differentiated.
    Bool {
        /// Shape of the input.
        shape: Vec<usize>,
    },
}

impl SampleInput {
    /// Floats uniform in -2..2.
    pub fn float(shape: &[usize]) -> Self {
        SampleInput::within(shape, -2.0, 2.0)
    }

    /// Floats uniform in `low..high`.
    pub fn within(shape: &[usize], low: f64, high: f64) -> Self {
        SampleInput::Float { shape: shape.to_vec(), low, high }
    }
}

/// One application that tests run: an op with its attributes, and what to feed it.
#[derive(Debug)]
pub struct Sample {
    /// The op.
    pub op: Box<dyn Op>,
    /// Its inputs.
    pub inputs: Vec<SampleInput>,
}

impl Sample {
    /// A sample of an op of any kind.
    pub fn new<Kind, O: IntoOp<Kind>>(op: O, inputs: impl Into<Vec<SampleInput>>) -> Self {
        Sample { op: Box::new(op.into_op()), inputs: inputs.into() }
    }
}

/// An op that stands in the list.
pub trait Listed {
    /// Applications that together reach every branch of the forward and the gradient.
    fn samples() -> Vec<Sample>;
}

/// One line of the list of ops.
#[derive(Debug, Clone, Copy)]
pub struct OpEntry {
    /// The op's name.
    pub name: &'static str,
    /// Makes the op from the bytes of its attributes.
    pub decode: fn(&[u8]) -> Result<Box<dyn Op>>,
    /// Applications that tests run.
    pub samples: fn() -> Vec<Sample>,
}

impl OpEntry {
    /// The line of an op with the narrow trait [`Unary`].
    pub const fn unary<O: Unary + Listed>() -> Self {
        let decode = |bytes: &[u8]| -> Result<Box<dyn Op>> {
            Ok(Box::new(IntoOp::<NarrowUnary>::into_op(codec::decode::<O>(bytes)?)))
        };
        OpEntry { name: O::NAME, decode, samples: O::samples }
    }

    /// The line of an op with the narrow trait [`Binary`].
    pub const fn binary<O: Binary + Listed>() -> Self {
        let decode = |bytes: &[u8]| -> Result<Box<dyn Op>> {
            Ok(Box::new(IntoOp::<NarrowBinary>::into_op(codec::decode::<O>(bytes)?)))
        };
        OpEntry { name: O::NAME, decode, samples: O::samples }
    }

    /// The line of an op with the wide trait [`Op`]; `name` is what its [`Op::name`] says.
    pub const fn wide<O: Op + DeserializeOwned + Listed>(name: &'static str) -> Self {
        let decode = |bytes: &[u8]| -> Result<Box<dyn Op>> { Ok(Box::new(codec::decode::<O>(bytes)?)) };
        OpEntry { name, decode, samples: O::samples }
    }
}

static REGISTERED: RwLock<Vec<OpEntry>> = RwLock::new(Vec::new());

/// Adds an op of your own to the list, so that exported models can name it.
///
/// # Errors
/// The name is taken.
pub fn register_op(entry: OpEntry) -> Result<()> {
    let mut registered = REGISTERED.write().unwrap_or_else(|e| e.into_inner());
    if super::OPS.iter().chain(registered.iter()).any(|e| e.name == entry.name) {
        return Err(Error::argument("register_op", "name", entry.name, "a name that no other op has"));
    }
    registered.push(entry);
    Ok(())
}

/// All ops: the built-in ones in the order of their list, then the registered ones.
pub fn op_list() -> Vec<OpEntry> {
    let registered = REGISTERED.read().unwrap_or_else(|e| e.into_inner());
    super::OPS.iter().chain(registered.iter()).copied().collect()
}
