//! Products of matrices, and of stacks of them, as parts of a list.

use super::Lowered;
use super::planner::Planner;
use crate::ir::{NodeId, Op};
use crate::ops::direct::Direct;
use crate::plan::list::{Item, Place, Work};
use crate::types::shape::{Extents, broadcast_positions, count};

/// Stacks of so few matrices are multiplied one by one.
const STACK: usize = 64;

impl Planner<'_> {
    pub(super) fn product(&mut self, id: NodeId) -> Lowered<bool> {
        let node = &self.body.nodes()[id];
        let Op::MatMul(_) = node.op else { return Ok(false) };
        let ins = self.places(&node.ins)?;
        let dtype = self.body.ty(node.outs[0]).dtype;
        let fits = dtype.is_float() && ins.iter().all(|p| p.dtype == dtype && !p.shape.is_empty());
        let (a, b) = (ins[0].shape.clone(), ins[1].shape.clone());
        let (k, rows) = (a[a.len() - 1], a.len().min(2) - 1);
        let inner = if b.len() == 1 { b[0] } else { b[b.len() - 2] };
        if !fits || inner != k {
            return Ok(false);
        }
        let n = if b.len() == 1 { 1 } else { b[b.len() - 1] };
        if b.len() < 3 {
            // Rows of all matrices of a stack are rows of one.
            let m = count(&a[..a.len() - 1]);
            let out = self.slot(node.outs[0])?;
            self.items.push(Item { work: Work::MatMul([m, k, n]), ins, outs: vec![out], span: node.span });
            return Ok(true);
        }
        let m = if rows == 1 { a[a.len() - 2] } else { 1 };
        self.one_by_one(id, ins, [m, k, n])
    }

    /// A stack of few matrices on the right, which are no small ones, with those on the left.
    fn one_by_one(&mut self, id: NodeId, ins: Vec<Place>, [m, k, n]: [usize; 3]) -> Lowered<bool> {
        let node = &self.body.nodes()[id];
        let batch = |shape: &[usize]| Extents::from_slice(&shape[..shape.len().saturating_sub(2)]);
        let (left, right) = (batch(&ins[0].shape), batch(&ins[1].shape));
        let shape = super::extents::known_shape(self.body, node.outs[0])?;
        let all = Extents::from_slice(&shape[..shape.len() - 1 - usize::from(ins[0].shape.len() > 1)]);
        let shapes: Vec<&[usize]> = ins.iter().map(|p| &p.shape[..]).collect();
        let wide = self.body.ty(node.outs[0]).dtype == crate::types::DType::F64;
        if count(&all) > STACK || Direct::new(&node.op, &shapes, &shape, wide).is_some() {
            return Ok(false);
        }
        let out = self.slot(node.outs[0])?;
        let (left, right) = (broadcast_positions(&left, &all), broadcast_positions(&right, &all));
        for (at, (a, b)) in left.into_iter().zip(right).enumerate() {
            let of = |place: &Place, first: usize, shape: [usize; 2]| Place {
                first: place.first + first,
                shape: Extents::from_slice(&shape),
                ..place.clone()
            };
            let ins = vec![of(&ins[0], a * m * k, [m, k]), of(&ins[1], b * k * n, [k, n])];
            let outs = vec![of(&out, at * m * n, [m, n])];
            self.items.push(Item { work: Work::MatMul([m, k, n]), ins, outs, span: node.span });
        }
        Ok(true)
    }
}
