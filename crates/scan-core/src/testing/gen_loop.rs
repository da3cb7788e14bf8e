//! Random loops, and programs of them.

use super::gen_expr::{Generator, STATE_BOUND, Scope};
use super::nd::{Kind, Nd};
use super::program::*;
use super::random::Random;
use super::reference::usable;

const SEQ_TAPS: &[&[i64]] =
    &[&[0], &[0], &[0], &[-1, 0], &[-2, 0], &[0, 1], &[2, -1], &[-1], &[1], &[-3, -1, 0], &[0, 0], &[-2], &[2], &[1, 3]];
const STATE_TAPS: &[&[i64]] = &[&[-1], &[-1], &[-1], &[-1], &[-2, -1], &[-1, -3], &[-2], &[-3, -1], &[-1, -2, -4], &[-5]];

/// The program of a seed.
pub fn generate(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let mut extents = vec![1 + random.below(3), 1 + random.below(3), 2 + random.below(2)];
    if random.percent(8) {
        extents.push(0);
    }
    let key = [random.bits(), random.bits()];
    let program = Program { key, ..Program::default() };
    let symbolic = random.percent(60);
    let long = seed % 40 == 17;
    // Seeds are quoted in tests: those that were there before the corners keep their programs.
    let corners = seed % 3 == 2;
    let mut g = Generator { random, program, scopes: vec![Scope::default()], extents, long, corners };
    for _ in 0..2 + g.random.below(3) {
        let shape = g.any_shape();
        let id = g.input(Kind::Float, &shape);
        g.see(id);
    }
    for kind in [Kind::Int, Kind::Float] {
        let shape = if g.random.percent(50) { vec![] } else { g.any_shape() };
        let id = if g.random.percent(60) { g.shared(kind, &shape) } else { g.input(kind, &shape) };
        g.see(id);
    }
    g.intermediates(2);
    let mut returned = vec![];
    for _ in 0..if g.random.percent(35) && !long { 2 } else { 1 } {
        returned.extend(g.top_loop());
    }
    if corners && !long {
        returned.extend(g.corners());
    }
    g.finish(returned, symbolic)
}

/// How many steps a loop runs.
struct Steps {
    /// The most.
    n: usize,
    given: Option<Id>,
    dynamic: bool,
}

impl Generator {
    /// A new input of the program.
    pub fn input(&mut self, kind: Kind, shape: &[usize]) -> Id {
        let value = self.numbers(kind, shape);
        self.input_of(value)
    }

    pub(super) fn input_of(&mut self, value: Nd) -> Id {
        let (kind, shape) = (value.kind, value.shape.clone());
        let known = vec![Known::Number; shape.len()];
        let bound = value.data.iter().fold(1.0, |b: f64, x| b.max(x.abs()));
        self.program.inputs.push(Input { value, known });
        self.top(Expr::Input(self.program.inputs.len() - 1), kind, &shape, bound)
    }

    /// A new shared variable.
    pub fn shared(&mut self, kind: Kind, shape: &[usize]) -> Id {
        let value = self.numbers(kind, shape);
        self.program.shared.push(value);
        let bound = if kind == Kind::Float { STATE_BOUND } else { 6.0 };
        self.top(Expr::Shared(self.program.shared.len() - 1), kind, shape, bound)
    }

    /// An item of the top level, whatever the level at work.
    fn top(&mut self, expr: Expr, kind: Kind, shape: &[usize], bound: f64) -> Id {
        let id = self.slot(kind, shape, bound);
        self.program.items[id].expr = expr;
        self.scopes[0].block.push(id);
        id
    }

    fn intermediates(&mut self, most: usize) {
        for _ in 0..self.random.below(most + 1) {
            let kind = if self.random.percent(20) { Kind::Int } else { Kind::Float };
            let (shape, depth) = (self.any_shape(), 1 + self.random.below(2));
            let id = self.expr(kind, &shape, depth);
            self.see(id);
        }
    }

