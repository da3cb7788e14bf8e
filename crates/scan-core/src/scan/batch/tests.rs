//! Loops of many rows against the loop of each row.

use crate::ir::op::{Batched, Batching};
use crate::ir::{EvalCx, Graph, Value, parse};
use crate::ops::batch::graph;
use crate::ops::testing::assert_close;
use crate::types::{Array, Dim, Type};
use rustc_hash::FxHashMap;

/// How the rows of a program were computed.
#[derive(PartialEq, Debug)]
enum How {
    /// Without a loop over rows.
    AtOnce,
    /// With one for something.
    Looped,
    /// Not at all: rows of different lengths were needed side by side.
    Apart,
}

/// The results of a program for rows of some of its inputs, each compared with those of the row alone.
fn check(text: &str, rows: &[Vec<Array>], vary: &[bool]) -> How {
    [true, false]
        .map(|known| check_with(text, rows, vary, known))
        .into_iter()
        .reduce(|a, b| if a == b { a } else { How::Apart })
        .expect("two")
}

fn check_with(text: &str, rows: &[Vec<Array>], vary: &[bool], known: bool) -> How {
    let (_, from) = parse::parse(text).unwrap_or_else(|e| panic!("{}", e.title));
    let (mut g, extent) = (Graph::new(), if known { Dim::known(rows.len()) } else { Dim::fresh() });
    let (mut given, mut arrays) = (FxHashMap::default(), vec![]);
    for (k, &p) in from.params().iter().enumerate() {
        let column: Vec<Array> = rows.iter().map(|row| row[k].clone()).collect();
        let ty: Type = from.ty(p).clone();
        let (x, array) = if vary[k] {
            (Batched::Rows(g.param(ty.rows(extent.clone()), None)), Array::stack(&column, column[0].dtype(), column[0].shape()))
        } else {
            (Batched::Fixed(g.param(ty, None)), column[0].clone())
        };
        given.insert(p, x);
        arrays.push(array);
    }
    let leading = given.values().find(|x| x.varies()).expect("one varies").value();
    let mut b = Batching::new(&mut g, leading);
    let images = graph(&mut b, &from, &given, from.results()).unwrap_or_else(|e| panic!("{}", e.title));
    let looped = b.looped;
    let found: Option<Vec<Batched>> =
        images.map(|images| from.results().iter().filter_map(|v| images.get(*v)).map(|x| b.settled(x)).collect());
    let Some(found) = found.filter(|all| !all.iter().any(|x| matches!(x, Batched::Ragged { .. }))) else { return How::Apart };
    g.set_results(found.iter().map(|x| x.value()).collect::<Vec<Value>>());
    crate::ir::verify::verify(&g).unwrap_or_else(|e| panic!("{}", e.title));
    let all = crate::eval::run(&g, &mut EvalCx::new(), &arrays).unwrap_or_else(|e| panic!("{}: {:?}", e.title, e.notes));
    for (r, row) in rows.iter().enumerate() {
        let ins: Vec<Array> =
            row.iter().zip(&rows[0]).zip(vary).map(|((x, first), v)| if *v { x.clone() } else { first.clone() }).collect();
        let alone = crate::eval::run(&from, &mut EvalCx::new(), &ins).unwrap_or_else(|e| panic!("row {r} alone: {}", e.title));
        for ((x, all), one) in found.iter().zip(&all).zip(alone) {
            let got = if x.varies() { all.row(r) } else { all.clone() };
            assert_eq!((got.dtype(), got.shape()), (one.dtype(), one.shape()), "row {r}");
            assert_close(&got.to_f64_vec(), &one.to_f64_vec(), 1e-12, &format!("row {r}"));
        }
    }
    if looped { How::Looped } else { How::AtOnce }
}

fn v(x: &[f64]) -> Array {
    Array::vector(x)
}
fn s(x: f64) -> Array {
    Array::scalar(x)
}
fn int(n: i64) -> Array {
    Array::scalar(n)
}
fn sample(shape: &[usize], seed: usize) -> Array {
    crate::ops::testing::sample(shape, seed)
}

