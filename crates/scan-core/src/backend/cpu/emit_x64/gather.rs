//! Elements of tables, by number.

use super::alloc::Emitter;
use super::asm::{Masking, mask, vector};
use super::codes as code;
use super::select::{Form, Selector, Val};
use crate::backend::cpu::isa::Isa;
use crate::kernel::MemId;
use crate::types::DType;
use iced_x86::Code;

impl Selector<'_> {
    /// The elements with these numbers, the last for numbers that there are not.
    pub(super) fn gather(&mut self, mem: MemId, index: Val, dtype: DType) -> Val {
        let last = self.constant(self.kernel.mems[mem].table as u64 - 1, 8);
        let index = match self.wide() {
            true => self.vector(Form::Binary(true), &code::MIN_U64, 8, &[index, last]),
            false => {
                // The sign bit of a number below 0 selects.
                let least = self.vector(Form::BlendVector, &code::BLENDV_F64, 8, &[index, last, index]);
                let above = self.vector(Form::Binary(false), &code::GT_I64, 8, &[least, last]);
                self.vector(Form::BlendVector, &code::BLENDV_F64, 8, &[above, last, least])
            }
        };
        let uniform = self.program.values[index].uniform;
        self.make(Form::Gather(mem), None, None, self.class(dtype), self.size(dtype), uniform, &[index])
    }
}

impl Emitter<'_> {
    /// Reads elements of a table; all lanes of the numbers are within it.
    pub(super) fn gather(&mut self, mem: MemId, dst: usize, index: usize) {
        let wide = self.program.isa == Isa::Avx512;
        let (size, numbers) = (self.program.mems[mem].dtype.size(), self.bytes(index));
        if size < 4 {
            return self.gather_small(mem, dst, index);
        }
        let by = self.use_reg(index);
        let by = self.register(index, by);
        let lanes = self.take(usize::from(wide), None);
        // The three registers of this instruction are different ones, so the numbers are not given up before.
        let reg = self.define(dst);
        let read = (numbers / 8 * size).max(16);
        let to = vector(reg, read);
        let code = self.asm.code(if size == 8 { &code::GATHER_64 } else { &code::GATHER_32 }, numbers);
        let place = self.table(mem, by, size as u32);
        if wide {
            self.asm.three(Code::VEX_Kxnorw_kr_kr_kr, mask(lanes), mask(lanes), mask(lanes));
            self.asm.gather_masked(code, to, place, Masking::Merge(lanes));
        } else {
            let ones = vector(lanes, read);
            let equal = if read == 32 { Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256 } else { Code::VEX_Vpcmpeqd_xmm_xmm_xmmm128 };
            self.asm.three(equal, ones, ones, ones);
            self.asm.gather_by(code, to, place, ones);
        }
        self.release(&[index]);
        self.spread(dst, reg, numbers / 8 * size);
    }
}
