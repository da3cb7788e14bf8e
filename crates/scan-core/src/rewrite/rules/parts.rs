//! Parts of parts: what is cut twice is cut once, what was cut and joined again is whole, and what was written or joined is read where it
//! came from. Bounds are constants; negative ones count where the extent is known.

use super::Rule;
use super::index::{Ins, first_at, index, items};
use crate::ir::Value;
use crate::ir::op::{Index, Join, Op, Write};
use crate::ops::index::Item;
use crate::rewrite::local::Local;
use crate::scalar::ElemOp;

/// The rules.
pub static RULES: &[Rule] = &[
    Rule { doc: "x[a:b][c:d] → x[a + c:…]", on: &["index"], apply: |l, op, ins| cut_twice(l, op, ins) },
    Rule { doc: "x[a:b][i] → x[a + i]", on: &["index"], apply: element_of_cut },
    Rule { doc: "join(x, y, z)[a:b] → join(y, z)[c:d]", on: &["index"], apply: cut_of_join },
    Rule { doc: "write(x, y, i)[j] → x[j] or y[j − i]", on: &["index"], apply: of_other_write },
    Rule { doc: "join(x[a:b], x[b:c]) → x[a:c]", on: &["join"], apply: joined_again },
];

/// A slice with step 1 along one axis, and all of the others.
#[derive(Clone)]
struct Cut {
    x: Value,
    axis: usize,
    start: Option<Value>,
    end: Option<Value>,
}

impl Cut {
    fn of(op: &Op, ins: &[Value]) -> Option<Cut> {
        let all = items(op, ins)?;
        let mut some = all.iter().enumerate().filter(|(_, (item, _))| *item != Item::ALL);
        let (axis, (Item::Slice { start, end, step: 1 }, own)) = some.next()? else { return None };
        let one = some.next().is_none();
        one.then(|| Cut { x: ins[0], axis, start: start.then(|| own[0]), end: end.then(|| own[own.len() - 1]) })
    }
    fn made_by(l: &Local, v: Value) -> Option<Cut> {
        let (op, ins) = l.node(v)?;
        Cut::of(op, ins)
    }
    /// The constant that a bound is; counted from the front where the extent is known.
    fn bound(&self, l: &Local, bound: Option<Value>) -> Option<i64> {
        let k = l.int(bound?)?;
        Some(if k < 0 { l.extent_of(self.x, self.axis).map_or(k, |n| (k + n).max(0)) } else { k })
    }
    /// The start of the last elements, which counts from the end: so it is left, for loops that keep their last rows alone.
    fn last(&self, l: &Local) -> Option<i64> {
        l.int(self.start.filter(|_| self.end.is_none())?).filter(|&k| k < 0)
    }
    /// The start, where it certainly counts from the front.
    fn from(&self, l: &Local) -> Option<i64> {
        if self.start.is_none() { Some(0) } else { self.bound(l, self.start).filter(|&k| k >= 0) }
    }
    /// First element and the one after the last, of an axis of known extent.
    fn range(&self, l: &Local) -> Option<(i64, i64)> {
        let n = l.extent_of(self.x, self.axis)?;
        let end = if self.end.is_none() { n } else { self.bound(l, self.end)?.min(n) };
        Some((self.from(l)?.min(end), end))
    }
    fn make(&self, l: &mut Local) -> Option<Value> {
        let item = Item::Slice { start: self.start.is_some(), end: self.end.is_some(), step: 1 };
        let own: Ins = [self.start, self.end].into_iter().flatten().collect();
        let mut all = vec![(Item::ALL, Ins::new()); self.axis];
        all.push((item, own));
        index(l, self.x, &all)
    }
}

impl Local<'_> {
    /// An extent that is known.
    fn extent_of(&self, v: Value, axis: usize) -> Option<i64> {
        self.ty(v).dims.get(axis)?.value().map(|n| n as i64)
    }
    fn bound(&mut self, at: i64) -> Option<Value> {
        (at != 0).then(|| self.g.int(at))
    }
}

fn cut_twice(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let (outer, inner) = (Cut::of(op, ins)?, Cut::made_by(l, ins[0])?);
    if outer.axis != inner.axis {
        return None;
    }
    if let Some(k) = outer.last(l) {
        let there = inner.end.is_none() && l.extent_of(ins[0], outer.axis).is_some_and(|n| n + k >= 0);
        return there.then(|| Cut { start: outer.start, ..inner }.make(l))?;
    }
    let (a, c) = (inner.from(l)?, outer.from(l)?);
    let end = match (inner.end, outer.end) {
        (end, None) => end,
        (None, Some(end)) => match l.int(end)? {
            d if d < 0 => Some(end),
            d => Some(l.g.int(a.checked_add(d)?)),
        },
        (Some(_), Some(_)) => match (inner.bound(l, inner.end)?, outer.bound(l, outer.end)?) {
            (b, d) if b >= 0 && d >= 0 => Some(l.g.int(b.min(a.checked_add(d)?))),
            (b, d) if b < 0 && d < 0 => Some(l.g.int(b.checked_add(d)?)),
            _ => return None,
        },
    };
    let start = l.bound(a.checked_add(c)?);
    Cut { start, end, ..inner }.make(l)
}

