//! The text form of a plan. [`parse`](super::parse) reads it back to a plan that does the same, and printing that gives the same text.
//!
//! ```text
//! list {
//!   fn before(…) {
//!     return …
//!   }
//!   state0 f64[3] span 1 first 1 stored carried [0]
//!   t0 8 at 0
//!   t1 24 at 64
//!   kernel lanes 3 steps 1 (seq0 f64[3], state0[0] f64[3]) to (t1 f64[3]) {      # model.py:7
//!     m0: f64 per lane
//!     …
//!   }
//!   move (t1 f64[3]) to (t2 f64[2]) {
//!     2 of input 0 from 1 by 1 to 0
//!   }
//!   write state0[1] = t1 f64[3]
//! }
//! ```

use super::kernel::{self, LoopKernel};
use super::list::{At, Count, InnerKernel, InnerList, Item, Place, Run, StepList, Work};
use super::votes::{Quorum, Votes};
use super::window::Window;
use crate::base::{Id, Span};
use crate::ir::literal::quote;
use crate::ir::op::Write;
use crate::ir::{Graph, Op};
use crate::kernel::{Fill, Nest, Strides};
use crate::ops::select::Selector;
use crate::types::shape::Extents;
use crate::types::{Dim, Type};
use std::fmt::{self, Display};

impl Display for StepList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        text.block("list", Span::NONE, |text| {
            text.lines(&self.before.clone().pruned().to_text("before"));
            text.windows(&self.windows, &self.in_place);
            self.temporaries.iter().enumerate().for_each(|(k, t)| text.line(&format!("t{k} {} at {}", t.bytes, t.at)));
            self.items.iter().for_each(|item| text.item(item));
            for (id, offset, place) in &self.writes {
                text.line(&format!("write state{}[{offset}] = {place}", id.idx()));
            }
            text.told("stop", self.stop.as_ref());
            text.flag("impure", self.impure);
            text.flag("eager", self.eager);
        });
        f.write_str(&text.out)
    }
}

impl Display for LoopKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        text.block(&format!("loop lanes {}", self.lanes), Span::NONE, |text| {
            text.lines(&self.before.clone().pruned().to_text("before"));
            text.windows(&self.windows, &[]);
            self.places.iter().for_each(|place| text.line(&format!("is {place}")));
            text.flag("guarded", self.guarded);
            text.flag("slices", self.slices);
            self.votes.iter().for_each(|votes| text.line(&format!("votes {votes}")));
            self.loops.iter().for_each(|&span| text.commented("runs", span));
            text.lines(&self.kernel.to_string());
        });
        f.write_str(&text.out)
    }
}

/// Where an operand of a loop kernel lies, and from which element on.
impl Display for kernel::Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            kernel::Place::Seq { id, at } => write!(f, "seq{} from {at}", id.idx()),
            kernel::Place::Before { value, at } => write!(f, "value{value} from {at}"),
            kernel::Place::Row { id, offset, at } => write!(f, "state{}[{offset}] from {at}", id.idx()),
            kernel::Place::Window { id, row, at } => write!(f, "window{}[{row}] from {at}", id.idx()),
            kernel::Place::Stopped => f.write_str("stopped"),
            kernel::Place::Failed => f.write_str("failed"),
            kernel::Place::Votes => f.write_str("votes"),
        }
    }
}

impl Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Slot(slot) => write!(f, "t{slot}"),
            At::Seq(id) => write!(f, "seq{}", id.idx()),
            At::Before(value) => write!(f, "value{value}"),
            At::Row(id, offset) => write!(f, "state{}[{offset}]", id.idx()),
        }
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.at, self.dtype.short(), extents(&self.shape))?;
        if self.first != 0 {
            write!(f, " from {}", self.first)?;
        }
        if self.along.iter().any(|&n| n != 0) {
            write!(f, " along {:?}", self.along)?;
        }
        Ok(())
    }
}

