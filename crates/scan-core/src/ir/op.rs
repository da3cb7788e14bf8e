//! THE op table, and what an op must know. An elementwise op is a row of `scalar::rows`; any other
//! op is a row here, a file in `ops/` that implements [`OpDef`] for it, and a match arm in `ops::def`.

pub use super::batch::{Batched, Batching};
use super::graph::{Graph, Value};
use super::profile::Profile;
use super::scan::Scan;
use super::view::{View, Viewed};
use crate::base::clock::Instant;
use crate::base::{Diagnostic, Kind, Result};
use crate::scalar::ElemOp;
use crate::types::{Array, DType, Dim, Type, memory};
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Outputs of an op: nearly always one.
///
/// ```
/// use scan_core::prelude::*;
///
/// let outs: Outs<Var> = Var::apply(Op::DimOf(scan_core::ir::op::DimOf { axis: 0 }), &[vector("x")], Span::NONE)?;
/// assert_eq!(outs.len(), 1);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub type Outs<T> = SmallVec<[T; 2]>;

/// What is known of an input when types are inferred.
///
/// ```
/// use scan_core::prelude::*;
///
/// let arg = Var::int(3).arg();
/// assert_eq!((arg.ty, arg.value), (Type::scalar(DType::I64), Some(Array::scalar(3i64))));
/// ```
#[derive(Clone, Debug)]
pub struct Arg {
    /// Its type.
    pub ty: Type,
    /// Its value, where it is a constant.
    pub value: Option<Array>,
    /// Its value as an extent, where it is an integer scalar computed from extents.
    pub dim: Option<Dim>,
}

impl Arg {
    /// The extent that this integer scalar stands for; a fresh unknown where nothing is known.
    pub fn as_dim(&self) -> Dim {
        let number = self.value.as_ref().and_then(Array::item_i64).and_then(|n| usize::try_from(n).ok());
        number.map(Dim::known).or_else(|| self.dim.clone()).unwrap_or_else(Dim::fresh)
    }
}

/// A node as its gradient rule sees it.
///
/// ```
/// use scan_core::prelude::*;
///
/// struct Twice;
/// impl ExternOp for Twice {
///     fn key(&self) -> &str {
///         "twice"
///     }
///     fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
///         Ok(std::iter::once(ins[0].ty.clone()).collect())
///     }
///     fn eval(&self, ins: &[Array]) -> Result<Outs<Array>> {
///         let doubled: Vec<f64> = ins[0].to_f64_vec().iter().map(|x| 2.0 * x).collect();
///         Ok(std::iter::once(Array::new(ins[0].shape(), doubled)).collect())
///     }
///     fn vjp(&self, g: &mut Graph, _: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
///         let two = g.number(DType::F64, 2.0);
///         Ok(vec![cts[0].map(|ct| g.mul(ct, two))])
///     }
/// }
/// let (op, x) = (ExternRef(std::sync::Arc::new(Twice)), scalar("x"));
/// let y = Var::apply1(Op::Extern(op), &[x.clone()], Span::NONE)?;
/// let f = function(&[&x], &[&y, &y.grad(&x)]).compile()?;
/// assert_eq!(f.run(&[Array::scalar(4.0)])?, [Array::scalar(8.0), Array::scalar(2.0)]);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// Input values.
    pub ins: &'a [Value],
    /// Output values.
    pub outs: &'a [Value],
    /// Which inputs' cotangents somebody wants; all where it is empty. Others may be left out.
    pub wanted: &'a [bool],
}

impl Site<'_> {
    /// True where somebody wants the cotangent of an input.
    pub fn wants(&self, input: usize) -> bool {
        self.wanted.get(input).is_none_or(|w| *w)
    }
}

/// What an op knows about itself.
pub trait OpDef {
    /// Types of the outputs.
    ///
    /// # Errors
    /// Where the inputs' dtypes, ranks or known extents do not fit.
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>>;

    /// Values of the outputs: the law. An input that nothing else holds may be overwritten.
    ///
    /// # Errors
    /// Where the inputs' extents or values do not fit.
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>>;

    /// Adds to `g` the cotangents of the inputs, given those of the outputs (`None` is zero).
    /// The cotangent of an input has the input's dtype and shape.
    ///
    /// # Errors
    /// `E0403` where the op has no gradient.
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>>;

    /// Adds to `g` the tangents of the outputs, given those of the inputs (`None` is zero); `None` leaves that to [`OpDef::vjp`],
    /// whose derivative by the cotangents the tangents are.
    ///
    /// # Errors
    /// `E0403` where the op has no gradient.
    fn jvp(&self, _g: &mut Graph, _site: &Site, _tangents: &[Option<Value>]) -> Result<Option<Vec<Option<Value>>>> {
        Ok(None)
    }

    /// Adds to a graph what computes the op for many rows at once, at least one input having a row each: outputs have a leading axis, or are
    /// the same in every row. Values, errors and random draws are those of a loop over the rows; products and sums may be rounded otherwise.
    ///
    /// # Errors
    /// What type inference reports.
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>>;

