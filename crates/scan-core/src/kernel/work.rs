//! What kernels do in a step, counted.

use super::{Kernel, Lane, Nest, Op};
use std::iter::Sum;
use std::ops::Add;

/// What is done in a step of a loop.
///
/// ```
/// use scan_core::prelude::*;
///
/// let out = scan().named("halves").steps(3).init("h", 1.0).run(|s| s.get("h") * 0.5);
/// let f = function(&[], &[&out.rows("h")]).engine(Engine::Vm).passes(PassOptions::none()).compile()?;
/// f.run(&[])?;
/// // The state is handed on, its row is stored.
/// assert_eq!(f.loops()[0].variants[0].work.map(|w| (w.operations, w.bytes)), Some((1, 8)));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Arithmetic on single elements, comparisons and choices among them: a fused multiply-add is two.
    pub operations: u64,
    /// The bytes of the elements that these give: a vector has twice as many float32 as float64.
    pub width: u64,
    /// Functions that are called.
    pub calls: u64,
    /// Bytes that are read and written, in caches too.
    pub bytes: u64,
}

impl Add for Work {
    type Output = Work;
    fn add(self, more: Work) -> Work {
        let sum = |a: u64, b: u64| a.saturating_add(b);
        Work {
            operations: sum(self.operations, more.operations),
            width: sum(self.width, more.width),
            calls: sum(self.calls, more.calls),
            bytes: sum(self.bytes, more.bytes),
        }
    }
}

impl Sum for Work {
    fn sum<I: Iterator<Item = Work>>(all: I) -> Work {
        all.fold(Work::default(), Add::add)
    }
}

impl Work {
    /// The same so many times.
    pub fn times(self, n: usize) -> Work {
        let by = |x: u64| x.saturating_mul(n as u64);
        Work { operations: by(self.operations), width: by(self.width), calls: by(self.calls), bytes: by(self.bytes) }
    }
    /// So many bytes that are read and written elsewhere.
    pub fn moved(bytes: usize) -> Work {
        Work { bytes: 2 * bytes as u64, ..Work::default() }
    }
}

impl Kernel {
    /// What a step does for so many lanes; `None` where it runs loops, of which nobody knows how many steps they take.
    pub fn work(&self, lanes: usize) -> Option<Work> {
        if self.has_loops() {
            return None;
        }
        let lanes = lanes as u64;
        let mut work = Work::default();
        for inst in self.body.iter() {
            let size = inst.dtype.size() as u64;
            match inst.op {
                Op::Un(..) | Op::Bin(..) | Op::Cmp(..) | Op::Select(..) | Op::Convert(_) => {
                    (work.operations, work.width) = (work.operations + lanes, work.width + lanes * size);
                }
                Op::Fma(..) => (work.operations, work.width) = (work.operations + 2 * lanes, work.width + 2 * lanes * size),
                Op::Call(..) => work.calls += lanes,
                Op::Gather(..) => work.bytes += lanes * size,
                Op::Load(mem) => work.bytes += if self.mems[mem].lane == Lane::Uniform { size } else { lanes * size },
                Op::Const(_) | Op::Step | Op::Carry(_) | Op::Bits(_) | Op::Loop(_) | Op::Last(..) | Op::Left(..) => {}
            }
        }
        let stored = |mem: Lane| if mem == Lane::Uniform { 1 } else { lanes };
        work.bytes += self.stores.iter().map(|s| &self.mems[s.mem]).map(|mem| stored(mem.lane) * mem.dtype.size() as u64).sum::<u64>();
        Some(work)
    }
}

impl Nest {
    /// What all of it does; `None` as there.
    pub fn work(&self) -> Option<Work> {
        Some(self.kernel.work(self.lanes)?.times(self.steps).times(self.places()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Bin, Inst, Mem, MemId, Reg, Store};
    use crate::types::DType::{F32, F64};

    #[test]
    fn operations_and_bytes_are_those_of_all_lanes() {
        let mut k = Kernel::default();
        k.mems.push(Mem::new(F64, Lane::Unit));
        k.mems.push(Mem::new(F32, Lane::Uniform));
        let ops = [
            (Op::Load(MemId(0)), F64),
            (Op::Load(MemId(1)), F32),
            (Op::Convert(Reg(1)), F64),
            (Op::Bin(Bin::Add, Reg(0), Reg(2)), F64),
            (Op::Fma(Reg(3), Reg(0), Reg(2)), F64),
        ];
        for (op, dtype) in ops {
            k.body.push(Inst { op, dtype });
        }
        k.stores.push(Store { mem: MemId(0), value: Reg(4), at: None });
        let expected = Work { operations: 4 * 10, width: 4 * 80, calls: 0, bytes: 80 + 4 + 80 };
        assert_eq!(k.work(10), Some(expected));
        let nest = Nest { outer: [3].into_iter().collect(), ..Nest::of(k, 10, 2, [0, 0]) };
        assert_eq!(nest.work(), Some(expected.times(6)));
    }
}
