//! Memory that depends on data, and what happens where there is none.
//!
//! Whoever needs it gets it, or does not go on: the thread unwinds, silently, with [`Refused`], up to [`attempt`]. That is called
//! around the evaluation of each node, where the op and the user's line are known, around what lays out the memory of loops, and at the
//! border of functions. So hundreds of places that make arrays need not hand an error on that they know nothing about.
//!
//! ```
//! use scan_core::prelude::*;
//!
//! assert!(memory::possible(10, 8).is_ok());
//! assert_eq!(memory::filled(1.0, 3), [1.0; 3]);
//! ```

#[cfg(any(test, feature = "testing"))]
use crate::base::small;
use crate::base::{self, Diagnostic, Kind};
use crate::types::buffer;
use crate::types::zeroed::{Zero, zeroed};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;

/// Memory that was refused.
///
/// ```
/// use scan_core::prelude::*;
///
/// let refused = memory::possible(u128::MAX, 1).unwrap_err();
/// assert_eq!(refused.diagnostic("an array").code, "E0392");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory {
    /// How many bytes were asked for.
    pub bytes: u128,
    /// What the machine has, where it is less.
    pub machine: Option<u64>,
}

impl OutOfMemory {
    /// The error, `E0392`; `what` the memory is for.
    pub fn diagnostic(self, what: &str) -> Box<Diagnostic> {
        let title = format!("not enough memory for {what}: {} bytes{}", grouped(self.bytes), in_units(self.bytes));
        let error = Diagnostic::new(Kind::Memory, "E0392", title);
        match self.machine {
            Some(machine) => error.note(format!("the machine has {} bytes{}", grouped(machine.into()), in_units(machine.into()))),
            None => error,
        }
    }
}

/// Why a thread unwound up to [`attempt`].
#[derive(Debug)]
pub enum Refused {
    /// There is no memory.
    Memory(OutOfMemory),
    /// What a device reports from which elements were to be fetched.
    Device(Box<Diagnostic>),
}

impl Refused {
    /// The error; `what` the memory is for.
    pub fn diagnostic(self, what: &str) -> Box<Diagnostic> {
        match self {
            Refused::Memory(refused) => refused.diagnostic(what),
            Refused::Device(error) => error,
        }
    }
}

/// A number with a comma between thousands.
fn grouped(n: u128) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// ` (7.3 TiB)`; nothing for few bytes.
fn in_units(bytes: u128) -> String {
    let mut rest = bytes as f64 / 1024.0;
    for unit in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if rest < 1.0 {
            return String::new();
        }
        if rest < 1024.0 {
            return format!(" ({rest:.1} {unit})");
        }
        rest /= 1024.0;
    }
    format!(" ({rest:.1} EiB)")
}

/// A panic as an error, for borders that none leaves.
pub fn of_panic(payload: &(dyn std::any::Any + Send)) -> Box<Diagnostic> {
    match payload.downcast_ref::<Refused>() {
        Some(Refused::Memory(refused)) => return refused.diagnostic("a copy of an array"),
        Some(Refused::Device(error)) => return error.clone(),
        None => {}
    }
    let text = payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied());
    Diagnostic::internal(text.unwrap_or("a panic"))
}

/// Runs; memory that is refused meanwhile is an error. Other panics go on.
///
/// # Errors
/// What was refused.
pub fn attempt<T>(run: impl FnOnce() -> T) -> Result<T, Refused> {
    // What the run was writing is given up with it: arrays that it made, and the results of a call that ends.
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| match payload.downcast::<Refused>() {
        Ok(refused) => *refused,
        Err(other) => resume_unwind(other),
    })
}

/// As [`attempt`], for what has errors of its own; `what` tells what the memory is for.
///
/// # Errors
/// `E0392`; those of the run.
pub fn given<T>(what: impl FnOnce() -> String, run: impl FnOnce() -> base::Result<T>) -> base::Result<T> {
    attempt(run).unwrap_or_else(|refused| Err(refused.diagnostic(&what())))
}

/// Goes back to the nearest [`attempt`].
#[cold]
fn refuse(refused: OutOfMemory) -> ! {
    resume_unwind(Box::new(Refused::Memory(refused)))
}

/// The same where a device fails while its elements are read as if they were here.
#[cold]
pub fn fail(error: Box<Diagnostic>) -> ! {
    resume_unwind(Box::new(Refused::Device(error)))
}

/// Refuses an array of more bytes than can be addressed.
pub(super) fn refuse_elements(shape: &[usize], size: usize) -> ! {
    let bytes = shape.iter().fold(size as u128, |product, &n| product.saturating_mul(n as u128));
    refuse(OutOfMemory { bytes, machine: machine() })
}