/// Where the slice certainly has the element.
fn element_of_cut(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let (k, others) = first_at(l, op, ins)?;
    let cut = Cut::made_by(l, ins[0]).filter(|cut| cut.axis == 0)?;
    let (n, from) = (l.extent_of(ins[0], 0)?, cut.from(l)?);
    if !(-n..n).contains(&k) {
        return None;
    }
    let at = match k {
        _ if k < 0 && cut.end.is_none() => k,
        _ => from + if k < 0 { k + n } else { k },
    };
    element(l, cut.x, at, others)
}

/// `x[k, …]`
fn element(l: &mut Local, x: Value, k: i64, others: Vec<(Item, Ins)>) -> Option<Value> {
    let at = l.g.int(k);
    let all: Vec<(Item, Ins)> = std::iter::once((Item::At, Ins::from_slice(&[at]))).chain(others).collect();
    index(l, x, &all)
}

/// Drops parts that the slice leaves out; what is dropped cannot fail.
fn cut_of_join(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let cut = Cut::of(op, ins)?;
    let (&Op::Join(Join { axis }), parts) = l.node(cut.x)? else { return None };
    let parts = parts.to_vec();
    let (others, dtype) = (other_dims(l, parts[0], axis), l.dtype(parts[0]));
    let alike = parts.iter().all(|&p| other_dims(l, p, axis) == others && l.dtype(p) == dtype);
    let end = cut.end.map(|_| cut.bound(l, cut.end));
    if let Some(k) = cut.last(l) {
        let last = *parts.last()?;
        let others: Vec<Value> = parts[..parts.len() - 1].to_vec();
        let there = alike && axis == cut.axis && l.extent_of(last, axis).is_some_and(|n| n + k >= 0);
        return (there && others.into_iter().all(|p| l.safe(p))).then(|| Cut { x: last, ..cut }.make(l))?;
    }
    if !alike || axis != cut.axis || end.is_some_and(|k| k.is_none_or(|k| k < 0)) {
        return None;
    }
    let from = cut.from(l)?;
    let (first, skipped) = skipped(l, &parts, axis, from);
    let last = end.flatten().map_or(parts.len(), |end| after(l, &parts, axis, end)).max(first + 1);
    let dropped = || parts[..first].iter().chain(&parts[last..]);
    if dropped().next().is_none() || !dropped().copied().collect::<Vec<_>>().into_iter().all(|p| l.safe(p)) {
        return None;
    }
    let x = if last - first == 1 { parts[first] } else { l.make(Join { axis }, &parts[first..last])? };
    let start = l.bound(from - skipped);
    let end = end.flatten().map(|end| l.g.int((end - skipped).max(0)));
    Cut { x, axis, start, end }.make(l)
}

fn other_dims(l: &Local, v: Value, axis: usize) -> Vec<crate::types::Dim> {
    l.ty(v).dims.iter().enumerate().filter(|(k, _)| *k != axis).map(|(_, d)| d.clone()).collect()
}

/// How many parts end at or before an element, and how many elements these have.
fn skipped(l: &Local, parts: &[Value], axis: usize, from: i64) -> (usize, i64) {
    let (mut at, mut rows) = (0, 0);
    while let Some(n) = l.extent_of(parts[at], axis).filter(|n| rows + n <= from && at + 1 < parts.len()) {
        (at, rows) = (at + 1, rows + n);
    }
    (at, rows)
}

/// How many parts begin before an element, or may.
fn after(l: &Local, parts: &[Value], axis: usize, end: i64) -> usize {
    let mut rows = 0;
    for (at, &part) in parts.iter().enumerate() {
        if rows >= end {
            return at;
        }
        let Some(n) = l.extent_of(part, axis) else { return parts.len() };
        rows += n;
    }
    parts.len()
}

