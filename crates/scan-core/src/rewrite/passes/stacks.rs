//! Computes what is reduced or read along the axis of a stack from the stacked arrays.
//!
//! ```text
//! before  s = stack(a, b, c);   max(s, axis=0);             exp(s · w)[1]
//! after                         maximum(maximum(a, b), c);  exp(b · w)
//! ```
//!
//! A stack is a join of at most `MOST` arrays that have one place of its axis each, or an elementwise function, a softmax or a log-softmax
//! of one, of which nothing else is read: what is computed of each array is then computed once, as before. Results have the bits that the
//! reduction has: sums are taken in the order of every sum, extremes are the first of equal ones.

use crate::base::{Id, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Node, Op, Value};
use crate::ops::index::{Item, Pattern};
use crate::rewrite::driver::Cx;
use crate::rewrite::local::{self, Index as Rules};
use crate::rewrite::loops::facts::integer;
use crate::rewrite::rebuild::{Lazy, copy_with};
use crate::rewrite::rules::{const_fold, cse, structure};
use crate::scalar::ElemOp;
use crate::types::{DType, Sym};
use rustc_hash::FxHashMap;

const NAME: &str = "stacks";

/// So many arrays are a stack at most: sums of as many are a tree.
const MOST: usize = 8;

/// The graph without reductions of stacks.
///
/// # Errors
/// Internal ones.
pub fn run(cx: &mut Cx, graph: &Graph) -> Result<Option<Graph>> {
    if !graph.nodes().iter().any(|n| matches!(&n.op, Op::Join(join) if stacked(graph, n, join.axis))) {
        return Ok(None);
    }
    let stacks = Stacks::of(graph);
    let mut arrays = Arrays { stacks: &stacks, graph, made: FxHashMap::default() };
    let made = copy_with(graph, |rebuild, _, node| {
        let Some((use_of, at)) = stacks.read(graph, node) else { return Ok(false) };
        let since = Sym::fresh();
        let value = arrays.used(rebuild, node, use_of, at)?;
        rebuild.new.learn(value, graph, node.outs[0], since);
        rebuild.set(node.outs[0], value);
        *cx.report.fired.entry((NAME, use_of.doc())).or_default() += 1;
        Ok(true)
    })?;
    let Some(made) = made else { return Ok(None) };
    let tidied = local::run(cx, &made, &Rules::of(NAME, &[cse::RULES, const_fold::RULES, structure::RULES]))?;
    Ok(tidied.or(Some(made)))
}

/// Arrays of certainly equal extents, one place of the axis each: of others the join reports that they do not fit.
fn stacked(g: &Graph, join: &Node, axis: usize) -> bool {
    let first = &g.ty(join.ins[0]).dims;
    (2..=MOST).contains(&join.ins.len()) && first[axis].is_one() && join.ins.iter().all(|&v| g.ty(v).dims == *first)
}

/// Along which axis a value is a stack, and of how many arrays.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stack {
    axis: usize,
    n: usize,
}

/// What a node computes along the axis of a stack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Reduction,
    /// One of the arrays.
    One(usize),
}

impl Use {
    fn doc(self) -> &'static str {
        match self {
            Use::Reduction => "max(stack(a, b)) → maximum(a, b), likewise others",
            Use::One(_) => "f(stack(a, b))[0] → f(a)",
        }
    }
}

/// The stacks of a graph.
struct Stacks {
    /// Those that consist of stacks alone.
    all: Vec<Option<Stack>>,
    /// Joins, and of the others those of which nothing is read but along their axis.
    read: Vec<bool>,
}

impl Stacks {
    fn of(g: &Graph) -> Stacks {
        let mut stacks = Stacks { all: vec![None; g.n_values()], read: vec![true; g.n_values()] };
        for node in g.nodes().iter() {
            if let &[out] = &node.outs[..] {
                stacks.all[out.idx()] = stacks.made_by(g, node, out);
            }
        }
        let live = g.needed(g.results());
        let nodes: Vec<&Node> = g.nodes().enumerate().filter(|(id, _)| live[id.idx()]).map(|n| n.1).collect();
        for &v in g.results() {
            stacks.whole(g, v);
        }
        // Where a function of a stack is read whole, so are the functions that it is of.
        loop {
            let found = nodes.iter().rev().filter(|node| stacks.reads(g, node)).count();
            if found == 0 {
                return stacks;
            }
        }
    }

