//! Compiled functions and their calls.

use crate::array::{exact, from_numpy, is_exact, to_numpy};
use crate::errors::{carry, guard, guard_py, to_py};
use crate::shared::Shared;
use crate::var::{Var, unwrap, unwrap_pairs};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use scan_core::prelude::{self as core, Array, EvalCx, FunctionSpec, Kind, LoopTimes, Type};

/// A compiled function. Calls may come from many threads.
#[pyclass(frozen, module = "rscan._native")]
pub struct Function {
    inner: core::Function,
    name: Option<String>,
    types: Vec<Type>,
    shared: Vec<core::Var>,
}

#[pymethods]
impl Function {
    #[new]
    #[pyo3(signature = (inputs, outputs, updates=vec![], givens=vec![], name=None))]
    fn new(
        py: Python<'_>,
        inputs: Vec<Var>,
        outputs: Vec<Var>,
        updates: Vec<(Var, Var)>,
        givens: Vec<(Var, Var)>,
        name: Option<String>,
    ) -> PyResult<Function> {
        let types = inputs.iter().map(|v| v.0.ty().clone()).collect();
        let (inputs, outputs) = (unwrap(&inputs), unwrap(&outputs));
        let spec = FunctionSpec { name: name.clone(), inputs, outputs, updates: unwrap_pairs(&updates), givens: unwrap_pairs(&givens) };
        guard(py, || {
            let inner = core::Function::new(spec)?;
            let leaf = |s: &core::Shared| core::Var::shared(s.clone(), None, core::Span::NONE);
            let shared = inner.shared().iter().map(leaf).collect();
            Ok(Function { inner, name, types, shared })
        })
    }
    /// Runs with one array per input, each of its input's dtype. The interpreter lock is free meanwhile; Ctrl-C stops the call.
    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, py: Python<'py>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyList>> {
        guard_py(py, || Ok(self.run(py, args, false)?.0))
    }
    /// As a call; also where its time went, per loop: (name, calls, steps, seconds, [(op, evaluations, seconds)]). The first
    /// row is what stands outside all loops.
    #[pyo3(signature = (*args))]
    fn profiled<'py>(&self, py: Python<'py>, args: &Bound<'py, PyTuple>) -> PyResult<(Bound<'py, PyList>, Vec<Times>)> {
        guard_py(py, || self.run(py, args, true))
    }
    /// True where every argument is an array of its input's type in C order, so that a call needs no conversion.
    #[pyo3(signature = (*args))]
    fn fits(&self, args: &Bound<'_, PyTuple>) -> bool {
        args.len() == self.types.len() && args.iter().zip(&self.types).all(|(a, ty)| is_exact(&a, ty))
    }
    /// Positions of inputs on which nothing depends.
    #[getter]
    fn unused_inputs(&self) -> Vec<usize> {
        self.inner.unused_inputs()
    }
    /// The shared variables that it reads or updates.
    #[getter]
    fn shared(&self) -> Vec<Shared> {
        self.inner.shared().iter().zip(&self.shared).map(|(s, v)| Shared { shared: s.clone(), var: v.clone() }).collect()
    }
    /// The graph in text form.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || Ok(crate::reflect::text(self.inner.graph(), self.name.as_deref().unwrap_or("f"))))
    }
}

/// Name, calls, steps, seconds, and per op its evaluations and seconds.
type Times = (Option<String>, u64, u64, f64, Vec<(String, u64, f64)>);

fn times(row: LoopTimes) -> Times {
    let ops = row.ops.into_iter().map(|(name, (count, spent))| (name, count, spent.as_secs_f64())).collect();
    (row.name, row.calls, row.steps, row.total.as_secs_f64(), ops)
}

impl Function {
    fn run<'py>(&self, py: Python<'py>, args: &Bound<'py, PyTuple>, profile: bool) -> PyResult<(Bound<'py, PyList>, Vec<Times>)> {
        let values = args.iter().enumerate().map(|(i, a)| self.argument(i, &a)).collect::<PyResult<Vec<_>>>()?;
        let (result, profile) = py.detach(|| {
            let poll = || Python::attach(|py| py.check_signals()).map_err(|e| carry(Kind::Interrupted, e));
            let mut cx = EvalCx::with_poll(&poll);
            cx.profile = profile.then(Default::default);
            (self.inner.call(&mut cx, &values), cx.profile)
        });
        let outs = result.map_err(|e| to_py(py, &e))?;
        let list = PyList::new(py, outs.into_iter().map(|a| to_numpy(py, a)).collect::<PyResult<Vec<_>>>()?)?;
        Ok((list, profile.map_or_else(Vec::new, |p| p.loops.into_iter().map(times).collect())))
    }

    fn argument(&self, i: usize, value: &Bound<'_, PyAny>) -> PyResult<Array> {
        match self.types.get(i).and_then(|ty| exact(value, ty.dtype)) {
            Some(array) => Ok(array),
            None => from_numpy(value),
        }
    }
}
