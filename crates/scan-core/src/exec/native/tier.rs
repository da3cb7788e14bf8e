//! Which engine runs a kernel: the vm at once, machine code as soon as it pays.

use super::device::OnDevice;
use crate::backend::cpu::code;
use crate::backend::cpu::team::{self, run_parallel};
use crate::backend::cpu::watch::watched;
use crate::backend::cpu::{Code, NestPlan, NestRun, Operand, Refusal, Spot, Steps, native, native_soon, vm};
use crate::backend::gpu::DeviceRef;
use crate::base::Result;
use crate::base::clock::Instant;
use crate::ir::EvalCx;
use crate::kernel::Kernel;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What functions run on.
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = Var::number(0.5).sin();
/// let [vm, law] = [Engine::Vm, Engine::Eval].map(|engine| function(&[], &[&x]).engine(engine).compile().and_then(|f| f.run(&[])));
/// assert_eq!(vm?, law?);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Engine {
    /// The vm at first, machine code for what has run long enough to pay for its compilation.
    #[default]
    Auto,
    /// The evaluator alone: the law, slow.
    Eval,
    /// Kernels on the vm, no machine code.
    Vm,
    /// Kernels as machine code from the first call on, where that can be had.
    Jit,
    /// Kernels on a device with a memory of its own; the rest as `Auto`.
    Device(DeviceRef),
}

impl Engine {
    /// As the environment asks: `RSCAN_ENGINE=eval`, `vm`, `jit` or `auto`; `RSCAN_JIT=0` is `vm`.
    pub fn from_env() -> Engine {
        let word = std::env::var("RSCAN_ENGINE").unwrap_or_default();
        match word.as_str() {
            "eval" => Engine::Eval,
            "vm" => Engine::Vm,
            "jit" => Engine::Jit,
            _ if std::env::var("RSCAN_JIT").is_ok_and(|v| v == "0") => Engine::Vm,
            _ => Engine::Auto,
        }
    }
}

impl Engine {
    /// What runs on the host where a device was asked for.
    pub fn here(self) -> Engine {
        if let Engine::Device(_) = self { Engine::Auto } else { self }
    }
    /// Why a kernel is too long for a device; `None` elsewhere.
    pub fn too_long(self, kernel: &Kernel) -> Option<String> {
        match self {
            Engine::Device(_) if kernel.has_loops() => Some("its steps run loops".into()),
            Engine::Device(device) => device.0.traits().too_long(kernel),
            _ => None,
        }
    }
}

/// Machine code is made when a kernel has so many lanes × steps × instructions behind or before it as the vm does in the time of
/// the compilation: who waits no longer than that waits at most twice as long as who knew how often it will run ("rent or buy").
/// So many of them are the time of a kernel whose lanes are those of vectors, which are written down as they come.
const PAYS: u64 = 200_000;

/// Registers are allocated for the whole of a kernel with one lane, or with loops in its steps: that takes so long for any, and so
/// long for each of its instructions.
const WHOLE: [u64; 2] = [75_000, 3_300];

/// The same of an instruction of a kernel whose steps run loops: some steps of these, one value after the other.
const SLOW: usize = 200;

/// What one run more costs the vm, in the same measure.
const RUN: u64 = 400;

/// From so many instructions on, registers are first allocated in one pass (`Tiered::timed`), which takes an eighth to a third of the time.
const LONG: usize = 400;

/// Nanoseconds that the thorough allocation takes for each instruction of a long kernel. When such code has run for that long, it is made:
/// who waits so waits at most twice.
const THOROUGH: u64 = 25_000;

/// That many steps ahead are worth it at once.
const MANY: usize = 60_000;

/// A kernel with the engines that it has been compiled for.
pub struct Tiered {
    kernel: Kernel,
    engine: Engine,
    vm: OnceLock<Arc<dyn Code>>,
    native: OnceLock<std::result::Result<Arc<dyn Code>, Refusal>>,
    /// Machine code of a long kernel that is made in less time, and runs until it has run for long; `None` where there is none.
    soon: OnceLock<Option<Arc<dyn Code>>>,
    /// Nanoseconds for which that ran.
    ran: AtomicU64,
    work: AtomicU64,
    device: Option<OnDevice>,
    /// All runs are by `run` or `run_alone`, which count their time.
    timed: bool,
    /// Its instructions, those of loops in its steps too.
    size: usize,
}

