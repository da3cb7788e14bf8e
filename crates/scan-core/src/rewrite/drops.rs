//! What rules may drop in the body of a loop. Its parameters are computed outside of it, or by its earlier steps, and that may fail: the
//! error must not go where a rule drops what is made of them.

use super::sources::{Needs, Sources};
use crate::base::Id;
use crate::ir::{Def, Graph, Scan, Value};
use crate::scan::reached::computes;
use rustc_hash::FxHashSet;
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

/// The graph that a pass works on, with the sources of errors in it once these are asked for.
pub struct Whole {
    graph: Arc<Graph>,
    sources: OnceCell<Sources>,
}

impl Whole {
    /// Of a graph.
    pub fn new(graph: Arc<Graph>) -> Rc<Whole> {
        Rc::new(Whole { graph, sources: OnceCell::new() })
    }
    fn sources(&self) -> &Sources {
        self.sources.get_or_init(|| Sources::new(&self.graph))
    }
}

/// Of which loop a body is.
#[derive(Clone, Copy)]
pub struct Within {
    scan: *const Scan,
    /// The last result is evaluated at every step, whatever else is wanted.
    until: bool,
}

impl Within {
    /// The body of this loop.
    pub fn of(scan: &Arc<Scan>) -> Within {
        Within { scan: Arc::as_ptr(scan), until: scan.until }
    }
}

/// Values that rules drop in a body. What may fail before it must be needed as before; where it is not, the rules are applied once more, and
/// keep what is made of the parameters that need it.
pub struct Drops {
    whole: Rc<Whole>,
    within: Option<Within>,
    dropped: FxHashSet<usize>,
    kept: FxHashSet<usize>,
}

impl Drops {
    /// Nothing is dropped yet, of the body of a loop in a graph, or of that graph itself, whose parameters are given.
    pub fn new(whole: Rc<Whole>, within: Option<Within>) -> Drops {
        Drops { whole, within, dropped: FxHashSet::default(), kept: FxHashSet::default() }
    }
    /// True where a value, which never fails to be computed of the parameters of its graph, may be dropped.
    pub fn allow(&mut self, graph: &Graph, v: Value) -> bool {
        let Some(Within { scan, .. }) = self.within else { return true };
        let sources = self.whole.sources();
        let sure = |p: &usize| sources.of(scan, *p).is_some_and(|needs| sources.covered(needs, []));
        let params: Vec<usize> = params_behind(graph, v).into_iter().filter(|p| !sure(p)).collect();
        let allowed = !params.iter().any(|p| self.kept.contains(p));
        self.dropped.extend(params.into_iter().filter(|_| allowed));
        allowed
    }
    /// True where a result no longer needs what may fail behind a parameter that was dropped: such parameters are kept from now on.
    pub fn lose(&mut self, before: &Graph, after: &Graph) -> bool {
        let Some(Within { scan, until }) = self.within.filter(|_| !self.dropped.is_empty()) else { return false };
        let certain: Vec<Vec<bool>> = (0..after.params().len()).map(|p| results_of(after, p, true)).collect();
        let sources = self.whole.sources();
        let needs = |q: usize, result: usize| certain[q][result] || until && certain[q].last() == Some(&true);
        let covered = |p: usize, result: usize| {
            let needed = (0..certain.len()).filter(|&q| needs(q, result)).filter_map(|q| sources.of(scan, q));
            sources.of(scan, p).is_some_and(|needs: &Needs| sources.covered(needs, needed))
        };
        let lost = |&p: &usize| {
            let before = results_of(before, p, false);
            (0..before.len()).any(|result| before[result] && !needs(p, result) && !covered(p, result))
        };
        let lost: Vec<usize> = self.dropped.drain().filter(lost).collect();
        self.kept.extend(&lost);
        !lost.is_empty()
    }
}

/// The results that need a parameter; with `certainly`, those alone that need its elements whichever branches are taken and steps run.
fn results_of(graph: &Graph, param: usize, certainly: bool) -> Vec<bool> {
    let mut reached = vec![false; graph.n_values()];
    reached[graph.params()[param].idx()] = true;
    for node in graph.nodes().iter() {
        let counts = |k: usize| computes(&node.op, k) && (k == Scan::N_STEPS || node.op.as_scan().is_none());
        if node.ins.iter().enumerate().any(|(k, v)| reached[v.idx()] && (!certainly || counts(k))) {
            node.outs.iter().for_each(|v| reached[v.idx()] = true);
        }
    }
    graph.results().iter().map(|v| reached[v.idx()]).collect()
}

/// Parameters of a graph of which a value is made.
fn params_behind(graph: &Graph, v: Value) -> Vec<usize> {
    let (mut seen, mut open, mut params) = (vec![false; graph.n_values()], vec![v], vec![]);
    while let Some(v) = open.pop() {
        if std::mem::replace(&mut seen[v.idx()], true) {
            continue;
        }
        match graph.def(v) {
            Def::Param(p) => params.push(p),
            Def::Out(id, _) => open.extend(&graph.nodes()[id].ins),
        }
    }
    params
}
