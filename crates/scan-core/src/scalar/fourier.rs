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

/// A sum of complex numbers.
pub fn plus(a: Pair, b: Pair) -> Pair {
    [a[0] + b[0], a[1] + b[1]]
}

/// One factor p of transforms of n numbers: `y[q + s(pk + j)] = (Σₗ x[q + s(k + ml)]·ωₚ^jl)·ω^kj`, where s numbers stand side by side, of `beside`
/// lanes, and `m = n·beside/(s·p)`. `roots` are the n-th roots of unity.
///
/// # Panics
/// Where lengths are others.
pub fn stage(x: &Parts, y: &mut Parts, roots: &[Pair], [p, s, beside]: [usize; 3]) {
    let (all, n) = (x.re.len(), roots.len());
    assert!([x.im.len(), y.re.len(), y.im.len()] == [all; 3] && n * beside == all && all.is_multiple_of(s * p), "extents of a stage");
    let groups = all / (s * p);
    for k in 0..groups {
        let turn = |j: usize| roots[(s / beside * k * j) % n];
        let mut places = Places { from: x, to: y, extents: [s, groups], first: s * k, out: s * p * k };
        let turns = (k > 0).then(|| [turn(1), turn(2), turn(3)]);
        match p {
            2 => places.butterflies::<2>(turns),
            4 => places.butterflies::<4>(turns),
            _ => places.any(p, roots, turn),
        }
    }
}

/// The numbers of a stage where they come from and where they go.
struct Places<'a> {
    from: &'a Parts,
    to: &'a mut Parts,
    /// Numbers side by side, and groups of them.
    extents: [usize; 2],
    /// The first of each.
    first: usize,
    out: usize,
}

impl Places<'_> {
    /// Two numbers or four at each place; the first group is not turned.
    fn butterflies<const P: usize>(&mut self, turns: Option<[Pair; 3]>) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{__m256d, __m512d};
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
            fn widest<const P: usize>(places: &mut Places, turns: Option<[Pair; 3]>) {
                places.butterflies_of::<__m512d, P>(turns);
            }
            #[target_feature(enable = "avx2,fma")]
            fn wide<const P: usize>(places: &mut Places, turns: Option<[Pair; 3]>) {
                places.butterflies_of::<__m256d, P>(turns);
            }
            match width() {
                // SAFETY: `width` has asked the processor for these features.
                Width::Avx512 => return unsafe { widest::<P>(self, turns) },
                // SAFETY: as above.
                Width::Avx2 => return unsafe { wide::<P>(self, turns) },
                Width::Plain => {}
            }
        }
        self.butterflies_of::<Array<f64, false>, P>(turns);
    }

    #[inline(always)]
    fn butterflies_of<V: Vector<T = f64>, const P: usize>(&mut self, turns: Option<[Pair; 3]>) {
        match turns {
            Some(turns) => self.turned_butterflies::<V, P, true>(turns),
            None => self.turned_butterflies::<V, P, false>([[1.0, 0.0]; 3]),
        }
    }

    #[inline(always)]
    fn turned_butterflies<V: Vector<T = f64>, const P: usize, const TURNS: bool>(&mut self, turns: [Pair; 3]) {
        let [s, m] = self.extents;
        let from = |l: usize| (self.from.re[self.first + s * m * l..][..s].as_ptr(), self.from.im[self.first + s * m * l..][..s].as_ptr());
        let (re, im) = (&mut self.to.re[self.out..][..s * P], &mut self.to.im[self.out..][..s * P]);
        let to = (re.as_mut_ptr(), im.as_mut_ptr());
        let from = [from(0), from(1), from(2 % P), from(3 % P)];
        let mut q = 0;
        while q < s {
            let n = V::LEN.min(s - q);
            // SAFETY: the slices have s elements for each number; whoever calls this is compiled for these registers.
            unsafe {
                let at = |(re, im): (*const f64, *const f64)| Few(load::<V>(re.add(q), n), load::<V>(im.add(q), n));
                let put = |j: usize, Few(re, im): Few<V>| {
                    store(re, to.0.add(s * j + q), n);
                    store(im, to.1.add(s * j + q), n);
                };
                let (a, b) = (at(from[0]), at(from[1]));
                if P == 2 {
                    put(0, a.plus(b));
                    put(1, a.minus(b).times::<TURNS>(turns[0]));
                } else {
                    let (c, d) = (at(from[2]), at(from[3]));
                    let (even, odd, left, right) = (a.plus(c), b.plus(d), a.minus(c), b.minus(d).turned());
                    put(0, even.plus(odd));
                    put(1, left.plus(right).times::<TURNS>(turns[0]));
                    put(2, even.minus(odd).times::<TURNS>(turns[1]));
                    put(3, left.minus(right).times::<TURNS>(turns[2]));
                }
            }
            q += n;
        }
    }

    fn any(&mut self, p: usize, roots: &[Pair], turn: impl Fn(usize) -> Pair) {
        let [s, m] = self.extents;
        let part = |q: usize, l: usize| [self.from.re[self.first + q + s * m * l], self.from.im[self.first + q + s * m * l]];
        for j in 0..p {
            for q in 0..s {
                let sum = (1..p).fold(part(q, 0), |sum, l| plus(sum, times(part(q, l), roots[roots.len() / p * (j * l % p)])));
                let at = self.out + s * j + q;
                [self.to.re[at], self.to.im[at]] = times(sum, turn(j));
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
    #[inline(always)]
    unsafe fn times<const TURNS: bool>(self, [re, im]: Pair) -> Few<V> {
        if !TURNS {
            return self;
        }
        unsafe {
            let (re, im) = (V::splat(re), V::splat(im));
            Few(self.0.mul(re).sub(self.1.mul(im)), self.0.mul(im).add(self.1.mul(re)))
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
