//! From a graph to a plan: a graph again, in which kernels stand for loops and for groups of elementwise nodes.

use super::nodes::{native, planned_nodes};
use super::planner::Planner;
use super::region::outlined;
use super::tier::Engine;
use crate::base::Result;
use crate::ir::Graph;

/// The plan of a graph: the same parameters and results.
///
/// # Errors
/// An internal error where the graph is not consistent.
pub fn plan(graph: &Graph, engine: Engine) -> Result<Graph> {
    match outlined(graph, planner(engine))? {
        Some(graph) => nodes(&graph, engine),
        None => nodes(graph, engine),
    }
}

/// What plans for an engine.
pub fn planner(engine: Engine) -> Planner {
    Planner { engine, graph: plan, nodes, op: |op, types, engine| native(op, types, planner(engine)) }
}

fn nodes(graph: &Graph, engine: Engine) -> Result<Graph> {
    planned_nodes(graph, planner(engine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::run;
    use crate::ir::EvalCx;
    use crate::ir::Op;
    use crate::ir::op::{BroadcastLike, BroadcastTo, DimOf, Flip, Index, IndexWrite, SumTo, Write};
    use crate::types::{Array, DType, Type};

    fn maps(graph: &Graph) -> usize {
        graph.nodes().iter().filter(|n| matches!(&n.op, Op::Native(op) if op.0.name() == "map")).count()
    }

    #[test]
    fn slices_of_the_last_rows_are_cut_from_these() {
        let text = "fn f(n: i64) {
  %0 = scan n_steps=n {
    state x init=f64[1]{0.0} reads=[0] writes=[1] keep=last(3)
    step t
    %1 = add(x, 1.0:f64)
    next x = %1
  }
  %2 = index[pattern=\"s:\"](%0.x, 1:i64)
  return %2
}";
        let graph = crate::ir::parse::parse(text).unwrap().1;
        let planned = plan(&graph, Engine::Vm).unwrap();
        for n in [1i64, 2, 3, 5, 9000] {
            let found = run(&planned, &mut EvalCx::new(), &[Array::scalar(n)]).unwrap();
            assert_eq!(found, run(&graph, &mut EvalCx::new(), &[Array::scalar(n)]).unwrap(), "{n} steps");
        }
    }

    #[test]
    fn a_sum_over_one_element_hands_on_its_sign_in_kernels_and_lists() {
        for call in ["%1 = add(%0, 1.0:f64)", "%1 = inverse(%0)"] {
            let text = format!(
                "fn f(n: i64, like: f64[n0], q: f64[n1, n2]) {{
  %9 = scan n_steps=n {{
    seq x = like
    state h init=f64[1]{{0.0}} reads=[0] writes=[1] keep=all
    state y: f64[n1, n2] reads=[] writes=[0] keep=last(1)
    const %0 = q
    step t
    {call}
    %2 = mul(h, 0.5:f64)
    %3 = expand[axes=[0]](%2)
    %4 = neg(%3)
    %5 = sum_to(%4, x)
    next h = %5
    next y = %1
  }}
  return %9.h
}}"
            );
            let graph = crate::ir::parse::parse(&text).unwrap().1;
            let planned = plan(&graph, Engine::Vm).unwrap();
            let args = [Array::scalar(3i64), Array::zeros(DType::F64, &[5]), Array::new(&[1, 1], vec![2.0])];
            let (law, found) = (run(&graph, &mut EvalCx::new(), &args).unwrap(), run(&planned, &mut EvalCx::new(), &args).unwrap());
            assert_eq!(law[0].to_f64_vec().iter().map(|x| x.to_bits()).collect::<Vec<_>>(), [0.0f64, -0.0, 0.0, -0.0].map(f64::to_bits));
            assert_eq!(law[0].bits(), found[0].bits());
        }
    }

    /// Values and slopes of log s + e²/s, as a gradient writes them: with extents that nothing is known of.
    fn likelihood() -> Graph {
        let mut g = Graph::new();
        let s = g.param(Type::unknown(DType::F64, 1), Some("s"));
        let e = g.param(Type::unknown(DType::F64, 1), Some("e"));
        let k = g.param(Type::scalar(DType::F64), Some("k"));
        let square = g.mul(e, e);
        let ratio = g.div(square, s);
        let log = g.log(s);
        let sum = g.add(log, ratio);
        let total = g.sum(sum, &[0], false);
        let ones = g.emit(BroadcastLike {}, &[k, sum]);
        let ct = g.emit(SumTo {}, &[ones, ratio]);
        let slope = g.div(ct, s);
        let slope = g.emit(SumTo {}, &[slope, square]);
        let slope = g.mul(slope, e);
        let other = g.emit(SumTo {}, &[ones, log]);
        let other = g.div(other, s);
        let other = g.emit(SumTo {}, &[other, s]);
        g.set_results([total, slope, other, ratio]);
        g
    }

    #[test]
    fn what_reads_the_same_arrays_is_one_kernel_of_several_results() {
        let graph = likelihood();
        let planned = nodes(&graph, Engine::Jit).unwrap();
        assert_eq!((maps(&planned), planned.nodes().len() < 6), (1, true), "{}", planned.to_text("plan"));
        let array = |n: usize, from: f64| Array::new(&[n], (0..n).map(|i| from + i as f64 * 0.37).collect());
        for (n, m) in [(7, 7), (300, 300), (1, 1), (0, 0), (1, 5), (5, 1)] {
            let args = [array(n, 1.0), array(m, -3.0), Array::scalar(0.5)];
            let (law, found) = (run(&graph, &mut EvalCx::new(), &args), run(&planned, &mut EvalCx::new(), &args));
            assert_eq!(law.unwrap(), found.unwrap(), "{n} and {m}");
        }
        let args = [array(3, 1.0), array(4, 1.0), Array::scalar(0.5)];
        let error = |g: &Graph| run(g, &mut EvalCx::new(), &args).expect_err("extents that do not fit").title;
        assert_eq!(error(&graph), error(&planned));
    }

    /// What slopes of a sum are made of: how many elements a constant is repeated to matters where they are added up.
    #[test]
    fn sums_of_what_is_repeated_count_all_elements() {
        let mut g = Graph::new();
        let [x, like, y] = ["x", "like", "y"].map(|name| g.param(Type::unknown(DType::F64, 1), Some(name)));
        let one = g.constant(Array::new(&[1], vec![0.7]));
        let ones = g.emit(BroadcastLike {}, &[one, like]);
        let repeated = g.emit(BroadcastLike {}, &[y, like]);
        let both = g.mul(ones, repeated);
        let results = [ones, repeated, both].map(|v| g.emit(SumTo {}, &[v, x]));
        let negative = g.neg(results[0]);
        g.set_results([results[0], results[1], results[2], negative]);
        for engine in [Engine::Vm, Engine::Jit] {
            let planned = nodes(&g, engine).unwrap();
            assert!(maps(&planned) > 0, "{}", planned.to_text("plan"));
            let array = |n: usize| Array::new(&[n], (0..n).map(|i| 1.5 + i as f64 * 0.37).collect());
            for (n, m, k) in [(1, 3, 1), (1, 3, 3), (3, 3, 3), (3, 3, 1), (1, 1, 1), (1, 2, 1), (1, 0, 1), (1, 900, 1)] {
                let args = [array(n), array(m), array(k)];
                let (law, found) = (run(&g, &mut EvalCx::new(), &args), run(&planned, &mut EvalCx::new(), &args));
                assert_eq!(law.unwrap(), found.unwrap(), "{m} and {k} elements added up to {n}");
            }
        }
    }

    #[test]
    fn rows_added_to_zeros_and_last_rows_are_the_laws() {
        let mut g = Graph::new();
        let like = g.param(Type::unknown(DType::F64, 2), Some("like"));
        let y = g.param(Type::unknown(DType::F64, 2), Some("y"));
        let (zero, k, last) = (g.number(DType::F64, 0.0), g.int(2), g.int(-1));
        let zeros = g.emit(BroadcastLike {}, &[zero, like]);
        let sum = g.emit(IndexWrite { mode: Write::Inc, pattern: "s:".into() }, &[zeros, y, k]);
        let all = g.join_rows(&[like, y]);
        let row = g.row(all, last);
        g.set_results([sum, row]);
        let planned = plan(&g, Engine::Vm).unwrap();
        let native = planned.nodes().iter().filter(|n| matches!(n.op, Op::Native(_))).count();
        assert_eq!(native, 2, "{}", planned.to_text("plan"));
        let array = |n: usize, m: usize| Array::new(&[n, m], (0..n * m).map(|i| if i % 3 == 0 { -0.0 } else { i as f64 }).collect());
        for (like, y) in
            [([5, 3], [3, 3]), ([5, 3], [1, 3]), ([2, 1], [0, 1]), ([4, 2], [2, 1]), ([1, 2], [1, 2]), ([0, 2], [0, 2]), ([3, 2], [2, 2])]
        {
            let args = [array(like[0], like[1]), array(y[0], y[1])];
            let (law, found) = (run(&g, &mut EvalCx::new(), &args), run(&planned, &mut EvalCx::new(), &args));
            assert_eq!(law.map_err(|e| e.title), found.map_err(|e| e.title), "{like:?} and {y:?}");
        }
    }

    /// Slopes of a few elements, with last rows among them; the last rows of an array, flipped.
    fn slopes() -> Graph {
        let mut g = Graph::new();
        let p = g.param(Type::unknown(DType::F64, 1), Some("p"));
        let y = g.param(Type::unknown(DType::F64, 1), Some("y"));
        let k = g.param(Type::scalar(DType::F64), Some("k"));
        let (zero, first) = (g.number(DType::F64, 0.0), g.constant(Array::vector(&[7.0])));
        let (last, two, three) = (g.int(-1), g.int(2), g.int(3));
        let all = g.join_rows(&[first, y]);
        let row = g.row(all, last);
        let mut sum = g.emit(BroadcastLike {}, &[zero, p]);
        for (element, at) in [(k, last), (row, two), (k, two)] {
            sum = g.emit(IndexWrite { mode: Write::Inc, pattern: "i".into() }, &[sum, element, at]);
        }
        let have = g.emit(DimOf { axis: 0 }, &[p]);
        let have = g.minimum(have, three);
        let zeros = g.emit(BroadcastTo {}, &[zero, have]);
        let least = g.int(-3);
        let end = g.emit(Index { pattern: "s:".into() }, &[y, least]);
        let (rows, written) = (g.emit(DimOf { axis: 0 }, &[zeros]), g.emit(DimOf { axis: 0 }, &[end]));
        let start = g.sub(rows, written);
        let end = g.emit(IndexWrite { mode: Write::Inc, pattern: "s:".into() }, &[zeros, end, start]);
        let end = g.emit(Flip { axis: 0 }, &[end]);
        g.set_results([sum, end]);
        g
    }

    #[test]
    fn slopes_of_elements_and_last_rows_are_the_laws() {
        let graph = slopes();
        let planned = plan(&graph, Engine::Vm).unwrap();
        let live = planned.needed(planned.results());
        let names: Vec<&str> = planned.nodes().enumerate().filter(|(id, _)| live[id.0 as usize]).map(|(_, n)| n.op.name()).collect();
        assert_eq!(names.iter().filter(|n| **n != "const").count(), 2, "{}", planned.to_text("plan"));
        let array = |n: usize| Array::new(&[n], (0..n).map(|i| if i % 3 == 0 { -0.0 } else { i as f64 }).collect());
        for (p, y) in [(5, 4), (5, 2), (5, 0), (3, 9), (4, 1), (2, 4), (2, 1), (0, 0), (3, 0)] {
            let args = [array(p), array(y), Array::scalar(-0.0)];
            let (law, found) = (run(&graph, &mut EvalCx::new(), &args), run(&planned, &mut EvalCx::new(), &args));
            let bits = |r: Result<Vec<Array>>| r.map(|a| a.iter().map(Array::bits).collect::<Vec<_>>()).map_err(|e| e.title);
            assert_eq!(bits(law), bits(found), "{p} and {y}");
        }
    }

    #[test]
    fn a_group_is_not_put_before_what_it_reads_or_where_a_branch_may_be_left_out() {
        let mut g = Graph::new();
        let x = g.param(Type::unknown(DType::F64, 1), Some("x"));
        let (y, z) = (g.exp(x), g.number(DType::F64, 2.0));
        let sum = g.sum(y, &[0], false);
        let w = g.mul(x, sum);
        let w = g.mul(w, z);
        g.set_results([y, w]);
        let planned = plan(&g, Engine::Vm).unwrap();
        assert_eq!(maps(&planned), 2, "{}", planned.to_text("plan"));
        let args = [Array::vector(&[0.5, -1.0, 2.0])];
        assert_eq!(run(&g, &mut EvalCx::new(), &args).unwrap(), run(&planned, &mut EvalCx::new(), &args).unwrap());
        let first = g.int(0);
        let taken = g.row(x, first);
        let zero = g.number(DType::F64, 0.0);
        let taken = g.emit(Op::Elem(crate::scalar::ElemOp::Gt), &[taken, zero]);
        let left = g.log(x);
        let chosen = g.emit(crate::ir::op::IfElse {}, &[taken, y, left]);
        g.set_results([chosen]);
        assert_eq!(maps(&plan(&g, Engine::Vm).unwrap()), 2);
    }
}
