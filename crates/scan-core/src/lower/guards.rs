//! What must hold in a step for a kernel to do what the law does.

use super::nodes::Lowering;
use crate::ir::{NodeId, Op, Value};
use crate::kernel::{Bin, Reg, Un};
use rustc_hash::FxHashMap;

impl Lowering<'_> {
    /// All that must hold; `None` where nothing can go wrong. What only a branch of `ifelse` needs must hold where that branch is taken.
    pub(super) fn guarded(&mut self) -> Option<Reg> {
        let (guards, results) = (self.take_guards(), self.graph().results());
        self.needed(guards, results)
    }
    /// All of what must hold so far that the node at hand needs, so that it is given what the law gives it. Other values may be none: those of a
    /// branch that is not taken.
    pub(super) fn lawful(&mut self, ins: &[Value]) -> Option<Reg> {
        let (own, before) = self.guards();
        let before = self.needed(before, ins);
        own.into_iter().chain(before).reduce(|x, y| self.builder.bin(Bin::And, x, y))
    }
    /// What must hold for some values to be what the law says.
    fn needed(&mut self, mut guards: Vec<(NodeId, Reg)>, values: &[Value]) -> Option<Reg> {
        if guards.is_empty() {
            return None;
        }
        let graph = self.graph();
        let truth = self.builder.truth(true);
        let mut wanted: FxHashMap<Value, Reg> = values.iter().map(|&v| (v, truth)).collect();
        let mut all: Option<Reg> = None;
        let order: Vec<_> = graph.nodes().enumerate().collect();
        for (id, node) in order.into_iter().rev() {
            let need = node.outs.iter().filter_map(|v| wanted.get(v).copied()).reduce(|x, y| self.either(x, y));
            while let Some((at, holds)) = guards.pop_if(|g| g.0 >= id) {
                let Some(need) = need.filter(|_| at == id) else { continue };
                let unneeded = self.builder.un(Un::Not, need);
                let fine = if self.builder.known(need).is_some() { holds } else { self.either(holds, unneeded) };
                all = Some(all.map_or(fine, |all| self.builder.bin(Bin::And, all, fine)));
            }
            let Some(need) = need else { continue };
            for (k, &v) in node.ins.iter().enumerate() {
                let own = if k > 0 && matches!(node.op, Op::IfElse(_)) { self.taken(node.ins[0], k == 1, need) } else { need };
                let before = wanted.get(&v).copied();
                let either = before.map_or(own, |before| self.either(before, own));
                wanted.insert(v, either);
            }
        }
        all
    }

    fn either(&mut self, x: Reg, y: Reg) -> Reg {
        match (self.builder.known(x), self.builder.known(y)) {
            (Some(1), _) | (_, Some(0)) => x,
            (_, Some(1)) | (Some(0), _) => y,
            _ => self.builder.bin(Bin::Or, x, y),
        }
    }

    /// Whether a branch is taken of an `ifelse` that is needed itself.
    fn taken(&mut self, cond: Value, first: bool, need: Reg) -> Reg {
        let Ok(cond) = self.truth_of(cond) else { return need };
        let own = if first { cond } else { self.builder.un(Un::Not, cond) };
        if self.builder.known(need) == Some(1) { own } else { self.builder.bin(Bin::And, need, own) }
    }
}