/// Refuses an array of `n` elements of so many bytes, which are more than can be addressed or than the machine has.
///
/// # Errors
/// What is refused.
pub fn possible(n: u128, size: usize) -> Result<(), OutOfMemory> {
    let bytes = n.saturating_mul(size as u128);
    if bytes < WORTH_ASKING {
        return Ok(());
    }
    match machine() {
        Some(machine) if bytes > machine.into() => Err(OutOfMemory { bytes, machine: Some(machine) }),
        _ if bytes > isize::MAX as u128 => Err(OutOfMemory { bytes, machine: None }),
        _ => Ok(()),
    }
}

/// Fewer bytes are asked for without more ado.
const WORTH_ASKING: u128 = 1 << 28;

/// Refuses what is certain to fail, before anything is made: more than can be addressed, than the machine has, or than the system
/// gives now.
///
/// # Errors
/// What is refused.
pub fn foresee(n: u128, size: usize) -> Result<(), Refused> {
    possible(n, size).map_err(Refused::Memory)?;
    let bytes = n.saturating_mul(size as u128);
    if bytes < WORTH_ASKING && !is_refused(bytes as usize) {
        return Ok(());
    }
    attempt(|| drop(room::<u8>(bytes as usize)))
}

/// Bytes of memory and swap that there are at most for this process; `None` where the system does not tell. Read once.
fn machine() -> Option<u64> {
    static MACHINE: OnceLock<Option<u64>> = OnceLock::new();
    *MACHINE.get_or_init(|| {
        let info = std::fs::read_to_string("/proc/meminfo").ok()?;
        let swap = of_meminfo(&info, "SwapTotal:")?;
        let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
        Some(of_meminfo(&info, "MemTotal:")?.min(limit.unwrap_or(u64::MAX)).saturating_add(swap))
    })
}

/// A row of `/proc/meminfo`, in bytes.
fn of_meminfo(info: &str, name: &str) -> Option<u64> {
    let row = info.lines().find_map(|line| line.strip_prefix(name))?;
    row.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// True where a test wants so many bytes to be refused.
#[cfg(any(test, feature = "testing"))]
fn is_refused(bytes: usize) -> bool {
    bytes >= SMALL && small::refused_from().is_some_and(|from| bytes >= from)
}

/// True where a test wants so many bytes to be refused.
#[cfg(not(any(test, feature = "testing")))]
fn is_refused(_: usize) -> bool {
    false
}

/// What `get` gives for `n` elements of so many bytes; where it gives nothing, once more after memory that is kept for later was given
/// back.
fn obtain<T>(n: usize, size: usize, get: impl Fn() -> Option<T>) -> T {
    possible(n as u128, size).unwrap_or_else(|refused| refuse(refused));
    let bytes = n.saturating_mul(size);
    let refused = is_refused(bytes);
    if let Some(made) = Some(()).filter(|()| !refused).and_then(|()| get()) {
        return made;
    }
    buffer::release();
    match get() {
        Some(made) if !refused => made,
        _ => refuse(OutOfMemory { bytes: bytes as u128, machine: None }),
    }
}

/// Fewer bytes are had the ordinary way, which is quicker.
const SMALL: usize = 1 << 10;

/// True where so many elements are few bytes.
const fn is_small<T>(n: usize) -> bool {
    n <= SMALL && n * size_of::<T>() < SMALL
}

/// An empty vector with room for `n` elements.
pub fn room<T: Send + 'static>(n: usize) -> Vec<T> {
    if is_small::<T>(n) { Vec::with_capacity(n) } else { large_room(n) }
}

fn large_room<T: Send + 'static>(n: usize) -> Vec<T> {
    let fresh = || {
        let mut out = Vec::new();
        out.try_reserve_exact(n).ok().map(|()| out)
    };
    obtain(n, size_of::<T>(), || buffer::recycled(n).or_else(fresh))
}

/// `n` zeros (`false` for bool): in pages that are not touched, unless there is memory that was.
pub fn zeros<T: Zero + Default + Send + 'static>(n: usize) -> Vec<T> {
    let cleared = |mut kept: Vec<T>| {
        kept.resize(n, T::default());
        kept
    };
    if is_small::<T>(n) {
        vec![T::default(); n]
    } else {
        obtain(n, size_of::<T>(), || buffer::recycled(n).map(cleared).or_else(|| zeroed(n)))
    }
}

