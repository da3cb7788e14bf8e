//! How much one launch of a device does, learned from how long launches took.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A launch is to take about so long: between two of them the caller may stop, and drivers end what takes seconds.
const LAUNCH: Duration = Duration::from_millis(100);

/// So much work, in whatever it is counted, takes as long as a launch is to take.
pub struct Portion {
    work: AtomicUsize,
    /// So many times as much at most the launch behind one may do.
    growth: f64,
}

impl Portion {
    /// What the first launch does.
    pub fn new(first: usize, growth: f64) -> Portion {
        Portion { work: AtomicUsize::new(first), growth }
    }
    /// What the next launch does.
    pub fn next(&self) -> usize {
        self.work.load(Ordering::Relaxed)
    }
    /// Learns from a launch.
    pub fn measured(&self, work: usize, took: Duration) {
        let before = self.next();
        if 2 * work < before && took < LAUNCH {
            return;
        }
        let wanted = work as f64 * LAUNCH.as_secs_f64() / took.as_secs_f64().max(1e-6);
        let bounded = wanted.clamp(before as f64 / 8.0, before as f64 * self.growth).min(1e15);
        self.work.store((bounded as usize).max(1), Ordering::Relaxed);
    }
}
