//! The two element types of the heavy kernels, and their vectors.

use super::math::Math;
use super::pack::{TransposeStrip, transpose_portable};
use super::scratch::Plain;
use pulp::{MemMask, Simd};

/// An element of a matrix product or a convolution: `f32` or `f64`.
pub(crate) trait Real: Math + Plain {
    /// A register full of elements.
    type Vector<S: Simd>: Copy;
    /// Which lanes of a vector a load or store touches.
    type Mask<S: Simd>: Copy;

    /// The fastest way this machine transposes a strip of eight columns.
    #[inline]
    fn transpose_strip() -> TransposeStrip<Self> {
        transpose_portable::<Self>
    }

    /// Elements in a vector.
    fn lanes<S: Simd>() -> usize;
    /// A mask of the first `n` lanes, of all if there are fewer.
    fn mask<S: Simd>(simd: S, n: usize) -> Self::Mask<S>;
    /// `x` in every lane.
    fn splat<S: Simd>(simd: S, x: Self) -> Self::Vector<S>;
    /// The sum of all lanes, in an order that depends on the machine only.
    fn reduce<S: Simd>(simd: S, x: Self::Vector<S>) -> Self;
    /// `a * b + c`, rounded once where the machine can.
    fn multiply_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;

    /// Reads a vector.
    ///
    /// # Safety
    /// All its elements are readable. `p` need not be aligned to vectors.
    unsafe fn load<S: Simd>(simd: S, p: *const Self) -> Self::Vector<S>;
    /// Reads the lanes in `mask`, zero elsewhere.
    ///
    /// # Safety
    /// The elements in `mask` are readable.
    unsafe fn load_masked<S: Simd>(simd: S, mask: Self::Mask<S>, p: *const Self) -> Self::Vector<S>;
    /// Writes the lanes in `mask`.
    ///
    /// # Safety
    /// The elements in `mask` are writable.
    unsafe fn store_masked<S: Simd>(simd: S, mask: Self::Mask<S>, p: *mut Self, x: Self::Vector<S>);
}

macro_rules! real {
    ($t:ident, $bits:ty, $lanes:ident, $vector:ident, $mask:ident, $between:ident, $splat:ident, $reduce:ident,
     $mul_add:ident, $load:ident, $store:ident, $($more:item)?) => {
        impl Real for $t {
            type Vector<S: Simd> = S::$vector;
            type Mask<S: Simd> = S::$mask;

            $($more)?

            #[inline(always)]
            fn lanes<S: Simd>() -> usize {
                S::$lanes
            }
            #[inline(always)]
            fn mask<S: Simd>(simd: S, n: usize) -> S::$mask {
                simd.$between(0, n.min(S::$lanes) as $bits).mask()
            }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, x: Self) -> S::$vector {
                simd.$splat(x)
            }
            #[inline(always)]
            fn reduce<S: Simd>(simd: S, x: S::$vector) -> Self {
                simd.$reduce(x)
            }
            #[inline(always)]
            fn multiply_add<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$mul_add(a, b, c)
            }
            #[inline(always)]
            unsafe fn load<S: Simd>(_: S, p: *const Self) -> S::$vector {
                // SAFETY: the caller vouches for the elements; the vector is plain data of exactly those.
                unsafe { p.cast::<S::$vector>().read_unaligned() }
            }
            #[inline(always)]
            unsafe fn load_masked<S: Simd>(simd: S, mask: S::$mask, p: *const Self) -> S::$vector {
                // SAFETY: the caller vouches for the elements in the mask.
                unsafe { simd.$load(MemMask::new(mask), p) }
            }
            #[inline(always)]
            unsafe fn store_masked<S: Simd>(simd: S, mask: S::$mask, p: *mut Self, x: S::$vector) {
                // SAFETY: the caller vouches for the elements in the mask.
                unsafe { simd.$store(MemMask::new(mask), p, x) }
            }
        }
    };
}

real!(
    f32,
    u32,
    F32_LANES,
    f32s,
    m32s,
    mask_between_m32s,
    splat_f32s,
    reduce_sum_f32s,
    mul_add_e_f32s,
    mask_load_ptr_f32s,
    mask_store_ptr_f32s,
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn transpose_strip() -> TransposeStrip<f32> {
        if is_x86_feature_detected!("avx") { super::pack::transpose_avx } else { transpose_portable }
    }
);
real!(
    f64,
    u64,
    F64_LANES,
    f64s,
    m64s,
    mask_between_m64s,
    splat_f64s,
    reduce_sum_f64s,
    mul_add_e_f64s,
    mask_load_ptr_f64s,
    mask_store_ptr_f64s,
);
