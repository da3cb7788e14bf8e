//! Loops in the steps of a loop, as parts of its list: their states and rows lie in the memory of the step.

use super::fusions::{DEEP, known};
use super::mixed::{At, Item, MixedLoop, Place, Planner, Run, STEP, Work, listed};
use super::scan::{Kind, Kinds, LoopKernel, Place as Spot, known_shape, lower};
use super::window::Window;
use super::{Lowered, Refusal, refuse};
use crate::base::{Diagnostic, Id, Result};
use crate::ir::op::{NativeOp, NativeRef, Outs};
use crate::ir::{EvalCx, Graph, Keep, Node, NodeId, Op, Scan, SeqId, StateId, Value};
use crate::kernel::{LEVELS, MemId, Nest};
use crate::scan::retype::param_types;
use crate::types::shape::count;
use crate::types::{Array, DType, Dim, Type};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How many steps a loop in a step runs.
#[derive(Clone, Debug)]
pub(crate) enum Count {
    /// So many.
    Known(usize),
    /// As many as an integer says, at most so many.
    Read(Place, usize),
}

impl Count {
    /// So many at most.
    pub fn most(&self) -> usize {
        match self {
            Count::Known(n) | Count::Read(_, n) => *n,
        }
    }
    /// So many as far as one can tell.
    pub fn about(&self) -> usize {
        match self {
            Count::Known(n) => *n,
            Count::Read(_, n) => (*n).min(GUESSED),
        }
    }
}

/// Steps of a loop of which nothing is known.
const GUESSED: usize = 16;
/// A loop whose number of steps nothing bounds runs so many at most.
const UNBOUNDED: usize = 1 << 40;
/// Rows of a state of a loop in a step take so many bytes at most.
const ROWS: usize = 1 << 26;

/// What must hold, or the law runs the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Guard {
    /// A bool is false.
    False,
    /// An integer is at least 1 and at most this.
    Within(usize),
}

/// A loop that is one kernel.
#[derive(Clone)]
pub(crate) struct InnerKernel {
    /// The loop.
    pub scan: Arc<Scan>,
    /// Its kernel with as many steps as it may run.
    pub nest: Nest,
    /// Where the kernel's operands lie, in its order.
    pub operands: Vec<Place>,
    /// Its number of steps.
    pub count: Count,
    /// Where it tells that it has stopped.
    pub stopped: Option<Place>,
}

/// A loop whose step is a list.
#[derive(Clone)]
pub(crate) struct InnerList {
    /// The loop.
    pub scan: Arc<Scan>,
    /// How deep it stands: 1 for a loop in a step of the outermost one.
    pub level: usize,
    /// Its number of steps.
    pub count: Count,
    /// One step.
    pub items: Vec<Item>,
    /// Rows written after the items: from where, and where to.
    pub writes: Vec<[Place; 2]>,
    /// The value that stops the loop.
    pub stop: Option<Place>,
    /// Where steps read their number.
    pub step: Place,
}

impl Count {
    fn place(&mut self) -> Option<&mut Place> {
        if let Count::Read(place, _) = self { Some(place) } else { None }
    }
}

impl InnerKernel {
    /// Calls `visit` with all places.
    pub fn places(&mut self, visit: &mut dyn FnMut(&mut Place)) {
        self.operands.iter_mut().chain(&mut self.stopped).chain(self.count.place()).for_each(visit);
    }
}

impl InnerList {
    /// Calls `visit` with all places.
    pub fn places(&mut self, visit: &mut dyn FnMut(&mut Place)) {
        self.items.iter_mut().for_each(|item| item.places(visit));
        let others = self.writes.iter_mut().flatten().chain(&mut self.stop).chain(self.count.place());
        others.chain([&mut self.step]).for_each(visit);
    }
}

