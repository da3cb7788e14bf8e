//! Comparisons, choices, shifts and conversions in machine operations.

use super::codes::{self as code, Row};
use super::select::{Form, Logic, Selector, Val, float_predicate, pair, refuse};
use super::small::{is_small, widened};
use crate::backend::cpu::Refusal;
use crate::kernel::{Bin, Cmp, Op, Reg};
use crate::types::DType;

/// True where a conversion changes no bit.
pub(super) fn free(from: DType, to: DType) -> bool {
    from == to || from.is_int() && to.is_int() && from.size() == to.size() && !is_small(from)
}

impl Selector<'_> {
    /// A comparison: a mask.
    pub(super) fn compare(&mut self, cmp: Cmp, x: Val, y: Val, dtype: DType) -> Val {
        let dtype = widened(dtype);
        if !self.wide() {
            return self.compare_vector(cmp, x, y, dtype);
        }
        if dtype == DType::Bool {
            return match cmp {
                Cmp::Eq => self.logic(Logic::Same, &[x, y]),
                Cmp::Ne => self.logic(Logic::Xor, &[x, y]),
                Cmp::Lt => self.logic(Logic::AndNot, &[x, y]),
                Cmp::Le => {
                    let not = self.logic(Logic::Not, &[x]);
                    self.logic(Logic::Or, &[not, y])
                }
            };
        }
        let (row, imm): (&'static Row, u8) = match dtype {
            DType::F32 => (&code::CMP_F32, float_predicate(cmp)),
            DType::F64 => (&code::CMP_F64, float_predicate(cmp)),
            DType::I32 => (&code::CMP_I32, integer_predicate(cmp)),
            DType::I64 => (&code::CMP_I64, integer_predicate(cmp)),
            DType::U32 => (&code::CMP_U32, integer_predicate(cmp)),
            _ => (&code::CMP_U64, integer_predicate(cmp)),
        };
        self.mask(Form::CompareMask, Some(row), Some(imm), &[x, y])
    }
    /// On AVX2: lanes of ones and zeros, as wide as the widest dtype.
    fn compare_vector(&mut self, cmp: Cmp, x: Val, y: Val, dtype: DType) -> Val {
        let size = self.size(dtype);
        let narrow = match dtype {
            DType::F32 | DType::F64 => {
                let row = if size == 8 { &code::CMP_F64 } else { &code::CMP_F32 };
                self.vector_imm(Form::Binary(false), row, float_predicate(cmp), size, &[x, y])
            }
            _ => self.compare_integers(cmp, x, y, dtype),
        };
        self.mask_of(narrow, self.widest)
    }
    fn compare_integers(&mut self, cmp: Cmp, x: Val, y: Val, dtype: DType) -> Val {
        let size = self.size(dtype);
        if matches!(cmp, Cmp::Eq | Cmp::Ne) {
            let equal = self.vector(Form::Binary(true), if size == 8 { &code::EQ_I64 } else { &code::EQ_I32 }, size, &[x, y]);
            return if cmp == Cmp::Eq { equal } else { self.flip(equal, u64::MAX, size) };
        }
        let (mut x, mut y) = (x, y);
        if dtype == DType::Bool {
            // True is −1 here, but comes after false.
            (x, y) = (y, x);
        } else if dtype.is_unsigned() {
            let sign = 1u64 << (8 * u32::from(size) - 1);
            (x, y) = (self.flip(x, sign, size), self.flip(y, sign, size));
        }
        let args = pair(cmp == Cmp::Lt, x, y);
        let greater = self.vector(Form::Binary(false), if size == 8 { &code::GT_I64 } else { &code::GT_I32 }, size, &args);
        if cmp == Cmp::Lt { greater } else { self.flip(greater, u64::MAX, size) }
    }

    /// `x < y ? x : y` and `x < y ? y : x` of floats, which are an instruction each: the second operand where they are equal or one is
    /// NaN.
    pub(super) fn bounded(&mut self, c: Reg, x: Reg, y: Reg, dtype: DType) -> Option<Val> {
        let rows: [&'static Row; 2] = match self.kernel.body[c].op {
            Op::Cmp(Cmp::Lt, a, b) if dtype.is_float() && (a, b) == (x, y) => [&code::MIN_F32, &code::MIN_F64],
            Op::Cmp(Cmp::Lt, a, b) if dtype.is_float() && (a, b) == (y, x) => [&code::MAX_F32, &code::MAX_F64],
            _ => return None,
        };
        let size = self.size(dtype);
        Some(self.vector(Form::Binary(false), rows[usize::from(size == 8)], size, &[self.map[x], self.map[y]]))
    }
    pub(super) fn choose(&mut self, c: Val, x: Val, y: Val, dtype: DType) -> Val {
        let size = self.size(dtype);
        let double = size == 8;
        if !self.wide() {
            let c = self.mask_of(c, size);
            return self.vector(Form::BlendVector, if double { &code::BLENDV_F64 } else { &code::BLENDV_F32 }, size, &[c, x, y]);
        }
        if dtype == DType::Bool {
            let (both, other) = (self.logic(Logic::And, &[c, x]), self.logic(Logic::AndNot, &[c, y]));
            return self.logic(Logic::Or, &[both, other]);
        }
        self.vector(Form::BlendMask, if double { &code::BLEND_F64 } else { &code::BLEND_F32 }, size, &[c, x, y])
    }
    /// A mask for lanes of a size, on AVX2.
    pub(super) fn mask_of(&mut self, mask: Val, size: u8) -> Val {
        let found = self.program.values[mask].size;
        match found.cmp(&size) {
            std::cmp::Ordering::Less => self.vector(Form::Unary, &code::I32_TO_I64, 8, &[mask]),
            std::cmp::Ordering::Equal => mask,
            std::cmp::Ordering::Greater => self.halves(mask),
        }
    }
    /// A 64-bit mask or integer as 32 bits, on AVX2.
    pub(super) fn halves(&mut self, x: Val) -> Val {
        self.vector(Form::Halves, &code::SHUFFLE, 4, &[x])
    }

    /// `a << b` or `a >> b`.
    pub(super) fn shift(&mut self, bin: Bin, a: Val, b: Val, amount: Option<u8>, dtype: DType) -> Val {
        let (size, signed) = (self.size(dtype), dtype.is_signed_int());
        if bin == Bin::Shr && signed && size == 8 && !self.wide() {
            let sign = self.constant(1 << 63, 8);
            let (low, sign) = (self.shift(bin, a, b, amount, DType::U64), self.shift(bin, sign, b, amount, DType::U64));
            let turned = self.vector(Form::Binary(true), &code::XOR_I64, 8, &[low, sign]);
            return self.vector(Form::Binary(false), &code::SUB_I64, 8, &[turned, sign]);
        }
        let rows: [&'static Row; 4] = match (bin, signed) {
            (Bin::Shl, _) => [&code::SHL_I32, &code::SHL_I64, &code::SHL_IMM_I32, &code::SHL_IMM_I64],
            (_, true) => [&code::SHR_I32, &code::SHR_I64, &code::SHR_IMM_I32, &code::SHR_IMM_I64],
            (_, false) => [&code::SHR_U32, &code::SHR_U64, &code::SHR_IMM_U32, &code::SHR_IMM_U64],
        };
        let double = usize::from(size == 8);
        match amount {
            Some(n) => self.vector_imm(Form::Unary, rows[2 + double], n, size, &[a]),
            None => self.vector(Form::Binary(false), rows[double], size, &[a, b]),
        }
    }
    /// `a · b` of 64 bits, on AVX2.
    pub(super) fn product(&mut self, a: Val, b: Val) -> Val {
        let high = |s: &mut Self, x| s.vector_imm(Form::Unary, &code::SHR_IMM_U64, 32, 8, &[x]);
        let (a_high, b_high) = (high(self, a), high(self, b));
        let mul = |s: &mut Self, x, y| s.vector(Form::Binary(true), &code::MUL_LOW, 8, &[x, y]);
        let (low, left, right) = (mul(self, a, b), mul(self, a_high, b), mul(self, a, b_high));
        let cross = self.vector(Form::Binary(true), &code::ADD_I64, 8, &[left, right]);
        let cross = self.vector_imm(Form::Unary, &code::SHL_IMM_I64, 32, 8, &[cross]);
        self.vector(Form::Binary(true), &code::ADD_I64, 8, &[low, cross])
    }

    /// `x` as another dtype.
    pub(super) fn convert(&mut self, x: Val, from: DType, to: DType) -> Result<Val, Refusal> {
        if from != to && is_small(to) && from != DType::Bool {
            return self.small_of(x, from, to);
        }
        let from = widened(from);
        if free(from, to) || from == widened(to) {
            return Ok(x);
        }
        if to == DType::Bool {
            let zero = self.constant(0, self.size(from));
            return Ok(self.compare(Cmp::Ne, x, zero, from));
        }
        if from == DType::Bool {
            return Ok(self.bool_to(x, to));
        }
        match (from.is_float(), to.is_float()) {
            (true, true) => Ok(self.float_to_float(x, to)),
            (false, true) => self.int_to_float(x, from, to),
            (true, false) => self.float_to_int(x, from, to),
            (false, false) => Ok(self.int_to_int(x, from, to)),
        }
    }
    fn bool_to(&mut self, x: Val, to: DType) -> Val {
        let size = self.size(to);
        let one = self.constant(one(to), size);
        if self.wide() {
            return self.vector(Form::KeepMask, if size == 8 { &code::MOVE_F64 } else { &code::MOVE_F32 }, size, &[x, one]);
        }
        let mask = self.mask_of(x, size);
        self.vector(Form::Binary(true), if size == 8 { &code::AND_F64 } else { &code::AND_F32 }, size, &[mask, one])
    }
    fn float_to_float(&mut self, x: Val, to: DType) -> Val {
        match to {
            DType::F64 => self.vector(Form::Unary, &code::F32_TO_F64, 8, &[x]),
            _ => self.vector(Form::Unary, &code::F64_TO_F32, 4, &[x]),
        }
    }
    fn int_to_int(&mut self, x: Val, from: DType, to: DType) -> Val {
        match (to.size(), from.is_signed_int()) {
            (8, true) => self.vector(Form::Unary, &code::I32_TO_I64, 8, &[x]),
            (8, false) => self.vector(Form::Unary, &code::U32_TO_I64, 8, &[x]),
            _ if self.wide() => self.vector(Form::Unary, &code::I64_TO_I32, 4, &[x]),
            _ => self.halves(x),
        }
    }
    fn int_to_float(&mut self, x: Val, from: DType, to: DType) -> Result<Val, Refusal> {
        let row = match (from, to) {
            (DType::I32, DType::F64) => &code::I32_TO_F64,
            (DType::I32, _) => &code::I32_TO_F32,
            (DType::I64, DType::F64) if !self.wide() => return Ok(self.long_to_double(x)),
            (DType::U32, DType::F64) if !self.wide() => {
                let long = self.int_to_int(x, from, DType::I64);
                return Ok(self.long_to_double(long));
            }
            (DType::U32, DType::F32) if !self.wide() => {
                // f64 holds it: it is rounded once.
                let double = self.int_to_float(x, from, DType::F64)?;
                return Ok(self.float_to_float(double, DType::F32));
            }
            (DType::I64, DType::F32) if !self.wide() => {
                let held = self.odd(x);
                let double = self.long_to_double(held);
                return Ok(self.float_to_float(double, DType::F32));
            }
            _ if !self.wide() => return refuse(format!("{} to {}, without AVX-512", from.name(), to.name())),
            (DType::I64, DType::F64) => &code::I64_TO_F64,
            (DType::I64, _) => &code::I64_TO_F32,
            (DType::U32, DType::F64) => &code::U32_TO_F64,
            (DType::U32, _) => &code::U32_TO_F32,
            (_, DType::F64) => &code::U64_TO_F64,
            (_, _) => &code::U64_TO_F32,
        };
        Ok(self.vector(Form::Unary, row, self.size(to), &[x]))
    }
    /// i64 to f64 on AVX2. The halves become the mantissas of two floats (of unit 1, and of unit 2³² with the sign turned), so
    /// that the only rounding is that of the last sum.
    fn long_to_double(&mut self, x: Val) -> Val {
        let (unit, high_unit, both) = (0x4330_0000_0000_0000u64, 0x4530_0000_8000_0000u64, 0x4530_0000_8010_0000u64);
        let unit = self.constant(unit, 8);
        let low = self.vector_imm(Form::Binary(false), &code::PARTS, 0b0101_0101, 8, &[unit, x]);
        let high = self.vector_imm(Form::Unary, &code::SHR_IMM_U64, 32, 8, &[x]);
        let high = self.flip(high, high_unit, 8);
        let both = self.constant(both, 8);
        let high = self.vector(Form::Binary(false), &code::SUB_F64, 8, &[high, both]);
        self.vector(Form::Binary(true), &code::ADD_F64, 8, &[high, low])
    }
    /// An integer that f64 holds and that rounds to f32 as `x` does: of a large one, the low bits become one bit that says whether
    /// any of them was set.
    fn odd(&mut self, x: Val) -> Val {
        let low = self.constant(0x7ff, 8);
        let (exact, limit, below) = (self.constant(1 << 53, 8), self.constant(1 << 54, 8), self.constant(u64::MAX, 8));
        let (sticky, high) = (self.constant(0x800, 8), self.constant(!0x7ff, 8));
        let both = |s: &mut Self, row, a, b| s.vector(Form::Binary(true), row, 8, &[a, b]);
        let rest = both(self, &code::AND_I64, x, low);
        let rest = both(self, &code::ADD_I64, rest, low);
        let rest = both(self, &code::AND_I64, rest, sticky);
        let cut = both(self, &code::OR_I64, x, rest);
        let cut = both(self, &code::AND_I64, cut, high);
        let moved = both(self, &code::ADD_I64, x, exact);
        let above = self.vector(Form::Binary(false), &code::GT_I64, 8, &[moved, below]);
        let under = self.vector(Form::Binary(false), &code::GT_I64, 8, &[limit, moved]);
        let small = both(self, &code::AND_I64, above, under);
        self.choose(small, x, cut, DType::I64)
    }
    /// Truncated and held within the range of `to`; NaN becomes 0.
    fn float_to_int(&mut self, x: Val, from: DType, to: DType) -> Result<Val, Refusal> {
        if from == DType::F32 && to.size() == 8 {
            let double = self.float_to_float(x, DType::F64);
            return self.float_to_int(double, DType::F64, to);
        }
        let (source, size) = (self.size(from), self.size(to));
        let row = match (from, to) {
            (DType::F32, DType::I32) => &code::F32_TO_I32,
            (_, DType::I32) => &code::F64_TO_I32,
            (DType::F32, DType::U32) if !self.wide() => {
                let double = self.float_to_float(x, DType::F64);
                return Ok(self.double_to_half(double));
            }
            (_, DType::U32) if !self.wide() => return Ok(self.double_to_half(x)),
            (_, DType::I64) if !self.wide() => {
                let long = self.double_to_long(x);
                return Ok(self.held(x, long, from, to));
            }
            _ if !self.wide() => return refuse(format!("{} to {}, without AVX-512", from.name(), to.name())),
            (DType::F32, _) => &code::F32_TO_U32,
            (_, DType::I64) => &code::F64_TO_I64,
            (_, DType::U32) => &code::F64_TO_U32,
            (_, _) => &code::F64_TO_U64,
        };
        let raw = self.vector(Form::Unary, row, size, &[x]);
        if to.is_unsigned() {
            // What is too large has become all ones already; what is negative or NaN has too.
            let zero = self.constant(0, source);
            let positive = self.compare(Cmp::Lt, zero, x, from);
            return Ok(self.vector(Form::KeepMask, if size == 8 { &code::MOVE_F64 } else { &code::MOVE_F32 }, size, &[positive, raw]));
        }
        Ok(self.held(x, raw, from, to))
    }
    /// A signed integer, of which what was outside of the range has become the smallest: the largest where x is above, 0 where it is NaN.
    fn held(&mut self, x: Val, raw: Val, from: DType, to: DType) -> Val {
        let (source, size) = (self.size(from), self.size(to));
        let bound = 2f64.powi(8 * i32::from(size) - 1);
        let bound = self.constant(if source == 8 { bound.to_bits() } else { u64::from((bound as f32).to_bits()) }, source);
        let large = self.compare(Cmp::Le, bound, x, from);
        let top = self.constant((1u64 << (8 * u32::from(size) - 1)) - 1, size);
        let held = self.choose(large, top, raw, to);
        let number = self.compare(Cmp::Eq, x, x, from);
        let nothing = self.constant(0, size);
        self.choose(number, held, nothing, to)
    }
    /// f64 to i64 on AVX2, of what is not above the range. The whole part is cut into multiples of 2³² and the rest, both without rounding:
    /// added to floats in which a bit counts as 1, they stand in the low bits of the mantissas.
    fn double_to_long(&mut self, x: Val) -> Val {
        let float = |s: &mut Self, value: f64| s.constant(value.to_bits(), 8);
        let both = |s: &mut Self, row, a, b| s.vector(Form::Binary(true), row, 8, &[a, b]);
        let (least, down, up) = (float(self, -(2f64.powi(63))), float(self, 2f64.powi(-32)), float(self, -(2f64.powi(32))));
        let whole = self.vector_imm(Form::Unary, &code::ROUND_F64, 0x0b, 8, &[x]);
        let whole = self.vector(Form::Binary(false), &code::MAX_F64, 8, &[whole, least]);
        let high = both(self, &code::MUL_F64, whole, down);
        let high = self.vector_imm(Form::Unary, &code::ROUND_F64, 0x09, 8, &[high]);
        let low = self.vector(Form::Fma, &code::FMA213_F64, 8, &[high, up, whole]);
        let (unit, signed) = (float(self, 2f64.powi(52)), float(self, 1.5 * 2f64.powi(52)));
        let (low, high) = (both(self, &code::ADD_F64, low, unit), both(self, &code::ADD_F64, high, signed));
        let low = self.flip(low, 2f64.powi(52).to_bits(), 8);
        let high = self.vector_imm(Form::Unary, &code::SHL_IMM_I64, 32, 8, &[high]);
        both(self, &code::OR_I64, high, low)
    }
    /// f64 to u32 on AVX2: held within the range, NaN being 0, and in the low half of a mantissa.
    fn double_to_half(&mut self, x: Val) -> Val {
        let float = |s: &mut Self, value: f64| s.constant(value.to_bits(), 8);
        let (zero, most, unit) = (float(self, 0.0), float(self, f64::from(u32::MAX)), float(self, 2f64.powi(52)));
        let held = self.vector(Form::Binary(false), &code::MAX_F64, 8, &[x, zero]);
        let held = self.vector(Form::Binary(false), &code::MIN_F64, 8, &[held, most]);
        let whole = self.vector_imm(Form::Unary, &code::ROUND_F64, 0x0b, 8, &[held]);
        let moved = self.vector(Form::Binary(true), &code::ADD_F64, 8, &[whole, unit]);
        self.halves(moved)
    }
}

/// The bits of 1.
fn one(dtype: DType) -> u64 {
    match dtype {
        DType::F64 => 1f64.to_bits(),
        DType::F32 => u64::from(1f32.to_bits()),
        _ => 1,
    }
}

fn integer_predicate(cmp: Cmp) -> u8 {
    match cmp {
        Cmp::Eq => 0,
        Cmp::Lt => 1,
        Cmp::Le => 2,
        Cmp::Ne => 4,
    }
}

/// The predicate after its operands have been exchanged.
pub(super) fn exchanged(imm: u8) -> u8 {
    match imm {
        0x11 => 0x1e,
        0x12 => 0x1d,
        1 => 6,
        2 => 5,
        same => same,
    }
}
