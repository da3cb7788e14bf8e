//! Multiplies all rows of a sequence with a matrix at once, before the loop, also in log space.
//!
//! ```text
//! before  scan n { seq x; state h; const W, U;   next h = tanh(x @ W + h @ U) }
//! after   y = reshape(reshape(x, n·b, k) @ W, n, b, p)
//!         scan n { seq y; state h; const U;      next h = tanh(y + h @ U) }
//! ```
//!
//! One large product is faster than many small ones, so this pays for products; elementwise work stays inside, where it costs
//! no memory. The loop has no condition that may stop it, and every step computes the product, and for its values: not only for
//! its shape. Where no step runs, the product must not fail although its extents may not fit: no rows have any extent.
//! Floats may be rounded otherwise, since a product's order of summation depends on its extents.

use crate::base::{Id, Result};
use crate::ir::op::{Index, Reshape};
use crate::ir::{Graph, Node, NodeId, Op, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::batch::product as product_of_all;
use crate::rewrite::loops::facts::{eager, for_values, has_effects};
use crate::rewrite::loops::parts::title;
use crate::rewrite::loops::rows::Prover;
use crate::rewrite::loops::{Parts, SeqPart};
use crate::rewrite::rebuild::copy_with;
use crate::scalar::ElemOp;

const NAME: &str = "scan_hoist_seq";

/// The graph with products of sequences before its loops.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    let mut prover = Prover::new(graph);
    copy_with(graph, |rebuild, _, node| {
        let Some(scan) = node.op.as_scan().filter(|s| !s.until && !has_effects(&s.body)) else { return Ok(false) };
        let mut parts = Parts::open(scan, &node.ins);
        let products = products(&parts);
        if products.is_empty() {
            return Ok(false);
        }
        cx.done(NAME, title(scan), format!("{} products", products.len()));
        let exact: Vec<bool> = parts.seqs.iter().map(|s| has_rows(&mut prover, s.rows, parts.n_steps)).collect();
        parts.fill(|v| rebuild.image(v))?;
        for product in products {
            let seq = parts.seqs[product.seq].clone();
            let x = if exact[product.seq] { seq.rows } else { cut(&mut rebuild.new, &seq, parts.n_steps) };
            let fixed: Vec<Value> = product.captured.iter().map(|&c| parts.captured[c].value).collect();
            let rows = at_once(&mut rebuild.new, &product.op, x, &fixed);
            parts.seqs.push(SeqPart { rows, param: product.value, ..seq });
        }
        parts.put(rebuild, node).map(|_| true)
    })
}

/// A product of a row of a sequence with a captured matrix, and whatever else of captured values it takes.
struct Product {
    op: Op,
    seq: usize,
    captured: Vec<usize>,
    value: Value,
}

fn products(parts: &Parts) -> Vec<Product> {
    let (eager, values) = (eager(&parts.body), for_values(&parts.body));
    let found = |(_, node): (NodeId, &Node)| {
        let value = node.outs[0];
        let product = matches!(node.op, Op::MatMul(_) | Op::LogMatMul(_) | Op::LogMatMulSums(_));
        let wanted = product && eager[value.idx()] && values[value.idx()];
        let seq = parts.seqs.iter().position(|s| wanted && s.param == node.ins[0])?;
        let captured = node.ins[1..].iter().map(|v| parts.captured.iter().position(|c| c.param == *v)).collect::<Option<Vec<_>>>()?;
        let (x, w) = (parts.body.ty(node.ins[0]), parts.body.ty(node.ins[1]));
        let fits = matches!(x.rank(), 1 | 2) && w.rank() == 2 && x.dtype == w.dtype;
        fits.then(|| Product { op: node.op.clone(), seq, captured, value })
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

/// The product of all rows with what is fixed, of which the matrix is the first. In log space no rows fit every matrix.
fn at_once(g: &mut Graph, op: &Op, x: Value, fixed: &[Value]) -> Value {
    if matches!(op, Op::MatMul(_)) {
        return product_of_all(g, x, fixed[0]);
    }
    let product = |g: &mut Graph, rows: Value| {
        let ins: Vec<Value> = std::iter::once(rows).chain(fixed.iter().copied()).collect();
        g.emit(op.clone(), &ins)
    };
    if g.ty(x).rank() == 2 {
        return product(g, x);
    }
    let (n, b, k, p, zero) = (g.dim(x, 0), g.dim(x, 1), g.dim(x, 2), g.dim(fixed[0], 1), g.int(0));
    let some = g.emit(Op::Elem(ElemOp::Gt), &[n, zero]);
    let fitting = g.dim(fixed[0], 0);
    let inner = g.select(some, k, fitting);
    let rows = g.mul(n, b);
    let flat = g.emit(Reshape {}, &[x, rows, inner]);
    let product = product(g, flat);
    g.emit(Reshape {}, &[product, n, b, p])
}
