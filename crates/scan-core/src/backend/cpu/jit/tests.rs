use super::{Allocation, compile, compile_for, isa};
#[cfg(target_arch = "x86_64")]
use crate::backend::cpu::Isa;
use crate::backend::cpu::Memory;
use crate::backend::cpu::code::{self, Operand};
use crate::backend::cpu::testing::check;
use crate::kernel::testing::{Options, case};
use crate::kernel::{Bin, Carry, CarryId, Cmp, HostFn, Inst, Kernel, Lane, Mem, MemId, Op, Reg, Store, Un, interp};
use crate::types::DType;
use crate::types::dtype::DTYPES;
use cranelift_codegen::isa::OwnedTargetIsa;
use std::cell::Cell;

fn random(seeds: std::ops::Range<u64>, options: &Options) {
    for allocation in [Allocation::Thorough, Allocation::SinglePass] {
        random_for(isa::host(allocation).expect("a machine"), seeds.clone(), options);
    }
}

fn random_for(isa: OwnedTargetIsa, seeds: std::ops::Range<u64>, options: &Options) {
    for seed in seeds {
        let case = case(seed, options);
        let code = compile_for(isa.clone(), &case.kernel).unwrap_or_else(|r| panic!("{}\n{}", r.0, case.show()));
        check(&*code, &case);
    }
}

#[test]
fn random_kernels_of_one_lane() {
    random(0..1200, &Options { lanes: 1..=1, steps: 1..=50, scatters: true, ..Options::default() });
}

#[test]
fn random_kernels_that_stop() {
    random(5000..5800, &Options { stop: true, steps: 1..=50, scatters: true, ..Options::default() });
}

#[test]
fn random_kernels_whose_steps_run_loops() {
    random(70_000..71_500, &Options { lanes: 1..=1, steps: 1..=9, loops: true, scatters: true, ..Options::default() });
    random(75_000..75_500, &Options { stop: true, steps: 1..=20, loops: true, insts: 10..=60, ..Options::default() });
}

#[test]
fn random_kernels_of_many_lanes() {
    random(10_000..10_600, &Options { lanes: 1..=9, ..Options::default() });
}

#[test]
fn random_kernels_of_floats() {
    for dtype in [DType::F32, DType::F64] {
        random(20_000..20_300, &Options { dtypes: vec![dtype], lanes: 1..=2, steps: 1..=50, insts: 20..=80, ..Options::default() });
    }
}

/// One that lacks most instructions, so that functions are called in their stead.
#[test]
fn random_kernels_on_an_old_machine() {
    let old = isa::build(false, Allocation::Thorough).expect("a machine");
    random_for(old.clone(), 40_000..40_300, &Options { lanes: 1..=3, ..Options::default() });
    let floats = vec![DType::F32, DType::F64];
    random_for(old, 50_000..50_300, &Options { dtypes: floats, lanes: 1..=1, steps: 1..=50, insts: 20..=80, ..Options::default() });
}

/// Chains of conditions and choices.
#[test]
fn random_kernels_of_choices() {
    for dtype in [DType::F32, DType::F64] {
        let dtypes = vec![dtype, DType::Bool];
        random(60_000..60_400, &Options { dtypes, calls: false, lanes: 1..=1, steps: 1..=50, insts: 20..=80, ..Options::default() });
    }
}

/// Whatever one side of a choice needs alone is jumped over, be it ever so little.
#[test]
fn random_kernels_that_jump() {
    crate::base::small::jumps(|| {
        for dtype in [DType::F32, DType::F64] {
            let dtypes = vec![dtype, DType::Bool];
            random(80_000..80_400, &Options { dtypes, lanes: 1..=1, steps: 1..=50, insts: 20..=80, ..Options::default() });
        }
        random(81_000..81_400, &Options { lanes: 1..=3, scatters: true, insts: 20..=60, ..Options::default() });
        random(82_000..82_300, &Options { stop: true, steps: 1..=20, loops: true, insts: 10..=60, ..Options::default() });
    });
}

fn push(k: &mut Kernel, op: Op, dtype: DType) -> Reg {
    k.body.push(Inst { op, dtype })
}

