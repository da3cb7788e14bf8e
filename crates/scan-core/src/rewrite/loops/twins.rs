//! Loops that compute again what steps of an earlier loop computed: those of gradients do.

use super::facts::integer;
use super::rows::Prover;
use crate::base::Id;
use crate::ir::{Def, Graph, Keep, Node, NodeId, Op, Scan, SeqId, StateId, Value};
use crate::ops::index::{Item, Pattern};
use crate::scalar::ElemOp;
use crate::types::Dim;
use rustc_hash::FxHashMap;

/// Which step of the earlier loop a step of the later one belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The same.
    Same,
    /// As many before the last one.
    Back,
}

/// A later loop beside an earlier one.
pub struct Twin {
    /// How steps belong to each other.
    pub direction: Direction,
    /// From values of the later step to equal ones of the earlier step.
    pub image: FxHashMap<Value, Value>,
}

/// Rows of a value, as seen by a later loop: rows `from ..` of another.
struct View {
    base: Value,
    from: usize,
    /// It ends where the other ends.
    whole_end: bool,
}

/// What is known of two loops.
struct Pair<'a, 'g> {
    g: &'g Graph,
    prover: &'a mut Prover<'g>,
    early: &'g Node,
    late: &'g Node,
    steps: Dim,
    direction: Direction,
}

/// The values of a later loop that are those of an earlier one; `None` where steps do not belong to each other.
pub fn twin<'g>(g: &'g Graph, prover: &mut Prover<'g>, early: NodeId, late: NodeId) -> Option<Twin> {
    let (early, late) = (&g.nodes()[early], &g.nodes()[late]);
    let steps = prover.scalar(early.outs[early.op.as_scan()?.steps_output()]);
    if prover.scalar(late.ins[Scan::N_STEPS]) != steps {
        return None;
    }
    [Direction::Back, Direction::Same].into_iter().find_map(|direction| {
        let mut pair = Pair { g, prover, early, late, steps: steps.clone(), direction };
        let image = pair.params()?;
        let image = pair.follow(image)?;
        Some(Twin { direction, image })
    })
}

impl Pair<'_, '_> {
    fn scans(&self) -> Option<(&'_ Scan, &'_ Scan)> {
        Some((self.early.op.as_scan()?, self.late.op.as_scan()?))
    }

    /// What the parameters of the later step are; `None` where it reads no row that the earlier loop made, or reads, too.
    fn params(&mut self) -> Option<FxHashMap<Value, Value>> {
        let (Op::Scan(early), Op::Scan(late)) = (&self.early.op, &self.late.op) else { return None };
        let mut image = FxHashMap::default();
        for id in late.seqs.ids() {
            if let Some(of) = self.row(early, late, id) {
                image.insert(late.body.params()[late.seq_param(id)], of);
            }
        }
        if image.is_empty() {
            return None;
        }
        for id in late.captured.ids() {
            let same = |e: &crate::ir::NonSeqId| self.early.ins[early.captured_input(*e)] == self.late.ins[late.captured_input(id)];
            if let Some(e) = early.captured.ids().find(same) {
                image.insert(late.body.params()[late.captured_param(id)], early.body.params()[early.captured_param(e)]);
            }
        }
        if self.direction == Direction::Same {
            image.insert(late.body.params()[Scan::STEP], early.body.params()[Scan::STEP]);
        }
        Some(image)
    }

    /// What a row of a sequence of the later loop is in the earlier step.
    fn row(&mut self, early: &Scan, late: &Scan, id: SeqId) -> Option<Value> {
        let rows = self.late.ins[late.seq_input(id)];
        let (back, reverse) = (self.direction == Direction::Back, late.seqs[id].reverse);
        let (mut view, spare) = (self.view(rows)?, self.spare(rows));
        if back && reverse {
            view.from += spare?;
        }
        let fits = !back || spare == Some(0) || reverse;
        if let Def::Out(node, at) = self.g.def(view.base)
            && std::ptr::eq(&self.g.nodes()[node], self.early)
        {
            let known = at < early.states.len() && fits && reverse == back;
            return known.then(|| of_state(early, StateId::new(at), view.from)).flatten();
        }
        early.seqs.ids().filter(|_| fits).find_map(|e| {
            let first = self.early.ins[early.seq_input(e)];
            let (turned, other) = (early.seqs[e].reverse, self.view(first)?);
            let from_front = other.base == view.base && other.from == view.from;
            let same_end = other.base == view.base && other.whole_end && view.whole_end && back || first == rows;
            let found = (turned ^ back) == reverse && if turned { same_end } else { from_front };
            found.then(|| early.body.params()[early.seq_param(e)])
        })
    }

