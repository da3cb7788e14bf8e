//! Reads and writes by an index, on the memory of a loop.

use crate::backend::cpu::{Operand, array_at, integer_at, with_slices};
use crate::base::{Diagnostic, Result};
use crate::dispatch;
use crate::ir::op::Write;
use crate::lower::mixed::Place;
use crate::ops::select::{Number, Selected, Selector, spread, write_run};
use crate::types::shape::count;

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
