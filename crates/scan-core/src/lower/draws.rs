//! Draws of few numbers: a block of Philox is about 140 operations on integers, which take less time in a kernel than a call of what draws
//! whole arrays. The numbers are those of [`crate::scalar::philox`], bit by bit.

use super::nodes::Lowering;
use super::{Lowered, refuse};
use crate::ir::Node;
use crate::kernel::{Bin, Cmp, HostFn, Reg};
use crate::scalar::philox::{FOLD, MULTIPLIERS, ROUNDS, WEYL};
use crate::types::DType;
use crate::types::shape::{Extents, broadcast_positions, count};

/// Blocks that one node may need: a draw of many numbers is one call, which computes several blocks side by side.
const BLOCKS: usize = 2;
/// Words that a block has.
const WORDS: usize = 4;

/// What is drawn.
#[derive(Clone, Copy)]
pub(super) enum Draw {
    /// From `[0, 1)`.
    Uniform(DType),
    /// Standard normal.
    Normal(DType),
    /// Integers from a range.
    Integers,
}

impl Draw {
    /// Numbers that a block gives.
    fn of_block(self) -> usize {
        match self {
            Draw::Uniform(DType::F32) | Draw::Normal(DType::F32) => 4,
            Draw::Uniform(_) | Draw::Normal(_) => 2,
            Draw::Integers => 1,
        }
    }
}

