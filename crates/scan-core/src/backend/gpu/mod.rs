//! What processors with a memory of their own have in common: kernels are launched over memory that is laid out before, in words of 32 bits.
//!
//! Elements of 8 and 16 bits, and bools, take a word each there. A lane of a kernel is one of many invocations, its steps are a loop
//! inside; so are the outer axes of a nest where they do not depend on each other.

pub mod heap;
pub mod host;
pub mod kept;
pub mod kernels;
pub mod launch;
pub mod probe;
pub mod storage;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use heap::{Region, Space};
pub use launch::tiling::Tiling;
pub use launch::{Launch, Product, Shape};

use crate::backend::cpu::Refusal;
use crate::base::{Diagnostic, Kind, Result};
use crate::kernel::{Kernel, Op};
use crate::scalar::lanes::fused;
use crate::types::DType;
use crate::types::device::DeviceMemory;
pub use crate::types::words::words;
use std::any::Any;
use std::sync::Arc;

/// What a device computes as the law does, bit by bit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// Why it has no f32 arithmetic that is the law's.
    pub no_f32: Option<String>,
    /// Why it has no f64.
    pub no_f64: Option<String>,
    /// Why it has no integers of 64 bits.
    pub no_i64: Option<String>,
    /// Why it has no `x · y + z` that is rounded once.
    pub no_fma: Option<String>,
    /// `x · y + z` is rounded once by an instruction; else it is computed in several.
    pub fused: [bool; 2],
}

/// What the machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// As it is asked for: `cuda:0`, `wgpu:0`.
    pub name: String,
    /// What it is, in words.
    pub about: String,
    /// It is a program that runs on the processor.
    pub software: bool,
}

/// A kernel that a device has compiled.
pub type Program = Arc<dyn Any + Send + Sync>;

/// A processor with a memory of its own. Opened once per process.
pub trait Device: Send + Sync {
    /// As it is asked for: `wgpu:0`.
    fn name(&self) -> &str;
    /// What it is, in words.
    fn about(&self) -> &str;
    /// What it computes.
    fn traits(&self) -> Traits;
    /// Has it compute so from now on: what a probe found, or tries.
    fn assume(&self, traits: Traits);
    /// Bytes that the memory of a call may have.
    fn limit(&self) -> usize;
    /// The program of a kernel in such a shape; why there is none.
    ///
    /// # Errors
    /// `E0523` where the device is lost.
    fn compile(&self, kernel: &Kernel, shape: &Shape) -> Result<std::result::Result<Program, Refusal>>;
    /// For devices that compile a kernel when it is first launched: whether they take it. `None`: it is compiled at once.
    fn takes(&self, _: &Kernel, _: &Shape) -> Option<std::result::Result<(), Refusal>> {
        None
    }
    /// True where launches reach memory that outlives the call, too: see [`Memory::reach`].
    fn reaches(&self) -> bool {
        false
    }
    /// How many invocations a product has that is one launch; `None` where chains are launched, which is slower.
    fn invocations(&self, _: &Product) -> Option<usize> {
        None
    }
    /// The program of such a product; why there is none.
    ///
    /// # Errors
    /// `E0523` where the device is lost.
    fn product(&self, _: &Product) -> Result<std::result::Result<Program, Refusal>> {
        Ok(Err(Refusal("a device without products".into())))
    }
    /// How blocks share each of launches that are to be one program; `None`: as it comes.
    fn tilings(&self, parts: &[&Launch]) -> Vec<Option<Tiling>> {
        vec![None; parts.len()]
    }
    /// The program of so many steps of launches, shared so, one after the other, each of which sees what those before it wrote; `None` where each is
    /// launched on its own.
    ///
    /// # Errors
    /// `E0523` where the device is lost.
    fn whole(&self, _: &[&Launch], _: &[Option<Tiling>]) -> Result<Option<Program>> {
        Ok(None)
    }
    /// Memory of so many words.
    ///
    /// # Errors
    /// `E0392` where there is none.
    fn memory(&'static self, words: usize) -> Result<Box<dyn Memory>>;
    /// Memory of so many words that outlives a call, for the elements of arrays.
    ///
    /// # Errors
    /// `E0392` where there is none.
    fn storage(&'static self, words: usize) -> Result<Arc<dyn DeviceMemory>>;
}

/// Memory on a device. What is asked of it is done in that order.
pub trait Memory: Send {
    /// Writes words.
    ///
    /// # Errors
    /// `E0523` where the device is lost.
    fn write(&mut self, at: usize, words: &[u32]) -> Result<()>;
    /// Reads words, after all that was launched.
    ///
    /// # Errors
    /// `E0523` where the device is lost.
    fn read(&mut self, at: usize, words: &mut [u32]) -> Result<()>;
    /// Copies words of memory that outlives the call to this.
    ///
    /// # Errors
    /// `E0523` where the device is lost.
    fn copy_in(&mut self, at: usize, from: &dyn DeviceMemory, first: usize, words: usize) -> Result<()>;
    /// Copies words of this, after all that was launched, to memory that outlives the call.
    ///
    /// # Errors
    /// `E0523` where the device is lost.
    fn copy_out(&mut self, at: usize, to: &dyn DeviceMemory, first: usize, words: usize) -> Result<()>;
    /// The word at which memory that outlives the call begins, counted from the begin of this, as two's complement.
    ///
    /// # Errors
    /// An internal error where launches reach this memory alone.
    fn reach(&self, _: &dyn DeviceMemory) -> Result<usize> {
        Err(Diagnostic::internal("launches reach the memory of the call alone"))
    }
    /// Runs a program with parameters (see [`launch`]) in so many invocations.
    ///
    /// # Errors
    /// `E0523` where the device is lost.
    fn launch(&mut self, program: &Program, params: &[u32], invocations: usize) -> Result<()>;
    /// Runs the program of [`Device::whole`], with the parameters of [`launch::whole`] and so many invocations at most; `counter`: the word that
    /// must be 0 before.
    ///
    /// # Errors
    /// `E0523` where the device is lost.
    fn run_whole(&mut self, _: &Program, _: &[u32], _counter: usize, _invocations: usize) -> Result<()> {
        Err(Diagnostic::internal("a device without whole steps"))
    }
    /// Waits until everything is done.
    ///
    /// # Errors
    /// `E0523` where the device is lost.
    fn finish(&mut self) -> Result<()>;
}

/// A device, which lives as long as the process.
#[derive(Clone, Copy)]
pub struct DeviceRef(pub &'static dyn Device);

impl PartialEq for DeviceRef {
    fn eq(&self, other: &DeviceRef) -> bool {
        self.0.name() == other.0.name()
    }
}

impl Eq for DeviceRef {}

impl std::hash::Hash for DeviceRef {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.name().hash(state);
    }
}

impl std::fmt::Debug for DeviceRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

/// The error of a device that does not answer any more.
pub fn lost(name: &str, why: &str) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Device, "E0523", format!("the device {name} failed: {why}"))
}

