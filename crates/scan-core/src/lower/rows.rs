//! Steps that do the same to each of many rows: the rows are the lanes of a kernel, the elements of one are its scalars.
//!
//! ```text
//! state s : f64[256, 3]                     per lane: r1, r2, r3
//! t = s[:, 0] * s[:, 1]                     r4 = r1 · r2
//! next s = stack(t, sum(s, 1), c)           r4, r1 + r2 + r3, the same constant for all
//! ```
//!
//! Which axis of a value numbers the rows follows from where those of the inputs are: of what computes the op knows
//! ([`Op::mapped_axis`](crate::ir::Op::mapped_axis)), of what only moves elements each element is traced to where it comes from.

use super::extents::{known_row, known_shape};
use super::kinds::{Kind, Kinds};
use super::moves::{Source, sources};
use super::nodes::{Lowering, MOST};
use super::picks::{LOOKED_AT, at_places, named, spot_of};
use super::scalars::SCALARS;
use super::value::{Layout, Val, bits_of};
use super::{Lowered, refuse};
use crate::ir::op::Write;
use crate::ir::{Graph, Node, Op, Scan, Value};
use crate::kernel::{Bin, Cmp, Reg};
use crate::ops::mapped::Mapped;
use crate::scalar::ElemOp;
use crate::types::shape::{Extents, broadcast_positions, count};
use crate::types::{Array, DType};

/// Fewer rows do not fill a vector.
const FEWEST: usize = 4;
/// So many elements of a row at most are scalars.
const OF_A_ROW: usize = 128;
/// So many elements at most are traced while planning.
const TRACED: usize = 1 << 20;

/// How many rows a step may have: extents of the states' first and last axes, the largest first.
pub(super) fn row_counts(scan: &Scan, body: &Graph) -> Lowered<Vec<usize>> {
    let mut counts = vec![];
    for id in scan.states.ids() {
        let row = known_row(scan, body, id)?;
        counts.extend(row.first().into_iter().chain(row.last()).copied().filter(|&n| n >= FEWEST));
    }
    counts.sort_unstable_by_key(|&n| std::cmp::Reverse(n));
    counts.dedup();
    Ok(counts)
}

/// True for a step whose rows have few elements each: others would take long to lower, and longer to run than lists of kernels.
pub(super) fn is_small(body: &Graph, kinds: &Kinds, layout: Layout) -> bool {
    let scalars = |v: Value| {
        let shape = known_shape(body, v).ok()?;
        // A table stays in memory.
        let all = if kinds.tabled(body, layout, v) { 0 } else { count(&shape) };
        match layout.row_axis(&shape) {
            Some(axis) => Some(all / shape[axis]).filter(|&n| n <= OF_A_ROW),
            None => Some(all),
        }
    };
    let sum = |values: &mut dyn Iterator<Item = Value>| values.map(scalars).sum::<Option<usize>>();
    let given = body.params().iter().copied().filter(|&v| kinds.of(v) == Kind::Step);
    let made = kinds.nodes(body).filter(|n| kinds.of(n.outs[0]) == Kind::Step).flat_map(|n| n.outs.iter().copied());
    let within = |n: Option<usize>, most: usize| n.is_some_and(|n| n <= most);
    within(sum(&mut given.chain(kinds.roots(body, layout))), SCALARS) && within(sum(&mut made.into_iter()), MOST)
}

/// True for an array that has elements of its own for each row.
pub(super) fn own_rows(a: &Array, layout: Layout) -> bool {
    layout.row_axis(a.shape()).is_some_and(|axis| !repeats(a, axis))
}

/// True for an array whose elements are the same all along an axis.
fn repeats(a: &Array, axis: usize) -> bool {
    let (extent, behind, bits) = (a.shape()[axis], count(&a.shape()[axis + 1..]), a.bits());
    (0..a.len()).all(|at| bits[at] == bits[at - at / behind % extent * behind])
}

/// An element: of which moved input, in which row of it where that has rows, and which element of such a row.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Origin {
    input: Option<usize>,
    row: Option<usize>,
    at: usize,
}

/// What an index names in each row.
struct RowPicks {
    /// The axis of what is named that numbers the rows.
    axis: Option<usize>,
    /// Extents of what is named.
    shape: Extents,
    /// Per number of a place: the elements of one row that are named.
    places: Vec<Vec<Origin>>,
    /// Per element of a row, the number of its place.
    spots: Vec<Reg>,
}

/// Numbers counted from 1 on, as [`sources`] does.
fn next(from: Vec<usize>) -> impl Iterator<Item = usize> {
    from.into_iter().map(|at| at + 1)
}

