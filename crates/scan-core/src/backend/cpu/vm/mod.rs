//! The engine that is always there: it interprets kernels over chunks of lanes whose values lie in a file of registers in the
//! first cache. Each instruction is one call of a tight loop over the chunk; operands are read and written where they lie.

mod looped;
mod loops;
mod program;
mod run;
mod table;
#[cfg(test)]
mod tests;
mod uses;

use super::code::{Code, Frame};
use super::isa::Isa;
use crate::kernel::Kernel;
use looped::Looped;
use program::Program;
use std::sync::OnceLock;

/// Compiles a kernel for vector instructions (those of the processor, if it lacks them). It never refuses.
pub fn compile(kernel: &Kernel, isa: Isa) -> Box<dyn Code> {
    if kernel.has_loops() {
        return Box::new(Looped(kernel.clone()));
    }
    Box::new(Vm { kernel: kernel.clone(), isa: isa.min(Isa::machine()), programs: Default::default() })
}

/// A kernel with its programs, made when first needed: for one lane or many, with stores in the midst of the step or at its end.
struct Vm {
    kernel: Kernel,
    isa: Isa,
    programs: [OnceLock<Program>; 4],
}

impl Vm {
    fn program(&self, many: bool, direct: bool) -> &Program {
        let slot = &self.programs[2 * usize::from(many) + usize::from(direct)];
        slot.get_or_init(|| program::compile(&self.kernel, self.isa, many, direct))
    }
}

impl Code for Vm {
    unsafe fn run(&self, frame: &Frame) -> usize {
        let many = frame.lanes > 1;
        let direct = self.program(many, true);
        // SAFETY: as granted by the caller.
        unsafe {
            let program = if run::collides(&self.kernel, direct, frame) { self.program(many, false) } else { direct };
            run::run(&self.kernel, program, frame)
        }
    }
    fn engine(&self) -> &'static str {
        "vm"
    }
}
