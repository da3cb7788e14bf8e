//! Loops written as closures: values beside plain Rust, gradients beside differences, errors that are kept.

use scan_core::prelude::*;

fn numbers(xs: &[f64]) -> Var {
    constant(Array::vector(xs))
}

fn value(x: &Var) -> Vec<f64> {
    x.eval().unwrap_or_else(|e| panic!("{e}")).to_f64_vec()
}

/// The first line that a diagnostic shows, in this file.
fn line_of(error: &Diagnostic) -> u32 {
    let place = error.labels[0].span.place().expect("a line");
    assert!(place.file.ends_with("closures.rs"), "{}", place.file);
    place.line
}

fn close(got: &[f64], expected: &[f64], bound: f64) {
    assert_eq!(got.len(), expected.len(), "{got:?} {expected:?}");
    assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() <= bound * b.abs().max(1.0)), "{got:?}, not {expected:?}");
}

/// The values of a state after each of n steps, in plain Rust.
fn states(start: f64, n: usize, step: impl Fn(f64, usize) -> f64) -> Vec<f64> {
    let next = |x: &mut f64, t| {
        *x = step(*x, t);
        Some(*x)
    };
    (0..n).scan(start, next).collect()
}

/// The slopes of a cost of scalars and vectors beside differences of two calls.
fn check_slopes(cost: &Var, wrt: &[&Var], args: &[Array]) {
    let slopes = grad(cost, wrt);
    let f = function(wrt, &std::iter::once(cost).chain(&slopes).collect::<Vec<_>>()).compile().unwrap_or_else(|e| panic!("{e}"));
    let call = |args: &[Array]| f.run(args).unwrap_or_else(|e| panic!("{e}"));
    let found = call(args);
    for k in 0..args.len() {
        for i in 0..args[k].len() {
            let moved = |by: f64| {
                let mut args = args.to_vec();
                let mut xs = args[k].to_f64_vec();
                xs[i] += by;
                args[k] = Array::new(args[k].shape(), xs);
                call(&args)[0].to_f64_vec()[0]
            };
            let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            close(&[found[k + 1].to_f64_vec()[i]], &[slope], 1e-6);
        }
    }
}

#[test]
fn one_state_and_a_number_of_steps() {
    let (x0, r, n) = (scalar("x0"), scalar("r"), integer("n"));
    let out = scan().named("logistic").steps(&n).init("x", &x0).run(|s| {
        let x = s.get("x");
        &r * &x * (1.0 - &x)
    });
    let last = out.last("x");
    let f = function(&[&x0, &r, &n], &[&out.rows("x"), &last, &out.steps(), &last.grad(&r)]).named("f").compile().unwrap();
    let plain = |r: f64, n: usize| states(0.3, n, |x, _| r * x * (1.0 - x));
    let found = f.run(&[Array::scalar(0.3), Array::scalar(3.2), Array::scalar(25i64)]).unwrap();
    let rows = plain(3.2, 25);
    close(&found[0].to_f64_vec(), &rows, 1e-12);
    assert_eq!((found[1].to_f64_vec()[0], found[2].to_i64_vec()), (found[0].to_f64_vec()[24], vec![25]));
    close(&found[3].to_f64_vec(), &[(plain(3.2 + 1e-7, 25)[24] - plain(3.2 - 1e-7, 25)[24]) / 2e-7], 1e-5);
}

