//! What types alone tell: which inputs certainly fit each other.

use super::properties::Extents;
use crate::ir::{Graph, Keep, Node, Op, Value};
use crate::scalar::ElemOp;
use crate::types::{Dim, Type};

/// Axis by axis from the last, all extents that are not 1 are the same.
pub fn broadcasts(types: &[&Type]) -> bool {
    let rank = types.iter().map(|t| t.rank()).max().unwrap_or(0);
    let axis = |back: usize| types.iter().filter_map(move |t| t.rank().checked_sub(back).map(|at| &t.dims[at]));
    (1..=rank).all(|back| {
        let mut wide = axis(back).filter(|d| !d.is_one());
        let first = wide.next();
        wide.all(|d| Some(d) == first)
    })
}

/// The first broadcasts to the second.
pub fn fits(x: &[Dim], y: &[Dim]) -> bool {
    x.len() <= y.len() && x.iter().rev().zip(y.iter().rev()).all(|(a, b)| a.is_one() || a == b)
}

/// Factors of a product of matrices.
pub fn multiplies(a: &Type, b: &Type) -> bool {
    let inner = |ty: &Type, back: usize| ty.rank().checked_sub(back).map(|at| ty.dims[at].clone());
    let (m, n) = (inner(a, 1), if b.rank() == 1 { inner(b, 1) } else { inner(b, 2) });
    let (a, b) = (&a.dims[..a.rank().saturating_sub(2)], &b.dims[..b.rank().saturating_sub(2)]);
    m.is_some() && m == n && a.iter().rev().zip(b.iter().rev()).all(|(x, y)| x == y || x.is_one() || y.is_one())
}

/// What an extent is: axes of which that is the same have as many elements in every run in which both values are there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// As types say.
    Extent(Dim),
    /// That of a slice with such bounds of rows of which there are so many.
    Slice(Box<str>, Box<[Value]>, Box<Told>),
    /// So many more than a loop, which has this output, has run steps.
    Rows(Value, usize),
}

/// So many values are looked through.
const DEEP: usize = 24;

/// What an extent of a value is. `beside` is told of what the values that are looked through are made of besides: whoever does without such a
/// value does without those. What the other extents are found by is found where those are asked for.
pub fn told(g: &Graph, v: Value, axis: usize, beside: &mut dyn FnMut(Value)) -> Told {
    let (mut v, mut axis, rank) = (v, axis, g.ty(v).rank());
    for _ in 0..DEEP {
        let dim = &g.ty(v).dims[axis];
        let Some(node) = g.node_of(v).filter(|_| dim.value().is_none()) else { break };
        if let Op::Index(index) = &node.op
            && axis == 0
            && matches!(&*index.pattern, "s:" | ":e" | "s:e")
        {
            let rows = told(g, node.ins[0], 0, beside);
            return Told::Slice((&*index.pattern).into(), node.ins[1..].into(), Box::new(rows));
        }
        if let Some(rows) = rows(g, node, v).filter(|_| axis == 0) {
            return rows;
        }
        let Some((from, counted, of)) = as_long(g, node, v, axis) else { break };
        let elsewhere = |x: Value| g.ty(v).rank() == rank && g.node_of(x).is_some_and(|n| matches!(n.op, Op::DimOf(_)));
        node.ins.iter().filter(|&&x| x != counted && !elsewhere(x)).for_each(|&x| beside(x));
        (v, axis) = (from, of);
    }
    Told::Extent(g.ty(v).dims[axis].clone())
}

/// How many rows a loop returns that keeps all of them.
fn rows(g: &Graph, node: &Node, v: Value) -> Option<Told> {
    let scan = node.op.as_scan()?;
    let id = scan.states.ids().find(|&id| node.outs[scan.state_output(id)] == v)?;
    let (state, begun) = (&scan.states[id], scan.init_input(id));
    let fits = begun.is_none_or(|at| g.ty(node.ins[at]).dims[0].value() == Some(state.span()));
    (state.keep == Keep::All && fits).then(|| Told::Rows(node.outs[scan.steps_output()], state.span()))
}

/// An axis of a value that certainly has as many elements as one of the result, and the input by way of which that is known.
type AsLong = Option<(Value, Value, usize)>;

/// Where the result's axis is as long as one of an input.
fn as_long(g: &Graph, node: &Node, v: Value, axis: usize) -> AsLong {
    let dim = &g.ty(v).dims[axis];
    let by_types = || node.ins.iter().find_map(|&x| Some((x, x, g.ty(x).dims.iter().position(|d| d == dim)?)));
    by_op(g, node, v, axis).unwrap_or_else(by_types)
}

