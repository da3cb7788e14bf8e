//! Where the user wrote a node: file, line and function, interned in one table.

use rustc_hash::FxHashMap;
use std::sync::{Arc, LazyLock, RwLock};

/// One place in the user's source. `Span::NONE` is "unknown".
///
/// ```
/// use scan_core::prelude::*;
///
/// let span = Span::new("model.txt", 12, "step");
/// assert_eq!(span.place().map(|p| p.line), Some(12));
/// assert_eq!(Span::NONE.place(), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(u32);

/// What a [`Span`] stands for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// Path of the source file, as the user's interpreter names it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Name of the enclosing function (`<module>` at top level).
    pub function: Arc<str>,
    /// The line itself, where the file need not be at hand.
    pub text: Option<Arc<str>>,
}

#[derive(Default)]
struct Table {
    places: Vec<Place>,
    ids: FxHashMap<Place, u32>,
}

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(Default::default);

impl Span {
    /// No known place.
    pub const NONE: Span = Span(0);

    /// Interns a place; equal places give equal spans.
    pub fn new(file: &str, line: u32, function: &str) -> Span {
        Span::of(Place { file: file.into(), line, function: function.into(), text: None })
    }

    /// The same with the text of the line, where it is known.
    pub fn quoted(file: &str, line: u32, text: Option<Arc<str>>) -> Span {
        Span::of(Place { file: file.into(), line, function: "".into(), text })
    }

    fn of(place: Place) -> Span {
        let mut table = TABLE.write().unwrap_or_else(|e| e.into_inner());
        if let Some(&id) = table.ids.get(&place) {
            return Span(id);
        }
        table.places.push(place.clone());
        let id = table.places.len() as u32;
        table.ids.insert(place, id);
        Span(id)
    }

    /// The place, or `None` for [`Span::NONE`].
    pub fn place(self) -> Option<Place> {
        let table = TABLE.read().unwrap_or_else(|e| e.into_inner());
        table.places.get((self.0 as usize).checked_sub(1)?).cloned()
    }

    /// The raw id, for callers that keep spans as integers.
    pub fn raw(self) -> u32 {
        self.0
    }

    /// The span of a raw id; unknown ids are [`Span::NONE`] when looked up.
    pub fn from_raw(id: u32) -> Span {
        Span(id)
    }

    /// `self`, or `other` where `self` is unknown.
    pub fn or(self, other: Span) -> Span {
        if self == Span::NONE { other } else { self }
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.place() {
            Some(p) => write!(f, "{}:{}", short(&p.file), p.line),
            None => write!(f, "?"),
        }
    }
}

/// The last component of a path, for one-line notes.
pub fn short(file: &str) -> &str {
    file.rsplit(['/', '\\']).next().unwrap_or(file)
}