#[test]
fn sequences_states_and_outputs() {
    let (us, vs, w) = (vector("u"), vector("v"), scalar("w"));
    let out = scan().over("u", &us).over("v", &vs).init("h", 0.0).init("c", 1).run(|s| {
        let (u, v, h, c) = (s.get("u"), s.get("v"), s.get("h"), s.get("c"));
        let h = (&w * h + u * v).tanh();
        s.output("energy", h.square());
        s.output("index", s.index());
        (h, c + 2)
    });
    let results = [out.rows("h"), out.rows("c"), out.rows("energy"), out.last("energy"), out.rows("index")];
    let f = function(&[&us, &vs, &w], &results.iter().collect::<Vec<_>>()).compile().unwrap();
    let (u, v) = ([0.5, -1.0, 0.25], [1.0, 0.5, 2.0]);
    let found = f.run(&[Array::vector(&u), Array::vector(&v), Array::scalar(0.7)]).unwrap();
    let rows = states(0.0, 3, |h, t| (0.7 * h + u[t] * v[t]).tanh());
    let energy: Vec<f64> = rows.iter().map(|h| h * h).collect();
    close(&found[0].to_f64_vec(), &rows, 1e-15);
    assert_eq!(found[1], Array::vector(&[3i64, 5, 7]));
    close(&found[2].to_f64_vec(), &energy, 1e-15);
    close(&found[3].to_f64_vec(), &energy[2..], 1e-15);
    assert_eq!(found[4], Array::vector(&[0i64, 1, 2]));
    check_slopes(&(out.rows("energy").sum() + out.last("h")), &[&us, &vs, &w], &[Array::vector(&u), Array::vector(&v), Array::scalar(0.7)]);
}

#[test]
fn taps_of_sequences_and_states() {
    let (u, start, a) = (vector("u"), vector("start"), scalar("a"));
    let out = scan().over_taps("u", &u, &[-1, 0, 1]).init_taps("x", &start, &[-3, -1]).run(|s| {
        let mean = (s.tap("u", -1) + s.get("u") + s.tap("u", 1)) / 3.0;
        &a * s.tap("x", -3) + s.get("x") * mean
    });
    let rows = out.rows("x");
    let f = function(&[&u, &start, &a], &[&rows]).compile().unwrap();
    let (u0, start0, a0) = ([1.0, 0.5, -0.5, 2.0, 0.25, 0.75], [0.1, 0.2, 0.3], 0.9);
    let mut x = start0.to_vec();
    for t in 1..5 {
        let mean = (u0[t - 1] + u0[t] + u0[t + 1]) / 3.0;
        x.push(a0 * x[x.len() - 3] + x[x.len() - 1] * mean);
    }
    let args = [Array::vector(&u0), Array::vector(&start0), Array::scalar(a0)];
    close(&f.run(&args).unwrap()[0].to_f64_vec(), &x[3..], 1e-15);
    check_slopes(&rows.square().sum(), &[&u, &start, &a], &args);
}

#[test]
fn backwards_and_by_name() {
    let u = numbers(&[1.0, 2.0, 4.0]);
    let out = scan().over("u", &u).init("x", 0.0).init("n", 0).go_backwards().run(|s| {
        s.next("n", s.get("n") + 1);
        s.next("x", s.get("x") * 10.0 + s.get("u"));
    });
    assert_eq!((value(&out.rows("x")), value(&out.last("n"))), (vec![4.0, 42.0, 421.0], vec![3.0]));
    let many = scan().steps(2).init("a", 1.0).init("b", 2.0).init("c", 3.0);
    let out = many.run(|s| [s.get("b"), s.get("c"), s.get("a")]);
    assert_eq!(["a", "b", "c"].map(|name| value(&out.last(name))[0]), [3.0, 1.0, 2.0]);
    let out = scan().steps(2).init("a", 1.0).init("b", 2.0).run(|s| vec![s.get("b"), s.get("a")]);
    assert_eq!(value(&out.rows("a")), [2.0, 1.0]);
    let out = scan().steps(2).init("a", 1.0).init("b", 2.0).init("c", 3.0).run(|s| (s.get("b"), s.get("c"), s.get("a")));
    assert_eq!(value(&out.last("a")), [3.0]);
}

#[test]
fn until_ends_a_loop() {
    let double = |limit: Option<i64>| {
        let begun = scan().init("x", 1.0);
        let begun = limit.map_or(begun, |n| scan().steps(n).init("x", 1.0));
        begun.run(|s| {
            let x = s.get("x") * 2.0;
            s.until(x.gt(100.0));
            s.until(x.eq(-1.0));
            x
        })
    };
    assert_eq!((value(&double(None).last("x")), value(&double(None).steps())), (vec![128.0], vec![7.0]));
    assert_eq!((value(&double(Some(3)).rows("x")), value(&double(Some(3)).steps())), (vec![2.0, 4.0, 8.0], vec![3.0]));
}

