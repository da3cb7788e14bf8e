//! MT19937 (Matsumoto, Nishimura 1998) and the distributions that NumPy's `RandomState` draws from it, bit for bit.

use crate::types::Array;

/// Words of a state: the generator's, its position, whether a normal is kept back, and that normal's bits (low word first).
pub const STATE: usize = 628;

const N: usize = 624;
const M: usize = 397;
const POSITION: usize = N;
const HAS_GAUSS: usize = N + 1;
const GAUSS: usize = N + 2;

/// The state of `RandomState(seed)`.
pub fn seed(seed: u32) -> [u32; STATE] {
    let mut state = [0; STATE];
    state[0] = seed;
    for i in 1..N {
        let before = state[i - 1];
        state[i] = 1_812_433_253u32.wrapping_mul(before ^ before >> 30).wrapping_add(i as u32);
    }
    state[POSITION] = N as u32;
    state
}

/// The state of `RandomState(seed)`, as the u32 vector that draws take.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert_eq!(legacy_state(7).len(), 628);
/// ```
pub fn seed_state(number: u32) -> Array {
    Array::vector(&seed(number))
}

/// A generator over a state of [`STATE`] words.
pub struct Generator<'a> {
    state: &'a mut [u32],
}

impl<'a> Generator<'a> {
    /// A generator over a state; `None` where it is not a state: a wrong length or position, or words that are zero and stay so for ever.
    pub fn new(state: &'a mut [u32]) -> Option<Generator<'a>> {
        let whole = state.len() == STATE && state[POSITION] as usize <= N;
        // Of the first word the recurrence reads the top bit alone.
        let runs = || state[0] >> 31 != 0 || state[1..N].iter().any(|&word| word != 0);
        (whole && runs()).then_some(Generator { state })
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.state[POSITION] as usize >= N {
            self.refill();
        }
        let mut y = self.state[self.state[POSITION] as usize];
        self.state[POSITION] += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9D2C_5680;
        y ^= (y << 15) & 0xEFC6_0000;
        y ^ y >> 18
    }

    fn refill(&mut self) {
        let words = &mut self.state[..N];
        for i in 0..N {
            let y = (words[i] & 0x8000_0000) | (words[(i + 1) % N] & 0x7FFF_FFFF);
            let twist = if y & 1 == 1 { 0x9908_B0DF } else { 0 };
            words[i] = words[(i + M) % N] ^ y >> 1 ^ twist;
        }
        self.state[POSITION] = 0;
    }

    /// The next 64 bits, high word first.
    pub fn next_u64(&mut self) -> u64 {
        let high = self.next_u32() as u64;
        high << 32 | self.next_u32() as u64
    }

    /// A number in [0, 1) with 53 random bits: `random_sample()`.
    pub fn unit(&mut self) -> f64 {
        let (a, b) = (self.next_u32() >> 5, self.next_u32() >> 6);
        (a as f64 * 67_108_864.0 + b as f64) / 9_007_199_254_740_992.0
    }

    /// `uniform(low, high)`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// `normal(mean, deviation)`.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        mean + deviation * self.gauss()
    }

    /// A standard normal by Marsaglia's polar method: two at a time, of which one is kept for the next call.
    fn gauss(&mut self) -> f64 {
        if self.state[HAS_GAUSS] != 0 {
            return self.keep(None);
        }
        let (x, y, r) = loop {
            let x = 2.0 * self.unit() - 1.0;
            let y = 2.0 * self.unit() - 1.0;
            let r = x * x + y * y;
            if r < 1.0 && r != 0.0 {
                break (x, y, r);
            }
        };
        let f = (-2.0 * r.ln() / r).sqrt();
        self.keep(Some(f * x));
        f * y
    }

    /// Exchanges the normal that is kept back; returns the one before.
    fn keep(&mut self, gauss: Option<f64>) -> f64 {
        let before = f64::from_bits(self.state[GAUSS] as u64 | (self.state[GAUSS + 1] as u64) << 32);
        let bits = gauss.unwrap_or(0.0).to_bits();
        self.state[HAS_GAUSS] = gauss.is_some() as u32;
        self.state[GAUSS] = bits as u32;
        self.state[GAUSS + 1] = (bits >> 32) as u32;
        before
    }

