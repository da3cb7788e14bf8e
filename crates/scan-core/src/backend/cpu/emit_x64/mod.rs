//! Machine code for kernels with many lanes: AVX-512, or AVX2 with FMA. The lanes are done in blocks of some vectors; for each
//! block the whole loop over time runs with its carries in registers.
//!
//! ```text
//! select    KIR -> machine operations, still in SSA form
//! order     masks next to their uses, how many vectors side by side
//! skips     what no lane needs is jumped over
//! stagger   the order of operations of all vectors of a block, where steps are long
//! alloc     registers and stack slots, while `emit` writes the instructions
//! layout    the loops around a step
//! ```
//!
//! Operands of one lane that are stored must not be read by the same step for another block: such states are carries.

mod alloc;
mod apart;
mod asm;
mod bools;
mod calls;
mod codes;
mod convert;
mod emit;
mod gather;
mod homes;
mod layout;
mod memory;
mod native;
mod order;
mod prepared;
mod select;
mod skips;
mod small;
mod stagger;
#[cfg(test)]
mod tests;

use super::code::Ready;
use super::isa::Isa;
use super::{Code, Frame, Places, Refusal};
use crate::base::Id;
use crate::kernel::{Kernel, Lane};
use alloc::Shape;
pub use layout::Task;
use native::{Function, Native};
use prepared::Prepared;
use select::Program;
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock};

/// Compiles a kernel for an instruction set that this machine has, for about so many lanes.
///
/// # Errors
/// What the kernel needs and this engine lacks, or that the system gives no executable memory.
pub fn compile(kernel: &Kernel, isa: Isa, lanes: usize) -> Result<Box<dyn Code>, Refusal> {
    Ok(Box::new(chosen(&kernel.without_division(), isa, lanes)?))
}

/// The kernel on the vectors that do so many lanes soonest.
fn chosen(kernel: &Kernel, isa: Isa, lanes: usize) -> Result<Emitted, Refusal> {
    let vectors = vectors(isa);
    let narrow = (!kernel.carries.is_empty() && lanes <= FEW).then(|| emitted(kernel, isa, vectors[0]).ok());
    narrow.flatten().map_or_else(|| emitted(kernel, isa, vectors[vectors.len() - 1]), Ok)
}

/// Bytes of the vectors that an instruction set has, from the least on.
fn vectors(isa: Isa) -> &'static [usize] {
    if isa == Isa::Avx512 { &[32, 64] } else { &[32] }
}

/// Lanes that narrow vectors do sooner than wide ones, where steps wait for each other: then it counts when results are there, which for
/// quotients is later the wider they are, and not how many operations there are.
const FEW: usize = 24;

fn emitted(kernel: &Kernel, isa: Isa, vector: usize) -> Result<Emitted, Refusal> {
    if isa == Isa::Portable {
        return Err(Refusal("no AVX2".to_string()));
    }
    if isa > Isa::machine() {
        return Err(Refusal(format!("this machine has no {}", isa.name())));
    }
    if kernel.stop.is_some() {
        return Err(Refusal("a loop that may stop early".to_string()));
    }
    let program = select::select(kernel, isa, vector)?;
    if vector < 64 && isa == Isa::Avx512 && program.values.iter().any(|v| program.width * v.size as usize > vector) {
        return Err(Refusal("values that are wider than what differs between lanes, in half vectors".to_string()));
    }
    let copies = order::copies(&program);
    let emitted = Emitted::new(program, copies);
    let one = emitted.build(ONE)?;
    _ = emitted.version(ONE).set(Some(one));
    Ok(emitted)
}

/// The version that does any number of lanes, one vector after the other.
const ONE: Shape = Shape { copies: 1, masked: true, streams: false, hoists: false, places: false, held: 0 };

