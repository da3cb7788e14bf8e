//! Joining.

use super::args::expect_count;
use super::support::{agree, check_axes, is_float, one, slice_at};
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::shape::{count, tuple};
use crate::types::{Array, DType, Element, Extents, Type, memory};
use crate::{bail, dispatch};

/// The dtype is the promotion of all; the other extents must agree, else `E0206`.
impl OpDef for Join {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("join", 1, true, ins)?;
        let (first, rest) = (&ins[0], &ins[1..]);
        check_axes("join", &[self.axis], &first.ty)?;
        let mut out = first.ty.clone();
        for part in rest {
            if part.ty.rank() != out.rank() {
                bail!(Type, "E0206", "`join` takes arrays of equal rank, got {}", types(ins));
            }
            out.dtype = out.dtype.promote(part.ty.dtype);
            for (axis, (d, p)) in out.dims.iter_mut().zip(&part.ty.dims).enumerate() {
                *d = match (axis == self.axis, agree(d, p)) {
                    (true, _) => d.add(p),
                    (false, Some(d)) => d,
                    (false, None) => return Err(self.mismatch(axis, &types(ins))),
                };
            }
        }
        Ok(one(out))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let mut shape: Extents = ins[0].shape().into();
        let mut dtype = ins[0].dtype();
        for part in &ins[1..] {
            dtype = dtype.promote(part.dtype());
            let differs = |&axis: &usize| axis != self.axis && part.shape()[axis] != shape[axis];
            if let Some(axis) = (0..shape.len()).find(differs) {
                let shapes: Vec<String> = ins.iter().map(|x| tuple(x.shape())).collect();
                return Err(self.mismatch(axis, &shapes.join(" and ")));
            }
            shape[self.axis] += part.shape()[self.axis];
        }
        ins.iter_mut().filter(|x| x.dtype() != dtype).for_each(|x| *x = x.cast(dtype));
        let mut rest = ins.iter().filter(|x| x.shape()[self.axis] > 0);
        if let (Some(only), None) = (rest.next(), rest.next()) {
            return Ok(one(only.clone()));
        }
        Ok(one(dispatch!(dtype, T => join::<T>(ins, self.axis, &shape))))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(vec![None; site.ins.len()]) };
        let mut lo = g.int(0);
        let mut out = Vec::with_capacity(site.ins.len());
        for &part in site.ins {
            let hi = g.dim(part, self.axis);
            let hi = plus(g, lo, hi);
            out.push(is_float(g, part).then(|| {
                let rows = slice_at(g, ct, self.axis, "s:e", &[lo, hi]);
                let rows = g.cast(rows, g.ty(part).dtype);
                g.reshape_like(rows, part)
            }));
            lo = hi;
        }
        Ok(out)
    }

    fn can_fail(&self) -> bool {
        true
    }
    fn fallible(&self, g: &Graph, ins: &[Value]) -> bool {
        let dims = |v: &Value| &g.ty(*v).dims;
        let same = |axis: usize| axis == self.axis || ins.iter().all(|v| dims(v)[axis] == dims(&ins[0])[axis]);
        !(0..dims(&ins[0]).len()).all(same)
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.all_rows(Join { axis: self.axis + 1 }, ins)
    }
}

impl Join {
    fn mismatch(&self, axis: usize, shapes: &str) -> Box<Diagnostic> {
        let title = format!("`join` along axis {}: the extents of axis {axis} differ in {shapes}", self.axis);
        Diagnostic::new(Kind::Shape, "E0206", title)
    }
}

/// The parts side by side: for each position before the axis, the block of each part.
fn join<T: Element>(parts: &[Array], axis: usize, shape: &[usize]) -> Array {
    let inner = count(&shape[axis + 1..]);
    let mut out: Vec<T> = memory::room(count(shape));
    for o in 0..count(&shape[..axis]) {
        for part in parts {
            let block = part.shape()[axis] * inner;
            out.extend_from_slice(&part.as_slice::<T>()[o * block..(o + 1) * block]);
        }
    }
    Array::new(shape, out)
}

