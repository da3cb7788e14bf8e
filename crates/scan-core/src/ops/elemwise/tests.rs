use super::*;
use crate::ops::testing::{apply, build_error, check_vjp, eval_graph, run_error, sample, vjp_of};
use crate::types::DType::*;

fn elem(op: ElemOp, ins: &[Array]) -> Array {
    apply(Op::Elem(op), ins)
}

fn floats(op: ElemOp, ins: &[f64]) -> f64 {
    elem(op, &ins.iter().map(|&x| Array::scalar(x)).collect::<Vec<_>>()).as_slice::<f64>()[0]
}

/// The element of x that broadcasting puts at a position of the result.
fn at(x: &Array, idx: &[usize]) -> f64 {
    let own = &idx[idx.len() - x.rank()..];
    let k = x.shape().iter().zip(own).fold(0, |k, (&n, &i)| k * n + if n == 1 { 0 } else { i });
    x.as_slice::<f64>()[k]
}

#[test]
fn operands_broadcast_as_numpy_says() {
    let shapes: [(&[usize], &[usize], &[usize]); 8] = [
        (&[2, 3], &[2, 3], &[2, 3]),
        (&[2, 3], &[], &[2, 3]),
        (&[], &[4], &[4]),
        (&[2, 1], &[3], &[2, 3]),
        (&[3, 1, 2], &[4, 1], &[3, 4, 2]),
        (&[1, 1], &[1], &[1, 1]),
        (&[0, 3], &[1, 3], &[0, 3]),
        (&[1, 3], &[4, 0, 1], &[4, 0, 3]),
    ];
    for (a, b, expected) in shapes {
        let (a, b) = (sample(a, 1), sample(b, 2));
        let out = elem(ElemOp::Sub, &[a.clone(), b.clone()]);
        assert_eq!(out.shape(), expected);
        let third = elem(ElemOp::Clip, &[Array::full(F64, expected, 9.0), a.clone(), b.clone()]);
        let select = elem(ElemOp::Where, &[elem(ElemOp::Lt, &[a.clone(), b.clone()]), a.clone(), b.clone()]);
        for k in 0..out.len() {
            let mut rest = k;
            let mut idx: Vec<usize> = expected.iter().rev().map(|&n| (rest % n, rest /= n).0).collect();
            idx.reverse();
            assert_eq!(out.as_slice::<f64>()[k], at(&a, &idx) - at(&b, &idx), "{idx:?}");
            assert_eq!(third.as_slice::<f64>()[k], at(&b, &idx), "{idx:?}");
            assert_eq!(select.as_slice::<f64>()[k], at(&a, &idx).min(at(&b, &idx)), "{idx:?}");
        }
    }
}

#[test]
fn results_have_numpys_dtypes() {
    let rows: [(ElemOp, &[DType], DType); 20] = [
        (ElemOp::Add, &[Bool, Bool], Bool),
        (ElemOp::Add, &[I8, U8], I16),
        (ElemOp::Mul, &[I64, F32], F64),
        (ElemOp::Mul, &[I16, F32], F32),
        (ElemOp::Add, &[U64, I64], F64),
        (ElemOp::Div, &[I32, I32], F64),
        (ElemOp::Div, &[F32, F32], F32),
        (ElemOp::FloorDiv, &[Bool, Bool], I8),
        (ElemOp::Pow, &[Bool, I32], I32),
        (ElemOp::Exp, &[F32], F32),
        (ElemOp::Exp, &[I64], F64),
        (ElemOp::Sqrt, &[Bool], F64),
        (ElemOp::Floor, &[I16], I16),
        (ElemOp::Square, &[Bool], I8),
        (ElemOp::Lt, &[I8, F64], Bool),
        (ElemOp::Or, &[F32, I8], Bool),
        (ElemOp::BitAnd, &[Bool, U8], U8),
        (ElemOp::ShiftLeft, &[Bool, Bool], I8),
        (ElemOp::Where, &[F64, I8, U8], I16),
        (ElemOp::Where, &[I64, Bool, Bool], Bool),
    ];
    for (op, dtypes, expected) in rows {
        let ins: Vec<Array> = dtypes.iter().map(|&d| Array::full(d, &[2], 1.0)).collect();
        assert_eq!(elem(op, &ins).dtype(), expected, "{} of {dtypes:?}", op.name());
    }
}