#[test]
fn states_sequences_and_captured_values_have_rows() {
    let text = "fn f(xs: f64[n, k], h0: f64[1, k], w: f64[k, k], t: i64) {
      %0 = scan n_steps=t {
        seq x = xs reverse
        state h init=h0 reads=[0] writes=[1] keep=all
        state y: f64[k] reads=[] writes=[0] keep=all
        state c: f64[] reads=[] writes=[0] keep=all
        const w = w
        step i
        %1 = matmul(h, w)
        %2 = add(%1, x)
        %3 = tanh(%2)
        %4 = cast[dtype=f64](i)
        %5 = mul(%3, %4)
        next h = %3
        next y = %5
        next c = %4
      }
      return %0.h, %0.y, %0.c, %0.steps
    }"
    .replace("f64[] reads", "f64 reads");
    let row = |r: usize| vec![sample(&[4, 3], r), sample(&[1, 3], r + 5), sample(&[3, 3], r + 9), int(4)];
    let rows: Vec<Vec<Array>> = (0..3).map(row).collect();
    for bits in 1..8 {
        let vary = [bits & 1 == 1, bits & 2 == 2, bits & 4 == 4, false];
        assert_eq!(check(&text, &rows, &vary), How::AtOnce, "{vary:?}");
    }
}

#[test]
fn a_state_that_begins_alike_may_differ_later() {
    let text = "fn f(x: f64, n: i64) {
      %9 = expand[axes=[0]](0.0:f64)
      %0 = scan n_steps=n {
        state a init=%9 reads=[0] writes=[1] keep=all
        state b init=%9 reads=[0] writes=[1] keep=all
        state d init=%9 reads=[0] writes=[1] keep=all
        const x = x
        %1 = add(a, x)
        %2 = add(b, a)
        %3 = add(d, 1.0:f64)
        next a = %1
        next b = %2
        next d = %3
      }
      return %0.a, %0.b, %0.d
    }";
    for n in [0, 1, 4] {
        assert_eq!(check(text, &[vec![s(0.5), int(n)], vec![s(-2.0), int(n)]], &[true, false]), How::AtOnce);
    }
}

const UNTIL: &str = "fn f(x0: f64[1, 2], limit: f64, n: i64) {
      %0 = scan n_steps=n {
        state x init=x0 reads=[0] writes=[1] keep=all
        state y: f64 reads=[] writes=[0] keep=all
        const limit = limit
        %1 = mul(x, 2.0:f64)
        %2 = reduce[kind=\"sum\", axes=[0], keepdims=false](%1)
        %3 = gt(%2, limit)
        next x = %1
        next y = %2
        until %3
      }
      RESULTS
    }";

fn until(results: &str) -> String {
    UNTIL.replace("RESULTS", results)
}

fn starts() -> Vec<Vec<Array>> {
    let row = |a: f64| vec![Array::new(&[1, 2], vec![a, 0.5 * a]), s(20.0), int(9)];
    [1.0, 12.0, 0.02, 100.0].into_iter().map(row).collect()
}

#[test]
fn rows_stop_at_different_steps() {
    let last = until(
        "%5 = index[pattern=\"i\"](%0.x, -1:i64)\n %6 = index[pattern=\"i,i\"](%0.x, -1:i64, 1:i64)\n %7 = index[pattern=\"s:\"](%0.x, 1:i64)\n %8 = index[pattern=\"i\"](%7, -1:i64)\n %9 = index[pattern=\"i\"](%0.y, -1:i64)\n %10 = index[pattern=\"i\"](%0.y, 0:i64)\n %11 = dim[axis=0](%0.x)\n %12 = dim[axis=1](%0.x)\n return %5, %6, %8, %9, %10, %0.steps, %11, %12",
    );
    assert_eq!(check(&last, &starts(), &[true, false, false]), How::AtOnce);
    assert_eq!(check(&last, &starts()[..1], &[true, false, false]), How::AtOnce);
    let limits: Vec<Vec<Array>> = [3.0, 300.0].into_iter().map(|l| vec![starts()[0][0].clone(), s(l), int(9)]).collect();
    assert_eq!(check(&last, &limits, &[false, true, false]), How::AtOnce);
}

