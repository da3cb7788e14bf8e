//! A loop that is one kernel.

use super::memory::{Halt, before, bytes_of, finished, initial, returned, rows};
use crate::base::{Id, Result};
use crate::ir::op::Outs;
use crate::ir::{EvalCx, Scan};
use crate::kernel::interp::{Operand, run};
use crate::plan::LoopKernel;
use crate::plan::kernel::Place;
use crate::types::Array;

/// The outputs of a loop with these inputs, on memory that holds `poison` where nothing was written; `None` where the plan leaves it to the
/// law.
///
/// # Errors
/// What the ops report that compute what all steps read.
pub fn run_kernel(plan: &LoopKernel, scan: &Scan, cx: &mut EvalCx, ins: &[Array], poison: u8) -> Result<Option<Outs<Array>>> {
    let n = ins[Scan::N_STEPS].item_i64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let mut memories = Vec::new();
    let ran = Memories::new(plan, scan, cx, (ins, n), poison, &mut memories).and_then(|layout| {
        let ran = layout.steps(&mut memories, n);
        if memories[layout.told + 1].iter().any(|&failed| failed != 0) { Err(Halt::Refused) } else { Ok(layout.outputs(&memories, ran)) }
    });
    finished(ran, |_| false)
}

/// Numbers of memories: sequences first, then values computed before, rows of states, rows that steps hand on, and what the kernel tells.
struct Memories<'a> {
    plan: &'a LoopKernel,
    scan: &'a Scan,
    ins: &'a [Array],
    before: usize,
    states: usize,
    windows: usize,
    told: usize,
}

impl<'a> Memories<'a> {
    fn new(
        plan: &'a LoopKernel,
        scan: &'a Scan,
        cx: &mut EvalCx,
        (ins, n): (&'a [Array], usize),
        poison: u8,
        all: &mut Vec<Vec<u8>>,
    ) -> std::result::Result<Memories<'a>, Halt> {
        all.extend(scan.seqs.ids().map(|id| bytes_of(&ins[scan.seq_input(id)])));
        let seqs = all.len();
        all.extend(before(&plan.before, scan, cx, ins)?.iter().map(bytes_of));
        let states = all.len();
        let windows = || scan.states.ids().zip(&plan.windows);
        all.extend(windows().map(|(id, w)| rows(scan, id, w, ins, n + w.span, poison)));
        let handed = all.len();
        for (id, w) in windows() {
            let (row, buffer) = (w.row_bytes(), rows(scan, id, w, ins, 0, poison));
            all.push(w.carried_offsets().flat_map(|j| buffer[j * row..(j + 1) * row].to_vec()).collect());
        }
        let told = all.len();
        all.extend([vec![0; 1], vec![0; plan.lanes], vec![0; plan.lanes]]);
        Ok(Memories { plan, scan, ins, before: seqs, states, windows: handed, told })
    }

    /// Where an operand lies at a step.
    fn operand(&self, k: usize, step: usize) -> Operand {
        let (plan, scan) = (self.plan, self.scan);
        let size = plan.kernel.mems.iter().nth(k).map_or(1, |mem| mem.dtype.size());
        let (memory, first, stride) = match plan.places[k] {
            Place::Seq { id, at } => {
                let x = &self.ins[scan.seq_input(id)];
                let (len, row) = (x.shape()[0], x.len() * size / x.shape()[0]);
                let (row_of, stride) = if scan.seqs[id].reverse { (len - 1 - step, -(row as isize)) } else { (step, row as isize) };
                (id.idx(), row_of * row + at * size, stride)
            }
            Place::Before { value, at } => (self.before + value, at * size, 0),
            Place::Row { id, offset, at } => {
                let row = plan.windows[id.idx()].row_bytes();
                (self.states + id.idx(), (step + offset) * row + at * size, row as isize)
            }
            Place::Window { id, row, at } => {
                let w = &plan.windows[id.idx()];
                let before = w.carried[..row].iter().filter(|&&carried| carried).count();
                (self.windows + id.idx(), before * w.row_bytes() + at * size, 0)
            }
            Place::Stopped => (self.told, 0, 0),
            Place::Failed => (self.told + 1, 0, 0),
            Place::Votes => (self.told + 2, 0, 0),
        };
        Operand { memory, offset: first, stride }
    }

    /// Runs at most n steps; how many ran.
    fn steps(&self, memories: &mut [Vec<u8>], n: usize) -> usize {
        let plan = self.plan;
        let portion = if plan.votes.is_some() { 1 } else { n };
        let mut done = 0;
        while done < n {
            let operands: Vec<Operand> = (0..plan.places.len()).map(|k| self.operand(k, done)).collect();
            done += run(&plan.kernel, memories, &operands, plan.lanes, portion, done as i64);
            let voted = plan.votes.is_some_and(|votes| votes.stop(&memories[self.told + 2][..votes.voters]));
            if memories[self.told][0] != 0 || voted || memories[self.told + 1].iter().any(|&failed| failed != 0) {
                break;
            }
        }
        done
    }

    fn outputs(&self, memories: &[Vec<u8>], steps: usize) -> Outs<Array> {
        let mut outs = Outs::new();
        for ((id, state), w) in self.scan.states.enumerate().zip(&self.plan.windows) {
            let (mut buffer, row) = (memories[self.states + id.idx()].clone(), w.row_bytes());
            let handed = &memories[self.windows + id.idx()];
            // Rows that are handed on still lie in the window.
            for (k, j) in w.carried_offsets().enumerate().filter(|c| !w.stored || c.1 >= w.first_write) {
                buffer[(steps + j) * row..(steps + j + 1) * row].copy_from_slice(&handed[k * row..(k + 1) * row]);
            }
            let keep = state.keep;
            // The row after the last one handed on is the newest that a window holds.
            let at = if w.stored { [steps, initial(self.scan, id, self.ins)] } else { [steps, 0] };
            outs.push(returned(&buffer, keep, w, at));
        }
        outs.push(Array::scalar(steps as i64));
        outs
    }
}