/// `n` times x.
pub fn filled<T: Clone + Send + 'static>(x: T, n: usize) -> Vec<T> {
    let mut out = room(n);
    out.resize(n, x);
    out
}

/// A copy.
#[inline]
pub fn copied<T: Copy + Send + 'static>(x: &[T]) -> Vec<T> {
    let mut out = room(x.len());
    out.extend_from_slice(x);
    out
}

/// Slices, one after the other.
pub fn joined<T: Copy + Send + 'static>(parts: &[Vec<T>]) -> Vec<T> {
    let mut out = room(parts.iter().map(Vec::len).sum());
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

/// The elements of an iterator.
pub fn collect<T: Send + 'static>(elements: impl Iterator<Item = T>) -> Vec<T> {
    let (least, most) = elements.size_hint();
    let mut out = room(least);
    if most == Some(least) {
        out.extend(elements);
        return out;
    }
    for x in elements {
        if out.len() == out.capacity() {
            reserve(&mut out, 1);
        }
        out.push(x);
    }
    out
}

/// Room for so many more elements, and for others to come where there is memory for them.
pub fn reserve<T>(vector: &mut Vec<T>, more: usize) {
    let n = vector.len().saturating_add(more);
    if n <= vector.capacity() {
        return;
    }
    possible(n as u128, size_of::<T>()).unwrap_or_else(|refused| refuse(refused));
    let bytes = n.saturating_mul(size_of::<T>());
    if !is_refused(bytes) {
        if vector.try_reserve(more).is_ok() {
            return;
        }
        buffer::release();
        if vector.try_reserve_exact(more).is_ok() {
            return;
        }
    }
    refuse(OutOfMemory { bytes: bytes as u128, machine: None })
}

/// Cut or filled to `n` elements.
pub fn resize<T: Clone>(vector: &mut Vec<T>, n: usize, x: T) {
    reserve(vector, n.saturating_sub(vector.len()));
    vector.resize(n, x);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Array, DType};

    #[test]
    fn refused_memory_comes_back_as_an_error() {
        let bytes = |refused| if let Refused::Memory(refused) = refused { refused.bytes } else { 0 };
        let refused = bytes(attempt(|| Array::zeros(DType::F64, &[1 << 40, 1 << 10])).expect_err("more than any machine has"));
        assert!((1 << 53..1 << 53 | 128).contains(&refused), "memory begins at a line of the cache: {refused}");
        let text = OutOfMemory { bytes: 1 << 53, machine: None }.diagnostic("`full`").title;
        assert_eq!(text, "not enough memory for `full`: 9,007,199,254,740,992 bytes (8.0 PiB)");
        let refused = attempt(|| Array::full(DType::F32, &[usize::MAX, usize::MAX], 1.0)).expect_err("no address for it");
        assert_eq!(bytes(refused), u128::MAX);
        assert!(attempt(|| 7).is_ok_and(|n| n == 7));
        let lost = attempt(|| fail(Diagnostic::internal("lost"))).map(|()| 0).expect_err("the device's own words");
        assert!(lost.diagnostic("an array").title.contains("lost"));
    }

    #[test]
    fn other_panics_go_on() {
        let payload = catch_unwind(|| attempt(|| resume_unwind(Box::new("another")))).expect_err("a panic");
        assert_eq!(payload.downcast_ref(), Some(&"another"));
    }

    #[test]
    fn tests_can_have_memory_refused() {
        let make = |n: usize| attempt(|| collect((0..n).filter(|i| i % 2 == 0)).len());
        assert!(make(5000).is_ok_and(|n| n == 2500));
        small::refusing_from(1 << 14, || {
            assert!(make(2000).is_ok_and(|n| n == 1000));
            assert!(make(5000).is_err_and(|refused| matches!(refused, Refused::Memory(refused) if refused.bytes >= 1 << 14)));
            assert!(attempt(|| zeros::<u8>(1 << 14)).is_err() && attempt(|| copied(&[1.0; 3])).is_ok());
            assert!(foresee(1 << 14, 1).is_err() && foresee(1 << 13, 1).is_ok());
        });
        assert!(make(5000).is_ok_and(|n| n == 2500));
    }

    #[test]
    fn cleared_memory_is_zero_and_counts_of_the_system_are_read() {
        assert!(zeros::<bool>(3000).iter().all(|x| !x) && zeros::<f64>(0).is_empty());
        assert_eq!(of_meminfo("MemTotal:  16 kB\nSwapTotal:   2 kB\n", "SwapTotal:"), Some(2048));
        assert!(machine().is_none_or(|bytes| bytes > 1 << 20));
    }
}
