//! Calls of functions that are compiled anew for each kind of arguments: which of those that were compiled takes these.

use crate::caller::{Caller, Given};
use crate::device::DeviceArray;
use crate::errors::{guard_py, misuse};
use crate::results::Results;
use numpy::npyffi;
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyTypeInfo, PyVisit};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::{Arc, RwLock};

/// The base of the class of functions that `rs.compile` makes. Calls with arguments like those of an earlier call take no Python code; all
/// others go through the method `_general(args, named)`, which says with `_remember` what such calls take from then on.
#[pyclass(frozen, subclass, module = "rscan._native")]
pub struct Dispatcher(RwLock<FxHashMap<Words, SmallVec<[Arc<Entry>; 1]>>>);

/// The kinds of arguments as numbers.
type Words = SmallVec<[u64; 12]>;

/// What calls with arguments of one kind take.
struct Entry {
    /// What is compared besides the numbers: keys of dicts, texts, classes.
    objects: Vec<Py<PyAny>>,
    caller: Py<Caller>,
    results: Py<Results>,
    /// Where the inputs stand among the leaves of the arguments; `None` where they are these in order.
    order: Option<Vec<usize>>,
}

#[pymethods]
impl Dispatcher {
    #[new]
    #[pyo3(signature = (*_args, **_named))]
    fn new(_args: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Dispatcher {
        Dispatcher(RwLock::default())
    }

    /// Calls with such arguments take this function from now on. Without effect where they are of a kind that only `_general` can tell. The
    /// method `_order(args, named)` says per input the number of its leaf; None where the leaves are the inputs in order.
    fn _remember<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        named: &Bound<'py, PyDict>,
        function: &Bound<'py, Caller>,
        results: &Bound<'py, Results>,
    ) -> PyResult<()> {
        let Some(asked) = Asked::of(args, Some(named))? else { return Ok(()) };
        let entry = Entry {
            objects: asked.objects.into_iter().map(Bound::unbind).collect(),
            caller: function.clone().unbind(),
            results: results.clone().unbind(),
            order: slf.call_method1("_order", (args, named))?.extract()?,
        };
        slf.get().0.write().unwrap_or_else(|e| e.into_inner()).entry(asked.words).or_default().push(Arc::new(entry));
        Ok(())
    }

    /// The values for these arguments. Called with variables, the expression itself.
    #[pyo3(signature = (*args, **named))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if let Some(results) = guard_py(py, || slf.get().quick(slf, args, named))? {
            return Ok(results);
        }
        let named = named.cloned().unwrap_or_else(|| PyDict::new(py));
        slf.call_method1(pyo3::intern!(py, "_general"), (args, named))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(table) = self.0.try_read() else { return Ok(()) };
        for entry in table.values().flatten() {
            visit.call(&entry.caller)?;
            visit.call(&entry.results)?;
            entry.objects.iter().try_for_each(|object| visit.call(object))?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let table = std::mem::take(&mut *self.0.write().unwrap_or_else(|e| e.into_inner()));
        drop(table);
    }
}

