//! How many bytes arrays take, for those who want to know: what profiles tell of memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// How many watches there are. Where there are none, nothing is counted.
static WATCHES: AtomicUsize = AtomicUsize::new(0);
static COUNTED: Mutex<Counted> = Mutex::new(Counted { live: 0, open: Vec::new(), made: 0 });

struct Counted {
    /// Bytes made less bytes given up since the first of the open watches began.
    live: isize,
    open: Vec<Open>,
    made: u64,
}

struct Open {
    id: u64,
    before: isize,
    most: isize,
}

fn counted() -> MutexGuard<'static, Counted> {
    COUNTED.lock().unwrap_or_else(|e| e.into_inner())
}

/// From its making on, the most bytes that the arrays of this process took at a time, above those that they took then. Memory that is kept
/// for later arrays is not counted, and neither is memory of others that arrays read where it lies.
pub struct Watch(u64);

impl Watch {
    /// Begins to count.
    pub fn start() -> Watch {
        let mut counted = counted();
        let (id, before) = (counted.made, counted.live);
        counted.made += 1;
        counted.open.push(Open { id, before, most: before });
        WATCHES.fetch_add(1, Ordering::Relaxed);
        Watch(id)
    }
    /// The most bytes so far.
    pub fn peak(&self) -> usize {
        let counted = counted();
        counted.open.iter().find(|open| open.id == self.0).map_or(0, |open| (open.most - open.before).cast_unsigned())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut counted = counted();
        counted.open.retain(|open| open.id != self.0);
        if counted.open.is_empty() {
            counted.live = 0;
        }
        WATCHES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Memory of an array was made, or given up: it has so many bytes instead of `before`.
pub fn changed(before: usize, bytes: usize) {
    if WATCHES.load(Ordering::Relaxed) > 0 {
        count(bytes.cast_signed() - before.cast_signed());
    }
}

#[cold]
fn count(more: isize) {
    let mut counted = counted();
    counted.live += more;
    let live = counted.live;
    counted.open.iter_mut().for_each(|open| open.most = open.most.max(live));
}

#[cfg(test)]
mod tests {
    use super::Watch;
    use crate::types::{Array, DType};

    /// Other tests may make arrays meanwhile, but few of them as large as these.
    #[test]
    fn watches_see_the_most_at_a_time() {
        const BYTES: usize = 1 << 27;
        let make = || Array::zeros(DType::F64, &[BYTES / 8]);
        // Memory begins at a line of the cache, and so has a few bytes more.
        let about = |peak: usize, arrays: usize| (peak + BYTES / 2) / BYTES == arrays;
        let before = make();
        let outer = Watch::start();
        let second = make();
        let inner = Watch::start();
        assert!(about(outer.peak(), 1) && about(inner.peak(), 0));
        drop((before, second));
        let shared = make();
        let copy = shared.clone();
        assert!(about(outer.peak(), 1) && about(inner.peak(), 0), "what was given up is given up");
        drop(shared);
        let data = copy.into_vec::<f64>();
        let mut grown = Array::new(&[data.len()], data);
        assert!(about(inner.peak(), 0), "the same memory all along");
        // One array where there were two, of four times the size.
        grown.resize_rows(BYTES / 2);
        assert!(about(outer.peak(), 3) && about(inner.peak(), 2), "{} {}", outer.peak(), inner.peak());
    }
}