/// What the op itself says of that; `None` where it says nothing.
fn by_op(g: &Graph, node: &Node, v: Value, axis: usize) -> Option<AsLong> {
    let of = |k: usize, axis: usize| Some((node.ins[k], node.ins[k], axis));
    if let Some(perm) = node.op.permutes() {
        return Some(of(0, perm[axis]));
    }
    if let Some(&n) = node.ins.get(1 + axis).filter(|_| node.op.extents() == Extents::From(1) && node.op.broadcasts()) {
        let Some(counted) = g.node_of(n) else { return Some(None) };
        let Op::DimOf(dim) = &counted.op else { return Some(None) };
        return Some(Some((counted.ins[0], n, dim.axis)));
    }
    if node.op.properties().shape_only == [1] {
        return Some(of(1, axis));
    }
    if node.op.rows_of(g.ty(v).rank()) == Some(0) && axis == 0 && g.ty(node.ins[0]).rank() > 0 {
        return Some(of(0, 0));
    }
    let scan = node.op.as_scan()?;
    // The rows of a state have the extents of the first.
    let id = scan.states.ids().find(|&id| node.outs[scan.state_output(id)] == v);
    Some(id.and_then(|id| scan.init_input(id)).filter(|_| axis > 0).and_then(|at| of(at, axis)))
}

/// Looks whether what a node was given and made has the extents that its op says are certain.
///
/// # Panics
/// Where it has not: a fault of what is said.
#[cfg(debug_assertions)]
pub fn check(g: &Graph, node: &Node, given: &[crate::types::shape::Extents], made: &[crate::types::Array]) {
    for (&v, made) in node.outs.iter().zip(made) {
        for (axis, &n) in made.shape().iter().enumerate() {
            let Some((from, _, of)) = by_op(g, node, v, axis).flatten() else { continue };
            let Some(at) = node.ins.iter().position(|&x| x == from) else { continue };
            assert_eq!(n, given[at][of], "`{}`: axis {axis} of its result is not as long as axis {of} of input {at}", node.op.name());
        }
    }
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

/// True where integers are all at least 0, whatever the inputs.
pub fn never_negative(g: &Graph, v: Value) -> bool {
    let known = g.const_value(v).filter(|a| a.dtype().is_int() && a.len() <= 64).is_some_and(|a| a.to_i64_vec().iter().all(|&n| n >= 0));
    let found = known || g.ty(v).rank() == 0 && g.arg(v).dim.is_some_and(|d| not_negative(&d));
    found
        || match g.node_of(v).map(|n| (&n.op, &n.ins[..])) {
            Some((Op::Elem(ElemOp::Minimum), ins)) => ins.iter().all(|&x| never_negative(g, x)),
            Some((Op::Elem(ElemOp::Maximum), ins)) => ins.iter().any(|&x| never_negative(g, x)),
            Some((Op::Elem(ElemOp::Where), ins)) => ins[1..].iter().all(|&x| never_negative(g, x)),
            Some((op, ins)) if op.moves() => never_negative(g, ins[0]),
            _ => false,
        }
}

/// The extent that an integer scalar asks for, where it is certain not to be negative.
pub fn extent(g: &Graph, v: Value) -> Option<Dim> {
    let arg = g.arg(v);
    let dim = match &arg.value {
        Some(a) => Dim::known(usize::try_from(a.item_i64()?).ok()?),
        None => arg.dim?,
    };
    not_negative(&dim).then_some(dim)
}

/// True where it is the extents of a node's inputs that decide whether its evaluation fails, not their elements; `varies` tells which
/// inputs have elements that may decide.
pub fn by_extents(g: &Graph, node: &Node, varies: &[bool]) -> bool {
    let same = |from: usize| !varies.iter().skip(from).any(|v| *v);
    match &node.op {
        Op::Scan(_) | Op::Extern(_) | Op::Native(_) => false,
        Op::Elem(_) | Op::MatMul(_) | Op::BroadcastLike(_) | Op::SumTo(_) | Op::ReshapeLike(_) | Op::Squeeze(_) | Op::Join(_) => true,
        Op::Recurrence(_) | Op::Reduce(_) | Op::ArgReduce(_) | Op::OuterSum(_) | Op::SLogDet(_) | Op::Det(_) | Op::Cofactor(_) => true,
        Op::CofactorSlope(_) | Op::LogMatMul(_) | Op::LogMatMulSums(_) | Op::LogMatMulQuotients(_) => true,
        Op::LogMatMulLeft(_) | Op::LogMatMulRight(_) | Op::Diag(_) | Op::Qr(_) | Op::Eigh(_) => true,
        Op::Index(_) | Op::Gather(_) | Op::Reshape(_) | Op::BroadcastTo(_) => same(1),
        Op::IndexWrite(_) | Op::GatherWrite(_) => same(2),
        Op::FoldIn(_) | Op::RandomUniform(_) | Op::RandomNormal(_) | Op::RandomPermutation(_) => same(1),
        _ => same(0) || !node.op.def().fallible(g, &node.ins),
    }
}

/// A constant of zeros, or one that is broadcast.
pub fn is_zero(g: &Graph, v: Value) -> bool {
    if let Some(a) = g.const_value(v) {
        return a.to_f64_vec().iter().all(|x| *x == 0.0);
    }
    g.node_of(v).is_some_and(|n| matches!(n.op, Op::BroadcastLike(_) | Op::BroadcastTo(_)) && is_zero(g, n.ins[0]))
}
