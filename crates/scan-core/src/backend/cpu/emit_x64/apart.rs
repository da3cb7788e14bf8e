//! Elements of lanes that do not lie beside each other.
//!
//! Each is read by itself and put beside the others, and written by itself: so many loads or stores, which processors do sooner than their
//! instructions that gather and scatter.

use super::alloc::Emitter;
use super::asm::{Masking, Place, Rm, vector};
use super::codes as code;
use super::layout::TAIL;
use super::select::Program;
use crate::backend::cpu::isa::Isa;
use crate::kernel::{Lane, MemId};
use iced_x86::{Code, Register};

/// Bytes of the registers that elements are put together in, and taken from.
const PART: usize = 16;

impl Program {
    /// The operand whose pointer finds an operand, and by how many bytes it lies behind that.
    pub(super) fn found_by(&self, mem: MemId) -> (MemId, i64) {
        self.mems[mem].beside.map_or((mem, 0), |(other, bytes)| (other, i64::from(bytes)))
    }
    /// True where the elements of lanes do not lie beside each other.
    pub(super) fn is_apart(&self, mem: MemId) -> bool {
        matches!(self.mems[mem].lane, Lane::Apart(_))
    }
    /// True where such elements fill more than one part.
    pub(super) fn has_parts(&self, mem: MemId) -> bool {
        self.is_apart(mem) && self.row(self.mems[mem].dtype.size()) > PART
    }
    /// The size of an element, and how many bytes behind it that of the next lane lies.
    fn distance(&self, mem: MemId) -> (usize, i64) {
        let size = self.mems[mem].dtype.size();
        (size, (self.mems[mem].lane.elements() * size as isize) as i64)
    }
}

