//! What holds of every kernel that an engine is given.

use super::{Argument, Bin, Carry, Inst, Kernel, Lane, Loop, Mem, MemId, Op, Reg, Store, Un};
use crate::base::{Diagnostic, Id, IdxVec, Result};
use crate::types::DType;

/// Fails where a kernel is not well-formed: a fault of whoever built it.
pub fn verify(kernel: &Kernel) -> Result<()> {
    check(kernel).map_err(|text| Diagnostic::internal(format!("a kernel that is not well-formed: {text}")).note(kernel.to_string()))
}

type Checked = std::result::Result<(), String>;

fn ensure(holds: bool, text: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(text()) }
}

fn check(kernel: &Kernel) -> Checked {
    for (r, inst) in kernel.body.enumerate() {
        let at = |text: String| format!("r{}: {text}", r.0);
        known(kernel, r, inst).map_err(at)?;
        typed(kernel, inst).map_err(at)?;
    }
    for id in kernel.mems.ids() {
        ensure(is_beside(kernel, id), || format!("m{} does not lie beside another operand", id.0))?;
    }
    let varying = kernel.varying();
    for (id, carry) in kernel.carries.enumerate() {
        handed_on(kernel, carry, &varying).map_err(|text| format!("c{}: {text}", id.0))?;
    }
    for (i, store) in kernel.stores.iter().enumerate() {
        written(kernel, store.mem, store.value, &varying).map_err(|text| format!("store {i}: {text}"))?;
        numbered(kernel, store, &varying).map_err(|text| format!("store {i}: {text}"))?;
    }
    ensure(kernel.stop.is_none_or(|s| kernel.body.get(s).is_some_and(|i| i.dtype == DType::Bool)), || "stop is not a bool".into())
}

/// Everything that it names exists, values before it.
fn known(kernel: &Kernel, r: Reg, inst: &Inst) -> Checked {
    let exists = match inst.op {
        Op::Load(m) => kernel.mems.get(m).is_some(),
        Op::Gather(m, index) => kernel.mems.get(m).is_some() && index < r,
        Op::Last(of, carry) => of < r && matches!(&kernel.body[of].op, Op::Loop(inner) if inner.kernel.carries.get(carry).is_some()),
        Op::Left(of, mem, number) => of < r && number < r && left(kernel, of, mem).is_some(),
        Op::Carry(c) => kernel.carries.get(c).is_some_and(|c| kernel.mems.get(c.mem).is_some()),
        _ => inst.op.uses().iter().all(|&used| used < r),
    };
    ensure(exists, || "uses what is not there yet".into())
}

fn typed(kernel: &Kernel, inst: &Inst) -> Checked {
    let dtype = inst.dtype;
    let of = |r: Reg| kernel.dtype(r);
    let holds = match &inst.op {
        Op::Const(bits) => *bits <= if dtype == DType::Bool { 1 } else { u64::MAX >> (64 - 8 * dtype.size()) },
        Op::Step => dtype == DType::I64,
        Op::Load(m) => dtype == kernel.mems[*m].dtype,
        Op::Gather(m, index) => dtype == kernel.mems[*m].dtype && of(*index) == DType::I64 && is_table(kernel, *m),
        Op::Carry(c) => dtype == kernel.mems[kernel.carries[*c].mem].dtype,
        Op::Un(op, x) => dtype == of(*x) && unary(*op, dtype),
        Op::Bin(op, x, y) => dtype == of(*x) && dtype == of(*y) && binary(*op, dtype),
        Op::Fma(x, y, z) => dtype.is_float() && [x, y, z].iter().all(|r| of(**r) == dtype),
        Op::Cmp(_, x, y) => dtype == DType::Bool && of(*x) == of(*y),
        Op::Select(c, x, y) => of(*c) == DType::Bool && dtype == of(*x) && dtype == of(*y),
        Op::Convert(_) => true,
        Op::Bits(x) => same_bits(dtype, of(*x)),
        Op::Loop(inner) => {
            looped(kernel, inner)?;
            dtype == DType::I64 && of(inner.steps) == DType::I64
        }
        Op::Last(r, carry) => match &kernel.body[*r].op {
            Op::Loop(inner) => dtype == inner.kernel.mems[inner.kernel.carries[*carry].mem].dtype,
            _ => false,
        },
        Op::Left(r, mem, number) => left(kernel, *r, *mem).is_some_and(|of| of.dtype == dtype) && of(*number) == DType::I64,
        Op::Call(f, args) => dtype == DType::F64 && args.len() == f.arity() && args.iter().all(|r| of(*r) == DType::F64),
    };
    ensure(holds, || format!("`{:?}` of {:?} as {dtype}", inst.op, inst.op.uses().iter().map(|&r| of(r).short()).collect::<Vec<_>>()))
}

