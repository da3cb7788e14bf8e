//! Kernels as PTX text. See [`launch`](crate::backend::gpu::launch) for the parameters, which are handed over by value.
//!
//! Every float instruction names its rounding and none flushes small numbers, so that nothing is contracted or lost.

use super::ahead::Ring;
use super::share::Share;
use super::text::{Module, Text};
use super::values::Class;
use crate::backend::cpu::Refusal;
use crate::backend::gpu::host::{Taken, taken};
use crate::backend::gpu::launch::{FIRST, HEAD, LANES, STATUS, STEPS, STOPPED};
use crate::backend::gpu::{Shape, Tiling, words};
use crate::base::IdxVec;
use crate::kernel::{CarryId, Kernel, Mem, MemId, Op, Reg};

/// What a card has that texts depend on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// Multiprocessors.
    pub processors: usize,
    /// It copies to the memory of a block in the background: from compute capability 8.0 on.
    pub copies: bool,
    /// Bytes that the memory of a block may have.
    pub shared: usize,
}

/// The text of a kernel in a shape.
///
/// # Errors
/// A call of the host's functions that is always needed; more operands than parameters can name.
pub fn text(kernel: &Kernel, shape: &Shape, target: Target) -> Result<Module, Refusal> {
    let taken = taken(kernel)?;
    let mut text = Text::new();
    write(&mut text, kernel, shape, (&taken, target), None);
    text.module(shape.words(kernel)).map_err(|_| Refusal(format!("it has {} operands", kernel.mems.len())))
}

/// Writes a kernel in a shape: all places and lanes, of which each invocation does its share. With a tiling, and the columns of the kernel, a block does
/// those of its tiles.
pub fn write(text: &mut Text, kernel: &Kernel, shape: &Shape, (taken, target): (&[Taken], Target), tiling: Option<(Tiling, usize)>) {
    let first = text.values(kernel.body.len());
    let ring = Ring::of(kernel, shape, target);
    let (lane, axes, addresses, carries) = (String::new(), vec![], IdxVec::new(), IdxVec::new());
    Printer { kernel, shape, lane, axes, addresses, carries, first, ring, text }.kernel(taken, tiling);
}

/// Where a loop over steps is.
struct Walk {
    /// Operands that steps move, the addresses of their elements, and the bytes of a step.
    moving: Vec<(MemId, String, String)>,
    /// Steps of this launch that are done.
    at: String,
    /// The number of the step.
    number: String,
}

struct Printer<'a> {
    kernel: &'a Kernel,
    shape: &'a Shape,
    lane: String,
    /// Where this invocation is along each axis.
    axes: Vec<String>,
    /// Where the operands' elements are.
    addresses: IdxVec<MemId, String>,
    carries: IdxVec<CarryId, String>,
    /// The number of the first value's register.
    first: u32,
    /// What is read ahead.
    ring: Option<Ring>,
    text: &'a mut Text,
}

