//! Expressions as the user holds them: an immutable DAG, with names and lines kept at the door.

pub mod arrays;
mod capture;
mod check;
pub mod closures;
pub mod dag;
pub mod extract;
pub mod gradient;
pub mod loops;
pub mod operators;
mod origins;
pub mod power;
pub mod splice;
pub mod sugar;
pub mod text;
pub mod vmap;

pub use dag::Var;
pub use gradient::GradOptions;
pub use loops::{LoopBuilder, LoopOptions, LoopResult};
