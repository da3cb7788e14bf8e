//! Calls in the caller's memory: nothing is copied on the way in, nothing is kept, nothing is written where a call fails.

use crate::vm_allocations::peak;
use scan_core::prelude::*;
use scan_core::testing::build::{Leaves, scanned};
use scan_core::testing::gen_loop::generate;
use std::sync::Arc;

fn function(inputs: Vec<Var>, outputs: Vec<Var>) -> Function {
    Function::new(FunctionSpec { inputs, outputs, ..Default::default() }).unwrap_or_else(|e| panic!("{e}"))
}

/// `h[t] = tanh(w·h[t−1] + x[t])`: the last row, and the sum of the rows of x.
fn cell() -> Function {
    let (x, w) = (Var::float("x", 2), Var::float("w", 1));
    let mut step = LoopBuilder::new(LoopOptions::default()).unwrap();
    let x_t = step.sequence(&x, &[0], Some("x")).unwrap().remove(0);
    let start = Var::constant(Array::zeros(DType::F64, &[2]), Span::NONE);
    let h = step.state(&start, &[-1], Some("h")).unwrap().remove(0);
    let next = w.mul(&h).add(&x_t).tanh();
    let last = step.finish(&[(Some(0), next)], &[], None).unwrap().outputs[0].row(-1);
    let sum = x.sum();
    function(vec![x, w], vec![last, sum])
}

#[test]
fn an_argument_of_eight_megabytes_takes_no_memory() {
    let f = cell();
    let x: Vec<f64> = (0..1 << 20).map(|i| (f64::from(i) * 0.37).sin()).collect();
    let w = [0.5, 0.25];
    let (mut last, mut sum) = ([0.0; 2], 0.0);
    let mut call = || {
        let args = [View::new(&[1 << 19, 2], &x).unwrap(), View::from(&w[..])];
        f.call_into(&args, &mut [(&mut last[..]).into(), (&mut sum).into()]).unwrap_or_else(|e| panic!("{e}"));
    };
    call();
    let taken = peak(call);
    assert!(taken < 1 << 18, "{taken} bytes");
    let given = [Array::new(&[1 << 19, 2], x), Array::vector(&w)];
    let whole = f.call(&mut EvalCx::new(), &given).unwrap();
    assert_eq!((Array::vector(&last), Array::scalar(sum)), (whole[0].clone(), whole[1].clone()));
}

#[test]
fn a_result_that_is_an_argument_goes_from_one_memory_to_the_other() {
    let x = Var::float("x", 1);
    let f = function(vec![x.clone()], vec![x]);
    let (given, mut made) = ((0..1 << 20).map(f64::from).collect::<Vec<_>>(), vec![0.0; 1 << 20]);
    let taken = peak(|| f.call_into(&[(&given[..]).into()], &mut [(&mut made[..]).into()]).unwrap());
    assert!(taken < 1 << 16 && given == made, "{taken} bytes");
}

#[test]
fn random_programs_make_in_the_callers_memory_what_a_call_returns() {
    let mut compared = 0;
    for seed in 0..200 {
        let program = generate(seed);
        let leaves = Leaves::new(&program);
        let Ok(outputs) = scanned(&program, &leaves) else { continue };
        let args: Vec<Array> = program.inputs.iter().map(|i| i.value.to_array()).collect();
        for engine in [Engine::Eval, Engine::Vm, Engine::Auto] {
            let spec = FunctionSpec { inputs: leaves.inputs.clone(), outputs: outputs.clone(), engine: Some(engine), ..Default::default() };
            let Ok(f) = Function::new(spec) else { continue };
            let expected = f.call(&mut EvalCx::new(), &args);
            let mut made: Vec<Array> = match &expected {
                Ok(outs) => outs.iter().map(|a| Array::full(a.dtype(), a.shape(), 1.0)).collect(),
                Err(_) => continue,
            };
            let views: Vec<View> = args.iter().map(View::from).collect();
            let mut outs: Vec<ViewMut> = made.iter_mut().map(place).collect();
            f.call_into(&views, &mut outs).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            drop(outs);
            assert_eq!(made, expected.unwrap(), "seed {seed}, {engine:?}");
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared}");
}

/// Memory of an array.
fn place(array: &mut Array) -> ViewMut<'_> {
    let shape = array.shape().to_vec();
    scan_core::dispatch!(array.dtype(), T => ViewMut::new(&shape, array.as_mut_slice::<T>()).unwrap())
}

