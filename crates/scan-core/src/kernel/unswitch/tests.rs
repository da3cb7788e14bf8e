//! The version that a condition tells does what the whole kernel does.

use super::*;
use crate::kernel::record::Builder;
use crate::kernel::testing::{Case, Options, case};
use crate::kernel::{Lane, verify};

/// The bits of a uniform operand's element.
fn bits(case: &Case, mem: MemId, dtype: DType) -> u64 {
    let operand = &case.operands[mem.0 as usize];
    let mut bytes = [0; 8];
    bytes[..dtype.size()].copy_from_slice(&case.memories[operand.memory][operand.offset..][..dtype.size()]);
    u64::from_le_bytes(bytes)
}

#[test]
fn versions_of_random_kernels() {
    let (mut tried, mut held) = (0, 0);
    for seed in 0..3000 {
        let dtypes = [vec![DType::Bool, DType::F64], vec![DType::Bool, DType::I32, DType::F32], vec![DType::Bool, DType::I64]];
        let options =
            Options { dtypes: dtypes[seed as usize % 3].clone(), insts: 5..=40, lanes: 2..=9, steps: 1..=1, ..Options::default() };
        let case = case(seed, &options);
        let strides = case.operands.iter().map(|o| o.stride);
        let nest = Nest { first: case.first, ..Nest::of(case.kernel.clone(), case.lanes, case.steps, strides) };
        let (expected, _) = case.expected();
        for r in deciding(&case.kernel) {
            let Some(condition) = Condition::of(&nest, r) else { continue };
            let holds = condition.holds(case.first, |mem, dtype| bits(&case, mem, dtype));
            let version = Case { kernel: given(&case.kernel, r, holds), ..case.clone() };
            verify(&version.kernel).unwrap_or_else(|e| panic!("{e:?} in {}", version.show()));
            assert!(version.kernel.needed().iter().all(|n| *n), "something that nothing needs in {}", version.show());
            let difference = case.difference(&expected, &version.expected().0);
            assert_eq!(difference, None, "{}\nwhere {r:?} is {holds}:\n{}", case.show(), version.show());
            (tried, held) = (tried + 1, held + usize::from(holds));
        }
    }
    assert!(tried > 300 && held > 50 && tried - held > 50, "{held} of {tried} conditions held");
}

/// `where(c and x > 0, √x, x)` of many lanes, by a c that all share, as the step of a loop stores it.
fn masked(lane: Lane, lanes: usize) -> Nest {
    let mut b = Builder::new();
    let (c, x, to) = (b.mem(DType::Bool, lane), b.mem(DType::F64, Lane::Unit), b.mem(DType::F64, Lane::Unit));
    let (c, x) = (b.load(c), b.load(x));
    let zero = b.constant(DType::F64, 0.0);
    let above = b.cmp(crate::kernel::Cmp::Lt, zero, x);
    let both = b.bin(Bin::And, c, above);
    let root = b.un(crate::kernel::Un::Sqrt, x);
    let chosen = b.select(both, root, x);
    b.store(to, chosen);
    Nest::of(b.finish(), lanes, 1, [0, 0, 0])
}

#[test]
fn where_nothing_is_chosen_nothing_is_computed() {
    let Unswitched { condition, kernels: [no, yes] } = Unswitched::of(&masked(Lane::Uniform, 1000)).expect("two versions");
    assert!(condition.holds(0, |_, _| 1) && !condition.holds(0, |_, _| 0));
    assert_eq!(no.body.len(), 1, "{no}");
    assert_eq!(yes.body.len(), 5, "{yes}");
}

#[test]
fn what_is_not_worth_it_stays_whole() {
    assert!(Unswitched::of(&masked(Lane::Uniform, 100)).is_none(), "few lanes");
    assert!(Unswitched::of(&masked(Lane::Unit, 1000)).is_none(), "lanes that differ");
    let mut moves = Nest { steps: 2, ..masked(Lane::Uniform, 1000) };
    moves.strides[0].step = 1;
    assert!(Unswitched::of(&moves).is_none(), "another condition at the next step");
}
