//! WGSL as SPIR-V in which nothing is contracted.
//!
//! Without the decoration a driver may take `(x + c) − c` for x, and `inf − inf` for 0. The translator writes none, so it is added here, to
//! every operation on floats.

use naga::back::spv;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ValidationFlags, Validator};

/// The module of a text, with what the device has of types of 64 bits.
///
/// # Errors
/// The text is not valid: a fault of the printer.
pub fn module(text: &str, [f64, i64]: [bool; 2]) -> Result<Vec<u32>, String> {
    let module = naga::front::wgsl::parse_str(text).map_err(|e| e.emit_to_string(text))?;
    let mut capabilities = Capabilities::empty();
    capabilities.set(Capabilities::FLOAT64, f64);
    capabilities.set(Capabilities::SHADER_INT64, i64);
    let info = Validator::new(ValidationFlags::all(), capabilities).validate(&module).map_err(|e| e.emit_to_string(text))?;
    let unchecked = BoundsCheckPolicy::Unchecked;
    let options = spv::Options {
        lang_version: (1, 3),
        flags: spv::WriterFlags::empty(),
        // Operands are checked before a launch.
        bounds_check_policies: BoundsCheckPolicies { index: unchecked, buffer: unchecked, image_load: unchecked, binding_array: unchecked },
        force_loop_bounding: false,
        emit_int_div_checks: false,
        ..spv::Options::default()
    };
    let words = spv::write_vec(&module, &info, &options, None).map_err(|e| e.to_string())?;
    Ok(uncontracted(&words))
}

const HEADER: usize = 5;
const DECORATE: u32 = 71;
const NO_CONTRACTION: u32 = 42;
const EXTENDED: u32 = 12;
/// Opcodes of floats: negate, add, subtract, multiply, divide, the remainders.
const FLOATS: [u32; 7] = [127, 129, 131, 133, 136, 140, 141];
/// Instructions that stand before decorations.
const BEFORE: [u32; 15] = [2, 3, 4, 5, 6, 7, 8, 10, 11, 14, 15, 16, 17, 330, 331];

/// The instructions of a module, each with its first word.
fn instructions(words: &[u32]) -> impl Iterator<Item = (usize, &[u32])> {
    let mut at = HEADER;
    std::iter::from_fn(move || {
        let length = (*words.get(at)? >> 16) as usize;
        let found = (at, words.get(at..at + length.max(1))?);
        at += length.max(1);
        Some(found)
    })
}

fn uncontracted(words: &[u32]) -> Vec<u32> {
    let opcode = |inst: &[u32]| inst[0] & 0xffff;
    let first = instructions(words).find(|(_, inst)| !BEFORE.contains(&opcode(inst))).map_or(words.len(), |i| i.0);
    let is_float = |inst: &[u32]| FLOATS.contains(&opcode(inst)) || opcode(inst) == EXTENDED;
    let made = instructions(words).filter(|(_, inst)| is_float(inst)).map(|(_, inst)| inst[2]);
    let decorations = made.flat_map(|id| [DECORATE | 3 << 16, id, NO_CONTRACTION]);
    words[..first].iter().copied().chain(decorations).chain(words[first..].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "@group(0) @binding(0) var<storage, read_write> m: array<f32>;
@compute @workgroup_size(1) fn main() { let x = m[0]; m[1] = (x + m[2]) - fma(m[2], -x, x / x) * x; m[3] = floor(x); }";

    #[test]
    fn every_operation_on_floats_is_decorated() {
        let words = module(TEXT, [false; 2]).unwrap_or_else(|e| panic!("{e}"));
        let code = |inst: &[u32]| inst[0] & 0xffff;
        let decorated: Vec<u32> =
            instructions(&words).filter(|(_, i)| code(i) == DECORATE && i[2] == NO_CONTRACTION).map(|(_, i)| i[1]).collect();
        let made: Vec<u32> =
            instructions(&words).filter(|(_, i)| [127, 129, 131, 133, 136, 12].contains(&code(i))).map(|(_, i)| i[2]).collect();
        assert_eq!((decorated.len(), &decorated), (7, &made));
        let position = |op: u32| instructions(&words).position(|(_, i)| code(i) == op);
        assert!(position(DECORATE) > position(15) && position(DECORATE) < position(59), "decorations stand before variables");
    }

    #[test]
    fn a_fault_of_the_text_is_told() {
        let error = module("fn main() { let x: u32 = 1.5; }", [true; 2]).expect_err("not valid");
        assert!(error.contains("u32"), "{error}");
        assert!(module("@group(0) @binding(0) var<storage, read_write> m: array<f64>;", [false; 2]).is_err());
    }
}