/// Which row an element lies in, and which element of it that is.
fn split(at: usize, shape: &[usize], axis: usize) -> (usize, usize) {
    let behind = count(&shape[axis + 1..]);
    (at / behind % shape[axis], at / (behind * shape[axis]) * behind + at % behind)
}

impl Lowering<'_> {
    /// Gives a value that lies in memory its scalars.
    pub(super) fn given(&mut self, v: Value, regs: Vec<Reg>) -> Lowered<()> {
        let full = known_shape(self.graph(), v)?;
        self.row_axes[v.0 as usize] = self.layout().row_axis(&full);
        let shape = self.shape(v)?;
        self.bind(v, Val::Regs(shape, regs));
        Ok(())
    }
    /// The scalars of a value that is handed on from step to step, or stored: its rows lie where memory has them.
    pub(super) fn handed_on(&mut self, v: Value) -> Lowered<Vec<Reg>> {
        let full = known_shape(self.graph(), v)?;
        if self.row_axes[v.0 as usize] != self.layout().row_axis(&full) {
            return refuse("what is handed on is not one row for each");
        }
        self.regs(v)
    }
    /// Gives a value that is known; one that is the same in all rows has the scalars of one.
    pub(super) fn bind_known(&mut self, v: Value, a: Array) {
        let axis = self.layout().row_axis(a.shape()).filter(|&axis| repeats(&a, axis));
        let Some(axis) = axis else { return self.bind(v, Val::Known(a)) };
        let first = (0..a.len()).filter(|&at| split(at, a.shape(), axis).0 == 0);
        let regs = first.map(|at| self.builder.raw(a.dtype(), bits_of(&a, at))).collect();
        let mut shape = Extents::from_slice(a.shape());
        shape[axis] = 1;
        self.row_axes[v.0 as usize] = Some(axis);
        self.bind(v, Val::Regs(shape, regs));
    }

    /// Finds the axes of a node's results that number the rows, but where it only moves elements.
    pub(super) fn map_rows(&mut self, node: &Node) -> Lowered<()> {
        let Layout::Rows(_) = self.layout() else { return Ok(()) };
        let traced = node.op.moved(node.ins.len()).is_some() || node.op.writes();
        if traced || node.ins.iter().all(|&v| self.row_axes[v.0 as usize].is_none()) {
            return Ok(());
        }
        let shapes = node.ins.iter().map(|&v| known_shape(self.graph(), v)).collect::<Lowered<Vec<_>>>()?;
        let axes = node.ins.iter().map(|v| self.row_axes[v.0 as usize]);
        let ins: Vec<Mapped> = shapes.iter().zip(axes).map(|(shape, axis)| Mapped { shape, axis }).collect();
        let Some(axis) = node.op.mapped_axis(&ins, &known_shape(self.graph(), node.outs[0])?) else {
            return refuse("its rows depend on each other");
        };
        node.outs.iter().for_each(|v| self.row_axes[v.0 as usize] = Some(axis));
        Ok(())
    }

    /// Elements that an op only moves, where it does so in each row alike.
    pub(super) fn moved_rows(&mut self, node: &Node) -> Lowered<Vec<Reg>> {
        let Some(moved) = node.op.moved(node.ins.len()) else { return refuse("it does not only move elements") };
        let full = node.ins.iter().map(|&v| known_shape(self.graph(), v)).collect::<Lowered<Vec<_>>>()?;
        let out = known_shape(self.graph(), node.outs[0])?;
        let (from, shape) = self.traced(&node.op, &node.ins, &moved)?;
        if shape != out {
            return refuse(super::extents::BY_VALUES);
        }
        let ins: Vec<(&[usize], Option<usize>)> = moved.iter().map(|&i| (&full[i][..], self.row_axes[node.ins[i].0 as usize])).collect();
        let origins = origins(from, &ins);
        let axis = self.alike(&origins, &out)?;
        self.row_axes[node.outs[0].0 as usize] = axis;
        let dtype = self.graph().ty(node.outs[0]).dtype;
        let scalars = moved.iter().map(|&i| self.regs_of(node.ins[i], dtype)).collect::<Lowered<Vec<_>>>()?;
        let zero = self.number(dtype, 0.0);
        let first = of_one(&origins, &out, axis).into_iter();
        Ok(first.map(|from| from.input.map_or(zero, |input| scalars[input][from.at])).collect())
    }

    /// Where the elements of a result come from that an op makes of those of some of its inputs, and its extents ([`sources`]).
    fn traced(&self, op: &Op, ins: &[Value], moved: &[usize]) -> Lowered<(Vec<usize>, Extents)> {
        let full = ins.iter().map(|&v| known_shape(self.graph(), v)).collect::<Lowered<Vec<_>>>()?;
        let values: Vec<Val> = ins.iter().map(|&v| self.value(v)).collect::<Lowered<_>>()?;
        let mut given = vec![];
        for (i, val) in values.iter().enumerate() {
            given.push(match val {
                _ if moved.contains(&i) => Source::Moved(&full[i]),
                _ if op.properties().shape_only.contains(&i) => Source::Shape(&full[i]),
                Val::Known(a) => Source::Given(a),
                Val::Regs(..) | Val::Table(..) => return refuse("a shape that depends on the step"),
            });
        }
        if moved.iter().any(|&i| count(&full[i]) > TRACED) {
            return refuse("too many elements to trace");
        }
        match sources(op, &given) {
            Some((from, made)) if from.len() <= TRACED => Ok((from, Extents::from_slice(made.shape()))),
            _ => refuse("it fails on these extents"),
        }
    }

    /// The elements that an index names of which the step computes a part.
    pub(super) fn picked_rows(&mut self, node: &Node) -> Lowered<Vec<Reg>> {
        let picks = self.row_picks(&node.op, node.ins[0], &node.ins[1..])?;
        if picks.shape != known_shape(self.graph(), node.outs[0])? {
            return refuse(super::extents::BY_VALUES);
        }
        self.row_axes[node.outs[0].0 as usize] = picks.axis;
        let regs = self.regs(node.ins[0])?;
        let each = picks.spots.iter().enumerate();
        Ok(each.map(|(k, &spot)| self.chosen(spot, 0, &picks.places.iter().map(|p| regs[p[k].at]).collect::<Vec<_>>())).collect())
    }

    /// The array with the elements that an index names set or added to; `read` is the op that reads them.
    pub(super) fn written_rows(&mut self, mode: Write, read: &Op, node: &Node) -> Lowered<Vec<Reg>> {
        let [x, y] = [node.ins[0], node.ins[1]];
        let axis = self.row_axes[x.0 as usize];
        let picks = self.row_picks(read, x, &node.ins[2..])?;
        let from = known_shape(self.graph(), y)?;
        if axis.is_none() || picks.axis.is_none() || from.len() > picks.shape.len() {
            return refuse("it writes to what is the same for all rows");
        }
        let given = origins(next(broadcast_positions(&from, &picks.shape)), &[(&from, self.row_axes[y.0 as usize])]);
        // A row of which another one's elements are written is found here: those of this row come from the same places in each.
        let own = picks.places.iter().all(|places| places.iter().all(|place| place.row == Some(0)));
        if !own || !fits(&given, &picks.shape, picks.axis) {
            return refuse("it moves elements between rows");
        }
        let dtype = self.graph().ty(node.outs[0]).dtype;
        let (mut out, new) = (self.regs_of(x, dtype)?, self.regs_of(y, dtype)?);
        for (k, given) in of_one(&given, &picks.shape, picks.axis).into_iter().enumerate() {
            for (number, places) in picks.places.iter().enumerate() {
                let (to, number) = (places[k].at, self.builder.integer(DType::I64, number as i64));
                let here = self.builder.cmp(Cmp::Eq, picks.spots[k], number);
                let old = out[to];
                let value = if mode == Write::Set { new[given.at] } else { self.elem(ElemOp::Add, dtype, &[old, new[given.at]])? };
                out[to] = self.builder.select(here, value, old);
            }
        }
        self.row_axes[node.outs[0].0 as usize] = axis;
        Ok(out)
    }

    /// What an index names of an array, of an op that reads by it: in each row elements of that row, or of what all rows share, and by the
    /// integers of that row.
    fn row_picks(&mut self, op: &Op, x: Value, idxs: &[Value]) -> Lowered<RowPicks> {
        let full = known_shape(self.graph(), x)?;
        let (names, free) = self.named_by(op, idxs)?;
        let names = names.into_iter().zip(idxs).map(|(val, &v)| self.whole(val, v)).collect::<Lowered<Vec<Val>>>()?;
        let sizes: Vec<usize> = free.iter().map(|of| of.places(full[of.axis])).collect();
        if sizes.contains(&0) || count(&sizes) > LOOKED_AT {
            return refuse(format!("an index that depends on the step, of {} places", count(&sizes)));
        }
        let mut picks = RowPicks { axis: None, shape: Extents::new(), places: vec![], spots: vec![] };
        for number in 0..count(&sizes) {
            let at = |k: usize| (number / count(&sizes[k + 1..]) % sizes[k]) as i64;
            let (from, shape) = named(op, &full, &at_places(&names, &free, &at))?;
            let origins = origins(next(from), &[(&full, self.row_axes[x.0 as usize])]);
            let axis = self.alike(&origins, &shape)?;
            if number > 0 && (axis, &shape) != (picks.axis, &picks.shape) {
                return refuse("it moves elements between rows");
            }
            picks.places.push(of_one(&origins, &shape, axis));
            (picks.axis, picks.shape) = (axis, shape);
        }
        if !free.is_empty() && count(&sizes) * picks.places[0].len() > LOOKED_AT {
            return refuse("an index that depends on the step, of many elements");
        }
        let zero = self.builder.integer(DType::I64, 0);
        picks.spots = vec![zero; picks.places[0].len()];
        for of in &free {
            let extent = full[of.axis];
            let inside = self.inside(idxs[of.input], of, extent)?;
            let from = self.index_origins(op, idxs[of.input], &full, &picks.shape)?;
            if !fits(&from, &picks.shape, picks.axis) {
                return refuse("its rows depend on each other");
            }
            let size = self.builder.integer(DType::I64, of.places(extent) as i64);
            for (spot, from) in picks.spots.iter_mut().zip(of_one(&from, &picks.shape, picks.axis)) {
                let scaled = self.builder.bin(Bin::Mul, *spot, size);
                *spot = self.builder.bin(Bin::Add, scaled, inside[from.at]);
            }
        }
        Ok(picks)
    }

    /// The axis of what an index names of an array that all rows share.
    pub(super) fn row_axis_by_index(&mut self, node: &Node) -> Lowered<Option<usize>> {
        let (full, out) = (known_shape(self.graph(), node.ins[0])?, known_shape(self.graph(), node.outs[0])?);
        let Some(&own) = node.ins[1..].iter().find(|v| self.row_axes[v.0 as usize].is_some()) else { return Ok(None) };
        let axis = self.alike(&self.index_origins(&node.op, own, &full, &out)?, &out)?;
        for &idx in &node.ins[1..] {
            if !fits(&self.index_origins(&node.op, idx, &full, &out)?, &out, axis) {
                return refuse("its rows depend on each other");
            }
        }
        Ok(axis)
    }

    /// Which element of an input of an index names each element of the result.
    fn index_origins(&self, op: &Op, idx: Value, full: &Extents, out: &Extents) -> Lowered<Vec<Origin>> {
        let shape = known_shape(self.graph(), idx)?;
        Ok(origins(next(spot_of(op, full, &shape, out)?), &[(&shape, self.row_axes[idx.0 as usize])]))
    }

    /// A value with the extents that it has for all rows.
    fn whole(&self, val: Val, v: Value) -> Lowered<Val> {
        Ok(match val {
            Val::Regs(_, regs) => Val::Regs(known_shape(self.graph(), v)?, regs),
            other => other,
        })
    }

    /// The axis of a result that numbers the rows: its elements come from those of the same row, and from the same ones in each.
    fn alike(&self, origins: &[Origin], out: &[usize]) -> Lowered<Option<usize>> {
        let Layout::Rows(rows) = self.layout() else { return Ok(None) };
        match (0..out.len()).filter(|&axis| out[axis] == rows).find(|&axis| fits(origins, out, Some(axis))) {
            Some(axis) => Ok(Some(axis)),
            None if fits(origins, out, None) => Ok(None),
            None => refuse("it moves elements between rows"),
        }
    }
}

