//! The tensor: a reference-counted buffer with a run-time dtype, shape and strides.

mod buffer;
mod convert;
mod create;
mod display;
mod shape;

use std::cell::Cell;
use std::sync::Arc;

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::elementwise::{Elements, Output};
use crate::kernels::layout::View;

pub use buffer::Storage;
pub use buffer::release_cached_memory;
pub(crate) use buffer::take;
pub(crate) use buffer::{Buffer, thread_tag};
pub(crate) use create::{check_value, checked_size};
pub use shape::Shape;
pub(crate) use shape::Strides;

/// Identity of a computed value: the same for all clones of one handle, never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ValueId {
    /// The thread that made it.
    pub(crate) thread: u32,
    /// Its number on that thread.
    pub(crate) index: u64,
}

thread_local! {
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

impl ValueId {
    #[inline]
    pub(crate) fn new() -> Self {
        let index = NEXT.with(|next| next.replace(next.get() + 1));
        ValueId { thread: thread_tag(), index }
    }

    /// The number that the next value on this thread will have.
    pub(crate) fn next_index() -> u64 {
        NEXT.with(Cell::get)
    }
}

/// An n-dimensional array with a run-time dtype, cheap to clone and safe to share between threads.
///
/// A clone is another handle to the same value. Views (transposes, slices, reshapes of contiguous data) share
/// memory with their source; nothing ever changes a value behind another handle (buffers are copied on write).
///
/// ```
/// use couplet::Tensor;
/// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(x.shape(), &[2, 2]);
/// let y = (&x + 1.0)?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0, 3.0, 4.0, 5.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor(Arc<Header>);

/// What a handle points to: one word moves instead of the whole description.
struct Header {
    memory: Memory,
    offset: usize,
    shape: Shape,
    strides: Strides,
    id: ValueId,
}

/// Where the elements lie.
enum Memory {
    /// Here: a tensor made by an op is one allocation beside its elements.
    Own(Buffer),
    /// In another tensor, which owns them.
    Of(Tensor),
}

impl Tensor {
    /// A contiguous tensor over a vector from [`take`].
    pub(crate) fn from_taken<T: Element>(data: Vec<T>, shape: Shape) -> Self {
        debug_assert_eq!(data.len(), shape.size());
        Self::over(Buffer::recycled(data), shape)
    }

    /// A contiguous tensor over a vector that came from the user.
    pub(crate) fn from_foreign<T: Element>(data: Vec<T>, shape: Shape) -> Self {
        debug_assert_eq!(data.len(), shape.size());
        Self::over(Buffer::foreign(data), shape)
    }

    fn over(buffer: Buffer, shape: Shape) -> Self {
        let strides = Strides::contiguous(&shape);
        Tensor::of(Header { memory: Memory::Own(buffer), offset: 0, shape, strides, id: ValueId::new() })
    }

    /// Another view of the same memory, as a new value. The caller answers for the bounds; reads are checked.
    pub(crate) fn view_as(&self, offset: usize, shape: Shape, strides: Strides) -> Self {
        // A view of nothing may be asked for anywhere; it begins where every buffer does.
        let offset = if shape.contains(&0) { 0 } else { offset };
        Tensor::of(Header { memory: Memory::Of(self.owner()), offset, shape, strides, id: ValueId::new() })
    }

    /// The same data as a new value, unknown to any tape.
    pub(crate) fn fresh(&self) -> Self {
        self.identified(ValueId::new())
    }

    fn of(header: Header) -> Self {
        Tensor(Arc::new(header))
    }

    /// The same data under another identity.
    fn identified(&self, id: ValueId) -> Self {
        let Header { offset, shape, strides, .. } = &*self.0;
        let (shape, strides) = (shape.clone(), strides.clone());
        Tensor::of(Header { memory: Memory::Of(self.owner()), offset: *offset, shape, strides, id })
    }

    /// The tensor that owns the elements.
    fn owner(&self) -> Tensor {
        match &self.0.memory {
            Memory::Own(_) => self.clone(),
            Memory::Of(owner) => owner.clone(),
        }
    }

    fn buffer(&self) -> &Buffer {
        match &self.0.memory {
            Memory::Own(buffer) => buffer,
            Memory::Of(owner) => owner.buffer(),
        }
    }

    /// The buffer for writing, if no other handle shares it.
    fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        match &mut Arc::get_mut(&mut self.0)?.memory {
            Memory::Own(buffer) => Some(buffer),
            Memory::Of(owner) => owner.buffer_mut(),
        }
    }

    /// The dims, outermost first.
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.buffer().dtype()
    }

    /// Number of dims.
    pub fn rank(&self) -> usize {
        self.0.shape.len()
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        self.0.shape.size()
    }

    /// The dim at `axis`; negative axes count from the end.
    ///
    /// # Errors
    /// `axis` is out of range.
    pub fn dim(&self, axis: isize) -> Result<usize> {
        Ok(self.0.shape[resolve_axis("dim", axis, self.rank())?])
    }

    pub(crate) fn id(&self) -> ValueId {
        self.0.id
    }

    pub(crate) fn offset(&self) -> usize {
        self.0.offset
    }

    pub(crate) fn strides(&self) -> &Strides {
        &self.0.strides
    }

    /// Whether the elements lie one after the other in row-major order.
    pub fn is_contiguous(&self) -> bool {
        let mut step = 1isize;
        for (&dim, &stride) in self.0.shape.iter().zip(self.0.strides.iter()).rev() {
            if dim != 1 {
                if stride != step && dim != 0 {
                    return self.size() == 0;
                }
                step *= dim as isize;
            }
        }
        true
    }

    /// The elements as a strided view for a kernel.
    pub(crate) fn view<T: Element>(&self) -> Result<View<'_, T>> {
        Ok(View::new(self.storage::<T>()?, self.0.offset, &self.0.shape, &self.0.strides))
    }

    pub(crate) fn storage<T: Element>(&self) -> Result<&[T]> {
        self.buffer().slice::<T>().ok_or_else(|| Error::DType {
            op: "tensor",
            what: "it".into(),
            got: self.dtype(),
            expected: format!("{}; convert it with cast", T::DTYPE),
        })
    }

    /// The elements as one slice, if they are contiguous.
    pub(crate) fn as_slice<T: Element>(&self) -> Result<Option<&[T]>> {
        let data = self.storage::<T>()?;
        Ok(self.is_contiguous().then(|| &data[self.0.offset..self.0.offset + self.size()]))
    }

    /// A contiguous tensor with arbitrary contents, for a kernel to write.
    pub(crate) fn blank(shape: Shape, dtype: DType) -> Self {
        crate::dtype::for_dtype!(dtype, T => Tensor::from_taken(take::<T>(shape.size()), shape))
    }

    /// The elements for a kernel that knows their type by itself.
    pub(crate) fn elements(&self) -> Elements<'_> {
        self.buffer().elements(self.0.offset, &self.0.shape, &self.0.strides)
    }

    /// Whether no other handle shares the buffer, as far as a glance tells.
    pub(crate) fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
            && match &self.0.memory {
                Memory::Own(_) => true,
                Memory::Of(owner) => owner.is_unique(),
            }
    }

    /// The elements for such a kernel to write, if they are contiguous and no other handle shares the buffer.
    pub(crate) fn output(&mut self) -> Option<Output<'_>> {
        if !self.is_unique() || !self.is_contiguous() {
            return None;
        }
        let (offset, size) = (self.0.offset, self.size());
        self.buffer_mut()?.output(offset, size)
    }

    /// The elements for writing, if they are contiguous and no other handle shares the buffer.
    pub(crate) fn unique_slice_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        if !self.is_contiguous() {
            return None;
        }
        let (offset, size) = (self.0.offset, self.size());
        self.buffer_mut()?.slice_mut::<T>()?.get_mut(offset..offset + size)
    }

    /// Contiguous elements for writing: in place if nobody shares them, else in a copy.
    pub(crate) fn make_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        if self.output().is_none() {
            let mut copy = Tensor::blank(self.shape().clone(), self.dtype());
            if let Some(y) = copy.output() {
                crate::kernels::elementwise::copy_any(self.elements(), y);
            }
            *self = copy.identified(self.id());
        }
        let dtype = self.dtype();
        self.unique_slice_mut::<T>().ok_or_else(|| Error::dtype("tensor", "it", dtype, T::DTYPE.name()))
    }

    /// The same elements in row-major order, copied only if they are not already; unknown to any tape.
    pub(crate) fn to_contiguous(&self) -> Tensor {
        if self.is_contiguous() {
            return self.clone();
        }
        let mut copy = Tensor::blank(self.shape().clone(), self.dtype());
        if let Some(y) = copy.output() {
            crate::kernels::elementwise::copy_any(self.elements(), y);
        }
        copy.identified(self.id())
    }

    /// The buffer itself, if no other handle shares it; else the tensor comes back.
    fn into_buffer(self) -> std::result::Result<Buffer, Tensor> {
        if !self.is_unique() {
            return Err(self);
        }
        match Arc::try_unwrap(self.0).map(|header| header.memory) {
            Ok(Memory::Own(buffer)) => Ok(buffer),
            Ok(Memory::Of(owner)) => owner.into_buffer(),
            Err(shared) => Err(Tensor(shared)),
        }
    }

    #[cfg(test)]
    pub(crate) fn shares_memory_with(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.owner().0, &other.owner().0)
    }
}

/// The position that a possibly negative axis names.
pub(crate) fn resolve_axis(op: &'static str, axis: isize, rank: usize) -> Result<usize> {
    let position = if axis < 0 { axis + rank as isize } else { axis };
    if position < 0 || position >= rank as isize {
        return Err(Error::Axis { op, axis, rank });
    }
    Ok(position as usize)
}
