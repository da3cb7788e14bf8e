//! Many programs, and a table of what they used.

use super::check::{BLOCKS, Done, Fault, check};
use super::gen_loop::generate;
use super::program::{FEATURES, Program};
use super::shrink::shrink;
use crate::base::small;
use crate::exec::Function;
use crate::rewrite::pipeline::PASSES;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a run found.
#[derive(Default)]
pub struct Report {
    /// Number of programs.
    pub programs: usize,
    /// How many use a feature, and how many of these disagree.
    pub features: BTreeMap<&'static str, (usize, usize)>,
    /// In how many programs, or their derivatives, a pass found something to do.
    pub passes: BTreeMap<&'static str, usize>,
    /// How many were compared with differences, and in third derivatives.
    pub differences: usize,
    /// Third derivatives.
    pub third: usize,
    /// Of how many only the bits of engines were compared, as roundings tell what they decide.
    pub bits_only: usize,
    /// Seeds with their faults and shrunk programs.
    pub faults: Vec<(u64, String)>,
}

/// How many loops of the programs ran on which engine, and why not on a native one.
static ENGINES: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Counts the engines of a function's loops.
pub(super) fn count_engines(f: &Function) {
    let mut engines = ENGINES.lock().unwrap_or_else(|e| e.into_inner());
    for v in f.loops().into_iter().flat_map(|l| l.variants) {
        let mixed = v.engine.starts_with("steps of");
        let reason = v.reason.filter(|_| !mixed).map_or(String::new(), |r| format!(": {}", r.replace(|c: char| c.is_ascii_digit(), "")));
        let engine = if mixed { "steps of kernels and calls" } else { &v.engine };
        *engines.entry(format!("{engine}{reason}")).or_default() += 1;
    }
}

/// Checks the programs of `count` seeds from `first` on, on every core; with `stop`, up to the first fault, which is not shrunk.
pub fn run(first: u64, count: u64, stop: bool) -> Report {
    let next = AtomicU64::new(first);
    let report = Mutex::new(Report::default());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let stopped = stop && report.lock().is_ok_and(|r| !r.faults.is_empty());
            if seed >= first + count || stopped {
                return;
            }
            one(seed, stop, &report);
        }
    };
    std::thread::scope(|s| (0..threads).for_each(|_| drop(std::thread::Builder::new().stack_size(64 << 20).spawn_scoped(s, work))));
    report.into_inner().unwrap_or_else(|e| e.into_inner())
}

/// After so many programs a long run says how far it is.
const OFTEN: usize = 1000;

fn one(seed: u64, stop: bool, report: &Mutex<Report>) {
    let program = generate(seed);
    let result = guarded(&program);
    if let Err(fault) = &result {
        eprintln!("seed {seed}: {}", fault.stage);
    }
    let text = result.as_ref().err().map(|fault| describe(&program, fault, stop, report));
    let mut report = report.lock().unwrap_or_else(|e| e.into_inner());
    report.programs += 1;
    if report.programs.is_multiple_of(OFTEN) {
        eprintln!("{} programs, {} faults", report.programs, report.faults.len());
    }
    for feature in &program.features {
        let row = report.features.entry(feature).or_default();
        row.0 += 1;
        row.1 += usize::from(text.is_some());
    }
    if let Ok(done) = result {
        report.differences += usize::from(done.differences);
        report.third += usize::from(done.third);
        report.bits_only += usize::from(done.bits_only);
        done.fired.iter().for_each(|pass| *report.passes.entry(pass).or_default() += 1);
    }
    report.faults.extend(text.map(|t| (seed, t)));
}

/// The check; a panic is a fault, too.
pub fn guarded(program: &Program) -> Result<Done, Fault> {
    catch_unwind(AssertUnwindSafe(|| check(program))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        Err(Fault { stage: "panic", text: text.unwrap_or_default() })
    })
}

/// The fault with a smaller program that has it; only the first faults of a run are worth the time.
fn describe(program: &Program, fault: &Fault, stop: bool, report: &Mutex<Report>) -> String {
    let many = report.lock().map_or(0, |r| r.faults.len()) >= 10;
    if many || stop {
        return format!("{}: {}", fault.stage, fault.text.lines().next().unwrap_or(""));
    }
    let small = shrink(program, fault, &|p| guarded(p).err());
    let fault = guarded(&small).err().unwrap_or_else(|| fault.clone());
    format!("{}: {}\n{small}", fault.stage, fault.text)
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<36} {:>8} {:>10}", "feature", "programs", "mismatches")?;
        for feature in FEATURES {
            let (used, bad) = self.features.get(feature).copied().unwrap_or_default();
            writeln!(f, "{feature:<36} {used:>8} {bad:>10}")?;
        }
        writeln!(f, "{:<36} {:>8}", "pass", "programs")?;
        for pass in PASSES.iter().map(|p| p.name) {
            writeln!(f, "{pass:<36} {:>8}", self.passes.get(pass).copied().unwrap_or_default())?;
        }
        writeln!(f, "\nloops by engine")?;
        for (engine, n) in ENGINES.lock().unwrap_or_else(|e| e.into_inner()).iter() {
            writeln!(f, "{n:>10}  {engine}")?;
        }
        writeln!(f, "{:>10}  calls of kernels over two threads", small::calls())?;
        writeln!(f, "{:>10}  loops with rows computed ahead in blocks", BLOCKS.load(Ordering::Relaxed))?;
        for (seed, text) in &self.faults {
            writeln!(f, "\nseed {seed}: {text}")?;
        }
        let (n, bad) = (self.programs, self.faults.len());
        writeln!(
            f,
            "{n} programs, {} also against finite differences, {} in third derivatives, {} that hang on a rounding only in bits: {bad} mismatches",
            self.differences, self.third, self.bits_only
        )
    }
}
