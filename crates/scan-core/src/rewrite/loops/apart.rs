//! What depends on the rows that a mask leaves out, of arrays whose first axes are those of the mask.

use crate::base::{Id, IdxVec};
use crate::ir::op::Expand;
use crate::ir::{Graph, Node, Op, Value};
use crate::ops::certain::by_extents;
use crate::ops::rowwise::rows_apart;
use crate::scalar::ElemOp;
use crate::types::Dim;

/// Where a value differs when other elements stand in the masked rows of some values.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Differs {
    /// It is the same.
    #[default]
    Nowhere,
    /// In its own masked rows.
    Masked,
    /// Anywhere.
    Anywhere,
}

/// A graph and a mask of rows.
pub struct Apart<'a> {
    body: &'a Graph,
    /// The extents of the mask.
    rows: Vec<Dim>,
    /// Values that are false in masked rows, whatever else they depend on.
    off: IdxVec<Value, bool>,
}

impl<'a> Apart<'a> {
    /// The graph and its mask, a vector of truth values that are false in masked rows (or an array of more axes).
    pub fn new(body: &'a Graph, mask: Value) -> Apart<'a> {
        let off = (0..body.n_values()).map(|_| false).collect();
        let mut all = Apart { body, rows: body.ty(mask).dims.to_vec(), off };
        all.off[mask] = true;
        for node in body.nodes().iter().filter(|node| node.outs.len() == 1) {
            let out = node.outs[0];
            all.off[out] |= match &node.op {
                Op::Expand(Expand { axes }) => all.off[node.ins[0]] && all.behind(axes),
                Op::Elem(ElemOp::And | ElemOp::BitAnd) => node.ins.iter().any(|&v| all.off[v] && all.beside(v, out)),
                _ => false,
            };
        }
        all
    }
    /// True for a value that is false in masked rows.
    pub fn off(&self, v: Value) -> bool {
        self.off[v]
    }
    /// True for axes behind those of the mask.
    fn behind(&self, axes: &[usize]) -> bool {
        axes.iter().all(|&axis| axis >= self.rows.len())
    }
    /// True for an array that has the axes of the mask in front.
    fn masked(&self, v: Value) -> bool {
        self.body.ty(v).dims.starts_with(&self.rows)
    }
    /// True for a value whose rows are those of another one.
    fn beside(&self, v: Value, of: Value) -> bool {
        self.body.ty(v).rank() == self.body.ty(of).rank() && self.masked(v) && self.masked(of)
    }
    /// True for a choice by the mask: what is taken where it is false is the last input.
    pub fn chooses(&self, node: &Node) -> bool {
        matches!(node.op, Op::Elem(ElemOp::Where)) && self.off[node.ins[0]] && self.beside(node.ins[0], node.outs[0])
    }
    /// Where all values differ, given those whose masked rows do.
    pub fn differences(&self, given: &[Value]) -> IdxVec<Value, Differs> {
        let mut all: IdxVec<Value, Differs> = (0..self.body.n_values()).map(|_| Differs::Nowhere).collect();
        let own = |v: Value| if self.masked(v) { Differs::Masked } else { Differs::Anywhere };
        self.body.params().iter().filter(|v| given.contains(v)).for_each(|&v| all[v] = own(v));
        for node in self.body.nodes().iter() {
            for &out in &node.outs {
                all[out] = if given.contains(&out) { own(out) } else { self.made(node, out, &all) };
            }
        }
        all
    }
    /// Which inputs differ in elements that are read.
    fn varies(&self, node: &Node, all: &IdxVec<Value, Differs>) -> Vec<bool> {
        let shape_only = node.op.properties().shape_only;
        node.ins.iter().enumerate().map(|(k, &v)| all[v] != Differs::Nowhere && !shape_only.contains(&k)).collect()
    }
    fn made(&self, node: &Node, out: Value, all: &IdxVec<Value, Differs>) -> Differs {
        if !self.varies(node, all).contains(&true) {
            return Differs::Nowhere;
        }
        let apart = |v: Value| all[v] == Differs::Nowhere || all[v] == Differs::Masked && self.beside(v, out);
        match &node.op {
            Op::Elem(ElemOp::Where) if self.chooses(node) && node.ins.iter().all(|&v| apart(v)) => all[node.ins[2]],
            Op::Elem(ElemOp::And | ElemOp::BitAnd) if self.off[out] && node.ins.iter().all(|&v| apart(v)) => Differs::Nowhere,
            _ if node.outs.len() == 1 && self.by_rows(node, out, all) => Differs::Masked,
            _ => Differs::Anywhere,
        }
    }
    /// True where a row of what a node makes depends on the same row of what differs.
    fn by_rows(&self, node: &Node, out: Value, all: &IdxVec<Value, Differs>) -> bool {
        let fine = |v: Value, cut: bool| all[v] == Differs::Nowhere || all[v] == Differs::Masked && cut && self.masked(v);
        match &node.op {
            _ if !self.masked(out) => return false,
            op if op.elementwise() => return node.ins.iter().all(|&v| fine(v, self.beside(v, out))),
            Op::Expand(Expand { axes }) => return self.behind(axes) && fine(node.ins[0], true),
            _ if self.rows.len() > 1 => return false,
            _ => {}
        }
        rows_apart(self.body, node).is_some_and(|cut| node.ins.iter().zip(cut).all(|(&v, cut)| fine(v, cut)))
    }
    /// True where elements that differ could decide whether an evaluation fails.
    pub fn may_fail(&self, all: &IdxVec<Value, Differs>, given: &[Value]) -> bool {
        let live = self.body.needed(self.body.results());
        let nodes = self.body.nodes().enumerate().filter(|(id, _)| live[id.idx()]).map(|(_, node)| node);
        nodes.filter(|node| !node.outs.iter().any(|v| given.contains(v))).any(|node| {
            let varies = self.varies(node, all);
            varies.contains(&true) && !by_extents(self.body, node, &varies)
        })
    }
    /// True where other elements in masked rows of some values change no result, and whether the evaluation fails neither.
    pub fn unseen(&self, given: &[Value]) -> bool {
        let all = self.differences(given);
        self.body.results().iter().all(|&v| all[v] == Differs::Nowhere) && !self.may_fail(&all, given)
    }
}
