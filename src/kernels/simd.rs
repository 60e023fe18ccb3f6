//! Loops compiled for the processor they run on.

/// Work that gains from wide registers.
///
/// `run` and all that it calls must be `#[inline(always)]`: only code inlined into the dispatching function is compiled
/// with its instruction set. Fused multiply-adds are exact everywhere, but fast only inside.
pub(crate) trait Loop {
    /// What the loop computes besides what it writes.
    type Output;

    /// The loop.
    fn run(self) -> Self::Output;
}

/// Runs `work` with the widest instruction set at hand (AVX-512, AVX2 or NEON), chosen once a process.
#[inline(always)]
pub(crate) fn dispatch<L: Loop>(work: L) -> L::Output {
    pulp::Arch::new().dispatch(Adapter(work))
}

struct Adapter<L>(L);

impl<L: Loop> pulp::NullaryFnOnce for Adapter<L> {
    type Output = L::Output;

    #[inline(always)]
    fn call(self) -> L::Output {
        self.0.run()
    }
}
