//! Quotients and remainders of integers: by shifts, or, since no vector unit has them, by way of f64, corrected to be exact.

use super::Builder;
use crate::kernel::kir::{Bin, Cmp, Kernel, Op, Reg, Un};
use crate::kernel::rebuild::rebuilt;
use crate::types::{Array, DType};
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// What is known of a divisor: the same for all that is divided by it.
struct Divisor {
    /// 1 in place of 0.
    y: Reg,
    is_zero: Reg,
    negative: Reg,
    /// 1 / y, rounded.
    reciprocal: Reg,
}

/// A ratio that is less than 2³² or 2¹³ is computed by the reciprocal with an error of 2⁻⁵¹ of itself. Less by more than that, its floor is the
/// quotient's, or one below: where the remainder is next to 0.
const NARROW: f64 = 1.0 / (1u64 << 17) as f64;
const WIDE: f64 = 1.0 / (1u64 << 36) as f64;

/// A divisor of which it is known that its size lies in here makes ratios of any i64 that are less than 2⁴⁹, so wrong by a quarter at most: less a
/// quarter, their floor is the quotient's, or one below, and what that leaves is less than twice the divisor.
const LARGE: RangeInclusive<u64> = 1 << 14..=1 << 61;
const QUARTER: f64 = 0.25;

impl Kernel {
    /// The same for machines that divide no integers, or u64 alone, which f64 does not hold: these never by 0.
    pub fn without_division(&self) -> Cow<'_, Kernel> {
        if !self.body.iter().any(|inst| matches!(inst.op, Op::Bin(bin, ..) if bin.divides_integers())) {
            return Cow::Borrowed(self);
        }
        Cow::Owned(rebuilt(self, |builder, _, op| match *op {
            Op::Bin(bin, x, y) if bin.divides_integers() => {
                Some(if builder.dtype(x) == DType::U64 { builder.guarded(bin, x, y) } else { builder.divided(bin, x, y) })
            }
            _ => None,
        }))
    }
}

impl Builder {
    /// `⌊x / y⌋` or the remainder that has the sign of y; 0 where y = 0.
    pub(super) fn int_division(&mut self, bin: Bin, x: Reg, y: Reg) -> Reg {
        let dtype = self.dtype(x);
        let Some(shift) = self.power_of_two(y) else { return self.bin(bin, x, y) };
        let (count, below) = (self.raw(dtype, shift), self.raw(dtype, (1 << shift) - 1));
        if bin == Bin::FloorDiv { self.bin(Bin::Shr, x, count) } else { self.bin(Bin::And, x, below) }
    }

    /// A quotient or remainder that is not by 0.
    fn guarded(&mut self, bin: Bin, x: Reg, y: Reg) -> Reg {
        let (zero, one) = (self.integer(DType::U64, 0), self.integer(DType::U64, 1));
        let is_zero = self.cmp(Cmp::Eq, y, zero);
        let by = self.select(is_zero, one, y);
        let value = self.bin(bin, x, by);
        self.select(is_zero, zero, value)
    }
    /// A quotient or remainder of integers that are not u64, by way of f64.
    fn divided(&mut self, bin: Bin, x: Reg, y: Reg) -> Reg {
        let dtype = self.dtype(x);
        let narrow = dtype.size() < 8;
        let (wide_x, wide_y) = (self.convert(x, DType::I64), self.convert(y, DType::I64));
        let by = self.divisor(wide_y);
        let (mut quotient, mut rest) = (None, wide_x);
        let large = self.known(by.y).is_some_and(|k| LARGE.contains(&(k as i64).unsigned_abs()));
        let less = match (narrow, large) {
            (true, _) => NARROW,
            (false, true) => QUARTER,
            (false, false) => WIDE,
        };
        if !narrow && !large {
            // Wrong by as much as f64 lacks of 64 bits; what it leaves is a few thousand times y at most.
            let near = self.ratio(rest, &by, 0.0);
            let found = self.whole(Un::Trunc, near, rest, &by);
            (quotient, rest) = (Some(found.0), found.1);
        }
        let near = self.ratio(rest, &by, less);
        let (below, left) = self.whole(Un::Floor, near, rest, &by);
        let quotient = quotient.map_or(below, |q| self.bin(Bin::Add, q, below));
        let (quotient, rest) = self.one_more(quotient, left, &by);
        let value = match bin {
            Bin::FloorDiv => quotient,
            Bin::Mod => rest,
            _ => self.with_sign_of(wide_x, rest, by.y),
        };
        let zero = self.integer(DType::I64, 0);
        let value = self.select(by.is_zero, zero, value);
        self.convert(value, dtype)
    }

