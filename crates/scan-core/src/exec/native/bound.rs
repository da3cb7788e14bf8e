//! Parts of a step with their operands, and loops of such parts: found once for all steps in which no memory moves.

use super::halt::Halt;
use super::indexed::{ByArrays, Given, Named, read, within, write};
use super::kernels::{Either, KernelRun};
use super::memories::Memories;
use super::moves::{Turned, added, moved, multiplied, read_runs, turned};
use super::nested::{Counted, LoopRun, counted, tell};
use super::piece::{Part, Piece};
use super::strided::Strided;
use crate::backend::cpu::{Operand, Spot, Steps, array_at, copy, integer_at, truth_at, with_inputs, with_slices, write_array};
use crate::base::clock::Instant;
use crate::base::{Diagnostic, Result, Span};
use crate::eval::{blame, in_loop};
use crate::ir::op::{Outs, Write};
use crate::ir::{EvalCx, Op};
use crate::ops::direct::Direct;
use crate::ops::select::{ByIntegers, Runs, Selector, write_runs};
use crate::ops::softmax::Scratch;
use crate::plan::list::{At, InnerList, Place, Run, Slice};
use crate::scan::step::{in_step, timed_as};
use crate::types::shape::count;
use crate::types::{Array, DType, memory};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::cell::{Cell, OnceCell};
use std::hash::BuildHasher;

/// A part with its operands.
pub(super) struct Bound<'a> {
    piece: &'a Piece,
    kind: Kind<'a>,
}

/// The operands of a part, in place for as many as most parts have: a list has hundreds of parts, all of which are walked at every step.
type Spots<'a> = SmallVec<[Spot<'a>; 3]>;

