//! A function of one row as a function of many.

use super::Var;
use super::extract::Extract;
use super::splice::splice;
use crate::base::{Diagnostic, Id, Kind, Result, Span};
use crate::ir::{Batched, Batching, Graph, Value};
use crate::ops::batch::graph;
use crate::ops::batch::shapes::checked;
use rustc_hash::{FxHashMap, FxHashSet};

/// An expression for one row of an array, of which each row is one along the first axis: what a function under [`vmap`] is given.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert_eq!(row(&matrix("m"), Span::NONE)?.ty().rank(), 1);
/// assert_eq!(row(&scalar("x"), Span::NONE).unwrap_err().code, "E0128");
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// `E0128` for a scalar.
pub fn row(rows: &Var, span: Span) -> Result<Var> {
    Var::all_ok([rows])?;
    if rows.ty().rank() == 0 {
        let title = format!("a value of type {} has no axis to be mapped over", rows.ty());
        return Err(Diagnostic::new(Kind::Shape, "E0128", title).at(span));
    }
    Ok(Var::input(rows.ty().row(), rows.name().as_deref(), span))
}

/// The values of expressions for many rows: `rows` has the expressions of one row, as [`row`] gives them, with the arrays of all rows. Each
/// result has a leading axis, or (false) is the same in every row.
///
/// ```
/// use scan_core::prelude::*;
///
/// let rows = constant(Array::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0]));
/// let one = row(&rows, Span::NONE)?;
/// let found = vmap(&[one.sum()], &[(one, rows)], Span::NONE)?;
/// assert_eq!(found[0].0.eval()?, Array::vector(&[3.0, 7.0]));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// `E0128` where arrays have different numbers of rows, or there is none; what type inference reports.
pub fn vmap(outputs: &[Var], rows: &[(Var, Var)], span: Span) -> Result<Vec<(Var, bool)>> {
    of_rows(outputs, rows, span, false)
}

/// As [`vmap`] where the rows are the unit vectors, those of `eye(n)` of a float type: derivatives for each of them. What is known to be zero
/// stays zero, also beside what is not finite.
///
/// ```
/// use scan_core::prelude::*;
///
/// let (x, units) = (constant(Array::vector(&[0.0, 4.0])), constant(Array::new(&[2, 2], vec![1.0, 0.0, 0.0, 1.0])));
/// let one = row(&units, Span::NONE)?;
/// let found = vmap_units(&[&one / &x], (one, units), Span::NONE)?;
/// assert_eq!(found[0].0.eval()?, Array::new(&[2, 2], vec![f64::INFINITY, 0.0, 0.0, 0.25]));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// As [`vmap`].
pub fn vmap_units(outputs: &[Var], units: (Var, Var), span: Span) -> Result<Vec<(Var, bool)>> {
    of_rows(outputs, &[units], span, true)
}

fn of_rows(outputs: &[Var], rows: &[(Var, Var)], span: Span, units: bool) -> Result<Vec<(Var, bool)>> {
    let mut extract = Extract::new(true);
    let params: Vec<Value> = rows.iter().map(|(one, _)| extract.value(one)).collect::<Result<_>>()?;
    let wanted: Vec<Value> = outputs.iter().map(|v| extract.value(v)).collect::<Result<_>>()?;
    let from = extract.graph.clone();
    let arrays: Vec<Value> = rows.iter().map(|(_, all)| extract.value(all)).collect::<Result<_>>()?;
    let all: Vec<Var> = outputs.iter().chain(rows.iter().map(|(_, all)| all)).cloned().collect();
    let origins = extract.origins(&all);
    let mut g = extract.graph;
    g.set_span(span);
    let arrays = of_one_extent(&mut g, &arrays).map_err(|e| e.at(span))?;
    let Some(&leading) = arrays.first() else {
        return Err(Diagnostic::new(Kind::Shape, "E0128", "nothing is mapped over: at least one argument needs an axis").at(span));
    };
    let varying = dependent(&from, &params);
    let fixed = from.value_ids().filter(|v| !varying.contains(v)).map(|v| (v, Batched::Fixed(v)));
    let given: FxHashMap<Value, Batched> = fixed.chain(params.iter().copied().zip(arrays.iter().map(|v| Batched::Rows(*v)))).collect();
    let mut batching = Batching::new(&mut g, leading);
    if units {
        batching.learn_identity(leading)?;
    }
    let found = mapped(&mut batching, &from, &given, &wanted)?;
    let values: Vec<Value> = found.iter().map(|x| x.value()).collect();
    let vars = splice(&g, origins, &values)?;
    Ok(vars.into_iter().zip(found).map(|(var, x)| (var, x.varies())).collect())
}

