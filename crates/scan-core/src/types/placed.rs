//! Arrays whose elements lie on a device, or are sent to one.

use super::buffer::Buffer;
use super::device::{Crossed, Resident, Site};
use super::words::widened;
use super::{Array, DType, memory};
use crate::base::Result;
use crate::dispatch;
use smallvec::SmallVec;
use std::ops::Range;

impl Array {
    /// An array of elements on a device. Panics where their number is not that of the shape.
    pub fn on_device(at: Resident, shape: &[usize]) -> Array {
        assert_eq!(super::shape::count(shape), at.n, "{} elements for shape {shape:?}", at.n);
        dispatch!(at.dtype, T => Array { shape: SmallVec::from_slice(shape), data: <T as super::Element>::wrap(Buffer::on_device(at)) })
    }
    /// The device where its elements are: made there, or sent.
    pub fn device(&self) -> Option<&'static str> {
        self.data.resident().map(|at| at.memory.name())
    }
    /// True where the host would have to fetch its elements to read them.
    pub fn is_away(&self) -> bool {
        self.data.is_away()
    }
    /// Sees to it that the host has its elements, too: afterwards nothing can fail that reads them. Where the device fails the thread unwinds,
    /// as where there is no memory.
    pub fn fetch(&self) {
        dispatch!(self.dtype(), T => { self.as_slice::<T>(); });
    }
    /// The same array with the host, where its elements lie on a device. Where that fails the thread unwinds.
    pub fn brought(mut self) -> Array {
        if self.data.is_on_device() {
            dispatch!(self.dtype(), T => { self.as_mut_slice::<T>(); });
        }
        self
    }
    /// The same array with its elements on this device, too: as it is where they are there, else sent, which is noted for the next time.
    ///
    /// # Errors
    /// `E0392` where the device has no memory, `E0523` where it fails.
    pub fn sent(&self, site: &dyn Site) -> Result<Array> {
        if self.device() == Some(site.name()) {
            return Ok(self.clone());
        }
        let words = dispatch!(self.dtype(), T => widened(self.as_slice::<T>()));
        let memory = site.fresh(words.len())?;
        if !words.is_empty() {
            memory.write(0, &words)?;
        }
        Crossed::sent(self.len() * self.dtype().size());
        let to = Resident { memory, at: 0, n: self.len(), dtype: self.dtype() };
        match self.device() {
            None => {
                self.data.note_sent(to);
                Ok(self.clone())
            }
            Some(_) => Ok(Array::on_device(to, &self.shape)),
        }
    }
    /// The same elements on this device alone: what the host has of them goes with this array.
    ///
    /// # Errors
    /// As [`Array::sent`].
    pub fn moved(&self, site: &dyn Site) -> Result<Array> {
        let sent = self.sent(site)?;
        Ok(sent.data.resident().map_or(sent.clone(), |at| Array::on_device(at.clone(), &self.shape)))
    }
    /// An array of any values on a device.
    ///
    /// # Errors
    /// As [`Site::fresh`].
    pub fn dirty_on(dtype: DType, shape: &[usize], site: &dyn Site) -> Result<Array> {
        let n = super::array::elements(dtype, shape);
        let memory = site.fresh(n * super::words::words(dtype))?;
        Ok(Array::on_device(Resident { memory, at: 0, n, dtype }, shape))
    }
    /// Its elements for writing where they lie on a device, in memory that nothing else sees; `None` for those of the host.
    ///
    /// # Errors
    /// `E0392`, `E0523`.
    pub fn resident_mut(&mut self) -> Result<Option<&Resident>> {
        dispatch!(self.dtype(), T => <T as super::Element>::buffer_mut(&mut self.data).resident_mut())
    }
    /// Overwrites elements from `at` on with those of another array, where they lie on a device; false for those of the host.
    pub(super) fn copied_there(&mut self, at: usize, from: &Array, elements: Range<usize>) -> bool {
        if !self.data.is_on_device() {
            return false;
        }
        let copy = |to: &Resident| -> Result<()> {
            let from = from.sent(&*to.memory)?;
            from.data.resident().map_or(Ok(()), |from| to.take(at, from, elements.start, elements.len()))
        };
        let done = self.resident_mut().and_then(|to| to.map(copy).transpose());
        done.unwrap_or_else(|e| memory::fail(e)).is_some()
    }
    /// Sets elements to zero, where they lie on a device; false for those of the host.
    pub(super) fn cleared_there(&mut self, elements: Range<usize>) -> bool {
        if !self.data.is_on_device() {
            return false;
        }
        let done = self.resident_mut().and_then(|to| to.map(|to| to.clear(elements.start, elements.len())).transpose());
        done.unwrap_or_else(|e| memory::fail(e)).is_some()
    }
    /// Moves rows along the first axis within the array, which may overlap.
    pub fn move_rows(&mut self, rows: Range<usize>, to: usize) {
        let part = self.rows(rows.start, rows.end);
        // Of its own: what is read is not what is written.
        let part = if let Some(at) = part.data.resident().filter(|_| part.is_away()) {
            Array::on_device(at.copied().unwrap_or_else(|e| memory::fail(e)), part.shape())
        } else {
            part.owned()
        };
        self.copy_rows(to, &part, 0..part.shape()[0]);
    }
}
