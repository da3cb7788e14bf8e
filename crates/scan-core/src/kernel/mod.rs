//! KIR: what engines compile. A kernel is one straight-line step in SSA form that runs for every lane and, one after the other,
//! for every time step. It knows memory only as operands: it sees no shapes, taps, gradients or Python.

pub mod kir;
pub mod record;

pub use kir::{Bin, Carry, CarryId, Cmp, HostFn, Inst, Kernel, Lane, Mem, MemId, Op, Reg, Store, Un};
pub use record::Builder;
