//! The products against the formula, on numbers of all sizes.

use super::defs::Weights;
use crate::ir::op::*;
use crate::ir::{Graph, Op, Value};
use crate::ops::testing::*;
use crate::types::{Array, DType};

/// Random numbers, some of them such that factors underflow or are not finite.
struct Numbers(u64);

impl Numbers {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
    /// `kind` 0: tame; 1: of wide range; 2: with −∞; 3: with everything.
    fn one(&mut self, kind: u32) -> f64 {
        let (x, u) = (self.normal(), self.unit());
        match kind {
            1 if u < 0.4 => x * 900.0,
            2 if u < 0.5 => f64::NEG_INFINITY,
            3 if u < 0.1 => f64::NEG_INFINITY,
            3 if u < 0.13 => f64::INFINITY,
            3 if u < 0.16 => f64::NAN,
            3 if u < 0.2 => -1e30,
            3 if u < 0.5 => x * 400.0,
            _ => x,
        }
    }
    fn array(&mut self, shape: &[usize], kind: u32) -> Array {
        Array::new(shape, (0..shape.iter().product()).map(|_| self.one(kind)).collect::<Vec<f64>>())
    }
}

/// What loops compute of w before they begin.
fn scaled(w: &Array) -> [Array; 2] {
    let mut g = Graph::new();
    let v = g.param(w.ty(), None);
    let top = g.emit(LogSumExp { axes: vec![0], keepdims: false }, &[v]);
    let y = g.expand(top, &[0]);
    let power = crate::ops::softmax::weights(&mut g, v, y);
    eval_graph(&g, std::slice::from_ref(w), &[top, power]).unwrap().try_into().unwrap()
}

fn powers_of(a: &Array) -> Array {
    apply(LogMatMulPowers {}, std::slice::from_ref(a))
}

fn sums_of(a: &Array, power: &Array) -> Array {
    apply(LogMatMulSums {}, &[powers_of(a), power.clone()])
}

/// `log_matmul` of a and w, with what a loop computes of them.
fn value(a: &Array, w: &Array) -> Array {
    let [top, power] = scaled(w);
    apply(LogMatMul {}, &[a.clone(), w.clone(), sums_of(a, &power), top])
}

/// The cotangents of a and w, the latter also from rows in the opposite order.
fn cotangents(a: &Array, w: &Array, ct: &Array) -> [Array; 3] {
    let [top, power] = scaled(w);
    let quotients = apply(LogMatMulQuotients {}, &[ct.clone(), sums_of(a, &power), top]);
    let rest = |power: &Array| [powers_of(a), a.clone(), w.clone(), power.clone()];
    let with = |ct: &Array, quotients: &Array, power: &Array| [&[ct.clone(), quotients.clone()], &rest(power)[..]].concat();
    let back = |x: &Array| if x.rank() == 2 { apply(Flip { axis: 0 }, std::slice::from_ref(x)) } else { x.clone() };
    [
        apply(LogMatMulLeft {}, &with(ct, &quotients, &turned(&power))),
        apply(LogMatMulRight { reverse: false }, &with(ct, &quotients, &power)),
        apply(LogMatMulRight { reverse: true }, &with(&back(ct), &back(&quotients), &power)),
    ]
}

fn turned(x: &Array) -> Array {
    apply(Transpose { perm: vec![1, 0] }, std::slice::from_ref(x))
}

/// y, and the cotangents of a and w, by the formula.
fn formula(a: &Array, w: &Array, ct: &Array) -> [Array; 3] {
    let mut g = Graph::new();
    let v: Vec<Value> = [a, w, ct].iter().map(|x| g.param(x.ty(), None)).collect();
    let axis = a.rank() - 1;
    let spread = g.expand(v[0], &[axis + 1]);
    let x = g.add(spread, v[1]);
    let y = g.emit(LogSumExp { axes: vec![axis], keepdims: false }, &[x]);
    let weights = Weights::new(&mut g, v[0], v[1], Some(y));
    let product = weights.times_columns(&mut g, v[2]);
    let (left, right) = (weights.sum_to_a(&mut g, product), g.sum_to(product, v[1]));
    eval_graph(&g, &[a.clone(), w.clone(), ct.clone()], &[y, left, right]).unwrap().try_into().unwrap()
}

fn close(got: &Array, want: &Array, scale: f64, what: &str) {
    assert_eq!(got.shape(), want.shape(), "{what}");
    for (i, (x, y)) in got.to_f64_vec().into_iter().zip(want.to_f64_vec()).enumerate() {
        let same = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= 1e-12 * (scale + y.abs());
        assert!(same, "{what}: element {i} is {x}, not {y}");
    }
}

