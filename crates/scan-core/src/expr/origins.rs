//! Where another dtype comes from: what an error says of a loop whose step gives a state another dtype than it had.

use super::Var;
use crate::base::Diagnostic;
use crate::types::DType;
use rustc_hash::FxHashSet;

/// How many values are named at most.
const NAMED: usize = 3;

/// Says in an error which values bring the dtype in, and how each is cast. want: the state's dtype; after: what the step makes of it.
pub(super) fn explain(mut error: Box<Diagnostic>, want: DType, after: &Var) -> Box<Diagnostic> {
    let got = after.ty().dtype;
    if want.promote(got) == want {
        return error.help(of_states(want, got));
    }
    let found = guilty(origins(after, got), want);
    for v in found.iter().take(NAMED) {
        let note = format!("{} ({}){}", what(v), v.span(), so(v, want, got));
        if !error.notes.contains(&note) {
            error = error.note(note);
        }
    }
    if loses(want, got) {
        return error.help(of_states(want, got));
    }
    let casts: Vec<String> = found.iter().take(NAMED).filter_map(|v| cast(v, want)).collect();
    for advice in &casts {
        if !error.helps.contains(advice) {
            error = error.help(advice);
        }
    }
    if casts.is_empty() { error.help(format!("rs.cast(x, \"{want}\") of it in the step, or an initial state of {got}")) } else { error }
}

/// True where what the step makes would have other values as the state's dtype.
fn loses(want: DType, got: DType) -> bool {
    want == DType::Bool || (got.is_float() && !want.is_float())
}

/// Advice about the state, where it, or no value that the step reads, is at fault.
fn of_states(want: DType, got: DType) -> String {
    if (want, got) == (DType::F64, DType::F32) {
        return "rs.cast(value, \"float64\") of what the step returns; or an initial state of float32: rs.zeros(…, dtype=\"float32\")"
            .into();
    }
    if loses(want, got) {
        let zero = if got.is_float() { "0.0 in place of 0" } else { "0 in place of False" };
        return format!(
            "start from {got}: {zero}, or rs.cast(initial, \"{got}\"); a cast of the step's result to {want} would change its values"
        );
    }
    format!("rs.cast(value, \"{want}\") of what the step returns, or an initial state of {got}")
}

/// The name of the op that makes it.
fn op(v: &Var) -> Option<&str> {
    v.owner().map(|(op, ..)| op.name())
}

fn inputs(v: &Var) -> &[Var] {
    v.owner().map_or(&[], |(_, ins, _)| ins)
}

/// It makes an array of numbers.
fn is_made(v: &Var) -> bool {
    op(v).is_some_and(|op| ["broadcast_to", "broadcast_like", "eye", "arange"].contains(&op))
}

/// The values of a dtype that none of their inputs has, in the order in which the step reads them: none that was cast to another.
fn origins(made: &Var, dtype: DType) -> Vec<Var> {
    let (mut seen, mut found, mut waiting) = (FxHashSet::default(), vec![], vec![made.clone()]);
    while let Some(v) = waiting.pop() {
        if !seen.insert(v.key()) {
            continue;
        }
        let before: Vec<Var> = if is_made(&v) { vec![] } else { inputs(&v).iter().filter(|x| x.ty().dtype == dtype).cloned().collect() };
        // A Python number makes floats of integers and bools that it meets: these are at fault, not the number.
        let met = !before.is_empty() && before.iter().all(|x| number(x).is_some()) && inputs(&v).iter().any(|x| !x.ty().dtype.is_float());
        if before.is_empty() || met {
            found.push(v);
        } else {
            waiting.extend(before.into_iter().rev());
        }
    }
    found
}

