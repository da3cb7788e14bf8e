//! Where errors may come from: for each parameter of a loop's body, which nodes that may fail are evaluated so that it can be given.

use super::loops::facts::infallible;
use crate::base::Id;
use crate::ir::{Graph, Node, Scan};
use crate::scan::reached::computes;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// Numbers of nodes that may fail, of loops, whose numbers of steps and rows may not fit, and of states, whose rows earlier steps compute.
#[derive(Clone, Default, Debug)]
struct Set(SmallVec<[u64; 2]>);

impl Set {
    fn add(&mut self, id: usize) {
        if self.0.len() <= id / 64 {
            self.0.resize(id / 64 + 1, 0);
        }
        self.0[id / 64] |= 1 << (id % 64);
    }
    fn join(&mut self, other: &Set) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
    fn within(&self, other: &Set) -> bool {
        self.0.iter().enumerate().all(|(k, word)| word & !other.0.get(k).unwrap_or(&0) == 0)
    }
}

/// What the elements of a value need. What is needed for its shape alone does not count: its errors may be left out.
#[derive(Clone, Default, Debug)]
pub struct Needs {
    /// In some runs.
    may: Set,
    /// In every run in which the value is computed.
    must: Set,
}

impl Needs {
    fn join(&mut self, other: &Needs) {
        self.may.join(&other.may);
        self.must.join(&other.must);
    }
    fn add(&mut self, id: usize) {
        self.may.add(id);
        self.must.add(id);
    }
}

/// The needs of the parameters of every body in a graph.
#[derive(Default)]
pub struct Sources {
    bodies: FxHashMap<*const Scan, Vec<Needs>>,
    blurred: FxHashSet<*const Scan>,
    /// So many numbers are given.
    ids: usize,
    /// Those of states that certainly can be computed.
    sure: Set,
}

impl Sources {
    /// Of a graph, whose own parameters are given.
    pub fn new(graph: &Graph) -> Sources {
        let mut sources = Sources::default();
        sources.values(graph, &vec![Needs::default(); graph.params().len()]);
        sources
    }
    /// What a parameter of a body needs.
    pub fn of(&self, scan: *const Scan, param: usize) -> Option<&Needs> {
        self.bodies.get(&scan).map(|params| &params[param])
    }
    /// True where all that may fail for some needs certainly is evaluated for others.
    pub fn covered<'a>(&self, needs: &Needs, others: impl IntoIterator<Item = &'a Needs>) -> bool {
        let mut given = self.sure.clone();
        others.into_iter().for_each(|other| given.join(&other.must));
        needs.may.within(&given)
    }

    fn fresh(&mut self) -> usize {
        self.ids += 1;
        self.ids - 1
    }
    fn unknown(&mut self) -> Needs {
        let mut needs = Needs::default();
        needs.add(self.fresh());
        needs
    }

    /// The needs of a graph's values, given those of its parameters.
    fn values(&mut self, graph: &Graph, params: &[Needs]) -> Vec<Needs> {
        let mut needs = vec![Needs::default(); graph.n_values()];
        graph.params().iter().zip(params).for_each(|(p, given)| needs[p.idx()] = given.clone());
        for node in graph.nodes().iter() {
            if let Some(scan) = node.op.as_scan() {
                let outs = self.outputs(scan, node, &needs);
                node.outs.iter().zip(outs).for_each(|(v, out)| needs[v.idx()] = out);
                continue;
            }
            let mut all = Needs::default();
            for (k, v) in node.ins.iter().enumerate().filter(|(k, _)| !node.op.properties().shape_only.contains(k)) {
                all.may.join(&needs[v.idx()].may);
                if computes(&node.op, k) {
                    all.must.join(&needs[v.idx()].must);
                }
            }
            if !infallible(graph, node) {
                all.add(self.fresh());
            }
            node.outs.iter().for_each(|v| needs[v.idx()] = all.clone());
        }
        needs
    }

    /// The needs of a loop's outputs; notes those of its body's parameters.
    fn outputs(&mut self, scan: &Arc<Scan>, node: &Node, around: &[Needs]) -> Vec<Needs> {
        if self.bodies.contains_key(&Arc::as_ptr(scan)) {
            self.blur(scan);
            return node.outs.iter().map(|_| self.unknown()).collect();
        }
        let input = |at: usize| around[node.ins[at].idx()].clone();
        let mut params = vec![Needs::default(); scan.n_params()];
        scan.seqs.ids().for_each(|id| params[scan.seq_param(id)] = input(scan.seq_input(id)));
        scan.captured.ids().for_each(|id| params[scan.captured_param(id)] = input(scan.captured_input(id)));
        let mut states: Vec<(usize, Needs)> = vec![];
        for id in scan.states.ids() {
            let (number, mut begun) = (self.fresh(), scan.init_input(id).map(input).unwrap_or_default());
            states.push((number, begun.clone()));
            begun.add(number);
            params[scan.read_params(id)].fill(begun);
        }
        self.bodies.insert(Arc::as_ptr(scan), params.clone());
        let made = self.values(&scan.body, &params);
        for (id, (_, state)) in scan.states.ids().zip(&mut states) {
            for v in scan.write_values(id) {
                state.join(&made[v.idx()]);
                if *scan.body.ty(*v) != scan.states[id].row {
                    state.add(self.fresh());
                }
            }
        }
        self.note_sure(&states);
        let mut run = self.unknown();
        run.join(&input(Scan::N_STEPS));
        scan.until_result().into_iter().for_each(|at| run.join(&made[scan.body.results()[at].idx()]));
        let mut outs = vec![run.clone(); node.outs.len()];
        for (id, (number, state)) in scan.states.ids().zip(&states) {
            outs[scan.state_output(id)].join(state);
            outs[scan.state_output(id)].must.add(*number);
        }
        outs
    }

    /// Notes the states of a loop that need nothing but each other.
    fn note_sure(&mut self, states: &[(usize, Needs)]) {
        let mut open: Vec<&(usize, Needs)> = states.iter().collect();
        loop {
            let mut sure = self.sure.clone();
            open.iter().for_each(|(number, _)| sure.add(*number));
            let before = open.len();
            open.retain(|(_, needs)| needs.may.within(&sure));
            if open.len() == before {
                self.sure = sure;
                return;
            }
        }
    }

    /// Of a loop that stands in several places, and of those in it, nothing is known of one parameter by another.
    fn blur(&mut self, scan: &Scan) {
        if !self.blurred.insert(scan) {
            return;
        }
        let params = (0..scan.n_params()).map(|p| if p == Scan::STEP { Needs::default() } else { self.unknown() }).collect();
        self.bodies.insert(scan, params);
        scan.body.nodes().iter().filter_map(|node| node.op.as_scan()).for_each(|inner| self.blur(inner));
    }
}
