//! Short words for graphs built in Rust: `g.mul(a, b)`. For rules and passes, whose types are known to
//! fit; like [`Graph::emit`] they panic where they do not.

use super::graph::{Graph, Value};
use super::op::*;
use crate::scalar::ElemOp;
use crate::types::{Array, DType};

macro_rules! elem {
    ($($name:ident($($arg:ident),+) = $op:ident;)+) => {
        impl Graph {
            $(#[doc = concat!("Elementwise `", stringify!($name), "`.")]
            pub fn $name(&mut self, $($arg: Value),+) -> Value {
                self.emit(Op::Elem(ElemOp::$op), &[$($arg),+])
            })+
        }
    };
}

elem! {
    add(a, b) = Add;
    sub(a, b) = Sub;
    mul(a, b) = Mul;
    div(a, b) = Div;
    neg(a) = Neg;
    minimum(a, b) = Minimum;
    maximum(a, b) = Maximum;
    exp(a) = Exp;
    log(a) = Log;
    eq(a, b) = Eq;
    lt(a, b) = Lt;
    ge(a, b) = Ge;
    select(cond, a, b) = Where;
}

impl Graph {
    /// The constant `x` in a dtype.
    pub fn number(&mut self, dtype: DType, x: f64) -> Value {
        self.constant(Array::full(dtype, &[], x))
    }
    /// The i64 scalar `n`.
    pub fn int(&mut self, n: i64) -> Value {
        self.constant(Array::scalar(n))
    }
    /// x as another dtype.
    pub fn cast(&mut self, x: Value, dtype: DType) -> Value {
        if self.ty(x).dtype == dtype { x } else { self.emit(Cast { dtype }, &[x]) }
    }
    /// An extent of x as i64 scalar; a constant where it is known.
    pub fn dim(&mut self, x: Value, axis: usize) -> Value {
        match self.ty(x).dims[axis].value() {
            Some(n) => self.int(n as i64),
            None => self.emit(DimOf { axis }, &[x]),
        }
    }
    /// Zeros with dtype and shape of x.
    pub fn zeros_like(&mut self, x: Value) -> Value {
        let zero = self.number(self.ty(x).dtype, 0.0);
        self.broadcast_like(zero, x)
    }
    /// Ones with dtype and shape of x.
    pub fn ones_like(&mut self, x: Value) -> Value {
        let one = self.number(self.ty(x).dtype, 1.0);
        self.broadcast_like(one, x)
    }
    /// x broadcast to the shape of `like`.
    pub fn broadcast_like(&mut self, x: Value, like: Value) -> Value {
        if self.same_dims(x, like) { x } else { self.emit(BroadcastLike {}, &[x, like]) }
    }
    /// x summed to the shape of `like`, from which it was broadcast.
    pub fn sum_to(&mut self, x: Value, like: Value) -> Value {
        if self.same_dims(x, like) { x } else { self.emit(SumTo {}, &[x, like]) }
    }
    /// x with the shape of `like`.
    pub fn reshape_like(&mut self, x: Value, like: Value) -> Value {
        if self.same_dims(x, like) { x } else { self.emit(ReshapeLike {}, &[x, like]) }
    }
    /// Sum over axes.
    pub fn sum(&mut self, x: Value, axes: &[usize], keepdims: bool) -> Value {
        self.emit(Reduce { kind: ReduceKind::Sum, axes: axes.to_vec(), keepdims }, &[x])
    }
    /// `numpy.matmul`.
    pub fn matmul(&mut self, a: Value, b: Value) -> Value {
        self.emit(MatMul {}, &[a, b])
    }
    /// Axes permuted.
    pub fn transpose(&mut self, x: Value, perm: &[usize]) -> Value {
        if perm.iter().enumerate().all(|(i, &p)| i == p) { x } else { self.emit(Transpose { perm: perm.to_vec() }, &[x]) }
    }
    /// The last two axes swapped.
    pub fn transpose_last(&mut self, x: Value) -> Value {
        let n = self.ty(x).rank();
        let mut perm: Vec<usize> = (0..n).collect();
        perm.swap(n - 2, n - 1);
        self.transpose(x, &perm)
    }
    /// New axes of extent 1.
    pub fn expand(&mut self, x: Value, axes: &[usize]) -> Value {
        if axes.is_empty() { x } else { self.emit(Expand { axes: axes.to_vec() }, &[x]) }
    }
    /// Without axes of extent 1.
    pub fn squeeze(&mut self, x: Value, axes: &[usize]) -> Value {
        if axes.is_empty() { x } else { self.emit(Squeeze { axes: axes.to_vec() }, &[x]) }
    }
    /// Rows `lo..hi` along the first axis.
    pub fn slice_rows(&mut self, x: Value, lo: Value, hi: Value) -> Value {
        self.emit(Index { pattern: "s:e".into() }, &[x, lo, hi])
    }
    /// Row `i` along the first axis.
    pub fn row(&mut self, x: Value, i: Value) -> Value {
        self.emit(Index { pattern: "i".into() }, &[x, i])
    }
    /// Arrays joined along the first axis.
    pub fn join_rows(&mut self, parts: &[Value]) -> Value {
        if let [one] = parts { *one } else { self.emit(Join { axis: 0 }, parts) }
    }
    /// `n` zero rows of the shape of the rows of `x`.
    pub fn zero_rows_like(&mut self, n: Value, x: Value) -> Value {
        let row = self.ty(x).row();
        let zero = self.number(row.dtype, 0.0);
        let dims: Vec<Value> = (0..row.rank()).map(|i| self.dim(x, i + 1)).collect();
        let ins: Vec<Value> = [zero, n].into_iter().chain(dims).collect();
        self.emit(BroadcastTo {}, &ins)
    }
    /// The cotangents of an op that reads `site.ins[0]` at the places that its other inputs tell: `ct` added there, into zeros.
    pub fn written_back(&mut self, write: impl Into<Op>, site: &Site, ct: Option<Value>) -> Vec<Option<Value>> {
        let mut out = vec![None; site.ins.len()];
        out[0] = ct.map(|ct| {
            let zeros = self.zeros_like(site.ins[0]);
            let ins: Vec<Value> = [zeros, ct].iter().chain(&site.ins[1..]).copied().collect();
            self.emit(write, &ins)
        });
        out
    }
    fn same_dims(&self, a: Value, b: Value) -> bool {
        self.ty(a).dims == self.ty(b).dims
    }
}
