//! Ops whose meaning is written in Python.

use crate::array::{from_numpy, to_numpy};
use crate::errors::carry;
use crate::var::{PyDim, Var, dtype_of, type_of, unwrap};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use scan_core::prelude::{
    self as core, Arg, Array, Diagnostic, Dim, ExternOp, ExternRef, Graph, Kind, Op, Outs, Result, Site, Span, Type, Value,
};
use std::collections::HashMap;
use std::sync::Arc;

/// A user's op, to be given to `apply`.
#[pyclass(frozen, module = "rscan._native")]
pub struct UserOp(Arc<PyOp>);

impl UserOp {
    /// As an op of the core.
    pub fn op(&self) -> Op {
        Op::Extern(self.external())
    }
    /// As what a text refers to by its key.
    pub fn external(&self) -> ExternRef {
        ExternRef(self.0.clone())
    }
}

#[pymethods]
impl UserOp {
    /// The name that it was registered under.
    #[getter]
    fn key(&self) -> &str {
        &self.0.key
    }
}

/// Makes an op from Python callables.
/// `infer([(dtype, shape)…])` returns the same for the outputs, `eval([array…])` the arrays, and
/// `vjp(inputs, outputs, cotangents)`, which gets and returns expressions or `None`, the cotangents of the inputs.
/// `once`: where a step is run again for its gradient, the inputs stand for the outputs.
#[pyfunction]
#[pyo3(name = "extern", signature = (key, pure, infer, eval, vjp=None, once=false))]
pub fn extern_op(key: String, pure: bool, infer: Py<PyAny>, eval: Py<PyAny>, vjp: Option<Py<PyAny>>, once: bool) -> UserOp {
    UserOp(Arc::new(PyOp { key, pure, once, infer, eval, vjp }))
}

struct PyOp {
    key: String,
    pure: bool,
    once: bool,
    infer: Py<PyAny>,
    eval: Py<PyAny>,
    vjp: Option<Py<PyAny>>,
}

/// Types as Python sees them: dtypes and shapes, in which None is an extent that is not known.
pub fn described<'py>(py: Python<'py>, types: &[Type]) -> PyResult<Vec<(&'static str, Bound<'py, PyTuple>)>> {
    types.iter().map(|ty| Ok((ty.dtype.name(), PyTuple::new(py, ty.dims.iter().map(Dim::value).collect::<Vec<PyDim>>())?))).collect()
}

/// Runs Python code; what it raises travels through the core and comes out unchanged.
fn python<T>(body: impl for<'py> FnOnce(Python<'py>) -> PyResult<T>) -> Result<T> {
    Python::attach(body).map_err(|e| carry(Kind::Callback, e))
}

impl ExternOp for PyOp {
    fn key(&self) -> &str {
        &self.key
    }
    fn pure(&self) -> bool {
        self.pure
    }
    fn once(&self) -> bool {
        self.once
    }
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let ins: Vec<Type> = ins.iter().map(|a| a.ty.clone()).collect();
        let types: Vec<(String, Vec<PyDim>)> = python(|py| self.infer.bind(py).call1((described(py, &ins)?,))?.extract())?;
        types.iter().map(|(dtype, shape)| Ok(type_of(dtype_of(dtype)?, shape))).collect()
    }
    fn eval(&self, ins: &[Array]) -> Result<Outs<Array>> {
        python(|py| {
            let args = ins.iter().map(|a| to_numpy(py, a.clone())).collect::<PyResult<Vec<_>>>()?;
            let outs = self.eval.bind(py).call1((PyList::new(py, args)?,))?;
            outs.try_iter()?.map(|a| from_numpy(&a?)).collect()
        })
    }
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(vjp) = &self.vjp else {
            return Err(Diagnostic::new(Kind::Gradient, "E0403", format!("op `{}` has no gradient", self.key)));
        };
        let mut images: HashMap<core::Var, Value> = HashMap::new();
        let mut stand_in = |v: Value| {
            let var = core::Var::input(g.ty(v).clone(), g.name(v).map(|n| &**n), Span::NONE);
            images.insert(var.clone(), v);
            Var(var)
        };
        let ins: Vec<Var> = site.ins.iter().map(|&v| stand_in(v)).collect();
        let outs: Vec<Var> = site.outs.iter().map(|&v| stand_in(v)).collect();
        let cts: Vec<Option<Var>> = cts.iter().map(|c| c.map(&mut stand_in)).collect();
        let found: Vec<Option<Var>> = python(|py| vjp.bind(py).call1((ins, outs, cts))?.extract())?;
        if found.len() != site.ins.len() {
            let text = format!("the gradient of op `{}` gave {} cotangents for {} inputs", self.key, found.len(), site.ins.len());
            return Err(Diagnostic::new(Kind::Gradient, "E0414", text));
        }
        let flat: Vec<core::Var> = unwrap(&found.iter().flatten().cloned().collect::<Vec<_>>());
        emit(g, &flat, &mut images)?;
        Ok(found.iter().map(|v| v.as_ref().map(|v| images[&v.0])).collect())
    }
}

/// Adds the nodes behind expressions to a graph; `images` says which leaves stand for which values, and learns the rest.
fn emit(g: &mut Graph, vars: &[core::Var], images: &mut HashMap<core::Var, Value>) -> Result<()> {
    let mut stack: Vec<core::Var> = vars.to_vec();
    while let Some(var) = stack.last().cloned() {
        if images.contains_key(&var) {
            stack.pop();
            continue;
        }
        let Some((op, ins, _)) = var.owner() else {
            let value = var.const_value().ok_or_else(|| foreign(&var))?;
            let value = g.constant(value.clone());
            images.insert(var, value);
            continue;
        };
        let missing: Vec<_> = ins.iter().filter(|v| !images.contains_key(v)).cloned().collect();
        if !missing.is_empty() {
            stack.extend(missing);
            continue;
        }
        let ins: Vec<Value> = ins.iter().map(|v| images[v]).collect();
        let before = g.set_span(var.span());
        let outs = g.apply(op.clone(), &ins);
        g.set_span(before);
        if let core::Var::Out(node, _) = &var {
            images.extend(outs?.into_iter().enumerate().map(|(i, value)| (core::Var::Out(node.clone(), i), value)));
        }
    }
    Ok(())
}

fn foreign(var: &core::Var) -> Box<Diagnostic> {
    let text = format!("the gradient of a user's op uses {}, which is none of its inputs", var.describe());
    Diagnostic::new(Kind::Gradient, "E0415", text).label(var.span(), "made here").help("make it an input of the op")
}
