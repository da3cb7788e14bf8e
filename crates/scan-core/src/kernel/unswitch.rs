//! Loop unswitching: of a kernel whose work hangs on a condition that all lanes share, one kernel for where it holds and one for where it
//! does not.
//!
//! ```text
//! r2 = load m0          (a bool, the same in all lanes)      where m0 holds     r3 = …;  store m2 = r3
//! r4 = select r2 r3 r1                                       else               store m2 = r1
//! store m2 = r4
//! ```

use super::interp;
use super::kir::{Bin, Inst, Kernel, MemId, Op, Reg};
use super::nest::{Nest, Use};
use super::rebuild::rebuilt;
use crate::base::IdxVec;
use crate::types::DType;
use smallvec::SmallVec;

/// A kernel in two versions.
#[derive(Clone, Debug)]
pub struct Unswitched {
    /// What decides between them.
    pub condition: Condition,
    /// The kernel where the condition does not hold, and where it holds; on the operands of the whole.
    pub kernels: [Kernel; 2],
}

/// A bool that is computed of numbers in memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// Instructions, each of values before it; the last is the bool.
    body: IdxVec<Reg, Inst>,
}

/// So many instructions are computed at most to decide.
const MOST: usize = 8;
/// The version of less work has so many of a hundred instructions at most; else the two are hardly worth their code.
const LESS: usize = 60;
/// So many instructions for all lanes are worth a decision.
const WORTH: usize = 2048;
/// So many conditions are tried.
const TRIED: usize = 4;

impl Unswitched {
    /// Of a nest in which a condition stays the same for all lanes, steps and places, and decides about much of the work.
    pub fn of(nest: &Nest) -> Option<Unswitched> {
        let kernel = &nest.kernel;
        let size = kernel.needed().iter().filter(|n| **n).count();
        if size * nest.lanes * nest.steps * nest.places() < WORTH || kernel.stop.is_some() || kernel.has_loops() {
            return None;
        }
        let mut best: Option<(usize, Unswitched)> = None;
        for r in deciding(kernel).into_iter().take(TRIED) {
            let Some(condition) = Condition::of(nest, r) else { continue };
            let kernels = [false, true].map(|holds| given(kernel, r, holds));
            let least = kernels.iter().map(|k| k.body.len()).min()?;
            if least * 100 <= size * LESS && best.as_ref().is_none_or(|(known, _)| least < *known) {
                best = Some((least, Unswitched { condition, kernels }));
            }
        }
        best.map(|found| found.1)
    }
}

/// Bools that are the same in all lanes and choose between values, or are taken together with bools that are not.
fn deciding(kernel: &Kernel) -> SmallVec<[Reg; 4]> {
    let varying = kernel.varying();
    let mut found: SmallVec<[Reg; 4]> = SmallVec::new();
    for inst in kernel.body.iter() {
        let uniform = match inst.op {
            Op::Select(cond, ..) => Some(cond),
            Op::Bin(Bin::And | Bin::Or, x, y) if inst.dtype == DType::Bool && varying[x] != varying[y] => {
                Some(if varying[x] { y } else { x })
            }
            _ => None,
        };
        found.extend(uniform.filter(|&r| !varying[r] && !matches!(kernel.body[r].op, Op::Const(_)) && !found.contains(&r)));
    }
    found
}

impl Condition {
    /// A value of a nest's kernel, if it is made of few numbers that stay where they are and that the kernel does not write.
    fn of(nest: &Nest, r: Reg) -> Option<Condition> {
        let uses = Use::of(&nest.kernel);
        let mut cone: SmallVec<[Reg; MOST]> = SmallVec::from_slice(&[r]);
        let mut next = 0;
        while let Some(&r) = cone.get(next) {
            let op = &nest.kernel.body[r].op;
            let fits = match op {
                Op::Load(mem) => {
                    let k = mem.0 as usize;
                    let stays = nest.strides[k].step == 0 || nest.steps == 1;
                    uses[k] == Use::Read && stays && nest.strides[k].outer.iter().all(|&far| far == 0)
                }
                Op::Step => nest.steps == 1,
                Op::Gather(..) | Op::Carry(_) | Op::Call(..) | Op::Loop(_) | Op::Last(..) | Op::Left(..) => false,
                _ => true,
            };
            cone.extend(op.uses().into_iter().filter(|u| !cone.contains(u)).collect::<SmallVec<[Reg; 3]>>());
            if !fits || cone.len() > MOST {
                return None;
            }
            next += 1;
        }
        cone.sort_unstable();
        let new = |r: Reg| Reg(cone.binary_search(&r).map_or(u32::MAX, |at| at as u32));
        let insts = cone.iter().map(|&r| Inst { op: nest.kernel.body[r].op.of(new), ..nest.kernel.body[r].clone() });
        Some(Condition { body: insts.collect() })
    }

    /// Whether it holds at a step of this number, where an operand has these bits.
    pub fn holds(&self, step: i64, read: impl Fn(MemId, DType) -> u64) -> bool {
        let mut values: SmallVec<[u64; MOST]> = SmallVec::new();
        for inst in self.body.iter() {
            let args: SmallVec<[u64; 3]> = inst.op.uses().iter().map(|r| values[r.0 as usize]).collect();
            values.push(match inst.op {
                Op::Load(mem) => read(mem, inst.dtype),
                Op::Step => step as u64,
                _ => {
                    let from = inst.op.uses().first().map_or(inst.dtype, |&r| self.body[r].dtype);
                    interp::compute(inst, from, &args)
                }
            });
        }
        values.last().is_some_and(|&bits| bits != 0)
    }
}

/// A kernel where a bool has this value, without what is not needed then.
fn given(kernel: &Kernel, known: Reg, holds: bool) -> Kernel {
    rebuilt(kernel, |builder, r, _| (r == known).then(|| builder.truth(holds)))
}

#[cfg(test)]
mod tests;
