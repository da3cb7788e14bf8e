//! One launch of a kernel: its parameters, and which of its axes are invocations.
//!
//! Parameters are words: the head ([`ZERO`] to [`HEAD`]), the extents of the axes around (parallel ones, then those in order), then, per
//! operand of the kernel, the word of its first element and that of its copy where one is written apart, two words each, then the stride of a
//! step, and the strides of the axes. Words are counted from the begin of the call's memory; where a device reaches other memory, too, that may
//! lie before it.

pub mod tiling;
pub mod whole;

use super::{DeviceRef, Program, lost, words};
use crate::backend::cpu::Refusal;
use crate::base::Result;
use crate::kernel::{Kernel, Lane, MemId, Nest, Op, Strides};
use crate::types::DType;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::OnceLock;

/// The word that is 0: what a compiler must not know.
pub const ZERO: usize = 0;
/// The number of lanes.
pub const LANES: usize = 1;
/// The number of steps.
pub const STEPS: usize = 2;
/// The number of the first step, two words.
pub const FIRST: usize = 3;
/// Where the kernel notes two words: that it needs the host, and how many steps ran.
pub const STATUS: usize = 5;
/// The bit of the number of steps that says that the kernel stopped.
pub const STOPPED: u32 = 1 << 31;
/// The number of invocations.
pub const INVOCATIONS: usize = 6;
/// Words before the extents.
pub const HEAD: usize = 7;
/// So many words of parameters at most.
pub const MOST: usize = 1 << 13;
/// Steps of one launch at most.
pub const MOST_STEPS: usize = 1 << 30;
/// In fewer steps of a nest's kernel nothing is read ahead.
const FEW: usize = 8;

/// How many axes around a kernel are invocations, and how many are walked in order by each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Shape {
    /// Invocations.
    pub parallel: usize,
    /// In order.
    pub ordered: usize,
    /// A bit per operand: set where nothing that is launched writes what the kernel reads there, so that it may be read long before its step.
    pub ahead: u64,
}

/// The bits of those operands that may be read ahead.
pub fn ahead(kernel: &Kernel, apart: impl Fn(MemId) -> bool) -> u64 {
    kernel.mems.ids().take(u64::BITS as usize).filter(|&mem| apart(mem)).map(|mem| 1 << mem.0).sum()
}

/// A product of matrices: of `[m, k]` and `[k, n]` a `[m, n]`, as the chains of [`kernels`](super::kernels::chains), which are added up in order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Product {
    /// Of all elements.
    pub dtype: DType,
    /// m, k, n.
    pub extents: [usize; 3],
    /// The elements of a column of the left side lie beside each other, not those of a row.
    pub turned: bool,
    /// The first chain is added to 0, too.
    pub adds: bool,
}

impl Product {
    /// Rows are invocations.
    pub const SHAPE: Shape = Shape { parallel: 1, ordered: 0, ahead: 0 };
    /// Both sides and the result.
    pub const OPERANDS: usize = 3;

    /// Words of parameters.
    pub fn words() -> usize {
        Product::SHAPE.strides(Product::OPERANDS, MemId(Product::OPERANDS as u32))
    }
}

impl Shape {
    /// Where the parameter of an operand's first word stands: two words, the lower one first.
    pub fn base(&self, mem: MemId) -> usize {
        HEAD + self.parallel + self.ordered + 2 * mem.0 as usize
    }
    /// Where the words of the copies stand.
    pub fn apart(&self, kernel: &Kernel, mem: MemId) -> usize {
        HEAD + self.parallel + self.ordered + 2 * (kernel.mems.len() + mem.0 as usize)
    }
    /// Where, of so many operands, the stride of a step of one stands; those of the axes follow.
    pub fn strides(&self, operands: usize, mem: MemId) -> usize {
        let each = 1 + self.parallel + self.ordered;
        HEAD + self.parallel + self.ordered + 4 * operands + each * mem.0 as usize
    }
    /// Words of parameters.
    pub fn words(&self, kernel: &Kernel) -> usize {
        self.strides(kernel.mems.len(), MemId(kernel.mems.len() as u32))
    }
}

