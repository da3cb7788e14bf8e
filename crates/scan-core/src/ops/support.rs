//! What several ops share: checks of inputs, arithmetic over every dtype, lanes along an axis.

use super::args::expect_count;
pub(super) use super::args::one;
use super::shape::permuted;
use crate::bail;
use crate::base::{Diagnostic, Result};
use crate::ir::op::Index;
use crate::ir::{Arg, Graph, Value};
use crate::types::{Array, Dim, Element, Extents, Type, memory};

/// The inputs of an op that takes `N`.
pub(super) fn exactly<'a, const N: usize>(op: &str, ins: &'a [Arg]) -> Result<&'a [Arg; N]> {
    expect_count(op, N, false, ins)?;
    ins.try_into().map_err(|_| Diagnostic::internal(format!("`{op}` has {N} inputs")))
}

/// Checks that these axes exist.
pub(super) fn check_axes(op: &str, axes: &[usize], ty: &Type) -> Result<()> {
    for (i, &axis) in axes.iter().enumerate() {
        if axis >= ty.rank() {
            bail!(Type, "E0222", "`{op}` along axis {axis}, but its input {ty} has {} axes", ty.rank());
        }
        if axes[..i].contains(&axis) {
            bail!(Type, "E0222", "`{op}` names axis {axis} twice");
        }
    }
    Ok(())
}

/// The extent of axes that must be equal; `None` where they cannot be.
pub(super) fn agree(a: &Dim, b: &Dim) -> Option<Dim> {
    (!a.conflicts(b)).then(|| if a.value().is_some() { a.clone() } else { b.clone() })
}

/// No cotangents.
pub(super) fn none(n: usize) -> Vec<Option<Value>> {
    vec![None; n]
}

/// True where gradients flow through a value.
pub(super) fn is_float(g: &Graph, x: Value) -> bool {
    g.ty(x).dtype.is_float()
}

/// `x[lo:hi]` along an axis, with Python's meaning of negative bounds.
pub(super) fn slice_axis(g: &mut Graph, x: Value, axis: usize, lo: Option<i64>, hi: Option<i64>) -> Value {
    let item = format!("{}:{}", if lo.is_some() { "s" } else { "" }, if hi.is_some() { "e" } else { "" });
    let bounds: Vec<Value> = [lo, hi].into_iter().flatten().map(|n| g.int(n)).collect();
    slice_at(g, x, axis, &item, &bounds)
}

/// x indexed along one axis by an item of an index pattern.
pub(super) fn slice_at(g: &mut Graph, x: Value, axis: usize, item: &str, bounds: &[Value]) -> Value {
    let ins: Vec<Value> = std::iter::once(x).chain(bounds.iter().copied()).collect();
    g.emit(Index { pattern: format!("{}{item}", ":,".repeat(axis)) }, &ins)
}

/// Arithmetic that every dtype has: ints wrap, bool has *or* and *and*.
pub(crate) trait Number: Element {
    /// The neutral element of `plus`.
    const ZERO: Self;
    /// The neutral element of `times`.
    const ONE: Self;
    /// Sum.
    fn plus(self, other: Self) -> Self;
    /// Product.
    fn times(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($t:ty: $zero:expr, $one:expr, $plus:expr, $times:expr;)+) => {$(
        impl Number for $t {
            const ZERO: $t = $zero;
            const ONE: $t = $one;
            fn plus(self, other: $t) -> $t { $plus(self, other) }
            fn times(self, other: $t) -> $t { $times(self, other) }
        }
    )+};
}

numbers! {
    bool: false, true, |a, b| a | b, |a, b| a & b;
    i8: 0, 1, i8::wrapping_add, i8::wrapping_mul;
    i16: 0, 1, i16::wrapping_add, i16::wrapping_mul;
    i32: 0, 1, i32::wrapping_add, i32::wrapping_mul;
    i64: 0, 1, i64::wrapping_add, i64::wrapping_mul;
    u8: 0, 1, u8::wrapping_add, u8::wrapping_mul;
    u16: 0, 1, u16::wrapping_add, u16::wrapping_mul;
    u32: 0, 1, u32::wrapping_add, u32::wrapping_mul;
    u64: 0, 1, u64::wrapping_add, u64::wrapping_mul;
    f32: 0.0, 1.0, |a, b| a + b, |a, b| a * b;
    f64: 0.0, 1.0, |a, b| a + b, |a, b| a * b;
}

