//! A strided part of a row-major array: read out, written to.

use super::support::Number;
use crate::bail;
use crate::base::Result;
use crate::dispatch;
use crate::ir::op::Write;
use crate::types::shape::{Extents, count, strides, tuple};
use crate::types::{Array, memory};
use smallvec::SmallVec;
use std::borrow::Cow;

/// Elements at `offset + Σ iₖ · strideₖ` with `iₖ < lenₖ`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// Position of the first element.
    pub offset: usize,
    /// Length and stride per axis.
    pub axes: SmallVec<[(usize, isize); 4]>,
}

impl Region {
    /// Extents.
    pub fn shape(&self) -> Extents {
        self.axes.iter().map(|a| a.0).collect()
    }

    /// Calls `visit(position, length)` per run of consecutive elements, in row-major order of the region.
    pub fn runs(&self, mut visit: impl FnMut(usize, usize)) {
        if self.axes.iter().any(|a| a.0 == 0) {
            return;
        }
        let mut outer = self.axes.clone();
        let mut run = 1;
        while let Some(&(len, stride)) = outer.last() {
            if len != 1 && stride != run as isize {
                break;
            }
            run *= len;
            outer.pop();
        }
        let mut idx: Extents = SmallVec::from_elem(0, outer.len());
        let mut at = self.offset as isize;
        loop {
            visit(at as usize, run);
            if !advance(&mut idx, &outer, &mut at) {
                return;
            }
        }
    }

    /// The elements.
    pub fn read(&self, x: &Array) -> Array {
        let shape = self.shape();
        if count(&shape) > 0 && self.axes.iter().zip(strides(&shape)).all(|(a, s)| a.0 == 1 || a.1 == s as isize) {
            return x.part(self.offset, &shape);
        }
        dispatch!(x.dtype(), T => {
            let from = x.as_slice::<T>();
            let mut out: Vec<T> = memory::room(count(&shape));
            self.runs(|at, run| out.extend_from_slice(&from[at..at + run]));
            Array::new(&shape, out)
        })
    }
}

/// Moves a row-major odometer on; false after the last position.
#[inline]
fn advance(idx: &mut [usize], axes: &[(usize, isize)], at: &mut isize) -> bool {
    for k in (0..axes.len()).rev() {
        let (len, stride) = axes[k];
        idx[k] += 1;
        *at += stride;
        if idx[k] < len {
            return true;
        }
        *at -= stride * len as isize;
        idx[k] = 0;
    }
    false
}

/// Writes `from` over `to` or adds it.
#[inline]
pub fn write_run<T: Number>(to: &mut [T], from: &[T], mode: Write) {
    match mode {
        Write::Set => to.copy_from_slice(from),
        Write::Inc => to.iter_mut().zip(from).for_each(|(a, &b)| *a = a.plus(b)),
    }
}

/// Writes y, cast and broadcast, to a region of x.
///
/// # Errors
/// `E0201` where y does not broadcast to the region.
pub fn write_region(x: &mut Array, region: &Region, y: &Array, mode: Write) -> Result<()> {
    let y = y.cast(x.dtype());
    let y = spread(&y, &region.shape())?;
    dispatch!(x.dtype(), T => {
        let from = y.as_slice::<T>();
        let to = x.as_mut_slice::<T>();
        let mut done = 0;
        region.runs(|at, run| {
            write_run(&mut to[at..at + run], &from[done..done + run], mode);
            done += run;
        });
    });
    Ok(())
}

/// y broadcast to a shape.
///
/// # Errors
/// `E0201` where it does not fit.
pub fn spread<'a>(y: &'a Array, shape: &[usize]) -> Result<Cow<'a, Array>> {
    if y.shape() == shape {
        return Ok(Cow::Borrowed(y));
    }
    let missing = shape.len().checked_sub(y.rank());
    let fits = missing.is_some_and(|k| y.shape().iter().zip(&shape[k..]).all(|(&m, &n)| m == n || m == 1));
    let (Some(missing), true) = (missing, fits) else {
        bail!(Shape, "E0201", "shape {} cannot be written into a place of shape {}", tuple(y.shape()), tuple(shape));
    };
    let steps = strides(y.shape());
    let stride = |k: usize| match k.checked_sub(missing) {
        Some(i) if y.shape()[i] != 1 => steps[i] as isize,
        _ => 0,
    };
    let region = Region { offset: 0, axes: shape.iter().enumerate().map(|(k, &n)| (n, stride(k))).collect() };
    Ok(Cow::Owned(region.read(y)))
}
