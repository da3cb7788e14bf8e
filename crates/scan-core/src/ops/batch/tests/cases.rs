//! A case or more for each op of the table.

use crate::ir::Op;
use crate::ir::op::*;
use crate::ops::testing::sample;
use crate::scalar::mt19937::seed_state;
use crate::types::{Array, DType};

/// So many rows are tried.
pub const ROWS: usize = 3;

/// An op with inputs of each row.
pub struct Case {
    pub op: Op,
    pub row: Box<dyn Fn(usize) -> Vec<Array>>,
    /// Inputs that may differ from row to row: every subset of them is tried.
    pub vary: Vec<usize>,
    /// Inputs that are constants where they are the same in every row.
    pub constant: Vec<usize>,
    /// True where products or sums may be rounded otherwise.
    pub rounded: bool,
}

impl Case {
    pub fn new(op: impl Into<Op>, row: impl Fn(usize) -> Vec<Array> + 'static, vary: &[usize]) -> Case {
        Case { op: op.into(), row: Box::new(row), vary: vary.to_vec(), constant: vec![], rounded: false }
    }
    fn rounded(self) -> Case {
        Case { rounded: true, ..self }
    }
    fn constant(self, constant: &[usize]) -> Case {
        Case { constant: constant.to_vec(), ..self }
    }
}

/// Numbers in (0, 1), of which every function is defined.
pub fn positive(shape: &[usize], seed: usize) -> Array {
    let mut x = sample(shape, seed);
    x.as_mut_slice::<f64>().iter_mut().for_each(|x| *x = 0.5 + 0.45 * *x);
    x
}

fn regular(shape: &[usize], seed: usize) -> Array {
    let n = shape[shape.len() - 1];
    let mut a = sample(shape, seed);
    a.as_mut_slice::<f64>().iter_mut().enumerate().filter(|(at, _)| at / n % n == at % n).for_each(|(_, x)| *x += 4.0);
    a
}

fn int(n: i64) -> Array {
    Array::scalar(n)
}
fn ints(x: &[i64]) -> Array {
    Array::vector(x)
}
fn key(r: usize) -> Array {
    Array::vector(&[7u64, r as u64])
}
fn unary(op: impl Into<Op>, shape: &'static [usize]) -> Case {
    Case::new(op, move |r| vec![sample(shape, r)], &[0])
}
fn axes(axes: &[usize]) -> Vec<usize> {
    axes.to_vec()
}

/// All cases.
pub fn all() -> Vec<Case> {
    [identities(), reductions(), along(), products(), log_products(), shapes(), indices(), writes(), made(), linalg(), random()]
        .into_iter()
        .flatten()
        .collect()
}

fn identities() -> Vec<Case> {
    let truth = |r: usize| Array::scalar(r != 1);
    let masks = |r: usize| Array::vector(&[r != 1, r == 2]);
    vec![
        unary(Cast { dtype: DType::F32 }, &[2]),
        unary(DimOf { axis: 1 }, &[2, 3]),
        unary(StopGradient {}, &[2]),
        unary(Hold {}, &[]),
        unary(GradClip { low: Bits(-1.0), high: Bits(1.0) }, &[2]),
        Case::new(GradTo {}, move |r| vec![sample(&[2], r), sample(&[2, 2], r + 4), masks(r)], &[0, 1, 2]),
        Case::new(Assert { message: "no".into() }, |r| vec![sample(&[2], r), Array::vector(&[true, true])], &[0, 1]),
        Case::new(IfElse {}, move |r| vec![truth(r), sample(&[2], r), sample(&[2], r + 7)], &[0, 1, 2]),
        Case::new(IfElse {}, move |r| vec![truth(r), sample(&[], r), sample(&[], r + 7)], &[0, 1, 2]),
    ]
}

