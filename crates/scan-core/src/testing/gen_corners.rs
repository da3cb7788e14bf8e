//! Random corners, where loops and their passes have gone wrong or could: buffers that a step writes over with what they hold, ties,
//! masks from outside, sequences with more rows than steps, histories longer than the loop.

use super::gen_expr::{Generator, STATE_BOUND, Scope};
use super::nd::{Kind, Nd};
use super::program::*;

/// Whether gradients flow through tied elements, too. Differences cannot judge those (their margin is 0, which switches them off); what a
/// loop makes of them must be what its unrolled form makes of them, whatever the rule for ties is.
pub const TIES_WITH_GRADIENTS: bool = false;

impl Generator {
    /// Some corners, each on its own; what can be returned of them.
    pub fn corners(&mut self) -> Vec<Id> {
        type Corner = fn(&mut Generator) -> Vec<Id>;
        let all: [(Corner, usize); 4] =
            [(Generator::buffer, 60), (Generator::spare_rows, 35), (Generator::history, 35), (Generator::masked, 35)];
        let mut returned = vec![];
        for (corner, often) in all {
            if self.random.percent(often) {
                returned.extend(corner(self));
            }
        }
        if self.random.percent(35) {
            let shape = self.any_shape();
            let kind = if self.random.percent(50) { Kind::Int } else { Kind::Float };
            returned.push(self.ties(kind, &shape, 2));
        }
        returned
    }

    /// n as a constant or, most often, as an input, with which the loop stays one.
    fn count(&mut self, n: usize) -> Id {
        if self.random.percent(25) { self.number(Kind::Int, n as f64) } else { self.input_of(Nd::scalar(Kind::Int, n as f64)) }
    }

    /// The level of a loop's step.
    fn enter(&mut self, l: &mut Loop) {
        l.step = self.slot(Kind::Int, &[], 40.0);
        self.scopes.push(Scope { step: Some(l.step), ..Scope::default() });
    }

    /// The end of a loop's step; what can be returned: of states the last row alone where one is made, so that the others need not be kept.
    fn leave(&mut self, mut l: Loop, n: usize) -> Vec<Id> {
        let states: Vec<bool> = l.outputs.iter().map(|o| o.0.is_some()).collect();
        l.body = self.scopes.pop().unwrap_or_default().block;
        let (_, mut returned) = self.loop_item(l, n, false);
        for (out, of_state) in returned.iter_mut().zip(states) {
            if of_state && n > 0 && self.random.percent(75) {
                *out = self.last_row(*out);
            }
        }
        returned
    }

    fn last_row(&mut self, rows: Id) -> Id {
        let (kind, shape, bound) = (self.kind(rows), self.shape(rows), self.bound(rows));
        let last = self.number(Kind::Int, -1.0);
        self.add(Expr::Row(rows, last), kind, &shape[1..], bound)
    }

    /// A state from a new input, read as the step before left it.
    fn carried(&mut self, l: &mut Loop, kind: Kind, shape: &[usize], bound: f64) -> Id {
        let init = self.input(kind, shape);
        let slot = self.slot(kind, shape, bound);
        l.states.push(StateUse { init, taps: vec![-1], slots: vec![slot] });
        slot
    }

