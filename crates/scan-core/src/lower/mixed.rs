//! A loop whose step is a list of kernels, moves, products and calls on memory that is laid out before it begins.

use super::branches;
use super::dynamic_slice::slices;
use super::exact::with_sums;
use super::extents::known_shape;
use super::in_place::Order;
use super::inner;
use super::joins_reduced::with_joins_reduced;
use super::kinds::{Kind, Kinds};
use super::margins::with_margins;
use super::moves::{self, Source};
use super::planner::Planner;
use super::prepared::{prepared, ready};
use super::reads_reduced::with_reads_reduced;
use super::rooms::with_rooms;
use super::sliced::with_reads_of_whole;
use super::{Lowered, refuse};
use crate::base::Span;
use crate::ir::op::{GatherWrite, IndexWrite, Write};
use crate::ir::{Node, NodeId, Op, Scan, Value};
use crate::ops::direct::Direct;
use crate::ops::select::Selector;
use crate::plan::StepList;
use crate::plan::list::{At, Item, Place, Run, Work};
use crate::types::shape::{Extents, count};
use crate::types::{Array, DType, Type};
use rustc_hash::FxHashSet;

/// So many runs of elements at most are written one by one where an index names them.
const PLACED: usize = 64;

/// A loop for body parameters of these types, all extents known, of which some have a value, and some are integers that are at least 1 and
/// at most so much.
///
/// # Errors
/// Why a step has no fixed layout.
pub fn lower(scan: &Scan, types: &[Type], values: &[Option<Array>], most: &[Option<i64>]) -> Lowered<StepList> {
    let (mut plan, slots) = listed(scan, (types, values, most), 0)?;
    plan.coalesce(scan, &slots);
    // Lists that differ from step to step keep a state alike.
    if most.is_empty() {
        plan.coalesce_states(scan);
    }
    plan.lay_out(&slots);
    #[cfg(debug_assertions)]
    crate::plan::sound::assert_list(&plan, scan);
    // A fault of planning is no reason to write where others read.
    crate::plan::verify::reaches(&plan, scan).or_else(refuse)?;
    Ok(plan)
}

/// The list of a loop that stands in so many others, and the sizes of its temporaries, which have no places yet.
pub(super) fn listed(
    scan: &Scan,
    (types, values, most): (&[Type], &[Option<Array>], &[Option<i64>]),
    level: usize,
) -> Lowered<(StepList, Vec<usize>)> {
    let body = prepared(scan, types, values)?;
    let body = match with_rooms(&body, most, None)? {
        Some(body) => ready(&body)?,
        None => body,
    };
    let (body, eager) = branches::looped(scan, &body)?;
    if eager && body.whole().impure {
        return refuse("what only a branch needs may fail beside effects");
    }
    let body = inner::found(scan, &body, level, listed)?;
    let body = with_sums(&body)?.unwrap_or(body);
    let body = with_reads_of_whole(&body)?.unwrap_or(body);
    let body = with_reads_reduced(scan, &body)?.unwrap_or(body);
    let body = with_joins_reduced(&body)?.unwrap_or(body);
    let body = with_margins(&body)?.unwrap_or(body);
    let kinds = Kinds::new(scan, &body);
    if kinds.nodes(&body).any(|n| n.outs.iter().all(|&v| kinds.of(v) != Kind::Step) && matches!(&n.op, Op::Extern(e) if !e.0.pure())) {
        return refuse("it has effects that do not depend on the step");
    }
    Planner { eager, ..Planner::new(scan, &body, &kinds, level)? }.plan()
}

