//! What a kernel of a fusion computes: the fusion's graph, once or for each of some elements, as instructions.

use super::fusions::Fusion;
use super::nodes::Lowering;
use super::pass::{Axes, Of, Plan};
use super::value::{Elements, Layout, Table, Val};
use super::{Lowered, refuse};
use crate::ir::op::ReduceKind;
use crate::kernel::{CarryId, Cmp, Lane, MemId, Reg, Un};
use crate::scalar::ElemOp;
use crate::types::DType;
use smallvec::smallvec;

/// Instructions of a kernel, about, before its graph is computed for no more elements.
const LARGE: usize = 1500;

/// An operand of a pass: what, its first element, how it depends on the lane, its stride along the steps and the axes around.
pub(super) type Given = (Of, isize, Lane, isize, Vec<isize>);

/// What a kernel computes, with the values of the fusion's graph as its copies have them.
pub(super) struct Kerneled<'a> {
    /// The kernel under construction.
    pub lowering: Lowering<'a>,
    /// Its operands.
    pub given: Vec<Given>,
    /// The results of each copy.
    pub values: Vec<Reg>,
}

/// The graph of a fusion, once for each of some elements along a reduced axis.
pub(super) struct Copies<'a> {
    fusion: &'a Fusion,
    /// What is read: the leaf, the elements before its first, and how it depends on the lane.
    loads: Vec<(usize, isize, Lane)>,
    /// Per copy, which of them its leaves are.
    copies: Vec<Vec<usize>>,
}

impl<'a> Copies<'a> {
    pub fn new(fusion: &'a Fusion, axes: &Axes, lanes: Option<usize>, along: Option<usize>, copies: usize) -> Lowered<Copies<'a>> {
        Copies::made(fusion, axes, lanes, along.map(|a| (a, 0)), (None, copies))
    }
    /// Of the elements from one on.
    pub fn behind(fusion: &'a Fusion, axes: &Axes, lanes: Option<usize>, along: (usize, usize), copies: usize) -> Lowered<Copies<'a>> {
        Copies::made(fusion, axes, lanes, Some(along), (None, copies))
    }
    /// Once for each place along an axis, or once, the lanes being elements of the reduced axis from one on.
    pub fn cut(fusion: &'a Fusion, axes: &Axes, (lanes, from): (usize, usize), along: Option<usize>) -> Lowered<Copies<'a>> {
        let copies = along.map_or(1, |axis| axes.extents[axis]);
        Copies::made(fusion, axes, Some(lanes), along.map(|a| (a, 0)), (Some((lanes, from)), copies))
    }
    /// `along`: the axis whose elements the copies are, and the first of them. `cut`: an axis that is walked from an element on.
    fn made(
        fusion: &'a Fusion,
        axes: &Axes,
        lanes: Option<usize>,
        along: Option<(usize, usize)>,
        (cut, copies): (Option<(usize, usize)>, usize),
    ) -> Lowered<Copies<'a>> {
        if copies * fusion.graph.nodes().len() > LARGE {
            return refuse("a reduction of large expressions");
        }
        let mut all = Copies { fusion, loads: vec![], copies: vec![] };
        for copy in 0..copies {
            let mut own = vec![];
            for leaf in 0..fusion.leaves.len() {
                let stride = along.map_or(0, |(axis, _)| axes.operands[leaf].1[axis]);
                let shared = all.copies.first().map(|first| first[leaf]).filter(|_| stride == 0);
                own.push(shared.unwrap_or_else(|| {
                    let skipped = cut.map_or(0, |(axis, from)| from as isize * axes.operands[leaf].1[axis]);
                    let places = skipped + along.map_or(0, |(_, from)| (from + copy) as isize * stride);
                    all.loads.push((leaf, axes.operands[leaf].0 + places, axes.lane(leaf, lanes)));
                    all.loads.len() - 1
                }));
            }
            all.copies.push(own);
        }
        Ok(all)
    }

    /// As instructions, with the fusion's leaves as operands that move along an axis by so many elements of it a step.
    pub fn lower(&self, plan: &Plan, steps: Option<usize>, outer: &[usize], by: usize) -> Lowered<Kerneled<'a>> {
        self.lower_by(plan, |leaf| plan.stride(leaf, steps) * by as isize, outer)
    }
    pub fn lower_by(&self, plan: &Plan, step: impl Fn(usize) -> isize, outer: &[usize]) -> Lowered<Kerneled<'a>> {
        let graph = &self.fusion.graph;
        let mut k = Kerneled { lowering: Lowering::new(graph, Layout::Lanes(1)), given: vec![], values: vec![] };
        let mut loaded = vec![];
        for &(leaf, first, lane) in &self.loads {
            let (step, outside) = (step(leaf), plan.along_axes(leaf, outer));
            loaded.push(match self.fusion.leaves[leaf].table {
                Some(elements) => {
                    let table = k.table((Of::Leaf(leaf), first, Lane::Uniform, step, outside), self.fusion.element(leaf), elements);
                    Val::Table(smallvec![elements], table)
                }
                None => {
                    let value = k.load_beside((Of::Leaf(leaf), first, lane, step, outside), self.fusion.element(leaf));
                    Val::Regs(smallvec![1], vec![value])
                }
            });
        }
        for copy in &self.copies {
            k.lowering.clear();
            graph.params().iter().zip(copy).for_each(|(&p, &load)| k.lowering.bind(p, loaded[load].clone()));
            k.lowering.run(graph.results())?;
            for &v in graph.results() {
                let value = k.lowering.regs(v)?[0];
                k.values.push(value);
            }
        }
        Ok(k)
    }
}

