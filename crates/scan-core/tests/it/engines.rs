//! Functions on their engines: plans are made once, steps allocate nothing, loops end where they should.

use crate::vm_allocations::COUNT;
use scan_core::exec::{Engine, Program};
use scan_core::ir::parse::parse;
use scan_core::prelude::*;
use scan_core::rewrite::Options;
use scan_core::types::DType;
use std::sync::Arc;

fn int(name: &str) -> Var {
    Var::input(Type::scalar(DType::I64), Some(name), Span::NONE)
}

fn function(engine: Engine, inputs: &[Var], outputs: &[Var]) -> Function {
    Function::new(FunctionSpec { inputs: inputs.to_vec(), outputs: outputs.to_vec(), engine: Some(engine), ..Default::default() })
        .unwrap_or_else(|e| panic!("{}", e.title))
}

fn call(f: &Function, args: &[Array]) -> Vec<Array> {
    f.call(&mut EvalCx::new(), args).unwrap_or_else(|e| panic!("{}", e.title))
}

/// h ← h · x + a for n steps, all rows; h, x and a have `rank` axes.
fn linear(engine: Engine, rank: usize) -> Function {
    let (h0, x, a, n) = (Var::float("h0", rank), Var::float("x", rank), Var::float("a", rank), int("n"));
    let mut step = LoopBuilder::new(LoopOptions { n_steps: Some(n.clone()), ..Default::default() }).expect("a loop");
    let h = step.state(&h0, &[-1], Some("h")).expect("a state").remove(0);
    let next = h * &x + &a;
    let rows = step.finish(&[(Some(0), next)], &[], None).expect("a loop").outputs.remove(0);
    function(engine, &[h0, x, a, n], &[rows])
}

fn args(width: usize, steps: i64) -> [Array; 4] {
    let vector = |start: f64| Array::vector(&(0..width).map(|i| start + i as f64 / 64.0).collect::<Vec<_>>());
    [vector(0.5), vector(0.25), vector(-0.125), Array::scalar(steps)]
}

#[test]
fn another_number_of_steps_needs_no_new_plan() {
    for engine in [Engine::Vm, Engine::Jit, Engine::Auto] {
        let (f, law) = (linear(engine, 1), linear(Engine::Eval, 1));
        for steps in [3, 1, 50, 700] {
            assert_eq!(call(&f, &args(5, steps)), call(&law, &args(5, steps)), "{engine:?}, {steps} steps");
        }
        assert_eq!(f.loops()[0].variants.len(), 1, "{engine:?}");
        assert_eq!(call(&f, &args(6, 4)), call(&law, &args(6, 4)));
        assert_eq!(f.loops()[0].variants.len(), 2, "{engine:?}: rows of another extent");
    }
}

#[test]
fn ten_extents_in_turn_are_compiled_once_each() {
    for engine in [Engine::Vm, Engine::Jit] {
        let (f, law) = (linear(engine, 1), linear(Engine::Eval, 1));
        let sweep = || {
            for width in (0..5).flat_map(|_| 1..=10) {
                assert_eq!(call(&f, &args(width, 3)), call(&law, &args(width, 3)), "rows of {width}");
            }
        };
        std::thread::scope(|s| {
            s.spawn(sweep);
            s.spawn(sweep);
        });
        let found = &f.loops()[0];
        assert_eq!((found.variants.len(), found.compiled), (10, 10), "{engine:?}");
        assert!(found.variants.iter().all(|v| v.engine != "eval"), "{found}");
    }
}

#[test]
fn more_extents_than_are_kept_are_compiled_again() {
    let (f, law) = (linear(Engine::Vm, 1), linear(Engine::Eval, 1));
    let check = |width| assert_eq!(call(&f, &args(width, 3)), call(&law, &args(width, 3)), "rows of {width}");
    (1..=300).for_each(check);
    let kept = f.loops()[0].variants.len();
    assert!((10..300).contains(&kept) && f.loops()[0].compiled == 300, "{kept}");
    assert!(f.loops()[0].to_string().contains(&format!("compiled for 300 extents of rows, of which the last {kept} are kept")));
    check(300);
    assert_eq!(f.loops()[0].compiled, 300, "one of the last");
    check(1);
    assert_eq!((f.loops()[0].compiled, f.loops()[0].variants.len()), (301, kept), "one of the first");
}

