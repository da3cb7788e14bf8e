//! What types alone tell: which inputs certainly fit each other.

use crate::ir::{Graph, Node, Op, Value};
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

/// The value of an integer constant.
pub fn integer(g: &Graph, v: Value) -> Option<i64> {
    g.const_value(v).filter(|a| a.dtype().is_int() && a.rank() == 0).and_then(|a| a.item_i64())
}

/// True where the form is at least 0 for all extents.
pub fn not_negative(dim: &Dim) -> bool {
    let (terms, constant) = dim.parts();
    constant >= 0 && terms.iter().all(|t| t.1 >= 0)
}

/// True where an integer scalar is at least 0, whatever the inputs.
pub fn never_negative(g: &Graph, v: Value) -> bool {
    let found = integer(g, v).is_some_and(|n| n >= 0) || g.arg(v).dim.is_some_and(|d| not_negative(&d));
    found
        || match g.node_of(v).map(|n| (&n.op, &n.ins[..])) {
            Some((Op::Elem(ElemOp::Minimum), ins)) => ins.iter().all(|&x| never_negative(g, x)),
            Some((Op::Elem(ElemOp::Maximum), ins)) => ins.iter().any(|&x| never_negative(g, x)),
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
