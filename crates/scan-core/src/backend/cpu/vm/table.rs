//! Which loop runs an instruction.

use super::loops::{
    Abs, Add, And, Ceil, Choose, Div, Engine, Eq, Floor, FloorDiv, Fma, Fmod, Le, Lt, Mod, Mul, Ne, Neg, Not, NotBool, Or, Pair, Round,
    Shl, Shr, Sqrt, Sub, To, Trunc, Xor, call, copy, gather,
};
use crate::kernel::{Bin, Cmp, Inst, Op, Un};
use crate::types::DType;
use crate::{dispatch, dispatch_float};

/// Binds `$T` to the unsigned integer as wide as a dtype.
macro_rules! by_width {
    ($dtype:expr, $T:ident => $e:expr) => {
        match $dtype.size() {
            1 => {
                type $T = u8;
                $e
            }
            2 => {
                type $T = u16;
                $e
            }
            4 => {
                type $T = u32;
                $e
            }
            _ => {
                type $T = u64;
                $e
            }
        }
    };
}

/// Binds `$T` to the float of a dtype, else to the unsigned integer as wide.
macro_rules! by_number {
    ($dtype:expr, $T:ident => $e:expr) => {
        if $dtype.is_float() { dispatch_float!($dtype, $T => $e) } else { by_width!($dtype, $T => $e) }
    };
}

/// Binds `$T` to the integer of a dtype, a bool being a `u8`.
macro_rules! by_int {
    ($dtype:expr, $T:ident => $e:expr) => {
        match $dtype {
            DType::I8 => {
                type $T = i8;
                $e
            }
            DType::I16 => {
                type $T = i16;
                $e
            }
            DType::I32 => {
                type $T = i32;
                $e
            }
            DType::I64 => {
                type $T = i64;
                $e
            }
            _ => by_width!($dtype, $T => $e),
        }
    };
}

/// Binds `$T` to the type of a dtype, a bool being a `u8`.
macro_rules! by_sign {
    ($dtype:expr, $T:ident => $e:expr) => {
        if $dtype.is_float() { dispatch_float!($dtype, $T => $e) } else { by_int!($dtype, $T => $e) }
    };
}

/// The loops of an instruction that computes; `from` is the dtype of its first argument.
pub fn pick<E: Engine>(inst: &Inst, from: DType) -> Pair {
    match inst.op {
        Op::Un(op, _) => unary::<E>(op, from),
        Op::Bin(op, ..) => binary::<E>(op, from),
        Op::Fma(..) => dispatch_float!(from, T => E::f3::<T, T, Fma>()),
        Op::Cmp(op, ..) => compare::<E>(op, from),
        Op::Select(..) => by_width!(inst.dtype, T => E::f3::<u8, T, Choose>()),
        Op::Convert(_) => convert::<E>(from, inst.dtype),
        Op::Call(f, _) => call(f.arity()),
        Op::Gather(..) => gather(inst.dtype.size()),
        // Of loops, no program is made.
        Op::Bits(_) | Op::Const(_) | Op::Step | Op::Load(_) | Op::Carry(_) | Op::Loop(_) | Op::Last(..) | Op::Left(..) => {
            copy(inst.dtype.size())
        }
    }
}

fn unary<E: Engine>(op: Un, dtype: DType) -> Pair {
    match op {
        Un::Neg => by_number!(dtype, T => E::f1::<T, Neg>()),
        Un::Not if dtype == DType::Bool => E::f1::<u8, NotBool>(),
        Un::Not => by_width!(dtype, T => E::f1::<T, Not>()),
        Un::Abs => dispatch_float!(dtype, T => E::f1::<T, Abs>()),
        Un::Sqrt => dispatch_float!(dtype, T => E::f1::<T, Sqrt>()),
        Un::Floor => dispatch_float!(dtype, T => E::f1::<T, Floor>()),
        Un::Ceil => dispatch_float!(dtype, T => E::f1::<T, Ceil>()),
        Un::Trunc => dispatch_float!(dtype, T => E::f1::<T, Trunc>()),
        Un::Round => dispatch_float!(dtype, T => E::f1::<T, Round>()),
    }
}

fn binary<E: Engine>(op: Bin, dtype: DType) -> Pair {
    match op {
        Bin::Add => by_number!(dtype, T => E::f2::<T, Add>()),
        Bin::Sub => by_number!(dtype, T => E::f2::<T, Sub>()),
        Bin::Mul => by_number!(dtype, T => E::f2::<T, Mul>()),
        Bin::Div => dispatch_float!(dtype, T => E::f2::<T, Div>()),
        Bin::And => by_width!(dtype, T => E::f2::<T, And>()),
        Bin::Or => by_width!(dtype, T => E::f2::<T, Or>()),
        Bin::Xor => by_width!(dtype, T => E::f2::<T, Xor>()),
        Bin::Shl => by_width!(dtype, T => E::f2::<T, Shl>()),
        Bin::Shr => by_int!(dtype, T => E::f2::<T, Shr>()),
        Bin::FloorDiv => by_int!(dtype, T => E::f2::<T, FloorDiv>()),
        Bin::Mod => by_int!(dtype, T => E::f2::<T, Mod>()),
        Bin::Fmod => by_int!(dtype, T => E::f2::<T, Fmod>()),
    }
}

fn compare<E: Engine>(op: Cmp, dtype: DType) -> Pair {
    match op {
        Cmp::Eq => by_number!(dtype, T => E::f2::<T, Eq>()),
        Cmp::Ne => by_number!(dtype, T => E::f2::<T, Ne>()),
        Cmp::Lt => by_sign!(dtype, T => E::f2::<T, Lt>()),
        Cmp::Le => by_sign!(dtype, T => E::f2::<T, Le>()),
    }
}

/// Integers go to the integers of a width by the same loop, whatever their sign.
fn convert<E: Engine>(from: DType, to: DType) -> Pair {
    match (from.is_float(), to) {
        _ if from == to => copy(to.size()),
        (true, _) => dispatch_float!(from, A => dispatch!(to, B => E::f1::<A, To<B>>())),
        (false, DType::Bool) => by_width!(from, A => E::f1::<A, To<bool>>()),
        (false, _) => by_int!(from, A => by_number!(to, B => E::f1::<A, To<B>>())),
    }
}
