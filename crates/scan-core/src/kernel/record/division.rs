//! Quotients and remainders of integers, which no vector unit has: by way of f64, corrected to be exact, or by shifts.

use super::Builder;
use crate::kernel::kir::{Bin, Cmp, Op, Reg, Un};
use crate::scalar::ElemOp;
use crate::types::DType;

impl Builder {
    /// `⌊x / y⌋`, its remainder, or the remainder that has the sign of x; 0 where y = 0. `None` for u64, which f64 does not hold.
    pub(super) fn int_division(&mut self, op: ElemOp, x: Reg, y: Reg) -> Option<Reg> {
        let dtype = self.dtype(x);
        if let Some(shift) = self.power_of_two(y).filter(|_| op != ElemOp::Fmod) {
            let (count, below) = (self.raw(dtype, shift), self.raw(dtype, (1 << shift) - 1));
            return Some(if op == ElemOp::FloorDiv { self.bin(Bin::Shr, x, count) } else { self.bin(Bin::And, x, below) });
        }
        if dtype == DType::U64 {
            return None;
        }
        let (wide_x, wide_y) = (self.convert(x, DType::I64), self.convert(y, DType::I64));
        let (zero, one) = (self.integer(DType::I64, 0), self.integer(DType::I64, 1));
        let by_zero = self.cmp(Cmp::Eq, wide_y, zero);
        let divisor = self.select(by_zero, one, wide_y);
        let (mut quotient, mut rest) = self.nearly(wide_x, divisor);
        if dtype.size() == 8 {
            // The first quotient may be wrong by as much as f64 lacks of 64 bits; that of what it leaves by one.
            let (more, left) = self.nearly(rest, divisor);
            (quotient, rest) = (self.bin(Bin::Add, quotient, more), left);
        }
        let (quotient, rest) = self.floored(quotient, rest, divisor);
        let value = match op {
            ElemOp::FloorDiv => quotient,
            ElemOp::Mod => rest,
            _ => self.with_sign_of(wide_x, rest, divisor),
        };
        let value = self.select(by_zero, zero, value);
        Some(self.convert(value, dtype))
    }

    /// The quotient of i64 as f64 divides them, rounded to zero, and what it leaves.
    fn nearly(&mut self, x: Reg, y: Reg) -> (Reg, Reg) {
        let (fx, fy) = (self.convert(x, DType::F64), self.convert(y, DType::F64));
        let exact = self.bin(Bin::Div, fx, fy);
        let whole = self.un(Un::Trunc, exact);
        let quotient = self.convert(whole, DType::I64);
        let product = self.bin(Bin::Mul, quotient, y);
        (quotient, self.bin(Bin::Sub, x, product))
    }
    /// Quotient and remainder with the remainder's sign that of y.
    fn floored(&mut self, quotient: Reg, rest: Reg, y: Reg) -> (Reg, Reg) {
        let apart = self.apart(rest, y);
        let one = self.integer(DType::I64, 1);
        let (less, more) = (self.bin(Bin::Sub, quotient, one), self.bin(Bin::Add, rest, y));
        (self.select(apart, less, quotient), self.select(apart, more, rest))
    }
    /// A remainder that has the sign of y as one that has the sign of x.
    fn with_sign_of(&mut self, x: Reg, rest: Reg, y: Reg) -> Reg {
        let apart = self.apart(rest, x);
        let less = self.bin(Bin::Sub, rest, y);
        self.select(apart, less, rest)
    }
    /// Whether a remainder is not 0 and has another sign.
    fn apart(&mut self, rest: Reg, sign: Reg) -> Reg {
        let zero = self.integer(DType::I64, 0);
        let some = self.cmp(Cmp::Ne, rest, zero);
        let (a, b) = (self.cmp(Cmp::Lt, rest, zero), self.cmp(Cmp::Lt, sign, zero));
        let differ = self.bin(Bin::Xor, a, b);
        self.bin(Bin::And, some, differ)
    }

