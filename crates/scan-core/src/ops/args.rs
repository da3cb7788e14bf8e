//! What ops ask of their arguments: integer scalars, extents, matrices.

use crate::bail;
use crate::base::Result;
use crate::ir::op::{Arg, Outs};
use crate::ir::{Graph, Value};
use crate::types::shape::{Extents, tuple};
use crate::types::{Array, Dim, memory};
use smallvec::SmallVec;

/// One output.
pub fn one<T>(x: T) -> Outs<T> {
    let mut outs = Outs::new();
    outs.push(x);
    outs
}

/// Checks that an op got `n` inputs.
///
/// # Errors
/// `E0222` where it did not.
pub fn expect_count(op: &str, n: usize, at_least: bool, ins: &[Arg]) -> Result<()> {
    let fits = if at_least { ins.len() >= n } else { ins.len() == n };
    if !fits {
        let more = if at_least { " or more" } else { "" };
        bail!(Type, "E0222", "`{op}` takes {n}{more} inputs and got {}", ins.len());
    }
    Ok(())
}

/// Checks that an argument is an integer scalar.
///
/// # Errors
/// `E0222` where it is not.
pub fn expect_int_scalar(op: &str, what: &str, arg: &Arg) -> Result<()> {
    if !arg.ty.dtype.is_int() || arg.ty.rank() != 0 {
        bail!(Type, "E0222", "{what} of `{op}` must be an integer scalar, got {}", arg.ty);
    }
    Ok(())
}

/// Checks that an argument is a scalar.
///
/// # Errors
/// `E0222` where it is not.
pub fn expect_scalar(op: &str, what: &str, arg: &Arg) -> Result<()> {
    if arg.ty.rank() != 0 {
        bail!(Type, "E0222", "{what} of `{op}` must be a scalar, got {}", arg.ty);
    }
    Ok(())
}

/// The integer of a scalar; a u64 beyond i64 saturates.
pub fn integer(x: &Array) -> i64 {
    match x.data() {
        crate::types::array::Data::U64(v) => i64::try_from(v[0]).unwrap_or(i64::MAX),
        crate::types::array::Data::I64(v) => v[0],
        _ => x.item_i64().unwrap_or(0),
    }
}

/// All elements as i64; u64 beyond i64 saturate.
pub fn integers(x: &Array) -> Vec<i64> {
    match x.data() {
        crate::types::array::Data::U64(v) => memory::collect(v.iter().map(|&n| i64::try_from(n).unwrap_or(i64::MAX))),
        _ => x.to_i64_vec(),
    }
}

/// The extents that integer scalars ask for.
///
/// # Errors
/// `E0222` where one is negative, `E0392` where their product cannot be addressed.
pub fn extents(op: &str, ins: &[Array]) -> Result<Extents> {
    let mut out: Extents = SmallVec::new();
    for x in ins {
        match usize::try_from(integer(x)) {
            Ok(n) => out.push(n),
            Err(_) => bail!(Value, "E0222", "an extent of `{op}` is {}; extents cannot be negative", integer(x)),
        }
    }
    addressable(op, &out)?;
    Ok(out)
}

/// Refuses a shape of which no array can be.
///
/// # Errors
/// `E0392`: so many bytes cannot be addressed.
pub fn addressable(op: &str, shape: &[usize]) -> Result<()> {
    let n = if shape.contains(&0) { 0 } else { shape.iter().fold(1, |product: u128, &n| product.saturating_mul(n as u128)) };
    // Of the largest elements: whoever makes smaller ones asks for their bytes, and counts in wider ones beside.
    if n > isize::MAX as u128 / 8 {
        memory::possible(n, 8).map_err(|refused| refused.diagnostic(&format!("`{op}` of shape {}", tuple(shape))))?;
    }
    Ok(())
}

/// The value of an argument as an affine form: a constant, or what is known of it.
pub fn form(arg: &Arg) -> Option<Dim> {
    let number = arg.value.as_ref().filter(|_| arg.ty.dtype.is_int()).and_then(|a| (a.len() == 1).then(|| integer(a)));
    number.map(|n| Dim::from_parts([], n)).or_else(|| arg.dim.clone())
}

/// True where the form is at least 0 for all extents.
pub fn never_negative(dim: &Dim) -> bool {
    let (terms, constant) = dim.parts();
    constant >= 0 && terms.iter().all(|t| t.1 >= 0)
}

/// An extent that an op computes as `max(form, 0)`: the form itself where it is never negative, else unknown.
pub fn clamped(form: &Dim) -> Dim {
    if never_negative(form) {
        return form.clone();
    }
    let (terms, constant) = form.parts();
    if constant <= 0 && terms.iter().all(|t| t.1 <= 0) { Dim::known(0) } else { Dim::fresh() }
}

/// A cotangent brought to the shape and dtype of the input that it belongs to; none for an input that is not a float.
pub fn fit(g: &mut Graph, ct: Value, x: Value) -> Option<Value> {
    let dtype = g.ty(x).dtype;
    dtype.is_float().then(|| {
        let summed = g.sum_to(ct, x);
        g.cast(summed, dtype)
    })
}
