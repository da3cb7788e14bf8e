//! Rows of loops in a step, as many as an integer of the step says, in memory that has room for as many as there may be.
//!
//! What such a loop returns has an extent that is known only when the step runs. Here it becomes an array of a known extent, of whose rows
//! the first ones count, and their number an integer of the step. Slices, reversals and extents are then sums of integers, an element is
//! read at a place that is computed, and a loop that goes through the rows reads them by index:
//!
//! ```text
//! h = scan n { … keep all }          h: [n + 1]        h: [most + 1], of which n + 1 rows count
//! g = scan n { seq x = h[:n] reversed; … }             g = scan n { const h; const last = n − 1;  x = h[last − t]; … }
//! ```
//!
//! Only where it is certain that n lies between 1 and a number that is known, and that all that is read is there.

mod made;
mod pieces;
mod ranges;
mod row;
mod steps;

use self::pieces::{Of, Piece, Rows};
use self::ranges::{Ranges, Sum};
use super::Lowered;
use super::ends::reads_end;
use super::extents::known_shape;
use crate::base::{Diagnostic, Id, Result};
use crate::ir::op::{NativeOp, NativeRef, Outs};
use crate::ir::{Def, EvalCx, Graph, Keep, Node, Op, Scan, Value};
use crate::ops::index::Pattern;
use crate::types::{Array, DType, Dim, Type};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A loop whose number of steps nothing bounds runs so many at most.
pub(super) const UNBOUNDED: usize = if usize::BITS < 64 { 1 << 28 } else { 1 << 40 };

/// A loop in a step that runs between 1 and so many steps; rows that it keeps lie in arrays that have room for all of them. One that hands on
/// its initial rows alone may also run none.
pub(super) struct Roomy {
    /// The loop.
    pub scan: Arc<Scan>,
    /// So many steps at most.
    pub most: usize,
    /// That is certain; else it is to be looked at before it runs.
    pub sure: bool,
    /// It may run no step: what is read of it is then what it began with.
    pub rests: bool,
    /// The law may run more: that it ended before is to be looked at.
    pub cut: bool,
    types: Outs<Type>,
}

impl Roomy {
    /// As an op.
    fn into_op(self) -> Op {
        Op::Native(NativeRef(Arc::new(self)))
    }
    /// As an op, which gives values of such types.
    pub fn op(scan: Arc<Scan>, (most, sure): (usize, bool), types: Outs<Type>) -> Op {
        Roomy { scan, most, sure, rests: false, cut: false, types }.into_op()
    }
    /// One that may run no step, and of which it is to be looked at that it runs so many at most, as an op.
    pub fn open(scan: Arc<Scan>, most: usize, types: Outs<Type>) -> Op {
        Roomy { scan, most, sure: false, rests: true, cut: false, types }.into_op()
    }
}

