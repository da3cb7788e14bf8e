//! Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011), a generator whose
//! n-th block is a function of key and n alone, and what draws need of it.
//!
//! A [`Key`] is two u64 words. The first is Philox's key; the second is the upper half of the 128-bit counter, whose lower
//! half counts blocks. Keys are derived under a key of another tweak than draws, so that the two never share a block.

use super::slices;
use crate::types::Array;

/// Names a stream of numbers.
pub type Key = [u64; 2];

/// Multipliers of a round.
pub(crate) const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// What is added to the key between rounds.
pub(crate) const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// Rounds of a block.
pub(crate) const ROUNDS: usize = 10;
/// Separates the derivation of keys from draws: digits of the square root of 3.
pub(crate) const FOLD: u64 = 0xBB67_AE85_84CA_A73B;
/// Separates further attempts of a rejecting draw from its first: digits of the golden ratio.
const RETRY: u64 = 0x9E37_79B9_7F4A_7C15;

/// One block: four words of a counter and a key.
pub fn philox4x32(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..ROUNDS {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        let [p, q] = [counter[0] as u64 * MULTIPLIERS[0] as u64, counter[2] as u64 * MULTIPLIERS[1] as u64];
        counter = [(q >> 32) as u32 ^ counter[1] ^ key[0], q as u32, (p >> 32) as u32 ^ counter[3] ^ key[1], p as u32];
    }
    counter
}

