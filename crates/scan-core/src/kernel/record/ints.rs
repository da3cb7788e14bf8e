//! Rows on integers and bools, as `scalar/int.rs` and the rows define them.

use super::{Builder, mask};
use crate::kernel::kir::{Bin, Cmp, Reg, Un};
use crate::scalar::ElemOp;

impl Builder {
    /// A row on integers of one dtype; `None` for quotients of u64, and for powers whose exponent is not a known natural number.
    pub(super) fn elem_int(&mut self, op: ElemOp, ins: &[Reg]) -> Option<Reg> {
        let x = ins[0];
        let dtype = self.dtype(x);
        if let Some(bin) = bin_of(op) {
            return Some(self.bin(bin, x, ins[1]));
        }
        if let Some((cmp, turned)) = cmp_of(op) {
            return Some(if turned { self.cmp(cmp, ins[1], x) } else { self.cmp(cmp, x, ins[1]) });
        }
        Some(match op {
            ElemOp::Square => self.bin(Bin::Mul, x, x),
            ElemOp::Fma => {
                let product = self.bin(Bin::Mul, x, ins[1]);
                self.bin(Bin::Add, product, ins[2])
            }
            ElemOp::Neg => self.un(Un::Neg, x),
            ElemOp::Invert => self.un(Un::Not, x),
            ElemOp::Abs => self.int_abs(x),
            ElemOp::Sign => self.int_sign(x),
            ElemOp::Minimum => self.lesser(x, ins[1]),
            ElemOp::Maximum => self.greater(x, ins[1]),
            ElemOp::Clip => {
                let low = self.greater(x, ins[1]);
                self.lesser(low, ins[2])
            }
            ElemOp::Relu => {
                let zero = self.integer(dtype, 0);
                self.greater(x, zero)
            }
            ElemOp::FloorDiv => self.int_division(Bin::FloorDiv, x, ins[1]),
            ElemOp::Mod => self.int_division(Bin::Mod, x, ins[1]),
            ElemOp::Fmod => self.bin(Bin::Fmod, x, ins[1]),
            ElemOp::Pow => return self.int_power(x, ins[1]),
            ElemOp::ShiftLeft => self.shift_left(x, ins[1]),
            ElemOp::ShiftRight => self.shift_right(x, ins[1]),
            ElemOp::Floor | ElemOp::Ceil | ElemOp::Trunc | ElemOp::Round => x,
            ElemOp::IsNan | ElemOp::IsInf => self.truth(false),
            ElemOp::IsFinite => self.truth(true),
            ElemOp::SignBit => self.negative(x),
            _ => return None,
        })
    }

    /// A row on bools.
    pub(super) fn elem_bool(&mut self, op: ElemOp, ins: &[Reg]) -> Option<Reg> {
        let x = ins[0];
        if let Some((cmp, turned)) = cmp_of(op) {
            return Some(if turned { self.cmp(cmp, ins[1], x) } else { self.cmp(cmp, x, ins[1]) });
        }
        Some(match op {
            ElemOp::Add | ElemOp::Maximum | ElemOp::Or | ElemOp::BitOr => self.bin(Bin::Or, x, ins[1]),
            ElemOp::Mul | ElemOp::Minimum | ElemOp::And | ElemOp::BitAnd => self.bin(Bin::And, x, ins[1]),
            ElemOp::Xor | ElemOp::BitXor => self.bin(Bin::Xor, x, ins[1]),
            ElemOp::Clip => {
                let low = self.bin(Bin::Or, x, ins[1]);
                self.bin(Bin::And, low, ins[2])
            }
            ElemOp::Not | ElemOp::Invert => self.un(Un::Not, x),
            ElemOp::Abs | ElemOp::Relu | ElemOp::Floor | ElemOp::Ceil | ElemOp::Trunc | ElemOp::Round => x,
            ElemOp::IsNan | ElemOp::IsInf | ElemOp::SignBit => self.truth(false),
            ElemOp::IsFinite => self.truth(true),
            _ => return None,
        })
    }

    fn lesser(&mut self, x: Reg, y: Reg) -> Reg {
        let less = self.cmp(Cmp::Le, x, y);
        self.select(less, x, y)
    }
    fn greater(&mut self, x: Reg, y: Reg) -> Reg {
        let less = self.cmp(Cmp::Le, x, y);
        self.select(less, y, x)
    }
    fn negative(&mut self, x: Reg) -> Reg {
        if !self.dtype(x).is_signed_int() {
            return self.truth(false);
        }
        let zero = self.integer(self.dtype(x), 0);
        self.cmp(Cmp::Lt, x, zero)
    }
    fn int_abs(&mut self, x: Reg) -> Reg {
        let (negative, turned) = (self.negative(x), self.un(Un::Neg, x));
        self.select(negative, turned, x)
    }
    fn int_sign(&mut self, x: Reg) -> Reg {
        let dtype = self.dtype(x);
        let zero = self.integer(dtype, 0);
        let other = self.cmp(Cmp::Ne, x, zero);
        let (one, minus, negative) = (self.integer(dtype, 1), self.integer(dtype, -1), self.negative(x));
        let positive = self.select(other, one, zero);
        self.select(negative, minus, positive)
    }
    /// The count held below the width, and whether it was there.
    fn count(&mut self, y: Reg) -> (Reg, Reg) {
        let dtype = self.dtype(y);
        let width = 8 * dtype.size() as u64;
        let (low, high, zero) = (self.raw(dtype, width - 1), self.raw(dtype, mask(dtype) & !(width - 1)), self.raw(dtype, 0));
        let rest = self.bin(Bin::And, y, high);
        (self.bin(Bin::And, y, low), self.cmp(Cmp::Eq, rest, zero))
    }
    fn shift_left(&mut self, x: Reg, y: Reg) -> Reg {
        let (count, inside) = self.count(y);
        let (shifted, zero) = (self.bin(Bin::Shl, x, count), self.integer(self.dtype(x), 0));
        self.select(inside, shifted, zero)
    }
    fn shift_right(&mut self, x: Reg, y: Reg) -> Reg {
        let dtype = self.dtype(x);
        let (count, inside) = self.count(y);
        let shifted = self.bin(Bin::Shr, x, count);
        let far = if dtype.is_signed_int() {
            let last = self.raw(dtype, 8 * dtype.size() as u64 - 1);
            self.bin(Bin::Shr, x, last)
        } else {
            self.integer(dtype, 0)
        };
        self.select(inside, shifted, far)
    }
}

/// The primitive operation that a row on integers is.
fn bin_of(op: ElemOp) -> Option<Bin> {
    Some(match op {
        ElemOp::Add => Bin::Add,
        ElemOp::Sub => Bin::Sub,
        ElemOp::Mul => Bin::Mul,
        ElemOp::BitAnd => Bin::And,
        ElemOp::BitOr => Bin::Or,
        ElemOp::BitXor => Bin::Xor,
        _ => return None,
    })
}

/// The comparison that a row is, and whether its inputs change places.
fn cmp_of(op: ElemOp) -> Option<(Cmp, bool)> {
    Some(match op {
        ElemOp::Eq => (Cmp::Eq, false),
        ElemOp::Ne => (Cmp::Ne, false),
        ElemOp::Lt => (Cmp::Lt, false),
        ElemOp::Le => (Cmp::Le, false),
        ElemOp::Gt => (Cmp::Lt, true),
        ElemOp::Ge => (Cmp::Le, true),
        _ => return None,
    })
}