    /// Something reads all of a value.
    fn whole(&mut self, g: &Graph, v: Value) -> bool {
        let join = g.node_of(v).is_some_and(|n| matches!(n.op, Op::Join(_)));
        !join && std::mem::replace(&mut self.read[v.idx()], false)
    }

    /// What a node reads; true where that is found out only now.
    fn reads(&mut self, g: &Graph, node: &Node) -> bool {
        let function = |v: &&Value| !matches!(node.op, Op::Join(_)) && self.all[v.idx()].is_some() && self.read[v.idx()];
        if let Some(&out) = node.outs.first().filter(function) {
            let whole = node.ins.iter().any(|v| self.all[v.idx()].is_some() && !self.read[v.idx()]);
            return whole && self.whole(g, out);
        }
        let along = self.along(g, node).is_some();
        node.ins.iter().skip(usize::from(along)).filter(|v| self.whole(g, **v)).count() > 0
    }

    fn made_by(&self, g: &Graph, node: &Node, out: Value) -> Option<Stack> {
        let rank = g.ty(out).rank();
        match &node.op {
            Op::Join(join) => stacked(g, node, join.axis).then_some(Stack { axis: join.axis, n: node.ins.len() }),
            Op::Softmax(Softmax { axis }) | Op::LogSoftmax(LogSoftmax { axis }) => {
                self.all[node.ins[0].idx()].filter(|stack| stack.axis == *axis)
            }
            Op::Elem(_) | Op::Cast(_) => {
                let of = |v: &Value| self.all[v.idx()].map(|s| Stack { axis: s.axis + rank - g.ty(*v).rank(), n: s.n });
                let mut found = node.ins.iter().filter_map(of);
                let first = found.next()?;
                let extent = |v: &Value| {
                    let axis = first.axis.checked_sub(rank - g.ty(*v).rank());
                    axis.is_none_or(|axis| g.ty(*v).dims[axis].value().is_some_and(|n| n == 1 || n == first.n))
                };
                (found.all(|other| other == first) && node.ins.iter().all(extent)).then_some(first)
            }
            _ => None,
        }
    }

    /// What a node computes of a stack that it reads, whatever else is read of that.
    fn along(&self, g: &Graph, node: &Node) -> Option<Use> {
        let stack = self.all[node.ins.first()?.idx()]?;
        let dtype = g.ty(node.ins[0]).dtype;
        match &node.op {
            Op::Reduce(op) => (op.axes == [stack.axis] && (dtype != DType::Bool || is_logical(op.kind))).then_some(Use::Reduction),
            Op::ArgReduce(op) => (op.axis == stack.axis && dtype != DType::Bool).then_some(Use::Reduction),
            Op::LogSumExp(op) => (op.axes == [stack.axis]).then_some(Use::Reduction),
            Op::Index(op) => place(g, op, &node.ins, stack).map(Use::One),
            _ => None,
        }
    }

    /// What a node reads of a stack that can be left away for that.
    fn read(&self, g: &Graph, node: &Node) -> Option<(Use, Stack)> {
        let of = node.ins.first()?.idx();
        let use_of = self.along(g, node).filter(|_| self.read[of])?;
        Some((use_of, self.all[of]?))
    }
}

fn is_logical(kind: ReduceKind) -> bool {
    matches!(kind, ReduceKind::Any | ReduceKind::All)
}

/// Which place of a stack's axis alone an index names: all of the others.
fn place(g: &Graph, op: &Index, ins: &[Value], stack: Stack) -> Option<usize> {
    let items = Pattern::parse(&op.pattern).ok()?.items;
    let mut own = ins[1..].iter();
    let mut named = None;
    for (axis, item) in items.iter().enumerate() {
        let mut bound = || integer(g, *own.next()?).map(|k| if k < 0 { k + stack.n as i64 } else { k });
        match item {
            Item::At if axis == stack.axis => named = Some(bound()?),
            Item::Slice { start, end, step: 1 } if axis == stack.axis => {
                let from = if *start { bound()? } else { 0 };
                let to = if *end { bound()? } else { stack.n as i64 };
                named = Some(from).filter(|_| to - from == 1);
            }
            item if *item == Item::ALL => {}
            _ => return None,
        }
    }
    named.filter(|k| (0..stack.n as i64).contains(k)).map(|k| k as usize)
}

