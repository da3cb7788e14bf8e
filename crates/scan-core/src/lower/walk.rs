//! What a fusion computes at a place, as a graph of its own: the nodes of the fusion, and what they read by way of views.

use super::extents::known_shape;
use super::fusions::{Folds, Fusion, Fusions, Leaf, Role, fold, reduces, view_of};
use super::gathered::Gathered;
use super::kinds::{Kind, Kinds};
use super::pieces::{Piece, Pieces, too_many};
use super::refusal::{Lowered, refuse};
use super::schedule::Failure;
use crate::base::Id;
use crate::ir::op::Gather;
use crate::ir::{Coord, Def, Graph, NodeId, Op, Value, View};
use crate::scalar::ElemOp;
use crate::types::shape::{Extents, strides};
use crate::types::{Array, DType, Dim, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

impl Fusions {
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

/// The nodes of a fusion on their way into a graph of their own.
struct Walk<'a> {
    fusions: &'a Fusions,
    body: &'a Graph,
    kinds: &'a Kinds,
    root: NodeId,
    /// Extents of what is walked over.
    space: Extents,
    leaves: Vec<Leaf>,
    graph: Graph,
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
    fn value(&mut self, v: Value, at: &View, via: Option<NodeId>) -> Lowered<Value> {
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
    fn leaf(&mut self, leaf: Leaf) -> Lowered<Value> {
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
    /// The element that a read by index arrays gives at a place.
    fn gathered(&mut self, id: NodeId, read: &Gathered, at: &View) -> Lowered<Value> {
        let node = &self.body.nodes()[id];
        let table = self.table(node.ins[0], read.elements(), &read.table().after(at), id)?;
        let steps = strides(&read.extents);
        let dtype = read.counted_in(self.body, &node.ins[1..]);
        let mut number: Option<Value> = None;
        for (&v, &axis) in node.ins[1..].iter().zip(&read.axes) {
            let index = self.value(v, &read.index(&known_shape(self.body, v)?).after(at), Some(id))?;
            let far = numbered(&mut self.graph, index, [read.extents[axis], steps[axis]], dtype)?;
            number = Some(number.map_or(far, |number| self.graph.add(number, far)));
        }
        let Some(number) = number else { return refuse("a read by no index") };
        let number = self.graph.cast(number, DType::I64);
        let read = Op::Gather(Gather { axes: vec![0] });
        Ok(self.graph.apply(read, &[table, number])?[0])
    }
    /// An array of which so many elements from a place on are read by number.
    fn table(&mut self, v: Value, elements: usize, view: &View, id: NodeId) -> Lowered<Value> {
        let leaf = Leaf { value: v, view: view.clone(), via: Some(id), table: Some(elements) };
        if let Some(known) = self.leaves.iter().position(|l| (l.value, &l.view, l.table) == (v, view, leaf.table)) {
            return Ok(self.graph.params()[known]);
        }
        self.leaf(leaf)
    }
}

/// How many elements before it an index, which may count from the end of its axis, says, as an integer of this dtype.
fn numbered(graph: &mut Graph, index: Value, [extent, step]: [usize; 2], dtype: DType) -> Lowered<Value> {
    let index = graph.cast(index, dtype);
    let [zero, extent, step] = [0, extent as i64, step as i64].map(|n| graph.constant(Array::scalar(n).cast(dtype)));
    let mut elem = |op: ElemOp, ins: &[Value]| graph.apply(Op::Elem(op), ins).map(|outs| outs[0]);
    let below = elem(ElemOp::Lt, &[index, zero])?;
    let shifted = elem(ElemOp::Add, &[index, extent])?;
    let inside = elem(ElemOp::Where, &[below, shifted, index])?;
    Ok(elem(ElemOp::Mul, &[inside, step])?)
}
