//! From graphs to kernels: one step of a loop, or a group of elementwise nodes, becomes straight-line code over scalars.
//! What has no place in a kernel is refused with a reason, and stays with the evaluator.

mod along;
mod arena;
mod axes;
mod blocks;
mod branches;
mod coalesce;
mod copies;
pub mod cost;
mod cuts;
pub(crate) mod dynamic_slice;
mod exact;
pub mod feet;
mod forms;
mod fused;
mod fusions;
mod gathered;
pub mod groups;
mod guards;
pub mod heads;
mod in_place;
pub(crate) mod inner;
mod kept;
mod lengths;
mod looped;
mod margins;
mod matrices;
pub mod mixed;
mod moves;
mod nested;
mod nodes;
mod passes;
mod picks;
mod pieces;
mod prepared;
mod products;
mod reads_reduced;
mod reductions;
pub mod regions;
mod rewritten;
mod rooms;
mod rows;
mod rowwise;
pub mod scan;
mod schedule;
mod siblings;
mod sided;
mod sliced;
mod spelled;
pub(crate) mod stages;
pub mod stepwise;
mod sums;
mod tables;
mod value;
mod votes;
mod window;

use crate::base::Diagnostic;
pub use nodes::{Lowering, expressible};
pub use spelled::spelled;
pub use value::{Layout, Val};

/// Why something is not compiled, in words for `explain`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal(pub String);

impl From<Box<Diagnostic>> for Refusal {
    fn from(e: Box<Diagnostic>) -> Refusal {
        Refusal(e.title.clone())
    }
}

pub(crate) type Lowered<T> = Result<T, Refusal>;

/// A refusal.
pub(crate) fn refuse<T>(why: impl Into<String>) -> Lowered<T> {
    Err(Refusal(why.into()))
}
