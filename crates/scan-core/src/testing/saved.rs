//! Random programs through a file: the same graph, the same bits, call after call.

use super::Program;
use super::build::{Leaves, scanned};
use crate::base::Result;
use crate::exec::{Function, FunctionSpec};
use crate::ir::EvalCx;
use crate::module::Module;
use crate::types::{Array, Shared};
use std::sync::Arc;

/// Saves a program, loads it, and calls both twice: shared variables go on from what they were.
///
/// # Errors
/// What differs.
pub fn check(program: &Program) -> std::result::Result<(), String> {
    let leaves = Leaves::new(program);
    let made = || -> Result<(Function, Module)> {
        let values = scanned(program, &leaves)?;
        let (outputs, after) = values.split_at(program.outputs.len());
        let updates = program.updates.iter().zip(after).map(|(u, v)| (leaves.shared[u.0].clone(), v.clone())).collect();
        let spec = FunctionSpec { inputs: leaves.inputs.clone(), outputs: outputs.to_vec(), updates, ..FunctionSpec::default() };
        let mut module = Module::new();
        module.add("f", Arc::new(Function::new(spec.clone())?))?;
        Ok((Function::new(spec)?, Module::from_bytes(&module.to_bytes()?)?))
    };
    let (f, there) = made().map_err(|e| e.to_string())?;
    let g = there.function("f").map_err(|e| e.to_string())?;
    if g.graph().to_text("f") != f.graph().to_text("f") {
        return Err(format!("the graph differs:\n{}\n{}", f.graph().to_text("f"), g.graph().to_text("f")));
    }
    let args: Vec<Array> = program.inputs.iter().map(|i| i.value.to_array()).collect();
    for call in 0..2 {
        let (first, second) = (f.call(&mut EvalCx::new(), &args), g.call(&mut EvalCx::new(), &args));
        if first.map_err(|e| e.title) != second.map_err(|e| e.title) {
            return Err(format!("call {call} gives something else"));
        }
    }
    let now = |f: &Function| f.shared().iter().map(Shared::get).collect::<Vec<Array>>();
    if now(&f) == now(&g) { Ok(()) } else { Err("shared variables differ".into()) }
}
