//! The window of a state as values that one step hands to the next.

use super::nodes::Lowering;
use super::value::Layout;
use super::{Lowered, refuse};
use crate::ir::{Keep, Scan, State, StateId};
use crate::kernel::{CarryId, Lane, MemId, Reg};
use crate::plan::Window;
use crate::plan::kernel::Place;
use crate::types::DType;
use crate::types::shape::Extents;

/// From so many steps on it is better to read a row again than to hand it on from step to step.
const FAR: usize = 16;

impl Window {
    /// What of a state is handed on, entered and stored.
    pub(super) fn new(state: &State, shape: Extents) -> Lowered<Window> {
        let span = state.span();
        let first_write = state.writes.iter().copied().min().unwrap_or(0);
        let newest = state.writes.iter().copied().max().unwrap_or(0);
        let last = match state.keep {
            Keep::All => None,
            Keep::Last(k) => Some(k),
        };
        if state.writes.is_empty() || last.is_some() && newest != span {
            return refuse("a state whose newest row is not written");
        }
        let stored = last.is_none_or(|k| k > span);
        let newest_alone = stored && state.writes[..] == [span];
        let mut far: Vec<usize> = state.reads.iter().copied().filter(|j| newest_alone && j + FAR <= span).collect();
        far.dedup();
        let mut carried: Vec<bool> = vec![];
        for j in 0..span {
            let kept = if stored { j >= first_write } else { j + last.unwrap_or(0) >= span };
            let hands_on = j > 0 && carried[j - 1] && !state.writes.contains(&j);
            carried.push(state.reads.contains(&j) && !far.contains(&j) || kept || hands_on);
        }
        let enters = span > 0 && carried[span - 1] && !state.writes.contains(&span);
        let entering = state.reads.contains(&span) || enters;
        Ok(Window { shape, dtype: state.row.dtype, span, first_write, stored, entering, carried, far })
    }
    /// How far operands in the buffer move, where a kernel may know it.
    fn stride(&self, layout: Layout) -> Option<i32> {
        known_stride(layout, self.row_bytes(), false)
    }
}

/// A state while its step is lowered: per scalar of a row, the values at the offsets.
pub(super) struct Open {
    id: StateId,
    window: Window,
    /// Where the scalars of a row lie in it.
    spots: Vec<usize>,
    carries: Vec<Vec<Option<(CarryId, Reg)>>>,
    entering: Vec<Option<Reg>>,
    /// Per scalar of a row, what is read of each row that is far.
    far: Vec<Vec<Reg>>,
}

impl Open {
    /// Makes the carries and loads, and gives the step its reads.
    pub(super) fn new(lowering: &mut Lowering, scan: &Scan, id: StateId, window: Window, mems: &mut Mems) -> Lowered<Open> {
        let (spots, lane) = lowering.layout().spots(&window.shape);
        let mut open = Open { id, window, spots, carries: vec![], entering: vec![], far: vec![] };
        for at in open.spots.clone() {
            let row = |row| Place::Window { id, row, at };
            let carries = (0..open.window.span)
                .map(|j| {
                    open.window.carried[j].then(|| {
                        let mem = mems.add(&mut lowering.builder, open.window.dtype, lane, row(j));
                        lowering.builder.carry(mem)
                    })
                })
                .collect();
            open.carries.push(carries);
            let enter = open.window.entering.then(|| {
                // Rows that are written move through what is read here.
                let mem = mems.add(&mut lowering.builder, open.window.dtype, lane, Place::Row { id, offset: open.window.span, at });
                lowering.builder.load(mem)
            });
            open.entering.push(enter);
            let far = open.window.far.iter().map(|&offset| {
                let (place, stride) = (Place::Row { id, offset, at }, open.window.stride(lowering.layout()));
                let mem = mems.add_by(&mut lowering.builder, open.window.dtype, lane, place, stride);
                lowering.builder.load(mem)
            });
            open.far.push(far.collect());
        }
        for (p, &offset) in scan.read_params(id).zip(&scan.states[id].reads) {
            let regs = (0..open.spots.len()).filter_map(|k| open.before(k, offset)).collect();
            lowering.given(lowering.params()[p], regs)?;
        }
        Ok(open)
    }

    /// Scalar k of a row as it was before the step.
    fn before(&self, k: usize, offset: usize) -> Option<Reg> {
        if let Some(which) = self.window.far.iter().position(|&far| far == offset) {
            return Some(self.far[k][which]);
        }
        if offset == self.window.span { self.entering[k] } else { self.carries[k][offset].map(|c| c.1) }
    }

    /// Hands the rows on and stores the one that is final.
    pub(super) fn close(self, lowering: &mut Lowering, scan: &Scan, mems: &mut Mems) -> Lowered<Window> {
        let state = &scan.states[self.id];
        let results: Vec<_> = scan.write_results(self.id).map(|at| lowering.results()[at]).collect();
        let written: Vec<Vec<Reg>> = results.into_iter().map(|v| lowering.handed_on(v)).collect::<Lowered<_>>()?;
        let lane = lowering.layout().spots(&self.window.shape).1;
        for ((k, carries), &at) in self.carries.iter().enumerate().zip(&self.spots) {
            let after = |offset: usize| match state.writes.iter().rposition(|&w| w == offset) {
                Some(which) => Some(written[which][k]),
                None => self.before(k, offset),
            };
            for (j, carry) in carries.iter().enumerate() {
                let Some((id, _)) = carry else { continue };
                let Some(next) = after(j + 1) else { return refuse("a row that nothing hands on") };
                lowering.builder.set_next(*id, next);
            }
            if self.window.stored {
                let offset = self.window.first_write;
                let (place, stride) = (Place::Row { id: self.id, offset, at }, self.window.stride(lowering.layout()));
                let mem = mems.add_by(&mut lowering.builder, self.window.dtype, lane, place, stride);
                let Some(value) = after(offset) else { return refuse("a row that nothing writes") };
                lowering.builder.store(mem, value);
            }
        }
        Ok(self.window)
    }
}

/// How far an operand in rows of so many bytes moves, where a kernel may know it: with lanes, that engines may split, it does not.
pub(super) fn known_stride(layout: Layout, row_bytes: usize, reverse: bool) -> Option<i32> {
    let bytes = i32::try_from(row_bytes).ok().filter(|_| layout == Layout::Elements);
    bytes.map(|bytes| if reverse { -bytes } else { bytes })
}

/// Operands of a kernel under construction, with their places.
#[derive(Default)]
pub(super) struct Mems {
    pub(super) places: Vec<Place>,
}

impl Mems {
    /// A new operand.
    pub(super) fn add(&mut self, builder: &mut crate::kernel::Builder, dtype: DType, lane: Lane, place: Place) -> MemId {
        self.add_by(builder, dtype, lane, place, None)
    }
    /// A new operand that moves by so many bytes a step.
    pub(super) fn add_by(
        &mut self,
        builder: &mut crate::kernel::Builder,
        dtype: DType,
        lane: Lane,
        place: Place,
        stride: Option<i32>,
    ) -> MemId {
        self.places.push(place);
        builder.mem_by(dtype, lane, stride)
    }
}
