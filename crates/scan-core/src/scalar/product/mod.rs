//! Products of matrices of floats, by one law whatever the route: an element of `a·b` is the sum of blocks of [`DEPTH`] products, from the
//! first block to the last; a block is one chain `fma(aᵢₚ, bₚⱼ, … fma(aᵢ₀, bₚ₀, 0))`, from its first product to its last. So row i of a product is
//! the product of row i, whatever the number of rows, the registers of the processor and the parts that the product is made of.

mod small;
mod tile;
pub(super) mod vector;

use super::lanes::fused;
#[cfg(target_arch = "x86_64")]
use super::slices::{Width, width};
use crate::types::Element;
use crate::types::buffer::Buffer;
pub(crate) use small::{Stack, is_small, small_products, small_products_f32};
pub(crate) use tile::Mode;
use tile::{Place, Three, strip, tall};
use vector::{Array, Vector};

/// Products that one chain adds up.
pub(crate) const DEPTH: usize = 256;

/// A matrix in a slice: where its first element lies, and how far it is from an element to the one below and to the one beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<S> {
    data: S,
    first: usize,
    row: isize,
    column: isize,
}

impl<S> Matrix<S> {
    /// A slice of rows of n elements.
    pub fn rows(data: S, n: usize) -> Matrix<S> {
        Matrix { data, first: 0, row: n as isize, column: 1 }
    }
    /// Of a slice of p rows of n elements, the last row first.
    pub fn back(data: S, [p, n]: [usize; 2]) -> Matrix<S> {
        Matrix { data, first: p.saturating_sub(1) * n, row: -(n as isize), column: 1 }
    }
    /// From row i and column j on.
    pub fn from(self, i: usize, j: usize) -> Matrix<S> {
        let first = self.first.wrapping_add_signed(i as isize * self.row + j as isize * self.column);
        Matrix { first, ..self }
    }
    /// Rows for columns.
    pub fn transposed(self) -> Matrix<S> {
        Matrix { row: self.column, column: self.row, ..self }
    }
    /// Panics where m rows of n elements, one of each at least, do not lie among so many elements.
    #[inline]
    fn check(&self, [m, n]: [usize; 2], len: usize) {
        let far = |count: usize, step: isize| isize::try_from(count - 1).ok()?.checked_mul(step);
        let lies = |at: isize| self.first.checked_add_signed(at).is_some_and(|at| at < len);
        let ends = far(m, self.row).zip(far(n, self.column)).and_then(|(down, right)| Some([0, down, right, down.checked_add(right)?]));
        assert!(ends.is_some_and(|ends| ends.into_iter().all(lies)), "extents of a product");
    }
}

impl<T: Copy> Matrix<&[T]> {
    /// An element.
    pub fn at(&self, i: usize, j: usize) -> T {
        self.data[self.first.wrapping_add_signed(i as isize * self.row + j as isize * self.column)]
    }
}

impl<T> Matrix<&mut [T]> {
    /// For a shorter time.
    pub fn again(&mut self) -> Matrix<&mut [T]> {
        Matrix { data: &mut *self.data, first: self.first, row: self.row, column: self.column }
    }
}

/// Floats that are multiplied in registers.
pub(crate) trait Float: Element + Copy {
    /// Sets the m·n elements of c to the product of a and b, or adds that to them, or takes it away. The elements of a row of c lie side by
    /// side.
    ///
    /// # Panics
    /// Where the extents `[m, k, n]` reach beyond the slices.
    fn product(extents: [usize; 3], a: Matrix<&[Self]>, b: Matrix<&[Self]>, c: Matrix<&mut [Self]>, mode: Mode);
}

