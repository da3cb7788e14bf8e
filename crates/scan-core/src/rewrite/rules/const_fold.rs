//! What depends on constants alone is evaluated by the law.

use super::Rule;
use crate::ir::{Arg, EvalCx, Graph, Op, Value};
use crate::rewrite::local::Local;
use crate::types::Array;

/// The rules.
pub static RULES: &[Rule] = &[Rule { doc: "op of constants → constant", on: &[], apply: fold }];

/// A larger result is only made where it is not larger than the inputs.
const LARGEST: usize = 1 << 10;
/// Larger inputs are left to the engine.
const MOST_WORK: usize = 1 << 20;

fn fold(local: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    if ins.is_empty() || !ins.iter().all(|&v| local.g.const_value(v).is_some()) || !foldable(op) {
        return None;
    }
    let args: Vec<Arg> = ins.iter().map(|&v| local.g.arg(v)).collect();
    let given: usize = args.iter().map(|a| bytes(a.value.as_ref())).sum();
    let [ty] = &op.def().infer(&args).ok()?[..] else { return None };
    let made = ty.dims.iter().map(|d| d.value()).try_fold(ty.dtype.size(), |n, d| n.checked_mul(d?))?;
    if made > LARGEST && made > given || given > MOST_WORK {
        return None;
    }
    evaluated(local.g, op, ins)
}

/// The constant that an op gives for constants, whatever its size.
pub fn evaluated(g: &mut Graph, op: &Op, ins: &[Value]) -> Option<Value> {
    let mut values: Vec<Array> = ins.iter().map(|&v| g.const_value(v).cloned()).collect::<Option<_>>()?;
    let out = op.evaluate(&mut EvalCx::new(), &mut values).ok()?.pop()?;
    Some(g.constant(out))
}

fn bytes(a: Option<&Array>) -> usize {
    a.map_or(0, |a| a.len() * a.dtype().size())
}

/// Not: loops and user ops, which may take any time; marks, which other rules release.
fn foldable(op: &Op) -> bool {
    !op.is_mark() && !matches!(op, Op::IfElse(_)) && op.number() != Op::OTHERS
}
