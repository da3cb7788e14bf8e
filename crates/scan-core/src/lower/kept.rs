//! Rows that loops in the step of a kernel keep: they lie in memory of the loop's own, of which what stands behind it reads elements by their numbers.
//!
//! ```text
//! h = scan n { … keep all }                        r9 = loop r4 steps
//!                                                      m2 is own;  begin m2[0] = r1 …       the initial row, then those of its steps
//! g = scan n { const h; x = h[n − t]; … }          r12 = loop r4 steps
//!                                                      m0 is m2 of r9;  r3 = gather m0[r2] …
//! ```

use super::extents::known_shape;
use super::nested::{Held, Inner};
use super::nodes::Lowering;
use super::rooms::Roomy;
use super::value::{Elements, Table, Val};
use super::{Lowered, refuse};
use crate::ir::Node;
use crate::kernel::{Argument, Bin, Cmp, MemId, Reg};
use crate::plan::Window;
use crate::types::DType;
use crate::types::shape::count;

/// So many bytes at most are one table's.
const MOST: usize = 1 << 22;

impl Lowering<'_> {
    /// That a loop which was given room for so many steps ended before.
    pub(super) fn ended(&mut self, made: Reg, room: Option<&Roomy>) -> Lowered<()> {
        let Some(room) = room.filter(|room| room.cut) else { return Ok(()) };
        let most = self.builder.integer(DType::I64, room.most as i64);
        let ended = self.builder.cmp(Cmp::Lt, made, most);
        self.require(ended)
    }
    /// Gives what stands behind a loop the rows that it keeps.
    pub(super) fn kept(&mut self, node: &Node, made: Reg, states: &[Held]) -> Lowered<()> {
        for (&v, held) in node.outs.iter().zip(states) {
            if let Some(mem) = held.kept {
                let table = Table { elements: Elements::Left(made, mem), writes: vec![], within: false };
                self.bind(v, Val::Table(known_shape(self.graph(), v)?, table));
            }
        }
        Ok(())
    }
}

impl Inner<'_> {
    /// Memory of its own for so many rows, of which the first are those that it begins with.
    pub(super) fn own_rows(&mut self, window: &Window, rows: usize, begin: &[Reg]) -> Lowered<MemId> {
        let elements = rows * count(&window.shape);
        let bytes = elements * window.dtype.size();
        if bytes > MOST {
            return refuse(format!("a loop that keeps {bytes} bytes of rows"));
        }
        // Rows of no elements have a place, too: what stands behind the loop is given it.
        let mem = self.lowering.builder.table(window.dtype, elements.max(1), Some(0));
        self.operands.push(Argument::Own);
        self.begin.extend(begin.iter().enumerate().map(|(at, &r)| (mem, at, r)));
        Ok(mem)
    }
    /// Keeps the row that a step makes.
    pub(super) fn keep_row(&mut self, mem: MemId, window: &Window, row: &[Reg]) {
        let builder = &mut self.lowering.builder;
        let (step, apart) = (builder.step(), builder.integer(DType::I64, row.len() as i64));
        let first = builder.bin(Bin::Mul, step, apart);
        for (k, &value) in row.iter().enumerate() {
            let k = builder.integer(DType::I64, (window.span * row.len() + k) as i64);
            let at = builder.bin(Bin::Add, first, k);
            builder.store_at(mem, at, value);
        }
    }
}
