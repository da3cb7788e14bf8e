//! Expressions.

use crate::array::{from_numpy, to_numpy};
use crate::errors::{guard, guard_py, to_py};
use crate::reflect::{attr_from_py, attrs_to_py, scan_to_py};
use crate::shared::Shared;
use crate::user_op::UserOp;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use scan_core::prelude::{self as core, Array, DType, Diagnostic, Dim, LeafKind, Note, Op, Span, Type};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// One extent of a shape given from Python: a number, or `None` for unknown.
pub type PyDim = Option<usize>;

/// An expression. Equal and of one hash where it is the same expression.
#[pyclass(frozen, from_py_object, module = "rscan._native", weakref)]
#[derive(Clone)]
pub struct Var(pub core::Var);

#[pymethods]
impl Var {
    /// Its identity: node and output position.
    #[getter]
    fn key(&self) -> (u64, usize) {
        self.0.key()
    }
    /// NumPy's name of the dtype.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.ty().dtype.name()
    }
    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.ty().rank()
    }
    /// Extents; `None` where unknown.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.ty().dims.iter().map(Dim::value))
    }
    /// True where both have the same extents in every run.
    fn same_dims(&self, other: &Var) -> bool {
        self.0.ty().dims == other.0.ty().dims
    }
    /// True where extent `axis` of this and `other_axis` of the other are the same in every run.
    fn same_dim(&self, axis: usize, other: &Var, other_axis: usize) -> bool {
        let dim = |v: &Var, i: usize| v.0.ty().dims.get(i).cloned();
        dim(self, axis).is_some() && dim(self, axis) == dim(other, other_axis)
    }
    /// A leaf of the same type, the same extents in every run included.
    fn input_like(&self, name: &str, span: u32) -> Var {
        Var(core::Var::input(self.0.ty().clone(), Some(name), Span::from_raw(span)))
    }
    /// Notes the symbols of its extents that are unknown, with what they are in some call.
    fn expect(&self, shape: Vec<usize>, known: &Bound<'_, PyDict>) -> PyResult<()> {
        let unknown = self.0.ty().dims.iter().map(Dim::as_sym).zip(shape);
        unknown.into_iter().try_for_each(|(sym, n)| sym.map_or(Ok(()), |sym| known.set_item(sym.0, n)))
    }
    /// The name that the user gave it.
    #[getter]
    fn name(&self) -> Option<String> {
        self.0.name().map(|n| n.to_string())
    }
    #[setter]
    fn set_name(&self, name: Option<&str>) {
        self.0.set_name(name);
    }
    /// Where the user wrote it, as a number for `span_place`.
    #[getter]
    fn span(&self) -> u32 {
        self.0.span().raw()
    }
    /// `input`, `const`, `shared` or `apply`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.leaf_kind() {
            Some(LeafKind::Input) => "input",
            Some(LeafKind::Const(_)) => "const",
            Some(LeafKind::Shared(_)) => "shared",
            Some(LeafKind::Failed(_)) => "failed",
            None => "apply",
        }
    }
    /// A copy of its value, if it is a constant.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.const_value().map(|a| to_numpy(py, a.clone())).transpose()
    }
    /// The variable behind it, if it is shared.
    #[getter]
    fn shared(&self) -> Option<Shared> {
        self.0.as_shared().map(|s| Shared { shared: s.clone(), var: self.0.clone() })
    }
    /// The name of the op that makes it, if it is no leaf.
    #[getter]
    fn op(&self) -> Option<String> {
        self.0.owner().map(|(op, ..)| op.name().to_string())
    }
    /// The attributes of that op.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        attrs_to_py(py, &self.0.owner().map(|(op, ..)| op.attrs()).unwrap_or_default())
    }
    /// The inputs of that op.
    #[getter]
    fn inputs(&self) -> Vec<Var> {
        self.0.owner().map(|(_, ins, _)| wrap(ins)).unwrap_or_default()
    }
    /// Its position among the outputs of that op.
    #[getter]
    fn index(&self) -> usize {
        self.0.key().1
    }
    /// All outputs of that op, itself among them.
    fn siblings(&self) -> Vec<Var> {
        wrap(&self.0.siblings())
    }
    /// What is known of the loop that makes it, as a dict; `None` where no loop does.
    #[getter]
    fn scan<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let scan = self.0.owner().and_then(|(op, ..)| op.as_scan());
        guard_py(py, || scan.map(|s| scan_to_py(py, s)).transpose())
    }
    /// The step of the loop that makes it: leaves for what a step is given, and what it makes of them; `None` where no loop does.
    fn scan_body(&self, py: Python<'_>) -> PyResult<Option<(Vec<Var>, Vec<Var>)>> {
        let scan = self.0.owner().and_then(|(op, ..)| op.as_scan());
        guard(py, || scan.map(|s| core::open_body(s).map(|(a, b)| (wrap(&a), wrap(&b)))).transpose())
    }
    /// What was last noted of the application that makes it, or of the shared variable behind it.
    #[getter]
    fn note(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        Some(self.0.note()?.downcast_ref::<Py<PyAny>>()?.clone_ref(py))
    }
    /// Keeps an object as long as the application that makes it, or the shared variable behind it. The object must not hold what
    /// depends on this expression: neither would ever go.
    fn set_note(&self, note: Option<Py<PyAny>>) {
        self.0.set_note(note.map(|note| Arc::new(note) as Note));
    }
    /// The shared variables that the loop which makes it updates, with their values after it; none where no loop does.
    fn updates(&self, py: Python<'_>) -> PyResult<Vec<(Var, Var)>> {
        guard(py, || Ok(core::updates_of(&self.0)?.into_iter().map(|(a, b)| (Var(a), Var(b))).collect()))
    }
    /// How to call it in a message.
    fn describe(&self) -> String {
        self.0.describe()
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Var>().is_ok_and(|o| o.get().0.key() == self.0.key())
    }
    fn __hash__(&self) -> u64 {
        let mut state = DefaultHasher::new();
        self.0.key().hash(&mut state);
        state.finish()
    }
    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Expressions for Python.
