//! Symbolic extents: a number, or an affine form over symbols.

use smallvec::SmallVec;
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
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Dim {
    terms: SmallVec<[(Sym, i64); 1]>,
    constant: i64,
}

impl Dim {
    /// A number.
    pub fn known(n: usize) -> Dim {
        Dim { terms: SmallVec::new(), constant: n as i64 }
    }
    /// A symbol.
    pub fn sym(s: Sym) -> Dim {
        Dim { terms: SmallVec::from_slice(&[(s, 1)]), constant: 0 }
    }
    /// An extent of which nothing is known.
    pub fn fresh() -> Dim {
        Dim::sym(Sym::fresh())
    }
    /// The number, where it is known (negative forms are not extents).
    pub fn value(&self) -> Option<usize> {
        (self.terms.is_empty() && self.constant >= 0).then_some(self.constant as usize)
    }
    /// True for the number 1, the extent that broadcasts.
    pub fn is_one(&self) -> bool {
        self.value() == Some(1)
    }
    /// The symbol, where the extent is exactly one symbol.
    pub fn as_sym(&self) -> Option<Sym> {
        match (&self.terms[..], self.constant) {
            ([(s, 1)], 0) => Some(*s),
            _ => None,
        }
    }
    /// Terms and constant of the affine form.
    pub fn parts(&self) -> (&[(Sym, i64)], i64) {
        (&self.terms, self.constant)
    }
    /// An affine form from its parts.
    pub fn from_parts(terms: impl IntoIterator<Item = (Sym, i64)>, constant: i64) -> Dim {
        terms.into_iter().fold(Dim { terms: SmallVec::new(), constant }, |d, t| d.plus_term(t))
    }
    /// Sum of two forms.
    pub fn add(&self, other: &Dim) -> Dim {
        let sum = Dim { terms: self.terms.clone(), constant: self.constant.saturating_add(other.constant) };
        other.terms.iter().fold(sum, |d, t| d.plus_term(*t))
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
        Dim { terms: self.terms.iter().map(|(s, c)| (*s, c.saturating_mul(k))).collect(), constant: self.constant.saturating_mul(k) }
    }
    /// The value under an assignment of symbols; `None` where one is missing.
    pub fn eval(&self, value: &dyn Fn(Sym) -> Option<i64>) -> Option<i64> {
        self.terms.iter().try_fold(self.constant, |sum, (s, c)| Some(sum.saturating_add(c.saturating_mul(value(*s)?))))
    }
    /// True where the two can never be equal: both numbers, and different.
    pub fn conflicts(&self, other: &Dim) -> bool {
        matches!((self.value(), other.value()), (Some(a), Some(b)) if a != b)
    }

    fn plus_term(mut self, (sym, coef): (Sym, i64)) -> Dim {
        match self.terms.binary_search_by_key(&sym, |t| t.0) {
            Ok(i) => {
                self.terms[i].1 = self.terms[i].1.saturating_add(coef);
                if self.terms[i].1 == 0 {
                    self.terms.remove(i);
                }
            }
            Err(i) if coef != 0 => self.terms.insert(i, (sym, coef)),
            Err(_) => {}
        }
        self
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
        assert!(Dim::known(2).conflicts(&Dim::known(3)) && !n.conflicts(&Dim::known(3)));
    }
}
