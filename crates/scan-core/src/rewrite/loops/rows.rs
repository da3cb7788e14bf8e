//! How many rows values have, as affine forms over the steps of loops, as far as it can be proved.
//!
//! Where initial rows may be fewer than the taps need, a loop that runs no step returns fewer rows than its form says; such a
//! form is given with the steps on which it relies, and holds where these are not 0.

use super::facts::{integer, never_negative};
use crate::base::Id;
use crate::ir::{Def, Graph, Keep, Op, Scan, StateId, Value};
use crate::ops::index::{Item, Pattern};
use crate::scalar::ElemOp;
use crate::types::{Dim, Sym};
use rustc_hash::FxHashMap;

/// A number of rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rows {
    /// As an affine form.
    pub form: Dim,
    /// The form holds where these steps are not 0.
    pub relies: Option<Dim>,
}

impl Rows {
    fn exactly(form: Dim) -> Rows {
        Rows { form, relies: None }
    }
    fn plus(self, n: i64) -> Rows {
        Rows { form: self.form.add(&number(n)), ..self }
    }
}

fn number(n: i64) -> Dim {
    Dim::from_parts([], n)
}

/// Proves numbers of rows in one graph.
pub struct Prover<'g> {
    g: &'g Graph,
    symbols: FxHashMap<Value, Sym>,
    known: FxHashMap<Value, Rows>,
}

