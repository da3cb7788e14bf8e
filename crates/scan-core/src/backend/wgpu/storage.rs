//! Memory that outlives calls.

use super::memory::STORAGE;
use super::open::Wgpu;
use crate::backend::gpu::Device;
use crate::backend::gpu::storage::Counted;
use crate::base::{Diagnostic, Result};
use crate::types::device::{DeviceMemory, Site};
use std::any::Any;
use std::sync::Arc;
use wgpu::Buffer;

/// A buffer. The one queue of the device keeps what is asked of it in order, so it can be used again as soon as its owner goes.
pub(super) struct Storage {
    device: &'static Wgpu,
    buffer: Buffer,
    words: usize,
    _counted: Counted,
}

impl Storage {
    /// # Errors
    /// `E0392` where there is no memory.
    pub(super) fn new(device: &'static Wgpu, words: usize) -> Result<Storage> {
        let buffer = device.buffer(4 * words as u64, STORAGE)?;
        Ok(Storage { device, buffer, words, _counted: Counted::new(words) })
    }
    /// The buffer of memory of such a device.
    ///
    /// # Errors
    /// An internal error for memory of another kind of device.
    pub(super) fn buffer(memory: &dyn DeviceMemory) -> Result<&Buffer> {
        let found = memory.as_any().downcast_ref::<Storage>();
        found.map(|storage| &storage.buffer).ok_or_else(|| Diagnostic::internal("memory of another device"))
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.device.sound().is_ok() {
            self.device.keep(self.buffer.clone());
        }
    }
}

impl Site for Storage {
    fn name(&self) -> &'static str {
        self.device.name()
    }
    fn fresh(&self, words: usize) -> Result<Arc<dyn DeviceMemory>> {
        self.device.storage(words)
    }
}

impl DeviceMemory for Storage {
    fn words(&self) -> usize {
        self.words
    }
    fn address(&self) -> Option<u64> {
        None
    }
    fn write(&self, at: usize, words: &[u32]) -> Result<()> {
        self.device.write(&self.buffer, at, words)
    }
    fn read(&self, at: usize, words: &mut [u32]) -> Result<()> {
        self.device.read(&self.buffer, at, words)
    }
    fn copy(&self, at: usize, from: &dyn DeviceMemory, first: usize, words: usize) -> Result<()> {
        self.device.copy((Storage::buffer(from)?, first), (&self.buffer, at), words)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