    /// An integer in `low..=high` by rejection under the smallest mask that covers the range: `random_integers(low, high)`.
    pub fn integer(&mut self, low: i64, high: i64) -> i64 {
        let range = high.wrapping_sub(low) as u64;
        let mask = u64::MAX.checked_shr(range.leading_zeros()).unwrap_or(0);
        let offset = match range {
            0 => 0,
            u64::MAX => self.next_u64(),
            _ => loop {
                let bits = if range <= u32::MAX as u64 { self.next_u32() as u64 } else { self.next_u64() };
                if bits & mask <= range {
                    break bits & mask;
                }
            },
        };
        low.wrapping_add(offset as i64)
    }

    /// `binomial(n, p)` for `0 ≤ p ≤ 1` and `n ≥ 0`. Certain results consume a number too.
    pub fn binomial(&mut self, n: i64, p: f64) -> i64 {
        let rare = if p <= 0.5 { p } else { 1.0 - p };
        let x = if rare * n as f64 <= 30.0 { self.binomial_inversion(n, rare) } else { Btpe::new(n, rare).draw(self) };
        if p <= 0.5 { x } else { n - x }
    }

    /// Search along the distribution function, started again where it runs past a bound.
    fn binomial_inversion(&mut self, n: i64, p: f64) -> i64 {
        let q = 1.0 - p;
        let first = (n as f64 * q.ln()).exp();
        let mean = n as f64 * p;
        let bound = (n as f64).min(mean + 10.0 * (mean * q + 1.0).sqrt()) as i64;
        let (mut x, mut mass, mut u) = (0, first, self.unit());
        while u > mass {
            x += 1;
            if x > bound {
                (x, mass, u) = (0, first, self.unit());
            } else {
                u -= mass;
                mass = ((n - (x - 1)) as f64 * p * mass) / (x as f64 * q);
            }
        }
        x
    }
}

/// Algorithm BTPE (Kachitvichyanukul, Schmeiser: "Binomial random variate generation", CACM 1988): rejection from a triangle,
/// a parallelogram and two exponential tails, under the names of the paper.
struct Btpe {
    n: i64,
    r: f64,
    q: f64,
    m: i64,
    p1: f64,
    xm: f64,
    xl: f64,
    xr: f64,
    c: f64,
    laml: f64,
    lamr: f64,
    p2: f64,
    p3: f64,
    p4: f64,
}

impl Btpe {
    fn new(n: i64, p: f64) -> Btpe {
        let r = p.min(1.0 - p);
        let q = 1.0 - r;
        let fm = n as f64 * r + r;
        let m = fm.floor() as i64;
        let p1 = (2.195 * (n as f64 * r * q).sqrt() - 4.6 * q).floor() + 0.5;
        let xm = m as f64 + 0.5;
        let (xl, xr) = (xm - p1, xm + p1);
        let c = 0.134 + 20.5 / (15.3 + m as f64);
        let rate = |a: f64| a * (1.0 + a / 2.0);
        let laml = rate((fm - xl) / (fm - xl * r));
        let lamr = rate((xr - fm) / (xr * q));
        let p2 = p1 * (1.0 + 2.0 * c);
        let p3 = p2 + c / laml;
        Btpe { n, r, q, m, p1, xm, xl, xr, c, laml, lamr, p2, p3, p4: p3 + c / lamr }
    }

    fn draw(&self, source: &mut Generator) -> i64 {
        loop {
            let u = source.unit() * self.p4;
            let v = source.unit();
            if u <= self.p1 {
                return (self.xm - self.p1 * v + u).floor() as i64;
            }
            if let Some((y, v)) = self.propose(u, v)
                && self.accepts(y, v)
            {
                return y;
            }
        }
    }

