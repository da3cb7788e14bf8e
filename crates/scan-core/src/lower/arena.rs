//! Where the temporaries of a step lie: those that are never alive together may share a place.

use crate::plan::StepList;
use crate::plan::list::{At, Place, STEP, Temporary};

impl StepList {
    /// Gives each temporary, of so many bytes, a place in the memory of a step; those that are not named are left out.
    pub(super) fn lay_out(&mut self, slots: &[usize]) {
        let lives = self.renumbered(slots.len());
        let mut arena = Arena { places: vec![(0, 0); lives.len()], end: 0, free: vec![] };
        let mut begun = 0;
        for k in 0..=self.items.len() {
            while let Some(life) = lives.get(begun).filter(|life| life.first == k) {
                arena.take(begun, slots[life.slot]);
                begun += 1;
            }
            lives.iter().enumerate().filter(|(s, life)| life.last == k && *s != STEP).for_each(|(s, _)| arena.give(s));
        }
        self.temporaries = lives.iter().zip(arena.places).map(|(life, (at, _))| Temporary { at, bytes: slots[life.slot] }).collect();
    }

    /// Numbers the temporaries in the order in which parts name them, that of the step's number first.
    fn renumbered(&mut self, slots: usize) -> Vec<Life> {
        let end = self.items.len();
        let mut numbers = vec![None; slots];
        numbers[STEP] = Some(STEP);
        let mut lives = vec![Life { slot: STEP, first: 0, last: end }];
        let mut named = |place: &mut Place, k: usize| {
            let At::Slot(slot) = place.at else { return };
            let number = *numbers[slot].get_or_insert(lives.len());
            if number == lives.len() {
                lives.push(Life { slot, first: k, last: k });
            }
            lives[number].last = lives[number].last.max(k);
            place.at = At::Slot(number);
        };
        for (k, item) in self.items.iter_mut().enumerate() {
            item.places(&mut |place| named(place, k));
        }
        self.writes.iter_mut().map(|w| &mut w.2).chain(&mut self.stop).for_each(|place| named(place, end));
        lives
    }
}

/// A temporary, and the parts that name it first and last.
struct Life {
    slot: usize,
    first: usize,
    last: usize,
}

struct Arena {
    /// Offset and size of each temporary.
    places: Vec<(usize, usize)>,
    end: usize,
    /// Free places: offset and size.
    free: Vec<(usize, usize)>,
}

impl Arena {
    fn take(&mut self, slot: usize, bytes: usize) {
        let size = bytes.next_multiple_of(64).max(64);
        let best = (0..self.free.len()).filter(|&i| self.free[i].1 >= size).min_by_key(|&i| self.free[i].1);
        self.places[slot] = match best {
            Some(i) if self.free[i].1 <= 2 * size => self.free.swap_remove(i),
            _ => {
                self.end += size;
                (self.end - size, size)
            }
        };
    }
    fn give(&mut self, slot: usize) {
        self.free.push(self.places[slot]);
    }
}
