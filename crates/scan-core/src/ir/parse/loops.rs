//! Loops.

use super::{Name, Parser, Ref, Scope};
use crate::base::words::Tok;
use crate::base::{Id, IdxVec, Result, Span};
use crate::ir::graph::Value;
use crate::ir::op::Op;
use crate::ir::scan::{Keep, NonSeq, Offsets, Scan, Seq, State, StateId, Tag};
use crate::ir::verify;
use crate::types::{DType, Type};
use std::sync::Arc;

/// The largest number of offsets of a state.
const MAX_OFFSETS: usize = 1 << 16;
/// The largest offset.
const MAX_OFFSET: usize = 1 << 31;

/// The slots of a loop as they are read.
#[derive(Default)]
struct Slots<'t> {
    seqs: Vec<(Name<'t>, Type, Value, bool)>,
    states: Vec<(Name<'t>, State, Option<Value>, Vec<Option<Type>>)>,
    captured: Vec<(Name<'t>, Type, Value)>,
    step: Option<Name<'t>>,
}

impl<'t> Parser<'t> {
    /// A loop, from the word `scan` to its closing brace.
    pub(super) fn scan(&mut self, outer: &mut Scope, span: Span) -> Result<Ref> {
        let at = self.at();
        self.depth += 1;
        if self.depth > Scan::MAX_DEPTH {
            return self.fail(at, "E0906", format!("loops nest at most {} deep", Scan::MAX_DEPTH));
        }
        self.expect_word("scan")?;
        let name = if let Tok::Text(name) = self.peek() { Some(Arc::from(name.as_str())) } else { None };
        self.pos += name.is_some() as usize;
        self.expect_word("n_steps")?;
        self.expect('=')?;
        let n_steps = self.operand(outer)?;
        let truncate = if self.eat_word("truncate") { Some(self.assigned_count()?) } else { None };
        self.expect('{')?;
        let slots = self.slots(outer)?;
        let ins: Vec<Value> = std::iter::once(n_steps)
            .chain(slots.seqs.iter().map(|s| s.2))
            .chain(slots.states.iter().filter_map(|s| s.2))
            .chain(slots.captured.iter().map(|c| c.2))
            .collect();
        let scan = self.body(slots, name, truncate)?;
        self.depth -= 1;
        let types: Vec<&Type> = ins.iter().map(|&v| outer.graph.ty(v)).collect();
        verify::check_scan(&scan, &types).map_err(|e| self.blame(at, e))?;
        let states = scan.states.iter().map(|s| s.name.as_deref().unwrap_or_default().to_string()).collect();
        outer.graph.set_span(span);
        let outs = self.apply(outer, Op::Scan(Arc::new(scan)), &ins, at)?;
        Ok(Ref::Loop(outs, states))
    }
    fn assigned_count(&mut self) -> Result<usize> {
        self.expect('=')?;
        self.count()
    }
    fn assigned(&mut self, outer: &mut Scope) -> Result<Value> {
        self.expect('=')?;
        self.operand(outer)
    }
    fn slots(&mut self, outer: &mut Scope) -> Result<Slots<'t>> {
        let mut slots = Slots::default();
        loop {
            let at = self.at();
            if self.eat_word("seq") {
                let (name, ty) = self.slot_name("a sequence")?;
                let value = self.assigned(outer)?;
                let ty = ty.map_or_else(|| self.row(outer, value, at), Ok)?;
                let reverse = self.eat_word("reverse");
                slots.seqs.push((name, ty, value, reverse));
            } else if self.eat_word("state") {
                let state = self.state(outer, at)?;
                slots.states.push(state);
            } else if self.eat_word("const") {
                let (name, ty) = self.slot_name("a captured value")?;
                let value = self.assigned(outer)?;
                slots.captured.push((name, ty.unwrap_or_else(|| outer.graph.ty(value).clone()), value));
            } else if self.eat_word("step") {
                let name = self.name("the step index")?;
                if slots.step.replace(name).is_some() {
                    return self.fail(at, "E0907", "a loop has one step index");
                }
            } else {
                return Ok(slots);
            }
        }
    }
    fn slot_name(&mut self, what: &str) -> Result<(Name<'t>, Option<Type>)> {
        let name = self.name(what)?;
        let ty = if self.eat(':') { Some(self.ty()?) } else { None };
        Ok((name, ty))
    }
    fn row(&self, outer: &Scope, v: Value, at: usize) -> Result<Type> {
        let ty = outer.graph.ty(v);
        if ty.rank() > 0 { Ok(ty.row()) } else { self.fail(at, "E0907", format!("expected an array of rows, got {ty}")) }
    }
    fn state(&mut self, outer: &mut Scope, at: usize) -> Result<(Name<'t>, State, Option<Value>, Vec<Option<Type>>)> {
        let (name, row) = self.slot_name("a state")?;
        let init = if self.eat_word("init") { Some(self.assigned(outer)?) } else { None };
        let row = match (row, init) {
            (Some(row), _) => row,
            (None, Some(v)) => self.row(outer, v, at)?,
            (None, None) => return self.fail(at, "E0907", format!("state `{}` has neither initial rows nor the type of a row", name.text)),
        };
        self.expect_word("reads")?;
        self.expect('=')?;
        let reads = self.offsets(true)?;
        self.expect_word("writes")?;
        self.expect('=')?;
        let writes = self.offsets(false)?;
        self.expect_word("keep")?;
        self.expect('=')?;
        let keep = self.keep()?;
        let tag = match () {
            _ if self.eat_word("shared") => Tag::Shared,
            _ if self.eat_word("cotangent") => Tag::Cotangent,
            _ => Tag::Output,
        };
        let (reads, types): (Offsets, Vec<_>) = reads.into_iter().unzip();
        let writes = writes.into_iter().map(|w| w.0).collect();
        let state = State { row, init: init.is_some(), reads, writes, keep, tag, name: name.given().map(Into::into) };
        Ok((name, state, init, types))
    }
    fn offsets(&mut self, typed: bool) -> Result<Vec<(usize, Option<Type>)>> {
        let at = self.at();
        let offsets = self.list('[', ']', |p| {
            let offset = p.count()?;
            let ty = if typed && p.eat(':') { Some(p.ty()?) } else { None };
            Ok((offset, ty))
        })?;
        if offsets.len() > MAX_OFFSETS || offsets.iter().any(|o| o.0 > MAX_OFFSET) {
            return self.fail(at, "E0906", format!("a state has at most {MAX_OFFSETS} offsets, each at most {MAX_OFFSET}"));
        }
        Ok(offsets)
    }
    fn keep(&mut self) -> Result<Keep> {
        if self.eat_word("all") {
            return Ok(Keep::All);
        }
        self.expect_word("last")?;
        self.expect('(')?;
        let n = self.count()?;
        self.expect(')')?;
        Ok(Keep::Last(n))
    }
    /// Parameters in the order of the slots, statements, then the rows and the condition that the step gives.
    fn body(&mut self, slots: Slots<'t>, name: Option<Arc<str>>, truncate: Option<usize>) -> Result<Scan> {
        let mut scope = Scope::default();
        let step = scope.graph.param(Type::scalar(DType::I64), slots.step.as_ref().and_then(Name::given));
        if let Some(name) = &slots.step {
            self.define(&mut scope, name.text, name.at, Ref::Value(step))?;
        }
        for (name, ty, ..) in &slots.seqs {
            self.slot(&mut scope, name, ty)?;
        }
        self.reads(&mut scope, &slots)?;
        for (name, ty, _) in &slots.captured {
            self.slot(&mut scope, name, ty)?;
        }
        let seqs = slots.seqs.iter().map(|s| Seq { reverse: s.3, name: s.0.given().map(Into::into) }).collect();
        let captured = slots.captured.iter().map(|c| NonSeq { name: c.0.given().map(Into::into) }).collect();
        let (names, states): (Vec<Name>, IdxVec<StateId, State>) =
            slots.states.into_iter().map(|s| (s.0, s.1)).fold((vec![], IdxVec::new()), |(mut names, mut states), (name, state)| {
                names.push(name);
                states.push(state);
                (names, states)
            });
        self.statements(&mut scope)?;
        let mut scan = Scan { name, body: Default::default(), seqs, states, captured, until: false, truncate };
        self.ends(&mut scope, &mut scan, &names)?;
        scan.body = scope.graph;
        Ok(scan)
    }
    fn slot(&mut self, scope: &mut Scope, name: &Name, ty: &Type) -> Result<()> {
        let v = scope.graph.param(ty.clone(), name.given());
        self.define(scope, name.text, name.at, Ref::Value(v))
    }
    /// Parameters of the states, and a check of their names.
    fn reads(&mut self, scope: &mut Scope, slots: &Slots<'t>) -> Result<()> {
        let mut seen = rustc_hash::FxHashSet::default();
        for (name, state, _, types) in &slots.states {
            if !seen.insert(name.text) || name.text == "steps" {
                return self.fail(name.at, "E0904", format!("no second output of the loop may be named `{}`", name.text));
            }
            for (offset, ty) in state.reads.iter().zip(types) {
                let ty = ty.clone().unwrap_or_else(|| state.row.clone());
                let spelled = if state.reads.len() == 1 { name.text.to_string() } else { format!("{}@{offset}", name.text) };
                let v = scope.graph.param(ty, name.given().map(|_| spelled.as_str()));
                self.define(scope, &spelled, name.at, Ref::Value(v))?;
            }
        }
        Ok(())
    }
    /// The lines `next` and `until`, and the closing brace.
    fn ends(&mut self, scope: &mut Scope, scan: &mut Scan, names: &[Name<'t>]) -> Result<()> {
        let total: usize = scan.states.iter().map(|s| s.writes.len()).sum();
        let mut results: Vec<Option<Value>> = vec![None; total];
        let mut until = None;
        loop {
            let at = self.at();
            if self.eat_word("next") {
                let slot = self.next_slot(scan, names)?;
                let v = self.assigned(scope)?;
                if results[slot].replace(v).is_some() {
                    return self.fail(at, "E0907", "this row has been given already");
                }
            } else if self.eat_word("until") {
                let v = self.operand(scope)?;
                if until.replace(v).is_some() {
                    return self.fail(at, "E0907", "a loop has one condition");
                }
            } else {
                break;
            }
        }
        let end = self.at();
        if !self.eat('}') {
            return self.unexpected("`next`, `until` or `}`");
        }
        let missing = scan.states.ids().find(|&id| results[scan.write_results(id)].contains(&None));
        if let Some(id) = missing {
            return self.fail(end, "E0907", format!("expected a line `next` for each row that state `{}` writes", names[id.idx()].text));
        }
        scan.until = until.is_some();
        scope.graph.set_results(results.into_iter().flatten().chain(until).collect::<Vec<_>>());
        Ok(())
    }
    /// `h` or `h@1`, as a position among the body's results.
    fn next_slot(&mut self, scan: &Scan, names: &[Name<'t>]) -> Result<usize> {
        let Name { text, at } = self.name("a state")?;
        let Some(i) = names.iter().position(|n| n.text == text) else {
            return self.fail(at, "E0904", format!("the loop has no state `{text}`"));
        };
        let id = StateId::new(i);
        let writes = &scan.states[id].writes;
        let k = match self.eat('@') {
            true => {
                let offset = self.count()?;
                writes.iter().position(|&w| w == offset)
            }
            false => (writes.len() == 1).then_some(0),
        };
        match k {
            Some(k) => Ok(scan.write_results(id).start + k),
            None => self.fail(at, "E0907", format!("state `{text}` writes at offsets {:?}: say which one, as in `{text}@1`", &writes[..])),
        }
    }
}
