//! What is computed of a loop's rows after each block of steps.

use super::head::Feed;
use super::held::Held;
use super::sides::{BLOCK, WHOLE, names};
#[cfg(any(test, feature = "testing"))]
use crate::base::small;
use crate::base::{Kind, Result};
use crate::dispatch;
use crate::eval::Walk;
use crate::ir::op::OuterSum;
use crate::ir::{EvalCx, Graph, Scan, StateId};
use crate::lower::feet;
use crate::ops::matmul::OUTER;
use crate::plan::Window;
use crate::types::Array;
use crate::types::shape::count;
use std::sync::Arc;

/// What takes the rows that a loop makes.
pub struct Foot {
    walk: Walk<Arc<Graph>>,
    made: Vec<(StateId, usize)>,
    /// Per array that is read by rows: true where it is read from the last one on.
    cut: Vec<bool>,
    /// Number of results that are rows.
    rows: usize,
    sums: Vec<(OuterSum, usize)>,
    own: Vec<StateId>,
}

impl Foot {
    /// Prepares a foot, whose graph has this plan.
    pub fn new(plan: Graph, foot: feet::Foot) -> Foot {
        let walk = Walk::new(Arc::new(plan));
        let cut = foot.cut.iter().map(|c| c.1).collect();
        let first = foot.cut.len();
        let sums = foot.sums.into_iter().map(|(_, op, like)| (op, first + like)).collect();
        Foot { walk, made: foot.made, cut, rows: foot.rows.len(), sums, own: foot.own }
    }

    /// The names of what is computed.
    pub fn ops(&self) -> Vec<&str> {
        names(self.walk.graph(), if self.sums.is_empty() { None } else { Some("outer_sum") })
    }

    /// Steps per block for a loop of n steps; `None` where all rows are better taken at once, or do not fit.
    ///
    /// # Errors
    /// An interruption.
    fn block(&self, cx: &mut EvalCx, windows: &[Window], args: &[Array], n: usize) -> Result<Option<usize>> {
        let cut = &args[..self.cut.len()];
        if n == 0 || cut.iter().any(|a| a.shape()[0] != n) {
            return Ok(None);
        }
        #[cfg(any(test, feature = "testing"))]
        if small::in_blocks() {
            return Ok(self.unit(cx, windows, args)?.and_then(|_| self.small_block(n)));
        }
        let kept: usize = self.own.iter().map(|id| windows[id.0 as usize].row_bytes()).sum();
        let beside = cut.iter().map(|a| a.len() * a.dtype().size()).sum::<usize>() / n;
        let block = (BLOCK / (kept + beside).max(1)).max(1);
        if n * kept <= WHOLE || n < 2 * block {
            return Ok(None);
        }
        let block = self.unit(cx, windows, args)?.map(|unit| block.next_multiple_of(unit));
        Ok(block.filter(|block| n >= 2 * block))
    }

    /// Two, where no sums are made: these have whole blocks of rows.
    #[cfg(any(test, feature = "testing"))]
    fn small_block(&self, n: usize) -> Option<usize> {
        let wanted = n >= 4 && self.sums.is_empty();
        if wanted {
            small::count_blocks();
        }
        wanted.then_some(2)
    }

    /// A multiple of as many steps has whole blocks of the rows of which sums of outer products are made: how many rows a step has is
    /// seen in what is computed of one. `None` where that cannot be computed: the error is that of all rows.
    fn unit(&self, cx: &mut EvalCx, windows: &[Window], args: &[Array]) -> Result<Option<usize>> {
        let row = |(id, _): &(StateId, usize)| {
            let window = &windows[id.0 as usize];
            Array::zeros(window.dtype, &[&[1], &window.shape[..]].concat())
        };
        let made = self.made.iter().map(row).collect();
        let trial = self.run(cx, made, args, [0, 1]).and_then(|results| {
            let operands = &results[self.rows..];
            self.add(operands, args, &mut vec![])?;
            Ok(operands.iter().map(|a| OUTER / gcd(OUTER, count(&a.shape()[..a.rank() - 1]))).max())
        });
        match trial {
            Err(e) if e.kind == Kind::Interrupted => Err(e),
            trial => Ok(trial.ok().map(|unit| unit.unwrap_or(1))),
        }
    }

    /// Adds what these rows of the operands make to the sums, of which there are none yet at the first.
    fn add(&self, operands: &[Array], args: &[Array], sums: &mut Vec<Array>) -> Result<()> {
        for (k, ((op, like), pair)) in self.sums.iter().zip(operands.chunks_exact(2)).enumerate() {
            if sums.len() == k {
                sums.push(op.zeros(&[pair[0].clone(), pair[1].clone(), args[*like].clone()])?);
            }
            op.add(&pair[0], &pair[1], &mut sums[k]);
        }
        Ok(())
    }