impl NativeOp for Roomy {
    fn name(&self) -> &str {
        "scan"
    }
    fn types(&self) -> Outs<Type> {
        self.types.clone()
    }
    fn eval(&self, _: &mut EvalCx, _: &mut [Array]) -> Result<Outs<Array>> {
        Err(Diagnostic::internal("a loop that is to be part of a list"))
    }
    fn is_loop(&self) -> bool {
        true
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// Such a loop, if an op is one.
pub(super) fn roomy(op: &Op) -> Option<&Roomy> {
    if let Op::Native(native) = op { native.0.as_any().downcast_ref() } else { None }
}

/// What stands for a value.
#[derive(Clone)]
enum Image {
    Value(Value),
    Rows(Rows),
}

/// A step on its way to arrays with room.
struct Rooms<'a> {
    from: &'a Graph,
    uses: Vec<u32>,
    out: Graph,
    image: FxHashMap<Value, Image>,
    ranges: Ranges,
    guesses: Option<&'a mut Guesses>,
    /// Integers of which those hold.
    guessed: Vec<Value>,
    /// How many steps such loops ran that end by a condition: the numbers of those integers.
    ended: FxHashMap<Value, usize>,
}

/// What is taken for granted of loops of which nobody knows how many steps they run; it is looked at before they run.
pub(super) struct Guesses {
    /// They run so many at most.
    room: usize,
    /// Per loop, as far as it is known: it runs a step. The step reads a row that is there only then.
    runs: Vec<bool>,
    /// The loop of which that was found.
    found: Option<usize>,
}

impl Guesses {
    /// That they run so many steps at most.
    pub fn of(room: usize) -> Guesses {
        Guesses { room, runs: vec![], found: None }
    }
    /// True where it was found of one more loop that it runs a step: what is made then is another body.
    pub fn more(&mut self) -> bool {
        let Some(at) = self.found.take() else { return false };
        self.runs.resize(self.runs.len().max(at + 1), false);
        !std::mem::replace(&mut self.runs[at], true)
    }
    /// How many steps a loop runs at least.
    fn least(&self, at: usize) -> i64 {
        i64::from(self.runs.get(at).is_some_and(|&runs| runs))
    }
}

/// The body with such arrays, given that some of its integer parameters are at least 1 and at most so much; none where that does not help. What is
/// guessed of loops of which nobody knows how many steps they run holds, where that is given.
///
/// # Errors
/// What type inference reports.
pub(super) fn with_rooms(body: &Graph, most: &[Option<i64>], guesses: Option<&mut Guesses>) -> Lowered<Option<Graph>> {
    let never = |n: &Node| body.const_value(n.ins[Scan::N_STEPS]).and_then(Array::item_i64) == Some(0);
    let open = |n: &Node| matches!(n.op, Op::Scan(_)) && (never(n) || n.outs.iter().any(|&v| known_shape(body, v).is_err()));
    if !body.nodes().iter().any(open) {
        return Ok(None);
    }
    let (mut out, mut image, mut ranges) = (Graph::new(), FxHashMap::default(), Ranges::default());
    for (k, &p) in body.params().iter().enumerate() {
        let q = out.param(body.ty(p).clone(), body.name(p).map(|n| &**n));
        image.insert(p, Image::Value(q));
        if let Some(&Some(most)) = most.get(k) {
            ranges.tell(q, (1, most));
        }
    }
    let mut rooms = Rooms { from: body, uses: body.uses(), out, image, ranges, guesses, guessed: vec![], ended: FxHashMap::default() };
    let live = body.needed(body.results());
    for (_, node) in body.nodes().enumerate().filter(|n| live[n.0.idx()]) {
        rooms.out.set_span(node.span);
        let Some(images) = rooms.node(node) else { return Ok(None) };
        rooms.image.extend(node.outs.iter().copied().zip(images));
    }
    let results = body.results().iter().map(|v| rooms.plain(*v)).collect::<Option<Vec<Value>>>();
    let Some(mut results) = results else { return Ok(None) };
    results.extend(rooms.left_out(&live, &results));
    rooms.out.set_results(results);
    Ok(Some(rooms.out))
}

impl Rooms<'_> {
    /// What may fail and no result needs any more, since loops of no steps need nothing: the law computes it all the same, so that it is a
    /// further result.
    fn left_out(&self, live: &[bool], results: &[Value]) -> Vec<Value> {
        let (out, needed) = (&self.out, self.out.needed(results));
        let left_out = |v: &Value| {
            let Def::Out(id, _) = out.def(*v) else { return false };
            let node = &out.nodes()[id];
            let fails = || node.op.number() != Op::OTHERS && node.op.def().fallible(out, &node.ins);
            // Where nothing of a loop is read but how many steps it ran, that is what it was told: nobody else looks whether it can run them.
            !needed[id.idx()] && (roomy(&node.op).is_some_and(|r| !r.sure) || fails())
        };
        let nodes = self.from.nodes().enumerate().filter(|n| live[n.0.idx()]);
        nodes.flat_map(|n| &n.1.outs).filter_map(|&v| self.plain(v)).filter(left_out).collect()
    }

