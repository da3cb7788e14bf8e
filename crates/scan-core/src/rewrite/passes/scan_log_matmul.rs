//! Makes products of a logsumexp whose matrix is the same at every step.
//!
//! ```text
//! before  scan n { state a; const w;            next a = logsumexp(expand(a) + w) }
//! after   top = logsumexp(w); power = exp(w − top)                                   once scan_hoist_non_seq has moved them
//!         scan n { state a; const w, top, power; s = log_matmul_sums(log_matmul_powers(a), power); next a = log_matmul(a, w, s, top) }
//! ```
//!
//! A step then takes as many exponentials as a has elements instead of as many as w has. `ops/log_matmul.rs` bounds the error (about
//! 10⁻¹³), and computes by the formula what would be less accurate. The weights that a gradient multiplies with, `exp(x − logsumexp(x))`, are
//! not made where they are only summed: over the columns for the cotangent of a, over steps for that of w. What both loops compute
//! (`log_matmul_powers`, `log_matmul_sums`) `scan_residuals` keeps. The matrix may be
//! transposed, and a may be a batch of rows. Numbers are f64; for f32 the formula, which computes in f64, is more accurate.

use crate::base::{Id, Result, Span};
use crate::ir::op::{LogMatMul, LogMatMulLeft, LogMatMulPowers, LogMatMulQuotients, LogMatMulRight, LogMatMulSums, LogSumExp};
use crate::ir::{Graph, Node, Op, Value};
use crate::ops::softmax::weights;
use crate::rewrite::Cx;
use crate::rewrite::loops::Parts;
use crate::rewrite::loops::parts::title;
use crate::rewrite::rebuild::copy_with;
use crate::scalar::ElemOp;
use crate::types::DType;

const NAME: &str = "scan_log_matmul";

/// The graph with products in log space in the steps of its loops.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    copy_with(graph, |rebuild, _, node| {
        let Some(scan) = node.op.as_scan() else { return Ok(false) };
        let mut parts = Parts::open(scan, &node.ins);
        let sites = sites(&parts);
        if sites.is_empty() {
            return Ok(false);
        }
        let mut summed = 0;
        for site in &sites {
            let product = Product::new(&mut parts, site);
            summed += gradients(&mut parts, site, &product);
        }
        let also = if summed > 0 { format!(", {summed} of their gradients") } else { String::new() };
        cx.done(NAME, title(scan), format!("{} products{also}", sites.len()));
        parts.fill(|v| rebuild.image(v))?;
        parts.put(rebuild, node).map(|_| true)
    })
}

/// `y = logsumexp(x)`, `x = a + w`, a being a vector or rows with an axis of extent 1 for the columns.
struct Site {
    y: Value,
    x: Value,
    a: Value,
    w: Value,
    /// The axis over which is summed, of x.
    axis: usize,
    keepdims: bool,
    rank: usize,
}

impl Site {
    /// The axis of the results, of x.
    fn columns(&self) -> usize {
        2 * self.rank - 3 - self.axis
    }
    /// True where w holds what leads to a result in a row.
    fn turned(&self) -> bool {
        self.axis + 1 == self.rank
    }
}

fn sites(parts: &Parts) -> Vec<Site> {
    let (live, fixed) = (parts.live(), fixed(parts));
    let nodes = parts.body.nodes().iter().filter(|n| live[n.outs[0].idx()]);
    nodes.filter_map(|n| site(&parts.body, n, &fixed)).collect()
}

/// True per value of the body that is the same at every step.
fn fixed(parts: &Parts) -> Vec<bool> {
    let mut fixed = vec![false; parts.body.n_values()];
    parts.captured.iter().for_each(|c| fixed[c.param.idx()] = true);
    for node in parts.body.nodes().iter() {
        if node.ins.iter().all(|v| fixed[v.idx()]) {
            node.outs.iter().for_each(|v| fixed[v.idx()] = true);
        }
    }
    fixed
}

fn site(g: &Graph, node: &Node, fixed: &[bool]) -> Option<Site> {
    let Op::LogSumExp(LogSumExp { axes, keepdims }) = &node.op else { return None };
    let (&[axis], x) = (&axes[..], node.ins[0]) else { return None };
    let rank = g.ty(x).rank();
    if !(2..=3).contains(&rank) || axis + 2 < rank {
        return None;
    }
    let [left, right] = elem(g, x, ElemOp::Add)?;
    let (a, w) = if fixed[right.idx()] { (left, right) } else { (right, left) };
    let site = Site { y: node.outs[0], x, a, w, axis, keepdims: *keepdims, rank };
    (fixed[w.idx()] && !fixed[a.idx()] && fits(g, &site)).then_some(site)
}

