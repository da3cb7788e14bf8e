//! Ops that do the same to every row of a batch: which axis of a result numbers the rows, where axes of the inputs do.
//!
//! ```text
//! x : f64[256, 3], its axis 0 numbers the rows        sum of axis 1 -> f64[256], axis 0
//! x + y, y : f64[3]                                   f64[256, 3], axis 0
//! x @ w, w : f64[3, 2]                                f64[256, 2], axis 0
//! ```

use crate::ir::Op;

/// An input: its extents, and which of its axes numbers the rows. Inputs without such an axis are the same for all rows.
#[derive(Clone, Copy, Debug)]
pub struct Mapped<'a> {
    /// Extents.
    pub shape: &'a [usize],
    /// The axis that numbers the rows.
    pub axis: Option<usize>,
}

impl Mapped<'_> {
    /// The axis that numbers the rows, counted from the last, which is 1.
    fn place(&self) -> Option<usize> {
        self.axis.map(|axis| self.shape.len() - axis)
    }
}

impl Op {
    /// The axis of the results, the first of which has these extents, that numbers the rows, for at least one input that has such an axis.
    /// `None` where rows may depend on each other, or where elements are only moved ([`Op::moved`]): of those it is seen where each comes from.
    pub fn mapped_axis(&self, ins: &[Mapped], out: &[usize]) -> Option<usize> {
        match self {
            Op::Elem(_) => broadcast(ins, out),
            Op::Cast(_) | Op::StopGradient(_) | Op::Hold(_) | Op::GradClip(_) | Op::GradTo(_) => ins[0].axis,
            Op::IfElse(_) if ins[0].axis.is_none() => broadcast(&ins[1..], out),
            Op::SumTo(_) => summed(ins[0], out),
            Op::Reduce(op) => reduced(ins[0], &op.axes, op.keepdims),
            Op::LogSumExp(op) => reduced(ins[0], &op.axes, op.keepdims),
            Op::ArgReduce(op) => reduced(ins[0], &[op.axis], false),
            Op::ExtremeMask(op) => reduced(ins[0], &op.axes, true),
            Op::Softmax(op) => reduced(ins[0], &[op.axis], true),
            Op::LogSoftmax(op) => reduced(ins[0], &[op.axis], true),
            Op::CumSum(op) => reduced(ins[0], &[op.axis], true),
            Op::CumProd(op) => reduced(ins[0], &[op.axis], true),
            Op::CumExtreme(op) => reduced(ins[0], &[op.axis], true),
            Op::ArgCumExtreme(op) => reduced(ins[0], &[op.axis], true),
            Op::Sort(op) => reduced(ins[0], &[op.axis], true),
            Op::ArgSort(op) => reduced(ins[0], &[op.axis], true),
            Op::MatMul(_) => product(ins[0], ins[1]),
            Op::Cholesky(_) | Op::Inverse(_) | Op::Det(_) | Op::SLogDet(_) => of_matrices(ins[0]),
            Op::Solve(_) => of_matrices(ins[0]).filter(|_| ins[0].axis == ins[1].axis && ins[0].shape.len() == ins[1].shape.len()),
            Op::SearchSorted(_) if ins[0].axis.is_none() => ins[1].axis,
            _ => None,
        }
    }
}

/// Operands aligned at their last axes: those that have rows have them in the same place, where no other is longer than 1.
fn broadcast(ins: &[Mapped], out: &[usize]) -> Option<usize> {
    let place = ins.iter().find_map(Mapped::place)?;
    let fits = |x: &Mapped| match x.place() {
        Some(own) => own == place,
        None => x.shape.len() < place || x.shape[x.shape.len() - place] == 1,
    };
    ins.iter().all(fits).then(|| out.len() - place)
}

/// What is left of an axis that is not among those that are reduced.
fn reduced(x: Mapped, axes: &[usize], keeps: bool) -> Option<usize> {
    let axis = x.axis.filter(|axis| !axes.contains(axis))?;
    Some(if keeps { axis } else { axis - axes.iter().filter(|&&a| a < axis).count() })
}

/// A sum to a shape that has the rows still.
fn summed(x: Mapped, out: &[usize]) -> Option<usize> {
    let place = x.place()?;
    let axis = out.len().checked_sub(place)?;
    (out[axis] == x.shape[x.axis?]).then_some(axis)
}

/// Rows of matrices on the left, or a matrix or a vector for each row. Columns on the right are none: how a product is added up depends on
/// whether there is more than one.
fn product(a: Mapped, b: Mapped) -> Option<usize> {
    let (of_a, of_b) = (a.shape.len().min(2), b.shape.len().min(2));
    let batch = (a.shape.len() - of_a).max(b.shape.len() - of_b);
    // Counted from the last axis of the batch.
    let place = |x: Mapped, own: usize| x.axis.map(|axis| (x.shape.len() - own).checked_sub(axis));
    match (place(a, of_a), place(b, of_b)) {
        // Axis 0 of a matrix that is multiplied as a whole.
        (Some(None | Some(0)), None) => (of_a == 2 && a.axis == Some(a.shape.len() - 2)).then_some(batch),
        (Some(Some(one)), None) => free(b, of_b, one).then(|| batch - one),
        (None, Some(Some(one))) if one > 0 => free(a, of_a, one).then(|| batch - one),
        (Some(Some(one)), Some(Some(other))) if one == other && one > 0 => Some(batch - one),
        _ => None,
    }
}

