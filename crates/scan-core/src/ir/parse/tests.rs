//! Round trips and refusals.

use super::*;
use crate::base::IdxVec;
use crate::ir::op::*;
use crate::ir::scan::*;
use crate::types::Dim;
use std::sync::Arc;

/// Reads a text and expects it back unchanged.
fn same(text: &str) -> Graph {
    let (name, graph) = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    crate::ir::verify::verify(&graph).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(graph.to_text(&name), text);
    graph
}

const LOOP: &str = "\
fn f(h0: f64[1, 3], xs: f64[n0, 3], c: bool, n: i64) {
  %0 = scan \"a loop\" n_steps=n truncate=2 {             # model.py:9
    seq x = xs reverse
    state h init=h0 reads=[0] writes=[1] keep=all       # sit_sot
    state y: f64[3] reads=[] writes=[0] keep=last(1) shared  # nit_sot
    state %1 init=h0 reads=[0] writes=[1] keep=all cotangent  # sit_sot
    const w = c
    step t
    %2 = ifelse(w, x, h)                                # model.py:7
    out = ifelse(true, %1, %2)
    next h = %2
    next y = out
    next %1 = f64[3]{0.0, -0.0, nan}
    until w
  }
  %3 = dim[axis=0](%0.h)
  return %0.h, %0.2, %0.steps, %3, 1.5:f32
}
";

#[test]
fn loops_round_trip() {
    let graph = same(LOOP);
    let Op::Scan(scan) = &graph.nodes()[crate::ir::NodeId(0)].op else { panic!("no loop") };
    assert_eq!(scan.states.iter().map(|s| s.keep).collect::<Vec<_>>(), [Keep::All, Keep::Last(1), Keep::All]);
    assert_eq!((scan.truncate, scan.until, scan.seqs[SeqId(0)].reverse), (Some(2), true, true));
    assert_eq!(scan.body.nodes()[crate::ir::NodeId(0)].span.to_string(), "model.py:7");
}

#[test]
fn symbols_keep_their_meaning() {
    let graph = same("fn f(a: f64[n0, 2*n0+1], b: f64[n0-n1, -n1+4]) {\n  return a, b\n}\n");
    let dims = |i: usize| graph.ty(graph.params()[i]).dims.clone();
    assert_eq!(dims(0)[1], dims(0)[0].scale(2).add(&Dim::known(1)));
    assert_eq!(dims(0)[0].sub(&dims(1)[0]).add(&dims(1)[1]), Dim::known(4));
}

#[test]
fn types_are_written_where_inference_does_not_find_them() {
    let mut g = Graph::new();
    let n = g.param(Type::scalar(DType::I64), Some("n"));
    let (zero, one) = (g.int(0), g.int(1));
    let range = g.emit(Arange {}, &[zero, n, one]);
    let dim = g.ty(range).dims[0].clone();
    g.set_results([range]);
    assert!(g.to_text("f").contains("%0 = arange(0:i64, n, 1:i64)"), "{}", g.to_text("f"));
    let mut body = Graph::new();
    body.param(Type::scalar(DType::I64), None);
    let row = body.param(Type::new(DType::I64, [dim.clone()]), Some("row"));
    body.set_results([row]);
    let state = State {
        row: Type::new(DType::I64, [dim]),
        init: false,
        reads: Offsets::new(),
        writes: Offsets::from_slice(&[0]),
        keep: Keep::All,
        tag: Tag::Output,
        name: None,
    };
    let states: IdxVec<StateId, State> = [state].into_iter().collect();
    let scan = Scan {
        name: None,
        body,
        seqs: IdxVec::new(),
        states,
        captured: [NonSeq { name: None }].into_iter().collect(),
        until: false,
        truncate: None,
    };
    g.apply(Op::Scan(Arc::new(scan)), &[one, range]).unwrap();
    let text = g.to_text("f");
    assert!(text.contains("%0: i64[n0] = arange(0:i64, n, 1:i64)"), "{text}");
    assert!(text.contains("state %2: i64[n0] reads"), "{text}");
    same(&text);
}

#[test]
fn constants_round_trip() {
    let long: Vec<String> = (0..20).map(|i| format!("{i}")).collect();
    same(&format!(
        "fn f() {{\n  w = const 2.5:f64\n  %0 = const u8[20]{{{}}}\n  return w, %0, i8[0, 3]{{}}, -5:i16\n}}\n",
        long.join(", ")
    ));
}

#[test]
fn nested_depth_is_limited() {
    let text = format!("fn f() {{ {} ", "%0 = scan n_steps=1 { ".repeat(100_000));
    assert_eq!(parse(&text).unwrap_err().code, "E0906");
}

/// The error, and where.
fn refused(text: &str) -> (&'static str, String) {
    let e = parse(text).map(|_| ()).unwrap_err();
    (e.code, e.title.clone() + &e.notes.concat())
}

