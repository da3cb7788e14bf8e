//! Lets a loop return what the loop of its gradient would compute again.
//!
//! ```text
//! before  scan n { seq x; state h; const W;   a = x + h @ W;  next h = sigmoid(a) * h }
//!         scan n { seq x reverse, h reverse; state dh; const W;   a = x + h @ W;  s = sigmoid(a);  next dh = f(dh, s, h) }
//! after   scan n { seq x; state h; const W;   a = x + h @ W;  s = sigmoid(a);  next h = s * h;  next kept = s }
//!         scan n { seq s = kept reverse, h reverse; state dh;   next dh = f(dh, s, h) }
//! ```
//!
//! The gradient of a loop evaluates each step again, from the rows that the loop returned anyway. Where the step is one kernel, that
//! is cheaper than any memory. Else the cheapest set of values is kept (a minimum cut between these rows and what the gradient reads):
//! keeping a value costs its bytes, computing it again what its ops cost. So products and functions like `tanh` are kept, sums and
//! slices are not, and nothing is that does not depend on the step.
//!
//! - What is read of a row of which each step writes a part (`buf[i]`) is kept: the rows need not be, and the step writes in place.
//! - Both loops run the same steps: where a gradient covers the last steps alone, all is computed again.
//! - Rows of a loop inside the step are never kept: who wrote a loop of loops may have done so to save memory.
//! - A product of which only the shape is read becomes zeros of that shape: it cannot fail, since the earlier loop has computed it. Where
//!   something is made of it that zeros could make fail (a factor of a matrix), it stays.

use crate::base::{Id, Result};
use crate::ir::op::BroadcastTo;
use crate::ir::{Def, Graph, Keep, Node, NodeId, Op, Scan, Seq, Tag, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::buffers::parts_of_rows;
use crate::rewrite::loops::cost::{computing, keeping, several_kernels};
use crate::rewrite::loops::cut::{Cut, NEVER};
use crate::rewrite::loops::facts::eager;
use crate::rewrite::loops::parts::title;
use crate::rewrite::loops::rows::Prover;
use crate::rewrite::loops::twins::{Direction, Twin, twin};
use crate::rewrite::loops::{Parts, SeqPart};
use crate::rewrite::rebuild::{Rebuild, copy_with};
use crate::scan::steady::steady;
use rustc_hash::{FxHashMap, FxHashSet};

const NAME: &str = "scan_residuals";

/// Steps of more nodes are left as they are.
const MOST: usize = 4000;

/// What it costs to read a part of a row which nobody would keep otherwise: more than to keep the part.
const DEAR: u64 = NEVER >> 10;

/// The graph with loops that return what later ones need.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    let plan = Plan::new(cx, graph);
    if plan.reads.is_empty() && plan.shapes.is_empty() {
        return Ok(None);
    }
    let mut rows: FxHashMap<(NodeId, Value), Value> = FxHashMap::default();
    copy_with(graph, |rebuild, id, node| {
        let Some(scan) = node.op.as_scan() else { return Ok(false) };
        let (given, taken) = (plan.kept.get(&id), plan.reads.get(&id));
        // What is kept for a later loop may need their elements: the next round looks again.
        let shapes = plan.shapes.get(&id).filter(|_| given.is_none());
        if given.is_none() && taken.is_none() && shapes.is_none() {
            return Ok(false);
        }
        let mut parts = Parts::open(scan, &node.ins);
        parts.fill(|v| rebuild.image(v))?;
        for read in taken.into_iter().flatten() {
            let all = match rows.get(&(read.from, read.of)) {
                Some(&all) => all,
                None => written(rebuild, graph, read)?,
            };
            let slot = Seq { reverse: read.direction == Direction::Back, name: None };
            parts.seqs.push(SeqPart { slot, rows: all, param: read.value });
        }
        shapes.into_iter().flatten().for_each(|&v| without_elements(&mut parts, v));
        let first = parts.states.len();
        given.into_iter().flatten().for_each(|&v| parts.keep(v, Tag::Cotangent));
        let outs = parts.put(rebuild, node)?;
        for (k, &v) in given.into_iter().flatten().enumerate() {
            rows.insert((id, v), outs[first + k]);
        }
        Ok(true)
    })
}

/// A value that a later loop reads instead of computing it.
struct Read {
    /// The earlier loop.
    from: NodeId,
    /// Its value.
    of: Value,
    /// The value of the later step.
    value: Value,
    direction: Direction,
}