/// True where elements come from those of the same row along an axis, and from the same ones in each; without one, where they come from
/// none that rows have of their own.
fn fits(origins: &[Origin], out: &[usize], axis: Option<usize>) -> bool {
    let Some(axis) = axis else { return origins.iter().all(|from| from.row.is_none()) };
    let behind = count(&out[axis + 1..]);
    origins.iter().enumerate().all(|(at, from)| {
        let (row, _) = split(at, out, axis);
        let first = origins[at - row * behind];
        (from.input, from.at) == (first.input, first.at) && from.row.is_none_or(|own| own == row)
    })
}

/// The elements of one row.
fn of_one(origins: &[Origin], out: &[usize], axis: Option<usize>) -> Vec<Origin> {
    let own = |at: &usize| axis.is_none_or(|axis| split(*at, out, axis).0 == 0);
    (0..origins.len()).filter(own).map(|at| origins[at]).collect()
}

/// Where the elements of a result come from, told by their numbers ([`sources`]).
fn origins(from: impl IntoIterator<Item = usize>, ins: &[(&[usize], Option<usize>)]) -> Vec<Origin> {
    let origin = |number: usize| {
        let Some(mut at) = number.checked_sub(1) else { return Origin { input: None, row: None, at: 0 } };
        let mut input = 0;
        while at >= count(ins[input].0) {
            at -= count(ins[input].0);
            input += 1;
        }
        match ins[input] {
            (_, None) => Origin { input: Some(input), row: None, at },
            (shape, Some(axis)) => {
                let (row, at) = split(at, shape, axis);
                Origin { input: Some(input), row: Some(row), at }
            }
        }
    };
    from.into_iter().map(origin).collect()
}
