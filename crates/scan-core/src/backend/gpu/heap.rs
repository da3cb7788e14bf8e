//! The memory of a call on a device: regions in one heap of words, and what crosses between it and the host.

use super::launch::{Base, Bases, STOPPED, in_words, whole};
use super::{DeviceRef, Launch, Memory, Program, kernels, words};
use crate::backend::cpu;
use crate::base::{Diagnostic, Result};
use crate::dispatch;
use crate::types::device::{Crossed, Resident};
use crate::types::memory::{self, OutOfMemory};
use crate::types::words::Words;
use crate::types::{DType, Element};
use std::cell::Cell;
use std::ops::Range;

/// So many operands of one kernel are written apart at most; two words each, behind those of the status.
const APART: usize = 64;
const STATUS_WORDS: usize = 2;
/// The word that counts who has come where all wait.
const COUNTER: usize = STATUS_WORDS + 2 * APART;

/// Memory of one dtype on a device, with the bytes of the host's that it stands for.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Its first word.
    pub at: usize,
    /// How many words it has.
    pub words: usize,
    /// Type of its elements.
    pub dtype: DType,
    /// The byte of the host's memory that its first element stands for.
    pub first: usize,
}

/// What launches note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// One took the value of a function of the host: nothing that was made counts.
    pub taken: bool,
    /// Steps of the last one that may stop.
    pub ran: usize,
    /// It stopped.
    pub stopped: bool,
}

/// Regions to be laid out.
#[derive(Default)]
pub struct Plan {
    words: usize,
}

impl Plan {
    /// Nothing yet.
    pub fn new() -> Plan {
        Plan { words: COUNTER + 1 }
    }
    /// A region for these bytes of a memory of the host.
    pub fn region(&mut self, dtype: DType, bytes: Range<usize>) -> Region {
        let count = bytes.len().div_ceil(dtype.size()) * words(dtype);
        // Each begins at a line of 64 bytes.
        let at = self.words.next_multiple_of(16);
        self.words = at + count;
        Region { at, words: count, dtype, first: bytes.start }
    }
}

impl Region {
    /// The same words as elements of another dtype, which begin at the first of them.
    pub fn as_dtype(&self, dtype: DType) -> Region {
        Region { dtype, first: 0, ..*self }
    }
    /// Where an operand begins that is so many bytes behind the begin of the host's memory.
    pub fn base(&self, offset: usize) -> Base {
        let by = in_words(offset as isize - self.first as isize, self.dtype.size(), words(self.dtype));
        Base { at: self.at.wrapping_add_signed(by), from: self.at, to: self.at.wrapping_add(self.words) }
    }
}

/// The memory of a call on a device.
pub struct Space {
    memory: Box<dyn Memory>,
    device: DeviceRef,
    /// Copies an element, per dtype that was needed.
    copies: Vec<(DType, Launch)>,
    /// Launches.
    pub launches: usize,
}

impl Space {
    /// Memory for the regions of a plan. It holds anything but for the status, which is cleared.
    ///
    /// # Errors
    /// `E0392` where the device has not as much.
    pub fn new(device: DeviceRef, plan: &Plan) -> Result<Space> {
        if plan.words * 4 > device.0.limit() {
            let what = format!("a call on the device {}, which takes {} bytes at most", device.0.name(), device.0.limit());
            return Err(OutOfMemory { bytes: plan.words as u128 * 4, machine: None }.diagnostic(&what));
        }
        let mut memory = device.0.memory(plan.words)?;
        memory.write(0, &[0; STATUS_WORDS])?;
        Ok(Space { memory, device, copies: vec![], launches: 0 })
    }

    /// Brings bytes of a memory, which stand from `offset` on there, to a region: from the host, or from elsewhere on the device.
    ///
    /// # Errors
    /// `E0523`.
    pub fn bring(&mut self, region: &Region, memory: cpu::Memory, bytes: Range<usize>) -> Result<()> {
        let at = region.base(bytes.start).at;
        let words = match memory {
            cpu::Memory::Read(m) => widened(region.dtype, &m[bytes.clone()]),
            cpu::Memory::Write(m) => widened(region.dtype, &memory::collect(m[bytes.clone()].iter().map(Cell::get))),
            cpu::Memory::Device(from) | cpu::Memory::DeviceMut(from) => {
                let [first, n] = in_elements(region.dtype, &bytes);
                return self.memory.copy_in(at, &*from.memory, from.at + first, n);
            }
        };
        Crossed::sent(bytes.len());
        self.memory.write(at, &words)
    }

    /// The elements of an array on the device from a byte on, where they stay. For devices whose launches reach them.
    ///
    /// # Errors
    /// An internal error for other devices.
    pub fn resident(&self, array: &Resident, bytes: Range<usize>) -> Result<Region> {
        let [first, words] = in_elements(array.dtype, &bytes);
        let at = self.memory.reach(&*array.memory)?.wrapping_add(array.at + first);
        Ok(Region { at, words, dtype: array.dtype, first: bytes.start })
    }

