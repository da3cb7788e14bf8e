//! A loop whose step is a list of kernels, moves, products and calls on memory that is laid out before it begins.

use super::votes::Votes;
use super::window::Window;
use crate::base::Span;
use crate::ir::op::Write;
use crate::ir::{Graph, Op, SeqId, StateId};
use crate::kernel::{LEVELS, Nest};
use crate::ops::direct::Direct;
use crate::ops::select::Selector;
use crate::types::shape::{Extents, count};
use crate::types::{DType, Type};
use smallvec::SmallVec;
use std::sync::Arc;

/// Where a value of a step lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum At {
    /// In a temporary of the step.
    Slot(usize),
    /// In the row of a sequence that the step sees.
    Seq(SeqId),
    /// In a value that is computed before the loop.
    Before(usize),
    /// In row `step + offset` of a state's buffer.
    Row(StateId, usize),
}

/// The temporary that holds the number of the step (i64).
pub(crate) const STEP: usize = 0;

/// A value of a step in memory, row-major.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Where.
    pub at: At,
    /// How many elements lie there before its first.
    pub first: usize,
    /// Its extents.
    pub shape: Extents,
    /// Type of its elements.
    pub dtype: DType,
    /// Elements from one step of each loop in the step to the next.
    pub along: [isize; LEVELS - 1],
}

impl Place {
    /// A whole memory from its first element on, the same in all steps of loops in the step.
    pub fn whole(at: At, shape: Extents, dtype: DType) -> Place {
        Place { at, first: 0, shape, dtype, along: [0; LEVELS - 1] }
    }
    /// Where steps read their number.
    pub fn step() -> Place {
        Place::whole(At::Slot(STEP), Extents::new(), DType::I64)
    }
    /// Bytes of its elements.
    pub fn bytes(&self) -> usize {
        count(&self.shape) * self.dtype.size()
    }
}

/// Elements that lie beside each other after a move, and at equal distances before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Which input; `None`: zeros.
    pub input: Option<usize>,
    /// First element there.
    pub from: usize,
    /// First element of the result.
    pub to: usize,
    /// How many.
    pub n: usize,
    /// How far apart they lie in the input.
    pub step: isize,
}

impl Run {
    /// The first elements of the first input, so many, to the first of the result.
    pub fn copy(n: usize) -> Run {
        Run { input: Some(0), from: 0, to: 0, n, step: 1 }
    }
}

/// An integer of a step that says where a slice begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Begin {
    /// Which operand it is.
    pub input: usize,
    /// Elements that lie between two places that it may name.
    pub apart: usize,
    /// The last such place.
    pub last: usize,
    /// What is added to a negative one: the extent where it names a place from the end.
    pub from_end: usize,
}

/// Elements from a place on that the step computes, or the law runs the loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice {
    /// The elements, if all integers are 0.
    pub runs: Vec<Run>,
    /// The integers.
    pub begins: SmallVec<[Begin; 2]>,
}

impl Slice {
    /// The number of elements before its first; `None` where one of its integers names no place that it may.
    pub fn first(&self, integer: impl Fn(usize) -> i64) -> Option<usize> {
        let before = |b: &Begin| {
            let named = integer(b.input);
            let place = if named < 0 { named.saturating_add(b.from_end as i64) } else { named };
            usize::try_from(place).ok().filter(|&place| place <= b.last).map(|place| place * b.apart)
        };
        self.begins.iter().map(before).sum()
    }
}

/// A part of a step.
#[derive(Clone)]
pub(crate) enum Work {
    /// A kernel inside counted loops; operands are the inputs, then what it writes.
    Nest(Box<Nest>),
    /// Elements moved.
    Move(Vec<Run>),
    /// Elements of the one input added to those of the result.
    Add(Vec<Run>),
    /// A product of two matrices, or of a matrix and a vector: `[m, k, n]`.
    MatMul([usize; 3]),
    /// Elements read by an index: operands are the array, then the index.
    Read(Selector),
    /// Elements written by an index into the result: operands are what is written, then the index.
    Write(Selector, Write),
    /// Elements read at equal distances from a place that the step computes: operands are the array, then the integers.
    Slice(Box<Slice>),
    /// An op on slices.
    Direct(Direct, Op),
    /// An op, as the law evaluates it.
    Call(Op, Vec<Type>),
    /// An integer lies between these two, or the law runs the loop.
    Guard([usize; 2]),
    /// Integers name places of an axis of an array: the error of one that does not is that of the node.
    Within {
        /// The axis.
        axis: usize,
        /// Its extent.
        extent: usize,
    },
    /// A loop that is one kernel; operands are those that it reads, then those that it writes.
    Loop(Box<InnerKernel>),
    /// A loop whose step is a list.
    For(Box<InnerList>),
}

/// A part of a step with its operands.
#[derive(Clone)]
pub(crate) struct Item {
    /// What.
    pub work: Work,
    /// Inputs.
    pub ins: Vec<Place>,
    /// Results.
    pub outs: Vec<Place>,
    /// Where the user wrote it.
    pub span: Span,
}

/// How many steps a loop in a step runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Count {
    /// So many.
    Known(usize),
    /// As many as an integer says, at most so many.
    Read(Place, usize),
}

/// A loop that is one kernel: as data, or with what else runs it.
#[derive(Clone)]
pub(crate) struct InnerKernel<N = Nest> {
    /// The loop's name.
    pub name: Option<Arc<str>>,
    /// Its kernel with as many steps as it may run.
    pub nest: N,
    /// Where the kernel's operands lie, in its order.
    pub operands: Vec<Place>,
    /// Its number of steps.
    pub count: Count,
    /// Where it tells that it has stopped.
    pub stopped: Option<Place>,
    /// Where its lanes vote on that at each step, and which votes stop it.
    pub votes: Option<(Place, Votes)>,
    /// Where it tells, in a bool for each lane, that it could not do what the law does, which then runs the loop around.
    pub failed: Option<Place>,
    /// Where it tells how many steps it ran.
    pub ran: Option<Place>,
    /// Where the user wrote the loops that its steps run.
    pub loops: Vec<Span>,
}

