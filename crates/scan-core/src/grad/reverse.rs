//! Reverse mode: walks the nodes backwards and adds up cotangents.

use crate::base::{Diagnostic, Kind, Result};
use crate::ir::{Graph, NodeId, Site, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// Where cotangents start and stop.
#[derive(Clone, Default)]
pub struct Seeds {
    /// Values with their cotangents; what flows into them from elsewhere is added.
    pub outputs: Vec<(Value, Value)>,
    /// Values whose cotangent is given: nothing else is added.
    pub known: Vec<(Value, Value)>,
    /// Values through which no gradient flows.
    pub constants: Vec<Value>,
}

/// The cotangents of `wrt`; `None` where a value is not connected to any seed. A connected value through which only
/// zeros flow has zeros.
///
/// # Errors
/// `E0403` for an op without gradient; an internal error where a rule returns a cotangent of another type.
pub fn vjp(g: &mut Graph, seeds: &Seeds, wrt: &[Value]) -> Result<Vec<Option<Value>>> {
    let n = g.nodes().len();
    let starts: Vec<Value> = seeds.outputs.iter().chain(&seeds.known).map(|s| s.0).collect();
    let stops: FxHashSet<Value> = seeds.constants.iter().copied().collect();
    let reached = connected(g, &starts, &stops, n);
    let depends = dependent(g, wrt, &stops, n);
    let mut sums = Sums { fixed: seeds.known.iter().map(|s| s.0).collect(), cts: seeds.known.iter().copied().collect() };
    for &(v, ct) in &seeds.outputs {
        sums.add(g, v, ct);
    }
    for i in (0..n).rev() {
        let node = g.nodes()[NodeId(i as u32)].clone();
        let cts: Vec<Option<Value>> = node.outs.iter().map(|v| sums.cts.get(v).copied().filter(|_| !stops.contains(v))).collect();
        let live = node.ins.iter().any(|v| depends.contains(v)) && node.outs.iter().any(|v| depends.contains(v));
        if !live || cts.iter().all(Option::is_none) {
            continue;
        }
        let saved = g.set_span(node.span);
        let site = Site { ins: &node.ins, outs: &node.outs };
        let given = node.op.def().vjp(g, &site, &cts).map_err(|e| e.at(node.span))?;
        for (&v, ct) in node.ins.iter().zip(given) {
            if let Some(ct) = ct.filter(|_| depends.contains(&v)) {
                check(g, node.op.name(), v, ct)?;
                sums.add(g, v, ct);
            }
        }
        g.set_span(saved);
    }
    Ok(wrt.iter().map(|v| sums.result(g, *v, &reached)).collect())
}

struct Sums {
    fixed: FxHashSet<Value>,
    cts: FxHashMap<Value, Value>,
}

impl Sums {
    fn add(&mut self, g: &mut Graph, v: Value, ct: Value) {
        if self.fixed.contains(&v) {
            return;
        }
        let sum = match self.cts.get(&v) {
            Some(&old) => g.add(old, ct),
            None => ct,
        };
        self.cts.insert(v, sum);
    }

    fn result(&self, g: &mut Graph, v: Value, reached: &FxHashSet<Value>) -> Option<Value> {
        match self.cts.get(&v) {
            Some(&ct) => Some(ct),
            None if reached.contains(&v) => Some(g.zeros_like(v)),
            None => None,
        }
    }
}

fn check(g: &Graph, op: &str, v: Value, ct: Value) -> Result<()> {
    let (want, got) = (g.ty(v), g.ty(ct));
    if want.dtype != got.dtype || want.rank() != got.rank() {
        return Err(Diagnostic::new(Kind::Internal, "E9999", format!("the gradient of `{op}` gives {got} for an input of type {want}")));
    }
    Ok(())
}

/// Values from which a seed can be reached through connected inputs.
fn connected(g: &Graph, starts: &[Value], stops: &FxHashSet<Value>, n: usize) -> FxHashSet<Value> {
    let mut reached: FxHashSet<Value> = starts.iter().copied().collect();
    for i in (0..n).rev() {
        let node = &g.nodes()[NodeId(i as u32)];
        if node.outs.iter().any(|v| reached.contains(v) && !stops.contains(v)) {
            let def = node.op.def();
            reached.extend(node.ins.iter().enumerate().filter(|(k, _)| def.connected(*k)).map(|(_, v)| *v));
        }
    }
    reached
}

/// Values that depend on one of `wrt` through connected inputs.
fn dependent(g: &Graph, wrt: &[Value], stops: &FxHashSet<Value>, n: usize) -> FxHashSet<Value> {
    let mut depends: FxHashSet<Value> = wrt.iter().copied().collect();
    for i in 0..n {
        let node = &g.nodes()[NodeId(i as u32)];
        let def = node.op.def();
        if node.ins.iter().enumerate().any(|(k, v)| depends.contains(v) && !stops.contains(v) && def.connected(k)) {
            depends.extend(node.outs.iter().copied());
        }
    }
    depends
}
