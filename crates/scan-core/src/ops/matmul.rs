//! Matrix products.

use super::batch::products;
use super::support::{Number, exactly, is_float, one};
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::{eights, slices};
use crate::types::shape::{broadcast_dims, broadcast_shapes, count, strides, tuple};
use crate::types::{Array, Dim, Element, Extents, Type, memory};
use crate::{bail, dispatch};
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
        let left = if row { g.expand(a, &[0]) } else { a };
        let right = if column { g.expand(b, &[1]) } else { b };
        let ct = as_matrix(g, ct, row, column);
        let ct_a = is_float(g, a).then(|| {
            let ct_a = ct_left(g, ct, left, right);
            if row { g.squeeze(ct_a, &[0]) } else { ct_a }
        });
        let ct_b = is_float(g, b).then(|| {
            let ct_b = ct_right(g, ct, left, right);
            if column { g.squeeze(ct_b, &[1]) } else { ct_b }
        });
        Ok(vec![ct_a, ct_b])
    }

    fn can_fail(&self) -> bool {
        true
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
    out.fill(T::ZERO);
    if batch_b.is_empty() {
        T::multiply_in(cx, [count(&batch) * m, k, n], data_a, data_b, out)?;
        return Ok(product);
    }
    for i in 0..count(&batch) {
        let (at_a, at_b) = (position(i, &batch, batch_a) * m * k, position(i, &batch, batch_b) * k * n);
        let (a, b) = (&data_a[at_a..at_a + m * k], &data_b[at_b..at_b + k * n]);
        T::multiply_in(cx, [m, k, n], a, b, &mut out[i * m * n..(i + 1) * m * n])?;
        cx.worked(m * k * n)?;
    }
    Ok(product)
}

/// The row-major position in `shape` of element `i` of `target`, to which it is broadcast.
fn position(i: usize, target: &[usize], shape: &[usize]) -> usize {
    let (from, to) = (strides(target), strides(shape));
    let new = target.len() - shape.len();
    (0..shape.len()).filter(|&axis| shape[axis] != 1).map(|axis| i / from[new + axis] % shape[axis] * to[axis]).sum()
}

/// Products of row-major matrices. Ints are done by loops; floats too where they are small. Larger products of floats round
/// `x·y + z` once, where the processor can.
pub(crate) trait Product: Number {
    /// `c = a·b` for extents `[m, k, n]`, c being zeros.
    fn multiply(extents: [usize; 3], a: &[Self], b: &[Self], c: &mut [Self]) {
        multiply_by_loops(extents, a, b, c);
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
        if n >= 4 && m >= ROWS && Self::TILED {
            return Self::multiply_tiles(cx, [m, k, n], a, b, c);
        }
        let rows = (LONG / (k * n).max(1)).max(1);
        let mut lo = 0;
        while lo < m {
            // The last part is not so small that another way of multiplying is taken.
            let hi = if m - lo <= rows + SMALL / (k * n).max(1) { m } else { lo + rows };
            Self::multiply([hi - lo, k, n], &a[lo * k..hi * k], b, &mut c[lo * n..hi * n]);
            cx.check_clock()?;
            lo = hi;
        }
        Ok(())
    }
    /// True where a product of many rows and columns is made of tiles.
    const TILED: bool = false;
    /// Such a product.
    ///
    /// # Errors
    /// An interruption.
    fn multiply_tiles(cx: &mut EvalCx, [m, k, n]: [usize; 3], a: &[Self], b: &[Self], c: &mut [Self]) -> Result<()> {
        let ranges = |n: usize, size: usize| (0..n).step_by(size).map(move |lo| lo..n.min(lo + size));
        for rows in ranges(m, TILE[0]) {
            for columns in ranges(n, TILE[2]) {
                for inner in ranges(k, TILE[1]) {
                    Self::multiply_tile([m, k, n], [rows.clone(), inner, columns.clone()], a, b, c);
                    cx.check_clock()?;
                }
            }
        }
        Ok(())
    }
    /// Sets some rows and columns of c to the product of some columns of a and rows of b, or adds it where these are not the first.
    fn multiply_tile(extents: [usize; 3], _tile: [Range<usize>; 3], a: &[Self], b: &[Self], c: &mut [Self]) {
        Self::multiply(extents, a, b, c);
    }
}

