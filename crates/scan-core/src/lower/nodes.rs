//! Nodes of a graph of known extents, one after the other, as instructions of a kernel.

use super::extents::known_shape;
use super::value::{Layout, Val, bits_of, lanes_of};
use super::{Lowered, refuse};
use crate::base::Span;
use crate::ir::op::*;
use crate::ir::{EvalCx, Graph, Node, NodeId, Op, Value};
use crate::kernel::{Builder, Reg};
use crate::scalar::{ElemOp, Rule};
use crate::types::shape::{Extents, broadcast_positions, count};
use crate::types::{Array, DType};
use smallvec::SmallVec;

/// More instructions than this are no kernel any more.
pub(super) const MOST: usize = 6000;

/// A graph on its way into a kernel. Extents of all its values are known.
pub struct Lowering<'a> {
    graph: &'a Graph,
    /// The kernel under construction.
    pub builder: Builder,
    layout: Layout,
    values: Vec<Option<Val>>,
    /// Per value, the axis that numbers the rows ([`Layout::Rows`]).
    pub(super) row_axes: Vec<Option<usize>>,
    /// What must hold for the kernel to do what the law does, with the node that asks for it.
    guards: Vec<(NodeId, Reg)>,
    /// The node that is lowered.
    now: NodeId,
    /// Loops in the step read slices that may reach beyond their arrays.
    pub(super) slices: bool,
    /// Where the user wrote the loops in the step.
    pub(super) loops: Vec<Span>,
}

impl<'a> Lowering<'a> {
    /// Nothing lowered yet.
    pub fn new(graph: &'a Graph, layout: Layout) -> Self {
        let (values, row_axes) = (vec![None; graph.n_values()], vec![None; graph.n_values()]);
        Lowering { graph, builder: Builder::new(), layout, values, row_axes, guards: vec![], now: NodeId(0), slices: false, loops: vec![] }
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
    /// Forgets what was given and lowered. What the kernel computes already is not computed again.
    pub(super) fn clear(&mut self) {
        self.values.fill(None);
    }
    /// A value that was given or lowered.
    pub fn value(&self, v: Value) -> Lowered<Val> {
        match &self.values[v.0 as usize] {
            Some(val) => Ok(val.clone()),
            None => refuse("a value that no node makes"),
        }
    }
    /// Lowers what these values need of what was not given.
    pub fn run(&mut self, wanted: &[Value]) -> Lowered<()> {
        let graph = self.graph;
        let mut needed = vec![false; graph.n_values()];
        wanted.iter().for_each(|v| needed[v.0 as usize] = true);
        let nodes: Vec<(NodeId, &Node)> = graph.nodes().enumerate().collect();
        let mut missing = vec![false; nodes.len()];
        for (id, node) in nodes.iter().rev() {
            if node.outs.iter().any(|v| needed[v.0 as usize] && self.values[v.0 as usize].is_none()) {
                missing[id.0 as usize] = true;
                node.ins.iter().for_each(|v| needed[v.0 as usize] = true);
            }
        }
        for (id, node) in nodes.into_iter().filter(|(id, _)| missing[id.0 as usize]) {
            self.now = id;
            self.node(node).map_err(|e| super::Refusal(format!("`{}`: {}", node.op.name(), e.0)))?;
            if self.builder.kernel().body.len() > MOST {
                return refuse(format!("more than {MOST} instructions"));
            }
        }
        Ok(())
    }
    /// The scalars of a value.
    pub fn regs(&mut self, v: Value) -> Lowered<Vec<Reg>> {
        let val = self.value(v)?;
        self.all_of(val)
    }
    /// All scalars of what stands for a value.
    pub(super) fn all_of(&mut self, val: Val) -> Lowered<Vec<Reg>> {
        match val {
            Val::Regs(_, regs) => Ok(regs),
            Val::Known(a) => self.constants(&a),
            Val::Table(..) => refuse("all elements of an array of which some are read by their numbers"),
        }
    }

    fn constants(&mut self, a: &Array) -> Lowered<Vec<Reg>> {
        if a.is_empty() {
            return Ok(vec![]);
        }
        match self.layout {
            Layout::Elements | Layout::Rows(_) => Ok((0..a.len()).map(|i| self.builder.raw(a.dtype(), bits_of(a, i))).collect()),
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
            node.outs.iter().zip(outs).for_each(|(&v, a)| self.bind_known(v, a));
            return Ok(());
        }
        self.map_rows(node)?;
        if let Some(table) = self.table_made(node)? {
            self.bind(node.outs[0], table);
            return Ok(());
        }
        let shapes: Vec<Extents> = node.outs.iter().map(|&v| self.shape(v)).collect::<Lowered<_>>()?;
        shapes.iter().try_for_each(|shape| self.layout.admits(count(shape)))?;
        let outs = self.form(node, &shapes[0])?;
        for (&v, regs) in node.outs.iter().zip(outs) {
            // Rows that a loop of the step keeps lie in memory.
            if self.values[v.0 as usize].is_some() {
                continue;
            }
            let shape = self.shape(v)?;
            self.bind(v, Val::Regs(shape, regs));
        }
        Ok(())
    }

    /// Says what must hold in every step. Where it does not, the law runs the loop in place of the kernel, and reports what is wrong.
    ///
    /// # Errors
    /// With lanes a kernel cannot tell.
    pub(super) fn require(&mut self, holds: Reg) -> Lowered<()> {
        if !self.layout.by_element() {
            return refuse("it may fail");
        }
        match self.builder.known(holds) {
            Some(1) => {}
            Some(_) => return refuse("it fails"),
            None if self.guards.contains(&(self.now, holds)) => {}
            None => self.guards.push((self.now, holds)),
        }
        Ok(())
    }
    /// What was said to be required so far: by the node at hand, and by those before it, in order.
    pub(super) fn guards(&self) -> (Vec<Reg>, Vec<(NodeId, Reg)>) {
        let before = self.guards.iter().position(|guard| guard.0 == self.now).unwrap_or(self.guards.len());
        (self.guards[before..].iter().map(|guard| guard.1).collect(), self.guards[..before].to_vec())
    }
    /// What was said to be required, by node, in order.
    pub(super) fn take_guards(&mut self) -> Vec<(NodeId, Reg)> {
        std::mem::take(&mut self.guards)
    }
    /// A scalar as a truth value.
    pub(super) fn truth_of(&mut self, v: Value) -> Lowered<Reg> {
        let r = self.regs(v)?[0];
        Ok(self.builder.convert(r, DType::Bool))
    }
    /// Refuses kernels of many lanes.
    pub(super) fn elements_alone(&self) -> Lowered<()> {
        if self.layout.by_element() { Ok(()) } else { refuse("it looks at elements of several lanes") }
    }

    /// Extents of a value as a kernel has it: of one row.
    pub(super) fn shape(&self, v: Value) -> Lowered<Extents> {
        let mut shape = known_shape(self.graph, v)?;
        if let Some(axis) = self.row_axes[v.0 as usize] {
            shape[axis] = 1;
        }
        Ok(shape)
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
                Val::Regs(..) | Val::Table(..) if node.op.properties().shape_only.contains(&i) => {
                    args.push(Array::zeros(DType::Bool, &known_shape(self.graph, v).ok()?))
                }
                Val::Regs(..) | Val::Table(..) => return None,
            }
        }
        let large = node.outs.iter().any(|&v| known_shape(self.graph, v).map_or(true, |s| count(&s) > 4096));
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

