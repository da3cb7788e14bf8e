//! Times the vm against plain loops: `cargo bench -p scan-core --bench vm`. Each figure is the best of many short runs, so that a
//! busy machine disturbs it little.

use scan_core::backend::cpu::Memory;
use scan_core::backend::cpu::code::{self, Operand};
use scan_core::backend::cpu::{Isa, team, vm};
use scan_core::kernel::{Bin, Builder, Kernel, Lane};
use scan_core::types::DType::F64;
use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

const STEPS: usize = 10_000;
const LANES: usize = 1_000_000;
const INSTRUCTIONS: usize = 10;

fn main() {
    println!("plain    one lane {:7.2} ns a step   map {:6.3} ns an element", plain_logistic(), plain_map());
    for isa in Isa::available() {
        let (one, map) = (logistic(isa), map(isa, 1));
        println!("{:8} one lane {one:7.2} ns a step   map {map:6.3} ns an element", isa.name());
    }
    let threads = team::size().expect("RSCAN_NUM_THREADS");
    println!("{threads} threads                         map {:6.3} ns an element", map(Isa::machine(), threads));
}

/// The best time of a run, in nanoseconds per unit.
fn best(units: usize, times: usize, mut run: impl FnMut()) -> f64 {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_nanos() as f64 / units as f64
    };
    (0..times).map(|_| time(&mut run)).fold(f64::INFINITY, f64::min)
}

fn operand(elements: &mut [f64]) -> Operand<'_> {
    // SAFETY: plain bytes, borrowed mutably, which `Cell<u8>` are as well.
    let bytes = unsafe { std::slice::from_raw_parts(elements.as_mut_ptr().cast::<Cell<u8>>(), size_of_val(elements)) };
    Operand { memory: Memory::Write(bytes), offset: 0, stride: 0 }
}

/// x ← r · x · (1 − x)
fn logistic_kernel() -> Kernel {
    let mut b = Builder::new();
    let x = b.mem(F64, Lane::Uniform);
    let (id, x) = b.carry(x);
    let (r, one) = (b.constant(F64, 3.7), b.constant(F64, 1.0));
    let (rx, rest) = (b.bin(Bin::Mul, r, x), b.bin(Bin::Sub, one, x));
    let next = b.bin(Bin::Mul, rx, rest);
    b.set_next(id, next);
    b.finish()
}

fn logistic(isa: Isa) -> f64 {
    let kernel = logistic_kernel();
    let (code, mut x) = (vm::compile(&kernel, isa), [0.3]);
    let operands = [operand(&mut x)];
    best(STEPS, 1000, || assert_eq!(code::run(&*code, &kernel, &operands, 1, STEPS, 0), STEPS))
}

fn plain_logistic() -> f64 {
    let (r, mut x) = (black_box(3.7), 0.3);
    best(STEPS, 1000, || {
        for _ in 0..STEPS {
            x = r * x * (1.0 - x);
        }
        black_box(x);
    })
}

/// y ← ((x · c + x) · c + x) …
fn map_kernel() -> Kernel {
    let mut b = Builder::new();
    let (x, y) = (b.mem(F64, Lane::Unit), b.mem(F64, Lane::Unit));
    let (x, c) = (b.load(x), b.constant(F64, 0.7));
    let value = (0..INSTRUCTIONS).fold(x, |v, i| if i % 2 == 0 { b.bin(Bin::Mul, v, c) } else { b.bin(Bin::Add, v, x) });
    b.store(y, value);
    b.finish()
}

fn map(isa: Isa, threads: usize) -> f64 {
    let kernel = map_kernel();
    let (code, mut x, mut y) = (vm::compile(&kernel, isa), vec![1.5; LANES], vec![0.0; LANES]);
    let operands = [operand(&mut x), operand(&mut y)];
    best(LANES, 50, || assert_eq!(team::run_parallel(&*code, &kernel, &operands, LANES, 1, 0, threads), 1))
}

fn plain_map() -> f64 {
    let (x, mut y) = (vec![1.5f64; LANES], vec![0.0; LANES]);
    best(LANES, 50, || {
        for (y, &x) in y.iter_mut().zip(&x) {
            *y = (0..INSTRUCTIONS).fold(x, |v, i| if i % 2 == 0 { v * 0.7 } else { v + x });
        }
        black_box(&y);
    })
}
