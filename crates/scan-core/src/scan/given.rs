//! Cotangents of what a loop was given, of the rows that its backward loop returns.

use crate::ir::op::IfElse;
use crate::ir::{Graph, State, Value};
use crate::types::{Dim, Sym};
use rustc_hash::FxHashSet;

/// The last row of `rows`, or of `init` where there is none.
pub(super) fn last_row(g: &mut Graph, init: Value, rows: Value) -> Value {
    let all = g.join_rows(&[init, rows]);
    let last = g.int(-1);
    g.row(all, last)
}

/// The cotangent of the initial rows: the first rows of the whole buffer's.
pub(super) fn init_cotangent(g: &mut Graph, state: &State, rows: Value, full: Value, init: Value, steps: Value) -> Value {
    let zero = g.int(0);
    let m = g.dim(init, 0);
    if g.ty(init).dims[0] == Dim::known(state.span()) {
        return g.slice_rows(rows, zero, m);
    }
    let span = g.int(state.span() as i64);
    let end = g.add(steps, span);
    let len = g.dim(full, 0);
    let rest = g.slice_rows(full, end, len);
    let all = g.join_rows(&[rows, rest]);
    g.slice_rows(all, zero, m)
}

/// The cotangent of a sequence: the rows of the steps as they lie in it, zeros where there was none.
pub(super) fn seq_cotangent(g: &mut Graph, reverse: bool, rows: Value, x: Value, steps: Value, covered: Value) -> Value {
    let len = g.dim(x, 0);
    let cut = g.sub(steps, covered);
    let rest = g.sub(len, steps);
    let (before, after) = if reverse { (rest, cut) } else { (cut, rest) };
    let before = g.zero_rows_like(before, x);
    let after = g.zero_rows_like(after, x);
    let rows = if told(g, x) { rows } else { rows_or_none(g, rows, x, covered) };
    let all = g.join_rows(&[before, rows, after]);
    g.reshape_like(all, x)
}

/// True where the extents of rows follow from types of what the graph is given.
fn told(g: &Graph, rows: Value) -> bool {
    let given: FxHashSet<Sym> = g.params().iter().flat_map(|&p| &g.ty(p).dims).filter_map(Dim::as_sym).collect();
    g.ty(rows).row().dims.iter().all(|d| d.eval(&|s| given.contains(&s).then_some(0)).is_some())
}

/// Rows of a loop of `steps` steps, or no row as `like` has them: rows that no step made have extents of their own where values decide on
/// extents.
fn rows_or_none(g: &mut Graph, rows: Value, like: Value, steps: Value) -> Value {
    let zero = g.int(0);
    let ran = g.lt(zero, steps);
    let none = g.zero_rows_like(zero, like);
    g.emit(IfElse {}, &[ran, rows, none])
}
