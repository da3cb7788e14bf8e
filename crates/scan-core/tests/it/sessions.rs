//! Steps of a session: no memory is taken for them; sessions of functions in files.

use crate::modules::function;
use crate::sources::Random;
use crate::vm_allocations::counted;
use scan_core::prelude::*;
use std::sync::Arc;

/// A GARCH filter of three states, a row of which each step returns.
fn garch(engine: Engine) -> Function {
    let (xs, inits) = (Var::float("xs", 1), ["mu", "v", "a"].map(|name| Var::float(name, 0)));
    let mut step = LoopBuilder::new(LoopOptions::default()).unwrap();
    let x = step.sequence(&xs, &[0], Some("x")).unwrap().remove(0);
    let [mu, v, a] = [0, 1, 2].map(|k: usize| step.state(&inits[k], &[-1], Some(["mu", "v", "a"][k])).unwrap().remove(0));
    let e = &x - &mu;
    let new_v = 0.02 + 0.1 * e.square() + 0.88 * v;
    let new_mu = mu + 0.05 * &e;
    let new_a = a * 0.9 + e.square() / &new_v;
    let outs = step.finish(&[(Some(0), new_mu), (Some(1), new_v), (Some(2), new_a)], &[], None).unwrap().outputs;
    let inputs = std::iter::once(xs).chain(inits).collect();
    Function::new(FunctionSpec { inputs, outputs: outs, engine: Some(engine), ..Default::default() }).unwrap()
}

#[test]
fn steps_in_the_callers_memory_take_none_and_make_the_rows_of_the_whole_call() {
    let (f, cx) = (garch(Engine::Jit), &mut EvalCx::new());
    let xs: Vec<f64> = (0..1000).map(|i| (i as f64 * 0.7).sin()).collect();
    let start = [0.0, 1.0, 0.5].map(|x: f64| Array::scalar(x));
    let whole = f.call(cx, &[&[Array::vector(&xs)], &start[..]].concat()).unwrap();
    let given: Vec<Option<Array>> = std::iter::once(None).chain(start.into_iter().map(Some)).collect();
    let mut session = f.session(cx, &given).unwrap();
    let mut rows = [0f64; 3];
    let mut taken = 0;
    for (t, x) in xs.iter().enumerate() {
        let [a, b, c] = &mut rows;
        let mut outs = [a, b, c].map(|x| StepRowMut::from(std::slice::from_mut(x)));
        let n = counted(|| session.step_into(cx, &[StepRow::from(std::slice::from_ref(x))], &mut outs).unwrap());
        taken += if t > 0 { n } else { 0 };
        assert!(rows.iter().zip(&whole).all(|(x, all)| x.to_bits() == all.as_slice::<f64>()[t].to_bits()), "step {t}");
    }
    assert_eq!(taken, 0, "allocations in 999 steps");
    fn sent(_: impl Send) {}
    sent(session);
}

/// A GRU, whose step is a list of products and kernels.
const GRU: &str = "fn gru(xs: f64[n0, 16], h0: f64[64], wz: f64[16, 64], wr: f64[16, 64], wh: f64[16, 64], uz: f64[64, 64], ur: f64[64, 64], uh: f64[64, 64]) {
  %0 = expand[axes=[0]](h0)
  %1 = dim[axis=0](xs)
  %2 = scan n_steps=%1 {
    seq x = xs
    state h init=%0 reads=[0] writes=[1] keep=all
    const wz = wz
    const wr = wr
    const wh = wh
    const uz = uz
    const ur = ur
    const uh = uh
    %3 = matmul(h, ur)
    %4 = matmul(x, wr)
    %5 = add(%4, %3)
    r = sigmoid(%5)
    %7 = mul(r, h)
    %8 = matmul(%7, uh)
    %9 = matmul(x, wh)
    %10 = add(%9, %8)
    new = tanh(%10)
    %12 = matmul(h, uz)
    %13 = matmul(x, wz)
    %14 = add(%13, %12)
    z = sigmoid(%14)
    %16 = sub(new, h)
    %17 = mul(z, %16)
    %18 = add(h, %17)
    next h = %18
  }
  %20 = index[pattern=\"s:\"](%2.h, 1:i64)
  return %20
}";

#[test]
fn steps_of_a_list_in_the_callers_memory_take_none() {
    let ((f, graph), cx, mut random) = (function(GRU).unwrap(), &mut EvalCx::new(), Random(7));
    let n = 50;
    let mut drawn = |ty: &Type| {
        let shape: Vec<usize> = ty.dims.iter().map(|d| d.value().unwrap_or(n)).collect();
        let count = shape.iter().product();
        Array::new(&shape, (0..count).map(|_| random.unit() / 4.0).collect::<Vec<f64>>())
    };
    let args: Vec<Array> = graph.params().iter().map(|&p| drawn(graph.ty(p))).collect();
    let whole = f.call(cx, &args).unwrap().remove(0);
    let given: Vec<Option<Array>> = std::iter::once(None).chain(args[1..].iter().cloned().map(Some)).collect();
    let mut session = f.session(cx, &given).unwrap();
    let (xs, mut h, mut taken) = (args[0].as_slice::<f64>(), [0f64; 64], 0);
    for (t, x) in xs.chunks(16).enumerate() {
        let mut outs = [StepRowMut::from(&mut h[..])];
        let count = counted(|| session.step_into(cx, &[x.into()], &mut outs).unwrap());
        taken += if t > 1 { count } else { 0 };
        let row = &whole.as_slice::<f64>()[t * 64..][..64];
        assert!(h.iter().zip(row).all(|(a, b)| a.to_bits() == b.to_bits()), "step {t}");
    }
    assert_eq!(taken, 0, "allocations in {} steps", n - 2);
}

