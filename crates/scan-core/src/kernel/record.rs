//! Builds kernels: equal pure instructions are made once, and rows of the elementwise table become primitive operations.

mod division;
mod floats;
mod ints;
#[cfg(test)]
mod tests;

use super::interp;
use super::kir::{Bin, Carry, CarryId, Cmp, HostFn, Inst, Kernel, Lane, Mem, MemId, Op, Reg, Store, Un};
use super::loops::Loop;
use crate::base::IdxVec;
use crate::scalar::{ElemOp, Rule, lanes};
use crate::types::{Array, DType};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A kernel under construction. Asked for a value that the body already has, it gives that one. Operands of wrong dtypes are
/// faults of rscan, and panic in debug builds.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    kernel: Kernel,
    made: FxHashMap<Inst, Reg>,
    /// True per value that is a float and never −0.
    plain: IdxVec<Reg, bool>,
}

impl Builder {
    /// An empty kernel.
    pub fn new() -> Builder {
        Builder::default()
    }
    /// A kernel that has these operands.
    pub fn on(mems: IdxVec<MemId, Mem>) -> Builder {
        Builder { kernel: Kernel { mems, ..Kernel::default() }, ..Builder::default() }
    }
    /// The kernel as it is.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }
    /// The kernel, done.
    pub fn finish(self) -> Kernel {
        self.kernel
    }
    /// The dtype of a value.
    pub fn dtype(&self, r: Reg) -> DType {
        self.kernel.dtype(r)
    }

    /// The bits of a value that is a constant.
    pub fn known(&self, r: Reg) -> Option<u64> {
        if let Op::Const(bits) = self.kernel.body[r].op { Some(bits) } else { None }
    }

    /// A new operand.
    pub fn mem(&mut self, dtype: DType, lane: Lane) -> MemId {
        self.mem_by(dtype, lane, None)
    }
    /// This as a new operand.
    pub fn operand(&mut self, mem: Mem) -> MemId {
        self.kernel.mems.push(mem)
    }
    /// A new operand that moves by so many bytes a step, where that is known.
    pub fn mem_by(&mut self, dtype: DType, lane: Lane, stride: Option<i32>) -> MemId {
        self.kernel.mems.push(Mem { stride, ..Mem::new(dtype, lane) })
    }
    /// A value that one step hands to the next, with what this step sees of it. Until [`set_next`](Builder::set_next) says
    /// otherwise it stays as it is.
    pub fn carry(&mut self, mem: MemId) -> (CarryId, Reg) {
        let dtype = self.kernel.mems[mem].dtype;
        let carry = self.kernel.carries.push(Carry { mem, next: Reg(0) });
        let now = self.emit(Op::Carry(carry), dtype);
        self.kernel.carries[carry].next = now;
        (carry, now)
    }
    /// What a step sees of a carry.
    pub fn carried(&mut self, carry: CarryId) -> Reg {
        let dtype = self.kernel.mems[self.kernel.carries[carry].mem].dtype;
        self.emit(Op::Carry(carry), dtype)
    }
    /// What the next step sees of a carry.
    pub fn set_next(&mut self, carry: CarryId, next: Reg) {
        debug_assert_eq!(self.kernel.mems[self.kernel.carries[carry].mem].dtype, self.dtype(next), "a carry keeps its dtype");
        self.kernel.carries[carry].next = next;
    }
    /// Says that an operand lies so many bytes behind another one, and moves as that does.
    pub fn set_beside(&mut self, mem: MemId, other: MemId, bytes: i32) {
        self.kernel.mems[mem].beside = Some((other, bytes));
    }
    /// The element of an operand.
    pub fn load(&mut self, mem: MemId) -> Reg {
        self.emit(Op::Load(mem), self.kernel.mems[mem].dtype)
    }
    /// A new operand that is a table of so many elements, and that moves by so many bytes a step where that is known.
    pub fn table(&mut self, dtype: DType, elements: usize, stride: Option<i32>) -> MemId {
        self.kernel.mems.push(Mem { stride, table: elements, ..Mem::new(dtype, Lane::Uniform) })
    }
    /// The element of a table with this number (i64), the last where there is none such.
    pub fn gather(&mut self, table: MemId, index: Reg) -> Reg {
        debug_assert_eq!(self.dtype(index), DType::I64);
        self.emit(Op::Gather(table, index), self.kernel.mems[table].dtype)
    }
    /// Writes a value to an operand at the end of each step, after the stores before.
    pub fn store(&mut self, mem: MemId, value: Reg) {
        debug_assert_eq!(self.kernel.mems[mem].dtype, self.dtype(value), "a store keeps the operand's dtype");
        self.kernel.stores.push(Store { mem, value, at: None });
    }
    /// Writes the element of a table with this number (i64), the last where there is none such, at the end of each step, after the stores
    /// before.
    pub fn store_at(&mut self, table: MemId, at: Reg, value: Reg) {
        debug_assert_eq!(
            (self.kernel.mems[table].dtype, DType::I64),
            (self.dtype(value), self.dtype(at)),
            "a store keeps the table's dtype"
        );
        self.kernel.stores.push(Store { mem: table, value, at: Some(at) });
    }
    /// The kernel leaves after the step in which this bool holds.
    pub fn stop(&mut self, r: Reg) {
        debug_assert_eq!(self.dtype(r), DType::Bool);
        self.kernel.stop = Some(r);
    }
    /// The number of the step, i64.
    pub fn step(&mut self) -> Reg {
        self.emit(Op::Step, DType::I64)
    }

