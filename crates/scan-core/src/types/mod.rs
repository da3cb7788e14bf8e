//! dtypes, symbolic dims, shapes, host arrays and shared variables.

pub mod array;
pub mod buffer;
pub mod dim;
pub mod dtype;
pub mod memory;
pub mod shape;
pub mod shared;
#[allow(unsafe_code)]
pub mod zeroed;

pub use array::{Array, Element, Float};
pub use dim::{Dim, Sym};
pub use dtype::DType;
pub use shape::{Dims, Extents, Type};
pub use shared::Shared;
