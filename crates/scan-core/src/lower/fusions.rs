//! Fusion: which nodes of a step are computed together in one walk over memory: elementwise nodes with all that they alone read, through
//! broadcasts, transposes and slices, and reductions with what they reduce.

use super::cost::{cut_short, joined};
use super::extents::{DEEP, known, known_shape};
use super::gathered::Gathered;
use super::kinds::{Kind, Kinds};
use super::pieces::{Pieces, segments, too_many};
use crate::base::Id;
use crate::ir::op::{ReduceKind, SumTo};
use crate::ir::{Graph, Node, NodeId, Op, Value, View, Viewed};
use crate::types::DType;
use crate::types::shape::{Extents, count};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// The fusions of a step.
pub(super) struct Fusions {
    pub(super) role: Vec<Role>,
    /// The reads by index arrays that they can do.
    pub(super) reads: BTreeMap<NodeId, Gathered>,
}

/// What becomes of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// It is an item of its own.
    Alone,
    /// It is computed where this node is.
    Inner(NodeId),
    /// Its result is stored by a fusion.
    Root,
    /// Fusions read through it, or compute it again; it has no memory.
    Copied,
}

/// How a fusion reduces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fold {
    /// By a reduction, in this dtype.
    By(ReduceKind, DType),
    /// To the index of the first extreme of elements of this dtype: true for the largest.
    First(bool, DType),
}

/// What a fusion reduces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Folds {
    /// The axes that are reduced.
    pub axes: SmallVec<[usize; 2]>,
    /// How, by root.
    pub by: SmallVec<[Fold; 1]>,
}

/// Nodes that are computed together.
pub(super) struct Fusion {
    /// Extents of what is walked over.
    pub space: Extents,
    /// What is walked over begins here...
    pub start: Extents,
    /// ...in a space of these extents, those of the result before it is reduced.
    pub whole: Extents,
    /// What is reduced; none where the results are those of each place.
    pub folds: Option<Folds>,
    /// What is read, parameters of the graph in this order.
    pub leaves: Vec<Leaf>,
    /// What is computed at a place, of operands of one element.
    pub graph: Graph,
    /// The nodes whose results it stores, those of the graph in this order.
    pub roots: Vec<NodeId>,
}

impl Fusion {
    /// The dtype of a leaf's elements.
    pub fn element(&self, leaf: usize) -> DType {
        self.graph.ty(self.graph.params()[leaf]).dtype
    }
}

/// An array that a fusion reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Leaf {
    /// The array.
    pub value: Value,
    /// Which of its elements is read at a place.
    pub view: View,
    /// The last view on the way to it, of those that could have memory of their own.
    pub via: Option<NodeId>,
    /// So many elements from there on are a table that is read by number.
    pub table: Option<usize>,
}

/// Where nodes that could be fused are not.
#[derive(Default)]
pub(super) struct Cuts {
    /// Computed on their own.
    pub alone: FxHashSet<NodeId>,
    /// Computed by a fusion that stores their result.
    pub stored: FxHashSet<NodeId>,
}

impl Cuts {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.alone.len() + self.stored.len()
    }
}

/// A use of a value: the fusion, the element that is read at a place, and how many instructions on the way to it are done again for other
/// fusions, too.
type Use = (NodeId, View, usize);

/// Who reads a value.
type Uses = FxHashMap<Value, Vec<Use>>;

/// So many instructions rather than to store their result and to load it again.
pub(super) const CHEAP: usize = 3;
/// For so many fusions at most.
const AGAIN: usize = 3;

