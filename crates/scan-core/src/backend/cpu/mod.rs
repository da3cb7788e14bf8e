//! Engines of this processor. All give the same bits for the same kernel (of one FMA class, see `scalar::lanes`).

#[allow(unsafe_code)]
pub mod code;

pub use code::{Code, Frame, Operand, Refusal, run};