    /// A constant, converted to the dtype as a cast does.
    pub fn constant(&mut self, dtype: DType, x: f64) -> Reg {
        self.element(&Array::full(dtype, &[], x))
    }
    /// An integer constant, converted to the dtype as a cast does.
    pub fn integer(&mut self, dtype: DType, k: i64) -> Reg {
        self.element(&Array::scalar(k).cast(dtype))
    }
    /// A truth value.
    pub fn truth(&mut self, x: bool) -> Reg {
        self.raw(DType::Bool, x as u64)
    }
    /// The one element of an array as a constant.
    pub fn element(&mut self, x: &Array) -> Reg {
        self.raw(x.dtype(), x.bits()[0])
    }
    /// A constant of these bits, cut to the width of the dtype.
    pub fn raw(&mut self, dtype: DType, bits: u64) -> Reg {
        self.emit(Op::Const(bits & mask(dtype)), dtype)
    }

    /// A function of one value.
    pub fn un(&mut self, un: Un, x: Reg) -> Reg {
        if let (Un::Not, DType::Bool) = (un, self.dtype(x)) {
            return self.not(x);
        }
        self.emit(Op::Un(un, x), self.dtype(x))
    }
    /// A function of two values of one dtype.
    pub fn bin(&mut self, bin: Bin, x: Reg, y: Reg) -> Reg {
        debug_assert_eq!(self.dtype(x), self.dtype(y), "{bin:?}");
        let dtype = self.dtype(x);
        let turns = !dtype.is_float() && matches!(bin, Bin::Add | Bin::Mul | Bin::And | Bin::Or | Bin::Xor);
        let (x, y) = if turns && y < x { (y, x) } else { (x, y) };
        if x == y && matches!(bin, Bin::And | Bin::Or) {
            return x;
        }
        if let (DType::Bool, Bin::And | Bin::Or) = (dtype, bin) {
            // Where one is known, it is what both together are, or the other one is.
            let decides = u64::from(bin == Bin::Or);
            match (self.known(x), self.known(y)) {
                (Some(known), _) => return if known == decides { x } else { y },
                (_, Some(known)) => return if known == decides { y } else { x },
                _ => {}
            }
        }
        match self.neutral(bin, x, y) {
            Some(other) => other,
            None => self.emit(Op::Bin(bin, x, y), dtype),
        }
    }
    /// The operand that a sum, difference, product or quotient is, where the other one changes no bit of it.
    fn neutral(&self, bin: Bin, x: Reg, y: Reg) -> Option<Reg> {
        let dtype = self.dtype(x);
        let is = |r: Reg, number: f64| dtype.is_float() && self.known(r) == Some(bits_of(dtype, number));
        let counts = |r: Reg, bits: u64| dtype.is_int() && self.known(r) == Some(bits);
        match bin {
            Bin::Add if counts(x, 0) => Some(y),
            Bin::Mul if counts(x, 1) => Some(y),
            Bin::Add | Bin::Sub if counts(y, 0) => Some(x),
            Bin::Mul if counts(y, 1) => Some(x),
            Bin::Add if is(y, 0.0) && self.plain[x] => Some(x),
            Bin::Add if is(x, 0.0) && self.plain[y] => Some(y),
            Bin::Sub if is(y, 0.0) => Some(x),
            Bin::Mul | Bin::Div if is(y, 1.0) => Some(x),
            Bin::Mul if is(x, 1.0) => Some(y),
            _ => None,
        }
    }
    /// True where a value is a float and never −0. A sum is −0 only where both operands are; a product may be rounded to it.
    fn is_plain(&self, inst: &Inst) -> bool {
        inst.dtype.is_float()
            && match inst.op {
                Op::Const(bits) => bits != bits_of(inst.dtype, -0.0),
                Op::Bin(Bin::Add, x, y) => self.plain[x] || self.plain[y],
                Op::Bin(Bin::Mul, x, y) => x == y,
                Op::Select(_, x, y) => self.plain[x] && self.plain[y],
                Op::Convert(x) => !self.dtype(x).is_float(),
                Op::Un(Un::Abs, _) => true,
                _ => false,
            }
    }
    /// `x · y + z` of floats, rounded once where [`lanes::fused`] says so, else twice.
    pub fn fma(&mut self, x: Reg, y: Reg, z: Reg) -> Reg {
        if lanes::fused() {
            return self.emit(Op::Fma(x, y, z), self.dtype(x));
        }
        let product = self.bin(Bin::Mul, x, y);
        self.bin(Bin::Add, product, z)
    }
    /// A comparison of two values of one dtype.
    pub fn cmp(&mut self, cmp: Cmp, x: Reg, y: Reg) -> Reg {
        debug_assert_eq!(self.dtype(x), self.dtype(y), "{cmp:?}");
        self.emit(Op::Cmp(cmp, x, y), DType::Bool)
    }
    /// x where the bool holds, else y.
    pub fn select(&mut self, cond: Reg, x: Reg, y: Reg) -> Reg {
        debug_assert_eq!((self.dtype(cond), self.dtype(x)), (DType::Bool, self.dtype(y)), "select");
        match self.kernel.body[cond].op {
            _ if x == y => x,
            Op::Const(c) => [y, x][c as usize],
            _ => self.emit(Op::Select(cond, x, y), self.dtype(x)),
        }
    }
    /// Converted by the rule of `types::Cast`.
    pub fn convert(&mut self, x: Reg, dtype: DType) -> Reg {
        let from = self.dtype(x);
        match self.kernel.body[x].op {
            _ if from == dtype => x,
            Op::Const(bits) => self.element(&array(from, bits).cast(dtype)),
            _ => self.emit(Op::Convert(x), dtype),
        }
    }
    /// The same bits as a dtype of the same width.
    pub fn bits(&mut self, x: Reg, dtype: DType) -> Reg {
        debug_assert_eq!(self.dtype(x).size(), dtype.size(), "bits");
        match self.kernel.body[x].op {
            _ if self.dtype(x) == dtype => x,
            Op::Const(bits) => self.raw(dtype, bits),
            Op::Bits(y) => self.bits(y, dtype),
            _ => self.emit(Op::Bits(x), dtype),
        }
    }
    /// A function of this machine on f64.
    pub fn call(&mut self, f: HostFn, args: &[Reg]) -> Reg {
        debug_assert!(args.len() == f.arity() && args.iter().all(|&r| self.dtype(r) == DType::F64), "{f:?}");
        self.emit(Op::Call(f, SmallVec::from_slice(args)), DType::F64)
    }

