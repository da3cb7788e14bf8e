//! Loops against plain Rust loops; gradients against differences and the unrolled expression.

use crate::base::Result;
use crate::exec::{Function, FunctionSpec};
use crate::expr::gradient::{grad_with, jvp};
use crate::expr::{GradOptions, LoopBuilder, LoopOptions, LoopResult, Var};
use crate::ir::EvalCx;
use crate::types::Array;

fn call(inputs: &[&Var], outputs: &[Var], args: &[Array]) -> Result<Vec<Array>> {
    let spec = FunctionSpec { inputs: inputs.iter().map(|v| (*v).clone()).collect(), outputs: outputs.to_vec(), ..Default::default() };
    Function::new(spec)?.call(&mut EvalCx::new(), args)
}

fn gradients(cost: &Var, wrt: &[&Var]) -> Vec<Var> {
    let wrt: Vec<Var> = wrt.iter().map(|v| (*v).clone()).collect();
    grad_with(Some(cost), &wrt, &GradOptions::default()).unwrap().into_iter().map(|g| g.expect("connected")).collect()
}

/// Central differences of a scalar function of several arrays.
fn differences(f: &dyn Fn(&[Array]) -> f64, args: &[Array]) -> Vec<Vec<f64>> {
    let eps = 1e-6;
    let bump = |k: usize, i: usize, d: f64| {
        let mut args = args.to_vec();
        args[k].as_mut_slice::<f64>()[i] += d;
        f(&args)
    };
    let slope = |k: usize, i: usize| (bump(k, i, eps) - bump(k, i, -eps)) / (2.0 * eps);
    args.iter().enumerate().map(|(k, a)| (0..a.len()).map(|i| slope(k, i)).collect()).collect()
}

/// First and second derivatives of `cost` with respect to all inputs, against differences.
fn check(inputs: &[&Var], cost: &Var, args: &[Array], tolerance: f64) {
    let first = gradients(cost, inputs);
    let f = |args: &[Array]| call(inputs, std::slice::from_ref(cost), args).unwrap()[0].to_f64_vec()[0];
    compare(&call(inputs, &first, args).unwrap(), &differences(&f, args), tolerance);
    let mut projected = first[0].sin().sum();
    for g in &first[1..] {
        projected = projected.add(g.sin().sum());
    }
    let wrt: Vec<Var> = inputs.iter().map(|v| (*v).clone()).collect();
    let second = grad_with(Some(&projected), &wrt, &GradOptions::default()).unwrap();
    let present: Vec<Var> = second.iter().zip(&wrt).map(|(g, x)| g.clone().unwrap_or_else(|| zeros(x))).collect();
    let p = |args: &[Array]| call(inputs, std::slice::from_ref(&projected), args).unwrap()[0].to_f64_vec()[0];
    compare(&call(inputs, &present, args).unwrap(), &differences(&p, args), 10.0 * tolerance);
    pushed(inputs, &wrt, &first, cost, args);
}

fn zeros(x: &Var) -> Var {
    x.mul(0.0)
}

/// The tangent of the cost along ones is the sum of all slopes.
fn pushed(inputs: &[&Var], wrt: &[Var], first: &[Var], cost: &Var, args: &[Array]) {
    let ones: Vec<Var> = wrt.iter().map(|x| zeros(x).exp()).collect();
    let tangent = jvp(std::slice::from_ref(cost), wrt, &ones, Default::default()).unwrap().remove(0).unwrap();
    let got = call(inputs, &[tangent], args).unwrap()[0].to_f64_vec()[0];
    let sum: f64 = call(inputs, first, args).unwrap().iter().flat_map(Array::to_f64_vec).sum();
    assert!((got - sum).abs() <= 1e-9 * (1.0 + sum.abs()), "jvp {got} vjp {sum}");
}

fn compare(got: &[Array], want: &[Vec<f64>], tolerance: f64) {
    for (k, (g, w)) in got.iter().zip(want).enumerate() {
        for (i, (g, w)) in g.to_f64_vec().iter().zip(w).enumerate() {
            assert!((g - w).abs() <= tolerance * (1.0 + w.abs()), "input {k}, element {i}: gradient {g}, differences {w}");
        }
        assert_eq!(g.len(), w.len());
    }
}

