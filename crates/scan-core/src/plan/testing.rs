//! Plans of programs as they run: each is read back from its text and interpreted, and gives the bits that the engine gave.

use super::interp::{run_kernel, run_list};
use super::parse::Plan;
use super::sound::read_back;
use super::{LoopKernel, StepList, verify, verify_kernel};
use crate::base::{Diagnostic, Result};
use crate::ir::op::Outs;
use crate::ir::{EvalCx, Scan};
use crate::types::Array;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Loops of more steps, or with more elements, are not interpreted: that is slow.
const STEPS: i64 = 64;
const ELEMENTS: usize = 1 << 14;
/// What memory holds that nothing has written.
pub(super) const POISON: [u8; 2] = [0xA5, 0x3C];

/// True where loops are interpreted, too.
static WATCHED: LazyLock<AtomicBool> = LazyLock::new(|| AtomicBool::new(std::env::var_os("RSCAN_CHECK_PLANS").is_some()));
static FOUND: Mutex<Found> = Mutex::new(Found { lists: 0, kernels: 0, left: 0, faults: vec![], samples: vec![] });

/// What came of loops that ran while they were watched.
#[derive(Clone, Default)]
pub struct Found {
    /// Runs of lists that gave the engine's bits.
    pub lists: usize,
    /// Runs of kernels that did.
    pub kernels: usize,
    /// Runs that the plan left to the law, as the engine did.
    pub left: usize,
    /// What differed.
    pub faults: Vec<String>,
    /// Lists with what they were given and made.
    pub samples: Vec<Sample>,
}

/// A list with what it was given and made.
#[derive(Clone)]
pub struct Sample {
    /// The list.
    pub plan: StepList,
    /// Its loop.
    pub scan: Scan,
    /// Inputs of the loop.
    pub ins: Vec<Array>,
    /// Its outputs.
    pub outs: Vec<Array>,
}

/// So many lists are kept: all of a few programs.
const SAMPLES: usize = 1 << 14;

/// Loops that run in this process meanwhile are interpreted: what came of them. One such call waits for another.
pub fn watching<R>(run: impl FnOnce() -> R) -> (R, Found) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = WATCHED.swap(true, Ordering::Relaxed);
    let made = run();
    WATCHED.store(before, Ordering::Relaxed);
    (made, std::mem::take(&mut FOUND.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// The inputs of a loop that is to be interpreted.
pub(crate) fn watched(ins: &[Array]) -> Option<Vec<Array>> {
    let few = ins[Scan::N_STEPS].item_i64().is_some_and(|n| n <= STEPS) && ins.iter().map(Array::len).sum::<usize>() <= ELEMENTS;
    (few && WATCHED.load(Ordering::Relaxed)).then(|| ins.to_vec())
}

type Made = Result<Option<Outs<Array>>>;

/// What a kernel made of these inputs, without the first rows of each output that are not wanted.
pub(crate) fn kernel_ran(plan: &LoopKernel, scan: &Scan, ins: &[Array], made: &Made, skip: &[usize]) {
    let Some(Plan::Kernel(back)) = read_back(&plan.to_string(), &[]) else { return };
    let again = |poison| verify_kernel(&back, scan).and_then(|()| run_kernel(&back, scan, &mut EvalCx::new(), ins, poison));
    judged(&again, made, skip, &|| plan.to_string(), |found| found.kernels += 1);
}

/// The same of a list.
pub(crate) fn list_ran(plan: &StepList, scan: &Scan, ins: &[Array], made: &Made, skip: &[usize]) {
    if plan.impure {
        return;
    }
    let externs = super::sound::of_list(plan);
    let Some(Plan::List(back)) = read_back(&plan.to_string(), &externs) else { return };
    let again = |poison| verify(&back, scan).and_then(|()| run_list(&back, scan, &mut EvalCx::new(), ins, poison));
    let sample = || Some(Sample { plan: plan.clone(), scan: scan.clone(), ins: ins.to_vec(), outs: again(0).ok()??.to_vec() });
    judged(&again, made, skip, &|| plan.to_string(), |found| {
        found.lists += 1;
        let ran = ins[Scan::N_STEPS].item_i64().is_some_and(|n| n > 1);
        if found.samples.len() < SAMPLES && externs.is_empty() && ran {
            found.samples.extend(sample());
        }
    });
}

fn judged(again: &dyn Fn(u8) -> Made, made: &Made, skip: &[usize], text: &dyn Fn() -> String, count: impl FnOnce(&mut Found)) {
    let mut fault = None;
    for poison in POISON {
        let found = again(poison);
        fault = fault.or_else(|| differs(&found, made, skip));
    }
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    match (fault, made) {
        (Some(fault), _) => {
            let fault = format!("{fault}\n{}", text());
            if std::env::var_os("RSCAN_CHECK_PLANS").is_some() {
                eprintln!("a plan means something else: {fault}");
            }
            found.faults.push(fault);
        }
        (None, Ok(Some(_))) => count(&mut found),
        (None, _) => found.left += 1,
    }
}

/// How what is found differs from what was made.
fn differs(found: &Made, made: &Made, skip: &[usize]) -> Option<String> {
    match (found, made) {
        (Ok(Some(found)), Ok(Some(made))) => {
            let own = found.iter().enumerate().map(|(k, x)| match skip.get(k) {
                Some(&skip) if x.rank() > 0 => x.rows(skip.min(x.shape()[0]), x.shape()[0]),
                _ => x.clone(),
            });
            let same = |(a, b): (Array, &Array)| a.ty() == b.ty() && a.bits() == b.bits();
            let mut pairs = own.zip(made.iter()).enumerate();
            let (k, (a, b)) = pairs.find(|(_, (a, b))| !same((a.clone(), b)))?;
            Some(format!("output {k} is {} {:?}, not {} {:?}", a.ty(), a.to_f64_vec(), b.ty(), b.to_f64_vec()))
        }
        (Ok(None), Ok(None)) => None,
        (Err(a), Err(b)) => (a.code != b.code).then(|| format!("fails with {}, not {}", a.code, b.code)),
        (a, b) => {
            let of = |made: &Made| match made {
                Ok(Some(_)) => "values".to_string(),
                Ok(None) => "a refusal".to_string(),
                Err(e) => Diagnostic::to_string(e),
            };
            Some(format!("{} in place of {}", of(a), of(b)))
        }
    }
}