#[test]
fn mixed_dtypes_meet_in_the_common_one() {
    let out = elem(ElemOp::Add, &[Array::vector(&[200u8, 255]), Array::vector(&[-1i8, 1])]);
    assert_eq!(out, Array::vector(&[199i16, 256]));
    let halves = elem(ElemOp::Div, &[Array::vector(&[1i64, -3]), Array::scalar(2u8)]);
    assert_eq!(halves, Array::vector(&[0.5, -1.5]));
    let cond = Array::vector(&[256i64, 0]);
    assert_eq!(elem(ElemOp::Where, &[cond, Array::scalar(1i8), Array::scalar(2i8)]), Array::vector(&[1i8, 2]));
    assert_eq!(elem(ElemOp::And, &[Array::vector(&[0.25f32, f32::NAN, 0.0]), Array::scalar(7u8)]), Array::vector(&[true, true, false]));
}

#[test]
fn bools_follow_numpy() {
    let (a, b) = (Array::vector(&[false, false, true, true]), Array::vector(&[false, true, false, true]));
    let table = [
        (ElemOp::Add, [false, true, true, true]),
        (ElemOp::Mul, [false, false, false, true]),
        (ElemOp::Maximum, [false, true, true, true]),
        (ElemOp::Lt, [false, true, false, false]),
        (ElemOp::Le, [true, true, false, true]),
        (ElemOp::Gt, [false, false, true, false]),
        (ElemOp::Ge, [true, false, true, true]),
        (ElemOp::Ne, [false, true, true, false]),
        (ElemOp::BitXor, [false, true, true, false]),
    ];
    for (op, expected) in table {
        assert_eq!(elem(op, &[a.clone(), b.clone()]), Array::vector(&expected), "{}", op.name());
    }
    assert_eq!(elem(ElemOp::Invert, &[b]), Array::vector(&[true, false, true, false]));
}

#[test]
fn refused_dtypes_and_counts_are_errors() {
    let (mask, x) = (Array::scalar(true), Array::scalar(1.5));
    assert_eq!(build_error(Op::Elem(ElemOp::Sub), &[mask.clone(), mask.clone()]).code, "E0230");
    assert_eq!(build_error(Op::Elem(ElemOp::Neg), std::slice::from_ref(&mask)).code, "E0230");
    assert_eq!(build_error(Op::Elem(ElemOp::BitAnd), &[mask.clone(), x.clone()]).code, "E0230");
    assert_eq!(build_error(Op::Elem(ElemOp::Add), std::slice::from_ref(&x)).code, "E0231");
    assert_eq!(build_error(Op::from(Cast { dtype: F32 }), &[]).code, "E0231");
    let (two, three) = (Array::zeros(F64, &[2]), Array::zeros(F64, &[3]));
    assert_eq!(build_error(Op::Elem(ElemOp::Add), &[two.clone(), three.clone()]).code, "E0201");
    assert_eq!(run_error(Op::Elem(ElemOp::Add), &[two, three]).code, "E0201");
}