/// The arrays of stacks in the new graph, without the axis.
struct Arrays<'a> {
    stacks: &'a Stacks,
    graph: &'a Graph,
    made: FxHashMap<Value, Vec<Value>>,
}

impl Arrays<'_> {
    fn used(&mut self, rebuild: &mut Lazy, node: &Node, use_of: Use, stack: Stack) -> Result<Value> {
        let arrays = self.of(rebuild, node.ins[0], stack)?;
        let g = &mut rebuild.new;
        let value = match (&node.op, use_of) {
            (_, Use::One(k)) => arrays[k],
            (Op::Reduce(op), _) => reduced(g, op.kind, &arrays),
            (Op::ArgReduce(op), _) => first_extreme(g, op.kind, &arrays),
            _ => log_sum_exp(g, &arrays),
        };
        let keeps = g.ty(value).rank() < self.graph.ty(node.outs[0]).rank();
        Ok(if keeps { g.expand(value, &[stack.axis]) } else { value })
    }

    fn of(&mut self, rebuild: &mut Lazy, v: Value, stack: Stack) -> Result<Vec<Value>> {
        if let Some(made) = self.made.get(&v) {
            return Ok(made.clone());
        }
        let Some(node) = self.graph.node_of(v).filter(|_| self.stacks.all[v.idx()].is_some()) else {
            return (0..stack.n).map(|k| self.beside(rebuild, v, stack, k)).collect();
        };
        let made = match &node.op {
            Op::Join(_) => {
                let images = rebuild.images(&node.ins)?;
                images.iter().map(|&x| squeezed(&mut rebuild.new, x, stack.axis)).collect()
            }
            Op::Softmax(_) | Op::LogSoftmax(_) => {
                let of = self.of(rebuild, node.ins[0], stack)?;
                shares(&mut rebuild.new, &of, matches!(node.op, Op::LogSoftmax(_)))
            }
            op => {
                let rank = self.graph.ty(v).rank();
                let mut columns = vec![];
                for &x in &node.ins {
                    let before = rank - self.graph.ty(x).rank();
                    columns.push(match stack.axis.checked_sub(before) {
                        Some(axis) => self.of(rebuild, x, Stack { axis, ..stack })?,
                        None => vec![rebuild.image(x)?; stack.n],
                    });
                }
                let each = (0..stack.n).map(|k| columns.iter().map(|c| c[k]).collect::<Vec<_>>());
                each.map(|ins| Ok(rebuild.new.apply(op.clone(), &ins)?[0])).collect::<Result<_>>()?
            }
        };
        self.made.insert(v, made);
        Ok(self.made[&v].clone())
    }

    /// What stands beside the k-th array in an operand that is no stack.
    fn beside(&self, rebuild: &mut Lazy, v: Value, stack: Stack, k: usize) -> Result<Value> {
        let x = rebuild.image(v)?;
        let g = &mut rebuild.new;
        if self.graph.ty(v).dims[stack.axis].is_one() {
            return Ok(squeezed(g, x, stack.axis));
        }
        let at = g.int(k as i64);
        Ok(g.apply(Index { pattern: format!("{}i", ":,".repeat(stack.axis)) }, &[x, at])?[0])
    }
}

/// x without an axis of extent 1.
fn squeezed(g: &mut Graph, x: Value, axis: usize) -> Value {
    match g.node_of(x).map(|n| (&n.op, &n.ins[..])) {
        Some((Op::Expand(expand), &[of])) if expand.axes == [axis] => of,
        _ => g.squeeze(x, &[axis]),
    }
}

/// Sums and products of eight parts as a tree, in the order of every sum.
fn tree(g: &mut Graph, op: ElemOp, parts: &[Option<Value>; MOST]) -> Option<Value> {
    let mut both = |a: Option<Value>, b: Option<Value>| match (a, b) {
        (Some(a), Some(b)) => Some(g.emit(Op::Elem(op), &[a, b])),
        (a, b) => a.or(b),
    };
    let [a, b, c, d, e, f, u, v] = *parts;
    let (ae, cu, bf, dv) = (both(a, e), both(c, u), both(b, f), both(d, v));
    let (even, odd) = (both(ae, cu), both(bf, dv));
    both(even, odd)
}

fn folded(g: &mut Graph, op: ElemOp, arrays: &[Value]) -> Value {
    let mut parts = [None; MOST];
    parts.iter_mut().zip(arrays).for_each(|(part, &x)| *part = Some(x));
    tree(g, op, &parts).unwrap_or(arrays[0])
}

