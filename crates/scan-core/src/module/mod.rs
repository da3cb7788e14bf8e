//! Modules: functions over one table of shared variables, in a file that any language reads. `docs/format.md` says how it is laid out.
//!
//! A module is written from functions and gives functions again; nothing of a machine is in its file, so each reader compiles for itself,
//! a function when it is first asked for.
//!
//! ```
//! use scan_core::prelude::*;
//!
//! let (x, w) = (scalar("x"), Var::new_shared(Array::scalar(2.0), "w"));
//! let mut module = module::Module::new();
//! module.add("scale", std::sync::Arc::new(function(&[&x], &[&(&w * &x)]).compile()?))?;
//! assert_eq!(module.names().collect::<Vec<_>>(), ["scale"]);
//! # Ok::<(), Box<Diagnostic>>(())
//! ```

mod container;
mod describe;
mod file;
mod load;
mod params;
mod prints;
mod save;
mod session;
mod signature;
mod table;
mod typed;

pub use params::{load_params, params_from_bytes, params_to_bytes, save_params};
pub use signature::{Port, Returns, Signature};
pub use typed::{Passed, Row, Typed};

use crate::bail;
use crate::base::{Diagnostic, Result};
use crate::exec::{EntryPoint, Function, FunctionSpec};
use crate::expr::Var;
use crate::expr::splice::splice;
use crate::ir::Graph;
use crate::ir::op::ExternRef;
use crate::types::{Array, Shared, Type};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use table::Table;

/// The version of the format that this writes. It reads this one and the one before.
pub const FORMAT: u32 = 1;

/// Functions by name, and the shared variables that they read and update, by name.
///
/// Calls may come from many threads, of different functions too: each sees the shared variables as they are between two calls.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (x, w) = (scalar("x"), Var::new_shared(Array::scalar(2.0), "w"));
/// let mut module = Module::new();
/// module.add("scale", std::sync::Arc::new(function(&[&x], &[&(&w * &x)]).compile()?))?;
/// let loaded = Module::from_bytes(&module.to_bytes()?)?;
/// loaded.set("w", Array::scalar(10.0))?;
/// assert_eq!(loaded.call("scale", &[Array::scalar(3.0)])?, [Array::scalar(30.0)]);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Default)]
pub struct Module {
    functions: Table<Entry>,
    shared: Table<Shared>,
    file: Option<Origin>,
}

/// The file that a module was read from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The format that it has.
    pub format: u32,
    /// The version of rscan that wrote it.
    pub version: String,
    /// How many bytes it has.
    pub bytes: usize,
}

/// One function: as it was written, and, once somebody has asked for it, compiled.
struct Entry {
    graph: Arc<Graph>,
    signature: Signature,
    compiled: OnceLock<Result<Arc<Function>>>,
}

