//! Makes loops beside each other one loop.
//!
//! ```text
//! before  %0 = scan n { seq x; state a;  next a = f(a, exp(x)) };   %1 = scan n { seq x; state b;  next b = g(b, exp(x)) }
//! after   %0 = scan n { seq x; state a; state b;  e = exp(x); next a = f(a, e); next b = g(b, e) }
//! ```
//!
//! The loops run the same number of steps, and stop by the same condition where one may stop them: of states that begin alike and are written
//! alike in both, as those are of a loop and of the loop with its tangents. None prints, draws from the outside or asserts,
//! none needs what another returns, the same branches of `ifelse` need them all, if any do, and they share a sequence or an initial
//! state, or have none of their own and read the same values: so a loop that a gradient asks for a second time, with more rows, becomes one
//! with the first.

use crate::base::{Id, Result};
use crate::ir::needs::Needs;
use crate::ir::{Graph, Node, NodeId, Op, Scan, SeqId, StateId, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::parts::title;
use crate::rewrite::loops::rows::Prover;
use crate::rewrite::loops::{CapturedPart, Parts, SeqPart, StatePart};
use crate::rewrite::rebuild::{Rebuild, copy_with};
use crate::types::Dim;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The pass.
pub const NAME: &str = "scan_merge";

/// The graph with fewer loops.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    let groups = groups(graph);
    if groups.is_empty() {
        return Ok(None);
    }
    copy_with(graph, |rebuild, id, node| {
        if node.outs.iter().all(|&v| rebuild.image(v).is_ok()) {
            return Ok(true);
        }
        let Some(group) = groups.iter().find(|g| g[0] == id) else { return Ok(false) };
        let first = node.op.as_scan().map_or_else(String::new, |s| title(s));
        cx.done(NAME, first, format!("one loop with {} others", group.len() - 1));
        rebuild.inputs_of(group)?;
        merge(rebuild, group)
    })
}

/// Loops that become one, in order.
fn groups(g: &Graph) -> Vec<Vec<NodeId>> {
    let (needs, mut prover) = (Needs::of(g, 0..g.nodes().len(), g.results().iter().copied()), Prover::new(g));
    let live = g.needed(g.results());
    let under = |id: NodeId| needs.node(&g.nodes()[id]);
    let scans: Vec<(NodeId, &Arc<Scan>, Dim)> = g
        .nodes()
        .enumerate()
        .filter(|(id, _)| live[id.idx()])
        .filter_map(|(id, n)| Some((id, n.op.as_scan()?, prover.scalar(n.ins[Scan::N_STEPS]))))
        .filter(|(_, s, _)| !s.body.whole().effects)
        .collect();
    let mut groups: Vec<Vec<NodeId>> = vec![];
    for (at, (id, scan, n)) in scans.iter().enumerate() {
        if groups.iter().any(|g| g.contains(id)) {
            continue;
        }
        let mut group = vec![*id];
        for (other, with, m) in &scans[at + 1..] {
            let free = !groups.iter().any(|g| g.contains(other)) && scan.until == with.until && under(*id) == under(*other);
            let alike = || if scan.until { Alike::new(g, *id, *other).stops } else { group.iter().any(|&a| shares(g, a, *other)) };
            let beside = || group.iter().all(|&a| !depends(g, *other, a)) && alike();
            if free && n == m && beside() {
                group.push(*other);
            }
        }
        if group.len() > 1 && !groups.iter().any(|g2| crosses(g, g2, &group)) {
            groups.push(group);
        }
    }
    groups
}

/// True where merging both groups would make a circle.
fn crosses(g: &Graph, a: &[NodeId], b: &[NodeId]) -> bool {
    let needs = |x: &[NodeId], y: &[NodeId]| x.iter().any(|&p| y.iter().any(|&q| depends(g, p, q)));
    needs(a, b) && needs(b, a)
}

/// True where a node needs what another computes.
fn depends(g: &Graph, node: NodeId, on: NodeId) -> bool {
    node > on && g.needed(&g.nodes()[node].ins)[on.idx()]
}

