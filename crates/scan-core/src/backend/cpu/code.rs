//! A compiled kernel, and the one way to run it: with its operands' bounds checked.

use super::memory::Memory;
use super::spot::Steps;
use crate::kernel::{Kernel, LEVELS, MemId, Use};
use crate::types::array::Data;
use crate::types::{Array, DType, Element};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;

/// What compiled code is given. `ptrs` and `strides` have an entry per operand.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    /// The element of lane 0 at the first step.
    pub ptrs: *const *mut u8,
    /// Bytes from one step to the next.
    pub strides: *const isize,
    /// Number of lanes.
    pub lanes: usize,
    /// Number of steps at most.
    pub steps: usize,
    /// The number of the first step.
    pub first: i64,
    /// Number of lanes of the whole call, of which these may be a part.
    pub whole: usize,
    /// Memory of the loops of a step, [`Kernel::own`] bytes: whoever runs code that needs it brings it along; else null.
    pub own: *mut u8,
}

/// A compiled kernel.
pub trait Code: Send + Sync {
    /// Runs; the number of steps that ran.
    ///
    /// # Safety
    /// Every element that the kernel's operands name for these lanes and steps lies in memory that may be read, and written where
    /// the kernel writes; operands overlap only where that is the same element to every lane; lanes >= 1 and steps >= 1.
    unsafe fn run(&self, frame: &Frame) -> usize;
    /// Runs at one place after another, given the pointers at the first.
    ///
    /// # Safety
    /// What [`run`](Code::run) demands holds of the frame with the pointers at every place.
    unsafe fn run_places(&self, frame: &Frame, ptrs: &mut [*mut u8], places: &Places) {
        places.each(ptrs, |ptrs| {
            // SAFETY: the caller's promise.
            unsafe { self.run(&Frame { ptrs: ptrs.as_ptr(), ..*frame }) };
        });
    }
    /// The call of a frame at all places, made ready to be run again and again from other pointers on, where this engine can. Per operand,
    /// `reach` holds the addresses from and up to which all these calls touch it.
    fn ready(self: Arc<Self>, _frame: &Frame, _places: &Places, _reach: &[(isize, isize)]) -> Option<Box<dyn Ready>> {
        None
    }
    /// The one call that a frame is, where it is but one: a function, and what it is given, which is right as long as this lives.
    fn generated(&self, _frame: Frame) -> Option<(Generated, Frame)> {
        None
    }
    /// The engine's name, as `explain` shows it.
    fn engine(&self) -> &'static str;
}

/// By how many bytes operands move from one step of each of the loops around to the next, and which do: many are elements of one array.
pub type Moving = SmallVec<[([isize; LEVELS], SmallVec<[usize; 4]>); 2]>;

/// One of the few things that a call is.
pub enum Action {
    /// Where an operand lies at this step is written to a table.
    Place {
        /// Its number.
        operand: usize,
        /// In the table.
        at: *mut *mut u8,
        /// Where it lies at the first steps.
        ptr: *mut u8,
        /// Bytes from one step of each of the loops around to the next.
        strides: [isize; LEVELS],
    },
    /// Emitted code does a task.
    #[cfg(all(feature = "jit", target_arch = "x86_64"))]
    Task(unsafe extern "sysv64" fn(*const super::emit_x64::Task), *const super::emit_x64::Task),
    /// Generated code runs a frame.
    Frame(Generated, *const Frame),
}

/// The code of the code generator.
pub type Generated = unsafe extern "C" fn(*const Frame) -> usize;

/// Does some things one after the other, at these steps of the loops around.
///
/// # Safety
/// Tables, tasks and frames are there; with the operands at these steps, what the calls demand holds.
#[inline]
pub unsafe fn act(actions: &[Action], steps: &Steps) {
    for action in actions {
        // SAFETY: the caller's promise.
        unsafe {
            match action {
                Action::Place { at, ptr, strides, .. } => at.write(ptr.wrapping_offset(super::spot::moved(strides, steps))),
                #[cfg(all(feature = "jit", target_arch = "x86_64"))]
                Action::Task(function, task) => function(*task),
                Action::Frame(function, frame) => _ = function(*frame),
            }
        }
    }
}

/// A call of which everything but the pointers is decided.
pub trait Ready {
    /// Runs all steps at all places, from these pointers on.
    ///
    /// # Safety
    /// What [`Code::run_places`] demands, with pointers from which the call stays within the reach that it was made ready for.
    unsafe fn run(&self, ptrs: &mut [*mut u8], places: &Places);
    /// Makes it ready for operands that begin elsewhere and move as they did, within this reach; false where what was decided hangs on where
    /// they lie.
    fn begin(&mut self, ptrs: &[*mut u8], reach: &[(isize, isize)]) -> bool;
    /// What all of the call is, where that is but a few things. They are right as long as this lives.
    fn actions(&self) -> Option<Vec<Action>> {
        None
    }
}

