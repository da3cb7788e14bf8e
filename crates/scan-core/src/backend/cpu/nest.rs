//! Runs kernels inside counted loops, with all operands checked before.

use super::code::{Code, Frame, Moving, Places, Ready, check_beside};
use super::memory::Memory;
use super::spot::{Spot, Steps, moved};
use crate::kernel::{Fill, LEVELS, MemId, Nest, Op, Store, Strides, Use};
use smallvec::{SmallVec, smallvec};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;

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
}

impl NestPlan {
    /// Of a nest.
    ///
    /// # Panics
    /// Where the nest is not consistent: a fault of the planner.
    pub fn new(nest: Nest) -> NestPlan {
        assert!(nest.lanes > 0 && nest.steps > 0, "the kernel of a nest has lanes and steps");
        assert!(
            nest.kernel.stop.is_none() || nest.lanes == 1 && nest.outer.is_empty(),
            "a kernel that stops has one lane and no axes around"
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
    code: &'a dyn Code,
    nest: &'a NestPlan,
    /// The first element of each operand at the first steps.
    ptrs: SmallVec<[*mut u8; 12]>,
    /// How operands move with the loops around.
    along: Moving,
    /// Steps of the loops around.
    counts: Steps,
    /// The call of all steps, where the engine has it ready.
    ready: Option<Box<dyn Ready + 'a>>,
    /// How the operands move whose pointers are enough for it.
    few: Option<Box<Moving>>,
    /// The memory of the operands.
    memory: PhantomData<&'a Cell<u8>>,
}

/// A call that is made so often is made ready.
const AGAIN: usize = 4;

/// The addresses of operands, on the stack where they are not very many.
type Addresses = SmallVec<[*mut u8; 64]>;

impl<'a> NestRun<'a> {
    /// Code of a nest's kernel with operands for so many steps of the loops around.
    ///
    /// # Panics
    /// Where an operand lies outside its memory at one of the steps, is misaligned, or is written but only readable: a fault of the planner,
    /// caught before anything is touched.
    pub fn new(code: &'a dyn Code, nest: &'a NestPlan, operands: &[Spot<'a>], counts: Steps) -> NestRun<'a> {
        assert_eq!(operands.len(), nest.kernel.mems.len(), "operands of a kernel");
        assert!(counts.iter().all(|&n| n > 0), "there are steps");
        let reach = |(k, operand): (usize, &Spot)| checked_reach(nest, k, operand, &counts);
        let reach: SmallVec<[(isize, isize); 12]> = operands.iter().enumerate().map(reach).collect();
        let ptrs = operands.iter().map(|o| o.first().ptr()).collect();
        let along = moving(operands.iter().enumerate());
        let mut run = NestRun { code, nest, ptrs, along, counts, ready: None, few: None, memory: PhantomData };
        if nest.beside {
            check_beside(&nest.kernel, |k| (run.ptrs[k], (&nest.strides[k], operands[k].strides())));
        }
        let calls = counts.iter().product::<usize>().saturating_mul(nest.places());
        if calls >= AGAIN {
            run.ready = code.ready(&run.frame(&run.ptrs, (0, nest.steps)), &run.places(), &reach);
            let found = |few: &&[usize]| nest.fills.iter().all(|fill| few.contains(&fill.operand));
            let few = run.ready.as_ref().and_then(|ready| ready.few()).filter(found);
            run.few = few.map(|few| Box::new(moving(few.iter().map(|&k| (k, &operands[k])))));
        }
        run
    }

    /// A call of so many steps of the kernel, from a step on.
    fn frame(&self, ptrs: &[*mut u8], (from, n): (usize, usize)) -> Frame {
        let nest = self.nest;
        let first = nest.first + from as i64;
        Frame { ptrs: ptrs.as_ptr(), strides: nest.own.as_ptr(), lanes: nest.lanes, steps: n, first, whole: nest.lanes }
    }

    fn places(&self) -> Places<'_> {
        Places { extents: &self.nest.outer, moves: &self.nest.moves }
    }

    /// Runs at these steps of the loops around.
    ///
    /// # Panics
    /// At steps that were not checked.
    pub fn run(&self, at: &Steps) {
        self.run_part(at, 0, self.nest.steps);
    }

    /// Runs n steps of the kernel from step `from` on, at these steps of the loops around; how many ran.
    ///
    /// # Panics
    /// At steps that were not checked.
    pub fn run_part(&self, at: &Steps, from: usize, n: usize) -> usize {
        let nest = self.nest;
        assert!(at.iter().zip(&self.counts).all(|(k, n)| k < n), "steps that were checked");
        assert!(n > 0 && n <= nest.steps - from, "steps of the kernel that were checked");
        if let (Some(ready), Some(along), true) = (&self.ready, &self.few, n == nest.steps) {
            for fill in &nest.fills {
                let by = along.iter().find(|(_, operands)| operands.contains(&fill.operand)).map_or(0, |(strides, _)| moved(strides, at));
                // SAFETY: `new` has checked that the elements to be filled lie in memory that may be written.
                unsafe { self.fill(fill, self.ptrs[fill.operand].wrapping_offset(by)) };
            }
            // SAFETY: `new` has checked the elements of all steps and places, in memory that is borrowed as long as `self` lives, and where
            // operands lie that are found by way of these.
            unsafe { ready.run_few(along, at) };
            return n;
        }
        self.run_all_pointers(at, from, n)
    }

    /// As [`NestRun::run_part`], which has checked the steps: apart from it, since it runs at most steps and needs room for few pointers.
    #[inline(never)]
    fn run_all_pointers(&self, at: &Steps, from: usize, n: usize) -> usize {
        let nest = self.nest;
        let mut ptrs = Addresses::from_slice(&self.ptrs);
        let ptrs = &mut ptrs[..];
        for (strides, operands) in &self.along {
            let by = moved(strides, at);
            operands.iter().for_each(|&k| ptrs[k] = ptrs[k].wrapping_offset(by));
        }
        if from > 0 {
            self.go_on(ptrs, from);
        }
        for fill in &nest.fills {
            // SAFETY: `new` has checked that the elements to be filled lie in memory that may be written.
            unsafe { self.fill(fill, ptrs[fill.operand]) };
        }
        if let (Some(ready), true) = (&self.ready, n == nest.steps) {
            // SAFETY: `new` has checked the elements of all steps and places, in memory that is borrowed as long as `self` lives.
            unsafe { ready.run(ptrs, &self.places()) };
            return n;
        }
        let frame = self.frame(ptrs, (from, n));
        if nest.outer.is_empty() {
            // SAFETY: `new` has checked the elements of all steps, in memory that is borrowed as long as `self` lives.
            return unsafe { self.code.run(&frame) };
        }
        if nest.places() > 0 {
            // SAFETY: as above, of all places.
            unsafe { self.code.run_places(&frame, ptrs, &self.places()) };
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
fn moving<'a>(operands: impl Iterator<Item = (usize, &'a Spot<'a>)>) -> Moving {
    let mut all = Moving::new();
    for (k, strides) in operands.map(|(k, o)| (k, *o.strides())).filter(|(_, strides)| *strides != [0; LEVELS]) {
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
        assert!(stride % size as isize == 0, "operand {k} is misaligned");
    }
    let at = first.ptr().addr() as isize;
    let reach = (at + low, at + high);
    let (low, high) = (first.offset as isize + low, first.offset as isize + high);
    assert!(low >= 0 && high as usize <= first.memory.len(), "operand {k} reaches from {low} to {high} of {}", first.memory.len());
    assert!(first.ptr().addr().is_multiple_of(size), "operand {k} is misaligned");
    reach
}
