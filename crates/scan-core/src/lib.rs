//! rscan's core: symbolic loops, differentiated and run.
#![deny(unsafe_code)]

pub mod base;
pub mod eval;
pub mod exec;
pub mod expr;
pub mod grad;
pub mod ir;
pub mod ops;
pub mod prelude;
pub mod scalar;
pub mod scan;
#[cfg(feature = "testing")]
pub mod testing;
pub mod types;
