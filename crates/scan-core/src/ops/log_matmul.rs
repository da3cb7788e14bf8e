//! The product of a vector and a matrix in log space, `yⱼ = log Σᵢ exp(aᵢ + wᵢⱼ)`, and its cotangents.
//!
//! What the formula says takes an exponential per element of w. With `m = max a`, `cⱼ = log Σᵢ exp wᵢⱼ` and `Pᵢⱼ = exp(wᵢⱼ − cⱼ)`, which a loop
//! computes once, it is
//!
//! ```text
//! sⱼ = Σᵢ exp(aᵢ − m)·Pᵢⱼ        yⱼ = (m + cⱼ) + log sⱼ
//! ```
//!
//! a product of a vector and a matrix. Both factors of every term lie in [0, 1]. A factor below 2⁻¹⁰²² is rounded to a multiple of
//! 2⁻¹⁰⁷⁴ or to 0, and so is a product: k terms lose no more than `k·2⁻¹⁰²¹` together. **Where `sⱼ >= 2⁻²⁵⁶` ([`LEAST`]) that is less than
//! `k·2⁻⁷⁶⁵` of the sum, whatever the ranges of a and w; elsewhere the column is computed by the formula.** So the sum itself tells whether
//! it can be trusted, and nothing need be known of a and w. NaN, +∞ among them, and columns of −∞ alone make a sum that is not in
//! the range, or a result that is not finite: they go to the formula, too.
//!
//! The error elsewhere, with ε = 2⁻⁵³: of the terms that matter (those above ε·sⱼ/k) `|aᵢ − m|` and `|wᵢⱼ − cⱼ|` are together at most
//! `|log sⱼ| + log(k/ε)`, so that rounding the exponents, the two exponentials, the product and the sum leaves sⱼ with a relative error
//! of at most `(|log sⱼ| + log k + 37 + 4 + k)·ε`. The logarithm makes that an absolute one; the two sums add `|m + cⱼ|·ε + |yⱼ|·ε`, and
//! `|m + cⱼ| <= |yⱼ| + |log sⱼ|`. All in all
//!
//! ```text
//! |error of yⱼ| <= (2·|yⱼ| + 3·|log sⱼ| + k + log k + 41)·ε,   |log sⱼ| <= 178
//! ```
//!
//! 7·10⁻¹⁴ + 2.2·10⁻¹⁶·|yⱼ| for 64 states. The formula's own bound has the same form, with the rounding of `aᵢ + wᵢⱼ` in the place of that of the exponents.
//!
//! The cotangents are sums of `ctⱼ·exp(aᵢ + wᵢⱼ − yⱼ) = exp(aᵢ − m)·Pᵢⱼ·(ctⱼ / sⱼ)`. Where sⱼ is not in the range or the quotient lies beyond ±2⁵⁰⁰,
//! the column goes to the formula. Weights above 2⁻⁷⁶⁵ have a relative error of at most `(3·|log sⱼ| + k + log k + 45)·ε`, which, unlike the formula's, does not
//! grow with |yⱼ|; smaller ones, which are shares of ctⱼ, may come out as 0.

use super::reduce::keep_axes;
use super::softmax::log_sum_exp;
use super::support::{exactly, none, one};
use crate::bail;
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::{Host, Lanes as _, slices};
use crate::types::shape::{Extents, broadcast_dims, broadcast_shapes, tuple};
use crate::types::{Array, DType, Dim, Type};

/// Sums below this are computed by the formula.
const LEAST: f64 = f64::from_bits((1023 - 256) << 52);
/// Weighted cotangents beyond this are computed by the formula.
const MOST: f64 = f64::from_bits((1023 + 500) << 52);

/// Rows of a, and extents of w.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    m: usize,
    k: usize,
    n: usize,
}

impl Size {
    /// That of operands that need no broadcasting; `power` has as many elements as w.
    pub fn of(a: &[usize], w: &[usize], top: &[usize], power: &[usize]) -> Option<Size> {
        let (m, k) = match *a {
            [k] => (1, k),
            [m, k] => (m, k),
            _ => return None,
        };
        let &[rows, n] = w else { return None };
        let fits = rows == k && top == [n] && (power == [k, n] || power == [n, k]);
        fits.then_some(Size { m, k, n })
    }
    /// Number of results.
    pub fn results(self) -> usize {
        self.m * self.n
    }
}

