//! What is computed before a loop that its steps, as a kernel, use: values, and arrays of which elements are read by their numbers.

use super::by_number::{needs_extents_alone, picks};
use super::dynamic_slice::reads_by_index;
use super::extents::known_shape;
use super::kinds::{Kind, Kinds};
use super::picks::LOOKED_AT;
use super::rows::own_rows;
use super::tables::SMALL_TABLE;
use super::value::Layout;
use crate::ir::{Graph, Node, Op, Value};
use crate::scalar::ElemOp;
use crate::types::Array;
use crate::types::shape::count;
use rustc_hash::FxHashSet;

impl Kinds {
    /// An array that does not change within a step and of which nothing but some elements are read, by numbers that steps compute: it stays
    /// in memory. Of small ones all elements are loaded.
    pub(super) fn tabled(&self, body: &Graph, layout: Layout, v: Value) -> bool {
        let large = known_shape(body, v).is_ok_and(|shape| count(&shape) > SMALL_TABLE);
        let by_row = known_shape(body, v).is_ok_and(|shape| layout.row_axis(&shape).is_some());
        if !layout.by_element() || by_row || !large || body.results().contains(&v) {
            return false;
        }
        let mut by_number = false;
        for node in self.nodes(body).filter(|n| n.ins.contains(&v) && n.outs.iter().any(|&out| self.of(out) == Kind::Step)) {
            let picks = picks(node, v);
            if !picks && !needs_extents_alone(node, v) {
                return false;
            }
            let computed = || !reads_by_index(&node.op) || node.ins[1..].iter().any(|&i| body.const_value(i).is_none());
            by_number |= picks && computed();
        }
        by_number
    }
    /// True for integers that steps use to name elements, and for nothing else.
    fn is_index(&self, body: &Graph, v: Value) -> bool {
        let names = |n: &Node, k: usize| k > 0 && reads_by_index(&n.op) || k > 1 && n.op.writes();
        let mut uses = self.nodes(body).flat_map(|n| n.ins.iter().enumerate().map(move |(k, &x)| (n, k, x))).filter(|u| u.2 == v);
        uses.all(|(n, k, _)| names(n, k))
    }
    /// Values computed before the loop that the step uses.
    pub(super) fn roots(&self, body: &Graph, layout: Layout) -> Vec<Value> {
        let spread = |v: Value| match layout {
            Layout::Elements => body.const_value(v).is_some() && self.tabled(body, layout, v),
            Layout::Lanes(_) => body.const_value(v).is_some_and(|a| !is_uniform(a)),
            Layout::Rows(_) => {
                // Of fewer constants one is chosen sooner than it is read.
                let apart = |a: &Array| own_rows(a, layout) || a.len() > LOOKED_AT && self.tabled(body, layout, v);
                body.const_value(v).is_some_and(apart) && !self.is_index(body, v)
            }
        };
        let mut seen = FxHashSet::default();
        let mut roots = vec![];
        let steps = self.nodes(body).filter(|n| n.outs.iter().any(|&v| self.of(v) == Kind::Step || within(body, layout, v)));
        for v in steps.flat_map(|n| n.ins.iter().copied()).chain(body.results().iter().copied()) {
            if seen.insert(v) && (self.of(v) == Kind::Before && !within(body, layout, v) || spread(v)) {
                roots.push(v);
            }
        }
        roots
    }
}

/// A number that an instruction of the kernel makes faster than a node makes it before the loop; engines do that before the first step.
fn within(body: &Graph, layout: Layout, v: Value) -> bool {
    let crate::ir::Def::Out(id, _) = body.def(v) else { return false };
    let cheap = matches!(body.nodes()[id].op, Op::Elem(ElemOp::Neg | ElemOp::Add | ElemOp::Sub | ElemOp::Mul));
    layout == Layout::Elements && cheap && body.ty(v).rank() == 0 && body.ty(v).dtype.is_float()
}

fn is_uniform(a: &Array) -> bool {
    let bits = a.bits();
    bits.iter().all(|b| *b == bits[0])
}