    /// A loop that carries a buffer and writes over parts of it with parts of it.
    fn buffer(&mut self) -> Vec<Id> {
        self.mark("buffer written with itself");
        let (adds, rows) = (self.random.percent(35), 1 + self.random.below(4));
        let n = if adds { self.random.below(3) } else { self.random.below(6) };
        let kind = if self.random.percent(30) { Kind::Int } else { Kind::Float };
        let width: Vec<usize> = match self.random.below(4) {
            0 | 1 => vec![],
            2 => vec![rows],
            _ => vec![self.random.below(4)],
        };
        let shape = [&[rows], &width[..]].concat();
        let mut l = Loop { n_steps: Some(self.count(n)), ..Loop::default() };
        // Each of two writes adds every row to a row at most, and the row itself.
        let most = if adds { (rows as f64 + 2.0).powi(2 * n as i32) } else { 1.0 };
        let old = self.carried(&mut l, kind, &shape, 5.0 * most);
        self.enter(&mut l);
        let mut new = old;
        for _ in 0..1 + self.random.below(2) {
            let add = adds && self.random.percent(70);
            new = self.written_over(new, old, add);
        }
        l.outputs.push((Some(0), new));
        if self.random.percent(40) {
            let from = *self.random.pick(&[old, new]);
            let bound = self.bound(from) * rows as f64;
            let sum = self.add(Expr::Reduce(Reduce::Sum, from, 0, false), kind, &width, bound);
            l.outputs.push((None, sum));
        }
        self.leave(l, n)
    }

    /// `x` with rows of itself, or of the buffer before the step, written over others.
    fn written_over(&mut self, x: Id, old: Id, add: bool) -> Id {
        let (kind, shape, rows) = (self.kind(x), self.shape(x), self.shape(x)[0]);
        let bound = self.bound(x) * if add { rows as f64 + 2.0 } else { 1.0 };
        let from = *self.random.pick(&[x, x, old]);
        let made = match self.random.below(9) {
            0 => {
                let y = self.same_memory(from);
                Expr::PutCut(x, y, None, None, -1, add)
            }
            1 | 2 => {
                let y = self.same_memory(from);
                let idx = self.places(rows, rows);
                Expr::PutRows(x, y, idx, add)
            }
            3 | 4 => {
                let k = 1 + self.random.below(rows + 1);
                let (at, of) = (self.places(k, rows), self.places(k, rows));
                let bound = self.bound(from);
                let y = self.add(Expr::Take(from, of), kind, &[&[k], &shape[1..]].concat(), bound);
                Expr::PutRows(x, y, at, add)
            }
            5 => {
                let y = self.turned(from);
                Expr::PutCut(x, y, None, None, 1, add)
            }
            6 if rows > 1 => {
                let (down, less) = (self.random.percent(50), [&[rows - 1], &shape[1..]].concat());
                let bound = self.bound(from);
                let (lo, hi) = if down { (None, Some(-1)) } else { (Some(1), None) };
                let y = self.add(Expr::Cut(from, lo, hi, 1), kind, &less, bound);
                let (lo, hi) = if down { (Some(1), None) } else { (None, Some(-1)) };
                Expr::PutCut(x, y, lo, hi, 1, add)
            }
            _ => return self.swapped(x, from, add),
        };
        self.add(made, kind, &shape, bound)
    }

    /// The same rows, perhaps under other shapes in between.
    fn same_memory(&mut self, x: Id) -> Id {
        let (kind, shape, bound) = (self.kind(x), self.shape(x), self.bound(x));
        match self.random.below(3) {
            0 => {
                let flat = self.add(Expr::Reshape(x), kind, &[shape.iter().product()], bound);
                self.add(Expr::Reshape(flat), kind, &shape, bound)
            }
            1 if shape.len() == 2 && shape[0] == shape[1] => self.add(Expr::Transpose(x), kind, &shape, bound),
            _ => x,
        }
    }

    /// The rows in another order: reversed, or the last one first.
    fn turned(&mut self, x: Id) -> Id {
        let (kind, shape, bound) = (self.kind(x), self.shape(x), self.bound(x));
        if self.random.percent(40) {
            return self.add(Expr::Along(Along::Flip, x, 0), kind, &shape, bound);
        }
        let part = |rows: usize| [&[rows], &shape[1..]].concat();
        let last = self.add(Expr::Cut(x, Some(-1), None, 1), kind, &part(1), bound);
        let rest = self.add(Expr::Cut(x, None, Some(-1), 1), kind, &part(shape[0] - 1), bound);
        self.add(Expr::Join(last, rest), kind, &shape, bound)
    }

