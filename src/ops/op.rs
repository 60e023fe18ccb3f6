//! The op as a value: its forward, what it saves and its gradient.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor, thread_tag};

use super::gradient::Gradient;

/// A set of input or output positions of one op, up to 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mask(u64);

impl Mask {
    /// No position.
    pub const NONE: Mask = Mask(0);
    /// Every position.
    pub const ALL: Mask = Mask(u64::MAX);

    /// The one position `index`.
    pub const fn only(index: usize) -> Mask {
        if index < 64 { Mask(1 << index) } else { Mask(0) }
    }

    /// Whether `index` is in the set; positions from 64 on are in it exactly when the set is [`Mask::ALL`].
    pub const fn has(self, index: usize) -> bool {
        if index < 64 { self.0 & (1 << index) != 0 } else { self.0 == u64::MAX }
    }

    /// Both sets together.
    #[must_use]
    pub const fn and(self, other: Mask) -> Mask {
        Mask(self.0 | other.0)
    }

    /// Whether no position is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What the tape keeps of one application for the gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Saves {
    /// Positions of inputs to keep.
    pub inputs: Mask,
    /// Positions of outputs to keep.
    pub outputs: Mask,
}

impl Saves {
    /// Keeps nothing (beyond the extra tensors that the forward itself saves).
    pub const NOTHING: Saves = Saves { inputs: Mask::NONE, outputs: Mask::NONE };
    /// Keeps all inputs.
    pub const INPUTS: Saves = Saves { inputs: Mask::ALL, outputs: Mask::NONE };
    /// Keeps the first output.
    pub const OUTPUT: Saves = Saves { inputs: Mask::NONE, outputs: Mask::only(0) };
    /// Keeps all inputs and the first output.
    pub const INPUTS_AND_OUTPUT: Saves = Saves { inputs: Mask::ALL, outputs: Mask::only(0) };

    /// Keeps the inputs in `inputs` alone.
    pub const fn inputs(inputs: Mask) -> Saves {
        Saves { inputs, outputs: Mask::NONE }
    }
}

/// One input of an application: borrowed, or handed over so that its memory may be reused.
#[derive(Debug)]
pub enum Input<'a> {
    /// The caller keeps the tensor.
    Ref(&'a Tensor),
    /// The caller gave the tensor away.
    Own(Tensor),
}

impl<'a> From<&'a Tensor> for Input<'a> {
    fn from(x: &'a Tensor) -> Self {
        Input::Ref(x)
    }
}

impl From<Tensor> for Input<'_> {
    fn from(x: Tensor) -> Self {
        Input::Own(x)
    }
}

impl Input<'_> {
    pub(crate) fn tensor(&self) -> &Tensor {
        match self {
            Input::Ref(x) => x,
            Input::Own(x) => x,
        }
    }

    fn take(self) -> Tensor {
        match self {
            Input::Ref(x) => x.clone(),
            Input::Own(x) => x,
        }
    }
}

/// The inputs of one application.
#[derive(Debug)]
pub struct Inputs<'a, 'b> {
    list: &'a mut [Option<Input<'b>>],
}

impl<'a, 'b> Inputs<'a, 'b> {
    pub(crate) fn new(list: &'a mut [Option<Input<'b>>]) -> Self {
        Inputs { list }
    }

    /// Number of inputs.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Input `index`.
    ///
    /// # Errors
    /// There is no such input, or it was taken.
    pub fn get(&self, index: usize) -> Result<&Tensor> {
        self.list.get(index).and_then(|i| i.as_ref().map(Input::tensor)).ok_or_else(|| missing(index))
    }

    /// Input `index`, by value: its buffer may be written to if no other handle shares it.
    ///
    /// # Errors
    /// There is no such input, or it was taken.
    pub fn take(&mut self, index: usize) -> Result<Tensor> {
        self.list.get_mut(index).and_then(Option::take).map(Input::take).ok_or_else(|| missing(index))
    }
}

fn missing(index: usize) -> Error {
    Error::usage("apply", format!("input {index} is missing"), "give the op all its inputs")
}

/// What a forward yields: the outputs, and tensors that only the gradient needs.
#[derive(Debug)]
pub struct Computed {
    pub(crate) outputs: Outputs,
    pub(crate) extra: Vec<Tensor>,
}

