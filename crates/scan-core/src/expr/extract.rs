//! Expressions to a graph.

use super::Var;
use crate::base::Result;

/// The same outputs with some expressions replaced by others (simultaneously; replacements are not searched again).
/// Loops are entered only through their inputs.
///
/// # Errors
/// What type inference reports for the new inputs.
pub fn substitute(_outputs: &[Var], _replace: &[(Var, Var)]) -> Result<Vec<Var>> { todo!() }
