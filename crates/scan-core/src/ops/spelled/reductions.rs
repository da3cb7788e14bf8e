//! Reductions of very many elements, as reductions of few.

use super::extents;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::ops::reduce::{BLOCK, halved};
use crate::scalar::ElemOp;
use crate::types::{Array, Extents};

/// Sums of more elements are spelled out: fewer are summed by a few kernels.
const SUMMED: usize = 64 * BLOCK;
/// Extremes of more elements are those of parts of so many.
const PART: usize = 512;
/// So many sums of a level are added at once.
const TOGETHER: usize = 8;

/// What computes a reduction over axes beside each other; `None` where it is of few elements, or over others.
pub fn spelled(g: &mut Graph, x: Value, op: &Reduce) -> Option<Value> {
    let shape = extents(g, x)?;
    let reduced = |axis: usize| op.axes.contains(&axis);
    let wide: Vec<usize> = (0..shape.len()).filter(|&axis| shape[axis] != 1).collect();
    let (first, last) = (wide.iter().position(|&a| reduced(a))?, wide.iter().rposition(|&a| reduced(a))?);
    let together = wide[first..=last].iter().all(|&a| reduced(a));
    let extent = |axes: &[usize]| axes.iter().map(|&a| shape[a]).product::<usize>();
    let [pre, n, post] = [extent(&wide[..first]), extent(&wide[first..=last]), extent(&wide[last + 1..])];
    let is_sum = matches!(op.kind, ReduceKind::Sum | ReduceKind::Prod);
    if !together || n <= if is_sum { SUMMED } else { PART * TOGETHER } || pre * post == 0 {
        return None;
    }
    let rows = reshaped(g, x, &[pre, n, post]);
    let value = if is_sum { summed(g, rows, op.kind, [pre, n, post]) } else { by_parts(g, rows, op.kind, [pre, n, post]) };
    let kept = shape.iter().enumerate().filter(|(axis, _)| op.keepdims || !reduced(*axis));
    let kept: Extents = kept.map(|(axis, &n)| if reduced(axis) { 1 } else { n }).collect();
    Some(reshaped(g, value, &kept))
}

fn reshaped(g: &mut Graph, x: Value, shape: &[usize]) -> Value {
    let dims: Vec<Value> = shape.iter().map(|&n| g.int(n as i64)).collect();
    g.emit(Reshape {}, &[&[x], &dims[..]].concat())
}

/// Elements `lo .. hi` along the second axis.
fn part(g: &mut Graph, x: Value, [lo, hi]: [usize; 2]) -> Value {
    let bounds = [lo, hi].map(|n| g.int(n as i64));
    g.emit(Index { pattern: ":,s:e".into() }, &[x, bounds[0], bounds[1]])
}

/// The second of three axes in parts of so many elements and what is left over, each reduced.
fn in_parts(g: &mut Graph, x: Value, kind: ReduceKind, [pre, n, post]: [usize; 3], each: usize) -> Value {
    let whole = n / each;
    let all = if n % each == 0 { x } else { part(g, x, [0, whole * each]) };
    let cut = reshaped(g, all, &[pre, whole, each, post]);
    let found = g.emit(Reduce { kind, axes: vec![2], keepdims: false }, &[cut]);
    if n % each == 0 {
        return found;
    }
    let rest = part(g, x, [whole * each, n]);
    let last = g.emit(Reduce { kind, axes: vec![1], keepdims: true }, &[rest]);
    g.emit(Join { axis: 1 }, &[found, last])
}

/// Of what may be reduced in any parts.
fn by_parts(g: &mut Graph, x: Value, kind: ReduceKind, [pre, n, post]: [usize; 3]) -> Value {
    let found = in_parts(g, x, kind, [pre, n, post], PART);
    match n.div_ceil(PART) {
        few if few <= PART * TOGETHER => g.emit(Reduce { kind, axes: vec![1], keepdims: false }, &[found]),
        many => by_parts(g, found, kind, [pre, many, post]),
    }
}

/// Sums of blocks, and the law's tree over them.
fn summed(g: &mut Graph, x: Value, kind: ReduceKind, [pre, n, post]: [usize; 3]) -> Value {
    let op = if kind == ReduceKind::Sum { ElemOp::Add } else { ElemOp::Mul };
    let sums = in_parts(g, x, kind, [pre, n, post], BLOCK);
    let (mut level, mut count) = even(g, sums, op, n);
    while count > 1 {
        let each = count.min(TOGETHER);
        let cut = reshaped(g, level, &[pre, count / each, each, post]);
        let parts: Vec<Value> = (0..each)
            .map(|k| {
                let k = g.int(k as i64);
                g.emit(Index { pattern: ":,:,i".into() }, &[cut, k])
            })
            .collect();
        level = pairs(g, op, parts);
        count /= each;
    }
    level
}

