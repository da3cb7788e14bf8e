//! Times compiled kernels with many lanes: `cargo bench -p scan-core --bench kernels [-- word]` (only kernels whose name has the
//! word). Best of many runs; RSCAN_ISA chooses the instruction set.

use scan_core::backend::cpu::Memory;
use scan_core::backend::cpu::code::Operand;
use scan_core::backend::cpu::{Code, Isa, Refusal, code};
use scan_core::kernel::record::Builder;
use scan_core::kernel::{Bin, Kernel, Lane, Reg, Un};
use scan_core::types::DType;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// A kernel, and what one run of it is given.
struct Bench {
    name: String,
    kernel: Kernel,
    lanes: usize,
    steps: usize,
    /// Per operand: bytes from one step to the next.
    strides: Vec<isize>,
    /// What it is compared with, in ns per step: the goal.
    goal: f64,
}

/// Bytes that begin where a line of the cache begins.
struct Aligned(Vec<[u64; 8]>);

impl Aligned {
    fn cells(&mut self) -> &[Cell<u8>] {
        let n = size_of_val(self.0.as_slice());
        // SAFETY: words are plain data, borrowed mutably.
        unsafe { std::slice::from_raw_parts(self.0.as_mut_ptr().cast(), n) }
    }
}

/// Memory of an operand, filled with numbers between 0.25 and 0.75.
fn memory(bench: &Bench, mem: usize) -> Aligned {
    let m = bench.kernel.mems.iter().nth(mem).expect("an operand");
    let row = if m.lane == Lane::Unit { bench.lanes } else { 1 } * m.dtype.size();
    let bytes = row + bench.strides[mem].unsigned_abs() * (bench.steps - 1);
    let mut out = Aligned(vec![[0; 8]; bytes.div_ceil(64)]);
    let number = |i: usize| 0.25 + 0.5 * ((i * 7919 % 1000) as f64 / 1000.0);
    for (line, words) in out.0.iter_mut().enumerate() {
        for (w, word) in words.iter_mut().enumerate() {
            let i = line * 8 + w;
            *word = match m.dtype {
                DType::F64 => number(i).to_bits(),
                _ => u64::from((number(2 * i) as f32).to_bits()) | u64::from((number(2 * i + 1) as f32).to_bits()) << 32,
            };
        }
    }
    out
}

#[cfg(target_arch = "x86_64")]
fn compile(kernel: &Kernel, isa: Isa, lanes: usize) -> Result<Box<dyn Code>, Refusal> {
    code_of(kernel, isa, lanes)
}

#[cfg(target_arch = "x86_64")]
use scan_core::backend::cpu::emit_x64::compile as code_of;

#[cfg(not(target_arch = "x86_64"))]
fn compile(_: &Kernel, _: Isa, _: usize) -> Result<Box<dyn Code>, Refusal> {
    Err(Refusal("this processor is no x86-64".to_string()))
}

fn time(bench: &Bench, isa: Isa) {
    let began = Instant::now();
    let compiled = match compile(&bench.kernel, isa, bench.lanes) {
        Ok(compiled) => compiled,
        Err(Refusal(why)) => return println!("{:<24} refused: {why}", bench.name),
    };
    let compiling = began.elapsed();
    let mut memories: Vec<Aligned> = (0..bench.kernel.mems.len()).map(|m| memory(bench, m)).collect();
    let cells: Vec<&[Cell<u8>]> = memories.iter_mut().map(Aligned::cells).collect();
    let operands: Vec<Operand> = cells
        .iter()
        .zip(&bench.strides)
        .map(|(c, &stride)| Operand { memory: Memory::Write(c), offset: if stride < 0 { c.len() } else { 0 }, stride })
        .collect();
    let once = || code::run(compiled.as_ref(), &bench.kernel, &operands, bench.lanes, bench.steps, 0);
    once();
    let mut best = Duration::MAX;
    let start = Instant::now();
    let each = (Duration::from_micros(20).as_nanos() / best_of_one(&once).as_nanos().max(1)).max(1) as u32;
    while start.elapsed() < Duration::from_millis(600) {
        let run = Instant::now();
        (0..each).for_each(|_| _ = once());
        best = best.min(run.elapsed() / each);
    }
    let (total, step) = (best.as_secs_f64() * 1e6, best.as_secs_f64() * 1e9 / bench.steps as f64);
    let ratio = step / bench.goal;
    let per_lane = step / bench.lanes as f64;
    println!(
        "{:<24} {step:>12.2} ns/step {per_lane:>7.3} ns/lane {total:>10.1} µs   {ratio:.2} of the goal   {compiling:.0?} to compile",
        bench.name
    );
}

fn best_of_one(once: &dyn Fn() -> usize) -> Duration {
    let run = Instant::now();
    once();
    run.elapsed()
}

fn state(b: &mut Builder, dtype: DType) -> (scan_core::kernel::CarryId, Reg) {
    let mem = b.mem(dtype, Lane::Unit);
    b.carry(mem)
}

/// r ← r · a
fn power(lanes: usize) -> Bench {
    let mut b = Builder::new();
    let (carry, r) = state(&mut b, DType::F64);
    let a = b.mem(DType::F64, Lane::Unit);
    let a = b.load(a);
    let next = b.bin(Bin::Mul, r, a);
    b.set_next(carry, next);
    Bench { name: format!("power f64 {lanes}"), kernel: b.finish(), lanes, steps: 1000, strides: vec![0, 0], goal: 45.0 }
}

