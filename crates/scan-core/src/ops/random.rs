//! Draws keyed by Philox. Element i of a draw is a function of key and i alone. Of keys that are stacked, each has a draw of its own: their
//! axes come first in the result.

use super::args::{addressable, expect_count, expect_int_scalar, extents, integer, one};
use super::broadcast::broadcast;
use crate::bail;
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::philox::{self, Key};
use crate::types::shape::{Extents, broadcast_dims, broadcast_shapes, count};
use crate::types::{Array, DType, Dim, Dims, Element, Type, memory};

/// The axes that keys are stacked along: none for one key.
///
/// # Errors
/// `E0702` where it is no key.
fn stacked(op: &str, key: &Arg) -> Result<Dims> {
    match key.ty.dims.split_last() {
        Some((words, dims)) if key.ty.dtype == DType::U64 && !words.conflicts(&Dim::known(2)) => Ok(dims.iter().cloned().collect()),
        _ => Err(no_key(op, &key.ty)),
    }
}

fn no_key(op: &str, given: &Type) -> Box<Diagnostic> {
    let error = Diagnostic::new(Kind::Type, "E0702", format!("`{op}` needs a key, a uint64 vector of 2, got {given}"));
    error.help("rs.random.key(seed) makes a key of an integer")
}

/// The keys, and the axes that they are stacked along.
fn keys<'a>(op: &str, x: &'a Array) -> Result<(&'a [Key], &'a [usize])> {
    match (x.as_slice::<u64>().as_chunks::<2>(), x.shape().split_last()) {
        ((keys, []), Some((2, axes))) => Ok((keys, axes)),
        _ => Err(no_key(op, &x.ty())),
    }
}

/// The dims that integer scalars ask for, for each of the keys.
fn wanted(op: &str, mut keys: Dims, ins: &[Arg]) -> Result<Dims> {
    ins.iter().try_for_each(|a| expect_int_scalar(op, "an extent", a))?;
    keys.extend(ins.iter().map(Arg::as_dim));
    Ok(keys)
}

/// The shape of the draws of all keys, and the elements of each.
fn sizes(op: &str, axes: &[usize], ins: &[Array]) -> Result<(Extents, usize)> {
    let own = extents(op, ins)?;
    let whole: Extents = axes.iter().chain(&own).copied().collect();
    addressable(op, &whole)?;
    Ok((whole, count(&own)))
}

/// The implementation of an op through which no gradient flows.
macro_rules! no_gradient {
    () => {
        fn vjp(&self, _: &mut Graph, site: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
            Ok(vec![None; site.ins.len()])
        }
        fn connected(&self, _: usize) -> bool {
            false
        }
        fn can_fail(&self) -> bool {
            true
        }
        fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
            // Keys may be stacked, but parameters of draws are scalars.
            if ins[1..].iter().any(|x| x.varies()) { b.row_by_row(self.clone(), ins) } else { b.as_is(self.clone(), ins) }
        }
    };
}

impl OpDef for FoldIn {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("fold_in", 2, false, ins)?;
        let (keys, n) = (Type { dtype: DType::U64, dims: stacked("fold_in", &ins[0])? }, &ins[1].ty);
        if !n.dtype.is_int() {
            expect_int_scalar("fold_in", "the stream", &ins[1])?;
        }
        let mut dims = broadcast_dims(&[&keys, n])?;
        dims.push(Dim::known(2));
        Ok(one(Type { dtype: DType::U64, dims }))
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let axes = keys("fold_in", &ins[0])?.1;
        let mut shape = broadcast_shapes(&[axes, ins[1].shape()])?;
        let n = broadcast(&ins[1].cast(DType::U64), &shape)?;
        shape.push(2);
        let x = broadcast(&ins[0], &shape)?;
        let mut out: Vec<Key> = memory::room(n.len());
        let (keys, n) = (keys("fold_in", &x)?.0, n.as_slice::<u64>());
        cx.in_blocks(n.len(), BLOCK, |block| philox::fold_in_each(&keys[block.clone()], &n[block], &mut out))?;
        Ok(one(Array::new(&shape, out.into_flattened())))
    }
    fn vjp(&self, _: &mut Graph, _: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![None; 2])
    }
    fn connected(&self, _: usize) -> bool {
        false
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn fallible(&self, g: &Graph, ins: &[Value]) -> bool {
        let (key, n) = (g.ty(ins[0]), g.ty(ins[1]));
        key.dims.last().and_then(Dim::value) != Some(2) || !(key.rank() == 1 || n.rank() == 0)
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        let rank = (b.rank(ins[0]) - 1).max(b.rank(ins[1]));
        let (keys, n) = (b.aligned(ins[0], rank + 1), b.aligned(ins[1], rank));
        Ok(one(Batched::Rows(b.apply(self.clone(), &[keys, n])?)))
    }
}

