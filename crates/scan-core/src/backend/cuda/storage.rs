//! Memory that outlives calls.

use super::memory::Block;
use super::open::Cuda;
use crate::backend::gpu::Device;
use crate::backend::gpu::storage::Counted;
use crate::base::{Diagnostic, Result};
use crate::types::device::{DeviceMemory, Site};
use std::any::Any;
use std::sync::Arc;

/// A block of the card's memory. What is asked of it outside of calls is done when the answer is there; calls wait for their streams before
/// they hand over what they made.
pub(super) struct Storage {
    device: &'static Cuda,
    block: Option<(u64, Block)>,
    words: usize,
    _counted: Counted,
}

impl Storage {
    /// # Errors
    /// `E0392` where there is no memory, `E0523` where the card fails.
    pub(super) fn new(device: &'static Cuda, words: usize) -> Result<Storage> {
        device.enter().map_err(|f| device.failed(f, 0))?;
        let block = Some(device.block(4 * words as u64)?);
        Ok(Storage { device, block, words, _counted: Counted::new(words) })
    }
    fn begin(&self) -> u64 {
        self.block.as_ref().map_or(0, |b| b.1.at)
    }
    /// Where memory of such a device begins.
    ///
    /// # Errors
    /// An internal error for memory of another kind of device.
    pub(super) fn at(memory: &dyn DeviceMemory) -> Result<u64> {
        let found = memory.as_any().downcast_ref::<Storage>();
        found.map(Storage::begin).ok_or_else(|| Diagnostic::internal("memory of another device"))
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.block.take().into_iter().for_each(|(size, block)| self.device.blocks.give((), size, block));
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
        Some(self.begin())
    }
    fn write(&self, at: usize, words: &[u32]) -> Result<()> {
        self.device.done(|driver, stream| driver.write(self.begin() + 4 * at as u64, words, stream))
    }
    fn read(&self, at: usize, words: &mut [u32]) -> Result<()> {
        self.device.done(|driver, stream| driver.read(self.begin() + 4 * at as u64, words, stream))
    }
    fn copy(&self, at: usize, from: &dyn DeviceMemory, first: usize, words: usize) -> Result<()> {
        let from = Storage::at(from)? + 4 * first as u64;
        self.device.done(|driver, stream| driver.copy(self.begin() + 4 * at as u64, from, 4 * words as u64, stream))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
