//! Machine code for kernels with many lanes: AVX-512, or AVX2 with FMA. The lanes are done in blocks of some vectors; for each
//! block the whole loop over time runs with its carries in registers.
//!
//! ```text
//! select    KIR -> machine operations, still in SSA form
//! order     masks next to their uses, how many vectors side by side
//! alloc     registers and stack slots, while `emit` writes the instructions
//! layout    the loops around a step
//! ```
//!
//! Operands of one lane that are stored must not be read by the same step for another block: such states are carries.

mod alloc;
mod asm;
mod codes;
mod convert;
mod emit;
mod layout;
mod memory;
mod order;
mod select;
#[cfg(test)]
mod tests;

use super::isa::Isa;
use super::{Code, Frame, Refusal};
use crate::base::Id;
use crate::kernel::{Kernel, Lane};
use alloc::Shape;
use layout::Task;
use memmap2::{Mmap, MmapMut};
use select::Program;
use smallvec::SmallVec;
use std::sync::OnceLock;

/// Compiles a kernel for an instruction set that this machine has.
///
/// # Errors
/// What the kernel needs and this engine lacks, or that the system gives no executable memory.
pub fn compile(kernel: &Kernel, isa: Isa) -> Result<Box<dyn Code>, Refusal> {
    if isa == Isa::Portable {
        return Err(Refusal("no AVX2".to_string()));
    }
    if isa > Isa::machine() {
        return Err(Refusal(format!("this machine has no {}", isa.name())));
    }
    if kernel.stop.is_some() {
        return Err(Refusal("a loop that may stop early".to_string()));
    }
    let program = select::select(kernel, isa)?;
    let copies = order::copies(&program);
    let emitted = Emitted::new(program, copies);
    emitted.build(Shape { copies: 1, masked: true }).map(|one| _ = emitted.version(Shape { copies: 1, masked: true }).set(Some(one)))?;
    Ok(Box::new(emitted))
}

/// A function in executable memory.
struct Native {
    memory: Mmap,
}

impl Native {
    fn new(code: &[u8]) -> std::io::Result<Native> {
        let mut memory = MmapMut::map_anon(code.len())?;
        memory.copy_from_slice(code);
        Ok(Native { memory: memory.make_exec()? })
    }
    /// # Safety
    /// The task describes memory as `Code::run` demands, for the code of this function.
    unsafe fn call(&self, task: &mut Task) {
        // SAFETY: the memory holds a function of this type, written by `layout::function`; it stays mapped while `self` lives.
        let function = unsafe { std::mem::transmute::<*const u8, extern "sysv64" fn(*mut Task)>(self.memory.as_ptr()) };
        function(task);
    }
}

/// A kernel as machine code. Versions for different numbers of vectors are written when a call first needs them.
struct Emitted {
    program: Program,
    /// Vectors of a full block.
    copies: usize,
    versions: Vec<OnceLock<Option<Native>>>,
    /// Per operand: written, but the same for all lanes, and not read.
    once: Vec<bool>,
}

impl Emitted {
    fn new(program: Program, copies: usize) -> Emitted {
        let once = program.mems.ids().map(|m| program.writes_once(m)).collect();
        Emitted { program, copies, versions: (0..2 * copies).map(|_| OnceLock::new()).collect(), once }
    }
    fn build(&self, shape: Shape) -> Result<Native, Refusal> {
        let code = layout::function(&self.program, shape)?;
        Native::new(&code).map_err(|e| Refusal(format!("the system gives no executable memory: {e}")))
    }
    fn version(&self, shape: Shape) -> &OnceLock<Option<Native>> {
        &self.versions[2 * (shape.copies - 1) + usize::from(shape.masked)]
    }
    /// The code of a shape, unless it cannot be had.
    fn native(&self, shape: Shape) -> Option<&Native> {
        self.version(shape).get_or_init(|| self.build(shape).ok()).as_ref()
    }
    /// Blocks that cover the lanes, in order: their shape and number. Their sizes differ by one vector at most.
    fn blocks(&self, lanes: usize) -> SmallVec<[(Shape, usize); 3]> {
        let vectors = lanes.div_ceil(self.program.width);
        let count = vectors.div_ceil(self.copies);
        let copies = vectors.div_ceil(count);
        let large = vectors - count * (copies - 1);
        let mut blocks: SmallVec<[(Shape, usize); 3]> =
            SmallVec::from_slice(&[(Shape { copies, masked: false }, large), (Shape { copies: copies - 1, masked: false }, count - large)]);
        blocks.retain(|b| b.1 > 0);
        if let (false, Some(last)) = (lanes.is_multiple_of(self.program.width), blocks.last_mut()) {
            last.1 -= 1;
            let masked = Shape { masked: true, ..last.0 };
            blocks.push((masked, 1));
            blocks.retain(|b| b.1 > 0);
        }
        blocks
    }
    /// The same by single vectors: where larger versions cannot be had.
    fn single(&self, lanes: usize) -> SmallVec<[(Shape, usize); 3]> {
        (0..lanes.div_ceil(self.program.width)).map(|_| (Shape { copies: 1, masked: true }, 1)).collect()
    }
}