    /// The exponent of a constant that is a power of two.
    fn power_of_two(&self, y: Reg) -> Option<u64> {
        let sign = 1u64 << (8 * self.dtype(y).size() - 1);
        match self.kernel().body[y].op {
            Op::Const(bits) if bits.is_power_of_two() && !(self.dtype(y).is_signed_int() && bits == sign) => {
                Some(u64::from(bits.trailing_zeros()))
            }
            _ => None,
        }
    }

    /// `xʸ` for a constant y that is not negative, by repeated squares.
    pub(super) fn int_power(&mut self, x: Reg, y: Reg) -> Option<Reg> {
        let dtype = self.dtype(x);
        let sign = 1u64 << (8 * dtype.size() - 1);
        let Op::Const(mut left) = self.kernel().body[y].op else { return None };
        if dtype.is_signed_int() && left & sign != 0 {
            return None;
        }
        let (mut base, mut product) = (x, self.integer(dtype, 1));
        while left != 0 {
            if left & 1 == 1 {
                product = self.bin(Bin::Mul, product, base);
            }
            left >>= 1;
            if left != 0 {
                base = self.bin(Bin::Mul, base, base);
            }
        }
        Some(product)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::interp::compute;
    use crate::scalar::int::Int;

    /// The value of the last instruction for these bits of x and y.
    fn value(b: &Builder, x: u64, y: u64) -> u64 {
        let mut values: Vec<u64> = vec![];
        for inst in b.kernel().body.iter() {
            let args: Vec<u64> = inst.op.uses().iter().map(|r| values[r.0 as usize]).collect();
            let from = inst.op.uses().first().map_or(inst.dtype, |&r| b.dtype(r));
            values.push(match inst.op {
                Op::Load(m) => {
                    if m.0 == 0 {
                        x
                    } else {
                        y
                    }
                }
                _ => compute(inst, from, &args),
            });
        }
        values[values.len() - 1]
    }

    macro_rules! agrees {
        ($t:ident, $dtype:expr, $xs:expr) => {
            for (op, law) in [
                (ElemOp::FloorDiv, <$t as Int>::floor_div as fn($t, $t) -> $t),
                (ElemOp::Mod, <$t as Int>::floor_mod),
                (ElemOp::Fmod, <$t as Int>::remainder),
            ] {
                let mut b = Builder::new();
                let ins = [0, 1].map(|_| {
                    let mem = b.mem($dtype, crate::kernel::Lane::Unit);
                    b.load(mem)
                });
                b.int_division(op, ins[0], ins[1]).expect("it is compiled");
                let bits = |x: $t| x as u64 & (u64::MAX >> (64 - $t::BITS));
                for &x in &$xs {
                    for &y in &$xs {
                        assert_eq!(value(&b, bits(x), bits(y)), bits(law(x, y)), "{op:?} {x} {y}");
                    }
                }
            }
        };
    }

    #[test]
    fn quotients_are_those_of_the_law() {
        let mut state = 7u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state ^ state >> 29
        };
        let mut wide: Vec<i64> = vec![0, 1, -1, 2, -2, 3, 7, -7, i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1, 1 << 53, (1 << 53) + 1];
        wide.extend((0..60).map(|k| random() as i64 >> (k % 64)));
        wide.extend((0..20).map(|k| (1i64 << (3 * k + 1)) + (k % 3) - 1));
        agrees!(i64, DType::I64, wide);
        let narrow: Vec<i32> = wide.iter().map(|&x| x as i32).chain([i32::MIN, i32::MAX]).collect();
        agrees!(i32, DType::I32, narrow);
        let small: Vec<i8> = (i8::MIN..=i8::MAX).collect();
        agrees!(i8, DType::I8, small);
        let natural: Vec<u32> = wide.iter().map(|&x| x as u32).chain([u32::MAX]).collect();
        agrees!(u32, DType::U32, natural);
    }
}
