//! What an index selects of an array, for those who have arrays in memory of their own.

use super::gather::Places;
use super::index::{Item, Pattern, position};
use super::region::Region;
use crate::base::Result;
use crate::ir::Op;
use crate::types::Array;
use crate::types::shape::{Extents, count};
use smallvec::SmallVec;

pub(crate) use super::gather::Layout;
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

    /// Position and number of the elements that an index of integers alone names in an array of this shape; `None` for others.
    ///
    /// # Errors
    /// `E0202` where an integer lies outside its axis.
    pub fn spot(&self, shape: &[usize], integer: &dyn Fn(usize) -> i64) -> Option<Result<(usize, usize)>> {
        let Selector::Basic(pattern) = self else { return None };
        if pattern.items.iter().any(|item| *item != Item::At) {
            return None;
        }
        let axes = pattern.items.len();
        let at = (0..axes).try_fold(0, |at, k| Ok(at * shape[k] + position(integer(k), k, shape[k])?));
        let run = count(&shape[axes..]);
        Some(at.map(|at| (at * run, run)))
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
