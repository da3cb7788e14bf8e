//! What a program means, by an interpreter of its own: nested lists of f64, one step after the other. No graphs, no expressions,
//! no code shared with the loops that it is to check.

use super::linear;
use super::nd::{Kind, Nd, broadcast};
use super::program::*;
use super::random::Random;
use crate::ir::op::{FoldIn, RandomNormal, RandomUniform};
use crate::ir::{EvalCx, OpDef};
use crate::types::{Array, DType};
use std::collections::HashMap;

/// What a run gives.
pub struct Outcome {
    /// Values of the outputs, then of the updates.
    pub values: Vec<Nd>,
    /// How many steps each loop ran, in the order in which they started.
    pub steps: Vec<usize>,
    /// The least distance of a float comparison from its turning point.
    pub margin: f64,
    /// A digest of what comparisons of floats decided.
    choices: u64,
}

/// Runs a program with these inputs and shared values.
pub fn run(program: &Program, inputs: &[Nd], shared: &[Nd]) -> Outcome {
    run_rounded(program, inputs, shared, None)
}

/// True where roundings tell what a program decides: it decides otherwise where its sums, products and functions round otherwise. What is
/// compared with a copy of itself stays equal.
pub fn decided_by_rounding(program: &Program, inputs: &[Nd], shared: &[Nd], truth: &Outcome) -> bool {
    (0..4).any(|seed| run_rounded(program, inputs, shared, Some(seed)).choices != truth.choices)
}

fn run_rounded(program: &Program, inputs: &[Nd], shared: &[Nd], rounding: Option<u64>) -> Outcome {
    let env = vec![None; program.items.len()];
    let loops = HashMap::new();
    let moving = program.moving();
    let mut run = Run { program, inputs, shared, env, loops, moving, steps: vec![], margin: f64::INFINITY, choices: 0, rounding };
    run.block(&program.block);
    let wanted = program.outputs.iter().chain(program.updates.iter().map(|u| &u.1));
    let values = wanted.map(|&id| run.get(id).clone()).collect();
    Outcome { values, steps: run.steps, margin: run.margin, choices: run.choices }
}

/// Relative size of other roundings: some units in the last place.
const ROUNDING: f64 = 4e-15;

struct Run<'p> {
    program: &'p Program,
    inputs: &'p [Nd],
    shared: &'p [Nd],
    env: Vec<Option<Nd>>,
    loops: HashMap<Id, Done>,
    moving: Vec<bool>,
    steps: Vec<usize>,
    margin: f64,
    choices: u64,
    /// Moves results by roundings of this seed.
    rounding: Option<u64>,
}

/// What a loop left.
struct Done {
    outputs: Vec<Nd>,
    after: Vec<Nd>,
    steps: usize,
}

