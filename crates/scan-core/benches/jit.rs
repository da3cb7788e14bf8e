//! How fast compiled loops run, and how long compiling takes: `cargo bench -p scan-core --bench jit` (`-- --listing` prints their code).
//! Each kernel stands against a Rust function of the same arithmetic, compiled into this program.

use scan_core::backend::cpu::Memory;
use scan_core::backend::cpu::code::{Operand, cells};
use scan_core::backend::cpu::{jit, run};
use scan_core::kernel::{Bin, Carry, CarryId, Cmp, Inst, Kernel, Lane, Mem, MemId, Op, Reg, Store};
use scan_core::types::{Array, DType};
use std::hint::black_box;
use std::time::Instant;

const F: DType = DType::F64;

/// A kernel of f64 values under construction.
#[derive(Default)]
struct Step(Kernel);

impl Step {
    fn push(&mut self, op: Op, dtype: DType) -> Reg {
        self.0.body.push(Inst { op, dtype })
    }
    fn mem(&mut self) -> MemId {
        self.0.mems.push(Mem::new(F, Lane::Uniform))
    }
    fn num(&mut self, x: f64) -> Reg {
        self.push(Op::Const(x.to_bits()), F)
    }
    fn load(&mut self) -> Reg {
        let m = self.mem();
        self.push(Op::Load(m), F)
    }
    fn carry(&mut self) -> Reg {
        let mem = self.mem();
        let id = self.0.carries.push(Carry { mem, next: Reg(0) });
        self.push(Op::Carry(id), F)
    }
    fn next(&mut self, id: u32, value: Reg) {
        self.0.carries[CarryId(id)].next = value;
    }
    fn store(&mut self, value: Reg) {
        let mem = self.mem();
        self.0.stores.push(Store { mem, value, at: None });
    }
    fn bin(&mut self, bin: Bin, x: Reg, y: Reg) -> Reg {
        self.push(Op::Bin(bin, x, y), F)
    }
    fn add(&mut self, x: Reg, y: Reg) -> Reg {
        self.bin(Bin::Add, x, y)
    }
    fn sub(&mut self, x: Reg, y: Reg) -> Reg {
        self.bin(Bin::Sub, x, y)
    }
    fn mul(&mut self, x: Reg, y: Reg) -> Reg {
        self.bin(Bin::Mul, x, y)
    }
}

fn logistic(trace: bool) -> Kernel {
    let mut k = Step::default();
    let x = k.carry();
    let (r, one) = (k.num(3.9), k.num(1.0));
    let (rx, rest) = (k.mul(r, x), k.sub(one, x));
    let next = k.mul(rx, rest);
    k.next(0, next);
    if trace {
        k.store(next);
    }
    k.0
}

fn logistic_host(mut x: f64, n: usize) -> f64 {
    let r = black_box(3.9);
    for _ in 0..n {
        x = (r * x) * (1.0 - x);
    }
    x
}

fn logistic_trace_host(mut x: f64, out: &mut [f64]) {
    let r = black_box(3.9);
    for o in out {
        x = (r * x) * (1.0 - x);
        *o = x;
    }
}

const GROWTH: f64 = 1.0001;
const LIMIT: f64 = 1e6;

fn until() -> Kernel {
    let mut k = Step::default();
    let x = k.carry();
    let (growth, limit) = (k.num(GROWTH), k.num(LIMIT));
    let next = k.mul(x, growth);
    k.0.stop = Some(k.push(Op::Cmp(Cmp::Lt, limit, next), DType::Bool));
    k.next(0, next);
    k.0
}

fn until_host(mut x: f64, n: usize) -> usize {
    let (growth, limit) = (black_box(GROWTH), black_box(LIMIT));
    for i in 0..n {
        x *= growth;
        if x > limit {
            return i + 1;
        }
    }
    n
}

/// The derivative of the Lorenz system.
fn flow(k: &mut Step, [x, y, z]: [Reg; 3], [sigma, rho, beta]: [Reg; 3]) -> [Reg; 3] {
    let (yx, rz, xy, bz) = (k.sub(y, x), k.sub(rho, z), k.mul(x, y), k.mul(beta, z));
    let xrz = k.mul(x, rz);
    [k.mul(sigma, yx), k.sub(xrz, y), k.sub(xy, bz)]
}

