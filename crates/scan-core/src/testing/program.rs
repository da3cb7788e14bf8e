//! A loop program as plain data.

use super::nd::{Kind, Nd};
use std::collections::BTreeSet;

/// The position of an item in its program.
pub type Id = usize;

/// A program: items, of which loops own some; inputs; what it returns.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Every item of every level.
    pub items: Vec<Item>,
    /// Items of the top level, in order.
    pub block: Vec<Id>,
    /// What a caller gives.
    pub inputs: Vec<Input>,
    /// Shared variables with their values before the call.
    pub shared: Vec<Nd>,
    /// The random key.
    pub key: [u64; 2],
    /// Returned items.
    pub outputs: Vec<Id>,
    /// Shared variables with the items that give their values after the call.
    pub updates: Vec<(usize, Id)>,
    /// What it uses.
    pub features: BTreeSet<&'static str>,
}

/// An input.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its value.
    pub value: Nd,
    /// What its type tells of each extent.
    pub known: Vec<Known>,
}

/// What a type tells of an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// The number.
    Number,
    /// Nothing.
    Nothing,
    /// That it is the same as others of this number.
    Same,
}

/// One value.
#[derive(Clone, Debug)]
pub struct Item {
    /// What makes it.
    pub expr: Expr,
    /// What its numbers are.
    pub kind: Kind,
    /// Its extents (of a [`Item::dynamic`] one, those after the first).
    pub shape: Vec<usize>,
    /// No number is larger.
    pub bound: f64,
    /// True where the number of rows is known only when it runs.
    pub dynamic: bool,
}

/// What makes a value.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Expr {
    /// An input of the program.
    Input(usize),
    /// A shared variable.
    Shared(usize),
    /// A constant.
    Const(Nd),
    /// Filled by the loop that owns it: a slice, a state's row, the step index.
    Slot,
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    Compare(Compare, Id, Id),
    /// Elementwise choice.
    Where(Id, Id, Id),
    /// Choice by a scalar.
    IfElse(Id, Id, Id),
    /// As float.
    ToFloat(Id),
    /// As int.
    ToInt(Id),
    Reduce(Reduce, Id, usize, bool),
    Along(Along, Id, usize),
    MatMul(Id, Id),
    Linear(Linear, Id),
    Solve(Id, Id),
    /// `x[i]`
    Row(Id, Id),
    /// `x[lo:hi:step]` with bounds that Python accepts.
    Cut(Id, Option<i64>, Option<i64>, i64),
    /// `x[idx]` with an array of integers.
    Take(Id, Id),
    /// `x.at[i].set(y)`; true: `add`.
    PutRow(Id, Id, Id, bool),
    /// `x.at[idx].set(y)` with an array of integers; true: `add`.
    PutRows(Id, Id, Id, bool),
    /// `x.at[lo:hi:step].set(y)` with bounds that Python accepts; true: `add`.
    PutCut(Id, Id, Option<i64>, Option<i64>, i64, bool),
    /// To the shape of the item.
    Reshape(Id),
    /// To the shape of the item.
    Broadcast(Id),
    Transpose(Id),
    Expand(Id, usize),
    Squeeze(Id, usize),
    Join(Id, Id),
    /// A draw; its key is folded with the stream and these integers.
    Draw {
        normal: bool,
        stream: i64,
        folds: Vec<Id>,
    },
    Loop(Box<Loop>),
    /// An output of a loop.
    Output(Id, usize),
    /// How many steps a loop ran.
    Steps(Id),
    /// An updated variable after a loop.
    After(Id, usize),
}

/// Functions of one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Unary {
    Neg,
    Tanh,
    Sin,
    Cos,
    Exp,
    Square,
    Sigmoid,
    Log1pSquare,
    Abs,
    /// `log(1 + eˣ)`, as written.
    LogOnePlusExp,
    /// `log(sigmoid(x))`, as written.
    LogSigmoid,
    /// `1 / (1 + e⁻ˣ)`, as written.
    Logistic,
    /// `eˣ − 1`, as written.
    ExpMinusOne,
    /// `x ** 2`.
    Power,
}

