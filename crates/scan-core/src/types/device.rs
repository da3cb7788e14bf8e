//! Memory on a device that elements of arrays lie in, and what crosses between it and the host.

use super::DType;
use super::words::words;
use crate::base::Result;
use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

/// Memory on a device, in words. What was written is there for whoever asks later, in whichever thread. It goes back to the device with its
/// last owner.
pub trait DeviceMemory: Site + Any {
    /// How many words it has, at least.
    fn words(&self) -> usize;
    /// Where it lies, on a device whose addresses mean something to others.
    fn address(&self) -> Option<u64>;
    /// Writes words.
    ///
    /// # Errors
    /// `E0523`.
    fn write(&self, at: usize, words: &[u32]) -> Result<()>;
    /// Reads words.
    ///
    /// # Errors
    /// `E0523`.
    fn read(&self, at: usize, words: &mut [u32]) -> Result<()>;
    /// Copies words of other memory of this device, or of this one where the two do not overlap.
    ///
    /// # Errors
    /// `E0523`.
    fn copy(&self, at: usize, from: &dyn DeviceMemory, first: usize, words: usize) -> Result<()>;
    /// As what it is.
    fn as_any(&self) -> &dyn Any;
}

/// A device as arrays know it; memory stands for its device.
///
/// ```
/// use scan_core::prelude::*;
///
/// for device in devices() {
///     if let Some(site) = device_site(&device.name)? {
///         println!("{}", site.name());
///     }
/// }
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub trait Site: Send + Sync {
    /// Its name: `wgpu:0`.
    fn name(&self) -> &'static str;
    /// Memory of so many words there.
    ///
    /// # Errors
    /// `E0392` where there is none, `E0523` where the device is lost.
    fn fresh(&self, words: usize) -> Result<Arc<dyn DeviceMemory>>;
}

/// Elements in memory on a device.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert!(Array::vector(&[1.0]).data().resident().is_none(), "they are with the host");
/// ```
#[derive(Clone)]
pub struct Resident {
    /// The memory.
    pub memory: Arc<dyn DeviceMemory>,
    /// The word of the first element.
    pub at: usize,
    /// Number of elements.
    pub n: usize,
    /// Their dtype.
    pub dtype: DType,
}

impl Resident {
    /// Elements of any value in new memory beside this.
    ///
    /// # Errors
    /// As [`Site::fresh`].
    pub fn fresh(&self, n: usize) -> Result<Resident> {
        let memory = self.memory.fresh(n * words(self.dtype))?;
        Ok(Resident { memory, at: 0, n, dtype: self.dtype })
    }
    /// `n` of the elements from the one at `first` on: where they are if they are most of the memory, else a copy, which does not keep all of
    /// it.
    ///
    /// # Errors
    /// As [`Site::fresh`].
    pub fn part(&self, first: usize, n: usize) -> Result<Resident> {
        let part = Resident { at: self.at + first * words(self.dtype), n, ..self.clone() };
        if 2 * n * words(self.dtype) >= self.memory.words() { Ok(part) } else { part.copied() }
    }
    /// A copy in memory of its own.
    ///
    /// # Errors
    /// As [`Site::fresh`].
    pub fn copied(&self) -> Result<Resident> {
        let copy = self.fresh(self.n)?;
        copy.take(0, self, 0, self.n)?;
        Ok(copy)
    }
    /// Overwrites elements from `at` on with `n` of others from `first` on.
    ///
    /// # Errors
    /// `E0523`.
    pub fn take(&self, at: usize, from: &Resident, first: usize, n: usize) -> Result<()> {
        let w = words(self.dtype);
        if n == 0 { Ok(()) } else { self.memory.copy(self.at + at * w, &*from.memory, from.at + first * w, n * w) }
    }
    /// Sets elements to zero.
    ///
    /// # Errors
    /// `E0523`.
    pub fn clear(&self, at: usize, n: usize) -> Result<()> {
        let w = words(self.dtype);
        if n == 0 { Ok(()) } else { self.memory.write(self.at + at * w, &super::memory::zeros(n * w)) }
    }
    /// True where nothing else reads or writes this memory.
    pub fn is_alone(&mut self) -> bool {
        Arc::get_mut(&mut self.memory).is_some()
    }
}

impl std::fmt::Debug for Resident {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} elements of {} on {}", self.n, self.dtype, self.memory.name())
    }
}

thread_local! {
    static CROSSED: Cell<[u64; 2]> = const { Cell::new([0; 2]) };
}

/// Bytes of arrays, as the host has them, that this thread has sent to devices and brought back from them, from a moment on.
#[derive(Clone, Copy)]
pub struct Crossed([u64; 2]);

impl Crossed {
    /// From now on.
    pub fn start() -> Crossed {
        Crossed(CROSSED.get())
    }
    /// Since then: to devices, and back.
    pub fn since(self) -> [u64; 2] {
        let now = CROSSED.get();
        [now[0].wrapping_sub(self.0[0]), now[1].wrapping_sub(self.0[1])]
    }
    /// So many bytes went to a device.
    pub fn sent(bytes: usize) {
        CROSSED.with(|c| c.set([c.get()[0].wrapping_add(bytes as u64), c.get()[1]]));
    }
    /// So many bytes came back.
    pub fn fetched(bytes: usize) {
        CROSSED.with(|c| c.set([c.get()[0], c.get()[1].wrapping_add(bytes as u64)]));
    }
}
