//! Bytes of machine code, instruction by instruction.

use super::codes::Row;
use crate::backend::cpu::Refusal;
use crate::backend::cpu::isa::Isa;
use iced_x86::{Code, Encoder, IcedError, Instruction, MemoryOperand, Register};

/// The last operand of most vector instructions.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rm {
    /// A register, by number.
    Reg(u8),
    /// Memory.
    Mem(Place),
}

/// A place in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The register that it counts from.
    pub base: Register,
    /// A register of which eight times the value is added.
    pub index: Register,
    /// Bytes from there.
    pub offset: i64,
    /// One element for all lanes.
    pub broadcast: bool,
}

impl Place {
    /// Full width at an offset.
    pub(super) fn at(base: Register, offset: i64) -> Place {
        Place { base, index: Register::None, offset, broadcast: false }
    }
    /// As the encoder takes it.
    pub(super) fn operand(self) -> MemoryOperand {
        let (scale, size) = (if self.index == Register::None { 1 } else { 8 }, u32::from(self.offset != 0));
        MemoryOperand::new(self.base, self.index, scale, self.offset, size, self.broadcast, Register::None)
    }
}

/// The vector register of a number, `bytes` wide.
pub(super) fn vector(number: u8, bytes: usize) -> Register {
    let first = match bytes {
        16 => Register::XMM0,
        32 => Register::YMM0,
        _ => Register::ZMM0,
    };
    first + u32::from(number)
}

/// Bytes of a vector register.
fn width(register: Register) -> usize {
    if register >= Register::ZMM0 {
        64
    } else if register >= Register::YMM0 {
        32
    } else {
        16
    }
}

/// The mask register of a number.
pub(super) fn mask(number: u8) -> Register {
    Register::K0 + u32::from(number)
}

/// Which lanes a move touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Masking {
    /// All.
    None,
    /// Those of a mask register.
    Merge(u8),
    /// Those of a mask register; the others become zero.
    Zero(u8),
}

/// Code under construction.
pub(super) struct Asm {
    encoder: Encoder,
    len: u64,
    error: Option<String>,
    isa: Isa,
    /// Jumps forward: where the distance of each stands, and its target.
    ahead: Vec<(usize, u64)>,
}

