//! Gradients of expressions.

use super::Var;
use super::extract::{Extract, ancestors};
use super::splice::splice;
use super::sugar::here;
use crate::bail;
use crate::base::{Diagnostic, Kind, Result, Span};
use crate::grad::{self, Seeds};
use crate::ir::op::Assert;
use crate::ir::{AsWritten, Value};
use crate::types::{Array, DType, Type};
use rustc_hash::FxHashSet;

/// Options of [`grad_with`] and [`vjp`].
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = Var::number(3.0);
/// let inner = x.square();
/// let options = GradOptions { consider_constant: vec![inner.clone()], ..GradOptions::default() };
/// let slope = grad_with(Some(&(inner * &x)), &[x], &options)?.remove(0).unwrap();
/// assert_eq!(slope.eval()?, Array::scalar(9.0));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Default)]
pub struct GradOptions {
    /// Expressions through which no gradient flows.
    pub consider_constant: Vec<Var>,
    /// Expressions whose cotangents are given.
    pub known_grads: Vec<(Var, Var)>,
    /// These formulas are differentiated as they are written, also where a pass has better ones.
    pub as_written: AsWritten,
    /// Where the gradient was asked for.
    pub span: Span,
}

impl GradOptions {
    /// Reports the first of these and of its own expressions that failed.
    fn ok<'v>(&'v self, vars: impl Iterator<Item = &'v Var>) -> Result<()> {
        let own = self.consider_constant.iter().chain(self.known_grads.iter().flat_map(|(y, ct)| [y, ct]));
        Var::all_ok(vars.chain(own))
    }
}

/// The gradient of a scalar cost with respect to each of `wrt`, in their order: an array of the shape and dtype of each. An integer has a
/// float64 gradient of zeros.
///
/// Errors are kept in the result: `E0401` for a cost that is not a float scalar, `E0402` for an input that does not influence the cost
/// ([`grad_with`] gives `None` there), `E0403` for an op without gradient.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (x, w) = (vector("x"), vector("w"));
/// let cost = (&w * &x).square().sum();
/// let slopes = grad(&cost, &[&w, &x]);
/// let f = function(&[&x, &w], &[&slopes[0]]).compile()?;
/// assert_eq!(f.run(&[Array::vector(&[1.0, 2.0]), Array::vector(&[3.0, 4.0])])?, [Array::vector(&[6.0, 32.0])]);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[track_caller]
pub fn grad(cost: &Var, wrt: &[&Var]) -> Vec<Var> {
    let span = here();
    let owned: Vec<Var> = wrt.iter().map(|&v| v.clone()).collect();
    match grad_with(Some(cost), &owned, &GradOptions { span, ..GradOptions::default() }) {
        Ok(found) => found.into_iter().zip(wrt).map(|(g, v)| g.unwrap_or_else(|| Var::failed(disconnected(cost, v, span), span))).collect(),
        Err(error) => wrt.iter().map(|_| Var::failed(error.clone(), span)).collect(),
    }
}

fn disconnected(cost: &Var, input: &Var, span: Span) -> Box<Diagnostic> {
    let name = input.describe();
    let title = format!("the cost does not depend on `{name}`, or only through operations without a derivative");
    Diagnostic::new(Kind::Disconnected, "E0402", title)
        .label(span, "the gradient is asked for here")
        .label(cost.span(), "the cost")
        .label(input.span(), format!("`{name}` is made here"))
}

impl Var {
    /// The gradient of this scalar with respect to one variable: [`grad()`] of one.
    ///
    /// ```
    /// # use scan_core::prelude::*;
    /// let x = scalar("x");
    /// let f = function(&[&x], &[&x.square().grad(&x)]).compile()?;
    /// assert_eq!(f.run(&[Array::scalar(3.0)])?, [Array::scalar(6.0)]);
    /// # Ok::<(), Box<Diagnostic>>(())
    /// ```
    #[track_caller]
    pub fn grad(&self, wrt: &Var) -> Var {
        grad(self, &[wrt]).remove(0)
    }
}

