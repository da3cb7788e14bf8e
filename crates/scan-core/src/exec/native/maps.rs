//! A group of elementwise nodes as one kernel.

use super::home::Home;
use super::planner::Planner;
use super::spread::{self, Spread};
use super::tier::{Engine, Tiered};
use crate::backend::cpu::team::GRAIN;
use crate::backend::cpu::{Memory, Operand, bytes, cells};
use crate::base::Result;
use crate::eval::Walk;
use crate::ir::op::{NativeOp, Outs};
use crate::ir::{EvalCx, Graph, Op};
use crate::kernel::{Kernel, Lane};
use crate::lower::scan::lower_map;
use crate::ops::broadcast::broadcast;
use crate::scan::retype::specialised;
use crate::types::device::Crossed;
use crate::types::shape::{broadcast_shapes, count};
use crate::types::{Array, DType, Extents, Type};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, RwLock};

/// Which operands have one element only.
type Mask = SmallVec<[bool; 8]>;

/// A group of elementwise nodes.
pub struct NativeMap {
    graph: Arc<Graph>,
    walk: Walk<Arc<Graph>>,
    planner: Planner,
    variants: RwLock<Vec<(Mask, Option<Arc<Tiered>>)>>,
    /// How the operands of the last call that broadcast along some axes were walked.
    spread: RwLock<Option<Arc<Spread>>>,
    /// The group for the extents of the last call that was not one kernel.
    apart: Mutex<Apart>,
}

/// Groups are made where extents are only not known to differ. For these, which do, it is several.
#[derive(Default)]
struct Apart {
    shapes: Vec<Extents>,
    /// Once a second call has them: planning takes longer than the law.
    planned: Option<Arc<Walk<Arc<Graph>>>>,
}

impl NativeMap {
    /// The group as a graph: parameters are its operands.
    pub fn new(graph: Graph, planner: Planner) -> NativeMap {
        let graph = Arc::new(graph);
        NativeMap {
            walk: Walk::new(graph.clone()),
            graph,
            planner,
            variants: RwLock::default(),
            spread: RwLock::default(),
            apart: Mutex::default(),
        }
    }
    /// Where it ran last for each kind of its arguments: the device, why the host, and the bytes that crossed; `None` where no device was
    /// asked for, or before the first call.
    pub fn placed(&self) -> Option<(Option<String>, Option<String>, [u64; 2])> {
        let variants = self.variants.read().unwrap_or_else(|e| e.into_inner());
        let device = variants.iter().rev().find_map(|v| v.1.as_ref())?.device()?;
        let there = (!device.is_refused()).then(|| device.name().to_string());
        Some((there, device.refusal(), device.crossed()))
    }
    /// The group as a graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The one shape of all operands but those of one element, where they have one.
    fn shape(&self, ins: &[Array], mask: &Mask) -> Option<Extents> {
        let mut full = ins.iter().zip(mask).filter(|m| !m.1).map(|m| m.0);
        let Some(first) = full.next() else { return Some(Extents::new()) };
        (!first.is_empty() && full.all(|a| a.shape() == first.shape())).then(|| SmallVec::from_slice(first.shape()))
    }

    /// A result of this rank: as the operands, or of one element.
    fn result(dtype: DType, rank: usize, shape: &Extents, full: bool, home: Home) -> Option<Array> {
        let ones = if full { rank.checked_sub(shape.len())? } else { rank };
        let mut own: Extents = SmallVec::from_elem(1, ones);
        own.extend(shape.iter().copied().filter(|_| full));
        Some(home.dirty(dtype, &own))
    }

    /// Its results, not computed yet.
    fn results(&self, kernel: &Kernel, n_ins: usize, shape: &Extents, home: Home) -> Option<Outs<Array>> {
        let lanes = kernel.mems.iter().skip(n_ins).map(|m| m.lane == Lane::Unit);
        let types = self.graph.results().iter().map(|&v| self.graph.ty(v));
        types.zip(lanes).map(|(ty, full)| NativeMap::result(ty.dtype, ty.rank(), shape, full, home)).collect()
    }

