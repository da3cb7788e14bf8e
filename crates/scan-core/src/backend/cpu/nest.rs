//! Runs kernels inside counted loops, with all operands checked before.

use super::code::{Code, Frame, Memory, Operand};
use crate::kernel::{Fill, MemId, Nest};
use smallvec::SmallVec;
use std::cell::Cell;
use std::marker::PhantomData;

/// Compiled code of a nest's kernel with operands that were checked for so many runs, one after the other.
pub struct NestRun<'a> {
    code: &'a dyn Code,
    nest: &'a Nest,
    /// The first element of each operand in the next run.
    ptrs: SmallVec<[*mut u8; 12]>,
    /// Bytes from one run to the next.
    strides: SmallVec<[isize; 12]>,
    /// Bytes from one step of the kernel to the next.
    steps: SmallVec<[isize; 12]>,
    left: usize,
    /// The memory of the operands.
    memory: PhantomData<&'a Cell<u8>>,
}

impl<'a> NestRun<'a> {
    /// Code of a nest's kernel with operands for so many runs; the strides of the operands lead from one run to the next.
    ///
    /// # Panics
    /// Where an operand lies outside its memory in one of the runs, is misaligned, or is written but only readable: a fault of the planner,
    /// caught before anything is touched.
    pub fn new(code: &'a dyn Code, nest: &'a Nest, operands: &[Operand<'a>], runs: usize) -> NestRun<'a> {
        assert_eq!(operands.len(), nest.kernel.mems.len(), "operands of a kernel");
        assert!(
            nest.kernel.stop.is_none() && nest.lanes > 0 && nest.steps > 0,
            "the kernel of a nest has lanes and steps and does not stop"
        );
        operands.iter().enumerate().for_each(|(k, operand)| check(nest, k, operand, runs));
        NestRun {
            code,
            nest,
            ptrs: operands.iter().map(Operand::ptr).collect(),
            strides: operands.iter().map(|o| o.stride).collect(),
            steps: nest.strides.iter().map(|s| s.step).collect(),
            left: runs,
            memory: PhantomData,
        }
    }

    /// Runs once.
    ///
    /// # Panics
    /// Where it has run as often as was checked.
    pub fn step(&mut self) {
        self.left = self.left.checked_sub(1).expect("a run that was checked");
        for fill in &self.nest.fills {
            // SAFETY: `new` has checked that the elements to be filled lie in memory that may be written.
            unsafe { self.fill(fill) };
        }
        let nest = self.nest;
        let mut ptrs = self.ptrs.clone();
        let mut at: SmallVec<[usize; 3]> = SmallVec::from_elem(0, nest.outer.len());
        if nest.places() > 0 {
            let (lanes, steps) = (nest.lanes, nest.steps);
            let frame = Frame { ptrs: ptrs.as_ptr(), strides: self.steps.as_ptr(), lanes, steps, first: nest.first, whole: lanes };
            // SAFETY: `new` has checked the elements of all places in this run, in memory that is borrowed as long as `self` lives.
            unsafe { self.code.run_places(&frame, &mut ptrs, &mut |ptrs| advance(nest, &mut at, ptrs)) };
        }
        self.ptrs.iter_mut().zip(&self.strides).for_each(|(ptr, &stride)| *ptr = ptr.wrapping_offset(stride));
    }

    /// # Safety
    /// The elements lie in memory that may be written, aligned to their size.
    unsafe fn fill(&self, fill: &Fill) {
        let (to, size) = (self.ptrs[fill.operand], self.nest.kernel.mems[MemId(fill.operand as u32)].dtype.size());
        // SAFETY: the caller's promise.
        unsafe {
            match size {
                1 => std::slice::from_raw_parts_mut(to, fill.count).fill(fill.bits as u8),
                2 => std::slice::from_raw_parts_mut(to.cast::<u16>(), fill.count).fill(fill.bits as u16),
                4 => std::slice::from_raw_parts_mut(to.cast::<u32>(), fill.count).fill(fill.bits as u32),
                _ => std::slice::from_raw_parts_mut(to.cast::<u64>(), fill.count).fill(fill.bits),
            }
        }
    }
}

/// Goes on to the next place of the outer axes; false after the last.
fn advance(nest: &Nest, at: &mut [usize], ptrs: &mut [*mut u8]) -> bool {
    for axis in (0..at.len()).rev() {
        at[axis] += 1;
        let wraps = at[axis] == nest.outer[axis];
        let back = if wraps { 1 - nest.outer[axis] as isize } else { 1 };
        for (ptr, strides) in ptrs.iter_mut().zip(&nest.strides) {
            *ptr = ptr.wrapping_offset(strides.outer[axis] * back);
        }
        if !wraps {
            return true;
        }
        at[axis] = 0;
    }
    false
}

fn check(nest: &Nest, k: usize, operand: &Operand, runs: usize) {
    let (id, own) = (MemId(k as u32), &nest.strides[k]);
    let size = nest.kernel.mems[id].dtype.size() as isize;
    assert!(!nest.writes(k) || matches!(operand.memory, Memory::Write(_)), "operand {k} is written but only readable");
    let (low, high) = nest.reach(k);
    let span = operand.stride.checked_mul(runs as isize - 1).expect("a stride that fits");
    let (low, high) = (operand.offset as isize + low + span.min(0), operand.offset as isize + high + span.max(0));
    assert!(low >= 0 && high as usize <= operand.memory.len(), "operand {k} reaches from {low} to {high} of {}", operand.memory.len());
    let even = std::iter::once(&own.step).chain(&own.outer).chain([&operand.stride]).all(|s| s % size == 0);
    assert!(operand.ptr().addr().is_multiple_of(size as usize) && even, "operand {k} is misaligned");
}
