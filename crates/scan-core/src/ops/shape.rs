//! Shapes: reshape, transpose, expand, squeeze, flip.

use super::args::{expect_count, expect_int_scalar, form, integer, never_negative};
use super::batch::shapes;
use super::support::{check_axes, drop_axes, exactly, none, one};
use crate::base::{Diagnostic, Kind, Result};
use crate::ir::batch::behind;
use crate::ir::op::*;
use crate::ir::{Coord, Graph, Value, View, Viewed};
use crate::types::shape::{strides, tuple};
use crate::types::{Array, Dim, Dims, Element, Extents, Type};
use crate::{bail, dispatch};
use smallvec::SmallVec;

/// Row-major order is kept. One extent may be −1: as many as there are elements for. Where the number of elements
/// differs: `E0204`.
impl OpDef for Reshape {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("reshape", 1, true, ins)?;
        let (x, extents) = (&ins[0], &ins[1..]);
        extents.iter().try_for_each(|d| expect_int_scalar("reshape", "an extent", d))?;
        Ok(one(Type { dtype: x.ty.dtype, dims: reshaped_dims(&x.ty, extents)? }))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        let wanted: SmallVec<[i64; 4]> = ins[1..].iter().map(integer).collect();
        match resolve(x.len(), &wanted) {
            Some(shape) => Ok(one(x.reshaped(&shape))),
            None => Err(no_reshape(&tuple(x.shape()), &wanted)),
        }
    }

    fn view(&self, of: &Viewed) -> Option<View> {
        View::reshaped(of.from, of.to)
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let mut out = none(site.ins.len());
        out[0] = cts[0].map(|ct| g.reshape_like(ct, site.ins[0]));
        Ok(out)
    }

    fn connected(&self, input: usize) -> bool {
        input == 0
    }

    fn can_fail(&self) -> bool {
        true
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        shapes::reshape(self, b, ins)
    }
}

/// The second input gives its shape only.
impl OpDef for ReshapeLike {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x, y] = exactly("reshape_like", ins)?;
        if let (Some(a), Some(b)) = (known_count(&x.ty.dims), known_count(&y.ty.dims))
            && a != b
        {
            return Err(no_reshape_like(&x.ty.to_string(), &y.ty.to_string()));
        }
        Ok(one(y.ty.with_dtype(x.ty.dtype)))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let [x, y] = ins else { unreachable!("two inputs") };
        if x.len() != y.len() {
            return Err(no_reshape_like(&tuple(x.shape()), &tuple(y.shape())));
        }
        Ok(one(x.reshaped(y.shape())))
    }

    fn view(&self, of: &Viewed) -> Option<View> {
        View::reshaped(of.from, of.to)
    }

    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![cts[0].map(|ct| g.reshape_like(ct, site.ins[0])), None])
    }

    fn connected(&self, input: usize) -> bool {
        input == 0
    }

    fn can_fail(&self) -> bool {
        true
    }
    fn fallible(&self, g: &Graph, ins: &[Value]) -> bool {
        g.ty(ins[0]).dims != g.ty(ins[1]).dims
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        shapes::reshape_like(b, ins)
    }
}

/// `perm` names each axis once.
impl OpDef for Transpose {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("transpose", ins)?;
        check_axes("transpose", &self.perm, &x.ty)?;
        if self.perm.len() != x.ty.rank() {
            bail!(Type, "E0222", "`transpose` by {:?}, but its input {} has {} axes", self.perm, x.ty, x.ty.rank());
        }
        Ok(one(Type::new(x.ty.dtype, self.perm.iter().map(|&axis| x.ty.dims[axis].clone()))))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        Ok(one(permuted(&ins[0], &self.perm)))
    }

    fn view(&self, of: &Viewed) -> Option<View> {
        let mut view = View::identity(of.from.len());
        self.perm.iter().enumerate().for_each(|(to, &from)| view.0[from] = Coord::along(to));
        Some(view)
    }

    fn vjp(&self, g: &mut Graph, _: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let mut inverse = vec![0; self.perm.len()];
        self.perm.iter().enumerate().for_each(|(i, &axis)| inverse[axis] = i);
        Ok(vec![cts[0].map(|ct| g.transpose(ct, &inverse))])
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        Ok(one(Batched::Rows(b.g.transpose(ins[0].value(), &[&[0], &behind(&self.perm)[..]].concat()))))
    }
}

