//! Four f64 in a register of AVX2, as a context of formulas. Every function is inlined into one that is compiled for such processors.

use super::{Host, Lanes, Lookup, math};
use std::arch::x86_64::*;

/// The context; it has no state. Only code that is compiled for AVX2 and FMA, and runs on processors that have both, may use it.
pub(super) struct Four;

/// Four elements of eight.
#[inline(always)]
pub(super) fn load(x: &[f64; 8], at: usize) -> __m256d {
    let x: &[f64; 4] = x[at..at + 4].try_into().expect("four");
    // SAFETY: four elements are there.
    unsafe { _mm256_loadu_pd(x.as_ptr()) }
}

/// Writes four elements of eight.
#[inline(always)]
pub(super) fn store(v: __m256d, to: &mut [f64; 8], at: usize) {
    let to: &mut [f64; 4] = (&mut to[at..at + 4]).try_into().expect("four");
    // SAFETY: there is room for four elements.
    unsafe { _mm256_storeu_pd(to.as_mut_ptr(), v) }
}

/// True in all lanes.
#[inline(always)]
pub(super) fn all() -> __m256d {
    // SAFETY: as the context's.
    unsafe { _mm256_castsi256_pd(_mm256_set1_epi64x(-1)) }
}

/// The lanes where it is false.
#[inline(always)]
pub(super) fn others(b: __m256d) -> impl Iterator<Item = usize> {
    // SAFETY: as the context's.
    let mask = unsafe { _mm256_movemask_pd(b) };
    (0..if mask == 15 { 0 } else { 4 }).filter(move |lane| mask >> lane & 1 == 0)
}

/// A function of the machine, lane by lane.
#[inline(always)]
fn each(x: __m256d, y: __m256d, f: impl Fn(f64, f64) -> f64) -> __m256d {
    let (mut a, mut b) = ([0.0; 8], [0.0; 8]);
    store(x, &mut a, 0);
    store(y, &mut b, 0);
    (0..4).for_each(|l| a[l] = f(a[l], b[l]));
    load(&a, 0)
}

