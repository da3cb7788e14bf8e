//! Elements by an index: where it is known they are moved while planning, else every place that it may name is looked at.

use super::dynamic_slice::dynamic_slice;
use super::moves::{Source, sources};
use super::nodes::Lowering;
use super::value::{Layout, Val};
use super::{Lowered, refuse};
use crate::ir::op::*;
use crate::ir::{EvalCx, Node, Op, Value};
use crate::kernel::{Bin, Cmp, Reg};
use crate::ops::select::Selector;
use crate::scalar::ElemOp;
use crate::types::shape::{Extents, broadcast_positions, count};
use crate::types::{Array, DType};

/// So many selections at most stand for an index that the step computes: reading an element of memory takes as long.
pub(super) const LOOKED_AT: usize = 64;

/// Integers of an index that the step computes: which input they are, and of which axis they name places.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub(super) input: usize,
    pub(super) axis: usize,
    /// So many elements from the place on are read, with the axis: not all places have so many behind them.
    slice: Option<usize>,
}

impl Named {
    /// How many places there are of an axis of this extent.
    pub(super) fn places(&self, extent: usize) -> usize {
        self.slice.map_or(extent, |len| extent + 1 - len)
    }
}

/// An index of which the step computes a part.
struct Picks {
    /// Per element that is named: the number of the place that it is, of those that there are.
    spots: Vec<Reg>,
    /// Per such number: positions in the array of all that is named.
    places: Vec<Vec<usize>>,
    /// Extents of what is named.
    shape: Extents,
}

