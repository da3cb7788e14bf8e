//! Runs the passes.

use super::drops::{Whole, Within};
use super::local::{self, Index, number};
use super::options::Options;
use super::passes::scan_merge;
use super::pipeline::{PASSES, Pass, Run, Stage};
use super::rebuild::copy_with;
use super::report::{Entry, FAILED, Report};
use crate::base::Result;
use crate::ir::verify::verify;
use crate::ir::{Graph, Op, Scan, Value};
use crate::types::Dim;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Display;
use std::rc::Rc;
use std::sync::Arc;

/// What passes share.
pub struct Cx {
    /// What they did.
    pub report: Report,
    /// Computation may be moved to where it is not certain to be needed, though it might fail there: a run that fails is done again by the
    /// graph as it was written. Operations of users would notice that.
    pub speculate: bool,
    /// The whole graph, before the pass.
    pub(super) whole: Rc<Whole>,
    /// The loop whose body the pass is given; `None` where that is the whole graph.
    pub(super) scan: Option<Within>,
    /// Extents that are equal in every step of that loop, or the call fails: those of rows that a state reads and writes.
    pub(super) alike: Vec<[Dim; 2]>,
}

impl Cx {
    /// Notes that a pass did something to a loop or operation.
    pub fn done(&mut self, pass: &'static str, place: impl Display, text: impl Display) {
        self.report.entries.push(Entry { pass, place: place.to_string(), done: true, text: text.to_string() });
    }
    /// Notes why a pass left a loop or operation as it is.
    pub fn left(&mut self, pass: &'static str, place: impl Display, why: impl Display) {
        self.report.entries.push(Entry { pass, place: place.to_string(), done: false, text: why.to_string() });
    }
}

/// How often loops are looked at again after rules have simplified what passes over loops left, and how often where two became one loop,
/// which may hold two that become one.
const ROUNDS: [usize; 2] = [3, 4];

/// The graph optimised, and what was done to it. Parameters, results and their types stay.
///
/// # Errors
/// Internal ones: a pass broke the graph.
pub fn optimise(graph: impl Into<Arc<Graph>>, options: &Options) -> Result<(Arc<Graph>, Report)> {
    let graph = graph.into();
    let passes: Vec<&Pass> = PASSES.iter().filter(|p| options.runs(p.name)).collect();
    if passes.is_empty() {
        return Ok((graph, Report::default()));
    }
    let of = |stage: Stage| passes.iter().copied().filter(|p| p.stage == stage).collect::<Vec<&Pass>>();
    let (rules, loops, last) = (of(Stage::Always), of(Stage::Loops), of(Stage::Last));
    let speculate = options.speculates() && !graph.whole().user_ops;
    let cx = Cx { report: Report::default(), speculate, whole: Whole::new(graph.clone()), scan: None, alike: vec![] };
    let mut driver = Driver { cx, present: Present::of(&graph), graph };
    driver.all(&rules)?;
    for round in 1..=ROUNDS[1] {
        let merged = driver.cx.report.count(scan_merge::NAME);
        driver.share()?;
        if loops.is_empty() || !driver.all(&loops)? {
            break;
        }
        let opened = driver.cx.report.count(scan_merge::NAME) > merged;
        let simpler = driver.all(&rules)?;
        if !opened && (round == ROUNDS[0] || !simpler && round > 1) {
            break;
        }
    }
    driver.all(&last)?;
    Ok((driver.graph, driver.cx.report))
}

/// The ops of a graph and of its loops' bodies: a pass that concerns others need not look.
pub struct Present {
    ops: Vec<bool>,
    loops: bool,
}

impl Present {
    fn of(graph: &Graph) -> Present {
        let mut present = Present { ops: vec![false; Op::OTHERS + 1], loops: false };
        present.note(graph, &mut FxHashSet::default());
        present
    }
    fn note(&mut self, graph: &Graph, seen: &mut FxHashSet<*const Scan>) {
        for node in graph.nodes().iter() {
            self.ops[node.op.number()] = true;
            if let Some(scan) = node.op.as_scan().filter(|scan| seen.insert(Arc::as_ptr(scan))) {
                self.loops = true;
                self.note(&scan.body, seen);
            }
        }
    }
    /// True where the op of this number is among them.
    pub fn has(&self, op: usize) -> bool {
        self.ops[op]
    }
}

struct Driver {
    cx: Cx,
    graph: Arc<Graph>,
    present: Present,
}

/// The images of loops: equal loops are the same object, and stay it.
type Loops = FxHashMap<Arc<Scan>, Arc<Scan>>;

