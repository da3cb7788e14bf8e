//! Broadcasts beside elementwise functions: a value that stands for many is computed once.

use super::Rule;
use crate::ir::{Op, Value};
use crate::rewrite::local::Local;

/// The rules. They apply to every elementwise function.
pub static RULES: &[Rule] = &[
    Rule { doc: "f(x, broadcast of y to the shape of x) → f(x, y)", on: &[], apply: left_to_the_function },
    Rule { doc: "f(broadcast of x) → broadcast of f(x)", on: &[], apply: after_the_function },
];

/// What is broadcast, where the broadcast cannot fail.
fn source(l: &Local, v: Value) -> Option<Value> {
    let (Op::BroadcastLike(_) | Op::BroadcastTo(_), ins) = l.node(v)? else { return None };
    l.certain(v).then_some(ins[0])
}

/// Another input has the shape already, and functions broadcast by themselves.
fn left_to_the_function(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let Op::Elem(f) = *op else { return None };
    let at = (0..ins.len()).find(|&i| {
        let others = || (0..ins.len()).filter(|&k| k != i && ins[k] != ins[i]);
        source(l, ins[i]).is_some() && others().any(|k| l.same_shape(ins[k], ins[i]))
    })?;
    let mut ins = ins.to_vec();
    ins[at] = source(l, ins[at])?;
    l.elem(f, &ins)
}

/// All inputs are scalars, or broadcasts of scalars to one shape.
fn after_the_function(l: &mut Local, op: &Op, ins: &[Value]) -> Option<Value> {
    let (Op::Elem(_) | Op::Cast(_)) = op else { return None };
    let model = *ins.iter().find(|&&v| l.ty(v).rank() > 0)?;
    let scalar = |&v: &Value| match l.ty(v).rank() {
        0 => Some(v),
        _ => source(l, v).filter(|&x| l.ty(x).rank() == 0 && l.same_shape(v, model)),
    };
    let scalars: Vec<Value> = ins.iter().map(scalar).collect::<Option<_>>()?;
    let value = l.make(op.clone(), &scalars)?;
    l.broadcast_as(value, model)
}
