//! Integers of 8 and 16 bits: in memory as they are, in registers numbers of 32 bits with the same value. Tables of them, and of bools.

use super::alloc::Emitter;
use super::asm::{Masking, Place, Rm, mask, vector};
use super::codes::{self as code, Row};
use super::memory::{CALLS, Pointer, TEMP};
use super::select::{Form, Selector, Val};
use crate::backend::cpu::Refusal;
use crate::backend::cpu::isa::Isa;
use crate::kernel::{Cmp, Lane, MemId};
use crate::types::DType;
use iced_x86::{Code, Register};

/// True for integers that have fewer bits in memory than in registers.
pub(super) fn is_small(dtype: DType) -> bool {
    dtype.is_int() && dtype.size() < 4
}

/// The dtype of a value in registers.
pub(super) fn widened(dtype: DType) -> DType {
    if is_small(dtype) { DType::I32 } else { dtype }
}

/// The bits in a register of a value with these bits in memory.
pub(super) fn extended(bits: u64, dtype: DType) -> u64 {
    let bits = match dtype {
        DType::I8 => i64::from(bits as i8),
        DType::I16 => i64::from(bits as i16),
        _ => return bits & ((1 << (8 * dtype.size())) - 1),
    };
    bits as u64
}

impl Selector<'_> {
    /// What an operation on 32 bits makes, as a number of a dtype that may have fewer: the rest is its sign, or zero.
    pub(super) fn narrow(&mut self, x: Val, dtype: DType) -> Val {
        if !is_small(dtype) {
            return x;
        }
        let bits = 8 * dtype.size() as u8;
        if dtype.is_signed_int() {
            let high = self.vector_imm(Form::Unary, &code::SHL_IMM_I32, 32 - bits, 4, &[x]);
            return self.vector_imm(Form::Unary, &code::SHR_IMM_I32, 32 - bits, 4, &[high]);
        }
        let low = self.constant((1 << bits) - 1, 4);
        self.vector(Form::Binary(true), &code::AND_I32, 4, &[x, low])
    }
    /// Another number as one of few bits: the low ones of an integer; of a float, truncated, the nearest one.
    pub(super) fn small_of(&mut self, x: Val, from: DType, to: DType) -> Result<Val, Refusal> {
        let x = self.convert(x, from, DType::I32)?;
        if !from.is_float() {
            return Ok(self.narrow(x, to));
        }
        let bits = 8 * to.size() as u32;
        let (least, most) = if to.is_signed_int() { (-1i64 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, (1i64 << bits) - 1) };
        let (least, most) = (self.constant(least as u64, 4), self.constant(most as u64, 4));
        let below = self.compare(Cmp::Lt, x, least, DType::I32);
        let x = self.choose(below, least, x, DType::I32);
        let above = self.compare(Cmp::Lt, most, x, DType::I32);
        Ok(self.choose(above, most, x, DType::I32))
    }
}