#[test]
fn what_outlives_a_call_is_in_memory_of_its_own() {
    let shared = Shared::new(Array::vector(&[0.0; 4]), Type::unknown(DType::F64, 1));
    let (w, x) = (Var::shared(shared.clone(), Some("w"), Span::NONE), Var::float("x", 1));
    let spec = FunctionSpec { inputs: vec![x.clone()], outputs: vec![w.clone()], updates: vec![(w, x)], ..Default::default() };
    let f = Function::new(spec).unwrap();
    let (mut given, mut before) = (vec![1.0, 2.0, 3.0, 4.0], [9.0; 4]);
    f.call_into(&[(&given[..]).into()], &mut [(&mut before[..]).into()]).unwrap();
    assert_eq!(before, [0.0; 4]);
    given.fill(-1.0);
    assert_eq!(shared.get().to_f64_vec(), [1.0, 2.0, 3.0, 4.0]);
    drop(given);
    f.call_into(&[(&[5.0; 4][..]).into()], &mut [(&mut before[..]).into()]).unwrap();
    assert_eq!((before, shared.get().to_f64_vec()), ([1.0, 2.0, 3.0, 4.0], vec![5.0; 4]));
    // Memory that does not fit the result leaves the variable as it was.
    let error = f.call_into(&[(&[6.0; 4][..]).into()], &mut [(&mut before[..3]).into()]).unwrap_err();
    assert_eq!((error.code, before, shared.get().to_f64_vec()), ("E0515", [1.0, 2.0, 3.0, 4.0], vec![5.0; 4]));
}

#[test]
fn what_does_not_fit_is_told_and_nothing_is_written() {
    let f = cell();
    let (x, w) = ([0.5; 6], [0.5, 0.25]);
    let good = || vec![View::new(&[3, 2], &x).unwrap(), View::from(&w[..])];
    let fails = |args: &[View], code: &str, text: &str| {
        let (mut last, mut sum) = ([7.0; 2], 7.0);
        let e = f.call_into(args, &mut [(&mut last[..]).into(), (&mut sum).into()]).unwrap_err();
        assert!(e.code == code && e.title.contains(text), "{e}");
        assert_eq!((last, sum), ([7.0; 2], 7.0));
    };
    fails(&good()[..1], "E0504", "takes 2 arguments, got 1");
    fails(&[View::from(&x[..]), View::from(&w[..])], "E0504", "`x` takes");
    fails(&[good()[0].clone(), View::from(&[1f32, 2.0][..])], "E0504", "`w` takes");
    fails(&[good()[0].clone(), View::from(&[1.0, 2.0, 3.0][..])], "E0201", "");
    let (mut last, mut sum, mut single, mut long) = ([7.0; 2], 7.0, [7f32; 2], [7.0; 3]);
    let e = f.call_into(&good(), &mut [(&mut last[..]).into()]).unwrap_err();
    assert_eq!((e.code, e.title.as_str()), ("E0515", "the function has 2 results, got memory for 1"));
    let e = f.call_into(&good(), &mut [(&mut single[..]).into(), (&mut sum).into()]).unwrap_err();
    assert!(e.code == "E0515" && e.title.contains("its memory is for float32 of shape (2,)"), "{e}");
    let e = f.call_into(&good(), &mut [(&mut sum).into(), (&mut last[..]).into()]).unwrap_err();
    assert_eq!(e.code, "E0515");
    let e = f.call_into(&good(), &mut [(&mut long[..]).into(), (&mut sum).into()]).unwrap_err();
    assert_eq!((e.code, e.title.as_str()), ("E0515", "result 0 has shape (2,), its memory has (3,)"));
    assert_eq!((last, sum, single, long), ([7.0; 2], 7.0, [7.0; 2], [7.0; 3]));
    assert_eq!(View::new(&[4], &x).unwrap_err().code, "E0515");
    assert_eq!(ViewMut::new(&[2, 2], &mut last).unwrap_err().code, "E0515");
}

