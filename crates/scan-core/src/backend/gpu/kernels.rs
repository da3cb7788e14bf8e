//! Kernels that devices need beside those of a plan: copies, fills, products.

use crate::kernel::{Bin, Carry, CarryId, Inst, Kernel, Lane, Mem, MemId, Nest, Op, Reg, Store, Strides};
use crate::scalar::lanes::fused;
use crate::scalar::product::DEPTH;
use crate::types::DType;
use smallvec::{SmallVec, smallvec};

fn mem(kernel: &mut Kernel, dtype: DType, lane: Lane) -> MemId {
    kernel.mems.push(Mem::new(dtype, lane))
}

fn push(kernel: &mut Kernel, op: Op, dtype: DType) -> Reg {
    kernel.body.push(Inst { op, dtype })
}

/// The element of one operand to another; `n` elements that lie `step` bytes apart in the first, beside each other in the second.
pub fn copy(dtype: DType, n: usize, step: isize) -> Nest {
    rows(dtype, [1, n], [0, step])
}

/// Rows of elements, which lie beside each other in the second operand: `[rows, columns]`, and the bytes from one row and from one column
/// to the next in the first.
pub fn rows(dtype: DType, extents: [usize; 2], apart: [isize; 2]) -> Nest {
    strided(dtype, &extents, &apart)
}

/// Elements of these extents, which lie beside each other in the second operand, and so many bytes apart along each axis in the first.
pub fn strided(dtype: DType, extents: &[usize], apart: &[isize]) -> Nest {
    let mut kernel = Kernel::default();
    let (from, to) = (mem(&mut kernel, dtype, Lane::Uniform), mem(&mut kernel, dtype, Lane::Uniform));
    let value = push(&mut kernel, Op::Load(from), dtype);
    kernel.stores.push(Store { mem: to, value, at: None });
    let size = dtype.size() as isize;
    let beside: Vec<isize> = (0..extents.len()).map(|axis| size * extents[axis + 1..].iter().product::<usize>() as isize).collect();
    let strides = vec![at(0, apart), at(0, &beside)];
    Nest { kernel, lanes: 1, steps: 1, first: 0, outer: SmallVec::from_slice(extents), strides, fills: vec![] }
}

/// So many elements of these bits.
pub fn fill(dtype: DType, bits: u64, n: usize) -> Nest {
    let mut kernel = Kernel::default();
    let to = mem(&mut kernel, dtype, Lane::Unit);
    let value = push(&mut kernel, Op::Const(bits), dtype);
    kernel.stores.push(Store { mem: to, value, at: None });
    Nest { kernel, lanes: n, steps: 1, first: 0, outer: SmallVec::new(), strides: vec![at(0, &[])], fills: vec![] }
}

fn at(step: isize, outer: &[isize]) -> Strides {
    Strides { step, outer: SmallVec::from_slice(outer) }
}

/// The parts of the inner extent of a product that one chain adds up: first and extent.
pub fn blocks(k: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..k).step_by(DEPTH).map(move |p| [p, DEPTH.min(k - p)])
}

/// Chains of `k` products, those of one of the [`blocks`], for each of m·n elements: operands are the left side, of which so many bytes lie
/// between the elements that a chain reads, and between those where chains begin; rows of the right side, so many bytes apart; and the
/// chains, which begin at 0.
pub fn chains(dtype: DType, [m, k, n]: [usize; 3], [along, row]: [isize; 2], down: isize) -> Nest {
    let mut kernel = Kernel::default();
    let lanes = [Lane::Uniform, Lane::Unit, Lane::Unit];
    let [a, b, c] = lanes.map(|lane| mem(&mut kernel, dtype, lane));
    let (x, y) = (push(&mut kernel, Op::Load(a), dtype), push(&mut kernel, Op::Load(b), dtype));
    let sum = push(&mut kernel, Op::Carry(CarryId(0)), dtype);
    let next = if fused() {
        push(&mut kernel, Op::Fma(x, y, sum), dtype)
    } else {
        let product = push(&mut kernel, Op::Bin(Bin::Mul, x, y), dtype);
        push(&mut kernel, Op::Bin(Bin::Add, product, sum), dtype)
    };
    kernel.carries.push(Carry { mem: c, next });
    let size = dtype.size() as isize;
    let strides = vec![at(along, &[row]), at(down, &[0]), at(0, &[n as isize * size])];
    Nest { kernel, lanes: n, steps: k, first: 0, outer: smallvec![m], strides, fills: vec![] }
}

/// The second operand's elements, which lie so many bytes apart, added to the first's.
pub fn add(dtype: DType, n: usize, apart: isize) -> Nest {
    let mut kernel = Kernel::default();
    let [sum, block] = [(); 2].map(|()| mem(&mut kernel, dtype, Lane::Uniform));
    let (x, y) = (push(&mut kernel, Op::Load(sum), dtype), push(&mut kernel, Op::Load(block), dtype));
    let value = push(&mut kernel, Op::Bin(Bin::Add, x, y), dtype);
    kernel.stores.push(Store { mem: sum, value, at: None });
    let strides = vec![at(0, &[dtype.size() as isize]), at(0, &[apart])];
    Nest { kernel, lanes: 1, steps: 1, first: 0, outer: smallvec![n], strides, fills: vec![] }
}

/// A number counted up.
pub fn count() -> Nest {
    let mut kernel = Kernel::default();
    let at_ = mem(&mut kernel, DType::I64, Lane::Uniform);
    let (x, one) = (push(&mut kernel, Op::Load(at_), DType::I64), push(&mut kernel, Op::Const(1), DType::I64));
    let value = push(&mut kernel, Op::Bin(Bin::Add, x, one), DType::I64);
    kernel.stores.push(Store { mem: at_, value, at: None });
    Nest { kernel, lanes: 1, steps: 1, first: 0, outer: SmallVec::new(), strides: vec![at(0, &[])], fills: vec![] }
}