fn reductions() -> Vec<Case> {
    use ReduceKind::*;
    let mut found = vec![];
    for kind in [Sum, Prod, Max, Min, Any, All] {
        found.push(unary(Reduce { kind, axes: axes(&[0, 2]), keepdims: false }, &[2, 3, 2]).rounded());
        found.push(unary(Reduce { kind, axes: axes(&[1]), keepdims: true }, &[2, 3]));
    }
    for kind in [Extreme::Max, Extreme::Min] {
        found.push(unary(ArgReduce { kind, axis: 1 }, &[2, 3]));
        found.push(unary(ExtremeMask { kind, axes: axes(&[0]) }, &[3]));
    }
    found.push(unary(LogSumExp { axes: axes(&[0]), keepdims: false }, &[3, 2]).rounded());
    found.push(unary(LogSumExp { axes: axes(&[0, 1]), keepdims: true }, &[3, 2]).rounded());
    found
}

fn along() -> Vec<Case> {
    vec![
        unary(Softmax { axis: 1 }, &[2, 3]),
        unary(LogSoftmax { axis: 0 }, &[2, 3]),
        unary(CumSum { axis: 0, reverse: true }, &[3]),
        unary(CumProd { axis: 1 }, &[2, 3]),
        unary(Dft { inverse: false }, &[3, 2]),
        unary(Dft { inverse: true }, &[2, 4, 2]),
        Case::new(Recurrence { axis: 0, reverse: false }, |r| vec![sample(&[3, 2], r), sample(&[3, 2], r + 9)], &[0, 1]),
        unary(CumExtreme { kind: Extreme::Max, axis: 1 }, &[2, 3]),
        unary(ArgCumExtreme { kind: Extreme::Min, axis: 0 }, &[3, 2]),
        Case::new(SearchSorted { right: true }, |r| vec![Array::vector(&[-0.5, 0.0, 0.1 * r as f64]), sample(&[2, 3], r)], &[0, 1]),
        unary(Sort { axis: 0 }, &[4]),
        unary(ArgSort { axis: 1 }, &[2, 4]),
        unary(ArgTopK { axis: 1, k: 2, largest: true }, &[2, 4]),
        unary(Flip { axis: 1 }, &[2, 3]),
        Case::new(Join { axis: 1 }, |r| vec![sample(&[2, 1], r), sample(&[2, 3], r + 3)], &[0, 1]),
    ]
}

fn products() -> Vec<Case> {
    let shapes: [(&'static [usize], &'static [usize]); 10] = [
        (&[4], &[4]),
        (&[4], &[4, 3]),
        (&[2, 4], &[4]),
        (&[2, 4], &[4, 3]),
        (&[5, 2, 4], &[4, 3]),
        (&[2, 4], &[5, 4, 3]),
        (&[5, 2, 4], &[5, 4, 3]),
        (&[5, 2, 4], &[4]),
        (&[4], &[5, 4, 3]),
        (&[1, 2, 4], &[6, 5, 4, 3]),
    ];
    let of = |(a, b): (&'static [usize], &'static [usize])| {
        Case::new(MatMul {}, move |r| vec![sample(a, r), sample(b, r + 5)], &[0, 1]).rounded()
    };
    let whole = Case::new(MatMul {}, |r| vec![sample(&[4], r).cast(DType::Bool), ints(&[1, 0, 3, r as i64])], &[0, 1]);
    let outer = |r: usize| vec![sample(&[5, 2], r), sample(&[5, 3], r + 8), sample(&[2, 3], r)];
    let mut found: Vec<Case> = shapes.into_iter().map(of).collect();
    found.extend([whole, Case::new(OuterSum { back_a: true, back_b: false }, outer, &[0, 1]).rounded()]);
    found
}

