//! A service over a file of functions that `rs.save` wrote: predictions, sessions, online learning. README.md says what it answers.

pub mod api;
pub mod client;
pub mod codec;
pub mod config;
pub mod metrics;
pub mod model;
pub mod refused;
pub mod sessions;
pub mod work;
