//! States of which a step reads and writes single elements: they stay in memory, and no step looks at the others.
//!
//! ```text
//! state h : f64[1000]                       table m0, of 1000 elements
//! x = gather(h, i);  y = h[j]               r1 = gather m0[ri];  r2 = gather m0[rj]
//! next h = h[k] ← x + y                     store m0[rk] = r3
//! ```
//!
//! Within a step, what is read after a write is chosen by number: what was written there, else what the step before left.

use super::by_number::{needs_extents_alone, picks};
use super::extents::{known_row, known_shape};
use super::kinds::{Kind, Kinds};
use super::nodes::Lowering;
use super::value::{Elements, Table, Val};
use super::window::Mems;
use super::{Lowered, refuse};
use crate::ir::op::Write;
use crate::ir::{Graph, Keep, Node, Op, Scan, StateId, Value};
use crate::kernel::{Cmp, MemId, Reg};
use crate::plan::Window;
use crate::plan::kernel::Place;
use crate::scalar::ElemOp;
use crate::types::shape::{broadcast_positions, count};
use rustc_hash::FxHashSet;

/// Arrays of so few elements are no tables.
pub(super) const SMALL_TABLE: usize = 8;
/// A step writes so many elements of a state at most: each of them is looked at by whatever is read afterwards.
const WRITES: usize = 16;

/// The states of a loop that are tables.
#[derive(Default)]
pub(super) struct Tables {
    /// Per state: its values within a step.
    states: Vec<(StateId, FxHashSet<Value>)>,
}

impl Tables {
    /// Those whose values are read and written by numbers alone.
    pub fn of(scan: &Scan, body: &Graph, kinds: &Kinds) -> Tables {
        let found = scan.states.ids().filter_map(|id| {
            let state = &scan.states[id];
            let large = known_row(scan, body, id).is_ok_and(|row| count(&row) > SMALL_TABLE);
            if !large || state.reads[..] != [0] || state.writes[..] != [1] || !matches!(state.keep, Keep::Last(0 | 1)) {
                return None;
            }
            let next = body.results()[scan.write_results(id).start];
            let values = versions(body, kinds, body.params()[scan.read_params(id).start]);
            let written = values.len() > 1 && values.contains(&next);
            let alone = |&v: &Value| by_numbers(body, kinds, v, &values, usize::from(v == next));
            (written && values.iter().all(alone)).then_some((id, values))
        });
        Tables { states: found.collect() }
    }
    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }
    /// True for a value of a state that is a table.
    pub fn holds(&self, v: Value) -> bool {
        self.states.iter().any(|(_, values)| values.contains(&v))
    }
    /// True for a state that is a table.
    pub fn is_table(&self, id: StateId) -> bool {
        self.states.iter().any(|s| s.0 == id)
    }
}

/// What writes to a state's row, and choices between such, make of it within a step.
fn versions(body: &Graph, kinds: &Kinds, row: Value) -> FxHashSet<Value> {
    let mut values = FxHashSet::from_iter([row]);
    for node in kinds.nodes(body) {
        if makes_version(body, node, &values) {
            values.insert(node.outs[0]);
        }
    }
    values
}

/// True for a write to one of these values, and for one or the other of two.
fn makes_version(body: &Graph, node: &Node, values: &FxHashSet<Value>) -> bool {
    let of = |k: usize| values.contains(&node.ins[k]);
    match node.op {
        Op::IndexWrite(_) | Op::GatherWrite(_) => of(0) && !(1..node.ins.len()).any(of),
        Op::Elem(ElemOp::Where) => !of(0) && of(1) && of(2) && body.ty(node.ins[0]).rank() == 0,
        _ => false,
    }
}

/// True for a value of which nothing is used but elements, its shape, and other values of the state; and that is a result so many times.
fn by_numbers(body: &Graph, kinds: &Kinds, v: Value, values: &FxHashSet<Value>, results: usize) -> bool {
    let mut users = kinds.nodes(body).filter(|n| n.ins.contains(&v) && n.outs.iter().any(|&out| kinds.of(out) == Kind::Step));
    let fits = users.all(|node| picks(node, v) || values.contains(&node.outs[0]) || needs_extents_alone(node, v));
    fits && body.results().iter().filter(|r| **r == v).count() == results
}

