//! A region of a graph: node by node, or as a list of kernels, as the step of a loop is, where that is estimated to be quicker.

use super::info::VariantInfo;
use super::loops::NativeLoop;
use super::nodes::{Beside, planned_nodes, quick_nodes};
use super::planner::Planner;
use super::sides::names;
use super::tier::Engine;
use super::variants::{Made, Variants};
use crate::backend::gpu::DeviceRef;
#[cfg(any(test, feature = "testing"))]
use crate::base::small;
use crate::base::{Id, Result};
use crate::eval::Walk;
use crate::eval::walk::eager;
use crate::ir::op::{NativeOp, NativeRef, Outs};
use crate::ir::print::print_plan;
use crate::ir::{EvalCx, Graph, Node, Op, Scan, Value};
use crate::lower::cost::walked;
use crate::lower::groups::Part;
use crate::lower::mixed;
use crate::lower::regions::{self, Regions, as_loop};
use crate::scan::retype;
use crate::types::{Array, DType, Dim, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Nodes outside of loops.
pub struct Region {
    types: Outs<Type>,
    /// Node by node.
    walk: Walk<Arc<Graph>>,
    /// As a loop of one step.
    list: NativeLoop,
    /// The inputs that are its sequences, with one row each, and those that it captures.
    seqs: Vec<usize>,
    captured: Vec<usize>,
    variants: Variants<Choice>,
    /// It was asked for on a device.
    device: Option<DeviceRef>,
}

/// What is quicker for inputs of certain types.
#[derive(Default)]
struct Choice {
    calls: AtomicU32,
    list: OnceLock<bool>,
}

/// So many calls go node by node before a list is thought of: many functions are called once.
const CALLS: u32 = 1;
/// What a list takes for each of its parts before it runs: operands are found and checked.
const BOUND: f64 = 300.0;
/// Nanoseconds from which on a region goes node by node: nodes look at the clock, and what is large is shared among threads.
const MOST: f64 = 2e7;

impl Region {
    fn new(graph: Graph, planner: Planner) -> Result<Region> {
        let types: Outs<Type> = graph.results().iter().map(|&v| graph.ty(v).clone()).collect();
        let (scan, seqs, captured) = as_loop(&graph)?;
        let outs = types.iter().map(|ty| ty.rows(Dim::known(1))).chain([Type::scalar(DType::I64)]).collect();
        let variants = Variants::whole(graph.params().len());
        // Without regions of its own.
        let list = NativeLoop::alone(Arc::new(scan), outs, planner).planned();
        let device = if let Engine::Device(device) = planner.engine { Some(device) } else { None };
        Ok(Region { types, walk: Walk::new(Arc::new(planned_nodes(&graph, planner)?)), list, seqs, captured, variants, device })
    }

    /// The device that it was asked for on.
    pub fn device(&self) -> Option<String> {
        self.device.map(|device| device.0.name().to_string())
    }
    /// The names of what it computes.
    pub fn ops(&self) -> Vec<&str> {
        names(&self.list.scan().body, None)
    }
    /// The nodes, for where they go one by one.
    pub fn nodes(&self) -> &Graph {
        self.walk.graph()
    }
    /// What became of it as a list in the last calls: where it ran, why parts of it ran elsewhere, and the bytes that crossed; `None` where it
    /// goes node by node.
    pub fn placed(&self) -> Option<VariantInfo> {
        let lists = self.variants.all().0.iter().any(|choice| choice.list.get() == Some(&true));
        self.list.variants().0.pop().filter(|_| self.device.is_some() && lists)
    }
    /// True where it never ran.
    pub fn is_new(&self) -> bool {
        self.variants.all().0.is_empty()
    }
    /// Why it goes node by node on a device, where it was asked for there.
    pub fn why_nodes(&self) -> Option<String> {
        self.list.variants().0.pop().filter(|_| self.device.is_some())?.reason
    }
    /// The inputs of the loop.
    fn inputs(&self, ins: &[Array]) -> SmallVec<[Array; 8]> {
        let row = |&k: &usize| {
            let shape: SmallVec<[usize; 6]> = std::iter::once(1).chain(ins[k].shape().iter().copied()).collect();
            ins[k].reshaped(&shape)
        };
        let captured = self.captured.iter().map(|&k| ins[k].clone());
        std::iter::once(Array::scalar(1i64)).chain(self.seqs.iter().map(row)).chain(captured).collect()
    }

    /// True where a list is estimated to be quicker.
    fn quicker(&self, ins: &[Array]) -> bool {
        let scan: &Scan = self.list.scan();
        let types: Vec<Type> = self.inputs(ins).iter().map(Array::ty).collect();
        let types = retype::param_types(scan, &types);
        let mut values = vec![None; types.len()];
        scan.captured.ids().zip(&self.captured).for_each(|(id, &k)| values[scan.captured_param(id)] = Some(ins[k].clone()));
        let Ok(body) = retype::specialised(&scan.body, &types, &values) else { return false };
        let Ok(list) = mixed::lower(scan, &types, &values, &[]) else { return false };
        let (parts, by_nodes) = (list.items.len() + list.writes.len(), walked(&body));
        by_nodes < MOST && list.beside_nodes() + BOUND * (parts as f64) < by_nodes
    }
    /// True where a test wants lists however small arrays are.
    #[cfg(any(test, feature = "testing"))]
    fn tried(&self) -> bool {
        small::in_blocks()
    }
    /// True where a test wants lists however small arrays are.
    #[cfg(not(any(test, feature = "testing")))]
    fn tried(&self) -> bool {
        false
    }

    fn by_list(&self, cx: &mut EvalCx, ins: &[Array]) -> Result<Outs<Array>> {
        let mut own = self.inputs(ins);
        let mut outs = cx.as_one(|cx| self.list.eval(cx, &mut own))?;
        outs.pop();
        let row = |x: Array| x.reshaped(&SmallVec::<[usize; 6]>::from_slice(&x.shape()[1..]));
        Ok(outs.into_iter().map(row).collect())
    }
}

impl NativeOp for Region {
    fn name(&self) -> &str {
        "region"
    }
    fn types(&self) -> Outs<Type> {
        self.types.clone()
    }
    fn plan(&self) -> String {
        let as_list = self.variants.all().0.iter().any(|choice| choice.list.get() == Some(&true));
        if as_list { self.list.plan() } else { print_plan(self.nodes(), "nodes") }
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let choice = self.variants.get(ins, || Made { value: Choice::default(), cost: 0, given: vec![] });
        let list = self.device.is_some() && *choice.list.get_or_init(|| self.list.is_there(&self.inputs(ins)))
            || self.tried()
            || self.device.is_none() && choice.calls.load(Ordering::Relaxed) >= CALLS && *choice.list.get_or_init(|| self.quicker(ins));
        if list {
            match self.by_list(cx, ins) {
                // Node by node for errors: of several the first one counts.
                Err(e) if e.of_values() => {}
                done => return done,
            }
        }
        choice.calls.fetch_add(1, Ordering::Relaxed);
        cx.as_one(|cx| self.walk.run(cx, &mut self.walk.slots(), &mut ins.to_vec())).map(Outs::from_vec)
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// The graph with its regions as nodes; `None` where it has none.
///
/// # Errors
/// An internal error where the graph is not consistent.
pub fn outlined(graph: &Graph, planner: Planner) -> Result<Option<Graph>> {
    let engine = planner.engine;
    let live = graph.needed(graph.results());
    let least = if matches!(engine, Engine::Device(_)) { regions::THERE } else { regions::HERE };
    if !regions::possible(graph, &live, least) {
        return Ok(None);
    }
    let Beside { heads, feet } = Beside::new(graph, &mut live.clone(), engine);
    let quick = quick_nodes(graph, &live, &|n| !heads.has(n) && !feet.has(n), engine)?;
    let strict = eager(graph, graph.results());
    let free = |id, node: &_| strict[Id::idx(id)] && !heads.has(node) && !feet.has(node) && !quick.contains(&id);
    let regions = Regions::new(graph, &live, &free, &|id| feet.reads(id), least);
    if regions.is_empty() {
        return Ok(None);
    }
    let mut out = Graph::new();
    let mut image: FxHashMap<Value, Value> = FxHashMap::default();
    for &p in graph.params() {
        image.insert(p, out.param(graph.ty(p).clone(), graph.name(p).map(|n| &**n)));
    }
    for id in regions.order(graph) {
        let node = &graph.nodes()[id];
        if !live[id.idx()] {
            continue;
        }
        out.set_span(node.span);
        if let Some(k) = regions.begun(id) {
            let part = regions.part(graph, k, &live)?;
            let ins: Vec<Value> = part.ins.iter().map(|v| image[v]).collect();
            let made = out.apply(Op::Native(NativeRef(Arc::new(Region::new(part.graph, planner)?))), &ins)?;
            image.extend(part.outs.iter().copied().zip(made));
        } else if !regions.has(id) {
            let alone = matches!(engine, Engine::Device(_)) && !strict[id.idx()] && node.op.fuses() && node.outs.len() == 1;
            let made = if alone && !heads.has(node) && !feet.has(node) {
                let part = by_itself(graph, node)?;
                let ins: Vec<Value> = part.ins.iter().map(|v| image[v]).collect();
                out.apply(Op::Native(NativeRef(Arc::new(Region::new(part.graph, planner)?))), &ins)?
            } else {
                let ins: Vec<Value> = node.ins.iter().map(|v| image[v]).collect();
                out.copy(graph, id, &node.op, &ins)?
            };
            image.extend(node.outs.iter().copied().zip(made));
        }
    }
    out.set_results(graph.results().iter().map(|v| image[v]).collect::<Vec<_>>());
    Ok(Some(out))
}

/// A node as a graph of its own, with its constants of one element: what a branch alone needs is computed there, or not at all.
///
/// # Errors
/// An internal error where the graph is not consistent.
fn by_itself(graph: &Graph, node: &Node) -> Result<Part> {
    let (mut inner, mut image, mut ins) = (Graph::new(), FxHashMap::default(), vec![]);
    for &v in node.ins.iter().filter(|v| graph.const_value(**v).is_none_or(|a| a.len() > 1)) {
        if let Entry::Vacant(new) = image.entry(v) {
            ins.push(v);
            new.insert(inner.param(graph.ty(v).clone(), graph.name(v).map(|n| &**n)));
        }
    }
    let results = inner.inline(graph, &image, &node.outs)?;
    inner.set_results(results);
    Ok(Part { graph: inner, ins, outs: node.outs.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::super::plan::plan;
    use super::*;
    use crate::eval::run;
    use crate::ir::parse::parse;

    fn regions(graph: &Graph) -> Vec<&Region> {
        let natives = graph.nodes().iter().filter_map(|n| if let Op::Native(op) = &n.op { Some(op) } else { None });
        natives.filter_map(|op| op.0.as_any().downcast_ref::<Region>()).collect()
    }
    fn graph(text: &str) -> Graph {
        parse(text).unwrap_or_else(|e| panic!("{}", e.title)).1
    }
    fn numbers(shape: &[usize], from: f64) -> Array {
        Array::new(shape, (0..shape.iter().product()).map(|i| (from + i as f64 * 0.37).sin()).collect())
    }
    fn bits(found: Result<Vec<Array>>) -> std::result::Result<Vec<(Vec<usize>, Vec<u64>)>, String> {
        found.map(|a| a.iter().map(|x| (x.shape().to_vec(), x.bits())).collect()).map_err(|e| e.title.clone())
    }

    /// Votes of one layer for another, normalised and summed; an element that an argument names; how many rows there are.
    const VOTES: &str = "fn f(w: f64[n0, n1, n2], b: f64[n3, n4], k: i64) {
  %0 = reduce[kind=max, axes=[1], keepdims=true](b)
  %1 = sub(b, %0)
  %2 = exp(%1)
  %3 = reduce[kind=sum, axes=[1], keepdims=true](%2)
  %4 = div(%2, %3)
  %5 = expand[axes=[2]](%4)
  %6 = mul(%5, w)
  %7 = reduce[kind=sum, axes=[0], keepdims=false](%6)
  %8 = mul(%7, %7)
  %9 = reduce[kind=sum, axes=[1], keepdims=false](%8)
  %10 = index[pattern=i](%9, k)
  %11 = dim[axis=0](%6)
  %12 = broadcast_to(%10, %11)
  return %9, %10, %12, %7
}";

    #[test]
    fn lists_have_the_laws_bits_and_errors_for_all_extents() {
        let graph = graph(VOTES);
        for engine in [Engine::Vm, Engine::Jit] {
            let planned = plan(&graph, engine).unwrap();
            assert_eq!((regions(&planned).len(), planned.nodes().len()), (1, 1), "{}", planned.to_text("plan"));
            for (n, m, d) in [(3, 4, 5), (1, 1, 1), (40, 10, 8), (2, 0, 3), (0, 2, 2), (7, 1, 3)] {
                for k in [0, -1, 9, 10_i64] {
                    let args = [numbers(&[n, m, d], 0.1), numbers(&[n, m], 2.0), Array::scalar(k)];
                    let law = bits(run(&graph, &mut EvalCx::new(), &args));
                    let listed = small::blocks_of_two(|| run(&planned, &mut EvalCx::new(), &args)).0;
                    assert_eq!(law, bits(listed), "{n} {m} {d}, element {k}");
                    for _ in 0..3 {
                        assert_eq!(law, bits(run(&planned, &mut EvalCx::new(), &args)), "{n} {m} {d}, element {k}");
                    }
                }
            }
            // Extents that do not fit.
            let args = [numbers(&[3, 4, 5], 0.1), numbers(&[2, 4], 2.0), Array::scalar(0i64)];
            let law = bits(run(&graph, &mut EvalCx::new(), &args));
            assert!(law.is_err() && law == bits(small::blocks_of_two(|| run(&planned, &mut EvalCx::new(), &args)).0));
        }
    }

    /// Extremes along rows: with rows of a few vectors the evaluator's loops are quicker than a kernel per row.
    const EXTREMES: &str = "fn f(x: f64[n0, n1]) {
  %0 = reduce[kind=max, axes=[1], keepdims=true](x)
  %1 = sub(x, %0)
  %2 = reduce[kind=max, axes=[1], keepdims=true](%1)
  %3 = mul(%1, %2)
  %4 = reduce[kind=max, axes=[1], keepdims=true](%3)
  %5 = sub(%3, %4)
  return %5
}";

    #[test]
    fn from_the_second_call_on_the_quicker_way_is_taken() {
        let votes = |n: usize| vec![numbers(&[n, 10, 8], 0.1), numbers(&[n, 10], 2.0), Array::scalar(1i64)];
        let rows = |m: usize, n: usize| vec![numbers(&[m, n], 0.1)];
        for (text, args, listed) in
            [(VOTES, votes(2), true), (VOTES, votes(500), true), (EXTREMES, rows(256, 256), true), (EXTREMES, rows(300, 33), false)]
        {
            let planned = plan(&graph(text), Engine::Vm).unwrap();
            let choice = |ins: &[Array]| regions(&planned)[0].variants.get(ins, || unreachable!("called before"));
            run(&planned, &mut EvalCx::new(), &args).unwrap();
            assert_eq!(choice(&args).list.get(), None);
            run(&planned, &mut EvalCx::new(), &args).unwrap();
            assert_eq!(choice(&args).list.get(), Some(&listed), "{:?}", args[0].shape());
        }
    }

    /// Before a loop, between it and another one, behind both: three regions, the last of which reads of all.
    #[test]
    fn loops_stand_between_regions() {
        let half = |x: &str, from: usize| {
            let v = |k: usize| format!("%{}", from + k);
            format!(
                "  {} = expand[axes=[1]]({x})
  {} = mul({}, w)
  {} = reduce[kind=sum, axes=[0], keepdims=false]({})
  {} = tanh({})
  {} = reduce[kind=max, axes=[0], keepdims=true]({})
  {} = sub({}, {})
",
                v(0),
                v(1),
                v(0),
                v(2),
                v(1),
                v(3),
                v(2),
                v(4),
                v(3),
                v(5),
                v(3),
                v(4)
            )
        };
        let scan = |x: &str, name: &str| {
            format!(
                "  {name} = scan n_steps=4:i64 {{
    state h init={x} reads=[0] writes=[1] keep=last(1)
    step t
    %{}0 = sin(h)
    next h = %{}0
  }}
",
                name.trim_start_matches('%'),
                name.trim_start_matches('%')
            )
        };
        let text = format!(
            "fn f(x: f64[n0], w: f64[n0, n0]) {{
{}  %6 = expand[axes=[0]](%5)
{}  %8 = squeeze[axes=[0]](%7.h)
{}  %15 = expand[axes=[0]](%14)
{}  %17 = squeeze[axes=[0]](%16.h)
  %18 = add(%17, %5)
{}  return %24, %3, %12
}}",
            half("x", 0),
            scan("%6", "%7"),
            half("%8", 9),
            scan("%15", "%16"),
            half("%18", 19),
        );
        let graph = graph(&text);
        let planned = plan(&graph, Engine::Vm).unwrap();
        assert_eq!(regions(&planned).len(), 3, "{}", planned.to_text("plan"));
        for n in [1, 2, 9] {
            let args = [numbers(&[n], 0.3), numbers(&[n, n], 1.0)];
            let law = bits(run(&graph, &mut EvalCx::new(), &args));
            assert!(law.is_ok());
            assert_eq!(law, bits(small::blocks_of_two(|| run(&planned, &mut EvalCx::new(), &args)).0), "{n} elements");
        }
    }

    #[test]
    fn what_a_branch_alone_needs_is_in_no_region() {
        let text = VOTES.replace(
            "  return %9, %10, %12, %7",
            "  %13 = ge(k, 0:i64)
  %14 = ifelse(%13, %9, %8)
  return %14",
        );
        let text = text.replace(
            "%14 = ifelse(%13, %9, %8)",
            "%15 = neg(%9)
  %14 = ifelse(%13, %9, %15)",
        );
        let graph = graph(&text);
        let planned = plan(&graph, Engine::Vm).unwrap();
        assert!(regions(&planned).is_empty(), "{}", planned.to_text("plan"));
        // What may fail is not computed where the other branch is taken.
        let args = [numbers(&[3, 4, 5], 0.1), numbers(&[3, 4], 2.0), Array::scalar(2i64)];
        assert_eq!(bits(run(&graph, &mut EvalCx::new(), &args)), bits(run(&planned, &mut EvalCx::new(), &args)));
    }
}
