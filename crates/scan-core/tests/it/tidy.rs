//! The rules of the house that no compiler checks.

mod circles;

use crate::sources::{files, read, root, short};
use std::collections::BTreeSet;

const SRC: &str = "crates/scan-core/src";

/// Who may use whom: a folder of `src` may use those listed and all that those may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("types", &["base"]),
    ("scalar", &["types"]),
    ("ir", &["scalar"]),
    ("ops", &["ir"]),
    ("scan", &["ops"]),
    ("eval", &["scan"]),
    ("grad", &["rewrite"]),
    ("rewrite", &["eval"]),
    ("expr", &["grad"]),
    ("kernel", &["scalar"]),
    ("plan", &["kernel", "eval"]),
    ("lower", &["plan"]),
    ("backend", &["kernel"]),
    ("exec", &["expr", "rewrite", "lower", "backend"]),
    ("module", &["exec"]),
    ("testing", &["module"]),
    ("prelude", &["testing"]),
    ("lib", &["testing"]),
];

/// Arrows against the stream, each with the reason why there is no other way.
const KNOTS: &[(&str, &str, &str)] = &[
    ("ops/scan_op.rs", "scan", "the loop's row of the op table forwards to the folder that knows loops"),
    ("scan/step.rs", "eval", "a step of a loop is a walk of its body"),
    ("scan/vjp.rs", "grad", "the gradient of a loop contains the gradient of its body"),
    ("scan/jvp.rs", "grad", "so do its tangents those of its body"),
    ("scan/inner.rs", "grad", "which functions have derivatives that compare is asked of their derivatives"),
];

/// Files that may be longer than 500 lines.
const LONG_FILES: &[(&str, &str)] = &[("ir/op.rs", "THE op table"), ("scalar/rows.rs", "THE elementwise table")];

/// Folders and files in which `unsafe` is allowed.
const UNSAFE: &[(&str, &str)] = &[
    ("backend/cpu/", "SIMD and machine code"),
    ("backend/cuda/", "a foreign interface"),
    ("backend/wgpu/", "a foreign interface"),
    ("scalar/called", "functions compiled for the vectors of the processor"),
    ("scalar/four.rs", "registers of the processor"),
    ("scalar/fast.rs", "functions compiled for processors with fma"),
    ("scalar/eights.rs", "registers of the processor"),
    ("scalar/fourier/few.rs", "registers of the processor"),
    ("scalar/fourier/mod.rs", "registers of the processor"),
    ("scalar/product/", "registers of the processor, and places in three matrices"),
    ("scalar/slices.rs", "loops compiled for the vectors of the processor"),
    ("types/lent.rs", "memory that a caller lends for a call"),
    ("types/zeroed.rs", "cleared memory, which vectors get without a way to refuse it"),
];

/// Functions outside of `ops/` and `ir/` that tell three or more ops apart, each with the reason. Whatever else a pass wants to know of an
/// op it asks the op (`ops/properties.rs`, `OpDef`).
const BY_OP: &[(&str, &str, &str)] = &[
    ("lower/cost.rs", "scalar", "what each instruction of a kernel takes"),
    ("lower/inner.rs", "lowered", "loops to lower, lists that stay, extents that are known by then"),
    ("lower/lengths.rs", "length", "ops whose first extent is a function of integers"),
    ("lower/rooms/mod.rs", "of_rows", "what ops make of rows whose number is an integer of the step"),
    ("lower/forms.rs", "form", "how a kernel computes each op"),
    ("lower/fusions.rs", "fold", "the folds that a kernel of several axes has"),
    ("lower/stepwise/kinds.rs", "rows", "rows of all steps at once, beside those of `rowwise`"),
    ("lower/stepwise/kinds.rs", "cut_inputs", "the same, backwards"),
    ("lower/stepwise/body.rs", "rows_node", "what a row of each is made of"),
    ("lower/stepwise/body.rs", "rowwise", "which ops take rows without their axis"),
    ("rewrite/loops/rows.rs", "derived", "the form of an extent, op by op"),
    ("rewrite/loops/readers.rs", "reading", "the ways to read a loop's rows"),
    ("rewrite/loops/tails.rs", "last", "the last rows without the others, op by op"),
    ("rewrite/passes/linalg_share.rs", "kind_of", "the three that factorise the same matrix"),
    ("rewrite/passes/stacks.rs", "made_by", "functions that are computed of each stacked array"),
    ("rewrite/passes/stacks.rs", "along", "reductions that are functions of stacked arrays"),
    ("rewrite/passes/stacks.rs", "of", "each of those functions"),
    ("rewrite/passes/scan_hoist_seq.rs", "products", "which operands of each product are rows"),
    ("exec/native/padded.rs", "of", "a pattern of ops"),
    ("exec/native/tail.rs", "parts", "a pattern of ops"),
];

