//! Masks of extremes as comparisons, which kernels compute. At the end: before, what an extreme is compared with could come from a loop in
//! which it was rounded otherwise.

use super::Rule;
use crate::ir::Op;
use crate::ir::op::{Extreme, Reduce, ReduceKind};
use crate::scalar::ElemOp;

/// The rules.
pub static RULES: &[Rule] = &[Rule {
    doc: "extreme_mask(x) → x == max(x)",
    on: &["extreme_mask"],
    apply: |l, op, ins| {
        let Op::ExtremeMask(mask) = op else { return None };
        let kind = if mask.kind == Extreme::Max { ReduceKind::Max } else { ReduceKind::Min };
        let top = l.make(Reduce { kind, axes: mask.axes.clone(), keepdims: true }, ins)?;
        l.elem(ElemOp::Eq, &[ins[0], top])
    },
}];
