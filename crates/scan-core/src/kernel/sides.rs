//! What only one side of a choice needs, put next to each other, so that an engine can jump over it where no lane takes that side: branches on
//! superword condition codes (Shin, Hall and Chame, "Introducing Control Flow into Vectorized Code", 2007).
//!
//! ```text
//! r1 = lt r0 r9             r1 = lt r0 r9
//! r2 = … heavy …            jump to r4, if r1 holds in no lane
//! r3 = … r2 …               r2 = … heavy …
//! r4 = select r1 r3 r0      r3 = … r2 …
//!                           r4 = select r1 r3 r0
//! ```
//!
//! A choice takes nothing of the side that it does not choose: whatever lies there, its results have the same bits.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::ops::Range;

/// An instruction of a step, by its place among all.
#[derive(Clone, Debug, Default)]
pub struct Instruction {
    /// The instructions whose values it reads.
    pub args: SmallVec<[usize; 3]>,
    /// For one that chooses between two values.
    pub choice: Option<Choice>,
    /// About how long it takes.
    pub weight: usize,
    /// It cannot be left out, or moved.
    pub fixed: bool,
}

/// What chooses between two values.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The value that decides; one number for all choices by it.
    pub condition: usize,
    /// The instruction whose value that is, where it is made in the step.
    pub made: Option<usize>,
    /// The instructions whose values are taken where the condition does not hold, and where it does.
    pub sides: [Option<usize>; 2],
}

/// Instructions that need not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skip {
    /// These, by their places in the new order.
    pub range: Range<usize>,
    /// Only choices by this condition read their values...
    pub condition: usize,
    /// ...and only where it holds, or where it does not.
    pub holds: bool,
}

/// A side of the choices by a condition.
type Side = (usize, bool);

/// The instructions in an order in which what can be skipped lies together, and what can; `None` where that is too little of the whole.
/// Each range takes at least `least`; `kept` are read after the step.
pub fn skippable(instructions: &[Instruction], kept: &[usize], least: usize) -> Option<(Vec<usize>, Vec<Skip>)> {
    let whole: usize = instructions.iter().map(|i| i.weight).sum();
    let (least, share) = if jumps_anyway() { (1, usize::MAX) } else { (least, SHARE) };
    if whole < 2 * least || instructions.iter().all(|i| i.choice.is_none()) {
        return None;
    }
    let owners = owners(instructions, kept, least);
    if gain(instructions, &owners).saturating_mul(share) < whole {
        return None;
    }
    let (order, chunks) = Arranged::of(instructions, &owners);
    let weight = |range: &Range<usize>| order[range.clone()].iter().map(|&i| instructions[i].weight).sum::<usize>();
    let skip = |(range, (condition, holds))| Skip { range, condition, holds };
    let skips: Vec<Skip> = chunks.into_iter().filter(|chunk| weight(&chunk.0) >= least).map(skip).collect();
    (!skips.is_empty()).then_some((order, skips))
}

#[cfg(any(test, feature = "testing"))]
fn jumps_anyway() -> bool {
    crate::base::small::in_jumps()
}

#[cfg(not(any(test, feature = "testing")))]
fn jumps_anyway() -> bool {
    false
}

/// What can be skipped is one part of so many at least.
const SHARE: usize = 6;

/// So often sides are looked for, with fewer choices each time.
const ROUNDS: usize = 6;

/// Per instruction: the side that alone reads its value.
fn owners(instructions: &[Instruction], kept: &[usize], least: usize) -> Vec<Option<Side>> {
    let mut dissolved = FxHashSet::default();
    let mut found = vec![];
    for _ in 0..ROUNDS {
        found = owned(instructions, kept, &dissolved);
        let before = dissolved.len();
        dissolve(instructions, &found, least, &mut dissolved);
        if dissolved.len() == before {
            break;
        }
    }
    found
}

/// One walk from the last instruction to the first, each of which belongs to who owns all that reads it.
fn owned(instructions: &[Instruction], kept: &[usize], dissolved: &FxHashSet<Side>) -> Vec<Option<Side>> {
    // `None` for what nothing has read so far.
    let mut read: Vec<Option<Option<Side>>> = vec![None; instructions.len()];
    kept.iter().for_each(|&i| read[i] = Some(None));
    let mut owners = vec![None; instructions.len()];
    for (i, instruction) in instructions.iter().enumerate().rev() {
        let own = read[i].flatten().filter(|_| !instruction.fixed);
        owners[i] = own;
        for &arg in &instruction.args {
            let by = instruction.side_of(arg).filter(|side| !dissolved.contains(side)).or(own);
            read[arg] = Some(match read[arg] {
                None => by,
                Some(other) => other.filter(|other| Some(*other) == by),
            });
        }
    }
    owners
}

