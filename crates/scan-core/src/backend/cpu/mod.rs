//! Engines of this processor. All give the same bits for the same kernel (of one FMA class, see `scalar::lanes`).

#[allow(unsafe_code)]
pub mod code;
#[allow(unsafe_code)]
pub mod jit;
#[cfg(any(test, feature = "testing"))]
#[allow(unsafe_code)]
pub mod testing;

pub use code::{Code, Frame, Operand, Refusal, run};
