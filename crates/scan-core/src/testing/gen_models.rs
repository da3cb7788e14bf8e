//! Random loops of the kinds that passes over loops are made for: recurrent networks, sums of products, systems with one matrix.

use super::gen_expr::Generator;
use super::nd::{Kind, Nd};
use super::program::*;

/// The extents of a network.
struct Sizes {
    /// Rows of a batch; none: vectors.
    batch: Option<usize>,
    inputs: usize,
    hidden: usize,
}

impl Sizes {
    fn row(&self, width: usize) -> Vec<usize> {
        self.batch.into_iter().chain([width]).collect()
    }
}

impl Generator {
    /// A recurrent network of a few steps; its item, and what can be returned of it.
    pub fn network(&mut self) -> (Id, Vec<Id>) {
        self.mark("network");
        let n = *self.random.pick(&[0, 1, 2, 3, 4, 4, 5, 6]);
        let extent = |g: &mut Self| 1 + g.random.below(3);
        let (batch, inputs, hidden) = (self.random.percent(60).then(|| extent(self)), extent(self), extent(self));
        let sizes = Sizes { batch, inputs, hidden };
        let spare = if self.random.percent(30) { 1 } else { 0 };
        let given = (spare > 0 || self.random.percent(50)).then(|| self.number(Kind::Int, n as f64));
        let x = self.input(Kind::Float, &[&[n + spare], &sizes.row(inputs)[..]].concat());
        let h0 = self.input(Kind::Float, &sizes.row(hidden));
        let [w, u, v] = [[inputs, hidden], [hidden, hidden], [hidden, hidden]].map(|shape| self.input(Kind::Float, &shape));
        let sums = self.random.percent(50) && batch.is_some();
        let total = sums.then(|| self.zeros(&[inputs, hidden]));
        let mut l = Loop { n_steps: given, backwards: self.random.percent(20), ..Loop::default() };
        l.seqs.push(SeqUse { x, taps: vec![0], slots: vec![self.slot(Kind::Float, &sizes.row(inputs), 1.0)] });
        l.states.push(StateUse { init: h0, taps: vec![-1], slots: vec![self.slot(Kind::Float, &sizes.row(hidden), 1.0)] });
        if let Some(init) = total {
            l.states.push(StateUse { init, taps: vec![-1], slots: vec![self.slot(Kind::Float, &[inputs, hidden], 20.0)] });
        }
        let map = self.random.percent(20);
        if map {
            l.states.clear();
        }
        l.step = self.slot(Kind::Int, &[], 40.0);
        self.scopes.push(super::gen_expr::Scope { step: Some(l.step), ..Default::default() });
        match map {
            true => self.map_step(&mut l, &sizes, w),
            false => self.network_step(&mut l, &sizes, [w, u, v]),
        }
        l.body = self.scopes.pop().unwrap_or_default().block;
        self.loop_item(l, n, false)
    }

    fn zeros(&mut self, shape: &[usize]) -> Id {
        self.add(Expr::Const(Nd::by(Kind::Float, shape, |_| 0.0)), Kind::Float, shape, 0.0)
    }

    /// A step without states.
    fn map_step(&mut self, l: &mut Loop, sizes: &Sizes, w: Id) {
        let (x, row) = (l.seqs[0].slots[0], sizes.row(sizes.hidden));
        let y = self.product(x, w, &row, sizes.inputs);
        let y = self.add(Expr::Along(Along::Softmax, y, row.len() - 1), Kind::Float, &row, 1.0);
        l.outputs.push((None, y));
        let shape = &row[..row.len() - 1];
        let sum = self.add(Expr::Reduce(Reduce::LogSumExp, y, row.len() - 1, false), Kind::Float, shape, 4.0);
        l.outputs.push((None, sum));
    }

