//! A module as the bytes of a file.

use super::container::{self, CHECKSUM};
use super::signature::{FunctionRow, Rows, SharedRow};
use super::{FORMAT, METADATA, Module, Port, Signature, free};
use crate::base::words;
use crate::base::{Diagnostic, Result, Span, span};
use crate::exec::function::snapshot;
use crate::ir::print::print_with;
use crate::ir::{Graph, Op};
use crate::types::Array;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, HashMap};

/// Constants of more elements are tensors.
pub(super) const LARGE: usize = 64;
/// The longest line of the user's source that is kept.
const LINE: usize = 200;

pub(super) fn to_bytes(module: &Module) -> Result<Vec<u8>> {
    let values = snapshot(module.shared.values());
    let names = || module.shared.names().map(str::to_string);
    let mut tensors = Tensors { all: names().zip(values).collect(), ..Tensors::default() };
    tensors.names.extend(names().chain([METADATA.to_string()]));
    let (mut text, mut lines, mut functions) = (String::new(), Lines::default(), vec![]);
    for (name, entry) in module.functions.iter() {
        text += &print_with(&entry.graph, name, &mut |a| (a.len() > LARGE).then(|| tensors.constant(a)));
        lines.of(&entry.graph);
        let row = FunctionRow::new(name, &entry.signature, &mut |port, value| tensors.add(&default_name(name, port), value));
        functions.push(row);
    }
    let shared = module.shared.iter().map(|(name, shared)| SharedRow::new(name, shared.ty())).collect();
    let texts = [
        ("rscan.format", FORMAT.to_string()),
        ("rscan.version", env!("CARGO_PKG_VERSION").to_string()),
        (CHECKSUM, "00000000".to_string()),
        ("rscan.signature", serde_json::to_string(&Rows { functions, shared }).map_err(json)?),
        ("rscan.lines", serde_json::to_string(&lines.found).map_err(json)?),
        ("rscan.text", text),
    ];
    let bytes = container::to_bytes(&texts, &tensors.all)?;
    // What no reader would accept is refused where it is written.
    words::lex(&texts[5].1, container::most_words(bytes.len()))?;
    if texts[3].1.len() + texts[4].1.len() > container::SIDE {
        crate::bail!(Value, "E0906", "signatures, docs and lines of source take more than {} bytes", container::SIDE);
    }
    Ok(bytes)
}

/// The row of a function among the signatures of a file, alone.
pub(super) fn signature(name: &str, signature: &Signature) -> Result<String> {
    let row = FunctionRow::new(name, signature, &mut |port, _| default_name(name, port));
    serde_json::to_string(&row).map_err(json)
}

fn json(e: serde_json::Error) -> Box<Diagnostic> {
    Diagnostic::internal(e.to_string())
}

/// The name of the tensor of a default value, where no other has it.
fn default_name(function: &str, port: &Port) -> String {
    format!("default.{function}.{}", port.name.as_deref().unwrap_or("input"))
}

/// The tensors of a file, each with a name of its own.
#[derive(Default)]
struct Tensors {
    all: Vec<(String, Array)>,
    names: FxHashSet<String>,
    /// Places of constants among all, by dtype and shape.
    constants: HashMap<String, Vec<usize>>,
}

impl Tensors {
    fn add(&mut self, name: &str, value: &Array) -> String {
        let name = free(name, |n| self.names.contains(n));
        self.names.insert(name.clone());
        self.all.push((name.clone(), value.clone()));
        name
    }
    /// The name of a constant; equal ones are one tensor.
    fn constant(&mut self, value: &Array) -> String {
        let alike = self.constants.entry(value.ty().to_string()).or_default();
        if let Some(&i) = alike.iter().find(|&&i| self.all[i].1 == *value) {
            return self.all[i].0.clone();
        }
        alike.push(self.all.len());
        self.add("constant", value)
    }
}

/// The lines of the user's source that graphs come from, by the places that the text form writes.
#[derive(Default)]
struct Lines {
    found: BTreeMap<String, String>,
    seen: FxHashSet<Span>,
    files: HashMap<String, Vec<String>>,
}

impl Lines {
    fn of(&mut self, graph: &Graph) {
        for node in graph.nodes().iter() {
            if let Op::Scan(scan) = &node.op {
                self.of(&scan.body);
            }
            if !self.seen.insert(node.span) {
                continue;
            }
            let Some(place) = node.span.place() else { continue };
            let text = place.text.as_deref().map(str::to_string).or_else(|| self.line(&place.file, place.line));
            if let Some(text) = text {
                self.found.insert(format!("{}:{}", span::short(&place.file), place.line), text.trim().chars().take(LINE).collect());
            }
        }
    }
    fn line(&mut self, file: &str, line: u32) -> Option<String> {
        let lines = self.files.entry(file.to_string()).or_insert_with(|| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            text.lines().map(str::to_string).collect()
        });
        lines.get((line as usize).checked_sub(1)?).cloned()
    }
}