#[test]
fn sessions_of_a_file_go_on_from_bytes() {
    let mut written = Module::new();
    written.add("filter", Arc::new(garch(Engine::from_env()))).unwrap();
    let bytes = written.to_bytes().unwrap();
    let (first, second) = (Module::from_bytes(&bytes).unwrap(), Module::from_bytes(&bytes).unwrap());
    let given = [("mu", Array::scalar(0.0)), ("v", Array::scalar(1.0)), ("a", Array::scalar(0.5))];
    let cx = &mut EvalCx::new();
    let (mut session, mut other) = (first.session(cx, "filter", &given).unwrap(), second.session(cx, "filter", &given).unwrap());
    let row = |t: i32| [Array::scalar((f64::from(t) * 0.7).sin())];
    (0..10).for_each(|t| drop(session.step(cx, &row(t)).unwrap()));
    let kept = session.snapshot().unwrap();
    other.restore(&kept).unwrap();
    assert_eq!((other.len(), other.snapshot().unwrap()), (10, kept.clone()));
    for t in 10..20 {
        assert_eq!(other.step(cx, &row(t)).unwrap(), session.step(cx, &row(t)).unwrap());
    }
    // The states are tensors that any tool reads.
    assert_eq!(params_from_bytes(&kept).unwrap()["state.mu"].shape(), [1]);
    for at in 0..kept.len() {
        let mut changed = kept.clone();
        changed[at] ^= 1;
        assert_eq!(other.restore(&changed).unwrap_err().code, "E0534", "byte {at}");
        assert_eq!(other.restore(&kept[..at]).unwrap_err().code, "E0534", "{at} bytes");
    }
    assert_eq!(other.len(), 20);
    assert_eq!(first.session(cx, "filter", &given[..2]).map(drop).unwrap_err().code, "E0532");
    assert_eq!(first.session(cx, "filter", &[("w", Array::scalar(0.0))]).map(drop).unwrap_err().code, "E0532");
    assert_eq!(first.session(cx, "other", &given).map(drop).unwrap_err().code, "E0925");
}

#[test]
fn many_sessions_step_at_once_as_each_alone() {
    let xs: Vec<f64> = (0..300).map(|i| (i as f64 * 0.3).cos()).collect();
    for engine in [Engine::Eval, Engine::Vm, Engine::Jit] {
        let (f, cx) = (garch(engine), &mut EvalCx::new());
        let mut begun = |i: usize| {
            let start = [0.0, 1.0 + i as f64, 0.5].map(|x: f64| Some(Array::scalar(x)));
            f.session(cx, &[&[None], &start[..]].concat()).unwrap()
        };
        let (mut many, mut alone): (Vec<_>, Vec<_>) = (0..300).map(|i| (begun(i), begun(i))).unzip();
        let cx = &mut EvalCx::new();
        for _ in 0..3 {
            let made = Session::step_all(cx, &mut many, &[Array::vector(&xs)]).unwrap();
            assert!(made.failed.is_empty() && made.rows.len() == 3);
            for (i, session) in alone.iter_mut().enumerate() {
                let rows = session.step(cx, &[Array::scalar(xs[i])]).unwrap();
                assert!(rows.iter().zip(&made.rows).all(|(row, all)| *row == all.row(i)), "session {i} on {engine:?}");
            }
        }
        let short = Session::step_all(cx, &mut many, &[Array::vector(&xs[1..])]).map(drop).unwrap_err();
        assert_eq!((short.code, many[0].len()), ("E0532", 3));
    }
}

#[test]
fn who_stops_a_step_of_many_sessions_learns_which_made_theirs() {
    let f = garch(Engine::Jit);
    let start = [0.0, 1.0, 0.5].map(|x: f64| Some(Array::scalar(x)));
    let mut many: Vec<Session> = (0..500).map(|_| f.session(&mut EvalCx::new(), &[&[None], &start[..]].concat()).unwrap()).collect();
    let stop = || Err(Diagnostic::new(Kind::Interrupted, "E0390", "stopped"));
    let mut cx = EvalCx::with_poll(&stop);
    std::thread::sleep(std::time::Duration::from_millis(15));
    let made = Session::step_all(&mut cx, &mut many, &[Array::zeros(DType::F64, &[500])]);
    let failed: Vec<usize> = made.unwrap().failed.iter().map(|f| f.0).collect();
    assert!(!failed.is_empty());
    assert!(many.iter().enumerate().all(|(i, session)| session.len() == usize::from(!failed.contains(&i))));
}
