//! The order of operations: what nothing uses goes, masks are made where they are used, and how many vectors run side by side.

use super::select::{Birth, Class, Operation, Program, Val, Value};
use crate::backend::cpu::isa::Isa;
use crate::base::Id;
use std::ops::Range;

/// Most operations of a bundle.
const BUNDLE: usize = 12;
/// Most operations of a step of all copies together, so that the loop stays in the caches of instructions.
const OPERATIONS: usize = 3000;
/// From so many operations on a step is long: the processor does not see the next one while it works on the first of it.
const LONG: usize = 16;
/// A value that is not used for more operations than that may as well be in memory meanwhile.
const RESTS: usize = 8;

/// Removes operations whose values nothing uses.
pub(super) fn prune(program: &mut Program) {
    let mut used = vec![false; program.values.len()];
    for v in kept(program) {
        used[v.idx()] = true;
    }
    for operation in program.operations.iter().rev() {
        if used[operation.dst.idx()] {
            operation.args.iter().for_each(|a| used[a.idx()] = true);
        }
    }
    program.operations.retain(|o| used[o.dst.idx()]);
}

/// Values that outlive the step's operations.
pub(super) fn kept(program: &Program) -> Vec<Val> {
    program.stores.iter().map(|s| s.1).chain(program.carries.iter().map(|c| c.next)).collect()
}

/// Most values of one copy that a step may hold at once for its order to be left as it is.
const FEW: usize = 8;

/// Puts operations in an order of fewer values that are held at once. There are few mask registers: a mask comes just before its first use.
/// Where a step holds many vectors each operation does, if that is better: terms are then computed when they are added, not all of them before.
pub(super) fn arrange(program: &mut Program, skips: bool) {
    program.operations = gathered(program, |v| program.values[v].class == Class::Mask);
    let held = |program: &Program| pressure(program, usize::MAX, lasts).into_iter().map(|(each, shared)| each + shared).max().unwrap_or(0);
    let most = held(program);
    if skips || most <= FEW {
        return;
    }
    let late = gathered(program, |_| true);
    let early = std::mem::replace(&mut program.operations, late);
    if held(program) >= most {
        program.operations = early;
    }
}

/// All operations, each of those that are `late` just before its first use, and what else uses its masks just after that where no more values
/// are held then.
fn gathered(program: &Program, late: impl Fn(Val) -> bool) -> Vec<Operation> {
    let mut gathering = Gathering::new(program);
    for (i, operation) in program.operations.iter().enumerate() {
        if !late(operation.dst) {
            gathering.place(i);
        }
    }
    for v in kept(program) {
        if let Some(i) = gathering.maker[v.idx()] {
            gathering.place(i);
        }
    }
    gathering.order.into_iter().map(|i| program.operations[i].clone()).collect()
}

struct Gathering<'a> {
    operations: &'a [Operation],
    /// Per value: the operation that makes it.
    maker: Vec<Option<usize>>,
    /// Per value: its uses that are still to come.
    uses: Vec<usize>,
    /// Per mask: the operations that use it and make no mask.
    users: Vec<Vec<usize>>,
    /// Per operation: the longest chain of operations that it ends.
    heights: Vec<usize>,
    done: Vec<bool>,
    order: Vec<usize>,
}

impl<'a> Gathering<'a> {
    fn new(program: &'a Program) -> Self {
        let (operations, values) = (&program.operations, &program.values);
        let (mut maker, mut uses, mut users) = (vec![None; values.len()], vec![0; values.len()], vec![vec![]; values.len()]);
        let mut heights: Vec<usize> = vec![];
        for (i, operation) in operations.iter().enumerate() {
            maker[operation.dst.idx()] = Some(i);
            heights.push(operation.args.iter().filter_map(|a| maker[a.idx()]).map(|m| heights[m] + 1).max().unwrap_or(0));
            for &a in &operation.args {
                uses[a.idx()] += 1;
                if values[a].class == Class::Mask && values[operation.dst].class != Class::Mask {
                    users[a.idx()].push(i);
                }
            }
        }
        kept(program).into_iter().for_each(|v| uses[v.idx()] += 1);
        Self { operations, maker, uses, users, heights, done: vec![false; operations.len()], order: vec![] }
    }

    /// Places an operation after those that it needs and that are still to come, that with the longest chain first: few values are held
    /// meanwhile. What else its masks are for comes after it.
    fn place(&mut self, root: usize) {
        let mut stack = vec![root];
        while let Some(&i) = stack.last() {
            let waiting = self.operations[i].args.iter().filter_map(|a| self.maker[a.idx()]).filter(|&m| !self.done[m]);
            let waiting = waiting.reduce(|first, m| if self.heights[m] > self.heights[first] { m } else { first });
            if let Some(m) = waiting {
                stack.push(m);
                continue;
            }
            stack.pop();
            if !std::mem::replace(&mut self.done[i], true) {
                self.order.push(i);
                self.operations[i].args.iter().for_each(|a| self.uses[a.idx()] -= 1);
                stack.extend(self.operations[i].args.iter().flat_map(|a| &self.users[a.idx()]).filter(|&&user| self.follows(user)));
            }
        }
    }

    /// Whether an operation has all that it needs, and is the last one to need some value of those that operations make.
    fn follows(&self, user: usize) -> bool {
        let args = &self.operations[user].args;
        let made = |a: Val| self.maker[a.idx()].is_some();
        let last = |a: Val| self.uses[a.idx()] == args.iter().filter(|&&other| other == a).count();
        !self.done[user]
            && args.iter().all(|a| self.maker[a.idx()].is_none_or(|m| self.done[m]))
            && args.iter().any(|&a| made(a) && last(a))
    }
}

