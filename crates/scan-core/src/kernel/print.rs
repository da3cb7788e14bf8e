//! The text form of a kernel. [`parse`](super::parse) reads it back to an equal kernel, and printing that gives the same text.
//!
//! ```text
//! m0: f64 per lane
//! m1: f64
//! c0: m1 next r2
//! r0: f64 = load m0
//! r1: f64 = carry c0
//! r2: f64 = add r0 r1
//! store m0 = r2
//! ```

use super::{Argument, Inst, Kernel, Lane, Loop, Mem, Op, Reg};
use crate::types::DType;
use std::fmt;

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, mem) in self.mems.enumerate() {
            writeln!(f, "m{}: {mem}", id.0)?;
        }
        for (id, carry) in self.carries.enumerate() {
            writeln!(f, "c{}: m{} next r{}", id.0, carry.mem.0, carry.next.0)?;
        }
        for (r, inst) in self.body.enumerate() {
            write!(f, "r{}: {inst}", r.0)?;
            match &inst.op {
                Op::Loop(inner) => looped(f, inner)?,
                _ => writeln!(f)?,
            }
        }
        for store in &self.stores {
            let at = store.at.map_or(String::new(), |at| format!("[r{}]", at.0));
            writeln!(f, "store m{}{at} = r{}", store.mem.0, store.value.0)?;
        }
        self.stop.map_or(Ok(()), |stop| writeln!(f, "stop r{}", stop.0))
    }
}

impl fmt::Display for Mem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype.short(), per_lane(self.lane))?;
        self.stride.map_or(Ok(()), |stride| write!(f, " by {stride}"))?;
        if self.table > 0 {
            write!(f, " table {}", self.table)?;
        }
        self.beside.map_or(Ok(()), |(other, bytes)| write!(f, " beside m{} {bytes}", other.0))
    }
}

/// A loop in a step, in braces: what its operands are, what its memory begins with, and its kernel.
fn looped(f: &mut fmt::Formatter<'_>, inner: &Loop) -> fmt::Result {
    writeln!(f, " {{")?;
    for (id, argument) in inner.kernel.mems.ids().zip(&inner.operands) {
        match argument {
            Argument::Value(r) => writeln!(f, "    m{} is r{}", id.0, r.0)?,
            Argument::Table(table, first) => writeln!(f, "    m{} is m{} from {first}", id.0, table.0)?,
            Argument::Own => writeln!(f, "    m{} is own", id.0)?,
            Argument::Left(r, of) => writeln!(f, "    m{} is m{} of r{}", id.0, of.0, r.0)?,
        }
    }
    inner.begin.iter().try_for_each(|(mem, at, r)| writeln!(f, "    begin m{}[{at}] = r{}", mem.0, r.0))?;
    inner.kernel.to_string().lines().try_for_each(|line| writeln!(f, "    {line}"))?;
    writeln!(f, "}}")
}

fn per_lane(lane: Lane) -> String {
    match lane {
        Lane::Uniform => String::new(),
        Lane::Unit => " per lane".into(),
        Lane::Apart(n) => format!(" per {n} lane"),
    }
}

impl fmt::Display for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.dtype.short(), name(self))?;
        match &self.op {
            Op::Loop(inner) => write!(f, " r{} steps", inner.steps.0),
            op => op.uses().iter().try_for_each(|Reg(r)| write!(f, " r{r}")),
        }
    }
}

/// Name and attributes.
fn name(inst: &Inst) -> String {
    match &inst.op {
        Op::Const(bits) => format!("const {}", constant(inst.dtype, *bits)),
        Op::Step => "step".into(),
        Op::Load(m) => format!("load m{}", m.0),
        Op::Gather(m, _) => format!("gather m{} at", m.0),
        Op::Carry(c) => format!("carry c{}", c.0),
        Op::Un(op, _) => op.name().into(),
        Op::Bin(op, ..) => op.name().into(),
        Op::Cmp(op, ..) => op.name().into(),
        Op::Fma(..) => "fma".into(),
        Op::Select(..) => "select".into(),
        Op::Convert(_) => "convert".into(),
        Op::Bits(_) => "bits".into(),
        Op::Call(f, _) => format!("call {}", f.name()),
        Op::Loop(_) => "loop".into(),
        Op::Last(_, carry) => format!("last c{} of", carry.0),
        Op::Left(_, mem, _) => format!("left m{} of", mem.0),
    }
}

