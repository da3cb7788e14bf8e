//! Extents that are known, and broadcasts and sums over broadcasts that change nothing.

use super::Rule;
use crate::ir::op::{BroadcastLike, DimOf, Op};
use crate::ir::{Def, NodeId, Value};
use crate::ops::certain::{extent, told};
use crate::rewrite::local::Local;
use crate::types::{DType, Dim};
use rustc_hash::FxHashSet;

/// The rules.
pub static RULES: &[Rule] = &[
    Rule {
        doc: "dim of a known extent → constant",
        on: &["dim"],
        apply: |l, op, ins| extent_of(l, op, ins[0]).and_then(|d| d.value()).map(|n| l.g.int(n as i64)),
    },
    Rule { doc: "dim(f(x)) → dim(x)", on: &["dim"], apply: |l, op, ins| earlier_dim(l, op, ins[0]) },
    Rule { doc: "like f(x) → like x", on: &["broadcast_like", "sum_to", "reshape_like"], apply: earlier_shape },
    Rule {
        doc: "broadcast to the same shape → x",
        on: &["broadcast_like", "sum_to"],
        apply: |l, _, ins| l.same_shape(ins[0], ins[1]).then_some(ins[0]),
    },
    Rule { doc: "sum to the same shape → x", on: &["sum_to"], apply: |l, _, ins| sum_to_itself(l, ins) },
    Rule { doc: "broadcast to the same shape → x", on: &["broadcast_to"], apply: |l, _, ins| broadcast_to_itself(l, ins) },
    Rule { doc: "broadcast of a broadcast → broadcast", on: &["broadcast_like", "broadcast_to"], apply: broadcast_twice },
];

fn extent_of(l: &Local, op: &Op, x: Value) -> Option<Dim> {
    match op {
        Op::DimOf(DimOf { axis }) => l.ty(x).dims.get(*axis).cloned(),
        _ => None,
    }
}

/// The same extent of a value that is computed before, where nothing that may fail lies between.
fn earlier_dim(l: &mut Local, op: &Op, x: Value) -> Option<Value> {
    let source = l.shape_of(x);
    if source != x {
        return l.make(op.clone(), &[source]);
    }
    let dim = extent_of(l, op, x)?;
    let ins = l.node(x).filter(|(made, _)| !matches!(made, Op::Scan(_) | Op::IfElse(_)))?.1.to_vec();
    if !l.safe(x) {
        return None;
    }
    if let Some(asked) = ins.iter().find(|&&v| l.extent(v).as_ref() == Some(&dim) && l.dtype(v) == DType::I64) {
        return Some(*asked);
    }
    let (from, axis) = ins.iter().find_map(|&v| Some((v, l.ty(v).dims.iter().position(|d| *d == dim)?)))?;
    l.make(DimOf { axis }, &[from])
}

/// Where only the shape of an input is wanted, an earlier value of that shape will do.
fn earlier_shape(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let source = l.shape_of(ins[1]);
    if source == ins[1] { None } else { l.make(op.clone(), &[ins[0], source]) }
}

fn broadcast_to_itself(l: &mut Local, ins: &[Value]) -> Option<Value> {
    let wanted: Vec<Dim> = ins[1..].iter().map(|&v| l.extent(v)).collect::<Option<_>>()?;
    (wanted == l.ty(ins[0]).dims.to_vec()).then_some(ins[0])
}

/// A sum to a shape that is the same though types do not tell it, as of slices with the same bounds.
fn sum_to_itself(l: &mut Local, ins: &[Value]) -> Option<Value> {
    let (rank, mut beside) = (l.ty(ins[0]).rank(), vec![]);
    let alike = |axis: usize| told(l.g, ins[0], axis, &mut |_| ()) == told(l.g, ins[1], axis, &mut |v| beside.push(v));
    let same = rank == l.ty(ins[1]).rank() && (0..rank).all(alike);
    if !same {
        return None;
    }
    // What the shape was taken from need not be computed any more: what may fail of it is computed for the value itself.
    let stays = may_fail(l, &[ins[0]])?;
    may_fail(l, &beside)?.is_subset(&stays).then_some(ins[0])
}

/// So many nodes are looked at.
const LOOKED_AT: usize = 1000;

/// The nodes that may fail, or have effects, of all that values are computed of; none where these are too many to look at.
fn may_fail(l: &mut Local, values: &[Value]) -> Option<FxHashSet<NodeId>> {
    let (mut found, mut seen, mut stack) = (FxHashSet::default(), FxHashSet::default(), values.to_vec());
    while let Some(v) = stack.pop() {
        let Def::Out(id, _) = l.g.def(v) else { continue };
        if l.safe(v) || !seen.insert(id) {
            continue;
        }
        if seen.len() > LOOKED_AT {
            return None;
        }
        let node = &l.g.nodes()[id];
        if node.op.def().fallible(l.g, &node.ins) {
            found.insert(id);
        }
        stack.extend_from_slice(&node.ins);
    }
    Some(found)
}

/// The inner broadcast must be known to succeed.
fn broadcast_twice(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let (Op::BroadcastLike(_) | Op::BroadcastTo(_), before) = l.node(ins[0])? else { return None };
    let x = before[0];
    if !l.certain(ins[0]) {
        return None;
    }
    let all: Vec<Value> = std::iter::once(x).chain(ins[1..].iter().copied()).collect();
    l.make(op.clone(), &all)
}

impl Local<'_> {
    /// The extent that an integer scalar asks for, where it is certain not to be negative.
    pub fn extent(&self, v: Value) -> Option<Dim> {
        extent(self.g, v)
    }
    /// The value of an integer constant.
    pub fn int(&self, v: Value) -> Option<i64> {
        self.g.const_value(v).filter(|a| a.rank() == 0 && a.dtype().is_int())?.item_i64()
    }
    /// True for a broadcast that cannot fail.
    pub fn certain(&self, v: Value) -> bool {
        match self.node(v) {
            Some((op, ins)) => !op.def().fallible(self.g, ins),
            None => false,
        }
    }
    /// A value broadcast as another broadcast is.
    pub fn broadcast_as(&mut self, x: Value, model: Value) -> Option<Value> {
        let (op, ins) = self.node(model)?;
        let op = op.clone();
        let all: Vec<Value> = std::iter::once(x).chain(ins[1..].iter().copied()).collect();
        debug_assert!(matches!(op, Op::BroadcastLike(BroadcastLike {}) | Op::BroadcastTo(_)));
        self.make(op, &all)
    }
}
