//! A module from the contents of a file.

use super::container::{self, Contents};
use super::signature::{Rows, Signature};
use super::{Entry, FORMAT, Module, Origin, prints};
use crate::bail;
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::parse::{Context, Registry, parse_module};
use crate::ir::{Graph, verify::agree};
use crate::types::Shared;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// A module of a file's contents and of how many bytes it had.
pub(super) fn load(Contents { texts, tensors }: Contents, bytes: usize, find: &Registry) -> Result<Module> {
    let format = format(text(&texts, "rscan.format")?)?;
    let lines: HashMap<String, String> = json(&texts, "rscan.lines")?;
    let rows: Rows = json(&texts, "rscan.signature")?;
    let context = Context {
        ops: &|key, types| find(key, types).or_else(|| prints::passing(key)),
        tensors: &|name| tensors.get(name).cloned(),
        lines: &|file, line| lines.get(&format!("{file}:{line}")).map(|text| text.as_str().into()),
        most: container::most_words(bytes),
        leaves: &[],
    };
    let graphs = parse_module(text(&texts, "rscan.text")?, &context).map_err(missing)?;
    if graphs.len() != rows.functions.len() {
        bail!(Parse, "E0924", "the text has {} functions, the signature {}", graphs.len(), rows.functions.len());
    }
    let version = texts.get("rscan.version").cloned().unwrap_or_default();
    let mut module = Module { file: Some(Origin { format, version, bytes }), ..Module::new() };
    for row in &rows.shared {
        let Some(value) = tensors.get(&row.name) else { bail!(Parse, "E0924", "there is no tensor of shared variable `{}`", row.name) };
        if module.shared.add(&row.name, Shared::new(value.clone(), row.ty(value)?)).is_none() {
            bail!(Parse, "E0924", "there are two shared variables `{}`", row.name);
        }
    }
    for (row, (_, graph)) in rows.functions.into_iter().zip(graphs) {
        let name = row.name.clone();
        let signature = row.signature(&graph, context.tensors)?;
        check_shared(&module, &name, &signature, &graph)?;
        let entry = Entry { graph: Arc::new(graph), signature, compiled: OnceLock::new() };
        if name.is_empty() || module.functions.add(&name, entry).is_none() {
            bail!(Parse, "E0924", "a function has no name, or two are called `{name}`");
        }
    }
    Ok(module)
}

/// The number of a format that this reads: the one that it writes, and the one before.
fn format(text: &str) -> Result<u32> {
    let known = FORMAT.saturating_sub(1).max(1)..=FORMAT;
    text.parse().ok().filter(|n| known.contains(n)).ok_or_else(|| {
        let title = format!("the file has format {text}, and this library reads {} to {FORMAT}", known.start());
        Diagnostic::new(Kind::Parse, "E0923", title).help("a newer rscan reads it; of an old one, the version between them writes it anew")
    })
}

/// An op that nobody gave is an error that says who gives it.
fn missing(error: Box<Diagnostic>) -> Box<Diagnostic> {
    if error.code != "E0905" {
        return error;
    }
    error.help("a file has users' ops by name alone; give what they mean: `rs.load(path, ops=[op])`, `Module::load_with(path, &[op])`")
}

fn text<'t>(texts: &'t HashMap<String, String>, key: &str) -> Result<&'t str> {
    let Some(text) = texts.get(key) else {
        bail!(Parse, "E0922", "this is no file of rscan's functions: it has no `{key}`");
    };
    Ok(text)
}

fn json<T: DeserializeOwned>(texts: &HashMap<String, String>, key: &str) -> Result<T> {
    let text = text(texts, key)?;
    if text.len() > container::SIDE {
        bail!(Parse, "E0906", "`{key}` has {} bytes, more than {}", text.len(), container::SIDE);
    }
    serde_json::from_str(text).map_err(|e| Diagnostic::new(Kind::Parse, "E0924", format!("`{key}`: {e}")))
}

/// The shared variables of a function are there, each once, and of types that its graph can have.
fn check_shared(module: &Module, name: &str, signature: &Signature, graph: &Graph) -> Result<()> {
    let params = graph.params()[signature.inputs.len()..].iter();
    let results = graph.results()[signature.outputs.len()..].iter();
    for (list, values) in [(&signature.shared, params), (&signature.updates, results)] {
        for (i, (shared, &v)) in list.iter().zip(values).enumerate() {
            let fits = module.shared.get(shared).is_some_and(|s| agree(s.ty(), graph.ty(v)));
            if !fits || list[..i].contains(shared) {
                bail!(Parse, "E0924", "function `{name}`: shared variable `{shared}` is not there, not of its type or there twice");
            }
        }
    }
    Ok(())
}
