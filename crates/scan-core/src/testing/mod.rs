//! Random loop programs with a reference of their own, for the tests of this crate and of its Python extension.
//!
//! A [`Program`] is plain data: a list of items, some of which are loops. Three readings of it exist: [`reference`] interprets
//! it over nested lists of f64 and knows nothing of graphs; [`build`] makes expressions of it, with loops or with every loop
//! written out step by step. [`check`] compares them, with their first, second and third derivatives.

pub mod build;
pub mod check;
mod device;
mod gen_corners;
pub mod gen_expr;
mod gen_log;
pub mod gen_loop;
pub mod gen_models;
pub mod linear;
pub mod mapped;
pub mod misfit;
pub mod nd;
pub mod optimised;
pub mod program;
pub mod random;
pub mod reference;
pub mod report;
pub mod saved;
pub mod sessions;
pub mod show;
pub mod shrink;

pub use check::{Fault, check, check_on};
pub use device::check_device;
pub use gen_loop::generate;
pub use program::Program;
pub use report::{Report, run};
