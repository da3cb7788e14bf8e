//! Ops of few elements in the step of a loop: the loop is one kernel, and gives the bits of the evaluator on every engine.

use crate::sources::Random;
use scan_core::base::Diagnostic;
use scan_core::exec::Program;
use scan_core::ir::op::*;
use scan_core::ir::parse::parse;
use scan_core::ir::{EvalCx, Op};
use scan_core::prelude::{Engine, Function, FunctionSpec, LoopBuilder, LoopOptions, PassOptions, Span, Var};
use scan_core::rewrite::Options;
use scan_core::scalar::ElemOp;
use scan_core::types::{Array, DType, Type};
use std::sync::Arc;

const STEPS: usize = 24;

/// Rows of all steps, with ties, zeros of both signs, NaN and infinities among them.
fn rows(dtype: DType, row: &[usize], seed: u64) -> Array {
    let mut random = Random(seed);
    let n = STEPS * row.iter().product::<usize>();
    let special = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, -2.0];
    let plain = |random: &mut Random| (random.unit() * 8.0).round() / 2.0;
    let number = |random: &mut Random| if random.below(5) == 0 { *random.pick(&special) } else { plain(random) };
    let values: Vec<f64> = (0..n).map(|_| number(&mut random)).collect();
    Array::new(&[&[STEPS], row].concat(), values).cast(dtype)
}

/// Rows of numbers alone.
fn numbers(dtype: DType, row: &[usize], seed: u64) -> Array {
    let mut random = Random(seed);
    let n = STEPS * row.iter().product::<usize>();
    Array::new(&[&[STEPS], row].concat(), (0..n).map(|_| random.unit() * 3.0).collect::<Vec<f64>>()).cast(dtype)
}

/// Rows of matrices with a large diagonal, symmetric ones where that is asked for.
fn matrices(row: &[usize], symmetric: bool, seed: u64) -> Array {
    let mut all = numbers(DType::F64, row, seed);
    let n = row[row.len() - 1];
    for a in all.as_mut_slice::<f64>().chunks_mut(n * n) {
        (0..n).for_each(|i| a[i * n + i] += 25.0);
        for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).filter(|_| symmetric) {
            a[i * n + j] = a[j * n + i];
        }
    }
    all
}

/// Integers in `low .. high`.
fn integers(dtype: DType, row: &[usize], [low, high]: [i64; 2], seed: u64) -> Array {
    let mut random = Random(seed);
    let n = STEPS * row.iter().product::<usize>();
    let values: Vec<i64> = (0..n).map(|_| low + random.below((high - low) as usize) as i64).collect();
    Array::new(&[&[STEPS], row].concat(), values).cast(dtype)
}

/// What a step reads.
enum Read {
    /// A row of this array.
    Row(Array),
    /// All of this array.
    Whole(Array),
    /// The same, known when the loop is planned.
    Fixed(Array),
}
use Read::{Fixed, Row, Whole};

fn input(ty: Type) -> Var {
    Var::input(ty, None, Span::NONE)
}

/// A loop whose step applies an op and returns all of its results; it is run as it stands.
fn looped(engine: Engine, op: &Op, reads: &[Read]) -> Result<(Function, Vec<Array>), Box<Diagnostic>> {
    let mut step = LoopBuilder::new(LoopOptions { n_steps: Some(Var::int(STEPS as i64)), ..Default::default() })?;
    let (mut inputs, mut args, mut ins) = (vec![], vec![], vec![]);
    for read in reads {
        match read {
            Fixed(a) => ins.push(Var::constant(a.clone(), Span::NONE)),
            Row(a) | Whole(a) => {
                let x = input(Type::new(a.dtype(), a.shape().iter().map(|_| scan_core::types::Dim::fresh())));
                ins.push(if matches!(read, Row(_)) { step.sequence(&x, &[0], None)?.remove(0) } else { x.clone() });
                inputs.push(x);
                args.push(a.clone());
            }
        }
    }
    let outs = Var::apply(op.clone(), &ins, Span::NONE)?;
    let outs: Vec<_> = outs.into_iter().map(|v| (None, v)).collect();
    let outputs = step.finish(&outs, &[], None)?.outputs;
    let f = Function::new(FunctionSpec { inputs, outputs, engine: Some(engine), passes: PassOptions::none(), ..Default::default() })?;
    Ok((f, args))
}

