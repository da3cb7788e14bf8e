//! What is told of a loop for rows of certain types.

use crate::kernel::Work;

/// A loop for rows of certain types.
///
/// ```
/// use scan_core::prelude::*;
///
/// let out = scan().named("halves").steps(3).init("h", 1.0).run(|s| s.get("h") * 0.5);
/// let f = function(&[], &[&out.rows("h")]).engine(Engine::Vm).passes(PassOptions::none()).compile()?;
/// f.run(&[])?;
/// for variant in &f.loops()[0].variants {
///     println!("{}: {:?}", variant.engine, variant.reason);
/// }
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct VariantInfo {
    /// `jit`, an instruction set (`avx2`) or `vm` where the loop is one kernel; else what its steps are made of, or `eval`.
    pub engine: String,
    /// Why it is not compiled, not one kernel, or not machine code.
    pub reason: Option<String>,
    /// Number of lanes: independent elements that run beside each other.
    pub lanes: usize,
    /// Instructions per lane and step.
    pub instructions: usize,
    /// Steps per block.
    pub block: usize,
    /// What each step copies from one place to another, though it computes nothing: state, bytes.
    pub copies: Vec<(String, usize)>,
    /// Bytes that the loop stores a step, in rows that it returns.
    pub stored: usize,
    /// What a step does; `None` where it runs loops of which nobody knows how many steps they take, or is not compiled.
    pub work: Option<Work>,
    /// On a device: bytes that crossed in the last call, to the device and back.
    pub crossed: Option<[u64; 2]>,
}

impl VariantInfo {
    /// Not one kernel, and why.
    pub fn other(engine: impl Into<String>, reason: impl Into<String>) -> VariantInfo {
        VariantInfo { engine: engine.into(), reason: Some(reason.into()), lanes: 1, block: 1, ..VariantInfo::default() }
    }
}
