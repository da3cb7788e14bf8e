//! Rows that are computed for a loop a block at a time.

use super::sides::{BLOCK, WHOLE, names};
#[cfg(any(test, feature = "testing"))]
use crate::base::small;
use crate::base::{Kind, Result};
use crate::eval::Walk;
use crate::ir::{EvalCx, Graph, Scan, SeqId};
use crate::lower::heads;
use crate::types::{Array, Extents};
use std::sync::{Arc, Mutex};

/// What computes a loop's sequences from rows of other arrays.
pub struct Head {
    walk: Walk<Arc<Graph>>,
    cut: usize,
    seqs: Vec<SeqId>,
    multiplies: bool,
    /// Extents of the last arguments, but for the number of rows, and what was found out about a row.
    known: Mutex<Option<(Vec<Extents>, Row)>>,
}

/// What a row of the results takes.
#[derive(Clone, Copy)]
struct Row {
    bytes: usize,
    /// Rows of matrices per row, where these are multiplied.
    high: usize,
}

/// Rows from which the bytes of a row are learned; there must be many more to make blocks worth it.
const TRIAL: usize = 16;
/// As many rows of matrices are multiplied at least, so that reading the right side is a small part of the work.
const HIGH: usize = 256;

impl Head {
    /// Prepares a head, whose graph has this plan.
    pub fn new(plan: Graph, head: heads::Head) -> Head {
        let walk = Walk::new(Arc::new(plan));
        Head { walk, cut: head.cut, seqs: head.seqs, multiplies: head.multiplies, known: Mutex::default() }
    }

    /// Number of its arguments.
    pub fn n_args(&self) -> usize {
        self.walk.graph().params().len()
    }

    /// The names of what is computed.
    pub fn ops(&self) -> Vec<&str> {
        names(self.walk.graph(), None)
    }

    /// Rows per block for a loop of n steps; `None` where all are better computed at once.
    ///
    /// # Errors
    /// What the ops report.
    pub fn block(&self, cx: &mut EvalCx, args: &[Array], n: usize) -> Result<Option<usize>> {
        let rows = args[0].shape()[0];
        if n < 4 || rows < n || args[..self.cut].iter().any(|a| a.shape()[0] != rows) {
            return Ok(None);
        }
        #[cfg(any(test, feature = "testing"))]
        if small::in_blocks() {
            return self.small_block(cx, args, n);
        }
        if n <= 4 * TRIAL {
            return Ok(None);
        }
        let row = match self.row(cx, args, TRIAL) {
            Err(e) if e.kind != Kind::Interrupted => return Ok(None), // the error is that of all rows
            row => row?,
        };
        let high = if self.multiplies { HIGH.div_ceil(row.high) } else { 0 };
        let block = (BLOCK / row.bytes.max(1)).max(high).max(TRIAL);
        Ok((n * row.bytes > WHOLE && n >= 2 * block).then_some(block))
    }

    /// Two, where a row can be computed alone.
    #[cfg(any(test, feature = "testing"))]
    fn small_block(&self, cx: &mut EvalCx, args: &[Array], n: usize) -> Result<Option<usize>> {
        if self.row(cx, args, 1).is_err() {
            return Ok(None);
        }
        small::count_blocks();
        Ok(Some(2.min(n)))
    }

    /// What a row takes, learned from so many.
    fn row(&self, cx: &mut EvalCx, args: &[Array], trial: usize) -> Result<Row> {
        let extents = || args.iter().enumerate().map(|(k, a)| &a.shape()[usize::from(k < self.cut)..]);
        let mut known = self.known.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, row)) = known.as_ref().filter(|k| extents().eq(k.0.iter().map(|e| &e[..]))) {
            return Ok(*row);
        }
        let rows = self.run(cx, args, 0, trial)?;
        let bytes = rows.iter().map(|a| a.len() * a.dtype().size()).sum::<usize>() / trial;
        let high = rows.iter().map(|a| a.len() / trial / a.shape().last().copied().unwrap_or(1).max(1)).max();
        let row = Row { bytes, high: high.unwrap_or(1).max(1) };
        *known = Some((extents().map(Extents::from_slice).collect(), row));
        Ok(row)
    }

    /// Results for rows from `lo` up to `hi`.
    fn run(&self, cx: &mut EvalCx, args: &[Array], lo: usize, hi: usize) -> Result<Vec<Array>> {
        let (cut, whole) = args.split_at(self.cut);
        let mut args: Vec<Array> = cut.iter().map(|a| a.rows_shared(lo, hi)).chain(whole.iter().cloned()).collect();
        self.walk.run(cx, &mut self.walk.slots(), &mut args)
    }

    fn put(&self, scan: &Scan, results: Vec<Array>, ins: &mut [Array]) {
        for (&id, rows) in self.seqs.iter().zip(results) {
            ins[scan.seq_input(id)] = rows;
        }
    }

    /// Computes all rows of the loop's sequences.
    ///
    /// # Errors
    /// What the ops report.
    pub fn all(&self, scan: &Scan, cx: &mut EvalCx, ins: &mut [Array], args: &[Array]) -> Result<()> {
        let results = self.walk.run(cx, &mut self.walk.slots(), &mut args.to_vec())?;
        self.put(scan, results, ins);
        Ok(())
    }
}

