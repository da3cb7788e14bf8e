//! Temporaries that are wanted at the same time have no byte in common.

use super::bounds::{Checked, ensure};
use crate::plan::list::{At, Place, STEP, StepList, Temporary};

pub(super) fn check(plan: &StepList) -> Checked {
    let number = plan.temporaries.first();
    ensure(number == Some(&Temporary { at: 0, bytes: 8 }), || "memory begins with the number of the step".into())?;
    let lives = lives(plan)?;
    let mut used: Vec<usize> = (0..lives.len()).filter(|&s| lives[s].is_some() && plan.temporaries[s].bytes > 0).collect();
    used.sort_unstable_by_key(|&s| plan.temporaries[s].at);
    for (k, &a) in used.iter().enumerate() {
        let end = plan.temporaries[a].at + plan.temporaries[a].bytes;
        for &b in used[k + 1..].iter().take_while(|&&b| plan.temporaries[b].at < end) {
            let (Some(one), Some(other)) = (lives[a], lives[b]) else { continue };
            ensure(one.1 < other.0 || other.1 < one.0, || format!("t{a} and t{b} share memory"))?;
        }
        ensure(plan.temporaries[a].at.is_multiple_of(8), || format!("t{a} is misaligned"))?;
    }
    Ok(())
}

/// The parts that name each temporary first and last.
fn lives(plan: &StepList) -> Checked<Vec<Option<(usize, usize)>>> {
    let (end, mut plan) = (plan.items.len(), plan.clone());
    let mut lives = vec![None; plan.temporaries.len()];
    let mut missing = None;
    let mut named = |place: &Place, k: usize| {
        let At::Slot(slot) = place.at else { return };
        match lives.get_mut(slot) {
            Some(life) => *life = Some(life.map_or((k, k), |(first, last): (usize, usize)| (first.min(k), last.max(k)))),
            None => missing = Some(slot),
        }
    };
    for (k, item) in plan.items.iter_mut().enumerate() {
        item.places(&mut |place| named(place, k));
    }
    plan.writes.iter().map(|w| &w.2).chain(&plan.stop).for_each(|place| named(place, end));
    if let Some(slot) = missing {
        return Err(format!("there is no t{slot}"));
    }
    lives[STEP] = Some((0, end));
    Ok(lives)
}