impl Lowering<'_> {
    /// Elements that an op only moves.
    pub(super) fn moved(&mut self, node: &Node, shape: &Extents) -> Lowered<Vec<Reg>> {
        match self.layout() {
            Layout::Lanes(n) => return self.moved_lanes(node, n, shape),
            Layout::Rows(_) => return self.moved_rows(node),
            Layout::Elements => {}
        }
        let Some(moved) = node.op.moved(node.ins.len()) else { return refuse("it does not only move elements") };
        let values: Vec<Val> = node.ins.iter().map(|&v| self.value(v)).collect::<Lowered<_>>()?;
        let mut given = vec![];
        for (i, val) in values.iter().enumerate() {
            given.push(match val {
                _ if moved.contains(&i) => Source::Moved(val.shape()),
                _ if node.op.properties().shape_only.contains(&i) => Source::Shape(val.shape()),
                Val::Known(a) => Source::Given(a),
                Val::Regs(..) | Val::Table(..) => return refuse("a shape that depends on the step"),
            });
        }
        let Some((from, out)) = sources(&node.op, &given) else { return refuse("it fails on these extents") };
        if out.shape() != &shape[..] {
            return refuse("an extent that depends on values");
        }
        let dtype = self.graph().ty(node.outs[0]).dtype;
        let mut all = vec![self.number(dtype, 0.0)];
        for i in moved {
            all.extend(self.regs_of(node.ins[i], dtype)?);
        }
        Ok(from.into_iter().map(|i| all[i]).collect())
    }

    /// With lanes, only moves that leave every element in its lane.
    fn moved_lanes(&mut self, node: &Node, n: usize, shape: &Extents) -> Lowered<Vec<Reg>> {
        let from = self.value(node.ins[0])?;
        let keeps_order = match &node.op {
            Op::Transpose(t) => t.perm.iter().filter(|&&i| from.shape()[i] != 1).is_sorted(),
            op => op.properties().aliases,
        };
        let fits = from.size() == count(shape) || from.size() == 1 && count(shape) == n;
        if keeps_order && fits { self.regs(node.ins[0]) } else { refuse("it moves elements between lanes") }
    }

    /// True where all that an index consists of is known.
    fn is_known(&self, idxs: &[Value]) -> Lowered<bool> {
        let values = idxs.iter().map(|&v| self.value(v)).collect::<Lowered<Vec<_>>>()?;
        Ok(values.iter().all(|val| val.known().is_some()))
    }

    /// The elements that an index names.
    pub(super) fn picked(&mut self, node: &Node, shape: &Extents) -> Lowered<Vec<Reg>> {
        let (x, idxs) = (node.ins[0], &node.ins[1..]);
        if let Val::Table(extents, table) = self.value(x)? {
            if table.within {
                let number = self.regs(idxs[0])?[0];
                return Ok(vec![self.element(&table, number)]);
            }
            self.row_axes[node.outs[0].0 as usize] = self.row_axis_by_index(node)?;
            let shape = &self.shape(node.outs[0])?;
            let (places, named) = self.places(&node.op, &extents, idxs)?;
            if named != *shape {
                return refuse("an extent that depends on values");
            }
            return Ok(places.into_iter().map(|place| self.element(&table, place)).collect());
        }
        if !self.layout().by_element() || self.is_known(idxs)? {
            return self.moved(node, shape);
        }
        if let Layout::Rows(_) = self.layout() {
            return self.picked_rows(node);
        }
        let picks = self.picks(&node.op, x, idxs)?;
        if picks.shape != *shape {
            return refuse("an extent that depends on values");
        }
        let regs = self.regs(x)?;
        let mut out = vec![];
        for (k, &spot) in picks.spots.iter().enumerate() {
            let choices: Vec<Reg> = picks.places.iter().map(|places| regs[places[k]]).collect();
            out.push(self.chosen(spot, 0, &choices));
        }
        Ok(out)
    }

    /// The numbers of the elements that the index of a write names, and their extents.
    pub(super) fn places_written(&mut self, op: &Op, extents: &Extents, idxs: &[Value]) -> Lowered<(Vec<Reg>, Extents)> {
        self.places(&read_by(op)?, extents, idxs)
    }

    /// The numbers of the elements that an index names, of an op that reads by it, and their extents: each is a product of the index with how
    /// far apart the places of its axes lie.
    fn places(&mut self, op: &Op, extents: &Extents, idxs: &[Value]) -> Lowered<(Vec<Reg>, Extents)> {
        let (names, free) = self.named_by(op, idxs)?;
        let (first, shape) = named(op, extents, &at_places(&names, &free, &|_| 0))?;
        let mut places: Vec<Reg> = first.iter().map(|&at| self.builder.integer(DType::I64, at as i64)).collect();
        for of in free {
            let (input, axis) = (of.input, of.axis);
            let inside = self.inside(idxs[input], &of, extents[axis])?;
            let of = spot_of(op, extents, names[input].shape(), &shape)?;
            let apart = self.builder.integer(DType::I64, extents[axis + 1..].iter().product::<usize>() as i64);
            for (place, at) in places.iter_mut().zip(of) {
                let far = self.builder.bin(Bin::Mul, inside[at], apart);
                *place = self.builder.bin(Bin::Add, *place, far);
            }
        }
        Ok((places, shape))
    }

    /// The integers of an index, and which of them the step computes: input and axis.
    pub(super) fn named_by(&mut self, op: &Op, idxs: &[Value]) -> Lowered<(Vec<Val>, Vec<Named>)> {
        let names = idxs.iter().map(|&v| self.value(v)).collect::<Lowered<Vec<_>>>()?;
        let slices = dynamic_slice(op).map_or(&[][..], |op| &op.slices);
        let bound = |input: usize| dynamic_slice(op).is_some_and(|op| op.bound(input).is_some());
        let known: Vec<bool> = names.iter().map(|n| n.known().is_some()).collect();
        let settled: Vec<bool> = known.iter().enumerate().map(|(input, &known)| known || bound(input)).collect();
        let Some(axes) = selector(op).and_then(|s| s.integers(&settled)) else {
            return refuse("bounds of a slice that depend on the step");
        };
        let at = axes.into_iter().filter(|&(input, _)| !known[input]).map(|(input, axis)| Named { input, axis, slice: None });
        let slices = slices.iter().map(|s| Named { input: s.input, axis: s.axis, slice: Some(s.len) });
        Ok((names, at.chain(slices).collect()))
    }

    /// `choices[spot − first]`, found by halves.
    pub(super) fn chosen(&mut self, spot: Reg, first: usize, choices: &[Reg]) -> Reg {
        if let [one] = choices {
            return *one;
        }
        let (low, high) = choices.split_at(choices.len() / 2);
        let middle = first + low.len();
        let number = self.builder.integer(DType::I64, middle as i64);
        let below = self.builder.cmp(Cmp::Lt, spot, number);
        let (low, high) = (self.chosen(spot, first, low), self.chosen(spot, middle, high));
        self.builder.select(below, low, high)
    }

    /// The array with the elements that an index names set or added to.
    pub(super) fn written(&mut self, mode: Write, node: &Node, shape: &Extents) -> Lowered<Vec<Reg>> {
        let ([x, y], idxs) = ([node.ins[0], node.ins[1]], &node.ins[2..]);
        self.elements_alone()?;
        let known = self.is_known(idxs)?;
        if known && mode == Write::Set {
            return self.moved(node, shape);
        }
        if let Layout::Rows(_) = self.layout() {
            return self.written_rows(mode, &read_by(&node.op)?, node);
        }
        let dtype = self.graph().ty(node.outs[0]).dtype;
        let picks = self.picks(&read_by(&node.op)?, x, idxs)?;
        let (mut out, new) = (self.regs(x)?, self.regs_of(y, dtype)?);
        let from = Extents::from_slice(self.value(y)?.shape());
        if from.len() > picks.shape.len() {
            return refuse("more axes than there are to write to");
        }
        for (k, at) in broadcast_positions(&from, &picks.shape).into_iter().enumerate() {
            for (number, places) in picks.places.iter().enumerate() {
                let (to, number) = (places[k], self.builder.integer(DType::I64, number as i64));
                let here = self.builder.cmp(Cmp::Eq, picks.spots[k], number);
                let value = if mode == Write::Set { new[at] } else { self.elem(ElemOp::Add, dtype, &[out[to], new[at]])? };
                out[to] = self.builder.select(here, value, out[to]);
            }
        }
        Ok(out)
    }

    /// What an index names, of an op that reads by it.
    fn picks(&mut self, op: &Op, x: Value, idxs: &[Value]) -> Lowered<Picks> {
        let extents = Extents::from_slice(self.value(x)?.shape());
        // What the step computes is looked at, place by place; the rest is known.
        let (names, free) = self.named_by(op, idxs)?;
        let sizes: Vec<usize> = free.iter().map(|of| of.places(extents[of.axis])).collect();
        if sizes.contains(&0) {
            return refuse("an index of an axis without elements");
        }
        let (mut places, mut shape) = (vec![], Extents::new());
        for number in 0..count(&sizes).min(LOOKED_AT + 1) {
            let at = |k: usize| (number / count(&sizes[k + 1..]) % sizes[k]) as i64;
            let named = named(op, &extents, &at_places(&names, &free, &at))?;
            shape = named.1;
            if named.0.len() * count(&sizes) > LOOKED_AT {
                return refuse(format!("an index that depends on the step, of {} places", count(&sizes)));
            }
            places.push(named.0);
        }
        let spots = self.spots(op, &extents, &free, idxs, &shape)?;
        Ok(Picks { spots, places, shape })
    }

    /// Per element that is named the number of its place; that the index lies within the array must hold.
    fn spots(&mut self, op: &Op, extents: &Extents, free: &[Named], idxs: &[Value], shape: &Extents) -> Lowered<Vec<Reg>> {
        let zero = self.builder.integer(DType::I64, 0);
        let mut spots = vec![zero; count(shape)];
        for named in free {
            let (idx, extent) = (idxs[named.input], extents[named.axis]);
            let inside = self.inside(idx, named, extent)?;
            let of = spot_of(op, extents, self.value(idx)?.shape(), shape)?;
            let size = self.builder.integer(DType::I64, named.places(extent) as i64);
            for (spot, at) in spots.iter_mut().zip(of) {
                let scaled = self.builder.bin(Bin::Mul, *spot, size);
                *spot = self.builder.bin(Bin::Add, scaled, inside[at]);
            }
        }
        Ok(spots)
    }

    /// The integers of an index of an axis of such an extent, counted from its beginning.
    pub(super) fn inside(&mut self, idx: Value, named: &Named, extent: usize) -> Lowered<Vec<Reg>> {
        // Slices that begin in front of the array are the law's.
        let signed = self.graph().ty(idx).dtype.is_signed_int() && named.slice.is_none();
        let places = self.builder.integer(DType::I64, named.places(extent) as i64);
        let (zero, extent) = (self.builder.integer(DType::I64, 0), self.builder.integer(DType::I64, extent as i64));
        let mut out = vec![];
        for i in self.regs_of(idx, DType::I64)? {
            let negative = self.builder.cmp(Cmp::Lt, i, zero);
            let from_end = self.builder.bin(Bin::Add, i, extent);
            let at = if signed { self.builder.select(negative, from_end, i) } else { i };
            let (low, high) = (self.builder.cmp(Cmp::Le, zero, at), self.builder.cmp(Cmp::Lt, at, places));
            let holds = self.builder.bin(Bin::And, low, high);
            self.require(holds)?;
            out.push(at);
        }
        Ok(out)
    }
}

