//! The choice between two floats without a branch: which one is taken depends on data that no processor foresees. The condition
//! becomes a mask of all bits in a vector register; conditions made of comparisons never leave the vector registers.

use super::body::{Body, float_condition};
use crate::base::IdxVec;
use crate::kernel::{Bin, Cmp, Kernel, Op, Reg, Un};
use crate::types::DType;
use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Type, Value, types};

/// Other machines have an instruction that chooses.
const MASKS: bool = cfg!(target_arch = "x86_64");

/// Per bool that is made of comparisons of floats alone, their dtype.
pub fn compared(kernel: &Kernel) -> IdxVec<Reg, Option<DType>> {
    let mut compared: IdxVec<Reg, Option<DType>> = IdxVec::new();
    for (r, inst) in kernel.body.enumerate() {
        let dtype = match &inst.op {
            _ if inst.dtype != DType::Bool => None,
            Op::Cmp(..) if converted(kernel, r).is_some() => converted(kernel, r).and_then(|b| compared[b]),
            Op::Cmp(_, x, _) => Some(kernel.dtype(*x)).filter(|d| d.is_float()),
            Op::Bin(_, x, y) => compared[*x].filter(|_| compared[*x] == compared[*y]),
            Op::Un(_, x) => compared[*x],
            _ => None,
        };
        compared.push(dtype);
    }
    compared
}

/// The bool that, converted to numbers, is compared with 0.
pub fn converted(kernel: &Kernel, r: Reg) -> Option<Reg> {
    match kernel.body[r].op {
        Op::Cmp(Cmp::Ne, x, zero) if kernel.body[zero].op == Op::Const(0) => match kernel.body[x].op {
            Op::Convert(b) if kernel.dtype(b) == DType::Bool => Some(b),
            _ => None,
        },
        _ => None,
    }
}

/// A vector of elements of a float dtype, and one of integers as wide.
fn vectors(dtype: DType) -> (Type, Type) {
    if dtype == DType::F32 { (types::F32X4, types::I32X4) } else { (types::F64X2, types::I64X2) }
}

impl Body<'_, '_> {
    /// x where c holds, else y.
    pub fn select(&mut self, dtype: DType, c: Reg, x: Reg, y: Reg) -> Value {
        let c = converted(self.kernel, c).unwrap_or(c);
        if !MASKS || !dtype.is_float() || self.is_extremum(c, x, y) {
            let (c, x, y) = (self.get(c), self.get(x), self.get(y));
            return self.builder.ins().select(c, x, y);
        }
        let (vector, _) = vectors(dtype);
        let mask = self.mask(c, dtype);
        let mask = self.builder.ins().bitcast(vector, MemFlagsData::new().with_endianness(Endianness::Little), mask);
        let (x, y) = (self.wide(vector, x), self.wide(vector, y));
        let chosen = self.builder.ins().bitselect(mask, x, y);
        self.builder.ins().extractlane(chosen, 0)
    }

    /// One instruction takes the lesser, or the greater, of the two that are compared.
    fn is_extremum(&self, c: Reg, x: Reg, y: Reg) -> bool {
        matches!(self.kernel.body[c].op, Op::Cmp(Cmp::Lt, a, b) if (a, b) == (x, y) || (a, b) == (y, x))
    }

    /// A float in every element of a vector.
    fn wide(&mut self, vector: Type, r: Reg) -> Value {
        let value = self.get(r);
        self.builder.ins().splat(vector, value)
    }

    /// All bits of the first element where a bool holds, else none.
    fn mask(&mut self, c: Reg, dtype: DType) -> Value {
        if let Some(&known) = self.masks.get(&(c, dtype)) {
            return known;
        }
        let mask = if self.compared[c] == Some(dtype) { self.mask_of_comparisons(c, dtype) } else { self.mask_of_byte(c, dtype) };
        self.masks.insert((c, dtype), mask);
        mask
    }

    fn mask_of_comparisons(&mut self, c: Reg, dtype: DType) -> Value {
        if let Some(b) = converted(self.kernel, c) {
            return self.mask(b, dtype);
        }
        match self.kernel.body[c].op {
            Op::Cmp(cmp, x, y) => {
                let (vector, _) = vectors(dtype);
                let (x, y) = (self.wide(vector, x), self.wide(vector, y));
                self.builder.ins().fcmp(float_condition(cmp), x, y)
            }
            Op::Bin(bin, x, y) => {
                let (x, y) = (self.mask(x, dtype), self.mask(y, dtype));
                match bin {
                    Bin::And => self.builder.ins().band(x, y),
                    Bin::Or => self.builder.ins().bor(x, y),
                    _ => self.builder.ins().bxor(x, y),
                }
            }
            Op::Un(Un::Not, x) => {
                let x = self.mask(x, dtype);
                self.builder.ins().bnot(x)
            }
            _ => self.mask_of_byte(c, dtype),
        }
    }

    fn mask_of_byte(&mut self, c: Reg, dtype: DType) -> Value {
        let (_, vector) = vectors(dtype);
        let byte = self.get(c);
        let word = self.builder.ins().uextend(vector.lane_type(), byte);
        let bits = self.builder.ins().ineg(word);
        self.builder.ins().scalar_to_vector(vector, bits)
    }
}
