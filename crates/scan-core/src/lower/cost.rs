//! What a step costs as one kernel, and as a list, about: nanoseconds of a current core, to choose between the two.

use super::Lowered;
use super::extents::known_shape;
use super::kinds::{Kind, Kinds};
use super::pieces::segments;
use crate::base::Id;
use crate::ir::{Graph, Node, Scan, Value};
use crate::kernel::distribute::{Distributed, Source, Stage};
use crate::kernel::{Bin, Inst, Kernel, Lane, Loop, Mem, Nest, Op, Un};
use crate::ops::properties::{Cost, Makes};
use crate::plan::list::{Count, InnerKernel, InnerList, Item, Place, Work};
use crate::plan::{LoopKernel, StepList};
use crate::scan::retype::specialised;
use crate::types::shape::count;
use crate::types::{Array, DType, Type};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// An instruction on a vector.
const VECTOR: f64 = 0.3;
/// A call of a kernel: its operands' addresses, its prologue.
const KERNEL: f64 = 35.0;
/// A node of a graph that runs node by node, or a group of them: the result's memory, and the call.
const LAUNCH: f64 = 600.0;
/// A place of the axes around a kernel.
const PLACE: f64 = 9.0;
/// A part that only moves elements, and each run of them.
const MOVE: [f64; 2] = [15.0, 4.0];
/// Instructions of a step that processors keep decoded; and what each further one takes, with values that find no register.
const HELD: usize = 2000;
const DECODED: f64 = 0.3;
/// An element that is read or written by an index.
const INDEX: f64 = 40.0;
/// A sum of exponentials on slices, and each of its elements.
const EXPONENTIALS: [f64; 2] = [120.0, 3.0];
/// What other ops take depends on what they are: no list of such is taken for quicker.
const UNKNOWN: f64 = f64::INFINITY;
/// Values that find room in registers from step to step, and what another one takes that lies in memory meanwhile.
const REGISTERS: usize = 14;
const SPILL: f64 = 0.5;
/// What it takes in a kernel of many lanes to find an operand and to move on from it, in instructions: few have a register.
const POINTER: f64 = 3.0;
/// The same, and to read or write its elements one by one.
const APART: f64 = 14.0;
/// Instructions for vectors that make a quotient or a remainder of integers.
const DIVISION: f64 = 25.0;
/// What a kernel of a few lanes takes to begin, in a list, and each instruction of it.
const CALL_OF_A_PART: f64 = 10.0;
const WAITS: f64 = 0.6;
/// Instructions, rather than to store their result and to load it again as a lane.
const MUCH: f64 = 12.0;
/// Lanes of a vector.
const WIDTH: usize = 8;

/// Kernels of so many instructions are compared with a list,
const LONG: usize = 400;
/// and those of rows apart whose steps take so many nanoseconds;
const SLOW: f64 = 500.0;
/// it must be so many times as quick. Estimates of lists are rather too high than too low, but where steps of loops are guessed.
const MARGIN: f64 = 1.2;
const KNOWN_MARGIN: f64 = 0.9;

