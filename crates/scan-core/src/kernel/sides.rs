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

use super::{Kernel, Op, Reg};
use crate::base::IdxVec;
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
    /// The instructions whose values are taken where the condition does not hold, and where it does.
    pub sides: [Option<usize>; 2],
}

/// Instructions that need not run; ranges lie apart, or one in the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skip {
    /// These, by their places in the new order.
    pub range: Range<usize>,
    /// Only choices by this condition read their values...
    pub condition: usize,
    /// ...and only where it holds, or where it does not.
    pub holds: bool,
}

/// The instructions in an order in which what can be skipped lies together, and what can, outer ranges before those within; `None` where that
/// is too little of the whole. `kept` are read after the step.
pub fn skippable(instructions: &[Instruction], kept: &[usize]) -> Option<(Vec<usize>, Vec<Skip>)> {
    let whole: usize = instructions.iter().map(|i| i.weight).sum();
    let (least, share) = if jumps_anyway() { (1, usize::MAX) } else { (LEAST, SHARE) };
    if whole < 2 * least || instructions.iter().all(|i| i.choice.is_none()) {
        return None;
    }
    let sides = Sides::of(instructions, kept, least);
    let mut flat = Flat { sides: &sides, least, order: vec![], skips: vec![] };
    let gain = flat.put(Arranged::of(&sides));
    (!flat.skips.is_empty() && gain.saturating_mul(share) >= whole).then_some((flat.order, flat.skips))
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
const SHARE: usize = 5;

/// Work of so many sums on one side is worth a jump.
const LEAST: usize = 50;

/// True per bool that no comparison of floats decides within the step: integers and bools from memory follow patterns, which processors foresee.
/// A jump that is foreseen wrong costs more than most sides. `None` where no such bool chooses.
pub fn foreseen(kernel: &Kernel) -> Option<IdxVec<Reg, bool>> {
    let mut foreseen: IdxVec<Reg, bool> = IdxVec::new();
    for inst in kernel.body.iter() {
        let made_of = |foreseen: &IdxVec<Reg, bool>| inst.op.uses().iter().all(|&r| foreseen[r] || kernel.dtype(r).is_float());
        let is = match &inst.op {
            Op::Cmp(_, x, _) => jumps_anyway() || !kernel.dtype(*x).is_float() && made_of(&foreseen),
            Op::Load(_) | Op::Carry(_) | Op::Const(_) | Op::Step => true,
            _ if inst.dtype.is_float() => true,
            // Numbers that floats have become.
            Op::Convert(x) | Op::Bits(x) if kernel.dtype(*x).is_float() => jumps_anyway(),
            _ => made_of(&foreseen),
        };
        foreseen.push(is);
    }
    kernel.body.iter().any(|inst| matches!(inst.op, Op::Select(c, ..) if foreseen[c])).then_some(foreseen)
}

/// So often owners are looked for, each time with what is known of which side lies in which.
const ROUNDS: usize = 8;

/// Who owns instructions: the sides that alone read their values.
struct Sides<'a> {
    instructions: &'a [Instruction],
    kept: &'a [usize],
    /// A side of the choices by a condition, in order, and whether it is worth anything.
    all: Vec<((usize, bool), bool)>,
    /// Per side: that in which all choices lie that it is a side of.
    around: Vec<Option<usize>>,
    /// Per instruction.
    owners: Vec<Option<usize>>,
}

