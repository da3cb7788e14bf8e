//! Launches that a device runs one after the other for many steps, told at once: their parameters.
//!
//! Operands go on as every second step does: where one begins in the first step and in the second one, and how far it is from a step to the one
//! behind the next.

use super::tiling::{Plane, Tiling};
use super::{Base, Launch, halves};
use crate::kernel::MemId;

/// The number of steps.
pub const STEPS: usize = 0;
/// The word that counts who has come where all wait; 0 at first.
pub const COUNTER: usize = 1;
/// Words before those of the parts.
pub const HEAD: usize = 2;

/// Words of an operand: where it begins in the second step, two of them, and the stride.
pub const EACH: usize = 3;

/// Who waits before a part: nobody, the invocations of each block for each other, or all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Wait {
    /// What was written before is not touched.
    Nobody = 0,
    /// What it touches of that was written by the same block.
    Block = 1,
    /// Any block wrote it.
    All = 2,
}

/// The bits of a part's first word that are its [`Wait`].
pub const WAIT: u32 = 3;
/// The bit of a part's first word that says that a product's right side is the same in all steps.
pub const STEADY: u32 = 4;

/// Words of a part.
pub fn words(part: &Launch) -> usize {
    1 + part.shape().words(part.kernel()) + EACH * part.kernel().mems.len()
}

/// A part of such steps: a launch, and where its operands begin.
pub struct Part<'a> {
    /// What is launched.
    pub launch: &'a Launch,
    /// How blocks share it; `None`: as it comes.
    pub tiling: Option<Tiling>,
    /// Where its operands begin in the first step and in the second one.
    pub bases: [Vec<Base>; 2],
    /// Words from where one begins to where it begins two steps later.
    pub strides: Vec<isize>,
}

/// What a part touches of memory: the words from one to another, whether it writes them, and where its elements lie.
struct Touch {
    words: [isize; 2],
    writes: bool,
    begin: isize,
    plane: Option<Plane>,
}

impl Part<'_> {
    /// Where the operands begin in a step.
    fn at(&self, step: usize) -> Vec<Base> {
        let by = |(base, stride): (&Base, &isize)| Base { at: (base.at as isize + stride * (step / 2) as isize) as usize, ..*base };
        self.bases[step % 2].iter().zip(&self.strides).map(by).collect()
    }
    fn touches(&self, step: usize) -> Vec<Touch> {
        let kernel = self.launch.kernel();
        let steps = self.launch.steps().0;
        let touch = |(mem, base): (MemId, Base)| Touch {
            words: self.launch.reach(mem, &base, steps),
            writes: kernel.writes(mem),
            begin: base.at as isize,
            plane: self.tiling.and_then(|tiling| Plane::of(self.launch, mem, tiling.rows)),
        };
        kernel.mems.ids().zip(self.at(step)).map(touch).collect()
    }
    /// Who must have done this part before another one of the same step begins.
    fn before(&self, other: &Part, step: usize) -> Wait {
        let (own, others) = (self.touches(step), other.touches(step));
        let pairs = own.iter().flat_map(|a| others.iter().map(move |b| (a, b)));
        let met = pairs.filter(|(a, b)| (a.writes || b.writes) && a.words[0] < b.words[1] && b.words[0] < a.words[1]);
        met.map(|(a, b)| self.wait(other, a, b)).max().unwrap_or(Wait::Nobody)
    }
    fn wait(&self, other: &Part, a: &Touch, b: &Touch) -> Wait {
        match (self.tiling.filter(|_| self.tiling == other.tiling), &a.plane, &b.plane) {
            (Some(tiling), Some(p), Some(q)) if p.is_local(q, b.begin - a.begin, &tiling) => Wait::Block,
            _ => Wait::All,
        }
    }
    /// True where the right side of a product lies where it lay in all steps, and no part writes it.
    fn is_steady(&self, parts: &[Part], steps: usize) -> bool {
        if self.launch.product().is_none() || steps < 2 {
            return false;
        }
        let right = MemId(1);
        let words = |step| self.launch.reach(right, &self.at(step)[right.0 as usize], self.launch.steps().0);
        let stays = self.strides[right.0 as usize] == 0 && words(0) == words(1);
        let last = [0, 1, steps - 1, steps - 2];
        let written = |part: &Part| {
            // Operands go on evenly: between the first steps and the last ones lie all others.
            let touched: Vec<Vec<Touch>> = last.iter().map(|&step| part.touches(step)).collect();
            (0..touched[0].len()).filter(|&k| touched[0][k].writes).any(|k| {
                let low = touched.iter().map(|t| t[k].words[0]).min();
                let high = touched.iter().map(|t| t[k].words[1]).max();
                low < Some(words(0)[1]) && Some(words(0)[0]) < high
            })
        };
        stays && !parts.iter().any(written)
    }
}

/// Who waits before each part. Between two steps all do.
fn waits(parts: &[Part]) -> Vec<Wait> {
    // Parts behind the last wait of all, and behind the last one of any kind.
    let (mut open, mut open_in_block): (Vec<&Part>, Vec<&Part>) = (vec![], vec![]);
    let mut found = vec![];
    for part in parts {
        let needed = |before: &&Part| (0..2).map(|step| before.before(part, step)).max().unwrap_or(Wait::Nobody);
        let wait = match open.iter().map(needed).max() {
            Some(Wait::All) => Wait::All,
            _ => open_in_block.iter().map(needed).max().unwrap_or(Wait::Nobody),
        };
        if wait == Wait::All {
            open.clear();
        }
        if wait != Wait::Nobody {
            open_in_block.clear();
        }
        open.push(part);
        open_in_block.push(part);
        found.push(wait);
    }
    found
}

/// The parameters of so many steps; `status` and `counter` are words of the memory.
///
/// # Panics
/// As [`Launch::params`].
pub fn params(parts: &[Part], apart: usize, status: usize, counter: usize, steps: usize) -> Vec<u32> {
    let mut params = vec![steps as u32, counter as u32];
    for (part, wait) in parts.iter().zip(waits(parts)) {
        params.push(wait as u32 | if part.is_steady(parts, steps) { STEADY } else { 0 });
        let (own, first) = part.launch.steps();
        for step in [1, steps.saturating_sub(2), steps - 1].into_iter().filter(|&step| step < steps) {
            part.launch.params(&part.at(step), apart, status, own, first);
        }
        params.extend(part.launch.params(&part.bases[0], apart, status, own, first));
        for (base, &stride) in part.bases[1].iter().zip(&part.strides) {
            params.extend(halves(base.at));
            params.push(stride as i32 as u32);
        }
    }
    params
}