    /// A candidate outside the triangle with the number that decides on it.
    fn propose(&self, u: f64, v: f64) -> Option<(i64, f64)> {
        if u <= self.p2 {
            let x = self.xl + (u - self.p1) / self.c;
            let v = v * self.c + 1.0 - (self.m as f64 - x + 0.5).abs() / self.p1;
            return (v <= 1.0).then_some((x.floor() as i64, v));
        }
        if v == 0.0 {
            return None;
        }
        if u <= self.p3 {
            let y = (self.xl + v.ln() / self.laml).floor() as i64;
            return (y >= 0).then_some((y, v * (u - self.p2) * self.laml));
        }
        let y = (self.xr - v.ln() / self.lamr).floor() as i64;
        (y <= self.n).then_some((y, v * (u - self.p3) * self.lamr))
    }

    fn accepts(&self, y: i64, v: f64) -> bool {
        let spread = self.n as f64 * self.r * self.q;
        let k = (y - self.m).abs();
        if k <= 20 || k as f64 >= spread / 2.0 - 1.0 {
            return v <= self.ratio(y);
        }
        let kf = k as f64;
        let rho = (kf / spread) * ((kf * (kf / 3.0 + 0.625) + 0.166_666_666_666_666_66) / spread + 0.5);
        let t = k.wrapping_neg().wrapping_mul(k) as f64 / (2.0 * spread);
        let a = v.ln();
        a < t - rho || (a <= t + rho && a <= self.log_ratio(y))
    }

    /// The probability of y over that of the mode, factor by factor.
    fn ratio(&self, y: i64) -> f64 {
        let s = self.r / self.q;
        let a = s * self.n.saturating_add(1) as f64;
        let mut f = 1.0;
        (self.m + 1..=y).for_each(|i| f *= a / i as f64 - s);
        (y + 1..=self.m).for_each(|i| f /= a / i as f64 - s);
        f
    }

    /// Its logarithm by Stirling's series.
    fn log_ratio(&self, y: i64) -> f64 {
        let (n, m) = (self.n, self.m);
        let [x1, f1, z, w] = [y.saturating_add(1), m + 1, n - m + 1, n - y + 1].map(|k| k as f64);
        self.xm * (f1 / x1).ln()
            + ((n - m) as f64 + 0.5) * (z / w).ln()
            + (y - m) as f64 * (w * self.r / (x1 * self.q)).ln()
            + stirling(f1)
            + stirling(z)
            + stirling(x1)
            + stirling(w)
    }
}

/// The first terms of Stirling's correction.
fn stirling(x: f64) -> f64 {
    let s = x * x;
    (13680. - (462. - (132. - (99. - 140. / s) / s) / s) / s) / x / 166320.
}

/// Every expected number was printed by NumPy's `RandomState`.
#[cfg(test)]
mod tests {
    use super::*;

    fn bits(x: f64) -> u64 {
        x.to_bits()
    }
    fn repeat<T>(n: usize, mut draw: impl FnMut() -> T) -> Vec<T> {
        (0..n).map(|_| draw()).collect()
    }

    #[test]
    fn seeds_are_numpys() {
        let mut state = seed(u32::MAX);
        let mut g = Generator::new(&mut state).unwrap();
        assert_eq!([g.unit(), g.unit()], [0.0976320289940138, 0.9123828453026218]);
        let mut state = seed(0);
        let mut g = Generator::new(&mut state).unwrap();
        assert_eq!([g.next_u32(), g.next_u32()], [2357136044, 2546248239]);
    }