#[test]
fn errors_say_where_and_what() {
    let cases = [
        ("fn f(x: f64) {\n  return x,\n}", "E0903", "line 3, column 1: expected a value, got `}`"),
        ("fn f(x: f64) {\n  %0 = nope(x)\n}", "E0901", "line 2, column 8: there is no op named `nope`"),
        ("fn f(x: f64) {\n  %0 = dim[axes=0](x)\n}", "E0902", "line 2, column 8"),
        ("fn f(x: f64[2]) {\n  %0 = dim[axis=0, axis=0](x)\n}", "E0902", "given twice"),
        ("fn f(x: f64[2]) {\n  %0 = dim[axis=0, k=0](x)\n}", "E0902", "no attribute `k`"),
        ("fn f(x: f64) {\n  return y\n}", "E0904", "line 2, column 10: there is no value `y`"),
        ("fn f(x: f64, x: f64) {\n  return\n}", "E0904", "defined twice"),
        ("fn f() {\n  %0 = extern \"k\"()\n  return\n}", "E0905", "there is no user op `k`"),
        ("fn f(x: f64[99999999999999999]) {\n  return\n}", "E0906", "line 1, column 13"),
        ("fn f(x: f64) {\n  %0: f32 = stop_gradient(x)\n  return\n}", "E0908", "expected a type that fits float64, got float32"),
        ("fn f(n: i64) {\n  %0 = scan n_steps=n { state y: f64 reads=[] writes=[0] keep=all }\n  return\n}", "E0907", "`next`"),
        ("fn f(n: f64) {\n  %0 = scan n_steps=n { }\n  return\n}", "E0916", "line 2, column 8"),
        ("fn f() {\n  return 300:u8\n}", "E0903", "line 2, column 10: expected a number of dtype uint8, got `300`"),
        ("fn f() {\n  return \"x\n}", "E0903", "line 2, column 12"),
        ("fn f() {\n  return ~\n}", "E0903", "no token starts with '~'"),
    ];
    for (text, code, what) in cases {
        let (got, title) = refused(text);
        assert!(got == code && title.contains(what), "{text}\nexpected {code} {what}\ngot {got} {title}");
    }
}

/// Doubles, and counts its evaluations: not pure.
struct Double;

impl ExternOp for Double {
    fn key(&self) -> &str {
        "my \"double\""
    }
    fn pure(&self) -> bool {
        false
    }
    fn infer(&self, ins: &[Arg]) -> Result<Outs<Type>> {
        Ok(ins.iter().map(|a| a.ty.clone()).collect())
    }
    fn eval(&self, ins: &[Array]) -> Result<Outs<Array>> {
        Ok(ins.iter().cloned().collect())
    }
}

#[test]
fn user_ops_go_by_their_key() {
    let double = ExternRef(Arc::new(Double));
    let find = |key: &str, _: &[Type]| (key == "my \"double\"").then(|| double.clone());
    let text = "fn f(x: f64[3]) {
  extern \"my \\\"double\\\"\"()
  %0: f64[3] = extern \"my \\\"double\\\"\"(x)
  %1: f64[3], y: f64[3] = extern \"my \\\"double\\\"\"(%0, x)
  %2: f64[3] = extern \"my \\\"double\\\"\"(x)
  return %1, y, %2
}
";
    let (_, graph) = parse_with(text, &Context { ops: &find, ..Context::default() }).unwrap();
    assert_eq!(graph.to_text("f"), text);
    assert_eq!(graph.nodes().len(), 4);
}

#[test]
fn a_module_has_many_functions() {
    let one = "fn a(x: f64[n0]) {\n  return x\n}\n";
    let two = "fn b(x: f64[n0]) {\n  %0 = dim[axis=0](x)\n  return %0\n}\n";
    let module = parse_module(&format!("{one}{two}"), &Context::default()).unwrap();
    assert_eq!(module.iter().map(|(name, g)| g.to_text(name)).collect::<String>(), format!("{one}{two}"));
    assert_eq!(parse(&format!("{one}{two}")).unwrap_err().code, "E0903");
    assert!(parse_module("", &Context::default()).unwrap().is_empty());
}

#[test]
fn constants_may_be_kept_elsewhere() {
    let text = "fn f(x: f64[3]) {\n  table = const tensor \"a b\"\n  %0 = add(x, table)\n  return %0\n}\n";
    let tensors = |name: &str| (name == "a b").then(|| Array::vector(&[1.0, 2.0, 3.0]));
    let (name, graph) = parse_with(text, &Context { tensors: &tensors, ..Context::default() }).unwrap();
    assert_eq!(crate::ir::print::print_with(&graph, &name, &mut |_| Some("a b".into())), text);
    assert_eq!(parse(text).unwrap_err().code, "E0924");
    assert_eq!(parse("fn f() {\n  %0 = const tensor 3\n  return %0\n}").unwrap_err().code, "E0903");
    let short = Context { most: 9, ..Context::default() };
    assert_eq!(parse_with(text, &short).unwrap_err().code, "E0906");
}
