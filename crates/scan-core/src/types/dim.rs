//! Symbolic extents: a number, or an affine form over symbols.

use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// An unknown extent. Equal symbols are equal extents in every run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sym(pub u32);

impl Sym {
    /// A symbol that nothing else has.
    pub fn fresh() -> Sym {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Sym(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// One extent of a type: `constant + Σ coefficient · symbol`. Arithmetic saturates: no array reaches the limits of 64 bits.
///
/// ```
/// use scan_core::prelude::*;
///
/// let n = Dim::fresh();
/// assert_eq!(n.add(&Dim::known(1)).sub(&n), Dim::known(1));
/// assert!(Dim::known(2).conflicts(&Dim::known(3)));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Dim(Form);

/// Graphs hold an extent or more per value, so what is common is small and what is rare is shared. Each form has one variant only:
/// extents are compared by variant.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Form {
    Number(i64),
    /// One symbol with its coefficient, which is not 0, and nothing added.
    Symbol([(Sym, i64); 1]),
    /// Everything else: by symbol, coefficients are not 0.
    Sum(Arc<(Terms, i64)>),
}

type Terms = SmallVec<[(Sym, i64); 1]>;

impl Dim {
    /// A number.
    pub fn known(n: usize) -> Dim {
        Dim(Form::Number(n as i64))
    }
    /// A symbol.
    pub fn sym(s: Sym) -> Dim {
        Dim(Form::Symbol([(s, 1)]))
    }
    /// An extent of which nothing is known.
    pub fn fresh() -> Dim {
        Dim::sym(Sym::fresh())
    }
    /// The number, where it is known (negative forms are not extents).
    pub fn value(&self) -> Option<usize> {
        match self.0 {
            Form::Number(n) if n >= 0 => Some(n as usize),
            _ => None,
        }
    }
    /// True for the number 1, the extent that broadcasts.
    pub fn is_one(&self) -> bool {
        self.value() == Some(1)
    }
    /// The symbol, where the extent is exactly one symbol.
    pub fn as_sym(&self) -> Option<Sym> {
        match self.0 {
            Form::Symbol([(s, 1)]) => Some(s),
            _ => None,
        }
    }
    /// Terms and constant of the affine form.
    pub fn parts(&self) -> (&[(Sym, i64)], i64) {
        match &self.0 {
            Form::Number(n) => (&[], *n),
            Form::Symbol(term) => (term, 0),
            Form::Sum(sum) => (&sum.0, sum.1),
        }
    }
    /// An affine form from its parts.
    pub fn from_parts(terms: impl IntoIterator<Item = (Sym, i64)>, constant: i64) -> Dim {
        let mut sum = Terms::new();
        terms.into_iter().for_each(|term| add_term(&mut sum, term));
        Dim::of(sum, constant)
    }
    fn of(terms: Terms, constant: i64) -> Dim {
        match (&terms[..], constant) {
            ([], n) => Dim(Form::Number(n)),
            (&[term], 0) => Dim(Form::Symbol([term])),
            _ => Dim(Form::Sum(Arc::new((terms, constant)))),
        }
    }
    /// Sum of two forms.
    pub fn add(&self, other: &Dim) -> Dim {
        let ((left, c), (right, d)) = (self.parts(), other.parts());
        let mut sum = Terms::from_slice(left);
        right.iter().for_each(|&term| add_term(&mut sum, term));
        Dim::of(sum, c.saturating_add(d))
    }
    /// Difference of two forms.
    pub fn sub(&self, other: &Dim) -> Dim {
        self.add(&other.scale(-1))
    }
    /// The form times a number.
    pub fn scale(&self, k: i64) -> Dim {
        if k == 0 {
            return Dim::known(0);
        }
        let (terms, constant) = self.parts();
        Dim::of(terms.iter().map(|(s, c)| (*s, c.saturating_mul(k))).collect(), constant.saturating_mul(k))
    }
    /// The value under an assignment of symbols; `None` where one is missing.
    pub fn eval(&self, value: &dyn Fn(Sym) -> Option<i64>) -> Option<i64> {
        let (terms, constant) = self.parts();
        terms.iter().try_fold(constant, |sum, (s, c)| Some(sum.saturating_add(c.saturating_mul(value(*s)?))))
    }
    /// True where the two can never be equal: both numbers, and different.
    pub fn conflicts(&self, other: &Dim) -> bool {
        matches!((self.value(), other.value()), (Some(a), Some(b)) if a != b)
    }
}

fn add_term(terms: &mut Terms, (sym, coef): (Sym, i64)) {
    match terms.binary_search_by_key(&sym, |t| t.0) {
        Ok(i) => {
            terms[i].1 = terms[i].1.saturating_add(coef);
            if terms[i].1 == 0 {
                terms.remove(i);
            }
        }
        Err(i) if coef != 0 => terms.insert(i, (sym, coef)),
        Err(_) => {}
    }
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.value() {
            Some(n) => write!(f, "{n}"),
            None => write!(f, "?"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affine_forms_cancel() {
        let (n, m) = (Dim::fresh(), Dim::fresh());
        let sum = n.add(&m).add(&Dim::known(3));
        assert_eq!(sum.sub(&m).sub(&n).value(), Some(3));
        assert_eq!(n.add(&m), m.add(&n));
        assert_eq!(n.scale(2).eval(&|_| Some(5)), Some(10));
        assert_eq!(n.add(&Dim::known(1)).sub(&Dim::known(1)), n);
        assert_eq!(n.sub(&n), Dim::known(0));
        assert!(Dim::known(2).conflicts(&Dim::known(3)) && !n.conflicts(&Dim::known(3)));
    }
}