impl<'g> Prover<'g> {
    /// Nothing proved yet.
    pub fn new(g: &'g Graph) -> Prover<'g> {
        Prover { g, symbols: FxHashMap::default(), known: FxHashMap::default() }
    }

    /// An integer scalar as a form.
    pub fn scalar(&mut self, v: Value) -> Dim {
        if let Some(n) = integer(self.g, v) {
            return number(n);
        }
        if let Some(node) = self.g.node_of(v) {
            match &node.op {
                Op::Elem(ElemOp::Add) => return self.scalar(node.ins[0]).add(&self.scalar(node.ins[1])),
                Op::Elem(ElemOp::Sub) => return self.scalar(node.ins[0]).sub(&self.scalar(node.ins[1])),
                Op::DimOf(d) if d.axis == 0 => {
                    let rows = self.rows(node.ins[0]);
                    if rows.relies.is_none() {
                        return rows.form;
                    }
                }
                Op::Scan(scan) if !scan.until => return self.scalar(node.ins[Scan::N_STEPS]),
                _ => {}
            }
        }
        self.g.arg(v).dim.unwrap_or_else(|| Dim::sym(*self.symbols.entry(v).or_insert_with(Sym::fresh)))
    }

    /// As [`Prover::scalar`], for values that are integer scalars.
    pub fn scalar_of(&mut self, v: Value) -> Option<Dim> {
        let ty = self.g.ty(v);
        (ty.rank() == 0 && ty.dtype.is_int()).then(|| self.scalar(v))
    }

    /// Extent of the first axis.
    pub fn rows(&mut self, v: Value) -> Rows {
        if let Some(rows) = self.known.get(&v) {
            return rows.clone();
        }
        let declared = self.g.ty(v).dims.first().cloned().unwrap_or_else(|| Dim::known(1));
        let found = if declared.value().is_some() { None } else { self.derived(v) };
        let rows = found.unwrap_or_else(|| Rows::exactly(declared));
        self.known.insert(v, rows.clone());
        rows
    }

    fn derived(&mut self, v: Value) -> Option<Rows> {
        let Def::Out(id, at) = self.g.def(v) else { return None };
        let node = &self.g.nodes()[id];
        let ins = node.ins.clone();
        match &node.op {
            Op::Scan(scan) if at < scan.states.len() => self.buffer(scan, &ins, StateId::new(at)),
            Op::BroadcastTo(_) => Some(Rows::exactly(self.scalar(ins[1]))),
            Op::Reshape(_) if never_negative(self.g, ins[1]) => Some(Rows::exactly(self.scalar(ins[1]))),
            Op::MatMul(_) if self.g.ty(ins[0]).rank() > 1 && self.g.ty(ins[1]).rank() < 3 => Some(self.rows(ins[0])),
            Op::Elem(_) => self.common(v, &ins),
            Op::Join(op) if op.axis == 0 => self.joined(&ins),
            Op::Index(op) => self.slice(&Pattern::parse(&op.pattern).ok()?, &ins),
            op => op.rows_of(self.g.ty(v).rank()).map(|k| self.rows(ins[k])),
        }
    }

    /// Operands of an elementwise operation that have all axes and the same number of rows.
    fn common(&mut self, v: Value, ins: &[Value]) -> Option<Rows> {
        let rank = self.g.ty(v).rank();
        let mut full = ins.iter().filter(|i| self.g.ty(**i).rank() == rank && !self.g.ty(**i).dims[0].is_one());
        let first = self.rows(*full.next()?);
        let rest: Vec<Value> = full.copied().collect();
        rest.into_iter().all(|i| self.rows(i) == first).then_some(first)
    }

    fn joined(&mut self, ins: &[Value]) -> Option<Rows> {
        let mut sum = Rows::exactly(Dim::known(0));
        for &v in ins {
            let rows = self.rows(v);
            if rows.relies.is_some() && sum.relies.is_some() && rows.relies != sum.relies {
                return None;
            }
            sum = Rows { form: sum.form.add(&rows.form), relies: sum.relies.or(rows.relies) };
        }
        Some(sum)
    }

    /// Slices with constant bounds, or with an end that is an affine form over what gives x its rows.
    fn slice(&mut self, pattern: &Pattern, ins: &[Value]) -> Option<Rows> {
        let Some(&Item::Slice { start, end, step: 1 }) = pattern.items.first() else { return None };
        let x = self.rows(ins[0]);
        let lo = if start { integer(self.g, ins[1]).filter(|n| *n >= 0)? } else { 0 };
        let have = x.form.parts().1;
        if !end {
            return (have >= lo).then(|| x.plus(-lo));
        }
        let until = ins[1 + usize::from(start)];
        let hi = self.scalar(until);
        if !start && never_negative(self.g, until) && self.covers(ins[0], until, 0) {
            return Some(Rows::exactly(hi));
        }
        if let ([], n) = hi.parts() {
            return (n < 0 && have + n >= lo).then(|| x.plus(n - lo));
        }
        let spare = x.form.sub(&hi);
        let ([], spare) = spare.parts() else { return None };
        let rows = if spare >= 0 { Rows { form: hi, relies: x.relies } } else { x };
        (rows.form.parts().1 >= lo && rows.form.parts().0.iter().all(|t| t.1 > 0)).then(|| rows.plus(-lo))
    }

    fn buffer(&mut self, scan: &Scan, ins: &[Value], id: StateId) -> Option<Rows> {
        let state = &scan.states[id];
        if state.keep != Keep::All {
            return None;
        }
        let steps = self.steps(scan, ins)?;
        let all = steps.add(&Dim::known(state.span()));
        let Some(at) = scan.init_input(id) else { return Some(Rows::exactly(all)) };
        let init = self.rows(ins[at]);
        if init.form == Dim::known(state.span()) && init.relies.is_none() {
            return Some(Rows::exactly(all));
        }
        if init.form == all {
            return Some(Rows { form: all, relies: init.relies });
        }
        self.at_most(ins[at], state.span()).then_some(Rows { form: all, relies: Some(steps) })
    }

    /// The steps that a loop runs: its output, where a condition may stop it.
    fn steps(&mut self, scan: &Scan, ins: &[Value]) -> Option<Dim> {
        if !scan.until {
            return Some(self.scalar(ins[Scan::N_STEPS]));
        }
        let node = self.g.nodes().iter().find(|n| n.ins[..] == *ins && n.op.as_scan().is_some_and(|s| std::ptr::eq(&**s, scan)))?;
        Some(self.scalar(node.outs[scan.steps_output()]))
    }

    /// True where a value has at most so many rows.
    pub fn at_most(&mut self, v: Value, n: usize) -> bool {
        if self.g.ty(v).dims[0].value().is_some_and(|rows| rows <= n) {
            return true;
        }
        let Some(node) = self.g.node_of(v) else { return false };
        let Op::Index(op) = &node.op else { return false };
        let Ok(pattern) = Pattern::parse(&op.pattern) else { return false };
        let Some(&Item::Slice { start, end: true, step: 1 }) = pattern.items.first() else { return false };
        integer(self.g, node.ins[1 + usize::from(start)]).is_some_and(|e| e >= 0 && e <= n as i64)
    }

    /// True where a value has at least so many rows as a loop with this `n_steps` has steps, plus `more` where it runs any.
    pub fn covers(&mut self, v: Value, n_steps: Value, more: i64) -> bool {
        let rows = self.rows(v);
        let n = self.scalar(n_steps);
        let spare = rows.form.sub(&n).add(&number(-more));
        let enough = matches!(spare.parts(), ([], c) if c >= 0);
        if enough && rows.relies.as_ref().is_none_or(|m| *m == n) {
            return true;
        }
        match self.g.node_of(n_steps) {
            Some(node) if matches!(node.op, Op::Elem(ElemOp::Minimum)) => {
                let (a, b) = (node.ins[0], node.ins[1]);
                self.covers(v, a, more) || self.covers(v, b, more)
            }
            _ => false,
        }
    }
}