impl Fusions {
    /// The fusions among the nodes of a step. `lengths`: per node, its instructions in a kernel, where it can be part of one.
    pub fn new(body: &Graph, kinds: &Kinds, lengths: &[Option<usize>], cuts: &Cuts) -> Fusions {
        let live = body.needed(body.results());
        // What others than fusions read.
        let stored = cuts.stored.iter().map(|&id| body.nodes()[id].outs[0]);
        let mut outside: FxHashSet<Value> = body.results().iter().copied().chain(stored).collect();
        let (mut uses, mut spaces) = (Uses::default(), FxHashMap::default());
        let mut fusions = Fusions { role: vec![Role::Alone; body.nodes().len()], reads: BTreeMap::new() };
        for (id, node) in body.nodes().enumerate().rev().filter(|(id, _)| live[id.0 as usize]) {
            if !node.outs.iter().any(|&v| kinds.of(v) == Kind::Step) {
                continue;
            }
            let alone = cuts.alone.contains(&id);
            if !alone && view_of(body, node).is_none() {
                fusions.reads.extend(Gathered::of(body, node).map(|read| (id, read)));
            }
            let role = if alone { Role::Alone } else { fusions.role(body, id, lengths, (&outside, &mut uses, &mut spaces)) };
            if role == Role::Alone || fusions.reads.contains_key(&id) {
                outside.extend(&node.ins);
            }
            fusions.role[id.idx()] = role;
        }
        fusions
    }

    fn role(
        &self,
        body: &Graph,
        id: NodeId,
        lengths: &[Option<usize>],
        (outside, uses, spaces): (&FxHashSet<Value>, &mut Uses, &mut FxHashMap<NodeId, Extents>),
    ) -> Role {
        let node = &body.nodes()[id];
        let v = node.outs[0];
        let Ok(shape) = known_shape(body, v) else { return Role::Alone };
        if let Some(view) = view_of(body, node) {
            if outside.contains(&v) {
                return Role::Alone;
            }
            let through = uses.get(&v).map_or(vec![], |u| u.iter().map(|(root, at, spent)| (*root, view.after(at), *spent)).collect());
            uses.entry(node.ins[0]).or_default().extend(through);
            return Role::Copied;
        }
        let pieces = Pieces::of(body, node);
        let work = |root: NodeId| self.work(root, lengths);
        if let Some(role) = pieces.and_then(|pieces| put_together(body, id, &pieces, &work, (outside, uses, spaces))) {
            return role;
        }
        if let Some(space) = reduces(body, node) {
            uses.entry(node.ins[0]).or_default().push((id, View::identity(space.len()), 0));
            spaces.insert(id, space);
            return Role::Root;
        }
        let gathers = self.reads.contains_key(&id);
        let length = if gathers { Some(CHEAP + 1) } else { lengths[id.idx()].filter(|_| elementwise(node)) };
        let Some(spent) = length.filter(|_| count(&shape) > 0) else { return Role::Alone };
        let own: &[Use] = uses.get(&v).filter(|_| !outside.contains(&v)).map_or(&[], |u| u);
        let (role, own) = match own {
            [first, others @ ..] if once(&first.1, &shape, &spaces[&first.0]) && others.iter().all(|u| u == first) => {
                (Role::Inner(first.0), vec![first.clone()])
            }
            [only] if is_piece(body, only, &shape, spaces) => (Role::Inner(only.0), vec![only.clone()]),
            own if again(own, spent, &shape, spaces) => (Role::Copied, own.to_vec()),
            _ => (Role::Root, vec![(id, View::identity(shape.len()), 0)]),
        };
        if role == Role::Root {
            spaces.insert(id, shape.clone());
        }
        let more = if role == Role::Copied { spent } else { 0 };
        for &x in node.ins.iter().filter(|_| !gathers) {
            let Ok(from) = known_shape(body, x) else { return Role::Alone };
            let view = View::broadcast(&from, &shape);
            uses.entry(x).or_default().extend(own.iter().map(|(root, at, spent)| (*root, view.after(at), spent + more)));
        }
        role
    }

