//! Devices by name, and which parts of a function run where.

use super::native::{Engine, NativeLoop, NativeMap, Region};
use crate::backend::gpu::{Adapter, DeviceRef};
use crate::base::{Diagnostic, Kind, Result, Span};
use crate::ir::op::NativeRef;
use crate::ir::{Graph, Node, Op};
use crate::types::device::Site;
use std::sync::Arc;

/// A device of this machine.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert_eq!(devices()[0].name, "cpu");
/// ```
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// As functions ask for it: `cpu`, `wgpu:0`.
    pub name: String,
    /// What it is, in words.
    pub about: String,
    /// It is a program that runs on the processor.
    pub software: bool,
    /// What it lacks, and why; why it cannot be used at all.
    pub lacks: Vec<String>,
}

/// A part of a function's plan on a device.
///
/// ```
/// use scan_core::prelude::*;
///
/// let f = function(&[], &[&Var::number(1.0).exp()]).engine(Engine::Vm).compile()?;
/// assert!(f.places().is_empty(), "it runs on no device");
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Placed {
    /// The op's name.
    pub op: String,
    /// Where the user wrote it.
    pub span: Span,
    /// The device that it runs on; `None`: the host.
    pub device: Option<String>,
    /// Why it runs on the host.
    pub why: Option<String>,
    /// Bytes that crossed in the last call, to the device and back.
    pub crossed: [u64; 2],
}

/// What this machine has: the processor, then adapters, real ones first. They are opened for it.
///
/// ```
/// use scan_core::prelude::*;
///
/// for device in devices() {
///     println!("{}: {}", device.name, device.about);
/// }
/// ```
pub fn devices() -> Vec<DeviceInfo> {
    let cpu = DeviceInfo { name: "cpu".into(), about: "the processor".into(), software: false, lacks: vec![] };
    std::iter::once(cpu).chain(adapters()).collect()
}