fn builder(n_steps: Option<i64>) -> LoopBuilder {
    LoopBuilder::new(LoopOptions { n_steps: n_steps.map(Var::int), ..Default::default() }).unwrap()
}

fn one(result: LoopResult) -> Var {
    result.outputs.into_iter().next().unwrap()
}

fn v(x: &[f64]) -> Array {
    Array::vector(x)
}

fn s(x: f64) -> Array {
    Array::scalar(x)
}

/// h[t] = tanh(w · h[t-1] + x[t]); two outputs, one of them not read back.
fn recurrence(mut b: LoopBuilder, xs: &Var, w: &Var, h0: &Var) -> LoopResult {
    let x = b.sequence(xs, &[0], Some("x")).unwrap().remove(0);
    let h = b.state(h0, &[-1], Some("h")).unwrap().remove(0);
    let next = w.mul(&h).add(&x).tanh();
    let y = next.mul(&h);
    b.finish(&[(Some(0), next), (None, y)], &[], None).unwrap()
}

#[test]
fn single_tap_state() {
    let (xs, w, h0) = (Var::float("xs", 1), Var::float("w", 0), Var::float("h0", 0));
    let out = recurrence(builder(None), &xs, &w, &h0).outputs;
    let args = [v(&[0.5, -0.3, 0.8, 0.1]), s(0.7), s(0.2)];
    let mut h = 0.2f64;
    let want: Vec<f64> = [0.5, -0.3, 0.8, 0.1]
        .iter()
        .map(|x| {
            h = (0.7 * h + x).tanh();
            h
        })
        .collect();
    let got = call(&[&xs, &w, &h0], &out, &args).unwrap();
    compare(&got[..1], &[want], 1e-15);
    let cost = out[0].square().sum().add(out[1].sum());
    check(&[&xs, &w, &h0], &cost, &args, 1e-7);
}

#[test]
fn last_value_and_longer_sequence() {
    let (xs, w, h0) = (Var::float("xs", 1), Var::float("w", 0), Var::float("h0", 0));
    let out = recurrence(builder(Some(3)), &xs, &w, &h0).outputs;
    let cost = out[0].row(-1).mul(out[1].row(0));
    check(&[&xs, &w, &h0], &cost, &[v(&[0.5, -0.3, 0.8, 0.1, 0.9]), s(0.7), s(0.2)], 1e-7);
}

#[test]
fn taps_on_states_and_sequences() {
    for backwards in [false, true] {
        let (u, x0, a, y0) = (Var::float("u", 1), Var::float("x0", 1), Var::float("a", 1), Var::float("y0", 0));
        let mut b = LoopBuilder::new(LoopOptions { go_backwards: backwards, ..Default::default() }).unwrap();
        let us = b.sequence(&u, &[-2, 1, 0], Some("u")).unwrap();
        let xs = b.state(&x0, &[-3, -1], Some("x")).unwrap();
        let y = b.state(&y0, &[-1], Some("y")).unwrap().remove(0);
        let sum = us[0].mul(&us[1]).add(&us[2]).add(xs[0].mul(a.row(0)));
        let x = sum.add(xs[1].mul(&y)).tanh();
        let next = xs[0].add(y.mul(a.row(1)));
        let out = b.finish(&[(Some(0), x), (Some(1), next)], &[], None).unwrap().outputs;
        let uv = [0.3, -0.5, 0.9, 0.2, -0.7, 0.4, 0.6];
        let args = [v(&uv), v(&[0.1, 0.2, -0.3]), v(&[0.8, 0.5]), s(0.3)];
        let inputs = [&u, &x0, &a, &y0];
        let (mut x, mut y) = (vec![0.1, 0.2, -0.3], vec![0.3]);
        for t in 0..4 {
            // tap k of a sequence of 7 rows with taps -2 … 1 has rows 2+k .. 6+k
            let at = |k: usize| if backwards { uv[k + 3 - t] } else { uv[k + t] };
            let (x3, x1, y1): (f64, f64, f64) = (x[t], x[t + 2], y[t]);
            x.push((at(0) * at(3) + at(2) + x3 * 0.8 + x1 * y1).tanh());
            y.push(x3 + y1 * 0.5);
        }
        compare(&call(&inputs, &out, &args).unwrap(), &[x[3..].to_vec(), y[1..].to_vec()], 1e-14);
        let cost = out[0].square().sum().add(out[1].row(-1));
        check(&inputs, &cost, &args, 1e-7);
    }
}

