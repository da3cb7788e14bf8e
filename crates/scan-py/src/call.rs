//! Compiled functions and how one is run.

use crate::array::{copied, descr, from_scalar, lent, plain, read_numpy, to_numpy};
use crate::device::DeviceArray;
use crate::errors::{carry, guard, guard_py, to_py};
use crate::progress::Telling;
use crate::shared::Shared;
use crate::var::{Var, unwrap, unwrap_pairs};
use numpy::PyArrayDescr;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyTuple, PyType};
use scan_core::dispatch;
use scan_core::prelude::{
    self as core, Array, DType, EvalCx, FunctionSpec, Keep, Kind, LARGE_MEMORY, LoopInfo, LoopTimes, PassOptions, Profile, Type,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A compiled function. Calls may come from many threads.
#[pyclass(frozen, module = "rscan._native")]
pub struct Function {
    /// The function of the core.
    pub inner: Arc<core::Function>,
    name: Option<String>,
    /// One per input.
    pub slots: Vec<Slot>,
    /// Types of the outputs.
    pub outputs: Vec<Type>,
    lock: Lock,
    /// Results come to the host.
    pub fetch: bool,
    /// True where shared variables are written.
    updates: bool,
    /// Who is told how far calls have come.
    pub progress: OnceLock<Py<PyAny>>,
}

/// Pass, place, whether something was done, and what or why not.
type Row = (&'static str, String, bool, String);

/// Every pass, in order: its name, Theano's names for it, what it does, and whether it keeps every bit.
#[pyfunction]
pub fn passes() -> Vec<(&'static str, Vec<&'static str>, &'static str, bool)> {
    core::PASSES.iter().map(|p| (p.name, p.theano.to_vec(), p.doc, p.exact == core::Exact::Yes)).collect()
}

/// What an argument has to be.
pub struct Slot {
    /// Its type.
    pub ty: Type,
    /// NumPy's dtype.
    pub descr: Py<PyArrayDescr>,
    /// The class of NumPy's numbers of this dtype.
    number: Py<PyType>,
}

#[pymethods]
impl Function {
    #[new]
    #[pyo3(signature = (inputs, outputs, updates=vec![], givens=vec![], name=None, passes=None, device=None, fetch=true))]
    fn new(
        py: Python<'_>,
        inputs: Vec<Var>,
        outputs: Vec<Var>,
        updates: Vec<(Var, Var)>,
        givens: Vec<(Var, Var)>,
        name: Option<String>,
        passes: Option<(String, Vec<String>)>,
        device: Option<String>,
        fetch: bool,
    ) -> PyResult<Function> {
        let slots = inputs.iter().map(|v| Slot::new(py, v.0.ty().clone())).collect::<PyResult<_>>()?;
        let types = outputs.iter().map(|v| v.0.ty().clone()).collect();
        let (inputs, outputs) = (unwrap(&inputs), unwrap(&outputs));
        let (updates, givens) = (unwrap_pairs(&updates), unwrap_pairs(&givens));
        let writes = !updates.is_empty();
        guard(py, || {
            let passes = passes.map_or_else(|| Ok(PassOptions::full()), |(level, without)| PassOptions::named(&level, &without))?;
            let engine = device.map(|device| core::engine_on(&device)).transpose()?;
            let spec = FunctionSpec { name: name.clone(), inputs, outputs, updates, givens, engine, passes, stays: !fetch };
            let inner = Arc::new(core::Function::new(spec)?);
            let lock = Lock::new(&inner);
            Ok(Function { inner, name, slots, outputs: types, lock, fetch, updates: writes, progress: OnceLock::new() })
        })
    }
    /// Runs with one array per input, each of its input's dtype.
    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, py: Python<'py>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyList>> {
        guard_py(py, || {
            let values = args.iter().map(|a| read_numpy(&a)).collect::<PyResult<Vec<_>>>()?;
            let outs = self.run(py, &values, false, self.accept())?.0;
            PyList::new(py, outs.into_iter().map(|a| to_numpy(py, a)).collect::<PyResult<Vec<_>>>()?)
        })
    }
    /// While calls run, `callback(done, steps, seconds)` is called ten times a second at most: the steps of the outermost loop that runs, and how many
    /// it has (None: it ends by its condition, or no loop runs). Its `close()`, where it has one, is called once a call is over. Said once.
    fn set_progress(&self, callback: Py<PyAny>) -> bool {
        self.progress.set(callback).is_ok()
    }
    /// Positions of inputs on which nothing depends.
    #[getter]
    fn unused_inputs(&self) -> Vec<usize> {
        self.inner.unused_inputs()
    }
    /// The shared variables that it reads.
    #[getter]
    fn shared(&self) -> Vec<Shared> {
        self.inner.shared().iter().zip(self.inner.shared_leaves()).map(|(s, v)| Shared { shared: s.clone(), var: v.clone() }).collect()
    }
    /// What became of its loops, outer ones first: (name, span, depth, states, ahead, behind, variants, compiled), with (name, kind, rows kept or None for
    /// all) per state, (engine, reason, lanes, instructions, block, copies, stored, crossed) per row types of its last calls, and for how many it was compiled.
    fn loops(&self) -> Vec<LoopRow> {
        self.inner.loops().into_iter().map(loop_row).collect()
    }
    /// The device that it runs on, where it is not the processor, and where the parts of its plan run but for its loops: (op, span, device,
    /// why the host, bytes that crossed in the last call).
    /// And the bytes that went to devices in the last call of all parts, and came back.
    fn placed(&self) -> (Option<&'static str>, Vec<PlacedRow>, [u64; 2]) {
        let row = |p: core::Placed| (p.op, p.span.raw(), p.device, p.why, p.crossed);
        (self.inner.device(), self.inner.places().into_iter().map(row).collect(), self.inner.crossed())
    }
    /// How it goes step by step: per sequence its position among the inputs and how many rows come before the first step, and the positions of
    /// the other inputs that a session needs.
    fn stepwise(&self, py: Python<'_>) -> PyResult<(Vec<(usize, usize)>, Vec<usize>)> {
        guard(py, || self.inner.steps().map(|s| (s.streams().to_vec(), s.fixed().collect())))
    }
    /// The graph in text form, as the user wrote it or as it runs.
    #[pyo3(signature = (optimised=false))]
    fn text(&self, py: Python<'_>, optimised: bool) -> PyResult<String> {
        let graph = if optimised { self.inner.optimised() } else { self.inner.graph() };
        guard(py, || Ok(crate::reflect::text(graph, self.name.as_deref().unwrap_or("f"))))
    }
    /// What runs, as text, after calls for the types of the last ones.
    fn plan(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || Ok(self.inner.plan(self.name.as_deref().unwrap_or("f"))))
    }
    /// What the passes did and left: (pass, loop or operation, done, text), and how often their rules were applied: (pass, rule, times).
    fn report(&self) -> (Vec<Row>, Vec<(&'static str, &'static str, usize)>) {
        let report = self.inner.report();
        let rows = report.entries.iter().map(|e| (e.pass, e.place.clone(), e.done, e.text.clone()));
        (rows.collect(), report.fired.iter().map(|((pass, rule), n)| (*pass, *rule, *n)).collect())
    }
}

