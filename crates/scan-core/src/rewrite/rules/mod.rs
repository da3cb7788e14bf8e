//! Rules for single nodes.

use super::local::Local;
use crate::ir::{Op, Value};

pub mod algebra;
pub mod const_fold;
pub mod cse;

/// One rule.
pub struct Rule {
    /// Before → after.
    pub doc: &'static str,
    /// Names of the ops that it applies to, as in the text form; none for all.
    pub on: &'static [&'static str],
    /// What stands for the first output of a node with this op on these values of the new graph; `None` where the rule does not apply.
    pub apply: fn(&mut Local, &Op, &[Value]) -> Option<Value>,
}
