//! Expressions of a program: with loops, or with every loop written out step by step.

use super::nd::{Kind, Nd};
use super::program::*;
use crate::base::{Result, Span};
use crate::expr::{LoopBuilder, LoopOptions, Var};
use crate::ir::Op;
use crate::ir::op;
use crate::scalar::ElemOp;
use crate::types::{Array, DType, Dim, Shared, Type};
use std::collections::HashMap;

/// The leaves of a program: made once, so that both forms have the same.
pub struct Leaves {
    /// Inputs.
    pub inputs: Vec<Var>,
    /// Shared variables.
    pub shared: Vec<Var>,
    key: Var,
}

impl Leaves {
    /// Leaves for a program.
    pub fn new(program: &Program) -> Leaves {
        let mut same: HashMap<usize, Dim> = HashMap::new();
        let inputs = program.inputs.iter().enumerate().map(|(k, input)| {
            let dims = input.value.shape.iter().zip(&input.known).map(|(&n, known)| match known {
                Known::Number => Dim::known(n),
                Known::Nothing => Dim::fresh(),
                Known::Same => same.entry(n).or_insert_with(Dim::fresh).clone(),
            });
            Var::input(Type::new(input.value.kind.dtype(), dims), Some(&format!("in{k}")), Span::NONE)
        });
        let inputs = inputs.collect();
        let shared = program.shared.iter().enumerate().map(|(k, value)| {
            let value = value.to_array();
            let ty = Type::unknown(value.dtype(), value.rank());
            Var::shared(Shared::new(value, ty), Some(&format!("shared{k}")), Span::NONE)
        });
        let shared = shared.collect();
        Leaves { inputs, shared, key: Var::constant(Array::new(&[2], program.key.to_vec()), Span::NONE) }
    }
}

/// What a program returns, as expressions: outputs, then values of updates.
///
/// # Errors
/// What the ops and the loop builder report: nothing, for programs of the generator.
pub fn scanned(program: &Program, leaves: &Leaves) -> Result<Vec<Var>> {
    Build::new(program, leaves, None).all()
}

/// The same without loops; `steps` tells how many steps each ran, in the order in which they start. Steps that a truncated
/// gradient does not cover are cut off.
///
/// # Errors
/// As [`scanned`].
pub fn unrolled(program: &Program, leaves: &Leaves, steps: &[usize]) -> Result<Vec<Var>> {
    Build::new(program, leaves, Some(steps)).all()
}

struct Build<'p> {
    program: &'p Program,
    leaves: &'p Leaves,
    env: Vec<Option<Var>>,
    loops: HashMap<Id, Done>,
    steps: Option<std::slice::Iter<'p, usize>>,
}

struct Done {
    outputs: Vec<Var>,
    after: Vec<Var>,
    steps: Var,
}

pub(super) fn int(n: i64) -> Var {
    Var::constant(Array::scalar(n), Span::NONE)
}

fn float(x: f64) -> Var {
    Var::constant(Array::scalar(x), Span::NONE)
}

fn apply(op: impl Into<Op>, ins: &[&Var]) -> Result<Var> {
    let ins: Vec<Var> = ins.iter().map(|&v| v.clone()).collect();
    Var::apply1(op, &ins, Span::NONE)
}

fn row(x: &Var, i: i64) -> Result<Var> {
    apply(op::Index { pattern: "i".into() }, &[x, &int(i)])
}

