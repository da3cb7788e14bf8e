//! Engines: they run kernels and know nothing of graphs.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod gpu;
#[cfg(feature = "wgpu")]
pub mod wgpu;