impl Asm {
    /// Nothing yet.
    pub(super) fn new(isa: Isa) -> Asm {
        Asm { encoder: Encoder::new(64), len: 0, error: None, isa, ahead: vec![] }
    }
    /// The address of the next instruction, counted from the first.
    pub(super) fn here(&self) -> u64 {
        self.len
    }
    /// The encoding of a row for operands of a width.
    pub(super) fn code(&self, row: &Row, bytes: usize) -> Code {
        let column = bytes.trailing_zeros() as usize - 4;
        row.0[if self.isa == Isa::Avx512 { 2 + column } else { column }]
    }
    /// Appends an instruction.
    pub(super) fn push(&mut self, instruction: Result<Instruction, IcedError>) {
        let encoded = instruction.and_then(|i| self.encoder.encode(&i, self.len));
        match encoded {
            Ok(len) => self.len += len as u64,
            Err(e) => self.error = self.error.take().or(Some(e.to_string())),
        }
    }
    /// A jump back to an address.
    pub(super) fn jump(&mut self, code: Code, target: u64) {
        self.push(Instruction::with_branch(code, target));
    }
    /// A jump forward, to where [`Asm::land`] is called with what this gives; `code` has a distance of four bytes.
    pub(super) fn jump_ahead(&mut self, code: Code) -> usize {
        self.jump(code, self.len);
        self.ahead.push((self.len as usize - 4, 0));
        self.ahead.len() - 1
    }
    /// The target of a jump forward.
    pub(super) fn land(&mut self, jump: usize) {
        self.ahead[jump].1 = self.len;
    }
    /// An instruction without operands.
    pub(super) fn plain(&mut self, code: Code) {
        self.push(Ok(Instruction::with(code)));
    }
    /// One register.
    pub(super) fn one(&mut self, code: Code, a: Register) {
        self.push(Instruction::with1(code, a));
    }
    /// One place.
    pub(super) fn one_place(&mut self, code: Code, a: Place) {
        self.push(Instruction::with1(code, a.operand()));
    }
    /// Two registers.
    pub(super) fn two(&mut self, code: Code, a: Register, b: Register) {
        self.push(Instruction::with2(code, a, b));
    }
    /// Three registers.
    pub(super) fn three(&mut self, code: Code, a: Register, b: Register, c: Register) {
        self.push(Instruction::with3(code, a, b, c));
    }
    /// Adds a number to a word in memory.
    pub(super) fn add_to_place(&mut self, a: Place, b: i32) {
        self.push(Instruction::with2(Code::Add_rm64_imm32, a.operand(), b));
    }
    /// A register and a number.
    pub(super) fn number(&mut self, code: Code, a: Register, b: u64) {
        self.push(Instruction::with2(code, a, b));
    }
    /// A place and a number.
    pub(super) fn number_at(&mut self, code: Code, a: Place, b: u32) {
        self.push(Instruction::with2(code, a.operand(), b));
    }
    /// A register from a place.
    pub(super) fn fetch(&mut self, code: Code, a: Register, b: Place) {
        self.push(Instruction::with2(code, a, b.operand()));
    }
    /// A place from a register.
    pub(super) fn put(&mut self, code: Code, a: Place, b: Register) {
        self.push(Instruction::with2(code, a.operand(), b));
    }
    /// `dst = row(a)` with a mask.
    pub(super) fn masked_load(&mut self, code: Code, dst: Register, place: Place, masking: Masking) {
        self.push(Instruction::with2(code, dst, place.operand()).map(|i| masked(i, masking)));
    }
    /// `place = row(src)` with a mask.
    pub(super) fn masked_store(&mut self, code: Code, place: Place, src: Register, masking: Masking) {
        self.push(Instruction::with2(code, place.operand(), src).map(|i| masked(i, masking)));
    }
    /// `dst = row(a)` with a mask.
    pub(super) fn masked_move(&mut self, code: Code, dst: Register, src: Register, masking: Masking) {
        self.push(Instruction::with2(code, dst, src).map(|i| masked(i, masking)));
    }
    /// `dst = row(a, imm)`
    pub(super) fn unary(&mut self, code: Code, dst: Register, a: Register, imm: Option<u8>) {
        self.push(match imm {
            None => Instruction::with2(code, dst, a),
            Some(imm) => Instruction::with3(code, dst, a, u32::from(imm)),
        });
    }
    /// `dst = row(a, b, imm)` with a mask; registers `bytes` wide but for a `dst` that is given.
    pub(super) fn binary(&mut self, code: Code, dst: Register, a: Register, b: Rm, imm: Option<u8>, masking: Masking) {
        let width = width(a);
        let built = match (b, imm) {
            (Rm::Reg(b), None) => Instruction::with3(code, dst, a, vector(b, width)),
            (Rm::Reg(b), Some(imm)) => Instruction::with4(code, dst, a, vector(b, width), u32::from(imm)),
            (Rm::Mem(b), None) => Instruction::with3(code, dst, a, b.operand()),
            (Rm::Mem(b), Some(imm)) => Instruction::with4(code, dst, a, b.operand(), u32::from(imm)),
        };
        self.push(built.map(|i| masked(i, masking)));
    }
    /// Puts 16 bytes into a register, as its part of that number.
    pub(super) fn insert(&mut self, code: Code, into: Register, part: Register, at: u32) {
        self.push(Instruction::with4(code, into, into, part, at));
    }
    /// Stores those lanes of `src` whose mask, a vector, has its sign bit.
    pub(super) fn store_masked_by(&mut self, code: Code, place: Place, mask: Register, src: Register) {
        self.push(Instruction::with3(code, place.operand(), mask, src));
    }
    /// Stores the part of that number.
    pub(super) fn extract(&mut self, code: Code, place: Place, src: Register, at: u32) {
        self.push(Instruction::with3(code, place.operand(), src, at));
    }
    /// Reads the byte of that number.
    pub(super) fn insert_byte(&mut self, code: Code, dst: Register, place: Place, byte: u32) {
        self.push(Instruction::with4(code, dst, dst, place.operand(), byte));
    }
    /// `dst = mask ? t : f`, the mask a vector.
    pub(super) fn blend_vector(&mut self, code: Code, dst: Register, f: Register, t: Rm, mask: Register) {
        self.push(match t {
            Rm::Reg(t) => Instruction::with4(code, dst, f, vector(t, width(f)), mask),
            Rm::Mem(t) => Instruction::with4(code, dst, f, t.operand(), mask),
        });
    }
    /// Elements of a table into those lanes of `dst` that a mask register has, which it clears.
    pub(super) fn gather_masked(&mut self, code: Code, dst: Register, table: MemoryOperand, lanes: Masking) {
        self.push(Instruction::with2(code, dst, table).map(|i| masked(i, lanes)));
    }
    /// The same, the mask a vector.
    pub(super) fn gather_by(&mut self, code: Code, dst: Register, table: MemoryOperand, lanes: Register) {
        self.push(Instruction::with3(code, dst, table, lanes));
    }
    /// Fills up with instructions that do nothing, to the next multiple.
    pub(super) fn align(&mut self, to: u64) {
        while !self.len.is_multiple_of(to) {
            let code = if to - self.len % to >= 4 { Code::Nop_rm32 } else { Code::Nopd };
            match code {
                Code::Nopd => self.plain(Code::Nopd),
                _ => self.one_place(code, Place::at(Register::RAX, 1)),
            }
        }
    }
    /// Notes a fault of this engine; the code will not be used.
    pub(super) fn fail(&mut self, text: &str) {
        self.error = self.error.take().or(Some(text.to_string()));
    }
    /// The bytes.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, Refusal> {
        debug_assert!(self.error.is_none(), "{:?}", self.error);
        let mut code = self.encoder.take_buffer();
        match self.error {
            None => {
                for (at, target) in self.ahead {
                    let distance = target as i64 - (at as i64 + 4);
                    code[at..at + 4].copy_from_slice(&(distance as i32).to_le_bytes());
                }
                Ok(code)
            }
            Some(e) => Err(Refusal(format!("its code cannot be written: {e}"))),
        }
    }
}

fn masked(mut instruction: Instruction, masking: Masking) -> Instruction {
    match masking {
        Masking::None => {}
        Masking::Merge(k) => instruction.set_op_mask(mask(k)),
        Masking::Zero(k) => {
            instruction.set_op_mask(mask(k));
            instruction.set_zeroing_masking(true);
        }
    }
    instruction
}
