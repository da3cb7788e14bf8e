//! The lists of a loop whose steps are not all the same list.

use super::foot::Flow;
use super::halt::Halt;
use super::head::Feed;
use super::held::{Held, make_room};
use super::memories::HeldRows;
use super::mixed::Mixed;
use super::segment::{Begun, Segment};
use super::there::There;
use crate::base::Result;
use crate::ir::{EvalCx, Scan};
use crate::ops::softmax::Scratch;
use crate::plan::Window;
use crate::scan::{kept, step};
use crate::types::Array;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;

/// The lists of a loop's steps: which of them each step is, where there are several.
pub struct Lists {
    /// They. All keep the states in the same way.
    pub lists: SmallVec<[Arc<Mixed>; 1]>,
    /// By step.
    pub which: Vec<u32>,
}

impl Lists {
    /// One list for all steps.
    pub fn one(list: Arc<Mixed>) -> Lists {
        Lists { lists: [list].into_iter().collect(), which: vec![] }
    }
    fn of(&self, step: usize) -> usize {
        self.which.get(step).map_or(0, |&k| k as usize)
    }
    /// How the states are kept.
    pub fn windows(&self) -> &[Window] {
        self.lists[0].windows()
    }
    /// The one list on a device, where it runs there.
    ///
    /// # Errors
    /// `E0522` where the device lacks a dtype.
    pub fn there(&self) -> Result<Option<&There>> {
        if let [list] = &self.lists[..] { list.there() } else { Ok(None) }
    }

    /// Runs at most n steps on the states' memory, which is laid out for `room` of them and grows; how many ran, or `None` where a guard
    /// does not hold: nothing that was made counts then.
    ///
    /// # Errors
    /// What the ops report, with the step.
    pub fn run(
        &self,
        scan: &Scan,
        cx: &mut EvalCx,
        ins: &mut [Array],
        flow: &mut Flow,
        held: &mut [Held],
        [n, mut room]: [usize; 2],
    ) -> Result<Option<usize>> {
        let (there, mut laid) = (self.there()?, None);
        let mut own: SmallVec<[usize; 1]> = SmallVec::from_elem(if self.which.is_empty() { n } else { 0 }, self.lists.len());
        self.which.iter().for_each(|&list| own[list as usize] += 1);
        let mut begun: SmallVec<[Option<Begun>; 1]> = self.lists.iter().map(|_| None).collect();
        let (mut done, mut stopped) = (0, false);
        while done < n && !stopped {
            let end = kept::laid_out(scan, &Cell::new(done), || make_room(held, self.windows(), &mut room, done, n))?;
            let end = end.min(flow.advance(scan, cx, ins, done, n)?);
            let rows = HeldRows::new(held);
            let ran = match there {
                Some(there) => self.begin(0, &mut begun[0], scan, cx, ins, [n, n, done]).map_err(Halt::from).and_then(|begun| {
                    let memories = begun.memories(scan, ins, &flow.feed, &rows);
                    self.lists[0].segment_there(cx, there, &mut laid, &memories, &mut done, end)
                }),
                None => self.segment((scan, cx, ins, &flow.feed, &rows), &mut begun, &own, &mut done, [n, end]),
            };
            stopped = match ran {
                Ok(stopped) => stopped,
                Err(Halt::Refused) => return Ok(None),
                Err(Halt::Failed(e)) if self.lists.iter().any(|list| list.left_to_law(&e)) => return Ok(None),
                Err(Halt::Failed(e)) => return Err(e),
            };
            flow.leave(cx, held, self.windows(), [done, n])?;
        }
        Ok(Some(done))
    }

    /// What a list needs, computed when its first step is reached, since that may fail: of n steps so many are its own.
    fn begin<'b, 'l>(
        &'l self,
        list: usize,
        begun: &'b mut Option<Begun<'l>>,
        scan: &Scan,
        cx: &mut EvalCx,
        ins: &[Array],
        [n, own, step]: [usize; 3],
    ) -> Result<&'b mut Begun<'l>> {
        Ok(match begun {
            Some(begun) => begun,
            None => begun.insert(Begun::new(&self.lists[list], scan, cx, ins, [n, own, step])?),
        })
    }

