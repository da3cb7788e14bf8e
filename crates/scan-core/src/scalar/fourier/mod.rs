//! Butterflies of the discrete Fourier transform.

mod few;

use self::few::{Few, Turned};
use super::product::vector::Array;
#[cfg(target_arch = "x86_64")]
use super::slices::{Width, width};
use super::{Host, Lanes};
use crate::types::memory;

/// Does something for 0, 1, 2 and 3, as constants.
macro_rules! each_of_four {
    ($i:ident => $body:expr) => {{
        each_of_four!($i => $body, 0 1 2 3)
    }};
    ($i:ident => $body:expr, $($n:literal)*) => {{
        $({ const $i: usize = $n; $body; })*
    }};
}

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
    /// Those of the stage of factor 4 after it, whose groups are numbered below n / 16: of `ω^4k`, `ω^8k` and `ω^12k`.
    second: [Parts; 3],
}

impl Roots {
    /// Of n.
    pub fn new(n: usize) -> Roots {
        let all: Vec<Pair> = memory::collect((0..n).map(|k| root(k, n)));
        let part = |j: usize, n: usize, which: usize| memory::collect((0..n).map(|k| all[k * j][which]));
        let of = |j: usize, n: usize| Parts { re: part(j, n, 0), im: part(j, n, 1) };
        let (first, second) = ([1, 2, 3].map(|j| of(j, n / 4)), [4, 8, 12].map(|j| of(j, n / 16)));
        Roots { all, first, second }
    }
}

/// One factor p of transforms of n numbers: `y[q + s(pk + j)] = (Σₗ x[q + s(k + ml)]·ωₚ^jl)·ω^kj`, where s numbers stand side by side, of `beside`
/// lanes, and `m = n·beside/(s·p)`. A factor of 16 is two stages of factor 4 at once, and makes the bits that these make: numbers are read and written
/// once for both.
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
        16 => stage.run::<16>(p),
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

    /// What number j of group k is turned by.
    fn turn(&self, k: usize, j: usize) -> Pair {
        self.roots.all[self.extents[0] / self.beside * k * j]
    }

    /// What the numbers of group k are turned by, those of both stages where they are two.
    #[inline(always)]
    fn turns<const P: usize>(&self, k: usize) -> Splat {
        let (m, mut turns) = (self.extents[1], [[1.0, 0.0]; TURNS]);
        for j in 1..P.min(4) {
            turns[j - 1] = self.turn(k, if P == 16 { 4 * j } else { j });
            for l in 0..if P == 16 { 4 } else { 0 } {
                turns[3 * (l + 1) + j - 1] = self.turn(k + m * l, j);
            }
        }
        Splat(turns)
    }

    /// All groups; the first one is not turned. Closures here would be compiled without these registers.
    #[inline(always)]
    fn groups<V: Turned, const P: usize>(&mut self, p: usize) {
        let [s, m] = self.extents;
        if P == 0 {
            for k in 0..m {
                self.sums::<V>(k, p);
            }
        } else if P >= 4 && s == 1 {
            let mut k = 0;
            while k < m {
                let of = if k == 0 { Group::FirstOfSome } else { Group::Other };
                match m - k >= V::LEN {
                    true => self.side_by_side::<V, P, true>(k, of),
                    false => self.side_by_side::<V, P, false>(k, of),
                }
                k += V::LEN;
            }
        } else {
            self.group::<V, P>(0, Group::First);
            for k in 1..m {
                self.group::<V, P>(k, Group::Other);
            }
        }
    }

    /// The numbers of group k.
    #[inline(always)]
    fn group<V: Turned, const P: usize>(&mut self, k: usize, of: Group) {
        let ([s, m], by) = (self.extents, self.turns::<P>(k));
        let (re, im) = (&mut self.to.re[s * P * k..][..s * P], &mut self.to.im[s * P * k..][..s * P]);
        let (from_re, from_im) = (&self.from.re[s * k..][..s * (m * (P - 1) + 1)], &self.from.im[s * k..][..s * (m * (P - 1) + 1)]);
        let mut q = 0;
        while q < s {
            let n = V::LEN.min(s - q);
            // SAFETY: the slices have s elements for each number, s · m elements apart; whoever calls this is compiled for these registers.
            unsafe {
                let from = Numbers { from: (from_re.as_ptr().add(q), from_im.as_ptr().add(q)), apart: s * m, n };
                let to = (re.as_mut_ptr().add(q), im.as_mut_ptr().add(q));
                match n == V::LEN {
                    true => from.group::<V, P, true>(&by, of, (to, s)),
                    false => from.group::<V, P, false>(&by, of, (to, s)),
                }
            }
            q += n;
        }
    }

    /// Some groups from the k-th on, in which no numbers stand side by side.
    #[inline(always)]
    fn side_by_side<V: Turned, const P: usize, const FULL: bool>(&mut self, k: usize, of: Group) {
        let m = self.extents[1];
        let n = V::LEN.min(m - k);
        let (from_re, from_im) = (&self.from.re[..P * m], &self.from.im[..P * m]);
        let (re, im) = (&mut self.to.re[P * k..P * (k + n)], &mut self.to.im[P * k..P * (k + n)]);
        let Roots { first, second, .. } = self.roots;
        let (last, extent) = if P == 16 { (second, 4 * m) } else { (first, m) };
        let lie = |parts: &[Parts; 3], n: usize| parts.iter().all(|part| part.re.len() == n && part.im.len() == n);
        assert!(lie(first, extent) && lie(last, m), "roots of a first stage");
        let by = Table { first, last, m, k, n };
        // SAFETY: m elements lie there for each of P numbers and of their roots, and as many roots of the stage before where there are two, for each of
        // four; the slices to write have n rows of P; whoever calls this is compiled for these registers.
        unsafe {
            let from = Numbers { from: (from_re.as_ptr().add(k), from_im.as_ptr().add(k)), apart: m, n };
            let to = (re.as_mut_ptr(), im.as_mut_ptr());
            if P == 4 {
                return Few::put_rows(from.four::<V, _, FULL>(&by, of), to, [P, n]);
            }
            let rows = from.sixteen::<V, _, FULL>(&by, of);
            each_of_four!(I => Few::put_rows([rows[0][I], rows[1][I], rows[2][I], rows[3][I]], (to.0.add(4 * I), to.1.add(4 * I)), [P, n]));
        }
    }

    /// The numbers of one group, each a sum over p.
    #[inline(always)]
    fn sums<V: Turned>(&mut self, k: usize, p: usize) {
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
                    let mut sum = Few::<V>::some(from, q, few);
                    for l in 1..p {
                        let root = Few::of(self.roots.all[n / p * (j * l % p)]);
                        sum = sum.plus(Few::some(from, s * m * l + q, few).times(root, Group::Other));
                    }
                    sum.times(Few::of(turn), Group::Other).put_some(to, s * j + q, few);
                }
                q += few;
            }
        }
    }
}