/// The memory of a loop's own that it leaves.
fn left(kernel: &Kernel, of: Reg, mem: MemId) -> Option<&Mem> {
    let Op::Loop(inner) = &kernel.body[of].op else { return None };
    matches!(inner.operands.get(mem.idx()), Some(Argument::Own)).then(|| &inner.kernel.mems[mem])
}

/// A loop in a step is a kernel of its own that stores in memory of its own alone, and is given what it takes.
fn looped(kernel: &Kernel, inner: &Loop) -> Checked {
    let own = &*inner.kernel;
    check(own).map_err(|text| format!("in the loop: {text}"))?;
    let is_own = |mem: MemId| matches!(inner.operands[mem.idx()], Argument::Own);
    ensure(own.mems.len() == inner.operands.len(), || "a loop that is not given all".into())?;
    ensure(own.stores.iter().all(|s| s.at.is_some() && is_own(s.mem)), || "a loop that stores in what is not its own".into())?;
    let begun = |&(mem, at, r): &(MemId, usize, Reg)| {
        own.mems.get(mem).is_some_and(|of| is_own(mem) && at < of.table && of.dtype == kernel.dtype(r))
    };
    ensure(inner.begin.iter().all(begun), || "a loop begins with what is no element of its own".into())?;
    for ((id, mem), argument) in own.mems.enumerate().zip(&inner.operands) {
        let carried = own.carries.iter().any(|c| c.mem == id);
        let holds = mem.lane == Lane::Uniform
            && match *argument {
                Argument::Value(r) => mem.table == 0 && mem.dtype == kernel.dtype(r),
                Argument::Table(table, first) => {
                    let fits = kernel.mems.get(table).is_some_and(|of| of.dtype == mem.dtype && first + mem.table <= of.table);
                    fits && mem.table > 0 && !carried && is_table(kernel, table)
                }
                Argument::Own => mem.table > 0 && !carried,
                Argument::Left(r, of) => left(kernel, r, of).is_some_and(|of| of.dtype == mem.dtype && of.table == mem.table) && !carried,
            };
        ensure(holds, || format!("a loop is not given what its m{} is", id.0))?;
    }
    Ok(())
}

/// An operand that is the same for all lanes, has elements to choose from, and is not written but at numbers.
fn is_table(kernel: &Kernel, m: MemId) -> bool {
    let mem = &kernel.mems[m];
    let written = kernel.stores.iter().any(|s| s.mem == m && s.at.is_none()) || kernel.carries.iter().any(|c| c.mem == m);
    mem.table > 0 && mem.lane == Lane::Uniform && !written
}

/// What lies beside another operand is as that one, which lies beside none; both are only read, and no tables.
fn is_beside(kernel: &Kernel, m: MemId) -> bool {
    let mem = &kernel.mems[m];
    let Some((other, bytes)) = mem.beside else { return true };
    let written = |m: MemId| kernel.stores.iter().any(|s| s.mem == m) || kernel.carries.iter().any(|c| c.mem == m);
    let like = |of: &Mem| of.beside.is_none() && (of.dtype, of.lane, of.stride, of.table) == (mem.dtype, mem.lane, mem.stride, 0);
    mem.table == 0
        && (bytes.unsigned_abs() as usize).is_multiple_of(mem.dtype.size())
        && kernel.mems.get(other).is_some_and(like)
        && !written(m)
        && !written(other)
}

/// The number of an element that is written is an integer, the same in all lanes, and of a table that does not move and is read by numbers.
fn numbered(kernel: &Kernel, store: &Store, varying: &IdxVec<Reg, bool>) -> Checked {
    let Some(at) = store.at else { return Ok(()) };
    let number = kernel.body.get(at).is_some_and(|i| i.dtype == DType::I64) && !varying[at];
    ensure(number, || format!("r{} is no number of an element", at.0))?;
    let loaded = kernel.body.iter().any(|i| i.op == Op::Load(store.mem));
    let still = kernel.mems[store.mem].stride == Some(0);
    ensure(is_table(kernel, store.mem) && still && !loaded, || format!("m{} is no table that elements are written of", store.mem.0))
}