/// What changes.
#[derive(Default)]
struct Plan {
    /// Values that loops return for others.
    kept: FxHashMap<NodeId, Vec<Value>>,
    /// Values that loops read.
    reads: FxHashMap<NodeId, Vec<Read>>,
    /// Products of which the shape alone is read.
    shapes: FxHashMap<NodeId, Vec<Value>>,
}

impl Plan {
    fn new(cx: &mut Cx, graph: &Graph) -> Plan {
        let mut plan = Plan::default();
        let mut prover = Prover::new(graph);
        let live = graph.needed(graph.results());
        let loops = graph.nodes().enumerate().filter(|(id, node)| live[id.idx()] && node.op.as_scan().is_some());
        let sources: FxHashMap<NodeId, Vec<Value>> = loops.map(|(id, node)| (id, sources(graph, node))).collect();
        for (late, node) in graph.nodes().enumerate().filter(|(id, _)| sources.contains_key(id)) {
            if node.op.as_scan().is_some_and(|s| s.body.nodes().len() <= MOST) {
                makers(graph, &sources, late).into_iter().for_each(|early| plan.pair(cx, graph, &mut prover, early, late));
            }
        }
        plan
    }

    fn pair<'g>(&mut self, cx: &mut Cx, graph: &'g Graph, prover: &mut Prover<'g>, early: NodeId, late: NodeId) {
        let Some(twin) = twin(graph, prover, early, late) else { return };
        if twin.direction == Direction::Same && !needs_rows(graph, late, early) {
            return;
        }
        let (Op::Scan(first), Op::Scan(scan)) = (&graph.nodes()[early].op, &graph.nodes()[late].op) else { return };
        let parts = Parts::open(scan, &graph.nodes()[late].ins);
        let again = Again::new(first, &parts, &twin);
        if !again.wanted.is_empty() && again.parts.is_empty() && !several_kernels(&first.body) {
            cx.left(NAME, title(scan), "computing the step again is cheaper than memory: it is one kernel");
            return;
        }
        let chosen = again.chosen();
        let shapes = again.shapes(&chosen);
        if chosen.is_empty() && shapes.is_empty() {
            return;
        }
        let names: Vec<&str> = chosen.iter().filter_map(|v| again.body.node_of(*v)).map(|n| n.op.name()).collect();
        let what = if names.is_empty() { "nothing".into() } else { names.join(", ") };
        cx.done(NAME, title(scan), format!("reads what {} computed: {what}; {} shapes", title(first), shapes.len()));
        for value in chosen {
            let of = twin.image[&value];
            let kept = self.kept.entry(early).or_default();
            if kept_already(first, of).is_none() && !kept.contains(&of) {
                kept.push(of);
            }
            let reads = self.reads.entry(late).or_default();
            if !reads.iter().any(|r| r.value == value) {
                reads.push(Read { from: early, of, value, direction: twin.direction });
            }
        }
        if !shapes.is_empty() {
            self.shapes.entry(late).or_default().extend(shapes);
        }
    }
}

/// Where the rows that a loop reads come from, behind slices.
fn sources(graph: &Graph, node: &Node) -> Vec<Value> {
    let Some(scan) = node.op.as_scan() else { return vec![] };
    let source = |mut v: Value| {
        while let Some(node) = graph.node_of(v)
            && matches!(node.op, Op::Index(_))
        {
            v = node.ins[0];
        }
        v
    };
    scan.seqs.ids().map(|id| source(node.ins[scan.seq_input(id)])).collect()
}

/// The loops that made rows that a loop reads, or read some of them, too, first ones first.
fn makers(graph: &Graph, sources: &FxHashMap<NodeId, Vec<Value>>, late: NodeId) -> Vec<NodeId> {
    let read = &sources[&late];
    let made = |id: NodeId| graph.nodes()[id].outs.iter().any(|v| read.contains(v));
    let mut found: Vec<NodeId> =
        sources.iter().filter(|&(&id, own)| id < late && (made(id) || own.iter().any(|v| read.contains(v)))).map(|s| *s.0).collect();
    found.sort_unstable();
    found
}