/// Instructions of a kernel that a driver compiles in a second or two; it takes longer and longer for more.
const LONGEST: usize = 4000;
/// Instructions of an `fma` of f32 and of f64 that is computed in several.
const SPELLED: [usize; 2] = [12, 80];
/// The same of an operand, whose address lives through the loop over steps: drivers take longest for what lives long.
const OPERAND: usize = 16;

impl Traits {
    /// True where it has f64, and what the law computes with it takes an instruction each.
    pub fn is_quick_in_f64(&self) -> bool {
        self.no_f64.is_none() && (self.fused[1] || !fused())
    }
    /// Why a kernel is too long for a device to compile; `None` where it is not.
    pub fn too_long(&self, kernel: &Kernel) -> Option<String> {
        let cost = |inst: &crate::kernel::Inst| match inst.op {
            Op::Fma(..) if !self.fused[usize::from(inst.dtype == DType::F64)] => SPELLED[usize::from(inst.dtype == DType::F64)],
            _ => 1,
        };
        let cost = kernel.body.iter().map(cost).sum::<usize>() + OPERAND * kernel.mems.len();
        (cost > LONGEST).then(|| format!("{cost} instructions are more than a device compiles in good time"))
    }
    /// Whether it computes the instructions of a kernel as the law does.
    ///
    /// # Errors
    /// `E0522`: what it lacks, and what could be used in its place.
    pub fn admits(&self, name: &str, kernel: &Kernel) -> Result<()> {
        let dtypes = kernel.body.iter().map(|i| i.dtype).chain(kernel.mems.iter().map(|m| m.dtype));
        for dtype in dtypes {
            let (lacks, instead) = match dtype {
                DType::F64 => (&self.no_f64, "float32"),
                DType::F32 => (&self.no_f32, "integers, or another device"),
                DType::I64 | DType::U64 => (&self.no_i64, "int32"),
                _ => (&None, ""),
            };
            if let Some(why) = lacks {
                let error = Diagnostic::new(Kind::Device, "E0522", format!("the device {name} has no {dtype}: {why}"));
                return Err(error.help(format!("use {instead}, or run it on the CPU: leave `device` out")));
            }
        }
        match &self.no_fma {
            Some(why) if kernel.body.iter().any(|i| matches!(i.op, Op::Fma(..))) => {
                let error = Diagnostic::new(Kind::Device, "E0522", format!("the device {name} does not round x·y + z once: {why}"));
                Err(error.help("with `RSCAN_ISA=portable` in the environment nothing is rounded so"))
            }
            _ => Ok(()),
        }
    }
}
