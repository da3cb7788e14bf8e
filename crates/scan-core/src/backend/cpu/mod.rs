//! Engines of this processor. All give the same bits for the same kernel (of one FMA class, see `scalar::lanes`).

#[allow(unsafe_code)]
pub mod code;
#[allow(unsafe_code)]
mod elements;
#[allow(unsafe_code)]
mod entry;
#[cfg(feature = "jit")]
#[allow(unsafe_code)]
pub mod jit;
#[allow(unsafe_code)]
pub mod nest;
#[allow(unsafe_code)]
pub mod team;
#[cfg(any(test, feature = "testing"))]
#[allow(unsafe_code)]
pub mod testing;
#[allow(unsafe_code)]
pub mod vm;
#[allow(unsafe_code)]
pub mod watch;

#[cfg(all(feature = "jit", target_arch = "x86_64"))]
#[allow(unsafe_code)]
pub mod emit_x64;
pub mod isa;
mod memory;
mod spot;

pub use code::{Code, Frame, Operand, Places, Refusal, bytes, bytes_of, cells, cells_of, clear, copy, copy_rows, gather, run, turn};
pub use elements::{INPUTS, array_at, bits_at, each_integer, integer_at, truth_at, with_inputs, with_slices, write_array, zip_integers};
pub use entry::{Entry, Scalars};
pub use isa::Isa;
pub use memory::Memory;
pub use nest::{NestPlan, NestRun};
pub use spot::{Spot, Steps};

use crate::kernel::Kernel;

/// The kernel on the vm.
pub fn vm(kernel: &Kernel) -> Box<dyn Code> {
    vm::compile(kernel, Isa::detect().unwrap_or(Isa::Portable))
}

/// The kernel as machine code for about this many lanes.
///
/// # Errors
/// Why there is none.
#[cfg(feature = "jit")]
pub fn native(kernel: &Kernel, lanes: usize) -> Result<Box<dyn Code>, Refusal> {
    #[cfg(target_arch = "x86_64")]
    if lanes > 1 {
        let emitted = Isa::detect().map_err(Refusal).and_then(|isa| emit_x64::compile(kernel, isa, lanes));
        return emitted.or_else(|refusal| jit::compile(kernel, jit::Allocation::Thorough).map_err(|_| refusal));
    }
    // Elsewhere lanes run one after the other.
    #[cfg(not(target_arch = "x86_64"))]
    let _ = lanes;
    jit::compile(kernel, jit::Allocation::Thorough)
}

/// Machine code for one lane after the other, made in a fraction of the time: registers are allocated in one pass.
///
/// # Errors
/// Why there is none.
#[cfg(feature = "jit")]
pub fn native_soon(kernel: &Kernel) -> Result<Box<dyn Code>, Refusal> {
    jit::compile(kernel, jit::Allocation::SinglePass)
}

/// The same in a build without machine code.
///
/// # Errors
/// That.
#[cfg(not(feature = "jit"))]
pub fn native_soon(_: &Kernel) -> Result<Box<dyn Code>, Refusal> {
    Err(no_machine_code())
}

/// [`native`] in a build without machine code.
///
/// # Errors
/// That.
#[cfg(not(feature = "jit"))]
pub fn native(_: &Kernel, _: usize) -> Result<Box<dyn Code>, Refusal> {
    Err(no_machine_code())
}

#[cfg(not(feature = "jit"))]
fn no_machine_code() -> Refusal {
    Refusal("this build has no machine code: it is without the feature `jit`".into())
}
