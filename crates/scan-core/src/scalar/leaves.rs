//! The last few rows of factorisations, which are not halved any more: squares whose rows are whole vectors.

/// Rows of a leaf at most.
pub const LEAF: usize = 16;

/// Rows of a leaf as they are worked on.
type Square = [[f64; LEAF]; LEAF];

/// Rows `lo ..` of the upper triangle u with `uᵀ·u = a`, of which there are m, in rows of so many elements; false where a is not positive
/// definite.
#[inline(always)]
pub(super) fn cholesky_leaf_of<C>(_: &C, u: &mut [f64], width: usize, lo: usize, m: usize) -> bool {
    let mut square: Square = [[0.0; LEAF]; LEAF];
    for (i, row) in square.iter_mut().enumerate().take(m) {
        let from = (lo + i) * width + lo;
        row[i..m].copy_from_slice(&u[from + i..from + m]);
    }
    for j in 0..m {
        let rest = square[j][j];
        // NaN is not positive.
        if rest.is_nan() || rest <= 0.0 {
            return false;
        }
        let pivot = rest.sqrt();
        square[j].iter_mut().for_each(|x| *x /= pivot);
        square[j][j] = pivot;
        let row = square[j];
        for i in j + 1..m {
            let factor = row[i];
            square[i].iter_mut().zip(&row).for_each(|(x, r)| *x -= factor * r);
        }
    }
    for (i, row) in square.iter().enumerate().take(m) {
        let from = (lo + i) * width + lo;
        u[from + i..from + m].copy_from_slice(&row[i..m]);
    }
    true
}

/// Overwrites m rows of right sides with the solution of a triangular system, whose square has rows of [`LEAF`] elements: from the first row on
/// where it is lower, from the last one on where it is upper. Right sides are the columns `first ..` of rows of so many elements; with `unit`
/// the diagonal counts as one.
#[inline(always)]
pub(super) fn substitute_leaf_of<C>(
    _: &C,
    t: &[f64],
    m: usize,
    (upper, unit): (bool, bool),
    b: &mut [f64],
    (width, first, n): (usize, usize, usize),
) {
    for step in 0..m {
        let i = if upper { m - 1 - step } else { step };
        let (above, rest) = b.split_at_mut(i * width);
        let (row, below) = rest.split_at_mut(width);
        let row = &mut row[first..first + n];
        let factors = &t[i * LEAF..][..LEAF];
        if upper {
            for (from, &factor) in below.chunks_exact(width).zip(&factors[i + 1..m]) {
                row.iter_mut().zip(&from[first..first + n]).for_each(|(x, r)| *x -= factor * r);
            }
        } else {
            for (from, &factor) in above.chunks_exact(width).zip(&factors[..i]) {
                row.iter_mut().zip(&from[first..first + n]).for_each(|(x, r)| *x -= factor * r);
            }
        }
        if !unit {
            let pivot = factors[i];
            row.iter_mut().for_each(|x| *x /= pivot);
        }
    }
}
