//! Cards, and devices as they are opened: once per process, and probed.

use super::driver::{Card, Driver, Fault, NO_DEVICE};
use super::memory::{Block, Function, Heap, Recording, Sequence, Stream};
use super::product::{self, Tile};
use super::ptx::Target;
use super::storage::Storage;
use super::text::{self, GROUP, Module, Text};
use super::{library, ptx, tiles, whole};
use crate::backend::cpu::Refusal;
use crate::backend::gpu::kept::{Pool, Programs};
use crate::backend::gpu::{Adapter, Device, DeviceRef, Launch, Memory, Product, Program, Shape, Tiling, Traits, host, probe};
use crate::base::{Diagnostic, Kind, Result};
use crate::kernel::Kernel;
use crate::types::device::DeviceMemory;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// The oldest interface that has all that is asked of it: CUDA 11.4.
const OLDEST: u32 = 11040;
/// The least compute capability that the text of kernels is for.
const LEAST: [u32; 2] = [7, 0];
/// From this one on memory is copied to that of a block in the background.
const COPIES: [u32; 2] = [8, 0];
/// Bytes that words of 32 bits number.
const NUMBERED: u64 = 1 << 34;
/// Results that say that a text cannot be compiled: an image that is none, no machine code for the card, PTX that is not valid or too new.
const REFUSED: [u32; 4] = [200, 209, 218, 222];
/// What is kept for later calls: memory, and which part of the card's; streams; recordings.
const KEPT: (usize, u64, usize, usize) = (16, 8, 16, 32);

/// An open card.
pub(super) struct Cuda {
    name: String,
    about: String,
    memory: u64,
    pub(super) target: Target,
    pub(super) driver: &'static dyn Driver,
    context: usize,
    traits: RwLock<Traits>,
    /// By their texts.
    made: Programs<Module, Function>,
    pub(super) blocks: Pool<(), Block>,
    pub(super) streams: Pool<(), Stream>,
    pub(super) recordings: Pool<Sequence, Recording>,
}

/// The driver of this machine; why there is none.
fn driver() -> std::result::Result<&'static dyn Driver, &'static str> {
    static DRIVER: OnceLock<std::result::Result<Box<dyn Driver>, String>> = OnceLock::new();
    let found = DRIVER.get_or_init(|| {
        #[cfg(any(test, feature = "testing"))]
        if std::env::var("RSCAN_CUDA_DRIVER").is_ok_and(|word| word == "fake") {
            return Ok(Box::<super::fake::Fake>::default());
        }
        library::load()
    });
    found.as_ref().map(|d| &**d).map_err(String::as_str)
}

/// The cards of this machine.
pub fn adapters() -> Vec<Adapter> {
    let Ok(driver) = driver() else { return vec![] };
    described(driver).unwrap_or_default().into_iter().map(|d| d.0).collect()
}

/// Cards as they are told of, as the driver knows them, and with what speaks against them.
fn described(driver: &dyn Driver) -> std::result::Result<Vec<(Adapter, Card, Option<String>)>, Fault> {
    let version = driver.version()?;
    let shown = |v: u32| format!("CUDA {}.{}", v / 1000, v % 1000 / 10);
    let cards = driver.cards()?;
    let describe = |(k, card): (usize, Card)| {
        let [major, minor] = card.capability;
        let kind = if driver.is_fake() { ", a program on the processor" } else { "" };
        let about = format!("{} (compute capability {major}.{minor}, {}{kind})", card.name, shown(version));
        let against = if version < OLDEST {
            Some(format!("its driver knows {}, and {} is the oldest that will do", shown(version), shown(OLDEST)))
        } else if card.capability < LEAST {
            Some(format!("{}.{} is the least compute capability that will do", LEAST[0], LEAST[1]))
        } else {
            None
        };
        (Adapter { name: format!("cuda:{k}"), about, software: driver.is_fake() }, card, against)
    };
    Ok(cards.into_iter().enumerate().map(describe).collect())
}

/// The device `k` of [`adapters`], opened and probed the first time that it is asked for.
///
/// # Errors
/// `E0521` where there is none, or where it cannot be opened.
pub fn open(k: usize) -> Result<DeviceRef> {
    static OPEN: Mutex<Vec<(usize, DeviceRef)>> = Mutex::new(vec![]);
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, device)) = open.iter().find(|d| d.0 == k) {
        return Ok(*device);
    }
    let device = open_on(driver().map_err(|why| missing(k, why))?, k)?;
    open.push((k, device));
    Ok(device)
}

fn missing(k: usize, why: &str) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Device, "E0521", format!("there is no device cuda:{k}")).note(why.to_string())
}