fn lorenz() -> Kernel {
    let mut k = Step::default();
    let s = [k.carry(), k.carry(), k.carry()];
    let params = [k.num(10.0), k.num(28.0), k.num(8.0 / 3.0)];
    let (dt, half, sixth, two) = (k.num(0.01), k.num(0.005), k.num(0.01 / 6.0), k.num(2.0));
    let along = |k: &mut Step, h: Reg, d: [Reg; 3]| -> [Reg; 3] {
        std::array::from_fn(|i| {
            let hd = k.mul(h, d[i]);
            k.add(s[i], hd)
        })
    };
    let k1 = flow(&mut k, s, params);
    let at = along(&mut k, half, k1);
    let k2 = flow(&mut k, at, params);
    let at = along(&mut k, half, k2);
    let k3 = flow(&mut k, at, params);
    let at = along(&mut k, dt, k3);
    let k4 = flow(&mut k, at, params);
    for i in 0..3 {
        let middle = k.add(k2[i], k3[i]);
        let (twice, ends) = (k.mul(two, middle), k.add(k1[i], k4[i]));
        let sum = k.add(ends, twice);
        let change = k.mul(sixth, sum);
        let next = k.add(s[i], change);
        k.next(i as u32, next);
        k.store(next);
    }
    k.0
}

fn flow_host([x, y, z]: [f64; 3], [sigma, rho, beta]: [f64; 3]) -> [f64; 3] {
    [sigma * (y - x), x * (rho - z) - y, x * y - beta * z]
}

fn lorenz_host(mut s: [f64; 3], out: [&mut [f64]; 3]) {
    let params = black_box([10.0, 28.0, 8.0 / 3.0]);
    let (dt, half, sixth) = black_box((0.01, 0.005, 0.01 / 6.0));
    let [a, b, c] = out;
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        let along = |h: f64, d: [f64; 3]| -> [f64; 3] { std::array::from_fn(|i| s[i] + h * d[i]) };
        let k1 = flow_host(s, params);
        let k2 = flow_host(along(half, k1), params);
        let k3 = flow_host(along(half, k2), params);
        let k4 = flow_host(along(dt, k3), params);
        s = std::array::from_fn(|i| s[i] + sixth * ((k1[i] + k4[i]) + 2.0 * (k2[i] + k3[i])));
        (*a, *b, *c) = (s[0], s[1], s[2]);
    }
}

fn garch() -> Kernel {
    let mut k = Step::default();
    let (omega, alpha, beta, r) = (k.load(), k.load(), k.load(), k.load());
    let h = k.carry();
    let r2 = k.mul(r, r);
    let (ar, bh) = (k.mul(alpha, r2), k.mul(beta, h));
    let sum = k.add(omega, ar);
    let next = k.add(sum, bh);
    k.next(0, next);
    k.store(next);
    k.0
}

fn garch_host([omega, alpha, beta]: [f64; 3], mut h: f64, r: &[f64], out: &mut [f64]) {
    for (r, o) in r.iter().zip(out) {
        h = omega + alpha * (r * r) + beta * h;
        *o = h;
    }
}

/// `h ← (x < 0 ? a : b)·h + x`: whether the choice costs depends on what the processor foresees.
fn choice() -> Kernel {
    let mut k = Step::default();
    let x = k.load();
    let h = k.carry();
    let (a, b, zero) = (k.num(0.3), k.num(0.7), k.num(0.0));
    let negative = k.push(Op::Cmp(Cmp::Lt, x, zero), DType::Bool);
    let factor = k.push(Op::Select(negative, a, b), F);
    let kept = k.mul(factor, h);
    let next = k.add(kept, x);
    k.next(0, next);
    k.0
}

fn choice_host(xs: &[f64]) -> f64 {
    let (a, b) = black_box((0.3, 0.7));
    xs.iter().fold(0.0, |h, &x| (if x < 0.0 { a } else { b }) * h + x)
}

/// A body of so many instructions, half of them waiting for each other.
fn long(n: usize) -> Kernel {
    let mut k = Step::default();
    let x = k.carry();
    let mut values = vec![x, k.num(0.9)];
    while values.len() < n {
        let (late, early) = (values[values.len() - 1], values[values.len() / 2]);
        let value = if values.len() % 2 == 0 { k.mul(late, early) } else { k.sub(late, early) };
        values.push(value);
    }
    k.next(0, values[n - 1]);
    k.0
}

