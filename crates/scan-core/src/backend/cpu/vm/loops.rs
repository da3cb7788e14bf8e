//! The loops of the vm: one per operation and dtype, written once and compiled for each set of vector instructions.
//!
//! Where only bits matter, integers of one width share the loop of the unsigned one. A bool is a `u8`, 0 or 1.

use super::super::isa::Isa;
use crate::scalar::int::Int;
use crate::types::Cast;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// `loop(to, a, b, c, n)`: reads n elements from as many places as the operation has arguments, writes n elements.
///
/// # Safety
/// The places hold n elements, aligned; `to` overlaps none of the others (copies: may overlap). The processor has the
/// instructions that the loop was compiled for.
pub type Loop = unsafe fn(*mut u8, *const u8, *const u8, *const u8, usize);

/// A loop over many elements, and the same for one element whatever n says.
#[derive(Clone, Copy)]
pub struct Pair {
    /// Over n elements.
    pub many: Loop,
    /// Over one element.
    pub one: Loop,
}

/// A function of one value.
pub trait F1<A> {
    /// Its result.
    type R: Copy;
    /// Its value.
    fn at(x: A) -> Self::R;
}

/// A function of two values.
pub trait F2<A> {
    /// Its result.
    type R: Copy;
    /// Its value.
    fn at(x: A, y: A) -> Self::R;
}

/// A function of three values, the first of another type.
pub trait F3<A, B> {
    /// Its result.
    type R: Copy;
    /// Its value.
    fn at(x: A, y: B, z: B) -> Self::R;
}

macro_rules! f1 {
    ($($F:ident |$x:ident| $e:expr, $($t:ty)+;)+) => {$($(
        impl F1<$t> for $F {
            type R = $t;
            #[inline(always)]
            fn at($x: $t) -> $t { $e }
        }
    )+)+};
}

macro_rules! f2 {
    ($($F:ident |$x:ident, $y:ident| $e:expr, $($t:ty)+;)+) => {$($(
        impl F2<$t> for $F {
            type R = $t;
            #[inline(always)]
            fn at($x: $t, $y: $t) -> $t { $e }
        }
    )+)+};
}

macro_rules! compare {
    ($($F:ident |$x:ident, $y:ident| $e:expr, $($t:ty)+;)+) => {$($(
        impl F2<$t> for $F {
            type R = u8;
            #[inline(always)]
            fn at($x: $t, $y: $t) -> u8 { $e as u8 }
        }
    )+)+};
}

macro_rules! functions {
    ($($F:ident)+) => {$(
        #[doc = concat!("The operation `", stringify!($F), "`.")]
        pub struct $F;
    )+};
}

functions! { Neg Abs Not NotBool Sqrt Floor Ceil Trunc Round Add Sub Mul Div And Or Xor Shl Shr FloorDiv Mod Fmod Eq Ne Lt Le Fma Choose }

f1! {
    Neg |x| -x, f32 f64;
    Neg |x| x.wrapping_neg(), u8 u16 u32 u64;
    Abs |x| x.abs(), f32 f64;
    Not |x| !x, u8 u16 u32 u64;
    NotBool |x| x ^ 1, u8;
    Sqrt |x| x.sqrt(), f32 f64;
    Floor |x| x.floor(), f32 f64;
    Ceil |x| x.ceil(), f32 f64;
    Trunc |x| x.trunc(), f32 f64;
    Round |x| x.round_ties_even(), f32 f64;
}

f2! {
    Add |x, y| x + y, f32 f64;
    Sub |x, y| x - y, f32 f64;
    Mul |x, y| x * y, f32 f64;
    Div |x, y| x / y, f32 f64;
    Add |x, y| x.wrapping_add(y), u8 u16 u32 u64;
    Sub |x, y| x.wrapping_sub(y), u8 u16 u32 u64;
    Mul |x, y| x.wrapping_mul(y), u8 u16 u32 u64;
    And |x, y| x & y, u8 u16 u32 u64;
    Or |x, y| x | y, u8 u16 u32 u64;
    Xor |x, y| x ^ y, u8 u16 u32 u64;
    Shl |x, y| x.wrapping_shl(y as u32), u8 u16 u32 u64;
    Shr |x, y| x.wrapping_shr(y as u32), i8 i16 i32 i64 u8 u16 u32 u64;
    FloorDiv |x, y| x.floor_div(y), i8 i16 i32 i64 u8 u16 u32 u64;
    Mod |x, y| x.floor_mod(y), i8 i16 i32 i64 u8 u16 u32 u64;
    Fmod |x, y| x.remainder(y), i8 i16 i32 i64 u8 u16 u32 u64;
}

