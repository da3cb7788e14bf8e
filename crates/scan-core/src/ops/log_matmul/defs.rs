//! Type rules, evaluation and gradients of the products in log space.

use super::{Size, forward, left, powers, quotients, right, sums};
use crate::bail;
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::ops::batch::products::vectors;
use crate::ops::reduce::{keep_axes, sum_axes};
use crate::ops::softmax::weights;
use crate::ops::support::{exactly, none, one};
use crate::types::shape::{Extents, broadcast_dims, broadcast_shapes, tuple};
use crate::types::{Array, DType, Dim, Type, memory};

/// What does not fit, as an error.
fn unfit<T>(op: &str, of: &[String]) -> Result<T> {
    bail!(Type, "E0208", "`{op}` of operands that do not fit: {}", of.join(", "))
}

/// Types whose extents cannot fit.
fn unfit_types<T>(op: &str, ins: &[Arg]) -> Result<T> {
    unfit(op, &ins.iter().map(|x| x.ty.to_string()).collect::<Vec<_>>())
}

/// Arrays whose extents do not fit.
fn unfit_shapes<T>(op: &str, ins: &[Array]) -> Result<T> {
    unfit(op, &ins.iter().map(|x| tuple(x.shape())).collect::<Vec<_>>())
}

/// Checks that operands are of f64 and have these ranks, 0 standing for that of a vector or of a matrix of rows, the same for all.
fn check(op: &str, ins: &[Arg], ranks: &[usize]) -> Result<()> {
    let rows = ranks.iter().zip(ins).find(|(rank, _)| **rank == 0).map_or(1, |(_, x)| x.ty.rank());
    let fits = |(x, rank): (&Arg, &usize)| x.ty.dtype == DType::F64 && x.ty.rank() == if *rank == 0 { rows } else { *rank };
    if !(1..=2).contains(&rows) || !ins.iter().zip(ranks).all(fits) {
        return unfit_types(op, ins);
    }
    Ok(())
}

/// The extent of a's rows and of w's columns, of which either may be 1.
fn inner(a: &Type, w: &Type) -> Result<Dim> {
    let vector = |dim: &Dim| Type::new(DType::F64, [dim.clone()]);
    let dims = broadcast_dims(&[&vector(&a.dims[a.rank() - 1]), &vector(&w.dims[0])])?;
    Ok(dims[0].clone())
}

/// The type of rows with as many columns as a matrix has, given values with as many rows.
fn rows_of(a: &Type, w: &Type) -> Type {
    Type::new(DType::F64, a.dims[..a.rank() - 1].iter().chain([&w.dims[1]]).cloned())
}

/// The shape of such rows.
fn shape_of(a: &Array, w: &Array) -> Extents {
    a.shape()[..a.rank() - 1].iter().chain([&w.shape()[1]]).copied().collect()
}

/// True where a matrix of rows has none: extents need not fit then.
fn no_rows(a: &Array) -> bool {
    a.rank() == 2 && a.shape()[0] == 0
}

/// The array with extent n along an axis where it has 1 there.
fn repeated(x: &Array, axis: usize, n: usize) -> Array {
    if x.shape()[axis] != 1 || n == 1 {
        return x.clone();
    }
    let inner: usize = x.shape()[axis + 1..].iter().product();
    let mut data = memory::room(x.len().saturating_mul(n));
    x.as_slice::<f64>().chunks(inner.max(1)).for_each(|part| (0..n).for_each(|_| data.extend_from_slice(part)));
    let mut shape = Extents::from_slice(x.shape());
    shape[axis] = n;
    Array::new(&shape, data)
}

