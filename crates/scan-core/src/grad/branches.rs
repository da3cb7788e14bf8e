//! Branches of `ifelse` in reverse: what a branch alone needs is pulled back only where the branch is taken.
//!
//! ```text
//! y = ifelse(c, log(x[k]), 0)          ct(x) = ifelse(c, write(zeros, ct(y) / x[k], k), zeros)
//! ```
//!
//! A cotangent is chosen where it leaves the branch. Were the zero chosen where it enters, what lies between would be computed of that zero:
//! an index out of range would be an error, and 0/0 NaN, of a branch that is not taken.

use crate::ir::op::IfElse;
use crate::ir::{Graph, Node, NodeId, Op, Value};
use crate::ops::control::zeros;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Range;

/// The conditions under which something is needed, outermost first, and whether each of them holds or does not.
pub(super) type At = SmallVec<[(Value, bool); 2]>;

/// Under which conditions the values are needed that a walk goes through.
#[derive(Default)]
pub(super) struct Branches {
    homes: FxHashMap<Value, At>,
}

impl Branches {
    /// Among these nodes; `roots` are needed whatever the conditions say.
    pub fn of(g: &Graph, nodes: Range<usize>, roots: impl Iterator<Item = Value>) -> Branches {
        let mut found = Branches::default();
        let node = |i: usize| &g.nodes()[NodeId(i as u32)];
        if !nodes.clone().any(|i| matches!(node(i).op, Op::IfElse(_))) {
            return found;
        }
        found.homes.extend(roots.map(|v| (v, At::new())));
        for i in nodes.rev() {
            if !node(i).outs.iter().any(|v| found.homes.contains_key(v)) {
                continue;
            }
            for (k, &v) in node(i).ins.iter().enumerate() {
                let at = found.input(node(i), k);
                match found.homes.get_mut(&v) {
                    Some(home) => home.retain(|fact| at.contains(fact)),
                    None => drop(found.homes.insert(v, at)),
                }
            }
        }
        found
    }
    /// Under which conditions a node is needed.
    pub fn node(&self, node: &Node) -> At {
        let mut homes = node.outs.iter().filter_map(|v| self.homes.get(v));
        let mut at = homes.next().cloned().unwrap_or_default();
        homes.for_each(|home| at.retain(|fact| home.contains(fact)));
        at
    }
    /// Under which conditions a node needs an input.
    pub fn input(&self, node: &Node, k: usize) -> At {
        let (mut at, fact) = (self.node(node), (node.ins[0], k == 1));
        if k > 0 && matches!(node.op, Op::IfElse(_)) && !at.contains(&fact) {
            at.push(fact);
        }
        at
    }
    /// Under which conditions a value is needed.
    pub fn value(&self, v: Value) -> At {
        self.homes.get(&v).cloned().unwrap_or_default()
    }
    /// A cotangent of a value that is there under some conditions as one that is there under others: zero where one of the first does not
    /// hold that is not among the second.
    pub fn leaving(&self, g: &mut Graph, from: &At, to: &At, (v, ct): (Value, Value)) -> Value {
        let left = from.iter().rev().filter(|fact| !to.contains(fact));
        left.fold(ct, |ct, &(cond, holds)| {
            let zero = zeros(g, v);
            g.emit(IfElse {}, &if holds { [cond, ct, zero] } else { [cond, zero, ct] })
        })
    }
}
