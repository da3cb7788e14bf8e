//! Where the temporaries of a step lie: those that are never alive together may share a place.

use super::mixed::{At, MixedLoop, STEP};

impl MixedLoop {
    /// Gives each temporary, of so many bytes, a place in the arena.
    pub(super) fn lay_out(&mut self, slots: &[usize]) {
        let mut last = vec![0; slots.len()];
        let mut first: Vec<Vec<usize>> = vec![];
        let mut seen = vec![false; slots.len()];
        for (k, item) in self.items.iter_mut().enumerate() {
            let mut begins = vec![];
            item.places(&mut |place| {
                if let At::Slot(s) = place.at {
                    last[s] = k;
                    if !std::mem::replace(&mut seen[s], true) {
                        begins.push(s);
                    }
                }
            });
            first.push(begins);
        }
        let end = self.items.len();
        for place in self.writes.iter().map(|w| &w.2).chain(&self.stop) {
            if let At::Slot(s) = place.at {
                last[s] = end;
            }
        }
        let mut arena = Arena { places: vec![None; slots.len()], end: 0, free: vec![] };
        arena.take(STEP, slots[STEP]);
        last[STEP] = end;
        for (k, begins) in first.iter().enumerate() {
            begins.iter().filter(|&&s| s != STEP).for_each(|&s| arena.take(s, slots[s]));
            for s in (0..slots.len()).filter(|&s| seen[s] && last[s] == k && s != STEP) {
                arena.give(s);
            }
        }
        self.places(&mut |place| {
            if let At::Slot(s) = place.at {
                place.at = At::Arena(arena.places[s].map_or(0, |p| p.0));
            }
        });
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
