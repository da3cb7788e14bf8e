//! Reads by index arrays of a part of an array, as reads of the array of which a part is taken: the part is not copied.
//!
//! ```text
//! before  y = x[:, :-1];   z = gather(y, i, axis 1)
//! after   w = gather(x, i, axis 1);   z = w[:-1]
//! ```

use super::Lowered;
use super::extents::known_shape;
use super::fusions::view_of;
use super::rewritten::rewritten;
use crate::ir::op::{Gather, Index};
use crate::ir::{Coord, Graph, Node, Op, Value};
use crate::types::shape::count;

/// The step with parts taken of what is read; `None` where nothing is read of parts.
///
/// # Errors
/// Internal ones.
pub(super) fn with_reads_of_whole(body: &Graph) -> Lowered<Option<Graph>> {
    if !body.nodes().iter().any(|n| matches!(n.op, Op::Gather(_))) {
        return Ok(None);
    }
    rewritten(body, |out, image, _, node| {
        let Op::Gather(gather) = &node.op else { return Ok(None) };
        let Some(part) = Part::of(body, node, gather) else { return Ok(None) };
        let ins: Vec<Value> = std::iter::once(&part.of).chain(&node.ins[1..]).map(|v| image[v]).collect();
        let mut ins = vec![out.apply(gather.clone(), &ins)?[0]];
        ins.extend(part.bounds.iter().flatten().flatten().map(|&at| out.int(at as i64)));
        let words: Vec<&str> = part.bounds.iter().map(|bounds| if bounds.is_some() { "s:e" } else { ":" }).collect();
        Ok(Some(out.apply(Index { pattern: words.join(",") }, &ins)?[0]))
    })
}

/// A part of an array.
struct Part {
    of: Value,
    /// Where what is read of the array begins and ends, for each axis along which it is a part.
    bounds: Vec<Option<[usize; 2]>>,
}

impl Part {
    /// What a read reads, where that is half of an array or more, and all of it along the axes that are read by index.
    fn of(body: &Graph, node: &Node, gather: &Gather) -> Option<Part> {
        let slice = body.node_of(node.ins[0]).filter(|n| matches!(n.op, Op::Index(_)))?;
        let of = slice.ins[0];
        let (whole, own) = (known_shape(body, of).ok()?, known_shape(body, node.ins[0]).ok()?);
        let view = view_of(body, slice)?;
        if own.len() != whole.len() || 2 * count(&own) < count(&whole) || gather.axes.iter().any(|&axis| own[axis] != whole[axis]) {
            return None;
        }
        let straight = |(axis, at): (usize, &Coord)| at.start >= 0 && (at.step == 1 && at.axis == Some(axis) || own[axis] == 1);
        if !view.0.iter().enumerate().all(straight) {
            return None;
        }
        let shape = known_shape(body, node.outs[0]).ok()?;
        let (before, spot) = gather.layout(whole.len(), &shape);
        let others = (0..whole.len()).filter(|axis| !gather.axes.contains(axis));
        let mut bounds: Vec<Option<[usize; 2]>> = others
            .map(|axis| {
                let start = view.0[axis].start as usize;
                (own[axis] != whole[axis]).then(|| [start, start + own[axis]])
            })
            .collect();
        bounds.splice(before..before, spot.iter().map(|_| None));
        bounds.iter().any(Option::is_some).then_some(Part { of, bounds })
    }
}
