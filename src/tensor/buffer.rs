//! Reference-counted storage of tensors, recycled on the thread that allocated it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use half::{bf16, f16};

use crate::dtype::{DType, Element};
use crate::kernels::elementwise::{Elements, Output};
use crate::kernels::layout::View;

/// Smallest block worth keeping, in bytes: below, the system allocator is as fast.
const RECYCLE_FROM: usize = 4 << 10;
/// Most bytes one thread keeps for reuse.
const RECYCLE_AT_MOST: usize = 512 << 20;

/// A vector of one of the thirteen element types.
#[derive(Debug)]
#[allow(missing_docs, reason = "each variant's name is its documentation")]
pub enum Storage {
    F32(Vec<f32>),
    F64(Vec<f64>),
    F16(Vec<f16>),
    BF16(Vec<bf16>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    Bool(Vec<bool>),
}

macro_rules! each {
    ($storage:expr, $v:ident => $body:expr) => {
        match $storage {
            Storage::F32($v) => $body,
            Storage::F64($v) => $body,
            Storage::F16($v) => $body,
            Storage::BF16($v) => $body,
            Storage::I8($v) => $body,
            Storage::I16($v) => $body,
            Storage::I32($v) => $body,
            Storage::I64($v) => $body,
            Storage::U8($v) => $body,
            Storage::U16($v) => $body,
            Storage::U32($v) => $body,
            Storage::U64($v) => $body,
            Storage::Bool($v) => $body,
        }
    };
}

impl Storage {
    pub(crate) fn dtype(&self) -> DType {
        match self {
            Storage::F32(_) => DType::F32,
            Storage::F64(_) => DType::F64,
            Storage::F16(_) => DType::F16,
            Storage::BF16(_) => DType::BF16,
            Storage::I8(_) => DType::I8,
            Storage::I16(_) => DType::I16,
            Storage::I32(_) => DType::I32,
            Storage::I64(_) => DType::I64,
            Storage::U8(_) => DType::U8,
            Storage::U16(_) => DType::U16,
            Storage::U32(_) => DType::U32,
            Storage::U64(_) => DType::U64,
            Storage::Bool(_) => DType::Bool,
        }
    }

    /// Bytes held, the unused capacity included.
    fn bytes(&self) -> usize {
        each!(self, v => v.capacity()) * self.dtype().size()
    }
}

/// Storage that goes back to its thread's cache when the last tensor over it dies.
#[derive(Debug)]
pub(crate) struct Buffer {
    storage: Storage,
    /// The thread that allocated it through [`take`]; 0 for memory that came from the user.
    owner: u32,
}

impl Buffer {
    /// Memory that came from elsewhere; it is freed, never recycled.
    pub(crate) fn foreign<T: Element>(data: Vec<T>) -> Self {
        Buffer { storage: T::wrap(data), owner: 0 }
    }

    /// Memory from [`take`].
    pub(crate) fn recycled<T: Element>(data: Vec<T>) -> Self {
        let owner = if data.len() * size_of::<T>() >= RECYCLE_FROM { thread_tag() } else { 0 };
        Buffer { storage: T::wrap(data), owner }
    }

    pub(crate) fn dtype(&self) -> DType {
        self.storage.dtype()
    }

    pub(crate) fn slice<T: Element>(&self) -> Option<&[T]> {
        T::slice(&self.storage)
    }

    pub(crate) fn slice_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        T::slice_mut(&mut self.storage)
    }