/// How a part is run.
enum Kind<'a> {
    /// A kernel.
    Kernel(KernelRun<'a>),
    /// A kernel in two versions.
    Either(Box<Either<'a>>),
    /// Bytes from one place to another.
    Copy([Spot<'a>; 2], usize),
    /// Elements of such a size from inputs to the result.
    Move(&'a [Run], &'a [Strided], Spots<'a>, usize),
    /// Elements of such a size whose columns become rows.
    Turn(&'a [Turned], Spots<'a>, usize),
    /// Elements of a dtype added to those of the result.
    Add(&'a [Run], DType, Spots<'a>),
    /// A product.
    Product(&'a [usize; 3], DType, Spots<'a>),
    /// An op on slices of such a dtype: its inputs and its result.
    Direct(&'a Direct, DType, Spots<'a>),
    /// An op that takes arrays: those of its inputs that are the same in all steps, and all operands.
    Call(&'a Op, Box<[Option<Array>]>, Spots<'a>),
    /// Elements that index arrays name are read, or written if so: operands as for the two below. Where all arrays but one at most are the same in
    /// all steps: what those name.
    ByArrays(&'a ByArrays, Option<Write>, Spots<'a>, Option<Kept>),
    /// The same by integers.
    ByIntegers(&'a ByIntegers, Option<Write>, Spots<'a>),
    /// Elements from a place on that integers name, of such a size.
    Slice(&'a Slice, Spots<'a>, usize),
    /// Elements that an index names are read.
    Read(&'a Selector, Spots<'a>),
    /// Elements that an index names are written: first what is written, then the index, then where.
    Write(&'a Selector, Write, Spots<'a>),
    /// An integer lies between two.
    Guard([usize; 2], Spot<'a>, DType),
    /// So many integers name places of an axis; where they are the same in all steps, whether that is known.
    Within([usize; 2], Spot<'a>, usize, Option<Cell<bool>>),
    /// A loop that is one kernel.
    Loop(Box<LoopRun<'a>>),
    /// A loop whose step is a list.
    For(Box<ForRun<'a>>),
}

impl<'a> Bound<'a> {
    /// A part at step `first` of the outermost loop, for so many steps of the loops around.
    pub(super) fn new(piece: &'a Piece, memories: &Memories<'a>, first: usize, counts: Steps) -> Bound<'a> {
        let at = |place: &Place| memories.spot(place, first);
        let operands = || piece.ins.iter().chain(&piece.outs).map(at);
        let kind = match &piece.part {
            Part::Nest(tier, nest) => Kind::Kernel(KernelRun::new(tier, nest, operands(), counts)),
            Part::Either(versions) => Kind::Either(Box::new(Either::new(versions, operands().collect(), counts))),
            Part::Move(runs, strided) => {
                let size = piece.outs[0].dtype.size();
                let part = |place: &Place, first: usize| at(&Place { first: place.first + first, ..place.clone() });
                match &runs[..] {
                    [Run { input: Some(i), from, to, n, step: 1 }] => {
                        Kind::Copy([part(&piece.ins[*i], *from), part(&piece.outs[0], *to)], n * size)
                    }
                    _ => Kind::Move(runs, strided, operands().collect(), size),
                }
            }
            Part::Turn(turned) => Kind::Turn(turned, operands().collect(), piece.outs[0].dtype.size()),
            Part::Add(runs) => Kind::Add(runs, piece.outs[0].dtype, operands().collect()),
            Part::MatMul(extents) => Kind::Product(extents, piece.outs[0].dtype, operands().collect()),
            Part::Direct(direct, _) => Kind::Direct(direct, piece.outs[0].dtype, operands().collect()),
            Part::Call(op) => Kind::Call(op, piece.ins.iter().map(|p| memories.steady(p)).collect(), operands().collect()),
            Part::Read(selector) => Kind::Read(selector, operands().collect()),
            Part::Write(selector, mode) => Kind::Write(selector, *mode, operands().collect()),
            Part::ByArrays(by, mode) => Kind::ByArrays(by, *mode, operands().collect(), Kept::of(by, &piece.ins[1..])),
            Part::ByIntegers(by, mode) => Kind::ByIntegers(by, *mode, operands().collect()),
            Part::Slice(slice) => Kind::Slice(slice, operands().collect(), piece.outs[0].dtype.size()),
            Part::Guard(range) => Kind::Guard(*range, at(&piece.ins[0]), piece.ins[0].dtype),
            Part::Within(axis) => {
                let [index] = &piece.ins[..] else { unreachable!("one index array") };
                let steady = matches!(index.at, At::Before(_)).then(|| Cell::new(false));
                Kind::Within(*axis, at(index), count(&index.shape), steady)
            }
            Part::Loop(inner) => Kind::Loop(Box::new(LoopRun::new(inner, &at, counts))),
            Part::For(inner) => Kind::For(Box::new(ForRun::new(inner, &at, (memories, first, counts)))),
        };
        Bound { piece, kind }
    }

    /// Runs at these steps of the loops around.
    #[inline]
    pub(super) fn run(&self, cx: &mut EvalCx, k: &mut Steps, scratch: &mut Scratch) -> std::result::Result<(), Halt> {
        if cx.profile.is_some() { self.measured(cx, k, scratch) } else { self.run_quietly(cx, k, scratch) }
    }

    #[inline(never)]
    fn measured(&self, cx: &mut EvalCx, k: &mut Steps, scratch: &mut Scratch) -> std::result::Result<(), Halt> {
        let start = Instant::now();
        let ran = self.run_quietly(cx, k, scratch);
        if let Some(profile) = &mut cx.profile {
            profile.op(self.piece.part.name(), start.elapsed());
        }
        ran
    }

    /// What most parts are needs no room of its own.
    #[inline]
    fn run_quietly(&self, cx: &mut EvalCx, k: &mut Steps, scratch: &mut Scratch) -> std::result::Result<(), Halt> {
        match &self.kind {
            Kind::Kernel(kernel) => kernel.run(k),
            Kind::Copy([from, to], n) => copy(&from.at(k), &to.at(k), *n),
            Kind::ByIntegers(by, mode, spots) => self.by_integers(by, *mode, spots, k).map_err(|e| self.blame(e))?,
            _ => return self.run_other(cx, k, scratch),
        }
        Ok(())
    }

    /// True where the memory of the result is none of the inputs'.
    fn writes_apart(&self, spots: &[Spot], k: &Steps) -> bool {
        let (out, bytes) = (spots[spots.len() - 1].at(k), self.piece.outs[0].bytes());
        let mut ins = spots.iter().zip(&self.piece.ins);
        ins.all(|(spot, place)| !out.overlaps(bytes, &spot.at(k), place.bytes()))
    }

    #[inline(never)]
    fn run_other(&self, cx: &mut EvalCx, k: &mut Steps, scratch: &mut Scratch) -> std::result::Result<(), Halt> {
        match &self.kind {
            Kind::Kernel(_) | Kind::Copy(..) | Kind::ByIntegers(..) => unreachable!("run before"),
            Kind::Either(either) => either.run(k),
            Kind::Move(runs, [], spots, size) => runs.iter().for_each(|run| moved(run, spots, k, *size)),
            Kind::Move(runs, strided, spots, size) => match self.writes_apart(spots, k) {
                true => strided.iter().for_each(|runs| runs.copy(spots, k, *size)),
                false => runs.iter().for_each(|run| moved(run, spots, k, *size)),
            },
            Kind::Turn(all, spots, size) => all.iter().for_each(|matrix| turned(matrix, spots, k, *size)),
            Kind::Add(runs, dtype, spots) => {
                let (from, to) = (spots[0].at(k), spots[spots.len() - 1].at(k));
                crate::dispatch!(*dtype, T => runs.iter().for_each(|run| added::<T>(run, &from, &to)));
            }
            Kind::Product(extents, dtype, spots) => multiplied(cx, *dtype, spots, **extents, k).map_err(|e| self.blame(e))?,
            Kind::Direct(direct, dtype, operands) => self.direct(cx, direct, *dtype, operands, k, scratch).map_err(|e| self.blame(e))?,
            Kind::Call(op, steady, spots) => {
                memory::given(|| format!("`{}`", op.name()), || self.call(cx, op, steady, spots, k)).map_err(|e| self.blame(e))?;
            }
            Kind::ByArrays(by, mode, spots, named) => self.by_arrays(by, *mode, (spots, named.as_ref()), k).map_err(|e| self.blame(e))?,
            Kind::Read(selector, spots) => self.read(selector, spots, k).map_err(|e| self.blame(e))?,
            Kind::Write(selector, mode, spots) => self.write(selector, *mode, spots, k).map_err(|e| self.blame(e))?,
            Kind::Slice(slice, spots, size) => {
                let integer = |i: usize| integer_at(&spots[i].at(k), self.piece.ins[i].dtype);
                let at = slice.first(integer).ok_or(Halt::Refused)?;
                slice.runs.iter().for_each(|run| moved(&Run { from: run.from + at, ..*run }, spots, k, *size));
            }
            Kind::Guard([least, most], spot, dtype) => {
                if !(*least as i64..=*most as i64).contains(&integer_at(&spot.at(k), *dtype)) {
                    return Err(Halt::Refused);
                }
            }
            Kind::Within(axis, spot, n, steady) => {
                if !steady.as_ref().is_some_and(Cell::get) {
                    within(*axis, &spot.at(k), self.piece.ins[0].dtype, *n).map_err(|e| self.blame(e))?;
                    steady.iter().for_each(|known| known.set(true));
                }
            }
            Kind::Loop(inner) => {
                let n = inner.count.at(k);
                timed_as(|| self.loop_name(), n, cx, |cx| inner.run(cx, k, n)).map_err(|h| h.map(|e| self.blame(e)))?;
            }
            Kind::For(inner) => {
                let n = inner.count.at(k);
                timed_as(|| self.loop_name(), n, cx, |cx| inner.run(cx, k, n, scratch)).map_err(|h| h.map(|e| self.blame(e)))?;
            }
        }
        Ok(())
    }

    /// The key and name of a loop in the step: all that stand in one line with one name are one, for whatever types they are made.
    fn loop_name(&self) -> (usize, Option<&'a str>) {
        let piece = self.piece;
        let name = match &piece.part {
            Part::Loop(inner) => inner.name.as_deref(),
            Part::For(inner) => inner.name.as_deref(),
            _ => None,
        };
        (FxBuildHasher.hash_one((piece.span, name)) as usize, name)
    }

    /// Adds the user's line to an error.
    fn blame(&self, e: Box<Diagnostic>) -> Box<Diagnostic> {
        match &self.piece.part {
            Part::Call(op) | Part::Direct(_, op) => blame(e, op, self.piece.span),
            Part::Loop(_) | Part::For(_) => in_loop(e, self.piece.span),
            _ if self.piece.span == Span::NONE => e,
            _ => e.at(self.piece.span),
        }
    }

    /// An op on slices; where it fails, the op on arrays tells why.
    fn direct(&self, cx: &mut EvalCx, direct: &Direct, dtype: DType, spots: &[Spot<'a>], k: &Steps, scratch: &mut Scratch) -> Result<()> {
        let (ins, out) = spots.split_at(self.piece.ins.len());
        let [out] = out else { return Err(Diagnostic::internal("an op on slices has one result")) };
        let sized = |(spot, place): (&Spot<'a>, &Place)| (spot.at(k), count(&place.shape));
        let (slices, to) = (ins.iter().zip(&self.piece.ins).map(sized), sized((out, &self.piece.outs[0])));
        let done = match dtype {
            DType::F32 => {
                with_inputs(slices, to, |ins, out| direct.run_f32(ins, out, scratch));
                true
            }
            _ => with_inputs(slices, to, |ins, out| direct.run_f64(cx, ins, out, scratch))?,
        };
        let Part::Direct(_, op) = &self.piece.part else { return Ok(()) };
        if done {
            return Ok(());
        }
        self.call(cx, op, &vec![None; ins.len()], spots, k)
    }

    /// Evaluates an op; what is the same in all steps is not copied.
    fn call(&self, cx: &mut EvalCx, op: &Op, steady: &[Option<Array>], spots: &[Spot], k: &Steps) -> Result<()> {
        let (ins, outs) = spots.split_at(self.piece.ins.len());
        let array = |((spot, p), steady): ((&Spot, &Place), &Option<Array>)| {
            steady.clone().unwrap_or_else(|| array_at(&spot.at(k), p.dtype, &p.shape))
        };
        let mut arrays: Vec<Array> = ins.iter().zip(&self.piece.ins).zip(steady).map(array).collect();
        let results: Outs<Array> = op.evaluate(cx, &mut arrays)?;
        for ((to, place), result) in outs.iter().zip(&self.piece.outs).zip(&results) {
            if result.shape() != &place.shape[..] || result.dtype() != place.dtype {
                return Err(Diagnostic::internal(format!("`{}` gave {} for {:?}", op.name(), result.ty(), place.shape)));
            }
            write_array(&to.at(k), result);
        }
        Ok(())
    }

    fn by_arrays(&self, by: &ByArrays, mode: Option<Write>, (spots, kept): (&[Spot], Option<&Kept>), k: &Steps) -> Result<()> {
        let (first, last) = (spots[0].at(k), spots[spots.len() - 1].at(k));
        let [n, m] = [&self.piece.ins[0], &self.piece.outs[0]].map(|p| count(&p.shape));
        let dtype = self.piece.outs[0].dtype;
        let idxs = spots[1..spots.len() - 1].iter().map(|spot| spot.at(k)).enumerate();
        let Some(Kept { named, changing }) = kept else {
            return match mode {
                None => by.read(dtype, (&first, n), (idxs, None), &last),
                Some(mode) => by.write((dtype, mode), (&last, m), (&first, n), (idxs, None)),
            };
        };
        let named = match named.get() {
            Some(named) => named,
            None => {
                let found = by.named(idxs.clone().filter(|(i, _)| Some(*i) != *changing))?;
                named.get_or_init(|| found)
            }
        };
        let changing = changing.map(|i| idxs.skip(i).take(1));
        match (mode, changing) {
            (None, None) => by.read_named(dtype, (&first, n), named, &last),
            (Some(mode), None) => by.write_named((dtype, mode), (&last, m), (&first, n), named),
            (None, Some(index)) => by.read(dtype, (&first, n), (index, Some(named)), &last)?,
            (Some(mode), Some(index)) => by.write((dtype, mode), (&last, m), (&first, n), (index, Some(named)))?,
        }
        Ok(())
    }

    /// What integers name is read, or written. Single runs, which most are, need no room of their own.
    #[inline(never)]
    fn by_integers(&self, by: &ByIntegers, mode: Option<Write>, spots: &[Spot], k: &Steps) -> Result<()> {
        let found = by.runs(|i| integer_at(&spots[1 + i].at(k), self.piece.ins[1 + i].dtype))?;
        let (from, to) = (spots[0].at(k), spots[spots.len() - 1].at(k));
        let (size, moved) = (self.piece.outs[0].dtype.size(), found.at * self.piece.outs[0].dtype.size());
        match mode {
            None if found.count == 1 => copy(&Operand { offset: from.offset + moved, ..from }, &to, found.run * size),
            Some(Write::Set) if found.count == 1 && count(&self.piece.ins[0].shape) == found.run => {
                copy(&from, &Operand { offset: to.offset + moved, ..to }, found.run * size);
            }
            None => read_runs(&found, &Operand { offset: from.offset + moved, ..from }, &to, size),
            Some(mode) => self.write_runs(&found, mode, &from, &Operand { offset: to.offset + moved, ..to }),
        }
        Ok(())
    }
    #[inline(never)]
    fn write_runs(&self, found: &Runs, mode: Write, from: &Operand, to: &Operand) {
        let (n, span) = (count(&self.piece.ins[0].shape), (found.count - 1) * found.step + found.run);
        if mode == Write::Set && n == span {
            copy(from, to, n * self.piece.outs[0].dtype.size());
            return;
        }
        let dtype = self.piece.outs[0].dtype;
        crate::dispatch!(dtype, T => with_slices::<T, _>([from, from, to], [n, n, span], |y, _, x| write_runs(x, y, found, mode)));
    }

    fn read(&self, selector: &Selector, spots: &[Spot], k: &Steps) -> Result<()> {
        memory::given(
            || "`index`".into(),
            || {
                let given = self.given(spots, k);
                read(selector, given[0], &given[1..given.len() - 1], given[given.len() - 1])
            },
        )
    }

    fn write(&self, selector: &Selector, mode: Write, spots: &[Spot], k: &Steps) -> Result<()> {
        memory::given(
            || "`index_write`".into(),
            || {
                let given = self.given(spots, k);
                write(selector, mode, given[given.len() - 1], given[0], &given[1..given.len() - 1])
            },
        )
    }

    /// All operands at these steps.
    fn given<'b>(&'b self, spots: &[Spot<'b>], k: &Steps) -> SmallVec<[Given<'b>; 4]> {
        let places = self.piece.ins.iter().chain(&self.piece.outs);
        spots.iter().zip(places).map(|(spot, place)| Given { at: spot.at(k), place }).collect()
    }
}

/// The spots of a read or write by index arrays that are the same in all steps, kept from the first one on.
struct Kept {
    /// Those of index arrays that are the same.
    named: OnceCell<Named>,
    /// The number of the one that is another in each step.
    changing: Option<usize>,
}

impl Kept {
    /// `None` where nothing is the same, or too much of it; or more index arrays than one change, or one that has not an element for each spot.
    fn of(by: &ByArrays, idxs: &[Place]) -> Option<Kept> {
        let changing: SmallVec<[usize; 2]> = (0..idxs.len()).filter(|&k| !matches!(idxs[k].at, At::Before(_))).collect();
        let changing = match changing[..] {
            [] => None,
            [k] if idxs.len() > 1 && by.has_all(k) => Some(k),
            _ => return None,
        };
        by.is_kept().then(|| Kept { named: OnceCell::new(), changing })
    }
}

/// A loop in a step whose step is a list.
struct ForRun<'a> {
    name: Option<&'a str>,
    /// How deep it stands.
    level: usize,
    count: Counted<'a>,
    parts: Vec<Bound<'a>>,
    writes: SmallVec<[([Spot<'a>; 2], usize); 4]>,
    stop: Option<(Spot<'a>, DType)>,
    /// Where steps read their number.
    step: Spot<'a>,
    /// Where it tells how many steps it ran.
    ran: Option<Spot<'a>>,
}

impl<'a> ForRun<'a> {
    /// Of such a loop, with what finds its places; of its parts, that of the list around.
    fn new(
        inner: &'a InnerList<Piece>,
        at: &dyn Fn(&Place) -> Spot<'a>,
        (memories, first, mut counts): (&Memories<'a>, usize, Steps),
    ) -> ForRun<'a> {
        counts[inner.level] = inner.count.most();
        ForRun {
            name: inner.name.as_deref(),
            level: inner.level,
            count: counted(&inner.count, at),
            parts: inner.items.iter().map(|p| Bound::new(p, memories, first, counts)).collect(),
            writes: inner.writes.iter().map(|[from, to]| ([at(from), at(to)], to.bytes())).collect(),
            stop: inner.stop.as_ref().map(|p| (at(p), p.dtype)),
            step: at(&inner.step),
            ran: inner.ran.as_ref().map(at),
        }
    }

    /// All n steps; how many ran.
    fn run(&self, cx: &mut EvalCx, k: &mut Steps, n: usize, scratch: &mut Scratch) -> std::result::Result<usize, Halt> {
        let ran = self.steps(cx, k, n, scratch);
        k[self.level] = 0;
        if let (Some(spot), Ok(n)) = (&self.ran, &ran) {
            tell(spot, k, *n);
        }
        ran
    }

    fn steps(&self, cx: &mut EvalCx, k: &mut Steps, n: usize, scratch: &mut Scratch) -> std::result::Result<usize, Halt> {
        for step in 0..n {
            cx.check()?;
            k[self.level] = step;
            tell(&self.step, k, step);
            for part in &self.parts {
                part.run(cx, k, scratch).map_err(|h| h.map(|e| in_step(e, self.name, step)))?;
            }
            for ([from, to], n) in &self.writes {
                copy(&from.at(k), &to.at(k), *n);
            }
            if self.stop.is_some_and(|(at, dtype)| truth_at(&at.at(k), dtype)) {
                return Ok(step + 1);
            }
        }
        Ok(n)
    }
}