    #[test]
    fn a_mixed_run_is_numpys() {
        let mut state = seed(42);
        let mut g = Generator::new(&mut state).unwrap();
        let uniform = repeat(3, || bits(g.uniform(-1.0, 2.0)));
        assert_eq!(uniform, [0x3fbfa5956c77d710, 0x3ffda2609d19c17e, 0x3ff322bdd6ad9afa]);
        let normal = repeat(3, || bits(g.normal(1.0, 2.0)));
        assert_eq!(normal, [0xbff394859d02b14c, 0x3ffa34725abba4b0, 0x3ff8ede801077624]);
        assert_eq!(repeat(6, || g.integer(-5, 10)), [2, -3, 0, -1, -4, 2]);
        assert_eq!(repeat(2, || g.integer(0, 1 << 40)), [824600269755, 90224662780]);
        assert_eq!(repeat(2, || g.integer(i64::MIN, i64::MAX)), [-1255392779875947688, -3851142621966130726]);
        assert_eq!(repeat(2, || g.integer(0, u32::MAX as i64)), [2627888186, 1717389822]);
        assert_eq!(repeat(2, || g.integer(3, 3)), [3, 3]);
        let binomial = [
            (10, 0.3, [1, 2]),
            (10, 0.9, [9, 9]),
            (0, 0.5, [0, 0]),
            (7, 0.0, [0, 0]),
            (7, 1.0, [7, 7]),
            (1000, 0.4, [406, 368]),
            (100_000, 0.7, [70145, 70174]),
            (100, 0.5, [57, 43]),
            (60, 0.5, [35, 27]),
            (61, 0.5, [28, 43]),
            (1_000_000_000, 0.001, [1000469, 1000092]),
        ];
        for (n, p, expected) in binomial {
            assert_eq!(repeat(2, || g.binomial(n, p)), expected, "{n} {p}");
        }
        assert_eq!(repeat(2, || bits(g.normal(0.0, 1.0))), [0x3ff02b121345a26f, 0x3fe8c227606678ae]);
        assert_eq!((state[POSITION], state[HAS_GAUSS]), (126, 1));
        assert_eq!(state[..N].iter().map(|&w| w as u64).sum::<u64>(), 1331539527269);
    }

    /// 5500 binomial draws over all branches of both algorithms, then 1001 normal ones, as one hash each.
    #[test]
    fn long_runs_are_numpys() {
        let mut state = seed(42);
        let mut g = Generator::new(&mut state).unwrap();
        burn(&mut g);
        let cases = [
            (10, 0.3),
            (40, 0.8),
            (1000, 0.4),
            (100_000, 0.7),
            (100, 0.5),
            (61, 0.5),
            (1_000_000_000, 0.001),
            (1_000_000_000_000, 0.3),
            (5, 0.999),
            (200, 0.151),
            (3000, 0.02),
        ];
        let mut hash = 0u128;
        let mut take = |x: u64| {
            hash = (hash * 31 + x as u128) % ((1 << 61) - 1);
            hash
        };
        let mut last = 0;
        for (n, p) in cases {
            (0..500).for_each(|_| last = take(g.binomial(n, p) as u64));
        }
        assert_eq!(last, 400055581490792835);
        (0..1001).for_each(|_| last = take(bits(g.normal(0.0, 1.0))));
        assert_eq!(last, 2295275929077614561);
    }

    /// The draws of `a_mixed_run_is_numpys`, after which the long run was recorded.
    fn burn(g: &mut Generator) {
        repeat(3, || g.unit());
        repeat(3, || g.normal(1.0, 2.0));
        repeat(6, || g.integer(-5, 10));
        for (low, high) in [(0, 1 << 40), (i64::MIN, i64::MAX), (0, u32::MAX as i64)] {
            repeat(2, || g.integer(low, high));
        }
        let certain = [(0, 0.5), (7, 0.0), (7, 1.0)];
        let large = [(1000, 0.4), (100_000, 0.7), (100, 0.5), (60, 0.5), (61, 0.5), (1_000_000_000, 0.001)];
        for (n, p) in [(10, 0.3), (10, 0.9)].into_iter().chain(certain).chain(large) {
            repeat(2, || g.binomial(n, p));
        }
        repeat(2, || g.normal(0.0, 1.0));
    }

    #[test]
    fn what_is_no_state_is_refused() {
        assert!(Generator::new(&mut [0; 627]).is_none() && Generator::new(&mut [0; STATE]).is_none());
        let mut state = seed(1);
        state[POSITION] = 625;
        assert!(Generator::new(&mut state).is_none());
    }
}
