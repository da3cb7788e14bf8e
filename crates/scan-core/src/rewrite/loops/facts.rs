//! What can be proved of a graph, so that computation may move.

use crate::base::Id;
use crate::ir::{Graph, Node, Op, Value, Whole};
use crate::ops::index::{Item, Pattern};
use crate::scan::reached::reached;
pub use crate::scan::reached::{eager, shape_only};
use crate::types::{Dim, Type};

/// True where evaluating a node can be noticed: prints, draws from the outside, assertions.
pub fn effect(node: &Node) -> bool {
    Whole::of_op(&node.op, node.ins.len()).effects
}

/// True where no values of the node's inputs let its evaluation fail.
pub fn infallible(g: &Graph, node: &Node) -> bool {
    let types: Vec<&Type> = node.ins.iter().map(|&v| g.ty(v)).collect();
    match &node.op {
        Op::Elem(_) => broadcast(&types),
        Op::BroadcastLike(_) => fits(types[0], types[1]),
        Op::SumTo(_) => fits(types[1], types[0]),
        Op::MatMul(_) => product(types[0], types[1]),
        Op::Index(op) => Pattern::parse(&op.pattern).is_ok_and(|p| inside(g, &p, types[0], &node.ins[1..])),
        Op::Assert(_) => node.ins.len() == 1,
        Op::Join(op) => {
            let same = |(axis, d): (usize, &Dim)| axis == op.axis || types.iter().all(|t| t.dims[axis] == *d);
            types[0].dims.iter().enumerate().all(same)
        }
        Op::FoldIn(_) => types[0].dims[0].value() == Some(2),
        Op::Scan(_) | Op::Extern(_) => false,
        op => !op.def().can_fail(),
    }
}

/// Axis by axis from the last, all extents that are not 1 are the same.
fn broadcast(types: &[&Type]) -> bool {
    let rank = types.iter().map(|t| t.rank()).max().unwrap_or(0);
    let axis = |back: usize| types.iter().filter_map(move |t| t.rank().checked_sub(back).map(|at| &t.dims[at]));
    (1..=rank).all(|back| {
        let mut wide = axis(back).filter(|d| !d.is_one());
        let first = wide.next();
        wide.all(|d| Some(d) == first)
    })
}

/// The first broadcasts to the second.
fn fits(x: &Type, y: &Type) -> bool {
    let (x, y) = (x.dims.iter().rev(), y.dims.iter().rev());
    x.len() <= y.len() && x.zip(y).all(|(a, b)| a.is_one() || a == b)
}

fn product(a: &Type, b: &Type) -> bool {
    let inner = |ty: &Type, back: usize| ty.rank().checked_sub(back).map(|at| ty.dims[at].clone());
    let (m, n) = (inner(a, 1), if b.rank() == 1 { inner(b, 1) } else { inner(b, 2) });
    let (a, b) = (&a.dims[..a.rank().saturating_sub(2)], &b.dims[..b.rank().saturating_sub(2)]);
    m.is_some() && m == n && a.iter().rev().zip(b.iter().rev()).all(|(x, y)| x == y || x.is_one() || y.is_one())
}

/// Every integer of a basic index is a constant inside its axis.
fn inside(g: &Graph, pattern: &Pattern, x: &Type, idxs: &[Value]) -> bool {
    let mut idxs = idxs.iter();
    pattern.items.iter().zip(&x.dims).all(|(item, extent)| {
        let used: Vec<Option<i64>> = idxs.by_ref().take(item.inputs()).map(|&v| integer(g, v)).collect();
        match (item, used.first().copied().flatten()) {
            (Item::At, Some(i)) if i >= 0 => not_negative(&extent.add(&Dim::from_parts([], -1 - i))),
            (Item::At, Some(i)) => not_negative(&extent.add(&Dim::from_parts([], i))),
            (Item::At, None) => false,
            (Item::Slice { .. }, _) => true,
        }
    })
}

/// The value of an integer constant.
pub fn integer(g: &Graph, v: Value) -> Option<i64> {
    g.const_value(v).filter(|a| a.dtype().is_int() && a.rank() == 0).and_then(|a| a.item_i64())
}

/// True where the form is at least 0 for all extents.
pub fn not_negative(dim: &Dim) -> bool {
    let (terms, constant) = dim.parts();
    constant >= 0 && terms.iter().all(|t| t.1 >= 0)
}

/// True where at least one step runs, whatever the inputs.
pub fn some_step(g: &Graph, n_steps: Value) -> bool {
    let form = integer(g, n_steps).map(|n| Dim::from_parts([], n)).or_else(|| g.arg(n_steps).dim);
    form.is_some_and(|d| not_negative(&d.add(&Dim::from_parts([], -1))))
}

/// True per value that a live node or a result reads.
pub fn used(g: &Graph) -> Vec<bool> {
    let live = g.needed(g.results());
    let mut used = vec![false; g.n_values()];
    g.results().iter().for_each(|v| used[v.idx()] = true);
    for (_, node) in g.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
        node.ins.iter().for_each(|v| used[v.idx()] = true);
    }
    used
}

/// True per value that the results need for its elements, not only for its shape.
pub fn for_values(g: &Graph) -> Vec<bool> {
    reached(g, |op, input| !shape_only(op).contains(&input))
}