impl Run<'_> {
    fn get(&self, id: Id) -> &Nd {
        self.env[id].as_ref().unwrap_or_else(|| panic!("item {id} has no value"))
    }

    fn block(&mut self, ids: &[Id]) {
        for &id in ids {
            let value = self.item(id);
            self.env[id] = value;
        }
    }

    fn item(&mut self, id: Id) -> Option<Nd> {
        let item = &self.program.items[id];
        match &item.expr {
            Expr::Loop(l) => {
                let done = self.run_loop(l);
                self.loops.insert(id, done);
                None
            }
            Expr::Output(of, k) => Some(self.loops[of].outputs[*k].clone()),
            Expr::After(of, k) => Some(self.loops[of].after[*k].clone()),
            Expr::Steps(of) => Some(Nd::scalar(Kind::Int, self.loops[of].steps as f64)),
            expr => {
                let value = self.value(item);
                Some(if rounds(expr) { self.rounded(id, value) } else { value })
            }
        }
    }

    fn run_loop(&mut self, l: &Loop) -> Done {
        let available = l.seqs.iter().map(|s| usable(self.get(s.x).shape[0], &s.taps)).min();
        let n = match l.n_steps {
            Some(id) => self.get(id).item() as usize,
            None => available.expect("a loop has steps"),
        };
        assert!(available.is_none_or(|have| have >= n), "{n} steps of {available:?} rows");
        let at = self.steps.len();
        self.steps.push(0);
        let mut history: Vec<Vec<Nd>> = l.states.iter().map(|s| self.initial_rows(s)).collect();
        let seqs: Vec<Nd> = l.seqs.iter().map(|s| self.get(s.x).clone()).collect();
        let mut rows: Vec<Vec<Nd>> = vec![vec![]; l.outputs.len()];
        let before: Vec<Option<Nd>> = l.updates.iter().map(|u| self.env[u.0].clone()).collect();
        let outside: Vec<Option<Nd>> = l.anew.iter().map(|&id| self.env[id].clone()).collect();
        let mut after: Vec<Nd> = before.iter().flatten().cloned().collect();
        let mut steps = 0;
        while steps < n {
            self.block(&l.anew);
            self.fill_slots(l, steps, &seqs, &history);
            self.block(&l.body);
            for ((state, id), rows) in l.outputs.iter().zip(&mut rows) {
                let row = self.get(*id).clone();
                if let Some(state) = state {
                    history[*state].push(row.clone());
                }
                rows.push(row);
            }
            after = l.updates.iter().map(|u| self.get(u.1).clone()).collect();
            let stop = l.until.is_some_and(|c| self.get(c).item() != 0.0);
            for ((leaf, _), value) in l.updates.iter().zip(&after) {
                self.env[*leaf] = Some(value.clone());
            }
            steps += 1;
            if stop {
                break;
            }
        }
        for ((leaf, _), value) in l.updates.iter().zip(before) {
            self.env[*leaf] = value;
        }
        for (&id, value) in l.anew.iter().zip(outside) {
            self.env[id] = value;
        }
        self.steps[at] = steps;
        let outputs = l.outputs.iter().zip(rows).map(|((_, id), rows)| {
            let item = &self.program.items[*id];
            Nd::stack(item.kind, &item.shape, &rows)
        });
        Done { outputs: outputs.collect(), after, steps }
    }

    fn initial_rows(&self, state: &StateUse) -> Vec<Nd> {
        let init = self.get(state.init);
        if state.taps == [-1] { vec![init.clone()] } else { (0..state.span()).map(|i| init.row(i)).collect() }
    }

    fn fill_slots(&mut self, l: &Loop, t: usize, seqs: &[Nd], history: &[Vec<Nd>]) {
        self.env[l.step] = Some(Nd::scalar(Kind::Int, t as f64));
        for (seq, x) in l.seqs.iter().zip(seqs) {
            let m = usable(x.shape[0], &seq.taps);
            let low = seq.taps.iter().copied().min().unwrap_or(0).min(0);
            let time = if l.backwards { m - 1 - t } else { t };
            let rows: Vec<Nd> = seq.taps.iter().map(|k| x.row((time as i64 + k - low) as usize)).collect();
            seq.slots.iter().zip(rows).for_each(|(&slot, row)| self.env[slot] = Some(row));
        }
        for (state, rows) in l.states.iter().zip(history) {
            for (&slot, &tap) in state.slots.iter().zip(&state.taps) {
                self.env[slot] = Some(rows[(rows.len() as i64 + tap) as usize].clone());
            }
        }
    }

    /// Notes how far apart two floats are that are compared, where one of them moves.
    fn near(&mut self, a: &Nd, b: &Nd, moves: bool) {
        if a.kind == Kind::Float || b.kind == Kind::Float {
            let gap = a.zip(b, Kind::Float, |x, y| x - y);
            if moves {
                self.margin = gap.data.iter().map(|gap| gap.abs()).fold(self.margin, f64::min);
            }
            gap.data.iter().for_each(|&gap| self.choose(f64::from(u8::from(gap > 0.0)) - f64::from(u8::from(gap < 0.0))));
        }
    }

    fn choose(&mut self, choice: f64) {
        self.choices = (self.choices.rotate_left(5) ^ choice.to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// Elements that a function makes of the same numbers are rounded alike.
    fn rounded(&mut self, id: Id, mut value: Nd) -> Nd {
        let Some(seed) = self.rounding.filter(|_| value.kind == Kind::Float) else { return value };
        let alike = matches!(self.program.items[id].expr, Expr::Unary(..) | Expr::Binary(..));
        for (place, x) in value.data.iter_mut().enumerate() {
            let place = if alike { 0 } else { place as u64 };
            let by = Random::new(seed ^ (id as u64).rotate_left(32) ^ place.rotate_left(48) ^ x.to_bits()).float();
            *x *= 1.0 + ROUNDING * by;
        }
        value
    }

    fn value(&mut self, item: &Item) -> Nd {
        let g = |id: &Id| self.get(*id).clone();
        let moves = item.expr.reads().iter().any(|&id| self.moving[id]);
        match &item.expr {
            Expr::Input(k) => self.inputs[*k].clone(),
            Expr::Shared(k) => self.shared[*k].clone(),
            Expr::Const(x) => x.clone(),
            Expr::Unary(op, a) => {
                let a = g(a);
                if *op == Unary::Abs {
                    self.near(&a, &Nd::scalar(a.kind, 0.0), moves);
                }
                unary(*op, &a)
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (g(a), g(b));
                if *op == Binary::Maximum {
                    self.near(&a, &b, moves);
                }
                binary(*op, &a, &b)
            }
            Expr::Compare(op, a, b) => {
                let (a, b) = (g(a), g(b));
                self.near(&a, &b, moves);
                compare(*op, &a, &b)
            }
            Expr::Where(c, a, b) => choose(&g(c), &g(a), &g(b)),
            Expr::IfElse(c, a, b) => g(if self.get(*c).item() != 0.0 { a } else { b }),
            Expr::ToFloat(a) => g(a).map(Kind::Float, |x| x),
            Expr::ToInt(a) => g(a).map(Kind::Int, f64::trunc),
            Expr::Reduce(op, a, axis, keep) => {
                let a = g(a);
                if matches!(op, Reduce::Max | Reduce::ArgMax) && a.kind == Kind::Float {
                    if moves {
                        self.margin = self.margin.min(gap_of_two_largest(&a, *axis));
                    }
                    places_of_largest(&a, *axis).data.iter().for_each(|&place| self.choose(place));
                }
                reduce(*op, &a, *axis, *keep)
            }
            Expr::Along(op, a, axis) => along(*op, &g(a), *axis),
            Expr::MatMul(a, b) => linear::matmul(&g(a), &g(b)),
            Expr::Solve(a, b) => linear::solve(&g(a), &g(b)),
            Expr::Linear(Linear::Inverse, a) => linear::inverse(&g(a)),
            Expr::Linear(Linear::LogDet, a) => Nd::scalar(Kind::Float, linear::det(&g(a)).abs().ln()),
            Expr::Linear(Linear::Cholesky, a) => linear::cholesky(&g(a)),
            Expr::Draw { normal, stream, folds } => {
                let folds: Vec<i64> = [*stream].into_iter().chain(folds.iter().map(|f| self.get(*f).item() as i64)).collect();
                draw(self.program.key, &folds, *normal, &item.shape)
            }
            other => moved(other, item, &g),
        }
    }
}

/// True for items that compute floats, not only choose, move or draw them.
fn rounds(expr: &Expr) -> bool {
    match expr {
        Expr::Unary(op, _) => !matches!(op, Unary::Neg | Unary::Abs),
        Expr::Binary(op, ..) => *op != Binary::Maximum,
        Expr::Reduce(op, ..) => !matches!(op, Reduce::Max | Reduce::ArgMax),
        Expr::Along(op, ..) => !matches!(op, Along::Flip | Along::Sort),
        Expr::MatMul(..) | Expr::Solve(..) | Expr::Linear(..) => true,
        _ => false,
    }
}

/// Items that only move numbers.
fn moved(expr: &Expr, item: &Item, g: &dyn Fn(&Id) -> Nd) -> Nd {
    match expr {
        Expr::Row(a, i) => {
            let a = g(a);
            a.row(wrap(g(i).item(), a.shape[0]))
        }
        Expr::Cut(a, lo, hi, step) => {
            let a = g(a);
            let rows: Vec<Nd> = python_slice(a.shape[0], *lo, *hi, *step).into_iter().map(|i| a.row(i)).collect();
            Nd::stack(a.kind, &a.shape[1..], &rows)
        }
        Expr::Take(a, idx) => {
            let (a, idx) = (g(a), g(idx));
            let rows: Vec<Nd> = idx.data.iter().map(|&i| a.row(wrap(i, a.shape[0]))).collect();
            Nd::stack(a.kind, &a.shape[1..], &rows).reshaped(&item.shape)
        }
        Expr::PutCut(a, y, lo, hi, step, add) => {
            let (a, y) = (g(a), g(y));
            let idx: Vec<f64> = python_slice(a.shape[0], *lo, *hi, *step).into_iter().map(|i| i as f64).collect();
            let wide = Nd::by(a.kind, &[&[idx.len()], &a.shape[1..]].concat(), |at| y.wide_at(at));
            let rows: Vec<Nd> = (0..idx.len()).map(|i| wide.row(i)).collect();
            put(a, &idx, &rows, *add)
        }
        Expr::PutRow(a, y, i, add) => put(g(a), &[g(i).item()], &[g(y)], *add),
        Expr::PutRows(a, y, idx, add) => {
            let (a, y, idx) = (g(a), g(y), g(idx));
            let shape = [&idx.shape, &a.shape[1..]].concat();
            let wide = Nd::by(a.kind, &shape, |at| y.wide_at(at));
            let rows: Vec<Nd> = (0..idx.data.len()).map(|i| wide.row(i)).collect();
            put(a, &idx.data, &rows, *add)
        }
        Expr::Reshape(a) | Expr::Expand(a, _) | Expr::Squeeze(a, _) => g(a).reshaped(&item.shape),
        Expr::Broadcast(a) => {
            let a = g(a);
            Nd::by(a.kind, &item.shape, |at| a.wide_at(at))
        }
        Expr::Transpose(a) => {
            let a = g(a);
            Nd::by(a.kind, &item.shape, |at| a.at(&at.iter().rev().copied().collect::<Vec<_>>()))
        }
        Expr::Join(a, b) => {
            let (a, b) = (g(a), g(b));
            let rows: Vec<Nd> = (0..a.shape[0]).map(|i| a.row(i)).chain((0..b.shape[0]).map(|i| b.row(i))).collect();
            Nd::stack(a.kind, &a.shape[1..], &rows)
        }
        other => panic!("no meaning for {other:?}"),
    }
}

/// How many steps a sequence of so many rows serves.
pub fn usable(rows: usize, taps: &[i64]) -> usize {
    let low = taps.iter().copied().min().unwrap_or(0).min(0);
    let high = taps.iter().copied().max().unwrap_or(0).max(0);
    (rows as i64 + low - high).max(0) as usize
}

fn wrap(i: f64, n: usize) -> usize {
    let i = if i < 0.0 { i + n as f64 } else { i };
    i as usize
}

/// Positions of a Python slice.
pub fn python_slice(n: usize, lo: Option<i64>, hi: Option<i64>, step: i64) -> Vec<usize> {
    let n = n as i64;
    let norm = |b: i64| if b < 0 { b + n } else { b };
    let (first, last) = if step > 0 {
        (lo.map_or(0, |b| norm(b).clamp(0, n)), hi.map_or(n, |b| norm(b).clamp(0, n)))
    } else {
        (lo.map_or(n - 1, |b| norm(b).clamp(-1, n - 1)), hi.map_or(-1, |b| norm(b).clamp(-1, n - 1)))
    };
    let mut out = vec![];
    let mut i = first;
    while (step > 0 && i < last) || (step < 0 && i > last) {
        out.push(i as usize);
        i += step;
    }
    out
}

fn put(mut a: Nd, idx: &[f64], rows: &[Nd], add: bool) -> Nd {
    let row_shape = a.shape[1..].to_vec();
    let n: usize = row_shape.iter().product();
    for (&i, row) in idx.iter().zip(rows) {
        let i = wrap(i, a.shape[0]);
        let wide = Nd::by(a.kind, &row_shape, |at| row.wide_at(at));
        for k in 0..n {
            a.data[i * n + k] = wide.data[k] + if add { a.data[i * n + k] } else { 0.0 };
        }
    }
    a
}

fn unary(op: Unary, a: &Nd) -> Nd {
    let f: fn(f64) -> f64 = match op {
        Unary::Neg => |x| -x,
        Unary::Tanh => f64::tanh,
        Unary::Sin => f64::sin,
        Unary::Cos => f64::cos,
        Unary::Exp => f64::exp,
        Unary::Square => |x| x * x,
        Unary::Sigmoid => |x| 1.0 / (1.0 + (-x).exp()),
        Unary::Log1pSquare => |x| (x * x).ln_1p(),
        Unary::Abs => f64::abs,
        Unary::LogOnePlusExp => |x| x.exp().ln_1p(),
        Unary::LogSigmoid => |x| -(-x).exp().ln_1p(),
        Unary::Logistic => |x| 1.0 / (1.0 + (-x).exp()),
        Unary::ExpMinusOne => f64::exp_m1,
        Unary::Power => |x| x * x,
    };
    a.map(a.kind, f)
}

fn binary(op: Binary, a: &Nd, b: &Nd) -> Nd {
    let kind = if a.kind == Kind::Float || b.kind == Kind::Float { Kind::Float } else { Kind::Int };
    a.zip(b, kind, |x, y| match op {
        Binary::Add => x + y,
        Binary::Sub => x - y,
        Binary::Mul => x * y,
        Binary::Div => x / (1.5 + y * y),
        Binary::Maximum => x.max(y),
        Binary::Mod => x - (x / y).floor() * y,
    })
}

fn compare(op: Compare, a: &Nd, b: &Nd) -> Nd {
    let holds = |x: f64, y: f64| match op {
        Compare::Lt => x < y,
        Compare::Ge => x >= y,
        Compare::Eq => x == y,
    };
    a.zip(b, Kind::Bool, |x, y| f64::from(u8::from(holds(x, y))))
}

fn choose(c: &Nd, a: &Nd, b: &Nd) -> Nd {
    let shape = broadcast(&c.shape, &broadcast(&a.shape, &b.shape));
    Nd::by(a.kind, &shape, |at| if c.wide_at(at) != 0.0 { a.wide_at(at) } else { b.wide_at(at) })
}

/// The numbers along an axis at an index without that axis.
fn lane(a: &Nd, axis: usize, at: &[usize]) -> Vec<f64> {
    (0..a.shape[axis]).map(|i| a.at(&[&at[..axis], &[i], &at[axis..]].concat())).collect()
}

fn without(shape: &[usize], axis: usize) -> Vec<usize> {
    [&shape[..axis], &shape[axis + 1..]].concat()
}

fn reduce(op: Reduce, a: &Nd, axis: usize, keep: bool) -> Nd {
    if op == Reduce::ArgMax {
        return places_of_largest(a, axis);
    }
    let out = Nd::by(a.kind, &without(&a.shape, axis), |at| {
        let x = lane(a, axis, at);
        match op {
            Reduce::Sum => x.iter().sum(),
            Reduce::Prod => x.iter().product(),
            Reduce::Max => x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Reduce::LogSumExp => {
                let m = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                m + x.iter().map(|v| (v - m).exp()).sum::<f64>().ln()
            }
            Reduce::ArgMax => unreachable!("it is a place"),
        }
    });
    if !keep {
        return out;
    }
    let mut shape = a.shape.clone();
    shape[axis] = 1;
    out.reshaped(&shape)
}

fn gap_of_two_largest(a: &Nd, axis: usize) -> f64 {
    let mut least = f64::INFINITY;
    Nd::by(a.kind, &without(&a.shape, axis), |at| {
        let mut x = lane(a, axis, at);
        x.sort_by(f64::total_cmp);
        if x.len() > 1 {
            least = least.min(x[x.len() - 1] - x[x.len() - 2]);
        }
        0.0
    });
    least
}

fn places_of_largest(a: &Nd, axis: usize) -> Nd {
    Nd::by(Kind::Int, &without(&a.shape, axis), |at| {
        let x = lane(a, axis, at);
        let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        x.iter().position(|&x| x == most).unwrap_or(0) as f64
    })
}

fn along(op: Along, a: &Nd, axis: usize) -> Nd {
    Nd::by(a.kind, &a.shape, |at| {
        let rest = without(at, axis);
        let x = lane(a, axis, &rest);
        let i = at[axis];
        match op {
            Along::Softmax => x[i].exp() / x.iter().map(|v| v.exp()).sum::<f64>(),
            Along::CumSum => x[..=i].iter().sum(),
            Along::Flip => x[x.len() - 1 - i],
            Along::Sort => {
                let mut x = x;
                x.sort_by(f64::total_cmp);
                x[i]
            }
        }
    })
}

/// A draw by the ops themselves: which numbers a key gives is tested with them, which key a step has is tested here.
fn draw(key: [u64; 2], folds: &[i64], normal: bool, shape: &[usize]) -> Nd {
    let mut cx = EvalCx::new();
    let mut key = Array::new(&[2], key.to_vec());
    for &n in folds {
        key = FoldIn {}.eval(&mut cx, &mut [key, Array::scalar(n)]).expect("a key").swap_remove(0);
    }
    let mut ins: Vec<Array> = std::iter::once(key).chain(shape.iter().map(|&n| Array::scalar(n as i64))).collect();
    let outs = if normal {
        RandomNormal { dtype: DType::F64 }.eval(&mut cx, &mut ins)
    } else {
        RandomUniform { dtype: DType::F64 }.eval(&mut cx, &mut ins)
    };
    Nd::of(&outs.expect("a draw")[0])
}
