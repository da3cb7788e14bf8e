//! Arrays of the reference: a shape and numbers. Integers and truth values are kept as f64, which holds the small ones exactly.

use crate::types::{Array, DType};

/// What the numbers are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// float64.
    Float,
    /// int64.
    Int,
    /// bool.
    Bool,
}

impl Kind {
    /// The dtype that stands for it in expressions.
    pub fn dtype(self) -> DType {
        match self {
            Kind::Float => DType::F64,
            Kind::Int => DType::I64,
            Kind::Bool => DType::Bool,
        }
    }
}

/// An array in row-major order.
#[derive(Clone, PartialEq, Debug)]
pub struct Nd {
    /// What the numbers are.
    pub kind: Kind,
    /// Extents.
    pub shape: Vec<usize>,
    /// The numbers.
    pub data: Vec<f64>,
}

impl Nd {
    /// An array from its numbers.
    pub fn new(kind: Kind, shape: &[usize], data: Vec<f64>) -> Nd {
        assert_eq!(shape.iter().product::<usize>(), data.len(), "{shape:?}");
        Nd { kind, shape: shape.to_vec(), data }
    }
    /// A rank-0 array.
    pub fn scalar(kind: Kind, x: f64) -> Nd {
        Nd::new(kind, &[], vec![x])
    }
    /// An array by a formula of its indices.
    pub fn by(kind: Kind, shape: &[usize], mut f: impl FnMut(&[usize]) -> f64) -> Nd {
        let n = shape.iter().product();
        let mut at = vec![0; shape.len()];
        let mut data = Vec::with_capacity(n);
        for _ in 0..n {
            data.push(f(&at));
            for axis in (0..shape.len()).rev() {
                at[axis] += 1;
                if at[axis] < shape[axis] {
                    break;
                }
                at[axis] = 0;
            }
        }
        Nd::new(kind, shape, data)
    }
    /// The number at an index.
    pub fn at(&self, idx: &[usize]) -> f64 {
        assert_eq!(idx.len(), self.shape.len());
        self.data[idx.iter().zip(&self.shape).fold(0, |k, (i, n)| k * n + i)]
    }
    /// The number that broadcasting puts at an index.
    pub fn wide_at(&self, idx: &[usize]) -> f64 {
        let tail = &idx[idx.len() - self.shape.len()..];
        let own: Vec<usize> = tail.iter().zip(&self.shape).map(|(&i, &n)| if n == 1 { 0 } else { i }).collect();
        self.at(&own)
    }
    /// The one number of an array of one.
    pub fn item(&self) -> f64 {
        assert_eq!(self.data.len(), 1);
        self.data[0]
    }
    /// Row `i` along the first axis.
    pub fn row(&self, i: usize) -> Nd {
        assert!(i < self.shape[0], "row {i} of {:?}", self.shape);
        let n: usize = self.shape[1..].iter().product();
        Nd::new(self.kind, &self.shape[1..], self.data[i * n..(i + 1) * n].to_vec())
    }
    /// Rows along a new first axis.
    pub fn stack(kind: Kind, row_shape: &[usize], rows: &[Nd]) -> Nd {
        let shape: Vec<usize> = std::iter::once(rows.len()).chain(row_shape.iter().copied()).collect();
        rows.iter().for_each(|r| assert_eq!(r.shape, row_shape));
        Nd::new(kind, &shape, rows.iter().flat_map(|r| r.data.iter().copied()).collect())
    }
    /// The same numbers under another shape.
    pub fn reshaped(&self, shape: &[usize]) -> Nd {
        Nd::new(self.kind, shape, self.data.clone())
    }
    /// Every number replaced.
    pub fn map(&self, kind: Kind, f: impl Fn(f64) -> f64) -> Nd {
        Nd::new(kind, &self.shape, self.data.iter().map(|&x| f(x)).collect())
    }
    /// Two arrays, broadcast and combined.
    pub fn zip(&self, other: &Nd, kind: Kind, f: impl Fn(f64, f64) -> f64) -> Nd {
        let shape = broadcast(&self.shape, &other.shape);
        Nd::by(kind, &shape, |at| f(self.wide_at(at), other.wide_at(at)))
    }
    /// As an array of expressions' world.
    pub fn to_array(&self) -> Array {
        Array::new(&self.shape, self.data.clone()).cast(self.kind.dtype())
    }
    /// From an array of expressions' world.
    pub fn of(array: &Array) -> Nd {
        let kind = match array.dtype() {
            DType::Bool => Kind::Bool,
            d if d.is_float() => Kind::Float,
            _ => Kind::Int,
        };
        Nd::new(kind, array.shape(), array.to_f64_vec())
    }
}

/// NumPy's broadcasting of shapes that fit.
pub fn broadcast(a: &[usize], b: &[usize]) -> Vec<usize> {
    let rank = a.len().max(b.len());
    let extent = |s: &[usize], i: usize| if i + s.len() < rank { 1 } else { s[i + s.len() - rank] };
    (0..rank).map(|i| if extent(a, i) == 1 { extent(b, i) } else { extent(a, i) }).collect()
}