#[test]
fn values_and_cotangents_are_those_of_the_formula() {
    let mut numbers = Numbers(7);
    for round in 0..400 {
        let (kind_a, kind_w, kind_ct) = (round % 4, round / 4 % 4, if round % 5 == 0 { 3 } else { 0 });
        let (m, k, n) = (1 + round as usize % 3, 1 + round as usize * 7 % 19, 1 + round as usize * 5 % 17);
        let rows: &[usize] = if round % 2 == 0 { &[m] } else { &[] };
        let with = |x: usize| rows.iter().copied().chain([x]).collect::<Vec<usize>>();
        let a = numbers.array(&with(k), kind_a);
        let (w, ct) = (numbers.array(&[k, n], kind_w), numbers.array(&with(n), kind_ct));
        let [y, left, right] = formula(&a, &w, &ct);
        let what = format!("round {round}, {kind_a} {kind_w} {kind_ct}");
        close(&value(&a, &w), &y, 1.0, &what);
        let scale = ct.to_f64_vec().iter().filter(|x| x.is_finite()).map(|x| x.abs()).sum::<f64>();
        let got = cotangents(&a, &w, &ct);
        close(&got[0], &left, scale, &format!("left, {what}"));
        close(&got[1], &right, scale, &format!("right, {what}"));
        close(&got[2], &right, scale, &format!("right reversed, {what}"));
    }
}

#[test]
fn many_rows_are_as_accurate_as_one() {
    // Enough rows for products of matrices, of which a few go to the formula.
    for kinds in [(0, 0), (1, 0), (2, 2), (3, 1)] {
        let mut numbers = Numbers(11);
        let (a, w) = (numbers.array(&[70, 24], kinds.0), numbers.array(&[24, 20], kinds.1));
        let ct = numbers.array(&[70, 20], 0);
        let [y, left, right] = formula(&a, &w, &ct);
        let scale = ct.to_f64_vec().iter().map(|x| x.abs()).sum::<f64>();
        close(&value(&a, &w), &y, 1.0, "y");
        let got = cotangents(&a, &w, &ct);
        close(&got[0], &left, scale, "left");
        close(&got[1], &right, scale, "right");
        close(&got[2], &right, scale, "right reversed");
    }
}

#[test]
fn sums_that_nearly_underflow_are_right() {
    for gap in [0.0, 100.0, 176.0, 178.0, 300.0, 700.0, 744.0, 746.0, 1e4] {
        let a = Array::vector(&[0.0, -gap]);
        let w = Array::new(&[2, 2], vec![-gap, 0.0, 0.0, 0.0]);
        let got = value(&a, &w).to_f64_vec();
        assert!((got[0] - (2f64.ln() - gap)).abs() <= 1e-13 * (1.0 + gap), "{gap}: {}", got[0]);
    }
}

#[test]
fn extents_of_one_and_no_rows() {
    let mut numbers = Numbers(3);
    for (a, w) in [(vec![1], vec![4, 3]), (vec![4], vec![1, 3]), (vec![2, 1], vec![4, 3]), (vec![2, 4], vec![1, 3]), (vec![1], vec![1, 1])]
    {
        let (a, w) = (numbers.array(&a, 0), numbers.array(&w, 0));
        let mut shape = a.shape().to_vec();
        shape[a.rank() - 1] = w.shape()[1];
        let ct = numbers.array(&shape, 0);
        let [y, left, right] = formula(&a, &w, &ct);
        close(&value(&a, &w), &y, 1.0, "y");
        let got = cotangents(&a, &w, &ct);
        close(&got[0], &left, 10.0, "left");
        for got in got[1..].iter().cloned() {
            let summed = if w.shape()[0] == got.shape()[0] { got } else { apply(SumTo {}, &[got, w.clone()]) };
            close(&summed, &right, 10.0, "right");
        }
    }
    let [a, ct, w] = [Array::zeros(DType::F64, &[0, 7]), Array::zeros(DType::F64, &[0, 3]), Array::zeros(DType::F64, &[4, 3])];
    let [top, power] = scaled(&w);
    assert_eq!(run(LogMatMulPowers {}, &[&a]).shape(), [0, 7]);
    assert_eq!(run(LogMatMulSums {}, &[&a, &power]).shape(), [0, 3]);
    assert_eq!(run(LogMatMulQuotients {}, &[&ct, &ct, &top]).shape(), [0, 3]);
    assert_eq!(run(LogMatMul {}, &[&a, &w, &ct, &top]).shape(), [0, 3]);
    assert_eq!(run(LogMatMulRight { reverse: true }, &[&ct, &ct, &a, &a, &w, &power]).shape(), [4, 3]);
}

fn run(op: impl Into<Op>, ins: &[&Array]) -> Array {
    let mut ins: Vec<Array> = ins.iter().map(|&x| x.clone()).collect();
    op.into().def().eval(&mut EvalCx::new(), &mut ins).unwrap().remove(0)
}

