//! The loop as data: one kind of state, windows of rows over buffers, no negative numbers.
//!
//! A state is one buffer of rows. Step `i` reads row `i + r` for every `r` in `reads`, then writes row `i + w` for every
//! `w` in `writes`; all reads of a step see the buffer before its writes. With `span` the largest offset, n steps need
//! `n + span` rows; `init` fills the first rows and the rest are zero. Theano's kinds are names computed from this:
//!
//! | reads | writes | name |
//! |---|---|---|
//! | none | `[0]` | nit_sot |
//! | `[0]` | `[1]` | sit_sot |
//! | several | one | mit_sot |
//! | any | several, or one that is also read later | mit_mot |

use super::graph::{Graph, Value};
use crate::types::Type;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

crate::id! {
    /// A sequence of a loop.
    SeqId,
    /// A state of a loop.
    StateId,
    /// A captured value (non_sequence) of a loop.
    NonSeqId,
}
use crate::base::IdxVec;

/// Row offsets of a state, in the order in which the body lists them.
pub type Offsets = SmallVec<[usize; 2]>;

/// A value of which step i sees one row.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Seq {
    /// Step i sees row i, or, reversed, row `len − 1 − i`.
    pub reverse: bool,
    /// The user's name for it.
    pub name: Option<Arc<str>>,
}

/// Which rows of a state's buffer the loop returns.
///
/// ```
/// use scan_core::prelude::*;
///
/// let out = scan().named("halves").steps(3).init("h", 1.0).run(|s| s.get("h") * 0.5);
/// let steps = out.steps();
/// let (op, ..) = steps.owner().unwrap();
/// assert!(op.as_scan().unwrap().states.iter().all(|state| state.keep == Keep::All));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Keep {
    /// The whole buffer, initial rows included.
    All,
    /// The last `min(n, steps)` rows written; never an initial row.
    Last(usize),
}

/// What a state stands for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Tag {
    /// An output of the user's step function.
    #[default]
    Output,
    /// A shared variable updated in the loop.
    Shared,
    /// A buffer of the gradient.
    Cotangent,
}

/// One state: a buffer of rows with a window that slides over it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// dtype and extents of one row.
    pub row: Type,
    /// True where an input gives the first rows (at least `span` of them).
    pub init: bool,
    /// Offsets that the body reads.
    pub reads: Offsets,
    /// Offsets that the body writes.
    pub writes: Offsets,
    /// What is returned.
    pub keep: Keep,
    /// What it stands for.
    pub tag: Tag,
    /// The user's name for it.
    pub name: Option<Arc<str>>,
}

impl State {
    /// The largest offset: the buffer has `steps + span` rows (more where `init` is longer).
    pub fn span(&self) -> usize {
        self.reads.iter().chain(&self.writes).copied().max().unwrap_or(0)
    }
    /// Theano's name for such a state.
    pub fn kind(&self) -> &'static str {
        let after = self.writes.iter().min() > self.reads.iter().max();
        match (self.reads.len(), self.writes.len()) {
            (0, 1) if !self.init => "nit_sot",
            (1, 1) if after && self.span() == 1 => "sit_sot",
            (_, 1) if after => "mit_sot",
            _ => "mit_mot",
        }
    }
    /// True where a step reads the row before alone, and nothing reads any but the last one.
    pub fn one_by_one(&self) -> bool {
        self.reads[..] == [0] && self.writes[..] == [1] && matches!(self.keep, Keep::Last(0 | 1))
    }
    /// True where no row changes after a step has read it, so that the final buffer still tells what each step read.
    pub fn stable(&self) -> bool {
        match (self.reads.iter().max(), self.writes.iter().min()) {
            (Some(r), Some(w)) => w > r,
            _ => true,
        }
    }
}

/// A captured value: the same at every step.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NonSeq {
    /// The user's name for it.
    pub name: Option<Arc<str>>,
}

/// One loop. Inputs of the node: `n_steps` (i64 scalar), sequences, initial rows, captured values.
/// Outputs: one buffer per state, then the number of steps that ran (i64 scalar).
/// Parameters of the body: the step index (i64 scalar), sequence rows, state rows (per state in the order of `reads`),
/// captured values. Results of the body: state rows (per state in the order of `writes`), then, with `until`, a bool scalar.
///
/// ```
/// use scan_core::prelude::*;
///
/// let out = scan().named("halves").steps(3).init("h", 1.0).run(|s| s.get("h") * 0.5);
/// let steps = out.steps();
/// let scan = steps.owner().unwrap().0.as_scan().unwrap();
/// assert_eq!((scan.name.as_deref(), scan.states.len(), scan.until), (Some("halves"), 1, false));
/// ```
#[derive(Clone, Debug)]
pub struct Scan {
    /// The user's name for the loop.
    pub name: Option<Arc<str>>,
    /// One step.
    pub body: Graph,
    /// Sequences.
    pub seqs: IdxVec<SeqId, Seq>,
    /// States.
    pub states: IdxVec<StateId, State>,
    /// Captured values.
    pub captured: IdxVec<NonSeqId, NonSeq>,
    /// True where the body's last result stops the loop after the step that yields it.
    pub until: bool,
    /// The gradient covers the last so many steps.
    pub truncate: Option<usize>,
}

