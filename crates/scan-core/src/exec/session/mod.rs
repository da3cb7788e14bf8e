//! Functions that are given the rows of their sequences one by one, with the states of their loops kept in between.

mod batch;
mod rows;
mod state;
mod steps;

pub use batch::Stepped;
pub use state::Session;
pub use steps::Steps;
