//! A loop in Theano's words: its slots in the canonical order, and what depends on what.
//!
//! Canonical order: n_steps, sequences, mit_mot, mit_sot, sit_sot, shared, nit_sot, other. Outer inputs hold all of these
//! (a nit_sot's is its number of steps), inner inputs all but n_steps and nit_sot, inner outputs mit_mot, mit_sot, sit_sot,
//! nit_sot, shared and then the stopping condition, outer outputs the same without it.
//!
//! ```
//! use scan_core::prelude::*;
//!
//! let out = scan().named("halves").steps(3).init("h", 1.0).run(|s| s.get("h") * 0.5);
//! let steps = out.steps();
//! let slots = inspect::slots(steps.owner().unwrap().0.as_scan().unwrap());
//! assert_eq!(slots.iter().filter(|slot| slot.kind == inspect::Kind::SitSot).count(), 1);
//! ```

use crate::ir::{Graph, Scan, State, StateId, Tag, Value};
use rustc_hash::FxHashSet;

/// What a slot is, in canonical order of outer inputs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Iterated over.
    Seq,
    /// Several reads, several writes: made by gradients.
    MitMot,
    /// Several reads, one write.
    MitSot,
    /// One read, one write.
    SitSot,
    /// A shared variable updated in the loop.
    Shared,
    /// No read.
    NitSot,
    /// The same at every step.
    Other,
}

impl Kind {
    /// Theano's name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Seq => "seq",
            Kind::MitMot => "mit_mot",
            Kind::MitSot => "mit_sot",
            Kind::SitSot => "sit_sot",
            Kind::Shared => "shared",
            Kind::NitSot => "nit_sot",
            Kind::Other => "other",
        }
    }
}

/// One slot with its positions in the four lists of variables (canonical order).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    /// What it is.
    pub kind: Kind,
    /// The user's name for it.
    pub name: Option<String>,
    /// Position among the outer inputs.
    pub outer_input: usize,
    /// Positions among the inner inputs.
    pub inner_inputs: Vec<usize>,
    /// Positions among the inner outputs.
    pub inner_outputs: Vec<usize>,
    /// Position among the outer outputs.
    pub outer_output: Option<usize>,
    /// Reads as taps relative to the newest write (−1 is the step before); a sequence's is 0.
    pub taps_in: Vec<i64>,
    /// Writes as taps relative to the newest write: 0, and for mit_mot also earlier rows.
    pub taps_out: Vec<i64>,
    /// Position of the node's input that holds it, if there is one.
    pub node_input: Option<usize>,
    /// Position of the node's output that holds it, if there is one.
    pub node_output: Option<usize>,
    /// Parameters of the body, in the order of `inner_inputs`.
    pub params: Vec<usize>,
    /// Results of the body, in the order of `inner_outputs`.
    pub results: Vec<usize>,
}

/// The slots of a loop in canonical order (without n_steps, which is outer input 0).
pub fn slots(scan: &Scan) -> Vec<Slot> {
    let mut slots = raw_slots(scan);
    slots.sort_by_key(|s| s.kind);
    let mut inner_input = 0;
    for (i, slot) in slots.iter_mut().enumerate() {
        slot.outer_input = i + 1;
        slot.inner_inputs = (inner_input..inner_input + slot.params.len()).collect();
        inner_input += slot.params.len();
    }
    let mut order: Vec<usize> = (0..slots.len()).filter(|&i| !slots[i].results.is_empty()).collect();
    order.sort_by_key(|&i| if slots[i].kind == Kind::Shared { Kind::Other } else { slots[i].kind });
    let mut inner_output = 0;
    for (at, i) in order.into_iter().enumerate() {
        let n = slots[i].results.len();
        slots[i].inner_outputs = (inner_output..inner_output + n).collect();
        slots[i].outer_output = Some(at);
        inner_output += n;
    }
    slots
}

