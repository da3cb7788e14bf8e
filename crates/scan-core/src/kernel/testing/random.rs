//! Random numbers and elements.

use crate::types::DType;
use std::ops::RangeInclusive;

/// Uniform random numbers (splitmix64).
pub(crate) struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
    /// A number below n.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    /// A number of a range.
    pub fn within(&mut self, range: &RangeInclusive<usize>) -> usize {
        range.start() + self.below(range.end() - range.start() + 1)
    }
    /// True once in n times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    /// One of some items.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// The bits of an element: mostly tame, sometimes an edge.
    pub fn element(&mut self, dtype: DType) -> u64 {
        let edge = self.one_in(8);
        let tame = self.below(2001) as f64 / 250.0 - 4.0;
        match dtype {
            DType::Bool => self.next() & 1,
            DType::F32 if edge => {
                self.pick(&[0.0, -0.0, f32::INFINITY, f32::NAN, f32::MIN_POSITIVE / 3.0, f32::MAX, 0.5, -1e9]).to_bits() as u64
            }
            DType::F32 => (tame as f32).to_bits() as u64,
            DType::F64 if edge => self.pick(&[0.0, -0.0, f64::NEG_INFINITY, f64::NAN, 1e-310, f64::MAX, -2.5, 1e19]).to_bits(),
            DType::F64 => tame.to_bits(),
            _ => {
                let bits = if edge { self.pick(&[u64::MAX, 0, 1 << (8 * dtype.size() - 1)]) } else { self.next() >> self.below(64) };
                bits & (u64::MAX >> (64 - 8 * dtype.size()))
            }
        }
    }
}