    /// Takes a region to these bytes of a memory that may be written.
    ///
    /// # Errors
    /// `E0523`.
    pub fn take(&mut self, region: &Region, memory: cpu::Memory, bytes: Range<usize>) -> Result<()> {
        let at = region.base(bytes.start).at;
        match memory {
            cpu::Memory::Write(cells) => {
                let mut words = vec![0; in_elements(region.dtype, &bytes)[1]];
                self.memory.read(at, &mut words)?;
                Crossed::fetched(bytes.len());
                narrowed(region.dtype, &words, &cells[bytes]);
                Ok(())
            }
            cpu::Memory::DeviceMut(to) => {
                let [first, n] = in_elements(region.dtype, &bytes);
                self.memory.copy_out(at, &*to.memory, to.at + first, n)
            }
            cpu::Memory::Read(_) | cpu::Memory::Device(_) => Err(Diagnostic::internal("a result in memory that is only read")),
        }
    }

    /// Writes a number of 64 bits, which no array holds.
    ///
    /// # Errors
    /// `E0523`.
    pub fn set(&mut self, region: &Region, number: i64) -> Result<()> {
        let mut words = vec![];
        number.put(&mut words);
        self.memory.write(region.base(0).at, &words)
    }

    /// Launches a run of so many steps.
    ///
    /// # Errors
    /// `E0523`.
    pub fn run(&mut self, launch: &Launch, bases: Bases, steps: usize, first: i64) -> Result<()> {
        let apart = launch.apart();
        assert!(apart.len() <= APART, "operands that are written apart");
        self.launches += 1;
        let params = launch.params(bases, STATUS_WORDS, 0, steps, first);
        self.memory.launch(launch.program()?, &params, launch.invocations())?;
        for (k, &mem) in apart.iter().enumerate() {
            let from = STATUS_WORDS + 2 * k;
            let from = Base { at: from, from, to: from + 2 };
            self.copy(launch.kernel().mems[mem].dtype, from, bases[mem.0 as usize])?;
        }
        Ok(())
    }

    /// Launches so many steps of parts, of which none writes apart, with a program of all of them.
    ///
    /// # Errors
    /// `E0523`.
    pub fn whole(&mut self, program: &Program, parts: &[whole::Part], steps: usize) -> Result<()> {
        self.launches += 1;
        let invocations =
            parts.iter().map(|p| p.tiling.map_or_else(|| p.launch.invocations(), |tiling| tiling.invocations())).max().unwrap_or(0);
        let params = whole::params(parts, STATUS_WORDS, 0, COUNTER, steps);
        self.memory.run_whole(program, &params, COUNTER, invocations)
    }

    fn copy(&mut self, dtype: DType, from: Base, to: Base) -> Result<()> {
        if !self.copies.iter().any(|c| c.0 == dtype) {
            let launch = Launch::of_nest(self.device, kernels::copy(dtype, 1, 0), false, 0)?;
            self.copies.push((dtype, launch.map_err(|r| Diagnostic::internal(r.0))?));
        }
        let launch = &self.copies.iter().find(|c| c.0 == dtype).expect("made above").1;
        let params = launch.params(&[from, to], STATUS_WORDS, 0, 1, 0);
        self.memory.launch(launch.program()?, &params, launch.invocations())
    }

    /// What the launches noted, when all are done.
    ///
    /// # Errors
    /// `E0523`.
    pub fn status(&mut self) -> Result<Status> {
        let mut words = [0; STATUS_WORDS];
        self.memory.read(0, &mut words)?;
        Ok(Status { taken: words[0] != 0, ran: (words[1] & !STOPPED) as usize, stopped: words[1] & STOPPED != 0 })
    }
    /// Waits until everything is done.
    ///
    /// # Errors
    /// `E0523`.
    pub fn finish(&mut self) -> Result<()> {
        self.memory.finish()
    }
}

/// The word of the first of some bytes, and how many words they are.
fn in_elements(dtype: DType, bytes: &Range<usize>) -> [usize; 2] {
    [bytes.start, bytes.len()].map(|n| n / dtype.size() * words(dtype))
}

/// Elements as words.
fn widened(dtype: DType, bytes: &[u8]) -> Vec<u32> {
    fn of<T: Element>(bytes: &[u8]) -> Vec<u32> {
        let mut words = memory::room(bytes.len() / size_of::<T>() * T::WORDS);
        bytes.chunks_exact(size_of::<T>()).for_each(|b| T::of_bytes(b).put(&mut words));
        words
    }
    dispatch!(dtype, T => of::<T>(bytes))
}

/// Words as elements.
fn narrowed(dtype: DType, words: &[u32], to: &[Cell<u8>]) {
    let size = dtype.size().min(4);
    for (word, cells) in words.iter().zip(to.chunks_exact(size)) {
        cells.iter().zip(word.to_le_bytes()).for_each(|(cell, byte)| cell.set(byte));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_back_as_they_went() {
        let bytes: Vec<u8> = (0..48u8).map(|b| b.wrapping_mul(37)).collect();
        for dtype in [DType::Bool, DType::I8, DType::U16, DType::I16, DType::F32, DType::I64] {
            let words = widened(dtype, &bytes);
            assert_eq!(words.len(), bytes.len() / dtype.size() * super::words(dtype), "{dtype}");
            let cells: Vec<Cell<u8>> = vec![Cell::new(0); 48];
            narrowed(dtype, &words, &cells);
            let expected: Vec<u8> = if dtype == DType::Bool { bytes.iter().map(|&b| u8::from(b != 0)).collect() } else { bytes.clone() };
            assert_eq!(cells.iter().map(Cell::get).collect::<Vec<_>>(), expected, "{dtype}");
        }
        assert_eq!(widened(DType::I8, &[0xff, 1]), [u32::MAX, 1]);
    }
}
