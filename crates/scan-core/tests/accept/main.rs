//! Random loop programs against an interpreter of their own, finite differences and their unrolled form.
//!
//! `RSCAN_RANDOM_STOP=1` stops at the first fault and leaves it as it is; otherwise faults are shrunk.
//!
//! `RSCAN_RANDOM_PROGRAMS=5000 RSCAN_RANDOM_SEED=0 cargo test -p scan-core --features testing --test accept -- --nocapture`

use scan_core::backend::cpu::Isa;
use scan_core::base::small;
use scan_core::plan::mutate::faults;
use scan_core::plan::testing::watching;
use scan_core::rewrite::pipeline::PASSES;
use scan_core::testing::program::FEATURES;
use scan_core::testing::{check, generate, misfit, run, saved, sessions};
use std::process::Command;

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn random_programs_agree_with_reference_differences_and_unrolled_form() {
    let count = setting("RSCAN_RANDOM_PROGRAMS", 300);
    let report = run(setting("RSCAN_RANDOM_SEED", 0), count, setting("RSCAN_RANDOM_STOP", 0) != 0);
    println!("{report}");
    let rare: Vec<&str> = FEATURES.iter().copied().filter(|f| (report.features.get(f).map_or(0, |r| r.0) as u64) < count / 20).collect();
    let few = |pass: &&str| (report.passes.get(pass).copied().unwrap_or(0) as u64) < count / 100;
    let possible = |pass: &&str| *pass != "fma" || scan_core::scalar::lanes::fused();
    let idle: Vec<&str> = PASSES.iter().map(|p| p.name).filter(possible).filter(few).collect();
    assert!(small::calls() as u64 > count, "few calls of kernels had lanes for two threads");
    assert!(report.faults.is_empty(), "{} of {count} programs disagree", report.faults.len());
    assert!(rare.is_empty(), "used by fewer than one program in 20: {rare:?}");
    assert!(idle.is_empty(), "passes that find something in fewer than one program in 100: {idle:?}");
}

/// What the loops of random programs run is read back from its text, verified, and interpreted on memory that holds one thing or another where
/// nothing was written: to the bit what the engine made.
#[test]
fn plans_of_random_programs_mean_what_engines_compute() {
    let count = setting("RSCAN_RANDOM_PROGRAMS", 60);
    let (report, found) = watching(|| run(setting("RSCAN_RANDOM_SEED", 0) + 50_000, count, true));
    println!("{} runs of lists, {} of kernels, {} left to the law", found.lists, found.kernels, found.left);
    assert!(found.faults.is_empty(), "{} plans mean something else:\n{}", found.faults.len(), found.faults[0]);
    assert!(report.faults.is_empty(), "{report}");
    assert!(found.lists as u64 > 2 * count && found.kernels as u64 > count, "few plans were interpreted");
}

/// Of faults that are made in plans, seven in ten are found before they run, and nearly all when they are interpreted.
#[test]
fn faults_in_plans_are_found() {
    let (_, found) = watching(|| run(setting("RSCAN_RANDOM_SEED", 0) + 70_000, 40, true));
    assert!(found.samples.len() > 100, "few lists ran");
    let caught = faults(&found, 1, 200);
    println!("{} faults: {} found by the verifier, {} by the interpreter", caught.faults, caught.verified, caught.interpreted);
    let survivors = caught.survivors.join("\n");
    assert!(10 * caught.verified >= 7 * caught.faults, "{} of {} found by the verifier", caught.verified, caught.faults);
    assert!(100 * (caught.verified + caught.interpreted) >= 92 * caught.faults, "{} were not found:\n{survivors}", caught.survivors.len());
}

/// One program under each instruction set, for so many under the one that is used otherwise.
const SHARE: u64 = 10;

/// Fewer programs, others than those above, for whatever instruction set the process uses.
#[test]
#[ignore = "run by `random_programs_agree_under_every_instruction_set`, in processes of its own"]
fn a_share_of_random_programs_agrees() {
    let count = setting("RSCAN_RANDOM_PROGRAMS", 300);
    let report = run(setting("RSCAN_RANDOM_SEED", 0) + count, count.div_ceil(SHARE), true);
    assert!(report.faults.is_empty(), "{report}");
}

/// Masks, registers and instructions differ where vectors are narrower, and so do last digits without `fma`. A process chooses once.
#[test]
fn random_programs_agree_under_every_instruction_set() {
    let program = std::env::current_exe().unwrap_or_else(|e| panic!("{e}"));
    for isa in Isa::available().filter(|isa| *isa != Isa::machine()) {
        let test = ["--ignored", "--exact", "a_share_of_random_programs_agrees"];
        let done = Command::new(&program).args(test).env("RSCAN_ISA", isa.name()).output().unwrap_or_else(|e| panic!("{e}"));
        let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && text.contains("1 passed"), "RSCAN_ISA={}: {}\n{text}", isa.name(), done.status);
    }
}

/// A sum over one element had another sign of zero in lists of kernels; a loop handed on a shared variable that a later one updates, and
/// the reference did not see that this one computes the first anew; a gradient compared a maximum that a loop had kept with what it was of,
/// computed again and rounded otherwise, and lost what flowed through it; rows that no step made had two widths; the reference took
/// log(1 + x²) of an x² that 1 + x² does not show; a product became zeros whose factor was computed for its shape.
#[test]
fn programs_that_once_disagreed() {
    for seed in [20_946, 1_000_623, 5_001_301, 8_003_055, 30_008_478, 30_013_444, 50_016_787] {
        check(&generate(seed)).unwrap_or_else(|fault| panic!("seed {seed}: {}: {}", fault.stage, fault.text));
    }
}

