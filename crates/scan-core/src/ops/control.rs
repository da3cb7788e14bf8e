//! Identities with a side condition, choice, and user ops.

use super::args::{expect_count, one};
use super::batch::shapes;
use crate::bail;
use crate::base::Result;
use crate::dispatch;
use crate::ir::op::*;
use crate::ir::{Graph, Value};
use crate::types::{Array, DType, Dim, Type};

impl OpDef for DimOf {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("dim", 1, false, ins)?;
        if self.axis >= ins[0].ty.rank() {
            bail!(Type, "E0222", "axis {} of `dim` does not exist in {}", self.axis, ins[0].ty);
        }
        Ok(one(Type::scalar(DType::I64)))
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        Ok(one(Array::scalar(ins[0].shape()[self.axis] as i64)))
    }
    fn vjp(&self, _: &mut Graph, _: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![None])
    }
    fn connected(&self, _: usize) -> bool {
        false
    }
    fn dim(&self, ins: &[Arg]) -> Option<Dim> {
        ins[0].ty.dims.get(self.axis).cloned()
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        Ok(one(Batched::Fixed(b.dim(ins[0], self.axis))))
    }
}

/// Moves the first input out, so that its buffer is not shared with the caller's list.
fn take(ins: &mut [Array]) -> Array {
    std::mem::replace(&mut ins[0], Array::scalar(false))
}

impl OpDef for StopGradient {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("stop_gradient", 1, false, ins)?;
        Ok(one(ins[0].ty.clone()))
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        Ok(one(take(ins)))
    }
    fn vjp(&self, _: &mut Graph, _: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![None])
    }
    fn connected(&self, _: usize) -> bool {
        false
    }
    fn dim(&self, ins: &[Arg]) -> Option<Dim> {
        super::args::form(&ins[0])
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

impl OpDef for Hold {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("hold", 1, false, ins)?;
        Ok(one(ins[0].ty.clone()))
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        Ok(one(take(ins)))
    }
    fn vjp(&self, _: &mut Graph, _: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![cts[0]])
    }
    fn dim(&self, ins: &[Arg]) -> Option<Dim> {
        super::args::form(&ins[0])
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

impl OpDef for GradClip {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("grad_clip", 1, false, ins)?;
        if self.low.0.is_nan() || self.high.0.is_nan() || self.low.0 > self.high.0 {
            bail!(Value, "E0406", "the bounds of `grad_clip` must be ordered, got [{}, {}]", self.low.0, self.high.0);
        }
        Ok(one(ins[0].ty.clone()))
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        Ok(one(take(ins)))
    }
    fn vjp(&self, g: &mut Graph, _: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Ok(vec![cts[0].map(|ct| {
            let dtype = g.ty(ct).dtype;
            let (low, high) = (g.number(dtype, self.low.0), g.number(dtype, self.high.0));
            let below = g.minimum(ct, high);
            g.maximum(below, low)
        })])
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.as_is(self.clone(), ins)
    }
}

impl OpDef for GradTo {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("grad_to", 1, true, ins)?;
        for pair in ins[1..].chunks(2) {
            let [_, to] = pair else { bail!(Type, "E0222", "`grad_to` takes a value and pairs of inputs, got {} inputs", ins.len()) };
            if to.ty.dtype != DType::Bool {
                bail!(Type, "E0220", "where `grad_to` sends a cotangent is told by truth values, got {}", to.ty);
            }
        }
        Ok(one(ins[0].ty.clone()))
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        Ok(one(take(ins)))
    }
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let mut out = vec![None; site.ins.len()];
        let Some(ct) = cts[0].filter(|ct| g.ty(*ct).dtype.is_float()) else { return Ok(out) };
        let zero = g.number(g.ty(ct).dtype, 0.0);
        for (k, pair) in site.ins[1..].chunks(2).enumerate().filter(|(_, pair)| g.ty(pair[0]).dtype.is_float()).collect::<Vec<_>>() {
            let part = g.select(pair[1], ct, zero);
            let part = g.sum_to(part, pair[0]);
            out[2 * k + 1] = Some(g.cast(part, g.ty(pair[0]).dtype));
        }
        Ok(out)
    }
    fn connected(&self, input: usize) -> bool {
        input % 2 == 1
    }
    fn dim(&self, ins: &[Arg]) -> Option<Dim> {
        super::args::form(&ins[0])
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        shapes::grad_to(self, b, ins)
    }
}

impl OpDef for Assert {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("assert", 1, true, ins)?;
        Ok(one(ins[0].ty.clone()))
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        if ins[1..].iter().any(|ok| !all_true(ok)) {
            bail!(Value, "E0301", "an assertion failed: {}", self.message);
        }
        Ok(one(take(ins)))
    }
    fn vjp(&self, _: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let mut out = vec![None; site.ins.len()];
        out[0] = cts[0];
        Ok(out)
    }
    fn connected(&self, input: usize) -> bool {
        input == 0
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn fallible(&self, _: &Graph, ins: &[Value]) -> bool {
        ins.len() > 1
    }
    fn dim(&self, ins: &[Arg]) -> Option<Dim> {
        super::args::form(&ins[0])
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        shapes::assert(self, b, ins)
    }
}

