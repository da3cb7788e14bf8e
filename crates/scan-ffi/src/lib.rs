//! rscan for C: `include/rscan.h` says what each function does. No panic leaves this library.

mod arrays;

use arrays::{CArray, CBuffer, Lent, array, arrays, listed, seen};
use scan_core::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

/// A module with its names as C has texts.
pub struct Held {
    module: Module,
    names: Vec<CString>,
    /// Functions that were asked for their address.
    entries: Mutex<HashMap<String, EntryPoint>>,
}

/// A session; steps of several threads follow each other.
pub struct Open(Mutex<Session>);

/// What a call gave.
pub struct Results(Vec<Array>);

thread_local! {
    static ERROR: RefCell<(CString, CString)> = RefCell::default();
    static TEXT: RefCell<CString> = RefCell::default();
}

/// A text without what would end it too early.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Runs an entry point: errors and panics are noted, and give `otherwise`.
fn guard<T>(otherwise: T, body: impl FnOnce() -> Result<T>) -> T {
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return value,
        Ok(Err(error)) => error,
        Err(payload) => memory::of_panic(&*payload),
    };
    ERROR.with(|e| *e.borrow_mut() = (c_text(&error.to_string()), c_text(error.code)));
    otherwise
}

/// The error of a caller who is mistaken.
fn misuse<T>(what: &str) -> Result<T> {
    Err(Diagnostic::new(Kind::Value, "E0504", what))
}

/// # Safety
/// `text` is null or a text that ends with a zero.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str> {
    if text.is_null() {
        return misuse("a name is NULL");
    }
    // SAFETY: by contract.
    unsafe { CStr::from_ptr(text) }.to_str().or_else(|_| misuse("a name is no UTF-8"))
}

/// # Safety
/// `path` is null or a text that ends with a zero.
unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path> {
    #[cfg(unix)]
    if !path.is_null() {
        use std::os::unix::ffi::OsStrExt;
        // SAFETY: by contract.
        return Ok(Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes())));
    }
    // SAFETY: by contract.
    Ok(Path::new(OsStr::new(unsafe { text(path)? })))
}

/// # Safety
/// `module` is null or was given by `rscan_load`, and not yet freed.
unsafe fn held<'a>(module: *const Held) -> Result<&'a Held> {
    // SAFETY: by contract.
    unsafe { module.as_ref() }.map_or_else(|| misuse("the module is NULL"), Ok)
}

fn boxed(module: Result<Module>) -> Result<*mut Held> {
    let module = module?;
    let names = module.names().map(c_text).collect();
    Ok(Box::into_raw(Box::new(Held { module, names, entries: Mutex::default() })))
}

/// # Safety
/// `file` is null or a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_load(file: *const c_char) -> *mut Held {
    // SAFETY: by contract, here and below.
    guard(null_mut(), || boxed(Module::load(unsafe { path(file)? })))
}

/// # Safety
/// `length` bytes lie at `bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_load_bytes(bytes: *const c_void, length: usize) -> *mut Held {
    guard(null_mut(), || {
        let bytes = if length == 0 || bytes.is_null() { &[][..] } else { unsafe { std::slice::from_raw_parts(bytes.cast(), length) } };
        boxed(Module::from_bytes(bytes))
    })
}

/// # Safety
/// A module that is not freed, and a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_save(module: *const Held, file: *const c_char) -> c_int {
    guard(-1, || unsafe { held(module)? }.module.save(unsafe { path(file)? }).map(|()| 0))
}

/// # Safety
/// A module that is not freed and is used nowhere else, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_free(module: *mut Held) {
    if !module.is_null() {
        guard((), || {
            drop(unsafe { Box::from_raw(module) });
            Ok(())
        });
    }
}

/// # Safety
/// A module that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_functions(module: *const Held) -> usize {
    guard(0, || Ok(unsafe { held(module)? }.names.len()))
}

/// # Safety
/// A module that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_function_name(module: *const Held, i: usize) -> *const c_char {
    guard(null(), || match unsafe { held(module)? }.names.get(i) {
        Some(name) => Ok(name.as_ptr()),
        None => misuse("there is no function of this number"),
    })
}

/// # Safety
/// A module that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_describe(module: *const Held) -> *const c_char {
    guard(null(), || Ok(kept(&unsafe { held(module)? }.module.describe())))
}

/// A text that this thread keeps until its next one.
fn kept(text: &str) -> *const c_char {
    TEXT.with(|t| {
        *t.borrow_mut() = c_text(text);
        t.borrow().as_ptr()
    })
}

