//! Arrays from nothing: constants, arange, eye, diag.

use super::args::{clamped, expect_count, expect_int_scalar, expect_scalar, extents, form, integer, one};
use super::batch::shapes;
use super::certain::extent;
use crate::bail;
use crate::base::Result;
use crate::dispatch;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::shape::count;
use crate::types::{Array, DType, Dim, Element, Type, memory};

/// A constant.
impl OpDef for Array {
    fn infer(&self, _: &[Arg]) -> Result<Outs<Type>> {
        Ok(one(self.ty()))
    }
    fn eval(&self, _: &mut EvalCx, _: &mut [Array]) -> Result<Outs<Array>> {
        Ok(one(self.clone()))
    }
    fn vjp(&self, _: &mut Graph, _: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![])
    }
    fn dim(&self, _: &[Arg]) -> Option<Dim> {
        (self.rank() == 0 && self.dtype().is_int()).then(|| Dim::from_parts([], integer(self)))
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

/// The common dtype of the three inputs; truth values count as i64.
fn arange_dtype(dtypes: impl Iterator<Item = DType>) -> DType {
    match dtypes.reduce(DType::promote) {
        None | Some(DType::Bool) => DType::I64,
        Some(dtype) => dtype,
    }
}

/// Number of elements: `ceil((stop − start) / step)`, at least 0.
///
/// # Errors
/// `E0224` where the step is 0 or the length is not finite.
fn arange_len(dtype: DType, ins: &[Array]) -> Result<usize> {
    let len = if dtype.is_float() { float_len(ins) } else { int_len(dtype, ins) };
    match len {
        Some(n) => Ok(n),
        None => {
            let [start, stop, step] = [0, 1, 2].map(|i| ins[i].item_f64().unwrap_or(f64::NAN));
            bail!(Value, "E0224", "`arange` from {start} to {stop} in steps of {step} has no length")
        }
    }
}

fn float_len(ins: &[Array]) -> Option<usize> {
    let [start, stop, step] = [ins[0].item_f64()?, ins[1].item_f64()?, ins[2].item_f64()?];
    let len = ((stop - start) / step).ceil();
    let largest = (isize::MAX / 8) as f64;
    (step != 0.0 && !len.is_nan() && len < largest).then_some(len.max(0.0) as usize)
}

fn int_len(dtype: DType, ins: &[Array]) -> Option<usize> {
    let wide = |x: &Array| match dtype {
        DType::U64 => x.cast(DType::U64).as_slice::<u64>()[0] as i128,
        _ => x.to_i64_vec()[0] as i128,
    };
    let [start, stop, step] = [wide(&ins[0]), wide(&ins[1]), wide(&ins[2])];
    if step == 0 {
        return None;
    }
    let distance = if step > 0 { stop - start } else { start - stop };
    let len = if distance > 0 { (distance - 1) / step.abs() + 1 } else { 0 };
    usize::try_from(len).ok().filter(|&n| n < isize::MAX as usize / 8)
}

/// NumPy's values: `start + i · delta` with `delta = (start + step) − start` rounded to the dtype.
macro_rules! fill_float {
    ($t:ty, $start:expr, $step:expr, $n:expr) => {{
        let first = $start as $t;
        let delta = ($start + $step) as $t - first;
        memory::collect((0..$n).map(|i| if i == 1 { ($start + $step) as $t } else { first + i as $t * delta }))
    }};
}

impl OpDef for Arange {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("arange", 3, false, ins)?;
        ins.iter().try_for_each(|a| expect_scalar("arange", "an input", a))?;
        let dtype = arange_dtype(ins.iter().map(|a| a.ty.dtype));
        let values: Option<Vec<Array>> = ins.iter().map(|a| a.value.clone()).collect();
        let dim = match (values, form(&ins[0]), form(&ins[1]), form(&ins[2])) {
            (Some(values), ..) => arange_len(dtype, &values).map_or_else(|_| Dim::fresh(), Dim::known),
            (_, Some(start), Some(stop), Some(step)) if step.is_one() => clamped(&stop.sub(&start)),
            _ => Dim::fresh(),
        };
        Ok(one(Type::new(dtype, [dim])))
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let dtype = arange_dtype(ins.iter().map(Array::dtype));
        let n = arange_len(dtype, ins)?;
        let wide = |i: usize| ins[i].item_f64().unwrap_or(0.0);
        let out = match dtype {
            DType::F64 => Array::new(&[n], fill_float!(f64, wide(0), wide(2), n)),
            DType::F32 => Array::new(&[n], fill_float!(f32, wide(0), wide(2), n)),
            _ => {
                let (start, step) = (ins[0].to_i64_vec()[0], ins[2].to_i64_vec()[0]);
                let values = memory::collect((0..n).map(|i| start.wrapping_add((i as i64).wrapping_mul(step))));
                Array::new(&[n], values).cast(dtype)
            }
        };
        Ok(one(out))
    }
    /// `d start = Σ ct`, `d step = Σ i · ct`.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(vec![None; 3]) };
        let (zero, n, step) = (g.int(0), g.dim(site.outs[0], 0), g.int(1));
        let counts = g.emit(Arange {}, &[zero, n, step]);
        let counts = g.cast(counts, g.ty(ct).dtype);
        let weighted = g.mul(ct, counts);
        let (sum, weighted) = (g.sum(ct, &[0], false), g.sum(weighted, &[0], false));
        Ok(vec![super::args::fit(g, sum, site.ins[0]), None, super::args::fit(g, weighted, site.ins[2])])
    }
    fn connected(&self, input: usize) -> bool {
        input != 1
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.row_by_row(self.clone(), ins)
    }
}