    /// False where the value of this input cannot influence any cotangent: `like` arguments, indices.
    fn connected(&self, _input: usize) -> bool {
        true
    }
    /// True where evaluation can fail for some values of well-typed inputs.
    fn can_fail(&self) -> bool {
        false
    }
    /// Where the elements of the result lie in the first input, where the op only rearranges that one; `None` where it does not, or where
    /// that depends on values.
    fn view(&self, _: &Viewed) -> Option<View> {
        None
    }
    /// True where evaluation can fail for some values of inputs of these types; of these very constants, where some are.
    fn fallible(&self, _g: &Graph, _ins: &[Value]) -> bool {
        self.can_fail()
    }
    /// The output as an affine extent, for integer scalars computed from extents.
    fn dim(&self, _ins: &[Arg]) -> Option<Dim> {
        None
    }
}

/// An attribute of an op, as text and Python see it.
///
/// ```
/// use scan_core::prelude::*;
///
/// let x = vector("x").softmax(0);
/// let (op, ..) = x.owner().unwrap();
/// assert_eq!(op.attrs()[0].1, Attr::Int(0));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub enum Attr {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// Words: kinds, dtypes, index patterns.
    Str(String),
    /// Integers, e.g. axes.
    Ints(Vec<i64>),
}

/// Attributes by name.
pub type Attrs = Vec<(&'static str, Attr)>;

/// A Rust type that serves as an attribute.
pub trait AttrField: Sized {
    /// What its values are, in words.
    const KIND: &'static str;
    /// As an attribute.
    fn to_attr(&self) -> Attr;
    /// From an attribute; `None` where it is of another kind or out of range.
    fn from_attr(attr: &Attr) -> Option<Self>;
}

impl AttrField for bool {
    const KIND: &'static str = "a truth value";
    fn to_attr(&self) -> Attr {
        Attr::Bool(*self)
    }
    fn from_attr(attr: &Attr) -> Option<Self> {
        if let Attr::Bool(b) = attr { Some(*b) } else { None }
    }
}

impl AttrField for i64 {
    const KIND: &'static str = "an integer";
    fn to_attr(&self) -> Attr {
        Attr::Int(*self)
    }
    fn from_attr(attr: &Attr) -> Option<Self> {
        if let Attr::Int(i) = attr { Some(*i) } else { None }
    }
}

impl AttrField for usize {
    const KIND: &'static str = "an integer from 0 on";
    fn to_attr(&self) -> Attr {
        Attr::Int(*self as i64)
    }
    fn from_attr(attr: &Attr) -> Option<Self> {
        i64::from_attr(attr)?.try_into().ok()
    }
}

impl AttrField for Vec<usize> {
    const KIND: &'static str = "integers from 0 on";
    fn to_attr(&self) -> Attr {
        Attr::Ints(self.iter().map(|&i| i as i64).collect())
    }
    fn from_attr(attr: &Attr) -> Option<Self> {
        let Attr::Ints(v) = attr else { return None };
        v.iter().map(|&i| i.try_into().ok()).collect()
    }
}

impl AttrField for DType {
    const KIND: &'static str = "a dtype";
    fn to_attr(&self) -> Attr {
        Attr::Str(self.short().to_string())
    }
    fn from_attr(attr: &Attr) -> Option<Self> {
        if let Attr::Str(s) = attr { DType::parse(s) } else { None }
    }
}

impl AttrField for String {
    const KIND: &'static str = "a text";
    fn to_attr(&self) -> Attr {
        Attr::Str(self.clone())
    }
    fn from_attr(attr: &Attr) -> Option<Self> {
        if let Attr::Str(s) = attr { Some(s.clone()) } else { None }
    }
}

/// An f64 compared by bits, so that ops can be hashed.
#[derive(Clone, Copy, Debug)]
pub struct Bits(pub f64);

impl PartialEq for Bits {
    fn eq(&self, other: &Bits) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}
impl Eq for Bits {}
impl std::hash::Hash for Bits {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}
impl AttrField for Bits {
    const KIND: &'static str = "a number";
    fn to_attr(&self) -> Attr {
        Attr::Float(self.0)
    }
    fn from_attr(attr: &Attr) -> Option<Self> {
        match attr {
            Attr::Float(x) => Some(Bits(*x)),
            Attr::Int(i) => Some(Bits(*i as f64)),
            _ => None,
        }
    }
}

/// Declares an enum of words that serves as an attribute.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }
        impl AttrField for $name {
            const KIND: &'static str = concat!($(" `", $word, "`"),+);
            fn to_attr(&self) -> Attr {
                Attr::Str(match self { $($name::$variant => $word),+ }.to_string())
            }
            fn from_attr(attr: &Attr) -> Option<Self> {
                let Attr::Str(s) = attr else { return None };
                match s.as_str() { $($word => Some($name::$variant),)+ _ => None }
            }
        }
    };
}