/// What all three ops are given.
#[derive(Clone, Copy)]
struct Factors<'a> {
    size: Size,
    a: &'a [f64],
    w: &'a [f64],
    top: &'a [f64],
}

/// Row t of a matrix whose rows have n elements.
fn row(x: &[f64], t: usize, n: usize) -> &[f64] {
    &x[t * n..(t + 1) * n]
}

impl Factors<'_> {
    /// `aᵢ + wᵢⱼ` in column j of row t.
    fn column(&self, t: usize, j: usize, out: &mut Vec<f64>) {
        let Size { k, n, .. } = self.size;
        out.clear();
        out.extend(row(self.a, t, k).iter().enumerate().map(|(i, a)| a + self.w[i * n + j]));
    }
    /// Result j of row t by the formula.
    fn exact(&self, t: usize, j: usize) -> f64 {
        let mut column = Vec::with_capacity(self.size.k);
        self.column(t, j, &mut column);
        log_sum_exp(&column, &mut vec![0.0; self.size.k])
    }
    /// `ct · exp(aᵢ + wᵢⱼ − y)` for column j of row t by the formula of the gradient of logsumexp.
    fn exact_weights(&self, t: usize, j: usize, ct: f64, mut each: impl FnMut(usize, f64)) {
        let mut column = Vec::with_capacity(self.size.k);
        self.column(t, j, &mut column);
        let y = log_sum_exp(&column, &mut vec![0.0; self.size.k]);
        if y == f64::NEG_INFINITY && ct.is_finite() {
            return;
        }
        for (i, x) in column.into_iter().enumerate() {
            let exponent = if x != y {
                x - y
            } else if y == f64::NEG_INFINITY {
                y
            } else {
                0.0
            };
            each(i, ct * Host::<f64>::CX.exp(exponent));
        }
    }
    /// Columns of row t whose quotients were left away; all of them where the maximum of a is not finite.
    fn left_away(&self, m: f64, sums: &[f64], cts: &[f64]) -> impl Iterator<Item = usize> {
        let given = |j: usize| slices::quotients(&cts[j..=j], &sums[j..=j], &self.top[j..=j], LEAST, MOST, &mut [0.0]);
        (0..self.size.n).filter(move |&j| !m.is_finite() || !given(j))
    }
}

/// `y = log_matmul(a, w, top, power)`
pub(crate) fn forward(size: Size, [a, w, top, power]: [&[f64]; 4], y: &mut [f64], scratch: &mut Vec<f64>) {
    let Size { m: rows, k, n } = size;
    let factors = Factors { size, a, w, top };
    scratch.resize(k + n, 0.0);
    let (powers, sums) = scratch.split_at_mut(k);
    for t in 0..rows {
        let (a, y) = (row(a, t, k), &mut y[t * n..(t + 1) * n]);
        let m = slices::largest(a);
        slices::exp_of_differences(a, m, powers);
        sums.fill(0.0);
        slices::add_rows(powers, power, sums);
        if !slices::logs_of_sums(m, top, sums, LEAST, y) {
            for (j, (y, sum)) in y.iter_mut().zip(&*sums).enumerate() {
                if !(LEAST..=1.0 / LEAST).contains(sum) || !y.is_finite() {
                    *y = factors.exact(t, j);
                }
            }
        }
    }
}

/// `log_matmul_sums`
pub(crate) fn sums(size: Size, a: &[f64], power: &[f64], out: &mut [f64], scratch: &mut Vec<f64>) {
    let Size { m: rows, k, n } = size;
    scratch.resize(k, 0.0);
    out.fill(0.0);
    for t in 0..rows {
        let a = row(a, t, k);
        slices::exp_of_differences(a, slices::largest(a), scratch);
        slices::add_rows(scratch, power, &mut out[t * n..(t + 1) * n]);
    }
}

/// `log_matmul_left`: the cotangent of a.
pub(crate) fn left(size: Size, [cts, a, w, sums, top, power]: [&[f64]; 6], out: &mut [f64], scratch: &mut Vec<f64>) {
    let Size { m: rows, k, n } = size;
    let factors = Factors { size, a, w, top };
    scratch.resize(k + n, 0.0);
    let (powers, quotients) = scratch.split_at_mut(k);
    for t in 0..rows {
        let (sums, cts, out) = (row(sums, t, n), row(cts, t, n), &mut out[t * k..(t + 1) * k]);
        let m = slices::largest(row(a, t, k));
        let whole = slices::quotients(cts, sums, top, LEAST, MOST, quotients);
        out.fill(0.0);
        if m.is_finite() {
            slices::exp_of_differences(row(a, t, k), m, powers);
            slices::add_rows(quotients, power, out);
            slices::scale(powers, out);
        }
        if !whole || !m.is_finite() {
            for j in factors.left_away(m, sums, cts) {
                factors.exact_weights(t, j, cts[j], |i, x| out[i] += x);
            }
        }
    }
}