impl Driver {
    /// Runs passes one after the other, neighbouring rules in one walk; true where something changed.
    fn all(&mut self, passes: &[&Pass]) -> Result<bool> {
        let mut changed = false;
        for group in passes.chunk_by(|a, b| matches!((a.run, b.run), (Run::Rules(_), Run::Rules(_)))) {
            changed |= match group[0].run {
                Run::Rules(_) => {
                    let index = Index::new(group);
                    index.concerns(&self.present) && self.one(group[0], &mut |cx, graph| local::run(cx, graph, &index))?
                }
                Run::Loops(pass) | Run::Inward(pass) if self.present.loops => {
                    self.one(group[0], &mut |cx, graph| if has_loops(graph) { pass(cx, graph) } else { Ok(None) })?
                }
                Run::Ops(names, pass) if names.iter().any(|name| self.present.has(number(name))) => {
                    self.one(group[0], &mut |cx, graph| pass(cx, graph))?
                }
                Run::Loops(_) | Run::Inward(_) | Run::Ops(..) => false,
            };
        }
        Ok(changed)
    }
    /// Makes loops that became equal the same object: what reads them is equal only then.
    fn share(&mut self) -> Result<()> {
        if self.present.loops
            && let Some(graph) = shared(&self.graph, &mut Loops::default(), &mut FxHashMap::default())?
        {
            self.put(graph);
        }
        Ok(())
    }
    /// Goes on with another graph.
    fn put(&mut self, graph: Graph) {
        self.graph = Arc::new(graph.pruned());
        self.cx.whole = Whole::new(self.graph.clone());
        self.present = Present::of(&self.graph);
    }
    /// Runs one pass everywhere. One that cannot finish leaves the graph as it was.
    fn one(&mut self, pass: &Pass, run: &mut dyn FnMut(&mut Cx, &Graph) -> Result<Option<Graph>>) -> Result<bool> {
        let made = if self.present.loops {
            let order = if matches!(pass.run, Run::Inward(_)) { inward } else { outward };
            order(&mut self.cx, &self.graph, &mut Loops::default(), run)
        } else {
            self.cx.report.walked += self.graph.nodes().len();
            run(&mut self.cx, &self.graph)
        };
        match made {
            Ok(None) => return Ok(false),
            Ok(Some(graph)) => self.put(graph),
            Err(e) => {
                self.cx.left(pass.name, FAILED, &e.title);
                return Ok(false);
            }
        }
        if cfg!(debug_assertions) {
            verify(&self.graph).map_err(|e| e.note(format!("after pass {}", pass.name)))?;
        }
        Ok(true)
    }
}

fn has_loops(graph: &Graph) -> bool {
    graph.nodes().iter().any(|n| n.op.as_scan().is_some())
}

/// A pass on one graph.
type OnGraph<'a> = &'a mut dyn FnMut(&mut Cx, &Graph) -> Result<Option<Graph>>;

/// A pass on a graph and the bodies of its loops, in some order.
type Order = fn(&mut Cx, &Graph, &mut Loops, OnGraph) -> Result<Option<Graph>>;

/// A pass on a graph, after the bodies of its loops.
fn outward(cx: &mut Cx, graph: &Graph, loops: &mut Loops, run: OnGraph) -> Result<Option<Graph>> {
    let inner = bodies(cx, graph, loops, outward, run)?;
    let graph = inner.as_ref().unwrap_or(graph);
    cx.report.walked += graph.nodes().len();
    Ok(run(cx, graph)?.or(inner))
}

/// A pass on a graph, before the bodies of its loops.
fn inward(cx: &mut Cx, graph: &Graph, loops: &mut Loops, run: OnGraph) -> Result<Option<Graph>> {
    cx.report.walked += graph.nodes().len();
    let made = run(cx, graph)?.map(|graph| graph.pruned());
    let inner = bodies(cx, made.as_ref().unwrap_or(graph), loops, inward, run)?;
    Ok(inner.or(made))
}

/// Pairs of extents that a step reads of a state and writes for it, and that are not known to be equal.
fn alike(scan: &Scan) -> Vec<[Dim; 2]> {
    let row = |v: Option<&Value>| v.map(|&v| scan.body.ty(v).dims.iter().cloned()).into_iter().flatten();
    let pairs = |id| row(scan.read_values(id).first()).zip(row(scan.write_values(id).first()));
    scan.states.ids().flat_map(pairs).filter(|(read, written)| read != written).map(|(read, written)| [read, written]).collect()
}

/// The graph with every loop's body run through a pass; `None` where none changed.
fn bodies(cx: &mut Cx, graph: &Graph, loops: &mut Loops, order: Order, run: OnGraph) -> Result<Option<Graph>> {
    for scan in graph.nodes().iter().filter_map(|n| n.op.as_scan()) {
        if !loops.contains_key(scan) {
            let outer = (cx.scan.replace(Within::of(scan)), std::mem::replace(&mut cx.alike, alike(scan)));
            let body = order(cx, &scan.body, loops, run);
            (cx.scan, cx.alike) = outer;
            let body = body?;
            loops.insert(scan.clone(), body.map_or_else(|| scan.clone(), |b| Arc::new(scan.with_body(b.pruned()))));
        }
    }
    with_images(graph, loops)
}

/// The graph with the images of its loops; `None` where these are the loops themselves.
fn with_images(graph: &Graph, loops: &Loops) -> Result<Option<Graph>> {
    if graph.nodes().iter().filter_map(|n| n.op.as_scan()).all(|scan| loops[scan] == *scan) {
        return Ok(None);
    }
    copy_with(graph, |rebuild, id, node| match node.op.as_scan().filter(|s| loops[*s] != **s) {
        Some(scan) => rebuild.copy_as(id, &Op::Scan(loops[scan].clone())).map(|_| true),
        None => Ok(false),
    })
}

/// Loops by what is quickly said of them.
type Seen = FxHashMap<(usize, usize, usize), Vec<Arc<Scan>>>;

/// The graph with one object for equal loops; `None` where that is so.
fn shared(graph: &Graph, loops: &mut Loops, seen: &mut Seen) -> Result<Option<Graph>> {
    for scan in graph.nodes().iter().filter_map(|n| n.op.as_scan()) {
        if !loops.contains_key(scan) {
            let body = shared(&scan.body, loops, seen)?;
            let image = body.map_or_else(|| scan.clone(), |b| Arc::new(scan.with_body(b.pruned())));
            let alike = seen.entry((image.body.nodes().len(), image.states.len(), image.captured.len())).or_default();
            let first = alike.iter().find(|other| other.computes_like(&image)).cloned();
            loops.insert(
                scan.clone(),
                first.unwrap_or_else(|| {
                    alike.push(image.clone());
                    image
                }),
            );
        }
    }
    with_images(graph, loops)
}
