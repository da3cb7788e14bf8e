//! Nodes by hash: how a graph finds the equal one. Half as large as a table of the standard library, so that it stays in the caches.

use super::graph::NodeId;
use crate::base::Id;

/// A table without deletion. A slot holds a hash and a node's number plus one, or 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Memo {
    slots: Vec<u64>,
    used: usize,
}

impl Memo {
    /// An empty table with room for so many nodes.
    pub(super) fn with_room(nodes: usize) -> Memo {
        let slots = if nodes == 0 { 0 } else { (2 * nodes).next_power_of_two() };
        Memo { slots: vec![0; slots], used: 0 }
    }
    /// The first node of this hash that fits.
    pub(super) fn find(&self, hash: u32, fits: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        let slots = self.places(hash).map(|at| self.slots[at]).take_while(|slot| *slot != 0);
        slots.filter(|slot| slot >> 32 == u64::from(hash)).map(|slot| NodeId(slot as u32 - 1)).find(|node| fits(*node))
    }
    /// Adds a node.
    pub(super) fn insert(&mut self, hash: u32, node: NodeId) {
        if 2 * (self.used + 1) > self.slots.len() {
            let larger = Memo::with_room(self.slots.len().max(8));
            let old = std::mem::replace(self, larger);
            old.slots.into_iter().filter(|slot| *slot != 0).for_each(|slot| self.put(slot));
        }
        self.put(u64::from(hash) << 32 | (node.idx() as u64 + 1));
    }
    fn put(&mut self, slot: u64) {
        if let Some(at) = self.places((slot >> 32) as u32).find(|at| self.slots[*at] == 0) {
            self.slots[at] = slot;
            self.used += 1;
        }
    }
    /// Places from that of a hash on, around the table.
    fn places(&self, hash: u32) -> impl Iterator<Item = usize> + use<> {
        let n = self.slots.len();
        (0..n).map(move |step| (hash as usize + step) & (n - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_stand_side_by_side_through_growth() {
        let mut memo = Memo::default();
        assert_eq!(memo.find(7, |_| true), None);
        for n in 0..1000 {
            memo.insert(n % 10, NodeId(n));
        }
        for n in 0..1000 {
            assert_eq!(memo.find(n % 10, |node| node == NodeId(n)), Some(NodeId(n)));
            assert_eq!(memo.find(n % 10 + 10, |_| true), None);
        }
    }
}
