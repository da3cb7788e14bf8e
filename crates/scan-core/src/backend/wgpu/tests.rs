//! Kernels on a device, against the interpreter. Where there is no device the tests say so.

use super::{adapters, open};
use crate::backend::gpu::testing::sweep_all;
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

#[test]
fn random_kernels() {
    if let Some(device) = device() {
        sweep_all(device);
    }
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
