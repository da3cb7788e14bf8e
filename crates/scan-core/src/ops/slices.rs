//! Basic indices as views.

use super::index::{Item, Pattern, position, resolve_slice};
use crate::ir::{Coord, View, Viewed};
use smallvec::SmallVec;

impl Pattern {
    /// The elements that an index of known integers selects, as a view.
    pub(super) fn view(&self, of: &Viewed) -> Option<View> {
        let idxs = (1..=self.inputs()).map(|k| (of.integer)(k)).collect::<Option<SmallVec<[i64; 4]>>>()?;
        let mut rest = idxs.into_iter();
        let (mut view, mut to) = (View::default(), 0);
        for (axis, &extent) in of.from.iter().enumerate() {
            view.0.push(match self.items.get(axis).copied().unwrap_or(Item::ALL) {
                Item::At => Coord::at(position(rest.next()?, axis, extent).ok()? as isize),
                Item::Slice { start, end, step } => {
                    let lo = if start { rest.next() } else { None };
                    let hi = if end { rest.next() } else { None };
                    let (first, len) = resolve_slice(extent, lo, hi, step);
                    to += 1;
                    if len == 1 {
                        Coord::at(first as isize)
                    } else {
                        Coord { axis: Some(to - 1), start: first as isize, step: step as isize }
                    }
                }
            });
        }
        Some(view)
    }
}