/// True where two loops have a sequence or initial rows in common; where both begin with constants alone, if they capture the same.
fn shares(g: &Graph, a: NodeId, b: NodeId) -> bool {
    let rows = |id: NodeId| -> [Vec<Value>; 2] {
        let node = &g.nodes()[id];
        let Op::Scan(scan) = &node.op else { return [vec![], vec![]] };
        let seqs = scan.seqs.ids().map(|s| node.ins[scan.seq_input(s)]);
        let inits = scan.states.ids().filter_map(|s| scan.init_input(s)).map(|at| node.ins[at]).filter(|v| g.const_value(*v).is_none());
        let mut captured: Vec<Value> = scan.captured.ids().map(|c| node.ins[scan.captured_input(c)]).collect();
        captured.sort_unstable();
        [seqs.chain(inits).collect(), captured]
    };
    let ([one, same], [other, too]) = (rows(a), rows(b));
    one.iter().any(|v| other.contains(v)) || one.is_empty() && other.is_empty() && !same.is_empty() && same == too
}

/// What two loops beside each other have in common.
#[derive(Default)]
struct Alike {
    /// States that begin alike, are read alike and are written the same by every step, taken for one.
    states: Vec<(StateId, StateId)>,
    /// Their conditions to stop are the same value then, or neither has one.
    stops: bool,
}

impl Alike {
    fn new(g: &Graph, a: NodeId, b: NodeId) -> Alike {
        let (a, b) = (&g.nodes()[a], &g.nodes()[b]);
        let (Op::Scan(one), Op::Scan(other)) = (&a.op, &b.op) else { return Alike::default() };
        let begins = |scan: &Scan, node: &Node, id: StateId| scan.init_input(id).map(|at| node.ins[at]);
        let alike = |x: StateId, y: StateId| {
            let (p, q) = (&one.states[x], &other.states[y]);
            (&p.reads, &p.writes, &p.row, p.keep, &p.tag) == (&q.reads, &q.writes, &q.row, q.keep, &q.tag)
                && begins(one, a, x) == begins(other, b, y)
        };
        let find = |x: StateId| other.states.ids().find(|&y| alike(x, y)).map(|y| (x, y));
        let mut states: Vec<(StateId, StateId)> = one.states.ids().filter_map(find).collect();
        let Ok(both) = SideBySide::new((one, a), (other, b)) else { return Alike::default() };
        loop {
            let read = |&(x, y): &(StateId, StateId)| {
                one.read_values(x).iter().zip(other.read_values(y)).map(|(p, q)| (both.mine[p], both.theirs[q]))
            };
            let of = both.graph.congruent(states.iter().flat_map(read));
            let same = |mine: &[Value], theirs: &[Value]| mine.iter().map(|v| of[v.idx()]).eq(theirs.iter().map(|v| of[v.idx()]));
            let [mine, theirs] = &both.results;
            let before = states.len();
            states.retain(|&(x, y)| same(&mine[one.write_results(x)], &theirs[other.write_results(y)]));
            if states.len() == before {
                let until = |scan: &Scan, results: &[Value]| scan.until_result().map(|at| results[at]);
                let stops = same(until(one, mine).as_slice(), until(other, theirs).as_slice());
                return Alike { states, stops: stops && one.truncate == other.truncate };
            }
        }
    }
}

/// The steps of two loops in one graph, on the same sequences and captured values where both read those.
struct SideBySide {
    graph: Graph,
    /// What stands for the parameters of either.
    mine: FxHashMap<Value, Value>,
    theirs: FxHashMap<Value, Value>,
    /// What either gives.
    results: [Vec<Value>; 2],
}

