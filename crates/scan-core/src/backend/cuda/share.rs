//! Which of a kernel's lanes and places an invocation computes, by their numbers.

use super::text::{Counted, Text};
use super::values::Class;
use crate::backend::gpu::Tiling;
use crate::backend::gpu::launch::INVOCATIONS;

/// The loops over them that are open.
pub struct Share {
    /// The number.
    pub number: String,
    /// Behind one of them.
    next: Option<String>,
    /// The outer one first, each with what it goes on by.
    loops: Vec<(Counted, Option<String>)>,
}

impl Share {
    /// Those of all, one after the other. There may be fewer invocations than a part has.
    pub fn of_all(t: &mut Text) -> Share {
        let [block, size, thread] = ["%ctaid.x", "%ntid.x", "%tid.x"].map(|special| t.special(special));
        let number = t.temp(Class::Word);
        t.line(format!("mad.lo.u32 {number}, {block}, {size}, {thread};"));
        let count = t.param(INVOCATIONS);
        let by = t.is_part().then(|| {
            let blocks = t.special("%nctaid.x");
            t.word("mul.lo.u32", &blocks, &size)
        });
        let open = t.count(&number, count);
        Share { number, next: None, loops: vec![(open, by)] }
    }

    /// Those of the block's tiles, in rows of so many columns.
    pub fn of_tiles(t: &mut Text, tiling: &Tiling, columns: usize) -> Share {
        let Tiling { rows, period, tile: [high, wide], block } = *tiling;
        let [below, beside] = tiling.tiles();
        let tile = t.special("%ctaid.x");
        let blocks = t.special("%nctaid.x");
        let outer = t.count(&tile, below * beside);
        let own = t.special("%tid.x");
        let each = wide * (columns / period);
        let inner = t.count(&own, high * each);
        let next = t.label();
        let (down, across) = (t.word("div.u32", &tile, beside), t.word("rem.u32", &tile, beside));
        let (row, column) = (t.word("div.u32", &own, each), t.word("rem.u32", &own, each));
        let (far, near) = (t.word("div.u32", &column, wide), t.word("rem.u32", &column, wide));
        let [row_at, near_at, with, number] = [(); 4].map(|()| t.temp(Class::Word));
        t.line(format!("mad.lo.u32 {row_at}, {down}, {high}, {row};"));
        t.line(format!("mad.lo.u32 {near_at}, {across}, {wide}, {near};"));
        for (at, limit) in [(&row_at, rows), (&near_at, period)] {
            let beyond = t.temp(Class::Pred);
            t.line(format!("setp.ge.u32 {beyond}, {at}, {limit};"));
            t.line(format!("@{beyond} bra {next};"));
        }
        t.line(format!("mad.lo.u32 {with}, {far}, {period}, {near_at};"));
        t.line(format!("mad.lo.u32 {number}, {row_at}, {columns}, {with};"));
        Share { number, next: Some(next), loops: vec![(outer, Some(blocks)), (inner, Some(block.to_string()))] }
    }

    /// Goes on to the next one.
    pub fn end(self, t: &mut Text) {
        if let Some(next) = &self.next {
            t.here(next);
        }
        for (open, by) in self.loops.into_iter().rev() {
            t.counted(open, by.as_deref());
        }
    }
}
