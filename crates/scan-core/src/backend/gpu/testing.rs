//! Compares devices with the interpreter of kernels.

use super::DeviceRef;
use super::probe::{Trial, run};
use crate::base::Result;
use crate::kernel::testing::{Case, Options, case};
use crate::types::DType;

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

/// Dtypes without floats.
pub const INTS: [DType; 9] = [DType::Bool, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];

/// What random kernels look like: a name, their first seed, how many there are, and options.
fn families() -> [(&'static str, u64, u64, Options); 7] {
    let with = |dtypes: &[DType]| Options { dtypes: dtypes.to_vec(), calls: false, lanes: 1..=130, ..Options::default() };
    let all: Vec<DType> = INTS.into_iter().chain([DType::F32, DType::F64]).collect();
    [
        ("integers", 0, 20, with(&INTS)),
        ("float32", 1000, 15, with(&[DType::F32])),
        ("float64", 2000, 15, with(&[DType::F64])),
        ("floats and integers", 3000, 20, with(&[DType::F32, DType::F64, DType::I32, DType::U64])),
        ("every dtype", 4000, 20, with(&all)),
        ("kernels that stop", 5000, 10, Options { stop: true, ..with(&all) }),
        ("kernels that call functions", 6000, 10, Options { calls: true, ..with(&all) }),
    ]
}

/// Runs random kernels of every dtype, alone and together, about `100 · times`; what differed, and how many kernels without calls the device
/// left to the host.
///
/// # Errors
/// What the device lacks; `E0523`.
pub fn sweep(device: DeviceRef, times: u64) -> Result<(Vec<String>, usize)> {
    let (mut differ, mut left) = (vec![], 0);
    for (name, first, count, options) in families() {
        let mut own = 0;
        for seed in first..first + count * times {
            let found = difference(device, &case(seed, &options), &mut own)?;
            differ.extend(found.map(|f| format!("{name}: {f}")));
        }
        left += if options.calls { 0 } else { own };
    }
    Ok((differ, left))
}

/// The same as a test, `RSCAN_KERNELS` times.
///
/// # Panics
/// Where the device and the interpreter differ.
pub fn sweep_all(device: DeviceRef) {
    let times = std::env::var("RSCAN_KERNELS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let (differ, left) = sweep(device, times).unwrap_or_else(|e| panic!("{}", e.title));
    assert!(differ.is_empty(), "{} differ, the first:\n{}", differ.len(), differ[0]);
    assert_eq!(left, 0, "kernels that were left to the host");
}
