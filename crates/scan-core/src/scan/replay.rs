//! The step as its gradient runs it once more: without what must happen only once.

use crate::base::Result;
use crate::ir::{Graph, Op, Scan, Value};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;

/// The body, where ops that count once (prints) hand their inputs on; in the loops inside it, too.
///
/// # Errors
/// What type inference reports: such an op gives other types than it takes.
pub fn silenced(body: &Graph) -> Result<Cow<'_, Graph>> {
    if !body.whole().once {
        return Ok(Cow::Borrowed(body));
    }
    let mut g = Graph::new();
    let mut map: FxHashMap<Value, Value> = FxHashMap::default();
    for &p in body.params() {
        let image = g.param(body.ty(p).clone(), body.name(p).map(|n| &**n));
        map.insert(p, image);
    }
    for node in body.nodes().iter() {
        let ins: Vec<Value> = node.ins.iter().map(|v| map[v]).collect();
        let saved = g.set_span(node.span);
        let outs = match &node.op {
            Op::Extern(e) if e.0.once() => ins.into(),
            Op::Scan(scan) if scan.body.whole().once => {
                let inner = Scan { body: silenced(&scan.body)?.into_owned(), ..(**scan).clone() };
                g.apply(Op::Scan(Arc::new(inner)), &ins)?
            }
            op => g.apply(op.clone(), &ins)?,
        };
        g.set_span(saved);
        for (&old, &new) in node.outs.iter().zip(&outs) {
            map.insert(old, new);
            if let Some(name) = body.name(old) {
                g.set_name(new, name);
            }
        }
    }
    g.set_results(body.results().iter().map(|v| map[v]).collect::<Vec<_>>());
    Ok(Cow::Owned(g))
}