#[test]
fn truncated_gradients_cover_the_last_steps() {
    let x0 = scalar("x0");
    let slope = |steps: Option<usize>| {
        let begun = scan().steps(5).init("x", &x0);
        let begun = match steps {
            Some(n) => begun.truncate(n),
            None => begun,
        };
        let last = begun.run(|s| s.get("x") * 2.0).last("x");
        function(&[&x0], &[&last.grad(&x0)]).compile().unwrap().run(&[Array::scalar(1.0)]).unwrap()[0].to_f64_vec()[0]
    };
    assert_eq!((slope(None), slope(Some(3))), (32.0, 0.0));
}

#[test]
fn loops_update_shared_variables() {
    let (u, total) = (vector("u"), Var::new_shared(Array::scalar(1.0), "total"));
    let out = scan().over("u", &u).run(|s| {
        s.update(&total, &total + s.get("u"));
        s.output("seen", &total * 1.0);
    });
    let f = function(&[&u], &[&out.rows("seen")]).updates(out.updates()).compile().unwrap();
    let args = [Array::vector(&[1.0, 2.0, 3.0])];
    assert_eq!(f.run(&args).unwrap(), [Array::vector(&[1.0, 2.0, 4.0])]);
    assert_eq!(f.run(&args).unwrap(), [Array::vector(&[7.0, 8.0, 10.0])]);
    assert_eq!(value(&total), [13.0]);
    // A step of descent.
    let w = Var::new_shared(Array::scalar(3.0), "w");
    let cost = w.square();
    let step = function(&[], &[&cost]).update(&w, &w - 0.25 * cost.grad(&w)).compile().unwrap();
    assert_eq!((step.run(&[]).unwrap(), value(&w)), (vec![Array::scalar(9.0)], vec![1.5]));
    let replaced = function(&[], &[&(&w * 2.0)]).given(&w, &Var::number(5.0)).engine(Engine::Eval).passes(PassOptions::none());
    assert_eq!(replaced.compile().unwrap().run(&[]).unwrap(), [Array::scalar(10.0)]);
}

#[test]
fn loops_stand_in_loops() {
    let (m, x0) = (matrix("m"), scalar("x0"));
    let out = scan().over("row", &m).init("x", &x0).run(|s| {
        let row = s.get("row");
        scan().over("u", &row).init("y", s.get("x")).run(|s| (s.get("y") * s.get("u")).sin()).last("y")
    });
    let args = [Array::new(&[2, 3], vec![1.0, 2.0, 0.5, 0.7, 1.5, 1.1]), Array::scalar(0.8)];
    let found = function(&[&m, &x0], &[&out.last("x")]).compile().unwrap().run(&args).unwrap();
    close(&found[0].to_f64_vec(), &[args[0].to_f64_vec().iter().fold(0.8, |y, u| (y * u).sin())], 1e-15);
    check_slopes(&out.last("x"), &[&m, &x0], &args);
}

#[test]
fn shared_variables_are_passed_where_that_is_asked_for() {
    let w = Var::new_shared(Array::scalar(2.0), "w");
    let run = |begun: Loop| begun.strict().steps(3).init("x", 1.0).run(|s| s.get("x") * &w);
    assert_eq!(run(scan()).ok().err().map(|e| e.code), Some("E0113"));
    assert_eq!(value(&run(scan().pass(&w)).last("x")), [8.0]);
}

