//! Adapters, and devices as they are opened: once per process, and probed.

use super::memory::{Buffers, Heap, none};
use super::storage::Storage;
use super::{spirv, wgsl};
use crate::backend::cpu::Refusal;
use crate::backend::gpu::kept::Programs;
use crate::backend::gpu::launch::MOST;
use crate::backend::gpu::{Adapter, Device, DeviceRef, Memory, Program, Shape, Traits, lost, probe};
use crate::base::{Diagnostic, Kind, Result};
use crate::kernel::Kernel;
use crate::types::device::DeviceMemory;
use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// Bytes of the memory of parameters that a program sees.
pub(super) const WINDOW: u64 = 4 * MOST as u64;

/// An open device.
pub(super) struct Wgpu {
    name: String,
    about: String,
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) layout: wgpu::BindGroupLayout,
    pipelines: wgpu::PipelineLayout,
    traits: RwLock<Traits>,
    limits: wgpu::Limits,
    pub(super) pool: Buffers,
    made: Programs<(Kernel, Shape), wgpu::ComputePipeline>,
    /// The first thing that went wrong and was not asked for.
    fault: Arc<Mutex<Option<String>>>,
}

/// Waits for what does not really wait: answers of this interface are there at once.
pub(super) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
        std::thread::yield_now();
    }
}

fn found() -> &'static [wgpu::Adapter] {
    static FOUND: OnceLock<Vec<wgpu::Adapter>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut wanted = wgpu::InstanceDescriptor::new_without_display_handle();
        wanted.backends = wgpu::Backends::VULKAN;
        wanted.flags = wgpu::InstanceFlags::empty();
        let instance = wgpu::Instance::new(wanted);
        let mut all = now(instance.enumerate_adapters(wgpu::Backends::VULKAN));
        // Programs that run on the processor come last.
        all.sort_by_key(|a| a.get_info().device_type == wgpu::DeviceType::Cpu);
        all
    })
}

/// The adapters of this machine, real ones first.
pub fn adapters() -> Vec<Adapter> {
    let describe = |(k, adapter): (usize, &wgpu::Adapter)| {
        let info = adapter.get_info();
        let software = info.device_type == wgpu::DeviceType::Cpu;
        let driver = format!("{} {}", info.driver, info.driver_info);
        let kind = if software { ", a program on the processor" } else { "" };
        Adapter { name: format!("wgpu:{k}"), about: format!("{} (Vulkan, {}{kind})", info.name, driver.trim()), software }
    };
    found().iter().enumerate().map(describe).collect()
}

/// The device `k` of [`adapters`], opened and probed the first time that it is asked for.
///
/// # Errors
/// `E0521` where there is none, or where it cannot be opened.
pub fn open(k: usize) -> Result<DeviceRef> {
    static OPEN: Mutex<Vec<(usize, &'static Wgpu)>> = Mutex::new(vec![]);
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, device)) = open.iter().find(|d| d.0 == k) {
        return Ok(DeviceRef(*device));
    }
    let Some(adapter) = found().get(k) else {
        let have = adapters().iter().map(|a| a.name.clone()).collect::<Vec<_>>().join(", ");
        let error = Diagnostic::new(Kind::Device, "E0521", format!("there is no device wgpu:{k}"));
        return Err(match have.is_empty() {
            true => error.note("Vulkan has no adapter here: no driver is installed, or none that can be loaded"),
            false => error.note(format!("there are {have}")),
        });
    };
    let about = adapters()[k].about.clone();
    // Opened once per process, and used as long as that runs.
    let device: &'static Wgpu = Box::leak(Box::new(Wgpu::new(adapter, format!("wgpu:{k}"), about)?));
    probe::probe(DeviceRef(device))?;
    open.push((k, device));
    Ok(DeviceRef(device))
}