fn raw_slots(scan: &Scan) -> Vec<Slot> {
    let blank = |kind, name: Option<&std::sync::Arc<str>>| Slot {
        kind,
        name: name.map(|n| n.to_string()),
        outer_input: 0,
        inner_inputs: vec![],
        inner_outputs: vec![],
        outer_output: None,
        taps_in: vec![],
        taps_out: vec![],
        node_input: None,
        node_output: None,
        params: vec![],
        results: vec![],
    };
    let seqs = scan.seqs.enumerate().map(|(id, seq)| Slot {
        taps_in: vec![0],
        node_input: Some(scan.seq_input(id)),
        params: vec![scan.seq_param(id)],
        ..blank(Kind::Seq, seq.name.as_ref())
    });
    let states = scan.states.enumerate().map(|(id, state)| Slot {
        taps_in: state.reads.iter().map(|&r| tap(state, r)).collect(),
        taps_out: state.writes.iter().map(|&w| tap(state, w)).collect(),
        node_input: scan.init_input(id),
        node_output: Some(scan.state_output(id)),
        params: scan.read_params(id).collect(),
        results: scan.write_results(id).collect(),
        ..blank(kind(scan, id), state.name.as_ref())
    });
    let captured = scan.captured.enumerate().map(|(id, other)| Slot {
        node_input: Some(scan.captured_input(id)),
        params: vec![scan.captured_param(id)],
        ..blank(Kind::Other, other.name.as_ref())
    });
    seqs.chain(states).chain(captured).collect()
}

fn tap(state: &State, offset: usize) -> i64 {
    let newest = state.writes.iter().copied().max().unwrap_or(0);
    offset as i64 - newest as i64
}

fn kind(scan: &Scan, id: StateId) -> Kind {
    let state = &scan.states[id];
    match (&state.tag, state.kind()) {
        (Tag::Shared, _) => Kind::Shared,
        (_, "nit_sot") => Kind::NitSot,
        (_, "sit_sot") => Kind::SitSot,
        (_, "mit_sot") => Kind::MitSot,
        _ => Kind::MitMot,
    }
}

/// `[inner output][inner input]`: true where one step's output is computed from that input.
pub fn inner_connections(scan: &Scan) -> Vec<Vec<bool>> {
    let slots = slots(scan);
    let n = slots.iter().map(|s| s.inner_inputs.len()).sum();
    let mut results: Vec<Value> = vec![scan.body.results()[0]; slots.iter().map(|s| s.inner_outputs.len()).sum()];
    for slot in &slots {
        for (&at, &result) in slot.inner_outputs.iter().zip(&slot.results) {
            results[at] = scan.body.results()[result];
        }
    }
    results.extend(scan.until_result().map(|at| scan.body.results()[at]));
    let row = |result: Value| {
        let behind = ancestors(&scan.body, result);
        let mut row = vec![false; n];
        for slot in &slots {
            for (&at, &param) in slot.inner_inputs.iter().zip(&slot.params) {
                row[at] = behind.contains(&scan.body.params()[param]);
            }
        }
        row
    };
    results.into_iter().map(row).collect()
}

/// `[outer input][outer output]`: true where the output depends on the input over any number of steps.
pub fn connections(scan: &Scan) -> Vec<Vec<bool>> {
    let slots = slots(scan);
    let inner = inner_connections(scan);
    let feeds = |from: &Slot, to: &Slot| to.inner_outputs.iter().any(|&o| from.inner_inputs.iter().any(|&i| inner[o][i]));
    let outs: Vec<&Slot> = slots.iter().filter(|s| s.outer_output.is_some()).collect();
    let mut reach: Vec<Vec<bool>> =
        slots.iter().map(|a| slots.iter().map(|b| feeds(a, b) || (a == b && a.node_input.is_some())).collect()).collect();
    for k in 0..slots.len() {
        for i in 0..slots.len() {
            for j in 0..slots.len() {
                reach[i][j] |= reach[i][k] && reach[k][j];
            }
        }
    }
    let mut table = vec![vec![false; outs.len()]; slots.len() + 1];
    for (i, slot) in slots.iter().enumerate() {
        for (j, other) in slots.iter().enumerate() {
            if let Some(out) = other.outer_output {
                table[slot.outer_input][out] = reach[i][j];
            }
        }
    }
    table
}