#[test]
fn steps_of_compiled_loops_allocate_nothing() {
    for engine in [Engine::Vm, Engine::Jit] {
        let f = linear(engine, 1);
        let counts: Vec<usize> = [40, 40, 4000, 40_000]
            .iter()
            .map(|&steps| {
                let args = args(100, steps);
                let before = COUNT.get();
                drop(call(&f, &args));
                COUNT.get() - before
            })
            .collect();
        // A call allocates its results and the plan's lists, which may come from memory that is used again.
        assert!(counts[1..].iter().all(|c| c.abs_diff(counts[1]) <= 4), "{engine:?}: {counts:?} allocations");
    }
}

#[test]
fn a_call_of_a_small_loop_allocates_little() {
    for engine in [Engine::Vm, Engine::Jit] {
        let (f, args) = (linear(engine, 1), args(20, 1));
        let count = || {
            let before = COUNT.get();
            drop(call(&f, &args));
            COUNT.get() - before
        };
        // Lists of arguments, values and results; the window of a state, its rows.
        let counts = [(); 4].map(|()| count());
        assert!(counts[3] <= 10, "{engine:?}: {counts:?} allocations");
    }
}

/// Counts up to a limit: the number of steps is known.
#[test]
fn loops_stop_at_the_step_that_says_so() {
    for engine in [Engine::Vm, Engine::Jit] {
        let (limit, n) = (int("limit"), int("n"));
        let zero = Var::constant(Array::scalar(0i64), Span::NONE);
        let mut step = LoopBuilder::new(LoopOptions { n_steps: Some(n.clone()), ..Default::default() }).expect("a loop");
        let k = step.state(&zero, &[-1], Some("k")).expect("a state").remove(0);
        let next = k + 1;
        let stop = next.gt(&limit - 1);
        let rows = step.finish(&[(Some(0), next)], &[], Some(&stop)).expect("a loop").outputs.remove(0);
        let f = function(engine, &[limit, n], &[rows]);
        let run = |limit: i64, n: i64| call(&f, &[Array::scalar(limit), Array::scalar(n)])[0].to_i64_vec();
        assert_eq!(run(3, 10), [1, 2, 3]);
        let block = f.loops()[0].variants[0].block as i64;
        assert!(block > 1000, "{block}");
        for limit in [block - 1, block, block + 1, 2 * block, 2 * block + 7] {
            let rows = run(limit, 3 * block);
            assert_eq!((rows.len() as i64, rows.last().copied()), (limit, Some(limit)), "{engine:?}: blocks of {block}");
        }
        assert_eq!(run(10 * block, 2 * block).len() as i64, 2 * block);
    }
}

/// Two loops in a step whose own steps are lists with temporaries of several sizes; of the second, it is told where it stopped.
const TWO_LOOPS: &str = "fn f(x: f64[n0, 5], counts: i64[n0], a: i64, b: f64) {
  a0 = expand[axes=[0]](a)
  r = scan n_steps=1:i64 {
    seq row = x
    seq n = counts
    state both: f64[7] reads=[] writes=[0] keep=all
    const c0 = a0
    const c1 = b
    b0 = expand[axes=[0]](c1)
    one = scan n_steps=n {
      seq none = f64[2, 3, 0]{}
      state p init=c0 reads=[0] writes=[1] keep=last(1)
      state q init=b0 reads=[0] writes=[1] keep=last(1)
      m = add(f64[3, 3]{3.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 3.0}, p)
      s, d = slogdet(m)
      next p = 1:i64
      next q = d
    }
    last = index[pattern=i](one.q, -1:i64)
    begin = expand[axes=[0]](last)
    two = scan n_steps=n {
      seq none = f64[2, 3, 0]{}
      state p init=c0 reads=[0] writes=[1] keep=last(1)
      state q init=begin reads=[0] writes=[1] keep=last(1)
      step t
      m = add(f64[3, 3]{3.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 3.0}, p)
      s, d = slogdet(m)
      done = ge(t, 1:i64)
      next p = 1:i64
      next q = d
      until done
    }
    i = expand[axes=[0]](one.steps)
    j = expand[axes=[0]](two.steps)
    all = join[axis=0](row, i, j)
    next both = all
  }
  return r.both
}";

