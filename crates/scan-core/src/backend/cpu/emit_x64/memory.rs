//! Operands: which registers point to them, and how elements, constants and masks are read and written.

use super::alloc::Emitter;
use super::asm::{Masking, Place, vector};
use super::codes as code;
use super::select::{Birth, Form, Program};
use super::small::is_small;
use crate::backend::cpu::isa::Isa;
use crate::base::{Id, IdxVec};
use crate::kernel::{Lane, MemId};
use crate::types::DType;
use iced_x86::{Code, MemoryOperand, Register};

/// The table of pointers and strides.
pub(super) const TABLE: Register = Register::RBX;
/// The pool of constants.
pub(super) const POOL: Register = Register::RBP;
/// Steps left.
pub(super) const STEPS: Register = Register::R12;
/// The number of the step.
pub(super) const STEP: Register = Register::R13;
/// Free at any time.
pub(super) const TEMP: Register = Register::RAX;
/// Counts the lanes of a call.
pub(super) const LANE: Register = Register::R15;
/// Bytes of an entry of the table: pointer and stride.
pub(super) const ENTRY: i64 = 16;
/// Where arguments and results of calls lie in the frame: three vectors. The first also holds numbers of a table's elements.
pub(super) const CALLS: i64 = 64;
/// Where registers are saved around a call that is seldom made: 32 vectors, then 8 masks.
pub(super) const SAVED: i64 = CALLS + 3 * 64;

/// Where the pointer to an operand is during the time loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pointer {
    /// The step does not touch it.
    None,
    /// In a register.
    Reg(Register),
    /// In the frame.
    Slot(i64),
}

/// Pointers of all operands.
pub(super) struct Pointers {
    pub of: IdxVec<MemId, Pointer>,
    /// Bytes of the frame before the slots of values.
    pub frame: i64,
}

impl Pointers {
    /// Operands that the step touches most get registers. It does not touch those that are `held`.
    pub(super) fn new(program: &Program, held: u64) -> Pointers {
        let mut touched = vec![0usize; program.mems.len()];
        let read = program.values.iter().filter(|v| v.held(held).is_none());
        let loads = read.filter_map(|v| if let Birth::Load(m) = v.birth { Some(m) } else { None });
        let direct = program.operations.iter().filter_map(|o| if let Form::Load(m) | Form::Gather(m) = o.form { Some(m) } else { None });
        for m in loads.chain(direct).chain(program.stores.iter().map(|s| s.0)) {
            touched[program.found_by(m).0.idx()] += 1;
        }
        let calls = program.operations.iter().any(|o| matches!(o.form, Form::Call(_)));
        let seldom = program.operations.iter().any(|o| matches!(o.form, Form::Call(f) if f.seldom()));
        let mut free = registers(calls, program.operations.iter().any(|o| o.form == Form::Step));
        let mut order: Vec<usize> = (0..touched.len()).filter(|&m| touched[m] > 0).collect();
        order.sort_by_key(|&m| std::cmp::Reverse(touched[m]));
        let mut of = vec![Pointer::None; touched.len()];
        let small = |form| matches!(form, Form::Gather(table) if program.mems[table].dtype.size() < 4);
        let mut frame = match (calls, seldom) {
            (_, true) => SAVED + 32 * program.vector as i64 + 8 * 8,
            (true, false) => SAVED,
            _ if program.operations.iter().any(|o| small(o.form)) => CALLS + 64,
            _ => CALLS,
        };
        for m in order {
            of[m] = free.pop().map_or_else(
                || {
                    frame += 8;
                    Pointer::Slot(frame - 8)
                },
                Pointer::Reg,
            );
        }
        Pointers { of: of.into_iter().fold(IdxVec::new(), pushed), frame: (frame + 63) & !63 }
    }
    /// True where an instruction can address the operand without a load.
    pub(super) fn reachable(&self, program: &Program, mem: MemId) -> bool {
        matches!(self.of[program.found_by(mem).0], Pointer::Reg(_))
    }
    /// The place of a copy's elements; the pointer is in a register, or has been brought to `TEMP`.
    pub(super) fn place(&self, program: &Program, mem: MemId, copy: usize) -> Place {
        let (other, bytes) = program.found_by(mem);
        let base = if let Pointer::Reg(r) = self.of[other] { r } else { TEMP };
        Place::at(base, bytes + offset(program, mem, copy))
    }
}

fn pushed<I: Id, T>(mut v: IdxVec<I, T>, item: T) -> IdxVec<I, T> {
    v.push(item);
    v
}

/// Registers for pointers, the last first.
fn registers(calls: bool, step: bool) -> Vec<Register> {
    use Register::{R8, R9, R10, R11, R13, R14, R15, RCX, RDI, RDX, RSI};
    let mut free = if calls { vec![R14] } else { vec![R15, R14, R11, R10, R9, R8, RDX, RCX, RDI, RSI] };
    if !step {
        free.insert(0, R13);
    }
    free
}

/// Bytes from an operand's lane 0 of the block to its first lane of a copy.
pub(super) fn offset(program: &Program, mem: MemId, copy: usize) -> i64 {
    let mem = &program.mems[mem];
    mem.lane.elements() as i64 * (copy * program.width * mem.dtype.size()) as i64
}