impl Lowering<'_> {
    /// The keys of numbered streams below keys.
    pub(super) fn folded_in(&mut self, node: &Node, shape: &Extents) -> Lowered<Vec<Reg>> {
        let axes = &shape[..shape.len() - 1];
        self.drawn_here(count(axes))?;
        let (keys, numbers) = (self.value(node.ins[0])?, self.value(node.ins[1])?);
        let key_axes = &keys.shape()[..keys.shape().len() - 1];
        let places = broadcast_positions(key_axes, axes).into_iter().zip(broadcast_positions(numbers.shape(), axes));
        let (keys, numbers) = (self.regs(node.ins[0])?, self.regs(node.ins[1])?);
        let mut out = vec![];
        for (key, number) in places {
            let other = self.word(FOLD);
            let first = self.builder.bin(Bin::Xor, keys[2 * key], other);
            let number = self.builder.convert(numbers[number], DType::U64);
            let [a, b, c, d] = self.block([first, keys[2 * key + 1]], number);
            out.extend([self.joined_words(a, b), self.joined_words(c, d)]);
        }
        Ok(out)
    }

    /// The numbers of a draw.
    pub(super) fn drawn(&mut self, draw: Draw, node: &Node, shape: &Extents) -> Lowered<Vec<Reg>> {
        let keys = self.regs(node.ins[0])?;
        let each = count(shape) / (keys.len() / 2).max(1);
        self.drawn_here(keys.len() / 2 * each.div_ceil(draw.of_block()))?;
        let range = if let Draw::Integers = draw { self.range(node)? } else { (0, 0) };
        let mut out = vec![];
        for key in keys.as_chunks::<2>().0 {
            for first in (0..each).step_by(draw.of_block()) {
                let number = self.word((first / draw.of_block()) as u64);
                let words = self.block(*key, number);
                for k in 0..draw.of_block().min(each - first) {
                    out.push(match draw {
                        Draw::Uniform(dtype) => self.unit(dtype, words, k)?,
                        Draw::Normal(dtype) => self.normal(dtype, words, k)?,
                        Draw::Integers => self.bounded(range, words)?,
                    });
                }
            }
        }
        Ok(out)
    }

    /// # Errors
    /// Where so many blocks are better computed by a call.
    fn drawn_here(&self, blocks: usize) -> Lowered<()> {
        if !self.layout().by_element() || blocks > BLOCKS {
            return refuse("a draw of many numbers is one call for a whole array");
        }
        Ok(())
    }

    /// The least number of a range and how many it has, where they are known and few enough for products of 64 bits.
    fn range(&mut self, node: &Node) -> Lowered<(i64, u64)> {
        let bounds = [node.ins[1], node.ins[2]].map(|v| self.value(v).ok().and_then(|v| v.known().and_then(|a| a.item_i64())));
        let [Some(low), Some(high)] = bounds else { return refuse("a draw from a range that depends on values") };
        match u64::try_from(i128::from(high) - i128::from(low)) {
            Ok(range @ 1..=0xffff_ffff) => Ok((low, range)),
            _ => refuse("a draw from a wide range"),
        }
    }

    fn word(&mut self, bits: u64) -> Reg {
        self.builder.raw(DType::U64, bits)
    }
    fn low(&mut self, x: Reg) -> Reg {
        let mask = self.word(u64::from(u32::MAX));
        self.builder.bin(Bin::And, x, mask)
    }
    fn high(&mut self, x: Reg) -> Reg {
        let bits = self.word(32);
        self.builder.bin(Bin::Shr, x, bits)
    }
    /// Two words of 32 bits as one of 64.
    fn joined_words(&mut self, low: Reg, high: Reg) -> Reg {
        let bits = self.word(32);
        let high = self.builder.bin(Bin::Shl, high, bits);
        self.builder.bin(Bin::Or, low, high)
    }

    /// A block of Philox: its words, each of 32 bits in a u64.
    fn block(&mut self, key: [Reg; 2], number: Reg) -> [Reg; WORDS] {
        let mut counter = [self.low(number), self.high(number), self.low(key[1]), self.high(key[1])];
        let mut key = [self.low(key[0]), self.high(key[0])];
        for round in 0..ROUNDS {
            if round > 0 {
                key = [0, 1].map(|k| {
                    let weyl = self.word(u64::from(WEYL[k]));
                    let sum = self.builder.bin(Bin::Add, key[k], weyl);
                    self.low(sum)
                });
            }
            let [p, q] = [0, 1].map(|k| {
                let multiplier = self.word(u64::from(MULTIPLIERS[k]));
                self.builder.bin(Bin::Mul, counter[2 * k], multiplier)
            });
            let mut mixed = |product: Reg, word: Reg, key: Reg| {
                let (high, other) = (self.high(product), self.builder.bin(Bin::Xor, word, key));
                self.builder.bin(Bin::Xor, high, other)
            };
            let (first, third) = (mixed(q, counter[1], key[0]), mixed(p, counter[3], key[1]));
            counter = [first, self.low(q), third, self.low(p)];
        }
        counter
    }

    /// A number in `[0, 1)` with as many random bits as a float of this dtype has.
    fn unit(&mut self, dtype: DType, words: [Reg; WORDS], k: usize) -> Lowered<Reg> {
        if dtype == DType::F32 {
            return self.fraction(words[k], 8, 24, DType::F32);
        }
        let bits = self.joined_words(words[2 * k], words[2 * k + 1]);
        self.fraction(bits, 11, 53, DType::F64)
    }

    /// `⌊x / 2^shift⌋ / 2^bits`
    fn fraction(&mut self, x: Reg, shift: u64, bits: i32, dtype: DType) -> Lowered<Reg> {
        let shift = self.word(shift);
        let x = self.builder.bin(Bin::Shr, x, shift);
        let (x, scale) = (self.builder.convert(x, DType::I64), self.number(dtype, 2f64.powi(-bits)));
        let x = self.builder.convert(x, dtype);
        Ok(self.builder.bin(Bin::Mul, x, scale))
    }

    /// A number of Box and Muller's pair.
    fn normal(&mut self, dtype: DType, words: [Reg; WORDS], k: usize) -> Lowered<Reg> {
        let [u, v] = match dtype {
            DType::F32 => [self.fraction(words[k / 2 * 2], 0, 32, DType::F64)?, self.fraction(words[k / 2 * 2 + 1], 0, 32, DType::F64)?],
            _ => [self.unit(DType::F64, words, 0)?, self.unit(DType::F64, words, 1)?],
        };
        let one = self.number(DType::F64, 1.0);
        let u = self.builder.bin(Bin::Sub, one, u);
        let x = self.builder.call(if k.is_multiple_of(2) { HostFn::NormalCos } else { HostFn::NormalSin }, &[u, v]);
        Ok(self.builder.convert(x, dtype))
    }

    /// A number of a range: the upper half of a product of 128 bits. Where it would be rejected, which is so once in about 2³² draws or less,
    /// the evaluator draws.
    fn bounded(&mut self, (least, range): (i64, u64), words: [Reg; WORDS]) -> Lowered<Reg> {
        let factor = self.word(range);
        let (low, high) = (self.builder.bin(Bin::Mul, words[0], factor), self.builder.bin(Bin::Mul, words[1], factor));
        let carried = self.high(low);
        let sum = self.builder.bin(Bin::Add, high, carried);
        let surplus = range.wrapping_neg() % range;
        if surplus > 0 {
            let (low, sum, surplus) = (self.low(low), self.low(sum), self.word(surplus));
            let rest = self.joined_words(low, sum);
            let enough = self.builder.cmp(Cmp::Le, surplus, rest);
            self.require(enough)?;
        }
        let (upper, least) = (self.high(sum), self.builder.integer(DType::I64, least));
        let upper = self.builder.convert(upper, DType::I64);
        Ok(self.builder.bin(Bin::Add, upper, least))
    }
}
