//! A program in C loads a file and computes what Rust computes.

use scan_core::prelude::*;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// `train(x, y)`, a step of descent on `w`, and `predict(x)`, over `h[t] = tanh(w·h[t−1] + x[t])`.
fn module() -> Result<Module> {
    let shared = Shared::new(Array::vector(&[0.0, 0.0]), Type::unknown(DType::F64, 1));
    let w = Var::shared(shared, Some("w"), Span::NONE);
    let (x, y) = (Var::float("x", 2), Var::float("y", 1));
    let mut step = LoopBuilder::new(LoopOptions::default())?;
    let x_t = step.sequence(&x, &[0], Some("x"))?.remove(0);
    let start = Var::constant(Array::zeros(DType::F64, &[2]), Span::NONE);
    let h = step.state(&start, &[-1], Some("h"))?.remove(0);
    let next = w.mul(&h).add(&x_t).tanh();
    let last = step.finish(&[(Some(0), next)], &[], None)?.outputs[0].row(-1);
    let loss = last.sub(&y).square().sum();
    let slope = grad_with(Some(&loss), &[w.clone()], &GradOptions::default())?.remove(0).expect("the loss depends on w");
    let after = w.sub(slope.mul(0.1));
    let train = FunctionSpec { inputs: vec![x.clone(), y], outputs: vec![loss], updates: vec![(w, after)], ..Default::default() };
    let predict = FunctionSpec { inputs: vec![x], outputs: vec![last], ..Default::default() };
    let flags = Var::input(Type::unknown(DType::Bool, 1), Some("flags"), Span::NONE);
    let negate = FunctionSpec { outputs: vec![Var::number(0.5).gt(flags.cast(DType::F64))], inputs: vec![flags], ..Default::default() };
    let mut module = Module::new();
    module.add("train", Arc::new(Function::new(train)?))?;
    module.add("predict", Arc::new(Function::new(predict)?))?;
    module.add("negate", Arc::new(Function::new(negate)?))?;
    module.add("count", Arc::new(Function::new(count()?)?))?;
    module.add("pick", Arc::new(Function::new(pick()?)?))?;
    Ok(module)
}

/// `total ← total + Σ x`, step by step.
fn count() -> Result<FunctionSpec> {
    let total = Var::shared(Shared::new(Array::scalar(0.0), Type::scalar(DType::F64)), Some("total"), Span::NONE);
    let x = Var::float("x", 1);
    let mut step = LoopBuilder::new(LoopOptions::default())?;
    let x_t = step.sequence(&x, &[0], Some("x"))?.remove(0);
    let sum = step.state(&total, &[-1], Some("sum"))?.remove(0);
    let rows = step.finish(&[(Some(0), sum.add(&x_t))], &[], None)?.outputs.remove(0);
    Ok(FunctionSpec { inputs: vec![x], outputs: vec![rows.clone()], updates: vec![(total, rows.row(-1))], ..Default::default() })
}

/// `x · [0, 1, 2, 3][i]`.
fn pick() -> Result<FunctionSpec> {
    let (x, i) = (Var::float("x", 0), Var::input(Type::scalar(DType::I64), Some("i"), Span::NONE));
    let table = Var::constant(Array::vector(&[0.0, 1.0, 2.0, 3.0]), Span::NONE);
    let found = Var::apply1(scan_core::ir::op::Index { pattern: "i".into() }, &[table, i.clone()], Span::NONE)?;
    Ok(FunctionSpec { outputs: vec![x.mul(&found)], inputs: vec![x, i], ..Default::default() })
}

/// What `serve.c` prints, computed here.
fn expected(module: &Module) -> Result<String> {
    let x = Array::new(&[6, 2], (0..12).map(|i| f64::from(i - 5) / 8.0).collect());
    let y = Array::vector(&[0.25, -0.5]);
    module.set("w", Array::vector(&[0.5, 0.25]))?;
    let mut lines = ["train", "predict", "negate", "count", "pick"].map(str::to_string).to_vec();
    let mut show = |name: &str, array: &Array| {
        let bits: String = array.bits().iter().map(|b| format!(" {b:016x}")).collect();
        lines.push(format!("{name}{bits}"));
    };
    for _ in 0..3 {
        show("train", &module.call("train", &[x.clone(), y.clone()])?[0]);
    }
    let last = module.call("predict", &[x])?.remove(0);
    show("predict", &last);
    show("w", &module.get("w")?);
    ["session", "into", "run"].iter().for_each(|name| show(name, &last));
    Ok(lines.join("\n") + "\n")
}

/// The folder in which the library was built.
fn built() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    program.ancestors().skip(1).take(2).find(|folder| folder.join("librscan.so").exists()).map(Path::to_path_buf)
}

#[test]
fn a_program_in_c_gets_the_same_bits() {
    if !cfg!(target_os = "linux") || Command::new("cc").arg("--version").output().is_err() {
        println!("not run (no C compiler)");
        return;
    }
    let library = built().expect("the shared library, which is built with this test");
    let folder = std::env::temp_dir().join(format!("rscan-ffi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let module = module().expect("a module");
    let file = folder.join("model.rscan");
    module.save(&file).expect("a file");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("serve");
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"])
        .args([here.join("include"), here.join("tests/serve.c"), "-o".into(), program.clone(), "-L".into(), library.clone()])
        .args(["-lrscan", &format!("-Wl,-rpath,{}", library.display())])
        .output()
        .expect("a compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&program).arg(&file).arg(if cfg!(feature = "jit") { "jit" } else { "vm" }).output().expect("a program");
    let error = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && error.is_empty(), "{error}");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), expected(&module).expect("results"));
    std::fs::remove_dir_all(&folder).expect("a folder that goes");
}