    fn network_step(&mut self, l: &mut Loop, sizes: &Sizes, [w, u, v]: [Id; 3]) {
        let (x, h, row) = (l.seqs[0].slots[0], l.states[0].slots[0], sizes.row(sizes.hidden));
        let a = self.product(x, w, &row, sizes.inputs);
        let b = self.product(h, u, &row, sizes.hidden);
        let mut sum = self.add(Expr::Binary(Binary::Add, a, b), Kind::Float, &row, 6.0);
        if self.random.percent(60) {
            let gate = self.product(h, v, &row, sizes.hidden);
            let gate = self.add(Expr::Unary(Unary::Sigmoid, gate), Kind::Float, &row, 1.0);
            sum = self.add(Expr::Binary(Binary::Mul, sum, gate), Kind::Float, &row, 6.0);
        }
        let next = self.add(Expr::Unary(Unary::Tanh, sum), Kind::Float, &row, 1.0);
        l.outputs.push((Some(0), next));
        if let Some(state) = l.states.get(1) {
            let (total, shape) = (state.slots[0], [sizes.inputs, sizes.hidden]);
            let turned = self.add(Expr::Transpose(x), Kind::Float, &[sizes.inputs, sizes.batch.unwrap_or(1)], 1.0);
            let product = self.add(Expr::MatMul(turned, next), Kind::Float, &shape, 3.0);
            let sum = self.add(Expr::Binary(Binary::Add, total, product), Kind::Float, &shape, 20.0);
            l.outputs.push((Some(1), sum));
        }
        if self.random.percent(50) {
            let read = self.product(next, v, &row, sizes.hidden);
            let read = self.add(Expr::Along(Along::Softmax, read, row.len() - 1), Kind::Float, &row, 1.0);
            l.outputs.push((None, read));
        }
        if self.random.percent(40) {
            let solved = self.two_systems(u, next, h, &row);
            l.outputs.push((None, solved));
        }
    }

    /// `x @ w`; for a batch now and then written out.
    fn product(&mut self, x: Id, w: Id, row: &[usize], inner: usize) -> Id {
        let bound = inner as f64;
        match *row {
            // Looked at beside the stream of choices: it stays what it was.
            [m, n] if self.random.clone().percent(25) => {
                let all = self.products_of([x, w], [m, inner, n]);
                self.add(Expr::Reduce(Reduce::Sum, all, 1, false), Kind::Float, row, bound)
            }
            _ => self.add(Expr::MatMul(x, w), Kind::Float, row, bound),
        }
    }

    /// `a[i, k, 1] · b[1, k, j]`: summed over k, a product of matrices that is written out.
    pub fn products_of(&mut self, [a, b]: [Id; 2], [m, k, n]: [usize; 3]) -> Id {
        let bounds = [self.bound(a), self.bound(b)];
        let a = self.add(Expr::Expand(a, 2), Kind::Float, &[m, k, 1], bounds[0]);
        let b = self.add(Expr::Expand(b, 0), Kind::Float, &[1, k, n], bounds[1]);
        self.add(Expr::Binary(Binary::Mul, a, b), Kind::Float, &[m, k, n], bounds[0] * bounds[1])
    }

    /// k arrays on each other, now and then multiplied with another.
    pub fn stacked(&mut self, shape: &[usize], k: usize, depth: usize) -> Id {
        let mut all: Option<Id> = None;
        for rows in 1..=k {
            let x = self.expr(Kind::Float, shape, depth - 1);
            let x = self.add(Expr::Expand(x, 0), Kind::Float, &[&[1], shape].concat(), self.bound(x));
            all = Some(match all {
                Some(all) => {
                    let bound = self.bound(all).max(self.bound(x));
                    self.add(Expr::Join(all, x), Kind::Float, &[&[rows], shape].concat(), bound)
                }
                None => x,
            });
        }
        let from = [&[k], shape].concat();
        let all = all.unwrap_or_else(|| self.expr(Kind::Float, &from, depth - 1));
        if self.random.percent(60) {
            return all;
        }
        let weights = self.expr(Kind::Float, &from, depth - 1);
        let bound = self.bound(all) * self.bound(weights);
        self.add(Expr::Binary(Binary::Mul, all, weights), Kind::Float, &from, bound)
    }

    /// The sum of the solutions of two systems with one matrix.
    fn two_systems(&mut self, m: Id, a: Id, b: Id, row: &[usize]) -> Id {
        let n = row[row.len() - 1];
        let matrix = self.regular(m, n);
        let turned: Vec<usize> = row.iter().rev().copied().collect();
        let [a, b] = [a, b].map(|x| if row.len() == 2 { self.add(Expr::Transpose(x), Kind::Float, &turned, 1.0) } else { x });
        let [a, b] = [a, b].map(|x| self.add(Expr::Solve(matrix, x), Kind::Float, &turned, 1.0));
        self.add(Expr::Binary(Binary::Add, a, b), Kind::Float, &turned, 2.0)
    }

    /// A matrix that is far from singular.
    fn regular(&mut self, m: Id, n: usize) -> Id {
        let diagonal = Nd::by(Kind::Float, &[n, n], |at| if at[0] == at[1] { 3.0 } else { 0.0 });
        let three = self.add(Expr::Const(diagonal), Kind::Float, &[n, n], 3.0);
        let part = self.number(Kind::Float, 0.6);
        let small = self.add(Expr::Binary(Binary::Mul, m, part), Kind::Float, &[n, n], 0.6);
        self.add(Expr::Binary(Binary::Add, three, small), Kind::Float, &[n, n], 3.6)
    }
}