fn mem(k: &mut Kernel, dtype: DType) -> MemId {
    k.mems.push(Mem::new(dtype, Lane::Uniform))
}

/// A kernel that computes one value from operands, an element a step.
fn map(from: &[DType], to: DType, op: impl Fn(&[Reg]) -> Op) -> Kernel {
    let mut k = Kernel::default();
    let args: Vec<Reg> = from
        .iter()
        .map(|&d| {
            let m = mem(&mut k, d);
            push(&mut k, Op::Load(m), d)
        })
        .collect();
    let value = push(&mut k, op(&args), to);
    let out = mem(&mut k, to);
    k.stores.push(Store { mem: out, value, at: None });
    k
}

/// Runs a map over columns of elements (their bits).
fn mapped(kernel: &Kernel, columns: &[Vec<u64>]) -> Vec<u64> {
    let n = columns[0].len();
    let size = |m: usize| kernel.mems[MemId(m as u32)].dtype.size();
    let out = columns.len();
    let mut memories: Vec<Vec<u64>> = (0..=out).map(|m| vec![0; n * size(m) / 8 + 1]).collect();
    for (m, column) in columns.iter().enumerate() {
        let bytes: Vec<u8> = column.iter().flat_map(|x| x.to_le_bytes()[..size(m)].to_vec()).collect();
        let words = bytes.chunks(8).map(|c| {
            let mut word = [0; 8];
            word[..c.len()].copy_from_slice(c);
            u64::from_le_bytes(word)
        });
        memories[m].splice(..words.len(), words);
    }
    let cells: Vec<&[Cell<u8>]> = memories.iter_mut().map(|m| bytes(m)).collect();
    let operands: Vec<Operand> =
        cells.iter().enumerate().map(|(m, c)| Operand { memory: Memory::Write(c), offset: 0, stride: size(m) as isize }).collect();
    let code = compile(kernel, Allocation::Thorough).expect("a kernel that compiles");
    assert_eq!(code::run(&*code, kernel, &operands, 1, n, 0), n);
    let element = |i: usize| {
        let mut word = [0; 8];
        (0..size(out)).for_each(|b| word[b] = cells[out][i * size(out) + b].get());
        u64::from_le_bytes(word)
    };
    (0..n).map(element).collect()
}

fn bytes(words: &mut [u64]) -> &[Cell<u8>] {
    let n = size_of_val(words);
    // SAFETY: words are plain bytes, borrowed mutably; `Cell<u8>` has the layout of `u8`.
    unsafe { std::slice::from_raw_parts(words.as_mut_ptr().cast::<Cell<u8>>(), n) }
}

/// Elements at the borders of all dtypes.
fn special(dtype: DType) -> Vec<u64> {
    let powers = (0..65).flat_map(|p| [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5].map(|d| (p as f64).exp2() + d));
    let numbers: Vec<f64> = powers.flat_map(|x| [x, -x, x.next_up(), x.next_down()]).collect();
    let edges = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 5e-324, 1e-40, 0.3, 2.5, 3.5, -2.5];
    match dtype {
        DType::Bool => vec![0, 1],
        DType::F64 => numbers.iter().chain(&edges).map(|x| x.to_bits()).collect(),
        DType::F32 => numbers.iter().chain(&edges).map(|&x| (x as f32).to_bits() as u64).collect(),
        _ => {
            let mask = u64::MAX >> (64 - 8 * dtype.size());
            let near = |p: u32| (-2..3).map(move |d: i64| (1u64 << p).wrapping_add(d as u64) & mask);
            (0..64).flat_map(near).chain([mask]).collect()
        }
    }
}

fn same(dtype: DType, a: u64, b: u64) -> bool {
    let nan = |x: u64| match dtype {
        DType::F32 => f32::from_bits(x as u32).is_nan(),
        DType::F64 => f64::from_bits(x).is_nan(),
        _ => false,
    };
    a == b || nan(a) && nan(b)
}

