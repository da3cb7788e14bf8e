//! The clock and the number of the process, on machines that have none as well: WebAssembly outside a system.

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod none {
    use std::time::Duration;

    /// A moment on a machine without a clock: no time ever passes.
    #[derive(Clone, Copy, Debug)]
    pub struct Instant;

    impl Instant {
        /// This moment.
        pub fn now() -> Instant {
            Instant
        }
        /// The time since then.
        pub fn elapsed(&self) -> Duration {
            Duration::ZERO
        }
    }

    /// The number of the one process.
    pub fn process() -> u32 {
        0
    }
}

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub use none::{Instant, process};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use std::{process::id as process, time::Instant};
