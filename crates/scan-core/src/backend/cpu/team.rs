//! Runs one call of a kernel over several threads: lanes are split, time never is.
//!
//! Where lanes are cut depends on the shape alone, and they do not see each other, so no bit depends on the number of threads.

use super::code::{self, Code, Frame, Operand};
use crate::base::clock;
#[cfg(any(test, feature = "testing"))]
use crate::base::small;
use crate::kernel::{Bin, Kernel, Lane, MemId, Op, Un};
use rayon::{ThreadPool, ThreadPoolBuilder};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Lanes are cut at multiples of this.
pub const GRAIN: usize = 64;
/// Instructions, counted per lane and step, from which on a call is worth more than one thread: about 0.1 ms. Waking a thread
/// takes 5 to 50 µs.
const WORTH: usize = 1 << 20;
/// The same, of a part: enough that taking it costs nothing.
const PART: usize = 1 << 17;
/// Parts of a call at most.
const PARTS: usize = 64;

/// Threads that stand by, and the process in which they do: they do not survive a fork.
pub struct Team {
    /// The threads but for the one that calls; none where it is alone.
    pool: Option<ThreadPool>,
    size: usize,
    process: u32,
}

impl Team {
    /// A team of this many threads, the caller's among them; of one where they cannot be had.
    pub fn new(size: usize) -> Team {
        let name = |i| format!("rscan-{i}");
        let pool = (size > 1).then(|| ThreadPoolBuilder::new().num_threads(size - 1).thread_name(name).build().ok()).flatten();
        Team { size: if pool.is_some() { size } else { 1 }, pool, process: clock::process() }
    }
    /// The team of this process, started when first asked for.
    pub fn of_process() -> &'static Team {
        static TEAM: AtomicPtr<Team> = AtomicPtr::new(std::ptr::null_mut());
        Team::in_process(&TEAM, clock::process(), size().unwrap_or(1))
    }

    /// The team of a process. No lock: a fork may leave one locked for ever. What another process started is left alone, since
    /// its threads are not here.
    fn in_process(slot: &AtomicPtr<Team>, process: u32, size: usize) -> &'static Team {
        let found = slot.load(Ordering::Acquire);
        // SAFETY: what the slot holds was leaked.
        if let Some(team) = unsafe { found.as_ref() }.filter(|t| t.process == process) {
            return team;
        }
        let own = Box::into_raw(Box::new(Team { process, ..Team::new(size) }));
        match slot.compare_exchange(found, own, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: leaked from now on.
            Ok(_) => unsafe { &*own },
            Err(other) => {
                // SAFETY: `own` was never shown to anyone, and what the slot holds was leaked.
                unsafe {
                    drop(Box::from_raw(own));
                    &*other
                }
            }
        }
    }

    /// Runs a job in as many threads as asked for, or as there are, the caller's among them.
    fn run(&self, threads: usize, job: impl Fn() + Sync) {
        let others = threads.min(self.size) - 1;
        match self.pool.as_ref().filter(|_| others > 0) {
            None => job(),
            Some(pool) => pool.in_place_scope(|scope| {
                (0..others).for_each(|_| scope.spawn(|_| job()));
                job();
            }),
        }
    }
}

/// Does a job for each of some items, which the threads of the process take one after the other.
pub fn share<T: Send>(items: Vec<T>, job: impl Fn(T) + Sync) {
    let threads = items.len();
    let left = Mutex::new(items.into_iter());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    Team::of_process().run(threads.max(1), || {
        while let Some(item) = next() {
            job(item);
        }
    });
}

/// How many threads a process uses: the environment variable `RSCAN_NUM_THREADS`, else the processors that it may use. Read once.
///
/// # Errors
/// `RSCAN_NUM_THREADS` is no positive number.
pub fn size() -> Result<usize, String> {
    static SIZE: OnceLock<Result<usize, String>> = OnceLock::new();
    let processors = || std::thread::available_parallelism().map_or(1, |n| n.get());
    SIZE.get_or_init(|| choose(std::env::var("RSCAN_NUM_THREADS").ok().as_deref(), processors)).clone()
}

fn choose(asked: Option<&str>, processors: impl FnOnce() -> usize) -> Result<usize, String> {
    match asked {
        None | Some("") => Ok(processors()),
        Some(text) => match text.trim().parse() {
            Ok(n) if n >= 1 => Ok(n),
            _ => Err(format!("RSCAN_NUM_THREADS is \"{text}\"; it may be a whole number from 1 on, or not be set")),
        },
    }
}

/// As [`code::run`], over up to `threads` threads where that pays.
///
/// # Panics
/// As [`code::run`].
pub fn run_parallel(
    code: &dyn Code,
    kernel: &Kernel,
    operands: &[Operand],
    lanes: usize,
    steps: usize,
    first: i64,
    threads: usize,
) -> usize {
    #[cfg(any(test, feature = "testing"))]
    if let Some(part) = small::lanes_of_part().filter(|&part| part < lanes) {
        return run_in_parts(small_team(), code, kernel, operands, lanes, steps, first, 2, part);
    }
    match lanes_of_part(kernel, lanes, steps) {
        Some(part) if threads > 1 && part < lanes => {
            run_in_parts(Team::of_process(), code, kernel, operands, lanes, steps, first, threads, part)
        }
        _ => code::run(code, kernel, operands, lanes, steps, first),
    }
}

