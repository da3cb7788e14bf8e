//! Copies of what nothing reads afterwards go: the copy and what it is made of are one memory.
//!
//! ```text
//! before  row(parent) → a;  loop over a;  a → b;  loop over b;  b → next row(parent)
//! after   loop over row(parent);  loop over row(parent)
//! ```
//!
//! So a loop in a step takes over the row that it begins with, a write by an index needs no row of its own, and a state whose new row is made
//! of the old one in such a way has one row alone.

use super::inner;
use crate::ir::{Scan, StateId};
use crate::kernel::LEVELS;
use crate::plan::list::{At, InnerList, Item, Place, Run, STEP, Work};
use crate::plan::{StepList, Window};
use crate::types::shape::count;
use rustc_hash::FxHashMap;

/// When a list names a memory: in which part first and last, and how often.
#[derive(Clone, Copy)]
struct Life {
    first: usize,
    last: usize,
    times: usize,
}

type Lives = FxHashMap<At, Life>;
/// How often memories are named.
type Times = FxHashMap<At, usize>;
/// What is now another memory.
type Merged = FxHashMap<At, At>;
/// Bytes of the memories that may be merged.
type Size<'a> = &'a dyn Fn(At) -> Option<usize>;

impl StepList {
    /// Lets the parts that make the rows of states write them where they belong, where no step sees the row before.
    pub(super) fn write_rows(&mut self, scan: &Scan, slots: &[usize], level: usize) {
        for k in 0..self.writes.len() {
            let (id, offset, place) = &self.writes[k];
            let (id, offset, at) = (*id, *offset, place.at);
            let whole = matches!(at, At::Slot(s) if place.first == 0 && slots[s] == place.bytes());
            let made = self.items.iter().any(|item| item.outs.iter().any(|out| out.at == at));
            if !whole || !made || scan.states[id].reads.contains(&offset) || inner::single(scan, id, level) {
                continue;
            }
            self.places(&mut |p| {
                if p.at == at {
                    p.at = At::Row(id, offset);
                }
            });
        }
        self.writes.retain(|(id, offset, place)| place.at != At::Row(*id, *offset));
    }

    /// Leaves out copies of temporaries, of so many bytes, and of rows that no later step reads.
    pub(super) fn coalesce(&mut self, scan: &Scan, slots: &[usize]) {
        let slot = |at| if let At::Slot(s) = at { slots.get(s).copied().filter(|_| s != STEP) } else { None };
        let mut all = Times::default();
        self.places(&mut |place| *all.entry(place.at).or_default() += 1);
        self.items.iter_mut().for_each(|item| in_loops(item, &mut all, &slot));
        let in_place = self.in_place.clone();
        let old = |id: StateId| !in_place[id.0 as usize] && scan.states[id].one_by_one();
        let free = |at| matches!(at, At::Slot(_)) || matches!(at, At::Row(id, 0) if old(id));
        let rows: Vec<usize> = self.windows.iter().map(Window::row_bytes).collect();
        let size = |at| if let At::Row(id, _) = at { rows.get(id.0 as usize).copied() } else { slot(at) };
        let tail = self.tail();
        let merged = merge(&mut self.items, &tail, &mut all, (&size, &free));
        self.places(&mut |place| place.at = memory(&merged, place.at));
    }

    /// Keeps one row alone of a state whose new row begins as a copy of the old one that nothing else reads afterwards.
    pub(super) fn coalesce_states(&mut self, scan: &Scan) {
        for (id, state) in scan.states.enumerate() {
            let (old, new, k) = (At::Row(id, 0), At::Row(id, 1), id.0 as usize);
            if !state.one_by_one() || self.in_place[k] || self.writes.iter().any(|w| w.0 == id) {
                continue;
            }
            let bytes = self.windows[k].row_bytes();
            let Some(at) = self.items.iter().position(|item| copied(item, &|_| Some(bytes)) == Some((old, new))) else { continue };
            let tail = self.tail();
            let lives = lives(&mut self.items, &tail);
            if lives[&old].last == at && lives[&new].first == at {
                self.items.remove(at);
                self.in_place[k] = true;
                self.places(&mut |place| place.at = if place.at == new { old } else { place.at });
            }
        }
    }

    /// What is read after the parts.
    fn tail(&self) -> Vec<At> {
        self.writes.iter().map(|w| &w.2).chain(&self.stop).map(|place| place.at).collect()
    }
}

