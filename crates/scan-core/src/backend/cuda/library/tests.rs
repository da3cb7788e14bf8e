//! The foreign interface, with functions that a driver without a card stands behind.

use super::{Driver, Functions, Handle, Node, Real};
use crate::backend::cuda::driver::{Answer, Call};
use crate::backend::cuda::fake::Fake;
use crate::backend::cuda::text::ENTRY;
use crate::backend::cuda::{open_on, ptx};
use crate::backend::gpu::Shape;
use crate::backend::gpu::testing::difference;
use crate::kernel::testing::{Options, case};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::{LazyLock, Mutex, PoisonError};

static FAKE: LazyLock<Fake> = LazyLock::new(Fake::default);
/// Launches of graphs that are being made, by function, blocks, threads, heap and parameters.
static NODES: Mutex<Vec<(usize, u32, u32, u64, Vec<u32>)>> = Mutex::new(vec![]);
static GRAPHS: Mutex<Vec<crate::backend::cuda::driver::Graph>> = Mutex::new(vec![]);

/// Writes an answer where the interface wants it.
unsafe fn tell<T>(answer: Answer<T>, to: *mut T) -> u32 {
    match answer {
        Ok(value) => {
            // SAFETY: the caller gives the address of such a value.
            unsafe { to.write(value) };
            0
        }
        Err(fault) => fault.code,
    }
}

fn code(answer: Answer<()>) -> u32 {
    answer.map_or_else(|fault| fault.code, |()| 0)
}

/// The parameters of a launch: two addresses.
unsafe fn heap_and_words(function: usize, params: *mut *mut c_void) -> (u64, Vec<u32>) {
    // SAFETY: the first is that of a number of 64 bits, the second that of as many words as the function has.
    unsafe { ((*params).cast::<u64>().read(), std::slice::from_raw_parts((*params.add(1)).cast(), FAKE.params(function)).to_vec()) }
}