    /// A loop that the step runs: how many of its steps ran.
    pub fn looped(&mut self, inner: Loop) -> Reg {
        self.emit(Op::Loop(inner), DType::I64)
    }
    /// A carry of a loop that the step runs, behind the last of its steps.
    pub fn last(&mut self, of: Reg, carry: CarryId) -> Reg {
        let inner = &self.kernel.loop_at(of).kernel;
        let dtype = inner.mems[inner.carries[carry].mem].dtype;
        self.emit(Op::Last(of, carry), dtype)
    }
    /// An element of the memory of such a loop's own.
    pub fn left(&mut self, of: Reg, mem: MemId, number: Reg) -> Reg {
        let dtype = self.kernel.loop_at(of).kernel.mems[mem].dtype;
        self.emit(Op::Left(of, mem, number), dtype)
    }

    /// The value of a row of the elementwise table on raw inputs, as the evaluator computes it; `None` where the row does not
    /// take them or cannot be expressed.
    pub fn apply(&mut self, op: ElemOp, ins: &[Reg]) -> Option<Reg> {
        let operand = op.row().operand(ins.iter().map(|&r| self.dtype(r)))?;
        let ins = self.operands(op, operand, ins);
        self.elem(op, operand, &ins)
    }
    /// The inputs of a row, converted to the dtype that it is computed in.
    pub fn operands(&mut self, op: ElemOp, operand: DType, ins: &[Reg]) -> SmallVec<[Reg; 3]> {
        let wanted = |i| if (op.row().rule, i) == (Rule::Where, 0) { DType::Bool } else { operand };
        ins.iter().enumerate().map(|(i, &r)| self.convert(r, wanted(i))).collect()
    }
    /// The value of a row on inputs of the dtype that it is computed in (for `where`: a bool and two of them); `None` where that
    /// cannot be expressed in primitive operations.
    pub fn elem(&mut self, op: ElemOp, operand: DType, ins: &[Reg]) -> Option<Reg> {
        if ins.len() != op.arity() {
            return None;
        }
        match (op.row().rule, operand) {
            (Rule::Where, _) => Some(self.select(ins[0], ins[1], ins[2])),
            (_, DType::Bool) => self.elem_bool(op, ins),
            (_, DType::F32 | DType::F64) => self.elem_float(op, operand, ins),
            _ => self.elem_int(op, ins),
        }
    }

