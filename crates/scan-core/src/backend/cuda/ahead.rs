//! Operands that are read some steps before they are needed: what a step reads takes longer to come than the step takes.
//!
//! Each invocation has places of its own in the memory of its block, one per row, which go round. Rows are copied there in the background. The
//! row of a step that comes goes to the place of the step before, which was read.

use super::ptx::{GROUP, Target, Text, moves};
use super::values::Class;
use crate::backend::gpu::{Shape, words};
use crate::kernel::{Kernel, MemId, Op};
use crate::types::DType;

/// Rows that have a place, at most and at least: powers of two.
const ROWS: [usize; 2] = [32, 4];
/// Bytes that an invocation has for them: a block may have 48 KiB.
const BYTES: usize = 256;

/// The rows of operands that are read ahead.
pub struct Ring {
    rows: usize,
    mems: Vec<Own>,
    /// Where the memory of the block begins.
    shared: String,
    /// The number of this step's place.
    now: String,
}

/// An operand.
struct Own {
    mem: MemId,
    size: usize,
    /// Where this invocation's first place is.
    place: String,
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
                mems.push(Own { mem, size, place: String::new(), next: String::new(), stride: String::new() });
            }
        }
        let all: usize = mems.iter().map(|own| own.size).sum();
        let rows = (ROWS[0] * all).min(BYTES).checked_div(all)?;
        Some(Ring { rows: 1 << rows.ilog2(), mems, shared: String::new(), now: String::new() })
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
            let place = text.temp(Class::Word);
            text.line(format!("mad.lo.u32 {place}, {thread}, {}, {shared};", own.size));
            text.line(format!("add.u32 {place}, {place}, {first};"));
            first += self.rows * GROUP * own.size;
            let (_, next, stride) = moving.iter().find(|m| m.0 == own.mem).expect("it moves");
            (own.place, own.next, own.stride) = (place, next.clone(), stride.clone());
        }
        let (row, again, end, done) = (text.temp(Class::Word), text.label(), text.label(), text.temp(Class::Pred));
        text.line(format!("mov.b32 {row}, 0;"));
        text.here(&again);
        text.line(format!("setp.ge.u32 {done}, {row}, {};", self.rows - 1));
        text.line(format!("@{done} bra {end};"));
        self.copy(text, &row, &row, count);
        text.line(format!("add.u32 {row}, {row}, 1;"));
        text.line(format!("bra {again};"));
        text.here(&end);
    }

    /// Copies the row of a step to a place, if there is such a step.
    fn copy(&self, text: &mut Text, step: &str, place: &str, count: &str) {
        let there = text.temp(Class::Pred);
        text.line(format!("setp.lt.u32 {there}, {step}, {count};"));
        for own in &self.mems {
            let to = text.temp(Class::Word);
            text.line(format!("mad.lo.u32 {to}, {place}, {}, {};", GROUP * own.size, own.place));
            text.line(format!("@{there} cp.async.ca.shared.global [{to}], [{}], {};", own.next, own.size));
            text.line(format!("add.s64 {0}, {0}, {1};", own.next, own.stride));
        }
        text.line("cp.async.commit_group;");
    }

    /// Begins step `at`: a row further on is copied, and this step's is there.
    pub fn turn(&mut self, text: &mut Text, at: &str, count: &str) {
        let [later, place, now] = [(); 3].map(|()| text.temp(Class::Word));
        text.line(format!("add.u32 {later}, {at}, {};", self.rows - 1));
        text.line(format!("and.b32 {place}, {later}, {};", self.rows - 1));
        self.copy(text, &later, &place, count);
        text.line(format!("cp.async.wait_group {};", self.rows - 1));
        text.line(format!("and.b32 {now}, {at}, {};", self.rows - 1));
        self.now = now;
    }

    /// A register gets this step's element.
    pub fn load(&self, text: &mut Text, mem: MemId, dtype: DType, to: &str) {
        let own = self.mems.iter().find(|own| own.mem == mem).expect("it is read ahead");
        let at = text.temp(Class::Word);
        text.line(format!("mad.lo.u32 {at}, {}, {}, {};", self.now, GROUP * own.size, own.place));
        text.load_from("shared", dtype, to, &at);
    }
}

/// Whether a kernel reads elements of an operand and does nothing else with it.
fn read_alone(kernel: &Kernel, mem: MemId) -> bool {
    let loads = kernel.body.iter().any(|inst| matches!(inst.op, Op::Load(m) if m == mem));
    let gathers = kernel.body.iter().any(|inst| matches!(inst.op, Op::Gather(m, _) if m == mem));
    loads && !gathers && !kernel.stores.iter().any(|s| s.mem == mem)
}
