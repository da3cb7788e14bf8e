//! KIR: what engines compile. A kernel is one straight-line step in SSA form that runs for every lane and, one after the other,
//! for every time step. It knows memory only as operands: it sees no shapes, taps, gradients or Python.

pub mod distribute;
pub mod interp;
pub mod kir;
mod loops;
mod names;
pub mod nest;
pub mod parse;
pub mod print;
mod rebuild;
pub mod record;
pub mod sides;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod unswitch;
pub mod verify;
mod work;

pub use kir::{Bin, Carry, CarryId, Cmp, HostFn, Inst, Kernel, Lane, Mem, MemId, Op, Reg, Store, Un};
pub use loops::{Argument, Loop, OWN};
pub use nest::{Fill, LEVELS, Nest, Strides, Use};
pub use record::Builder;
pub use unswitch::{Condition, Unswitched};
pub use verify::verify;
pub use work::Work;