impl Display for Votes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quorum = if self.quorum == Quorum::All { "all" } else { "one" };
        write!(f, "{quorum} of {}", self.voters)
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Count::Known(n) => write!(f, "{n}"),
            Count::Read(place, most) => write!(f, "{place} most {most}"),
        }
    }
}

impl Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.input {
            Some(input) => write!(f, "{} of input {input} from {} by {} to {}", self.n, self.from, self.step, self.to),
            None => write!(f, "{} zeros to {}", self.n, self.to),
        }
    }
}

impl Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::Basic(pattern) => f.write_str(&quote(&pattern.to_string())),
            Selector::Advanced(axes) => write!(f, "along {axes:?}"),
        }
    }
}

fn extents(shape: &[usize]) -> String {
    if shape.is_empty() { String::new() } else { format!("{shape:?}") }
}

/// The graph of one op on operands that lie in such places.
pub(super) fn of_op(op: &Op, ins: &[Place]) -> crate::base::Result<Graph> {
    let mut graph = Graph::new();
    let ins: Vec<_> = ins.iter().map(|place| graph.param(ty(place), None)).collect();
    let outs = graph.apply(op.clone(), &ins)?;
    graph.set_results(outs.to_vec());
    Ok(graph)
}

/// The type of what lies in a place.
pub(super) fn ty(place: &Place) -> Type {
    Type::new(place.dtype, place.shape.iter().copied().map(Dim::known))
}

/// What is written so far, and how far lines are indented.
#[derive(Default)]
struct Text {
    out: String,
    depth: usize,
}

impl Text {
    fn line(&mut self, line: &str) {
        self.out += &format!("{}{line}\n", "  ".repeat(self.depth));
    }
    fn lines(&mut self, lines: &str) {
        lines.lines().for_each(|line| self.line(line));
    }
    /// A line with the user's own behind it.
    fn commented(&mut self, line: &str, span: Span) {
        let comment = span.place().map_or(String::new(), |_| format!("  # {}", span.to_string().replace(char::is_control, "_")));
        self.line(&format!("{line}{comment}"));
    }
    fn block(&mut self, head: &str, span: Span, body: impl FnOnce(&mut Text)) {
        self.commented(&format!("{head} {{"), span);
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line("}");
    }
    fn flag(&mut self, name: &str, set: bool) {
        if set {
            self.line(name);
        }
    }
    /// A place where something is told.
    fn told(&mut self, what: &str, place: Option<&Place>) {
        place.into_iter().for_each(|place| self.line(&format!("{what} {place}")));
    }

    fn windows(&mut self, windows: &[Window], in_place: &[bool]) {
        for (k, w) in windows.iter().enumerate() {
            let mut line = format!("state{k} {}{} span {} first {}", w.dtype.short(), extents(&w.shape), w.span, w.first_write);
            let carried: Vec<usize> = w.carried_offsets().collect();
            line += if w.stored { " stored" } else { "" };
            line += if w.entering { " entering" } else { "" };
            line += &format!(" carried {carried:?}");
            line += &if w.far.is_empty() { String::new() } else { format!(" far {:?}", w.far) };
            line += if in_place.get(k) == Some(&true) { " in place" } else { "" };
            self.line(&line);
        }
    }