#[test]
fn every_dtype_and_empty_memory() {
    fn check<T: Element>(values: [T; 3]) {
        let x = Var::input(Type::unknown(T::DTYPE, 1), Some("x"), Span::NONE);
        let f = function(vec![x.clone()], vec![x]);
        for n in [0, 1, 3] {
            let mut made = vec![T::default(); n];
            f.call_into(&[(&values[..n]).into()], &mut [(&mut made[..]).into()]).unwrap();
            assert_eq!(made, values[..n]);
        }
    }
    check([true, false, true]);
    check([-1i8, 2, 3]);
    check([-1i16, 2, 3]);
    check([-1i32, 2, 3]);
    check([-1i64, 2, 3]);
    check([1u8, 2, 255]);
    check([1u16, 2, 3]);
    check([1u32, 2, 3]);
    check([1u64, 2, u64::MAX]);
    check([1.5f32, -0.0, 3.0]);
    check([1.5f64, -0.0, 3.0]);
    let x = [0.0; 0];
    let (mut last, mut sum) = ([7.0; 2], 7.0);
    let args = [View::new(&[1, 2], &[0.25, 0.5]).unwrap(), View::from(&[0.0, 0.0][..])];
    cell().call_into(&args, &mut [(&mut last[..]).into(), (&mut sum).into()]).unwrap();
    assert_eq!((last, sum), ([0.25f64.tanh(), 0.5f64.tanh()], 0.75));
    assert_eq!(View::new(&[0, 5], &x).unwrap().shape(), [0, 5]);
}

#[test]
fn threads_share_an_argument() {
    let f = cell();
    let x: Vec<f64> = (0..4000).map(|i| (f64::from(i) * 0.37).sin()).collect();
    let run = |w: f64| {
        let (mut last, mut sum) = ([0.0; 2], 0.0);
        let w = [w, -w];
        let args = [View::new(&[2000, 2], &x).unwrap(), View::from(&w[..])];
        f.call_into(&args, &mut [(&mut last[..]).into(), (&mut sum).into()]).unwrap();
        (last, sum)
    };
    let alone: Vec<_> = (0..8).map(|k| run(f64::from(k) / 8.0)).collect();
    let run = &run;
    let together: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|k| scope.spawn(move || (0..20).map(|_| run(f64::from(k) / 8.0)).next_back().unwrap())).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(alone, together);
}

