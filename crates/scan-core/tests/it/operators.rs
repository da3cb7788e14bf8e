//! Operators and methods on expressions: values beside plain Rust, dtypes of numbers, errors that are kept until an expression ends.

use scan_core::prelude::*;

fn value(x: &Var) -> Vec<f64> {
    x.eval().unwrap_or_else(|e| panic!("{e}")).to_f64_vec()
}

fn numbers(xs: &[f64]) -> Var {
    constant(Array::vector(xs))
}

/// An expression that failed, and the line of the operator.
fn broken() -> (Var, u32) {
    (numbers(&[1.0, 2.0]) + numbers(&[1.0, 2.0, 3.0]), line!())
}

/// The first line that a diagnostic shows, in this file.
fn line_of(error: &Diagnostic) -> u32 {
    let place = error.labels[0].span.place().expect("a line");
    assert!(place.file.ends_with("operators.rs"), "{}", place.file);
    place.line
}

#[test]
fn operators_take_expressions_and_numbers_on_both_sides() {
    let (a, b) = (3.0, 0.5);
    let (x, y) = (Var::number(a), Var::number(b));
    let made = [
        (&x + &y, a + b),
        (&x + y.clone(), a + b),
        (x.clone() + &y, a + b),
        (x.clone() + y.clone(), a + b),
        (&x - 2.0, a - 2.0),
        (x.clone() - 2, a - 2.0),
        (2.0 - &x, 2.0 - a),
        (2 - x.clone(), 2.0 - a),
        (&x * &y, a * b),
        (2.0 * &x, 2.0 * a),
        (2.0 * x.clone(), 2.0 * a),
        (3 * &x, 3.0 * a),
        (&x / &y, a / b),
        (1.0 / &x, 1.0 / a),
        (1 / x.clone(), 1.0 / a),
        (-&x, -a),
        (-x.clone(), -a),
        (&y * &x * (1.0 - &x), b * a * (1.0 - a)),
        (-(&x - 1.0) * 2.0 + &y / 4, -(a - 1.0) * 2.0 + b / 4.0),
    ];
    for (made, expected) in made {
        assert_eq!(value(&made), [expected], "{made:?}");
    }
    let mut sum = x.clone();
    sum += &y;
    sum -= 1.0;
    sum *= 2;
    sum /= y;
    assert_eq!(value(&sum), [(a + b - 1.0) * 2.0 / b]);
}