#[test]
fn rows_of_different_lengths_are_not_put_side_by_side() {
    let sum = until("%5 = reduce[kind=\"sum\", axes=[0], keepdims=false](%0.y)\n return %5");
    assert_eq!(check(&sum, &starts(), &[true, false, false]), How::Apart);
    assert_eq!(check(&until("return %0.y"), &starts(), &[true, false, false]), How::Apart);
}

#[test]
fn an_index_beyond_a_row_that_is_short_is_an_error() {
    let third = until("%5 = index[pattern=\"i\"](%0.y, 2:i64)\n return %5");
    let (_, from) = parse::parse(&third).expect("parses");
    let mut g = Graph::new();
    let x = g.param(from.ty(from.params()[0]).rows(Dim::known(4)), None);
    let rest = [g.param(from.ty(from.params()[1]).clone(), None), g.param(from.ty(from.params()[2]).clone(), None)];
    let given = from.params().iter().copied().zip([Batched::Rows(x), Batched::Fixed(rest[0]), Batched::Fixed(rest[1])]).collect();
    let images = graph(&mut Batching::new(&mut g, x), &from, &given, from.results()).expect("batches").expect("at once");
    g.set_results(vec![images.get(from.results()[0]).expect("made").value()]);
    let column: Vec<Array> = starts().iter().map(|row| row[0].clone()).collect();
    let run = |rows: &[Array]| crate::eval::run(&g, &mut EvalCx::new(), &[Array::stack(rows, rows[0].dtype(), &[1, 2]), s(20.0), int(9)]);
    assert_eq!(run(&column).expect_err("the second row stops after one step").code, "E0202");
    assert!(run(&[column[0].clone(), column[2].clone(), column[0].clone(), column[2].clone()]).is_ok());
}

#[test]
fn each_row_has_a_number_of_steps() {
    let text = "fn f(x0: f64[1], ws: f64[7], n: i64) {
      %0 = scan n_steps=n {
        seq w = ws
        state x init=x0 reads=[0] writes=[1] keep=all
        %1 = mul(x, w)
        %2 = add(%1, 1.0:f64)
        next x = %2
      }
      %5 = index[pattern=\"i\"](%0.x, -1:i64)
      return %5, %0.steps
    }";
    let rows: Vec<Vec<Array>> = [3, 0, 7, 1].iter().enumerate().map(|(r, &n)| vec![sample(&[1], r), sample(&[7], r + 4), int(n)]).collect();
    for vary in [[false, false, true], [true, false, true], [true, true, true]] {
        assert_eq!(check(text, &rows, &vary), How::AtOnce, "{vary:?}");
    }
}

