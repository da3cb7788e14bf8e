//! Compares compiled code with the interpreter of kernels.

use super::Memory;
use super::code::{self, Code, Operand};
use crate::kernel::testing::Case;
use std::cell::Cell;

/// Words around each memory that nothing may touch.
const GUARD: usize = 16;
const CANARY: u64 = 0xfeed_face_dead_beef;

/// Runs code on a case through [`code::run`].
///
/// # Panics
/// Where memory differs from what the interpreter leaves (two NaNs are equal), something around it was touched, or the number
/// of steps is another.
pub fn check(code: &dyn Code, case: &Case) {
    check_with(case, code.engine(), |operands| code::run(code, &case.kernel, operands, case.lanes, case.steps, case.first));
}

/// As [`check`], for any way to run.
///
/// # Panics
/// As [`check`].
pub fn check_with(case: &Case, name: &str, run: impl FnOnce(&[Operand]) -> usize) {
    let (expected, steps) = case.expected();
    let mut guarded: Vec<Vec<u64>> = case.memories.iter().map(|m| guard(m)).collect();
    let ran = {
        let cells: Vec<&[Cell<u8>]> = guarded.iter_mut().zip(&case.memories).map(|(g, m)| inside(g, m.len())).collect();
        let operands: Vec<Operand> =
            case.operands.iter().map(|o| Operand { memory: Memory::Write(cells[o.memory]), offset: o.offset, stride: o.stride }).collect();
        run(&operands)
    };
    let found: Vec<Vec<u8>> =
        guarded.iter_mut().zip(&case.memories).map(|(g, m)| inside(g, m.len()).iter().map(Cell::get).collect()).collect();
    assert_eq!(ran, steps, "{name}: number of steps\n{}", case.show());
    if let Some(difference) = case.difference(&expected, &found) {
        panic!("{name}: {difference}\n{}", case.show());
    }
    for (guarded, memory) in guarded.iter().zip(&found) {
        assert_eq!(*guarded, guard(memory), "{name}: wrote outside its operands\n{}", case.show());
    }
}

/// A copy, aligned as any element needs, between canaries.
fn guard(memory: &[u8]) -> Vec<u64> {
    let words = memory.chunks(8).map(|c| {
        let mut word = CANARY.to_le_bytes();
        word[..c.len()].copy_from_slice(c);
        u64::from_le_bytes(word)
    });
    let canaries = || std::iter::repeat_n(CANARY, GUARD);
    canaries().chain(words).chain(canaries()).collect()
}

/// The bytes of the memory itself.
fn inside(guarded: &mut [u64], len: usize) -> &[Cell<u8>] {
    let bytes = size_of_val(guarded);
    // SAFETY: words are plain bytes, borrowed mutably; `Cell<u8>` has the layout of `u8`.
    let cells = unsafe { std::slice::from_raw_parts(guarded.as_mut_ptr().cast::<Cell<u8>>(), bytes) };
    &cells[8 * GUARD..8 * GUARD + len]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::testing::{Options, case};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Writes what the interpreter would, then lets `fault` change the bytes of one operand.
    fn checked(fault: impl Fn(&Case, &[Operand])) -> bool {
        let c = case(7, &Options::default());
        let run = |operands: &[Operand]| {
            let (expected, ran) = c.expected();
            for (o, given) in c.operands.iter().zip(operands) {
                let Memory::Write(cells) = given.memory else { unreachable!("all are cells") };
                cells.iter().zip(&expected[o.memory]).for_each(|(cell, &byte)| cell.set(byte));
            }
            fault(&c, operands);
            ran
        };
        catch_unwind(AssertUnwindSafe(|| check_with(&c, "fake", run))).is_ok()
    }

    #[test]
    fn faults_are_seen() {
        assert!(checked(|_, _| {}));
        assert!(!checked(|_, operands| {
            let Memory::Write(cells) = operands[0].memory else { unreachable!("all are cells") };
            cells[0].set(cells[0].get() ^ 1);
        }));
        assert!(!checked(|_, operands| {
            let Memory::Write(cells) = operands[0].memory else { unreachable!("all are cells") };
            // SAFETY: the canary before the memory is in the same allocation.
            unsafe { cells.as_ptr().cast::<u8>().cast_mut().sub(1).write(0) };
        }));
    }
}
