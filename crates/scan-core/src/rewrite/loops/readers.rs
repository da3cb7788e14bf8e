//! Who reads the rows that a loop returns, and which of them.

use super::facts::integer;
use crate::base::Id;
use crate::ir::op::ReduceKind;
use crate::ir::{Graph, Node, NodeId, Op, Value};
use crate::ops::index::{Item, Pattern};

/// Rows of a buffer as a reader sees them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct View {
    /// So many rows in front are cut off.
    pub skip: usize,
    /// The last row comes first.
    pub flipped: bool,
}

/// What a reader wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    /// Some of the last so many rows of the buffer, at positions that count from its end.
    Last(usize),
    /// An extent.
    Extent(usize),
    /// The shape, to broadcast a scalar to it.
    Shape,
    /// The sum over rows (and perhaps over other axes).
    Sum,
}

/// A node that reads a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reader {
    /// The node; the view is its first input (second for [`Want::Shape`]).
    pub node: NodeId,
    /// What it sees.
    pub view: View,
    /// What it wants of it.
    pub want: Want,
}

/// Users of values.
pub struct Users<'g> {
    g: &'g Graph,
    of: Vec<Vec<NodeId>>,
    results: Vec<bool>,
}

impl<'g> Users<'g> {
    /// Live users.
    pub fn new(g: &'g Graph) -> Users<'g> {
        let live = g.needed(g.results());
        let (mut of, mut results) = (vec![vec![]; g.n_values()], vec![false; g.n_values()]);
        g.results().iter().for_each(|v| results[v.idx()] = true);
        for (id, node) in g.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
            for v in &node.ins {
                if of[v.idx()].last() != Some(&id) {
                    of[v.idx()].push(id);
                }
            }
        }
        Users { g, of, results }
    }

    /// The readers of a buffer of rows, and the nodes that only cut or flip rows for them; `Err` is the name of one that needs them all.
    ///
    /// # Errors
    /// See above.
    pub fn readers(&self, buffer: Value) -> Result<(Vec<Reader>, Vec<NodeId>), String> {
        let mut found = (vec![], vec![]);
        self.collect(buffer, View { skip: 0, flipped: false }, &mut found)?;
        Ok(found)
    }

    fn collect(&self, v: Value, view: View, found: &mut (Vec<Reader>, Vec<NodeId>)) -> Result<(), String> {
        if self.results[v.idx()] {
            return Err("all rows are returned".into());
        }
        for &id in &self.of[v.idx()] {
            let node = &self.g.nodes()[id];
            match self.reading(node, v, view) {
                Some(Reading::Reader(want)) => found.0.push(Reader { node: id, view, want }),
                Some(Reading::View(view)) => {
                    found.1.push(id);
                    self.collect(node.outs[0], view, found)?;
                }
                None => return Err(format!("`{}` reads all rows", node.op.name())),
            }
        }
        Ok(())
    }

    fn reading(&self, node: &Node, v: Value, view: View) -> Option<Reading> {
        let first_only = node.ins[0] == v && !node.ins[1..].contains(&v);
        match &node.op {
            Op::DimOf(d) => Some(Reading::Reader(Want::Extent(d.axis))),
            Op::BroadcastLike(_) if node.ins[0] != v && self.g.ty(node.ins[0]).rank() == 0 => Some(Reading::Reader(Want::Shape)),
            Op::Flip(f) if f.axis == 0 => Some(Reading::View(View { flipped: !view.flipped, ..view })),
            Op::Reduce(r) if r.kind == ReduceKind::Sum && r.axes.first() == Some(&0) => Some(Reading::Reader(Want::Sum)),
            Op::Index(op) if first_only => self.index(&Pattern::parse(&op.pattern).ok()?, &node.ins[1..], view),
            _ => None,
        }
    }

    /// Constant positions that count from the last row, or rows from a constant position on.
    fn index(&self, pattern: &Pattern, idxs: &[Value], view: View) -> Option<Reading> {
        let at = |k: usize| integer(self.g, *idxs.get(k)?);
        let from_end = |i: i64| match view.flipped {
            false => (i < 0).then_some(i.unsigned_abs() as usize),
            true => usize::try_from(i).ok().map(|i| i + 1),
        };
        let last = |k: usize| Some(Reading::Reader(Want::Last(k)));
        match *pattern.items.first()? {
            Item::At => last(from_end(at(0)?)?),
            Item::Slice { start, end, step } => {
                let (lo, hi) = (if start { Some(at(0)?) } else { None }, if end { Some(at(usize::from(start))?) } else { None });
                let cut = usize::try_from(lo.unwrap_or(0)).ok().filter(|_| !view.flipped && !end && step == 1 && pattern.items.len() == 1);
                if let Some(cut) = cut {
                    return Some(Reading::View(View { skip: view.skip + cut, ..view }));
                }
                match view.flipped {
                    false if lo.is_none_or(|n| n < 0) && hi.is_none_or(|n| n < 0) => {
                        let oldest = if step > 0 { lo? } else { hi? };
                        last(oldest.unsigned_abs() as usize)
                    }
                    true if step > 0 && lo.is_none_or(|n| n >= 0) => last(usize::try_from(hi?).ok()?),
                    _ => None,
                }
            }
        }
    }
}

enum Reading {
    Reader(Want),
    View(View),
}