/// Which rows of the sequences are there.
pub struct Feed<'a> {
    head: Option<(&'a Head, &'a [Array])>,
    block: usize,
    /// The step whose rows are the first that are there.
    base: usize,
    /// The step before which further rows are computed.
    end: usize,
}

impl<'a> Feed<'a> {
    /// All rows are there.
    pub fn whole() -> Feed<'a> {
        Feed { head: None, block: 0, base: 0, end: usize::MAX }
    }
    /// The rows from a step on are there.
    pub fn from(base: usize) -> Feed<'a> {
        Feed { head: None, block: 0, base, end: usize::MAX }
    }
    /// A head makes so many at a time of its arguments; none is there yet.
    pub fn blocks(head: &'a Head, args: &'a [Array], block: usize) -> Feed<'a> {
        Feed { head: Some((head, args)), block, base: 0, end: 0 }
    }
    /// What makes the rows, where that is done in blocks.
    pub fn head(&self) -> Option<(&'a Head, &'a [Array])> {
        self.head
    }

    /// Sees to it that the rows of step `step` of n are there; the step before which more are needed.
    ///
    /// # Errors
    /// What the ops report.
    pub fn advance(&mut self, scan: &Scan, cx: &mut EvalCx, ins: &mut [Array], step: usize, n: usize) -> Result<usize> {
        let Some((head, args)) = self.head.filter(|_| step >= self.end) else { return Ok(self.end) };
        let end = if n - step < 2 * self.block { n } else { step + self.block };
        let rows = args[0].shape()[0];
        let (lo, hi) = if head.seqs.first().is_some_and(|&id| scan.seqs[id].reverse) { (rows - end, rows - step) } else { (step, end) };
        let results = head.run(cx, args, lo, hi)?;
        head.put(scan, results, ins);
        (self.base, self.end) = (step, end);
        Ok(end)
    }

    /// The row, from the front, that step `step` reads of a sequence of so many rows.
    pub fn row(&self, scan: &Scan, id: SeqId, rows: usize, step: usize) -> usize {
        let own = self.head.is_none_or(|(head, _)| head.seqs.contains(&id));
        let step = if own { step - self.base } else { step };
        if scan.seqs[id].reverse { rows - 1 - step } else { step }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Engine, NativeLoop, plan};
    use crate::base::small;
    use crate::eval::run;
    use crate::ir::parse::parse;
    use crate::ir::{EvalCx, Graph, Op};
    use crate::types::{Array, DType};

    /// A loop of which rows are computed ahead: products of vectors or matrices, parts of them, functions of them.
    fn program(seqs: &str, ahead: &str, until: &str, keep: &str) -> Graph {
        let text = format!(
            "fn f(n: i64, x: f64[n0, n1, n2], w: f64[n3, n4], b: f64[n5], z: f64[n6, n7]) {{
{ahead}
  %9 = scan n_steps=n {{
    {seqs}
    state h init=f64[1]{{0.25}} reads=[0] writes=[1] keep={keep}
    step t
    %10 = reduce[kind=sum, axes=[0], keepdims=false](u)
    %11 = fma(h, 0.5:f64, %10)
    %12 = tanh(%11)
    %13 = gt(%12, 0.9:f64)
    next h = %12{until}
  }}
  return %9.h, %9.steps
}}"
        );
        parse(&text).unwrap_or_else(|e| panic!("{}: {text}", e.title)).1
    }

    fn args(n: usize, rows: usize, width: usize) -> Vec<Array> {
        let numbers = |shape: &[usize], by: f64| {
            let len = shape.iter().product::<usize>();
            Array::new(shape, (0..len).map(|i| ((i as f64 + 1.0) * by).sin() * 0.3).collect())
        };
        let (x, w) = (numbers(&[rows, 2, 5], 0.37), numbers(&[5, width], 1.7));
        vec![Array::scalar(n as i64), x, w, numbers(&[width], 0.9), numbers(&[rows, 5], 0.61)]
    }

    const VECTORS: &str = "  %1 = matmul(z, w)\n  %2 = add(%1, b)\n  %3 = index[pattern=\":,s:\"](%2, 1:i64)";
    const MATRICES: &str =
        "  %0 = dim[axis=0](x)\n  %1 = dim[axis=1](x)\n  %2 = dim[axis=2](x)\n  %4 = mul(%0, %1)\n  %5 = reshape(x, %4, %2)
  %6 = matmul(%5, w)\n  %7 = dim[axis=1](w)\n  %8 = reshape(%6, %0, %1, %7)\n  %3 = reduce[kind=sum, axes=[1], keepdims=false](%8)";

    fn loop_of(planned: &Graph) -> &NativeLoop {
        let natives = planned.nodes().iter().filter_map(|n| if let Op::Native(op) = &n.op { Some(op) } else { None });
        natives.filter_map(|op| op.0.as_any().downcast_ref::<NativeLoop>()).next().expect("a loop")
    }

    #[test]
    fn blocks_of_rows_give_the_bits_of_all_rows() {
        for ahead in [VECTORS, MATRICES] {
            for (seqs, until) in [("seq u = %3", ""), ("seq u = %3 reverse", ""), ("seq u = %3", "\n    until %13")] {
                for keep in ["all", "last(1)"] {
                    let graph = program(seqs, ahead, until, keep);
                    for engine in [Engine::Vm, Engine::Jit] {
                        let planned = plan(&graph, engine).unwrap();
                        for (n, rows, width) in [(5, 5, 2), (4, 6, 2), (1, 1, 2), (0, 4, 2), (4000, 4000, 70), (3777, 4001, 70)] {
                            let args = args(n, rows, width);
                            let law = run(&graph, &mut EvalCx::new(), &args).unwrap();
                            assert_eq!(law, run(&planned, &mut EvalCx::new(), &args).unwrap(), "{seqs} {keep}, {n} of {rows} rows");
                            let (found, blocks) = small::blocks_of_two(|| run(&planned, &mut EvalCx::new(), &args).unwrap());
                            assert_eq!(law, found, "{seqs} {keep}, {n} of {rows} rows in blocks of two");
                            assert_eq!(blocks, usize::from(n >= 4), "{n}");
                        }
                        assert!(!loop_of(&planned).ahead().is_empty(), "{}", planned.to_text("plan"));
                    }
                }
            }
        }
    }

    #[test]
    fn long_loops_of_wide_rows_have_blocks_and_short_ones_have_none() {
        let planned = plan(&program("seq u = %3", VECTORS, "", "last(1)"), Engine::Vm).unwrap();
        let head = loop_of(&planned).sides.head.as_ref().expect("rows computed ahead");
        let block = |n: usize, rows: usize, width: usize| {
            let all = args(n, rows, width);
            head.block(&mut EvalCx::new(), &[4, 2, 3].map(|k: usize| all[k].clone()), n).unwrap()
        };
        assert_eq!(block(100_000, 100_000, 65), Some((1 << 18) / (8 * 64)));
        assert_eq!(block(1000, 100_000, 65), None);
        assert_eq!(block(100_001, 100_000, 65), None);
    }

    #[test]
    fn misfits_are_the_laws() {
        let graph = program("seq u = %3", VECTORS, "", "last(1)");
        let planned = plan(&graph, Engine::Vm).unwrap();
        let fault = |g: &Graph, args: &[Array]| run(g, &mut EvalCx::new(), args).map(|_| ()).expect_err("a misfit").title;
        let mut narrow = args(5000, 5000, 70);
        narrow[4] = Array::zeros(DType::F64, &[5000, 4]);
        let short = args(5001, 5000, 70);
        let mut one = args(5000, 5000, 70);
        one[3] = Array::zeros(DType::F64, &[69]);
        for args in [narrow, short, one] {
            assert_eq!(fault(&graph, &args), fault(&planned, &args));
        }
    }

    #[test]
    fn what_something_else_reads_is_not_computed_in_blocks() {
        let mut graph = program("seq u = %3", VECTORS, "", "last(1)");
        let made = graph.nodes().iter().find(|n| n.op.name() == "index").expect("rows").outs[0];
        let results = [graph.results(), &[made]].concat();
        graph.set_results(results);
        assert!(loop_of(&plan(&graph, Engine::Vm).unwrap()).ahead().is_empty());
    }
}
