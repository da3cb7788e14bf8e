//! Slices that begin at a place that the step computes, and whose ends are so far from it that their length is known: `x[t : t + n]`.
//!
//! An index has fewer elements where it reaches beyond the array. A step is made for the length that it has within, and leaves the loop to
//! the law where that does not hold.

use super::planner::Planner;
use super::{Lowered, refuse};
use crate::bail;
use crate::base::{Id, Result};
use crate::ir::op::{Index, NativeOp, NativeRef, Outs};
use crate::ir::{EvalCx, Graph, Node, NodeId, Op, Value};
use crate::ops::index::{Item, Pattern};
use crate::ops::select::Selector;
use crate::plan::list::{Begin, Item as Part, Run, Slice, Work};
use crate::scalar::ElemOp;
use crate::types::shape::{Extents, count};
use crate::types::{Array, DType, Dim, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Rows of so many slices at most are read one by one.
const RUNS: usize = 4096;

/// A slice along one axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sliced {
    /// The number of the index input that says where it begins; the next one says where it ends.
    pub input: usize,
    /// Which axis.
    pub axis: usize,
    /// How many elements it has.
    pub len: usize,
}

/// An index some of whose slices are of that kind. Its inputs are those of the index.
pub(super) struct DynamicSlice {
    /// The index.
    pub index: Index,
    /// Those slices.
    pub slices: SmallVec<[Sliced; 2]>,
    ty: Type,
}

impl NativeOp for DynamicSlice {
    fn name(&self) -> &str {
        "index"
    }
    fn types(&self) -> Outs<Type> {
        [self.ty.clone()].into_iter().collect()
    }
    fn law(&self) -> Option<Op> {
        Some(self.index.clone().into())
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let outs = Op::from(self.index.clone()).evaluate(cx, ins)?;
        if outs[0].ty().dims != self.ty.dims {
            bail!(Shape, "E0201", "a slice reaches beyond its array");
        }
        Ok(outs)
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// Such an index, if an op is one.
pub(super) fn dynamic_slice(op: &Op) -> Option<&DynamicSlice> {
    if let Op::Native(native) = op { native.0.as_any().downcast_ref() } else { None }
}

impl Planner<'_> {
    /// A slice that begins at a computed place as a part of the list.
    pub(super) fn sliced(&mut self, id: NodeId) -> Lowered<bool> {
        let node = &self.body.nodes()[id];
        let Some(slice) = dynamic_slice(&node.op) else { return Ok(false) };
        let ins = self.places(&node.ins)?;
        let work = Work::Slice(Box::new(slice.read(self.body, node, &ins[0].shape)?));
        let out = self.slot(node.outs[0])?;
        self.items.push(Part { work, ins, outs: vec![out], span: node.span });
        Ok(true)
    }
}

impl DynamicSlice {
    /// What it reads of an array of this shape.
    fn read(&self, body: &Graph, node: &Node, shape: &Extents) -> Lowered<Slice> {
        let pattern = Pattern::parse(&self.index.pattern)?;
        let (mut begins, mut input) = (SmallVec::new(), 0);
        for (axis, item) in pattern.items.iter().enumerate() {
            let apart = count(&shape[axis + 1..]);
            let known = |k: usize| body.const_value(node.ins[1 + k]).is_some();
            match self.slices.iter().find(|s| s.axis == axis) {
                // One that begins in front of the array is the law's.
                Some(slice) => begins.push(Begin { input: 1 + input, apart, last: shape[axis] - slice.len, from_end: 0 }),
                None if *item == Item::At && !known(input) => {
                    begins.push(Begin { input: 1 + input, apart, last: shape[axis] - 1, from_end: shape[axis] });
                }
                None => {}
            }
            input += item.inputs();
        }
        let first = |k: usize| self.bound(k).or_else(|| body.const_value(node.ins[1 + k])?.item_i64()).unwrap_or(0);
        let selected = Selector::Basic(pattern).select(shape, &first, &|k| Array::scalar(first(k)))?;
        let (mut runs, mut done) = (vec![], 0);
        selected.runs(|from, n| {
            runs.push(Run { input: Some(0), from, to: done, n, step: 1 });
            done += n;
        });
        if runs.len() > RUNS { refuse("slices of many rows") } else { Ok(Slice { runs, begins }) }
    }

