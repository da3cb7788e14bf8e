//! What a plan means, step by step: slow and obvious. Engines are measured against it.
//!
//! Memory that nothing has written yet holds a byte that whoever asks chooses: what hangs on it differs from run to run.

mod list;
mod loop_kernel;
mod memory;

pub use list::run_list;
pub use loop_kernel::run_kernel;
