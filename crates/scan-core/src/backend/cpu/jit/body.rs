//! Operations of a kernel as instructions of the code generator, per dtype.

use super::convert::convert;
use super::divide::divided;
use super::looped::{Done, Fuel};
use super::pool::Pool;
use super::select::{compared, converted};
use super::skips::{Order, read_outside};
use crate::base::{Id, IdxVec};
use crate::kernel::{Bin, CarryId, Cmp, HostFn, Kernel, Mem, MemId, Op, Reg, Un};
use crate::types::DType;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{AbiParam, InstBuilder, MemFlagsData, SigRef, Signature, Type, Value, types};
use cranelift_frontend::FunctionBuilder;
use rustc_hash::FxHashMap;

/// The machine's type of a dtype.
pub fn machine(dtype: DType) -> Type {
    match dtype {
        DType::Bool | DType::I8 | DType::U8 => types::I8,
        DType::I16 | DType::U16 => types::I16,
        DType::I32 | DType::U32 => types::I32,
        DType::I64 | DType::U64 => types::I64,
        DType::F32 => types::F32,
        DType::F64 => types::F64,
    }
}

/// Memory of operands and of the frame: there, and aligned.
pub fn flags() -> MemFlagsData {
    MemFlagsData::trusted()
}

/// The address of the element of a table with a number, or of its last one.
pub fn element(builder: &mut FunctionBuilder, mem: &Mem, table: Value, number: Value) -> Value {
    let last = builder.ins().iconst(types::I64, mem.table as i64 - 1);
    let at = builder.ins().umin(number, last);
    let offset = builder.ins().ishl_imm_u(at, mem.dtype.size().trailing_zeros() as i64);
    builder.ins().iadd(table, offset)
}

/// How often instructions that are needed, stores, carries and the stop use each value.
fn uses(kernel: &Kernel, needed: &IdxVec<Reg, bool>) -> IdxVec<Reg, usize> {
    let mut uses: IdxVec<Reg, usize> = kernel.body.iter().map(|_| 0).collect();
    let all = kernel.body.enumerate().filter(|(r, _)| needed[*r]).flat_map(|(_, inst)| inst.op.uses());
    all.chain(kernel.ends()).for_each(|r| uses[r] += 1);
    uses
}

/// What a step finds at its beginning.
pub struct Start<'a> {
    /// The address of each operand's element at this step; none where the step does not touch it.
    pub addresses: IdxVec<MemId, Option<Value>>,
    /// The values of the carries that the step reads.
    pub carries: IdxVec<CarryId, Option<Value>>,
    /// The number of the step.
    pub step: Value,
    /// Constants that are in registers, and what is read once.
    pub constants: &'a FxHashMap<Reg, Value>,
    /// Where constants lie in memory, of loops in the step too.
    pub pool: &'a Pool,
    /// What loops in the step ask by, and where their memory lies.
    pub fuel: Option<&'a Fuel>,
}

/// One step under construction.
pub struct Body<'a, 'b> {
    pub builder: &'a mut FunctionBuilder<'b>,
    pub kernel: &'a Kernel,
    pub start: &'a Start<'a>,
    values: IdxVec<Reg, Option<Value>>,
    signatures: [Option<SigRef>; 2],
    /// How often each value is used.
    uses: IdxVec<Reg, usize>,
    /// Of bools that choose between floats of a dtype.
    pub masks: FxHashMap<(Reg, DType), Value>,
    /// Per bool that is made of comparisons of floats alone, their dtype.
    pub compared: IdxVec<Reg, Option<DType>>,
    /// The loops of the step so far.
    pub done: Done,
}

/// Emits a step's instructions into the current block; the value of each that is needed.
pub fn emit(builder: &mut FunctionBuilder, kernel: &Kernel, needed: &IdxVec<Reg, bool>, start: &Start) -> IdxVec<Reg, Option<Value>> {
    let order = Order::of(kernel, needed, |r| start.constants.contains_key(&r));
    let read = read_outside(kernel, needed, &order);
    let mut body = Body {
        builder,
        kernel,
        start,
        values: kernel.body.iter().map(|_| None).collect(),
        signatures: [None, None],
        uses: uses(kernel, needed),
        masks: FxHashMap::default(),
        compared: compared(kernel),
        done: Done::default(),
    };
    let mut skips = order.skips.iter().zip(read).peekable();
    let mut open = vec![];
    for (at, &r) in order.order.iter().enumerate() {
        while let Some((skip, read)) = skips.next_if(|(skip, _)| skip.range.start == at) {
            open.push((body.enter_skip(skip, read), skip.range.clone()));
        }
        body.values[r] = needed[r].then(|| body.start.constants.get(&r).copied().unwrap_or_else(|| body.value(r)));
        while let Some((skip, range)) = open.pop_if(|(_, range)| range.end == at + 1) {
            body.leave_skip(skip, &order.order[range]);
        }
    }
    body.values
}

