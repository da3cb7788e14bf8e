use super::compile;
use crate::backend::cpu::isa::Isa;
use crate::backend::cpu::testing::check;
use crate::kernel::testing::{Options, case};
use crate::kernel::verify;
use crate::types::DType;

fn sweep(seeds: std::ops::Range<u64>, options: &Options) {
    for seed in seeds {
        let case = case(seed, options);
        verify(&case.kernel).expect("well-formed");
        Isa::available().for_each(|isa| check(&*compile(&case.kernel, isa), &case));
    }
}

fn everything() -> Options {
    Options { overlaps: true, ..Default::default() }
}

/// Few dtypes, so that values meet more often.
fn narrow() -> Options {
    Options { dtypes: vec![DType::F64, DType::I64, DType::Bool], insts: 0..=12, ..everything() }
}

#[test]
fn many_lanes_have_the_bits_of_the_interpreter() {
    sweep(0..600, &everything());
    sweep(10_000..10_600, &Options { lanes: 2..=20, ..narrow() });
}

#[test]
fn several_chunks_have_the_bits_of_the_interpreter() {
    sweep(1000..1120, &Options { lanes: 200..=1100, steps: 1..=3, ..everything() });
}

#[test]
fn one_lane_has_the_bits_of_the_interpreter() {
    sweep(2000..2500, &Options { lanes: 1..=1, steps: 1..=9, scatters: true, ..everything() });
    sweep(20_000..21_500, &Options { lanes: 1..=1, ..narrow() });
}

#[test]
fn loops_in_steps_have_the_bits_of_the_interpreter() {
    sweep(5000..5600, &Options { lanes: 1..=1, loops: true, scatters: true, steps: 1..=5, ..everything() });
}

#[test]
fn kernels_stop_where_the_interpreter_does() {
    sweep(3000..3500, &Options { stop: true, steps: 1..=9, scatters: true, ..everything() });
    sweep(30_000..32_000, &Options { stop: true, steps: 1..=9, ..narrow() });
}

#[test]
fn long_bodies_reuse_their_slots() {
    sweep(4000..4040, &Options { insts: 200..=400, lanes: 60..=300, steps: 2..=3, dtypes: vec![DType::F64, DType::I64], ..everything() });
}

#[test]
fn a_row_that_stays_may_be_overwritten_on_the_way() {
    sweep(0..2500, &Options { dtypes: vec![DType::F64], insts: 4..=14, lanes: 1..=4, steps: 3..=5, calls: false, ..everything() });
}
