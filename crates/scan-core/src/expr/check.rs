//! What can be wrong with a loop, said with the user's own lines.

use super::extract::ancestors_until;
use super::loops::StateSlot;
use super::{Var, origins};
use crate::base::{Diagnostic, Kind, Result, Span};
use crate::ir::op::Cast;
use crate::scan::step::grows;
use crate::types::{DType, Type};

type Error = Box<Diagnostic>;

/// `n_steps` as i64 scalar.
pub fn n_steps(n: &Var, span: Span) -> Result<Var> {
    let ty = n.ty();
    if ty.rank() != 0 || !ty.dtype.is_int() {
        return Err(Diagnostic::new(Kind::Scan, "E0117", format!("n_steps must be an integer scalar, but it is {ty}")).label(span, ""));
    }
    if ty.dtype == DType::I64 { Ok(n.clone()) } else { Var::apply1(Cast { dtype: DType::I64 }, std::slice::from_ref(n), span) }
}

/// A constant n_steps below 0.
pub fn negative_steps(n: i64, span: Span) -> Error {
    Diagnostic::new(Kind::Scan, "E0111", format!("n_steps is {n}: a loop cannot run a negative number of steps"))
        .label(span, "")
        .help("to read the sequences from the end, use go_backwards=True")
}

/// Neither n_steps nor a sequence.
pub fn no_steps(span: Span) -> Error {
    Diagnostic::new(Kind::Scan, "E0110", "nothing tells how many steps the loop runs")
        .label(span, "no n_steps and no sequence")
        .help("pass n_steps=..., or something to loop over in sequences, or end the loop with until(...)")
}

/// A rank-0 sequence.
pub fn no_rows(name: &str, x: &Var, span: Span) -> Error {
    Diagnostic::new(Kind::Scan, "E0118", format!("sequence `{name}` is a scalar: it has no axis to loop over"))
        .label(span, "")
        .label(x.span(), format!("`{name}` is {}", x.ty()))
        .help("pass it in non_sequences if every step is to see the whole value")
}

/// Initial rows for several taps.
pub fn initial_rows(initial: &Var, span_rows: usize, name: &str, span: Span) -> Result<()> {
    let ty = initial.ty();
    let have = if ty.rank() == 0 { Some(0) } else { ty.dims[0].value() };
    match have {
        Some(n) if n < span_rows => {
            Err(Diagnostic::new(Kind::Scan, "E0104", format!("the initial state of `{name}` has too few rows for its taps"))
                .label(span, "")
                .label(initial.span(), format!("this is {ty}"))
                .note(format!(
                    "the oldest tap is {}, so it needs {span_rows} rows; row 0 is the value {span_rows} steps before the first",
                    -(span_rows as i64)
                )))
        }
        _ => Ok(()),
    }
}

/// The stopping condition.
pub fn until(cond: &Var, span: Span) -> Result<()> {
    if cond.ty().rank() == 0 {
        return Ok(());
    }
    Err(Diagnostic::new(Kind::Scan, "E0108", format!("until takes one truth value, but its condition is {}", cond.ty()))
        .label(cond.span(), format!("this gives {}", cond.ty()))
        .label(span, "")
        .help("reduce it with .any() or .all()"))
}

/// Updates of a step: shared variables, each once, and of one type.
pub fn updates(updates: &[(Var, Var)], span: Span) -> Result<()> {
    for (i, (leaf, value)) in updates.iter().enumerate() {
        if leaf.as_shared().is_none() {
            return Err(Diagnostic::new(Kind::Scan, "E0115", format!("`{}` is updated, but it is not a shared variable", leaf.describe()))
                .label(leaf.span(), "made here")
                .label(span, "")
                .help("the keys of updates are shared variables; other values that change from step to step are states (outputs_info)"));
        }
        if updates[..i].iter().any(|u| u.0.as_shared() == leaf.as_shared()) {
            return Err(Diagnostic::new(Kind::Scan, "E0119", format!("`{}` is updated twice in one step", leaf.describe())).label(span, ""));
        }
        same_type(&leaf.describe(), leaf.ty(), leaf.span(), value, span)?;
    }
    Ok(())
}

/// A state's next row.
pub fn state(slot: &StateSlot, out: &Var, span: Span) -> Result<()> {
    same_type(&slot.name, &slot.init.ty().row(), span, out, span)
}

/// What to do about a state that gains axes.
const WIDENS: &str = "only if it is meant to have these axes: (n,) and (n, 1) meet as (n, n); else index or reduce in the step";

fn same_type(name: &str, before: &Type, before_span: Span, after: &Var, span: Span) -> Result<()> {
    let ty = after.ty();
    let fault = if before.dtype != ty.dtype {
        Some(("E0103", "type"))
    } else if before.rank() != ty.rank() {
        Some(("E0101", "rank"))
    } else if before.dims.iter().zip(&ty.dims).any(|(a, b)| a.conflicts(b)) {
        Some(("E0102", "shape"))
    } else {
        None
    };
    let Some((code, what)) = fault else { return Ok(()) };
    let mut error = Diagnostic::new(Kind::ScanType, code, format!("state `{name}` changes {what} from one step to the next"))
        .label(before_span.or(span), format!("step 0 has {before}"))
        .label(after.span(), format!("step t gives {ty}"));
    if code == "E0103" {
        return Err(origins::explain(error, before.dtype, after));
    }
    error = error.help("give the initial state the shape that the step returns");
    if code == "E0101" && ty.rank() > before.rank() {
        error = error.help(WIDENS);
    }
    let longer = code == "E0102" && before.dims.iter().zip(&ty.dims).any(|(a, b)| a.value() < b.value());
    Err(if longer { grows(error) } else { error })
}

/// Captured shared variables that were not passed.
pub fn strict(strict: bool, captured: &[Var], passed: &[Var], span: Span) -> Result<()> {
    if !strict {
        return Ok(());
    }
    let mut behind = ancestors_until(captured, passed).into_iter();
    let missing = behind.find(|v| v.as_shared().is_some() && !passed.iter().any(|p| p.as_shared() == v.as_shared()));
    let Some(v) = missing else { return Ok(()) };
    let name = v.describe();
    Err(Diagnostic::new(Kind::Scan, "E0113", format!("the step uses the shared variable `{name}`, which was not passed to the loop"))
        .label(v.span(), format!("`{name}` is made here"))
        .label(span, "strict=True")
        .help(format!("add `{name}` to non_sequences, or drop strict=True")))
}