/// Rows whose factors are multiplied at a time.
const BLOCK: usize = 64;

/// `log_matmul_right`: the cotangent of w, summed over the rows.
pub(crate) fn right(size: Size, [cts, a, w, sums, top, power]: [&[f64]; 6], out: &mut [f64], scratch: &mut Vec<f64>) {
    let Size { m: rows, k, n } = size;
    let factors = Factors { size, a, w, top };
    scratch.resize(k + BLOCK * (k + n), 0.0);
    let (powers, blocks) = scratch.split_at_mut(k);
    let (turned, quotients) = blocks.split_at_mut(BLOCK * k);
    out.fill(0.0);
    let mut missing = vec![];
    for first in (0..rows).step_by(BLOCK) {
        let b = BLOCK.min(rows - first);
        for t in 0..b {
            let a = row(a, first + t, k);
            let m = slices::largest(a);
            let (sums, cts) = (row(sums, first + t, n), row(cts, first + t, n));
            let whole = slices::quotients(cts, sums, top, LEAST, MOST, &mut quotients[t * n..(t + 1) * n]);
            if !whole || !m.is_finite() {
                missing.push((first + t, m));
            }
            match m.is_finite() {
                true => slices::exp_of_differences(a, m, powers),
                false => powers.fill(0.0),
            }
            powers.iter().enumerate().for_each(|(i, &x)| turned[i * b + t] = x);
        }
        for (i, out) in out.chunks_exact_mut(n.max(1)).enumerate() {
            slices::add_rows(row(turned, i, b), &quotients[..b * n], out);
        }
    }
    slices::scale(power, out);
    for (t, m) in missing {
        for j in factors.left_away(m, row(sums, t, n), row(cts, t, n)) {
            factors.exact_weights(t, j, cts[t * n + j], |i, x| out[i * n + j] += x);
        }
    }
}

/// The types of a, w, top and power, checked; the extents of rows (none for a vector), k and n.
fn check<'a>(op: &str, [a, w, top, power]: [&'a Type; 4]) -> Result<(Option<&'a Dim>, Dim, &'a Dim)> {
    let ranks = (1..=2).contains(&a.rank()) && w.rank() == 2 && top.rank() == 1 && power.rank() == 2;
    if !ranks || [a, w, top, power].iter().any(|t| t.dtype != DType::F64) {
        bail!(Type, "E0208", "`{op}` takes a vector or matrix, a matrix, a vector and a matrix of f64, got {a}, {w}, {top} and {power}");
    }
    let inner = |dim: &Dim| Type::new(DType::F64, [dim.clone()]);
    let k = broadcast_dims(&[&inner(&a.dims[a.rank() - 1]), &inner(&w.dims[0])])?;
    Ok(((a.rank() == 2).then(|| &a.dims[0]), k[0].clone(), &w.dims[1]))
}

/// Operands of an evaluation, broadcast where k differs; `None` where there are no rows.
fn operands(op: &str, ins: &[Array], [a, w, top, power]: [usize; 4]) -> Result<Option<(Size, Vec<Array>)>> {
    let (rows, k_a, k_w) = (ins[a].rank() == 1 || ins[a].shape()[0] > 0, ins[a].shape()[ins[a].rank() - 1], ins[w].shape()[0]);
    if !rows {
        return Ok(None);
    }
    let k = broadcast_shapes(&[&[k_a], &[k_w]])?[0];
    let mut all = ins.to_vec();
    let turned = power == 5 && op != "log_matmul_right";
    all[a] = repeated(&ins[a], ins[a].rank() - 1, k);
    all[w] = repeated(&ins[w], 0, k);
    all[power] = repeated(&ins[power], usize::from(turned), k);
    match Size::of(all[a].shape(), all[w].shape(), all[top].shape(), all[power].shape()) {
        Some(size) => Ok(Some((size, all))),
        None => {
            let shapes: Vec<String> = ins.iter().map(|x| tuple(x.shape())).collect();
            bail!(Type, "E0208", "`{op}` of operands whose extents do not fit: {}", shapes.join(", "))
        }
    }
}