impl Dispatcher {
    /// The results of a call with arguments of a kind that is known.
    fn quick<'py>(
        &self,
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = slf.py();
        // Functions with static arguments remember none.
        if self.0.read().unwrap_or_else(|e| e.into_inner()).is_empty() {
            return Ok(None);
        }
        let Some(asked) = Asked::of(args, named)? else { return Ok(None) };
        let Some(entry) = self.find(&asked)? else { return Ok(None) };
        let given = entry.inputs(asked.leaves)?;
        let called = entry.call(py, &given);
        let Err(error) = called else { return called.map(Some) };
        if error.is_instance(py, RSCAN_ERROR.import(py, "rscan.errors", "RscanError")?) {
            let named = named.cloned().unwrap_or_else(|| PyDict::new(py));
            slf.call_method1(pyo3::intern!(py, "_advise"), (error.value(py), args, named))?;
        }
        Err(error)
    }

    fn find(&self, asked: &Asked<'_>) -> PyResult<Option<Arc<Entry>>> {
        // Comparing may run Python code: not while the table is locked.
        let alike = self.0.read().unwrap_or_else(|e| e.into_inner()).get(&asked.words).cloned().unwrap_or_default();
        for entry in alike {
            if entry.takes(&asked.objects)? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}

impl Entry {
    fn takes(&self, objects: &[Bound<'_, PyAny>]) -> PyResult<bool> {
        for (mine, theirs) in self.objects.iter().zip(objects) {
            if !(theirs.is(mine) || theirs.eq(mine)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn inputs<'py>(&self, leaves: Given<'py>) -> PyResult<Given<'py>> {
        let Some(order) = &self.order else { return Ok(leaves) };
        order.iter().map(|at| leaves.get(*at).cloned().ok_or_else(|| misuse("no such leaf"))).collect()
    }

    fn call<'py>(&self, py: Python<'py>, given: &[Bound<'py, PyAny>]) -> PyResult<Bound<'py, PyAny>> {
        let (caller, results) = (self.caller.get(), self.results.get());
        if let Some(outs) = caller.outputs(py, given)? {
            return results.of(py, outs, caller.fetches());
        }
        let array = ARRAY.import(py, "rscan.compile", "_array")?;
        let arrays = given.iter().map(|value| array.call1((value, "?"))).collect::<PyResult<Vec<_>>>()?;
        let outs = self.caller.bind(py).call1(PyTuple::new(py, arrays)?)?;
        results.build(&outs, true)
    }
}

/// The kinds of a call's arguments, and their leaves.
struct Asked<'py> {
    words: Words,
    objects: SmallVec<[Bound<'py, PyAny>; 4]>,
    leaves: Given<'py>,
}

static RSCAN_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static CONFIG: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static FIELDS_OF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Whether a number of this class of NumPy's is a leaf whose class alone tells its kind; which of them it is.
fn number(class: &Bound<'_, PyType>) -> PyResult<Option<usize>> {
    static CLASSES: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
    let py = class.py();
    let found = CLASSES.get_or_try_init(py, || {
        let numpy = py.import("numpy")?;
        ["float64", "float32", "int64"].into_iter().map(|name| numpy.getattr(name).map(Bound::unbind)).collect::<PyResult<_>>()
    })?;
    Ok(found.iter().position(|number| class.is(number)))
}

/// Whether a list that begins so holds leaves, and is no array written as a list of numbers.
fn is_part(first: &Bound<'_, PyAny>) -> bool {
    first.get_type().is(PyUntypedArray::type_object(first.py()))
        || first.is_exact_instance_of::<PyDict>()
        || first.is_exact_instance_of::<PyTuple>()
}

/// What a value is, in the lowest bits of its first number; what else tells its kind stands above.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Tag {
    Array,
    Device,
    Float,
    Int,
    Bool,
    Number,
    Dict,
    Tuple,
    List,
    Text,
    None,
    Fields,
    Named,
}

/// Structures are looked into so deep.
const DEPTH: usize = 64;

impl<'py> Asked<'py> {
    /// `None` where only Python code can tell the kind.
    fn of(args: &Bound<'py, PyTuple>, named: Option<&Bound<'py, PyDict>>) -> PyResult<Option<Asked<'py>>> {
        let py = args.py();
        let mut asked = Asked { words: Words::new(), objects: SmallVec::new(), leaves: Given::new() };
        let float = CONFIG.import(py, "rscan.config", "config")?.getattr(pyo3::intern!(py, "floatX"))?;
        asked.object(float)?;
        for value in args.iter_borrowed() {
            if !asked.value(&value, 0)? {
                return Ok(None);
            }
        }
        match named.filter(|named| !named.is_empty()) {
            Some(named) if !asked.items(Tag::Named, named, 0)? => Ok(None),
            _ => Ok(Some(asked)),
        }
    }

    /// False where only Python code can tell its kind.
    fn value(&mut self, value: &Bound<'py, PyAny>, depth: usize) -> PyResult<bool> {
        let class = value.get_type();
        if class.is(PyUntypedArray::type_object(value.py())) {
            self.array(value);
        } else if value.is_exact_instance_of::<PyFloat>() {
            self.leaf(Tag::Float, value);
        } else if value.is_exact_instance_of::<PyInt>() {
            self.leaf(Tag::Int, value);
        } else if value.is_exact_instance_of::<PyBool>() {
            self.leaf(Tag::Bool, value);
        } else if let Ok(array) = value.cast_exact::<DeviceArray>() {
            let array = &array.get().array;
            self.leaf(Tag::Device, value);
            self.words.push(array.dtype() as u64 | (array.shape().len() as u64) << 8);
        } else if depth == DEPTH {
            return Ok(false);
        } else if let Ok(dict) = value.cast_exact::<PyDict>() {
            return self.items(Tag::Dict, dict, depth);
        } else if let Ok(items) = value.cast_exact::<PyTuple>() {
            return self.all(Tag::Tuple, items.iter(), depth);
        } else if let Ok(items) = value.cast_exact::<PyList>() {
            return Ok(items.get_item(0).is_ok_and(|first| is_part(&first)) && self.all(Tag::List, items.iter(), depth)?);
        } else if value.is_exact_instance_of::<PyString>() {
            self.tag(Tag::Text, 0);
            self.object(value.clone())?;
        } else if value.is_none() {
            self.tag(Tag::None, 0);
        } else {
            return self.other(value, &class, depth);
        }
        Ok(true)
    }

    fn tag(&mut self, tag: Tag, more: u64) {
        self.words.push(tag as u64 | more << 8);
    }

    fn leaf(&mut self, tag: Tag, value: &Bound<'py, PyAny>) {
        self.tag(tag, 0);
        self.leaves.push(value.clone());
    }

    fn array(&mut self, value: &Bound<'py, PyAny>) {
        // SAFETY: the caller has seen an array; its fields stay as they are while the interpreter lock is held.
        let (rank, number) = unsafe {
            let array = value.cast_unchecked::<PyUntypedArray>();
            ((*npyffi::_PyArray_GET_ITEM_DATA(array.as_array_ptr())).nd, array.dtype().num())
        };
        self.words.push(Tag::Array as u64 | u64::from(rank.unsigned_abs()) << 8 | u64::from(number.unsigned_abs()) << 32);
        self.leaves.push(value.clone());
    }

    /// What is compared by Python's `==`.
    fn object(&mut self, value: Bound<'py, PyAny>) -> PyResult<()> {
        self.words.push(value.hash()? as u64);
        self.objects.push(value);
        Ok(())
    }

    fn items(&mut self, tag: Tag, dict: &Bound<'py, PyDict>, depth: usize) -> PyResult<bool> {
        self.tag(tag, dict.len() as u64);
        // All at once: a hash of a key may be Python code that changes the dict.
        let items: SmallVec<[(Bound<'py, PyAny>, Bound<'py, PyAny>); 8]> = dict.iter().collect();
        for (key, value) in items {
            self.object(key)?;
            if !self.value(&value, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn all(&mut self, tag: Tag, items: impl ExactSizeIterator<Item = Bound<'py, PyAny>>, depth: usize) -> PyResult<bool> {
        self.tag(tag, items.len() as u64);
        for item in items {
            if !self.value(&item, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A number of NumPy's, a dataclass or a named tuple.
    fn other(&mut self, value: &Bound<'py, PyAny>, class: &Bound<'py, PyType>, depth: usize) -> PyResult<bool> {
        let py = value.py();
        if let Some(which) = number(class)? {
            self.tag(Tag::Number, which as u64);
            self.leaves.push(value.clone());
            return Ok(true);
        }
        let known = FIELDS_OF.import(py, "rscan._quick", "fields_of")?.call1((class,))?;
        if known.is_none() {
            return Ok(false);
        }
        let names = known.cast_into::<PyTuple>()?;
        self.tag(Tag::Fields, names.len() as u64);
        self.object(class.clone().into_any())?;
        for name in names.iter_borrowed() {
            let field = value.getattr(name.cast::<PyString>()?)?;
            if !self.value(&field, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
