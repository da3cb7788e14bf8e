//! Multiplies once, after the loop, what a loop multiplies and adds up step by step.
//!
//! ```text
//! before  scan n { state acc init=a0;  next acc = acc + transpose(x_t) @ g_t }        of which only the last row is kept
//! after   scan n { state gs;           next gs = g_t }
//!         a0 + outer_sum(x, gs, a0)
//! ```
//!
//! This is what gradients with respect to weights look like; where vectors are multiplied (`acc + g_t[:, None] @ x_t[None]`), they are the rows.
//! Factors that are rows of sequences are taken as they are, others
//! are kept for all steps. Nothing else may read the accumulator, and no condition may stop the loop, nor, in a step, the one that it goes back
//! through. The gradients of products in log
//! space (`log_matmul_right`), which sum over rows, are taken the same way. The order of summation changes: floats may be rounded
//! otherwise.

use crate::base::{Id, Result};
use crate::ir::op::{Flip, Index, LogMatMulRight, OuterSum, Reshape};
use crate::ir::{Graph, Keep, Node, Op, Scan, StateId, Tag, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::parts::title;
use crate::rewrite::loops::rows::Prover;
use crate::rewrite::loops::{Parts, StatePart};
use crate::rewrite::rebuild::{Rebuild, copy_with};
use crate::scalar::ElemOp;
use crate::scan::steady::steady;
use rustc_hash::FxHashMap;

const NAME: &str = "scan_dot_out";

/// The graph with accumulated products after its loops.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    let (mut prover, in_step) = (Prover::new(graph), cx.scan.is_some());
    copy_with(graph, |rebuild, _, node| {
        let Some(scan) = node.op.as_scan().filter(|s| !s.until && !s.body.whole().effects) else { return Ok(false) };
        // Of rows whose number a step alone knows no kernel multiplies.
        if in_step && as_many_as_ran(graph, node) {
            return Ok(false);
        }
        let mut parts = Parts::open(scan, &node.ins);
        let found = accumulators(&mut parts);
        if found.is_empty() {
            return Ok(false);
        }
        cx.done(NAME, title(scan), format!("{} products", found.len()));
        let exact = parts.seqs.iter().map(|s| (s.param, has_rows(&mut prover, s.rows, parts.n_steps))).collect();
        parts.fill(|v| rebuild.image(v))?;
        let n_steps = parts.n_steps;
        let shapes: FxHashMap<Value, Value> = parts.captured.iter().map(|c| (c.param, c.value)).collect();
        let inits: FxHashMap<StateId, Value> = parts.states.iter().filter_map(|s| Some((s.id?, s.init?))).collect();
        let mut stacks = Stacks {
            exact,
            stored: vec![],
            given: FxHashMap::default(),
            seqs: parts.seqs.iter().map(|s| (s.param, s.rows, s.slot.reverse)).collect(),
            expanded: expanded(&parts),
        };
        found.iter().for_each(|acc| acc.product.rows().iter().for_each(|&v| stacks.store(&mut parts, v)));
        parts.states.retain(|s| !found.iter().any(|acc| s.id == Some(acc.state)));
        let first = parts.states.iter().filter(|s| s.id.is_some()).count();
        found.iter().for_each(|acc| acc.product.rows().iter().for_each(|&v| stacks.give(&mut rebuild.new, v, n_steps)));
        let outs = parts.put(rebuild, node)?;
        for acc in found {
            let rows: Vec<Rows> = acc.product.rows().iter().map(|&v| stacks.rows(v, &outs[first..])).collect();
            let init = inits[&acc.state];
            let product = match acc.product {
                Product::Plain(_) => {
                    let sum = OuterSum { back_a: rows[0].reverse, back_b: rows[1].reverse };
                    rebuild.new.emit(sum, &[rows[0].value, rows[1].value, init])
                }
                Product::Log { fixed, turned, .. } => log_product(&mut rebuild.new, &rows, fixed.map(|v| shapes[&v]), turned, init),
            };
            let like = acc.like.iter().map(|v| shapes[v]);
            let total = like.fold(product, |total, like| rebuild.new.sum_to(total, like));
            let image = after(rebuild, inits[&acc.state], total, n_steps);
            rebuild.set(node.outs[scan.state_output(acc.state)], image);
        }
        Ok(true)
    })
}

