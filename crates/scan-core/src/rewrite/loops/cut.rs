//! A minimum cut: the cheapest way to have some values, each of which may be kept or computed from others.
//!
//! Each value has two places: *made* from its inputs, and *there*. Keeping a value costs one price, making it another; what is made
//! needs its inputs to be there. Places on the side of the sink are what is wanted: an arc that leads there from the other side is
//! paid for. (Dinic's algorithm.)

use std::collections::VecDeque;

/// More than anything costs.
pub const NEVER: u64 = 1 << 50;

/// Values with their prices.
#[derive(Default)]
pub struct Cut {
    arcs: Vec<Arc>,
    /// Arcs by the place where they begin.
    from: Vec<Vec<usize>>,
}

struct Arc {
    to: usize,
    room: u64,
}

const SOURCE: usize = 0;
const SINK: usize = 1;

impl Cut {
    /// No values yet.
    pub fn new() -> Cut {
        Cut { arcs: vec![], from: vec![vec![], vec![]] }
    }
    /// Adds a value that costs so much to keep and so much to make from others.
    pub fn value(&mut self, keep: u64, make: u64, ins: &[usize]) -> usize {
        let made = self.from.len();
        self.from.extend([vec![], vec![]]);
        self.arc(made, made + 1, keep);
        self.arc(SOURCE, made, make);
        ins.iter().for_each(|&at| self.arc(Self::there(at), made, NEVER));
        made / 2 - 1
    }
    /// A value must be there.
    pub fn want(&mut self, at: usize) {
        self.arc(Self::there(at), SINK, NEVER);
    }
    /// True per value that is kept.
    pub fn kept(mut self) -> Vec<bool> {
        while let Some(levels) = self.levels() {
            let mut next = vec![0; self.from.len()];
            while self.push(SOURCE, NEVER, &levels, &mut next) > 0 {}
        }
        let reached = self.reached();
        (0..self.from.len() / 2 - 1).map(|at| reached[Self::there(at) - 1] && !reached[Self::there(at)]).collect()
    }
    fn there(at: usize) -> usize {
        2 * at + 3
    }
    fn arc(&mut self, from: usize, to: usize, room: u64) {
        self.from[from].push(self.arcs.len());
        self.arcs.push(Arc { to, room });
        self.from[to].push(self.arcs.len());
        self.arcs.push(Arc { to: from, room: 0 });
    }
    /// Distances from the source; `None` where nothing reaches the sink.
    fn levels(&self) -> Option<Vec<usize>> {
        let mut levels = vec![usize::MAX; self.from.len()];
        levels[SOURCE] = 0;
        let mut queue = VecDeque::from([SOURCE]);
        while let Some(at) = queue.pop_front() {
            for arc in self.from[at].iter().map(|&a| &self.arcs[a]).filter(|a| a.room > 0) {
                if levels[arc.to] == usize::MAX {
                    levels[arc.to] = levels[at] + 1;
                    queue.push_back(arc.to);
                }
            }
        }
        (levels[SINK] != usize::MAX).then_some(levels)
    }
    /// Pushes a flow along shortest ways; how much. The depth is that of the step's graph.
    fn push(&mut self, at: usize, most: u64, levels: &[usize], next: &mut [usize]) -> u64 {
        if at == SINK {
            return most;
        }
        while let Some(&arc) = self.from[at].get(next[at]) {
            let Arc { to, room } = self.arcs[arc];
            if room > 0 && levels[to] == levels[at] + 1 {
                let pushed = self.push(to, most.min(room), levels, next);
                if pushed > 0 {
                    self.arcs[arc].room -= pushed;
                    self.arcs[arc ^ 1].room += pushed;
                    return pushed;
                }
            }
            next[at] += 1;
        }
        0
    }
    fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.from.len()];
        let mut stack = vec![SOURCE];
        while let Some(at) = stack.pop() {
            if !std::mem::replace(&mut reached[at], true) {
                stack.extend(self.from[at].iter().map(|&a| &self.arcs[a]).filter(|a| a.room > 0).map(|a| a.to));
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two cheap values of one that is expensive to make: that one is kept, until the two are cheaper to keep.
    #[test]
    fn the_cheapest_way_is_found() {
        for (keep, want) in [(10, [true, false, false]), (50, [false, true, true])] {
            let mut cut = Cut::new();
            let product = cut.value(keep, 1000, &[]);
            let a = cut.value(20, 1, &[product]);
            let b = cut.value(20, 1, &[product]);
            cut.want(a);
            cut.want(b);
            assert_eq!(cut.kept(), want);
        }
    }

    #[test]
    fn what_nobody_wants_is_not_kept() {
        let mut cut = Cut::new();
        let a = cut.value(1, 5, &[]);
        cut.value(1, 5, &[a]);
        cut.want(a);
        assert_eq!(cut.kept(), [true, false]);
    }

    #[test]
    fn what_costs_nothing_is_made() {
        let mut cut = Cut::new();
        let a = cut.value(NEVER, 0, &[]);
        let b = cut.value(7, 3, &[a]);
        cut.want(b);
        assert_eq!(cut.kept(), [false, false]);
    }
}