/// `axes` are positions in the result.
impl OpDef for Expand {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("expand", ins)?;
        let dims: Dims = expanded(&x.ty.dims, &self.axes, Dim::known(1));
        let ty = Type::new(x.ty.dtype, dims);
        check_axes("expand", &self.axes, &ty)?;
        Ok(one(ty))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let shape: Extents = expanded(ins[0].shape(), &self.axes, 1);
        Ok(one(ins[0].reshaped(&shape)))
    }

    fn view(&self, of: &Viewed) -> Option<View> {
        View::reshaped(of.from, of.to)
    }

    fn vjp(&self, g: &mut Graph, _: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![cts[0].map(|ct| g.squeeze(ct, &self.axes))])
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(Expand { axes: behind(&self.axes) }, ins)
    }
}

/// An extent that is not 1 is `E0205`.
impl OpDef for Squeeze {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("squeeze", ins)?;
        check_axes("squeeze", &self.axes, &x.ty)?;
        if let Some(&axis) = self.axes.iter().find(|&&axis| x.ty.dims[axis].conflicts(&Dim::known(1))) {
            return Err(no_squeeze(axis, &x.ty.to_string()));
        }
        Ok(one(Type::new(x.ty.dtype, drop_axes(&x.ty.dims, &self.axes, None))))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        if let Some(&axis) = self.axes.iter().find(|&&axis| x.shape()[axis] != 1) {
            return Err(no_squeeze(axis, &tuple(x.shape())));
        }
        let shape: Extents = drop_axes(x.shape(), &self.axes, None).collect();
        Ok(one(x.reshaped(&shape)))
    }

    fn view(&self, of: &Viewed) -> Option<View> {
        View::reshaped(of.from, of.to)
    }

    fn vjp(&self, g: &mut Graph, _: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![cts[0].map(|ct| g.expand(ct, &self.axes))])
    }

    fn can_fail(&self) -> bool {
        true
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(Squeeze { axes: behind(&self.axes) }, ins)
    }
}

/// Its own transpose.
impl OpDef for Flip {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        let [x] = exactly("flip", ins)?;
        check_axes("flip", &[self.axis], &x.ty)?;
        Ok(one(x.ty.clone()))
    }

    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let x = &ins[0];
        let mut steps = signed_strides(x.shape());
        let start = (x.shape()[self.axis] as isize - 1) * steps[self.axis];
        steps[self.axis] *= -1;
        Ok(one(view(x, start, x.shape(), &steps)))
    }

    fn view(&self, of: &Viewed) -> Option<View> {
        let mut view = View::identity(of.from.len());
        view.0[self.axis] = Coord { axis: Some(self.axis), start: of.from[self.axis] as isize - 1, step: -1 };
        Some(view)
    }

    fn vjp(&self, g: &mut Graph, _: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![cts[0].map(|ct| g.emit(self.clone(), &[ct]))])
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(Flip { axis: self.axis + 1 }, ins)
    }
}

/// Row-major strides, signed.
pub(super) fn signed_strides(shape: &[usize]) -> SmallVec<[isize; 4]> {
    strides(shape).iter().map(|&s| s as isize).collect()
}

/// The axes of x in another order.
pub(super) fn permuted(x: &Array, perm: &[usize]) -> Array {
    let shape: Extents = perm.iter().map(|&axis| x.shape()[axis]).collect();
    let moving = perm.iter().filter(|&&axis| x.shape()[axis] != 1);
    if moving.is_sorted() {
        return x.reshaped(&shape);
    }
    let steps = signed_strides(x.shape());
    let steps: SmallVec<[isize; 4]> = perm.iter().map(|&axis| steps[axis]).collect();
    view(x, 0, &shape, &steps)
}

/// The strided view of x that starts at element `start`, as a new array.
pub(super) fn view(x: &Array, start: isize, shape: &[usize], steps: &[isize]) -> Array {
    let mut out = Array::dirty(x.dtype(), shape);
    if !out.is_empty() {
        dispatch!(x.dtype(), T => copy(x.as_slice::<T>(), start, shape, steps, out.as_mut_slice::<T>()));
    }
    out
}

fn copy<T: Element>(data: &[T], start: isize, shape: &[usize], steps: &[isize], out: &mut [T]) {
    match (shape, steps) {
        ([n], [1]) => out.copy_from_slice(&data[start as usize..start as usize + n]),
        ([_], [0]) => out.fill(data[start as usize]),
        ([m, n], [1, step]) => turn(data, start, *step, [*m, *n], out),
        ([_], [step]) => out.iter_mut().zip(0..).for_each(|(out, k)| *out = data[(start + k * step) as usize]),
        ([n, shape @ ..], [step, steps @ ..]) => {
            out.chunks_exact_mut(out.len() / n).zip(0..).for_each(|(out, k)| copy(data, start + k * step, shape, steps, out));
        }
        _ => out[0] = data[start as usize],
    }
}

