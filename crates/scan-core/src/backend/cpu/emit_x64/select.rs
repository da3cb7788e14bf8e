//! Which machine operations a kernel is made of. Values keep their SSA form; registers, copies and memory come later.

use super::codes::{self as code, Row};
use super::small::{extended, is_small, widened};
use crate::backend::cpu::Refusal;
use crate::backend::cpu::isa::Isa;
use crate::base::{Id, IdxVec};
use crate::kernel::sides::{Skip, foreseen};
use crate::kernel::{Bin, CarryId, Cmp, HostFn, Inst, Kernel, Lane, Mem, MemId, Op, Reg, Un};
use crate::types::DType;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

crate::id! {
    /// A value after selection.
    Val,
}

/// The registers that a value lives in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// Vector registers.
    Vector,
    /// Mask registers; AVX2 has none and keeps masks in vectors.
    Mask,
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Birth {
    /// An operation.
    Made,
    /// The pool, that many bytes from its begin.
    Const(u32),
    /// An operand; read where it is used first.
    Load(MemId),
    /// The step before.
    Carry,
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    /// Its registers.
    pub class: Class,
    /// Bytes per lane, 4 or 8.
    pub size: u8,
    /// The same in all lanes.
    pub uniform: bool,
    /// Where it comes from.
    pub birth: Birth,
}

impl Value {
    /// The operand that it is an element of, where that is one of some: a bit each.
    pub(super) fn held(&self, mems: u64) -> Option<MemId> {
        match self.birth {
            Birth::Load(mem) if mem.idx() < 64 && mems >> mem.idx() & 1 == 1 => Some(mem),
            _ => None,
        }
    }
}

/// The shape of an operation; `row` has its instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// `row(a)`
    Unary,
    /// `row(a, b)`; true where they may be exchanged.
    Binary(bool),
    /// `a · b + c`
    Fma,
    /// A comparison that makes a mask.
    CompareMask,
    /// `mask ? b : c`
    BlendMask,
    /// `vector mask ? b : c`
    BlendVector,
    /// `mask ? b : 0`
    KeepMask,
    /// Masks combined.
    Logic(Logic),
    /// Reads an operand at its place in the step.
    Load(MemId),
    /// The number of the step.
    Step,
    /// The low halves of 64-bit lanes, on AVX2.
    Halves,
    /// A call for each lane.
    Call(HostFn),
    /// Elements of a table, by numbers that it has.
    Gather(MemId),
}

/// Combinations of masks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Logic {
    /// All clear.
    False,
    /// All set.
    True,
    /// The opposite.
    Not,
    /// Both.
    And,
    /// Not the first, but the second.
    AndNot,
    /// Either.
    Or,
    /// One.
    Xor,
    /// Equal.
    Same,
}

/// An operation.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// Its shape.
    pub form: Form,
    /// Its instruction, where the shape has several.
    pub row: Option<&'static Row>,
    /// Its immediate.
    pub imm: Option<u8>,
    /// What it makes.
    pub dst: Val,
    /// What it uses.
    pub args: SmallVec<[Val; 3]>,
}

/// A carry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handed {
    /// Its operand.
    pub mem: MemId,
    /// Its value in a step.
    pub now: Val,
    /// Its value in the next.
    pub next: Val,
}

/// A line of the pool.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Line(pub [u64; 8]);

/// A kernel in machine operations.
#[derive(Debug)]
pub(super) struct Program {
    /// For which processor.
    pub isa: Isa,
    /// Bytes of a vector register.
    pub vector: usize,
    /// Lanes of a vector.
    pub width: usize,
    /// Values.
    pub values: IdxVec<Val, Value>,
    /// Operations in order.
    pub operations: Vec<Operation>,
    /// What a step writes.
    pub stores: Vec<(MemId, Val)>,
    /// What a step hands to the next.
    pub carries: IdxVec<CarryId, Handed>,
    /// Operands.
    pub mems: IdxVec<MemId, Mem>,
    /// Constants.
    pub pool: Vec<Line>,
    /// Operands that are not found by way of others.
    pub few: Vec<usize>,
    /// Operations that are jumped over where no lane needs them.
    pub skips: Vec<Skip>,
}