/// The lists of the loops in a part. `all`: how often the whole list names a memory.
fn in_loops(item: &mut Item, all: &mut Times, size: Size) {
    let Work::For(inner) = &mut item.work else { return };
    inner.items.iter_mut().for_each(|item| in_loops(item, all, size));
    let tail: Vec<At> = inner.writes.iter().flatten().chain(&inner.stop).map(|place| place.at).collect();
    let merged = merge(&mut inner.items, &tail, all, (size, &|at| matches!(at, At::Slot(_))));
    inner.places(&mut |place| place.at = memory(&merged, place.at));
    for k in (0..inner.writes.len()).rev() {
        takes_over(inner, k, all, size);
    }
}

/// Lets a step write a row over the one before where it begins as a copy of that, which nothing else reads afterwards.
fn takes_over(inner: &mut InnerList, k: usize, all: &mut Times, size: Size) {
    let [new, row] = &inner.writes[k];
    let whole = [new, row].iter().all(|place| fills(place, count(&place.shape), size));
    let (new, row) = (new.at, row.at);
    let Some(at) = inner.items.iter().position(|item| copied(item, size) == Some((row, new))) else { return };
    let others = inner.writes.iter().enumerate().flat_map(|(j, [from, to])| [Some(from), Some(to).filter(|_| j != k)]);
    let tail: Vec<At> = others.flatten().chain(&inner.stop).map(|place| place.at).collect();
    let lives = lives(&mut inner.items, &tail);
    if whole && lives[&row].last == at && lives[&new].first == at && all[&new] == lives[&new].times {
        inner.items.remove(at);
        inner.writes.remove(k);
        inner.places(&mut |place| place.at = if place.at == new { row } else { place.at });
        // The copy and the write named both.
        all.insert(row, all[&row] + all[&new] - 4);
    }
}

/// Takes copies out of a list after which something else is read (`tail`), of memories that this list alone names. `free`: what nothing but
/// the list reads, so that it may be written over.
fn merge(items: &mut Vec<Item>, tail: &[At], all: &mut Times, (size, free): (Size, &dyn Fn(At) -> bool)) -> Merged {
    let (mut lives, mut merged, mut gone) = (lives(items, tail), Merged::default(), vec![false; items.len()]);
    for k in 0..items.len() {
        let Some((from, to)) = copied(&items[k], size) else { continue };
        let from = memory(&merged, from);
        let (a, b) = (lives[&from], lives[&to]);
        let own = a.times == all[&from] && b.times == all[&to];
        let row = [from, to].map(|at| matches!(at, At::Row(..)));
        if own && free(from) && row != [true; 2] && a.last == k && b.first == k {
            let both = Life { first: a.first, last: b.last, times: a.times + b.times - 2 };
            let (kept, other) = if row[0] { (from, to) } else { (to, from) };
            lives.insert(kept, both);
            all.insert(kept, both.times);
            merged.insert(other, kept);
            gone[k] = true;
        }
    }
    let mut gone = gone.into_iter();
    items.retain(|_| gone.next() != Some(true));
    merged
}

/// The memory that one has become.
fn memory(merged: &Merged, mut at: At) -> At {
    while let Some(&next) = merged.get(&at) {
        at = next;
    }
    at
}

fn lives(items: &mut [Item], tail: &[At]) -> Lives {
    let (mut lives, end) = (Lives::default(), items.len());
    let mut named = |at, k| {
        let life = lives.entry(at).or_insert(Life { first: k, last: k, times: 0 });
        (life.last, life.times) = (k, life.times + 1);
    };
    for (k, item) in items.iter_mut().enumerate() {
        item.places(&mut |place| named(place.at, k));
    }
    tail.iter().for_each(|&at| named(at, end));
    lives
}

/// The memories of a part that copies one as a whole into another.
fn copied(item: &Item, size: Size) -> Option<(At, At)> {
    let (Work::Move(runs), [from], [to]) = (&item.work, &item.ins[..], &item.outs[..]) else { return None };
    let [Run { input: Some(0), from: 0, to: 0, n, step: 1 }] = runs[..] else { return None };
    (from.at != to.at && from.dtype == to.dtype && fills(from, n, size) && fills(to, n, size)).then_some((from.at, to.at))
}

/// True where so many elements from a place on are its whole memory.
fn fills(place: &Place, n: usize, size: Size) -> bool {
    place.first == 0 && place.along == [0; LEVELS - 1] && size(place.at) == Some(n * place.dtype.size())
}