    fn top_loop(&mut self) -> Vec<Id> {
        let network = !self.long && self.random.percent(20);
        let (id, mut returned) = if network { self.network() } else { self.one_loop(0) };
        let Expr::Loop(l) = &self.program.items[id].expr else { return returned };
        let updated: Vec<Id> = l.updates.iter().map(|u| u.0).collect();
        for (k, leaf) in updated.into_iter().enumerate() {
            let after = self.after(id, k, leaf);
            let Expr::Shared(at) = self.program.items[leaf].expr else { continue };
            if self.random.percent(85) {
                self.program.updates.push((at, after));
            } else {
                returned.push(after);
            }
            self.see(after);
        }
        returned
    }

    fn after(&mut self, of: Id, k: usize, leaf: Id) -> Id {
        let (kind, shape, bound) = (self.kind(leaf), self.shape(leaf), self.bound(leaf));
        self.add(Expr::After(of, k), kind, &shape, bound)
    }

    fn steps(&mut self, level: usize) -> (Steps, bool) {
        let n = if self.long {
            70 + self.random.below(100)
        } else if level > 0 {
            self.random.below(4)
        } else {
            *self.random.pick(&[0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6])
        };
        let step = self.scope().step;
        if let Some(step) = step.filter(|_| self.random.percent(40)) {
            self.mark("inner n_steps from outer step");
            let three = self.number(Kind::Int, 3.0);
            let given = self.add(Expr::Binary(Binary::Mod, step, three), Kind::Int, &[], 2.0);
            return (Steps { n: 2, given: Some(given), dynamic: true }, false);
        }
        let given = match self.random.below(20) {
            0..=8 if n != 1 => None,
            0..=5 => None,
            6..=15 => Some(self.number(Kind::Int, n as f64)),
            _ => Some(self.input_of(Nd::scalar(Kind::Int, n as f64))),
        };
        self.mark(match given.map(|id| &self.program.items[id].expr) {
            None => "n_steps inferred",
            Some(Expr::Const(_)) => "n_steps constant",
            Some(_) => "n_steps variable",
        });
        match n {
            0 => self.mark("0 steps"),
            1 if matches!(given.map(|id| &self.program.items[id].expr), Some(Expr::Const(_))) => self.mark("1 step"),
            _ => {}
        }
        (Steps { n, given, dynamic: false }, given.is_none())
    }

    /// A sequence that serves `n` steps, or, with `exact`, no more.
    fn sequence(&mut self, n: usize, exact: bool) -> SeqUse {
        let taps = self.random.pick(SEQ_TAPS).to_vec();
        let (low, high) = (taps.iter().copied().min().unwrap_or(0).min(0), taps.iter().copied().max().unwrap_or(0).max(0));
        for (name, found) in [("several", taps.len() > 1), ("negative", low < 0), ("positive", high > 0)] {
            if found {
                let all = ["taps: several on a sequence", "taps: negative on a sequence", "taps: positive on a sequence"];
                self.mark(all.into_iter().find(|f| f.contains(name)).unwrap_or(all[0]));
            }
        }
        let fits = |g: &Self, id: Id| {
            let (item, shape) = (&g.program.items[id], g.shape(id));
            let have = shape.first().map(|&rows| usable(rows, &taps));
            !item.dynamic && item.kind != Kind::Bool && have.is_some_and(|have| have == n || (have > n && !exact))
        };
        let there: Vec<Id> = self.scopes.iter().flat_map(|s| s.seen.iter().copied()).filter(|&id| fits(self, id)).collect();
        if !there.is_empty() && self.random.percent(60) {
            let rows: Vec<Id> = there.iter().copied().filter(|&id| matches!(self.program.items[id].expr, Expr::Output(..))).collect();
            let x = if !rows.is_empty() && self.random.percent(90) { *self.random.pick(&rows) } else { *self.random.pick(&there) };
            if matches!(self.program.items[x].expr, Expr::Output(..)) {
                self.mark("loop over a loop's rows");
            }
            return SeqUse { x, taps, slots: vec![] };
        }
        let slack = if exact { 0 } else { *self.random.pick(&[0, 0, 1, 2, 3]) };
        let kind = if self.random.percent(25) { Kind::Int } else { Kind::Float };
        let rows = n + (high - low) as usize + slack;
        if kind == Kind::Int && !exact && self.random.percent(30) {
            let long = Nd::by(Kind::Int, &[rows + 40], |at| at[0] as f64);
            let x = self.add(Expr::Const(long), Kind::Int, &[rows + 40], rows as f64 + 40.0);
            return SeqUse { x, taps, slots: vec![] };
        }
        let shape = [&[rows], &self.any_shape()[..]].concat();
        let x = if self.random.percent(65) { self.input(kind, &shape) } else { self.expr(kind, &shape, 1) };
        SeqUse { x, taps, slots: vec![] }
    }

