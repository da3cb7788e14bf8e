//! The memory of a call: a heap on the card, a stream, and launches that are gathered before they are handed over.
//!
//! A list of steps launches the same programs again and again: a sequence that comes a second time is recorded as a graph, and from then on
//! its launches get new parameters and are handed over as one.

use super::driver::{Call, Driver, Fault, Graph, OUT_OF_MEMORY};
use super::open::Cuda;
use super::storage::Storage;
use super::text::GROUP;
use crate::backend::gpu::{Device, Memory, Program, lost};
use crate::base::{Diagnostic, Result};
use crate::types::device::DeviceMemory;
use crate::types::memory::OutOfMemory;
use std::sync::Arc;

/// Launches that are handed over together.
const GATHERED: usize = 64;
/// Invocations that a multiprocessor runs together.
const WARP: usize = 32;
/// Fewer than so many launches are not worth a recording.
const RECORDED: usize = 8;

/// A kernel as a card runs it.
pub(super) struct Function {
    pub(super) driver: &'static dyn Driver,
    pub(super) context: usize,
    pub(super) module: usize,
    pub(super) function: usize,
    /// So many blocks run at the same time.
    pub(super) most: u32,
    /// Bytes of the memory of a block that launches are told.
    pub(super) shared: u32,
    /// Its invocations share nothing: a block may have any number of them.
    pub(super) alone: bool,
}

impl Drop for Function {
    fn drop(&mut self) {
        if self.driver.enter(self.context).is_ok() {
            self.driver.unload(self.module);
        }
    }
}

/// Memory on a card.
pub(super) struct Block {
    device: &'static Cuda,
    pub(super) at: u64,
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            self.device.driver.free(self.at);
        }
    }
}

/// What is done in order.
pub(super) struct Stream {
    device: &'static Cuda,
    stream: usize,
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            self.device.driver.close(self.stream);
        }
    }
}

/// What launches are of: their functions, blocks, and invocations of a block.
pub(super) type Sequence = Vec<(usize, [u32; 2])>;

/// A recording, with the functions that it runs.
pub(super) struct Recording {
    device: &'static Cuda,
    graph: Graph,
    _functions: Vec<Arc<Function>>,
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            self.device.driver.forget(&self.graph);
        }
    }
}

/// A launch that was not handed over yet.
struct Waiting {
    function: Arc<Function>,
    blocks: u32,
    threads: u32,
    params: Vec<u32>,
}

/// The memory of a call.
pub(super) struct Heap {
    device: &'static Cuda,
    block: Option<(u64, Block)>,
    stream: Option<Stream>,
    waiting: Vec<Waiting>,
    /// The sequence that was handed over last.
    before: Sequence,
    recording: Option<(Sequence, Recording)>,
}

/// Bytes from which on memory is not rounded up to a power of two.
const LARGE: u64 = 1 << 26;

fn rounded(bytes: u64) -> u64 {
    if bytes < LARGE { bytes.next_power_of_two() } else { bytes.next_multiple_of(LARGE) }
}

impl Cuda {
    /// Memory of at least so many bytes, with its size. What is kept for later goes where there is none.
    pub(super) fn block(&'static self, bytes: u64) -> Result<(u64, Block)> {
        let size = rounded(bytes.max(1 << 12)).min(self.limit() as u64).max(bytes);
        if let Some(found) = self.blocks.take(&(), size..=4 * size) {
            return Ok(found);
        }
        let made = self.driver.allocate(size).map(|at| (size, at)).or_else(|fault| {
            self.blocks.clear();
            let least = bytes.max(1 << 12);
            if fault.code == OUT_OF_MEMORY { self.driver.allocate(least).map(|at| (least, at)) } else { Err(fault) }
        });
        match made {
            Ok((size, at)) => Ok((size, Block { device: self, at })),
            Err(fault) => Err(self.failed(fault, bytes)),
        }
    }