    pub(super) fn elementwise(&mut self, op: ElemOp, node: &Node, shape: &Extents) -> Lowered<Vec<Reg>> {
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
    pub(super) fn choose(&mut self, node: &Node) -> Lowered<Vec<Reg>> {
        let (a, b) = (self.regs(node.ins[1])?, self.regs(node.ins[2])?);
        if a.len() != b.len() || self.value(node.ins[1])?.shape() != self.value(node.ins[2])?.shape() {
            return refuse("branches of different shapes");
        }
        let cond = self.truth_of(node.ins[0])?;
        Ok(a.into_iter().zip(b).map(|(a, b)| self.builder.select(cond, a, b)).collect())
    }

    /// Scalars of `v` in groups: one per element of the result, in the order in which the law reduces them.
    pub(super) fn groups(&mut self, v: Value, axes: &[usize]) -> Lowered<Vec<Vec<Reg>>> {
        let shape: Extents = SmallVec::from_slice(self.value(v)?.shape());
        let regs = self.regs(v)?;
        if let Layout::Lanes(_) = self.layout {
            let trivial = axes.iter().all(|&axis| shape[axis] == 1);
            return if trivial { Ok(vec![regs]) } else { refuse("a reduction over the lanes") };
        }
        Ok(lanes_of(&shape, axes).into_iter().map(|lane| lane.into_iter().map(|at| regs[at]).collect()).collect())
    }

    pub(super) fn reduction(&mut self, op: &Reduce, node: &Node, _: &Extents) -> Lowered<Vec<Reg>> {
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

    pub(super) fn sum_to(&mut self, node: &Node, shape: &Extents) -> Lowered<Vec<Reg>> {
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
}

/// Instructions that an elementwise node is in a kernel; none where it cannot be part of one.
pub(super) fn instructions(graph: &Graph, node: &Node) -> Option<usize> {
    let Op::Elem(op) = &node.op else { return Some(1) };
    let mut builder = Builder::new();
    let mut ins: SmallVec<[Reg; 3]> = SmallVec::new();
    for &v in &node.ins {
        let mem = builder.mem(graph.ty(v).dtype, crate::kernel::Lane::Unit);
        ins.push(builder.load(mem));
    }
    builder.apply(*op, &ins).map(|_| builder.kernel().body.len() - ins.len())
}

/// True for an elementwise node that can be part of a kernel.
pub fn expressible(graph: &Graph, node: &Node) -> bool {
    instructions(graph, node).is_some()
}