/// The array with extent n along an axis where it has 1 there.
fn repeated(x: &Array, axis: usize, n: usize) -> Array {
    if x.shape()[axis] != 1 || n == 1 {
        return x.clone();
    }
    let inner: usize = x.shape()[axis + 1..].iter().product();
    let data = x.as_slice::<f64>().chunks(inner.max(1)).flat_map(|part| part.repeat(n)).collect();
    let mut shape = Extents::from_slice(x.shape());
    shape[axis] = n;
    Array::new(&shape, data)
}

fn slices_of<const N: usize>(ins: &[Array]) -> [&[f64]; N] {
    std::array::from_fn(|i| ins[i].as_slice::<f64>())
}

impl OpDef for LogMatMul {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [a, w, top, power] = exactly("log_matmul", ins)?;
        let (rows, _, n) = check("log_matmul", [&a.ty, &w.ty, &top.ty, &power.ty])?;
        Ok(one(Type::new(DType::F64, rows.into_iter().chain([n]).cloned())))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let mut shape = Extents::from_slice(ins[0].shape());
        shape[ins[0].rank() - 1] = ins[1].shape()[1];
        let mut out = Array::zeros(DType::F64, &shape);
        if let Some((size, all)) = operands("log_matmul", ins, [0, 1, 2, 3])? {
            forward(size, slices_of(&all), out.as_mut_slice(), &mut vec![]);
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
}

impl OpDef for LogMatMulSums {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [a, power] = exactly("log_matmul_sums", ins)?;
        let top = Type::new(DType::F64, power.ty.dims.last().cloned());
        let (rows, _, n) = check("log_matmul_sums", [&a.ty, &power.ty, &top, &power.ty])?;
        Ok(one(Type::new(DType::F64, rows.into_iter().chain([n]).cloned())))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let mut shape = Extents::from_slice(ins[0].shape());
        shape[ins[0].rank() - 1] = ins[1].shape()[1];
        let mut out = Array::zeros(DType::F64, &shape);
        let top = Array::zeros(DType::F64, &ins[1].shape()[1..]);
        let ins = [ins[0].clone(), ins[1].clone(), top, ins[1].clone()];
        if let Some((size, all)) = operands("log_matmul_sums", &ins, [0, 1, 2, 3])? {
            sums(size, all[0].as_slice(), all[1].as_slice(), out.as_mut_slice(), &mut vec![]);
        }
        Ok(one(out))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (Some(ct), &[a, power]) = (cts[0], site.ins) else { return Ok(none(2)) };
        let last = g.ty(a).rank() - 1;
        let m = g.emit(Reduce { kind: ReduceKind::Max, axes: vec![last], keepdims: true }, &[a]);
        let difference = g.sub(a, m);
        let powers = g.exp(difference);
        let (spread, columns) = (g.expand(powers, &[last + 1]), g.expand(ct, &[last]));
        let by_power = g.mul(spread, columns);
        let by_powers = g.mul(columns, power);
        let sum = g.sum_to(by_powers, spread);
        let sum = g.squeeze(sum, &[last + 1]);
        let direct = g.mul(sum, powers);
        let all = g.sum(direct, &[last], true);
        let zero = g.number(DType::F64, 0.0);
        let is_top = g.eq(a, m);
        let of_top = g.select(is_top, all, zero);
        Ok(vec![Some(g.sub(direct, of_top)), Some(g.sum_to(by_power, power))])
    }

    fn can_fail(&self) -> bool {
        true
    }
}

impl OpDef for LogMatMulLeft {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [_, a, w, _, top, power] = exactly("log_matmul_left", ins)?;
        check("log_matmul_left", [&a.ty, &w.ty, &top.ty, &power.ty])?;
        check_rows("log_matmul_left", ins)?;
        Ok(one(a.ty.clone()))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let Some((size, all)) = operands("log_matmul_left", ins, [1, 2, 4, 5])? else { return Ok(one(ins[1].clone())) };
        check_counts("log_matmul_left", size, ins)?;
        let mut out = Array::zeros(DType::F64, all[1].shape());
        left(size, slices_of(&all), out.as_mut_slice(), &mut vec![]);
        let shape = ins[1].shape();
        Ok(one(if out.shape() == shape { out } else { super::reduce::sum_axes(&out, &[shape.len() - 1], shape) }))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(none(6)) };
        let rank = g.ty(ct).rank();
        let spread = g.expand(ct, &[rank]);
        Ok(second(g, site, spread))
    }

    fn connected(&self, input: usize) -> bool {
        input < 3
    }
    fn can_fail(&self) -> bool {
        true
    }
}