fn ancestors(body: &Graph, value: Value) -> FxHashSet<Value> {
    let mut seen = FxHashSet::default();
    let mut stack = vec![value];
    while let Some(v) = stack.pop() {
        if seen.insert(v) {
            stack.extend(body.node_of(v).iter().flat_map(|n| n.ins.iter().copied()));
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{LoopBuilder, LoopOptions, Var};
    use crate::ir::Op;
    use crate::types::Array;

    /// A free output, a sit_sot, a mit_sot, an updated shared variable and a captured value, in this order of the user's.
    fn example() -> std::sync::Arc<Scan> {
        let (u, w, s0, x0) = (Var::float("u", 1), Var::float("w", 0), Var::float("s0", 0), Var::float("x0", 1));
        let count = Var::new_shared(Array::scalar(0.0), "count");
        let mut b = LoopBuilder::new(LoopOptions::default()).unwrap();
        let us = b.sequence(&u, &[-1, 0], Some("u")).unwrap();
        let s = b.state(&s0, &[-1], Some("s")).unwrap().remove(0);
        let x = b.state(&x0, &[-1, -3], Some("x")).unwrap();
        let free = us[0].mul(&count);
        let next_s = s.mul(&w);
        let next_x = x[0].add(&x[1]).add(&us[1]);
        let after = count.add(&s);
        let outs = b.finish(&[(None, free), (Some(0), next_s), (Some(1), next_x)], &[(count, after)], None).unwrap().outputs;
        match outs[0].owner() {
            Some((Op::Scan(scan), ..)) => scan.clone(),
            _ => panic!("the free output is the loop's own"),
        }
    }

    #[test]
    fn slots_stand_in_the_canonical_order() {
        let slots = slots(&example());
        let names: Vec<(&str, &str)> = slots.iter().map(|s| (s.kind.name(), s.name.as_deref().unwrap_or("-"))).collect();
        let want = [("seq", "u"), ("seq", "u"), ("mit_sot", "x"), ("sit_sot", "s"), ("shared", "count"), ("nit_sot", "-"), ("other", "w")];
        assert_eq!(names, want);
        assert_eq!(slots.iter().map(|s| s.outer_input).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
        let inner: Vec<&[usize]> = slots.iter().map(|s| &s.inner_inputs[..]).collect();
        assert_eq!(inner, [&[0][..], &[1], &[2, 3], &[4], &[5], &[], &[6]]);
        let outer: Vec<Option<usize>> = slots.iter().map(|s| s.outer_output).collect();
        assert_eq!(outer, [None, None, Some(0), Some(1), Some(3), Some(2), None]);
        assert_eq!((&slots[2].taps_in[..], &slots[2].taps_out[..]), (&[-1, -3][..], &[0][..]));
    }

    #[test]
    fn connections_follow_the_recurrence() {
        let scan = example();
        let t = true;
        let f = false;
        // Inner outputs: x, s, free, count. Inner inputs: u[t-1], u[t], x[t-1], x[t-3], s, count, w.
        let want = [[f, t, t, t, f, f, f], [f, f, f, f, t, f, t], [t, f, f, f, f, t, f], [f, f, f, f, t, t, f]];
        assert_eq!(inner_connections(&scan), want);
        // Over several steps, w reaches s, through s the count, and through the count the free output.
        let outer = connections(&scan);
        assert_eq!(outer[7], [f, t, t, t]);
        assert_eq!(outer[1], [f, f, t, f]);
        assert_eq!(outer[3], [t, f, f, f]);
        assert_eq!(outer[0], [f; 4]);
    }
}