impl Printer<'_> {
    fn name(&self, r: Reg) -> String {
        format!("{}{}", Class::of(self.kernel.dtype(r)).prefix(), r.0 + self.first)
    }

    fn kernel(&mut self, taken: &[Taken], tiling: Option<(Tiling, usize)>) {
        if let Some(ring) = &mut self.ring {
            ring.share(self.text);
        }
        let share = match tiling {
            Some((tiling, columns)) => Share::of_tiles(self.text, &tiling, columns),
            None => Share::of_all(self.text),
        };
        self.invocation(&share.number);
        for (r, inst) in self.kernel.body.enumerate() {
            match &inst.op {
                Op::Const(bits) => self.text.constant(inst.dtype, &self.name(r), *bits),
                // It matters nowhere: see `taken`.
                Op::Call(..) => self.text.constant(inst.dtype, &self.name(r), 0),
                _ => {}
            }
        }
        let mut ends = vec![];
        for a in 0..self.shape.ordered {
            ends.push(self.walk(self.shape.parallel + a));
        }
        self.place(taken);
        while let Some((a, again, end)) = ends.pop() {
            let at = self.axes[a].clone();
            self.text.line(format!("add.u32 {at}, {at}, 1;"));
            self.text.line(format!("bra {again};"));
            self.text.here(&end);
        }
        share.end(self.text);
    }

    /// Which lane and place an invocation is, from its number.
    fn invocation(&mut self, number: &str) {
        let t = &mut *self.text;
        let mut at = number.to_string();
        let mut parted = |t: &mut Text, k: usize| {
            let (extent, rest, quotient) = (t.param(k), t.temp(Class::Word), t.temp(Class::Word));
            t.line(format!("rem.u32 {rest}, {at}, {extent};"));
            t.line(format!("div.u32 {quotient}, {at}, {extent};"));
            at = quotient;
            rest
        };
        self.lane = parted(t, LANES);
        self.axes = (0..self.shape.parallel).rev().map(|a| parted(t, HEAD + a)).collect();
        self.axes.reverse();
    }

    /// The begin of the loop over an axis: its number, where it goes on, and where it ends.
    fn walk(&mut self, axis: usize) -> (usize, String, String) {
        let t = &mut *self.text;
        let (at, extent, done) = (t.temp(Class::Word), t.param(HEAD + axis), t.temp(Class::Pred));
        let (again, end) = (t.label(), t.label());
        t.line(format!("mov.b32 {at}, 0;"));
        t.here(&again);
        t.line(format!("setp.ge.u32 {done}, {at}, {extent};"));
        t.line(format!("@{done} bra {end};"));
        self.axes.push(at);
        (axis, again, end)
    }

    /// The kernel at one place of the axes.
    fn place(&mut self, taken: &[Taken]) {
        let kernel = self.kernel;
        self.addresses = kernel.mems.ids().map(|mem| self.address(mem)).collect();
        for carry in kernel.carries.iter() {
            let dtype = kernel.mems[carry.mem].dtype;
            let reg = self.text.temp(Class::of(dtype));
            self.text.load(dtype, &reg, &self.addresses[carry.mem]);
            self.carries.push(reg);
        }
        for (r, inst) in kernel.body.enumerate() {
            if let Op::Load(mem) = &inst.op
                && self.stays(*mem)
            {
                self.text.load(inst.dtype, &self.name(r), &self.addresses[*mem]);
            }
        }
        self.steps(taken);
        for (carry, reg) in kernel.carries.iter().zip(self.carries.clone().iter()) {
            let at = self.written(carry.mem);
            self.text.store(kernel.mems[carry.mem].dtype, &at, reg);
        }
    }

    /// The loop over the steps.
    fn steps(&mut self, taken: &[Taken]) {
        let kernel = self.kernel;
        let t = &mut *self.text;
        let [low, high, count] = [FIRST, FIRST + 1, STEPS].map(|k| t.param(k));
        let (at, number, done) = (t.temp(Class::Word), t.temp(Class::Long), t.temp(Class::Pred));
        let (again, end) = (t.label(), t.label());
        t.line(format!("mov.b64 {number}, {{{low}, {high}}};"));
        let walk = Walk { moving: self.moving(), at, number };
        if let Some(ring) = &mut self.ring {
            ring.begin(self.text, &walk.moving, &count);
        }
        self.text.line(format!("mov.b32 {}, 0;", walk.at));
        self.steps_together(taken, &walk, &count);
        self.text.here(&again);
        self.text.line(format!("setp.ge.u32 {done}, {}, {count};", walk.at));
        self.text.line(format!("@{done} bra {end};"));
        match &self.ring {
            Some(ring) if ring.together == 1 => ring.turn(self.text, &walk.at, &count),
            Some(ring) => ring.at(self.text, &walk.at),
            None => {}
        }
        self.step(taken, &walk, 0);
        if let Some(stop) = kernel.stop {
            self.text.line(format!("@!{} bra {again};", self.name(stop)));
            self.text.line(format!("or.b32 {0}, {0}, {STOPPED:#x};", walk.at));
            self.text.here(&end);
            let status = self.status();
            self.text.line(format!("st.global.u32 [{status}+4], {};", walk.at));
        } else {
            self.text.line(format!("bra {again};"));
            self.text.here(&end);
        }
        if self.ring.is_some() {
            self.text.line("cp.async.wait_all;");
        }
    }

    /// Operands that steps move, the addresses of their elements, and the bytes of a step.
    fn moving(&mut self) -> Vec<(MemId, String, String)> {
        let kernel = self.kernel;
        let mut found = vec![];
        for mem in kernel.mems.ids().filter(|&m| moves(kernel, m)) {
            let words = self.text.param(self.shape.strides(kernel.mems.len(), mem));
            found.push((mem, self.addresses[mem].clone(), self.text.bytes(&words)));
        }
        found
    }

    /// Several steps at a time, as long as there are as many, where rows are read ahead and steps are short.
    fn steps_together(&mut self, taken: &[Taken], walk: &Walk, count: &str) {
        let Some(together) = self.ring.as_ref().map(|ring| ring.together).filter(|&n| n > 1) else { return };
        let (again, few) = (self.text.label(), self.text.label());
        let (last, beyond) = (self.text.temp(Class::Word), self.text.temp(Class::Pred));
        self.text.here(&again);
        self.text.line(format!("add.u32 {last}, {}, {together};", walk.at));
        self.text.line(format!("setp.gt.u32 {beyond}, {last}, {count};"));
        self.text.line(format!("@{beyond} bra {few};"));
        if let Some(ring) = &self.ring {
            ring.turn(self.text, &walk.at, count);
        }
        (0..together).for_each(|behind| self.step(taken, walk, behind));
        self.text.line(format!("bra {again};"));
        self.text.here(&few);
        self.text.line("cp.async.wait_all;");
    }

    /// The address of what the launch notes.
    fn status(&mut self) -> String {
        let word = self.text.param(STATUS);
        self.text.at_word(&word)
    }

    /// An operand that no step moves and nothing writes is read once.
    fn stays(&self, mem: MemId) -> bool {
        self.kernel.mems[mem].stride == Some(0) && !self.kernel.stores.iter().any(|s| s.mem == mem)
    }

    /// The address of an operand's element of this lane at this place.
    fn address(&mut self, mem: MemId) -> String {
        let strides = self.shape.strides(self.kernel.mems.len(), mem) + 1;
        let Mem { dtype, lane, .. } = self.kernel.mems[mem];
        let word = self.text.begin(self.shape.base(mem), mem);
        if lane.varies() {
            let by = lane.elements() as i64 * words(dtype) as i64;
            self.text.line(format!("mad.wide.s32 {word}, {}, {by}, {word};", self.lane));
        }
        for (a, at) in self.axes.clone().iter().enumerate() {
            let stride = self.text.param(strides + a);
            self.text.line(format!("mad.wide.s32 {word}, {at}, {stride}, {word};"));
        }
        self.text.at_long(&word)
    }

    /// Where a carry is written.
    fn written(&mut self, mem: MemId) -> String {
        let from = self.addresses[mem].clone();
        if self.kernel.mems[mem].lane.varies() {
            return from;
        }
        let [copy, base] = [self.shape.apart(self.kernel, mem), self.shape.base(mem)].map(|k| self.text.param_long(k));
        let [by, bytes, at] = [(); 3].map(|()| self.text.temp(Class::Long));
        self.text.line(format!("sub.s64 {by}, {copy}, {base};"));
        self.text.line(format!("shl.b64 {bytes}, {by}, 2;"));
        self.text.line(format!("add.s64 {at}, {from}, {bytes};"));
        at
    }

    /// A step, so many behind the first one that is written out, and on to the next.
    fn step(&mut self, taken: &[Taken], walk: &Walk, behind: usize) {
        let kernel = self.kernel;
        for (r, inst) in kernel.body.enumerate() {
            let to = self.name(r);
            match &inst.op {
                Op::Const(_) | Op::Call(..) => {}
                Op::Load(mem) if self.stays(*mem) => {}
                Op::Load(mem) => match &self.ring {
                    Some(ring) if ring.has(*mem) => ring.load(self.text, (*mem, behind), inst.dtype, &to),
                    _ => self.text.load(inst.dtype, &to, &self.addresses[*mem]),
                },
                Op::Gather(mem, index) => self.gathered(*mem, *index, &to),
                Op::Carry(c) => self.text.copied(inst.dtype, &to, &self.carries[*c]),
                Op::Step => self.text.copied(inst.dtype, &to, &walk.number),
                _ => self.value(r, &to),
            }
        }
        for t in taken {
            let (not, cond) = (if t.holds { "" } else { "!" }, self.name(t.cond));
            let status = self.status();
            self.text.line(format!("@{not}{cond} st.global.u32 [{status}], 1;"));
        }
        for s in &kernel.stores {
            self.text.store(kernel.mems[s.mem].dtype, &self.addresses[s.mem], &self.name(s.value));
        }
        for (id, carry) in kernel.carries.enumerate() {
            self.text.copied(kernel.mems[carry.mem].dtype, &self.carries[id], &self.name(carry.next));
        }
        let (t, ring) = (&mut *self.text, self.ring.as_ref());
        t.line(format!("add.u32 {0}, {0}, 1;", walk.at));
        t.line(format!("add.s64 {0}, {0}, 1;", walk.number));
        for (_, address, stride) in walk.moving.iter().filter(|m| ring.is_none_or(|ring| !ring.has(m.0))) {
            t.line(format!("add.s64 {address}, {address}, {stride};"));
        }
    }

    /// The element of a table with this number, or its last one.
    fn gathered(&mut self, mem: MemId, index: Reg, to: &str) {
        let Mem { dtype, table, .. } = self.kernel.mems[mem];
        let index = self.name(index);
        let t = &mut *self.text;
        let [inside, bytes, at] = [(); 3].map(|()| t.temp(Class::Long));
        t.line(format!("min.u64 {inside}, {index}, {};", table - 1));
        t.line(format!("mul.lo.u64 {bytes}, {inside}, {};", 4 * words(dtype)));
        t.line(format!("add.s64 {at}, {}, {bytes};", self.addresses[mem]));
        t.load(dtype, to, &at);
    }

    /// What an instruction computes of others.
    fn value(&mut self, r: Reg, to: &str) {
        let (kernel, inst) = (self.kernel, &self.kernel.body[r]);
        let of = |r: &Reg| kernel.dtype(*r);
        let first = self.first;
        let name = |r: &Reg| format!("{}{}", Class::of(of(r)).prefix(), r.0 + first);
        let t = &mut *self.text;
        match &inst.op {
            Op::Un(op, x) => t.unary(*op, inst.dtype, to, &name(x)),
            Op::Bin(op, x, y) => t.binary(*op, inst.dtype, to, &name(x), &name(y)),
            Op::Fma(x, y, z) => t.line(format!("fma.rn.{} {to}, {}, {}, {};", Class::of(inst.dtype).ty(), name(x), name(y), name(z))),
            Op::Cmp(op, x, y) => t.compare(*op, of(x), to, &name(x), &name(y)),
            Op::Select(c, x, y) => t.select(inst.dtype, to, [&name(c), &name(x), &name(y)]),
            Op::Convert(x) => t.converted(of(x), inst.dtype, to, &name(x)),
            Op::Bits(x) => t.line(format!("mov.{} {to}, {};", if inst.dtype.size() == 8 { "b64" } else { "b32" }, name(x))),
            op => unreachable!("{op:?} computes nothing of others"),
        }
    }
}

/// Whether steps move an operand.
pub fn moves(kernel: &Kernel, mem: MemId) -> bool {
    kernel.mems[mem].stride != Some(0) && !kernel.carries.iter().any(|c| c.mem == mem)
}
