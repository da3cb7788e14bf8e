//! Gradients: graph to graph, closed under themselves.

pub mod forward;
pub mod reverse;

pub use forward::jvp;
pub use reverse::{Seeds, vjp};