/// A loop in a step, lowered for the extents that it has there. Stands in the graph of the step in the loop's place, what is to be computed
/// before the loop's first step following its inputs.
struct Inner {
    scan: Arc<Scan>,
    types: Outs<Type>,
    /// Its number of steps, where that is known.
    known: Option<usize>,
    form: Form,
}

enum Form {
    Kernel(Box<LoopKernel>),
    List(Box<MixedLoop>, Vec<usize>),
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

/// A state of which one row is all that lies in memory: each step writes over the row that it read, after its parts.
pub(super) fn single(scan: &Scan, id: StateId, level: usize) -> bool {
    let state = &scan.states[id];
    level > 0 && matches!(state.keep, Keep::Last(0 | 1)) && state.writes[..] == [1] && state.reads.iter().all(|&r| r == 0)
}

/// The step with the loops in it lowered that depend on the step, as far as they can be parts of the list. `level`: in so many loops it
/// stands.
pub(super) fn found(scan: &Scan, body: &Graph, level: usize) -> Lowered<Graph> {
    let told = |e: Box<Diagnostic>| Refusal(e.title.clone());
    if level + 1 >= LEVELS || !body.nodes().iter().any(|n| matches!(n.op, Op::Scan(_))) {
        return Ok(body.clone());
    }
    let (mut out, live, uses, kinds) = (Graph::new(), body.needed(body.results()), body.uses(), Kinds::new(scan, body));
    let mut image: FxHashMap<Value, Value> = FxHashMap::default();
    for &p in body.params() {
        image.insert(p, out.param(body.ty(p).clone(), body.name(p).map(|n| &**n)));
    }
    for (_, node) in body.nodes().enumerate().filter(|n| live[n.0.idx()]) {
        out.set_span(node.span);
        let mut ins: Vec<Value> = node.ins.iter().map(|v| image[v]).collect();
        let inner = match &node.op {
            Op::Scan(scan) if kinds.of(node.outs[0]) == Kind::Step => {
                Inner::new(scan, &out, &ins, level, uses[node.outs[node.outs.len() - 1].idx()] > 0).ok()
            }
            _ => None,
        };
        let op = match inner {
            None => node.op.clone(),
            Some(inner) => {
                ins.extend(inner.before(&mut out, &ins).map_err(told)?);
                Op::Native(NativeRef(Arc::new(inner)))
            }
        };
        let outs = out.apply(op, &ins).map_err(told)?;
        image.extend(node.outs.iter().copied().zip(outs));
    }
    let results: Vec<Value> = body.results().iter().map(|v| image[v]).collect();
    out.set_results(results);
    Ok(out)
}

impl Inner {
    /// A loop with such inputs, of which the number of steps that ran is wanted or not.
    fn new(scan: &Arc<Scan>, graph: &Graph, ins: &[Value], level: usize, counted: bool) -> Lowered<Inner> {
        let known = known(graph, ins[Scan::N_STEPS], DEEP).and_then(|n| n.item_i64());
        let known = known.map(|n| usize::try_from(n).ok().filter(|&n| n > 0).ok_or(())).transpose().or_else(|()| refuse("no steps"))?;
        if counted || scan.body.whole().impure {
            return refuse("its number of steps is wanted, or it has effects");
        }
        let types: Vec<Type> = ins.iter().map(|&v| graph.ty(v).clone()).collect();
        for id in scan.seqs.ids() {
            let rows = known_shape(graph, ins[scan.seq_input(id)])?[0];
            if rows == 0 || known.is_some_and(|n| n > rows) {
                return refuse("a sequence that is too short");
            }
        }
        let params = param_types(scan, &types);
        let form = match lower(scan, &params, &[]) {
            Ok(kernel) if kernel.windows.iter().all(|w| !w.entering) => Form::Kernel(Box::new(kernel)),
            _ => {
                let (plan, slots) = listed(scan, &params, &[], level + 1)?;
                Form::List(Box::new(plan), slots)
            }
        };
        let mut inner = Inner { scan: scan.clone(), types: Outs::new(), known, form };
        for (id, window) in scan.states.ids().zip(&inner.windows()) {
            let rows = inner.rows(id, window, scan.init_input(id).map(|at| known_shape(graph, ins[at])).transpose()?.as_deref())?;
            let dims = std::iter::once(rows).chain(window.shape.iter().copied()).map(Dim::known);
            let ty = Type::new(window.dtype, dims);
            inner.types.push(ty);
        }
        inner.types.push(Type::scalar(DType::I64));
        Ok(inner)
    }

