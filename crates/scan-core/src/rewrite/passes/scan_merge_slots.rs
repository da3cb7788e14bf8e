//! Makes states of a loop that are always equal one.
//!
//! ```text
//! before  scan n { state a init=h; state b init=h;  next a = f(a);  next b = f(b) }
//! after   scan n { state a init=h;  next a = f(a) }                                  read for both
//! ```
//!
//! States are equal where they begin with the same rows, read and write at the same offsets, and, taken for equal, are given the
//! same rows by every step. Where one keeps all rows and another the last ones, all are kept.

use crate::base::{Id, Result};
use crate::ir::op::Index;
use crate::ir::{Graph, Keep, Scan, StateId, Value};
use crate::rewrite::Cx;
use crate::rewrite::loops::Parts;
use crate::rewrite::loops::parts::title;
use crate::rewrite::loops::rows::Prover;
use crate::rewrite::rebuild::copy_with;

const NAME: &str = "scan_merge_slots";

/// The graph with loops that compute no state twice.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    let mut prover = Prover::new(graph);
    copy_with(graph, |rebuild, _, node| {
        let Some(scan) = node.op.as_scan().filter(|s| !s.body.whole().effects) else { return Ok(false) };
        let first = equal_states(&mut prover, scan, &node.ins);
        let twins: Vec<(usize, usize)> = first.iter().copied().enumerate().filter(|(at, first)| at != first).collect();
        if twins.is_empty() {
            return Ok(false);
        }
        cx.done(NAME, title(scan), format!("{} states are equal to others", twins.len()));
        let mut parts = Parts::open(scan, &node.ins);
        for &(at, first) in &twins {
            if parts.states[at].slot.keep != parts.states[first].slot.keep {
                parts.states[first].slot.keep = Keep::All;
            }
        }
        let keeps: Vec<Keep> = parts.states.iter().map(|s| s.slot.keep).collect();
        merged(&mut parts, &twins);
        parts.fill(|v| rebuild.image(v))?;
        parts.put(rebuild, node)?;
        let output = |at: usize| node.outs[scan.state_output(StateId(at as u32))];
        let images: Vec<Value> = first.iter().map(|&first| rebuild.image(output(first))).collect::<Result<_>>()?;
        for (at, (image, first)) in images.into_iter().zip(first).enumerate() {
            let slot = &scan.states[StateId(at as u32)];
            let image = match (slot.keep, keeps[first]) {
                (Keep::Last(k), Keep::All) => last_rows(&mut rebuild.new, image, slot.span(), k),
                _ => image,
            };
            rebuild.set(output(at), image);
        }
        Ok(true)
    })
}

/// The last rows that steps wrote.
fn last_rows(g: &mut Graph, buffer: Value, span: usize, k: usize) -> Value {
    let (span, k) = (g.int(span as i64), g.int(-(k as i64)));
    let written = g.emit(Index { pattern: "s:".into() }, &[buffer, span]);
    g.emit(Index { pattern: "s:".into() }, &[written, k])
}

/// Drops states that are equal to others.
fn merged(parts: &mut Parts, twins: &[(usize, usize)]) {
    for &(at, first) in twins {
        let pairs: Vec<(Value, Value)> = parts.states[at].params.iter().copied().zip(parts.states[first].params.clone()).collect();
        pairs.into_iter().for_each(|(old, new)| parts.alias(old, new));
    }
    let mut at = 0..;
    parts.states.retain(|_| at.next().is_some_and(|at| !twins.iter().any(|t| t.0 == at)));
}

/// Per state the first that is equal to it: taken for equal, they are given the same rows.
fn equal_states(prover: &mut Prover, scan: &Scan, ins: &[Value]) -> Vec<usize> {
    let n = scan.states.len();
    let state = |at: usize| StateId(at as u32);
    let alike: Vec<Vec<usize>> =
        (0..n).map(|at| (0..at).filter(|&first| fits(prover, scan, ins, [first, at].map(state))).collect()).collect();
    let mut guess: Vec<usize> = alike.iter().enumerate().map(|(at, firsts)| firsts.first().copied().unwrap_or(at)).collect();
    while guess.iter().enumerate().any(|(at, first)| at != *first) {
        let twins = guess.iter().enumerate().filter(|(at, first)| at != *first);
        let read = |at: usize| scan.read_values(state(at)).iter().copied();
        let of = scan.body.congruent(twins.flat_map(|(at, &first)| read(at).zip(read(first))));
        let written = |at: usize| scan.write_values(state(at)).iter().map(|v| of[v.idx()]);
        let wrong: Vec<usize> = (0..n).filter(|&at| !written(at).eq(written(guess[at]))).collect();
        if wrong.is_empty() {
            break;
        }
        for &at in &wrong {
            let same = |first: &&usize| **first > guess[at] && (wrong.contains(first) || guess[**first] == **first);
            guess[at] = alike[at].iter().find(same).copied().unwrap_or(at);
        }
        for at in 0..n {
            if guess[guess[at]] != guess[at] {
                guess[at] = at;
            }
        }
    }
    guess
}

/// True where two states begin alike and read and write alike.
fn fits(prover: &mut Prover, scan: &Scan, ins: &[Value], [first, at]: [StateId; 2]) -> bool {
    let (a, b) = (&scan.states[first], &scan.states[at]);
    let begins = |id| scan.init_input(id).map(|at| ins[at]);
    let alike = begins(first) == begins(at) && a.reads == b.reads && a.writes == b.writes && a.row == b.row;
    let span = a.span();
    let newest = a.writes.iter().max() == Some(&span);
    alike && (a.keep == b.keep || newest && begins(first).is_none_or(|init| prover.at_most(init, span)))
}