/// Copies m rows of n elements, whose columns lie side by side from `start` on, `step` from one to the next: tile by tile, so that lines
/// of the cache are read and written as a whole.
pub(super) fn turn<T: Element + Copy>(data: &[T], start: isize, step: isize, [m, n]: [usize; 2], out: &mut [T]) {
    for i in (0..m).step_by(TILE) {
        let high = TILE.min(m - i);
        for j in (0..n).step_by(TILE) {
            if i + TILE <= m && j + TILE <= n {
                turn_tile(data, start + i as isize + j as isize * step, step, i * n + j, n, out);
                continue;
            }
            for c in j..n.min(j + TILE) {
                let first = (start + i as isize + c as isize * step) as usize;
                for (r, x) in data[first..first + high].iter().enumerate() {
                    out[(i + r) * n + c] = *x;
                }
            }
        }
    }
}

/// One whole tile, whose first element is read and written at these places: of extents that the compiler knows.
fn turn_tile<T: Element + Copy>(data: &[T], from: isize, step: isize, to: usize, n: usize, out: &mut [T]) {
    let mut columns = [[T::default(); TILE]; TILE];
    for (column, c) in columns.iter_mut().zip(0..) {
        column.copy_from_slice(&data[(from + c * step) as usize..][..TILE]);
    }
    for r in 0..TILE {
        let row: [T; TILE] = std::array::from_fn(|c| columns[c][r]);
        out[to + r * n..][..TILE].copy_from_slice(&row);
    }
}

/// Rows and columns of a tile.
const TILE: usize = 16;

/// The extents with `one` at these positions of the result.
fn expanded<T: Clone, C: FromIterator<T>>(dims: &[T], axes: &[usize], one: T) -> C {
    let mut old = dims.iter();
    (0..dims.len() + axes.len()).filter_map(|i| if axes.contains(&i) { Some(one.clone()) } else { old.next().cloned() }).collect()
}

fn known_count(dims: &[Dim]) -> Option<usize> {
    dims.iter().map(Dim::value).product()
}

/// The shape of `n` elements under these extents, one of which may be −1.
fn resolve(n: usize, wanted: &[i64]) -> Option<Extents> {
    let others = wanted.iter().filter(|&&d| d != -1).try_fold(1usize, |product, &d| product.checked_mul(usize::try_from(d).ok()?))?;
    let open = match wanted.iter().filter(|&&d| d == -1).count() {
        0 if others == n => 0,
        1 if others != 0 && n.is_multiple_of(others) => n / others,
        _ => return None,
    };
    Some(wanted.iter().map(|&d| if d == -1 { open } else { d as usize }).collect())
}

/// The dims of a reshape. Symbols are kept; an unknown extent that the others determine becomes what they say.
fn reshaped_dims(x: &Type, extents: &[Arg]) -> Result<Dims> {
    let numbers: SmallVec<[Option<i64>; 4]> = extents.iter().map(|d| d.value.as_ref().map(integer)).collect();
    if let (Some(n), Some(wanted)) = (known_count(&x.dims), numbers.iter().copied().collect::<Option<SmallVec<[i64; 4]>>>()) {
        let shape = resolve(n, &wanted).ok_or_else(|| no_reshape(&x.to_string(), &wanted))?;
        return Ok(shape.iter().map(|&n| Dim::known(n)).collect());
    }
    if let Some(bad) = numbers.iter().flatten().find(|&&d| d < -1) {
        bail!(Shape, "E0204", "cannot reshape {x} to an extent of {bad}");
    }
    if numbers.iter().filter(|d| **d == Some(-1)).count() > 1 {
        bail!(Shape, "E0204", "cannot reshape {x}: only one extent may be -1");
    }
    let mut dims: Dims = extents.iter().map(|d| if certain(d) { d.as_dim() } else { Dim::fresh() }).collect();
    let open: SmallVec<[usize; 4]> = (0..dims.len()).filter(|&i| !certain(&extents[i])).collect();
    if let [i] = open[..] {
        let others = dims.iter().enumerate().filter(|(k, _)| *k != i).map(|(_, d)| d.clone()).collect();
        if let Some(rest) = quotient(&x.dims, others, numbers[i] == Some(-1)) {
            dims[i] = rest;
        }
    }
    Ok(dims)
}

