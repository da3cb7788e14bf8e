//! Nodes by hash: how a graph finds the equal one. What is asked for is nearly always new, and a byte per place tells: these bytes stay in
//! the caches where the places of a large graph do not.

use super::graph::NodeId;
use crate::base::Id;

/// A table without deletion.
#[derive(Clone, Debug, Default)]
pub(super) struct Memo {
    /// Some bits of the hash, never 0; or 0, where there is nothing.
    tags: Vec<u8>,
    slots: Vec<(u32, u32)>,
    used: usize,
}

impl Memo {
    /// An empty table with room for so many nodes.
    pub(super) fn with_room(nodes: usize) -> Memo {
        let places = if nodes == 0 { 0 } else { (2 * nodes).next_power_of_two() };
        Memo { tags: vec![0; places], slots: vec![(0, 0); places], used: 0 }
    }
    /// The first node of this hash that fits.
    pub(super) fn find(&self, hash: u32, fits: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        let taken = self.places(hash).take_while(|at| self.tags[*at] != 0).filter(|at| self.tags[*at] == tag(hash));
        taken.map(|at| self.slots[at]).filter(|slot| slot.0 == hash).map(|slot| NodeId(slot.1)).find(|node| fits(*node))
    }
    /// Adds a node.
    pub(super) fn insert(&mut self, hash: u32, node: NodeId) {
        if 2 * (self.used + 1) > self.tags.len() {
            let larger = Memo::with_room(self.tags.len().max(8));
            let old = std::mem::replace(self, larger);
            let taken = old.tags.into_iter().zip(old.slots).filter(|(tag, _)| *tag != 0);
            taken.for_each(|(_, (hash, node))| self.put(hash, node));
        }
        self.put(hash, node.idx() as u32);
    }
    fn put(&mut self, hash: u32, node: u32) {
        if let Some(at) = self.places(hash).find(|at| self.tags[*at] == 0) {
            self.tags[at] = tag(hash);
            self.slots[at] = (hash, node);
            self.used += 1;
        }
    }
    /// Places from that of a hash on, around the table.
    fn places(&self, hash: u32) -> impl Iterator<Item = usize> + use<> {
        let n = self.tags.len();
        (0..n).map(move |step| (hash as usize + step) & (n - 1))
    }
}

/// The highest bits: the lowest ones tell the place.
fn tag(hash: u32) -> u8 {
    (hash >> 24) as u8 | 1
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
