//! Loops in the steps of a loop, as parts of its list: their states and rows lie in the memory of the step.

use super::ends::reads_on;
use super::extents::{BY_VALUES, DEEP, known, known_shape};
use super::kinds::{Kind, Kinds};
use super::rooms::roomy;
use super::scan::lower;
use super::{Lowered, refuse};
use crate::base::{Diagnostic, Id, Result};
use crate::ir::op::{Index, Join, NativeOp, NativeRef, Outs};
use crate::ir::{EvalCx, Graph, Keep, Node, NodeId, Op, Scan, StateId, Value};
use crate::kernel::LEVELS;
use crate::plan::{LoopKernel, StepList, Window};
use crate::scan::retype::param_types;
use crate::types::{Array, DType, Dim, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Rows of a state of a loop in a step take so many bytes at most.
const ROWS: usize = 1 << 26;

/// What lowers a loop that stands in so many others to a list, and the sizes of its temporaries: steps of loops in lists are lists again.
pub(super) type Lists = fn(&Scan, (&[Type], &[Option<Array>], &[Option<i64>]), usize) -> Lowered<(StepList, Vec<usize>)>;

/// A loop in a step, lowered for the extents that it has there. Stands in the graph of the step in the loop's place, what is to be computed
/// before the loop's first step following its inputs.
pub(super) struct Inner {
    /// The loop.
    pub scan: Arc<Scan>,
    types: Outs<Type>,
    /// Its number of steps, where that is known.
    pub known: Option<usize>,
    /// That number is at least 1 and at most this, which is certain (true) or to be looked at.
    pub most: Option<(usize, bool)>,
    /// It may run no step: what is read of it is then what it began with.
    pub rests: bool,
    /// The number of steps that ran is wanted.
    pub counted: bool,
    /// What it is made of.
    pub form: Form,
}

/// What a loop in a step is made of.
pub(super) enum Form {
    /// One kernel.
    Kernel(Box<LoopKernel>),
    /// A list, and the sizes of its temporaries.
    List(Box<StepList>, Vec<usize>),
}

impl NativeOp for Inner {
    fn name(&self) -> &str {
        "scan"
    }
    fn types(&self) -> Outs<Type> {
        self.types.clone()
    }
    fn eval(&self, _: &mut EvalCx, _: &mut [Array]) -> Result<Outs<Array>> {
        Err(Diagnostic::internal("a loop that is part of a list"))
    }
    fn is_loop(&self) -> bool {
        true
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// The inputs of a loop in a step with whose rows it may begin without a copy of them.
pub(super) fn taken_over(op: &Op) -> impl Iterator<Item = usize> {
    let inner = if let Op::Native(native) = op { native.0.as_any().downcast_ref::<Inner>() } else { None };
    inner.into_iter().flat_map(|inner| {
        let states = inner.scan.states.ids().zip(inner.windows()).filter(|(id, window)| inner.one_row(*id, window));
        states.filter_map(|(id, _)| inner.scan.init_input(id))
    })
}

/// A state of which one row is all that lies in memory: each step writes over the row that it read, after its parts.
pub(super) fn single(scan: &Scan, id: StateId, level: usize) -> bool {
    let state = &scan.states[id];
    level > 0 && matches!(state.keep, Keep::Last(0 | 1)) && state.writes[..] == [1] && state.reads.iter().all(|&r| r == 0)
}

/// The step with the loops in it lowered that depend on the step, as far as they can be parts of the list. `level`: in so many loops it
/// stands. Not where the step has effects: such parts may find that the law must run the loop, which would have them twice.
pub(super) fn found(scan: &Scan, body: &Graph, level: usize, lists: Lists) -> Lowered<Graph> {
    let rooms = body.nodes().iter().any(|n| roomy(&n.op).is_some());
    if rooms && (level + 1 >= LEVELS || body.whole().impure) {
        return refuse(BY_VALUES);
    }
    if level + 1 >= LEVELS || body.whole().impure || !rooms && !body.nodes().iter().any(|n| matches!(n.op, Op::Scan(_))) {
        return Ok(body.clone());
    }
    let mut left = FxHashSet::default();
    loop {
        let (out, made) = lowered(scan, body, (level, lists), &left)?;
        // What hung on the step by an extent alone, which is known now, is computed before the first step.
        let kinds = Kinds::new(scan, &out);
        let before: Vec<NodeId> = made.into_iter().filter(|&(_, v)| kinds.of(v) != Kind::Step).map(|(id, _)| id).collect();
        if before.is_empty() {
            return Ok(out);
        }
        left.extend(before);
    }
}

/// As [`found`] says, but for the nodes that are left as they are; with the nodes that were lowered, and their first results.
fn lowered(scan: &Scan, body: &Graph, (level, lists): (usize, Lists), left: &FxHashSet<NodeId>) -> Lowered<(Graph, Vec<(NodeId, Value)>)> {
    let mut made = vec![];
    let (mut out, live, uses, kinds) = (Graph::new(), body.needed(body.results()), body.uses(), Kinds::new(scan, body));
    let mut image: FxHashMap<Value, Value> = FxHashMap::default();
    for &p in body.params() {
        image.insert(p, out.param(body.ty(p).clone(), body.name(p).map(|n| &**n)));
    }
    for (id, node) in body.nodes().enumerate().filter(|n| live[n.0.idx()]) {
        out.set_span(node.span);
        let step = kinds.of(node.outs[0]) == Kind::Step && !left.contains(&id);
        let mut ins: Vec<Value> = node.ins.iter().map(|v| image[v]).collect();
        // Extents of what a loop returns are known once it is lowered.
        if let Op::DimOf(dim) = &node.op
            && let Some(n) = out.ty(ins[0]).dims[dim.axis].value()
        {
            let n = out.int(n as i64);
            image.insert(node.outs[0], n);
            continue;
        }
        if let Some(row) = row_of_joined(&mut out, &node.op, &ins) {
            image.insert(node.outs[0], row?);
            continue;
        }
        let counted = || uses[node.outs[node.outs.len() - 1].idx()] > 0;
        let rests = |inner: Inner| Inner { rests: inner.rests && reads_on(body, node), ..inner };
        let inner = match (&node.op, roomy(&node.op)) {
            (Op::Scan(scan), _) if step => Inner::new(scan, &out, &ins, (level, lists), counted(), None).ok().map(rests),
            (_, Some(_)) if !step => return refuse(BY_VALUES),
            (_, Some(loop_)) => {
                let inner = Inner::new(&loop_.scan, &out, &ins, (level, lists), counted(), Some((loop_.most, loop_.sure)));
                Some(inner.or_else(|_| refuse(BY_VALUES))?)
            }
            _ => None,
        };
        let part = inner.is_some();
        let op = match inner {
            None => node.op.clone(),
            Some(inner) => {
                ins.extend(inner.before(&mut out, &ins)?);
                Op::Native(NativeRef(Arc::new(inner)))
            }
        };
        let outs = out.apply(op, &ins)?;
        made.extend(part.then_some((id, outs[0])));
        image.extend(node.outs.iter().copied().zip(outs));
    }
    let results: Vec<Value> = body.results().iter().map(|v| image[v]).collect();
    out.set_results(results);
    Ok((out, made))
}

/// A row of arrays that are joined is a row of one of them: the last one of what a loop began with and what it made is what it made.
fn row_of_joined(g: &mut Graph, op: &Op, ins: &[Value]) -> Option<Result<Value>> {
    let Op::Index(Index { pattern }) = op else { return None };
    let joined = g.node_of(ins[0]).filter(|n| matches!(n.op, Op::Join(Join { axis: 0 })))?;
    let lengths = joined.ins.iter().map(|&v| g.ty(v).dims[0].value()).collect::<Option<Vec<usize>>>()?;
    let alike = joined.ins.iter().all(|&v| g.ty(v).dtype == g.ty(ins[0]).dtype && g.ty(v).row() == g.ty(ins[0]).row());
    let at = g.const_value(*ins.get(1)?)?.item_i64().filter(|_| alike && pattern.split(',').next() == Some("i"))?;
    let all: usize = lengths.iter().sum();
    let mut row = usize::try_from(if at < 0 { at + all as i64 } else { at }).ok().filter(|&row| row < all)?;
    let (&part, _) = joined.ins.iter().zip(&lengths).find(|&(_, &n)| {
        if row < n {
            true
        } else {
            row -= n;
            false
        }
    })?;
    let row = g.int(row as i64);
    let ins = [&[part, row], &ins[2..]].concat();
    Some(g.apply(op.clone(), &ins).map(|outs| outs[0]))
}

impl Inner {
    /// A loop with such inputs, of which the number of steps that ran is wanted or not, and is at least 1 and at most `most`.
    fn new(
        scan: &Arc<Scan>,
        graph: &Graph,
        ins: &[Value],
        (level, lists): (usize, Lists),
        counted: bool,
        most: Option<(usize, bool)>,
    ) -> Lowered<Inner> {
        let known = known(graph, ins[Scan::N_STEPS], DEEP).and_then(|n| n.item_i64());
        let known = known.map(|n| usize::try_from(n).ok().filter(|&n| n > 0).ok_or(())).transpose().or_else(|()| refuse("no steps"))?;
        let types: Vec<Type> = ins.iter().map(|&v| graph.ty(v).clone()).collect();
        for id in scan.seqs.ids() {
            let rows = known_shape(graph, ins[scan.seq_input(id)])?[0];
            if rows == 0 || known.is_some_and(|n| n > rows) {
                return refuse("a sequence that is too short");
            }
        }
        let params = param_types(scan, &types);
        let mut values = vec![None; params.len()];
        for id in scan.captured.ids() {
            let number = graph.const_value(ins[scan.captured_input(id)]).filter(|a| a.rank() == 0 && a.dtype() == DType::I64);
            values[scan.captured_param(id)] = number.cloned();
        }
        let list = || lists(scan, (&params, &values, &[]), level + 1).map(|(plan, slots)| Form::List(Box::new(plan), slots));
        let quicker = |kernel: &LoopKernel| {
            let list = if kernel.is_long() { list().ok()? } else { return None };
            matches!(&list, Form::List(plan, _) if plan.is_quicker(kernel)).then_some(list)
        };
        let form = match lower(scan, &params, &values, true) {
            Ok(kernel) if kernel.windows.iter().all(|w| !w.entering && w.far.is_empty()) => {
                quicker(&kernel).unwrap_or_else(|| Form::Kernel(Box::new(kernel)))
            }
            _ => list()?,
        };
        let mut inner = Inner { scan: scan.clone(), types: Outs::new(), known, most, rests: false, counted, form };
        // What is computed before its first step is computed where it has none, too.
        let before = inner.computed_before();
        let live = before.needed(before.results());
        let constant = |n: &Node| n.ins.is_empty() && before.const_value(n.outs[0]).is_some();
        let fails = |n: &Node| !constant(n) && (n.op.number() == Op::OTHERS || n.op.def().fallible(before, &n.ins));
        let rests = !before.nodes().enumerate().any(|(id, n)| live[id.idx()] && fails(n));
        inner.rests = rests;
        let mut types = Outs::new();
        for (id, window) in scan.states.ids().zip(inner.windows()) {
            let rows = inner.rows(id, window, scan.init_input(id).map(|at| known_shape(graph, ins[at])).transpose()?.as_deref())?;
            let dims = std::iter::once(rows).chain(window.shape.iter().copied()).map(Dim::known);
            types.push(Type::new(window.dtype, dims));
        }
        types.push(Type::scalar(DType::I64));
        Ok(Inner { types, ..inner })
    }

    fn computed_before(&self) -> &Graph {
        match &self.form {
            Form::Kernel(kernel) => &kernel.before,
            Form::List(plan, _) => &plan.before,
        }
    }
    fn windows(&self) -> &[Window] {
        match &self.form {
            Form::Kernel(kernel) => &kernel.windows,
            Form::List(plan, _) => &plan.windows,
        }
    }
    /// How many rows of a state the loop returns, given the extents of the initial ones.
    ///
    /// # Errors
    /// Why its memory cannot be laid out before the loop runs.
    fn rows(&self, id: StateId, window: &Window, init: Option<&[usize]>) -> Lowered<usize> {
        let init = init.unwrap_or(&[0]);
        if init[0] < window.span || init[0] > 0 && init[1..] != window.shape[..] {
            return refuse("initial rows that do not fit");
        }
        let certain = self.known.filter(|_| !self.scan.until);
        let keep = self.scan.states[id].keep;
        let hands_on = matches!(self.form, Form::Kernel(_)) && window.carried_offsets().any(|j| j >= window.first_write);
        if certain.or(self.most.map(|m| m.0)).unwrap_or(0).saturating_mul(window.row_bytes()) > ROWS {
            return refuse("rows that take too much memory for a step");
        }
        match (keep, certain) {
            (Keep::All, Some(n)) => Ok((n + window.span).max(init[0])),
            (Keep::Last(k), Some(n)) => Ok(k.min(n)),
            (Keep::Last(k @ (0 | 1)), None) if self.one_row(id, window) => Ok(k),
            (Keep::All, None) if !hands_on && init[0] == window.span && self.most.is_some() => {
                Ok(self.most.map_or(0, |m| m.0) + window.span)
            }
            _ => refuse("rows of which the number depends on values"),
        }
    }
    /// True where the memory of a state does not depend on the number of steps.
    pub fn one_row(&self, id: StateId, window: &Window) -> bool {
        match &self.form {
            Form::Kernel(_) => !window.stored,
            Form::List(plan, _) => plan.in_place[id.idx()] || single(&self.scan, id, 1),
        }
    }

    /// What is computed before the loop's first step, in the graph of the step around.
    fn before(&self, graph: &mut Graph, ins: &[Value]) -> Result<Vec<Value>> {
        let before = self.computed_before();
        let params = self.scan.captured.ids().map(|id| (before.params()[self.scan.captured_param(id)], ins[self.scan.captured_input(id)]));
        graph.inline(before, &params.collect(), before.results())
    }
}
