//! Bools in memory, a byte each, and in registers: a bit of a mask register each or, on AVX2, a lane of ones or zeros of a vector.

use super::alloc::Emitter;
use super::asm::{Masking, Place, Rm, mask, vector};
use super::codes as code;
use crate::backend::cpu::isa::Isa;
use crate::kernel::Lane;
use iced_x86::Code;

impl Emitter<'_> {
    /// Reads bools into a register, by way of the vector register `temp`.
    pub(super) fn load_bools(&mut self, lane: Lane, place: Place, copy: usize, reg: u8, temp: u8) {
        match self.program.isa {
            Isa::Avx512 => self.load_bits(lane, place, copy, reg, temp),
            _ => self.load_lanes(lane, place, copy, reg, temp),
        }
    }
    /// Writes bools from a register, by way of the vector register `temp`.
    pub(super) fn store_bools(&mut self, lane: Lane, place: Place, copy: usize, reg: u8, temp: u8) {
        match self.program.isa {
            Isa::Avx512 => self.store_bits(lane, place, copy, reg, temp),
            _ => self.store_lanes(lane, place, copy, reg, temp),
        }
    }

    fn load_bits(&mut self, lane: Lane, place: Place, copy: usize, reg: u8, temp: u8) {
        let x = vector(temp, 16);
        let masking = self.masking(copy, true);
        match (lane, masking) {
            (Lane::Uniform, _) => self.asm.fetch(Code::EVEX_Vpbroadcastb_xmm_k1z_xmmm8, x, place),
            (Lane::Apart(_), _) => self.load_each((place, lane), 1, x, masking != Masking::None),
            (_, Masking::None) if self.program.width == 8 => self.asm.fetch(Code::EVEX_Vmovq_xmm_xmmm64, x, place),
            (_, Masking::None) if self.program.width == 4 => self.asm.fetch(Code::EVEX_Vmovd_xmm_rm32, x, place),
            _ => self.asm.masked_load(Code::EVEX_Vmovdqu8_xmm_k1z_xmmm128, x, place, masking),
        }
        self.asm.binary(Code::EVEX_Vptestmb_kr_k1_xmm_xmmm128, mask(reg), x, Rm::Reg(temp), None, Masking::None);
    }
    fn store_bits(&mut self, lane: Lane, place: Place, copy: usize, reg: u8, temp: u8) {
        let x = vector(temp, 16);
        self.asm.two(Code::EVEX_Vpmovm2b_xmm_kr, x, mask(reg));
        self.asm.two(Code::EVEX_Vpabsb_xmm_k1z_xmmm128, x, x);
        let masking = self.masking(copy, false);
        match (lane, masking) {
            (Lane::Uniform, _) => self.asm.extract(Code::EVEX_Vpextrb_r32m8_xmm_imm8, place, x, 0),
            (Lane::Apart(_), _) => self.store_each((place, lane), 1, x, masking != Masking::None),
            (_, Masking::None) if self.program.width == 8 => self.asm.put(Code::EVEX_Vmovq_xmmm64_xmm, place, x),
            (_, Masking::None) if self.program.width == 4 => self.asm.put(Code::EVEX_Vmovd_rm32_xmm, place, x),
            _ => self.asm.masked_store(Code::EVEX_Vmovdqu8_xmmm128_k1z_xmm, place, x, masking),
        }
    }

    /// Bytes become lanes, and those that are not zero ones.
    fn load_lanes(&mut self, lane: Lane, place: Place, copy: usize, reg: u8, temp: u8) {
        let x = vector(reg, 16);
        match (lane, self.masking(copy, true)) {
            (Lane::Unit, Masking::None) => {
                self.asm.fetch(self.lane_of_byte(), vector(reg, self.program.vector), place);
                return self.ones(reg, temp);
            }
            (Lane::Uniform, _) => self.asm.fetch(Code::VEX_Vpbroadcastb_xmm_xmmm8, x, place),
            (_, masking) => self.load_each((place, lane), 1, x, masking != Masking::None),
        }
        self.bytes_to_lanes(reg, reg, temp);
    }
    /// Bytes of one register as lanes of another, those that are not zero all ones, by way of a third, which may be the first; without
    /// AVX-512.
    pub(super) fn bytes_to_lanes(&mut self, from: u8, reg: u8, temp: u8) {
        self.asm.two(self.lane_of_byte(), vector(reg, self.program.vector), vector(from, 16));
        self.ones(reg, temp);
    }
    fn lane_of_byte(&self) -> Code {
        if self.program.width == 4 { Code::VEX_Vpmovzxbq_ymm_xmmm32 } else { Code::VEX_Vpmovzxbd_ymm_xmmm64 }
    }
    fn ones(&mut self, reg: u8, temp: u8) {
        let (all, zero) = (vector(reg, self.program.vector), vector(temp, self.program.vector));
        self.asm.three(self.asm.code(&code::XOR_I32, self.program.vector), zero, zero, zero);
        let greater = self.asm.code(if self.program.width == 4 { &code::GT_I64 } else { &code::GT_I32 }, self.program.vector);
        self.asm.three(greater, all, all, zero);
    }
    /// Lanes become words, and those bytes.
    fn store_lanes(&mut self, lane: Lane, place: Place, copy: usize, reg: u8, temp: u8) {
        let (x, wide) = (vector(temp, 16), self.program.width == 4);
        self.asm.unary(Code::VEX_Vextracti128_xmmm128_ymm_imm8, x, vector(reg, 32), Some(1));
        self.asm.three(Code::VEX_Vpackssdw_xmm_xmm_xmmm128, x, vector(reg, 16), x);
        if wide {
            // A lane is two words so far, which are one number of 32 bits.
            self.asm.three(Code::VEX_Vpackssdw_xmm_xmm_xmmm128, x, x, x);
        }
        self.asm.three(Code::VEX_Vpacksswb_xmm_xmm_xmmm128, x, x, x);
        self.asm.two(Code::VEX_Vpabsb_xmm_xmmm128, x, x);
        match (lane, self.masking(copy, false)) {
            (Lane::Uniform, _) => self.asm.extract(Code::VEX_Vpextrb_r32m8_xmm_imm8, place, x, 0),
            (Lane::Unit, Masking::None) if wide => self.asm.put(Code::VEX_Vmovd_rm32_xmm, place, x),
            (Lane::Unit, Masking::None) => self.asm.put(Code::VEX_Vmovq_xmmm64_xmm, place, x),
            (_, masking) => self.store_each((place, lane), 1, x, masking != Masking::None),
        }
    }
}
