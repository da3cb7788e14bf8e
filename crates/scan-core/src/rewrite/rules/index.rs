//! Reads of what was just written, joined or cut.

use super::Rule;
use crate::ir::Value;
use crate::ir::op::{ArgTopK, Gather, Index, Op, Write};
use crate::ops::gather::index_axis;
use crate::ops::index::{Item, Pattern};
use crate::rewrite::local::Local;
use crate::scalar::ElemOp;
use crate::types::Dim;
use smallvec::SmallVec;

/// The rules.
pub static RULES: &[Rule] = &[
    Rule { doc: "x[0:n] → x, where x has n rows", on: &["index"], apply: whole },
    Rule { doc: "x[i][j] → x[i, j]", on: &["index"], apply: index_twice },
    Rule { doc: "x[:, i][a, b] → x[a, i, b], of index arrays a, b", on: &["gather"], apply: gathered_at },
    Rule { doc: "join(x, y)[i] → x[i] or y[j]", on: &["index"], apply: of_join },
    Rule { doc: "expand(x)[0] → x", on: &["index"], apply: of_expand },
    Rule { doc: "broadcast_to(x, n, …)[-k:] → broadcast_to(x, min(n, k), …), likewise [:k]", on: &["index"], apply: of_repeated },
    Rule { doc: "set(x, y, i)[i] → y", on: &["index"], apply: of_write },
    Rule { doc: "argsort(x)[:k] → argtopk(x, k), likewise [-k:]", on: &["index"], apply: of_order },
    Rule { doc: "flip(x)[:k] → flip(x[-k:])", on: &["index"], apply: of_flipped_order },
    Rule { doc: "join(x, y) → x, where y has no rows, and fits", on: &["join"], apply: with_nothing },
];

/// Inputs of an item.
pub(super) type Ins = SmallVec<[Value; 4]>;

/// The items of an index with the inputs of each.
pub(super) fn items(op: &Op, ins: &[Value]) -> Option<Vec<(Item, Ins)>> {
    let Op::Index(Index { pattern }) = op else { return None };
    let mut rest = &ins[1..];
    let each = Pattern::parse(pattern).ok()?.items.into_iter().map(|item| {
        let (own, others) = rest.split_at(item.inputs());
        rest = others;
        (item, Ins::from_slice(own))
    });
    Some(each.collect())
}

/// An index from its items.
pub(super) fn index(l: &mut Local, x: Value, items: &[(Item, Ins)]) -> Option<Value> {
    let pattern = items.iter().map(|(item, _)| word(*item)).collect::<Vec<_>>().join(",");
    let ins: Ins = std::iter::once(x).chain(items.iter().flat_map(|(_, ins)| ins.iter().copied())).collect();
    l.make(Index { pattern }, &ins)
}

fn word(item: Item) -> String {
    let Item::Slice { start, end, step } = item else { return "i".into() };
    let bounds = format!("{}:{}", if start { "s" } else { "" }, if end { "e" } else { "" });
    if step == 1 { bounds } else { format!("{bounds}:{step}") }
}

/// Bounds that say nothing go; an index that says nothing goes, too.
fn whole(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let before = items(op, ins)?;
    let dims = l.ty(ins[0]).dims.clone();
    let mut after: Vec<(Item, Ins)> = before.iter().zip(&dims).map(|((item, own), dim)| plain(l, *item, own, dim)).collect();
    while after.last().is_some_and(|(item, _)| *item == Item::ALL) {
        after.pop();
    }
    if after.is_empty() {
        return Some(ins[0]);
    }
    if after.len() == before.len() && after.iter().zip(&before).all(|(a, b)| a.0 == b.0) {
        return None;
    }
    index(l, ins[0], &after)
}

/// A slice without a start of 0 and an end at the end.
fn plain(l: &Local, item: Item, own: &Ins, dim: &Dim) -> (Item, Ins) {
    let Item::Slice { start, end, step } = item else { return (item, own.clone()) };
    let at_start = start && step > 0 && l.int(own[0]) == Some(0);
    let at_end = end && step > 0 && own.last().and_then(|&v| l.extent(v)).is_some_and(|d| d == *dim);
    let kept = [start.then(|| own[0]).filter(|_| !at_start), end.then(|| own[own.len() - 1]).filter(|_| !at_end)];
    (Item::Slice { start: kept[0].is_some(), end: kept[1].is_some(), step }, kept.into_iter().flatten().collect())
}

