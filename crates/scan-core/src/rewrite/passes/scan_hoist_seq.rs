//! Multiplies all rows of a sequence with a matrix at once, before the loop, also in log space.
//!
//! ```text
//! before  scan n { seq x; state h; const W, U;   next h = tanh(x @ W + h @ U) }
//! after   y = x @ W
//!         scan n { seq y; state h; const U;      next h = tanh(y + h @ U) }
//! ```
//!
//! One large product is faster than many small ones, so this pays for products; elementwise work stays inside, where it costs
//! no memory. The loop has no condition that may stop it, and every step computes the product, and for its values: not only for
//! its shape. Floats may be rounded otherwise, since a product's order of
//! summation depends on its extents.

use crate::base::{Id, Result};
use crate::ir::op::{Index, Reshape};
use crate::ir::{Graph, Node, NodeId, Op, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::facts::{eager, for_values, infallible, some_step};
use crate::rewrite::loops::parts::title;
use crate::rewrite::loops::rows::Prover;
use crate::rewrite::loops::{Parts, SeqPart};
use crate::rewrite::rebuild::copy_with;

const NAME: &str = "scan_hoist_seq";

/// The graph with products of sequences before its loops.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    let mut prover = Prover::new(graph);
    copy_with(graph, |rebuild, _, node| {
        let Some(scan) = node.op.as_scan().filter(|s| !s.until && !s.body.whole().effects) else { return Ok(false) };
        let mut parts = Parts::open(scan, &node.ins);
        let products = products(&parts, cx.speculate || some_step(graph, parts.n_steps));
        if products.is_empty() {
            return Ok(false);
        }
        cx.done(NAME, title(scan), format!("{} products", products.len()));
        let exact: Vec<bool> = parts.seqs.iter().map(|s| has_rows(&mut prover, s.rows, parts.n_steps)).collect();
        parts.fill(|v| rebuild.image(v))?;
        for product in products {
            let ins = product.ins.iter().map(|given| match *given {
                Given::Captured(at) => parts.captured[at].value,
                Given::Row(at) if exact[at] => parts.seqs[at].rows,
                Given::Row(at) => cut(&mut rebuild.new, &parts.seqs[at], parts.n_steps),
            });
            let ins: Vec<Value> = ins.collect();
            let rows = at_once(&mut rebuild.new, &product.op, &ins);
            let seq = parts.seqs[product.seq].clone();
            parts.seqs.push(SeqPart { rows, param: product.value, ..seq });
        }
        parts.put(rebuild, node).map(|_| true)
    })
}

/// A product of a row of a sequence with a captured matrix, or a part of one in log space.
struct Product {
    op: Op,
    ins: Vec<Given>,
    /// The sequence of its first operand.
    seq: usize,
    value: Value,
}

/// An operand.
enum Given {
    /// A row of a sequence.
    Row(usize),
    /// A captured value.
    Captured(usize),
}

fn products(parts: &Parts, may_fail: bool) -> Vec<Product> {
    let (eager, values) = (eager(&parts.body), for_values(&parts.body));
    let found = |(_, node): (NodeId, &Node)| {
        let value = node.outs[0];
        // How many of the operands are rows.
        let rows = match node.op {
            Op::MatMul(_) | Op::LogMatMulPowers(_) | Op::LogMatMulSums(_) => [0].as_slice(),
            Op::LogMatMul(_) => &[0, 2],
            _ => return None,
        };
        if !eager[value.idx()] || !values[value.idx()] || !may_fail && !infallible(&parts.body, node) {
            return None;
        }
        let given = |(at, v): (usize, &Value)| match rows.contains(&at) {
            true => parts.seqs.iter().position(|s| s.param == *v).map(Given::Row),
            false => parts.captured.iter().position(|c| c.param == *v).map(Given::Captured),
        };
        let ins = node.ins.iter().enumerate().map(given).collect::<Option<Vec<Given>>>()?;
        let seqs: Vec<usize> = ins.iter().filter_map(|given| if let Given::Row(at) = given { Some(*at) } else { None }).collect();
        let x = parts.body.ty(node.ins[0]);
        let plain = node.ins.get(1).is_none_or(|w| parts.body.ty(*w).rank() == 2 && parts.body.ty(*w).dtype == x.dtype);
        let same_way = seqs.iter().all(|&at| parts.seqs[at].slot.reverse == parts.seqs[seqs[0]].slot.reverse);
        (matches!(x.rank(), 1 | 2) && plain && same_way).then(|| Product { op: node.op.clone(), ins, seq: seqs[0], value })
    };
    parts.body.nodes().enumerate().filter_map(found).collect()
}

/// True where a value has exactly as many rows as the loop has steps.
fn has_rows(prover: &mut Prover, rows: Value, n_steps: Value) -> bool {
    let rows = prover.rows(rows);
    rows.relies.is_none() && rows.form == prover.scalar(n_steps)
}

/// Those rows of a sequence that the loop sees.
fn cut(g: &mut Graph, seq: &SeqPart, n: Value) -> Value {
    if seq.slot.reverse {
        let len = g.dim(seq.rows, 0);
        let start = g.sub(len, n);
        return g.emit(Index { pattern: "s:".into() }, &[seq.rows, start]);
    }
    g.emit(Index { pattern: ":e".into() }, &[seq.rows, n])
}

/// The product of all rows with what is fixed. In log space, operands are matrices.
fn at_once(g: &mut Graph, op: &Op, ins: &[Value]) -> Value {
    let x = ins[0];
    if matches!(op, Op::MatMul(_)) || g.ty(x).rank() == 2 || ins.len() == 1 {
        return g.emit(op.clone(), ins);
    }
    let (n, b, p) = (g.dim(x, 0), g.dim(x, 1), g.dim(ins[1], 1));
    let rows = g.mul(n, b);
    let mut flat = |v: Value| {
        if g.ty(v).rank() < 3 {
            return v;
        }
        let width = g.dim(v, 2);
        g.emit(Reshape {}, &[v, rows, width])
    };
    let ins: Vec<Value> = ins.iter().map(|&v| flat(v)).collect();
    let product = g.emit(op.clone(), &ins);
    g.emit(Reshape {}, &[product, n, b, p])
}