    fn windows(&self) -> Vec<Window> {
        match &self.form {
            Form::Kernel(kernel) => kernel.windows.clone(),
            Form::List(plan, _) => plan.windows.clone(),
        }
    }
    /// How a state that is not single is refused where the number of steps is not certain.
    fn rows(&self, id: StateId, window: &Window, init: Option<&[usize]>) -> Lowered<usize> {
        let init = init.unwrap_or(&[0]);
        if init[0] < window.span || init[0] > 0 && init[1..] != window.shape[..] {
            return refuse("initial rows that do not fit");
        }
        let certain = self.known.filter(|_| !self.scan.until);
        let keep = self.scan.states[id].keep;
        if certain.unwrap_or(0).saturating_mul(window.row_bytes()) > ROWS {
            return refuse("rows that take too much memory for a step");
        }
        match (keep, certain) {
            (Keep::All, Some(n)) => Ok((n + window.span).max(init[0])),
            (Keep::Last(k), Some(n)) => Ok(k.min(n)),
            (Keep::Last(k @ (0 | 1)), None) if self.one_row(id, window) => Ok(k),
            _ => refuse("rows of which the number depends on values"),
        }
    }
    /// True where memory does not depend on the number of steps.
    fn one_row(&self, id: StateId, window: &Window) -> bool {
        match &self.form {
            Form::Kernel(_) => !window.stored,
            Form::List(plan, _) => plan.in_place[id.idx()] || single(&self.scan, id, 1),
        }
    }

    /// What is computed before the loop's first step, in the graph of the step around.
    fn before(&self, graph: &mut Graph, ins: &[Value]) -> Result<Vec<Value>> {
        let before = match &self.form {
            Form::Kernel(kernel) => &kernel.before,
            Form::List(plan, _) => &plan.before,
        };
        let params = self.scan.captured.ids().map(|id| (before.params()[self.scan.captured_param(id)], ins[self.scan.captured_input(id)]));
        graph.inline(before, &params.collect(), before.results())
    }
}

/// Where a loop in a step finds its inputs and keeps its rows.
struct Around {
    scan: Arc<Scan>,
    ins: Vec<Place>,
    /// Rows of each sequence.
    lengths: Vec<usize>,
    /// Memory of each state.
    states: Vec<Place>,
    /// Bytes that a row of a state is apart from the next; 0 where there is one.
    strides: Vec<usize>,
    /// The first temporary.
    slots: usize,
    level: usize,
}

impl Around {
    /// The row of a sequence that the first step reads, and how far it is to the next one, in elements.
    fn seq(&self, id: SeqId) -> (Place, isize) {
        let whole = &self.ins[self.scan.seq_input(id)];
        let row: usize = whole.shape[1..].iter().product();
        let back = self.scan.seqs[id].reverse;
        let first = whole.first + if back { (self.lengths[id.idx()] - 1) * row } else { 0 };
        (Place { first, ..whole.clone() }, if back { -(row as isize) } else { row as isize })
    }
    /// A place of the loop's step, in the step around.
    fn outer(&self, place: &Place) -> Place {
        let (base, moves) = match place.at {
            At::Slot(s) => return Place { at: At::Slot(self.slots + s), ..place.clone() },
            At::Seq(id) => self.seq(id),
            At::Before(k) => (self.ins[self.scan.n_inputs() + k].clone(), 0),
            At::Row(id, offset) => {
                let (memory, row) = (&self.states[id.idx()], self.strides[id.idx()]);
                (Place { first: memory.first + offset * row, ..memory.clone() }, row as isize)
            }
            At::Arena(_) => (place.clone(), 0),
        };
        let mut along = [base.along[0] + place.along[0], base.along[1] + place.along[1]];
        along[self.level - 1] += moves;
        Place { at: base.at, first: base.first + place.first, along, ..place.clone() }
    }
}

impl Planner<'_> {
    /// A loop as a part of the list.
    pub(super) fn looped(&mut self, id: NodeId) -> Lowered<bool> {
        let node = &self.body.nodes()[id];
        let Op::Native(native) = &node.op else { return Ok(false) };
        let Some(inner) = native.0.as_any().downcast_ref::<Inner>() else { return Ok(false) };
        let steps = self.steps(node, inner)?;
        let mut around = Around {
            scan: inner.scan.clone(),
            ins: node.ins.iter().map(|&v| self.place(v)).collect::<Lowered<_>>()?,
            lengths: inner
                .scan
                .seqs
                .ids()
                .map(|id| Ok(known_shape(self.body, node.ins[inner.scan.seq_input(id)])?[0]))
                .collect::<Lowered<_>>()?,
            states: vec![],
            strides: vec![],
            slots: self.slots.len(),
            level: self.level + 1,
        };
        match &inner.form {
            Form::Kernel(kernel) => self.looped_kernel(node, inner, kernel, steps, &mut around)?,
            Form::List(plan, slots) => self.looped_list(node, inner, (plan, slots), steps, &mut around)?,
        }
        Ok(true)
    }

