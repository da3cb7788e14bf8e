//! The discrete Fourier transform, of pairs of real and imaginary parts, in f64 whatever the dtype: Stockham's arrangement for any factors
//! (Van Loan, "Computational frameworks for the fast Fourier transform", 1992), and Bluestein's convolution where a factor is large
//! ("A linear filtering approach to the computation of discrete Fourier transform", 1970). Some lanes are transformed side by side.

use super::support::{exactly, is_float, none, one};
use crate::bail;
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::fourier::{Pair, Parts, Roots, root, stage, times};
use crate::types::{Array, DType, Type, memory};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Factors above this are taken by a convolution: a factor p costs p operations a number.
const LARGE: usize = 61;

/// So many lanes are transformed side by side, where there are more than two of at most so many numbers; but one by one from so many on where there
/// are two factors of 4: registers are full then, and a lane stays in the nearest cache.
const BESIDE: usize = 8;
/// Numbers of one lane that are put beside those of others at a time: of a line of the cache each is then used at once.
const BLOCK: usize = 4;
const SHORT: usize = 2048;
const ALONE: usize = 128;

/// Along the axis before the last one, which has extent 2.
impl OpDef for Dft {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("dft", ins)?;
        let pairs = x.ty.dims.last().is_some_and(|d| d.value().is_none_or(|n| n == 2));
        if !x.ty.dtype.is_float() || x.ty.rank() < 2 || !pairs {
            bail!(Type, "E0222", "`dft` takes pairs of floats along the last of two axes or more, got {}", x.ty);
        }
        Ok(one(x.ty.clone()))
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        let &[.., n, pair] = x.shape() else { bail!(Type, "E0222", "`dft` takes two axes or more, got {}", x.ty()) };
        if pair != 2 {
            bail!(Type, "E0222", "`dft` takes pairs along the last axis, got {}", x.ty());
        }
        let wide = x.cast(DType::F64);
        let mut out = memory::zeros(wide.len());
        transform(cx, self.inverse, n, wide.as_slice::<f64>(), &mut out)?;
        Ok(one(Array::new(x.shape(), out).cast(x.dtype())))
    }

    /// The matrix of the transform is symmetric in complex numbers; as a matrix of real ones its transpose is that of the inverse.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (Some(ct), true) = (cts[0], is_float(g, site.ins[0])) else { return Ok(none(1)) };
        Ok(vec![Some(g.emit(Dft { inverse: !self.inverse }, &[ct]))])
    }

    fn can_fail(&self) -> bool {
        true
    }

    fn fallible(&self, g: &Graph, ins: &[Value]) -> bool {
        g.ty(ins[0]).dims.last().and_then(|d| d.value()) != Some(2)
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

/// The transforms of lanes of n pairs each. The inverse one is that of real and imaginary parts exchanged.
///
/// # Errors
/// An interruption.
pub(super) fn transform(cx: &mut EvalCx, inverse: bool, n: usize, x: &[f64], out: &mut [f64]) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    let all = Transform::of(n);
    let mut scratch = SCRATCH.take();
    let alone = n.is_multiple_of(16) && n >= ALONE && matches!(*all, Transform::Stages { .. });
    let beside = if x.len() > 4 * n && n <= SHORT && !alone { BESIDE } else { 1 };
    let mut done = Ok(());
    for (x, out) in x.chunks(2 * n * beside).zip(out.chunks_mut(2 * n * beside)) {
        let [parts, other] = &mut scratch;
        parts.room(n * beside);
        other.room(n * beside);
        parts.take(x, [n, beside], inverse);
        done = all.run(cx, beside, parts, other);
        if done.is_err() {
            break;
        }
        parts.give(out, [n, beside], inverse);
    }
    if n <= SHORT {
        SCRATCH.set(scratch);
    }
    done
}

