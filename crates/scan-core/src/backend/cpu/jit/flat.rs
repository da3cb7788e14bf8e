//! Lanes run as steps: the loop over time is the fast one, and a kernel that hands nothing from step to step does not see the
//! difference.

use crate::backend::cpu::Frame;
use crate::backend::cpu::code::Generated;
use crate::base::IdxVec;
use crate::kernel::{Kernel, Op, Reg};
use smallvec::SmallVec;

/// Bytes from one lane to the next, per operand.
pub struct Flat(Vec<isize>);

impl Flat {
    /// None where a kernel sees which step it runs, or knows how far operands move.
    pub fn of(kernel: &Kernel, needed: &IdxVec<Reg, bool>) -> Option<Flat> {
        let counts = kernel.body.enumerate().any(|(r, inst)| needed[r] && inst.op == Op::Step);
        let known = kernel.mems.iter().any(|m| m.stride.is_some());
        if counts || known || kernel.stop.is_some() || !kernel.carries.is_empty() {
            return None;
        }
        Some(Flat(kernel.mems.iter().map(|m| m.lane.elements() * m.dtype.size() as isize).collect()))
    }

    /// The lanes of a frame of one step as steps of one lane.
    pub fn turned(&self, frame: &Frame) -> Frame {
        Frame {
            ptrs: frame.ptrs,
            strides: self.0.as_ptr(),
            lanes: 1,
            steps: frame.lanes,
            first: frame.first,
            whole: 1,
            own: std::ptr::null_mut(),
        }
    }

    /// Runs all lanes of a step, then all of the next.
    ///
    /// # Safety
    /// As `Code::run`; the entry is that of the kernel's code.
    pub unsafe fn run(&self, entry: Generated, frame: &Frame) -> usize {
        // SAFETY: a frame has an entry per operand.
        let (ptrs, strides) =
            unsafe { (std::slice::from_raw_parts(frame.ptrs, self.0.len()), std::slice::from_raw_parts(frame.strides, self.0.len())) };
        let mut here: SmallVec<[*mut u8; 16]> = ptrs.iter().copied().collect();
        for _ in 0..frame.steps {
            let row = self.turned(&Frame { ptrs: here.as_ptr(), ..*frame });
            // SAFETY: step s of the row touches what lane s of this step would, which the caller answers for.
            unsafe { entry(&row) };
            here.iter_mut().zip(strides).for_each(|(ptr, stride)| *ptr = ptr.wrapping_offset(*stride));
        }
        frame.steps
    }
}
