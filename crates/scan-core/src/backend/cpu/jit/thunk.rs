//! Functions of numbers in the calling convention of C that hand what they are given on to one function of all.

use super::body::machine;
use super::{Allocation, compiled, free, isa, module};
use crate::backend::cpu::Refusal;
use crate::types::DType;
use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature, StackSlotData, StackSlotKind, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::JITModule;
use cranelift_module::Module;
use std::ffi::c_void;
use std::sync::Mutex;

/// What thunks call: with what they were made with, a word per argument, and room for the word of the result. A float32 is in the low half of
/// its word.
pub type Invoke = unsafe extern "C" fn(context: *const c_void, args: *const u64, result: *mut u64);

/// The code of a thunk, which lives as long as this.
pub struct Thunk {
    entry: usize,
    /// The owner of the code. Nobody looks into it before the end; the lock makes it fit to be shared.
    module: Mutex<Option<JITModule>>,
}

impl Thunk {
    /// A function of such numbers that calls `invoke` with `context`.
    ///
    /// # Errors
    /// What the code generator cannot do.
    pub fn new(params: &[DType], result: DType, invoke: Invoke, context: *const c_void) -> Result<Thunk, Refusal> {
        let mut module = module(isa::host(Allocation::Thorough)?);
        match generate(&mut module, params, result, [invoke as usize, context.addr()]) {
            Ok(entry) => Ok(Thunk { entry: entry.addr(), module: Mutex::new(Some(module)) }),
            Err(refusal) => {
                free(module);
                Err(refusal)
            }
        }
    }
    /// Where it begins.
    pub fn address(&self) -> usize {
        self.entry
    }
}

impl Drop for Thunk {
    fn drop(&mut self) {
        let module = self.module.get_mut().unwrap_or_else(|e| e.into_inner()).take();
        module.into_iter().for_each(free);
    }
}

fn generate(module: &mut JITModule, params: &[DType], result: DType, [invoke, context]: [usize; 2]) -> Result<*const u8, Refusal> {
    let word = module.target_config().pointer_type();
    let mut made = module.make_context();
    let number = |dtype: &DType| AbiParam::new(machine(*dtype));
    made.func.signature.params = params.iter().map(number).collect();
    made.func.signature.returns = vec![number(&result)];
    let mut called = Signature::new(made.func.signature.call_conv);
    called.params = vec![AbiParam::new(word); 3];
    let mut buffers = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut made.func, &mut buffers);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    // A word per argument, then one for the result.
    let size = size_of::<u64>() as i32;
    let behind = params.len() as i32 * size;
    let slot = builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, (behind + size) as u32, 3));
    for (i, value) in builder.block_params(entry).to_vec().into_iter().enumerate() {
        builder.ins().stack_store(word, value, slot, i as i32 * size);
    }
    let called = builder.import_signature(called);
    let invoke = builder.ins().iconst(types::I64, invoke as i64);
    let given = builder.ins().iconst(types::I64, context as i64);
    let [args, out] = [0, behind].map(|at| builder.ins().stack_addr(word, slot, at));
    builder.ins().call_indirect(called, invoke, &[given, args, out]);
    let out = builder.ins().stack_load(word, machine(result), slot, behind);
    builder.ins().return_(&[out]);
    builder.seal_all_blocks();
    builder.finalize(module.target_config());
    compiled(module, made)
}
