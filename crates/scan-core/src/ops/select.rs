//! What an index selects of an array, for those who have arrays in memory of their own.

use super::gather::Places;
use super::index::{Item, Pattern};
use super::region::Region;
use crate::base::Result;
use crate::ir::Op;
use crate::ir::op::Write;
use crate::types::Array;
use crate::types::shape::{Extents, count};
use smallvec::SmallVec;

pub(crate) use super::gather::{Layout, index_axis};
pub(crate) use super::index::position;
pub use super::region::{spread, write_run};
pub(crate) use super::support::Number;

/// The way in which an op names elements of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selector {
    /// By integers and slices, whose bounds are inputs.
    Basic(Pattern),
    /// By index arrays along these axes.
    Advanced(Vec<usize>),
}

/// The elements that were named.
pub enum Selected {
    /// A part with strides.
    Region(Region),
    /// Places in any order.
    Places(Places),
}

/// Writes y, of as many elements as the runs have or of one, over runs of x, whose first element is theirs, or adds it to them.
pub fn write_runs<T: Number>(x: &mut [T], y: &[T], runs: &Runs, mode: Write) {
    let step = runs.step.max(1);
    let put = |x: &mut T, y: T| *x = if mode == Write::Set { y } else { x.plus(y) };
    match y {
        [one] => x.chunks_mut(step).for_each(|x| x[..runs.run].iter_mut().for_each(|x| put(x, *one))),
        _ if runs.run == 1 => x.iter_mut().step_by(step).zip(y).for_each(|(x, y)| put(x, *y)),
        _ => x.chunks_mut(step).zip(y.chunks(runs.run)).for_each(|(x, y)| write_run(&mut x[..runs.run], y, mode)),
    }
}

/// What an index of integers names.
pub struct ByIntegers {
    /// Per integer: the axis, its extent, and the elements from one place along it to the next.
    axes: SmallVec<[(usize, usize, usize); 2]>,
    /// The runs of the first places.
    pub first: Runs,
}

impl ByIntegers {
    /// The runs that integers name.
    ///
    /// # Errors
    /// `E0202` where one lies outside its axis.
    #[inline]
    pub fn runs(&self, integer: impl Fn(usize) -> i64) -> Result<Runs> {
        let mut at = 0;
        for (k, &(axis, extent, elements)) in self.axes.iter().enumerate() {
            at += position(integer(k), axis, extent)? * elements;
        }
        Ok(Runs { at, ..self.first })
    }
}

/// Runs of elements at equal distances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Runs {
    /// The first element.
    pub at: usize,
    /// Elements of a run.
    pub run: usize,
    /// How many runs.
    pub count: usize,
    /// Elements from the begin of a run to the next.
    pub step: usize,
}

impl Selector {
    /// That of an op that reads or writes by an index.
    pub fn of(op: &Op) -> Option<Selector> {
        match op {
            Op::Index(o) => Pattern::parse(&o.pattern).ok().map(Selector::Basic),
            Op::IndexWrite(o) => Pattern::parse(&o.pattern).ok().map(Selector::Basic),
            Op::Gather(o) => Some(Selector::Advanced(o.axes.clone())),
            Op::GatherWrite(o) => Some(Selector::Advanced(o.axes.clone())),
            _ => None,
        }
    }

    /// The index inputs that are integers, or arrays of them, each with the axis that it names places of; `None` where a bound of a slice
    /// is not among those that are known.
    pub(crate) fn integers(&self, known: &[bool]) -> Option<Vec<(usize, usize)>> {
        let pattern = match self {
            Selector::Basic(pattern) => pattern,
            Selector::Advanced(axes) => return Some(axes.iter().copied().enumerate().collect()),
        };
        let (mut input, mut out) = (0, vec![]);
        for (axis, item) in pattern.items.iter().enumerate() {
            let inputs = input..input + item.inputs();
            input = inputs.end;
            match item {
                Item::At => out.push((inputs.start, axis)),
                Item::Slice { .. } if inputs.clone().all(|k| known[k]) => {}
                Item::Slice { .. } => return None,
            }
        }
        Some(out)
    }

    /// What an index of integers names in an array of this shape, of which some axes side by side may be taken whole; `None` for others.
    pub fn by_integers(&self, shape: &[usize]) -> Option<ByIntegers> {
        let Selector::Basic(pattern) = self else { return None };
        let items = &pattern.items[..];
        let named = items.iter().rposition(|item| *item == Item::At)? + 1;
        let whole = items.iter().position(|item| *item != Item::At).unwrap_or(named).min(named);
        let behind = items[whole..named].iter().position(|item| *item == Item::At).map_or(named, |n| whole + n);
        let others = items[whole..behind].iter().chain(&items[named..]).any(|item| *item != Item::ALL);
        if others || items[behind..named].iter().any(|item| *item != Item::At) {
            return None;
        }
        let axes = (0..whole).chain(behind..named).map(|axis| (axis, shape[axis], count(&shape[axis + 1..])));
        let (run, step) = (count(&shape[named..]), count(&shape[behind..]));
        Some(ByIntegers { axes: axes.collect(), first: Runs { at: 0, run, count: count(&shape[whole..behind]), step } })
    }

    /// The elements of an array of this shape; the index inputs are asked for as integers or as arrays.
    ///
    /// # Errors
    /// `E0202` where an index lies outside its axis, `E0201` where index arrays do not broadcast together.
    pub fn select(&self, shape: &[usize], integer: &dyn Fn(usize) -> i64, array: &dyn Fn(usize) -> Array) -> Result<Selected> {
        Ok(match self {
            Selector::Basic(pattern) => {
                let idxs: SmallVec<[i64; 4]> = (0..pattern.inputs()).map(integer).collect();
                Selected::Region(pattern.region(shape, &idxs)?)
            }
            Selector::Advanced(axes) => {
                let idxs: Vec<Array> = (0..axes.len()).map(array).collect();
                Selected::Places(Places::new(shape, axes, &idxs)?)
            }
        })
    }
}

impl Selected {
    /// Extents of what is selected.
    pub fn shape(&self) -> Extents {
        match self {
            Selected::Region(region) => region.shape(),
            Selected::Places(places) => places.shape().clone(),
        }
    }
    /// Calls `visit(position, length)` per run of consecutive elements, in row-major order of what is selected.
    pub fn runs(&self, mut visit: impl FnMut(usize, usize)) {
        match self {
            Selected::Region(region) => region.runs(visit),
            Selected::Places(places) => places.runs(|at| visit(at, places.run())),
        }
    }
}