/// A kernel as machine code. Versions for different numbers of vectors are written when a call first needs them.
struct Emitted {
    program: Program,
    /// Vectors of a full block.
    copies: usize,
    versions: Vec<OnceLock<Option<Native>>>,
    /// Per operand: what the step does with it.
    roles: Vec<Role>,
    /// Carries of one value for all lanes: their operands and sizes.
    handed: Vec<(usize, usize, usize)>,
    /// Calls of one step have something to compute before the first block.
    hoists: bool,
    /// Operands that are read before the first step, if they are found where they were in the first call of many steps.
    held: OnceLock<u64>,
    /// Bytes that a lane writes in a step.
    written: usize,
    /// Bytes written by one call from which on stores go past the caches.
    large: usize,
    /// How the lanes of the first call of one step were cut: as good as all others have so many.
    cut: OnceLock<(usize, Blocks)>,
}

/// What a step does with an operand.
#[derive(Clone, Copy, Debug)]
struct Role {
    stored: bool,
    loaded: bool,
    carried: bool,
    /// Nothing prevents that it is read before the first step, if it stays where it is.
    keeps: bool,
    lane: Lane,
    size: usize,
}

impl Role {
    /// Written, but the same for all lanes, and not read.
    fn once(self) -> bool {
        self.stored && !self.loaded && self.lane == Lane::Uniform
    }
}

/// Blocks of one shape.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// The version that does them.
    version: usize,
    /// Lanes of each.
    lanes: usize,
    /// How many.
    count: usize,
}

/// What does the lanes of a call, in order.
type Blocks = SmallVec<[Block; 4]>;

/// Blocks of a shape, and how many.
type Shapes = SmallVec<[(Shape, usize); 4]>;

/// Pointer and stride of an operand.
type Entry = [*mut u8; 2];

