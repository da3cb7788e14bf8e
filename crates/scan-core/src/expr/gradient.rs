//! Gradients of expressions.

use super::Var;
use crate::base::{Result, Span};

/// Options of [`grad`].
#[derive(Clone, Default)]
pub struct GradOptions {
    /// Expressions through which no gradient flows.
    pub consider_constant: Vec<Var>,
    /// Expressions whose cotangents are given.
    pub known_grads: Vec<(Var, Var)>,
    /// Where the gradient was asked for.
    pub span: Span,
}

/// The cotangents of `wrt`, given expressions with their cotangents (`None` as cotangent: ones for a scalar float).
/// `None` in the result: disconnected.
///
/// # Errors
/// `E0401` for a cost that is not a scalar float, `E0403` for an op without gradient.
pub fn grad(_cost: Option<&Var>, _wrt: &[Var], _options: &GradOptions) -> Result<Vec<Option<Var>>> { todo!() }

/// The cotangents of `wrt` given those of `outputs` (L-op). `None` in the result: disconnected.
///
/// # Errors
/// `E0403` for an op without gradient; where cotangents do not fit.
pub fn vjp(_outputs: &[Var], _cotangents: &[Var], _wrt: &[Var], _options: &GradOptions) -> Result<Vec<Option<Var>>> { todo!() }

/// The tangents of `outputs` given those of `wrt` (R-op). `None` in the result: disconnected.
///
/// # Errors
/// As [`vjp`].
pub fn jvp(_outputs: &[Var], _wrt: &[Var], _tangents: &[Var], _span: Span) -> Result<Vec<Option<Var>>> { todo!() }
