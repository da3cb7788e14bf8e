//! Shared variables.

use crate::array::{from_numpy, to_numpy};
use crate::device::{DeviceArray, site};
use crate::errors::{guard_py, to_py};
use crate::var::{PyDim, Var, type_of};
use pyo3::prelude::*;
use scan_core::prelude::{self as core, Array, Diagnostic, Kind, Span};

/// A value that lives between calls, with the one expression that stands for it.
#[pyclass(frozen, module = "rscan._native")]
pub struct Shared {
    pub shared: core::Shared,
    pub var: core::Var,
}

#[pymethods]
impl Shared {
    /// `static_shape` fixes the extents that are not `None`; without it only dtype and rank are fixed.
    #[new]
    #[pyo3(signature = (value, name=None, span=0, static_shape=None, device=None))]
    fn new(
        value: &Bound<'_, PyAny>,
        name: Option<&str>,
        span: u32,
        static_shape: Option<Vec<PyDim>>,
        device: Option<&str>,
    ) -> PyResult<Shared> {
        let py = value.py();
        guard_py(py, || {
            let value = given(value)?;
            let ty = type_of(value.dtype(), &static_shape.unwrap_or_else(|| vec![None; value.rank()]));
            if !ty.admits(value.dtype(), value.shape()) {
                return Err(to_py(py, &unfit(name, &ty, &value, Span::from_raw(span))));
            }
            let shared = match site(py, device)? {
                Some(site) => core::Shared::on_device(&value, ty, site).map_err(|e| to_py(py, &e))?,
                None => {
                    value.fetch();
                    core::Shared::new(value, ty)
                }
            };
            let var = core::Var::shared(shared.clone(), name, Span::from_raw(span));
            Ok(Shared { shared, var })
        })
    }
    /// The expression that stands for it.
    #[getter]
    fn var(&self) -> Var {
        Var(self.var.clone())
    }
    /// A number that no other shared variable of the process has.
    #[getter]
    fn id(&self) -> u64 {
        self.shared.id()
    }
    /// A copy of the value.
    fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guard_py(py, || to_numpy(py, self.shared.get()))
    }
    /// The value where it lies on a device.
    fn there(&self) -> Option<DeviceArray> {
        let value = self.shared.get();
        let at = value.data().resident().filter(|_| self.shared.device().is_some())?;
        Some(DeviceArray::new(Array::on_device(at.clone(), value.shape())))
    }
    /// The device where its values are kept; `None`: with the host.
    #[getter]
    fn device(&self) -> Option<&'static str> {
        self.shared.device()
    }
    /// Replaces the value by a copy of an array of the same dtype and rank.
    fn set(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        guard_py(py, || {
            let value = given(value)?;
            if !self.shared.ty().admits(value.dtype(), value.shape()) {
                return Err(to_py(py, &unfit(self.var.name().as_deref(), self.shared.ty(), &value, self.var.span())));
            }
            self.shared.set(self.shared.fit(value).map_err(|e| to_py(py, &e))?);
            Ok(())
        })
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Shared>().is_ok_and(|o| o.get().shared == self.shared)
    }
    fn __hash__(&self) -> u64 {
        self.shared.id()
    }
}

/// A value as the user gives it.
fn given(value: &Bound<'_, PyAny>) -> PyResult<Array> {
    match value.cast::<DeviceArray>() {
        Ok(there) => Ok(there.get().array.clone()),
        Err(_) => from_numpy(value),
    }
}

fn unfit(name: Option<&str>, ty: &core::Type, value: &Array, span: Span) -> Box<Diagnostic> {
    let name = name.map_or("a shared variable".to_string(), |n| format!("shared variable `{n}`"));
    Diagnostic::new(Kind::Type, "E0506", format!("{name} holds {ty}, and {} does not fit", value.ty()))
        .label(span, "made here")
        .help("the dtype and the number of axes of a shared variable stay as they were when it was made")
}
