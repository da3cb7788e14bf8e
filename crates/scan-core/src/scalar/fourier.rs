//! Butterflies of the discrete Fourier transform.

use super::product::vector::{Array, Vector};
#[cfg(target_arch = "x86_64")]
use super::slices::{Width, width};
use super::{Host, Lanes};
use crate::types::memory;

/// Real and imaginary part.
pub type Pair = [f64; 2];

/// Real and imaginary parts of many numbers.
#[derive(Default)]
pub struct Parts {
    /// Real parts.
    pub re: Vec<f64>,
    /// Imaginary parts.
    pub im: Vec<f64>,
}

impl Parts {
    /// So many, of any value.
    pub fn room(&mut self, n: usize) {
        for part in [&mut self.re, &mut self.im] {
            part.truncate(n);
            memory::resize(part, n, 0.0);
        }
    }
    /// So many zeros.
    pub fn zeros(n: usize) -> Parts {
        Parts { re: memory::filled(0.0, n), im: memory::filled(0.0, n) }
    }
}

/// `exp(−2πi·k/n)`, from an angle of at most an eighth of a turn.
pub fn root(k: usize, n: usize) -> Pair {
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

/// A product of complex numbers.
pub fn times(a: Pair, b: Pair) -> Pair {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// The n-th roots of unity.
pub struct Roots {
    all: Vec<Pair>,
    /// What the groups of a first stage of factor 4 are turned by: real and imaginary parts of `ω^k` of all k below n / 4, then of `ω^2k` and `ω^3k`.
    first: [Parts; 3],
}

impl Roots {
    /// Of n.
    pub fn new(n: usize) -> Roots {
        let all: Vec<Pair> = memory::collect((0..n).map(|k| root(k, n)));
        let part = |j: usize, which: usize| memory::collect((0..n / 4).map(|k| all[k * j][which]));
        let first = [1, 2, 3].map(|j| Parts { re: part(j, 0), im: part(j, 1) });
        Roots { all, first }
    }
}

/// One factor p of transforms of n numbers: `y[q + s(pk + j)] = (Σₗ x[q + s(k + ml)]·ωₚ^jl)·ω^kj`, where s numbers stand side by side, of `beside`
/// lanes, and `m = n·beside/(s·p)`.
///
/// # Panics
/// Where lengths are others.
pub fn stage(x: &Parts, y: &mut Parts, roots: &Roots, [p, s, beside]: [usize; 3]) {
    let (all, n) = (x.re.len(), roots.all.len());
    assert!([x.im.len(), y.re.len(), y.im.len()] == [all; 3] && n * beside == all && all.is_multiple_of(s * p), "extents of a stage");
    let mut stage = Stage { from: x, to: y, roots, extents: [s, all / (s * p)], beside };
    match p {
        2 => stage.run::<2>(p),
        4 => stage.run::<4>(p),
        _ => stage.run::<0>(p),
    }
}

/// A stage: where numbers come from and where they go.
struct Stage<'a> {
    from: &'a Parts,
    to: &'a mut Parts,
    roots: &'a Roots,
    /// Numbers side by side, and groups of them.
    extents: [usize; 2],
    /// Lanes.
    beside: usize,
}

impl Stage<'_> {
    /// All groups, of P numbers at each place, or where P is 0 of p.
    fn run<const P: usize>(&mut self, p: usize) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{__m256d, __m512d};
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
            fn widest<const P: usize>(stage: &mut Stage, p: usize) {
                stage.groups::<__m512d, P>(p);
            }
            #[target_feature(enable = "avx2,fma")]
            fn wide<const P: usize>(stage: &mut Stage, p: usize) {
                stage.groups::<__m256d, P>(p);
            }
            match width() {
                // SAFETY: `width` has asked the processor for these features.
                Width::Avx512 => return unsafe { widest::<P>(self, p) },
                // SAFETY: as above.
                Width::Avx2 => return unsafe { wide::<P>(self, p) },
                Width::Plain => {}
            }
        }
        self.groups::<Array<f64, false>, P>(p);
    }

    /// What the numbers of group k are turned by.
    fn turn(&self, k: usize, j: usize) -> Pair {
        self.roots.all[self.extents[0] / self.beside * k * j]
    }

    /// All groups; the first one is not turned. Closures here would be compiled without these registers.
    #[inline(always)]
    fn groups<V: Vector<T = f64>, const P: usize>(&mut self, p: usize) {
        let [s, m] = self.extents;
        if P == 0 {
            for k in 0..m {
                self.sums::<V>(k, p);
            }
            return;
        }
        self.group::<V, P, false>(0, [[1.0, 0.0]; 3]);
        if P == 4 && s == 1 {
            return self.side_by_side::<V>();
        }
        for k in 1..m {
            let last = [self.turn(k, 2 % P), self.turn(k, 3 % P)];
            self.group::<V, P, true>(k, [self.turn(k, 1), last[0], last[1]]);
        }
    }

    /// The numbers of one group.
    #[inline(always)]
    fn group<V: Vector<T = f64>, const P: usize, const TURNS: bool>(&mut self, k: usize, turns: [Pair; 3]) {
        let [s, m] = self.extents;
        let (re, im) = (&mut self.to.re[s * P * k..][..s * P], &mut self.to.im[s * P * k..][..s * P]);
        let to = (re.as_mut_ptr(), im.as_mut_ptr());
        let mut from = [(std::ptr::null(), std::ptr::null()); P];
        for (l, from) in from.iter_mut().enumerate() {
            *from = (self.from.re[s * (k + m * l)..][..s].as_ptr(), self.from.im[s * (k + m * l)..][..s].as_ptr());
        }
        let mut q = 0;
        while q < s {
            let n = V::LEN.min(s - q);
            // SAFETY: the slices have s elements for each number; whoever calls this is compiled for these registers.
            unsafe {
                let (a, b) = (Few::<V>::at(from[0], q, n), Few::at(from[1], q, n));
                if P == 2 {
                    a.plus(b).put(to, q, n);
                    a.minus(b).times::<TURNS>(Few::of(turns[0])).put(to, s + q, n);
                } else {
                    let found = Few::four([a, b, Few::at(from[2 % P], q, n), Few::at(from[3 % P], q, n)]);
                    found[0].put(to, q, n);
                    found[1].times::<TURNS>(Few::of(turns[0])).put(to, s + q, n);
                    found[2].times::<TURNS>(Few::of(turns[1])).put(to, 2 * s + q, n);
                    found[3].times::<TURNS>(Few::of(turns[2])).put(to, 3 * s + q, n);
                }
            }
            q += n;
        }
    }

    /// Groups of four numbers each, in which no numbers stand side by side, but for the first one: some groups at a time.
    #[inline(always)]
    fn side_by_side<V: Vector<T = f64>>(&mut self) {
        let m = self.extents[1];
        let [from_re, from_im] = [&self.from.re[..4 * m], &self.from.im[..4 * m]];
        let turns = &self.roots.first;
        assert!(turns.iter().all(|part| part.re.len() == m && part.im.len() == m), "roots of a first stage");
        let mut k = 1;
        while k < m {
            let n = V::LEN.min(m - k);
            let mut out = [[0.0; 8]; 8];
            // SAFETY: m elements lie there for each of four numbers and three roots; rows have room for all elements of a register; whoever calls
            // this is compiled for these registers.
            unsafe {
                let from = (from_re.as_ptr().add(k), from_im.as_ptr().add(k));
                let numbers = [Few::<V>::at(from, 0, n), Few::at(from, m, n), Few::at(from, 2 * m, n), Few::at(from, 3 * m, n)];
                let found = Few::four(numbers);
                Few::keep(found[0], &mut out, 0);
                Few::keep(found[1].times::<true>(Few::at((turns[0].re.as_ptr(), turns[0].im.as_ptr()), k, n)), &mut out, 1);
                Few::keep(found[2].times::<true>(Few::at((turns[1].re.as_ptr(), turns[1].im.as_ptr()), k, n)), &mut out, 2);
                Few::keep(found[3].times::<true>(Few::at((turns[2].re.as_ptr(), turns[2].im.as_ptr()), k, n)), &mut out, 3);
            }
            let (re, im) = (&mut self.to.re[4 * k..4 * (k + n)], &mut self.to.im[4 * k..4 * (k + n)]);
            for (i, (re, im)) in re.chunks_exact_mut(4).zip(im.chunks_exact_mut(4)).enumerate() {
                re.copy_from_slice(&[out[0][i], out[1][i], out[2][i], out[3][i]]);
                im.copy_from_slice(&[out[4][i], out[5][i], out[6][i], out[7][i]]);
            }
            k += n;
        }
    }

    /// The numbers of one group, each a sum over p.
    #[inline(always)]
    fn sums<V: Vector<T = f64>>(&mut self, k: usize, p: usize) {
        let ([s, m], n) = (self.extents, self.roots.all.len());
        let (re, im) = (&mut self.to.re[s * p * k..][..s * p], &mut self.to.im[s * p * k..][..s * p]);
        let to = (re.as_mut_ptr(), im.as_mut_ptr());
        let (from_re, from_im) = (&self.from.re[s * k..][..s * (m * (p - 1) + 1)], &self.from.im[s * k..][..s * (m * (p - 1) + 1)]);
        let from = (from_re.as_ptr(), from_im.as_ptr());
        for j in 0..p {
            let turn = self.roots.all[s / self.beside * k * j];
            let mut q = 0;
            while q < s {
                let few = V::LEN.min(s - q);
                // SAFETY: the slices have s elements for each number; whoever calls this is compiled for these registers.
                unsafe {
                    let mut sum = Few::<V>::at(from, q, few);
                    for l in 1..p {
                        let root = Few::of(self.roots.all[n / p * (j * l % p)]);
                        sum = sum.plus(Few::at(from, s * m * l + q, few).times::<true>(root));
                    }
                    sum.times::<true>(Few::of(turn)).put(to, s * j + q, few);
                }
                q += few;
            }
        }
    }
}

