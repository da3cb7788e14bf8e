//! Tiles of a product: some rows by some registers, whose sums stay in registers.

use super::vector::Vector;

/// What becomes of the result's elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// They are the product.
    Set,
    /// The product is added to them.
    Add,
    /// The product is taken from them.
    Sub,
}

/// Where a matrix lies: its first element, and how far it is from there to the next row and to the next column.
pub(super) struct Place<P> {
    pub at: P,
    pub row: isize,
    pub column: isize,
}

impl<P: Copy> Clone for Place<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Copy> Copy for Place<P> {}

macro_rules! place {
    ($P:ty) => {
        impl<T> Place<$P> {
            /// From row i and column j on.
            #[inline(always)]
            pub fn from(self, i: usize, j: usize) -> Self {
                Place { at: self.at.wrapping_offset(i as isize * self.row + j as isize * self.column), ..self }
            }
        }
    };
}

place!(*const T);
place!(*mut T);

impl<P> Place<P> {
    /// Rows for columns.
    pub fn transposed(self) -> Self {
        Place { at: self.at, row: self.column, column: self.row }
    }
}

/// Factors and result.
pub(super) type Three<T> = (Place<*const T>, Place<*const T>, Place<*mut T>);

/// `c = a·b`, or what `mode` says, for so many rows of a, k columns of a, and columns of b, which lie side by side as those of c do. Every
/// element is one chain of `fma` from the first to the last of the k products.
///
/// # Safety
/// The processor has registers V; with these extents a and b may be read and c may be written, and no one else does.
#[inline(always)]
pub(super) unsafe fn strip<V: Vector>([m, k, n]: [usize; 3], (a, b, c): Three<V::T>, mode: Mode) {
    let mut i = 0;
    while i < m {
        let three = (a.from(i, 0), b, c.from(i, 0));
        // As many sums side by side as there are registers for: they do not wait for each other. One or two rows read much of b that lies
        // side by side. SAFETY: these rows are among the m.
        i += unsafe {
            match (V::REGISTERS, m - i) {
                (32, 8..) => columns::<V, 8, 3, 3, false>([k, n], three, mode),
                (32, 4..) => columns::<V, 4, 6, 2, false>([k, n], three, mode),
                (32, 2..) => columns::<V, 2, 6, 2, false>([k, n], three, mode),
                (32, _) => columns::<V, 1, 16, 4, false>([k, n], three, mode),
                (_, 6..) => columns::<V, 6, 2, 2, false>([k, n], three, mode),
                (_, 3..) => columns::<V, 3, 3, 3, false>([k, n], three, mode),
                _ => columns::<V, 1, 8, 2, false>([k, n], three, mode),
            }
        };
    }
}

/// As [`strip`], for as many rows as the largest tile has, whose elements lie column after column: offsets that the compiler knows.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn tall<V: Vector>([k, n]: [usize; 2], three: Three<V::T>, mode: Mode) {
    // SAFETY: the caller's duty.
    unsafe {
        match V::REGISTERS {
            32 => columns::<V, 8, 3, 3, true>([k, n], three, mode),
            _ => columns::<V, 6, 2, 2, true>([k, n], three, mode),
        };
    }
}

/// M rows (`PACKED`: column after column), in tiles of WIDE registers, then of LESS, then of one; how many that are.
///
/// # Safety
/// As [`strip`].
#[inline(always)]
unsafe fn columns<V: Vector, const M: usize, const WIDE: usize, const LESS: usize, const PACKED: bool>(
    [k, n]: [usize; 2],
    (a, b, c): Three<V::T>,
    mode: Mode,
) -> usize {
    let mut j = 0;
    macro_rules! tiles {
        ($N:ident) => {
            while j + $N * V::LEN <= n {
                // SAFETY: these columns are among the n.
                unsafe { tile::<V, M, $N, false, PACKED>(k, (a, b.from(0, j), c.from(0, j)), V::LEN, mode) };
                j += $N * V::LEN;
            }
        };
    }
    tiles!(WIDE);
    if LESS < WIDE {
        tiles!(LESS);
    }
    while j < n {
        // SAFETY: as above; the last columns may be fewer than a register has.
        unsafe { tile::<V, M, 1, true, PACKED>(k, (a, b.from(0, j), c.from(0, j)), V::LEN.min(n - j), mode) };
        j += V::LEN;
    }
    M
}

/// M rows (`PACKED`: column after column) by N registers; where the last is not whole (`PART`), so many of its elements.
///
/// # Safety
/// As [`strip`].
#[inline(always)]
unsafe fn tile<V: Vector, const M: usize, const N: usize, const PART: bool, const PACKED: bool>(
    k: usize,
    (a, b, c): Three<V::T>,
    last: usize,
    mode: Mode,
) {
    let (down, right) = if PACKED { (1, M as isize) } else { (a.row, a.column) };
    // SAFETY: all that is read and written lies within the extents of the caller.
    unsafe {
        let mut sums = [[V::zero(); N]; M];
        let mut row = b.at;
        let mut column = a.at;
        for _ in 0..k {
            let mut y = [V::zero(); N];
            for (j, y) in y.iter_mut().enumerate() {
                *y = read(row.wrapping_add(j * V::LEN), PART, last);
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let x = V::splat(*column.wrapping_offset(i as isize * down));
                for (sum, y) in sums.iter_mut().zip(y) {
                    *sum = x.fma(y, *sum);
                }
            }
            row = row.wrapping_offset(b.row);
            column = column.wrapping_offset(right);
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            let to = c.from(i, 0).at;
            if mode != Mode::Set {
                for (j, sum) in sums.iter_mut().enumerate() {
                    let old: V = read(to.wrapping_add(j * V::LEN), PART, last);
                    *sum = if mode == Mode::Add { old.add(*sum) } else { old.sub(*sum) };
                }
            }
            for (j, sum) in sums.iter().enumerate() {
                let to = to.wrapping_add(j * V::LEN);
                if PART { sum.store_first(to, last) } else { sum.store(to) }
            }
        }
    }
}

/// A register, or the first elements of one.
///
/// # Safety
/// The processor has registers V; the elements may be read.
#[inline(always)]
unsafe fn read<V: Vector>(at: *const V::T, part: bool, last: usize) -> V {
    // SAFETY: the caller's duty.
    unsafe { if part { V::load_first(at, last) } else { V::load(at) } }
}