fn unary(op: Un, dtype: DType) -> bool {
    match op {
        Un::Neg => dtype != DType::Bool,
        Un::Not => !dtype.is_float(),
        _ => dtype.is_float(),
    }
}

fn binary(op: Bin, dtype: DType) -> bool {
    match op {
        Bin::Add | Bin::Sub | Bin::Mul => dtype != DType::Bool,
        Bin::Div => dtype.is_float(),
        Bin::And | Bin::Or | Bin::Xor => !dtype.is_float(),
        Bin::Shl | Bin::Shr | Bin::FloorDiv | Bin::Mod | Bin::Fmod => dtype.is_int(),
    }
}

fn same_bits(a: DType, b: DType) -> bool {
    let numbers = a != DType::Bool && b != DType::Bool;
    numbers && a != b && a.size() == b.size()
}

fn handed_on(kernel: &Kernel, carry: &Carry, varying: &IdxVec<Reg, bool>) -> Checked {
    written(kernel, carry.mem, carry.next, varying)?;
    let loads = kernel.body.iter().filter(|i| i.op == Op::Load(carry.mem)).count();
    let others = kernel.stores.iter().filter(|s| s.mem == carry.mem).count() + kernel.carries.iter().filter(|c| c.mem == carry.mem).count();
    ensure(loads == 0 && others == 1, || format!("m{} is used by others", carry.mem.0))
}

/// A value fits the operand that it is written to.
fn written(kernel: &Kernel, mem: MemId, value: Reg, varying: &IdxVec<Reg, bool>) -> Checked {
    let (Some(mem), Some(inst)) = (kernel.mems.get(mem), kernel.body.get(value)) else {
        return Err("an operand or a value is missing".into());
    };
    ensure(mem.dtype == inst.dtype, || format!("{} goes to an operand of {}", inst.dtype, mem.dtype))?;
    ensure(mem.lane != Lane::Apart(0), || "all lanes write the same element".into())?;
    ensure(mem.lane.varies() || !varying[value], || format!("a uniform operand is given r{}, which differs between lanes", value.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::testing::{Options, case};
    use crate::kernel::{CarryId, Mem, Store};

    fn base() -> Kernel {
        let mut k = Kernel::default();
        k.mems.push(Mem::new(DType::F64, Lane::Unit));
        k.mems.push(Mem::new(DType::F64, Lane::Uniform));
        k.body.push(Inst { op: Op::Load(MemId(0)), dtype: DType::F64 });
        k.body.push(Inst { op: Op::Const(0), dtype: DType::F64 });
        k
    }

    fn fault(change: impl FnOnce(&mut Kernel)) -> String {
        let mut k = base();
        change(&mut k);
        verify(&k).expect_err("must fail").title
    }

    #[test]
    fn faults_are_named() {
        let push = |op: Op, dtype| {
            move |k: &mut Kernel| {
                k.body.push(Inst { op, dtype });
            }
        };
        verify(&base()).unwrap();
        assert!(fault(push(Op::Un(Un::Neg, Reg(2)), DType::F64)).ends_with("r2: uses what is not there yet"));
        assert!(fault(push(Op::Load(MemId(2)), DType::F64)).ends_with("r2: uses what is not there yet"));
        assert!(fault(push(Op::Un(Un::Not, Reg(0)), DType::F64)).contains("r2: `Un(Not"));
        assert!(fault(push(Op::Bin(Bin::Shl, Reg(0), Reg(1)), DType::F64)).contains("Shl"));
        assert!(fault(push(Op::Step, DType::I32)).contains("Step"));
        assert!(fault(push(Op::Const(256), DType::U8)).contains("Const"));
        assert!(fault(push(Op::Bits(Reg(0)), DType::I32)).contains("Bits"));
        assert!(fault(|k| k.stores.push(Store { mem: MemId(1), value: Reg(0), at: None })).contains("store 0: a uniform operand"));
        assert!(fault(|k| k.stop = Some(Reg(1))).contains("stop is not a bool"));
        let carry = |k: &mut Kernel| {
            k.carries.push(Carry { mem: MemId(0), next: Reg(1) });
        };
        assert!(fault(carry).contains("c0: m0 is used by others"));
        assert!(fault(push(Op::Carry(CarryId(0)), DType::F64)).contains("not there yet"));
    }

    #[test]
    fn what_is_generated_is_well_formed() {
        (0..300).for_each(|seed| verify(&case(seed, &Options::default()).kernel).unwrap());
    }
}
