//! Ops that only move elements. Where each element of the result comes from is asked of the law itself: the op is evaluated on
//! arrays that hold the numbers of their elements.

use crate::ir::{EvalCx, Op};
use crate::plan::list::Run;
use crate::types::shape::count;
use crate::types::{Array, DType};

/// The largest array of a move that is planned element by element.
const MOVED: usize = 1 << 20;
/// So many runs at most of elements that are planned together.
const TOGETHER: usize = 1 << 12;

/// For each element of the result: which element of which moved input it is (inputs counted one after the other, from 1 on), or 0
/// for a zero that the op puts there. `None` where the op fails on these shapes.
pub(super) fn sources(op: &Op, ins: &[Source]) -> Option<(Vec<usize>, Array)> {
    let mut next = 1i64;
    let mut args: Vec<Array> = vec![];
    for source in ins {
        args.push(match source {
            Source::Moved(shape) => {
                let n = count(shape) as i64;
                next += n;
                Array::new(shape, (next - n..next).collect::<Vec<i64>>())
            }
            Source::Shape(shape) => Array::zeros(DType::I64, shape),
            Source::Given(array) => (*array).clone(),
        });
    }
    let out = op.evaluate(&mut EvalCx::new(), &mut args).ok()?.into_iter().next()?;
    Some((out.as_slice::<i64>().iter().map(|&i| i as usize).collect(), out))
}

/// The same as runs, for a result of this shape. Of large arrays the last axes are planned together, where the op moves their elements as one.
pub(super) fn runs(op: &Op, ins: &[Source], shape: &[usize]) -> Option<Vec<Run>> {
    let shapes: Vec<&[usize]> = ins.iter().filter_map(|s| if let Source::Moved(shape) = s { Some(*shape) } else { None }).collect();
    if count(shape) <= MOVED && shapes.iter().all(|s| count(s) <= MOVED) {
        let (from, _) = sources(op, ins).filter(|s| s.1.shape() == shape)?;
        return Some(in_runs(&from, &shapes));
    }
    (1..shape.len()).rev().find_map(|last| together(op, ins, &shapes, shape, last))
}

/// The runs of an op that moves the elements of so many last axes as one; `None` where it does not.
fn together(op: &Op, ins: &[Source], shapes: &[&[usize]], shape: &[usize], last: usize) -> Option<Vec<Run>> {
    let (_, whole) = shape.split_at(shape.len() - last);
    let size = count(whole);
    let fits = |s: &&&[usize]| s.ends_with(whole) && count(s) / size <= MOVED;
    if size == 0 || !shapes.iter().all(|s| fits(&s)) || count(shape) / size > MOVED {
        return None;
    }
    // Whether it does is seen where these axes have one element, and where they have two.
    let with = |n: usize, shape: &[usize]| [&shape[..shape.len() - last], &vec![n; last][..]].concat();
    let tried = |n: usize| {
        let shapes: Vec<Vec<usize>> = shapes.iter().map(|s| with(n, s)).collect();
        let mut own = shapes.iter();
        let ins: Vec<Source> = ins.iter().map(|s| s.with(&mut || own.next().expect("as many"))).collect();
        let (from, _) = sources(op, &ins).filter(|s| s.1.shape() == with(n, shape))?;
        Some((from, shapes))
    };
    let ((one, few), (two, _)) = (tried(1)?, tried(2)?);
    let each = 1 << last;
    let as_one = |(k, &from): (usize, &usize)| {
        let block = &two[each * k..each * (k + 1)];
        block.iter().enumerate().all(|(j, &at)| at == if from == 0 { 0 } else { (from - 1) * each + 1 + j })
    };
    if !one.iter().enumerate().all(as_one) {
        return None;
    }
    let few: Vec<&[usize]> = few.iter().map(Vec::as_slice).collect();
    let mut runs = vec![];
    for Run { input, from, to, n, step } in in_runs(&one, &few) {
        if step == 1 || n == 1 || input.is_none() {
            runs.push(Run { input, from: from * size, to: to * size, n: n * size, step: 1 });
            continue;
        }
        let apart = |k: usize| (from as isize + k as isize * step) as usize * size;
        runs.extend((0..n).map(|k| Run { input, from: apart(k), to: (to + k) * size, n: size, step: 1 }));
    }
    (runs.len() <= TOGETHER).then_some(runs)
}

/// Positions as runs.
fn in_runs(from: &[usize], shapes: &[&[usize]]) -> Vec<Run> {
    let starts: Vec<usize> = shapes.iter().scan(1, |next, shape| Some(std::mem::replace(next, *next + count(shape)))).collect();
    let mut runs: Vec<Run> = vec![];
    for (to, &position) in from.iter().enumerate() {
        let input = starts.iter().rposition(|&s| s <= position && position > 0);
        let at = input.map_or(0, |i| position - starts[i]);
        match runs.last_mut().filter(|run| run.input == input) {
            Some(run) if input.is_none() => run.n += 1,
            Some(run) if run.n == 1 => (run.n, run.step) = (2, at as isize - run.from as isize),
            Some(run) if run.from as isize + run.n as isize * run.step == at as isize => run.n += 1,
            _ => runs.push(Run { input, from: at, to, n: 1, step: 1 }),
        }
    }
    runs
}

/// An input as [`sources`] sees it.
pub(super) enum Source<'a> {
    /// Its elements are moved.
    Moved(&'a [usize]),
    /// Its shape alone matters.
    Shape(&'a [usize]),
    /// Its value tells what moves where.
    Given(&'a Array),
}

impl<'a> Source<'a> {
    /// The same, whose elements are moved with another shape.
    fn with<'b>(&self, shape: &mut dyn FnMut() -> &'b [usize]) -> Source<'b>
    where
        'a: 'b,
    {
        match self {
            Source::Moved(_) => Source::Moved(shape()),
            Source::Shape(shape) => Source::Shape(shape),
            Source::Given(array) => Source::Given(array),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::op::{Flip, Join};

    /// What runs move, element by element.
    fn carried_out(runs: &[Run], shapes: &[&[usize]], n: usize) -> Vec<usize> {
        let starts: Vec<usize> = shapes.iter().scan(1, |next, shape| Some(std::mem::replace(next, *next + count(shape)))).collect();
        let mut made = vec![0; n];
        for run in runs {
            for k in 0..run.n {
                made[run.to + k] = run.input.map_or(0, |i| starts[i] + (run.from as isize + k as isize * run.step) as usize);
            }
        }
        made
    }

    #[test]
    fn last_axes_that_are_moved_as_one_are_planned_together() {
        let (a, b) = ([5usize, 3, 4], [2usize, 3, 4]);
        let join = Op::Join(Join { axis: 0 });
        let ins = [Source::Moved(&a), Source::Moved(&b)];
        let law = sources(&join, &ins).expect("fits").0;
        for last in [1, 2] {
            let runs = together(&join, &ins, &[&a, &b], &[7, 3, 4], last).expect("moved as one");
            assert_eq!(carried_out(&runs, &[&a, &b], 84), law);
        }
        let ins = [Source::Moved(&a)];
        for (axis, most) in [(0, 2), (1, 1), (2, 0)] {
            let flip = Op::Flip(Flip { axis });
            let law = sources(&flip, &ins).expect("fits").0;
            for last in [1, 2] {
                let runs = together(&flip, &ins, &[&a], &a, last);
                assert_eq!(runs.is_some(), last <= most, "axis {axis}, {last} axes");
                assert!(runs.is_none_or(|runs| carried_out(&runs, &[&a], 60) == law), "axis {axis}, {last} axes");
            }
        }
    }
}