    fn run(&self, cx: &mut EvalCx, made: Vec<Array>, args: &[Array], [lo, hi]: [usize; 2]) -> Result<Vec<Array>> {
        let (cut, whole) = args.split_at(self.cut.len());
        let cut = cut.iter().zip(&self.cut).map(|(a, &back)| {
            let rows = a.shape()[0];
            if back { a.rows_shared(rows - hi, rows - lo) } else { a.rows_shared(lo, hi) }
        });
        let mut args: Vec<Array> = made.into_iter().chain(cut).chain(whole.iter().cloned()).collect();
        self.walk.run(cx, &mut self.walk.slots(), &mut args)
    }

    /// Takes all rows at once, of a loop's outputs from which the first `skip` rows are left away.
    ///
    /// # Errors
    /// What the ops report.
    pub fn all(&self, cx: &mut EvalCx, outs: &[Array], skip: &[usize], args: &[Array]) -> Result<Vec<Array>> {
        let steps = outs.last().and_then(Array::item_i64).unwrap_or(0) as usize;
        let rows = |&(id, offset): &(StateId, usize)| {
            let (of, first) = (&outs[id.0 as usize], offset - skip[id.0 as usize]);
            if first == 0 && of.shape()[0] == steps { of.clone() } else { of.rows_shared(first, first + steps) }
        };
        let made: Vec<Array> = self.made.iter().map(rows).collect();
        let mut all: Vec<Array> = made.into_iter().chain(args.iter().cloned()).collect();
        let mut results = self.walk.run(cx, &mut self.walk.slots(), &mut all)?;
        let operands = results.split_off(self.rows);
        let mut sums = vec![];
        self.add(&operands, args, &mut sums)?;
        results.extend(sums);
        Ok(results)
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A foot at work: what it has made so far.
pub struct Drain<'a> {
    foot: &'a Foot,
    args: &'a [Array],
    block: usize,
    /// The first step whose rows are not taken yet.
    from: usize,
    rows: Vec<Array>,
    sums: Vec<Array>,
}

impl<'a> Drain<'a> {
    /// For a loop of n steps, where it is better than taking all rows after it.
    ///
    /// # Errors
    /// An interruption.
    pub fn new(foot: &'a Foot, cx: &mut EvalCx, windows: &[Window], args: &'a [Array], n: usize) -> Result<Option<Drain<'a>>> {
        let block = foot.block(cx, windows, args, n)?;
        Ok(block.map(|block| Drain { foot, args, block, from: 0, rows: vec![], sums: vec![] }))
    }
    /// Steps whose rows lie in memory at once, of a state whose rows nothing else reads.
    pub fn holds(&self, id: StateId) -> Option<usize> {
        self.foot.own.contains(&id).then_some(2 * self.block)
    }
    /// The step after which rows are taken.
    fn end(&self, n: usize) -> usize {
        if n - self.from < 2 * self.block { n } else { self.from + self.block }
    }

    fn take(&mut self, cx: &mut EvalCx, held: &mut [Held], windows: &[Window], [done, n]: [usize; 2]) -> Result<()> {
        let (lo, hi) = (self.from, done);
        let rows = |&(id, offset): &(StateId, usize)| {
            let held = &held[id.0 as usize];
            held.rows.rows_shared(lo + offset - held.base, hi + offset - held.base)
        };
        let made: Vec<Array> = self.foot.made.iter().map(rows).collect();
        let mut results = self.foot.run(cx, made, self.args, [lo, hi])?;
        let operands = results.split_off(self.foot.rows);
        for (k, part) in results.iter().enumerate() {
            if lo == 0 {
                let shape: Vec<usize> = std::iter::once(n).chain(part.shape()[1..].iter().copied()).collect();
                self.rows.push(Array::dirty(part.dtype(), &shape));
            }
            put(&mut self.rows[k], lo, part);
        }
        self.foot.add(&operands, self.args, &mut self.sums)?;
        drop((results, operands));
        self.foot.own.iter().for_each(|id| held[id.0 as usize].restart(&windows[id.0 as usize], done));
        self.from = done;
        Ok(())
    }

    /// What is made of all rows.
    pub fn finish(self) -> impl Iterator<Item = Array> {
        self.rows.into_iter().chain(self.sums)
    }
}

/// Overwrites rows from `first` on.
fn put(rows: &mut Array, first: usize, part: &Array) {
    let row = count(&rows.shape()[1..]);
    dispatch!(rows.dtype(), T => rows.as_mut_slice::<T>()[first * row..][..part.len()].copy_from_slice(part.as_slice::<T>()));
}