fn all_true(x: &Array) -> bool {
    dispatch!(x.dtype(), T => x.as_slice::<T>().iter().all(|v| *v != T::default()))
}

/// What the two branches have in common, axis by axis: the same extent, or an unknown one.
impl OpDef for IfElse {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        expect_count("ifelse", 3, false, ins)?;
        super::args::expect_scalar("ifelse", "the condition", &ins[0])?;
        let (a, b) = (&ins[1].ty, &ins[2].ty);
        if a.dtype != b.dtype || a.rank() != b.rank() {
            bail!(Type, "E0220", "the branches of `ifelse` must agree in dtype and rank, got {a} and {b}");
        }
        let dims = a.dims.iter().zip(&b.dims).map(|(m, n)| if m == n { m.clone() } else { Dim::fresh() });
        Ok(one(Type::new(a.dtype, dims)))
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let chosen = if all_true(&ins[0]) { 1 } else { 2 };
        Ok(one(take(&mut ins[chosen..])))
    }
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let Some(ct) = cts[0] else { return Ok(vec![None; 3]) };
        let (cond, a, b) = (site.ins[0], site.ins[1], site.ins[2]);
        let (zero_a, zero_b) = (zeros(g, a), zeros(g, b));
        Ok(vec![None, Some(g.emit(IfElse {}, &[cond, ct, zero_a])), Some(g.emit(IfElse {}, &[cond, zero_b, ct]))])
    }
    fn connected(&self, input: usize) -> bool {
        input != 0
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        shapes::if_else(b, ins)
    }
}

/// Zeros of the type of x that, where the extents are known, do not ask for its value: the branch not taken stays unevaluated.
pub fn zeros(g: &mut Graph, x: Value) -> Value {
    let ty = g.ty(x).clone();
    if ty.dims.iter().any(|d| d.value().is_none()) {
        return g.zeros_like(x);
    }
    let zero = g.number(ty.dtype, 0.0);
    if ty.rank() == 0 {
        return zero;
    }
    let ins: Vec<Value> = std::iter::once(zero).chain((0..ty.rank()).map(|axis| g.dim(x, axis)).collect::<Vec<_>>()).collect();
    g.emit(BroadcastTo {}, &ins)
}

impl OpDef for ExternRef {
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        self.0.infer(ins)
    }
    fn eval(&self, _: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let args: Vec<Arg> = ins.iter().map(|a| Arg { ty: a.ty(), value: Some(a.clone()), dim: None }).collect();
        let types = self.0.infer(&args)?;
        let outs = self.0.eval(ins)?;
        if outs.len() != types.len() {
            bail!(Callback, "E0302", "op `{}` promised {} outputs and gave {}", self.0.key(), types.len(), outs.len());
        }
        for (i, (out, ty)) in outs.iter().zip(&types).enumerate() {
            if !ty.admits(out.dtype(), out.shape()) {
                bail!(Callback, "E0302", "op `{}` promised {ty} for output {i} and gave {}", self.0.key(), out.ty());
            }
        }
        Ok(outs)
    }
    fn vjp(&self, g: &mut Graph, site: &Site, cts: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        self.0.vjp(g, site, cts)
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, b: &mut Batching, ins: &[Batched]) -> Result<Outs<Batched>> {
        b.row_by_row(Op::Extern(self.clone()), ins)
    }
}

