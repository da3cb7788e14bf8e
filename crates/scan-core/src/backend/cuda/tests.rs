//! Kernels on a card that a driver without one interprets, and what such a driver reports.

use super::driver::{Call, Driver};
use super::fake::{Fake, Plant, assemble};
use super::text::ENTRY;
use super::{open_on, ptx};
use crate::backend::cpu::Memory;
use crate::backend::gpu::heap::Plan;
use crate::backend::gpu::testing::{INTS, sweep_all};
use crate::backend::gpu::{DeviceRef, Launch, Product, Shape, Space, kernels, words};
use crate::base::{Diagnostic, Result};
use crate::kernel::testing::{Options, case};
use crate::kernel::{Bin, Inst, Kernel, Lane, Mem, MemId, Op, Store};
use crate::types::DType;
use std::cell::Cell;

fn leaked(plants: &[Plant]) -> &'static Fake {
    Box::leak(Box::new(Fake::with(plants)))
}

fn device(fake: &'static Fake) -> DeviceRef {
    open_on(fake, 0).unwrap_or_else(|e| panic!("{}", shown(&e)))
}

/// All words of an error.
fn shown(error: &Diagnostic) -> String {
    let notes = error.notes.iter().map(|n| format!("\n  note: {n}")).collect::<String>();
    format!("{} {}{notes}", error.code, error.title)
}

#[test]
fn random_kernels() {
    let fake = leaked(&[]);
    sweep_all(device(fake));
    assert_eq!(fake.counts().modules, 0, "programs that nobody uses are given back");
    assert!(fake.counts().memories <= 16, "{:?}", fake.counts());
}

#[test]
fn a_card_says_what_it_computes() {
    let device = device(leaked(&[]));
    let traits = device.0.traits();
    assert_eq!((&traits.no_f32, &traits.no_f64, &traits.no_i64, &traits.no_fma), (&None, &None, &None, &None), "{traits:?}");
    assert_eq!((traits.fused, device.0.name(), device.0.limit()), ([true; 2], "cuda:0", 1 << 27));
    assert_eq!(device.0.about(), "PTX interpreted by the processor (compute capability 9.0, CUDA 12.4, a program on the processor)");
}

const CARD: ptx::Target = ptx::Target { processors: 2, copies: true, shared: 48 << 10 };

/// y ← x + 1 of f32, each step a row further.
fn successor() -> Kernel {
    let mut kernel = Kernel::default();
    let mems = [(); 2].map(|()| kernel.mems.push(Mem::new(DType::F32, Lane::Unit)));
    let x = kernel.body.push(Inst { op: Op::Load(mems[0]), dtype: DType::F32 });
    let one = kernel.body.push(Inst { op: Op::Const(u64::from(1f32.to_bits())), dtype: DType::F32 });
    let value = kernel.body.push(Inst { op: Op::Bin(Bin::Add, x, one), dtype: DType::F32 });
    kernel.stores.push(Store { mem: MemId(1), value, at: None });
    kernel
}

#[test]
fn the_text_of_a_kernel() {
    let text = ptx::text(&successor(), &Shape::default(), CARD).unwrap_or_else(|e| panic!("{}", e.0)).text;
    for line in [
        ".version 7.0\n.target sm_70\n.address_size 64",
        ".visible .entry main_kernel(\n\t.param .u64 m,\n\t.param .align 4 .b8 p[68]\n)",
        "\tmov.f32 %f2, 0f3F800000;",
        "\tadd.rn.f32 %f3, %f1, %f2;",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("ftz") && !text.contains("approx"), "{text}");
}

#[test]
fn an_assembler_takes_the_text() {
    let Some(ptxas) = assemble::found() else {
        eprintln!("ptxas: not run (not installed)");
        return;
    };
    let all: Vec<DType> = INTS.into_iter().chain([DType::F32, DType::F64]).collect();
    for seed in 0..6 {
        let options = Options { dtypes: all.clone(), stop: seed % 2 == 1, calls: false, insts: 30..=60, ..Options::default() };
        let shape = Shape { parallel: seed as usize % 3, ordered: seed as usize % 2, ahead: u64::MAX };
        let text = ptx::text(&case(seed, &options).kernel, &shape, CARD).unwrap_or_else(|e| panic!("{}", e.0)).text;
        assemble::assemble(&ptxas, &text).unwrap_or_else(|why| panic!("seed {seed}: {why}\n{text}"));
    }
    assert!(assemble::assemble(&ptxas, "add.f32 %f0, %f0, %f0;").is_err());
}