#[test]
fn loops_that_tell_their_steps_have_temporaries_of_their_own() {
    let graph = Arc::new(parse(TWO_LOOPS).unwrap_or_else(|e| panic!("{e}")).1);
    let args = [Array::full(DType::F64, &[3, 5], 0.5), Array::full(DType::I64, &[3], 2.0), Array::scalar(4_i64), Array::scalar(0.41)];
    for engine in [Engine::Eval, Engine::Vm, Engine::Jit] {
        let program = Program::new(graph.clone(), &Options::none(), engine).unwrap_or_else(|e| panic!("{}", e.title));
        let rows = program.run(&mut EvalCx::new(), &|| args.to_vec()).unwrap_or_else(|e| panic!("{}", e.title));
        assert_eq!(rows[0].to_f64_vec()[5..], [2.0, 2.0], "{engine:?}");
    }
}

/// Five rows, of each of which no element is read: an index of one element for each row beside one of none.
const NOTHING_READ: &str = "
fn f(x: f64[4, 5, 3], i: i64[4, 5, 1, 0], h: f64[5, 2], w: f64[2, 2]) {
  %0 = expand[axes=[0]](h)
  %1 = scan n_steps=4:i64 {
    seq x = x
    seq i = i
    state h init=%0 reads=[0] writes=[1] keep=all
    state out: f64[5, 1, 0] reads=[] writes=[0] keep=all
    const w = w
    step t
    %2 = matmul(h, w)
    %3 = tanh(%2)
    %4 = mod(i, 3:i64)
    %5 = gather[axes=[0, 1]](x, i64[5, 1, 1]{0, 1, 2, 3, 4}, %4)
    next h = %3
    next out = %5
  }
  return %1.h, %1.out
}
";

#[test]
fn an_index_of_no_elements_beside_one_of_some_reads_nothing() {
    let graph = Arc::new(parse(NOTHING_READ).unwrap_or_else(|e| panic!("{e}")).1);
    let args =
        [Array::full(DType::F64, &[4, 5, 3], 0.5), Array::full(DType::I64, &[4, 5, 1, 0], 0.0), Array::full(DType::F64, &[5, 2], 0.5)];
    let args = [&args[..], &[Array::full(DType::F64, &[2, 2], 0.25)]].concat();
    let rows = [Engine::Eval, Engine::Vm, Engine::Jit].map(|engine| {
        let program = Program::new(graph.clone(), &Options::none(), engine).unwrap_or_else(|e| panic!("{}", e.title));
        program.run(&mut EvalCx::new(), &|| args.to_vec()).unwrap_or_else(|e| panic!("{}", e.title))
    });
    assert_eq!(rows[0][1].shape(), [4, 5, 1, 0]);
    assert!(rows.iter().all(|outs| outs.iter().zip(&rows[0]).all(|(a, b)| a == b)));
}

/// A loop that ends after its first step, or runs none: the last row that its steps made, in what has zeros otherwise.
const ENDS_OR_RUNS_NONE: &str = "
fn f(x: f64[1]) {
  %0 = scan n_steps=6:i64 {
    state out: f64[1] reads=[] writes=[0] keep=all
    const x = x
    step t
    %1 = mod(t, 3:i64)
    %2 = scan n_steps=%1 {
      state h init=x reads=[0] writes=[1] keep=all
      step s
      %3 = add(h, 1.0:f64)
      next h = %3
      until true
    }
    %4 = index[pattern=\"s:\"](%2.h, 1:i64)
    %5 = broadcast_like(2.5:f64, %4)
    %6 = index[pattern=\"s:\"](%5, -1:i64)
    %7 = broadcast_like(0.0:f64, x)
    %8 = dim[axis=0](%6)
    %9 = sub(1:i64, %8)
    %10 = index_write[mode=inc, pattern=\"s:\"](%7, %6, %9)
    next out = %10
  }
  return %0.out
}
";

#[test]
fn a_loop_that_ends_by_a_condition_may_run_no_step() {
    let graph = Arc::new(parse(ENDS_OR_RUNS_NONE).unwrap_or_else(|e| panic!("{e}")).1);
    for engine in [Engine::Eval, Engine::Vm, Engine::Jit] {
        let program = Program::new(graph.clone(), &Options::none(), engine).unwrap_or_else(|e| panic!("{}", e.title));
        let rows = program.run(&mut EvalCx::new(), &|| vec![Array::vector(&[0.5])]).unwrap_or_else(|e| panic!("{}", e.title));
        assert_eq!(rows[0].to_f64_vec(), [0.0, 2.5, 2.5, 0.0, 2.5, 2.5], "{engine:?}");
    }
}
