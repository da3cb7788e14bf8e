//! Engines: they run kernels and know nothing of graphs.

pub mod cpu;
