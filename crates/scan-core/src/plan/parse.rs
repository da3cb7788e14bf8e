//! The text form of a plan, read. Whether what it says fits together, [`verify`](super::verify()) tells. No text makes this module panic or
//! overflow the stack.

use super::kernel::{self, LoopKernel};
use super::list::{At, Begin, Count, InnerKernel, InnerList, Item, Place, Run, Slice, StepList, Temporary, Work};
use super::print::{known, ty};
use super::votes::{Quorum, Votes};
use super::window::Window;
use crate::base::words::{Cursor, Tok, list};
use crate::base::{Id, Result, Span};
use crate::ir::op::Write;
use crate::ir::parse::{Context, function_at, span_of};
use crate::ir::{Graph, Op, SeqId, StateId};
use crate::kernel::parse::kernel;
use crate::kernel::{Fill, LEVELS, Nest, Strides};
use crate::ops::direct::Direct;
use crate::ops::index::Pattern;
use crate::ops::select::Selector;
use crate::types::shape::{Extents, MAX_RANK};
use crate::types::{DType, Type};
use smallvec::SmallVec;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// What a loop runs.
pub enum Plan {
    /// One kernel.
    Kernel(Box<LoopKernel>),
    /// A list.
    List(Box<StepList>),
}

/// Reads a plan.
///
/// # Errors
/// `E0903` text outside the grammar, `E0904` a name out of order, `E0906` a number outside the limits; those of a graph's text.
pub fn parse(text: &str, context: &Context) -> Result<Plan> {
    let mut reader = Reader { cursor: Cursor::new(text, context.most)?, context };
    let plan = match reader.eat_word("list") {
        true => Plan::List(Box::new(reader.step_list()?)),
        false => Plan::Kernel(Box::new(reader.loop_kernel()?)),
    };
    if *reader.peek() == Tok::End { Ok(plan) } else { reader.unexpected("the end of the text") }
}

struct Reader<'t> {
    cursor: Cursor<'t>,
    context: &'t Context<'t>,
}

impl<'t> Deref for Reader<'t> {
    type Target = Cursor<'t>;
    fn deref(&self) -> &Cursor<'t> {
        &self.cursor
    }
}

impl DerefMut for Reader<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.cursor
    }
}