/// Operands broadcast along the axis over which is summed; `axes` has that of each, where it has one.
fn fitted(op: &str, ins: &[Array], axes: &[Option<usize>]) -> Result<Vec<Array>> {
    let extents: Vec<[usize; 1]> = ins.iter().zip(axes).filter_map(|(x, axis)| Some([x.shape()[(*axis)?]])).collect();
    let shapes: Vec<&[usize]> = extents.iter().map(|n| &n[..]).collect();
    let Ok(k) = broadcast_shapes(&shapes) else { return unfit_shapes(op, ins) };
    let fit = |(x, axis): (&Array, &Option<usize>)| axis.map_or_else(|| x.clone(), |axis| repeated(x, axis, k[0]));
    Ok(ins.iter().zip(axes).map(fit).collect())
}

/// Checks that operands have so many elements.
fn counted(op: &str, ins: &[Array], counts: &[usize]) -> Result<()> {
    if ins.iter().zip(counts).any(|(x, n)| x.len() != *n) {
        return unfit_shapes(op, ins);
    }
    Ok(())
}

fn slices_of<const N: usize>(ins: &[Array]) -> [&[f64]; N] {
    std::array::from_fn(|i| ins[i].as_slice::<f64>())
}

impl OpDef for LogMatMulPowers {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [a] = exactly("log_matmul_powers", ins)?;
        if a.ty.dtype != DType::F64 || a.ty.rank() == 0 {
            return unfit_types("log_matmul_powers", ins);
        }
        Ok(one(a.ty.clone()))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let shape = ins[0].shape();
        let mut out = Array::dirty(DType::F64, shape);
        powers(shape[shape.len() - 1], ins[0].as_slice(), out.as_mut_slice());
        Ok(one(out))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (Some(ct), a) = (cts[0], site.ins[0]) else { return Ok(none(1)) };
        let last = g.ty(a).rank() - 1;
        let direct = g.mul(ct, site.outs[0]);
        let (all, zero) = (g.sum(direct, &[last], true), g.number(DType::F64, 0.0));
        let is_top = g.emit(ExtremeMask { kind: Extreme::Max, axes: vec![last] }, &[a]);
        let of_top = g.select(is_top, all, zero);
        Ok(vec![Some(g.sub(direct, of_top))])
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

impl OpDef for LogMatMulSums {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [powers, power] = exactly("log_matmul_sums", ins)?;
        check("log_matmul_sums", ins, &[0, 2])?;
        inner(&powers.ty, &power.ty)?;
        Ok(one(rows_of(&powers.ty, &power.ty)))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let mut out = Array::zeros(DType::F64, &shape_of(&ins[0], &ins[1]));
        if !no_rows(&ins[0]) {
            let all = fitted("log_matmul_sums", ins, &[Some(ins[0].rank() - 1), Some(0)])?;
            if let Some(size) = Size::of(all[0].shape(), all[1].shape()) {
                sums(size, all[0].as_slice(), all[1].as_slice(), out.as_mut_slice());
            }
        }
        Ok(one(out))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (Some(ct), &[powers, power]) = (cts[0], site.ins) else { return Ok(none(2)) };
        let last = g.ty(powers).rank() - 1;
        let (spread, columns) = (g.expand(powers, &[last + 1]), g.expand(ct, &[last]));
        let (by_power, by_powers) = (g.mul(spread, columns), g.mul(columns, power));
        let sum = g.sum_to(by_powers, spread);
        Ok(vec![Some(g.squeeze(sum, &[last + 1])), Some(g.sum_to(by_power, power))])
    }

    fn can_fail(&self) -> bool {
        true
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        vectors(self.clone(), b, ins, &[true, false])
    }
}

