//! What is computed of the rows that a loop makes: products with matrices and what is made of them, and sums of outer products. A loop
//! can have it computed after each block of steps, while the rows are in the cache; where nothing else reads them, no memory for all of
//! them is needed.

use super::rowwise::{Rowwise, Uses};
use crate::base::Id;
use crate::ir::op::*;
use crate::ir::{Def, Graph, Keep, Node, NodeId, Scan, StateId, Value};
use crate::ops::index::{Item, Pattern};
use crate::ops::properties::Cost;
use crate::scalar::ElemOp;
use crate::types::{Array, Dim, Sym};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// What follows a loop, as a graph of its own: row i of a result depends on row i of the parameters that are not given whole.
pub struct Foot {
    /// Parameters: rows that the loop makes, rows of other arrays, arrays that are given whole. Results: rows that are wanted, then the
    /// operands of the sums.
    pub graph: Graph,
    /// Rows that the loop makes: of step t, row t and so many of a state's buffer.
    pub made: Vec<(StateId, usize)>,
    /// Other arrays of which rows are read; from the last one on, where that is said.
    pub cut: Vec<(Value, bool)>,
    /// Arrays that are given whole.
    pub whole: Vec<Value>,
    /// The rows that are wanted.
    pub rows: Vec<Value>,
    /// The sums that are wanted, and which of the arrays that are given whole tells the shape of each.
    pub sums: Vec<(Value, OuterSum, usize)>,
    /// States whose rows nothing else reads.
    pub own: Vec<StateId>,
}

impl Foot {
    fn reads(&self) -> impl Iterator<Item = Value> + '_ {
        self.cut.iter().map(|c| c.0).chain(self.whole.iter().copied())
    }
}

/// The feet of the loops of a graph.
#[derive(Default)]
pub struct Feet {
    of: FxHashMap<NodeId, Foot>,
    inner: FxHashSet<Value>,
}

impl Feet {
    /// The feet of the loops among the live nodes, of nodes that are `free`; where there are some, `live` becomes what is live without them.
    pub fn new(graph: &Graph, live: &mut Vec<bool>, free: &dyn Fn(&Node) -> bool) -> Feet {
        let mut feet = Feet::default();
        let ends = |n: &Node| matches!(n.op, Op::MatMul(_) | Op::OuterSum(_));
        let any = |wanted: &dyn Fn(&Node) -> bool| graph.nodes().enumerate().any(|(id, n)| live[id.0 as usize] && wanted(n));
        if !any(&|n| n.op.as_scan().is_some_and(|s| !s.until)) || !any(&ends) {
            return feet;
        }
        let (uses, readers) = (Uses::new(graph), readers(graph));
        for (id, node) in graph.nodes().enumerate().filter(|n| live[n.0.0 as usize]) {
            let Some(scan) = node.op.as_scan().filter(|s| !s.until) else { continue };
            let (steps, parts, hidden) = (FxHashMap::default(), vec![], FxHashSet::default());
            let mut draft = Draft { graph, uses: &uses, readers: &readers, id, node, scan, steps, parts, hidden };
            draft.grow(&|id, n| live[id.0 as usize] && free(n) && !feet.has(n));
            if let Some((foot, inner)) = draft.foot(live) {
                feet.inner.extend(inner);
                feet.of.insert(id, foot);
            }
        }
        if !feet.of.is_empty() {
            *live = feet.live(graph);
        }
        feet
    }
    /// True for a node that is part of a foot.
    pub fn has(&self, node: &Node) -> bool {
        node.outs.iter().any(|v| self.inner.contains(v))
    }
    /// The rows of states that nothing else reads.
    pub fn own<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = Value> + 'a {
        self.of.iter().flat_map(|(id, foot)| foot.own.iter().map(|s| graph.nodes()[*id].outs[s.0 as usize]))
    }
    /// What the foot of a loop reads besides the loop's rows.
    pub fn reads(&self, id: NodeId) -> Vec<Value> {
        self.of.get(&id).map_or(vec![], |foot| foot.reads().collect())
    }
    /// The foot of a loop.
    pub fn take(&mut self, id: NodeId) -> Option<Foot> {
        self.of.remove(&id)
    }

    /// What is needed where loops compute their feet.
    fn live(&self, graph: &Graph) -> Vec<bool> {
        let mut made: FxHashMap<Value, NodeId> = FxHashMap::default();
        for (&id, foot) in &self.of {
            made.extend(foot.rows.iter().chain(foot.sums.iter().map(|s| &s.0)).map(|&v| (v, id)));
        }
        let mut live = vec![false; graph.nodes().len()];
        let mut open: Vec<Value> = graph.results().to_vec();
        while let Some(v) = open.pop() {
            let id = match (made.get(&v), graph.def(v)) {
                (Some(&id), _) | (None, Def::Out(id, _)) => id,
                (None, Def::Param(_)) => continue,
            };
            if std::mem::replace(&mut live[id.0 as usize], true) {
                continue;
            }
            open.extend(&graph.nodes()[id].ins);
            if let Some(foot) = self.of.get(&id) {
                open.extend(foot.reads());
            }
        }
        live
    }
}

