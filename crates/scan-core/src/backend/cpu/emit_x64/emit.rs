//! Instructions for operations, once their values have registers.

use super::alloc::{Emitter, Item};
use super::asm::{Masking, Rm, mask, vector};
use super::codes::{self as code, Row};
use super::convert::exchanged;
use super::memory::STEP;
use super::select::{Class, Form, Logic, Operation};
use crate::backend::cpu::isa::Isa;
use crate::kernel::MemId;
use iced_x86::{Code, Register};
use smallvec::SmallVec;

impl Emitter<'_> {
    /// Emits an item.
    pub(super) fn item(&mut self, at: usize) {
        self.advance(at);
        match self.items[at] {
            (Item::Operation(o), copy) => {
                let program = self.program;
                self.operation(&program.operations[o], copy);
                self.go_home(self.of(program.operations[o].dst, copy));
            }
            (Item::Store(s), copy) => {
                let (mem, value) = self.program.stores[s];
                self.store_value(mem, self.of(value, copy), copy);
            }
            (Item::Enter(skip), _) => self.enter_skip(skip),
            (Item::Leave(skip), _) => self.leave_skip(skip),
        }
    }
    fn store_value(&mut self, mem: MemId, v: usize, copy: usize) {
        let reg = self.use_reg(v);
        let temp = self.temp_for(mem);
        self.store(mem, copy, reg, temp);
        self.release(&[v]);
    }
    fn operation(&mut self, o: &Operation, copy: usize) {
        let args: SmallVec<[usize; 3]> = o.args.iter().map(|&a| self.of(a, copy)).collect();
        let dst = self.of(o.dst, copy);
        match o.form {
            Form::Unary => self.unary(o, dst, args[0]),
            Form::Binary(exchange) => self.binary(o, dst, args[0], args[1], exchange),
            Form::Fma => self.fma(dst, [args[0], args[1], args[2]]),
            Form::CompareMask => self.compare_mask(o, dst, args[0], args[1]),
            Form::BlendMask => self.blend_mask(o, dst, &args),
            Form::BlendVector => self.blend_vector(o, dst, &args),
            Form::KeepMask => self.keep_mask(o, dst, &args),
            Form::Logic(logic) => self.logic_operation(logic, dst, &args),
            Form::Load(mem) => {
                let temp = self.temp_for(mem);
                let reg = self.define(dst);
                self.load(mem, copy, reg, temp);
            }
            Form::Step => self.step(dst),
            Form::Halves => self.halves_of(dst, args[0]),
            Form::Gather(mem) => self.gather(mem, dst, args[0]),
            Form::Call(f) if f.seldom() => self.call_seldom(f, dst, args[0]),
            Form::Call(f) => self.call_each(f, dst, &args),
        }
    }
    /// The width of an operation: that of its widest operand.
    fn code_of(&self, o: &Operation, dst: usize, args: &[usize]) -> Code {
        let row: &Row = o.row.expect("an operation of this form has a row");
        let vectors = args.iter().chain([&dst]).filter(|&&v| self.class(v) == Class::Vector);
        self.asm.code(row, vectors.map(|&v| self.bytes(v)).max().unwrap_or(16))
    }
    fn unary(&mut self, o: &Operation, dst: usize, a: usize) {
        let (from, to) = self.halved(dst, a);
        let code = self.asm.code(o.row.expect("an operation of this form has a row"), from.max(to));
        let reg = self.use_reg(a);
        self.release(&[a]);
        self.unlock();
        let dst_reg = self.define(dst);
        self.asm.unary(code, vector(dst_reg, to), vector(reg, from), o.imm);
        self.spread(dst, dst_reg, to);
    }
    /// Bytes that an operation reads and writes, where its operands have different sizes.
    fn halved(&self, dst: usize, a: usize) -> (usize, usize) {
        let size = |v: usize| self.program.values[self.virtuals[v].val].size;
        match size(dst).cmp(&size(a)) {
            std::cmp::Ordering::Less => (self.bytes(a), self.bytes(a) / 2),
            std::cmp::Ordering::Equal => (self.bytes(a), self.bytes(dst)),
            std::cmp::Ordering::Greater => (self.bytes(dst) / 2, self.bytes(dst)),
        }
    }
    /// Gives all lanes the first one's value, where an operation has written fewer than there are.
    pub(super) fn spread(&mut self, v: usize, reg: u8, written: usize) {
        let bytes = self.bytes(v);
        if written < bytes {
            let code = match (self.program.isa, bytes) {
                (Isa::Avx512, 64) => Code::EVEX_Vbroadcastss_zmm_k1z_xmmm32,
                (Isa::Avx512, _) => Code::EVEX_Vbroadcastss_ymm_k1z_xmmm32,
                _ => Code::VEX_Vbroadcastss_ymm_xmm,
            };
            self.asm.two(code, vector(reg, bytes), vector(reg, 16));
        }
    }
    fn binary(&mut self, o: &Operation, dst: usize, a: usize, b: usize, exchange: bool) {
        let code = self.code_of(o, dst, &[a, b]);
        let (a, b) = self.last_in_memory(a, b, exchange);
        let from = self.use_reg(a);
        let from = self.register(a, from);
        let last = self.use_rm(b);
        self.release(&[a, b]);
        self.unlock();
        let to = self.define(dst);
        let to = self.register(dst, to);
        self.asm.binary(code, to, from, last, o.imm, Masking::None);
    }
    /// The operands in an order that lets the last be read from memory.
    fn last_in_memory(&self, a: usize, b: usize, exchange: bool) -> (usize, usize) {
        if exchange && self.foldable(a).is_some() && self.foldable(b).is_none() { (b, a) } else { (a, b) }
    }
    fn compare_mask(&mut self, o: &Operation, dst: usize, a: usize, b: usize) {
        let code = self.code_of(o, dst, &[a, b]);
        let imm = o.imm.unwrap_or(0);
        let (x, y) = self.last_in_memory(a, b, true);
        let imm = if x == a { imm } else { exchanged(imm) };
        let from = self.use_reg(x);
        let from = self.register(x, from);
        let last = self.use_rm(y);
        self.release(&[a, b]);
        let to = self.define(dst);
        self.asm.binary(code, mask(to), from, last, Some(imm), Masking::None);
        if self.program.width * self.program.values[o.args[0]].size as usize > self.program.vector {
            self.asm.three(Code::VEX_Kunpckbw_kr_kr_kr, mask(to), mask(to), mask(to));
        }
    }
    fn blend_mask(&mut self, o: &Operation, dst: usize, args: &[usize]) {
        let code = self.code_of(o, dst, args);
        let k = self.use_reg(args[0]);
        let from = self.use_reg(args[2]);
        let from = self.register(args[2], from);
        let last = self.use_rm(args[1]);
        self.release(args);
        self.unlock();
        let to = self.define(dst);
        let to = self.register(dst, to);
        self.asm.binary(code, to, from, last, None, Masking::Merge(k));
    }
    fn blend_vector(&mut self, o: &Operation, dst: usize, args: &[usize]) {
        let code = self.code_of(o, dst, args);
        let by = self.use_reg(args[0]);
        let by = self.register(args[0], by);
        let from = self.use_reg(args[2]);
        let from = self.register(args[2], from);
        let last = self.use_rm(args[1]);
        self.release(args);
        self.unlock();
        let to = self.define(dst);
        let to = self.register(dst, to);
        self.asm.blend_vector(code, to, from, last, by);
    }
    fn keep_mask(&mut self, o: &Operation, dst: usize, args: &[usize]) {
        let code = self.code_of(o, dst, args);
        let k = self.use_reg(args[0]);
        let from = self.use_reg(args[1]);
        let from = self.register(args[1], from);
        self.release(args);
        self.unlock();
        let to = self.define(dst);
        let to = self.register(dst, to);
        self.asm.masked_move(code, to, from, Masking::Zero(k));
    }
    fn logic_operation(&mut self, logic: Logic, dst: usize, args: &[usize]) {
        let regs: SmallVec<[Register; 2]> = args.iter().map(|&a| mask(self.use_reg(a))).collect();
        self.release(args);
        self.unlock();
        let to = mask(self.define(dst));
        let code = match logic {
            Logic::Not => return self.asm.two(Code::VEX_Knotw_kr_kr, to, regs[0]),
            Logic::False => return self.asm.three(Code::VEX_Kxorw_kr_kr_kr, to, to, to),
            Logic::True => return self.asm.three(Code::VEX_Kxnorw_kr_kr_kr, to, to, to),
            Logic::And => Code::VEX_Kandw_kr_kr_kr,
            Logic::AndNot => Code::VEX_Kandnw_kr_kr_kr,
            Logic::Or => Code::VEX_Korw_kr_kr_kr,
            Logic::Xor => Code::VEX_Kxorw_kr_kr_kr,
            Logic::Same => Code::VEX_Kxnorw_kr_kr_kr,
        };
        self.asm.three(code, to, regs[0], regs[1]);
    }
    fn step(&mut self, dst: usize) {
        let (to, bytes) = (self.define(dst), self.bytes(dst));
        if self.program.isa == Isa::Avx512 {
            let code = if bytes == 64 { Code::EVEX_Vpbroadcastq_zmm_k1z_r64 } else { Code::EVEX_Vpbroadcastq_ymm_k1z_r64 };
            return self.asm.two(code, vector(to, bytes), STEP);
        }
        self.asm.two(Code::VEX_Vmovq_xmm_rm64, vector(to, 16), STEP);
        self.asm.two(Code::VEX_Vpbroadcastq_ymm_xmmm64, vector(to, 32), vector(to, 16));
    }
    fn halves_of(&mut self, dst: usize, a: usize) {
        let from = self.use_reg(a);
        let to = self.define(dst);
        self.asm.unary(Code::VEX_Vextractf128_xmmm128_ymm_imm8, vector(to, 16), vector(from, 32), Some(1));
        let code = Code::VEX_Vshufps_xmm_xmm_xmmm128_imm8;
        self.asm.binary(code, vector(to, 16), vector(from, 16), Rm::Reg(to), Some(0x88), Masking::None);
        self.spread(dst, to, 16);
        self.release(&[a]);
    }

    /// `x · y + z` overwrites an operand: one that dies here, else a copy.
    fn fma(&mut self, dst: usize, args: [usize; 3]) {
        let loaded = |e: &Self, i: usize| e.virtuals[args[i]].reg;
        let preferred = self.preferred_of(dst);
        let dying: SmallVec<[usize; 3]> = (0..3).filter(|&i| loaded(self, i).is_some() && self.dies(args[i])).collect();
        let base = dying.iter().copied().find(|&i| preferred.is_some() && loaded(self, i) == preferred).or(dying.first().copied());
        let base = base.unwrap_or_else(|| self.fma_base(args));
        let others: [usize; 2] = match base {
            0 => [1, 2],
            1 => [0, 2],
            _ => [0, 1],
        };
        let folded = others.into_iter().rev().find(|&i| self.foldable(args[i]).is_some());
        let mut places = [Rm::Reg(0); 3];
        for i in others.into_iter().filter(|i| Some(*i) != folded) {
            places[i] = Rm::Reg(self.use_reg(args[i]));
        }
        if let Some(i) = folded {
            places[i] = self.use_rm(args[i]);
        }
        let reg = if dying.contains(&base) {
            let reg = self.use_reg(args[base]);
            self.release(&args);
            self.define_in(dst, reg);
            reg
        } else {
            let reg = self.define(dst);
            self.copy_into(args[base], reg);
            self.release(&args);
            reg
        };
        self.fma_instruction(dst, reg, base, places);
    }
    /// Where no operand dies: the one to copy, best one that must be loaded anyway.
    fn fma_base(&self, args: [usize; 3]) -> usize {
        let absent = (0..3).find(|&i| self.virtuals[args[i]].reg.is_none() && self.foldable(args[i]).is_some());
        absent.unwrap_or(2)
    }
    /// A value's copy in a register that belongs to another.
    fn copy_into(&mut self, v: usize, reg: u8) {
        match self.virtuals[v].reg {
            Some(from) => self.move_register(v, from, reg),
            None => self.fill(v, reg),
        }
    }
    /// A move between registers.
    pub(super) fn move_register(&mut self, v: usize, from: u8, to: u8) {
        let code = self.asm.code(&code::MOVE_F64, self.bytes(v));
        let (from, to) = (self.register(v, from), self.register(v, to));
        self.asm.two(code, to, from);
    }
    fn fma_instruction(&mut self, dst: usize, reg: u8, base: usize, places: [Rm; 3]) {
        let double = self.program.values[self.virtuals[dst].val].size == 8;
        let in_memory = |i: usize| matches!(places[i], Rm::Mem(_));
        // 132: d = d·last + middle; 213: d = middle·d + last; 231: d = d + middle·last.
        let (rows, middle, last): ([&Row; 2], usize, usize) = match base {
            2 if in_memory(0) => ([&code::FMA231_F32, &code::FMA231_F64], 1, 0),
            2 => ([&code::FMA231_F32, &code::FMA231_F64], 0, 1),
            _ if in_memory(1 - base) => ([&code::FMA132_F32, &code::FMA132_F64], 2, 1 - base),
            _ => ([&code::FMA213_F32, &code::FMA213_F64], 1 - base, 2),
        };
        let bytes = self.bytes(dst);
        let code = self.asm.code(rows[usize::from(double)], bytes);
        let Rm::Reg(middle) = places[middle] else { return self.asm.fail("a product reads memory twice") };
        self.asm.binary(code, vector(reg, bytes), vector(middle, bytes), places[last], None, Masking::None);
    }
}
