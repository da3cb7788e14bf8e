//! Steps of which the loops can be loops of a kernel: what these return has extents that are known, or guessed.

use super::by_number::{by_rows, keeps_rows, loop_of};
use super::ends::reads_on;
use super::extents::{BY_VALUES, known_shape};
use super::kinds::{Kind, Kinds};
use super::prepared::ready;
use super::refusal::{Lowered, refuse};
use super::rooms::{Guesses, Roomy, UNBOUNDED, with_rooms};
use super::sided::with_sides;
use crate::base::Id;
use crate::ir::{Graph, Keep, Node, Op, Scan, State, Value};
use crate::types::{Array, DType, Dim, Type};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Why a loop in a step is no loop of a kernel.
pub(super) const ROWS: &str = "it holds a loop of which more is read than its last row";

/// A loop of which nobody knows how many steps it runs has room for the rows of so many. Where it runs more the law runs the loop around.
const ROOM: usize = 1 << 14;

/// A step of which the loops can be loops of a kernel, as far as that is to be seen at once.
///
/// # Errors
/// Why they cannot.
pub(super) fn with_loops(scan: &Scan, body: Graph) -> Lowered<Graph> {
    if !body.nodes().iter().any(|n| matches!(n.op, Op::Scan(_))) {
        return Ok(body);
    }
    let body = match with_sides(scan, &body)? {
        Some(body) => ready(&body)?,
        None => body,
    };
    let body = match with_guesses(&body)? {
        Some(body) => body,
        None => certain(body)?,
    };
    let kinds = Kinds::new(scan, &body);
    for node in kinds.nodes(&body) {
        let Some((inner, room)) = loop_of(&node.op) else { continue };
        match kinds.of(node.outs[0]) == Kind::Step {
            false if room.is_some() => return refuse(BY_VALUES),
            true if inner.states.iter().any(|s| !matches!(s.keep, Keep::Last(0 | 1) | Keep::All)) => return refuse(ROWS),
            true if !by_rows(&body, node, inner) => return refuse(ROWS),
            _ => {}
        }
    }
    Ok(body)
}

/// The body with all that is certain of what loops in it return.
fn certain(body: Graph) -> Lowered<Graph> {
    let body = match closed(&body)? {
        Some(body) => ready(&body)?,
        None => body,
    };
    match with_rooms(&body, &[], None)? {
        Some(body) => ready(&body),
        None => Ok(body),
    }
}

/// The body with extents known of what loops return that keep a row each, however many steps they run; `None` where there are none.
fn closed(body: &Graph) -> Lowered<Option<Graph>> {
    if !body.nodes().iter().any(|node| open(body, node).is_some()) {
        return Ok(None);
    }
    let (mut out, mut image) = (Graph::new(), FxHashMap::default());
    for &p in body.params() {
        image.insert(p, out.param(body.ty(p).clone(), body.name(p).map(|n| &**n)));
    }
    let live = body.needed(body.results());
    for (_, node) in body.nodes().enumerate().filter(|n| live[n.0.idx()]) {
        out.set_span(node.span);
        let ins: Vec<Value> = node.ins.iter().map(|v| image[v]).collect();
        let mut outs = out.apply(node.op.clone(), &ins)?;
        if let Some((scan, n)) = open(body, node) {
            let row = |(state, &v): (&State, &Value)| {
                let rows = Dim::known(usize::from(state.keep == Keep::Last(1)));
                Type::new(out.ty(v).dtype, std::iter::once(rows).chain(out.ty(v).dims.iter().skip(1).cloned()))
            };
            let types = scan.states.iter().zip(&outs).map(row).chain([Type::scalar(DType::I64)]).collect();
            let lengths = scan.seqs.ids().map(|id| known_shape(body, node.ins[scan.seq_input(id)]).map(|shape| shape[0]));
            let most = lengths.collect::<Lowered<Vec<usize>>>()?.into_iter().min().unwrap_or(UNBOUNDED);
            let op = match n {
                Some(n) => Roomy::op(scan.clone(), (n, true), types),
                None if reads_on(body, node) => Roomy::open(scan.clone(), most, types),
                None => Roomy::op(scan.clone(), (most, false), types),
            };
            outs = out.apply(op, &ins)?;
        }
        image.extend(node.outs.iter().copied().zip(outs));
    }
    let results: Vec<Value> = body.results().iter().map(|v| image[v]).collect();
    out.set_results(results);
    Ok(Some(out))
}

/// Such a loop, and how many steps it runs at most where that is known. Else it may run none where its rows are read as those that it began with
/// then, and must run one elsewhere.
fn open<'a>(body: &Graph, node: &'a Node) -> Option<(&'a Arc<Scan>, Option<usize>)> {
    let Op::Scan(scan) = &node.op else { return None };
    let open = node.outs.iter().any(|&v| known_shape(body, v).is_err());
    let kept = scan.states.iter().all(|s| matches!(s.keep, Keep::Last(0 | 1)));
    let known = body.const_value(node.ins[Scan::N_STEPS]).map(|n| n.item_i64().and_then(|n| usize::try_from(n).ok()));
    let any = known.map_or_else(|| reads_on(body, node) || fails_without(body, node), |n| n.is_some_and(|n| n > 0));
    (open && kept && any).then_some((scan, known.flatten()))
}

/// True for a loop whose step fails where it runs no step: of what it returns nothing is read but its last rows, by their number.
fn fails_without(body: &Graph, node: &Node) -> bool {
    let number = |n: &Node| n.ins.get(1).and_then(|&v| body.const_value(v)).and_then(Array::item_i64);
    let takes = |n: &Node| matches!(&n.op, Op::Index(index) if index.pattern.split(',').next() == Some("i")) && number(n) == Some(-1);
    let reads = |v: Value| body.nodes().iter().filter(move |n| n.ins.contains(&v)).all(takes) && !body.results().contains(&v);
    node.op.as_scan().is_some_and(|scan| scan.states.ids().all(|id| reads(node.outs[scan.state_output(id)])))
}

/// The body with room for the rows of loops of which nobody knows how many steps they run; none where there are none, or that cannot be said.
pub(super) fn with_guesses(body: &Graph) -> Lowered<Option<Graph>> {
    let live = body.needed(body.results());
    let open = |node: &Node| matches!(node.op, Op::Scan(_)) && keeps_rows(node) && node.outs.iter().any(|&v| known_shape(body, v).is_err());
    if !body.nodes().enumerate().any(|(id, node)| live[id.idx()] && open(node)) {
        return Ok(None);
    }
    let mut guesses = Guesses::of(ROOM);
    loop {
        let made = with_rooms(body, &[], Some(&mut guesses))?;
        if made.is_some() || !guesses.more() {
            return made.map(|body| ready(&body)).transpose();
        }
    }
}