/// What a group of sixteen numbers is turned by at most: three by the second stage of factor 4, and three for each of four by the first.
const TURNS: usize = 15;

/// Which groups are transformed: the first one is not turned.
#[derive(Clone, Copy, PartialEq)]
enum Group {
    First,
    /// The first one beside some others.
    FirstOfSome,
    Other,
}

/// What numbers of groups are turned by: first the three of the last stage, then where there are two those of the first, three for each of four.
trait Turns<V> {
    /// One of them.
    ///
    /// # Safety
    /// The processor has these registers.
    unsafe fn by<const FULL: bool>(&self, which: usize) -> Few<V>;
}

/// The same for all.
struct Splat([Pair; TURNS]);

impl<V: Turned> Turns<V> for Splat {
    #[inline(always)]
    unsafe fn by<const FULL: bool>(&self, which: usize) -> Few<V> {
        unsafe { Few::of(self.0[which]) }
    }
}

/// Those of n groups from the k-th of m on; as many lie there.
struct Table<'a> {
    first: &'a [Parts; 3],
    last: &'a [Parts; 3],
    m: usize,
    k: usize,
    n: usize,
}

impl<V: Turned> Turns<V> for Table<'_> {
    #[inline(always)]
    unsafe fn by<const FULL: bool>(&self, which: usize) -> Few<V> {
        let (part, at) = match which.checked_sub(3) {
            None => (&self.last[which], self.k),
            Some(which) => (&self.first[which % 3], self.k + self.m * (which / 3)),
        };
        unsafe { Few::at::<FULL>((part.re.as_ptr(), part.im.as_ptr()), at, self.n) }
    }
}

/// Where some numbers lie, n side by side for each.
struct Numbers {
    from: (*const f64, *const f64),
    /// So many elements from one number to the next.
    apart: usize,
    n: usize,
}

