//! What users call: a compiled function, some of its arguments fixed, and the form of its results.

use crate::array::{Plain, copy_into, plain, to_numpy};
use crate::call::{Accept, Function};
use crate::device::DeviceArray;
use crate::entry::EntryPoint;
use crate::errors::{guard_py, misuse};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use scan_core::prelude::{Array, Diagnostic, Kind, Type};
use smallvec::SmallVec;
use std::sync::{Mutex, OnceLock};

/// The base of the classes that users call. Arguments that need no conversion are taken here; all other calls go through the
/// method `_call(args, named)`, which converts, or says what is wrong, and comes back with `_run`.
#[pyclass(frozen, subclass, module = "rscan._native")]
pub struct Caller(OnceLock<Parts>);

struct Parts {
    function: Py<Function>,
    form: Form,
    /// Per input, its value where it is fixed.
    fixed: Vec<Option<Array>>,
    /// Per input that is not fixed, its name.
    names: Vec<Option<Py<PyString>>>,
    /// True where `out` is no input's name.
    takes_out: bool,
    /// Per input.
    strict: Vec<bool>,
    profile: Option<Py<PyAny>>,
    /// False where every call goes through `_call`.
    quick: bool,
    /// Its addresses, made where somebody first asks for one.
    entry: OnceLock<Py<EntryPoint>>,
}

/// What a call returns.
pub enum Form {
    /// The one output.
    Single,
    /// All outputs.
    List,
    /// All outputs by key.
    Dict(Vec<Py<PyAny>>),
}

impl Form {
    /// With the keys of a dict, or, without any, a list.
    pub fn of(single: bool, keys: Option<Vec<Py<PyAny>>>) -> Form {
        match keys {
            _ if single => Form::Single,
            None => Form::List,
            Some(keys) => Form::Dict(keys),
        }
    }
    /// The same.
    pub fn copy(&self, py: Python<'_>) -> Form {
        match self {
            Form::Single => Form::Single,
            Form::List => Form::List,
            Form::Dict(keys) => Form::Dict(keys.iter().map(|k| k.clone_ref(py)).collect()),
        }
    }
    /// Outputs as users get them.
    ///
    /// # Errors
    /// Python's own.
    pub fn results<'py>(&self, py: Python<'py>, outs: Vec<Array>, fetch: bool) -> PyResult<Bound<'py, PyAny>> {
        let of = |a| if fetch { to_numpy(py, a) } else { Ok(Bound::new(py, DeviceArray::new(a))?.into_any()) };
        let mut outs = outs.into_iter().map(of);
        match self {
            Form::Single => outs.next().ok_or_else(|| misuse("a function without outputs"))?,
            Form::List => Ok(PyList::new(py, outs.collect::<PyResult<Vec<_>>>()?)?.into_any()),
            Form::Dict(keys) => {
                let dict = PyDict::new(py);
                for (key, out) in keys.iter().zip(outs) {
                    dict.set_item(key, out?)?;
                }
                Ok(dict.into_any())
            }
        }
    }
}

type Values = SmallVec<[Array; 6]>;

/// What the caller gave, in order of the inputs.
pub type Given<'py> = SmallVec<[Bound<'py, PyAny>; 6]>;

