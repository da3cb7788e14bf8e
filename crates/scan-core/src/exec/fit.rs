//! Whether the extents of a call fit: types are inferred once more, with the extents that the arguments have.

use crate::base::{Id, Result};
use crate::expr::Var;
use crate::expr::extract::Extract;
use crate::ir::op::{Arg, Outs};
use crate::ir::{Graph, Op, Scan, Value};
use crate::scan::retype::{param_types, state_row};
use crate::types::{Array, Dim, Extents, Sym, Type};
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

/// For which extents of its parameters all of a graph fits. What depends on values (indices, counts) is not asked here.
pub struct Fit {
    /// Parameters and axes whose extents types do not tell.
    open: Box<[(usize, usize)]>,
    /// Extents there, of the calls that were asked for last, and whether all fits.
    kept: RwLock<Vec<(Extents, bool)>>,
    /// Extents that fit, of the last call: found without a lock.
    recent: Recent,
}

/// Answers are kept for so many extents.
const KEPT: usize = 64;

impl Fit {
    /// Of a graph; no answers yet.
    pub fn new(graph: &Graph) -> Fit {
        let open = |(k, v): (usize, &Value)| {
            let dims = graph.ty(*v).dims.iter().enumerate();
            dims.filter(|d| d.1.value().is_none()).map(move |d| (k, d.0)).collect::<Vec<_>>()
        };
        let open: Box<[_]> = graph.params().iter().enumerate().flat_map(open).collect();
        let recent = Recent::new(open.len());
        Fit { open, kept: RwLock::default(), recent }
    }

    /// True where, for arguments of such extents, no op of the graph meets extents that do not fit, in loops neither.
    pub fn holds(&self, graph: &Graph, args: &[Array]) -> bool {
        let extents = || self.open.iter().map(|at| args[at.0].shape()[at.1]);
        self.recent.is(extents()) || self.known(extents().collect()).unwrap_or_else(|| self.find(graph, args, extents().collect()))
    }

    /// An answer that is kept.
    fn known(&self, extents: Extents) -> Option<bool> {
        let kept = self.kept.read().unwrap_or_else(|e| e.into_inner());
        let fits = kept.iter().find(|k| k.0 == extents)?.1;
        if fits {
            self.recent.set(&extents);
        }
        Some(fits)
    }

    fn find(&self, graph: &Graph, args: &[Array], extents: Extents) -> bool {
        let types: Vec<Type> = args.iter().map(Array::ty).collect();
        let fits = infer(graph, &types).is_some();
        let mut kept = self.kept.write().unwrap_or_else(|e| e.into_inner());
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((extents, fits));
        fits
    }
}

/// Numbers that threads set and compare as a whole, without waiting for each other.
struct Recent {
    /// Odd while somebody sets the numbers; 0 before anybody has.
    version: AtomicUsize,
    numbers: Box<[AtomicUsize]>,
}

impl Recent {
    fn new(n: usize) -> Recent {
        // Nothing is asked where there are no numbers: they are equal.
        Recent { version: AtomicUsize::new(if n == 0 { 2 } else { 0 }), numbers: (0..n).map(|_| AtomicUsize::new(0)).collect() }
    }
    /// True where these are the numbers, and nobody has set others meanwhile.
    fn is(&self, numbers: impl Iterator<Item = usize>) -> bool {
        let before = self.version.load(Ordering::Acquire);
        let same = numbers.zip(&self.numbers).all(|(n, held)| held.load(Ordering::Relaxed) == n);
        fence(Ordering::Acquire);
        same && before != 0 && before.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == before
    }
    /// Sets them, unless somebody else is at it.
    fn set(&self, numbers: &[usize]) {
        let before = self.version.load(Ordering::Relaxed);
        let free = before.is_multiple_of(2)
            && self.version.compare_exchange(before, before.wrapping_add(1), Ordering::Acquire, Ordering::Relaxed).is_ok();
        if free {
            fence(Ordering::Release);
            self.numbers.iter().zip(numbers).for_each(|(held, n)| held.store(*n, Ordering::Relaxed));
            self.version.store(before.wrapping_add(2), Ordering::Release);
        }
    }
}

/// The extents that expressions have where inputs have those that are `known`; `None` for each that values decide.
///
/// ```
/// use scan_core::prelude::*;
/// let x = vector("x");
/// let n = x.ty().dims[0].as_sym();
/// let told = expected_extents(&[concat(&[&x, &x], 0)], &|sym| (Some(sym) == n).then_some(3));
/// assert_eq!(told, [[Some(6)]]);
/// ```
pub fn expected_extents(vars: &[Var], known: &dyn Fn(Sym) -> Option<i64>) -> Vec<Vec<Option<i64>>> {
    let told = |ty: &Type| ty.dims.iter().map(|dim| dim.eval(known)).collect::<Vec<_>>();
    let first: Vec<Vec<Option<i64>>> = vars.iter().map(|v| told(v.ty())).collect();
    if first.iter().flatten().all(Option::is_some) {
        return first;
    }
    let mut extract = Extract::new(true);
    let results: Result<Vec<Value>> = vars.iter().map(|v| extract.value(v)).collect();
    let Ok(results) = results else { return first };
    let mut graph = extract.graph;
    graph.set_results(results);
    let types: Vec<Type> = graph.params().iter().map(|p| expected(graph.ty(*p), known)).collect();
    infer(&graph, &types).map_or(first, |found| found.iter().map(told).collect())
}

