//! What the passes did, and why not.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// One thing that a pass did or left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Name of the pass.
    pub pass: &'static str,
    /// The loop or operation that it is about; empty for the whole graph.
    pub place: String,
    /// True where something was changed.
    pub done: bool,
    /// What was done with its numbers, or why not.
    pub text: String,
}

/// What an optimisation did, for `explain`.
///
/// ```
/// use scan_core::prelude::*;
///
/// let f = function(&[], &[&Var::number(1.0).exp()]).compile()?;
/// assert_eq!(f.report().failed().count(), 0);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// In the order in which it happened.
    pub entries: Vec<Entry>,
    /// How often each rule was applied, under the name of its pass: `("algebra", "x · 1 → x")`.
    pub fired: BTreeMap<(&'static str, &'static str), usize>,
    /// How many nodes passes were given, all passes together: what their time grows with.
    pub walked: usize,
}

impl Report {
    /// How often the rules of a pass were applied, or what it did to loops.
    pub fn count(&self, pass: &str) -> usize {
        let rules: usize = self.fired.iter().filter(|((p, _), _)| *p == pass).map(|(_, n)| n).sum();
        rules + self.entries.iter().filter(|e| e.pass == pass && e.done).count()
    }
    /// The passes that were not able to finish, with the reason: type inference knew more afterwards than before, and found a
    /// fault of the program that a call would find.
    pub fn failed(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|e| !e.done && e.place == FAILED)
    }
}

/// The place of entries about a pass as a whole that gave up.
pub(crate) const FAILED: &str = "(pass)";

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            let what = if entry.done { "done" } else { "not done" };
            writeln!(f, "{}: {}: {what}: {}", entry.pass, entry.place, entry.text)?;
        }
        self.fired.iter().try_for_each(|((pass, rule), n)| writeln!(f, "{pass}: {rule}: {n} times"))
    }
}