fn call(f: &Function, args: &[Array]) -> Result<Vec<Array>, Box<Diagnostic>> {
    f.call(&mut EvalCx::new(), args)
}

/// Bits of the elements; all NaNs are one.
fn bits(a: &Array) -> Vec<u64> {
    match a.dtype() {
        DType::F32 => a.as_slice::<f32>().iter().map(|x| if x.is_nan() { 1 } else { u64::from(x.to_bits()) }).collect(),
        DType::F64 => a.as_slice::<f64>().iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect(),
        _ => a.to_i64_vec().into_iter().map(|x| x as u64).collect(),
    }
}

/// The op as the step of a loop, on every engine; says whether the loop is one kernel.
fn agree(op: impl Into<Op>, reads: &[Read]) -> bool {
    let op = op.into();
    let run = |engine| {
        let (f, args) = looped(engine, &op, reads).unwrap_or_else(|e| panic!("{}: {}", op.name(), e.title));
        let outs = call(&f, &args).unwrap_or_else(|e| panic!("{} on {engine:?}: {}", op.name(), e.title));
        (f, outs)
    };
    let (_, law) = run(Engine::Eval);
    let mut kernel = true;
    for engine in [Engine::Vm, Engine::Jit] {
        let (f, outs) = run(engine);
        for (got, wanted) in outs.iter().zip(&law) {
            assert_eq!((got.dtype(), got.shape()), (wanted.dtype(), wanted.shape()), "{} on {engine:?}", op.name());
            assert_eq!(bits(got), bits(wanted), "{:?} on {engine:?}\n{got:?}\n{wanted:?}", op);
        }
        let found = f.loops()[0].variants[0].engine.clone();
        kernel &= if engine == Engine::Vm { found == "vm" } else { ["jit", "avx2", "avx512"].contains(&&*found) };
    }
    kernel
}

/// The same, which must be one kernel.
fn is_kernel(op: impl Into<Op>, reads: &[Read]) {
    let op = op.into();
    assert!(agree(op.clone(), reads), "{op:?} is not one kernel");
}

#[test]
fn reductions_and_extremes() {
    for dtype in [DType::F64, DType::F32, DType::I32, DType::U8, DType::Bool] {
        for (row, axis) in [(&[5][..], 0), (&[2, 3], 0), (&[2, 3], 1), (&[1], 0), (&[9], 0)] {
            let x = || [Row(rows(dtype, row, 3 + axis as u64))];
            for kind in [Extreme::Max, Extreme::Min] {
                is_kernel(ArgReduce { kind, axis }, &x());
                is_kernel(ExtremeMask { kind, axes: vec![axis] }, &x());
                is_kernel(CumExtreme { kind, axis }, &x());
                is_kernel(ArgCumExtreme { kind, axis }, &x());
            }
            is_kernel(CumSum { axis, reverse: axis == 1 }, &x());
            is_kernel(CumProd { axis }, &x());
            is_kernel(Sort { axis }, &x());
            is_kernel(ArgSort { axis }, &x());
            is_kernel(ArgTopK { axis, k: 2, largest: axis == 1 }, &x());
        }
    }
    is_kernel(ExtremeMask { kind: Extreme::Max, axes: vec![0, 1] }, &[Row(rows(DType::F64, &[2, 2], 5))]);
    for reverse in [false, true] {
        let [a, b] = [7, 8].map(|seed| Row(rows(DType::F64, &[4, 2], seed)));
        is_kernel(Recurrence { axis: 0, reverse }, &[a, b]);
    }
    assert!(!agree(Sort { axis: 0 }, &[Row(rows(DType::F64, &[40], 1))]), "forty elements are not sorted by selections");
}

/// Of vectors that are not sorted, too.
#[test]
fn searches_in_few_elements() {
    for right in [false, true] {
        for n in [1, 2, 3, 7, 16] {
            for (a, v) in [(DType::F64, DType::F64), (DType::F32, DType::I8), (DType::I32, DType::U8)] {
                let (a, v) = (rows(a, &[n], n as u64), || Row(rows(v, &[2, 3], 9)));
                is_kernel(SearchSorted { right }, &[Row(a.clone()), v()]);
                let sorted = Op::from(Sort { axis: 1 }).evaluate(&mut EvalCx::new(), &mut [a]).expect("sorted").remove(0);
                is_kernel(SearchSorted { right }, &[Row(sorted), v()]);
            }
        }
        let many = || Whole(numbers(DType::F64, &[9], 1).reshaped(&[STEPS * 9]));
        assert!(!agree(SearchSorted { right }, &[many(), Row(rows(DType::F64, &[2, 3], 9))]));
        // Each in a lane.
        is_kernel(SearchSorted { right }, &[many(), Row(rows(DType::F64, &[5], 9))]);
        agree(SearchSorted { right }, &[Row(rows(DType::F64, &[0], 1)), Row(rows(DType::F64, &[2], 9))]);
    }
}