/// Compares a map with the interpreter's value of its instruction.
fn agrees(from: &[DType], to: DType, columns: &[Vec<u64>], op: impl Fn(&[Reg]) -> Op) {
    let kernel = map(from, to, op);
    let inst = &kernel.body[Reg(from.len() as u32)];
    for (i, found) in mapped(&kernel, columns).into_iter().enumerate() {
        let args: Vec<u64> = columns.iter().map(|c| c[i]).collect();
        let expected = interp::compute(inst, from[0], &args);
        assert!(same(to, expected, found), "{inst:?} of {from:?} {args:x?}: expected {expected:x}, found {found:x}");
    }
}

#[test]
fn every_conversion_of_special_values() {
    for (from, ..) in DTYPES {
        for (to, ..) in DTYPES {
            agrees(&[from], to, &[special(from)], |x| Op::Convert(x[0]));
        }
    }
}

/// Every pair of some of the elements.
fn pairs(xs: &[u64]) -> Vec<Vec<u64>> {
    let some: Vec<u64> = xs.iter().copied().step_by(1 + xs.len() / 60).chain(xs.iter().rev().take(13).copied()).collect();
    let all = some.iter().flat_map(|&x| some.iter().map(move |&y| (x, y)));
    let (a, b) = all.unzip();
    vec![a, b]
}

#[test]
fn every_operation_of_special_values() {
    for (dtype, ..) in DTYPES {
        let xs = special(dtype);
        let columns = pairs(&xs);
        for cmp in [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le] {
            agrees(&[dtype, dtype], DType::Bool, &columns, |x| Op::Cmp(cmp, x[0], x[1]));
        }
        let (unary, binary): (&[Un], &[Bin]) = match dtype {
            DType::Bool => (&[Un::Not], &[Bin::And, Bin::Or, Bin::Xor]),
            d if d.is_float() => {
                (&[Un::Neg, Un::Abs, Un::Sqrt, Un::Floor, Un::Ceil, Un::Trunc, Un::Round], &[Bin::Add, Bin::Sub, Bin::Mul, Bin::Div])
            }
            _ => {
                let divides = [Bin::FloorDiv, Bin::Mod, Bin::Fmod];
                (&[Un::Neg, Un::Not], &[[Bin::Add, Bin::Sub, Bin::Mul], [Bin::And, Bin::Or, Bin::Xor], divides].concat())
            }
        };
        unary.iter().for_each(|&un| agrees(&[dtype], dtype, &[xs.clone()], |x| Op::Un(un, x[0])));
        binary.iter().for_each(|&bin| agrees(&[dtype, dtype], dtype, &columns, |x| Op::Bin(bin, x[0], x[1])));
        if dtype.is_int() {
            let by: Vec<u64> = columns[1].iter().map(|y| y % (8 * dtype.size() as u64)).collect();
            for bin in [Bin::Shl, Bin::Shr] {
                agrees(&[dtype, dtype], dtype, &[columns[0].clone(), by.clone()], |x| Op::Bin(bin, x[0], x[1]));
            }
        }
        if dtype.is_float() {
            let third: Vec<u64> = columns[0].iter().rev().copied().collect();
            agrees(&[dtype; 3], dtype, &[columns[0].clone(), columns[1].clone(), third], |x| Op::Fma(x[0], x[1], x[2]));
        }
    }
}

#[test]
fn every_function_of_the_machine() {
    for &f in HostFn::ALL {
        let columns = pairs(&special(DType::F64));
        agrees(&vec![DType::F64; f.arity()], DType::F64, &columns[..f.arity()], |x| Op::Call(f, x.into()));
    }
}