#[pymethods]
impl Caller {
    #[new]
    #[pyo3(signature = (*_args, **_named))]
    fn new(_args: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Caller {
        Caller(OnceLock::new())
    }

    /// Says what to call; once. keys: of a dict; None for a list. names: per input that is not fixed. strict: per input, whether
    /// numbers of other dtypes are refused. profile: its method `add` gets the times of each call. fixed: values by position.
    #[pyo3(signature = (function, single, keys, names, strict, profile, quick, fixed=None))]
    fn _install(
        &self,
        function: &Bound<'_, Function>,
        single: bool,
        keys: Option<Vec<Py<PyAny>>>,
        names: Vec<Option<Py<PyString>>>,
        strict: Vec<bool>,
        profile: Option<Py<PyAny>>,
        quick: bool,
        fixed: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let slots = &function.get().slots;
        let mut values = vec![None; slots.len()];
        for (i, value) in fixed.into_iter().flatten() {
            let i: usize = i.extract()?;
            let slot = slots.get(i).ok_or_else(|| misuse("no such input"))?;
            values[i] = Some(
                guard_py(value.py(), || Ok(slot.copy(&value)))?
                    .ok_or_else(|| misuse("a fixed value is a plain array of its input's type"))?,
            );
        }
        let form = Form::of(single, keys);
        if names.len() != values.iter().filter(|v| v.is_none()).count() || strict.len() != slots.len() {
            return Err(misuse("a name per input that is not fixed"));
        }
        let takes_out = !names.iter().flatten().any(|name| name.bind(function.py()) == "out");
        let parts = Parts {
            function: function.clone().unbind(),
            form,
            fixed: values,
            names,
            takes_out,
            strict,
            profile,
            quick,
            entry: OnceLock::new(),
        };
        self.0.set(parts).map_err(|_| misuse("installed twice"))
    }

    /// Its addresses, which live as long as it does.
    fn _entry(&self, py: Python<'_>) -> PyResult<Py<EntryPoint>> {
        let parts = self.0.get().ok_or_else(|| misuse("asked before it was made"))?;
        if let Some(made) = parts.entry.get() {
            return Ok(made.clone_ref(py));
        }
        let made = Py::new(py, EntryPoint::new(py, &parts.function.get().inner, &parts.fixed)?)?;
        Ok(parts.entry.get_or_init(|| made).clone_ref(py))
    }

    /// The outputs for these arguments, given in order or by name.
    #[pyo3(signature = (*args, **named))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let quick = || {
            let Some(parts) = slf.get().0.get().filter(|parts| parts.quick) else { return Ok(None) };
            let Some((given, out)) = parts.placed(args, named) else { return Ok(None) };
            let Some(values) = parts.arguments(py, &given) else { return Ok(None) };
            parts.call(slf, &given, &values, out).map(Some)
        };
        if let Some(results) = guard_py(py, quick)? {
            return Ok(results);
        }
        let named = named.cloned().unwrap_or_else(|| PyDict::new(py));
        slf.call_method1(pyo3::intern!(py, "_call"), (args, named))
    }

    /// Runs with plain arrays of the types of the inputs that are not fixed. `out`: memory for the outputs, in the form of the
    /// results; what does not fit is raised as what the method `_bad_out(position, text)` returns.
    #[pyo3(signature = (args, out=None))]
    fn _run<'py>(slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>, out: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let parts = slf.get().0.get().ok_or_else(|| misuse("called before it was made"))?;
        let given: Given = args.iter().collect();
        guard_py(py, || {
            let values = parts.arguments(py, &given).ok_or_else(|| misuse("arguments are plain arrays of their inputs' types"))?;
            parts.call(slf, &given, &values, out.cloned())
        })
    }
}

impl Caller {
    /// The outputs of a call with these arguments in order; `None` where one has to be converted.
    ///
    /// # Errors
    /// What the call finds.
    pub fn outputs(&self, py: Python<'_>, given: &[Bound<'_, PyAny>]) -> PyResult<Option<Vec<Array>>> {
        let Some(parts) = self.0.get().filter(|parts| parts.quick) else { return Ok(None) };
        let Some(values) = parts.arguments(py, given) else { return Ok(None) };
        parts.run(py, &values, parts.function.get().accept()).map(Some)
    }
    /// Results come to the host.
    pub fn fetches(&self) -> bool {
        self.0.get().is_none_or(|parts| parts.function.get().fetch)
    }
}

/// A given array per output; `None` where a call makes one.
type Targets<'py> = Vec<Option<Bound<'py, PyAny>>>;