#[test]
fn until_keeps_the_stopping_step_and_has_gradients() {
    let (x0, r, xs) = (Var::float("x0", 0), Var::float("r", 0), Var::float("xs", 1));
    let mut b = builder(None);
    let add = b.sequence(&xs, &[0], None).unwrap().remove(0);
    let x = b.state(&x0, &[-1], Some("x")).unwrap().remove(0);
    let next = x.mul(&r).add(&add);
    let stop = next.gt(1.0);
    let result = b.finish(&[(Some(0), next)], &[], Some(&stop)).unwrap();
    let args = [s(0.1), s(2.0), v(&[0.01; 9])];
    let got = call(&[&x0, &r, &xs], &[result.outputs[0].clone(), result.steps.clone()], &args).unwrap();
    assert_eq!((got[0].shape(), got[1].to_i64_vec()), (&[4][..], vec![4]));
    check(&[&x0, &r, &xs], &one(result).square().sum(), &args, 1e-6);
}

#[test]
fn zero_steps_give_no_rows_and_zero_gradients() {
    let (xs, w, h0) = (Var::float("xs", 1), Var::float("w", 0), Var::float("h0", 0));
    let out = recurrence(builder(None), &xs, &w, &h0).outputs;
    let cost = out[0].sum();
    let mut all = gradients(&cost, &[&xs, &w, &h0]);
    all.extend(out);
    let got = call(&[&xs, &w, &h0], &all, &[v(&[]), s(0.7), s(0.2)]).unwrap();
    assert_eq!(got.iter().map(|a| a.shape().to_vec()).collect::<Vec<_>>(), [vec![0], vec![], vec![], vec![0], vec![0]]);
    assert_eq!((got[1].to_f64_vec(), got[2].to_f64_vec()), (vec![0.0], vec![0.0]));
}

#[test]
fn truncated_gradient_covers_the_last_steps() {
    let (xs, h0) = (Var::float("xs", 1), Var::float("h0", 0));
    let mut b = LoopBuilder::new(LoopOptions { truncate: Some(2), ..Default::default() }).unwrap();
    let x = b.sequence(&xs, &[0], None).unwrap().remove(0);
    let h = b.state(&h0, &[-1], None).unwrap().remove(0);
    let h = one(b.finish(&[(Some(0), h.mul(0.5).add(&x))], &[], None).unwrap());
    let got = call(&[&xs, &h0], &gradients(&h.sum(), &[&xs, &h0]), &[v(&[1.0, 2.0, 3.0, 4.0]), s(0.0)]).unwrap();
    assert_eq!(got[0].to_f64_vec(), [0.0, 0.0, 1.5, 1.0]);
    assert_eq!(got[1].to_f64_vec(), [0.0]);
}

#[test]
fn nested_loops() {
    let (m, h0) = (Var::float("m", 2), Var::float("h0", 0));
    let mut outer = builder(None);
    let row = outer.sequence(&m, &[0], Some("row")).unwrap().remove(0);
    let h = outer.state(&h0, &[-1], Some("h")).unwrap().remove(0);
    let inner = recurrence(builder(None), &row, &h, &h0);
    let next = inner.outputs[0].row(-1);
    let all = one(outer.finish(&[(Some(0), next)], &[], None).unwrap());
    let args = [Array::new(&[3, 2], vec![0.1, 0.5, -0.4, 0.3, 0.9, -0.2]), s(0.6)];
    check(&[&m, &h0], &all.square().sum(), &args, 1e-7);
}