fn fits(g: &Graph, site: &Site) -> bool {
    let (a, w) = (g.ty(site.a), g.ty(site.w));
    let row = a.rank() == site.rank && a.dims[site.columns()].is_one() || (a.rank(), site.rank) == (1, 2) && site.turned();
    let matrix = w.rank() == 2 || w.rank() == site.rank && w.dims[0].is_one();
    let full = matrix && w.dims[w.rank() - 2..].iter().all(|d| !d.is_one());
    row && full && a.dtype == DType::F64 && w.dtype == DType::F64
}

/// The operands of the node that makes a value by an elementwise function.
fn elem<const N: usize>(g: &Graph, v: Value, op: ElemOp) -> Option<[Value; N]> {
    let node = g.node_of(v).filter(|n| matches!(&n.op, Op::Elem(e) if *e == op))?;
    node.ins[..].try_into().ok()
}

/// Without an axis of extent 1.
fn without(g: &mut Graph, v: Value, axis: usize) -> Value {
    let before = g.node_of(v).filter(|n| matches!(&n.op, Op::Expand(e) if e.axes == [axis])).map(|n| n.ins[0]);
    before.unwrap_or_else(|| g.squeeze(v, &[axis]))
}

/// New nodes get the line of a value's; returns that of those before.
fn at_line_of(g: &mut Graph, v: Value) -> Span {
    let span = g.node_of(v).map_or(Span::NONE, |n| n.span);
    g.set_span(span)
}

/// A product with its operands, in the body.
struct Product {
    a: Value,
    w: Value,
    top: Value,
    power: Value,
    powers: Value,
    sums: Value,
}

impl Product {
    /// Puts the product in the place of the sum.
    fn new(parts: &mut Parts, site: &Site) -> Product {
        let g = &mut parts.body;
        let outer = at_line_of(g, site.y);
        let a = if g.ty(site.a).rank() == site.rank { without(g, site.a, site.columns()) } else { site.a };
        let matrix = if g.ty(site.w).rank() == 3 { g.squeeze(site.w, &[0]) } else { site.w };
        let w = if site.turned() { g.transpose(matrix, &[1, 0]) } else { matrix };
        let top = g.emit(LogSumExp { axes: vec![0], keepdims: false }, &[w]);
        let spread = g.expand(top, &[0]);
        let power = weights(g, w, spread);
        let powers = g.emit(LogMatMulPowers {}, &[a]);
        let sums = g.emit(LogMatMulSums {}, &[powers, power]);
        let y = g.emit(LogMatMul {}, &[a, w, sums, top]);
        let y = if site.keepdims { g.expand(y, &[site.axis]) } else { y };
        g.set_span(outer);
        parts.alias(site.y, y);
        Product { a, w, top, power, powers, sums }
    }
}

/// Sums weighted cotangents without making the weights; how many gradients that are.
fn gradients(parts: &mut Parts, site: &Site, product: &Product) -> usize {
    let found: Vec<Weighted> = weighted(parts, site);
    if found.is_empty() {
        return 0;
    }
    found.iter().for_each(|w| sum(parts, site, product, w));
    shaped(parts, site, product.sums);
    found.len()
}

/// Lets what has the shape of y take that of the sums, so that y is not computed for its shape.
fn shaped(parts: &mut Parts, site: &Site, sums: Value) {
    let g = &mut parts.body;
    let like = if site.keepdims { g.expand(sums, &[site.axis]) } else { sums };
    let of_shape = |n: &&Node| matches!(n.op, Op::SumTo(_) | Op::BroadcastLike(_)) && n.ins[1] == site.y && n.ins[0] != site.y;
    let found: Vec<Node> = parts.body.nodes().iter().filter(of_shape).cloned().collect();
    for node in found {
        let outer = at_line_of(&mut parts.body, node.outs[0]);
        let new = parts.body.emit(node.op, &[node.ins[0], like]);
        parts.body.set_span(outer);
        parts.alias(node.outs[0], new);
    }
}

/// `value = cts · exp(x − y)`, and who reads it.
struct Weighted {
    value: Value,
    cts: Value,
    /// Sums to the shape of a.
    to_a: Vec<Value>,
    /// Sums to the shape of w, with what has that shape; of one row the value is its own sum.
    to_w: Vec<(Value, Value)>,
    /// Something else reads the value.
    whole: bool,
}

fn weighted(parts: &Parts, site: &Site) -> Vec<Weighted> {
    let g = &parts.body;
    let mut found = vec![];
    for node in g.nodes().iter() {
        let Some([left, right]) = elem(g, node.outs[0], ElemOp::Mul) else { continue };
        for (cts, weights) in [(left, right), (right, left)] {
            if is_weight(g, site, weights) && is_spread(g, site, cts) {
                found.extend(readers(parts, site, node.outs[0], cts));
                break;
            }
        }
    }
    found
}