words! {
    /// What a reduction computes.
    ReduceKind {
        /// Sum.
        Sum = "sum",
        /// Product.
        Prod = "prod",
        /// Largest element; NaN wins.
        Max = "max",
        /// Smallest element; NaN wins.
        Min = "min",
        /// Logical or.
        Any = "any",
        /// Logical and.
        All = "all",
    }
}
words! {
    /// Which extreme an index reduction finds.
    Extreme {
        /// The largest.
        Max = "max",
        /// The smallest.
        Min = "min",
    }
}
words! {
    /// How values are written at an index.
    Write {
        /// Replace. Where an index occurs twice, the last one wins.
        Set = "set",
        /// Add. Where an index occurs twice, both are added.
        Inc = "inc",
    }
}
words! {
    /// What is known of the matrix of a linear system.
    MatrixKind {
        /// Nothing: LU with partial pivoting.
        General = "general",
        /// Lower triangular; the upper part is not read.
        Lower = "lower",
        /// Upper triangular; the lower part is not read.
        Upper = "upper",
        /// Symmetric positive definite: Cholesky; the upper part is not read.
        Positive = "positive",
    }
}
words! {
    /// Distributions of the legacy (MT19937) streams.
    Legacy {
        /// `uniform(low, high)`.
        Uniform = "uniform",
        /// `normal(mean, std)`.
        Normal = "normal",
        /// `binomial(n, p)`.
        Binomial = "binomial",
        /// `random_integers(low, high)`, both ends included.
        Integers = "integers",
    }
}

/// A row of the table of structural ops.
pub struct OpRow {
    /// Its word in the text form.
    pub name: &'static str,
    /// Operands, and what it computes.
    pub doc: &'static str,
    /// Per attribute its name, what its values are, and what it says.
    pub attrs: &'static [(&'static str, &'static str, &'static str)],
}

