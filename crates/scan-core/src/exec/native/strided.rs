//! Moves of many short runs at equal distances, the rows of boxes: found once, copied without looking at each.
//!
//! ```text
//! join along the last axis        x x x | 0      run of 3 to 0; run of 1 to 3; run of 3 to 4; run of 1 to 7 …
//!                                 x x x | 0      becomes   rows of 3, 4 apart; rows of 1, 4 apart
//! ```

use super::moves::moved;
use crate::backend::cpu::{Operand, Spot, Steps, copy_rows};
use crate::plan::list::Run;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// Runs are copied so where there are so many of each kind at least: fewer are looked at one by one.
const RUNS: usize = 8;

/// Runs of one length from one input, at equal distances there and in the result.
pub struct Strided {
    first: Run,
    times: usize,
    /// Elements from one run to the next: in the input, and in the result.
    apart: [isize; 2],
}

impl Strided {
    /// Those that runs are; none where they are many kinds.
    pub fn of(runs: &[Run]) -> Vec<Strided> {
        let mut found: Vec<Strided> = vec![];
        let mut last: FxHashMap<(Option<usize>, usize, isize), usize> = FxHashMap::default();
        for run in runs {
            match last.entry((run.input, run.n, run.step)) {
                Entry::Occupied(at) if found[*at.get()].takes(run) => {}
                entry => {
                    entry.insert_entry(found.len());
                    found.push(Strided { first: *run, times: 1, apart: [0; 2] });
                }
            }
        }
        if found.len() * RUNS <= runs.len() { found } else { vec![] }
    }
    /// Adds the next run, where it lies as far from the last one as that from the one before.
    fn takes(&mut self, run: &Run) -> bool {
        let times = self.times as isize;
        let way = [run.from as isize - self.first.from as isize, run.to as isize - self.first.to as isize];
        if times == 1 {
            self.apart = way;
        }
        // Zeros come from nowhere.
        let from = self.first.input.is_none() || way[0] == times * self.apart[0];
        let fits = from && way[1] == times * self.apart[1] && self.apart[1] > 0;
        self.times += usize::from(fits);
        fits
    }
    /// Run k.
    fn run(&self, k: usize) -> Run {
        let at = |first: usize, apart: isize| (first as isize + k as isize * apart) as usize;
        let from = if self.first.input.is_some() { at(self.first.from, self.apart[0]) } else { 0 };
        Run { from, to: at(self.first.to, self.apart[1]), ..self.first }
    }
    /// Copies them; the last operand is the result, of elements of such a size.
    pub fn copy(&self, spots: &[Spot], k: &Steps, size: usize) {
        let Run { input: Some(i), from, to, n, step: 1 } = self.first else {
            return (0..self.times).for_each(|at| moved(&self.run(at), spots, k, size));
        };
        let whole = [spots[i].at(k), spots[spots.len() - 1].at(k)];
        let [from, to] = [(whole[0], from), (whole[1], to)].map(|(part, first)| Operand { offset: part.offset + first * size, ..part });
        copy_rows(&from, &to, n * size, self.times, self.apart.map(|apart| apart * size as isize));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(input: Option<usize>, from: usize, to: usize, n: usize) -> Run {
        Run { input, from, to, n, step: 1 }
    }

    /// The runs that these are, in the order of where they go.
    fn again(all: &[Strided]) -> Vec<Run> {
        let mut runs: Vec<Run> = all.iter().flat_map(|s| (0..s.times).map(|k| s.run(k))).collect();
        runs.sort_by_key(|run| run.to);
        runs
    }

    #[test]
    fn strided_runs_are_all_runs_once() {
        let padded: Vec<Run> = (0..12).flat_map(|r| [run(Some(0), 5 * r, 7 * r, 5), run(None, 0, 7 * r + 5, 2)]).collect();
        let found = Strided::of(&padded);
        assert_eq!((found.len(), again(&found)), (2, padded));
        let back: Vec<Run> = (0..20).map(|r| run(Some(0), 3 * (19 - r), 3 * r, 3)).collect();
        let found = Strided::of(&back);
        assert_eq!((found.len(), again(&found)), (1, back));
        // A gap in the middle: two boxes.
        let gap: Vec<Run> = (0..40).map(|r| run(Some(0), 4 * r + usize::from(r > 19), 5 * r, 4)).collect();
        let found = Strided::of(&gap);
        assert_eq!((found.len(), again(&found)), (2, gap));
    }

    #[test]
    fn few_runs_of_many_kinds_are_not_strided() {
        assert!(Strided::of(&(1..20).map(|n| run(Some(0), n * n, 20 * n, n)).collect::<Vec<_>>()).is_empty());
        assert!(Strided::of(&(0..RUNS - 1).map(|r| run(Some(0), 2 * r, 3 * r, 2)).collect::<Vec<_>>()).is_empty());
    }
}
