//! Runs kernels inside counted loops, with all operands checked before.

use super::code::{Action, Code, Frame, Moving, Places, Ready, act, check_beside};
use super::memory::Memory;
use super::spot::{Spot, Steps, moved};
use crate::kernel::{Fill, LEVELS, MemId, Nest, Op, Store, Strides, Use};
use smallvec::{SmallVec, smallvec};
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A nest with what is known of its operands before they have a place.
pub struct NestPlan {
    nest: Nest,
    uses: SmallVec<[Use; 16]>,
    /// The bytes that each operand touches, before and behind its first element's begin.
    reach: SmallVec<[(isize, isize); 12]>,
    /// Bytes from one step of the kernel to the next.
    own: SmallVec<[isize; 12]>,
    /// Bytes from one place of the outer axes to the next.
    moves: Vec<isize>,
    /// Operands that lie beside others.
    beside: bool,
    /// What runs needed, for the next ones.
    kept: Mutex<Kept>,
}

impl NestPlan {
    /// Of a nest.
    ///
    /// # Panics
    /// Where the nest is not consistent: a fault of the planner.
    pub fn new(nest: Nest) -> NestPlan {
        assert!(nest.lanes > 0 && nest.steps > 0, "the kernel of a nest has lanes and steps");
        assert!(
            nest.kernel.stop.is_none() && !nest.kernel.has_loops() || nest.lanes == 1 && nest.outer.is_empty(),
            "a kernel that stops, or runs loops, has one lane and no axes around"
        );
        let uses = Use::of(&nest.kernel);
        for (k, (mem, &of)) in nest.kernel.mems.iter().zip(&uses).enumerate() {
            let (own, size, carried) = (&nest.strides[k], mem.dtype.size() as isize, of == Use::Carried);
            assert!(carried || mem.stride.is_none_or(|s| s as isize == own.step), "operand {k} does not move by {}", own.step);
            assert!([own.step].iter().filter(|_| !carried).chain(&own.outer).all(|s| s % size == 0), "operand {k} is misaligned");
        }
        NestPlan {
            reach: uses.iter().enumerate().map(|(k, &of)| nest.reach(k, of)).collect(),
            own: nest.strides.iter().map(|s| s.step).collect(),
            moves: moves(&nest),
            beside: nest.kernel.mems.iter().any(|mem| mem.beside.is_some()),
            uses,
            nest,
            kept: Mutex::default(),
        }
    }
    /// True where all that it writes is what lies there: it stores what it has loaded from the same elements.
    pub fn keeps(&self, operands: &[Spot]) -> bool {
        let kernel = &self.nest.kernel;
        let place = |mem: MemId| {
            let (k, of) = (mem.0 as usize, &kernel.mems[mem]);
            (operands[k].first().ptr(), operands[k].strides(), &self.nest.strides[k], of.lane, of.dtype)
        };
        let kept =
            |store: &Store| matches!(kernel.body[store.value].op, Op::Load(from) if store.at.is_none() && place(from) == place(store.mem));
        self.nest.fills.is_empty() && kernel.carries.is_empty() && kernel.stores.iter().all(kept)
    }
}

impl Deref for NestPlan {
    type Target = Nest;
    fn deref(&self) -> &Nest {
        &self.nest
    }
}

/// Compiled code of a nest's kernel with operands that were checked for all steps of the loops around.
pub struct NestRun<'a> {
    /// Given back to the nest in the end.
    laid: ManuallyDrop<Box<Laid>>,
    nest: &'a NestPlan,
    /// The memory of the operands.
    memory: PhantomData<&'a Cell<u8>>,
}

/// What a run needs beside the nest. Nothing of it holds a lifetime: the nest keeps it for its next runs, whose operands begin elsewhere.
struct Laid {
    code: Arc<dyn Code>,
    /// The first element of each operand at the first steps,
    ptrs: SmallVec<[*mut u8; 12]>,
    /// and at those of the last run.
    now: SmallVec<[Cell<*mut u8>; 12]>,
    /// How each operand moves with the loops around,
    strides: SmallVec<[[isize; LEVELS]; 12]>,
    /// and which move, by how.
    along: Moving,
    /// Steps of the loops around.
    counts: Steps,
    /// An earlier run has needed it, too.
    again: bool,
    /// The call of all steps, where the engine has it ready; `None` where it was not asked yet.
    ready: Option<Option<Box<dyn Ready>>>,
    /// What a run of all steps is, where it is but a few things,
    actions: Vec<Action>,
    /// and the frame of generated code.
    frame: Option<Box<Frame>>,
}