/// Where the first index takes single rows, the second goes on with the axes that are left.
fn index_twice(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let (before, inner) = l.node(ins[0])?;
    let x = *inner.first()?;
    let mut all = items(before, inner)?;
    if all.iter().any(|(item, _)| *item != Item::At) {
        return None;
    }
    all.extend(items(op, ins)?);
    index(l, x, &all)
}

/// Index arrays of what single rows were taken of read it where it lies, where both say so in one line of the user's: else the error of a row
/// that is not there would name another line.
fn gathered_at(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let Op::Gather(Gather { axes }) = op else { return None };
    let (before, inner) = l.node(ins[0])?;
    let (x, all) = (*inner.first()?, items(before, inner)?);
    let plain = all.iter().all(|(item, _)| matches!(*item, Item::At | Item::ALL));
    if !plain || !l.in_this_line(ins[0]) {
        return None;
    }
    let taken = |axis: usize| all.get(axis).filter(|(item, _)| *item == Item::At).map(|(_, own)| own[0]);
    let rank = l.ty(x).rank();
    let left: Vec<usize> = (0..rank).filter(|&axis| taken(axis).is_none()).collect();
    let rows = (0..rank).filter_map(|axis| Some((axis, taken(axis)?)));
    let mut places: Vec<(usize, Value)> = axes.iter().zip(&ins[1..]).map(|(&axis, &v)| (left[axis], v)).chain(rows).collect();
    places.sort_unstable_by_key(|(axis, _)| *axis);
    let new: Vec<usize> = places.iter().map(|(axis, _)| *axis).collect();
    if index_axis(&new) != index_axis(axes) {
        return None;
    }
    let operands: Ins = std::iter::once(x).chain(places.into_iter().map(|(_, v)| v)).collect();
    l.make(Gather { axes: new }, &operands)
}

/// The constant that the first item takes, and the other items.
pub(super) fn first_at(l: &Local, op: &Op, ins: &[Value]) -> Option<(i64, Vec<(Item, Ins)>)> {
    let mut all = items(op, ins)?;
    match all.first()? {
        (Item::At, own) => Some((l.int(own[0])?, all.split_off(1))),
        _ => None,
    }
}

/// The part that holds the row, where the parts before it (or behind, for a negative index) have known extents, and all fit together.
fn of_join(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let (k, others) = first_at(l, op, ins)?;
    let (Op::Join(join), parts) = l.node(ins[0])? else { return None };
    let (parts, fits) = (parts.to_vec(), join.axis == 0);
    let rows = |v: &Value| l.ty(*v).dims[1..].to_vec();
    if !fits || parts.iter().any(|p| rows(p) != rows(&parts[0])) {
        return None;
    }
    let (part, k) =
        if k >= 0 { part_with(l, parts.iter(), k)? } else { part_with(l, parts.iter().rev(), -1 - k).map(|(p, k)| (p, -1 - k))? };
    if parts.iter().any(|&p| p != part && !l.safe(p)) {
        return None;
    }
    let at = l.g.int(k);
    let dtype = l.dtype(ins[0]);
    let all: Vec<(Item, Ins)> = std::iter::once((Item::At, Ins::from_slice(&[at]))).chain(others).collect();
    let row = index(l, part, &all)?;
    l.cast(row, dtype)
}

/// The only part that may have rows.
fn with_nothing(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let Op::Join(join) = op else { return None };
    let axis = join.axis;
    let mut some = ins.iter().copied().filter(|&v| l.ty(v).dims[axis].value() != Some(0));
    let (Some(only), None) = (some.next(), some.next()) else { return None };
    let others = |v: Value| l.ty(v).dims.iter().enumerate().filter(|(at, _)| *at != axis).map(|(_, d)| d.clone()).collect::<Vec<Dim>>();
    let fits = ins.iter().all(|&v| l.dtype(v) == l.dtype(only) && others(v) == others(only));
    (fits && ins.iter().all(|&v| v == only || l.safe(v))).then_some(only)
}

fn part_with<'a>(l: &Local, parts: impl Iterator<Item = &'a Value>, mut k: i64) -> Option<(Value, i64)> {
    for &part in parts {
        let n = l.ty(part).dims[0].value()? as i64;
        if k < n {
            return Some((part, k));
        }
        k -= n;
    }
    None
}

