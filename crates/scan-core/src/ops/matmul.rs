//! Matrix products.

use super::batch::products;
use super::certain::multiplies;
use super::support::{Number, exactly, is_float, one};
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::eights;
use crate::scalar::product::{self, Float, Matrix, Mode, Stack, is_small};
use crate::types::shape::{broadcast_dims, broadcast_shapes, count, strides, tuple};
use crate::types::{Array, Dim, Element, Extents, Type};
use crate::{bail, dispatch};
use smallvec::SmallVec;
use std::ops::Range;

/// As `numpy.matmul`: a vector on the left is a row, on the right a column, and that axis goes away; axes before the last
/// two broadcast; both sides are promoted to a common dtype; ints wrap, bool is *or* of *and*. Extents that do not fit are `E0208`.
impl OpDef for MatMul {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [a, b] = exactly("matmul", ins)?;
        let (a, b) = (&a.ty, &b.ty);
        if a.rank() == 0 || b.rank() == 0 {
            bail!(Type, "E0208", "`matmul` takes vectors, matrices and stacks of matrices, got {a} and {b}");
        }
        let ((batch_a, m, k), (batch_b, l, n)) = (split_left(&a.dims), split_right(&b.dims));
        if k.conflicts(l) {
            return Err(mismatch(&a.to_string(), &b.to_string(), &k.to_string(), &l.to_string()));
        }
        let batch = |dims: &[Dim]| Type::new(a.dtype, dims.iter().cloned());
        let batch = broadcast_dims(&[&batch(batch_a), &batch(batch_b)]).map_err(|_| no_batch(&a.to_string(), &b.to_string()))?;
        Ok(one(Type::new(a.dtype.promote(b.dtype), batch.into_iter().chain(m.cloned()).chain(n.cloned()))))
    }

    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let dtype = ins[0].dtype().promote(ins[1].dtype());
        let (a, b) = (ins[0].cast(dtype), ins[1].cast(dtype));
        Ok(one(dispatch!(dtype, T => matmul::<T>(cx, &a, &b)?)))
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (a, b) = (site.ins[0], site.ins[1]);
        let Some(ct) = cts[0] else { return Ok(vec![None, None]) };
        let (row, column) = (g.ty(a).rank() == 1, g.ty(b).rank() == 1);
        let ct_a = is_float(g, a).then(|| match row && g.ty(b).rank() == 2 {
            true => ct_left(g, ct, a, b),
            false => {
                let [left, right, ct] = as_matrices(g, [a, b, ct]);
                let ct_a = ct_left(g, ct, left, right);
                if row { g.squeeze(ct_a, &[0]) } else { ct_a }
            }
        });
        let ct_b = is_float(g, b).then(|| match column && g.ty(a).rank() == 2 {
            true => ct_right(g, ct, a, b),
            false => {
                let [left, right, ct] = as_matrices(g, [a, b, ct]);
                let ct_b = ct_right(g, ct, left, right);
                if column { g.squeeze(ct_b, &[1]) } else { ct_b }
            }
        });
        Ok(vec![ct_a, ct_b])
    }

    fn jvp(&self, g: &mut Graph, site: &Site, tangents: &[Option<Value>]) -> Result<Option<Vec<Option<Value>>>> {
        let (a, b) = (site.ins[0], site.ins[1]);
        let left = tangents[0].map(|t| g.apply(self.clone(), &[t, b])).transpose()?;
        let right = tangents[1].map(|t| g.apply(self.clone(), &[a, t])).transpose()?;
        let terms: Vec<Value> = [left, right].into_iter().flatten().map(|outs| outs[0]).collect();
        Ok(Some(vec![terms.into_iter().reduce(|x, y| g.add(x, y))]))
    }

    fn can_fail(&self) -> bool {
        true
    }
    fn fallible(&self, g: &Graph, ins: &[Value]) -> bool {
        !multiplies(g.ty(ins[0]), g.ty(ins[1]))
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        products::matmul(b, ins)
    }
}

/// Batch, rows (none for a vector) and columns of the left side.
fn split_left<T>(dims: &[T]) -> (&[T], Option<&T>, &T) {
    match dims {
        [batch @ .., m, k] => (batch, Some(m), k),
        [k] => (&[], None, k),
        [] => unreachable!("rank 0"),
    }
}