    /// The value that stands for another one; none for rows that count.
    fn plain(&self, v: Value) -> Option<Value> {
        if let Image::Value(v) = self.image[&v] { Some(v) } else { None }
    }
    fn rows(&self, v: Value) -> Option<Rows> {
        if let Image::Rows(rows) = &self.image[&v] { Some(rows.clone()) } else { None }
    }
    /// An integer as a sum.
    fn sum(&self, v: Value) -> Option<Sum> {
        self.ranges.sum(&self.out, self.plain(v)?)
    }
    fn value(&mut self, sum: Sum) -> Option<Value> {
        self.ranges.value(&mut self.out, sum)
    }

    /// What stands for the results of a node; none where that cannot be said.
    fn node(&mut self, node: &Node) -> Option<Vec<Image>> {
        if let Op::Scan(scan) = &node.op {
            return self.scan(scan, node);
        }
        let ins: Option<Vec<Value>> = node.ins.iter().map(|&v| self.plain(v)).collect();
        let one = |image: Option<Image>| image.map(|image| vec![image]);
        let Some(ins) = ins else { return one(self.of_rows(node)) };
        if let Some(rows) = self.numbers(node).or_else(|| self.repeated(node)) {
            return Some(vec![Image::Rows(rows)]);
        }
        if let Some(pattern) = self.opens(node) {
            let rows = Rows { pieces: self.pieces(node.ins[0])? };
            return one(self.indexed(&rows, &pattern, node));
        }
        if let Op::DimOf(dim) = &node.op
            && let Some(n) = self.out.ty(ins[0]).dims[dim.axis].value()
        {
            return Some(vec![Image::Value(self.out.int(n as i64))]);
        }
        if let Some(sum) = self.ranges.node(&self.out, &node.op, &ins) {
            return one(self.value(sum).map(Image::Value));
        }
        let outs = self.out.apply(node.op.clone(), &ins).ok()?;
        self.ranges.made(&self.out, &node.op, &ins, outs[0]);
        Some(outs.into_iter().map(Image::Value).collect())
    }

    /// The slice of an array, where values say how many rows it has.
    fn opens(&self, node: &Node) -> Option<Pattern> {
        let Op::Index(index) = &node.op else { return None };
        if known_shape(self.from, node.outs[0]).is_ok() { None } else { Pattern::parse(&index.pattern).ok() }
    }

    /// `arange` from a small number on, to an integer of the step.
    fn numbers(&mut self, node: &Node) -> Option<Rows> {
        if !matches!(node.op, Op::Arange(_)) || self.from.ty(node.outs[0]).dtype != DType::I64 {
            return None;
        }
        let [start, stop, step] = [0, 1, 2].map(|k| self.sum(node.ins[k]));
        let (start, stop) = (start?, stop?);
        if step?.constant() != Some(1) || start.constant().is_none() || stop.constant().is_some() || !self.ranges.at_most(start, stop) {
            return None;
        }
        let len = self.ranges.less(&mut self.out, stop, start)?;
        Some(Rows::of(Piece { of: Of::Numbers { start, back: false }, len, plus: false, row: Type::scalar(DType::I64) }))
    }

