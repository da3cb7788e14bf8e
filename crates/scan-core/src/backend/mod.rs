//! Engines: they run kernels and know nothing of graphs.

pub mod cpu;
pub mod gpu;
#[cfg(feature = "wgpu")]
pub mod wgpu;
