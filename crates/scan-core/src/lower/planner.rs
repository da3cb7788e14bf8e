//! A step on its way to a list: where its values lie.

use super::extents::{known_row, known_shape};
use super::kinds::{Kind, Kinds};
use super::refusal::{Lowered, refuse};
use crate::ir::{Graph, Scan, StateId, Value};
use crate::plan::Window;
use crate::plan::list::{At, Item, Place, STEP};
use crate::types::shape::count;
use rustc_hash::FxHashMap;

/// What is computed before the loop.
#[derive(PartialEq, Eq)]
pub(super) enum Root {
    /// A value.
    Of(Value),
    /// A value with its axes in another order.
    Turned(Value, Vec<usize>),
}

/// A step on its way to a list.
pub(super) struct Planner<'a> {
    pub(super) scan: &'a Scan,
    pub(super) body: &'a Graph,
    pub(super) kinds: &'a Kinds,
    pub(super) places: FxHashMap<Value, Place>,
    /// What is computed before the loop.
    pub(super) roots: Vec<Root>,
    pub(super) items: Vec<Item>,
    pub(super) slots: Vec<usize>,
    pub(super) windows: Vec<Window>,
    pub(super) rows: FxHashMap<Value, StateId>,
    /// In so many loops the loop stands.
    pub(super) level: usize,
    /// As [`eager`](crate::plan::StepList::eager).
    pub(super) eager: bool,
}

impl<'a> Planner<'a> {
    pub(super) fn new(scan: &'a Scan, body: &'a Graph, kinds: &'a Kinds, level: usize) -> Lowered<Self> {
        let mut planner = Planner {
            scan,
            body,
            kinds,
            places: FxHashMap::default(),
            roots: vec![],
            items: vec![],
            slots: vec![8],
            windows: vec![],
            rows: FxHashMap::default(),
            level,
            eager: false,
        };
        let params = body.params();
        planner.put(params[Scan::STEP], At::Slot(STEP))?;
        for id in scan.seqs.ids() {
            planner.put(params[scan.seq_param(id)], At::Seq(id))?;
        }
        for (id, state) in scan.states.enumerate() {
            let row = known_row(scan, body, id)?;
            for p in scan.read_params(id).zip(&state.reads) {
                planner.put(params[p.0], At::Row(id, *p.1))?;
            }
            if count(&row) == 0 && !state.reads.is_empty() {
                return refuse("rows without elements");
            }
            planner.windows.push(Window::new(state, row)?);
        }
        Ok(planner)
    }

    pub(super) fn put(&mut self, v: Value, at: At) -> Lowered<()> {
        let place = Place::whole(at, known_shape(self.body, v)?, self.body.ty(v).dtype);
        self.places.insert(v, place);
        Ok(())
    }
    /// A new temporary for a value.
    pub(super) fn slot(&mut self, v: Value) -> Lowered<Place> {
        let size = count(&known_shape(self.body, v)?) * self.body.ty(v).dtype.size();
        self.slots.push(size);
        self.put(v, At::Slot(self.slots.len() - 1))?;
        Ok(self.places[&v].clone())
    }
    /// Where a value lies; what does not depend on the step is computed before the loop.
    pub(super) fn place(&mut self, v: Value) -> Lowered<Place> {
        if let Some(place) = self.places.get(&v) {
            return Ok(place.clone());
        }
        if self.kinds.of(v) == Kind::Step {
            return refuse("a value that no part of the step makes");
        }
        self.roots.push(Root::Of(v));
        self.put(v, At::Before(self.roots.len() - 1))?;
        Ok(self.places[&v].clone())
    }
    pub(super) fn places(&mut self, values: &[Value]) -> Lowered<Vec<Place>> {
        values.iter().map(|&v| self.place(v)).collect()
    }
}
