//! Which operands of a nest have elements in common.

use super::piece::Piece;
use crate::backend::gpu::launch::ahead;
use crate::kernel::nest::Use;
use crate::kernel::{MemId, Nest};
use crate::plan::StepList;
use crate::plan::list::{At, Place};
use smallvec::SmallVec;
use std::ops::Range;

/// So many sums are tried before two operands count as such that have elements in common.
const TRIED: usize = 256;

/// The operands of a nest that nothing writes which it writes.
pub fn steady(nest: &Nest, item: &Piece, plan: &StepList) -> u64 {
    let places: Vec<&Place> = item.ins.iter().chain(&item.outs).collect();
    let written: Vec<usize> = (0..places.len()).filter(|&k| nest.writes(k)).collect();
    ahead(&nest.kernel, |mem| {
        let k = mem.0 as usize;
        written.iter().all(|&w| w != k && !near((nest, w, places[w]), (nest, k, places[k]), plan))
    })
}

/// The bytes that a nest touches of an operand, from its begin on, and whether these are the elements of its places and no others.
pub fn touched(nest: &Nest, operand: usize) -> (Range<isize>, bool) {
    let (low, high) = nest.reach(operand, Use::of(&nest.kernel)[operand]);
    let size = nest.kernel.mems[MemId(operand as u32)].dtype.size() as isize;
    let Some(mut walk) = walk(nest, operand) else { return (low..high, false) };
    walk.sort_unstable_by_key(|&(by, _)| by.abs());
    let packed = walk.iter().try_fold(size, |all, &(by, n)| (by.abs() == all).then_some(all * n as isize));
    (low..high, nest.places() > 0 && packed == Some(high - low))
}

/// Whether what a nest writes meets another operand in other ways than element on element.
pub fn meets(nest: &Nest, item: &Piece, plan: &StepList) -> bool {
    let places: Vec<&Place> = item.ins.iter().chain(&item.outs).collect();
    let written = (0..places.len()).filter(|&k| nest.writes(k));
    let pairs = written.flat_map(|w| (0..places.len()).filter(move |&k| k != w).map(move |k| (w, k)));
    let mut close = pairs.filter(|&(w, k)| near((nest, w, places[w]), (nest, k, places[k]), plan));
    close.any(|(w, k)| {
        let lanes = |k: usize| nest.kernel.mems[MemId(k as u32)].lane;
        let same = places[w].at == places[k].at && places[w].first == places[k].first;
        !same || nest.strides[w] != nest.strides[k] || lanes(w) != lanes(k)
    })
}

/// Whether two operands of a nest may have an element in common.
fn near(a: (&Nest, usize, &Place), b: (&Nest, usize, &Place), plan: &StepList) -> bool {
    let begin = |at: At| if let At::Slot(slot) = at { plan.temporaries[slot].at } else { 0 };
    let base = |place: &Place| (begin(place.at) + place.first * place.dtype.size()) as isize;
    let (of_a, of_b) = (base(a.2), base(b.2));
    let meet = || {
        let range = |(nest, k, _): (&Nest, usize, &Place), base: isize| {
            let (low, high) = nest.reach(k, Use::of(&nest.kernel)[k]);
            (base + low, base + high)
        };
        let (a_range, b_range) = (range(a, of_a), range(b, of_b));
        let overlap = a_range.0 < b_range.1 && b_range.0 < a_range.1;
        overlap && (a.2.dtype.size() != b.2.dtype.size() || meet_at(walk(a.0, a.1), walk(b.0, b.1), of_b - of_a))
    };
    match (a.2.at, b.2.at) {
        (At::Slot(_), At::Slot(_)) => meet(),
        (At::Row(s, i), At::Row(t, j)) => s == t && (plan.in_place[s.0 as usize] || i == j) && meet(),
        _ => false,
    }
}

