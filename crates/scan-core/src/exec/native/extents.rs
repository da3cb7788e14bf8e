//! Extents that a step computes of its integers and of numbers that it is given: how many steps a block's loop runs, where a part of an array
//! ends. They are computed for all steps before the first one, so that a list is made for each extent that occurs, not for each integer.

use crate::base::Result;
use crate::ir::op::{EvalCx, Index};
use crate::ir::{Def, Graph, Node, Op, Scan, Value};
use crate::ops::index::{Item, Pattern};
use crate::ops::properties::Extents;
use crate::rewrite::rebuild::copy_with;
use crate::scalar::ElemOp;
use crate::types::{Array, DType, Type};
use rustc_hash::{FxHashMap, FxHashSet};

/// Where an extent of a step is decided.
enum Decided {
    /// By this number.
    By(Value),
    /// By the bounds of a slice along an axis of so many elements.
    Between { slice: Value, bounds: [usize; 2], room: i64 },
}

/// The extents of a step that depend on its integers, and on nothing else that is not known before.
pub struct StepExtents {
    decided: Vec<Decided>,
    /// What they are computed of, in order.
    order: Vec<Value>,
    /// What is known before.
    known: FxHashMap<Value, Array>,
}

/// What is found out of a body.
struct Walk<'a> {
    body: &'a Graph,
    types: &'a [Type],
    known: FxHashMap<Value, Array>,
    varies: FxHashSet<Value>,
    order: Vec<Value>,
}

impl StepExtents {
    /// Those of a loop whose parameters have these types and values, some of them (`integers`) being integers of a step. `None` where there
    /// are none.
    pub fn of(scan: &Scan, types: &[Type], values: &[Option<Array>], integers: &[Value]) -> Option<StepExtents> {
        let body = &scan.body;
        let known = body.params().iter().zip(values).filter_map(|(&p, value)| Some((p, value.clone()?))).collect();
        let mut walk = Walk { body, types, known, varies: integers.iter().copied().collect(), order: vec![] };
        body.nodes().iter().for_each(|node| walk.node(node));
        let mut decided: Vec<Decided> = vec![];
        for node in body.nodes().iter() {
            walk.decided(node, &mut decided);
        }
        (!decided.is_empty()).then_some(StepExtents { decided, order: walk.order, known: walk.known })
    }
    /// Their numbers in each of n steps, given the integers of all steps; `None` where they cannot be computed.
    pub fn numbers(&self, body: &Graph, n: usize, integers: impl IntoIterator<Item = (Value, Array)>) -> Option<Vec<Vec<i64>>> {
        let mut of: FxHashMap<Value, Array> = integers.into_iter().collect();
        for &v in &self.order {
            let node = body.node_of(v)?;
            let mut ins: Vec<Array> = node.ins.iter().map(|v| of.get(v).or_else(|| self.known.get(v)).cloned()).collect::<Option<_>>()?;
            let out = node.op.evaluate(&mut EvalCx::new(), &mut ins).ok()?.pop()?;
            of.insert(v, out);
        }
        let column = |v: Value| -> Option<Vec<i64>> {
            let a = of.get(&v).or_else(|| self.known.get(&v))?.cast(DType::I64);
            Some(if a.rank() == 0 { vec![a.item_i64()?; n] } else { a.as_slice::<i64>().to_vec() }).filter(|all| all.len() == n)
        };
        let numbers = |decided: &Decided| match *decided {
            Decided::By(v) => column(v),
            Decided::Between { slice, bounds, room } => {
                let ins = &body.node_of(slice)?.ins;
                let [starts, ends] = [column(ins[bounds[0]])?, column(ins[bounds[1]])?];
                // Bounds that count from the end say what they are with the extent alone.
                let counted = starts.iter().chain(&ends).all(|&n| n >= 0);
                counted.then(|| starts.iter().zip(&ends).map(|(&s, &e)| (e.min(room) - s.min(room)).max(0)).collect())
            }
        };
        self.decided.iter().map(numbers).collect()
    }

