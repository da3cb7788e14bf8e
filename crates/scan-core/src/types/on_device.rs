//! Elements of a buffer on a device, and the host's copy of them, which is made where the host first reads them.

use super::array::Element;
use super::buffer::Buffer;
use super::device::{Crossed, Resident};
use super::memory;
use crate::base::Result;
use std::sync::{Arc, OnceLock};

/// Elements on a device. Clones share them.
#[derive(Clone)]
pub struct OnDevice<T: Element> {
    at: Resident,
    /// The same elements in memory of the host.
    here: OnceLock<Arc<Buffer<T>>>,
}

impl<T: Element> OnDevice<T> {
    /// Nothing of them is here.
    pub fn new(at: Resident) -> OnDevice<T> {
        debug_assert_eq!(at.dtype, T::DTYPE, "elements on a device");
        OnDevice { at, here: OnceLock::new() }
    }
    /// Where they lie.
    pub fn at(&self) -> &Resident {
        &self.at
    }
    /// True where the host has a copy.
    pub fn is_here(&self) -> bool {
        self.here.get().is_some()
    }
    /// The host's copy. Where the device fails the thread unwinds, as where there is no memory: up to [`memory::attempt`].
    pub fn here(&self) -> &[T] {
        self.here.get_or_init(|| Arc::new(self.fetched()))
    }
    fn fetched(&self) -> Buffer<T> {
        let mut buffer = Buffer::dirty(self.at.n);
        let mut words: Vec<u32> = memory::zeros(self.at.n * T::WORDS);
        if self.at.n > 0 {
            self.at.memory.read(self.at.at, &mut words).unwrap_or_else(|e| memory::fail(e));
        }
        buffer.as_mut_slice().iter_mut().zip(words.chunks_exact(T::WORDS)).for_each(|(x, words)| *x = T::get(words));
        Crossed::fetched(self.at.n * size_of::<T>());
        buffer
    }
    /// Elements in memory of the host that nothing else sees.
    pub fn take_here(&mut self) -> Buffer<T> {
        self.here();
        match self.here.take().map(Arc::try_unwrap) {
            Some(Ok(buffer)) => buffer,
            Some(Err(shared)) => Buffer::clone(&shared),
            None => unreachable!("fetched above"),
        }
    }
    /// Elements from one on. Where the device fails the thread unwinds.
    pub fn part(&self, first: usize, n: usize) -> Resident {
        self.at.part(first, n).unwrap_or_else(|e| memory::fail(e))
    }
    /// For writing, where nothing else sees the memory; the host's copy is given up.
    ///
    /// # Errors
    /// `E0392` where there is no memory for a copy, `E0523`.
    pub fn at_mut(&mut self) -> Result<&Resident> {
        if !self.at.is_alone() {
            self.at = self.at.copied()?;
        }
        self.here = OnceLock::new();
        Ok(&self.at)
    }
    /// Changes the number of elements; new ones are zero.
    ///
    /// # Errors
    /// As [`OnDevice::at_mut`].
    pub fn resize(&mut self, n: usize) -> Result<()> {
        if n != self.at.n {
            let (grown, kept) = (self.at.fresh(n)?, n.min(self.at.n));
            grown.take(0, &self.at, 0, kept)?;
            grown.clear(kept, n - kept)?;
            *self = OnDevice::new(grown);
        }
        Ok(())
    }
}
