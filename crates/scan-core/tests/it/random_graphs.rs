//! Random small graphs as text and back. Ops and operands are drawn freely; what type inference refuses is left out.

use crate::built_graphs::round_trip;
use crate::sources::{Random, setting};
use scan_core::base::{Id, IdxVec};
use scan_core::eval;
use scan_core::ir::op::*;
use scan_core::ir::{EvalCx, Graph, Keep, NonSeq, Offsets, Scan, Seq, State, StateId, Tag, Value};
use scan_core::rewrite::{Level, Options, optimise};
use scan_core::scalar::ElemOp;
use scan_core::types::{Array, DType, Dim, Type};
use std::sync::Arc;

/// How many graphs are drawn, unless the variable `GRAPHS` says otherwise.
const GRAPHS: u64 = 300;
const DTYPES: [DType; 5] = [DType::F64, DType::F32, DType::I64, DType::Bool, DType::U8];
const ELEMENTWISE: [&str; 12] = ["add", "sub", "mul", "neg", "exp", "tanh", "minimum", "maximum", "lt", "eq", "where", "sign"];
const NAMES: [Option<&str>; 6] = [None, None, Some("x"), Some("h"), Some("a b"), Some("return")];

struct Gen {
    random: Random,
    dims: Vec<Dim>,
}

impl Gen {
    fn dim(&mut self) -> Dim {
        match self.random.below(3) {
            0 => Dim::known(3),
            1 => self.dims[0].clone(),
            _ => self.dims[1].clone(),
        }
    }
    fn name(&mut self) -> Option<&'static str> {
        *self.random.pick(&NAMES)
    }
    fn ty(&mut self) -> Type {
        let dtype = *self.random.pick(&DTYPES);
        let rank = self.random.below(3);
        Type::new(dtype, (0..rank).map(|_| self.dim()).collect::<Vec<_>>())
    }
    fn array(&mut self, ty: &Type) -> Array {
        let shape: Vec<usize> = ty.dims.iter().map(|_| 3).collect();
        let values: Vec<f64> = (0..shape.iter().product()).map(|_| self.random.unit() * 4.0).collect();
        Array::new(&shape, values).cast(DType::I64).cast(if ty.dtype.is_float() { DType::I64 } else { ty.dtype }).cast(ty.dtype)
    }
    fn value(&mut self, g: &Graph) -> Value {
        Value::new(self.random.below(g.n_values()))
    }
    fn op(&mut self) -> Op {
        let axis = self.random.below(2);
        let flag = self.random.below(2) == 0;
        match self.random.below(14) {
            0 => Reduce { kind: ReduceKind::Sum, axes: vec![axis], keepdims: flag }.into(),
            1 => Cast { dtype: *self.random.pick(&DTYPES) }.into(),
            2 => DimOf { axis }.into(),
            3 => Index { pattern: (*self.random.pick(&["i", "s:e", "::-1", ":,i", "s:"])).into() }.into(),
            4 => MatMul {}.into(),
            5 => Transpose { perm: vec![1, 0] }.into(),
            6 => Expand { axes: vec![axis] }.into(),
            7 => BroadcastLike {}.into(),
            8 => Flip { axis }.into(),
            9 => CumSum { axis, reverse: flag }.into(),
            10 => GradClip { low: Bits(-1.5), high: Bits(f64::INFINITY) }.into(),
            _ => Op::Elem(ElemOp::parse(ELEMENTWISE[self.random.below(12)]).expect("an elementwise op")),
        }
    }
    /// Adds some nodes; those that are refused are left out.
    fn grow(&mut self, g: &mut Graph, nodes: usize, depth: usize) {
        for _ in 0..nodes {
            let outs = match self.random.below(10) {
                0 => {
                    let ty = Type::known(*self.random.pick(&DTYPES), &[3][..self.random.below(2)]);
                    let array = self.array(&ty);
                    g.apply(array, &[])
                }
                1 if depth > 0 => self.scan(g, depth),
                _ => {
                    let (op, count) = (self.op(), 1 + self.random.below(3));
                    let ins: Vec<Value> = (0..count).map(|_| self.value(g)).collect();
                    g.apply(op, &ins)
                }
            };
            if let (Ok(outs), Some(name)) = (outs, self.name()) {
                g.set_name(outs[0], name);
            }
        }
    }
    /// A loop over values of the graph: sequences and initial rows are values with an axis, the first one that fits is the next row.
    fn scan(&mut self, g: &mut Graph, depth: usize) -> scan_core::base::Result<Outs<Value>> {
        let with_rows: Vec<Value> = g.value_ids().filter(|&v| g.ty(v).rank() > 0).collect();
        let n = g.int(self.random.below(4) as i64);
        let mut body = Graph::new();
        let step = self.name();
        body.param(Type::scalar(DType::I64), step);
        let mut ins = vec![n];
        let mut scan = Scan {
            name: self.name().map(Into::into),
            body: Graph::new(),
            seqs: IdxVec::new(),
            states: IdxVec::new(),
            captured: IdxVec::new(),
            until: false,
            truncate: None,
        };
        for _ in 0..self.random.below(3).min(with_rows.len()) {
            let v = *self.random.pick(&with_rows);
            ins.push(v);
            let name = self.name();
            body.param(g.ty(v).row(), name);
            scan.seqs.push(Seq { reverse: self.random.below(2) == 0, name: name.map(Into::into) });
        }
        for _ in 0..self.random.below(3).min(with_rows.len()) {
            let v = *self.random.pick(&with_rows);
            let Some(3..) = g.ty(v).dims[0].value() else { continue };
            ins.push(v);
            let reads: Offsets = [0, 1][..1 + self.random.below(2)].iter().copied().collect();
            let row = g.ty(v).row();
            reads.iter().for_each(|_| {
                body.param(row.clone(), None);
            });
            let keep = if self.random.below(2) == 0 { Keep::All } else { Keep::Last(1 + self.random.below(2)) };
            let tag = [Tag::Output, Tag::Shared, Tag::Cotangent][self.random.below(3)].clone();
            let writes = Offsets::from_slice(&[reads.len()]);
            scan.states.push(State { row, init: true, reads, writes, keep, tag, name: self.name().map(Into::into) });
        }
        for _ in 0..self.random.below(3) {
            let v = self.value(g);
            ins.push(v);
            let name = self.name();
            body.param(g.ty(v).clone(), name);
            scan.captured.push(NonSeq { name: None });
        }
        self.grow(&mut body, 5, depth - 1);
        let mut results: Vec<Value> = scan.states.iter().filter_map(|s| body.value_ids().rev().find(|&v| *body.ty(v) == s.row)).collect();
        let extra = self.value(&body);
        let row = body.ty(extra).clone();
        scan.states.push(State {
            row,
            init: false,
            reads: Offsets::new(),
            writes: Offsets::from_slice(&[0]),
            keep: Keep::All,
            tag: Tag::Output,
            name: self.name().map(Into::into),
        });
        results.push(extra);
        if let Some(cond) = body.value_ids().rev().find(|&v| *body.ty(v) == Type::scalar(DType::Bool)) {
            scan.until = true;
            results.push(cond);
        }
        body.set_results(results);
        scan.body = body;
        debug_assert!(scan.states.ids().all(|id: StateId| id.idx() < 8));
        g.apply(Op::Scan(Arc::new(scan)), &ins)
    }
}

