//! What functions take and give: as data, and as the JSON of a file.

use crate::bail;
use crate::base::Result;
use crate::exec::Function;
use crate::expr::Var;
use crate::ir::print::extents;
use crate::ir::{Graph, Value};
use crate::rewrite::Options;
use crate::types::{Array, DType, Dim, Type};
use serde::{Deserialize, Serialize};

/// What a function takes and gives.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (x, w) = (scalar("x"), Var::new_shared(Array::scalar(2.0), "w"));
/// let mut module = Module::new();
/// module.add("scale", std::sync::Arc::new(function(&[&x], &[&(&w * &x)]).compile()?))?;
/// let signature = module.signature("scale")?;
/// assert_eq!((signature.inputs.len(), &signature.shared[..]), (1, &["w".to_string()][..]));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// What it is, in words.
    pub doc: Option<String>,
    /// Arguments, in order.
    pub inputs: Vec<Port>,
    /// Results, in order.
    pub outputs: Vec<Port>,
    /// The form in which a front end hands out the results; Rust always gives all of them.
    pub returns: Returns,
    /// The shared variables that it reads, by name.
    pub shared: Vec<String>,
    /// The shared variables that a call updates, by name.
    pub updates: Vec<String>,
    /// The passes that it is optimised with.
    pub passes: Options,
    /// What the front end that wrote it wants to find again; nothing else looks at it.
    pub front: Option<String>,
}

/// An argument or a result.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (x, w) = (scalar("x"), Var::new_shared(Array::scalar(2.0), "w"));
/// let mut module = Module::new();
/// module.add("scale", std::sync::Arc::new(function(&[&x], &[&(&w * &x)]).compile()?))?;
/// let port = &module.signature("scale")?.inputs[0];
/// assert_eq!((port.name.as_deref(), &port.ty), (Some("x"), &Type::scalar(DType::F64)));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Port {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What it is, in words.
    pub doc: Option<String>,
    /// dtype and extents.
    pub ty: Type,
    /// The extents in words: `3`, `n0`, `2*n0+1`, as the text form writes them; `None` for one that depends on more than extents of arguments.
    pub axes: Vec<Option<String>>,
    /// The argument where the caller gives none.
    pub default: Option<Array>,
}

/// The form of results.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (x, w) = (scalar("x"), Var::new_shared(Array::scalar(2.0), "w"));
/// let mut module = Module::new();
/// module.add("scale", std::sync::Arc::new(function(&[&x], &[&(&w * &x)]).compile()?))?;
/// assert_eq!(module.signature("scale")?.returns, Returns::List);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Returns {
    /// The one result itself.
    Single,
    /// A list.
    #[default]
    List,
    /// By name.
    Dict,
}

/// The signature of a function; `adopt` gives the names of shared variables.
pub(super) fn of(function: &Function, adopt: &mut dyn FnMut(&Var) -> Option<String>) -> Signature {
    let shared = function.shared_leaves().iter().filter_map(&mut *adopt).collect();
    let updates: Vec<String> = function.updated_leaves().iter().filter_map(adopt).collect();
    let graph = function.graph();
    let names = |values: &[Value]| values.iter().map(|&v| graph.name(v).map(|n| n.to_string())).collect::<Vec<_>>();
    let (inputs, outputs) = (function.inputs().len(), function.n_outputs());
    let mut given = names(&graph.params()[..inputs]);
    for (name, var) in given.iter_mut().zip(function.inputs()) {
        *name = var.name().map(|n| n.to_string());
    }
    let (inputs, outputs) = ports(graph, given, names(&graph.results()[..outputs]));
    Signature { inputs, outputs, shared, updates, passes: function.passes().clone(), ..Signature::default() }
}

/// Ports of a graph for the names of its inputs and outputs; their number is that of the names.
fn ports(graph: &Graph, inputs: Vec<Option<String>>, outputs: Vec<Option<String>>) -> (Vec<Port>, Vec<Port>) {
    let types = |values: &[Value]| values.iter().map(|&v| graph.ty(v).clone()).collect::<Vec<Type>>();
    let (params, results) = (types(graph.params()), types(&graph.results()[..outputs.len()]));
    let mut axes = extents(params.iter(), results.iter());
    let of_results = axes.split_off(params.len());
    let port = |((name, ty), axes)| Port { name, doc: None, ty, axes, default: None };
    (inputs.into_iter().zip(params).zip(axes).map(port).collect(), outputs.into_iter().zip(results).zip(of_results).map(port).collect())
}

