//! What a step takes from outside of its loop.

use super::Var;
use super::extract::{Extract, ancestors_until};
use crate::ir::Op;
use rustc_hash::FxHashSet;

/// Binds what the step uses but does not compute from the step's placeholders: expressions as a whole. What was passed as fixed
/// comes first, in the order in which it was passed.
pub fn capture(extract: &mut Extract, outputs: &[Var], step: &Var, passed: &[Var]) -> Vec<Var> {
    let all = ancestors_until(outputs, passed);
    let start = step.key().0;
    let fixed: FxHashSet<&Var> = passed.iter().collect();
    let mut depends: FxHashSet<Var> = FxHashSet::default();
    for var in &all {
        let impure = matches!(var.owner(), Some((Op::Extern(e), ..)) if !e.0.pure());
        let held = matches!(var.owner(), Some((Op::Hold(_), ..))) && var.key().0 < start;
        let inner = var.owner().is_some_and(|(_, ins, _)| ins.iter().any(|v| depends.contains(v)));
        if extract.get(var).is_some() || (((inner && !held) || impure) && !fixed.contains(var)) {
            depends.insert(var.clone());
        }
    }
    if depends.iter().any(is_choice) {
        let eager = eager(&all, outputs);
        let made_here = |v: &&Var| v.owner().is_some() && v.key().0 >= start && !fixed.contains(v);
        depends.extend(all.iter().filter(|v| made_here(v) && !eager.contains(v)).cloned());
    }
    let users = all.iter().filter(|v| depends.contains(*v) && extract.get(v).is_none());
    let mut used: Vec<Var> = users.filter_map(|v| v.owner().map(|o| o.1.to_vec())).flatten().chain(outputs.iter().cloned()).collect();
    let needed = |v: &&Var| v.as_shared().is_none() || used.contains(v);
    used.splice(0..0, passed.iter().filter(needed).cloned().collect::<Vec<_>>());
    let mut captured = vec![];
    for var in used {
        if !depends.contains(&var) && var.const_value().is_none() && extract.get(&var).is_none() {
            extract.bind(&var);
            captured.push(var);
        }
    }
    captured
}

fn is_choice(v: &Var) -> bool {
    matches!(v.owner(), Some((Op::IfElse(_), ..)))
}

/// What is computed whichever branches are taken. The rest stays in the step, though it be the same at every one: outside of it would
/// be computed, and might fail, what no step asks for.
fn eager(all: &[Var], outputs: &[Var]) -> FxHashSet<Var> {
    let mut found: FxHashSet<Var> = outputs.iter().cloned().collect();
    for var in all.iter().rev() {
        if let Some((_, ins, _)) = var.owner().filter(|_| found.contains(var)) {
            let always = if is_choice(var) { 1 } else { ins.len() };
            found.extend(ins[..always].iter().cloned());
        }
    }
    found
}