impl Emitter<'_> {
    /// Reads integers of few bits from a place on, by way of the vector register `temp`.
    pub(super) fn load_small(&mut self, mem: MemId, place: Place, copy: usize, reg: u8, temp: u8) {
        let (dtype, lane) = (self.program.mems[mem].dtype, self.program.mems[mem].lane);
        let (size, bytes, wide) = (dtype.size(), self.program.row(4), self.program.isa == Isa::Avx512);
        let (widen, to) = (self.asm.code(widening(dtype), bytes), vector(reg, bytes));
        let masking = self.masking(copy, true);
        match (lane, masking) {
            (Lane::Unit, Masking::None) => return self.asm.fetch(widen, to, place),
            (Lane::Unit, _) if wide => return self.asm.masked_load(widen, to, place, masking),
            (Lane::Uniform, _) => self.asm.fetch(encoded(BROADCAST, size, wide), vector(temp, 32), place),
            (lane, _) => self.load_each((place, lane), size, vector(temp, 16), masking != Masking::None),
        }
        self.widen(temp, reg, dtype);
    }
    /// Bytes or words of one register as numbers of 32 bits of another.
    fn widen(&mut self, from: u8, reg: u8, dtype: DType) {
        let bytes = self.program.row(4);
        let from = vector(from, (bytes / 4 * dtype.size()).max(16));
        self.asm.two(self.asm.code(widening(dtype), bytes), vector(reg, bytes), from);
    }
    /// Writes integers of few bits from a place on, by way of the vector register `temp`.
    pub(super) fn store_small(&mut self, mem: MemId, place: Place, copy: usize, reg: u8, temp: u8) {
        let (dtype, lane) = (self.program.mems[mem].dtype, self.program.mems[mem].lane);
        let (size, bytes, wide) = (dtype.size(), self.program.row(4), self.program.isa == Isa::Avx512);
        let masking = self.masking(copy, false);
        if lane == Lane::Uniform {
            return self.asm.extract(encoded(EXTRACT, size, wide), place, vector(reg, 16), 0);
        }
        let cut = self.asm.code(if size == 1 { &code::I32_TO_I8 } else { &code::I32_TO_I16 }, bytes);
        match (lane, masking) {
            (Lane::Unit, _) if wide => return self.asm.masked_store(cut, place, vector(reg, bytes), masking),
            _ if wide => self.asm.two(cut, vector(temp, 16), vector(reg, bytes)),
            _ => self.pack(reg, temp, dtype),
        }
        let x = vector(temp, 16);
        match (lane, masking, bytes / 4 * size) {
            (Lane::Unit, Masking::None, 4) => self.asm.put(Code::VEX_Vmovd_rm32_xmm, place, x),
            (Lane::Unit, Masking::None, 8) => self.asm.put(Code::VEX_Vmovq_xmmm64_xmm, place, x),
            (Lane::Unit, Masking::None, _) => self.asm.put(Code::VEX_Vmovups_xmmm128_xmm, place, x),
            _ => self.store_each((place, lane), size, x, masking != Masking::None),
        }
    }
    /// Numbers of 32 bits as such of a dtype of fewer, side by side from the front on, without AVX-512.
    fn pack(&mut self, reg: u8, temp: u8, dtype: DType) {
        let (x, whole, signed) = (vector(temp, 16), self.program.row(4) == 32, dtype.is_signed_int());
        if whole {
            self.asm.unary(Code::VEX_Vextracti128_xmmm128_ymm_imm8, x, vector(reg, 32), Some(1));
        }
        let words = if signed { Code::VEX_Vpackssdw_xmm_xmm_xmmm128 } else { Code::VEX_Vpackusdw_xmm_xmm_xmmm128 };
        self.asm.binary(words, x, vector(reg, 16), Rm::Reg(if whole { temp } else { reg }), None, Masking::None);
        if dtype.size() == 1 {
            let bytes = if signed { Code::VEX_Vpacksswb_xmm_xmm_xmmm128 } else { Code::VEX_Vpackuswb_xmm_xmm_xmmm128 };
            self.asm.three(bytes, x, x, x);
        }
    }
    /// Reads elements of a byte or two of a table one by one; all lanes of the numbers are within it.
    pub(super) fn gather_small(&mut self, mem: MemId, dst: usize, index: usize) {
        let (dtype, wide) = (self.program.mems[mem].dtype, self.program.isa == Isa::Avx512);
        let size = dtype.size();
        let uniform = self.program.values[self.virtuals[dst].val].uniform;
        let by = self.use_reg(index);
        let numbers = Place::at(Register::RSP, CALLS);
        self.asm.put(self.asm.code(&code::STORE_F64, self.bytes(index)), numbers, self.register(index, by));
        let temp = self.take(0, None);
        let reg = self.define(dst);
        let x = vector(temp, 16);
        self.asm.three(self.asm.code(&code::XOR_I32, 16), x, x, x);
        for lane in 0..if uniform { 1 } else { self.program.width } {
            self.asm.fetch(Code::Mov_r64_rm64, TEMP, Place { offset: CALLS + 8 * lane as i64, ..numbers });
            let place = self.element_of(mem, size);
            self.asm.insert_byte(encoded(INSERT, size, wide), x, place, lane as u32);
        }
        if uniform {
            self.asm.two(encoded(BROADCAST, size, wide), vector(temp, 32), x);
        }
        match (dtype, wide) {
            (DType::Bool, true) => self.asm.binary(Code::EVEX_Vptestmb_kr_k1_xmm_xmmm128, mask(reg), x, Rm::Reg(temp), None, Masking::None),
            (DType::Bool, false) => self.bytes_to_lanes(temp, reg, temp),
            _ => self.widen(temp, reg, dtype),
        }
        self.release(&[index]);
    }
    /// The place of a table's element of so many bytes whose number is in [`TEMP`].
    fn element_of(&mut self, mem: MemId, size: usize) -> Place {
        if size == 2 {
            self.asm.two(Code::Add_r64_rm64, TEMP, TEMP);
        }
        let (other, offset) = self.program.found_by(mem);
        match self.pointers.of[other] {
            Pointer::Slot(slot) => self.asm.fetch(Code::Add_r64_rm64, TEMP, Place::at(Register::RSP, slot)),
            Pointer::Reg(base) => self.asm.two(Code::Add_r64_rm64, TEMP, base),
            Pointer::None => self.asm.fail("a table without a pointer"),
        }
        Place::at(TEMP, offset)
    }
    /// Reads elements of a byte or two one by one, of the last vector those of the lanes that there are; others are zero.
    pub(super) fn load_each(&mut self, from: (Place, Lane), size: usize, x: Register, tail: bool) {
        self.asm.three(self.asm.code(&code::XOR_I32, 16), x, x, x);
        let code = encoded(INSERT, size, self.program.isa == Isa::Avx512);
        self.each(from, size, tail, |e, place, lane| e.asm.insert_byte(code, x, place, lane));
    }
    /// Writes them.
    pub(super) fn store_each(&mut self, to: (Place, Lane), size: usize, x: Register, tail: bool) {
        let code = encoded(EXTRACT, size, self.program.isa == Isa::Avx512);
        self.each(to, size, tail, |e, place, lane| e.asm.extract(code, place, x, lane));
    }
    /// Code for each lane of a vector, as many as there are.
    fn each(&mut self, (place, by): (Place, Lane), size: usize, tail: bool, mut code: impl FnMut(&mut Self, Place, u32)) {
        let (by, mut ends) = (by.elements() as i64 * size as i64, vec![]);
        for lane in 0..self.program.width {
            ends.extend(self.leave_without(lane, tail));
            code(self, Place { offset: place.offset + lane as i64 * by, ..place }, lane as u32);
        }
        ends.into_iter().for_each(|end| self.asm.land(end));
    }
}