/// A matrix for each row.
fn of_matrices(x: Mapped) -> Option<usize> {
    x.axis.filter(|axis| axis + 2 < x.shape.len())
}

/// True for a factor that is the same along an axis of the batch.
fn free(x: Mapped, own: usize, place: usize) -> bool {
    let batch = x.shape.len() - own;
    batch < place || x.shape[batch - place] == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::op::*;
    use crate::scalar::ElemOp;

    fn of(op: impl Into<Op>, ins: &[(&[usize], Option<usize>)], out: &[usize]) -> Option<usize> {
        let ins: Vec<Mapped> = ins.iter().map(|&(shape, axis)| Mapped { shape, axis }).collect();
        op.into().mapped_axis(&ins, out)
    }

    #[test]
    fn operands_are_aligned_at_their_last_axes() {
        let add = |ins: &[(&[usize], Option<usize>)], out: &[usize]| of(Op::Elem(ElemOp::Add), ins, out);
        assert_eq!(add(&[(&[9, 3], Some(0)), (&[3], None)], &[9, 3]), Some(0));
        assert_eq!(add(&[(&[9, 3], Some(0)), (&[9, 1], Some(0))], &[9, 3]), Some(0));
        assert_eq!(add(&[(&[9], Some(0)), (&[3, 1], None)], &[3, 9]), Some(1));
        assert_eq!(add(&[(&[9], Some(0)), (&[9, 1], Some(0))], &[9, 9]), None, "an outer sum has rows in both axes");
        assert_eq!(add(&[(&[9, 3], Some(0)), (&[9, 1], None)], &[9, 3]), None, "one number for each row that is none of it");
    }

    #[test]
    fn reductions_keep_the_rows_that_they_do_not_reduce() {
        let sum = |axes: Vec<usize>, keepdims| Reduce { kind: ReduceKind::Sum, axes, keepdims };
        let x: &[(&[usize], Option<usize>)] = &[(&[2, 9, 3], Some(1))];
        assert_eq!(of(sum(vec![2], false), x, &[2, 9]), Some(1));
        assert_eq!(of(sum(vec![0], false), x, &[9, 3]), Some(0));
        assert_eq!(of(sum(vec![0, 2], true), x, &[1, 9, 1]), Some(1));
        assert_eq!(of(sum(vec![1], true), x, &[2, 1, 3]), None);
        assert_eq!(of(Softmax { axis: 1 }, x, &[2, 9, 3]), None);
        assert_eq!(of(SumTo {}, &[(&[9, 3], Some(0)), (&[9, 1], None)], &[9, 1]), Some(0));
        assert_eq!(of(SumTo {}, &[(&[9, 3], Some(0)), (&[3], None)], &[3]), None);
        assert_eq!(of(SumTo {}, &[(&[9, 3], Some(0)), (&[1, 3], None)], &[1, 3]), None);
    }

    #[test]
    fn products_of_rows_and_of_a_matrix_for_each_row() {
        let dot = |a: (&[usize], Option<usize>), b: (&[usize], Option<usize>)| of(MatMul {}, &[a, b], &[]);
        assert_eq!(dot((&[9, 3], Some(0)), (&[3, 2], None)), Some(0));
        assert_eq!(dot((&[9, 3], Some(0)), (&[3], None)), Some(0));
        assert_eq!(dot((&[5, 9, 3], Some(1)), (&[3, 2], None)), Some(1));
        assert_eq!(dot((&[9, 2, 3], Some(0)), (&[9, 3, 2], Some(0))), Some(0));
        assert_eq!(dot((&[9, 2, 3], Some(0)), (&[3, 2], None)), Some(0));
        assert_eq!(dot((&[2, 3], None), (&[9, 3, 1], Some(0))), Some(0));
        assert_eq!(dot((&[2, 3], None), (&[3, 9], Some(1))), None, "columns");
        assert_eq!(dot((&[2, 9], Some(1)), (&[9, 2], Some(0))), None, "summed over");
        assert_eq!(dot((&[9], Some(0)), (&[9, 2], None)), None, "summed over");
        assert_eq!(dot((&[9, 2, 3], Some(0)), (&[9, 3, 2], None)), None, "a matrix for each row that is none of it");
        assert_eq!(dot((&[9, 3], Some(0)), (&[9, 3, 2], Some(0))), None, "all rows by each matrix");
    }
}