// SAFETY: pointers are followed by the run alone that has set them, and what a call is made ready with is shared with nobody.
unsafe impl Send for Laid {}

/// Boxed: a run takes one and gives it back, which moves a pointer and not a thousand bytes.
type Kept = Vec<Box<Laid>>;

/// A call that is made so often is made ready.
const AGAIN: usize = 4;

/// A nest keeps so many of what its runs needed: where rows take turns a loop has two at a time, in each thread that runs it.
const KEPT: usize = 8;

/// The addresses of operands, on the stack where they are not very many.
type Addresses = SmallVec<[*mut u8; 64]>;

/// The addresses from and up to which each operand is touched.
type Reach = SmallVec<[(isize, isize); 12]>;

impl Laid {
    fn new(code: Arc<dyn Code>) -> Laid {
        let (ptrs, now, strides, along) = (SmallVec::new(), SmallVec::new(), SmallVec::new(), Moving::new());
        Laid { code, ptrs, now, strides, along, counts: [1; LEVELS], again: false, ready: None, actions: vec![], frame: None }
    }
    /// Takes operands that move otherwise.
    fn take<'s>(&mut self, operands: impl Iterator<Item = Spot<'s>>) {
        self.strides = operands.map(|operand| *operand.strides()).collect();
        self.along = moving(self.strides.iter().enumerate());
        (self.ready, self.actions) = (None, vec![]);
        self.ptrs = SmallVec::from_elem(std::ptr::null_mut(), self.strides.len());
        self.now = self.ptrs.iter().copied().map(Cell::new).collect();
    }
    /// Finds these operands; false where they move otherwise than those that it was made for.
    fn begin<'s>(&mut self, nest: &NestPlan, operands: impl Iterator<Item = Spot<'s>>, counts: Steps) -> bool {
        assert!(counts.iter().all(|&n| n > 0), "there are steps");
        let mut reach = Reach::new();
        for (k, operand) in operands.enumerate() {
            if self.strides.get(k).is_none_or(|strides| !operand.moves_by(strides)) {
                return false;
            }
            self.ptrs[k] = operand.first().ptr();
            self.now[k].set(self.ptrs[k]);
            reach.push(checked_reach(nest, k, &operand, &counts));
        }
        assert!(reach.len() == self.ptrs.len() && reach.len() == nest.kernel.mems.len(), "operands of a kernel");
        if nest.beside {
            check_beside(&nest.kernel, |k| (self.ptrs[k], (&nest.strides[k], &self.strides[k])));
        }
        self.counts = counts;
        if let Some(Some(ready)) = &mut self.ready
            && !ready.begin(&self.ptrs, &reach)
        {
            (self.ready, self.actions) = (None, vec![]);
        }
        for action in &mut self.actions {
            if let Action::Place { operand, ptr, .. } = action {
                *ptr = self.ptrs[*operand];
            }
        }
        let calls = || counts.iter().product::<usize>().saturating_mul(nest.places());
        if self.ready.is_none() && (self.again || calls() >= AGAIN) {
            self.make_ready(nest, &reach);
        }
        true
    }
    fn make_ready(&mut self, nest: &NestPlan, reach: &Reach) {
        let ready = self.code.clone().ready(&nest.frame(self.ptrs.as_ptr(), (0, nest.steps)), &nest.all_places(), reach);
        self.actions = match &ready {
            Some(ready) => ready.actions().unwrap_or_default(),
            None => self.generated(nest).unwrap_or_default(),
        };
        for action in &mut self.actions {
            if let Action::Place { operand, strides, .. } = action {
                *strides = self.strides[*operand];
            }
        }
        self.ready = Some(ready);
    }
    /// A run of all steps by generated code, which reads where operands lie and does not move that.
    fn generated(&mut self, nest: &NestPlan) -> Option<Vec<Action>> {
        let frame = nest.frame(self.now.as_ptr().cast(), (0, nest.steps));
        let one = nest.outer.is_empty() && nest.kernel.stop.is_none();
        let (run, frame) = self.code.generated(frame).filter(|_| one)?;
        let frame = &**self.frame.insert(Box::new(frame));
        let moving = self.along.iter().flat_map(|(_, operands)| operands);
        let place =
            |&operand: &usize| Action::Place { operand, at: self.now[operand].as_ptr(), ptr: self.ptrs[operand], strides: [0; LEVELS] };
        Some(moving.map(place).chain([Action::Frame(run, frame)]).collect())
    }
}

