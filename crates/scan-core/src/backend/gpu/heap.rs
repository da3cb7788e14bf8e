//! The memory of a call on a device: regions in one heap of words, and what crosses between it and the host.

use super::launch::{Base, Bases, STOPPED, in_words};
use super::{DeviceRef, Launch, Memory, kernels, words};
use crate::backend::cpu;
use crate::base::{Diagnostic, Result};
use crate::types::DType;
use crate::types::memory::OutOfMemory;
use std::cell::Cell;
use std::ops::Range;

/// So many operands of one kernel are written apart at most; two words each, behind those of the status.
const APART: usize = 64;
const STATUS_WORDS: usize = 2;

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
        Plan { words: STATUS_WORDS + 2 * APART }
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
        Base { at: (self.at as isize + by) as usize, from: self.at, to: self.at + self.words }
    }
}

/// The memory of a call on a device.
pub struct Space {
    memory: Box<dyn Memory>,
    device: DeviceRef,
    /// Copies an element, per dtype that was needed.
    copies: Vec<(DType, Launch)>,
    /// Bytes that went to the device, and that came back.
    pub crossed: [usize; 2],
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
        Ok(Space { memory, device, copies: vec![], crossed: [0; 2], launches: 0 })
    }

    /// Writes bytes of the host's memory, which stand from `offset` on there, to a region.
    ///
    /// # Errors
    /// `E0523`.
    pub fn upload(&mut self, region: &Region, memory: cpu::Memory, bytes: Range<usize>) -> Result<()> {
        let at = region.base(bytes.start).at;
        self.crossed[0] += bytes.len();
        let words = match memory {
            cpu::Memory::Read(m) => widened(region.dtype, m[bytes].iter().copied()),
            cpu::Memory::Write(m) => widened(region.dtype, m[bytes].iter().map(Cell::get)),
        };
        self.memory.write(at, &words)
    }

    /// Reads a region back into these bytes of the host's memory.
    ///
    /// # Errors
    /// `E0523`.
    pub fn download(&mut self, region: &Region, memory: &[Cell<u8>], bytes: Range<usize>) -> Result<()> {
        let at = region.base(bytes.start).at;
        self.crossed[1] += bytes.len();
        let mut words = vec![0; bytes.len() / region.dtype.size() * words(region.dtype)];
        self.memory.read(at, &mut words)?;
        narrowed(region.dtype, &words, &memory[bytes]);
        Ok(())
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
        self.memory.launch(launch.program(), &params, launch.invocations())?;
        for (k, &mem) in apart.iter().enumerate() {
            let from = STATUS_WORDS + 2 * k;
            let from = Base { at: from, from, to: from + 2 };
            self.copy(launch.kernel().mems[mem].dtype, from, bases[mem.0 as usize])?;
        }
        Ok(())
    }

    fn copy(&mut self, dtype: DType, from: Base, to: Base) -> Result<()> {
        if !self.copies.iter().any(|c| c.0 == dtype) {
            let launch = Launch::of_nest(self.device, kernels::copy(dtype, 1, 0), false)?;
            self.copies.push((dtype, launch.map_err(|r| Diagnostic::internal(r.0))?));
        }
        let launch = &self.copies.iter().find(|c| c.0 == dtype).expect("made above").1;
        let params = launch.params(&[from, to], STATUS_WORDS, 0, 1, 0);
        self.memory.launch(launch.program(), &params, launch.invocations())
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

/// Elements as words.
fn widened(dtype: DType, mut bytes: impl Iterator<Item = u8>) -> Vec<u32> {
    let mut next = || bytes.next();
    let signed = matches!(dtype, DType::I8 | DType::I16);
    let one = |b: u8| if signed { b as i8 as i32 as u32 } else { u32::from(b) };
    let two = |b: [u8; 2]| if signed { i16::from_le_bytes(b) as i32 as u32 } else { u32::from(u16::from_le_bytes(b)) };
    std::iter::from_fn(|| {
        Some(match dtype.size() {
            1 => one(next()?),
            2 => two([next()?, next()?]),
            _ => u32::from_le_bytes([next()?, next()?, next()?, next()?]),
        })
    })
    .collect()
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
            let words = widened(dtype, bytes.iter().copied());
            assert_eq!(words.len(), bytes.len() / dtype.size() * super::words(dtype), "{dtype}");
            let cells: Vec<Cell<u8>> = vec![Cell::new(0); 48];
            narrowed(dtype, &words, &cells);
            assert_eq!(cells.iter().map(Cell::get).collect::<Vec<_>>(), bytes, "{dtype}");
        }
        assert_eq!(widened(DType::I8, [0xff, 1].into_iter()), [u32::MAX, 1]);
        assert_eq!(widened(DType::U8, [0xff].into_iter()), [255]);
    }
}