/// Operands of a product in log space: a, w, the powers of both, the top of w, sums, a cotangent and its quotients.
fn in_log_space(a: &Array, w: &Array) -> [Array; 8] {
    let run = |op: Op, ins: &[Array]| op.evaluate(&mut EvalCx::new(), &mut ins.to_vec()).expect("evaluates").remove(0);
    let top = run(LogSumExp { axes: vec![0], keepdims: false }.into(), std::slice::from_ref(w));
    let power = run(Op::Elem(crate::scalar::ElemOp::Sub), &[w.clone(), top.clone()]);
    let power = run(Op::Elem(crate::scalar::ElemOp::Exp), &[power]);
    let powers = run(LogMatMulPowers {}.into(), std::slice::from_ref(a));
    let sums = run(LogMatMulSums {}.into(), &[powers.clone(), power.clone()]);
    let ct = sample(sums.shape(), 11);
    let quotients = run(LogMatMulQuotients {}.into(), &[ct.clone(), sums.clone(), top.clone()]);
    [a.clone(), w.clone(), powers, power, top, sums, ct, quotients]
}

fn log_products() -> Vec<Case> {
    let of = |op: Op, shape: &'static [usize], which: &'static [usize], turned: bool, vary: &'static [usize]| {
        let row = move |r: usize| {
            let all = in_log_space(&sample(shape, r), &sample(&[3, 2], 40));
            let mut ins: Vec<Array> = which.iter().map(|k| all[*k].clone()).collect();
            if turned {
                let power = Op::from(Transpose { perm: vec![1, 0] }).evaluate(&mut EvalCx::new(), &mut [ins[5].clone()]);
                ins[5] = power.expect("evaluates").remove(0);
            }
            ins
        };
        Case::new(op, row, vary).rounded()
    };
    let mut found = vec![];
    for shape in [&[3][..], &[2, 3]] {
        found.push(of(LogMatMulPowers {}.into(), shape, &[0], false, &[0]));
        found.push(of(LogMatMulSums {}.into(), shape, &[2, 3], false, &[0, 1]));
        found.push(of(LogMatMul {}.into(), shape, &[0, 1, 5, 4], false, &[0, 2]));
        found.push(of(LogMatMulQuotients {}.into(), shape, &[6, 5, 4], false, &[0, 1]));
        found.push(of(LogMatMulLeft {}.into(), shape, &[6, 7, 2, 0, 1, 3], true, &[0, 1, 2, 3]));
        found.push(of(LogMatMulRight { reverse: true }.into(), shape, &[6, 7, 2, 0, 1, 3], false, &[0, 1, 2, 3]));
    }
    found
}

fn shapes() -> Vec<Case> {
    let pair =
        |op: Op, a: &'static [usize], b: &'static [usize]| Case::new(op, move |r| vec![sample(a, r), sample(b, r + 6)], &[0, 1]).rounded();
    vec![
        Case::new(Reshape {}, |r| vec![sample(&[2, 3], r), int(3), int(2)], &[0]),
        Case::new(Reshape {}, |r| vec![sample(&[2, 3], r), int(3), int(-1)], &[0]).constant(&[1, 2]),
        Case::new(Reshape {}, |r| vec![sample(&[2, 3], r), int(-1)], &[0]).constant(&[1]),
        pair(ReshapeLike {}.into(), &[2, 3], &[3, 2]),
        unary(Transpose { perm: axes(&[2, 0, 1]) }, &[2, 3, 4]),
        unary(Expand { axes: axes(&[0, 2]) }, &[3]),
        unary(Squeeze { axes: axes(&[1]) }, &[2, 1, 3]),
        Case::new(BroadcastTo {}, |r| vec![sample(&[3, 1], r), int(2), int(3), int(4)], &[0]),
        Case::new(BroadcastTo {}, |r| vec![sample(&[], r), int(2)], &[0]).constant(&[1]),
        pair(BroadcastLike {}.into(), &[3, 1], &[2, 3, 4]),
        pair(BroadcastLike {}.into(), &[2], &[2]),
        pair(SumTo {}.into(), &[2, 3, 4], &[3, 1]),
        pair(SumTo {}.into(), &[2, 3], &[]),
        pair(SumTo {}.into(), &[2, 3], &[2, 3]),
        pair(SumTo {}.into(), &[2, 3], &[1, 3]),
    ]
}