/// # Safety
/// A module that is not freed, a text that ends with a zero, and `n` arrays whose memory is as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_call(module: *const Held, function: *const c_char, arguments: *const CArray, n: usize) -> *mut Results {
    guard(null_mut(), || {
        let arrays = unsafe { arrays(arguments, n)? };
        let results = unsafe { held(module)? }.module.call(unsafe { text(function)? }, &arrays)?;
        Ok(Box::into_raw(Box::new(Results(results))))
    })
}

/// # Safety
/// A module that is not freed, a text that ends with a zero, `n` arrays and `m` buffers whose memory is as they say, and that nobody else
/// writes to meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_call_into(
    module: *const Held,
    function: *const c_char,
    arguments: *const CArray,
    n: usize,
    results: *const CBuffer,
    m: usize,
) -> c_int {
    guard(-1, || {
        let (module, name) = unsafe { (held(module)?, text(function)?) };
        let lent = unsafe { Lent::new(listed(arguments, n), listed(results, m))? };
        lent.run(|args, outs| module.module.call_into(name, args, outs)).map(|()| 0)
    })
}

/// # Safety
/// A module that is not freed, and a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_signature(module: *const Held, function: *const c_char) -> *const c_char {
    guard(null(), || Ok(kept(unsafe { held(module)? }.module.signature_json(unsafe { text(function)? })?.as_str())))
}

/// What `look` sees of the entry of a function, which is made where there is none yet.
///
/// # Safety
/// A module that is not freed, and a text that ends with a zero.
unsafe fn entry<T>(module: *const Held, function: *const c_char, look: impl FnOnce(&EntryPoint) -> Result<T>) -> Result<T> {
    // SAFETY: by contract.
    let (held, name) = unsafe { (held(module)?, text(function)?) };
    let mut entries = held.entries.lock().unwrap_or_else(PoisonError::into_inner);
    if !entries.contains_key(name) {
        entries.insert(name.to_string(), held.module.entry_point(name)?);
    }
    look(&entries[name])
}

/// # Safety
/// A module that is not freed, and a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_address(module: *const Held, function: *const c_char) -> Option<unsafe extern "C" fn()> {
    guard(None, || {
        let address = unsafe { entry(module, function, EntryPoint::address)? };
        // SAFETY: code begins there; the caller gives it the type that the signature says before it is called.
        Ok(Some(unsafe { std::mem::transmute::<*const c_void, unsafe extern "C" fn()>(std::ptr::with_exposed_provenance(address)) }))
    })
}

/// # Safety
/// A module that is not freed, and a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_address_error(module: *const Held, function: *const c_char) -> *const c_char {
    guard(null(), || {
        let error = unsafe { entry(module, function, |entry| Ok(entry.last_error()))? };
        Ok(error.map_or(null(), |e| kept(&e.to_string())))
    })
}

/// # Safety
/// Results that are not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_results_length(results: *const Results) -> usize {
    unsafe { results.as_ref() }.map_or(0, |r| r.0.len())
}

/// # Safety
/// Results that are not freed, and a place for an array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_result(results: *const Results, i: usize, to: *mut CArray) -> c_int {
    guard(-1, || {
        let found = unsafe { results.as_ref() }.and_then(|r| r.0.get(i));
        match (found, to.is_null()) {
            (Some(array), false) => {
                unsafe { to.write(seen(array)) };
                Ok(0)
            }
            _ => misuse("there is no result of this number, or no place for it"),
        }
    })
}

/// # Safety
/// Results that are not freed and are used nowhere else, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_results_free(results: *mut Results) {
    if !results.is_null() {
        guard((), || {
            drop(unsafe { Box::from_raw(results) });
            Ok(())
        });
    }
}

/// # Safety
/// A module that is not freed, and a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_get(module: *const Held, name: *const c_char) -> *mut Results {
    guard(null_mut(), || {
        let value = unsafe { held(module)? }.module.get(unsafe { text(name)? })?;
        Ok(Box::into_raw(Box::new(Results(vec![value]))))
    })
}

/// # Safety
/// A module that is not freed, a text that ends with a zero, and an array whose memory is as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_set(module: *const Held, name: *const c_char, value: *const CArray) -> c_int {
    guard(-1, || {
        let Some(value) = (unsafe { value.as_ref() }) else { return misuse("the value is NULL") };
        unsafe { held(module)? }.module.set(unsafe { text(name)? }, unsafe { array(value)? }).map(|()| 0)
    })
}

/// What `run` makes of a session.
///
/// # Safety
/// `session` is null or was given by `rscan_session_open`, and not yet closed.
unsafe fn within<T>(session: *const Open, run: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
    // SAFETY: by contract.
    let Some(open) = (unsafe { session.as_ref() }) else { return misuse("the session is NULL") };
    run(&mut open.0.lock().unwrap_or_else(PoisonError::into_inner))
}