/// Conditions made of comparisons choose as their values say.
#[test]
fn compound_conditions_choose() {
    for f in [DType::F32, DType::F64] {
        for op in [
            Op::Bin(Bin::And, Reg(4), Reg(5)),
            Op::Bin(Bin::Or, Reg(4), Reg(5)),
            Op::Bin(Bin::Xor, Reg(4), Reg(5)),
            Op::Un(Un::Not, Reg(5)),
        ] {
            let mut k = Kernel::default();
            for _ in 0..4 {
                let m = mem(&mut k, f);
                push(&mut k, Op::Load(m), f);
            }
            push(&mut k, Op::Cmp(Cmp::Lt, Reg(0), Reg(1)), DType::Bool);
            push(&mut k, Op::Cmp(Cmp::Le, Reg(2), Reg(3)), DType::Bool);
            let c = push(&mut k, op.clone(), DType::Bool);
            let value = push(&mut k, Op::Select(c, Reg(0), Reg(2)), f);
            let out = mem(&mut k, f);
            k.stores.push(Store { mem: out, value, at: None });
            let bits = |x: f64| if f == DType::F32 { (x as f32).to_bits() as u64 } else { x.to_bits() };
            let columns: Vec<Vec<u64>> = [[1.0, 1.0, 2.0, 2.0], [2.0, 2.0, 1.0, 1.0], [3.0, 4.0, 3.0, 4.0], [4.0, 3.0, 4.0, 3.0]]
                .map(|c| c.map(bits).to_vec())
                .to_vec();
            let first = |row: usize| match op {
                Op::Bin(Bin::And, ..) => row == 0,
                Op::Bin(Bin::Or, ..) => row < 3,
                Op::Bin(..) => row == 1 || row == 2,
                _ => row % 2 == 1,
            };
            let expected: Vec<u64> = (0..4).map(|row| columns[if first(row) { 0 } else { 2 }][row]).collect();
            assert_eq!(mapped(&k, &columns), expected, "{op:?} of {f}");
        }
    }
}

/// A number that is compared with another than 0 is no truth value.
#[test]
fn a_number_is_compared_with_a_number() {
    let mut k = map(&[DType::Bool], DType::F64, |x| Op::Convert(x[0]));
    let one = push(&mut k, Op::Const(1f64.to_bits()), DType::F64);
    k.mems[MemId(1)].dtype = DType::Bool;
    k.stores[0].value = push(&mut k, Op::Cmp(Cmp::Ne, Reg(1), one), DType::Bool);
    assert_eq!(mapped(&k, &[vec![0, 1]]), [1, 0]);
}

/// A bool that comes as a number, of any dtype, chooses as the bool would.
#[test]
fn a_truth_value_by_way_of_numbers() {
    for (by, ..) in DTYPES {
        let mut k = Kernel::default();
        let (x, y) = (mem(&mut k, DType::F64), mem(&mut k, DType::F64));
        let x = push(&mut k, Op::Load(x), DType::F64);
        let limit = push(&mut k, Op::Const(2f64.to_bits()), DType::F64);
        let below = push(&mut k, Op::Cmp(Cmp::Lt, x, limit), DType::Bool);
        let number = push(&mut k, Op::Convert(below), by);
        let zero = push(&mut k, Op::Const(0), by);
        let c = push(&mut k, Op::Cmp(Cmp::Ne, number, zero), DType::Bool);
        let value = push(&mut k, Op::Select(c, limit, x), DType::F64);
        k.stores.push(Store { mem: y, value, at: None });
        let found = mapped(&k, &[[1.0f64, 3.0, f64::INFINITY, -0.0].map(f64::to_bits).to_vec()]);
        assert_eq!(found, [2.0f64, 3.0, f64::INFINITY, 2.0].map(f64::to_bits), "{by}");
    }
}

/// The lines of a listing from a loop's first to its last.
#[cfg(target_arch = "x86_64")]
fn loop_of(listing: &str) -> Vec<&str> {
    let lines: Vec<&str> = listing.lines().map(str::trim).collect();
    let from = lines.iter().position(|l| *l == "block1:").expect("a loop");
    let to = lines.iter().position(|l| *l == "block2:").expect("its end");
    lines[from + 1..to].to_vec()
}

/// True where code has instructions of three operands, of which the shapes below speak: `RSCAN_ISA` may forbid them.
#[cfg(target_arch = "x86_64")]
fn has_avx() -> bool {
    Isa::detect().is_ok_and(|isa| isa > Isa::Portable)
}