#[derive(Debug)]
pub(crate) enum Outputs {
    One(Tensor),
    Many(Vec<Tensor>),
}

impl Outputs {
    pub(crate) fn as_slice(&self) -> &[Tensor] {
        match self {
            Outputs::One(y) => std::slice::from_ref(y),
            Outputs::Many(list) => list,
        }
    }

    /// Gives outputs that are an input handed back (or overwritten) an identity of their own: every output is a
    /// new value to the tape.
    pub(crate) fn made_since(self, start: u64) -> Self {
        let renew =
            |y: Tensor| if y.id().index < start || y.id().thread != thread_tag() { y.fresh() } else { y };
        match self {
            Outputs::One(y) => Outputs::One(renew(y)),
            Outputs::Many(list) => Outputs::Many(list.into_iter().map(renew).collect()),
        }
    }
}

impl Computed {
    /// Several outputs.
    pub fn many(outputs: Vec<Tensor>) -> Self {
        Computed { outputs: Outputs::Many(outputs), extra: Vec::new() }
    }

    /// Keeps `tensor` for the gradient, where it is [`Saved::extra`].
    #[must_use]
    pub fn saving(mut self, tensor: Tensor) -> Self {
        self.extra.push(tensor);
        self
    }
}

impl From<Tensor> for Computed {
    fn from(y: Tensor) -> Self {
        Computed { outputs: Outputs::One(y), extra: Vec::new() }
    }
}

/// What was kept of one application.
#[derive(Debug)]
pub struct Saved {
    tensors: Box<[Tensor]>,
    inputs: Mask,
    outputs: Mask,
    /// Where the outputs and the extra tensors begin.
    starts: (u16, u16),
}

impl Saved {
    pub(crate) fn nothing() -> Self {
        Saved { tensors: Box::new([]), inputs: Mask::NONE, outputs: Mask::NONE, starts: (0, 0) }
    }

    pub(crate) fn new(kept: Vec<Tensor>, saves: Saves, starts: (u16, u16)) -> Self {
        Saved { tensors: kept.into_boxed_slice(), inputs: saves.inputs, outputs: saves.outputs, starts }
    }

    fn position(mask: Mask, index: usize) -> Option<usize> {
        mask.has(index).then(|| (0..index).filter(|&i| mask.has(i)).count())
    }

    /// Input `index`.
    ///
    /// # Errors
    /// The op's [`Op::saves`] did not ask for it.
    pub fn input(&self, index: usize) -> Result<&Tensor> {
        Self::position(self.inputs, index)
            .filter(|&at| at < usize::from(self.starts.0))
            .and_then(|at| self.tensors.get(at))
            .ok_or_else(|| {
                Error::usage("gradient", format!("input {index} was not saved"), "add it to `saves`")
            })
    }

    /// Output `index`.
    ///
    /// # Errors
    /// The op's [`Op::saves`] did not ask for it.
    pub fn output_at(&self, index: usize) -> Result<&Tensor> {
        Self::position(self.outputs, index)
            .map(|at| at + usize::from(self.starts.0))
            .filter(|&at| at < usize::from(self.starts.1))
            .and_then(|at| self.tensors.get(at))
            .ok_or_else(|| {
                Error::usage("gradient", format!("output {index} was not saved"), "add it to `saves`")
            })
    }

    /// The first output.
    ///
    /// # Errors
    /// The op's [`Op::saves`] did not ask for it.
    pub fn output(&self) -> Result<&Tensor> {
        self.output_at(0)
    }

    /// Tensor number `index` that the forward saved with [`Computed::saving`].
    ///
    /// # Errors
    /// The forward saved fewer.
    pub fn extra(&self, index: usize) -> Result<&Tensor> {
        self.tensors.get(usize::from(self.starts.1) + index).ok_or_else(|| {
            Error::usage(
                "gradient",
                format!("extra tensor {index} was not saved"),
                "call `saving` in forward",
            )
        })
    }
}