impl OpDef for LogMatMul {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [a, w, _, _] = exactly("log_matmul", ins)?;
        check("log_matmul", ins, &[0, 2, 0, 1])?;
        inner(&a.ty, &w.ty)?;
        Ok(one(rows_of(&a.ty, &w.ty)))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let mut out = Array::zeros(DType::F64, &shape_of(&ins[0], &ins[1]));
        if !no_rows(&ins[0]) {
            let all = fitted("log_matmul", ins, &[Some(ins[0].rank() - 1), Some(0), None, None])?;
            let Some(size) = Size::of(all[0].shape(), all[1].shape()) else { return unfit_shapes("log_matmul", ins) };
            counted("log_matmul", &all[2..], &[size.results(), ins[1].shape()[1]])?;
            forward(size, slices_of(&all), out.as_mut_slice());
        }
        Ok(one(out))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (a, w) = (site.ins[0], site.ins[1]);
        let Some(ct) = cts[0] else { return Ok(none(4)) };
        let weights = Weights::new(g, a, w, Some(site.outs[0]));
        let product = weights.times_columns(g, ct);
        let ct_a = weights.sum_to_a(g, product);
        Ok(vec![Some(ct_a), Some(g.sum_to(product, w)), None, None])
    }

    fn connected(&self, input: usize) -> bool {
        input < 2
    }
    fn can_fail(&self) -> bool {
        true
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        vectors(self.clone(), b, ins, &[true, false, true, false])
    }
}

impl OpDef for LogMatMulQuotients {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [ct, _, _] = exactly("log_matmul_quotients", ins)?;
        check("log_matmul_quotients", ins, &[0, 0, 1])?;
        Ok(one(ct.ty.clone()))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let shape = ins[0].shape();
        if shape != ins[1].shape() || !ins[0].is_empty() && shape[shape.len() - 1] != ins[2].len() {
            return unfit_shapes("log_matmul_quotients", ins);
        }
        let mut out = Array::dirty(DType::F64, shape);
        quotients(ins[2].len(), slices_of(ins), out.as_mut_slice());
        Ok(one(out))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(none(3)) };
        let of_ct = g.div(ct, site.ins[1]);
        let product = g.mul(of_ct, site.outs[0]);
        Ok(vec![Some(of_ct), Some(g.neg(product)), None])
    }

    fn connected(&self, input: usize) -> bool {
        input < 2
    }
    fn can_fail(&self) -> bool {
        true
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        vectors(self.clone(), b, ins, &[true, true, false])
    }
}

/// Operands of a cotangent, those of the product broadcast to each other; `turned` tells whether the powers of w are transposed.
fn cotangent(op: &str, ins: &[Array], turned: bool) -> Result<(Size, Vec<Array>)> {
    let last = ins[3].rank() - 1;
    let all = fitted(op, ins, &[None, None, Some(last), Some(last), Some(0), Some(usize::from(turned))])?;
    let Some(size) = Size::of(all[3].shape(), all[4].shape()) else { return unfit_shapes(op, ins) };
    counted(op, &all, &[size.results(), size.results(), size.given(), size.given(), size.weights(), size.weights()])?;
    Ok((size, all))
}

impl OpDef for LogMatMulLeft {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [_, _, _, a, w, _] = exactly("log_matmul_left", ins)?;
        check("log_matmul_left", ins, &[0, 0, 0, 0, 2, 2])?;
        inner(&a.ty, &w.ty)?;
        Ok(one(a.ty.clone()))
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let shape = ins[3].shape();
        if no_rows(&ins[3]) {
            return Ok(one(ins[3].clone()));
        }
        let (size, all) = cotangent("log_matmul_left", ins, true)?;
        let mut out = Array::dirty(DType::F64, all[3].shape());
        left(size, slices_of(&all), out.as_mut_slice());
        Ok(one(if out.shape() == shape { out } else { sum_axes(cx, &out, &[shape.len() - 1], shape)? }))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(none(6)) };
        let rank = g.ty(ct).rank();
        let spread = g.expand(ct, &[rank]);
        Ok(second(g, site.ins, site.ins[0], spread))
    }

    fn connected(&self, input: usize) -> bool {
        [0, 3, 4].contains(&input)
    }
    fn can_fail(&self) -> bool {
        true
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        vectors(self.clone(), b, ins, &[true, true, true, true, false, false])
    }
}

