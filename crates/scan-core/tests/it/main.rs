//! The one integration test binary of the crate.

mod ir_files;
mod mutations;
mod sources;
mod tidy;