#[test]
fn what_does_not_fit_is_an_error() {
    let [w, top] = [Array::zeros(DType::F64, &[4, 3]), Array::zeros(DType::F64, &[3])];
    let (a, fits) = (Array::zeros(DType::F64, &[5]), Array::zeros(DType::F64, &[4]));
    let (six, single) = (Array::zeros(DType::F64, &[6, 3]), Array::zeros(DType::F32, &[4]));
    assert_eq!(build_error(LogMatMul {}, &[a.clone(), w.clone(), top.clone(), top.clone()]).code, "E0201");
    assert_eq!(build_error(LogMatMul {}, &[fits.clone(), w.clone(), top.clone(), w.clone()]).code, "E0208");
    assert_eq!(build_error(LogMatMulPowers {}, &[single.clone()]).code, "E0208");
    assert_eq!(build_error(LogMatMulSums {}, &[single, w.clone()]).code, "E0208");
    let unfit = |op: Op, ins: &[&Array]| {
        let mut ins: Vec<Array> = ins.iter().map(|&x| x.clone()).collect();
        op.def().eval(&mut EvalCx::new(), &mut ins).unwrap_err().code
    };
    assert_eq!(unfit(LogMatMul {}.into(), &[&a, &w, &top, &top]), "E0208");
    assert_eq!(unfit(LogMatMul {}.into(), &[&fits, &w, &a, &top]), "E0208");
    assert_eq!(unfit(LogMatMulSums {}.into(), &[&fits, &six]), "E0208");
    assert_eq!(unfit(LogMatMulQuotients {}.into(), &[&top, &a, &top]), "E0208");
    assert_eq!(unfit(LogMatMulLeft {}.into(), &[&top, &top, &a, &fits, &w, &turned(&w)]), "E0208");
    assert_eq!(unfit(LogMatMulRight { reverse: true }.into(), &[&top, &a, &fits, &fits, &w, &w]), "E0208");
}

/// What a loop computes of a and w: the result, then top, power, powers and sums.
fn product(g: &mut Graph, a: Value, w: Value) -> [Value; 5] {
    let top = g.emit(LogSumExp { axes: vec![0], keepdims: false }, &[w]);
    let spread = g.expand(top, &[0]);
    let power = crate::ops::softmax::weights(g, w, spread);
    let powers = g.emit(LogMatMulPowers {}, &[a]);
    let sums = g.emit(LogMatMulSums {}, &[powers, power]);
    [g.emit(LogMatMul {}, &[a, w, sums, top]), top, power, powers, sums]
}

#[test]
fn gradients_match_differences() {
    for a in [&[3][..], &[2, 3]] {
        let mut y = a.to_vec();
        y[a.len() - 1] = 4;
        let ins = [sample(a, 1), sample(&[3, 4], 2), sample(&y, 3)];
        let wide = |g: &mut Graph, v: &[Value]| v.iter().map(|&v| g.cast(v, DType::F64)).collect::<Vec<Value>>();
        let forward = |g: &mut Graph, v: &[Value]| {
            let v = wide(g, v);
            product(g, v[0], v[1])[0]
        };
        // The cotangents of a, of w, and of w from rows in the opposite order.
        let back = |which: usize| {
            move |g: &mut Graph, v: &[Value]| {
                let v = wide(g, v);
                let [_, top, power, powers, sums] = product(g, v[0], v[1]);
                let reverse = which == 2 && g.ty(v[0]).rank() == 2;
                let quotients = g.emit(LogMatMulQuotients {}, &[v[2], sums, top]);
                let mut turn = |v: Value| if reverse { g.emit(Flip { axis: 0 }, &[v]) } else { v };
                let given = [turn(v[2]), turn(quotients), powers, v[0], v[1]];
                let power = if which == 0 { g.transpose(power, &[1, 0]) } else { power };
                let op: Op = if which == 0 { LogMatMulLeft {}.into() } else { LogMatMulRight { reverse }.into() };
                g.emit(op, &[&given[..], &[power]].concat())
            }
        };
        check_vjp(forward, &ins[..2]);
        (0..3).for_each(|which| check_vjp(back(which), &ins));
        let powers = |g: &mut Graph, v: &[Value]| {
            let v = wide(g, v);
            g.emit(LogMatMulPowers {}, &[v[0]])
        };
        check_vjp(powers, &ins[..1]);
        let sums = |g: &mut Graph, v: &[Value]| {
            let v = wide(g, v);
            g.emit(LogMatMulSums {}, &[v[0], v[1]])
        };
        check_vjp(sums, &ins[..2]);
        let quotients = |g: &mut Graph, v: &[Value]| {
            let v = wide(g, v);
            let (sums, top) = (g.exp(v[1]), Array::zeros(DType::F64, &[4]));
            let top = g.constant(top);
            g.emit(LogMatMulQuotients {}, &[v[0], sums, top])
        };
        check_vjp(quotients, &[sample(&y, 3), sample(&y, 4)]);
    }
}