    /// The number of steps; what the memory of the loop does not allow is left to the law.
    fn steps(&mut self, node: &Node, inner: &Inner) -> Lowered<Count> {
        if let Some(n) = inner.known {
            return Ok(Count::Known(n));
        }
        let scan = &inner.scan;
        let lengths = scan.seqs.ids().map(|id| Ok(known_shape(self.body, node.ins[scan.seq_input(id)])?[0]));
        let most = lengths.collect::<Lowered<Vec<_>>>()?.into_iter().min().unwrap_or(UNBOUNDED);
        let place = self.place(node.ins[Scan::N_STEPS])?;
        if self.body.whole().impure || place.dtype.is_float() {
            return refuse("a number of steps that must be looked at, beside effects");
        }
        let work = Work::Guard(Guard::Within(most));
        self.items.push(Item { work, ins: vec![place.clone()], outs: vec![], span: node.span });
        Ok(Count::Read(place, most))
    }

    /// Memory of so many rows.
    fn memory(&mut self, dtype: DType, rows: usize, row: &[usize]) -> Place {
        let shape = std::iter::once(rows).chain(row.iter().copied()).collect();
        self.slots.push(rows * count(row) * dtype.size());
        Place { at: At::Slot(self.slots.len() - 1), first: 0, shape, dtype, along: [0; LEVELS - 1] }
    }
    /// Rows of an array beside each other: from which row of the input each comes, zeros where from none.
    fn laid_out(&mut self, node: &Node, from: Option<&Place>, rows: &[Option<usize>], to: Place) {
        let row: usize = to.shape[1..].iter().product();
        let mut runs: Vec<Run> = vec![];
        for (k, from) in rows.iter().enumerate() {
            let run = Run { input: from.map(|_| 0), from: from.unwrap_or(0) * row, to: k * row, n: row, step: 1 };
            match runs.last_mut().filter(|last| last.input == run.input && (from.is_none() || last.from + last.n == run.from)) {
                Some(last) => last.n += row,
                None => runs.push(run),
            }
        }
        if !runs.is_empty() {
            self.items.push(Item { work: Work::Move(runs), ins: from.cloned().into_iter().collect(), outs: vec![to], span: node.span });
        }
    }
    /// The initial rows of a state, and then zeros as far as steps see them.
    fn begun(&mut self, node: &Node, inner: &Inner, id: StateId, rows: impl Iterator<Item = usize>, to: &Place) -> Lowered<()> {
        let init = inner.scan.init_input(id).map(|at| self.place(node.ins[at])).transpose()?;
        let there = init.as_ref().map_or(0, |p| p.shape[0]);
        let rows: Vec<Option<usize>> = rows.map(|j| Some(j).filter(|&j| j < there)).collect();
        self.laid_out(node, init.as_ref(), &rows, to.clone());
        Ok(())
    }
    /// A bool that is false.
    fn clear(&mut self, node: &Node) -> Place {
        let place = self.memory(DType::Bool, 1, &[]);
        self.laid_out(node, None, &[None], place.clone());
        place
    }

