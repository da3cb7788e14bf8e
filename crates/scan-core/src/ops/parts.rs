//! Large arrays element by element, part after part, between which the caller may stop it.

use crate::base::Result;
use crate::ir::EvalCx;
use crate::types::shape::{broadcast_shapes, count};
use crate::types::{Array, Extents};
use smallvec::SmallVec;

/// Elements of a part.
const PART: usize = 1 << 20;

/// What `run` gives for operands that broadcast together, element by element. `None` where it gives nothing.
///
/// # Errors
/// `E0201` where the operands do not broadcast; what `run` reports; an interruption.
pub(super) fn in_parts(cx: &mut EvalCx, ins: &[Array], run: impl Fn(&[Array]) -> Result<Option<Array>>) -> Result<Option<Array>> {
    // Broadcast together they have no more elements than this.
    if ins.iter().fold(1, |n, x| x.len().saturating_mul(n)) <= PART {
        return run(ins);
    }
    let shape = broadcast_shapes(&ins.iter().map(Array::shape).collect::<SmallVec<[&[usize]; 4]>>())?;
    let all = count(&shape);
    if all <= PART {
        return run(ins);
    }
    let plain = ins.iter().all(|x| x.len() == 1 || x.shape() == &shape[..]);
    let flat = |x: &Array| x.reshaped(&[all][usize::from(x.len() == 1)..]);
    let (ins, rows): (SmallVec<[Array; 3]>, usize) = match plain {
        true => (ins.iter().map(flat).collect(), all),
        false => (ins.iter().cloned().collect(), shape[0]),
    };
    let rank = if plain { 1 } else { shape.len() };
    let mut out: Option<Array> = None;
    let (mut lo, step) = (0, (PART / (all / rows)).max(1));
    while lo < rows {
        let hi = rows.min(lo + step);
        let cut = |x: &Array| if x.rank() == rank && x.shape()[0] == rows && rows > 1 { x.rows_shared(lo, hi) } else { x.clone() };
        let part: SmallVec<[Array; 3]> = ins.iter().map(cut).collect();
        let Some(made) = run(&part)? else { return Ok(None) };
        let of_rows: Extents = std::iter::once(rows).chain(made.shape()[1..].iter().copied()).collect();
        out.get_or_insert_with(|| Array::dirty(made.dtype(), &of_rows)).copy_rows(lo, &made, 0..hi - lo);
        cx.check_clock()?;
        lo = hi;
    }
    Ok(out.map(|out| out.reshaped(&shape)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::apply;
    use crate::scalar::ElemOp;
    use crate::types::DType;

    #[test]
    fn parts_are_those_of_the_whole() {
        let n = PART + 77;
        let (x, y) = (Array::vector(&(0..n).map(|i| i as f64).collect::<Vec<_>>()), Array::scalar(0.5));
        let sum = apply(crate::ir::Op::Elem(ElemOp::Add), &[x.clone(), y]);
        assert_eq!((sum.shape(), sum.as_slice::<f64>()[n - 1]), (&[n][..], n as f64 - 0.5));
        let (column, row) = (Array::vector(&[1.0, 2.0, 3.0]).reshaped(&[3, 1]), x.reshaped(&[1, n]));
        let table = apply(crate::ir::Op::Elem(ElemOp::Mul), &[column, row]);
        assert_eq!((table.shape(), table.as_slice::<f64>()[3 * n - 1]), (&[3, n][..], 3.0 * (n as f64 - 1.0)));
        let empty = apply(crate::ir::Op::Elem(ElemOp::Mul), &[x.reshaped(&[n, 1]), Array::zeros(DType::F64, &[1, 0])]);
        assert_eq!(empty.shape(), [n, 0]);
    }
}
