//! A kernel as machine code of the Cranelift code generator: the whole time loop of a lane, values in registers.

mod body;
mod convert;
mod divide;
mod flat;
mod isa;
mod looped;
mod own;
mod place;
mod pool;
mod select;
mod shape;
mod skips;
#[cfg(test)]
mod tests;
mod thunk;
mod walk;

pub use self::isa::Allocation;
pub use self::thunk::{Invoke, Thunk};

use self::flat::Flat;
use self::pool::Pool;
use super::code::Generated;
use super::{Code, Frame, Refusal};
use crate::base::IdxVec;
use crate::kernel::{Kernel, Reg};
use cranelift_codegen::Context;
use cranelift_codegen::ir::AbiParam;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Module, ModuleError, default_libcall_names};
use std::sync::Mutex;

/// Longer bodies take longer to compile than a loop that long is worth waiting for.
const MAX_BODY: usize = 20_000;

/// Compiles a kernel.
pub fn compile(kernel: &Kernel, allocation: Allocation) -> Result<Box<dyn Code>, Refusal> {
    compile_for(isa::host(allocation)?, kernel)
}

fn compile_for(isa: OwnedTargetIsa, kernel: &Kernel) -> Result<Box<dyn Code>, Refusal> {
    if kernel.size() > MAX_BODY {
        return Err(Refusal(format!("{} instructions are too many", kernel.size())));
    }
    let mut module = module(isa);
    let needed = kernel.needed();
    let pool = pool::pool(kernel, &needed);
    match generate(&mut module, kernel, &needed, &pool) {
        Ok(entry) => Ok(Box::new(Machine {
            entry,
            module: Mutex::new(Some(module)),
            flat: Flat::of(kernel, &needed),
            loops: kernel.has_loops(),
            own: kernel.own(),
            _constants: pool,
        })),
        Err(refusal) => {
            free(module);
            Err(refusal)
        }
    }
}

fn module(isa: OwnedTargetIsa) -> JITModule {
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    builder.symbol_lookup_fn(Box::new(isa::helper));
    JITModule::new(builder)
}

/// A compiled kernel: its code lives as long as this.
struct Machine {
    entry: Generated,
    /// The owner of the code. Nobody looks into it before the end; the lock makes it fit to be shared.
    module: Mutex<Option<JITModule>>,
    /// Where lanes may be run as steps.
    flat: Option<Flat>,
    /// Its steps run loops, which it may be told to leave.
    loops: bool,
    /// Bytes of memory that those have of their own.
    own: usize,
    /// The code reads them from here.
    _constants: Pool,
}

impl Code for Machine {
    unsafe fn run(&self, frame: &Frame) -> usize {
        match &self.flat {
            // SAFETY: the caller answers for the frame.
            Some(flat) if frame.lanes > frame.steps => unsafe { flat.run(self.entry, frame) },
            // SAFETY: the entry is that of code generated for this signature, which `module` keeps; the caller answers for the
            // frame, and the memory that loops have of their own is as long as it has to be.
            _ => own::with(self.own, |own| unsafe { (self.entry)(&Frame { own, ..*frame }) }),
        }
    }
    fn generated(&self, frame: Frame) -> Option<(Generated, Frame)> {
        if self.loops {
            return None;
        }
        match self.flat.as_ref().filter(|_| frame.lanes > frame.steps) {
            None => Some((self.entry, frame)),
            Some(flat) => (frame.steps == 1).then(|| (self.entry, flat.turned(&frame))),
        }
    }
    fn engine(&self) -> &'static str {
        "jit"
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let module = self.module.get_mut().unwrap_or_else(|e| e.into_inner()).take();
        module.into_iter().for_each(free);
    }
}

fn free(module: JITModule) {
    // SAFETY: the one who holds the entry is being dropped, or the entry was never given out, so that nobody runs the code now
    // or later.
    unsafe { module.free_memory() }
}

fn generate(module: &mut JITModule, kernel: &Kernel, needed: &IdxVec<Reg, bool>, pool: &Pool) -> Result<Generated, Refusal> {
    let context = function(module, kernel, needed, pool);
    let entry = compiled(module, context)?;
    // SAFETY: the function was generated with this signature and the calling convention of the host.
    Ok(unsafe { std::mem::transmute::<*const u8, Generated>(entry) })
}

/// Where the code of a function begins, which lives as long as the module.
fn compiled(module: &mut JITModule, mut context: Context) -> Result<*const u8, Refusal> {
    let id = module.declare_anonymous_function(&context.func.signature).map_err(refusal)?;
    context.compile(module.isa(), &mut Default::default()).map_err(|e| Refusal(format!("code generator: {:?}", e.inner)))?;
    let placed = place::place(&context, id);
    module.define_function_bytes(id, place::LINE as u64, &placed.bytes, &placed.relocs).map_err(refusal)?;
    module.finalize_definitions().map_err(refusal)?;
    Ok(module.get_finalized_function(id).wrapping_add(placed.entry))
}

fn refusal(error: ModuleError) -> Refusal {
    Refusal(format!("code generator: {error}"))
}

/// The function of a kernel, to be compiled.
fn function(module: &JITModule, kernel: &Kernel, needed: &IdxVec<Reg, bool>, pool: &Pool) -> Context {
    let word = module.target_config().pointer_type();
    let mut context = module.make_context();
    context.func.signature.params.push(AbiParam::new(word));
    context.func.signature.returns.push(AbiParam::new(word));
    let mut buffers = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut buffers);
    shape::emit(&mut builder, kernel, word, needed, pool);
    builder.finalize(module.target_config());
    context
}

/// The machine code of a kernel as text.
pub fn listing(kernel: &Kernel) -> Result<String, Refusal> {
    let module = module(isa::host(Allocation::Thorough)?);
    let needed = kernel.needed();
    let mut context = function(&module, kernel, &needed, &pool::pool(kernel, &needed));
    context.set_disasm(true);
    let code = context.compile(module.isa(), &mut Default::default()).map_err(|e| Refusal(format!("code generator: {:?}", e.inner)))?;
    Ok(code.vcode.clone().unwrap_or_default())
}
