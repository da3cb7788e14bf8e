use super::*;
use crate::base::Span;
use crate::expr::gradient::grad_with;
use crate::expr::{GradOptions, LoopBuilder, LoopOptions};
use crate::ir::{EvalCx, Op};
use crate::types::{DType, Type};

fn call(f: &Function, args: &[Array]) -> Vec<Array> {
    f.call(&mut EvalCx::new(), args).unwrap()
}

fn linspace(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * 0.37).sin()).collect()
}

/// `h[t] = tanh(w·h[t−1] + x[t])` with a loss against a table that is a large constant, and a step of gradient descent on w.
fn train() -> (Function, Shared) {
    let w = Shared::new(Array::vector(&linspace(5)), Type::unknown(DType::F64, 1));
    let leaf = Var::shared(w.clone(), Some("w"), Span::NONE);
    let (xs, h0) = (Var::float("xs", 2), Var::float("h0", 1));
    let mut step = LoopBuilder::new(LoopOptions::default()).unwrap();
    let x_t = step.sequence(&xs, &[0], Some("x")).unwrap().remove(0);
    let h_tm1 = step.state(&h0, &[-1], Some("h")).unwrap().remove(0);
    let h_t = leaf.mul(&h_tm1).add(&x_t).tanh();
    let h = step.finish(&[(Some(0), h_t)], &[], None).unwrap().outputs.remove(0);
    let table = Var::constant(Array::new(&[20, 5], linspace(100)), Span::NONE);
    let loss = h.sub(&table).square().sum();
    let slope = grad_with(Some(&loss), &[leaf.clone()], &GradOptions::default()).unwrap().remove(0).unwrap();
    let after = leaf.sub(slope.mul(0.01));
    let spec = FunctionSpec { inputs: vec![xs, h0], outputs: vec![loss], updates: vec![(leaf, after)], ..Default::default() };
    (Function::new(spec).unwrap(), w)
}

fn arguments() -> [Array; 2] {
    [Array::new(&[20, 5], linspace(100)), Array::vector(&[0.1; 5])]
}

#[test]
fn training_goes_on_where_it_was() {
    let (f, w) = train();
    let mut module = Module::new();
    module.add("train", Arc::new(f)).unwrap().doc = Some("one step".into());
    let f = module.function("train").unwrap();
    (0..3).for_each(|_| _ = call(&f, &arguments()));
    let bytes = module.to_bytes().unwrap();
    assert_eq!(bytes, module.to_bytes().unwrap());
    let there = Module::from_bytes(&bytes).unwrap();
    let g = there.function("train").unwrap();
    for _ in 0..4 {
        assert_eq!(call(&f, &arguments()), call(&g, &arguments()));
    }
    assert_eq!(there.get("w").unwrap(), w.get());
    assert_eq!(there.to_bytes().unwrap(), module.to_bytes().unwrap(), "what was loaded is saved as it was");
    let s = there.signature("train").unwrap();
    assert_eq!((s.doc.as_deref(), &s.shared[..], &s.updates[..]), (Some("one step"), &["w".to_string()][..], &["w".to_string()][..]));
    assert_eq!((s.inputs[0].name.as_deref(), s.inputs[0].axes.len()), (Some("xs"), 2));
    assert_eq!(there.graph_text("train").matches("const tensor").count(), 1, "{}", there.graph_text("train"));
}

impl Module {
    /// The text of a function as a file has it.
    fn graph_text(&self, name: &str) -> String {
        crate::ir::print::print_with(&self.entry(name).unwrap().graph, name, &mut |a| (a.len() > 64).then(|| "t".into()))
    }
}