impl Parts {
    /// The argument per input that is not fixed, and `out`; `None` where one is missing or too much.
    fn placed<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> Option<(Given<'py>, Option<Bound<'py, PyAny>>)> {
        let mut given: Given = args.iter().collect();
        let Some(named) = named.filter(|n| !n.is_empty()) else { return Some((given, None)) };
        let py = args.py();
        for name in self.names.get(given.len()..)? {
            given.push(named.get_item(name.as_ref()?).ok()??);
        }
        let out = if self.takes_out { named.get_item(pyo3::intern!(py, "out")).ok()? } else { None };
        (given.len() - args.len() + usize::from(out.is_some()) == named.len()).then_some((given, out.filter(|o| !o.is_none())))
    }

    /// Arguments that need no conversion, and the fixed ones.
    fn arguments(&self, py: Python<'_>, given: &[Bound<'_, PyAny>]) -> Option<Values> {
        if given.len() != self.names.len() {
            return None;
        }
        let mut given = given.iter();
        let slots = &self.function.bind(py).get().slots;
        let mut values = Values::new();
        for ((slot, fixed), &strict) in slots.iter().zip(&self.fixed).zip(&self.strict) {
            values.push(match fixed {
                Some(fixed) => fixed.clone(),
                None => slot.read(given.next()?, strict)?,
            });
        }
        Some(values)
    }

    fn call<'py>(
        &self,
        slf: &Bound<'py, Caller>,
        given: &[Bound<'py, PyAny>],
        values: &[Array],
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        match out {
            None => {
                let function = self.function.get();
                self.form.results(py, self.run(py, values, function.accept())?, function.fetch)
            }
            Some(out) => {
                self.run_into(slf, given, values, &self.targets(slf, &out)?)?;
                Ok(out)
            }
        }
    }

    fn run(&self, py: Python<'_>, values: &[Array], accept: Accept<'_>) -> PyResult<Vec<Array>> {
        let (outs, (rows, peak, crossed)) = self.function.bind(py).get().run(py, values, self.profile.is_some(), accept)?;
        if let Some(profile) = &self.profile {
            profile.call_method1(py, "add", (rows, peak, crossed))?;
        }
        Ok(outs)
    }

    /// The array for each output, from what the caller gave in the form of the results.
    fn targets<'py>(&self, slf: &Bound<'py, Caller>, out: &Bound<'py, PyAny>) -> PyResult<Targets<'py>> {
        let n = self.function.get().outputs.len();
        match &self.form {
            Form::Single => Ok(vec![Some(out.clone())]),
            Form::List => match out.cast::<PyList>().map(|l| l.to_tuple()).or_else(|_| out.cast::<PyTuple>().cloned()) {
                Ok(given) if given.len() == n => Ok(given.iter().map(given_array).collect()),
                _ => Err(bad(slf, None, &format!("`out` is a list of {n} arrays, as the function returns"))),
            },
            Form::Dict(keys) => match out.cast::<PyDict>() {
                Ok(given) if given.len() == n => keys
                    .iter()
                    .map(|key| match given.get_item(key)? {
                        Some(array) => Ok(given_array(array)),
                        None => Err(bad(slf, None, &format!("`out` has no key {}", key.bind(slf.py()).repr()?))),
                    })
                    .collect(),
                _ => Err(bad(slf, None, &format!("`out` is a dict of {n} arrays, with the keys that the function returns"))),
            },
        }
    }

    /// Runs and copies the outputs into the targets. Their extents are checked before shared variables are written.
    fn run_into(&self, slf: &Bound<'_, Caller>, args: &[Bound<'_, PyAny>], values: &[Array], targets: &Targets) -> PyResult<()> {
        let py = slf.py();
        let shapes: Vec<Option<Vec<usize>>> =
            self.places(slf, args, targets)?.iter().map(|p| p.as_ref().map(|p| p.shape.to_vec())).collect();
        let misfit: Mutex<Option<(usize, String)>> = Mutex::new(None);
        let accept = |outs: &mut [Array]| {
            let Some(i) = (0..outs.len()).find(|&i| shapes[i].as_deref().is_some_and(|s| s != outs[i].shape())) else { return Ok(()) };
            let text = format!("the output has shape {}, `out` has {}", tuple(outs[i].shape()), tuple(shapes[i].as_deref().unwrap_or(&[])));
            *misfit.lock().unwrap_or_else(|e| e.into_inner()) = Some((i, text));
            Err(Diagnostic::new(Kind::Value, "E0515", "`out` has another shape"))
        };
        let outs = self.run(py, values, &accept).map_err(|e| match misfit.lock().unwrap_or_else(|e| e.into_inner()).take() {
            Some((i, text)) => bad(slf, Some(i), &text),
            None => e,
        })?;
        // Somebody else may have changed the arrays while the interpreter lock was free.
        for (i, (place, array)) in self.places(slf, args, targets)?.iter().zip(&outs).enumerate() {
            let Some(place) = place else { continue };
            if place.shape != array.shape() {
                return Err(bad(slf, Some(i), "`out` was changed during the call"));
            }
            copy_into(place, array);
        }
        Ok(())
    }

    /// Where the targets lie, each fit for its output, and apart from each other and from the arguments.
    fn places<'a>(&self, slf: &Bound<'_, Caller>, args: &[Bound<'_, PyAny>], targets: &'a Targets) -> PyResult<Vec<Option<Plain<'a>>>> {
        let function = self.function.get();
        let slots = function.slots.iter().zip(&self.fixed).filter(|(_, fixed)| fixed.is_none()).map(|(slot, _)| slot);
        let mut taken: Vec<(std::ops::Range<usize>, &str)> = slots
            .zip(args)
            .filter_map(|(slot, arg)| plain(arg, slot.descr.bind(slf.py())).map(|p| (p.range(slot.ty.dtype), "an argument")))
            .collect();
        let mut places = vec![];
        for (i, (target, ty)) in targets.iter().zip(&function.outputs).enumerate() {
            let Some(target) = target else {
                places.push(None);
                continue;
            };
            let place = place(target, ty).map_err(|text| bad(slf, Some(i), &text))?;
            let range = place.range(ty.dtype);
            if let Some((_, other)) = taken.iter().find(|(r, _)| r.start < range.end && range.start < r.end) {
                return Err(bad(slf, Some(i), &format!("`out` lies in the memory of {other}")));
            }
            taken.push((range, "another output"));
            places.push(Some(place));
        }
        Ok(places)
    }
}

