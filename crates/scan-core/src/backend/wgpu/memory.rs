//! The memory of a call: a buffer, and launches that are gathered before they are handed over.

use super::open::{WINDOW, Wgpu, now};
use super::storage::Storage;
use super::wgsl::GROUP;
use crate::backend::gpu::kept::Pool;
use crate::backend::gpu::{Device, Memory, Program, lost};
use crate::base::Result;
use crate::types::device::DeviceMemory;
use crate::types::memory::OutOfMemory;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use wgpu::{Buffer, BufferUsages};

/// Bytes of the parameters of launches that are handed over together.
const PARAMS: u64 = 1 << 20;
/// Where parameters may begin.
const ALIGN: usize = 256;
/// Buffers that are kept for later calls: how many, and their bytes at most.
const KEPT: (usize, u64) = (16, 1 << 28);
pub(super) const STORAGE: BufferUsages = BufferUsages::STORAGE.union(BufferUsages::COPY_DST).union(BufferUsages::COPY_SRC);
const READ: BufferUsages = BufferUsages::MAP_READ.union(BufferUsages::COPY_DST);

/// Buffers that nobody uses.
pub(super) type Buffers = Pool<BufferUsages, Buffer>;

/// No buffers yet.
pub(super) fn none() -> Buffers {
    Pool::new(KEPT.0, KEPT.1)
}

/// The memory of a call.
pub(super) struct Heap {
    device: &'static Wgpu,
    buffer: Buffer,
    params: Buffer,
    group: wgpu::BindGroup,
    /// Launches that were not handed over yet: program, where its parameters begin, groups of invocations.
    waiting: Vec<(Arc<wgpu::ComputePipeline>, u32, [u32; 2])>,
    words: Vec<u32>,
}

impl Wgpu {
    /// A buffer of at least so many bytes.
    pub(super) fn buffer(&self, bytes: u64, usage: BufferUsages) -> Result<Buffer> {
        let size = bytes.max(1 << 8).next_power_of_two().min(self.limit() as u64).max(bytes.next_multiple_of(4));
        // One that is not much larger than asked for.
        if let Some((_, buffer)) = self.pool.take(&usage, size..=4 * size.max(1 << 12)) {
            return Ok(buffer);
        }
        let refused = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        match now(refused.pop()) {
            None => Ok(buffer),
            Some(_) => {
                let what = format!("a call on the device {}", self.name());
                Err(OutOfMemory { bytes: size.into(), machine: None }.diagnostic(&what))
            }
        }
    }
}

