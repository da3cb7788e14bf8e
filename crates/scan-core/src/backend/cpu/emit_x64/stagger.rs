//! The copies of a long step begin one after the other, so that each is at another place of its chain of dependent operations: the divider
//! and the multipliers have work at all times. In lockstep they would have it by turns, and the processor sees no further than some vectors
//! ahead.

use super::codes as code;
use super::order::{bundles, lasts};
use super::select::{Class, Form, Operation, Program, Val};
use crate::base::Id;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Cycles between two copies, at least.
const SPACE: isize = 6;

/// Cycles between two copies that are few, from the best on.
const NEAR: [isize; 3] = [SPACE, 8, 10];

/// Operations that stay together, of a copy; or all stores of a copy, where there are none.
pub(super) type Turn = (Range<usize>, usize);

/// The turns of a step for so many copies, as near to each other as `room` vector registers allow. None where the values do not fit or
/// functions are called.
pub(super) fn turns(program: &Program, copies: usize, room: usize) -> Option<Vec<Turn>> {
    if calls(program) {
        return None;
    }
    let plan = Plan::new(program, copies);
    let (mut low, mut high) = (SPACE, SPACE.max(plan.span));
    if plan.pressure(&plan.turns(high)) > room {
        return None;
    }
    while low < high {
        let middle = (low + high) / 2;
        if plan.pressure(&plan.turns(middle)) <= room { high = middle } else { low = middle + 1 }
    }
    Some(plan.turns(high))
}

/// The vector registers that a step takes where copies begin as near to each other as so many registers allow, if that is near: what
/// else registers could hold is better in memory than that copies begin later.
pub(super) fn near(program: &Program, copies: usize, registers: usize) -> Option<usize> {
    if !super::order::waits(program) || calls(program) {
        return None;
    }
    let plan = Plan::new(program, copies);
    NEAR.into_iter().map(|space| plan.pressure(&plan.turns(space))).find(|&need| need <= registers)
}

fn calls(program: &Program) -> bool {
    program.operations.iter().any(|o| matches!(o.form, Form::Call(_)))
}

struct Plan<'a> {
    program: &'a Program,
    copies: usize,
    /// What stays together, and the latest cycle at which it may begin if the last is to be done in time.
    bundles: Vec<(Range<usize>, isize)>,
    /// Cycles of the longest chain.
    span: isize,
}

impl Plan<'_> {
    fn new(program: &Program, copies: usize) -> Plan<'_> {
        let mut bundles: Vec<(Range<usize>, isize)> = bundles(program).into_iter().map(|b| (b, 0)).collect();
        let mut needed: Vec<isize> = vec![0; program.values.len()];
        for (bundle, begin) in bundles.iter_mut().rev() {
            let operations = &program.operations[bundle.clone()];
            let end = operations.iter().map(|o| needed[o.dst.idx()]).min().unwrap_or(0);
            *begin = end - chain(operations);
            for arg in operations.iter().flat_map(|o| &o.args) {
                needed[arg.idx()] = needed[arg.idx()].min(*begin);
            }
        }
        let span = bundles.iter().map(|b| -b.1).max().unwrap_or(0);
        Plan { program, copies, bundles, span }
    }
    /// The order where copies begin so many cycles after each other.
    fn turns(&self, space: isize) -> Vec<Turn> {
        let all = (0..self.copies).flat_map(|copy| (0..self.bundles.len()).map(move |b| (b, copy)));
        let mut order: Vec<(isize, usize, usize)> = all.map(|(b, copy)| (self.bundles[b].1 + space * copy as isize, copy, b)).collect();
        order.sort_unstable();
        let mut left = vec![self.bundles.len(); self.copies];
        let mut turns = vec![];
        for (_, copy, b) in order {
            turns.push((self.bundles[b].0.clone(), copy));
            left[copy] -= 1;
            if left[copy] == 0 {
                turns.push((0..0, copy));
            }
        }
        turns
    }
    /// Most vectors at once that have a value which is used later and which memory does not have.
    fn pressure(&self, turns: &[Turn]) -> usize {
        let program = self.program;
        let mut spans: FxHashMap<(Val, usize), (usize, usize)> = FxHashMap::default();
        let mut touch = |v: Val, copy: usize, at: usize| {
            let value = &program.values[v];
            if value.class == Class::Vector && lasts(value) {
                spans.entry((v, if value.uniform { 0 } else { copy })).or_insert((at, at)).1 = at;
            }
        };
        for copy in 0..self.copies {
            program.carries.iter().for_each(|c| touch(c.now, copy, 0));
        }
        for (at, (operations, copy)) in turns.iter().enumerate() {
            for o in &program.operations[operations.clone()] {
                o.args.iter().chain([&o.dst]).for_each(|&v| touch(v, *copy, at));
            }
            if operations.is_empty() {
                program.stores.iter().for_each(|s| touch(s.1, *copy, at));
            }
        }
        for copy in 0..self.copies {
            program.carries.iter().for_each(|c| touch(c.next, copy, turns.len()));
        }
        let mut changes = vec![0isize; turns.len() + 2];
        for (first, last) in spans.into_values() {
            changes[first] += 1;
            changes[last] -= 1;
        }
        let live = changes.iter().scan(0, |sum, change| {
            *sum += change;
            Some(*sum)
        });
        live.max().unwrap_or(0) as usize
    }
}

