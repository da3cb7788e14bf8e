//! What is asked of a driver of NVIDIA cards, in the words of its interface. The real one is a library that is loaded ([`library`]
//! (super::library)); the tests have one that interprets PTX.
//!
//! Handles are addresses and numbers that mean something to the driver alone. What is asked of a stream is done in that order, and calls
//! return before it is done, but for `read` and `wait`.

/// What went wrong: the number of a result, and what the driver calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The number: `CUresult`.
    pub code: u32,
    /// In words.
    pub text: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// An answer of a driver.
pub type Answer<T> = Result<T, Fault>;

/// There is no memory of that size.
pub const OUT_OF_MEMORY: u32 = 2;
/// There is no card.
pub const NO_DEVICE: u32 = 100;

/// A card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its name: `NVIDIA H200`.
    pub name: String,
    /// Its compute capability, major and minor.
    pub capability: [u32; 2],
    /// Bytes of its memory.
    pub memory: u64,
    /// How many multiprocessors it has.
    pub processors: u32,
    /// Bytes that the memory of a block may have.
    pub shared: u32,
}

/// A launch of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// The function.
    pub function: usize,
    /// Blocks of invocations.
    pub blocks: u32,
    /// Invocations of a block.
    pub threads: u32,
    /// Bytes of the memory of a block, beside what the function declares.
    pub shared: u32,
    /// Its first parameter: the address of the memory.
    pub heap: u64,
    /// Its second one.
    pub params: &'a [u32],
}

/// A chain of launches that is handed over as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// What is launched.
    pub executable: usize,
    /// What it was made of.
    pub graph: usize,
    /// The launches.
    pub nodes: Vec<usize>,
}

/// A driver.
///
/// # Errors
/// Each function gives the fault that the driver reports. Faults of launches are reported by any later call.
pub trait Driver: Send + Sync {
    /// It is a program on the processor.
    fn is_fake(&self) -> bool {
        false
    }
    /// The version of the interface: 12040 is CUDA 12.4.
    fn version(&self) -> Answer<u32>;
    /// The cards.
    fn cards(&self) -> Answer<Vec<Card>>;
    /// The context of a card, which stays open.
    fn open(&self, card: usize) -> Answer<usize>;
    /// Has this thread use a context.
    fn enter(&self, context: usize) -> Answer<()>;
    /// A module of PTX text; where that is refused, the compiler's words stand in the fault.
    fn load(&self, text: &str) -> Answer<usize>;
    /// Gives a module back.
    fn unload(&self, module: usize);
    /// A function of a module.
    fn function(&self, module: usize, name: &str) -> Answer<usize>;
    /// Memory of so many bytes.
    fn allocate(&self, bytes: u64) -> Answer<u64>;
    /// Gives memory back, when nothing uses it any more.
    fn free(&self, at: u64);
    /// A stream.
    fn stream(&self) -> Answer<usize>;
    /// Gives a stream back.
    fn close(&self, stream: usize);
    /// Writes words to memory.
    fn write(&self, to: u64, words: &[u32], stream: usize) -> Answer<()>;
    /// Reads words, after all that was asked of the stream before.
    fn read(&self, from: u64, words: &mut [u32], stream: usize) -> Answer<()>;
    /// Copies so many bytes from one memory of the card to another.
    fn copy(&self, to: u64, from: u64, bytes: u64, stream: usize) -> Answer<()>;
    /// Launches a function.
    fn launch(&self, call: &Call, stream: usize) -> Answer<()>;
    /// Launches a function, all of whose blocks run at the same time.
    fn launch_together(&self, call: &Call, stream: usize) -> Answer<()>;
    /// Lets launches of a function have so many bytes of the memory of a block.
    fn share(&self, function: usize, bytes: u32) -> Answer<()>;
    /// How many blocks of so many invocations, and so many bytes, a multiprocessor runs at the same time.
    fn resident(&self, function: usize, threads: u32, shared: u32) -> Answer<u32>;
    /// Waits until everything that was asked of a stream is done.
    fn wait(&self, stream: usize) -> Answer<()>;
    /// Launches that are done one after the other, recorded.
    fn graph(&self, calls: &[Call]) -> Answer<Graph>;
    /// What a recorded launch does from the next replay on: the same function in as many blocks.
    fn set(&self, graph: &Graph, node: usize, call: &Call) -> Answer<()>;
    /// Does what was recorded.
    fn replay(&self, graph: &Graph, stream: usize) -> Answer<()>;
    /// Gives a recording back.
    fn forget(&self, graph: &Graph);
}