pub fn wrap(vars: &[core::Var]) -> Vec<Var> {
    vars.iter().cloned().map(Var).collect()
}

/// Expressions from Python.
pub fn unwrap(vars: &[Var]) -> Vec<core::Var> {
    vars.iter().map(|v| v.0.clone()).collect()
}

/// Pairs of expressions from Python.
pub fn unwrap_pairs(pairs: &[(Var, Var)]) -> Vec<(core::Var, core::Var)> {
    pairs.iter().map(|(a, b)| (a.0.clone(), b.0.clone())).collect()
}

/// The dtype of a NumPy name.
pub fn dtype_of(name: &str) -> scan_core::prelude::Result<DType> {
    let unknown = || Diagnostic::new(core::Kind::Type, "E0806", format!("there is no dtype named {name:?}"));
    DType::parse(name).ok_or_else(unknown)
}

/// A type from a dtype and extents.
pub fn type_of(dtype: DType, shape: &[PyDim]) -> Type {
    Type::new(dtype, shape.iter().map(|d| d.map_or_else(Dim::fresh, Dim::known)))
}

/// A leaf that a caller fills.
#[pyfunction]
#[pyo3(signature = (dtype, shape, name=None, span=0))]
pub fn input(py: Python<'_>, dtype: &str, shape: Vec<PyDim>, name: Option<&str>, span: u32) -> PyResult<Var> {
    guard(py, || Ok(Var(core::Var::input(type_of(dtype_of(dtype)?, &shape), name, Span::from_raw(span)))))
}

/// A constant with a copy of the array's elements.
#[pyfunction]
#[pyo3(signature = (array, span=0))]
pub fn constant(array: &Bound<'_, PyAny>, span: u32) -> PyResult<Var> {
    guard_py(array.py(), || Ok(Var(core::Var::constant(from_numpy(array)?, Span::from_raw(span)))))
}

/// A constant of a Python number, in a dtype that it is taken as. `OverflowError` where an integer does not fit.
#[pyfunction]
pub fn number(value: &Bound<'_, PyAny>, dtype: &str, span: u32) -> PyResult<Var> {
    let py = value.py();
    guard_py(py, || {
        let dtype = dtype_of(dtype).map_err(|e| to_py(py, &e))?;
        Ok(Var(core::Var::constant(of_number(value, dtype)?, Span::from_raw(span))))
    })
}

fn of_number(value: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Array> {
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Array::scalar(truth.is_true()).cast(dtype));
    }
    if dtype.is_float() {
        return Ok(Array::scalar(value.extract::<f64>()?).cast(dtype));
    }
    let wide = match dtype {
        DType::U64 => Array::scalar(value.extract::<u64>()?),
        _ => Array::scalar(value.extract::<i64>()?),
    };
    let number = wide.cast(dtype);
    if number.cast(wide.dtype()) != wide {
        return Err(PyOverflowError::new_err(format!("{value} does not fit into {dtype}")));
    }
    Ok(number)
}

/// The outputs of an op: a name of the op table with its attributes, or a user's op.
#[pyfunction]
#[pyo3(signature = (op, attrs, inputs, span=0))]
pub fn apply(py: Python<'_>, op: &Bound<'_, PyAny>, attrs: &Bound<'_, PyDict>, inputs: Vec<Var>, span: u32) -> PyResult<Vec<Var>> {
    guard_py(py, || {
        let op = match op.cast::<UserOp>() {
            Ok(user) => user.get().op(),
            Err(_) => table_op(op.extract()?, attrs)?,
        };
        let outs = core::Var::apply(op, &unwrap(&inputs), Span::from_raw(span));
        Ok(wrap(&outs.map_err(|e| to_py(py, &e))?))
    })
}

/// A power as NumPy has it: integers take no negative exponents.
#[pyfunction]
#[pyo3(signature = (base, exponent, span=0))]
pub fn power(py: Python<'_>, base: &Var, exponent: &Var, span: u32) -> PyResult<Var> {
    guard(py, || core::power(&base.0, &exponent.0, Span::from_raw(span)).map(Var))
}

fn table_op(name: &str, attrs: &Bound<'_, PyDict>) -> PyResult<Op> {
    let list = attrs.iter().map(|(k, v)| Ok((k.extract()?, attr_from_py(&v)?))).collect::<PyResult<Vec<_>>>()?;
    Op::from_attrs(name, &list).map_err(|e| to_py(attrs.py(), &e))
}

/// Inputs, constants and shared variables that expressions depend on, each once, in the order in which a reader meets
/// them; not looking behind `stop`, whose members count as leaves.
#[pyfunction]
#[pyo3(signature = (vars, stop=vec![]))]
pub fn leaves(vars: Vec<Var>, stop: Vec<Var>) -> Vec<Var> {
    let stop: HashSet<core::Var> = unwrap(&stop).into_iter().collect();
    let mut seen = HashSet::new();
    let mut out = vec![];
    let mut stack: Vec<core::Var> = unwrap(&vars).into_iter().rev().collect();
    while let Some(var) = stack.pop() {
        let node = if stop.contains(&var) { var.key() } else { (var.key().0, usize::MAX) };
        if !seen.insert(node) {
            continue;
        }
        match var.owner().filter(|_| !stop.contains(&var)) {
            Some((_, ins, _)) => stack.extend(ins.iter().rev().cloned()),
            None => out.push(Var(var)),
        }
    }
    out
}
