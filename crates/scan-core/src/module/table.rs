//! What has names, in the order in which it came.

use rustc_hash::FxHashMap;

/// Values by name; each name once.
pub(super) struct Table<T> {
    rows: Vec<(String, T)>,
    places: FxHashMap<String, usize>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { rows: vec![], places: FxHashMap::default() }
    }
}

impl<T> Table<T> {
    /// Adds a value, and gives it; `None` where the name is taken.
    pub fn add(&mut self, name: &str, value: T) -> Option<&mut T> {
        if self.has(name) {
            return None;
        }
        self.places.insert(name.to_string(), self.rows.len());
        self.rows.push((name.to_string(), value));
        self.rows.last_mut().map(|row| &mut row.1)
    }
    pub fn get(&self, name: &str) -> Option<&T> {
        self.places.get(name).map(|&place| &self.rows[place].1)
    }
    pub fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rows.iter().map(|row| row.0.as_str())
    }
    pub fn values(&self) -> impl ExactSizeIterator<Item = &T> {
        self.rows.iter().map(|row| &row.1)
    }
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &T)> {
        self.rows.iter().map(|row| (row.0.as_str(), &row.1))
    }
}
