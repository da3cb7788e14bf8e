//! Modules: functions in a file.

use crate::array::{from_numpy, to_numpy};
use crate::call::Function;
use crate::errors::{guard_py, to_py};
use crate::shared::Shared;
use crate::user_op::{UserOp, described};
use crate::var::{Var, wrap};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use scan_core::prelude::{self as core, Returns};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Functions that were read from a file, as expressions.
#[pyclass(frozen, module = "rscan._native")]
pub struct Module(core::Module);

/// What Python says of a function that it saves: its name, its doc, the form of its results, names and default values of its inputs, names
/// of its outputs, and what Python wants to find again.
type Said<'py> = (
    String,
    Bound<'py, Function>,
    Option<String>,
    String,
    Vec<Option<String>>,
    Vec<Option<Bound<'py, PyAny>>>,
    Vec<Option<String>>,
    String,
    PortDocs,
);

/// What inputs and outputs are, in words.
type PortDocs = (Vec<Option<String>>, Vec<Option<String>>);

/// The same of a function that was read, with its expressions: inputs, outputs, updates, doc, form of the results, default values, names of
/// the outputs, passes, and what Python left there.
type Found<'py> = (
    Vec<Var>,
    Vec<Var>,
    Vec<(Var, Var)>,
    Option<String>,
    &'static str,
    Vec<Option<Bound<'py, PyAny>>>,
    Vec<Option<String>>,
    (&'static str, Vec<&'static str>),
    Option<String>,
    PortDocs,
);

/// The bytes of a file of functions; written to `path`, where one is given.
#[pyfunction]
#[pyo3(signature = (functions, path=None))]
pub fn save<'py>(py: Python<'py>, functions: Vec<Said<'py>>, path: Option<PathBuf>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    guard_py(py, || {
        let mut module = core::Module::new();
        for (name, function, doc, returns, inputs, defaults, outputs, front, docs) in functions {
            let defaults = defaults.iter().map(|d| d.as_ref().map(from_numpy).transpose()).collect::<PyResult<Vec<_>>>()?;
            let signature = module.add(&name, function.get().inner.clone()).map_err(|e| to_py(py, &e))?;
            (signature.doc, signature.front) = (doc, Some(front));
            signature.returns = match returns.as_str() {
                "single" => Returns::Single,
                "dict" => Returns::Dict,
                _ => Returns::List,
            };
            for ((port, name), default) in signature.inputs.iter_mut().zip(inputs).zip(defaults) {
                (port.name, port.default) = (name, default);
            }
            signature.outputs.iter_mut().zip(outputs).for_each(|(port, name)| port.name = name.or(port.name.take()));
            signature.inputs.iter_mut().zip(docs.0).for_each(|(port, doc)| port.doc = doc);
            signature.outputs.iter_mut().zip(docs.1).for_each(|(port, doc)| port.doc = doc);
        }
        let written = py.detach(|| match &path {
            Some(path) => module.save(path).map(|()| None),
            None => module.to_bytes().map(Some),
        });
        Ok(written.map_err(|e| to_py(py, &e))?.map(|bytes| PyBytes::new(py, &bytes)))
    })
}

/// Reads the bytes of a file of functions. `find(key, types)` gives the user's op of a key, or None; types are those that the file says of the
/// op's results.
#[pyfunction]
pub fn load(py: Python<'_>, data: &[u8], find: Bound<'_, PyAny>) -> PyResult<Module> {
    guard_py(py, || {
        let failed = Cell::new(None);
        let asked =
            |key: &str, types: &[core::Type]| -> PyResult<Option<Py<UserOp>>> { Ok(find.call1((key, described(py, types)?))?.extract()?) };
        let found = |key: &str, types: &[core::Type]| {
            asked(key, types).map_err(|e| failed.set(Some(e))).ok().flatten().map(|op| op.get().external())
        };
        let module = core::Module::from_bytes_finding(data, &found);
        if let Some(e) = failed.take() {
            return Err(e);
        }
        module.map(Module).map_err(|e| to_py(py, &e))
    })
}

#[pymethods]
impl Module {
    /// Names of the functions.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.0.names().collect()
    }
    /// The shared variables by name.
    #[getter]
    fn shared(&self) -> Vec<(&str, Shared)> {
        let both = |(name, shared): (_, &core::Shared)| {
            let var = core::Var::shared(shared.clone(), Some(name), Default::default());
            (name, Shared { shared: shared.clone(), var })
        };
        self.0.shared().map(both).collect()
    }
    /// A function as expressions, with what is known of it.
    fn function<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Found<'py>> {
        guard_py(py, || {
            let found = self.0.spec(name).and_then(|spec| Ok((spec, self.0.signature(name)?)));
            let (spec, s) = found.map_err(|e| to_py(py, &e))?;
            let updates = spec.updates.into_iter().map(|(a, b)| (Var(a), Var(b))).collect();
            let returns = match s.returns {
                Returns::Single => "single",
                Returns::List => "list",
                Returns::Dict => "dict",
            };
            let defaults = s.inputs.iter().map(|p| p.default.clone().map(|a| to_numpy(py, a)).transpose()).collect::<PyResult<_>>()?;
            let names = s.outputs.iter().map(|p| p.name.clone()).collect();
            let (doc, front) = (s.doc.clone(), s.front.clone());
            let docs = |ports: &[core::Port]| ports.iter().map(|p| p.doc.clone()).collect();
            let docs = (docs(&s.inputs), docs(&s.outputs));
            Ok((wrap(&spec.inputs), wrap(&spec.outputs), updates, doc, returns, defaults, names, s.passes.names(), front, docs))
        })
    }
    /// What is in it, for people.
    fn describe(&self) -> String {
        self.0.describe()
    }
}

/// Writes arrays by name to a safetensors file.
#[pyfunction]
pub fn save_params(py: Python<'_>, path: PathBuf, params: &Bound<'_, PyDict>) -> PyResult<()> {
    guard_py(py, || {
        let arrays = params.iter().map(|(name, array)| Ok((name.extract()?, from_numpy(&array)?))).collect::<PyResult<BTreeMap<_, _>>>()?;
        py.detach(|| core::save_params(path, &arrays)).map_err(|e| to_py(py, &e))
    })
}

/// Reads the arrays of a safetensors file, by name.
#[pyfunction]
pub fn load_params<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyList>> {
    guard_py(py, || {
        let arrays = py.detach(|| core::load_params(path)).map_err(|e| to_py(py, &e))?;
        PyList::new(py, arrays.into_iter().map(|(name, array)| Ok((name, to_numpy(py, array)?))).collect::<PyResult<Vec<_>>>()?)
    })
}