impl Sides<'_> {
    fn of<'a>(instructions: &'a [Instruction], kept: &'a [usize], least: usize) -> Sides<'a> {
        let choices = instructions.iter().filter_map(|i| i.choice);
        let mut all: Vec<_> = choices.flat_map(|choice| [false, true].map(|holds| (choice.condition, holds))).collect();
        all.sort_unstable();
        all.dedup();
        let (around, all) = (vec![None; all.len()], all.into_iter().map(|side| (side, true)).collect());
        let mut sides = Sides { instructions, kept, all, around, owners: vec![None; instructions.len()] };
        for _ in 0..ROUNDS {
            let before = (sides.owners.clone(), sides.all.clone());
            sides.owners = sides.owned();
            sides.nest();
            sides.dissolve(least);
            if before == (sides.owners.clone(), sides.all.clone()) {
                break;
            }
        }
        while sides.correct() {}
        sides
    }
    /// The side of a choice that alone reads an instruction's value here.
    fn side(&self, reader: usize, arg: usize) -> Option<usize> {
        let Instruction { args, choice, .. } = &self.instructions[reader];
        let choice = choice.filter(|_| args.iter().filter(|&&a| a == arg).count() == 1)?;
        let side = choice.sides.iter().position(|&side| side == Some(arg))?;
        let number = self.all.binary_search_by_key(&(choice.condition, side == 1), |side| side.0);
        number.ok().filter(|&side| self.all[side].1)
    }
    /// One walk from the last instruction to the first: each belongs to the least side that has all which read it.
    fn owned(&self) -> Vec<Option<usize>> {
        // `None` for what nothing has read so far.
        let mut read: Vec<Option<Option<usize>>> = vec![None; self.instructions.len()];
        self.kept.iter().for_each(|&i| read[i] = Some(None));
        let mut owners = vec![None; self.instructions.len()];
        for (i, instruction) in self.instructions.iter().enumerate().rev() {
            let own = read[i].flatten();
            owners[i] = own.filter(|_| !instruction.fixed);
            for &arg in &instruction.args {
                let by = self.side(i, arg).or(owners[i]);
                read[arg] = Some(read[arg].map_or(by, |other| self.common(other, by)));
            }
        }
        owners
    }
    /// A side with all those around it, from the inside.
    fn chain(&self, side: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(side, |&side| self.around[side]).take(self.all.len())
    }
    fn lies_in(&self, side: Option<usize>, outer: usize) -> bool {
        self.chain(side).any(|side| side == outer)
    }
    /// The least side around both.
    fn common(&self, a: Option<usize>, b: Option<usize>) -> Option<usize> {
        self.chain(a).find(|&side| self.lies_in(b, side))
    }
    /// Finds the side in which all choices lie that a side's values are read by.
    fn nest(&mut self) {
        let mut around: Vec<Option<Option<usize>>> = vec![None; self.all.len()];
        for (i, instruction) in self.instructions.iter().enumerate() {
            for side in instruction.args.iter().filter_map(|&arg| self.side(i, arg)) {
                around[side] = Some(around[side].map_or(self.owners[i], |other| self.common(other, self.owners[i])));
            }
        }
        for (side, outer) in around.into_iter().enumerate() {
            let outer = outer.flatten();
            self.around[side] = outer.filter(|_| !self.lies_in(outer, side));
        }
    }
    /// Gives up sides of little work.
    fn dissolve(&mut self, least: usize) {
        let mut weights = vec![0; self.all.len()];
        for (instruction, &owner) in self.instructions.iter().zip(&self.owners) {
            self.chain(owner).for_each(|side| weights[side] += instruction.weight);
        }
        self.all.iter_mut().zip(weights).for_each(|(side, weight)| side.1 &= weight >= least);
    }
    /// Takes instructions from sides that others need, too, which walks that have not settled may leave; true where there were any.
    fn correct(&mut self) -> bool {
        let mut wrong = vec![];
        for (i, instruction) in self.instructions.iter().enumerate() {
            let own = self.owners[i];
            for &arg in &instruction.args {
                let Some(owner) = self.owners[arg] else { continue };
                let takes = self.side(i, arg) == Some(owner) && self.around[owner].is_none_or(|outer| self.lies_in(own, outer));
                if !takes && !self.lies_in(own, owner) {
                    wrong.push(arg);
                }
            }
        }
        wrong.extend(self.kept.iter().filter(|&&i| self.owners[i].is_some()));
        wrong.iter().for_each(|&i| self.owners[i] = None);
        !wrong.is_empty()
    }
}

/// An instruction, or what a side owns of those that follow each other.
enum Part {
    One(usize),
    Chunk(usize, Vec<Part>),
}

/// A new order under construction: what a side owns waits until a choice reads it.
struct Arranged<'a> {
    sides: &'a Sides<'a>,
    first: Vec<Part>,
    waiting: Vec<Vec<Part>>,
    /// Per instruction: whether it waits among those of its owner.
    waits: Vec<bool>,
}