/// Those that bring the dtype in. Arithmetic casts what meets a wider array, and Python numbers take the dtype of what they meet: so casts
/// count where nothing else does, and numbers where there are no casts.
fn guilty(found: Vec<Var>, want: DType) -> Vec<Var> {
    let (casts, rest): (Vec<Var>, Vec<Var>) = found.into_iter().partition(|v| op(v) == Some("cast"));
    let (numbers, others): (Vec<Var>, Vec<Var>) = rest.into_iter().partition(|v| v.const_value().is_some() && v.ty().rank() == 0);
    let met: Vec<Var> = others.iter().flat_map(|v| meets(v, want)).collect();
    if !met.is_empty() {
        return met;
    }
    let wider: Vec<Var> = casts.iter().map(|v| inputs(v)[0].clone()).filter(|x| x.ty().dtype != want).collect();
    [wider, casts].into_iter().find(|list| !list.is_empty()).unwrap_or(numbers)
}

/// What has names of what meets in an op, of other dtypes than the state's; else the op.
fn meets(v: &Var, want: DType) -> Vec<Var> {
    let named = |x: &&Var| x.name().is_some() && x.ty().dtype != want;
    let named: Vec<Var> = if is_made(v) { vec![] } else { inputs(v).iter().filter(named).cloned().collect() };
    if named.is_empty() { vec![v.clone()] } else { named }
}

/// A number as Python writes it, of a constant without a name.
fn number(v: &Var) -> Option<String> {
    let value = v.const_value().filter(|a| a.shape().is_empty() && v.name().is_none())?;
    Some(if value.dtype().is_float() { format!("{:?}", value.item_f64()?) } else { value.item_i64()?.to_string() })
}

/// What a value is.
fn what(v: &Var) -> String {
    let dtype = v.ty().dtype;
    if is_made(v) {
        return format!("the array that is made here is {dtype}");
    }
    if v.name().is_some() {
        return format!("`{}` is {dtype}", v.describe());
    }
    if let Some(number) = number(v) {
        return format!("the constant {number} is {dtype}");
    }
    match op(v) {
        _ if v.const_value().is_some() => format!("a constant array is {dtype}"),
        Some(op) => format!("`{op}` of {} gives {dtype}", dtypes(inputs(v))),
        None => format!("`{}` is {dtype}", v.describe()),
    }
}

/// The dtypes of values, each once.
fn dtypes(values: &[Var]) -> String {
    let mut all: Vec<String> = vec![];
    for v in values {
        let dtype = v.ty().dtype.to_string();
        if !all.contains(&dtype) {
            all.push(dtype);
        }
    }
    if all.is_empty() { "nothing".into() } else { all.join(" and ") }
}

/// What follows of a value's dtype.
fn so(v: &Var, want: DType, got: DType) -> String {
    if v.ty().dtype == got { format!(", so the step gives {got}") } else { format!(", and with {want} that gives {got}") }
}

/// How a value is cast, under a name of its own: what is named by an item or a field cannot always be assigned to.
fn cast(v: &Var, want: DType) -> Option<String> {
    if is_made(v) {
        return Some(format!(
            "arrays of rs.zeros, rs.ones, rs.eye and others are float64 unless told: dtype=\"{want}\", or rs.config.floatX"
        ));
    }
    let Some(name) = v.name() else {
        return match number(v) {
            Some(_) => {
                let kind = if v.ty().dtype.is_float() { "float" } else { "int" };
                Some(format!("{kind}(…) of it: a number of Python's takes the dtype of what it meets, one of NumPy's keeps its own"))
            }
            None => v.const_value().map(|_| format!("rs.constant(array, dtype=\"{want}\")")),
        };
    };
    if let Some(sequence) = of_row(&name) {
        return Some(format!("make them agree in the step: rs.cast(row, \"{want}\") of the row of `{sequence}`"));
    }
    let last = name.rsplit('.').next().unwrap_or(&name);
    let own = if is_identifier(last) { last } else { "x" };
    Some(format!("make them agree outside the loop: {own} = rs.cast({name}, \"{want}\")"))
}

/// The name of the sequence of which this names a row, as the step sees it: `x[t-1]`.
fn of_row(name: &str) -> Option<&str> {
    let (sequence, tap) = name.strip_suffix(']')?.rsplit_once('[')?;
    tap.starts_with('t').then_some(sequence)
}

fn is_identifier(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || c == '_') && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
