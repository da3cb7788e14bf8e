//! Reads and writes by an index, on the memory of a loop.

use crate::backend::cpu::{Operand, array_at, each_integer, integer_at, with_slices};
use crate::base::{Diagnostic, Result};
use crate::dispatch;
use crate::ir::op::Write;
use crate::lower::mixed::Place;
use crate::ops::select::{Layout, Number, Selected, Selector, spread, write_run};
use crate::types::DType;
use crate::types::shape::{broadcast_positions, count};
use smallvec::SmallVec;

/// An operand and what lies there.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// Where.
    pub at: Operand<'a>,
    /// Extents and dtype.
    pub place: &'a Place,
}

impl Given<'_> {
    fn len(&self) -> usize {
        count(&self.place.shape)
    }
}

fn select(selector: &Selector, x: &Given, idxs: &[Given]) -> Result<Selected> {
    let integer = |k: usize| integer_at(&idxs[k].at, idxs[k].place.dtype);
    let array = |k: usize| array_at(&idxs[k].at, idxs[k].place.dtype, &idxs[k].place.shape);
    selector.select(&x.place.shape, &integer, &array)
}

/// Copies the elements of x that the index selects to `out`.
///
/// # Errors
/// `E0202` where an index lies outside its axis.
pub fn read(selector: &Selector, x: Given, idxs: &[Given], out: Given) -> Result<()> {
    let selected = select(selector, &x, idxs)?;
    if selected.shape() != out.place.shape {
        return Err(Diagnostic::internal(format!("an index selects {:?} for {:?}", selected.shape(), out.place.shape)));
    }
    dispatch!(out.place.dtype, T => with_slices::<T, _>([&x.at, &x.at, &out.at], [x.len(), x.len(), out.len()], |from, _, to| {
        let mut done = 0;
        selected.runs(|at, run| {
            to[done..done + run].copy_from_slice(&from[at..at + run]);
            done += run;
        });
    }));
    Ok(())
}

/// Writes y, cast and broadcast, over the elements of x that the index selects, or adds it to them.
///
/// # Errors
/// `E0202` where an index lies outside its axis, `E0201` where y does not broadcast to what is selected.
pub fn write(selector: &Selector, mode: Write, x: Given, y: Given, idxs: &[Given]) -> Result<()> {
    let dtype = x.place.dtype;
    let selected = select(selector, &x, idxs)?;
    let shape = selected.shape();
    if y.place.dtype == dtype && y.place.shape == shape {
        dispatch!(dtype, T => with_slices::<T, _>([&y.at, &y.at, &x.at], [y.len(), y.len(), x.len()], |y, _, x| put(x, y, &selected, mode)));
        return Ok(());
    }
    let y = array_at(&y.at, y.place.dtype, &y.place.shape).cast(dtype);
    let y = spread(&y, &shape)?;
    let none = Operand { stride: 0, ..x.at };
    dispatch!(dtype, T => with_slices::<T, _>([&none, &none, &x.at], [0, 0, x.len()], |_, _, x| put(x, y.as_slice::<T>(), &selected, mode)));
    Ok(())
}

fn put<T: Number>(x: &mut [T], y: &[T], selected: &Selected, mode: Write) {
    let mut done = 0;
    selected.runs(|at, run| {
        write_run(&mut x[at..at + run], &y[done..done + run], mode);
        done += run;
    });
}

/// Copies rows of which many are short: a call for each would cost more than to copy it.
fn copy_few<T: Copy>(to: &mut [T], from: &[T]) {
    const FEW: usize = 32;
    if to.len() > FEW {
        return to.copy_from_slice(from);
    }
    let ((to, last), (from, rest)) = (to.as_chunks_mut::<4>(), from.as_chunks::<4>());
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
}

/// A read or write by index arrays of extents that are known: what follows from these is found once.
pub struct ByArrays {
    layout: Layout,
    /// Per index array: its dtype and number of elements.
    idxs: SmallVec<[(DType, usize); 2]>,
    /// Per index array that is broadcast, of more than one element: which of them belongs to each spot.
    spread: SmallVec<[Option<Vec<usize>>; 2]>,
}

/// So many spots are found without an allocation.
type Spots = SmallVec<[usize; 64]>;

