//! Products of matrices of integers as sums of products: no order of the terms gives another result, and kernels have both.

use super::Lowered;
use super::extents::known_shape;
use super::rewritten::rewritten;
use crate::ir::op::{BroadcastTo, Expand};
use crate::ir::{Graph, Node, Op, Value};
use crate::types::Extents;
use crate::types::shape::count;

/// Of more terms in all a product is a call, which goes over them in blocks.
const TERMS: usize = 1 << 16;

/// The step with products of integers spelled out; `None` where there are none.
///
/// # Errors
/// Internal ones.
pub(super) fn with_sums(body: &Graph) -> Lowered<Option<Graph>> {
    if !body.nodes().iter().any(|n| is_exact(body, n)) {
        return Ok(None);
    }
    rewritten(body, |out, image, _, node| {
        let Some(axes) = Axes::of(body, node) else { return Ok(None) };
        let dtype = body.ty(node.outs[0]).dtype;
        let a = axes.wide(out, image[&node.ins[0]], &axes.first)?;
        let b = axes.wide(out, image[&node.ins[1]], &axes.second)?;
        let terms = out.mul(a, b);
        let sum = out.sum(terms, &[axes.summed], false);
        Ok(Some(out.cast(sum, dtype)))
    })
}

fn is_exact(body: &Graph, node: &Node) -> bool {
    matches!(node.op, Op::MatMul(_))
        && node.ins.iter().all(|&v| body.ty(v).dtype == body.ty(node.outs[0]).dtype && body.ty(v).dtype.is_int())
}

/// The axes of all terms of a product.
struct Axes {
    /// Extents.
    space: Extents,
    /// Those that each factor has not.
    first: Vec<usize>,
    second: Vec<usize>,
    /// The one along which they are added up.
    summed: usize,
}

impl Axes {
    /// Those of a product of integers that is not large.
    fn of(body: &Graph, node: &Node) -> Option<Axes> {
        if !is_exact(body, node) {
            return None;
        }
        let (a, b) = (known_shape(body, node.ins[0]).ok()?, known_shape(body, node.ins[1]).ok()?);
        let (space, first, second, summed): (&[usize], _, _, _) = match (&a[..], &b[..]) {
            (&[k], &[_]) => (&[k], vec![], vec![], 0),
            (&[k], &[_, n]) => (&[k, n], vec![1], vec![], 0),
            (&[m, k], &[_]) => (&[m, k], vec![], vec![0], 1),
            (&[m, k], &[_, n]) => (&[m, k, n], vec![2], vec![0], 1),
            _ => return None,
        };
        let space = Extents::from_slice(space);
        (1..=TERMS).contains(&count(&space)).then_some(Axes { space, first, second, summed })
    }
    /// A factor for all terms.
    fn wide(&self, out: &mut Graph, x: Value, missing: &[usize]) -> Lowered<Value> {
        if missing.is_empty() {
            return Ok(x);
        }
        let x = out.apply(Expand { axes: missing.to_vec() }, &[x])?[0];
        let dims: Vec<Value> = self.space.iter().map(|&n| out.int(n as i64)).collect();
        Ok(out.apply(BroadcastTo {}, &[&[x], &dims[..]].concat())?[0])
    }
}
