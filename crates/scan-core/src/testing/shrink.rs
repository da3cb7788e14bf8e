//! Smaller programs with the same fault.

use super::check::Fault;
use super::nd::{Kind, Nd};
use super::program::*;

/// Tries simpler programs, one change after the other, as long as `fault` finds one like `first`.
pub fn shrink(program: &Program, first: &Fault, fault: &dyn Fn(&Program) -> Option<Fault>) -> Program {
    let same = |f: &Fault| f.stage == first.stage && (f.stage != "panic" || f.text == first.text);
    let mut best = program.clone();
    let mut left = 400;
    loop {
        let before = size(&best);
        for change in changes(&best) {
            let mut next = best.clone();
            if left == 0 || !change.apply(&mut next) {
                continue;
            }
            left -= 1;
            if fault(&next).as_ref().is_some_and(same) {
                best = next;
            }
        }
        if left == 0 || size(&best) == before {
            return best;
        }
    }
}

fn size(program: &Program) -> usize {
    let extras = program.items.iter().map(|i| if let Expr::Loop(l) = &i.expr { weight(l) } else { 0 });
    program.live().into_iter().filter(|l| *l).count() + extras.sum::<usize>() + program.outputs.len() + program.updates.len()
}

fn weight(l: &Loop) -> usize {
    l.updates.len() + usize::from(l.until.is_some()) + usize::from(l.backwards) + usize::from(l.truncate.is_some())
}

enum Change {
    DropOutput(Id),
    DropUpdates,
    Fix(Id),
    NoUntil(Id),
    Forwards(Id),
    NoTruncation(Id),
    AllKnown,
}

fn changes(program: &Program) -> Vec<Change> {
    let mut all = vec![Change::DropUpdates, Change::AllKnown];
    all.extend(program.outputs.iter().map(|&id| Change::DropOutput(id)));
    let live = program.live();
    for id in (0..program.items.len()).rev().filter(|&id| live[id]) {
        match &program.items[id].expr {
            Expr::Loop(_) => all.extend([Change::NoUntil(id), Change::Forwards(id), Change::NoTruncation(id)]),
            Expr::Const(_) | Expr::Slot | Expr::Input(_) | Expr::Shared(_) => {}
            _ => all.push(Change::Fix(id)),
        }
    }
    all
}

impl Change {
    /// Makes the change; false where it changes nothing.
    fn apply(&self, program: &mut Program) -> bool {
        match self {
            Change::DropOutput(id) => {
                let n = program.outputs.len();
                program.outputs.retain(|o| o != id);
                program.outputs.len() < n && !program.outputs.is_empty()
            }
            Change::DropUpdates => !std::mem::take(&mut program.updates).is_empty(),
            Change::AllKnown => {
                let symbolic = program.inputs.iter().any(|i| i.known.iter().any(|k| *k != Known::Number));
                program.inputs.iter_mut().for_each(|i| i.known.fill(Known::Number));
                symbolic
            }
            Change::Fix(id) => {
                let live = program.live()[*id];
                let item = &mut program.items[*id];
                if !live || item.dynamic {
                    return false;
                }
                let value = Nd::by(item.kind, &item.shape, |at| {
                    if item.kind == Kind::Float { 0.4 + 0.1 * at.iter().sum::<usize>() as f64 } else { 1.0 }
                });
                item.expr = Expr::Const(value);
                true
            }
            Change::NoUntil(id) => change_loop(program, *id, |l| l.until.take().is_some()),
            Change::Forwards(id) => change_loop(program, *id, |l| std::mem::take(&mut l.backwards)),
            Change::NoTruncation(id) => change_loop(program, *id, |l| l.truncate.take().is_some()),
        }
    }
}

fn change_loop(program: &mut Program, id: Id, change: impl Fn(&mut Loop) -> bool) -> bool {
    match &mut program.items[id].expr {
        Expr::Loop(l) => change(l),
        _ => false,
    }
}