const MAX_FUNCTION: usize = 100;
const MAX_FILE: usize = 500;

/// One source file of the core.
struct Source {
    /// Path below `src`.
    path: String,
    /// Its text.
    text: String,
    /// The same lines without comments and test modules (left blank).
    code: Vec<String>,
}

fn sources() -> Vec<Source> {
    let all: Vec<(String, String)> = files(SRC, "rs").iter().map(|f| (short(f)[SRC.len() + 1..].to_string(), read(f))).collect();
    let tests: Vec<String> = all.iter().flat_map(|(path, text)| test_files(path, text)).collect();
    let kept = all.into_iter().filter(|(path, _)| !tests.contains(path));
    kept.map(|(path, text)| Source { code: code(&text), path, text }).collect()
}

/// Files that a file declares as test modules.
fn test_files(path: &str, text: &str) -> Vec<String> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let inner =
        if ["mod.rs", "lib.rs"].contains(&file) { folder.to_string() } else { format!("{folder}/{}", file.trim_end_matches(".rs")) };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declared = lines.windows(2).filter(|w| w[0] == "#[cfg(test)]").filter_map(|w| module(w[1])?.strip_suffix(';').map(str::to_string));
    declared.map(|name| format!("{inner}/{name}.rs").trim_start_matches('/').to_string()).collect()
}

fn module(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
    line.strip_prefix("mod ")
}

/// Lines without comments; those of test modules are blank.
fn code(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<String> = vec![];
    let mut end: Option<String> = None;
    for (i, line) in lines.iter().enumerate() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let starts = i > 0 && lines[i - 1].trim() == "#[cfg(test)]" && line.ends_with('{');
        if starts && end.is_none() {
            end = Some(format!("{indent}}}"));
        }
        let skip = end.is_some();
        if end.as_deref() == Some(*line) {
            end = None;
        }
        out.push(if skip { String::new() } else { without_comment(line) });
    }
    out
}

/// A line up to `//` outside of quotes.
fn without_comment(line: &str) -> String {
    let (mut quoted, mut escaped) = (false, false);
    let bytes = line.as_bytes();
    for i in 0..bytes.len() {
        match bytes[i] {
            b'"' if !(escaped || i > 0 && bytes[i - 1] == b'\'') => quoted = !quoted,
            b'/' if !quoted && bytes.get(i + 1) == Some(&b'/') => return line[..i].to_string(),
            _ => {}
        }
        escaped = bytes[i] == b'\\' && !escaped;
    }
    line.to_string()
}

fn report(what: &str, offenders: Vec<String>) {
    assert!(offenders.is_empty(), "{what}:\n  {}\n", offenders.join("\n  "));
}

/// All folders that a folder may use.
fn allowed(folder: &str) -> BTreeSet<&'static str> {
    let direct = ARROWS.iter().find(|a| a.0 == folder).map_or(&[][..], |a| a.1);
    direct.iter().flat_map(|&d| allowed(d).into_iter().chain([d])).collect()
}

#[test]
fn arrows_point_down() {
    let mut offenders = vec![];
    for source in sources() {
        let folder = source.path.split(['/', '.']).next().unwrap_or("");
        let known = |name: &str| ARROWS.iter().any(|a| a.0 == name);
        if !known(folder) {
            offenders.push(format!("{}: folder `{folder}` is not in the table of arrows", source.path));
        }
        let (may, knots) = (allowed(folder), KNOTS.iter().filter(|k| k.0 == source.path).map(|k| k.1).collect::<Vec<_>>());
        for (i, line) in source.code.iter().enumerate() {
            let used = line
                .match_indices("crate::")
                .filter(|(at, _)| *at == 0 || !line[..*at].ends_with('$'))
                .map(|(at, m)| word(&line[at + m.len()..]));
            for used in used.filter(|u| known(u) && *u != folder && !may.contains(u) && !knots.contains(u)) {
                offenders.push(format!("{}:{}: `{folder}` may not use `{used}`", source.path, i + 1));
            }
        }
    }
    report("arrows that point up (the table is ARROWS in tests/it/tidy.rs)", offenders);
}

#[test]
fn knots_are_needed() {
    let sources = sources();
    let used = |path: &str, folder: &str| {
        sources.iter().any(|s| {
            s.path == path && s.code.iter().any(|l| l.contains(&format!("crate::{folder}::")) || l.contains(&format!("crate::{folder};")))
        })
    };
    let stale: Vec<String> = KNOTS.iter().filter(|k| !used(k.0, k.1)).map(|k| format!("{} no longer uses {}", k.0, k.1)).collect();
    report("exceptions that can go", stale);
}

