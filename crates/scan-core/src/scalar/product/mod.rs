//! Products of matrices of floats, by one law whatever the route: an element of `a·b` is the sum of blocks of [`DEPTH`] products, from the
//! first block to the last; a block is one chain `fma(aᵢₚ, bₚⱼ, … fma(aᵢ₀, bₚ₀, 0))`, from its first product to its last. So row i of a product is
//! the product of row i, whatever the number of rows, the registers of the processor and the parts that the product is made of.

mod small;
mod tile;
mod vector;

use super::lanes::fused;
#[cfg(target_arch = "x86_64")]
use super::slices::{Width, width};
use crate::types::Element;
use crate::types::buffer::Buffer;
pub(crate) use small::{Stack, is_small, small_products, small_products_f32};
pub(crate) use tile::Mode;
use tile::{Place, Three, strip};
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
                    #[target_feature(enable = "avx2,fma")]
                    unsafe fn wide(extents: [usize; 3], three: Three<$t>, mode: Mode) {
                        // SAFETY: the caller's duty.
                        unsafe { strip::<$wide>(extents, three, mode) }
                    }
                    match width() {
                        Width::Avx512 => return Kind { strip: widest, rows: 8, columns: 3 * <$widest>::LEN },
                        Width::Avx2 => return Kind { strip: wide, rows: 6, columns: 2 * <$wide>::LEN },
                        Width::Plain => {}
                    }
                }
                let strip = if fused() { strip::<Array<$t, true>> } else { strip::<Array<$t, false>> };
                Kind { strip, rows: 6, columns: 2 * Array::<$t, true>::LEN }
            }
        }
    };
}

/// How strips are multiplied in this process.
struct Kind<T> {
    /// The function, for registers that the processor has.
    strip: unsafe fn([usize; 3], Three<T>, Mode),
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
/// From so many rows on that part is first brought into the order in which it is read, where it lies scattered over pages. Fewer rows are
/// done before that has paid.
const MANY: usize = 256;
/// Bytes from row to row that scatter a matrix.
const FAR: usize = 2048;

/// The product by parts of the right factor: blocks of [`DEPTH`] of its rows, cut into as many columns as stay in the cache.
///
/// # Safety
/// The processor has the registers; with these extents a and b may be read and c may be written, and no one else does.
unsafe fn product_of<T: Float>(kind: &Kind<T>, [m, k, n]: [usize; 3], (a, b, c): Three<T>, mode: Mode) {
    let packs = k > 0 && (b.column != 1 || m >= MANY && b.row.unsigned_abs() * size_of::<T>() >= FAR);
    let wide = kind.columns;
    let most = if m > kind.rows || packs { PART / (DEPTH * size_of::<T>()) / wide * wide } else { n };
    let mut packed = packs.then(|| {
        let depth = DEPTH.min(k);
        (Buffer::<T>::dirty(depth * most.min(n.next_multiple_of(wide))), Buffer::<T>::dirty(depth * kind.rows))
    });
    for j in (0..n).step_by(most) {
        let columns = most.min(n - j);
        for p in (0..k.max(1)).step_by(DEPTH) {
            let depth = DEPTH.min(k - p);
            let mode = if p == 0 || mode == Mode::Sub { mode } else { Mode::Add };
            let (a, b, c) = (a.from(0, p), b.from(p, j), c.from(0, j));
            // SAFETY: this part lies within the extents.
            match &mut packed {
                Some((right, left)) => unsafe {
                    panels(kind, [m, depth, columns], (a, b, c), (right.as_mut_slice(), left.as_mut_slice()), mode);
                },
                None => unsafe { (kind.strip)([m, depth, columns], (a, b, c), mode) },
            }
        }
    }
}

/// As [`strip`], with the right factor brought into panels first: the columns of a tile, row after row. So are the rows of a tile of the left
/// factor, column after column: where they lie as far apart as pages do, they would take each other's lines of the cache.
///
/// # Safety
/// As there.
unsafe fn panels<T: Float>(kind: &Kind<T>, [m, k, n]: [usize; 3], (a, b, c): Three<T>, (right, left): (&mut [T], &mut [T]), mode: Mode) {
    let wide = kind.columns;
    let panels = || (0..n).step_by(wide).map(|j| (j, wide.min(n - j)));
    for ((j, columns), panel) in panels().zip(right.chunks_exact_mut(k * wide)) {
        // SAFETY: these columns lie within the extents.
        unsafe { pack(b.from(0, j), [k, columns], panel, wide) };
    }
    for i in (0..m).step_by(kind.rows) {
        let rows = kind.rows.min(m - i);
        // SAFETY: these rows lie within the extents.
        unsafe { pack(a.from(i, 0).transposed(), [k, rows], left, rows) };
        let a = Place { at: left.as_ptr(), row: 1, column: rows as isize };
        for ((j, columns), panel) in panels().zip(right.chunks_exact(k * wide)) {
            let b = Place { at: panel.as_ptr(), row: wide as isize, column: 1 };
            // SAFETY: these rows and columns lie within the extents; the panels have k rows and columns.
            unsafe { (kind.strip)([rows, k, columns], (a, b, c.from(i, j)), mode) };
        }
    }
}

/// Copies k rows of n elements to rows that are `wide` apart.
///
/// # Safety
/// They may be read.
unsafe fn pack<T: Copy>(from: Place<*const T>, [k, n]: [usize; 2], to: &mut [T], wide: usize) {
    if from.column == 1 {
        for (p, to) in to.chunks_exact_mut(wide).enumerate().take(k) {
            // SAFETY: row p has n elements side by side.
            to[..n].copy_from_slice(unsafe { std::slice::from_raw_parts(from.from(p, 0).at, n) });
        }
        return;
    }
    for j in 0..n {
        for (p, to) in to.chunks_exact_mut(wide).enumerate().take(k) {
            // SAFETY: an element of the matrix.
            to[j] = unsafe { *from.from(p, j).at };
        }
    }
}

#[cfg(test)]
mod tests;
