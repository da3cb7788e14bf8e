//! Typed ids and vectors indexed by them: no bare position crosses a function border.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A typed index.
///
/// ```
/// use scan_core::prelude::*;
///
/// let mut g = Graph::new();
/// let x = g.param(Type::scalar(DType::F64), Some("x"));
/// assert_eq!(x, Value::new(x.idx()));
/// ```
pub trait Id: Copy + Eq + std::hash::Hash + std::fmt::Debug {
    /// The id of position `idx`.
    fn new(idx: usize) -> Self;
    /// The position of this id.
    fn idx(self) -> usize;
}

/// Declares id types: `id!(/** doc */ NodeId);`.
#[macro_export]
macro_rules! id {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);
        impl $crate::base::Id for $name {
            fn new(idx: usize) -> Self { Self(idx as u32) }
            fn idx(self) -> usize { self.0 as usize }
        }
    )+};
}

/// A vector indexed by one id type only.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IdxVec<I, T> {
    items: Vec<T>,
    id: PhantomData<I>,
}

impl<I, T> Default for IdxVec<I, T> {
    fn default() -> Self {
        Self { items: Vec::new(), id: PhantomData }
    }
}

impl<I: Id, T> IdxVec<I, T> {
    /// An empty vector.
    pub fn new() -> Self {
        Self::default()
    }
    /// Appends an item and returns its id.
    #[inline]
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::new(self.items.len() - 1)
    }
    /// Makes room for so many more items.
    pub fn reserve(&mut self, more: usize) {
        self.items.reserve(more);
    }
    /// Number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// True without items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// Items in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }
    /// Items in order, to be changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }
    /// Drops the items that are not to be kept; those behind them move, and their ids with them.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.items.retain(keep);
    }
    /// Ids in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.items.len()).map(I::new)
    }
    /// Ids with items, in order.
    pub fn enumerate(&self) -> impl DoubleEndedIterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(i, t)| (I::new(i), t))
    }
    /// The item, if the id is in range.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.idx())
    }
}

impl<I: Id, T> Index<I> for IdxVec<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.items[id.idx()]
    }
}

impl<I: Id, T> IndexMut<I> for IdxVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.idx()]
    }
}

impl<I: Id, T> IntoIterator for IdxVec<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<I: Id, T> FromIterator<T> for IdxVec<I, T> {
    fn from_iter<It: IntoIterator<Item = T>>(items: It) -> Self {
        Self { items: items.into_iter().collect(), id: PhantomData }
    }
}