    fn looped_kernel(&mut self, node: &Node, inner: &Inner, kernel: &LoopKernel, steps: Count, around: &mut Around) -> Lowered<()> {
        let scan = &inner.scan;
        let mut windows = vec![];
        for (id, window) in scan.states.ids().zip(&kernel.windows) {
            let offsets: Vec<usize> = window.carried_offsets().collect();
            let carried = self.memory(window.dtype, offsets.len(), &window.shape);
            self.begun(node, inner, id, offsets.iter().copied(), &carried)?;
            windows.push(carried);
            let all = scan.init_input(id).map_or(0, |at| around.ins[at].shape[0]).max(window.span);
            let rows = if window.stored { (steps.most() + window.span).max(all) } else { 0 };
            let memory = self.memory(window.dtype, rows, &window.shape);
            if window.stored {
                self.begun(node, inner, id, 0..all, &Place { shape: memory.shape.iter().copied().collect(), ..memory.clone() })?;
            }
            around.states.push(memory);
            around.strides.push(count(&window.shape));
        }
        let [stopped, failed] = [Spot::Stopped, Spot::Failed].map(|spot| kernel.places.contains(&spot).then(|| self.clear(node)));
        let mut strides = vec![];
        let mut operands = vec![];
        for (k, spot) in kernel.places.iter().enumerate() {
            let dtype = kernel.kernel.mems[MemId(k as u32)].dtype;
            let (base, at, moves) = match *spot {
                Spot::Seq { id, at } => {
                    let (place, moves) = around.seq(id);
                    (place, at, moves)
                }
                Spot::Before { value, at } => (around.ins[scan.n_inputs() + value].clone(), at, 0),
                Spot::Row { id, offset, at } => {
                    let row = around.strides[id.idx()];
                    (around.states[id.idx()].clone(), offset * row + at, row as isize)
                }
                Spot::Window { id, row, at } => {
                    let window = &kernel.windows[id.idx()];
                    let before = window.carried[..row].iter().filter(|&&c| c).count();
                    (windows[id.idx()].clone(), before * count(&window.shape) + at, 0)
                }
                Spot::Stopped => (stopped.clone().ok_or_else(lost)?, 0, 0),
                Spot::Failed => (failed.clone().ok_or_else(lost)?, 0, 0),
            };
            strides.push(moves * dtype.size() as isize);
            operands.push(Place { first: base.first + at, ..base });
        }
        let nest = Nest::of(kernel.kernel.clone(), kernel.lanes, steps.most(), strides);
        let (ins, outs) = (node.ins.iter().map(|v| self.places[v].clone()).collect(), [&windows[..], &around.states].concat());
        let work = Work::Loop(Box::new(InnerKernel { scan: scan.clone(), nest, operands, count: steps, stopped }));
        self.items.push(Item { work, ins, outs, span: node.span });
        if let Some(failed) = failed {
            self.items.push(Item { work: Work::Guard(Guard::False), ins: vec![failed], outs: vec![], span: node.span });
        }
        for (id, window) in scan.states.ids().zip(&kernel.windows) {
            let (k, v) = (id.idx(), node.outs[scan.state_output(id)]);
            let place =
                self.kernel_rows(node, inner, window, (&windows[k], &around.states[k]), self.body.ty(v).dims[0].value().unwrap_or(0));
            let shape = known_shape(self.body, v)?;
            self.places.insert(v, Place { shape, ..place });
        }
        Ok(())
    }

