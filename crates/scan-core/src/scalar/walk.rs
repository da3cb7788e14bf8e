//! Applies a function to the elements of arrays that broadcast together.

use crate::base::Result;
use crate::types::shape::{Extents, broadcast_shapes, count, strides};
use crate::types::{Array, Element, memory};
use smallvec::SmallVec;

/// Operands with their common shape.
pub struct Operands<'a> {
    ins: &'a [Array],
    shape: Extents,
    count: usize,
}

impl<'a> Operands<'a> {
    /// Operands whose shapes broadcast together.
    ///
    /// # Errors
    /// `E0201` where they do not.
    pub fn new(ins: &'a [Array]) -> Result<Operands<'a>> {
        let first = ins[0].shape();
        let shape = if ins.iter().all(|a| a.shape() == first) {
            SmallVec::from_slice(first)
        } else {
            broadcast_shapes(&ins.iter().map(Array::shape).collect::<SmallVec<[&[usize]; 4]>>())?
        };
        let count = count(&shape);
        Ok(Operands { ins, shape, count })
    }
    /// `f` of the elements of one operand.
    pub fn map1<T: Element, R: Element>(&self, f: impl Fn(T) -> R) -> Array {
        self.array(memory::collect(self.ins[0].as_slice::<T>().iter().map(|&x| f(x))))
    }
    /// `f` of the elements of two operands.
    pub fn map2<T: Element, R: Element>(&self, f: impl Fn(T, T) -> R) -> Array {
        let (a, b): (&[T], &[T]) = (self.ins[0].as_slice(), self.ins[1].as_slice());
        let n = self.count;
        self.array(match (a, b) {
            _ if a.len() == n && b.len() == n => memory::collect(a.iter().zip(b).map(|(&x, &y)| f(x, y))),
            (_, &[y]) if a.len() == n => memory::collect(a.iter().map(|&x| f(x, y))),
            (&[x], _) if b.len() == n => memory::collect(b.iter().map(|&y| f(x, y))),
            _ => self.indexed(&|i| f(a[i[0]], b[i[1]])),
        })
    }
    /// `f` of the elements of three operands.
    pub fn map3<T: Element, R: Element>(&self, f: impl Fn(T, T, T) -> R) -> Array {
        let [a, b, c]: [&[T]; 3] = [0, 1, 2].map(|j| self.ins[j].as_slice());
        if [a, b, c].iter().all(|x| x.len() == self.count) {
            return self.array(memory::collect(a.iter().zip(b).zip(c).map(|((&x, &y), &z)| f(x, y, z))));
        }
        self.array(self.indexed(&|i| f(a[i[0]], b[i[1]], c[i[2]])))
    }
    /// Where the first operand (bool) holds the second, else the third.
    pub fn choose<T: Element>(&self) -> Array {
        let cond: &[bool] = self.ins[0].as_slice();
        let (a, b): (&[T], &[T]) = (self.ins[1].as_slice(), self.ins[2].as_slice());
        self.array(self.indexed(&|i| if cond[i[0]] { a[i[1]] } else { b[i[2]] }))
    }

    fn array<R: Element>(&self, data: Vec<R>) -> Array {
        Array::new(&self.shape, data)
    }
    /// `f` of the element positions of up to three operands, in row-major order of the result. Not generic over `f`:
    /// one copy per element type serves all rows.
    fn indexed<R: Element>(&self, f: &dyn Fn([usize; 3]) -> R) -> Vec<R> {
        let mut out = memory::room(self.count);
        let Some((&width, outer)) = self.shape.split_last().filter(|_| self.count > 1) else {
            out.extend((0..self.count).map(|_| f([0; 3])));
            return out;
        };
        let mut steps: [Extents; 3] = Default::default();
        self.ins.iter().zip(&mut steps).for_each(|(x, s)| *s = broadcast_strides(x.shape(), self.shape.len()));
        let inner = steps.each_ref().map(|s| s.get(outer.len()).copied().unwrap_or(0));
        let mut at: Extents = SmallVec::from_elem(0, outer.len());
        let mut base = [0; 3];
        while out.len() < self.count {
            out.extend((0..width).map(|k| f([base[0] + k * inner[0], base[1] + k * inner[1], base[2] + k * inner[2]])));
            advance(&mut at, outer, &mut base, &steps[..self.ins.len()]);
        }
        out
    }
}

/// Strides of a shape seen with `rank` axes; 0 where it broadcasts.
fn broadcast_strides(shape: &[usize], rank: usize) -> Extents {
    let mut out: Extents = SmallVec::from_elem(0, rank);
    let own = strides(shape);
    for i in 0..shape.len() {
        out[rank - shape.len() + i] = if shape[i] == 1 { 0 } else { own[i] };
    }
    out
}

/// The next outer index, with the positions that it stands for.
fn advance(at: &mut [usize], extents: &[usize], base: &mut [usize; 3], steps: &[Extents]) {
    for axis in (0..at.len()).rev() {
        at[axis] += 1;
        let wrapped = at[axis] == extents[axis];
        for (b, step) in base.iter_mut().zip(steps) {
            *b = if wrapped { *b - (extents[axis] - 1) * step[axis] } else { *b + step[axis] };
        }
        if !wrapped {
            return;
        }
        at[axis] = 0;
    }
}