    /// Invocations of a block, where there are so many in all: few blocks are not to leave multiprocessors idle.
    fn threads(&self, invocations: usize) -> usize {
        let enough = |&threads: &usize| invocations.div_ceil(threads) >= 2 * self.target.processors;
        [GROUP, GROUP / 2].into_iter().find(enough).unwrap_or(WARP)
    }
    /// A stream.
    fn stream(&'static self) -> std::result::Result<Stream, Fault> {
        match self.streams.take(&(), 0..=0) {
            Some((_, stream)) => Ok(stream),
            None => Ok(Stream { device: self, stream: self.driver.stream()? }),
        }
    }
    /// What the driver is asked outside of calls, done when this returns.
    ///
    /// # Errors
    /// `E0523` where the card fails.
    pub(super) fn done(&'static self, what: impl FnOnce(&'static dyn Driver, usize) -> std::result::Result<(), Fault>) -> Result<()> {
        let done = || {
            self.enter()?;
            let stream = self.stream()?;
            what(self.driver, stream.stream)?;
            self.driver.wait(stream.stream)?;
            self.streams.give((), 0, stream);
            Ok(())
        };
        done().map_err(|fault| self.failed(fault, 0))
    }

    /// The error of a call that asked for so much memory.
    pub(super) fn failed(&self, fault: Fault, bytes: u64) -> Box<Diagnostic> {
        if fault.code == OUT_OF_MEMORY {
            let what = format!("a call on the device {}", self.name());
            return OutOfMemory { bytes: bytes.into(), machine: None }.diagnostic(&what);
        }
        lost(self.name(), &fault.to_string())
    }
}

impl Heap {
    /// # Errors
    /// `E0392` where there is no memory, `E0523` where the card fails.
    pub(super) fn new(device: &'static Cuda, words: usize) -> Result<Heap> {
        let bytes = 4 * words as u64;
        device.enter().map_err(|f| device.failed(f, bytes))?;
        let stream = device.stream().map_err(|f| device.failed(f, bytes))?;
        let mut heap = Heap { device, block: None, stream: Some(stream), waiting: vec![], before: vec![], recording: None };
        heap.block = Some(device.block(bytes)?);
        Ok(heap)
    }

    fn at(&self) -> u64 {
        self.block.as_ref().map_or(0, |b| b.1.at)
    }

    fn stream(&self) -> usize {
        self.stream.as_ref().map_or(0, |s| s.stream)
    }

    /// What the driver is asked, in this device's context.
    fn ask<T>(&self, what: impl FnOnce(&'static dyn Driver) -> std::result::Result<T, Fault>) -> Result<T> {
        let done = self.device.enter().and_then(|()| what(self.device.driver));
        done.map_err(|fault| self.device.failed(fault, 0))
    }

    fn copied(&mut self, to: u64, from: u64, words: usize) -> Result<()> {
        self.hand_over(self.waiting.len())?;
        if words == 0 { Ok(()) } else { self.ask(|driver| driver.copy(to, from, 4 * words as u64, self.stream())) }
    }

    /// Hands over the first launches that wait.
    fn hand_over(&mut self, count: usize) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let now: Vec<Waiting> = self.waiting.drain(..count).collect();
        let sequence: Sequence = now.iter().map(|w| (w.function.function, [w.blocks, w.threads])).collect();
        if now.len() >= RECORDED && self.recorded(&sequence, &now)? {
            return Ok(());
        }
        self.before = sequence;
        now.iter().try_for_each(|w| self.ask(|driver| driver.launch(&w.call(self.at()), self.stream())))
    }

    /// Replays launches, if they are worth a recording.
    fn recorded(&mut self, sequence: &Sequence, now: &[Waiting]) -> Result<bool> {
        if self.recording.as_ref().is_none_or(|r| r.0 != *sequence) {
            self.keep_recording();
            let kept = self.device.recordings.take(sequence, 1..=1).map(|r| r.1);
            match kept {
                Some(recording) => self.recording = Some((sequence.clone(), recording)),
                None if self.before == *sequence => return self.record(sequence, now).map(|()| true),
                None => return Ok(false),
            }
        }
        let Some((_, recording)) = &self.recording else { return Ok(false) };
        self.ask(|driver| {
            now.iter().enumerate().try_for_each(|(node, w)| driver.set(&recording.graph, node, &w.call(self.at())))?;
            driver.replay(&recording.graph, self.stream())
        })?;
        Ok(true)
    }