impl LoopKernel {
    /// True where a list of kernels may be quicker.
    pub fn is_long(&self) -> bool {
        let apart = self.kernel.mems.iter().any(|m| matches!(m.lane, Lane::Apart(_)));
        self.kernel.size() >= LONG || apart && self.nanoseconds() > SLOW
    }
    /// False where no list is quicker, whatever it looks like: where arrays have hardly any elements for each lane, an instruction for all of an array
    /// takes as long as those of the kernel for each.
    pub fn gains_by_arrays(&self, scan: &Scan, types: &[Type], values: &[Option<Array>]) -> bool {
        let Ok(body) = specialised(&scan.body, types, values) else { return true };
        let kinds = Kinds::new(scan, &body);
        let (mut nodes, mut elements) = (0.0, 0.0);
        for node in kinds.nodes(&body).filter(|n| n.op.properties().cost != Cost::Free && kinds.of(n.outs[0]) == Kind::Step) {
            let cost = node.op.properties().cost;
            let small = matches!(cost, Cost::Simple | Cost::Function | Cost::Folds | Cost::Reads | Cost::Walks | Cost::Product);
            let size = |v: &Value| known_shape(&body, *v).map(|shape| count(&shape));
            let sizes = |values: &[Value]| values.iter().map(size).collect::<Lowered<Vec<usize>>>().ok().filter(|_| small);
            let (Some(given), Some(made)) = (sizes(&node.ins), sizes(&node.outs)) else { return true };
            // A product takes an instruction for each pair of elements at most.
            let given = if cost == Cost::Product { given.iter().product() } else { given.into_iter().max().unwrap_or(1) };
            let most = made.into_iter().fold(given, usize::max);
            (nodes, elements) = (nodes + 1.0, elements + (most as f64 / self.lanes as f64).max(1.0));
        }
        let own = self.nanoseconds();
        MARGIN * (KERNEL + own * nodes / f64::max(elements, 1.0)) < own
    }
    /// Bools that tell whether it did what the law does.
    pub fn flags(&self) -> usize {
        if self.guarded { self.lanes } else { 0 }
    }
    /// What a step takes.
    fn nanoseconds(&self) -> f64 {
        if self.lanes > 1 {
            let found = |m: &Mem| if let Lane::Apart(_) = m.lane { APART } else { POINTER };
            let of_a_block = self.kernel.body.iter().map(vector).sum::<f64>() + self.kernel.mems.iter().map(found).sum::<f64>();
            return VECTOR * of_a_block * self.lanes.div_ceil(WIDTH) as f64;
        }
        let spilled = self.kernel.carries.len().saturating_sub(REGISTERS);
        taken(&self.kernel) + SPILL * spilled as f64
    }
}

/// True where stages that run so many steps at a time take less than the kernel of one lane that they are made of. What waits for the step before
/// takes as long as its chain.
pub(crate) fn worth_stages(kernel: &Kernel, stages: &Distributed, steps: usize) -> bool {
    let chain = stages.chain(kernel);
    let before = taken(kernel).max(chain);
    let (lanes, ordered): (Vec<_>, Vec<_>) = stages.stages.iter().partition(|stage| stage.lanes);
    let apart = |stage: &Stage| stage.operands.iter().filter(|source| matches!(source, Source::Between(_))).count() as f64;
    let moved: f64 = stages.stages.iter().map(|stage| BETWEEN * apart(stage) + CALL / steps as f64).sum();
    let strided = |stage: &Stage| stage.kernel.mems.iter().filter(|mem| matches!(mem.lane, Lane::Apart(_))).count() as f64;
    let after = lanes.iter().map(|stage| taken(&stage.kernel) / SPEEDUP + STRIDED * strided(stage)).sum::<f64>()
        + ordered.iter().map(|stage| taken(&stage.kernel)).sum::<f64>().max(chain)
        + moved;
    before > MARGIN * after
}

/// What a value that a stage hands to another takes per step and side, what one that is apart from that of the next step, a call of a stage, and how
/// many times as quick lanes are.
const BETWEEN: f64 = 0.3;
const STRIDED: f64 = 0.15;
const CALL: f64 = 50.0;
const SPEEDUP: f64 = 4.0;

/// What a step of a kernel of one lane takes, one instruction after the other.
fn taken(kernel: &Kernel) -> f64 {
    let all: f64 =
        kernel.body.iter().map(|inst| if let Op::Loop(inner) = &inst.op { looped_within(kernel, inner) } else { scalar(inst) }).sum();
    all + DECODED * kernel.body.len().saturating_sub(HELD) as f64
}

/// The same of all steps of a loop in it.
fn looped_within(kernel: &Kernel, inner: &Loop) -> f64 {
    let steps = if let Op::Const(n) = kernel.body[inner.steps].op { n as f64 } else { Count::GUESSED as f64 };
    steps * taken(&inner.kernel)
}

