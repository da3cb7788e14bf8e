//! Operands that are read some steps before they are needed: what a step reads takes longer to come than the step takes.
//!
//! Each invocation has places of its own in the memory of its block, one per row, which go round. Rows are copied there in the background, those
//! of some steps together. The rows of steps that come go to the places of the steps before, which were read.

use super::ptx::{Target, moves};
use super::text::{GROUP, Text};
use super::values::Class;
use crate::backend::gpu::{Shape, words};
use crate::kernel::{Kernel, MemId, Op};
use crate::types::DType;

/// Rows that have a place, at most and at least: powers of two.
const ROWS: [usize; 2] = [32, 4];
/// So many steps are written out where none has more instructions than this.
const TOGETHER: usize = 4;
const SHORT: usize = 128;
/// Bytes that an invocation has for them: a block may have 48 KiB.
const BYTES: usize = 256;

/// The rows of operands that are read ahead.
pub struct Ring {
    rows: usize,
    /// So many steps are written out one behind the other.
    pub together: usize,
    mems: Vec<Own>,
    /// Where the memory of the block begins.
    shared: String,
}

/// An operand.
struct Own {
    mem: MemId,
    size: usize,
    /// Where this invocation's first place is, and that of the first of the steps that are written out.
    place: String,
    now: String,
    /// The address of what is copied next, and the bytes from it to the one behind.
    next: String,
    stride: String,
}

impl Ring {
    /// What of a kernel is read ahead; `None` where nothing is.
    pub fn of(kernel: &Kernel, shape: &Shape, target: Target) -> Option<Ring> {
        let free = |mem: &MemId| mem.0 < u64::BITS && shape.ahead & 1 << mem.0 != 0 && moves(kernel, *mem) && read_alone(kernel, *mem);
        let mut left = BYTES / ROWS[1];
        let mut mems = vec![];
        for mem in kernel.mems.ids().filter(free).filter(|_| target.copies) {
            let size = 4 * words(kernel.mems[mem].dtype);
            if size <= left {
                left -= size;
                mems.push(Own { mem, size, place: String::new(), now: String::new(), next: String::new(), stride: String::new() });
            }
        }
        let all: usize = mems.iter().map(|own| own.size).sum();
        let rows = 1 << (ROWS[0] * all).min(BYTES).checked_div(all)?.ilog2();
        // A step that stops is the last one.
        let short = kernel.body.len() <= SHORT && kernel.stop.is_none() && rows >= 2 * TOGETHER;
        Some(Ring { rows, together: if short { TOGETHER } else { 1 }, mems, shared: String::new() })
    }

    /// Whether an operand is among them.
    pub fn has(&self, mem: MemId) -> bool {
        self.mems.iter().any(|own| own.mem == mem)
    }

    /// Takes the memory, where all invocations pass.
    pub fn share(&mut self, text: &mut Text) {
        text.copies();
        let each: usize = self.mems.iter().map(|own| own.size).sum();
        self.shared = text.share(self.rows * GROUP * each);
    }

    /// Copies the first rows. `moving`: operands, the addresses of their elements, and the bytes of a step.
    pub fn begin(&mut self, text: &mut Text, moving: &[(MemId, String, String)], count: &str) {
        let shared = self.shared.clone();
        let thread = text.special("%tid.x");
        let mut first = 0;
        for own in &mut self.mems {
            let [place, now] = [(); 2].map(|()| text.temp(Class::Word));
            text.line(format!("mad.lo.u32 {place}, {thread}, {}, {shared};", own.size));
            text.line(format!("add.u32 {place}, {place}, {first};"));
            first += self.rows * GROUP * own.size;
            let (_, next, stride) = moving.iter().find(|m| m.0 == own.mem).expect("it moves");
            (own.place, own.now, own.next, own.stride) = (place, now, next.clone(), stride.clone());
        }
        let (row, again, end, done) = (text.temp(Class::Word), text.label(), text.label(), text.temp(Class::Pred));
        text.line(format!("mov.b32 {row}, 0;"));
        text.here(&again);
        text.line(format!("setp.ge.u32 {done}, {row}, {};", self.rows - self.together));
        text.line(format!("@{done} bra {end};"));
        self.copy(text, &row, &row, count);
        text.line(format!("add.u32 {row}, {row}, {};", self.together));
        text.line(format!("bra {again};"));
        text.here(&end);
    }

    /// Copies the rows of steps to places, as far as there are such steps.
    fn copy(&self, text: &mut Text, step: &str, place: &str, count: &str) {
        let there: Vec<String> = (0..self.together)
            .map(|u| {
                let (own, there) = (text.temp(Class::Word), text.temp(Class::Pred));
                text.line(format!("add.u32 {own}, {step}, {u};"));
                text.line(format!("setp.lt.u32 {there}, {own}, {count};"));
                there
            })
            .collect();
        for own in &self.mems {
            let to = text.temp(Class::Word);
            text.line(format!("mad.lo.u32 {to}, {place}, {}, {};", GROUP * own.size, own.place));
            for (u, there) in there.iter().enumerate() {
                let by = u * GROUP * own.size;
                text.line(format!("@{there} cp.async.ca.shared.global [{to}+{by}], [{}], {};", own.next, own.size));
                text.line(format!("add.s64 {0}, {0}, {1};", own.next, own.stride));
            }
        }
        text.line("cp.async.commit_group;");
    }

    /// Begins the steps from `at` on that are written out: rows further on are copied, and those of these steps are there.
    pub fn turn(&self, text: &mut Text, at: &str, count: &str) {
        let [later, place] = [(); 2].map(|()| text.temp(Class::Word));
        text.line(format!("add.u32 {later}, {at}, {};", self.rows - self.together));
        text.line(format!("and.b32 {place}, {later}, {};", self.rows - 1));
        self.copy(text, &later, &place, count);
        text.line(format!("cp.async.wait_group {};", self.rows / self.together - 1));
        self.at(text, at);
    }

    /// The places of step `at`.
    pub fn at(&self, text: &mut Text, at: &str) {
        let row = text.temp(Class::Word);
        text.line(format!("and.b32 {row}, {at}, {};", self.rows - 1));
        for own in &self.mems {
            text.line(format!("mad.lo.u32 {}, {row}, {}, {};", own.now, GROUP * own.size, own.place));
        }
    }

    /// A register gets the element of the step that is so many behind the first one that is written out.
    pub fn load(&self, text: &mut Text, (mem, behind): (MemId, usize), dtype: DType, to: &str) {
        let own = self.mems.iter().find(|own| own.mem == mem).expect("it is read ahead");
        text.load_from("shared", dtype, to, &format!("{}+{}", own.now, behind * GROUP * own.size));
    }
}

/// Whether a kernel reads elements of an operand and does nothing else with it.
fn read_alone(kernel: &Kernel, mem: MemId) -> bool {
    let loads = kernel.body.iter().any(|inst| matches!(inst.op, Op::Load(m) if m == mem));
    let gathers = kernel.body.iter().any(|inst| matches!(inst.op, Op::Gather(m, _) if m == mem));
    loads && !gathers && !kernel.stores.iter().any(|s| s.mem == mem)
}