/// The step of `x ← (r·x)·(1 − x)`, its rows kept, is arithmetic, a store, and what moves on.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_small_loop_has_no_ballast() {
    if !has_avx() {
        return;
    }
    let mut k = Kernel::default();
    let (state, rows) = (mem(&mut k, DType::F64), mem(&mut k, DType::F64));
    let x = push(&mut k, Op::Carry(CarryId(0)), DType::F64);
    let (r, one) = (push(&mut k, Op::Const(3.9f64.to_bits()), DType::F64), push(&mut k, Op::Const(1f64.to_bits()), DType::F64));
    let (rx, rest) = (push(&mut k, Op::Bin(Bin::Mul, r, x), DType::F64), push(&mut k, Op::Bin(Bin::Sub, one, x), DType::F64));
    let next = push(&mut k, Op::Bin(Bin::Mul, rx, rest), DType::F64);
    k.carries.push(Carry { mem: state, next });
    k.stores.push(Store { mem: rows, value: next, at: None });
    let listing = super::listing(&k).expect("compiles");
    let lines = loop_of(&listing);
    assert!(lines.len() <= 8, "{lines:#?}");
    assert!(!lines.iter().any(|l| l.starts_with("movabs") || l.contains("%rsp")), "{lines:#?}");
}

/// A choice between floats does not branch.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_choice_does_not_branch() {
    if !has_avx() {
        return;
    }
    let f = DType::F64;
    let mut k = map(&[f, f, f], f, |x| Op::Select(x[0], x[1], x[2]));
    k.body[Reg(3)].op = Op::Cmp(Cmp::Lt, Reg(0), Reg(1));
    k.body[Reg(3)].dtype = DType::Bool;
    let value = push(&mut k, Op::Select(Reg(3), Reg(1), Reg(2)), f);
    k.stores[0].value = value;
    let listing = super::listing(&k).expect("compiles");
    let jumps = loop_of(&listing).iter().filter(|l| l.starts_with('j')).count();
    assert!(jumps == 1 && listing.contains("blendv"), "{listing}");
}

/// s ← s + x[t], stored to y, until s exceeds a limit.
fn running_sum(limit: f64) -> Kernel {
    let mut k = Kernel::default();
    let (x, s, y) = (mem(&mut k, DType::F64), mem(&mut k, DType::F64), mem(&mut k, DType::F64));
    let element = push(&mut k, Op::Load(x), DType::F64);
    let sum = push(&mut k, Op::Carry(CarryId(0)), DType::F64);
    let next = push(&mut k, Op::Bin(Bin::Add, sum, element), DType::F64);
    let limit = push(&mut k, Op::Const(limit.to_bits()), DType::F64);
    k.stop = Some(push(&mut k, Op::Cmp(Cmp::Lt, limit, next), DType::Bool));
    k.carries.push(Carry { mem: s, next });
    k.stores.push(Store { mem: y, value: next, at: None });
    k
}

/// Runs it backwards over 1, 2, 3, 4.
fn sums(kernel: &Kernel, code: &dyn crate::backend::cpu::Code) -> (usize, [f64; 5]) {
    let (mut xs, mut state) = ([1.0f64, 2.0, 3.0, 4.0].map(f64::to_bits), [0.25f64, 9.0, 9.0, 9.0, 9.0].map(f64::to_bits));
    let (xs, out) = (bytes(&mut xs), bytes(&mut state));
    let operand = |memory, offset, stride| Operand { memory, offset, stride };
    let operands = [operand(Memory::Write(xs), 24, -8), operand(Memory::Write(out), 0, 0), operand(Memory::Write(out), 8, 8)];
    let ran = code::run(code, kernel, &operands, 1, 4, 0);
    (ran, state.map(f64::from_bits))
}

#[test]
fn a_loop_stops_after_the_stores_of_its_step() {
    let kernel = running_sum(7.0);
    let code = compile(&kernel, Allocation::Thorough).expect("compiles");
    assert_eq!(code.engine(), "jit");
    assert_eq!(sums(&kernel, &*code), (2, [7.25, 4.25, 7.25, 9.0, 9.0]));
    let kernel = running_sum(f64::INFINITY);
    let code = compile(&kernel, Allocation::Thorough).expect("compiles");
    assert_eq!(sums(&kernel, &*code), (4, [10.25, 4.25, 7.25, 9.25, 10.25]));
}

/// The same with a carry that tells whether it stopped.
fn told_sum(limit: f64) -> Kernel {
    let mut k = running_sum(limit);
    let told = mem(&mut k, DType::Bool);
    k.carries.push(Carry { mem: told, next: k.stop.expect("it stops") });
    k
}