/// True where it runs a loop of which it is not known how many steps that takes.
fn guesses(kernel: &Kernel) -> bool {
    let known =
        |inner: &Loop| inner.kernel.stop.is_none() && matches!(kernel.body[inner.steps].op, Op::Const(_)) && !guesses(&inner.kernel);
    kernel.body.iter().any(|inst| matches!(&inst.op, Op::Loop(inner) if !known(inner)))
}

/// The instructions that one is for vectors.
fn vector(inst: &Inst) -> f64 {
    if matches!(inst.op, Op::Bin(bin, ..) if bin.divides_integers()) { DIVISION } else { 1.0 }
}

/// What an instruction takes in a kernel of one lane, of which several run at once.
fn scalar(inst: &Inst) -> f64 {
    match inst.op {
        Op::Call(..) => 10.0,
        Op::Bin(Bin::Div, ..) | Op::Un(Un::Sqrt, _) => 1.5,
        Op::Bin(bin, ..) if bin.divides_integers() => 2.0,
        Op::Select(..) => 0.7,
        Op::Cmp(..) => 0.4,
        _ if inst.dtype == DType::Bool => 0.4,
        _ => 0.15,
    }
}

impl StepList {
    /// True where its steps take less than those of the kernel, by more than estimates are off.
    pub fn is_quicker(&self, kernel: &LoopKernel) -> bool {
        let margin = if guesses(&kernel.kernel) { MARGIN } else { KNOWN_MARGIN };
        self.nanoseconds() * margin < kernel.nanoseconds()
    }
    /// What a step takes; infinitely much where it calls ops of which that is not known well.
    fn nanoseconds(&self) -> f64 {
        self.taken(&|_, _| UNKNOWN)
    }
    /// What a step takes beside nodes that go one by one: what it calls takes as much there.
    pub fn beside_nodes(&self) -> f64 {
        self.taken(&|op, item| {
            let elements = |places: &[Place]| places.iter().map(|x| count(&x.shape) as f64).collect::<SmallVec<[f64; 4]>>();
            LAUNCH + by_law(op, &elements(&item.ins), elements(&item.outs).iter().sum())
        })
    }
    fn taken(&self, call: Called) -> f64 {
        self.items.iter().map(|x| item(x, call)).sum::<f64>() + MOVE[0] * self.writes.len() as f64
    }
}

/// What a graph of known extents takes node by node, its elementwise nodes in groups.
pub fn walked(graph: &Graph) -> f64 {
    let live = graph.needed(graph.results());
    let grouped = |node: &Node| matches!(node.op.properties().cost, Cost::Simple | Cost::Function);
    let others = graph.nodes().iter().filter(|&node| !grouped(node));
    let stored: FxHashSet<Value> = others.flat_map(|node| node.ins.iter()).chain(graph.results()).copied().collect();
    let launched = |node: &Node| match node.op.properties().cost {
        Cost::Free => 0.0,
        _ if grouped(node) && !node.outs.iter().any(|v| stored.contains(v)) => 0.0,
        _ => LAUNCH,
    };
    let nodes = graph.nodes().enumerate().filter(|(id, _)| live[id.idx()]);
    nodes.map(|(_, node)| launched(node) + walked_node(graph, node)).sum()
}

fn walked_node(graph: &Graph, node: &Node) -> f64 {
    let elements = |v: &Value| graph.ty(*v).dims.iter().map(|d| d.value().unwrap_or(0)).product::<usize>() as f64;
    let ins: SmallVec<[f64; 4]> = node.ins.iter().map(elements).collect();
    by_law(&node.op, &ins, node.outs.iter().map(elements).sum())
}

/// What an op takes by the law, given the numbers of elements of its inputs and of its results.
fn by_law(op: &crate::ir::Op, ins: &[f64], out: f64) -> f64 {
    let most = ins.iter().copied().fold(0.0, f64::max);
    let broadcasts = ins.iter().any(|&n| n > 1.0 && n < out);
    match op.properties().cost {
        Cost::Free if op.properties().makes == Makes::Given => 0.0,
        Cost::Free => 50.0,
        Cost::Simple => out * if broadcasts { 0.6 } else { 0.1 },
        Cost::Function => out * 3.0,
        Cost::Product => 0.1 * most * out.sqrt(),
        Cost::Exponentials => most * 5.0,
        _ => most.max(out) * 0.6,
    }
}

