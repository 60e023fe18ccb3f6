//! Variables: named, shared, mutable tensors.

mod create;
pub(crate) mod getter;
pub(crate) mod overlay;
pub(crate) mod waiting;

use std::cell::Cell;
use std::fmt;
use std::ops::{Add, Div, Mul, Sub};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

use crate::dry;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::elementwise::zip_inplace;
use crate::ops::{Input, Number, Operand, for_number, record};
use crate::tensor::{Shape, Tensor, ValueId};

/// A named, shared, mutable tensor of fixed dtype and shape.
///
/// A clone is another handle to the same variable. Reading one on a thread whose tape records makes the tape watch
/// it, if it is trainable. Assigning replaces the value for all handles; tensors read earlier keep what they held.
///
/// ```
/// use couplet::{Tensor, Variable};
/// let v = Variable::from_tensor("v", Tensor::from([1.0f32, 2.0]));
/// let before = v.value();
/// v.assign_add(&Tensor::from([1.0f32, 1.0]))?;
/// assert_eq!(v.value().to_vec::<f32>()?, [2.0, 3.0]);
/// assert_eq!(before.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Clone)]
pub struct Variable {
    inner: Arc<Inner>,
}

struct Inner {
    id: u64,
    /// The variable that this one was copied from.
    origin: Option<u64>,
    /// The value that a restore left for it before it was made.
    restored: OnceLock<ValueId>,
    name: String,
    dtype: DType,
    shape: Shape,
    trainable: bool,
    frozen: AtomicBool,
    value: RwLock<Tensor>,
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static IDS: Cell<(u64, u64)> = const { Cell::new((0, 0)) });
    // Numbers are taken in blocks, so that threads do not meet on one counter at every variable.
    IDS.with(|ids| {
        let (mut next, mut end) = ids.get();
        if next == end {
            next = NEXT.fetch_add(1024, Ordering::Relaxed);
            end = next + 1024;
        }
        ids.set((next + 1, end));
        next
    })
}

impl Variable {
    /// A trainable variable that starts as `value`; its name is used as it is, without the current scope.
    pub fn from_tensor(name: impl Into<String>, value: Tensor) -> Self {
        Self::build(name.into(), value, true)
    }

    /// A variable that starts as `value` and is trained or not.
    pub(crate) fn build(name: String, value: Tensor, trainable: bool) -> Self {
        Self::build_from(None, name, value, trainable)
    }

    fn build_from(origin: Option<u64>, name: String, value: Tensor, trainable: bool) -> Self {
        let value = value.fresh();
        let (dtype, shape) = (value.dtype(), value.shape().clone());
        let trainable = trainable && dtype.is_float();
        let frozen = AtomicBool::new(false);
        Variable {
            inner: Arc::new(Inner {
                id: next_id(),
                origin,
                restored: OnceLock::new(),
                name,
                dtype,
                shape,
                trainable,
                frozen,
                value: RwLock::new(value),
            }),
        }
    }