fn word(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
}

#[test]
fn files_and_functions_are_short() {
    let mut offenders = vec![];
    for source in sources() {
        let lines = source.text.lines().count();
        if lines > MAX_FILE && !LONG_FILES.iter().any(|l| l.0 == source.path) {
            offenders.push(format!("{}: {lines} lines, at most {MAX_FILE}", source.path));
        }
        let functions = function_lengths(&source.text).into_iter().filter(|f| f.2 > MAX_FUNCTION);
        offenders
            .extend(functions.map(|(line, name, len)| format!("{}:{line}: `{name}` has {len} lines, at most {MAX_FUNCTION}", source.path)));
    }
    for file in files("python", "py") {
        let lines = read(&file).lines().count();
        if lines > MAX_FILE {
            offenders.push(format!("{}: {lines} lines, at most {MAX_FILE}", short(&file)));
        }
    }
    report("too long", offenders);
}

/// Line, name and length of each function, by the indentation that rustfmt gives.
fn function_lengths(text: &str) -> Vec<(usize, String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = vec![];
    for (i, line) in lines.iter().enumerate() {
        let rest = line.trim_start();
        let indent = &line[..line.len() - rest.len()];
        let head =
            ["pub ", "pub(crate) ", "pub(super) ", "const ", "unsafe ", "async "].iter().fold(rest, |r, p| r.strip_prefix(p).unwrap_or(r));
        let Some(name) = head.strip_prefix("fn ").map(word) else { continue };
        let close = format!("{indent}}}");
        let end = (i..lines.len())
            .find(|&k| lines[k] == close || (lines[k].ends_with(';') && lines[k].starts_with(&format!("{indent})"))))
            .unwrap_or(i);
        if !line.ends_with('}') && !line.ends_with(';') {
            found.push((i + 1, name.to_string(), end - i + 1));
        }
    }
    found
}

/// Names behind `Op::` in some lines, without that of all elementwise functions and constants of the type.
fn ops_named(lines: &[String]) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for line in lines {
        let at = line.match_indices("Op::").filter(|(at, _)| !line[..*at].ends_with(|c: char| c.is_alphanumeric()));
        found.extend(at.map(|(at, m)| word(&line[at + m.len()..])));
    }
    found.retain(|name| *name != "Elem" && name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase));
    found
}

#[test]
fn passes_ask_ops_what_they_are() {
    let apart = ["ops/", "ir/", "scalar/", "kernel/", "backend/", "testing/"];
    let (mut offenders, mut needed) = (vec![], BTreeSet::new());
    for source in sources().iter().filter(|s| !apart.iter().any(|folder| s.path.starts_with(folder))) {
        for (line, name, length) in function_lengths(&source.text) {
            let named = ops_named(&source.code[line - 1..line - 1 + length]);
            if named.len() < 3 {
                continue;
            }
            match BY_OP.iter().position(|b| b.0 == source.path && b.1 == name) {
                Some(at) => drop(needed.insert(at)),
                None => offenders.push(format!("{}:{line}: `{name}` names {named:?}", source.path)),
            }
        }
    }
    offenders.extend(
        BY_OP.iter().enumerate().filter(|(at, _)| !needed.contains(at)).map(|(_, b)| format!("{}: `{}` need not be in the list", b.0, b.1)),
    );
    report("lists of ops (what an op is stands beside it, in ops/properties.rs)", offenders);
}

#[test]
fn unsafe_code_stays_in_its_folders() {
    let mut offenders = vec![];
    for source in sources().iter().filter(|s| !UNSAFE.iter().any(|u| s.path.starts_with(u.0))) {
        for (i, line) in source.code.iter().enumerate() {
            let found = line.match_indices("unsafe").any(|(at, _)| {
                word(&line[at..]) == "unsafe" && !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '"')
            });
            if found {
                offenders.push(format!("{}:{}: {}", source.path, i + 1, line.trim()));
            }
        }
    }
    report("unsafe code outside its folders", offenders);
}

#[test]
fn nothing_is_left_to_do() {
    let mut offenders = vec![];
    for file in files("crates", "rs").iter().filter(|f| short(f).contains("/src/")) {
        for (i, line) in read(file).lines().enumerate() {
            let line = without_comment(line);
            if ["todo!(", "unimplemented!(", "dbg!("].iter().any(|m| line.contains(m)) {
                offenders.push(format!("{}:{}: {}", short(file), i + 1, line.trim()));
            }
        }
    }
    report("unfinished code", offenders);
}