impl Instruction {
    /// The side of a choice that alone reads an instruction's value here.
    fn side_of(&self, arg: usize) -> Option<Side> {
        let choice = self.choice.filter(|_| self.args.iter().filter(|&&a| a == arg).count() == 1)?;
        let side = choice.sides.iter().position(|&side| side == Some(arg))?;
        Some((choice.condition, side == 1))
    }
}

/// Gives up sides of little work, and those within a side of more.
fn dissolve(instructions: &[Instruction], owners: &[Option<Side>], least: usize, dissolved: &mut FxHashSet<Side>) {
    let mut weights: FxHashMap<Side, usize> = FxHashMap::default();
    for (instruction, owner) in instructions.iter().zip(owners) {
        owner.iter().for_each(|side| *weights.entry(*side).or_default() += instruction.weight);
    }
    // The side in which all choices between a side's values lie.
    let mut around: FxHashMap<Side, Option<Side>> = FxHashMap::default();
    for (instruction, &owner) in instructions.iter().zip(owners) {
        for side in instruction.args.iter().filter_map(|&arg| instruction.side_of(arg)).filter(|side| weights.contains_key(side)) {
            around.entry(side).and_modify(|known| *known = known.filter(|_| *known == owner)).or_insert(owner);
        }
    }
    for (&side, &weight) in &weights {
        let within = around.get(&side).copied().flatten().and_then(|outer| weights.get(&outer));
        if weight < least || within.is_some_and(|&outer| weight < outer) {
            dissolved.insert(side);
        }
    }
}

/// What is skipped where all lanes take one side: of two sides the lesser counts.
fn gain(instructions: &[Instruction], owners: &[Option<Side>]) -> usize {
    let mut weights: FxHashMap<usize, [usize; 2]> = FxHashMap::default();
    for (instruction, owner) in instructions.iter().zip(owners) {
        owner.iter().for_each(|&(condition, holds)| weights.entry(condition).or_default()[usize::from(holds)] += instruction.weight);
    }
    weights.values().map(|&[a, b]| if a.min(b) > 0 { a.min(b) } else { a.max(b) }).sum()
}

/// A new order under construction: what a side owns waits until a choice reads it.
struct Arranged<'a> {
    instructions: &'a [Instruction],
    owners: &'a [Option<Side>],
    order: Vec<usize>,
    chunks: Vec<(Range<usize>, Side)>,
    waiting: FxHashMap<Side, Vec<usize>>,
    done: Vec<bool>,
    /// Where conditions are made.
    conditions: FxHashMap<usize, Option<usize>>,
}

impl Arranged<'_> {
    fn of(instructions: &[Instruction], owners: &[Option<Side>]) -> (Vec<usize>, Vec<(Range<usize>, Side)>) {
        let (waiting, done) = (FxHashMap::default(), vec![false; instructions.len()]);
        let conditions = instructions.iter().filter_map(|i| i.choice).map(|choice| (choice.condition, choice.made)).collect();
        let mut all = Arranged { instructions, owners, order: vec![], chunks: vec![], waiting, done, conditions };
        for i in 0..instructions.len() {
            all.place(i);
        }
        let mut rest: Vec<Side> = all.waiting.iter().filter(|side| !side.1.is_empty()).map(|side| *side.0).collect();
        rest.sort_unstable();
        rest.into_iter().for_each(|side| all.end(side));
        (all.order, all.chunks)
    }
    fn place(&mut self, i: usize) {
        let own = self.owners[i];
        // The condition, or what it waits for, comes before what hangs on it.
        let Instruction { args, .. } = &self.instructions[i];
        for &arg in args {
            if let Some(side) = self.owners[arg].filter(|side| !self.done[arg] && Some(*side) != own) {
                if own.is_some_and(|own| args.iter().any(|&a| !self.done[a] && self.owners[a] == Some(own))) {
                    own.into_iter().for_each(|own| self.end(own));
                }
                self.end(side);
            }
        }
        match own {
            Some(side) => self.waiting.entry(side).or_default().push(i),
            None => {
                self.done[i] = true;
                self.order.push(i);
            }
        }
    }
    /// Places what a side has waiting: to be jumped over, if it is known by then whether it is needed.
    fn end(&mut self, side: Side) {
        let chunk = self.waiting.entry(side).or_default();
        let first = self.order.len();
        let own = std::mem::take(chunk);
        let made = self.conditions.get(&side.0).copied().flatten();
        if !own.is_empty() && made.is_none_or(|made| self.done[made]) {
            self.chunks.push((first..first + own.len(), side));
        }
        own.iter().for_each(|&i| self.done[i] = true);
        self.order.extend(own);
    }
}
