//! Reads and writes by an index, on the memory of a loop.

use crate::backend::cpu::{Operand, array_at, each_integer, integer_at, with_slices, zip_integers};
use crate::base::{Diagnostic, Result};
use crate::dispatch;
use crate::ir::op::Write;
use crate::ops::select::{Layout, Number, Selected, Selector, position, spread, write_run};
use crate::plan::list::Place;
use crate::types::DType;
use crate::types::shape::{broadcast_positions, count};
use smallvec::SmallVec;
use std::cell::Cell;

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

/// Evaluates an expression with `T` as unsigned integers of a size: whatever elements are, their bits are copied.
macro_rules! by_size {
    ($size:expr, $T:ident => $body:expr) => {
        match $size {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}

fn select(selector: &Selector, x: &Given, idxs: &[Given]) -> Result<Selected> {
    let integer = |k: usize| integer_at(&idxs[k].at, idxs[k].place.dtype);
    let array = |k: usize| array_at(&idxs[k].at, idxs[k].place.dtype, &idxs[k].place.shape);
    selector.select(&x.place.shape, &integer, &array)
}

/// Looks whether n integers name places of an axis of such an extent. Signs of how far each is from both ends are looked at: processors do that
/// for several at once.
///
/// # Errors
/// `E0202` where one does not.
pub fn within([axis, extent]: [usize; 2], index: &Operand, dtype: DType, n: usize) -> Result<()> {
    let (extent, mut signs) = (extent as i64, 0);
    each_integer(index, dtype, n, |_, i| signs |= i.wrapping_add(extent) | (extent - 1).wrapping_sub(i));
    if signs >= 0 {
        return Ok(());
    }
    let mut found = Ok(0);
    each_integer(index, dtype, n, |_, i| {
        if found.is_ok() {
            found = position(i, axis, extent as usize);
        }
    });
    found.map(drop)
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

/// Writes single elements to spots, or adds them to what is there, in order. Of spots that mostly repeat the one before, sums are handed on
/// in a register: from memory each waits for the one before to be written.
fn put_each<'a, T: Number>(x: &mut [T], each: impl Iterator<Item = (&'a usize, T)>, mode: Write, repeated: bool) {
    match mode {
        Write::Set => each.for_each(|(&at, y)| x[at] = y),
        Write::Inc if repeated => {
            let last = each.fold(None, |last: Option<(usize, T)>, (&at, y)| match last {
                Some((before, sum)) if before == at => Some((at, sum.plus(y))),
                last => {
                    last.into_iter().for_each(|(before, sum)| x[before] = sum);
                    Some((at, x[at].plus(y)))
                }
            });
            last.into_iter().for_each(|(at, sum)| x[at] = sum);
        }
        Write::Inc => each.for_each(|(&at, y)| x[at] = x[at].plus(y)),
    }
}

/// Copies rows of so many elements that begin at spots, to one row after the other. Short ones are copied as a whole: what compilers make of a loop
/// over their elements is a call for each row.
fn copy_rows<T: Copy>(layout: &Layout, spots: &[usize], from: &[T], to: &mut [T]) {
    match (layout.run, layout.begins()) {
        (1, Some(begins)) => {
            for (to, begin) in to.chunks_exact_mut(spots.len()).zip(begins) {
                let from = &from[*begin..];
                to.iter_mut().zip(spots).for_each(|(to, &at)| *to = from[at]);
            }
        }
        (1, _) => copy_short::<T, 1>(layout, spots, from, to),
        (2, _) => copy_short::<T, 2>(layout, spots, from, to),
        (3, _) => copy_short::<T, 3>(layout, spots, from, to),
        (4, _) => copy_short::<T, 4>(layout, spots, from, to),
        (5, _) => copy_short::<T, 5>(layout, spots, from, to),
        (6, _) => copy_short::<T, 6>(layout, spots, from, to),
        (8, _) => copy_short::<T, 8>(layout, spots, from, to),
        (run, _) => {
            let mut to = to.chunks_exact_mut(run);
            layout.runs(spots, |at| to.next().into_iter().for_each(|to| to.copy_from_slice(&from[at..at + run])));
        }
    }
}

fn copy_short<T: Copy, const N: usize>(layout: &Layout, spots: &[usize], from: &[T], to: &mut [T]) {
    let mut to = to.as_chunks_mut::<N>().0.iter_mut();
    layout.runs(spots, |at| {
        if let (Some(to), Some(from)) = (to.next(), from[at..].first_chunk::<N>()) {
            *to = *from;
        }
    });
}

/// A read or write by index arrays of extents that are known: what follows from these is found once.
pub struct ByArrays {
    layout: Layout,
    /// Per index array: its dtype and number of elements.
    idxs: SmallVec<[(DType, usize); 2]>,
    /// Per index array: which of its elements belongs to each spot.
    spread: SmallVec<[Spread; 2]>,
}

/// Which element of an index array belongs to a spot, by the number of the spot.
enum Spread {
    /// That one, or the only one there is.
    Own,
    /// Those in turn: the array is repeated along the first axes.
    Turns,
    /// Each for so many spots that follow each other: the array is repeated along the last axes.
    Runs(usize),
    /// These.
    Table(Vec<usize>),
}

impl Spread {
    fn of(shape: &[usize], common: &[usize]) -> Spread {
        let (m, n) = (count(shape), count(common));
        if m == 1 || m == n {
            return Spread::Own;
        }
        let of = broadcast_positions(shape, common);
        match of.iter().enumerate().all(|(spot, &i)| i == spot % m) {
            true => Spread::Turns,
            false if of.iter().enumerate().all(|(spot, &i)| i == spot / (n / m)) => Spread::Runs(n / m),
            false => Spread::Table(of),
        }
    }
    /// Moves each spot as far as its element says.
    fn add(&self, spots: &mut [usize], far: &[usize]) {
        match self {
            Spread::Own => unreachable!("each spot has its own"),
            Spread::Turns => spots.chunks_exact_mut(far.len()).for_each(|row| row.iter_mut().zip(far).for_each(|(spot, far)| *spot += far)),
            Spread::Runs(n) => spots.chunks_exact_mut(*n).zip(far).for_each(|(run, far)| run.iter_mut().for_each(|spot| *spot += far)),
            Spread::Table(of) => spots.iter_mut().zip(of).for_each(|(spot, &i)| *spot += far[i]),
        }
    }
}

/// The spots that index arrays name.
pub struct Named {
    spots: Vec<usize>,
    /// True where most are the one before.
    repeated: bool,
}

/// Of so many spots at most those of index arrays that are the same in all steps are kept from one step to the next.
const KEPT: usize = 1 << 20;

thread_local! {
    /// Spots of the last read or write in this thread, and how far elements of an index array move them: memory to be used again.
    static SPOTS: Cell<[Vec<usize>; 2]> = const { Cell::new([vec![], vec![]]) };
}

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
        let spread = idxs.iter().map(|p| Spread::of(&p.shape, &layout.common)).collect();
        let idxs = idxs.iter().map(|p| (p.dtype, count(&p.shape))).collect();
        Some(ByArrays { layout, idxs, spread })
    }
    /// True where the spots may be kept that index arrays name.
    pub fn is_kept(&self) -> bool {
        count(&self.layout.common) <= KEPT
    }
    /// True where index array `k` has an element for each spot.
    pub fn has_all(&self, k: usize) -> bool {
        self.idxs[k].1 == count(&self.layout.common)
    }
    /// The spots that index arrays of these numbers name, for [`ByArrays::read_named`] and [`ByArrays::write_named`].
    ///
    /// # Errors
    /// `E0202` where an index lies outside its axis.
    pub fn named<'a>(&self, idxs: impl Iterator<Item = (usize, Operand<'a>)>) -> Result<Named> {
        let mut spots = vec![0; count(&self.layout.common)];
        self.add(idxs, &mut spots, &mut vec![])?;
        let repeated = spots.windows(2).filter(|pair| pair[0] == pair[1]).count();
        Ok(Named { repeated: 2 * repeated > spots.len(), spots })
    }
    /// What `of` makes of the spots that index arrays of these numbers name, counted from those that others name.
    fn with_spots<'a, R>(
        &self,
        from: Option<&Named>,
        idxs: impl Iterator<Item = (usize, Operand<'a>)>,
        of: impl FnOnce(&[usize]) -> R,
    ) -> Result<R> {
        let [mut spots, mut far] = SPOTS.take();
        spots.clear();
        match from {
            Some(named) => spots.extend_from_slice(&named.spots),
            None => spots.resize(count(&self.layout.common), 0),
        }
        let found = self.add(idxs, &mut spots, &mut far);
        let made = found.map(|()| of(&spots));
        SPOTS.set([spots, far]);
        made
    }
    /// Moves spots as far as index arrays of these numbers say.
    fn add<'a>(&self, idxs: impl Iterator<Item = (usize, Operand<'a>)>, spots: &mut [usize], far: &mut Vec<usize>) -> Result<()> {
        for (k, at) in idxs {
            let (dtype, n) = self.idxs[k];
            let (moved, mut inside) = (self.layout.moves(k), true);
            if n == spots.len() && self.is_plain(k, &at) {
                let (_, step) = self.layout.axis(k);
                zip_integers(&at, dtype, spots, |spot, index| *spot = spot.wrapping_add((index as usize).wrapping_mul(step)));
            } else if n == spots.len() {
                zip_integers(&at, dtype, spots, |spot, index| inside &= moved(spot, index));
            } else {
                far.clear();
                far.resize(n, 0);
                zip_integers(&at, dtype, far, |far, index| inside &= moved(far, index));
                match far[..] {
                    _ if !inside => {}
                    [far] => spots.iter_mut().for_each(|spot| *spot += far),
                    _ => self.spread[k].add(spots, far),
                }
            }
            if !inside {
                return within(self.layout.named(k), &at, dtype, n);
            }
        }
        Ok(())
    }
    /// True where no element of index array `k`, which lies here, counts from the end or lies outside its axis. The sign of each is looked at, and
    /// of how far it is from the last: processors do that for several at once.
    fn is_plain(&self, k: usize, index: &Operand) -> bool {
        let (last, mut signs) = (self.layout.axis(k).0 as i64 - 1, 0);
        let (dtype, n) = self.idxs[k];
        each_integer(index, dtype, n, |_, index| signs |= index | last.wrapping_sub(index));
        signs >= 0
    }
    /// Copies single elements that one index array selects, each counted from a spot, in one pass; false where an index counts from the end or lies
    /// outside, or this is not such a read.
    fn read_at_once(
        &self,
        size: usize,
        (x, n): (&Operand, usize),
        (k, index): (usize, Operand),
        from: impl Fn(usize) -> usize + Copy,
        out: &Operand,
    ) -> bool {
        let ((integers, m), all) = (self.idxs[k], count(&self.layout.shape));
        let apart = !out.overlaps(all * size, &index, m * integers.size());
        if self.layout.run > 1 || m != all || n == 0 || !self.layout.only_spots() || !apart || !self.is_plain(k, &index) {
            return false;
        }
        let (_, step) = self.layout.axis(k);
        by_size!(size, T => with_slices::<T, _>([x, x, out], [n, n, all], |x, _, to| {
            each_integer(&index, integers, m, move |i, index| to[i] = x[from(i) + index as usize * step]);
        }));
        true
    }
    /// Copies what the index selects of x, which has so many elements: by all index arrays, or by the one of a number beside what the others name.
    ///
    /// # Errors
    /// `E0202` where an index lies outside its axis.
    #[inline]
    pub fn read<'a>(
        &self,
        dtype: DType,
        (x, n): (&Operand, usize),
        (idxs, beside): (impl Iterator<Item = (usize, Operand<'a>)> + Clone, Option<&Named>),
        out: &Operand,
    ) -> Result<()> {
        let (size, first, named) = (dtype.size(), idxs.clone().next(), beside.map(|named| &named.spots[..]));
        let done = match (first, named) {
            (Some(index), Some(spots)) => self.read_at_once(size, (x, n), index, move |i| spots[i], out),
            (Some(index), None) if self.idxs.len() == 1 => self.read_at_once(size, (x, n), index, |_| 0, out),
            _ => false,
        };
        if done {
            return Ok(());
        }
        self.with_spots(beside, idxs, |spots| self.copied(dtype, (x, n), spots, out))
    }
    /// Copies what lies at spots of x, which has so many elements.
    pub fn read_named(&self, dtype: DType, x: (&Operand, usize), named: &Named, out: &Operand) {
        self.copied(dtype, x, &named.spots, out);
    }
    fn copied(&self, dtype: DType, (x, n): (&Operand, usize), spots: &[usize], out: &Operand) {
        let all = count(&self.layout.shape);
        by_size!(dtype.size(), T => with_slices::<T, _>([x, x, out], [n, n, all], |from, _, to| copy_rows(&self.layout, spots, from, to)));
    }
    /// Writes single elements where one index array says, each counted from a spot; false where nothing was written: an index counts from the end or lies
    /// outside, or this is not such a write.
    fn write_at_once(
        &self,
        (dtype, mode): (DType, Write),
        (x, n): (&Operand, usize),
        (y, given): (&Operand, usize),
        (k, index): (usize, Operand),
        from: impl Fn(usize) -> usize + Copy,
    ) -> bool {
        let (integers, m) = self.idxs[k];
        let apart = !x.overlaps(n * dtype.size(), &index, m * integers.size());
        let fits = self.layout.run == 1 && (given == m || given == 1) && n > 0;
        if !fits || !self.layout.only_spots() || !apart || !self.is_plain(k, &index) {
            return false;
        }
        let ((_, step), own) = (self.layout.axis(k), usize::from(given > 1));
        match mode {
            Write::Set => by_size!(dtype.size(), T => with_slices::<T, _>([y, y, x], [given, given, n], |y, _, x| {
                each_integer(&index, integers, m, move |i, index| x[from(i) + index as usize * step] = y[i * own]);
            })),
            Write::Inc => dispatch!(dtype, T => with_slices::<T, _>([y, y, x], [given, given, n], |y, _, x| {
                each_integer(&index, integers, m, move |i, index| {
                    let x = &mut x[from(i) + index as usize * step];
                    *x = x.plus(y[i * own]);
                });
            })),
        }
        true
    }
    /// Writes y over the elements of x that the index selects, or adds it to them; they have so many elements. The index is as for a read.
    ///
    /// # Errors
    /// `E0202` where an index lies outside its axis.
    pub fn write<'a>(
        &self,
        how: (DType, Write),
        x: (&Operand, usize),
        y: (&Operand, usize),
        (idxs, beside): (impl Iterator<Item = (usize, Operand<'a>)> + Clone, Option<&Named>),
    ) -> Result<()> {
        let done = match (idxs.clone().next(), beside.map(|named| &named.spots[..])) {
            (Some(index), Some(spots)) => self.write_at_once(how, x, y, index, move |i| spots[i]),
            (Some(index), None) if self.idxs.len() == 1 => self.write_at_once(how, x, y, index, |_| 0),
            _ => false,
        };
        if done {
            return Ok(());
        }
        self.with_spots(beside, idxs, |spots| self.put(how, x, y, (spots, false)))
    }
    /// Writes y at spots of x, or adds it to what is there; they have so many elements.
    pub fn write_named(&self, how: (DType, Write), x: (&Operand, usize), y: (&Operand, usize), named: &Named) {
        self.put(how, x, y, (&named.spots, named.repeated));
    }
    fn put(
        &self,
        (dtype, mode): (DType, Write),
        (x, n): (&Operand, usize),
        (y, given): (&Operand, usize),
        (spots, repeated): (&[usize], bool),
    ) {
        let run = self.layout.run;
        dispatch!(dtype, T => with_slices::<T, _>([y, y, x], [given, given, n], |y, _, x| match (y, self.layout.begins()) {
            (y, Some(begins)) if run == 1 && y.len() == spots.len() * begins.len() => {
                for (begin, y) in begins.iter().zip(y.chunks_exact(spots.len())) {
                    put_each(&mut x[*begin..], spots.iter().zip(y.iter().copied()), mode, repeated);
                }
            }
            (&[y], Some([0])) if run == 1 => put_each(x, spots.iter().zip(std::iter::repeat(y)), mode, repeated),
            (y, _) => {
                let mut rows = y.chunks_exact(run).cycle();
                self.layout.runs(spots, |at| rows.next().into_iter().for_each(|row| write_run(&mut x[at..at + run], row, mode)));
            }
        }));
    }
}
