use super::super::fake::{Fake, assemble};
use super::super::{open_on, whole};
use super::*;
use crate::backend::gpu::launch::Base;
use crate::backend::gpu::launch::whole::{HEAD, Part, STEADY, WAIT, Wait, params, words};
use crate::backend::gpu::{DeviceRef, kernels};
use crate::kernel::{Bin, Inst, Kernel, Lane, Mem, MemId, Nest, Op, Store, Strides};
use crate::types::DType;

const CARD: Target = Target { processors: 132, copies: true, shared: 227 << 10 };

fn device() -> DeviceRef {
    open_on(Box::leak(Box::<Fake>::default()), 0).unwrap_or_else(|e| panic!("{}", e.title))
}

fn product(device: DeviceRef, dtype: DType, [m, k, n]: [usize; 3]) -> Launch {
    let size = dtype.size() as isize;
    let nest = kernels::chains(dtype, [m, k, n], [size, k as isize * size], n as isize * size);
    let product = Product { dtype, extents: [m, k, n], turned: false, adds: false };
    Launch::of_product(device, nest, product).unwrap_or_else(|e| panic!("{}", e.title)).expect("a card multiplies")
}

/// A sum of operands in rows that lie so many elements apart; the last one is the result.
fn sum(device: DeviceRef, [rows, columns]: [usize; 2], apart: &[usize]) -> Launch {
    let mut kernel = Kernel::default();
    let mems: Vec<MemId> = apart.iter().map(|_| kernel.mems.push(Mem::new(DType::F32, Lane::Unit))).collect();
    let (&result, read) = mems.split_last().expect("a result");
    let mut values = read.iter().map(|&mem| Inst { op: Op::Load(mem), dtype: DType::F32 }).collect::<Vec<_>>().into_iter();
    let mut value = kernel.body.push(values.next().expect("one at least"));
    for inst in values {
        let other = kernel.body.push(inst);
        value = kernel.body.push(Inst { op: Op::Bin(Bin::Add, value, other), dtype: DType::F32 });
    }
    kernel.stores.push(Store { mem: result, value, at: None });
    let strides = apart.iter().map(|&n| Strides { step: 0, outer: [4 * n as isize].into_iter().collect() }).collect();
    let nest = Nest { kernel, lanes: columns, steps: 1, first: 0, outer: [rows].into_iter().collect(), strides, fills: vec![] };
    Launch::of_nest(device, nest, false, 0).unwrap_or_else(|e| panic!("{}", e.title)).unwrap_or_else(|r| panic!("{}", r.0))
}

/// An LSTM's step: the product, what is added to it, and a sum of its four slices to a row of the state.
fn lstm(device: DeviceRef, [batch, width]: [usize; 2]) -> [Launch; 3] {
    let all = 4 * width;
    let product = product(device, DType::F32, [batch, width, all]);
    [product, sum(device, [batch, all], &[all; 3]), sum(device, [batch, width], &[all, all, all, all, width])]
}

/// Who waits before each part, and whether its right side stays, where operands begin at these words in the first step and the second.
fn flags(parts: &[Launch], tilings: &[Option<Tiling>], begins: &[[&[usize]; 2]]) -> Vec<(u32, bool)> {
    let base = |&at: &usize| Base { at, from: 0, to: 1 << 24 };
    let parts: Vec<Part> = parts
        .iter()
        .zip(tilings)
        .zip(begins)
        .map(|((launch, &tiling), begins)| Part {
            launch,
            tiling,
            bases: begins.map(|begin| begin.iter().map(base).collect()),
            strides: vec![0; begins[0].len()],
        })
        .collect();
    let params = params(&parts, 2, 0, 4, 8);
    let mut at = HEAD;
    let found = parts.iter().map(|part| {
        at += words(part.launch);
        let flags = params[at - words(part.launch)];
        (flags & WAIT, flags & STEADY != 0)
    });
    found.collect()
}