impl Body<'_, '_> {
    /// The value of an instruction before this one.
    pub fn get(&self, r: Reg) -> Value {
        self.values[r].expect("an instruction uses values before it")
    }

    /// Sets the value of an instruction that others read from now on.
    pub fn set(&mut self, r: Reg, value: Option<Value>) {
        self.values[r] = value;
    }

    fn value(&mut self, r: Reg) -> Value {
        let inst = &self.kernel.body[r];
        match &inst.op {
            Op::Const(bits) => self.constant(inst.dtype, *bits),
            Op::Step => self.start.step,
            Op::Load(m) => self.load(*m),
            Op::Gather(m, index) => self.gather(*m, *index),
            Op::Carry(c) => self.start.carries[*c].expect("a carry that the step reads"),
            Op::Un(un, x) => self.un(inst.dtype, *un, *x),
            Op::Bin(bin, x, y) => self.bin(inst.dtype, *bin, *x, *y),
            Op::Fma(x, y, z) => {
                let (x, y) = if self.dies(*y) && !self.dies(*x) { (y, x) } else { (x, y) };
                let (x, y, z) = (self.get(*x), self.get(*y), self.get(*z));
                self.builder.ins().fma(x, y, z)
            }
            Op::Cmp(cmp, x, y) => match converted(self.kernel, r) {
                Some(b) => self.get(b),
                None => self.cmp(*cmp, *x, *y),
            },
            Op::Select(c, x, y) => self.select(inst.dtype, *c, *x, *y),
            Op::Convert(x) => {
                let value = self.get(*x);
                convert(self.builder, value, self.kernel.dtype(*x), inst.dtype)
            }
            Op::Bits(x) => self.bits(inst.dtype, *x),
            Op::Call(f, args) => self.call(*f, args),
            Op::Loop(inner) => self.looped(r, inner),
            Op::Last(of, carry) => self.done[of].carries[carry.idx()],
            Op::Left(of, mem, number) => self.left(*of, *mem, *number),
        }
    }

    /// True for a value that nothing else uses, in this step or the next. Its register may become that of the first factor's product:
    /// any other value is copied first.
    fn dies(&self, r: Reg) -> bool {
        let ends = match self.kernel.body[r].op {
            Op::Const(_) => false,
            // Part of the product's instruction.
            Op::Un(Un::Neg, x) => self.dies(x),
            _ => true,
        };
        ends && self.uses[r] == 1 && !self.start.constants.contains_key(&r)
    }

    pub fn constant(&mut self, dtype: DType, bits: u64) -> Value {
        match dtype {
            DType::F32 => self.builder.ins().f32const(Ieee32::with_bits(bits as u32)),
            DType::F64 => self.builder.ins().f64const(Ieee64::with_bits(bits)),
            _ => self.builder.ins().iconst(machine(dtype), bits as i64),
        }
    }

    fn load(&mut self, m: MemId) -> Value {
        let address = self.start.addresses[m].expect("the address of an operand that is read");
        // What moves may be read where it is used; what does not would leave the loop, and take registers there.
        let moves = self.kernel.mems[m].stride.is_some_and(|stride| stride != 0);
        let constant = moves && self.kernel.stores.iter().all(|s| s.mem != m);
        let flags = if constant { flags().with_readonly().with_can_move() } else { flags() };
        self.builder.ins().load(machine(self.kernel.mems[m].dtype), flags, address, 0)
    }

    fn gather(&mut self, m: MemId, index: Reg) -> Value {
        let table = self.start.addresses[m].expect("the address of an operand that is read");
        let address = element(self.builder, &self.kernel.mems[m], table, self.get(index));
        self.builder.ins().load(machine(self.kernel.mems[m].dtype), flags(), address, 0)
    }

    fn un(&mut self, dtype: DType, un: Un, x: Reg) -> Value {
        let x = self.get(x);
        let ins = self.builder.ins();
        match un {
            Un::Neg if dtype.is_float() => ins.fneg(x),
            Un::Neg => ins.ineg(x),
            Un::Abs => ins.fabs(x),
            Un::Not if dtype == DType::Bool => ins.bxor_imm_u(x, 1),
            Un::Not => ins.bnot(x),
            Un::Sqrt => ins.sqrt(x),
            Un::Floor => ins.floor(x),
            Un::Ceil => ins.ceil(x),
            Un::Trunc => ins.trunc(x),
            Un::Round => ins.nearest(x),
        }
    }

