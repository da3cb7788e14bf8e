//! Functions: called with arrays.

pub mod function;
pub use function::{Function, FunctionSpec};