/// The integers of an index with those that the step computes being such numbers.
pub(super) fn at_places(names: &[Val], free: &[Named], at: &dyn Fn(usize) -> i64) -> Vec<Array> {
    let given = |(input, val): (usize, &Val)| {
        let begins = |of: &Named| of.input == input || of.slice.is_some() && of.input + 1 == input;
        match free.iter().position(begins) {
            Some(k) if free[k].input == input => Array::full(DType::I64, val.shape(), at(k) as f64),
            Some(k) => Array::scalar(at(k) + free[k].slice.unwrap_or(0) as i64),
            None => val.known().cloned().unwrap_or_else(|| Array::scalar(0i64)),
        }
    };
    names.iter().enumerate().map(given).collect()
}

fn selector(op: &Op) -> Option<Selector> {
    dynamic_slice(op).map_or_else(|| Selector::of(op), |op| Selector::of(&op.index.clone().into()))
}

/// The op that reads what another writes.
fn read_by(op: &Op) -> Lowered<Op> {
    match op {
        Op::IndexWrite(write) => Ok(Index { pattern: write.pattern.clone() }.into()),
        Op::GatherWrite(write) => Ok(Gather { axes: write.axes.clone() }.into()),
        _ => refuse("it does not write by an index"),
    }
}

/// Positions in an array of these extents of what an index names, in order, and their extents.
pub(super) fn named(op: &Op, extents: &Extents, index: &[Array]) -> Lowered<(Vec<usize>, Extents)> {
    let numbers = Array::new(extents, (0..count(extents) as i64).collect::<Vec<_>>());
    let mut args: Vec<Array> = [numbers].into_iter().chain(index.iter().cloned()).collect();
    let Some(out) = op.evaluate(&mut EvalCx::new(), &mut args).ok().and_then(|outs| outs.into_iter().next()) else {
        return refuse("an index outside the array");
    };
    Ok((out.as_slice::<i64>().iter().map(|&at| at as usize).collect(), Extents::from_slice(out.shape())))
}

/// Per element that is named, which integer of an index of this shape names it.
pub(super) fn spot_of(op: &Op, extents: &Extents, idx: &[usize], shape: &Extents) -> Lowered<Vec<usize>> {
    let Op::Gather(gather) = op else { return Ok(vec![0; count(shape)]) };
    let (before, spot) = gather.layout(extents.len(), shape);
    if idx.len() > spot.len() {
        return refuse("an index whose extents do not fit");
    }
    let after = count(&shape[before + spot.len()..]);
    let at = broadcast_positions(idx, spot);
    Ok((0..count(shape)).map(|e| at[e / after % count(spot)]).collect())
}