    /// Its results where a device makes them; `None` where the host is to.
    fn there(&self, cx: &mut EvalCx, tier: &Tiered, ins: &[Array], shape: &Extents) -> Result<Option<Outs<Array>>> {
        let Some(device) = tier.device().filter(|device| !device.is_refused()) else { return Ok(None) };
        let (crossed, home, kernel) = (Crossed::start(), device.home(), tier.kernel());
        let mut ins: SmallVec<[Array; 8]> = ins.iter().cloned().collect();
        ins.iter_mut().try_for_each(|x| home.send(x))?;
        let Some(mut outs) = self.results(kernel, ins.len(), shape, home) else { return Ok(None) };
        let read = ins.iter().map(|a| Memory::of(a, true));
        let memory = read.chain(outs.iter_mut().map(|a| Memory::of_mut(a, true)));
        let operands: SmallVec<[Operand; 8]> = memory.map(|memory| Operand { memory, offset: 0, stride: 0 }).collect();
        let mut made = true;
        run_in_parts(cx, kernel, &operands, count(shape), |cx, now, lanes| {
            made &= device.run(cx, kernel, now, lanes, 1, 0)?.is_some();
            Ok(())
        })?;
        drop(operands);
        device.note(crossed.since());
        Ok(made.then_some(outs))
    }

    /// The result of operands that broadcast along some axes; `None` for those of the law: nodes of which the shapes of others decide what
    /// they do, and few elements.
    fn broadcast(&self, cx: &mut EvalCx, ins: &[Array]) -> Result<Option<Array>> {
        let [result] = self.graph.results() else { return Ok(None) };
        let looks = |op: &Op| matches!(op, Op::SumTo(_) | Op::BroadcastLike(_));
        let shapes: Vec<Extents> = ins.iter().map(|a| Extents::from_slice(a.shape())).collect();
        let Ok(shape) = broadcast_shapes(&shapes.iter().map(|s| &s[..]).collect::<SmallVec<[&[usize]; 8]>>()) else { return Ok(None) };
        let on_device = matches!(self.planner.engine, Engine::Device(_));
        let alike = ins.iter().all(|x| x.len() == 1 || x.shape() == &shape[..]);
        if alike || count(&shape) < FEW || on_device || self.graph.nodes().iter().any(|n| looks(&n.op)) {
            return Ok(None);
        }
        let Some(spread) = self.spread(&shapes, &shape) else { return self.expanded(cx, ins, &shape) };
        let mut out = Array::dirty(self.graph.ty(*result).dtype, &shape);
        let memory = ins.iter().map(|a| Memory::Read(bytes(a)));
        spread.run(memory.chain(std::iter::once(Memory::Write(cells(&mut out)))), |work| cx.worked(work))?;
        Ok(Some(out))
    }
    fn spread(&self, shapes: &[Extents], shape: &[usize]) -> Option<Arc<Spread>> {
        let last = self.spread.read().unwrap_or_else(|e| e.into_inner()).clone();
        if let Some(last) = last.filter(|last| last.shapes == shapes) {
            return Some(last);
        }
        let new = Spread::new(shapes, &spread::axes(shapes, shape)?, |mask| self.variant(&Mask::from_slice(mask)))?;
        let new = Arc::new(new);
        *self.spread.write().unwrap_or_else(|e| e.into_inner()) = Some(new.clone());
        Some(new)
    }
    /// The group planned for extents that differ, once it is called with these a second time.
    fn apart(&self, ins: &[Array]) -> Option<Arc<Walk<Arc<Graph>>>> {
        let unknown = self.graph.params().iter().any(|&p| self.graph.ty(p).dims.iter().any(|d| d.value().is_none()));
        if !unknown || ins.iter().map(Array::len).sum::<usize>() < FEW {
            return None;
        }
        let mut apart = self.apart.lock().unwrap_or_else(|e| e.into_inner());
        let same = apart.shapes.len() == ins.len() && apart.shapes.iter().zip(ins).all(|(shape, x)| shape[..] == *x.shape());
        if !same {
            *apart = Apart { shapes: ins.iter().map(|x| Extents::from_slice(x.shape())).collect(), planned: None };
            return None;
        }
        if apart.planned.is_none() {
            let types: Vec<Type> = ins.iter().map(Array::ty).collect();
            let known = specialised(&self.graph, &types, &vec![None; types.len()]).ok()?;
            apart.planned = Some(Arc::new(Walk::new(Arc::new(self.planner.nodes(&known).ok()?))));
        }
        apart.planned.clone()
    }
    /// The result where the innermost axis is short: of operands that were copied to the full shape before.
    fn expanded(&self, cx: &mut EvalCx, ins: &[Array], shape: &[usize]) -> Result<Option<Array>> {
        let full = |x: &Array| if x.len() == 1 { Ok(x.clone()) } else { broadcast(x, shape) };
        let mut full: Vec<Array> = ins.iter().map(full).collect::<Result<_>>()?;
        Ok(self.eval(cx, &mut full)?.into_iter().next())
    }

