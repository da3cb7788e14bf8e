//! Which values are equal where others are taken for equal: value numbering, without making the graph again.

use super::graph::{Graph, Node, Value};
use crate::base::Id;
use crate::types::Type;
use rustc_hash::FxHashMap;

impl Graph {
    /// Per value the one that stands for all that equal it, where the second of each pair stands for the first, a parameter: equal ops of
    /// equal inputs give equal results. Ops of which each evaluation counts equal themselves alone.
    pub fn congruent(&self, equal: impl IntoIterator<Item = (Value, Value)>) -> Vec<Value> {
        let mut of: Vec<Value> = (0..self.n_values()).map(|at| Value(at as u32)).collect();
        equal.into_iter().for_each(|(one, other)| of[one.idx()] = of[other.idx()]);
        let mut changed: FxHashMap<u32, Vec<&Node>> = FxHashMap::default();
        for node in self.nodes().iter() {
            let ins = |node: &Node| node.ins.iter().map(|v| of[v.idx()]).collect::<Vec<Value>>();
            let now = ins(node);
            if now[..] == node.ins[..] {
                continue;
            }
            let found = match self.seek(&node.op, &now) {
                Ok(there) => Some(&self.nodes()[there]),
                Err(None) => None,
                Err(Some(hash)) => {
                    let before = changed.entry(hash).or_default();
                    let same = before.iter().copied().find(|other| other.op == node.op && ins(other) == now);
                    if same.is_none() {
                        before.push(node);
                    }
                    same
                }
            };
            if let Some(found) = found {
                node.outs.iter().zip(&found.outs).for_each(|(v, same)| of[v.idx()] = of[same.idx()]);
            }
        }
        of
    }
}

impl Graph {
    /// True where another graph computes the same of its parameters, op by op, each for the same line of the source: names aside. False where
    /// an op is among them of which each evaluation counts.
    pub fn computes_like(&self, other: &Graph) -> bool {
        let types = |graph: &Graph| graph.params().iter().map(|&p| graph.ty(p).clone()).collect::<Vec<Type>>();
        if self.nodes().len() != other.nodes().len() || types(self) != types(other) {
            return false;
        }
        let mut image: FxHashMap<Value, Value> = other.params().iter().copied().zip(self.params().iter().copied()).collect();
        for node in other.nodes().iter() {
            let ins: Vec<Value> = node.ins.iter().map(|v| image[v]).collect();
            let Some(found) = self.seek(&node.op, &ins).ok().map(|id| &self.nodes()[id]).filter(|n| n.span == node.span) else {
                return false;
            };
            image.extend(node.outs.iter().copied().zip(found.outs.iter().copied()));
        }
        other.results().iter().map(|v| image[v]).eq(self.results().iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::Graph;
    use crate::types::{DType, Type};

    #[test]
    fn equal_ops_of_equal_values_are_equal() {
        let mut g = Graph::new();
        let [a, b, c] = [(); 3].map(|()| g.param(Type::scalar(DType::F64), None));
        let [of_a, of_b, of_c] = [a, b, c].map(|v| {
            let square = g.mul(v, v);
            g.add(square, c)
        });
        let none = g.congruent([]);
        assert!(none.iter().enumerate().all(|(at, v)| v.0 == at as u32));
        let found = g.congruent([(b, a)]);
        assert_eq!(found[of_b.0 as usize], of_a);
        assert_eq!(found[of_c.0 as usize], of_c);
        // Neither is in the graph with its new inputs: they are found beside each other.
        let moved = g.congruent([(a, c), (b, c)]);
        assert_eq!([moved[of_a.0 as usize], moved[of_b.0 as usize]], [of_c, of_c]);
    }

    #[test]
    fn graphs_that_compute_the_same_in_another_order_are_alike() {
        let made = |turned: bool, dtype: DType, twice: bool| {
            let mut g = Graph::new();
            let [a, b] = [(); 2].map(|()| g.param(Type::scalar(dtype), None));
            let (sum, product) = if turned {
                let product = g.mul(a, b);
                (g.add(a, b), product)
            } else {
                (g.add(a, b), g.mul(a, b))
            };
            let last = if twice { g.add(sum, sum) } else { g.add(sum, product) };
            g.set_results(vec![last, product]);
            g
        };
        let g = made(false, DType::F64, false);
        assert!(g.computes_like(&made(true, DType::F64, false)));
        assert!(!g.computes_like(&made(false, DType::F32, false)));
        assert!(!g.computes_like(&made(false, DType::F64, true)));
    }
}