/// A state that is a table, while its step is lowered.
pub(super) struct OpenTable {
    window: Window,
    mem: MemId,
    next: Value,
}

impl OpenTable {
    /// Gives the step the table.
    pub fn new(lowering: &mut Lowering, scan: &Scan, id: StateId, window: Window, mems: &mut Mems) -> OpenTable {
        let mem = lowering.builder.table(window.dtype, count(&window.shape), Some(0));
        mems.places.push(Place::Window { id, row: 0, at: 0 });
        let row = lowering.params()[scan.read_params(id).start];
        lowering.bind(row, Val::Table(window.shape.clone(), Table { elements: Elements::Operand(mem), writes: vec![], within: false }));
        OpenTable { window, mem, next: lowering.results()[scan.write_results(id).start] }
    }
    /// Writes what the step has written.
    pub fn close(self, lowering: &mut Lowering) -> Lowered<Window> {
        let Val::Table(_, table) = lowering.value(self.next)? else { return refuse("a state that is not what it was") };
        for (at, value) in table.writes {
            lowering.builder.store_at(self.mem, at, value);
        }
        Ok(self.window)
    }
}

impl Lowering<'_> {
    /// The element of a table with a number, as the step has left it so far.
    pub(super) fn element(&mut self, table: &Table, number: Reg) -> Reg {
        let mut found = match table.elements {
            Elements::Operand(mem) => self.builder.gather(mem, number),
            Elements::Left(of, mem) => self.builder.left(of, mem, number),
        };
        for &(at, value) in &table.writes {
            let here = self.builder.cmp(Cmp::Eq, at, number);
            found = self.builder.select(here, value, found);
        }
        found
    }

    /// What a node makes of tables: one with elements set or added to, or one or the other of two; `None` for other nodes.
    pub(super) fn table_made(&mut self, node: &Node) -> Lowered<Option<Val>> {
        let Some(mode) = written_by(&node.op) else { return self.table_chosen(node) };
        let ([x, y], idxs) = ([node.ins[0], node.ins[1]], &node.ins[2..]);
        let Val::Table(extents, mut table) = self.value(x)? else { return Ok(None) };
        let (places, shape) = self.places_written(&node.op, &extents, idxs)?;
        if table.writes.len() + places.len() > WRITES {
            return refuse(format!("more than {WRITES} elements of a table are written"));
        }
        let dtype = self.graph().ty(node.outs[0]).dtype;
        let from = known_shape(self.graph(), y)?;
        if from.len() > shape.len() {
            return refuse("more axes than there are to write to");
        }
        let new = self.regs_of(y, dtype)?;
        for (place, at) in places.into_iter().zip(broadcast_positions(&from, &shape)) {
            let value = match mode {
                Write::Set => new[at],
                Write::Inc => {
                    let old = self.element(&table, place);
                    self.elem(ElemOp::Add, dtype, &[old, new[at]])?
                }
            };
            table.writes.push((place, value));
        }
        Ok(Some(Val::Table(extents, table)))
    }

    /// Where a scalar holds the first of two tables, else the second: what only one of them was written is written where it is chosen.
    fn table_chosen(&mut self, node: &Node) -> Lowered<Option<Val>> {
        let Op::Elem(ElemOp::Where) = node.op else { return Ok(None) };
        let (Val::Table(extents, a), Val::Table(_, b)) = (self.value(node.ins[1])?, self.value(node.ins[2])?) else { return Ok(None) };
        let holds = self.truth_of(node.ins[0])?;
        let same = a.writes.iter().zip(&b.writes).take_while(|(a, b)| a == b).count();
        let mut table = Table { elements: a.elements, writes: a.writes[..same].to_vec(), within: false };
        for (writes, first) in [(&a.writes[same..], true), (&b.writes[same..], false)] {
            for &(at, value) in writes {
                let old = self.element(&table, at);
                let (yes, no) = if first { (value, old) } else { (old, value) };
                let value = self.builder.select(holds, yes, no);
                table.writes.push((at, value));
            }
        }
        if a.elements != b.elements || table.writes.len() > WRITES {
            return refuse("a choice between tables");
        }
        Ok(Some(Val::Table(extents, table)))
    }
}

fn written_by(op: &Op) -> Option<Write> {
    match op {
        Op::IndexWrite(write) => Some(write.mode),
        Op::GatherWrite(write) => Some(write.mode),
        _ => None,
    }
}
