//! Gradients: graph to graph, closed under themselves.

pub mod reverse;

pub use reverse::{Seeds, vjp};
