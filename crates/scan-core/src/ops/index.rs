//! Basic indexing, read and written.

use super::args::{expect_count, expect_int_scalar, form, integer, never_negative, one};
use super::batch::indexing;
use super::certain;
use super::region::{Region, write_region};
use crate::bail;
use crate::base::Result;
use crate::ir::op::*;
use crate::ir::{Graph, Value, View, Viewed};
use crate::types::shape::strides;
use crate::types::{Array, DType, Dim, Dims, Type};
use smallvec::SmallVec;

/// One item of a [`Pattern`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    /// `i`: an integer input; the axis goes away.
    At,
    /// `s:e:step`: a slice whose start and end, where named, are inputs.
    Slice {
        /// The start is an input.
        start: bool,
        /// The end is an input.
        end: bool,
        /// Not zero.
        step: i64,
    },
}

impl Item {
    /// `:`
    pub const ALL: Item = Item::Slice { start: false, end: false, step: 1 };

    /// Number of inputs that the item consumes.
    pub fn inputs(self) -> usize {
        match self {
            Item::At => 1,
            Item::Slice { start, end, .. } => start as usize + end as usize,
        }
    }
}

/// A basic index: an item per leading axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// Items in the order of the axes.
    pub items: SmallVec<[Item; 4]>,
}

impl Pattern {
    /// Reads a pattern: items `i`, `:`, `s:e:2` joined by commas; the empty text has no items.
    ///
    /// # Errors
    /// `E0221` where an item is none of these, or its step is 0.
    pub fn parse(text: &str) -> Result<Pattern> {
        let plain = |start, end| Ok(Pattern { items: SmallVec::from_slice(&[Item::Slice { start, end, step: 1 }]) });
        match text {
            "i" => return Ok(Pattern { items: SmallVec::from_slice(&[Item::At]) }),
            "s:" => return plain(true, false),
            ":e" => return plain(false, true),
            "s:e" => return plain(true, true),
            _ => {}
        }
        let mut items = SmallVec::new();
        for word in text.split(',').filter(|_| !text.is_empty()) {
            match parse_item(word) {
                Some(item) => items.push(item),
                None => bail!(Parse, "E0221", "`{word}` is not an item of an index; write `i`, `:`, `s:`, `:e` or `s:e:-1`"),
            }
        }
        Ok(Pattern { items })
    }
    /// Number of inputs that the pattern consumes.
    pub fn inputs(&self) -> usize {
        self.items.iter().map(|i| i.inputs()).sum()
    }

    /// Checks array and index inputs.
    fn check(&self, op: &str, x: &Arg, idxs: &[Arg]) -> Result<()> {
        if self.items.len() > x.ty.rank() {
            bail!(Index, "E0221", "{} indices for an array of {} axes: {}", self.items.len(), x.ty.rank(), x.ty);
        }
        if idxs.len() != self.inputs() {
            bail!(Type, "E0222", "the index of `{op}` needs {} inputs and got {}", self.inputs(), idxs.len());
        }
        idxs.iter().try_for_each(|a| expect_int_scalar(op, "an index", a))
    }

    /// Extents of the place that the index selects.
    fn dims(&self, x: &Type, idxs: &[Arg]) -> Dims {
        let mut rest = idxs.iter();
        let mut dims = Dims::new();
        for (axis, extent) in x.dims.iter().enumerate() {
            match self.items.get(axis).copied().unwrap_or(Item::ALL) {
                Item::At => drop(rest.next()),
                Item::Slice { start, end, step } => {
                    let bound = |named: bool, rest: &mut std::slice::Iter<Arg>| named.then(|| rest.next().and_then(form));
                    let (lo, hi) = (bound(start, &mut rest), bound(end, &mut rest));
                    dims.push(slice_dim(extent, &lo, &hi, step));
                }
            }
        }
        dims
    }

    /// The elements that the index selects.
    ///
    /// # Errors
    /// `E0202` where an integer lies outside its axis.
    pub(super) fn region(&self, shape: &[usize], idxs: &[i64]) -> Result<Region> {
        let mut rest = idxs.iter().copied();
        let mut region = Region { offset: 0, axes: SmallVec::new() };
        for (axis, (&extent, stride)) in shape.iter().zip(strides(shape)).enumerate() {
            match self.items.get(axis).copied().unwrap_or(Item::ALL) {
                Item::At => region.offset += position(rest.next().unwrap_or(0), axis, extent)? * stride,
                Item::Slice { start, end, step } => {
                    let lo = if start { rest.next() } else { None };
                    let hi = if end { rest.next() } else { None };
                    let (first, len) = resolve_slice(extent, lo, hi, step);
                    region.offset += first * stride;
                    region.axes.push((len, if len > 1 { stride as isize * step as isize } else { 0 }));
                }
            }
        }
        Ok(region)
    }
}

