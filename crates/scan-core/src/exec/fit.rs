//! Whether the extents of a call fit: types are inferred once more, with the extents that the arguments have.

use crate::base::Id;
use crate::ir::op::{Arg, Outs};
use crate::ir::{Graph, Op, Scan, StateId, Value};
use crate::types::{Array, Dim, Extents, Type};
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// For which extents of its parameters all of a graph fits. What depends on values (indices, counts) is not asked here.
pub struct Fit {
    /// Parameters and axes whose extents types do not tell.
    open: Box<[(usize, usize)]>,
    /// Extents there, of the calls that were asked for last, and whether all fits.
    kept: RwLock<Vec<(Extents, bool)>>,
    /// Where the last answer stands.
    recent: AtomicUsize,
}

/// Answers are kept for so many extents.
const KEPT: usize = 64;

impl Fit {
    /// Of a graph; no answers yet.
    pub fn new(graph: &Graph) -> Fit {
        let open = |(k, v): (usize, &Value)| {
            let dims = graph.ty(*v).dims.iter().enumerate();
            dims.filter(|d| d.1.value().is_none()).map(move |d| (k, d.0)).collect::<Vec<_>>()
        };
        let open = graph.params().iter().enumerate().flat_map(open).collect();
        Fit { open, kept: RwLock::default(), recent: AtomicUsize::new(0) }
    }

    /// True where, for arguments of such extents, no op of the graph meets extents that do not fit, in loops neither.
    pub fn holds(&self, graph: &Graph, args: &[Array]) -> bool {
        self.open.is_empty() || self.asked(graph, args)
    }

    fn asked(&self, graph: &Graph, args: &[Array]) -> bool {
        let extent = |at: &(usize, usize)| args[at.0].shape()[at.1];
        let same = |kept: &(Extents, bool)| self.open.iter().zip(&kept.0).all(|(at, n)| extent(at) == *n);
        {
            let kept = self.kept.read().unwrap_or_else(|e| e.into_inner());
            let recent = self.recent.load(Ordering::Relaxed);
            if let Some(found) = kept.get(recent).filter(|k| same(k)) {
                return found.1;
            }
            if let Some(at) = kept.iter().position(same) {
                self.recent.store(at, Ordering::Relaxed);
                return kept[at].1;
            }
        }
        let types: Vec<Type> = args.iter().map(Array::ty).collect();
        let fits = infer(graph, &types).is_some();
        let mut kept = self.kept.write().unwrap_or_else(|e| e.into_inner());
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((self.open.iter().map(extent).collect(), fits));
        self.recent.store(kept.len() - 1, Ordering::Relaxed);
        fits
    }
}

/// The types of a graph's results for parameters of these types; `None` where something does not fit.
fn infer(graph: &Graph, types: &[Type]) -> Option<Vec<Type>> {
    let mut known: Vec<Option<Arg>> = vec![None; graph.n_values()];
    for (&p, ty) in graph.params().iter().zip(types) {
        known[p.idx()] = Some(Arg { ty: ty.clone(), value: None, dim: None });
    }
    let live = graph.needed(graph.results());
    for (id, node) in graph.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
        let ins: Vec<Arg> = node.ins.iter().map(|v| known[v.idx()].clone()).collect::<Option<_>>()?;
        let def = node.op.def();
        let mut types = def.infer(&ins).ok()?;
        if let Op::Scan(scan) = &node.op {
            rows(scan, &ins, &mut types)?;
        }
        let dim = def.dim(&ins);
        for (&v, ty) in graph.nodes()[id].outs.iter().zip(types) {
            let value = if let Op::Const(a) = &node.op { Some(Array::clone(a)) } else { None };
            known[v.idx()] = Some(Arg { ty, value, dim: dim.clone() });
        }
    }
    graph.results().iter().map(|v| known[v.idx()].as_ref().map(|arg| arg.ty.clone())).collect()
}

/// What is known of the rows that a loop returns; `None` where its steps would not fit.
fn rows(scan: &Scan, ins: &[Arg], outs: &mut Outs<Type>) -> Option<()> {
    let types: Vec<Type> = ins.iter().map(|arg| arg.ty.clone()).collect();
    let made = infer(&scan.body, &crate::scan::retype::param_types(scan, &types))?;
    let steps = ins[Scan::N_STEPS].as_dim();
    let enough = |have: &Dim, need: &Dim| have.value().zip(need.value()).is_none_or(|(have, need)| have >= need);
    scan.seqs.ids().all(|id| enough(&types[scan.seq_input(id)].dims[0], &steps)).then_some(())?;
    for id in scan.states.ids() {
        let init = scan.init_input(id).map(|at| &types[at]);
        init.is_none_or(|init| enough(&init.dims[0], &Dim::known(scan.states[id].span()))).then_some(())?;
        let row = state_row(scan, id, init.map(Type::row), &made)?;
        outs[scan.state_output(id)].dims[1..].clone_from_slice(&row.dims);
    }
    Some(())
}

/// The row that initial rows and all written ones agree on.
fn state_row(scan: &Scan, id: StateId, init: Option<Type>, made: &[Type]) -> Option<Type> {
    let written = &made[scan.write_results(id)];
    let row = init.or_else(|| written.first().cloned())?;
    let agrees = |other: &Type| other.rank() == row.rank() && !other.dims.iter().zip(&row.dims).any(|(a, b)| a.conflicts(b));
    written.iter().all(agrees).then(|| row.clone())
}