/// Adapters of one kind, and the functions that tell of them and open one.
type Family = (&'static str, fn() -> Vec<Adapter>, fn(usize) -> Result<DeviceRef>);

/// The kinds of devices that rscan was built with.
const FAMILIES: &[Family] = &[
    #[cfg(feature = "cuda")]
    ("cuda", crate::backend::cuda::adapters, crate::backend::cuda::open),
    #[cfg(feature = "wgpu")]
    ("wgpu", crate::backend::wgpu::adapters, crate::backend::wgpu::open),
];

fn adapters() -> Vec<DeviceInfo> {
    let info = |(k, a): (usize, Adapter), open: fn(usize) -> Result<DeviceRef>| {
        let lacks = match open(k) {
            Ok(device) => lacks(device),
            Err(e) => vec![e.title.clone()],
        };
        DeviceInfo { name: a.name, about: a.about, software: a.software, lacks }
    };
    let all = FAMILIES.iter().flat_map(|&(_, adapters, open)| adapters().into_iter().enumerate().map(move |a| info(a, open)));
    let mut all: Vec<DeviceInfo> = all.collect();
    // Programs that run on the processor come last.
    all.sort_by_key(|d| d.software);
    all
}

fn lacks(device: DeviceRef) -> Vec<String> {
    let traits = device.0.traits();
    let named = [("float32", traits.no_f32), ("float64", traits.no_f64), ("int64", traits.no_i64), ("fma", traits.no_fma)];
    named.into_iter().filter_map(|(what, why)| Some(format!("{what}: {}", why?))).collect()
}

/// What functions run on that ask for a device: `cpu`, `cuda` (the first card), `wgpu` (the first adapter), `wgpu:1`.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert!(engine_on("cpu").is_ok());
/// assert_eq!(engine_on("abacus").unwrap_err().code, "E0521");
/// ```
///
/// # Errors
/// `E0521` where there is none of that name.
pub fn engine_on(name: &str) -> Result<Engine> {
    let (kind, number) = name.split_once(':').unwrap_or((name, "0"));
    match (kind, number.parse::<usize>()) {
        ("cpu", Ok(0)) => Ok(Engine::from_env()),
        ("cuda" | "wgpu", Ok(k)) => open(kind, k).map(Engine::Device),
        _ => Err(Diagnostic::new(Kind::Device, "E0521", format!("there is no device {name:?}")).help(
            "devices are called \"cpu\", \"cuda\" (the first card of NVIDIA's), \"wgpu\" (the first adapter of Vulkan), \"wgpu:1\"; \
                 `rs.devices()` lists them",
        )),
    }
}

/// A device by name, as arrays know it; `None` for the processor.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert!(device_site("cpu")?.is_none());
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
///
/// # Errors
/// `E0521` where there is none of that name.
pub fn device_site(name: &str) -> Result<Option<Arc<dyn Site>>> {
    Ok(match engine_on(name)? {
        Engine::Device(device) => Some(Arc::new(device)),
        _ => None,
    })
}

fn open(kind: &str, k: usize) -> Result<DeviceRef> {
    match FAMILIES.iter().find(|f| f.0 == kind) {
        Some((.., open)) => open(k),
        None => {
            let title = format!("there is no device {kind}:{k}: rscan was built without the feature `{kind}`");
            Err(Diagnostic::new(Kind::Device, "E0521", title))
        }
    }
}

/// Where the parts of a plan run that is for a device; its loops tell for themselves.
pub fn places(plan: &Graph) -> Vec<Placed> {
    let mut found = vec![];
    collect(plan, &mut found);
    found
}

fn collect(plan: &Graph, found: &mut Vec<Placed>) {
    let live = plan.needed(plan.results());
    // Extents and numbers of rows are nobody's work.
    let counts = |node: &Node| node.outs.iter().all(|&v| plan.ty(v).rank() == 0 && !plan.ty(v).dtype.is_float());
    let nodes = plan.nodes().enumerate().filter(|(id, node)| live[id.0 as usize] && !counts(node)).map(|n| n.1);
    for node in nodes {
        let here = |op: &str, why: &str| {
            let (op, why) = (op.to_string(), Some(why.to_string()));
            Placed { op, span: node.span, device: None, why, crossed: [0; 2] }
        };
        match &node.op {
            Op::Const(_) => {}
            Op::Native(op) => native(node.span, op, &here, found),
            op if op.hands_on() => {}
            op => found.push(here(op.name(), "a device has no kernel for it outside of loops")),
        }
    }
}

/// Where a part of a plan runs that is neither a loop nor an op as it is.
fn native(span: Span, op: &NativeRef, here: &dyn Fn(&str, &str) -> Placed, found: &mut Vec<Placed>) {
    let any = op.0.as_any();
    if any.is::<NativeLoop>() {
        return;
    }
    if let Some(region) = any.downcast_ref::<Region>() {
        match region.placed() {
            Some(info) => {
                let device = region.device().filter(|_| info.crossed.is_some());
                // A list says why it is not one kernel, which is no matter here.
                let why = info.reason.filter(|_| device.is_none() || info.instructions > 0);
                found.push(Placed { op: region.ops().join(", "), span, device, why, crossed: info.crossed.unwrap_or_default() });
            }
            // What a branch alone needs may not have run.
            None if region.is_new() => {}
            None => {
                let first = found.len();
                collect(region.nodes(), found);
                let why = region.why_nodes();
                let here = found[first..].iter_mut().filter(|placed| placed.device.is_none());
                here.for_each(|placed| placed.why = why.clone().or(placed.why.take()));
            }
        }
        return;
    }
    found.push(match any.downcast_ref::<NativeMap>().and_then(NativeMap::placed) {
        Some((device, why, crossed)) => Placed { op: "elementwise operations".into(), span, device, why, crossed },
        None => here(op.0.name(), "a device has no kernel for it"),
    });
}