macro_rules! table {
    ($($(#[doc = $doc:literal])+ $word:literal $name:ident $({ $($(#[doc = $fdoc:literal])+ $field:ident: $ty:ty),+ $(,)? })?;)+) => {
        $($(#[doc = $doc])+ #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub struct $name { $($($(#[doc = $fdoc])+ pub $field: $ty),+)? })+

        /// An operation of a node.
        ///
        /// ```
        /// use scan_core::prelude::*;
        ///
        /// let y = scalar("x").exp();
        /// let (op, inputs, _) = y.owner().unwrap();
        /// assert_eq!((op.name(), inputs.len()), ("exp", 1));
        /// ```
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub enum Op {
            /// An elementwise function with NumPy's broadcasting.
            Elem(ElemOp),
            /// A constant: shared, since graphs are copied again and again.
            Const(Arc<Array>),
            /// A loop.
            Scan(Arc<Scan>),
            /// A user's op.
            Extern(ExternRef),
            /// What an engine runs in place of other nodes: only in plans.
            Native(NativeRef),
            $($(#[doc = $doc])+ $name($name)),+
        }

        impl Op {
            /// The name in the text form.
            pub fn name(&self) -> &str {
                match self {
                    Op::Elem(e) => e.name(),
                    Op::Const(_) => "const",
                    Op::Scan(_) => "scan",
                    Op::Extern(e) => e.0.key(),
                    Op::Native(e) => e.0.name(),
                    $(Op::$name(_) => $word),+
                }
            }
            /// The attributes in the text form.
            pub fn attrs(&self) -> Attrs {
                match self {
                    Op::Elem(_) | Op::Const(_) | Op::Scan(_) | Op::Extern(_) | Op::Native(_) => vec![],
                    $(Op::$name(_x) => vec![$($((stringify!($field), _x.$field.to_attr())),+)?]),+
                }
            }
            /// The op of a name and attributes: every row of the two tables, but no constants, loops
            /// or user ops.
            ///
            /// # Errors
            /// `E0901` for an unknown name, `E0902` for a missing or unfit attribute.
            pub fn from_attrs(name: &str, attrs: &[(String, Attr)]) -> Result<Op> {
                if let Some(e) = ElemOp::parse(name) {
                    return Ok(Op::Elem(e));
                }
                match name {
                    $($word => Ok(Op::$name($name { $($($field: field(name, stringify!($field), attrs)?),+)? })),)+
                    _ => Err(Diagnostic::new(Kind::Parse, "E0901", format!("there is no op named `{name}`"))),
                }
            }
            /// Names of all structural ops, in table order.
            pub const STRUCTURAL: &'static [&'static str] = &[$($word),+];
            /// The table of structural ops as data, in its order.
            pub const ROWS: &'static [OpRow] = &[$(OpRow {
                name: $word,
                doc: concat!($($doc),+),
                attrs: &[$($((stringify!($field), <$ty as AttrField>::KIND, concat!($($fdoc),+))),+)?],
            }),+];
        }
        #[derive(Clone, Copy)]
        enum Structural { $($name),+ }

        impl Op {
            /// The number of its name among all that ops are made of; [`Op::OTHERS`] for constants, loops and what has no row.
            pub fn number(&self) -> usize {
                match self {
                    Op::Elem(e) => *e as usize,
                    Op::Const(_) | Op::Scan(_) | Op::Extern(_) | Op::Native(_) => Op::OTHERS,
                    $(Op::$name(_) => ElemOp::ALL.len() + Structural::$name as usize),+
                }
            }
        }
        $(impl From<$name> for Op { fn from(x: $name) -> Op { Op::$name(x) } })+
    };
}

fn field<T: AttrField>(op: &str, name: &str, attrs: &[(String, Attr)]) -> Result<T> {
    let found = attrs.iter().find(|a| a.0 == name).and_then(|a| T::from_attr(&a.1));
    found.ok_or_else(|| Diagnostic::new(Kind::Parse, "E0902", format!("op `{op}` needs a fitting attribute `{name}`")))
}

#[rustfmt::skip]
table! {
    /// `cast(x)`: the same elements as another dtype.
    "cast" Cast { /** Target. */ dtype: DType };
    /// `dim(x)`: one extent of x as an i64 scalar.
    "dim" DimOf { /** Which. */ axis: usize };
    /// `stop_gradient(x)`: x, through which no gradient flows.
    "stop_gradient" StopGradient;
    /// `hold(x)`: x, as one value: a loop inside does not compute it again from what it is made of.
    "hold" Hold;
    /// `grad_clip(x)`: x; its cotangent is clipped to `[low, high]`.
    "grad_clip" GradClip { /** Least cotangent. */ low: Bits, /** Largest cotangent. */ high: Bits };
    /// `grad_to(y, x, where, …)`: y; its cotangent goes to each x, where the truth value that follows it holds, and not through y. For rules of
    /// differentiation other than those of the ops that y is made of.
    "grad_to" GradTo;
    /// `assert(x, ok…)`: x, where every `ok` is true everywhere; else E0301 with the message.
    "assert" Assert { /** What the user said. */ message: String };

    /// `reduce(x)` over `axes` (sorted, unique).
    "reduce" Reduce { /** What. */ kind: ReduceKind, /** Over which axes. */ axes: Vec<usize>, /** Keep them with extent 1. */ keepdims: bool };
    /// `argreduce(x)`: i64 index of the first extreme along an axis; NaN wins. The axis goes away.
    "argreduce" ArgReduce { /** Which extreme. */ kind: Extreme, /** Along which axis. */ axis: usize };
    /// `extreme_mask(x)`: true where an element is the extreme over `axes`; never where that is NaN. What gradients of extremes ask: one op, so
    /// that both sides of the comparison are the same x, however it was computed and rounded.
    "extreme_mask" ExtremeMask { /** Which extreme. */ kind: Extreme, /** Over which axes. */ axes: Vec<usize> };
    /// `logsumexp(x)` over `axes`: `m + log Σ exp(x − m)`.
    "logsumexp" LogSumExp { /** Over which axes. */ axes: Vec<usize>, /** Keep them with extent 1. */ keepdims: bool };
    /// `softmax(x)` along an axis.
    "softmax" Softmax { /** Along which axis. */ axis: usize };
    /// `log_softmax(x)` along an axis: `x − logsumexp(x)`.
    "log_softmax" LogSoftmax { /** Along which axis. */ axis: usize };
    /// `cumsum(x)` along an axis.
    "cumsum" CumSum { /** Along which axis. */ axis: usize, /** From the end. */ reverse: bool };
    /// `cumprod(x)` along an axis.
    "cumprod" CumProd { /** Along which axis. */ axis: usize };
    /// `cumextreme(x)`: the extreme of the elements up to each one along an axis; NaN wins.
    "cumextreme" CumExtreme { /** Which extreme. */ kind: Extreme, /** Along which axis. */ axis: usize };
    /// `argcumextreme(x)`: i64 positions of the same: of the first of equal ones.
    "argcumextreme" ArgCumExtreme { /** Which extreme. */ kind: Extreme, /** Along which axis. */ axis: usize };
    /// `recurrence(a, b)`: y with `y[t] = a[t]·y[t−1] + b[t]` along an axis, and 0 before the first. The gradient of `cumprod`.
    "recurrence" Recurrence { /** Along which axis. */ axis: usize, /** From the end. */ reverse: bool };
    /// `sort(x)` along an axis, ascending, NaN last, stable.
    "sort" Sort { /** Along which axis. */ axis: usize };
    /// `argsort(x)`: i64 positions that sort x along an axis, stable.
    "argsort" ArgSort { /** Along which axis. */ axis: usize };
    /// `argtopk(x)`: the k first of the positions that `argsort` gives along an axis, or the k last; all where there are fewer.
    "argtopk" ArgTopK { /** Along which axis. */ axis: usize, /** How many. */ k: usize, /** The last ones. */ largest: bool };
    /// `searchsorted(a, v)`: i64 positions in the sorted vector a before which each element of v belongs.
    "searchsorted" SearchSorted { /** Behind elements that equal it, not before them. */ right: bool };

    /// `matmul(a, b)` as `numpy.matmul`: ranks 1 and up, leading axes broadcast.
    "matmul" MatMul;
    /// `outer_sum(a, b, like)`: `Σ aᵀ·b` over all axes but the last one of each; zeros of the extents of like's last two axes where there
    /// are no rows. What a block of rows gives is added to what the rows before it gave.
    "outer_sum" OuterSum { /** The first axis of a counts from its end. */ back_a: bool, /** That of b does. */ back_b: bool };
    /// `log_matmul(a, w, sums, top)`: `log Σᵢ exp(aᵢ + wᵢⱼ)` for a vector or every row of a matrix a. `top = logsumexp(w)` over the rows
    /// of w and `log_matmul_sums` of both are what it computes with where that is accurate.
    "log_matmul" LogMatMul;
    /// `log_matmul_powers(a)`: `exp(a − max a)` along the last axis.
    "log_matmul_powers" LogMatMulPowers;
    /// `log_matmul_sums(powers, power)`: the product of rows and `power = exp(w − top)`, which is 0 where `top` is −∞.
    "log_matmul_sums" LogMatMulSums;
    /// `log_matmul_quotients(ct, sums, top)`: `ct / sums`, NaN where that is not accurate.
    "log_matmul_quotients" LogMatMulQuotients;
    /// `log_matmul_left(ct, quotients, powers, a, w, power)`: the cotangent of a for `log_matmul(a, w, …)`; `power` is transposed.
    "log_matmul_left" LogMatMulLeft;
    /// `log_matmul_right(ct, quotients, powers, a, w, power)`: the cotangent of w for `log_matmul(a, w, …)`.
    "log_matmul_right" LogMatMulRight { /** The rows of ct and quotients are in the order opposite to that of the others. */ reverse: bool };

    /// `reshape(x, d0, d1, …)`: one extent may be −1.
    "reshape" Reshape;
    /// `reshape_like(x, y)`: x with the shape of y.
    "reshape_like" ReshapeLike;
    /// `transpose(x)`: output axis i is input axis `perm[i]`.
    "transpose" Transpose { /** The permutation. */ perm: Vec<usize> };
    /// `expand(x)`: new axes of extent 1 at these positions of the result.
    "expand" Expand { /** Positions. */ axes: Vec<usize> };
    /// `squeeze(x)`: without these axes, whose extent must be 1.
    "squeeze" Squeeze { /** Positions. */ axes: Vec<usize> };
    /// `broadcast_to(x, d0, d1, …)`.
    "broadcast_to" BroadcastTo;
    /// `broadcast_like(x, y)`: x broadcast to the shape of y.
    "broadcast_like" BroadcastLike;
    /// `sum_to(x, y)`: x summed over the axes along which y was broadcast to the shape of x.
    "sum_to" SumTo;
    /// `join(a, b, …)` along an existing axis.
    "join" Join { /** Along which axis. */ axis: usize };
    /// `flip(x)` along an axis.
    "flip" Flip { /** Along which axis. */ axis: usize };

    /// `index(x, i…)`: basic indexing. The pattern has an item per leading axis, joined by commas: `i` an
    /// integer input; `:` everything; `s:e:-2` a slice whose start (`s`) and end (`e`), where named, are inputs.
    "index" Index { /** One item per leading axis. */ pattern: String };
    /// `index_write(x, y, i…)`: x with y set or added at a basic index; y broadcasts to the place.
    "index_write" IndexWrite { /** Set or add. */ mode: Write, /** As in `index`. */ pattern: String };
    /// `gather(x, i…)`: NumPy's advanced indexing of `axes` (sorted) by integer arrays that broadcast together.
    "gather" Gather { /** Indexed axes. */ axes: Vec<usize> };
    /// `gather_write(x, y, i…)`: x with y set or added at an advanced index; y broadcasts to the place.
    "gather_write" GatherWrite { /** Set or add. */ mode: Write, /** Indexed axes. */ axes: Vec<usize> };
    /// `nonzero(x)`: an i64 vector per axis, the positions of the elements that are not zero.
    "nonzero" Nonzero;

    /// `arange(start, stop, step)` in the dtype of the inputs.
    "arange" Arange;
    /// `eye(n, m, k)`: ones where column − row = k.
    "eye" Eye { /** Element type. */ dtype: DType };
    /// `diag(x)`: the k-th diagonal of a matrix, or the square matrix with a vector on it.
    "diag" Diag { /** Which diagonal. */ k: i64 };
    /// `ifelse(cond, a, b)`: a where the scalar is true, else b; only that one is evaluated.
    "ifelse" IfElse;

    /// `solve(a, b)`: x with a·x = b; b is a vector or a matrix. Leading axes are batches.
    "solve" Solve { /** What is known of a. */ kind: MatrixKind };
    /// `cholesky(a)`: lower triangular l with l·lᵀ = a; only the lower part of a is read.
    "cholesky" Cholesky;
    /// `inverse(a)`.
    "inverse" Inverse;
    /// `slogdet(a)`: sign and log|det|.
    "slogdet" SLogDet;
    /// `det(a)`: the determinant.
    "det" Det;
    /// `cofactor(a)`: the matrix of cofactors, which is the gradient of `det(a)`, of singular matrices, too.
    "cofactor" Cofactor;
    /// `cofactor_slope(a, w)`: the gradient of `Σ w · cofactor(a)` by a.
    "cofactor_slope" CofactorSlope;
    /// `solve_slogdet(a, b)`: `solve` of a general matrix and `slogdet` of one factorisation; a has all axes of a batch.
    "solve_slogdet" SolveSLogDet;
    /// `qr(a)`: q with orthonormal columns and r without anything below the diagonal, `a = q·r`; a has no fewer rows than columns.
    "qr" Qr;
    /// `eigh(a)`: eigenvalues in ascending order, and eigenvectors as columns, of a symmetric matrix, of which the lower part is read.
    "eigh" Eigh;
    /// `svd(a)`: u, s, w with `a = u·diag(s)·w`, s descending, as many as the smaller extent of a.
    "svd" Svd;
    /// `pinv(a)`: the pseudo-inverse, without singular values up to so much of the largest.
    "pinv" Pinv { /** How much; below 0 the larger extent times the precision. */ rcond: Bits };
    /// `dft(x)`: `Σₖ x[k]·exp(∓2πi·jk/n)` along the axis before the last one, which holds real and imaginary parts.
    "dft" Dft { /** With + in the exponent; not divided by n. */ inverse: bool };
    /// `tri(a)`: a with the elements below (`lower = false`) or above the k-th diagonal set to 0.
    "tri" Tri { /** Keep the lower part. */ lower: bool, /** The last diagonal kept. */ k: i64 };

    /// `fold_in(key, n)`: the key of stream or step n of a key (u64 vector of 2). Keys may be stacked along axes in front, here and in draws, and
    /// numbers be arrays, which broadcast against those axes.
    "fold_in" FoldIn;
    /// `random_uniform(key, d0, …)` in [0, 1).
    "random_uniform" RandomUniform { /** f32 or f64. */ dtype: DType };
    /// `random_normal(key, d0, …)`: mean 0, deviation 1.
    "random_normal" RandomNormal { /** f32 or f64. */ dtype: DType };
    /// `random_integers(key, low, high, d0, …)`: i64 in [low, high).
    "random_integers" RandomIntegers;
    /// `random_permutation(key, n)`: i64 vector, a shuffled 0..n.
    "random_permutation" RandomPermutation;
    /// `legacy_draw(state, a, b, d0, …)`: the next MT19937 state (u32 vector of 628) and the draw that NumPy's RandomState gives.
    "legacy_draw" LegacyDraw { /** Distribution. */ dist: Legacy, /** Of the draw. */ dtype: DType };
}

/// An op whose meaning lives outside this crate.
///
/// ```
/// use scan_core::prelude::*;
///
/// struct Twice;
/// impl ExternOp for Twice {
///     fn key(&self) -> &str {
///         "twice"
///     }
///     fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
///         Ok(std::iter::once(ins[0].ty.clone()).collect())
///     }
///     fn eval(&self, ins: &[Array]) -> Result<Outs<Array>> {
///         let doubled: Vec<f64> = ins[0].to_f64_vec().iter().map(|x| 2.0 * x).collect();
///         Ok(std::iter::once(Array::new(ins[0].shape(), doubled)).collect())
///     }
///     fn vjp(&self, g: &mut Graph, _: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
///         let two = g.number(DType::F64, 2.0);
///         Ok(vec![cts[0].map(|ct| g.mul(ct, two))])
///     }
/// }
/// let (op, x) = (ExternRef(std::sync::Arc::new(Twice)), scalar("x"));
/// let y = Var::apply1(Op::Extern(op), &[x.clone()], Span::NONE)?;
/// let f = function(&[&x], &[&y, &y.grad(&x)]).compile()?;
/// assert_eq!(f.run(&[Array::scalar(4.0)])?, [Array::scalar(8.0), Array::scalar(2.0)]);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub trait ExternOp: Send + Sync {
    /// The registered name: the op's identity in the text form.
    fn key(&self) -> &str;
    /// False where each evaluation counts (prints, draws from the outside).
    fn pure(&self) -> bool {
        true
    }
    /// True where a step that its gradient runs once more hands the inputs on instead: prints. The outputs then have the types of
    /// the inputs.
    fn once(&self) -> bool {
        false
    }
    /// As [`OpDef::infer`].
    ///
    /// # Errors
    /// Where the inputs do not fit.
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>>;
    /// As [`OpDef::eval`].
    ///
    /// # Errors
    /// Where the inputs do not fit, or the user's code fails.
    fn eval(&self, ins: &[Array]) -> Result<Outs<Array>>;
    /// As [`OpDef::vjp`].
    ///
    /// # Errors
    /// `E0403` by default: no gradient.
    fn vjp(&self, _g: &mut Graph, _site: &Site, _cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Err(Diagnostic::new(Kind::Gradient, "E0403", format!("op `{}` has no gradient", self.key())))
    }
}

impl From<Array> for Op {
    fn from(value: Array) -> Op {
        Op::Const(Arc::new(value))
    }
}

impl Op {
    /// The number of ops that have no row in a table: those of the others are smaller.
    pub const OTHERS: usize = ElemOp::ALL.len() + Op::STRUCTURAL.len();

    /// As [`Op::number`], by name.
    pub fn number_of(name: &str) -> Option<usize> {
        let structural = || Op::STRUCTURAL.iter().position(|s| *s == name).map(|at| ElemOp::ALL.len() + at);
        ElemOp::parse(name).map(|e| e as usize).or_else(structural)
    }
    /// The loop, if it is one.
    pub fn as_scan(&self) -> Option<&Arc<Scan>> {
        if let Op::Scan(scan) = self { Some(scan) } else { None }
    }
}

/// A user's op by identity.
///
/// ```
/// use scan_core::prelude::*;
///
/// struct Twice;
/// impl ExternOp for Twice {
///     fn key(&self) -> &str {
///         "twice"
///     }
///     fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
///         Ok(std::iter::once(ins[0].ty.clone()).collect())
///     }
///     fn eval(&self, ins: &[Array]) -> Result<Outs<Array>> {
///         let doubled: Vec<f64> = ins[0].to_f64_vec().iter().map(|x| 2.0 * x).collect();
///         Ok(std::iter::once(Array::new(ins[0].shape(), doubled)).collect())
///     }
///     fn vjp(&self, g: &mut Graph, _: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
///         let two = g.number(DType::F64, 2.0);
///         Ok(vec![cts[0].map(|ct| g.mul(ct, two))])
///     }
/// }
/// let (op, x) = (ExternRef(std::sync::Arc::new(Twice)), scalar("x"));
/// let y = Var::apply1(Op::Extern(op), &[x.clone()], Span::NONE)?;
/// let f = function(&[&x], &[&y, &y.grad(&x)]).compile()?;
/// assert_eq!(f.run(&[Array::scalar(4.0)])?, [Array::scalar(8.0), Array::scalar(2.0)]);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone)]
pub struct ExternRef(pub Arc<dyn ExternOp>);

impl PartialEq for ExternRef {
    fn eq(&self, other: &ExternRef) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for ExternRef {}
impl std::hash::Hash for ExternRef {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<u8>().hash(state);
    }
}
impl std::fmt::Debug for ExternRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.key())
    }
}

