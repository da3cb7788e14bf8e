//! Kernels as WGSL text. See [`launch`](crate::backend::gpu::launch) for the parameters.

use super::values::{constant, convert, fits, load, name, opaque, store, ty};
use crate::backend::cpu::Refusal;
use crate::backend::gpu::Shape;
use crate::backend::gpu::host::{Taken, taken};
use crate::backend::gpu::launch::{FIRST, HEAD, INVOCATIONS, LANES, STATUS, STEPS, STOPPED, ZERO};
use crate::backend::gpu::words;
use crate::base::IdxVec;
use crate::kernel::{Bin, Cmp, Kernel, Mem, MemId, Op, Reg, Un};
use crate::types::DType;
use std::fmt::Write;

/// Invocations of a group.
pub const GROUP: usize = 64;
/// The name of the function that is run.
pub const ENTRY: &str = "main";

/// The text of a kernel in a shape. `fused`: `fma` of f32 and of f64 is rounded once by an instruction.
///
/// # Errors
/// A call of the host's functions that is always needed.
pub fn text(kernel: &Kernel, shape: &Shape, fused: [bool; 2]) -> Result<String, Refusal> {
    let mut printer = Printer { kernel, shape, fused, out: String::new(), pad: 1 };
    printer.kernel(&taken(kernel)?);
    Ok(head(kernel, fused) + &printer.out)
}

/// What stands before the kernel.
fn head(kernel: &Kernel, fused: [bool; 2]) -> String {
    let mut out = "@group(0) @binding(0) var<storage, read_write> m: array<u32>;\n".to_string();
    out += "@group(0) @binding(1) var<storage, read> p: array<u32>;\n";
    let uses = |dtype: DType| kernel.body.iter().any(|i| matches!(i.op, Op::Fma(..)) && i.dtype == dtype);
    if uses(DType::F32) && !fused[0] {
        out += include_str!("fma32.wgsl");
    }
    if uses(DType::F64) && !fused[1] {
        out += include_str!("fma64.wgsl");
    }
    let rounds = |op: &Op| matches!(op, Op::Un(Un::Floor | Un::Ceil | Un::Trunc | Un::Round, _));
    if kernel.body.iter().any(|i| rounds(&i.op) && i.dtype == DType::F64) {
        out += include_str!("round64.wgsl");
    }
    out
}

struct Printer<'a> {
    kernel: &'a Kernel,
    shape: &'a Shape,
    fused: [bool; 2],
    out: String,
    pad: usize,
}