#[test]
fn exponentials_of_few_elements() {
    for dtype in [DType::F64, DType::F32, DType::I32, DType::Bool] {
        for (row, axis) in [(&[3][..], 0), (&[2, 3], 0), (&[2, 3], 1), (&[1], 0), (&[11], 0)] {
            for x in [rows(dtype, row, 11), numbers(dtype, row, 12)] {
                is_kernel(LogSumExp { axes: vec![axis], keepdims: axis == 1 }, &[Row(x.clone())]);
                is_kernel(Softmax { axis }, &[Row(x.clone())]);
                is_kernel(LogSoftmax { axis }, &[Row(x)]);
            }
        }
    }
    is_kernel(LogSumExp { axes: vec![0, 2], keepdims: false }, &[Row(rows(DType::F64, &[2, 2, 2], 13))]);
    assert!(!agree(Softmax { axis: 0 }, &[Row(numbers(DType::F64, &[100], 1))]));
    // Rows without elements are left to the evaluator.
    agree(LogSumExp { axes: vec![1], keepdims: false }, &[Row(rows(DType::F64, &[2, 0], 1))]);
    agree(Sort { axis: 0 }, &[Row(rows(DType::F64, &[0], 1))]);
}

fn index(pattern: &str) -> Index {
    Index { pattern: pattern.into() }
}
fn index_write(mode: Write, pattern: &str) -> IndexWrite {
    IndexWrite { mode, pattern: pattern.into() }
}
fn int(i: i64) -> Array {
    Array::scalar(i)
}

#[test]
fn elements_by_a_known_index() {
    for dtype in [DType::F64, DType::F32, DType::I16, DType::Bool] {
        let x = || Row(rows(dtype, &[4, 3], 21));
        let y = |row: &[usize]| Row(rows(dtype, row, 22));
        is_kernel(index("i"), &[x(), Fixed(int(-1))]);
        is_kernel(Gather { axes: vec![0] }, &[x(), Fixed(Array::vector(&[3i64, 0, -4, 3]))]);
        for mode in [Write::Set, Write::Inc] {
            is_kernel(index_write(mode, "i"), &[x(), y(&[3]), Fixed(int(-2))]);
            is_kernel(index_write(mode, "i,i"), &[x(), y(&[]), Fixed(int(1)), Fixed(int(2))]);
            is_kernel(index_write(mode, "s:,:"), &[x(), y(&[3]), Fixed(int(2))]);
            is_kernel(GatherWrite { mode, axes: vec![0] }, &[x(), y(&[4, 3]), Fixed(Array::vector(&[3i64, 0, -4, 3]))]);
            is_kernel(
                GatherWrite { mode, axes: vec![0, 1] },
                &[x(), y(&[]), Fixed(Array::vector(&[3i64, 0, 3])), Fixed(Array::vector(&[2i64, 2, 2]))],
            );
        }
    }
}

