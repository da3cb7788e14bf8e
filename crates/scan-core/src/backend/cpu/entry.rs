//! Functions of numbers as C calls them.

use super::Refusal;
#[cfg(feature = "jit")]
use super::jit::Thunk;
use crate::types::DType;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// A function of numbers, each as a word: the bits of a float64, those of a float32 in the low half, an int64.
pub trait Scalars: Send + Sync {
    /// How many numbers it takes.
    fn arity(&self) -> usize;
    /// The word of its result, for any number of words. It does not unwind.
    fn call(&self, args: &[u64]) -> u64;
}

/// Where C calls a function: addresses that are good as long as this lives.
pub struct Entry<S> {
    scalars: Arc<S>,
    thunk: Result<Thunk, Refusal>,
}

impl<S: Scalars> Entry<S> {
    /// For a function of numbers of such dtypes.
    pub fn new(scalars: S, params: &[DType], result: DType) -> Entry<S> {
        let scalars = Arc::new(scalars);
        let thunk = Thunk::new(params, result, invoke::<S>, Arc::as_ptr(&scalars).cast());
        Entry { scalars, thunk }
    }
    /// The function.
    pub fn scalars(&self) -> &S {
        &self.scalars
    }
    /// The address of a function of the numbers themselves, `double f(double, …)`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn address(&self) -> Result<usize, &Refusal> {
        self.thunk.as_ref().map(Thunk::address)
    }
    /// The address of `double f(int n, double *x, void *context)`, where all numbers are float64.
    pub fn list_address(&self) -> usize {
        list::<S> as *const () as usize
    }
    /// The address of `int f(double *x, intptr_t n, double *result, void *context)`, likewise. It returns 1.
    pub fn window_address(&self) -> usize {
        window::<S> as *const () as usize
    }
    /// What the last two are given as their context.
    pub fn context(&self) -> usize {
        Arc::as_ptr(&self.scalars).addr()
    }
}

/// # Safety
/// `context` is that of an entry that lives; as many words as its function takes lie at `args`, and there is room for one at `result`.
unsafe extern "C" fn invoke<S: Scalars>(context: *const c_void, args: *const u64, result: *mut u64) {
    // SAFETY: by contract, here and below; a thunk of the entry itself calls this.
    let scalars = unsafe { &*context.cast::<S>() };
    let args = unsafe { std::slice::from_raw_parts(args, scalars.arity()) };
    unsafe { result.write(scalars.call(args)) };
}

/// # Safety
/// `context` is that of an entry of float64 that lives, and `n` numbers lie at `x`.
unsafe extern "C" fn list<S: Scalars>(n: c_int, x: *const f64, context: *const c_void) -> f64 {
    // SAFETY: by contract.
    unsafe { at(context.cast::<S>(), x, usize::try_from(n).unwrap_or(0)) }
}

/// # Safety
/// As of [`list`], and there is room for a number at `result`.
unsafe extern "C" fn window<S: Scalars>(x: *const f64, n: isize, result: *mut f64, context: *const c_void) -> c_int {
    // SAFETY: by contract.
    unsafe { result.write(at(context.cast::<S>(), x, usize::try_from(n).unwrap_or(0))) };
    1
}

/// # Safety
/// As of [`list`].
unsafe fn at<S: Scalars>(scalars: *const S, x: *const f64, n: usize) -> f64 {
    // SAFETY: by contract; the bits of a float64 are a word, equally aligned.
    let words = if n == 0 || x.is_null() { &[][..] } else { unsafe { std::slice::from_raw_parts(x.cast::<u64>(), n) } };
    f64::from_bits(unsafe { &*scalars }.call(words))
}

/// What stands for a thunk in a build without machine code: there is none.
#[cfg(not(feature = "jit"))]
enum Thunk {}

#[cfg(not(feature = "jit"))]
impl Thunk {
    fn new(
        _: &[DType],
        _: DType,
        _: unsafe extern "C" fn(*const c_void, *const u64, *mut u64),
        _: *const c_void,
    ) -> Result<Thunk, Refusal> {
        Err(super::no_machine_code())
    }
    fn address(&self) -> usize {
        match *self {}
    }
}
