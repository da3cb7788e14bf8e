//! What each value of a function's graph is to whoever is given the rows of its sequences one by one.

use crate::base::{Id, Span};
use crate::ir::op::*;
use crate::ir::{Def, Graph, Keep, Node, NodeId, Scan, StateId, Value};
use crate::lower::rowwise::Uses;
use crate::ops::index::{Item, Pattern};
use crate::ops::properties::Extents;
use crate::scalar::ElemOp;
use crate::types::DType;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// A value after n steps, the first of which is step 0.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// The same whatever rows come: computed once.
    Fixed,
    /// The same at every step, made of extents of rows.
    Steady,
    /// A condition that holds, or does not, as soon as there is a step.
    Known(bool),
    /// The integer n + c.
    Count(i64),
    /// The least of n + c and of integers that are fixed.
    Bounded(i64, Vec<Value>),
    /// An array of which each step makes a row.
    Rows(Rows),
    /// An array whose last row is the one that the step made.
    Tail,
    /// What can be computed when the step has been made.
    Now,
    /// What needs all rows.
    Whole(Why),
}

/// Where an array of rows stands after n steps.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    /// Step i makes row i + at; those before are there when it begins.
    pub at: i64,
    /// It has n + len rows.
    pub len: i64,
    /// Inputs whose rows it needs, and how many rows later than its own.
    from: SmallVec<[(usize, i64); 2]>,
}

/// Why a value needs all rows, and where.
#[derive(Clone, Debug)]
pub(super) struct Why {
    /// Where the user wrote it.
    pub span: Span,
    /// In words.
    pub text: String,
}

/// Rows before the first step are asked for so often; results that lack some even then are refused.
const ROUNDS: usize = 16;

/// The kinds of a graph's values.
pub(super) struct Kinds<'a> {
    pub graph: &'a Graph,
    pub uses: Uses,
    /// Parameters that are given row by row, and how many of their rows are there before the first step.
    pub streams: FxHashMap<usize, i64>,
    kinds: Vec<Kind>,
    /// Rows that are wanted before the first step, by parameter.
    wanted: FxHashMap<usize, i64>,
    /// How often these were found.
    round: usize,
}

impl<'a> Kinds<'a> {
    /// Of a graph, of whose parameters the first `inputs` may be given row by row.
    pub fn new(graph: &'a Graph, inputs: usize) -> Kinds<'a> {
        let uses = Uses::new(graph);
        let streams = streams(graph, &uses, inputs).into_iter().map(|p| (p, 0)).collect();
        let mut kinds = Kinds { graph, uses, streams, kinds: vec![], wanted: FxHashMap::default(), round: 0 };
        while kinds.round < ROUNDS {
            kinds.round += 1;
            kinds.find();
            if kinds.wanted.is_empty() {
                break;
            }
            for (p, more) in std::mem::take(&mut kinds.wanted) {
                kinds.streams.entry(p).and_modify(|n| *n += more);
            }
        }
        kinds
    }
    /// The kind of a value.
    pub fn of(&self, v: Value) -> &Kind {
        &self.kinds[v.idx()]
    }

    fn find(&mut self) {
        let graph = self.graph;
        self.kinds = vec![Kind::Fixed; graph.n_values()];
        for (&p, &at) in &self.streams {
            let from = SmallVec::from_slice(&[(p, 0)]);
            self.kinds[graph.params()[p].idx()] = Kind::Rows(Rows { at, len: at, from });
        }
        let live = graph.needed(graph.results());
        for (_, node) in graph.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
            let kinds: Vec<Kind> = match &node.op {
                Op::Scan(scan) => self.looped(node, scan),
                _ => vec![self.node(node); node.outs.len()],
            };
            for (&v, kind) in node.outs.iter().zip(kinds) {
                self.kinds[v.idx()] = kind;
            }
            if let (Op::Index(_), Kind::Now) = (&node.op, self.of(node.outs[0])) {
                self.want_first(node.ins[0]);
            }
        }
        for &v in graph.results() {
            if let Kind::Rows(rows) = self.of(v).clone() {
                self.want(&rows, 0);
                self.want_first(v);
            }
        }
    }