/// The sum of two i64 scalars; a constant where both are.
fn plus(g: &mut Graph, a: Value, b: Value) -> Value {
    let number = |v: Value| g.const_value(v).filter(|x| x.dtype() == DType::I64).and_then(Array::item_i64);
    match (number(a), number(b)) {
        (Some(a), Some(b)) => g.int(a + b),
        (Some(0), None) => b,
        _ => g.add(a, b),
    }
}

fn types(ins: &[Arg]) -> String {
    let types: Vec<String> = ins.iter().map(|x| x.ty.to_string()).collect();
    types.join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;
    use crate::types::Dim;

    #[test]
    fn values_and_dtypes() {
        let (a, b) = (Array::new(&[2, 1], vec![1i32, 2]), Array::new(&[2, 2], vec![3f32, 4.0, 5.0, 6.0]));
        assert_eq!(apply(Join { axis: 1 }, &[a.clone(), b]), Array::new(&[2, 3], vec![1.0, 3.0, 4.0, 2.0, 5.0, 6.0]));
        assert_eq!(apply(Join { axis: 0 }, &[a.clone(), a.clone()]), Array::new(&[4, 1], vec![1i32, 2, 1, 2]));
        assert_eq!(apply(Join { axis: 0 }, &[a.clone()]), a);
        let empty = Array::zeros(DType::Bool, &[0, 1]);
        assert_eq!(apply(Join { axis: 0 }, &[empty.clone(), a.clone()]), a);
        assert_eq!(apply(Join { axis: 0 }, &[empty.clone(), a.clone(), empty.clone()]), a);
        assert_eq!(apply(Join { axis: 0 }, &[empty.clone(), empty.clone()]), empty);
    }

    #[test]
    fn extents_add_up_as_forms() {
        let (n, m) = (Dim::fresh(), Dim::fresh());
        let mut g = Graph::new();
        let a = g.param(Type::new(DType::F64, [n.clone(), m.clone()]), None);
        let b = g.param(Type::new(DType::F64, [Dim::known(2), Dim::known(5)]), None);
        let y = g.emit(Join { axis: 0 }, &[a, b, a]);
        assert_eq!(g.ty(y).dims[..], [n.scale(2).add(&Dim::known(2)), Dim::known(5)]);
    }

    #[test]
    fn misfits_are_errors() {
        let (a, b) = (Array::new(&[1, 2], vec![1.0, 2.0]), Array::new(&[1, 3], vec![1.0, 2.0, 3.0]));
        let text = "`join` along axis 0: the extents of axis 1 differ in (1, 2) and (1, 3)";
        assert_eq!(run_error(Join { axis: 0 }, &[a.clone(), b.clone()]).title, text);
        assert_eq!(build_error(Join { axis: 0 }, &[a.clone(), b]).code, "E0206");
        assert_eq!(build_error(Join { axis: 0 }, &[a.clone(), Array::vector(&[1.0])]).code, "E0206");
        assert_eq!(build_error(Join { axis: 2 }, &[a]).code, "E0222");
        assert_eq!(build_error(Join { axis: 0 }, &[]).code, "E0222");
    }

    #[test]
    fn gradients_match_differences() {
        let ins = [sample(&[2, 3], 1), Array::new(&[2, 1], vec![1i64, 2]), sample(&[2, 0], 2), sample(&[2, 2], 3)];
        check_vjp(|g, v| g.emit(Join { axis: 1 }, v), &ins);
        check_vjp2(|g, v| g.emit(Join { axis: 1 }, v), &ins);
        check_vjp(|g, v| g.emit(Join { axis: 0 }, &[v[0], v[1], v[0]]), &[sample(&[2], 1), sample(&[1], 2)]);
    }
}
