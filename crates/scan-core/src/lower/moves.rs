//! Ops that only move elements. Where each element of the result comes from is asked of the law itself: the op is evaluated on
//! arrays that hold the numbers of their elements.

use crate::ir::{EvalCx, Op};
use crate::types::{Array, DType};

/// For each element of the result: which element of which moved input it is (inputs counted one after the other, from 1 on), or 0
/// for a zero that the op puts there. `None` where the op fails on these shapes.
pub(super) fn sources(op: &Op, ins: &[Source]) -> Option<(Vec<usize>, Array)> {
    let mut next = 1i64;
    let mut args: Vec<Array> = vec![];
    for source in ins {
        args.push(match source {
            Source::Moved(shape) => {
                let n = crate::types::shape::count(shape) as i64;
                next += n;
                Array::new(shape, (next - n..next).collect::<Vec<i64>>())
            }
            Source::Shape(shape) => Array::zeros(DType::I64, shape),
            Source::Given(array) => (*array).clone(),
        });
    }
    let out = op.evaluate(&mut EvalCx::new(), &mut args).ok()?.into_iter().next()?;
    Some((out.as_slice::<i64>().iter().map(|&i| i as usize).collect(), out))
}

/// An input as [`sources`] sees it.
pub(super) enum Source<'a> {
    /// Its elements are moved.
    Moved(&'a [usize]),
    /// Its shape alone matters.
    Shape(&'a [usize]),
    /// Its value tells what moves where.
    Given(&'a Array),
}