/// A kernel as a device runs it, over axes of fixed extents; where its operands begin is told by each run.
pub struct Launch {
    device: DeviceRef,
    /// Compiled when it is first launched, where the device does so.
    program: OnceLock<Program>,
    kernel: Kernel,
    shape: Shape,
    lanes: usize,
    /// The axes around, those that are invocations first.
    outer: SmallVec<[usize; 4]>,
    /// In words.
    strides: Vec<Strides>,
    /// Operands of carries that are the same in all lanes, where there are several: written apart, since one lane may end before another
    /// begins.
    apart: Vec<MemId>,
    /// Steps of a nest's kernel, and the number of the first.
    steps: (usize, i64),
    /// It runs as a product, with so many invocations.
    product: Option<(Product, usize)>,
}

/// Where the operands of one run begin, and which memory each may touch: words.
pub type Bases<'a> = &'a [Base];

/// Where an operand begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// The word of its first element. One that lies before the call's memory is negative, as two's complement has it.
    pub at: usize,
    /// The first word of its memory.
    pub from: usize,
    /// The word behind its memory.
    pub to: usize,
}

/// A word as two parameters.
pub fn halves(word: usize) -> [u32; 2] {
    let word = word as u64;
    [word as u32, (word >> 32) as u32]
}

/// Bytes of a host's memory in words of the device's.
pub fn in_words(bytes: isize, size: usize, words: usize) -> isize {
    bytes / size as isize * words as isize
}

/// Whether an axis must be walked in order: what an earlier place wrote there is read, or written again, at a later one.
fn is_ordered(nest: &Nest, axis: usize) -> bool {
    let mut written = (0..nest.kernel.mems.len()).filter(|&k| nest.writes(k));
    nest.outer[axis] > 1 && written.any(|k| nest.strides[k].outer[axis] == 0)
}

/// A nest whose steps, where they are independent of each other, are places beside each other.
fn beside(nest: Nest) -> Nest {
    let kernel = &nest.kernel;
    let counts = kernel.body.iter().any(|inst| matches!(inst.op, Op::Step));
    // Each writes a row of its own.
    let apart = kernel.stores.iter().all(|store| {
        let (before, behind) = kernel.mems[store.mem].row(nest.lanes);
        store.at.is_none() && nest.strides[store.mem.0 as usize].step.abs() >= behind - before
    });
    if nest.steps < 2 || counts || !apart || !kernel.carries.is_empty() || kernel.stop.is_some() {
        return nest;
    }
    let mut outer = nest.outer.clone();
    outer.push(nest.steps);
    let mut strides = nest.strides.clone();
    for own in &mut strides {
        own.outer.push(std::mem::take(&mut own.step));
    }
    Nest { steps: 1, outer, strides, ..nest }
}