/// What comes to a loop and goes from it, a block at a time.
pub struct Flow<'a> {
    /// The rows of its sequences.
    pub feed: Feed<'a>,
    /// What takes its rows.
    pub drain: Option<Drain<'a>>,
}

impl Flow<'_> {
    /// Sees to it that the rows of step `step` of n are there; the step before which there is more to do.
    ///
    /// # Errors
    /// What the ops report.
    pub fn advance(&mut self, scan: &Scan, cx: &mut EvalCx, ins: &mut [Array], step: usize, n: usize) -> Result<usize> {
        let end = self.feed.advance(scan, cx, ins, step, n)?;
        Ok(self.drain.as_ref().map_or(end, |drain| end.min(drain.end(n))))
    }
    /// Takes the rows where a block of steps is done.
    ///
    /// # Errors
    /// What the ops report.
    pub fn leave(&mut self, cx: &mut EvalCx, held: &mut [Held], windows: &[Window], [done, n]: [usize; 2]) -> Result<()> {
        match &mut self.drain {
            Some(drain) if done == drain.end(n) => drain.take(cx, held, windows, [done, n]),
            _ => Ok(()),
        }
    }
    /// Rows of a state that lie in memory at once, where they are taken.
    pub fn holds(&self, id: StateId) -> Option<usize> {
        self.drain.as_ref().and_then(|drain| drain.holds(id))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Engine, NativeLoop, plan};
    use super::*;
    use crate::eval::run;
    use crate::ir::Op;
    use crate::ir::parse::parse;
    use crate::types::{DType, Extents};

    /// A loop whose rows are multiplied and added up; `step` makes them of u and h, `%3` is the rows of all steps, `more` what else is read.
    fn program(seq: &str, step: &str, rows: &str, back: bool, sums: &str, more: &str) -> Graph {
        let text = format!(
            "fn f(n: i64, x: f64[n0, n1], w: f64[n2, n3], v: f64[n4, n5], start: f64[1, n6], q: f64[n7, n8]) {{
  %0 = scan n_steps=n {{
    {seq}
    state h init=start reads=[0] writes=[1] keep=all
    state g: f64[n6] reads=[] writes=[0] keep=all
    const q = q
    step t
    {step}
    next h = %1
    next g = %2
  }}
  %3 = {rows}
  %4 = matmul(%3, w)
  %5 = tanh(%4)
  %6 = reduce[kind=sum, axes=[1], keepdims=false](%5)
  %7 = outer_sum[back_a={back}, back_b=false](v, %3, w)
  %8 = outer_sum[back_a=false, back_b=false](%3, %3, w)
  return %6{sums}{more}
}}"
        );
        parse(&text).unwrap_or_else(|e| panic!("{}: {text}", e.title)).1
    }

    const SUMS: &str = ", %7, %8";
    const PLAIN: &str = "%10 = mul(h, 0.5:f64)\n    %11 = add(u, %10)\n    %1 = tanh(%11)\n    %2 = mul(%1, u)";
    const LIST: &str = "%10 = matmul(h, q)\n    %11 = add(u, %10)\n    %1 = tanh(%11)\n    %2 = mul(%1, u)";
    const MADE: &str = "add(%0.g, 0.0:f64)";
    const LAST: &str = "index[pattern=\"s:\"](%0.h, 1:i64)";
    const FIRST: &str = "index[pattern=\":e\"](%0.h, -1:i64)";

    fn args(n: usize, width: usize, beside: usize) -> Vec<Array> {
        let numbers = |shape: &[usize], by: f64| {
            let len = shape.iter().product::<usize>();
            Array::new(shape, (0..len).map(|i| ((i as f64 + 1.0) * by).sin() * 0.3).collect())
        };
        let (x, w) = (numbers(&[n, width], 0.37), numbers(&[width, beside], 1.7));
        let (start, q) = (numbers(&[1, width], 0.9), numbers(&[width, width], 0.61));
        vec![Array::scalar(n as i64), x, w, numbers(&[n, beside], 0.21), start, q]
    }

    fn loop_of(planned: &Graph) -> &NativeLoop {
        let natives = planned.nodes().iter().filter_map(|n| if let Op::Native(op) = &n.op { Some(op) } else { None });
        natives.filter_map(|op| op.0.as_any().downcast_ref::<NativeLoop>()).next().expect("a loop")
    }

    fn bits(arrays: &[Array]) -> Vec<Vec<u64>> {
        arrays.iter().map(Array::bits).collect()
    }

    #[test]
    fn blocks_of_rows_give_the_bits_of_all_rows() {
        for (step, rows) in [(PLAIN, MADE), (PLAIN, LAST), (PLAIN, FIRST), (LIST, MADE), (LIST, LAST)] {
            let cases = [("seq u = x", false, SUMS), ("seq u = x reverse", true, SUMS), ("seq u = x", false, "")];
            for (seq, back, sums) in cases {
                let graph = program(seq, step, rows, back, sums, "");
                for engine in [Engine::Vm, Engine::Jit] {
                    let planned = plan(&graph, engine).unwrap();
                    for (n, width, beside) in [(5, 2, 2), (4, 3, 1), (1, 2, 2), (0, 2, 2), (9, 1, 1), (6000, 70, 20), (6001, 40, 1)] {
                        let args = args(n, width, beside);
                        let law = run(&graph, &mut EvalCx::new(), &args).unwrap();
                        let found = run(&planned, &mut EvalCx::new(), &args).unwrap();
                        assert_eq!(bits(&law), bits(&found), "{seq} {rows}, {n} rows of {width}");
                        let (found, blocks) = small::blocks_of_two(|| run(&planned, &mut EvalCx::new(), &args).unwrap());
                        assert_eq!(bits(&law), bits(&found), "{seq} {rows}, {n} rows of {width} in blocks of two");
                        assert_eq!(blocks, usize::from(n >= 4 && sums.is_empty()), "{n}");
                    }
                    assert!(!loop_of(&planned).behind().is_empty(), "{}", planned.to_text("plan"));
                }
            }
        }
    }

    /// A step has several rows, of which one is made before they are added up.
    #[test]
    fn blocks_are_whole_blocks_of_the_rows_that_are_added_up() {
        let text = "fn f(n: i64, x: f64[n0, n1, n2], v: f64[n3, n4], w: f64[n5, n6], start: f64[1, n7, n8]) {
  %0 = scan n_steps=n {
    seq u = x
    state h init=start reads=[0] writes=[1] keep=all
    state g: f64[n7, n8] reads=[] writes=[0] keep=all
    step t
    %10 = mul(h, 0.5:f64)
    %11 = add(u, %10)
    %1 = tanh(%11)
    next h = %1
    next g = %1
  }
  %3 = reduce[kind=sum, axes=[1], keepdims=false](%0.g)
  %4 = outer_sum[back_a=false, back_b=false](%3, v, w)
  return %4
}";
        let graph = parse(text).unwrap_or_else(|e| panic!("{}", e.title)).1;
        let planned = plan(&graph, Engine::Vm).unwrap();
        let (n, batch, width) = (1300, 8, 64);
        let numbers = |shape: &[usize], by: f64| Array::new(shape, (0..count(shape)).map(|i| ((i as f64 + 1.0) * by).sin()).collect());
        let args = [
            Array::scalar(n as i64),
            numbers(&[n, batch, width], 0.37),
            numbers(&[n, 5], 0.21),
            numbers(&[width, 5], 1.7),
            numbers(&[1, batch, width], 0.9),
        ];
        let law = run(&graph, &mut EvalCx::new(), &args).unwrap();
        assert_eq!(bits(&law), bits(&run(&planned, &mut EvalCx::new(), &args).unwrap()));
        let foot = loop_of(&planned).sides.foot.as_ref().expect("rows computed behind");
        let windows = [1, 0].map(|span| Window {
            shape: Extents::from_slice(&[batch, width]),
            dtype: DType::F64,
            span,
            first_write: span,
            stored: true,
            entering: false,
            far: vec![],
            carried: vec![],
        });
        assert_eq!(foot.block(&mut EvalCx::new(), &windows, &args[2..4], n).unwrap(), Some(OUTER));
    }

    #[test]
    fn what_something_else_reads_whole_is_kept() {
        for more in [", %0.g", ", %0.h", ", %3"] {
            let graph = program("seq u = x", PLAIN, LAST, false, SUMS, more);
            let planned = plan(&graph, Engine::Vm).unwrap();
            let args = args(6000, 70, 3);
            let (law, found) = (run(&graph, &mut EvalCx::new(), &args).unwrap(), run(&planned, &mut EvalCx::new(), &args).unwrap());
            assert_eq!(bits(&law), bits(&found), "{more}");
            assert_eq!(loop_of(&planned).behind().is_empty(), more != ", %0.g", "{more}");
        }
    }

    #[test]
    fn misfits_are_the_laws() {
        let graph = program("seq u = x", PLAIN, LAST, false, SUMS, "");
        let planned = plan(&graph, Engine::Vm).unwrap();
        let fault = |g: &Graph, args: &[Array]| run(g, &mut EvalCx::new(), args).map(|_| ()).expect_err("a misfit").title;
        let (mut narrow, mut short) = (args(6000, 70, 3), args(6000, 70, 3));
        narrow[2] = args(1, 69, 3).remove(2);
        short[3] = args(5999, 70, 3).remove(3);
        for args in [narrow, short] {
            assert_eq!(fault(&graph, &args), fault(&planned, &args));
        }
    }
}
