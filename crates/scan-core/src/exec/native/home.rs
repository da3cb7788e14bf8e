//! Where the arrays of a part of a plan lie while it runs: with the host, or on the device that runs it.

use crate::backend::gpu::DeviceRef;
use crate::base::Result;
use crate::types::{Array, DType, memory};

/// The host, or a device.
#[derive(Clone, Copy)]
pub struct Home(pub Option<DeviceRef>);

impl Home {
    /// With the host.
    pub const HERE: Home = Home(None);

    /// An array of any values, on a device; nothing with the host. Where there is no memory the thread unwinds.
    fn there(self, dtype: DType, shape: &[usize]) -> Option<Array> {
        self.0.map(|device| Array::dirty_on(dtype, shape, &device).unwrap_or_else(|e| memory::fail(e)))
    }
    /// An array of any values.
    pub fn dirty(self, dtype: DType, shape: &[usize]) -> Array {
        self.there(dtype, shape).unwrap_or_else(|| Array::dirty(dtype, shape))
    }
    /// The same, with the host in memory that begins far from some addresses.
    pub fn dirty_apart(self, dtype: DType, shape: &[usize], others: impl FnOnce() -> smallvec::SmallVec<[usize; 8]>) -> Array {
        self.there(dtype, shape).unwrap_or_else(|| Array::dirty_apart(dtype, shape, &others()))
    }
    /// Rows of zeros.
    pub fn zeros(self, dtype: DType, shape: &[usize]) -> Array {
        match self.there(dtype, shape) {
            Some(mut rows) => {
                rows.clear_rows(0..shape[0]);
                rows
            }
            None => Array::zeros(dtype, shape),
        }
    }
    /// An array that is to be written where it lies.
    pub fn own(self, array: Array) -> Array {
        match self.0 {
            Some(device) => array.moved(&device).unwrap_or_else(|e| memory::fail(e)),
            None => array.brought(),
        }
    }
    /// Sees to it that an array that is read has its elements there, too.
    ///
    /// # Errors
    /// `E0392`, `E0523`.
    pub fn send(self, array: &mut Array) -> Result<()> {
        self.sent(array).map(|sent| *array = sent)
    }
    /// The same array, which has them there.
    ///
    /// # Errors
    /// As [`Home::send`].
    pub fn sent(self, array: &Array) -> Result<Array> {
        self.0.map_or_else(|| Ok(array.clone()), |device| array.sent(&device))
    }
}