impl OpDef for NativeRef {
    fn infer(&self, _: &[Arg]) -> Result<Outs<Type>> {
        Ok(self.0.types())
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        self.0.eval(cx, ins)
    }
    fn vjp(&self, _: &mut Graph, _: &Site, _: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        Err(crate::base::Diagnostic::internal("a plan has no gradient"))
    }
    fn can_fail(&self) -> bool {
        true
    }
    fn batch(&self, _: &mut Batching, _: &[Batched]) -> Result<Outs<Batched>> {
        Err(crate::base::Diagnostic::internal("a plan has no rows"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::types::{DType, Sym};
    use std::sync::Arc;

    #[test]
    fn extents_are_read_and_known() {
        let x = Array::zeros(DType::Bool, &[2, 0, 5]);
        assert_eq!(apply(DimOf { axis: 2 }, std::slice::from_ref(&x)), Array::scalar(5i64));
        assert_eq!(build_error(DimOf { axis: 3 }, &[x]).code, "E0222");
        let n = Dim::sym(Sym::fresh());
        let arg = Arg { ty: Type::new(DType::F64, [n.clone()]), value: None, dim: None };
        assert_eq!(DimOf { axis: 0 }.dim(&[arg]), Some(n));
    }

    /// The cotangents of a maximum, each of whose inputs has the whole one where it ties.
    #[test]
    fn cotangents_go_where_they_are_sent() {
        let ins = [Array::vector(&[1.0, 2.0, 3.0]), Array::scalar(2f32), Array::vector(&[10.0, 20.0, 40.0])];
        for known in [true, false] {
            let (mut g, v) = graph_of(&ins, known);
            let (first, second, greater) = (g.ge(v[0], v[1]), g.ge(v[1], v[0]), g.maximum(v[0], v[1]));
            let y = g.emit(GradTo {}, &[greater, v[0], first, v[1], second]);
            let found = vjp_of(&mut g, y, v[2], &v[..2]).unwrap();
            let wanted = [y, found[0].unwrap(), found[1].unwrap()];
            let expected = [Array::vector(&[2.0, 2.0, 3.0]), Array::vector(&[0.0, 20.0, 40.0]), Array::scalar(30f32)];
            assert_eq!(eval_graph(&g, &ins, &wanted).unwrap(), expected);
            assert_eq!(vjp_of(&mut g, y, v[2], &[greater]).unwrap(), [None]);
        }
        assert_eq!(build_error(GradTo {}, &ins[..2]).code, "E0222");
        assert_eq!(build_error(GradTo {}, &ins).code, "E0220");
    }

    #[test]
    fn assertions_pass_or_say_why_not() {
        let op = Assert { message: "h must be positive".into() };
        let x = Array::scalar(2i8);
        assert_eq!(apply(op.clone(), &[x.clone(), Array::vector(&[true, true]), Array::zeros(DType::Bool, &[0])]), x);
        let e = run_error(op, &[x, Array::vector(&[true, false])]);
        assert_eq!((e.code, e.title.as_str()), ("E0301", "an assertion failed: h must be positive"));
    }

    #[test]
    fn ifelse_takes_one_branch() {
        let (a, b) = (Array::vector(&[1.0]), Array::vector(&[2.0, 3.0]));
        assert_eq!(apply(IfElse {}, &[Array::scalar(true), a.clone(), b.clone()]), a);
        assert_eq!(apply(IfElse {}, &[Array::scalar(0i32), a.clone(), b.clone()]), b);
        let e = run_error(IfElse {}, &[Array::scalar(true), a.clone(), b.cast(DType::F32)]);
        assert_eq!(
            (e.code, e.title.as_str()),
            ("E0220", "the branches of `ifelse` must agree in dtype and rank, got float64[?] and float32[?]")
        );
        assert_eq!(run_error(IfElse {}, &[Array::vector(&[true]), a, b]).code, "E0222");
    }

    #[test]
    fn ifelse_has_gradients() {
        for cond in [true, false] {
            for ins in [[sample(&[2], 1), sample(&[3], 2)], [sample(&[], 1), sample(&[], 2)]] {
                let build = |g: &mut Graph, v: &[Value]| {
                    let out = g.emit(IfElse {}, v);
                    g.mul(out, out)
                };
                let [a, b] = ins;
                let ins = [Array::scalar(cond), a, b];
                check_vjp(build, &ins);
                check_vjp2(build, &ins);
            }
        }
    }

    /// d(x²) = 2x · ct with ct = x clipped to [−0.1, 0.2] on its way.
    #[test]
    fn cotangents_are_clipped_and_stopped() {
        let (mut g, v) = graph_of(&[Array::vector(&[1.0, 2.0, 3.0, 4.0]), Array::vector(&[-1.0, 0.1, 5.0, f64::NAN])], true);
        let clip = g.emit(GradClip { low: Bits(-0.1), high: Bits(0.2) }, &v[..1]);
        let ct = vjp_of(&mut g, clip, v[1], &v[..1]).unwrap()[0].unwrap();
        let got = eval_graph(&g, &[Array::vector(&[0.0; 4]), Array::vector(&[-1.0, 0.1, 5.0, f64::NAN])], &[ct]).unwrap();
        assert_close(&got[0].to_f64_vec(), &[-0.1, 0.1, 0.2, f64::NAN], 0.0, "clipped");
        let stopped = g.emit(StopGradient {}, &v[..1]);
        assert_eq!(vjp_of(&mut g, stopped, v[1], &v[..1]).unwrap(), [None]);
        assert_eq!(build_error(GradClip { low: Bits(1.0), high: Bits(0.0) }, &[Array::scalar(1.0)]).code, "E0406");
    }

    /// Promises a float64 scalar, gives what it is told to.
    struct Liar(Array);
    impl ExternOp for Liar {
        fn key(&self) -> &str {
            "liar"
        }
        fn infer(&self, _: &[Arg]) -> Result<Outs<Type>> {
            Ok(one(Type::scalar(DType::F64)))
        }
        fn eval(&self, _: &[Array]) -> Result<Outs<Array>> {
            Ok(one(self.0.clone()))
        }
    }

    #[test]
    fn user_ops_keep_their_promise() {
        let op = |x: Array| Op::Extern(ExternRef(Arc::new(Liar(x))));
        assert_eq!(apply(op(Array::scalar(1.5)), &[]), Array::scalar(1.5));
        let e = run_error(op(Array::vector(&[1i64])), &[]);
        assert_eq!((e.code, e.title.as_str()), ("E0302", "op `liar` promised float64 for output 0 and gave int64[1]"));
    }
}
