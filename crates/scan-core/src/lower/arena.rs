//! Where the temporaries of a step lie: those that are never alive together may share a place.

use super::mixed::{At, MixedLoop, Place, STEP};

impl MixedLoop {
    /// Gives each temporary, of so many bytes, a place in the arena.
    pub(super) fn lay_out(&mut self, slots: &[usize]) {
        let mut last = vec![0; slots.len()];
        let mut used = |place: &Place, at: usize| {
            if let At::Slot(s) = place.at {
                last[s] = at;
            }
        };
        for (k, item) in self.items.iter().enumerate() {
            item.ins.iter().chain(&item.outs).for_each(|p| used(p, k));
        }
        let end = self.items.len();
        self.writes.iter().map(|w| &w.2).chain(&self.stop).for_each(|p| used(p, end));
        let mut arena = Arena { places: vec![None; slots.len()], end: 0, free: vec![] };
        arena.take(STEP, slots[STEP]);
        last[STEP] = end;
        for (k, item) in self.items.iter().enumerate() {
            for place in &item.outs {
                if let At::Slot(s) = place.at
                    && arena.places[s].is_none()
                {
                    arena.take(s, slots[s]);
                }
            }
            for s in (0..slots.len()).filter(|&s| last[s] == k && s != STEP) {
                arena.give(s);
            }
        }
        let settle = |place: &mut Place| {
            if let At::Slot(s) = place.at {
                place.at = At::Arena(arena.places[s].map_or(0, |p| p.0));
            }
        };
        self.items.iter_mut().flat_map(|i| i.ins.iter_mut().chain(&mut i.outs)).for_each(settle);
        self.writes.iter_mut().map(|w| &mut w.2).chain(&mut self.stop).for_each(settle);
        self.arena = arena.end;
    }
}

struct Arena {
    /// Offset and size of each temporary.
    places: Vec<Option<(usize, usize)>>,
    end: usize,
    /// Free places: offset and size.
    free: Vec<(usize, usize)>,
}

impl Arena {
    fn take(&mut self, slot: usize, size: usize) {
        let size = size.next_multiple_of(64).max(64);
        let best = (0..self.free.len()).filter(|&i| self.free[i].1 >= size).min_by_key(|&i| self.free[i].1);
        self.places[slot] = Some(match best {
            Some(i) if self.free[i].1 <= 2 * size => self.free.swap_remove(i),
            _ => {
                self.end += size;
                (self.end - size, size)
            }
        });
    }
    fn give(&mut self, slot: usize) {
        self.free.extend(self.places[slot]);
    }
}