fn given_array(array: Bound<'_, PyAny>) -> Option<Bound<'_, PyAny>> {
    (!array.is_none()).then_some(array)
}

/// Where a target lies; what is wrong with it as an error.
fn place<'a>(target: &'a Bound<'_, PyAny>, ty: &Type) -> Result<Plain<'a>, String> {
    let descr = crate::array::descr(target.py(), ty.dtype);
    let wanted = format!("`out` is a writeable array of {} in C order", ty.dtype);
    if crate::array::is_masked(target) {
        return Err(format!("{wanted}; this one has a mask"));
    }
    let place = plain(target, &descr).ok_or_else(|| wanted.clone())?;
    if !place.writeable {
        return Err(format!("{wanted}; this one is read-only"));
    }
    if place.shape.len() != ty.rank() {
        return Err(format!("the output has {} axes, `out` has {}", ty.rank(), place.shape.len()));
    }
    Ok(place)
}

fn tuple(shape: &[usize]) -> String {
    let inner: Vec<String> = shape.iter().map(usize::to_string).collect();
    if inner.len() == 1 { format!("({},)", inner[0]) } else { format!("({})", inner.join(", ")) }
}

/// The error that the Python class makes of a misfit.
fn bad(slf: &Bound<'_, Caller>, output: Option<usize>, text: &str) -> PyErr {
    match slf.call_method1(pyo3::intern!(slf.py(), "_bad_out"), (output, text)) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}
