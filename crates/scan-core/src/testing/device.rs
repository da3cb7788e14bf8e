//! Whether a device gives the law's bits.

use crate::backend::gpu::testing::sweep;
use crate::base::Result;
use crate::exec::{Engine, engine_on};

/// What a device computed otherwise than the law, of about `100 · times` random kernels; nothing for the processor.
///
/// # Errors
/// `E0521` where there is no such device, `E0522` where it lacks something, `E0523` where it fails.
pub fn check_device(name: &str, times: u64) -> Result<Vec<String>> {
    let Engine::Device(device) = engine_on(name)? else { return Ok(vec![]) };
    let (mut found, left) = sweep(device, times)?;
    found.extend((left > 0).then(|| format!("{left} kernels were left to the host")));
    Ok(found)
}