/// The places of counted loops around a kernel, in row-major order: one where there is no loop.
pub struct Places<'a> {
    /// Extents of the loops, outermost first; none is 0.
    pub extents: &'a [usize],
    /// Per loop and operand: bytes from a place to the one after it, where this loop goes on and those inside begin again.
    pub moves: &'a [isize],
}

impl Places<'_> {
    /// Places along the innermost loop, and how each of so many operands moves from one of them to the next.
    pub fn innermost(&self, operands: usize) -> (usize, &[isize]) {
        let axis = self.extents.len() - 1;
        (self.extents[axis], &self.moves[axis * operands..][..operands])
    }
    /// Calls `visit` with the pointers of each place at which the innermost loop begins.
    pub fn each_run(&self, ptrs: &mut [*mut u8], visit: impl FnMut(&[*mut u8])) {
        let (n, along) = self.innermost(ptrs.len());
        self.walk(self.extents.len() - 1, ptrs, |operand| along[operand] * (n as isize - 1), visit);
    }
    /// Calls `visit` with the pointers of each place, from those of the first on.
    pub fn each(&self, ptrs: &mut [*mut u8], visit: impl FnMut(&[*mut u8])) {
        self.walk(self.extents.len(), ptrs, |_| 0, visit);
    }
    /// The places of so many loops; `inside` is how far the others have moved an operand where they end.
    fn walk(&self, loops: usize, ptrs: &mut [*mut u8], inside: impl Fn(usize) -> isize, mut visit: impl FnMut(&[*mut u8])) {
        let mut at: SmallVec<[usize; 3]> = SmallVec::from_elem(0, loops);
        loop {
            visit(ptrs);
            let Some(axis) = (0..loops).rev().find(|&axis| at[axis] + 1 < self.extents[axis]) else { return };
            at[axis] += 1;
            at[axis + 1..].fill(0);
            let moves = &self.moves[axis * ptrs.len()..][..ptrs.len()];
            for (operand, (ptr, &by)) in ptrs.iter_mut().zip(moves).enumerate() {
                *ptr = ptr.wrapping_offset(by + inside(operand));
            }
        }
    }
}

/// Why an engine does not compile a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal(pub String);

/// An operand of one call.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    /// The memory around it. Cells, since operands may overlap (a state is read at one row and written at another).
    pub memory: Memory<'a>,
    /// Bytes before the element of lane 0 at the first step.
    pub offset: usize,
    /// Bytes from one step to the next.
    pub stride: isize,
}

