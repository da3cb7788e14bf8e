//! NVIDIA cards through the driver of CUDA, which is loaded when a card is asked for: kernels as PTX text, which the driver compiles.
//!
//! Nothing but the driver is needed when it runs. Tests have a driver of their own ([`fake`]), which interprets the text.

mod ahead;
pub mod driver;
#[cfg(any(test, feature = "testing"))]
pub mod fake;
#[allow(unsafe_code)]
mod library;
mod memory;
mod open;
mod panel;
mod product;
pub mod ptx;
mod share;
mod storage;
#[cfg(test)]
mod tests;
mod text;
mod tiles;
mod values;
mod whole;

pub use open::{adapters, open, open_on};
