//! A system and the determinant of its matrix by one factorisation. The pass `linalg_share` writes it: what it computes, its errors
//! and its gradients are those of `solve` and `slogdet`.

use super::args::expect_count;
use super::batch::products;
use super::factor::Lu;
use super::linalg::{Systems, signs_and_logs, singular_maybe_of_slogdet, slogdet};
use crate::bail;
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::shape::tuple;
use crate::types::{Array, Type, memory};

const SYSTEM: Solve = Solve { kind: MatrixKind::General };

impl OpDef for SolveSLogDet {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("solve_slogdet", 2, false, ins)?;
        let mut outs = SYSTEM.infer(ins)?;
        outs.extend(SLogDet {}.infer(&ins[..1])?);
        let axes = if ins[1].ty.rank() == 1 { 1 } else { 2 };
        let (batch, matrices) = (&outs[0].dims[..outs[0].rank() - axes], &outs[1].dims);
        if batch.len() != matrices.len() || batch.iter().zip(matrices).any(|(b, m)| b.conflicts(m)) {
            bail!(Linalg, "E0604", "`solve_slogdet`: a batch of right sides {} is larger than that of matrices {}", ins[1].ty, ins[0].ty);
        }
        Ok(outs)
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let systems = Systems::of(ins)?;
        let a = &ins[0];
        if systems.batch[..] != a.shape()[..a.rank() - 2] {
            let (b, a) = (tuple(ins[1].shape()), tuple(a.shape()));
            bail!(Linalg, "E0604", "`solve_slogdet`: a batch of right sides of shape {b} is larger than that of matrices of shape {a}");
        }
        let both = systems.each(|batch, i, a, b| {
            let lu = Lu::new(cx, systems.n, a)?;
            let mut x: Vec<f64> = memory::zeros(b.len());
            if !lu.solve(cx, b, systems.columns, &mut x)? {
                return Err(singular_maybe_of_slogdet("solve", batch, i));
            }
            Ok((x, slogdet(&lu)))
        })?;
        let (solved, determinants): (Vec<_>, Vec<_>) = both.into_iter().unzip();
        Ok([systems.solution(memory::joined(&solved))].into_iter().chain(signs_and_logs(a, determinants)).collect())
    }
    /// What flows through the solution and what flows through the determinant, added up.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let (system, matrix) =
            (Site { outs: &site.outs[..1], wanted: &[], ..*site }, Site { ins: &site.ins[..1], outs: &site.outs[1..], wanted: &[] });
        let mut grads = SYSTEM.vjp(g, &system, &cts[..1])?;
        let of_determinant = SLogDet {}.vjp(g, &matrix, &cts[1..])?[0];
        grads[0] = match (grads[0], of_determinant) {
            (Some(x), Some(y)) => Some(g.add(x, y)),
            (x, y) => x.or(y),
        };
        Ok(grads)
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        products::solve_slogdet(self, b, ins)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::types::DType;

    /// Shapes of matrices and right sides.
    const SHAPES: [(&[usize], &[usize]); 9] = [
        (&[3, 3], &[3]),
        (&[3, 3], &[3, 2]),
        (&[1, 1], &[1]),
        (&[5, 5], &[5, 0]),
        (&[0, 0], &[0, 2]),
        (&[2, 3, 3], &[3]),
        (&[2, 3, 3], &[3, 4]),
        (&[2, 2, 2, 2], &[1, 2, 1]),
        (&[0, 2, 2], &[2]),
    ];

    fn regular(shape: &[usize], seed: usize) -> Array {
        let n = shape[shape.len() - 1];
        let mut a = sample(shape, seed);
        a.as_mut_slice::<f64>().iter_mut().enumerate().filter(|(at, _)| at / n % n == at % n).for_each(|(_, x)| *x -= 3.0);
        a
    }
    fn bits(x: &Array) -> (DType, Vec<usize>, Vec<u64>) {
        (x.dtype(), x.shape().to_vec(), x.to_f64_vec().iter().map(|v| v.to_bits()).collect())
    }

    #[test]
    fn every_bit_is_that_of_the_two_ops() {
        let dtypes = [(DType::F64, DType::F64), (DType::F32, DType::F32), (DType::F32, DType::F64), (DType::F64, DType::I32)];
        for (seed, (a, b)) in SHAPES.into_iter().enumerate() {
            for (matrix, right) in dtypes {
                for a in [regular(a, seed), sample(a, seed + 20)] {
                    let (a, b) = (a.cast(matrix), sample(b, seed + 9).cast(right));
                    let all = try_apply_all(SolveSLogDet {}, &[a.clone(), b.clone()]).unwrap();
                    let mut apart = try_apply_all(SYSTEM, &[a.clone(), b]).unwrap();
                    apart.extend(try_apply_all(SLogDet {}, &[a]).unwrap());
                    assert_eq!(all.iter().map(bits).collect::<Vec<_>>(), apart.iter().map(bits).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn errors_are_those_of_solve() {
        let (zero, b) = (Array::zeros(DType::F64, &[2, 2]), Array::vector(&[1.0, 2.0]));
        let e = run_error(SolveSLogDet {}, &[zero.clone(), b.clone()]);
        assert_eq!((e.code, e.title.as_str()), ("E0601", "`solve`: the matrix is singular"));
        let mut batch = regular(&[2, 2, 2], 3);
        batch.as_mut_slice::<f64>()[4..].fill(0.0);
        assert_eq!(run_error(SolveSLogDet {}, &[batch, b.clone()]).title, "`solve`: matrix 1 of the batch is singular");
        for short in [&[1][..], &[1, 2]] {
            let ins = [zero.clone(), Array::zeros(DType::F64, short)];
            assert_eq!((build_error(SolveSLogDet {}, &ins).code, run_error(SolveSLogDet {}, &ins).code), ("E0604", "E0604"));
        }
        let flat = [Array::zeros(DType::F64, &[2, 3]), b.clone()];
        assert_eq!((build_error(SolveSLogDet {}, &flat).code, run_error(SolveSLogDet {}, &flat).code), ("E0603", "E0603"));
        assert_eq!(build_error(SolveSLogDet {}, &[b.clone(), b]).code, "E0222");
        assert_eq!(build_error(SolveSLogDet {}, &[zero]).code, "E0222");
    }

    #[test]
    fn more_right_sides_than_matrices_are_refused() {
        for (a, b) in [(&[2, 2][..], &[3, 2, 1][..]), (&[1, 2, 2], &[3, 2, 1])] {
            let ins = [regular(a, 1), sample(b, 2)];
            let e = build_error(SolveSLogDet {}, &ins);
            assert_eq!((e.code, e.title.contains("larger than that of matrices")), ("E0604", true));
            assert_eq!(run_error(SolveSLogDet {}, &ins).code, "E0604");
        }
    }

    /// The sum of the chosen outputs' squares, broadcast together.
    fn squares(g: &mut Graph, v: &[Value], chosen: &[usize]) -> Value {
        let outs = g.apply(SolveSLogDet {}, v).unwrap();
        let rank = g.ty(outs[0]).rank();
        let terms: Vec<Value> = chosen
            .iter()
            .map(|&k| {
                let axes: Vec<usize> = (g.ty(outs[k]).rank()..rank).collect();
                let term = g.expand(outs[k], &axes);
                g.mul(term, term)
            })
            .collect();
        terms[1..].iter().fold(terms[0], |sum, &term| g.add(sum, term))
    }

    #[test]
    fn gradients_flow_through_all_outputs() {
        for (a, b) in [(&[3, 3][..], &[3][..]), (&[2, 2], &[2, 3]), (&[2, 2, 2], &[2]), (&[2, 2, 2], &[2, 2, 1])] {
            let ins = [regular(a, 1), sample(b, 2)];
            for chosen in [&[0, 1, 2][..], &[0, 2], &[0], &[2, 0]] {
                check_vjp(|g, v| squares(g, v, chosen), &ins);
            }
            check_vjp2(|g, v| squares(g, v, &[0, 2]), &ins);
        }
        check_vjp(|g, v| squares(g, &[v[0], v[0]], &[2]), &[regular(&[3, 3], 5)]);
    }
}