impl<'a> Operand<'a> {
    /// Memory from its first byte on, which is read.
    pub fn reading(memory: &'a [u8]) -> Operand<'a> {
        Operand { memory: Memory::Read(memory), offset: 0, stride: 0 }
    }
    /// Memory from its first byte on, which is written.
    pub fn writing(memory: &'a [Cell<u8>]) -> Operand<'a> {
        Operand { memory: Memory::Write(memory), offset: 0, stride: 0 }
    }
    /// The same so many steps further on.
    pub fn after(&self, steps: usize) -> Operand<'a> {
        Operand { offset: (self.offset as isize + steps as isize * self.stride) as usize, ..*self }
    }
    /// The element of lane 0 at the first step.
    pub(super) fn ptr(&self) -> *mut u8 {
        self.memory.ptr().wrapping_add(self.offset)
    }
}

/// Runs compiled code on operands, in the order of the kernel's; the number of steps that ran.
///
/// # Panics
/// Where an operand lies outside its memory, is misaligned, or is written but only readable: a fault of the planner, caught
/// before anything is touched.
pub fn run(code: &dyn Code, kernel: &Kernel, operands: &[Operand], lanes: usize, steps: usize, first: i64) -> usize {
    if !checked(kernel, operands, lanes, steps) {
        return if lanes == 0 { steps } else { 0 };
    }
    let ptrs: SmallVec<[*mut u8; 16]> = operands.iter().map(Operand::ptr).collect();
    let strides: SmallVec<[isize; 16]> = operands.iter().map(|o| o.stride).collect();
    let frame = Frame { ptrs: ptrs.as_ptr(), strides: strides.as_ptr(), lanes, steps, first, whole: lanes, own: std::ptr::null_mut() };
    // SAFETY: `check` has shown that every element lies in memory that lives as long as the operands, and that what is written
    // may be; lanes and steps are positive.
    unsafe { code.run(&frame) }
}

/// Checks the operands of a call as [`run`] does; false where there is nothing to run.
pub(super) fn checked(kernel: &Kernel, operands: &[Operand], lanes: usize, steps: usize) -> bool {
    assert_eq!(operands.len(), kernel.mems.len(), "operands of a kernel");
    if lanes == 0 || steps == 0 {
        return false;
    }
    assert!(kernel.stop.is_none() || lanes == 1, "a kernel that stops runs with one lane");
    let uses = Use::of(kernel);
    for ((id, operand), of) in kernel.mems.ids().zip(operands).zip(uses) {
        check(kernel, id, operand, of, lanes, steps);
    }
    check_beside(kernel, |k| (operands[k].ptr(), operands[k].stride));
    true
}

/// Panics where an operand does not lie beside another one as its kernel says, or does not move as that does: a fault of the planner.
pub(super) fn check_beside<M: PartialEq>(kernel: &Kernel, place: impl Fn(usize) -> (*mut u8, M)) {
    for (k, mem) in kernel.mems.iter().enumerate() {
        if let Some((other, bytes)) = mem.beside {
            let ((ptr, moves), (first, like)) = (place(k), place(other.0 as usize));
            assert!(ptr == first.wrapping_offset(bytes as isize) && moves == like, "operand {k} does not lie beside operand {}", other.0);
        }
    }
}

fn check(kernel: &Kernel, id: MemId, operand: &Operand, of: Use, lanes: usize, steps: usize) {
    let mem = &kernel.mems[id];
    let size = mem.dtype.size();
    let (carried, written) = (of == Use::Carried, of != Use::Read);
    assert!(!written || matches!(operand.memory, Memory::Write(_)), "operand {id:?} is written but only readable");
    let span = if carried { 0 } else { operand.stride.checked_mul(steps as isize - 1).expect("a stride that fits") };
    let (from, to) = mem.row(lanes);
    let (low, high) = (operand.offset as isize + span.min(0) + from, operand.offset as isize + span.max(0) + to);
    assert!(mem.stride.is_none_or(|s| s as isize == operand.stride), "operand {id:?} does not move by {}", operand.stride);
    assert!(low >= 0 && high as usize <= operand.memory.len(), "operand {id:?} reaches from {low} to {high} of {}", operand.memory.len());
    let address = operand.memory.ptr().addr() + operand.offset;
    assert!(address.is_multiple_of(size) && (carried || operand.stride % size as isize == 0), "operand {id:?} is misaligned");
}

macro_rules! per_buffer {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            Data::Bool($v) => $body,
            Data::I8($v) => $body,
            Data::I16($v) => $body,
            Data::I32($v) => $body,
            Data::I64($v) => $body,
            Data::U8($v) => $body,
            Data::U16($v) => $body,
            Data::U32($v) => $body,
            Data::U64($v) => $body,
            Data::F32($v) => $body,
            Data::F64($v) => $body,
        }
    };
}

/// The elements of an array as bytes.
pub fn bytes(array: &Array) -> &[u8] {
    per_buffer!(array.data(), v => bytes_of(v))
}

/// Elements as bytes.
pub fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: every element type is plain data without padding; the length is that of the slice.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// Elements as bytes that kernels may write: to bools nothing but 0 and 1.
pub fn cells_of<T: Element>(elements: &mut [T]) -> &[Cell<u8>] {
    let n = size_of_val(elements);
    // SAFETY: plain data without padding, borrowed mutably; `Cell<u8>` has the layout of `u8`.
    unsafe { std::slice::from_raw_parts(elements.as_mut_ptr().cast::<Cell<u8>>(), n) }
}

/// The elements of an array as bytes that kernels may write; a shared buffer is copied first. A kernel writes nothing but 0 and 1
/// to bools.
pub fn cells(array: &mut Array) -> &[Cell<u8>] {
    fn dispatch(array: &mut Array, dtype: DType) -> &[Cell<u8>] {
        crate::dispatch!(dtype, T => cells_of(array.as_mut_slice::<T>()))
    }
    let dtype = array.dtype();
    dispatch(array, dtype)
}