/// The devices of this machine: (name, what it is, whether it is a program on the processor, what it lacks). They are opened for it.
#[pyfunction]
pub fn devices(py: Python<'_>) -> Vec<(String, String, bool, Vec<String>)> {
    py.detach(|| core::devices().into_iter().map(|d| (d.name, d.about, d.software, d.lacks)).collect())
}

/// What a device computes otherwise than the law, of about `100 · times` random kernels.
#[cfg(feature = "testing")]
#[pyfunction]
pub fn check_device(py: Python<'_>, name: &str, times: u64) -> PyResult<Vec<String>> {
    guard(py, || py.detach(|| scan_core::testing::check_device(name, times)))
}

/// Gives memory that is kept for later results back to the system; the number of bytes.
#[pyfunction]
pub fn release(py: Python<'_>) -> usize {
    py.detach(core::release_memory)
}

/// Name, calls, steps, seconds, and per op its evaluations and seconds.
pub type Times = (Option<String>, u64, u64, f64, Vec<(String, u64, f64)>);

type StateRow = (Option<String>, &'static str, Option<usize>);
type VariantRow = (String, Option<String>, usize, usize, usize, Vec<(String, usize)>, usize, Option<[u64; 2]>, Option<WorkRow>);
type WorkRow = (u64, u64, u64, u64);
type PlacedRow = (String, u32, Option<String>, Option<String>, [u64; 2]);
type LoopRow = (Option<String>, u32, usize, Vec<StateRow>, Vec<String>, Vec<String>, Vec<VariantRow>, usize);

fn work_row(work: core::Work) -> WorkRow {
    (work.operations, work.width, work.calls, work.bytes)
}

/// What one core of this machine does at most in a second: bytes of elements that arithmetic gives, and bytes that are read and written.
#[pyfunction]
pub fn peak(py: Python<'_>) -> (f64, f64) {
    let peak = py.detach(core::peak);
    (peak.width, peak.bytes)
}

fn loop_row(info: LoopInfo) -> LoopRow {
    let kept = |keep| if let Keep::Last(n) = keep { Some(n) } else { None };
    let states = info.states.into_iter().map(|s| (s.name, s.kind, kept(s.keep))).collect();
    let variant =
        |v: core::VariantInfo| (v.engine, v.reason, v.lanes, v.instructions, v.block, v.copies, v.stored, v.crossed, v.work.map(work_row));
    let variants = info.variants.into_iter().map(variant).collect();
    (info.name, info.span.raw(), info.depth, states, info.ahead, info.behind, variants, info.compiled)
}

fn times(row: LoopTimes) -> Times {
    let ops = row.ops.into_iter().map(|(name, (count, spent))| (name, count, spent.as_secs_f64())).collect();
    (row.name, row.calls, row.steps, row.total.as_secs_f64(), ops)
}

/// What a profile gets of a call: the times of its loops, the most bytes of its arrays, and those that crossed to devices and back.
pub type Profiled = (Vec<Times>, usize, [u64; 2]);

fn profiled(profile: Option<Box<Profile>>) -> Profiled {
    profile.map_or_else(Profiled::default, |p| (p.loops.into_iter().map(times).collect(), p.peak, p.crossed))
}

/// Makes memory that a NumPy array can have of what is large and somebody else sees, too: afterwards, when shared variables are written,
/// it would be too late for it to fail.
pub fn own(outs: &mut [Array]) {
    let shared = |out: &&mut Array| out.len() * out.dtype().size() >= LARGE_MEMORY && !out.data().is_ours_alone() && !out.is_away();
    for out in outs.iter_mut().filter(shared) {
        dispatch!(out.dtype(), T => { out.as_mut_slice::<T>(); });
    }
}

impl Function {
    /// The core's function.
    pub fn inner(&self) -> &core::Function {
        &self.inner
    }
}

/// Sees the outputs of a call before shared variables are written.
pub type Accept<'a> = &'a (dyn Fn(&mut [Array]) -> core::Result<()> + Sync);

impl Function {
    /// Without further ado, but that outputs are made the caller's own before shared variables are written.
    pub fn accept(&self) -> Accept<'static> {
        if !self.updates {
            return &|_| Ok(());
        }
        &|outs| {
            own(outs);
            Ok(())
        }
    }

    /// The outputs, and where the time went, per loop, where the caller wants to know. The interpreter lock is free meanwhile,
    /// but for calls that are over before anybody could use it. Ctrl-C stops the call.
    pub fn run(&self, py: Python<'_>, values: &[Array], profile: bool, accept: Accept<'_>) -> PyResult<(Vec<Array>, Profiled)> {
        if let Some(callback) = self.progress.get() {
            return self.run_telling(py, callback, values, profile, accept);
        }
        let (result, profile) = if !profile && self.lock.may_be_kept(values) {
            let poll = || {
                self.lock.missed();
                Python::attach(|py| py.check_signals().map(|()| py.detach(std::thread::yield_now))).map_err(|e| carry(Kind::Interrupted, e))
            };
            self.lock.timed(|| (self.inner.call_if(&mut EvalCx::with_poll(&poll), values, accept), None))
        } else {
            py.detach(|| {
                let poll = || Python::attach(|py| py.check_signals()).map_err(|e| carry(Kind::Interrupted, e));
                self.run_in(EvalCx::with_poll(&poll), values, profile, accept)
            })
        };
        let outs = result.map_err(|e| to_py(py, &e))?;
        Ok((outs, profiled(profile)))
    }

    /// The same, where a callable is told how far the call has come.
    fn run_telling(
        &self,
        py: Python<'_>,
        callback: &Py<PyAny>,
        values: &[Array],
        profile: bool,
        accept: Accept<'_>,
    ) -> PyResult<(Vec<Array>, Profiled)> {
        let (result, profile) = py.detach(|| {
            let telling = Telling::new(callback);
            let poll = || Python::attach(|py| py.check_signals().and_then(|()| telling.tell(py))).map_err(|e| carry(Kind::Interrupted, e));
            let (result, profile) = self.run_in(EvalCx::with_poll(&poll).telling(&telling.walked), values, profile, accept);
            let closed = Python::attach(|py| telling.close(py)).map_err(|e| carry(Kind::Interrupted, e));
            (result.and_then(|outs| closed.map(|()| outs)), profile)
        });
        Ok((result.map_err(|e| to_py(py, &e))?, profiled(profile)))
    }

    fn run_in(
        &self,
        mut cx: EvalCx,
        values: &[Array],
        profile: bool,
        accept: Accept<'_>,
    ) -> (core::Result<Vec<Array>>, Option<Box<Profile>>) {
        cx.profile = profile.then(Default::default);
        let start = Instant::now();
        let result = self.inner.call_if(&mut cx, values, accept);
        let took = start.elapsed();
        self.lock.took(took);
        if let Some(outside) = cx.profile.as_mut().and_then(|p| p.loops.first_mut()) {
            (outside.calls, outside.total) = (1, took);
        }
        (result, cx.profile)
    }
}