    /// Records launches, and does them.
    fn record(&mut self, sequence: &Sequence, now: &[Waiting]) -> Result<()> {
        let calls: Vec<Call> = now.iter().map(|w| w.call(self.at())).collect();
        let graph = self.ask(|driver| driver.graph(&calls))?;
        let functions = now.iter().map(|w| w.function.clone()).collect();
        let recording = Recording { device: self.device, graph, _functions: functions };
        self.ask(|driver| driver.replay(&recording.graph, self.stream()))?;
        self.recording = Some((sequence.clone(), recording));
        Ok(())
    }

    fn keep_recording(&mut self) {
        if let Some((sequence, recording)) = self.recording.take() {
            self.device.recordings.give(sequence, 1, recording);
        }
    }

    /// How many of the launches that wait are whole repetitions of the shortest sequence that they repeat.
    fn whole(&self) -> usize {
        let is = |a: &Waiting, b: &Waiting| Arc::ptr_eq(&a.function, &b.function) && a.blocks == b.blocks && a.threads == b.threads;
        let all = &self.waiting;
        let period = (1..all.len()).find(|&p| all.iter().zip(&all[p..]).all(|(a, b)| is(a, b))).unwrap_or(all.len());
        all.len() / period * period
    }
}

impl Waiting {
    fn call(&self, heap: u64) -> Call<'_> {
        Call {
            function: self.function.function,
            blocks: self.blocks,
            threads: self.threads,
            shared: self.function.shared,
            heap,
            params: &self.params,
        }
    }
}

impl Memory for Heap {
    fn write(&mut self, at: usize, words: &[u32]) -> Result<()> {
        self.hand_over(self.waiting.len())?;
        if words.is_empty() {
            return Ok(());
        }
        self.ask(|driver| driver.write(self.at() + 4 * at as u64, words, self.stream()))
    }

    fn read(&mut self, at: usize, words: &mut [u32]) -> Result<()> {
        self.hand_over(self.waiting.len())?;
        if words.is_empty() {
            return Ok(());
        }
        self.ask(|driver| driver.read(self.at() + 4 * at as u64, words, self.stream()))
    }

    fn copy_in(&mut self, at: usize, from: &dyn DeviceMemory, first: usize, words: usize) -> Result<()> {
        self.copied(self.at() + 4 * at as u64, Storage::at(from)? + 4 * first as u64, words)
    }

    fn copy_out(&mut self, at: usize, to: &dyn DeviceMemory, first: usize, words: usize) -> Result<()> {
        self.copied(Storage::at(to)? + 4 * first as u64, self.at() + 4 * at as u64, words)
    }

    fn reach(&self, of: &dyn DeviceMemory) -> Result<usize> {
        // Both begin at words.
        Ok(((Storage::at(of)?.wrapping_sub(self.at())) as i64 >> 2) as usize)
    }

    fn launch(&mut self, program: &Program, params: &[u32], invocations: usize) -> Result<()> {
        let function = program.clone().downcast::<Function>().expect("a program of this device");
        if invocations == 0 {
            return Ok(());
        }
        let threads = if function.alone { self.device.threads(invocations) } else { GROUP };
        let blocks = invocations.div_ceil(threads) as u32;
        self.waiting.push(Waiting { function, blocks, threads: threads as u32, params: params.to_vec() });
        if self.waiting.len() >= GATHERED { self.hand_over(self.whole()) } else { Ok(()) }
    }

    fn run_whole(&mut self, program: &Program, params: &[u32], counter: usize, invocations: usize) -> Result<()> {
        let function = program.clone().downcast::<Function>().expect("a program of this device");
        self.write(counter, &[0])?;
        let blocks = invocations.div_ceil(GROUP).clamp(1, function.most as usize) as u32;
        let call = Call { function: function.function, blocks, threads: GROUP as u32, shared: function.shared, heap: self.at(), params };
        self.ask(|driver| driver.launch_together(&call, self.stream()))
    }

    fn finish(&mut self) -> Result<()> {
        self.hand_over(self.waiting.len())?;
        self.ask(|driver| driver.wait(self.stream()))
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.finish().is_ok() {
            self.keep_recording();
            self.stream.take().into_iter().for_each(|stream| self.device.streams.give((), 0, stream));
            self.block.take().into_iter().for_each(|(size, block)| self.device.blocks.give((), size, block));
        }
    }
}