impl<'a> Operand<'a> {
    /// `n` elements as a slice.
    ///
    /// # Safety
    /// Nothing writes to them as long as the slice lives.
    #[inline]
    pub(super) unsafe fn slice<T: Element>(&self, n: usize) -> &'a [T] {
        let at = self.memory.ptr().wrapping_add(self.offset).cast::<T>();
        assert!(self.offset + n * size_of::<T>() <= self.memory.len() && at.is_aligned(), "an operand outside its memory");
        // SAFETY: in bounds and aligned, as asserted; every element type is plain data.
        unsafe { std::slice::from_raw_parts(at, n) }
    }
    /// `n` elements for writing.
    ///
    /// # Safety
    /// Nothing else reads or writes them as long as the slice lives.
    #[inline]
    pub(super) unsafe fn slice_mut<T: Element>(&self, n: usize) -> &'a mut [T] {
        assert!(matches!(self.memory, Memory::Write(_)), "an operand that is only readable");
        let at = self.memory.ptr().wrapping_add(self.offset).cast::<T>();
        assert!(self.offset + n * size_of::<T>() <= self.memory.len() && at.is_aligned(), "an operand outside its memory");
        // SAFETY: in bounds and aligned, as asserted; the memory is that of cells.
        unsafe { std::slice::from_raw_parts_mut(at, n) }
    }
    /// True where so many bytes from here on meet so many of another operand.
    #[inline]
    pub fn overlaps(&self, bytes: usize, other: &Operand, other_bytes: usize) -> bool {
        let (a, b) = (self.memory.ptr().addr() + self.offset, other.memory.ptr().addr() + other.offset);
        a < b + other_bytes && b < a + bytes
    }
}

/// Copies `n` bytes.
///
/// # Panics
/// Where an operand reaches beyond its memory.
#[inline]
pub fn copy(from: &Operand, to: &Operand, n: usize) {
    assert!(
        matches!(to.memory, Memory::Write(_)) && from.offset + n <= from.memory.len() && to.offset + n <= to.memory.len(),
        "a copy outside memory"
    );
    let (from, to) = (from.ptr(), to.ptr());
    // SAFETY: both ranges are in bounds, as asserted; overlapping ones are allowed. Single elements are copied without a call.
    unsafe {
        match n {
            8 => to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()),
            4 => to.cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()),
            1 => to.write(from.read()),
            _ => std::ptr::copy(from, to, n),
        }
    }
}

/// Copies rows of `n` bytes, so many bytes apart where they come from and where they go, in any order: the two do not overlap.
///
/// # Panics
/// Where an operand reaches beyond its memory.
pub fn copy_rows(from: &Operand, to: &Operand, n: usize, times: usize, apart: [isize; 2]) {
    let within = |operand: &Operand, apart: isize| {
        let span = apart * (times as isize - 1);
        let (low, high) = (operand.offset as isize + span.min(0), operand.offset as isize + span.max(0) + n as isize);
        low >= 0 && high as usize <= operand.memory.len()
    };
    assert!(matches!(to.memory, Memory::Write(_)) && times > 0 && within(from, apart[0]) && within(to, apart[1]), "rows outside memory");
    // SAFETY: all rows lie in memory, as asserted.
    unsafe {
        match n {
            4 => rows::<4>(from.ptr(), to.ptr(), n, times, apart),
            8..16 => rows::<8>(from.ptr(), to.ptr(), n, times, apart),
            16..=256 => rows::<16>(from.ptr(), to.ptr(), n, times, apart),
            _ => {
                for k in 0..times as isize {
                    std::ptr::copy(from.ptr().offset(k * apart[0]), to.ptr().offset(k * apart[1]), n);
                }
            }
        }
    }
}

/// Rows of at least N bytes in words of so many, of which the last one may overlap the one before.
///
/// # Safety
/// All rows can be read and written.
unsafe fn rows<const N: usize>(from: *const u8, to: *mut u8, n: usize, times: usize, apart: [isize; 2]) {
    for k in 0..times as isize {
        // SAFETY: the caller's promise.
        unsafe {
            let (from, to) = (from.offset(k * apart[0]), to.offset(k * apart[1]));
            let word = |at: usize| to.add(at).cast::<[u8; N]>().write(from.add(at).cast::<[u8; N]>().read());
            (0..n / N).for_each(|at| word(at * N));
            if !n.is_multiple_of(N) {
                word(n - N);
            }
        }
    }
}