#[test]
fn shared_updates_follow_each_step() {
    let (count, x) = (Var::new_shared(s(1.0), "count"), Var::float("x", 0));
    let b = builder(Some(5));
    let out = count.mul(&x);
    let after = count.add(&x);
    let result = b.finish(&[(None, out)], &[(count.clone(), after)], None).unwrap();
    let cost = result.outputs[0].sum().add(result.updates[0].1.square());
    let got = call(&[&x], &[result.outputs[0].clone(), result.updates[0].1.clone()], &[s(2.0)]).unwrap();
    assert_eq!(got[0].to_f64_vec(), [2.0, 6.0, 10.0, 14.0, 18.0]);
    assert_eq!(got[1].to_f64_vec(), [11.0]);
    check(&[&x], &cost, &[s(2.0)], 1e-6);
    let spec = FunctionSpec { inputs: vec![x], outputs: vec![cost], updates: result.updates, ..Default::default() };
    let f = Function::new(spec).unwrap();
    f.call(&mut EvalCx::new(), &[s(2.0)]).unwrap();
    assert_eq!(count.as_shared().unwrap().get(), s(11.0));
}

#[test]
fn a_loop_of_one_step_is_no_loop() {
    let (xs, w, h0) = (Var::float("xs", 1), Var::float("w", 0), Var::float("h0", 0));
    let out = recurrence(builder(Some(1)), &xs, &w, &h0).outputs;
    let spec = FunctionSpec { inputs: vec![xs, w, h0], outputs: out, ..Default::default() };
    let f = Function::new(spec).unwrap();
    assert!(!f.graph().nodes().iter().any(|n| n.op.name() == "scan"));
    let got = f.call(&mut EvalCx::new(), &[v(&[0.5, 0.6]), s(0.7), s(0.2)]).unwrap();
    assert!((got[0].to_f64_vec()[0] - (0.7f64 * 0.2 + 0.5).tanh()).abs() < 1e-15);
}

#[test]
fn a_weak_state_takes_the_dtype_of_the_step() {
    for n in [1, 3] {
        let x = Var::float("x", 0);
        let mut b = builder(Some(n));
        let total = b.state(&Var::int(1), &[-1], None).unwrap().remove(0);
        b.weak();
        let rows = one(b.finish(&[(Some(0), total.mul(&x))], &[], None).unwrap());
        let got = call(&[&x], &[rows], &[s(0.5)]).unwrap();
        assert_eq!(got[0].to_f64_vec(), &[0.5, 0.25, 0.125][..n as usize]);
    }
}

#[test]
fn wide_rows_of_a_kept_last_state_are_dropped_as_the_loop_goes() {
    let w = Var::new_shared(Array::new(&[3000], vec![1.0; 3000]), "w");
    let after = w.mul(0.5);
    let result = builder(Some(20)).finish(&[(None, w.row(0))], &[(w.clone(), after)], None).unwrap();
    let got = call(&[], &[result.updates[0].1.clone(), result.outputs[0].clone()], &[]).unwrap();
    assert_eq!((got[0].shape(), got[0].to_f64_vec()[2999]), (&[3000][..], 0.5f64.powi(20)));
    assert_eq!(got[1].to_f64_vec()[19], 0.5f64.powi(19));
}

#[test]
fn slices_of_an_outer_step_are_not_computed_again_by_an_inner_loop() {
    let count = Var::new_shared(s(1.0), "count");
    let inner = |seen: &Var| {
        let after = count.add(1.0);
        builder(Some(2)).finish(&[(None, seen.mul(1.0))], &[(count.clone(), after)], None).unwrap()
    };
    let first = call(&[], &[count.exp()], &[]).unwrap()[0].to_f64_vec()[0];
    for n in [1, 2] {
        let mut outer = builder(Some(n));
        let seen = outer.state(&count.exp(), &[-1], None).unwrap().remove(0);
        let inside = inner(&seen);
        let rows = outer.finish(&[(Some(0), seen), (None, inside.outputs[0].clone())], &inside.updates, None).unwrap().outputs;
        let got = call(&[], &rows, &[]).unwrap();
        assert_eq!(got[1].to_f64_vec(), vec![first; 2 * n as usize]);
    }
}