/// The JSON of a module's signatures.
#[derive(Serialize, Deserialize)]
pub(super) struct Rows {
    pub functions: Vec<FunctionRow>,
    pub shared: Vec<SharedRow>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct FunctionRow {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
    pub inputs: Vec<PortRow>,
    pub outputs: Vec<PortRow>,
    pub returns: Returns,
    pub shared: Vec<String>,
    pub updates: Vec<String>,
    pub passes: PassesRow,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct PortRow {
    pub name: Option<String>,
    pub dtype: String,
    pub shape: Vec<Extent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
    /// The tensor that holds the argument where the caller gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

#[derive(Serialize, Deserialize, PartialEq)]
#[serde(untagged)]
pub(super) enum Extent {
    Known(usize),
    Form(Option<String>),
}

#[derive(Serialize, Deserialize)]
pub(super) struct PassesRow {
    level: String,
    excluding: Vec<String>,
}

/// A shared variable; the tensor of its name holds the value.
#[derive(Serialize, Deserialize)]
pub(super) struct SharedRow {
    pub name: String,
    dtype: String,
    /// Extents that are fixed; `null` for one that may change.
    shape: Vec<Option<usize>>,
}

impl SharedRow {
    pub fn new(name: &str, ty: &Type) -> SharedRow {
        SharedRow { name: name.into(), dtype: ty.dtype.name().into(), shape: ty.dims.iter().map(Dim::value).collect() }
    }
    /// The type of the variable, of which `value` is the value.
    pub fn ty(&self, value: &Array) -> Result<Type> {
        let dims = self.shape.iter().map(|n| n.map_or_else(Dim::fresh, Dim::known));
        let ty = DType::parse(&self.dtype).map(|dtype| Type::new(dtype, dims)).filter(|ty| ty.admits(value.dtype(), value.shape()));
        let Some(ty) = ty else {
            bail!(Parse, "E0924", "the tensor of shared variable `{}` is {}, not what its row says", self.name, value.ty());
        };
        Ok(ty)
    }
}

impl FunctionRow {
    /// `default(port, array)` stores a default value and gives its name.
    pub fn new(name: &str, s: &Signature, default: &mut dyn FnMut(&Port, &Array) -> String) -> FunctionRow {
        let mut row = |port: &Port| PortRow {
            name: port.name.clone(),
            dtype: port.ty.dtype.name().into(),
            shape: shape(port),
            doc: port.doc.clone(),
            default: port.default.as_ref().map(|array| default(port, array)),
        };
        let (level, excluding) = s.passes.names();
        FunctionRow {
            name: name.into(),
            doc: s.doc.clone(),
            inputs: s.inputs.iter().map(&mut row).collect(),
            outputs: s.outputs.iter().map(&mut row).collect(),
            returns: s.returns,
            shared: s.shared.clone(),
            updates: s.updates.clone(),
            passes: PassesRow { level: level.into(), excluding: excluding.into_iter().map(Into::into).collect() },
            front: s.front.clone(),
        }
    }
    /// The signature, which is compared with the graph. `default` finds the tensor of a name.
    pub fn signature(self, graph: &Graph, default: &dyn Fn(&str) -> Option<Array>) -> Result<Signature> {
        let counts = [self.inputs.len() + self.shared.len(), self.outputs.len() + self.updates.len()];
        if counts != [graph.params().len(), graph.results().len()] {
            return unfit(&self.name, "the numbers of its parameters and results");
        }
        let names = |rows: &[PortRow]| rows.iter().map(|row| row.name.clone()).collect();
        let (mut inputs, mut outputs) = ports(graph, names(&self.inputs), names(&self.outputs));
        for (port, row) in inputs.iter_mut().chain(&mut outputs).zip(self.inputs.into_iter().chain(self.outputs)) {
            if row.dtype != port.ty.dtype.name() || row.shape != shape(port) {
                return unfit(&self.name, &format!("the type of `{}`", row.name.as_deref().unwrap_or("?")));
            }
            port.doc = row.doc;
            if let Some(name) = row.default {
                port.default = default(&name).filter(|a| port.ty.admits(a.dtype(), a.shape()));
                if port.default.is_none() {
                    return unfit(&self.name, &format!("the default value `{name}`"));
                }
            }
        }
        let passes = Options::named(&self.passes.level, &self.passes.excluding)?;
        let Self { doc, returns, shared, updates, front, .. } = self;
        Ok(Signature { doc, inputs, outputs, returns, shared, updates, passes, front })
    }
}

fn unfit<T>(name: &str, what: &str) -> Result<T> {
    bail!(Parse, "E0924", "function `{name}`: signature and text differ in {what}")
}

fn shape(port: &Port) -> Vec<Extent> {
    port.ty.dims.iter().zip(&port.axes).map(|(d, text)| d.value().map_or_else(|| Extent::Form(text.clone()), Extent::Known)).collect()
}