    fn item(&mut self, item: &Item) {
        let head = format!("{} {} to {}", head(&item.work), places(&item.ins), places(&item.outs));
        match &item.work {
            Work::MatMul(_) | Work::Read(_) | Work::Write(..) | Work::Guard(_) | Work::Within { .. } => self.commented(&head, item.span),
            Work::Nest(nest) => self.block(&head, item.span, |text| text.nest(nest)),
            Work::Move(runs) | Work::Add(runs) => self.block(&head, item.span, |text| text.runs(runs)),
            Work::Slice(slice) => self.block(&head, item.span, |text| {
                for b in &slice.begins {
                    text.line(&format!("begin input {} apart {} last {} end {}", b.input, b.apart, b.last, b.from_end));
                }
                text.runs(&slice.runs);
            }),
            Work::Direct(_, op) | Work::Call(op, _) => self.block(&head, item.span, |text| match of_op(op, &item.ins) {
                Ok(graph) => text.lines(&graph.to_text("op")),
                Err(e) => text.line(&format!("# {e}")),
            }),
            Work::Loop(inner) => self.block(&head, item.span, |text| text.inner(inner)),
            Work::For(inner) => self.block(&head, item.span, |text| text.inner_list(inner)),
        }
    }
    fn runs(&mut self, runs: &[Run]) {
        runs.iter().for_each(|run| self.line(&run.to_string()));
    }
    fn nest(&mut self, nest: &Nest) {
        for (k, Strides { step, outer }) in nest.strides.iter().enumerate().filter(|(_, s)| **s != Strides::default()) {
            self.line(&format!("moves m{k} {step} {:?}", outer.as_slice()));
        }
        for Fill { operand, bits, count } in &nest.fills {
            self.line(&format!("fill m{operand} {count} {}", *bits as i64));
        }
        self.lines(&nest.kernel.to_string());
    }
    fn inner(&mut self, inner: &InnerKernel) {
        inner.operands.iter().for_each(|place| self.line(&format!("is {place}")));
        self.told("stopped", inner.stopped.as_ref());
        inner.votes.iter().for_each(|(place, votes)| self.line(&format!("votes {votes} {place}")));
        self.told("failed", inner.failed.as_ref());
        self.told("ran", inner.ran.as_ref());
        inner.loops.iter().for_each(|&span| self.commented("runs", span));
        self.nest(&inner.nest);
    }
    fn inner_list(&mut self, inner: &InnerList) {
        self.told("step", Some(&inner.step));
        inner.items.iter().for_each(|item| self.item(item));
        inner.writes.iter().for_each(|[from, to]| self.line(&format!("write {to} = {from}")));
        self.told("stop", inner.stop.as_ref());
        self.told("ran", inner.ran.as_ref());
    }
}

/// What a part is, with what one line says of it.
fn head(work: &Work) -> String {
    match work {
        Work::Nest(nest) => nest_head("kernel", nest),
        Work::Move(_) => "move".into(),
        Work::Add(_) => "add".into(),
        Work::MatMul(extents) => format!("matmul {extents:?}"),
        Work::Read(selector) => format!("read {selector}"),
        Work::Write(selector, Write::Set) => format!("set {selector}"),
        Work::Write(selector, Write::Inc) => format!("inc {selector}"),
        Work::Slice(_) => "slice".into(),
        Work::Direct(..) => "direct".into(),
        Work::Call(..) => "call".into(),
        Work::Guard([least, most]) => format!("guard {least} {most}"),
        Work::Within { axis, extent } => format!("within {axis} {extent}"),
        Work::Loop(inner) => format!("{} count {}{}", nest_head("loop", &inner.nest), inner.count, named(inner.name.as_deref())),
        Work::For(inner) => format!("for level {} count {}{}", inner.level, inner.count, named(inner.name.as_deref())),
    }
}

fn nest_head(what: &str, nest: &Nest) -> String {
    let first = if nest.first == 0 { String::new() } else { format!(" from {}", nest.first) };
    let outer = if nest.outer.is_empty() { String::new() } else { format!(" outer {:?}", nest.outer.as_slice()) };
    format!("{what} lanes {} steps {}{first}{outer}", nest.lanes, nest.steps)
}

fn named(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!(" name {}", quote(name)))
}

fn places(places: &[Place]) -> String {
    format!("({})", places.iter().map(Place::to_string).collect::<Vec<_>>().join(", "))
}

/// Extents of a type that are all known.
pub(super) fn known(ty: &Type) -> Option<Extents> {
    ty.dims.iter().map(Dim::value).collect()
}