/// Optimised by the passes that keep every bit, a graph gives the same values, and by rules alone the same errors. (Passes over loops
/// drop inputs that no step reads, with the errors of what is then not computed.)
fn optimised(g: &Graph, args: &[Array], seed: u64) {
    let before = eval::run(g, &mut EvalCx::new(), args);
    for level in [Level::FastCompile, Level::FastRun] {
        let options = Options::exact().at(level);
        let (better, report) = optimise(g.clone(), &options).expect("the passes keep the graph whole");
        assert_eq!(report.failed().count(), 0, "seed {seed}: {report}");
        let after = eval::run(&better, &mut EvalCx::new(), args);
        match (&before, &after) {
            (Ok(a), Ok(b)) if a.iter().zip(b).all(same) => {}
            (Err(a), Err(b)) if a.code == b.code => {}
            (Err(_), Ok(_)) if level == Level::FastRun => {}
            _ => panic!("seed {seed}: {before:?}\n{after:?}\n{}\n{}", g.to_text("f"), better.to_text("f")),
        }
    }
}

/// Equal bits, but a NaN is a NaN.
fn same((a, b): (&Array, &Array)) -> bool {
    let (x, y) = (a.to_f64_vec(), b.to_f64_vec());
    a.ty() == b.ty() && x.iter().zip(&y).all(|(x, y)| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()))
}

#[test]
fn random_graphs_round_trip() {
    let mut loops = 0;
    let graphs = setting("GRAPHS", GRAPHS);
    for seed in 0..graphs {
        let mut random = Gen { random: Random(seed), dims: vec![Dim::fresh(), Dim::fresh()] };
        let mut g = Graph::new();
        let types: Vec<Type> = (0..4).map(|_| random.ty()).collect();
        let args: Vec<Array> = types.iter().map(|ty| random.array(ty)).collect();
        for ty in types {
            let name = random.name();
            g.param(ty, name);
        }
        random.grow(&mut g, 14, 2);
        let results: Vec<Value> = (0..4).map(|_| random.value(&g)).collect();
        g.set_results(results);
        loops += g.nodes().iter().filter(|n| matches!(n.op, Op::Scan(_))).count();
        round_trip(&g, &args);
        optimised(&g, &args, seed);
    }
    assert!(loops > graphs as usize / 10, "only {loops} loops in {graphs} graphs");
}