    fn state(&mut self) -> StateUse {
        let taps = self.random.pick(STATE_TAPS).to_vec();
        let kind = if self.random.percent(25) { Kind::Int } else { Kind::Float };
        let row = self.any_shape();
        let mut state = StateUse { init: 0, taps, slots: vec![] };
        let shape = if state.taps == [-1] {
            row
        } else {
            self.mark("taps: several on a state");
            let spare = if self.random.percent(30) { 1 + self.random.below(2) } else { 0 };
            if spare > 0 {
                self.mark("initial rows to spare");
            }
            [&[state.span() + spare], &row[..]].concat()
        };
        let init = if self.random.percent(50) { self.input(kind, &shape) } else { self.expr(kind, &shape, 1) };
        state.init = self.within(init, if kind == Kind::Float { STATE_BOUND } else { 6.0 });
        state
    }

    fn slots(&mut self, l: &mut Loop) {
        l.step = self.slot(Kind::Int, &[], 40.0);
        self.scopes.push(Scope { step: Some(l.step), ..Scope::default() });
        for seq in &mut l.seqs {
            let (kind, shape, bound) = (self.kind(seq.x), self.shape(seq.x), self.bound(seq.x));
            if kind == Kind::Int {
                self.mark("integer sequence");
            }
            seq.slots = seq.taps.iter().map(|_| self.slot(kind, &shape[1..], bound)).collect();
        }
        for state in &mut l.states {
            let (kind, shape) = (self.kind(state.init), self.shape(state.init));
            let row = if state.taps == [-1] { &shape[..] } else { &shape[1..] };
            if kind == Kind::Int {
                self.mark("integer state");
            }
            let bound = if kind == Kind::Float { STATE_BOUND } else { 6.0 };
            state.slots = state.taps.iter().map(|_| self.slot(kind, row, bound)).collect();
        }
        for state in &l.states {
            if self.random.percent(6) {
                self.mark("state never read");
            } else {
                self.scope().seen.extend(&state.slots);
            }
        }
        self.scope().seen.extend(l.seqs.iter().flat_map(|s| s.slots.iter().copied()));
    }

    /// A loop in the innermost level; its item, and what can be returned of it.
    pub fn one_loop(&mut self, level: usize) -> (Id, Vec<Id>) {
        let (steps, inferred) = self.steps(level);
        let mut l = Loop { n_steps: steps.given, ..Loop::default() };
        let n_seqs = if inferred { 1 + self.random.below(3) } else { self.random.below(3) };
        for k in 0..n_seqs {
            let exact = inferred && k == 0;
            l.seqs.push(self.sequence(steps.n, exact));
        }
        if inferred && l.seqs.iter().any(|s| usable(self.shape(s.x)[0], &s.taps) > steps.n) {
            self.mark("unequal lengths");
        }
        self.random.shuffle(&mut l.seqs);
        for _ in 0..*self.random.pick(&[0, 1, 1, 1, 2, 2, 3]) {
            l.states.push(self.state());
        }
        if l.states.len() > 1 {
            self.mark("several states");
        }
        if self.random.percent(if l.seqs.is_empty() { 0 } else { 25 }) {
            l.backwards = true;
            self.mark("go_backwards");
        }
        if self.random.percent(10) {
            l.truncate = Some(1 + self.random.below(3));
            self.mark("truncate_gradient");
        }
        self.slots(&mut l);
        self.body(&mut l, level);
        let scope = self.scopes.pop().unwrap_or_default();
        l.body = scope.block;
        let dynamic = steps.dynamic || l.until.is_some();
        self.loop_item(l, steps.n, dynamic)
    }

