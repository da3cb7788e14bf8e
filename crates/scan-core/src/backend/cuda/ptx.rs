//! Kernels as PTX text. See [`launch`](crate::backend::gpu::launch) for the parameters, which are handed over by value.
//!
//! Every float instruction names its rounding and none flushes small numbers, so that nothing is contracted or lost.

use super::values::Class;
use crate::backend::cpu::Refusal;
use crate::backend::gpu::host::{Taken, taken};
use crate::backend::gpu::launch::{FIRST, HEAD, INVOCATIONS, LANES, STATUS, STEPS, STOPPED};
use crate::backend::gpu::{Shape, words};
use crate::base::IdxVec;
use crate::kernel::{CarryId, Kernel, Mem, MemId, Op, Reg};
use std::fmt::Write;

/// Invocations of a block.
pub const GROUP: usize = 128;
/// The name of the function that is run.
pub const ENTRY: &str = "main_kernel";
/// Bytes of parameters that every driver takes, and those that newer ones take; the address of the memory is one of them.
const PARAMS: [usize; 2] = [4096, 32764];

/// Lines of a kernel, and the registers that they use.
pub struct Text {
    out: String,
    registers: u32,
    labels: u32,
}

impl Text {
    /// Writes an instruction.
    pub fn line(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.out, "\t{}", text.as_ref());
    }
    /// A register that nobody uses.
    pub fn temp(&mut self, class: Class) -> String {
        self.registers += 1;
        format!("{}{}", class.prefix(), self.registers - 1)
    }
    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels - 1)
    }
    fn here(&mut self, label: &str) {
        let _ = writeln!(self.out, "{label}:");
    }
    /// A parameter.
    fn param(&mut self, k: usize) -> String {
        let word = self.temp(Class::Word);
        self.line(format!("ld.param.u32 {word}, [p+{}];", 4 * k));
        word
    }
    /// Bytes of so many words, with their sign.
    fn bytes(&mut self, words: &str) -> String {
        let bytes = self.temp(Class::Long);
        self.line(format!("mul.wide.s32 {bytes}, {words}, 4;"));
        bytes
    }
}

/// The text of a kernel in a shape.
///
/// # Errors
/// A call of the host's functions that is always needed; more operands than parameters can name.
pub fn text(kernel: &Kernel, shape: &Shape) -> Result<String, Refusal> {
    let taken = taken(kernel)?;
    let bytes = 8 + 4 * shape.words(kernel);
    // Newer drivers alone read the second version.
    let version = match PARAMS.iter().position(|&most| bytes <= most) {
        Some(0) => "7.0",
        Some(_) => "8.1",
        None => return Err(Refusal(format!("it has {} operands", kernel.mems.len()))),
    };
    let text = Text { out: String::new(), registers: kernel.body.len() as u32, labels: 0 };
    let mut printer = Printer {
        kernel,
        shape,
        heap: String::new(),
        lane: String::new(),
        axes: vec![],
        addresses: IdxVec::new(),
        carries: IdxVec::new(),
        text,
    };
    printer.kernel(&taken);
    let mut out = format!(".version {version}\n.target sm_70\n.address_size 64\n\n");
    let _ = writeln!(out, ".visible .entry {ENTRY}(\n\t.param .u64 m,\n\t.param .align 4 .b8 p[{}]\n)", bytes - 8);
    let _ = writeln!(out, ".maxntid {GROUP}, 1, 1\n{{");
    for class in Class::ALL {
        let _ = writeln!(out, "\t.reg .{} {}<{}>;", class.ty(), class.prefix(), printer.text.registers);
    }
    Ok(out + &printer.text.out + "}\n")
}

struct Printer<'a> {
    kernel: &'a Kernel,
    shape: &'a Shape,
    /// The address of the memory.
    heap: String,
    lane: String,
    /// Where this invocation is along each axis.
    axes: Vec<String>,
    /// Where the operands' elements are.
    addresses: IdxVec<MemId, String>,
    carries: IdxVec<CarryId, String>,
    text: Text,
}

