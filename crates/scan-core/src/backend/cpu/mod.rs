//! Engines of this processor. All give the same bits for the same kernel (of one FMA class, see `scalar::lanes`).

#[allow(unsafe_code)]
pub mod code;
#[allow(unsafe_code)]
pub mod jit;
#[cfg(any(test, feature = "testing"))]
#[allow(unsafe_code)]
pub mod testing;
#[allow(unsafe_code)]
pub mod vm;

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
pub mod emit_x64;
pub mod isa;

pub use code::{Code, Frame, Operand, Refusal, run};
pub use isa::Isa;
