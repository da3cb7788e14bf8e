//! What the passes over loops share: a loop in pieces, and facts about loops that can be proved.

pub mod facts;
pub mod parts;
pub mod readers;
pub mod rows;
pub mod tails;

pub use parts::{CapturedPart, Parts, SeqPart, StatePart};
