//! Rules for single nodes.

use super::local::Local;
use crate::ir::{Op, Value};

pub mod algebra;
pub mod choice;
pub mod const_fold;
pub mod contract;
pub mod cse;
pub mod index;
pub mod log_space;
pub mod log_terms;
pub mod masks;
pub mod parts;
pub mod release;
pub mod row_masks;
pub mod scatter;
pub mod seen;
pub mod shape;
pub mod spread;
pub mod stabilise;
pub mod structure;
pub mod transposed;

/// One rule.
pub struct Rule {
    /// Before → after.
    pub doc: &'static str,
    /// Names of the ops that it applies to, as in the text form; none for all.
    pub on: &'static [&'static str],
    /// What stands for the first output of a node with this op on these values of the new graph; `None` where the rule does not apply.
    pub apply: fn(&mut Local, &Op, &[Value]) -> Option<Value>,
}

/// A rule for either order of two inputs.
fn either(l: &mut Local, ins: &[Value], rule: impl Fn(&mut Local, Value, Value) -> Option<Value>) -> Option<Value> {
    rule(l, ins[0], ins[1]).or_else(|| rule(l, ins[1], ins[0]))
}
