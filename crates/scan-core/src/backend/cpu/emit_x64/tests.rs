use super::alloc::Shape;
use super::{Emitted, FEW, chosen, emitted, vectors};
use crate::backend::cpu::Memory;
use crate::backend::cpu::code::{self, Operand};
use crate::backend::cpu::isa::Isa;
use crate::backend::cpu::{Code, Refusal};
use crate::base::{Id, small};
use crate::kernel::testing::{Case, Options, case};
use crate::kernel::{Bin, Builder, Cmp, HostFn, Lane, MemId, Op, interp};
use crate::types::DType;
use memmap2::{MmapMut, MmapOptions};
use std::cell::Cell;

const PAGE: usize = 4096;

/// Memory that ends where a page begins that nobody may touch: the mapping goes on, but its file has ended.
struct Guarded {
    map: MmapMut,
    start: usize,
    len: usize,
}

impl Guarded {
    fn new(bytes: &[u8]) -> Guarded {
        let pages = (bytes.len() + 64).div_ceil(PAGE);
        let file = tempfile();
        file.set_len((pages * PAGE) as u64).expect("a file as long as the pages");
        // SAFETY: nobody else has the file.
        let mut map = unsafe { MmapOptions::new().len((pages + 1) * PAGE).map_mut(&file) }.expect("memory");
        let start = pages * PAGE - bytes.len();
        map[..start].fill(0xa5);
        map[start..pages * PAGE].copy_from_slice(bytes);
        Guarded { map, start, len: bytes.len() }
    }
    fn cells(&mut self) -> &[Cell<u8>] {
        Cell::from_mut(&mut self.map[self.start..self.start + self.len]).as_slice_of_cells()
    }
    fn bytes(&self) -> Vec<u8> {
        assert!(self.map[..self.start].iter().all(|&b| b == 0xa5), "something was written in front of the operands");
        self.map[self.start..self.start + self.len].to_vec()
    }
}

fn tempfile() -> std::fs::File {
    static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("rscan-guard-{}-{number}", std::process::id()));
    let file = std::fs::File::options().create_new(true).read(true).write(true).open(&path).expect("a file");
    std::fs::remove_file(&path).expect("its name goes");
    file
}

/// Runs compiled code on a case; the memories afterwards.
fn run(code: &dyn Code, case: &Case) -> Vec<Vec<u8>> {
    let mut memories: Vec<Guarded> = case.memories.iter().map(|m| Guarded::new(m)).collect();
    {
        let cells: Vec<&[Cell<u8>]> = memories.iter_mut().map(Guarded::cells).collect();
        let operands: Vec<Operand> =
            case.operands.iter().map(|o| Operand { memory: Memory::Write(cells[o.memory]), offset: o.offset, stride: o.stride }).collect();
        assert_eq!(code::run(code, &case.kernel, &operands, case.lanes, case.steps, case.first), case.steps);
    }
    memories.iter().map(Guarded::bytes).collect()
}

/// Instruction sets that this machine has, with the vectors of each.
fn targets() -> impl Iterator<Item = (Isa, usize)> {
    let isas = [Isa::Avx2, Isa::Avx512].into_iter().filter(|&isa| isa <= Isa::machine());
    isas.flat_map(|isa| vectors(isa).iter().map(move |&vector| (isa, vector)))
}

/// Compares a case with what the kernel means, on each instruction set; how many were compiled.
fn check(case: &Case) -> usize {
    let expected = case.expected().0;
    let mut compiled = 0;
    for (isa, vector) in targets() {
        // No vector unit divides integers: quotients are spelled out before.
        match emitted(&case.kernel.without_division(), isa, vector) {
            Ok(code) => {
                let found = run(&code, case);
                let difference = case.difference(&expected, &found);
                assert!(difference.is_none(), "{} of {vector} bytes: {}\n{}", isa.name(), difference.unwrap_or_default(), case.show());
                compiled += 1;
            }
            Err(Refusal(why)) => assert!(!why.contains("cannot be written") && !why.is_empty(), "{why}\n{}", case.show()),
        }
    }
    compiled
}

fn options(dtypes: &[DType]) -> Options {
    Options {
        dtypes: dtypes.to_vec(),
        stop: false,
        calls: false,
        overlaps: false,
        tables: true,
        scatters: false,
        loops: false,
        insts: 1..=24,
        lanes: 1..=70,
        steps: 1..=6,
    }
}

fn sweep(seeds: std::ops::Range<u64>, options: &Options) {
    let count = seeds.end - seeds.start;
    let compiled: usize = seeds.map(|seed| check(&case(seed, options))).sum();
    assert!(compiled as u64 > count / 4 || targets().count() < 2, "{compiled} of {count} cases were compiled");
}

