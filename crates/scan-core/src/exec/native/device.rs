//! A kernel on a device with a memory of its own: what it reads goes there, what it writes comes back.

use super::home::Home;
use super::portion::Portion;
use crate::backend::cpu::{Memory, Operand};
use crate::backend::gpu::heap::Plan;
use crate::backend::gpu::launch::{Base, MOST_STEPS, ahead};
use crate::backend::gpu::{DeviceRef, Launch, Region, Space, host};
use crate::base::Result;
use crate::base::clock::Instant;
use crate::ir::EvalCx;
use crate::kernel::{Kernel, MemId};
use crate::types::DType;
use crate::types::device::Resident;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// lanes × steps × instructions of the first launch of a kernel.
const FIRST: usize = 1 << 22;

/// A kernel on a device.
pub struct OnDevice {
    device: DeviceRef,
    /// The launch of the last call, with its lanes and strides, and what it reads ahead.
    last: Mutex<Option<(usize, Vec<isize>, u64, Arc<Launch>)>>,
    /// Why it runs on the host.
    refusal: Mutex<Option<String>>,
    /// lanes × steps × instructions of a launch.
    portion: Portion,
    /// Bytes that crossed in the last call, to the device and back.
    crossed: [AtomicU64; 2],
    /// Calls that needed the host after all.
    given_up: AtomicU64,
}

/// Memory of the host that operands lie in, and what of it is touched.
struct Touched<'a> {
    memory: Memory<'a>,
    dtype: DType,
    all: Range<usize>,
    written: Option<Range<usize>>,
    /// Something is read before it is written.
    read: bool,
}

impl OnDevice {
    /// Nothing is compiled yet.
    pub fn new(device: DeviceRef) -> OnDevice {
        OnDevice {
            device,
            last: Mutex::default(),
            refusal: Mutex::default(),
            portion: Portion::new(FIRST, 16.0),
            crossed: Default::default(),
            given_up: AtomicU64::new(0),
        }
    }
    /// The device's name.
    pub fn name(&self) -> &'static str {
        self.device.0.name()
    }
    /// Where what it reads and writes is to lie; with the host where the device has no program for it.
    pub fn home(&self) -> Home {
        Home((!self.is_refused()).then_some(self.device))
    }
    /// Notes what crossed in a call.
    pub fn note(&self, crossed: [u64; 2]) {
        self.crossed.iter().zip(crossed).for_each(|(c, n)| c.store(n, Ordering::Relaxed));
    }
    /// Why it runs on the host, always or sometimes.
    pub fn refusal(&self) -> Option<String> {
        let often = self.given_up.load(Ordering::Relaxed);
        let given_up = (often > 0).then(|| format!("{often} calls took values of the host's functions and ran there"));
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone().or(given_up)
    }
    /// True where it has no program.
    pub fn is_refused(&self) -> bool {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
    /// Bytes that crossed in the last call, to the device and back.
    pub fn crossed(&self) -> [u64; 2] {
        self.crossed.each_ref().map(|c| c.load(Ordering::Relaxed))
    }

    /// Runs at most so many steps on operands in the memory of the host or of the device; how many ran. `None` where the host must run them: nothing was written.
    ///
    /// # Errors
    /// `E0522` where the device lacks a dtype, `E0392` where it has no memory, `E0523` where it fails; an interruption.
    pub fn run(
        &self,
        cx: &mut EvalCx,
        kernel: &Kernel,
        operands: &[Operand],
        lanes: usize,
        steps: usize,
        first: i64,
    ) -> Result<Option<usize>> {
        if lanes == 0 || steps == 0 {
            return Ok(Some(steps));
        }
        let Some(launch) = self.launch(kernel, operands, lanes)? else { return Ok(None) };
        let touched = touched(kernel, operands, lanes, steps);
        let mut plan = Plan::new();
        // What lies on the device stays there, unless it must be as it was where the host runs the kernel after all.
        let sure = host::taken(kernel).is_ok_and(|taken| taken.is_empty());
        let stays = |t: &Touched| self.device.0.reaches() && t.resident().is_some() && (sure || t.written.is_none());
        let laid: SmallVec<[Option<Region>; 8]> =
            touched.iter().map(|t| (!stays(t)).then(|| plan.region(t.dtype, t.all.clone()))).collect();
        let mut space = Space::new(self.device, &plan)?;
        let mut regions: SmallVec<[Region; 8]> = SmallVec::new();
        for (region, t) in laid.iter().zip(&touched) {
            if let (Some(region), true) = (region, t.read) {
                space.bring(region, t.memory, t.all.clone())?;
            }
            regions.push(match (region, t.resident()) {
                (None, Some(array)) => space.resident(array, t.all.clone())?,
                (region, _) => region.expect("laid out"),
            });
        }
        let at = |o: &Operand| touched.iter().position(|t| t.memory.span() == o.memory.span()).expect("memory of an operand");
        let bases: Vec<_> = operands.iter().map(|o| (regions[at(o)], o.offset)).collect();
        let ran = self.steps(cx, &mut space, &launch, &bases, steps, first)?;
        if let Some(ran) = ran {
            for (region, t) in laid.iter().zip(&touched) {
                if let (Some(region), Some(written)) = (region, &t.written) {
                    space.take(region, t.memory, written.clone())?;
                }
            }
            // What is handed over lies there for whoever asks next.
            space.finish()?;
            return Ok(Some(ran));
        }
        self.given_up.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    }

    /// The steps, launch after launch; `None` where one needed the host.
    fn steps(
        &self,
        cx: &mut EvalCx,
        space: &mut Space,
        launch: &Launch,
        operands: &[(Region, usize)],
        steps: usize,
        first: i64,
    ) -> Result<Option<usize>> {
        let mut done = 0;
        while done < steps {
            let now = (self.portion.next() / launch.work(1).max(1)).clamp(1, (steps - done).min(MOST_STEPS));
            let bases: Vec<_> = launch
                .kernel()
                .mems
                .ids()
                .zip(operands)
                .map(|(mem, (region, offset))| {
                    let base = region.base(*offset);
                    let by = if is_carried(launch.kernel(), mem) { 0 } else { launch.moves(mem, done) };
                    Base { at: base.at.wrapping_add_signed(by), ..base }
                })
                .collect();
            let start = Instant::now();
            space.run(launch, &bases, now, first + done as i64)?;
            let status = space.status()?;
            self.portion.measured(launch.work(now), start.elapsed());
            if status.taken {
                return Ok(None);
            }
            done += if launch.kernel().stop.is_some() { status.ran } else { now };
            if status.stopped {
                break;
            }
            if done < steps {
                cx.check_clock()?;
            }
        }
        Ok(Some(done))
    }

    fn launch(&self, kernel: &Kernel, operands: &[Operand], lanes: usize) -> Result<Option<Arc<Launch>>> {
        if self.is_refused() {
            return Ok(None);
        }
        let strides: Vec<isize> = kernel.mems.ids().zip(operands).map(|(m, o)| if is_carried(kernel, m) { 0 } else { o.stride }).collect();
        let ahead = ahead(kernel, |mem| {
            let memory = operands[mem.0 as usize].memory.span();
            let written = kernel.mems.ids().filter(|&m| kernel.writes(m));
            written.into_iter().all(|m| operands[m.0 as usize].memory.span() != memory)
        });
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((n, known, early, launch)) = &*last
            && (*n, known, *early) == (lanes, &strides, ahead)
        {
            return Ok(Some(launch.clone()));
        }
        match Launch::of_kernel(self.device, kernel, lanes, strides.iter().copied(), ahead)? {
            Ok(launch) => {
                let launch = Arc::new(launch);
                *last = Some((lanes, strides, ahead, launch.clone()));
                Ok(Some(launch))
            }
            Err(refusal) => {
                *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal.0);
                Ok(None)
            }
        }
    }
}

