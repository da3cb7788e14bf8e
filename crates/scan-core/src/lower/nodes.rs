//! Nodes of a graph of known extents, one after the other, as instructions of a kernel.

use super::moves::{Source, moved_inputs, sources};
use super::value::{Layout, Val, bits_of, broadcast_positions};
use super::{Lowered, refuse};
use crate::ir::op::*;
use crate::ir::{EvalCx, Graph, Node, Op, Value};
use crate::kernel::{Builder, Reg};
use crate::scalar::{ElemOp, Rule};
use crate::scan::reached::shape_only;
use crate::types::shape::{Extents, count};
use crate::types::{Array, DType, Type};
use smallvec::SmallVec;

/// More instructions than this are no kernel any more.
const MOST: usize = 6000;

/// Up to as many multiplications a kernel computes a product, element by element. Larger ones are quicker as calls: a row by a matrix of
/// 16 × 16 takes a third of the time, of 32 × 32 an eighth.
const MULTIPLICATIONS: usize = 128;

/// A graph on its way into a kernel. Extents of all its values are known.
pub struct Lowering<'a> {
    graph: &'a Graph,
    /// The kernel under construction.
    pub builder: Builder,
    layout: Layout,
    values: Vec<Option<Val>>,
}

impl<'a> Lowering<'a> {
    /// Nothing lowered yet.
    pub fn new(graph: &'a Graph, layout: Layout) -> Self {
        Lowering { graph, builder: Builder::new(), layout, values: vec![None; graph.n_values()] }
    }
    /// How arrays become scalars.
    pub fn layout(&self) -> Layout {
        self.layout
    }
    /// The graph.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }
    /// Parameters of the graph.
    pub(super) fn params(&self) -> &'a [Value] {
        self.graph.params()
    }
    /// Results of the graph.
    pub(super) fn results(&self) -> &'a [Value] {
        self.graph.results()
    }
    /// Gives a value.
    pub fn bind(&mut self, v: Value, val: Val) {
        self.values[v.0 as usize] = Some(val);
    }
    /// A value that was given or lowered.
    pub fn value(&self, v: Value) -> Lowered<Val> {
        match &self.values[v.0 as usize] {
            Some(val) => Ok(val.clone()),
            None => refuse("a value that no node makes"),
        }
    }
    /// Lowers what these values need.
    pub fn run(&mut self, wanted: &[Value]) -> Lowered<()> {
        let graph = self.graph;
        let live = graph.needed(wanted);
        for (id, node) in graph.nodes().enumerate() {
            let given = node.outs.iter().all(|v| self.values[v.0 as usize].is_some());
            if live[id.0 as usize] && !given {
                self.node(node).map_err(|e| super::Refusal(format!("`{}`: {}", node.op.name(), e.0)))?;
                if self.builder.kernel().body.len() > MOST {
                    return refuse(format!("more than {MOST} instructions"));
                }
            }
        }
        Ok(())
    }
    /// The scalars of a value.
    pub fn regs(&mut self, v: Value) -> Lowered<Vec<Reg>> {
        match self.value(v)? {
            Val::Regs(_, regs) => Ok(regs),
            Val::Known(a) => self.constants(&a),
        }
    }

    fn constants(&mut self, a: &Array) -> Lowered<Vec<Reg>> {
        if a.is_empty() {
            return Ok(vec![]);
        }
        match self.layout {
            Layout::Elements => Ok((0..a.len()).map(|i| self.builder.raw(a.dtype(), bits_of(a, i))).collect()),
            Layout::Lanes(_) => {
                let first = bits_of(a, 0);
                if (1..a.len()).any(|i| bits_of(a, i) != first) {
                    return refuse("a constant whose elements differ");
                }
                Ok(vec![self.builder.raw(a.dtype(), first)])
            }
        }
    }

    fn node(&mut self, node: &Node) -> Lowered<()> {
        if let Some(outs) = self.known(node) {
            node.outs.iter().zip(outs).for_each(|(&v, a)| self.bind(v, Val::Known(a)));
            return Ok(());
        }
        let [out] = node.outs[..] else { return refuse("an op of several results") };
        let shape = self.shape(out)?;
        self.layout.admits(count(&shape))?;
        let regs = match &node.op {
            Op::Elem(op) => self.elementwise(*op, node, &shape)?,
            Op::Cast(Cast { dtype }) => {
                let regs = self.regs(node.ins[0])?;
                regs.into_iter().map(|r| self.builder.convert(r, *dtype)).collect()
            }
            Op::StopGradient(_) | Op::Hold(_) | Op::GradClip(_) | Op::GradTo(_) => self.regs(node.ins[0])?,
            Op::IfElse(_) => self.choose(node)?,
            Op::Reduce(op) => self.reduction(op, node, &shape)?,
            Op::SumTo(_) => self.sum_to(node, &shape)?,
            Op::MatMul(_) => self.matmul(node, &shape)?,
            op => match moved_inputs(op, node.ins.len()) {
                Some(moved) => self.moved(node, &moved, &shape)?,
                None => return refuse("it has no place in a kernel"),
            },
        };
        self.bind(out, Val::Regs(shape, regs));
        Ok(())
    }

    fn shape(&self, v: Value) -> Lowered<Extents> {
        let dims: Option<Extents> = self.graph.ty(v).dims.iter().map(|d| d.value()).collect();
        dims.map_or_else(|| refuse("an extent that depends on values"), Ok)
    }

    /// The results of a node whose inputs are known, or matter by their shape alone.
    fn known(&self, node: &Node) -> Option<Vec<Array>> {
        if matches!(node.op, Op::Extern(_) | Op::Scan(_)) {
            return None;
        }
        let mut args: Vec<Array> = vec![];
        for (i, &v) in node.ins.iter().enumerate() {
            match self.values[v.0 as usize].as_ref()? {
                Val::Known(a) => args.push(a.clone()),
                Val::Regs(shape, _) if shape_only(&node.op).contains(&i) => args.push(Array::zeros(DType::Bool, shape)),
                Val::Regs(..) => return None,
            }
        }
        let large = node.outs.iter().any(|&v| self.shape(v).map_or(true, |s| count(&s) > 4096));
        if large {
            return None;
        }
        Some(node.op.evaluate(&mut EvalCx::new(), &mut args).ok()?.into_vec())
    }

    /// The constant nearest to x.
    pub(super) fn number(&mut self, dtype: DType, x: f64) -> Reg {
        self.builder.constant(dtype, x)
    }
    /// A row of the elementwise table on scalars of its operand dtype.
    pub(super) fn elem(&mut self, op: ElemOp, operand: DType, ins: &[Reg]) -> Lowered<Reg> {
        match self.builder.elem(op, operand, ins) {
            Some(r) => Ok(r),
            None => refuse(format!("`{}` of {operand} is not compiled", op.name())),
        }
    }

    fn elementwise(&mut self, op: ElemOp, node: &Node, shape: &Extents) -> Lowered<Vec<Reg>> {
        let Some(operand) = op.row().operand(node.ins.iter().map(|&v| self.graph.ty(v).dtype)) else { return refuse("its dtypes") };
        let mut ins: Vec<Vec<Reg>> = vec![];
        for (i, &v) in node.ins.iter().enumerate() {
            let wanted = if op.row().rule == Rule::Where && i == 0 { DType::Bool } else { operand };
            let regs: Vec<Reg> = self.regs(v)?.into_iter().map(|r| self.builder.convert(r, wanted)).collect();
            ins.push(self.spread(v, regs, shape)?);
        }
        (0..ins[0].len()).map(|k| self.elem(op, operand, &ins.iter().map(|x| x[k]).collect::<SmallVec<[Reg; 3]>>())).collect()
    }

    /// The scalars of a value broadcast to a shape.
    fn spread(&self, v: Value, regs: Vec<Reg>, shape: &Extents) -> Lowered<Vec<Reg>> {
        if let Layout::Lanes(_) = self.layout {
            return Ok(regs);
        }
        let own = self.value(v)?;
        if own.shape() == &shape[..] {
            return Ok(regs);
        }
        Ok(broadcast_positions(own.shape(), shape).into_iter().map(|i| regs[i]).collect())
    }

    /// Both branches are computed: nothing in a kernel fails.
    fn choose(&mut self, node: &Node) -> Lowered<Vec<Reg>> {
        let (cond, a, b) = (self.regs(node.ins[0])?, self.regs(node.ins[1])?, self.regs(node.ins[2])?);
        if a.len() != b.len() || self.value(node.ins[1])?.shape() != self.value(node.ins[2])?.shape() {
            return refuse("branches of different shapes");
        }
        let cond = self.builder.convert(cond[0], DType::Bool);
        Ok(a.into_iter().zip(b).map(|(a, b)| self.builder.select(cond, a, b)).collect())
    }

    /// Scalars of `v` in groups: one per element of the result, in the order in which the law reduces them.
    fn groups(&mut self, v: Value, axes: &[usize]) -> Lowered<Vec<Vec<Reg>>> {
        let shape: Extents = SmallVec::from_slice(self.value(v)?.shape());
        let regs = self.regs(v)?;
        if let Layout::Lanes(_) = self.layout {
            let trivial = axes.iter().all(|&axis| shape[axis] == 1);
            return if trivial { Ok(vec![regs]) } else { refuse("a reduction over the lanes") };
        }
        let kept: Extents = shape.iter().enumerate().map(|(i, &n)| if axes.contains(&i) { 1 } else { n }).collect();
        let mut groups = vec![vec![]; count(&kept)];
        for (i, at) in broadcast_positions(&kept, &shape).into_iter().enumerate() {
            groups[at].push(regs[i]);
        }
        Ok(groups)
    }

    fn reduction(&mut self, op: &Reduce, node: &Node, _: &Extents) -> Lowered<Vec<Reg>> {
        let x = node.ins[0];
        let dtype = match op.kind {
            ReduceKind::Sum | ReduceKind::Prod => self.graph.ty(x).dtype.accumulator(),
            ReduceKind::Any | ReduceKind::All => DType::Bool,
            ReduceKind::Max | ReduceKind::Min => self.graph.ty(x).dtype,
        };
        let groups = self.groups(x, &op.axes)?;
        groups.into_iter().map(|lane| self.reduce_as(op.kind, dtype, lane)).collect()
    }

    fn reduce_as(&mut self, kind: ReduceKind, dtype: DType, lane: Vec<Reg>) -> Lowered<Reg> {
        let lane: Vec<Reg> = lane.into_iter().map(|r| self.builder.convert(r, dtype)).collect();
        self.reduce(kind, dtype, &lane)
    }

    fn sum_to(&mut self, node: &Node, shape: &Extents) -> Lowered<Vec<Reg>> {
        let x = node.ins[0];
        let from: Extents = SmallVec::from_slice(self.value(x)?.shape());
        if count(&from) == count(shape) {
            return self.regs(x);
        }
        let dtype = self.graph.ty(x).dtype;
        let new = from.len() - shape.len();
        let axes: Vec<usize> = (0..from.len()).filter(|&i| i < new || shape[i - new] == 1 && from[i] != 1).collect();
        let kind = if dtype == DType::Bool { ReduceKind::Any } else { ReduceKind::Sum };
        let groups = self.groups(x, &axes)?;
        groups.into_iter().map(|lane| self.reduce(kind, dtype, &lane)).collect()
    }

    fn moved(&mut self, node: &Node, moved: &[usize], shape: &Extents) -> Lowered<Vec<Reg>> {
        if let Layout::Lanes(n) = self.layout {
            return self.moved_lanes(node, n, shape);
        }
        let values: Vec<Val> = node.ins.iter().map(|&v| self.value(v)).collect::<Lowered<_>>()?;
        let mut given = vec![];
        for (i, val) in values.iter().enumerate() {
            given.push(match val {
                _ if moved.contains(&i) => Source::Moved(val.shape()),
                _ if shape_only(&node.op).contains(&i) => Source::Shape(val.shape()),
                Val::Known(a) => Source::Given(a),
                Val::Regs(..) => return refuse("an index that depends on the step"),
            });
        }
        let Some((from, out)) = sources(&node.op, &given) else { return refuse("it fails on these extents") };
        if out.shape() != &shape[..] {
            return refuse("an extent that depends on values");
        }
        let dtype = self.graph.ty(node.outs[0]).dtype;
        let mut all = vec![self.number(dtype, 0.0)];
        for &i in moved {
            let regs = self.regs(node.ins[i])?;
            all.extend(regs.into_iter().map(|r| self.builder.convert(r, dtype)));
        }
        Ok(from.into_iter().map(|i| all[i]).collect())
    }

    /// With lanes, only moves that leave every element in its lane.
    fn moved_lanes(&mut self, node: &Node, n: usize, shape: &Extents) -> Lowered<Vec<Reg>> {
        let from = self.value(node.ins[0])?;
        let keeps_order = match &node.op {
            Op::Reshape(_) | Op::ReshapeLike(_) | Op::Expand(_) | Op::Squeeze(_) | Op::BroadcastTo(_) | Op::BroadcastLike(_) => true,
            Op::Transpose(t) => t.perm.iter().filter(|&&i| from.shape()[i] != 1).is_sorted(),
            _ => false,
        };
        let fits = from.size() == count(shape) || from.size() == 1 && count(shape) == n;
        if keeps_order && fits { self.regs(node.ins[0]) } else { refuse("it moves elements between lanes") }
    }

    /// In the order of the law of products.
    fn matmul(&mut self, node: &Node, shape: &Extents) -> Lowered<Vec<Reg>> {
        let (a, b) = (self.value(node.ins[0])?, self.value(node.ins[1])?);
        let (Layout::Elements, true, true) = (self.layout, (1..=2).contains(&a.shape().len()), (1..=2).contains(&b.shape().len())) else {
            return refuse("a product of many elements");
        };
        let k = a.shape()[a.shape().len() - 1];
        let n = if b.shape().len() == 2 { b.shape()[1] } else { 1 };
        let m = if a.shape().len() == 2 { a.shape()[0] } else { 1 };
        if m * k * n > MULTIPLICATIONS {
            return refuse(format!("a product of {m}×{k} and {k}×{n}"));
        }
        let dtype = self.graph.ty(node.outs[0]).dtype;
        if dtype == DType::Bool {
            return refuse("a product of truth values");
        }
        let mut sides = vec![];
        for &v in &node.ins {
            let regs = self.regs(v)?;
            sides.push(regs.into_iter().map(|r| self.builder.convert(r, dtype)).collect::<Vec<_>>());
        }
        let mut out = vec![];
        for i in 0..m {
            for j in 0..n {
                let terms: Vec<(Reg, Reg)> = (0..k).map(|p| (sides[0][i * k + p], sides[1][p * n + j])).collect();
                out.push(self.product(dtype, &terms, n == 1)?);
            }
        }
        debug_assert_eq!(out.len(), count(shape));
        Ok(out)
    }
}

/// True for an elementwise node that can be part of a kernel.
pub fn expressible(graph: &Graph, node: &Node) -> bool {
    let Op::Elem(op) = &node.op else { return true };
    let mut builder = Builder::new();
    let mut ins: SmallVec<[Reg; 3]> = SmallVec::new();
    for &v in &node.ins {
        let mem = builder.mem(graph.ty(v).dtype, crate::kernel::Lane::Unit);
        ins.push(builder.load(mem));
    }
    builder.apply(*op, &ins).is_some()
}

/// The graph with parameters of known types, and so, where nothing depends on values, with all extents known.
///
/// # Errors
/// What type inference reports.
pub fn specialise(graph: &Graph, types: &[Type]) -> crate::base::Result<Graph> {
    let mut known = Graph::new();
    let image = graph.params().iter().zip(types).map(|(&p, ty)| (p, known.param(ty.clone(), graph.name(p).map(|n| &**n)))).collect();
    let results = known.inline(graph, &image, graph.results())?;
    known.set_results(results);
    Ok(known)
}