extern "system" fn nothing(_: c_uint) -> u32 {
    0
}
extern "system" fn version(to: *mut c_int) -> u32 {
    unsafe { tell(FAKE.version().map(|v| v as c_int), to) }
}
extern "system" fn count(to: *mut c_int) -> u32 {
    unsafe { tell(FAKE.cards().map(|c| c.len() as c_int), to) }
}
extern "system" fn device(to: *mut c_int, k: c_int) -> u32 {
    unsafe { tell(Ok(k + 7), to) }
}
extern "system" fn name(to: *mut c_char, room: c_int, device: c_int) -> u32 {
    assert!(room == 255 && device == 7);
    unsafe { tell(Ok(b'X' as c_char), to) }
}
extern "system" fn memory(to: *mut usize, device: c_int) -> u32 {
    assert_eq!(device, 7);
    unsafe { tell(Ok(1 << 28), to) }
}
extern "system" fn attribute(to: *mut c_int, which: c_int, device: c_int) -> u32 {
    assert_eq!(device, 7);
    let value = match which {
        75 => 8,
        76 => 6,
        16 => 3,
        97 => 101_376,
        which => panic!("attribute {which}"),
    };
    unsafe { tell(Ok(value), to) }
}
extern "system" fn retain(to: *mut Handle, device: c_int) -> u32 {
    unsafe { tell(FAKE.open(device as usize - 7).map(|c| c as Handle), to) }
}
extern "system" fn enter(context: Handle) -> u32 {
    code(FAKE.enter(context as usize))
}
extern "system" fn load(to: *mut Handle, text: *const c_void, n: c_uint, options: *mut c_int, values: *mut *mut c_void) -> u32 {
    let text = unsafe { CStr::from_ptr(text.cast()) }.to_string_lossy();
    assert_eq!((n, unsafe { [options.read(), options.add(1).read()] }), (2, [5, 6]));
    let found = FAKE.load(&text);
    if let Err(fault) = &found {
        let room = unsafe { values.add(1).read() } as usize;
        let log = fault.text.as_bytes();
        unsafe { values.read().cast::<u8>().copy_from_nonoverlapping(log.as_ptr(), log.len().min(room)) };
    }
    unsafe { tell(found.map(|m| m as Handle), to) }
}
extern "system" fn unload(module: Handle) -> u32 {
    FAKE.unload(module as usize);
    0
}
extern "system" fn function(to: *mut Handle, module: Handle, name: *const c_char) -> u32 {
    unsafe { tell(FAKE.function(module as usize, &CStr::from_ptr(name).to_string_lossy()).map(|f| f as Handle), to) }
}
extern "system" fn allocate(to: *mut u64, bytes: usize) -> u32 {
    unsafe { tell(FAKE.allocate(bytes as u64), to) }
}
extern "system" fn free(at: u64) -> u32 {
    FAKE.free(at);
    0
}
extern "system" fn stream(to: *mut Handle, flags: c_uint) -> u32 {
    assert_eq!(flags, 1);
    unsafe { tell(FAKE.stream().map(|s| s as Handle), to) }
}
extern "system" fn close(stream: Handle) -> u32 {
    FAKE.close(stream as usize);
    0
}
extern "system" fn write(to: u64, from: *const c_void, bytes: usize, stream: Handle) -> u32 {
    code(FAKE.write(to, unsafe { std::slice::from_raw_parts(from.cast(), bytes / 4) }, stream as usize))
}
extern "system" fn read(to: *mut c_void, from: u64, bytes: usize, stream: Handle) -> u32 {
    code(FAKE.read(from, unsafe { std::slice::from_raw_parts_mut(to.cast(), bytes / 4) }, stream as usize))
}
extern "system" fn copy(to: u64, from: u64, bytes: usize, stream: Handle) -> u32 {
    code(FAKE.copy(to, from, bytes as u64, stream as usize))
}
extern "system" fn launch(
    function: Handle,
    x: c_uint,
    y: c_uint,
    z: c_uint,
    tx: c_uint,
    ty: c_uint,
    tz: c_uint,
    shared: c_uint,
    stream: Handle,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> u32 {
    assert!([y, z, ty, tz] == [1; 4] && extra.is_null());
    let (heap, params) = unsafe { heap_and_words(function as usize, params) };
    let call = Call { function: function as usize, blocks: x, threads: tx, shared, heap, params: &params };
    code(FAKE.launch(&call, stream as usize))
}
extern "system" fn together(
    function: Handle,
    x: c_uint,
    y: c_uint,
    z: c_uint,
    tx: c_uint,
    ty: c_uint,
    tz: c_uint,
    shared: c_uint,
    stream: Handle,
    params: *mut *mut c_void,
) -> u32 {
    assert_eq!([y, z, ty, tz], [1; 4]);
    let (heap, params) = unsafe { heap_and_words(function as usize, params) };
    let call = Call { function: function as usize, blocks: x, threads: tx, shared, heap, params: &params };
    code(FAKE.launch_together(&call, stream as usize))
}
extern "system" fn share(function: Handle, attribute: c_int, bytes: c_int) -> u32 {
    assert_eq!(attribute, 8);
    code(FAKE.share(function as usize, bytes as u32))
}
extern "system" fn resident(to: *mut c_int, function: Handle, threads: c_int, shared: usize) -> u32 {
    unsafe { tell(FAKE.resident(function as usize, threads as u32, shared as u32).map(|n| n as c_int), to) }
}
extern "system" fn wait(stream: Handle) -> u32 {
    code(FAKE.wait(stream as usize))
}
extern "system" fn graph(to: *mut Handle, flags: c_uint) -> u32 {
    NODES.lock().unwrap_or_else(PoisonError::into_inner).clear();
    unsafe { tell(Ok((flags + 99) as usize as Handle), to) }
}
extern "system" fn add(to: *mut Handle, graph: Handle, before: *const Handle, n: usize, node: *const Node) -> u32 {
    let node = unsafe { &*node };
    let mut nodes = NODES.lock().unwrap_or_else(PoisonError::into_inner);
    // Each waits for the one before.
    let follows = if nodes.is_empty() { n == 0 } else { n == 1 && unsafe { before.read() } as usize == nodes.len() };
    assert!(graph as usize == 99 && follows && node.blocks[1..] == [1, 1] && node.threads[1..] == [1, 1] && node.shared == 0);
    let (heap, params) = unsafe { heap_and_words(node.function as usize, node.params) };
    nodes.push((node.function as usize, node.blocks[0], node.threads[0], heap, params));
    unsafe { tell(Ok(nodes.len() as Handle), to) }
}
extern "system" fn instantiate(to: *mut Handle, graph: Handle, flags: u64) -> u32 {
    assert_eq!((graph as usize, flags), (99, 0));
    let nodes = NODES.lock().unwrap_or_else(PoisonError::into_inner);
    let calls: Vec<Call> = nodes
        .iter()
        .map(|(function, blocks, threads, heap, params)| Call {
            function: *function,
            blocks: *blocks,
            threads: *threads,
            shared: 0,
            heap: *heap,
            params,
        })
        .collect();
    let made = FAKE.graph(&calls);
    let number = made.as_ref().map_or(0, |g| g.executable);
    GRAPHS.lock().unwrap_or_else(PoisonError::into_inner).extend(made.clone());
    unsafe { tell(made.map(|_| number as Handle), to) }
}
extern "system" fn set(executable: Handle, at: Handle, node: *const Node) -> u32 {
    let node = unsafe { &*node };
    let (heap, params) = unsafe { heap_and_words(node.function as usize, node.params) };
    let (blocks, threads) = (node.blocks[0], node.threads[0]);
    let call = Call { function: node.function as usize, blocks, threads, shared: node.shared, heap, params: &params };
    let graphs = GRAPHS.lock().unwrap_or_else(PoisonError::into_inner);
    let graph = graphs.iter().find(|g| g.executable == executable as usize).expect("a graph that was made");
    code(FAKE.set(graph, at as usize - 1, &call))
}
extern "system" fn replay(executable: Handle, stream: Handle) -> u32 {
    let graphs = GRAPHS.lock().unwrap_or_else(PoisonError::into_inner);
    let graph = graphs.iter().find(|g| g.executable == executable as usize).expect("a graph that was made");
    code(FAKE.replay(graph, stream as usize))
}
extern "system" fn forget(_: Handle) -> u32 {
    0
}
extern "system" fn error_name(code: u32, to: *mut *const c_char) -> u32 {
    let name = match code {
        2 => c"CUDA_ERROR_OUT_OF_MEMORY",
        218 => c"CUDA_ERROR_INVALID_PTX",
        _ => return 1,
    };
    unsafe { tell(Ok(name.as_ptr()), to) }
}
extern "system" fn error_text(code: u32, to: *mut *const c_char) -> u32 {
    if code == 2 { unsafe { tell(Ok(c"out of memory".as_ptr()), to) } } else { 1 }
}

/// A driver behind the interface.
fn driver() -> &'static Real {
    let functions = Functions {
        init: nothing,
        version,
        count,
        device,
        name,
        memory,
        attribute,
        retain,
        enter,
        load,
        unload,
        function,
        allocate,
        free,
        stream,
        close,
        write,
        read,
        copy,
        launch,
        together,
        share,
        resident,
        wait,
        graph,
        add,
        instantiate,
        set,
        replay,
        forget,
        forget_executable: forget,
        error_name,
        error_text,
    };
    Box::leak(Box::new(Real::of(functions).unwrap_or_else(|e| panic!("{e}"))))
}

