//! Constants that stay in registers. The code generator makes a float constant again at each use; where the instruction takes it
//! from memory that costs nothing, elsewhere the loop loads it once, before the first step.

use crate::base::IdxVec;
use crate::kernel::{Bin, Cmp, Kernel, Op, Reg};
use crate::types::DType;
use rustc_hash::FxHashMap;

/// More would push the values of the step out of the registers.
const MOST: usize = 12;

/// The constants that a kernel loads.
pub struct Pool {
    /// Their bits, as they lie in memory.
    pub words: Box<[u64]>,
    /// The place of each constant that is among them.
    pub places: Vec<(Reg, usize)>,
}

/// True where instructions take one operand from memory.
const MEMORY_OPERANDS: bool = cfg!(target_arch = "x86_64");

/// The constants of the values that are needed.
pub fn pool(kernel: &Kernel, needed: &IdxVec<Reg, bool>) -> Pool {
    let mut pool = Pool { words: Box::default(), places: vec![] };
    let mut words: Vec<u64> = vec![];
    let mut known: FxHashMap<(u64, DType), usize> = FxHashMap::default();
    let uses = kernel.body.enumerate().filter(|(r, _)| needed[*r]).flat_map(|(_, inst)| in_register(&inst.op));
    let stored = kernel.stores.iter().map(|s| s.value);
    for r in uses.chain(stored) {
        let (Op::Const(bits), dtype) = (&kernel.body[r].op, kernel.dtype(r)) else { continue };
        if !dtype.is_float() || *bits == 0 || known.len() == MOST && !known.contains_key(&(*bits, dtype)) {
            continue;
        }
        let place = *known.entry((*bits, dtype)).or_insert_with(|| {
            words.push(in_memory(*bits, dtype));
            words.len() - 1
        });
        pool.places.push((r, place));
    }
    pool.words = words.into();
    pool
}

/// The word whose first bytes are those of the element.
fn in_memory(bits: u64, dtype: DType) -> u64 {
    match dtype {
        DType::F32 => {
            let [a, b, c, d] = (bits as u32).to_ne_bytes();
            u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])
        }
        _ => bits,
    }
}

/// The operands that an instruction wants in registers.
fn in_register(op: &Op) -> Vec<Reg> {
    match op {
        _ if !MEMORY_OPERANDS => op.uses().to_vec(),
        Op::Bin(Bin::Sub | Bin::Div, x, _) | Op::Cmp(Cmp::Eq | Cmp::Ne, x, _) => vec![*x],
        Op::Cmp(Cmp::Lt | Cmp::Le, _, y) => vec![*y],
        Op::Fma(x, y, _) => vec![*x, *y],
        Op::Select(_, x, y) => vec![*x, *y],
        _ => vec![],
    }
}
