//! Reductions of small arrays, in exactly the order of the law (`ops/reduce.rs`).

use super::nodes::Lowering;
use super::{Lowered, refuse};
use crate::ir::op::ReduceKind;
use crate::kernel::{Cmp, Reg};
use crate::scalar::ElemOp;
use crate::types::DType;

/// Eight strided partials (`k mod 8`), then a tree over them; longer lanes are halved by the law, and refused here.
const BLOCK: usize = 256;
const NO_ELEMENTS: &str = "an extreme of no elements";

impl Lowering<'_> {
    /// The elements of one lane reduced. `dtype` is that of the elements, already the accumulator's.
    pub(super) fn reduce(&mut self, kind: ReduceKind, dtype: DType, lane: &[Reg]) -> Lowered<Reg> {
        match kind {
            ReduceKind::Sum => self.fold(ElemOp::Add, dtype, lane),
            ReduceKind::Prod => self.fold(ElemOp::Mul, dtype, lane),
            ReduceKind::Any => self.chain(ElemOp::Or, lane, false),
            ReduceKind::All => self.chain(ElemOp::And, lane, true),
            ReduceKind::Max | ReduceKind::Min => self.extreme(kind == ReduceKind::Max, dtype, lane),
        }
    }

    /// As `fold` of the law. A partial begins with its unit; of the zeros that the law adds, one is enough to turn a sum of −0 into 0.
    fn fold(&mut self, op: ElemOp, dtype: DType, lane: &[Reg]) -> Lowered<Reg> {
        if lane.len() > BLOCK {
            return refuse(format!("a reduction over {} elements", lane.len()));
        }
        let unit = self.number(dtype, if op == ElemOp::Mul { 1.0 } else { 0.0 });
        if lane.is_empty() {
            return Ok(unit);
        }
        let mut part: [Option<Reg>; 8] = [None; 8];
        for (k, &x) in lane.iter().enumerate() {
            part[k % 8] = Some(match part[k % 8] {
                Some(sum) => self.elem(op, dtype, &[sum, x])?,
                None if k == 0 && op == ElemOp::Add && dtype.is_float() => self.elem(op, dtype, &[unit, x])?,
                None => x,
            });
        }
        Ok(self.joined(op, dtype, part)?.unwrap_or(unit))
    }

    /// The tree over eight partials, without those that there are not.
    pub(super) fn joined(&mut self, op: ElemOp, dtype: DType, [a, b, c, d, e, f, g, h]: [Option<Reg>; 8]) -> Lowered<Option<Reg>> {
        let mut join = |x: Option<Reg>, y: Option<Reg>| -> Lowered<Option<Reg>> {
            Ok(match (x, y) {
                (Some(x), Some(y)) => Some(self.elem(op, dtype, &[x, y])?),
                (x, y) => x.or(y),
            })
        };
        let (ae, cg, bf, dh) = (join(a, e)?, join(c, g)?, join(b, f)?, join(d, h)?);
        let (even, odd) = (join(ae, cg)?, join(bf, dh)?);
        join(even, odd)
    }

    /// An element of a product of matrices, of one with several columns or of one with a single one, from the factors of its terms.
    pub(super) fn product(&mut self, dtype: DType, terms: &[(Reg, Reg)], single: bool) -> Lowered<Reg> {
        let zero = self.number(dtype, 0.0);
        if !dtype.is_float() {
            return terms.iter().try_fold(zero, |sum, &(x, y)| {
                let product = self.elem(ElemOp::Mul, dtype, &[x, y])?;
                self.elem(ElemOp::Add, dtype, &[sum, product])
            });
        }
        if !single {
            return Ok(terms.iter().fold(zero, |sum, &(x, y)| self.builder.fma(x, y, sum)));
        }
        let mut part: [Option<Reg>; 8] = [None; 8];
        for (k, &(x, y)) in terms.iter().enumerate() {
            part[k % 8] = Some(self.builder.fma(x, y, part[k % 8].unwrap_or(zero)));
        }
        match self.joined(ElemOp::Add, dtype, part)? {
            // Where a partial is missing the law adds its zero, which turns a sum of −0 into 0.
            Some(sum) if terms.len() < 8 => self.elem(ElemOp::Add, dtype, &[zero, sum]),
            sum => Ok(sum.unwrap_or(zero)),
        }
    }

    fn chain(&mut self, op: ElemOp, lane: &[Reg], unit: bool) -> Lowered<Reg> {
        let unit = self.number(DType::Bool, f64::from(unit));
        lane.iter().try_fold(unit, |all, &x| self.elem(op, DType::Bool, &[all, x]))
    }

    /// The first extreme; the first NaN wins.
    fn extreme(&mut self, largest: bool, dtype: DType, lane: &[Reg]) -> Lowered<Reg> {
        let mut best = None;
        for &new in lane {
            best = Some(self.better(largest, dtype, best, new)?.0);
        }
        best.map_or_else(|| refuse(NO_ELEMENTS), Ok)
    }

    /// The position of the same, an i64.
    pub(super) fn extreme_at(&mut self, largest: bool, dtype: DType, lane: &[Reg]) -> Lowered<Reg> {
        let (mut best, mut at) = (None, None);
        for (k, &new) in lane.iter().enumerate() {
            let (x, stays) = self.better(largest, dtype, best, new)?;
            let here = self.builder.integer(DType::I64, k as i64);
            at = Some(at.map_or(here, |at| self.builder.select(stays, at, here)));
            best = Some(x);
        }
        at.map_or_else(|| refuse(NO_ELEMENTS), Ok)
    }

    /// The better of the best so far and a new element, and whether the best so far stays the best.
    pub(super) fn better(&mut self, largest: bool, dtype: DType, best: Option<Reg>, new: Reg) -> Lowered<(Reg, Reg)> {
        let Some(best) = best else { return Ok((new, self.builder.truth(false))) };
        let stays = self.stays(largest, dtype, best, new)?;
        Ok((self.builder.select(stays, best, new), stays))
    }

    /// Whether the best so far stays the best beside a later element: one that is not greater (or not less), or any where it is a NaN.
    pub(super) fn stays(&mut self, largest: bool, dtype: DType, best: Reg, new: Reg) -> Lowered<Reg> {
        let (low, high) = if largest { (new, best) } else { (best, new) };
        let stays = self.builder.cmp(Cmp::Le, low, high);
        if !dtype.is_float() {
            return Ok(stays);
        }
        let nan = self.builder.cmp(Cmp::Ne, best, best);
        self.elem(ElemOp::Or, DType::Bool, &[stays, nan])
    }
}