/// What an engine runs in place of other nodes.
pub trait NativeOp: Send + Sync {
    /// What it is, in prints.
    fn name(&self) -> &str;
    /// Types of the outputs.
    fn types(&self) -> Outs<Type>;
    /// As [`OpDef::eval`].
    ///
    /// # Errors
    /// What the nodes report in whose place it runs.
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>>;
    /// The op of the table that computes the same, where there is one: prints show that.
    fn law(&self) -> Option<Op> {
        None
    }
    /// True where it stands for a loop.
    fn is_loop(&self) -> bool {
        false
    }
    /// What it runs, as text: a line each for its parts; empty before the first call, where only that tells.
    fn plan(&self) -> String {
        String::new()
    }
    /// Itself, for `explain`.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// A [`NativeOp`] by identity.
#[derive(Clone)]
pub struct NativeRef(pub Arc<dyn NativeOp>);

impl PartialEq for NativeRef {
    fn eq(&self, other: &NativeRef) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Op {
    /// The values of the outputs, as [`OpDef::eval`] gives them.
    ///
    /// # Errors
    /// As there; `E0392` where there is no memory for them.
    pub fn evaluate(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        memory::given(|| self.described(), || self.def().eval(cx, ins))
    }
    /// What it is, in the midst of a sentence.
    pub(crate) fn described(&self) -> String {
        match self {
            Op::Scan(_) => "the loop".to_string(),
            Op::Native(native) if native.0.is_loop() => "the loop".to_string(),
            Op::Native(native) if native.0.name() == "map" => "elementwise operations".to_string(),
            _ => format!("`{}`", self.name()),
        }
    }
}
impl Eq for NativeRef {}
impl std::hash::Hash for NativeRef {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<u8>().hash(state);
    }
}
impl std::fmt::Debug for NativeRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

/// What an evaluation carries along: the caller's wish to stop, and to know where the time goes.
///
/// ```
/// use scan_core::prelude::*;
///
/// let asked = || Err(Diagnostic::new(Kind::Interrupted, "E0390", "asked to stop"));
/// let endless = scan().init("x", 1.0).run(|s| {
///     let x = s.get("x");
///     s.until(x.lt(0.0));
///     x
/// });
/// let f = function(&[], &[&endless.steps()]).engine(Engine::Eval).compile()?;
/// assert_eq!(f.call(&mut EvalCx::with_poll(&asked), &[]).unwrap_err().code, "E0390");
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
pub struct EvalCx<'a> {
    poll: Option<&'a dyn Fn() -> Result<()>>,
    last: Instant,
    ticks: u32,
    /// So many more nodes and steps may be evaluated, where that is limited.
    left: Option<u64>,
    /// Since the last look at the clock within an op.
    work: usize,
    /// Loops that run, each in a step of the one before; where the outermost one is, told to whoever wants to know.
    loops: u32,
    walked: Option<&'a Cell<Walked>>,
    /// Filled where there is one.
    pub profile: Option<Box<Profile>>,
}