#[test]
fn many_operands_need_newer_drivers_and_more_are_refused() {
    let with = |n: usize| {
        let mut kernel = successor();
        let mem = Mem::new(DType::F32, Lane::Unit);
        (2..n).for_each(|_| {
            kernel.mems.push(mem.clone());
        });
        ptx::text(&kernel, &Shape::default(), CARD).map(|module| module.text)
    };
    assert!(with(200).is_ok_and(|t| t.starts_with(".version 7.0\n")));
    assert!(with(400).is_ok_and(|t| t.starts_with(".version 8.1\n")));
    assert!(with(3000).is_err_and(|r| r.0 == "it has 3000 operands"));
}

/// Six launches for each of so many steps, in memory of their own: element k, which is k at first, grows by k twice a step.
fn list(device: DeviceRef, steps: usize) -> Result<Vec<u32>> {
    let nests = [kernels::copy(DType::I32, 200, 4), kernels::add(DType::I32, 200, 4)];
    let [copy, add] = nests.map(|nest| Launch::of_nest(device, nest, false, 0).map(|l| l.unwrap_or_else(|r| panic!("{}", r.0))));
    let (copy, add) = (copy?, add?);
    let mut plan = Plan::new();
    let [a, b, c] = [(); 3].map(|()| plan.region(DType::I32, 0..800));
    let mut space = Space::new(device, &plan)?;
    let numbers: Vec<u8> = (0..200).flat_map(|k: i32| k.to_le_bytes()).collect();
    for region in [&a, &c] {
        space.bring(region, Memory::Read(&numbers), 0..800)?;
    }
    for _ in 0..2 * steps {
        for (launch, from, to) in [(&copy, &a, &b), (&add, &b, &c), (&copy, &b, &a)] {
            space.run(launch, &[from.base(0), to.base(0)], 1, 0)?;
        }
    }
    let cells: Vec<Cell<u8>> = vec![Cell::new(0); 800];
    space.take(&a, Memory::Write(&cells), 0..800)?;
    Ok(cells.chunks(4).map(|c| u32::from_le_bytes([0, 1, 2, 3].map(|k: usize| c[k].get()))).collect())
}

#[test]
fn launches_that_come_again_are_recorded_once_and_replayed() {
    let fake = leaked(&[]);
    let device = device(fake);
    let law = |steps: u32| (0..200).map(|k| k * (1 + 2 * steps)).collect::<Vec<u32>>();
    let before = fake.counts().launches;
    assert_eq!(list(device, 1).map_err(|e| shown(&e)), Ok(law(1)));
    assert_eq!((fake.counts().graphs, fake.counts().launches - before), (0, 6), "six are not worth it");
    // Of 600 launches 63 are handed over at a time: at first one by one, then recorded; 33 are left.
    for (steps, replays) in [(100, 8), (100, 17)] {
        assert_eq!(list(device, steps).map_err(|e| shown(&e)), Ok(law(steps as u32)));
        assert_eq!((fake.counts().graphs, fake.counts().replays), (1, replays));
    }
}

#[test]
fn cards_that_are_not_there() {
    let plant = |call, code| leaked(&[Plant { call, after: 0, code }]);
    for (fake, card, text) in [
        (leaked(&[]), 3, "E0521 there is no device cuda:3\n  note: there are cuda:0"),
        (plant("cards", 100), 0, "E0521 there is no device cuda:0\n  note: CUDA has no card here"),
        (plant("version", 719), 0, "E0521 there is no device cuda:0\n  note: the driver of CUDA says: CUDA_ERROR_LAUNCH_FAILED"),
        (
            plant("open", 2),
            0,
            "E0521 the device cuda:0, PTX interpreted by the processor (compute capability 9.0, CUDA 12.4, a program on the processor), \
             cannot be used: CUDA_ERROR_OUT_OF_MEMORY",
        ),
    ] {
        assert_eq!(open_on(fake, card).map(|d| d.0.name()).map_err(|e| shown(&e)), Err(text.to_string()));
    }
}