/// True for an extent that is known not to be −1.
fn certain(extent: &Arg) -> bool {
    form(extent).is_some_and(|d| never_negative(&d))
}

/// The product of `dims` divided by that of `others`, where it is an affine form. Equal symbols cancel only where `cancel`
/// says that they are not 0, as beside a −1.
fn quotient(dims: &[Dim], mut others: Dims, cancel: bool) -> Option<Dim> {
    let mut left = Dims::new();
    for d in dims {
        match others.iter().position(|o| cancel && o == d && d.value().is_none()) {
            Some(i) => drop(others.remove(i)),
            None => left.push(d.clone()),
        }
    }
    let divisor = known_count(&others).filter(|&n| n > 0)? as i64;
    let factor: usize = left.iter().filter_map(Dim::value).product();
    let mut unknown = left.iter().filter(|d| d.value().is_none());
    let product = unknown.next().cloned().unwrap_or_else(|| Dim::known(1)).scale(factor as i64);
    let (terms, constant) = product.parts();
    let exact = unknown.next().is_none() && constant % divisor == 0 && terms.iter().all(|t| t.1 % divisor == 0);
    exact.then(|| Dim::from_parts(terms.iter().map(|t| (t.0, t.1 / divisor)), constant / divisor))
}

fn no_reshape(from: &str, to: &[i64]) -> Box<Diagnostic> {
    let to: Vec<String> = to.iter().map(i64::to_string).collect();
    let comma = if to.len() == 1 { "," } else { "" };
    Diagnostic::new(Kind::Shape, "E0204", format!("cannot reshape {from} to ({}{comma}): the numbers of elements differ", to.join(", ")))
}

fn no_reshape_like(from: &str, to: &str) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Shape, "E0204", format!("cannot reshape {from} to the shape of {to}: the numbers of elements differ"))
}