fn integers(idxs: &[Array]) -> SmallVec<[i64; 4]> {
    idxs.iter().map(integer).collect()
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (k, item) in self.items.iter().enumerate() {
            f.write_str(if k > 0 { "," } else { "" })?;
            match item {
                Item::At => f.write_str("i")?,
                Item::Slice { start, end, step } => {
                    write!(f, "{}:{}", if *start { "s" } else { "" }, if *end { "e" } else { "" })?;
                    if *step != 1 {
                        write!(f, ":{step}")?
                    }
                }
            }
        }
        Ok(())
    }
}

fn parse_item(word: &str) -> Option<Item> {
    if word == "i" {
        return Some(Item::At);
    }
    let mut parts = word.split(':');
    let named = |part: &str, letter: &str| match part {
        "" => Some(false),
        p if p == letter => Some(true),
        _ => None,
    };
    let start = named(parts.next()?, "s")?;
    let end = named(parts.next()?, "e")?;
    let step = match parts.next() {
        None | Some("") => 1,
        Some(text) => text.parse().ok().filter(|&s| s != 0 && s != i64::MIN)?,
    };
    parts.next().is_none().then_some(Item::Slice { start, end, step })
}

/// The position that an index means: a negative one counts from the end.
///
/// # Errors
/// `E0202` where it lies outside the axis.
pub(crate) fn position(idx: i64, axis: usize, extent: usize) -> Result<usize> {
    let n = extent as i64;
    let shifted = if idx < 0 { idx + n } else { idx };
    if shifted < 0 || shifted >= n {
        bail!(Index, "E0202", "index {idx} is out of range for axis {axis} with extent {extent}");
    }
    Ok(shifted as usize)
}

/// First position and length of a slice, as Python resolves it: bounds beyond the axis are clipped.
pub(crate) fn resolve_slice(extent: usize, start: Option<i64>, end: Option<i64>, step: i64) -> (usize, usize) {
    let n = extent as i64;
    let (least, most) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let clip = |bound: i64| if bound < 0 { bound.saturating_add(n).max(least) } else { bound.min(most) };
    let first = start.map_or(if step > 0 { least } else { most }, clip);
    let last = end.map_or(if step > 0 { most } else { least }, clip);
    let distance = if step > 0 { last - first } else { first - last };
    let len = if distance > 0 { (distance as u64 - 1) / step.unsigned_abs() + 1 } else { 0 };
    if len == 0 { (0, 0) } else { (first as usize, len as usize) }
}

/// The extent of a slice. The outer option tells whether a bound is given, the inner one whether anything is known of it.
fn slice_dim(extent: &Dim, start: &Option<Option<Dim>>, end: &Option<Option<Dim>>, step: i64) -> Dim {
    if start.is_none() && end.is_none() && step.abs() == 1 {
        return extent.clone();
    }
    if let (Some(n), Some(lo), Some(hi)) = (extent.value(), constant(start), constant(end)) {
        return Dim::known(resolve_slice(n, lo, hi, step).1);
    }
    let zero = Dim::known(0);
    let lo = start.as_ref().map_or(Some(zero), |s| bounded(s.as_ref()?, extent));
    let hi = end.as_ref().map_or(Some(extent.clone()), |e| bounded(e.as_ref()?, extent));
    match (lo, hi) {
        (Some(lo), Some(hi)) if step == 1 => super::args::clamped(&hi.sub(&lo)),
        _ => Dim::fresh(),
    }
}

/// A bound that is absent (`Some(None)`) or a number; `None` where it is neither.
fn constant(bound: &Option<Option<Dim>>) -> Option<Option<i64>> {
    match bound {
        None => Some(None),
        Some(form) => match form.as_ref()?.parts() {
            ([], n) => Some(Some(n)),
            _ => None,
        },
    }
}

/// The position in `0..=extent` that a bound means, where that is certain for all extents.
fn bounded(bound: &Dim, extent: &Dim) -> Option<Dim> {
    let negative = matches!(bound.parts(), ([], n) if n < 0);
    let bound = if negative { extent.add(bound) } else { bound.clone() };
    match never_negative(&bound) {
        true if never_negative(&extent.sub(&bound)) => Some(bound),
        true if !negative && never_negative(&bound.sub(extent)) => Some(extent.clone()),
        _ => None,
    }
}