impl Emitted {
    fn new(program: Program, copies: usize) -> Emitted {
        let roles: Vec<Role> = program.mems.ids().map(|m| program.role(m)).collect();
        let written = roles.iter().filter(|r| r.stored && r.lane == Lane::Unit).map(|r| r.size).sum();
        let uniform = program.carries.iter().enumerate().filter(|(_, c)| program.mems[c.mem].lane == Lane::Uniform);
        let handed = uniform.map(|(i, c)| (i, c.mem.idx(), program.mems[c.mem].dtype.size())).collect();
        let versions = (0..20 * copies).map(|_| OnceLock::new()).collect();
        let hoists = program.carries.is_empty() && order::fixed(&program).contains(&true);
        Emitted { program, copies, versions, roles, handed, hoists, held: OnceLock::new(), written, large: LARGE, cut: OnceLock::new() }
    }
    fn build(&self, shape: Shape) -> Result<Native, Refusal> {
        let code = layout::function(&self.program, shape)?;
        Native::new(&code).map_err(|e| Refusal(format!("the system gives no executable memory: {e}")))
    }
    fn version(&self, shape: Shape) -> &OnceLock<Option<Native>> {
        &self.versions[version(shape)]
    }
    /// The code of a shape, unless it cannot be had.
    #[inline]
    fn native(&self, shape: Shape) -> Option<Function> {
        self.version(shape).get_or_init(|| self.build(shape).ok()).as_ref().map(Native::function)
    }
    /// Blocks that cover the lanes, in order. Their sizes differ by one vector at most.
    fn blocks(&self, lanes: usize, streams: bool, hoists: bool, held: u64) -> Shapes {
        let vectors = lanes.div_ceil(self.program.width);
        let count = vectors.div_ceil(self.copies);
        let copies = vectors.div_ceil(count);
        let large = vectors - count * (copies - 1);
        let shape = |copies, count| (Shape { copies, masked: false, streams, hoists: hoists && count > 1, places: false, held }, count);
        let mut blocks = Shapes::from_slice(&[shape(copies, large), shape(copies - 1, count - large)]);
        blocks.retain(|b| b.1 > 0);
        if let (false, Some(last)) = (lanes.is_multiple_of(self.program.width), blocks.last_mut()) {
            last.1 -= 1;
            let masked = Shape { masked: true, streams: false, hoists: false, ..last.0 };
            blocks.push((masked, 1));
            blocks.retain(|b| b.1 > 0);
        }
        blocks
    }
    /// The same by single vectors: where larger versions cannot be had.
    fn single(&self, lanes: usize) -> Shapes {
        (0..lanes.div_ceil(self.program.width)).map(|_| (ONE, 1)).collect()
    }
    /// Where so much is written that the caches cannot keep it, and nothing of it is read: the lanes to do first, after which all
    /// that is written is aligned to whole vectors.
    fn streams(&self, table: &[Entry], frame: &Frame) -> Option<usize> {
        let stored = || self.roles.iter().zip(table).filter(|(role, _)| role.stored && role.lane == Lane::Unit);
        if !self.is_large(frame) || self.roles.iter().any(|r| r.stored && r.size == 1) {
            return None;
        }
        let before = |role: &Role, entry: &Entry| (entry[0].addr().wrapping_neg() % (role.size * self.program.width)) / role.size;
        let first = stored().map(|(role, entry)| before(role, entry)).next()?;
        let even = stored().all(|(role, entry)| before(role, entry) == first && self.even(role, entry, frame));
        let span = |role: &Role, entry: &Entry| range(role, entry, frame);
        let apart = stored().all(|(role, entry)| {
            let (low, high) = span(role, entry);
            let read = self.roles.iter().zip(table).filter(|(other, _)| other.loaded);
            read.map(|(other, entry)| span(other, entry)).all(|(from, to)| to <= low || high <= from)
        });
        (even && apart && (first == 0 || frame.steps == 1) && first < frame.lanes).then_some(first)
    }
    /// Operands that stay where they are for many steps and are not written meanwhile, a bit each.
    #[inline]
    fn held(&self, table: &[Entry], frame: &Frame) -> u64 {
        let range = |(operand, entry): (usize, &Entry)| range(&self.roles[operand], entry, frame);
        let stays = |operand: usize| table[operand][1].is_null();
        if frame.steps < MANY { 0 } else { self.held_within(stays, || table.iter().enumerate().take(self.roles.len()).map(range)) }
    }
    /// The same of operands that stay from step to step, all within these ranges of addresses.
    #[inline]
    fn held_within<R: Iterator<Item = (isize, isize)>>(&self, stays: impl Fn(usize) -> bool, ranges: impl Fn() -> R) -> u64 {
        let keeps = self.roles.iter().take(64).enumerate().filter(|&(operand, role)| role.keeps && stays(operand));
        let stays = keeps.fold(0, |mask, (operand, _)| mask | 1u64 << operand);
        let held = *self.held.get_or_init(|| stays);
        let read = || ranges().take(64).enumerate().filter(|(operand, _)| held >> operand & 1 == 1);
        let mut written = self.roles.iter().zip(ranges()).filter(|(role, _)| role.stored || role.carried);
        let apart = written.all(|(_, (low, high))| read().all(|(_, (from, to))| to <= low || high <= from));
        if held & !stays == 0 && apart { held } else { 0 }
    }
    /// True where every step writes an operand at the same distance from whole vectors.
    fn even(&self, role: &Role, entry: &Entry, frame: &Frame) -> bool {
        let bytes = role.size * self.program.width;
        frame.steps == 1 || entry[1].addr().is_multiple_of(bytes)
    }
    /// Lets blocks after the first write what is the same for all lanes to a place that nobody reads.
    fn write_elsewhere(&self, table: &mut [Entry], place: *mut u8) {
        for (entry, role) in table.iter_mut().zip(&self.roles) {
            if role.once() {
                *entry = [place, std::ptr::null_mut()];
            }
        }
    }
}

/// Where the code of a shape is kept.
fn version(shape: Shape) -> usize {
    let kind = if shape.masked { 0 } else { 1 + usize::from(shape.streams) + 2 * usize::from(shape.hoists) };
    let kind = kind + if shape.held == 0 { 0 } else { 5 } + if shape.places { 10 } else { 0 };
    20 * (shape.copies - 1) + kind
}