fn of_expand(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let (k, others) = first_at(l, op, ins)?;
    let (Op::Expand(expand), &[x]) = l.node(ins[0])? else { return None };
    if expand.axes != [0] || !matches!(k, 0 | -1) {
        return None;
    }
    if others.is_empty() { Some(x) } else { index(l, x, &others) }
}

/// Fewer of equal rows: zeros of which the last row matters are not made for all rows.
fn of_repeated(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let [(Item::Slice { start, end, step: 1 }, own)] = &items(op, ins)?[..] else { return None };
    let (Op::BroadcastTo(repeat), before) = l.node(ins[0])? else { return None };
    let (repeat, x, n, others) = (Op::BroadcastTo(repeat.clone()), before[0], before[1], before[2..].to_vec());
    if l.ty(x).rank() > others.len() && !l.ty(x).dims[0].is_one() {
        return None;
    }
    let k = l.int(*own.first()?)?;
    let rows = match (start, end) {
        (true, false) if k < 0 => least(l, n, k.checked_neg()?)?,
        (false, true) if k >= 0 => least(l, n, k)?,
        _ => return None,
    };
    let all: Ins = [x, rows].into_iter().chain(others).collect();
    l.make(repeat, &all)
}

/// So many elements at most are found without sorting all.
const KEPT: i64 = 1 << 10;

/// The constant number of elements that an index takes along one axis, all of the others: from the front, or (true) from the end.
fn some_along(l: &Local, op: &Op, ins: &[Value]) -> Option<(usize, i64, bool)> {
    let items = items(op, ins)?;
    let axis = items.len() - 1;
    let (Item::Slice { start, end, step: 1 }, own) = &items[axis] else { return None };
    let rest = items[..axis].iter().all(|(item, _)| *item == Item::ALL);
    match (start, end, l.int(*own.first()?)?) {
        (false, true, k) if rest && (1..=KEPT).contains(&k) => Some((axis, k, false)),
        (true, false, k) if rest && (-KEPT..=-1).contains(&k) => Some((axis, -k, true)),
        _ => None,
    }
}

/// Sorting takes longer than finding some.
fn of_order(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let (axis, k, largest) = some_along(l, op, ins)?;
    let (Op::ArgSort(sort), &[x]) = l.node(ins[0])? else { return None };
    if sort.axis != axis {
        return None;
    }
    l.make(ArgTopK { axis, k: k as usize, largest }, &[x])
}

/// The largest ones are the last ones.
fn of_flipped_order(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let (axis, k, last) = some_along(l, op, ins)?;
    let (Op::Flip(flip), &[order]) = l.node(ins[0])? else { return None };
    let (Op::ArgSort(sort), _) = l.node(order)? else { return None };
    if flip.axis != axis || sort.axis != axis {
        return None;
    }
    let (flip, k) = (flip.clone(), l.g.int(if last { k } else { -k }));
    let bounds = Item::Slice { start: !last, end: last, step: 1 };
    let mut items = vec![(Item::ALL, Ins::new()); axis];
    items.push((bounds, Ins::from_slice(&[k])));
    let found = index(l, order, &items)?;
    l.make(flip, &[found])
}

fn least(l: &mut Local, n: Value, k: i64) -> Option<Value> {
    let k = l.g.int(k);
    l.make(Op::Elem(ElemOp::Minimum), &[n, k])
}

/// What was set, where it has the shape of the place and the place certainly exists.
fn of_write(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let (Op::IndexWrite(write), before) = l.node(ins[0])? else { return None };
    let Op::Index(Index { pattern }) = op else { return None };
    let same = write.mode == Write::Set && write.pattern == *pattern && before[2..] == ins[1..];
    let (x, y) = (before[0], before[1]);
    let certain = |l: &Local, (item, own): &(Item, Ins), dim: &Dim| {
        *item != Item::At || l.int(own[0]).zip(dim.value()).is_some_and(|(k, n)| (-(n as i64)..n as i64).contains(&k))
    };
    let dims = l.ty(x).dims.clone();
    if !same || !items(op, ins)?.iter().zip(&dims).all(|(item, dim)| certain(l, item, dim)) || !l.safe(x) {
        return None;
    }
    let ty = &op.def().infer(&ins.iter().map(|&v| l.g.arg(v)).collect::<Vec<_>>()).ok()?[0];
    (ty == l.ty(y)).then_some(y)
}