impl Reader<'_> {
    fn step_list(&mut self) -> Result<StepList> {
        self.expect('{')?;
        let before = self.graph()?;
        let (windows, in_place) = self.windows()?;
        let mut temporaries = vec![];
        while self.peek_numbered("t").is_some() {
            self.in_order("t", temporaries.len())?;
            let bytes = self.amount()?;
            self.expect_word("at")?;
            temporaries.push(Temporary { at: self.amount()?, bytes });
        }
        let items = self.items()?;
        let mut writes = vec![];
        while self.eat_word("write") {
            let At::Row(id, offset) = self.at_memory()? else { return self.unexpected("the row of a state") };
            self.expect('=')?;
            writes.push((id, offset, self.place()?));
        }
        let stop = self.told("stop")?;
        let (impure, eager) = (self.eat_word("impure"), self.eat_word("eager"));
        self.expect('}')?;
        Ok(StepList { before, items, temporaries, windows, in_place, writes, stop, impure, eager })
    }

    fn loop_kernel(&mut self) -> Result<LoopKernel> {
        self.expect_word("loop")?;
        self.expect_word("lanes")?;
        let lanes = self.amount()?;
        self.expect('{')?;
        let before = self.graph()?;
        let (windows, _) = self.windows()?;
        let mut places = vec![];
        while self.eat_word("is") {
            places.push(self.kernel_place()?);
        }
        let (guarded, slices) = (self.eat_word("guarded"), self.eat_word("slices"));
        let votes = if self.eat_word("votes") { Some(self.votes()?) } else { None };
        let loops = self.runs_of_loops();
        let kernel = kernel(self)?;
        self.expect('}')?;
        Ok(LoopKernel { kernel, lanes, places, windows, guarded, slices, votes, before, loops })
    }

    // Memory.

    fn windows(&mut self) -> Result<(Vec<Window>, Vec<bool>)> {
        let (mut windows, mut in_place) = (vec![], vec![]);
        while self.peek_numbered("state").is_some() {
            self.in_order("state", windows.len())?;
            let (dtype, shape) = self.typed()?;
            self.expect_word("span")?;
            let span = self.amount()?;
            self.expect_word("first")?;
            let first_write = self.amount()?;
            let (stored, entering) = (self.eat_word("stored"), self.eat_word("entering"));
            self.expect_word("carried")?;
            let at = self.at();
            let offsets = self.amounts()?;
            if span > MOST_ROWS || offsets.iter().any(|&j| j >= span) {
                return self.fail(at, "E0906", format!("a window of {span} rows hands on others"));
            }
            let far = if self.eat_word("far") { self.amounts()? } else { vec![] };
            let carried = (0..span).map(|j| offsets.contains(&j)).collect();
            windows.push(Window { shape, dtype, span, first_write, stored, entering, carried, far });
            let place = self.eat_word("in");
            if place {
                self.expect_word("place")?;
            }
            in_place.push(place);
        }
        Ok((windows, in_place))
    }
    /// `f64[3, 4]`
    fn typed(&mut self) -> Result<(DType, Extents)> {
        let dtype = self.named("a dtype", DType::parse)?;
        let at = self.at();
        let shape: Extents = if self.is('[') { self.amounts()?.into_iter().collect() } else { Extents::new() };
        let all = shape.iter().filter(|&&n| n > 0).try_fold(1usize, |all, &n| all.checked_mul(n));
        if shape.len() > MAX_RANK || all.is_none_or(|n| n > Cursor::MOST) {
            return self.fail(at, "E0906", format!("a value has at most {MAX_RANK} axes and {} elements", Cursor::MOST));
        }
        Ok((dtype, shape))
    }
    fn amounts(&mut self) -> Result<Vec<usize>> {
        list(self, '[', ']', |r| r.amount())
    }
    /// `[3]`
    fn in_brackets(&mut self) -> Result<usize> {
        self.expect('[')?;
        let n = self.amount()?;
        self.expect(']')?;
        Ok(n)
    }
    /// `t3`, where that is the next one.
    fn in_order(&mut self, prefix: &str, next: usize) -> Result<()> {
        let at = self.at();
        let number = self.numbered(prefix)?;
        if number as usize == next { Ok(()) } else { self.fail(at, "E0904", format!("expected `{prefix}{next}`, got `{prefix}{number}`")) }
    }
    fn at_memory(&mut self) -> Result<At> {
        if self.peek_numbered("t").is_some() {
            return Ok(At::Slot(self.numbered("t")? as usize));
        }
        if self.peek_numbered("seq").is_some() {
            return Ok(At::Seq(SeqId::new(self.numbered("seq")? as usize)));
        }
        if self.peek_numbered("value").is_some() {
            return Ok(At::Before(self.numbered("value")? as usize));
        }
        let id = StateId::new(self.numbered("state")? as usize);
        Ok(At::Row(id, self.in_brackets()?))
    }
    fn place(&mut self) -> Result<Place> {
        let at = self.at_memory()?;
        let (dtype, shape) = self.typed()?;
        let first = if self.eat_word("from") { self.amount()? } else { 0 };
        let mut along = [0; LEVELS - 1];
        if self.eat_word("along") {
            let begin = self.at();
            let found: Vec<isize> = list(self, '[', ']', |r| r.whole())?;
            let Ok(found) = found.try_into() else { return self.fail(begin, "E0906", format!("expected {} numbers", LEVELS - 1)) };
            along = found;
        }
        Ok(Place { at, first, shape, dtype, along })
    }
    fn places(&mut self) -> Result<Vec<Place>> {
        list(self, '(', ')', Self::place)
    }
    fn told(&mut self, what: &str) -> Result<Option<Place>> {
        if self.eat_word(what) { self.place().map(Some) } else { Ok(None) }
    }
    fn kernel_place(&mut self) -> Result<kernel::Place> {
        for (word, place) in [("stopped", kernel::Place::Stopped), ("failed", kernel::Place::Failed), ("votes", kernel::Place::Votes)] {
            if self.eat_word(word) {
                return Ok(place);
            }
        }
        if self.peek_numbered("window").is_some() {
            let (id, row) = (StateId::new(self.numbered("window")? as usize), self.in_brackets()?);
            return Ok(kernel::Place::Window { id, row, at: self.from()? });
        }
        let begin = self.at();
        Ok(match self.at_memory()? {
            At::Seq(id) => kernel::Place::Seq { id, at: self.from()? },
            At::Before(value) => kernel::Place::Before { value, at: self.from()? },
            At::Row(id, offset) => kernel::Place::Row { id, offset, at: self.from()? },
            At::Slot(_) => return self.fail(begin, "E0903", "a kernel has no temporaries"),
        })
    }
    fn from(&mut self) -> Result<usize> {
        self.expect_word("from")?;
        self.amount()
    }
    fn votes(&mut self) -> Result<Votes> {
        let quorum = if self.eat_word("one") { Quorum::One } else { Quorum::All };
        if quorum == Quorum::All {
            self.expect_word("all")?;
        }
        self.expect_word("of")?;
        Ok(Votes { quorum, voters: self.amount()? })
    }
    /// `runs`, with the user's line behind.
    fn runs_of_loops(&mut self) -> Vec<Span> {
        let mut spans = vec![];
        while self.is_word("runs") {
            spans.push(self.span());
            self.cursor.pos += 1;
        }
        spans
    }
    fn span(&self) -> Span {
        span_of(self, self.context)
    }
    fn graph(&mut self) -> Result<Graph> {
        Ok(function_at(&mut self.cursor, self.context)?.1)
    }

    // Parts.

    fn items(&mut self) -> Result<Vec<Item>> {
        let mut items = vec![];
        while let Some(head) = self.head()? {
            items.push(self.item(head)?);
        }
        Ok(items)
    }
    fn item(&mut self, head: Head) -> Result<Item> {
        let (at, span, ins) = (self.at(), self.span(), self.places()?);
        self.expect_word("to")?;
        let outs = self.places()?;
        let work = match head {
            Head::Done(work) => work,
            Head::Open(open) => {
                self.expect('{')?;
                let work = self.opened(open, &ins, &outs, at)?;
                self.expect('}')?;
                work
            }
        };
        Ok(Item { work, ins, outs, span })
    }
    /// What a part is; `None` where none begins.
    fn head(&mut self) -> Result<Option<Head>> {
        let Tok::Word(word) = *self.peek() else { return Ok(None) };
        let name = match word {
            "kernel" | "move" | "add" | "matmul" | "read" | "set" | "inc" | "slice" | "direct" | "call" | "guard" | "within" | "loop"
            | "for" => word,
            _ => return Ok(None),
        };
        self.cursor.pos += 1;
        Ok(Some(match name {
            "kernel" => Head::Open(Open::Kernel(self.nest_head()?)),
            "move" => Head::Open(Open::Move),
            "add" => Head::Open(Open::Add),
            "slice" => Head::Open(Open::Slice),
            "direct" => Head::Open(Open::Direct),
            "call" => Head::Open(Open::Call),
            "loop" => {
                let nest = self.nest_head()?;
                Head::Open(Open::Loop(nest, self.count()?, self.name()?))
            }
            "for" => {
                self.expect_word("level")?;
                let (at, level) = (self.at(), self.amount()?);
                if !(1..LEVELS).contains(&level) {
                    return self.fail(at, "E0906", format!("loops stand in each other {LEVELS} deep at most"));
                }
                Head::Open(Open::For(level, self.count()?, self.name()?))
            }
            "matmul" => {
                let at = self.at();
                let extents = self.amounts()?.try_into();
                Head::Done(Work::MatMul(extents.or_else(|_| self.fail(at, "E0906", "expected three extents"))?))
            }
            "read" => Head::Done(Work::Read(self.selector()?)),
            "set" => Head::Done(Work::Write(self.selector()?, Write::Set)),
            "inc" => Head::Done(Work::Write(self.selector()?, Write::Inc)),
            "guard" => Head::Done(Work::Guard([self.amount()?, self.amount()?])),
            _ => Head::Done(Work::Within { axis: self.amount()?, extent: self.amount()? }),
        }))
    }
    fn nest_head(&mut self) -> Result<NestHead> {
        self.expect_word("lanes")?;
        let lanes = self.amount()?;
        self.expect_word("steps")?;
        let steps = self.amount()?;
        let first = if self.eat_word("from") { self.whole()? } else { 0 };
        let outer = if self.eat_word("outer") { self.amounts()?.into_iter().collect() } else { SmallVec::new() };
        Ok(NestHead { lanes, steps, first, outer })
    }
    fn count(&mut self) -> Result<Count> {
        self.expect_word("count")?;
        if let Tok::Number(_) = self.peek() {
            return Ok(Count::Known(self.amount()?));
        }
        let place = self.place()?;
        self.expect_word("most")?;
        Ok(Count::Read(place, self.amount()?))
    }
    fn name(&mut self) -> Result<Option<Arc<str>>> {
        if !self.eat_word("name") {
            return Ok(None);
        }
        let Tok::Text(name) = self.peek().clone() else { return self.unexpected("a name in quotes") };
        self.cursor.pos += 1;
        Ok(Some(name.into()))
    }
    fn selector(&mut self) -> Result<Selector> {
        if self.eat_word("along") {
            return self.amounts().map(Selector::Advanced);
        }
        let Tok::Text(pattern) = self.peek().clone() else { return self.unexpected("an index in quotes") };
        self.cursor.pos += 1;
        Pattern::parse(&pattern).map(Selector::Basic)
    }

    /// What stands in the braces of a part.
    fn opened(&mut self, open: Open, ins: &[Place], outs: &[Place], at: usize) -> Result<Work> {
        Ok(match open {
            Open::Kernel(head) => Work::Nest(Box::new(self.nest(head)?)),
            Open::Move => Work::Move(self.runs()?),
            Open::Add => Work::Add(self.runs()?),
            Open::Slice => Work::Slice(Box::new(self.slice()?)),
            Open::Direct => {
                let op = self.op(at, ins)?.0;
                let shapes: Vec<&[usize]> = ins.iter().map(|p| &p.shape[..]).collect();
                let found = outs.first().and_then(|out| Direct::new(&op, &shapes, &out.shape, out.dtype == DType::F64));
                let Some(direct) = found else { return self.fail(at, "E0903", format!("`{}` does not work on such slices", op.name())) };
                Work::Direct(direct, op)
            }
            Open::Call => {
                let (op, mut types) = self.op(at, ins)?;
                // What an op tells of extents only where it has run is what the places say.
                types.iter_mut().zip(outs).filter(|(found, _)| known(found).is_none()).for_each(|(found, place)| *found = ty(place));
                Work::Call(op, types)
            }
            Open::Loop(head, count, name) => self.inner(head, count, name)?,
            Open::For(level, count, name) => self.inner_list(level, count, name)?,
        })
    }
    fn runs(&mut self) -> Result<Vec<Run>> {
        let mut runs = vec![];
        while let Tok::Number(_) = self.peek() {
            let n = self.amount()?;
            if self.eat_word("zeros") {
                self.expect_word("to")?;
                runs.push(Run { input: None, from: 0, to: self.amount()?, n, step: 1 });
                continue;
            }
            self.expect_word("of")?;
            self.expect_word("input")?;
            let input = Some(self.amount()?);
            let from = self.from()?;
            self.expect_word("by")?;
            let step = self.whole()?;
            self.expect_word("to")?;
            runs.push(Run { input, from, to: self.amount()?, n, step });
        }
        Ok(runs)
    }
    fn slice(&mut self) -> Result<Slice> {
        let mut begins = SmallVec::new();
        while self.eat_word("begin") {
            self.expect_word("input")?;
            let input = self.amount()?;
            self.expect_word("apart")?;
            let apart = self.amount()?;
            self.expect_word("last")?;
            let last = self.amount()?;
            self.expect_word("end")?;
            begins.push(Begin { input, apart, last, from_end: self.amount()? });
        }
        Ok(Slice { runs: self.runs()?, begins })
    }
    /// The op of a graph of one node on what lies in these places, and the types of its results.
    fn op(&mut self, at: usize, ins: &[Place]) -> Result<(Op, Vec<Type>)> {
        let graph = self.graph()?;
        let given: Vec<Type> = graph.params().iter().map(|&v| graph.ty(v).clone()).collect();
        if given != ins.iter().map(ty).collect::<Vec<_>>() {
            return self.fail(at, "E0908", "an op on values of other types than its operands");
        }
        let mut nodes = graph.nodes().iter();
        let (Some(node), None) = (nodes.next(), nodes.next()) else { return self.fail(at, "E0903", "expected one op") };
        Ok((node.op.clone(), node.outs.iter().map(|&v| graph.ty(v).clone()).collect()))
    }
    fn nest(&mut self, head: NestHead) -> Result<Nest> {
        let (mut moves, mut fills) = (vec![], vec![]);
        while self.eat_word("moves") {
            let (at, k) = (self.at(), self.numbered("m")? as usize);
            let step = self.whole()?;
            let outer = list(self, '[', ']', |r| r.whole())?.into_iter().collect();
            moves.push((at, k, Strides { step, outer }));
        }
        while self.eat_word("fill") {
            let operand = self.numbered("m")? as usize;
            fills.push(Fill { operand, count: self.amount()?, bits: self.whole::<i64>()? as u64 });
        }
        let kernel = kernel(self)?;
        let mut strides = vec![Strides::default(); kernel.mems.len()];
        for (at, k, by) in moves {
            let Some(own) = strides.get_mut(k) else { return self.fail(at, "E0904", format!("there is no `m{k}`")) };
            *own = by;
        }
        let NestHead { lanes, steps, first, outer } = head;
        Ok(Nest { kernel, lanes, steps, first, outer, strides, fills })
    }
    fn inner(&mut self, head: NestHead, count: Count, name: Option<Arc<str>>) -> Result<Work> {
        let mut operands = vec![];
        while self.eat_word("is") {
            operands.push(self.place()?);
        }
        let stopped = self.told("stopped")?;
        let votes = match self.eat_word("votes") {
            true => {
                let votes = self.votes()?;
                Some((self.place()?, votes))
            }
            false => None,
        };
        let (failed, ran) = (self.told("failed")?, self.told("ran")?);
        let loops = self.runs_of_loops();
        let nest = self.nest(head)?;
        Ok(Work::Loop(Box::new(InnerKernel { name, nest, operands, count, stopped, votes, failed, ran, loops })))
    }
    fn inner_list(&mut self, level: usize, count: Count, name: Option<Arc<str>>) -> Result<Work> {
        let at = self.at();
        self.expect_word("step")?;
        let step = self.place()?;
        let items = self.items()?;
        if items.iter().any(|item| matches!(&item.work, Work::For(inner) if inner.level <= level)) {
            return self.fail(at, "E0903", format!("a loop of level {level} holds one of a lower level"));
        }
        let mut writes = vec![];
        while self.eat_word("write") {
            let to = self.place()?;
            self.expect('=')?;
            writes.push([self.place()?, to]);
        }
        let (stop, ran) = (self.told("stop")?, self.told("ran")?);
        Ok(Work::For(Box::new(InnerList { name, level, count, items, writes, stop, step, ran })))
    }
}

/// Rows of a window at most.
const MOST_ROWS: usize = 1 << 20;

/// What stands before the operands of a part.
enum Head {
    Done(Work),
    Open(Open),
}

/// A part that has braces.
enum Open {
    Kernel(NestHead),
    Move,
    Add,
    Slice,
    Direct,
    Call,
    Loop(NestHead, Count, Option<Arc<str>>),
    For(usize, Count, Option<Arc<str>>),
}

struct NestHead {
    lanes: usize,
    steps: usize,
    first: i64,
    outer: SmallVec<[usize; 3]>,
}

#[cfg(test)]
mod tests;
