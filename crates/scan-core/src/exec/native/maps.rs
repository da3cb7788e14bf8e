//! A group of elementwise nodes as one kernel.

use super::tier::{Engine, Tiered};
use crate::backend::cpu::{Memory, Operand, bytes, cells};
use crate::base::Result;
use crate::eval::Walk;
use crate::ir::op::{NativeOp, Outs};
use crate::ir::{EvalCx, Graph};
use crate::lower::scan::lower_map;
use crate::types::shape::{broadcast_shapes, count};
use crate::types::{Array, Extents, Type};
use smallvec::SmallVec;
use std::sync::{Arc, RwLock};

/// Which operands have one element only.
type Mask = SmallVec<[bool; 8]>;

/// A group of elementwise nodes with one result.
pub struct NativeMap {
    graph: Arc<Graph>,
    walk: Walk<Arc<Graph>>,
    engine: Engine,
    variants: RwLock<Vec<(Mask, Option<Arc<Tiered>>)>>,
}

impl NativeMap {
    /// The group as a graph: parameters are its operands.
    pub fn new(graph: Graph, engine: Engine) -> NativeMap {
        let graph = Arc::new(graph);
        NativeMap { walk: Walk::new(graph.clone()), graph, engine, variants: RwLock::default() }
    }
    /// The group as a graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The common shape, where each operand has it or one element. Constants of the group count with their axes.
    fn shape(&self, ins: &[Array]) -> Option<Extents> {
        let mut shape: Extents = match ins {
            [first, rest @ ..] if rest.iter().all(|a| a.shape() == first.shape()) => SmallVec::from_slice(first.shape()),
            _ => broadcast_shapes(&ins.iter().map(Array::shape).collect::<SmallVec<[&[usize]; 8]>>()).ok()?,
        };
        while shape.len() < self.graph.ty(self.graph.results()[0]).rank() {
            shape.insert(0, 1);
        }
        let n = count(&shape);
        (n > 0 && ins.iter().all(|a| a.len() == 1 || a.len() == n)).then_some(shape)
    }

    fn variant(&self, mask: &Mask) -> Option<Arc<Tiered>> {
        let find = |known: &[(Mask, Option<Arc<Tiered>>)]| known.iter().find(|v| v.0 == *mask).map(|v| v.1.clone());
        if let Some(found) = find(&self.variants.read().unwrap_or_else(|e| e.into_inner())) {
            return found;
        }
        let made = lower_map(&self.graph, mask).ok().map(|kernel| Arc::new(Tiered::new(kernel, self.engine)));
        let mut variants = self.variants.write().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = find(&variants) {
            return found;
        }
        variants.push((mask.clone(), made.clone()));
        made
    }
}

impl NativeOp for NativeMap {
    fn name(&self) -> &str {
        "map"
    }
    fn types(&self) -> Outs<Type> {
        self.graph.results().iter().map(|&v| self.graph.ty(v).clone()).collect()
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let shape = self.shape(ins);
        let mask: Mask = ins.iter().map(|a| a.len() == 1).collect();
        let (Some(shape), Some(tier)) = (shape, self.variant(&mask)) else {
            let outs = self.walk.run(cx, &mut self.walk.slots(), &mut ins.to_vec())?;
            return Ok(outs.into_iter().collect());
        };
        let dtype = self.graph.ty(self.graph.results()[0]).dtype;
        let lanes = count(&shape);
        tier.expect(lanes, 1);
        let mut out = Array::dirty(dtype, &shape);
        let mut operands: SmallVec<[Operand; 8]> =
            ins.iter().map(|a| Operand { memory: Memory::Read(bytes(a)), offset: 0, stride: 0 }).collect();
        operands.push(Operand { memory: Memory::Write(cells(&mut out)), offset: 0, stride: 0 });
        tier.run(&operands, lanes, 1, 0);
        drop(operands);
        Ok(smallvec::smallvec![out])
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
