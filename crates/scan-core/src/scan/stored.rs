//! What a step computes and its loop returns, whole or as a part of a row: the gradient reads it again instead of computing it again.
//!
//! ```text
//! a step      rows = scan n { … init=start };  next row = join(edge, rows[1:])
//! again       rest = row[len(edge):];  rows = join(start, rest)        row is what the loop returned
//! ```

use crate::base::{Id, Result};
use crate::ir::op::{Index, Join, Op};
use crate::ir::{Def, Graph, Keep, Scan, StateId, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// Values of a step that the rows of its states hold.
pub(super) struct Stored {
    /// Rows, with their states.
    rows: Vec<(Value, StateId)>,
    /// What follows from rows, each after what it is made of.
    made: Vec<(Value, Made)>,
}

/// How a value follows from others.
enum Made {
    /// A part of a row along an axis: from one element on, up to another, both counted from the front, or from the end where negative.
    Part {
        row: Value,
        axis: usize,
        from: i64,
        /// `None`: up to the end.
        to: Option<i64>,
    },
    /// All rows of a loop in the step, of those behind the first ones.
    Rows { first: Value, rest: Value },
    /// How many rows there are behind the first ones: steps of the loop.
    Count(Value),
}

impl Stored {
    /// What the loop returns of a step that writes `results`.
    pub(super) fn new(scan: &Scan, graph: &Graph, results: &[Value]) -> Stored {
        let whole = scan.states.enumerate().filter(|(_, s)| s.keep == Keep::All && s.writes.len() == 1 && s.stable());
        let rows = whole.map(|(id, _)| (results[scan.write_results(id).start], id));
        let rows: Vec<(Value, StateId)> = rows.filter(|(v, _)| graph.node_of(*v).is_some_and(|n| !matches!(n.op, Op::Const(_)))).collect();
        let mut made = vec![];
        for (row, _) in &rows {
            made.extend(loop_around(graph, *row));
            for (part, how) in parts(graph, *row) {
                made.push((part, how));
                made.extend(loop_around(graph, part));
            }
        }
        Stored { rows, made }
    }
    /// True for what the loop returns, and what follows from it.
    pub(super) fn has(&self, v: Value) -> bool {
        self.rows.iter().any(|s| s.0 == v) || self.made.iter().any(|m| m.0 == v)
    }
    /// The values of the step that a value which it [has](Stored::has) is made of, but for rows.
    pub(super) fn made_of(&self, v: Value) -> impl Iterator<Item = Value> {
        self.made
            .iter()
            .filter(move |m| m.0 == v)
            .flat_map(|(_, how)| match *how {
                Made::Part { row, .. } => [Some(row), None],
                Made::Rows { first, rest } => [Some(first), Some(rest)],
                Made::Count(rest) => [Some(rest), None],
            })
            .flatten()
    }
    /// Rows that are among these values, with their states.
    pub(super) fn among(&self, used: &FxHashSet<Value>) -> impl Iterator<Item = (Value, StateId)> {
        self.rows.iter().copied().filter(|(v, _)| used.contains(v))
    }
    /// Adds the images of what follows from the rows that `image` has, as far as it is used.
    ///
    /// # Errors
    /// What type inference reports.
    pub(super) fn follow(
        &self,
        step: &Graph,
        used: &FxHashSet<Value>,
        body: &mut Graph,
        image: &mut FxHashMap<Value, Value>,
    ) -> Result<()> {
        for (v, how) in self.made.iter().filter(|m| used.contains(&m.0)) {
            let new = match how {
                Made::Part { row, axis, from, to } => {
                    let pattern = format!("{}s:{}", ":,".repeat(*axis), if to.is_some() { "e" } else { "" });
                    let mut ins = vec![image[row], body.int(*from)];
                    ins.extend(to.map(|to| body.int(to)));
                    body.emit(Index { pattern }, &ins)
                }
                Made::Rows { first, rest } => {
                    let first = body.inline(step, image, &[*first])?[0];
                    body.join_rows(&[first, image[rest]])
                }
                Made::Count(rest) => body.dim(image[rest], 0),
            };
            image.insert(*v, new);
        }
        Ok(())
    }
}

/// What a row is joined of, and costs more than to read: as far as it is known where it begins and ends.
fn parts(graph: &Graph, row: Value) -> Vec<(Value, Made)> {
    let Some(node) = graph.node_of(row) else { return vec![] };
    let Op::Join(Join { axis }) = node.op else { return vec![] };
    let extents: Vec<Option<i64>> = node.ins.iter().map(|&v| graph.ty(v).dims[axis].value().map(|n| n as i64)).collect();
    let sum = |of: &[Option<i64>]| of.iter().copied().sum::<Option<i64>>();
    let part = |(k, &value): (usize, &Value)| {
        let (before, own, after) = (sum(&extents[..k]), extents[k], sum(&extents[k + 1..]));
        let from = before.or_else(|| Some(-(after? + own?)))?;
        let to = match after {
            Some(0) => None,
            Some(after) => Some(-after),
            None => Some(before? + own?),
        };
        let worth = computed(graph, value) && own != Some(0) && graph.ty(value).dtype == graph.ty(row).dtype;
        worth.then_some((value, Made::Part { row, axis, from, to }))
    };
    node.ins.iter().enumerate().filter_map(part).collect()
}

/// True where a value is more than elements of something else.
fn computed(graph: &Graph, v: Value) -> bool {
    match graph.node_of(v) {
        Some(node) if matches!(node.op, Op::Index(_)) => graph.node_of(node.ins[0]).is_some_and(|n| n.op.as_scan().is_some()),
        Some(node) => !matches!(node.op, Op::Const(_)) && !node.op.properties().aliases,
        None => false,
    }
}

/// Of the rows of a loop behind its first ones: all of them, and how many steps there were.
fn loop_around(graph: &Graph, rest: Value) -> Vec<(Value, Made)> {
    let found = || {
        let node = graph.node_of(rest)?;
        let Op::Index(Index { pattern }) = &node.op else { return None };
        let (Def::Out(at, k), Some(from)) = (graph.def(node.ins[0]), graph.const_value(*node.ins.get(1)?)) else { return None };
        let made = &graph.nodes()[at];
        let scan = made.op.as_scan().filter(|s| !s.until && k < s.states.len())?;
        let id = StateId::new(k);
        let (state, first) = (&scan.states[id], made.ins[scan.init_input(id)?]);
        let span = state.span();
        let all = &**pattern == "s:" && from.item_i64() == Some(span as i64) && graph.ty(first).dims[0].value() == Some(span);
        let steps = (made.outs[scan.steps_output()], Made::Count(rest));
        (all && state.keep == Keep::All).then(|| vec![(node.ins[0], Made::Rows { first, rest }), steps])
    };
    found().unwrap_or_default()
}