impl Printer<'_> {
    fn line(&mut self, text: impl AsRef<str>) {
        let pad = "  ".repeat(self.pad);
        let _ = writeln!(self.out, "{pad}{}", text.as_ref());
    }
    fn open(&mut self, text: impl AsRef<str>) {
        self.line(format!("{} {{", text.as_ref()));
        self.pad += 1;
    }
    fn close(&mut self) {
        self.pad -= 1;
        self.line("}");
    }

    fn kernel(&mut self, taken: &[Taken]) {
        let _ = writeln!(
            self.out,
            "@compute @workgroup_size({GROUP})\nfn {ENTRY}(@builtin(workgroup_id) w: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>, \
             @builtin(local_invocation_index) l: u32) {{"
        );
        self.line(format!("var g: u32 = (w.y * n.x + w.x) * {GROUP}u + l;"));
        self.line(format!("if (g >= p[{INVOCATIONS}]) {{ return; }}"));
        self.line(format!("let z: u32 = p[{ZERO}];"));
        self.line(format!("let lane: u32 = g % p[{LANES}]; g = g / p[{LANES}];"));
        (0..self.shape.parallel).rev().for_each(|a| self.line(format!("let x{a}: u32 = g % p[{0}]; g = g / p[{0}];", HEAD + a)));
        self.constants();
        for a in self.shape.parallel..self.shape.parallel + self.shape.ordered {
            self.open(format!("for (var x{a}: u32 = 0u; x{a} < p[{}]; x{a} = x{a} + 1u)", HEAD + a));
        }
        self.place(taken);
        (0..self.shape.ordered).for_each(|_| self.close());
        self.out += "}\n";
    }

    /// Constants are variables, since the translator computes with others, and refuses what overflows. Those of which others are made are
    /// kept from drivers, too: these get some zeros wrong that they find themselves.
    fn constants(&mut self) {
        let hidden = hidden(self.kernel);
        for (r, inst) in self.kernel.body.enumerate() {
            match &inst.op {
                Op::Const(bits) => {
                    let value = if hidden[r] { opaque(inst.dtype, *bits) } else { constant(inst.dtype, *bits) };
                    self.line(format!("var {}: {} = {value};", name(r), ty(inst.dtype)));
                }
                // It matters nowhere: see `taken`.
                Op::Call(..) => self.line(format!("var {}: {} = {};", name(r), ty(inst.dtype), constant(inst.dtype, 0))),
                _ => {}
            }
        }
    }

    /// The kernel at one place of the axes.
    fn place(&mut self, taken: &[Taken]) {
        let kernel = self.kernel;
        for mem in kernel.mems.ids() {
            self.address(mem);
        }
        for (id, carry) in kernel.carries.enumerate() {
            let dtype = kernel.mems[carry.mem].dtype;
            self.line(format!("var c{}: {} = {};", id.0, ty(dtype), load(dtype, &address(carry.mem))));
        }
        for (r, inst) in kernel.body.enumerate() {
            if let Op::Load(mem) = &inst.op
                && self.stays(*mem)
            {
                self.line(format!("let {}: {} = {};", name(r), ty(inst.dtype), load(inst.dtype, &address(*mem))));
            }
        }
        if kernel.stop.is_some() {
            self.line("var ran: u32 = 0u;");
        }
        self.open(format!("for (var t: u32 = 0u; t < p[{STEPS}]; t = t + 1u)"));
        self.step(taken);
        self.close();
        for (id, carry) in kernel.carries.enumerate() {
            self.line(store(kernel.mems[carry.mem].dtype, &self.written(carry.mem), &format!("c{}", id.0)));
        }
        if kernel.stop.is_some() {
            self.line(format!("m[p[{STATUS}] + 1u] = ran;"));
        }
    }

    /// An operand that no step moves and nothing writes is read once.
    fn stays(&self, mem: MemId) -> bool {
        self.kernel.mems[mem].stride == Some(0) && !self.kernel.stores.iter().any(|s| s.mem == mem)
    }
    fn moves(&self, mem: MemId) -> bool {
        self.kernel.mems[mem].stride != Some(0) && !self.kernel.carries.iter().any(|c| c.mem == mem)
    }

    /// Where the operand's element of this lane lies at this place.
    fn address(&mut self, mem: MemId) {
        let strides = self.shape.strides(self.kernel.mems.len(), mem) + 1;
        let axes = (0..self.shape.parallel + self.shape.ordered).map(|a| format!(" + x{a} * p[{}]", strides + a));
        let lanes = if self.kernel.mems[mem].lane.varies() { self.lanes(mem) } else { String::new() };
        let text = format!("var a{}: u32 = p[{}]{lanes}{};", mem.0, self.shape.base(mem), axes.collect::<String>());
        self.line(text);
    }
    fn lanes(&self, mem: MemId) -> String {
        let Mem { dtype, lane, .. } = self.kernel.mems[mem];
        format!(" + lane * {}u", (lane.elements() as u32).wrapping_mul(words(dtype) as u32))
    }
    /// Where a carry is written.
    fn written(&self, mem: MemId) -> String {
        if self.kernel.mems[mem].lane.varies() {
            address(mem)
        } else {
            format!("{} + (p[{}] - p[{}])", address(mem), self.shape.apart(self.kernel, mem), self.shape.base(mem))
        }
    }

    fn step(&mut self, taken: &[Taken]) {
        let kernel = self.kernel;
        for (r, inst) in kernel.body.enumerate() {
            let value = match &inst.op {
                Op::Const(_) | Op::Call(..) => continue,
                Op::Load(mem) if self.stays(*mem) => continue,
                Op::Load(mem) => load(inst.dtype, &address(*mem)),
                Op::Gather(mem, index) => self.gathered(*mem, *index),
                Op::Carry(c) => format!("c{}", c.0),
                Op::Step => format!("bitcast<i64>(u64(p[{FIRST}]) | (u64(p[{}]) << 32u)) + i64(t)", FIRST + 1),
                _ => self.value(r),
            };
            self.line(format!("let {}: {} = {value};", name(r), ty(inst.dtype)));
        }
        for t in taken {
            let not = if t.holds { "" } else { "!" };
            self.line(format!("if ({not}{}) {{ m[p[{STATUS}]] = 1u; }}", name(t.cond)));
        }
        for s in &kernel.stores {
            self.line(store(kernel.mems[s.mem].dtype, &address(s.mem), &name(s.value)));
        }
        for (id, carry) in kernel.carries.enumerate() {
            self.line(format!("c{} = {};", id.0, name(carry.next)));
        }
        for mem in kernel.mems.ids().filter(|&m| self.moves(m)).collect::<Vec<_>>() {
            self.line(format!("a{0} = a{0} + p[{1}];", mem.0, self.shape.strides(kernel.mems.len(), mem)));
        }
        if let Some(stop) = kernel.stop {
            self.line("ran = t + 1u;");
            self.line(format!("if ({}) {{ ran = ran | {STOPPED}u; break; }}", name(stop)));
        }
    }

    /// The element of a table with this number, or its last one.
    fn gathered(&self, mem: MemId, index: Reg) -> String {
        let Mem { dtype, table, .. } = self.kernel.mems[mem];
        let (i, last) = (format!("bitcast<u64>({})", name(index)), table - 1);
        let at = format!("select({last}u, u32({i} & 0xfffffffflu), {i} < {last}lu)");
        load(dtype, &format!("{} + {at} * {}u", address(mem), words(dtype)))
    }

    /// What an instruction computes of others.
    fn value(&self, r: Reg) -> String {
        let inst = &self.kernel.body[r];
        let of = |r: &Reg| self.kernel.dtype(*r);
        match &inst.op {
            Op::Un(op, x) => unary(*op, inst.dtype, &name(*x)),
            Op::Bin(op, x, y) => binary(*op, inst.dtype, &name(*x), &name(*y)),
            Op::Fma(x, y, z) => {
                let (wide, args) = (inst.dtype == DType::F64, format!("{}, {}, {}", name(*x), name(*y), name(*z)));
                match (self.fused[usize::from(wide)], wide) {
                    (true, _) => format!("fma({args})"),
                    (false, false) => format!("fma32({args})"),
                    (false, true) => format!("fma64({args})"),
                }
            }
            Op::Cmp(op, x, y) => compare(*op, of(x), &name(*x), &name(*y)),
            Op::Select(c, x, y) => format!("select({}, {}, {})", name(*y), name(*x), name(*c)),
            Op::Convert(x) => convert(of(x), inst.dtype, &name(*x)),
            Op::Bits(x) => format!("bitcast<{}>({})", ty(inst.dtype), name(*x)),
            op => unreachable!("{op:?} computes nothing of others"),
        }
    }
}

