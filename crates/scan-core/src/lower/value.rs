//! Values of a graph as scalars of a kernel, or arrays that it reads by number.

use super::{Lowered, refuse};
use crate::kernel::{Lane, MemId, Reg};
use crate::types::shape::{broadcast_positions, count};
use crate::types::{Array, Extents};

/// How the elements of arrays become scalars of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Layout {
    /// Every element is a scalar of its own: small arrays, one lane.
    Elements,
    /// Arrays have so many elements (the lanes) or one: an array is one scalar per lane.
    Lanes(usize),
    /// The step does the same to each of so many rows (the lanes): an array with an axis of that extent that numbers them is as many scalars
    /// as a row has elements, an array without one is the same for all rows.
    Rows(usize),
}

impl Layout {
    /// Refuses arrays of other numbers of elements.
    pub(super) fn admits(self, n: usize) -> Lowered<()> {
        match self {
            Layout::Lanes(lanes) if n != 1 && n != lanes => refuse(format!("a value of {n} elements beside rows of {lanes}")),
            _ => Ok(()),
        }
    }
    /// True where the elements of arrays are scalars of their own.
    pub(super) fn by_element(self) -> bool {
        !matches!(self, Layout::Lanes(_))
    }
    /// Number of lanes.
    pub(super) fn lanes(self) -> usize {
        match self {
            Layout::Elements => 1,
            Layout::Lanes(n) | Layout::Rows(n) => n,
        }
    }
    /// The axis that numbers the rows of what a step is given in memory, or hands on: the first of that extent.
    pub(super) fn row_axis(self, shape: &[usize]) -> Option<usize> {
        let Layout::Rows(n) = self else { return None };
        shape.iter().position(|&extent| extent == n)
    }
    /// Where the scalars of an array in memory lie, those of lane 0, and how they depend on the lane.
    pub(super) fn spots(self, shape: &[usize]) -> (Vec<usize>, Lane) {
        let n = count(shape);
        match (self, self.row_axis(shape)) {
            (Layout::Lanes(_), _) => (vec![0], if n == 1 { Lane::Uniform } else { Lane::Unit }),
            (_, None) => ((0..n).collect(), Lane::Uniform),
            (_, Some(axis)) => {
                let behind = count(&shape[axis + 1..]);
                let first = (0..n).filter(|at| (at / behind).is_multiple_of(shape[axis]));
                (first.collect(), if behind == 1 { Lane::Unit } else { Lane::Apart(behind as i32) })
            }
        }
    }
}

/// Where the elements of a table lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Elements {
    /// In an operand.
    Operand(MemId),
    /// In what a loop of the step left in memory of its own.
    Left(Reg, MemId),
}

/// An array in memory of which elements are read by their numbers.
#[derive(Clone, Debug)]
pub struct Table {
    /// Where they lie.
    pub elements: Elements,
    /// What the step has written so far: the number of the element, and its value.
    pub writes: Vec<(Reg, Reg)>,
    /// The numbers by which it is read are known to be those of elements.
    pub within: bool,
}

/// A value of the graph under construction.
#[derive(Clone, Debug)]
pub enum Val {
    /// Known while planning.
    Known(Array),
    /// Scalars of the kernel: one per element in row-major order, or one that stands for all lanes.
    Regs(Extents, Vec<Reg>),
    /// An array in memory of which elements are read by numbers that the step computes.
    Table(Extents, Table),
}

impl Val {
    /// Its extents.
    pub fn shape(&self) -> &[usize] {
        match self {
            Val::Known(a) => a.shape(),
            Val::Regs(shape, _) | Val::Table(shape, _) => shape,
        }
    }
    /// Number of elements.
    pub fn size(&self) -> usize {
        count(self.shape())
    }
    /// What is known of it while planning.
    pub fn known(&self) -> Option<&Array> {
        if let Val::Known(a) = self { Some(a) } else { None }
    }
}

/// Element `i` of an array as the bits of a constant.
pub(super) fn bits_of(array: &Array, i: usize) -> u64 {
    crate::dispatch!(array.dtype(), T => array_bits::<T>(array, i))
}

fn array_bits<T: crate::types::Element>(array: &Array, i: usize) -> u64 {
    let one = Array::scalar(array.as_slice::<T>()[i]);
    let bits = one.bits()[0];
    match one.dtype().size() {
        8 => bits,
        size => bits & ((1 << (8 * size)) - 1),
    }
}

/// Element positions of the lanes along some axes: one lane per element that is left without them, each in row-major order.
pub(super) fn lanes_of(shape: &[usize], axes: &[usize]) -> Vec<Vec<usize>> {
    let kept: Extents = shape.iter().enumerate().map(|(i, &n)| if axes.contains(&i) { 1 } else { n }).collect();
    let mut lanes = vec![vec![]; count(&kept)];
    broadcast_positions(&kept, shape).into_iter().enumerate().for_each(|(i, at)| lanes[at].push(i));
    lanes
}
