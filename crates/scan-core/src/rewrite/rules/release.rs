//! What only gradients look at, and words for the reader: gone before a graph is run.

use super::Rule;
use crate::ir::Value;
use crate::rewrite::local::Local;
use crate::scalar::ElemOp;
use crate::types::DType;

/// The rules.
pub static RULES: &[Rule] = &[
    Rule {
        doc: "stop_gradient(x), hold(x), grad_clip(x), grad_to(x, …) → x",
        on: &["stop_gradient", "hold", "grad_clip", "grad_to"],
        apply: |_, _, ins| Some(ins[0]),
    },
    Rule { doc: "square(x) → x · x", on: &["square"], apply: |l, _, ins| squared(l, ins[0]) },
];

fn squared(l: &mut Local, x: Value) -> Option<Value> {
    if l.dtype(x) == DType::Bool { None } else { l.elem(ElemOp::Mul, &[x, x]) }
}
