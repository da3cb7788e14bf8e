//! Elements of lanes that do not lie beside each other.
//!
//! Each is read by itself and put beside the others: so many loads, which processors do sooner than their instructions that gather. Only
//! where a mask tells which lanes there are, elements are gathered.

use super::alloc::Emitter;
use super::asm::{Masking, Place, Rm, mask, vector};
use super::codes as code;
use super::memory::POOL;
use super::select::{Line, Program};
use crate::backend::cpu::isa::Isa;
use crate::kernel::{Lane, MemId};
use iced_x86::{Code, MemoryOperand, Register};

/// Bytes of the registers that elements are put together in.
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
    /// Bytes from a lane's element to that of the next.
    pub(super) fn bytes_apart(&self, mem: MemId) -> i32 {
        (self.mems[mem].lane.elements() * self.mems[mem].dtype.size() as isize) as i32
    }
    /// Adds the distances of lanes that lie apart to the pool.
    pub(super) fn add_ramps(&mut self) {
        let mut all: Vec<i32> = self.mems.ids().filter(|&m| self.is_apart(m)).map(|m| self.bytes_apart(m)).collect();
        all.sort_unstable();
        all.dedup();
        for by in all {
            self.ramps.push((by, 64 * self.pool.len() as i64));
            let pair = |i: i32| u64::from((i * by).cast_unsigned()) | u64::from(((i + 1) * by).cast_unsigned()) << 32;
            self.pool.push(Line(std::array::from_fn(|k| pair(2 * k as i32))));
        }
    }
}

impl Emitter<'_> {
    /// Reads elements from a place on.
    pub(super) fn load_apart(&mut self, mem: MemId, place: Place, copy: usize, reg: u8) {
        let (size, by) = (self.program.mems[mem].dtype.size(), i64::from(self.program.bytes_apart(mem)));
        let bytes = self.program.row(size);
        if self.masking(copy, true) != Masking::None {
            return self.gather_apart(place, (size, by as i32), bytes, reg);
        }
        let temp = if bytes > PART { self.take(0, None) } else { reg };
        for part in 0..bytes / PART {
            let to = if part == 0 { reg } else { temp };
            let first = Place { offset: place.offset + (part * PART / size) as i64 * by, ..place };
            self.put_together(first, (size, by), vector(to, PART));
            if part > 0 {
                self.asm.insert(self.insertion(bytes), vector(reg, bytes), vector(temp, PART), part as u32);
            }
        }
        if bytes > PART {
            self.give(0, temp);
        }
    }

    /// The elements of a part.
    fn put_together(&mut self, first: Place, (size, by): (usize, i64), to: Register) {
        let wide = self.program.isa == Isa::Avx512;
        let (one, next) = match (size, wide) {
            (8, true) => (Code::EVEX_Vmovsd_xmm_k1z_m64, Code::EVEX_Vmovhpd_xmm_xmm_m64),
            (8, false) => (Code::VEX_Vmovsd_xmm_m64, Code::VEX_Vmovhpd_xmm_xmm_m64),
            (_, true) => (Code::EVEX_Vmovss_xmm_k1z_m32, Code::EVEX_Vinsertps_xmm_xmm_xmmm32_imm8),
            (_, false) => (Code::VEX_Vmovss_xmm_m32, Code::VEX_Vinsertps_xmm_xmm_xmmm32_imm8),
        };
        self.asm.fetch(one, to, first);
        for i in 1..PART / size {
            let place = Rm::Mem(Place { offset: first.offset + i as i64 * by, ..first });
            let at = (size == 4).then_some((i << 4) as u8);
            self.asm.binary(next, to, to, place, at, Masking::None);
        }
    }

    /// Puts a part into a register of so many bytes.
    fn insertion(&self, bytes: usize) -> Code {
        match (self.program.isa == Isa::Avx512, bytes) {
            (true, 64) => Code::EVEX_Vinsertf32x4_zmm_k1z_zmm_xmmm128_imm8,
            (true, _) => Code::EVEX_Vinsertf32x4_ymm_k1z_ymm_xmmm128_imm8,
            (false, _) => Code::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8,
        }
    }

    /// The elements of those lanes that there are in the last vector; others are zero.
    fn gather_apart(&mut self, place: Place, (size, by): (usize, i32), bytes: usize, reg: u8) {
        let Some(&(_, ramp)) = self.program.ramps.iter().find(|ramp| ramp.0 == by) else { return self.asm.fail("lanes that lie apart") };
        let wide = self.program.isa == Isa::Avx512;
        let (numbers, lanes) = (self.take(0, None), self.take(usize::from(wide), None));
        let room = (bytes / size * 4).max(PART);
        let distances = vector(numbers, room);
        self.asm.fetch(self.asm.code(&code::MOVE_F32, room), distances, Place::at(POOL, ramp));
        let to = vector(reg, bytes);
        let zero = self.asm.code(&code::XOR_I32, bytes);
        self.asm.three(zero, to, to, to);
        let code = self.asm.code(if size == 8 { &code::GATHER_APART_64 } else { &code::GATHER_APART_32 }, bytes);
        let from = MemoryOperand::new(place.base, distances, 1, place.offset, 1, false, Register::None);
        if wide {
            self.asm.two(Code::VEX_Kmovw_kr_km16, mask(lanes), mask(1));
            self.asm.gather_masked(code, to, from, Masking::Merge(lanes));
        } else {
            let tail = self.tail_mask(size == 8, bytes);
            let by = vector(lanes, bytes);
            self.asm.two(self.asm.code(&code::MOVE_F32, bytes), by, tail);
            self.asm.gather_by(code, to, from, by);
        }
        self.give(0, numbers);
        self.give(usize::from(wide), lanes);
    }
}