macro_rules! float {
    ($t:ty, $widest:ident, $wide:ident) => {
        impl Float for $t {
            fn product([m, k, n]: [usize; 3], a: Matrix<&[$t]>, b: Matrix<&[$t]>, c: Matrix<&mut [$t]>, mode: Mode) {
                if m == 0 || n == 0 || k == 0 && mode != Mode::Set {
                    return;
                }
                c.check([m, n], c.data.len());
                assert!(c.column == 1 && (m == 1 || c.row.unsigned_abs() >= n), "rows of a product");
                if k > 0 {
                    a.check([m, k], a.data.len());
                    b.check([k, n], b.data.len());
                }
                let three = (
                    Place { at: a.data.as_ptr().wrapping_add(a.first), row: a.row, column: a.column },
                    Place { at: b.data.as_ptr().wrapping_add(b.first), row: b.row, column: b.column },
                    Place { at: c.data.as_mut_ptr().wrapping_add(c.first), row: c.row, column: 1 },
                );
                // SAFETY: with these extents exactly the elements are reached that lie in the slices, as was checked; c is borrowed
                // exclusively, and its rows do not meet. The processor has the registers of these strips.
                unsafe { product_of(&<$t>::strips(), [m, k, n], three, mode) }
            }
        }

        impl Strips for $t {
            fn strips() -> Kind<$t> {
                #[cfg(target_arch = "x86_64")]
                {
                    use std::arch::x86_64::*;
                    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                    unsafe fn widest(extents: [usize; 3], three: Three<$t>, mode: Mode) {
                        // SAFETY: the caller's duty.
                        unsafe { strip::<$widest>(extents, three, mode) }
                    }
                    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                    unsafe fn widest_tall(extents: [usize; 2], three: Three<$t>, mode: Mode) {
                        // SAFETY: the caller's duty.
                        unsafe { tall::<$widest>(extents, three, mode) }
                    }
                    #[target_feature(enable = "avx2,fma")]
                    unsafe fn wide(extents: [usize; 3], three: Three<$t>, mode: Mode) {
                        // SAFETY: the caller's duty.
                        unsafe { strip::<$wide>(extents, three, mode) }
                    }
                    #[target_feature(enable = "avx2,fma")]
                    unsafe fn wide_tall(extents: [usize; 2], three: Three<$t>, mode: Mode) {
                        // SAFETY: the caller's duty.
                        unsafe { tall::<$wide>(extents, three, mode) }
                    }
                    match width() {
                        Width::Avx512 => return Kind { strip: widest, tall: widest_tall, rows: 8, columns: 3 * <$widest>::LEN },
                        Width::Avx2 => return Kind { strip: wide, tall: wide_tall, rows: 6, columns: 2 * <$wide>::LEN },
                        Width::Plain => {}
                    }
                }
                let (rows, columns) = (6, 2 * Array::<$t, true>::LEN);
                match fused() {
                    true => Kind { strip: strip::<Array<$t, true>>, tall: tall::<Array<$t, true>>, rows, columns },
                    false => Kind { strip: strip::<Array<$t, false>>, tall: tall::<Array<$t, false>>, rows, columns },
                }
            }
        }
    };
}

/// How strips are multiplied in this process.
struct Kind<T> {
    /// The function, for registers that the processor has.
    strip: unsafe fn([usize; 3], Three<T>, Mode),
    /// The one for as many rows as its largest tile has, which are packed.
    tall: unsafe fn([usize; 2], Three<T>, Mode),
    /// Rows of its largest tile.
    rows: usize,
    /// Columns of it.
    columns: usize,
}

trait Strips: Sized {
    fn strips() -> Kind<Self>;
}

float!(f32, __m512, __m256);
float!(f64, __m512d, __m256d);

/// Bytes of the part of the right factor that is read over and over by many rows: half of what the second level of a cache holds.
const PART: usize = 1 << 19;
/// Bytes of such a part that is packed. Rows of the left factor that are packed wait beside it.
const PACKED: usize = 1 << 18;
/// Rows of the left factor that are packed at once, at most.
const ROWS: usize = 1024;
/// From so many rows on factors are first brought into the order in which they are read, where the right one lies scattered over pages.
/// Fewer rows are done before that has paid.
const MANY: usize = 256;
/// Bytes from row to row that scatter a matrix.
const FAR: usize = 2048;

/// The product by parts of the right factor: blocks of [`DEPTH`] of its rows, cut into as many columns as stay in the cache.
///
/// # Safety
/// The processor has the registers; with these extents a and b may be read and c may be written, and no one else does.
unsafe fn product_of<T: Float>(kind: &Kind<T>, [m, k, n]: [usize; 3], (a, b, c): Three<T>, mode: Mode) {
    if k > 0 && (b.column != 1 || m >= MANY && b.row.unsigned_abs() * size_of::<T>() >= FAR) {
        // SAFETY: the caller's promise.
        return unsafe { packed(kind, [m, k, n], (a, b, c), mode) };
    }
    let most = if m > kind.rows { columns(PART, kind) } else { n };
    for j in (0..n).step_by(most) {
        for p in (0..k.max(1)).step_by(DEPTH) {
            let three = (a.from(0, p), b.from(p, j), c.from(0, j));
            // SAFETY: this part lies within the extents.
            unsafe { (kind.strip)([m, DEPTH.min(k - p), most.min(n - j)], three, block(mode, p)) };
        }
    }
}

/// Columns of so many bytes that are [`DEPTH`] deep: tiles of them.
fn columns<T>(bytes: usize, kind: &Kind<T>) -> usize {
    bytes / (DEPTH * size_of::<T>()) / kind.columns * kind.columns
}

