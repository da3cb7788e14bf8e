//! The driver of NVIDIA cards: `libcuda.so.1`, or `nvcuda.dll`, loaded when it is first asked for.

#[cfg(test)]
mod tests;

use super::driver::{Answer, Call, Card, Driver, Fault, Graph};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

/// Where the library is looked for.
const NAMES: &[&str] = if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] };
/// Numbers of attributes: the compute capability, and how many multiprocessors there are.
const CAPABILITY: [c_int; 2] = [75, 76];
const PROCESSORS: c_int = 16;
/// Bytes that the memory of a block may have, and the attribute of a function that says how many it may be told.
const SHARED: c_int = 97;
const TOLD: c_int = 8;
/// A stream that does not wait for the one that all share.
const NON_BLOCKING: c_uint = 1;
/// Numbers of options: where the compiler writes what it refuses, and how much fits there.
const LOG: [c_int; 2] = [5, 6];
const LOG_BYTES: usize = 1 << 12;

/// A number, which stands for an object of the driver.
type Handle = *mut c_void;

/// A launch in a graph, as the interface lays it out.
#[repr(C)]
struct Node {
    function: Handle,
    blocks: [c_uint; 3],
    threads: [c_uint; 3],
    shared: c_uint,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
}

macro_rules! functions {
    ($($name:ident $symbol:ident ($($arg:ty),*);)+) => {
        /// The functions of the library that are used. Each gives the number of a result, 0 where all is well.
        #[derive(Clone, Copy)]
        pub(super) struct Functions { $($name: unsafe extern "system" fn($($arg),*) -> u32),+ }

        impl Functions {
            /// # Safety
            /// The library is that of CUDA.
            unsafe fn of(library: &Library) -> Result<Functions, String> {
                $(
                    let name = concat!(stringify!($symbol), "\0");
                    // SAFETY: the type is that of the function in the interface of CUDA 11.4 and later.
                    let found = unsafe { library.get::<unsafe extern "system" fn($($arg),*) -> u32>(name.as_bytes()) };
                    let $name = *found.map_err(|_| format!("the driver of CUDA is too old: it has no {}", stringify!($symbol)))?;
                )+
                Ok(Functions { $($name),+ })
            }
        }
    };
}