/// What a call of an op takes.
type Called<'a> = &'a dyn Fn(&crate::ir::Op, &Item) -> f64;

fn item(item: &Item, call: Called) -> f64 {
    match &item.work {
        Work::Nest(kernel) => nest(kernel, kernel.steps),
        Work::Move(runs) | Work::Add(runs) => MOVE[0] + runs.iter().map(|run| MOVE[1] + 0.1 * run.n as f64).sum::<f64>(),
        Work::MatMul([m, k, n]) => KERNEL + 0.1 * (m * k * n) as f64,
        Work::Read(_) | Work::Slice(_) | Work::Write(..) => INDEX + item.outs.iter().map(|out| count(&out.shape)).sum::<usize>() as f64,
        Work::Guard(_) => MOVE[0],
        Work::Within { .. } => MOVE[0] + 0.3 * count(&item.ins[0].shape) as f64,
        Work::Loop(inner) => looped(inner),
        Work::For(inner) => listed(inner, call),
        Work::Direct(_, op) => direct(op, item, call),
        Work::Call(op, _) => call(op, item),
    }
}

/// An op on slices.
fn direct(op: &crate::ir::Op, item: &Item, call: Called) -> f64 {
    let most = item.ins.iter().map(|x| count(&x.shape)).max().unwrap_or(0) as f64;
    match op.properties().cost {
        Cost::Exponentials => EXPONENTIALS[0] + EXPONENTIALS[1] * most,
        _ => call(op, item),
    }
}
fn nest(nest: &Nest, steps: usize) -> f64 {
    let run = VECTOR * (nest.kernel.size() * steps * nest.lanes.div_ceil(WIDTH)) as f64;
    KERNEL + nest.places() as f64 * (run + if nest.outer.is_empty() { 0.0 } else { PLACE })
}
/// What a walk takes longer, of so many instructions at each place, that is cut along its last axis at some places: each part is a kernel, and one of
/// a few lanes waits for each of its instructions.
pub(super) fn cut_short(space: &[usize], cuts: &BTreeSet<(usize, usize)>, instructions: usize) -> f64 {
    let Some((&n, around)) = space.split_last() else { return 0.0 };
    let few = segments(space, cuts).into_iter().filter(|&lanes| lanes < WIDTH && lanes < n);
    few.map(|_| CALL_OF_A_PART + WAITS * (instructions * count(around)) as f64).sum()
}
/// What it takes to put an array together of so many pieces.
pub(super) fn joined(pieces: usize, whole: &[usize]) -> f64 {
    (MOVE[0] + MOVE[1]) * pieces as f64 + 0.1 * count(whole) as f64
}
/// True for a nest of one lane that computes so much of each of the elements that it reduces for a place that it is rather computed with the
/// elements as lanes, into memory.
pub(super) fn computes_much(nest: &Nest, elements: usize) -> bool {
    let size = nest.kernel.size() as f64;
    let of_an_element = size / elements.max(1) as f64;
    let saved = size - of_an_element * elements.div_ceil(WIDTH) as f64 - elements as f64;
    let many = VECTOR * saved * (nest.steps * nest.places()) as f64 > 2.0 * KERNEL;
    nest.lanes == 1 && elements > 1 && of_an_element > MUCH && many
}
fn looped(inner: &InnerKernel) -> f64 {
    let steps = inner.count.about();
    // One at a time where votes are counted.
    nest(&inner.nest, steps) + if inner.votes.is_some() { KERNEL * steps.saturating_sub(1) as f64 } else { 0.0 }
}
fn listed(inner: &InnerList, call: Called) -> f64 {
    inner.count.about() as f64 * inner.items.iter().map(|x| item(x, call)).sum::<f64>()
}