    /// Asks for as many rows before the first step that there is a row after it.
    fn want_first(&mut self, v: Value) {
        let Kind::Rows(rows) = self.of(v).clone() else { return };
        for &(p, _) in rows.from.iter().filter(|_| rows.len < 0) {
            let wanted = self.wanted.entry(p).or_default();
            *wanted = (-rows.len).max(*wanted);
        }
    }
    /// Asks for as many rows before the first step that the row of step i is there when it is made; false where there is none to ask for.
    fn want(&mut self, rows: &Rows, at: i64) -> bool {
        let mut asked = false;
        for &(p, later) in rows.from.iter().filter(|_| rows.at < at) {
            let more = later + at - self.streams[&p];
            if more > 0 {
                let wanted = self.wanted.entry(p).or_default();
                *wanted = more.max(*wanted);
                asked = true;
            }
        }
        asked
    }

    /// True where a value is the same at every step.
    pub fn steady(&self, v: Value) -> bool {
        matches!(self.of(v), Kind::Fixed | Kind::Steady | Kind::Known(_))
    }
    fn constant(&self, v: Value) -> Option<i64> {
        self.graph.const_value(v)?.item_i64()
    }

    fn node(&self, node: &Node) -> Kind {
        let kinds = || node.ins.iter().map(|&v| self.of(v));
        if kinds().all(|k| matches!(k, Kind::Fixed)) {
            return Kind::Fixed;
        }
        if let Some(kind) = self.counted(node).or_else(|| self.known(node)).or_else(|| self.cut(node)).or_else(|| self.rows(node)) {
            return kind;
        }
        if let Some(whole) = kinds().find(|k| matches!(k, Kind::Whole(_))) {
            return whole.clone();
        }
        let whole = |text: String| Kind::Whole(Why { span: node.span, text });
        if kinds().any(|k| matches!(k, Kind::Rows(_) | Kind::Tail)) {
            return whole(format!("`{}` takes all rows at once", node.op.name()));
        }
        let from = match node.op.extents() {
            Extents::Shapes => node.ins.len(),
            Extents::From(first) => first,
            Extents::Choice => 1,
            Extents::First => 0,
            Extents::Unknown => 0,
        };
        let decides =
            |k: usize| k >= from || node.op.extents() == Extents::Choice && k == 0 || node.op.extents() == Extents::First && k == 0;
        let moving = |v: Value| !self.steady(v);
        if node.ins.iter().enumerate().any(|(k, &v)| decides(k) && moving(v)) && node.op.extents() != Extents::Choice {
            return whole(format!("the extents of `{}` change from step to step", node.op.name()));
        }
        if node.ins.iter().any(|&v| moving(v)) { Kind::Now } else { Kind::Steady }
    }

    /// Integers that count rows, and conditions on these.
    fn counted(&self, node: &Node) -> Option<Kind> {
        if let (Op::DimOf(DimOf { axis }), kind) = (&node.op, self.of(node.ins[0])) {
            return match kind {
                Kind::Rows(rows) if *axis == 0 => Some(Kind::Count(rows.len)),
                Kind::Tail if *axis == 0 => None,
                Kind::Whole(_) => None,
                _ => Some(Kind::Steady),
            };
        }
        let Op::Elem(op) = node.op else { return None };
        let [a, b] = node.ins[..] else { return None };
        if self.graph.ty(node.outs[0]).rank() > 0 {
            return None;
        }
        let fixed = |v: Value| matches!(self.of(v), Kind::Fixed).then(|| vec![v]);
        let bound = |v: Value| match self.of(v) {
            Kind::Count(c) => Some((*c, vec![])),
            Kind::Bounded(c, by) => Some((*c, by.clone())),
            _ => Some((i64::MAX, fixed(v)?)),
        };
        match (op, self.of(a), self.of(b)) {
            (ElemOp::Minimum, ..) => {
                let ((c, mut by), (d, more)) = (bound(a)?, bound(b)?);
                for v in more {
                    if !by.contains(&v) {
                        by.push(v);
                    }
                }
                (c.min(d) < i64::MAX).then(|| if by.is_empty() { Kind::Count(c.min(d)) } else { Kind::Bounded(c.min(d), by) })
            }
            (ElemOp::Add, Kind::Count(c), _) => Some(Kind::Count(c.checked_add(self.constant(b)?)?)),
            (ElemOp::Sub, Kind::Count(c), _) => Some(Kind::Count(c.checked_sub(self.constant(b)?)?)),
            (_, Kind::Count(c), _) => decided(op, c + 1, self.constant(b)?).map(Kind::Known),
            _ => None,
        }
    }