fn pairs(g: &mut Graph, op: ElemOp, mut values: Vec<Value>) -> Value {
    while values.len() > 1 {
        values = values.chunks(2).map(|pair| g.emit(Op::Elem(op), pair)).collect();
    }
    values[0]
}

/// The lowest level of the tree over the sums of the blocks of n elements that has a power of two of nodes, each of a block or of two, and how
/// many they are.
fn even(g: &mut Graph, sums: Value, op: ElemOp, n: usize) -> (Value, usize) {
    let blocks = n.div_ceil(BLOCK);
    let nodes = 1 << blocks.ilog2();
    if nodes == blocks {
        return (sums, blocks);
    }
    let found = leaves([0, n], nodes);
    let mut at = |behind: usize| {
        let places: Vec<i64> = found.iter().map(|[lo, hi]| ((lo / BLOCK + behind).min(hi.div_ceil(BLOCK) - 1)) as i64).collect();
        let places = g.constant(Array::vector(&places));
        g.emit(Gather { axes: vec![1] }, &[sums, places])
    };
    let (first, second) = (at(0), at(1));
    let both = g.emit(Op::Elem(op), &[first, second]);
    let two: Vec<bool> = found.iter().map(|[lo, hi]| hi - lo > BLOCK).collect();
    let two = g.constant(Array::vector(&two));
    let two = reshaped(g, two, &[1, nodes, 1]);
    (g.select(two, both, first), nodes)
}

/// The elements of each of so many nodes of the tree over a range.
fn leaves([lo, hi]: [usize; 2], nodes: usize) -> Vec<[usize; 2]> {
    if nodes == 1 {
        return vec![[lo, hi]];
    }
    let mid = halved(lo, hi);
    [leaves([lo, mid], nodes / 2), leaves([mid, hi], nodes / 2)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::run;
    use crate::types::{DType, Type};

    /// What a reduction is, and what it is as it is spelled out, if it is.
    fn both(x: &Array, op: &Reduce) -> Option<[Vec<u64>; 2]> {
        let mut g = Graph::new();
        let p = g.param(Type::known(x.dtype(), x.shape()), None);
        let (law, other) = (g.emit(op.clone(), &[p]), spelled(&mut g, p, op)?);
        g.set_results(vec![law, other]);
        let found = run(&g, &mut EvalCx::new(), &[x.clone()]).unwrap_or_else(|e| panic!("{}", e.title));
        assert_eq!((found[0].shape(), found[0].dtype()), (found[1].shape(), found[1].dtype()));
        Some([found[0].bits(), found[1].bits()])
    }

    #[test]
    fn reductions_of_many_elements_have_the_laws_bits() {
        let numbers = |n: usize| -> Vec<f64> { (0..n).map(|k| ((k * 7919) % 1009) as f64 * 0.37 - 186.0).collect() };
        for n in [16385, 16640, 20000, 65536, 70001, 131_073] {
            for (shape, axis) in [(vec![n], 0), (vec![2, n], 1), (vec![n, 3], 0)] {
                for kind in [ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min] {
                    let x = Array::vector(&numbers(shape.iter().product())).reshaped(&shape);
                    for x in [x.cast(DType::F32), x.cast(DType::I16)] {
                        let op = Reduce { kind, axes: vec![axis], keepdims: n % 2 == 0 };
                        let [law, found] = both(&x, &op).unwrap_or_else(|| panic!("{n} elements are many"));
                        assert_eq!(law, found, "{kind:?} {shape:?} {}", x.dtype());
                    }
                }
            }
        }
        let sum = |axes: &[usize]| Reduce { kind: ReduceKind::Sum, axes: axes.to_vec(), keepdims: false };
        let x = Array::vector(&numbers(30 * 40 * 50)).reshaped(&[30, 40, 50]);
        assert!(both(&x, &sum(&[0, 1, 2])).is_some_and(|[law, found]| law == found));
        assert!(both(&x, &sum(&[0, 1])).is_none() && both(&x, &sum(&[0, 2])).is_none());
    }

    #[test]
    fn nodes_of_the_tree_are_blocks_or_pairs() {
        for blocks in 1..200usize {
            let (n, nodes) = (blocks * BLOCK - 100, 1 << blocks.ilog2());
            let found = leaves([0, n], nodes);
            assert_eq!((found.len(), found[0][0], found[nodes - 1][1]), (nodes, 0, n));
            assert!(found.windows(2).all(|pair| pair[0][1] == pair[1][0]));
            assert!(found.iter().all(|[lo, hi]| lo % BLOCK == 0 && (1..=2).contains(&(hi - lo).div_ceil(BLOCK))));
        }
    }
}