/// Whether a call keeps the interpreter lock. Giving it away and getting it back costs a tenth of a tiny call, and more where other
/// threads take it meanwhile; so it is kept where the last call that was timed was brief.
struct Lock {
    /// False where keeping it could hang: another call waits for the lock while this one waits for the call.
    allowed: bool,
    /// Calls until the next one is timed; [`Lock::UNKNOWN`] where the last that was took long.
    left: AtomicU32,
}

impl Lock {
    const UNKNOWN: u32 = u32::MAX;
    /// Every so many calls one is timed.
    const EVERY: u32 = 32;
    /// Calls that take no longer keep the lock.
    const BRIEF: Duration = Duration::from_micros(10);
    /// Arguments have so many elements at most.
    const SMALL: usize = 1 << 12;

    fn new(function: &core::Function) -> Lock {
        Lock { allowed: function.stands_alone(), left: AtomicU32::new(Lock::UNKNOWN) }
    }
    fn may_be_kept(&self, values: &[Array]) -> bool {
        self.allowed && self.left.load(Ordering::Relaxed) != Lock::UNKNOWN && values.iter().all(|v| v.len() <= Lock::SMALL)
    }
    fn missed(&self) {
        self.left.store(Lock::UNKNOWN, Ordering::Relaxed);
    }
    fn took(&self, time: Duration) {
        self.left.store(if time <= Lock::BRIEF { Lock::EVERY } else { Lock::UNKNOWN }, Ordering::Relaxed);
    }
    /// Runs a call that keeps the lock.
    fn timed<T>(&self, call: impl FnOnce() -> T) -> T {
        match self.left.load(Ordering::Relaxed) {
            Lock::UNKNOWN => call(),
            0 => {
                let start = Instant::now();
                let result = call();
                self.took(start.elapsed());
                result
            }
            n => {
                self.left.store(n - 1, Ordering::Relaxed);
                call()
            }
        }
    }
}

