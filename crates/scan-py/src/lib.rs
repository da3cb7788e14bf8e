//! The Python extension `rscan._native`: scan-core's expressions, loops, gradients and functions as
//! Python objects. No mathematics lives here; what users see is written in Python, in `python/rscan`.

mod array;
mod call;
mod caller;
mod device;
mod dispatcher;
mod dlpack;
mod entry;
mod errors;
mod gradient;
mod loops;
mod module;
mod progress;
mod reflect;
mod reserve;
mod results;
mod session;
mod shared;
mod span;
mod user_op;
mod var;

use pyo3::prelude::*;

/// The module. Names and signatures are listed in `python/rscan/_native.pyi`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::array::mt_state;
    #[pymodule_export]
    use super::call::Function;
    #[cfg(feature = "testing")]
    #[pymodule_export]
    use super::call::check_device;
    #[pymodule_export]
    use super::call::{devices, passes, peak, release};
    #[pymodule_export]
    use super::caller::Caller;
    #[pymodule_export]
    use super::device::{DeviceArray, device_bytes, to_device};
    #[pymodule_export]
    use super::dispatcher::Dispatcher;
    #[pymodule_export]
    use super::entry::EntryPoint;
    #[pymodule_export]
    use super::errors::error_page;
    #[pymodule_export]
    use super::gradient::{expected_shapes, from_text, grad, jvp, row, substitute, to_text, vjp, vmap, vmap_units};
    #[pymodule_export]
    use super::loops::{LoopBuilder, noted, recent};
    #[pymodule_export]
    use super::module::{Module, load, load_params, save, save_params};
    #[pymodule_export]
    use super::reflect::{catalogue, structural_ops, structural_table};
    #[pymodule_export]
    use super::results::Results;
    #[pymodule_export]
    use super::session::{Session, step_all};
    #[pymodule_export]
    use super::shared::Shared;
    #[pymodule_export]
    use super::span::{span, span_place};
    #[pymodule_export]
    use super::user_op::{UserOp, extern_op};
    #[pymodule_export]
    use super::var::{Var, apply, constant, input, leaves, number, power};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::errors::install_hook();
        super::reserve::refill();
        scan_core::prelude::advise_with(super::array::advise);
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