/// The gradient of a scalar cost (or, without one, of what `known_grads` says) with respect to each of `wrt`.
/// An integer input has a float64 gradient of zeros. `None`: the input is not connected to the cost.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (x, y) = (scalar("x"), scalar("y"));
/// let slopes = grad_with(Some(&x.square()), &[x, y], &GradOptions::default())?;
/// assert!(slopes[0].is_some() && slopes[1].is_none());
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// `E0401` for a cost that is not a float scalar, `E0403` for an op without gradient.
pub fn grad_with(cost: Option<&Var>, wrt: &[Var], options: &GradOptions) -> Result<Vec<Option<Var>>> {
    let Some(cost) = cost else { return vjp(&[], &[], wrt, options) };
    Var::all_ok([cost])?;
    let ty = cost.ty();
    if ty.rank() != 0 || !ty.dtype.is_float() {
        let what = if ty.rank() != 0 { "a scalar" } else { "a float" };
        return Err(Diagnostic::new(Kind::Gradient, "E0401", format!("the cost of a gradient must be {what}, but it is {ty}"))
            .label(options.span, "the gradient is asked for here")
            .label(cost.span(), format!("this gives {ty}"))
            .help("reduce it first, e.g. with cost.sum() or cost.mean(); for all derivatives of an array use jacobian"));
    }
    let one = Var::constant(Array::full(ty.dtype, &[], 1.0), options.span);
    vjp(std::slice::from_ref(cost), &[one], wrt, options)
}

/// The cotangents of `wrt` given those of `outputs` (L-op). `None`: not connected.
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = constant(Array::vector(&[1.0, 2.0]));
/// let ct = constant(Array::vector(&[1.0, 10.0]));
/// let found = vjp(&[x.square()], &[ct], &[x], &GradOptions::default())?;
/// assert_eq!(found[0].as_ref().unwrap().eval()?, Array::vector(&[2.0, 40.0]));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// `E0403` for an op without gradient; `E0404` where a cotangent does not fit its output.
pub fn vjp(outputs: &[Var], cotangents: &[Var], wrt: &[Var], options: &GradOptions) -> Result<Vec<Option<Var>>> {
    options.ok(outputs.iter().chain(cotangents).chain(wrt))?;
    if outputs.len() != cotangents.len() {
        bail!(Gradient, "E0404", "{} outputs, but {} cotangents", outputs.len(), cotangents.len());
    }
    let mut all: Vec<Var> = outputs.iter().chain(wrt).cloned().collect();
    let mut extract = Extract::new(true);
    let known = options.known_grads.iter().map(|(y, _)| y);
    let marked: Vec<Var> = wrt.iter().chain(known).chain(&options.consider_constant).cloned().collect();
    let behind = set_apart(&mut extract, &marked)?;
    let mut seeds = Seeds::default();
    for (y, ct) in outputs.iter().zip(cotangents) {
        seeds.outputs.push(seed(&mut extract, y, ct, options.span)?);
        all.push(ct.clone());
    }
    for (y, ct) in &options.known_grads {
        seeds.known.push(seed(&mut extract, y, ct, options.span)?);
        all.extend([y.clone(), ct.clone()]);
    }
    for v in &options.consider_constant {
        seeds.constants.push(extract.value(v)?);
        all.push(v.clone());
    }
    let values: Vec<Value> = wrt.iter().map(|v| extract.value(v)).collect::<Result<_>>()?;
    let mut origins = extract.origins(&all);
    for (value, var) in behind {
        origins.entry(value).or_insert(var);
    }
    let mut graph = extract.graph;
    graph.set_span(options.span);
    graph.set_as_written(options.as_written);
    let found = grad::vjp(&mut graph, &seeds, &values)?;
    let found: Vec<Option<Value>> =
        found.into_iter().map(|v| v.map(|v| if graph.ty(v).dtype.is_float() { v } else { graph.cast(v, DType::F64) })).collect();
    let present: Vec<Value> = found.iter().flatten().copied().collect();
    let mut vars = splice(&graph, origins, &present)?.into_iter();
    Ok(found.into_iter().map(|v| v.and_then(|_| vars.next())).collect())
}

/// Gives each of these expressions a value of its own, so that the graph does not take another expression that is equal for it:
/// with z = 2x and y = 2x, the derivative of z·y with respect to z is y. Returns the values behind.
fn set_apart(extract: &mut Extract, vars: &[Var]) -> Result<Vec<(Value, Var)>> {
    let inner = |v: &Var| v.owner().is_some() && v.ty().dtype.is_float();
    if !vars.iter().any(inner) {
        return Ok(vec![]);
    }
    let marked: FxHashSet<&Var> = vars.iter().filter(|v| inner(v)).collect();
    let mut behind = vec![];
    for var in ancestors(vars).into_iter().filter(|v| marked.contains(v)) {
        let value = extract.value(&var)?;
        let apart = extract.graph.emit(Assert { message: format!("{:?}", var.key()) }, &[value]);
        extract.set(&var, apart);
        behind.push((value, var));
    }
    Ok(behind)
}