/// A register of real parts and one of imaginary ones.
#[derive(Clone, Copy)]
struct Few<V>(V, V);

// SAFETY of all that follows: the caller is compiled for these registers, and addresses are its duty.
impl<V: Vector<T = f64>> Few<V> {
    #[inline(always)]
    unsafe fn plus(self, b: Few<V>) -> Few<V> {
        unsafe { Few(self.0.add(b.0), self.1.add(b.1)) }
    }
    #[inline(always)]
    unsafe fn minus(self, b: Few<V>) -> Few<V> {
        unsafe { Few(self.0.sub(b.0), self.1.sub(b.1)) }
    }
    /// Products; nothing is done where there are no turns.
    #[inline(always)]
    unsafe fn times<const TURNS: bool>(self, turns: Few<V>) -> Few<V> {
        if !TURNS {
            return self;
        }
        unsafe { Few(self.0.mul(turns.0).sub(self.1.mul(turns.1)), self.0.mul(turns.1).add(self.1.mul(turns.0))) }
    }
    /// One number in all places.
    #[inline(always)]
    unsafe fn of([re, im]: Pair) -> Few<V> {
        unsafe { Few(V::splat(re), V::splat(im)) }
    }
    /// The n numbers from the q-th on.
    #[inline(always)]
    unsafe fn at((re, im): (*const f64, *const f64), q: usize, n: usize) -> Few<V> {
        unsafe { Few(load(re.add(q), n), load(im.add(q), n)) }
    }
    /// Writes n numbers from the q-th on.
    #[inline(always)]
    unsafe fn put(self, (re, im): (*mut f64, *mut f64), q: usize, n: usize) {
        unsafe {
            store(self.0, re.add(q), n);
            store(self.1, im.add(q), n);
        }
    }
    /// Writes a register of real parts into a row, and one of imaginary parts into the row four below.
    #[inline(always)]
    unsafe fn keep(self, rows: &mut [[f64; 8]; 8], row: usize) {
        const { assert!(V::LEN <= 8) };
        unsafe {
            self.0.store(rows[row].as_mut_ptr());
            self.1.store(rows[row + 4].as_mut_ptr());
        }
    }
    /// Transforms of four numbers.
    #[inline(always)]
    unsafe fn four([a, b, c, d]: [Few<V>; 4]) -> [Few<V>; 4] {
        unsafe {
            let (even, odd, left, right) = (a.plus(c), b.plus(d), a.minus(c), b.minus(d).turned());
            [even.plus(odd), left.plus(right), even.minus(odd), left.minus(right)]
        }
    }
    /// Times −i.
    #[inline(always)]
    unsafe fn turned(self) -> Few<V> {
        unsafe { Few(self.1, V::splat(-0.0).sub(self.0)) }
    }
}

#[inline(always)]
unsafe fn load<V: Vector<T = f64>>(at: *const f64, n: usize) -> V {
    unsafe { if n == V::LEN { V::load(at) } else { V::load_first(at, n) } }
}

#[inline(always)]
unsafe fn store<V: Vector<T = f64>>(x: V, at: *mut f64, n: usize) {
    unsafe { if n == V::LEN { x.store(at) } else { x.store_first(at, n) } }
}
