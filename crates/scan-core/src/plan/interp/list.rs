//! A loop whose step is a list.

use super::memory::{Halt, array_of, before, bytes_of, finished, initial, returned, rows};
use crate::base::{Id, Result};
use crate::dispatch;
use crate::ir::op::{Gather, GatherWrite, Index, IndexWrite, Outs, Write};
use crate::ir::{EvalCx, Op, Scan};
use crate::kernel::interp::{Operand, run};
use crate::kernel::{Fill, LEVELS, Nest};
use crate::ops::matmul::Product;
use crate::ops::select::{Selector, position, write_run};
use crate::plan::StepList;
use crate::plan::list::{At, Count, InnerKernel, InnerList, Item, Place, Run, Work};
use crate::types::{Array, DType};

type Ran<T = ()> = std::result::Result<T, Halt>;

/// The outputs of a loop with these inputs, on memory that holds `poison` where nothing was written; `None` where the plan leaves it to the
/// law.
///
/// # Errors
/// What the ops report.
pub fn run_list(plan: &StepList, scan: &Scan, cx: &mut EvalCx, ins: &[Array], poison: u8) -> Result<Option<Outs<Array>>> {
    let n = ins[Scan::N_STEPS].item_i64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let ran = Machine::new(plan, scan, cx, (ins, n), poison).and_then(|mut machine| machine.loop_of(n));
    finished(ran, |e| plan.eager && e.of_values())
}

struct Machine<'a, 'c> {
    plan: &'a StepList,
    scan: &'a Scan,
    cx: &'a mut EvalCx<'c>,
    ins: &'a [Array],
    /// Temporaries first, then sequences, values computed before, and rows of states.
    memories: Vec<Vec<u8>>,
    /// The numbers of the first memories of values computed before, and of states.
    first: [usize; 2],
    step: usize,
    /// Steps of the loops around a part.
    along: [usize; LEVELS - 1],
}

