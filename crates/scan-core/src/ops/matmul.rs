//! Matrix products.

use super::support::{Number, exactly, is_float, one};
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::scalar::{eights, slices};
use crate::types::shape::{broadcast_dims, broadcast_shapes, count, strides, tuple};
use crate::types::{Array, Dim, Element, Extents, Type, memory};
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
        let rows = Self::rows_of_part(m, k, n);
        let mut lo = 0;
        while lo < m {
            // The last part is not so small that another way of multiplying is taken.
            let least = if rows < ROWS { 1 } else { ROWS + SMALL / (k * n).max(1) };
            let hi = if m - lo < rows + least { m } else { lo + rows };
            if n <= COLUMNS || m < ROWS || !Self::TILED {
                Self::multiply([hi - lo, k, n], &a[lo * k..hi * k], b, &mut c[lo * n..hi * n]);
            } else {
                for first in (0..n).step_by(COLUMNS) {
                    let columns = [first, n.min(first + COLUMNS)];
                    Self::multiply_columns([hi - lo, k, n], columns, &a[lo * k..hi * k], b, &mut c[lo * n..hi * n]);
                    cx.check_clock()?;
                }
            }
            cx.check_clock()?;
            lo = hi;
        }
        Ok(())
    }
    /// True where some columns of a product can be computed without the others.
    const TILED: bool = false;
    /// Rows of a part of a long product.
    fn rows_of_part(_m: usize, k: usize, n: usize) -> usize {
        (LONG / (k * n).max(1)).max(1)
    }
    /// Some columns of a product.
    fn multiply_columns(extents: [usize; 3], _columns: [usize; 2], a: &[Self], b: &[Self], c: &mut [Self]) {
        Self::multiply(extents, a, b, c);
    }
}

