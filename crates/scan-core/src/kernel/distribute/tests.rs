//! Stages, one after the other, do what the kernel does step by step.

use super::*;
use crate::kernel::interp::{self, Operand};
use crate::kernel::testing::{Case, Options, case};
use crate::kernel::{Bin, verify};

/// The elements at the steps as those of lanes, where an operand moves so.
fn lane_of(mem: &Mem, stride: isize) -> Option<Mem> {
    let size = mem.dtype.size() as isize;
    let lane = match stride {
        0 => Lane::Uniform,
        _ if mem.table > 0 || stride % size != 0 => return None,
        _ if stride == size => Lane::Unit,
        _ => Lane::Apart(i32::try_from(stride / size).ok()?),
    };
    Some(Mem { lane, stride: None, ..mem.clone() })
}

/// True where nothing that is read is written, and nothing is written twice.
fn apart(case: &Case) -> bool {
    let memory = |m: MemId| case.operands[m.idx()].memory;
    let carried = |m: MemId| case.kernel.carries.iter().any(|carry| carry.mem == m);
    let written: Vec<usize> = case.kernel.mems.ids().filter(|&m| case.kernel.writes(m)).map(memory).collect();
    let read = case.kernel.mems.ids().filter(|&m| !case.kernel.writes(m) || carried(m) && case.kernel.stores.iter().any(|s| s.mem == m));
    let once = (0..written.len()).all(|i| !written[..i].contains(&written[i]));
    let fixed = case.kernel.stores.iter().all(|s| case.operands[s.mem.idx()].stride != 0);
    once && fixed && read.map(memory).all(|m| !written.contains(&m))
}

/// The memories after the stages have run.
fn ran(case: &Case, found: &Distributed) -> Vec<Vec<u8>> {
    let mut memories = case.memories.clone();
    memories.extend(found.between.iter().map(|dtype| vec![0; dtype.size() * case.steps]));
    for stage in &found.stages {
        verify(&stage.kernel).unwrap_or_else(|e| panic!("{e:?} in {}", stage.kernel));
        let operand = |source: &Source| {
            let found = match *source {
                Source::Operand(m) => case.operands[m.idx()],
                Source::Between(at) => Operand { memory: case.memories.len() + at, offset: 0, stride: found.between[at].size() as isize },
            };
            Operand { stride: if stage.lanes { 0 } else { found.stride }, ..found }
        };
        let operands: Vec<Operand> = stage.operands.iter().map(operand).collect();
        let [lanes, steps] = if stage.lanes { [case.steps, 1] } else { [1, case.steps] };
        interp::run(&stage.kernel, &mut memories, &operands, lanes, steps, case.first);
    }
    memories.truncate(case.memories.len());
    memories
}

#[test]
fn stages_of_random_kernels() {
    let (mut tried, mut several) = (0, 0);
    for seed in 0..12_000 {
        let dtypes = [vec![DType::F64], vec![DType::Bool, DType::F32, DType::I32], vec![DType::Bool, DType::I64, DType::F64]];
        let dtypes = dtypes[seed as usize % 3].clone();
        let case = case(seed, &Options { dtypes, insts: 3..=30, lanes: 1..=1, steps: 1..=9, ..Options::default() });
        let wide: Vec<Option<Mem>> = case.kernel.mems.iter().zip(&case.operands).map(|(mem, o)| lane_of(mem, o.stride)).collect();
        if !apart(&case) {
            continue;
        }
        let Some(found) = distributed(&case.kernel, &|m| wide[m.idx()].clone()) else { continue };
        let difference = case.difference(&case.expected().0, &ran(&case, &found));
        let stages: Vec<String> = found.stages.iter().map(|stage| format!("{}\n{}", stage.lanes, stage.kernel)).collect();
        assert_eq!(difference, None, "{}\n{}", case.show(), stages.join("\n"));
        (tried, several) = (tried + 1, several + usize::from(found.stages.len() > 2));
    }
    assert!(tried > 500 && several > 200, "{tried} kernels, {several} with several stages");
}

/// h ← a·h + x², s ← s + |h|, and all h.
fn sums() -> Kernel {
    let mut b = Builder::new();
    let moving = Some(8);
    let (x, h, s) = (b.mem_by(DType::F64, Lane::Uniform, moving), b.mem(DType::F64, Lane::Uniform), b.mem(DType::F64, Lane::Uniform));
    let to = b.mem_by(DType::F64, Lane::Uniform, moving);
    let ((h, h0), (s, s0)) = (b.carry(h), b.carry(s));
    let (x, a) = (b.load(x), b.constant(DType::F64, 0.5));
    let (scaled, square) = (b.bin(Bin::Mul, a, h0), b.bin(Bin::Mul, x, x));
    let h1 = b.bin(Bin::Add, scaled, square);
    let far = b.un(Un::Abs, h1);
    let s1 = b.bin(Bin::Add, s0, far);
    b.set_next(h, h1);
    b.set_next(s, s1);
    b.store(to, h1);
    b.finish()
}

#[test]
fn what_waits_is_apart_from_what_does_not() {
    let kernel = sums();
    let wide = |m: MemId| lane_of(&kernel.mems[m], kernel.mems[m].stride.unwrap_or(0) as isize);
    let found = distributed(&kernel, &wide).expect("stages");
    let shape: Vec<(bool, usize)> = found.stages.iter().map(|stage| (stage.lanes, stage.kernel.carries.len())).collect();
    assert_eq!(shape, [(true, 0), (false, 1), (true, 0), (false, 1)]);
    assert_eq!(found.between, [DType::F64; 3]);
}