impl Program {
    fn writes_once(&self, mem: crate::kernel::MemId) -> bool {
        let loads = self.values.iter().any(|v| v.birth == select::Birth::Load(mem))
            || self.operations.iter().any(|o| o.form == select::Form::Load(mem));
        self.mems[mem].lane == Lane::Uniform && self.stores.iter().any(|s| s.0 == mem) && !loads
    }
}

impl Code for Emitted {
    unsafe fn run(&self, frame: &Frame) -> usize {
        let mut blocks = self.blocks(frame.lanes);
        if blocks.iter().any(|b| self.native(b.0).is_none()) {
            blocks = self.single(frame.lanes);
        }
        let operands = self.program.mems.len();
        // SAFETY: a frame has a pointer and a stride for each operand.
        let (ptrs, strides) =
            unsafe { (std::slice::from_raw_parts(frame.ptrs, operands), std::slice::from_raw_parts(frame.strides, operands)) };
        let mut aside: SmallVec<[u64; 8]> = SmallVec::from_elem(0, self.program.carries.len() + 1);
        let mut table: SmallVec<[[*mut u8; 2]; 24]> = ptrs.iter().zip(strides).map(|(&p, &s)| [p, s as *mut u8]).collect();
        let places = aside.as_mut_ptr();
        // SAFETY: the places are within `aside`.
        table.extend((0..self.program.carries.len()).map(|c| [unsafe { places.add(c) }.cast(), std::ptr::null_mut()]));
        let mut left = frame.lanes;
        for (i, (shape, count)) in parts(&blocks, self.once.contains(&true)).into_iter().enumerate() {
            if i == 1 {
                self.write_elsewhere(&mut table, places);
            }
            let lanes = left.min(shape.copies * self.program.width * count);
            let tail = lanes - (shape.copies * count - 1) * self.program.width;
            let mut task = Task::new(&mut table, count, frame, tail);
            if let Some(native) = self.native(shape) {
                // SAFETY: the caller's promise; the table has moved on behind the lanes that are done.
                unsafe { native.call(&mut task) };
            }
            left -= lanes;
        }
        for (c, carry) in self.program.carries.iter().enumerate() {
            let mem = &self.program.mems[carry.mem];
            if mem.lane == Lane::Uniform {
                // SAFETY: the operand of a carry may be written; the element has that size.
                unsafe { std::ptr::copy_nonoverlapping(aside[c..].as_ptr().cast(), ptrs[carry.mem.idx()], mem.dtype.size()) };
            }
        }
        frame.steps
    }
    fn engine(&self) -> &'static str {
        self.program.isa.name()
    }
}

impl Emitted {
    /// Lets blocks after the first write what is the same for all lanes to a place that nobody reads.
    fn write_elsewhere(&self, table: &mut [[*mut u8; 2]], places: *mut u64) {
        for (entry, once) in table.iter_mut().zip(&self.once) {
            if *once {
                // SAFETY: the last place serves nobody else.
                *entry = [unsafe { places.add(self.program.carries.len()) }.cast(), std::ptr::null_mut()];
            }
        }
    }
}

/// The blocks; the first alone, where it does more than others.
fn parts(blocks: &[(Shape, usize)], first_alone: bool) -> SmallVec<[(Shape, usize); 4]> {
    let mut parts: SmallVec<[(Shape, usize); 4]> = SmallVec::from_slice(blocks);
    if first_alone && parts[0].1 > 1 {
        parts[0].1 -= 1;
        parts.insert(0, (parts[0].0, 1));
    }
    parts
}

impl Task {
    /// A task of some blocks; `tail` lanes are in the last vector.
    fn new(table: &mut [[*mut u8; 2]], blocks: usize, frame: &Frame, tail: usize) -> Task {
        Task {
            table: table.as_mut_ptr(),
            blocks,
            steps: frame.steps,
            first: frame.first,
            mask: (1u64 << tail.min(63)) - 1,
            wide: std::array::from_fn(|l| -i64::from(l < tail)),
            narrow: std::array::from_fn(|l| -i32::from(l < tail)),
        }
    }
}