/// The constants of which alone other values are made, or that decide for one.
fn hidden(kernel: &Kernel) -> IdxVec<Reg, bool> {
    let mut known: IdxVec<Reg, bool> = IdxVec::new();
    let mut hidden: IdxVec<Reg, bool> = kernel.body.iter().map(|_| false).collect();
    for inst in kernel.body.iter() {
        let uses = inst.op.uses();
        let made = !uses.is_empty() && uses.iter().all(|&u| known[u]);
        let own = match &inst.op {
            Op::Const(_) => true,
            Op::Select(c, ..) => made || known[*c],
            _ => made,
        };
        if own {
            uses.iter().for_each(|&u| hidden[u] = true);
        }
        known.push(own);
    }
    hidden
}

fn address(mem: MemId) -> String {
    format!("a{}", mem.0)
}

fn unary(op: Un, dtype: DType, x: &str) -> String {
    let value = match op {
        Un::Neg => format!("-{x}"),
        Un::Abs => format!("abs({x})"),
        Un::Not if dtype == DType::Bool => format!("!{x}"),
        Un::Not => format!("~{x}"),
        Un::Sqrt => format!("sqrt({x})"),
        Un::Floor if dtype == DType::F64 => format!("floor64({x})"),
        Un::Ceil if dtype == DType::F64 => format!("-floor64(-{x})"),
        Un::Trunc if dtype == DType::F64 => format!("select(floor64({x}), -floor64(-{x}), {x} < 0.0lf)"),
        Un::Round if dtype == DType::F64 => format!("round64({x})"),
        Un::Floor => format!("floor({x})"),
        Un::Ceil => format!("ceil({x})"),
        Un::Trunc => format!("trunc({x})"),
        Un::Round => format!("round({x})"),
    };
    // WGSL negates no unsigned integers.
    let value = if op == Un::Neg && dtype.is_unsigned() { format!("(~{x} + {})", one(dtype)) } else { value };
    fits(dtype, value)
}

fn one(dtype: DType) -> &'static str {
    if dtype == DType::U64 { "1lu" } else { "1u" }
}

fn binary(op: Bin, dtype: DType, x: &str, y: &str) -> String {
    let sign = match op {
        Bin::Add => "+",
        Bin::Sub => "-",
        Bin::Mul => "*",
        Bin::Div => "/",
        Bin::And => "&",
        Bin::Or => "|",
        Bin::Xor if dtype == DType::Bool => "!=",
        Bin::Xor => "^",
        Bin::Shl => "<<",
        Bin::Shr => ">>",
        // Only of u64, by what is not 0.
        Bin::FloorDiv => "/",
        Bin::Mod | Bin::Fmod => "%",
    };
    let y = if matches!(op, Bin::Shl | Bin::Shr) { format!("u32({y})") } else { y.to_string() };
    fits(dtype, format!("({x} {sign} {y})"))
}

fn compare(op: Cmp, dtype: DType, x: &str, y: &str) -> String {
    match (op, dtype) {
        (Cmp::Eq, _) => format!("({x} == {y})"),
        // Not `!=`, which is false for NaN there.
        (Cmp::Ne, _) => format!("!({x} == {y})"),
        (Cmp::Lt, DType::Bool) => format!("(!{x} & {y})"),
        (Cmp::Le, DType::Bool) => format!("(!{x} | {y})"),
        (Cmp::Lt, _) => format!("({x} < {y})"),
        (Cmp::Le, _) => format!("({x} <= {y})"),
    }
}
