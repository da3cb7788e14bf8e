//! Ops along an axis of few elements, in exactly the order of the law (`ops/cumulate.rs`, `ops/extreme.rs`, `ops/softmax.rs`,
//! `ops/sort.rs`).

use super::nodes::Lowering;
use super::value::lanes_of;
use super::{Lowered, refuse};
use crate::ir::op::*;
use crate::ir::{Node, Value};
use crate::kernel::{Cmp, Reg};
use crate::scalar::ElemOp;
use crate::types::DType;
use crate::types::shape::{Extents, count};

/// Lanes of more elements are sorted by the evaluator: comparing all with all grows with the square.
const SORTED: usize = 16;
/// More comparisons than these are not made by searches.
const SEARCHED: usize = 256;
/// Lanes of more elements have their exponentials computed by the evaluator, several at a time.
const POWERS: usize = 16;

impl Lowering<'_> {
    /// The extents of a value.
    fn extents(&self, v: Value) -> Lowered<Extents> {
        Ok(Extents::from_slice(self.value(v)?.shape()))
    }

    /// What `lane` makes of each lane along these axes, as many elements as there were, where these were.
    fn each_lane(&mut self, v: Value, axes: &[usize], mut lane: impl FnMut(&mut Self, Vec<Reg>) -> Lowered<Vec<Reg>>) -> Lowered<Vec<Reg>> {
        self.elements_alone()?;
        let (shape, regs) = (self.extents(v)?, self.regs(v)?);
        let mut out = regs.clone();
        for places in lanes_of(&shape, axes) {
            let made = lane(self, places.iter().map(|&at| regs[at]).collect())?;
            places.into_iter().zip(made).for_each(|(at, r)| out[at] = r);
        }
        Ok(out)
    }

    /// The number of the first extreme of each lane; the first NaN wins.
    pub(super) fn arg_extreme(&mut self, op: &ArgReduce, node: &Node) -> Lowered<Vec<Reg>> {
        self.elements_alone()?;
        let dtype = self.graph().ty(node.ins[0]).dtype;
        let groups = self.groups(node.ins[0], &[op.axis])?;
        groups.into_iter().map(|lane| self.extreme_at(op.kind == Extreme::Max, dtype, &lane)).collect()
    }

    /// Which elements equal the extreme of their lane.
    pub(super) fn extreme_mask(&mut self, op: &ExtremeMask, node: &Node) -> Lowered<Vec<Reg>> {
        let dtype = self.graph().ty(node.ins[0]).dtype;
        let kind = if op.kind == Extreme::Max { ReduceKind::Max } else { ReduceKind::Min };
        self.each_lane(node.ins[0], &op.axes, |cx, lane| {
            let top = cx.reduce(kind, dtype, &lane)?;
            lane.iter().map(|&x| cx.elem(ElemOp::Eq, dtype, &[x, top])).collect()
        })
    }

    /// Running sums or products.
    pub(super) fn cumulated(&mut self, kind: ReduceKind, axis: usize, reverse: bool, node: &Node) -> Lowered<Vec<Reg>> {
        let dtype = self.graph().ty(node.outs[0]).dtype;
        let op = if kind == ReduceKind::Sum { ElemOp::Add } else { ElemOp::Mul };
        self.each_lane(node.ins[0], &[axis], |cx, lane| {
            let mut lane: Vec<Reg> = lane.into_iter().map(|r| cx.builder.convert(r, dtype)).collect();
            for (now, before) in steps(lane.len(), reverse) {
                lane[now] = cx.elem(op, dtype, &[lane[before], lane[now]])?;
            }
            Ok(lane)
        })
    }

    /// `y[t] = a[t]·y[t−1] + b[t]`.
    pub(super) fn recurrence(&mut self, op: &Recurrence, node: &Node) -> Lowered<Vec<Reg>> {
        let dtype = self.graph().ty(node.outs[0]).dtype;
        let mut factors = self.groups(node.ins[0], &[op.axis])?.into_iter();
        self.each_lane(node.ins[1], &[op.axis], |cx, mut y| {
            let Some(a) = factors.next().filter(|a| a.len() == y.len()) else { return refuse("operands of different shapes") };
            for (now, before) in steps(y.len(), op.reverse) {
                let grown = cx.elem(ElemOp::Mul, dtype, &[a[now], y[before]])?;
                y[now] = cx.elem(ElemOp::Add, dtype, &[grown, y[now]])?;
            }
            Ok(y)
        })
    }

    /// Running extremes, or with `places` their positions.
    pub(super) fn cumulated_extreme(&mut self, kind: Extreme, axis: usize, places: bool, node: &Node) -> Lowered<Vec<Reg>> {
        let dtype = self.graph().ty(node.ins[0]).dtype;
        self.each_lane(node.ins[0], &[axis], |cx, lane| {
            let (mut best, mut at, mut out) = (None, None, vec![]);
            for (k, &new) in lane.iter().enumerate() {
                let (x, stays) = cx.better(kind == Extreme::Max, dtype, best, new)?;
                best = Some(x);
                if places {
                    let here = cx.builder.integer(DType::I64, k as i64);
                    at = Some(at.map_or(here, |at| cx.builder.select(stays, at, here)));
                }
                out.push(at.unwrap_or(x));
            }
            Ok(out)
        })
    }

    /// Positions in a sorted vector, by halves as the law looks for them.
    pub(super) fn searched(&mut self, right: bool, node: &Node) -> Lowered<Vec<Reg>> {
        self.elements_alone()?;
        let [a, v] = [node.ins[0], node.ins[1]];
        let dtype = self.graph().ty(a).dtype.promote(self.graph().ty(v).dtype);
        let (a, v) = (self.regs_of(a, dtype)?, self.regs_of(v, dtype)?);
        if a.len() * v.len() > SEARCHED {
            return refuse(format!("a search for {} in {} elements", v.len(), a.len()));
        }
        v.into_iter()
            .map(|x| {
                // An element stands before x, or with `right` not behind it.
                let mut before = vec![];
                for &element in &a {
                    before.push(if right {
                        let behind = self.comes_before(x, element, dtype)?;
                        self.elem(ElemOp::Not, DType::Bool, &[behind])?
                    } else {
                        self.comes_before(element, x, dtype)?
                    });
                }
                Ok(self.position(&before, 0, before.len()))
            })
            .collect()
    }

    /// The position among so many elements from `at` on.
    fn position(&mut self, before: &[Reg], at: usize, left: usize) -> Reg {
        let here = self.builder.integer(DType::I64, at as i64);
        if left == 0 {
            return here;
        }
        let half = (left / 2).max(1);
        let (low, high) = match left {
            1 => (here, self.builder.integer(DType::I64, at as i64 + 1)),
            _ => (self.position(before, at, left - half), self.position(before, at + half, left - half)),
        };
        self.builder.select(before[at + half - 1], high, low)
    }

    /// Ascending, NaN last, stable: neighbours change places where the second belongs before the first. With `places`, the positions
    /// that sort the lane.
    pub(super) fn sorted(&mut self, axis: usize, places: bool, node: &Node) -> Lowered<Vec<Reg>> {
        let dtype = self.graph().ty(node.ins[0]).dtype;
        self.each_lane(node.ins[0], &[axis], |cx, lane| {
            if lane.len() > SORTED {
                return refuse(format!("{} elements in order", lane.len()));
            }
            let mut both: Vec<(Reg, Reg)> = vec![];
            for (k, x) in lane.into_iter().enumerate() {
                both.push((x, if places { cx.builder.integer(DType::I64, k as i64) } else { x }));
            }
            let n = both.len();
            for pass in 1..n {
                for k in 0..n - pass {
                    let (a, b) = (both[k], both[k + 1]);
                    let turned = cx.comes_before(b.0, a.0, dtype)?;
                    let pick = |cx: &mut Self, x: (Reg, Reg), y: (Reg, Reg)| {
                        (cx.builder.select(turned, x.0, y.0), cx.builder.select(turned, x.1, y.1))
                    };
                    (both[k], both[k + 1]) = (pick(cx, b, a), pick(cx, a, b));
                }
            }
            Ok(both.into_iter().map(|x| x.1).collect())
        })
    }

    /// The first or last of the positions that sort each lane.
    pub(super) fn topmost(&mut self, op: &ArgTopK, node: &Node) -> Lowered<Vec<Reg>> {
        let sorted = self.sorted(op.axis, true, node)?;
        let extents = Extents::from_slice(self.value(node.ins[0])?.shape());
        let kept = op.kept(extents[op.axis]);
        let after = count(&extents[op.axis + 1..]);
        let places = sorted.into_iter().enumerate();
        Ok(places.filter(|(at, _)| kept.contains(&(at / after % extents[op.axis]))).map(|(_, r)| r).collect())
    }

    /// Whether x stands before y wherever it stood: NaN is above everything.
    fn comes_before(&mut self, x: Reg, y: Reg, dtype: DType) -> Lowered<Reg> {
        let less = self.builder.cmp(Cmp::Lt, x, y);
        if !dtype.is_float() {
            return Ok(less);
        }
        let (number, nan) = (self.builder.cmp(Cmp::Eq, x, x), self.builder.cmp(Cmp::Ne, y, y));
        let above = self.elem(ElemOp::And, DType::Bool, &[number, nan])?;
        self.elem(ElemOp::Or, DType::Bool, &[less, above])
    }

    /// `log Σ exp(x)`.
    pub(super) fn log_sum_exp(&mut self, op: &LogSumExp, node: &Node) -> Lowered<Vec<Reg>> {
        self.elements_alone()?;
        let dtype = self.graph().ty(node.outs[0]).dtype;
        let groups = self.groups(node.ins[0], &op.axes)?;
        groups
            .into_iter()
            .map(|lane| {
                let p = self.powers(&lane, dtype)?;
                let log = self.elem(ElemOp::Log, dtype, &[p.sum])?;
                let sum = self.elem(ElemOp::Add, dtype, &[p.top, log])?;
                let finite = self.elem(ElemOp::IsFinite, dtype, &[p.top])?;
                let mut other = p.top;
                for &x in p.lane.iter().rev() {
                    let nan = self.builder.cmp(Cmp::Ne, x, x);
                    other = self.builder.select(nan, x, other);
                }
                Ok(self.builder.select(finite, sum, other))
            })
            .collect()
    }

    /// Shares of exponentials, or their logarithms.
    pub(super) fn softmax(&mut self, axis: usize, log: bool, node: &Node) -> Lowered<Vec<Reg>> {
        let dtype = self.graph().ty(node.outs[0]).dtype;
        self.each_lane(node.ins[0], &[axis], |cx, lane| {
            let p = cx.powers(&lane, dtype)?;
            let total = if log { cx.elem(ElemOp::Log, dtype, &[p.sum])? } else { p.sum };
            let (op, of) = if log { (ElemOp::Sub, &p.differences) } else { (ElemOp::Div, &p.powers) };
            of.iter().map(|&x| cx.elem(op, dtype, &[x, total])).collect()
        })
    }

    /// The exponentials of a lane, of which the largest is 1.
    fn powers(&mut self, lane: &[Reg], dtype: DType) -> Lowered<Powers> {
        if lane.len() > POWERS {
            return refuse(format!("exponentials of {} elements", lane.len()));
        }
        let lane: Vec<Reg> = lane.iter().map(|&x| self.builder.convert(x, dtype)).collect();
        let top = self.largest(&lane, dtype);
        let differences = lane.iter().map(|&x| self.elem(ElemOp::Sub, dtype, &[x, top])).collect::<Lowered<Vec<_>>>()?;
        let powers = differences.iter().map(|&x| self.elem(ElemOp::Exp, dtype, &[x])).collect::<Lowered<Vec<_>>>()?;
        let sum = self.reduce(ReduceKind::Sum, dtype, &powers)?;
        Ok(Powers { lane, top, differences, powers, sum })
    }

    /// As `Slices::largest`: the largest number, in parts of eight, whose order tells which of two zeros it is.
    fn largest(&mut self, x: &[Reg], dtype: DType) -> Reg {
        let least = self.number(dtype, f64::NEG_INFINITY);
        let mut greater = |m: Reg, x: Reg| {
            let above = self.builder.cmp(Cmp::Lt, m, x);
            self.builder.select(above, x, m)
        };
        let (whole, rest) = x.as_chunks::<8>();
        let mut part = [least; 8];
        for x in whole {
            (0..8).for_each(|l| part[l] = greater(part[l], x[l]));
        }
        let part = if whole.is_empty() { &[] } else { &part[..] };
        rest.iter().chain(part).fold(least, |m, &x| greater(m, x))
    }
}

/// What softmax and its kin have in common.
struct Powers {
    lane: Vec<Reg>,
    top: Reg,
    differences: Vec<Reg>,
    powers: Vec<Reg>,
    sum: Reg,
}

/// The positions of a lane of so many elements after its first, in order, each with the one before.
fn steps(n: usize, reverse: bool) -> impl Iterator<Item = (usize, usize)> {
    (1..n).map(move |k| if reverse { (n - 1 - k, n - k) } else { (k, k - 1) })
}