/// How many versions of a kind have been written.
fn written(code: &Emitted, kind: impl Fn(Shape) -> bool) -> usize {
    let flags = [(false, false), (true, false), (false, true), (true, true)];
    let shapes = (1..=code.copies)
        .flat_map(|copies| flags.map(|(streams, hoists)| Shape { copies, masked: false, streams, hoists, places: false, held: 0 }));
    shapes.filter(|&s| kind(s) && code.version(s).get().is_some_and(Option::is_some)).count()
}

#[test]
fn what_all_blocks_share_is_computed_once() {
    let options = Options { steps: 1..=1, lanes: 100..=700, calls: true, ..options(&[DType::F64, DType::F32, DType::Bool, DType::I64]) };
    let mut hoisted = 0;
    for seed in 0..400 {
        let case = case(seed, &options);
        for (isa, vector) in targets() {
            let Ok(code) = emitted(&case.kernel, isa, vector) else { continue };
            let difference = case.difference(&case.expected().0, &run(&code, &case));
            assert!(difference.is_none(), "{}: {}\n{}", isa.name(), difference.unwrap_or_default(), case.show());
            hoisted += written(&code, |shape| shape.hoists);
        }
    }
    assert!(hoisted > 50 || targets().count() < 2, "{hoisted} versions");
}

#[test]
fn what_stays_is_read_before_the_first_step() {
    let options = Options { steps: 2..=9, lanes: 1..=300, calls: true, ..options(&[DType::F64, DType::F32, DType::I64, DType::Bool]) };
    let (mut held, mut written_to) = (0, 0);
    for seed in 0..600 {
        let options = Options { insts: if seed % 5 == 0 { 60..=120 } else { 1..=24 }, overlaps: seed % 2 == 0, ..options.clone() };
        let mut case = case(seed, &options);
        let stored = |m: MemId| case.kernel.stores.iter().any(|s| s.mem == m) || case.kernel.carries.iter().any(|c| c.mem == m);
        let still: Vec<MemId> = case.kernel.mems.ids().filter(|&m| !stored(m)).collect();
        for m in still {
            case.operands[m.idx()].stride = 0;
            case.kernel.mems[m].stride = None;
        }
        for (isa, vector) in targets() {
            let Ok(code) = emitted(&case.kernel, isa, vector) else { continue };
            let difference = case.difference(&case.expected().0, &run(&code, &case));
            assert!(difference.is_none(), "{}: {}\n{}", isa.name(), difference.unwrap_or_default(), case.show());
            let found = code.held.get().is_some_and(|&held| held != 0);
            let made = (0..code.versions.len()).any(|i| i % 10 >= 5 && code.versions[i].get().is_some());
            held += usize::from(found && made);
            written_to += usize::from(found && !made);
        }
    }
    assert!(held > 200 && written_to > 0 || targets().count() < 2, "{held} held, {written_to} might be written to");
}