#[test]
fn functions_of_files_by_names_and_by_types() {
    let mut module = Module::new();
    module.add("cell", Arc::new(cell())).unwrap();
    let module = Module::from_bytes(&module.to_bytes().unwrap()).unwrap();
    let (x, w) = (Array::new(&[3, 2], vec![0.5, -0.5, 1.0, 2.0, 0.25, 0.0]), [0.5, 0.25]);
    let expected = module.call("cell", &[x.clone(), Array::vector(&w)]).unwrap();
    let (mut last, mut sum) = ([0.0; 2], 0.0);
    module.call_into("cell", &[(&x).into(), (&w[..]).into()], &mut [(&mut last[..]).into(), (&mut sum).into()]).unwrap();
    assert_eq!((Array::vector(&last), Array::scalar(sum)), (expected[0].clone(), expected[1].clone()));
    let typed = module.typed::<(Array, Vec<f64>), (Vec<f64>, f64)>("cell").unwrap();
    let (mut last, mut sum) = ([0.0; 2], 0.0);
    typed.call_into((x.clone(), &w), (&mut last, &mut sum)).unwrap();
    assert_eq!((Array::vector(&last), Array::scalar(sum)), (expected[0].clone(), expected[1].clone()));
    assert_eq!(typed.call_into((x, &w), (&mut last[..1], &mut sum)).unwrap_err().code, "E0515");
    assert_eq!(module.call_into("none", &[], &mut []).unwrap_err().code, "E0925");
    let json = module.signature_json("cell").unwrap();
    let input = r#"{"name":"x","dtype":"float64","shape":["n0","n1"]}"#;
    assert!(json.starts_with(r#"{"name":"cell","inputs":["#) && json.contains(input), "{json}");
}

#[cfg(feature = "bytemuck")]
#[test]
fn bytes_are_looked_at_before_they_are_elements() {
    let words = [1.5f64, -2.0, 3.0];
    let bytes: Vec<u64> = words.iter().map(|x| x.to_bits()).collect();
    let aligned = View::from_pods::<f64, _>(&[3], &bytes).unwrap();
    assert_eq!(aligned.copied().to_f64_vec(), words);
    let raw = aligned.bytes();
    assert_eq!(View::from_bytes(DType::F64, &[3, 1], raw).unwrap().shape(), [3, 1]);
    for (dtype, shape, bytes) in [(DType::F64, vec![2], &raw[..20]), (DType::F64, vec![2], &raw[1..17]), (DType::F64, vec![2], raw)] {
        assert_eq!(View::from_bytes(dtype, &shape, bytes).unwrap_err().code, "E0515");
    }
    assert_eq!(View::from_bytes(DType::Bool, &[3], &[0, 1, 1]).unwrap().dtype(), DType::Bool);
    assert_eq!(View::from_bytes(DType::Bool, &[3], &[0, 1, 2]).unwrap_err().code, "E0515");
    let x = Var::float("x", 1);
    let f = function(vec![x.clone()], vec![x.add(&x)]);
    let mut made = [[0f64; 3]];
    f.call_into(&[aligned], &mut [ViewMut::from_pods::<f64, _>(&[3], &mut made).unwrap()]).unwrap();
    assert_eq!(made, [[3.0, -4.0, 6.0]]);
    let mut memory = [0u64; 3];
    let room = unsigned(&mut memory);
    f.call_into(&[(&words[..]).into()], &mut [ViewMut::from_bytes(DType::F64, &[3], room).unwrap()]).unwrap();
    assert_eq!(memory.map(f64::from_bits), [3.0, -4.0, 6.0]);
}

#[cfg(feature = "bytemuck")]
fn unsigned(words: &mut [u64]) -> &mut [u8] {
    bytemuck::cast_slice_mut(words)
}

#[cfg(feature = "ndarray")]
#[test]
fn views_of_ndarray_are_borrowed_where_they_lie_in_order() {
    let x = ndarray::Array2::from_shape_fn((3, 2), |(i, j)| i as f64 - 0.5 * j as f64);
    assert_eq!(View::try_from(x.view()).unwrap().shape(), [3, 2]);
    let refused = View::try_from(x.t()).unwrap_err();
    assert!(refused.code == "E0515" && refused.helps[0].contains("as_standard_layout"), "{refused}");
    assert_eq!(View::try_from(x.slice(ndarray::s![.., 0])).unwrap_err().code, "E0515");
    let mut module = Module::new();
    module.add("cell", Arc::new(cell())).unwrap();
    let typed = module.typed::<(ndarray::Array2<f64>, ndarray::Array1<f64>), (ndarray::Array1<f64>, f64)>("cell").unwrap();
    let w = ndarray::Array1::from_vec(vec![0.5, 0.25]);
    let (mut last, mut sum) = (ndarray::Array1::zeros(2), 0.0);
    typed.call_into((x.view(), w.view()), (last.view_mut(), &mut sum)).unwrap();
    assert_eq!((last, sum), typed.call((x.view(), w.view())).unwrap());
    let mut wide = ndarray::Array2::zeros((2, 2));
    let error = typed.call_into((x.view(), w.view()), (wide.column_mut(0), &mut sum)).unwrap_err();
    assert_eq!(error.code, "E0515");
}

#[test]
fn numbers_are_called_by_an_address_and_by_a_list() {
    let (x, y) = (Var::float("x", 0), Var::float("y", 0));
    let f = Arc::new(function(vec![x.clone(), y.clone()], vec![x.mul(&y).tanh()]));
    let entry = EntryPoint::new(f.clone(), vec![]).unwrap();
    assert_eq!((entry.params(), entry.result()), (&[DType::F64, DType::F64][..], DType::F64));
    assert_eq!(entry.address().is_ok(), cfg!(feature = "jit"));
    let fixed = EntryPoint::new(f.clone(), vec![None, Some(Array::scalar(2.0))]).unwrap();
    assert_eq!(fixed.params(), [DType::F64]);
    assert_eq!(EntryPoint::new(f, vec![None]).err().map(|e| e.code), Some("E0504"));
    let two = Arc::new(function(vec![x.clone(), y.clone()], vec![x, y]));
    let error = EntryPoint::new(two, vec![]).err().expect("two results");
    assert_eq!((error.code, error.title.as_str()), ("E0541", "the function has no address: it has 2 results"));
}