    fn bin(&mut self, dtype: DType, bin: Bin, x: Reg, y: Reg) -> Value {
        // The second operand may come from memory, where constants are.
        let swap = matches!(bin, Bin::Add | Bin::Mul) && matches!(self.kernel.body[x].op, Op::Const(_));
        let (x, y) = if swap { (self.get(y), self.get(x)) } else { (self.get(x), self.get(y)) };
        if bin.divides_integers() {
            return divided(self.builder, bin, dtype, [x, y]);
        }
        let ins = self.builder.ins();
        match (bin, dtype.is_float()) {
            (Bin::Add, true) => ins.fadd(x, y),
            (Bin::Sub, true) => ins.fsub(x, y),
            (Bin::Mul, true) => ins.fmul(x, y),
            (Bin::Div, _) => ins.fdiv(x, y),
            (Bin::Add, false) => ins.iadd(x, y),
            (Bin::Sub, false) => ins.isub(x, y),
            (Bin::Mul, false) => ins.imul(x, y),
            (Bin::And, _) => ins.band(x, y),
            (Bin::Or, _) => ins.bor(x, y),
            (Bin::Xor, _) => ins.bxor(x, y),
            (Bin::Shl, _) => ins.ishl(x, y),
            (Bin::Shr, _) if dtype.is_signed_int() => ins.sshr(x, y),
            (Bin::Shr, _) => ins.ushr(x, y),
            (Bin::FloorDiv | Bin::Mod | Bin::Fmod, _) => unreachable!("quotients of integers take more than an instruction"),
        }
    }

    fn cmp(&mut self, cmp: Cmp, x: Reg, y: Reg) -> Value {
        let dtype = self.kernel.dtype(x);
        let (x, y) = (self.get(x), self.get(y));
        match dtype.is_float() {
            true => self.builder.ins().fcmp(float_condition(cmp), x, y),
            false => self.builder.ins().icmp(int_condition(cmp, dtype.is_signed_int()), x, y),
        }
    }

    fn bits(&mut self, dtype: DType, x: Reg) -> Value {
        let (value, to) = (self.get(x), machine(dtype));
        if machine(self.kernel.dtype(x)) == to { value } else { self.builder.ins().bitcast(to, MemFlagsData::new(), value) }
    }

    fn call(&mut self, f: HostFn, args: &[Reg]) -> Value {
        let signature = self.signature(args.len());
        let args: Vec<Value> = args.iter().map(|&r| self.get(r)).collect();
        if f.seldom() {
            return self.call_seldom(f, signature, args[0]);
        }
        let address = self.builder.ins().iconst(types::I64, f.address() as i64);
        let call = self.builder.ins().call_indirect(signature, address, &args);
        self.builder.inst_results(call)[0]
    }

    /// The value at 0 where the argument is that.
    fn call_seldom(&mut self, f: HostFn, signature: SigRef, arg: Value) -> Value {
        let (call, after) = (self.builder.create_block(), self.builder.create_block());
        self.builder.append_block_param(after, types::F64);
        self.builder.set_cold_block(call);
        let at_zero = self.builder.ins().f64const(f.value(0.0, 0.0));
        let bits = self.builder.ins().bitcast(types::I64, MemFlagsData::new(), arg);
        self.builder.ins().brif(bits, call, &[], after, &[at_zero.into()]);
        self.builder.switch_to_block(call);
        self.builder.seal_block(call);
        let address = self.builder.ins().iconst(types::I64, f.address() as i64);
        let called = self.builder.ins().call_indirect(signature, address, &[arg]);
        let value = self.builder.inst_results(called)[0];
        self.builder.ins().jump(after, &[value.into()]);
        self.builder.switch_to_block(after);
        self.builder.seal_block(after);
        self.builder.block_params(after)[0]
    }

    /// That of a function of so many f64 values.
    fn signature(&mut self, arity: usize) -> SigRef {
        if let Some(known) = self.signatures[arity - 1] {
            return known;
        }
        let mut signature = Signature::new(self.builder.func.signature.call_conv);
        signature.params = vec![AbiParam::new(types::F64); arity];
        signature.returns = vec![AbiParam::new(types::F64)];
        *self.signatures[arity - 1].insert(self.builder.import_signature(signature))
    }
}

/// A comparison of floats.
pub fn float_condition(cmp: Cmp) -> FloatCC {
    match cmp {
        Cmp::Eq => FloatCC::Equal,
        Cmp::Ne => FloatCC::NotEqual,
        Cmp::Lt => FloatCC::LessThan,
        Cmp::Le => FloatCC::LessThanOrEqual,
    }
}

fn int_condition(cmp: Cmp, signed: bool) -> IntCC {
    match (cmp, signed) {
        (Cmp::Eq, _) => IntCC::Equal,
        (Cmp::Ne, _) => IntCC::NotEqual,
        (Cmp::Lt, true) => IntCC::SignedLessThan,
        (Cmp::Le, true) => IntCC::SignedLessThanOrEqual,
        (Cmp::Lt, false) => IntCC::UnsignedLessThan,
        (Cmp::Le, false) => IntCC::UnsignedLessThanOrEqual,
    }
}