    /// The node with whose fusion a node runs: itself, where it is in none.
    pub fn root(&self, id: NodeId) -> NodeId {
        if let Role::Inner(root) = self.role[id.idx()] { root } else { id }
    }
    /// Instructions that a fusion has at each place, of the nodes that are known to be part of it.
    fn work(&self, root: NodeId, lengths: &[Option<usize>]) -> usize {
        let own = self.role.iter().zip(lengths).filter(|(role, _)| **role == Role::Inner(root)).filter_map(|(_, length)| *length);
        lengths[root.idx()].unwrap_or(0) + own.sum::<usize>()
    }
    /// True for a node whose result has no memory: fusions read what it is made of.
    pub fn is_copied(&self, id: NodeId) -> bool {
        self.role[id.idx()] == Role::Copied
    }
}

/// The role of a node that puts arrays together: those that walk all its places read its pieces, or, where it joins whole inputs, it is a
/// fusion of its own.
fn put_together(
    body: &Graph,
    id: NodeId,
    pieces: &Pieces,
    work: &dyn Fn(NodeId) -> usize,
    (outside, uses, spaces): (&FxHashSet<Value>, &mut Uses, &mut FxHashMap<NodeId, Extents>),
) -> Option<Role> {
    let node = &body.nodes()[id];
    let v = node.outs[0];
    let own = uses.get(&v).filter(|_| !outside.contains(&v)).map_or(&[][..], |u| u);
    let maps = own.iter().all(|u| fold(body, &body.nodes()[u.0]).is_none());
    let here = || known_shape(body, v).is_ok_and(|whole| in_pieces(pieces, &whole, own, work, spaces));
    let (role, own) = match own {
        own if !own.is_empty() && maps && here() => (Role::Copied, own.to_vec()),
        _ if pieces.is_joined() => (Role::Root, vec![(id, View::identity(body.ty(v).rank()), 0)]),
        _ => return None,
    };
    if let (Role::Root, Ok(shape)) = (role, known_shape(body, v)) {
        spaces.insert(id, shape);
    }
    for (view, &x) in pieces.views().iter().zip(&node.ins) {
        uses.entry(x).or_default().extend(own.iter().map(|(root, at, spent)| (*root, view.after(at), *spent)));
    }
    Some(role)
}

/// True where walks read the pieces of an array where they lie: where they fall into few parts, hardly any of few lanes, and where that takes less
/// than to put the array together.
fn in_pieces(pieces: &Pieces, whole: &[usize], uses: &[Use], work: &dyn Fn(NodeId) -> usize, spaces: &FxHashMap<NodeId, Extents>) -> bool {
    let mut cuts: BTreeMap<NodeId, BTreeSet<(usize, usize)>> = BTreeMap::new();
    for (root, view, _) in uses {
        cuts.entry(*root).or_default().extend(pieces.cuts(view, &spaces[root]));
    }
    let along = |of: &BTreeSet<(usize, usize)>, axis: usize| 1 + of.iter().filter(|cut| cut.0 == axis).count();
    // One less for each walk but the first.
    let parts = |(root, of): (&NodeId, _)| (0..spaces[root].len()).map(|axis| along(of, axis)).product::<usize>() - 1;
    let parts = 1 + cuts.iter().map(parts).sum::<usize>();
    let slivers = cuts.iter().any(|(root, of)| slivers(&spaces[root], of));
    let more: f64 = cuts.iter().map(|(root, of)| cut_short(&spaces[root], of, work(*root))).sum();
    !too_many(parts, whole) && !slivers && (!pieces.is_joined() || more <= joined(pieces.views().len(), whole))
}

/// Elements of a vector, more or less.
const VECTOR: usize = 8;

/// True where cuts along the last axis of a walk double its vectors.
fn slivers(space: &[usize], cuts: &BTreeSet<(usize, usize)>) -> bool {
    let Some(&n) = space.last() else { return false };
    let vectors: usize = segments(space, cuts).into_iter().map(|lanes| lanes.div_ceil(VECTOR)).sum();
    vectors >= 2 * n.div_ceil(VECTOR) && n > VECTOR && space.len() > 1
}

