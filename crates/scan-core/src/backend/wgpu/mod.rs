//! Devices through wgpu, on Vulkan: kernels as WGSL, translated to SPIR-V in which nothing is contracted.

mod memory;
#[allow(unsafe_code)]
mod open;
mod spirv;
mod storage;
#[cfg(test)]
mod tests;
mod values;
mod wgsl;

pub use open::{adapters, open};