thread_local! {
    /// Memory of the last transform in this thread.
    static SCRATCH: Cell<[Parts; 2]> = Cell::default();
    /// The last transforms in this thread, since loops take the same again and again.
    static LAST: RefCell<Vec<(usize, Arc<Transform>)>> = const { RefCell::new(vec![]) };
}

/// So many transforms are remembered, of so many numbers at most.
const REMEMBERED: usize = 4;
const LONG: usize = 1 << 16;

/// The prime factors of a number, 4 instead of 2 · 2.
fn factors(mut n: usize) -> Vec<usize> {
    let mut found = vec![];
    let mut p = 4;
    while n > 1 {
        while n.is_multiple_of(p) {
            found.push(p);
            n /= p;
        }
        p = match p {
            4 => 2,
            2 => 3,
            _ if p * p > n => n,
            _ => p + 2,
        };
    }
    found
}

/// Transforms of n numbers.
enum Transform {
    Stages { factors: Vec<usize>, roots: Box<Roots> },
    Convolution { chirp: Vec<Pair>, spectrum: Vec<Pair>, longer: Box<Transform> },
}

impl Transform {
    fn of(n: usize) -> Arc<Transform> {
        let known = LAST.with_borrow(|last| last.iter().find(|(m, _)| *m == n).map(|(_, found)| found.clone()));
        known.unwrap_or_else(|| {
            let made = Arc::new(Transform::new(n));
            if n <= LONG {
                LAST.with_borrow_mut(|last| {
                    last.truncate(REMEMBERED - 1);
                    last.insert(0, (n, made.clone()));
                });
            }
            made
        })
    }

    fn new(n: usize) -> Transform {
        let factors = factors(n);
        if factors.iter().all(|&p| p <= LARGE) {
            return Transform::Stages { factors, roots: Box::new(Roots::new(n)) };
        }
        let m = (2 * n - 1).next_power_of_two();
        // exp(−πi·k²/n), the square modulo 2n.
        let chirp: Vec<Pair> = memory::collect((0..n).map(|k| root((k as u128 * k as u128 % (2 * n) as u128) as usize, 2 * n)));
        let [mut spectrum, mut other] = [0, 1].map(|_| Parts::zeros(m));
        for (k, c) in chirp.iter().enumerate() {
            for at in [k, (m - k) % m] {
                (spectrum.re[at], spectrum.im[at]) = (c[0], -c[1]);
            }
        }
        let longer = Transform::new(m);
        longer.stages(1, &mut spectrum, &mut other);
        let spectrum = memory::collect(spectrum.re.iter().zip(&spectrum.im).map(|(&re, &im)| [re, im]));
        Transform::Convolution { chirp, spectrum, longer: Box::new(longer) }
    }

    /// Transforms numbers where they are, of so many lanes side by side.
    fn run(&self, cx: &mut EvalCx, beside: usize, x: &mut Parts, other: &mut Parts) -> Result<()> {
        match self {
            Transform::Stages { factors, .. } => {
                cx.worked(x.re.len() * factors.iter().sum::<usize>())?;
                self.stages(beside, x, other);
            }
            Transform::Convolution { chirp, spectrum, longer } => {
                let mut padded = Parts::zeros(spectrum.len() * beside);
                other.room(padded.re.len());
                x.times(beside, chirp, &mut padded);
                longer.run(cx, beside, &mut padded, other)?;
                // The inverse by the forward transform: parts exchanged before and after.
                for (k, s) in spectrum.iter().enumerate() {
                    for at in beside * k..beside * (k + 1) {
                        let [re, im] = times([padded.re[at], padded.im[at]], *s);
                        (padded.re[at], padded.im[at]) = (im, re);
                    }
                }
                longer.run(cx, beside, &mut padded, other)?;
                let scale = 1.0 / spectrum.len() as f64;
                for at in 0..x.re.len() {
                    (x.re[at], x.im[at]) = (padded.im[at] * scale, padded.re[at] * scale);
                }
                let scaled = std::mem::take(x);
                x.room(scaled.re.len());
                scaled.times(beside, chirp, x);
            }
        }
        Ok(())
    }