#[test]
fn a_row_that_is_done_does_not_fail() {
    // Each row walks over the table until its place is the last; one step more would be outside.
    let text = "fn f(at0: i64[1], table: f64[5], n: i64) {
      %0 = scan n_steps=n {
        state at init=at0 reads=[0] writes=[1] keep=all
        state y: f64 reads=[] writes=[0] keep=all
        const table = table
        %1 = index[pattern=\"i\"](table, at)
        %2 = add(at, 1:i64)
        %3 = ge(%2, 5:i64)
        next at = %2
        next y = %1
        until %3
      }
      %5 = index[pattern=\"i\"](%0.y, -1:i64)
      return %5
    }";
    let rows: Vec<Vec<Array>> =
        [3, 0, 4].iter().map(|&at| vec![Array::vector(&[at as i64]), v(&[1.0, 2.0, 3.0, 4.0, 5.0]), int(9)]).collect();
    assert_eq!(check(text, &rows, &[true, false, false]), How::AtOnce);
    // Rows that run no step at all would be outside at once.
    let counted = text.replace("until %3", "").replace("%3 = ge(%2, 5:i64)", "");
    let row = |(at, n): (i64, i64)| vec![Array::vector(&[at]), v(&[1.0, 2.0, 3.0, 4.0, 5.0]), int(n)];
    let of_last = |rows: &[(i64, i64)]| check(&counted, &rows.iter().copied().map(row).collect::<Vec<_>>(), &[true, false, true]);
    assert_eq!(of_last(&[(3, 2), (4, 1), (0, 5)]), How::AtOnce);
    let counted = counted.replace("return %5", "return %0.at").replace("%5 = index[pattern=\"i\"](%0.y, -1:i64)", "");
    let all = |rows: &[(i64, i64)]| check(&counted, &rows.iter().copied().map(row).collect::<Vec<_>>(), &[true, false, true]);
    assert_eq!(all(&[(3, 1), (0, 1)]), How::Apart, "rows of different lengths");
}

#[test]
fn loops_in_loops_have_rows() {
    let text = "fn f(x: f64[3], w: f64[3, 3], n: i64) {
      %9 = expand[axes=[0]](x)
      %0 = scan n_steps=n {
        state h init=%9 reads=[0] writes=[1] keep=all
        const w = w
        const n = n
        %10 = expand[axes=[0]](h)
        %1 = scan n_steps=n {
          state u init=%10 reads=[0] writes=[1] keep=all
          const w = w
          %2 = matmul(u, w)
          %3 = tanh(%2)
          next u = %3
        }
        %4 = index[pattern=\"i\"](%1.u, -1:i64)
        next h = %4
      }
      return %0.h
    }";
    let rows: Vec<Vec<Array>> = (0..3).map(|r| vec![sample(&[3], r), sample(&[3, 3], r + 3), int(2)]).collect();
    for vary in [[true, false, false], [false, true, false], [true, true, false]] {
        assert_eq!(check(text, &rows, &vary), How::AtOnce, "{vary:?}");
    }
}

#[test]
fn a_branch_that_may_fail_runs_as_for_a_row_that_takes_it() {
    let text = "fn f(x: f64[3], i: i64) {
      %1 = lt(i, 3:i64)
      %2 = index[pattern=\"i\"](x, i)
      %3 = mul(%2, 2.0:f64)
      %4 = ifelse(%1, %3, -1.0:f64)
      return %4
    }";
    let rows: Vec<Vec<Array>> = [1, 7, 2].iter().map(|&i| vec![sample(&[3], i as usize), int(i)]).collect();
    assert_eq!(check(text, &rows, &[true, true]), How::AtOnce);
    // No row takes it, or all do.
    for i in [[7, 9], [0, 2]] {
        let rows: Vec<Vec<Array>> = i.iter().map(|&i| vec![sample(&[3], i as usize), int(i)]).collect();
        assert_eq!(check(text, &rows, &[true, true]), How::AtOnce);
    }
    let safe = text.replace("index[pattern=\"i\"](x, i)", "reduce[kind=\"sum\", axes=[0], keepdims=false](x)");
    assert_eq!(check(&safe, &rows, &[true, true]), How::AtOnce);
}

#[test]
fn several_rows_of_a_state_are_read_and_written() {
    let text = include_str!("../../../../../tests/ir/loops/mit_mot.ir");
    let row = |r: usize| vec![sample(&[4], r), sample(&[4], r + 3), s(1.5 + r as f64), int(3)];
    let rows: Vec<Vec<Array>> = (0..3).map(row).collect();
    for bits in 1..8 {
        assert_eq!(check(text, &rows, &[bits & 1 == 1, bits & 2 == 2, bits & 4 == 4, false]), How::AtOnce);
    }
    // Rows of such a state change after they were read: rows that stop on their own have loops of their own.
    let rows: Vec<Vec<Array>> = (0..2).map(|r| [row(r)[..3].to_vec(), vec![int(3)]].concat()).collect();
    assert_eq!(check(text, &rows, &[true, true, true, true]), How::Apart);
}
