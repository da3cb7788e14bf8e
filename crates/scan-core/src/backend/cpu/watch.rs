//! Whoever waits for code that may run for long is asked, from within it, whether that is still wanted.

use std::cell::Cell;

/// Says true where the code is to end.
type Ask = dyn FnMut() -> bool;

thread_local! {
    /// Whom code of this thread asks.
    static ASKED: Cell<Option<*mut Ask>> = const { Cell::new(None) };
}

/// So many instructions of loops within a step run between two questions: a millisecond or less.
pub const UNASKED: usize = 1 << 20;

/// What stood there before, put back at the end.
struct Before(Option<*mut Ask>);

impl Drop for Before {
    fn drop(&mut self) {
        ASKED.set(self.0);
    }
}

/// What `run` gives, code of which asks `ask`.
pub fn watched<T>(ask: &mut (dyn FnMut() -> bool + '_), run: impl FnOnce() -> T) -> T {
    // SAFETY: the same pointer, of which the borrow is longer than it is kept: the guard takes it out before this returns or unwinds.
    let ask = unsafe { std::mem::transmute::<*mut (dyn FnMut() -> bool + '_), *mut Ask>(ask) };
    let _before = Before(ASKED.replace(Some(ask)));
    run()
}

/// True where the code of this thread is to end.
pub fn is_over() -> bool {
    // Taken away meanwhile: who is asked may run code that asks.
    let Some(ask) = ASKED.take() else { return false };
    // SAFETY: `watched` lends it as long as it stands there, and nobody else has it now.
    let over = unsafe { (*ask)() };
    ASKED.set(Some(ask));
    over
}

/// The same for generated code.
#[cfg(feature = "jit")]
pub extern "C" fn over() -> u8 {
    u8::from(is_over())
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "jit")]
    use crate::backend::cpu::native;
    use crate::backend::cpu::{Memory, Operand, cells_of, code, vm};
    use crate::kernel::{Argument, Bin, Builder, Kernel, Lane, Loop};
    use crate::types::DType;
    use std::sync::Arc;

    #[test]
    fn who_waits_is_asked_while_it_does() {
        assert!(!is_over(), "nobody waits");
        let mut asked = 0;
        let mut ask = || {
            asked += 1;
            asked == 2
        };
        let said = watched(&mut ask, || {
            let within = watched(&mut || true, is_over);
            [within, is_over(), is_over()]
        });
        assert_eq!((said, asked, is_over()), ([true, false, true], 2, false));
    }

    /// A step with a loop that never ends, which counts in its carry.
    fn endless() -> Kernel {
        let mut inner = Builder::new();
        let counted = inner.mem(DType::I64, Lane::Uniform);
        let (carry, now) = inner.carry(counted);
        let step = inner.step();
        let next = inner.bin(Bin::Add, now, step);
        inner.set_next(carry, next);
        let mut outer = Builder::new();
        let (from, to) = (outer.mem(DType::I64, Lane::Uniform), outer.mem(DType::I64, Lane::Uniform));
        let (begin, steps) = (outer.load(from), outer.integer(DType::I64, i64::MAX));
        let operands = [Argument::Value(begin)].into_iter().collect();
        let made = outer.looped(Loop { kernel: Arc::new(inner.finish()), operands, steps, begin: Default::default() });
        let last = outer.last(made, carry);
        outer.store(to, last);
        outer.finish()
    }

    #[test]
    fn who_waits_ends_a_loop_without_an_end() {
        let kernel = endless();
        let mut engines = vec![vm(&kernel)];
        #[cfg(feature = "jit")]
        engines.push(native(&kernel, 1).expect("machine code"));
        for code in engines {
            let (mut memory, mut asked) = (vec![7i64, 9], 0);
            let cells = cells_of(&mut memory);
            let operands = [0, 8].map(|offset| Operand { memory: Memory::Write(cells), offset, stride: 0 });
            let mut ask = || {
                asked += 1;
                asked == 3
            };
            let ran = watched(&mut ask, || code::run(&*code, &kernel, &operands, 1, 5, 0));
            assert_eq!((ran, asked, &memory[..]), (0, 3, &[7i64, 9][..]), "{}", code.engine());
        }
    }
}