/// Key and extents of a draw `op(key, d0, …)`.
fn draw_type(op: &str, dtype: DType, ins: &[Arg]) -> Result<Outs<Type>> {
    expect_count(op, 1, true, ins)?;
    let keys = stacked(op, &ins[0])?;
    if !dtype.is_float() {
        bail!(Type, "E0222", "`{op}` draws float32 or float64, not {dtype}");
    }
    Ok(one(Type { dtype, dims: wanted(op, keys, &ins[1..])? }))
}

/// Fills elements of a draw, of which each is a function of its number: of one key from such a number on, or of each of several from 0 on.
type Fill<T> = fn(&[Key], u64, &mut [T]);

/// The elements of draws of n each.
fn filled<T: Element>(cx: &mut EvalCx, keys: &[Key], n: usize, fill: Fill<T>) -> Result<Vec<T>> {
    let mut out: Vec<T> = memory::zeros(keys.len() * n);
    let together = (BLOCK / n.max(1)).max(1);
    for (keys, out) in keys.chunks(together).zip(out.chunks_mut((together * n).max(1))) {
        // A block of one key's draw, or whole draws of several keys.
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            fill(keys, (block * BLOCK) as u64, out);
            cx.worked(out.len() * COST)?;
        }
    }
    Ok(out)
}

/// The same, element by element.
fn numbered<T: Element>(cx: &mut EvalCx, keys: &[Key], n: usize, element: impl Fn(Key, u64) -> T) -> Result<Vec<T>> {
    let mut out = memory::room(keys.len() * n);
    for key in keys {
        cx.in_blocks(n, BLOCK, |block| out.extend(block.map(|i| element(*key, i as u64))))?;
        cx.worked(n * COST)?;
    }
    Ok(out)
}

/// Elements that are drawn between two looks at the clock.
const BLOCK: usize = 1 << 16;
/// Work of an element.
const COST: usize = 16;

/// A draw from its elements.
fn draw(cx: &mut EvalCx, op: &str, dtype: DType, ins: &[Array], narrow: Fill<f32>, wide: Fill<f64>) -> Result<Outs<Array>> {
    let (keys, axes) = keys(op, &ins[0])?;
    let (shape, n) = sizes(op, axes, &ins[1..])?;
    Ok(one(match dtype {
        DType::F32 => Array::new(&shape, filled(cx, keys, n, narrow)?),
        _ => Array::new(&shape, filled(cx, keys, n, wide)?),
    }))
}

impl OpDef for RandomUniform {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        draw_type("random_uniform", self.dtype, ins)
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        draw(cx, "random_uniform", self.dtype, ins, philox::uniform_f32, philox::uniform_f64)
    }
    no_gradient!();
}

impl OpDef for RandomNormal {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        draw_type("random_normal", self.dtype, ins)
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        draw(cx, "random_normal", self.dtype, ins, philox::normal_f32, philox::normal_f64)
    }
    no_gradient!();
}

impl OpDef for RandomIntegers {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let op = "random_integers";
        expect_count(op, 3, true, ins)?;
        let keys = stacked(op, &ins[0])?;
        ins[1..3].iter().try_for_each(|a| expect_int_scalar(op, "a bound", a))?;
        Ok(one(Type { dtype: DType::I64, dims: wanted(op, keys, &ins[3..])? }))
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let ((keys, axes), low, high) = (keys("random_integers", &ins[0])?, integer(&ins[1]), integer(&ins[2]));
        if low >= high && !keys.is_empty() {
            bail!(Value, "E0701", "random integers need low < high, got low = {low} and high = {high}");
        }
        let (shape, n) = sizes("random_integers", axes, &ins[3..])?;
        let range = high.wrapping_sub(low) as u64;
        let value = |key: Key, i: u64| low.wrapping_add(philox::bounded(key, i, range) as i64);
        Ok(one(Array::new(&shape, numbered(cx, keys, n, value)?)))
    }
    no_gradient!();
}

