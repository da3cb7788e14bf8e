//! What devices keep for later calls: memory, and programs while somebody uses them.

use crate::backend::cpu::Refusal;
use crate::base::Result;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Things that nobody uses, each of a size and good for what its key says.
pub struct Pool<K, T> {
    free: Mutex<Vec<(K, u64, T)>>,
    most: (usize, u64),
}

impl<K: PartialEq, T> Pool<K, T> {
    /// A pool of so many things at most, and of so much in all, but for a single one.
    pub const fn new(count: usize, size: u64) -> Pool<K, T> {
        Pool { free: Mutex::new(vec![]), most: (count, size) }
    }
    /// The least one of a size in a range, with its size.
    pub fn take(&self, key: &K, sizes: RangeInclusive<u64>) -> Option<(u64, T)> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = free.iter().enumerate().filter(|(_, (k, size, _))| k == key && sizes.contains(size));
        let at = fits.min_by_key(|(_, (_, size, _))| *size)?.0;
        let (_, size, thing) = free.swap_remove(at);
        Some((size, thing))
    }
    /// Keeps one; what was kept for longest goes where there are too many.
    pub fn give(&self, key: K, size: u64, thing: T) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push((key, size, thing));
        while free.len() > self.most.0 || free.len() > 1 && free.iter().map(|f| f.1).sum::<u64>() > self.most.1 {
            free.remove(0);
        }
    }
    /// Drops all.
    pub fn clear(&self) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Programs of kernels, for as long as somebody has them.
pub struct Programs<K, T>(Mutex<FxHashMap<K, Weak<T>>>);

impl<K, T> Default for Programs<K, T> {
    fn default() -> Programs<K, T> {
        Programs(Mutex::default())
    }
}

impl<K: Eq + Hash, T> Programs<K, T> {
    /// The program of what a key tells of, made where there is none; why it could not be made.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn of(
        &self,
        key: K,
        make: impl FnOnce(&K) -> Result<std::result::Result<T, Refusal>>,
    ) -> Result<std::result::Result<Arc<T>, Refusal>> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = made.get(&key).and_then(Weak::upgrade) {
            return Ok(Ok(found));
        }
        let program = match make(&key)? {
            Ok(program) => Arc::new(program),
            Err(refusal) => return Ok(Err(refusal)),
        };
        made.retain(|_, p| p.strong_count() > 0);
        made.insert(key, Arc::downgrade(&program));
        Ok(Ok(program))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_keeps_so_much_and_gives_what_fits() {
        let pool = Pool::new(3, 100);
        (1..=4).for_each(|k| pool.give('a', 10 * k, k));
        assert_eq!(pool.take(&'a', 0..=15), None, "the first one went");
        assert_eq!((pool.take(&'b', 0..=99), pool.take(&'a', 25..=30)), (None, Some((30, 3))));
        pool.give('b', 200, 5);
        assert_eq!((pool.take(&'a', 0..=99), pool.take(&'b', 0..=200)), (None, Some((200, 5))), "one alone may be larger");
        pool.give('a', 50, 6);
        pool.give('a', 20, 7);
        assert_eq!(pool.take(&'a', 15..=60), Some((20, 7)), "the least that will do");
        pool.clear();
        assert_eq!(pool.take(&'a', 0..=99), None);
    }

    #[test]
    fn programs_live_as_long_as_they_are_used() {
        let programs = Programs::default();
        let made = |n: i32| programs.of('a', |_| Ok(Ok(n))).expect("no error").expect("a program");
        let first = made(1);
        assert_eq!(*made(2), 1, "found");
        drop(first);
        assert_eq!(*made(3), 3, "made again");
        let refused = programs.of('b', |_| Ok(Err(Refusal("no".into()))));
        assert!(refused.is_ok_and(|p| p.is_err()));
    }
}
