//! A kernel inside counted loops: the walk over arrays of several axes.

use super::{Kernel, MemId};
use crate::types::DType;
use smallvec::SmallVec;

/// So many loops may stand in each other around a nest: a loop, and loops in its steps.
pub const LEVELS: usize = 3;

/// A kernel that is run at every place of further axes, in row-major order of these.
///
/// ```text
/// fills
/// for each place of the outer axes
///     the kernel: for each lane, for t in 0 .. steps
/// ```
///
/// A carry whose operand stays where it is along an outer axis goes on from there: sums over several axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Nest {
    /// What is done at a place.
    pub kernel: Kernel,
    /// Lanes of the kernel.
    pub lanes: usize,
    /// Steps of the kernel.
    pub steps: usize,
    /// The number of the first step.
    pub first: i64,
    /// Extents of the axes around, outermost first.
    pub outer: SmallVec<[usize; 3]>,
    /// How each operand of the kernel moves.
    pub strides: Vec<Strides>,
    /// What is written before: units of sums.
    pub fills: Vec<Fill>,
}

/// What a kernel does with an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// It is only read.
    Read,
    /// It is stored to.
    Stored,
    /// Steps hand it on.
    Carried,
}

impl Use {
    /// What a kernel does with each of its operands.
    pub fn of(kernel: &Kernel) -> SmallVec<[Use; 16]> {
        let mut uses: SmallVec<[Use; 16]> = SmallVec::from_elem(Use::Read, kernel.mems.len());
        kernel.stores.iter().for_each(|s| uses[s.mem.0 as usize] = Use::Stored);
        kernel.carries.iter().for_each(|c| uses[c.mem.0 as usize] = Use::Carried);
        uses
    }
}

/// How an operand moves, in bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Strides {
    /// From one step to the next.
    pub step: isize,
    /// From one place to the next along each outer axis.
    pub outer: SmallVec<[isize; 3]>,
}

/// An operand whose first elements all get one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fill {
    /// Which operand.
    pub operand: usize,
    /// The bits of the value.
    pub bits: u64,
    /// How many elements.
    pub count: usize,
}

impl Nest {
    /// True for an operand that is written.
    pub fn writes(&self, operand: usize) -> bool {
        self.kernel.writes(MemId(operand as u32))
    }
    /// A kernel of so many steps, of which each operand moves by so many bytes a step.
    pub fn of(kernel: Kernel, lanes: usize, steps: usize, strides: impl IntoIterator<Item = isize>) -> Nest {
        let strides = strides.into_iter().map(|step| Strides { step, outer: SmallVec::new() }).collect();
        Nest { kernel, lanes, steps, first: 0, outer: SmallVec::new(), strides, fills: vec![] }
    }
    /// True for a kernel of one step and nothing around.
    pub fn plain(&self) -> bool {
        self.steps == 1 && self.outer.is_empty() && self.fills.is_empty() && self.kernel.carries.is_empty()
    }
    /// Places of the outer axes.
    pub fn places(&self) -> usize {
        self.outer.iter().product()
    }
    /// The bytes that an operand of this use touches, before and behind its first element's begin.
    pub fn reach(&self, operand: usize, of: Use) -> (isize, isize) {
        let mem = &self.kernel.mems[MemId(operand as u32)];
        let size = mem.dtype.size() as isize;
        let filled = self.fills.iter().filter(|f| f.operand == operand).map(|f| f.count as isize * size).max().unwrap_or(0);
        if self.places() == 0 {
            return (0, filled);
        }
        let own = &self.strides[operand];
        let steps = if of == Use::Carried { 0 } else { own.step * (self.steps as isize - 1) };
        let spans = std::iter::once(steps).chain(own.outer.iter().zip(&self.outer).map(|(&s, &n)| s * (n as isize - 1)));
        let (low, high) = spans.fold(mem.row(self.lanes), |(low, high), span| (low + span.min(0), high + span.max(0)));
        (low, high.max(filled))
    }
}

/// The bits of the element that every other one of a dtype is greater than, or less than: ±∞ of floats.
pub fn extreme_unit(dtype: DType, largest: bool) -> u64 {
    let top = 8 * dtype.size() as u32 - 1;
    match dtype {
        DType::F32 => u64::from(if largest { f32::NEG_INFINITY } else { f32::INFINITY }.to_bits()),
        DType::F64 => if largest { f64::NEG_INFINITY } else { f64::INFINITY }.to_bits(),
        DType::Bool => u64::from(!largest),
        d if d.is_unsigned() => {
            if largest {
                0
            } else {
                u64::MAX >> (63 - top)
            }
        }
        _ => {
            if largest {
                1 << top
            } else {
                (1 << top) - 1
            }
        }
    }
}
