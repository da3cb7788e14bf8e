//! Many systems of few linear equations, a system per lane. Each is solved in the same order by itself and beside others, which is that of the
//! factorisation by rows of larger ones: the bits are the same.
#![allow(clippy::needless_range_loop)] // Rows, columns and lanes are named as in the formulas.

use super::product::Stack;

/// Unknowns of a small system at most.
pub const SMALL: usize = 8;

/// Systems that are solved side by side.
const BESIDE: usize = 8;

/// A square matrix of each lane.
type Rows<const N: usize, const L: usize> = [[[f64; L]; N]; N];

/// Solves systems of n unknowns, at most [`SMALL`], for k right sides each, by elimination with partial pivoting; the first that is singular
/// ends it, and is returned. Extents are the number of systems, n and k.
#[inline(always)]
pub(super) fn small_systems_of<C>(_: &C, [count, n, k]: [usize; 3], a: Stack<f64>, b: Stack<f64>, x: &mut [f64]) -> Option<usize> {
    match n {
        1 => all::<1>(count, k, a, b, x),
        2 => all::<2>(count, k, a, b, x),
        3 => all::<3>(count, k, a, b, x),
        4 => all::<4>(count, k, a, b, x),
        5 => all::<5>(count, k, a, b, x),
        6 => all::<6>(count, k, a, b, x),
        7 => all::<7>(count, k, a, b, x),
        _ => all::<SMALL>(count, k, a, b, x),
    }
}

#[inline(always)]
fn all<const N: usize>(count: usize, k: usize, a: Stack<f64>, b: Stack<f64>, x: &mut [f64]) -> Option<usize> {
    let mut at = 0;
    while at < count {
        let singular = match count - at {
            // Lanes that are left over hold the last system once more.
            rest if rest >= BESIDE / 2 => beside::<N, BESIDE>(k, a, b, x, at, count - 1),
            _ => beside::<N, 1>(k, a, b, x, at, count - 1),
        };
        if singular.is_some() {
            return singular;
        }
        at += if count - at >= BESIDE / 2 { BESIDE } else { 1 };
    }
    None
}

/// The systems from one on, up to the last.
#[inline(always)]
fn beside<const N: usize, const L: usize>(k: usize, a: Stack<f64>, b: Stack<f64>, x: &mut [f64], at: usize, last: usize) -> Option<usize> {
    let mut m: Rows<N, L> = [[[0.0; L]; N]; N];
    for l in 0..L {
        let from = a.get((at + l).min(last), N * N);
        for i in 0..N {
            for j in 0..N {
                m[i][j][l] = from[i * N + j];
            }
        }
    }
    let swaps = factorise(&mut m);
    for l in 0..L {
        if (0..N).any(|i| m[i][i][l] == 0.0) {
            return Some((at + l).min(last));
        }
    }
    let b = |l: usize| b.get((at + l).min(last), N * k);
    if L == 1 && k >= BESIDE / 2 {
        for first in (0..k).step_by(BESIDE) {
            let y = solved::<N, L, BESIDE>(&m, &swaps, k, |l| (b(0), (first + l).min(k - 1)));
            (0..BESIDE.min(k - first)).for_each(|l| stored(&y, l, (at, first + l), k, x));
        }
        return None;
    }
    for column in 0..k {
        let y = solved::<N, L, L>(&m, &swaps, k, |l| (b(l), column));
        (0..L.min(last + 1 - at)).for_each(|l| stored(&y, l, (at + l, column), k, x));
    }
    None
}

/// The solutions for a right side per lane: a column of rows of k.
#[inline(always)]
fn solved<'a, const N: usize, const W: usize, const L: usize>(
    m: &Rows<N, W>,
    swaps: &[[usize; W]; N],
    k: usize,
    side: impl Fn(usize) -> (&'a [f64], usize),
) -> [[f64; L]; N] {
    let mut y = [[0.0; L]; N];
    for l in 0..L {
        let (rows, column) = side(l);
        for i in 0..N {
            y[i][l] = rows[i * k + column];
        }
    }
    substitute(m, swaps, &mut y);
    y
}

/// Writes a lane where it belongs: to a column of a system.
#[inline(always)]
fn stored<const N: usize, const L: usize>(y: &[[f64; L]; N], l: usize, (system, column): (usize, usize), k: usize, x: &mut [f64]) {
    for i in 0..N {
        x[(system * N + i) * k + column] = y[i][l];
    }
}

/// `P·m = L·U`, with L's factors below the diagonal; with which row each row was swapped, in each lane.
#[inline(always)]
fn factorise<const N: usize, const L: usize>(m: &mut Rows<N, L>) -> [[usize; L]; N] {
    let mut swaps = [[0; L]; N];
    for k in 0..N {
        let best = largest(m, k);
        for row in k + 1..N {
            if best.contains(&row) {
                let (above, below) = m.split_at_mut(row);
                for j in 0..N {
                    swap(&mut above[k][j], &mut below[0][j], row, &best);
                }
            }
        }
        swaps[k] = best;
        for i in k + 1..N {
            let (above, below) = m.split_at_mut(i);
            let (pivot, to) = (&above[k], &mut below[0]);
            for l in 0..L {
                to[k][l] /= pivot[k][l];
            }
            for j in k + 1..N {
                for l in 0..L {
                    to[j][l] -= to[k][l] * pivot[j][l];
                }
            }
        }
    }
    swaps
}

/// The row with the largest element of column k, from the diagonal down: the first of several.
#[inline(always)]
fn largest<const N: usize, const L: usize>(m: &Rows<N, L>, k: usize) -> [usize; L] {
    let (mut best, mut size) = ([k; L], m[k][k].map(f64::abs));
    for row in k + 1..N {
        for l in 0..L {
            let new = m[row][k][l].abs();
            let larger = new > size[l];
            best[l] = if larger { row } else { best[l] };
            size[l] = if larger { new } else { size[l] };
        }
    }
    best
}

/// Swaps elements in the lanes that ask for a row.
#[inline(always)]
fn swap<const L: usize>(x: &mut [f64; L], y: &mut [f64; L], row: usize, asked: &[usize; L]) {
    for l in 0..L {
        let (a, b, swapped) = (x[l], y[l], asked[l] == row);
        x[l] = if swapped { b } else { a };
        y[l] = if swapped { a } else { b };
    }
}

/// Overwrites right sides with the solutions: of a system per lane, or of one for all lanes.
#[inline(always)]
fn substitute<const N: usize, const W: usize, const L: usize>(m: &Rows<N, W>, swaps: &[[usize; W]; N], y: &mut [[f64; L]; N]) {
    for k in 0..N {
        let asked: [usize; L] = std::array::from_fn(|l| swaps[k][l.min(W - 1)]);
        for row in k + 1..N {
            let (above, below) = y.split_at_mut(row);
            swap(&mut above[k], &mut below[0], row, &asked);
        }
    }
    for i in 0..N {
        for j in 0..i {
            take(m, y, i, j);
        }
    }
    for i in (0..N).rev() {
        for j in i + 1..N {
            take(m, y, i, j);
        }
        for l in 0..L {
            y[i][l] /= m[i][i][l.min(W - 1)];
        }
    }
}

/// Takes what row j of the solution contributes from row i.
#[inline(always)]
fn take<const N: usize, const W: usize, const L: usize>(m: &Rows<N, W>, y: &mut [[f64; L]; N], i: usize, j: usize) {
    for l in 0..L {
        y[i][l] -= m[i][j][l.min(W - 1)] * y[j][l];
    }
}
