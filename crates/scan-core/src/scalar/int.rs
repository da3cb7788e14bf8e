//! Integer arithmetic of the rows: it wraps, and no operand makes it fail.

use crate::types::Element;

/// Integers with the arithmetic of the elementwise table.
pub trait Int:
    Element
    + Ord
    + std::ops::BitAnd<Output = Self>
    + std::ops::BitOr<Output = Self>
    + std::ops::BitXor<Output = Self>
    + std::ops::Not<Output = Self>
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// `x + y`, wrapping.
    fn plus(self, y: Self) -> Self;
    /// `x − y`, wrapping.
    fn minus(self, y: Self) -> Self;
    /// `x · y`, wrapping.
    fn times(self, y: Self) -> Self;
    /// `⌊x / y⌋`; 0 where y = 0; the least integer by −1 wraps.
    fn floor_div(self, y: Self) -> Self;
    /// Remainder with the sign of y, as Python; 0 where y = 0.
    fn floor_mod(self, y: Self) -> Self;
    /// Remainder with the sign of x, as C; 0 where y = 0.
    fn remainder(self, y: Self) -> Self;
    /// `xʸ`, wrapping. A negative exponent gives 0, except that 1 stays 1 and −1 keeps its sign's parity.
    fn power(self, y: Self) -> Self;
    /// `|x|`; the least integer stays.
    fn magnitude(self) -> Self;
    /// −1, 0 or 1.
    fn sign(self) -> Self;
    /// `x << y`; 0 where y is negative or not less than the width.
    fn shift_left(self, y: Self) -> Self;
    /// `x >> y`; the sign alone (0 or −1) where y is negative or not less than the width.
    fn shift_right(self, y: Self) -> Self;
}

macro_rules! ints {
    (negative signed $x:expr) => { $x < 0 };
    (negative unsigned $x:expr) => { false };
    (last signed) => { 0 };
    (last unsigned) => { 1 };
    ($($t:ident $kind:ident),+) => {$(
        impl Int for $t {
            const ZERO: $t = 0;
            const ONE: $t = 1;
            fn plus(self, y: $t) -> $t { self.wrapping_add(y) }
            fn minus(self, y: $t) -> $t { self.wrapping_sub(y) }
            fn times(self, y: $t) -> $t { self.wrapping_mul(y) }
            fn floor_div(self, y: $t) -> $t {
                if y == 0 { return 0; }
                let (q, m) = (self.wrapping_div(y), self.wrapping_rem(y));
                if m != 0 && ints!(negative $kind m) != ints!(negative $kind y) { q - 1 } else { q }
            }
            fn floor_mod(self, y: $t) -> $t {
                let m = self.remainder(y);
                if m != 0 && ints!(negative $kind m) != ints!(negative $kind y) { m + y } else { m }
            }
            fn remainder(self, y: $t) -> $t { if y == 0 { 0 } else { self.wrapping_rem(y) } }
            fn power(self, y: $t) -> $t {
                if ints!(negative $kind y) {
                    let odd = y & 1 == 1;
                    return if self == 1 || (!odd && self == (0 as $t).wrapping_sub(1)) { 1 } else if self == (0 as $t).wrapping_sub(1) { self } else { 0 };
                }
                let (mut base, mut left, mut product) = (self, y, 1 as $t);
                while left != 0 {
                    if left & 1 == 1 { product = product.wrapping_mul(base); }
                    base = base.wrapping_mul(base);
                    left >>= 1;
                }
                product
            }
            fn magnitude(self) -> $t { if ints!(negative $kind self) { (0 as $t).wrapping_sub(self) } else { self } }
            fn sign(self) -> $t { if ints!(negative $kind self) { (0 as $t).wrapping_sub(1) } else { (self != 0) as $t } }
            fn shift_left(self, y: $t) -> $t { u32::try_from(y).ok().and_then(|n| self.checked_shl(n)).unwrap_or(0) }
            fn shift_right(self, y: $t) -> $t { u32::try_from(y).ok().and_then(|n| self.checked_shr(n)).unwrap_or(self >> ($t::BITS - 1) >> ints!(last $kind)) }
        }
    )+};
}

ints!(i8 signed, i16 signed, i32 signed, i64 signed, u8 unsigned, u16 unsigned, u32 unsigned, u64 unsigned);