/// Fisher and Yates's shuffle, from the end: element i is exchanged with a place in `0..=i` drawn as number i.
impl OpDef for RandomPermutation {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("random_permutation", 2, false, ins)?;
        let keys = stacked("random_permutation", &ins[0])?;
        Ok(one(Type { dtype: DType::I64, dims: wanted("random_permutation", keys, &ins[1..])? }))
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let (keys, axes) = keys("random_permutation", &ins[0])?;
        let (shape, n) = sizes("random_permutation", axes, &ins[1..])?;
        let mut out: Vec<i64> = memory::room(keys.len() * n);
        keys.iter().for_each(|_| out.extend(0..n as i64));
        for (key, out) in keys.iter().zip(out.chunks_mut(n.max(1))) {
            for i in (1..n).rev() {
                cx.worked(8)?;
                out.swap(i, philox::bounded(*key, i as u64, i as u64 + 1) as usize);
            }
        }
        Ok(one(Array::new(&shape, out)))
    }
    no_gradient!();
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    fn key() -> Array {
        philox::key_array(42)
    }
    fn int(n: i64) -> Array {
        Array::scalar(n)
    }
    /// Mean and variance.
    fn moments(x: &Array) -> (f64, f64) {
        let x = x.to_f64_vec();
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        (mean, x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64)
    }

    #[test]
    fn draws_have_their_moments() {
        for dtype in [DType::F32, DType::F64] {
            let u = apply(RandomUniform { dtype }, &[key(), int(200), int(100)]);
            let (mean, variance) = moments(&u);
            assert!((mean - 0.5).abs() < 0.01 && (variance - 1.0 / 12.0).abs() < 0.003, "{mean} {variance}");
            assert!(u.to_f64_vec().iter().all(|x| (0.0..1.0).contains(x)));
            let z = apply(RandomNormal { dtype }, &[key(), int(20_000)]);
            let (mean, variance) = moments(&z);
            assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.04, "{mean} {variance}");
            let kurtosis = z.to_f64_vec().iter().map(|x| x.powi(4)).sum::<f64>() / 20_000.0;
            assert!((kurtosis - 3.0).abs() < 0.3, "{kurtosis}");
        }
    }

    /// The numbers are part of what programs rely on; these must never change.
    #[test]
    fn draws_are_fixed_for_ever() {
        let u = apply(RandomUniform { dtype: DType::F64 }, &[Array::vector(&[0u64, 0]), int(2)]);
        let first = (0xe169_c58d_6627_e8d5u64 >> 11) as f64 / (1u64 << 53) as f64;
        let second = (0x9b00_dbd8_bc57_ac4cu64 >> 11) as f64 / (1u64 << 53) as f64;
        assert_eq!(u, Array::vector(&[first, second]));
    }

    #[test]
    fn longer_draws_begin_like_shorter_ones() {
        for dtype in [DType::F32, DType::F64] {
            for op in [Op::from(RandomUniform { dtype }), Op::from(RandomNormal { dtype })] {
                let (short, long) = (apply(op.clone(), &[key(), int(5)]), apply(op, &[key(), int(3), int(3)]));
                assert_eq!(short.bits(), long.bits()[..5]);
            }
        }
        assert_eq!(apply(RandomUniform { dtype: DType::F64 }, &[key()]).shape(), [0usize; 0]);
        assert_eq!(apply(RandomNormal { dtype: DType::F32 }, &[key(), int(0), int(3)]).shape(), [0, 3]);
    }

    #[test]
    fn integers_fill_their_range() {
        let x = apply(RandomIntegers {}, &[key(), int(-2), Array::scalar(3u8), int(5000)]).to_i64_vec();
        let counts: Vec<usize> = (-2..3).map(|v| x.iter().filter(|&&n| n == v).count()).collect();
        assert!(counts.iter().sum::<usize>() == 5000 && counts.iter().all(|n| (900..1100).contains(n)), "{counts:?}");
        let wide = apply(RandomIntegers {}, &[key(), int(i64::MIN), int(i64::MAX), int(100)]).to_i64_vec();
        assert!(wide.iter().any(|&n| n < i64::MIN / 2) && wide.iter().any(|&n| n > i64::MAX / 2));
    }

    #[test]
    fn permutations_are_even() {
        let mut counts = std::collections::BTreeMap::new();
        for n in 0..6000u64 {
            let key = apply(FoldIn {}, &[key(), Array::scalar(n)]);
            *counts.entry(apply(RandomPermutation {}, &[key, int(3)]).to_i64_vec()).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|n| (890..1110).contains(n)), "{counts:?}");
        assert_eq!(apply(RandomPermutation {}, &[key(), int(0)]).shape(), [0]);
    }

    #[test]
    fn keys_of_streams_differ() {
        let [a, b] = [3u64, 4].map(|n| apply(FoldIn {}, &[key(), Array::scalar(n)]));
        assert!(a != b && a.shape() == [2] && a == apply(FoldIn {}, &[key(), int(3)]));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let e = run_error(RandomIntegers {}, &[key(), int(3), int(3), int(0)]);
        assert_eq!((e.code, e.title.as_str()), ("E0701", "random integers need low < high, got low = 3 and high = 3"));
        let uniform = RandomUniform { dtype: DType::F64 };
        let e = run_error(uniform.clone(), &[Array::vector(&[1i64, 2]), int(1)]);
        assert_eq!((e.code, e.title.as_str()), ("E0702", "`random_uniform` needs a key, a uint64 vector of 2, got int64[?]"));
        assert_eq!(run_error(uniform.clone(), &[Array::vector(&[1u64; 3]), int(1)]).code, "E0702");
        let e = run_error(uniform, &[key(), int(-2)]);
        assert_eq!((e.code, e.title.as_str()), ("E0222", "an extent of `random_uniform` is -2; extents cannot be negative"));
        assert_eq!(run_error(RandomNormal { dtype: DType::I64 }, &[key()]).code, "E0222");
        assert_eq!(run_error(RandomPermutation {}, &[key(), int(-1)]).code, "E0222");
    }
}