impl Wgpu {
    pub(super) fn keep(&self, buffer: Buffer) {
        self.pool.give(buffer.usage(), buffer.size(), buffer);
    }
    /// Copies words from one buffer to another, after all that was handed over.
    pub(super) fn copy(&self, (from, first): (&Buffer, usize), (to, at): (&Buffer, usize), words: usize) -> Result<()> {
        if words > 0 {
            let mut encoder = self.device.create_command_encoder(&Default::default());
            encoder.copy_buffer_to_buffer(from, 4 * first as u64, to, 4 * at as u64, 4 * words as u64);
            self.queue.submit([encoder.finish()]);
        }
        self.sound()
    }
    fn wait(&self) -> Result<()> {
        let polled = self.device.poll(wgpu::PollType::wait_indefinitely());
        polled.map_err(|e| lost(self.name(), &e.to_string()))?;
        self.sound()
    }
    /// Reads words of a buffer, after all that was handed over.
    pub(super) fn read(&self, buffer: &Buffer, at: usize, words: &mut [u32]) -> Result<()> {
        if words.is_empty() {
            return Ok(());
        }
        let size = 4 * words.len() as u64;
        let back = self.buffer(size, READ)?;
        self.copy((buffer, at), (&back, 0), words.len())?;
        let slice = back.slice(..size);
        let answer = Arc::new(Mutex::new(None));
        let told = answer.clone();
        slice.map_async(wgpu::MapMode::Read, move |done| *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(done));
        // Another thread that waits may be the one that is told.
        let done = loop {
            self.wait()?;
            if let Some(done) = answer.lock().unwrap_or_else(PoisonError::into_inner).take() {
                break done;
            }
            std::thread::yield_now();
        };
        done.map_err(|e: wgpu::BufferAsyncError| lost(self.name(), &e.to_string()))?;
        let view = slice.get_mapped_range().map_err(|e| lost(self.name(), &e.to_string()))?;
        for (word, bytes) in words.iter_mut().zip(view.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        drop(view);
        back.unmap();
        self.keep(back);
        Ok(())
    }
    /// Writes words to a buffer.
    pub(super) fn write(&self, buffer: &Buffer, at: usize, words: &[u32]) -> Result<()> {
        self.queue.write_buffer(buffer, 4 * at as u64, &bytes(words));
        self.sound()
    }
}

impl Heap {
    /// # Errors
    /// `E0392` where there is no memory.
    pub(super) fn new(device: &'static Wgpu, words: usize) -> Result<Heap> {
        let buffer = device.buffer(4 * words as u64, STORAGE)?;
        let params = device.buffer(PARAMS + WINDOW, BufferUsages::STORAGE.union(BufferUsages::COPY_DST))?;
        let window = wgpu::BufferBinding { buffer: &params, offset: 0, size: NonZeroU64::new(WINDOW) };
        let group = device.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &device.layout,
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: buffer.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: wgpu::BindingResource::Buffer(window) },
            ],
        });
        Ok(Heap { device, buffer, params, group, waiting: vec![], words: vec![] })
    }

    /// Hands over what was launched.
    fn hand_over(&mut self) -> Result<()> {
        if !self.waiting.is_empty() {
            self.device.queue.write_buffer(&self.params, 0, &bytes(&self.words));
            let mut encoder = self.device.device.create_command_encoder(&Default::default());
            let mut pass = encoder.begin_compute_pass(&Default::default());
            for (pipeline, at, [x, y]) in &self.waiting {
                pass.set_pipeline(pipeline);
                pass.set_bind_group(0, &self.group, &[*at]);
                pass.dispatch_workgroups(*x, *y, 1);
            }
            drop(pass);
            self.device.queue.submit([encoder.finish()]);
            self.waiting.clear();
            self.words.clear();
        }
        self.device.sound()
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// How many groups there are along two axes.
fn groups(invocations: usize) -> [u32; 2] {
    const MOST: usize = 1 << 15;
    let groups = invocations.div_ceil(GROUP);
    [groups.min(MOST) as u32, groups.div_ceil(MOST) as u32]
}

impl Memory for Heap {
    fn write(&mut self, at: usize, words: &[u32]) -> Result<()> {
        self.hand_over()?;
        self.device.write(&self.buffer, at, words)
    }

    fn read(&mut self, at: usize, words: &mut [u32]) -> Result<()> {
        self.hand_over()?;
        self.device.read(&self.buffer, at, words)
    }

    fn copy_in(&mut self, at: usize, from: &dyn DeviceMemory, first: usize, words: usize) -> Result<()> {
        self.hand_over()?;
        self.device.copy((Storage::buffer(from)?, first), (&self.buffer, at), words)
    }

    fn copy_out(&mut self, at: usize, to: &dyn DeviceMemory, first: usize, words: usize) -> Result<()> {
        self.hand_over()?;
        self.device.copy((&self.buffer, at), (Storage::buffer(to)?, first), words)
    }

    fn launch(&mut self, program: &Program, params: &[u32], invocations: usize) -> Result<()> {
        let pipeline = program.clone().downcast::<wgpu::ComputePipeline>().expect("a program of this device");
        if invocations == 0 {
            return Ok(());
        }
        if 4 * (self.words.len() + params.len()) as u64 > PARAMS {
            self.hand_over()?;
        }
        let at = 4 * self.words.len();
        self.words.extend(params);
        self.words.resize(self.words.len().next_multiple_of(ALIGN / 4), 0);
        self.waiting.push((pipeline, at as u32, groups(invocations)));
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.hand_over()?;
        self.device.wait()
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.finish().is_ok() {
            self.device.keep(self.buffer.clone());
            self.device.keep(self.params.clone());
        }
    }
}