/// Bytes written by one call that no cache keeps.
const LARGE: usize = 16 << 20;

/// From so many steps on it pays to read what stays once.
const MANY: usize = 2;

/// So many operands have their pointers on the stack.
const NEAR: usize = 64;

/// Room for entries on the stack: what is not used is not written.
type Near<T> = [MaybeUninit<T>; NEAR];

/// So many entries on the stack, or if they are more in a vector.
fn room<'a, T: Copy>(near: &'a mut Near<T>, far: &'a mut Vec<T>, n: usize, entry: impl Fn(usize) -> T) -> &'a mut [T] {
    if n > NEAR {
        far.extend((0..n).map(entry));
        return far;
    }
    near[..n].iter_mut().enumerate().for_each(|(k, at)| _ = at.write(entry(k)));
    // SAFETY: so many entries have just been written.
    unsafe { std::slice::from_raw_parts_mut(near.as_mut_ptr().cast(), n) }
}

/// The addresses that a call touches of an operand.
#[inline]
fn range(role: &Role, entry: &Entry, frame: &Frame) -> (isize, isize) {
    let (start, stride) = (entry[0].addr() as isize, if role.carried { 0 } else { entry[1].addr() as isize });
    let span = stride.wrapping_mul(frame.steps as isize - 1);
    let last = role.lane.elements() * (frame.lanes as isize - 1);
    let size = role.size as isize;
    (start + span.min(0) + size * last.min(0), start + span.max(0) + size * (last.max(0) + 1))
}

impl Program {
    fn role(&self, mem: crate::kernel::MemId) -> Role {
        let (lane, size) = (self.mems[mem].lane, self.mems[mem].dtype.size());
        let at_its_place = self.operations.iter().any(|o| o.form == select::Form::Load(mem));
        let loaded = at_its_place || self.values.iter().any(|v| v.birth == select::Birth::Load(mem));
        let stored = self.stores.iter().any(|s| s.0 == mem);
        let keeps = loaded && !at_its_place && !stored && !self.is_apart(mem);
        Role { stored, loaded, carried: self.carries.iter().any(|c| c.mem == mem), keeps, lane, size }
    }
}

impl Code for Emitted {
    unsafe fn run(&self, frame: &Frame) -> usize {
        let operands = self.program.mems.len();
        // SAFETY: a frame has a pointer and a stride for each operand.
        let (ptrs, strides) =
            unsafe { (std::slice::from_raw_parts(frame.ptrs, operands), std::slice::from_raw_parts(frame.strides, operands)) };
        let tail = self.tail(frame.lanes);
        self.with_table(ptrs, strides, |table, aside| match self.one_block(frame, false, self.held(table, frame)) {
            // SAFETY: the caller's promise; the version is that for these lanes.
            Some(native) => unsafe { native.call(&Task::new(table, 1, frame, tail)) },
            // SAFETY: the caller's promise.
            None => unsafe { self.run_parts(table, frame, aside) },
        });
        frame.steps
    }
    /// The code itself goes along the innermost axis.
    unsafe fn run_places(&self, frame: &Frame, ptrs: &mut [*mut u8], places: &Places) {
        let native = if self.handed.is_empty() { self.one_block(frame, true, 0) } else { None };
        match native {
            // SAFETY: the caller's promise; the version is that for these lanes.
            Some(native) => unsafe { self.run_along(native, frame, ptrs, places) },
            None => places.each(ptrs, |ptrs| {
                // SAFETY: the caller's promise.
                unsafe { self.run(&Frame { ptrs: ptrs.as_ptr(), ..*frame }) };
            }),
        }
    }
    fn ready(self: Arc<Self>, frame: &Frame, places: &Places, reach: &[(isize, isize)]) -> Option<Box<dyn Ready>> {
        Some(Box::new(Prepared::new(self, frame, places, reach)?))
    }
    fn engine(&self) -> &'static str {
        self.program.isa.name()
    }
}