/// True where a call of a kernel may be split.
pub fn splits(kernel: &Kernel, lanes: usize, steps: usize) -> bool {
    #[cfg(any(test, feature = "testing"))]
    if let Some(part) = small::lanes_of_part() {
        return part < lanes;
    }
    size().is_ok_and(|n| n > 1) && lanes_of_part(kernel, lanes, steps).is_some_and(|part| part < lanes)
}

/// The team of calls in small parts.
#[cfg(any(test, feature = "testing"))]
fn small_team() -> &'static Team {
    static TEAM: std::sync::LazyLock<Team> = std::sync::LazyLock::new(|| Team::new(2));
    small::count_call();
    &TEAM
}

/// How many lanes a part has, by the shape alone; none where one thread is as good.
fn lanes_of_part(kernel: &Kernel, lanes: usize, steps: usize) -> Option<usize> {
    if lanes <= GRAIN {
        return None;
    }
    let per_lane = weight(kernel).saturating_mul(steps);
    let worth = per_lane.saturating_mul(lanes) >= WORTH;
    worth.then(|| PART.div_ceil(per_lane.max(1)).max(lanes.div_ceil(PARTS)).next_multiple_of(GRAIN))
}

/// What a step of one lane takes, in simple instructions.
fn weight(kernel: &Kernel) -> usize {
    let of = |op: &Op| match op {
        Op::Call(..) => 64,
        Op::Bin(Bin::Div, ..) | Op::Un(Un::Sqrt, _) => 4,
        Op::Const(_) => 0,
        _ => 1,
    };
    kernel.body.iter().map(|i| of(&i.op)).sum::<usize>() + kernel.stores.len()
}

/// What all parts share.
struct Whole<'a> {
    code: &'a dyn Code,
    kernel: &'a Kernel,
    ptrs: SmallVec<[*mut u8; 16]>,
    strides: SmallVec<[isize; 16]>,
    lanes: usize,
    steps: usize,
    first: i64,
    part: usize,
}

// SAFETY: parts touch lanes of their own, and of uniform operands write none but the first part does, which no part reads.
unsafe impl Sync for Whole<'_> {}

fn run_in_parts(
    team: &Team,
    code: &dyn Code,
    kernel: &Kernel,
    operands: &[Operand],
    lanes: usize,
    steps: usize,
    first: i64,
    threads: usize,
    part: usize,
) -> usize {
    if !code::checked(kernel, operands, lanes, steps) || !separable(kernel, operands, steps) {
        return code::run(code, kernel, operands, lanes, steps, first);
    }
    let ptrs = operands.iter().map(Operand::ptr).collect();
    let whole = Whole { code, kernel, ptrs, strides: operands.iter().map(|o| o.stride).collect(), lanes, steps, first, part };
    // Before a part changes them.
    let carried: SmallVec<[u64; 8]> = kernel.carries.iter().map(|c| whole.uniform(c.mem.0 as usize)).collect();
    let (next, parts) = (AtomicUsize::new(0), lanes.div_ceil(part));
    let whole = &whole;
    team.run(threads.min(parts), || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= parts {
                break;
            }
            whole.run(i, &carried);
        }
    });
    steps
}

impl Whole<'_> {
    /// The element of a uniform operand, that lane 0 has at the first step; zeros for others.
    fn uniform(&self, mem: usize) -> u64 {
        let of = &self.kernel.mems[MemId(mem as u32)];
        let mut bytes = [0; 8];
        if of.lane == Lane::Uniform {
            // SAFETY: the element was checked to lie in its memory.
            unsafe { std::ptr::copy_nonoverlapping(self.ptrs[mem], bytes.as_mut_ptr(), of.dtype.size()) };
        }
        u64::from_ne_bytes(bytes)
    }

    /// Runs a part. Those but the first write uniform operands, which are the same for all, to a place of their own.
    fn run(&self, i: usize, carried: &[u64]) {
        let start = i * self.part;
        let (mut ptrs, mut strides) = (self.ptrs.clone(), self.strides.clone());
        for (ptr, mem) in ptrs.iter_mut().zip(self.kernel.mems.iter()).filter(|(_, m)| m.lane.varies()) {
            *ptr = ptr.wrapping_offset(mem.lane.elements() * (start * mem.dtype.size()) as isize);
        }
        let mut scratch: SmallVec<[u64; 16]> = SmallVec::from_slice(carried);
        scratch.resize(carried.len() + self.kernel.stores.len(), 0);
        let written = self.kernel.carries.iter().map(|c| c.mem).chain(self.kernel.stores.iter().map(|s| s.mem));
        for (mem, place) in written.zip(scratch.iter_mut()).filter(|(m, _)| i > 0 && self.kernel.mems[*m].lane == Lane::Uniform) {
            ptrs[mem.0 as usize] = (&raw mut *place).cast();
            strides[mem.0 as usize] = 0;
        }
        let lanes = self.part.min(self.lanes - start);
        let frame = Frame {
            ptrs: ptrs.as_ptr(),
            strides: strides.as_ptr(),
            lanes,
            steps: self.steps,
            first: self.first,
            whole: self.lanes,
            own: std::ptr::null_mut(),
        };
        // SAFETY: all operands were checked for all lanes, of which these are some; scratch holds one element per operand and
        // does not move.
        unsafe { self.code.run(&frame) };
    }
}