/// What goes wrong in a step is told by every result, at the line in the step.
#[test]
fn a_failed_expression_in_a_step() {
    let u = numbers(&[1.0, 2.0]);
    let line = std::cell::Cell::new(0);
    let run = |part: &dyn Fn(&mut Step, Var)| {
        scan().over("u", &u).init("x", 0.0).run(|s| {
            line.set(line!() + 1);
            let bad = numbers(&[1.0, 2.0]) + numbers(&[1.0, 2.0, 3.0]);
            s.next("x", s.get("x"));
            part(s, bad);
        })
    };
    let w = Var::new_shared(Array::scalar(1.0), "w");
    let made = [
        run(&|s, bad| s.next("x", bad.exp() * 2.0)),
        run(&|s, bad| s.output("y", bad)),
        run(&|s, bad| s.until(bad.gt(0.0))),
        run(&|s, bad| s.update(&w, bad)),
        run(&|s, bad| s.update(&bad, 1.0)),
    ];
    for out in made {
        for x in [out.rows("x"), out.last("x") + 1.0, out.steps(), out.last("x").grad(&u), out.updates()[0].1.clone()] {
            let error = function(&[], &[&x]).compile().err().expect("an error");
            assert_eq!((error.code, line_of(&error)), ("E0201", line.get()));
        }
        assert_eq!(function(&[], &[]).updates(out.updates()).compile().err().map(|e| e.code), Some("E0201"));
        assert_eq!(out.ok().err().map(|e| e.code), Some("E0201"));
    }
    // What nothing uses is not asked.
    assert_eq!(value(&run(&|_, _| ()).rows("x")), [0.0, 0.0]);
}

#[test]
fn what_is_wrong_with_a_loop() {
    let u = numbers(&[1.0, 2.0]);
    let begun = || scan().over("u", &u).init("x", 0.0);
    let error = |out: Scanned| out.ok().err().unwrap_or_else(|| panic!("no error"));
    let code = |out: Scanned| error(out).code;
    assert_eq!(code(begun().run(|_| ())), "E0105");
    assert_eq!(code(begun().run(|s| (s.get("x"), s.get("x")))), "E0105");
    assert_eq!(code(begun().run(|s| s.get("y"))), "E0130");
    assert_eq!(code(begun().run(|s| s.tap("u", -1))), "E0130");
    assert_eq!(code(begun().run(|s| s.next("u", 1.0))), "E0130");
    assert_eq!(code(begun().run(|s| s.output("x", 1.0))), "E0130");
    assert_eq!(code(begun().over("x", &u).run(|s| s.get("x"))), "E0130");
    assert_eq!(code(scan().init("x", 0.0).run(|s| s.get("x"))), "E0110");
    assert_eq!(code(scan().steps(-1).init("x", 0.0).run(|s| s.get("x"))), "E0111");
    assert_eq!(code(scan().steps(0.5).init("x", 0.0).run(|s| s.get("x"))), "E0117");
    assert_eq!(code(scan().over("x", &Var::number(1.0)).run(|s| s.output("y", s.get("x")))), "E0118");
    assert_eq!(code(begun().run(|s| stack(&[&s.get("x")]))), "E0101");
    assert_eq!(code(scan().steps(2).init("n", Var::int(1)).run(|s| s.get("n") * 0.5)), "E0103");
    let failed = &u + numbers(&[1.0, 2.0, 3.0]);
    for begun in [scan().over("u", &failed), scan().steps(&failed), scan().steps(2).init("x", &failed), scan().over("u", &u).pass(&failed)]
    {
        assert_eq!(code(begun.run(|s| s.output("y", 1.0))), "E0201");
    }
    let out = begun().run(|s| s.get("x"));
    assert_eq!(out.rows("y").failure().map(|e| (e.code, line_of(e))), Some(("E0130", line!())));
    let whole = error(begun().run(|s| s.get("h"))).to_string();
    let text = "ScanError[E0130]: the step reads `h`, which is no part of the loop\n";
    assert!(whole.starts_with(text) && whole.ends_with("   = note: the loop has `u`, `x`"), "{whole}");
}

#[test]
fn gradients_say_what_is_wrong() {
    let (x, y) = (scalar("x"), scalar("y"));
    let cost = x.square();
    let slopes = grad(&cost, &[&x, &y]);
    assert!(slopes[0].failure().is_none());
    let error = slopes[1].failure().expect("disconnected");
    assert_eq!((error.code, error.kind, line_of(error)), ("E0402", Kind::Disconnected, line!() - 3));
    assert_eq!(vector("v").grad(&x).failure().map(|e| e.code), Some("E0401"));
    assert_eq!(cost.grad(&(numbers(&[1.0, 2.0]) + numbers(&[1.0, 2.0, 3.0]))).failure().map(|e| e.code), Some("E0201"));
}