    /// How many more rows a value has than there are steps, if there are any.
    fn spare(&mut self, v: Value) -> Option<usize> {
        let rows = self.prover.rows(v);
        let spare = rows.form.sub(&self.steps);
        let ([], spare) = spare.parts() else { return None };
        usize::try_from(spare).ok().filter(|_| rows.relies.is_none_or(|r| r == self.steps))
    }

    /// Behind slices along the first axis.
    fn view(&mut self, mut v: Value) -> Option<View> {
        let (mut from, mut whole_end) = (0, true);
        if self.g.ty(v).rank() == 0 {
            return None;
        }
        while let Some(node) = self.g.node_of(v)
            && let Op::Index(op) = &node.op
            && let Ok(pattern) = Pattern::parse(&op.pattern)
            && let [Item::Slice { start, end, step: 1 }] = pattern.items[..]
        {
            let Some(lo) = (if start { integer(self.g, node.ins[1]) } else { Some(0) }).and_then(|n| usize::try_from(n).ok()) else {
                break;
            };
            (v, from, whole_end) = (node.ins[0], from + lo, whole_end && !end);
        }
        Some(View { base: v, from, whole_end })
    }

    /// All values of the later step that the earlier one has.
    fn follow(&mut self, mut image: FxHashMap<Value, Value>) -> Option<FxHashMap<Value, Value>> {
        let direction = self.direction;
        let last_step = self.last_step();
        let (early, late) = self.scans()?;
        let step = late.body.params()[Scan::STEP];
        for node in late.body.nodes().iter() {
            if direction == Direction::Back
                && matches!(node.op, Op::Elem(ElemOp::Sub))
                && node.ins[1] == step
                && last_step.contains(&node.ins[0])
            {
                image.insert(node.outs[0], early.body.params()[Scan::STEP]);
                continue;
            }
            let ins: Option<Vec<Value>> = node.ins.iter().map(|v| image.get(v).copied()).collect();
            let Some(found) = ins.and_then(|ins| early.body.find(&node.op, &ins)) else { continue };
            let Some(twin) = early.body.node_of(found) else { continue };
            node.outs.iter().zip(&twin.outs).for_each(|(&v, &of)| _ = image.insert(v, of));
        }
        Some(image)
    }

    /// Values of the later step that are the number of the last step.
    fn last_step(&mut self) -> Vec<Value> {
        let Op::Scan(late) = &self.late.op else { return vec![] };
        let one = Dim::known(1);
        let mut last = vec![];
        for id in late.captured.ids() {
            let (param, form) =
                (late.body.params()[late.captured_param(id)], self.prover.scalar_of(self.late.ins[late.captured_input(id)]));
            let Some(form) = form else { continue };
            if form.add(&one) == self.steps {
                last.push(param);
            }
            let minus_one =
                |n: &&Node| matches!(n.op, Op::Elem(ElemOp::Sub)) && n.ins[0] == param && integer(&late.body, n.ins[1]) == Some(1);
            if form == self.steps {
                last.extend(late.body.nodes().iter().filter(minus_one).map(|n| n.outs[0]));
            }
        }
        last
    }
}

/// What row `i + offset` of a state's final buffer is in step i.
fn of_state(scan: &Scan, id: StateId, offset: usize) -> Option<Value> {
    let state = &scan.states[id];
    if state.keep != Keep::All {
        return None;
    }
    if state.writes[..] == [offset] {
        return scan.write_values(id).first().copied();
    }
    let read = state.reads.iter().position(|&r| r == offset).filter(|_| state.stable())?;
    Some(scan.read_values(id)[read])
}