/// Copies `n` elements of such a size that lie so many bytes apart.
///
/// # Panics
/// Where an operand reaches beyond its memory or is misaligned.
pub fn gather(from: &Operand, to: &Operand, n: usize, step: isize, size: usize) {
    let span = step * (n as isize - 1);
    let (low, high) = (from.offset as isize + span.min(0), from.offset as isize + span.max(0) + size as isize);
    let aligned = [from, to].iter().all(|o| o.ptr().addr().is_multiple_of(size)) && step % size as isize == 0;
    assert!(low >= 0 && high as usize <= from.memory.len() && aligned, "elements outside memory");
    assert!(matches!(to.memory, Memory::Write(_)) && to.offset + n * size <= to.memory.len(), "a copy outside memory");
    // SAFETY: all elements lie in memory, aligned, as asserted; whole words of their size are copied.
    unsafe {
        match size {
            1 => spread::<u8>(from.ptr(), to.ptr(), n, step),
            2 => spread::<u16>(from.ptr(), to.ptr(), n, step),
            4 => spread::<u32>(from.ptr(), to.ptr(), n, step),
            _ => spread::<u64>(from.ptr(), to.ptr(), n, step),
        }
    }
}

/// Copies m rows of n elements of such a size, whose columns lie side by side before, so many bytes from one to the next.
///
/// # Panics
/// Where an operand reaches beyond its memory or is misaligned.
pub fn turn(from: &Operand, to: &Operand, [m, n]: [usize; 2], step: usize, size: usize) {
    let aligned = [from, to].iter().all(|o| o.ptr().addr().is_multiple_of(size)) && step.is_multiple_of(size);
    assert!(m > 0 && n > 0 && aligned && from.offset + step * (n - 1) + m * size <= from.memory.len(), "elements outside memory");
    assert!(matches!(to.memory, Memory::Write(_)) && to.offset + m * n * size <= to.memory.len(), "a copy outside memory");
    // SAFETY: all elements lie in memory, aligned, as asserted; whole words of their size are copied.
    unsafe {
        match size {
            1 => tiles::<u8>(from.ptr(), to.ptr(), [m, n], step),
            2 => tiles::<u16>(from.ptr(), to.ptr(), [m, n], step),
            4 => tiles::<u32>(from.ptr(), to.ptr(), [m, n], step),
            _ => tiles::<u64>(from.ptr(), to.ptr(), [m, n], step),
        }
    }
}

/// # Safety
/// n columns of m elements that lie side by side can be read, so many bytes apart from `from` on, and m·n elements from `to` on written.
unsafe fn tiles<T: Copy>(from: *const u8, to: *mut u8, [m, n]: [usize; 2], step: usize) {
    // Lines of the cache are read and written as a whole.
    const TILE: usize = 8;
    let (from, to, step) = (from.cast::<T>(), to.cast::<T>(), step / size_of::<T>());
    // SAFETY: the caller's promise.
    let place = |r: usize, c: usize| unsafe { to.add(r * n + c).write(from.add(c * step + r).read()) };
    // Numbers that the compiler knows: it reads and writes several elements at once.
    match [m, n] {
        [_, 2] => return (0..m).for_each(|r| (0..2).for_each(|c| place(r, c))),
        [_, 3] => return (0..m).for_each(|r| (0..3).for_each(|c| place(r, c))),
        [_, 4] => return (0..m).for_each(|r| (0..4).for_each(|c| place(r, c))),
        [2, _] => return (0..n).for_each(|c| (0..2).for_each(|r| place(r, c))),
        [3, _] => return (0..n).for_each(|c| (0..3).for_each(|r| place(r, c))),
        [4, _] => return (0..n).for_each(|c| (0..4).for_each(|r| place(r, c))),
        _ => {}
    }
    for i in (0..m).step_by(TILE) {
        for j in (0..n).step_by(TILE) {
            if i + TILE <= m && j + TILE <= n {
                (0..TILE).for_each(|c| (0..TILE).for_each(|r| place(i + r, j + c)));
            } else {
                (j..n.min(j + TILE)).for_each(|c| (i..m.min(i + TILE)).for_each(|r| place(r, c)));
            }
        }
    }
}

/// # Safety
/// `n` elements from `from` on, so many bytes apart, can be read, and as many beside each other from `to` on written.
unsafe fn spread<T: Copy>(from: *const u8, to: *mut u8, n: usize, step: isize) {
    let (from, to, step) = (from.cast::<T>(), to.cast::<T>(), step / size_of::<T>() as isize);
    for i in 0..n {
        // SAFETY: the caller's promise.
        unsafe { to.add(i).write(from.offset(i as isize * step).read()) };
    }
}

/// Sets `n` bytes to zero.
///
/// # Panics
/// Where the operand reaches beyond its memory.
#[inline]
pub fn clear(to: &Operand, n: usize) {
    assert!(matches!(to.memory, Memory::Write(_)) && to.offset + n <= to.memory.len(), "memory to clear");
    // SAFETY: in bounds, as asserted.
    unsafe { std::ptr::write_bytes(to.memory.ptr().add(to.offset), 0, n) }
}