    /// Two rows swapped, at places that change from step to step.
    fn swapped(&mut self, x: Id, from: Id, add: bool) -> Id {
        let (kind, shape, bound) = (self.kind(x), self.shape(x), self.bound(x) * if add { 2.0 } else { 1.0 });
        let rows = self.number(Kind::Int, shape[0] as f64);
        let step = self.scope().step.unwrap_or(rows);
        let i = self.add(Expr::Binary(Binary::Mod, step, rows), Kind::Int, &[], shape[0] as f64 - 1.0);
        let j = self.random.below(shape[0]);
        let j = self.number(Kind::Int, j as f64);
        let (row, of) = (shape[1..].to_vec(), self.bound(from));
        let [a, b] = [i, j].map(|at| self.add(Expr::Row(from, at), kind, &row, of));
        let once = self.add(Expr::PutRow(x, a, j, add), kind, &shape, bound);
        self.add(Expr::PutRow(once, b, i, add), kind, &shape, bound * if add { 2.0 } else { 1.0 })
    }

    /// So many positions among some rows, now and then the same one twice.
    fn places(&mut self, k: usize, rows: usize) -> Id {
        let random = &mut self.random;
        let mut idx = Nd::by(Kind::Int, &[k], |_| random.below(rows) as f64);
        if k > 1 && random.percent(30) {
            idx.data[k - 1] = idx.data[0];
        }
        if (1..k).any(|i| idx.data[..i].contains(&idx.data[i])) {
            self.mark("repeated indices");
        }
        let most = rows as f64 - 1.0;
        let fixed = self.add(Expr::Const(idx), Kind::Int, &[k], most);
        let (moves, step) = (self.random.percent(50), self.scope().step);
        let Some(step) = step.filter(|_| moves) else { return fixed };
        // Kernels choose among all places that a step may name; of many, lists write in place.
        let moved = self.add(Expr::Binary(Binary::Add, fixed, step), Kind::Int, &[k], most + 40.0);
        let rows = self.number(Kind::Int, rows as f64);
        self.add(Expr::Binary(Binary::Mod, moved, rows), Kind::Int, &[k], most)
    }

    /// Products of a sequence that is read from its end and has more rows than there are steps; and what is broadcast against them.
    fn spare_rows(&mut self) -> Vec<Id> {
        self.mark("backwards over spare rows");
        let n = self.random.below(6);
        // Passes leave products of a few elements alone where the types tell how many there are.
        let small = (1 + self.random.below(3), *self.random.pick(&[1, 1, 2, 3]));
        let (inner, width) = if self.random.percent(40) { (9, 8) } else { small };
        let batch: Vec<usize> = if self.random.percent(50) { vec![*self.random.pick(&[0, 1, 2, 3])] } else { vec![] };
        let with = |last: usize| [&batch[..], &[last]].concat();
        let rows = n + 1 + self.random.below(3);
        let x = self.input(Kind::Float, &[&[rows], &with(inner)[..]].concat());
        let w = self.input(Kind::Float, &[inner, width]);
        let bias = *self.random.pick(&[1, width]);
        let bias = self.input(Kind::Float, &[bias]);
        let steps = if self.random.percent(60) { self.number(Kind::Int, n as f64) } else { self.count(n) };
        let mut l = Loop { n_steps: Some(steps), backwards: true, ..Loop::default() };
        let row = self.slot(Kind::Float, &with(inner), 1.0);
        l.seqs.push(SeqUse { x, taps: vec![0], slots: vec![row] });
        let shape = with(width);
        let h = self.random.percent(50).then(|| self.carried(&mut l, Kind::Float, &shape, STATE_BOUND));
        self.enter(&mut l);
        let y = self.add(Expr::MatMul(row, w), Kind::Float, &shape, inner as f64);
        let y = self.add(Expr::Binary(Binary::Add, y, bias), Kind::Float, &shape, inner as f64 + 1.0);
        if let Some(h) = h {
            let sum = self.add(Expr::Binary(Binary::Add, y, h), Kind::Float, &shape, 6.0);
            let next = self.add(Expr::Unary(Unary::Tanh, sum), Kind::Float, &shape, 1.0);
            l.outputs.push((Some(0), next));
        }
        if h.is_none() || self.random.percent(60) {
            l.outputs.push((None, y));
        }
        self.leave(l, n)
    }