impl Printer<'_> {
    fn name(&self, r: Reg) -> String {
        format!("{}{}", Class::of(self.kernel.dtype(r)).prefix(), r.0)
    }

    fn kernel(&mut self, taken: &[Taken]) {
        self.invocation();
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
        self.text.line("ret;");
    }

    /// Which lane and place this invocation is; those that are none leave.
    fn invocation(&mut self) {
        let t = &mut self.text;
        let [block, size, thread] = ["%ctaid.x", "%ntid.x", "%tid.x"].map(|special| {
            let word = t.temp(Class::Word);
            t.line(format!("mov.u32 {word}, {special};"));
            word
        });
        let mut at = t.temp(Class::Word);
        t.line(format!("mad.lo.u32 {at}, {block}, {size}, {thread};"));
        let (count, beyond) = (t.param(INVOCATIONS), t.temp(Class::Pred));
        t.line(format!("setp.ge.u32 {beyond}, {at}, {count};"));
        t.line(format!("@{beyond} ret;"));
        self.heap = t.temp(Class::Long);
        t.line(format!("ld.param.u64 {}, [m];", self.heap));
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
        let t = &mut self.text;
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
        let moving: Vec<MemId> = kernel.mems.ids().filter(|&m| self.moves(m)).collect();
        let strides: Vec<String> = moving
            .iter()
            .map(|&m| {
                let words = self.text.param(self.shape.strides(kernel, m));
                self.text.bytes(&words)
            })
            .collect();
        let t = &mut self.text;
        let (at, count, done, number) = (t.temp(Class::Word), t.param(STEPS), t.temp(Class::Pred), t.temp(Class::Long));
        let (again, end) = (t.label(), t.label());
        t.line(format!("ld.param.u32 {at}, [p+{}];", 4 * FIRST));
        let high = t.param(FIRST + 1);
        t.line(format!("mov.b64 {number}, {{{at}, {high}}};"));
        t.line(format!("mov.b32 {at}, 0;"));
        t.here(&again);
        t.line(format!("setp.ge.u32 {done}, {at}, {count};"));
        t.line(format!("@{done} bra {end};"));
        self.step(taken, &number);
        let t = &mut self.text;
        t.line(format!("add.u32 {at}, {at}, 1;"));
        t.line(format!("add.s64 {number}, {number}, 1;"));
        for (mem, stride) in moving.iter().zip(&strides) {
            let address = &self.addresses[*mem];
            t.line(format!("add.s64 {address}, {address}, {stride};"));
        }
        if let Some(stop) = kernel.stop {
            self.text.line(format!("@!{} bra {again};", self.name(stop)));
            self.text.line(format!("or.b32 {at}, {at}, {STOPPED:#x};"));
            self.text.here(&end);
            let status = self.status();
            self.text.line(format!("st.global.u32 [{status}+4], {at};"));
        } else {
            self.text.line(format!("bra {again};"));
            self.text.here(&end);
        }
    }

    /// The address of what the launch notes.
    fn status(&mut self) -> String {
        let word = self.text.param(STATUS);
        self.at_word(&word)
    }

    /// The address of a word of the memory.
    fn at_word(&mut self, word: &str) -> String {
        let (bytes, at) = (self.text.temp(Class::Long), self.text.temp(Class::Long));
        self.text.line(format!("mul.wide.u32 {bytes}, {word}, 4;"));
        self.text.line(format!("add.s64 {at}, {}, {bytes};", self.heap));
        at
    }

    /// An operand that no step moves and nothing writes is read once.
    fn stays(&self, mem: MemId) -> bool {
        self.kernel.mems[mem].stride == Some(0) && !self.kernel.stores.iter().any(|s| s.mem == mem)
    }
    fn moves(&self, mem: MemId) -> bool {
        self.kernel.mems[mem].stride != Some(0) && !self.kernel.carries.iter().any(|c| c.mem == mem)
    }

    /// The address of an operand's element of this lane at this place.
    fn address(&mut self, mem: MemId) -> String {
        let strides = self.shape.strides(self.kernel, mem) + 1;
        let base = self.shape.base(mem);
        let Mem { dtype, lane, .. } = self.kernel.mems[mem];
        let word = self.text.param(base);
        if lane.varies() {
            let by = (lane.elements() as u32).wrapping_mul(words(dtype) as u32);
            self.text.line(format!("mad.lo.u32 {word}, {}, {by}, {word};", self.lane));
        }
        for (a, at) in self.axes.clone().iter().enumerate() {
            let stride = self.text.param(strides + a);
            self.text.line(format!("mad.lo.u32 {word}, {at}, {stride}, {word};"));
        }
        self.at_word(&word)
    }

    /// Where a carry is written.
    fn written(&mut self, mem: MemId) -> String {
        let from = self.addresses[mem].clone();
        if self.kernel.mems[mem].lane.varies() {
            return from;
        }
        let [copy, base] = [self.shape.apart(self.kernel, mem), self.shape.base(mem)].map(|k| self.text.param(k));
        let by = self.text.temp(Class::Word);
        self.text.line(format!("sub.u32 {by}, {copy}, {base};"));
        let (bytes, at) = (self.text.bytes(&by), self.text.temp(Class::Long));
        self.text.line(format!("add.s64 {at}, {from}, {bytes};"));
        at
    }

    fn step(&mut self, taken: &[Taken], number: &str) {
        let kernel = self.kernel;
        for (r, inst) in kernel.body.enumerate() {
            let to = self.name(r);
            match &inst.op {
                Op::Const(_) | Op::Call(..) => {}
                Op::Load(mem) if self.stays(*mem) => {}
                Op::Load(mem) => self.text.load(inst.dtype, &to, &self.addresses[*mem]),
                Op::Gather(mem, index) => self.gathered(*mem, *index, &to),
                Op::Carry(c) => self.text.copied(inst.dtype, &to, &self.carries[*c]),
                Op::Step => self.text.copied(inst.dtype, &to, number),
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
    }

    /// The element of a table with this number, or its last one.
    fn gathered(&mut self, mem: MemId, index: Reg, to: &str) {
        let Mem { dtype, table, .. } = self.kernel.mems[mem];
        let index = self.name(index);
        let t = &mut self.text;
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
        let name = |r: &Reg| format!("{}{}", Class::of(of(r)).prefix(), r.0);
        let t = &mut self.text;
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
