//! Runs programs.

use super::super::code::Frame;
use super::loops::Loop;
use super::program::{Call, Place, Points, Program};
use crate::kernel::{Kernel, MemId};
use smallvec::SmallVec;
use std::cell::Cell;

/// Part of a file of registers, aligned as vectors like it.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

thread_local! {
    /// The file of the last run in this thread, to be used again.
    static FILE: Cell<Vec<Line>> = const { Cell::new(vec![]) };
}

/// A call of a program of so many places takes no memory for them.
const PLACES: usize = 128;

/// An operand of this call, as addresses.
struct Extent {
    at: isize,
    row: isize,
    stride: isize,
    steps: isize,
}

impl Extent {
    /// Whether, within a step, the elements of one are among those of the other.
    #[inline]
    fn meets(&self, other: &Extent) -> bool {
        let row = |e: &Extent| (e.at, e.at + e.row);
        let all = |e: &Extent| (e.at + (e.stride * (e.steps - 1)).min(0), e.at + (e.stride * (e.steps - 1)).max(0) + e.row);
        let ((a, b), (c, d)) = if self.stride == other.stride { (row(self), row(other)) } else { (all(self), all(other)) };
        a < d && c < b
    }
}

/// True where a call in the midst of the step would write what a later one reads, or what a store writes too.
///
/// # Safety
/// The frame has an entry per operand.
pub unsafe fn collides(kernel: &Kernel, program: &Program, frame: &Frame) -> bool {
    let extent = |m: MemId| {
        let mem = &kernel.mems[m];
        let (low, high) = mem.row(frame.lanes);
        // SAFETY: m is an operand.
        let (at, stride) = unsafe { ((*frame.ptrs.add(m.0 as usize)).addr() as isize, *frame.strides.add(m.0 as usize)) };
        Extent { at: at + low, row: high - low, stride, steps: frame.steps as isize }
    };
    program.direct.iter().any(|&(written, when)| {
        let to = extent(written);
        let read = |&(m, last): &(MemId, usize)| m != written && last >= when && to.meets(&extent(m));
        program.reads.iter().any(read) || kernel.stores.iter().any(|s| s.mem != written && to.meets(&extent(s.mem)))
    })
}

/// Runs a program; the number of steps that ran.
///
/// # Safety
/// As for `Code::run`; the program is one of the kernel for this number of lanes, and does not collide.
pub unsafe fn run(kernel: &Kernel, program: &Program, frame: &Frame) -> usize {
    let mut file = FILE.take();
    if file.len() * size_of::<Line>() < program.bytes {
        file.resize(program.bytes.div_ceil(size_of::<Line>()), Line([0; 64]));
    }
    // SAFETY: as granted by the caller; the file is as long as the program says.
    let ran = unsafe { blocks(kernel, program, frame, file.as_mut_ptr().cast()) };
    FILE.set(file);
    ran
}

/// Runs all steps for one chunk of lanes after the other.
unsafe fn blocks(kernel: &Kernel, program: &Program, frame: &Frame, file: *mut u8) -> usize {
    let mut places: SmallVec<[*mut u8; PLACES]> = program.offsets.iter().map(|&o| file.wrapping_add(o)).collect();
    let mut moving: SmallVec<[(Place, isize); 16]> = SmallVec::new();
    let mut ran = 0;
    // SAFETY: operands and their strides have an entry each; slots lie in the file; fills are slots.
    unsafe {
        for (place, points) in program.places.iter().enumerate() {
            if let Points::Mem(m) = points {
                moving.push((place as Place, *frame.strides.add(m.0 as usize)));
            }
        }
        moving.retain(|m| m.1 != 0);
        fill(program, &places);
        let mut block = 0;
        while block < frame.lanes {
            let lanes = program.chunk.min(frame.lanes - block);
            let first = block;
            let operand = |m: MemId| {
                let mem = &kernel.mems[m];
                let along = mem.lane.elements() * (first * mem.dtype.size()) as isize;
                (*frame.ptrs.add(m.0 as usize)).wrapping_offset(along)
            };
            for (place, points) in places.iter_mut().zip(&program.places) {
                if let Points::Mem(m) = points {
                    *place = operand(*m);
                }
            }
            for c in &program.carried {
                let (to, from) = (places[c.place as usize], operand(c.mem));
                (c.copies[0])(to, from, (&raw const c.by).cast(), from, lanes);
            }
            ran = if frame.lanes == 1 {
                steps_of_one(program, &places, &moving, frame)
            } else {
                steps(program, &mut places, &moving, lanes, frame)
            };
            block += lanes;
            for c in program.carried.iter().filter(|c| !c.uniform || block == frame.lanes) {
                let (to, from) = (operand(c.mem), places[c.place as usize]);
                (c.copies[1])(to, from, (&raw const c.by).cast(), from, lanes);
            }
        }
    }
    ran
}

