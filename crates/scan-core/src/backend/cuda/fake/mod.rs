//! A driver without a card, for tests: memory in this process, PTX interpreted, faults when they are wanted.
//!
//! It does as late as it may what is asked of a stream, so that what nobody waits for is not there. With `RSCAN_PTXAS` in the environment
//! the vendor's assembler sees every module, too.

pub mod assemble;
mod opcodes;
mod parse;
mod run;
#[cfg(test)]
mod tests;

use super::driver::{Answer, Call, Card, Driver, Fault, Graph, OUT_OF_MEMORY};
use parse::Program;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Multiprocessors, and blocks that each runs at the same time.
const PROCESSORS: u32 = 2;
const RESIDENT: u32 = 2;
/// Bytes of the memory of the card.
const MEMORY: u64 = 1 << 27;
/// Bytes of the memory of a block, at most and without being asked.
const SHARED: u32 = 227 << 10;
const DECLARED: u32 = 48 << 10;
/// Where the first memory begins.
const FIRST: u64 = 0x7_0000_0000;
/// A module was not understood.
const INVALID_PTX: u32 = 218;
/// A function that is not there.
const NOT_FOUND: u32 = 500;
/// An argument that cannot be.
const INVALID_VALUE: u32 = 1;
/// Memory that is nobody's.
const ILLEGAL_ADDRESS: u32 = 700;
/// An address that is no multiple of the size.
const MISALIGNED_ADDRESS: u32 = 716;

