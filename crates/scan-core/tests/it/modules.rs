//! Files of functions: what is read is what was written, and what is damaged is an error.

use crate::ir_files::arguments;
use crate::sources::{Random, files, read, root, setting, short};
use crate::vm_allocations::peak;
use scan_core::expr::splice::splice;
use scan_core::ir::parse::parse;
use scan_core::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// How many files are damaged, unless the variable `RSCAN_MUTANTS` says otherwise.
const MUTANTS: u64 = 400;

/// The program of a text form as a function.
pub fn function(text: &str) -> Result<(Function, Graph)> {
    let (_, graph) = parse(text)?;
    let inputs: Vec<Var> =
        graph.params().iter().map(|&v| Var::input(graph.ty(v).clone(), graph.name(v).map(|n| &**n), Span::NONE)).collect();
    let known = graph.params().iter().copied().zip(inputs.iter().cloned()).collect();
    let outputs = splice(&graph, known, graph.results())?;
    Ok((Function::new(FunctionSpec { inputs, outputs, ..Default::default() })?, graph))
}

fn saved(f: Function) -> Vec<u8> {
    let mut module = Module::new();
    module.add("f", Arc::new(f)).unwrap_or_else(|e| panic!("{e}"));
    module.to_bytes().unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_program_of_the_text_form_survives() {
    let mut count = 0;
    for file in files("tests/ir", "ir") {
        let text = read(&file);
        let Ok((f, graph)) = function(text.split("\n===").next().unwrap_or(&text)) else { continue };
        let (before, args) = (f.graph().to_text("f"), arguments(&graph, 1));
        let first = f.call(&mut EvalCx::new(), &args).map_err(|e| e.title);
        let there = Module::from_bytes(&saved(f)).unwrap_or_else(|e| panic!("{}: {e}", short(&file)));
        let g = there.function("f").unwrap_or_else(|e| panic!("{}: {e}", short(&file)));
        assert_eq!(g.graph().to_text("f"), before, "{}", short(&file));
        assert_eq!(g.call(&mut EvalCx::new(), &args).map_err(|e| e.title), first, "{}", short(&file));
        count += 1;
    }
    assert!(count > 100, "only {count} programs");
}

/// A file with two functions, loops, a gradient, a stop, a large constant, a default value and a shared variable.
fn file() -> Vec<u8> {
    let w = Var::shared(Shared::new(Array::vector(&[0.5; 3]), Type::unknown(DType::F64, 1)), Some("w"), Span::NONE);
    let made = || -> Result<Module> {
        let (x, h0) = (Var::float("x", 2), Var::float("h0", 1));
        let mut step = LoopBuilder::new(LoopOptions::default())?;
        let x_t = step.sequence(&x, &[0], Some("x"))?.remove(0);
        let h = step.state(&h0, &[-1], Some("h"))?.remove(0);
        let next = w.mul(&h).add(&x_t).tanh();
        let stop = next.sum().gt(2.5);
        let rows = step.finish(&[(Some(0), next)], &[], Some(&stop))?.outputs.remove(0);
        let table = Var::constant(Array::vector(&(0..99).map(f64::from).collect::<Vec<_>>()), Span::new("model.py", 3, "f"));
        let loss = rows.row(-1).square().sum().add(table.sum());
        let slope = grad_with(Some(&loss), &[w.clone()], &GradOptions::default())?.remove(0).expect("the loss depends on w");
        let updates = vec![(w.clone(), w.sub(&slope))];
        let train = FunctionSpec { inputs: vec![x, h0], outputs: vec![loss], updates, ..Default::default() };
        let double = FunctionSpec { outputs: vec![w.add(&w)], ..Default::default() };
        let mut module = Module::new();
        module.add("train", Arc::new(Function::new(train)?))?.inputs[1].default = Some(Array::vector(&[0.0; 3]));
        module.add("double", Arc::new(Function::new(double)?))?.doc = Some("twice w".into());
        Ok(module)
    };
    made().and_then(|module| module.to_bytes()).unwrap_or_else(|e| panic!("{e}"))
}

/// The checksum of a file set right, as who damages files on purpose would. Bit by bit, apart from the one under test.
fn repair(bytes: &mut [u8]) {
    let key = b"\"rscan.checksum\":\"";
    let Some(at) = bytes.windows(key.len()).position(|w| w == key).map(|i| i + key.len()).filter(|at| at + 8 <= bytes.len()) else {
        return;
    };
    bytes[at..at + 8].copy_from_slice(b"00000000");
    let mut sum = u32::MAX;
    for byte in bytes.iter() {
        sum = (0..8).fold(sum ^ u32::from(*byte), |s, _| (s >> 1) ^ (0xedb8_8320 & (s & 1).wrapping_neg()));
    }
    bytes[at..at + 8].copy_from_slice(format!("{:08x}", !sum).as_bytes());
}

#[test]
fn the_checksum_is_that_of_zip_files() {
    let (mut again, bytes) = (file(), file());
    repair(&mut again);
    assert_eq!(again, bytes);
}

/// Bytes, digits, words and lengths changed, cut out, doubled, or cut off at the end.
fn damage(random: &mut Random, bytes: &mut Vec<u8>) {
    let pieces: [&[u8]; 12] =
        [b"9", b"0", b"-1", b"1000000000000", b"18446744073709551615", b"\"", b"{", b"]", b",", b"f64", b"null", b"\\n"];
    for _ in 0..1 + random.below(3) {
        // Most of the file is its header, where most damage is told apart.
        let at = random.below(bytes.len().max(1));
        let end = (at + 1 + random.below(8)).min(bytes.len());
        match random.below(7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => bytes.splice(at..at, random.pick(&pieces).iter().copied()).for_each(drop),
            3 => bytes.splice(at..end, random.pick(&pieces).iter().copied()).for_each(drop),
            4 => bytes.extend_from_within(at..end),
            5 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            _ if !bytes.is_empty() => bytes[random.below(8).min(at)] = random.bits() as u8,
            _ => {}
        }
        // Sometimes the length of the header is made to fit, so that its reader sees the rest.
        let text =
            bytes.get(8..).and_then(|rest| rest.windows(4).position(|w| w == b"}}  " || w == b"]}} ")).filter(|_| random.below(2) == 0);
        if let Some(n) = text {
            let n = (n + 8).next_multiple_of(8) as u64;
            bytes[..8].copy_from_slice(&n.to_le_bytes());
        }
    }
}

/// `RSCAN_MUTANTS=20000`: how many.
#[test]
fn damaged_files_are_errors() {
    let whole = file();
    let mut random = Random(setting("SEED", 1));
    let (mut read, mut count) = (0, 0);
    while count < setting("RSCAN_MUTANTS", MUTANTS) {
        let mut bytes = whole.clone();
        damage(&mut random, &mut bytes);
        if bytes == whole {
            continue;
        }
        count += 1;
        assert!(Module::from_bytes(&bytes).is_err(), "mutant {count} was read");
        repair(&mut bytes);
        let mut found = None;
        let held = peak(|| found = catch_unwind(AssertUnwindSafe(|| Module::from_bytes(&bytes))).ok());
        let most = 4 * bytes.len() + (64 << 20);
        assert!(held <= most, "mutant {count} of {} bytes took {held}", bytes.len());
        match found {
            None => panic!("mutant {count} panics: {}", String::from_utf8_lossy(&bytes)),
            Some(Ok(module)) => {
                read += 1;
                let names: Vec<String> = module.names().map(str::to_string).collect();
                let all = || names.iter().for_each(|name| drop(module.function(name)));
                assert!(catch_unwind(AssertUnwindSafe(all)).is_ok(), "mutant {count} panics: {}", String::from_utf8_lossy(&bytes));
            }
            Some(Err(_)) => {}
        }
    }
    assert!(read > 0, "no damaged file with a right checksum was read: the damage is too great to test much");
}

/// A file with one metadata text and as many tensors as wanted, its checksum right.
fn forged(texts: &[(&str, &str)], tensors: &str) -> Vec<u8> {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let texts: Vec<String> = texts.iter().map(|(key, text)| format!("\"{key}\":\"{}\"", quoted(text))).collect();
    let mut header = format!("{{\"__metadata__\":{{\"rscan.checksum\":\"00000000\",{}}}{tensors}}}", texts.join(","));
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    let mut bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
    repair(&mut bytes);
    bytes
}

/// Each kind of text that takes the most memory for its length.
#[test]
fn reading_takes_memory_in_proportion() {
    let signature = r#"{"functions":[],"shared":[]}"#;
    let parts = |text: &str, signature: &str| {
        forged(&[("rscan.format", "1"), ("rscan.lines", "{}"), ("rscan.signature", signature), ("rscan.text", text)], "")
    };
    let nodes: String = (0..90_000).map(|i| format!("%{}=exp(%{i})\n", i + 1)).collect();
    let tensors: String =
        (0..40_000).map(|i| format!(",\"{i}\":{{\"dtype\":\"U8\",\"shape\":[0,0,0,0,0,0,0],\"data_offsets\":[0,0]}}")).collect();
    let zeros = "0,".repeat(1 << 20);
    let hostile = [
        parts(&format!("fn f(%0: f64) {{\n{nodes}return %0\n}}\n"), signature),
        parts(&"#\n".repeat(1 << 20), signature),
        parts(&format!("fn f() {{ a = const f64[1048576]{{{zeros}}}"), signature),
        parts("", &format!(r#"{{"functions":[{{"name":"f","inputs":[{{"name":"x","dtype":"f64","shape":[{}"#, "1,".repeat(400_000))),
        parts("", &"[".repeat(900_000)),
        forged(&[("rscan.format", "1")], &tensors),
        forged(&[("rscan.format", "1")], &format!(",\"a\":{{\"shape\":[{zeros}0]}}")),
    ];
    for (i, bytes) in hostile.iter().enumerate() {
        let mut refused = false;
        let held = peak(|| refused = Module::from_bytes(bytes).is_err());
        println!("file {i}: {} bytes take {held}", bytes.len());
        assert!(refused, "file {i}");
        assert!(held <= 4 * bytes.len() + (64 << 20), "file {i} of {} bytes took {held}", bytes.len());
    }
}

#[test]
fn formats_of_other_versions_are_told() {
    for (format, code) in [("2", "E0923"), ("0", "E0923"), ("x", "E0923")] {
        let bytes = forged(&[("rscan.format", format)], "");
        assert_eq!(Module::from_bytes(&bytes).err().map(|e| e.code), Some(code));
    }
}

/// A program of one function without arguments, as a file would have it.
fn program(text: &str, output: &str) -> Vec<u8> {
    let passes = r#"{"level":"fast_run","excluding":[]}"#;
    let function =
        format!(r#"{{"name":"f","inputs":[],"outputs":[{output}],"returns":"single","shared":[],"updates":[],"passes":{passes}}}"#);
    let signature = format!(r#"{{"functions":[{function}],"shared":[]}}"#);
    forged(&[("rscan.format", "1"), ("rscan.lines", "{}"), ("rscan.signature", &signature), ("rscan.text", text)], "")
}

/// More memory than there is: of what a text claims to hold, and of what a program makes.
#[test]
fn a_million_million_elements_are_refused_at_once() {
    let output = r#"{"name":null,"dtype":"float64","shape":[1000000000000]}"#;
    let claimed = program("fn f() {\n  a = const f64[1000000000000]{1.0, 2.0}\n  return a\n}\n", output);
    let made = program("fn f() {\n  %0 = broadcast_to(1.0:f64, 1000000000000:i64)\n  return %0\n}\n", output);
    let mut codes = vec![];
    let held = peak(|| {
        codes.push(Module::from_bytes(&claimed).err().map(|e| e.code));
        codes.push(Module::from_bytes(&made).and_then(|m| m.call("f", &[])).err().map(|e| e.code));
    });
    assert_eq!(codes, [Some("E0903"), Some("E0392")]);
    assert!(held < 64 << 20, "refusing took {held} bytes");
}

/// The page of the format shows a program that this reads, and prints as it stands there.
#[test]
fn the_program_of_the_page_is_read() {
    let page = read(&root().join("docs/format.md"));
    let text = page.split("```text\nfn ").nth(1).and_then(|rest| rest.split("```").next()).expect("docs/format.md shows a program");
    let text = format!("fn {text}");
    let (name, graph) = parse(&text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(graph.to_text(&name), text);
}
