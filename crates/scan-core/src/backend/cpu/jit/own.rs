//! Memory of the loops in a kernel's steps: each thread keeps what the largest one so far needed.

use crate::kernel::OWN;
use crate::types::memory;
use std::cell::Cell;

/// So many bytes, which begin where memory of a loop's own may.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u8; OWN]);

thread_local! {
    static KEPT: Cell<Vec<Line>> = const { Cell::new(vec![]) };
}

/// Runs something with so many bytes that nobody else of the thread uses meanwhile; null where none are needed. Where they cannot be had the thread
/// unwinds.
pub fn with<T>(bytes: usize, run: impl FnOnce(*mut u8) -> T) -> T {
    if bytes == 0 {
        return run(std::ptr::null_mut());
    }
    let mut lines = KEPT.take();
    // Of what is not written pages cost nothing.
    memory::reserve(&mut lines, bytes.div_ceil(size_of::<Line>()));
    let result = run(lines.as_mut_ptr().cast());
    KEPT.set(lines);
    result
}
