//! What must hold in a step for a kernel to do what the law does.

use super::nodes::Lowering;
use crate::ir::{Op, Value};
use crate::kernel::{Bin, Reg, Un};
use rustc_hash::FxHashMap;

impl Lowering<'_> {
    /// All that must hold; `None` where nothing can go wrong. What only a branch of `ifelse` needs must hold where that branch is taken.
    pub(super) fn guarded(&mut self) -> Option<Reg> {
        let mut guards = self.take_guards();
        if guards.is_empty() {
            return None;
        }
        let graph = self.graph();
        let truth = self.builder.truth(true);
        let mut wanted: FxHashMap<Value, Reg> = graph.results().iter().map(|&v| (v, truth)).collect();
        let mut all: Option<Reg> = None;
        let order: Vec<_> = graph.nodes().enumerate().collect();
        for (id, node) in order.into_iter().rev() {
            let Some(need) = node.outs.iter().filter_map(|v| wanted.get(v).copied()).reduce(|x, y| self.either(x, y)) else { continue };
            while let Some((_, holds)) = guards.pop_if(|g| g.0 == id) {
                let unneeded = self.builder.un(Un::Not, need);
                let fine = if self.builder.known(need).is_some() { holds } else { self.either(holds, unneeded) };
                all = Some(all.map_or(fine, |all| self.builder.bin(Bin::And, all, fine)));
            }
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
