//! Fusion: which nodes of a step are computed together in one walk over memory: elementwise nodes with all that they alone read, through
//! broadcasts, transposes and slices, and reductions with what they reduce.

use super::cuts::Cuts;
use super::gathered::Gathered;
use super::pieces::{Piece, Pieces, in_pieces, too_many};
use super::scan::{Kind, Kinds, known_shape};
use super::schedule::Failure;
use super::{Lowered, refuse};
use crate::base::Id;
use crate::ir::op::{ReduceKind, SumTo};
use crate::ir::{Coord, Def, EvalCx, Graph, Node, NodeId, Op, Value, View, Viewed};
use crate::types::shape::{Extents, count};
use crate::types::{Array, DType, Dim, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeMap;

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

/// A use of a value: the fusion, the element that is read at a place, and how many instructions on the way to it are done again for other
/// fusions, too.
pub(super) type Use = (NodeId, View, usize);

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
            let role = if alone { Role::Alone } else { fusions.role(body, id, lengths[id.idx()], (&outside, &mut uses, &mut spaces)) };
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
        length: Option<usize>,
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
        if let Some(role) = pieces.and_then(|pieces| put_together(body, id, &pieces, (outside, uses, spaces))) {
            return role;
        }
        if let Some(space) = reduces(body, node) {
            uses.entry(node.ins[0]).or_default().push((id, View::identity(space.len()), 0));
            spaces.insert(id, space);
            return Role::Root;
        }
        let gathers = self.reads.contains_key(&id);
        let length = if gathers { Some(CHEAP + 1) } else { length.filter(|_| elementwise(node)) };
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
    /// True for a node whose result has no memory: fusions read what it is made of.
    pub fn is_copied(&self, id: NodeId) -> bool {
        self.role[id.idx()] == Role::Copied
    }

    /// The fusions that store a root's result: one, or one for each part that reads other pieces of what is put together. And the nodes
    /// whose roles they depend on.
    pub fn fusion(&self, body: &Graph, kinds: &Kinds, root: NodeId) -> Result<(Vec<Fusion>, Vec<NodeId>), Failure> {
        let node = &body.nodes()[root];
        let whole = match reduces(body, node) {
            Some(space) => space,
            None => known_shape(body, node.outs[0])?,
        };
        let mut open = vec![(Extents::from_elem(0, whole.len()), whole.clone())];
        let (mut made, mut seen) = (vec![], vec![root]);
        while let Some((start, space)) = open.pop() {
            let mut walk = Walk {
                fusions: self,
                body,
                kinds,
                root,
                space: space.clone(),
                leaves: vec![],
                graph: Graph::new(),
                known: FxHashMap::default(),
                cut: None,
                full: false,
            };
            let at = View(start.iter().enumerate().map(|(axis, &n)| Coord { axis: Some(axis), start: n as isize, step: 1 }).collect());
            let fold = fold(body, node);
            let result = match &fold {
                Some(_) => walk.value(node.ins[0], &at, None),
                None => walk.node(root, &at, None),
            };
            let full = walk.full;
            seen.extend(walk.known.keys().filter_map(|(v, _)| match body.def(*v) {
                Def::Out(id, _) => Some(id),
                Def::Param(_) => None,
            }));
            match (result, walk.cut) {
                (Ok(result), _) => {
                    let Walk { leaves, mut graph, .. } = walk;
                    graph.set_results(vec![result]);
                    let folds = fold.map(|(axes, by)| Folds { axes, by: SmallVec::from_elem(by, 1) });
                    made.push(Fusion { folds, space, start, whole: whole.clone(), leaves, graph, roots: vec![root] });
                }
                (Err(_), Some(cut)) if too_many(made.len() + open.len() + 2, &whole) => return Err(Failure::Without(cut.by)),
                (Err(_), Some(cut)) => {
                    let (mut first, mut rest, mut second) = (space.clone(), space, start.clone());
                    first[cut.axis] = cut.at;
                    rest[cut.axis] -= cut.at;
                    second[cut.axis] += cut.at;
                    open.push((second, rest));
                    open.push((start, first));
                }
                (Err(_), None) if full => return Err(Failure::Wide),
                (Err(e), None) => return Err(e.into()),
            }
        }
        Ok((made, seen))
    }
}