/// The elements along the first axis that an index with one item takes, of an axis of known extent.
fn taken(l: &Local, op: &Op, ins: &[Value]) -> Option<(i64, i64)> {
    let (n, all) = (l.extent_of(ins[0], 0)?, items(op, ins)?);
    match &all[..] {
        [(Item::At, own)] => {
            let k = l.int(own[0])?;
            (-n..n).contains(&k).then(|| (k + if k < 0 { n } else { 0 }, 1 + k + if k < 0 { n } else { 0 }))
        }
        [_] => Cut::of(op, ins)?.range(l),
        _ => None,
    }
}

/// Where what is read lies beside what was written, or within.
fn of_other_write(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let (Op::IndexWrite(write), before) = l.node(ins[0])? else { return None };
    let (mode, x, y) = (write.mode, before[0], before[1]);
    let place = Op::Index(Index { pattern: write.pattern.clone() });
    let of_place: Ins = std::iter::once(x).chain(before[2..].iter().copied()).collect();
    let ((a, b), (c, d)) = (taken(l, &place, &of_place)?, taken(l, op, ins)?);
    let args: Vec<_> = of_place.iter().map(|&v| l.g.arg(v)).collect();
    let place = place.def().infer(&args).ok()?.swap_remove(0);
    let row: Ins = std::iter::once(x).chain(ins[1..].iter().copied()).collect();
    if l.dtype(y) != l.dtype(x) {
        return None;
    }
    if d <= a || b <= c {
        let (own, dims) = (&l.ty(y).dims, &place.dims);
        let fits = own.len() <= dims.len() && own.iter().rev().zip(dims.iter().rev()).all(|(y, p)| y.is_one() || y == p);
        return (fits && l.safe(y)).then(|| l.make(op.clone(), &row))?;
    }
    let (is_row, of_row) = (items(op, ins)?[0].0 == Item::At, place.rank() < l.ty(x).rank());
    if c < a || d > b || l.ty(y).dims != place.dims || of_row && !is_row || !(mode == Write::Inc || l.safe(x)) {
        return None;
    }
    let written = match is_row {
        true if of_row => y,
        true => element(l, y, c - a, vec![])?,
        false => slice(l, y, c - a, d - a)?,
    };
    match mode {
        Write::Set => Some(written),
        Write::Inc => {
            let old = l.make(op.clone(), &row)?;
            l.elem(ElemOp::Add, &[old, written])
        }
    }
}

fn slice(l: &mut Local, x: Value, from: i64, to: i64) -> Option<Value> {
    let (start, end) = (l.bound(from), Some(l.g.int(to)));
    Cut { x, axis: 0, start, end }.make(l)
}

/// A part of a join as a slice: it is one, or a row with an axis put before it.
fn as_cut(l: &mut Local, part: Value, axis: usize) -> Option<Cut> {
    if let Some(cut) = Cut::made_by(l, part) {
        return Some(cut).filter(|cut| cut.axis == axis);
    }
    let (Op::Expand(expand), &[row]) = l.node(part)? else { return None };
    let whole = axis == 0 && expand.axes == [0];
    let (op, ins) = l.node(row).filter(|(op, _)| whole && matches!(op, Op::Index(_)))?;
    let ([(Item::At, _)], x) = (&items(op, ins)?[..], ins[0]) else { return None };
    let (k, next) = taken(l, op, ins)?;
    let (start, end) = (l.bound(k), Some(l.g.int(next)));
    Some(Cut { x, axis, start, end })
}

fn joined_again(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let Op::Join(Join { axis }) = *op else { return None };
    if !ins.iter().any(|&v| l.node(v).is_some_and(|(op, _)| op.moves())) {
        return None;
    }
    let mut parts: Vec<Value> = vec![];
    let mut open: Option<Cut> = None;
    for &v in ins {
        let cut = as_cut(l, v, axis);
        if let (Some(before), Some(next)) = (&open, &cut)
            && let Some(both) = both(l, before, next)
        {
            parts.pop();
            parts.push(both.make(l)?);
            open = Some(both);
            continue;
        }
        parts.push(v);
        open = cut;
    }
    match parts[..] {
        _ if parts.len() == ins.len() => None,
        [one] => Some(one),
        _ => l.make(op.clone(), &parts),
    }
}

/// Two slices as one, where the second begins where the first certainly ends.
fn both(l: &Local, before: &Cut, next: &Cut) -> Option<Cut> {
    let (end, start) = (before.end?, next.start?);
    let ends = next.end.map(|_| next.bound(l, next.end));
    let fits = match (before.bound(l, before.end), next.bound(l, next.start)) {
        (Some(b), Some(c)) if b >= 0 => b == c && before.from(l)? <= b && ends.is_none_or(|e| e.is_some_and(|e| e >= b)),
        _ => end == start && before.start.is_none() && next.end.is_none(),
    };
    (fits && before.x == next.x).then(|| Cut { end: next.end, ..before.clone() })
}