    /// The elements for a kernel that knows their type by itself.
    pub(crate) fn elements<'a>(
        &'a self,
        offset: usize,
        shape: &'a [usize],
        strides: &'a [isize],
    ) -> Elements<'a> {
        each!(&self.storage, v => Elements::of(View::new(v, offset, shape, strides)))
    }

    /// A contiguous part for such a kernel to write.
    pub(crate) fn output(&mut self, offset: usize, size: usize) -> Option<Output<'_>> {
        each!(&mut self.storage, v => v.get_mut(offset..offset + size).map(Output::of))
    }

    pub(crate) fn into_vec<T: Element>(mut self) -> Option<Vec<T>> {
        T::unwrap(std::mem::replace(&mut self.storage, Storage::Bool(Vec::new())))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.owner != 0 && self.owner == thread_tag() {
            let storage = std::mem::replace(&mut self.storage, Storage::Bool(Vec::new()));
            // At thread exit the cache may be gone: then the block is simply freed.
            let _ = CACHE.try_with(|cache| {
                if let Ok(mut cache) = cache.try_borrow_mut() {
                    cache.put(storage);
                }
            });
        }
    }
}

/// Freed blocks by dtype and capacity in elements.
struct Cache {
    blocks: [BTreeMap<usize, Vec<Storage>>; 13],
    bytes: usize,
}

impl Cache {
    const fn new() -> Self {
        Cache { blocks: [const { BTreeMap::new() }; 13], bytes: 0 }
    }

    fn put(&mut self, storage: Storage) {
        let bytes = storage.bytes();
        if self.bytes + bytes > RECYCLE_AT_MOST {
            return;
        }
        self.bytes += bytes;
        let length = each!(&storage, v => v.len());
        self.blocks[storage.dtype() as usize].entry(length).or_default().push(storage);
    }

    /// A block of at least `length` elements and at most a quarter more.
    fn get<T: Element>(&mut self, length: usize) -> Option<Vec<T>> {
        let fitting = self.blocks[T::DTYPE as usize].range_mut(length..=length + length / 4);
        let storage = fitting.filter_map(|(_, list)| list.pop()).next()?;
        self.bytes -= storage.bytes();
        T::unwrap(storage)
    }
}

thread_local! {
    static CACHE: RefCell<Cache> = const { RefCell::new(Cache::new()) };
    static TAG: Cell<u32> = const { Cell::new(0) };
}

/// A number of this thread's own, from 1; it wraps after four thousand million threads.
#[inline]
pub(crate) fn thread_tag() -> u32 {
    TAG.with(|tag| if tag.get() == 0 { new_thread_tag(tag) } else { tag.get() })
}

#[cold]
fn new_thread_tag(tag: &Cell<u32>) -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    tag.set(NEXT.fetch_add(1, Ordering::Relaxed).max(1));
    tag.get()
}

/// A vector of `length` elements with arbitrary (but initialised) contents, to be overwritten by a kernel.
///
/// Large blocks come from this thread's cache, so that their pages need not be faulted in again; fresh ones
/// come zeroed from the system, which costs nothing before the first touch.
pub(crate) fn take<T: Element>(length: usize) -> Vec<T> {
    if length * size_of::<T>() >= RECYCLE_FROM {
        let cached = CACHE.try_with(|cache| cache.try_borrow_mut().ok().and_then(|mut c| c.get::<T>(length)));
        if let Ok(Some(mut block)) = cached {
            block.truncate(length);
            return block;
        }
    }
    vec![T::default(); length]
}

/// Frees the memory that this thread keeps for reuse.
///
/// Blocks of 4 KiB and more are kept when their last tensor dies (at most 512 MiB a thread), because asking the
/// system for fresh pages costs more than most kernels.
pub fn release_cached_memory() {
    let cache = CACHE.try_with(|cache| {
        cache.try_borrow_mut().map(|mut cache| std::mem::replace(&mut *cache, Cache::new()))
    });
    drop(cache);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_block_is_handed_out_again() {
        release_cached_memory();
        let data = take::<f32>(5000);
        let at = data.as_ptr();
        drop(Buffer::recycled(data));
        let again = take::<f32>(4500);
        assert_eq!((again.as_ptr(), again.len()), (at, 4500));
    }

    #[test]
    fn foreign_memory_is_not_kept() {
        release_cached_memory();
        drop(Buffer::foreign(vec![1f64; 5000]));
        assert!(CACHE.with(|c| c.borrow_mut().get::<f64>(5000)).is_none());
    }
}