impl NestPlan {
    /// A call of so many steps of the kernel, from a step on.
    fn frame(&self, ptrs: *const *mut u8, (from, n): (usize, usize)) -> Frame {
        let first = self.first + from as i64;
        Frame { ptrs, strides: self.own.as_ptr(), lanes: self.lanes, steps: n, first, whole: self.lanes, own: std::ptr::null_mut() }
    }
    fn all_places(&self) -> Places<'_> {
        Places { extents: &self.outer, moves: &self.moves }
    }
    /// What runs of it have needed.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for NestRun<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing uses it behind this.
        let mut laid = unsafe { ManuallyDrop::take(&mut self.laid) };
        laid.again = true;
        let mut kept = self.nest.kept();
        if kept.len() < KEPT {
            kept.push(laid);
        }
    }
}

impl<'a> NestRun<'a> {
    /// Code of a nest's kernel with operands for so many steps of the loops around.
    ///
    /// # Panics
    /// Where an operand lies outside its memory at one of the steps, is misaligned, or is written but only readable: a fault of the planner,
    /// caught before anything is touched.
    pub fn new(code: &Arc<dyn Code>, nest: &'a NestPlan, operands: impl Iterator<Item = Spot<'a>> + Clone, counts: Steps) -> NestRun<'a> {
        let kept = nest.kept().pop();
        let mut laid = kept.filter(|laid| Arc::ptr_eq(&laid.code, code)).unwrap_or_else(|| Box::new(Laid::new(code.clone())));
        if !laid.begin(nest, operands.clone(), counts) {
            laid.take(operands.clone());
            assert!(laid.begin(nest, operands, counts), "operands that were taken");
        }
        NestRun { laid: ManuallyDrop::new(laid), nest, memory: PhantomData }
    }

    /// Runs at these steps of the loops around.
    ///
    /// # Panics
    /// At steps that were not checked.
    #[inline]
    pub fn run(&self, at: &Steps) {
        self.run_part(at, 0, self.nest.steps);
    }

    /// Runs n steps of the kernel from step `from` on, at these steps of the loops around; how many ran.
    ///
    /// # Panics
    /// At steps that were not checked.
    #[inline]
    pub fn run_part(&self, at: &Steps, from: usize, n: usize) -> usize {
        let (nest, laid) = (self.nest, &**self.laid);
        assert!(at.iter().zip(&laid.counts).all(|(k, n)| k < n), "steps that were checked");
        assert!(n > 0 && n <= nest.steps - from, "steps of the kernel that were checked");
        for fill in &nest.fills {
            let to = laid.ptrs[fill.operand].wrapping_offset(moved(&laid.strides[fill.operand], at));
            // SAFETY: `new` has checked that the elements to be filled lie in memory that may be written.
            unsafe { self.fill(fill, to) };
        }
        if n == nest.steps && !laid.actions.is_empty() {
            // SAFETY: `new` has checked the elements of all steps and places, in memory that is borrowed as long as `self` lives, and where
            // operands lie that are found by way of others.
            unsafe { act(&laid.actions, at) };
            return n;
        }
        self.run_pointers(at, from, n)
    }

    /// As [`NestRun::run_part`], where a run is not a few things: apart, since it needs room for all pointers.
    #[inline(never)]
    fn run_pointers(&self, at: &Steps, from: usize, n: usize) -> usize {
        let (nest, laid) = (self.nest, &**self.laid);
        for (strides, operands) in &laid.along {
            let by = moved(strides, at);
            operands.iter().for_each(|&k| laid.now[k].set(laid.ptrs[k].wrapping_offset(by)));
        }
        if laid.ready.as_ref().is_none_or(Option::is_none) && nest.outer.is_empty() && from == 0 {
            let frame = nest.frame(laid.now.as_ptr().cast(), (0, n));
            // SAFETY: `new` has checked the elements of all steps, in memory that is borrowed as long as `self` lives.
            return unsafe { laid.code.run(&frame) };
        }
        let mut ptrs: Addresses = laid.now.iter().map(Cell::get).collect();
        let ptrs = &mut ptrs[..];
        if from > 0 {
            self.go_on(ptrs, from);
        }
        if let (Some(Some(ready)), true) = (&laid.ready, n == nest.steps) {
            // SAFETY: `new` has checked the elements of all steps and places, in memory that is borrowed as long as `self` lives.
            unsafe { ready.run(ptrs, &nest.all_places()) };
            return n;
        }
        let frame = nest.frame(ptrs.as_ptr(), (from, n));
        if nest.outer.is_empty() {
            // SAFETY: as above.
            return unsafe { laid.code.run(&frame) };
        }
        if nest.places() > 0 {
            // SAFETY: as above, of all places.
            unsafe { laid.code.run_places(&frame, ptrs, &nest.all_places()) };
        }
        n
    }

    /// Moves what a kernel does not carry on by so many of its steps.
    fn go_on(&self, ptrs: &mut [*mut u8], steps: usize) {
        for ((ptr, &step), &of) in ptrs.iter_mut().zip(&self.nest.own).zip(&self.nest.uses) {
            if of != Use::Carried {
                *ptr = ptr.wrapping_offset(step * steps as isize);
            }
        }
    }

    /// # Safety
    /// The elements lie in memory that may be written, aligned to their size.
    unsafe fn fill(&self, fill: &Fill, to: *mut u8) {
        let size = self.nest.kernel.mems[MemId(fill.operand as u32)].dtype.size();
        // SAFETY: the caller's promise.
        unsafe {
            match size {
                1 => std::slice::from_raw_parts_mut(to, fill.count).fill(fill.bits as u8),
                2 => std::slice::from_raw_parts_mut(to.cast::<u16>(), fill.count).fill(fill.bits as u16),
                4 => std::slice::from_raw_parts_mut(to.cast::<u32>(), fill.count).fill(fill.bits as u32),
                _ => std::slice::from_raw_parts_mut(to.cast::<u64>(), fill.count).fill(fill.bits),
            }
        }
    }
}

