//! Random expressions of a wanted kind and shape. Every choice keeps numbers small and functions smooth where they are evaluated.

use super::nd::{Kind, Nd, broadcast};
use super::program::*;
use super::random::Random;

/// A program under construction.
pub struct Generator {
    /// Choices.
    pub random: Random,
    /// What is there so far.
    pub program: Program,
    /// Items that can be read, per level; the innermost last.
    pub scopes: Vec<Scope>,
    /// Extents that new arrays have.
    pub extents: Vec<usize>,
    /// One loop of many steps, in which buffers drop rows.
    pub long: bool,
    /// Corners are sought out: ties, masks from outside (`gen_corners`).
    pub corners: bool,
}

/// One level: the top, or the body of a loop.
#[derive(Default)]
pub struct Scope {
    /// Items of the level, in order.
    pub block: Vec<Id>,
    /// Those that can be read.
    pub seen: Vec<Id>,
    /// The slot of the step index.
    pub step: Option<Id>,
}

/// No float is larger than this where a loop carries it on.
pub const STATE_BOUND: f64 = 2.0;
const LARGEST: f64 = 4.0;

impl Generator {
    /// Notes that the program uses something.
    pub fn mark(&mut self, feature: &'static str) {
        self.program.features.insert(feature);
    }
    /// What the numbers of an item are.
    pub fn kind(&self, id: Id) -> Kind {
        self.program.items[id].kind
    }
    /// Extents of an item.
    pub fn shape(&self, id: Id) -> Vec<usize> {
        self.program.items[id].shape.clone()
    }
    /// The bound of an item.
    pub fn bound(&self, id: Id) -> f64 {
        self.program.items[id].bound
    }
    /// An item that no block evaluates.
    pub fn slot(&mut self, kind: Kind, shape: &[usize], bound: f64) -> Id {
        self.program.items.push(Item { expr: Expr::Slot, kind, shape: shape.to_vec(), bound, dynamic: false });
        self.program.items.len() - 1
    }
    /// A new item of the innermost block.
    pub fn add(&mut self, expr: Expr, kind: Kind, shape: &[usize], bound: f64) -> Id {
        let id = self.slot(kind, shape, bound);
        self.program.items[id].expr = expr;
        self.scope().block.push(id);
        id
    }
    /// The innermost level.
    pub fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("a level")
    }
    /// Lets later expressions read an item.
    pub fn see(&mut self, id: Id) {
        self.scope().seen.push(id);
    }
    /// A random shape.
    pub fn any_shape(&mut self) -> Vec<usize> {
        let rank = *self.random.pick(&[0, 0, 1, 1, 1, 2]);
        (0..rank).map(|_| *self.random.pick(&self.extents)).collect()
    }
    /// A constant of random numbers.
    pub fn constant(&mut self, kind: Kind, shape: &[usize]) -> Id {
        let value = self.numbers(kind, shape);
        let bound = if kind == Kind::Float { 1.0 } else { 5.0 };
        self.add(Expr::Const(value), kind, shape, bound)
    }
    /// Random numbers: floats in [-1, 1), integers in 0..=5.
    pub fn numbers(&mut self, kind: Kind, shape: &[usize]) -> Nd {
        let random = &mut self.random;
        Nd::by(kind, shape, |_| if kind == Kind::Float { random.float() } else { random.below(6) as f64 })
    }
    /// The constant `x`.
    pub fn number(&mut self, kind: Kind, x: f64) -> Id {
        self.add(Expr::Const(Nd::scalar(kind, x)), kind, &[], x.abs())
    }
    /// The same value within a bound.
    pub fn within(&mut self, id: Id, bound: f64) -> Id {
        let (have, shape) = (self.bound(id), self.shape(id));
        if have <= bound {
            return id;
        }
        if self.kind(id) == Kind::Int {
            let m = self.number(Kind::Int, bound.floor() + 1.0);
            return self.add(Expr::Binary(Binary::Mod, id, m), Kind::Int, &shape, bound.floor());
        }
        if self.random.percent(50) {
            return self.add(Expr::Unary(Unary::Tanh, id), Kind::Float, &shape, 1.0);
        }
        let scale = self.number(Kind::Float, bound / have);
        self.add(Expr::Binary(Binary::Mul, id, scale), Kind::Float, &shape, bound)
    }

    /// An expression of a kind and shape.
    pub fn expr(&mut self, kind: Kind, shape: &[usize], depth: usize) -> Id {
        let id = match kind {
            Kind::Float => self.float(shape, depth),
            Kind::Int => self.int(shape, depth),
            Kind::Bool => self.truth(shape, depth),
        };
        debug_assert_eq!((self.kind(id), &self.shape(id)[..]), (kind, shape));
        if kind == Kind::Bool { id } else { self.within(id, if kind == Kind::Float { LARGEST } else { 50.0 }) }
    }

    /// Something that is there already: of this shape, or brought to it.
    fn leaf(&mut self, kind: Kind, shape: &[usize]) -> Id {
        let level = if self.random.percent(75) { self.scopes.len() - 1 } else { self.random.below(self.scopes.len()) };
        let fits = |g: &Self, id: &Id| g.kind(*id) == kind && g.shape(*id) == shape;
        let near: Vec<Id> = self.scopes[level].seen.iter().copied().filter(|id| fits(self, id)).collect();
        let all: Vec<Id> = self.scopes.iter().flat_map(|s| s.seen.iter().copied()).filter(|id| fits(self, id)).collect();
        let from = if near.is_empty() { all } else { near };
        if !from.is_empty() && !self.random.percent(5) {
            let id = *self.random.pick(&from);
            let local = self.scope().seen.contains(&id);
            if !local && self.scopes.len() > 1 {
                self.mark("captured variable");
            }
            return id;
        }
        let wide = |g: &Self, id: &Id| g.kind(*id) == kind && g.shape(*id) != shape && broadcast(&g.shape(*id), shape) == shape;
        let wide: Vec<Id> = self.scopes.iter().flat_map(|s| s.seen.iter().copied()).filter(|id| wide(self, id)).collect();
        if wide.is_empty() || self.random.percent(20) {
            return self.constant(kind, shape);
        }
        let id = *self.random.pick(&wide);
        self.mark("broadcast");
        let bound = self.bound(id);
        self.add(Expr::Broadcast(id), kind, shape, bound)
    }

    /// A smaller shape that broadcasts to this one.
    fn narrow(&mut self, shape: &[usize]) -> Vec<usize> {
        let skip = self.random.below(shape.len() + 1);
        let narrow: Vec<usize> = shape[skip..].iter().map(|&n| if self.random.percent(40) { 1 } else { n }).collect();
        if narrow != shape {
            self.mark("broadcast");
        }
        narrow
    }

    fn float(&mut self, shape: &[usize], depth: usize) -> Id {
        if depth == 0 {
            return self.leaf(Kind::Float, shape);
        }
        if self.corners && self.random.percent(6) {
            return self.ties(Kind::Float, shape, depth);
        }
        if self.scopes.len() > 1 && matches!(shape.len(), 1 | 2) && !shape.contains(&0) && self.random.percent(5) {
            return self.log_product(shape, depth);
        }
        match self.random.below(20) {
            0..=3 => self.unary(shape, depth),
            4..=8 => self.binary(shape, depth),
            9 => self.choice(Kind::Float, shape, depth),
            10 | 11 if !shape.contains(&0) => self.matmul(shape, depth),
            12 if !shape.contains(&0) => self.reduction(shape, depth),
            13 if !shape.is_empty() && !shape.contains(&0) => self.along(shape, depth),
            14 | 15 => self.indexed(Kind::Float, shape, depth),
            16 if !shape.is_empty() && shape[0] > 0 => self.written(Kind::Float, shape, depth),
            17 if !shape.contains(&0) && shape.len() <= 2 => self.linear(shape, depth),
            18 => self.scaled_int(shape, depth),
            19 if self.random.percent(60) => self.draw(shape),
            _ => self.moved(shape, depth),
        }
    }

    fn unary(&mut self, shape: &[usize], depth: usize) -> Id {
        use Unary::*;
        self.mark("elementwise");
        let formulas = [LogOnePlusExp, LogSigmoid, Logistic, ExpMinusOne, Power];
        let plain = [Neg, Tanh, Tanh, Tanh, Sin, Sin, Cos, Exp, Square, Sigmoid, Log1pSquare, Abs];
        let op = *if self.random.percent(15) { self.random.pick(&formulas) } else { self.random.pick(&plain) };
        let mut x = self.expr(Kind::Float, shape, depth - 1);
        if matches!(op, Exp | ExpMinusOne) {
            x = self.within(x, 1.0);
        }
        let b = self.bound(x);
        let bound = match op {
            Neg | Abs => b,
            Tanh | Sin | Cos | Sigmoid => 1.0,
            Exp | ExpMinusOne => b.exp(),
            Square | Power => b * b,
            LogOnePlusExp | LogSigmoid => b + 1.0,
            Logistic => 1.0,
            Log1pSquare => (1.0 + b * b).ln(),
        };
        self.add(Expr::Unary(op, x), Kind::Float, shape, bound)
    }

    fn binary(&mut self, shape: &[usize], depth: usize) -> Id {
        use Binary::*;
        self.mark("elementwise");
        let op = *self.random.pick(&[Add, Add, Sub, Mul, Mul, Div, Maximum]);
        let (narrow, ints) = (self.narrow(shape), op != Maximum && self.random.percent(8));
        let x = self.expr(Kind::Float, shape, depth - 1);
        let y = if ints { self.expr(Kind::Int, &narrow, depth - 1) } else { self.expr(Kind::Float, &narrow, depth - 1) };
        let y = if ints { self.within(y, 2.0) } else { y };
        if ints {
            self.mark("int feeds float");
        }
        let (bx, by) = (self.bound(x), self.bound(y));
        let bound = match op {
            Mul => bx * by,
            Div => bx / 1.5,
            Maximum => bx.max(by),
            _ => bx + by,
        };
        let (a, b) = if op != Div && self.random.percent(50) { (y, x) } else { (x, y) };
        self.add(Expr::Binary(op, a, b), Kind::Float, shape, bound)
    }

    fn choice(&mut self, kind: Kind, shape: &[usize], depth: usize) -> Id {
        self.mark("where");
        let scalar = self.random.percent(25);
        let narrow = if scalar { vec![] } else { self.narrow(shape) };
        let c = self.expr(Kind::Bool, &narrow, depth - 1);
        let other = if scalar { shape.to_vec() } else { self.narrow(shape) };
        let (a, b) = (self.expr(kind, shape, depth - 1), self.expr(kind, &other, depth - 1));
        let bound = self.bound(a).max(self.bound(b));
        let (a, b) = if self.random.percent(50) { (b, a) } else { (a, b) };
        if scalar {
            self.mark("ifelse");
            self.add(Expr::IfElse(c, a, b), kind, shape, bound)
        } else {
            self.add(Expr::Where(c, a, b), kind, shape, bound)
        }
    }

    fn matmul(&mut self, shape: &[usize], depth: usize) -> Id {
        self.mark("matmul");
        let k = 1 + self.random.below(3);
        let (a, b) = match shape {
            [] => (vec![k], vec![k]),
            [n] if self.random.percent(50) => (vec![*n, k], vec![k]),
            [n] => (vec![k], vec![k, *n]),
            [n, m] => (vec![*n, k], vec![k, *m]),
            _ => return self.binary(shape, depth),
        };
        let (a, b) = (self.expr(Kind::Float, &a, depth - 1), self.expr(Kind::Float, &b, depth - 1));
        let bound = k as f64 * self.bound(a) * self.bound(b);
        self.add(Expr::MatMul(a, b), Kind::Float, shape, bound)
    }

    fn reduction(&mut self, shape: &[usize], depth: usize) -> Id {
        self.mark("reduction");
        let ones: Vec<usize> = (0..shape.len()).filter(|&i| shape[i] == 1).collect();
        let keep = !ones.is_empty() && self.random.percent(50);
        let axis = if keep { *self.random.pick(&ones) } else { self.random.below(shape.len() + 1) };
        let k = 1 + self.random.below(3);
        let mut from = shape.to_vec();
        if keep {
            from[axis] = k;
        } else {
            from.insert(axis, k);
        }
        let op = *self.random.pick(&[Reduce::Sum, Reduce::Sum, Reduce::Prod, Reduce::Max, Reduce::LogSumExp]);
        let product = op == Reduce::Sum && !keep && axis == 1 && shape.len() == 2 && self.random.percent(60);
        let x = match product {
            true => self.all_products(shape[0], k, shape[1], depth),
            false if !keep && axis == 0 && k > 1 && self.random.clone().percent(30) => self.stacked(shape, k, depth),
            false => self.expr(Kind::Float, &from, depth - 1),
        };
        let b = self.bound(x);
        let bound = match op {
            Reduce::Sum => k as f64 * b,
            Reduce::Prod => b.max(1.0).powi(k as i32),
            Reduce::Max | Reduce::ArgMax => b,
            Reduce::LogSumExp => b + (k as f64).ln(),
        };
        self.add(Expr::Reduce(op, x, axis, keep), Kind::Float, shape, bound)
    }

    fn all_products(&mut self, m: usize, k: usize, n: usize, depth: usize) -> Id {
        let (a, b) = (self.expr(Kind::Float, &[m, k], depth - 1), self.expr(Kind::Float, &[k, n], depth - 1));
        self.products_of([a, b], [m, k, n])
    }

    fn along(&mut self, shape: &[usize], depth: usize) -> Id {
        let op = *self.random.pick(&[Along::Softmax, Along::CumSum, Along::Flip]);
        let axis = self.random.below(shape.len());
        let x = self.expr(Kind::Float, shape, depth - 1);
        let bound = match op {
            Along::Softmax => 1.0,
            Along::CumSum => shape[axis] as f64 * self.bound(x),
            Along::Flip | Along::Sort => self.bound(x),
        };
        self.add(Expr::Along(op, x, axis), Kind::Float, shape, bound)
    }

    /// An integer in 0..k, or, counting from the end, in -k..0.
    fn position(&mut self, shape: &[usize], k: usize, depth: usize) -> Id {
        let i = self.expr(Kind::Int, shape, depth - 1);
        let m = self.number(Kind::Int, k as f64);
        let i = self.add(Expr::Binary(Binary::Mod, i, m), Kind::Int, shape, k as f64 - 1.0);
        if self.random.percent(70) {
            return i;
        }
        self.add(Expr::Binary(Binary::Sub, i, m), Kind::Int, shape, k as f64)
    }

    fn indexed(&mut self, kind: Kind, shape: &[usize], depth: usize) -> Id {
        let k = 1 + self.random.below(3);
        if !shape.is_empty() && self.random.percent(35) {
            return self.cut(kind, shape, depth);
        }
        if !shape.is_empty() && self.random.percent(60) {
            self.mark("gather");
            let ranks = if shape.len() == 2 && self.random.percent(30) { 2 } else { 1 };
            let from = [&[k], &shape[ranks..]].concat();
            let (x, idx) = (self.expr(kind, &from, depth - 1), self.position(&shape[..ranks], k, depth));
            let bound = self.bound(x);
            return self.add(Expr::Take(x, idx), kind, shape, bound);
        }
        self.mark("basic index");
        let from = [&[k], shape].concat();
        let (x, i) = (self.expr(kind, &from, depth - 1), self.position(&[], k, depth));
        let bound = self.bound(x);
        self.add(Expr::Row(x, i), kind, shape, bound)
    }

    fn cut(&mut self, kind: Kind, shape: &[usize], depth: usize) -> Id {
        self.mark("basic index");
        let n = shape[0] as i64;
        let step: i64 = *self.random.pick(&[1, 1, 2, -1, -2]);
        let skip = self.random.between(0, 2);
        let rows = skip + if n == 0 { 0 } else { (n - 1) * step.abs() + 1 } + self.random.between(0, 1);
        let lo = if step > 0 { skip } else { rows - 1 - skip };
        let hi = lo + n * step;
        let from = [&[rows as usize], &shape[1..]].concat();
        let named = |bound: i64, natural: bool| if natural { None } else { Some(bound) };
        let (lo, hi) = if step > 0 {
            (named(lo, lo == 0), named(hi, hi >= rows))
        } else {
            (named(lo, lo == rows - 1), if hi < 0 { None } else { Some(hi) })
        };
        let right = super::reference::python_slice(rows as usize, lo, hi, step).len() as i64 == n;
        let x = self.expr(kind, &from, depth - 1);
        let bound = self.bound(x);
        if right {
            return self.add(Expr::Cut(x, lo, hi, step), kind, shape, bound);
        }
        self.add(Expr::Cut(x, Some(0), Some(n), 1), kind, shape, bound)
    }

    fn written(&mut self, kind: Kind, shape: &[usize], depth: usize) -> Id {
        self.mark("set/inc");
        let add = self.random.percent(50);
        let x = self.expr(kind, shape, depth - 1);
        let rows = self.random.percent(40);
        let k = if rows { self.random.below(4) } else { 1 };
        let place = if rows { [&[k], &shape[1..]].concat() } else { shape[1..].to_vec() };
        let narrow = if place.contains(&0) { place } else { self.narrow(&place) };
        let y = self.expr(kind, &narrow, depth - 1);
        let (bx, by) = (self.bound(x), self.bound(y));
        let bound = if add { bx + k.max(1) as f64 * by } else { bx.max(by) };
        if rows {
            let idx = self.position(&[k], shape[0], depth);
            return self.add(Expr::PutRows(x, y, idx, add), kind, shape, bound);
        }
        let i = self.position(&[], shape[0], depth);
        self.add(Expr::PutRow(x, y, i, add), kind, shape, bound)
    }

    fn linear(&mut self, shape: &[usize], depth: usize) -> Id {
        let n = shape.first().copied().unwrap_or(1 + self.random.below(3));
        let m = self.expr(Kind::Float, &[n, n], depth - 1);
        let m = self.within(m, 1.0);
        self.mark("linalg");
        let three =
            self.add(Expr::Const(Nd::by(Kind::Float, &[n, n], |at| if at[0] == at[1] { 3.0 } else { 0.0 })), Kind::Float, &[n, n], 3.0);
        let part = self.number(Kind::Float, 0.6);
        let small = self.add(Expr::Binary(Binary::Mul, m, part), Kind::Float, &[n, n], 0.6);
        let a = self.add(Expr::Binary(Binary::Add, three, small), Kind::Float, &[n, n], 3.6);
        match shape {
            [] => self.add(Expr::Linear(Linear::LogDet, a), Kind::Float, shape, 5.0),
            [r, c] if r == c && self.random.percent(30) => self.add(Expr::Linear(Linear::Inverse, a), Kind::Float, shape, 1.0),
            [r, c] if r == c && self.random.percent(40) => {
                let t = self.add(Expr::Transpose(a), Kind::Float, shape, 3.6);
                let s = self.add(Expr::MatMul(a, t), Kind::Float, shape, 40.0);
                self.add(Expr::Linear(Linear::Cholesky, s), Kind::Float, shape, 6.5)
            }
            _ => {
                let b = self.expr(Kind::Float, shape, depth - 1);
                let bound = self.bound(b);
                self.add(Expr::Solve(a, b), Kind::Float, shape, bound)
            }
        }
    }

    fn scaled_int(&mut self, shape: &[usize], depth: usize) -> Id {
        self.mark("int feeds float");
        let x = self.expr(Kind::Int, shape, depth - 1);
        let x = self.within(x, 8.0);
        let x = self.add(Expr::ToFloat(x), Kind::Float, shape, 8.0);
        let part = self.number(Kind::Float, 0.125);
        self.add(Expr::Binary(Binary::Mul, x, part), Kind::Float, shape, 1.0)
    }

    fn draw(&mut self, shape: &[usize]) -> Id {
        self.mark("random");
        let folds: Vec<Id> = self.scopes.iter().filter_map(|s| s.step).collect();
        let (normal, stream) = (self.random.percent(50), self.random.between(0, 3));
        self.add(Expr::Draw { normal, stream, folds }, Kind::Float, shape, 3.0)
    }

    fn moved(&mut self, shape: &[usize], depth: usize) -> Id {
        let way = self.random.below(5);
        let from: Vec<usize> = match (way, shape) {
            (0, [n, m]) => vec![*m, *n],
            (1, [n, m]) => vec![n * m],
            (2, [n, ..]) if *n >= 1 => [&[n - 1], &shape[1..]].concat(),
            (3, _) if shape.contains(&1) => shape.iter().enumerate().filter(|(i, _)| Some(*i) != first_one(shape)).map(|x| *x.1).collect(),
            _ => [&[1], shape].concat(),
        };
        let x = self.expr(Kind::Float, &from, depth - 1);
        let bound = self.bound(x);
        let expr = match (way, shape) {
            (0, [_, _]) => Expr::Transpose(x),
            (1, [_, _]) => Expr::Reshape(x),
            (2, [n, ..]) if *n >= 1 => {
                let one = [&[1], &shape[1..]].concat();
                let y = self.expr(Kind::Float, &one, depth - 1);
                let bound = bound.max(self.bound(y));
                let (a, b) = if self.random.percent(50) { (x, y) } else { (y, x) };
                return self.add(Expr::Join(a, b), Kind::Float, shape, bound);
            }
            (3, _) if shape.contains(&1) => Expr::Expand(x, first_one(shape).unwrap_or(0)),
            _ => Expr::Squeeze(x, 0),
        };
        self.add(expr, Kind::Float, shape, bound)
    }

    fn int(&mut self, shape: &[usize], depth: usize) -> Id {
        if depth == 0 {
            return self.int_leaf(shape);
        }
        if self.corners && self.random.percent(12) {
            return self.ties(Kind::Int, shape, depth);
        }
        match self.random.below(8) {
            0..=2 => {
                let op = *self.random.pick(&[Binary::Add, Binary::Sub, Binary::Mul, Binary::Maximum]);
                let narrow = self.narrow(shape);
                let (x, y) = (self.expr(Kind::Int, shape, depth - 1), self.expr(Kind::Int, &narrow, depth - 1));
                let (x, y) = (self.within(x, 6.0), self.within(y, 6.0));
                self.add(Expr::Binary(op, x, y), Kind::Int, shape, 36.0)
            }
            3 => self.choice(Kind::Int, shape, depth),
            4 => self.indexed(Kind::Int, shape, depth),
            5 if !shape.is_empty() && shape[0] > 0 => self.written(Kind::Int, shape, depth),
            6 => {
                let c = self.expr(Kind::Bool, shape, depth - 1);
                self.add(Expr::ToInt(c), Kind::Int, shape, 1.0)
            }
            _ => self.int_leaf(shape),
        }
    }

    fn int_leaf(&mut self, shape: &[usize]) -> Id {
        let step = self.scope().step;
        match step {
            Some(step) if shape.is_empty() && self.random.percent(40) => {
                self.mark("step index");
                step
            }
            _ => self.leaf(Kind::Int, shape),
        }
    }

    fn truth(&mut self, shape: &[usize], depth: usize) -> Id {
        let op = *self.random.pick(&[Compare::Lt, Compare::Ge, Compare::Eq]);
        let narrow = self.narrow(shape);
        let kind = if op != Compare::Eq && self.random.percent(40) { Kind::Float } else { Kind::Int };
        let depth = depth.saturating_sub(1);
        let (x, y) = (self.expr(kind, shape, depth), self.expr(kind, &narrow, depth.min(1)));
        self.add(Expr::Compare(op, x, y), Kind::Bool, shape, 1.0)
    }
}

fn first_one(shape: &[usize]) -> Option<usize> {
    shape.iter().position(|&n| n == 1)
}