// One test, since the statics above are shared.
#[test]
fn kernels_run_through_the_interface() {
    let driver = driver();
    let device = open_on(driver, 0).unwrap_or_else(|e| panic!("{}", e.title));
    assert_eq!(device.0.about(), "X (compute capability 8.6, CUDA 12.4)");
    for seed in 0..5 {
        let case = case(seed, &Options { calls: false, ..Options::default() });
        assert_eq!(difference(device, &case, &mut 0).unwrap_or_else(|e| panic!("{}", e.title)), None);
    }

    let text = ptx::text(
        &case(1, &Options { calls: false, ..Options::default() }).kernel,
        &Shape::default(),
        ptx::Target { processors: 3, copies: true, shared: 48 << 10 },
    )
    .expect("a text")
    .text;
    let function = driver.load(&text).and_then(|m| driver.function(m, ENTRY)).expect("a function");
    let (heap, stream) = (driver.allocate(1 << 16).expect("memory"), driver.stream().expect("a stream"));
    // No invocation of it does anything.
    let params = vec![0; FAKE.params(function)];
    let calls = [1, 2].map(|blocks| Call { function, blocks, threads: 32, shared: 0, heap, params: &params });
    let graph = driver.graph(&calls).expect("a graph");
    assert_eq!(graph.nodes.len(), 2);
    let before = FAKE.counts();
    assert_eq!(driver.set(&graph, 1, &calls[1]).and_then(|()| driver.replay(&graph, stream)).and_then(|()| driver.wait(stream)), Ok(()));
    assert_eq!((FAKE.counts().launches - before.launches, FAKE.counts().replays - before.replays), (2, 1));
    driver.forget(&graph);
    driver.close(stream);
    driver.free(heap);

    let text_of = |code: u32| driver.told(code).map_err(|f| f.text);
    assert_eq!(text_of(2), Err("CUDA_ERROR_OUT_OF_MEMORY: out of memory".into()));
    assert_eq!(text_of(5), Err("result 5".into()));
    let refused = driver.load("nonsense").map_err(|f| (f.code, f.text));
    assert_eq!(refused, Err((218, "CUDA_ERROR_INVALID_PTX: line 1: not a directive: `nonsense`".into())));
    assert!(driver.load("a\0b").is_err());
}