/// Functions of two values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    /// x / (1.5 + y²)
    Div,
    Maximum,
    /// Of integers.
    Mod,
}

/// Comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Compare {
    Lt,
    Ge,
    Eq,
}

/// Reductions along one axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Reduce {
    Sum,
    Prod,
    Max,
    LogSumExp,
    /// The position of the first largest, an integer.
    ArgMax,
}

/// Functions along one axis that keep the shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Along {
    Softmax,
    CumSum,
    Flip,
    Sort,
}

/// Functions of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Linear {
    Inverse,
    LogDet,
    Cholesky,
}

/// A loop.
#[derive(Clone, Debug, Default)]
pub struct Loop {
    /// Sequences.
    pub seqs: Vec<SeqUse>,
    /// States.
    pub states: Vec<StateUse>,
    /// The slot of the step index.
    pub step: Id,
    /// The number of steps, where it is given.
    pub n_steps: Option<Id>,
    /// Sequences are read from the end.
    pub backwards: bool,
    /// The gradient covers so many steps.
    pub truncate: Option<usize>,
    /// Items of a step, in order.
    pub body: Vec<Id>,
    /// Outputs of a step with their states.
    pub outputs: Vec<(Option<usize>, Id)>,
    /// Items of shared variables with their values after the step.
    pub updates: Vec<(Id, Id)>,
    /// Stops the loop after the step that makes it true.
    pub until: Option<Id>,
    /// Items from outside that a step computes anew: they depend on a variable that the loop updates.
    pub anew: Vec<Id>,
}

/// A sequence of a loop.
#[derive(Clone, Debug)]
pub struct SeqUse {
    /// Its rows.
    pub x: Id,
    /// Offsets as the user lists them.
    pub taps: Vec<i64>,
    /// What the step sees.
    pub slots: Vec<Id>,
}

/// A state of a loop.
#[derive(Clone, Debug)]
pub struct StateUse {
    /// The row before the first step, or, with other taps than `[-1]`, rows.
    pub init: Id,
    /// Offsets as the user lists them.
    pub taps: Vec<i64>,
    /// What the step sees.
    pub slots: Vec<Id>,
}

impl StateUse {
    /// Rows before the first step.
    pub fn span(&self) -> usize {
        self.taps.iter().map(|t| t.unsigned_abs() as usize).max().unwrap_or(0)
    }
}

impl Expr {
    /// The items that it reads (of a loop: what it reads from outside, its body's own reads excepted).
    pub fn reads(&self) -> Vec<Id> {
        use Expr::*;
        match self {
            Input(_) | Shared(_) | Const(_) | Slot => vec![],
            Unary(_, a) | ToFloat(a) | ToInt(a) | Reduce(_, a, ..) | Along(_, a, _) | Linear(_, a) | Cut(a, ..) => vec![*a],
            Reshape(a) | Broadcast(a) | Transpose(a) | Expand(a, _) | Squeeze(a, _) => vec![*a],
            Output(a, _) | Steps(a) | After(a, _) => vec![*a],
            Binary(_, a, b) | Compare(_, a, b) | MatMul(a, b) | Solve(a, b) | Row(a, b) | Take(a, b) | Join(a, b) => vec![*a, *b],
            PutCut(a, b, ..) => vec![*a, *b],
            Where(a, b, c) | IfElse(a, b, c) | PutRow(a, b, c, _) | PutRows(a, b, c, _) => vec![*a, *b, *c],
            Draw { folds, .. } => folds.clone(),
            Loop(l) => l.seqs.iter().map(|s| s.x).chain(l.states.iter().map(|s| s.init)).chain(l.n_steps).collect(),
        }
    }
}

impl Loop {
    /// The items that a step must yield.
    pub fn results(&self) -> Vec<Id> {
        self.outputs.iter().map(|o| o.1).chain(self.updates.iter().flat_map(|u| [u.0, u.1])).chain(self.until).collect()
    }
}

