//! What the passes over loops share: a loop in pieces, and facts about loops that can be proved.

pub mod apart;
pub mod buffers;
pub mod cost;
pub mod cut;
pub mod facts;
pub mod outside;
pub mod parts;
pub mod readers;
pub mod rows;
pub mod tails;
pub mod twins;

pub use parts::{CapturedPart, Parts, SeqPart, StatePart};