/// Every pair of special values, and of some of either sign: the lesser and the greater by comparison and choice.
fn choices_by_size(dtype: DType) -> Case {
    let values = [0.0, -0.0, 1.0, -2.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let pairs = || values.iter().flat_map(|&x| values.iter().map(move |&y| [x, y]));
    let bytes = |i: usize| -> Vec<u8> {
        pairs().flat_map(|p| if dtype == DType::F64 { p[i].to_le_bytes().to_vec() } else { (p[i] as f32).to_le_bytes().to_vec() }).collect()
    };
    let mut b = Builder::new();
    let mems: Vec<MemId> = (0..6).map(|_| b.mem(dtype, Lane::Unit)).collect();
    let (x, y) = (b.load(mems[0]), b.load(mems[1]));
    let [less, more] = [b.cmp(Cmp::Lt, x, y), b.cmp(Cmp::Lt, y, x)];
    for (i, (c, p, q)) in [(less, x, y), (less, y, x), (more, x, y), (more, y, x)].into_iter().enumerate() {
        let chosen = b.select(c, p, q);
        b.store(mems[2 + i], chosen);
    }
    let (lanes, empty) = (pairs().count(), vec![0u8; bytes(0).len()]);
    let operands = (0..6).map(|memory| interp::Operand { memory, offset: 0, stride: 0 }).collect();
    let memories = [bytes(0), bytes(1)].into_iter().chain(vec![empty; 4]).collect();
    Case { seed: 0, kernel: b.finish(), memories, dtypes: vec![dtype; 6], operands, lanes, steps: 1, first: 0 }
}

#[test]
fn the_lesser_and_the_greater_are_one_instruction() {
    for dtype in [DType::F32, DType::F64] {
        let case = choices_by_size(dtype);
        assert!(check(&case) == targets().count());
        for (isa, vector) in targets() {
            let operations = emitted(&case.kernel, isa, vector).map_or(0, |e| e.program.operations.len());
            assert_eq!(operations, 4, "{}", isa.name());
        }
    }
}

/// The same with the stores of large calls, however small the call is, on operands that begin anywhere.
fn check_streams(case: &Case) -> usize {
    let mut streamed = 0;
    for (isa, vector) in targets() {
        let Ok(mut code) = emitted(&case.kernel, isa, vector) else { continue };
        code.large = 0;
        let expected = case.expected().0;
        let difference = case.difference(&expected, &run(&code, case));
        assert!(difference.is_none(), "{}: {}\n{}", isa.name(), difference.unwrap_or_default(), case.show());
        streamed += written(&code, |shape| shape.streams);
    }
    streamed
}

#[test]
fn stores_past_the_caches() {
    let maps = Options { steps: 1..=1, lanes: 30..=300, ..options(&[DType::F64]) };
    let loops = Options { lanes: 64..=64, ..options(&[DType::F32]) };
    let both = Options { steps: 1..=1, lanes: 30..=300, ..options(&[DType::F32, DType::F64]) };
    for options in [maps, loops, both] {
        let streamed: usize = (0..150).map(|seed| check_streams(&case(seed, &options))).sum();
        assert!(streamed > 0 || targets().count() < 2, "{streamed} versions");
    }
}

#[test]
fn random_kernels_of_floats() {
    sweep(0..300, &options(&[DType::F64]));
    sweep(300..600, &options(&[DType::F32]));
    sweep(600..900, &options(&[DType::F32, DType::F64]));
}

#[test]
fn random_kernels_of_integers() {
    sweep(0..200, &options(&[DType::F64, DType::I64]));
    sweep(200..400, &options(&[DType::F32, DType::I32]));
    sweep(400..600, &options(&[DType::F64, DType::U64, DType::I32, DType::F32]));
    sweep(600..800, &options(&[DType::I64, DType::U32, DType::F64]));
}

#[test]
fn random_kernels_of_bytes_and_words() {
    sweep(0..200, &options(&[DType::U8, DType::I32, DType::F32]));
    sweep(200..400, &options(&[DType::I8, DType::I64, DType::F64]));
    sweep(400..600, &options(&[DType::U16, DType::I16, DType::U8, DType::Bool]));
    sweep(600..800, &options(&[DType::I16, DType::U32, DType::F64, DType::U64]));
    sweep(800..1000, &options(&[DType::U8, DType::I8]));
    sweep(1000..1040, &Options { lanes: 900..=1500, ..options(&[DType::U8, DType::U16, DType::F32]) });
    sweep(1040..1080, &Options { insts: 100..=300, ..options(&[DType::I8, DType::U16, DType::I64, DType::Bool]) });
    sweep(1100..1300, &options(&[DType::Bool, DType::I64, DType::U16, DType::I8]));
    sweep(1300..1400, &Options { calls: true, ..options(&[DType::Bool, DType::I64, DType::U8, DType::F64]) });
}

#[test]
fn random_kernels_with_bools() {
    sweep(0..300, &options(&[DType::Bool, DType::F64]));
    sweep(300..600, &options(&[DType::Bool, DType::F32, DType::I32]));
}

#[test]
fn random_kernels_that_call() {
    sweep(0..200, &Options { calls: true, ..options(&[DType::F64]) });
    sweep(200..400, &Options { calls: true, ..options(&[DType::F64, DType::F32, DType::Bool]) });
}

/// Whatever one side of a choice needs alone is jumped over, be it ever so little.
#[test]
fn random_kernels_that_jump() {
    small::jumps(|| {
        let long = |dtypes: &[DType]| Options { insts: 20..=90, ..options(dtypes) };
        sweep(0..300, &long(&[DType::F64, DType::Bool]));
        sweep(300..600, &long(&[DType::F32, DType::Bool]));
        sweep(600..800, &Options { calls: true, ..long(&[DType::F64, DType::F32, DType::I64, DType::Bool]) });
        sweep(800..900, &Options { steps: 1..=1, lanes: 100..=700, calls: true, ..long(&[DType::F64, DType::Bool]) });
        let jumping = |seed: u64| {
            let kernel = case(seed, &long(&[DType::F64, DType::Bool])).kernel;
            targets().any(|(isa, vector)| emitted(&kernel, isa, vector).is_ok_and(|code| !code.program.skips.is_empty()))
        };
        let jumps = (0..300).filter(|&seed| jumping(seed)).count();
        assert!(jumps > 100 || targets().count() < 1, "{jumps} kernels jump");
    });
}

#[test]
fn calls_are_left_out_where_all_arguments_are_0() {
    let mut b = Builder::new();
    let mems: Vec<MemId> = (0..4).map(|_| b.mem(DType::F64, Lane::Unit)).collect();
    let (x, y) = (b.load(mems[0]), b.load(mems[1]));
    let below = b.cmp(Cmp::Lt, x, y);
    let [sine, cosine] = [HostFn::Sin, HostFn::Cos].map(|f| b.call(f, &[x]));
    let (chosen, sum) = (b.select(below, sine, cosine), b.bin(Bin::Add, sine, y));
    b.store(mems[2], chosen);
    b.store(mems[3], sum);
    let lanes = 200;
    let bytes = |f: &dyn Fn(usize) -> f64| (0..lanes).flat_map(|l| f(l).to_le_bytes()).collect::<Vec<u8>>();
    // Some vectors have nothing but 0, some −0 among it, some a lane or two of numbers.
    let argument = |l: usize| match l {
        40 => -0.0,
        90..100 => l as f64,
        150 => 1e22,
        _ => 0.0,
    };
    let memories = vec![bytes(&argument), bytes(&|l| l as f64 - 120.0), vec![0; 8 * lanes], vec![0; 8 * lanes]];
    let operands = (0..4).map(|memory| interp::Operand { memory, offset: 0, stride: 0 }).collect();
    let case = Case { seed: 0, kernel: b.finish(), memories, dtypes: vec![DType::F64; 4], operands, lanes, steps: 1, first: 0 };
    assert!(check(&case) == targets().count());
}

/// The case with every operand of 64 bits the same for all lanes.
fn uniform_where_wide(mut case: Case) -> Case {
    let kernel = &mut case.kernel;
    let wide: Vec<MemId> = kernel.mems.enumerate().filter(|(_, m)| m.dtype.size() == 8).map(|(id, _)| id).collect();
    for &mem in &wide {
        kernel.mems[mem].lane = Lane::Uniform;
    }
    let varying = kernel.varying();
    let shared = |mem: MemId| case.operands.iter().filter(|o| o.memory == case.operands[mem.idx()].memory).count() > 1;
    kernel.stores.retain(|s| !wide.contains(&s.mem) || !varying[s.value] && !shared(s.mem));
    for carry in kernel.carries.ids().collect::<Vec<_>>() {
        let now = kernel.body.enumerate().find(|(_, i)| i.op == Op::Carry(carry)).map(|(r, _)| r);
        if let (true, Some(now)) = (wide.contains(&kernel.carries[carry].mem) && varying[kernel.carries[carry].next], now) {
            kernel.carries[carry].next = now;
        }
    }
    case
}

#[test]
fn vectors_are_as_long_as_what_differs_between_lanes() {
    let options = Options { insts: 1..=16, calls: true, ..options(&[DType::F32, DType::F64, DType::I64, DType::F32, DType::Bool]) };
    let mut long = 0;
    for seed in 0..800 {
        let case = uniform_where_wide(case(seed, &options));
        check(&case);
        let wide = case.kernel.body.iter().any(|i| i.dtype.size() == 8);
        long += targets()
            .filter(|&(isa, vector)| wide && emitted(&case.kernel, isa, vector).is_ok_and(|e| e.program.row(8) < 8 * e.program.width))
            .count();
    }
    assert!(long > 100 || targets().count() < 2, "{long} kernels had long vectors");
}

#[test]
fn few_lanes_of_steps_that_wait_have_narrow_vectors() {
    let mut b = Builder::new();
    let state = b.mem(DType::F64, Lane::Unit);
    let (carry, h) = b.carry(state);
    let next = b.bin(Bin::Div, h, h);
    b.set_next(carry, next);
    let waits = b.finish();
    let mut b = Builder::new();
    let [x, y] = [(); 2].map(|()| b.mem(DType::F64, Lane::Unit));
    let x = b.load(x);
    b.store(y, x);
    let map = b.finish();
    for isa in targets().map(|(isa, _)| isa) {
        let vector = |kernel, lanes| chosen(kernel, isa, lanes).expect("both are simple").program.vector;
        let most = vectors(isa)[vectors(isa).len() - 1];
        assert_eq!([vector(&waits, FEW), vector(&waits, FEW + 1), vector(&map, FEW)], [32, most, most]);
    }
}

#[test]
fn more_values_than_registers() {
    sweep(0..40, &Options { insts: 100..=300, ..options(&[DType::F64]) });
    sweep(40..80, &Options { insts: 100..=300, ..options(&[DType::F32, DType::F64, DType::Bool, DType::I64]) });
    sweep(100..120, &Options { insts: 100..=300, ..options(&[DType::F32, DType::F64, DType::I64]) });
    sweep(80..100, &Options { insts: 100..=300, calls: true, ..options(&[DType::F64, DType::Bool]) });
}

#[test]
fn many_blocks() {
    sweep(0..40, &Options { lanes: 900..=1500, ..options(&[DType::F64]) });
    sweep(40..80, &Options { lanes: 900..=1500, ..options(&[DType::F32, DType::Bool]) });
}