impl Slot {
    /// For arguments of a type.
    ///
    /// # Errors
    /// Python's own.
    pub fn new(py: Python<'_>, ty: Type) -> PyResult<Slot> {
        let descr = descr(py, ty.dtype);
        let number = descr.getattr("type")?.cast_into::<PyType>()?.unbind();
        Ok(Slot { ty, descr: descr.unbind(), number })
    }

    /// The argument, where it is an array of the input's type in C order, or a number that its dtype holds; `None` for all that
    /// has to be converted, or to be refused. `strict`: of the input's dtype already.
    pub fn read(&self, value: &Bound<'_, PyAny>, strict: bool) -> Option<Array> {
        let dtype = self.ty.dtype;
        if self.ty.rank() == 0
            && let Some(number) = self.number(value, strict)
        {
            return Some(number);
        }
        if let Ok(there) = value.cast_exact::<DeviceArray>() {
            let array = &there.get().array;
            return self.ty.admits(array.dtype(), array.shape()).then(|| array.clone());
        }
        let plain = plain(value, self.descr.bind(value.py()))?;
        self.ty.admits(dtype, plain.shape).then(|| lent(value, &plain, dtype))
    }

    /// As [`Slot::read`], in memory of our own.
    pub fn copy(&self, value: &Bound<'_, PyAny>) -> Option<Array> {
        let plain = plain(value, self.descr.bind(value.py()))?;
        self.ty.admits(self.ty.dtype, plain.shape).then(|| copied(&plain, self.ty.dtype))
    }

