//! W7: matrix products.

use couplet::prelude::*;

use crate::measure::{emit, time};

/// The five shapes of the workload.
pub fn run() -> Result<()> {
    random::set_seed(1);
    let shapes = [(1024, 1024, 1024), (128, 1024, 1024), (86528, 288, 32), (1, 1024, 1024), (16, 16, 16)];
    for (m, k, n) in shapes {
        let a = random::current().normal([m, k], 0.0, 1.0, DType::F32)?;
        let b = random::current().normal([k, n], 0.0, 1.0, DType::F32)?;
        let timing = time(|| a.matmul(&b).map(drop))?;
        let flop = 2.0 * (m * k * n) as f64;
        emit("W7", &format!("matmul_{m}x{k}x{n}"), flop / timing.seconds / 1e9, "GF/s", "", Some(&timing));
    }
    Ok(())
}