    /// Runs from step `done` up to step `end` of n, while no memory moves; true where the loop has stopped.
    fn segment<'l>(
        &'l self,
        (scan, cx, ins, feed, rows): (&Scan, &mut EvalCx, &[Array], &Feed, &HeldRows),
        begun: &mut [Option<Begun<'l>>],
        own: &[usize],
        done: &mut usize,
        [n, end]: [usize; 2],
    ) -> std::result::Result<bool, Halt> {
        let first = *done;
        let mut unbound: SmallVec<[Option<&mut Option<Begun>>; 1]> = begun.iter_mut().map(Some).collect();
        let mut segments: SmallVec<[Option<Segment>; 1]> = self.lists.iter().map(|_| None).collect();
        let (mut stopped, mut scratch) = (false, Scratch::default());
        while *done < end && !stopped {
            cx.check()?;
            let list = self.of(*done);
            if let Some(begun) = unbound[list].take() {
                let begun = self.begin(list, begun, scan, cx, ins, [n, own[list], *done])?;
                segments[list] = Some(begun.segment(scan, ins, feed, rows, [first, end - first]));
            }
            let Some(segment) = &mut segments[list] else { unreachable!("a list is bound at its first step") };
            let ran = segment.step(cx, *done, &mut scratch);
            stopped = ran.map_err(|h| h.map(|e| step::in_step(e, scan.name.as_deref(), *done)))?;
            *done += 1;
            cx.reached(*done);
        }
        Ok(stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Engine, plan};
    use crate::eval::Walk;
    use crate::ir::EvalCx;
    use crate::ir::parse::parse;
    use crate::types::{Array, DType};
    use std::sync::Arc;

    /// Every third step runs no inner step, the others read rows that are not there.
    const TEXT: &str = "fn f(stop: i64, xs: f64[n0]) {
  %0 = scan n_steps=5:i64 {
    state h: f64 reads=[] writes=[0] keep=all
    const stop = stop
    const xs = xs
    step t
    %1 = mod(t, 3:i64)
    %2 = scan n_steps=%1 {
      seq x = xs
      state s init=f64[1]{1.0} reads=[0] writes=[1] keep=all
      %3 = add(s, x)
      next s = %3
    }
    %4 = index[pattern=i](%2.s, -1:i64)
    %5 = ge(t, stop)
    next h = %4
    until %5
  }
  return %0.h
}";

    #[test]
    fn what_a_list_needs_is_computed_when_its_first_step_is_reached() {
        let graph = parse(TEXT).unwrap_or_else(|e| panic!("{}", e.title)).1;
        for engine in [Engine::Vm, Engine::Jit] {
            let walk = Walk::new(Arc::new(plan(&graph, engine).expect("plans")));
            let run = |stop: i64, rows: usize| {
                walk.run(&mut EvalCx::new(), &mut walk.slots(), &mut vec![Array::scalar(stop), Array::full(DType::F64, &[rows], 1.0)])
            };
            assert_eq!(run(9, 2).expect("fits")[0].to_f64_vec(), [1.0, 2.0, 3.0, 1.0, 2.0]);
            assert_eq!(run(0, 0).expect("no row is read")[0].to_f64_vec(), [1.0]);
            assert_eq!(run(0, 1).expect("no row is read")[0].to_f64_vec(), [1.0]);
            assert_eq!(run(1, 1).expect("one row is read")[0].to_f64_vec(), [1.0, 2.0]);
            let error = run(9, 1).expect_err("two rows are read");
            assert_eq!((error.code, error.notes.iter().any(|n| n.starts_with("in step 2"))), ("E0109", true), "{:?}", error.notes);
        }
    }
}