/// A constant, exact: shortest digits, or the bits of a NaN, as the text form of graphs has them.
fn constant(dtype: DType, bits: u64) -> String {
    match dtype {
        DType::Bool => (bits != 0).to_string(),
        DType::I8 => (bits as i8).to_string(),
        DType::I16 => (bits as i16).to_string(),
        DType::I32 => (bits as i32).to_string(),
        DType::I64 => (bits as i64).to_string(),
        DType::F32 if !f32::from_bits(bits as u32).is_nan() => format!("{:?}", f32::from_bits(bits as u32)),
        DType::F64 if !f64::from_bits(bits).is_nan() => format!("{:?}", f64::from_bits(bits)),
        DType::F32 | DType::F64 => format!("nan({bits:#x})"),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => bits.to_string(),
    }
}

/// The bits of such a constant.
pub(super) fn bits_of(dtype: DType, text: &str) -> Option<u64> {
    let nan = text.strip_prefix("nan(0x").and_then(|rest| u64::from_str_radix(rest.strip_suffix(')')?, 16).ok());
    Some(match dtype {
        DType::Bool => u64::from(text.parse::<bool>().ok()?),
        DType::I8 => u64::from(text.parse::<i8>().ok()? as u8),
        DType::I16 => u64::from(text.parse::<i16>().ok()? as u16),
        DType::I32 => u64::from(text.parse::<i32>().ok()? as u32),
        DType::I64 => text.parse::<i64>().ok()? as u64,
        DType::U8 => u64::from(text.parse::<u8>().ok()?),
        DType::U16 => u64::from(text.parse::<u16>().ok()?),
        DType::U32 => u64::from(text.parse::<u32>().ok()?),
        DType::U64 => text.parse().ok()?,
        DType::F32 => u64::from(nan.map_or_else(|| text.parse::<f32>().ok().map(f32::to_bits), |bits| u32::try_from(bits).ok())?),
        DType::F64 => nan.or_else(|| text.parse::<f64>().ok().map(f64::to_bits))?,
    })
}

#[cfg(test)]
mod tests {
    use crate::kernel::{Bin, Carry, CarryId, Cmp, HostFn, Inst, Kernel, Lane, Mem, MemId, Op, Reg, Store};
    use crate::types::DType::{Bool, F64, I8, I64};

    #[test]
    fn the_text_form() {
        let mut k = Kernel::default();
        k.mems.push(Mem::new(F64, Lane::Unit));
        k.mems.push(Mem { stride: Some(-8), ..Mem::new(F64, Lane::Uniform) });
        k.carries.push(Carry { mem: MemId(1), next: Reg(3) });
        let ops = [
            (Op::Load(MemId(0)), F64),
            (Op::Carry(CarryId(0)), F64),
            (Op::Call(HostFn::Pow, [Reg(0), Reg(1)].into_iter().collect()), F64),
            (Op::Bin(Bin::Add, Reg(2), Reg(1)), F64),
            (Op::Const(0.1f64.to_bits()), F64),
            (Op::Const(255), I8),
            (Op::Step, I64),
            (Op::Cmp(Cmp::Le, Reg(4), Reg(3)), Bool),
        ];
        for (op, dtype) in ops {
            k.body.push(Inst { op, dtype });
        }
        k.stores.push(Store { mem: MemId(0), value: Reg(3), at: None });
        k.stop = Some(Reg(7));
        let expected = "m0: f64 per lane\nm1: f64 by -8\nc0: m1 next r3\nr0: f64 = load m0\nr1: f64 = carry c0\n\
            r2: f64 = call pow r0 r1\nr3: f64 = add r2 r1\nr4: f64 = const 0.1\nr5: i8 = const -1\nr6: i64 = step\n\
            r7: bool = le r4 r3\nstore m0 = r3\nstop r7\n";
        assert_eq!(k.to_string(), expected);
    }
}