impl Launch {
    /// A kernel of so many lanes, its operands moving by these bytes a step, on a device. `ahead`: see [`Shape`].
    ///
    /// # Errors
    /// Why the device has no program for it; `E0522` where it lacks a dtype, `E0523` where it is lost.
    pub fn of_kernel(
        device: DeviceRef,
        kernel: &Kernel,
        lanes: usize,
        steps: impl Iterator<Item = isize>,
        ahead: u64,
    ) -> Result<std::result::Result<Launch, Refusal>> {
        let nest = Nest::of(kernel.clone(), lanes, 1, steps);
        match Launch::made(device, nest, false, ahead)? {
            Ok(launch) => Ok(launch.compiled()?.map(|program| Launch { program: OnceLock::from(program), ..launch })),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// A nest on a device. `together`: operands lie in the same memory in ways that its order decides.
    ///
    /// # Errors
    /// As [`of_kernel`](Launch::of_kernel).
    pub fn of_nest(device: DeviceRef, nest: Nest, together: bool, ahead: u64) -> Result<std::result::Result<Launch, Refusal>> {
        let nest = if together { nest } else { beside(nest) };
        let ahead = if nest.steps < FEW { 0 } else { ahead };
        Launch::made(device, nest, together, ahead)
    }

    fn made(device: DeviceRef, nest: Nest, together: bool, ahead: u64) -> Result<std::result::Result<Launch, Refusal>> {
        let traits = device.0.traits();
        let nest = match nest.kernel.without_division() {
            Cow::Owned(kernel) => Nest { kernel, ..nest },
            Cow::Borrowed(_) => nest,
        };
        traits.admits(device.0.name(), &nest.kernel)?;
        if let Some(why) = traits.too_long(&nest.kernel) {
            return Ok(Err(Refusal(why)));
        }
        let launch = match Launch::planned(device, nest, together, ahead) {
            Ok(launch) => launch,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if let Some(takes) = device.0.takes(&launch.kernel, &launch.shape) {
            return Ok(takes.map(|()| launch));
        }
        let compiled = device.0.compile(&launch.kernel, &launch.shape)?;
        Ok(compiled.map(|program| Launch { program: OnceLock::from(program), ..launch }))
    }

    /// Chains of a nest on a device that has a program for products; `None` where it has none.
    ///
    /// # Errors
    /// As [`of_kernel`](Launch::of_kernel).
    pub fn of_product(device: DeviceRef, nest: Nest, product: Product) -> Result<Option<Launch>> {
        device.0.traits().admits(device.0.name(), &nest.kernel)?;
        let Some(invocations) = device.0.invocations(&product) else { return Ok(None) };
        let launch = Launch::planned(device, nest, false, 0).ok().filter(|launch| launch.shape == Product::SHAPE);
        Ok(launch.map(|launch| Launch { product: Some((product, invocations)), ..launch }))
    }

    /// A nest without its program.
    fn planned(device: DeviceRef, nest: Nest, together: bool, ahead: u64) -> std::result::Result<Launch, Refusal> {
        let axes = 0..nest.outer.len();
        let (ordered, parallel): (Vec<usize>, Vec<usize>) = axes.partition(|&a| together || is_ordered(&nest, a));
        let shape = Shape { parallel: parallel.len(), ordered: ordered.len(), ahead };
        let kernel = &nest.kernel;
        let uniform = |m: &MemId| kernel.mems[*m].lane == Lane::Uniform;
        let apart: Vec<MemId> = kernel.carries.iter().map(|c| c.mem).filter(uniform).filter(|_| nest.lanes > 1).collect();
        if shape.words(kernel) > MOST {
            return Err(Refusal(format!("it has {} operands", kernel.mems.len())));
        }
        if !apart.is_empty() && !nest.outer.is_empty() {
            return Err(Refusal("lanes of several places share a value".into()));
        }
        let order: Vec<usize> = parallel.into_iter().chain(ordered).collect();
        let scaled = kernel.mems.iter().zip(&nest.strides).map(|(mem, s)| {
            let scale = |bytes: isize| in_words(bytes, mem.dtype.size(), words(mem.dtype));
            Strides { step: scale(s.step), outer: order.iter().map(|&a| scale(s.outer[a])).collect() }
        });
        let strides = scaled.collect();
        let steps = (nest.steps, nest.first);
        let outer = order.iter().map(|&a| nest.outer[a]).collect();
        let program = OnceLock::new();
        Ok(Launch { device, program, shape, lanes: nest.lanes, outer, strides, apart, steps, kernel: nest.kernel, product: None })
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }
    /// Operands that are written apart; what is written there is to be copied behind each run.
    pub fn apart(&self) -> &[MemId] {
        &self.apart
    }
    /// Steps of a nest's kernel, and the number of the first.
    pub fn steps(&self) -> (usize, i64) {
        self.steps
    }
    /// Its program.
    ///
    /// # Errors
    /// `E0523` where the device is lost, or its driver does not take the kernel.
    pub fn program(&self) -> Result<&Program> {
        if let Some(program) = self.program.get() {
            return Ok(program);
        }
        let program = self.compiled()?.map_err(|refusal| lost(self.device.0.name(), &refusal.0))?;
        Ok(self.program.get_or_init(|| program))
    }
    fn compiled(&self) -> Result<std::result::Result<Program, Refusal>> {
        match (self.program.get(), &self.product) {
            (Some(program), _) => Ok(Ok(program.clone())),
            (None, Some((product, _))) => self.device.0.product(product),
            (None, None) => self.device.0.compile(&self.kernel, &self.shape),
        }
    }
    /// How its axes are walked.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }
    /// The product that it runs as.
    pub fn product(&self) -> Option<&Product> {
        self.product.as_ref().map(|p| &p.0)
    }
    /// How many invocations it has.
    pub fn invocations(&self) -> usize {
        self.product.map_or_else(|| self.invocations_of_all(), |p| p.1)
    }
    /// How many it has where each place and lane is one.
    pub fn invocations_of_all(&self) -> usize {
        self.lanes * self.outer[..self.shape.parallel].iter().product::<usize>()
    }
    /// Extents of the axes around, and the lanes.
    pub fn extents(&self) -> (&[usize], usize) {
        (&self.outer, self.lanes)
    }
    /// How far an operand moves, in words.
    pub fn strides(&self, mem: MemId) -> &Strides {
        &self.strides[mem.0 as usize]
    }
    /// Lanes × places × steps × instructions of so many steps.
    pub fn work(&self, steps: usize) -> usize {
        let places: usize = self.outer.iter().product();
        places.saturating_mul(self.lanes).saturating_mul(steps).saturating_mul(self.kernel.body.len().max(1))
    }
    /// How many words an operand moves in so many steps.
    pub fn moves(&self, mem: MemId, steps: usize) -> isize {
        self.strides[mem.0 as usize].step * steps as isize
    }

    /// The parameters of a run of so many steps from step `first` on. `apart` gives the word where an operand that is
    /// written apart goes.
    ///
    /// # Panics
    /// Where an operand leaves its memory: a fault of the planner, caught before anything is touched.
    pub fn params(&self, bases: Bases, apart: usize, status: usize, steps: usize, first: i64) -> Vec<u32> {
        assert!(bases.len() == self.kernel.mems.len() && steps <= MOST_STEPS, "operands of a kernel");
        let mut params = vec![0u32; self.shape.words(&self.kernel)];
        params[LANES] = self.lanes as u32;
        params[STEPS] = steps as u32;
        params[FIRST] = first as u32;
        params[FIRST + 1] = (first >> 32) as u32;
        params[STATUS] = status as u32;
        params[INVOCATIONS] = u32::try_from(self.invocations()).expect("invocations");
        self.outer.iter().enumerate().for_each(|(a, &n)| params[HEAD + a] = n as u32);
        for (mem, base) in self.kernel.mems.ids().zip(bases) {
            self.check(mem, base, steps);
            for at in [self.shape.base(mem), self.shape.apart(&self.kernel, mem)] {
                params[at..at + 2].copy_from_slice(&halves(base.at));
            }
            let own = &self.strides[mem.0 as usize];
            let at = self.shape.strides(self.kernel.mems.len(), mem);
            std::iter::once(&own.step).chain(&own.outer).enumerate().for_each(|(k, &s)| params[at + k] = s as i32 as u32);
        }
        for (k, &mem) in self.apart.iter().enumerate() {
            let at = self.shape.apart(&self.kernel, mem);
            params[at..at + 2].copy_from_slice(&halves(apart + 2 * k));
        }
        params
    }

    /// The words that an operand touches in a run of so many steps: the first one, and the one behind the last.
    pub fn reach(&self, mem: MemId, base: &Base, steps: usize) -> [isize; 2] {
        let (own, kind) = (&self.strides[mem.0 as usize], &self.kernel.mems[mem]);
        let carried = self.kernel.carries.iter().any(|c| c.mem == mem);
        if self.lanes == 0 || self.outer.contains(&0) || steps == 0 && !carried {
            return [base.at as isize; 2];
        }
        let (before, behind) = kind.row(self.lanes);
        let row = [before, behind].map(|bytes| in_words(bytes, kind.dtype.size(), words(kind.dtype)));
        let along = if carried { 0 } else { own.step * (steps as isize - 1) };
        let spans = std::iter::once(along).chain(own.outer.iter().zip(&self.outer).map(|(&s, &n)| s * (n as isize - 1)));
        let (low, high) = spans.fold((row[0], row[1]), |(low, high), s| (low + s.min(0), high + s.max(0)));
        [base.at as isize + low, base.at as isize + high]
    }

    fn check(&self, mem: MemId, base: &Base, steps: usize) {
        let (own, kind) = (&self.strides[mem.0 as usize], &self.kernel.mems[mem]);
        // A card takes elements of two words where they begin at an even one.
        let even = |n: isize| n % words(kind.dtype) as isize == 0;
        assert!(even(base.at as isize) && even(own.step) && own.outer.iter().all(|&s| even(s)), "operand {} is not aligned", mem.0);
        let [low, high] = self.reach(mem, base, steps);
        assert!(
            base.from as isize <= low && high <= base.to as isize,
            "operand {} reaches from word {low} to {high}, its memory from {} to {}",
            mem.0,
            base.from as isize,
            base.to as isize
        );
    }
}
