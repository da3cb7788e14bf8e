//! What a device computes as the law does: found out by computing it, when the device is opened.

use super::heap::Plan;
use super::launch::ahead;
use super::{DeviceRef, Launch, Region, Space, Traits};
use crate::backend::cpu::{Memory, Refusal};
use crate::base::Result;
use crate::kernel::interp::{self, Operand};
use crate::kernel::{Bin, Inst, Kernel, Lane, Mem, MemId, Op, Reg, Store, Un};
use crate::types::DType;
use std::cell::Cell;

/// A kernel with memories of one dtype each, of which some are its operands.
pub struct Trial<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Memories and the dtypes of their elements.
    pub memories: &'a [(DType, Vec<u8>)],
    /// Where the operands lie.
    pub operands: &'a [Operand],
    /// Number of lanes.
    pub lanes: usize,
    /// Number of steps.
    pub steps: usize,
    /// The number of the first step.
    pub first: i64,
}

/// The memories behind a run on a device, and the steps that ran; `None` where the kernel needs the host.
///
/// # Errors
/// What the device lacks; why it has no program.
pub fn run(device: DeviceRef, trial: &Trial) -> Result<std::result::Result<Option<(Vec<Vec<u8>>, usize)>, Refusal>> {
    let strides = trial.operands.iter().map(|o| o.stride);
    let written = |memory: usize| {
        let mut written = trial.kernel.mems.ids().filter(|&mem| trial.kernel.writes(mem));
        written.any(|mem| trial.operands[mem.0 as usize].memory == memory)
    };
    let ahead = ahead(trial.kernel, |mem| !written(trial.operands[mem.0 as usize].memory));
    let launch = match Launch::of_kernel(device, trial.kernel, trial.lanes, strides, ahead)? {
        Ok(launch) => launch,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let mut plan = Plan::new();
    let regions: Vec<Region> = trial.memories.iter().map(|(dtype, m)| plan.region(*dtype, 0..m.len())).collect();
    let mut space = Space::new(device, &plan)?;
    for (region, (_, memory)) in regions.iter().zip(trial.memories) {
        space.bring(region, Memory::Read(memory), 0..memory.len())?;
    }
    let bases: Vec<_> = trial.operands.iter().map(|o| regions[o.memory].base(o.offset)).collect();
    space.run(&launch, &bases, trial.steps, trial.first)?;
    let status = space.status()?;
    if status.taken {
        return Ok(Ok(None));
    }
    let mut found = vec![];
    for (region, (_, memory)) in regions.iter().zip(trial.memories) {
        let cells: Vec<Cell<u8>> = memory.iter().map(|&b| Cell::new(b)).collect();
        space.take(region, Memory::Write(&cells), 0..memory.len())?;
        found.push(cells.into_iter().map(Cell::into_inner).collect());
    }
    Ok(Ok(Some((found, if trial.kernel.stop.is_some() { status.ran } else { trial.steps }))))
}

/// Numbers at which arithmetic goes wrong first.
const EDGES: [f64; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    3.0,
    0.1,
    -7.3,
    1.0000001,
    0.99999994,
    12582912.0,
    6755399441055744.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1e-40,
    -3e-45,
    5e-324,
    2e-310,
    3.4e38,
    1.7e308,
    1e19,
    -2.5,
];

/// So many lanes: every edge with every other one, the third operand some place further on.
const LANES: usize = EDGES.len() * EDGES.len();

/// Three operands of floats.
fn operands(dtype: DType) -> Vec<Vec<u8>> {
    let n = EDGES.len();
    let of = |at: &dyn Fn(usize) -> usize| {
        let bytes = |x: f64| if dtype == DType::F32 { (x as f32).to_le_bytes().to_vec() } else { x.to_le_bytes().to_vec() };
        (0..LANES).flat_map(|i| bytes(EDGES[at(i) % n])).collect()
    };
    vec![of(&|i| i), of(&|i| i / n), of(&|i| (i * 7 + i / n) % n + i / 3)]
}

/// What is asked of a device, in words.
type Question = (&'static str, fn(&mut Kernel, [Reg; 3], DType) -> Reg);

fn push(kernel: &mut Kernel, op: Op, dtype: DType) -> Reg {
    kernel.body.push(Inst { op, dtype })
}

const QUESTIONS: &[Question] = &[
    ("sums", |k, [x, y, _], t| push(k, Op::Bin(Bin::Add, x, y), t)),
    ("differences", |k, [x, y, _], t| push(k, Op::Bin(Bin::Sub, x, y), t)),
    ("products", |k, [x, y, _], t| push(k, Op::Bin(Bin::Mul, x, y), t)),
    ("quotients", |k, [x, y, _], t| push(k, Op::Bin(Bin::Div, x, y), t)),
    ("products that are added to", |k, [x, y, z], t| {
        let product = push(k, Op::Bin(Bin::Mul, x, y), t);
        push(k, Op::Bin(Bin::Add, product, z), t)
    }),
    ("(x + y) − y", |k, [x, y, _], t| {
        let sum = push(k, Op::Bin(Bin::Add, x, y), t);
        push(k, Op::Bin(Bin::Sub, sum, y), t)
    }),
    ("x − x", |k, [x, _, _], t| push(k, Op::Bin(Bin::Sub, x, x), t)),
    ("square roots", |k, [x, _, _], t| push(k, Op::Un(Un::Sqrt, x), t)),
    ("rounding", |k, [x, _, _], t| push(k, Op::Un(Un::Round, x), t)),
    ("rounding down", |k, [x, _, _], t| push(k, Op::Un(Un::Floor, x), t)),
    ("rounding up", |k, [x, _, _], t| push(k, Op::Un(Un::Ceil, x), t)),
    ("rounding to 0", |k, [x, _, _], t| push(k, Op::Un(Un::Trunc, x), t)),
    ("signs", |k, [x, _, _], t| push(k, Op::Un(Un::Neg, x), t)),
];

fn question(dtype: DType, asked: &[Question]) -> Kernel {
    let mut kernel = Kernel::default();
    let mems: Vec<MemId> = (0..3 + asked.len()).map(|_| kernel.mems.push(Mem { stride: Some(0), ..Mem::new(dtype, Lane::Unit) })).collect();
    let [x, y, z] = [0, 1, 2].map(|k| push(&mut kernel, Op::Load(mems[k]), dtype));
    for ((_, ask), &mem) in asked.iter().zip(&mems[3..]) {
        let value = ask(&mut kernel, [x, y, z], dtype);
        kernel.stores.push(Store { mem, value, at: None });
    }
    kernel
}

/// The first question that a device answers otherwise than the law; why it answers none.
fn fails(device: DeviceRef, dtype: DType, asked: &[Question]) -> Result<Option<String>> {
    let kernel = question(dtype, asked);
    let empty = asked.iter().map(|_| vec![0u8; LANES * dtype.size()]);
    let memories: Vec<(DType, Vec<u8>)> = operands(dtype).into_iter().chain(empty).map(|m| (dtype, m)).collect();
    let operands: Vec<Operand> = (0..memories.len()).map(|memory| Operand { memory, offset: 0, stride: 0 }).collect();
    let found = match run(device, &Trial { kernel: &kernel, memories: &memories, operands: &operands, lanes: LANES, steps: 1, first: 0 })? {
        Err(refusal) => return Ok(Some(refusal.0)),
        Ok(None) => return Ok(Some("it runs no kernel".into())),
        Ok(Some(found)) => found.0,
    };
    let mut law: Vec<Vec<u8>> = memories.into_iter().map(|m| m.1).collect();
    interp::run(&kernel, &mut law, &operands, LANES, 1, 0);
    let same = |k: usize| law[k].chunks(dtype.size()).zip(found[k].chunks(dtype.size())).all(|(a, b)| a == b || nan(a) && nan(b));
    Ok(asked.iter().zip(3..).find(|(_, k)| !same(*k)).map(|((what, _), _)| format!("{what} are not those of IEEE 754")))
}

fn nan(bytes: &[u8]) -> bool {
    match bytes.try_into() {
        Ok(four) => f32::from_le_bytes(four).is_nan(),
        Err(_) => bytes.try_into().is_ok_and(|eight| f64::from_le_bytes(eight).is_nan()),
    }
}

/// Asks a device that says what types it has; what it computes as the law does.
///
/// # Errors
/// `E0523` where it fails.
pub fn probe(device: DeviceRef) -> Result<Traits> {
    let mut traits = device.0.traits();
    traits.no_f32 = fails(device, DType::F32, QUESTIONS)?;
    if traits.no_f64.is_none() {
        traits.no_f64 = if traits.no_i64.is_none() { fails(device, DType::F64, QUESTIONS)? } else { Some("it has no int64".into()) };
    }
    let once: &[Question] = &[("products added to and rounded once", |k, [x, y, z], t| push(k, Op::Fma(x, y, z), t))];
    let floats = [(DType::F32, traits.no_f32.is_none()), (DType::F64, traits.no_f64.is_none())];
    for (k, (dtype, _)) in floats.into_iter().enumerate().filter(|f| f.1.1) {
        traits.fused[k] = true;
        device.0.assume(traits.clone());
        if fails(device, dtype, once)?.is_some() {
            traits.fused[k] = false;
            device.0.assume(traits.clone());
            let why = if traits.no_f64.is_some() { Some("it has no f64 to do it with".into()) } else { fails(device, dtype, once)? };
            traits.no_fma = traits.no_fma.or(why);
        }
    }
    device.0.assume(traits.clone());
    Ok(traits)
}
