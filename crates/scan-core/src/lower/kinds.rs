//! What the values of a step depend on.

use super::refusal::{Lowered, refuse};
use crate::ir::{Graph, Node, Op, Scan, Value};

/// What the values of a body depend on.
pub(super) struct Kinds {
    kind: Vec<Kind>,
    live: Vec<bool>,
}

/// What a value depends on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// On nothing but extents.
    Known,
    /// On captured values.
    Before,
    /// On the step.
    Step,
}

impl Kinds {
    pub(super) fn new(scan: &Scan, body: &Graph) -> Kinds {
        let mut kind = vec![Kind::Step; body.n_values()];
        for id in scan.captured.ids() {
            kind[body.params()[scan.captured_param(id)].0 as usize] = Kind::Before;
        }
        for node in body.nodes().iter() {
            let worst = match &node.op {
                Op::DimOf(dim) if body.ty(node.ins[0]).dims[dim.axis].value().is_some() => Kind::Known,
                _ => node.ins.iter().map(|v| kind[v.0 as usize]).max().unwrap_or(Kind::Known),
            };
            node.outs.iter().for_each(|v| kind[v.0 as usize] = worst);
        }
        Kinds { kind, live: body.needed(body.results()) }
    }
    pub(super) fn of(&self, v: Value) -> Kind {
        self.kind[v.0 as usize]
    }
    pub(super) fn nodes<'a>(&'a self, body: &'a Graph) -> impl Iterator<Item = &'a Node> {
        body.nodes().enumerate().filter(|(id, _)| self.live[id.0 as usize]).map(|n| n.1)
    }
    /// Refuses what must run step by step, and what may not run before the loop.
    pub(super) fn check(&self, body: &Graph) -> Lowered<()> {
        let lazy = self.nodes(body).any(|n| matches!(n.op, Op::IfElse(_)));
        for node in self.nodes(body) {
            let step = node.outs.iter().any(|&v| self.of(v) == Kind::Step);
            match &node.op {
                Op::Extern(e) if step || !e.0.pure() => return refuse(format!("it calls `{}`", e.0.key())),
                op if lazy && !step && op.def().can_fail() => return refuse(format!("`{}` may fail in a branch not taken", op.name())),
                _ => {}
            }
        }
        Ok(())
    }
}
