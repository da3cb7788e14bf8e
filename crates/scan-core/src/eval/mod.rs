//! The law: evaluates a graph node by node. Slow, obvious, and what every pass, gradient and backend is measured against.

pub mod walk;

pub use walk::{Walk, blame, in_loop, run};
