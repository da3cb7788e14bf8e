//! What is certain of the integers of a step: between which numbers they lie, and which of them is the larger one.

use crate::ir::{Graph, Op, Value};
use crate::scalar::ElemOp;
use crate::types::{Array, DType};
use rustc_hash::FxHashMap;

/// Integers beyond are not spoken of, so that sums of some do not overflow.
const LIMIT: i64 = 1 << 42;

/// An integer of the step, or 0, and a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Sum {
    of: Option<Value>,
    more: i64,
}

impl Sum {
    /// A number alone.
    pub fn number(n: i64) -> Sum {
        Sum { of: None, more: n }
    }
    /// The integer of the step.
    pub fn of(self) -> Option<Value> {
        self.of
    }
    /// The number, if it is one.
    pub fn constant(self) -> Option<i64> {
        self.of.is_none().then_some(self.more)
    }
}

/// Between which numbers integers of a graph lie, both included.
#[derive(Default)]
pub(super) struct Ranges {
    known: FxHashMap<Value, (i64, i64)>,
    /// Those of which one of the numbers is that of all integers.
    half: FxHashMap<Value, (i64, i64)>,
    sums: FxHashMap<Value, Sum>,
    values: FxHashMap<Sum, Value>,
}

impl Ranges {
    /// Tells that an integer lies between two numbers.
    pub fn tell(&mut self, v: Value, range: (i64, i64)) {
        let within = -LIMIT < range.0 && range.1 < LIMIT;
        if within { &mut self.known } else { &mut self.half }.insert(v, range);
    }
    /// How much an integer is at most, where nothing is known of how much it is at least.
    pub fn most(&self, v: Value) -> Option<i64> {
        self.half.get(&v).map(|range| range.1)
    }
    /// Tells that a sum is at most so much.
    pub fn narrow(&mut self, sum: Sum, most: i64) {
        if let Some(range) = sum.of.and_then(|v| self.known.get_mut(&v)) {
            range.1 = range.1.min(most - sum.more);
        }
    }
    /// An integer of which something is known, as a sum.
    pub fn sum(&self, graph: &Graph, v: Value) -> Option<Sum> {
        let ty = graph.ty(v);
        if ty.rank() > 0 || ty.dtype != DType::I64 {
            return None;
        }
        let number = graph.const_value(v).and_then(Array::item_i64).filter(|n| n.abs() < LIMIT).map(Sum::number);
        number.or(self.sums.get(&v).copied()).or(self.known.contains_key(&v).then_some(Sum { of: Some(v), more: 0 }))
    }
    /// Between which numbers it lies.
    pub fn range(&self, sum: Sum) -> Option<(i64, i64)> {
        let (low, high) = sum.of.map_or(Some((0, 0)), |v| self.known.get(&v).copied())?;
        Some((low + sum.more, high + sum.more))
    }
    /// True where a is certainly at most b.
    pub fn at_most(&self, a: Sum, b: Sum) -> bool {
        if a.of == b.of {
            return a.more <= b.more;
        }
        self.range(a).zip(self.range(b)).is_some_and(|(a, b)| a.1 <= b.0)
    }
    /// The smaller one, where it is certain which that is.
    pub fn least(&self, a: Sum, b: Sum) -> Option<Sum> {
        if self.at_most(a, b) { Some(a) } else { Some(b).filter(|_| self.at_most(b, a)) }
    }
    /// The larger one, where it is certain which that is.
    pub fn largest(&self, a: Sum, b: Sum) -> Option<Sum> {
        self.least(a, b).map(|least| if least == a { b } else { a })
    }
    /// a + b.
    pub fn more(&mut self, graph: &mut Graph, a: Sum, b: Sum) -> Option<Sum> {
        match (a.of, b.of) {
            (of, None) | (None, of) => Some(Sum { of, more: a.more.checked_add(b.more)? }),
            (Some(_), Some(_)) => self.computed(graph, ElemOp::Add, a, b),
        }
    }
    /// a − b.
    pub fn less(&mut self, graph: &mut Graph, a: Sum, b: Sum) -> Option<Sum> {
        match b.of {
            None => Some(Sum { of: a.of, more: a.more.checked_sub(b.more)? }),
            of if of == a.of => Some(Sum::number(a.more.checked_sub(b.more)?)),
            _ => self.computed(graph, ElemOp::Sub, a, b),
        }
    }
    fn computed(&mut self, graph: &mut Graph, op: ElemOp, a: Sum, b: Sum) -> Option<Sum> {
        let ins = [self.value(graph, a)?, self.value(graph, b)?];
        let v = graph.apply(Op::Elem(op), &ins).ok()?[0];
        self.made(graph, &Op::Elem(op), &ins, v);
        self.sum(graph, v)
    }
    /// A sum as a value of the graph.
    pub fn value(&mut self, graph: &mut Graph, sum: Sum) -> Option<Value> {
        let Some(of) = sum.of.filter(|_| sum.more != 0) else { return Some(sum.of.unwrap_or_else(|| graph.int(sum.more))) };
        if let Some(&v) = self.values.get(&sum) {
            return Some(v);
        }
        let more = graph.int(sum.more);
        let v = graph.apply(Op::Elem(ElemOp::Add), &[of, more]).ok()?[0];
        self.values.insert(sum, v);
        self.sums.insert(v, sum);
        Some(v)
    }