impl Program {
    /// Bytes of a value's register. Of a value that is wider than what differs between lanes, a register has fewer lanes.
    pub(super) fn bytes(&self, v: Val) -> usize {
        self.row(self.values[v].size as usize)
    }
    /// Bytes of a register of elements.
    pub(super) fn row(&self, size: usize) -> usize {
        (self.width * size).min(self.vector)
    }
}

/// Selects operations on vectors of so many bytes.
///
/// # Errors
/// What the kernel needs and this engine lacks.
pub(super) fn select(kernel: &Kernel, isa: Isa, vector: usize) -> Result<Program, Refusal> {
    if kernel.scatters() {
        return refuse("it writes elements by their numbers");
    }
    let mut s = Selector::new(kernel, isa, vector)?;
    for (r, inst) in kernel.body.enumerate() {
        let v = s.inst(r, inst)?;
        s.map.push(v);
    }
    for (i, c) in kernel.carries.iter().enumerate() {
        let handed = Handed { mem: c.mem, now: s.carried[i], next: s.map[c.next] };
        s.program.carries.push(handed);
    }
    s.program.stores = kernel.stores.iter().map(|st| (st.mem, s.map[st.value])).collect();
    super::order::prune(&mut s.program);
    let foreseen = foreseen(kernel);
    super::order::arrange(&mut s.program, foreseen.is_some());
    if let Some(foreseen) = foreseen {
        let foreseen = foreseen.enumerate().filter(|(_, is)| **is).map(|(r, _)| s.map[r]).collect();
        super::skips::arrange(&mut s.program, &foreseen);
    }
    Ok(s.program)
}

pub(super) fn refuse<T>(text: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(text.into()))
}

pub(super) struct Selector<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) program: Program,
    pub(super) map: IdxVec<Reg, Val>,
    carried: Vec<Val>,
    constants: FxHashMap<(u64, u8), Val>,
    direct: FxHashSet<Reg>,
    /// Bytes per lane of the widest dtype that differs between lanes; on AVX2 also of masks.
    pub(super) widest: u8,
}