/// Batch, rows and columns (none for a vector) of the right side.
fn split_right<T>(dims: &[T]) -> (&[T], &T, Option<&T>) {
    match dims {
        [batch @ .., k, n] => (batch, k, Some(n)),
        [k] => (&[], k, None),
        [] => unreachable!("rank 0"),
    }
}

fn matmul<T: Product>(cx: &mut EvalCx, a: &Array, b: &Array) -> Result<Array> {
    let ((batch_a, m, &k), (batch_b, &l, n)) = (split_left(a.shape()), split_right(b.shape()));
    if k != l {
        return Err(mismatch(&tuple(a.shape()), &tuple(b.shape()), &k.to_string(), &l.to_string()));
    }
    let batch = broadcast_shapes(&[batch_a, batch_b]).map_err(|_| no_batch(&tuple(a.shape()), &tuple(b.shape())))?;
    let shape: Extents = batch.iter().copied().chain(m.copied()).chain(n.copied()).collect();
    let (m, n) = (m.copied().unwrap_or(1), n.copied().unwrap_or(1));
    let (data_a, data_b) = (a.as_slice::<T>(), b.as_slice::<T>());
    let mut product = Array::dirty(a.dtype(), &shape);
    let out = product.as_mut_slice::<T>();
    if batch_b.is_empty() {
        T::multiply_in(cx, [count(&batch) * m, k, n], data_a, data_b, out)?;
        return Ok(product);
    }
    if let Some(steps) = steps([batch_a, batch_b], &batch, [m * k, k * n]).filter(|_| T::many([m, k, n])) {
        T::multiply_many([m, k, n], Stack { all: data_a, step: steps[0] }, Stack { all: data_b, step: steps[1] }, out);
        return Ok(product);
    }
    let (at_a, at_b) = (Positions::new(&batch, batch_a), Positions::new(&batch, batch_b));
    for i in 0..count(&batch) {
        let (at_a, at_b) = (at_a.of(i) * m * k, at_b.of(i) * k * n);
        let (a, b) = (&data_a[at_a..at_a + m * k], &data_b[at_b..at_b + k * n]);
        T::multiply_in(cx, [m, k, n], a, b, &mut out[i * m * n..(i + 1) * m * n])?;
        cx.worked(m * k * n)?;
    }
    Ok(product)
}

/// How many elements it is from one matrix of each side to the next, where these lie one behind the other or are one.
pub(crate) fn steps(sides: [&[usize]; 2], batch: &[usize], elements: [usize; 2]) -> Option<[usize; 2]> {
    let step = |side: &[usize], n: usize| match count(side) {
        all if all == count(batch) => Some(n),
        1 => Some(0),
        _ => None,
    };
    Some([step(sides[0], elements[0])?, step(sides[1], elements[1])?])
}

/// Where elements of a shape lie that is broadcast to a larger one.
struct Positions {
    /// Axes along which it moves: elements of the larger shape from one to the next, extent, elements of the shape.
    axes: SmallVec<[[usize; 3]; 4]>,
}

impl Positions {
    fn new(target: &[usize], shape: &[usize]) -> Positions {
        let (from, to) = (strides(target), strides(shape));
        let new = target.len() - shape.len();
        let moving = (0..shape.len()).filter(|&axis| shape[axis] != 1);
        Positions { axes: moving.map(|axis| [from[new + axis], shape[axis], to[axis]]).collect() }
    }
    /// The row-major position of element `i` of the larger shape.
    fn of(&self, i: usize) -> usize {
        self.axes.iter().map(|[from, extent, to]| i / from % extent * to).sum()
    }
}