    fn variant(&self, mask: &Mask) -> Option<Arc<Tiered>> {
        let find = |known: &[(Mask, Option<Arc<Tiered>>)]| known.iter().find(|v| v.0 == *mask).map(|v| v.1.clone());
        if let Some(found) = find(&self.variants.read().unwrap_or_else(|e| e.into_inner())) {
            return found;
        }
        let made = lower_map(&self.graph, mask).ok().map(|kernel| Arc::new(Tiered::new(kernel, self.planner.engine)));
        let mut variants = self.variants.write().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = find(&variants) {
            return found;
        }
        variants.push((mask.clone(), made.clone()));
        made
    }
}

/// Fewer elements are computed as the law does.
const FEW: usize = 64;

/// lanes × instructions between two looks at the clock.
const PORTION: usize = 1 << 26;

/// Runs so many lanes at a time that the caller may stop it.
fn run_in_parts(
    cx: &mut EvalCx,
    kernel: &Kernel,
    operands: &[Operand],
    lanes: usize,
    mut run: impl FnMut(&mut EvalCx, &[Operand], usize) -> Result<()>,
) -> Result<()> {
    let part = (PORTION / kernel.body.len().max(1)).max(1 << 10).next_multiple_of(GRAIN);
    if lanes <= part {
        return run(cx, operands, lanes);
    }
    for lo in (0..lanes).step_by(part) {
        let mut now: SmallVec<[Operand; 8]> = SmallVec::from_slice(operands);
        for (operand, mem) in now.iter_mut().zip(kernel.mems.iter()).filter(|(_, mem)| mem.lane == Lane::Unit) {
            operand.offset += lo * mem.dtype.size();
        }
        run(cx, &now, part.min(lanes - lo))?;
        cx.check_clock()?;
    }
    Ok(())
}

impl NativeOp for NativeMap {
    fn name(&self) -> &str {
        "map"
    }
    fn types(&self) -> Outs<Type> {
        self.graph.results().iter().map(|&v| self.graph.ty(v).clone()).collect()
    }
    fn plan(&self) -> String {
        let variants = self.variants.read().unwrap_or_else(|e| e.into_inner());
        variants.iter().filter_map(|v| v.1.as_ref()).map(|tier| tier.text("kernel")).collect()
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let mask: Mask = ins.iter().map(|a| a.len() == 1).collect();
        let found = self.shape(ins, &mask).and_then(|shape| Some((self.variant(&mask)?, shape)));
        if let Some((tier, shape)) = &found
            && let Some(made) = self.there(cx, tier, ins, shape)?
        {
            return Ok(made);
        }
        let ready = found.and_then(|(tier, shape)| {
            let outs = self.results(tier.kernel(), ins.len(), &shape, Home::HERE)?;
            Some((outs, tier, count(&shape)))
        });
        let Some((mut outs, tier, lanes)) = ready else {
            if let Some(out) = self.broadcast(cx, ins)? {
                return Ok([out].into_iter().collect());
            }
            let apart = self.apart(ins);
            let walk = apart.as_deref().unwrap_or(&self.walk);
            return cx.as_one(|cx| walk.run(cx, &mut walk.slots(), &mut ins.to_vec())).map(Outs::from_vec);
        };
        tier.expect(lanes, 1);
        let read = ins.iter().map(|a| Memory::Read(bytes(a)));
        let memory = read.chain(outs.iter_mut().map(|a| Memory::Write(cells(a))));
        let operands: SmallVec<[Operand; 8]> = memory.map(|memory| Operand { memory, offset: 0, stride: 0 }).collect();
        run_in_parts(cx, tier.kernel(), &operands, lanes, |_, now, lanes| {
            tier.run(now, lanes, 1, 0);
            Ok(())
        })?;
        drop(operands);
        Ok(outs)
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