fn indices() -> Vec<Case> {
    let at = |r: usize| int(r as i64 - 1);
    let some = |r: usize| ints(&[r as i64, -1, 0]);
    let index = |pattern: &str| Index { pattern: pattern.into() };
    let gather = |axes: &[usize]| Gather { axes: axes.to_vec() };
    vec![
        Case::new(index("i"), move |r| vec![sample(&[3, 2], r), at(r)], &[0, 1]),
        Case::new(index(""), |r| vec![sample(&[3, 2], r)], &[0]),
        Case::new(index(":,i,s:e:2,i"), move |r| vec![sample(&[2, 3, 4, 3], r), at(r), int(1), int(4), at(r + 1)], &[0, 1, 4]),
        Case::new(index("i,i"), move |r| vec![sample(&[3, 4], r), at(r), int(2)], &[0, 1, 2]),
        Case::new(index("::-1,s:"), |r| vec![sample(&[3, 4], r), int(1)], &[0]),
        Case::new(index("s:e"), |r| vec![sample(&[6, 2], r), int(r as i64), int(r as i64 + 2)], &[0]),
        Case::new(gather(&[0]), move |r| vec![sample(&[3, 2], r), some(r)], &[0, 1]),
        Case::new(gather(&[1]), move |r| vec![sample(&[2, 3, 2], r), some(r)], &[0, 1]),
        Case::new(gather(&[1, 2]), move |r| vec![sample(&[2, 3, 3], r), some(r), at(r)], &[0, 1, 2]),
        Case::new(gather(&[0, 2]), move |r| vec![sample(&[3, 2, 3], r), some(r), Array::new(&[2, 1], vec![r as i64, 1])], &[0, 1, 2]),
    ]
}

fn writes() -> Vec<Case> {
    let at = |r: usize| int(r as i64 - 1);
    let some = |r: usize| ints(&[r as i64, -1, 0, -1]);
    let mut found = vec![];
    for mode in [Write::Set, Write::Inc] {
        let index = move |pattern: &str| IndexWrite { mode, pattern: pattern.into() };
        let gather = move |axes: &[usize]| GatherWrite { mode, axes: axes.to_vec() };
        found.extend([
            Case::new(index("i"), move |r| vec![sample(&[3, 2], r), sample(&[2], r + 4), at(r)], &[0, 1, 2]),
            Case::new(index("s:e"), |r| vec![sample(&[4, 2], r), sample(&[], r + 4), int(1), int(3)], &[0, 1]),
            Case::new(index(":,i,s:e:2"), move |r| vec![sample(&[2, 3, 4], r), sample(&[2], r + 4), at(r), int(0), int(4)], &[0, 1, 2]),
            Case::new(index("i,::-1"), |r| vec![sample(&[3, 2], r), sample(&[2], r + 4), int(2)], &[0, 1]),
            Case::new(gather(&[0]), move |r| vec![sample(&[3, 2], r), sample(&[4, 2], r + 4), some(r)], &[0, 1, 2]),
            Case::new(gather(&[1]), move |r| vec![sample(&[2, 3, 2], r), sample(&[4, 1], r + 4), some(r)], &[0, 1, 2]),
            Case::new(gather(&[0, 2]), move |r| vec![sample(&[3, 2, 3], r), sample(&[4, 2], r + 4), some(r), at(r)], &[0, 1, 2, 3]),
            Case::new(gather(&[1, 2]), move |r| vec![sample(&[2, 3, 3], r), sample(&[2, 4], r + 4), some(r), at(r)], &[0, 1, 2, 3]),
        ]);
    }
    found
}

