//! Values of kernels in WGSL: types, constants, memory, conversions.

use crate::kernel::Reg;
use crate::types::DType;

/// The name of a value.
pub fn name(r: Reg) -> String {
    format!("r{}", r.0)
}

/// The type that holds values of a dtype: integers of 8 and 16 bits lie in 32.
pub fn ty(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::I8 | DType::I16 | DType::I32 => "i32",
        DType::U8 | DType::U16 | DType::U32 => "u32",
        DType::I64 => "i64",
        DType::U64 => "u64",
        DType::F32 => "f32",
        DType::F64 => "f64",
    }
}

/// An integer brought back to the range of its dtype.
pub fn fits(dtype: DType, value: String) -> String {
    match dtype {
        DType::I8 => format!("((({value}) << 24u) >> 24u)"),
        DType::I16 => format!("((({value}) << 16u) >> 16u)"),
        DType::U8 => format!("(({value}) & 0xffu)"),
        DType::U16 => format!("(({value}) & 0xffffu)"),
        _ => value,
    }
}

/// A constant of these bits. Floats that a text cannot say, and zeros, are made of a zero that no compiler knows.
pub fn constant(dtype: DType, bits: u64) -> String {
    match dtype {
        DType::Bool => if bits == 0 { "false" } else { "true" }.to_string(),
        DType::I8 => signed(i64::from(bits as i8), "i"),
        DType::I16 => signed(i64::from(bits as i16), "i"),
        DType::I32 => signed(i64::from(bits as i32), "i"),
        DType::I64 => signed(bits as i64, "li"),
        DType::U8 | DType::U16 | DType::U32 => format!("{bits}u"),
        DType::U64 => format!("{bits}lu"),
        DType::F32 if f32::from_bits(bits as u32).is_normal() => format!("{:?}f", f32::from_bits(bits as u32)),
        DType::F32 => opaque(dtype, bits),
        DType::F64 if f64::from_bits(bits).is_normal() => format!("{:?}lf", f64::from_bits(bits)),
        DType::F64 => opaque(dtype, bits),
    }
}

/// A constant that no compiler knows.
pub fn opaque(dtype: DType, bits: u64) -> String {
    match dtype {
        DType::Bool => format!("(({bits}u | z) != 0u)"),
        DType::I64 | DType::U64 | DType::F64 => format!("bitcast<{}>({bits}lu | u64(z))", ty(dtype)),
        DType::I8 => format!("bitcast<i32>({}u | z)", bits as i8 as i32 as u32),
        DType::I16 => format!("bitcast<i32>({}u | z)", bits as i16 as i32 as u32),
        _ => format!("bitcast<{}>({bits}u | z)", ty(dtype)),
    }
}

fn signed(x: i64, suffix: &str) -> String {
    let least = if suffix == "i" { i64::from(i32::MIN) } else { i64::MIN };
    if x == least { format!("({}{suffix} - 1{suffix})", x + 1) } else { format!("({x}{suffix})") }
}

/// The element at a word.
pub fn load(dtype: DType, at: &str) -> String {
    let wide = || format!("(u64(m[{at}]) | (u64(m[{at} + 1u]) << 32u))");
    match dtype {
        DType::Bool => format!("(m[{at}] != 0u)"),
        DType::I8 | DType::I16 | DType::I32 => format!("bitcast<i32>(m[{at}])"),
        DType::U8 | DType::U16 | DType::U32 => format!("m[{at}]"),
        DType::F32 => format!("bitcast<f32>(m[{at}])"),
        DType::U64 => wide(),
        DType::I64 => format!("bitcast<i64>({})", wide()),
        DType::F64 => format!("bitcast<f64>({})", wide()),
    }
}

