//! The memory of operands.

use crate::types::Array;
use crate::types::device::Resident;
use std::cell::Cell;

/// Memory of an operand.
#[derive(Clone, Copy)]
pub enum Memory<'a> {
    /// Only read.
    Read(&'a [u8]),
    /// Read and written.
    Write(&'a [Cell<u8>]),
    /// Elements on a device, which are only read. No code of the processor reaches them.
    Device(&'a Resident),
    /// The same, read and written.
    DeviceMut(&'a Resident),
}

impl<'a> Memory<'a> {
    /// That of an array which is only read: where it lies on a device, if it is there and `there` asks for that.
    pub fn of(array: &'a Array, there: bool) -> Memory<'a> {
        match array.data().resident().filter(|_| there) {
            Some(at) => Memory::Device(at),
            None => Memory::Read(super::bytes(array)),
        }
    }
    /// That of an array which is written: on a device where it lies there, if `there` asks for that. Where the device fails the thread unwinds.
    pub fn of_mut(array: &'a mut Array, there: bool) -> Memory<'a> {
        if !there || !array.data().is_on_device() {
            return Memory::Write(super::cells(array));
        }
        match array.resident_mut() {
            Ok(Some(at)) => Memory::DeviceMut(at),
            Ok(None) => unreachable!("it lies on a device"),
            Err(e) => crate::types::memory::fail(e),
        }
    }
    /// Where it lies and how many bytes it has: which memory it is.
    pub fn span(&self) -> (usize, usize) {
        let at = match self {
            Memory::Device(at) | Memory::DeviceMut(at) => std::ptr::from_ref(*at).addr(),
            _ => self.ptr().addr(),
        };
        (at, self.len())
    }
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Memory::Read(m) => m.len(),
            Memory::Write(m) => m.len(),
            Memory::Device(at) | Memory::DeviceMut(at) => at.n * at.dtype.size(),
        }
    }
    /// # Panics
    /// For memory on a device: a fault of the planner.
    #[inline]
    pub(super) fn ptr(&self) -> *mut u8 {
        match self {
            Memory::Read(m) => m.as_ptr().cast_mut(),
            Memory::Write(m) => m.as_ptr().cast::<u8>().cast_mut(),
            Memory::Device(_) | Memory::DeviceMut(_) => panic!("an operand on a device"),
        }
    }
}