impl<'p> Build<'p> {
    fn new(program: &'p Program, leaves: &'p Leaves, steps: Option<&'p [usize]>) -> Build<'p> {
        let env = vec![None; program.items.len()];
        Build { program, leaves, env, loops: HashMap::new(), steps: steps.map(<[usize]>::iter) }
    }

    fn all(mut self) -> Result<Vec<Var>> {
        self.block(&self.program.block)?;
        let wanted = self.program.outputs.iter().chain(self.program.updates.iter().map(|u| &u.1));
        Ok(wanted.map(|&id| self.get(id)).collect())
    }

    fn get(&self, id: Id) -> Var {
        self.env[id].clone().unwrap_or_else(|| panic!("item {id} has no expression"))
    }

    fn block(&mut self, ids: &[Id]) -> Result<()> {
        for &id in ids {
            let item = &self.program.items[id];
            let var = match &item.expr {
                Expr::Loop(l) => {
                    let done = if self.steps.is_some() { self.straight(l)? } else { self.looped(l)? };
                    self.loops.insert(id, done);
                    continue;
                }
                Expr::Output(of, k) => self.loops[of].outputs[*k].clone(),
                Expr::After(of, k) => self.loops[of].after[*k].clone(),
                Expr::Steps(of) => self.loops[of].steps.clone(),
                _ => self.value(item)?,
            };
            self.env[id] = Some(var);
        }
        Ok(())
    }

    fn looped(&mut self, l: &Loop) -> Result<Done> {
        let n_steps = l.n_steps.map(|n| self.get(n));
        let options = LoopOptions { n_steps, go_backwards: l.backwards, truncate: l.truncate, ..LoopOptions::default() };
        let mut builder = LoopBuilder::new(options)?;
        for seq in &l.seqs {
            let slices = builder.sequence(&self.get(seq.x), &seq.taps, None)?;
            seq.slots.iter().zip(slices).for_each(|(&slot, var)| self.env[slot] = Some(var));
        }
        for state in &l.states {
            let rows = builder.state(&self.get(state.init), &state.taps, None)?;
            state.slots.iter().zip(rows).for_each(|(&slot, var)| self.env[slot] = Some(var));
        }
        self.env[l.step] = Some(builder.step_index());
        self.block(&l.body)?;
        let outputs: Vec<(Option<usize>, Var)> = l.outputs.iter().map(|(at, id)| (*at, self.get(*id))).collect();
        let updates: Vec<(Var, Var)> = l.updates.iter().map(|u| (self.get(u.0), self.get(u.1))).collect();
        let until = l.until.map(|c| self.get(c));
        let result = builder.finish(&outputs, &updates, until.as_ref())?;
        Ok(Done { outputs: result.outputs, after: result.updates.into_iter().map(|u| u.1).collect(), steps: result.steps })
    }

    fn straight(&mut self, l: &Loop) -> Result<Done> {
        let n = self.steps.as_mut().and_then(Iterator::next).copied().unwrap_or(0);
        let mut history: Vec<Vec<Var>> = l.states.iter().map(|s| self.initial_rows(s)).collect::<Result<_>>()?;
        let seqs: Vec<Var> = l.seqs.iter().map(|s| self.get(s.x)).collect();
        let mut rows: Vec<Vec<Var>> = vec![vec![]; l.outputs.len()];
        let before: Vec<Var> = l.updates.iter().map(|u| self.get(u.0)).collect();
        let outside: Vec<Option<Var>> = l.anew.iter().map(|&id| self.env[id].clone()).collect();
        let mut after = before.clone();
        for t in 0..n {
            self.block(&l.anew)?;
            self.fill_slots(l, t, &seqs, &history)?;
            self.block(&l.body)?;
            let cut = l.truncate.is_some_and(|k| t + k < n);
            let seen = |v: Var| if cut { apply(op::StopGradient {}, &[&v]) } else { Ok(v) };
            for ((state, id), rows) in l.outputs.iter().zip(&mut rows) {
                let row = seen(self.get(*id))?;
                if let Some(state) = state {
                    history[*state].push(row.clone());
                }
                rows.push(row);
            }
            after = l.updates.iter().map(|u| seen(self.get(u.1))).collect::<Result<_>>()?;
            for ((leaf, _), value) in l.updates.iter().zip(&after) {
                self.env[*leaf] = Some(value.clone());
            }
        }
        for ((leaf, _), value) in l.updates.iter().zip(before) {
            self.env[*leaf] = Some(value);
        }
        for (&id, value) in l.anew.iter().zip(outside) {
            self.env[id] = value;
        }
        let stacked = l.outputs.iter().zip(rows).map(|((_, id), rows)| stack(&self.program.items[*id], &rows));
        Ok(Done { outputs: stacked.collect::<Result<_>>()?, after, steps: int(n as i64) })
    }

    fn initial_rows(&self, state: &StateUse) -> Result<Vec<Var>> {
        let init = self.get(state.init);
        if state.taps == [-1] { Ok(vec![init]) } else { (0..state.span()).map(|i| row(&init, i as i64)).collect() }
    }

    fn fill_slots(&mut self, l: &Loop, t: usize, seqs: &[Var], history: &[Vec<Var>]) -> Result<()> {
        self.env[l.step] = Some(int(t as i64));
        for (seq, x) in l.seqs.iter().zip(seqs) {
            let low = seq.taps.iter().copied().min().unwrap_or(0).min(0);
            let high = seq.taps.iter().copied().max().unwrap_or(0).max(0);
            for (&slot, tap) in seq.slots.iter().zip(&seq.taps) {
                let at = if l.backwards { tap - high - 1 - t as i64 } else { tap - low + t as i64 };
                self.env[slot] = Some(row(x, at)?);
            }
        }
        for (state, rows) in l.states.iter().zip(history) {
            for (&slot, &tap) in state.slots.iter().zip(&state.taps) {
                self.env[slot] = Some(rows[(rows.len() as i64 + tap) as usize].clone());
            }
        }
        Ok(())
    }

    fn value(&mut self, item: &Item) -> Result<Var> {
        let g = |id: &Id| self.get(*id);
        match &item.expr {
            Expr::Input(k) => Ok(self.leaves.inputs[*k].clone()),
            Expr::Shared(k) => Ok(self.leaves.shared[*k].clone()),
            Expr::Const(x) => Ok(constant(x)),
            Expr::Unary(op, a) => unary(*op, &g(a)),
            Expr::Binary(op, a, b) => binary(*op, &g(a), &g(b)),
            Expr::Compare(Compare::Lt, a, b) => apply(Op::Elem(ElemOp::Lt), &[&g(a), &g(b)]),
            Expr::Compare(Compare::Ge, a, b) => apply(Op::Elem(ElemOp::Ge), &[&g(a), &g(b)]),
            Expr::Compare(Compare::Eq, a, b) => apply(Op::Elem(ElemOp::Eq), &[&g(a), &g(b)]),
            Expr::Where(c, a, b) => apply(Op::Elem(ElemOp::Where), &[&g(c), &g(a), &g(b)]),
            Expr::IfElse(c, a, b) => apply(op::IfElse {}, &[&g(c), &g(a), &g(b)]),
            Expr::ToFloat(a) => apply(op::Cast { dtype: DType::F64 }, &[&g(a)]),
            Expr::ToInt(a) => apply(op::Cast { dtype: DType::I64 }, &[&g(a)]),
            Expr::Reduce(kind, a, axis, keep) => reduce(*kind, &g(a), *axis, *keep),
            Expr::Along(Along::Softmax, a, axis) => apply(op::Softmax { axis: *axis }, &[&g(a)]),
            Expr::Along(Along::CumSum, a, axis) => apply(op::CumSum { axis: *axis, reverse: false }, &[&g(a)]),
            Expr::Along(Along::Flip, a, axis) => apply(op::Flip { axis: *axis }, &[&g(a)]),
            Expr::Along(Along::Sort, a, axis) => apply(op::Sort { axis: *axis }, &[&g(a)]),
            Expr::MatMul(a, b) => apply(op::MatMul {}, &[&g(a), &g(b)]),
            Expr::Solve(a, b) => apply(op::Solve { kind: op::MatrixKind::General }, &[&g(a), &g(b)]),
            Expr::Linear(Linear::Inverse, a) => apply(op::Inverse {}, &[&g(a)]),
            Expr::Linear(Linear::Cholesky, a) => apply(op::Cholesky {}, &[&g(a)]),
            Expr::Linear(Linear::LogDet, a) => Ok(Var::apply(op::SLogDet {}, &[g(a)], Span::NONE)?.swap_remove(1)),
            Expr::Draw { normal, stream, folds } => {
                let mut key = apply(op::FoldIn {}, &[&self.leaves.key, &int(*stream)])?;
                for f in folds {
                    key = apply(op::FoldIn {}, &[&key, &g(f)])?;
                }
                draw(key, *normal, &item.shape)
            }
            other => moved(other, item, &g),
        }
    }
}

fn constant(x: &Nd) -> Var {
    Var::constant(x.to_array(), Span::NONE)
}

fn stack(item: &Item, rows: &[Var]) -> Result<Var> {
    if rows.is_empty() {
        return Ok(constant(&Nd::stack(item.kind, &item.shape, &[])));
    }
    let rows: Vec<Var> = rows.iter().map(|r| apply(op::Expand { axes: vec![0] }, &[r])).collect::<Result<_>>()?;
    Var::apply1(op::Join { axis: 0 }, &rows, Span::NONE)
}

fn moved(expr: &Expr, item: &Item, g: &dyn Fn(&Id) -> Var) -> Result<Var> {
    let shape: Vec<Var> = item.shape.iter().map(|&n| int(n as i64)).collect();
    let shaped = |a: &Id| std::iter::once(g(a)).chain(shape.iter().cloned()).collect::<Vec<_>>();
    let write = |add: bool| if add { op::Write::Inc } else { op::Write::Set };
    match expr {
        Expr::Row(a, i) => apply(op::Index { pattern: "i".into() }, &[&g(a), &g(i)]),
        Expr::Cut(a, lo, hi, step) => {
            let ins: Vec<Var> = std::iter::once(g(a)).chain(lo.iter().chain(hi).map(|&b| int(b))).collect();
            Var::apply1(op::Index { pattern: slice(lo, hi, *step) }, &ins, Span::NONE)
        }
        Expr::PutCut(a, y, lo, hi, step, add) => {
            let ins: Vec<Var> = [g(a), g(y)].into_iter().chain(lo.iter().chain(hi).map(|&b| int(b))).collect();
            Var::apply1(op::IndexWrite { mode: write(*add), pattern: slice(lo, hi, *step) }, &ins, Span::NONE)
        }
        Expr::Take(a, idx) => apply(op::Gather { axes: vec![0] }, &[&g(a), &g(idx)]),
        Expr::PutRow(a, y, i, add) => apply(op::IndexWrite { mode: write(*add), pattern: "i".into() }, &[&g(a), &g(y), &g(i)]),
        Expr::PutRows(a, y, idx, add) => apply(op::GatherWrite { mode: write(*add), axes: vec![0] }, &[&g(a), &g(y), &g(idx)]),
        Expr::Reshape(a) => Var::apply1(op::Reshape {}, &shaped(a), Span::NONE),
        Expr::Broadcast(a) => Var::apply1(op::BroadcastTo {}, &shaped(a), Span::NONE),
        Expr::Transpose(a) => apply(op::Transpose { perm: (0..item.shape.len()).rev().collect() }, &[&g(a)]),
        Expr::Expand(a, axis) => apply(op::Expand { axes: vec![*axis] }, &[&g(a)]),
        Expr::Squeeze(a, axis) => apply(op::Squeeze { axes: vec![*axis] }, &[&g(a)]),
        Expr::Join(a, b) => apply(op::Join { axis: 0 }, &[&g(a), &g(b)]),
        other => panic!("no expression for {other:?}"),
    }
}

/// The pattern of a slice with these bounds.
fn slice(lo: &Option<i64>, hi: &Option<i64>, step: i64) -> String {
    let mark = |b: &Option<i64>, c: &'static str| if b.is_some() { c } else { "" };
    format!("{}:{}:{step}", mark(lo, "s"), mark(hi, "e"))
}

fn unary(op: Unary, a: &Var) -> Result<Var> {
    let e = match op {
        Unary::Neg => ElemOp::Neg,
        Unary::Tanh => ElemOp::Tanh,
        Unary::Sin => ElemOp::Sin,
        Unary::Cos => ElemOp::Cos,
        Unary::Exp => ElemOp::Exp,
        Unary::Square => ElemOp::Square,
        Unary::Sigmoid => ElemOp::Sigmoid,
        Unary::Abs => ElemOp::Abs,
        Unary::Log1pSquare => return elem(ElemOp::Log1p, &[&elem(ElemOp::Square, &[a])?]),
        formula => return by_hand(formula, a),
    };
    elem(e, &[a])
}

fn elem(e: ElemOp, ins: &[&Var]) -> Result<Var> {
    apply(Op::Elem(e), ins)
}

/// Formulas of several functions, as users write them.
fn by_hand(formula: Unary, a: &Var) -> Result<Var> {
    let (one, two) = (float(1.0), float(2.0));
    match formula {
        Unary::LogOnePlusExp => elem(ElemOp::Log, &[&elem(ElemOp::Add, &[&one, &elem(ElemOp::Exp, &[a])?])?]),
        Unary::LogSigmoid => elem(ElemOp::Log, &[&elem(ElemOp::Sigmoid, &[a])?]),
        Unary::Logistic => {
            let power = elem(ElemOp::Exp, &[&elem(ElemOp::Neg, &[a])?])?;
            elem(ElemOp::Div, &[&one, &elem(ElemOp::Add, &[&one, &power])?])
        }
        Unary::ExpMinusOne => elem(ElemOp::Sub, &[&elem(ElemOp::Exp, &[a])?, &one]),
        _ => elem(ElemOp::Pow, &[a, &two]),
    }
}

fn binary(op: Binary, a: &Var, b: &Var) -> Result<Var> {
    let e = match op {
        Binary::Add => ElemOp::Add,
        Binary::Sub => ElemOp::Sub,
        Binary::Mul => ElemOp::Mul,
        Binary::Maximum => ElemOp::Maximum,
        Binary::Mod => ElemOp::Mod,
        Binary::Div => {
            let below = apply(Op::Elem(ElemOp::Add), &[&float(1.5), &apply(Op::Elem(ElemOp::Square), &[b])?])?;
            return apply(Op::Elem(ElemOp::Div), &[a, &below]);
        }
    };
    apply(Op::Elem(e), &[a, b])
}

fn reduce(kind: Reduce, a: &Var, axis: usize, keepdims: bool) -> Result<Var> {
    let axes = vec![axis];
    let kind = match kind {
        Reduce::Sum => op::ReduceKind::Sum,
        Reduce::Prod => op::ReduceKind::Prod,
        Reduce::Max => op::ReduceKind::Max,
        Reduce::LogSumExp => return apply(op::LogSumExp { axes, keepdims }, &[a]),
        Reduce::ArgMax => return apply(op::ArgReduce { kind: op::Extreme::Max, axis }, &[a]),
    };
    apply(op::Reduce { kind, axes, keepdims }, &[a])
}

fn draw(key: Var, normal: bool, shape: &[usize]) -> Result<Var> {
    let ins: Vec<Var> = std::iter::once(key).chain(shape.iter().map(|&n| int(n as i64))).collect();
    let dtype = DType::F64;
    if normal {
        Var::apply1(op::RandomNormal { dtype }, &ins, Span::NONE)
    } else {
        Var::apply1(op::RandomUniform { dtype }, &ins, Span::NONE)
    }
}

/// Cotangents and tangents for a value: fixed numbers without pattern.
pub fn weights(like: &Nd, seed: u64) -> Array {
    let mut random = super::random::Random::new(seed);
    Nd::by(Kind::Float, &like.shape, |_| random.float()).to_array()
}
