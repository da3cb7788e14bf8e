//! States of which each step writes a part. Left alone they are one row of memory; whoever wants all rows makes each step copy one.

use crate::base::Id;
use crate::ir::{Graph, Keep, Scan, Value};
use crate::scan::in_place;
use rustc_hash::{FxHashMap, FxHashSet};

/// Values of a later step (whose `image` lists equal values of the earlier one) that are small parts of such a row, where nothing
/// but these is read of it: with them kept, nobody wants the rows.
pub fn parts_of_rows(early: &Scan, late: &Graph, live: &[bool], image: &FxHashMap<Value, Value>) -> FxHashSet<Value> {
    let mut found = FxHashSet::default();
    for id in early.states.ids().filter(|&id| early.states[id].keep == Keep::All) {
        let Some(rows) = in_place::rows(early, &early.body, id).filter(|rows| rows.len() > 1) else { continue };
        let in_row = |v: Value| image.get(&v).is_some_and(|of| rows.contains(of));
        if let Some(parts) = parts(late, live, &in_row, &|v| image.contains_key(&v)) {
            found.extend(parts);
        }
    }
    found
}

/// What is read of a row; `None` where that is not less than the row, or not what the earlier step has.
fn parts(late: &Graph, live: &[bool], in_row: &dyn Fn(Value) -> bool, repeated: &dyn Fn(Value) -> bool) -> Option<Vec<Value>> {
    let mut parts = vec![];
    for (_, node) in late.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
        let read = node.ins.iter().enumerate().find(|&(k, &v)| in_row(v) && !node.op.properties().shape_only.contains(&k));
        let (Some((_, &row)), false) = (read, in_row(node.outs[0])) else { continue };
        if !node.outs.iter().all(|&v| repeated(v) && late.ty(v).rank() < late.ty(row).rank()) {
            return None;
        }
        parts.extend(&node.outs);
    }
    (!late.results().iter().any(|&v| in_row(v))).then_some(parts)
}