    /// What a condition that is known chooses.
    fn known(&self, node: &Node) -> Option<Kind> {
        self.chosen(node).map(|v| self.of(v).clone())
    }
    /// The input that a node hands on, where its condition is known.
    pub fn chosen(&self, node: &Node) -> Option<Value> {
        let chooses = matches!(node.op, Op::Elem(ElemOp::Where)) && self.graph.ty(node.outs[0]).rank() == 0;
        let Kind::Known(first) = self.of(*node.ins.first().filter(|_| chooses)?) else { return None };
        Some(node.ins[if *first { 1 } else { 2 }])
    }

    /// Rows, or the last row, taken out of an array; arrays that end with the last row.
    fn cut(&self, node: &Node) -> Option<Kind> {
        match (&node.op, self.of(*node.ins.last()?)) {
            (Op::Join(Join { axis: 0 }), Kind::Tail) if node.ins.iter().all(|&v| matches!(self.of(v), Kind::Tail | Kind::Fixed)) => {
                return Some(Kind::Tail);
            }
            _ => {}
        }
        let Op::Index(index) = &node.op else { return None };
        let pattern = Pattern::parse(&index.pattern).ok()?;
        let first = *pattern.items.first()?;
        if !node.ins[1 + first.inputs()..].iter().all(|&v| self.steady(v)) {
            return None;
        }
        match (first, self.of(node.ins[0])) {
            // Rows of a loop that its first step does not make, no rows of inputs bring forward.
            (Item::At, Kind::Rows(rows)) if rows.len < 0 && rows.from.is_empty() => None,
            (Item::At, Kind::Rows(rows)) if self.constant(node.ins[1]) == Some(-1) && rows.at >= rows.len => Some(Kind::Now),
            (Item::At, Kind::Tail) if self.constant(node.ins[1]) == Some(-1) => Some(Kind::Now),
            (Item::Slice { start, end, step: 1 }, Kind::Rows(rows)) => {
                let from = if start { self.constant(node.ins[1]).filter(|&k| k >= 0)? } else { 0 };
                let len = match end.then(|| node.ins[1 + usize::from(start)]).map(|v| (self.of(v), self.constant(v))) {
                    None => rows.len,
                    Some((_, Some(e))) if e < 0 => rows.len + e,
                    Some((_, Some(i64::MAX))) => rows.len,
                    Some((Kind::Count(c), _)) => rows.len.min(*c),
                    _ => return None,
                };
                let later = rows.from.iter().map(|&(p, later)| (p, later + from)).collect();
                Some(Kind::Rows(Rows { at: rows.at - from, len: len - from, from: later }))
            }
            _ => None,
        }
    }