/// # Safety
/// A module that is not freed, texts that end with a zero, and `n` names and arrays whose memory is as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_session_open(
    module: *const Held,
    function: *const c_char,
    names: *const *const c_char,
    arguments: *const CArray,
    n: usize,
) -> *mut Open {
    guard(null_mut(), || {
        if n > 0 && (names.is_null() || arguments.is_null()) {
            return misuse("the arguments are NULL");
        }
        let given = (0..n).map(|i| Ok((unsafe { text(*names.add(i))? }, unsafe { array(&*arguments.add(i))? })));
        let given = given.collect::<Result<Vec<_>>>()?;
        let session = unsafe { held(module)? }.module.session(&mut EvalCx::new(), unsafe { text(function)? }, &given)?;
        Ok(Box::into_raw(Box::new(Open(Mutex::new(session)))))
    })
}

/// # Safety
/// A session that is not closed, and `n` arrays whose memory is as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_session_step(session: *const Open, rows: *const CArray, n: usize) -> *mut Results {
    guard(null_mut(), || {
        let arrays = unsafe { arrays(rows, n)? };
        let results = unsafe { within(session, |s| s.step(&mut EvalCx::new(), &arrays))? };
        Ok(Box::into_raw(Box::new(Results(results))))
    })
}

/// # Safety
/// As of [`rscan_call_into`], of a session that is not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_session_step_into(
    session: *const Open,
    rows: *const CArray,
    n: usize,
    results: *const CBuffer,
    m: usize,
) -> c_int {
    guard(-1, || {
        let lent = unsafe { Lent::new(listed(rows, n), listed(results, m))? };
        let step = |rows: &[View], outs: &mut [ViewMut]| {
            let rows: Vec<StepRow> = rows.iter().map(View::elements).collect();
            let mut outs: Vec<StepRowMut> = outs.iter_mut().map(ViewMut::elements_mut).collect();
            unsafe { within(session, |s| s.step_into(&mut EvalCx::new(), &rows, &mut outs)) }
        };
        lent.run(step).map(|()| 0)
    })
}

/// # Safety
/// A session that is not closed, and `n` arrays whose memory is as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_session_run(session: *const Open, steps: usize, rows: *const CArray, n: usize) -> *mut Results {
    guard(null_mut(), || {
        let arrays = unsafe { arrays(rows, n)? };
        let results = unsafe { within(session, |s| s.run(&mut EvalCx::new(), steps, &arrays))? };
        Ok(Box::into_raw(Box::new(Results(results))))
    })
}

/// # Safety
/// A module that is not freed, a text that ends with a zero, and a session that is not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_session_commit(module: *const Held, function: *const c_char, session: *const Open) -> c_int {
    guard(-1, || {
        let function = unsafe { held(module)? }.module.function(unsafe { text(function)? })?;
        unsafe { within(session, |s| function.commit(s)) }.map(|()| 0)
    })
}

/// # Safety
/// A session that is not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_session_length(session: *const Open) -> usize {
    guard(0, || unsafe { within(session, |s| Ok(s.len())) })
}

/// # Safety
/// A session that is not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_session_stopped(session: *const Open) -> c_int {
    guard(-1, || unsafe { within(session, |s| Ok(c_int::from(s.stopped()))) })
}

/// # Safety
/// A session that is not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_session_snapshot(session: *const Open) -> *mut Results {
    guard(null_mut(), || {
        let bytes = unsafe { within(session, |s| s.snapshot())? };
        Ok(Box::into_raw(Box::new(Results(vec![Array::new(&[bytes.len()], bytes)]))))
    })
}

/// # Safety
/// A session that is not closed, and `length` bytes at `bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_session_restore(session: *const Open, bytes: *const c_void, length: usize) -> c_int {
    guard(-1, || {
        let bytes = if length == 0 || bytes.is_null() { &[][..] } else { unsafe { std::slice::from_raw_parts(bytes.cast(), length) } };
        unsafe { within(session, |s| s.restore(bytes)) }.map(|()| 0)
    })
}

/// # Safety
/// A session that is not closed and is used nowhere else, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rscan_session_close(session: *mut Open) {
    if !session.is_null() {
        guard((), || {
            drop(unsafe { Box::from_raw(session) });
            Ok(())
        });
    }
}

/// The text of this thread's last error.
#[unsafe(no_mangle)]
pub extern "C" fn rscan_last_error() -> *const c_char {
    ERROR.with(|e| e.borrow().0.as_ptr())
}

/// The code of this thread's last error.
#[unsafe(no_mangle)]
pub extern "C" fn rscan_last_error_code() -> *const c_char {
    ERROR.with(|e| e.borrow().1.as_ptr())
}