    /// What a loop that is one kernel returns of a state, so many rows: the rows that it hands on follow those that it has stored.
    fn kernel_rows(&mut self, node: &Node, inner: &Inner, window: &Window, (carried, stored): (&Place, &Place), rows: usize) -> Place {
        let row = count(&window.shape);
        let offsets: Vec<usize> = window.carried_offsets().collect();
        if !window.stored {
            return Place { first: (offsets.len() - rows) * row, ..carried.clone() };
        }
        let n = inner.known.unwrap_or(0);
        for (k, j) in offsets.iter().enumerate().filter(|(_, j)| **j >= window.first_write) {
            let to =
                Place { first: (n + j) * row, shape: std::iter::once(1).chain(window.shape.iter().copied()).collect(), ..stored.clone() };
            self.laid_out(node, Some(carried), &[Some(k)], to);
        }
        let all = stored.shape[0];
        let first = if rows == all { 0 } else { n + window.span - rows };
        Place { first: first * row, ..stored.clone() }
    }

    fn looped_list(
        &mut self,
        node: &Node,
        inner: &Inner,
        (plan, slots): (&MixedLoop, &[usize]),
        steps: Count,
        around: &mut Around,
    ) -> Lowered<()> {
        let scan = &inner.scan;
        self.slots.extend(slots);
        let one: Vec<bool> = scan.states.ids().map(|id| plan.in_place[id.idx()] || single(scan, id, 1)).collect();
        for (id, window) in scan.states.ids().zip(&plan.windows) {
            let one = one[id.idx()];
            let seen = scan.init_input(id).map_or(0, |at| around.ins[at].shape[0]).max(window.span);
            let rows = if one { 1 } else { (steps.most() + window.span).max(seen) };
            let memory = self.memory(window.dtype, rows, &window.shape);
            self.begun(node, inner, id, 0..if one { 1 } else { seen }, &memory)?;
            around.states.push(memory);
            around.strides.push(if one { 0 } else { count(&window.shape) });
        }
        let mut items = plan.items.clone();
        items.iter_mut().for_each(|item| item.places(&mut |place| *place = around.outer(place)));
        let writes = plan.writes.iter().map(|(id, offset, from)| {
            let row = plan.windows[id.idx()].shape.clone();
            let to = Place { at: At::Row(*id, *offset), first: 0, shape: row, dtype: from.dtype, along: [0; LEVELS - 1] };
            [around.outer(from), around.outer(&to)]
        });
        let writes = writes.collect();
        let stop = plan.stop.as_ref().map(|place| around.outer(place));
        let step =
            Place { at: At::Slot(around.slots + STEP), first: 0, shape: Default::default(), dtype: DType::I64, along: [0; LEVELS - 1] };
        let list = InnerList { scan: scan.clone(), level: around.level, count: steps, items, writes, stop, step };
        let ins = node.ins.iter().map(|v| self.places[v].clone()).collect();
        self.items.push(Item { work: Work::For(Box::new(list)), ins, outs: around.states.clone(), span: node.span });
        for (id, window) in scan.states.ids().zip(&plan.windows) {
            let (memory, v) = (&around.states[id.idx()], node.outs[scan.state_output(id)]);
            let shape = known_shape(self.body, v)?;
            let first = match one[id.idx()] || shape[0] == memory.shape[0] {
                true => 0,
                false => (inner.known.unwrap_or(0) + window.span - shape[0]) * count(&window.shape),
            };
            self.places.insert(v, Place { first, shape, ..memory.clone() });
        }
        Ok(())
    }
}

fn lost() -> Refusal {
    Refusal("an operand that has no place".to_string())
}
