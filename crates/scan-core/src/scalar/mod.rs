//! The elementwise table and the mathematics of its rows. An elementwise function is one row of
//! [`rows`]: from it follow the op, its name, its value for every dtype, its gradient and its
//! entry in the run-time catalogue [`ROWS`].

#[macro_use]
mod table;

#[allow(unsafe_code)]
pub mod called;
#[allow(unsafe_code)]
pub mod eights;
#[allow(unsafe_code)]
mod fast;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod four;
#[allow(unsafe_code)]
pub mod fourier;
pub mod host;
pub mod int;
pub mod lanes;
pub mod leaves;
pub mod math;
pub mod mt19937;
pub mod nature;
pub mod philox;
#[allow(unsafe_code)]
pub(crate) mod product;
pub mod rows;
#[allow(unsafe_code)]
pub mod slices;
pub mod special;
pub mod systems;
pub mod term;
pub mod walk;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub use host::Host;
pub(crate) use host::{far_cos, far_sin};
pub use int::Int;
pub use lanes::{Lanes, Lookup};
pub use nature::{Jumps, Nature};
pub use rows::{ElemOp, ROWS, Words};
pub use table::{Outcome, Row, Rule};
pub use term::Term;