impl OpDef for Eye {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("eye", 3, false, ins)?;
        ins.iter().try_for_each(|a| expect_int_scalar("eye", "an input", a))?;
        Ok(one(Type::new(self.dtype, [ins[0].as_dim(), ins[1].as_dim()])))
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let shape = extents("eye", &ins[..2])?;
        let mut out = memory::zeros::<i8>(count(&shape));
        diagonal(&shape, integer(&ins[2])).for_each(|at| out[at] = 1);
        Ok(one(Array::new(&shape, out).cast(self.dtype)))
    }
    fn vjp(&self, _: &mut Graph, _: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![None; 3])
    }
    fn connected(&self, _: usize) -> bool {
        false
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn fallible(&self, g: &Graph, ins: &[Value]) -> bool {
        ins[..2].iter().any(|&n| extent(g, n).is_none())
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.row_by_row(self.clone(), ins)
    }
}

/// Positions of the k-th diagonal of a row-major matrix.
fn diagonal(shape: &[usize], k: i64) -> impl Iterator<Item = usize> + use<> {
    let (n, m) = (shape[0], shape[1]);
    let (row, col) = diagonal_start(k);
    (0..diagonal_len(n, m, k)).map(move |i| (row + i) * m + col + i)
}

/// Row and column of the first element of the k-th diagonal.
pub(super) fn diagonal_start(k: i64) -> (usize, usize) {
    let away = k.unsigned_abs() as usize;
    if k < 0 { (away, 0) } else { (0, away) }
}

fn diagonal_len(n: usize, m: usize, k: i64) -> usize {
    let (row, col) = diagonal_start(k);
    n.saturating_sub(row).min(m.saturating_sub(col))
}

impl OpDef for Diag {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("diag", 1, false, ins)?;
        let ty = &ins[0].ty;
        let away = usize::try_from(self.k.unsigned_abs()).unwrap_or(usize::MAX);
        match &ty.dims[..] {
            _ if away > u32::MAX as usize => bail!(Value, "E0222", "`diag` has no diagonal {}", self.k),
            [n] => {
                let side = n.add(&Dim::known(away));
                Ok(one(Type::new(ty.dtype, [side.clone(), side])))
            }
            [n, m] => Ok(one(Type::new(ty.dtype, [diagonal_dim(n, m, self.k)]))),
            _ => bail!(Type, "E0222", "`diag` takes a vector or a matrix, got {ty}"),
        }
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        if x.rank() == 1 {
            let side = Array::scalar((x.len() as i64).saturating_add(self.k.unsigned_abs() as i64));
            extents("diag", &[side.clone(), side])?;
        }
        Ok(one(dispatch!(x.dtype(), T => if x.rank() == 1 { on_diagonal::<T>(x, self.k) } else { off_diagonal::<T>(x, self.k) })))
    }
    fn can_fail(&self) -> bool {
        self.k != 0
    }
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(vec![None]) };
        let x = site.ins[0];
        let square = g.emit(self.clone(), &[ct]);
        let ty = g.ty(x);
        if ty.rank() == 1 || ty.dims == g.ty(square).dims {
            return Ok(vec![Some(square)]);
        }
        Ok(vec![Some(embed(g, square, x))])
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        shapes::diag(self, b, ins)
    }
}

/// A matrix cut and padded with zeros to the shape of x: slices clip at both.
fn embed(g: &mut Graph, square: Value, x: Value) -> Value {
    let (n, m, side) = (g.dim(x, 0), g.dim(x, 1), g.dim(square, 0));
    let pattern = String::from(":e,:e");
    let cut = g.emit(Index { pattern: pattern.clone() }, &[square, n, m]);
    let zeros = g.zeros_like(x);
    g.emit(IndexWrite { mode: Write::Inc, pattern }, &[zeros, cut, side, side])
}