impl OpDef for Index {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("index", 1, true, ins)?;
        let pattern = Pattern::parse(&self.pattern)?;
        pattern.check("index", &ins[0], &ins[1..])?;
        Ok(one(Type { dtype: ins[0].ty.dtype, dims: pattern.dims(&ins[0].ty, &ins[1..]) }))
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let region = Pattern::parse(&self.pattern)?.region(ins[0].shape(), &integers(&ins[1..]))?;
        Ok(one(region.read(&ins[0])))
    }
    fn view(&self, of: &Viewed) -> Option<View> {
        Pattern::parse(&self.pattern).ok()?.view(of)
    }
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(g.written_back(IndexWrite { mode: Write::Inc, pattern: self.pattern.clone() }, site, cts[0]))
    }
    fn connected(&self, input: usize) -> bool {
        input == 0
    }
    fn can_fail(&self) -> bool {
        self.pattern.contains('i')
    }
    fn fallible(&self, g: &Graph, ins: &[Value]) -> bool {
        let Ok(pattern) = Pattern::parse(&self.pattern) else { return true };
        let mut idxs = ins[1..].iter();
        !pattern.items.iter().zip(&g.ty(ins[0]).dims).all(|(item, extent)| {
            let own: SmallVec<[Option<i64>; 2]> = idxs.by_ref().take(item.inputs()).map(|&v| certain::integer(g, v)).collect();
            match (item, own.first().copied().flatten()) {
                (Item::At, Some(i)) => certain::not_negative(&extent.add(&Dim::from_parts([], if i < 0 { i } else { -1 - i }))),
                (Item::At, None) => false,
                (Item::Slice { .. }, _) => true,
            }
        })
    }

    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        indexing::index(self, b, ins)
    }
}

/// Checks what is written against the place that it is written to.
///
/// # Errors
/// `E0207` where the cast to the array's dtype loses, `E0201` where the shape does not broadcast to the place.
pub(super) fn check_written(op: &str, x: &Type, y: &Type, place: &Dims) -> Result<()> {
    let kind = |d: DType| if d.is_float() { 2 } else { d.is_int() as usize };
    if kind(y.dtype) > kind(x.dtype) {
        bail!(Type, "E0207", "`{op}` cannot write {} into an array of {}: cast one of them", y.dtype, x.dtype);
    }
    let place = Type { dtype: x.dtype, dims: place.clone() };
    let misfit = |(n, m): (&Dim, &Dim)| !m.is_one() && m.conflicts(n);
    if y.rank() > place.rank() || place.dims.iter().rev().zip(y.dims.iter().rev()).any(misfit) {
        bail!(Shape, "E0201", "`{op}` cannot write {y} into a place of {place}");
    }
    Ok(())
}