    /// What is made of rows that count.
    fn of_rows(&mut self, node: &Node) -> Option<Image> {
        let first = self.rows(node.ins[0]);
        match &node.op {
            Op::DimOf(dim) if dim.axis == 0 => {
                let len = first?.len(&mut self.ranges, &mut self.out)?;
                self.value(len).map(Image::Value)
            }
            Op::DimOf(dim) => {
                let n = first?.row().dims[dim.axis - 1].value()?;
                Some(Image::Value(self.out.int(n as i64)))
            }
            Op::Index(index) => self.indexed(&first?, &Pattern::parse(&index.pattern).ok()?, node),
            Op::IndexWrite(write) => self.written(&first?, write, node),
            Op::Flip(flip) if flip.axis == 0 => first?.flipped(&mut self.ranges, &mut self.out).map(Image::Rows),
            Op::Join(join) if join.axis == 0 => self.joined(node),
            op if op.properties().shape_only == [1] && self.same_extents(node) => first.map(Image::Rows),
            Op::BroadcastLike(_) => self.like(node).map(Image::Rows),
            Op::Elem(_) | Op::Cast(_) if !node.op.def().can_fail() => {
                let whole = self.elementwise(node);
                whole.or_else(|| self.mapped(node)).map(Image::Rows)
            }
            _ => None,
        }
    }

    fn scan(&mut self, scan: &Arc<Scan>, node: &Node) -> Option<Vec<Image>> {
        let n = self.plain(node.ins[Scan::N_STEPS])?;
        let cut = self.guess(scan, n)?;
        let steps = self.ranges.sum(&self.out, n);
        if steps.and_then(Sum::constant) == Some(0) {
            return self.not_run(scan, node);
        }
        let open = scan.until || steps.is_none_or(|n| n.constant().is_none());
        let ends = |id| scan.states[id].keep == Keep::All || reads_end(self.from, node, scan, id);
        let rests = self.guesses.is_some() && scan.states.ids().all(ends);
        let (scan, ins) = self.by_index(scan, node, steps)?;
        if let Some(room) = cut {
            return self.with_room(&scan, node, &ins, steps, (room, false));
        }
        let range = steps.and_then(|n| self.ranges.range(n)).filter(|r| r.0 >= i64::from(!rests));
        let Some((_, most)) = range.filter(|_| open) else {
            let outs = self.out.apply(Op::Scan(scan), &ins).ok()?;
            return Some(outs.into_iter().map(Image::Value).collect());
        };
        let rows = scan.seqs.ids().map(|id| self.out.ty(ins[scan.seq_input(id)]).dims[0].value()).collect::<Option<Vec<usize>>>()?;
        if scan.states.is_empty() && !scan.until && scan.seqs.is_empty() {
            // Nothing would look at a number that is guessed.
            let guessed = steps.and_then(Sum::of).is_some_and(|n| self.guessed.contains(&n));
            return (!guessed).then(|| vec![Image::Value(n)]);
        }
        let most = usize::try_from(most).ok()?;
        let room = rows.into_iter().min().unwrap_or(most).min(most);
        if room == 0 {
            return None;
        }
        if room < most {
            // Where it is more, the loop finds that a sequence is too short, and nothing behind it runs.
            self.ranges.narrow(steps?, room as i64);
        }
        self.with_room(&scan, node, &ins, steps, (room, room == most))
    }

    /// Gives a loop room of which nobody knows how many steps it runs: the number that it may run, where the law may run more. None where it has none.
    fn guess(&mut self, scan: &Scan, n: Value) -> Option<Option<usize>> {
        let Some(guesses) = self.guesses.as_ref().filter(|_| self.ranges.sum(&self.out, n).is_none()) else { return Some(None) };
        let room = guesses.room;
        match self.out.const_value(n) {
            None => {
                let least = guesses.least(self.guessed.len());
                let most = self.ranges.most(n).unwrap_or(i64::MAX).clamp(least, room as i64);
                self.ranges.tell(n, (least, most));
                self.guessed.push(n);
            }
            Some(_) if scan.until && scan.seqs.is_empty() => return Some(Some(room)),
            Some(_) => return None,
        }
        Some(None)
    }