/// True where no uniform operand that is written is read by way of another (parts would see what the first one writes), and all may
/// be told to stay where they are.
fn separable(kernel: &Kernel, operands: &[Operand], steps: usize) -> bool {
    let reach = |m: usize| {
        let (from, size) = (operands[m].ptr().addr() as isize, kernel.mems[MemId(m as u32)].dtype.size() as isize);
        let span = operands[m].stride.saturating_mul(steps as isize - 1);
        (from.saturating_add(span.min(0)), from.saturating_add(span.max(0)).saturating_add(size))
    };
    let uniform = |m: &MemId| kernel.mems[*m].lane == Lane::Uniform;
    let loads = || kernel.body.iter().filter_map(|i| if let Op::Load(m) = i.op { Some(m) } else { None }).filter(uniform);
    let mut stores = kernel.stores.iter().map(|s| s.mem).filter(uniform);
    kernel.stop.is_none()
        && stores.all(|s| {
            if kernel.mems[s].stride.is_some_and(|stride| stride != 0) {
                return false;
            }
            let (low, high) = reach(s.0 as usize);
            loads().all(|l| reach(l.0 as usize).1 <= low || high <= reach(l.0 as usize).0)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::testing::{check, check_with};
    use crate::backend::cpu::{Isa, vm};
    use crate::kernel::testing::{Options, case};
    use crate::types::DType;

    #[test]
    fn bits_do_not_depend_on_the_number_of_threads() {
        let teams = [1, 2, 3, 8].map(Team::new);
        let (mut split, mut uniform) = (0, 0);
        for seed in 0..150 {
            let case = case(seed, &Options { lanes: 65..=700, steps: 1..=4, ..Default::default() });
            let code = vm::compile(&case.kernel, Isa::machine());
            for team in &teams {
                check_with(&case, "vm in parts", |operands| {
                    split += usize::from(case.lanes > GRAIN && separable(&case.kernel, operands, case.steps));
                    run_in_parts(team, &*code, &case.kernel, operands, case.lanes, case.steps, case.first, team.size, GRAIN)
                });
            }
            let written = case.kernel.stores.iter().map(|s| s.mem).chain(case.kernel.carries.iter().map(|c| c.mem));
            uniform += usize::from(written.into_iter().any(|m| case.kernel.mems[m].lane == Lane::Uniform));
        }
        assert!(split > 4 * 75 && uniform > 50, "{split} {uniform}");
    }

    #[test]
    fn large_calls_are_split_and_small_ones_are_not() {
        let options = Options { dtypes: vec![DType::F64], insts: 20..=20, lanes: 60_000..=60_001, steps: 2..=2, ..Default::default() };
        let large = case(3, &options);
        let part = lanes_of_part(&large.kernel, large.lanes, large.steps).expect("worth it");
        assert!(part.is_multiple_of(GRAIN) && part < large.lanes && large.lanes.div_ceil(part) <= PARTS);
        assert_eq!(lanes_of_part(&large.kernel, 100, 1), None);
        assert_eq!(lanes_of_part(&large.kernel, GRAIN, 1 << 30), None);
        assert_eq!(lanes_of_part(&large.kernel, 2 * GRAIN, 1 << 30), Some(GRAIN));
        let code = vm::compile(&large.kernel, Isa::machine());
        check(&*code, &large);
        check_with(&large, "vm in parallel", |operands| {
            run_parallel(&*code, &large.kernel, operands, large.lanes, large.steps, large.first, 2)
        });
    }

    #[test]
    fn a_forked_process_starts_a_team_of_its_own() {
        let slot = AtomicPtr::new(std::ptr::null_mut());
        let parent = Team::in_process(&slot, 1, 2);
        assert!(std::ptr::eq(parent, Team::in_process(&slot, 1, 2)));
        let child = Team::in_process(&slot, 2, 3);
        assert!(!std::ptr::eq(parent, child) && (child.process, child.size) == (2, 3));
        assert!(std::ptr::eq(child, Team::in_process(&slot, 2, 3)));
        let ran = AtomicUsize::new(0);
        child.run(3, || {
            ran.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(ran.into_inner(), 3);
    }

    #[test]
    fn the_environment_tells_how_many() {
        assert_eq!(choose(None, || 5), Ok(5));
        assert_eq!(choose(Some(" 3"), || 5), Ok(3));
        for text in ["0", "-1", "two", "1.5"] {
            assert!(choose(Some(text), || 5).is_err_and(|e| e.contains(text)), "{text}");
        }
        assert!(Team::of_process().size >= 1);
    }
}
