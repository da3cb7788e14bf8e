//! Expressions as text and back, for programs that are stored.

use super::Var;
use super::extract::Extract;
use super::splice::splice;
use crate::bail;
use crate::base::Result;
use crate::ir::Value;
use crate::ir::parse::{Context, parse_with};
use crate::types::Type;

/// The outputs as the text of a function of `leaves`, which may be any expressions.
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = scalar("x");
/// assert!(to_text(&[x.square()], &[x], "f")?.contains("square"));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// `E0501` where an output depends on something else than leaves and constants.
pub fn to_text(outputs: &[Var], leaves: &[Var], name: &str) -> Result<String> {
    Var::all_ok(leaves)?;
    let mut extract = Extract::new(false);
    leaves.iter().for_each(|leaf| {
        extract.bind(leaf);
    });
    let results: Vec<Value> = outputs.iter().map(|v| extract.value(v)).collect::<Result<_>>()?;
    if let Some((leaf, _)) = extract.leaves.first() {
        bail!(Value, "E0501", "the outputs depend on `{}`, which is not among the leaves", leaf.describe());
    }
    extract.graph.set_results(results);
    Ok(extract.graph.to_text(name))
}

/// The results of a function in text form, applied to `leaves`.
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = Var::number(2.0);
/// let text = to_text(&[scalar("x")], &[], "f");
/// assert_eq!(text.unwrap_err().code, "E0501");
/// let y = scalar("y");
/// let back = from_text(&to_text(&[y.square()], &[y], "f")?, &[x])?;
/// assert_eq!(back[0].eval()?, Array::scalar(4.0));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// `E0904` where their number is not that of the parameters; what the parser reports.
pub fn from_text(text: &str, leaves: &[Var]) -> Result<Vec<Var>> {
    let types: Vec<Type> = leaves.iter().map(|leaf| leaf.ty().clone()).collect();
    let (name, graph) = parse_with(text, &Context { leaves: &types, ..Context::default() })?;
    if graph.params().len() != leaves.len() {
        bail!(Parse, "E0904", "`{name}` has {} parameters, and {} leaves were given", graph.params().len(), leaves.len());
    }
    let known = graph.params().iter().copied().zip(leaves.iter().cloned()).collect();
    splice(&graph, known, graph.results())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Span;
    use crate::ir::Op;
    use crate::scalar::ElemOp;
    use crate::types::{DType, Type};

    fn input(name: &str) -> Var {
        Var::input(Type::unknown(DType::F64, 1), Some(name), Span::NONE)
    }
    fn exp(x: &Var) -> Var {
        Var::apply1(Op::Elem(ElemOp::Exp), &[x.clone()], Span::NONE).unwrap()
    }

    #[test]
    fn there_and_back() {
        let (x, y) = (input("x"), input("y"));
        let text = to_text(&[exp(&exp(&x)), x.clone()], &[x], "f").unwrap();
        let back = from_text(&text, &[y.clone()]).unwrap();
        assert_eq!(back[1], y);
        let (op, ins, _) = back[0].owner().unwrap();
        assert_eq!((op.name(), ins[0].owner().unwrap().1[0].clone()), ("exp", y));
    }

    #[test]
    fn any_expression_is_a_leaf_and_others_must_not_occur() {
        let x = input("x");
        let inner = exp(&x);
        assert!(!to_text(&[exp(&inner)], &[inner.clone()], "f").unwrap().contains("exp(exp"));
        assert_eq!(to_text(&[exp(&x)], &[], "f").unwrap_err().code, "E0501");
        let text = to_text(&[exp(&x)], &[x.clone()], "f").unwrap();
        assert_eq!(from_text(&text, &[]).unwrap_err().code, "E0904");
    }
}
