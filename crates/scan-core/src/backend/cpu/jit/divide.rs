//! Quotients and remainders of integers, by the instruction that the machine has for one of each.

use super::body::machine;
use crate::kernel::Bin;
use crate::types::DType;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use cranelift_frontend::FunctionBuilder;

/// `⌊x / y⌋` or a remainder of two integers. The instruction faults where y is 0, or where the quotient does not fit: there it divides by 1, and the
/// law's value takes the place of what it gives.
pub fn divided(b: &mut FunctionBuilder, bin: Bin, dtype: DType, operands: [Value; 2]) -> Value {
    let (to, signed) = (machine(dtype), dtype.is_signed_int());
    // There is no quick division of less than 32 bits.
    let wide = if to.bytes() < 4 { types::I32 } else { to };
    let [x, y] = operands.map(|v| match signed {
        _ if wide == to => v,
        true => b.ins().sextend(wide, v),
        false => b.ins().uextend(wide, v),
    });
    let zero = b.ins().iconst(wide, 0);
    let is_zero = b.ins().icmp(IntCC::Equal, y, zero);
    let by = instead_of(b, wide, is_zero, y);
    let value = match (bin, signed) {
        (Bin::FloorDiv, true) => floor_quotient(b, wide, x, by),
        (Bin::FloorDiv, false) => b.ins().udiv(x, by),
        (Bin::Mod, true) => {
            let rest = b.ins().srem(x, by);
            let apart = apart(b, rest, by, zero);
            let more = b.ins().select(apart, by, zero);
            b.ins().iadd(rest, more)
        }
        (_, true) => b.ins().srem(x, by),
        (_, false) => b.ins().urem(x, by),
    };
    // A remainder by 1 is 0 as it is.
    let value = if bin == Bin::FloorDiv { b.ins().select(is_zero, zero, value) } else { value };
    if wide == to { value } else { b.ins().ireduce(to, value) }
}

/// 1 where a condition holds, else y.
fn instead_of(b: &mut FunctionBuilder, ty: Type, cond: Value, y: Value) -> Value {
    let one = b.ins().iconst(ty, 1);
    b.ins().select(cond, one, y)
}

/// `⌊x / y⌋` of integers with a sign. By −1, which x = the least integer does not survive, it is −x.
fn floor_quotient(b: &mut FunctionBuilder, ty: Type, x: Value, y: Value) -> Value {
    let zero = b.ins().iconst(ty, 0);
    let turned = b.ins().icmp_imm_s(IntCC::Equal, y, -1);
    let by = instead_of(b, ty, turned, y);
    let quotient = b.ins().sdiv(x, by);
    let product = b.ins().imul(quotient, by);
    let rest = b.ins().isub(x, product);
    let apart = apart(b, rest, by, zero);
    let less = b.ins().iadd_imm_s(quotient, -1);
    let floor = b.ins().select(apart, less, quotient);
    let negative = b.ins().ineg(x);
    b.ins().select(turned, negative, floor)
}

/// Whether a remainder is not 0, and has not the sign of y.
fn apart(b: &mut FunctionBuilder, rest: Value, y: Value, zero: Value) -> Value {
    let some = b.ins().icmp(IntCC::NotEqual, rest, zero);
    let signs = b.ins().bxor(rest, y);
    let differ = b.ins().icmp(IntCC::SignedLessThan, signs, zero);
    b.ins().band(some, differ)
}