compare! {
    Eq |x, y| x == y, f32 f64 u8 u16 u32 u64;
    Ne |x, y| x != y, f32 f64 u8 u16 u32 u64;
    Lt |x, y| x < y, f32 f64 i8 i16 i32 i64 u8 u16 u32 u64;
    Le |x, y| x <= y, f32 f64 i8 i16 i32 i64 u8 u16 u32 u64;
}

/// The conversion to a type.
pub struct To<B>(PhantomData<B>);

impl<A: Cast<B>, B: Copy> F1<A> for To<B> {
    type R = B;
    #[inline(always)]
    fn at(x: A) -> B {
        x.cast()
    }
}

impl F3<f32, f32> for Fma {
    type R = f32;
    #[inline(always)]
    fn at(x: f32, y: f32, z: f32) -> f32 {
        x.mul_add(y, z)
    }
}

impl F3<f64, f64> for Fma {
    type R = f64;
    #[inline(always)]
    fn at(x: f64, y: f64, z: f64) -> f64 {
        x.mul_add(y, z)
    }
}

impl<B: Copy> F3<u8, B> for Choose {
    type R = B;
    #[inline(always)]
    fn at(x: u8, y: B, z: B) -> B {
        if x != 0 { y } else { z }
    }
}

/// Loops compiled for one set of vector instructions.
pub trait Engine {
    /// The loops of a function of one value.
    fn f1<A: Copy, F: F1<A>>() -> Pair;
    /// The loops of a function of two values.
    fn f2<A: Copy, F: F2<A>>() -> Pair;
    /// The loops of a function of three values.
    fn f3<A: Copy, B: Copy, F: F3<A, B>>() -> Pair;
    /// Fills with the one element at a.
    fn splat<A: Copy>() -> Loop;
}

#[inline(always)]
unsafe fn input<'a, A>(a: *const u8, n: usize) -> &'a [A] {
    // SAFETY: the caller of a loop grants n aligned elements.
    unsafe { std::slice::from_raw_parts(a.cast(), n) }
}

#[inline(always)]
unsafe fn output<'a, R>(to: *mut u8, n: usize) -> &'a mut [MaybeUninit<R>] {
    // SAFETY: the caller of a loop grants n aligned elements that nothing else overlaps.
    unsafe { std::slice::from_raw_parts_mut(to.cast(), n) }
}

#[inline(always)]
fn map1<A: Copy, F: F1<A>>(to: &mut [MaybeUninit<F::R>], a: &[A]) {
    for (r, &x) in to.iter_mut().zip(a) {
        r.write(F::at(x));
    }
}

#[inline(always)]
fn map2<A: Copy, F: F2<A>>(to: &mut [MaybeUninit<F::R>], a: &[A], b: &[A]) {
    for ((r, &x), &y) in to.iter_mut().zip(a).zip(b) {
        r.write(F::at(x, y));
    }
}

#[inline(always)]
fn map3<A: Copy, B: Copy, F: F3<A, B>>(to: &mut [MaybeUninit<F::R>], a: &[A], b: &[B], c: &[B]) {
    for (((r, &x), &y), &z) in to.iter_mut().zip(a).zip(b).zip(c) {
        r.write(F::at(x, y, z));
    }
}