/// Two loops are equal where they are the same object: bodies are not compared.
impl PartialEq for Scan {
    fn eq(&self, other: &Scan) -> bool {
        std::ptr::eq(self, other)
    }
}
impl Eq for Scan {}
impl std::hash::Hash for Scan {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self as *const Scan).hash(state);
    }
}

/// Positions of slots in the lists of inputs, outputs, parameters and results: the only place that knows them.
impl Scan {
    /// True for a loop that does the same for the same lines of the source: only names of captured values may differ.
    pub fn computes_like(&self, other: &Scan) -> bool {
        let alike = self.name == other.name && self.seqs == other.seqs && self.states == other.states;
        alike && (self.until, self.truncate) == (other.until, other.truncate) && self.body.computes_like(&other.body)
    }
    /// A loop without recurrence: of the body's parameters after the step, so many are sequences and so many are captured; each of its results
    /// is a row of an output, of which `keep` says what remains.
    pub fn mapped(body: Graph, seqs: usize, captured: usize, keep: Keep) -> Scan {
        let row = |&v: &Value| State {
            row: body.ty(v).clone(),
            init: false,
            reads: Offsets::new(),
            writes: Offsets::from_slice(&[0]),
            keep,
            tag: Tag::Output,
            name: None,
        };
        Scan {
            name: None,
            states: body.results().iter().map(row).collect(),
            seqs: (0..seqs).map(|_| Seq { reverse: false, name: None }).collect(),
            captured: (0..captured).map(|_| NonSeq { name: None }).collect(),
            until: false,
            truncate: None,
            body,
        }
    }
    /// So many loops stand in each other at most: whatever walks into loops takes some of the stack at each level.
    pub const MAX_DEPTH: usize = 100;
    /// Input position of n_steps.
    pub const N_STEPS: usize = 0;
    /// Body parameter position of the step index.
    pub const STEP: usize = 0;

    /// Input position of a sequence.
    pub fn seq_input(&self, id: SeqId) -> usize {
        1 + id.0 as usize
    }
    /// Input position of a state's initial rows, where it has any.
    #[inline]
    pub fn init_input(&self, id: StateId) -> Option<usize> {
        let before = self.states.iter().take(id.0 as usize).filter(|s| s.init).count();
        self.states[id].init.then_some(1 + self.seqs.len() + before)
    }
    /// Input position of a captured value.
    pub fn captured_input(&self, id: NonSeqId) -> usize {
        1 + self.seqs.len() + self.states.iter().filter(|s| s.init).count() + id.0 as usize
    }
    /// Number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.captured_input(NonSeqId(0)) + self.captured.len()
    }
    /// Output position of a state's buffer.
    pub fn state_output(&self, id: StateId) -> usize {
        id.0 as usize
    }
    /// Output position of the number of steps.
    pub fn steps_output(&self) -> usize {
        self.states.len()
    }
    /// Body parameter position of a sequence row.
    pub fn seq_param(&self, id: SeqId) -> usize {
        1 + id.0 as usize
    }
    /// Body parameter positions of a state's rows.
    pub fn read_params(&self, id: StateId) -> Range<usize> {
        let start = 1 + self.seqs.len() + self.states.iter().take(id.0 as usize).map(|s| s.reads.len()).sum::<usize>();
        start..start + self.states[id].reads.len()
    }
    /// Body parameter position of a captured value.
    pub fn captured_param(&self, id: NonSeqId) -> usize {
        1 + self.seqs.len() + self.states.iter().map(|s| s.reads.len()).sum::<usize>() + id.0 as usize
    }
    /// Number of the body's parameters.
    pub fn n_params(&self) -> usize {
        self.captured_param(NonSeqId(0)) + self.captured.len()
    }
    /// Body result positions of a state's rows.
    pub fn write_results(&self, id: StateId) -> Range<usize> {
        let start = self.states.iter().take(id.0 as usize).map(|s| s.writes.len()).sum::<usize>();
        start..start + self.states[id].writes.len()
    }
    /// Body result position of the stopping condition, where there is one.
    pub fn until_result(&self) -> Option<usize> {
        self.until.then(|| self.states.iter().map(|s| s.writes.len()).sum())
    }
    /// The loop with another step of the same slots.
    pub fn with_body(&self, body: Graph) -> Scan {
        Scan {
            name: self.name.clone(),
            body,
            seqs: self.seqs.clone(),
            states: self.states.clone(),
            captured: self.captured.clone(),
            until: self.until,
            truncate: self.truncate,
        }
    }
    /// The body's parameters of a state.
    pub fn read_values(&self, id: StateId) -> &[Value] {
        &self.body.params()[self.read_params(id)]
    }
    /// The body's results of a state.
    pub fn write_values(&self, id: StateId) -> &[Value] {
        &self.body.results()[self.write_results(id)]
    }
}
