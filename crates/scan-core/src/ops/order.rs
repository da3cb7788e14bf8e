//! The order of elements as integers, so that sorting compares words: with the position behind it, no two are equal, and any sort is stable.

use crate::types::{DType, Element};

/// An element whose place in the order of sorting is a number: NaN is above everything and equal to itself, −0 equals 0.
pub(super) trait Ordered: Element + PartialOrd {
    /// A greater element has a greater number, of as many bits as its dtype.
    fn rank(self) -> u64;
}

macro_rules! ordered {
    ($($t:ident: $x:ident => $rank:expr;)+) => {
        $(impl Ordered for $t {
            fn rank(self) -> u64 {
                let $x = self;
                $rank
            }
        })+
    };
}

ordered! {
    bool: x => u64::from(x);
    u8: x => u64::from(x);
    u16: x => u64::from(x);
    u32: x => u64::from(x);
    u64: x => x;
    i8: x => u64::from(x as u8 ^ 1 << 7);
    i16: x => u64::from(x as u16 ^ 1 << 15);
    i32: x => u64::from(x as u32 ^ 1 << 31);
    i64: x => x as u64 ^ 1 << 63;
    f32: x => {
        // The sum with 0 turns −0 into it.
        let bits = (x + 0.0).to_bits();
        u64::from(if x.is_nan() { u32::MAX } else if bits >> 31 == 1 { !bits } else { bits | 1 << 31 })
    };
    f64: x => {
        let bits = (x + 0.0).to_bits();
        if x.is_nan() { u64::MAX } else if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
    };
}

/// An element's rank and its position, in one word.
pub(super) trait Key: Copy + Ord + Send + 'static {
    /// Of a rank that has room in it.
    fn new(rank: u64, position: usize) -> Self;
    /// The position.
    fn position(self) -> usize;
}

impl Key for u64 {
    fn new(rank: u64, position: usize) -> u64 {
        rank << 32 | position as u64
    }
    fn position(self) -> usize {
        self as u32 as usize
    }
}

impl Key for u128 {
    fn new(rank: u64, position: usize) -> u128 {
        u128::from(rank) << 64 | position as u128
    }
    fn position(self) -> usize {
        self as u64 as usize
    }
}

/// True where ranks of a dtype and so many positions have room in 64 bits.
pub(super) fn is_short(dtype: DType, n: usize) -> bool {
    dtype.size() <= 4 && n <= 1 << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::support::is_nan;
    use std::cmp::Ordering;

    /// The total order of sorting: NaN is above everything and equal to itself.
    fn ascending<T: Ordered>(a: T, b: T) -> Ordering {
        a.partial_cmp(&b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)))
    }

    fn check<T: Ordered>(elements: &[T]) {
        for &a in elements {
            for &b in elements {
                assert_eq!(a.rank().cmp(&b.rank()), ascending(a, b), "{a:?} and {b:?}");
            }
            assert!(T::DTYPE.size() == 8 || a.rank() >> (8 * T::DTYPE.size()) == 0, "{a:?}");
        }
    }

    #[test]
    fn ranks_are_in_the_order_of_elements() {
        check(&[false, true]);
        check(&[i8::MIN, -1, 0, 1, i8::MAX]);
        check(&[0, 1, u8::MAX]);
        check(&[i16::MIN, -1, 0, 1, i16::MAX]);
        check(&[0, 1, u16::MAX]);
        check(&[i32::MIN, -1, 0, 1, i32::MAX]);
        check(&[0, 1, u32::MAX]);
        check(&[i64::MIN, -1, 0, 1, i64::MAX]);
        check(&[0, 1, u64::MAX]);
        check(&[f32::NEG_INFINITY, -1.5, -f32::MIN_POSITIVE, -1e-45, -0.0, 0.0, 1e-45, 2.0, f32::INFINITY, f32::NAN, -f32::NAN]);
        check(&[f64::NEG_INFINITY, -1.5, -5e-324, -0.0, 0.0, 5e-324, 2.0, f64::INFINITY, f64::NAN, -f64::NAN]);
    }

    #[test]
    fn keys_have_room_for_both() {
        let (low, high) = (u64::new(7, 9), u64::new(u64::from(u32::MAX), u32::MAX as usize));
        assert_eq!((low.position(), high.position(), low.cmp(&high)), (9, u32::MAX as usize, Ordering::Less));
        assert_eq!((u128::new(u64::MAX, 5).position(), u128::new(3, 5) < u128::new(3, 6)), (5, true));
        assert!(is_short(DType::F32, 1 << 32) && !is_short(DType::F32, (1 << 32) + 1) && !is_short(DType::I64, 2));
    }
}
