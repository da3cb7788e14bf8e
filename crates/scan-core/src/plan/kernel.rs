//! A loop as one kernel: states in registers, sequences by moving pointers, everything that does not change computed before.

use super::votes::Votes;
use super::window::Window;
use crate::base::Span;
use crate::ir::{Graph, SeqId, StateId};
use crate::kernel::Kernel;

/// Where an operand of a loop kernel lies. `at` counts elements within a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the row of a sequence that the step sees.
    Seq {
        /// Which.
        id: SeqId,
        /// Element.
        at: usize,
    },
    /// In a value that is computed before the loop.
    Before {
        /// Which result of [`LoopKernel::before`].
        value: usize,
        /// Element.
        at: usize,
    },
    /// In row `step + offset` of a state's buffer.
    Row {
        /// Whose.
        id: StateId,
        /// Which row.
        offset: usize,
        /// Element.
        at: usize,
    },
    /// In a row of a state's window that one step hands to the next.
    Window {
        /// Whose.
        id: StateId,
        /// Which offset.
        row: usize,
        /// Element.
        at: usize,
    },
    /// The bool that tells whether the loop has stopped.
    Stopped,
    /// The bools, one for each lane, that tell whether a step could not do what the law does.
    Failed,
    /// The bools of each step that decide whether the loop stops.
    Votes,
}

/// A loop as one kernel.
#[derive(Clone)]
pub struct LoopKernel {
    /// One step.
    pub kernel: Kernel,
    /// Number of lanes.
    pub lanes: usize,
    /// Where the operands lie, in the order of the kernel's.
    pub places: Vec<Place>,
    /// How the states are kept.
    pub windows: Vec<Window>,
    /// True where the kernel may find that it cannot do what the law does: nothing that it made counts then.
    pub guarded: bool,
    /// True where slices that reach beyond their arrays are among these cases.
    pub slices: bool,
    /// What decides after each step whether the loop stops, where the kernel itself does not.
    pub votes: Option<Votes>,
    /// What is computed before the loop, from the parameters of the body (of which it uses the captured ones alone).
    pub before: Graph,
    /// Where the user wrote the loops that its steps run.
    pub loops: Vec<Span>,
}