fn is_carried(kernel: &Kernel, mem: MemId) -> bool {
    kernel.carries.iter().any(|c| c.mem == mem)
}

/// The memories of operands, and what of them a call touches.
fn touched<'a>(kernel: &Kernel, operands: &[Operand<'a>], lanes: usize, steps: usize) -> Vec<Touched<'a>> {
    let mut found: Vec<Touched> = vec![];
    for ((mem, kind), o) in kernel.mems.enumerate().zip(operands) {
        let (carried, stored) = (is_carried(kernel, mem), kernel.stores.iter().any(|s| s.mem == mem));
        let (before, row) = kind.row(lanes);
        let span = if carried { 0 } else { o.stride * (steps as isize - 1) };
        let (low, high) = (o.offset as isize + span.min(0) + before, o.offset as isize + span.max(0) + row);
        let range = low as usize..high as usize;
        // What is stored without gaps need not be there before.
        let dense = stored && kernel.stop.is_none() && (steps == 1 || o.stride.abs() == row);
        let own = Touched {
            memory: o.memory,
            dtype: kind.dtype,
            all: range.clone(),
            written: (carried || stored).then_some(range),
            read: !dense,
        };
        match found.iter_mut().find(|t| t.memory.span() == o.memory.span()) {
            Some(t) => t.add(own),
            None => found.push(own),
        }
    }
    found
}

impl<'a> Touched<'a> {
    /// The array, where it lies on a device.
    fn resident(&self) -> Option<&'a Resident> {
        match self.memory {
            Memory::Device(array) | Memory::DeviceMut(array) => Some(array),
            Memory::Read(_) | Memory::Write(_) => None,
        }
    }
    fn add(&mut self, other: Touched) {
        let both = |a: &Range<usize>, b: &Range<usize>| a.start.min(b.start)..a.end.max(b.end);
        self.all = both(&self.all, &other.all);
        self.read = true;
        self.written = match (&self.written, &other.written) {
            (Some(a), Some(b)) => Some(both(a, b)),
            (a, b) => a.clone().or(b.clone()),
        };
    }
}
