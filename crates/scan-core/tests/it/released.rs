//! Files of released formats, which Python wrote: `tests/saved` of the repository says what they gave.

use crate::sources::{files, short};
use scan_core::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files of this name, one per format.
fn released(name: &str) -> Vec<PathBuf> {
    let found: Vec<PathBuf> =
        files("tests/saved", name.rsplit('.').next().unwrap_or(name)).into_iter().filter(|p| p.ends_with(name)).collect();
    assert!(!found.is_empty(), "there is no {name}");
    found
}

/// The arrays whose names begin so, in order.
fn of(all: &BTreeMap<String, Array>, start: &str) -> Vec<Array> {
    all.iter().filter(|(name, _)| name.starts_with(start)).map(|(_, a)| a.clone()).collect()
}

/// Equal types, and values but for the last bits, which depend on whether the processor multiplies and adds in one step.
fn near(found: &[Array], expected: &[Array], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (a, b) in found.iter().zip(expected) {
        assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()), "{what}");
        let bound = match a.dtype() {
            DType::F64 => 1e-10,
            DType::F32 => 1e-5,
            _ => 0.0,
        };
        let close = |(x, y): (&f64, &f64)| (x - y).abs() <= bound * y.abs();
        assert!(a.to_f64_vec().iter().zip(&b.to_f64_vec()).all(close), "{what}: {a:?} and {b:?}");
    }
}

fn loaded<T>(path: &Path, result: Result<T>) -> T {
    result.unwrap_or_else(|e| panic!("{}: {e}", short(path)))
}

#[test]
fn everything_gives_what_it_gave() {
    for path in released("everything.rscan") {
        let module = loaded(&path, Module::load(&path));
        let expected = loaded(&path, load_params(path.with_file_name("calls.safetensors")));
        let names: Vec<String> = module.names().map(str::to_string).collect();
        assert!(names.len() >= 8);
        for name in &names {
            let found = loaded(&path, module.call(name, &of(&expected, &format!("{name}.argument."))));
            near(&found, &of(&expected, &format!("{name}.result.")), name);
            let updates = &loaded(&path, module.signature(name)).updates;
            let values: Vec<Array> = updates.iter().map(|w| loaded(&path, module.get(w))).collect();
            near(&values, &of(&expected, &format!("{name}.update.")), name);
        }
        let until = loaded(&path, module.signature("until"));
        assert_eq!((until.returns, until.outputs[0].name.as_deref()), (Returns::Dict, Some("rows")));
        assert_eq!((until.inputs[0].doc.as_deref(), until.doc.is_some()), (Some("where it begins"), true));
        assert_eq!(loaded(&path, module.signature("default")).inputs[0].default, Some(Array::vector(&[1.0, 1.0])));
        let misfits = [Array::zeros(DType::F64, &[2, 3]), Array::zeros(DType::F64, &[2])];
        let error = module.call("nested", &misfits).unwrap_err();
        assert!(error.to_string().contains("test_released.py"), "with the line that it was made from: {error}");
    }
}

#[test]
fn training_goes_on() {
    for path in released("model.rscan") {
        let module = loaded(&path, Module::load(&path));
        let expected = loaded(&path, load_params(path.with_file_name("expected.safetensors")));
        let args = [expected["x"].clone(), expected["y"].clone()];
        let losses: Vec<f64> =
            (0..expected["losses"].len()).map(|_| loaded(&path, module.call("train", &args))[0].to_f64_vec()[0]).collect();
        near(&[Array::vector(&losses)], &[expected["losses"].clone()], "losses");
        near(&loaded(&path, module.call("predict", &args[..1])), &[expected["prediction"].clone()], "prediction");
    }
}

/// A snapshot lasts as long as its step stays what it was; its states are tensors all the same.
#[test]
fn sessions_go_on_or_are_refused() {
    for path in released("filter.session") {
        let (module, cx) = (loaded(&path, Module::load(path.with_file_name("everything.rscan"))), &mut EvalCx::new());
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", short(&path)));
        assert_eq!(loaded(&path, params_from_bytes(&bytes))["state.h0"], Array::vector(&[1.5]));
        let mut session = loaded(&path, module.session(cx, "filter", &[("h0", Array::scalar(0.0))]));
        match session.restore(&bytes) {
            Ok(()) => {
                assert_eq!(session.len(), 2);
                assert_eq!(loaded(&path, session.step(cx, &[Array::scalar(0.5)])), [Array::scalar(1.0)]);
            }
            Err(e) => assert_eq!(e.code, "E0534"),
        }
    }
}