/// True for a loop of as many steps as another one ran until it stopped.
fn as_many_as_ran(graph: &Graph, node: &Node) -> bool {
    let ran = graph.node_of(node.ins[Scan::N_STEPS]).and_then(|n| n.op.as_scan());
    ran.is_some_and(|scan| scan.until)
}

/// Rows of sequences to which the step adds axes, with the positions of these axes among all rows.
fn expanded(parts: &Parts) -> Vec<(Value, Value, Vec<usize>)> {
    let of = |n: &Node| match &n.op {
        Op::Expand(e) if parts.seqs.iter().any(|s| s.param == n.ins[0]) => {
            Some((n.outs[0], n.ins[0], e.axes.iter().map(|a| a + 1).collect()))
        }
        _ => None,
    };
    parts.body.nodes().iter().filter_map(of).collect()
}

fn has_rows(prover: &mut Prover, rows: Value, n_steps: Value) -> bool {
    let rows = prover.rows(rows);
    rows.relies.is_none() && rows.form == prover.scalar(n_steps)
}

/// A state that adds up products.
struct Accumulator {
    state: StateId,
    product: Product,
    /// Captured values to whose shape products are summed, in the order in which that happens.
    like: Vec<Value>,
    /// Per factor: it is a column that stands here for the row that it is transposed.
    columns: [bool; 2],
}

impl Accumulator {
    /// Puts rows in the place of columns.
    fn settle(&mut self, body: &mut Graph) {
        let Product::Plain(factors) = &mut self.product else { return };
        for (factor, _) in factors.iter_mut().zip(self.columns).filter(|f| f.1) {
            let vector = body.node_of(*factor).filter(|n| matches!(&n.op, Op::Expand(e) if e.axes == [1])).map(|n| n.ins[0]);
            *factor = match vector {
                Some(vector) => body.expand(vector, &[0]),
                None => body.transpose(*factor, &[1, 0]),
            };
        }
    }
}

/// What is added up, with the values that are different at every step.
#[derive(Clone, Copy)]
enum Product {
    /// The factors; the first is transposed, and stands here before it is.
    Plain([Value; 2]),
    /// `log_matmul_right` of these rows (cotangents, quotients, powers and a) and captured values, transposed after where `turned`.
    Log { rows: [Value; 4], fixed: [Value; 2], turned: bool },
}

impl Product {
    fn rows(&self) -> &[Value] {
        match self {
            Product::Plain(rows) => rows,
            Product::Log { rows, .. } => rows,
        }
    }
}

fn accumulators(parts: &mut Parts) -> Vec<Accumulator> {
    let mut users = vec![0usize; parts.body.n_values()];
    let live = parts.live();
    parts.body.nodes().iter().filter(|n| n.outs.iter().any(|v| live[v.idx()])).for_each(|n| n.ins.iter().for_each(|v| users[v.idx()] += 1));
    parts.results().iter().for_each(|v| users[v.idx()] += 1);
    let steady = steady(&parts.body, parts.varying());
    let same = |acc: &Accumulator| acc.product.rows().iter().all(|v| steady[v.idx()]);
    let mut found: Vec<Accumulator> = parts.states.iter().filter_map(|s| accumulator(parts, s, &users).filter(same)).collect();
    found.iter_mut().for_each(|acc| acc.settle(&mut parts.body));
    found
}