    /// A state that reads rows from before the loop's first step, in a loop of few steps.
    fn history(&mut self) -> Vec<Id> {
        let taps = self.random.pick(&[&[-2, -1][..], &[-3, -1], &[-2], &[-4, -2, -1], &[-3]]).to_vec();
        let mut state = StateUse { init: 0, taps, slots: vec![] };
        let n = self.random.below(state.span() + 1);
        if n < state.span() {
            self.mark("fewer steps than taps");
        }
        let row = self.any_shape();
        state.init = self.input(Kind::Float, &[&[state.span()], &row[..]].concat());
        state.slots = state.taps.iter().map(|_| self.slot(Kind::Float, &row, STATE_BOUND)).collect();
        let slots = state.slots.clone();
        let mut l = Loop { n_steps: Some(self.count(n)), states: vec![state], ..Loop::default() };
        self.enter(&mut l);
        let mut sum = self.constant(Kind::Float, &row);
        for slot in slots {
            let product = self.add(Expr::Binary(Binary::Mul, sum, slot), Kind::Float, &row, 12.0);
            let both = self.add(Expr::Binary(Binary::Add, product, slot), Kind::Float, &row, 14.0);
            sum = self.add(Expr::Unary(Unary::Sin, both), Kind::Float, &row, 1.0);
        }
        l.outputs.push((Some(0), sum));
        self.leave(l, n)
    }

    /// A loop in a loop; a mask made outside of both and comparisons with captured values tell what the inner one does.
    fn masked(&mut self) -> Vec<Id> {
        self.mark("captured comparison in an inner loop");
        let (shape, n, m) = (self.any_shape(), 1 + self.random.below(3), 1 + self.random.below(3));
        let [a, b] = [(); 2].map(|()| self.input(Kind::Float, &shape));
        let mask = self.add(Expr::Compare(Compare::Lt, a, b), Kind::Bool, &shape, 1.0);
        let mut outer = Loop { n_steps: Some(self.count(n)), ..Loop::default() };
        let h = self.carried(&mut outer, Kind::Float, &shape, STATE_BOUND);
        self.enter(&mut outer);
        let limit = self.add(Expr::Unary(Unary::Sin, h), Kind::Float, &shape, 1.0);
        let count = self.count(m);
        let slot = self.slot(Kind::Float, &shape, STATE_BOUND);
        let state = StateUse { init: h, taps: vec![-1], slots: vec![slot] };
        let mut inner = Loop { n_steps: Some(count), states: vec![state], ..Loop::default() };
        self.enter(&mut inner);
        let next = self.masked_step(slot, a, [mask, limit]);
        inner.outputs.push((Some(0), next));
        inner.body = self.scopes.pop().unwrap_or_default().block;
        let (_, rows) = self.loop_item(inner, m, false);
        let last = self.last_row(rows[0]);
        let next = self.add(Expr::Where(mask, last, limit), Kind::Float, &shape, STATE_BOUND);
        outer.outputs.push((Some(0), next));
        self.leave(outer, n)
    }