/// Instructions for bytes and words, each with AVX-512 and without.
type Narrow = [[Code; 2]; 2];

/// Writes an element.
const EXTRACT: Narrow = [
    [Code::EVEX_Vpextrb_r32m8_xmm_imm8, Code::VEX_Vpextrb_r32m8_xmm_imm8],
    [Code::EVEX_Vpextrw_r32m16_xmm_imm8, Code::VEX_Vpextrw_r32m16_xmm_imm8],
];
/// Reads an element.
const INSERT: Narrow = [
    [Code::EVEX_Vpinsrb_xmm_xmm_r32m8_imm8, Code::VEX_Vpinsrb_xmm_xmm_r32m8_imm8],
    [Code::EVEX_Vpinsrw_xmm_xmm_r32m16_imm8, Code::VEX_Vpinsrw_xmm_xmm_r32m16_imm8],
];
/// Gives an element to all lanes.
const BROADCAST: Narrow = [
    [Code::EVEX_Vpbroadcastb_ymm_k1z_xmmm8, Code::VEX_Vpbroadcastb_ymm_xmmm8],
    [Code::EVEX_Vpbroadcastw_ymm_k1z_xmmm16, Code::VEX_Vpbroadcastw_ymm_xmmm16],
];

/// The instruction for elements of so many bytes.
fn encoded(codes: Narrow, size: usize, wide: bool) -> Code {
    codes[usize::from(size == 2)][usize::from(!wide)]
}

/// Makes numbers of 32 bits of such of a dtype of fewer.
fn widening(dtype: DType) -> &'static Row {
    match (dtype.size(), dtype.is_signed_int()) {
        (1, true) => &code::I8_TO_I32,
        (1, false) => &code::U8_TO_I32,
        (_, true) => &code::I16_TO_I32,
        (_, false) => &code::U16_TO_I32,
    }
}