functions! {
    init cuInit(c_uint);
    version cuDriverGetVersion(*mut c_int);
    count cuDeviceGetCount(*mut c_int);
    device cuDeviceGet(*mut c_int, c_int);
    name cuDeviceGetName(*mut c_char, c_int, c_int);
    memory cuDeviceTotalMem_v2(*mut usize, c_int);
    attribute cuDeviceGetAttribute(*mut c_int, c_int, c_int);
    retain cuDevicePrimaryCtxRetain(*mut Handle, c_int);
    enter cuCtxSetCurrent(Handle);
    load cuModuleLoadDataEx(*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    unload cuModuleUnload(Handle);
    function cuModuleGetFunction(*mut Handle, Handle, *const c_char);
    allocate cuMemAlloc_v2(*mut u64, usize);
    free cuMemFree_v2(u64);
    stream cuStreamCreate(*mut Handle, c_uint);
    close cuStreamDestroy_v2(Handle);
    write cuMemcpyHtoDAsync_v2(u64, *const c_void, usize, Handle);
    read cuMemcpyDtoHAsync_v2(*mut c_void, u64, usize, Handle);
    copy cuMemcpyDtoDAsync_v2(u64, u64, usize, Handle);
    launch cuLaunchKernel(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void);
    together cuLaunchCooperativeKernel(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void);
    share cuFuncSetAttribute(Handle, c_int, c_int);
    resident cuOccupancyMaxActiveBlocksPerMultiprocessor(*mut c_int, Handle, c_int, usize);
    wait cuStreamSynchronize(Handle);
    graph cuGraphCreate(*mut Handle, c_uint);
    add cuGraphAddKernelNode(*mut Handle, Handle, *const Handle, usize, *const Node);
    instantiate cuGraphInstantiateWithFlags(*mut Handle, Handle, u64);
    set cuGraphExecKernelNodeSetParams(Handle, Handle, *const Node);
    replay cuGraphLaunch(Handle, Handle);
    forget cuGraphDestroy(Handle);
    forget_executable cuGraphExecDestroy(Handle);
    error_name cuGetErrorName(u32, *mut *const c_char);
    error_text cuGetErrorString(u32, *mut *const c_char);
}

/// The driver of this machine.
pub(super) struct Real {
    functions: Functions,
}

/// Loads the library, and has it begin.
///
/// # Errors
/// Why there is none.
pub(super) fn load() -> Result<Box<dyn Driver>, String> {
    // SAFETY: the library of the driver; what it runs when it is loaded is the vendor's.
    let found = NAMES.iter().find_map(|name| unsafe { Library::new(name) }.ok());
    let library = found.ok_or_else(|| format!("{} was not found: no driver of NVIDIA is installed", NAMES[0]))?;
    // SAFETY: it has the name of that library.
    let functions = unsafe { Functions::of(&library) }?;
    // Its threads and handlers run until the process ends.
    std::mem::forget(library);
    Real::of(functions).map(|driver| Box::new(driver) as Box<dyn Driver>)
}

/// Handles are numbers outside of this file.
fn handle(number: usize) -> Handle {
    number as Handle
}

/// The parameters of a launch as the interface wants them: where each value stands.
fn params(call: &Call) -> [*mut c_void; 2] {
    [&raw const call.heap as *mut c_void, call.params.as_ptr() as *mut c_void]
}

fn node(call: &Call, params: &mut [*mut c_void; 2]) -> Node {
    Node {
        function: handle(call.function),
        blocks: [call.blocks, 1, 1],
        threads: [call.threads, 1, 1],
        shared: call.shared,
        params: params.as_mut_ptr(),
        extra: null_mut(),
    }
}

impl Real {
    /// A driver of these functions, which begins.
    ///
    /// # Errors
    /// What it says.
    pub(super) fn of(functions: Functions) -> Result<Real, String> {
        let driver = Real { functions };
        // SAFETY: it takes a number.
        let begun = driver.told(unsafe { (functions.init)(0) });
        begun.map(|()| driver).map_err(|fault| format!("the driver of CUDA says: {fault}"))
    }

    /// The fault of a result.
    fn told(&self, code: u32) -> Answer<()> {
        if code == 0 {
            return Ok(());
        }
        let words = |f: unsafe extern "system" fn(u32, *mut *const c_char) -> u32| {
            let mut text = null();
            // SAFETY: it writes the address of a constant text, or leaves it null.
            unsafe { (f(code, &mut text) == 0 && !text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned()) }
        };
        let text = match (words(self.functions.error_name), words(self.functions.error_text)) {
            (Some(name), Some(text)) => format!("{name}: {text}"),
            (name, text) => name.or(text).unwrap_or_else(|| format!("result {code}")),
        };
        Err(Fault { code, text })
    }

    /// What a function writes to the address that it is given.
    fn got<T: Copy>(&self, mut value: T, ask: impl FnOnce(&Functions, *mut T) -> u32) -> Answer<T> {
        self.told(ask(&self.functions, &mut value)).map(|()| value)
    }

    fn card(&self, k: usize) -> Answer<Card> {
        // SAFETY, here and below: each function gets what its declaration asks for, and addresses of values that live until it returns.
        let device = self.got(0, |f, to| unsafe { (f.device)(to, k as c_int) })?;
        let mut name = [0 as c_char; 256];
        self.told(unsafe { (self.functions.name)(name.as_mut_ptr(), name.len() as c_int - 1, device) })?;
        let memory = self.got(0usize, |f, to| unsafe { (f.memory)(to, device) })? as u64;
        let attribute = |which| self.got(0, |f, to| unsafe { (f.attribute)(to, which, device) }).map(|n| n as u32);
        let [major, minor] = CAPABILITY.map(attribute);
        // SAFETY: the last byte is 0.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        Ok(Card { name, capability: [major?, minor?], memory, processors: attribute(PROCESSORS)?, shared: attribute(SHARED)? })
    }
}

impl Driver for Real {
    fn version(&self) -> Answer<u32> {
        // SAFETY, here and below: see `card`.
        self.got(0, |f, to| unsafe { (f.version)(to) }).map(|v| v as u32)
    }
    fn cards(&self) -> Answer<Vec<Card>> {
        let count = self.got(0, |f, to| unsafe { (f.count)(to) })?;
        (0..count as usize).map(|k| self.card(k)).collect()
    }
    fn open(&self, card: usize) -> Answer<usize> {
        let device = self.got(0, |f, to| unsafe { (f.device)(to, card as c_int) })?;
        self.got(null_mut(), |f, to| unsafe { (f.retain)(to, device) }).map(|context| context as usize)
    }
    fn enter(&self, context: usize) -> Answer<()> {
        self.told(unsafe { (self.functions.enter)(handle(context)) })
    }
    fn load(&self, text: &str) -> Answer<usize> {
        let text = CString::new(text).map_err(|e| Fault { code: 1, text: e.to_string() })?;
        let (mut options, mut log) = (LOG, vec![0u8; LOG_BYTES]);
        let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG_BYTES as *mut c_void];
        let made = self.got(null_mut(), |f, to| unsafe {
            (f.load)(to, text.as_ptr().cast(), options.len() as c_uint, options.as_mut_ptr(), values.as_mut_ptr())
        });
        let said = String::from_utf8_lossy(&log).trim_end_matches('\0').trim().to_string();
        made.map(|module| module as usize).map_err(|fault| match said.as_str() {
            "" => fault,
            said => Fault { text: format!("{}: {said}", fault.text), ..fault },
        })
    }
    fn unload(&self, module: usize) {
        unsafe { (self.functions.unload)(handle(module)) };
    }
    fn function(&self, module: usize, name: &str) -> Answer<usize> {
        let name = CString::new(name).map_err(|e| Fault { code: 1, text: e.to_string() })?;
        self.got(null_mut(), |f, to| unsafe { (f.function)(to, handle(module), name.as_ptr()) }).map(|function| function as usize)
    }
    fn allocate(&self, bytes: u64) -> Answer<u64> {
        self.got(0, |f, to| unsafe { (f.allocate)(to, bytes as usize) })
    }
    fn free(&self, at: u64) {
        unsafe { (self.functions.free)(at) };
    }
    fn stream(&self) -> Answer<usize> {
        self.got(null_mut(), |f, to| unsafe { (f.stream)(to, NON_BLOCKING) }).map(|stream| stream as usize)
    }
    fn close(&self, stream: usize) {
        unsafe { (self.functions.close)(handle(stream)) };
    }
    fn write(&self, to: u64, words: &[u32], stream: usize) -> Answer<()> {
        // Memory that may be paged out is copied elsewhere before this returns.
        self.told(unsafe { (self.functions.write)(to, words.as_ptr().cast(), size_of_val(words), handle(stream)) })
    }
    fn read(&self, from: u64, words: &mut [u32], stream: usize) -> Answer<()> {
        self.told(unsafe { (self.functions.read)(words.as_mut_ptr().cast(), from, size_of_val(words), handle(stream)) })?;
        self.wait(stream)
    }
    fn copy(&self, to: u64, from: u64, bytes: u64, stream: usize) -> Answer<()> {
        self.told(unsafe { (self.functions.copy)(to, from, bytes as usize, handle(stream)) })
    }
    fn launch(&self, call: &Call, stream: usize) -> Answer<()> {
        let mut params = params(call);
        let [blocks, threads, shared] = [call.blocks, call.threads, call.shared];
        self.told(unsafe {
            let launch = self.functions.launch;
            launch(handle(call.function), blocks, 1, 1, threads, 1, 1, shared, handle(stream), params.as_mut_ptr(), null_mut())
        })
    }
    fn launch_together(&self, call: &Call, stream: usize) -> Answer<()> {
        let mut params = params(call);
        let [blocks, threads, shared] = [call.blocks, call.threads, call.shared];
        self.told(unsafe {
            let launch = self.functions.together;
            launch(handle(call.function), blocks, 1, 1, threads, 1, 1, shared, handle(stream), params.as_mut_ptr())
        })
    }
    fn share(&self, function: usize, bytes: u32) -> Answer<()> {
        self.told(unsafe { (self.functions.share)(handle(function), TOLD, bytes as c_int) })
    }
    fn resident(&self, function: usize, threads: u32, shared: u32) -> Answer<u32> {
        self.got(0, |f, to| unsafe { (f.resident)(to, handle(function), threads as c_int, shared as usize) }).map(|n| n as u32)
    }
    fn wait(&self, stream: usize) -> Answer<()> {
        self.told(unsafe { (self.functions.wait)(handle(stream)) })
    }
    fn graph(&self, calls: &[Call]) -> Answer<Graph> {
        let graph = self.got(null_mut(), |f, to| unsafe { (f.graph)(to, 0) })?;
        let mut made = Graph { executable: 0, graph: graph as usize, nodes: vec![] };
        let added = calls.iter().try_for_each(|call| {
            let mut params = params(call);
            let node = node(call, &mut params);
            // Each waits for the one before.
            let before = made.nodes.last().map(|&n| handle(n));
            let (first, count) = before.as_ref().map_or((null(), 0), |b| (&raw const *b, 1));
            let added = self.got(null_mut(), |f, to| unsafe { (f.add)(to, graph, first, count, &node) })?;
            made.nodes.push(added as usize);
            Ok(())
        });
        let done = added.and_then(|()| self.got(null_mut(), |f, to| unsafe { (f.instantiate)(to, graph, 0) }));
        match done {
            Ok(executable) => Ok(Graph { executable: executable as usize, ..made }),
            Err(fault) => {
                unsafe { (self.functions.forget)(graph) };
                Err(fault)
            }
        }
    }
    fn set(&self, graph: &Graph, at: usize, call: &Call) -> Answer<()> {
        let mut params = params(call);
        let node = node(call, &mut params);
        self.told(unsafe { (self.functions.set)(handle(graph.executable), handle(graph.nodes[at]), &node) })
    }
    fn replay(&self, graph: &Graph, stream: usize) -> Answer<()> {
        self.told(unsafe { (self.functions.replay)(handle(graph.executable), handle(stream)) })
    }
    fn forget(&self, graph: &Graph) {
        unsafe {
            (self.functions.forget_executable)(handle(graph.executable));
            (self.functions.forget)(handle(graph.graph));
        }
    }
}
