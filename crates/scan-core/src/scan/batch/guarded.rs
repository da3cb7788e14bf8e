//! What rows that are done are given. Their steps run beside those of rows that go on, and nothing of them is used. So that they do not fail, and no
//! slope of theirs is infinite (times a cotangent of 0 that is NaN), a row that is done is given what it was given at its first step; one
//! that runs no step at all, what the first row is given that runs one.

use crate::base::{Id, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Scan, State, Value};
use crate::types::Type;

/// A parameter of a step that changes with the steps.
pub(super) struct Moving {
    /// Its type in the loop of all rows.
    ty: Type,
    /// It differs from row to row.
    varies: bool,
    /// What it is at the first step; where nothing is here, 0.
    first: Option<Value>,
}

/// The step's number, rows of sequences, rows of states: as the loop of all rows has them, whose inputs up to the captured values are given.
pub(super) fn moving(
    scan: &Scan,
    b: &mut Batching,
    (ins, outer): (&[Batched], &[Value]),
    (states, rows): (&[State], &[bool]),
) -> Vec<Moving> {
    let number = scan.body.ty(scan.body.params()[Scan::STEP]).clone();
    let mut found = vec![Moving { ty: number, varies: false, first: None }];
    for (id, seq) in scan.seqs.enumerate() {
        let at = scan.seq_input(id);
        let ty = b.g.ty(outer[at]).row();
        found.push(Moving { ty, varies: ins[at].varies(), first: Some(first_row(b.g, outer[at], (0, seq.reverse))) });
    }
    for (id, state) in scan.states.enumerate() {
        for &offset in &state.reads {
            let first = scan.init_input(id).map(|at| first_row(b.g, outer[at], (offset, false)));
            found.push(Moving { ty: states[id.idx()].row.clone(), varies: rows[id.idx()], first });
        }
    }
    found
}

/// Row `at` from one end of an array; zeros where it has none, since no step runs then.
fn first_row(g: &mut Graph, x: Value, (at, from_end): (usize, bool)) -> Value {
    let row = g.int(if from_end { -1 - at as i64 } else { at as i64 });
    if g.ty(x).dims[0].value().is_some_and(|n| n > at) {
        return g.row(x, row);
    }
    let behind = g.int(if from_end { i64::MAX } else { at as i64 + 1 });
    let (one, zero) = (g.int(1), g.int(0));
    let (found, none) = (g.slice_rows(x, row, behind), g.zero_rows_like(one, x));
    let some = g.join_rows(&[found, none]);
    g.row(some, zero)
}

/// For each row its own number; for one that runs no step, that of the first row that runs one.
pub(super) fn places(b: &mut Batching, goes: Value) -> Result<Value> {
    let (numbers, extent, minus_one) = (b.numbers(0)?, b.extent(), b.g.int(-1));
    let last = b.g.add(extent, minus_one);
    let behind = b.g.expand(last, &[0]);
    let running = b.g.select(goes, numbers, last);
    let some = b.g.join_rows(&[running, behind]);
    let first = b.apply(Reduce { kind: ReduceKind::Min, axes: vec![0], keepdims: false }, &[some])?;
    Ok(b.g.select(goes, numbers, first))
}

/// Values that differ from row to row, at these places.
pub(super) fn at_places(b: &mut Batching, places: Value, x: &mut Value) -> Result<()> {
    *x = b.apply(Gather { axes: vec![0] }, &[*x, places])?;
    Ok(())
}

impl Moving {
    /// The first value where rows run steps at these places, through which no gradient flows.
    pub(super) fn settle(&mut self, b: &mut Batching, places: Option<Value>) -> Result<()> {
        let varies = self.varies;
        let Some(first) = &mut self.first else { return Ok(()) };
        if let Some(places) = places.filter(|_| varies) {
            at_places(b, places, first)?;
        }
        *first = b.g.emit(StopGradient {}, &[*first]);
        Ok(())
    }
    /// What the loop of all rows captures for it.
    pub(super) fn captured(&self) -> Option<Value> {
        self.first
    }
    /// The parameter of the body.
    pub(super) fn param(&self, body: &mut Graph, name: Option<&str>) -> Value {
        body.param(self.ty.clone(), name)
    }
    /// What the step of all rows is given: the parameter where a row goes on, else what it was at the first step.
    pub(super) fn guarded(&self, body: &mut Graph, (goes, now): (Value, Value)) -> Value {
        let first = match self.first {
            Some(_) => body.param(self.ty.clone(), None),
            None => body.number(self.ty.dtype, 0.0),
        };
        let axes: Vec<usize> = (1..self.ty.rank() + usize::from(!self.varies)).collect();
        let goes = body.expand(goes, &axes);
        body.select(goes, now, first)
    }
}
