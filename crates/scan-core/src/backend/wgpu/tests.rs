//! Kernels on a device, against the interpreter. Where there is no device the tests say so.

use super::{adapters, open};
use crate::backend::gpu::testing::difference;
use crate::backend::gpu::{DeviceRef, Shape};
use crate::kernel::testing::{Options, case};
use crate::types::DType;

/// The last adapter: the one that runs on the processor, where there is one.
fn device() -> Option<DeviceRef> {
    let Some(k) = adapters().len().checked_sub(1) else {
        eprintln!("wgpu: not run (no device)");
        assert!(std::env::var_os("RSCAN_REQUIRE_WGPU").is_none(), "a device is required");
        return None;
    };
    Some(open(k).unwrap_or_else(|e| panic!("{}", e.title)))
}

/// As many times as many kernels: `RSCAN_KERNELS=20` makes 2,000 of 100.
fn many() -> u64 {
    std::env::var("RSCAN_KERNELS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

/// Runs so many random kernels; how many the device left to the host.
fn sweep(dtypes: &[DType], seeds: std::ops::Range<u64>, stop: bool, calls: bool) -> usize {
    let Some(device) = device() else { return 0 };
    let seeds = seeds.start..seeds.start + (seeds.end - seeds.start) * many();
    let options = Options { dtypes: dtypes.to_vec(), stop, calls, lanes: 1..=130, ..Options::default() };
    let (mut left, mut differ) = (0, vec![]);
    for seed in seeds {
        let found = difference(device, &case(seed, &options), &mut left).unwrap_or_else(|e| panic!("seed {seed}: {}", e.title));
        differ.extend(found);
    }
    assert!(differ.is_empty(), "{} differ, the first:\n{}", differ.len(), differ[0]);
    left
}

const INTS: [DType; 9] = [DType::Bool, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];

#[test]
fn random_kernels_of_integers() {
    assert_eq!(sweep(&INTS, 0..20, false, false), 0);
}

#[test]
fn random_kernels_of_floats() {
    assert_eq!(sweep(&[DType::F32], 1000..1015, false, false), 0);
    assert_eq!(sweep(&[DType::F64], 2000..2015, false, false), 0);
    assert_eq!(sweep(&[DType::F32, DType::F64, DType::I32, DType::U64], 3000..3020, false, false), 0);
}

#[test]
fn random_kernels_of_every_dtype() {
    let all: Vec<DType> = INTS.into_iter().chain([DType::F32, DType::F64]).collect();
    assert_eq!(sweep(&all, 4000..4020, false, false), 0);
    assert_eq!(sweep(&all, 5000..5010, true, false), 0, "kernels that stop");
    assert!(sweep(&all, 6000..6010, false, true) < 10 * many() as usize, "some call no function");
}

#[test]
fn a_device_says_what_it_computes() {
    let Some(device) = device() else { return };
    let traits = device.0.traits();
    assert_eq!((&traits.no_f32, &traits.no_f64, &traits.no_i64, &traits.no_fma), (&None, &None, &None, &None), "{traits:?}");
    assert!(device.0.name().starts_with("wgpu:") && device.0.limit() >= 1 << 27);
}

#[test]
fn the_text_of_a_kernel() {
    let kernel = &case(3, &Options { dtypes: vec![DType::F32], insts: 2..=2, ..Options::default() }).kernel;
    let text = super::wgsl::text(kernel, &Shape::default(), [true; 2]).unwrap_or_else(|e| panic!("{}", e.0));
    assert!(text.contains("@compute @workgroup_size(64)") && text.contains("for (var t: u32"), "{text}");
}

#[test]
fn a_device_that_is_not_there() {
    let error = open(99).expect_err("so many are nowhere");
    assert_eq!((error.code, error.title.as_str()), ("E0521", "there is no device wgpu:99"));
    assert_eq!(error.notes.len(), 1);
}