/// A loop in a step whose own step is a list, of parts as data, or with what runs them.
#[derive(Clone)]
pub(crate) struct InnerList<I = Item> {
    /// The loop's name.
    pub name: Option<Arc<str>>,
    /// How deep it stands: 1 for a loop in a step of the outermost one.
    pub level: usize,
    /// Its number of steps.
    pub count: Count,
    /// One step.
    pub items: Vec<I>,
    /// Rows written after the items: from where, and where to.
    pub writes: Vec<[Place; 2]>,
    /// The value that stops the loop.
    pub stop: Option<Place>,
    /// Where steps read their number.
    pub step: Place,
    /// Where it tells how many steps it ran.
    pub ran: Option<Place>,
}

/// Memory of a step, in bytes from its beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Temporary {
    /// The first.
    pub at: usize,
    /// How many.
    pub bytes: usize,
}

/// A loop whose step is a list.
#[derive(Clone)]
pub struct StepList {
    /// What is computed before the loop, from the parameters of the body (of which it uses the captured ones alone).
    pub before: Graph,
    /// One step.
    pub(crate) items: Vec<Item>,
    /// Where its temporaries lie: first that of the number of the step. None before they are laid out.
    pub temporaries: Vec<Temporary>,
    /// How the states are kept.
    pub windows: Vec<Window>,
    /// Per state: a step writes over the row that it read.
    pub in_place: Vec<bool>,
    /// Rows written after the items: state, offset, value.
    pub writes: Vec<(StateId, usize, Place)>,
    /// The value that stops the loop.
    pub stop: Option<Place>,
    /// The step has effects, which no second run may repeat.
    pub impure: bool,
    /// It computes what only a branch needs and what may fail: where it does, the law tells whether that counts.
    pub eager: bool,
}

impl Item {
    /// Calls `visit` with all places, those of loops in the step too.
    pub(crate) fn places(&mut self, visit: &mut dyn FnMut(&mut Place)) {
        self.ins.iter_mut().chain(&mut self.outs).for_each(&mut *visit);
        match &mut self.work {
            Work::Loop(inner) => inner.places(visit),
            Work::For(inner) => inner.places(visit),
            _ => {}
        }
    }
}

impl Count {
    /// Steps of a loop of which nothing is known.
    pub const GUESSED: usize = 16;
    /// So many at most.
    pub fn most(&self) -> usize {
        match self {
            Count::Known(n) | Count::Read(_, n) => *n,
        }
    }
    /// So many as far as one can tell.
    pub fn about(&self) -> usize {
        match self {
            Count::Known(n) => *n,
            Count::Read(_, n) => (*n).min(Count::GUESSED),
        }
    }
    /// Where it is read.
    pub fn place(&self) -> Option<&Place> {
        if let Count::Read(place, _) = self { Some(place) } else { None }
    }
    fn place_mut(&mut self) -> Option<&mut Place> {
        if let Count::Read(place, _) = self { Some(place) } else { None }
    }
}

impl InnerKernel {
    /// The same, run by something else.
    pub fn with<N>(self, nest: impl FnOnce(Nest) -> N) -> InnerKernel<N> {
        let InnerKernel { name, nest: own, operands, count, stopped, votes, failed, ran, loops } = self;
        InnerKernel { name, nest: nest(own), operands, count, stopped, votes, failed, ran, loops }
    }
    /// Calls `visit` with all places.
    pub fn places(&mut self, visit: &mut dyn FnMut(&mut Place)) {
        self.operands
            .iter_mut()
            .chain(&mut self.stopped)
            .chain(self.votes.as_mut().map(|votes| &mut votes.0))
            .chain(&mut self.failed)
            .chain(&mut self.ran)
            .chain(self.count.place_mut())
            .for_each(visit);
    }
}

impl InnerList {
    /// The same, whose parts are run by something else.
    pub fn with<I>(self, item: impl FnMut(Item) -> I) -> InnerList<I> {
        let InnerList { name, level, count, items, writes, stop, step, ran } = self;
        InnerList { name, level, count, items: items.into_iter().map(item).collect(), writes, stop, step, ran }
    }
    /// Calls `visit` with all places.
    pub fn places(&mut self, visit: &mut dyn FnMut(&mut Place)) {
        self.items.iter_mut().for_each(|item| item.places(visit));
        let others = self.writes.iter_mut().flatten().chain(&mut self.stop).chain(self.count.place_mut());
        others.chain([&mut self.step]).chain(&mut self.ran).for_each(visit);
    }
}

impl StepList {
    /// Calls `visit` with all places.
    pub(crate) fn places(&mut self, visit: &mut dyn FnMut(&mut Place)) {
        self.items.iter_mut().for_each(|item| item.places(visit));
        self.writes.iter_mut().map(|w| &mut w.2).chain(&mut self.stop).for_each(visit);
    }
    /// Bytes of all temporaries.
    pub fn memory(&self) -> usize {
        self.temporaries.iter().map(|t| t.at + t.bytes).max().unwrap_or(0)
    }
    /// True where a loop in the step is no part of the list, but called.
    pub fn calls_loops(&self) -> bool {
        self.items.iter().any(|item| matches!(&item.work, Work::Call(Op::Scan(_), _)))
    }
}
