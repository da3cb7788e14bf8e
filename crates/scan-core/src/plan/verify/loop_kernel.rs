//! What holds of a loop that is one kernel.

use super::bounds::{Checked, bytes_of, ensure};
use super::states::{before, windows};
use crate::base::Id;
use crate::ir::Scan;
use crate::kernel::{self, Lane, Mem, Use};
use crate::plan::LoopKernel;
use crate::plan::kernel::Place;
use crate::types::{DType, Type};

pub(super) fn check(plan: &LoopKernel, scan: &Scan) -> Checked {
    windows(&plan.windows, scan)?;
    before(&plan.before, scan)?;
    kernel::verify(&plan.kernel).map_err(|e| e.title.clone())?;
    ensure(plan.lanes > 0 && (!plan.kernel.is_single() || plan.lanes == 1), || "a kernel of one lane has many".into())?;
    ensure(plan.places.len() == plan.kernel.mems.len(), || "an operand without a place".into())?;
    let uses = Use::of(&plan.kernel);
    for (k, ((place, mem), of)) in plan.places.iter().zip(plan.kernel.mems.iter()).zip(&uses).enumerate() {
        operand(plan, scan, place, mem, *of).map_err(|text| format!("m{k}: {text}"))?;
    }
    rows(plan, scan)?;
    let one = |place: &Place| plan.places.iter().filter(|p| *p == place).count() == 1;
    ensure(one(&Place::Failed) == plan.guarded, || "a kernel that may fail tells so".into())?;
    ensure(one(&Place::Votes) == plan.votes.is_some(), || "a kernel whose lanes vote tells so".into())?;
    let stops = plan.kernel.stop.is_some() || plan.votes.is_some();
    ensure(scan.until || plan.guarded || !stops, || "a loop that stops has a condition".into())?;
    ensure(one(&Place::Stopped) || plan.guarded || plan.kernel.stop.is_none(), || "a kernel that stops tells so".into())?;
    let voters = plan.votes.is_none_or(|votes| votes.voters == plan.lanes || votes.voters == 1);
    ensure(voters, || "votes of others".into())
}

fn operand(plan: &LoopKernel, scan: &Scan, place: &Place, mem: &Mem, of: Use) -> Checked {
    let before = &plan.before;
    let typed = |ty: &Type, at: usize| {
        let bytes = bytes_of(ty).ok_or("extents that are not known")?;
        ensure(ty.dtype == mem.dtype, || format!("{place} holds no {}", mem.dtype))?;
        let (low, high) = mem.row(plan.lanes);
        let (first, size) = ((at * mem.dtype.size()) as isize, bytes as isize);
        ensure(first + low >= 0 && first + high <= size, || format!("{place} reaches beyond {bytes} bytes"))
    };
    let window = |id: crate::ir::StateId| plan.windows.get(id.idx()).ok_or_else(|| format!("there is no state{}", id.idx()));
    match place {
        Place::Seq { id, at } => {
            ensure(of == Use::Read && scan.seqs.get(*id).is_some(), || format!("{place} is no sequence that is read"))?;
            typed(before.ty(before.params()[scan.seq_param(*id)]), *at)
        }
        Place::Before { value, at } => {
            let Some(&v) = before.results().get(*value) else { return Err(format!("there is no {place}")) };
            ensure(of == Use::Read, || format!("{place} is written"))?;
            typed(before.ty(v), *at)
        }
        Place::Row { id, offset, at } => {
            let w = window(*id)?;
            typed(&Type::known(w.dtype, &w.shape), *at)?;
            let fits = match of {
                Use::Stored => w.stored && *offset == w.first_write,
                Use::Read => *offset == w.span && w.entering || w.far.contains(offset),
                Use::Carried => false,
            };
            // Tables of a state are written and read by number.
            ensure(fits || mem.table > 0, || format!("{place} is used in another way"))
        }
        Place::Window { id, row, at } => {
            let w = window(*id)?;
            typed(&Type::known(w.dtype, &w.shape), *at)?;
            ensure(w.carried.get(*row) == Some(&true), || format!("{place} is not handed on"))?;
            ensure(of == Use::Carried || mem.table > 0, || format!("{place} is handed on by no carry"))
        }
        Place::Stopped | Place::Failed | Place::Votes => {
            ensure(mem.dtype == DType::Bool && of != Use::Read, || format!("{place} is no bool that is written"))?;
            ensure(*place != Place::Stopped || mem.lane == Lane::Uniform, || "a loop stops or not".into())
        }
    }
}

/// Rows that are handed on are carried, and those that are stored are written, element by element.
fn rows(plan: &LoopKernel, scan: &Scan) -> Checked {
    for (id, w) in scan.states.ids().zip(&plan.windows) {
        let elements: usize = w.shape.iter().product();
        let covered = |wanted: &dyn Fn(&Place) -> Option<usize>| {
            let mut seen = vec![false; elements];
            for (place, mem) in plan.places.iter().zip(plan.kernel.mems.iter()) {
                let Some(at) = wanted(place) else { continue };
                let lanes = if mem.lane.varies() { plan.lanes } else { 1 };
                let apart = mem.lane.elements();
                for first in at..at + mem.table.max(1) {
                    (0..lanes).for_each(|lane| {
                        if let Some(seen) = seen.get_mut((first as isize + lane as isize * apart).max(0) as usize) {
                            *seen = true;
                        }
                    });
                }
            }
            seen.into_iter().all(|seen| seen)
        };
        for j in w.carried_offsets() {
            let carried = covered(&|place| match place {
                Place::Window { id: of, row, at } if (*of, *row) == (id, j) => Some(*at),
                _ => None,
            });
            ensure(carried, || format!("row {j} of state{} is not handed on as a whole", id.idx()))?;
        }
        let uses = Use::of(&plan.kernel);
        let written = |k: &Place| plan.places.iter().zip(&uses).any(|(place, of)| place == k && *of == Use::Stored);
        let stored = covered(&|place| match place {
            Place::Row { id: of, offset, at } if (*of, *offset) == (id, w.first_write) && written(place) => Some(*at),
            _ => None,
        });
        ensure(stored || !w.stored, || format!("rows of state{} are not stored as a whole", id.idx()))?;
    }
    Ok(())
}