#[test]
fn what_follows_a_product_element_on_element_is_cut_alike() {
    let device = device();
    let parts = lstm(device, [32, 256]);
    let all: Vec<&Launch> = parts.iter().collect();
    let tilings = tilings(&all, CARD);
    let tiling = tilings[0].expect("a small product");
    assert_eq!(tilings, [Some(tiling); 3]);
    assert_eq!((tiling.rows, tiling.period), (32, 256));
    let tiles: usize = tiling.tiles().iter().product();
    assert!((64..=132).contains(&tiles), "{tiling:?}");
    // h in two rows that take turns, U, the product, x, what is added up, and the state.
    let (h, u, p, x, z) = (1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 19);
    let [now, next] = [h, h + 32 * 256];
    let begins = |[now, next]: [usize; 2], z: usize| [vec![now, u, p], vec![x, p, z], vec![z, z + 256, z + 512, z + 768, next]];
    let [one, two] = [begins([now, next], z), begins([next, now], z)];
    let at = |k: usize| [&one[k][..], &two[k][..]];
    let waits = flags(&parts, &tilings, &[at(0), at(1), at(2)]);
    assert_eq!(waits, [(Wait::Nobody as u32, true), (Wait::Block as u32, false), (Wait::Block as u32, false)]);
    // As they come, all wait.
    let waits = flags(&parts, &[None; 3], &[at(0), at(1), at(2)]);
    assert_eq!(waits.iter().map(|w| w.0).collect::<Vec<_>>(), [0, 2, 2]);
    // The state written where the product reads it; slices that begin elsewhere; the right side written.
    let in_place = begins([now, now], z);
    let at = |k: usize| [&in_place[k][..]; 2];
    assert_eq!(flags(&parts, &tilings, &[at(0), at(1), at(2)])[2].0, Wait::All as u32);
    let mut shifted = begins([now, next], z);
    shifted[2][1] += 1;
    let at = |k: usize| [&shifted[k][..]; 2];
    assert_eq!(flags(&parts, &tilings, &[at(0), at(1), at(2)])[2].0, Wait::All as u32);
    let written = begins([now, u + 5], z);
    let at = |k: usize| [&written[k][..]; 2];
    let waits = flags(&parts, &tilings, &[at(0), at(1), at(2)]);
    assert_eq!((waits[0].1, waits[2].0), (false, Wait::All as u32));
}

#[test]
fn parts_that_do_not_fit_are_left_as_they_come() {
    let device = device();
    let of = |parts: &[Launch]| tilings(&parts.iter().collect::<Vec<_>>(), CARD);
    // Too large for the memory of a block.
    assert_eq!(of(&[product(device, DType::F32, [512, 4096, 4096])]), [None]);
    // Other rows, and columns with no divisor in common.
    let parts = [product(device, DType::F64, [16, 40, 24]), sum(device, [7, 24], &[24, 24]), sum(device, [16, 25], &[25, 25])];
    let found = of(&parts);
    assert!(found[0].is_some() && found[1..] == [None; 2], "{found:?}");
    // Two products of the same rows, and one of others.
    let parts = [[16, 64, 128], [16, 64, 64], [8, 64, 64]].map(|extents| product(device, DType::F32, extents));
    let found = of(&parts);
    assert!(found[0] == found[1] && found[0].is_some() && found[2].is_some() && found[2] != found[0], "{found:?}");
}

#[test]
fn an_assembler_takes_products_of_steps() {
    let Some(ptxas) = assemble::found() else {
        eprintln!("ptxas: not run (not installed)");
        return;
    };
    let device = device();
    let narrow = product(device, DType::F64, [5, 700, 24]);
    for parts in [lstm(device, [32, 256]).into(), lstm(device, [3, 1024]).into(), vec![narrow]] {
        let all: Vec<&Launch> = parts.iter().collect();
        for copies in [true, false] {
            let target = Target { copies, ..CARD };
            let tilings = tilings(&all, target);
            assert!(tilings[0].is_some());
            let module = whole::text(&all, &tilings, target).unwrap_or_else(|r| panic!("{}", r.0));
            assemble::assemble(&ptxas, &module.text).unwrap_or_else(|why| panic!("{why}"));
        }
    }
}