    /// The same value, name and flags under an identity of its own.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        let inner = &self.inner;
        let copy = Self::build_from(Some(inner.id), inner.name.clone(), self.peek(), inner.trainable);
        copy.set_frozen(self.is_frozen());
        copy
    }

    /// An identity no other variable ever had.
    pub fn id(&self) -> u64 {
        self.inner.id
    }

    /// How many handles there are to the variable, at this moment.
    fn holders(&self) -> usize {
        Arc::strong_count(&self.inner)
    }

    /// The identity of the variable that this one was copied from.
    pub(crate) fn origin(&self) -> Option<u64> {
        self.inner.origin
    }

    /// The identity of the value that a restore left for it before it was made.
    pub(crate) fn restored(&self) -> Option<ValueId> {
        self.inner.restored.get().copied()
    }

    /// Takes note that it was made with a value that a restore left.
    pub(crate) fn was_restored(&self, value: &Tensor) {
        let _ = self.inner.restored.set(value.id()); // it is made once
    }

    /// The full name: the scope in which it was made, and its own name, as in `linear/w`.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The dtype, fixed at creation.
    pub fn dtype(&self) -> DType {
        self.inner.dtype
    }

    /// The shape, fixed at creation.
    pub fn shape(&self) -> &Shape {
        &self.inner.shape
    }

    /// Whether it is meant to be trained. A frozen variable stays trainable, but tapes and optimisers pass it by.
    pub fn trainable(&self) -> bool {
        self.inner.trainable
    }

    /// Whether it is frozen: neither watched by tapes nor changed by optimisers.
    pub fn is_frozen(&self) -> bool {
        self.inner.frozen.load(Ordering::Relaxed)
    }

    /// Freezes or thaws the variable.
    pub fn set_frozen(&self, frozen: bool) {
        self.inner.frozen.store(frozen, Ordering::Relaxed);
    }

    /// The value at this moment; a recording tape watches it if the variable is trainable and not frozen.
    ///
    /// Inside a [`custom_variable_getter`](crate::custom_variable_getter), what its function makes of it.
    pub fn value(&self) -> Tensor {
        if getter::is_active() {
            return getter::read(self);
        }
        let (laid, recording) = (self.laid(), record::is_recording());
        let value = match laid {
            Some(laid) => laid, // the very tensor that was laid there, which a tape may watch
            None if recording => self.own().fresh(),
            None => self.own(),
        };
        if !recording {
            return value;
        }
        record::with_recorder(|r| r.read(&value, self.inner.id, self.inner.trainable && !self.is_frozen()));
        value
    }

    /// The value itself, unseen by any tape and by what stands between variables and their readers.
    pub(crate) fn peek(&self) -> Tensor {
        self.laid().unwrap_or_else(|| self.own())
    }

    /// The value that lies over its own on this thread.
    fn laid(&self) -> Option<Tensor> {
        if overlay::is_on() { overlay::value(self) } else { None }
    }

    /// Its own value, whatever lies over it.
    fn own(&self) -> Tensor {
        self.inner.value.read().unwrap_or_else(|e| e.into_inner()).clone()
    }

    fn check(&self, op: &'static str, value: &Tensor) -> Result<()> {
        if value.shape() != &self.inner.shape {
            let expected = format!("that of variable {}: {}", self.inner.name, self.inner.shape);
            return Err(Error::shape(op, "the value", value.shape(), expected));
        }
        if value.dtype() != self.inner.dtype {
            let expected = format!("that of variable {}: {}", self.inner.name, self.inner.dtype);
            return Err(Error::dtype(op, "the value", value.dtype(), expected));
        }
        Ok(())
    }

    /// Replaces the value.
    ///
    /// # Errors
    /// `value` has another shape or dtype; the variable stays as it is.
    pub fn assign(&self, value: &Tensor) -> Result<()> {
        self.check("assign", value)?;
        if dry::is_on() {
            return Ok(());
        }
        let fresh = value.fresh();
        if overlay::is_on() {
            overlay::assign(self, fresh);
            return Ok(());
        }
        // The old value is dropped after the lock: its memory may go to a cache, never to user code in between.
        let old = std::mem::replace(&mut *self.inner.value.write().unwrap_or_else(|e| e.into_inner()), fresh);
        drop(old);
        Ok(())
    }

    /// Replaces its own value by one that takes no memory: NaN, or 0 for integers. What lies over it stays.
    pub(crate) fn release(&self) -> Result<()> {
        let nothing = if self.dtype().is_float() { f64::NAN } else { 0.0 };
        let nothing = Tensor::full([], nothing, self.dtype())?.broadcast_to(self.shape().clone())?;
        let old = std::mem::replace(
            &mut *self.inner.value.write().unwrap_or_else(|e| e.into_inner()),
            nothing.fresh(),
        );
        drop(old); // after the lock, as in assign
        Ok(())
    }

    /// Adds to the value: `v = v + x`; integers wrap around.
    ///
    /// # Errors
    /// `x` has another shape or dtype, or is bool; the variable stays as it is.
    pub fn assign_add(&self, x: &Tensor) -> Result<()> {
        self.check("assign_add", x)?;
        for_number!("assign_add", self.dtype(), T => self.modify(|v| {
            let x = x.view::<T>()?;
            zip_inplace(v.make_mut::<T>()?, x, T::plus);
            Ok(())
        }))
    }

    /// Subtracts from the value: `v = v - x`; integers wrap around.
    ///
    /// # Errors
    /// `x` has another shape or dtype, or is bool; the variable stays as it is.
    pub fn assign_sub(&self, x: &Tensor) -> Result<()> {
        self.check("assign_sub", x)?;
        for_number!("assign_sub", self.dtype(), T => self.modify(|v| {
            let x = x.view::<T>()?;
            zip_inplace(v.make_mut::<T>()?, x, T::minus);
            Ok(())
        }))
    }

    /// Whether what is assigned on this thread goes to the variables themselves.
    pub(crate) fn is_plain() -> bool {
        !dry::is_on() && !overlay::is_on()
    }

    /// Changes the value under its lock; `f` checks everything before it writes.
    pub(crate) fn modify(&self, f: impl FnOnce(&mut Tensor) -> Result<()>) -> Result<()> {
        if dry::is_on() {
            return Ok(());
        }
        if overlay::is_on() {
            return overlay::modify_all([self], |[value]| f(value));
        }
        let mut value = self.inner.value.write().unwrap_or_else(|e| e.into_inner());
        f(&mut value)?;
        // A handle read earlier keeps its value, so the new one is another value to a tape.
        *value = value.fresh();
        Ok(())
    }

    /// Changes the values of several variables under their locks, which are taken in the order of identities, so that no
    /// two calls wait for each other. `f` checks everything before it writes.
    pub(crate) fn modify_all<const N: usize>(
        variables: [&Variable; N],
        f: impl FnOnce([&mut Tensor; N]) -> Result<()>,
    ) -> Result<()> {
        let mut order: [usize; N] = std::array::from_fn(|i| i);
        order.sort_unstable_by_key(|&i| variables[i].id());
        if let Some(twice) = order.windows(2).find(|pair| variables[pair[0]].id() == variables[pair[1]].id())
        {
            let problem =
                format!("variable {} is to be changed twice in one step", variables[twice[0]].name());
            return Err(Error::usage("modify", problem, "pass it once"));
        }
        if dry::is_on() {
            return Ok(());
        }
        if overlay::is_on() {
            return overlay::modify_all(variables, f);
        }
        let mut guards = [const { None }; N];
        for i in order {
            guards[i] = Some(variables[i].inner.value.write().unwrap_or_else(|e| e.into_inner()));
        }
        let mut values = guards.map(|guard| guard.expect("every variable was locked above"));
        f(values.each_mut().map(|value| &mut **value))?;
        values.iter_mut().for_each(|value| **value = value.fresh());
        Ok(())
    }
}