/// The card `k` of a driver, opened and probed; it stays open.
///
/// # Errors
/// As [`open`].
pub fn open_on(driver: &'static dyn Driver, k: usize) -> Result<DeviceRef> {
    let all = match described(driver) {
        Ok(all) => all,
        Err(fault) if fault.code == NO_DEVICE => return Err(missing(k, "CUDA has no card here")),
        Err(fault) => return Err(missing(k, &format!("the driver of CUDA says: {fault}"))),
    };
    let Some((adapter, card, against)) = all.get(k).cloned() else {
        let have: Vec<String> = all.into_iter().map(|d| d.0.name).collect();
        let why = if have.is_empty() { "CUDA has no card here".into() } else { format!("there are {}", have.join(", ")) };
        return Err(missing(k, &why));
    };
    let Adapter { name, about, .. } = adapter;
    let refuse = |why: &str| Diagnostic::new(Kind::Device, "E0521", format!("the device {name}, {about}, cannot be used: {why}"));
    if let Some(why) = against {
        return Err(refuse(&why));
    }
    let target = Target { processors: card.processors as usize, copies: card.capability >= COPIES, shared: card.shared as usize };
    let context = driver.open(k).map_err(|fault| refuse(&fault.to_string()))?;
    // Opened once per process, and used as long as that runs.
    let device: &'static Cuda = Box::leak(Box::new(Cuda {
        name,
        about,
        memory: card.memory,
        target,
        driver,
        context,
        traits: RwLock::default(),
        made: Programs::default(),
        blocks: Pool::new(KEPT.0, card.memory / KEPT.1),
        streams: Pool::new(KEPT.2, 0),
        recordings: Pool::new(KEPT.3, KEPT.3 as u64),
    }));
    probe::probe(DeviceRef(device))?;
    Ok(DeviceRef(device))
}

impl Cuda {
    /// Has this thread use the card.
    pub(super) fn enter(&self) -> std::result::Result<(), Fault> {
        self.driver.enter(self.context)
    }

    /// A text as the card runs it, whose invocations share something unless they are `alone`; why its driver takes it not.
    ///
    /// # Errors
    /// `E0523`.
    fn function(&self, text: std::result::Result<Module, Refusal>, alone: bool) -> Result<std::result::Result<Arc<Function>, Refusal>> {
        match text {
            Ok(module) => self.made.of(module, |module| self.loaded(module, alone)),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    fn loaded(&self, Module { text, shared }: &Module, alone: bool) -> Result<std::result::Result<Function, Refusal>> {
        let load = || -> std::result::Result<Function, Fault> {
            self.enter()?;
            let module = self.driver.load(text)?;
            let mut made =
                Function { driver: self.driver, context: self.context, module, function: 0, most: 0, shared: *shared as u32, alone };
            made.function = self.driver.function(module, text::ENTRY)?;
            if made.shared > 0 {
                self.driver.share(made.function, made.shared)?;
            }
            made.most = self.driver.resident(made.function, GROUP as u32, made.shared)? * self.target.processors as u32;
            Ok(made)
        };
        match load() {
            Ok(made) => Ok(Ok(made)),
            Err(fault) if REFUSED.contains(&fault.code) => Ok(Err(Refusal(format!("the driver does not take the kernel: {fault}")))),
            Err(fault) => Err(self.failed(fault, text.len() as u64)),
        }
    }
}

impl Device for Cuda {
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
        usize::try_from(self.memory.min(NUMBERED)).unwrap_or(usize::MAX)
    }
    fn compile(&self, kernel: &Kernel, shape: &Shape) -> Result<std::result::Result<Program, Refusal>> {
        Ok(self.function(ptx::text(kernel, shape, self.target), true)?.map(|function| function as Program))
    }
    fn takes(&self, kernel: &Kernel, shape: &Shape) -> Option<std::result::Result<(), Refusal>> {
        // Of more parameters the driver may know nothing.
        text::fits_all(shape.words(kernel)).then(|| host::taken(kernel).map(drop))
    }
    fn reaches(&self) -> bool {
        true
    }
    fn invocations(&self, product: &Product) -> Option<usize> {
        let [m, _, n] = product.extents;
        Some(Tile::of(product, self.target).blocks(m, n) * GROUP)
    }
    fn product(&self, product: &Product) -> Result<std::result::Result<Program, Refusal>> {
        let mut text = Text::new();
        product::write(&mut text, product, Tile::of(product, self.target));
        Ok(self.function(text.module(Product::words()), false)?.map(|function| function as Program))
    }
    fn tilings(&self, parts: &[&Launch]) -> Vec<Option<Tiling>> {
        tiles::tilings(parts, self.target)
    }
    fn whole(&self, parts: &[&Launch], tilings: &[Option<Tiling>]) -> Result<Option<Program>> {
        let found = self.function(whole::text(parts, tilings, self.target), false)?.ok();
        Ok(found.filter(|function| function.most > 0).map(|function| function as Program))
    }
    fn memory(&'static self, words: usize) -> Result<Box<dyn Memory>> {
        Ok(Box::new(Heap::new(self, words)?))
    }
    fn storage(&'static self, words: usize) -> Result<Arc<dyn DeviceMemory>> {
        Ok(Arc::new(Storage::new(self, words)?))
    }
}