/// Products of row-major matrices: of ints by loops, of floats by [the law of products](product).
pub(crate) trait Product: Number {
    /// `c = a·b` for extents `[m, k, n]`.
    fn multiply(extents: [usize; 3], a: &[Self], b: &[Self], c: &mut [Self]) {
        multiply_by_loops(extents, a, b, c);
    }
    /// True where products of such extents are [small](is_small), and many are made at once.
    fn many(_: [usize; 3]) -> bool {
        false
    }
    /// `cᵢ = aᵢ·bᵢ` for extents of which [`many`](Self::many) are made at once.
    fn multiply_many(extents: [usize; 3], a: Stack<Self>, b: Stack<Self>, c: &mut [Self]) {
        unreachable!("products of {extents:?}: {a:?} {b:?} {c:?}")
    }
    /// The same, to the bit, where a long product is made of parts, between which the caller may stop it.
    ///
    /// # Errors
    /// An interruption.
    fn multiply_in(cx: &mut EvalCx, [m, k, n]: [usize; 3], a: &[Self], b: &[Self], c: &mut [Self]) -> Result<()> {
        if m.saturating_mul(k).saturating_mul(n) <= LONG {
            Self::multiply([m, k, n], a, b, c);
            return Ok(());
        }
        Self::multiply_parts(cx, [m, k, n], a, b, c)
    }
    /// A product that is long; here some rows at a time.
    ///
    /// # Errors
    /// An interruption.
    fn multiply_parts(cx: &mut EvalCx, [m, k, n]: [usize; 3], a: &[Self], b: &[Self], c: &mut [Self]) -> Result<()> {
        cx.in_blocks(m, (LONG / (k * n).max(1)).max(1), |Range { start, end }| {
            Self::multiply([end - start, k, n], &a[start * k..end * k], b, &mut c[start * n..end * n]);
        })
    }
}

/// Products of more multiplications are made of parts.
const LONG: usize = 1 << 27;
/// Rows and columns of a part; of its inner extent it has as much as one chain adds up, so that bits stay.
const PART: [usize; 2] = [4096, 1024];

/// `C = aᵀ·b` added up over rows.
pub(crate) trait Outer: Element {
    /// `c += aᵀ·b` for a of extents `[p, m]` and b of `[p, n]`, whose rows count from the last one where `back` says so. [`OUTER`] rows at
    /// a time are added up: what is made of so many rows, or a multiple, and then of the others has the same bits.
    fn add_outer(extents: [usize; 3], a: &[Self], b: &[Self], back: [bool; 2], c: &mut [Self]);
}

/// Rows of which [`Outer::add_outer`] adds up the products at once.
pub(crate) const OUTER: usize = product::DEPTH;

impl Product for bool {}
impl Product for i8 {}
impl Product for i16 {}
impl Product for i32 {}
impl Product for i64 {}
impl Product for u8 {}
impl Product for u16 {}
impl Product for u32 {}
impl Product for u64 {}

macro_rules! float_product {
    ($t:ty, $row_products:path, $many:path) => {
        impl Product for $t {
            fn many(extents: [usize; 3]) -> bool {
                is_small(extents)
            }
            fn multiply_many(extents: [usize; 3], a: Stack<$t>, b: Stack<$t>, c: &mut [$t]) {
                $many(extents, a, b, c);
            }
            fn multiply([m, k, n]: [usize; 3], a: &[$t], b: &[$t], c: &mut [$t]) {
                match n {
                    1 => $row_products(a, b, c),
                    _ => Float::product([m, k, n], Matrix::rows(a, k), Matrix::rows(b, n), Matrix::rows(c, n), Mode::Set),
                }
            }
            fn multiply_parts(cx: &mut EvalCx, [m, k, n]: [usize; 3], a: &[$t], b: &[$t], c: &mut [$t]) -> Result<()> {
                if n == 1 {
                    return cx.in_blocks(m, (LONG / k).max(1), |Range { start, end }| {
                        $row_products(&a[start * k..end * k], b, &mut c[start..end]);
                    });
                }
                product_in(cx, [m, k, n], Matrix::rows(a, k), Matrix::rows(b, n), Matrix::rows(c, n), Mode::Set)
            }
        }
    };
}

float_product!(f32, eights::row_products_f32, product::small_products_f32);
float_product!(f64, eights::row_products, product::small_products);

/// A product by [the law](product), of parts where it is long, between which the caller may stop it.
///
/// # Errors
/// An interruption.
pub(super) fn product_in<T: Float>(
    cx: &mut EvalCx,
    [m, k, n]: [usize; 3],
    a: Matrix<&[T]>,
    b: Matrix<&[T]>,
    mut c: Matrix<&mut [T]>,
    mode: Mode,
) -> Result<()> {
    let work = m.saturating_mul(k).saturating_mul(n);
    if work <= LONG {
        T::product([m, k, n], a, b, c, mode);
        return cx.worked(work / VECTOR);
    }
    let ranges = |n: usize, size: usize| (0..n).step_by(size).map(move |lo| (lo, size.min(n - lo)));
    for (i, rows) in ranges(m, PART[0]) {
        for (j, columns) in ranges(n, PART[1]) {
            for (p, depth) in ranges(k, product::DEPTH) {
                let mode = if p == 0 || mode == Mode::Sub { mode } else { Mode::Add };
                T::product([rows, depth, columns], a.from(i, p), b.from(p, j), c.again().from(i, j), mode);
                cx.check_clock()?;
            }
        }
    }
    Ok(())
}