/// Refuses a cotangent or tangent of another shape than that of its output or input, and those of integers.
fn fits(what: &str, of: &str, got: &Type, want: &Type, span: Span) -> Result<()> {
    let unfit = want.rank() != got.rank() || want.dims.iter().zip(&got.dims).any(|(a, b)| a.conflicts(b));
    if unfit || !want.dtype.is_float() {
        return Err(Diagnostic::new(Kind::Gradient, "E0404", format!("{what} of type {got} does not fit {of} of type {want}")).at(span));
    }
    Ok(())
}

fn seed(extract: &mut Extract, y: &Var, ct: &Var, span: Span) -> Result<(Value, Value)> {
    fits("a cotangent", "an output", ct.ty(), y.ty(), span)?;
    let want = y.ty();
    let (value, ct) = (extract.value(y)?, extract.value(ct)?);
    Ok((value, extract.graph.cast(ct, want.dtype)))
}

/// The tangents of `outputs` given those of `wrt` (R-op). `None`: not connected.
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = Var::number(3.0);
/// let t = jvp(&[x.square()], &[x.clone()], &[Var::number(1.0)], Span::NONE)?;
/// assert_eq!(t[0].as_ref().unwrap().eval()?, Array::scalar(6.0));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// As [`vjp`].
pub fn jvp(outputs: &[Var], wrt: &[Var], tangents: &[Var], span: Span) -> Result<Vec<Option<Var>>> {
    jvp_with(outputs, wrt, tangents, &GradOptions { span, ..GradOptions::default() })
}

/// As [`jvp`], with options, of which `known_grads` has no meaning here.
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = Var::number(3.0);
/// let options = GradOptions { consider_constant: vec![x.clone()], ..GradOptions::default() };
/// assert!(jvp_with(&[x.square()], &[x], &[Var::number(1.0)], &options).is_ok());
/// ```
///
/// # Errors
/// As [`vjp`].
pub fn jvp_with(outputs: &[Var], wrt: &[Var], tangents: &[Var], options: &GradOptions) -> Result<Vec<Option<Var>>> {
    options.ok(outputs.iter().chain(wrt).chain(tangents))?;
    if wrt.len() != tangents.len() {
        bail!(Gradient, "E0404", "{} inputs, but {} tangents", wrt.len(), tangents.len());
    }
    outputs.iter().try_for_each(|y| fits("a tangent", "an output", y.ty(), y.ty(), options.span))?;
    let mut extract = Extract::new(true);
    let marked: Vec<Var> = wrt.iter().chain(&options.consider_constant).cloned().collect();
    let behind = set_apart(&mut extract, &marked)?;
    let wanted: Vec<Value> = outputs.iter().map(|y| extract.value(y)).collect::<Result<_>>()?;
    let mut given = vec![];
    for (x, t) in wrt.iter().zip(tangents).filter(|(x, _)| x.ty().dtype.is_float()) {
        fits("a tangent", "an input", t.ty(), x.ty(), options.span)?;
        let (value, tangent) = (extract.value(x)?, extract.value(t)?);
        given.push((value, extract.graph.cast(tangent, x.ty().dtype)));
    }
    let constants: Vec<Value> = options.consider_constant.iter().map(|v| extract.value(v)).collect::<Result<_>>()?;
    let all: Vec<Var> = [outputs, tangents, &marked].concat();
    let mut origins = extract.origins(&all);
    for (value, var) in behind {
        origins.entry(value).or_insert(var);
    }
    let mut graph = extract.graph;
    graph.set_span(options.span);
    graph.set_as_written(options.as_written);
    let found = grad::jvp(&mut graph, &given, &wanted, &constants)?;
    let present: Vec<Value> = found.iter().flatten().copied().collect();
    let mut vars = splice(&graph, origins, &present)?.into_iter();
    Ok(found.into_iter().map(|v| v.and_then(|_| vars.next())).collect())
}