/// True per operation whose value is the same for all lanes and, where there is one step only, for all blocks.
pub(super) fn fixed(program: &Program) -> Vec<bool> {
    let mut fixed: Vec<bool> = program.values.iter().map(|v| v.uniform && matches!(v.birth, Birth::Const(_) | Birth::Load(_))).collect();
    let mut found = vec![];
    for operation in &program.operations {
        let is = program.values[operation.dst].uniform && operation.args.iter().all(|a| fixed[a.idx()]);
        fixed[operation.dst.idx()] = is;
        found.push(is);
    }
    found
}

/// Operations that run one after the other for one copy before the next copy's turn: a mask and its uses, as far as they are near. None
/// reaches into what may be jumped over, or out of it.
pub(super) fn bundles(program: &Program) -> Vec<Range<usize>> {
    let mut last = vec![0; program.values.len()];
    for (i, operation) in program.operations.iter().enumerate() {
        operation.args.iter().for_each(|a| last[a.idx()] = i);
    }
    let mut bundles = vec![];
    let mut start = 0;
    while start < program.operations.len() {
        let mut end = start;
        let mut i = start;
        let limit = program.skips.iter().flat_map(|s| [s.range.start, s.range.end]).filter(|&at| at > start).min().unwrap_or(usize::MAX);
        while i <= end {
            let dst = program.operations[i].dst;
            let reach = last[dst.idx()];
            if program.values[dst].class == Class::Mask && reach > end && reach < limit.min(start + BUNDLE) {
                end = reach;
            }
            i += 1;
        }
        bundles.push(start..end + 1);
        start = end + 1;
    }
    bundles
}

/// How many vectors a block has, 1 to 8: enough chains to hide latencies behind each other. Values that rest for a while may
/// wait in memory, and some of those that do not: that costs less than waiting for results.
pub(super) fn copies(program: &Program) -> usize {
    let registers: usize = if program.isa == Isa::Avx512 { 32 } else { 16 };
    let room = registers + registers / 2;
    let fitting = pressure(program, RESTS, lasts).into_iter().map(|(each, shared)| room.saturating_sub(shared) / each.max(1)).min();
    let short = OPERATIONS / program.operations.len().max(1);
    // The more lanes, the less often none of them needs what could be jumped over.
    let most = if program.skips.is_empty() { 8 } else { 2 };
    fitting.unwrap_or(8).min(short).clamp(1, most)
}

/// How many of a block's copies go side by side. Where a step needs the one before, half of them: while the last operations of one
/// half wait for each other (a quotient, above all), the other half has work.
pub(super) fn side_by_side(program: &Program, copies: usize) -> usize {
    if waits(program) { copies.div_ceil(2) } else { copies }
}

/// Constants to be kept in registers over all steps, those first that are used most; as many as leave enough of `registers` for all
/// that a step holds for so many copies side by side.
pub(super) fn constants(program: &Program, copies: usize, registers: usize) -> Vec<Val> {
    let made = |v: &Value| matches!(v.birth, Birth::Made | Birth::Load(_));
    let step = pressure(program, usize::MAX, made).into_iter().map(|(each, shared)| each * copies + shared).max().unwrap_or(0).max(6);
    let mut uses = vec![0usize; program.values.len()];
    program.operations.iter().flat_map(|o| &o.args).for_each(|a| uses[a.idx()] += 1);
    let constant = |v: &Val| matches!(program.values[*v].birth, Birth::Const(_)) && uses[v.idx()] > 0;
    let mut found: Vec<Val> = program.values.ids().filter(constant).collect();
    found.sort_by_key(|v| std::cmp::Reverse(uses[v.idx()]));
    found.truncate(registers.saturating_sub(step));
    found
}

/// How many registers a step needs for so many copies side by side.
pub(super) fn need(program: &Program, copies: usize) -> usize {
    pressure(program, RESTS, lasts).into_iter().map(|(each, shared)| each * copies + shared).max().unwrap_or(0).max(6)
}

/// True where steps are long and need the ones before, so that copies are best at different places of them. What is jumped over is so for all
/// copies at once: those behind may read what the first has computed for all.
pub(super) fn waits(program: &Program) -> bool {
    !program.carries.is_empty() && program.operations.len() >= LONG && program.skips.is_empty()
}

/// True for what memory does not have at no cost.
pub(super) fn lasts(value: &Value) -> bool {
    matches!(value.birth, Birth::Made | Birth::Carry)
}

/// At each operation: how many vectors of each copy, and how many of all, are used soon before and soon after.
/// Of values that `counts` holds for; what is not used for more than `rests` operations is elsewhere meanwhile.
fn pressure(program: &Program, rests: usize, counts: impl Fn(&Value) -> bool) -> Vec<(usize, usize)> {
    let count = program.operations.len();
    let mut changes = vec![[0isize; 2]; count + 2];
    let mut touched: Vec<Option<usize>> = vec![None; program.values.len()];
    let mut touch = |v: Val, at: usize| {
        let value = program.values[v];
        let held = value.class == Class::Vector && counts(&value);
        let before = touched[v.idx()].replace(at);
        if let Some(before) = before.filter(|b| held && at - b <= rests) {
            changes[before + 1][usize::from(value.uniform)] += 1;
            changes[at + 1][usize::from(value.uniform)] -= 1;
        }
    };
    for (at, operation) in program.operations.iter().enumerate() {
        operation.args.iter().for_each(|&a| touch(a, at));
        touch(operation.dst, at);
    }
    kept(program).into_iter().for_each(|v| touch(v, count));
    let sums = changes.into_iter().scan([0isize; 2], |sum, change| {
        *sum = [sum[0] + change[0], sum[1] + change[1]];
        Some((sum[0] as usize, sum[1] as usize))
    });
    sums.collect()
}