impl OpDef for IndexWrite {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("index_write", 2, true, ins)?;
        let pattern = Pattern::parse(&self.pattern)?;
        pattern.check("index_write", &ins[0], &ins[2..])?;
        check_written("index_write", &ins[0].ty, &ins[1].ty, &pattern.dims(&ins[0].ty, &ins[2..]))?;
        Ok(one(ins[0].ty.clone()))
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let region = Pattern::parse(&self.pattern)?.region(ins[0].shape(), &integers(&ins[2..]))?;
        let mut x = std::mem::replace(&mut ins[0], Array::scalar(false));
        write_region(&mut x, &region, &ins[1], self.mode)?;
        Ok(one(x))
    }
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let mut out = vec![None; site.ins.len()];
        let Some(ct) = cts[0] else { return Ok(out) };
        let (y, idxs) = (site.ins[1], &site.ins[2..]);
        out[0] = Some(match self.mode {
            Write::Inc => ct,
            Write::Set => {
                let zero = g.number(g.ty(ct).dtype, 0.0);
                let ins: Vec<Value> = [ct, zero].iter().chain(idxs).copied().collect();
                g.emit(self.clone(), &ins)
            }
        });
        if g.ty(y).dtype.is_float() {
            let ins: Vec<Value> = std::iter::once(&ct).chain(idxs).copied().collect();
            let read = g.emit(Index { pattern: self.pattern.clone() }, &ins);
            out[1] = super::args::fit(g, read, y);
        }
        Ok(out)
    }
    fn connected(&self, input: usize) -> bool {
        input < 2
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        indexing::index_write(self, b, ins)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::types::Sym;

    fn index(pattern: &str) -> Index {
        Index { pattern: pattern.into() }
    }
    fn write(mode: Write, pattern: &str) -> IndexWrite {
        IndexWrite { mode, pattern: pattern.into() }
    }
    fn counting(shape: &[usize]) -> Array {
        Array::new(shape, (0..shape.iter().product::<usize>() as i64).collect())
    }
    fn int(n: i64) -> Array {
        Array::scalar(n)
    }

    /// The hash was computed by Python from `range(n)[slice(s, e, step)]`.
    #[test]
    fn slices_resolve_as_pythons() {
        let bounds: Vec<Option<i64>> = std::iter::once(None).chain((-6..=6).map(Some)).collect();
        let mut hash: u64 = 0;
        for n in 0..5 {
            for s in &bounds {
                for e in &bounds {
                    for step in [-3, -2, -1, 1, 2, 3] {
                        let (first, len) = resolve_slice(n, *s, *e, step);
                        for k in 0..len as i64 {
                            hash = (hash * 31 + (first as i64 + k * step) as u64 + 1) % 1_000_000_007;
                        }
                        hash = (hash * 37 + len as u64) % 1_000_000_007;
                    }
                }
            }
        }
        assert_eq!(hash, HASH);
    }
    const HASH: u64 = 417_575_048;

    #[test]
    fn values_are_numpys() {
        let x = counting(&[2, 3, 4]);
        assert_eq!(apply(index("i"), &[x.clone(), int(-1)]), Array::new(&[3, 4], (12..24).collect::<Vec<i64>>()));
        assert_eq!(apply(index(":,i,s::-2"), &[x.clone(), int(1), int(3)]).to_i64_vec(), [7, 5, 19, 17]);
        assert_eq!(apply(index("i,i,i"), &[x.clone(), int(1), int(2), Array::scalar(3u8)]), int(23));
        assert_eq!(apply(index("::-1,s:e,:e:2"), &[x.clone(), int(-2), int(99), int(-1)]).to_i64_vec(), [16, 18, 20, 22, 4, 6, 8, 10]);
        assert_eq!(apply(index(":e"), &[x.clone(), int(0)]).shape(), [0, 3, 4]);
        assert_eq!(apply(index(""), &[x.clone()]), x);
        assert_eq!(apply(index("::9223372036854775807"), &[x.clone()]).shape(), [1, 3, 4]);
        assert_eq!(apply(index(":,::-9223372036854775807"), &[x]).to_i64_vec(), [8, 9, 10, 11, 20, 21, 22, 23]);
    }

    #[test]
    fn every_dtype_is_read_and_written() {
        for (dtype, ..) in crate::types::dtype::DTYPES {
            let x = Array::vector(&[1i64, 0, 1]).cast(dtype);
            assert_eq!(apply(index("s:"), &[x.clone(), int(1)]), Array::vector(&[0i64, 1]).cast(dtype));
            let one = int(1).cast(dtype);
            assert_eq!(apply(write(Write::Set, "i"), &[x.clone(), one.clone(), int(1)]), Array::full(dtype, &[3], 1.0));
            let two = if dtype == DType::Bool { 1 } else { 2 };
            assert_eq!(apply(write(Write::Inc, "i"), &[x, one, int(0)]).to_i64_vec(), [two, 0, 1]);
        }
    }

    #[test]
    fn writes_broadcast_and_cast() {
        let x = Array::zeros(DType::F32, &[2, 3]);
        let y = Array::vector(&[1i32, 2, 3]);
        assert_eq!(apply(write(Write::Set, ":,::-1"), &[x.clone(), y.clone()]).to_f64_vec(), [3., 2., 1., 3., 2., 1.]);
        let column = Array::new(&[2, 1], vec![5i8, 6]);
        assert_eq!(apply(write(Write::Inc, ":,s:"), &[x, column, int(1)]).to_f64_vec(), [0., 5., 5., 0., 6., 6.]);
        let wraps = apply(write(Write::Inc, "i"), &[Array::vector(&[250u8]), Array::scalar(10i64), int(0)]);
        assert_eq!(wraps, Array::vector(&[4u8]));
    }

    #[test]
    fn a_unique_buffer_is_written_in_place() {
        let x = Array::zeros(DType::F64, &[1000]);
        let at = x.as_slice::<f64>().as_ptr();
        let op = write(Write::Set, "i");
        let out = op.eval(&mut EvalCx::new(), &mut [x, Array::scalar(1.0), int(7)]).unwrap();
        assert_eq!(out[0].as_slice::<f64>().as_ptr(), at);
        assert_eq!(out[0].as_slice::<f64>()[7], 1.0);
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let x = counting(&[2, 3]);
        let e = run_error(index(":,i"), &[x.clone(), int(-4)]);
        assert_eq!((e.code, e.title.as_str()), ("E0202", "index -4 is out of range for axis 1 with extent 3"));
        assert_eq!(run_error(index("i"), &[x.clone(), Array::scalar(u64::MAX)]).code, "E0202");
        let e = run_error(index("i,i,i"), &[x.clone(), int(0), int(0), int(0)]);
        assert_eq!((e.code, e.title.as_str()), ("E0221", "3 indices for an array of 2 axes: int64[?, ?]"));
        let e = run_error(index("i"), &[x.clone(), Array::scalar(1.0)]);
        assert_eq!((e.code, e.title.as_str()), ("E0222", "an index of `index` must be an integer scalar, got float64"));
        for bad in ["j", "s:e:0", ",", "s", "a:", "::x", ":::", " :", "s:e:2:1"] {
            assert_eq!(Pattern::parse(bad).unwrap_err().code, "E0221", "{bad}");
        }
        let e = run_error(write(Write::Set, "i"), &[x.clone(), Array::scalar(0.5), int(0)]);
        assert_eq!((e.code, e.title.as_str()), ("E0207", "`index_write` cannot write float64 into an array of int64: cast one of them"));
        let two = Array::vector(&[1i64, 2]);
        assert_eq!(run_error(write(Write::Set, "i"), &[x.clone(), two.clone(), int(0)]).code, "E0201");
        assert_eq!(build_error(write(Write::Set, "i"), &[x.clone(), two, int(0)]).code, "E0201");
        assert_eq!(build_error(write(Write::Set, "i"), &[x, counting(&[1, 3]), int(0)]).code, "E0201");
    }

    fn dim_after(extent: &Dim, pattern: &str, bounds: &[Dim]) -> Dim {
        let arg = |dim: &Dim| Arg { ty: Type::scalar(DType::I64), value: None, dim: Some(dim.clone()) };
        let x = Arg { ty: Type::new(DType::F64, [extent.clone()]), value: None, dim: None };
        let ins: Vec<Arg> = std::iter::once(x).chain(bounds.iter().map(arg)).collect();
        index(pattern).infer(&ins).unwrap()[0].dims[0].clone()
    }

    #[test]
    fn extents_are_known_only_where_certain() {
        let n = Dim::sym(Sym::fresh());
        let buffer = n.add(&Dim::known(3));
        let number = |k: i64| Dim::from_parts([], k);
        assert_eq!(dim_after(&buffer, "s:", &[number(3)]), n);
        assert_eq!(dim_after(&buffer, ":e", &[number(-3)]), n);
        assert_eq!(dim_after(&buffer, "s:", &[n.clone()]), number(3));
        assert_eq!(dim_after(&buffer, "s:e", &[number(1), n.add(&number(1))]), n);
        assert_eq!(dim_after(&n, ":e", &[buffer.clone()]), n);
        assert_eq!(dim_after(&n, "::-1", &[]), n);
        assert_eq!(dim_after(&number(7), "s:e:-2", &[number(5), number(0)]), number(3));
        for (pattern, bounds) in
            [("s:", vec![number(1)]), (":e", vec![number(-1)]), ("s:e", vec![number(0), n.sub(&number(1))]), ("::2", vec![])]
        {
            let dim = dim_after(&n, pattern, &bounds);
            assert!(dim.as_sym().is_some() && dim != n, "{pattern}: {dim:?}");
        }
    }

    #[test]
    fn gradients_match_differences() {
        let x = sample(&[3, 4], 1);
        for (pattern, idxs) in [("i", vec![-1]), ("s:e:2,i", vec![0, 3, 2]), (":,s::-1", vec![2]), ("::-2,:", vec![]), ("i,i", vec![0, 1])]
        {
            let ins: Vec<Array> = idxs.iter().map(|&i| int(i)).collect();
            let read: Vec<Array> = std::iter::once(x.clone()).chain(ins.clone()).collect();
            let build = |g: &mut Graph, v: &[Value]| {
                let at = g.emit(index(pattern), v);
                g.mul(at, at)
            };
            check_vjp(build, &read);
            check_vjp2(build, &read);
            for mode in [Write::Set, Write::Inc] {
                for y in [sample(&[], 2), apply(index(pattern), &read)] {
                    let all: Vec<Array> = [x.clone(), y].into_iter().chain(ins.clone()).collect();
                    let build = |g: &mut Graph, v: &[Value]| {
                        let out = g.emit(write(mode, pattern), v);
                        g.mul(out, out)
                    };
                    check_vjp(build, &all);
                    check_vjp2(build, &all);
                }
            }
        }
    }
}
