//! Constants that stay in registers. The code generator makes a float constant again at each use; where the instruction takes it
//! from memory that costs nothing, elsewhere the loop loads it once, before the first step.

use super::body::{flags, machine};
use crate::base::IdxVec;
use crate::kernel::{Bin, Cmp, Kernel, Op, Reg};
use crate::types::DType;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::FunctionBuilder;
use rustc_hash::FxHashMap;

/// More would push the values of the step out of the registers.
const MOST: usize = 12;

/// The constants that a kernel loads.
pub struct Pool {
    /// Their bits, as they lie in memory.
    pub words: Box<[u64]>,
    /// The place of each constant that is among them.
    pub places: Vec<(Reg, usize)>,
    /// Those of the loops that a step runs.
    pub inner: FxHashMap<Reg, Pool>,
}

impl Pool {
    /// Loads them all, once.
    pub fn loaded(&self, builder: &mut FunctionBuilder, kernel: &Kernel) -> FxHashMap<Reg, Value> {
        let mut loaded: Vec<Option<Value>> = vec![None; self.words.len()];
        let mut load = |r: Reg, place: usize| {
            *loaded[place].get_or_insert_with(|| {
                let address = builder.ins().iconst(types::I64, self.words.as_ptr().addr() as i64);
                builder.ins().load(machine(kernel.dtype(r)), flags(), address, (place * size_of::<u64>()) as i32)
            })
        };
        self.places.iter().map(|&(r, place)| (r, load(r, place))).collect()
    }
}

/// True where instructions take one operand from memory.
const MEMORY_OPERANDS: bool = cfg!(target_arch = "x86_64");

/// The constants of the values that are needed.
pub fn pool(kernel: &Kernel, needed: &IdxVec<Reg, bool>) -> Pool {
    let mut pool = Pool { words: Box::default(), places: vec![], inner: FxHashMap::default() };
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
    for (r, inst) in kernel.body.enumerate() {
        if let Op::Loop(inner) = &inst.op {
            pool.inner.insert(r, self::pool(&inner.kernel, &inner.kernel.needed()));
        }
    }
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