/// All rows at once, or, where that cannot be, one after the other.
fn mapped(b: &mut Batching, from: &Graph, given: &FxHashMap<Value, Batched>, wanted: &[Value]) -> Result<Vec<Batched>> {
    if let Some(images) = graph(b, from, given, wanted)? {
        let found: Option<Vec<Batched>> = wanted.iter().map(|v| images.get(*v)).collect();
        if let Some(found) = found.filter(|all| !all.iter().any(|x| matches!(x, Batched::Ragged { .. }))) {
            return Ok(found.into_iter().map(|x| b.settled(x)).collect());
        }
    }
    let live = from.needed(wanted);
    let varies = |v: &Value| given.get(v).is_none_or(|x| x.varies());
    let nodes = from.nodes().enumerate().filter(|(id, n)| live[id.idx()] && n.outs.iter().any(varies));
    let mut read: Vec<Value> = nodes.flat_map(|(_, n)| n.ins.iter().copied()).filter(|v| given.contains_key(v)).collect();
    read.extend(wanted.iter().filter(|v| given.contains_key(v)));
    read.sort_unstable();
    read.dedup();
    let frontier: Vec<(Value, Batched)> = read.into_iter().map(|v| (v, given[&v])).collect();
    let (own, _): (Vec<Value>, Vec<Value>) = wanted.iter().copied().partition(varies);
    let mut looped = b.loop_over(from, &frontier, &own)?.into_iter();
    Ok(wanted.iter().map(|v| if varies(v) { looped.next().unwrap_or(Batched::Fixed(*v)) } else { given[v] }).collect())
}

/// The arrays, of which it is checked that they have as many rows each.
fn of_one_extent(g: &mut Graph, arrays: &[Value]) -> Result<Vec<Value>> {
    let Some(&first) = arrays.first() else { return Ok(vec![]) };
    // An extent that is known tells the others.
    let best = arrays.iter().copied().find(|v| g.ty(*v).dims[0].value().is_some()).unwrap_or(first);
    let mut found = vec![];
    for &array in arrays {
        let (own, common) = (g.ty(array).dims[0].clone(), g.ty(best).dims[0].clone());
        if own.conflicts(&common) {
            let (own, common) = (g.ty(array).to_string(), g.ty(best).to_string());
            let title = format!("arrays that are mapped over together have different numbers of rows: {common} and {own}");
            return Err(Diagnostic::new(Kind::Shape, "E0128", title).help("the mapped axes of all arguments have one extent"));
        }
        found.push(if own == common { array } else { checked_rows(g, array, best)? });
    }
    Ok(found)
}

/// An array with as many rows as another, or an error of the call.
fn checked_rows(g: &mut Graph, array: Value, like: Value) -> Result<Value> {
    let rows = g.dim(like, 0);
    checked(g, array, (0, rows), "arrays that are mapped over together have different numbers of rows")
}

/// Values that depend on some others.
fn dependent(g: &Graph, params: &[Value]) -> FxHashSet<Value> {
    let mut found: FxHashSet<Value> = params.iter().copied().collect();
    for node in g.nodes().iter() {
        if node.ins.iter().any(|v| found.contains(v)) {
            found.extend(node.outs.iter().copied());
        }
    }
    found
}