/// Names of the results that the tests see.
const NAMES: [(u32, &str); 8] = [
    (INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"),
    (OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"),
    (100, "CUDA_ERROR_NO_DEVICE"),
    (INVALID_PTX, "CUDA_ERROR_INVALID_PTX"),
    (NOT_FOUND, "CUDA_ERROR_NOT_FOUND"),
    (ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"),
    (MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS"),
    (719, "CUDA_ERROR_LAUNCH_FAILED"),
];

/// Which call fails, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plant {
    /// The function of [`Driver`].
    pub call: &'static str,
    /// So many calls of it are right before.
    pub after: usize,
    /// The number of the fault.
    pub code: u32,
}

/// What was asked of a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Launches one by one.
    pub launches: usize,
    /// Recordings.
    pub graphs: usize,
    /// Replays of a recording.
    pub replays: usize,
    /// Memory that was not given back.
    pub memories: usize,
    /// Modules that were not given back.
    pub modules: usize,
}

/// A launch, with parameters of its own.
#[derive(Clone)]
struct Launch {
    function: usize,
    /// Blocks, threads of a block, and bytes of its memory that are told.
    size: [u32; 3],
    params: Vec<u8>,
    /// All blocks at the same time.
    together: bool,
}

enum Work {
    Write(u64, Vec<u32>),
    /// To where, from where, and so many bytes.
    Copy(u64, u64, u64),
    Launch(Launch),
}

#[derive(Default)]
struct State {
    memory: Memory,
    programs: BTreeMap<usize, Program>,
    streams: BTreeMap<usize, Vec<Work>>,
    graphs: BTreeMap<usize, Vec<Launch>>,
    /// Bytes of the memory of a block that functions may be told, where they are more.
    shared: BTreeMap<usize, u32>,
    /// A fault of a launch stays: nothing works behind it.
    broken: Option<u32>,
    plants: Vec<Plant>,
    counts: Counts,
    next: usize,
}

/// Memory by where it begins.
#[derive(Default)]
struct Memory {
    all: Vec<(u64, Vec<u8>)>,
    /// Which was asked for last.
    last: usize,
    used: u64,
    next: u64,
}

/// A driver without a card.
#[derive(Default)]
pub struct Fake(Mutex<State>);

fn fault(code: u32) -> Fault {
    let name = NAMES.iter().find(|n| n.0 == code).map_or("CUDA_ERROR_UNKNOWN", |n| n.1);
    Fault { code, text: name.to_string() }
}

impl Memory {
    fn find(&mut self, at: u64, bytes: usize) -> Result<&mut [u8], u32> {
        if !at.is_multiple_of(bytes as u64) {
            return Err(MISALIGNED_ADDRESS);
        }
        let has = |m: &(u64, Vec<u8>)| m.0 <= at && at + bytes as u64 <= m.0 + m.1.len() as u64;
        if !self.all.get(self.last).is_some_and(has) {
            self.last = self.all.iter().position(has).ok_or(ILLEGAL_ADDRESS)?;
        }
        let (begin, memory) = &mut self.all[self.last];
        let at = (at - *begin) as usize;
        Ok(&mut memory[at..at + bytes])
    }
}

impl run::Words for Memory {
    fn load(&mut self, at: u64, bytes: usize) -> Result<u64, u32> {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(self.find(at, bytes)?);
        Ok(u64::from_le_bytes(word))
    }
    fn store(&mut self, at: u64, bytes: usize, value: u64) -> Result<(), u32> {
        self.find(at, bytes)?.copy_from_slice(&value.to_le_bytes()[..bytes]);
        Ok(())
    }
}

impl State {
    /// A call: it fails where it is to, or where nothing works any more.
    fn call(&mut self, name: &str) -> Answer<()> {
        if let Some(code) = self.broken {
            return Err(fault(code));
        }
        let Some(at) = self.plants.iter().position(|p| p.call == name) else { return Ok(()) };
        if let Some(less) = self.plants[at].after.checked_sub(1) {
            self.plants[at].after = less;
            return Ok(());
        }
        Err(fault(self.plants.remove(at).code))
    }

    fn number(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// Does what was asked of a stream.
    fn drain(&mut self, stream: usize) -> Answer<()> {
        let work = self.streams.get_mut(&stream).map(std::mem::take).ok_or_else(|| fault(INVALID_VALUE))?;
        for work in work {
            let done = match work {
                Work::Write(to, words) => {
                    words.iter().zip(0..).try_for_each(|(&w, k)| run::Words::store(&mut self.memory, to + 4 * k, 4, w.into()))
                }
                Work::Copy(to, from, bytes) => (0..bytes / 4).try_for_each(|k| {
                    let word = run::Words::load(&mut self.memory, from + 4 * k, 4)?;
                    run::Words::store(&mut self.memory, to + 4 * k, 4, word)
                }),
                Work::Launch(launch) => {
                    self.counts.launches += 1;
                    let backwards = self.counts.launches.is_multiple_of(2);
                    match self.call("run") {
                        Ok(()) => {
                            let order = run::Order { backwards, together: launch.together };
                            run::run(&self.programs[&launch.function], launch.size, &launch.params, &mut self.memory, order)
                        }
                        Err(fault) => Err(fault.code),
                    }
                }
            };
            if let Err(code) = done {
                self.broken = Some(code);
                return Err(fault(code));
            }
        }
        Ok(())
    }

    fn launch(&self, call: &Call) -> Answer<Launch> {
        let program = self.programs.get(&call.function).ok_or_else(|| fault(INVALID_VALUE))?;
        let mut params = call.heap.to_le_bytes().to_vec();
        params.extend(call.params.iter().flat_map(|w| w.to_le_bytes()));
        let fits =
            params.len() as u64 >= program.bytes && (1..=program.threads).contains(&call.threads) && (1..1 << 31).contains(&call.blocks);
        let size = [call.blocks, call.threads, call.shared];
        let let_have = self.shared.get(&call.function).copied().unwrap_or(DECLARED);
        let fits = fits && program.shared as u32 + call.shared <= let_have && program.told == (call.shared > 0);
        if fits { Ok(Launch { function: call.function, size, params, together: false }) } else { Err(fault(INVALID_VALUE)) }
    }
}

impl Fake {
    /// A driver on which these calls fail.
    pub fn with(plants: &[Plant]) -> Fake {
        let fake = Fake::default();
        fake.state().plants = plants.to_vec();
        fake
    }
    /// What was asked of it so far.
    pub fn counts(&self) -> Counts {
        let state = self.state();
        Counts { memories: state.memory.all.len(), modules: state.programs.len(), ..state.counts }
    }
    /// Has calls fail from now on.
    pub fn plant(&self, plant: Plant) {
        self.state().plants.push(plant);
    }
    /// Words of the second parameter of a function.
    pub fn params(&self, function: usize) -> usize {
        self.state().programs.get(&function).map_or(0, |p| (p.bytes as usize - 8) / 4)
    }
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver for Fake {
    fn is_fake(&self) -> bool {
        true
    }
    fn version(&self) -> Answer<u32> {
        self.state().call("version").map(|()| 12040)
    }
    fn cards(&self) -> Answer<Vec<Card>> {
        self.state().call("cards")?;
        Ok(vec![Card {
            name: "PTX interpreted by the processor".into(),
            capability: [9, 0],
            memory: MEMORY,
            processors: PROCESSORS,
            shared: SHARED,
        }])
    }
    fn open(&self, card: usize) -> Answer<usize> {
        self.state().call("open")?;
        if card == 0 { Ok(1) } else { Err(fault(INVALID_VALUE)) }
    }
    fn enter(&self, _: usize) -> Answer<()> {
        Ok(())
    }
    fn load(&self, text: &str) -> Answer<usize> {
        let mut state = self.state();
        state.call("load")?;
        let invalid = |why: String| Fault { text: why, ..fault(INVALID_PTX) };
        let program = parse::parse(text).map_err(invalid)?;
        assemble::wanted().map_or(Ok(()), |ptxas| assemble::assemble(&ptxas.into(), text)).map_err(invalid)?;
        let number = state.number();
        state.programs.insert(number, program);
        Ok(number)
    }
    fn unload(&self, module: usize) {
        let mut state = self.state();
        state.programs.remove(&module);
        state.shared.remove(&module);
    }
    fn function(&self, module: usize, name: &str) -> Answer<usize> {
        let mut state = self.state();
        state.call("function")?;
        if state.programs.get(&module).is_some_and(|p| p.name == name) { Ok(module) } else { Err(fault(NOT_FOUND)) }
    }
    fn allocate(&self, bytes: u64) -> Answer<u64> {
        let mut state = self.state();
        state.call("allocate")?;
        let memory = &mut state.memory;
        if bytes == 0 || memory.used + bytes > MEMORY {
            return Err(fault(if bytes == 0 { INVALID_VALUE } else { OUT_OF_MEMORY }));
        }
        let at = FIRST + memory.next;
        // Between two memories lies one that is nobody's.
        memory.next += bytes.next_multiple_of(256) + 256;
        memory.used += bytes;
        memory.all.push((at, vec![0xa5; bytes as usize]));
        Ok(at)
    }
    fn free(&self, at: u64) {
        let mut state = self.state();
        let streams: Vec<usize> = state.streams.keys().copied().collect();
        streams.into_iter().for_each(|s| drop(state.drain(s)));
        if let Some(k) = state.memory.all.iter().position(|m| m.0 == at) {
            let (_, memory) = state.memory.all.swap_remove(k);
            state.memory.used -= memory.len() as u64;
        }
    }
    fn stream(&self) -> Answer<usize> {
        let mut state = self.state();
        state.call("stream")?;
        let number = state.number();
        state.streams.insert(number, vec![]);
        Ok(number)
    }
    fn close(&self, stream: usize) {
        self.state().streams.remove(&stream);
    }
    fn write(&self, to: u64, words: &[u32], stream: usize) -> Answer<()> {
        let mut state = self.state();
        state.call("write")?;
        state.streams.entry(stream).or_default().push(Work::Write(to, words.to_vec()));
        Ok(())
    }
    fn read(&self, from: u64, words: &mut [u32], stream: usize) -> Answer<()> {
        let mut state = self.state();
        state.call("read")?;
        state.drain(stream)?;
        for (word, k) in words.iter_mut().zip(0..) {
            *word = run::Words::load(&mut state.memory, from + 4 * k, 4).map_err(fault)? as u32;
        }
        Ok(())
    }
    fn copy(&self, to: u64, from: u64, bytes: u64, stream: usize) -> Answer<()> {
        let mut state = self.state();
        state.call("copy")?;
        state.streams.entry(stream).or_default().push(Work::Copy(to, from, bytes));
        Ok(())
    }
    fn launch(&self, call: &Call, stream: usize) -> Answer<()> {
        let mut state = self.state();
        state.call("launch")?;
        let launch = state.launch(call)?;
        state.streams.entry(stream).or_default().push(Work::Launch(launch));
        Ok(())
    }
    fn launch_together(&self, call: &Call, stream: usize) -> Answer<()> {
        let mut state = self.state();
        state.call("launch_together")?;
        let launch = state.launch(call)?;
        if call.blocks > PROCESSORS * RESIDENT {
            return Err(fault(INVALID_VALUE));
        }
        state.streams.entry(stream).or_default().push(Work::Launch(Launch { together: true, ..launch }));
        Ok(())
    }
    fn share(&self, function: usize, bytes: u32) -> Answer<()> {
        let mut state = self.state();
        state.call("share")?;
        if bytes > SHARED || !state.programs.contains_key(&function) {
            return Err(fault(INVALID_VALUE));
        }
        state.shared.insert(function, bytes);
        Ok(())
    }
    fn resident(&self, function: usize, threads: u32, shared: u32) -> Answer<u32> {
        let mut state = self.state();
        state.call("resident")?;
        let fits = state.programs.get(&function).is_some_and(|p| threads <= p.threads);
        if fits { Ok(RESIDENT.min(SHARED / shared.max(1))) } else { Err(fault(INVALID_VALUE)) }
    }
    fn wait(&self, stream: usize) -> Answer<()> {
        let mut state = self.state();
        state.call("wait")?;
        state.drain(stream)
    }
    fn graph(&self, calls: &[Call]) -> Answer<Graph> {
        let mut state = self.state();
        state.call("graph")?;
        let launches = calls.iter().map(|c| state.launch(c)).collect::<Answer<Vec<Launch>>>()?;
        let executable = state.number();
        state.counts.graphs += 1;
        state.graphs.insert(executable, launches);
        Ok(Graph { executable, graph: executable, nodes: (0..calls.len()).collect() })
    }
    fn set(&self, graph: &Graph, node: usize, call: &Call) -> Answer<()> {
        let mut state = self.state();
        state.call("set")?;
        let launch = state.launch(call)?;
        let nodes = state.graphs.get_mut(&graph.executable).ok_or_else(|| fault(INVALID_VALUE))?;
        let old = nodes.get_mut(node).filter(|old| (old.function, old.size) == (launch.function, launch.size));
        *old.ok_or_else(|| fault(INVALID_VALUE))? = launch;
        Ok(())
    }
    fn replay(&self, graph: &Graph, stream: usize) -> Answer<()> {
        let mut state = self.state();
        state.call("replay")?;
        state.counts.replays += 1;
        let launches = state.graphs.get(&graph.executable).cloned().ok_or_else(|| fault(INVALID_VALUE))?;
        state.streams.entry(stream).or_default().extend(launches.into_iter().map(Work::Launch));
        Ok(())
    }
    fn forget(&self, graph: &Graph) {
        self.state().graphs.remove(&graph.executable);
    }
}