/// Bytes from one element of an operand to the next, and how many there are, per way in which it moves; `None` where a kernel reads anywhere.
fn walk(nest: &Nest, operand: usize) -> Option<SmallVec<[(isize, usize); 4]>> {
    let mem = &nest.kernel.mems[MemId(operand as u32)];
    let own = &nest.strides[operand];
    if mem.table > 1 || nest.kernel.stores.iter().any(|s| s.mem.0 as usize == operand && s.at.is_some()) {
        return None;
    }
    let lanes = if mem.lane.varies() { mem.lane.elements() * mem.dtype.size() as isize } else { 0 };
    let steps = if Use::of(&nest.kernel)[operand] == Use::Carried { 0 } else { own.step };
    let outer = own.outer.iter().copied().zip(nest.outer.iter().copied());
    Some([(lanes, nest.lanes), (steps, nest.steps)].into_iter().chain(outer).filter(|&(by, n)| by != 0 && n > 1).collect())
}

/// Whether one walk comes where another one comes that begins so many bytes behind it.
fn meet_at(a: Option<SmallVec<[(isize, usize); 4]>>, b: Option<SmallVec<[(isize, usize); 4]>>, behind: isize) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return true };
    // The bytes of a place of the one less those of a place of the other: for each distance how often it counts, at least and at most.
    let mut terms: SmallVec<[(isize, isize, isize); 8]> = SmallVec::new();
    let of_a = a.iter().map(|&(by, n)| (by, 0, n as isize - 1));
    for (by, least, most) in of_a.chain(b.iter().map(|&(by, n)| (by, 1 - n as isize, 0))) {
        let (by, least, most) = if by < 0 { (-by, -most, -least) } else { (by, least, most) };
        match terms.iter_mut().find(|t| t.0 == by) {
            Some(t) => (t.1, t.2) = (t.1 + least, t.2 + most),
            None => terms.push((by, least, most)),
        }
    }
    terms.sort_unstable_by_key(|t| std::cmp::Reverse(t.0));
    let mut left = TRIED;
    adds_up(&terms, behind, &mut left)
}

/// Whether terms add up to a sum, the largest first; true as well once too much was tried.
fn adds_up(terms: &[(isize, isize, isize)], sum: isize, left: &mut usize) -> bool {
    let Some((&(by, least, most), rest)) = terms.split_first() else { return sum == 0 };
    let low: isize = rest.iter().map(|t| t.0 * t.1).sum();
    let high: isize = rest.iter().map(|t| t.0 * t.2).sum();
    let first = least.max((sum - high).div_euclid(by) + isize::from((sum - high).rem_euclid(by) != 0));
    let last = most.min((sum - low).div_euclid(by));
    (first..=last).any(|times| {
        *left = left.saturating_sub(1);
        *left == 0 || adds_up(rest, sum - times * by, left)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_meet_where_they_have_a_byte_in_common() {
        let mut state = 7u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let mut met = [0; 2];
        for _ in 0..3000 {
            let mut walk = || -> SmallVec<[(isize, usize); 4]> {
                (0..random(4)).map(|_| (4 * (random(13) as isize - 6), 1 + random(5) as usize)).filter(|w| w.0 != 0 && w.1 > 1).collect()
            };
            let (a, b) = (walk(), walk());
            let places = |walk: &[(isize, usize)]| {
                walk.iter().fold(vec![0], |all, &(by, n)| all.iter().flat_map(|at| (0..n).map(move |k| at + by * k as isize)).collect())
            };
            let behind = 4 * (random(25) as isize - 12);
            let meet = places(&a).iter().any(|x| places(&b).iter().any(|y| x - y == behind));
            let found = meet_at(Some(a.clone()), Some(b.clone()), behind);
            assert!(found || !meet, "{a:?} {b:?} {behind}");
            // What is far more than a few sums may count as a meeting.
            assert!(found == meet || a.len() + b.len() > 4, "{a:?} {b:?} {behind}");
            met[usize::from(meet)] += 1;
        }
        assert!(met[0] > 500 && met[1] > 500, "{met:?}");
        // Eight partial sums of each of many rows, those of four rows beside each other.
        let rows = || Some(SmallVec::from_slice(&[(4, 8), (128, 500)]));
        assert!(!meet_at(rows(), rows(), 32) && meet_at(rows(), rows(), 128) && meet_at(rows(), None, 32));
    }
}