/// Products of more multiplications are made of parts.
const LONG: usize = 1 << 27;
/// Rows, inner extents and columns of a tile: the last two are those that `matrixmultiply` packs, and adds up, at a time anyway, so that
/// bits stay; for so many rows packing once more is nothing.
const TILE: [usize; 3] = [4096, 256, 1024];

/// `C = aᵀ·b` added up over rows.
pub(crate) trait Outer: Element {
    /// `c += aᵀ·b` for a of extents `[p, m]` and b of `[p, n]`, whose rows count from the last one where `back` says so. [`OUTER`] rows at
    /// a time are added up: what is made of so many rows, or a multiple, and then of the others has the same bits.
    fn add_outer(extents: [usize; 3], a: &[Self], b: &[Self], back: [bool; 2], c: &mut [Self]);
}

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
    ($t:ty, $gemm:path, $add_rows:path, $add_rows_back:path, $add_outer:path, $row_products:path) => {
        impl Product for $t {
            fn multiply(extents: [usize; 3], a: &[$t], b: &[$t], c: &mut [$t]) {
                let [m, k, n] = extents;
                match extents {
                    _ if m * k * n <= LOOPS || (2..4).contains(&n) => return multiply_by_loops(extents, a, b, c),
                    [_, _, 1] => return $row_products(a, b, c),
                    _ if m < ROWS || m * k * n < SMALL => {
                        return a.chunks_exact(k).zip(c.chunks_exact_mut(n)).for_each(|(a, c)| $add_rows(a, b, c));
                    }
                    _ => {}
                }
                let [m, k, n] = extents.map(|extent| 0..extent);
                Self::multiply_tile(extents, [m, k, n], a, b, c);
            }
            const TILED: bool = true;
            #[allow(unsafe_code)]
            fn multiply_tile([m, k, n]: [usize; 3], [rows, inner, columns]: [Range<usize>; 3], a: &[$t], b: &[$t], c: &mut [$t]) {
                assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n, "extents of a product");
                let lies = |range: &Range<usize>, n: usize| range.start <= range.end && range.end <= n;
                assert!(lies(&rows, m) && lies(&inner, k) && lies(&columns, n), "a tile of a product");
                if rows.len() * inner.len() * columns.len() > PACKED * LOOPS {
                    // The product packs as much, and has no way to say that there is no memory for it.
                    drop(memory::room::<$t>(PACKED));
                }
                let add = if inner.start == 0 { 0.0 } else { 1.0 };
                // SAFETY: with these strides and extents exactly the elements of the tile are reached, which lies in the three slices,
                // as asserted above; c is borrowed exclusively.
                unsafe {
                    let (a, b) = (a.as_ptr().add(rows.start * k + inner.start), b.as_ptr().add(inner.start * n + columns.start));
                    let c = c.as_mut_ptr().add(rows.start * n + columns.start);
                    let [m, l, w] = [rows, inner, columns].map(|range| range.len());
                    $gemm(m, l, w, 1.0, a, k as isize, 1, b, n as isize, 1, add, c, n as isize, 1);
                }
            }
        }

        impl Outer for $t {
            #[allow(unsafe_code)]
            fn add_outer([m, p, n]: [usize; 3], a: &[$t], b: &[$t], back: [bool; 2], c: &mut [$t]) {
                assert!(a.len() == m * p && b.len() == p * n && c.len() == m * n, "extents of a product");
                for lo in (0..p).step_by(OUTER) {
                    let q = OUTER.min(p - lo);
                    let from = back.map(|back| if back { p - lo - q } else { lo });
                    let (a, b) = (&a[from[0] * m..(from[0] + q) * m], &b[from[1] * n..(from[1] + q) * n]);
                    let mut turned = [0.0; OUTER];
                    let mut scaled = |factors: &[$t], rows: &[$t], [factors_back, back]: [bool; 2]| {
                        let turned = &mut turned[..q];
                        turned.copy_from_slice(factors);
                        if factors_back {
                            turned.reverse();
                        }
                        if back { $add_rows_back(turned, rows, c) } else { $add_rows(turned, rows, c) }
                    };
                    match [m, n] {
                        [_, 1] => scaled(b, a, [back[1], back[0]]),
                        [1, _] => scaled(a, b, back),
                        _ if q < ROWS || m * q * n < SMALL => $add_outer(a, b, [m, n], back, c),
                        _ => {
                            let [(first_a, a_step), (first_b, b_step)] = [(back[0], m), (back[1], n)]
                                .map(|(back, size)| if back { ((q - 1) * size, -(size as isize)) } else { (0, size as isize) });
                            // SAFETY: with these strides and extents exactly the elements of the three slices are reached: a and b have
                            // q rows, q is not 0, which are counted from the first or down from the last one; c has m·n elements, as
                            // asserted above, and is borrowed exclusively.
                            unsafe {
                                let (a, b) = (a.as_ptr().add(first_a), b.as_ptr().add(first_b));
                                $gemm(m, q, n, 1.0, a, 1, a_step, b, b_step, 1, 1.0, c.as_mut_ptr(), n as isize, 1);
                            }
                        }
                    }
                }
            }
        }
    };
}

