//! Kernels whose steps run loops, instruction by instruction. Machine code takes their place as soon as there is some.

use super::super::watch::{UNASKED, is_over};
use crate::backend::cpu::{Code, Frame};
use crate::kernel::interp::{Reads, step};
use crate::kernel::{Kernel, MemId};
use crate::types::DType;

/// Such a kernel.
pub struct Looped(pub Kernel);

/// What a step reads.
struct At<'a> {
    kernel: &'a Kernel,
    frame: &'a Frame,
    t: usize,
}

impl At<'_> {
    /// Where an operand's element lies in this step.
    fn place(&self, mem: MemId) -> *mut u8 {
        // SAFETY: a frame has an entry per operand.
        let (ptr, stride) = unsafe { (*self.frame.ptrs.add(mem.0 as usize), *self.frame.strides.add(mem.0 as usize)) };
        ptr.wrapping_offset(stride * self.t as isize)
    }
    fn read(&self, at: *const u8, dtype: DType) -> u64 {
        // SAFETY: whoever runs the kernel answers for the elements that its operands name, which are aligned.
        unsafe {
            match dtype.size() {
                1 => u64::from(at.read()),
                2 => u64::from(at.cast::<u16>().read()),
                4 => u64::from(at.cast::<u32>().read()),
                _ => at.cast::<u64>().read(),
            }
        }
    }
    fn write(&self, at: *mut u8, dtype: DType, bits: u64) {
        // SAFETY: as for reading; it is an operand that the kernel writes.
        unsafe {
            match dtype.size() {
                1 => at.write(bits as u8),
                2 => at.cast::<u16>().write(bits as u16),
                4 => at.cast::<u32>().write(bits as u32),
                _ => at.cast::<u64>().write(bits),
            }
        }
    }
    /// Where the element of a table with such a number lies.
    fn element_at(&self, mem: MemId, number: u64) -> *mut u8 {
        let of = &self.kernel.mems[mem];
        self.place(mem).wrapping_add(number.min(of.table as u64 - 1) as usize * of.dtype.size())
    }
}

impl Reads for At<'_> {
    fn load(&self, mem: MemId) -> u64 {
        self.read(self.place(mem), self.kernel.mems[mem].dtype)
    }
    fn element(&self, mem: MemId, number: usize) -> u64 {
        self.read(self.element_at(mem, number as u64), self.kernel.mems[mem].dtype)
    }
}

impl Code for Looped {
    unsafe fn run(&self, frame: &Frame) -> usize {
        assert_eq!(frame.lanes, 1, "a kernel whose steps run loops has one lane");
        let kernel = &self.0;
        let first = At { kernel, frame, t: 0 };
        let mut carried: Vec<u64> = kernel.carries.iter().map(|c| first.load(c.mem)).collect();
        let (mut ran, mut unasked) = (0, 0);
        let mut halts = |instructions: usize| {
            unasked += instructions;
            unasked >= UNASKED && {
                unasked = 0;
                is_over()
            }
        };
        for t in 0..frame.steps {
            let at = At { t, ..first };
            let Some(values) = step(kernel, &at, &carried, frame.first.wrapping_add(t as i64), &mut halts) else { return 0 };
            for store in &kernel.stores {
                let to = store.at.map_or_else(|| at.place(store.mem), |number| at.element_at(store.mem, values[number]));
                at.write(to, kernel.mems[store.mem].dtype, values[store.value]);
            }
            carried = kernel.carries.iter().map(|c| values[c.next]).collect();
            ran = t + 1;
            if kernel.stop.is_some_and(|stop| values[stop] != 0) {
                break;
            }
        }
        for (carry, &bits) in kernel.carries.iter().zip(&carried) {
            first.write(first.place(carry.mem), kernel.mems[carry.mem].dtype, bits);
        }
        ran
    }
    fn engine(&self) -> &'static str {
        "vm"
    }
}
