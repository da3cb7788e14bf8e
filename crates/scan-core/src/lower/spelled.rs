//! A step for devices: ops that have no kernels there in terms of ops that have some.

use super::Lowered;
use super::rewritten::rewritten;
use crate::ir::Scan;
use crate::scan::retype::specialised;
use crate::types::{Array, Type};

/// The loop with ops [spelled out](crate::ir::Op::spelled), for body parameters of these types, of which some have a value; `None` where there
/// are none.
///
/// # Errors
/// What type inference reports.
pub fn spelled(scan: &Scan, types: &[Type], values: &[Option<Array>], quick_in_f64: bool) -> Lowered<Option<Scan>> {
    let body = specialised(&scan.body, types, values)?;
    let body = rewritten(&body, |out, image, _, node| {
        let [x] = node.ins[..] else { return Ok(None) };
        Ok(node.op.spelled(out, image[&x], quick_in_f64))
    })?;
    Ok(body.map(|body| Scan { body, ..scan.clone() }))
}
