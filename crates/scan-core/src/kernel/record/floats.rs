//! Rows on floats: their values, written over `Lanes`, are run once over a context that records.

use super::Builder;
use crate::kernel::kir::{Bin, Cmp, HostFn, Reg, Un};
use crate::scalar::{ElemOp, Lanes, Outcome, lanes, math};
use crate::types::DType;
use std::cell::RefCell;

/// Records what is computed over it. The first field is behind a cell since a context is shared.
pub(super) struct Recorder<'b> {
    builder: RefCell<&'b mut Builder>,
    dtype: DType,
}

impl Builder {
    pub(super) fn elem_float(&mut self, op: ElemOp, dtype: DType, ins: &[Reg]) -> Option<Reg> {
        let recorder = Recorder { builder: RefCell::new(self), dtype };
        match op.record(&recorder, ins)? {
            Outcome::Number(r) | Outcome::Truth(r) => Some(r),
        }
    }
}

impl Recorder<'_> {
    /// The unsigned integer as wide as a value.
    fn unsigned(&self) -> DType {
        if self.wide() { DType::U64 } else { DType::U32 }
    }
    fn un(&self, un: Un, x: Reg) -> Reg {
        self.builder.borrow_mut().un(un, x)
    }
    fn bin(&self, bin: Bin, x: Reg, y: Reg) -> Reg {
        self.builder.borrow_mut().bin(bin, x, y)
    }
    fn cmp(&self, cmp: Cmp, x: Reg, y: Reg) -> Reg {
        self.builder.borrow_mut().cmp(cmp, x, y)
    }
    /// A function of this machine: computed in f64 and rounded to the dtype, as the evaluator does.
    fn call(&self, f: HostFn, args: &[Reg]) -> Reg {
        let mut b = self.builder.borrow_mut();
        let wide: Vec<Reg> = args.iter().map(|&r| b.convert(r, DType::F64)).collect();
        let out = b.call(f, &wide);
        b.convert(out, self.dtype)
    }
}

macro_rules! recorder {
    (un { $($un:ident $Un:ident),+ } bin { $($bin:ident $Bin:ident),+ } cmp { $($cmp:ident $Cmp:ident),+ }
     int { $($int:ident $Int:ident),+ } call { $($call:ident $Call:ident),+ } written { $($written:ident),+ } call2 { $($call2:ident $Call2:ident),+ }) => {
        impl Lanes for Recorder<'_> {
            type V = Reg;
            type B = Reg;
            type I = Reg;
            fn wide(&self) -> bool {
                self.dtype == DType::F64
            }
            fn num(&self, x: f64) -> Reg {
                self.builder.borrow_mut().constant(self.dtype, x)
            }
            fn and(&self, a: Reg, b: Reg) -> Reg {
                self.bin(Bin::And, a, b)
            }
            fn not(&self, a: Reg) -> Reg {
                self.un(Un::Not, a)
            }
            fn xor(&self, a: Reg, b: Reg) -> Reg {
                self.bin(Bin::Xor, a, b)
            }
            fn select(&self, c: Reg, x: Reg, y: Reg) -> Reg {
                self.builder.borrow_mut().select(c, x, y)
            }
            fn signbit(&self, x: Reg) -> Reg {
                let mut b = self.builder.borrow_mut();
                let signed = if self.wide() { DType::I64 } else { DType::I32 };
                let (bits, zero) = (b.bits(x, signed), b.integer(signed, 0));
                b.cmp(Cmp::Lt, bits, zero)
            }
            fn copysign(&self, x: Reg, y: Reg) -> Reg {
                let sign = self.int(if self.wide() { 1 << 63 } else { 1 << 31 });
                let size = self.bits(self.abs(x));
                self.of_bits(self.int_or(size, self.int_and(self.bits(y), sign)))
            }
            fn fuses(&self) -> bool {
                lanes::fused()
            }
            fn fma(&self, x: Reg, y: Reg, z: Reg) -> Reg {
                self.builder.borrow_mut().fma(x, y, z)
            }
            fn bits(&self, x: Reg) -> Reg {
                self.builder.borrow_mut().bits(x, self.unsigned())
            }
            fn of_bits(&self, i: Reg) -> Reg {
                self.builder.borrow_mut().bits(i, self.dtype)
            }
            fn int(&self, k: u64) -> Reg {
                self.builder.borrow_mut().raw(self.unsigned(), k)
            }
            fn int_shl(&self, i: Reg, n: u32) -> Reg {
                self.bin(Bin::Shl, i, self.int(n as u64))
            }
            fn int_shr(&self, i: Reg, n: u32) -> Reg {
                self.bin(Bin::Shr, i, self.int(n as u64))
            }
            $(fn $un(&self, x: Reg) -> Reg { self.un(Un::$Un, x) })+
            $(fn $bin(&self, x: Reg, y: Reg) -> Reg { self.bin(Bin::$Bin, x, y) })+
            $(fn $cmp(&self, x: Reg, y: Reg) -> Reg { self.cmp(Cmp::$Cmp, x, y) })+
            $(fn $int(&self, i: Reg, j: Reg) -> Reg { self.bin(Bin::$Int, i, j) })+
            $(fn $call(&self, x: Reg) -> Reg { self.call(HostFn::$Call, &[x]) })+
            // Once for all rows: their bodies are long.
            $(#[inline(never)] fn $written(&self, x: Reg) -> Reg { math::$written(self, x) })+
            $(fn $call2(&self, x: Reg, y: Reg) -> Reg { self.call(HostFn::$Call2, &[x, y]) })+
        }
    };
}

recorder! {
    un { neg Neg, abs Abs, sqrt Sqrt, floor Floor, ceil Ceil, trunc Trunc, round Round }
    bin { add Add, sub Sub, mul Mul, div Div }
    cmp { eq Eq, ne Ne, lt Lt, le Le }
    int { int_add Add, int_sub Sub, int_and And, int_or Or, int_xor Xor }
    call {
        machine_sin Sin, machine_cos Cos, tan Tan, asin Asin, acos Acos,
        atan Atan, sinh Sinh, cosh Cosh, asinh Asinh, acosh Acosh, atanh Atanh, erf Erf, erfc Erfc, erfinv ErfInv, ndtri NdTri,
        gammaln GammaLn, digamma Digamma, trigamma Trigamma, tetragamma Tetragamma
    }
    written { exp, exp2, expm1, log, log2, log10, log1p, tanh, sigmoid, log1p_exp, sin, cos }
    call2 { pow Pow, hypot Hypot, atan2 Atan2, fmod Fmod }
}
