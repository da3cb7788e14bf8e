//! Functions in executable memory.

use super::layout::Task;
use memmap2::{Mmap, MmapMut};

/// A function in executable memory.
pub(super) struct Native {
    memory: Mmap,
}

impl Native {
    pub(super) fn new(code: &[u8]) -> std::io::Result<Native> {
        let mut memory = MmapMut::map_anon(code.len())?;
        memory.copy_from_slice(code);
        Ok(Native { memory: memory.make_exec()? })
    }
    pub(super) fn function(&self) -> Function {
        // SAFETY: the memory holds a function of this type, written by `layout::function`.
        Function(unsafe { std::mem::transmute::<*const u8, unsafe extern "sysv64" fn(*const Task)>(self.memory.as_ptr()) })
    }
}

/// That function, which is there as long as the kernel is.
#[derive(Clone, Copy)]
pub(super) struct Function(unsafe extern "sysv64" fn(*const Task));

impl Function {
    /// What [`call`](Function::call) calls.
    pub(super) fn address(self) -> unsafe extern "sysv64" fn(*const Task) {
        self.0
    }
    /// # Safety
    /// The kernel that it belongs to lives, and the task describes memory as `Code::run` demands, for the code of this function.
    #[inline]
    pub(super) unsafe fn call(self, task: &Task) {
        // SAFETY: the caller's promise.
        unsafe { (self.0)(task) }
    }
}