impl Kerneled<'_> {
    fn mem(&mut self, given: Given, dtype: DType) -> MemId {
        let mem = self.lowering.builder.mem(dtype, given.2);
        self.given.push(given);
        mem
    }
    pub fn load(&mut self, given: Given, dtype: DType) -> Reg {
        let mem = self.mem(given, dtype);
        self.lowering.builder.load(mem)
    }
    /// An operand of which elements are read by number, none outside it.
    fn table(&mut self, given: Given, dtype: DType, elements: usize) -> Table {
        self.given.push(given);
        let mem = self.lowering.builder.table(dtype, elements, None);
        Table { elements: Elements::Operand(mem), writes: vec![], within: true }
    }
    /// The same, of which other elements are read, too: found by way of these.
    fn load_beside(&mut self, given: Given, dtype: DType) -> Reg {
        let alike = |g: &Given| (g.0, g.2, g.3, &g.4) == (given.0, given.2, given.3, &given.4);
        let other = self.given.iter().position(alike).map(|at| (MemId(at as u32), given.1 - self.given[at].1));
        let mem = self.mem(given, dtype);
        if let Some((other, elements)) = other
            && let Ok(bytes) = i32::try_from(elements * dtype.size() as isize)
        {
            self.lowering.builder.set_beside(mem, other, bytes);
        }
        self.lowering.builder.load(mem)
    }
    pub fn store(&mut self, given: Given, value: Reg) {
        let mem = self.mem(given, self.lowering.builder.dtype(value));
        self.lowering.builder.store(mem, value);
    }
    /// The number of the operand, the carry and its value.
    pub fn carry(&mut self, given: Given, dtype: DType) -> (usize, CarryId, Reg) {
        let mem = self.mem(given, dtype);
        let (carry, now) = self.lowering.builder.carry(mem);
        (self.given.len() - 1, carry, now)
    }
    fn converted(&mut self, x: Reg, dtype: DType) -> Reg {
        self.lowering.builder.convert(x, dtype)
    }
    /// A partial result and one more element.
    pub fn step(&mut self, kind: ReduceKind, dtype: DType, now: Reg, x: Reg) -> Lowered<Reg> {
        let x = self.converted(x, dtype);
        let op = match kind {
            ReduceKind::Sum => ElemOp::Add,
            ReduceKind::Prod => ElemOp::Mul,
            ReduceKind::Any => ElemOp::Or,
            ReduceKind::All => ElemOp::And,
            ReduceKind::Max | ReduceKind::Min => return self.lowering.reduce(kind, dtype, &[now, x]),
        };
        self.lowering.elem(op, dtype, &[now, x])
    }
    /// So few values as the law reduces them.
    pub fn reduced(&mut self, kind: ReduceKind, dtype: DType, values: &[Reg]) -> Lowered<Reg> {
        let values: Vec<Reg> = values.iter().map(|&x| self.converted(x, dtype)).collect();
        self.lowering.reduce(kind, dtype, &values)
    }
    /// Partial results in any order.
    pub fn all(&mut self, kind: ReduceKind, dtype: DType, parts: &[Reg]) -> Lowered<Reg> {
        parts[1..].iter().try_fold(parts[0], |all, &x| self.step(kind, dtype, all, x))
    }
    /// The law's tree over eight partial sums or products.
    pub fn tree(&mut self, kind: ReduceKind, dtype: DType, parts: &[Reg]) -> Lowered<Reg> {
        let op = if kind == ReduceKind::Prod { ElemOp::Mul } else { ElemOp::Add };
        let joined = self.lowering.joined(op, dtype, std::array::from_fn(|i| parts.get(i).copied()))?;
        joined.map_or_else(|| refuse("no partial sums"), Ok)
    }
    /// Hands on the first extreme and the number of its step.
    pub fn first(&mut self, largest: bool, dtype: DType, x: Reg, value: (CarryId, Reg), index: (CarryId, Reg)) -> Lowered<()> {
        let stays = self.lowering.stays(largest, dtype, value.1, x)?;
        let step = self.lowering.builder.step();
        let (best, at) = (self.lowering.builder.select(stays, value.1, x), self.lowering.builder.select(stays, index.1, step));
        self.lowering.builder.set_next(value.0, best);
        self.lowering.builder.set_next(index.0, at);
        Ok(())
    }
    /// The first of several extremes that were found in rows: value and number of the row of each.
    pub fn first_of(&mut self, largest: bool, dtype: DType, values: &[Reg], rows: &[Reg]) -> Lowered<(Reg, Reg)> {
        let width = self.lowering.builder.integer(DType::I64, values.len() as i64);
        let mut best: Option<(Reg, Reg)> = None;
        for (i, (&x, &row)) in values.iter().zip(rows).enumerate() {
            let lane = self.lowering.builder.integer(DType::I64, i as i64);
            let start = self.lowering.elem(ElemOp::Mul, DType::I64, &[row, width])?;
            let at = self.lowering.elem(ElemOp::Add, DType::I64, &[start, lane])?;
            best = Some(match best {
                None => (x, at),
                Some((value, index)) => {
                    // Where neither is better the one that comes first stays.
                    let not_better = self.lowering.stays(largest, dtype, value, x)?;
                    let not_worse = self.lowering.stays(largest, dtype, x, value)?;
                    let later = self.lowering.builder.cmp(Cmp::Le, index, at);
                    let worse = self.lowering.builder.un(Un::Not, not_worse);
                    let behind = self.lowering.elem(ElemOp::Or, DType::Bool, &[worse, later])?;
                    let stays = self.lowering.elem(ElemOp::And, DType::Bool, &[not_better, behind])?;
                    (self.lowering.builder.select(stays, value, x), self.lowering.builder.select(stays, index, at))
                }
            });
        }
        best.map_or_else(|| refuse("no elements"), Ok)
    }
}