    /// The loop whose steps have these extents.
    ///
    /// # Errors
    /// What type inference reports.
    pub fn fixed(&self, scan: &Scan, numbers: &[i64]) -> Result<Scan> {
        let of = |out: Value| {
            self.decided.iter().zip(numbers).find(|(decided, _)| match decided {
                Decided::By(v) => *v == out,
                Decided::Between { slice, .. } => *slice == out,
            })
        };
        let body = copy_with(&scan.body, |rebuild, _, node| {
            let [out] = node.outs[..] else { return Ok(false) };
            let Some((decided, &n)) = of(out) else { return Ok(false) };
            let made = match decided {
                Decided::By(_) => rebuild.new.constant(Array::scalar(n).cast(scan.body.ty(out).dtype)),
                Decided::Between { bounds, .. } => {
                    let (mut ins, length) = (rebuild.images(&node.ins)?, rebuild.new.int(n));
                    let start = rebuild.new.cast(ins[bounds[0]], DType::I64);
                    ins[bounds[1]] = rebuild.new.emit(Op::Elem(ElemOp::Add), &[start, length]);
                    rebuild.new.apply(node.op.clone(), &ins)?[0]
                }
            };
            rebuild.set(out, made);
            Ok(true)
        })?;
        Ok(body.map_or_else(|| scan.clone(), |body| scan.with_body(body)))
    }
}

impl Walk<'_> {
    fn told(&self, v: Value) -> bool {
        self.known.contains_key(&v) || self.varies.contains(&v)
    }
    fn node(&mut self, node: &Node) {
        let [out] = node.outs[..] else { return };
        let constant = match &node.op {
            Op::DimOf(dim) => self.extent(node.ins[0], dim.axis).map(Array::scalar),
            op if op.elementwise() && self.body.ty(out).rank() == 0 && node.ins.iter().all(|&v| self.told(v)) => self.number(node, out),
            _ => self.body.const_value(out).filter(|a| a.rank() == 0).cloned(),
        };
        self.known.extend(constant.map(|a| (out, a)));
    }
    /// A number that is computed: in each step, or, where it does not depend on that, now.
    fn number(&mut self, node: &Node, out: Value) -> Option<Array> {
        if node.ins.iter().any(|v| self.varies.contains(v)) {
            self.varies.insert(out);
            self.order.push(out);
            return None;
        }
        let mut ins: Vec<Array> = node.ins.iter().filter_map(|v| self.known.get(v).cloned()).collect();
        node.op.evaluate(&mut EvalCx::new(), &mut ins).ok()?.pop()
    }
    fn extent(&self, x: Value, axis: usize) -> Option<i64> {
        let ty = if let Def::Param(at) = self.body.def(x) { &self.types[at] } else { self.body.ty(x) };
        ty.dims.get(axis)?.value().map(|n| n as i64)
    }

    /// Extents that a node is given.
    fn decided(&self, node: &Node, decided: &mut Vec<Decided>) {
        let computed = |v: &Value| self.varies.contains(v) && matches!(self.body.def(*v), Def::Out(..));
        let inputs = match (&node.op, node.op.extents()) {
            (Op::Index(op), Extents::From(_)) => return decided.extend(self.slice(op, node)),
            (_, Extents::First) => &node.ins[..1],
            (_, Extents::From(first)) => &node.ins[first.min(node.ins.len())..],
            _ => return,
        };
        for &v in inputs.iter().filter(|v| computed(v)) {
            if !decided.iter().any(|other| matches!(other, Decided::By(w) if *w == v)) {
                decided.push(Decided::By(v));
            }
        }
    }
    /// A slice from one bound to another, of which one depends on the step.
    fn slice(&self, op: &Index, node: &Node) -> Option<Decided> {
        let (mut at, mut found) = (1, None);
        for (axis, item) in Pattern::parse(&op.pattern).ok()?.items.iter().enumerate() {
            let bounds = [at, at + 1];
            at += item.inputs();
            match item {
                Item::At => {}
                item if *item == Item::ALL => {}
                Item::Slice { start: true, end: true, step: 1 } if found.is_none() => {
                    found = Some((bounds, self.extent(node.ins[0], axis)?))
                }
                _ => return None,
            }
        }
        let (bounds, room) = found?;
        let told = bounds.iter().all(|&k| self.told(node.ins[k])) && bounds.iter().any(|&k| self.varies.contains(&node.ins[k]));
        told.then_some(Decided::Between { slice: node.outs[0], bounds, room })
    }
}