    /// The item of a loop, and what can be returned of it.
    pub fn loop_item(&mut self, l: Loop, n: usize, dynamic: bool) -> (Id, Vec<Id>) {
        let rows: Vec<Id> = l.outputs.iter().map(|o| o.1).collect();
        let id = self.add(Expr::Loop(Box::new(l)), Kind::Float, &[], 0.0);
        let mut returned = vec![];
        for (k, row) in rows.into_iter().enumerate() {
            let (kind, shape, bound) = (self.kind(row), self.shape(row), self.bound(row));
            let all = if dynamic { shape.clone() } else { [&[n], &shape[..]].concat() };
            let out = self.add(Expr::Output(id, k), kind, &all, bound);
            self.program.items[out].dynamic = dynamic;
            if dynamic && kind != Kind::Bool {
                let sum = self.add(Expr::Reduce(Reduce::Sum, out, 0, false), kind, &shape, n as f64 * bound);
                self.see(sum);
            } else if !dynamic {
                self.see(out);
            }
            if !dynamic && n > 0 && self.random.percent(30) {
                self.mark("last row read");
                let last = self.number(Kind::Int, -1.0);
                let last = self.add(Expr::Row(out, last), kind, &shape, bound);
                self.see(last);
            }
            returned.push(out);
        }
        let steps = self.add(Expr::Steps(id), Kind::Int, &[], n as f64);
        self.see(steps);
        returned.push(steps);
        (id, returned)
    }

    fn body(&mut self, l: &mut Loop, level: usize) {
        if level < 2 && !self.long && self.random.percent(if level == 0 { 28 } else { 10 }) {
            self.inner(l, level);
        }
        if self.random.percent(35) {
            self.captured_expression();
        }
        self.intermediates(2);
        for k in 0..l.states.len() {
            let out = self.next_row(&l.states[k]);
            l.outputs.push((Some(k), out));
        }
        let least = usize::from(l.outputs.is_empty());
        for _ in 0..least + self.random.below(3) {
            let out = self.free_output(l);
            l.outputs.push((None, out));
        }
        self.random.shuffle(&mut l.outputs);
        if self.random.percent(if level == 0 { 25 } else { 30 }) {
            for _ in 0..1 + self.random.below(2) {
                self.update(l);
            }
        }
        if self.random.percent(20) {
            self.mark("until");
            l.until = Some(self.until(l));
        }
    }

    fn inner(&mut self, l: &mut Loop, level: usize) {
        self.mark("nested loop");
        let (id, _) = self.one_loop(level + 1);
        let Expr::Loop(inner) = &self.program.items[id].expr else { return };
        let updated: Vec<Id> = inner.updates.iter().map(|u| u.0).collect();
        for (k, leaf) in updated.into_iter().enumerate() {
            let after = self.after(id, k, leaf);
            self.see(after);
            if self.random.percent(85) {
                self.mark("updates of an inner loop");
                l.updates.push((leaf, after));
            }
        }
    }

    fn captured_expression(&mut self) {
        let outer = self.scopes.len() - 1;
        let floats: Vec<Id> =
            self.scopes[..outer].iter().flat_map(|s| s.seen.iter().copied()).filter(|&id| self.kind(id) == Kind::Float).collect();
        if floats.is_empty() {
            return;
        }
        let (a, op) = (*self.random.pick(&floats), *self.random.pick(&[Unary::Tanh, Unary::Sin, Unary::Square]));
        let shape = self.shape(a);
        let bound = self.bound(a).powi(2).max(1.0);
        let id = self.add(Expr::Unary(op, a), Kind::Float, &shape, bound);
        let id = self.within(id, 2.0);
        self.mark("captured expression");
        self.see(id);
    }