/// Products of more multiplications are made of parts.
const LONG: usize = 1 << 27;
/// Rows of a part, where rows are multiplied together: packing the right side once for each is a small part of the work.
const PART: usize = 512;
/// Columns of a part: as many as are packed at a time anyway.
const COLUMNS: usize = 1024;

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
                Self::multiply_columns(extents, [0, n], a, b, c);
            }
            const TILED: bool = true;
            fn rows_of_part(m: usize, k: usize, n: usize) -> usize {
                let rows = (LONG / (k * n).max(1)).max(1);
                if n < 4 || m < ROWS {
                    rows
                } else if n > COLUMNS {
                    PART
                } else {
                    rows.max(PART)
                }
            }
            #[allow(unsafe_code)]
            fn multiply_columns([m, k, n]: [usize; 3], [lo, hi]: [usize; 2], a: &[$t], b: &[$t], c: &mut [$t]) {
                assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n && lo <= hi && hi <= n, "extents of a product");
                if m * k * n > PACKED * LOOPS {
                    // The product packs as much, and has no way to say that there is no memory for it.
                    drop(memory::room::<$t>(PACKED));
                }
                // SAFETY: with these strides and extents exactly the elements of the columns, and of all of a, are reached, as
                // asserted above; c is borrowed exclusively.
                unsafe {
                    let (b, c) = (b.as_ptr().add(lo), c.as_mut_ptr().add(lo));
                    $gemm(m, k, hi - lo, 1.0, a.as_ptr(), k as isize, 1, b, n as isize, 1, 0.0, c, n as isize, 1);
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
mod tests {
    use super::*;
    use crate::ops::testing::*;
    use crate::types::DType;

    fn range(shape: &[usize]) -> Array {
        Array::new(shape, (0..count(shape)).map(|i| i as f64).collect())
    }

    fn product(a: &Array, b: &Array) -> Array {
        apply(MatMul {}, &[a.clone(), b.clone()])
    }

    #[test]
    fn values_are_numpys() {
        let a = range(&[2, 3]);
        assert_eq!(product(&a, &range(&[3, 4])), Array::new(&[2, 4], vec![20.0, 23.0, 26.0, 29.0, 56.0, 68.0, 80.0, 92.0]));
        assert_eq!(product(&a, &Array::vector(&[1.0, 2.0, 3.0])), Array::vector(&[8.0, 26.0]));
        assert_eq!(product(&Array::vector(&[1.0, 2.0]), &a), Array::vector(&[6.0, 9.0, 12.0]));
        assert_eq!(product(&Array::vector(&[1.0, 2.0]), &Array::vector(&[3.0, 4.0])), Array::scalar(11.0));
    }

    #[test]
    fn batches_broadcast() {
        let c = product(&range(&[2, 1, 2, 3]), &range(&[3, 3, 2]));
        let expected = [
            10.0, 13.0, 28.0, 40.0, 28.0, 31.0, 100.0, 112.0, 46.0, 49.0, 172.0, 184.0, 46.0, 67.0, 64.0, 94.0, 172.0, 193.0, 244.0, 274.0,
            298.0, 319.0, 424.0, 454.0,
        ];
        assert_eq!(c, Array::new(&[2, 3, 2, 2], expected.to_vec()));
        let rows = product(&range(&[3]), &range(&[3, 3, 2]));
        assert_eq!(rows, Array::new(&[3, 2], vec![10.0, 13.0, 28.0, 31.0, 46.0, 49.0]));
        let stack = product(&range(&[2, 2, 3]), &range(&[3, 1]));
        assert_eq!(stack, Array::new(&[2, 2, 1], vec![5.0, 14.0, 23.0, 32.0]));
    }

    #[test]
    fn ints_wrap_bools_are_logical_and_dtypes_promote() {
        let (a, b) = (Array::new(&[1, 2], vec![100i8, 3]), Array::new(&[2, 1], vec![2i8, 5]));
        assert_eq!(product(&a, &b), Array::new(&[1, 1], vec![-41i8]));
        assert_eq!(product(&a, &Array::vector(&[2i64, 5])), Array::vector(&[215i64]));
        assert_eq!(product(&a, &Array::vector(&[2f32, 0.5])), Array::vector(&[201.5f32]));
        let (t, f) = (true, false);
        assert_eq!(product(&Array::new(&[2, 2], vec![t, f, t, t]), &Array::vector(&[f, t])), Array::vector(&[f, t]));
    }

    #[test]
    fn empty_extents_give_zeros() {
        assert_eq!(product(&Array::zeros(DType::F32, &[2, 0]), &Array::zeros(DType::F32, &[0, 3])), Array::zeros(DType::F32, &[2, 3]));
        assert_eq!(product(&Array::zeros(DType::F64, &[0]), &Array::zeros(DType::F64, &[0])), Array::scalar(0.0));
        assert_eq!(product(&Array::zeros(DType::F64, &[0, 2, 3]), &range(&[3, 4])).shape(), [0, 2, 4]);
        assert_eq!(product(&Array::zeros(DType::F64, &[0, 2, 3]), &range(&[1, 3, 4])).shape(), [0, 2, 4]);
    }

    #[test]
    fn large_products_agree_with_loops() {
        let (a, b) = (sample(&[33, 40], 1), sample(&[40, 37], 2));
        let mut c = vec![0.0; 33 * 37];
        multiply_by_loops([33, 40, 37], a.as_slice(), b.as_slice(), &mut c);
        assert_close(&product(&a, &b).to_f64_vec(), &c, 1e-13, "f64");
        let single = product(&a.cast(DType::F32), &b.cast(DType::F32));
        assert_close(&single.to_f64_vec(), &c, 1e-5, "f32");
    }

    /// Rows in the order in which they are read.
    fn in_order<T: Copy>(x: &[T], n: usize, back: bool) -> Vec<T> {
        if back { x.chunks(n.max(1)).rev().flatten().copied().collect() } else { x.to_vec() }
    }

    #[test]
    fn outer_products_read_rows_either_way() {
        for [m, p, n] in
            [[3, 5, 2], [1, 1, 1], [33, 40, 37], [64, 1, 64], [16, 9, 70], [3, 0, 2], [0, 2, 3], [2, 3, 0], [7, 600, 1], [1, 600, 5]]
        {
            let (a, b) = (sample(&[p, m], 1), sample(&[p, n], 2));
            for back in [[false, false], [false, true], [true, false], [true, true]] {
                let (rows_a, rows_b) = (in_order(a.as_slice::<f64>(), m, back[0]), in_order(b.as_slice::<f64>(), n, back[1]));
                let mut want = vec![1.0; m * n];
                (0..p).for_each(|t| (0..m * n).for_each(|at| want[at] += rows_a[t * m + at / n] * rows_b[t * n + at % n]));
                let mut c = vec![1.0; m * n];
                Outer::add_outer([m, p, n], a.as_slice(), b.as_slice(), back, &mut c);
                assert_close(&c, &want, 1e-12, &format!("{m} {p} {n} {back:?}"));
                let (single_a, single_b) = (a.cast(DType::F32), b.cast(DType::F32));
                let mut c = vec![1f32; m * n];
                Outer::add_outer([m, p, n], single_a.as_slice(), single_b.as_slice(), back, &mut c);
                assert_close(&c.iter().map(|x| f64::from(*x)).collect::<Vec<_>>(), &want, 1e-3, &format!("{m} {p} {n} {back:?}, f32"));
            }
        }
    }

    #[test]
    fn outer_products_of_blocks_have_the_bits_of_all_rows() {
        for [m, n] in [[1, 1], [5, 1], [1, 40], [3, 4], [20, 30]] {
            let p = 5 * OUTER / 2 + 3;
            let (a, b) = (sample(&[p, m], 1), sample(&[p, n], 2));
            let (a, b) = (a.as_slice::<f64>(), b.as_slice::<f64>());
            for back in [[false, false], [false, true], [true, false], [true, true]] {
                let (mut all, mut blocks) = (vec![0.0; m * n], vec![0.0; m * n]);
                Outer::add_outer([m, p, n], a, b, back, &mut all);
                for (lo, hi) in [(0, OUTER), (OUTER, 2 * OUTER), (2 * OUTER, p)] {
                    let of = |x: &[f64], size: usize, back: bool| {
                        let (lo, hi) = if back { (p - hi, p - lo) } else { (lo, hi) };
                        x[lo * size..hi * size].to_vec()
                    };
                    Outer::add_outer([m, hi - lo, n], &of(a, m, back[0]), &of(b, n, back[1]), back, &mut blocks);
                }
                assert_eq!(all, blocks, "{m} {n} {back:?}");
            }
        }
    }

    #[test]
    fn misfits_are_errors_with_both_shapes() {
        let (a, b) = (range(&[2, 3]), range(&[4, 2]));
        assert_eq!(run_error(MatMul {}, &[a.clone(), b.clone()]).title, "cannot multiply (2, 3) by (4, 2): 3 columns meet 4 rows");
        let e = build_error(MatMul {}, &[a.clone(), b.clone()]);
        assert_eq!((e.code, &e.title[..]), ("E0208", "cannot multiply float64[2, 3] by float64[4, 2]: 3 columns meet 4 rows"));
        assert_eq!(run_error(MatMul {}, &[range(&[1]), b]).code, "E0208");
        assert_eq!(run_error(MatMul {}, &[range(&[2, 1, 3]), range(&[3, 3, 1])]).code, "E0208");
        assert_eq!(build_error(MatMul {}, &[a, Array::scalar(1.0)]).code, "E0208");
    }

    const RANKS: [(&[usize], &[usize]); 10] = [
        (&[3], &[3]),
        (&[2, 3], &[3]),
        (&[3], &[3, 2]),
        (&[2, 3], &[3, 2]),
        (&[2, 2, 3], &[3, 2]),
        (&[3], &[2, 3, 2]),
        (&[2, 2, 3], &[3]),
        (&[2, 1, 2, 3], &[2, 3, 1]),
        (&[1, 2, 3], &[2, 3, 2]),
        (&[2, 2, 0], &[0, 2]),
    ];

    #[test]
    fn gradients_match_differences() {
        for (a, b) in RANKS {
            check_vjp(|g, v| g.matmul(v[0], v[1]), &[sample(a, 1), sample(b, 2)]);
        }
    }

    #[test]
    fn second_order() {
        for (a, b) in RANKS {
            check_vjp2(|g, v| g.matmul(v[0], v[1]), &[sample(a, 1), sample(b, 2)]);
        }
    }

    #[test]
    fn a_float_beside_ints_has_a_gradient() {
        check_vjp(|g, v| g.matmul(v[0], v[1]), &[sample(&[2, 3], 1), Array::vector(&[1i32, 2, 3])]);
        check_vjp(|g, v| g.matmul(v[0], v[1]), &[Array::new(&[1, 2], vec![1f32, 2.0]), sample(&[2, 2], 1)]);
    }
}