/// The nodes that read a value, per value.
type Readers = Vec<SmallVec<[NodeId; 2]>>;

fn readers(graph: &Graph) -> Readers {
    let mut readers: Readers = vec![SmallVec::new(); graph.n_values()];
    for (id, node) in graph.nodes().enumerate() {
        node.ins.iter().for_each(|v| readers[v.idx()].push(id));
    }
    readers
}

/// A part of a foot.
enum Part {
    Rows(Rowwise),
    Sum(OuterSum, [Value; 3], Value),
}

impl Part {
    fn out(&self) -> Value {
        match self {
            Part::Rows(r) => r.made[0],
            Part::Sum(_, _, out) => *out,
        }
    }
    /// What it reads by rows.
    fn cut(&self) -> Vec<Value> {
        match self {
            Part::Rows(r) => r.ins.iter().zip(&r.cut).filter(|c| *c.1).map(|c| *c.0).collect(),
            Part::Sum(_, [a, b, _], _) => vec![*a, *b],
        }
    }
    /// What it reads whole.
    fn whole(&self) -> Vec<Value> {
        match self {
            Part::Rows(r) => r.ins.iter().zip(&r.cut).filter(|c| !*c.1).map(|c| *c.0).collect(),
            Part::Sum(_, [_, _, like], _) => vec![*like],
        }
    }
    /// True for what is worth a foot.
    fn multiplies(&self) -> bool {
        match self {
            Part::Rows(r) => matches!(r.op, Op::MatMul(_)),
            Part::Sum(..) => true,
        }
    }
    /// True for what makes rows of others than elementwise.
    fn gathers(&self) -> bool {
        matches!(self, Part::Rows(r) if matches!(r.op, Op::Reduce(_)) || r.op.properties().cost == Cost::Exponentials)
    }
}

/// A foot in the making.
struct Draft<'a> {
    graph: &'a Graph,
    uses: &'a Uses,
    readers: &'a Readers,
    id: NodeId,
    node: &'a Node,
    scan: &'a Scan,
    /// Rows of the loop's states that are as many as the steps.
    steps: FxHashMap<Value, (StateId, usize)>,
    parts: Vec<Part>,
    /// Slices, and what is computed on the way to products.
    hidden: FxHashSet<Value>,
}