#[test]
fn elements_by_an_index_that_the_step_computes() {
    for dtype in [DType::F64, DType::U8] {
        let x = || Row(rows(dtype, &[4, 3], 31));
        let y = |row: &[usize]| Row(rows(dtype, row, 32));
        for idx in [DType::I64, DType::I8, DType::U8] {
            let low = if idx == DType::U8 { 0 } else { -1 };
            let at = |row: &[usize], n: i64, seed| Row(integers(idx, row, [low * n, n], seed));
            is_kernel(index("i"), &[x(), at(&[], 4, 33)]);
            is_kernel(index("i,i"), &[x(), at(&[], 4, 33), at(&[], 3, 34)]);
            is_kernel(index(":,i"), &[x(), at(&[], 3, 34)]);
            is_kernel(index("i,s:"), &[x(), at(&[], 4, 34), Fixed(int(1))]);
            is_kernel(Gather { axes: vec![0] }, &[x(), at(&[2, 2], 4, 35)]);
            is_kernel(Gather { axes: vec![1] }, &[x(), at(&[2], 3, 36)]);
            is_kernel(Gather { axes: vec![0, 1] }, &[x(), at(&[2, 1], 4, 37), at(&[3], 3, 38)]);
            is_kernel(Gather { axes: vec![0, 1] }, &[x(), Fixed(Array::vector(&[1i64, -1])), at(&[2], 3, 38)]);
            for mode in [Write::Set, Write::Inc] {
                is_kernel(index_write(mode, "i"), &[x(), y(&[3]), at(&[], 4, 39)]);
                is_kernel(index_write(mode, ":,i"), &[x(), y(&[]), at(&[], 3, 40)]);
                is_kernel(GatherWrite { mode, axes: vec![0] }, &[x(), y(&[3, 3]), at(&[3], 4, 41)]);
                is_kernel(GatherWrite { mode, axes: vec![0, 1] }, &[x(), y(&[2]), at(&[2], 4, 42), at(&[2], 3, 43)]);
            }
        }
    }
    let deep = [
        Row(rows(DType::F64, &[2, 3, 2, 2], 44)),
        Row(integers(DType::I64, &[2], [0, 2], 45)),
        Row(integers(DType::I64, &[2], [-2, 2], 46)),
    ];
    is_kernel(Gather { axes: vec![0, 2] }, &deep);
    let many = [Row(rows(DType::F64, &[200], 47)), Row(integers(DType::I64, &[20], [0, 200], 48))];
    is_kernel(Gather { axes: vec![0] }, &many);
    let written = [Row(rows(DType::F64, &[200], 47)), Row(rows(DType::F64, &[20], 51)), Row(integers(DType::I64, &[20], [0, 200], 48))];
    assert!(!agree(GatherWrite { mode: Write::Set, axes: vec![0] }, &written), "too many places to look at");
    agree(index("s:"), &[Row(rows(DType::F64, &[5], 49)), Row(integers(DType::I64, &[], [0, 1], 50))]);
}

#[test]
fn small_matrices() {
    for n in 1..=4 {
        let a = || Row(matrices(&[n, n], false, 50 + n as u64));
        let s = || Row(matrices(&[n, n], true, 60 + n as u64));
        let b = |row: &[usize]| Row(numbers(DType::F64, row, 70 + n as u64));
        is_kernel(Inverse {}, &[a()]);
        is_kernel(SLogDet {}, &[a()]);
        is_kernel(Det {}, &[a()]);
        is_kernel(Cholesky {}, &[s()]);
        is_kernel(SolveSLogDet {}, &[a(), b(&[n])]);
        for kind in [MatrixKind::General, MatrixKind::Lower, MatrixKind::Upper, MatrixKind::Positive] {
            let a = || if kind == MatrixKind::Positive { s() } else { a() };
            is_kernel(Solve { kind }, &[a(), b(&[n])]);
            is_kernel(Solve { kind }, &[a(), b(&[n, 2])]);
        }
        // Pivots that change rows, of matrices without a large diagonal.
        let turned = || Row(numbers(DType::F64, &[2, n, n], 80 + n as u64));
        is_kernel(Inverse {}, &[turned()]);
        is_kernel(SLogDet {}, &[turned()]);
        is_kernel(Det {}, &[turned()]);
        is_kernel(Solve { kind: MatrixKind::General }, &[turned(), b(&[n, 1])]);
        is_kernel(Det {}, &[Row(rows(DType::F64, &[n, n], 90 + n as u64))]);
        is_kernel(SLogDet {}, &[Row(rows(DType::F32, &[n, n], 95 + n as u64))]);
    }
    is_kernel(Cholesky {}, &[Row(matrices(&[6, 6], true, 1).cast(DType::F32))]);
    is_kernel(
        Solve { kind: MatrixKind::Lower },
        &[Row(matrices(&[2, 3, 3], false, 2)), Whole(numbers(DType::F32, &[3, 2], 3).rows(0, 1).reshaped(&[3, 2]))],
    );
    assert!(!agree(Inverse {}, &[Row(matrices(&[9, 9], false, 4))]));
}

