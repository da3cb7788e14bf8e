//! What a loop means: types, one step after the other, and the gradient.

pub mod batch;
pub mod decided;
mod given;
pub mod in_place;
pub mod infer;
mod inner;
pub mod inspect;
pub mod jvp;
pub mod kept;
pub mod reached;
pub mod replay;
pub mod retype;
pub mod steady;
pub mod step;
mod stored;
pub mod tape;
pub mod taps;
pub mod vjp;

#[cfg(test)]
mod tests;