/// What becomes of the result by the block of products that begins at the p-th.
fn block(mode: Mode, p: usize) -> Mode {
    if p == 0 || mode == Mode::Sub { mode } else { Mode::Add }
}

/// As [`product_of`], with both factors packed: the right one into panels, the columns of a tile, row after row; the left one into the rows
/// of a tile, column after column. Where rows lie as far apart as pages do they would take each other's lines of the cache.
///
/// # Safety
/// As there.
unsafe fn packed<T: Float>(kind: &Kind<T>, [m, k, n]: [usize; 3], (a, b, c): Three<T>, mode: Mode) {
    let (high, wide, deep) = (kind.rows, kind.columns, DEPTH.min(k));
    let (rows, most) = (ROWS / high * high, columns(PACKED, kind));
    let mut left = Buffer::<T>::dirty(deep * rows.min(m.next_multiple_of(high)));
    let mut right = Buffer::<T>::dirty(deep * most.min(n.next_multiple_of(wide)));
    for i in (0..m).step_by(rows) {
        for p in (0..k).step_by(DEPTH) {
            let (rows, depth) = (rows.min(m - i), DEPTH.min(k - p));
            // SAFETY: these rows and columns lie within the extents.
            unsafe { pack(a.from(i, p).transposed(), [depth, rows], left.as_mut_slice(), high) };
            for j in (0..n).step_by(most) {
                let columns = most.min(n - j);
                // SAFETY: as above.
                unsafe { pack(b.from(p, j), [depth, columns], right.as_mut_slice(), wide) };
                let factors = (&left[..], &right[..]);
                // SAFETY: as above; both are packed.
                unsafe { tiles(kind, [rows, depth, columns], factors, c.from(i, j), block(mode, p)) };
            }
        }
    }
}

/// The product of packed factors.
///
/// # Safety
/// The processor has the registers; c may be written, and no one else does.
unsafe fn tiles<T: Float>(kind: &Kind<T>, [m, k, n]: [usize; 3], (left, right): (&[T], &[T]), c: Place<*mut T>, mode: Mode) {
    for (i, rows) in (0..m).step_by(kind.rows).zip(left.chunks_exact(k * kind.rows)) {
        for (j, panel) in (0..n).step_by(kind.columns).zip(right.chunks_exact(k * kind.columns)) {
            let a = Place { at: rows.as_ptr(), row: 1, column: kind.rows as isize };
            let b = Place { at: panel.as_ptr(), row: kind.columns as isize, column: 1 };
            let (rows, columns, three) = (kind.rows.min(m - i), kind.columns.min(n - j), (a, b, c.from(i, j)));
            // SAFETY: these rows and columns lie within the extents; packed ones are as deep as k.
            unsafe {
                if rows == kind.rows { (kind.tall)([k, columns], three, mode) } else { (kind.strip)([rows, k, columns], three, mode) }
            }
        }
    }
}

/// Brings k rows of n elements into panels: so many columns of them, row after row.
///
/// # Safety
/// They may be read.
unsafe fn pack<T: Copy>(from: Place<*const T>, [k, n]: [usize; 2], to: &mut [T], wide: usize) {
    for (j, panel) in (0..n).step_by(wide).zip(to.chunks_exact_mut(k * wide)) {
        let (columns, from) = (wide.min(n - j), from.from(0, j));
        // SAFETY: elements of the matrix; panels have k rows.
        unsafe {
            match columns {
                _ if from.column == 1 => rows_of(from, columns, panel, wide),
                6 if wide == 6 => turned::<T, 6>(from, panel),
                8 if wide == 8 => turned::<T, 8>(from, panel),
                _ => {
                    for (p, to) in panel.chunks_exact_mut(wide).enumerate() {
                        (0..columns).for_each(|c| to[c] = *from.from(p, c).at);
                    }
                }
            }
        }
    }
}

/// Copies rows whose elements lie side by side.
///
/// # Safety
/// They may be read.
unsafe fn rows_of<T: Copy>(from: Place<*const T>, n: usize, to: &mut [T], wide: usize) {
    for (p, to) in to.chunks_exact_mut(wide).enumerate() {
        // SAFETY: the caller's promise.
        to[..n].copy_from_slice(unsafe { std::slice::from_raw_parts(from.from(p, 0).at, n) });
    }
}

/// Copies rows of N elements that lie anywhere: columns that the compiler knows are read side by side.
///
/// # Safety
/// They may be read.
unsafe fn turned<T: Copy, const N: usize>(from: Place<*const T>, to: &mut [T]) {
    let columns: [*const T; N] = std::array::from_fn(|c| from.from(0, c).at);
    for (p, to) in to.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *to = columns.map(|column| unsafe { *column.wrapping_offset(p as isize * from.row) });
    }
}

#[cfg(test)]
mod tests;