fn words(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

fn join(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// The n-th block of a stream.
pub fn block(key: Key, n: u64) -> [u32; 4] {
    let ([a, b], [c, d]) = (words(n), words(key[1]));
    philox4x32([a, b, c, d], words(key[0]))
}

/// The n-th block of a stream, as two u64.
pub fn block64(key: Key, n: u64) -> [u64; 2] {
    let [a, b, c, d] = block(key, n);
    [join(a, b), join(c, d)]
}

/// The key of stream or step `n` below a key.
pub fn fold_in(key: Key, n: u64) -> Key {
    block64([key[0] ^ FOLD, key[1]], n)
}

/// The key of a seed.
pub fn key_of_seed(seed: u64) -> Key {
    fold_in([0, 0], seed)
}

/// The key of a seed, as the u64 vector that draws take.
pub fn key_array(seed: u64) -> Array {
    Array::vector(&key_of_seed(seed))
}

/// A number in [0, 1) with 53 random bits.
pub fn unit_f64(bits: u64) -> f64 {
    // Numbers below 2⁵³ are the same with a sign, and quicker converted.
    (bits >> 11) as i64 as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A number in [0, 1) with 24 random bits.
pub fn unit_f32(bits: u32) -> f32 {
    (bits >> 8) as f32 * (1.0 / (1u32 << 24) as f32)
}

/// The f64 in [0, 1) of a stream from the i-th on, i even, or as many of each of several streams, from the first on: two of a block.
pub fn uniform_f64(keys: &[Key], i: u64, out: &mut [f64]) {
    drawn::<2, _>(keys, i, out, |[a, b, c, d]| [unit_f64(join(a, b)), unit_f64(join(c, d))]);
}

/// The f32 in [0, 1), as [`uniform_f64`], i a multiple of 4: four of a block.
pub fn uniform_f32(keys: &[Key], i: u64, out: &mut [f32]) {
    drawn::<4, _>(keys, i, out, |[a, b, c, d]| [unit_f32(a), unit_f32(b), unit_f32(c), unit_f32(d)]);
}

/// The standard normal f64, as [`uniform_f64`], i even: Box and Muller's transform of a block, `√(−2 ln u) · (cos, sin)(2π v)` with
/// u in (0, 1].
pub fn normal_f64(keys: &[Key], i: u64, out: &mut [f64]) {
    drawn::<2, _>(keys, i, out, |[a, b, c, d]| box_muller(1.0 - unit_f64(join(a, b)), unit_f64(join(c, d))));
}

/// The standard normal f32, as [`normal_f64`] from two words of 32 bits each, rounded at the end; i is a multiple of 4.
pub fn normal_f32(keys: &[Key], i: u64, out: &mut [f32]) {
    let scale = 1.0 / (1u64 << 32) as f64;
    drawn::<4, _>(keys, i, out, |words| {
        let [a, b, c, d] = words.map(|w| w as f64 * scale);
        let ([p, q], [r, s]) = (box_muller(1.0 - a, b), box_muller(1.0 - c, d));
        [p, q, r, s].map(|x| x as f32)
    });
}

/// The two normals of a pair. The functions of `libm` give the same bits on every platform.
pub(crate) fn box_muller(u: f64, v: f64) -> [f64; 2] {
    let radius = libm::sqrt(-2.0 * libm::log(u));
    let (sine, cosine) = libm::sincos(std::f64::consts::TAU * v);
    [radius * cosine, radius * sine]
}

/// So many blocks are computed together.
const TOGETHER: usize = 64;

/// Numbers of which each block gives N: of one stream from the i-th on, i a multiple of N, or as many of each stream from the first on.
fn drawn<const N: usize, T: Copy>(keys: &[Key], i: u64, out: &mut [T], numbers: impl Fn([u32; 4]) -> [T; N]) {
    let each = out.len() / keys.len().max(1);
    match keys {
        [] => {}
        [key] => by_blocks(*key, i, out, numbers),
        _ if each > LANES * N => keys.iter().zip(out.chunks_mut(each)).for_each(|(key, out)| by_blocks(*key, 0, out, &numbers)),
        _ => by_keys(keys, each, out, numbers),
    }
}

/// A few numbers of each stream.
fn by_keys<const N: usize, T: Copy>(keys: &[Key], each: usize, out: &mut [T], numbers: impl Fn([u32; 4]) -> [T; N]) {
    let mut words = [[0; 4]; TOGETHER];
    for (keys, out) in keys.chunks(TOGETHER).zip(out.chunks_mut((TOGETHER * each).max(1))) {
        let words = &mut words[..keys.len()];
        for first in (0..each).step_by(N) {
            slices::blocks_of_each(keys, &[(first / N) as u64; TOGETHER], words);
            for (out, &words) in out.chunks_mut(each).zip(&*words) {
                let out = &mut out[first..each.min(first + N)];
                out.copy_from_slice(&numbers(words)[..out.len()]);
            }
        }
    }
}

/// The keys of number n below each of several keys, as [`fold_in`].
pub fn fold_in_each(keys: &[Key], n: &[u64], out: &mut Vec<Key>) {
    let (mut folded, mut words) = ([[0; 2]; TOGETHER], [[0; 4]; TOGETHER]);
    for (keys, n) in keys.chunks(TOGETHER).zip(n.chunks(TOGETHER)) {
        folded.iter_mut().zip(keys).for_each(|(folded, key)| *folded = [key[0] ^ FOLD, key[1]]);
        slices::blocks_of_each(&folded[..keys.len()], n, &mut words[..keys.len()]);
        out.extend(words[..keys.len()].iter().map(|&[a, b, c, d]| [join(a, b), join(c, d)]));
    }
}

/// Numbers of one stream.
fn by_blocks<const N: usize, T: Copy>(key: Key, i: u64, out: &mut [T], numbers: impl Fn([u32; 4]) -> [T; N]) {
    debug_assert!(i.is_multiple_of(N as u64), "a block begins here");
    let mut words = [[0; 4]; TOGETHER];
    for (k, out) in out.chunks_mut(TOGETHER * N).enumerate() {
        let words = &mut words[..out.len().div_ceil(N)];
        slices::blocks(key, i / N as u64 + (k * TOGETHER) as u64, words);
        let (whole, rest) = out.as_chunks_mut::<N>();
        let (last, words) = (words[words.len() - 1], &words[..whole.len()]);
        whole.iter_mut().zip(words).for_each(|(out, &words)| *out = numbers(words));
        if !rest.is_empty() {
            rest.copy_from_slice(&numbers(last)[..rest.len()]);
        }
    }
}

/// Lanes that are computed together.
const LANES: usize = 8;

/// The blocks of a stream from the n-th on, lane by lane.
#[inline(always)]
pub(super) fn blocks_of(key: Key, n: u64, out: &mut [[u32; 4]]) {
    let mut first = n;
    for out in out.chunks_mut(LANES) {
        let all = lanes([key], std::array::from_fn(|l| first.wrapping_add(l as u64)));
        out.copy_from_slice(&all[..out.len()]);
        first = first.wrapping_add(LANES as u64);
    }
}

/// The block of each of several streams, as [`blocks_of`].
#[inline(always)]
pub(super) fn blocks_of_each(keys: &[Key], n: &[u64], out: &mut [[u32; 4]]) {
    for ((keys, n), out) in keys.chunks(LANES).zip(n.chunks(LANES)).zip(out.chunks_mut(LANES)) {
        let (mut key, mut number) = ([[0; 2]; LANES], [0; LANES]);
        key[..keys.len()].copy_from_slice(keys);
        number[..n.len()].copy_from_slice(n);
        out.copy_from_slice(&lanes(key, number)[..out.len()]);
    }
}

/// A block for each lane, of one key for all or one for each.
#[inline(always)]
fn lanes<const KEYS: usize>(keys: [Key; KEYS], n: [u64; LANES]) -> [[u32; 4]; LANES] {
    // Written as loops over elements, of which compilers make vectors; words are kept in u64, where their products find room.
    let half = |word: usize, high: bool| keys.map(|key| if high { key[word] >> 32 } else { key[word] & LOW });
    let (mut k0, mut k1, upper) = (half(0, false), half(0, true), [half(1, false), half(1, true)]);
    let (mut c0, mut c1) = (n.map(|n| n & LOW), n.map(|n| n >> 32));
    let [mut c2, mut c3]: [[u64; LANES]; 2] = upper.map(|half| std::array::from_fn(|l| half[l % KEYS]));
    for _ in 0..ROUNDS {
        for (l, (((c0, c1), c2), c3)) in c0.iter_mut().zip(&mut c1).zip(&mut c2).zip(&mut c3).enumerate() {
            let (p, q) = ((*c0 & LOW) * u64::from(MULTIPLIERS[0]), (*c2 & LOW) * u64::from(MULTIPLIERS[1]));
            (*c0, *c2) = ((q >> 32) ^ *c1 ^ k0[l % KEYS], (p >> 32) ^ *c3 ^ k1[l % KEYS]);
            (*c1, *c3) = (q & LOW, p & LOW);
        }
        k0 = k0.map(|k| (k + u64::from(WEYL[0])) & LOW);
        k1 = k1.map(|k| (k + u64::from(WEYL[1])) & LOW);
    }
    std::array::from_fn(|l| [c0[l] as u32, c1[l] as u32, c2[l] as u32, c3[l] as u32])
}

/// The low half of a u64.
const LOW: u64 = u32::MAX as u64;

/// The i-th number in `0..range` without bias, for `range > 0`: the upper half of a 128-bit product, with rejection of the
/// low halves that would be counted once too often (Lemire 2019). Further attempts leave the stream for others of its key.
pub fn bounded(key: Key, i: u64, range: u64) -> u64 {
    let surplus = range.wrapping_neg() % range;
    let mut attempt = key;
    loop {
        for bits in block64(attempt, i) {
            let product = bits as u128 * range as u128;
            if product as u64 >= surplus {
                return (product >> 64) as u64;
            }
        }
        attempt[0] = attempt[0].wrapping_add(RETRY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The three known answers published with the authors' Random123 library.
    #[test]
    fn known_answers() {
        let cases = [
            ([0; 4], [0; 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
            ([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0], [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]),
        ];
        for (counter, key, expected) in cases {
            assert_eq!(philox4x32(counter, key), expected);
        }
    }

    #[test]
    fn keys_differ_in_half_of_their_bits() {
        let key = key_of_seed(7);
        let flips: u32 = (0..1000u64)
            .map(|n| {
                let (a, b) = (fold_in(key, n), fold_in(key, n + 1));
                (a[0] ^ b[0]).count_ones() + (a[1] ^ b[1]).count_ones()
            })
            .sum();
        assert!((63_000..65_000).contains(&flips), "{flips} of 128000 bits");
        assert_ne!(fold_in(key, 0), block64(key, 0));
        assert_ne!(fold_in([key[0], key[1] + 1], 0), fold_in(key, 0));
    }

    #[test]
    fn bounded_is_even_where_the_range_does_not_divide() {
        let range = 3u64 << 62;
        let mut thirds = [0; 3];
        (0..6000).for_each(|i| thirds[(bounded([1, 2], i, range) >> 62) as usize] += 1);
        assert!(thirds.iter().all(|n| (1880..2120).contains(n)), "{thirds:?}");
        assert!((0..100).all(|i| bounded([1, 2], i, 1) == 0));
    }

    #[test]
    fn many_blocks_are_those_of_one_after_the_other() {
        let key = [0x1234_5678_9abc_def0, 0xfedc_ba98_7654_3210];
        for n in [0, 5, u64::from(u32::MAX) - 3, u64::MAX - 9] {
            for count in [1, 7, 8, 65] {
                let mut all = vec![[0; 4]; count];
                slices::blocks(key, n, &mut all);
                assert!(all.iter().zip(0..).all(|(words, i)| *words == block(key, n.wrapping_add(i))));
            }
        }
    }

    #[test]
    fn draws_of_several_keys_are_those_of_each() {
        let keys: Vec<Key> = (0..131).map(key_of_seed).collect();
        for each in [0, 1, 2, 3, 5, 16, 17, 40] {
            let mut all = vec![0.0; keys.len() * each];
            normal_f64(&keys, 0, &mut all);
            let mut narrow = vec![0.0f32; keys.len() * each];
            uniform_f32(&keys, 0, &mut narrow);
            for (l, key) in keys.iter().enumerate() {
                let (mut own, mut own_narrow) = (vec![0.0; each], vec![0.0f32; each]);
                normal_f64(&[*key], 0, &mut own);
                uniform_f32(&[*key], 0, &mut own_narrow);
                assert!(all[l * each..][..each] == own && narrow[l * each..][..each] == own_narrow);
            }
        }
        let numbers: Vec<u64> = (0..131).map(|l| l * l).collect();
        let mut folded = vec![];
        fold_in_each(&keys, &numbers, &mut folded);
        assert!(folded.iter().zip(keys.iter().zip(numbers)).all(|(folded, (key, n))| *folded == fold_in(*key, n)));
    }

    #[test]
    fn sines_and_cosines_together_are_those_of_each() {
        for i in 0..20_000 {
            let angle = std::f64::consts::TAU * unit_f64(block64([7, 7], i)[0]);
            assert_eq!(libm::sincos(angle), (libm::sin(angle), libm::cos(angle)));
        }
    }

    #[test]
    fn numbers_do_not_depend_on_how_many_are_drawn() {
        let key = key_of_seed(3);
        let (mut all, mut part) = (vec![0.0; 1001], vec![0.0; 7]);
        normal_f64(&[key], 0, &mut all);
        normal_f64(&[key], 500, &mut part);
        assert_eq!(all[500..507], part);
        let (mut all, mut part) = (vec![0.0; 1001], vec![0.0; 7]);
        normal_f32(&[key], 0, &mut all);
        normal_f32(&[key], 500, &mut part);
        assert_eq!(all[500..507], part);
    }
}