impl<'a> Operand<'a> for &Variable {
    fn into_input(self, _: &Tensor) -> Result<Input<'a>> {
        Ok(Input::Own(self.value()))
    }
}

impl<'a> Operand<'a> for Variable {
    fn into_input(self, _: &Tensor) -> Result<Input<'a>> {
        Ok(Input::Own(self.value()))
    }
}

macro_rules! operator {
    ($($Trait:ident, $method:ident;)*) => {$(
        impl<'a, R: Operand<'a>> $Trait<R> for &Variable {
            type Output = Result<Tensor>;
            fn $method(self, rhs: R) -> Result<Tensor> {
                $Trait::$method(self.value(), rhs)
            }
        }

        impl<'a, R: Operand<'a>> $Trait<R> for Variable {
            type Output = Result<Tensor>;
            fn $method(self, rhs: R) -> Result<Tensor> {
                $Trait::$method(self.value(), rhs)
            }
        }

        impl $Trait<&Variable> for Result<Tensor> {
            type Output = Result<Tensor>;
            fn $method(self, rhs: &Variable) -> Result<Tensor> {
                $Trait::$method(self?, rhs)
            }
        }

        operator!(@numbers $Trait, $method; f64 i32);
    )*};
    (@numbers $Trait:ident, $method:ident; $($t:ty)*) => {$(
        impl $Trait<&Variable> for $t {
            type Output = Result<Tensor>;
            fn $method(self, rhs: &Variable) -> Result<Tensor> {
                $Trait::$method(self, rhs.value())
            }
        }
    )*};
}

operator! {
    Add, add;
    Sub, sub;
    Mul, mul;
    Div, div;
}

impl fmt::Debug for Variable {
    /// `Variable(linear/w, f32[3, 2])`; `value()` prints the numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variable({}, {}{})", self.name(), self.dtype(), self.shape())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_assignment_changes_nothing() {
        let v = Variable::from_tensor("v", Tensor::from([1.0f32, 2.0]));
        assert!(v.assign(&Tensor::from([1.0f64, 2.0])).is_err());
        assert!(v.assign_add(&Tensor::from([1.0f32])).is_err());
        assert!(v.assign_sub(&Tensor::from([1i32, 1])).is_err());
        assert_eq!(v.value().to_vec::<f32>().unwrap(), [1.0, 2.0]);
    }

    #[test]
    fn operators_take_variables_on_both_sides() -> Result<()> {
        let v = Variable::from_tensor("v", Tensor::from([2.0f32]));
        let x = Tensor::from([3.0f32]);
        assert_eq!((&x * &v)?.item::<f32>()?, 6.0);
        assert_eq!((&v - 1.0)?.item::<f32>()?, 1.0);
        assert_eq!((1.0 - &v)?.item::<f32>()?, -1.0);
        assert_eq!(((&x + &x) + &v)?.item::<f32>()?, 8.0);
        Ok(())
    }

    #[test]
    fn integer_variables_are_never_trainable() {
        assert!(!Variable::from_tensor("step", Tensor::from(0i64)).trainable());
    }
}
