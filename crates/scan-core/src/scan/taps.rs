//! Theano's taps: the only place with negative numbers.

use crate::bail;
use crate::base::Result;

/// How one tap of a sequence is cut: rows `skip .. len − drop`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Rows left out at the start.
    pub skip: usize,
    /// Rows left out at the end.
    pub drop: usize,
}

/// The cuts of a sequence's taps, in the order listed. Tap k at step t is row `t + k`, shifted so that the smallest
/// negative tap reads row 0 at step 0; tap 0 counts as present.
///
/// # Errors
/// `E0116` without taps.
pub fn sequence_cuts(taps: &[i64], name: &str) -> Result<Vec<Cut>> {
    if taps.is_empty() {
        bail!(Scan, "E0116", "sequence `{name}` has an empty list of taps");
    }
    let low = taps.iter().copied().min().unwrap_or(0).min(0);
    let high = taps.iter().copied().max().unwrap_or(0).max(0);
    Ok(taps.iter().map(|&k| Cut { skip: (k - low) as usize, drop: (high - k) as usize }).collect())
}

/// The span of a state with these taps and the offsets that it reads, in the order listed.
///
/// # Errors
/// `E0112` for a tap that is not negative, `E0116` for one that is listed twice.
pub fn state_offsets(taps: &[i64], name: &str) -> Result<(usize, Vec<usize>)> {
    if let Some(k) = taps.iter().find(|&&k| k >= 0) {
        bail!(Scan, "E0112", "state `{name}` has tap {k}: a state is read from earlier steps only, so its taps are negative");
    }
    if let Some(k) = taps.iter().enumerate().find_map(|(i, k)| taps[..i].contains(k).then_some(k)) {
        bail!(Scan, "E0116", "state `{name}` lists tap {k} twice");
    }
    let span = taps.iter().map(|k| k.unsigned_abs() as usize).max().unwrap_or(0);
    Ok((span, taps.iter().map(|k| span - k.unsigned_abs() as usize).collect()))
}

/// The name of what the step sees: `x[t]`, `x[t-1]`, `x[t+2]`.
pub fn slice_name(name: &str, tap: i64) -> String {
    match tap {
        0 => format!("{name}[t]"),
        k => format!("{name}[t{k:+}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_shift_by_the_smallest_negative_tap() {
        let cut = |skip, drop| Cut { skip, drop };
        assert_eq!(sequence_cuts(&[-4, 0], "u").unwrap(), [cut(0, 4), cut(4, 0)]);
        assert_eq!(sequence_cuts(&[-3, 2, -1], "u").unwrap(), [cut(0, 5), cut(5, 0), cut(2, 3)]);
        assert_eq!(sequence_cuts(&[3], "u").unwrap(), [cut(3, 0)]);
        assert_eq!(sequence_cuts(&[-2], "u").unwrap(), [cut(0, 2)]);
        assert!(sequence_cuts(&[], "u").is_err());
    }

    #[test]
    fn offsets_count_from_the_oldest_row() {
        assert_eq!(state_offsets(&[-3, -5], "x").unwrap(), (5, vec![2, 0]));
        assert_eq!(state_offsets(&[-1], "x").unwrap(), (1, vec![0]));
        assert_eq!(state_offsets(&[0], "x").unwrap_err().code, "E0112");
        assert_eq!(state_offsets(&[-1, -1], "x").unwrap_err().code, "E0116");
    }
}