/// Codes in quotes: `"E0101"`, `"E9999"`.
fn codes(text: &str) -> BTreeSet<String> {
    let at = text.match_indices("\"E").map(|(i, _)| &text[i + 1..]).chain(text.match_indices("'E").map(|(i, _)| &text[i + 1..]));
    at.filter(|t| t.len() > 5 && t[1..5].bytes().all(|b| b.is_ascii_digit()) && t[5..].starts_with(['"', '\'']))
        .map(|t| t[..5].to_string())
        .collect()
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let mut used: BTreeSet<String> = sources().iter().flat_map(|s| codes(&s.code.join("\n"))).collect();
    for file in files("crates/scan-py/src", "rs").iter().chain(&files("python", "py")) {
        used.extend(codes(&read(file)));
    }
    let pages: Vec<_> = files("crates/scan-core/src/base/codes", "md");
    let name = |p: &std::path::PathBuf| p.file_stem().unwrap_or_default().to_string_lossy().to_string();
    let paged: BTreeSet<String> = pages.iter().map(name).collect();
    let mut offenders: Vec<String> = used.difference(&paged).map(|c| format!("{c} is used, but base/codes/{c}.md is missing")).collect();
    offenders.extend(paged.difference(&used).map(|c| format!("base/codes/{c}.md has a page, but nothing reports {c}")));
    for page in &pages {
        let (text, code) = (read(page), name(page));
        let lines = text.lines().count();
        if !text.starts_with(&format!("# {code}: ")) || !(6..=40).contains(&lines) {
            offenders.push(format!("base/codes/{code}.md: expected `# {code}: title` and 6 to 40 lines, got {lines} lines"));
        }
    }
    report("error codes and their pages", offenders);
}

/// What prelude.rs exports: the path below `crate::`, and the name.
fn exported() -> Vec<(String, String)> {
    let text = read(&root().join(SRC).join("prelude.rs"));
    let text: Vec<String> = text.lines().map(without_comment).collect();
    let mut found = vec![];
    for used in text.join(" ").split(';').filter_map(|u| u.trim().strip_prefix("pub use crate::").map(str::to_string)) {
        let (path, names) = match used.split_once('{') {
            Some((path, names)) => (path.trim_end_matches("::"), names.trim_end_matches('}')),
            None => used.rsplit_once("::").expect("a path"),
        };
        let names = names.split(',').map(|n| word(n.trim()).to_string()).filter(|n| !n.is_empty());
        found.extend(names.map(|name| (path.to_string(), name)));
    }
    found
}

/// The lines of documentation above a line.
fn docs_above<'t>(lines: &[&'t str], at: usize) -> Vec<&'t str> {
    let above = lines[..at].iter().rev().map(|l| l.trim());
    above.take_while(|l| l.starts_with("///") || l.starts_with("#[")).filter(|l| l.starts_with("///")).collect()
}

/// True where some definition of this name below a path, or the head of a module of this name, has a code block.
fn has_example(sources: &[Source], path: &str, name: &str) -> bool {
    let (folder, module) = (word(path), if name == "self" { path } else { &format!("{path}::{name}") });
    let module = module.replace("::", "/");
    let heads = ["fn", "const fn", "struct", "enum", "trait", "type", "const", "static"].map(|kind| format!("pub {kind} {name}"));
    // Ids are made by a macro, which lists their names.
    let defines = |line: &str| {
        let line = line.trim_start();
        line == format!("{name},")
            || heads.iter().any(|h| line.strip_prefix(h).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')))
    };
    sources.iter().filter(|s| s.path.split(['/', '.']).next() == Some(folder)).any(|source| {
        let lines: Vec<&str> = source.text.lines().collect();
        let is_module = source.path == format!("{module}.rs") || source.path == format!("{module}/mod.rs");
        let head = || lines.iter().take_while(|l| l.starts_with("//!")).any(|l| l.contains("```"));
        let item = |at: usize| defines(lines[at]) && docs_above(&lines, at).iter().any(|l| l.contains("```"));
        (is_module && head()) || (0..lines.len()).any(item)
    })
}

#[test]
fn every_item_of_the_prelude_has_an_example() {
    let (sources, exported) = (sources(), exported());
    assert!(exported.len() > 100 && exported.contains(&("expr".into(), "Var".into())), "{exported:?}");
    let missing = exported.iter().filter(|(path, name)| !has_example(&sources, path, name));
    report("no example in the documentation of", missing.map(|(path, name)| format!("crate::{path}::{name}")).collect());
}

#[test]
fn the_root_is_found() {
    assert!(root().join("Cargo.toml").exists() && files(SRC, "rs").len() > 20);
}