#[test]
fn small_products() {
    for dtype in [DType::F64, DType::F32, DType::I32, DType::Bool] {
        let x = |row: &[usize], seed| Row(rows(dtype, row, seed));
        for (a, b) in [
            (&[3][..], &[3][..]),
            (&[2, 3], &[3]),
            (&[3], &[3, 2]),
            (&[4, 2], &[2, 3]),
            (&[2, 2, 3], &[3, 2]),
            (&[2, 2, 3], &[2, 3, 2]),
            (&[2, 1, 2, 2], &[3, 2, 2]),
            (&[2, 3], &[2, 3, 2]),
            (&[2, 2, 3], &[3]),
        ] {
            is_kernel(MatMul {}, &[x(a, 101), x(b, 102)]);
        }
    }
}

/// Each element of such a product is one term and a zero: −0 becomes 0.
#[test]
fn products_of_columns_and_rows_are_elementwise() {
    for dtype in [DType::F64, DType::F32] {
        for [m, n] in [[1, 1], [12, 16], [16, 12], [1, 40], [40, 1], [20, 20]] {
            let reads = [(&[m, 1], 121), (&[1, n], 122)].map(|(row, seed)| Row(rows(dtype, row, seed)));
            agree(MatMul {}, &reads);
            let (f, args) = looped(Engine::Vm, &MatMul {}.into(), &reads).expect("a loop");
            call(&f, &args).expect("it runs");
            let found = &f.loops()[0].variants[0];
            assert!(found.reason.as_ref().is_none_or(|why| !why.contains("product")), "{found:?}");
        }
        agree(MatMul {}, &[Row(rows(dtype, &[0, 1], 1)), Row(rows(dtype, &[1, 3], 2))]);
    }
    agree(MatMul {}, &[Row(integers(DType::I32, &[12, 1], [-9, 9], 3)), Row(integers(DType::I32, &[1, 16], [-9, 9], 4))]);
    agree(MatMul {}, &[Row(rows(DType::F32, &[12, 1], 3)), Row(rows(DType::F64, &[1, 16], 4))]);
}

#[test]
fn integers_are_divided_and_raised() {
    for dtype in [DType::I64, DType::I8, DType::U32, DType::U64] {
        let low = if dtype.is_signed_int() { -9 } else { 0 };
        let x = || Row(integers(dtype, &[], [low * 7, 63], 111));
        for op in [ElemOp::FloorDiv, ElemOp::Mod, ElemOp::Fmod] {
            for y in [Row(integers(dtype, &[], [low, 9], 112)), Fixed(Array::full(dtype, &[], 7.0)), Fixed(Array::full(dtype, &[], 4.0))] {
                let found = agree(Op::Elem(op), &[x(), y]);
                assert!(found || dtype == DType::U64, "{op:?} of {dtype} is not one kernel");
            }
        }
        is_kernel(Op::Elem(ElemOp::Pow), &[x(), Fixed(Array::full(dtype, &[], 5.0))]);
        agree(Op::Elem(ElemOp::Pow), &[x(), Row(integers(dtype, &[], [low, 9], 112))]);
    }
}

/// The error of a loop whose step cannot do what it should in one of its steps, which is the same on every engine.
fn error(op: impl Into<Op>, reads: &[Read]) -> (String, String) {
    let op = op.into();
    let found = [Engine::Eval, Engine::Vm, Engine::Jit].map(|engine| {
        let (f, args) = looped(engine, &op, reads).unwrap_or_else(|e| panic!("{}: {}", op.name(), e.title));
        let before: Vec<Vec<u64>> = args.iter().map(bits).collect();
        let e = call(&f, &args).expect_err("an error");
        assert_eq!(args.iter().map(bits).collect::<Vec<_>>(), before, "arguments are not written");
        let kernel = f.loops().first().and_then(|l| l.variants.first().map(|v| v.engine.clone()));
        assert!(engine == Engine::Eval || kernel.is_some_and(|e| e == "vm" || e == "jit"), "{} is one kernel", op.name());
        (e.code.to_string(), format!("{} {:?}", e.title, e.notes))
    });
    assert!(found.iter().all(|e| *e == found[0]), "{found:?}");
    found[0].clone()
}