#[test]
fn special_values_are_those_of_ieee_and_python() {
    use ElemOp::*;
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let rows: [(ElemOp, &[f64], f64); 40] = [
        (Maximum, &[nan, 1.0], nan),
        (Maximum, &[1.0, nan], nan),
        (Minimum, &[nan, 1.0], nan),
        (Minimum, &[1.0, nan], nan),
        (Clip, &[nan, 0.0, 1.0], nan),
        (Clip, &[5.0, 3.0, 1.0], 1.0),
        (Relu, &[nan], nan),
        (Sign, &[nan], nan),
        (Sign, &[-0.0], 0.0),
        (Mod, &[-1.0, inf], inf),
        (Mod, &[5.0, 0.0], nan),
        (Mod, &[-6.0, 3.0], 0.0),
        (Mod, &[6.0, -3.0], -0.0),
        (FloorDiv, &[5.0, 0.0], inf),
        (FloorDiv, &[-5.0, 0.0], -inf),
        (FloorDiv, &[-1.0, inf], -1.0),
        (FloorDiv, &[0.0, -2.0], -0.0),
        (FloorDiv, &[1.0, 0.1], 9.0),
        (Fmod, &[-6.0, 4.0], -2.0),
        (Round, &[2.5], 2.0),
        (Round, &[-3.5], -4.0),
        (Pow, &[0.0, 0.0], 1.0),
        (Pow, &[-8.0, 1.0 / 3.0], nan),
        (XLogY, &[0.0, 0.0], 0.0),
        (XLogY, &[0.0, nan], nan),
        (LogAddExp, &[-inf, -inf], -inf),
        (LogAddExp, &[inf, inf], inf),
        (LogAddExp, &[-inf, 2.0], 2.0),
        (Sigmoid, &[1000.0], 1.0),
        (Sigmoid, &[-1000.0], 0.0),
        (Softplus, &[1000.0], 1000.0),
        (LogSigmoid, &[-800.0], -800.0),
        (ErfInv, &[1.0], inf),
        (ErfInv, &[-1.5], nan),
        (GammaLn, &[0.0], inf),
        (Digamma, &[0.0], -inf),
        (Digamma, &[-2.0], nan),
        (Digamma, &[inf], inf),
        (Trigamma, &[-1.0], inf),
        (Hypot, &[1e300, 1e300], 1e300 * std::f64::consts::SQRT_2),
    ];
    for (op, ins, expected) in rows {
        let got = floats(op, ins);
        assert!(
            got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan()),
            "{}{ins:?} = {got}, expected {expected}",
            op.name()
        );
    }
}

/// The cotangents of scalars, given 1.
fn slopes(op: ElemOp, ins: &[f64]) -> Vec<f64> {
    let ins: Vec<Array> = ins.iter().map(|&x| Array::scalar(x)).collect();
    let (mut g, params) = crate::ops::testing::graph_of(&ins, true);
    let y = g.emit(Op::Elem(op), &params);
    let one = g.number(F64, 1.0);
    let grads = vjp_of(&mut g, y, one, &params).expect("has a gradient");
    grads.iter().map(|v| v.map_or(0.0, |v| eval_graph(&g, &ins, &[v]).expect("evaluates")[0].as_slice::<f64>()[0])).collect()
}

#[test]
fn gradients_at_the_edges_are_as_promised() {
    use ElemOp::*;
    assert_eq!(slopes(Maximum, &[2.0, 2.0]), [0.5, 0.5]);
    assert_eq!(slopes(Minimum, &[2.0, 3.0]), [1.0, 0.0]);
    assert_eq!(slopes(Abs, &[0.0]), [0.0]);
    assert_eq!(slopes(Pow, &[0.0, 0.0]), [0.0, 0.0]);
    assert_eq!(slopes(Pow, &[0.0, 1.0])[0], 1.0);
    assert_eq!(slopes(Pow, &[-2.0, 3.0]), [12.0, 0.0]);
    assert_eq!(slopes(Hypot, &[0.0, 0.0]), [0.0, 0.0]);
    assert_eq!(slopes(Clip, &[1.0, 0.0, 1.0]), [0.5, 0.0, 0.5]);
    assert_eq!(slopes(Clip, &[-1.0, 2.0, 0.0]), [0.0, 0.0, 1.0]);
    assert_eq!(slopes(LogAddExp, &[f64::NEG_INFINITY, f64::NEG_INFINITY]), [0.5, 0.5]);
    assert_eq!(slopes(XLogY, &[0.0, 0.0])[1], 0.0);
    assert_eq!(slopes(Floor, &[1.5]), [0.0]);
}