    /// What an op gives of integers, where that is a sum.
    pub fn node(&self, graph: &Graph, op: &Op, ins: &[Value]) -> Option<Sum> {
        let &Op::Elem(op) = op else { return None };
        let &[a, b] = ins else { return None };
        let (a, b) = (self.sum(graph, a)?, self.sum(graph, b)?);
        match op {
            ElemOp::Add if a.of.is_none() || b.of.is_none() => Some(Sum { of: a.of.or(b.of), more: a.more.checked_add(b.more)? }),
            ElemOp::Sub if b.of.is_none() => Some(Sum { of: a.of, more: a.more.checked_sub(b.more)? }),
            ElemOp::Sub if a.of == b.of => Some(Sum::number(a.more.checked_sub(b.more)?)),
            ElemOp::Minimum => self.least(a, b),
            ElemOp::Maximum => self.largest(a, b),
            _ => None,
        }
    }
    /// Tells between which numbers the result of an op lies.
    pub fn made(&mut self, graph: &Graph, op: &Op, ins: &[Value], v: Value) {
        let ty = graph.ty(v);
        if ty.rank() > 0 || ty.dtype != DType::I64 {
            return;
        }
        let certain = |v: &Value| self.sum(graph, *v).and_then(|sum| self.range(sum)).or_else(|| self.known.get(v).copied());
        let range = |v: &Value| certain(v).or_else(|| self.half.get(v).copied()).unwrap_or((i64::MIN, i64::MAX));
        let found = match (op, ins) {
            (Op::Cast(_), [x]) if graph.ty(*x).dtype.is_int() => certain(x),
            (Op::Elem(ElemOp::Add), [a, b]) => certain(a).zip(certain(b)).map(|(a, b)| (a.0 + b.0, a.1 + b.1)),
            (Op::Elem(ElemOp::Sub), [a, b]) => certain(a).zip(certain(b)).map(|(a, b)| (a.0 - b.1, a.1 - b.0)),
            (Op::Elem(ElemOp::Minimum), [a, b]) => Some((range(a).0.min(range(b).0), range(a).1.min(range(b).1))),
            (Op::Elem(ElemOp::Clip), [_, low, high]) => {
                certain(low).zip(certain(high)).map(|(low, high)| (low.0.min(high.0), high.1.max(low.1)))
            }
            (Op::Elem(ElemOp::Where), [_, a, b]) => Some((range(a).0.min(range(b).0), range(a).1.max(range(b).1))),
            (Op::Elem(ElemOp::Maximum), [a, b]) => Some((range(a).0.max(range(b).0), range(a).1.max(range(b).1))),
            _ => None,
        };
        found.into_iter().for_each(|range| self.tell(v, range));
    }
}