impl Program {
    /// True where a loop truncates its gradient.
    pub fn truncated(&self) -> bool {
        self.items.iter().any(|i| matches!(&i.expr, Expr::Loop(l) if l.truncate.is_some()))
    }
    /// Finds what each loop computes anew. An expression has no time: one made outside of a loop from a shared variable that the
    /// loop updates means, inside, the variable's value of the step.
    pub fn find_anew(&mut self) {
        let mut owner = vec![None; self.items.len()];
        for (id, item) in self.items.iter().enumerate() {
            if let Expr::Loop(l) = &item.expr {
                l.body.iter().for_each(|&k| owner[k] = Some(id));
            }
        }
        for id in 0..self.items.len() {
            let Expr::Loop(l) = &self.items[id].expr else { continue };
            if l.updates.is_empty() {
                continue;
            }
            let around: Vec<Option<Id>> = std::iter::successors(Some(owner[id]), |o| o.map(|o| owner[o])).collect();
            let leaves: Vec<Id> = l.updates.iter().map(|u| u.0).collect();
            let (needed, depends) = (self.reachable(l.results()), self.dependents(&leaves));
            let anew = (0..id).filter(|&k| needed[k] && depends[k] && !leaves.contains(&k) && around.contains(&owner[k]));
            let anew = anew.filter(|&k| !matches!(self.items[k].expr, Expr::Slot)).collect();
            if let Expr::Loop(l) = &mut self.items[id].expr {
                l.anew = anew;
            }
        }
    }

    /// True per item that moves with the float inputs: what is tied among others, floats made of integers, stays tied.
    pub fn moving(&self) -> Vec<bool> {
        let mut moving = vec![false; self.items.len()];
        for (id, item) in self.items.iter().enumerate() {
            let here = match &item.expr {
                Expr::Input(_) | Expr::Shared(_) | Expr::Slot | Expr::Output(..) | Expr::After(..) => true,
                expr => expr.reads().iter().any(|&id| moving[id]),
            };
            moving[id] = here && item.kind == Kind::Float;
        }
        moving
    }

    fn dependents(&self, leaves: &[Id]) -> Vec<bool> {
        let mut depends = vec![false; self.items.len()];
        for (id, item) in self.items.iter().enumerate() {
            let inside = if let Expr::Loop(l) = &item.expr { [&l.body[..], &l.results()].concat() } else { vec![] };
            depends[id] = leaves.contains(&id) || item.expr.reads().iter().chain(&inside).any(|&k| depends[k]);
        }
        depends
    }

    /// True per item that outputs and updates depend on.
    pub fn live(&self) -> Vec<bool> {
        self.reachable(self.outputs.iter().copied().chain(self.updates.iter().map(|u| u.1)).collect())
    }

    fn reachable(&self, mut stack: Vec<Id>) -> Vec<bool> {
        let mut live = vec![false; self.items.len()];
        while let Some(id) = stack.pop() {
            if !std::mem::replace(&mut live[id], true) {
                stack.extend(self.items[id].expr.reads());
                if let Expr::Loop(l) = &self.items[id].expr {
                    stack.extend(l.results());
                }
            }
        }
        live
    }
}

/// What a program can use; each must occur often in a long run.
pub const FEATURES: &[&str] = &[
    "taps: several on a sequence",
    "taps: negative on a sequence",
    "taps: positive on a sequence",
    "taps: several on a state",
    "several states",
    "state returned unchanged",
    "state never read",
    "initial rows to spare",
    "integer state",
    "integer sequence",
    "int feeds float",
    "nested loop",
    "inner n_steps from outer step",
    "until",
    "shared updates",
    "updates of an inner loop",
    "go_backwards",
    "0 steps",
    "1 step",
    "n_steps inferred",
    "n_steps constant",
    "n_steps variable",
    "unequal lengths",
    "truncate_gradient",
    "captured variable",
    "captured expression",
    "output is a constant or captured",
    "one row returned twice",
    "loop over a loop's rows",
    "last row read",
    "step index",
    "random",
    "basic index",
    "gather",
    "set/inc",
    "elementwise",
    "broadcast",
    "where",
    "ifelse",
    "matmul",
    "linalg",
    "reduction",
    "product in log space",
    "extent 1",
    "extent 0",
    "symbolic extents",
    "network",
    "buffer written with itself",
    "repeated indices",
    "ties",
    "captured comparison in an inner loop",
    "backwards over spare rows",
    "fewer steps than taps",
];
