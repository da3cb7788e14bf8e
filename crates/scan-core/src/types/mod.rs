//! dtypes, symbolic dims, shapes, host arrays and shared variables.

pub mod array;
pub mod buffer;
pub mod cast;
pub mod dim;
pub mod dtype;
#[allow(unsafe_code)]
pub mod lent;
pub mod memory;
pub mod rows;
pub mod shape;
pub mod shared;
pub mod view;
pub mod watch;
#[allow(unsafe_code)]
pub mod zeroed;

pub use array::{Array, Element, Float};
pub use cast::Cast;
pub use dim::{Dim, Sym};
pub use dtype::DType;
pub use rows::{Row, RowMut};
pub use shape::{Dims, Extents, Type};
pub use shared::Shared;
pub use view::{View, ViewMut};