/// True where a loop needs rows of an earlier one, not only their number: else both become one (`scan_merge`).
fn needs_rows(graph: &Graph, late: NodeId, early: NodeId) -> bool {
    let (mut seen, mut stack) = (FxHashSet::default(), graph.nodes()[late].ins.to_vec());
    while let Some(v) = stack.pop() {
        let Def::Out(at, k) = graph.def(v) else { continue };
        let steps = graph.nodes()[at].op.as_scan().map(|s| s.steps_output());
        if at == early && steps != Some(k) {
            return true;
        }
        if at > early && seen.insert(at) {
            let node = &graph.nodes()[at];
            let shape_only = node.op.properties().shape_only;
            stack.extend(node.ins.iter().enumerate().filter(|(k, _)| !shape_only.contains(k)).map(|(_, v)| *v));
        }
    }
    false
}

/// What a later step computes again.
struct Again<'a> {
    early: &'a Scan,
    body: &'a Graph,
    twin: &'a Twin,
    live: Vec<bool>,
    /// Values of the earlier step that every evaluation computes.
    sure: Vec<bool>,
    /// Values of the later step that have the same shape at every step.
    steady: Vec<bool>,
    /// Values of the later step that are the same at every step.
    fixed: Vec<bool>,
    /// Values that are read of rows of which each step writes a part.
    parts: FxHashSet<Value>,
    /// Values that are computed again and read by something that is not.
    wanted: Vec<Value>,
}

impl<'a> Again<'a> {
    fn new(early: &'a Scan, parts: &'a Parts, twin: &'a Twin) -> Again<'a> {
        let body = &parts.body;
        let live = body.needed(body.results());
        let mut fixed = vec![false; body.n_values()];
        parts.captured.iter().for_each(|c| fixed[c.param.idx()] = true);
        for node in body.nodes().iter() {
            if node.ins.iter().all(|v| fixed[v.idx()]) {
                node.outs.iter().for_each(|v| fixed[v.idx()] = true);
            }
        }
        let of_rows = parts_of_rows(early, body, &live, &twin.image);
        let mut again = Again {
            early,
            body,
            twin,
            live,
            parts: of_rows,
            sure: eager(&early.body),
            steady: steady(body, parts.varying()),
            fixed,
            wanted: vec![],
        };
        again.wanted = again.readings();
        again
    }
    /// True for a value that a node computes, and that the earlier step has.
    fn repeated(&self, v: &Value) -> bool {
        self.body.node_of(*v).is_some() && self.twin.image.contains_key(v) && !self.fixed[v.idx()]
    }
    fn readings(&self) -> Vec<Value> {
        let mut wanted: Vec<Value> = vec![];
        for (id, node) in self.body.nodes().enumerate() {
            let new = node.outs.iter().any(|v| !self.repeated(v));
            if self.live[id.idx()] && new {
                let read = node.ins.iter().enumerate().filter(|(k, _)| !node.op.properties().shape_only.contains(k)).map(|(_, v)| v);
                wanted.extend(read.filter(|v| self.repeated(v)));
            }
        }
        wanted.extend(self.body.results().iter().filter(|v| self.repeated(v)));
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }
    /// The values to read, at the least cost.
    fn chosen(&self) -> Vec<Value> {
        let mut cut = Cut::new();
        let mut places: FxHashMap<Value, usize> = FxHashMap::default();
        let mut values = vec![];
        for (id, node) in self.body.nodes().enumerate().filter(|(_, n)| n.outs.iter().all(|v| self.repeated(v))) {
            if !self.live[id.idx()] {
                continue;
            }
            let ins: Vec<usize> = self.elements(node).filter_map(|v| places.get(&v).copied()).collect();
            for &v in &node.outs {
                let make = if self.parts.contains(&v) { DEAR } else { computing(self.body, node) };
                let at = cut.value(self.price(node, v), make, &ins);
                places.insert(v, at);
                values.push(v);
            }
        }
        self.wanted.iter().filter_map(|v| places.get(v)).for_each(|&at| cut.want(at));
        let kept = cut.kept();
        values.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(v, _)| v).collect()
    }
    /// Inputs of which a node needs more than a shape that is the same at every step, and follows from the shapes of rows.
    fn elements(&self, node: &'a Node) -> impl Iterator<Item = Value> {
        let shape_only = node.op.properties().shape_only;
        node.ins.iter().enumerate().filter(move |(k, v)| !shape_only.contains(k) || !self.steady[v.idx()]).map(|(_, v)| *v)
    }
    fn price(&self, node: &Node, v: Value) -> u64 {
        let of = self.twin.image[&v];
        match node.op {
            _ if kept_already(self.early, of).is_some() => 1,
            Op::Scan(_) | Op::Const(_) => NEVER,
            _ if !self.sure[of.idx()] || !self.steady[v.idx()] => NEVER,
            _ => keeping(self.body.ty(v)),
        }
    }
    /// Products that nothing but their shape is wanted of, where these values are read.
    fn shapes(&self, chosen: &[Value]) -> Vec<Value> {
        let read: FxHashSet<Value> = chosen.iter().copied().collect();
        let reach = |shapes: bool| {
            let mut live = vec![false; self.body.n_values()];
            let mut stack = self.body.results().to_vec();
            while let Some(v) = stack.pop() {
                if std::mem::replace(&mut live[v.idx()], true) || read.contains(&v) {
                    continue;
                }
                let Some(node) = self.body.node_of(v) else { continue };
                stack.extend(
                    node.ins.iter().enumerate().filter(|(k, _)| shapes || !node.op.properties().shape_only.contains(k)).map(|(_, v)| *v),
                );
            }
            live
        };
        let (all, for_elements) = (reach(true), reach(false));
        let tested = self.tested(&all, &read);
        let product = |v: &Value| self.body.node_of(*v).is_some_and(|n| matches!(n.op, Op::MatMul(_)) && axes(self.body, n).is_some());
        let sure = |v: &Value| self.sure[self.twin.image[v].idx()];
        self.body
            .value_ids()
            .filter(|v| all[v.idx()] && !for_elements[v.idx()] && self.repeated(v) && product(v) && sure(v) && !read.contains(v))
            .filter(|v| !tested[v.idx()])
            .collect()
    }
    /// Values on whose elements it depends whether something fails that is computed, where `read` is not.
    fn tested(&self, computed: &[bool], read: &FxHashSet<Value>) -> Vec<bool> {
        let mut tested = vec![false; self.body.n_values()];
        for node in self.body.nodes().iter().rev().filter(|n| n.outs.iter().any(|v| computed[v.idx()] && !read.contains(v))) {
            if node.op.def().fallible(self.body, &node.ins) || node.outs.iter().any(|v| tested[v.idx()]) {
                let shape_only = node.op.properties().shape_only;
                node.ins.iter().enumerate().filter(|(k, _)| !shape_only.contains(k)).for_each(|(_, v)| tested[v.idx()] = true);
            }
        }
        tested
    }
}

