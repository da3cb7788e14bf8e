//! Extents of arrays, types of values, and NumPy's broadcasting of both.

use super::{DType, Dim};
use crate::bail;
use crate::base::Result;
use smallvec::SmallVec;

/// The largest number of axes.
pub const MAX_RANK: usize = 32;

/// Extents of an array, outermost axis first.
pub type Extents = SmallVec<[usize; 4]>;
/// Extents of a type. Graphs hold many: those of vectors and matrices have room inside.
pub type Dims = SmallVec<[Dim; 2]>;

/// dtype and dims of a value.
///
/// ```
/// use scan_core::prelude::*;
///
/// let ty = Type::known(DType::F32, &[2, 3]);
/// assert_eq!((ty.rank(), ty.to_string().as_str()), (2, "float32[2, 3]"));
/// assert!(Type::unknown(DType::F32, 2).admits(DType::F32, &[5, 1]));
/// ```
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Type {
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first; the rank is their number.
    pub dims: Dims,
}

/// Nearly always of one or two extents, which a loop copies in less time than `SmallVec` does.
impl Clone for Type {
    fn clone(&self) -> Type {
        let mut dims = Dims::with_capacity(self.dims.len());
        for dim in &self.dims {
            dims.push(dim.clone());
        }
        Type { dtype: self.dtype, dims }
    }
}

impl Type {
    /// A type from its parts.
    pub fn new(dtype: DType, dims: impl IntoIterator<Item = Dim>) -> Type {
        Type { dtype, dims: dims.into_iter().collect() }
    }
    /// A rank-0 type.
    pub fn scalar(dtype: DType) -> Type {
        Type { dtype, dims: Dims::new() }
    }
    /// A type of known extents.
    pub fn known(dtype: DType, shape: &[usize]) -> Type {
        Type::new(dtype, shape.iter().map(|&n| Dim::known(n)))
    }
    /// A type of `rank` unknown extents.
    pub fn unknown(dtype: DType, rank: usize) -> Type {
        Type::new(dtype, (0..rank).map(|_| Dim::fresh()))
    }
    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }
    /// The same dims with another dtype.
    pub fn with_dtype(&self, dtype: DType) -> Type {
        Type { dtype, dims: self.dims.clone() }
    }
    /// The type of one row: without the first axis.
    pub fn row(&self) -> Type {
        Type { dtype: self.dtype, dims: self.dims[1..].iter().cloned().collect() }
    }
    /// The type of `n` such rows.
    pub fn rows(&self, n: Dim) -> Type {
        Type { dtype: self.dtype, dims: std::iter::once(n).chain(self.dims.iter().cloned()).collect() }
    }
    /// True where an array of this dtype and shape can have this type.
    pub fn admits(&self, dtype: DType, shape: &[usize]) -> bool {
        self.dtype == dtype && self.dims.len() == shape.len() && self.dims.iter().zip(shape).all(|(d, &n)| d.value().is_none_or(|k| k == n))
    }
}

/// `float64[?, 3]`; unknown extents print as `?`.
impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.dtype)?;
        if self.dims.is_empty() {
            return Ok(());
        }
        let dims: Vec<String> = self.dims.iter().map(Dim::to_string).collect();
        write!(f, "[{}]", dims.join(", "))
    }
}

/// Number of elements of an array of this shape; where there is no such number, the largest, which no memory holds.
#[inline]
pub fn count(shape: &[usize]) -> usize {
    if shape.contains(&0) { 0 } else { shape.iter().fold(1, |product, &n| product.saturating_mul(n)) }
}

/// Row-major strides in elements.
pub fn strides(shape: &[usize]) -> Extents {
    let mut out: Extents = SmallVec::from_elem(1, shape.len());
    for i in (0..shape.len().saturating_sub(1)).rev() {
        out[i] = out[i + 1].saturating_mul(shape[i + 1]);
    }
    out
}

/// The common shape of arrays that meet in an elementwise operation.
///
/// # Errors
/// `E0201` where two extents differ and neither is 1.
pub fn broadcast_shapes(shapes: &[&[usize]]) -> Result<Extents> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut out: Extents = SmallVec::from_elem(1, rank);
    for shape in shapes {
        for (o, &n) in out[rank - shape.len()..].iter_mut().zip(*shape) {
            match (*o, n) {
                (a, b) if a == b || b == 1 => {}
                (1, b) => *o = b,
                _ => bail!(Shape, "E0201", "shapes {} do not broadcast together", list(shapes)),
            }
        }
    }
    Ok(out)
}

/// The common dims of types that meet in an elementwise operation. Where two different unknown
/// extents meet, the result is a fresh unknown: either may be 1 at run time.
///
/// # Errors
/// `E0201` where two known extents differ and neither is 1.
pub fn broadcast_dims(types: &[&Type]) -> Result<Dims> {
    let rank = types.iter().map(|t| t.rank()).max().unwrap_or(0);
    let mut out: Dims = (0..rank).map(|_| Dim::known(1)).collect();
    for ty in types {
        for (o, d) in out[rank - ty.rank()..].iter_mut().zip(&ty.dims) {
            *o = match meet(o, d) {
                Some(dim) => dim,
                None => bail!(
                    Shape,
                    "E0201",
                    "shapes {} do not broadcast together",
                    types.iter().map(|t| t.to_string()).collect::<Vec<_>>().join(" and ")
                ),
            };
        }
    }
    Ok(out)
}

/// The extent that results where two meet, or `None` where they cannot.
fn meet(a: &Dim, b: &Dim) -> Option<Dim> {
    match (a.value(), b.value()) {
        _ if a == b => Some(a.clone()),
        (Some(1), _) => Some(b.clone()),
        (_, Some(1)) => Some(a.clone()),
        (Some(_), Some(_)) => None,
        (Some(_), None) => Some(a.clone()),
        (None, Some(_)) => Some(b.clone()),
        (None, None) => Some(Dim::fresh()),
    }
}

/// `(2, 3) and (4,)`, for messages.
pub fn list(shapes: &[&[usize]]) -> String {
    shapes.iter().map(|s| tuple(s)).collect::<Vec<_>>().join(" and ")
}

/// A shape as Python prints it: `(2, 3)`, `(4,)`, `()`.
pub fn tuple(shape: &[usize]) -> String {
    let inner: Vec<String> = shape.iter().map(usize::to_string).collect();
    if inner.len() == 1 { format!("({},)", inner[0]) } else { format!("({})", inner.join(", ")) }
}

/// Element positions of a shape broadcast to `target`, in the row-major order of `target`.
pub fn broadcast_positions(shape: &[usize], target: &[usize]) -> Vec<usize> {
    let own = strides(shape);
    let new = target.len() - shape.len();
    let steps = strides(target);
    let at = |i: usize| {
        (0..shape.len()).filter(|&axis| shape[axis] != 1).map(|axis| i / steps[new + axis] % target[new + axis] * own[axis]).sum()
    };
    (0..count(target)).map(at).collect()
}
