//! Compares a device with the interpreter of kernels.

use super::DeviceRef;
use super::probe::{Trial, run};
use crate::base::Result;
use crate::kernel::testing::Case;

/// The first difference between a device and the interpreter; `None` as well where it has no program, or needs the host, which is counted.
///
/// # Errors
/// What the device lacks.
pub fn difference(device: DeviceRef, case: &Case, left: &mut usize) -> Result<Option<String>> {
    let memories: Vec<_> = case.dtypes.iter().copied().zip(case.memories.iter().cloned()).collect();
    let Case { kernel, operands, lanes, steps, first, .. } = case;
    let trial = Trial { kernel, memories: &memories, operands, lanes: *lanes, steps: *steps, first: *first };
    let Ok(Some((found, ran))) = run(device, &trial)? else {
        *left += 1;
        return Ok(None);
    };
    let (expected, steps) = case.expected();
    if ran != steps {
        return Ok(Some(format!("{ran} steps instead of {steps}\n{}", case.show())));
    }
    Ok(case.difference(&expected, &found).map(|d| format!("{d}\n{}", case.show())))
}
