//! The stable surface for native users.

pub use crate::base::{Diagnostic, Kind, Result, Span};
pub use crate::exec::{Function, FunctionSpec};
pub use crate::expr::{GradOptions, LoopBuilder, LoopOptions, LoopResult, Var};
pub use crate::ir::{Attr, EvalCx, ExternOp, Graph, Op, Value};
pub use crate::types::{Array, DType, Dim, Shared, Type};