    fn stages(&self, beside: usize, x: &mut Parts, other: &mut Parts) {
        let Transform::Stages { factors, roots } = self else { unreachable!("a power of two has stages") };
        let (mut apart, mut rest) = (beside, &factors[..]);
        while let [p, after @ ..] = rest {
            let twice = *p == 4 && after.first() == Some(&4);
            let p = if twice { 16 } else { *p };
            stage(x, other, roots, [p, apart, beside]);
            std::mem::swap(x, other);
            (apart, rest) = (apart * p, &after[usize::from(twice)..]);
        }
    }
}

impl Parts {
    /// Real and imaginary parts, exchanged where `turned`.
    fn pair(&mut self, turned: bool) -> [&mut [f64]; 2] {
        if turned { [&mut self.im, &mut self.re] } else { [&mut self.re, &mut self.im] }
    }
    /// The parts of lanes of n pairs, the numbers of all lanes side by side, with room for so many.
    fn take(&mut self, x: &[f64], [n, beside]: [usize; 2], turned: bool) {
        let [first, second] = self.pair(turned);
        if beside == 1 {
            let parts = first.iter_mut().zip(second);
            return parts.zip(x.chunks_exact(2)).for_each(|((first, second), pair)| (*first, *second) = (pair[0], pair[1]));
        }
        let (rows, firsts, seconds) = (x.as_chunks::<2>().0, first.as_chunks_mut::<BESIDE>().0, second.as_chunks_mut::<BESIDE>().0);
        let blocks = firsts.chunks_mut(BLOCK).zip(seconds.chunks_mut(BLOCK));
        for (block, (firsts, seconds)) in blocks.enumerate() {
            for (lane, row) in rows.chunks_exact(n).enumerate().take(BESIDE) {
                for ((first, second), pair) in firsts.iter_mut().zip(&mut *seconds).zip(&row[block * BLOCK..]) {
                    (first[lane], second[lane]) = (pair[0], pair[1]);
                }
            }
        }
    }
    /// The pairs of such parts.
    fn give(&mut self, out: &mut [f64], [n, beside]: [usize; 2], turned: bool) {
        let [first, second] = self.pair(turned);
        if beside == 1 {
            let parts = first.iter().zip(second);
            return parts.zip(out.chunks_exact_mut(2)).for_each(|((first, second), pair)| (pair[0], pair[1]) = (*first, *second));
        }
        let (rows, firsts, seconds) = (out.as_chunks_mut::<2>().0, first.as_chunks::<BESIDE>().0, second.as_chunks::<BESIDE>().0);
        for (block, (firsts, seconds)) in firsts.chunks(BLOCK).zip(seconds.chunks(BLOCK)).enumerate() {
            for (lane, row) in rows.chunks_exact_mut(n).enumerate().take(BESIDE) {
                for ((first, second), pair) in firsts.iter().zip(seconds).zip(&mut row[block * BLOCK..]) {
                    *pair = [first[lane], second[lane]];
                }
            }
        }
    }
    /// Products of numbers, each of so many lanes, with those that belong to all lanes.
    fn times(&self, beside: usize, by: &[Pair], out: &mut Parts) {
        for (at, by) in by.iter().flat_map(|by| std::iter::repeat_n(by, beside)).enumerate() {
            [out.re[at], out.im[at]] = times([self.re[at], self.im[at]], *by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    fn plus(a: Pair, b: Pair) -> Pair {
        [a[0] + b[0], a[1] + b[1]]
    }

    fn by_definition(x: &[f64], inverse: bool) -> Vec<f64> {
        let n = x.len() / 2;
        let turned = |k: usize| root(k, n);
        (0..n)
            .flat_map(|j| {
                (0..n).fold([0.0; 2], |sum, k| {
                    let w = turned(j * k % n);
                    plus(sum, times([x[2 * k], x[2 * k + 1]], if inverse { [w[0], -w[1]] } else { w }))
                })
            })
            .collect()
    }

    #[test]
    fn every_length_is_the_sum_of_its_definition() {
        for n in (1..40).chain([61, 64, 67, 96, 100, 128, 134, 144, 208, 210, 240, 243, 256, 512]) {
            for inverse in [false, true] {
                let x = sample(&[n, 2], n);
                let got = apply(Dft { inverse }, &[x.clone()]);
                assert_close(&got.to_f64_vec(), &by_definition(&x.to_f64_vec(), inverse), 1e-12 * n as f64, &format!("{n} numbers"));
            }
        }
    }

    /// Lanes side by side are transformed as one is, to the bit, and so are groups side by side: an infinity spoils what it is part of alone.
    #[test]
    fn lanes_beside_each_other_have_the_bits_of_one() {
        for n in [4, 8, 12, 16, 20, 60, 64, 67, 100, 128, 144, 208, 256, 1024] {
            let mut x = sample(&[11, n, 2], n).to_f64_vec();
            x[7 * 2 * n] = f64::INFINITY;
            let rows = Array::new(&[11, n, 2], x.clone());
            let all = apply(Dft { inverse: n % 8 == 0 }, &[rows]).to_f64_vec();
            for (row, all) in x.chunks(2 * n).zip(all.chunks(2 * n)) {
                let one = apply(Dft { inverse: n % 8 == 0 }, &[Array::new(&[n, 2], row.to_vec())]).to_f64_vec();
                let same = one.iter().zip(all).all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan());
                assert!(same, "{n} numbers");
            }
        }
    }

    #[test]
    fn roots_are_those_of_unity() {
        assert_eq!([root(0, 4), root(1, 4), root(2, 4), root(3, 4)], [[1.0, -0.0], [-0.0, -1.0], [-1.0, 0.0], [0.0, 1.0]]);
        for n in [3usize, 8, 12, 1000] {
            for k in 0..2 * n {
                let angle = -2.0 * std::f64::consts::PI * k as f64 / n as f64;
                assert_close(&root(k, n), &[angle.cos(), angle.sin()], 1e-14, "a root");
            }
        }
    }

    #[test]
    fn batches_empty_arrays_and_dtypes() {
        let x = sample(&[2, 3, 5, 2], 1);
        let rows = x.to_f64_vec();
        let got = apply(Dft { inverse: false }, &[x]).to_f64_vec();
        for (row, got) in rows.chunks(10).zip(got.chunks(10)) {
            assert_close(got, &by_definition(row, false), 1e-13, "a row");
        }
        for shape in [[0, 3, 2], [3, 0, 2]] {
            assert_eq!(apply(Dft { inverse: true }, &[Array::zeros(DType::F64, &shape)]), Array::zeros(DType::F64, &shape));
        }
        assert_eq!(apply(Dft { inverse: false }, &[sample(&[6, 2], 2).cast(DType::F32)]).dtype(), DType::F32);
        assert_eq!(build_error(Dft { inverse: false }, &[sample(&[4, 3], 0)]).code, "E0222");
        assert_eq!(run_error(Dft { inverse: false }, &[sample(&[4, 3], 0)]).code, "E0222");
        assert_eq!(build_error(Dft { inverse: false }, &[Array::zeros(DType::I64, &[4, 2])]).code, "E0222");
        assert_eq!(build_error(Dft { inverse: false }, &[sample(&[2], 0)]).code, "E0222");
    }

    #[test]
    fn gradients_match_differences() {
        for (n, inverse) in [(1, false), (4, true), (6, false), (67, true)] {
            check_vjp(|g, v| g.emit(Dft { inverse }, v), &[sample(&[n, 2], 3)]);
        }
        check_vjp2(|g, v| g.emit(Dft { inverse: false }, v), &[sample(&[2, 3, 2], 3)]);
    }
}
