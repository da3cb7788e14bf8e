//! A step for devices: ops that have no kernels there in terms of ops that have some.

use super::Lowered;
use crate::ir::{Graph, Scan, Value};
use crate::scan::retype::specialised;
use crate::types::{Array, Type};
use rustc_hash::FxHashMap;

/// The loop with ops [spelled out](crate::ir::Op::spelled), for body parameters of these types, of which some have a value; `None` where there
/// are none.
///
/// # Errors
/// What type inference reports.
pub fn spelled(scan: &Scan, types: &[Type], values: &[Option<Array>], quick_in_f64: bool) -> Lowered<Option<Scan>> {
    let body = specialised(&scan.body, types, values)?;
    let (mut out, mut image) = (Graph::new(), FxHashMap::default());
    for &p in body.params() {
        image.insert(p, out.param(body.ty(p).clone(), body.name(p).map(|n| &**n)));
    }
    let live = body.needed(body.results());
    let mut any = false;
    for (id, node) in body.nodes().enumerate().filter(|n| live[n.0.0 as usize]) {
        out.set_span(node.span);
        let ins: Vec<Value> = node.ins.iter().map(|v| image[v]).collect();
        let found = if let [x] = ins[..] { node.op.spelled(&mut out, x, quick_in_f64) } else { None };
        any |= found.is_some();
        let outs = match found {
            Some(value) => vec![value],
            None => out.copy(&body, id, &node.op, &ins)?.into_vec(),
        };
        image.extend(node.outs.iter().copied().zip(outs));
    }
    out.set_results(body.results().iter().map(|v| image[v]).collect::<Vec<_>>());
    Ok(any.then(|| Scan { body: out, ..scan.clone() }))
}