fn accumulator(parts: &Parts, state: &StatePart, users: &[usize]) -> Option<Accumulator> {
    let slot = &state.slot;
    let plain = slot.reads[..] == [0] && slot.writes[..] == [1] && slot.keep == Keep::Last(1) && slot.row.rank() == 2;
    if !plain || !slot.row.dtype.is_float() {
        return None;
    }
    let (before, after) = (state.params[0], state.results[0]);
    let sum = node_of(parts, after, |op| matches!(op, Op::Elem(ElemOp::Add)))?;
    if users[before.idx()] != 1 || users[after.idx()] != 1 || !sum.ins.contains(&before) {
        return None;
    }
    let mut part = if sum.ins[0] == before { sum.ins[1] } else { sum.ins[0] };
    let mut like = vec![];
    while let Some(node) = node_of(parts, part, |op| matches!(op, Op::SumTo(_))) {
        parts.captured.iter().find(|c| c.param == node.ins[1])?;
        like.insert(0, node.ins[1]);
        part = node.ins[0];
    }
    let (product, columns) = match factors(parts, part) {
        Some((factors, columns)) => (Product::Plain(factors), columns),
        None => (log(parts, part)?, [false; 2]),
    };
    let fits = |v: &Value| parts.body.ty(*v).dtype == slot.row.dtype;
    product.rows().iter().all(fits).then_some(Accumulator { state: state.id?, product, like, columns })
}

/// The factors of a product, the first one transposed, and which of them are columns yet.
fn factors(parts: &Parts, part: Value) -> Option<([Value; 2], [bool; 2])> {
    let product = node_of(parts, part, |op| matches!(op, Op::MatMul(_)))?;
    let (left, right) = (product.ins[0], product.ins[1]);
    let column = |v: Value| parts.body.ty(v).rank() == 2 && parts.body.ty(v).dims[1].is_one();
    let (left, left_is_column) = match transposed(parts, left) {
        Some(rows) => (rows, false),
        None => (Some(left).filter(|&v| column(v))?, true),
    };
    let turned = transposed(parts, right).filter(|&v| column(v));
    let factors = [left, turned.unwrap_or(right)];
    factors.iter().all(|&v| parts.body.ty(v).rank() == 2).then_some((factors, [left_is_column, turned.is_some()]))
}

fn log(parts: &Parts, part: Value) -> Option<Product> {
    let inner = transposed(parts, part);
    let node = node_of(parts, inner.unwrap_or(part), |op| matches!(op, Op::LogMatMulRight(_)))?;
    let [ct, quotients, powers, a, w, power] = node.ins[..].try_into().ok()?;
    let fixed = [w, power];
    let captured = fixed.iter().all(|v| parts.captured.iter().any(|c| c.param == *v));
    captured.then_some(Product::Log { rows: [ct, quotients, powers, a], fixed, turned: inner.is_some() })
}

/// What is transposed to a matrix.
fn transposed(parts: &Parts, v: Value) -> Option<Value> {
    node_of(parts, v, |op| matches!(op, Op::Transpose(t) if t.perm == [1, 0])).map(|n| n.ins[0])
}

fn node_of(parts: &Parts, v: Value, wanted: impl Fn(&Op) -> bool) -> Option<&Node> {
    parts.body.node_of(v).filter(|n| wanted(&n.op))
}

/// Where the rows of factors are.
struct Stacks {
    /// Sequences whose rows are as many as the steps.
    exact: FxHashMap<Value, bool>,
    seqs: Vec<(Value, Value, bool)>,
    /// Rows of sequences with new axes.
    expanded: Vec<(Value, Value, Vec<usize>)>,
    /// Values kept for all steps.
    stored: Vec<Value>,
    /// Rows that are there before the loop, in the copy.
    given: FxHashMap<Value, Rows>,
}

/// Rows of all steps.
#[derive(Clone, Copy)]
struct Rows {
    value: Value,
    /// The first step's row is the last.
    reverse: bool,
}

