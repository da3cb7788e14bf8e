//! Arrays in memory that a caller lends for the time of a call.

use super::{Array, Element};
use std::marker::PhantomData;
use std::sync::Arc;

/// Memory that lives for `'a`, lent to arrays that are all gone when [`lend`] returns.
pub struct Loan<'a> {
    /// Held by each array as well.
    out: Arc<()>,
    /// Neither a longer nor a shorter life than that of the memory.
    lender: PhantomData<fn(&'a ()) -> &'a ()>,
}

/// Runs what may make arrays of memory of the caller's. Such an array may be cloned and handed to other threads, but no clone may be left when
/// `body` returns or unwinds: what outlives a call is made the engine's own before ([`Array::make_owned`]), and a caller must not be given
/// code that keeps arguments (`Function::call_into` copies where ops are the user's, or run on a device).
///
/// An array that is left ends the process: the memory may be gone as soon as this returns, and no error tells that to who holds the array.
pub fn lend<'a, R>(body: impl FnOnce(&Loan<'a>) -> R) -> R {
    let loan = Loan { out: Arc::new(()), lender: PhantomData };
    body(&loan)
}

impl<'a> Loan<'a> {
    /// An array that reads these elements where they lie. Panics where their number is not that of the shape.
    pub fn array<T: Element>(&self, shape: &[usize], elements: &'a [T]) -> Array {
        Array::foreign(shape, Lent { first: elements.as_ptr(), n: elements.len(), _out: self.out.clone() })
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        if Arc::get_mut(&mut self.out).is_none() {
            eprintln!("rscan: an array still reads memory that was lent for one call");
            std::process::abort();
        }
    }
}

/// Elements that stay where they are as long as the loan lasts.
struct Lent<T> {
    first: *const T,
    n: usize,
    _out: Arc<()>,
}

// SAFETY: only read, through shared references alone, as those that it was made of; elements are plain numbers.
unsafe impl<T: Element> Send for Lent<T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for Lent<T> {}

impl<T: Element> AsRef<[T]> for Lent<T> {
    fn as_ref(&self) -> &[T] {
        // SAFETY: made of a slice that is borrowed for `'a`. `'a` outlives the call of `lend`, which does not return while this lives: it
        // holds `_out`, and a loan that others hold a part of when it is dropped ends the process.
        unsafe { std::slice::from_raw_parts(self.first, self.n) }
    }
}

#[cfg(test)]
mod tests {
    use super::lend;
    use crate::types::View;

    #[test]
    fn arrays_of_a_loan_read_where_the_memory_lies_and_own_what_they_keep() {
        let memory = vec![1.0, 2.0, 3.0];
        let kept = lend(|loan| {
            let array = loan.array(&[3], &memory);
            assert_eq!(array.as_slice::<f64>().as_ptr(), memory.as_ptr());
            let part = array.rows_shared(1, 3);
            assert!(part.data().is_foreign());
            (part.owned(), array.owned())
        });
        drop(memory);
        assert_eq!((kept.0.to_f64_vec(), kept.1.to_f64_vec()), (vec![2.0, 3.0], vec![1.0, 2.0, 3.0]));
    }

    /// A plan may keep the integers that its extents hang on, after the call.
    #[test]
    fn arguments_of_few_bytes_are_copied() {
        let memory = vec![1.0; 128];
        let lent = lend(|loan| [View::from(&memory[..]), View::from(&memory[1..])].map(|view| view.lent(loan).data().is_foreign()));
        assert_eq!(lent, [true, false]);
        let number = 3i64;
        assert_eq!(lend(|loan| View::from(&number).lent(loan)).item_i64(), Some(3), "it outlives the loan");
    }

    #[test]
    fn a_loan_ends_where_its_call_unwinds() {
        let memory = [1.0, 2.0];
        let unwound = std::panic::catch_unwind(|| {
            lend(|loan| {
                let array = loan.array(&[2], &memory);
                assert!(array.len() == 3, "unwinds");
            });
        });
        assert!(unwound.is_err());
    }
}