/// The attributes of an op as bytes; implemented for every serialisable type.
pub trait Attributes {
    /// Encodes the attributes, for exported models.
    ///
    /// # Errors
    /// The op holds something that cannot be written, such as a closure.
    fn attributes(&self) -> Result<Vec<u8>>;
}

impl<T: Serialize> Attributes for T {
    fn attributes(&self) -> Result<Vec<u8>> {
        codec::encode(self)
    }
}

/// A differentiable operation with any number of inputs and outputs.
///
/// An op is a plain value: a struct of serialisable attributes. [`apply`](super::apply) runs it and, while a tape
/// records, keeps it there. Most ops fit one of the narrow traits [`Unary`] and [`Binary`].
///
/// A gradient is written with tensor methods, so that it is itself recorded when a second tape watches; it returns
/// gradients of the shape of the *output* where an input was broadcast: the tape sums over broadcast axes, and it
/// adds up what several uses of one tensor receive.
pub trait Op: Attributes + Any + fmt::Debug + Send + Sync {
    /// The op's name in messages, exported models and graphs.
    fn name(&self) -> &'static str;

    /// What to keep for the gradient, given the inputs that a tape tracks. Default: nothing.
    fn saves(&self, tracked: Mask) -> Saves {
        let _ = tracked;
        Saves::NOTHING
    }

    /// Computes the outputs.
    ///
    /// # Errors
    /// The inputs do not fit; nothing was changed.
    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed>;

    /// Multiply-adds of one forward, given the shapes of the inputs that are there and of the outputs. Products of matrices
    /// and convolutions count; the rest is small beside them.
    fn multiply_adds(&self, inputs: &[Shape], outputs: &[Shape]) -> u64 {
        let _ = (inputs, outputs);
        0
    }

    /// Gradients of the inputs in `needs`, from those of the outputs (`None`: that output had no influence).
    ///
    /// The list has one entry for each input; `None` where there is no gradient or none was asked for.
    ///
    /// # Errors
    /// A computation in it failed.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>>;

    /// [`gradient`](Op::gradient), handed over input by input; the narrow traits save a list so.
    ///
    /// # Errors
    /// As there.
    fn each_gradient(
        &self,
        saved: &Saved,
        dy: &[Option<Tensor>],
        needs: Mask,
        inputs: usize,
        take: &mut dyn FnMut(usize, Gradient) -> Result<()>,
    ) -> Result<()> {
        let gradients = self.gradient(saved, dy, needs)?;
        if gradients.len() != inputs {
            let problem = format!("its gradient returned {} entries for {inputs} inputs", gradients.len());
            return Err(Error::usage(self.name(), problem, "return one entry for each input"));
        }
        for (i, gradient) in gradients.into_iter().enumerate() {
            if let Some(gradient) = gradient {
                take(i, gradient)?;
            }
        }
        Ok(())
    }
}

/// An op of one input and one output.
pub trait Unary: Serialize + DeserializeOwned + fmt::Debug + Send + Sync + 'static {
    /// The op's name.
    const NAME: &'static str;
    /// What the gradient needs.
    const SAVES: Saves;

    /// `y` from `x`; `x` may be overwritten if nobody else holds its memory.
    ///
    /// # Errors
    /// `x` does not fit.
    fn forward(&self, x: Tensor) -> Result<Tensor>;

    /// `dx` from `dy`.
    ///
    /// # Errors
    /// A computation in it failed.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor>;
}

/// An op of two inputs and one output, broadcast against each other.
pub trait Binary: Serialize + DeserializeOwned + fmt::Debug + Send + Sync + 'static {
    /// The op's name.
    const NAME: &'static str;

    /// What the gradient needs, given the inputs that a tape tracks.
    fn saves(&self, tracked: Mask) -> Saves;

    /// `y` from `a` and `b`; either may be overwritten if nobody else holds its memory.
    ///
    /// # Errors
    /// The inputs do not fit.
    fn forward(&self, a: Tensor, b: Tensor) -> Result<Tensor>;

    /// Multiply-adds of one forward, given the shapes of `a`, `b` and `y`. Default: none worth counting.
    fn multiply_adds(&self, a: &Shape, b: &Shape, y: &Shape) -> u64 {
        let _ = (a, b, y);
        0
    }

    /// `da` and `db` from `dy`, for those inputs that are in `needs`.
    ///
    /// # Errors
    /// A computation in it failed.
    fn gradient(&self, saved: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]>;
}