#[test]
fn truth_values_combine() {
    let x = numbers(&[-1.0, 0.0, 1.0, 2.0]);
    let within = x.ge(0.0) & x.lt(2.0);
    assert_eq!(value(&within), [0.0, 1.0, 1.0, 0.0]);
    assert_eq!(value(&!&within), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(value(&(x.eq(-1.0) | x.ne(2.0))), [1.0, 1.0, 1.0, 0.0]);
    assert_eq!(value(&(x.le(0.0) | x.gt(1.0))), [1.0, 1.0, 0.0, 1.0]);
    assert_eq!(value(&within.select(&x, 9.0)), [9.0, 0.0, 1.0, 9.0]);
    assert_eq!(value(&x.gt(0).select(1, 0.5)), [0.5, 0.5, 1.0, 1.0]);
}

#[test]
fn methods_are_those_of_numbers() {
    let xs = [-1.5, -0.25, 0.75, 2.0];
    let x = numbers(&xs);
    let unary: [(Var, fn(f64) -> f64); 13] = [
        (x.abs(), f64::abs),
        (x.exp(), f64::exp),
        (x.exp_m1(), f64::exp_m1),
        (x.square().log(), |x| (x * x).ln()),
        (x.square().log1p(), |x| (x * x).ln_1p()),
        (x.sin(), f64::sin),
        (x.cos(), f64::cos),
        (x.tanh(), f64::tanh),
        (x.abs().sqrt(), |x| x.abs().sqrt()),
        (x.sigmoid(), |x| 1.0 / (1.0 + (-x).exp())),
        (x.softplus(), |x| x.exp().ln_1p()),
        (x.floor(), f64::floor),
        (x.pow(3), |x| x * x * x),
    ];
    for (made, f) in unary {
        for (got, x) in value(&made).into_iter().zip(xs) {
            assert!((got - f(x)).abs() <= 4e-16 * f(x).abs().max(1.0), "{made:?} at {x}: {got}, not {}", f(x));
        }
    }
    assert_eq!(value(&x.maximum(0.5)), [0.5, 0.5, 0.75, 2.0]);
    assert_eq!(value(&x.minimum(0)), [-1.5, -0.25, 0.0, 0.0]);
    assert_eq!(value(&x.clip(-1.0, 1)), [-1.0, -0.25, 0.75, 1.0]);
    assert_eq!(value(&Var::number(2.0).pow(0.5)), [2f64.sqrt()]);
}

#[test]
fn reductions_and_shapes() {
    let x = constant(Array::new(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let made = [
        (x.sum(), vec![21.0]),
        (x.sum_axis(0), vec![5.0, 7.0, 9.0]),
        (x.sum_axis(-1), vec![6.0, 15.0]),
        (x.mean(), vec![3.5]),
        (x.mean_axis(0), vec![2.5, 3.5, 4.5]),
        (x.max(), vec![6.0]),
        (x.min_axis(1), vec![1.0, 4.0]),
        (x.transpose(), vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]),
        (x.reshape(&[-1]), vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        (x.row(1), vec![4.0, 5.0, 6.0]),
        (x.row(-2).row(Var::int(2)), vec![3.0]),
        (x.rows(1..), vec![4.0, 5.0, 6.0]),
        (x.rows(..=0), vec![1.0, 2.0, 3.0]),
        (x.row(0).rows(-2..), vec![2.0, 3.0]),
        (x.row(0).rows(..=-1), vec![1.0, 2.0, 3.0]),
        (x.take(&constant(Array::vector(&[1i64]))), vec![4.0, 5.0, 6.0]),
        (x.set_row(0, 0.0), vec![0.0, 0.0, 0.0, 4.0, 5.0, 6.0]),
        (x.matmul(&numbers(&[1.0, 0.0, -1.0])), vec![-2.0, -2.0]),
        (x.dot(&Var::number(2.0)).row(0), vec![2.0, 4.0, 6.0]),
        (stack(&[&x.row(1), &x.row(0)]), vec![4.0, 5.0, 6.0, 1.0, 2.0, 3.0]),
        (concat(&[&x, &x], -1).row(0), vec![1.0, 2.0, 3.0, 1.0, 2.0, 3.0]),
        (x.cumsum(1).row(0), vec![1.0, 3.0, 6.0]),
        (x.flip(0).row(0), vec![4.0, 5.0, 6.0]),
        (x.dim(1), vec![3.0]),
        (x.argmax(1), vec![2.0, 2.0]),
        (x.expand(1).squeeze(1).row(0), vec![1.0, 2.0, 3.0]),
        (x.softmax(1).sum(), vec![2.0]),
    ];
    for (at, (made, expected)) in made.iter().enumerate() {
        let got = value(made);
        assert!(got.len() == expected.len() && got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{at}: {made:?}: {got:?}");
    }
    assert_eq!((x.row(0).expand(-1).eval().unwrap().shape(), x.row(0).expand(0).eval().unwrap().shape()), (&[3, 1][..], &[1, 3][..]));
    let half = numbers(&[1.0]).cast(DType::F32);
    assert_eq!(half.mean().ty().dtype, DType::F32);
}

/// The dtype of a number is that of what it meets.
#[test]
fn numbers_take_the_dtype_of_what_they_meet() {
    let of = |dtype: DType| Var::input(Type::scalar(dtype), Some("x"), Span::NONE);
    let dtype = |x: Var| x.ok().unwrap_or_else(|e| panic!("{e}")).ty().dtype;
    assert_eq!(dtype(of(DType::F32) * 2.0), DType::F32);
    assert_eq!(dtype(0.1 + of(DType::F32)), DType::F32);
    assert_eq!(dtype(of(DType::F32) + 1), DType::F32);
    assert_eq!(dtype(of(DType::I8) + 1), DType::I8);
    assert_eq!(dtype(of(DType::I64) * 0.5), DType::F64);
    assert_eq!(dtype(of(DType::F32).maximum(0.0)), DType::F32);
    assert_eq!(dtype(of(DType::F32).pow(2)), DType::F32);
    assert_eq!(dtype(of(DType::Bool).select(0.0, of(DType::F32))), DType::F32);
    let error = (of(DType::I8) + 300).ok().unwrap_err();
    assert_eq!((error.code, error.title.as_str(), line_of(&error)), ("E0807", "300 does not fit into int8", line!() - 1));
    assert_eq!((of(DType::U8) - -1).ok().unwrap_err().code, "E0807");
}

#[test]
fn the_first_error_is_kept_with_its_line() {
    let (first, line) = broken();
    let second = numbers(&[1.0]).matmul(&Var::number(1.0));
    for x in [
        &first * 2.0,
        1.0 - first.exp(),
        &first + &second,
        first.matmul(&first).sum(),
        first.row(0).transpose().cast(DType::F32),
        first.sum_axis(7),
        first.mean_axis(7),
        first.mean(),
        stack(&[&Var::number(1.0), &first]),
        concat(&[&first, &second], 3),
        numbers(&[1.0]).gt(0.0).select(&first, 0.0),
        first.pow(-1),
        first.rows(1..2).take(&second),
        first.clip(&second, 1.0),
        Var::number(1.0).set_row(0, &first),
    ] {
        let error = x.ok().unwrap_err();
        assert_eq!((error.code, line_of(&error)), ("E0201", line));
    }
    assert_eq!(first.failure().map(|e| e.code), Some("E0201"));
    assert!(Var::number(1.0).failure().is_none());
    let at = line!() + 1;
    assert_eq!(numbers(&[1.0]).sum_axis(1).failure().map(|e| (e.code, line_of(e))), Some(("E0221", at)));
    assert_eq!(numbers(&[1.0]).expand(-3).failure().map(|e| e.code), Some("E0221"));
    assert_eq!(format!("{first:?}"), "an expression that failed: float64");
}

/// Whatever ends an expression reports what went wrong in it.
#[test]
fn every_end_of_an_expression_reports_the_error() {
    let (bad, line) = broken();
    let (x, w) = (scalar("x"), Var::new_shared(Array::scalar(1.0), "w"));
    let cost = x.square();
    let spec = FunctionSpec::default;
    let known = |known_grads| GradOptions { known_grads, ..GradOptions::default() };
    let builder = || LoopBuilder::new(LoopOptions { n_steps: Some(Var::int(3)), ..LoopOptions::default() }).unwrap();
    let given = |give: fn(&mut LoopBuilder, &Var)| {
        let mut b = builder();
        give(&mut b, &bad);
        b.finish(&[(None, cost.clone())], &[], None).err()
    };
    let ends = [
        bad.eval().err(),
        Function::new(FunctionSpec { outputs: vec![bad.clone()], ..spec() }).err(),
        Function::new(FunctionSpec { inputs: vec![bad.clone()], ..spec() }).err(),
        Function::new(FunctionSpec { updates: vec![(w.clone(), bad.clone())], ..spec() }).err(),
        Function::new(FunctionSpec { updates: vec![(bad.clone(), cost.clone())], ..spec() }).err(),
        Function::new(FunctionSpec { inputs: vec![x.clone()], givens: vec![(x.clone(), bad.clone())], ..spec() }).err(),
        vjp(&[bad.clone()], &[Var::number(1.0)], &[x.clone()], &GradOptions::default()).err(),
        vjp(&[cost.clone()], &[bad.clone()], &[x.clone()], &GradOptions::default()).err(),
        vjp(&[cost.clone()], &[Var::number(1.0)], &[bad.clone()], &GradOptions::default()).err(),
        vjp(&[], &[], &[x.clone()], &known(vec![(cost.clone(), bad.clone())])).err(),
        jvp(&[bad.clone()], &[x.clone()], &[Var::number(1.0)], Span::NONE).err(),
        jvp(&[cost.clone()], &[x.clone()], &[bad.clone()], Span::NONE).err(),
        LoopBuilder::new(LoopOptions { n_steps: Some(bad.clone()), ..LoopOptions::default() }).err(),
        builder().sequence(&bad, &[0], None).err(),
        builder().state(&bad, &[-1], None).err(),
        builder().finish(&[(None, bad.clone())], &[], None).err(),
        builder().finish(&[(None, cost.clone())], &[(w.clone(), bad.clone())], None).err(),
        builder().finish(&[(None, cost.clone())], &[], Some(&bad)).err(),
        given(LoopBuilder::pass),
        given(LoopBuilder::pass_fixed),
        to_text(&[bad.clone()], &[x.clone()], "f").err(),
        to_text(&[cost.clone()], &[x.clone(), bad.clone()], "f").err(),
        row(&bad, Span::NONE).err(),
        vmap(&[bad.clone()], &[(x.clone(), numbers(&[1.0]))], Span::NONE).err(),
        vmap(&[cost.clone()], &[(x.clone(), bad.clone())], Span::NONE).err(),
        power(&bad, &x, Span::NONE).err(),
        Var::apply(Op::Hold(scan_core::ir::op::Hold {}), &[bad.clone()], Span::NONE).err(),
    ];
    for (at, end) in ends.into_iter().enumerate() {
        let error = end.unwrap_or_else(|| panic!("end {at} passes it over"));
        assert_eq!((error.code, line_of(&error)), ("E0201", line), "end {at}: {error}");
    }
}

#[test]
fn slopes_of_operators_are_those_of_differences() {
    let (x, y) = (scalar("x"), scalar("y"));
    let cost = (&x * 2.0 - 1.0 / &y).tanh() + (x.exp_m1() * y.cos()).softplus() - x.maximum(&y).pow(2) / 3;
    let wrt = [x.clone(), y.clone()];
    let one = Var::number(1.0);
    let slopes: Vec<Var> = vjp(&[cost.clone()], &[one], &wrt, &GradOptions::default()).unwrap().into_iter().flatten().collect();
    let outputs = [vec![cost], slopes].concat();
    let f = Function::new(FunctionSpec { inputs: wrt.to_vec(), outputs, ..FunctionSpec::default() }).unwrap();
    let at = |x: f64, y: f64| -> Vec<f64> {
        f.call(&mut EvalCx::new(), &[Array::scalar(x), Array::scalar(y)]).unwrap().iter().map(|a| a.to_f64_vec()[0]).collect()
    };
    let (x, y, e) = (0.4, 0.7, 1e-6);
    let plain = |x: f64, y: f64| (x * 2.0 - 1.0 / y).tanh() + (x.exp_m1() * y.cos()).exp().ln_1p() - x.max(y).powi(2) / 3.0;
    assert!((at(x, y)[0] - plain(x, y)).abs() < 1e-14);
    assert!((at(x, y)[1] - (at(x + e, y)[0] - at(x - e, y)[0]) / (2.0 * e)).abs() < 1e-8);
    assert!((at(x, y)[2] - (at(x, y + e)[0] - at(x, y - e)[0]) / (2.0 * e)).abs() < 1e-8);
}