impl<'a, 'c> Machine<'a, 'c> {
    fn new(plan: &'a StepList, scan: &'a Scan, cx: &'a mut EvalCx<'c>, (ins, n): (&'a [Array], usize), poison: u8) -> Ran<Self> {
        let mut memories = vec![vec![poison; plan.memory()]];
        memories.extend(scan.seqs.ids().map(|id| bytes_of(&ins[scan.seq_input(id)])));
        let values = memories.len();
        memories.extend(before(&plan.before, scan, cx, ins)?.iter().map(bytes_of));
        let first = [values, memories.len()];
        memories.extend(scan.states.ids().zip(&plan.windows).map(|(id, w)| rows(scan, id, w, ins, n, poison)));
        Ok(Machine { plan, scan, cx, ins, memories, first, step: 0, along: [0; LEVELS - 1] })
    }

    /// At most n steps, and what they return.
    fn loop_of(&mut self, n: usize) -> Ran<Outs<Array>> {
        let plan = self.plan;
        let mut stopped = false;
        while self.step < n && !stopped {
            self.memories[0][..8].copy_from_slice(&(self.step as i64).to_ne_bytes());
            plan.items.iter().try_for_each(|item| self.item(item))?;
            for (id, offset, from) in &plan.writes {
                let to = Place { at: At::Row(*id, *offset), first: 0, ..from.clone() };
                self.copy(from, &to);
            }
            stopped = plan.stop.as_ref().is_some_and(|stop| self.read(stop).item_i64() == Some(1));
            self.step += 1;
        }
        let mut outs = Outs::new();
        for ((id, state), w) in self.scan.states.enumerate().zip(&plan.windows) {
            let buffer = &self.memories[self.first[1] + id.idx()];
            outs.push(match plan.in_place[id.idx()] {
                // The one row is the last one.
                true => returned(
                    &[vec![0; self.step * w.row_bytes()], buffer[..w.row_bytes()].to_vec()].concat(),
                    state.keep,
                    w,
                    [self.step, 0],
                ),
                false => returned(buffer, state.keep, w, [self.step, initial(self.scan, id, self.ins)]),
            });
        }
        outs.push(Array::scalar(self.step as i64));
        Ok(outs)
    }

    /// The memory in which a place lies now, and bytes before its first element.
    fn find(&self, place: &Place) -> (usize, usize) {
        let size = place.dtype.size();
        let (memory, at) = match place.at {
            At::Slot(slot) => (0, self.plan.temporaries[slot].at),
            At::Seq(id) => {
                let x = &self.ins[self.scan.seq_input(id)];
                let (len, row) = (x.shape()[0], x.len() * x.dtype().size() / x.shape()[0]);
                (1 + id.idx(), row * if self.scan.seqs[id].reverse { len - 1 - self.step } else { self.step })
            }
            At::Before(k) => (self.first[0] + k, 0),
            At::Row(id, offset) => {
                let row = if self.plan.in_place[id.idx()] { 0 } else { self.step + offset };
                (self.first[1] + id.idx(), row * self.plan.windows[id.idx()].row_bytes())
            }
        };
        let moved: isize = place.along.iter().zip(self.along).map(|(&far, k)| far * k as isize).sum();
        (memory, (at + place.first * size).wrapping_add_signed(moved * size as isize))
    }
    fn read(&self, place: &Place) -> Array {
        let (memory, at) = self.find(place);
        array_of(&self.memories[memory][at..at + place.bytes()], place.dtype, &place.shape)
    }
    fn write(&mut self, place: &Place, bytes: &[u8]) {
        let (memory, at) = self.find(place);
        self.memories[memory][at..at + bytes.len()].copy_from_slice(bytes);
    }
    fn copy(&mut self, from: &Place, to: &Place) {
        let (memory, at) = self.find(from);
        let bytes = self.memories[memory][at..at + from.bytes()].to_vec();
        self.write(to, &bytes);
    }
    fn integer(&self, place: &Place) -> i64 {
        self.read(&Place { shape: Default::default(), ..place.clone() }).item_i64().unwrap_or(0)
    }
    /// Some elements of a place, as a place.
    fn part(place: &Place, first: usize, n: usize) -> Place {
        Place { first: place.first + first, shape: std::iter::once(n).collect(), ..place.clone() }
    }

    fn item(&mut self, item: &Item) -> Ran {
        let (ins, outs) = (&item.ins[..], &item.outs[..]);
        match &item.work {
            Work::Nest(nest) => self.nest(nest, &ins.iter().chain(outs).collect::<Vec<_>>()),
            Work::Move(runs) => runs.iter().for_each(|run| self.moved(run, ins, &outs[0])),
            Work::Add(runs) => runs.iter().for_each(|run| self.added(run, &ins[0], &outs[0])),
            Work::MatMul(extents) => self.product(*extents, ins, &outs[0])?,
            Work::Read(selector) => {
                let op: Op = match selector {
                    Selector::Basic(pattern) => Index { pattern: pattern.to_string() }.into(),
                    Selector::Advanced(axes) => Gather { axes: axes.clone() }.into(),
                };
                self.call(&op, ins, outs)?;
            }
            Work::Write(selector, mode) => {
                let mode = *mode;
                let op: Op = match selector {
                    Selector::Basic(pattern) => IndexWrite { pattern: pattern.to_string(), mode }.into(),
                    Selector::Advanced(axes) => GatherWrite { axes: axes.clone(), mode }.into(),
                };
                let operands: Vec<Place> = outs.iter().chain(ins).cloned().collect();
                self.call(&op, &operands, outs)?;
            }
            Work::Slice(slice) => {
                let first = slice.first(|k| self.integer(&ins[k])).ok_or(Halt::Refused)?;
                slice.runs.iter().for_each(|run| self.moved(&Run { from: run.from + first, ..*run }, ins, &outs[0]));
            }
            Work::Direct(_, op) | Work::Call(op, _) => self.call(op, ins, outs)?,
            Work::Guard([least, most]) => {
                let n = self.integer(&ins[0]);
                if n < *least as i64 || n > *most as i64 {
                    return Err(Halt::Refused);
                }
            }
            Work::Within { axis, extent } => {
                for place in self.read(&ins[0]).to_i64_vec() {
                    position(place, *axis, *extent)?;
                }
            }
            Work::Loop(inner) => self.inner(inner)?,
            Work::For(inner) => self.inner_list(inner)?,
        }
        Ok(())
    }

    fn moved(&mut self, run: &Run, ins: &[Place], out: &Place) {
        let size = out.dtype.size();
        let mut bytes = vec![0; run.n * size];
        if let Some(input) = run.input {
            let (memory, at) = self.find(&ins[input]);
            for (k, to) in bytes.chunks_exact_mut(size).enumerate() {
                let from = at.wrapping_add_signed((run.from as isize + run.step * k as isize) * size as isize);
                to.copy_from_slice(&self.memories[memory][from..from + size]);
            }
        }
        self.write(&Self::part(out, run.to, run.n), &bytes);
    }
    fn added(&mut self, run: &Run, y: &Place, x: &Place) {
        let (x, n) = (Self::part(x, run.to, run.n), run.n);
        let elements: Vec<Array> = (0..n).map(|k| self.read(&Self::part(y, run.from + run.step as usize * k, 1))).collect();
        let mut sum = self.read(&x);
        dispatch!(x.dtype, T => {
            let y: Vec<T> = elements.iter().map(|one| one.as_slice::<T>()[0]).collect();
            write_run(sum.as_mut_slice::<T>(), &y, Write::Inc);
        });
        self.write(&x, &bytes_of(&sum));
    }
    fn product(&mut self, extents: [usize; 3], ins: &[Place], out: &Place) -> Ran {
        let (a, b, mut c) = (self.read(&ins[0]), self.read(&ins[1]), Array::zeros(out.dtype, &out.shape));
        match out.dtype {
            DType::F32 => f32::multiply_in(self.cx, extents, a.as_slice(), b.as_slice(), c.as_mut_slice())?,
            _ => f64::multiply_in(self.cx, extents, a.as_slice(), b.as_slice(), c.as_mut_slice())?,
        }
        self.write(out, &bytes_of(&c));
        Ok(())
    }
    fn call(&mut self, op: &Op, ins: &[Place], outs: &[Place]) -> Ran {
        let mut arrays: Vec<Array> = ins.iter().map(|place| self.read(place)).collect();
        let results = op.evaluate(self.cx, &mut arrays)?;
        for (place, x) in outs.iter().zip(&results) {
            assert_eq!((x.dtype(), x.len() * x.dtype().size()), (place.dtype, place.bytes()), "what `{}` gives", op.name());
            self.write(place, &bytes_of(x));
        }
        Ok(())
    }

    /// At each place of the axes around, in row-major order, the kernel.
    fn nest(&mut self, nest: &Nest, operands: &[&Place]) {
        for &Fill { operand, bits, count } in &nest.fills {
            let place = operands[operand];
            let one = bits.to_ne_bytes()[..place.dtype.size()].to_vec();
            self.write(&Self::part(place, 0, count), &one.repeat(count));
        }
        for k in 0..nest.places() {
            let (mut rest, mut at) = (k, vec![0; nest.outer.len()]);
            for (axis, &n) in nest.outer.iter().enumerate().rev() {
                (at[axis], rest) = (rest % n, rest / n);
            }
            let find = |(place, by): (&&Place, &crate::kernel::Strides)| {
                let (memory, offset) = self.find(place);
                let moved: isize = by.outer.iter().zip(&at).map(|(&s, &k)| s * k as isize).sum();
                Operand { memory, offset: offset.wrapping_add_signed(moved), stride: by.step }
            };
            let found: Vec<Operand> = operands.iter().zip(&nest.strides).map(find).collect();
            run(&nest.kernel, &mut self.memories, &found, nest.lanes, nest.steps, nest.first);
        }
    }

    fn count(&self, count: &Count) -> usize {
        match count {
            Count::Known(n) => *n,
            Count::Read(place, _) => usize::try_from(self.integer(place)).unwrap_or(0),
        }
    }
    fn ran(&mut self, ran: Option<&Place>, n: usize) {
        ran.into_iter().for_each(|place| self.write(place, &(n as i64).to_ne_bytes()));
    }

    fn inner(&mut self, inner: &InnerKernel) -> Ran {
        let (n, nest) = (self.count(&inner.count), &inner.nest);
        let (mut done, mut stopped) = (0, false);
        inner.stopped.iter().chain(&inner.failed).for_each(|place| self.write(place, &vec![0; place.bytes()]));
        while done < n && !stopped {
            let at = |(place, by): (&Place, &crate::kernel::Strides)| {
                let (memory, offset) = self.find(place);
                Operand { memory, offset: offset.wrapping_add_signed(by.step * done as isize), stride: by.step }
            };
            let mut found: Vec<Operand> = inner.operands.iter().zip(&nest.strides).map(at).collect();
            // What steps hand on lies where it is.
            for carry in nest.kernel.carries.iter() {
                let k = carry.mem.idx();
                found[k].offset = self.find(&inner.operands[k]).1;
            }
            let portion = if inner.votes.is_some() { 1 } else { n - done };
            done += run(&nest.kernel, &mut self.memories, &found, nest.lanes, portion, nest.first + done as i64);
            let bools = |machine: &Self, place: &Place| -> Vec<u8> {
                let (memory, at) = machine.find(place);
                machine.memories[memory][at..at + place.bytes()].to_vec()
            };
            stopped = inner.stopped.as_ref().is_some_and(|place| bools(self, place)[0] != 0)
                || inner.votes.as_ref().is_some_and(|(place, votes)| votes.stop(&bools(self, place)));
            if inner.failed.as_ref().is_some_and(|place| bools(self, place).contains(&1)) {
                return Err(Halt::Refused);
            }
        }
        self.ran(inner.ran.as_ref(), done);
        Ok(())
    }

    fn inner_list(&mut self, inner: &InnerList) -> Ran {
        let (n, mut done, mut stopped) = (self.count(&inner.count), 0, false);
        while done < n && !stopped {
            self.along[inner.level - 1] = done;
            self.write(&inner.step, &(done as i64).to_ne_bytes());
            inner.items.iter().try_for_each(|item| self.item(item))?;
            inner.writes.iter().for_each(|[from, to]| self.copy(from, to));
            stopped = inner.stop.as_ref().is_some_and(|stop| self.read(stop).item_i64() == Some(1));
            done += 1;
        }
        self.along[inner.level - 1] = 0;
        self.ran(inner.ran.as_ref(), done);
        Ok(())
    }
}
