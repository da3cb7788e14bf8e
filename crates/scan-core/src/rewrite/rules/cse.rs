//! Equal nodes are made once by the graph itself; what is left are functions that do not mind the order of their inputs.

use super::Rule;
use crate::scalar::ElemOp::{Add, And, BitAnd, BitOr, BitXor, Eq, Mul, Ne, Or, Xor};

/// The rules.
pub static RULES: &[Rule] = &[Rule {
    doc: "f(y, x) beside f(x, y) → f(x, y)",
    on: &["add", "mul", "eq", "ne", "logical_and", "logical_or", "logical_xor", "bit_and", "bit_or", "bit_xor"],
    apply: |local, op, ins| {
        let &[x, y] = ins else { return None };
        debug_assert!(matches!(op, crate::ir::Op::Elem(Add | Mul | Eq | Ne | And | Or | Xor | BitAnd | BitOr | BitXor)));
        local.g.find(op, ins).or_else(|| local.g.find(op, &[y, x])).filter(|_| x != y && local.g.find(op, ins).is_none())
    },
}];