    /// Up to which number an array has them all from 0 on; `None` of other arrays.
    pub fn counter(&self, v: Value) -> Option<Value> {
        let node = self.graph.node_of(v).filter(|node| matches!(node.op, Op::Arange(_)) && self.graph.ty(v).dtype == DType::I64)?;
        let [start, step] = [0, 2].map(|k| self.constant(node.ins[k]));
        (start == Some(0) && step == Some(1)).then_some(node.ins[1])
    }
    /// Arrays whose rows are made of rows.
    fn rows(&self, node: &Node) -> Option<Kind> {
        let given = |k: usize| if let Kind::Rows(rows) = self.of(node.ins[k]) { Some(rows) } else { None };
        let counts = |k: usize| if let Kind::Count(c) = self.of(*node.ins.get(k)?) { Some(*c) } else { None };
        let steady = |from: usize| node.ins[from..].iter().all(|&v| self.steady(v));
        let own = |n: i64| Kind::Rows(Rows { at: n, len: n, from: SmallVec::new() });
        match &node.op {
            Op::BroadcastTo(_) if self.steady(node.ins[0]) && steady(2) && self.repeats(node) => return counts(1).map(own),
            Op::Arange(_) => return self.counter(node.outs[0]).and_then(|_| counts(1)).map(own),
            Op::BroadcastLike(_) if self.steady(node.ins[0]) && self.repeats(node) => return given(1).cloned().map(Kind::Rows),
            Op::Reshape(_) if steady(2) => {
                if let Some(rows) = given(0).filter(|rows| counts(1) == Some(rows.len)) {
                    return Some(Kind::Rows(rows.clone()));
                }
            }
            Op::Squeeze(op) if !op.axes.contains(&0) => return given(0).cloned().map(Kind::Rows),
            _ => {}
        }
        let rowwise = self.uses.rowwise(self.graph, node)?;
        let mut found: Option<Rows> = None;
        for (&v, &cut) in rowwise.ins.iter().zip(&rowwise.cut) {
            match self.of(v) {
                Kind::Rows(rows) if cut => {
                    let so_far = found.get_or_insert_with(|| rows.clone());
                    if so_far.len != rows.len {
                        return None;
                    }
                    so_far.at = so_far.at.min(rows.at);
                    for from in &rows.from {
                        if !so_far.from.contains(from) {
                            so_far.from.push(*from);
                        }
                    }
                }
                _ if !cut && self.steady(v) => {}
                _ => return None,
            }
        }
        found.map(Kind::Rows)
    }
    /// True for an array that is repeated along the first axis of the result.
    fn repeats(&self, node: &Node) -> bool {
        let (x, out) = (self.graph.ty(node.ins[0]), self.graph.ty(node.outs[0]));
        x.rank() < out.rank() || x.dims[0].is_one()
    }
}

/// What a comparison of integers that are at least `least` with k says, where all say the same.
fn decided(op: ElemOp, least: i64, k: i64) -> Option<bool> {
    match op {
        ElemOp::Gt | ElemOp::Ne if least > k => Some(true),
        ElemOp::Ge if least >= k => Some(true),
        ElemOp::Le | ElemOp::Eq if least > k => Some(false),
        ElemOp::Lt if least >= k => Some(false),
        _ => None,
    }
}

/// Loops.
impl Kinds<'_> {
    /// The kinds of a loop's outputs.
    fn looped(&mut self, node: &Node, scan: &Scan) -> Vec<Kind> {
        if node.ins.iter().all(|&v| matches!(self.of(v), Kind::Fixed)) && !self.streams.is_empty() {
            return vec![Kind::Fixed; node.outs.len()];
        }
        if let Err(text) = self.steps(node, scan) {
            let earlier = node.ins.iter().find_map(|&v| if let Kind::Whole(why) = self.of(v) { Some(why.clone()) } else { None });
            let why = earlier.unwrap_or(Why { span: node.span, text });
            return vec![Kind::Whole(why); node.outs.len()];
        }
        let state = |id: StateId| {
            let state = &scan.states[id];
            let at = state.span() as i64;
            match state.keep {
                Keep::All => Kind::Rows(Rows { at, len: at, from: SmallVec::new() }),
                Keep::Last(_) => Kind::Tail,
            }
        };
        scan.states.ids().map(state).chain([Kind::Count(0)]).collect()
    }

    /// Asks for the rows that a loop needs; why it does not make a step per row.
    fn steps(&mut self, node: &Node, scan: &Scan) -> Result<(), String> {
        for (id, state) in scan.states.enumerate() {
            let name = state.name.as_deref().unwrap_or("?");
            if state.writes[..] != [state.span()] || !state.stable() || !state.init && !state.reads.is_empty() {
                return Err(format!("the state `{name}` is changed after it was made, as in the gradient of a loop"));
            }
            if scan.init_input(id).is_some_and(|at| !matches!(self.of(node.ins[at]), Kind::Fixed)) {
                return Err(format!("the state `{name}` begins with what depends on rows"));
            }
        }
        if let Some(id) = scan.captured.ids().find(|&id| !self.steady(node.ins[scan.captured_input(id)])) {
            let name = scan.captured[id].name.as_deref().unwrap_or("?");
            return Err(format!("every step of the loop reads `{name}`, which depends on all rows"));
        }
        for id in scan.seqs.ids() {
            let (v, name) = (node.ins[scan.seq_input(id)], scan.seqs[id].name.as_deref().unwrap_or("?"));
            match self.of(v).clone() {
                Kind::Fixed => {}
                Kind::Rows(_) if scan.seqs[id].reverse => return Err(format!("the loop reads `{name}` from its end")),
                Kind::Rows(rows) => {
                    let asked = self.want(&rows, 0);
                    if rows.at < 0 && (!asked || self.round == ROUNDS) {
                        return Err(format!("the loop reads rows of `{name}` that later steps make"));
                    }
                }
                _ => return Err(format!("the loop reads `{name}`, which depends on all rows")),
            }
        }
        // Where a number is given, the rows of the sequences say how many steps there are so far.
        let rows = scan
            .seqs
            .ids()
            .filter_map(|id| if let Kind::Rows(rows) = self.of(node.ins[scan.seq_input(id)]) { Some(rows.len) } else { None });
        match self.of(node.ins[Scan::N_STEPS]) {
            Kind::Fixed if self.wanted.is_empty() && rows.min().is_some_and(|least| least > 0) => {
                Err("the loop makes fewer steps than there are rows".into())
            }
            Kind::Fixed | Kind::Count(0) | Kind::Bounded(0, _) => Ok(()),
            Kind::Count(_) | Kind::Bounded(..) if !self.wanted.is_empty() => Ok(()),
            Kind::Count(c) | Kind::Bounded(c, _) if *c > 0 => Err(format!("the loop makes {c} more steps than another one")),
            _ => Err("the loop makes another number of steps than there are rows".into()),
        }
    }
}