/// Equal elements of a solution, and of two sums, are compared: the next rounding tells how many steps run.
#[test]
fn what_hangs_on_a_rounding_is_compared_in_bits() {
    let done = check(&generate(30_011_413)).unwrap_or_else(|fault| panic!("{}: {}", fault.stage, fault.text));
    assert!(done.bits_only);
    let whole = check(&generate(8_003_055)).unwrap_or_else(|fault| panic!("{}: {}", fault.stage, fault.text));
    assert!(!whole.bits_only, "a maximum is one of the elements that it is of");
}

/// `RSCAN_SAVED_PROGRAMS=2000 RSCAN_RANDOM_SEED=0`: how many programs, and from which seed on.
#[test]
fn saved_programs_give_the_same_bits() {
    let (first, count) = (setting("RSCAN_RANDOM_SEED", 0), setting("RSCAN_SAVED_PROGRAMS", 50));
    for seed in first..first + count {
        saved::check(&generate(seed)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// `RSCAN_MISFIT_PROGRAMS=20000 RSCAN_RANDOM_SEED=0`: how many programs, and from which seed on.
#[test]
fn engines_report_what_the_evaluator_reports() {
    let report = misfit::run(setting("RSCAN_RANDOM_SEED", 0), setting("RSCAN_MISFIT_PROGRAMS", 150));
    println!("{report}");
    assert!(report.faults.is_empty(), "{} of {} programs differ", report.faults.len(), report.programs);
    let errors: usize = report.outcomes.iter().filter(|o| o.0 != "answered").map(|o| o.1).sum();
    assert!(10 * errors > report.calls, "few calls are errors");
}

/// A loop in a step hung on the step by an extent alone; a product of 1 × 1 matrices underflowed.
#[test]
fn calls_that_once_differed() {
    for seed in [3294, 3788, 14_334, 14_992, 19_441] {
        let report = misfit::run(seed, 1);
        assert!(report.faults.is_empty(), "seed {seed}: {report}");
    }
}

/// `RSCAN_SESSION_PROGRAMS=20000 RSCAN_RANDOM_SEED=0`: how many programs, and from which seed on.
#[test]
fn sessions_make_the_rows_of_the_whole_call() {
    let count = setting("RSCAN_SESSION_PROGRAMS", 150);
    let report = sessions::run(setting("RSCAN_RANDOM_SEED", 0), count);
    println!(
        "{} compared, {} of them with rows, {} with states; no step: {:#?}",
        report.compared, report.rows, report.with_states, report.refused
    );
    report.faults.iter().take(5).for_each(|fault| println!("{fault}"));
    report.faults.iter().skip(5).filter_map(|fault| fault.lines().next()).for_each(|line| println!("{line}"));
    assert!(report.faults.is_empty(), "{} disagree", report.faults.len());
    assert!(report.rows as u64 > count && report.with_states as u64 > count, "few programs go step by step");
}

/// `RSCAN_DEVICE_PROGRAMS=500`: how many programs, on the device that `RSCAN_DEVICE` names. In a process of its own: which driver runs is
/// settled when the first device is asked for.
#[cfg(all(feature = "cuda", feature = "wgpu"))]
#[test]
#[ignore = "run by `random_programs_agree_on_devices`, in a process of its own"]
fn a_share_of_random_programs_agrees_on_a_device() {
    use scan_core::testing::check_on;
    let name = std::env::var("RSCAN_DEVICE").unwrap_or_else(|_| "cpu".into());
    let engine = scan_core::prelude::engine_on(&name).unwrap_or_else(|e| panic!("{}", e.title));
    let first = setting("RSCAN_RANDOM_SEED", 0);
    // A state began with rows that lay on the device, and a part of the step ran on the host.
    let once_failed = [17];
    for seed in (first..first + setting("RSCAN_DEVICE_PROGRAMS", 4)).chain(once_failed) {
        println!("seed {seed}");
        check_on(&generate(seed), engine).unwrap_or_else(|fault| panic!("seed {seed}: {}: {}", fault.stage, fault.text));
    }
}

#[cfg(all(feature = "cuda", feature = "wgpu"))]
#[test]
fn random_programs_agree_on_devices() {
    let mut devices = vec!["cuda:0".to_string()];
    match scan_core::backend::wgpu::adapters().pop() {
        Some(adapter) => devices.push(adapter.name),
        None => {
            println!("wgpu: not run (no device)");
            assert!(std::env::var_os("RSCAN_REQUIRE_WGPU").is_none(), "a device is required");
        }
    }
    for name in devices {
        let program = std::env::current_exe().unwrap_or_else(|e| panic!("{e}"));
        let mut test = Command::new(&program);
        test.args(["--ignored", "--exact", "a_share_of_random_programs_agrees_on_a_device"]);
        // No `fma` is rounded once where a device has no such instruction: what it spells out takes long to compile.
        let setting = if name.starts_with("cuda") { ("RSCAN_CUDA_DRIVER", "fake") } else { ("RSCAN_ISA", "portable") };
        let done = test.env("RSCAN_DEVICE", &name).env(setting.0, setting.1).output().unwrap_or_else(|e| panic!("{e}"));
        let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && text.contains("1 passed"), "{name}: {}\n{text}", done.status);
    }
}
