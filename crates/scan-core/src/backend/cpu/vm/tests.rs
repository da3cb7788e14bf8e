use super::compile;
use crate::backend::cpu::isa::Isa;
use crate::backend::cpu::testing::check;
use crate::kernel::testing::{Options, case};
use crate::types::DType;

fn sweep(seeds: std::ops::Range<u64>, options: &Options) {
    for seed in seeds {
        let case = case(seed, options);
        Isa::available().for_each(|isa| check(&*compile(&case.kernel, isa), &case));
    }
}

#[test]
fn many_lanes_have_the_bits_of_the_interpreter() {
    sweep(0..600, &Options::default());
}

#[test]
fn several_chunks_have_the_bits_of_the_interpreter() {
    sweep(1000..1120, &Options { lanes: 200..=1100, steps: 1..=3, ..Default::default() });
}

#[test]
fn one_lane_has_the_bits_of_the_interpreter() {
    sweep(2000..2500, &Options { lanes: 1..=1, steps: 1..=9, ..Default::default() });
    sweep(3000..3500, &Options { stop: true, steps: 1..=9, ..Default::default() });
}

#[test]
fn long_bodies_reuse_their_slots() {
    sweep(
        4000..4040,
        &Options { insts: 200..=400, lanes: 60..=300, steps: 2..=3, dtypes: vec![DType::F64, DType::I64], ..Default::default() },
    );
}