#[test]
fn what_fails_is_reported_by_the_law() {
    let x = || Row(numbers(DType::F64, &[3], 121));
    let mut idx = integers(DType::I64, &[], [0, 3], 122);
    idx.as_mut_slice::<i64>()[STEPS - 3] = 3;
    let e = error(index("i"), &[x(), Row(idx.clone())]);
    assert_eq!((e.0.as_str(), e.1.contains("index 3 is out of range for axis 0 with extent 3")), ("E0202", true), "{e:?}");
    assert_eq!(error(index_write(Write::Inc, "i"), &[x(), Row(numbers(DType::F64, &[], 1)), Row(idx.clone())]).0, "E0202");
    idx.as_mut_slice::<i64>()[STEPS - 3] = -4;
    assert_eq!(error(Gather { axes: vec![0] }, &[x(), Row(idx.clone())]).0, "E0202");
    let huge = Array::full(DType::U64, &[STEPS], 0.0);
    let mut huge = huge;
    huge.as_mut_slice::<u64>()[1] = u64::MAX;
    assert_eq!(error(index("i"), &[x(), Row(huge)]).0, "E0202");

    let mut a = matrices(&[2, 2], true, 123);
    a.as_mut_slice::<f64>()[8..12].copy_from_slice(&[1.0, 2.0, 2.0, 4.0]);
    let b = || Row(numbers(DType::F64, &[2], 124));
    assert_eq!(error(Inverse {}, &[Row(a.clone())]).0, "E0601");
    assert_eq!(error(Solve { kind: MatrixKind::General }, &[Row(a.clone()), b()]).0, "E0601");
    assert_eq!(error(Cholesky {}, &[Row(a.clone())]).0, "E0602");
    assert_eq!(error(Solve { kind: MatrixKind::Positive }, &[Row(a.clone()), b()]).0, "E0602");
    a.as_mut_slice::<f64>()[4] = 0.0;
    assert_eq!(error(Solve { kind: MatrixKind::Lower }, &[Row(a), b()]).0, "E0601");

    let mut ok = Array::full(DType::Bool, &[STEPS], 1.0);
    is_kernel(Assert { message: "all is well".into() }, &[x(), Row(ok.clone())]);
    ok.as_mut_slice::<bool>()[5] = false;
    assert!(error(Assert { message: "all is well".into() }, &[x(), Row(ok)]).1.contains("all is well"));
}

/// A loop that stops before the step that would fail does not fail, and one whose state is taken over by the loop begins again with it.
#[test]
fn steps_that_do_not_run_do_not_fail() {
    for engine in [Engine::Eval, Engine::Vm, Engine::Jit] {
        let (h0, x, limit) = (Var::float("h0", 0), Var::float("x", 1), input(Type::scalar(DType::I64)));
        let run = || -> Result<_, Box<Diagnostic>> {
            let mut step = LoopBuilder::new(LoopOptions { n_steps: Some(Var::int(10)), ..Default::default() })?;
            let h = step.state(&h0, &[-1], Some("h"))?.remove(0);
            let k = step.state(&Var::int(0), &[-1], Some("k"))?.remove(0);
            let read = Var::apply1(index("i"), &[x.clone(), k.clone()], Span::NONE)?;
            let (next, count) = (h.mul(2.0).add(&read), k.add(1));
            let stop = count.gt(limit.sub(1));
            step.finish(&[(Some(0), next), (Some(1), count)], &[], Some(&stop))
        };
        let outputs = run().unwrap_or_else(|e| panic!("{}", e.title)).outputs;
        let inputs = vec![h0.clone(), x.clone(), limit.clone()];
        let f = Function::new(FunctionSpec { inputs, outputs, engine: Some(engine), ..Default::default() }).expect("a function");
        let args = |limit: i64| [Array::scalar(0.5), Array::vector(&[1.0, 2.0, 3.0, 4.0]), int(limit)];
        for _ in 0..2 {
            let rows = call(&f, &args(4)).unwrap_or_else(|e| panic!("{engine:?}: {}", e.title));
            assert_eq!(rows[0].to_f64_vec(), [2.0, 6.0, 15.0, 34.0], "{engine:?}");
            assert_eq!(call(&f, &args(5)).expect_err("a fifth element").code, "E0202", "{engine:?}");
        }
    }
}

