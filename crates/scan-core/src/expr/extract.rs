//! Expressions to a graph.

use super::Var;
use super::dag::{Key, LeafKind};
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::{Graph, Op, Value};
use crate::scan::retype;
use crate::types::{Array, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A graph that grows by the expressions asked for.
#[derive(Default)]
pub struct Extract {
    /// The graph so far.
    pub graph: Graph,
    map: FxHashMap<Key, Value>,
    shared: FxHashMap<u64, Value>,
    /// Leaves that became parameters by themselves, in order.
    pub leaves: Vec<(Var, Value)>,
    /// True where inputs that nobody bound become parameters, too.
    pub open: bool,
}

impl Extract {
    /// An empty graph; `open` lets unbound inputs become parameters.
    pub fn new(open: bool) -> Extract {
        Extract { open, ..Extract::default() }
    }
    /// Makes an expression a parameter.
    pub fn bind(&mut self, var: &Var) -> Value {
        let value = self.graph.param(var.ty().clone(), var.name().as_deref());
        self.set(var, value);
        value
    }
    /// Declares the value of an expression.
    pub fn set(&mut self, var: &Var, value: Value) {
        self.map.insert(var.key(), value);
        if let Some(shared) = var.as_shared() {
            self.shared.insert(shared.id(), value);
        }
    }
    /// The value of an expression, where it has one already.
    pub fn get(&self, var: &Var) -> Option<Value> {
        let shared = || self.shared.get(&var.as_shared()?.id());
        self.map.get(&var.key()).or_else(shared).copied()
    }
    /// The value of an expression; adds what is missing.
    ///
    /// # Errors
    /// `E0501` for an input that nobody bound; the error of an expression that failed.
    pub fn value(&mut self, var: &Var) -> Result<Value> {
        let mut stack = vec![var.clone()];
        while let Some(top) = stack.last() {
            if self.get(top).is_some() {
                stack.pop();
                continue;
            }
            let missing = top.owner().map(|(_, ins, _)| ins.iter().filter(|v| self.get(v).is_none()).cloned().collect::<Vec<_>>());
            match missing {
                Some(ins) if !ins.is_empty() => stack.extend(ins),
                _ => {
                    let top = top.clone();
                    self.add(&top)?;
                    stack.pop();
                }
            }
        }
        self.get(var).ok_or_else(|| Diagnostic::internal("an expression without value"))
    }
    /// The leaf or expression of each value that came from one.
    pub fn origins(&self, vars: &[Var]) -> FxHashMap<Value, Var> {
        ancestors(vars).into_iter().filter_map(|v| Some((self.get(&v)?, v))).collect()
    }

    fn add(&mut self, var: &Var) -> Result<()> {
        let Some((op, ins, _)) = var.owner() else { return self.add_leaf(var) };
        let ins: Vec<Value> = ins.iter().filter_map(|v| self.get(v)).collect();
        self.graph.set_span(var.span());
        let outs = self.graph.apply(op.clone(), &ins)?;
        let Var::Out(apply, _) = var else { return Ok(()) };
        for (i, &value) in outs.iter().enumerate() {
            let out = Var::Out(Arc::clone(apply), i);
            if let Some(name) = out.name() {
                self.graph.set_name(value, &name);
            }
            self.map.entry(out.key()).or_insert(value);
        }
        Ok(())
    }

    fn add_leaf(&mut self, var: &Var) -> Result<()> {
        let value = match var.leaf_kind() {
            Some(LeafKind::Const(a)) => {
                let value = self.graph.constant(a.clone());
                self.map.insert(var.key(), value);
                return Ok(());
            }
            Some(LeafKind::Input) if !self.open => return Err(missing_input(var)),
            Some(LeafKind::Failed(error)) => return Err(error.clone()),
            _ => self.bind(var),
        };
        self.leaves.push((var.clone(), value));
        Ok(())
    }
}

fn missing_input(var: &Var) -> Box<Diagnostic> {
    let name = var.describe();
    Diagnostic::new(Kind::Value, "E0501", format!("the outputs depend on `{name}`, which is not among the inputs"))
        .label(var.span(), format!("`{name}` is made here"))
        .help(format!("pass `{name}` as an input, or replace it with givens"))
}

/// Every expression that the given ones depend on, themselves included; inputs before users.
pub fn ancestors(vars: &[Var]) -> Vec<Var> {
    ancestors_until(vars, &[])
}

/// As [`ancestors`], not looking behind the expressions of `stop`.
pub fn ancestors_until(vars: &[Var], stop: &[Var]) -> Vec<Var> {
    let stop: FxHashSet<Key> = stop.iter().map(Var::key).collect();
    let mut done: FxHashSet<Key> = FxHashSet::default();
    let mut order = vec![];
    let mut stack: Vec<(Var, bool)> = vars.iter().rev().map(|v| (v.clone(), false)).collect();
    while let Some((var, ready)) = stack.pop() {
        if ready {
            order.push(var);
            continue;
        }
        if !done.insert(var.key()) {
            continue;
        }
        stack.push((var.clone(), true));
        if let Some((_, ins, _)) = var.owner().filter(|_| !stop.contains(&var.key())) {
            stack.extend(ins.iter().rev().filter(|v| !done.contains(&v.key())).map(|v| (v.clone(), false)));
        }
    }
    order
}

/// The same outputs with some expressions replaced by others (simultaneously; replacements are not searched again).
/// Loops are entered only through their inputs.
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = scalar("x");
/// let y = substitute(&[x.square()], &[(x, Var::number(3.0))])?;
/// assert_eq!(y[0].eval()?, Array::scalar(9.0));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// What type inference reports for the new inputs.
pub fn substitute(outputs: &[Var], replace: &[(Var, Var)]) -> Result<Vec<Var>> {
    let mut map: FxHashMap<Key, Var> = replace.iter().map(|(a, b)| (a.key(), b.clone())).collect();
    let mut made: FxHashMap<u64, Vec<Var>> = FxHashMap::default();
    for var in ancestors(outputs) {
        let Some((op, ins, at)) = var.owner() else { continue };
        if map.contains_key(&var.key()) || !ins.iter().any(|v| map.contains_key(&v.key())) {
            continue;
        }
        let outs = match made.get(&var.key().0) {
            Some(outs) => outs.clone(),
            None => {
                let ins: Vec<Var> = ins.iter().map(|v| map.get(&v.key()).unwrap_or(v).clone()).collect();
                Var::apply(fitting(op, &ins)?, &ins, var.span())?.to_vec()
            }
        };
        if let Some(name) = var.name() {
            outs[at].set_name(Some(&name));
        }
        map.insert(var.key(), outs[at].clone());
        made.insert(var.key().0, outs);
    }
    Ok(outputs.iter().map(|v| map.get(&v.key()).unwrap_or(v).clone()).collect())
}

/// The op for new inputs: a loop is built again where it was built for other types.
fn fitting(op: &Op, ins: &[Var]) -> Result<Op> {
    let Op::Scan(scan) = op else { return Ok(op.clone()) };
    let types: Vec<Type> = ins.iter().map(|v| v.ty().clone()).collect();
    if !retype::differs(scan, &types) {
        return Ok(op.clone());
    }
    Ok(Op::Scan(Arc::new(retype::retyped(scan, &types)?)))
}

/// The constant behind an expression that is small and depends on nothing: `None` otherwise.
pub fn fold(var: &Var) -> Option<Array> {
    if let Some(a) = var.const_value() {
        return Some(a.clone());
    }
    let all = ancestors(std::slice::from_ref(var));
    let closed = all.iter().all(|v| v.owner().is_some_and(|(op, ..)| !matches!(op, Op::Extern(_))) || v.const_value().is_some());
    if !closed || all.len() > 64 {
        return None;
    }
    let mut extract = Extract::new(false);
    let value = extract.value(var).ok()?;
    extract.graph.set_results([value]);
    crate::eval::run(&extract.graph, &mut crate::ir::EvalCx::new(), &[]).ok()?.pop()
}
