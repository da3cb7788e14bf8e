//! The discrete Fourier transform, of pairs of real and imaginary parts, in f64 whatever the dtype: Stockham's arrangement for any factors
//! (Van Loan, "Computational frameworks for the fast Fourier transform", 1992), and Bluestein's convolution where a factor is large
//! ("A linear filtering approach to the computation of discrete Fourier transform", 1970).

use super::support::{exactly, is_float, none, one};
use crate::bail;
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::{Host, Lanes as _};
use crate::types::{Array, DType, Type, memory};

/// Real and imaginary part.
type Pair = [f64; 2];

/// Factors above this are taken by a convolution: a factor p costs p operations a number.
const LARGE: usize = 61;

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
        let mut data = memory::copied(x.cast(DType::F64).as_slice::<f64>());
        let turned = usize::from(self.inverse);
        let mut transform = if n == 0 { None } else { Some(Transform::new(n)) };
        for lane in data.chunks_exact_mut((2 * n).max(1)) {
            // The inverse transform is that of real and imaginary parts exchanged.
            let mut values: Vec<Pair> = memory::collect(lane.chunks_exact(2).map(|p| [p[turned], p[1 - turned]]));
            if let Some(transform) = &mut transform {
                transform.run(cx, &mut values)?;
            }
            for (p, v) in lane.chunks_exact_mut(2).zip(&values) {
                (p[turned], p[1 - turned]) = (v[0], v[1]);
            }
        }
        Ok(one(Array::new(x.shape(), data).cast(x.dtype())))
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

fn times(a: Pair, b: Pair) -> Pair {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

fn plus(a: Pair, b: Pair) -> Pair {
    [a[0] + b[0], a[1] + b[1]]
}

fn minus(a: Pair, b: Pair) -> Pair {
    [a[0] - b[0], a[1] - b[1]]
}

/// `exp(−2πi·k/n)`, from an angle of at most an eighth of a turn.
fn root(k: usize, n: usize) -> Pair {
    let quarters = (8 * (k % n) + n) / (2 * n);
    let rest = (4 * (k % n)) as f64 - (quarters * n) as f64;
    let angle = std::f64::consts::FRAC_PI_2 * (rest / n as f64);
    let (cosine, sine) = (Host::<f64>::CX.cos(angle), Host::<f64>::CX.sin(angle));
    match quarters % 4 {
        0 => [cosine, -sine],
        1 => [-sine, -cosine],
        2 => [-cosine, sine],
        _ => [sine, cosine],
    }
}

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
    Stages { factors: Vec<usize>, roots: Vec<Pair>, other: Vec<Pair> },
    Convolution { chirp: Vec<Pair>, spectrum: Vec<Pair>, longer: Box<Transform>, padded: Vec<Pair> },
}

impl Transform {
    fn new(n: usize) -> Transform {
        let factors = factors(n);
        if factors.iter().all(|&p| p <= LARGE) {
            let roots = memory::collect((0..n).map(|k| root(k, n)));
            return Transform::Stages { factors, roots, other: memory::filled([0.0; 2], n) };
        }
        let m = (2 * n - 1).next_power_of_two();
        // exp(−πi·k²/n), the square modulo 2n.
        let chirp: Vec<Pair> = memory::collect((0..n).map(|k| root((k as u128 * k as u128 % (2 * n) as u128) as usize, 2 * n)));
        let mut spectrum: Vec<Pair> = memory::filled([0.0; 2], m);
        for (k, c) in chirp.iter().enumerate() {
            spectrum[k] = [c[0], -c[1]];
            spectrum[(m - k) % m] = [c[0], -c[1]];
        }
        let mut longer = Transform::new(m);
        longer.stages(&mut spectrum);
        Transform::Convolution { chirp, spectrum, longer: Box::new(longer), padded: memory::filled([0.0; 2], m) }
    }