    /// What an index input is where the slices begin at 0; none for one that bounds no slice of that kind.
    pub(super) fn bound(&self, input: usize) -> Option<i64> {
        let of = |s: &Sliced| if input == s.input { Some(0) } else { Some(s.len as i64).filter(|_| input == s.input + 1) };
        self.slices.iter().find_map(of)
    }
}

/// True where one of them is needed for the results of a graph.
pub(super) fn slices(graph: &Graph) -> bool {
    live(graph) > 0
}

/// How many of them are needed for the results of a graph.
pub(super) fn live(graph: &Graph) -> usize {
    if all(graph) == 0 {
        return 0;
    }
    let live = graph.needed(graph.results());
    graph.nodes().enumerate().filter(|(id, node)| live[id.idx()] && dynamic_slice(&node.op).is_some()).count()
}

/// How many of them a graph has.
pub(super) fn all(graph: &Graph) -> usize {
    graph.nodes().iter().filter(|node| dynamic_slice(&node.op).is_some()).count()
}

/// True for what reads elements that an index names.
pub(super) fn reads_by_index(op: &Op) -> bool {
    matches!(op, Op::Index(_) | Op::Gather(_)) || dynamic_slice(op).is_some()
}

/// The op in the place of an index of which extents are not known, where they follow from how far its bounds lie apart.
pub(super) fn found(graph: &Graph, node: &Node, ins: &[Value]) -> Option<Op> {
    let Op::Index(index) = &node.op else { return None };
    let Pattern { items } = Pattern::parse(&index.pattern).ok()?;
    let x = graph.ty(ins[0]);
    let (mut input, mut slices, mut dims) = (0, SmallVec::new(), vec![]);
    for (axis, extent) in x.dims.iter().enumerate() {
        let extent = extent.value().filter(|&n| n > 0)?;
        let item = items.get(axis).copied().unwrap_or(Item::ALL);
        let bounds = &ins[1 + input..][..item.inputs()];
        let known = bounds.iter().map(|&v| graph.const_value(v).and_then(Array::item_i64)).collect::<Option<Vec<i64>>>();
        match (item, known) {
            (Item::At, _) => {}
            (Item::Slice { .. }, None) => {
                let len = length(graph, item, bounds)?;
                slices.push(Sliced { input, axis, len });
                dims.push(len);
            }
            (Item::Slice { start, end, step }, Some(known)) => {
                let (low, high) = (known.first().filter(|_| start), known.last().filter(|_| end));
                dims.push(crate::ops::index::resolve_slice(extent, low.copied(), high.copied(), step).1);
            }
        }
        input += item.inputs();
    }
    if slices.is_empty() || slices.iter().any(|s: &Sliced| x.dims[s.axis].value().is_none_or(|n| n < s.len)) {
        return None;
    }
    let ty = Type::new(x.dtype, dims.into_iter().map(Dim::known));
    Some(Op::Native(NativeRef(Arc::new(DynamicSlice { index: index.clone(), slices, ty }))))
}

/// How many elements a slice has between its bounds, where that does not depend on them.
fn length(graph: &Graph, item: Item, bounds: &[Value]) -> Option<usize> {
    let (Item::Slice { start: true, end: true, step: 1 }, &[start, end]) = (item, bounds) else { return None };
    let mut apart = Affine::default();
    apart.add(graph, end, 1, DEPTH)?;
    apart.add(graph, start, -1, DEPTH)?;
    let fixed = apart.terms.values().all(|&n| n == 0);
    usize::try_from(apart.more).ok().filter(|&n| n > 0 && fixed)
}

/// A sum of multiples of integers, and a number.
#[derive(Default)]
struct Affine {
    terms: FxHashMap<Value, i64>,
    more: i64,
}

/// Sums of sums are looked into so deep.
const DEPTH: usize = 8;

impl Affine {
    /// Adds a multiple of an integer of the graph; as everywhere, numbers wrap.
    fn add(&mut self, graph: &Graph, v: Value, times: i64, depth: usize) -> Option<()> {
        let ty = graph.ty(v);
        if ty.rank() > 0 || ty.dtype != DType::I64 {
            return None;
        }
        let integer = |v: Value| graph.const_value(v).and_then(Array::item_i64);
        if let Some(n) = integer(v) {
            self.more = self.more.wrapping_add(n.wrapping_mul(times));
            return Some(());
        }
        let node = graph.node_of(v).filter(|_| depth > 0);
        match node.map(|n| (&n.op, &n.ins[..])) {
            Some((Op::Elem(op @ (ElemOp::Add | ElemOp::Sub)), &[a, b])) => {
                self.add(graph, a, times, depth - 1)?;
                self.add(graph, b, if *op == ElemOp::Add { times } else { times.wrapping_neg() }, depth - 1)
            }
            Some((Op::Elem(ElemOp::Mul), &[a, b])) if let Some(n) = integer(a).or(integer(b)) => {
                let of = if integer(a).is_some() { b } else { a };
                self.add(graph, of, times.wrapping_mul(n), depth - 1)
            }
            _ => {
                let term = self.terms.entry(v).or_default();
                *term = term.wrapping_add(times);
                Some(())
            }
        }
    }
}