impl Arranged<'_> {
    fn of(sides: &Sides) -> Vec<Part> {
        let waiting = sides.all.iter().map(|_| vec![]).collect();
        let mut all = Arranged { sides, first: vec![], waiting, waits: vec![false; sides.instructions.len()] };
        for (i, instruction) in sides.instructions.iter().enumerate() {
            let own = sides.owners[i];
            for &arg in &instruction.args {
                if let Some(side) = sides.owners[arg].filter(|&side| all.waits[arg] && !sides.lies_in(own, side)) {
                    all.end(side);
                }
            }
            all.waits[i] = own.is_some();
            all.list(own).push(Part::One(i));
        }
        all.first
    }
    fn list(&mut self, side: Option<usize>) -> &mut Vec<Part> {
        side.map_or(&mut self.first, |side| &mut self.waiting[side])
    }
    /// Places what a side has waiting.
    fn end(&mut self, side: usize) {
        let chunk = std::mem::take(&mut self.waiting[side]);
        for part in &chunk {
            if let Part::One(i) = part {
                self.waits[*i] = false;
            }
        }
        let around = self.sides.around[side];
        self.list(around).push(Part::Chunk(side, chunk));
    }
}

/// Parts one after the other.
struct Flat<'a> {
    sides: &'a Sides<'a>,
    least: usize,
    order: Vec<usize>,
    skips: Vec<Skip>,
}

impl Flat<'_> {
    /// Appends parts; how much of them can be skipped.
    fn put(&mut self, parts: Vec<Part>) -> usize {
        let mut gain = 0;
        for part in parts {
            match part {
                Part::One(i) => self.order.push(i),
                Part::Chunk(side, parts) => {
                    let (first, number, (condition, holds)) = (self.order.len(), self.skips.len(), self.sides.all[side].0);
                    self.skips.push(Skip { range: first..first, condition, holds });
                    let within = self.put(parts);
                    let weight: usize = self.order[first..].iter().map(|&i| self.sides.instructions[i].weight).sum();
                    let worth = weight >= self.least;
                    match worth {
                        true => self.skips[number].range.end = self.order.len(),
                        false => drop(self.skips.remove(number)),
                    }
                    gain += if worth { weight } else { within };
                }
            }
        }
        gain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(args: &[usize], weight: usize) -> Instruction {
        Instruction { args: SmallVec::from_slice(args), weight, ..Instruction::default() }
    }
    fn choice(condition: usize, holds: usize, other: usize) -> Instruction {
        let choice = Some(Choice { condition, sides: [Some(other), Some(holds)] });
        Instruction { choice, ..one(&[condition, holds, other], 1) }
    }
    fn skip(range: Range<usize>, condition: usize, holds: bool) -> Skip {
        Skip { range, condition, holds }
    }

    #[test]
    fn what_a_side_alone_needs_lies_together() {
        // Two conditions and a number; what the first needs, what nobody may skip, more of the first.
        let all = [one(&[], 1), one(&[], 1), one(&[], 1), one(&[2], 60), one(&[2], 5), one(&[3, 4], 60), choice(0, 5, 4)];
        let (order, skips) = skippable(&all, &[6]).unwrap();
        assert_eq!((order, skips), (vec![0, 1, 2, 4, 3, 5, 6], vec![skip(4..6, 0, true)]));
    }

    #[test]
    fn sides_lie_in_each_other() {
        let all = [one(&[], 1), one(&[], 1), one(&[], 1), one(&[2], 60), one(&[2], 70), choice(1, 3, 4), one(&[5], 80), choice(0, 2, 6)];
        let (order, skips) = skippable(&all, &[7]).unwrap();
        // The inner condition is asked for within the outer side alone.
        assert_eq!(order, [0, 2, 1, 3, 4, 5, 6, 7]);
        assert_eq!(skips, [skip(2..7, 0, false), skip(3..4, 1, true), skip(4..5, 1, false)]);
    }

    #[test]
    fn what_others_need_is_not_skipped() {
        // The value of the first is kept; that of the second is what decides, too.
        let all = [one(&[], 1), one(&[0], 90), one(&[0], 90), choice(2, 1, 0)];
        assert_eq!(skippable(&all, &[1, 3]), None);
        let all = [one(&[], 1), one(&[0], 90), choice(1, 1, 0)];
        assert_eq!(skippable(&all, &[2]), None);
        // Little is not worth it.
        let all = [one(&[], 1), one(&[], 900), one(&[1], 60), choice(0, 2, 1)];
        assert_eq!(skippable(&all, &[3]), None);
    }
}
