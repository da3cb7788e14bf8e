//! Loops in the steps of a loop: where their operands, states and rows lie in the memory of the step around.

use super::extents::known_shape;
use super::inner::{Form, Inner};
use super::planner::Planner;
use super::rooms::UNBOUNDED;
use super::stages::{fills_lanes, stages};
use super::{Lowered, Refusal};
use crate::base::Id;
use crate::ir::{Node, NodeId, Op, Scan, SeqId, StateId};
use crate::kernel::distribute::{Distributed, Source, Stage};
use crate::kernel::{MemId, Nest};
use crate::plan::kernel::Place as Spot;
use crate::plan::list::{At, Count, InnerKernel, InnerList, Item, Place, Run, STEP, Work};
use crate::plan::{LoopKernel, StepList, Window};
use crate::types::DType;
use crate::types::shape::count;
use std::sync::Arc;

/// Where a loop in a step finds its inputs and keeps its rows.
struct Around {
    scan: Arc<Scan>,
    ins: Vec<Place>,
    /// Memory of each state.
    states: Vec<Place>,
    /// Elements that a row of a state is apart from the next; 0 where there is one.
    strides: Vec<usize>,
    /// The first temporary of a list.
    slots: usize,
    level: usize,
}

impl Around {
    /// The row of a sequence that the first step reads, and how far it is to the next one, in elements.
    fn seq(&self, id: SeqId) -> (Place, isize) {
        let whole = &self.ins[self.scan.seq_input(id)];
        let row: usize = whole.shape[1..].iter().product();
        let back = self.scan.seqs[id].reverse;
        let first = whole.first + if back { (whole.shape[0] - 1) * row } else { 0 };
        (Place { first, ..whole.clone() }, if back { -(row as isize) } else { row as isize })
    }
    /// The initial rows of a state.
    fn init(&self, id: StateId) -> Option<Place> {
        self.scan.init_input(id).map(|at| self.ins[at].clone())
    }
    /// What the steps read: not the initial rows, which lie in the states' memory by then.
    fn read(&self) -> Vec<Place> {
        let inits: Vec<usize> = self.scan.states.ids().filter_map(|id| self.scan.init_input(id)).collect();
        self.ins.iter().enumerate().filter(|(k, _)| !inits.contains(k)).map(|(_, place)| place.clone()).collect()
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
        let ins = node.ins.iter().map(|&v| self.place(v)).collect::<Lowered<_>>()?;
        let level = self.level + 1;
        let mut around = Around { scan: inner.scan.clone(), ins, states: vec![], strides: vec![], slots: 0, level };
        let steps = self.steps(node, inner, &around);
        if inner.counted {
            self.slot(node.outs[inner.scan.steps_output()])?;
        }
        match &inner.form {
            Form::Kernel(kernel) => self.looped_kernel(node, inner, kernel, steps, &mut around)?,
            Form::List(plan, slots) => {
                self.eager |= plan.eager;
                self.looped_list(node, inner, (plan, slots), steps, &mut around)?
            }
        }
        Ok(true)
    }

    /// The number of steps; what the memory of the loop does not allow is left to the law.
    fn steps(&mut self, node: &Node, inner: &Inner, around: &Around) -> Count {
        if let Some(n) = inner.known {
            return Count::Known(n);
        }
        let place = around.ins[Scan::N_STEPS].clone();
        let lengths = || inner.scan.seqs.ids().map(|id| around.ins[inner.scan.seq_input(id)].shape[0]);
        let most = match inner.most {
            Some((most, true)) => return Count::Read(place, most),
            Some((most, false)) => most,
            None => lengths().min().unwrap_or(UNBOUNDED),
        };
        let work = Work::Guard([usize::from(!inner.rests), most]);
        self.items.push(Item { work, ins: vec![place.clone()], outs: vec![], span: node.span });
        Count::Read(place, most)
    }

