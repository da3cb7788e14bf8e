//! Calls of functions of the host, lane by lane.

use super::alloc::Emitter;
use super::asm::{Place, mask, vector};
use super::codes as code;
use super::memory::{CALLS, LANE, SAVED, TEMP};
use crate::backend::cpu::isa::Isa;
use crate::kernel::HostFn;
use iced_x86::{Code, Register};

/// Where the result lies in the frame.
const RESULT: i64 = CALLS + 128;

impl Emitter<'_> {
    /// Calls a function, all values being in the frame meanwhile.
    pub(super) fn call_each(&mut self, f: HostFn, dst: usize, args: &[usize]) {
        for (i, &a) in args.iter().enumerate() {
            self.put_argument(i, a);
        }
        self.release(args);
        self.put_all_away();
        self.calls(f, args.len(), dst);
        self.load_tail_masks();
        let reg = self.define(dst);
        self.take_result(dst, reg);
    }

    /// Calls a function of one argument that is 0 in all lanes but seldom: a jump leaves the call out then, with all values where they are.
    pub(super) fn call_seldom(&mut self, f: HostFn, dst: usize, arg: usize) {
        self.put_argument(0, arg);
        let reg = self.use_reg(arg);
        if self.program.isa == Isa::Avx512 {
            let test = match self.bytes(arg) {
                64 => Code::EVEX_Vptestmq_kr_k1_zmm_zmmm512b64,
                32 => Code::EVEX_Vptestmq_kr_k1_ymm_ymmm256b64,
                _ => Code::EVEX_Vptestmq_kr_k1_xmm_xmmm128b64,
            };
            // No value is ever in k0, which is no predicate.
            self.asm.three(test, mask(0), self.register(arg, reg), self.register(arg, reg));
            self.asm.two(Code::VEX_Kortestw_kr_kr, mask(0), mask(0));
        } else {
            let test = if self.bytes(arg) == 32 { Code::VEX_Vptest_ymm_ymmm256 } else { Code::VEX_Vptest_xmm_xmmm128 };
            self.asm.two(test, self.register(arg, reg), self.register(arg, reg));
        }
        self.release(&[arg]);
        self.unlock();
        // None of these instructions changes the flags.
        let reg = self.define(dst);
        self.asm.number(Code::Mov_r64_imm64, TEMP, f.value(0.0, 0.0).to_bits());
        self.everywhere(dst, reg);
        let skip = self.asm.jump_ahead(Code::Je_rel32_64);
        self.all_registers(true);
        self.calls(f, 1, dst);
        self.all_registers(false);
        self.take_result(dst, reg);
        self.asm.land(skip);
    }

    fn put_argument(&mut self, i: usize, a: usize) {
        let reg = self.use_reg(a);
        let (place, register) = (Place::at(Register::RSP, CALLS + 64 * i as i64), self.register(a, reg));
        let code = self.asm.code(&code::STORE_F64, self.bytes(a));
        self.asm.put(code, place, register);
    }
    fn take_result(&mut self, dst: usize, reg: u8) {
        let (uniform, bytes) = (self.program.values[self.virtuals[dst].val].uniform, self.bytes(dst));
        let code = self.asm.code(if uniform { &code::BROADCAST_F64 } else { &code::MOVE_F64 }, bytes);
        self.asm.fetch(code, vector(reg, bytes), Place::at(Register::RSP, RESULT));
    }
    /// The word in [`TEMP`], in every lane.
    fn everywhere(&mut self, dst: usize, reg: u8) {
        let bytes = self.bytes(dst);
        if self.program.isa == Isa::Avx512 {
            let code = match bytes {
                64 => Code::EVEX_Vpbroadcastq_zmm_k1z_r64,
                32 => Code::EVEX_Vpbroadcastq_ymm_k1z_r64,
                _ => Code::EVEX_Vpbroadcastq_xmm_k1z_r64,
            };
            return self.asm.two(code, vector(reg, bytes), TEMP);
        }
        self.asm.two(Code::VEX_Vmovq_xmm_rm64, vector(reg, 16), TEMP);
        let code = if bytes == 32 { Code::VEX_Vpbroadcastq_ymm_xmmm64 } else { Code::VEX_Vpbroadcastq_xmm_xmmm64 };
        self.asm.two(code, vector(reg, bytes), vector(reg, 16));
    }
    /// All lanes, from the arguments in the frame to the result there. Nothing is in a vector register that the caller does not save.
    fn calls(&mut self, f: HostFn, args: usize, dst: usize) {
        self.asm.plain(Code::VEX_Vzeroupper);
        let uniform = self.program.values[self.virtuals[dst].val].uniform;
        if let Some(many) = f.many().filter(|_| !uniform) {
            self.asm.fetch(Code::Lea_r64_m, Register::RDI, Place::at(Register::RSP, CALLS));
            self.asm.number(Code::Mov_r64_imm64, Register::RSI, self.program.width as u64);
            self.asm.number(Code::Mov_r64_imm64, TEMP, many as u64);
            return self.asm.one(Code::Call_rm64, TEMP);
        }
        self.asm.two(Code::Xor_r32_rm32, Register::R15D, Register::R15D);
        let lane = |i: i64| Place { index: LANE, ..Place::at(Register::RSP, CALLS + 64 * i) };
        let again = self.asm.here();
        for i in 0..args {
            self.asm.fetch(Code::VEX_Vmovsd_xmm_m64, vector(i as u8, 16), lane(i as i64));
        }
        self.asm.number(Code::Mov_r64_imm64, TEMP, f.address() as u64);
        self.asm.one(Code::Call_rm64, TEMP);
        self.asm.put(Code::VEX_Vmovsd_m64_xmm, lane(2), vector(0, 16));
        self.asm.number(Code::Add_rm64_imm8, LANE, 1);
        self.asm.number(Code::Cmp_rm64_imm8, LANE, if uniform { 1 } else { self.program.width as u64 });
        self.asm.jump(Code::Jb_rel32_64, again);
    }
    /// Puts all vector and mask registers into the frame, or takes them from there.
    fn all_registers(&mut self, put: bool) {
        let (bytes, wide) = (self.program.vector, self.program.isa == Isa::Avx512);
        for reg in 0..if wide { 32 } else { 16 } {
            let place = Place::at(Register::RSP, SAVED + i64::from(reg) * bytes as i64);
            match put {
                true => self.asm.put(self.asm.code(&code::STORE_F64, bytes), place, vector(reg, bytes)),
                false => self.asm.fetch(self.asm.code(&code::MOVE_F64, bytes), vector(reg, bytes), place),
            }
        }
        for k in (1..8).filter(|_| wide) {
            let place = Place::at(Register::RSP, SAVED + 32 * bytes as i64 + 8 * i64::from(k));
            match put {
                true => self.asm.put(Code::VEX_Kmovw_m16_kr, place, mask(k)),
                false => self.asm.fetch(Code::VEX_Kmovw_kr_km16, mask(k), place),
            }
        }
    }
}