fn reduced(g: &mut Graph, kind: ReduceKind, arrays: &[Value]) -> Value {
    let dtype = g.ty(arrays[0]).dtype;
    let each = |g: &mut Graph, dtype: DType| arrays.iter().map(|&x| g.cast(x, dtype)).collect::<Vec<_>>();
    let one_by_one = |g: &mut Graph, op: ElemOp, all: &[Value]| all[1..].iter().fold(all[0], |best, &x| g.emit(Op::Elem(op), &[best, x]));
    match kind {
        ReduceKind::Max => one_by_one(g, ElemOp::Maximum, arrays),
        ReduceKind::Min => one_by_one(g, ElemOp::Minimum, arrays),
        ReduceKind::Any | ReduceKind::All => {
            let all = each(g, DType::Bool);
            one_by_one(g, if kind == ReduceKind::Any { ElemOp::Or } else { ElemOp::And }, &all)
        }
        ReduceKind::Prod => {
            let all = each(g, dtype.accumulator());
            folded(g, ElemOp::Mul, &all)
        }
        ReduceKind::Sum => {
            let all = each(g, dtype.accumulator());
            let sum = folded(g, ElemOp::Add, &all);
            // A sum begins with 0: of zeros that are all negative it is not.
            let zero = g.number(g.ty(sum).dtype, 0.0);
            if dtype.is_float() { g.add(sum, zero) } else { sum }
        }
    }
}

/// The number of the first extreme; the first NaN wins.
fn first_extreme(g: &mut Graph, kind: Extreme, arrays: &[Value]) -> Value {
    let (mut best, mut at) = (arrays[0], g.int(0));
    let keeps = if kind == Extreme::Max { ElemOp::Le } else { ElemOp::Ge };
    for (k, &x) in arrays.iter().enumerate().skip(1) {
        let (kept, number) = (g.emit(Op::Elem(keeps), &[x, best]), g.emit(Op::Elem(ElemOp::Ne), &[best, best]));
        let stays = g.emit(Op::Elem(ElemOp::Or), &[kept, number]);
        let k = g.int(k as i64);
        (best, at) = (g.select(stays, best, x), g.select(stays, at, k));
    }
    at
}

/// The largest number, the exponentials of the differences from it, and their sum.
fn powers(g: &mut Graph, arrays: &[Value], finite: bool) -> (Value, Vec<Value>, Value) {
    let dtype = g.ty(arrays[0]).dtype;
    let mut top = g.number(dtype, f64::NEG_INFINITY);
    for &x in arrays {
        let greater = g.emit(Op::Elem(ElemOp::Gt), &[x, top]);
        top = g.select(greater, x, top);
    }
    if finite {
        let (is, zero) = (g.emit(Op::Elem(ElemOp::IsFinite), &[top]), g.number(dtype, 0.0));
        top = g.select(is, top, zero);
    }
    let power = |x: &Value| {
        let difference = g.sub(*x, top);
        g.exp(difference)
    };
    let powers: Vec<Value> = arrays.iter().map(power).collect();
    let sum = folded(g, ElemOp::Add, &powers);
    (top, powers, sum)
}

fn floats(g: &mut Graph, arrays: &[Value]) -> Vec<Value> {
    let dtype = g.ty(arrays[0]).dtype.to_float();
    arrays.iter().map(|&x| g.cast(x, dtype)).collect()
}

/// `m + log Σ exp(x − m)`, where an infinite m is 0 instead: then the sum is 0 or infinite, and so is its logarithm.
fn log_sum_exp(g: &mut Graph, arrays: &[Value]) -> Value {
    let floats = floats(g, arrays);
    let (top, _, sum) = powers(g, &floats, true);
    let log = g.log(sum);
    g.add(top, log)
}

/// softmax or log-softmax.
fn shares(g: &mut Graph, arrays: &[Value], logs: bool) -> Vec<Value> {
    let floats = floats(g, arrays);
    let (top, powers, sum) = powers(g, &floats, false);
    let log = if logs { g.log(sum) } else { sum };
    let mut all = vec![];
    for (&x, &power) in floats.iter().zip(&powers) {
        all.push(match logs {
            true => {
                let difference = g.sub(x, top);
                g.sub(difference, log)
            }
            false => g.div(power, sum),
        });
    }
    all
}