/// Multiplications that take the time of a simple operation.
const VECTOR: usize = 16;

impl<T: Float> Outer for T {
    fn add_outer([m, p, n]: [usize; 3], a: &[T], b: &[T], back: [bool; 2], c: &mut [T]) {
        let rows = |x, size, back| if back { Matrix::back(x, [p, size]) } else { Matrix::rows(x, size) };
        let (a, b) = (rows(a, m, back[0]), rows(b, n, back[1]));
        match n {
            // A column is the row of the transposed product: its elements are the same chains.
            1 => T::product([1, p, m], b.transposed(), a, Matrix::rows(c, m), Mode::Add),
            _ => T::product([m, p, n], a.transposed(), b, Matrix::rows(c, n), Mode::Add),
        }
    }
}

fn multiply_by_loops<T: Number>([m, k, n]: [usize; 3], a: &[T], b: &[T], c: &mut [T]) {
    c.fill(T::ZERO);
    for i in 0..m {
        if n == 1 {
            c[i] = a[i * k..(i + 1) * k].iter().zip(b).fold(T::ZERO, |sum, (&x, &y)| sum.plus(x.times(y)));
            continue;
        }
        let row = &mut c[i * n..(i + 1) * n];
        for p in 0..k {
            let x = a[i * k + p];
            row.iter_mut().zip(&b[p * n..(p + 1) * n]).for_each(|(c, &b)| *c = c.plus(x.times(b)));
        }
    }
}

/// Both factors, and the cotangent of their product, with the axis that a vector has too few for a matrix.
fn as_matrices(g: &mut Graph, [a, b, ct]: [Value; 3]) -> [Value; 3] {
    let (row, column) = (g.ty(a).rank() == 1, g.ty(b).rank() == 1);
    let left = if row { g.expand(a, &[0]) } else { a };
    let right = if column { g.expand(b, &[1]) } else { b };
    let ct = if row { g.expand(ct, &[g.ty(ct).rank() - usize::from(!column)]) } else { ct };
    [left, right, if column { g.expand(ct, &[g.ty(ct).rank()]) } else { ct }]
}

/// `ct·bᵀ`, summed over the axes along which a was broadcast.
fn ct_left(g: &mut Graph, ct: Value, a: Value, b: Value) -> Value {
    let transposed = g.transpose_last(b);
    let product = g.matmul(ct, transposed);
    let sum = g.sum_to(product, a);
    g.cast(sum, g.ty(a).dtype)
}

/// `aᵀ·ct`, summed over the axes along which b was broadcast. A batch of a on one matrix b is one product of long
/// matrices, not a batch of products that are summed after.
fn ct_right(g: &mut Graph, ct: Value, a: Value, b: Value) -> Value {
    let flat = g.ty(b).rank() == 2 && g.ty(a).rank() > 2;
    let (a, ct) = if flat { (as_rows(g, a), as_rows(g, ct)) } else { (a, ct) };
    let transposed = g.transpose_last(a);
    let product = g.matmul(transposed, ct);
    let sum = g.sum_to(product, b);
    g.cast(sum, g.ty(b).dtype)
}

/// All axes but the last as one. The extent is computed: −1 would not do where the last extent is 0.
fn as_rows(g: &mut Graph, x: Value) -> Value {
    let last = g.ty(x).rank() - 1;
    let rows = match g.ty(x).dims[..last].iter().map(Dim::value).product::<Option<usize>>() {
        Some(n) => g.int(n as i64),
        None => {
            let first = g.dim(x, 0);
            (1..last).fold(first, |product, axis| {
                let n = g.dim(x, axis);
                g.mul(product, n)
            })
        }
    };
    let columns = g.dim(x, last);
    g.emit(Reshape {}, &[x, rows, columns])
}

fn mismatch(a: &str, b: &str, k: &str, l: &str) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Shape, "E0208", format!("cannot multiply {a} by {b}: {k} columns meet {l} rows"))
}

fn no_batch(a: &str, b: &str) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Shape, "E0208", format!("cannot multiply {a} by {b}: their leading axes do not broadcast together"))
}

#[cfg(test)]
mod tests;