/// Parameters that loops read by rows, or that are read beside the rows of loops; where there are no loops, those that results are made of
/// row by row.
fn streams(graph: &Graph, uses: &Uses, inputs: usize) -> FxHashSet<usize> {
    let live = graph.needed(graph.results());
    let (mut found, mut loops) = (FxHashSet::default(), false);
    for (_, node) in graph.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
        if let Op::Scan(scan) = &node.op {
            loops = true;
            scan.seqs.ids().for_each(|id| found.extend(reached(graph, uses, node.ins[scan.seq_input(id)], inputs).0));
        }
    }
    for &v in graph.results() {
        let (params, of_loops) = reached(graph, uses, v, inputs);
        found.extend(params.into_iter().filter(|_| of_loops || !loops));
    }
    found
}

/// The parameters of whose rows the rows of a value are made, and whether those of loops are among these, too.
fn reached(graph: &Graph, uses: &Uses, v: Value, inputs: usize) -> (Vec<usize>, bool) {
    let (mut open, mut seen, mut params, mut loops) = (vec![v], FxHashSet::default(), vec![], false);
    while let Some(v) = open.pop() {
        match graph.def(v) {
            _ if !seen.insert(v) => {}
            Def::Param(p) if p < inputs && graph.ty(v).rank() > 0 => params.push(p),
            Def::Param(_) => {}
            Def::Out(id, _) if matches!(graph.nodes()[id].op, Op::Scan(_)) => loops = true,
            Def::Out(id, _) => open.extend(cut_inputs(graph, uses, id)),
        }
    }
    (params, loops)
}

/// The inputs of a node that are read by rows.
fn cut_inputs(graph: &Graph, uses: &Uses, id: NodeId) -> Vec<Value> {
    let node = &graph.nodes()[id];
    if let Some(rowwise) = uses.rowwise(graph, node) {
        return rowwise.ins.iter().zip(&rowwise.cut).filter(|c| *c.1).map(|c| *c.0).collect();
    }
    let sliced = |op: &Index| Pattern::parse(&op.pattern).is_ok_and(|p| matches!(p.items.first(), Some(Item::Slice { .. })));
    match &node.op {
        Op::Index(op) if sliced(op) => vec![node.ins[0]],
        Op::Reshape(_) if counts(graph, node.ins[1], node.ins[0]) => vec![node.ins[0]],
        Op::Squeeze(op) if !op.axes.contains(&0) => vec![node.ins[0]],
        Op::BroadcastLike(_) => vec![node.ins[1]],
        _ => vec![],
    }
}

/// True where an integer is the number of rows of an array.
fn counts(graph: &Graph, n: Value, of: Value) -> bool {
    graph.node_of(n).is_some_and(|node| matches!(node.op, Op::DimOf(DimOf { axis: 0 })) && node.ins[0] == of)
}
