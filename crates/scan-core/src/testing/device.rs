//! Whether a device gives the law's bits.

use super::{check_on, generate};
use crate::backend::gpu::testing::sweep;
use crate::base::Result;
use crate::exec::{Engine, engine_on};

/// What a device computed otherwise than the law, of about `100 · times` random kernels and of so many random programs, from a seed on.
///
/// # Errors
/// `E0521` where there is no such device, `E0522` where it lacks something, `E0523` where it fails.
pub fn check_device(name: &str, times: u64, programs: std::ops::Range<u64>) -> Result<Vec<String>> {
    let engine = engine_on(name)?;
    let mut found = vec![];
    if let Engine::Device(device) = engine {
        let (differ, left) = sweep(device, times)?;
        found = differ;
        found.extend((left > 0).then(|| format!("{left} kernels were left to the host")));
    }
    for seed in programs {
        if let Err(fault) = check_on(&generate(seed), engine) {
            found.push(format!("program {seed}: {}: {}", fault.stage, fault.text));
        }
    }
    Ok(found)
}