impl Draft<'_> {
    /// Finds the parts among the nodes that read rows, first to last.
    fn grow(&mut self, free: &dyn Fn(NodeId, &Node) -> bool) {
        for id in self.scan.states.ids() {
            let state = &self.scan.states[id];
            let plain = state.keep == Keep::All && state.writes.len() == 1 && state.writes[0] == state.span();
            let reads = state.reads.iter().all(|&r| r < state.span());
            if plain && reads && state.span() == 0 && !state.init {
                self.steps.insert(self.node.outs[self.scan.state_output(id)], (id, 0));
            }
        }
        let mut rows: FxHashSet<Value> = self.steps.keys().copied().collect();
        let mut open: BTreeSet<NodeId> = self.node.outs.iter().flat_map(|v| &self.readers[v.idx()]).copied().collect();
        while let Some(id) = open.pop_first() {
            let node = &self.graph.nodes()[id];
            if node.outs.len() != 1 || !free(id, node) {
                continue;
            }
            let out = node.outs[0];
            if let Some(row) = self.slice(node) {
                self.steps.insert(out, row);
                self.hidden.insert(out);
                rows.insert(out);
            } else if let Some(part) = self.part(node).filter(|p| self.fits(p, &rows)) {
                if matches!(part, Part::Rows(_)) {
                    rows.insert(out);
                }
                self.parts.push(part);
            } else if !matches!(node.op, Op::Reshape(_) | Op::MatMul(_)) {
                continue; // others are not on the way to a product of rows
            }
            open.extend(&self.readers[out.idx()]);
        }
        self.choose();
    }

    fn part(&self, node: &Node) -> Option<Part> {
        match &node.op {
            Op::OuterSum(op) => Some(Part::Sum(op.clone(), [node.ins[0], node.ins[1], node.ins[2]], node.outs[0])),
            _ => self.uses.rowwise(self.graph, node).map(Part::Rows),
        }
    }

    /// The rows of all steps, as a slice of a state's buffer that begins with rows given.
    fn slice(&self, node: &Node) -> Option<(StateId, usize)> {
        let Op::Index(op) = &node.op else { return None };
        let Def::Out(id, k) = self.graph.def(node.ins[0]) else { return None };
        let state_id = self.scan.states.ids().nth(k).filter(|_| id == self.id)?;
        let state = &self.scan.states[state_id];
        let span = state.span();
        let plain = state.keep == Keep::All && state.writes[..] == [span] && state.reads.iter().all(|&r| r < span);
        let given = self.scan.init_input(state_id).map_or(Some(0), |at| self.graph.ty(self.node.ins[at]).dims[0].value())?;
        let Ok(pattern) = Pattern::parse(&op.pattern) else { return None };
        let [Item::Slice { start, end, step: 1 }] = pattern.items[..] else { return None };
        let from = if start { usize::try_from(self.integer(node.ins[1])?).ok()? } else { 0 };
        let to_end = match end.then(|| node.ins[1 + usize::from(start)]) {
            None => from == span,
            Some(end) => self.ends(end, from, span),
        };
        (plain && given <= span && from <= span && to_end).then_some((state_id, from))
    }

    /// True for the end of a slice that has as many rows as there are steps.
    fn ends(&self, end: Value, from: usize, span: usize) -> bool {
        if let Some(end) = self.integer(end) {
            return end < 0 && span.checked_sub(from) == usize::try_from(-end).ok();
        }
        let steps = |v: Value| v == self.node.ins[Scan::N_STEPS] || v == self.node.outs[self.scan.steps_output()];
        let more = |n: &Node| {
            let k = |v: Value| self.integer(v) == Some(from as i64);
            matches!(n.op, Op::Elem(ElemOp::Add)) && (steps(n.ins[0]) && k(n.ins[1]) || k(n.ins[0]) && steps(n.ins[1]))
        };
        from == 0 && steps(end) || self.graph.node_of(end).is_some_and(more)
    }

    fn integer(&self, v: Value) -> Option<i64> {
        self.graph.const_value(v).filter(|a| a.rank() == 0).and_then(Array::item_i64)
    }

    /// True where a part reads rows of the loop, and else what is there before it.
    fn fits(&self, part: &Part, rows: &FxHashSet<Value>) -> bool {
        let before = |v: &Value| match self.graph.def(*v) {
            Def::Param(_) => true,
            Def::Out(id, _) => id < self.id,
        };
        let cut = part.cut();
        let turned = match part {
            Part::Sum(op, [a, b, _], _) => op.back_a && rows.contains(a) || op.back_b && rows.contains(b),
            Part::Rows(_) => false,
        };
        cut.iter().any(|v| rows.contains(v))
            && cut.iter().all(|v| rows.contains(v) || before(v))
            && part.whole().iter().all(|v| before(v) || small(self.graph, *v).is_some())
            && !turned
    }

    /// Leaves the parts that multiply, what they read, and what is made of them and wanted as it is.
    fn choose(&mut self) {
        let mut of_products: FxHashSet<Value> = FxHashSet::default();
        for part in &self.parts {
            if part.multiplies() || part.cut().iter().any(|v| of_products.contains(v)) {
                of_products.insert(part.out());
            }
        }
        let mut read: FxHashSet<Value> = FxHashSet::default();
        let mut left = vec![];
        for part in std::mem::take(&mut self.parts).into_iter().rev() {
            let end = of_products.contains(&part.out()) && (part.gathers() || self.graph.results().contains(&part.out()));
            if part.multiplies() || end || read.contains(&part.out()) {
                read.extend(part.cut());
                left.insert(0, part);
            }
        }
        self.parts = left;
    }

    /// What other nodes read of the loop's rows and of what the parts make.
    fn read_outside(&self, live: &[bool]) -> FxHashSet<Value> {
        let inner = self.inner();
        let mut seen = vec![false; live.len()];
        let mut read: FxHashSet<Value> = FxHashSet::default();
        let mut open: Vec<Value> = self.graph.results().to_vec();
        while let Some(v) = open.pop() {
            read.insert(v);
            let Def::Out(id, _) = self.graph.def(v) else { continue };
            if inner.contains(&v) || std::mem::replace(&mut seen[id.0 as usize], true) {
                continue;
            }
            open.extend(&self.graph.nodes()[id].ins);
        }
        read
    }

    /// What the parts make, on the way, too.
    fn inner(&self) -> FxHashSet<Value> {
        let mut inner: FxHashSet<Value> = FxHashSet::default();
        for part in &self.parts {
            match part {
                Part::Rows(r) => inner.extend(r.made.iter().copied()),
                Part::Sum(_, _, out) => _ = inner.insert(*out),
            }
        }
        inner
    }

    /// The foot, and the values that it makes; nothing where all rows of the loop are needed all the same.
    fn foot(&self, live: &[bool]) -> Option<(Foot, FxHashSet<Value>)> {
        if self.parts.is_empty() {
            return None;
        }
        let read = self.read_outside(live);
        let of_loop: Vec<Value> = self.parts.iter().flat_map(Part::cut).filter(|v| self.steps.contains_key(v)).collect();
        let unread = |id: &StateId| {
            let rows = self.node.outs[self.scan.state_output(*id)];
            let slices = self.steps.iter().filter(|(v, row)| row.0 == *id && **v != rows);
            !read.contains(&rows) && slices.map(|s| s.0).all(|v| !read.contains(v))
        };
        let mut own: Vec<StateId> = of_loop.iter().map(|v| self.steps[v].0).filter(unread).collect();
        own.sort_unstable_by_key(|id| id.0);
        own.dedup();
        if own.is_empty() {
            return None;
        }
        let mut inner = self.inner();
        let foot = Builder::new(self).foot(&read, own)?;
        inner.extend(self.hidden.iter().filter(|v| !read.contains(v)));
        Some((foot, inner))
    }
}