macro_rules! four {
    (one { $($one:ident($($x:ident: $t:ident),*) -> $r:ident = $e:expr;)+ } machine { $($machine:ident)+ } machine2 { $($machine2:ident)+ } written { $($written:ident)+ }) => {
        impl Lanes for Four {
            type V = __m256d;
            type B = __m256d;
            type I = __m256i;
            #[inline(always)]
            fn wide(&self) -> bool {
                true
            }
            #[inline(always)]
            fn fuses(&self) -> bool {
                true
            }
            #[inline(always)]
            fn int_shl(&self, i: __m256i, n: u32) -> __m256i {
                // SAFETY: as the context's; so below.
                unsafe { _mm256_sll_epi64(i, _mm_cvtsi32_si128(n as i32)) }
            }
            #[inline(always)]
            fn int_shr(&self, i: __m256i, n: u32) -> __m256i {
                unsafe { _mm256_srl_epi64(i, _mm_cvtsi32_si128(n as i32)) }
            }
            #[inline(always)]
            fn any(&self, c: __m256d) -> bool {
                unsafe { _mm256_movemask_pd(c) != 0 }
            }
            #[inline(always)]
            fn all(&self, c: __m256d) -> bool {
                unsafe { _mm256_movemask_pd(c) == 15 }
            }
            $(#[inline(always)] fn $one(&self $(, $x: four!(@ $t))*) -> four!(@ $r) { unsafe { $e } })+
            $(#[inline(always)] fn $machine(&self, x: __m256d) -> __m256d { each(x, x, |x, _| Host::<f64>::CX.$machine(x)) })+
            $(#[inline(always)] fn $machine2(&self, x: __m256d, y: __m256d) -> __m256d { each(x, y, |x, y| Host::<f64>::CX.$machine2(x, y)) })+
            $(#[inline(always)] fn $written(&self, x: __m256d) -> __m256d { math::$written(self, x) })+
        }
    };
    (@ V) => { __m256d };
    (@ I) => { __m256i };
    (@ f64) => { f64 };
    (@ u64) => { u64 };
}

four! {
    one {
        num(x: f64) -> V = _mm256_set1_pd(x);
        eq(x: V, y: V) -> V = _mm256_cmp_pd::<_CMP_EQ_OQ>(x, y);
        ne(x: V, y: V) -> V = _mm256_cmp_pd::<_CMP_NEQ_UQ>(x, y);
        lt(x: V, y: V) -> V = _mm256_cmp_pd::<_CMP_LT_OQ>(x, y);
        le(x: V, y: V) -> V = _mm256_cmp_pd::<_CMP_LE_OQ>(x, y);
        and(x: V, y: V) -> V = _mm256_and_pd(x, y);
        xor(x: V, y: V) -> V = _mm256_xor_pd(x, y);
        not(x: V) -> V = _mm256_xor_pd(x, all());
        select(b: V, x: V, y: V) -> V = _mm256_blendv_pd(y, x, b);
        signbit(x: V) -> V = _mm256_castsi256_pd(_mm256_cmpgt_epi64(_mm256_setzero_si256(), _mm256_castpd_si256(x)));
        fma(x: V, y: V, z: V) -> V = _mm256_fmadd_pd(x, y, z);
        bits(x: V) -> I = _mm256_castpd_si256(x);
        of_bits(i: I) -> V = _mm256_castsi256_pd(i);
        int(k: u64) -> I = _mm256_set1_epi64x(k as i64);
        int_add(i: I, j: I) -> I = _mm256_add_epi64(i, j);
        int_sub(i: I, j: I) -> I = _mm256_sub_epi64(i, j);
        int_and(i: I, j: I) -> I = _mm256_and_si256(i, j);
        int_or(i: I, j: I) -> I = _mm256_or_si256(i, j);
        int_xor(i: I, j: I) -> I = _mm256_xor_si256(i, j);
        add(x: V, y: V) -> V = _mm256_add_pd(x, y);
        sub(x: V, y: V) -> V = _mm256_sub_pd(x, y);
        mul(x: V, y: V) -> V = _mm256_mul_pd(x, y);
        div(x: V, y: V) -> V = _mm256_div_pd(x, y);
        neg(x: V) -> V = _mm256_xor_pd(x, _mm256_set1_pd(-0.0));
        abs(x: V) -> V = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
        copysign(x: V, y: V) -> V = _mm256_or_pd(_mm256_andnot_pd(_mm256_set1_pd(-0.0), x), _mm256_and_pd(_mm256_set1_pd(-0.0), y));
        sqrt(x: V) -> V = _mm256_sqrt_pd(x);
        floor(x: V) -> V = _mm256_floor_pd(x);
        ceil(x: V) -> V = _mm256_ceil_pd(x);
        trunc(x: V) -> V = _mm256_round_pd::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(x);
        round(x: V) -> V = _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
    }
    machine { machine_sin machine_cos tan asin acos atan sinh cosh asinh acosh atanh erf erfc erfinv ndtri gammaln digamma trigamma tetragamma }
    machine2 { fmod pow hypot atan2 }
    written { exp exp2 expm1 log log2 log10 log1p tanh sigmoid log1p_exp sin cos }
}

impl Lookup for Four {
    #[inline(always)]
    fn lookup<const N: usize>(&self, table: &'static [[f64; N]; 128], row: __m256i) -> [__m256d; N] {
        // SAFETY: as the context's; a row's number is cut to what the table has.
        unsafe {
            let row = _mm256_and_si256(row, _mm256_set1_epi64x(127));
            let at = _mm256_mul_epu32(row, _mm256_set1_epi64x(N as i64));
            let first = table.as_ptr().cast::<f64>();
            let mut found = [_mm256_setzero_pd(); N];
            let mut k = 0;
            while k < N {
                found[k] = _mm256_i64gather_pd::<8>(first.add(k), at);
                k += 1;
            }
            found
        }
    }
}