impl ByArrays {
    /// That of an array of this shape. `other` has the extents of what is read, or of what is written, then maybe of one element.
    pub fn new(selector: &Selector, x: &Place, other: &Place, idxs: &[Place]) -> Option<ByArrays> {
        let Selector::Advanced(axes) = selector else { return None };
        let layout = Layout::new(&x.shape, axes, &idxs.iter().map(|p| &p.shape[..]).collect::<Vec<_>>()).ok()?;
        let n = count(&layout.common);
        let fits = idxs.iter().all(|p| p.dtype.is_int());
        let alike = other.dtype == x.dtype && (other.shape == layout.shape || layout.run == 1 && count(&other.shape) == 1);
        if !(fits && alike && n > 0 && layout.run > 0) {
            return None;
        }
        let whole = |p: &Place| matches!(count(&p.shape), m if m == 1 || m == n);
        let spread = idxs.iter().map(|p| (!whole(p)).then(|| broadcast_positions(&p.shape, &layout.common))).collect();
        let idxs = idxs.iter().map(|p| (p.dtype, count(&p.shape))).collect();
        Some(ByArrays { layout, idxs, spread })
    }
    fn spots<'a>(&self, idxs: impl Iterator<Item = Operand<'a>>) -> Result<Spots> {
        let mut spots = Spots::from_elem(0, count(&self.layout.common));
        for (k, (at, &(dtype, n))) in idxs.zip(&self.idxs).enumerate() {
            let mut inside = true;
            match n {
                1 => each_integer(&at, dtype, n, |_, index| match self.layout.step(k, index) {
                    Some(step) => spots.iter_mut().for_each(|spot| *spot += step),
                    None => inside = false,
                }),
                _ if let Some(of) = &self.spread[k] => {
                    let (moved, mut far) = (self.layout.moves(k), Spots::from_elem(0, n));
                    each_integer(&at, dtype, n, |i, index| inside &= moved(&mut far[i], index));
                    spots.iter_mut().zip(of).for_each(|(spot, &i)| *spot = spot.wrapping_add(far[i]));
                }
                _ => {
                    let (moved, spots) = (self.layout.moves(k), &mut spots[..n]);
                    each_integer(&at, dtype, n, |i, index| inside &= moved(&mut spots[i], index));
                }
            }
            if !inside {
                let mut outside = None;
                each_integer(&at, dtype, n, |_, index| outside = outside.or(Some(index).filter(|&i| self.layout.step(k, i).is_none())));
                return Err(self.layout.outside(k, outside.unwrap_or_default()));
            }
        }
        Ok(spots)
    }
    /// True where no element of an index array counts from the end or lies outside its axis. The sign of each is looked at, and of how far it
    /// is from the last: processors do that for several at once.
    fn is_plain(&self, index: &Operand, (integers, m): (DType, usize)) -> bool {
        let last = self.layout.axis(0).0 as i64 - 1;
        let mut signs = 0;
        each_integer(index, integers, m, |_, index| signs |= index | last.wrapping_sub(index));
        signs >= 0
    }
    /// Copies what one index array selects, in one pass; false where an index lies outside its axis, or this is not such a read.
    fn read_at_once(&self, dtype: DType, (x, n): (&Operand, usize), index: Option<Operand>, out: &Operand) -> bool {
        let (&[(integers, m)], Some(index)) = (&self.idxs[..], index) else { return false };
        let (all, run) = (count(&self.layout.shape), self.layout.run);
        let apart = !out.overlaps(all * dtype.size(), &index, m * integers.size());
        if m * run != all || n < run || !self.layout.only_spots() || !apart {
            return false;
        }
        let moved = self.layout.moves(0);
        dispatch!(dtype, T => with_slices::<T, _>([x, x, out], [n, n, all], |from, _, to| {
            if run == 1 && self.is_plain(&index, (integers, m)) {
                let (_, step) = self.layout.axis(0);
                each_integer(&index, integers, m, |i, index| to[i] = from[index as usize * step]);
                return true;
            }
            // Within this closure, so that it is in a register whatever is written.
            let mut inside = true;
            if run == 1 {
                each_integer(&index, integers, m, |i, index| {
                    let mut spot = 0;
                    inside &= moved(&mut spot, index);
                    to[i] = from.get(spot).copied().unwrap_or_default();
                });
                return inside;
            }
            each_integer(&index, integers, m, |i, index| {
                let mut spot = 0;
                inside &= moved(&mut spot, index);
                let row = if inside { &from[spot..spot + run] } else { &from[..run] };
                copy_few(&mut to[i * run..(i + 1) * run], row);
            });
            inside
        }))
    }
    /// Copies what the index selects of x, which has so many elements.
    ///
    /// # Errors
    /// `E0202` where an index lies outside its axis.
    #[inline]
    pub fn read<'a>(
        &self,
        dtype: DType,
        (x, n): (&Operand, usize),
        idxs: impl Iterator<Item = Operand<'a>> + Clone,
        out: &Operand,
    ) -> Result<()> {
        if self.read_at_once(dtype, (x, n), idxs.clone().next(), out) {
            return Ok(());
        }
        let (spots, run) = (self.spots(idxs)?, self.layout.run);
        dispatch!(dtype, T => with_slices::<T, _>([x, x, out], [n, n, count(&self.layout.shape)], |from, _, to| {
            if run == 1 && self.layout.only_spots() {
                return to.iter_mut().zip(&spots).for_each(|(to, &at)| *to = from[at]);
            }
            if run == 1 {
                let mut to = to.iter_mut();
                return self.layout.runs(&spots, |at| to.next().into_iter().for_each(|to| *to = from[at]));
            }
            let mut to = to.chunks_exact_mut(run);
            self.layout.runs(&spots, |at| to.next().into_iter().for_each(|to| to.copy_from_slice(&from[at..at + run])));
        }));
        Ok(())
    }
    /// Writes where one index array says; false where nothing was written: an index lies outside its axis, or this is not such a write.
    fn write_at_once(
        &self,
        (dtype, mode): (DType, Write),
        (x, n): (&Operand, usize),
        (y, given): (&Operand, usize),
        index: Option<Operand>,
    ) -> bool {
        let (&[(integers, m)], Some(index)) = (&self.idxs[..], index) else { return false };
        let run = self.layout.run;
        let apart = !x.overlaps(n * dtype.size(), &index, m * integers.size());
        if m * run != given || n < run || !self.layout.only_spots() || !apart {
            return false;
        }
        let (moved, mut inside) = (self.layout.moves(0), true);
        each_integer(&index, integers, m, |_, index| inside &= moved(&mut 0, index));
        if !inside {
            return false;
        }
        dispatch!(dtype, T => with_slices::<T, _>([y, y, x], [given, given, n], |y, _, x| {
            each_integer(&index, integers, m, |i, index| {
                let mut spot = 0;
                moved(&mut spot, index);
                match run {
                    1 => x[spot] = if mode == Write::Set { y[i] } else { x[spot].plus(y[i]) },
                    _ => write_run(&mut x[spot..spot + run], &y[i * run..(i + 1) * run], mode),
                }
            });
        }));
        true
    }
    /// Writes y over the elements of x that the index selects, or adds it to them; they have so many elements.
    ///
    /// # Errors
    /// `E0202` where an index lies outside its axis.
    pub fn write<'a>(
        &self,
        (dtype, mode): (DType, Write),
        (x, n): (&Operand, usize),
        (y, given): (&Operand, usize),
        idxs: impl Iterator<Item = Operand<'a>> + Clone,
    ) -> Result<()> {
        if self.write_at_once((dtype, mode), (x, n), (y, given), idxs.clone().next()) {
            return Ok(());
        }
        let (spots, run) = (self.spots(idxs)?, self.layout.run);
        dispatch!(dtype, T => with_slices::<T, _>([y, y, x], [given, given, n], |y, _, x| {
            if run == 1 && given > 1 && self.layout.only_spots() {
                let each = spots.iter().zip(y);
                return match mode {
                    Write::Set => each.for_each(|(&at, &y)| x[at] = y),
                    Write::Inc => each.for_each(|(&at, &y)| x[at] = x[at].plus(y)),
                };
            }
            let mut rows = y.chunks_exact(run).cycle();
            self.layout.runs(&spots, |at| rows.next().into_iter().for_each(|row| write_run(&mut x[at..at + run], row, mode)));
        }));
        Ok(())
    }
}