/// Makes one kind of op out of another; the parameter tells the kinds apart.
pub trait IntoOp<Kind> {
    /// The op itself.
    type Op: Op;
    /// Wraps the op.
    fn into_op(self) -> Self::Op;
}

/// Kind of types that implement [`Op`] directly.
#[derive(Debug)]
pub struct Wide;
/// Kind of types that implement [`Unary`].
#[derive(Debug)]
pub struct NarrowUnary;
/// Kind of types that implement [`Binary`].
#[derive(Debug)]
pub struct NarrowBinary;

impl<T: Op> IntoOp<Wide> for T {
    type Op = T;
    fn into_op(self) -> T {
        self
    }
}

impl<T: Unary> IntoOp<NarrowUnary> for T {
    type Op = Narrow<T, NarrowUnary>;
    fn into_op(self) -> Self::Op {
        Narrow(self, PhantomData)
    }
}

impl<T: Binary> IntoOp<NarrowBinary> for T {
    type Op = Narrow<T, NarrowBinary>;
    fn into_op(self) -> Self::Op {
        Narrow(self, PhantomData)
    }
}

/// A narrow op as a wide one.
#[derive(Debug, Serialize, serde::Deserialize)]
#[serde(transparent, bound(serialize = "T: Serialize", deserialize = "T: DeserializeOwned"))]
pub struct Narrow<T, Kind>(T, #[serde(skip)] PhantomData<fn() -> Kind>);

fn one_gradient(name: &'static str, dy: &[Option<Tensor>]) -> Result<Tensor> {
    match dy {
        [Some(dy)] => Ok(dy.clone()),
        _ => Err(Error::usage(name, "the gradient of its output is missing", "give exactly one")),
    }
}

impl<T: Unary> Op for Narrow<T, NarrowUnary> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn saves(&self, _: Mask) -> Saves {
        T::SAVES
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        self.0.forward(inputs.take(0)?).map(Computed::from)
    }

    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        let dx = match dy {
            [Some(dy)] => self.0.gradient(saved, dy)?,
            _ => self.0.gradient(saved, &one_gradient(T::NAME, dy)?)?,
        };
        Ok(vec![Some(Gradient::Dense(dx))])
    }

    fn each_gradient(
        &self,
        saved: &Saved,
        dy: &[Option<Tensor>],
        _: Mask,
        _: usize,
        take: &mut dyn FnMut(usize, Gradient) -> Result<()>,
    ) -> Result<()> {
        match dy {
            [Some(dy)] => take(0, Gradient::Dense(self.0.gradient(saved, dy)?)),
            _ => Ok(()),
        }
    }
}

impl<T: Binary> Op for Narrow<T, NarrowBinary> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn saves(&self, tracked: Mask) -> Saves {
        self.0.saves(tracked)
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let a = inputs.take(0)?;
        self.0.forward(a, inputs.take(1)?).map(Computed::from)
    }

    fn multiply_adds(&self, inputs: &[Shape], outputs: &[Shape]) -> u64 {
        match (inputs, outputs) {
            ([a, b], [y]) => self.0.multiply_adds(a, b, y),
            _ => 0,
        }
    }

    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let [da, db] = match dy {
            [Some(dy)] => self.0.gradient(saved, dy, needs)?,
            _ => self.0.gradient(saved, &one_gradient(T::NAME, dy)?, needs)?,
        };
        Ok(vec![da.map(Gradient::Dense), db.map(Gradient::Dense)])
    }

    fn each_gradient(
        &self,
        saved: &Saved,
        dy: &[Option<Tensor>],
        needs: Mask,
        _: usize,
        take: &mut dyn FnMut(usize, Gradient) -> Result<()>,
    ) -> Result<()> {
        let [Some(dy)] = dy else { return Ok(()) };
        let [da, db] = self.0.gradient(saved, dy, needs)?;
        da.map_or(Ok(()), |da| take(0, Gradient::Dense(da)))?;
        db.map_or(Ok(()), |db| take(1, Gradient::Dense(db)))
    }
}