/// A type with the extents that are known.
fn expected(ty: &Type, known: &dyn Fn(Sym) -> Option<i64>) -> Type {
    let dim = |dim: &Dim| dim.eval(known).and_then(|n| usize::try_from(n).ok()).map_or_else(|| dim.clone(), Dim::known);
    Type { dims: ty.dims.iter().map(dim).collect(), ..ty.clone() }
}

/// The types of a graph's results for parameters of these types; `None` where something does not fit.
fn infer(graph: &Graph, types: &[Type]) -> Option<Vec<Type>> {
    let mut known: Vec<Option<Arg>> = vec![None; graph.n_values()];
    for (&p, ty) in graph.params().iter().zip(types) {
        known[p.idx()] = Some(Arg { ty: ty.clone(), value: None, dim: None });
    }
    let live = graph.needed(graph.results());
    for (id, node) in graph.nodes().enumerate().filter(|(id, _)| live[id.idx()]) {
        let ins: Vec<Arg> = node.ins.iter().map(|v| known[v.idx()].clone()).collect::<Option<_>>()?;
        let def = node.op.def();
        let mut types = def.infer(&ins).ok()?;
        if let Op::Scan(scan) = &node.op {
            rows(scan, &ins, &mut types)?;
        }
        let dim = def.dim(&ins);
        for (&v, ty) in graph.nodes()[id].outs.iter().zip(types) {
            let value = if let Op::Const(a) = &node.op { Some(Array::clone(a)) } else { None };
            known[v.idx()] = Some(Arg { ty, value, dim: dim.clone() });
        }
    }
    graph.results().iter().map(|v| known[v.idx()].as_ref().map(|arg| arg.ty.clone())).collect()
}

/// What is known of the rows that a loop returns; `None` where its steps would not fit.
fn rows(scan: &Scan, ins: &[Arg], outs: &mut Outs<Type>) -> Option<()> {
    let types: Vec<Type> = ins.iter().map(|arg| arg.ty.clone()).collect();
    let made = infer(&scan.body, &param_types(scan, &types))?;
    let steps = ins[Scan::N_STEPS].as_dim();
    let enough = |have: &Dim, need: &Dim| have.value().zip(need.value()).is_none_or(|(have, need)| have >= need);
    scan.seqs.ids().all(|id| enough(&types[scan.seq_input(id)].dims[0], &steps)).then_some(())?;
    for id in scan.states.ids() {
        let init = scan.init_input(id).map(|at| &types[at]);
        init.is_none_or(|init| enough(&init.dims[0], &Dim::known(scan.states[id].span()))).then_some(())?;
        let first = init.map(Type::row);
        let row = state_row(first.iter().chain(&made[scan.write_results(id)]))?;
        outs[scan.state_output(id)].dims[1..].clone_from_slice(&row.dims);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse;
    use crate::types::DType;

    fn graph() -> Graph {
        let text = "fn f(x: f64[n0], y: f64[n1], k: i64) {
  %0 = add(x, y)
  return %0, k
}";
        parse(text).unwrap_or_else(|e| panic!("{}", e.title)).1
    }

    fn args(x: usize, y: usize) -> Vec<Array> {
        vec![Array::zeros(DType::F64, &[x]), Array::zeros(DType::F64, &[y]), Array::scalar(1i64)]
    }

    #[test]
    fn answers_are_those_of_inference_however_often_and_in_whatever_order() {
        let (graph, fit) = (graph(), Fit::new(&graph()));
        for round in 0..3 {
            for x in 0..12 {
                for y in 0..12 {
                    let fits = x == y || x == 1 || y == 1;
                    assert_eq!([0; 2].map(|_| fit.holds(&graph, &args(x, y))), [fits; 2], "{x} and {y}, round {round}");
                }
            }
        }
    }

    #[test]
    fn threads_do_not_mix_the_extents_of_their_calls() {
        let (graph, fit) = (graph(), Fit::new(&graph()));
        let run = |from: usize| {
            for k in 0..20_000 {
                let n = from + k % 5;
                assert!(fit.holds(&graph, &args(n, n)));
                assert!(!fit.holds(&graph, &args(n, n + 3)) || n == 1);
            }
        };
        std::thread::scope(|s| {
            s.spawn(|| run(1));
            s.spawn(|| run(3));
        });
    }

    #[test]
    fn numbers_are_compared_as_a_whole_while_others_set_them() {
        let recent = Recent::new(2);
        recent.set(&[1, 1]);
        let mixed = std::thread::scope(|scope| {
            scope.spawn(|| (0..200_000).for_each(|i| recent.set(&[1 + i % 2; 2])));
            scope.spawn(|| (0..200_000).filter(|_| recent.is([1, 2].into_iter()) || recent.is([2, 1].into_iter())).count()).join()
        });
        assert_eq!(mixed.ok(), Some(0), "mixtures of what was set at two times");
    }
}