/// The least time of several runs, in nanoseconds.
fn least(mut f: impl FnMut()) -> f64 {
    let time = |f: &mut dyn FnMut()| {
        let start = Instant::now();
        f();
        start.elapsed().as_nanos() as f64
    };
    (0..15).map(|_| time(&mut f)).fold(f64::INFINITY, f64::min)
}

/// An operand: its memory, and its stride in elements.
type Column = (Array, isize);

fn one(x: f64) -> Column {
    (Array::new(&[1], vec![x]), 0)
}

fn rows(xs: &[f64]) -> Column {
    (Array::new(&[xs.len()], xs.to_vec()), 1)
}

/// Prints how a kernel does, or its machine code.
fn report(name: &str, kernel: &Kernel, columns: &mut [Column], steps: usize, mut host: impl FnMut()) {
    if std::env::args().any(|a| a == "--listing") {
        return println!("{name}\n{}", jit::listing(kernel).expect("compiles"));
    }
    let compile = least(|| drop(black_box(jit::compile(kernel, jit::Allocation::Thorough).expect("compiles"))));
    let code = jit::compile(kernel, jit::Allocation::Thorough).expect("compiles");
    let start: Vec<Vec<f64>> = columns.iter().map(|c| c.0.as_slice::<f64>()[..1].to_vec()).collect();
    let mut ran = 0;
    let jit = least(|| {
        columns.iter_mut().zip(&start).for_each(|(c, s)| c.0.as_mut_slice::<f64>()[..1].copy_from_slice(s));
        let operands: Vec<Operand> =
            columns.iter_mut().map(|c| Operand { memory: Memory::Write(cells(&mut c.0)), offset: 0, stride: c.1 * 8 }).collect();
        ran = run(&*code, kernel, &operands, 1, steps, 0);
    });
    let host = least(&mut host);
    let (per, other) = (jit / ran as f64, host / ran as f64);
    println!(
        "{name:<16} {per:6.3} ns a step, Rust {other:6.3}, ratio {:.3}; {} instructions in {:.0} µs",
        per / other,
        kernel.body.len(),
        compile / 1e3
    );
}

fn main() {
    const N: usize = 1_000_000;
    let zeros = || rows(&vec![0.0; N]);
    report("logistic last", &logistic(false), &mut [one(0.3)], N, || {
        black_box(logistic_host(black_box(0.3), N));
    });
    let mut out = vec![0.0; N];
    report("logistic trace", &logistic(true), &mut [one(0.3), zeros()], N, || logistic_trace_host(black_box(0.3), &mut out));
    report("until", &until(), &mut [one(1.0)], N, || {
        black_box(until_host(black_box(1.0), N));
    });
    // Fewer, so that the rows stay in the caches.
    const ROWS: usize = 50_000;
    let (mut a, mut b, mut c) = (vec![0.0; ROWS], vec![0.0; ROWS], vec![0.0; ROWS]);
    let mut columns = [one(1.0), one(1.0), one(1.0), zeros(), zeros(), zeros()];
    report("Lorenz RK4", &lorenz(), &mut columns, ROWS, || lorenz_host(black_box([1.0; 3]), [&mut a, &mut b, &mut c]));
    let r: Vec<f64> = (0..N).map(|i| (i as f64 * 0.7).sin()).collect();
    let mut random = 1u64;
    let mut noise = || {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) as f64 / (1u64 << 30) as f64 - 1.0
    };
    let noise: Vec<f64> = (0..N).map(|_| noise()).collect();
    let steady: Vec<f64> = noise.iter().map(|x| x.abs() + 0.1).collect();
    for (name, xs) in [("choice, noise", &noise), ("choice, steady", &steady)] {
        report(name, &choice(), &mut [rows(xs), one(0.0)], N, || {
            black_box(choice_host(xs));
        });
    }
    let mut columns = [one(0.1), one(0.1), one(0.8), rows(&r), one(0.5), zeros()];
    report("GARCH(1,1)", &garch(), &mut columns, N, || garch_host(black_box([0.1, 0.1, 0.8]), 0.5, &r, &mut out));
    for n in [100, 1000, 10_000] {
        let (kernel, start) = (long(n), Instant::now());
        drop(black_box(jit::compile(&kernel, jit::Allocation::Thorough).expect("compiles")));
        println!("{n} instructions compile in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    }
}
