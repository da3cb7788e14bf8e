//! Why a step does not come to its end.

use crate::base::Diagnostic;

/// Why a step did not come to its end.
pub(super) enum Halt {
    /// What an op reports.
    Failed(Box<Diagnostic>),
    /// A guard does not hold: the loop is left to the law.
    Refused,
}

impl From<Box<Diagnostic>> for Halt {
    fn from(e: Box<Diagnostic>) -> Halt {
        Halt::Failed(e)
    }
}

impl Halt {
    /// An error with what `add` adds to it.
    pub(super) fn map(self, add: impl FnOnce(Box<Diagnostic>) -> Box<Diagnostic>) -> Halt {
        if let Halt::Failed(e) = self { Halt::Failed(add(e)) } else { self }
    }
}
