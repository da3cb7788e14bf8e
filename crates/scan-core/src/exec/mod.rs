//! Functions: called with arrays.

pub mod explain;
pub mod function;
pub mod native;
pub use explain::LoopInfo;
pub use function::{Function, FunctionSpec};
pub use native::Engine;
