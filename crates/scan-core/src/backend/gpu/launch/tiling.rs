//! How blocks share the elements of parts that follow each other, so that what a part reads of another one was written by the same block.

use super::Launch;
use crate::backend::gpu::words;
use crate::kernel::MemId;

/// Rows and columns of the elements of parts, cut into tiles. A block that has a tile computes its elements in all parts of the same tiling.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tiling {
    /// Rows of each part.
    pub rows: usize,
    /// A part has so many columns, or a multiple: then those that are so far apart belong to the same tile.
    pub period: usize,
    /// Rows and columns of a tile.
    pub tile: [usize; 2],
    /// Invocations of a block.
    pub block: usize,
}

impl Tiling {
    /// Tiles below and beside each other.
    pub fn tiles(&self) -> [usize; 2] {
        [self.rows.div_ceil(self.tile[0]), self.period.div_ceil(self.tile[1])]
    }
    /// The columns of a part of this tiling.
    pub fn columns(&self, part: &Launch) -> usize {
        part.invocations_of_all() / self.rows
    }
    /// Invocations that have a block for each tile.
    pub fn invocations(&self) -> usize {
        self.tiles().iter().product::<usize>() * self.block
    }
}

/// Words from an element of an operand to that of the next row, and of the next column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plane {
    row: isize,
    column: isize,
    /// Of an element.
    width: isize,
    columns: isize,
}

impl Plane {
    /// The places of an operand's elements in rows of so many; `None` where they lie otherwise, or an invocation has several.
    pub fn of(part: &Launch, mem: MemId, rows: usize) -> Option<Plane> {
        let (kernel, own) = (part.kernel(), &part.strides[mem.0 as usize]);
        let kind = &kernel.mems[mem];
        let carried = kernel.carries.iter().any(|c| c.mem == mem);
        let several = own.step != 0 && part.steps.0 > 1 && !carried;
        let anywhere = kind.table > 0 || kernel.stores.iter().any(|s| s.mem == mem && s.at.is_some());
        if several || anywhere || part.shape.ordered > 0 {
            return None;
        }
        let width = words(kind.dtype) as isize;
        let mut digits: Vec<(usize, isize)> = part.outer.iter().copied().zip(own.outer.iter().copied()).collect();
        digits.push((part.lanes, kind.lane.elements() * width));
        let columns = part.invocations_of_all() / rows;
        let (column, row) = (linear(&mut digits, columns)?, linear(&mut digits, rows)?);
        Some(Plane { row, column, width, columns: columns as isize })
    }

    /// True where two operands, of which the second begins so many words behind the first, have elements in common in the same row alone, and
    /// there in columns that are a multiple of the period apart.
    pub fn is_local(&self, other: &Plane, behind: isize, tiling: &Tiling) -> bool {
        let alike = (self.row, self.column, self.width) == (other.row, other.column, other.width) && self.column == self.width;
        if !alike || behind % self.width != 0 {
            return false;
        }
        let by = behind / self.width;
        let span = self.columns.max(by + other.columns) - by.min(0);
        let fits = tiling.rows == 1 || span * self.width <= self.row;
        fits && by % tiling.period as isize == 0
    }
}

/// Takes so many places from the last digits, which are extents and strides: the stride from one to the next; `None` where there is none.
fn linear(digits: &mut Vec<(usize, isize)>, count: usize) -> Option<isize> {
    let (mut stride, mut taken) = (None, 1);
    while taken < count {
        let (extent, by) = digits.pop()?;
        if extent == 1 {
            continue;
        }
        let wanted = count / taken;
        let now = extent.min(wanted);
        if stride.is_some_and(|s: isize| by != s * taken as isize) || !count.is_multiple_of(taken * now) || !extent.is_multiple_of(now) {
            return None;
        }
        stride.get_or_insert(by);
        taken *= now;
        if now < extent {
            digits.push((extent / now, by * now as isize));
        }
    }
    Some(stride.unwrap_or(0))
}
