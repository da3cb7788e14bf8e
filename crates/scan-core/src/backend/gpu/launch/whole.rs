//! Launches that a device runs one after the other for many steps, told at once: their parameters.
//!
//! Operands go on as every second step does: where one begins in the first step and in the second one, and how far it is from a step to the one
//! behind the next.

use super::{Base, Launch, halves};

/// The number of steps.
pub const STEPS: usize = 0;
/// The word that counts who has come where all wait; 0 at first.
pub const COUNTER: usize = 1;
/// Words before those of the parts.
pub const HEAD: usize = 2;

/// Words of an operand: where it begins in the second step, two of them, and the stride.
pub const EACH: usize = 3;

/// Words of a part.
pub fn words(part: &Launch) -> usize {
    1 + part.shape().words(part.kernel()) + EACH * part.kernel().mems.len()
}

/// A part of such steps: a launch, and where its operands begin.
pub struct Part<'a> {
    /// What is launched.
    pub launch: &'a Launch,
    /// Where its operands begin in the first step and in the second one.
    pub bases: [Vec<Base>; 2],
    /// Words from where one begins to where it begins two steps later.
    pub strides: Vec<isize>,
}

impl Part<'_> {
    /// Where the operands begin in a step.
    fn at(&self, step: usize) -> Vec<Base> {
        let by = |(base, stride): (&Base, &isize)| Base { at: (base.at as isize + stride * (step / 2) as isize) as usize, ..*base };
        self.bases[step % 2].iter().zip(&self.strides).map(by).collect()
    }
    /// The words that it reads and those that it writes, in the first step or in the second one.
    fn touches(&self, turn: usize) -> Vec<([isize; 2], bool)> {
        let kernel = self.launch.kernel();
        let steps = self.launch.steps().0;
        kernel.mems.ids().zip(&self.bases[turn]).map(|(mem, base)| (self.launch.reach(mem, base, steps), kernel.writes(mem))).collect()
    }
    /// True where one must be done before the other begins.
    fn meets(&self, other: &Part) -> bool {
        (0..2).any(|turn| {
            let others = other.touches(turn);
            self.touches(turn)
                .iter()
                .any(|(a, a_writes)| others.iter().any(|(b, b_writes)| (*a_writes || *b_writes) && a[0] < b[1] && b[0] < a[1]))
        })
    }
}

/// The parameters of so many steps; `status` and `counter` are words of the memory.
///
/// # Panics
/// As [`Launch::params`].
pub fn params(parts: &[Part], apart: usize, status: usize, counter: usize, steps: usize) -> Vec<u32> {
    let mut params = vec![steps as u32, counter as u32];
    let mut since: Vec<&Part> = vec![];
    for part in parts {
        let waits = since.iter().any(|before| before.meets(part));
        if waits {
            since.clear();
        }
        since.push(part);
        params.push(u32::from(waits));
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