impl OpDef for LogMatMulRight {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [_, _, _, a, w, _] = exactly("log_matmul_right", ins)?;
        check("log_matmul_right", ins, &[0, 0, 0, 0, 2, 2])?;
        let n = w.ty.dims[1].clone();
        Ok(one(Type::new(DType::F64, [inner(&a.ty, &w.ty)?, n])))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        if no_rows(&ins[3]) {
            let k = broadcast_shapes(&[&ins[3].shape()[1..], &ins[4].shape()[..1]]).map_or(ins[4].shape()[0], |k| k[0]);
            return Ok(one(Array::zeros(DType::F64, &[k, ins[4].shape()[1]])));
        }
        let (size, all) = cotangent("log_matmul_right", ins, false)?;
        let mut out = Array::dirty(DType::F64, all[4].shape());
        right(size, self.reverse, slices_of(&all), out.as_mut_slice());
        Ok(one(out))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ahead) = cts[0] else { return Ok(none(6)) };
        let reverse = self.reverse && g.ty(site.ins[0]).rank() == 2;
        let turn = |g: &mut Graph, v: Value| if reverse { g.emit(Flip { axis: 0 }, &[v]) } else { v };
        let ct = turn(g, site.ins[0]);
        let mut all = second(g, site.ins, ct, ahead);
        all[0] = all[0].map(|v| turn(g, v));
        Ok(all)
    }

    fn connected(&self, input: usize) -> bool {
        [0, 3, 4].contains(&input)
    }
    fn can_fail(&self) -> bool {
        true
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.row_by_row(self.clone(), ins)
    }
}

/// Cotangents of what is summed up of `ct · weights`, given `ahead`, the cotangent of that product.
fn second(g: &mut Graph, ins: &[Value], ct: Value, ahead: Value) -> Vec<Option<Value>> {
    let (a, w) = (ins[3], ins[4]);
    let weights = Weights::new(g, a, w, None);
    let part = g.mul(ahead, weights.value);
    let ct_of_ct = weights.sum_to_columns(g, part, ct);
    let spread = weights.columns(g, ct);
    let product = g.mul(spread, part);
    // A column's weights add up to 1: what is added to all of them is taken away again.
    let sum = g.sum(product, &[weights.axis], true);
    let share = g.mul(sum, weights.value);
    let of_exponents = g.sub(product, share);
    let ct_a = weights.sum_to_a(g, of_exponents);
    let ct_w = g.sum_to(of_exponents, w);
    vec![Some(ct_of_ct), None, None, Some(ct_a), Some(ct_w), None]
}

/// `exp(aᵢ + wᵢⱼ − yⱼ)` in a graph.
pub(super) struct Weights {
    value: Value,
    spread: Value,
    /// The axis of i.
    axis: usize,
}

impl Weights {
    /// `y` is computed where it is not given.
    pub fn new(g: &mut Graph, a: Value, w: Value, y: Option<Value>) -> Weights {
        let axis = g.ty(a).rank() - 1;
        let spread = g.expand(a, &[axis + 1]);
        let x = g.add(spread, w);
        let y = y.unwrap_or_else(|| g.emit(LogSumExp { axes: vec![axis], keepdims: false }, &[x]));
        let y = keep_axes(g, y, &[axis], false);
        Weights { value: weights(g, x, y), spread, axis }
    }
    fn columns(&self, g: &mut Graph, x: Value) -> Value {
        g.expand(x, &[self.axis])
    }
    pub fn times_columns(&self, g: &mut Graph, x: Value) -> Value {
        let x = self.columns(g, x);
        g.mul(x, self.value)
    }
    pub fn sum_to_a(&self, g: &mut Graph, x: Value) -> Value {
        let sum = g.sum_to(x, self.spread);
        g.squeeze(sum, &[self.axis + 1])
    }
    fn sum_to_columns(&self, g: &mut Graph, x: Value, like: Value) -> Value {
        let like = self.columns(g, like);
        let sum = g.sum_to(x, like);
        g.squeeze(sum, &[self.axis])
    }
}