macro_rules! engine {
    ($(#[$doc:meta])+ $Name:ident, $module:ident $(, #[$feature:meta])?) => {
        $(#[$doc])+
        pub struct $Name;

        impl Engine for $Name {
            fn f1<A: Copy, F: F1<A>>() -> Pair {
                Pair { many: $module::many1::<A, F>, one: $module::one1::<A, F> }
            }
            fn f2<A: Copy, F: F2<A>>() -> Pair {
                Pair { many: $module::many2::<A, F>, one: $module::one2::<A, F> }
            }
            fn f3<A: Copy, B: Copy, F: F3<A, B>>() -> Pair {
                Pair { many: $module::many3::<A, B, F>, one: $module::one3::<A, B, F> }
            }
            fn splat<A: Copy>() -> Loop {
                $module::splat::<A>
            }
        }

        mod $module {
            use super::*;

            $(#[$feature])?
            pub unsafe fn many1<A: Copy, F: F1<A>>(to: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
                // SAFETY: as granted by the caller.
                unsafe { map1::<A, F>(output(to, n), input(a, n)) }
            }
            $(#[$feature])?
            pub unsafe fn many2<A: Copy, F: F2<A>>(to: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
                // SAFETY: as granted by the caller.
                unsafe { map2::<A, F>(output(to, n), input(a, n), input(b, n)) }
            }
            $(#[$feature])?
            pub unsafe fn many3<A: Copy, B: Copy, F: F3<A, B>>(to: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
                // SAFETY: as granted by the caller.
                unsafe { map3::<A, B, F>(output(to, n), input(a, n), input(b, n), input(c, n)) }
            }
            $(#[$feature])?
            pub unsafe fn one1<A: Copy, F: F1<A>>(to: *mut u8, a: *const u8, _: *const u8, _: *const u8, _: usize) {
                // SAFETY: as granted by the caller.
                unsafe { to.cast::<F::R>().write(F::at(*a.cast::<A>())) }
            }
            $(#[$feature])?
            pub unsafe fn one2<A: Copy, F: F2<A>>(to: *mut u8, a: *const u8, b: *const u8, _: *const u8, _: usize) {
                // SAFETY: as granted by the caller.
                unsafe { to.cast::<F::R>().write(F::at(*a.cast::<A>(), *b.cast::<A>())) }
            }
            $(#[$feature])?
            pub unsafe fn one3<A: Copy, B: Copy, F: F3<A, B>>(to: *mut u8, a: *const u8, b: *const u8, c: *const u8, _: usize) {
                // SAFETY: as granted by the caller.
                unsafe { to.cast::<F::R>().write(F::at(*a.cast::<A>(), *b.cast::<B>(), *c.cast::<B>())) }
            }
            $(#[$feature])?
            pub unsafe fn splat<A: Copy>(to: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
                // SAFETY: as granted by the caller; the element is read before the places are written.
                unsafe {
                    let x = *a.cast::<A>();
                    output(to, n).fill(MaybeUninit::new(x));
                }
            }
        }
    };
}

engine!(
    /// What every processor of the architecture has.
    Portable,
    portable
);

#[cfg(target_arch = "x86_64")]
engine!(
    /// AVX2 with FMA.
    Avx2,
    avx2,
    #[target_feature(enable = "avx2,fma")]
);

/// Runs an expression with `$E` bound to the engine of an `Isa`, which the processor has. Vectors of half the width do for AVX-512: machine code
/// takes the place of kernels that run for long.
macro_rules! with_engine {
    ($isa:expr, $E:ident => $e:expr) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx2 => {
                type $E = Avx2;
                $e
            }
            _ => {
                type $E = Portable;
                $e
            }
        }
    };
}

/// The loop that fills with one element of a size.
pub fn splat(isa: Isa, size: usize) -> Loop {
    with_engine!(isa.min(Isa::machine()), E => match size {
        1 => E::splat::<u8>(),
        2 => E::splat::<u16>(),
        4 => E::splat::<u32>(),
        _ => E::splat::<u64>(),
    })
}

/// The loops of an operation.
pub fn pick(isa: Isa, inst: &crate::kernel::Inst, from: crate::types::DType) -> Pair {
    with_engine!(isa.min(Isa::machine()), E => super::table::pick::<E>(inst, from))
}

/// The loops that copy elements of a size.
pub fn copy(size: usize) -> Pair {
    match size {
        1 => copy_of::<u8>(),
        2 => copy_of::<u16>(),
        4 => copy_of::<u32>(),
        _ => copy_of::<u64>(),
    }
}

fn copy_of<T: Copy>() -> Pair {
    unsafe fn many<T: Copy>(to: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
        // SAFETY: as granted by the caller; the places may overlap.
        unsafe { std::ptr::copy(a.cast::<T>(), to.cast::<T>(), n) }
    }
    unsafe fn one<T: Copy>(to: *mut u8, a: *const u8, _: *const u8, _: *const u8, _: usize) {
        // SAFETY: as granted by the caller.
        unsafe { to.cast::<T>().write(*a.cast::<T>()) }
    }
    Pair { many: many::<T>, one: one::<T> }
}

/// The loop that reads elements of a size that lie apart; by how many elements lies at b, an i64.
pub fn gathered(size: usize) -> Loop {
    unsafe fn many<T: Copy>(to: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        // SAFETY: as granted by the caller.
        unsafe {
            let (first, by) = (a.cast::<T>(), *b.cast::<i64>() as isize);
            let rows = output::<T>(to, n).iter_mut().enumerate();
            rows.for_each(|(l, r)| *r = MaybeUninit::new(*first.wrapping_offset(l as isize * by)));
        }
    }
    match size {
        1 => many::<u8>,
        2 => many::<u16>,
        4 => many::<u32>,
        _ => many::<u64>,
    }
}

/// The loop that writes elements of a size as far apart.
pub fn scattered(size: usize) -> Loop {
    unsafe fn many<T: Copy>(to: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        // SAFETY: as granted by the caller, also of the elements that lie so far apart.
        unsafe {
            let (first, by) = (to.cast::<T>(), *b.cast::<i64>() as isize);
            let rows = input::<T>(a, n).iter().enumerate();
            rows.for_each(|(l, &x)| first.wrapping_offset(l as isize * by).write(x));
        }
    }
    match size {
        1 => many::<u8>,
        2 => many::<u16>,
        4 => many::<u32>,
        _ => many::<u64>,
    }
}

/// The loops that read elements of a size from a table at a, those with the numbers at b; the number of the last one lies at c.
pub fn gather(size: usize) -> Pair {
    match size {
        1 => gather_of::<u8>(),
        2 => gather_of::<u16>(),
        4 => gather_of::<u32>(),
        _ => gather_of::<u64>(),
    }
}

fn gather_of<T: Copy>() -> Pair {
    unsafe fn many<T: Copy>(to: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
        // SAFETY: as granted by the caller, and that the table has as many elements as c says.
        unsafe {
            let (table, last) = (a.cast::<T>(), *c.cast::<u64>());
            let pairs = output::<T>(to, n).iter_mut().zip(input::<u64>(b, n));
            pairs.for_each(|(r, &at)| *r = MaybeUninit::new(*table.add(at.min(last) as usize)));
        }
    }
    unsafe fn one<T: Copy>(to: *mut u8, a: *const u8, b: *const u8, c: *const u8, _: usize) {
        // SAFETY: as granted by the caller.
        unsafe { many::<T>(to, a, b, c, 1) }
    }
    Pair { many: many::<T>, one: one::<T> }
}

/// The loop that writes an element of a table, whose number lies at a, at most the one at c; what it writes lies at b.
pub fn scatter(size: usize) -> Loop {
    unsafe fn one<T: Copy>(to: *mut u8, a: *const u8, b: *const u8, c: *const u8, _: usize) {
        // SAFETY: as granted by the caller, and that the table has as many elements as c says.
        unsafe {
            let at = (*a.cast::<u64>()).min(*c.cast::<u64>());
            *to.cast::<T>().add(at as usize) = *b.cast::<T>();
        }
    }
    match size {
        1 => one::<u8>,
        2 => one::<u16>,
        4 => one::<u32>,
        _ => one::<u64>,
    }
}

/// The loops that call the function whose address lies at b, or at c after a second argument at b.
pub fn call(arity: usize) -> Pair {
    type Fn1 = extern "C" fn(f64) -> f64;
    type Fn2 = extern "C" fn(f64, f64) -> f64;
    unsafe fn many1(to: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        // SAFETY: as granted by the caller, and that an address of such a function lies at b.
        unsafe {
            let f = *b.cast::<Fn1>();
            output::<f64>(to, n).iter_mut().zip(input::<f64>(a, n)).for_each(|(r, &x)| *r = MaybeUninit::new(f(x)));
        }
    }
    unsafe fn one1(to: *mut u8, a: *const u8, b: *const u8, c: *const u8, _: usize) {
        // SAFETY: as granted by the caller.
        unsafe { many1(to, a, b, c, 1) }
    }
    unsafe fn many2(to: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
        // SAFETY: as granted by the caller, and that an address of such a function lies at c.
        unsafe {
            let f = *c.cast::<Fn2>();
            let pairs = input::<f64>(a, n).iter().zip(input::<f64>(b, n));
            output::<f64>(to, n).iter_mut().zip(pairs).for_each(|(r, (&x, &y))| *r = MaybeUninit::new(f(x, y)));
        }
    }
    unsafe fn one2(to: *mut u8, a: *const u8, b: *const u8, c: *const u8, _: usize) {
        // SAFETY: as granted by the caller.
        unsafe { many2(to, a, b, c, 1) }
    }
    if arity == 1 { Pair { many: many1, one: one1 } } else { Pair { many: many2, one: one2 } }
}