impl Planner<'_> {
    /// Where a result of the step lies: apart from the rows that other results may be written to.
    fn kept(&mut self, v: Value) -> Lowered<Place> {
        let place = self.place(v)?;
        let At::Row(id, offset) = place.at else { return Ok(place) };
        if !self.scan.states[id].writes.contains(&offset) && !inner::single(self.scan, id, self.level) {
            return Ok(place);
        }
        let n = count(&place.shape);
        self.slots.push(n * place.dtype.size());
        let out = Place::whole(At::Slot(self.slots.len() - 1), place.shape.clone(), place.dtype);
        let work = Work::Move(vec![Run::copy(n)]);
        self.items.push(Item { work, ins: vec![place], outs: vec![out.clone()], span: Span::NONE });
        Ok(out)
    }
    fn plan(mut self) -> Lowered<(StepList, Vec<usize>)> {
        let (body, kinds, scan) = (self.body, self.kinds, self.scan);
        let (fusions, mut schedules) = self.fused()?;
        let order = Order::new(scan, body, kinds, &fusions);
        self.rows = order.rows;
        let in_place: Vec<bool> = scan.states.ids().map(|id| self.rows.values().any(|&s| s == id)).collect();
        let (mut reads, mut seen) = (fusions.reads, FxHashSet::default());
        for id in self.joined(&order.nodes, &mut schedules) {
            self.within(id, &mut reads, &mut seen)?;
            match schedules.get(&id) {
                Some(parts) => self.passes(parts)?,
                None => self.node(id)?,
            }
        }
        self.within(NodeId(u32::MAX), &mut reads, &mut seen)?;
        let mut writes = vec![];
        for (id, state) in scan.states.enumerate().filter(|s| !in_place[s.0.0 as usize]) {
            for (at, &offset) in scan.write_results(id).zip(&state.writes) {
                writes.push((id, offset, self.kept(body.results()[at])?));
            }
        }
        let stop = scan.until_result().map(|at| self.kept(body.results()[at])).transpose()?;
        // Further results are there for what may fail when they are computed.
        let own = scan.states.iter().map(|s| s.writes.len()).sum::<usize>() + usize::from(scan.until);
        self.places(&body.results()[own..])?;
        let before = self.before()?;
        let impure = body.whole().impure;
        // What is sliced before the loop may reach beyond its array, too.
        let (items, windows, eager) = (self.items, self.windows, self.eager || slices(&before));
        let mut plan = StepList { before, items, temporaries: vec![], windows, in_place, writes, stop, impure, eager };
        plan.write_rows(scan, &self.slots, self.level);
        Ok((plan, self.slots))
    }

    fn node(&mut self, id: NodeId) -> Lowered<()> {
        let node = &self.body.nodes()[id];
        if self.alias(id)?
            || self.written(id)?
            || self.moved(id)?
            || self.sliced(id)?
            || self.read(id)?
            || self.product(id)?
            || self.looped(id)?
        {
            return Ok(());
        }
        let ins = self.places(&node.ins)?;
        if let Some(direct) = self.direct(node, &ins)? {
            let out = self.slot(node.outs[0])?;
            self.items.push(Item { work: Work::Direct(direct, node.op.clone()), ins, outs: vec![out], span: node.span });
            return Ok(());
        }
        let mut outs = vec![];
        for &v in &node.outs {
            outs.push(self.slot(v)?);
        }
        let types = node.outs.iter().map(|&v| self.body.ty(v).clone()).collect();
        self.items.push(Item { work: Work::Call(node.op.clone(), types), ins, outs, span: node.span });
        Ok(())
    }

    /// The node as an op on slices.
    fn direct(&self, node: &Node, ins: &[Place]) -> Lowered<Option<Direct>> {
        let (shape, dtype) = (known_shape(self.body, node.outs[0])?, self.body.ty(node.outs[0]).dtype);
        if !dtype.is_float() || ins.iter().any(|p| p.dtype != dtype) {
            return Ok(None);
        }
        let shapes: Vec<&[usize]> = ins.iter().map(|p| &p.shape[..]).collect();
        Ok(Direct::new(&node.op, &shapes, &shape, dtype == DType::F64))
    }

    /// The same elements under another shape.
    fn alias(&mut self, id: NodeId) -> Lowered<bool> {
        let node = &self.body.nodes()[id];
        let same = match &node.op {
            Op::Transpose(t) => t.perm.iter().filter(|&&i| self.body.ty(node.ins[0]).dims[i].value() != Some(1)).is_sorted(),
            op => op.properties().aliases,
        };
        let (from, to) = (known_shape(self.body, node.ins[0]), known_shape(self.body, node.outs[0])?);
        if !same || from.is_ok_and(|s| count(&s) != count(&to)) {
            return Ok(false);
        }
        let place = self.place(node.ins[0])?;
        self.places.insert(node.outs[0], Place { shape: to, ..place });
        Ok(true)
    }

    /// Elements that an op only moves: a part of a temporary or of a sequence's row stays where it is.
    fn moved(&mut self, id: NodeId) -> Lowered<bool> {
        let node = &self.body.nodes()[id];
        let Some(moved) = node.op.moved(node.ins.len()) else { return Ok(false) };
        let shape = known_shape(self.body, node.outs[0])?;
        let shapes: Vec<Extents> = node.ins.iter().map(|&v| known_shape(self.body, v)).collect::<Lowered<_>>()?;
        let dtype = self.body.ty(node.outs[0]).dtype;
        if moved.iter().any(|&i| self.body.ty(node.ins[i]).dtype != dtype) {
            return Ok(false);
        }
        let mut given = vec![];
        for (i, &v) in node.ins.iter().enumerate() {
            given.push(match self.body.const_value(v) {
                _ if moved.contains(&i) => Source::Moved(&shapes[i]),
                _ if node.op.properties().shape_only.contains(&i) => Source::Shape(&shapes[i]),
                Some(a) => Source::Given(a),
                None => return Ok(false),
            });
        }
        let Some(runs) = moves::runs(&node.op, &given, &shape) else { return Ok(false) };
        let ins = moved.iter().map(|&i| self.place(node.ins[i])).collect::<Lowered<Vec<_>>>()?;
        if let [Run { input: Some(i), from, step: 1, .. }] = runs[..] {
            // Not of a row of a state, which may be written over while its part is still wanted.
            if !matches!(ins[i].at, At::Row(..)) {
                self.places.insert(node.outs[0], Place { first: ins[i].first + from, shape, ..ins[i].clone() });
                return Ok(true);
            }
        }
        let out = self.slot(node.outs[0])?;
        self.items.push(Item { work: Work::Move(runs), ins, outs: vec![out], span: node.span });
        Ok(true)
    }

    /// A read by an index that changes from step to step.
    fn read(&mut self, id: NodeId) -> Lowered<bool> {
        let node = &self.body.nodes()[id];
        let (Op::Index(_) | Op::Gather(_), Some(selector)) = (&node.op, Selector::of(&node.op)) else { return Ok(false) };
        let ins = self.places(&node.ins)?;
        let out = self.slot(node.outs[0])?;
        self.items.push(Item { work: Work::Read(selector), ins, outs: vec![out], span: node.span });
        Ok(true)
    }

    /// A write by an index: into the state's row, where that is allowed, else into a copy.
    fn written(&mut self, id: NodeId) -> Lowered<bool> {
        let node = &self.body.nodes()[id];
        let (Op::IndexWrite(IndexWrite { mode, .. }) | Op::GatherWrite(GatherWrite { mode, .. })) = node.op else { return Ok(false) };
        let (to, Some(selector)) = (node.outs[0], Selector::of(&node.op)) else { return Ok(false) };
        let ins = self.places(&node.ins[1..])?;
        let out = match self.rows.get(&to) {
            Some(&state) => {
                self.put(to, At::Row(state, 0))?;
                self.places[&to].clone()
            }
            None if node.ins[1..].iter().all(|&v| self.body.const_value(v).is_some()) => return Ok(false),
            None => {
                let (from, out) = (self.place(node.ins[0])?, self.slot(to)?);
                let work = Work::Move(vec![Run::copy(count(&out.shape))]);
                self.items.push(Item { work, ins: vec![from], outs: vec![out.clone()], span: node.span });
                out
            }
        };
        let work = match (self.placed(node, (&selector, mode), &ins[0], &out), mode) {
            (Some(runs), Write::Set) => Work::Move(runs),
            (Some(runs), Write::Inc) => Work::Add(runs),
            (None, _) => Work::Write(selector, mode),
        };
        self.items.push(Item { work, ins, outs: vec![out], span: node.span });
        Ok(true)
    }

    /// What is written by an index that is known, element by element, where these are few runs.
    fn placed(&self, node: &Node, (selector, mode): (&Selector, Write), y: &Place, out: &Place) -> Option<Vec<Run>> {
        let idxs: Vec<&Array> = node.ins[2..].iter().map(|&v| self.body.const_value(v)).collect::<Option<_>>()?;
        if y.dtype != out.dtype {
            return None;
        }
        let selected = selector.select(&out.shape, &|k| idxs[k].item_i64().unwrap_or(0), &|k| idxs[k].clone()).ok()?;
        let (n, one) = (count(&selected.shape()), count(&y.shape) == 1);
        if n == 0 || !one && y.shape != selected.shape() {
            return None;
        }
        let (mut runs, mut done) = (vec![], 0);
        selected.runs(|to, n| {
            runs.push(Run { input: Some(0), from: if one { 0 } else { done }, to, n, step: isize::from(!one || n == 1) });
            done += n;
        });
        // What is set twice is what comes last, which runs that are moved side by side do not tell.
        let apart = || {
            let mut spans: Vec<(usize, usize)> = runs.iter().map(|run| (run.to, run.n)).collect();
            spans.sort_unstable();
            spans.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
        };
        (runs.len() <= PLACED && (mode == Write::Inc || apart())).then_some(runs)
    }
}