/// c ← c + x[t], every row kept
fn cumsum(lanes: usize) -> Bench {
    let mut b = Builder::new();
    let (carry, c) = state(&mut b, DType::F64);
    let (x, y) = (b.mem(DType::F64, Lane::Unit), b.mem(DType::F64, Lane::Unit));
    let x = b.load(x);
    let next = b.bin(Bin::Add, c, x);
    b.set_next(carry, next);
    b.store(y, next);
    let row = lanes as isize * 8;
    Bench { name: format!("cumsum f64 {lanes}"), kernel: b.finish(), lanes, steps: 10_000, strides: vec![0, row, row], goal: 5.0 }
}

/// h ← a[t] · h + b[t], every row kept
fn linrec(lanes: usize, steps: usize) -> Bench {
    let mut b = Builder::new();
    let (carry, h) = state(&mut b, DType::F32);
    let mems = [0; 3].map(|_| b.mem(DType::F32, Lane::Unit));
    let (x, y) = (b.load(mems[0]), b.load(mems[1]));
    let next = b.fma(x, h, y);
    b.set_next(carry, next);
    b.store(mems[2], next);
    let row = lanes as isize * 4;
    Bench { name: format!("linrec f32 {lanes}x{steps}"), kernel: b.finish(), lanes, steps, strides: vec![0, row, row, row], goal: 21.0 }
}

/// eˣ of f64 by hand: |x| below 700.
fn exp(b: &mut Builder, x: Reg) -> Reg {
    let num = |b: &mut Builder, v: f64| b.constant(DType::F64, v);
    let scale = num(b, std::f64::consts::LOG2_E);
    let y = b.bin(Bin::Mul, x, scale);
    let n = b.un(Un::Round, y);
    let (high, low) = (num(b, -6.931_471_803_691_238e-1), num(b, -1.908_214_929_270_587_7e-10));
    let r = b.fma(n, high, x);
    let r = b.fma(n, low, r);
    let mut factorial = 39_916_800.0f64;
    let mut p = num(b, 1.0 / factorial);
    for k in (0..11u32).rev() {
        factorial /= f64::from(k + 1);
        let c = num(b, 1.0 / factorial);
        p = b.fma(p, r, c);
    }
    // n + 1.5 · 2⁵² has n in its low bits, from where it goes to those of the exponent.
    let magic = num(b, 6_755_399_441_055_744.0);
    let n = b.bin(Bin::Add, n, magic);
    let n = b.bits(n, DType::I64);
    let width = b.integer(DType::I64, 52);
    let n = b.bin(Bin::Shl, n, width);
    let p = b.bits(p, DType::I64);
    let p = b.bin(Bin::Add, p, n);
    b.bits(p, DType::F64)
}

/// h ← z·h + (1 − z)·x[t] with z = sigmoid(x[t]·w + h·u), every row kept
fn gate(lanes: usize, steps: usize, goal: f64) -> Bench {
    let mut b = Builder::new();
    let (carry, h) = state(&mut b, DType::F64);
    let mems = [0; 4].map(|_| b.mem(DType::F64, Lane::Unit));
    let (x, w, u) = (b.load(mems[0]), b.load(mems[1]), b.load(mems[2]));
    let (xw, one) = (b.bin(Bin::Mul, x, w), b.constant(DType::F64, 1.0));
    let a = b.fma(h, u, xw);
    let minus = b.un(Un::Neg, a);
    let e = exp(&mut b, minus);
    let e = b.bin(Bin::Add, one, e);
    let z = b.bin(Bin::Div, one, e);
    let rest = b.bin(Bin::Sub, one, z);
    let kept = b.bin(Bin::Mul, rest, x);
    let next = b.fma(z, h, kept);
    b.set_next(carry, next);
    b.store(mems[3], next);
    let row = lanes as isize * 8;
    Bench { name: format!("gate+sigmoid f64 {lanes}x{steps}"), kernel: b.finish(), lanes, steps, strides: vec![0, row, 0, 0, row], goal }
}

/// y ← x · a + b over an array
fn axpy(lanes: usize) -> Bench {
    let mut b = Builder::new();
    let mems = [0; 2].map(|_| b.mem(DType::F32, Lane::Unit));
    let x = b.load(mems[0]);
    let (a, c) = (b.constant(DType::F32, 1.5), b.constant(DType::F32, 0.25));
    let y = b.fma(x, a, c);
    b.store(mems[1], y);
    Bench { name: format!("x·a + b f32 {lanes}"), kernel: b.finish(), lanes, steps: 1, strides: vec![0, 0], goal: lanes as f64 * 0.4 }
}

/// Seven exponentials of f32, computed in f64
fn map(lanes: usize) -> Bench {
    let mut b = Builder::new();
    let mems = [0; 2].map(|_| b.mem(DType::F32, Lane::Unit));
    let x = b.load(mems[0]);
    let mut x = b.convert(x, DType::F64);
    for _ in 0..7 {
        let minus = b.un(Un::Neg, x);
        x = exp(&mut b, minus);
    }
    let y = b.convert(x, DType::F32);
    b.store(mems[1], y);
    Bench { name: format!("7 exp f32 {lanes}"), kernel: b.finish(), lanes, steps: 1, strides: vec![0, 0], goal: lanes as f64 * 7.0 * 0.34 }
}

fn main() {
    let word = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let isa = Isa::detect().unwrap_or(Isa::Portable);
    println!("{}", isa.name());
    let benches = [
        power(1000),
        power(64),
        cumsum(20),
        linrec(64, 100_000),
        linrec(64, 1000),
        gate(20, 1, 60.0),
        gate(20, 1000, 30.0),
        gate(100, 1000, 80.0),
        gate(1000, 300, 700.0),
        axpy(10_000_000),
        axpy(10_000),
        map(10_000),
        map(10_000_000),
    ];
    benches.iter().filter(|b| b.name.contains(&word)).for_each(|b| time(b, isa));
}