#[test]
fn faults_of_the_driver_are_errors() {
    let lost = |what: &str| format!("E0523 the device cuda:0 failed: {what}");
    for (call, code, text) in [
        ("launch", 719, lost("CUDA_ERROR_LAUNCH_FAILED")),
        ("run", 700, lost("CUDA_ERROR_ILLEGAL_ADDRESS")),
        ("write", 719, lost("CUDA_ERROR_LAUNCH_FAILED")),
        ("read", 1, lost("CUDA_ERROR_INVALID_VALUE")),
        ("stream", 719, lost("CUDA_ERROR_LAUNCH_FAILED")),
        ("graph", 1, lost("CUDA_ERROR_INVALID_VALUE")),
        ("set", 1, lost("CUDA_ERROR_INVALID_VALUE")),
        ("replay", 719, lost("CUDA_ERROR_LAUNCH_FAILED")),
    ] {
        let fake = leaked(&[]);
        let device = device(fake);
        // The stream that was used before is busy.
        std::mem::forget(device.0.memory(1));
        fake.plant(Plant { call, after: 0, code });
        let found = list(device, 60).map_err(|e| shown(&e));
        assert_eq!(found, Err(text), "{call}");
    }
}

/// A product on a card of numbers whose sums depend on the order.
fn product(device: DeviceRef, dtype: DType, [m, k, n]: [usize; 3], [turned, adds]: [bool; 2]) -> Result<Vec<f64>> {
    let size = dtype.size() as isize;
    let left = if turned { [m as isize * size, size] } else { [size, k as isize * size] };
    let nest = kernels::chains(dtype, [m, k, n], left, n as isize * size);
    let launch = Launch::of_product(device, nest, Product { dtype, extents: [m, k, n], turned, adds })?.expect("a card multiplies");
    let mut plan = Plan::new();
    let regions = [m * k, k * n, m * n].map(|count| plan.region(dtype, 0..count * dtype.size()));
    let mut space = Space::new(device, &plan)?;
    for (side, region) in regions[..2].iter().enumerate() {
        let numbers = elements(side, region.words / words(dtype));
        let bytes: Vec<u8> = match dtype {
            DType::F32 => numbers.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect(),
            _ => numbers.iter().flat_map(|&x| x.to_le_bytes()).collect(),
        };
        space.bring(region, Memory::Read(&bytes), 0..bytes.len())?;
    }
    space.run(&launch, &regions.each_ref().map(|r| r.base(0)), k, 0)?;
    let cells: Vec<Cell<u8>> = vec![Cell::new(0); m * n * dtype.size()];
    space.take(&regions[2], Memory::Write(&cells), 0..cells.len())?;
    let bytes: Vec<u8> = cells.into_iter().map(Cell::into_inner).collect();
    Ok(match dtype {
        DType::F32 => bytes.chunks(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect(),
        _ => bytes.chunks(8).map(|b| f64::from_le_bytes(std::array::from_fn(|i| b[i]))).collect(),
    })
}

fn elements(side: usize, n: usize) -> Vec<f64> {
    (0..n).map(|k| ((k * 7 + side * 3) % 101) as f64 * 0.37 - 17.0).collect()
}

/// What `product` is: chains of 256 each, in order.
fn law_of_product(dtype: DType, [m, k, n]: [usize; 3], [turned, adds]: [bool; 2]) -> Vec<f64> {
    let single = |x: f64| if dtype == DType::F32 { f64::from(x as f32) } else { x };
    let sides = [elements(0, m * k), elements(1, k * n)].map(|side| side.into_iter().map(single).collect::<Vec<f64>>());
    let fma = |x: f64, y: f64, z: f64| match (dtype, crate::scalar::lanes::fused()) {
        (DType::F32, true) => f64::from((x as f32).mul_add(y as f32, z as f32)),
        (DType::F32, false) => f64::from(x as f32 * y as f32 + z as f32),
        (_, true) => x.mul_add(y, z),
        (_, false) => x * y + z,
    };
    let at = |i: usize, p: usize| sides[0][if turned { p * m + i } else { i * k + p }];
    let mut found = vec![];
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let mut total: Option<f64> = adds.then_some(0.0);
        for first in (0..k).step_by(256) {
            let chain = (first..k.min(first + 256)).fold(0.0, |sum, p| fma(at(i, p), sides[1][p * n + j], sum));
            total = Some(total.map_or(chain, |t| single(t + chain)));
        }
        found.push(total.unwrap_or(0.0));
    }
    found
}