impl OpDef for LogMatMulRight {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [_, a, w, _, top, power] = exactly("log_matmul_right", ins)?;
        let (_, k, n) = check("log_matmul_right", [&a.ty, &w.ty, &top.ty, &power.ty])?;
        check_rows("log_matmul_right", ins)?;
        Ok(one(Type::new(DType::F64, [k, n.clone()])))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let Some((size, all)) = operands("log_matmul_right", ins, [1, 2, 4, 5])? else {
            let k = broadcast_shapes(&[&ins[1].shape()[1..], &ins[2].shape()[..1]]).map_or(ins[2].shape()[0], |k| k[0]);
            return Ok(one(Array::zeros(DType::F64, &[k, ins[2].shape()[1]])));
        };
        check_counts("log_matmul_right", size, ins)?;
        let mut out = Array::zeros(DType::F64, &[size.k, size.n]);
        right(size, slices_of(&all), out.as_mut_slice(), &mut vec![]);
        Ok(one(out))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(none(6)) };
        Ok(second(g, site, ct))
    }

    fn connected(&self, input: usize) -> bool {
        input < 3
    }
    fn can_fail(&self) -> bool {
        true
    }
}

/// Cotangents of what is summed up of `ct · weights`, given `ahead`, the cotangent of that product.
fn second(g: &mut Graph, site: &Site, ahead: Value) -> Vec<Option<Value>> {
    let [ct, a, w] = [0, 1, 2].map(|i| site.ins[i]);
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
    vec![Some(ct_of_ct), Some(ct_a), Some(ct_w), None, None, None]
}

/// `exp(aᵢ + wᵢⱼ − yⱼ)` in a graph.
struct Weights {
    value: Value,
    spread: Value,
    /// The axis of i.
    axis: usize,
}

impl Weights {
    /// `y` is computed where it is not given.
    fn new(g: &mut Graph, a: Value, w: Value, y: Option<Value>) -> Weights {
        let axis = g.ty(a).rank() - 1;
        let spread = g.expand(a, &[axis + 1]);
        let x = g.add(spread, w);
        let y = y.unwrap_or_else(|| g.emit(LogSumExp { axes: vec![axis], keepdims: false }, &[x]));
        let y = keep_axes(g, y, &[axis], false);
        Weights { value: super::softmax::weights(g, x, y), spread, axis }
    }
    fn columns(&self, g: &mut Graph, x: Value) -> Value {
        g.expand(x, &[self.axis])
    }
    fn times_columns(&self, g: &mut Graph, x: Value) -> Value {
        let x = self.columns(g, x);
        g.mul(x, self.value)
    }
    fn sum_to_a(&self, g: &mut Graph, x: Value) -> Value {
        let sum = g.sum_to(x, self.spread);
        g.squeeze(sum, &[self.axis + 1])
    }
    fn sum_to_columns(&self, g: &mut Graph, x: Value, like: Value) -> Value {
        let like = self.columns(g, like);
        let sum = g.sum_to(x, like);
        g.squeeze(sum, &[self.axis])
    }
}

/// Checks that ct and sums have the rank of a.
fn check_rows(op: &str, ins: &[Arg]) -> Result<()> {
    let rank = ins[1].ty.rank();
    if [0, 3].iter().any(|&i| ins[i].ty.rank() != rank || ins[i].ty.dtype != DType::F64) {
        bail!(Type, "E0208", "`{op}` of {} and {} for {}", ins[0].ty, ins[3].ty, ins[1].ty);
    }
    Ok(())
}

/// Checks that ct and sums have the extents of a result.
fn check_counts(op: &str, size: Size, ins: &[Array]) -> Result<()> {
    if [0, 3].iter().any(|&i| ins[i].len() != size.m * size.n) {
        bail!(Type, "E0208", "`{op}` of {} and {} for {}", tuple(ins[0].shape()), tuple(ins[3].shape()), tuple(ins[1].shape()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