/// Sets constants, for chunks as long as they get.
unsafe fn fill(program: &Program, places: &[*mut u8]) {
    for fill in &program.fills {
        let (to, from) = (places[fill.to as usize], (&raw const fill.bits).cast::<u8>());
        // SAFETY: slots of one element have eight bytes, those of chunks a chunk's.
        unsafe {
            match fill.splat {
                Some(splat) => splat(to, from, from, from, program.chunk),
                None => to.cast::<u64>().write(fill.bits),
            }
        }
    }
}

/// Runs all steps for the lanes of one chunk.
unsafe fn steps(program: &Program, places: &mut [*mut u8], moving: &[(Place, isize)], lanes: usize, frame: &Frame) -> usize {
    let places = places.as_mut_ptr();
    // SAFETY: a program names no other places than it has; what they point to is as the loops demand.
    unsafe {
        for t in 0..frame.steps {
            if let Some(step) = program.step {
                (*places.add(step as usize)).cast::<i64>().write(frame.first.wrapping_add(t as i64));
            }
            for call in &program.calls {
                let at = |place: Place| *places.add(place as usize);
                (call.run)(at(call.to), at(call.args[0]), at(call.args[1]), at(call.args[2]), lanes);
            }
            exchange(program, places);
            for &(place, stride) in moving {
                let place = places.add(place as usize);
                *place = (*place).wrapping_offset(stride);
            }
        }
    }
    frame.steps
}

/// A call with its pointers.
#[derive(Clone, Copy)]
struct Bound {
    run: Loop,
    at: [*mut u8; 4],
}

/// Runs all steps of one lane; the number of steps that ran.
unsafe fn steps_of_one(program: &Program, places: &[*mut u8], moving: &[(Place, isize)], frame: &Frame) -> usize {
    let at = |place: Place| places[place as usize];
    let bind = |c: &Call| Bound { run: c.run, at: [at(c.to), at(c.args[0]), at(c.args[1]), at(c.args[2])] };
    let mut calls: SmallVec<[Bound; 32]> = program.calls.iter().map(bind).collect();
    let mut moves: SmallVec<[(*mut *mut u8, isize); 32]> = SmallVec::new();
    if frame.steps > 1 {
        let mut strides: SmallVec<[isize; PLACES]> = SmallVec::from_elem(0, places.len());
        moving.iter().for_each(|m| strides[m.0 as usize] = m.1);
        for (bound, call) in calls.iter_mut().zip(&program.calls) {
            for (at, place) in bound.at.iter_mut().zip([call.to, call.args[0], call.args[1], call.args[2]]) {
                let stride = strides[place as usize];
                moves.extend((stride != 0).then_some((&raw mut *at, stride)));
            }
        }
    }
    let (step, stop) = (program.step.map(at), program.stop.map(at));
    let (calls, count) = (calls.as_mut_ptr(), calls.len());
    // SAFETY: what places point to is as the loops demand; `moves` points into `calls`.
    unsafe {
        for t in 0..frame.steps {
            if let Some(step) = step {
                step.cast::<i64>().write(frame.first.wrapping_add(t as i64));
            }
            for i in 0..count {
                let call = calls.add(i);
                let [to, a, b, c] = (*call).at;
                ((*call).run)(to, a, b, c, 1);
            }
            if stop.is_some_and(|stop| *stop != 0) {
                return t + 1;
            }
            for &(at, stride) in &moves {
                *at = (*at).wrapping_offset(stride);
            }
        }
    }
    frame.steps
}

/// Hands on the carries.
unsafe fn exchange(program: &Program, places: *mut *mut u8) {
    for &(a, b) in &program.swaps {
        // SAFETY: both are places of the program.
        unsafe { std::ptr::swap(places.add(a as usize), places.add(b as usize)) };
    }
}
