//! What is computed of rows before a loop reads the results row by row, and that nothing else reads. A loop can have it computed a
//! block of rows at a time, so that the results stay in the cache and no memory for all of them is needed.

use super::rowwise::{Rowwise, Uses};
use crate::ir::op::*;
use crate::ir::{Graph, Node, NodeId, Scan, SeqId, Value};
use crate::types::{Dim, Sym};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// What a loop's sequences are made of, as a graph of its own: row i of a result depends on row i of the first parameters.
pub struct Head {
    /// Parameters: arrays of which a block of rows is given, then those that are given whole. Results: the sequences.
    pub graph: Graph,
    /// The parameters outside.
    pub ins: Vec<Value>,
    /// Number of the parameters that are cut into blocks.
    pub cut: usize,
    /// The sequences that the results are.
    pub seqs: Vec<SeqId>,
    /// True where rows are multiplied by a matrix.
    pub multiplies: bool,
}

/// The heads of the loops of a graph.
#[derive(Default)]
pub struct Heads {
    of: FxHashMap<NodeId, Head>,
    inner: FxHashSet<Value>,
}

impl Heads {
    /// The heads of the loops among the live nodes.
    pub fn new(graph: &Graph, live: &[bool]) -> Heads {
        let mut heads = Heads::default();
        if !graph.nodes().iter().any(|n| matches!(n.op, Op::Scan(_))) {
            return heads;
        }
        let uses = Uses::new(graph);
        for (id, node) in graph.nodes().enumerate().filter(|n| live[n.0.0 as usize]) {
            let Op::Scan(scan) = &node.op else { continue };
            let Some((nodes, seqs)) = uses.grown(graph, node, scan) else { continue };
            let Some(head) = Builder::new(graph).head(&nodes, &seqs, node, scan) else { continue };
            heads.inner.extend(nodes.iter().flat_map(|n| n.made.iter().copied()));
            heads.of.insert(id, head);
        }
        heads
    }
    /// True for a node that is part of a head.
    pub fn has(&self, node: &Node) -> bool {
        node.outs.iter().any(|v| self.inner.contains(v))
    }
    /// The head of a loop.
    pub fn take(&mut self, id: NodeId) -> Option<Head> {
        self.of.remove(&id)
    }
}

impl Uses {
    /// The nodes that a loop's head consists of, the last first, and the sequences that they make.
    fn grown(&self, graph: &Graph, node: &Node, scan: &Scan) -> Option<(Vec<Rowwise>, Vec<SeqId>)> {
        let made = |id: &SeqId| graph.node_of(node.ins[scan.seq_input(*id)]).is_some_and(|n| !matches!(n.op, Op::Const(_)));
        let reverse = scan.seqs[scan.seqs.ids().find(made)?].reverse;
        let mut read: FxHashMap<Value, usize> = FxHashMap::default();
        let mut open: BTreeSet<NodeId> = BTreeSet::new();
        let seqs: Vec<SeqId> = scan.seqs.ids().filter(|&id| scan.seqs[id].reverse == reverse).collect();
        for &id in &seqs {
            note(graph, node.ins[scan.seq_input(id)], &mut read, &mut open);
        }
        let mut nodes = vec![];
        while let Some(id) = open.pop_last() {
            let inner = &graph.nodes()[id];
            let own = inner.outs.len() == 1 && read.get(&inner.outs[0]) == Some(&self.count(inner.outs[0]));
            let Some(rowwise) = own.then(|| self.rowwise(graph, inner)).flatten() else { continue };
            for (&v, _) in rowwise.ins.iter().zip(&rowwise.cut).filter(|c| *c.1) {
                note(graph, v, &mut read, &mut open);
            }
            nodes.push(rowwise);
        }
        let results: FxHashSet<Value> = nodes.iter().map(|n| n.made[0]).collect();
        let seqs: Vec<SeqId> = seqs.into_iter().filter(|&id| results.contains(&node.ins[scan.seq_input(id)])).collect();
        let wide = seqs.iter().any(|&id| graph.ty(node.ins[scan.seq_input(id)]).rank() > 1);
        wide.then_some((nodes, seqs))
    }
}

/// Counts that a value is read by rows.
fn note(graph: &Graph, v: Value, read: &mut FxHashMap<Value, usize>, open: &mut BTreeSet<NodeId>) {
    *read.entry(v).or_default() += 1;
    if let crate::ir::Def::Out(id, _) = graph.def(v) {
        open.insert(id);
    }
}

/// Makes a graph of a head's nodes.
struct Builder<'a> {
    graph: &'a Graph,
    rows: Sym,
    head: Graph,
    image: FxHashMap<Value, Value>,
}

impl<'a> Builder<'a> {
    fn new(graph: &'a Graph) -> Builder<'a> {
        Builder { graph, rows: Sym::fresh(), head: Graph::new(), image: FxHashMap::default() }
    }

    /// Nothing where a value would be needed by its rows and whole, or rows are multiplied by a matrix that is a constant or computed
    /// on the way.
    fn head(mut self, nodes: &[Rowwise], seqs: &[SeqId], node: &Node, scan: &Scan) -> Option<Head> {
        let inside: FxHashSet<Value> = nodes.iter().map(|n| n.made[0]).collect();
        let reads = || nodes.iter().rev().flat_map(|n| n.ins.iter().copied().zip(n.cut.iter().copied())).filter(|r| !inside.contains(&r.0));
        let mut seen = FxHashMap::default();
        if reads().any(|(v, cut)| *seen.entry(v).or_insert(cut) != cut) {
            return None;
        }
        let mut ins = self.params(reads().filter(|r| r.1).map(|r| r.0), true);
        let cut = ins.len();
        let whole = reads().filter(|r| !r.1 && self.graph.const_value(r.0).is_none()).map(|r| r.0);
        ins.extend(self.params(whole, false));
        for (v, _) in reads() {
            if let Some(a) = self.graph.const_value(v).filter(|_| !self.image.contains_key(&v)) {
                let new = self.head.constant(a.clone());
                self.image.insert(v, new);
            }
        }
        for n in nodes.iter().rev() {
            let args: Vec<Value> = n.ins.iter().map(|v| self.image[v]).collect();
            self.head.set_span(self.graph.node_of(n.made[0]).map_or(node.span, |n| n.span));
            let Ok(made) = self.head.apply(n.op.clone(), &args) else { return None };
            self.image.insert(n.made[0], made[0]);
        }
        let results: Vec<Value> = seqs.iter().map(|&id| self.image[&node.ins[scan.seq_input(id)]]).collect();
        self.head.set_results(results);
        let multiplies = nodes.iter().any(|n| matches!(n.op, Op::MatMul(_)) && !n.cut[1]);
        Some(Head { graph: self.head, ins, cut, seqs: seqs.to_vec(), multiplies })
    }

    /// Parameters for values, each once.
    fn params(&mut self, values: impl Iterator<Item = Value>, cut: bool) -> Vec<Value> {
        let mut new = vec![];
        for v in values {
            if self.image.contains_key(&v) {
                continue;
            }
            let mut ty = self.graph.ty(v).clone();
            if cut {
                ty.dims[0] = Dim::sym(self.rows);
            }
            self.image.insert(v, self.head.param(ty, None));
            new.push(v);
        }
        new
    }
}