/// What only a branch that is not taken would find wrong is not wrong, and the loop stays a kernel; what the other finds wrong is reported.
#[test]
fn branches_that_are_not_taken_do_not_fail() {
    for engine in [Engine::Eval, Engine::Vm, Engine::Jit] {
        let (x, k) = (Var::float("x", 1), input(Type::new(DType::I64, [scan_core::types::Dim::fresh()])));
        let run = || -> Result<_, Box<Diagnostic>> {
            let mut step = LoopBuilder::new(LoopOptions::default())?;
            let k_t = step.sequence(&k, &[0], Some("k"))?.remove(0);
            let read = |at: &Var| Var::apply1(index("i"), &[x.clone(), at.clone()], Span::NONE);
            let (near, far) = (read(&k_t)?, read(&k_t.sub(10))?);
            let inner = Var::apply1(IfElse {}, &[Var::int(12).gt(&k_t), far.mul(&far), Var::number(-1.0)], Span::NONE)?;
            let out = Var::apply1(IfElse {}, &[Var::int(3).gt(&k_t), near, inner], Span::NONE)?;
            step.finish(&[(None, out)], &[], None)
        };
        let outputs = run().unwrap_or_else(|e| panic!("{}", e.title)).outputs;
        let spec = FunctionSpec { inputs: vec![x.clone(), k.clone()], outputs, engine: Some(engine), ..Default::default() };
        let f = Function::new(spec).expect("a function");
        let args = |k: &[i64]| [Array::vector(&[1.0, 2.0, 3.0]), Array::vector(k)];
        let places = args(&[2, 10, 0, 99, 11]);
        let rows = call(&f, &places).unwrap_or_else(|e| panic!("{engine:?}: {}", e.title));
        assert_eq!(rows[0].to_f64_vec(), [3.0, 1.0, 1.0, -1.0, 4.0], "{engine:?}");
        // The law evaluates more nodes.
        let few = EvalCx::new().within(25, |cx| f.call(cx, &places)).is_some();
        assert_eq!(few, engine != Engine::Eval, "{engine:?}");
        assert_eq!(call(&f, &args(&[2, 4])).expect_err("an index of -6").code, "E0202", "{engine:?}");
        assert!(engine == Engine::Eval || f.loops()[0].variants[0].engine != "eval", "{engine:?}");
    }
}

/// Where nothing is added up, a zero keeps its sign, outside of loops and in their steps; what is added up begins with a zero, also where a
/// product underflows.
#[test]
fn zeros_keep_their_signs() {
    let text = "fn f(a: f64[1, 1], b: f64[1, 1], x: f64[1], y: f64, n: i64) {
  %0 = matmul(a, b)
  %1 = neg(%0)
  %2 = mul(%1, 0.6:f64)
  %3 = sum_to(%2, y)
  %4 = sum_to(%2, x)
  %5 = reduce[kind=sum, axes=[0], keepdims=false](%2)
  %6 = mul(a, b)
  %7 = sum_to(%6, y)
  %8 = scan n_steps=n {
    state s: f64 reads=[] writes=[0] keep=all
    state t: f64[1] reads=[] writes=[0] keep=all
    const a = a
    const b = b
    const x = x
    const y = y
    step t
    %9 = matmul(a, b)
    %10 = cast[dtype=f64](t)
    %11 = mul(%10, 0.0:f64)
    %12 = add(%9, %11)
    %13 = neg(%12)
    %14 = sum_to(%13, y)
    %15 = sum_to(%13, x)
    next s = %14
    next t = %15
  }
  return %0, %2, %3, %4, %5, %7, %8.s, %8.t
}";
    let graph = Arc::new(parse(text).unwrap_or_else(|e| panic!("{}", e.title)).1);
    for (a, b) in [(-0.0, 1.0), (0.0, 1.0), (0.0, -3.0), (-2.0, 0.5), (1e-300, -1e-300), (1e-300, 1e-300)] {
        let args = [
            Array::new(&[1, 1], vec![a]),
            Array::new(&[1, 1], vec![b]),
            Array::new(&[1], vec![1.0]),
            Array::scalar(1.0),
            Array::scalar(3i64),
        ];
        let run = |engine| {
            let program = Program::new(graph.clone(), &Options::none(), engine).unwrap_or_else(|e| panic!("{}", e.title));
            let results = program.run(&mut EvalCx::new(), &|| args.to_vec()).unwrap_or_else(|e| panic!("{}", e.title));
            results.iter().map(|r| r.to_f64_vec().iter().map(|x| x.to_bits()).collect::<Vec<u64>>()).collect::<Vec<_>>()
        };
        let law = run(Engine::Eval);
        assert_eq!((run(Engine::Vm), run(Engine::Jit)), (law.clone(), law), "{a} · {b}");
    }
}