fn made() -> Vec<Case> {
    let found = |r: usize| vec![Array::vector(&[r == 0, r != 0, true])];
    vec![
        Case::new(Nonzero {}, found, &[0]),
        Case::new(Arange {}, |r| vec![int(r as i64), int(r as i64 + 5), int(2)], &[]),
        Case::new(Arange {}, |r| vec![Array::scalar(0.5), Array::scalar(2.2 + 0.1 * r as f64), Array::scalar(1.0)], &[1]),
        Case::new(Eye { dtype: DType::F64 }, |r| vec![int(3), int(2), int(r as i64 - 1)], &[2]),
        unary(Diag { k: 0 }, &[3]),
        unary(Diag { k: -2 }, &[2]),
        unary(Diag { k: 1 }, &[3, 2]),
        unary(Diag { k: 3 }, &[2, 2]),
        unary(Diag { k: -1 }, &[3, 4]),
        unary(Tri { lower: true, k: 0 }, &[3, 3]),
        unary(Tri { lower: false, k: 1 }, &[2, 2, 3]),
    ]
}

fn linalg() -> Vec<Case> {
    let square = |op: Op, shape: &'static [usize]| Case::new(op, move |r| vec![regular(shape, r)], &[0]);
    let mut found = vec![];
    for shape in [&[3, 3][..], &[2, 3, 3]] {
        for op in [Op::from(Cholesky {}), Inverse {}.into(), SLogDet {}.into(), Det {}.into(), Cofactor {}.into()] {
            found.push(square(op, shape));
        }
        for op in [Op::from(Qr {}), Eigh {}.into(), Svd {}.into(), Pinv { rcond: Bits(-1.0) }.into()] {
            found.push(square(op, shape));
        }
        found.push(Case::new(CofactorSlope {}, move |r| vec![regular(shape, r), sample(shape, r + 3)], &[0, 1]));
        for right in [&[3][..], &[3, 2]] {
            let systems = move |r: usize| vec![regular(shape, r), sample(right, r + 3)];
            for kind in [MatrixKind::General, MatrixKind::Lower, MatrixKind::Upper, MatrixKind::Positive] {
                found.push(Case::new(Solve { kind }, systems, &[0, 1]));
            }
            found.push(Case::new(SolveSLogDet {}, systems, &[0, 1]));
        }
    }
    found
}

fn random() -> Vec<Case> {
    // Of an inner axis: keys that are stacked already.
    let keys = |r: usize| Array::stack(&[key(r), key(r + 10), key(r + 20)], DType::U64, &[2]);
    let legacy = |r: usize| vec![seed_state(r as u32), Array::scalar(0.0), Array::scalar(1.0 + r as f64), int(3)];
    vec![
        Case::new(FoldIn {}, |r| vec![key(r), int(r as i64 + 1)], &[0, 1]),
        Case::new(FoldIn {}, move |r| vec![keys(r), int(r as i64 + 1)], &[0, 1]),
        Case::new(FoldIn {}, move |r| vec![key(r), Array::vector(&[1i64, r as i64])], &[0, 1]),
        Case::new(FoldIn {}, move |r| vec![keys(r), Array::vector(&[4i64, 5, r as i64])], &[0, 1]),
        Case::new(RandomUniform { dtype: DType::F32 }, move |r| vec![keys(r), int(2), int(3)], &[0]),
        Case::new(RandomNormal { dtype: DType::F64 }, move |r| vec![keys(r)], &[0]),
        Case::new(RandomIntegers {}, move |r| vec![keys(r), int(-3), int(9), int(4)], &[0]),
        Case::new(RandomPermutation {}, move |r| vec![keys(r), int(5)], &[0]),
        Case::new(RandomUniform { dtype: DType::F64 }, |r| vec![key(r), int(2), int(3)], &[0]),
        Case::new(RandomNormal { dtype: DType::F32 }, |r| vec![key(r), int(3)], &[0]),
        Case::new(RandomIntegers {}, |r| vec![key(r), int(r as i64), int(9), int(4)], &[0, 1, 2]),
        Case::new(RandomPermutation {}, |r| vec![key(r), int(5)], &[0]),
        Case::new(LegacyDraw { dist: Legacy::Normal, dtype: DType::F64 }, legacy, &[0, 1, 2]),
    ]
}
