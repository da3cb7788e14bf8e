//! Gradients: graph to graph, closed under themselves.

mod branches;
pub mod forward;
pub mod reverse;

pub use forward::jvp;
pub use reverse::{Seeds, vjp};