/// Cycles of the longest chain among operations.
fn chain(operations: &[Operation]) -> isize {
    let mut ends: Vec<isize> = vec![];
    for (i, o) in operations.iter().enumerate() {
        let waits = operations[..i].iter().zip(&ends).filter(|(other, _)| o.args.contains(&other.dst));
        ends.push(waits.map(|(_, &end)| end).max().unwrap_or(0) + latency(o));
    }
    ends.into_iter().max().unwrap_or(0)
}

/// Cycles from an operation to its result, about.
fn latency(o: &Operation) -> isize {
    let slow = [&code::DIV_F32, &code::DIV_F64, &code::SQRT_F32, &code::SQRT_F64];
    let short = [&code::MIN_F32, &code::MIN_F64, &code::MAX_F32, &code::MAX_F64];
    match (o.form, o.row) {
        (_, Some(row)) if slow.contains(&row) => 16,
        (_, Some(row)) if short.contains(&row) => 2,
        (Form::Fma | Form::CompareMask, _) => 4,
        (Form::Load(_), _) => 8,
        (Form::Gather(_), _) => 16,
        (Form::Binary(_), Some(row)) if FLOATS.contains(&row) => 3,
        _ => 1,
    }
}

static FLOATS: [&code::Row; 6] = [&code::ADD_F32, &code::ADD_F64, &code::SUB_F32, &code::SUB_F64, &code::MUL_F32, &code::MUL_F64];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::isa::Isa;
    use crate::kernel::{Bin, Builder, Lane};
    use crate::types::DType;

    /// A long chain of operations from a state's row to the next.
    fn long_step() -> Program {
        let mut b = Builder::new();
        let [state, x, out] = [(); 3].map(|()| b.mem(DType::F64, Lane::Unit));
        let (carry, mut h) = b.carry(state);
        let x = b.load(x);
        for bin in [Bin::Mul, Bin::Add, Bin::Div].into_iter().cycle().take(24) {
            h = b.bin(bin, h, x);
        }
        b.set_next(carry, h);
        b.store(out, h);
        super::super::select::select(&b.finish(), Isa::Avx512, 64).expect("operations that this engine has")
    }

    #[test]
    fn copies_begin_one_after_the_other() {
        let program = long_step();
        let turns = turns(&program, 4, 20).expect("room for a value of each copy");
        let of = |copy: usize| -> Vec<usize> { turns.iter().enumerate().filter(|(_, t)| t.1 == copy).map(|(at, _)| at).collect() };
        for copy in 0..4 {
            let mine: Vec<Range<usize>> = of(copy).into_iter().map(|at| turns[at].0.clone()).collect();
            let all: Vec<usize> = mine.iter().cloned().flatten().collect();
            assert_eq!(all, (0..program.operations.len()).collect::<Vec<_>>(), "a chain has one order");
            assert!(mine.last().is_some_and(|last| last.is_empty()), "stores come last");
        }
        for copy in 1..4 {
            let [before, this] = [of(copy - 1), of(copy)];
            assert!(before[0] < this[0] && this[0] < before[before.len() - 1] && before[before.len() - 1] < this[this.len() - 1]);
        }
    }

    #[test]
    fn registers_are_left_to_copies_that_are_near_each_other() {
        let program = long_step();
        let plan = Plan::new(&program, 6);
        let needs = NEAR.map(|space| plan.pressure(&plan.turns(space)));
        assert_eq!(near(&program, 6, 32), Some(needs[0]));
        assert_eq!(near(&program, 6, needs[2] - 1), None, "they would not be near");
        assert!(turns(&program, 6, needs[0]).is_some_and(|turns| turns == plan.turns(SPACE)));
    }

    #[test]
    fn copies_keep_apart_where_registers_are_few() {
        let program = long_step();
        let plan = Plan::new(&program, 4);
        assert_eq!(plan.pressure(&plan.turns(SPACE)), 4, "a value of each copy");
        assert!(turns(&program, 4, 4).is_some() && turns(&program, 4, 3).is_none());
    }
}