    /// Transforms numbers where they are.
    fn run(&mut self, cx: &mut EvalCx, x: &mut Vec<Pair>) -> Result<()> {
        match self {
            Transform::Stages { factors, .. } => {
                cx.worked(x.len() * factors.iter().sum::<usize>())?;
                self.stages(x);
            }
            Transform::Convolution { chirp, spectrum, longer, padded } => {
                padded.fill([0.0; 2]);
                padded.iter_mut().zip(x.iter().zip(chirp.iter())).for_each(|(p, (v, c))| *p = times(*v, *c));
                longer.run(cx, padded)?;
                // The inverse by the forward transform: parts exchanged before and after.
                padded.iter_mut().zip(spectrum.iter()).for_each(|(p, s)| {
                    *p = {
                        let v = times(*p, *s);
                        [v[1], v[0]]
                    }
                });
                longer.run(cx, padded)?;
                let scale = 1.0 / padded.len() as f64;
                x.iter_mut().zip(padded.iter().zip(chirp.iter())).for_each(|(v, (p, c))| *v = times([p[1] * scale, p[0] * scale], *c));
            }
        }
        Ok(())
    }

    fn stages(&mut self, x: &mut Vec<Pair>) {
        let Transform::Stages { factors, roots, other } = self else { unreachable!("a power of two has stages") };
        let mut stride = 1;
        for &p in factors.iter() {
            stage(x, other, roots, p, stride);
            std::mem::swap(x, other);
            stride *= p;
        }
    }
}

/// One factor: `y[q + s(pk + j)] = (Σₗ x[q + s(k + ml)]·ωₚ^jl)·ω^kj`, where s numbers stand side by side and `m = n/(s·p)`.
fn stage(x: &[Pair], y: &mut [Pair], roots: &[Pair], p: usize, s: usize) {
    let n = x.len();
    let m = n / (s * p);
    for k in 0..m {
        let out = &mut y[s * p * k..][..s * p];
        let part = |l: usize| &x[s * (k + m * l)..][..s];
        let turn = |j: usize| roots[(s * k * j) % n];
        match p {
            2 => two(out, [part(0), part(1)], turn(1)),
            4 => four(out, [part(0), part(1), part(2), part(3)], [turn(1), turn(2), turn(3)]),
            _ => (0..p).for_each(|j| {
                for q in 0..s {
                    let sum = (1..p).fold(part(0)[q], |sum, l| plus(sum, times(part(l)[q], roots[n / p * (j * l % p)])));
                    out[s * j + q] = times(sum, turn(j));
                }
            }),
        }
    }
}

fn two(out: &mut [Pair], [a, b]: [&[Pair]; 2], turn: Pair) {
    let (first, second) = out.split_at_mut(a.len());
    for (((x, y), a), b) in first.iter_mut().zip(second).zip(a).zip(b) {
        (*x, *y) = (plus(*a, *b), times(minus(*a, *b), turn));
    }
}

fn four(out: &mut [Pair], [a, b, c, d]: [&[Pair]; 4], turns: [Pair; 3]) {
    let s = a.len();
    for q in 0..s {
        let (even, odd) = (plus(a[q], c[q]), plus(b[q], d[q]));
        let (left, right) = (minus(a[q], c[q]), minus(b[q], d[q]));
        let right = [right[1], -right[0]];
        out[q] = plus(even, odd);
        out[s + q] = times(plus(left, right), turns[0]);
        out[2 * s + q] = times(minus(even, odd), turns[1]);
        out[3 * s + q] = times(minus(left, right), turns[2]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

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
        for n in (1..40).chain([61, 64, 67, 96, 100, 128, 134, 210, 243, 256]) {
            for inverse in [false, true] {
                let x = sample(&[n, 2], n);
                let got = apply(Dft { inverse }, &[x.clone()]);
                assert_close(&got.to_f64_vec(), &by_definition(&x.to_f64_vec(), inverse), 1e-12 * n as f64, &format!("{n} numbers"));
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