#[test]
fn errors_say_what_and_where() {
    let (x0, w) = (Var::float("x0", 0), Var::float("w", 1));
    let code = |out: Var, until: Option<&Var>| {
        let mut b = builder(Some(4));
        b.state(&x0, &[-1], Some("h")).unwrap();
        b.finish(&[(Some(0), out)], &[], until).map(|_| ()).unwrap_err().code
    };
    assert_eq!(code(w.clone(), None), "E0101");
    assert_eq!(code(Var::int(3), None), "E0103");
    assert_eq!(code(x0.clone(), Some(&w.lt(&x0))), "E0108");
    let empty = LoopBuilder::new(LoopOptions::default()).unwrap().finish(&[(None, x0.clone())], &[], None);
    assert_eq!(empty.map(|_| ()).unwrap_err().code, "E0110");
    let endless = LoopBuilder::new(LoopOptions::default()).unwrap().finish(&[(None, x0.clone())], &[], Some(&x0.lt(&x0)));
    assert!(endless.is_ok());
    let negative = LoopBuilder::new(LoopOptions { n_steps: Some(Var::int(-2)), ..Default::default() });
    assert_eq!(negative.map(|_| ()).unwrap_err().code, "E0111");
    let mut long = builder(Some(4));
    let x = long.sequence(&w, &[0], Some("w")).unwrap().remove(0);
    let out = long.finish(&[(None, x)], &[], None).unwrap().outputs;
    let error = call(&[&w], &out, &[v(&[1.0, 2.0])]).unwrap_err();
    assert_eq!(error.code, "E0109");
    assert!(error.title.contains("`w`") && error.title.contains("rows for 2 of 4 steps"), "{error}");
}

/// Nothing but a step tells how long the rows are: `x + y` of two vectors of unknown length.
#[test]
fn rows_of_no_steps_have_the_shape_of_a_step() {
    use crate::types::{DType, Type};
    let vector = |name: &str| Var::input(Type::unknown(DType::F64, 1), Some(name), Default::default());
    let (x, y, n) = (vector("x"), vector("y"), Var::input(Type::scalar(DType::I64), Some("n"), Default::default()));
    let builder = LoopBuilder::new(LoopOptions { n_steps: Some(n.clone()), ..Default::default() }).unwrap();
    let row = builder.step_index().mul(x.add(&y));
    let out = builder.finish(&[(None, row)], &[], None).unwrap().outputs.remove(0);
    let args = |steps: i64| [Array::vector(&[1.0, 2.0, 3.0]), Array::vector(&[0.5]), Array::scalar(steps)];
    assert_eq!(call(&[&x, &y, &n], std::slice::from_ref(&out), &args(0)).unwrap()[0].shape(), [0, 3]);
    assert_eq!(call(&[&x, &y, &n], std::slice::from_ref(&out), &args(2)).unwrap()[0].shape(), [2, 3]);
}

/// More initial rows than the steps begin with: some are written over, those behind the last step are returned as they were.
#[test]
fn initial_rows_that_steps_write_over_have_no_cotangent() {
    let text = "fn f(h0: f64[n0], n: i64) {
  %0 = scan n_steps=n {
    state h init=h0 reads=[0] writes=[1] keep=all
    %1 = add(h, h)
    next h = %1
  }
  return %0.h
}";
    let mut graph = crate::ir::parse::parse(text).unwrap_or_else(|e| panic!("{}", e.title)).1;
    let (rows, h0) = (graph.results()[0], graph.params()[0]);
    let weights = graph.constant(v(&[1.0, 10.0, 100.0, 1000.0, 1e4]));
    let seeds = crate::grad::Seeds { outputs: vec![(rows, weights)], ..Default::default() };
    let slopes = crate::grad::vjp(&mut graph, &seeds, &[h0]).unwrap()[0].expect("connected");
    graph.set_results(vec![rows, slopes]);
    let walk = crate::eval::Walk::new(std::sync::Arc::new(graph));
    let mut args = vec![v(&[1.0, 7.0, 8.0, 9.0, 6.0]), Array::scalar(2i64)];
    let got = walk.run(&mut EvalCx::new(), &mut walk.slots(), &mut args).unwrap();
    assert_eq!(got[0].to_f64_vec(), [1.0, 2.0, 4.0, 9.0, 6.0]);
    assert_eq!(got[1].to_f64_vec(), [421.0, 0.0, 0.0, 1000.0, 1e4]);
}