    /// Memory of so many rows.
    fn memory(&mut self, dtype: DType, rows: usize, row: &[usize]) -> Place {
        let shape = std::iter::once(rows).chain(row.iter().copied()).collect();
        self.slots.push(rows * count(row) * dtype.size());
        Place::whole(At::Slot(self.slots.len() - 1), shape, dtype)
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
    fn begun(&mut self, node: &Node, init: Option<&Place>, rows: impl Iterator<Item = usize>, to: &Place) {
        let there = init.map_or(0, |p| p.shape[0]);
        let rows: Vec<Option<usize>> = rows.map(|j| Some(j).filter(|&j| j < there)).collect();
        self.laid_out(node, init, &rows, to.clone());
    }

    fn looped_kernel(&mut self, node: &Node, inner: &Inner, kernel: &LoopKernel, steps: Count, around: &mut Around) -> Lowered<()> {
        let scan = &inner.scan;
        let mut windows = vec![];
        for (id, window) in scan.states.ids().zip(&kernel.windows) {
            let offsets: Vec<usize> = window.carried_offsets().collect();
            let carried = self.memory(window.dtype, offsets.len(), &window.shape);
            let init = around.init(id);
            self.begun(node, init.as_ref(), offsets.iter().copied(), &carried);
            windows.push(carried);
            let all = init.as_ref().map_or(0, |p| p.shape[0]).max(window.span);
            let rows = if window.stored { (steps.most() + window.span).max(all) } else { 0 };
            let memory = self.memory(window.dtype, rows, &window.shape);
            if window.stored {
                self.begun(node, init.as_ref(), 0..all, &memory);
            }
            around.states.push(memory);
            around.strides.push(count(&window.shape));
        }
        let voters = kernel.votes.map_or(0, |votes| votes.voters);
        let [stopped, failed, votes] = [(Spot::Stopped, 1), (Spot::Failed, kernel.flags()), (Spot::Votes, voters)]
            .map(|(spot, bools)| kernel.places.contains(&spot).then(|| self.memory(DType::Bool, bools, &[])));
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
                Spot::Votes => (votes.clone().ok_or_else(lost)?, 0, 0),
            };
            strides.push(moves * dtype.size() as isize);
            operands.push(Place { first: base.first + at, ..base });
        }
        let nest = Nest::of(kernel.kernel.clone(), kernel.lanes, steps.most(), strides);
        let ran = self.places.get(&node.outs[scan.steps_output()]).cloned();
        let (votes, loops) = (votes.zip(kernel.votes), kernel.loops.clone());
        let whole = InnerKernel { name: scan.name.clone(), nest, operands, count: steps, stopped, votes, failed, ran, loops };
        let memory: Vec<Place> = windows.iter().chain(&around.states).cloned().collect();
        self.run_kernel(node, whole, &kernel.places, &around.read(), memory);
        for (id, window) in scan.states.ids().zip(&kernel.windows) {
            let (k, v) = (id.idx(), node.outs[scan.state_output(id)]);
            let shape = known_shape(self.body, v)?;
            let place = self.kernel_rows(node, inner, window, (&windows[k], &around.states[k]), shape[0]);
            self.places.insert(v, Place { shape, ..place });
        }
        Ok(())
    }

    /// The part that runs a kernel of a loop, or those that run its stages; `memory`: its states.
    fn run_kernel(&mut self, node: &Node, whole: InnerKernel, spots: &[Spot], ins: &[Place], memory: Vec<Place>) {
        let Some(found) = in_stages(&whole, spots) else {
            let outs = memory.into_iter().chain(whole.ran.clone()).collect();
            self.items.push(Item { work: Work::Loop(Box::new(whole)), ins: ins.to_vec(), outs, span: node.span });
            return;
        };
        let between: Vec<Place> = found.between.iter().map(|&dtype| self.memory(dtype, whole.count.most(), &[])).collect();
        let own: Vec<Place> = memory.into_iter().chain(between.iter().cloned()).collect();
        let ins: Vec<Place> = ins.iter().chain(&own).cloned().collect();
        for stage in found.stages {
            let inner = run_stage(&whole, stage, &between);
            let writes = |place: &&Place| inner.operands.iter().enumerate().any(|(k, p)| p.at == place.at && inner.nest.writes(k));
            let outs = own.iter().filter(writes).cloned().collect();
            self.items.push(Item { work: Work::Loop(Box::new(inner)), ins: ins.clone(), outs, span: node.span });
        }
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
        (plan, slots): (&StepList, &[usize]),
        steps: Count,
        around: &mut Around,
    ) -> Lowered<()> {
        let scan = &inner.scan;
        around.slots = self.slots.len();
        self.slots.extend(slots);
        let one: Vec<bool> = scan.states.ids().zip(&plan.windows).map(|(id, window)| inner.one_row(id, window)).collect();
        for (id, window) in scan.states.ids().zip(&plan.windows) {
            let one = one[id.idx()];
            let init = around.init(id);
            let seen = init.as_ref().map_or(0, |p| p.shape[0]).max(window.span);
            let rows = if one { 1 } else { (steps.most() + window.span).max(seen) };
            let memory = self.memory(window.dtype, rows, &window.shape);
            self.begun(node, init.as_ref(), 0..if one { 1 } else { seen }, &memory);
            around.states.push(memory);
            around.strides.push(if one { 0 } else { count(&window.shape) });
        }
        let mut items = plan.items.clone();
        items.iter_mut().for_each(|item| item.places(&mut |place| *place = around.outer(place)));
        let writes = plan.writes.iter().map(|(id, offset, from)| {
            let row = plan.windows[id.idx()].shape.clone();
            let to = Place::whole(At::Row(*id, *offset), row, from.dtype);
            [around.outer(from), around.outer(&to)]
        });
        let writes = writes.collect();
        let stop = plan.stop.as_ref().map(|place| around.outer(place));
        let step = Place { at: At::Slot(around.slots + STEP), ..Place::step() };
        let ran = self.places.get(&node.outs[scan.steps_output()]).cloned();
        let (ins, outs) = (around.read(), around.states.iter().chain(&ran).cloned().collect());
        let list = InnerList { name: scan.name.clone(), level: around.level, count: steps, items, writes, stop, step, ran };
        self.items.push(Item { work: Work::For(Box::new(list)), ins, outs, span: node.span });
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

/// The stages of a loop that certainly runs so many steps, and tells nobody; what lies between them stays in a cache.
fn in_stages(whole: &InnerKernel, spots: &[Spot]) -> Option<Distributed> {
    const BETWEEN: usize = 1 << 12;
    let Count::Known(n) = whole.count else { return None };
    let tells = whole.stopped.is_some() || whole.failed.is_some() || whole.votes.is_some() || whole.ran.is_some();
    if tells || whole.nest.lanes > 1 || !whole.loops.is_empty() || !fills_lanes(n) {
        return None;
    }
    stages(&whole.nest.kernel, spots, n).filter(|found| found.between.len() * n <= BETWEEN)
}

/// A stage of a loop: its steps in order, or as lanes of one step.
fn run_stage(whole: &InnerKernel, stage: Stage, between: &[Place]) -> InnerKernel {
    let n = whole.count.most();
    let (lanes, steps) = if stage.lanes { (n, 1) } else { (1, n) };
    let operand = |source: &Source| match *source {
        Source::Operand(m) => (whole.operands[m.idx()].clone(), whole.nest.strides[m.idx()].step),
        Source::Between(at) => (between[at].clone(), between[at].dtype.size() as isize),
    };
    let (operands, strides): (Vec<Place>, Vec<isize>) = stage.operands.iter().map(operand).unzip();
    let strides = strides.into_iter().map(|step| if stage.lanes { 0 } else { step });
    InnerKernel {
        name: whole.name.clone(),
        nest: Nest::of(stage.kernel, lanes, steps, strides),
        operands,
        count: Count::Known(steps),
        stopped: None,
        votes: None,
        failed: None,
        ran: None,
        loops: vec![],
    }
}

fn lost() -> Refusal {
    Refusal("an operand that has no place".to_string())
}