impl Tiered {
    /// Nothing is compiled yet.
    pub fn new(kernel: Kernel, engine: Engine) -> Tiered {
        let device = if let Engine::Device(device) = engine { Some(OnDevice::new(device)) } else { None };
        let size = kernel.size();
        Tiered {
            size,
            kernel,
            engine,
            vm: OnceLock::new(),
            native: OnceLock::new(),
            soon: OnceLock::new(),
            ran: AtomicU64::new(0),
            work: AtomicU64::new(0),
            timed: false,
            device,
        }
    }
    /// The same, of which all runs are by [`Tiered::run`] or [`Tiered::run_alone`]: long kernels may have code first that is made in less time.
    pub fn timed(self) -> Tiered {
        Tiered { timed: self.engine != Engine::Jit, ..self }
    }
    /// The kernel on a device, where it is to run there.
    pub fn device(&self) -> Option<&OnDevice> {
        self.device.as_ref()
    }
    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }
    /// How many instructions it has, those of loops in its steps too.
    pub fn size(&self) -> usize {
        self.size
    }
    fn has_loops(&self) -> bool {
        self.size > self.kernel.body.len()
    }
    /// Announces work, so that machine code is there before it begins.
    pub fn expect(&self, lanes: usize, steps: usize) {
        self.expect_runs(lanes, steps, 0);
    }
    /// Announces so many steps in so many runs.
    pub fn expect_runs(&self, lanes: usize, steps: usize, runs: usize) {
        if self.native.get().is_some() || self.device.as_ref().is_some_and(|d| !d.is_refused()) {
            return;
        }
        let instructions = self.size * if self.has_loops() { SLOW } else { 1 };
        let work = (lanes as u64).saturating_mul(steps as u64).saturating_mul(instructions as u64);
        let work = work.saturating_add((runs as u64).saturating_mul(RUN));
        let pays = self.pays(lanes);
        let before = self.work.fetch_add(work.min(pays), Ordering::Relaxed);
        let wanted = match self.engine {
            Engine::Auto | Engine::Device(_) => before.saturating_add(work) >= pays,
            Engine::Jit => true,
            Engine::Vm | Engine::Eval => false,
        };
        if wanted && !self.waits(lanes, steps) {
            self.native.get_or_init(|| native(&self.kernel, lanes).map(Arc::from));
        }
    }
    /// True where code that is made in less time does for now: it is there, and has not run for long.
    fn waits(&self, lanes: usize, steps: usize) -> bool {
        let whole = lanes == 1 || self.has_loops();
        let short = steps < MANY && self.ran.load(Ordering::Relaxed) < THOROUGH * self.size as u64;
        self.timed
            && whole
            && short
            && self.size >= LONG
            && self.soon.get_or_init(|| native_soon(&self.kernel).ok().map(Arc::from)).is_some()
    }
    /// The work from which on machine code pays.
    fn pays(&self, lanes: usize) -> u64 {
        if lanes > 1 && !self.has_loops() { PAYS } else { WHOLE[0] + WHOLE[1] * self.size as u64 }
    }
    /// True where it has been compiled.
    pub fn is_made(&self) -> bool {
        self.native.get().is_some() || self.soon.get().is_some() || self.vm.get().is_some()
    }
    fn code(&self) -> &Arc<dyn Code> {
        match (self.native.get(), self.soon.get()) {
            (Some(Ok(code)), _) | (None, Some(Some(code))) => code,
            _ => self.vm.get_or_init(|| Arc::from(vm(&self.kernel))),
        }
    }
    /// True where one step of so many lanes is worth several threads.
    pub fn shared(&self, lanes: usize) -> bool {
        team::splits(&self.kernel, lanes, 1)
    }
    /// The kernel at every place of a nest's axes, with operands that are checked once for so many steps of the loops around.
    #[inline]
    pub fn nest<'a>(&self, nest: &'a NestPlan, operands: impl Iterator<Item = Spot<'a>> + Clone, counts: Steps) -> NestRun<'a> {
        NestRun::new(self.code(), nest, operands, counts)
    }
    /// Runs; the number of steps that ran.
    pub fn run(&self, operands: &[Operand], lanes: usize, steps: usize, first: i64) -> usize {
        self.clocked(|code| run_parallel(code, &self.kernel, operands, lanes, steps, first, team::size().unwrap_or(1)))
    }
    /// The same in this thread alone, looking now and then at whether the caller wants to stop where steps run loops.
    ///
    /// # Errors
    /// That of who wants to stop.
    pub fn run_watched(&self, cx: &mut EvalCx, operands: &[Operand], lanes: usize, steps: usize, first: i64) -> Result<usize> {
        self.watched(cx, || self.run_alone(operands, lanes, steps, first))
    }
    /// What `run` gives, which runs the kernel.
    ///
    /// # Errors
    /// That of who wants to stop.
    pub fn watched(&self, cx: &mut EvalCx, run: impl FnOnce() -> usize) -> Result<usize> {
        if !self.has_loops() {
            return Ok(run());
        }
        let mut over = None;
        let mut ask = || {
            over = cx.check_clock().err();
            over.is_some()
        };
        let ran = watched(&mut ask, run);
        over.map_or(Ok(ran), Err)
    }
    /// The same in this thread alone.
    pub fn run_alone(&self, operands: &[Operand], lanes: usize, steps: usize, first: i64) -> usize {
        self.clocked(|code| code::run(code, &self.kernel, operands, lanes, steps, first))
    }
    /// A run, whose time counts while code runs that was made in less time.
    fn clocked(&self, run: impl FnOnce(&dyn Code) -> usize) -> usize {
        let (code, counts) = (&**self.code(), self.soon.get().is_some() && self.native.get().is_none());
        if !counts {
            return run(code);
        }
        let start = Instant::now();
        let ran = run(code);
        self.ran.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        ran
    }
    /// It as text, with what it is and what runs it.
    pub fn text(&self, what: &str) -> String {
        let engine = if self.is_made() { self.describe().0 } else { "not called yet" };
        format!("{what} ({engine})\n{}", indented(&self.kernel().to_string()))
    }
    /// The engine in use, and why it is not machine code where that was tried.
    pub fn describe(&self) -> (&'static str, Option<String>) {
        let refusal = match self.native.get() {
            Some(Err(r)) => Some(r.0.clone()),
            _ => None,
        };
        match &self.device {
            Some(device) if !device.is_refused() => (device.name(), device.refusal()),
            Some(device) => (self.code().engine(), device.refusal()),
            None => (self.code().engine(), refusal),
        }
    }
}