float_product!(
    f32,
    matrixmultiply::sgemm,
    slices::add_rows_f32,
    slices::add_rows_back_f32,
    slices::add_outer_f32,
    eights::row_products_f32
);
float_product!(f64, matrixmultiply::dgemm, slices::add_rows, slices::add_rows_back, slices::add_outer, eights::row_products);

/// Elements that a large product packs.
const PACKED: usize = 256 * (1024 + 64);
/// Rows of which [`Outer::add_outer`] adds up the products at once.
pub(crate) const OUTER: usize = 256;
/// Up to as many multiplications a kernel may compute a product, element by element, and both round every product and sum. Larger ones are
/// quicker as calls: a row by a matrix of 16 × 16 takes a third of the time, of 32 × 32 an eighth.
pub(crate) const LOOPS: usize = 128;
/// Below as many multiplications, packing costs more than it saves.
pub(crate) const SMALL: usize = 4096;
/// So few rows are multiplied one after the other: the right side is read as often as it would be to pack it.
pub(crate) const ROWS: usize = 8;

fn multiply_by_loops<T: Number>([m, k, n]: [usize; 3], a: &[T], b: &[T], c: &mut [T]) {
    if n == 1 {
        (0..m).for_each(|i| c[i] = dot(&a[i * k..(i + 1) * k], b));
        return;
    }
    for i in 0..m {
        let row = &mut c[i * n..(i + 1) * n];
        for p in 0..k {
            let x = a[i * k + p];
            row.iter_mut().zip(&b[p * n..(p + 1) * n]).for_each(|(c, &b)| *c = c.plus(x.times(b)));
        }
    }
}

/// Eight strided partials, then a tree, as a sum.
fn dot<T: Number>(a: &[T], b: &[T]) -> T {
    let mut part = [T::ZERO; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        part.iter_mut().zip(a.iter().zip(b)).for_each(|(p, (a, &b))| *p = p.plus(a.times(b)));
    }
    let [a, b, c, d, e, f, g, h] = part;
    (a.plus(e).plus(c.plus(g))).plus(b.plus(f).plus(d.plus(h)))
}

/// The cotangent with the axes that a vector on either side took away.
fn as_matrix(g: &mut Graph, ct: Value, row: bool, column: bool) -> Value {
    let ct = if row { g.expand(ct, &[g.ty(ct).rank() - usize::from(!column)]) } else { ct };
    if column { g.expand(ct, &[g.ty(ct).rank()]) } else { ct }
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