#[test]
fn products_are_added_up_as_the_law_says() {
    let device = device(leaked(&[]));
    // Few and many tiles, of every size; extents that fill none, and chains that end within one.
    let extents = [[1, 1, 2], [3, 5, 7], [32, 256, 16], [9, 300, 33], [40, 257, 40], [65, 513, 2], [70, 20, 130], [2, 1024, 70]];
    for (k, extents) in extents.into_iter().enumerate() {
        for dtype in [DType::F32, DType::F64] {
            for how in [[false, false], [k % 2 == 0, true]] {
                let found = product(device, dtype, extents, how).unwrap_or_else(|e| panic!("{}", shown(&e)));
                assert_eq!(found, law_of_product(dtype, extents, how), "{dtype} {extents:?} {how:?}");
            }
        }
    }
}

#[test]
fn a_card_that_failed_in_a_launch_fails_from_then_on() {
    let fake = leaked(&[]);
    let device = device(fake);
    fake.plant(Plant { call: "run", after: 3, code: 700 });
    assert!(list(device, 2).is_err());
    assert_eq!(list(device, 1).map_err(|e| e.code), Err("E0523"), "its memory cannot be trusted any more");
}

#[test]
fn memory_that_a_card_has_not() {
    let fake = leaked(&[]);
    let device = device(fake);
    let too_much = device.0.memory(1 << 29).map(|_| ()).map_err(|e| shown(&e));
    assert!(too_much.is_err_and(|text| text.starts_with("E0392 ") && text.contains("a call on the device cuda:0")));
    let kept = (0..12).map(|k| device.0.memory((1 << 17) + (k << 17))).collect::<Result<Vec<_>>>();
    drop(kept.unwrap_or_else(|e| panic!("{}", shown(&e))));
    let before = fake.counts().memories;
    assert!(device.0.memory(3 << 23).is_ok(), "what was kept for later goes first");
    assert!(fake.counts().memories < before, "{before}: {:?}", fake.counts());
    fake.plant(Plant { call: "allocate", after: 0, code: 719 });
    let broken = device.0.memory(1 << 25).map(|_| ()).map_err(|e| shown(&e));
    assert_eq!(broken, Err("E0523 the device cuda:0 failed: CUDA_ERROR_LAUNCH_FAILED".into()));
}

#[test]
fn a_kernel_that_the_driver_refuses_runs_on_the_host() {
    let fake = leaked(&[]);
    let device = device(fake);
    fake.plant(Plant { call: "load", after: 0, code: 218 });
    let refused = Launch::of_kernel(device, &successor(), 5, [4, 4].into_iter(), 0).unwrap_or_else(|e| panic!("{}", shown(&e)));
    assert_eq!(refused.map(|_| ()).map_err(|r| r.0), Err("the driver does not take the kernel: CUDA_ERROR_INVALID_PTX".into()));
}

#[test]
fn what_a_launch_touches_is_looked_at() {
    let fake = leaked(&[]);
    let text = ptx::text(&successor(), &Shape::default(), CARD).unwrap_or_else(|e| panic!("{}", e.0)).text;
    let function = fake.load(&text).and_then(|module| fake.function(module, ENTRY)).unwrap_or_else(|f| panic!("{f}"));
    let heap = fake.allocate(64).unwrap_or_else(|f| panic!("{f}"));
    let stream = fake.stream().unwrap_or_else(|f| panic!("{f}"));
    // One lane, one step, one invocation; the operands at words 0 and 16, which is behind the end.
    let mut params = [0, 1, 1, 0, 0, 0, 1, 0, 0, 16, 0, 0, 0, 16, 0, 0, 0];
    let call = |params: &[u32]| {
        let call = Call { function, blocks: 1, threads: 32, shared: 0, heap, params };
        fake.launch(&call, stream).and_then(|()| fake.wait(stream)).map_err(|f| f.text)
    };
    params[9] = 15;
    assert_eq!(call(&params), Ok(()));
    params[9] = 16;
    assert_eq!(call(&params), Err("CUDA_ERROR_ILLEGAL_ADDRESS".into()));
}
