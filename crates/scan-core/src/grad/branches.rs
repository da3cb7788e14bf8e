//! Branches of `ifelse` in reverse: what a branch alone needs is pulled back only where the branch is taken.
//!
//! ```text
//! y = ifelse(c, log(x[k]), 0)          ct(x) = ifelse(c, write(zeros, ct(y) / x[k], k), zeros)
//! ```
//!
//! A cotangent is chosen where it leaves the branch. Were the zero chosen where it enters, what lies between would be computed of that zero:
//! an index out of range would be an error, and 0/0 NaN, of a branch that is not taken.

use crate::ir::needs::At;
use crate::ir::op::IfElse;
use crate::ir::{Graph, Value};
use crate::ops::control::zeros;

/// A cotangent of a value that is there under some conditions as one that is there under others: zero where one of the first does not
/// hold that is not among the second.
pub fn leaving(g: &mut Graph, from: &At, to: &At, (v, ct): (Value, Value)) -> Value {
    let left = from.iter().rev().filter(|fact| !to.contains(fact));
    left.fold(ct, |ct, &(cond, holds)| {
        let zero = zeros(g, v);
        g.emit(IfElse {}, &if holds { [cond, ct, zero] } else { [cond, zero, ct] })
    })
}