    /// An i64 to divide by.
    fn divisor(&mut self, y: Reg) -> Divisor {
        if let Op::Const(bits) = self.kernel().body[y].op {
            let k = bits as i64;
            let (is_zero, negative) = (self.truth(k == 0), self.truth(k < 0));
            let k = if k == 0 { 1 } else { k };
            let (y, reciprocal) = (self.integer(DType::I64, k), self.element(&Array::scalar(1.0 / k as f64)));
            return Divisor { y, is_zero, negative, reciprocal };
        }
        let (zero, one) = (self.integer(DType::I64, 0), self.integer(DType::I64, 1));
        let is_zero = self.cmp(Cmp::Eq, y, zero);
        let y = self.select(is_zero, one, y);
        let negative = self.cmp(Cmp::Lt, y, zero);
        let (one, float) = (self.element(&Array::scalar(1.0)), self.convert(y, DType::F64));
        Divisor { y, is_zero, negative, reciprocal: self.bin(Bin::Div, one, float) }
    }
    /// x / y as f64 has it, less so much.
    fn ratio(&mut self, x: Reg, by: &Divisor, less: f64) -> Reg {
        let x = self.convert(x, DType::F64);
        if less == 0.0 {
            return self.bin(Bin::Mul, x, by.reciprocal);
        }
        let less = self.element(&Array::scalar(-less));
        self.fma(x, by.reciprocal, less)
    }
    /// A ratio as an integer, and what that leaves of x.
    fn whole(&mut self, un: Un, ratio: Reg, x: Reg, by: &Divisor) -> (Reg, Reg) {
        let whole = self.un(un, ratio);
        let quotient = self.convert(whole, DType::I64);
        let product = self.bin(Bin::Mul, quotient, by.y);
        (quotient, self.bin(Bin::Sub, x, product))
    }
    /// Quotient and remainder of a quotient that is right or too small by one: the remainder has the sign of y.
    fn one_more(&mut self, quotient: Reg, rest: Reg, by: &Divisor) -> (Reg, Reg) {
        let less = self.bin(Bin::Sub, rest, by.y);
        let right = self.apart(less, by.negative);
        let one = self.integer(DType::I64, 1);
        let more = self.bin(Bin::Add, quotient, one);
        (self.select(right, quotient, more), self.select(right, rest, less))
    }
    /// A remainder that has the sign of y as one that has the sign of x.
    fn with_sign_of(&mut self, x: Reg, rest: Reg, y: Reg) -> Reg {
        let zero = self.integer(DType::I64, 0);
        let negative = self.cmp(Cmp::Lt, x, zero);
        let apart = self.apart(rest, negative);
        let less = self.bin(Bin::Sub, rest, y);
        self.select(apart, less, rest)
    }
    /// Whether a remainder is not 0, and negative where this does not hold.
    fn apart(&mut self, rest: Reg, negative: Reg) -> Reg {
        let zero = self.integer(DType::I64, 0);
        let (some, below) = (self.cmp(Cmp::Ne, rest, zero), self.cmp(Cmp::Lt, rest, zero));
        let differ = self.bin(Bin::Xor, below, negative);
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

    /// A value for these bits of x and y.
    fn value((b, of): &(Builder, Reg), x: u64, y: u64) -> u64 {
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
        values[of.0 as usize]
    }

    macro_rules! agrees {
        ($t:ident, $dtype:expr, $xs:expr) => {
            for (bin, law) in [
                (Bin::FloorDiv, <$t as Int>::floor_div as fn($t, $t) -> $t),
                (Bin::Mod, <$t as Int>::floor_mod),
                (Bin::Fmod, <$t as Int>::remainder),
            ] {
                let of = |known: Option<i64>| {
                    let mut b = Builder::new();
                    let [x, y] = [0, 1].map(|_| {
                        let mem = b.mem($dtype, crate::kernel::Lane::Unit);
                        b.load(mem)
                    });
                    let y = known.map_or(y, |k| b.integer($dtype, k));
                    let found = b.divided(bin, x, y);
                    (b, found)
                };
                let bits = |x: $t| x as u64 & (u64::MAX >> (64 - $t::BITS));
                let any = of(None);
                for &y in &$xs {
                    let one = of(Some(y as i64));
                    for &x in &$xs {
                        assert_eq!(value(&any, bits(x), bits(y)), bits(law(x, y)), "{bin:?} {x} {y}");
                        assert_eq!(value(&one, bits(x), bits(y)), bits(law(x, y)), "{bin:?} {x} by {y}, which is known");
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
        // Multiples, and what is next to them.
        for y in [16_383i64, 16_384, -16_385, 998_244_353, (1 << 31) - 1, -(1 << 61), (1 << 61) + 1] {
            let far = (random() as i64).wrapping_rem(i64::MAX / y.abs()).wrapping_mul(y);
            wide.extend([y, far, far.wrapping_add(1), far.wrapping_sub(1)]);
        }
        for k in 0..40 {
            let (x, y) = (random() as i64 >> (k + 12), random() as i64 >> (62 - k));
            wide.extend([y, x.wrapping_mul(y), x.wrapping_mul(y).wrapping_add(1), x.wrapping_mul(y).wrapping_sub(1)]);
        }
        agrees!(i64, DType::I64, wide);
        let narrow: Vec<i32> = wide.iter().map(|&x| x as i32).chain([i32::MIN, i32::MAX]).collect();
        agrees!(i32, DType::I32, narrow);
        let small: Vec<i8> = (i8::MIN..=i8::MAX).collect();
        agrees!(i8, DType::I8, small);
        let natural: Vec<u32> = wide.iter().map(|&x| x as u32).chain([u32::MAX]).collect();
        agrees!(u32, DType::U32, natural);
    }
}