#[test]
fn where_keeps_foreign_infinities_out() {
    let x = Array::vector(&[-1.0, 0.0, 2.0]);
    let (mut g, p) = crate::ops::testing::graph_of(std::slice::from_ref(&x), true);
    let zero = g.number(F64, 0.0);
    let positive = g.emit(Op::Elem(ElemOp::Gt), &[p[0], zero]);
    let log = g.log(p[0]);
    let y = g.select(positive, log, zero);
    let ct = g.ones_like(y);
    let grad = vjp_of(&mut g, y, ct, &p).expect("has a gradient")[0].expect("is connected");
    let got = eval_graph(&g, &[x], &[grad]).expect("evaluates").remove(0).to_f64_vec();
    assert_eq!((got[0], got[2]), (-0.0, 0.5));
}

#[test]
fn cotangents_have_the_dtype_and_shape_of_their_inputs() {
    let ins = [Array::full(F32, &[3, 1], 2.0), sample(&[2], 1), Array::scalar(3i64)];
    for known in [true, false] {
        let (mut g, p) = crate::ops::testing::graph_of(&ins, known);
        let product = g.mul(p[0], p[1]);
        let y = g.mul(product, p[2]);
        let ct = g.ones_like(y);
        let grads = vjp_of(&mut g, y, ct, &p).expect("has a gradient");
        assert_eq!(grads[2], None);
        let got = eval_graph(&g, &ins, &[grads[0].expect("float"), grads[1].expect("float")]).expect("evaluates");
        assert_eq!((got[0].dtype(), got[0].shape()), (F32, &[3, 1][..]));
        assert_eq!((got[1].dtype(), got[1].shape(), got[1].as_slice::<f64>()[0]), (F64, &[2][..], 18.0));
    }
    for op in [ElemOp::Mul, ElemOp::Atan2, ElemOp::Maximum] {
        check_vjp(|g, v| g.emit(Op::Elem(op), v), &[sample(&[3, 1], 1), sample(&[2], 2)]);
    }
}

#[test]
fn unwritten_derivatives_say_so() {
    let (mut g, p) = crate::ops::testing::graph_of(&[Array::scalar(1.5)], true);
    let y = g.emit(Op::Elem(ElemOp::Tetragamma), &p);
    let ct = g.ones_like(y);
    assert_eq!(vjp_of(&mut g, y, ct, &p).expect_err("not written").code, "E0403");
}

#[test]
fn casts_convert_and_their_cotangents_return() {
    let x = Array::vector(&[1.9, -1.9, f64::NAN, 300.0]);
    assert_eq!(apply(Cast { dtype: I8 }, std::slice::from_ref(&x)), Array::vector(&[1i8, -1, 0, 127]));
    assert_eq!(apply(Cast { dtype: Bool }, &[Array::vector(&[0.0, -0.0, 0.5])]), Array::vector(&[false, false, true]));
    let (mut g, p) = crate::ops::testing::graph_of(std::slice::from_ref(&x), true);
    for (to, flows) in [(F32, true), (I64, false), (Bool, false)] {
        let y = g.cast(p[0], to);
        let ct = g.ones_like(y);
        let grad = vjp_of(&mut g, y, ct, &p).expect("has a rule")[0];
        assert_eq!(grad.map(|v| g.ty(v).dtype), flows.then_some(F64));
    }
}

#[test]
fn extents_stay_symbolic_through_arithmetic() {
    let mut g = Graph::new();
    let n = Dim::fresh();
    let x = g.param(Type::new(F64, [n.clone()]), None);
    let d = g.dim(x, 0);
    let (two, huge) = (g.int(2), g.int(i64::MAX));
    let doubled = g.mul(two, d);
    let more = g.add(doubled, two);
    let back = g.sub(more, doubled);
    let least = g.minimum(more, doubled);
    let overflow = g.mul(d, huge);
    let square = g.mul(d, d);
    let dim = |v| g.arg(v).as_dim();
    assert_eq!(dim(more), n.scale(2).add(&Dim::known(2)));
    assert_eq!(dim(back), Dim::known(2));
    assert_eq!(dim(least), n.scale(2));
    assert_eq!((g.arg(overflow).dim, g.arg(square).dim), (None, None));
}