impl Emitted {
    /// Calls `run` with the table of operands and a place for what only the first block writes; then hands on the last values of carries
    /// that all lanes share.
    fn with_table(&self, ptrs: &[*mut u8], strides: &[isize], run: impl FnOnce(&mut [Entry], *mut u8)) {
        let (operands, carries) = (ptrs.len(), self.program.carries.len());
        let (mut near, mut far) = ([const { MaybeUninit::uninit() }; NEAR], vec![]);
        let aside: &mut [u64] = room(&mut near, &mut far, carries + 1, |_| 0);
        let places = aside.as_mut_ptr();
        // SAFETY: the places are within `aside`.
        let place = |at: usize| unsafe { places.add(at) }.cast::<u8>();
        let (mut near, mut far) = ([const { MaybeUninit::uninit() }; NEAR], vec![]);
        let entry = |k: usize| match k.checked_sub(operands) {
            None => [ptrs[k], strides[k] as *mut u8],
            Some(carry) => [place(carry), std::ptr::null_mut()],
        };
        let table: &mut [Entry] = room(&mut near, &mut far, operands + carries, entry);
        run(table, place(carries));
        for &(c, mem, size) in &self.handed {
            // SAFETY: the operand of a carry may be written; the element has that size.
            unsafe { std::ptr::copy_nonoverlapping(place(c), ptrs[mem], size) };
        }
    }
    /// Runs a version for all lanes that goes along the innermost axis, at all places of the others.
    ///
    /// # Safety
    /// As for [`Code::run_places`]; there is no carry that lanes share.
    unsafe fn run_along(&self, native: Function, frame: &Frame, ptrs: &mut [*mut u8], places: &Places) {
        // SAFETY: a frame has a stride for each operand.
        let strides = unsafe { std::slice::from_raw_parts(frame.strides, ptrs.len()) };
        let (count, moves) = places.innermost(ptrs.len());
        let (mut near, mut far) = ([const { MaybeUninit::uninit() }; NEAR], vec![]);
        let entry = |k: usize| [std::ptr::null_mut(), strides.get(k).map_or(std::ptr::null_mut(), |&s| s as *mut u8)];
        let table: &mut [Entry] = room(&mut near, &mut far, ptrs.len() + self.program.carries.len(), entry);
        let task = Task { moves: moves.as_ptr(), ..Task::new(table, count, frame, self.tail(frame.lanes)) };
        places.each_run(ptrs, |ptrs| {
            // SAFETY: the table has an entry per operand; it is written by way of the pointer that the task has.
            let table = unsafe { std::slice::from_raw_parts_mut(task.table, ptrs.len()) };
            table.iter_mut().zip(ptrs).for_each(|(entry, &ptr)| entry[0] = ptr);
            // SAFETY: the caller's promise; the version is that for these lanes, and moves pointers as told from a place to the next. Carries
            // that lanes share are none, so that nothing is put aside.
            unsafe { native.call(&task) };
        });
    }
    /// How many lanes the last vector has.
    fn tail(&self, lanes: usize) -> usize {
        (lanes - 1) % self.program.width + 1
    }
    /// The version that does all lanes at once, at one place or along an axis of `places`, if there is one and the call is not large;
    /// operands of `held` are read before the first step.
    fn one_block(&self, frame: &Frame, places: bool, held: u64) -> Option<Function> {
        let width = self.program.width;
        let copies = (frame.lanes - 1) / width + 1;
        let masked = !frame.lanes.is_multiple_of(width);
        let small = copies <= self.copies && !self.is_large(frame);
        small.then(|| self.native(Shape { copies, masked, streams: false, hoists: false, places, held }))?
    }
    /// True where a call writes more than caches keep.
    fn is_large(&self, frame: &Frame) -> bool {
        self.written.saturating_mul(frame.whole).saturating_mul(frame.steps) >= self.large
    }
    /// Runs block after block. `unread` is a place for what only the first block writes.
    ///
    /// # Safety
    /// As for `Code::run`; the table is that of the frame.
    unsafe fn run_parts(&self, table: &mut [Entry], frame: &Frame, unread: *mut u8) {
        if frame.steps == 1 && !self.is_large(frame) {
            let (lanes, blocks) = self.cut.get_or_init(|| (frame.lanes, self.parts(table, frame, 0).1));
            if *lanes == frame.lanes {
                // SAFETY: the caller's promise.
                return unsafe { self.run_blocks(table, frame, unread, (0, blocks)) };
            }
        }
        let (first, blocks) = self.parts(table, frame, self.held(table, frame));
        // SAFETY: the caller's promise.
        unsafe { self.run_blocks(table, frame, unread, (first, &blocks)) };
    }
    /// Runs these blocks, of which the first has so many lanes, if not 0.
    ///
    /// # Safety
    /// As for [`Emitted::run_parts`]; the blocks are those of the frame's lanes.
    unsafe fn run_blocks(&self, table: &mut [Entry], frame: &Frame, unread: *mut u8, (first, blocks): (usize, &Blocks)) {
        let mut left = frame.lanes;
        for (i, block) in blocks.iter().enumerate() {
            if i == 1 {
                self.write_elsewhere(table, unread);
            }
            let covered = block.lanes * block.count;
            let lanes = if i == 0 && first > 0 { first } else { left.min(covered) };
            let tail = lanes + self.program.width - covered;
            let task = Task::new(table, block.count, frame, tail);
            if let Some(Some(native)) = self.versions[block.version].get() {
                // SAFETY: the caller's promise; the table has moved on behind the lanes that are done.
                unsafe { native.function().call(&task) };
            }
            self.step_back(table, covered - lanes);
            left -= lanes;
        }
    }
    /// Moves pointers back by lanes that the last vector did not have.
    fn step_back(&self, table: &mut [Entry], lanes: usize) {
        if lanes > 0 {
            for (entry, role) in table.iter_mut().zip(&self.roles).filter(|(_, role)| role.lane.varies()) {
                entry[0] = entry[0].wrapping_offset(-role.lane.elements() * (lanes * role.size) as isize);
            }
        }
    }
    /// The blocks of a call; the first alone, where it does more than others. If not 0, how many lanes the first has. Operands of `held`
    /// are read before the first step.
    fn parts(&self, table: &[Entry], frame: &Frame, held: u64) -> (usize, Blocks) {
        let streams = self.streams(table, frame);
        let first = streams.unwrap_or(0);
        let mut parts = self.blocks(frame.lanes - first, streams.is_some(), self.hoists && frame.steps == 1, held);
        if parts.iter().any(|b| self.native(b.0).is_none()) {
            parts = self.single(frame.lanes - first);
        }
        if self.roles.iter().any(|r| r.once()) && parts[0].1 > 1 && first == 0 {
            parts[0].1 -= 1;
            parts.insert(0, (parts[0].0, 1));
        }
        if first > 0 {
            parts.insert(0, (ONE, 1));
        }
        let width = self.program.width;
        (first, parts.into_iter().map(|(shape, count)| Block { version: version(shape), lanes: shape.copies * width, count }).collect())
    }
}

impl Task {
    /// A task of some blocks; `tail` lanes are in the last vector.
    #[inline]
    fn new(table: &mut [[*mut u8; 2]], blocks: usize, frame: &Frame, tail: usize) -> Task {
        Task {
            table: table.as_mut_ptr(),
            moves: std::ptr::null(),
            blocks,
            steps: frame.steps,
            first: frame.first,
            mask: (1u64 << tail.min(63)) - 1,
            wide: std::array::from_fn(|l| -i64::from(l < tail)),
            narrow: std::array::from_fn(|l| -i32::from(l < tail)),
        }
    }
}
