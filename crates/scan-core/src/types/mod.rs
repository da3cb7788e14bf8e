//! dtypes, symbolic dims, shapes, host arrays and shared variables.

pub mod array;
pub mod buffer;
pub mod cast;
pub mod device;
pub mod dim;
pub mod dtype;
#[allow(unsafe_code)]
pub mod lent;
pub mod memory;
mod on_device;
mod placed;
pub mod rows;
pub mod shape;
pub mod shared;
pub mod view;
pub mod watch;
pub mod words;
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