impl Emitter<'_> {
    /// The place of a copy's elements, the pointer brought to a register.
    fn place(&mut self, mem: MemId, copy: usize) -> Place {
        if let Pointer::Slot(slot) = self.pointers.of[self.program.found_by(mem).0] {
            self.asm.fetch(Code::Mov_r64_rm64, TEMP, Place::at(Register::RSP, slot));
        }
        self.pointers.place(self.program, mem, copy)
    }
    /// Elements of a table of so many bytes each, by the numbers in a vector register.
    pub(super) fn table(&mut self, mem: MemId, numbers: Register, size: u32) -> MemoryOperand {
        let base = self.place(mem, 0).base;
        MemoryOperand::new(base, numbers, size, 0, 0, false, Register::None)
    }
    /// Reads elements; of bytes and words, and of those that lie apart, by way of the vector register `temp`.
    pub(super) fn load(&mut self, mem: MemId, copy: usize, reg: u8, temp: Option<u8>) {
        let place = self.place(mem, copy);
        self.load_at(mem, place, copy, reg, temp);
    }
    pub(super) fn load_at(&mut self, id: MemId, place: Place, copy: usize, reg: u8, temp: Option<u8>) {
        let mem = self.program.mems[id].clone();
        if mem.dtype == DType::Bool {
            return self.load_bools(mem.lane, place, copy, reg, temp.unwrap_or(0));
        }
        if is_small(mem.dtype) {
            return self.load_small(id, place, copy, reg, temp.unwrap_or(0));
        }
        let (double, bytes) = (mem.dtype.size() == 8, self.program.row(mem.dtype.size()));
        if let Lane::Apart(_) = mem.lane {
            return self.load_apart(id, place, copy, reg, temp);
        }
        if mem.lane == Lane::Uniform {
            let code = self.asm.code(if double { &code::BROADCAST_F64 } else { &code::BROADCAST_F32 }, bytes);
            return self.asm.fetch(code, vector(reg, bytes), place);
        }
        let masking = self.masking(copy, true);
        if masking != Masking::None && self.program.isa == Isa::Avx2 {
            let code = self.asm.code(if double { &code::MASK_LOAD_F64 } else { &code::MASK_LOAD_F32 }, bytes);
            let lanes = self.tail_mask(double, bytes);
            return self.asm.binary(code, vector(reg, bytes), lanes, super::asm::Rm::Mem(place), None, Masking::None);
        }
        let code = self.asm.code(if double { &code::MOVE_F64 } else { &code::MOVE_F32 }, bytes);
        self.asm.masked_load(code, vector(reg, bytes), place, masking);
    }
    /// The vector that has the sign bit in the last copy's lanes, on AVX2.
    pub(super) fn tail_mask(&self, double: bool, bytes: usize) -> Register {
        vector(if double || self.program.width == 8 { 15 } else { 14 }, bytes)
    }
    /// Writes elements from a register; bytes, words, and what lies apart, by way of the vector register `temp`.
    pub(super) fn store(&mut self, mem: MemId, copy: usize, reg: u8, temp: Option<u8>) {
        let place = self.place(mem, copy);
        self.store_at(mem, place, copy, reg, temp, self.shape.streams);
    }
    /// The same at a place; `streams` past the caches.
    pub(super) fn store_at(&mut self, id: MemId, place: Place, copy: usize, reg: u8, temp: Option<u8>, streams: bool) {
        let mem = self.program.mems[id].clone();
        if mem.dtype == DType::Bool {
            return self.store_bools(mem.lane, place, copy, reg, temp.unwrap_or(0));
        }
        if is_small(mem.dtype) {
            return self.store_small(id, place, copy, reg, temp.unwrap_or(0));
        }
        if let Lane::Apart(_) = mem.lane {
            return self.store_apart(id, place, copy, reg, temp);
        }
        let (double, bytes, wide) = (mem.dtype.size() == 8, self.program.row(mem.dtype.size()), self.program.isa == Isa::Avx512);
        if mem.lane == Lane::Uniform {
            let code = match (double, wide) {
                (true, true) => Code::EVEX_Vmovsd_m64_k1_xmm,
                (true, false) => Code::VEX_Vmovsd_m64_xmm,
                (false, true) => Code::EVEX_Vmovss_m32_k1_xmm,
                (false, false) => Code::VEX_Vmovss_m32_xmm,
            };
            return self.asm.put(code, place, vector(reg, 16));
        }
        let masking = self.masking(copy, false);
        if masking != Masking::None && !wide {
            let code = self.asm.code(if double { &code::MASK_STORE_F64 } else { &code::MASK_STORE_F32 }, bytes);
            let lanes = self.tail_mask(double, bytes);
            return self.asm.store_masked_by(code, place, lanes, vector(reg, bytes));
        }
        let row = match (streams && masking == Masking::None, double) {
            (true, true) => &code::STREAM_F64,
            (true, false) => &code::STREAM_F32,
            (false, true) => &code::STORE_F64,
            (false, false) => &code::STORE_F32,
        };
        let code = self.asm.code(row, bytes);
        self.asm.masked_store(code, place, vector(reg, bytes), masking);
    }
    /// A constant of the pool, which has it for all lanes: giving one element to all of them takes one of the places where sums are made.
    pub(super) fn load_constant(&mut self, v: usize, offset: u32, reg: u8) {
        let (place, bytes) = (Place::at(POOL, i64::from(offset)), self.bytes(v));
        let code = self.asm.code(&code::MOVE_F64, bytes);
        self.asm.fetch(code, vector(reg, bytes), place);
    }
    /// The class side of an operand's values.
    pub(super) fn is_mask(&self, mem: MemId) -> bool {
        self.program.mems[mem].dtype == DType::Bool && self.program.isa == Isa::Avx512
    }
    /// A vector register that the current item may use, where elements go to or come from memory that are bytes or words, or lie apart.
    pub(super) fn temp_for(&mut self, mem: MemId) -> Option<u8> {
        (self.program.mems[mem].dtype.size() < 4 || self.program.has_parts(mem)).then(|| self.take(0, None))
    }
}
