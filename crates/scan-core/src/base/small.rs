//! Portions far too small to pay, for tests: programs of a few lanes run in several threads, those of a few steps in several
//! blocks, and little memory is refused. What a thread asks for here holds for its own calls alone.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    static LANES: Cell<Option<usize>> = const { Cell::new(None) };
    static BLOCKS: Cell<Option<usize>> = const { Cell::new(None) };
    static REFUSED: Cell<Option<usize>> = const { Cell::new(None) };
    static SIDES: Cell<Option<usize>> = const { Cell::new(None) };
}
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// What a switch was before: it is that again when this goes.
struct Before(&'static std::thread::LocalKey<Cell<Option<usize>>>, Option<usize>);

impl Drop for Before {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Runs a job, in which calls of kernels are cut into parts of so many lanes, for two threads.
pub fn parts_of<T>(lanes: usize, job: impl FnOnce() -> T) -> T {
    let _before = Before(&LANES, LANES.replace(Some(lanes)));
    job()
}

/// Lanes of a part, where calls of kernels are to be cut.
pub fn lanes_of_part() -> Option<usize> {
    LANES.get()
}

/// Counts a call of a kernel that runs in such parts.
pub fn count_call() {
    CALLS.fetch_add(1, Ordering::Relaxed);
}

/// How many calls of this process ran in such parts.
pub fn calls() -> usize {
    CALLS.load(Ordering::Relaxed)
}

/// Runs a job, in which loops compute rows ahead in blocks of two where they can; the number of these loops.
pub fn blocks_of_two<T>(job: impl FnOnce() -> T) -> (T, usize) {
    let _before = Before(&BLOCKS, BLOCKS.replace(Some(0)));
    let result = job();
    (result, BLOCKS.get().unwrap_or(0))
}

/// True where loops of one lane are to run in stages wherever they can: as the environment asks, `RSCAN_STAGES=1`.
pub fn in_stages() -> bool {
    static ASKED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ASKED.get_or_init(|| std::env::var("RSCAN_STAGES").is_ok_and(|v| v == "1"))
}

/// Runs a job, in which kernels are compiled with a jump over whatever only one side of a choice needs.
pub fn jumps<T>(job: impl FnOnce() -> T) -> T {
    let _before = Before(&SIDES, SIDES.replace(Some(0)));
    job()
}

/// True where kernels are to jump over whatever only one side of a choice needs: here, or everywhere, as the environment asks, `RSCAN_JUMPS=1`.
pub fn in_jumps() -> bool {
    static ASKED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    SIDES.get().is_some() || *ASKED.get_or_init(|| std::env::var("RSCAN_JUMPS").is_ok_and(|v| v == "1"))
}

/// True where loops are to compute rows in blocks of two.
pub fn in_blocks() -> bool {
    BLOCKS.get().is_some()
}

/// Counts a loop that does.
pub fn count_blocks() {
    BLOCKS.set(BLOCKS.get().map(|n| n + 1));
}

/// Runs a job in which memory of so many bytes and more is refused, but for the smallest.
pub fn refusing_from<T>(bytes: usize, job: impl FnOnce() -> T) -> T {
    let _before = Before(&REFUSED, REFUSED.replace(Some(bytes)));
    job()
}

/// From how many bytes on memory is refused, where it is.
pub fn refused_from() -> Option<usize> {
    REFUSED.get()
}