/// True for NaN.
pub(super) fn is_nan<T: Element>(x: T) -> bool {
    x.partial_cmp(&x).is_none()
}

/// An array seen as `outer × n × inner`, lanes of `n` elements in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lanes {
    outer: usize,
    /// Elements of a lane.
    pub n: usize,
    /// From one element of a lane to the next.
    pub step: usize,
}

impl Lanes {
    /// Lanes along one axis.
    pub fn along(shape: &[usize], axis: usize) -> Lanes {
        Lanes::over(shape, axis, axis + 1)
    }
    /// Lanes over the axes `lo..hi`.
    fn over(shape: &[usize], lo: usize, hi: usize) -> Lanes {
        Lanes { outer: shape[..lo].iter().product(), n: shape[lo..hi].iter().product(), step: shape[hi..].iter().product() }
    }
    /// Lanes over axes; `None` where others lie between them.
    pub fn side_by_side(shape: &[usize], axes: &[usize]) -> Option<Lanes> {
        let lo = axes.first().copied().unwrap_or(shape.len());
        axes.iter().enumerate().all(|(i, &axis)| axis == lo + i).then(|| Lanes::over(shape, lo, lo + axes.len()))
    }
    /// How many they are.
    pub fn count(self) -> usize {
        self.outer * self.step
    }
    /// Position of each lane's first element, lanes in row-major order.
    pub fn starts(self) -> impl Iterator<Item = usize> {
        (0..self.outer).flat_map(move |o| (0..self.step).map(move |i| o * self.n * self.step + i))
    }
}

/// x with its `axes` side by side, and the lanes over them.
pub(super) fn lanes_over(x: &Array, axes: &[usize]) -> (Array, Lanes) {
    if let Some(lanes) = Lanes::side_by_side(x.shape(), axes) {
        return (x.clone(), lanes);
    }
    let kept = (0..x.rank()).filter(|axis| !axes.contains(axis));
    let perm: Extents = kept.chain(axes.iter().copied()).collect();
    let x = permuted(x, &perm);
    let lanes = Lanes::over(x.shape(), x.rank() - axes.len(), x.rank());
    (x, lanes)
}

/// One lane.
#[derive(Clone, Copy)]
pub(super) struct Lane<'a, T> {
    data: &'a [T],
    start: usize,
    step: usize,
    /// Number of elements.
    pub n: usize,
}

impl<'a, T: Element> Lane<'a, T> {
    /// The lane of `lanes` that starts at `start`.
    pub fn new(data: &'a [T], lanes: Lanes, start: usize) -> Lane<'a, T> {
        Lane { data, start, step: lanes.step, n: lanes.n }
    }
    /// Element `k`.
    pub fn get(self, k: usize) -> T {
        self.data[self.start + k * self.step]
    }
    /// Elements `lo..hi`, where they lie side by side.
    pub fn slice(self, lo: usize, hi: usize) -> Option<&'a [T]> {
        (self.step == 1).then(|| &self.data[self.start + lo..self.start + hi])
    }
    /// All elements in order.
    pub fn iter(self) -> impl Iterator<Item = T> + 'a {
        (0..self.n).map(move |k| self.get(k))
    }
}

/// One value per lane, as an array of this shape.
pub(super) fn per_lane<T: Element, U: Element>(x: &Array, lanes: Lanes, shape: &[usize], f: impl Fn(Lane<T>) -> U) -> Array {
    let data = x.as_slice::<T>();
    Array::new(shape, memory::collect(lanes.starts().map(|start| f(Lane::new(data, lanes, start)))))
}

/// The shape without these axes, or with extent 1 there.
pub(super) fn drop_axes<'a, T: Clone + 'a>(dims: &'a [T], axes: &'a [usize], kept: Option<T>) -> impl Iterator<Item = T> + 'a {
    dims.iter().enumerate().filter_map(move |(axis, d)| if axes.contains(&axis) { kept.clone() } else { Some(d.clone()) })
}
