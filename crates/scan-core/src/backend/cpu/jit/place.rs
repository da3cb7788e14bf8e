//! Where code lies in its memory. Processors fetch instructions by lines; a loop of a few instructions that reaches over one line more
//! than it must waits for its instructions where two threads share a core, and takes up to twice as long.

use cranelift_codegen::{CompiledCode, Context};
use cranelift_module::{FuncId, ModuleReloc};
use std::ops::Range;

/// Bytes of a line.
pub const LINE: usize = 64;

/// Code to be laid at the beginning of a line.
pub struct Placed {
    /// The code, behind as many bytes as it is moved by.
    pub bytes: Vec<u8>,
    /// What is filled in.
    pub relocs: Vec<ModuleReloc>,
    /// Where it begins.
    pub entry: usize,
}

/// Compiled code, placed so that its innermost loop lies in as few lines as can be.
///
/// # Panics
/// Where the context was not compiled.
pub fn place(context: &Context, id: FuncId) -> Placed {
    let code = context.compiled_code().expect("compiled code");
    let entry = innermost(code).map_or(0, |l| shift(&l, code.buffer.alignment as usize));
    let moved = |reloc| {
        let reloc = ModuleReloc::from_mach_reloc(reloc, &context.func, id);
        ModuleReloc { offset: reloc.offset + entry as u32, ..reloc }
    };
    let bytes = std::iter::repeat_n(0, entry).chain(code.code_buffer().iter().copied()).collect();
    Placed { bytes, relocs: code.buffer.relocs().iter().map(moved).collect(), entry }
}

/// The bytes of the shortest loop.
fn innermost(code: &CompiledCode) -> Option<Range<usize>> {
    let end = |block: u32| code.bb_starts.iter().copied().filter(|&b| b > block).min().unwrap_or(code.code_info().total_size);
    let back = code.bb_edges.iter().filter(|(from, to)| to <= from);
    back.map(|&(from, to)| to as usize..end(from) as usize).min_by_key(Range::len)
}

/// The least number of bytes, a multiple of `unit`, after which a range lies in as few lines as can be.
fn shift(range: &Range<usize>, unit: usize) -> usize {
    let lines = |by: usize| (range.end + by).div_ceil(LINE) - (range.start + by) / LINE;
    (0..LINE).step_by(unit.max(1)).min_by_key(|&by| lines(by)).unwrap_or(0)
}

#[test]
fn a_loop_is_moved_out_of_the_way_of_a_line() {
    assert_eq!(shift(&(59..88), 1), 5);
    assert_eq!(shift(&(59..88), 8), 8);
    assert_eq!(shift(&(59..88), 16), 16);
    assert_eq!(shift(&(64..128), 1), 0);
    assert_eq!(shift(&(40..104), 1), 24);
    assert_eq!(shift(&(30..62), 1), 0);
    assert_eq!(shift(&(10..10 + 3 * LINE), 1), 54);
}