/// Lines of a text below another one.
pub fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(feature = "jit")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::testing::check_with;
    use crate::kernel::testing::{Options, case};

    #[test]
    fn a_long_kernel_runs_on_code_that_is_made_sooner_until_that_has_run_for_long() {
        let long = Options { lanes: 1..=1, steps: 20..=50, insts: LONG..=LONG + 50, ..Options::default() };
        for case in (0..20).map(|seed| case(90_000 + seed, &long)) {
            let tier = Tiered::new(case.kernel.clone(), Engine::Auto).timed();
            let run = |name: &str| check_with(&case, name, |operands| tier.run_alone(operands, case.lanes, case.steps, case.first));
            tier.expect(1, 1);
            assert!(!tier.is_made(), "one step is left to the vm");
            tier.expect(1, MANY - 1);
            assert!(tier.soon.get().is_some_and(Option::is_some) && tier.native.get().is_none());
            run("soon");
            assert!(tier.ran.load(Ordering::Relaxed) > 0, "the time of the run is counted");
            tier.ran.store(THOROUGH * tier.size() as u64, Ordering::Relaxed);
            tier.expect(1, 1);
            assert!(tier.native.get().is_some_and(|code| code.is_ok()));
            run("thorough");
        }
    }

    #[test]
    fn what_is_known_to_run_for_long_is_made_thoroughly_at_once() {
        let case = case(90_100, &Options { lanes: 1..=1, insts: LONG..=LONG + 50, ..Options::default() });
        for (engine, steps) in [(Engine::Auto, MANY), (Engine::Jit, 1)] {
            let tier = Tiered::new(case.kernel.clone(), engine).timed();
            tier.expect(1, steps);
            assert!(tier.native.get().is_some() && tier.soon.get().is_none());
        }
    }
}
