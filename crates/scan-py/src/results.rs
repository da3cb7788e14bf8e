//! Results of calls in the structure that a function returns: dicts, lists, tuples, dataclasses in each other.

use crate::array::{to_number, to_numpy};
use crate::device::DeviceArray;
use crate::errors::{guard_py, misuse};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use scan_core::prelude::Array;

/// How results are put together.
#[pyclass(frozen, module = "rscan._native")]
pub struct Results {
    root: Node,
    /// What it was made of, for pickles.
    source: (Py<PyAny>, Py<PyDict>),
}

/// A part of the structure.
enum Node {
    /// The next value.
    Leaf,
    /// What is no value: a text, or None.
    Kept(Py<PyAny>),
    Dict(Vec<(Py<PyAny>, Node)>),
    List(Vec<Node>),
    Tuple(Vec<Node>),
    /// What a callable makes of the list of its parts.
    Made(Py<PyAny>, Vec<Node>),
}

#[pymethods]
impl Results {
    /// tree: an `rscan._tree.Tree`. kept: by their numbers among the leaves, those that are no values.
    #[new]
    fn new(tree: &Bound<'_, PyAny>, kept: &Bound<'_, PyDict>) -> PyResult<Results> {
        Ok(Results { root: Node::of(tree, kept, &mut 0)?, source: (tree.clone().unbind(), kept.clone().unbind()) })
    }
    /// The structure with these values. numbers: arrays without axes come as NumPy's numbers.
    #[pyo3(signature = (values, numbers=false))]
    pub fn build<'py>(&self, values: &Bound<'py, PyAny>, numbers: bool) -> PyResult<Bound<'py, PyAny>> {
        let of = |value: PyResult<Bound<'py, PyAny>>| if numbers { as_number(value?) } else { value };
        guard_py(values.py(), || self.root.build(values.py(), &mut values.try_iter()?.map(of)))
    }
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Py<PyAny>, Py<PyDict>)) {
        let (tree, kept) = &slf.get().source;
        (slf.get_type(), (tree.clone_ref(slf.py()), kept.clone_ref(slf.py())))
    }
}

impl Results {
    /// The outputs of a call, those without axes as numbers; as arrays on their device where nobody fetches them.
    ///
    /// # Errors
    /// Python's own.
    pub fn of<'py>(&self, py: Python<'py>, outs: Vec<Array>, fetch: bool) -> PyResult<Bound<'py, PyAny>> {
        let of = |out: Array| match (fetch, out.shape()) {
            (false, _) => Ok(Bound::new(py, DeviceArray::new(out))?.into_any()),
            (true, []) => to_number(py, &out),
            (true, _) => to_numpy(py, out),
        };
        self.root.build(py, &mut outs.into_iter().map(of))
    }
}

impl Node {
    /// leaves: how many came before.
    fn of(tree: &Bound<'_, PyAny>, kept: &Bound<'_, PyDict>, leaves: &mut usize) -> PyResult<Node> {
        let kind: Option<String> = tree.getattr("kind")?.extract()?;
        let Some(kind) = kind else {
            *leaves += 1;
            return Ok(kept.get_item(*leaves - 1)?.map_or(Node::Leaf, |value| Node::Kept(value.unbind())));
        };
        let children = tree.getattr("children")?.try_iter()?;
        let parts = children.map(|child| Node::of(&child?, kept, leaves)).collect::<PyResult<Vec<_>>>()?;
        let class = tree.getattr("cls")?;
        Ok(match kind.as_str() {
            "dict" => Node::Dict(tree.getattr("keys")?.extract::<Vec<Py<PyAny>>>()?.into_iter().zip(parts).collect()),
            "list" if class.is(tree.py().get_type::<PyList>()) => Node::List(parts),
            "list" if class.is(tree.py().get_type::<PyTuple>()) => Node::Tuple(parts),
            _ => Node::Made(tree.getattr("assemble")?.unbind(), parts),
        })
    }

    fn build<'py>(&self, py: Python<'py>, values: &mut dyn Iterator<Item = PyResult<Bound<'py, PyAny>>>) -> PyResult<Bound<'py, PyAny>> {
        let mut all = |parts: &[Node]| parts.iter().map(|part| part.build(py, values)).collect::<PyResult<Vec<_>>>();
        Ok(match self {
            Node::Leaf => values.next().ok_or_else(|| misuse("a value per leaf"))??,
            Node::Kept(value) => value.bind(py).clone(),
            Node::List(parts) => PyList::new(py, all(parts)?)?.into_any(),
            Node::Tuple(parts) => PyTuple::new(py, all(parts)?)?.into_any(),
            Node::Made(assemble, parts) => assemble.bind(py).call1((PyList::new(py, all(parts)?)?,))?,
            Node::Dict(parts) => {
                let dict = PyDict::new(py);
                for (key, part) in parts {
                    dict.set_item(key, part.build(py, values)?)?;
                }
                dict.into_any()
            }
        })
    }
}

/// An array without axes as a number of NumPy's; anything else as it is.
fn as_number(value: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    match value.cast_exact::<PyUntypedArray>() {
        Ok(array) if array.ndim() == 0 => value.get_item(PyTuple::empty(value.py())),
        _ => Ok(value),
    }
}