/// The statement that writes an element to a word.
pub fn store(dtype: DType, at: &str, value: &str) -> String {
    let wide =
        |bits: String| format!("{{ let b: u64 = {bits}; let k: u32 = {at}; m[k] = u32(b & 0xfffffffflu); m[k + 1u] = u32(b >> 32u); }}");
    match dtype {
        DType::Bool => format!("m[{at}] = select(0u, 1u, {value});"),
        DType::U8 | DType::U16 | DType::U32 => format!("m[{at}] = {value};"),
        DType::I8 | DType::I16 | DType::I32 | DType::F32 => format!("m[{at}] = bitcast<u32>({value});"),
        DType::U64 => wide(value.to_string()),
        DType::I64 | DType::F64 => wide(format!("bitcast<u64>({value})")),
    }
}

/// A value converted by the rule of `types::Cast`.
pub fn convert(from: DType, to: DType, x: &str) -> String {
    match (from, to) {
        _ if from == to => x.to_string(),
        (DType::Bool, _) => format!("select({}, {}, {x})", number(to, 0), number(to, 1)),
        (_, DType::Bool) if from.is_float() => format!("!({x} == {})", constant(from, 0)),
        (_, DType::Bool) => format!("({x} != {})", number(from, 0)),
        _ if from.is_float() && to.is_float() => format!("{}({x})", ty(to)),
        _ if from.is_float() => saturated(from, to, x),
        _ if to.is_float() => format!("{}({x})", ty(to)),
        _ => fits(to, cast(from, to, x)),
    }
}

/// A small number of a dtype.
fn number(dtype: DType, n: u8) -> String {
    match dtype {
        DType::F32 => format!("{n}.0f"),
        DType::F64 => format!("{n}.0lf"),
        _ => constant(dtype, u64::from(n)),
    }
}

/// Between the types of integers, wrapping: by way of the unsigned one that is as wide.
fn cast(from: DType, to: DType, x: &str) -> String {
    match (ty(from), ty(to)) {
        (a, b) if a == b => x.to_string(),
        ("i32", "u32") | ("u32", "i32") | ("i64", "u64") | ("u64", "i64") => format!("bitcast<{}>({x})", ty(to)),
        ("i32", "i64") => format!("bitcast<i64>({})", extended(x)),
        ("u32", "u64") => format!("u64({x})"),
        ("i32", "u64") => extended(x),
        ("u32", "i64") => format!("bitcast<i64>(u64({x}))"),
        ("i64", narrow) => narrowed(&format!("bitcast<u64>({x})"), narrow),
        (_, narrow) => narrowed(x, narrow),
    }
}

/// The bits of an i32 as an i64. It is not written `i64(x)`, which Mesa's optimiser compares with constants as if it had no sign.
fn extended(x: &str) -> String {
    format!("((u64(bitcast<u32>({x})) ^ 0x80000000lu) - 0x80000000lu)")
}

fn narrowed(x: &str, narrow: &str) -> String {
    let low = format!("u32({x} & 0xfffffffflu)");
    if narrow == "i32" { format!("bitcast<i32>({low})") } else { low }
}

/// A float cut to an integer: what is too large or too small becomes the last one of the dtype, NaN 0.
fn saturated(from: DType, to: DType, x: &str) -> String {
    let bits = 8 * to.size() as i32;
    let (least, beyond) = if to.is_unsigned() { (0.0, 2f64.powi(bits)) } else { (-2f64.powi(bits - 1), 2f64.powi(bits - 1)) };
    let float = |x: f64| if from == DType::F32 { format!("{:?}f", x as f32) } else { format!("{x:?}lf") };
    let ones = u64::MAX >> (64 - bits);
    let (low, high) = if to.is_unsigned() { (0, ones) } else { (1 << (bits - 1), ones >> 1) };
    let inside = format!("{}(select({}, {x}, {x} > {} && {x} < {}))", ty(to), float(0.0), float(least), float(beyond));
    let above = format!("select({inside}, {}, {x} >= {})", constant(to, high), float(beyond));
    format!("select({above}, {}, {x} <= {})", constant(to, low), float(least))
}