    fn masked_step(&mut self, h: Id, a: Id, [mask, limit]: [Id; 2]) -> Id {
        let shape = self.shape(h);
        let part = self.number(Kind::Float, 0.6);
        let less = self.add(Expr::Binary(Binary::Mul, h, part), Kind::Float, &shape, 0.6 * STATE_BOUND);
        let moved = self.add(Expr::Binary(Binary::Sub, less, a), Kind::Float, &shape, 0.6 * STATE_BOUND + 1.0);
        let moved = self.within(moved, STATE_BOUND);
        let other = *self.random.pick(&[limit, a]);
        let above = self.add(Expr::Compare(Compare::Ge, h, other), Kind::Bool, &shape, 1.0);
        let one = self.add(Expr::Where(above, moved, other), Kind::Float, &shape, STATE_BOUND);
        self.add(Expr::Where(mask, one, less), Kind::Float, &shape, STATE_BOUND)
    }

    /// A value of a kind and shape that hangs on extremes, places or an order among equal elements.
    pub(super) fn ties(&mut self, kind: Kind, shape: &[usize], depth: usize) -> Id {
        self.mark("ties");
        let (axis, k) = (self.random.below(shape.len() + 1), 2 + self.random.below(2));
        let mut from = shape.to_vec();
        from.insert(axis, k);
        let x = self.tied(kind, &from, depth);
        let bound = self.bound(x);
        match self.random.below(5) {
            0 if kind == Kind::Int => self.add(Expr::Reduce(Reduce::ArgMax, x, axis, false), kind, shape, k as f64 - 1.0),
            0 | 1 => self.add(Expr::Reduce(Reduce::Max, x, axis, false), kind, shape, bound),
            2 if axis == 0 => {
                let sorted = self.add(Expr::Along(Along::Sort, x, 0), kind, &from, bound);
                let at = self.random.below(k);
                let at = self.number(Kind::Int, at as f64);
                self.add(Expr::Row(sorted, at), kind, shape, bound)
            }
            3 => {
                let most = self.add(Expr::Reduce(Reduce::Max, x, axis, false), kind, shape, bound);
                self.add(Expr::Binary(Binary::Maximum, most, most), kind, shape, bound)
            }
            _ => self.at_largest(kind, (x, &from), axis, depth),
        }
    }

    /// The sum of what stands where `x == max(x)`.
    fn at_largest(&mut self, kind: Kind, (x, from): (Id, &[usize]), axis: usize, depth: usize) -> Id {
        let (mut kept, mut shape) = (from.to_vec(), from.to_vec());
        kept[axis] = 1;
        let k = shape.remove(axis) as f64;
        let (of, bound) = (self.kind(x), self.bound(x));
        let most = self.add(Expr::Reduce(Reduce::Max, x, axis, true), of, &kept, bound);
        let largest = self.add(Expr::Compare(Compare::Eq, x, most), Kind::Bool, from, 1.0);
        let [a, b] = [(); 2].map(|()| self.expr(kind, from, depth - 1));
        let bound = self.bound(a).max(self.bound(b));
        let chosen = self.add(Expr::Where(largest, a, b), kind, from, bound);
        self.add(Expr::Reduce(Reduce::Sum, chosen, axis, false), kind, &shape, k * bound)
    }

    /// Zeros and ones; or, where gradients may flow through them, elements of which each stands there several times.
    fn tied(&mut self, kind: Kind, shape: &[usize], depth: usize) -> Id {
        if TIES_WITH_GRADIENTS && kind == Kind::Float && self.random.percent(50) {
            let narrow: Vec<usize> = shape.iter().map(|&n| if self.random.percent(60) { 1 } else { n }).collect();
            let x = self.expr(kind, &narrow, depth - 1);
            let bound = self.bound(x);
            return self.add(Expr::Broadcast(x), kind, shape, bound);
        }
        let x = self.expr(Kind::Int, shape, depth - 1);
        let two = self.number(Kind::Int, 2.0);
        let x = self.add(Expr::Binary(Binary::Mod, x, two), Kind::Int, shape, 1.0);
        if kind == Kind::Float { self.add(Expr::ToFloat(x), kind, shape, 1.0) } else { x }
    }
}
