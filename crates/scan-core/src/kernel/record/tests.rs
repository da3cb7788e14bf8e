//! Every row on every dtype: what is recorded, run by a direct interpreter, gives the bits of the evaluator.

use super::*;
use crate::ir;
use crate::ir::EvalCx;
use crate::kernel::interp;
use crate::scalar::ROWS;
use crate::types::dtype::DTYPES;

fn f(dtype: DType, bits: u64) -> f64 {
    if dtype == DType::F32 { f32::from_bits(bits as u32) as f64 } else { f64::from_bits(bits) }
}

/// The values of a kernel without carries in one lane of one step, given what its operands hold.
fn interpret(k: &Kernel, mems: &[u64]) -> Vec<u64> {
    let mut v: Vec<u64> = vec![];
    for inst in k.body.iter() {
        let uses = inst.op.uses();
        let args: Vec<u64> = uses.iter().map(|r| v[r.0 as usize]).collect();
        let value = match inst.op {
            Op::Load(m) => mems[m.0 as usize],
            _ => interp::compute(inst, uses.first().map_or(inst.dtype, |&r| k.dtype(r)), &args),
        };
        assert_eq!(value & !mask(inst.dtype), 0, "{inst:?} is not zero-extended");
        v.push(value);
    }
    v
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Bits of elements at which rows are tried.
fn points(dtype: DType, few: bool) -> Vec<u64> {
    let tiny = [f64::MIN_POSITIVE, 5e-324, 1e-310, f32::MIN_POSITIVE as f64, 1e-45, 1e-40];
    let plain = [0.0, -0.0, 1.0, -1.0, 2.0, -3.5, 0.5, 1.5, 2.5, 7.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let more =
        [0.1, -0.1, 31.0, 63.0, 64.0, 100.0, -128.0, 1e5, -1e5, 1e9, 1e18, 1e30, -1e30, 3e38, 1e300, -1e300, f64::MAX, -200.0, 750.0];
    let numbers = plain.iter().chain(if few { &[][..] } else { &more }).chain(if few { &tiny[..1] } else { &tiny });
    let mut out: Vec<u64> = numbers.map(|&x| Array::scalar(x).cast(dtype).bits()[0] & mask(dtype)).collect();
    let mut state = 20261121 + dtype as u64;
    for _ in 0..if few { 4 } else { 24 } {
        let bits = random(&mut state) & mask(dtype);
        out.push(if dtype == DType::Bool { bits & 1 } else { bits });
        if dtype.is_float() {
            let x = (random(&mut state) as i64 as f64 / i64::MAX as f64) * 20.0;
            out.push(Array::scalar(x).cast(dtype).bits()[0]);
        }
    }
    if dtype.is_int() {
        out.extend([0, 1, mask(dtype), mask(dtype) >> 1, (mask(dtype) >> 1) + 1]);
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// Every choice of one point per input.
fn choices(dtype: DType, arity: usize) -> Vec<Vec<u64>> {
    let points = points(dtype, arity > 2);
    (0..arity).fold(vec![vec![]], |all, _| {
        all.iter().flat_map(|head: &Vec<u64>| points.iter().map(move |&p| head.iter().copied().chain([p]).collect())).collect()
    })
}

fn column(dtype: DType, elements: impl Iterator<Item = u64>) -> Array {
    match dtype {
        DType::F32 => Array::vector(&elements.map(|b| f32::from_bits(b as u32)).collect::<Vec<_>>()),
        DType::F64 => Array::vector(&elements.map(f64::from_bits).collect::<Vec<_>>()),
        _ => Array::vector(&elements.collect::<Vec<u64>>()).cast(dtype),
    }
}

/// Compares a row on inputs of these dtypes with the evaluator; false where it is not expressible.
fn agrees(op: ElemOp, dtype: DType) -> bool {
    let mut b = Builder::new();
    let mems: Vec<MemId> = (0..op.arity()).map(|_| b.mem(dtype, Lane::Unit)).collect();
    let ins: Vec<Reg> = mems.iter().map(|&m| b.load(m)).collect();
    let Some(out) = b.apply(op, &ins) else { return false };
    let kernel = b.finish();
    let test_points = op.row().tests.iter().map(|p| p.iter().map(|&x| Array::scalar(x).cast(dtype).bits()[0] & mask(dtype)).collect());
    let rows: Vec<Vec<u64>> = choices(dtype, op.arity()).into_iter().chain(test_points).collect();
    let mut arrays: Vec<Array> = (0..op.arity()).map(|i| column(dtype, rows.iter().map(|r| r[i]))).collect();
    let expected = ir::Op::Elem(op).def().eval(&mut EvalCx::new(), &mut arrays).expect("evaluates").remove(0);
    let result = kernel.dtype(out);
    assert_eq!(result, expected.dtype(), "{} of {dtype}", op.name());
    for (row, bits) in rows.iter().zip(expected.bits()) {
        let (got, expected) = (interpret(&kernel, row)[out.0 as usize], bits & mask(result));
        let nan = result.is_float() && f(result, got).is_nan() && f(result, expected).is_nan();
        assert!(got == expected || nan, "{} of {dtype} {row:x?}: {got:x}, the evaluator says {expected:x}", op.name());
    }
    true
}

/// True where a row on integers is left to the evaluator.
fn is_left(op: ElemOp, dtype: DType) -> bool {
    dtype.is_int() && op == ElemOp::Pow
}

#[test]
fn rows_are_recorded_as_the_evaluator_computes_them() {
    for row in ROWS {
        for (dtype, ..) in DTYPES {
            let Some(operand) = row.operand(vec![dtype; row.arity()]) else { continue };
            assert_eq!(agrees(row.op, dtype), !is_left(row.op, operand), "{} of {dtype}", row.name);
        }
    }
}

#[test]
fn equal_values_are_made_once() {
    let mut b = Builder::new();
    let m = b.mem(DType::F64, Lane::Unit);
    let x = b.load(m);
    assert_eq!(b.load(m), x);
    let e = b.apply(ElemOp::Sigmoid, &[x]);
    let n = b.kernel().body.len();
    assert_eq!((b.apply(ElemOp::Sigmoid, &[x]), b.kernel().body.len()), (e, n));
    let k = b.integer(DType::I32, -1);
    assert_eq!(b.kernel().body[k].op, Op::Const(0xffff_ffff));
    let half = b.constant(DType::F32, 0.5);
    let (wide, narrow) = (b.convert(half, DType::F64), b.convert(half, DType::I8));
    assert_eq!((&b.kernel().body[wide].op, &b.kernel().body[narrow].op), (&Op::Const(0.5f64.to_bits()), &Op::Const(0)));
    let (a, c) = (b.cmp(Cmp::Eq, x, x), b.truth(true));
    let other = b.un(Un::Not, a);
    assert_eq!((b.un(Un::Not, other), b.select(c, half, half)), (a, half));
}

#[test]
fn zeros_and_ones_that_change_no_bit_are_left_out() {
    for dtype in [DType::F32, DType::F64] {
        let mut b = Builder::new();
        let m = b.mem(dtype, Lane::Unit);
        let x = b.load(m);
        let [zero, minus, one] = [0.0, -0.0, 1.0].map(|v| b.constant(dtype, v));
        // x may be −0, and −0 + 0 is 0; that sum is never −0 again.
        let sum = b.bin(Bin::Add, zero, x);
        assert_ne!(sum, x);
        assert_eq!([b.bin(Bin::Add, sum, zero), b.bin(Bin::Add, zero, sum)], [sum; 2]);
        assert_ne!(b.bin(Bin::Add, minus, x), x, "of which a signalling NaN would be seen");
        assert_eq!([b.bin(Bin::Sub, x, zero), b.bin(Bin::Mul, x, one), b.bin(Bin::Mul, one, x), b.bin(Bin::Div, x, one)], [x; 4]);
        // A product may be rounded to −0, a square not.
        let (product, square) = (b.bin(Bin::Mul, x, sum), b.bin(Bin::Mul, x, x));
        assert_ne!(b.bin(Bin::Add, product, zero), product);
        assert_eq!(b.bin(Bin::Add, square, zero), square);
        let positive = b.cmp(Cmp::Lt, zero, x);
        let (either, doubtful) = (b.select(positive, sum, one), b.select(positive, sum, x));
        assert_eq!(b.bin(Bin::Add, either, zero), either);
        assert_ne!(b.bin(Bin::Add, doubtful, zero), doubtful);
        assert_ne!(b.bin(Bin::Sub, zero, x), x);
        let fused = b.fma(x, sum, zero);
        assert_ne!(b.bin(Bin::Add, fused, zero), fused);
    }
}

#[test]
fn memory_and_carries_stand_where_they_were_asked_for() {
    let mut b = Builder::new();
    let (state, out) = (b.mem(DType::F64, Lane::Uniform), b.mem(DType::F64, Lane::Uniform));
    let (carry, h) = b.carry(state);
    assert_eq!(b.kernel().carries[carry].next, h);
    let one = b.constant(DType::F64, 1.0);
    let next = b.apply(ElemOp::Add, &[h, one]).expect("floats add");
    let step = b.step();
    let last = b.integer(DType::I64, 9);
    let stop = b.cmp(Cmp::Le, last, step);
    b.set_next(carry, next);
    b.store(out, next);
    b.stop(stop);
    let kernel = b.finish();
    assert_eq!((kernel.carries[carry].clone(), kernel.stores.len(), kernel.stop), (Carry { mem: state, next }, 1, Some(stop)));
    assert!(kernel.varying().iter().all(|v| !v));
}

/// Instructions that a row takes in a dtype, and how many of them cost nothing but a change of registers. Constants and the load
/// are not counted.
fn count(name: &str, dtype: DType) -> (usize, usize) {
    let mut b = Builder::new();
    let mem = b.mem(dtype, Lane::Unit);
    let x = b.load(mem);
    b.apply(ElemOp::parse(name).expect("a row"), &[x]).expect("is expressible");
    let body = b.finish().body;
    let counted = body.iter().filter(|i| !matches!(i.op, Op::Const(_) | Op::Load(_)));
    (counted.clone().count(), counted.filter(|i| matches!(i.op, Op::Bits(_))).count())
}

#[test]
fn elementary_functions_are_short() {
    let most = [
        ("exp", 30, 24),
        ("exp2", 29, 23),
        ("expm1", 37, 31),
        ("log", 39, 35),
        ("log2", 50, 46),
        ("log10", 52, 48),
        ("log1p", 49, 45),
        ("tanh", 45, 39),
        ("sigmoid", 37, 31),
        ("softplus", 59, 49),
        ("sin", 61, 58),
        ("cos", 59, 56),
    ];
    for (name, wide, narrow) in most {
        let (f64s, f32s) = (count(name, DType::F64), count(name, DType::F32));
        println!("{name}: f64 {} of which {} Bits, f32 {} of which {}", f64s.0, f64s.1, f32s.0, f32s.1);
        // Without fma each counts twice.
        assert!(!lanes::fused() || f64s.0 <= wide && f32s.0 <= narrow, "{name}: {} in f64, {} in f32", f64s.0, f32s.0);
    }
}

#[test]
fn what_is_read_of_a_table_is_no_constant() {
    let mut b = Builder::new();
    let table = b.table(DType::F64, 9, Some(0));
    let number = b.integer(DType::I64, 3);
    let read = b.gather(table, number);
    assert_eq!((b.known(read), b.known(number)), (None, Some(3)));
    assert_eq!(b.gather(table, number), read);
}
