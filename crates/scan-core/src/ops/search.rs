//! Search in a sorted vector.

use super::args::one;
use super::support::{exactly, is_nan, none};
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::{Array, DType, Element, Type, memory};
use crate::{bail, dispatch};

/// i64 of the shape of v: as many elements of a stand before each of v, NaN being above everything as in `sort`. Of a vector that is not
/// sorted some position is found, the same everywhere.
impl OpDef for SearchSorted {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [a, v] = exactly("searchsorted", ins)?;
        if a.ty.rank() != 1 {
            bail!(Type, "E0222", "`searchsorted` looks into a vector, got {}", a.ty);
        }
        Ok(one(v.ty.with_dtype(DType::I64)))
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let dtype = ins[0].dtype().promote(ins[1].dtype());
        let (a, v) = (ins[0].cast(dtype), ins[1].cast(dtype));
        let found = dispatch!(dtype, T => self.all::<T>(cx, a.as_slice(), v.as_slice())?);
        Ok(one(Array::new(v.shape(), found)))
    }

    fn vjp(&self, _: &mut Graph, _: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(none(2))
    }

    fn connected(&self, _: usize) -> bool {
        false
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        if ins[0].varies() { b.row_by_row(self.clone(), ins) } else { b.as_is(self.clone(), ins) }
    }
}

/// Elements between two looks at the clock.
const BLOCK: usize = 1 << 10;
/// Elements behind the last position that are looked at one by one, before the rest is halved.
const NEAR: usize = 8;

impl SearchSorted {
    /// The positions of all elements of v. Where these ascend, each search begins where the one before ended.
    fn all<T: Element>(&self, cx: &mut EvalCx, a: &[T], v: &[T]) -> Result<Vec<i64>> {
        let sorted = v.len() > 1 && a.windows(2).fold(true, |sorted, pair| sorted & in_order(pair[0], pair[1]));
        let mut out: Vec<i64> = memory::room(v.len());
        let (mut last, mut previous) = (0, None);
        for block in v.chunks(BLOCK) {
            for &x in block {
                let onward = sorted && previous.is_some_and(|previous| in_order(previous, x));
                last = if onward { self.onward(a, x, last) } else { self.position(a, x) };
                previous = Some(x);
                out.push(last as i64);
            }
            cx.worked(8 * block.len())?;
        }
        Ok(out)
    }

    /// Whether an element stands before the place of x.
    fn before<T: Element>(&self, element: T, x: T) -> bool {
        if self.right { in_order(element, x) } else { element < x || is_nan(x) && !is_nan(element) }
    }

    /// From a position that the one looked for is not before.
    fn onward<T: Element>(&self, a: &[T], x: T, from: usize) -> usize {
        let end = a.len().min(from + NEAR);
        match (from..end).find(|&k| !self.before(a[k], x)) {
            Some(k) => k,
            None => end + self.position(&a[end..], x),
        }
    }

    /// By halves: a kernel does the same, to the bit for vectors that are not sorted, too (`lower/along.rs`).
    fn position<T: Element>(&self, a: &[T], x: T) -> usize {
        let (mut at, mut left) = (0, a.len());
        while left > 1 {
            let half = left / 2;
            at += if self.before(a[at + half - 1], x) { half } else { 0 };
            left -= half;
        }
        at + usize::from(left == 1 && self.before(a[at], x))
    }
}

/// True for elements in the order of sorting, or equal.
#[inline]
fn in_order<T: Element>(before: T, x: T) -> bool {
    (before <= x) | is_nan(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    fn search(right: bool, a: &Array, v: &Array) -> Vec<i64> {
        apply(SearchSorted { right }, &[a.clone(), v.clone()]).to_i64_vec()
    }

    #[test]
    fn positions_are_numpys() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let a = Array::vector(&[-1.0, 0.0, 0.0, 2.5, inf, nan, nan]);
        let v = Array::new(&[2, 5], vec![-2.0, -1.0, -0.0, 1.0, 2.5, 3.0, inf, nan, -inf, 0.0]);
        assert_eq!(search(false, &a, &v), [0, 0, 1, 3, 3, 4, 4, 5, 0, 1]);
        assert_eq!(search(true, &a, &v), [0, 1, 3, 3, 4, 4, 5, 7, 0, 3]);
        assert_eq!(apply(SearchSorted { right: false }, &[a, Array::scalar(9i8)]), Array::scalar(4i64));
        assert_eq!(search(true, &Array::vector(&[1u8, 3]), &Array::vector(&[-1i32, 1, 2, 300])), [0, 1, 1, 2]);
        assert_eq!(search(false, &Array::zeros(DType::F32, &[0]), &Array::vector(&[1.0, nan])), [0, 0]);
        assert_eq!(search(false, &Array::vector(&[false, true]), &Array::vector(&[true])), [1]);
        assert_eq!(build_error(SearchSorted { right: false }, &[Array::scalar(1.0), Array::scalar(1.0)]).code, "E0222");
    }

    #[test]
    fn the_order_of_what_is_searched_for_does_not_matter() {
        let a = Array::vector(&(0..200).map(|k| f64::from(k / 3)).collect::<Vec<_>>());
        let v: Vec<f64> = (0..300).map(|k| f64::from(k * 7919 % 701) / 9.0 - 2.0).collect();
        let mut sorted = v.clone();
        sorted.sort_by(f64::total_cmp);
        for right in [false, true] {
            for values in [&v, &sorted] {
                let one_by_one: Vec<i64> = values.iter().map(|&x| search(right, &a, &Array::scalar(x))[0]).collect();
                assert_eq!(search(right, &a, &Array::vector(values)), one_by_one);
                let counted = |x: f64| a.to_f64_vec().iter().filter(|e| if right { **e <= x } else { **e < x }).count() as i64;
                assert_eq!(one_by_one, values.iter().map(|&x| counted(x)).collect::<Vec<_>>());
            }
        }
    }
}