/// Where the outermost loop of an evaluation is: steps that are done, of at most so many; none of none where no loop runs.
///
/// ```
/// use scan_core::prelude::*;
///
/// let walked = std::cell::Cell::new(Walked::default());
/// let x = scan().steps(5).init("x", 1.0).run(|s| s.get("x") * 2.0).last("x");
/// function(&[], &[&x]).compile()?.call(&mut EvalCx::new().telling(&walked), &[])?;
/// println!("{} of {}", walked.get().done, walked.get().steps);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Steps that are done.
    pub done: usize,
    /// Steps that the loop has at most.
    pub steps: usize,
}

/// Simple operations of an op between two looks at the clock.
const LOOK: usize = 1 << 20;

/// How often the caller is asked whether to go on.
const POLL: Duration = Duration::from_millis(10);

impl<'a> EvalCx<'a> {
    /// An evaluation that cannot be stopped.
    pub fn new() -> EvalCx<'static> {
        EvalCx { poll: None, last: Instant::now(), ticks: 0, work: 0, loops: 0, walked: None, left: None, profile: None }
    }
    /// An evaluation that asks `poll` every 10 ms whether to go on.
    pub fn with_poll(poll: &'a dyn Fn() -> Result<()>) -> EvalCx<'a> {
        EvalCx { poll: Some(poll), ..EvalCx::new() }
    }
    /// The same, which tells how far it has come. `poll` may look there.
    #[must_use]
    pub fn telling(self, walked: &'a Cell<Walked>) -> EvalCx<'a> {
        EvalCx { walked: Some(walked), ..self }
    }
    /// What `run` gives, which is a loop of at most n steps.
    pub fn in_loop<T>(&mut self, n: usize, run: impl FnOnce(&mut Self) -> T) -> T {
        self.tell(self.loops == 0, Walked { done: 0, steps: n });
        self.loops += 1;
        let out = run(self);
        self.loops -= 1;
        self.tell(self.loops == 0, Walked::default());
        out
    }
    /// So many steps of a loop are done.
    pub fn reached(&self, done: usize) {
        if let Some(walked) = self.walked {
            self.tell(self.loops == 1, Walked { done, ..walked.get() });
        }
    }
    fn tell(&self, outermost: bool, walked: Walked) {
        if let Some(cell) = self.walked.filter(|_| outermost) {
            cell.set(walked);
        }
    }
    /// Runs what is one operation to the profile, whatever it consists of.
    pub fn as_one<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let profile = self.profile.take();
        let out = run(self);
        self.profile = profile;
        out
    }
    /// What `run` returns, unless it evaluates more than so many nodes and steps.
    pub fn within<T>(&mut self, nodes: u64, run: impl FnOnce(&mut Self) -> Result<T>) -> Option<Result<T>> {
        let outer = self.left.replace(nodes);
        let done = run(self);
        let spent = std::mem::replace(&mut self.left, outer) == Some(0);
        (!spent).then_some(done)
    }
    /// Called once per node and step. Only every 16th call looks at the clock.
    ///
    /// # Errors
    /// What `poll` returns: the caller wants to stop. Where so many evaluations were not allowed, an error that nobody sees.
    #[inline]
    pub fn check(&mut self) -> Result<()> {
        self.ticks = self.ticks.wrapping_add(1);
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                return Err(Diagnostic::new(Kind::Interrupted, "E9999", "too many evaluations"));
            }
        }
        let Some(poll) = self.poll else { return Ok(()) };
        if self.ticks.is_multiple_of(16) && self.last.elapsed() >= POLL {
            self.last = Instant::now();
            poll()?;
        }
        Ok(())
    }
    /// As [`EvalCx::check`], for callers who have worked for milliseconds: looks at the clock.
    ///
    /// # Errors
    /// As there.
    pub fn check_clock(&mut self) -> Result<()> {
        self.ticks |= 15;
        self.check()
    }
}

impl EvalCx<'_> {
    /// Called within an op after so much work, counted in simple operations: looks at the clock every millisecond or so.
    ///
    /// # Errors
    /// As [`EvalCx::check`].
    pub fn worked(&mut self, work: usize) -> Result<()> {
        self.work = self.work.saturating_add(work);
        if self.work < LOOK {
            return Ok(());
        }
        self.work = 0;
        self.check_clock()
    }
    /// Runs over `0..n` in blocks, and looks in between at the clock.
    ///
    /// # Errors
    /// As [`EvalCx::check`].
    pub fn in_blocks(&mut self, n: usize, block: usize, mut run: impl FnMut(Range<usize>)) -> Result<()> {
        for lo in (0..n).step_by(block.max(1)) {
            if lo > 0 {
                self.check_clock()?;
            }
            run(lo..n.min(lo + block));
        }
        Ok(())
    }
}

impl Default for EvalCx<'static> {
    fn default() -> Self {
        EvalCx::new()
    }
}