/// The state whose rows a value is, and its offset, where the loop returns all rows.
fn kept_already(early: &Scan, of: Value) -> Option<(usize, usize)> {
    early.states.enumerate().find_map(|(id, state)| match (state.keep, &state.writes[..]) {
        (Keep::All, &[w]) if early.write_values(id)[0] == of => Some((early.state_output(id), w)),
        _ => None,
    })
}

/// Rows that a loop returns anyway, one per step.
fn written(rebuild: &mut Rebuild, graph: &Graph, read: &Read) -> Result<Value> {
    let node = &graph.nodes()[read.from];
    let found = node.op.as_scan().and_then(|s| Some((s, kept_already(s, read.of)?)));
    let Some((scan, (at, offset))) = found else { return Err(crate::base::Diagnostic::internal("rows that no loop returns")) };
    let (buffer, steps) = (rebuild.image(node.outs[at])?, rebuild.image(node.outs[scan.steps_output()])?);
    let g = &mut rebuild.new;
    let lo = g.int(offset as i64);
    let hi = g.add(steps, lo);
    Ok(g.slice_rows(buffer, lo, hi))
}

/// Which input and axis each axis of a product comes from.
fn axes(g: &Graph, node: &Node) -> Option<Vec<(Value, usize)>> {
    let (a, b) = (node.ins[0], node.ins[1]);
    match (g.ty(a).rank(), g.ty(b).rank()) {
        (2, 2) => Some(vec![(a, 0), (b, 1)]),
        (1, 2) => Some(vec![(b, 1)]),
        (2, 1) => Some(vec![(a, 0)]),
        _ => None,
    }
}

/// Zeros in the place of a product of which the shape alone is read.
fn without_elements(parts: &mut Parts, v: Value) {
    let body = &mut parts.body;
    let Some(axes) = body.node_of(v).and_then(|n| axes(body, n)) else { return };
    let mut ins = vec![body.number(body.ty(v).dtype, 0.0)];
    for (x, axis) in axes {
        let extent = body.dim(x, axis);
        ins.push(extent);
    }
    let zeros = body.emit(BroadcastTo {}, &ins);
    parts.alias(v, zeros);
}
