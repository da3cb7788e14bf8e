//! Which of a kernel's lanes and places an invocation computes, by their numbers.

use super::text::Text;
use super::values::Class;
use crate::backend::gpu::Tiling;
use crate::backend::gpu::launch::INVOCATIONS;

/// The loop over them that is open.
pub struct Share {
    /// The number.
    pub number: String,
    /// Behind one of them.
    next: Option<String>,
    /// What counts from one to the next, and where that is looked at again.
    steps: Vec<Step>,
}

struct Step {
    counter: String,
    by: String,
    again: String,
    end: String,
    /// It goes round.
    repeats: bool,
}

impl Step {
    /// Begins to count from a number as long as that is below a limit.
    fn begin(t: &mut Text, counter: String, by: String, limit: &str, repeats: bool) -> Step {
        let (again, end, beyond) = (t.label(), t.label(), t.temp(Class::Pred));
        t.here(&again);
        t.line(format!("setp.ge.u32 {beyond}, {counter}, {limit};"));
        t.line(format!("@{beyond} bra {end};"));
        Step { counter, by, again, end, repeats }
    }
}

impl Share {
    /// Those of all, one after the other. There may be fewer invocations than a part has.
    pub fn of_all(t: &mut Text) -> Share {
        let [block, size, thread] = ["%ctaid.x", "%ntid.x", "%tid.x"].map(|special| t.special(special));
        let number = t.temp(Class::Word);
        t.line(format!("mad.lo.u32 {number}, {block}, {size}, {thread};"));
        let count = t.param(INVOCATIONS);
        let by = t.temp(Class::Word);
        if t.is_part() {
            let blocks = t.special("%nctaid.x");
            t.line(format!("mul.lo.u32 {by}, {blocks}, {size};"));
        }
        let step = Step::begin(t, number.clone(), by, &count, t.is_part());
        Share { number, next: None, steps: vec![step] }
    }

    /// Those of the block's tiles, in rows of so many columns.
    pub fn of_tiles(t: &mut Text, tiling: &Tiling, columns: usize) -> Share {
        let Tiling { rows, period, tile: [high, wide], block } = *tiling;
        let [below, beside] = tiling.tiles();
        let tile = t.special("%ctaid.x");
        let blocks = t.special("%nctaid.x");
        let outer = Step::begin(t, tile.clone(), blocks, &(below * beside).to_string(), true);
        let own = t.special("%tid.x");
        let each = wide * (columns / period);
        let inner = Step::begin(t, own.clone(), block.to_string(), &(high * each).to_string(), true);
        let next = t.label();
        let mut word = |op: &str, a: &str, b: usize| {
            let word = t.temp(Class::Word);
            t.line(format!("{op} {word}, {a}, {b};"));
            word
        };
        let (down, across) = (word("div.u32", &tile, beside), word("rem.u32", &tile, beside));
        let (row, column) = (word("div.u32", &own, each), word("rem.u32", &own, each));
        let (far, near) = (word("div.u32", &column, wide), word("rem.u32", &column, wide));
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
        Share { number, next: Some(next), steps: vec![outer, inner] }
    }

    /// Goes on to the next one.
    pub fn end(self, t: &mut Text) {
        if let Some(next) = &self.next {
            t.here(next);
        }
        for Step { counter, by, again, end, repeats } in self.steps.iter().rev() {
            if *repeats {
                t.line(format!("add.u32 {counter}, {counter}, {by};"));
                t.line(format!("bra {again};"));
            }
            t.here(end);
        }
    }
}
