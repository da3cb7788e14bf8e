//! Conversions between dtypes, by the rule of `types::Cast`.

use super::body::machine;
use crate::types::DType;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use cranelift_frontend::FunctionBuilder;

/// A value of one dtype as one of another.
pub fn convert(b: &mut FunctionBuilder, x: Value, from: DType, to: DType) -> Value {
    match (from.is_float(), to.is_float()) {
        _ if from == to => x,
        _ if to == DType::Bool => truth(b, x, from),
        (true, true) if to == DType::F64 => b.ins().fpromote(types::F64, x),
        (true, true) => b.ins().fdemote(types::F32, x),
        (true, false) => float_to_int(b, x, to),
        (false, true) => int_to_float(b, x, from, machine(to)),
        (false, false) => resize(b, x, from.is_signed_int(), machine(to)),
    }
}

/// NaN is true, as it is not 0.
fn truth(b: &mut FunctionBuilder, x: Value, from: DType) -> Value {
    match from {
        DType::F32 => {
            let zero = b.ins().f32const(Ieee32::with_bits(0));
            b.ins().fcmp(FloatCC::NotEqual, x, zero)
        }
        DType::F64 => {
            let zero = b.ins().f64const(Ieee64::with_bits(0));
            b.ins().fcmp(FloatCC::NotEqual, x, zero)
        }
        _ => b.ins().icmp_imm_u(IntCC::NotEqual, x, 0),
    }
}

/// Integers keep their low bits; wider ones are filled with the sign or with zeros.
fn resize(b: &mut FunctionBuilder, x: Value, signed: bool, to: Type) -> Value {
    let from = b.func.dfg.value_type(x);
    match from.bits().cmp(&to.bits()) {
        std::cmp::Ordering::Equal => x,
        std::cmp::Ordering::Greater => b.ins().ireduce(to, x),
        std::cmp::Ordering::Less if signed => b.ins().sextend(to, x),
        std::cmp::Ordering::Less => b.ins().uextend(to, x),
    }
}

/// Nearest. All but u64 fit a signed integer that machines convert.
fn int_to_float(b: &mut FunctionBuilder, x: Value, from: DType, to: Type) -> Value {
    let wide = match from {
        DType::U64 => return b.ins().fcvt_from_uint(to, x),
        DType::U32 | DType::I64 => types::I64,
        _ => types::I32,
    };
    let x = resize(b, x, from.is_signed_int(), wide);
    b.ins().fcvt_from_sint(to, x)
}

/// Without the fraction; NaN is 0, and what is too large is the nearest there is. Small integers are cut from wide ones.
fn float_to_int(b: &mut FunctionBuilder, x: Value, to: DType) -> Value {
    let (low, high) = match to {
        DType::I8 => (i8::MIN as i64, i8::MAX as i64),
        DType::I16 => (i16::MIN as i64, i16::MAX as i64),
        DType::U8 => (0, u8::MAX as i64),
        DType::U16 => (0, u16::MAX as i64),
        DType::U32 | DType::U64 => return b.ins().fcvt_to_uint_sat(machine(to), x),
        _ => return b.ins().fcvt_to_sint_sat(machine(to), x),
    };
    let wide = b.ins().fcvt_to_sint_sat(types::I32, x);
    let (low, high) = (b.ins().iconst(types::I32, low & 0xffff_ffff), b.ins().iconst(types::I32, high));
    let wide = b.ins().smax(wide, low);
    let wide = b.ins().smin(wide, high);
    b.ins().ireduce(machine(to), wide)
}
