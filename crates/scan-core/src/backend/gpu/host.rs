//! Functions of the host machine in kernels for devices, which have none.

use crate::backend::cpu::Refusal;
use crate::kernel::{Kernel, Op, Reg};

/// Where the value of a call is taken: where a bool holds, or does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// The bool.
    pub cond: Reg,
    /// What it is then.
    pub holds: bool,
}

/// When the values of a kernel's calls matter: a device then says so, and the kernel runs on the host. Elsewhere they may be anything.
///
/// # Errors
/// A call whose value is always taken.
pub fn taken(kernel: &Kernel) -> Result<Vec<Taken>, Refusal> {
    let mut called = vec![false; kernel.body.len()];
    let mut found = vec![];
    if kernel.scatters() {
        return Err(Refusal("it writes elements by their numbers, one step after the other".into()));
    }
    if kernel.has_loops() {
        return Err(Refusal("its steps run loops".into()));
    }
    let refuse = |r: Reg| Err(Refusal(format!("it calls {}, which runs on the host alone", name(kernel, r))));
    for (r, inst) in kernel.body.enumerate() {
        let is = |r: Reg| called[r.0 as usize];
        match &inst.op {
            Op::Call(..) if inst.op.uses().iter().any(|&u| is(u)) => return refuse(r),
            Op::Call(..) => called[r.0 as usize] = true,
            Op::Convert(x) if is(*x) => called[r.0 as usize] = true,
            Op::Select(c, x, y) if !is(*c) => {
                found.extend([(*x, true), (*y, false)].iter().filter(|v| is(v.0)).map(|&(_, holds)| Taken { cond: *c, holds }));
            }
            op => {
                if let Some(&u) = op.uses().iter().find(|&&u| is(u)) {
                    return refuse(u);
                }
            }
        }
    }
    match kernel.ends().find(|r| called[r.0 as usize]) {
        Some(r) => refuse(r),
        None => Ok(found),
    }
}

/// The function that a value comes from.
fn name(kernel: &Kernel, r: Reg) -> String {
    match &kernel.body[r].op {
        Op::Call(f, _) => format!("`{}`", f.name()),
        Op::Convert(x) => name(kernel, *x),
        _ => "a function".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::testing::{Options, case};
    use crate::kernel::{Bin, HostFn, Inst, Lane, Mem, MemId, Store};
    use crate::types::DType;
    use smallvec::smallvec;

    fn calling(used: impl Fn(Reg, Reg) -> Op) -> Kernel {
        let mut k = Kernel::default();
        k.mems.push(Mem::new(DType::F64, Lane::Unit));
        let f64 = |op| Inst { op, dtype: DType::F64 };
        let x = k.body.push(f64(Op::Load(MemId(0))));
        let c = k.body.push(Inst { op: Op::Cmp(crate::kernel::Cmp::Lt, x, x), dtype: DType::Bool });
        let sin = k.body.push(f64(Op::Call(HostFn::Sin, smallvec![x])));
        let value = k.body.push(f64(used(c, sin)));
        k.stores.push(Store { mem: MemId(0), value, at: None });
        k
    }

    #[test]
    fn selections_tell_when_a_call_matters() {
        let x = Reg(0);
        let selected = calling(|c, sin| Op::Select(c, sin, x));
        assert_eq!(taken(&selected), Ok(vec![Taken { cond: Reg(1), holds: true }]));
        let selected = calling(|c, sin| Op::Select(c, x, sin));
        assert_eq!(taken(&selected), Ok(vec![Taken { cond: Reg(1), holds: false }]));
        let always = taken(&calling(|_, sin| Op::Bin(Bin::Add, x, sin))).expect_err("always taken");
        assert!(always.0.contains("`sin`"), "{}", always.0);
        let mut stored = calling(|c, sin| Op::Select(c, sin, x));
        stored.stores.push(Store { mem: MemId(0), value: Reg(2), at: None });
        assert!(taken(&stored).is_err());
    }

    #[test]
    fn kernels_without_calls_take_none() {
        let options = Options { calls: false, ..Options::default() };
        assert!((0..50).all(|seed| taken(&case(seed, &options).kernel) == Ok(vec![])));
    }
}