impl Module {
    /// A module without functions.
    pub fn new() -> Module {
        Module::default()
    }
    /// Reads a file.
    ///
    /// # Errors
    /// `E0921` where it cannot be read; as [`Module::from_bytes`].
    pub fn load(path: impl AsRef<Path>) -> Result<Module> {
        Module::load_with(path, &[])
    }
    /// The same, with the user's ops that it may refer to, by their keys.
    ///
    /// # Errors
    /// As [`Module::load`].
    pub fn load_with(path: impl AsRef<Path>, ops: &[ExternRef]) -> Result<Module> {
        let (contents, bytes) = file::read(path.as_ref(), true)?;
        load::load(contents, bytes, &|key, _| named(ops, key))
    }
    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// `E0922` where they are no whole, undamaged file; `E0923` where their format is newer than this library; `E0924` where their parts do
    /// not fit each other; `E0905` for a user's op that is not among those given; what the text form reports.
    pub fn from_bytes(bytes: &[u8]) -> Result<Module> {
        Module::from_bytes_finding(bytes, &|_, _| None)
    }
    /// The same, with the user's ops that they may refer to.
    ///
    /// # Errors
    /// As [`Module::from_bytes`].
    pub fn from_bytes_with(bytes: &[u8], ops: &[ExternRef]) -> Result<Module> {
        Module::from_bytes_finding(bytes, &|key, _| named(ops, key))
    }
    /// The same, with what finds a user's op by its key and by the types that the file says of its results.
    ///
    /// # Errors
    /// As [`Module::from_bytes`].
    pub fn from_bytes_finding(bytes: &[u8], find: &dyn Fn(&str, &[Type]) -> Option<ExternRef>) -> Result<Module> {
        load::load(container::from_bytes(bytes, true)?, bytes.len(), find)
    }
    /// The bytes of its file. Shared variables have the values that they have between two calls; equal modules give equal bytes.
    ///
    /// # Errors
    /// `E0906` where a program is too long for a file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        save::to_bytes(self)
    }
    /// Writes its file: the file is the old one or the new one, whole, whatever happens meanwhile.
    ///
    /// # Errors
    /// `E0921` where it cannot be written; as [`Module::to_bytes`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path.as_ref(), &self.to_bytes()?)
    }

    /// Adds a function; returns its signature, to which names and docs may be added.
    ///
    /// # Errors
    /// `E0926` for a name that is empty or taken.
    pub fn add(&mut self, name: &str, function: Arc<Function>) -> Result<&mut Signature> {
        if name.is_empty() || self.functions.has(name) {
            bail!(Value, "E0926", "`{name}` cannot be a function's name: it is empty, or another function has it");
        }
        let signature = signature::of(&function, &mut |leaf| self.adopt(leaf));
        let entry = Entry { graph: function.graph().clone(), signature, compiled: OnceLock::from(Ok(function)) };
        let added = self.functions.add(name, entry).map(|entry| &mut entry.signature);
        added.ok_or_else(|| Diagnostic::internal(format!("`{name}` was free")))
    }
    /// The name of a shared variable in the table, where it goes if it is new.
    fn adopt(&mut self, leaf: &Var) -> Option<String> {
        let shared = leaf.as_shared()?;
        if let Some((name, _)) = self.shared.iter().find(|(_, s)| *s == shared) {
            return Some(name.to_string());
        }
        let name = leaf.name().filter(|n| !n.is_empty()).map_or_else(|| "shared".to_string(), |n| n.to_string());
        let name = free(&name, |n| n == METADATA || self.shared.has(n));
        self.shared.add(&name, shared.clone());
        Some(name)
    }

    /// Names of the functions, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.functions.names()
    }
    /// What a function takes and gives.
    ///
    /// # Errors
    /// `E0925` where there is none of this name.
    pub fn signature(&self, name: &str) -> Result<&Signature> {
        Ok(&self.entry(name)?.signature)
    }
    /// The same as the JSON that a file has of it (`docs/format.md`): names, dtypes, extents (a number where it is fixed, else a form or null), docs,
    /// results, shared variables. A default value stands as the name of its tensor.
    ///
    /// # Errors
    /// `E0925` where there is none of this name.
    pub fn signature_json(&self, name: &str) -> Result<String> {
        save::signature(name, self.signature(name)?)
    }
    /// A function, compiled when it is first asked for.
    ///
    /// # Errors
    /// `E0925` where there is none of this name; as [`Function::new`].
    pub fn function(&self, name: &str) -> Result<Arc<Function>> {
        let entry = self.entry(name)?;
        entry.compiled.get_or_init(|| Ok(Arc::new(Function::new(self.spec(name)?)?))).clone()
    }
    /// A function of numbers, to be called by an address. It keeps the function.
    ///
    /// # Errors
    /// As [`Module::function`] and [`EntryPoint::new`].
    pub fn entry_point(&self, name: &str) -> Result<EntryPoint> {
        EntryPoint::new(self.function(name)?, vec![])
    }
    /// A function as expressions of fresh inputs and of the shared variables.
    ///
    /// # Errors
    /// `E0925` where there is none of this name; what type inference reports.
    pub fn spec(&self, name: &str) -> Result<FunctionSpec> {
        let Entry { graph, signature, .. } = self.entry(name)?;
        let types: Vec<_> = graph.params().iter().map(|&v| graph.ty(v).clone()).collect();
        let (given, kept) = types.split_at(signature.inputs.len());
        let inputs: Vec<Var> =
            signature.inputs.iter().zip(given).map(|(port, ty)| Var::input(ty.clone(), port.name.as_deref(), Default::default())).collect();
        let mut leaves = FxHashMap::default();
        for (name, ty) in signature.shared.iter().zip(kept) {
            leaves.insert(name.clone(), Var::shared_as(self.variable(name)?.clone(), ty.clone(), Some(name)));
        }
        let all = inputs.iter().chain(signature.shared.iter().map(|name| &leaves[name])).cloned();
        let known = graph.params().iter().copied().zip(all).collect();
        let mut outputs = splice(graph, known, graph.results())?;
        let values = outputs.split_off(signature.outputs.len());
        let leaf = |name: &String| match leaves.get(name) {
            Some(leaf) => Ok(leaf.clone()),
            None => self.variable(name).map(|shared| Var::shared_as(shared.clone(), shared.ty().clone(), Some(name))),
        };
        let updates = signature.updates.iter().map(leaf).zip(values).map(|(leaf, value)| Ok((leaf?, value))).collect::<Result<_>>()?;
        let passes = signature.passes.clone();
        Ok(FunctionSpec { name: Some(name.to_string()), inputs, outputs, updates, passes, ..FunctionSpec::default() })
    }

    /// The shared variables by name, in the order in which functions first use them. Their values are read and set through them.
    pub fn shared(&self) -> impl ExactSizeIterator<Item = (&str, &Shared)> {
        self.shared.iter()
    }
    /// The value of a shared variable.
    ///
    /// # Errors
    /// `E0925` where there is none of this name.
    pub fn get(&self, name: &str) -> Result<Array> {
        self.variable(name).map(Shared::get)
    }
    /// Sets the value of a shared variable.
    ///
    /// # Errors
    /// `E0925` where there is none of this name; `E0506` for a value of another dtype or rank, or of other extents where they are fixed.
    pub fn set(&self, name: &str, value: Array) -> Result<()> {
        let shared = self.variable(name)?;
        if !shared.ty().admits(value.dtype(), value.shape()) {
            bail!(Type, "E0506", "shared variable `{name}` holds {}, and {} does not fit", shared.ty(), value.ty());
        }
        shared.set(value);
        Ok(())
    }
    /// The file that it was read from; `None` where it was made by [`Module::add`].
    pub fn origin(&self) -> Option<&Origin> {
        self.file.as_ref()
    }
    /// What is in it, for people: its file, functions, their arguments and loops, shared variables, constants and their sizes.
    pub fn describe(&self) -> String {
        describe::describe(self)
    }

    fn entry(&self, name: &str) -> Result<&Entry> {
        let Some(entry) = self.functions.get(name) else {
            let all: Vec<&str> = self.names().collect();
            bail!(Value, "E0925", "there is no function `{name}`; there are {}", all.join(", "));
        };
        Ok(entry)
    }
    fn variable(&self, name: &str) -> Result<&Shared> {
        let Some(shared) = self.shared.get(name) else {
            let all: Vec<&str> = self.shared.names().collect();
            bail!(Value, "E0925", "there is no shared variable `{name}`; there are {}", all.join(", "));
        };
        Ok(shared)
    }
}

/// The op of a key.
fn named(ops: &[ExternRef], key: &str) -> Option<ExternRef> {
    ops.iter().find(|op| op.0.key() == key).cloned()
}

/// What the format keeps for itself among the names of tensors.
const METADATA: &str = "__metadata__";

/// The name itself where it is free, else with the first number that makes it so.
fn free(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (1..).map(|i| format!("{name}_{i}"));
    std::iter::once(name.to_string()).chain(numbered).find(|n| !taken(n)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
