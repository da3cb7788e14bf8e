//! How operands that broadcast along some axes are walked by a kernel of one axis.

use super::tier::Tiered;
use crate::backend::cpu::{Memory, NestPlan, Operand, Spot};
use crate::kernel::{LEVELS, Lane, Nest, Strides};
use crate::types::Extents;
use smallvec::SmallVec;
use std::sync::Arc;

/// Fewer lanes are not worth the call of a kernel for each place of the other axes.
const LANES: usize = 24;

/// Axes along which the same operands go on are one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// Its extent.
    pub extent: usize,
    /// A bit for each operand that goes on along it.
    operands: u64,
}

/// The axes of operands that broadcast to a shape, outermost first; `None` for too many operands.
pub fn axes(shapes: &[Extents], shape: &[usize]) -> Option<SmallVec<[Axis; 4]>> {
    if shapes.len() > 64 || shape.contains(&0) {
        return None;
    }
    let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
    for (at, &extent) in shape.iter().enumerate().filter(|(_, n)| **n > 1) {
        let goes_on = |own: &Extents| (at + own.len()).checked_sub(shape.len()).is_some_and(|i| own[i] != 1);
        let operands = shapes.iter().enumerate().map(|(k, own)| u64::from(goes_on(own)) << k).sum();
        match axes.last_mut() {
            Some(last) if last.operands == operands => last.extent *= extent,
            _ => axes.push(Axis { extent, operands }),
        }
    }
    Some(axes)
}

/// A kernel for operands of certain shapes.
pub struct Spread {
    /// The shapes.
    pub shapes: Vec<Extents>,
    tier: Arc<Tiered>,
    /// All axes but the outermost.
    nest: NestPlan,
    /// The extent of the outermost axis, and the bytes that each operand moves along it.
    rows: (usize, Vec<isize>),
}

impl Spread {
    /// The kernel that `kernel` makes of which operands have one element for all lanes; `None` where so few lanes are not worth it.
    pub fn new(shapes: &[Extents], axes: &[Axis], kernel: impl FnOnce(&[bool]) -> Option<Arc<Tiered>>) -> Option<Spread> {
        let (lanes, outer) = axes.split_last().filter(|axes| axes.0.extent >= LANES)?;
        // The last operand is the result, which goes on along all axes.
        let goes_on = |axis: &Axis, k: usize| k >= shapes.len() || axis.operands >> k & 1 == 1;
        let tier = kernel(&(0..shapes.len()).map(|k| !goes_on(lanes, k)).collect::<Vec<_>>())?;
        if tier.kernel().mems.len() != shapes.len() + 1 || tier.kernel().mems.iter().last()?.lane != Lane::Unit {
            return None;
        }
        let strides = tier.kernel().mems.iter().enumerate().map(|(k, mem)| {
            let mut row = mem.dtype.size() * if goes_on(lanes, k) { lanes.extent } else { 1 };
            let mut strides: SmallVec<[isize; 3]> = SmallVec::new();
            for axis in outer.iter().rev() {
                strides.insert(0, if goes_on(axis, k) { row as isize } else { 0 });
                row *= if goes_on(axis, k) { axis.extent } else { 1 };
            }
            strides
        });
        let strides: Vec<_> = strides.collect();
        let rows = (outer.first()?.extent, strides.iter().map(|s| s[0]).collect());
        let inner = strides.iter().map(|s| Strides { step: 0, outer: s[1..].into() }).collect();
        let nest = Nest::of(tier.kernel().clone(), lanes.extent, 1, []);
        let nest = Nest { strides: inner, outer: outer[1..].iter().map(|axis| axis.extent).collect(), ..nest };
        Some(Spread { shapes: shapes.to_vec(), tier, nest: NestPlan::new(nest), rows })
    }
    /// Runs; `work` is told instructions times lanes, and may stop it.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn run<'a, E>(&'a self, memory: impl Iterator<Item = Memory<'a>>, mut work: impl FnMut(usize) -> Result<(), E>) -> Result<(), E> {
        let (rows, strides) = &self.rows;
        self.tier.expect(self.nest.lanes, rows * self.nest.places().max(1));
        let operand = |(memory, &stride)| Spot::new(Operand { memory, offset: 0, stride }, [0; LEVELS - 1]);
        let spots: SmallVec<[Spot; 8]> = memory.zip(strides).map(operand).collect();
        let run = self.tier.nest(&self.nest, spots.iter().copied(), [*rows, 1, 1]);
        let of_a_row = self.nest.lanes * self.nest.places().max(1) * self.nest.kernel.body.len();
        for row in 0..*rows {
            run.run(&[row, 0, 0]);
            work(of_a_row)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_along_which_the_same_operands_go_on_are_one() {
        let shapes: Vec<Extents> = [&[7, 1, 2, 3][..], &[5, 2, 3], &[1], &[7, 5, 1, 1]].map(Extents::from_slice).to_vec();
        let found = axes(&shapes, &[7, 5, 2, 3]).unwrap();
        let found: Vec<(usize, u64)> = found.iter().map(|a| (a.extent, a.operands)).collect();
        assert_eq!(found, [(7, 0b1001), (5, 0b1010), (6, 0b0011)]);
        assert!(axes(&shapes, &[7, 5, 0, 3]).is_none());
    }
}