    /// The opposite of a bool.
    fn not(&mut self, x: Reg) -> Reg {
        match self.kernel.body[x].op {
            Op::Const(c) => self.truth(c == 0),
            Op::Un(Un::Not, y) => y,
            Op::Cmp(Cmp::Eq, y, z) => self.cmp(Cmp::Ne, y, z),
            Op::Cmp(Cmp::Ne, y, z) => self.cmp(Cmp::Eq, y, z),
            _ => self.emit(Op::Un(Un::Not, x), DType::Bool),
        }
    }
    /// An instruction of another kernel on values of this one, made anew: what is known now is left out.
    pub fn again(&mut self, op: &Op, dtype: DType) -> Reg {
        match *op {
            Op::Un(un, x) => self.un(un, x),
            Op::Bin(bin, x, y) => self.bin(bin, x, y),
            Op::Select(cond, x, y) => self.select(cond, x, y),
            Op::Convert(x) => self.convert(x, dtype),
            Op::Bits(x) => self.bits(x, dtype),
            _ => self.emit(op.clone(), dtype),
        }
    }
    fn emit(&mut self, op: Op, dtype: DType) -> Reg {
        let inst = Inst { op, dtype };
        if let Some(bits) = self.folded(&inst) {
            return self.raw(dtype, bits);
        }
        if let Some(&r) = self.made.get(&inst) {
            return r;
        }
        self.plain.push(self.is_plain(&inst));
        let r = self.kernel.body.push(inst.clone());
        self.made.insert(inst, r);
        r
    }
    /// The value of an instruction that depends on constants alone, not on memory; but not NaN, whose bits are the processor's choice.
    fn folded(&self, inst: &Inst) -> Option<u64> {
        let uses = inst.op.uses();
        let args: SmallVec<[u64; 3]> = uses.iter().map(|&r| self.known(r)).collect::<Option<_>>()?;
        let pure = !matches!(inst.op, Op::Call(..) | Op::Gather(..) | Op::Loop(_) | Op::Last(..) | Op::Left(..));
        let from = self.dtype(*uses.first().filter(|_| pure)?);
        let bits = interp::compute(inst, from, &args);
        (!inst.dtype.is_float() || array(inst.dtype, bits).item_f64().is_some_and(|x| !x.is_nan())).then_some(bits)
    }
}

/// The bits of a float.
fn bits_of(dtype: DType, x: f64) -> u64 {
    if dtype == DType::F32 { u64::from((x as f32).to_bits()) } else { x.to_bits() }
}

/// All bits of an element.
fn mask(dtype: DType) -> u64 {
    u64::MAX >> (64 - 8 * dtype.size())
}

/// The element of these bits.
fn array(dtype: DType, bits: u64) -> Array {
    match dtype {
        DType::F32 => Array::scalar(f32::from_bits(bits as u32)),
        DType::F64 => Array::scalar(f64::from_bits(bits)),
        _ => Array::scalar(bits).cast(dtype),
    }
}