impl Emitter<'_> {
    /// Reads elements from a place on, by way of the vector register `temp`.
    pub(super) fn load_apart(&mut self, mem: MemId, place: Place, copy: usize, reg: u8, temp: Option<u8>) {
        let (size, by) = self.program.distance(mem);
        let (bytes, tail) = (self.program.row(size), self.masking(copy, true) != Masking::None);
        let own = (bytes > PART && temp.is_none()).then(|| self.take(0, None));
        let aside = temp.or(own).unwrap_or(reg);
        for part in 0..bytes / PART {
            let to = if part == 0 { reg } else { aside };
            self.put_together(place, (size, by), part, to, tail);
            if part > 0 {
                self.asm.insert(self.insertion(bytes), vector(reg, bytes), vector(aside, PART), part as u32);
            }
        }
        if let Some(own) = own {
            self.give(0, own);
        }
    }

    /// The elements of a part; in the last vector of those lanes that there are, others being zero.
    fn put_together(&mut self, place: Place, (size, by): (usize, i64), part: usize, to: u8, tail: bool) {
        let wide = self.program.isa == Isa::Avx512;
        let (one, next) = match (size, wide) {
            (8, true) => (Code::EVEX_Vmovsd_xmm_k1z_m64, Code::EVEX_Vmovhpd_xmm_xmm_m64),
            (8, false) => (Code::VEX_Vmovsd_xmm_m64, Code::VEX_Vmovhpd_xmm_xmm_m64),
            (_, true) => (Code::EVEX_Vmovss_xmm_k1z_m32, Code::EVEX_Vinsertps_xmm_xmm_xmmm32_imm8),
            (_, false) => (Code::VEX_Vmovss_xmm_m32, Code::VEX_Vinsertps_xmm_xmm_xmmm32_imm8),
        };
        let to = vector(to, PART);
        if tail && part > 0 {
            self.asm.three(self.asm.code(&code::XOR_I32, PART), to, to, to);
        }
        let mut ends = vec![];
        for i in 0..PART / size {
            let lane = part * (PART / size) + i;
            let place = Place { offset: place.offset + lane as i64 * by, ..place };
            ends.extend(self.leave_without(lane, tail));
            match i {
                0 => self.asm.fetch(one, to, place),
                _ => self.asm.binary(next, to, to, Rm::Mem(place), (size == 4).then_some((i << 4) as u8), Masking::None),
            }
        }
        ends.into_iter().for_each(|end| self.asm.land(end));
    }

    /// Puts a part into a register of so many bytes.
    fn insertion(&self, bytes: usize) -> Code {
        match (self.program.isa == Isa::Avx512, bytes) {
            (true, 64) => Code::EVEX_Vinsertf32x4_zmm_k1z_zmm_xmmm128_imm8,
            (true, _) => Code::EVEX_Vinsertf32x4_ymm_k1z_ymm_xmmm128_imm8,
            (false, _) => Code::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8,
        }
    }

    /// Writes elements from a place on, by way of the vector register `temp`; in the last vector those of the lanes that there are.
    pub(super) fn store_apart(&mut self, mem: MemId, place: Place, copy: usize, reg: u8, temp: Option<u8>) {
        let (size, by) = self.program.distance(mem);
        let (bytes, tail) = (self.program.row(size), self.masking(copy, false) != Masking::None);
        let (aside, mut ends) = (temp.unwrap_or(reg), vec![]);
        for lane in 0..bytes / size {
            let (part, i) = (lane * size / PART, lane % (PART / size));
            ends.extend(self.leave_without(lane, tail));
            if part > 0 && i == 0 {
                self.asm.unary(self.extraction(bytes), vector(aside, PART), vector(reg, bytes), Some(part as u8));
            }
            let from = vector(if part == 0 { reg } else { aside }, PART);
            self.put_lane(Place { offset: place.offset + lane as i64 * by, ..place }, size, from, i as u32);
        }
        ends.into_iter().for_each(|end| self.asm.land(end));
    }

    /// Takes a part from a register of so many bytes.
    fn extraction(&self, bytes: usize) -> Code {
        match (self.program.isa == Isa::Avx512, bytes) {
            (true, 64) => Code::EVEX_Vextractf32x4_xmmm128_k1z_zmm_imm8,
            (true, _) => Code::EVEX_Vextractf32x4_xmmm128_k1z_ymm_imm8,
            (false, _) => Code::VEX_Vextractf128_xmmm128_ymm_imm8,
        }
    }

    /// Writes an element of a part.
    fn put_lane(&mut self, place: Place, size: usize, from: Register, i: u32) {
        let wide = self.program.isa == Isa::Avx512;
        match (size, i, wide) {
            (8, 0, true) => self.asm.put(Code::EVEX_Vmovsd_m64_k1_xmm, place, from),
            (8, 0, false) => self.asm.put(Code::VEX_Vmovsd_m64_xmm, place, from),
            (8, _, true) => self.asm.put(Code::EVEX_Vmovhpd_m64_xmm, place, from),
            (8, _, false) => self.asm.put(Code::VEX_Vmovhpd_m64_xmm, place, from),
            (_, 0, true) => self.asm.put(Code::EVEX_Vmovss_m32_k1_xmm, place, from),
            (_, 0, false) => self.asm.put(Code::VEX_Vmovss_m32_xmm, place, from),
            (_, _, true) => self.asm.extract(Code::EVEX_Vextractps_rm32_xmm_imm8, place, from, i),
            (_, _, false) => self.asm.extract(Code::VEX_Vextractps_rm32_xmm_imm8, place, from, i),
        }
    }

    /// In the last vector a jump ahead where a lane is not there, and none behind it; there is a first.
    pub(super) fn leave_without(&mut self, lane: usize, tail: bool) -> Option<usize> {
        (tail && lane > 0).then(|| {
            let byte = Place::at(Register::RSP, TAIL + (lane / 8) as i64);
            self.asm.number_at(Code::Test_rm8_imm8, byte, 1 << (lane % 8));
            self.asm.jump_ahead(Code::Je_rel32_64)
        })
    }
}