impl SideBySide {
    fn new((one, a): (&Scan, &Node), (other, b): (&Scan, &Node)) -> Result<SideBySide> {
        let mut graph = Graph::new();
        let mut theirs: FxHashMap<Value, Value> = FxHashMap::default();
        for &p in other.body.params() {
            theirs.insert(p, graph.param(other.body.ty(p).clone(), None));
        }
        let (from, to) = (one.body.params(), other.body.params());
        let mut mine: FxHashMap<Value, Value> = FxHashMap::default();
        mine.insert(from[Scan::STEP], theirs[&to[Scan::STEP]]);
        for s in one.seqs.ids() {
            let same = |t: &SeqId| b.ins[other.seq_input(*t)] == a.ins[one.seq_input(s)] && other.seqs[*t].reverse == one.seqs[s].reverse;
            mine.extend(other.seqs.ids().find(same).map(|t| (from[one.seq_param(s)], theirs[&to[other.seq_param(t)]])));
        }
        for c in one.captured.ids() {
            let same = other.captured.ids().find(|d| b.ins[other.captured_input(*d)] == a.ins[one.captured_input(c)]);
            mine.extend(same.map(|d| (from[one.captured_param(c)], theirs[&to[other.captured_param(d)]])));
        }
        for &p in from {
            mine.entry(p).or_insert_with(|| graph.param(one.body.ty(p).clone(), None));
        }
        let results = [graph.inline(&one.body, &mine, one.body.results())?, graph.inline(&other.body, &theirs, other.body.results())?];
        Ok(SideBySide { graph, mine, theirs, results })
    }
}

/// Puts one loop in the place of a group.
fn merge(rebuild: &mut Rebuild, group: &[NodeId]) -> Result<bool> {
    let old = rebuild.old;
    let first = &old.nodes()[group[0]];
    let Op::Scan(scan) = &first.op else { return Ok(false) };
    let mut parts = Parts::open(scan, &rebuild.images(&first.ins)?);
    let mut places = vec![];
    for &id in &group[1..] {
        let node = &old.nodes()[id];
        let Op::Scan(scan) = &node.op else { return Ok(false) };
        let alike = Alike::new(old, group[0], id).states;
        places.push(join(&mut parts, Parts::open(scan, &rebuild.images(&node.ins)?), &alike)?);
    }
    let outs = parts.put(rebuild, first)?;
    for (&id, places) in group[1..].iter().zip(places) {
        let node = &old.nodes()[id];
        let Op::Scan(scan) = &node.op else { return Ok(false) };
        for (state, place) in scan.states.ids().zip(places) {
            rebuild.set(node.outs[scan.state_output(state)], outs[place]);
        }
        rebuild.set(node.outs[scan.steps_output()], outs[outs.len() - 1]);
    }
    Ok(true)
}

/// Adds the pieces of another loop, some of whose states are states that are there; where its states are now.
fn join(parts: &mut Parts, other: Parts, alike: &[(StateId, StateId)]) -> Result<Vec<usize>> {
    let mut map: FxHashMap<Value, Value> = FxHashMap::default();
    map.insert(other.step, parts.step);
    let param = |parts: &mut Parts, v: Value| parts.body.param(other.body.ty(v).clone(), other.body.name(v).map(|n| &**n));
    for seq in &other.seqs {
        let found = parts.seqs.iter().find(|s| s.rows == seq.rows && s.slot.reverse == seq.slot.reverse).map(|s| s.param);
        let image = found.unwrap_or_else(|| {
            let new = param(parts, seq.param);
            parts.seqs.push(SeqPart { param: new, ..seq.clone() });
            new
        });
        map.insert(seq.param, image);
    }
    for captured in &other.captured {
        let found = parts.captured.iter().find(|c| c.value == captured.value).map(|c| c.param);
        let image = found.unwrap_or_else(|| {
            let new = param(parts, captured.param);
            parts.captured.push(CapturedPart { param: new, ..captured.clone() });
            new
        });
        map.insert(captured.param, image);
    }
    let mut places = vec![];
    let mut states = vec![];
    for (at, state) in other.states.iter().enumerate() {
        if let Some((first, _)) = alike.iter().find(|(_, y)| y.idx() == at) {
            map.extend(state.params.iter().copied().zip(parts.states[first.idx()].params.iter().copied()));
            places.push(first.idx());
            continue;
        }
        let params: Vec<Value> = state.params.iter().map(|&p| param(parts, p)).collect();
        map.extend(state.params.iter().copied().zip(params.iter().copied()));
        places.push(parts.states.len() + states.len());
        states.push(StatePart { id: None, params, ..state.clone() });
    }
    for mut state in states {
        state.results = parts.body.inline(&other.body, &map, &state.results)?;
        parts.states.push(state);
    }
    Ok(places)
}