/// The role of a node that puts arrays together: those that walk all its places read its pieces, or, where it joins whole inputs, it is a
/// fusion of its own.
fn put_together(
    body: &Graph,
    id: NodeId,
    pieces: &Pieces,
    (outside, uses, spaces): (&FxHashSet<Value>, &mut Uses, &mut FxHashMap<NodeId, Extents>),
) -> Option<Role> {
    let node = &body.nodes()[id];
    let v = node.outs[0];
    let own = uses.get(&v).filter(|_| !outside.contains(&v)).map_or(&[][..], |u| u);
    let maps = own.iter().all(|u| fold(body, &body.nodes()[u.0]).is_none());
    let here = || known_shape(body, v).is_ok_and(|whole| in_pieces(pieces, &whole, own, spaces));
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
fn reduces(body: &Graph, node: &Node) -> Option<Extents> {
    fold(body, node)?;
    known_shape(body, node.ins[0]).ok().filter(|space| count(space) > 0)
}

/// The axes that a node reduces, and how.
fn fold(body: &Graph, node: &Node) -> Option<(SmallVec<[usize; 2]>, Fold)> {
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

/// So many nodes after each other are evaluated to know an integer.
pub(super) const DEEP: usize = 8;

/// A scalar that depends on nothing but extents.
pub(super) fn known(body: &Graph, v: Value, deep: usize) -> Option<Array> {
    if let Some(a) = body.const_value(v) {
        return Some(a.clone());
    }
    let node = body.node_of(v).filter(|n| deep > 0 && n.op.elementwise())?;
    let mut ins = node.ins.iter().map(|&x| known(body, x, deep - 1).filter(|a| a.len() == 1)).collect::<Option<Vec<Array>>>()?;
    node.op.evaluate(&mut EvalCx::new(), &mut ins).ok()?.into_iter().next()
}

pub(super) fn elementwise(node: &Node) -> bool {
    node.op.elementwise() || node.op.is_mark() && node.ins.len() == 1
}

/// The nodes of a fusion on their way into a graph of their own.
pub(super) struct Walk<'a> {
    fusions: &'a Fusions,
    pub(super) body: &'a Graph,
    kinds: &'a Kinds,
    root: NodeId,
    /// Extents of what is walked over.
    space: Extents,
    pub(super) leaves: Vec<Leaf>,
    pub(super) graph: Graph,
    known: FxHashMap<(Value, View), Value>,
    /// Where the walk must be cut.
    cut: Option<Cut>,
    /// It would read too many arrays.
    full: bool,
}

/// The place along an axis of a walk from which on other pieces are read.
#[derive(Clone, Copy)]
struct Cut {
    axis: usize,
    at: usize,
    /// What is put together of them.
    by: NodeId,
}

/// So many arrays are read by one fusion at most.
pub(super) const LEAVES: usize = 40;

impl Walk<'_> {
    /// A value of the body at a place.
    pub(super) fn value(&mut self, v: Value, at: &View, via: Option<NodeId>) -> Lowered<Value> {
        if let Some(&known) = self.known.get(&(v, at.clone())) {
            return Ok(known);
        }
        let made = self.made(v, at, via)?;
        self.known.insert((v, at.clone()), made);
        Ok(made)
    }
    fn made(&mut self, v: Value, at: &View, via: Option<NodeId>) -> Lowered<Value> {
        let body = self.body;
        if let Some(a) = body.const_value(v).filter(|a| a.len() == 1) {
            return Ok(self.graph.constant(a.reshaped(&[])));
        }
        if let Def::Out(id, _) = body.def(v) {
            let steady = self.kinds.of(v) != Kind::Step;
            match self.fusions.role[id.idx()] {
                Role::Inner(root) if root == self.root => return self.node(id, at, via),
                Role::Copied if view_of(body, &body.nodes()[id]).is_none() => return self.node(id, at, via),
                Role::Copied => return self.through(id, at, Some(id)),
                _ if steady && view_of(body, &body.nodes()[id]).is_some() => return self.through(id, at, via),
                _ => {}
            }
        }
        self.leaf(Leaf { value: v, view: at.clone(), via, table: None })
    }
    /// A new leaf: one element of it, or its table.
    pub(super) fn leaf(&mut self, leaf: Leaf) -> Lowered<Value> {
        if self.leaves.len() == LEAVES {
            self.full = true;
            return refuse("it reads too many arrays");
        }
        let ty = Type::new(self.body.ty(leaf.value).dtype, [Dim::known(leaf.table.unwrap_or(1))]);
        self.leaves.push(leaf);
        Ok(self.graph.param(ty, None))
    }
    fn through(&mut self, id: NodeId, at: &View, via: Option<NodeId>) -> Lowered<Value> {
        let node = &self.body.nodes()[id];
        match view_of(self.body, node) {
            Some(view) => self.value(node.ins[0], &view.after(at), via),
            None => refuse("a view that is none"),
        }
    }
    /// `via`: the view behind which it is computed.
    fn node(&mut self, id: NodeId, at: &View, via: Option<NodeId>) -> Lowered<Value> {
        let node = &self.body.nodes()[id];
        if let Some(read) = self.fusions.reads.get(&id) {
            return self.gathered(id, read, at);
        }
        if let Some(pieces) = Pieces::of(self.body, node) {
            return self.piece(id, &pieces, at);
        }
        let shape = known_shape(self.body, node.outs[0])?;
        let mut ins: SmallVec<[Value; 3]> = SmallVec::new();
        for &x in &node.ins {
            let view = View::broadcast(&known_shape(self.body, x)?, &shape).after(at);
            ins.push(self.value(x, &view, via)?);
        }
        let made = self.graph.apply(node.op.clone(), &ins)?;
        Ok(made[0])
    }
    /// The piece in which all places lie that are walked over.
    fn piece(&mut self, id: NodeId, pieces: &Pieces, at: &View) -> Lowered<Value> {
        let ins = &self.body.nodes()[id].ins;
        match pieces.holding(at, &self.space) {
            Ok(Piece::Of(k, view)) => self.value(ins[k], &view.after(at), Some(id)),
            Ok(Piece::Sum(view)) => {
                let x = self.value(ins[0], at, Some(id))?;
                let y = self.value(ins[1], &view.after(at), Some(id))?;
                Ok(self.graph.add(x, y))
            }
            Err((axis, at)) => {
                self.cut = Some(Cut { axis, at, by: id });
                refuse("it reads several pieces")
            }
        }
    }
}