impl<'a> Selector<'a> {
    fn new(kernel: &'a Kernel, isa: Isa, vector: usize) -> Result<Self, Refusal> {
        let varying = kernel.varying();
        let lanes = kernel.body.iter().zip(varying.iter()).filter(|(_, v)| **v).map(|(i, _)| i.dtype);
        let lanes = lanes.chain(kernel.mems.iter().filter(|m| m.lane.varies()).map(|m| m.dtype));
        let widest = lanes.map(DType::size).max().unwrap_or(4).max(4);
        if kernel.mems.iter().any(|m| m.dtype.size() == 2 && matches!(m.lane, Lane::Apart(_))) && vector / widest > 8 {
            return refuse("more words that lie apart than a part of a vector has");
        }
        let program = Program {
            isa,
            vector,
            width: vector / widest,
            values: IdxVec::new(),
            operations: vec![],
            stores: vec![],
            carries: IdxVec::new(),
            mems: kernel.mems.clone(),
            pool: vec![],
            few: kernel.mems.iter().enumerate().filter(|(_, mem)| mem.beside.is_none()).map(|(k, _)| k).collect(),
            skips: vec![],
        };
        let kept = kernel.stores.iter().map(|s| s.value).chain(kernel.carries.iter().map(|c| c.next));
        let direct = kept.map(|r| origin(kernel, r)).collect();
        let map = IdxVec::new();
        let mut s = Selector { kernel, program, map, carried: vec![], constants: FxHashMap::default(), direct, widest: widest as u8 };
        for carry in kernel.carries.iter() {
            let mem = &kernel.mems[carry.mem];
            let value = s.value(s.class(mem.dtype), s.size(mem.dtype), mem.lane == Lane::Uniform, Birth::Carry);
            s.carried.push(value);
        }
        Ok(s)
    }
    pub(super) fn wide(&self) -> bool {
        self.program.isa == Isa::Avx512
    }
    pub(super) fn class(&self, dtype: DType) -> Class {
        if dtype == DType::Bool && self.wide() { Class::Mask } else { Class::Vector }
    }
    pub(super) fn size(&self, dtype: DType) -> u8 {
        if dtype == DType::Bool { self.widest } else { widened(dtype).size() as u8 }
    }
    fn value(&mut self, class: Class, size: u8, uniform: bool, birth: Birth) -> Val {
        self.program.values.push(Value { class, size, uniform, birth })
    }
    /// A constant of the pool.
    pub(super) fn constant(&mut self, bits: u64, size: u8) -> Val {
        let bits = if size == 4 { bits & 0xffff_ffff } else { bits };
        if let Some(&known) = self.constants.get(&(bits, size)) {
            return known;
        }
        let element = if size == 4 { bits | bits << 32 } else { bits };
        let known = self.constants.len();
        let words = self.program.vector / 8;
        let (line, place) = (known * words / 8, known * words % 8);
        if line == self.program.pool.len() {
            self.program.pool.push(Line([0; 8]));
        }
        self.program.pool[line].0[place..place + words].fill(element);
        let v = self.value(Class::Vector, size, true, Birth::Const((known * words * 8) as u32));
        self.constants.insert((bits, size), v);
        v
    }
    /// Appends an operation; its value.
    pub(super) fn make(
        &mut self,
        form: Form,
        row: Option<&'static Row>,
        imm: Option<u8>,
        class: Class,
        size: u8,
        uniform: bool,
        args: &[Val],
    ) -> Val {
        let dst = self.value(class, size, uniform, Birth::Made);
        self.program.operations.push(Operation { form, row, imm, dst, args: SmallVec::from_slice(args) });
        dst
    }
    /// An operation that makes a vector from values.
    pub(super) fn vector(&mut self, form: Form, row: &'static Row, size: u8, args: &[Val]) -> Val {
        let uniform = args.iter().all(|&a| self.program.values[a].uniform);
        self.make(form, Some(row), None, Class::Vector, size, uniform, args)
    }
    /// The same with an immediate.
    pub(super) fn vector_imm(&mut self, form: Form, row: &'static Row, imm: u8, size: u8, args: &[Val]) -> Val {
        let uniform = args.iter().all(|&a| self.program.values[a].uniform);
        self.make(form, Some(row), Some(imm), Class::Vector, size, uniform, args)
    }
    /// An operation that makes a mask.
    pub(super) fn mask(&mut self, form: Form, row: Option<&'static Row>, imm: Option<u8>, args: &[Val]) -> Val {
        let uniform = args.iter().all(|&a| self.program.values[a].uniform);
        let size = self.widest;
        self.make(form, row, imm, Class::Mask, size, uniform, args)
    }
    pub(super) fn logic(&mut self, logic: Logic, args: &[Val]) -> Val {
        self.mask(Form::Logic(logic), None, None, args)
    }