// SAFETY of all that follows: the caller is compiled for these registers, and addresses are its duty.
impl Numbers {
    /// Transforms 2, 4 or 16 numbers, and writes them so many elements apart.
    #[inline(always)]
    unsafe fn group<V: Turned, const P: usize, const FULL: bool>(&self, by: &Splat, of: Group, (to, apart): ((*mut f64, *mut f64), usize)) {
        unsafe {
            match P {
                2 => {
                    let (a, b) = (self.at::<V, FULL>(0), self.at::<V, FULL>(1));
                    a.plus(b).put::<FULL>(to, 0, self.n);
                    a.minus(b).times(by.by::<FULL>(0), of).put::<FULL>(to, apart, self.n);
                }
                4 => {
                    let found = self.four::<V, _, FULL>(by, of);
                    each_of_four!(J => found[J].put::<FULL>(to, apart * J, self.n));
                }
                _ => {
                    let found = self.sixteen::<V, _, FULL>(by, of);
                    each_of_four!(J => each_of_four!(I => found[J][I].put::<FULL>(to, apart * (J + 4 * I), self.n)));
                }
            }
        }
    }
    #[inline(always)]
    unsafe fn at<V: Turned, const FULL: bool>(&self, l: usize) -> Few<V> {
        unsafe { Few::at::<FULL>(self.from, self.apart * l, self.n) }
    }
    /// Transforms of four numbers.
    #[inline(always)]
    unsafe fn four<V: Turned, B: Turns<V>, const FULL: bool>(&self, by: &B, of: Group) -> [Few<V>; 4] {
        unsafe {
            Few::turned_by::<B, FULL>(
                Few::four([self.at::<V, FULL>(0), self.at::<V, FULL>(1), self.at::<V, FULL>(2), self.at::<V, FULL>(3)]),
                by,
                0,
                of,
            )
        }
    }
    /// Transforms of four of sixteen numbers, from the l-th on.
    #[inline(always)]
    unsafe fn quarter<V: Turned, B: Turns<V>, const FULL: bool>(&self, l: usize, by: &B, of: Group) -> [Few<V>; 4] {
        unsafe {
            let four = [self.at::<V, FULL>(l), self.at::<V, FULL>(l + 4), self.at::<V, FULL>(l + 8), self.at::<V, FULL>(l + 12)];
            Few::turned_by::<B, FULL>(Few::four(four), by, 3 * (l + 1), of)
        }
    }
    /// Transforms of sixteen numbers: number j + 4i is the i-th of row j.
    #[inline(always)]
    unsafe fn sixteen<V: Turned, B: Turns<V>, const FULL: bool>(&self, by: &B, of: Group) -> [[Few<V>; 4]; 4] {
        unsafe {
            // Of the first group, one of four is the first of its stage.
            let (a, b) = (self.quarter::<V, B, FULL>(0, by, of), self.quarter::<V, B, FULL>(1, by, Group::Other));
            let (c, d) = (self.quarter::<V, B, FULL>(2, by, Group::Other), self.quarter::<V, B, FULL>(3, by, Group::Other));
            [
                Few::turned_by::<B, FULL>(Few::four([a[0], b[0], c[0], d[0]]), by, 0, of),
                Few::turned_by::<B, FULL>(Few::four([a[1], b[1], c[1], d[1]]), by, 0, of),
                Few::turned_by::<B, FULL>(Few::four([a[2], b[2], c[2], d[2]]), by, 0, of),
                Few::turned_by::<B, FULL>(Few::four([a[3], b[3], c[3], d[3]]), by, 0, of),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of n numbers, some of them zeros of either sign.
    fn sample(n: usize) -> Parts {
        let of =
            |shift: usize| (0..n).map(|k| ((k + shift) * 7919 % 31) as f64 - 15.0).map(|x| if x == 3.0 { -0.0 } else { x / 7.0 }).collect();
        Parts { re: of(0), im: of(5) }
    }

    fn bits(parts: &Parts) -> Vec<[u64; 2]> {
        parts.re.iter().zip(&parts.im).map(|(re, im)| [re.to_bits(), im.to_bits()]).collect()
    }

    #[test]
    fn a_factor_of_sixteen_makes_the_bits_of_two_of_four() {
        for n in [16, 32, 48, 80, 128, 144, 208, 240, 256, 512] {
            for beside in [1, 3, 8] {
                let (roots, x) = (Roots::new(n), sample(n * beside));
                let [mut once, mut half, mut twice] = [0; 3].map(|_| Parts::zeros(n * beside));
                stage(&x, &mut once, &roots, [16, beside, beside]);
                stage(&x, &mut half, &roots, [4, beside, beside]);
                stage(&half, &mut twice, &roots, [4, 4 * beside, beside]);
                assert_eq!(bits(&once), bits(&twice), "{n} numbers, {beside} lanes");
                // A stage after another one.
                if n.is_multiple_of(32) {
                    stage(&x, &mut half, &roots, [2, beside, beside]);
                    stage(&half, &mut once, &roots, [16, 2 * beside, beside]);
                    stage(&half, &mut twice, &roots, [4, 2 * beside, beside]);
                    stage(&twice, &mut half, &roots, [4, 8 * beside, beside]);
                    assert_eq!(bits(&once), bits(&half), "{n} numbers, {beside} lanes, after a factor of 2");
                }
            }
        }
    }
}
