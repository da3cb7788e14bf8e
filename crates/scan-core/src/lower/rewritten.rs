//! Steps with some nodes in other words.

use super::Lowered;
use crate::base::{Id, Span};
use crate::ir::{Graph, Node, NodeId, Value};
use rustc_hash::FxHashMap;

/// What stands for each value of the graph that is rewritten.
pub(super) type Image = FxHashMap<Value, Value>;

/// A graph with what `found` gives in place of a node's result; `None` where it gives nothing.
///
/// # Errors
/// Those of `found`, and what type inference reports.
pub(super) fn rewritten(
    body: &Graph,
    mut found: impl FnMut(&mut Graph, &Image, NodeId, &Node) -> Lowered<Option<Value>>,
) -> Lowered<Option<Graph>> {
    let (mut out, mut image, mut any) = (Graph::new(), Image::default(), false);
    for &p in body.params() {
        image.insert(p, out.param(body.ty(p).clone(), body.name(p).map(|n| &**n)));
    }
    let live = body.needed(body.results());
    for (id, node) in body.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
        out.set_span(node.span);
        if let Some(v) = found(&mut out, &image, id, node)? {
            image.insert(node.outs[0], v);
            any = true;
            continue;
        }
        let ins: Vec<Value> = node.ins.iter().map(|v| image[v]).collect();
        let outs = out.copy(body, id, &node.op, &ins)?;
        image.extend(node.outs.iter().copied().zip(outs));
    }
    out.set_span(Span::NONE);
    out.set_results(body.results().iter().map(|v| image[v]).collect::<Vec<_>>());
    Ok(any.then_some(out))
}
