//! Engines of this processor. All give the same bits for the same kernel (of one FMA class, see `scalar::lanes`).

#[allow(unsafe_code)]
pub mod code;
#[allow(unsafe_code)]
pub mod jit;
#[cfg(any(test, feature = "testing"))]
#[allow(unsafe_code)]
pub mod testing;
#[allow(unsafe_code)]
pub mod vm;

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
pub mod emit_x64;
pub mod isa;

pub use isa::Isa;
pub use code::{Code, Frame, Memory, Operand, Refusal, array_at, bytes, cells, clear, copy, run, with_slices, write_array};

use crate::kernel::Kernel;

/// TEMPORARY
#[allow(unsafe_code)]
mod slow {
    use super::*;
    use crate::kernel::{Lane, interp};
    pub struct Slow(pub Kernel);
    impl Code for Slow {
        unsafe fn run(&self, f: &Frame) -> usize {
            let n = self.0.mems.len();
            let mut ranges: Vec<(usize, usize)> = vec![];
            let mut lows = vec![];
            for i in 0..n {
                let p = unsafe { *f.ptrs.add(i) } as usize;
                let s = unsafe { *f.strides.add(i) };
                let m = self.0.mems.iter().nth(i).unwrap();
                let carried = self.0.carries.iter().any(|c| c.mem.0 as usize == i);
                let span = if carried { 0 } else { s * (f.steps as isize - 1) };
                let row = if m.lane == Lane::Unit { f.lanes } else { 1 } * m.dtype.size();
                let lo = (p as isize + span.min(0)) as usize;
                let hi = (p as isize + span.max(0)) as usize + row;
                ranges.push((lo, hi));
                lows.push(p);
            }
            let mut merged = ranges.clone();
            merged.sort();
            let mut out: Vec<(usize, usize)> = vec![];
            for r in merged {
                match out.last_mut() {
                    Some(l) if r.0 < l.1 => l.1 = l.1.max(r.1),
                    _ => out.push(r),
                }
            }
            let mut memories: Vec<Vec<u8>> = out.iter().map(|r| unsafe { std::slice::from_raw_parts(r.0 as *const u8, r.1 - r.0).to_vec() }).collect();
            let ops: Vec<interp::Operand> = (0..n).map(|i| {
                let k = out.iter().position(|r| r.0 <= ranges[i].0 && ranges[i].1 <= r.1).unwrap();
                interp::Operand { memory: k, offset: lows[i] - out[k].0, stride: unsafe { *f.strides.add(i) } }
            }).collect();
            let ran = interp::run(&self.0, &mut memories, &ops, f.lanes, f.steps, f.first);
            for i in 0..n {
                let written = self.0.carries.iter().any(|c| c.mem.0 as usize == i) || self.0.stores.iter().any(|s| s.mem.0 as usize == i);
                if written {
                    let k = out.iter().position(|r| r.0 <= ranges[i].0 && ranges[i].1 <= r.1).unwrap();
                    let src = &memories[k][ranges[i].0 - out[k].0..ranges[i].1 - out[k].0];
                    unsafe { std::ptr::copy_nonoverlapping(src.as_ptr(), ranges[i].0 as *mut u8, src.len()) };
                }
            }
            ran
        }
        fn engine(&self) -> &'static str { "slow" }
    }
}
/// The kernel on the vm.
pub fn vm(kernel: &Kernel) -> Box<dyn Code> {
    Box::new(slow::Slow(kernel.clone()))
}

/// The kernel as machine code for about this many lanes.
///
/// # Errors
/// Why there is none.
pub fn native(kernel: &Kernel, lanes: usize) -> Result<Box<dyn Code>, Refusal> {
    #[cfg(target_arch = "x86_64")]
    if lanes > 1 {
        let emitted = Isa::detect().map_err(Refusal).and_then(|isa| emit_x64::compile(kernel, isa));
        return emitted.or_else(|refusal| jit::compile(kernel).map_err(|_| refusal));
    }
    jit::compile(kernel)
}
