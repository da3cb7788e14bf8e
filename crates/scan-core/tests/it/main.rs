//! The one integration test binary of the crate.

mod alone;
mod built_graphs;
mod closures;
#[cfg(all(feature = "cuda", feature = "wgpu", feature = "testing"))]
mod device;
mod elements;
mod engines;
mod instruction_sets;
mod ir_files;
mod memory;
mod misfits;
mod modules;
mod mutations;
mod nested;
mod operators;
mod peak_memory;
mod products;
mod progress;
mod random_graphs;
mod released;
mod sessions;
mod sources;
mod tidy;
mod views;
mod vm_allocations;