/// True for `exp(x − y)` as the gradient of logsumexp has it.
fn is_weight(g: &Graph, site: &Site, v: Value) -> bool {
    let number = |v: Value, x: f64| g.const_value(v).filter(|a| a.len() == 1).and_then(|a| a.item_f64()) == Some(x);
    let is_y = |v: Value| match g.node_of(v) {
        Some(node) if !site.keepdims => matches!(&node.op, Op::Expand(e) if e.axes == [site.axis]) && node.ins[0] == site.y,
        _ => v == site.y,
    };
    let parts = || {
        let [exponent] = elem(g, v, ElemOp::Exp)?;
        let [is_top, top, difference] = elem(g, exponent, ElemOp::Where)?;
        Some((elem::<2>(g, is_top, ElemOp::Eq)?, elem::<3>(g, top, ElemOp::Where)?, elem::<2>(g, difference, ElemOp::Sub)?))
    };
    let Some(([x, y], [is_low, low, zero], [minuend, subtrahend])) = parts() else { return false };
    let of_low = elem(g, is_low, ElemOp::Eq).is_some_and(|[y, low]: [Value; 2]| is_y(y) && number(low, f64::NEG_INFINITY));
    (x, minuend) == (site.x, site.x) && is_y(y) && is_y(subtrahend) && of_low && number(low, f64::NEG_INFINITY) && number(zero, 0.0)
}

/// True for cotangents of y with the axis over which was summed.
fn is_spread(g: &Graph, site: &Site, cts: Value) -> bool {
    let (cts, x) = (g.ty(cts), g.ty(site.x));
    cts.rank() == site.rank
        && cts.dtype == DType::F64
        && (0..site.rank).all(|i| if i == site.axis { cts.dims[i].is_one() } else { cts.dims[i] == x.dims[i] })
}

/// Who reads weighted cotangents; `None` where they have to be made.
fn readers(parts: &Parts, site: &Site, value: Value, cts: Value) -> Option<Weighted> {
    let (g, live) = (&parts.body, parts.live());
    let mut found = Weighted { value, cts, to_a: vec![], to_w: vec![], whole: parts.results().contains(&value) };
    for node in g.nodes().iter().filter(|n| live[n.outs[0].idx()] && n.ins.contains(&value)) {
        let out = node.outs[0];
        match (&node.op, &node.ins[..]) {
            (Op::SumTo(_), &[v, like]) if v == value && g.ty(like).dims == g.ty(site.a).dims => found.to_a.push(out),
            (Op::SumTo(_), &[v, like]) if v == value && site.rank == 3 && g.ty(like).dims == g.ty(site.w).dims => {
                found.to_w.push((out, like))
            }
            _ => found.whole = true,
        }
    }
    (!found.whole || site.rank == 2).then_some(found)
}

fn sum(parts: &mut Parts, site: &Site, product: &Product, weighted: &Weighted) {
    let &Product { a, w, top, power, powers, sums } = product;
    let outer = at_line_of(&mut parts.body, weighted.value);
    let g = &mut parts.body;
    let ct = without(g, weighted.cts, site.axis);
    let quotients = g.emit(LogMatMulQuotients {}, &[ct, sums, top]);
    if !weighted.to_a.is_empty() {
        let turned = g.transpose(power, &[1, 0]);
        let left = g.emit(LogMatMulLeft {}, &[ct, quotients, powers, a, w, turned]);
        let left = if g.ty(site.a).rank() == site.rank { g.expand(left, &[site.columns()]) } else { left };
        weighted.to_a.iter().for_each(|&v| parts.alias(v, left));
    }
    if weighted.whole || !weighted.to_w.is_empty() {
        sum_to_w(parts, site, weighted, [ct, quotients, powers, a, w, power]);
    }
    parts.body.set_span(outer);
}

fn sum_to_w(parts: &mut Parts, site: &Site, weighted: &Weighted, ins: [Value; 6]) {
    let g = &mut parts.body;
    let right = g.emit(LogMatMulRight { reverse: false }, &ins);
    let right = if site.turned() { g.transpose(right, &[1, 0]) } else { right };
    for &(v, like) in &weighted.to_w {
        let g = &mut parts.body;
        let right = if g.ty(like).rank() == 3 { g.expand(right, &[0]) } else { right };
        let summed = g.sum_to(right, like);
        parts.alias(v, summed);
    }
    if weighted.whole {
        parts.alias(weighted.value, right);
    }
}