    fn number(&self, value: &Bound<'_, PyAny>, strict: bool) -> Option<Array> {
        let dtype = self.ty.dtype;
        if value.is_exact_instance_of::<PyFloat>() {
            return float(value.extract().ok()?, dtype, strict);
        }
        if value.is_exact_instance_of::<PyInt>() {
            return int(value.extract().ok()?, dtype, strict);
        }
        if value.is_exact_instance_of::<PyBool>() {
            return (dtype == DType::Bool).then(|| value.extract().ok().map(Array::scalar::<bool>)).flatten();
        }
        value.get_type().is(&self.number).then(|| from_scalar(value, dtype))
    }
}

fn float(x: f64, dtype: DType, strict: bool) -> Option<Array> {
    match dtype {
        DType::F64 => Some(Array::scalar(x)),
        DType::F32 if !strict && (x.is_nan() || f64::from(x as f32) == x) => Some(Array::scalar(x as f32)),
        _ => None,
    }
}

fn int(n: i64, dtype: DType, strict: bool) -> Option<Array> {
    match dtype {
        DType::I64 => Some(Array::scalar(n)),
        _ if strict => None,
        DType::F64 => Some(Array::scalar(n as f64)),
        DType::F32 => (n.unsigned_abs() <= 1 << 24).then(|| Array::scalar(n as f32)),
        DType::I8 => i8::try_from(n).ok().map(Array::scalar),
        DType::I16 => i16::try_from(n).ok().map(Array::scalar),
        DType::I32 => i32::try_from(n).ok().map(Array::scalar),
        DType::U8 => u8::try_from(n).ok().map(Array::scalar),
        DType::U16 => u16::try_from(n).ok().map(Array::scalar),
        DType::U32 => u32::try_from(n).ok().map(Array::scalar),
        DType::U64 => u64::try_from(n).ok().map(Array::scalar),
        DType::Bool => None,
    }
}