/// A constant of a few elements, which is where it is used.
fn small(graph: &Graph, v: Value) -> Option<&Array> {
    graph.const_value(v).filter(|a| a.len() <= SMALL)
}

const SMALL: usize = 16;

/// Makes a graph of a foot's parts.
struct Builder<'a> {
    of: &'a Draft<'a>,
    rows: Sym,
    graph: Graph,
    image: FxHashMap<Value, Value>,
}

impl<'a> Builder<'a> {
    fn new(of: &'a Draft<'a>) -> Builder<'a> {
        Builder { of, rows: Sym::fresh(), graph: Graph::new(), image: FxHashMap::default() }
    }

    /// Nothing where an array is read from both ends, or by its rows and whole.
    fn foot(mut self, read: &FxHashSet<Value>, own: Vec<StateId>) -> Option<Foot> {
        let (of, parts) = (self.of, &self.of.parts);
        let made_by_parts: FxHashSet<Value> = parts.iter().map(Part::out).collect();
        let mut made: Vec<Value> = vec![];
        let mut cut: Vec<(Value, bool)> = vec![];
        let mut whole: Vec<Value> = vec![];
        for part in parts {
            for (k, v) in part.cut().into_iter().enumerate().filter(|c| !made_by_parts.contains(&c.1)) {
                let back = matches!(part, Part::Sum(op, ..) if [op.back_a, op.back_b][k]);
                if of.steps.contains_key(&v) {
                    made.push(v);
                } else {
                    cut.push((v, back));
                }
            }
            whole.extend(part.whole());
        }
        made.sort_unstable();
        made.dedup();
        cut.sort_unstable();
        cut.dedup();
        whole.sort_unstable();
        whole.dedup();
        if cut.windows(2).any(|w| w[0].0 == w[1].0) || cut.iter().any(|c| whole.contains(&c.0)) {
            return None;
        }
        made.iter().chain(cut.iter().map(|c| &c.0)).for_each(|&v| self.param(v, true));
        for &v in &whole {
            match small(of.graph, v) {
                Some(array) => {
                    let image = self.graph.constant(array.clone());
                    self.image.insert(v, image);
                }
                None => self.param(v, false),
            }
        }
        let tells_shape = |v: &Value| parts.iter().any(|p| matches!(p, Part::Sum(_, [_, _, like], _) if like == v));
        if whole.iter().any(|v| small(of.graph, *v).is_some() && tells_shape(v)) {
            return None;
        }
        whole.retain(|v| small(of.graph, *v).is_none());
        let mut sums = vec![];
        let (mut rows, mut operands) = (vec![], vec![]);
        for part in parts {
            match part {
                Part::Rows(part) => {
                    let args: Vec<Value> = part.ins.iter().map(|v| self.image[v]).collect();
                    self.graph.set_span(of.graph.node_of(part.made[0]).map_or(of.node.span, |n| n.span));
                    let image = self.graph.apply(part.op.clone(), &args).ok()?;
                    self.image.insert(part.made[0], image[0]);
                    rows.extend(Some(part.made[0]).filter(|v| read.contains(v)));
                }
                Part::Sum(op, [a, b, like], out) => {
                    operands.extend([self.image[a], self.image[b]]);
                    sums.push((*out, op.clone(), whole.iter().position(|v| v == like)?));
                }
            }
        }
        let results: Vec<Value> = rows.iter().map(|v| self.image[v]).chain(operands).collect();
        self.graph.set_results(results);
        let made = made.iter().map(|v| of.steps[v]).collect();
        Some(Foot { graph: self.graph, made, cut, whole, rows, sums, own })
    }

    fn param(&mut self, v: Value, rows: bool) {
        let mut ty = self.of.graph.ty(v).clone();
        if rows {
            ty.dims[0] = Dim::sym(self.rows);
        }
        let image = self.graph.param(ty, None);
        self.image.insert(v, image);
    }
}