impl Stacks {
    /// Lets the loop keep a value for all steps, where it is not a row of a sequence.
    fn store(&mut self, parts: &mut Parts, v: Value) {
        let given = self.seqs.iter().any(|s| s.0 == v) || self.expanded.iter().any(|e| e.0 == v);
        if given || self.stored.contains(&v) {
            return;
        }
        self.stored.push(v);
        parts.keep(v, Tag::Cotangent);
    }
    /// Puts the rows of all steps before the loop, where they are those of a sequence.
    fn give(&mut self, g: &mut Graph, v: Value, n: Value) {
        if !self.stored.contains(&v) && !self.given.contains_key(&v) {
            let rows = self.of_sequence(g, v, n);
            self.given.extend(rows.map(|rows| (v, rows)));
        }
    }
    fn of_sequence(&self, g: &mut Graph, v: Value, n: Value) -> Option<Rows> {
        if let Some((_, row, axes)) = self.expanded.iter().find(|e| e.0 == v) {
            let rows = self.of_sequence(g, *row, n)?;
            return Some(Rows { value: g.expand(rows.value, axes), ..rows });
        }
        let &(_, rows, reverse) = self.seqs.iter().find(|s| s.0 == v)?;
        let value = match (self.exact[&v], reverse) {
            (true, _) => rows,
            (false, false) => g.emit(Index { pattern: ":e".into() }, &[rows, n]),
            (false, true) => {
                let len = g.dim(rows, 0);
                let start = g.sub(len, n);
                g.emit(Index { pattern: "s:".into() }, &[rows, start])
            }
        };
        Some(Rows { value, reverse })
    }
    /// The rows of all steps, in the copy.
    fn rows(&self, v: Value, outs: &[Value]) -> Rows {
        let stored = || Rows { value: outs[self.stored.iter().position(|s| *s == v).unwrap_or(0)], reverse: false };
        self.given.get(&v).copied().unwrap_or_else(stored)
    }
}

/// `log_matmul_right` of the rows of all steps.
fn log_product(g: &mut Graph, rows: &[Rows], [w, power]: [Value; 2], turned: bool, init: Value) -> Value {
    // Cotangents of a backward loop meet rows of a forward one: the product reads the former from the last on. Rows of a batch are in
    // order within each step.
    let pairs = rows[0].reverse == rows[1].reverse && rows[2].reverse == rows[3].reverse && rows.iter().all(|r| g.ty(r.value).rank() == 2);
    let reverse = pairs && rows[0].reverse != rows[2].reverse;
    let some_turn = !reverse && rows.iter().any(|r| r.reverse);
    let axes = if turned { [1, 1, 2, 2] } else { [2, 2, 1, 1] };
    let mut given: Vec<Value> = vec![];
    for (rows, axis) in rows.iter().zip(axes) {
        let value = if some_turn && !rows.reverse { g.emit(Flip { axis: 0 }, &[rows.value]) } else { rows.value };
        given.push(if g.ty(value).rank() == 3 { flat(g, value, init, axis) } else { value });
    }
    given.extend([w, power]);
    let right = g.emit(LogMatMulRight { reverse }, &given);
    if turned { g.transpose(right, &[1, 0]) } else { right }
}

/// n matrices of b rows as one of n·b rows.
fn flat(g: &mut Graph, x: Value, init: Value, axis: usize) -> Value {
    let (n, b, k) = (g.dim(x, 0), g.dim(x, 1), g.dim(x, 2));
    let (rows, zero, fitting) = (g.mul(n, b), g.int(0), g.dim(init, axis));
    let some = g.emit(Op::Elem(ElemOp::Gt), &[n, zero]);
    let width = g.select(some, k, fitting);
    g.emit(Reshape {}, &[x, rows, width])
}

/// What the loop returned: one row, none where no step ran.
fn after(rebuild: &mut Rebuild, init: Value, total: Value, n: Value) -> Value {
    let g = &mut rebuild.new;
    let (zero, one) = (g.int(0), g.int(1));
    let init = g.slice_rows(init, zero, one);
    let total = g.expand(total, &[0]);
    let sum = g.add(init, total);
    let rows = g.minimum(n, one);
    g.emit(Index { pattern: ":e".into() }, &[sum, rows])
}
