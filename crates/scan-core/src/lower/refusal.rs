//! Why something is not compiled.

use crate::base::Diagnostic;

/// Why something is not compiled, in words for `explain`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal(pub String);

impl From<Box<Diagnostic>> for Refusal {
    fn from(e: Box<Diagnostic>) -> Refusal {
        Refusal(e.title.clone())
    }
}

pub(crate) type Lowered<T> = Result<T, Refusal>;

/// A refusal.
pub(crate) fn refuse<T>(why: impl Into<String>) -> Lowered<T> {
    Err(Refusal(why.into()))
}