    fn next_row(&mut self, state: &StateUse) -> Id {
        let slot = *self.random.pick(&state.slots);
        let (kind, shape) = (self.kind(slot), self.shape(slot));
        if self.random.percent(6) {
            self.mark("state returned unchanged");
            return slot;
        }
        let depth = if self.random.percent(25) { 3 } else { 2 };
        let mut next = self.expr(kind, &shape, depth);
        if self.random.percent(60) && self.scope().seen.contains(&slot) {
            let part = if kind == Kind::Float { self.number(kind, 0.6) } else { self.number(kind, 1.0) };
            let bound = self.bound(slot);
            let old = self.add(Expr::Binary(Binary::Mul, slot, part), kind, &shape, bound);
            let sum = bound + self.bound(next);
            next = self.add(Expr::Binary(Binary::Add, old, next), kind, &shape, sum);
        }
        self.within(next, if kind == Kind::Float { STATE_BOUND } else { 6.0 })
    }

    fn free_output(&mut self, l: &Loop) -> Id {
        if self.random.percent(10) {
            self.mark("output is a constant or captured");
            let outer = self.random.below(self.scopes.len() - 1);
            let fixed: Vec<Id> = self.scopes[outer].seen.clone();
            let shape = self.any_shape();
            return if fixed.is_empty() || self.random.percent(30) {
                self.constant(Kind::Float, &shape)
            } else {
                *self.random.pick(&fixed)
            };
        }
        if !l.outputs.is_empty() && self.random.percent(8) {
            self.mark("one row returned twice");
            return self.random.pick(&l.outputs).1;
        }
        let kind = *self.random.pick(&[Kind::Float, Kind::Float, Kind::Float, Kind::Float, Kind::Int, Kind::Bool]);
        let shape = self.any_shape();
        self.expr(kind, &shape, 2)
    }

    fn update(&mut self, l: &mut Loop) {
        let free = |g: &Self, id: Id| {
            let Expr::Shared(_) = g.program.items[id].expr else { return false };
            let taken = |items: &[Item]| items.iter().any(|i| matches!(&i.expr, Expr::Loop(l) if l.updates.iter().any(|u| u.0 == id)));
            !taken(&g.program.items) && !l.updates.iter().any(|u| u.0 == id)
        };
        let there: Vec<Id> = self.scopes[0].seen.iter().copied().filter(|&id| free(self, id)).collect();
        let leaf = if there.is_empty() {
            let (kind, shape) = (if self.random.percent(25) { Kind::Int } else { Kind::Float }, self.any_shape());
            self.shared(kind, &shape)
        } else {
            *self.random.pick(&there)
        };
        self.mark("shared updates");
        let (kind, shape) = (self.kind(leaf), self.shape(leaf));
        let mut value = self.expr(kind, &shape, 2);
        if self.random.percent(70) {
            let sum = self.bound(leaf) + self.bound(value);
            value = self.add(Expr::Binary(Binary::Add, leaf, value), kind, &shape, sum);
        }
        let value = self.within(value, if kind == Kind::Float { STATE_BOUND } else { 6.0 });
        l.updates.push((leaf, value));
    }

    fn until(&mut self, l: &Loop) -> Id {
        if self.random.percent(50) {
            return self.expr(Kind::Bool, &[], 2);
        }
        let k = self.random.below(if self.long { 150 } else { 5 });
        let k = self.number(Kind::Int, k as f64);
        self.add(Expr::Compare(Compare::Ge, l.step, k), Kind::Bool, &[], 1.0)
    }

    fn finish(mut self, returned: Vec<Id>, symbolic: bool) -> Program {
        self.program.outputs = returned.into_iter().filter(|_| self.random.percent(90)).collect();
        for _ in 0..1 + self.random.below(2) {
            let shape = self.any_shape();
            let id = self.expr(Kind::Float, &shape, 2);
            self.program.outputs.push(id);
        }
        if symbolic {
            for k in 0..self.program.inputs.len() {
                for axis in 0..self.program.inputs[k].known.len() {
                    self.program.inputs[k].known[axis] = *self.random.pick(&[Known::Number, Known::Nothing, Known::Nothing, Known::Same]);
                }
            }
            self.mark("symbolic extents");
        }
        let some = |p: &Program, n: usize| p.items.iter().any(|i| i.shape.contains(&n));
        if some(&self.program, 1) {
            self.mark("extent 1");
        }
        if self.extents.contains(&0) {
            self.mark("extent 0");
        }
        self.program.block = std::mem::take(&mut self.scope().block);
        self.program.find_anew();
        self.program
    }
}
