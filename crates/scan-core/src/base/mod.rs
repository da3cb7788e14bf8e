//! What knows nothing of tensors: typed ids, source spans, diagnostics.

pub mod clock;
pub mod codes;
pub mod diag;
pub mod idx;
#[cfg(any(test, feature = "testing"))]
pub mod small;
pub mod span;
pub(crate) mod words;

pub use diag::{Diagnostic, Kind, Result};
pub use idx::{Id, IdxVec};
pub use span::Span;