impl Wgpu {
    fn new(adapter: &wgpu::Adapter, name: String, about: String) -> Result<Wgpu> {
        use wgpu::Features;
        let refuse = |why: String| Diagnostic::new(Kind::Device, "E0521", format!("the device {name}, {about}, cannot be used: {why}"));
        let has = adapter.features();
        if !has.contains(Features::PASSTHROUGH_SHADERS) {
            return Err(refuse("it takes no SPIR-V as it is".into()));
        }
        let wanted = Features::PASSTHROUGH_SHADERS | (has & (Features::SHADER_F64 | Features::SHADER_INT64));
        let limits = adapter.limits();
        let descriptor = wgpu::DeviceDescriptor {
            label: None,
            required_features: wanted,
            required_limits: limits.clone(),
            // SAFETY: the shaders handed over are made here alone, from kernels that were checked.
            experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        };
        let (device, queue) = now(adapter.request_device(&descriptor)).map_err(|e| refuse(e.to_string()))?;
        let fault: Arc<Mutex<Option<String>>> = Arc::default();
        let noted = fault.clone();
        device.on_uncaptured_error(Arc::new(move |e| {
            noted.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e.to_string());
        }));
        let (layout, pipelines) = layouts(&device);
        let lacks = |feature, what: &str| (!wanted.contains(feature)).then(|| format!("the adapter has no {what}"));
        let (no_f64, no_i64) = (lacks(Features::SHADER_F64, "SHADER_F64"), lacks(Features::SHADER_INT64, "SHADER_INT64"));
        let traits = RwLock::new(Traits { no_f64, no_i64, ..Traits::default() });
        let (pool, made) = (none(), Programs::default());
        Ok(Wgpu { name, about, device, queue, layout, pipelines, traits, limits, pool, made, fault })
    }

    /// Fails where something went wrong that was not asked for.
    pub(super) fn sound(&self) -> Result<()> {
        match &*self.fault.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(why) => Err(lost(&self.name, why)),
            None => Ok(()),
        }
    }

    fn pipeline(&self, kernel: &Kernel, shape: &Shape) -> Result<std::result::Result<wgpu::ComputePipeline, Refusal>> {
        let traits = self.traits();
        let has = [traits.no_f64.is_none(), traits.no_i64.is_none()];
        let text = wgsl::text(kernel, shape, traits.fused);
        let words = match text.and_then(|text| spirv::module(&text, has).map_err(Refusal)) {
            Ok(words) => words,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let entry = wgpu::PassthroughShaderEntryPoint { name: wgsl::ENTRY.into(), workgroup_size: (wgsl::GROUP as u32, 1, 1) };
        let descriptor = wgpu::ShaderModuleDescriptorPassthrough {
            entry_points: Cow::Owned(vec![entry]),
            spirv: Some(Cow::Owned(words)),
            ..Default::default()
        };
        // SAFETY: the module was made here and validated; every launch checks that operands lie in their memory.
        let module = unsafe { self.device.create_shader_module_passthrough(descriptor) };
        Ok(Ok(self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&self.pipelines),
            module: &module,
            entry_point: Some(wgsl::ENTRY),
            compilation_options: Default::default(),
            cache: None,
        })))
    }
}

/// The memory of a call, and the parameters of a launch.
fn layouts(device: &wgpu::Device) -> (wgpu::BindGroupLayout, wgpu::PipelineLayout) {
    let entry = |binding, read_only, has_dynamic_offset| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only },
            has_dynamic_offset,
            min_binding_size: NonZeroU64::new(4),
        },
        count: None,
    };
    let entries = [entry(0, false, false), entry(1, true, true)];
    let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
    let groups = [Some(&layout)];
    let pipelines =
        device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor { label: None, bind_group_layouts: &groups, ..Default::default() });
    (layout, pipelines)
}

impl Device for Wgpu {
    fn name(&self) -> &str {
        &self.name
    }
    fn about(&self) -> &str {
        &self.about
    }
    fn traits(&self) -> Traits {
        self.traits.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn assume(&self, traits: Traits) {
        *self.traits.write().unwrap_or_else(PoisonError::into_inner) = traits;
    }
    fn limit(&self) -> usize {
        let limits = &self.limits;
        usize::try_from(limits.max_storage_buffer_binding_size.min(limits.max_buffer_size)).unwrap_or(usize::MAX)
    }
    fn compile(&self, kernel: &Kernel, shape: &Shape) -> Result<std::result::Result<Program, Refusal>> {
        Ok(self.made.of((kernel.clone(), *shape), |(kernel, shape)| self.pipeline(kernel, shape))?.map(|program| program as Program))
    }
    fn memory(&'static self, words: usize) -> Result<Box<dyn Memory>> {
        Ok(Box::new(Heap::new(self, words)?))
    }
    fn storage(&'static self, words: usize) -> Result<Arc<dyn DeviceMemory>> {
        Ok(Arc::new(Storage::new(self, words)?))
    }
}