#[test]
fn functions_share_variables() {
    let (f, w) = train();
    let leaf = f.updated_leaves()[0].clone();
    let spec = FunctionSpec { outputs: vec![leaf.mul(2.0)], ..Default::default() };
    let mut module = Module::new();
    module.add("train", Arc::new(f)).unwrap();
    module.add("double", Arc::new(Function::new(spec).unwrap())).unwrap();
    assert_eq!(module.shared().count(), 1);
    let there = Module::from_bytes(&module.to_bytes().unwrap()).unwrap();
    call(&there.function("train").unwrap(), &arguments());
    let now = there.get("w").unwrap();
    assert_ne!(now, w.get());
    assert_eq!(call(&there.function("double").unwrap(), &[])[0].to_f64_vec(), now.to_f64_vec().iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    there.set("w", Array::vector(&[0.0; 5])).unwrap();
    assert_eq!(call(&there.function("double").unwrap(), &[])[0], Array::vector(&[0.0; 5]));
}

#[test]
fn what_does_not_fit_is_an_error() {
    let (f, _) = train();
    let mut module = Module::new();
    let f = Arc::new(f);
    module.add("train", f.clone()).unwrap();
    assert_eq!(module.add("train", f.clone()).unwrap_err().code, "E0926");
    assert_eq!(module.add("", f).unwrap_err().code, "E0926");
    assert_eq!(module.function("predict").err().unwrap().code, "E0925");
    assert_eq!(module.get("b").unwrap_err().code, "E0925");
    assert_eq!(module.set("w", Array::scalar(1.0)).unwrap_err().code, "E0506");
    assert_eq!(Module::load("/nowhere/at/all").err().unwrap().code, "E0921");
    assert_eq!(module.save("/nowhere/at/all").unwrap_err().code, "E0921");
    assert_eq!(Module::from_bytes(b"").err().unwrap().code, "E0922");
    let weights = params_to_bytes(&[("w".to_string(), Array::scalar(1.0))].into()).unwrap();
    assert_eq!(Module::from_bytes(&weights).err().unwrap().code, "E0922");
}

#[test]
fn files_are_replaced_as_a_whole() {
    let folder = std::env::temp_dir().join(format!("rscan-module-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("weights.safetensors");
    let weights = |x: f64| [("w".to_string(), Array::scalar(x)), ("n".to_string(), Array::vector(&[1i32, -2]))].into();
    save_params(&path, &weights(1.0)).unwrap();
    save_params(&path, &weights(2.0)).unwrap();
    assert_eq!(load_params(&path).unwrap(), weights(2.0));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");
    assert_eq!(save_params(&path, &[("__metadata__".to_string(), Array::scalar(1.0))].into()).unwrap_err().code, "E0926");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn modules_go_from_thread_to_thread() {
    fn sent<T: Send + Sync>() {}
    sent::<Module>();
    sent::<Arc<Function>>();
    sent::<Typed<(Vec<f64>,), (Array,)>>();
}

#[test]
fn types_of_rust_are_compared_once() {
    let (n, xs) = (Var::input(Type::scalar(DType::I64), Some("n"), Span::NONE), Var::float("xs", 1));
    let twice = xs.mul(2.0);
    let spec = FunctionSpec { inputs: vec![xs, n.clone()], outputs: vec![twice.sum(), twice, n], ..Default::default() };
    let mut module = Module::new();
    module.add("f", Arc::new(Function::new(spec).unwrap())).unwrap();
    let f = module.typed::<(Vec<f64>, i64), (f64, Vec<f64>, i64)>("f").unwrap();
    assert_eq!(f.call((&[1.0, 2.5], 7)).unwrap(), (7.0, vec![2.0, 5.0], 7));
    let any = module.typed::<(Array, i64), (f64, Array, Array)>("f").unwrap();
    assert_eq!(any.call((Array::foreign(&[1], vec![0.5]), 1)).unwrap().1, Array::vector(&[1.0]));
    let code = |r: Result<()>| r.unwrap_err().title;
    assert!(code(module.typed::<(Vec<f64>,), (f64, Vec<f64>, i64)>("f").map(drop)).contains("2 arguments, not 1"));
    assert!(code(module.typed::<(Vec<f32>, i64), (f64, Vec<f64>, i64)>("f").map(drop)).contains("argument 0 `xs`"));
    assert!(code(module.typed::<(Vec<f64>, i64), (Vec<f64>, Vec<f64>, i64)>("f").map(drop)).contains("result 0"));
    let mut place = [0.0; 2];
    module.call("f", &[Array::vector(&[1.0, 2.0]), Array::scalar(0i64)]).unwrap()[1].copy_to(&mut place).unwrap();
    assert_eq!(place, [2.0, 4.0]);
    assert_eq!(Array::scalar(1.0).copy_to(&mut place).unwrap_err().code, "E0515");
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_of_ndarray_are_arguments_and_results() {
    let x = Var::float("x", 2);
    let spec = FunctionSpec { inputs: vec![x.clone()], outputs: vec![x.add(&x)], ..Default::default() };
    let mut module = Module::new();
    module.add("f", Arc::new(Function::new(spec).unwrap())).unwrap();
    let f = module.typed::<(ndarray::Array2<f64>,), (ndarray::Array2<f64>,)>("f").unwrap();
    let x = ndarray::arr2(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let (out,) = f.call((x.t(),)).unwrap();
    assert_eq!(out, ndarray::arr2(&[[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]));
    assert!(module.typed::<(ndarray::Array1<f64>,), (ndarray::Array2<f64>,)>("f").is_err());
}

#[test]
fn errors_show_the_lines_of_the_program() {
    let folder = std::env::temp_dir().join(format!("rscan-lines-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("lines.py");
    std::fs::write(&source, "import rscan\n\nz = x + y\n").unwrap();
    let (x, y) = (Var::float("x", 1), Var::float("y", 1));
    let sum =
        Var::apply1(Op::Elem(crate::scalar::ElemOp::Add), &[x.clone(), y.clone()], Span::new(&source.to_string_lossy(), 3, "")).unwrap();
    let spec = FunctionSpec { inputs: vec![x, y], outputs: vec![sum], ..Default::default() };
    let mut module = Module::new();
    module.add("f", Arc::new(Function::new(spec).unwrap())).unwrap();
    let bytes = module.to_bytes().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let there = Module::from_bytes(&bytes).unwrap();
    let error = there.call("f", &[Array::vector(&[1.0, 2.0]), Array::vector(&[1.0, 2.0, 3.0])]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("lines.py:3") && text.contains("3 | z = x + y"), "{text}");
    assert_eq!(there.to_bytes().unwrap(), bytes, "lines are kept");
}

#[test]
fn users_ops_are_found_by_their_names() {
    use crate::ir::op::{Arg, ExternOp, ExternRef, Outs};
    struct Double;
    impl ExternOp for Double {
        fn key(&self) -> &str {
            "double"
        }
        fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
            Ok(std::iter::once(ins[0].ty.clone()).collect())
        }
        fn eval(&self, ins: &[Array]) -> Result<Outs<Array>> {
            Ok(std::iter::once(Array::vector(&ins[0].to_f64_vec().iter().map(|x| 2.0 * x).collect::<Vec<_>>())).collect())
        }
    }
    let x = Var::float("x", 1);
    let op = ExternRef(Arc::new(Double));
    let y = Var::apply1(Op::Extern(op.clone()), &[x.clone()], Span::NONE).unwrap();
    let mut module = Module::new();
    let spec = FunctionSpec { inputs: vec![x], outputs: vec![y], ..Default::default() };
    module.add("f", Arc::new(Function::new(spec).unwrap())).unwrap();
    let bytes = module.to_bytes().unwrap();
    let error = Module::from_bytes(&bytes).err().unwrap();
    assert!(error.code == "E0905" && error.title.contains("`double`"), "{error}");
    assert!(error.helps.iter().any(|h| h.contains("rs.load(path, ops=")), "{error}");
    let there = Module::from_bytes_with(&bytes, &[op.clone()]).unwrap();
    assert_eq!(there.call("f", &[Array::vector(&[1.5])]).unwrap()[0], Array::vector(&[3.0]));
    // Who finds the op learns what the file says that it gives.
    let asked = std::cell::RefCell::new(vec![]);
    let find = |key: &str, types: &[Type]| {
        asked.borrow_mut().push((key.to_string(), types.iter().map(|ty| (ty.dtype, ty.rank())).collect::<Vec<_>>()));
        Some(op.clone())
    };
    Module::from_bytes_finding(&bytes, &find).unwrap();
    assert_eq!(asked.into_inner(), [("double".to_string(), vec![(DType::F64, 1)])]);
}

#[test]
fn what_python_prints_is_handed_on() {
    let x = Var::float("x", 1);
    let op = |key: &str| Op::Extern(prints::passing(key).unwrap());
    let shown = Var::apply1(op("print[\"x is\"]"), &[x.clone()], Span::NONE).unwrap();
    let cost = shown.square().sum();
    let slope = grad_with(Some(&cost), std::slice::from_ref(&x), &GradOptions::default()).unwrap().remove(0).unwrap();
    let mut module = Module::new();
    let spec = FunctionSpec { inputs: vec![x], outputs: vec![shown, slope], ..Default::default() };
    module.add("f", Arc::new(Function::new(spec).unwrap())).unwrap();
    let there = Module::from_bytes(&module.to_bytes().unwrap()).unwrap();
    assert!(there.graph_text("f").contains("extern \"print[\\\"x is\\\"]\""), "{}", there.graph_text("f"));
    assert_eq!(there.call("f", &[Array::vector(&[1.5])]).unwrap(), [Array::vector(&[1.5]), Array::vector(&[3.0])]);
    assert!(prints::passing("printer").is_none());
}

#[test]
fn what_is_in_a_file_is_told() {
    let (f, _) = train();
    let mut module = Module::new();
    let signature = module.add("train", Arc::new(f)).unwrap();
    signature.doc = Some("One step.".into());
    signature.inputs[0].doc = Some("what is observed".into());
    signature.outputs[0].doc = Some("before the step".into());
    assert!(module.origin().is_none() && !module.describe().contains("format"));
    let bytes = module.to_bytes().unwrap();
    let there = Module::from_bytes(&bytes).unwrap();
    let told = there.describe();
    let version = env!("CARGO_PKG_VERSION");
    for line in [
        &format!("format 1, written by rscan {version}, {} bytes", bytes.len()),
        "  One step.",
        "  xs: what is observed",
        "  return: before the step",
        "  w: float64 (5,), 40 bytes",
        "  float64 (20, 5), 800 bytes",
        "1 functions, 40 bytes in shared variables, 800 bytes in constants",
    ] {
        assert!(told.lines().any(|l| l == line), "{line}\n{told}");
    }
    assert_eq!(there.origin().map(|o| (o.format, o.bytes)), Some((1, bytes.len())));
}