    fn inst(&mut self, r: Reg, inst: &Inst) -> Result<Val, Refusal> {
        let (dtype, size) = (inst.dtype, self.size(inst.dtype));
        Ok(match &inst.op {
            Op::Const(bits) => self.literal(*bits, dtype),
            Op::Step => self.make(Form::Step, None, None, Class::Vector, 8, true, &[]),
            Op::Load(m) => self.load(r, *m, dtype),
            Op::Gather(m, index) => self.gather(*m, self.map[*index], dtype),
            Op::Carry(c) => self.carried[c.idx()],
            Op::Un(un, x) => self.un(*un, self.map[*x], dtype)?,
            Op::Bin(bin, x, y) => self.bin(*bin, *x, *y, dtype)?,
            Op::Fma(x, y, z) => {
                let args: [Val; 3] = [self.map[*x], self.map[*y], self.map[*z]];
                if !dtype.is_float() {
                    return refuse("a fused product of integers");
                }
                self.vector(Form::Fma, if size == 8 { &code::FMA213_F64 } else { &code::FMA213_F32 }, size, &args)
            }
            Op::Cmp(cmp, x, y) => self.compare(*cmp, self.map[*x], self.map[*y], self.kernel.dtype(*x)),
            Op::Select(c, x, y) => match self.bounded(*c, *x, *y, dtype) {
                Some(value) => value,
                None => self.choose(self.map[*c], self.map[*x], self.map[*y], dtype),
            },
            Op::Convert(x) => self.convert(self.map[*x], self.kernel.dtype(*x), dtype)?,
            Op::Bits(x) => self.map[*x],
            Op::Call(f, args) => self.call(*f, args)?,
            Op::Loop(_) | Op::Last(..) | Op::Left(..) => return refuse("its steps run loops"),
        })
    }
    fn literal(&mut self, bits: u64, dtype: DType) -> Val {
        if dtype != DType::Bool {
            let bits = if is_small(dtype) { extended(bits, dtype) } else { bits };
            return self.constant(bits, self.size(dtype));
        }
        if self.wide() {
            return self.logic(if bits & 1 == 1 { Logic::True } else { Logic::False }, &[]);
        }
        self.constant(if bits & 1 == 1 { u64::MAX } else { 0 }, self.widest)
    }
    fn load(&mut self, r: Reg, mem: MemId, dtype: DType) -> Val {
        let (class, size, uniform) = (self.class(dtype), self.size(dtype), self.kernel.mems[mem].lane == Lane::Uniform);
        if dtype.size() < 4 || self.direct.contains(&r) {
            return self.make(Form::Load(mem), None, None, class, size, uniform, &[]);
        }
        self.value(class, size, uniform, Birth::Load(mem))
    }
    fn un(&mut self, un: Un, x: Val, dtype: DType) -> Result<Val, Refusal> {
        let size = self.size(dtype);
        let sign = 1u64 << (8 * u32::from(size) - 1);
        if dtype == DType::Bool {
            return match un {
                Un::Not if self.wide() => Ok(self.logic(Logic::Not, &[x])),
                Un::Not => Ok(self.flip(x, u64::MAX, size)),
                _ => refuse(format!("{un:?} of a bool")),
            };
        }
        if !dtype.is_float() {
            let zero = self.constant(0, size);
            let made = match un {
                Un::Neg => self.vector(Form::Binary(false), if size == 8 { &code::SUB_I64 } else { &code::SUB_I32 }, size, &[zero, x]),
                Un::Not => self.flip(x, u64::MAX, size),
                _ => return refuse(format!("{un:?} of integers")),
            };
            return Ok(self.narrow(made, dtype));
        }
        let double = size == 8;
        let round = if double { &code::ROUND_F64 } else { &code::ROUND_F32 };
        Ok(match un {
            Un::Neg => {
                let c = self.constant(sign, size);
                self.vector(Form::Binary(true), if double { &code::XOR_F64 } else { &code::XOR_F32 }, size, &[x, c])
            }
            Un::Abs => {
                let c = self.constant(sign - 1, size);
                self.vector(Form::Binary(true), if double { &code::AND_F64 } else { &code::AND_F32 }, size, &[x, c])
            }
            Un::Sqrt => self.vector(Form::Unary, if double { &code::SQRT_F64 } else { &code::SQRT_F32 }, size, &[x]),
            Un::Round => self.vector_imm(Form::Unary, round, 0x08, size, &[x]),
            Un::Floor => self.vector_imm(Form::Unary, round, 0x09, size, &[x]),
            Un::Ceil => self.vector_imm(Form::Unary, round, 0x0a, size, &[x]),
            Un::Trunc => self.vector_imm(Form::Unary, round, 0x0b, size, &[x]),
            Un::Not => return refuse("the bits of a float turned"),
        })
    }
    /// `x` with some bits turned.
    pub(super) fn flip(&mut self, x: Val, bits: u64, size: u8) -> Val {
        let c = self.constant(bits, size);
        self.vector(Form::Binary(true), if size == 8 { &code::XOR_I64 } else { &code::XOR_I32 }, size, &[x, c])
    }
    fn bin(&mut self, bin: Bin, x: Reg, y: Reg, dtype: DType) -> Result<Val, Refusal> {
        let (a, b, size) = (self.map[x], self.map[y], self.size(dtype));
        if dtype == DType::Bool {
            return self.bin_bool(bin, a, b);
        }
        if dtype.is_float() {
            let rows: [&'static Row; 2] = match bin {
                Bin::Add => [&code::ADD_F32, &code::ADD_F64],
                Bin::Sub => [&code::SUB_F32, &code::SUB_F64],
                Bin::Mul => [&code::MUL_F32, &code::MUL_F64],
                Bin::Div => [&code::DIV_F32, &code::DIV_F64],
                _ => return refuse(format!("{bin:?} of floats")),
            };
            return Ok(self.vector(Form::Binary(matches!(bin, Bin::Add | Bin::Mul)), rows[usize::from(size == 8)], size, &[a, b]));
        }
        if matches!(bin, Bin::Shl | Bin::Shr) {
            let made = self.shift(bin, a, b, self.amount(y), dtype);
            return Ok(self.narrow(made, dtype));
        }
        if bin == Bin::Mul && size == 8 && !self.wide() {
            return Ok(self.product(a, b));
        }
        let rows: [&'static Row; 2] = match bin {
            Bin::Add => [&code::ADD_I32, &code::ADD_I64],
            Bin::Sub => [&code::SUB_I32, &code::SUB_I64],
            Bin::Mul => [&code::MUL_I32, &code::MUL_I64],
            Bin::And => [&code::AND_I32, &code::AND_I64],
            Bin::Or => [&code::OR_I32, &code::OR_I64],
            Bin::Xor => [&code::XOR_I32, &code::XOR_I64],
            _ => return refuse(format!("{bin:?} of {dtype}")),
        };
        let made = self.vector(Form::Binary(bin != Bin::Sub), rows[usize::from(size == 8)], size, &[a, b]);
        Ok(if matches!(bin, Bin::And | Bin::Or | Bin::Xor) { made } else { self.narrow(made, dtype) })
    }
    fn bin_bool(&mut self, bin: Bin, a: Val, b: Val) -> Result<Val, Refusal> {
        let (logic, rows): (_, [&'static Row; 2]) = match bin {
            Bin::And => (Logic::And, [&code::AND_I32, &code::AND_I64]),
            Bin::Or => (Logic::Or, [&code::OR_I32, &code::OR_I64]),
            Bin::Xor => (Logic::Xor, [&code::XOR_I32, &code::XOR_I64]),
            _ => return refuse(format!("{bin:?} of bools")),
        };
        if self.wide() {
            return Ok(self.logic(logic, &[a, b]));
        }
        let size = self.widest;
        Ok(self.vector(Form::Binary(true), rows[usize::from(size == 8)], size, &[a, b]))
    }
    /// The constant that a value is.
    fn amount(&self, y: Reg) -> Option<u8> {
        match self.kernel.body[y].op {
            Op::Const(bits) => Some(bits as u8),
            _ => None,
        }
    }
    fn call(&mut self, f: HostFn, args: &[Reg]) -> Result<Val, Refusal> {
        if cfg!(windows) {
            return refuse("a call of a host function, on Windows");
        }
        let args: SmallVec<[Val; 2]> = args.iter().map(|&a| self.map[a]).collect();
        let uniform = args.iter().all(|&a| self.program.values[a].uniform);
        Ok(self.make(Form::Call(f), None, None, Class::Vector, 8, uniform, &args))
    }
}

/// The value whose bits a value has.
fn origin(kernel: &Kernel, r: Reg) -> Reg {
    match kernel.body[r].op {
        Op::Bits(x) => origin(kernel, x),
        Op::Convert(x) if super::convert::free(kernel.dtype(x), kernel.dtype(r)) => origin(kernel, x),
        _ => r,
    }
}

/// Two of a kind, by the predicate's order of operands.
pub(super) fn pair(swapped: bool, x: Val, y: Val) -> SmallVec<[Val; 3]> {
    if swapped { smallvec![y, x] } else { smallvec![x, y] }
}

/// The predicate of `Cmp` for floats, as instructions encode it.
pub(super) fn float_predicate(cmp: Cmp) -> u8 {
    match cmp {
        Cmp::Eq => 0x00,
        Cmp::Ne => 0x04,
        Cmp::Lt => 0x11,
        Cmp::Le => 0x12,
    }
}