/// True where a walk over so much reads each element of a value of this shape at one place at most.
fn once(view: &View, shape: &[usize], space: &[usize]) -> bool {
    let walked = |axis: usize| view.0.iter().any(|c| c.axis == Some(axis));
    shape.is_empty() || space.iter().enumerate().all(|(axis, &n)| n == 1 || walked(axis))
}

/// True for the use of a value that is a piece of what is joined, along an axis that the piece has none of: no place of it is read twice.
/// Along the last axis pieces are written apart, which takes longer than what is computed.
fn is_piece(body: &Graph, (root, view, _): &Use, shape: &[usize], spaces: &FxHashMap<NodeId, Extents>) -> bool {
    let Op::Join(join) = &body.nodes()[*root].op else { return false };
    let mut space = spaces[root].clone();
    space[join.axis] = 1;
    let last = join.axis + 1 == space.len();
    !last && once(view, shape, &space)
}

/// True where it is quicker to compute a value of so many instructions in each fusion that reads it.
fn again(uses: &[Use], instructions: usize, shape: &[usize], spaces: &FxHashMap<NodeId, Extents>) -> bool {
    let fits = |u: &Use| u.2 + instructions <= CHEAP && once(&u.1, shape, &spaces[&u.0]);
    !shape.is_empty() && (1..=AGAIN).contains(&uses.len()) && uses.iter().all(fits)
}

/// Extents of what a node reduces, where fusions can.
pub(super) fn reduces(body: &Graph, node: &Node) -> Option<Extents> {
    fold(body, node)?;
    known_shape(body, node.ins[0]).ok().filter(|space| count(space) > 0)
}

/// The axes that a node reduces, and how.
pub(super) fn fold(body: &Graph, node: &Node) -> Option<(SmallVec<[usize; 2]>, Fold)> {
    let dtype = body.ty(*node.ins.first()?).dtype;
    match &node.op {
        Op::Reduce(op) => {
            let dtype = match op.kind {
                ReduceKind::Sum | ReduceKind::Prod => dtype.accumulator(),
                ReduceKind::Any | ReduceKind::All => DType::Bool,
                ReduceKind::Max | ReduceKind::Min => dtype,
            };
            Some((op.axes.iter().copied().collect(), Fold::By(op.kind, dtype)))
        }
        Op::ArgReduce(op) => Some((SmallVec::from_slice(&[op.axis]), Fold::First(op.kind == crate::ir::op::Extreme::Max, dtype))),
        Op::SumTo(SumTo {}) => {
            let (from, to) = (known_shape(body, node.ins[0]).ok()?, known_shape(body, node.outs[0]).ok()?);
            let new = from.len().checked_sub(to.len())?;
            let axes: SmallVec<[usize; 2]> = (0..from.len()).filter(|&i| i < new || to[i - new] == 1 && from[i] != 1).collect();
            let kind = if dtype == DType::Bool { ReduceKind::Any } else { ReduceKind::Sum };
            (count(&from) != count(&to)).then_some((axes, Fold::By(kind, dtype)))
        }
        _ => None,
    }
}

/// The view that a node is of its first input.
pub(super) fn view_of(body: &Graph, node: &Node) -> Option<View> {
    let (from, to) = (known_shape(body, *node.ins.first()?).ok()?, known_shape(body, *node.outs.first()?).ok()?);
    let integer = |k: usize| known(body, *node.ins.get(k)?, DEEP)?.item_i64();
    let view = node.op.def().view(&Viewed { from: &from, to: &to, integer: &integer })?;
    (count(&to) > 0 && body.ty(node.ins[0]).dtype == body.ty(node.outs[0]).dtype).then_some(view)
}

pub(super) fn elementwise(node: &Node) -> bool {
    node.op.elementwise() || node.op.is_mark() && node.ins.len() == 1
}