fn diagonal_dim(n: &Dim, m: &Dim, k: i64) -> Dim {
    match (n.value(), m.value()) {
        (Some(n), Some(m)) => Dim::known(diagonal_len(n, m, k)),
        _ if n == m => clamped(&n.sub(&Dim::known(k.unsigned_abs() as usize))),
        _ => Dim::fresh(),
    }
}

fn on_diagonal<T: Element>(x: &Array, k: i64) -> Array {
    let side = x.len() + k.unsigned_abs() as usize;
    let mut out = memory::zeros::<T>(count(&[side, side]));
    diagonal(&[side, side], k).zip(x.as_slice::<T>()).for_each(|(at, &v)| out[at] = v);
    Array::new(&[side, side], out)
}

fn off_diagonal<T: Element>(x: &Array, k: i64) -> Array {
    let from = x.as_slice::<T>();
    let out: Vec<T> = memory::collect(diagonal(x.shape(), k).map(|at| from[at]));
    Array::new(&[out.len()], out)
}

impl OpDef for Tri {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("tri", 1, false, ins)?;
        if ins[0].ty.rank() < 2 {
            bail!(Type, "E0222", "`tri` takes matrices, got {}", ins[0].ty);
        }
        Ok(one(ins[0].ty.clone()))
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let mut x = std::mem::replace(&mut ins[0], Array::scalar(false));
        let (n, m) = (x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]);
        let drops = |at: usize| {
            let above = (at % m) as i64 - (at / m % n) as i64;
            if self.lower { above > self.k } else { above < self.k }
        };
        dispatch!(x.dtype(), T => {
            x.as_mut_slice::<T>().iter_mut().enumerate().filter(|(at, _)| drops(*at)).for_each(|(_, v)| *v = T::default());
        });
        Ok(one(x))
    }
    fn vjp(&self, g: &mut Graph, _: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![cts[0].map(|ct| g.emit(self.clone(), &[ct]))])
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::types::Sym;

    fn arange<T: Element>(start: T, stop: T, step: T) -> Array {
        apply(Arange {}, &[Array::scalar(start), Array::scalar(stop), Array::scalar(step)])
    }

    #[test]
    fn arange_is_numpys() {
        assert_eq!(arange(2i64, 11, 3), Array::vector(&[2i64, 5, 8]));
        assert_eq!(arange(5i8, -1, -2), Array::vector(&[5i8, 3, 1]));
        assert_eq!(arange(3u64, 3, 1), Array::vector::<u64>(&[]));
        assert_eq!(arange(u64::MAX - 2, u64::MAX, 1).as_slice::<u64>(), [u64::MAX - 2, u64::MAX - 1]);
        assert_eq!(arange(0.0, 0.5, 0.1), Array::vector(&[0.0, 0.1, 0.2, 0.30000000000000004, 0.4]));
        assert_eq!(arange(1.0, 1.3, 0.1).as_slice::<f64>(), [1.0, 1.1, 1.2000000000000002, 1.3000000000000003]);
        assert_eq!(arange(1f32, 2.0, 0.3), Array::vector(&[1f32, 1.3, 1.5999999, 1.8999999]));
        assert_eq!(arange(5.0, 1.0, 1.0).len(), 0);
        assert_eq!(arange(0.0, f64::NEG_INFINITY, 1.0).len(), 0);
        assert_eq!(arange(i64::MIN, i64::MAX, i64::MAX).to_i64_vec(), [i64::MIN, -1, i64::MAX - 1]);
    }

    #[test]
    fn arange_without_length_is_an_error() {
        let e = run_error(Arange {}, &[Array::scalar(0i64), Array::scalar(3i64), Array::scalar(0i64)]);
        assert_eq!((e.code, e.title.as_str()), ("E0224", "`arange` from 0 to 3 in steps of 0 has no length"));
        for (stop, step) in [(f64::NAN, 1.0), (f64::INFINITY, 1.0), (1.0, 0.0), (1e300, 1e-300)] {
            assert_eq!(run_error(Arange {}, &[Array::scalar(0.0), Array::scalar(stop), Array::scalar(step)]).code, "E0224");
        }
    }

    #[test]
    fn arange_knows_its_extent() {
        let n = Dim::sym(Sym::fresh());
        let arg = |dim: Dim| Arg { ty: Type::scalar(DType::I64), value: None, dim: Some(dim) };
        let extent = |start: Dim, stop: Dim, step: Dim| Arange {}.infer(&[arg(start), arg(stop), arg(step)]).unwrap()[0].dims[0].clone();
        assert_eq!(extent(Dim::known(0), n.clone(), Dim::known(1)), n);
        assert_eq!(extent(n.clone(), n.add(&Dim::known(2)), Dim::known(1)), Dim::known(2));
        assert!(extent(Dim::known(1), n.clone(), Dim::known(1)).as_sym().is_some());
        assert_ne!(extent(Dim::known(0), n.clone(), Dim::known(2)), n);
    }

    #[test]
    fn arange_has_gradients() {
        let build = |g: &mut Graph, v: &[Value]| {
            let stop = g.number(DType::F64, 3.35);
            let x = g.emit(Arange {}, &[v[0], stop, v[1]]);
            g.mul(x, x)
        };
        check_vjp(build, &[Array::scalar(0.7), Array::scalar(0.5)]);
        check_vjp2(build, &[Array::scalar(0.7), Array::scalar(0.5)]);
    }

    #[test]
    fn eye_is_numpys() {
        let eye = |n: i64, m: i64, k: i64| [n, m, k].map(Array::scalar);
        let op = Eye { dtype: DType::U8 };
        assert_eq!(apply(op.clone(), &eye(2, 3, 1)), Array::new(&[2, 3], vec![0u8, 1, 0, 0, 0, 1]));
        assert_eq!(apply(op.clone(), &eye(3, 2, -1)).to_i64_vec(), [0, 0, 1, 0, 0, 1]);
        assert_eq!(apply(op.clone(), &eye(2, 2, 9)).to_i64_vec(), [0; 4]);
        assert_eq!(apply(op.clone(), &eye(0, 4, 0)).shape(), [0, 4]);
        let e = run_error(op.clone(), &eye(-1, 2, 0));
        assert_eq!((e.code, e.title.as_str()), ("E0222", "an extent of `eye` is -1; extents cannot be negative"));
        assert_eq!(run_error(op, &eye(i64::MAX, i64::MAX, 0)).code, "E0392");
    }

    #[test]
    fn diag_is_numpys_in_both_directions() {
        let x = Array::new(&[2, 3], vec![1i32, 2, 3, 4, 5, 6]);
        for (k, expected) in [(0, vec![1, 5]), (1, vec![2, 6]), (2, vec![3]), (3, vec![]), (-1, vec![4]), (-2, vec![])] {
            assert_eq!(apply(Diag { k }, std::slice::from_ref(&x)).to_i64_vec(), expected, "{k}");
        }
        let v = Array::vector(&[7i64, 8]);
        assert_eq!(apply(Diag { k: -1 }, std::slice::from_ref(&v)), Array::new(&[3, 3], vec![0i64, 0, 0, 7, 0, 0, 0, 8, 0]));
        assert_eq!(build_error(Diag { k: 0 }, &[Array::scalar(1.0)]).code, "E0222");
        for (k, code) in [(u32::MAX as i64, "E0392"), (i64::MIN, "E0222"), (i64::MAX, "E0222")] {
            assert_eq!(run_error(Diag { k }, std::slice::from_ref(&v)).code, code, "{k}");
        }
    }

    #[test]
    fn diag_and_tri_have_gradients() {
        for k in [-2, -1, 0, 1] {
            let diag = |g: &mut Graph, v: &[Value]| {
                let y = g.emit(Diag { k }, v);
                g.mul(y, y)
            };
            for shape in [&[3][..], &[3, 3], &[2, 4], &[4, 2], &[0, 2]] {
                check_vjp(diag, &[sample(shape, 1)]);
                check_vjp2(diag, &[sample(shape, 1)]);
            }
            let tri = |g: &mut Graph, v: &[Value]| {
                let y = g.emit(Tri { lower: k < 0, k }, v);
                g.mul(y, y)
            };
            check_vjp(tri, &[sample(&[2, 3, 2], 3)]);
            check_vjp2(tri, &[sample(&[2, 3, 2], 3)]);
        }
    }

    #[test]
    fn tri_keeps_a_part() {
        let x = Array::new(&[1, 2, 3], vec![1.0, 2.0, f64::NAN, 4.0, 5.0, f64::INFINITY]);
        assert_eq!(apply(Tri { lower: true, k: 0 }, std::slice::from_ref(&x)).to_f64_vec(), [1., 0., 0., 4., 5., 0.]);
        assert_eq!(apply(Tri { lower: false, k: 1 }, std::slice::from_ref(&x)).bits()[3..], Array::vector(&[0., 0., f64::INFINITY]).bits());
        assert_eq!(build_error(Tri { lower: true, k: 0 }, &[Array::vector(&[1])]).code, "E0222");
    }
}