fn no_squeeze(axis: usize, shape: &str) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Shape, "E0205", format!("cannot squeeze axis {axis} of {shape}: its extent is not 1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;
    use crate::types::DType;

    fn to(x: &Array, shape: &[i64]) -> Vec<Array> {
        [x.clone()].into_iter().chain(shape.iter().map(|&n| Array::scalar(n))).collect()
    }

    fn range(shape: &[usize]) -> Array {
        Array::new(shape, (0..crate::types::shape::count(shape)).map(|i| i as f64).collect())
    }

    #[test]
    fn reshapes() {
        let x = range(&[2, 3]);
        assert_eq!(apply(Reshape {}, &to(&x, &[3, -1])), range(&[3, 2]));
        assert_eq!(apply(Reshape {}, &to(&x, &[6])), range(&[6]));
        assert_eq!(apply(Reshape {}, &to(&range(&[1]), &[])), range(&[]));
        assert_eq!(apply(Reshape {}, &to(&range(&[0, 3]), &[-1, 3])), range(&[0, 3]));
        assert_eq!(apply(ReshapeLike {}, &[x, Array::zeros(DType::Bool, &[3, 2])]), range(&[3, 2]));
    }

    #[test]
    fn reshapes_that_do_not_fit() {
        let x = range(&[2, 3]);
        let text = "cannot reshape (2, 3) to (4,): the numbers of elements differ";
        assert_eq!(run_error(Reshape {}, &to(&x, &[4])).title, text);
        for shape in [&[4, -1][..], &[-1, -1], &[-2, 3], &[i64::MAX, i64::MAX]] {
            assert_eq!(run_error(Reshape {}, &to(&x, shape)).code, "E0204", "{shape:?}");
        }
        assert_eq!(run_error(Reshape {}, &to(&range(&[0, 3]), &[0, -1])).code, "E0204");
        assert_eq!(build_error(ReshapeLike {}, &[x.clone(), range(&[4])]).code, "E0204");
        assert_eq!(run_error(ReshapeLike {}, &[x.clone(), range(&[4])]).code, "E0204");
        assert_eq!(build_error(Reshape {}, &[x.clone(), Array::scalar(1.0)]).code, "E0222");
        let (mut g, v) = graph_of(&[x], true);
        let four = g.int(4);
        assert_eq!(
            g.apply(Reshape {}, &[v[0], four]).unwrap_err().title,
            "cannot reshape float64[2, 3] to (4,): the numbers of elements differ"
        );
    }

    #[test]
    fn reshapes_keep_what_is_known() {
        let (n, m) = (Dim::fresh(), Dim::fresh());
        let mut g = Graph::new();
        let x = g.param(Type::new(DType::F64, [n.clone(), m.clone(), Dim::known(6)]), None);
        let (minus, two, rows) = (g.int(-1), g.int(2), g.dim(x, 0));
        let y = g.emit(Reshape {}, &[x, rows, minus, two]);
        assert_eq!(g.ty(y).dims[..], [n.clone(), m.scale(3), Dim::known(2)]);
        let y = g.emit(Reshape {}, &[x, minus]);
        assert!(g.ty(y).dims[0].value().is_none());
        assert_eq!(g.apply(Reshape {}, &[x, minus, minus]).unwrap_err().code, "E0204");
        let x = g.param(Type::known(DType::F64, &[4, 3]), None);
        let k = g.param(Type::scalar(DType::I64), None);
        let y = g.emit(Reshape {}, &[x, k, two]);
        assert_eq!(g.ty(y).dims[..], [Dim::known(6), Dim::known(2)]);
    }

    #[test]
    fn transposes_are_numpys() {
        let x = Array::new(&[2, 2, 2], vec![0u16, 1, 4, 5, 12, 13, 16, 17]);
        let y = apply(Transpose { perm: vec![2, 0, 1] }, &[x]);
        assert_eq!(y, Array::new(&[2, 2, 2], vec![0u16, 4, 12, 16, 1, 5, 13, 17]));
        assert_eq!(apply(Transpose { perm: vec![1, 0] }, &[range(&[1, 3])]), range(&[3, 1]));
        assert_eq!(apply(Transpose { perm: vec![1, 0] }, &[range(&[0, 3])]), range(&[3, 0]));
        assert_eq!(apply(Transpose { perm: vec![] }, &[range(&[])]), range(&[]));
        for perm in [vec![0], vec![0, 0], vec![0, 2]] {
            assert_eq!(build_error(Transpose { perm }, &[range(&[2, 2])]).code, "E0222");
        }
    }

    #[test]
    fn axes_of_extent_one_come_and_go() {
        let x = range(&[2, 3]);
        assert_eq!(apply(Expand { axes: vec![0, 2, 4] }, &[x.clone()]), range(&[1, 2, 1, 3, 1]));
        assert_eq!(apply(Squeeze { axes: vec![0, 2] }, &[range(&[1, 2, 1, 3])]), x);
        assert_eq!(run_error(Squeeze { axes: vec![1] }, &[x.clone()]).title, "cannot squeeze axis 1 of (2, 3): its extent is not 1");
        assert_eq!(build_error(Squeeze { axes: vec![1] }, &[x.clone()]).code, "E0205");
        assert_eq!(build_error(Expand { axes: vec![3] }, &[x.clone()]).code, "E0222");
        assert_eq!(build_error(Squeeze { axes: vec![2] }, &[x]).code, "E0222");
    }

    #[test]
    fn flips() {
        let x = Array::new(&[2, 2], vec![true, false, true, true]);
        assert_eq!(apply(Flip { axis: 1 }, &[x.clone()]), Array::new(&[2, 2], vec![false, true, true, true]));
        assert_eq!(apply(Flip { axis: 0 }, &[x]), Array::new(&[2, 2], vec![true, true, true, false]));
        for axis in [0, 1] {
            assert_eq!(apply(Flip { axis }, &[range(&[3, 0])]), range(&[3, 0]));
        }
    }

    #[test]
    fn gradients_match_differences() {
        for x in [sample(&[2, 1, 3], 1), sample(&[0, 1, 3], 2)] {
            check_vjp(|g, v| g.emit(Transpose { perm: vec![2, 0, 1] }, v), &[x.clone()]);
            check_vjp(|g, v| g.emit(Flip { axis: 2 }, v), &[x.clone()]);
            check_vjp(|g, v| g.emit(Expand { axes: vec![0, 3] }, v), &[x.clone()]);
            check_vjp(|g, v| g.emit(Squeeze { axes: vec![1] }, v), &[x.clone()]);
            check_vjp(|g, v| g.emit(Reshape {}, v), &to(&x, &[3, x.shape()[0] as i64]));
            let like = Array::zeros(DType::F64, &[3, x.shape()[0]]);
            check_vjp(|g, v| g.emit(ReshapeLike {}, v), &[x.clone(), like.clone()]);
            check_vjp2(|g, v| g.emit(ReshapeLike {}, v), &[x, like]);
        }
    }
}
