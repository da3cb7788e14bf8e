//! Arrays in the memory of a device that outlives calls, and how much of it there is.

use super::DeviceRef;
use crate::base::Result;
use crate::types::device::{DeviceMemory, Site};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of such memory, on all devices, that somebody has. What is kept for later is not counted.
static LIVE: AtomicU64 = AtomicU64::new(0);

/// Counts memory as long as it lives.
pub struct Counted(u64);

impl Counted {
    /// Memory of so many words.
    pub fn new(words: usize) -> Counted {
        let bytes = 4 * words as u64;
        LIVE.fetch_add(bytes, Ordering::Relaxed);
        Counted(bytes)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        LIVE.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Bytes that arrays have on devices now.
///
/// ```
/// use scan_core::prelude::*;
///
/// println!("{} bytes", device_bytes());
/// ```
pub fn live() -> u64 {
    LIVE.load(Ordering::Relaxed)
}

impl Site for DeviceRef {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn fresh(&self, words: usize) -> Result<Arc<dyn DeviceMemory>> {
        self.0.storage(words)
    }
}