/// The operands that move with the loops around, by how.
fn moving<'a>(operands: impl Iterator<Item = (usize, &'a [isize; LEVELS])>) -> Moving {
    let mut all = Moving::new();
    for (k, &strides) in operands.filter(|(_, strides)| **strides != [0; LEVELS]) {
        match all.iter_mut().find(|(known, _)| *known == strides) {
            Some((_, alike)) => alike.push(k),
            None => all.push((strides, smallvec![k])),
        }
    }
    all
}

/// Per outer axis and operand: bytes from a place to the next, where that axis goes on and those inside begin again.
fn moves(nest: &Nest) -> Vec<isize> {
    let mut moves = vec![];
    for axis in 0..nest.outer.len() {
        let back = |strides: &Strides| -> isize {
            (axis + 1..nest.outer.len()).map(|inner| strides.outer[inner] * (nest.outer[inner] as isize - 1)).sum()
        };
        moves.extend(nest.strides.iter().map(|strides| strides.outer[axis] - back(strides)));
    }
    moves
}

/// Checks an operand; the addresses from and up to which it is touched.
fn checked_reach(nest: &NestPlan, k: usize, operand: &Spot, counts: &Steps) -> (isize, isize) {
    let first = operand.first();
    let size = nest.kernel.mems[MemId(k as u32)].dtype.size();
    assert!(nest.uses[k] == Use::Read || matches!(first.memory, Memory::Write(_)), "operand {k} is written but only readable");
    let (mut low, mut high) = nest.reach[k];
    for (&stride, &n) in operand.strides().iter().zip(counts).filter(|(stride, _)| **stride != 0) {
        let span = stride.checked_mul(n as isize - 1).expect("a stride that fits");
        (low, high) = (low + span.min(0), high + span.max(0));
        assert!(aligned(stride as usize, size), "operand {k} is misaligned");
    }
    let at = first.ptr().addr() as isize;
    let reach = (at + low, at + high);
    let (low, high) = (first.offset as isize + low, first.offset as isize + high);
    assert!(low >= 0 && high as usize <= first.memory.len(), "operand {k} reaches from {low} to {high} of {}", first.memory.len());
    assert!(aligned(first.ptr().addr(), size), "operand {k} is misaligned");
    reach
}

/// True for a multiple of an element's size, a power of two.
fn aligned(bytes: usize, size: usize) -> bool {
    bytes & (size - 1) == 0
}
