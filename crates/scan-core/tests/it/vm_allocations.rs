//! The vm allocates for a call, never for a step.

use scan_core::backend::cpu::Memory;
use scan_core::backend::cpu::code::{self, Operand};
use scan_core::backend::cpu::{isa::Isa, vm};
use scan_core::kernel::{Bin, Builder, Kernel, Lane};
use scan_core::types::DType;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what a thread allocates.
struct Counting;

thread_local! {
    pub static COUNT: Cell<usize> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The most bytes that this thread held at a time while `f` ran, beyond those it held before.
pub fn peak(f: impl FnOnce()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    f();
    (PEAK.get() - before) as usize
}

/// How often this thread allocates while `f` runs.
pub fn counted(f: impl FnOnce()) -> usize {
    let before = COUNT.get();
    f();
    COUNT.get() - before
}

fn held(bytes: isize) {
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: all is left to the system's allocator; the counters allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|c| c.set(c.get() + 1));
        held(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        held(-(layout.size() as isize));
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// s ← s · x[t] + step, stored to y, for as many values as asked for.
fn kernel(values: usize) -> Kernel {
    let mut b = Builder::new();
    let (x, s, y) = (b.mem(DType::F64, Lane::Unit), b.mem(DType::F64, Lane::Unit), b.mem(DType::F64, Lane::Unit));
    let ((id, old), x) = (b.carry(s), b.load(x));
    let step = b.step();
    let t = b.convert(step, DType::F64);
    let mut new = old;
    for _ in 0..values {
        let product = b.bin(Bin::Mul, new, x);
        new = b.bin(Bin::Add, product, t);
    }
    b.set_next(id, new);
    b.store(y, new);
    b.finish()
}

fn allocations(kernel: &Kernel, isa: Isa, lanes: usize, steps: usize) -> usize {
    let code = vm::compile(kernel, isa);
    let (mut x, mut s, mut y) = (vec![0.5f64; lanes], vec![1.0f64; lanes], vec![0.0f64; lanes * steps]);
    let operand = |v: &mut [f64], stride| {
        // SAFETY: plain bytes, which `Cell<u8>` are as well; the vectors live as long as the test.
        let cells = unsafe { std::slice::from_raw_parts(v.as_mut_ptr().cast::<Cell<u8>>(), 8 * v.len()) };
        Operand { memory: Memory::Write(cells), offset: 0, stride }
    };
    let operands = [operand(&mut x, 0), operand(&mut s, 0), operand(&mut y, 8 * lanes as isize)];
    let mut counts = [0; 2];
    for count in &mut counts {
        let before = COUNT.get();
        assert_eq!(code::run(&*code, kernel, &operands, lanes, steps, 0), steps);
        *count = COUNT.get() - before;
    }
    assert!(counts[1] <= counts[0], "{counts:?}");
    counts[1]
}

#[test]
fn steps_allocate_nothing() {
    let before = COUNT.get();
    drop(std::hint::black_box(vec![1u8; 100]));
    assert_eq!(COUNT.get(), before + 1, "the counter counts");
    for isa in Isa::available() {
        for lanes in [1, 2, 700] {
            let counts: Vec<usize> = [1, 10, 300].iter().map(|&steps| allocations(&kernel(4), isa, lanes, steps)).collect();
            assert_eq!(counts, [0, 0, 0], "{isa:?}, {lanes} lanes");
        }
    }
}
