//! A program for rows of its inputs, against the program for each row.

use super::build::Leaves;
use super::check::Fault;
use super::optimised::compare_alone;
use super::program::Program;
use crate::base::{Result, Span};
use crate::exec::{Engine, Function, FunctionSpec};
use crate::expr::Var;
use crate::expr::vmap::vmap;
use crate::ir::EvalCx;
use crate::rewrite::Options;
use crate::types::{Array, DType, Dim};
use std::collections::BTreeSet;

/// What rows multiply the inputs with: the second takes the decisions of the first, as the last two do, the third may stop at other steps.
const SCALES: [f64; 5] = [1.0, 1.0 - 1e-5, 1.0 - 1.0 / 16.0, 1.0 + 1e-5, 1.0];
const SAME: f64 = 1e-8;

/// What is there for rows that stop on their own alone.
const UNGUARD: &str = "scan_unguard";

/// Compares outputs of a program for rows of inputs with those of each row alone, in the evaluator and compiled. Adds the name of the pass that is
/// for such programs, where it found something to do.
///
/// # Errors
/// The first disagreement.
pub fn compare(program: &Program, leaves: &Leaves, outputs: &[Var], fired: &mut BTreeSet<&'static str>) -> std::result::Result<(), Fault> {
    let fault = |stage, text: String| Fault { stage, text };
    let inputs: Vec<Array> = program.inputs.iter().map(|i| i.value.to_array()).collect();
    if inputs.is_empty() {
        return Ok(());
    }
    let rows: Vec<Vec<Array>> = SCALES.iter().map(|k| inputs.iter().map(|x| scaled(x, *k)).collect()).collect();
    let alone = |passes| -> std::result::Result<Vec<Result<Vec<Array>>>, Fault> {
        let one = function(leaves.inputs.clone(), outputs.to_vec(), Engine::Eval, passes).map_err(|e| fault("row alone", e.title))?;
        Ok(rows.iter().map(|row| one.call(&mut EvalCx::new(), row)).collect())
    };
    let (alone, optimised) = (alone(Options::none())?, alone(Options::full())?);
    let many: Vec<Var> = leaves.inputs.iter().map(|v| Var::input(v.ty().rows(Dim::fresh()), None, Span::NONE)).collect();
    let pairs: Vec<(Var, Var)> = leaves.inputs.iter().cloned().zip(many.iter().cloned()).collect();
    let mapped = vmap(outputs, &pairs, Span::NONE).map_err(|e| fault("vmap", format!("{}: {}", e.code, e.title)))?;
    let wanted: Vec<Var> = mapped.iter().map(|(v, _)| v.clone()).collect();
    for (engine, passes, lost) in [(Engine::Eval, Options::none(), &alone), (Engine::Jit, Options::full(), &optimised)] {
        let f = function(many.clone(), wanted.clone(), engine, passes).map_err(|e| fault("rows", e.title))?;
        // So many that they are lanes, and fewer.
        for n in [5, 2] {
            let columns: Vec<Array> = (0..inputs.len()).map(|k| column(&rows[..n], k)).collect();
            let all = f.call(&mut EvalCx::new(), &columns);
            // What fails may be what nothing needs once passes have run.
            let own = if side_by_side(&alone[..n]) { &alone } else { lost };
            if !side_by_side(&own[..n]) {
                let refused = all.is_err() || mapped.iter().all(|(_, varies)| !varies);
                if !refused {
                    let text = format!("{n} rows of which one fails, or is longer than another, have values ({engine:?})");
                    return Err(fault("rows", text));
                }
                continue;
            }
            let all = match all {
                // What a row alone does without, all rows together may need.
                Err(_) if std::ptr::eq(own, &optimised) => continue,
                all => all.map_err(|e| fault("rows", format!("{}: {} {:?}", e.code, e.title, e.notes)))?,
            };
            let given: Vec<Array> = columns.iter().cloned().chain(f.shared().iter().map(|s| s.get())).collect();
            if engine == Engine::Eval && compare_alone(UNGUARD, f.graph(), &given, &all)? {
                fired.insert(UNGUARD);
            }
            for (r, alone) in own[..n].iter().flatten().enumerate() {
                for (k, ((all, (_, varies)), alone)) in all.iter().zip(&mapped).zip(alone).enumerate() {
                    let got = if *varies { all.row(r) } else { all.clone() };
                    if !same(&got, alone) {
                        return Err(fault("rows = each row", format!("{engine:?}, row {r}, item {k}: got {got:?} want {alone:?}")));
                    }
                }
            }
        }
    }
    Ok(())
}

fn function(inputs: Vec<Var>, outputs: Vec<Var>, engine: Engine, passes: Options) -> Result<Function> {
    Function::new(FunctionSpec { inputs, outputs, engine: Some(engine), passes, ..FunctionSpec::default() })
}

fn scaled(x: &Array, by: f64) -> Array {
    match x.dtype() {
        DType::F64 => Array::new(x.shape(), x.to_f64_vec().iter().map(|v| v * by).collect()),
        _ => x.clone(),
    }
}

fn column(rows: &[Vec<Array>], k: usize) -> Array {
    let column: Vec<Array> = rows.iter().map(|row| row[k].clone()).collect();
    Array::stack(&column, column[0].dtype(), column[0].shape())
}

/// True where all rows have values, of one shape each.
fn side_by_side(alone: &[Result<Vec<Array>>]) -> bool {
    let Some(Ok(first)) = alone.first() else { return false };
    let fits = |row: &Vec<Array>| row.iter().zip(first).all(|(a, b)| a.shape() == b.shape());
    alone.iter().all(|row| row.as_ref().is_ok_and(fits))
}

fn same(got: &Array, want: &Array) -> bool {
    let close = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= SAME * b.abs().max(1.0);
    got.dtype() == want.dtype() && got.shape() == want.shape() && got.to_f64_vec().iter().zip(want.to_f64_vec()).all(|(a, b)| close(*a, b))
}
