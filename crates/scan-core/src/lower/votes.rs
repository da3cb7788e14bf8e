//! Loops that stop by what many lanes say: at each step every lane votes, and who runs the kernel counts.
//!
//! ```text
//! until all(|x - y| < e)        each lane: |x - y| < e      where all say so
//! until max(|x - y|) < e        the same
//! until not any(alive)          each lane: not alive        where all say so
//! until n > 9 or any(x > 1)     each lane: n > 9 or x > 1   where one says so
//! ```

use super::extents::known_shape;
use super::nodes::Lowering;
use super::value::Layout;
use super::window::Mems;
use super::{Lowered, refuse};
use crate::base::Result;
use crate::ir::op::{Cast, ReduceKind};
use crate::ir::{Graph, Op, Value};
use crate::kernel::{Bin, Lane};
use crate::plan::kernel::Place;
use crate::plan::votes::{Quorum, Votes};
use crate::scalar::ElemOp;
use crate::types::DType;
use crate::types::shape::count;

/// What each lane says, of which a condition is made; without a quorum all say the same.
struct Ballot {
    vote: Value,
    quorum: Option<Quorum>,
}

impl Quorum {
    fn other(self) -> Quorum {
        match self {
            Quorum::All => Quorum::One,
            Quorum::One => Quorum::All,
        }
    }
    /// What makes one vote of two.
    fn joined(self) -> Bin {
        match self {
            Quorum::All => Bin::And,
            Quorum::One => Bin::Or,
        }
    }
}

/// The step with the votes in place of its condition, result `at`, and which of them stop the loop.
///
/// # Errors
/// What type inference reports.
pub(super) fn voted(body: &Graph, at: usize) -> Lowered<(Graph, Quorum)> {
    let mut graph = body.clone();
    let mut results = body.results().to_vec();
    let Ballot { vote, quorum } = ballot(&mut graph, results[at])?;
    results[at] = vote;
    graph.set_results(results);
    Ok((graph, quorum.unwrap_or(Quorum::One)))
}

/// What each lane says where a condition is one of all lanes; the condition itself where it is not known to be.
fn ballot(graph: &mut Graph, v: Value) -> Result<Ballot> {
    let Some(node) = graph.node_of(v).cloned() else { return Ok(Ballot { vote: v, quorum: None }) };
    let of_bools = node.ins.iter().all(|&x| graph.ty(x).dtype == DType::Bool);
    let found = match &node.op {
        Op::Elem(ElemOp::Not | ElemOp::Invert) if of_bools => {
            let of = ballot(graph, node.ins[0])?;
            let vote = graph.apply(node.op, &[of.vote])?[0];
            return Ok(Ballot { vote, quorum: of.quorum.map(Quorum::other) });
        }
        Op::Elem(ElemOp::And | ElemOp::Or | ElemOp::BitAnd | ElemOp::BitOr) if of_bools => joined(graph, &node.op, &node.ins)?,
        Op::Reduce(op) if graph.ty(v).rank() == 0 => match op.kind {
            ReduceKind::All => Some((truth(graph, node.ins[0])?, Quorum::All)),
            ReduceKind::Any => Some((truth(graph, node.ins[0])?, Quorum::One)),
            _ => None,
        },
        Op::Elem(ElemOp::Lt | ElemOp::Le | ElemOp::Gt | ElemOp::Ge) => bounded(graph, &node.op, &node.ins)?.map(|vote| (vote, Quorum::All)),
        _ => None,
    };
    Ok(found.map_or(Ballot { vote: v, quorum: None }, |(vote, quorum)| Ballot { vote, quorum: Some(quorum) }))
}

/// The same as bools.
fn truth(graph: &mut Graph, v: Value) -> Result<Value> {
    if graph.ty(v).dtype == DType::Bool { Ok(v) } else { Ok(graph.apply(Cast { dtype: DType::Bool }, &[v])?[0]) }
}

/// Two conditions, both or one of which must hold. `all(x) or all(y)` is no vote of single lanes.
fn joined(graph: &mut Graph, op: &Op, ins: &[Value]) -> Result<Option<(Value, Quorum)>> {
    let (a, b) = (ballot(graph, ins[0])?, ballot(graph, ins[1])?);
    let quorum = match (a.quorum, b.quorum) {
        (Some(one), None) | (None, Some(one)) => one,
        (Some(one), Some(other)) => {
            let both = if matches!(op, Op::Elem(ElemOp::And | ElemOp::BitAnd)) { Quorum::All } else { Quorum::One };
            if one != both || other != both || known_shape(graph, a.vote).ok() != known_shape(graph, b.vote).ok() {
                return Ok(None);
            }
            both
        }
        (None, None) => return Ok(None),
    };
    Ok(Some((graph.apply(op.clone(), &[a.vote, b.vote])?[0], quorum)))
}

/// The largest of all elements below a number, or the least above: each is. One that is no number is on no side, as is then the extreme.
fn bounded(graph: &mut Graph, op: &Op, ins: &[Value]) -> Result<Option<Value>> {
    let below = matches!(op, Op::Elem(ElemOp::Lt | ElemOp::Le));
    for (side, most) in [(0, below), (1, !below)] {
        let kind = if most { ReduceKind::Max } else { ReduceKind::Min };
        let extreme = graph.node_of(ins[side]).filter(|node| matches!(&node.op, Op::Reduce(op) if op.kind == kind)).map(|node| node.ins[0]);
        let bound = ins[1 - side];
        if let Some(x) = extreme
            && [ins[side], bound].iter().all(|&v| graph.ty(v).rank() == 0)
            && known_shape(graph, x).is_ok_and(|shape| count(&shape) > 0)
        {
            let sides = if side == 0 { [x, bound] } else { [bound, x] };
            return Ok(Some(graph.apply(op.clone(), &sides)?[0]));
        }
    }
    Ok(None)
}

impl Lowering<'_> {
    /// Stores what each lane says.
    pub(super) fn votes(&mut self, vote: Value, quorum: Quorum, mems: &mut Mems) -> Lowered<Votes> {
        let apart = match self.layout() {
            Layout::Lanes(_) => self.value(vote)?.size() > 1,
            _ => self.row_axes[vote.0 as usize].is_some(),
        };
        let lane = if apart { Lane::Unit } else { Lane::Uniform };
        let regs: Vec<_> = self.regs(vote)?.into_iter().map(|reg| self.builder.convert(reg, DType::Bool)).collect();
        let Some(all) = regs.into_iter().reduce(|a, b| self.builder.bin(quorum.joined(), a, b)) else {
            return refuse("a condition on no elements");
        };
        let mem = mems.add(&mut self.builder, DType::Bool, lane, Place::Votes);
        self.builder.store(mem, all);
        Ok(Votes { quorum, voters: if apart { self.layout().lanes() } else { 1 } })
    }
}
