//! The optimiser: passes from graph to graph, in the order of one list ([`pipeline::PASSES`]).
//!
//! Passes are of two kinds. *Rules* replace one node by something better and are applied to all nodes in one walk, inputs
//! first, so that what one rule makes is seen by the next. *Passes over a graph* look at more than one node at a time: those
//! that change loops are of this kind. Every pass runs on the bodies of loops, too, innermost first.
//!
//! A pass never changes what a graph computes; passes marked [`Exact::No`] may change the rounding of floats. An optimised graph may fail
//! where the graph as it was written would not, since computation moves out of loops that may run no step: who runs it must then run that
//! one, as [`Program`](crate::exec::Program) does.

pub mod driver;
mod drops;
pub mod local;
pub mod loops;
pub mod options;
pub mod passes;
pub mod pipeline;
pub mod rebuild;
pub mod report;
pub mod rules;
mod sources;

pub use driver::{Cx, optimise};
pub use options::{Level, Options};
pub use pipeline::{Exact, Pass, Run, Stage};
pub use rebuild::{Rebuild, copy_with};
pub use report::{Entry, Report};
