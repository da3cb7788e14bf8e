//! A function: inputs, outputs, updates of shared variables.

use crate::base::Result;
use crate::expr::Var;
use crate::ir::{EvalCx, Graph};
use crate::types::{Array, Shared};

/// What a function is made of.
#[derive(Clone, Default)]
pub struct FunctionSpec {
    /// Its name in prints.
    pub name: Option<String>,
    /// What the caller gives; any expressions.
    pub inputs: Vec<Var>,
    /// What the caller gets.
    pub outputs: Vec<Var>,
    /// Shared leaves with their values after the call, computed from the values before it.
    pub updates: Vec<(Var, Var)>,
    /// Replaced expressions.
    pub givens: Vec<(Var, Var)>,
}

/// A callable function. Calls may come from many threads at once.
pub struct Function {}

impl Function {
    /// Compiles.
    ///
    /// # Errors
    /// `E0501` for an output that depends on an input not given; `E0502` for two updates of one variable;
    /// `E0503` for an update of another dtype or rank.
    pub fn new(_spec: FunctionSpec) -> Result<Function> { todo!() }
    /// Runs. Shared variables are read at the start and all written at the end; an error writes none.
    ///
    /// # Errors
    /// `E0504` where an argument does not fit its input; whatever the ops report.
    pub fn call(&self, _cx: &mut EvalCx, _args: &[Array]) -> Result<Vec<Array>> { todo!() }
    /// Its graph: parameters are the inputs, then the shared variables; results the outputs, then the updates.
    pub fn graph(&self) -> &Graph { todo!() }
    /// The shared variables that it reads.
    pub fn shared(&self) -> &[Shared] { todo!() }
    /// Positions of inputs on which nothing depends.
    pub fn unused_inputs(&self) -> Vec<usize> { todo!() }
}