#[test]
fn whether_a_loop_has_stopped_is_told_by_the_way_out() {
    for (limit, ran, stopped) in [(7.0, 2, 1), (4.0, 1, 1), (10.0, 4, 1), (f64::INFINITY, 4, 0)] {
        let kernel = told_sum(limit);
        let code = compile(&kernel, Allocation::Thorough).expect("compiles");
        let (mut xs, mut state, mut told) =
            ([1.0f64, 2.0, 3.0, 4.0].map(f64::to_bits), [0.25f64, 9.0, 9.0, 9.0, 9.0].map(f64::to_bits), [9]);
        let (xs, out, flag) = (bytes(&mut xs), bytes(&mut state), bytes(&mut told));
        let operand = |memory, offset, stride| Operand { memory: Memory::Write(memory), offset, stride };
        let operands = [operand(xs, 24, -8), operand(out, 0, 0), operand(out, 8, 8), operand(flag, 0, 0)];
        assert_eq!(code::run(&*code, &kernel, &operands, 1, 4, 0), ran);
        assert_eq!(told[0], stopped, "{limit}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_loop_that_stops_compares_once() {
    let listing = super::listing(&told_sum(7.0)).expect("compiles");
    assert!(listing.matches("ucomisd").count() == 1 && !listing.contains("set"), "{listing}");
}

/// The step of `s ← c·s + y` needs no copy of c, though c is the first factor.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_product_takes_the_register_of_a_factor_that_is_not_needed_any_more() {
    if !has_avx() {
        return;
    }
    let mut k = Kernel::default();
    let [c, s, y] = [Some(0), None, Some(8)].map(|stride| k.mems.push(Mem { stride, ..Mem::new(DType::F64, Lane::Uniform) }));
    let (factor, element) = (push(&mut k, Op::Load(c), DType::F64), push(&mut k, Op::Load(y), DType::F64));
    let sum = push(&mut k, Op::Carry(CarryId(0)), DType::F64);
    let next = push(&mut k, Op::Fma(factor, sum, element), DType::F64);
    k.carries.push(Carry { mem: s, next });
    let listing = super::listing(&k).expect("compiles");
    assert!(listing.contains("vfmadd") && !loop_of(&listing).iter().any(|l| l.starts_with("mov")), "{listing}");
}

#[test]
fn threads_compile_and_run_side_by_side() {
    let shared_kernel = running_sum(7.0);
    let shared = compile(&shared_kernel, Allocation::Thorough).expect("compiles");
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (shared, shared_kernel) = (&shared, &shared_kernel);
            scope.spawn(move || {
                for round in 0..20 {
                    assert_eq!(sums(shared_kernel, &**shared).0, 2);
                    random(30_000 + 100 * thread + round..30_001 + 100 * thread + round, &Options { lanes: 1..=2, ..Options::default() });
                }
            });
        }
    });
}

#[test]
fn a_kernel_that_is_too_long_is_refused() {
    let mut k = Kernel::default();
    for i in 0..=super::MAX_BODY {
        push(&mut k, Op::Const(i as u64), DType::I64);
    }
    assert!(compile(&k, Allocation::Thorough).is_err_and(|r| r.0.contains("too many")));
}

/// Bytes of executable memory that no file backs.
#[cfg(target_os = "linux")]
fn executable() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux tells");
    let bytes = |line: &str| {
        let (low, high) = line.split(' ').next()?.split_once('-')?;
        let bytes = usize::from_str_radix(high, 16).ok()? - usize::from_str_radix(low, 16).ok()?;
        (line.contains(" r-xp ") && line.split_whitespace().count() == 5).then_some(bytes)
    };
    maps.lines().filter_map(bytes).sum()
}

#[test]
#[cfg(target_os = "linux")]
fn code_is_freed_with_its_owner() {
    let kernel = running_sum(7.0);
    let compiled = |n: usize| (0..n).map(|_| compile(&kernel, Allocation::Thorough).expect("compiles")).collect::<Vec<_>>();
    let held = compiled(100);
    assert!(executable() >= 100 * 4096, "code is counted");
    drop(held);
    (0..2000).for_each(|_| drop(compiled(1)));
    // What other tests hold meanwhile is counted as well.
    let left = executable();
    assert!(left < 500 * 4096, "2000 kernels left {left} bytes");
}
