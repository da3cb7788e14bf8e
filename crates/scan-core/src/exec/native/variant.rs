//! What a loop was made into for rows of certain types, and what is told of it.

use super::device::OnDevice;
use super::distributed::Distributed;
use super::info::VariantInfo;
use super::mixed::Mixed;
use super::ready::Ready;
use super::switched::Switched;
use super::vectorized::Vectorized;
use crate::ir::{Keep, Scan};
use crate::lower::BY_VALUES;
use crate::plan::Window;
use std::sync::Arc;

/// A loop for rows of certain types.
pub(super) enum Variant {
    /// One kernel.
    Kernel(Box<Ready>),
    /// A list of kernels and calls; why it is not one kernel.
    Mixed(Arc<Mixed>, String),
    /// A list for each of the integers that steps are given.
    Switched(Box<Switched>),
    /// Neither, and why.
    Refused(String),
}

impl Variant {
    /// True where it is none since extents depend on values.
    pub fn by_values(&self) -> bool {
        matches!(self, Variant::Refused(why) if why == BY_VALUES)
    }
    /// True where it cannot run steps whose slices reach beyond their arrays.
    pub fn slices(&self) -> bool {
        match self {
            Variant::Kernel(ready) => ready.plan.slices,
            Variant::Mixed(mixed, _) => mixed.slices(),
            Variant::Switched(_) | Variant::Refused(_) => false,
        }
    }
    pub fn info(&self, scan: &Scan) -> VariantInfo {
        match self {
            Variant::Kernel(ready) => {
                let wide = ready.vectorized.as_ref().and_then(Vectorized::ran);
                let (engine, refusal) = wide.unwrap_or(&ready.tier).describe();
                let stages = ready.distributed.as_ref().and_then(Distributed::engines).filter(|_| wide.is_none());
                let why = match (wide, &stages) {
                    (Some(_), _) => Some("steps that do not wait for each other are lanes".to_string()),
                    (None, Some(_)) => Some("what does not wait for the step before has steps as lanes".to_string()),
                    (None, None) => refusal,
                };
                VariantInfo {
                    engine: stages.unwrap_or_else(|| engine.to_string()),
                    reason: why,
                    lanes: ready.plan.lanes,
                    instructions: ready.tier.size(),
                    block: ready.portion(&[], 0, ready.is_shared()),
                    copies: vec![],
                    stored: stored(scan, &ready.plan.windows),
                    work: ready.tier.kernel().work(ready.plan.lanes),
                    crossed: ready.tier.device().filter(|d| !d.is_refused()).map(OnDevice::crossed),
                }
            }
            Variant::Mixed(mixed, why) => {
                let (mut engines, calls) = mixed.describe();
                engines.sort_unstable();
                engines.dedup();
                let (copies, stored, work) = (mixed.copies(scan), stored(scan, mixed.windows()), mixed.work());
                if let Some((device, here, crossed)) = mixed.placed() {
                    let reason = std::iter::once(why.clone()).chain(here).collect::<Vec<_>>().join("; ");
                    let info = VariantInfo::other(format!("steps of {device} kernels"), reason);
                    return VariantInfo { copies, stored, work, crossed: Some(crossed), ..info };
                }
                let why = mixed.why_here().map_or(why.clone(), |here| format!("{why}; {here}"));
                VariantInfo { copies, stored, work, ..VariantInfo::other(listed(&engines, &calls), why) }
            }
            Variant::Switched(switched) => {
                let lists = switched.all();
                let described = lists.iter().map(|list| list.describe());
                let (mut engines, mut calls) =
                    described.fold((vec![], vec![]), |all, one| ([all.0, one.0].concat(), [all.1, one.1].concat()));
                engines.sort_unstable();
                engines.dedup();
                calls.sort_unstable();
                calls.dedup();
                let why = format!("{BY_VALUES}: a list for each of {} integers", lists.len());
                VariantInfo::other(listed(&engines, &calls), why)
            }
            Variant::Refused(why) => VariantInfo::other("eval", why),
        }
    }
}

/// Engines and called ops of a list in words.
fn listed(engines: &[&str], calls: &[String]) -> String {
    let kernels = if engines.is_empty() { "moves".to_string() } else { format!("{} kernels", engines.join("+")) };
    let called = if calls.is_empty() { String::new() } else { format!(" and calls of {}", calls.join(", ")) };
    format!("steps of {kernels}{called}")
}

/// Bytes of the rows that a step stores and the loop returns.
fn stored(scan: &Scan, windows: &[Window]) -> usize {
    scan.states.iter().zip(windows).filter(|(state, _)| state.keep == Keep::All).map(|(_, window)| window.row_bytes()).sum()
}