    /// That there is a row of this number; else which loop would have to run a step for it is noted.
    fn is_there(&mut self, i: Sum, rows: Sum) -> Option<()> {
        let next = self.ranges.more(&mut self.out, i, Sum::number(1))?;
        if self.ranges.at_most(Sum::number(0), i) && self.ranges.at_most(next, rows) {
            return Some(());
        }
        let of = |sum: Sum| self.guessed.iter().position(|&n| sum.of() == Some(n)).or_else(|| self.ended.get(&sum.of()?).copied());
        let loop_ = of(i).or_else(|| of(rows));
        if let Some(guesses) = &mut self.guesses {
            guesses.found = loop_;
        }
        None
    }

    /// What a loop of no steps returns: the initial rows.
    fn not_run(&mut self, scan: &Scan, node: &Node) -> Option<Vec<Image>> {
        let mut images = vec![];
        for (id, state) in scan.states.enumerate() {
            let begun = scan.init_input(id).filter(|_| state.keep == Keep::All);
            images.push(match begun {
                Some(at) => self.image[&node.ins[at]].clone(),
                None => {
                    let row = self.from.ty(node.outs[id.idx()]).row();
                    Image::Rows(Rows::of(Piece { of: Of::Zeros, len: Sum::number(0), plus: false, row }))
                }
            });
            if scan.init_input(id).is_none() && state.span() > 0 {
                return None;
            }
        }
        images.push(Image::Value(self.out.int(0)));
        Some(images)
    }

    /// The loop as one that keeps rows in arrays that have room for so many steps; n is how many it runs at most, if that is known.
    fn with_room(
        &mut self,
        scan: &Arc<Scan>,
        node: &Node,
        ins: &[Value],
        n: Option<Sum>,
        (most, sure): (usize, bool),
    ) -> Option<Vec<Image>> {
        let typed = self.out.apply(Op::Scan(scan.clone()), ins).ok()?;
        let mut types = Outs::new();
        for (id, state) in scan.states.enumerate() {
            let (ty, span) = (self.out.ty(typed[id.idx()]).clone(), state.span());
            let begun = scan.init_input(id).map_or(Some(0), |at| self.out.ty(ins[at]).dims[0].value())?;
            let rows = match state.keep {
                Keep::All if begun == span => most + span,
                Keep::Last(k @ (0 | 1)) => k,
                _ => return None,
            };
            let dims = std::iter::once(Dim::known(rows)).chain(ty.dims.iter().skip(1).cloned());
            types.push(Type::new(ty.dtype, dims));
        }
        types.push(Type::scalar(DType::I64));
        let guessed = n.and_then(Sum::of).is_some_and(|n| self.guessed.contains(&n));
        let rests = n.and_then(|n| self.ranges.range(n)).is_some_and(|r| r.0 < 1);
        let op = Roomy { scan: scan.clone(), most, sure: sure && !guessed, rests, cut: n.is_none(), types }.into_op();
        let outs = self.out.apply(op, ins).ok()?;
        let last = outs[scan.steps_output()];
        let ran = if scan.until {
            // It ends by its condition after a step, but not before the first one.
            self.ranges.tell(last, (i64::from(!rests), most as i64));
            let which = n.and_then(Sum::of).and_then(|n| self.guessed.iter().position(|&guessed| guessed == n));
            self.ended.extend(which.map(|which| (last, which)));
            self.ranges.sum(&self.out, last)?
        } else {
            n?
        };
        let mut images = vec![];
        for (id, state) in scan.states.enumerate() {
            let of = outs[id.idx()];
            images.push(match state.keep {
                Keep::All if self.uses[node.outs[id.idx()].idx()] > 0 => {
                    let len = self.ranges.more(&mut self.out, ran, Sum::number(state.span() as i64))?;
                    let row = self.out.ty(of).row();
                    Image::Rows(Rows::of(Piece { of: Of::Array { array: of, start: Sum::number(0), back: false }, len, plus: false, row }))
                }
                _ => Image::Value(of),
            });
        }
        images.push(Image::Value(self.value(ran)?));
        Some(images)
    }
}
