//! Where the time of an evaluation goes, per loop and, inside it, per op; and how much memory it takes.

use crate::base::clock::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// Times of one loop, or of what stands outside all loops.
///
/// ```
/// use scan_core::prelude::*;
///
/// let mut cx = EvalCx::new();
/// cx.profile = Some(Box::default());
/// let x = scan().steps(3).init("x", 1.0).run(|s| s.get("x") * 2.0).last("x");
/// function(&[], &[&x]).engine(Engine::Eval).passes(PassOptions::none()).compile()?.call(&mut cx, &[])?;
/// for times in &cx.profile.unwrap().loops {
///     println!("{:?}: {} steps in {:?}", times.name, times.steps, times.total);
/// }
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct LoopTimes {
    /// The loop's name; loops without a name are told apart by their place among those that ran.
    pub name: Option<String>,
    /// How often the loop ran.
    pub calls: u64,
    /// Steps of all these runs.
    pub steps: u64,
    /// Time of all these runs, loops inside included.
    pub total: Duration,
    /// Per op of the step: how often it was evaluated, and for how long. A loop inside is the op `scan`.
    pub ops: BTreeMap<String, (u64, Duration)>,
}

/// Times by loop, in the order in which loops first ran; the first entry is the function outside all loops. And the memory of arrays.
///
/// ```
/// use scan_core::prelude::*;
///
/// let mut cx = EvalCx::new();
/// cx.profile = Some(Box::default());
/// let x = scan().steps(3).init("x", 1.0).run(|s| s.get("x") * 2.0).last("x");
/// function(&[], &[&x]).engine(Engine::Eval).passes(PassOptions::none()).compile()?.call(&mut cx, &[])?;
/// assert!(cx.profile.is_some_and(|profile| profile.peak > 0));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Profile {
    /// The entries.
    pub loops: Vec<LoopTimes>,
    /// The most bytes that arrays took at a time in a call, above those that they took when it began: results, rows of loops, what is
    /// computed on the way. Arguments are not among them, memory that is kept for later calls neither. Arrays that other threads make
    /// meanwhile are.
    pub peak: usize,
    /// Bytes of arrays that went to devices in all calls, and that came back.
    pub crossed: [u64; 2],
    keys: Vec<usize>,
    open: Vec<usize>,
}

impl Default for Profile {
    fn default() -> Self {
        Profile { loops: vec![LoopTimes::default()], peak: 0, crossed: [0; 2], keys: vec![0], open: vec![0] }
    }
}

impl Profile {
    /// A loop starts. `key` tells the loop from others in one evaluation: the address of its body.
    pub fn enter(&mut self, key: usize, name: Option<&str>) -> Instant {
        let at = self.keys.iter().position(|k| *k == key).unwrap_or_else(|| {
            self.keys.push(key);
            self.loops.push(LoopTimes { name: name.map(str::to_string), ..LoopTimes::default() });
            self.loops.len() - 1
        });
        self.open.push(at);
        Instant::now()
    }
    /// The loop entered last has ended.
    pub fn leave(&mut self, start: Instant, steps: usize) {
        if let Some(times) = self.open.pop().and_then(|at| self.loops.get_mut(at)) {
            times.calls += 1;
            times.steps += steps as u64;
            times.total += start.elapsed();
        }
    }
    /// An op was evaluated.
    pub fn op(&mut self, name: &str, spent: Duration) {
        let Some(times) = self.open.last().and_then(|&at| self.loops.get_mut(at)) else { return };
        let entry = match times.ops.get_mut(name) {
            Some(entry) => entry,
            None => times.ops.entry(name.to_string()).or_default(),
        };
        entry.0 += 1;
        entry.1 += spent;
    }
}
