//! Calls every function of a folder of recorded calls, `replay FOLDER`, and compares results and new values of shared variables, bit by bit.
//!
//! `NAME.rscan` is a file with a function `f`; `NAME.call.safetensors` has its arguments (`argument.000`, …), results (`result.000`, …) and the
//! values that its shared variables have afterwards (`update.000`, …, in the order of its signature).

use scan_core::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

fn main() -> std::process::ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        println!("usage: replay FOLDER");
        return std::process::ExitCode::FAILURE;
    };
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "rscan")).collect();
    files.sort();
    let mut failed = 0;
    for path in &files {
        if let Err(text) = replay(path) {
            println!("{}: {text}", path.display());
            failed += 1;
        }
    }
    println!("{} functions, {failed} differ", files.len());
    if failed == 0 && !files.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

fn replay(path: &Path) -> std::result::Result<(), String> {
    let shown = |e: Box<Diagnostic>| e.to_string();
    let call = load_params(path.with_extension("call.safetensors")).map_err(shown)?;
    let module = Module::load(path).map_err(shown)?;
    let results = module.call("f", &of(&call, "argument.")).map_err(shown)?;
    let updates = &module.signature("f").map_err(shown)?.updates;
    let values = updates.iter().map(|name| module.get(name)).collect::<Result<Vec<_>>>().map_err(shown)?;
    for (found, kind) in [(results, "result."), (values, "update.")] {
        let wanted = of(&call, kind);
        // Arrays are equal where their bits are.
        if let Some(k) = (0..found.len().max(wanted.len())).find(|&k| found.get(k) != wanted.get(k)) {
            return Err(format!("{kind}{k:03} differs"));
        }
    }
    Ok(())
}

/// The arrays whose names begin so, in order.
fn of(call: &BTreeMap<String, Array>, kind: &str) -> Vec<Array> {
    call.iter().filter(|(name, _)| name.starts_with(kind)).map(|(_, array)| array.clone()).collect()
}
