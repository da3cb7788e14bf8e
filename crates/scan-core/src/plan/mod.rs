//! Plans: what the steps of a loop run, as data. `lower/` makes them, `exec/` runs them.
//!
//! A loop is one kernel ([`LoopKernel`]), or its step is a list of parts ([`StepList`]). A plan has a text form that [`parse`] reads back, and
//! [`verify()`] tells what is wrong with one.

#[cfg(any(test, feature = "testing"))]
pub mod interp;
pub mod kernel;
pub mod list;
#[cfg(any(test, feature = "testing"))]
pub mod mutate;
pub mod parse;
pub mod print;
#[cfg(any(debug_assertions, test, feature = "testing"))]
pub(crate) mod sound;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod verify;
pub mod votes;
pub mod window;

pub use kernel::LoopKernel;
pub use list::StepList;
pub use verify::{verify, verify_kernel};
pub use window::Window;
