//! Matrix products.

use super::support::{Number, exactly, is_float, one};
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::shape::{broadcast_dims, broadcast_shapes, count, strides, tuple};
use crate::types::{Array, Dim, Extents, Type};
use crate::{bail, dispatch};

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

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let dtype = ins[0].dtype().promote(ins[1].dtype());
        let (a, b) = (ins[0].cast(dtype), ins[1].cast(dtype));
        Ok(one(dispatch!(dtype, T => matmul::<T>(&a, &b)?)))
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

fn matmul<T: Product>(a: &Array, b: &Array) -> Result<Array> {
    let ((batch_a, m, &k), (batch_b, &l, n)) = (split_left(a.shape()), split_right(b.shape()));
    if k != l {
        return Err(mismatch(&tuple(a.shape()), &tuple(b.shape()), &k.to_string(), &l.to_string()));
    }
    let batch = broadcast_shapes(&[batch_a, batch_b]).map_err(|_| no_batch(&tuple(a.shape()), &tuple(b.shape())))?;
    let shape: Extents = batch.iter().copied().chain(m.copied()).chain(n.copied()).collect();
    let (m, n) = (m.copied().unwrap_or(1), n.copied().unwrap_or(1));
    let (data_a, data_b) = (a.as_slice::<T>(), b.as_slice::<T>());
    let mut out = vec![T::ZERO; count(&shape)];
    if batch_b.is_empty() {
        T::multiply([count(&batch) * m, k, n], data_a, data_b, &mut out);
        return Ok(Array::new(&shape, out));
    }
    for i in 0..count(&batch) {
        let (at_a, at_b) = (position(i, &batch, batch_a) * m * k, position(i, &batch, batch_b) * k * n);
        T::multiply([m, k, n], &data_a[at_a..at_a + m * k], &data_b[at_b..at_b + k * n], &mut out[i * m * n..(i + 1) * m * n]);
    }
    Ok(Array::new(&shape, out))
}

/// The row-major position in `shape` of element `i` of `target`, to which it is broadcast.
fn position(i: usize, target: &[usize], shape: &[usize]) -> usize {
    let (from, to) = (strides(target), strides(shape));
    let new = target.len() - shape.len();
    (0..shape.len()).filter(|&axis| shape[axis] != 1).map(|axis| i / from[new + axis] % shape[axis] * to[axis]).sum()
}

/// Products of row-major matrices. Ints are done by loops; floats too where they are small.
trait Product: Number {
    /// `c = a·b` for extents `[m, k, n]`, c being zeros.
    fn multiply(extents: [usize; 3], a: &[Self], b: &[Self], c: &mut [Self]) {
        multiply_by_loops(extents, a, b, c);
    }
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
    ($t:ty, $gemm:path) => {
        impl Product for $t {
            #[allow(unsafe_code)]
            fn multiply(extents: [usize; 3], a: &[$t], b: &[$t], c: &mut [$t]) {
                let [m, k, n] = extents;
                if m < 4 || n < 4 || m * k * n < SMALL {
                    return multiply_by_loops(extents, a, b, c);
                }
                assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n, "extents of a product");
                // SAFETY: with these strides and extents exactly the elements of the three slices are reached, as
                // asserted above; c is borrowed exclusively.
                unsafe { $gemm(m, k, n, 1.0, a.as_ptr(), k as isize, 1, b.as_ptr(), n as isize, 1, 0.0, c.as_mut_ptr(), n as isize, 1) }
            }
        }
    };
}

float_product!(f32, matrixmultiply::sgemm);
float_product!(f64, matrixmultiply::dgemm);

/// Below as many multiplications, packing costs more than it saves.
const SMALL: usize = 4096;

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
